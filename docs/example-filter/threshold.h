/* threshold: samples below a level become 0, the others the largest value. */
#ifndef GF_THRESHOLD_H
#define GF_THRESHOLD_H

#include "core/filter.h"

/* Made once from the settings; every backend reads it. */
typedef struct gf_threshold_plan {
    gf_plan head;
    float limit; /* the least sample that stays: level * gf_type_max(head.in.type) */
} gf_threshold_plan;

GF_EXTERN_C const gf_filter_cuda gf_threshold_cuda;

#endif
