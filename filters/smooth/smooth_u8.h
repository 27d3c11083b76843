/* u8 samples inside a signal by integers, on the CPU: what plan->integer allows. */
#ifndef GF_SMOOTH_U8_H
#define GF_SMOOTH_U8_H

#include "smooth/smooth.h"
#include "smooth/smooth_chain.h"
#include "smooth/smooth_u8_simd.h"

/* Scratch and constants of one thread. */
typedef struct gf_smooth_u8 {
    const gf_smooth_plan *plan;
    const gf_smooth_u8_simd *simd;
    const gf_smooth_chain *chain; /* whose alpha is put back in columns */
    bool by_seven;                /* taps; otherwise by sums */
    gf_smooth_seven seven;
    gf_smooth_weights weights; /* of the sums */
    gf_smooth_doubts *doubts;
    uint16_t *sums;
} gf_smooth_u8;

/* Which of the 16-bit ways makes this plan's values; NULL for none. */
const gf_smooth_seven *gf_smooth_exact_of(const gf_smooth_plan *plan);

/* Bytes of scratch, a multiple of 64. */
size_t gf_smooth_u8_bytes(const gf_smooth_plan *plan);
/* False if there is nothing but the chain. On scratch that begins a cache line. */
bool gf_smooth_u8_on(gf_smooth_u8 *by, const gf_smooth_chain *chain, gf_isa isa, void *scratch);

/* n outputs side by side in a row, n <= GF_SMOOTH_U8_MOST, a whole number of pixels; in: the sample
 * where dst's first comes from. All windows lie inside. False if too many are in doubt: then the
 * chain must make them all. */
bool gf_smooth_u8_row(const gf_smooth_u8 *by, const uint8_t *in, uint8_t *dst, size_t n);

/* Rows [s, e) of out, samples [x, x + n) of each, down columns. Returns the first row that is not
 * done: e, or one with too many samples in doubt. */
uint64_t gf_smooth_u8_columns(const gf_smooth_u8 *by, const gf_rows *in, const gf_rows *out,
                              size_t x, size_t n, uint64_t s, uint64_t e);

#endif
