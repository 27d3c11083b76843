/* The chain of smooth down columns, on the CPU. */
#ifndef GF_SMOOTH_COLUMNS_H
#define GF_SMOOTH_COLUMNS_H

#include "smooth/smooth_chain.h"

/* Floats of a chain's ring; 0 where it has no columns to go down. */
size_t gf_smooth_ring_floats(const gf_smooth_plan *plan);
/* Rows [s, e) of out, pixels [x0, x0 + pixels) of them, by axis y or xy. */
void gf_smooth_chain_columns(const gf_smooth_chain *chain, const gf_rows *in, const gf_rows *out,
                             uint64_t x0, uint64_t pixels, uint64_t s, uint64_t e);

#endif
