/* Broken backend for the tests of verify: wrappers of library functions corrupt the results of all
 * backends except golden, as $LIE requests. LIE_CASES=N limits each filter to its first N cases: a
 * complete verify takes 12 s of CPU time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpufilter.h"

#define REAL(name) __real_##name
#define FAKE(name) __wrap_##name

gf_status REAL(gf_run)(gf_engine *, const gf_job *, gf_outcome *, gf_error *);
gf_status FAKE(gf_run)(gf_engine *, const gf_job *, gf_outcome *, gf_error *);
size_t REAL(gf_result_table_count)(const gf_result *);
size_t FAKE(gf_result_table_count)(const gf_result *);
const gf_table *REAL(gf_result_table)(const gf_result *, size_t);
const gf_table *FAKE(gf_result_table)(const gf_result *, size_t);
gf_value REAL(gf_result_cell)(const gf_result *, size_t, uint64_t, size_t);
gf_value FAKE(gf_result_cell)(const gf_result *, size_t, uint64_t, size_t);
const char *REAL(gf_result_text)(const gf_result *);
const char *FAKE(gf_result_text)(const gf_result *);
bool REAL(gf_result_passed)(const gf_result *);
bool FAKE(gf_result_passed)(const gf_result *);

const gf_filter_info *REAL(gf_filter_describe)(const gf_filter *);
const gf_filter_info *FAKE(gf_filter_describe)(const gf_filter *);

enum { FILTERS = 16, CASES = 8 };

const gf_filter_info *FAKE(gf_filter_describe)(const gf_filter *filter) {
    static gf_filter_info few[FILTERS];
    static const char *cases[FILTERS][CASES];
    const gf_filter_info *info = REAL(gf_filter_describe)(filter);
    const char *text = getenv("LIE_CASES");
    const size_t count = text ? strtoul(text, NULL, 10) : 0;
    if (!count || count >= CASES)
        return info;
    size_t f = 0;
    while (few[f].name && strcmp(few[f].name, info->name) != 0)
        f++;
    if (!few[f].name) {
        few[f] = *info;
        for (size_t c = 0; c < count && info->cases[c]; c++)
            cases[f][c] = info->cases[c];
        few[f].cases = cases[f];
    }
    return &few[f];
}

/* Last result of this thread, unless golden computed it, and the kind of corruption. */
static _Thread_local const gf_result *suspect;
static _Thread_local char corruption[16];

/* Read the corruption of a filter from $LIE, such as "smooth=bit hist=cell". */
static void choose(const gf_filter *filter) {
    const char *name = gf_filter_describe(filter)->name, *at = getenv("LIE");
    corruption[0] = 0;
    while (at && (at = strstr(at, name))) {
        at += strlen(name);
        if (*at == '=') {
            snprintf(corruption, sizeof corruption, "%.*s", (int)strcspn(at + 1, " "), at + 1);
            return;
        }
    }
}

static bool corrupts(const char *what) {
    return strcmp(corruption, what) == 0;
}

static bool corrupts_result(const gf_result *result, const char *what) {
    return result == suspect && corrupts(what);
}

gf_status FAKE(gf_run)(gf_engine *engine, const gf_job *job, gf_outcome *outcome, gf_error *error) {
    suspect = NULL;
    choose(job->steps[0].filter);
    const gf_status status = REAL(gf_run)(engine, job, outcome, error);
    if (status || strcmp(outcome->report.backend, "golden") == 0)
        return status;
    if (corrupts("failure")) {
        gf_result_free(outcome->results[0]);
        outcome->results[0] = NULL;
        *error = (gf_error){.status = GF_FAILED, .message = "cpu: device failure"};
        return GF_FAILED;
    }
    if (corrupts("backend"))
        strcpy(outcome->report.backend, "golden");
    const gf_out_pixels *out = job->steps[job->step_count - 1].out;
    if (corrupts("bit") && out) /* first sample of the last row */
        ((unsigned char *)out->data)[out->stride * (job->format.height - 1)] ^= 1;
    if (corrupts("missing")) {
        gf_result_free(outcome->results[0]);
        outcome->results[0] = NULL;
    }
    suspect = outcome->results[0];
    return status;
}

size_t FAKE(gf_result_table_count)(const gf_result *result) {
    return REAL(gf_result_table_count)(result) + (corrupts_result(result, "tables") ? 1 : 0);
}

const gf_table *FAKE(gf_result_table)(const gf_result *result, size_t table) {
    static _Thread_local gf_table changed;
    const gf_table *right = REAL(gf_result_table)(result, table);
    if (!right || result != suspect)
        return right;
    changed = *right;
    if (corrupts("rows"))
        changed.row_count++;
    if (corrupts("name"))
        changed.name = "elsewhere";
    if (corrupts("type"))
        changed.columns[changed.column_count - 1].type = GF_VALUE_NONE;
    return &changed;
}

/* Change the last cell of each row. */
gf_value FAKE(gf_result_cell)(const gf_result *result, size_t table, uint64_t row, size_t column) {
    gf_value value = REAL(gf_result_cell)(result, table, row, column);
    if (!corrupts_result(result, "cell") ||
        column + 1 < REAL(gf_result_table)(result, table)->column_count)
        return value;
    uint64_t bits;
    memcpy(&bits, &value.real, sizeof bits);
    bits ^= 1;
    if (value.type == GF_VALUE_UINT)
        value.low ^= 1;
    else if (value.type == GF_VALUE_TEXT)
        value.text = "another";
    else
        memcpy(&value.real, &bits, sizeof bits);
    return value;
}

const char *FAKE(gf_result_text)(const gf_result *result) {
    return corrupts_result(result, "text") ? "nothing" : REAL(gf_result_text)(result);
}

bool FAKE(gf_result_passed)(const gf_result *result) {
    return REAL(gf_result_passed)(result) != corrupts_result(result, "answer");
}
