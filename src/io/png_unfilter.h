/* Undoing the filters of PNG rows.
 *
 * A filter stores a byte as its difference from a prediction made of up to three neighbours: the
 * byte a pixel to the left, the one above, and the one above the left. */
#ifndef GF_PNG_UNFILTER_H
#define GF_PNG_UNFILTER_H

#include <stddef.h>
#include <stdint.h>

#include "isa.h"

/* By their numbers in the file; those from GF_PNG_FILTERS on are undefined there. */
enum { GF_PNG_NONE, GF_PNG_SUB, GF_PNG_UP, GF_PNG_AVERAGE, GF_PNG_PAETH, GF_PNG_FILTERS };

/* Makes the row `out` of the filtered bytes `in` and the row above (zeros above the first). All
 * have `bytes` bytes, which are whole pixels of `unit` bytes: 1, 2, 3, 4, 6 or 8; pixels smaller
 * than a byte count as one. out overlaps neither in nor above; nothing need be aligned. */
typedef void gf_png_unfilter_row(unsigned char *out, const unsigned char *in,
                                 const unsigned char *above, size_t bytes, uint32_t unit,
                                 uint32_t filter);

/* The definition. */
gf_png_unfilter_row gf_png_unfilter_golden;

/* Fast code, compiled once a SIMD level. */
typedef struct gf_png_unfilter_simd {
    gf_png_unfilter_row *row;
    /* Big-endian 16-bit samples to native ones, in place. */
    void (*native16)(unsigned char *samples, size_t count);
} gf_png_unfilter_simd;

extern const gf_png_unfilter_simd gf_png_unfilter_simd_portable;
extern const gf_png_unfilter_simd gf_png_unfilter_simd_avx2;
extern const gf_png_unfilter_simd gf_png_unfilter_simd_avx512;

/* Of a level that is available. */
const gf_png_unfilter_simd *gf_png_unfilter_level(gf_isa isa);

#endif
