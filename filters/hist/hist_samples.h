/* What becomes of extracted samples on the host: into the file as they come, or kept. */
#ifndef GF_HIST_SAMPLES_H
#define GF_HIST_SAMPLES_H

#include "hist/hist.h"

/* The first samples of each bin are shown, where bins are so few. */
#define GF_HIST_SHOWN 10
#define GF_HIST_SHOWN_BINS 64

typedef struct gf_hist_samples gf_hist_samples;

gf_status gf_hist_samples_open(const gf_hist_plan *plan, const gf_keep *keep,
                               gf_hist_samples **samples, gf_error *error);
void gf_hist_samples_close(gf_hist_samples *samples);
/* The next payload, in image order. */
gf_status gf_hist_samples_take(gf_hist_samples *samples, const void *payload, gf_error *error);
/* After the last, to be called by all ranks: rank 0 gets the counts of all, and shows what comes
 * first in all; the others count and show nothing. What goes into a file stays where it is. */
gf_status gf_hist_samples_join(gf_hist_samples *samples, const gf_ranks *ranks, gf_error *error);
/* After the last: several bins go into the file now, bin by bin. */
gf_status gf_hist_samples_finish(gf_hist_samples *samples, gf_error *error);

/* All samples of an extracted bin. */
uint64_t gf_hist_samples_count(const gf_hist_samples *samples, uint32_t rank);

/* Those that can be looked at, bin by bin: all, or the first ones of each. */
uint64_t gf_hist_samples_shown(const gf_hist_samples *samples);
/* Where the shown ones of a bin begin; rank == plan->extracts: where the last one ends. */
uint64_t gf_hist_samples_begin(const gf_hist_samples *samples, uint32_t rank);
typedef struct gf_hist_sample {
    uint64_t position;
    gf_value value;
} gf_hist_sample;
gf_hist_sample gf_hist_samples_at(const gf_hist_samples *samples, uint64_t i);

#endif
