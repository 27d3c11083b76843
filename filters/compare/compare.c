/* compare: descriptor, parameters, plan and result. */
#include "compare/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"

_Static_assert(sizeof(gf_compare_record) == 32, "records are compared as bytes: no padding");

static const gf_param params[] = {
    GF_NUMBER_PARAM(FLOAT, "tolerance", 0, "T",
                    "largest difference that counts as equal; default: bits must be equal", NULL, 0,
                    1e9),
    GF_TEXT_PARAM(IMAGE, "diff", 0, "FILE",
                  "draw the differences on a darkened A; from dark red over yellow to white", NULL),
};

static const char *const cases[] = {"", "diff=-", "tolerance=2", "tolerance=0.0625 diff=-", NULL};

/* Approximate nanoseconds on one core: COST per byte of both images, DRAW_COST per sample. */
#define COST 0.17
#define DRAW_COST 0.8

static gf_status plan_compare(const gf_settings *settings, gf_plan *plan, gf_error *error) {
    const double tolerance = (double)gf_settings_float(settings, "tolerance");
    const double max = gf_type_max(plan->in.type);
    uint64_t encoded = (uint64_t)(tolerance < max ? tolerance : max);
    if (plan->in.type == GF_F32)
        memcpy(&encoded, &tolerance, sizeof tolerance);
    ((gf_compare_plan *)plan)->limit =
        encoded + (gf_settings_given(settings, "tolerance") || plan->in.type != GF_F32);
    plan->record = sizeof(gf_compare_record);
    plan->cost = COST * (double)gf_type_bytes(plan->in.type);
    if (gf_settings_text(settings, "diff")) {
        plan->out = (gf_format){plan->in.width, plan->in.height, 3, GF_U8, false};
        plan->cost = DRAW_COST;
    }
    return GF_OK;
}

typedef struct gf_comparison {
    gf_compare_record all; /* record of the whole image */
    uint64_t y;            /* row of the first differing sample */
} gf_comparison;

static gf_status open_comparison(const gf_plan *plan, const gf_measure_options *keep, void **data,
                                 gf_error *error) {
    *data = calloc(1, sizeof(gf_comparison));
    return *data ? GF_OK
                 : gf_fail_memory(error, keep->name, sizeof(gf_comparison), "the comparison");
}

static gf_status compare_take_rows(const gf_plan *plan, void *data, const gf_rows *records,
                                   gf_error *error) {
    gf_comparison *comparison = data;
    gf_compare_record *all = &comparison->all;
    for (uint64_t y = records->y0; y < records->y0 + records->rows; y++) {
        const gf_compare_record *row = gf_record_of(records, y);
        if (row->differing && !all->differing) {
            all->first = row->first;
            all->a = row->a;
            all->b = row->b;
            comparison->y = y;
        }
        all->differing += row->differing;
        all->largest = gf_max(all->largest, row->largest);
    }
    return GF_OK;
}

static gf_status compare_finish(const gf_plan *plan, void *data, const void *state,
                                gf_error *error) {
    return GF_OK;
}

enum { SAMPLES, DIFFERING, LARGEST, X, Y, CHANNEL, FIRST, SECOND };

static gf_value compare_cell(const gf_plan *plan, const void *data, size_t table, uint64_t row,
                             size_t column) {
    const gf_comparison *comparison = data;
    const gf_compare_record *all = &comparison->all;
    const gf_format *in = &plan->in;
    double real;
    memcpy(&real, &all->largest, sizeof real);
    const gf_value cells[] = {
        [SAMPLES] = gf_value_uint(gf_row_samples(in) * in->height),
        [DIFFERING] = gf_value_uint(all->differing),
        [LARGEST] = in->type == GF_F32 ? gf_value_double(real) : gf_value_uint(all->largest),
        [X] = gf_value_uint(all->first / in->channels),
        [Y] = gf_value_uint(comparison->y),
        [CHANNEL] = gf_value_text(gf_channel_name(in, (uint32_t)(all->first % in->channels))),
        [FIRST] = gf_value_sample(in->type, gf_sample_number(in->type, all->a)),
        [SECOND] = gf_value_sample(in->type, gf_sample_number(in->type, all->b))};
    /* If no sample counts, there is no first one. */
    return column >= X && !all->differing ? gf_value_none() : cells[column];
}

