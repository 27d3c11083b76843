/* u8 samples inside a signal by integers, on the CPU: what plan->integer allows.
 *
 * A window is `first`, where its first sample lies, and `step`, the bytes from one sample of it to
 * the next: the channels along a row, the stride down a column. n windows lie side by side, one
 * byte apart.
 *
 * Where integers cannot tell how the chain of binary32 rounds, an output is in doubt: its index
 * goes into a list, in no order, some twice, and the caller lets the chain decide. What is written
 * there meanwhile may be any number. */
#ifndef GF_SMOOTH_U8_H
#define GF_SMOOTH_U8_H

#include "smooth/smooth.h"
#include "smooth/smooth_simd.h"

/* ---- loops, compiled once per SIMD level from smooth_u8_simd.c ------------------------------- */

/* Outputs of one call, at most. */
#define GF_SMOOTH_U8_MOST 4096
/* u16 that a loop may write past those it is asked for, in scratch (never in images). */
#define GF_SMOOTH_U8_PAD 64

/* Outputs in doubt. When there are more than `enough`, a loop ends early, not all of it done. */
typedef struct gf_smooth_doubts {
    size_t count, enough;
    uint16_t at[GF_SMOOTH_U8_MOST / 8 + 2 * 64];
} gf_smooth_doubts;

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
    float scale, doubt;
} gf_smooth_seven;

/* How three sums become a value: scale * (p * (before + here) + q * after), where that number is
 * less than 2^16; with p == 0: near * (before + here) + next * after. A value is less than 2^15,
 * and in doubt if it is less than `doubt` away from the middle of two integers. */
typedef struct gf_smooth_weights {
    uint16_t p, q;
    float scale;
    float near, next;
    float doubt;
} gf_smooth_weights;

/* How many bytes behind what is being read and written lies what will be, soon. */
typedef struct gf_smooth_ahead {
    size_t read, write;
} gf_smooth_ahead;

typedef struct gf_smooth_u8_simd {
    bool seven_scales; /* does `seven` do without a factor? */
    void (*seven)(uint8_t *dst, const uint8_t *first, ptrdiff_t step, size_t n,
                  const gf_smooth_seven *by, gf_smooth_ahead ahead, gf_smooth_doubts *doubts);
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
                  size_t n, const gf_smooth_weights *weights, gf_smooth_doubts *doubts);
} gf_smooth_u8_simd;

extern const gf_smooth_u8_simd gf_smooth_u8_simd_portable;
extern const gf_smooth_u8_simd gf_smooth_u8_simd_avx2;
extern const gf_smooth_u8_simd gf_smooth_u8_simd_avx512;

/* ---- plans ----------------------------------------------------------------------------------- */

/* Scratch and constants of one thread. */
typedef struct gf_smooth_u8 {
    const gf_smooth_plan *plan;
    const gf_smooth_u8_simd *simd;
    bool by_seven; /* taps; otherwise by sums */
    gf_smooth_seven seven;
    gf_smooth_weights weights; /* of the sums */
    gf_smooth_doubts *doubts;
    uint16_t *sums;
    /* Set by the caller: puts alpha back in columns, with its mask; NULL where there is none. */
    gf_smooth_blend *blend;
    const uint8_t *alpha;
} gf_smooth_u8;

/* Which of the 16-bit ways makes this plan's values; NULL for none. */
const gf_smooth_seven *gf_smooth_exact_of(const gf_smooth_plan *plan);

/* Bytes of scratch, a multiple of 64. */
size_t gf_smooth_u8_bytes(const gf_smooth_plan *plan);
/* False if there is nothing but the chain. On scratch that begins a cache line. */
bool gf_smooth_u8_on(gf_smooth_u8 *by, const gf_smooth_plan *plan, const gf_smooth_u8_simd *simd,
                     void *scratch);

/* n outputs side by side in a row, n <= GF_SMOOTH_U8_MOST, a whole number of pixels; in: the sample
 * where dst's first comes from. All windows lie inside. False if too many are in doubt: then the
 * chain must make them all. */
bool gf_smooth_u8_row(const gf_smooth_u8 *by, const uint8_t *in, uint8_t *dst, size_t n);

/* Rows [s, e) of out, samples [x, x + n) of each, down columns. Returns the first row that is not
 * done: e, or one with too many samples in doubt. */
uint64_t gf_smooth_u8_columns(const gf_smooth_u8 *by, const gf_rows *in, const gf_rows *out,
                              size_t x, size_t n, uint64_t s, uint64_t e);

#endif
