/* What is used of the stb libraries, which are compiled in files of their own. */
#ifndef GF_STB_H
#define GF_STB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/arena.h"

/* Why decoding is given up in the middle. */
typedef enum gf_stb_end { GF_STB_PAST_END, GF_STB_NO_MEMORY } gf_stb_end;

/* The bytes of a file, and whether the decoder wanted more than there are. */
typedef struct gf_stb_bytes {
    const unsigned char *data;
    size_t size;
    size_t used;
    void *buffer; /* the decoder's, known from its first read */
    bool past_end;
    bool loading, hdr; /* the decoder is at work on the pixels, on such */
    /* Called while an image is decoded, as soon as it is known to be in vain. If it returns, stb
     * goes on, with zeros for the bytes that are not there. NULL for none. */
    void (*give_up)(void *context, gf_stb_end why);
    void *context;
} gf_stb_bytes;

typedef enum gf_stb_depth { GF_STB_8, GF_STB_16, GF_STB_FLOAT } gf_stb_depth;

/* Both take all their memory from the arena, and print, open and wait for nothing. */

/* The size that the header gives, without decoding. */
bool gf_stb_info(gf_stb_bytes *bytes, gf_arena *arena, int *width, int *height, int *channels);
/* Decodes into a block of the arena; NULL on failure. channels: 0 for as many as there are, which
 * *found then is. */
void *gf_stb_load(gf_stb_bytes *bytes, gf_arena *arena, gf_stb_depth depth, int channels,
                  int *width, int *height, int *found);
/* Why the last of these calls in this thread failed; never NULL. */
const char *gf_stb_reason(void);

typedef enum gf_stb_kind { GF_STB_JPG, GF_STB_BMP, GF_STB_TGA, GF_STB_HDR } gf_stb_kind;

typedef void gf_stb_write_func(void *context, void *data, int size);

/* Encodes a whole image without gaps between rows through write. scratch: for HDR 4 * width bytes,
 * else NULL. */
bool gf_stb_write(gf_stb_kind kind, gf_stb_write_func *write, void *context, int width, int height,
                  int channels, const void *pixels, void *scratch);

#endif
