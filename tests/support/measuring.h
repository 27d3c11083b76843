/* Small images by hand through one backend, and single cells of what comes out. */
#ifndef MEASURING_H
#define MEASURING_H

#include "testing.h"

/* Runs a filter's case on one image (or two) without padding; fails the test on an error. drawn:
 * where the image goes that the filter makes, or NULL. The result is the caller's. */
gf_result *test_measure(const char *backend, const char *filter, const char *text, gf_format format,
                        const void *a, const void *b, void *drawn);
/* The error of such a run: its status, and the message in error. */
gf_status test_measure_error(const char *filter, const char *text, gf_format format, const void *a,
                             uint64_t max_memory, gf_error *error);
/* A cell by names; fails the test if there is no such. */
gf_value test_cell(const gf_result *result, const char *table, const char *column, uint64_t row);
/* Fails the test unless a column is exactly these texts (gf_value_format), "1 2 3". */
void test_column(const gf_result *result, const char *table, const char *column, const char *want);

/* The backends of this machine: "golden", "cpu" and perhaps "cuda"; NULL-terminated. */
const char *const *test_backends(void);

#endif
