/* dot: the dot product of two images of one format, and related statistics of the same pass.
 * Defined in docs/numerics.md. */
#ifndef GF_DOT_H
#define GF_DOT_H

#include "core/filter.h"

/* Indices of the sums of one channel of one row. Integer samples: uint64_t, without GF_DOT_SSD,
 * which follows exactly from the others. f32: double. A record holds the sums of each measured
 * channel, channel after channel. */
enum { GF_DOT_AB, GF_DOT_AA, GF_DOT_BB, GF_DOT_SSD, GF_DOT_SUMS };

static inline uint32_t gf_dot_sums(gf_type type) {
    return type == GF_F32 ? GF_DOT_SUMS : GF_DOT_SSD;
}

GF_DECLARE_BACKENDS(gf_dot);

#endif
