/* Results, their tables, and values formatted as text. */
#define _GNU_SOURCE /* newlocale, used by c_locale.h */

#include "core/result.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "core/thread.h"

gf_status gf_result_new(const gf_filter *filter, gf_plan *plan, void *data, gf_result **out,
                        gf_error *error) {
    gf_result *result = calloc(1, sizeof *result);
    if (!result) {
        filter->measure->close(data);
        gf_plan_free(plan);
        return gf_fail_memory(error, filter->info.name, sizeof *result, "the result");
    }
    *result = (gf_result){.plan = plan, .data = data, .passed = true};
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
    result->plan->filter->measure->close(result->data);
    gf_plan_free(result->plan);
    free(result->text);
    free(result);
}

void gf_merge_sums(const gf_plan *plan, void *state, const void *other) {
    for (uint64_t i = 0; i < plan->state_bytes / sizeof(uint64_t); i++)
        ((uint64_t *)state)[i] += ((const uint64_t *)other)[i];
}

gf_table *gf_result_add_table(gf_result *result, const char *name, uint64_t rows) {
    assert(result->table_count < GF_MAX_TABLES);
    gf_table *table = &result->tables[result->table_count++];
    table->name = name;
    table->row_count = rows;
    return table;
}

void gf_table_add_columns(gf_table *table, gf_value_type type, ...) {
    va_list names;
    va_start(names, type);
    for (const char *name; (name = va_arg(names, const char *));) {
        assert(table->column_count < GF_MAX_COLUMNS);
        table->columns[table->column_count++] = (gf_column){name, type};
    }
    va_end(names);
}

void gf_result_add_text(gf_result *result, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const size_t before = result->text ? strlen(result->text) : 0, more = strlen(line);
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
    return result->plan->filter->measure->cell(result->plan, result->data, table, row, column);
}

bool gf_result_column(const gf_result *result, size_t table, size_t column, void *values) {
    GF_FLOAT_ENV_SCOPE();
    const gf_table *t = gf_result_table(result, table);
    if (!t || column >= t->column_count)
        return false;
    const gf_value_type type = t->columns[column].type;
    for (uint64_t row = 0; row < t->row_count; row++) {
        const gf_value cell = gf_result_cell(result, table, row, column);
        if (cell.high)
            return false;
        if (type == GF_VALUE_UINT)
            ((uint64_t *)values)[row] = cell.low;
        else if (type == GF_VALUE_TEXT)
            ((const char **)values)[row] = cell.text;
        else
            ((double *)values)[row] = cell.type == GF_VALUE_NONE ? (double)NAN : cell.real;
    }
    return true;
}

const char *gf_result_text(const gf_result *result) {
    return result->text ? result->text : "";
}

bool gf_result_passed(const gf_result *result) {
    return result->passed;
}

/* Compute the quotient in integers, with at least two bits more than binary64 has and a last bit
 * that is set if the remainder is not 0. Its conversion then rounds like the exact quotient. */
double gf_quotient(gf_u128 a, uint64_t b) {
    gf_u128 quotient = a / b, rest = a % b;
    double scale = 1;
    while (a > 0 && quotient >> (DBL_MANT_DIG + 1) == 0) {
        rest *= 2;
        quotient = 2 * quotient + (rest >= b);
        rest -= rest >= b ? b : 0;
        scale /= 2;
    }
    return (double)(quotient | (rest > 0)) * scale;
}

/* ---- values as text -------------------------------------------------------------------------- */

/* size of the longest number printed here, rounded up */
enum { NUMBER_BYTES = 64 };

/* Print n before `end`. Return where it begins. */
static char *value_put_digits(char *end, uint64_t n) {
    do {
        *--end = (char)('0' + (int)(n % 10));
        n /= 10;
    } while (n);
    return end;
}

static void value_format_uint(uint64_t high, uint64_t low, char *text) {
    gf_u128 x = (gf_u128)high << 64 | low;
    char digits[NUMBER_BYTES] = "", *at = digits + sizeof digits - 1;
    for (; x > UINT64_MAX; x /= 10)
        *--at = (char)('0' + (int)(x % 10));
    at = value_put_digits(at, (uint64_t)x);
    memcpy(text, at, (size_t)(digits + sizeof digits - at));
}

