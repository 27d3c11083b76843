/* A filter's CUDA function alone, on device memory painted by hand. */
#ifndef STRIP_CUDA_H
#define STRIP_CUDA_H

#include "testing.h"

/* Computes a strip from the middle of a random image (whole: all rows) and fails the test if it
 * differs from golden's, or if anything but the strip's rows was written. Image rows begin on
 * multiples of row_align bytes, as the engine's do on those of 64. False if the case does not suit
 * the format. Only where there is a device. */
bool test_strip_on_device(const gf_filter *filter, const char *text, uint64_t seed,
                          gf_format format, bool whole, size_t row_align);

#endif