static void compare_describe(const gf_plan *plan, const void *data, gf_result *result) {
    const gf_compare_record *all = &((const gf_comparison *)data)->all;
    char text[SECOND + 1][48];
    result->passed = all->differing == 0;
    gf_table *table = gf_result_add_table(result, "comparison", 1);
    table->single = true;
    gf_table_add_columns(table, GF_VALUE_UINT, "samples", "differing", NULL);
    gf_table_add_columns(table, plan->in.type == GF_F32 ? GF_VALUE_DOUBLE : GF_VALUE_UINT,
                         "largest", NULL);
    gf_table_add_columns(table, GF_VALUE_UINT, "x", "y", NULL);
    gf_table_add_columns(table, GF_VALUE_TEXT, "channel", NULL);
    gf_table_add_columns(table, gf_sample_value_type(plan->in.type), "first", "second", NULL);
    for (size_t column = 0; column <= SECOND; column++) {
        const gf_value value = compare_cell(plan, data, 0, 0, column);
        gf_value_format(&value, text[column], sizeof text[column]);
    }
    /* NaNs with different bits print alike: add the bits. */
    if (strcmp(text[FIRST], text[SECOND]) == 0) {
        snprintf(text[FIRST], sizeof text[FIRST], "nan (%08" PRIx32 ")", all->a);
        snprintf(text[SECOND], sizeof text[SECOND], "nan (%08" PRIx32 ")", all->b);
    }
    if (result->passed && all->largest)
        gf_result_add_text(result, "same within the tolerance: %s samples, largest difference %s\n",
                           text[SAMPLES], text[LARGEST]);
    else if (result->passed)
        gf_result_add_text(result, "same: %s samples\n", text[SAMPLES]);
    else
        gf_result_add_text(result,
                           "different: %s of %s samples, largest difference %s; "
                           "first at x %s, y %s, channel %s: %s and %s\n",
                           text[DIFFERING], text[SAMPLES], text[LARGEST], text[X], text[Y],
                           text[CHANNEL], text[FIRST], text[SECOND]);
}

static const gf_measure measure = {
    .open = open_comparison,
    .rows = compare_take_rows,
    .finish = compare_finish,
    .describe = compare_describe,
    .cell = compare_cell,
    .close = free,
};

const gf_filter gf_compare_filter = {
    .info =
        {
            .name = "compare",
            .summary = "test whether two images have the same pixels",
            .operands = "A B",
            .details =
                "Counts the samples that differ, alpha included, and reports the largest\n"
                "difference and the first differing sample. Two f32 samples are equal if their\n"
                "bits are equal: 0 and -0 differ. With --tolerance, samples differ if their\n"
                "difference is larger. Exit code 0: same; 1: different; 2: comparison failed;\n"
                "3: backend or device not available.\n",
            .examples = "gpufilter compare a.png b.png\n"
                        "gpufilter compare --diff d.png a.png b.png\n"
                        "gpufilter compare --tolerance 2 a.png b.png\n"
                        "gpufilter compare --quiet a.png b.png && echo same\n",
            .params = params,
            .param_count = sizeof params / sizeof params[0],
            .inputs = 2,
            .is_test = true,
            .cases = cases,
        },
    .plan_bytes = sizeof(gf_compare_plan),
    .plan = plan_compare,
    .golden = gf_compare_golden,
    .cpu = {.run = GF_LEVELS(gf_compare_cpu)},
    .measure = &measure,
};
