/* CUDA function of a filter, run alone on painted device memory. */
#ifndef STRIP_CUDA_H
#define STRIP_CUDA_H

#include "testing.h"

/* Compute a strip from the middle of a random image (whole: all rows). Fail the test if it differs
 * from golden's, or if bytes outside of the strip's rows were written. Image rows are aligned to
 * row_align bytes; the engine uses 64. Return false if the case does not support the format.
 * Requires a device. */
bool test_strip_on_device(const gf_filter *filter, const char *text, uint64_t seed,
                          gf_format format, bool whole, size_t row_align);

#endif
