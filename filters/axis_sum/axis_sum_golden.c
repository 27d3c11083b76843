/* Golden implementation of axis-sum: docs/numerics.md defines it. */
#include "axis_sum/axis_sum.h"
#include "samples.h"

static void golden_add_samples(const gf_format *format, const unsigned char *row, void *record) {
    for (uint32_t c = 0; c < gf_measured_channels(format); c++) {
        uint64_t sum = 0;
        double lane[GF_LANES] = {0};
        for (uint64_t x = 0; x < format->width; x++) {
            const uint64_t i = x * format->channels + c;
            if (format->type == GF_F32)
                lane[x % GF_LANES] += (double)gf_get_sample(GF_F32, row, i);
            else
                sum += gf_sample_bits(format->type, row, i);
        }
        if (format->type == GF_F32)
            ((double *)record)[c] = gf_golden_tree(lane);
        else
            ((uint64_t *)record)[c] = sum;
    }
}

/* Add one row to the sums of all columns. */
static void golden_add_row(const gf_format *format, const unsigned char *row, void *state) {
    for (uint64_t i = 0; i < gf_row_samples(format); i++) {
        double *real = (double *)state + i;
        if (format->type == GF_F32)
            *real = gf_canonical_double(*real + (double)gf_get_sample(GF_F32, row, i));
        else
            ((uint64_t *)state)[i] += gf_sample_bits(format->type, row, i);
    }
}

gf_status gf_axis_sum_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_axis_sum_plan *plan = (const gf_axis_sum_plan *)head;
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        if (plan->columns)
            golden_add_row(&head->in, gf_row(&strip->in[0], y), strip->state);
        else
            golden_add_samples(&head->in, gf_row(&strip->in[0], y), gf_record(head, strip, y));
    }
    return GF_OK;
}
