/* Internal interface of smooth's CPU implementation: the vector loops (smooth_simd.c, compiled once
 * per SIMD level) and the integer form of u8 samples (smooth_u8.c). */
#ifndef GF_SMOOTH_CPU_H
#define GF_SMOOTH_CPU_H

#include "smooth/smooth.h"

/* Padding in floats. Loops may read and write this much past n in scratch, never in images. */
#define GF_SMOOTH_PAD 64

/* Memory to prefetch during a loop over scratch, which leaves memory idle: `bytes` bytes for
 * reading and for writing per float of the loop. */
typedef struct gf_smooth_prefetch {
    const unsigned char *read, *write;
    size_t bytes; /* 0: no prefetch */
} gf_smooth_prefetch;

/* ---- u8 samples inside a signal, by the integer form plan->integer --------------------------- */

/* `first` is the first sample of a window. `step` is the distance in bytes between its samples: the
 * channels along a row, the stride down a column. The windows of n outputs are one byte apart.
 *
 * If the integer form cannot determine the result of the binary32 chain, the output is a near-tie.
 * Its index is added to a list, unordered and possibly twice, and its value is undefined. The
 * caller recomputes it by the exact path. */

/* Max and min number of outputs per call. The min is a vector of the widest level. */
#define GF_SMOOTH_U8_MAX 4096
#define GF_SMOOTH_U8_MIN 64
/* Max number of outputs per row for both axes: the sums of seven rows fit in L1. */
#define GF_SMOOTH_XY_MAX 1280
/* Padding in uint16_t. Loops may read and write this much past n in scratch, never in images. */
#define GF_SMOOTH_U8_PAD 64

/* Indices of near-ties. A loop stops early, with outputs missing, once count exceeds limit. */
typedef struct gf_smooth_ties {
    size_t count, limit;
    uint16_t indices[GF_SMOOTH_U8_MAX / 8 + 2 * 64];
} gf_smooth_ties;

/* Up to seven taps: T = sum of tap[k] * I[k] < 2^16. Two neighbouring taps add up to at most 128.
 *
 * With a factor, T < 2^14 and T is rounded in 16 bits: value = ((T * factor >> 16) + 16) >> 5, at
 * most 255. It is a near-tie if (int16_t)(T * tie) < tie_below. Without a factor, value = T * scale
 * < 2^15. It is a near-tie if it is less than tie_margin away from the midpoint of two integers.
 * For both axes, scale and tie_margin are those of T. */
typedef struct gf_smooth_seven {
    uint8_t tap[8]; /* 0 after the last tap */
    unsigned last;  /* index of the last sample read from a window; 6 for the portable loop */
    uint16_t factor, tie;
    int16_t tie_below;
    float scale, tie_margin;
} gf_smooth_seven;

/* Prefetch distances in bytes. */
typedef struct gf_smooth_distance {
    size_t read, write;
} gf_smooth_distance;

/* Inputs of the last stages: the means of a position and of its neighbours; NULL: none. */
typedef struct gf_smooth_chain {
    const float *prev, *mid, *next;
    float weight, factor;
} gf_smooth_chain;

/* ---- loops ----------------------------------------------------------------------------------- */

