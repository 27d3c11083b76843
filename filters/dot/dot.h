/* dot: the dot product of two images of one format, and what follows from the same pass.
 * docs/numerics.md defines it. */
#ifndef GF_DOT_H
#define GF_DOT_H

#include "core/filter.h"

/* The sums of one channel of a row, in this order: uint64_t of integer samples, which have no
 * GF_DOT_SSD because it follows exactly from the others; double of f32. A record holds those of
 * each measured channel in turn. */
enum { GF_DOT_AB, GF_DOT_AA, GF_DOT_BB, GF_DOT_SSD, GF_DOT_SUMS };

static inline uint32_t gf_dot_sums(gf_type type) {
    return type == GF_F32 ? GF_DOT_SUMS : GF_DOT_SSD;
}

typedef struct gf_dot_plan {
    gf_plan head;
    uint32_t measured; /* the first channels, which are reported */
} gf_dot_plan;

gf_status gf_dot_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);

GF_DECLARE_LEVELS(gf_dot_cpu);

GF_EXTERN_C const gf_filter_cuda gf_dot_cuda;

#endif
