#include "measuring.h"

static gf_status run(const gf_engine_options *options, const char *name, const char *text,
                     gf_format format, const void *a, const void *b, void *drawn,
                     gf_result **result) {
    const gf_filter *filter = gf_filter_find(name);
    assert_non_null(filter);
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    AUTO(engine) gf_engine *engine = NULL;
    gf_report report = {0};
    gf_format out = format;
    const size_t row = gf_row_bytes(&format);
    const gf_pixels in[2] = {{a, row}, {b, row}};
    gf_status status = gf_engine_open(options, &engine, &why);
    if (!status)
        status = test_filter_output(filter, settings, &format, &out);
    if (!status)
        status = test_run_memory(&(test_memory){engine, filter, settings, &format, in, drawn,
                                                out.width ? gf_row_bytes(&out) : 0,
                                                .result = result, .report = &report});
    if (!status)
        assert_string_equal(report.backend, options->backend);
    return status;
}

static char running[512]; /* the last run, for messages */

gf_result *test_measure(const char *backend, const char *filter, const char *text, gf_format format,
                        const void *a, const void *b, void *drawn) {
    gf_result *result = NULL;
    /* One row per strip, unless there would be too many strips. */
    const gf_engine_options options = {
        .backend = backend, .threads = 2, .rows_per_strip = format.height < 1000 ? 1 : 0};
    snprintf(running, sizeof running, "%s '%s' on %s", filter, text, backend);
    if (run(&options, filter, text, format, a, b, drawn, &result))
        fail_msg("%s: %s", running, why.message);
    return result;
}

gf_status test_measure_error(const char *filter, const char *text, gf_format format, const void *a,
                             uint64_t max_memory) {
    AUTO(result) gf_result *result = NULL;
    why = (gf_error){0};
    return run(&(gf_engine_options){.backend = "cpu", .max_memory = max_memory}, filter, text,
               format, a, a, NULL, &result);
}

static size_t find_table(const gf_result *result, const char *name) {
    for (size_t t = 0; t < gf_result_table_count(result); t++)
        if (strcmp(gf_result_table(result, t)->name, name) == 0)
            return t;
    fail_msg("no table %s", name);
    return 0;
}

static size_t find_column(const gf_table *table, const char *name) {
    for (size_t c = 0; c < table->column_count; c++)
        if (strcmp(table->columns[c].name, name) == 0)
            return c;
    fail_msg("no column %s in table %s", name, table->name);
    return 0;
}

gf_value test_cell(const gf_result *result, const char *table, const char *column, uint64_t row) {
    const size_t t = find_table(result, table);
    assert_true(row < gf_result_table(result, t)->row_count);
    return gf_result_cell(result, t, row, find_column(gf_result_table(result, t), column));
}

void test_column(const gf_result *result, const char *table, const char *column, const char *want) {
    char got[4096] = "";
    const uint64_t rows = gf_result_table(result, find_table(result, table))->row_count;
    for (uint64_t row = 0; row < rows; row++) {
        const size_t used = strlen(got);
        if (row > 0 && used + 1 < sizeof got)
            strcat(got, " ");
        gf_value value = test_cell(result, table, column, row);
        if (strlen(got) + 64 < sizeof got)
            gf_value_format(&value, got + strlen(got), 64);
    }
    if (strcmp(got, want) != 0)
        fail_msg("%s: %s.%s is '%s', expected '%s'", running, table, column, got, want);
}

const char *const *test_backends(void) {
    static const char *const all[] = {"golden", "cpu", "cuda", NULL};
    static const char *const without[] = {"golden", "cpu", NULL};
    return test_has_cuda() ? all : without;
}

/* Compare one entry of test_measured.cells. *table: that of the entry before. */
static void check_cells(const gf_result *result, char *entry, char **table) {
    char *want = strstr(entry, ": "), *column = strchr(entry, '.'), *row = strchr(entry, '@');
    const gf_table *first = gf_result_table(result, 0);
    assert_non_null(want);
    *want = '\0';
    want += 2;
    if (!column || column > want) {
        if (strcmp(entry, "table") == 0)
            assert_string_equal(first->name, want);
        else
            assert_int_equal(strcmp(entry, "rows") ? first->column_count : first->row_count,
                             strtoull(want, NULL, 10));
        return;
    }
    *column++ = '\0';
    if (*entry)
        *table = entry;
    if (row && row < want) {
        char got[64];
        *row++ = '\0';
        const gf_value value = test_cell(result, *table, column, strtoull(row, NULL, 10));
        gf_value_format(&value, got, sizeof got);
        assert_string_equal(got, want);
    } else {
        test_column(result, *table, column, want);
    }
}

static void check_shown(const char *text, const char *shown) {
    if (*shown == '=') {
        assert_string_equal(text, shown + 1);
        return;
    }
    while (*shown) {
        char line[256];
        const size_t size = strcspn(shown, "\n"), with_end = size + (shown[size] == '\n');
        snprintf(line, sizeof line, "%.*s", (int)with_end, shown);
        if (!strstr(text, line))
            fail_msg("%s: '%s' is not in '%s'", running, line, text);
        shown += with_end;
    }
}

void test_measure_cases(const char *filter, const test_measured *cases, size_t count) {
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (const test_measured *c = cases; c < cases + count; c++) {
            const gf_format format = {c->width, c->height, c->channels, c->type,
                                      c->channels % 2 == 0 && !c->data};
            gf_result *result =
                test_measure(*backend, filter, c->text, format, c->in, c->other, NULL);
            char cells[2048], *rest = cells, *table = NULL;
            assert_true((size_t)snprintf(cells, sizeof cells, "%s", c->cells) < sizeof cells);
            while (*rest) {
                char *entry = rest, *end = strstr(rest, "; ");
                rest = end ? end + 2 : rest + strlen(rest);
                if (end)
                    *end = '\0';
                check_cells(result, entry, &table);
            }
            if (c->shown)
                check_shown(gf_result_text(result), c->shown);
            gf_result_free(result);
        }
}
