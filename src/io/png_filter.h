/* PNG's row filters, forwards: what is left of a row when each byte is predicted. */
#ifndef GF_PNG_FILTER_H
#define GF_PNG_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "gpufilter.h"
#include "isa.h"

/* The numbers are those in the file. */
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

/* The definition. */
gf_png_filter_row gf_png_filter_plainly;

/* Loops compiled once a SIMD level; all give the same. */
typedef struct gf_png_filter_simd {
    gf_png_filter_row *filter;
    /* The sum of residuals' magnitudes, as signed bytes: what picks a row's filter. */
    uint64_t (*magnitude)(const unsigned char *residuals, size_t n);
    /* Copies n native 16-bit samples to big-endian ones. */
    void (*swap16)(unsigned char *dst, const unsigned char *src, size_t n);
    /* Counts the samples of a row that have the largest value of their type, alpha aside: those
     * that a filter may have clipped. Integers, in either byte order. */
    uint64_t (*count_largest)(const gf_format *format, const void *row);
} gf_png_filter_simd;

extern const gf_png_filter_simd gf_png_filter_simd_portable;
#ifdef GF_X86_64
extern const gf_png_filter_simd gf_png_filter_simd_avx2, gf_png_filter_simd_avx512;
#endif
const gf_png_filter_simd *gf_png_filter_simd_of(gf_isa isa);

#endif