static void value_put_decimal(bool minus, uint64_t n, int k, char *text) {
    char digits[NUMBER_BYTES], *at = digits + sizeof digits;
    *--at = 0;
    for (; k > 0 && n % 10 == 0; k--)
        n /= 10;
    if (k > 0) {
        for (; k > 0; k--, n /= 10)
            *--at = (char)('0' + (int)(n % 10));
        *--at = '.';
    }
    at = value_put_digits(at, n);
    if (minus)
        *--at = '-';
    memcpy(text, at, (size_t)(digits + sizeof digits - at));
}

/* Format most binary32 numbers of ordinary magnitude like value_format_real, but many times faster:
 * extracted samples come in millions. Return false for a number that needs value_format_real. */
static bool value_format_fast(float x, char *text) {
    static const double tens[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1,    1e1,  1e2,  1e3, 1e4,
                                  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13};
    enum { ONE = 5, FIRST = FLT_DIG, LAST = 9 }; /* tens[ONE] is 1; FIRST..LAST digits are tried */
    const double size = fabs((double)x);
    if (!(size > 1e-5 && size < 1e6))
        return false;
    int exponent = -5;
    while (size >= tens[exponent + 1 + ONE])
        exponent++;
    for (int digits = FIRST; digits <= LAST; digits++) {
        const int k = digits - 1 - exponent;
        const double scaled = size * tens[k + ONE];
        uint64_t n = (uint64_t)scaled;
        const double rest = scaled - (double)n;
        /* The product is rounded: close to one half, it does not determine the digit. */
        if (fabs(rest - 0.5) < 1e-6)
            return false;
        n += rest > 0.5;
        /* Both operands are exact, so the quotient is the decimal rounded once to binary64.
         * Rounding it again to binary32 matters only at a midpoint of two binary32. */
        const double decimal = (double)n / tens[k + ONE];
        uint64_t bits;
        memcpy(&bits, &decimal, sizeof bits);
        if ((bits & 0x1fffffff) == 0x10000000)
            return false;
        if ((float)decimal == (float)size) {
            value_put_decimal(x < 0, n, k, text);
            return true;
        }
    }
    return false;
}

/* Print the fewest digits that parse to the same number. */
static void value_format_real(double x, bool is_float, char *text) {
    if (isnan(x) || isinf(x)) {
        snprintf(text, NUMBER_BYTES, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
        return;
    }
    if (is_float && value_format_fast((float)x, text))
        return;
    gf_c_locale scope = gf_c_locale_enter();
    /* Every decimal of FLT_DIG or DBL_DIG digits survives a round trip through a normal number.
     * Shorter ones appear as trailing zeros and are trimmed below. */
    const bool normal = fabs(x) >= (is_float ? (double)FLT_MIN : DBL_MIN);
    int digits = !normal ? 1 : is_float ? FLT_DIG : DBL_DIG;
    const int first = digits;
    for (; digits <= 17; digits++) {
        snprintf(text, NUMBER_BYTES, "%.*e", digits - 1, x);
        if (is_float ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x)
            break;
    }
    if (normal && digits == first) {
        const char *end = strchr(text, 'e');
        while (digits > 1 && *--end == '0')
            digits--;
        snprintf(text, NUMBER_BYTES, "%.*e", digits - 1, x);
    }
    /* Print the same digits without an exponent where that is readable. */
    const char *e = strchr(text, 'e');
    int exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
    if (x == 0 || (exponent >= -5 && exponent < 17)) {
        int decimals = digits - 1 - exponent;
        snprintf(text, NUMBER_BYTES, "%.*f", decimals > 0 ? decimals : 0, x);
    }
    gf_c_locale_leave(&scope);
}

double gf_round_edge(double x, double width) {
    double scale = 1;
    for (int digits = 0; digits <= 15; digits++) {
        const double rounded = round(x * scale) / scale;
        if (fabs(rounded - x) <= width / 10000)
            return rounded;
        scale *= 10;
    }
    return x;
}

void gf_value_format(const gf_value *value, char *text, size_t size) {
    GF_FLOAT_ENV_SCOPE();
    char number[NUMBER_BYTES] = "";
    const char *whole = value->type == GF_VALUE_TEXT && value->text ? value->text : number;
    if (value->type == GF_VALUE_UINT)
        value_format_uint(value->high, value->low, number);
    else if (value->type == GF_VALUE_FLOAT || value->type == GF_VALUE_DOUBLE)
        value_format_real(value->real, value->type == GF_VALUE_FLOAT, number);
    snprintf(text, size, "%s", whole);
}
