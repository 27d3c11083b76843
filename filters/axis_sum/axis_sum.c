/* axis-sum: descriptor, parameters, plan and result. */
#include "axis_sum/axis_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"
#include "samples.h"

static const char *const axis_names[] = {"x", "y", NULL};

static const gf_param params[] = {
    GF_CHOICE_PARAM(CHOICE, "axis", 'a', "AXIS",
                    "sum along x (one sum per row) or y (one sum per column)", "x", axis_names),
    GF_FLAG_PARAM("mean", 0, "divide each sum by the number of its samples"),
};

static const char *const cases[] = {"", "axis=y", NULL};

/* Approximate nanoseconds per byte on one core. Memory bandwidth is the limit. */
#define COST 0.07

static gf_status plan_axis_sum(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_axis_sum_plan *plan = (gf_axis_sum_plan *)head;
    plan->columns = gf_settings_choice(settings, "axis") == 1;
    plan->mean = gf_settings_flag(settings, "mean");
    if (plan->columns) {
        head->state_bytes = gf_row_samples(&head->in) * sizeof(uint64_t);
        head->ordered = head->in.type == GF_F32;
        head->disjoint = true;
    } else {
        head->record = gf_measured_channels(&head->in) * (uint32_t)sizeof(uint64_t);
    }
    head->result_bytes = plan->columns ? head->state_bytes : head->in.height * head->record;
    head->cost = COST * (double)gf_type_bytes(head->in.type);
    return GF_OK;
}

/* Bytes of the lanes of the f32 row sums of all channels. */
static size_t axis_sum_scratch_bytes(const gf_plan *plan) {
    return (size_t)GF_LANES * plan->in.channels * sizeof(double);
}

typedef union gf_sum {
    uint64_t integer;
    double real;
} gf_sum;

/* A line is a row or a column. A total is the sum over all lines. */
typedef struct gf_axis_sums {
    uint64_t lines;
    uint32_t channels; /* sums stored per line */
    gf_u128 totals[GF_MAX_CHANNELS];
    double real_totals[GF_MAX_CHANNELS];
    const gf_left_out *left_out;      /* until the last row; NULL: all samples are added */
    double all_left[GF_MAX_CHANNELS]; /* samples that the totals leave out */
    uint64_t *left;                   /* and each sum; NULL: none */
    gf_sum sums[];
} gf_axis_sums;

static gf_status open_sums(const gf_plan *head, const gf_measure_options *keep, void **out,
                           gf_error *error) {
    const gf_axis_sum_plan *plan = (const gf_axis_sum_plan *)head;
    const size_t left = keep->left_out ? (size_t)head->result_bytes : 0;
    gf_axis_sums *sums = malloc(sizeof *sums + (size_t)head->result_bytes + left);
    *out = sums;
    if (!sums)
        return gf_fail_memory(error, keep->name, head->result_bytes, "the sums");
    *sums = (gf_axis_sums){.lines = plan->columns ? head->in.width : head->in.height,
                           .channels =
                               plan->columns ? head->in.channels : gf_measured_channels(&head->in),
                           .left_out = keep->left_out};
    if (left)
        sums->left = (uint64_t *)sums->sums + head->result_bytes / sizeof *sums->sums;
    return GF_OK;
}

static gf_status axis_sum_take_rows(const gf_plan *head, void *data, const gf_rows *records,
                                    gf_error *error) {
    gf_axis_sums *sums = data;
    for (uint64_t y = records->y0; y < records->y0 + records->rows; y++)
        memcpy(&sums->sums[y * sums->channels], gf_record_of(records, y), head->record);
    return GF_OK;
}

static gf_status axis_sum_finish(const gf_plan *head, void *data, const void *state,
                                 gf_error *error) {
    gf_axis_sums *sums = data;
    const gf_left_out *left_out = sums->left_out;
    const uint32_t channels = sums->channels;
    const bool real = head->in.type == GF_F32;
    if (head->state_bytes)
        memcpy(sums->sums, state, (size_t)head->state_bytes);
    for (uint64_t i = 0; i < sums->lines * channels; i++) {
        const uint64_t at = i / channels * head->in.channels + i % channels;
        /* Copy the numbers of samples that are left out: they are not kept as long as the sums. */
        if (left_out)
            sums->left[i] = (head->record ? left_out->rows : left_out->columns)[at];
        if (real)
            sums->real_totals[i % channels] += sums->sums[i].real;
        else
            sums->totals[i % channels] += sums->sums[i].integer;
    }
    for (uint32_t c = 0; c < channels; c++) {
        sums->all_left[c] = left_out ? (double)left_out->all[c] : 0;
        sums->real_totals[c] =
            real ? gf_canonical_double(sums->real_totals[c]) : (double)sums->totals[c];
    }
    return GF_OK;
}

