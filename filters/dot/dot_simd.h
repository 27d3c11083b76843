/* The loops of dot, compiled once a SIMD level. */
#ifndef GF_DOT_SIMD_H
#define GF_DOT_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* Doubles that row_f32 needs: the lanes of four sums of up to four channels. */
#define GF_DOT_LANES (256 * 4 * 4)

/* All sums of each channel, as in a record, of n samples of two rows of interleaved channels. n is
 * a multiple of channels. */
typedef struct gf_dot_simd {
    void (*row_u8)(const uint8_t *a, const uint8_t *b, size_t n, uint32_t channels, uint64_t *sums);
    void (*row_u16)(const uint16_t *a, const uint16_t *b, size_t n, uint32_t channels,
                    uint64_t *sums);
    void (*row_f32)(const float *a, const float *b, size_t n, uint32_t channels, double *sums,
                    double *lanes);
} gf_dot_simd;

extern const gf_dot_simd gf_dot_simd_portable;
extern const gf_dot_simd gf_dot_simd_avx2;
extern const gf_dot_simd gf_dot_simd_avx512;

#endif
