/* Golden implementation of resize: one output sample after the other. */
#include <math.h>
#include <string.h>

#include "resize/resize.h"
#include "samples.h"

/* Compute sample i of a row. from: the first sample of its window; step: bytes between samples. */
static void golden_sample(const gf_resize_plan *plan, const gf_resize_span *span,
                          const void *all_taps, const unsigned char *from, size_t step, void *row,
                          uint64_t i) {
    const gf_type type = plan->head.in.type;
    int64_t sum = 0;
    float real = 0;
    for (uint64_t k = 0; k < span->count; k++, from += step) {
        const uint64_t t = span->taps + k;
        const int64_t v = gf_sample_bits(type, from, 0);
        if (plan->form == GF_RESIZE_FIXED)
            sum += v * ((const int32_t *)all_taps)[t];
        else if (plan->form == GF_RESIZE_WIDE)
            sum += v * (int64_t)((const double *)all_taps)[t];
        else if (k == 0)
            real = ((const float *)all_taps)[t] * gf_get_sample(type, from, 0);
        else
            real = fmaf(((const float *)all_taps)[t], gf_get_sample(type, from, 0), real);
    }
    /* Integers: nearest, halves up, and clamped; they are exact in binary32. */
    const int bits = plan->form == GF_RESIZE_FIXED ? GF_RESIZE_FIXED_BITS : GF_RESIZE_WIDE_BITS;
    if (plan->form != GF_RESIZE_SINGLE)
        real = (float)((sum + (INT64_C(1) << (bits - 1))) >> bits);
    gf_put_sample(type, row, i, real);
}

gf_status gf_resize_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_resize_plan *plan = (const gf_resize_plan *)head;
    const gf_resize_span *spans = strip->constants;
    const gf_rows *in = &strip->in[0];
    const uint32_t channels = head->in.channels;
    const size_t bytes = gf_type_bytes(head->in.type);
    const size_t step = plan->down ? in->stride : channels * bytes;
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        unsigned char *out = gf_row(&strip->out, y);
        if (plan->form == GF_RESIZE_COPY) {
            memcpy(out, gf_row(in, y), gf_row_bytes(&head->in));
            continue;
        }
        const void *taps = gf_resize_taps(plan, strip->constants);
        for (uint64_t i = 0; i < gf_row_samples(&head->out); i++) {
            const gf_resize_span *span = &spans[plan->down ? y : i / channels];
            const unsigned char *from =
                plan->down ? gf_row(in, span->first) + i * bytes
                           : gf_row(in, y) + (span->first * channels + i % channels) * bytes;
            golden_sample(plan, span, taps, from, step, out, i);
        }
    }
    return GF_OK;
}
