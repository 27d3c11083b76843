/* axis-sum as docs/numerics.md says it. */
#include "axis_sum/axis_sum.h"
#include "lanes.h"

static uint64_t integer_at(gf_type type, const unsigned char *row, uint64_t i) {
    return type == GF_U8 ? row[i] : ((const uint16_t *)(const void *)row)[i];
}

static double real_at(const unsigned char *row, uint64_t i) {
    return (double)((const float *)(const void *)row)[i];
}

static void sum_row(const gf_axis_sum_plan *plan, const unsigned char *row, void *record) {
    const gf_format *format = &plan->head.in;
    for (uint32_t c = 0; c < plan->measured; c++) {
        if (format->type != GF_F32) {
            uint64_t sum = 0;
            for (uint64_t x = 0; x < format->width; x++)
                sum += integer_at(format->type, row, x * format->channels + c);
            ((uint64_t *)record)[c] = sum;
        } else {
            double lane[GF_LANES] = {0};
            for (uint64_t x = 0; x < format->width; x++)
                lane[x % GF_LANES] += real_at(row, x * format->channels + c);
            ((double *)record)[c] = gf_golden_tree(lane);
        }
    }
}

/* Adds a row to the sums of all columns. */
static void add_row(const gf_format *format, const unsigned char *row, void *state) {
    for (uint64_t i = 0; i < gf_row_samples(format); i++) {
        if (format->type != GF_F32)
            ((uint64_t *)state)[i] += integer_at(format->type, row, i);
        else
            ((double *)state)[i] = gf_canonical_double(((double *)state)[i] + real_at(row, i));
    }
}

gf_status gf_axis_sum_golden(const gf_plan *head, const gf_band *band, gf_error *error) {
    (void)error;
    const gf_axis_sum_plan *plan = (const gf_axis_sum_plan *)head;
    for (uint64_t y = band->out.y0; y < band->out.y0 + band->out.rows; y++) {
        if (plan->columns)
            add_row(&head->in, gf_row(&band->in, y), band->state);
        else
            sum_row(plan, gf_row(&band->in, y), gf_record(head, &band->out, y));
    }
    return GF_OK;
}
