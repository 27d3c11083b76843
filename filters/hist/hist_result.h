/* What hist keeps of an image, and the tables over it. */
#ifndef GF_HIST_RESULT_H
#define GF_HIST_RESULT_H

#include "hist/hist_samples.h"

typedef struct gf_hist_data {
    gf_hist_samples *samples; /* NULL: none are extracted */
    uint64_t *counts;         /* as in a state */
    uint64_t *rows;           /* as in a record, of each row; NULL without --per-row */
} gf_hist_data;

/* "luma", "grey", "r", ...: the name of measured channel s. */
const char *gf_hist_channel_name(const gf_hist_plan *plan, uint32_t s);

void gf_hist_describe(const gf_plan *plan, const void *data, struct gf_result *result);
gf_value gf_hist_cell(const gf_plan *plan, const void *data, size_t table, uint64_t row,
                      size_t column);

#endif
