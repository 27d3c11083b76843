/* Counting on the CPU. */
#ifndef GF_HIST_COUNT_H
#define GF_HIST_COUNT_H

#include "hist/hist.h"
#include "hist/hist_piece.h"
#include "hist/hist_simd.h"

/* The ways to count, the best first; each suits some types, numbers of bins and of samples. */
typedef enum gf_hist_way {
    GF_HIST_ABOVE,  /* few bins: samples that reach each edge between them, without a table */
    GF_HIST_VALUES, /* u8: how often each value comes, its bin afterwards */
    GF_HIST_BINS,   /* bins in several small tables, so that equal neighbours need not wait */
    GF_HIST_DIRECT  /* bins, at once where they are wanted */
} gf_hist_way;

/* Edges that GF_HIST_ABOVE goes up to, whatever a SIMD level would like. */
#define GF_HIST_MAX_EDGES 64

/* Counts the samples of a part, or of a row. */
typedef struct gf_hist_counter {
    const gf_hist_plan *plan;
    const gf_hist_simd *simd;
    gf_hist_way way;
    uint64_t *counts; /* where they are wanted */
    uint32_t *tables; /* counters that have not been added to them */
    uint64_t pixels;  /* counted there */
    uint32_t edge_count;
    union {
        uint8_t u8[GF_HIST_MAX_EDGES];
        uint16_t u16[GF_HIST_MAX_EDGES];
        float f32[GF_HIST_MAX_EDGES];
    } edges;
} gf_hist_counter;

/* Bytes of tables, at most. */
size_t gf_hist_table_bytes(const gf_hist_plan *plan);
/* A counter for so many pixels at a time. */
gf_hist_counter gf_hist_counter_new(const gf_hist_plan *plan, const gf_hist_simd *simd,
                                    uint64_t pixels, uint32_t *tables);
static inline bool gf_hist_counts_bins(const gf_hist_counter *counter) {
    return counter->way >= GF_HIST_BINS;
}
/* Counts go to a state or a record, which has been cleared. */
void gf_hist_counter_begin(gf_hist_counter *counter, uint64_t *counts);
void gf_hist_counter_add(gf_hist_counter *counter, const gf_hist_piece *piece);
void gf_hist_counter_end(gf_hist_counter *counter);

/* The least value that is in this bin, in one above it or above all of them, as a sample of the
 * image's type; bin plan->bins: above all. False where no value is. */
bool gf_hist_edge(const gf_hist_plan *plan, const gf_hist_simd *simd, uint32_t bin, void *value);

#endif