typedef struct gf_smooth_simd {
    /* dst[i] = src[i] * gain, i < n. src: samples of `type`. dst has padding, src has none. */
    void (*load)(gf_type type, float *dst, const void *src, size_t n, float gain);
    /* dst[i] = (src[i] + src[i + step] + ... + src[i + (taps-1) * step]) / taps, left to right. */
    void (*blur)(float *dst, const float *src, size_t step, unsigned taps, size_t n,
                 gf_smooth_prefetch prefetch);
    /* dst[i] = (rows[0][i] + rows[1][i] + ... + rows[taps-1][i]) / taps, left to right. */
    void (*blur_rows)(float *dst, const float *const *rows, unsigned taps, size_t n,
                      gf_smooth_prefetch prefetch);
    /* t = mid[i]; t = (t + prev[i]) * weight; t = (t + next[i]) * weight; dst[i] = t * factor,
     * clamped and rounded, or with NaN canonicalised for f32. If prev or next is NULL, its step is
     * omitted. dst: n samples of `type`, without padding. */
    void (*finish)(gf_type type, void *dst, const gf_smooth_chain *chain, size_t n);
    /* dst[i] = src[i] for i < n where mask[i % 64] is 0xff. */
    void (*blend)(unsigned char *dst, const unsigned char *src, size_t n,
                  const unsigned char mask[64]);

    /* Integer form of u8. */
    bool seven_scales; /* whether `seven` supports plans without a factor */
    void (*seven)(uint8_t *dst, const uint8_t *first, ptrdiff_t step, size_t n,
                  const gf_smooth_seven *seven, gf_smooth_distance distance, gf_smooth_ties *ties);
    /* Both axes: sums of the taps along a row, in the order that round_xy expects. sums holds n
     * floats, rounded up to a multiple of GF_SMOOTH_U8_MIN. prefetch: distance in bytes. */
    void (*sums_x)(float *sums, const uint8_t *first, size_t step, size_t n,
                   const gf_smooth_seven *seven, size_t prefetch);
    /* dst[i] = T * scale, from the sums of seven rows. */
    void (*round_xy)(uint8_t *dst, const float *const sums[7], size_t n,
                     const gf_smooth_seven *seven, size_t prefetch, gf_smooth_ties *ties);
    /* Compute near-ties by the chain. stride: between rows, for both axes and reach <= 3; 0: one
     * axis. */
    void (*resolve)(const gf_smooth_plan *plan, uint8_t *dst, const uint8_t *first, ptrdiff_t step,
                    ptrdiff_t stride, const gf_smooth_ties *ties);
    /* sums[i] = sum of `taps` samples of the window at first + i. sums holds n + (taps - 1) * step
     * values and padding. taps * 255 < 2^16. */
    void (*along)(uint16_t *sums, const uint8_t *first, size_t step, unsigned taps, size_t n);
    /* sums[i] += in[i]. */
    void (*add)(uint16_t *sums, const uint8_t *in, size_t n);
    /* to[i] = from[i] + in[i] - out[i]. to and from must not overlap. */
    void (*slide)(uint16_t *to, const uint16_t *from, const uint8_t *in, const uint8_t *out,
                  size_t n);
    /* dst[i] = near * (before[i] + here[i]) + next * after[i], rounded, at most 255. before[i] +
     * here[i] is below 2^16, the value below 2^15. It is a near-tie if it is less than tie_margin
     * away from the midpoint of two integers. All three inputs have padding. */
    void (*round)(uint8_t *dst, const uint16_t *before, const uint16_t *here, const uint16_t *after,
                  size_t n, const gf_smooth_integer *weights, gf_smooth_ties *ties);
} gf_smooth_simd;

/* Compute one part of a strip with these loops. Arguments as in gf_cpu_function. */
void gf_smooth_compute(const gf_smooth_simd *simd, const gf_plan *plan, const gf_strip *strip,
                       uint32_t part, uint32_t parts, void *scratch);

extern const gf_smooth_simd GF_LEVEL_NAMES(gf_smooth_simd);

/* ---- u8 by integers: smooth_u8.c ------------------------------------------------------------- */

/* Scratch memory and constants of one thread. */
typedef struct gf_smooth_u8 {
    const gf_smooth_plan *plan;
    const gf_smooth_simd *simd;
    bool use_seven; /* use the seven-tap loop; otherwise sums */
    gf_smooth_seven seven;
    gf_smooth_ties *ties;
    uint16_t *sums;
    const uint8_t *alpha; /* mask for restoring alpha in columns, set by the caller; NULL: none */
} gf_smooth_u8;

/* Return the 16-bit form that is exact for this plan, or NULL. */
const gf_smooth_seven *gf_smooth_exact_of(const gf_smooth_plan *plan);

/* Return the bytes of scratch, a multiple of 64. */
size_t gf_smooth_u8_bytes(const gf_smooth_plan *plan);
/* Prepare the integer form of a plan. Returns false if only the chain is possible. scratch must be
 * aligned to a cache line. */
bool gf_smooth_u8_init(gf_smooth_u8 *u8, const gf_smooth_plan *plan, const gf_smooth_simd *simd,
                       void *scratch);

/* Compute n consecutive outputs of a row: whole pixels, GF_SMOOTH_U8_MIN..GF_SMOOTH_U8_MAX samples.
 * in: the input sample at dst's position. All windows are inside the signal. Returns false if there
 * are too many near-ties: the chain must then compute all outputs. */
bool gf_smooth_u8_row(const gf_smooth_u8 *u8, const uint8_t *in, uint8_t *dst, size_t n);

/* Compute rows [s, e) of out down columns or along both axes, samples [x, x + n) of each row.
 * Returns the first row not computed: e, or a row with too many near-ties. Both axes: n is at most
 * GF_SMOOTH_XY_MAX. */
uint64_t gf_smooth_u8_columns(const gf_smooth_u8 *u8, const gf_rows *in, const gf_rows *out,
                              size_t x, size_t n, uint64_t s, uint64_t e);

#endif