double gf_axis_sum_total(const void *data, uint32_t channel) {
    return ((const gf_axis_sums *)data)->real_totals[channel];
}

enum { SUMS, TOTALS };

static void axis_sum_describe(const gf_plan *head, const void *data, gf_result *result) {
    const gf_axis_sum_plan *plan = (const gf_axis_sum_plan *)head;
    const gf_axis_sums *sums = data;
    const uint32_t measured = gf_measured_channels(&head->in);
    const gf_value_type type = head->in.type == GF_F32 ? GF_VALUE_DOUBLE : GF_VALUE_UINT;
    gf_table *table = gf_result_add_table(result, plan->mean ? "means" : "sums", sums->lines);
    table->in_text = true;
    table->chart = GF_CHART_LINES;
    table->curves = 1;
    table->x_label = plan->columns ? "column x (pixels)" : "row y (pixels)";
    if (plan->mean)
        table->y_label = plan->columns ? "mean of the column" : "mean of the row";
    else
        table->y_label = plan->columns ? "sum over the column" : "sum over the row";
    gf_table_add_columns(table, GF_VALUE_UINT, plan->columns ? "x" : "y", NULL);
    for (uint32_t c = 0; c < measured; c++)
        gf_table_add_columns(table, plan->mean ? GF_VALUE_DOUBLE : type,
                             gf_channel_name(&head->in, c), NULL);
    table = gf_result_add_table(result, "totals", measured);
    table->in_text = true;
    gf_table_add_columns(table, GF_VALUE_TEXT, "channel", NULL);
    gf_table_add_columns(table, type, "sum", NULL);
    gf_table_add_columns(table, GF_VALUE_DOUBLE, "mean", NULL);
}

static gf_value axis_sum_cell(const gf_plan *head, const void *data, size_t table, uint64_t row,
                              size_t column) {
    const gf_axis_sum_plan *plan = (const gf_axis_sum_plan *)head;
    const gf_axis_sums *sums = data;
    const bool real = head->in.type == GF_F32;
    if (table == SUMS && column == 0)
        return gf_value_uint(row);
    if (table == SUMS) {
        const uint64_t i = row * sums->channels + column - 1;
        const gf_sum sum = sums->sums[i];
        const uint64_t length = plan->columns ? head->in.height : head->in.width;
        const uint64_t count = length - (sums->left ? sums->left[i] : 0);
        if (plan->mean)
            return gf_value_double(count == 0 ? (double)NAN
                                   : real     ? gf_canonical_double(sum.real / (double)count)
                                              : gf_quotient(sum.integer, count));
        return real ? gf_value_double(sum.real) : gf_value_uint(sum.integer);
    }
    if (column == 0)
        return gf_value_text(gf_channel_name(&head->in, (uint32_t)row));
    if (column == 1)
        return real ? gf_value_double(sums->real_totals[row]) : gf_value_wide(sums->totals[row]);
    const double count = (double)head->in.width * (double)head->in.height - sums->all_left[row];
    return gf_value_double(gf_canonical_double(sums->real_totals[row] / count));
}

static const gf_measure measure = {
    .merge = gf_merge_sums,
    .open = open_sums,
    .rows = axis_sum_take_rows,
    .finish = axis_sum_finish,
    .describe = axis_sum_describe,
    .cell = axis_sum_cell,
    .close = free,
};

const gf_filter gf_axis_sum_filter = {
    .info =
        {
            .name = "axis-sum",
            .summary = "sum the rows or columns of each channel",
            .operands = "IN",
            .details =
                "Computes one sum per row (--axis x) or per column (--axis y) for each channel,\n"
                "and the total and the mean of the channel. Sums of integer samples are exact.\n"
                "Sums of f32 samples are computed in binary64 in a fixed order. --mean divides\n"
                "each sum by the number of its samples. Alpha is excluded; --alpha none\n"
                "includes it. All backends produce the same bits.\n",
            .examples = "gpufilter axis-sum in.png\n"
                        "gpufilter axis-sum --mean --csv in.png >means.csv\n"
                        "gpufilter axis-sum --axis y --csv in.png >columns.csv\n"
                        "gpufilter axis-sum --plot profile.svg scan.png\n"
                        "gpufilter axis-sum --json *.png >sums.jsonl\n",
            .params = params,
            .param_count = sizeof params / sizeof params[0],
            .inputs = 1,
            .has_chart = true,
            .cases = cases,
        },
    .plan_bytes = sizeof(gf_axis_sum_plan),
    .nodata = GF_NODATA_ZERO,
    .plan = plan_axis_sum,
    .golden = gf_axis_sum_golden,
    .cpu = {axis_sum_scratch_bytes, GF_LEVELS(gf_axis_sum_cpu)},
    .measure = &measure,
};
