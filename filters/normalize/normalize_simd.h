/* The loops of normalize, compiled once a SIMD level. */
#ifndef GF_NORMALIZE_SIMD_H
#define GF_NORMALIZE_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* Means lie side by side for this many samples: whole pixels, whole vectors. */
#define GF_NORMALIZE_PERIOD 48

typedef struct gf_normalize_simd {
    /* n samples from the beginning of a pixel; means of GF_NORMALIZE_PERIOD samples. Alpha comes
     * out as any other channel would. */
    void (*u8)(uint8_t *out, const uint8_t *in, size_t n, const float *means, float half);
    void (*u16)(uint16_t *out, const uint16_t *in, size_t n, const float *means, float half);
    void (*f32)(float *out, const float *in, size_t n, const float *means);
} gf_normalize_simd;

extern const gf_normalize_simd gf_normalize_simd_portable;
extern const gf_normalize_simd gf_normalize_simd_avx2;
extern const gf_normalize_simd gf_normalize_simd_avx512;

#endif
