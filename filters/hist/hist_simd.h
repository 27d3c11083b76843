/* The loops of hist, compiled once a SIMD level. */
#ifndef GF_HIST_SIMD_H
#define GF_HIST_SIMD_H

#include <stddef.h>

#include "hist/hist.h"

typedef struct gf_hist_simd {
    /* Measured samples of n pixels, side by side. Samples of `values` have the image's type. */
    void (*gather)(const gf_hist_plan *plan, const void *pixels, size_t n, void *values);
    /* Their bins; plan->bins for NaN. */
    void (*bins)(const gf_hist_plan *plan, const void *values, size_t n, uint32_t *bins);
} gf_hist_simd;

extern const gf_hist_simd gf_hist_simd_portable;
extern const gf_hist_simd gf_hist_simd_avx2;
extern const gf_hist_simd gf_hist_simd_avx512;

#endif
