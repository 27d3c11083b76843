/* Shared by the tests of dot: one run on a backend, and checks of its result. */
#ifndef DOT_UTIL_H
#define DOT_UTIL_H

#include "core/filter.h"
#include "core/result.h"
#include "dot/dot.h"
#include "testing.h"

enum { CHANNEL, AB, AA, BB, COSINE, MSE, PSNR };

static const char *const backends[] = {"golden", "cpu", "cuda"};

/* Return the number of backends on this machine. */
static inline int backend_count(void) {
    return test_has_cuda() ? 3 : 2;
}

/* Run dot on two images without gaps between rows, with one row per strip. */
static inline gf_result *run(const char *backend, const char *text, gf_format format, const void *a,
                             const void *b) {
    const gf_filter *filter = gf_filter_find("dot");
    const gf_engine_options options = {.backend = backend, .threads = 2, .rows_per_strip = 1};
    const size_t row = gf_row_bytes(&format);
    gf_settings *settings = test_settings(filter, text);
    gf_engine *engine = NULL;
    gf_result *result = NULL;
    gf_report report;
    gf_error error = {0};
    if (gf_engine_open(&options, &engine, &error) ||
        test_run_memory(&(test_memory){engine, filter, settings, &format,
                                       (gf_pixels[]){{a, row}, {b, row}}, .result = &result,
                                       .report = &report},
                        &error))
        fail_msg("%s: %s", backend, error.message);
    assert_string_equal(report.backend, backend);
    gf_engine_close(engine);
    gf_settings_free(settings);
    return result;
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
