/* The order in which binary64 sums along a row are made: 256 lanes, then a tree.
 *
 * Lane l adds elements l, l+256, l+512, ... of one channel in ascending order, from +0; then for
 * stride 128, 64, ..., 1: lane[l] += lane[l + stride] for l < stride. The sum is lane 0. */
#ifndef GF_LANES_H
#define GF_LANES_H

#include <stdint.h>
#include <string.h>

#define GF_LANES 256

/* The one NaN that results hold: which NaN an addition gives differs between processors. */
static inline double gf_canonical_double(double x) {
    const uint64_t nan = UINT64_C(0x7ff8000000000000);
    if (x != x)
        memcpy(&x, &nan, sizeof x);
    return x;
}

/* The tree over one channel's lanes; golden's. */
static inline double gf_golden_tree(double *lane) {
    for (int stride = GF_LANES / 2; stride > 0; stride /= 2)
        for (int l = 0; l < stride; l++)
            lane[l] += lane[l + stride];
    return gf_canonical_double(lane[0]);
}

#endif
