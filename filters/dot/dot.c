/* dot: descriptor, parameters, plan and result. */
#include "dot/dot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/result.h"
#include "samples.h"

static const char *const cases[] = {"", NULL};

/* Approximate nanoseconds per byte of both images on one core. */
#define COST 0.2

static gf_status plan_dot(const gf_settings *settings, gf_plan *head, gf_error *error) {
    const uint64_t max = gf_type_max(head->in.type), widest = UINT64_MAX / (max * max);
    if (head->in.width > widest)
        return gf_fail(error, GF_FAILED,
                       "dot: rows of %" PRIu64
                       " pixels are too wide for exact 64-bit sums of %s products; "
                       "the limit is %" PRIu64 " pixels",
                       head->in.width, gf_type_name(head->in.type), widest);
    head->record =
        gf_measured_channels(&head->in) * gf_dot_sums(head->in.type) * (uint32_t)sizeof(uint64_t);
    head->cost = COST * (double)gf_type_bytes(head->in.type);
    return GF_OK;
}

static size_t dot_scratch_bytes(const gf_plan *plan) {
    /* the lanes of every sum of every channel */
    return plan->in.type == GF_F32
               ? (size_t)GF_LANES * GF_DOT_SUMS * plan->in.channels * sizeof(double)
               : 0;
}

/* Sums of one channel over all rows. */
typedef struct gf_dot_total {
    gf_u128 integer[GF_DOT_SUMS];
    double real[GF_DOT_SUMS]; /* for integer images: the integer sums, rounded once */
    uint64_t left;            /* samples that are left out */
} gf_dot_total;

typedef struct gf_dot_totals {
    const gf_left_out *left_out;                /* until the last row; NULL: no sample */
    gf_dot_total channels[GF_MAX_CHANNELS + 1]; /* and of all channels together */
} gf_dot_totals;

static gf_status open_totals(const gf_plan *plan, const gf_measure_options *keep, void **data,
                             gf_error *error) {
    gf_dot_totals *totals = *data = calloc(1, sizeof *totals);
    if (!totals)
        return gf_fail_memory(error, keep->name, sizeof *totals, "the totals");
    totals->left_out = keep->left_out;
    return GF_OK;
}

static gf_status dot_take_rows(const gf_plan *head, void *data, const gf_rows *records,
                               gf_error *error) {
    const uint32_t measured = gf_measured_channels(&head->in);
    const uint32_t sums = gf_dot_sums(head->in.type);
    gf_dot_total *totals = ((gf_dot_totals *)data)->channels;
    for (uint64_t y = records->y0; y < records->y0 + records->rows; y++) {
        const void *record = gf_record_of(records, y);
        for (uint32_t i = 0; i < measured * sums; i++) {
            gf_dot_total *total = &totals[i / sums];
            if (head->in.type == GF_F32)
                total->real[i % sums] += ((const double *)record)[i];
            else
                total->integer[i % sums] += ((const uint64_t *)record)[i];
        }
    }
    return GF_OK;
}

static gf_status dot_finish(const gf_plan *head, void *data, const void *state, gf_error *error) {
    const uint32_t measured = gf_measured_channels(&head->in);
    const gf_left_out *left_out = ((gf_dot_totals *)data)->left_out;
    gf_dot_total *channels = ((gf_dot_totals *)data)->channels, *all = &channels[measured];
    for (uint32_t c = 0; c < measured; c++) {
        all->left += channels[c].left = left_out ? left_out->all[c] : 0;
        for (uint32_t i = 0; i < GF_DOT_SUMS; i++) {
            all->integer[i] += channels[c].integer[i];
            all->real[i] += channels[c].real[i];
        }
    }
    for (gf_dot_total *total = channels; total <= all; total++) {
        gf_u128 *integer = total->integer;
        integer[GF_DOT_SSD] = integer[GF_DOT_AA] + integer[GF_DOT_BB] - 2 * integer[GF_DOT_AB];
        for (uint32_t i = 0; i < GF_DOT_SUMS; i++)
            total->real[i] =
                head->in.type == GF_F32 ? gf_canonical_double(total->real[i]) : (double)integer[i];
    }
    return GF_OK;
}

