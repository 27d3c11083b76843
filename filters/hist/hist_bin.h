/* Bins as the fast implementations compute them, on the CPU and on the GPU. */
#ifndef GF_HIST_BIN_H
#define GF_HIST_BIN_H

#include "hist/hist.h"
#include "luma.h"

/* v * bins fits 32 bits: 65535 * 65536 < 2^32. max is a constant where this is called: the division
 * is a multiplication. */
GF_BOTH uint32_t gf_hist_bin_integer(uint32_t v, uint32_t bins, uint32_t max) {
    uint32_t bin = v * bins / max;
    return bin < bins ? bin : bins - 1;
}

/* The bin of a number on the scale of 0 to 1; `bins` for NaN. */
GF_BOTH uint32_t gf_hist_bin_real(double v, uint32_t bins) {
    double scaled = v * (double)bins;
    if (!(scaled == scaled))
        return bins;
    scaled = scaled > 0 ? scaled : 0;
    return scaled < (double)bins ? (uint32_t)scaled : bins - 1;
}

/* The counter of a number with --range; span is hi - lo, rounded. */
GF_BOTH uint32_t gf_hist_bin_ranged(double v, double lo, double hi, double span, uint32_t bins) {
    if (v < lo)
        return bins + GF_HIST_AT_BELOW;
    return v > hi ? bins + GF_HIST_AT_ABOVE : gf_hist_bin_real((v - lo) / span, bins);
}

#endif
