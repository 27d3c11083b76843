/* What a backend gave against what golden gave, to the bit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verify.h"

uint64_t gf_verify_images(const gf_format *format, const void *want, const void *got,
                          char where[GF_VERIFY_WHERE]) {
    const uint64_t row = format->width * format->channels, count = row * format->height;
    if (memcmp(want, got, (size_t)count * gf_verify_sample_bytes(format->type)) == 0)
        return 0;
    uint64_t differences = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t a = gf_verify_sample(format, want, i), b = gf_verify_sample(format, got, i);
        if (a == b || differences++ > 0)
            continue;
        snprintf(where, GF_VERIFY_WHERE,
                 "x %" PRIu64 ", y %" PRIu64 ", channel %" PRIu64 " is 0x%" PRIx32
                 " and should be 0x%" PRIx32,
                 i % row / format->channels, i / row, i % format->channels, b, a);
    }
    return differences;
}

static uint64_t real_bits(const gf_value *value) {
    uint64_t bits;
    memcpy(&bits, &value->real, sizeof bits);
    return bits;
}

static bool same_value(const gf_value *a, const gf_value *b) {
    if (a->type != b->type)
        return false;
    if (a->type == GF_VALUE_UINT)
        return a->low == b->low && a->high == b->high;
    if (a->type == GF_VALUE_TEXT)
        return strcmp(a->text, b->text) == 0;
    return real_bits(a) == real_bits(b); /* NaN too, and the sign of 0 */
}

static void value_text(const gf_value *value, char *text, size_t size) {
    if (value->type == GF_VALUE_TEXT)
        snprintf(text, size, "%s", value->text);
    else
        gf_value_format(value, text, size);
}

static bool same_shape(const gf_table *a, const gf_table *b) {
    if (strcmp(a->name, b->name) != 0 || a->row_count != b->row_count ||
        a->column_count != b->column_count)
        return false;
    for (size_t c = 0; c < a->column_count; c++)
        if (strcmp(a->columns[c].name, b->columns[c].name) != 0 ||
            a->columns[c].type != b->columns[c].type)
            return false;
    return true;
}

/* differences: found before this table; only the first of all is told. */
static uint64_t compare_table(const gf_result *want, const gf_result *got, size_t t,
                              uint64_t differences, char where[GF_VERIFY_WHERE]) {
    const gf_table *table = gf_result_table(want, t), *other = gf_result_table(got, t);
    if (!same_shape(table, other)) {
        if (!differences)
            snprintf(where, GF_VERIFY_WHERE,
                     "table %s has %" PRIu64 " rows and should be %s with %" PRIu64, other->name,
                     other->row_count, table->name, table->row_count);
        return differences + 1;
    }
    for (uint64_t row = 0; row < table->row_count; row++)
        for (size_t c = 0; c < table->column_count; c++) {
            const gf_value a = gf_result_cell(want, t, row, c), b = gf_result_cell(got, t, row, c);
            if (same_value(&a, &b) || differences++ > 0)
                continue;
            char is[48], should[48];
            value_text(&b, is, sizeof is);
            value_text(&a, should, sizeof should);
            snprintf(where, GF_VERIFY_WHERE, "table %s, row %" PRIu64 ", %s is %s and should be %s",
                     table->name, row, table->columns[c].name, is, should);
        }
    return differences;
}

uint64_t gf_verify_results(const gf_result *want, const gf_result *got,
                           char where[GF_VERIFY_WHERE]) {
    if (!want && !got)
        return 0; /* of an image filter */
    if (!want || !got) {
        snprintf(where, GF_VERIFY_WHERE, "the result is %s", got ? "one too many" : "missing");
        return 1;
    }
    const size_t count = gf_result_table_count(want);
    uint64_t differences = 0;
    if (gf_result_table_count(got) != count) {
        snprintf(where, GF_VERIFY_WHERE, "has %zu tables and should have %zu",
                 gf_result_table_count(got), count);
        return 1;
    }
    for (size_t t = 0; t < count; t++)
        differences = compare_table(want, got, t, differences, where);
    if (strcmp(gf_result_text(want), gf_result_text(got)) != 0 && differences++ == 0)
        snprintf(where, GF_VERIFY_WHERE, "the text for people is another one");
    if (gf_result_passed(want) != gf_result_passed(got) && differences++ == 0)
        snprintf(where, GF_VERIFY_WHERE, "the answer is %s", gf_result_passed(got) ? "yes" : "no");
    return differences;
}
