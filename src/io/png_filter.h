/* PNG's row filters. A filter stores a byte as its difference from a prediction made of up to three
 * neighbours: the byte a pixel to the left, the one above, and the one above the left. Filtering is
 * the encoder's direction, unfiltering the decoder's. */
#ifndef GF_PNG_FILTER_H
#define GF_PNG_FILTER_H

#include "core/machine.h"
#include "gpufilter.h"

/* The numbers are those in the file; those from GF_PNG_FILTERS on are undefined there. */
typedef enum gf_png_filter {
    GF_PNG_NONE,
    GF_PNG_SUB,
    GF_PNG_UP,
    GF_PNG_AVERAGE,
    GF_PNG_PAETH,
    GF_PNG_FILTERS
} gf_png_filter;

/* Writes n residuals of row, whose left neighbours begin `pixel` (1 to 8) bytes before: there are
 * so many bytes in front of row and of above, zero at the start of a row. */
typedef void gf_png_filter_row(gf_png_filter filter, unsigned char *dst, const unsigned char *row,
                               const unsigned char *above, size_t n, size_t pixel);

/* Makes the row `out` of the filtered bytes `in` and the row above (zeros above the first). All
 * have `bytes` bytes, which are whole pixels of `unit` bytes: 1, 2, 3, 4, 6 or 8; pixels smaller
 * than a byte count as one. out overlaps neither in nor above; nothing need be aligned. */
typedef void gf_png_unfilter_row(unsigned char *out, const unsigned char *in,
                                 const unsigned char *above, size_t bytes, uint32_t unit,
                                 uint32_t filter);

/* The definition. */
gf_png_unfilter_row gf_png_unfilter_golden;

/* Loops compiled once a SIMD level; all give the same. */
typedef struct gf_png_simd {
    gf_png_filter_row *filter;
    gf_png_unfilter_row *unfilter;
    /* The sum of residuals' magnitudes, as signed bytes: what picks a row's filter. */
    uint64_t (*magnitude)(const unsigned char *residuals, size_t n);
    /* Copies n 16-bit samples from big-endian to native ones, or back; dst == src is allowed. */
    void (*swap16)(unsigned char *dst, const unsigned char *src, size_t n);
    /* Counts the samples of a row that have the largest value of their type, alpha aside: those
     * that a filter may have clipped. Integers, in either byte order. */
    uint64_t (*count_largest)(const gf_format *format, const void *row);
} gf_png_simd;

extern const gf_png_simd gf_png_simd_portable, gf_png_simd_avx2, gf_png_simd_avx512;

static inline const gf_png_simd *gf_png_simd_of(gf_isa isa) {
    static const gf_png_simd *const levels[GF_ISA_COUNT] = GF_LEVELS(gf_png_simd);
    return levels[isa];
}

#endif
