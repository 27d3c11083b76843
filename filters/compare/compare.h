/* compare: test whether two images are equal, sample for sample. Defined in docs/numerics.md. */
#ifndef GF_COMPARE_H
#define GF_COMPARE_H

#include "core/filter.h"
#include "samples.h"

typedef struct gf_compare_plan {
    gf_plan head;
    /* Samples with different bits count if their difference, encoded as in a record, is at least
     * this. Integers: at least 1. */
    uint64_t limit;
} gf_compare_plan;

/* The record of one row. */
typedef struct gf_compare_record {
    uint64_t differing; /* number of samples that count */
    uint64_t first;     /* index of the first of them: x * channels + channel; UINT64_MAX: none */
    uint64_t largest;   /* largest difference of all samples: an integer, or the bits of a
                           non-negative binary64, which order like the numbers */
    uint32_t a, b;      /* values of the sample `first`; bits for f32 */
} gf_compare_record;

/* Return the colour of a difference, red in the lowest byte. sum: of red, green and blue. */
GF_BOTH uint32_t gf_compare_colour(uint32_t sum) {
    const uint32_t red = sum < 255 ? sum : 255, green = sum - red < 255 ? sum - red : 255;
    return red | green << 8 | (sum - red - green) << 16;
}

GF_DECLARE_BACKENDS(gf_compare);

#endif
