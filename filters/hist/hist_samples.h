/* Extracted samples on the host: into their file as they come, or kept. */
#ifndef GF_HIST_SAMPLES_H
#define GF_HIST_SAMPLES_H

#include "hist/hist.h"

/* The first samples of each bin are shown, where bins are so few. */
#define GF_HIST_SHOWN 10
#define GF_HIST_SHOWN_BINS 64

typedef struct gf_hist_samples {
    const gf_hist_plan *plan;
    gf_keep keep;
    bool hold; /* payloads are kept until the end */
    uint64_t held_bytes;
    struct gf_hist_kept *first, *last; /* payloads */
    uint64_t *counts;                  /* of each bin */
    /* The samples that are shown, bin by bin: all, or the first ones of each. */
    uint64_t *begins; /* of each bin, and where the last one ends */
    uint64_t *positions;
    unsigned char *values;
    uint64_t capacity; /* of positions and values */
} gf_hist_samples;

gf_status gf_hist_samples_open(const gf_hist_plan *plan, const gf_keep *keep,
                               gf_hist_samples **samples, gf_error *error);
void gf_hist_samples_close(gf_hist_samples *samples);
/* The next payload, in image order. */
gf_status gf_hist_samples_take(gf_hist_samples *samples, const void *payload, gf_error *error);
/* After the last: several bins go into the file now, bin by bin. */
gf_status gf_hist_samples_finish(gf_hist_samples *samples, gf_error *error);

#endif
