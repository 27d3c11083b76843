/* compare: test whether two images are equal, sample for sample. Defined in docs/numerics.md. */
#ifndef GF_COMPARE_H
#define GF_COMPARE_H

#include "core/filter.h"

/* The record of one row. */
typedef struct gf_compare_record {
    uint64_t differing; /* number of differing samples */
    uint64_t first;     /* index of the first: x * channels + channel; UINT64_MAX: none */
    uint64_t largest;   /* largest difference: an integer, or the bits of a non-negative binary64,
                           which order like the numbers */
    uint32_t a, b;      /* values of the first differing sample; bits for f32 */
} gf_compare_record;

gf_status gf_compare_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);

GF_DECLARE_LEVELS(gf_compare_cpu);

GF_EXTERN_C const gf_filter_cuda gf_compare_cuda;

#endif
