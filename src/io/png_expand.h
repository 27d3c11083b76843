/* From the samples that PNG stores (1 to 16 bits, palettes, a transparent key) to native ones. */
#ifndef GF_PNG_EXPAND_H
#define GF_PNG_EXPAND_H

#include "image.h"

typedef struct gf_png_layout {
    uint64_t width;
    uint32_t channels;             /* stored: 1 for a palette */
    uint32_t depth;                /* bits a stored sample: 1, 2, 4, 8 or 16 */
    bool indexed;                  /* samples are indices into palette */
    bool has_alpha;                /* indexed: the palette has alpha */
    bool has_key;                  /* else: pixels equal to key are transparent */
    uint16_t key[3];               /* stored sample values, masked to depth */
    unsigned char palette[256][4]; /* RGBA; every entry is filled */
} gf_png_layout;

/* Channels and type of the expanded image: palettes become RGB or RGBA, a key adds an alpha
 * channel, 16 bits stay, less becomes u8. */
void gf_png_layout_format(const gf_png_layout *layout, gf_format *format);

/* Bytes of a stored row. Never more than those of the expanded one. */
size_t gf_png_layout_bytes(const gf_png_layout *layout);

/* Expands a stored row. raw == out is allowed; neither need be aligned. */
void gf_png_expand_row(const gf_png_layout *layout, const unsigned char *raw, unsigned char *out);

#endif
