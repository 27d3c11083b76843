/* axis-sum: the sum of every row, or of every column, of each channel. docs/numerics.md defines it.
 */
#ifndef GF_AXIS_SUM_H
#define GF_AXIS_SUM_H

#include "core/filter.h"

/* Along x a row's record holds a sum a measured channel. Along y the state holds a sum a sample of
 * a row, alpha included. Sums are uint64_t of integer samples, double of f32. */
typedef struct gf_axis_sum_plan {
    gf_plan head;
    bool columns;      /* --axis y */
    uint32_t measured; /* the first channels, which are reported */
} gf_axis_sum_plan;

/* What was measured, for a filter that comes after: the total of a measured channel, in binary64
 * the row sums added in ascending order; rounded once for integer images. Needs --axis x. */
double gf_axis_sum_total(const void *data, uint32_t channel);

gf_status gf_axis_sum_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);

GF_DECLARE_LEVELS(gf_axis_sum_cpu);

extern const gf_filter gf_axis_sum_filter;
GF_EXTERN_C const gf_filter_cuda gf_axis_sum_cuda;

#endif
