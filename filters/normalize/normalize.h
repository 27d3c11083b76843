/* normalize: divide every sample by the mean of its channel. Defined in docs/numerics.md. */
#ifndef GF_NORMALIZE_H
#define GF_NORMALIZE_H

#include "core/filter.h"

typedef struct gf_normalize_plan {
    gf_plan head;
    /* The constants: per channel except alpha; 1 if the mean is not above 0. */
    float mean[GF_MAX_CHANNELS];
    float half; /* value of the mean in the output: half of the largest integer; 1 for f32 */
} gf_normalize_plan;

GF_DECLARE_BACKENDS(gf_normalize);

#endif
