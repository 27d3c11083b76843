/* Result of a filter that measures: its plan, its data, and tables that describe them. */
#ifndef GF_RESULT_H
#define GF_RESULT_H

#include "core/filter.h"

#define GF_MAX_TABLES 6

struct gf_result {
    gf_plan *plan;
    void *data;
    gf_table tables[GF_MAX_TABLES];
    size_t table_count;
    char *text;
    bool out_of_memory; /* set if gf_result_add_text fails */
    bool passed;
};

/* Create a result and describe its tables. Take ownership of plan and data, also on failure. */
gf_status gf_result_new(const gf_filter *filter, gf_plan *plan, void *data, gf_result **result,
                        gf_error *error);

/* Add up the uint64_t of two states. For gf_measure.merge. */
void gf_merge_sums(const gf_plan *plan, void *state, const void *other);
/* Add a table without columns. For gf_measure.describe. */
gf_table *gf_result_add_table(gf_result *result, const char *name, uint64_t rows);
/* Append columns of one type to a table. The names end with NULL. */
void gf_table_add_columns(gf_table *table, gf_value_type type, ...) __attribute__((sentinel));
/* Append formatted text to gf_result_text. */
void gf_result_add_text(gf_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline gf_value gf_value_uint(uint64_t x) {
    return (gf_value){.type = GF_VALUE_UINT, .low = x};
}

__extension__ typedef unsigned __int128 gf_u128;

static inline gf_value gf_value_wide(gf_u128 x) {
    return (gf_value){.type = GF_VALUE_UINT, .low = (uint64_t)x, .high = (uint64_t)(x >> 64)};
}

/* Return a / b, correctly rounded to binary64. b is not 0. */
double gf_quotient(gf_u128 a, uint64_t b);

static inline gf_value gf_value_double(double x) {
    return (gf_value){.type = GF_VALUE_DOUBLE, .real = x};
}

static inline gf_value gf_value_float(float x) {
    return (gf_value){.type = GF_VALUE_FLOAT, .real = (double)x};
}

/* Return a sample: an integer, or an f32. */
static inline gf_value gf_value_sample(gf_type type, float x) {
    return type == GF_F32 ? gf_value_float(x) : gf_value_uint((uint64_t)x);
}

static inline gf_value_type gf_sample_value_type(gf_type type) {
    return type == GF_F32 ? GF_VALUE_FLOAT : GF_VALUE_UINT;
}

static inline gf_value gf_value_none(void) {
    return (gf_value){.type = GF_VALUE_NONE};
}

static inline gf_value gf_value_text(const char *x) {
    return (gf_value){.type = GF_VALUE_TEXT, .text = x};
}

#endif
