#include "result.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "thread.h"

gf_status gf_result_new(const gf_filter *filter, gf_plan *plan, void *data, gf_result **out,
                        gf_error *error) {
    gf_result *result = calloc(1, sizeof *result);
    char *text = calloc(1, 1);
    if (!result || !text) {
        free(result);
        free(text);
        filter->measure->close(data);
        free(plan);
        return gf_fail_memory(error, filter->info.name, sizeof *result, "the result");
    }
    *result =
        (gf_result){.filter = filter, .plan = plan, .data = data, .text = text, .passed = true};
    filter->measure->describe(plan, data, result);
    if (result->out_of_memory) {
        gf_result_free(result);
        return gf_fail(error, GF_FAILED, "%s: out of memory for the result", filter->info.name);
    }
    *out = result;
    return GF_OK;
}

void gf_result_free(gf_result *result) {
    if (!result)
        return;
    result->filter->measure->close(result->data);
    free(result->plan);
    free(result->text);
    free(result);
}

gf_table *gf_result_add_table(gf_result *result, const char *name) {
    assert(result->table_count < GF_MAX_TABLES);
    gf_table *table = &result->tables[result->table_count++];
    table->name = name;
    return table;
}

void gf_table_add_column(gf_table *table, const char *name, gf_value_type type) {
    assert(table->column_count < GF_MAX_COLUMNS);
    table->columns[table->column_count++] = (gf_column){name, type};
}

void gf_result_say(gf_result *result, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size_t before = strlen(result->text), more = strlen(line);
    char *text = realloc(result->text, before + more + 1);
    if (!text) {
        result->out_of_memory = true;
        return;
    }
    memcpy(text + before, line, more + 1);
    result->text = text;
}

size_t gf_result_table_count(const gf_result *result) {
    return result->table_count;
}

const gf_table *gf_result_table(const gf_result *result, size_t table) {
    return table < result->table_count ? &result->tables[table] : NULL;
}

gf_value gf_result_cell(const gf_result *result, size_t table, uint64_t row, size_t column) {
    GF_FLOAT_ENV_SCOPE();
    if (table >= result->table_count || row >= result->tables[table].row_count ||
        column >= result->tables[table].column_count)
        return gf_value_text("");
    return result->filter->measure->cell(result->plan, result->data, table, row, column);
}

const char *gf_result_text(const gf_result *result) {
    return result->text;
}

bool gf_result_passed(const gf_result *result) {
    return result->passed;
}
