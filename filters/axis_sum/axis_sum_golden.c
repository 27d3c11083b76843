/* Golden implementation of axis-sum: docs/numerics.md defines it. */
#include "axis_sum/axis_sum.h"
#include "samples.h"

gf_status gf_axis_sum_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const bool columns = ((const gf_axis_sum_plan *)head)->columns;
    const gf_format *format = &head->in;
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        const unsigned char *row = gf_row(&strip->in[0], y);
        for (uint32_t c = 0; !columns && c < gf_measured_channels(format); c++) {
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
                ((double *)gf_record(head, strip, y))[c] = gf_golden_tree(lane);
            else
                ((uint64_t *)gf_record(head, strip, y))[c] = sum;
        }
        for (uint64_t i = 0; columns && i < gf_row_samples(format); i++) {
            double *real = (double *)strip->state + i;
            if (format->type == GF_F32)
                *real = gf_canonical_double(*real + (double)gf_get_sample(GF_F32, row, i));
            else
                ((uint64_t *)strip->state)[i] += gf_sample_bits(format->type, row, i);
        }
    }
    return GF_OK;
}
