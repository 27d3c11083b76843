/* What the parts of hist's CPU implementation share. */
#ifndef GF_HIST_CPU_H
#define GF_HIST_CPU_H

#include "hist/hist.h"
#include "hist/hist_simd.h"

/* Rows are taken in pieces that stay in the cache: this much of what is measured, and as many
 * samples where their bins are needed. */
#define GF_HIST_PIECE_BYTES (24u << 10)
#define GF_HIST_PIECE_BINS 4096u

/* Some measured samples. */
typedef struct gf_hist_piece {
    const void *values;
    const uint32_t *bins; /* NULL if nobody needs them */
    size_t samples;
    uint64_t position; /* of the first one in the image */
    /* What will be read next, for whoever has time to ask for it: so many bytes a sample of this
     * piece. It may lie beyond the image, where asking does no harm. NULL: the processor itself
     * sees what comes. */
    const unsigned char *ahead;
    size_t ahead_bytes;
} gf_hist_piece;

/* ---- counting: hist_count.c ------------------------------------------------------------------ */

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

/* The least value that is in this bin or in one above it, as a sample of the image's type; false
 * where no value is. */
bool gf_hist_edge(const gf_hist_plan *plan, const gf_hist_simd *simd, uint32_t bin, void *value);

/* ---- extraction: hist_extract.c -------------------------------------------------------------- */

typedef struct gf_hist_extractor {
    const gf_hist_plan *plan;
    const gf_hist_simd *simd;
    const uint8_t *ranks;
    uint64_t *offsets, *positions;
    unsigned char *values;
    uint64_t taken; /* of the one bin */
    bool none;      /* no value is in the one bin */
    union {
        uint8_t u8[2];
        uint16_t u16[2];
        float f32[2];
    } range; /* of the one bin */
} gf_hist_extractor;

/* One bin is extracted in one pass; of several it must be known how many samples they have. */
static inline bool gf_hist_extracts_at_once(const gf_hist_plan *plan) {
    return plan->extracts == 1 && !plan->extract_all;
}

/* The rank of each bin, and of NaN behind them: of bins that are not extracted GF_HIST_NO_RANK. All
 * that are extracted, if these are all, have the same one. */
#define GF_HIST_NO_RANK 0xff
void gf_hist_ranks(const gf_hist_plan *plan, uint8_t *ranks);

/* `most`: samples of the part. */
gf_hist_extractor gf_hist_extractor_new(const gf_hist_plan *plan, const gf_hist_simd *simd,
                                        const uint8_t *ranks, void *payload, uint64_t most);
/* One bin: all pieces, in order. */
void gf_hist_extractor_take(gf_hist_extractor *extractor, const gf_hist_piece *piece);
/* Several: all counts of the part, in one or more states; then all pieces, in order. */
void gf_hist_extractor_count(gf_hist_extractor *extractor, const uint64_t *counts);
void gf_hist_extractor_counted(gf_hist_extractor *extractor);
void gf_hist_extractor_place(gf_hist_extractor *extractor, const gf_hist_piece *piece);
/* In the end, either way. */
void gf_hist_extractor_end(gf_hist_extractor *extractor);

/* Draws the pixels of a piece. */
void gf_hist_mask(const gf_hist_plan *plan, const uint8_t *ranks, const gf_hist_piece *piece,
                  const void *from, void *to);

#endif