enum { CHANNEL, AB, AA, BB, COSINE, MSE, PSNR };

static void dot_describe(const gf_plan *head, const void *data, gf_result *result) {
    const uint32_t measured = gf_measured_channels(&head->in);
    const gf_value_type type = head->in.type == GF_F32 ? GF_VALUE_DOUBLE : GF_VALUE_UINT;
    gf_table *table = gf_result_add_table(result, "products", measured > 1 ? measured + 1 : 1);
    table->in_text = true;
    gf_table_add_columns(table, GF_VALUE_TEXT, "channel", NULL);
    gf_table_add_columns(table, type, "a.b", "a.a", "b.b", NULL);
    gf_table_add_columns(table, GF_VALUE_DOUBLE, "cosine", "mse", "psnr", NULL);
}

static gf_value dot_cell(const gf_plan *head, const void *data, size_t table, uint64_t row,
                         size_t column) {
    const uint32_t measured = gf_measured_channels(&head->in);
    const gf_dot_total *total = &((const gf_dot_totals *)data)->channels[row];
    const double *real = total->real, max = gf_type_max(head->in.type);
    const uint64_t pixels = head->in.width * head->in.height;
    const uint64_t count = (row < measured ? pixels : pixels * measured) - total->left;
    const double mse = real[GF_DOT_SSD] / (double)count;
    const double psnr = mse == 0 ? (double)INFINITY : 10 * log10(max * max / mse);
    const bool black = real[GF_DOT_AA] == 0 || real[GF_DOT_BB] == 0;
    const double cosine = /* 1 for equal images */
        black ? (double)NAN : real[GF_DOT_AB] / sqrt(real[GF_DOT_AA] * real[GF_DOT_BB]);
    const char *name = row < measured ? gf_channel_name(&head->in, (uint32_t)row) : "total";
    return column == CHANNEL         ? gf_value_text(name)
           : column == COSINE        ? gf_value_double(gf_canonical_double(cosine))
           : column == MSE           ? gf_value_double(gf_canonical_double(mse))
           : column == PSNR          ? gf_value_double(gf_canonical_double(psnr))
           : head->in.type == GF_F32 ? gf_value_double(real[column - AB + GF_DOT_AB])
                                     : gf_value_wide(total->integer[column - AB + GF_DOT_AB]);
}

static const gf_measure measure = {
    .open = open_totals,
    .rows = dot_take_rows,
    .finish = dot_finish,
    .describe = dot_describe,
    .cell = dot_cell,
    .close = free,
};

const gf_filter gf_dot_filter = {
    .info =
        {
            .name = "dot",
            .summary = "dot product, cosine, MSE and PSNR of two images",
            .operands = "A B",
            .details =
                "Computes, for each channel and for all channels together, the dot products\n"
                "a.b, a.a and b.b, the cosine similarity, the mean squared error and the peak\n"
                "signal-to-noise ratio in dB. The peak is 255, 65535 or, for f32 samples, 1.\n"
                "Sums of integer samples are exact. Sums of f32 samples are computed in\n"
                "binary64 in a fixed order. Alpha is excluded; --alpha none includes it.\n"
                "All backends produce the same bits.\n",
            .examples = "gpufilter dot a.png b.png\n"
                        "gpufilter dot --json original.png compressed.jpg\n",
            .inputs = 2,
            .cases = cases,
        },
    .plan_bytes = sizeof(gf_plan),
    .nodata = GF_NODATA_ZERO,
    .plan = plan_dot,
    .golden = gf_dot_golden,
    .cpu = {dot_scratch_bytes, GF_LEVELS(gf_dot_cpu)},
    .measure = &measure,
};
