/* normalize: divide every sample by the mean of its channel. Defined in docs/numerics.md. */
#ifndef GF_NORMALIZE_H
#define GF_NORMALIZE_H

#include "core/filter.h"

typedef struct gf_normalize_plan {
    gf_plan head;
    float mean[GF_MAX_CHANNELS]; /* per channel except alpha; 1 if the mean is not above 0 */
    float half; /* value of the mean in the output: half of the largest integer; 1 for f32 */
} gf_normalize_plan;

gf_status gf_normalize_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);

GF_DECLARE_LEVELS(gf_normalize_cpu);

GF_EXTERN_C const gf_filter_cuda gf_normalize_cuda;

#endif
