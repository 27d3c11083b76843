/* Samples at the largest value of their type: those that a filter may have clipped. */
#ifndef GF_LARGEST_H
#define GF_LARGEST_H

#include <stdint.h>

#include "gpufilter.h"
#include "isa.h"

/* Count the samples of a row that have the largest value of their type, alpha aside. Integer types
 * only, in either byte order: all bits are set. Every level gives the same. */
uint64_t gf_count_largest(gf_isa isa, const gf_format *format, const void *row);

typedef uint64_t gf_count_largest_row(const gf_format *format, const void *row);
extern gf_count_largest_row gf_count_largest_portable, gf_count_largest_avx2,
    gf_count_largest_avx512;

#endif
