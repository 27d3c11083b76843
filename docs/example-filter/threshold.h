/* threshold: set samples below a level to 0, and all others to the maximum. */
#ifndef GF_THRESHOLD_H
#define GF_THRESHOLD_H

#include "core/filter.h"

/* The settings resolved for one image format. All backends read it. */
typedef struct gf_threshold_plan {
    gf_plan head;
    float limit; /* smallest sample set to the maximum: level * gf_type_max(head.in.type) */
} gf_threshold_plan;

#endif
