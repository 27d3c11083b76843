/* The loops of axis-sum, compiled once a SIMD level. */
#ifndef GF_AXIS_SUM_SIMD_H
#define GF_AXIS_SUM_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* Doubles that the f32 row sums need: the lanes of up to four channels. */
#define GF_AXIS_SUM_LANES (256 * 4)

/* Samples of a strip of columns: what `add` may be given at a time. */
#define GF_AXIS_SUM_STRIP 4096

typedef struct gf_axis_sum_simd {
    /* sums[c] of n samples of interleaved channels. n is a multiple of channels. */
    void (*row_u8)(const uint8_t *row, size_t n, uint32_t channels, uint64_t *sums);
    void (*row_u16)(const uint16_t *row, size_t n, uint32_t channels, uint64_t *sums);
    void (*row_f32)(const float *row, size_t n, uint32_t channels, double *sums, double *lanes);
    /* By gf_type: sums[i] grows by sample i, i < n, of each of the rows in ascending order; they
     * are `stride` bytes apart. Sums are uint64_t, or double of f32. */
    void (*add[3])(void *sums, const unsigned char *rows, size_t stride, uint64_t count, size_t n);
} gf_axis_sum_simd;

extern const gf_axis_sum_simd gf_axis_sum_simd_portable;
extern const gf_axis_sum_simd gf_axis_sum_simd_avx2;
extern const gf_axis_sum_simd gf_axis_sum_simd_avx512;

#endif
