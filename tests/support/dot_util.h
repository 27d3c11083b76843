/* Shared by the tests of dot: one run on a backend, and checks of its result. */
#ifndef DOT_UTIL_H
#define DOT_UTIL_H

#include "core/result.h"
#include "dot/dot.h"
#include "measuring.h"

enum { CHANNEL, AB, AA, BB, COSINE, MSE, PSNR };

/* Run dot on two images without gaps between rows. */
static inline gf_result *run(const char *backend, gf_format format, const void *a, const void *b) {
    return test_measure(backend, "dot", "", format, a, b, NULL);
}

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#define CANONICAL 0x7ff8000000000000

static inline void assert_nan(const gf_result *result, size_t column) {
    assert_int_equal(bits_of(gf_result_cell(result, 0, 0, column).real), CANONICAL);
}

#endif
