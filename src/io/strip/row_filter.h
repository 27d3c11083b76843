/* PNG filters. A filter replaces a byte by its difference from a prediction. The prediction uses up
 * to three neighbours: the corresponding byte of the pixel to the left, the byte above, and the
 * byte above that pixel. Encoders filter; decoders unfilter. */
#ifndef GF_PNG_FILTER_H
#define GF_PNG_FILTER_H

#include <stdlib.h>

#include "core/machine.h"
#include "gpufilter.h"

/* Filter types, numbered as in the file. GF_PNG_FILTERS and above are invalid. */
typedef enum gf_png_filter {
    GF_PNG_NONE,
    GF_PNG_SUB,
    GF_PNG_UP,
    GF_PNG_AVERAGE,
    GF_PNG_PAETH,
    GF_PNG_FILTERS
} gf_png_filter;

/* Return the neighbour nearest to left + up - upper_left; in a tie, the first in this order. */
GF_BOTH int gf_png_paeth(int left, int up, int upper_left) {
    const int from_left = abs(up - upper_left), from_up = abs(left - upper_left);
    const int from_upper_left = abs(left + up - 2 * upper_left);
    const int best = from_up <= from_upper_left ? up : upper_left;
    return from_left <= from_up && from_left <= from_upper_left ? left : best;
}

/* Bytes 0 and 2 of a word: a pair of bytes, with room for 16 bits each. */
#define GF_PNG_PAIR UINT32_C(0x00ff00ff)

/* Return 0xffff for each half of a word whose highest bit is set, and 0 for the others. */
GF_BOTH uint32_t gf_png_spread_signs(uint32_t word) {
#ifdef __CUDA_ARCH__
    uint32_t mask;
    asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(mask) : "r"(word));
    return mask;
#else
    return (word >> 15 & 0x00010001) * 0xffff;
#endif
}

/* Return gf_png_paeth of each byte of three pairs. upper_left is nearest only in the middle third
 * between the other two; `middle` is larger by `shift`, so that it is positive. */
GF_BOTH uint32_t gf_png_paeth_pair(uint32_t left, uint32_t up, uint32_t upper_left) {
    const uint32_t signs = 0x80008000, shift = 0x02000200;
#ifdef __CUDA_ARCH__
    const uint32_t low = __vminu2(left, up), high = __vmaxu2(left, up);
#else
    const uint32_t ordered = gf_png_spread_signs(up + signs - left);
    const uint32_t low = (left & ordered) | (up & ~ordered);
    const uint32_t high = (up & ordered) | (left & ~ordered);
#endif
    const uint32_t middle = 3 * upper_left + shift - up - left;
    const uint32_t is_low = gf_png_spread_signs(low + (signs + shift) - middle);
    const uint32_t is_high = gf_png_spread_signs(middle + (signs - shift) - high);
    const uint32_t other = (low & is_high) | (upper_left & ~is_high);
    return (high & is_low) | (other & ~is_low);
}

/* Bytes per strip of the encoder, if a row is not larger: few enough for the cache of a core, and
 * for many cores to share a small image; enough that the block header (about 100 bytes) does not
 * matter. */
enum { GF_PNG_STRIP_BYTES = 1 << 18 };

/* Write n residuals of row. bpp: bytes per pixel, 1..8. bpp bytes are readable before row and
 * before above; they are zero at the start of a row. */
typedef void gf_png_filter_row(gf_png_filter filter, unsigned char *dst, const unsigned char *row,
                               const unsigned char *above, size_t n, size_t bpp);

/* Reconstruct bytes [from, to) of the row `out` from the filtered bytes `in` and the row above
 * (zeros for the first row); the bytes before them have been reconstructed. bpp: bytes per pixel:
 * 1, 2, 3, 4, 6 or 8; 1 for pixels below one byte. from and to are multiples of it. out must not
 * overlap in or above. No alignment is required. */
typedef void gf_png_unfilter_row(unsigned char *out, const unsigned char *in,
                                 const unsigned char *above, size_t from, size_t to, uint32_t bpp,
                                 uint32_t filter);

/* Scalar reference. */
gf_png_unfilter_row gf_png_unfilter_golden;

/* Reconstruct bytes [from, to) of consecutive rows, each from its filter type byte, which is valid,
 * and its filtered bytes. above: the row before them. */
typedef void gf_png_unfilter_rows(unsigned char *out, size_t out_stride, const unsigned char *in,
                                  size_t in_stride, const unsigned char *above, size_t from,
                                  size_t to, uint32_t bpp, uint64_t rows);

/* Loops compiled once per SIMD level, with identical results. */
typedef struct gf_png_simd {
    gf_png_filter_row *filter;
    gf_png_unfilter_row *unfilter;
    gf_png_unfilter_rows *unfilter_rows;
    /* Return the sum of |residual| (signed bytes), which the adaptive rule minimises. */
    uint64_t (*magnitude)(const unsigned char *residuals, size_t n);
    /* Convert n 16-bit samples from big-endian to native order, or back. dst == src is allowed. */
    void (*swap16)(unsigned char *dst, const unsigned char *src, size_t n);
    /* Count the samples of a row that have the maximum value of their type, alpha excluded: a
     * filter may have clipped them. Integer types, in either byte order. */
    uint64_t (*count_largest)(const gf_format *format, const void *row);
    /* Write the differences of n samples of a TIFF row from those `channels` samples before, in
     * little-endian order: of 16-bit samples in native order. */
    void (*difference16)(unsigned char *dst, const unsigned char *src, size_t n, size_t channels);
    /* The same for each byte of f32 samples: n differences of the highest bytes, then of the next
     * ones. The first samples of a group follow the last ones of the previous group. */
    void (*difference_float)(unsigned char *dst, const unsigned char *src, size_t n,
                             size_t channels);
} gf_png_simd;

extern const gf_png_simd GF_LEVEL_NAMES(gf_png_simd);

static inline const gf_png_simd *gf_png_simd_of(gf_isa isa) {
    static const gf_png_simd *const levels[GF_ISA_COUNT] = GF_LEVELS(gf_png_simd);
    return levels[isa];
}

#endif
