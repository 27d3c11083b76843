/* Golden implementation of dot: docs/numerics.md defines it. */
#include "dot/dot.h"
#include "samples.h"

/* Compute the sums of channel c of one row of integer samples. */
static void golden_integer_row(const gf_format *format, const unsigned char *a,
                               const unsigned char *b, uint32_t c, uint64_t *sums) {
    sums[GF_DOT_AB] = sums[GF_DOT_AA] = sums[GF_DOT_BB] = 0;
    for (uint64_t i = c; i < gf_row_samples(format); i += format->channels) {
        const uint64_t p = gf_sample_bits(format->type, a, i);
        const uint64_t q = gf_sample_bits(format->type, b, i);
        sums[GF_DOT_AB] += p * q;
        sums[GF_DOT_AA] += p * p;
        sums[GF_DOT_BB] += q * q;
    }
}

static void golden_real_row(const gf_format *format, const unsigned char *a, const unsigned char *b,
                            uint32_t c, double *sums) {
    double lanes[GF_DOT_SUMS][GF_LANES] = {{0}};
    for (uint64_t x = 0; x < format->width; x++) {
        const double p = (double)gf_get_sample(GF_F32, a, x * format->channels + c);
        const double q = (double)gf_get_sample(GF_F32, b, x * format->channels + c);
        const double d = p - q;
        lanes[GF_DOT_AB][x % GF_LANES] += p * q;
        lanes[GF_DOT_AA][x % GF_LANES] += p * p;
        lanes[GF_DOT_BB][x % GF_LANES] += q * q;
        lanes[GF_DOT_SSD][x % GF_LANES] += d * d;
    }
    for (int i = 0; i < GF_DOT_SUMS; i++)
        sums[i] = gf_golden_tree(lanes[i]);
}

gf_status gf_dot_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const uint32_t measured = gf_measured_channels(&head->in);
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        const unsigned char *a = gf_row(&strip->in[0], y), *b = gf_row(&strip->in[1], y);
        void *record = gf_record(head, strip, y);
        for (uint32_t c = 0; c < measured; c++)
            if (head->in.type == GF_F32)
                golden_real_row(&head->in, a, b, c, (double *)record + (size_t)c * GF_DOT_SUMS);
            else
                golden_integer_row(&head->in, a, b, c, (uint64_t *)record + (size_t)c * GF_DOT_SSD);
    }
    return GF_OK;
}
