/* The vector loops of smooth, compiled once for each SIMD level from smooth_simd.c. */
#ifndef GF_SMOOTH_SIMD_H
#define GF_SMOOTH_SIMD_H

#include "smooth/smooth.h"

/* Floats that a loop may read or write past the n it is asked for, in scratch (never in images). */
#define GF_SMOOTH_PAD 64

/* Memory that will soon be read and written: `bytes` of each for every float. Memory answers while
 * a loop over scratch has none to wait for. */
typedef struct gf_smooth_soon {
    const unsigned char *read, *write;
    size_t bytes; /* 0: nothing is known */
} gf_smooth_soon;

/* dst[i] = src[i] for n bytes, where mask[i % 64] is 0xff. */
typedef void gf_smooth_blend(unsigned char *dst, const unsigned char *src, size_t n,
                             const unsigned char mask[64]);

typedef struct gf_smooth_simd {
    /* dst[i] = src[i] * gain, i < n; by gf_type. src is read exactly, dst may be padded. */
    void (*load[3])(float *dst, const void *src, size_t n, float gain);
    /* dst[i] = (src[i] + src[i + step] + ... + src[i + (taps-1) * step]) / taps, left to right. */
    void (*blur)(float *dst, const float *src, size_t step, unsigned taps, size_t n,
                 gf_smooth_soon soon);
    /* dst[i] = (rows[0][i] + rows[1][i] + ... + rows[taps-1][i]) / taps, left to right. */
    void (*blur_rows)(float *dst, const float *const *rows, unsigned taps, size_t n,
                      gf_smooth_soon soon);
    /* t = mid[i]; t = (t + prev[i]) * w; t = (t + next[i]) * w; t = t * factor; dst[i] = t, clamped
     * and rounded, or with NaN made canonical; by gf_type. prev and next may be NULL: their line is
     * left out. dst is written exactly. */
    void (*finish[3])(void *dst, const float *prev, const float *mid, const float *next, size_t n,
                      float w, float factor);
    gf_smooth_blend *blend;
} gf_smooth_simd;

struct gf_smooth_u8_simd; /* smooth_u8.h */

/* Compute a part of a band by these loops: gf_cpu_function. */
void gf_smooth_compute(const gf_smooth_simd *simd, const struct gf_smooth_u8_simd *u8_simd,
                       const gf_plan *plan, const gf_band *band, uint32_t part, uint32_t parts,
                       void *scratch);

extern const gf_smooth_simd gf_smooth_simd_portable;
extern const gf_smooth_simd gf_smooth_simd_avx2;
extern const gf_smooth_simd gf_smooth_simd_avx512;

#endif
