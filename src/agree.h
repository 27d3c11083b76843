/* Ranks that do one image together (gf_ranks) agree on what has failed. */
#ifndef GF_AGREE_H
#define GF_AGREE_H

#include "gpufilter.h"

/* Is there nobody else? */
static inline bool gf_alone(const gf_ranks *ranks) {
    return !ranks || ranks->count < 2;
}

static inline bool gf_is_first(const gf_ranks *ranks) {
    return !ranks || ranks->rank == 0;
}

/* To be called by all: rank 0's status and error. */
gf_status gf_follow_first(const gf_ranks *ranks, gf_status status, gf_error *error);

#endif
