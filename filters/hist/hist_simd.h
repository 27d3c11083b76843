/* Loops of hist, compiled once per SIMD level. */
#ifndef GF_HIST_SIMD_H
#define GF_HIST_SIMD_H

#include "hist/hist.h"

/* Lanes of `above` per edge, by gf_type: a multiple of the samples of a pixel and of a vector. */
#define GF_HIST_PERIOD_U8 192
#define GF_HIST_PERIOD_U16 96
#define GF_HIST_PERIOD_F32 48
/* Max samples per call of `above`: lanes count in 8 bits internally. */
#define GF_HIST_ABOVE_MAX (255 * GF_HIST_PERIOD_U8)

/* Lanes of the row sums, GF_LANES per measured channel: lane l of channel s is at l * measured + s.
 */
typedef struct gf_hist_lanes {
    double *sums, *squares;
    uint32_t *min, *max; /* keys */
} gf_hist_lanes;

#define GF_HIST_LANE_BYTES (2 * sizeof(double) + 2 * sizeof(uint32_t))

typedef struct gf_hist_simd {
    /* By gf_type: copy the measured samples of n pixels to consecutive values. For plans that
     * measure luma or one of several channels. */
    void (*gather[3])(const gf_hist_plan *plan, const void *pixels, size_t n, void *values);
    /* By gf_type: compute the counter indices of n samples. */
    void (*bins[3])(const gf_hist_plan *plan, const void *values, size_t n, uint32_t *bins);
    /* By gf_type: add to lanes[e * period + j] the number of samples j, j + period, ... that are
     * edges[e] or above. Edges have the type of the samples. */
    void (*above[3])(const void *values, size_t n, const void *edges, uint32_t count,
                     uint32_t *lanes);
    /* Return whether all of n f32 samples are in 0..1. -0 is not. */
    bool (*inside)(const void *values, size_t n);
    /* By gf_type: extract the samples in range[0]..range[1], inclusive, in order, with their
     * positions. Sample i is at position + i. Returns their number. Writes at most n of each. */
    size_t (*select[3])(const void *values, size_t n, const void *range, uint64_t position,
                        uint64_t *positions, void *out);
    /* Add n f32 samples to consecutive lanes, the first one to lane `first`. NaN is excluded. */
    void (*add_lanes)(const void *values, size_t n, const gf_hist_lanes *lanes, size_t first);
    /* Add lanes n to 2 n - 1 to the first n lanes. */
    void (*halve_lanes)(const gf_hist_lanes *lanes, size_t n);
    /* Limits of METHOD_EDGES, by gf_type: with more than max_edges edges or fewer than min_periods
     * periods per call, a table of counters is faster. */
    uint32_t max_edges[3];
    uint32_t min_periods;
} gf_hist_simd;

/* Compute one part of a strip with these loops. Arguments as in gf_cpu_function. */
void gf_hist_compute(const gf_hist_simd *simd, const gf_plan *plan, const gf_strip *strip,
                     uint32_t part, uint32_t parts, void *scratch);

extern const gf_hist_simd gf_hist_simd_portable;
extern const gf_hist_simd gf_hist_simd_avx2;
extern const gf_hist_simd gf_hist_simd_avx512;

#endif
