/* axis-sum: the sum of every row or every column of each channel. Defined in docs/numerics.md. */
#ifndef GF_AXIS_SUM_H
#define GF_AXIS_SUM_H

#include "core/filter.h"

/* With --axis x, the record of a row holds one sum per measured channel. With --axis y, the state
 * holds one sum per sample of a row, alpha included. Sums are uint64_t for integer samples and
 * double for f32. */
typedef struct gf_axis_sum_plan {
    gf_plan head;
    bool columns; /* --axis y */
    bool mean;    /* report means instead of sums */
} gf_axis_sum_plan;

/* Return the total of a measured channel. f32: the binary64 sum of the row sums in ascending order;
 * integers: exact, then rounded once. Needs --axis x. For filters that run axis-sum first. */
double gf_axis_sum_total(const void *data, uint32_t channel);

GF_DECLARE_BACKENDS(gf_axis_sum);

extern const gf_filter gf_axis_sum_filter;

#endif
