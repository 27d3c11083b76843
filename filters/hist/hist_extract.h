/* Extraction on the CPU, and the mask. */
#ifndef GF_HIST_EXTRACT_H
#define GF_HIST_EXTRACT_H

#include "hist/hist.h"
#include "hist/hist_piece.h"
#include "hist/hist_simd.h"

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

/* The rank of each bin, and of the counters behind them: of what is not extracted GF_HIST_NO_RANK.
 * All that are extracted, if these are all, have the same one. */
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
