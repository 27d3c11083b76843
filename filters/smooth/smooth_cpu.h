/* What the files of smooth's CPU implementation share: the vector loops, compiled once for each
 * SIMD level from smooth_simd.c, and u8 samples by integers (smooth_u8.c). */
#ifndef GF_SMOOTH_CPU_H
#define GF_SMOOTH_CPU_H

#include "smooth/smooth.h"

/* Floats that a loop may read or write past the n it is asked for, in scratch (never in images). */
#define GF_SMOOTH_PAD 64

/* Memory that will soon be read and written: `bytes` of each for every float. Memory answers while
 * a loop over scratch has none to wait for. */
typedef struct gf_smooth_soon {
    const unsigned char *read, *write;
    size_t bytes; /* 0: nothing is known */
} gf_smooth_soon;

/* ---- u8 samples inside a signal by integers: what plan->integer allows ----------------------- */

/* A window is `first`, where its first sample lies, and `step`, the bytes from one sample of it to
 * the next: the channels along a row, the stride down a column. n windows lie side by side, one
 * byte apart.
 *
 * Where integers cannot tell how the chain of binary32 rounds, an output is in doubt: its index
 * goes into a list, in no order, some twice, and the caller lets the chain decide. What is written
 * there meanwhile may be any number. */

/* Outputs of one call: at most, and at least, which is a vector of any level. */
#define GF_SMOOTH_U8_MAX 4096
#define GF_SMOOTH_U8_MIN 64
/* u16 that a loop may write past those it is asked for, in scratch (never in images). */
#define GF_SMOOTH_U8_PAD 64

/* Outputs in doubt. When there are more than `enough`, a loop ends early, not all of it done. */
typedef struct gf_smooth_ties {
    size_t count, enough;
    uint16_t at[GF_SMOOTH_U8_MAX / 8 + 2 * 64];
} gf_smooth_ties;

/* Up to seven taps: T = sum of tap[k] * I[k] < 2^16, no two neighbouring taps above 128 together.
 *
 * With a factor T rounds in 16 bits: T < 2^14, value = ((T * factor >> 16) + 16) >> 5, up to 255,
 * in doubt where (int16_t)(T * tie) < tie_below. Without one the value is T * scale < 2^15, in
 * doubt if it is less than `doubt` away from the middle of two integers. */
typedef struct gf_smooth_seven {
    uint8_t tap[8]; /* 0 behind the last */
    unsigned last;  /* nothing behind sample `last` of a window is read; the portable loop has 6 */
    uint16_t factor, tie;
    int16_t tie_below;
    float scale, tie_margin;
} gf_smooth_seven;

/* How three sums become a value: near * (before + here) + next * after. A value is less than 2^15,
 * and in doubt if it is less than `doubt` away from the middle of two integers. */
typedef struct gf_smooth_weights {
    float near, next;
    float tie_margin;
} gf_smooth_weights;

/* How many bytes behind what is being read and written lies what will be, soon. */
typedef struct gf_smooth_ahead {
    size_t read, write;
} gf_smooth_ahead;

/* ---- loops ----------------------------------------------------------------------------------- */

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
    /* dst[i] = src[i] for n bytes, where mask[i % 64] is 0xff. */
    void (*blend)(unsigned char *dst, const unsigned char *src, size_t n,
                  const unsigned char mask[64]);

    /* Of u8 by integers. */
    bool seven_scales; /* does `seven` do without a factor? */
    void (*seven)(uint8_t *dst, const uint8_t *first, ptrdiff_t step, size_t n,
                  const gf_smooth_seven *by, gf_smooth_ahead ahead, gf_smooth_ties *ties);
    /* sums[i] = sum of `taps` samples of the window at first + i. sums holds n + (taps - 1) * step
     * and padding. taps * 255 < 2^16. */
    void (*along)(uint16_t *sums, const uint8_t *first, size_t step, unsigned taps, size_t n);
    /* sums[i] += in[i]. */
    void (*add)(uint16_t *sums, const uint8_t *in, size_t n);
    /* to[i] = from[i] + in[i] - out[i]. to is not from. */
    void (*slide)(uint16_t *to, const uint16_t *from, const uint8_t *in, const uint8_t *out,
                  size_t n);
    /* dst[i] = the value of before[i], here[i] and after[i], rounded, up to 255. The sum of the
     * first two is less than 2^16; all three are padded. */
    void (*round)(uint8_t *dst, const uint16_t *before, const uint16_t *here, const uint16_t *after,
                  size_t n, const gf_smooth_weights *weights, gf_smooth_ties *ties);
} gf_smooth_simd;

/* Compute a part of a strip by these loops: gf_cpu_function. */
void gf_smooth_compute(const gf_smooth_simd *simd, const gf_plan *plan, const gf_strip *strip,
                       uint32_t part, uint32_t parts, void *scratch);

extern const gf_smooth_simd gf_smooth_simd_portable;
extern const gf_smooth_simd gf_smooth_simd_avx2;
extern const gf_smooth_simd gf_smooth_simd_avx512;

/* ---- u8 by integers: smooth_u8.c ------------------------------------------------------------- */

/* Scratch and constants of one thread. */
typedef struct gf_smooth_u8 {
    const gf_smooth_plan *plan;
    const gf_smooth_simd *simd;
    bool by_seven; /* taps; otherwise by sums */
    gf_smooth_seven seven;
    gf_smooth_weights weights; /* of the sums */
    gf_smooth_ties *ties;
    uint16_t *sums;
    const uint8_t *alpha; /* set by the caller: mask to put alpha back in columns; NULL: none */
} gf_smooth_u8;

/* Which of the 16-bit ways makes this plan's values; NULL for none. */
const gf_smooth_seven *gf_smooth_exact_of(const gf_smooth_plan *plan);

/* Bytes of scratch, a multiple of 64. */
size_t gf_smooth_u8_bytes(const gf_smooth_plan *plan);
/* False if there is nothing but the chain. On scratch that begins a cache line. */
bool gf_smooth_u8_on(gf_smooth_u8 *by, const gf_smooth_plan *plan, const gf_smooth_simd *simd,
                     void *scratch);

/* n outputs side by side in a row, GF_SMOOTH_U8_MIN to GF_SMOOTH_U8_MAX, a whole number of
 * pixels; in: the sample where dst's first comes from. All windows lie inside. False if too many
 * are in doubt: then the chain must make them all. */
bool gf_smooth_u8_row(const gf_smooth_u8 *by, const uint8_t *in, uint8_t *dst, size_t n);

/* Rows [s, e) of out, samples [x, x + n) of each, down columns. Returns the first row that is not
 * done: e, or one with too many samples in doubt. */
uint64_t gf_smooth_u8_columns(const gf_smooth_u8 *by, const gf_rows *in, const gf_rows *out,
                              size_t x, size_t n, uint64_t s, uint64_t e);

#endif
