/* The chain of smooth in vectors of binary32, on the CPU: any plan, strip by strip.
 *
 * Rows and columns are the same work seen from two sides: a signal has positions of some `lanes`
 * floats each. For rows a position is a pixel and the lanes are its channels; for columns a
 * position is a row and the lanes are some neighbouring samples of it. Position p + 1 of a row lies
 * `lanes` floats after position p, so one loop goes over positions x lanes; rows of a column wait
 * for each other in a ring. Alpha is computed along and put back: in columns here, in rows by who
 * calls. */
#ifndef GF_SMOOTH_CHAIN_H
#define GF_SMOOTH_CHAIN_H

#include "smooth/smooth.h"
#include "smooth/smooth_simd.h"

/* Every buffer begins on a cache line. */
static inline size_t gf_smooth_on_a_line(size_t floats) {
    return (floats + 15) / 16 * 16;
}

/* Scratch of one thread. */
typedef struct gf_smooth_chain {
    const gf_smooth_plan *plan;
    const gf_smooth_simd *simd;
    float *loaded, *blurred; /* a strip of a row: enhanced, and its means */
    float *ring;             /* for columns, from who calls: gf_smooth_ring_floats */
    const uint8_t *alpha;    /* for blend: puts alpha back in columns; NULL where there is none */
} gf_smooth_chain;

size_t gf_smooth_chain_floats(const gf_smooth_plan *plan);
/* On scratch of that many floats, which begins a cache line. */
gf_smooth_chain gf_smooth_chain_on(const gf_smooth_plan *plan, gf_isa isa, float *scratch);

/* Outputs [s, e) of a row, tiles and all; dst: where the one at s goes, as a sample of `type`. */
void gf_smooth_chain_row(const gf_smooth_chain *chain, const unsigned char *row, uint64_t s,
                         uint64_t e, unsigned char *dst, gf_type type);
/* Outputs [s, e) of `rows` rows of u8 from y on, rows * (e - s + 2 * reach) * channels of them at
 * most GF_SMOOTH_ENDS: a few samples of many rows cost little more than those of one. */
#define GF_SMOOTH_ENDS 1024
void gf_smooth_chain_ends(const gf_smooth_chain *chain, const gf_rows *in, const gf_rows *out,
                          uint64_t y, uint64_t rows, uint64_t s, uint64_t e);

#endif
