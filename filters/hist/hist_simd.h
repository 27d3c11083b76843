/* The loops of hist, compiled once a SIMD level. */
#ifndef GF_HIST_SIMD_H
#define GF_HIST_SIMD_H

#include "hist/hist.h"

/* Samples after which `above` starts again with the first of its lanes, by gf_type: whole pixels of
 * any channel count, and whole vectors. */
#define GF_HIST_PERIOD_U8 192
#define GF_HIST_PERIOD_U16 96
#define GF_HIST_PERIOD_F32 48
/* Samples that one call of `above` may be given: no lane counts beyond 8 bits. */
#define GF_HIST_ABOVE_MAX (255 * GF_HIST_PERIOD_U8)

typedef struct gf_hist_simd {
    /* By gf_type: measured samples of n pixels, side by side. For plans that measure one of several
     * channels, or luma. */
    void (*gather[3])(const gf_hist_plan *plan, const void *pixels, size_t n, void *values);
    /* By gf_type: the bins of samples, or the counters behind them. */
    void (*bins[3])(const gf_hist_plan *plan, const void *values, size_t n, uint32_t *bins);
    /* By gf_type: lanes[e * period + j] grows by how many of the samples j, j + period, ... are
     * edges[e] or more. Edges have the type of the samples. */
    void (*above[3])(const void *values, size_t n, const void *edges, uint32_t count,
                     uint32_t *lanes);
    /* By gf_type: takes, in order, the samples from range[0] to range[1], both included, and where
     * they are: sample i is at position + i. Returns how many; writes no more than n of each. */
    size_t (*select[3])(const void *values, size_t n, const void *range, uint64_t position,
                        uint64_t *positions, void *out);
    /* With more edges than these, by gf_type, a table of counters is faster, and with fewer samples
     * at a time than so many periods. */
    uint32_t max_edges[3];
    uint32_t min_periods;
} gf_hist_simd;

/* Compute a part of a strip by these loops: gf_cpu_function. */
void gf_hist_compute(const gf_hist_simd *simd, const gf_plan *plan, const gf_strip *strip,
                     uint32_t part, uint32_t parts, void *scratch);

extern const gf_hist_simd gf_hist_simd_portable;
extern const gf_hist_simd gf_hist_simd_avx2;
extern const gf_hist_simd gf_hist_simd_avx512;

#endif
