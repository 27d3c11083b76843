/* Runs of a filter on small images, and single cells of the results. */
#ifndef MEASURING_H
#define MEASURING_H

#include "testing.h"

/* Run a case of a filter on one image or two, without padding. An error fails the test. drawn:
 * receives the image that the filter makes; NULL: none. The caller frees the result. */
gf_result *test_measure(const char *backend, const char *filter, const char *text, gf_format format,
                        const void *a, const void *b, void *drawn);
/* A run on a small image, and what its result must contain. */
typedef struct test_measured {
    const char *text; /* case of the filter */
    uint64_t width, height;
    uint32_t channels;
    gf_type type;
    const void *in;
    /* "TABLE.COLUMN: cells; ...", as test_column; ".COLUMN" is in the table before, "@ROW" selects
     * one cell. "table: NAME", "columns: N" and "rows: N" describe the first table. */
    const char *cells;
    const char *shown; /* lines that the text contains, or after "=" the whole text; NULL: any */
    const void *other; /* second input of the filter */
    bool data;         /* all channels are data; otherwise the last of 2 or 4 is alpha */
} test_measured;
/* Run cases on every backend of this machine. */
void test_measure_cases(const char *filter, const test_measured *cases, size_t count);
/* Run a case that may fail, on the cpu backend. Return the status, with the message in *error. */
gf_status test_measure_error(const char *filter, const char *text, gf_format format, const void *a,
                             uint64_t max_memory);
/* Return a cell by name. A missing table or column fails the test. */
gf_value test_cell(const gf_result *result, const char *table, const char *column, uint64_t row);
/* Fail the test unless the cells of a column, formatted by gf_value_format and separated by spaces,
 * equal `want`. */
void test_column(const gf_result *result, const char *table, const char *column, const char *want);

/* Return the backends of this machine: "golden", "cpu" and perhaps "cuda"; NULL-terminated. */
const char *const *test_backends(void);

#endif
