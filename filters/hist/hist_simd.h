/* Loops of hist, compiled once per SIMD level. */
#ifndef GF_HIST_SIMD_H
#define GF_HIST_SIMD_H

#include "hist/hist.h"

/* Lanes of `above` per edge: a multiple of the samples of a pixel and of a vector. */
#define GF_HIST_PERIOD_BYTES 192
static inline size_t gf_hist_period(gf_type type) {
    return GF_HIST_PERIOD_BYTES / gf_type_bytes(type);
}
/* Max samples per call of `above`: lanes count in 8 bits internally. */
#define GF_HIST_ABOVE_MAX (255 * GF_HIST_PERIOD_BYTES)

/* Lanes of the row sums, GF_LANES per measured channel: lane l of channel s is at l * measured + s.
 */
typedef struct gf_hist_lanes {
    double *sums, *squares;
    uint32_t *min, *max; /* keys */
} gf_hist_lanes;

#define GF_HIST_LANE_BYTES (2 * sizeof(double) + 2 * sizeof(uint32_t))

/* The samples in range[0]..range[1], inclusive, in order, with their positions. */
typedef struct gf_hist_selection {
    const void *range; /* two samples */
    uint64_t position; /* of the first sample searched */
    uint64_t *positions;
    void *values;
} gf_hist_selection;

typedef struct gf_hist_simd {
    /* Copy the measured samples of n pixels to consecutive values. For plans that measure luma or
     * one of several channels. */
    void (*gather)(const gf_hist_plan *plan, const void *pixels, size_t n, void *values);
    /* Compute the counter indices of n samples. */
    void (*bins)(const gf_hist_plan *plan, const void *values, size_t n, uint32_t *bins);
    /* By gf_type: add to lanes[e * period + j] the number of samples j, j + period, ... that are
     * edges[e] or above. Edges have the type of the samples. */
    void (*above[3])(const void *values, size_t n, const void *edges, uint32_t count,
                     uint32_t *lanes);
    /* Return whether all of n f32 samples are in 0..1. -0 is not. */
    bool (*inside)(const void *values, size_t n);
    /* Extract the selection from n samples. Returns the number of samples, and writes at most n. */
    size_t (*select)(gf_type type, const void *values, size_t n,
                     const gf_hist_selection *selection);
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

extern const gf_hist_simd GF_LEVEL_NAMES(gf_hist_simd);

#endif
