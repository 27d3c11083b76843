/* compare: are two images the same, sample for sample? docs/numerics.md defines it. */
#ifndef GF_COMPARE_H
#define GF_COMPARE_H

#include "core/filter.h"

/* The record of a row. */
typedef struct gf_compare_record {
    uint64_t differing; /* samples */
    uint64_t first;     /* of these, x * channels + channel; UINT64_MAX: none */
    uint64_t largest;   /* difference: an integer, or the bits of a binary64 that is not negative,
                         * whose order is that of the numbers */
    uint32_t a, b;      /* the values of the first; of f32 the bits */
} gf_compare_record;

gf_status gf_compare_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);

GF_DECLARE_LEVELS(gf_compare_cpu);

GF_EXTERN_C const gf_filter_cuda gf_compare_cuda;

#endif
