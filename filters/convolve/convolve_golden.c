/* Golden implementation of convolve: one output sample after the other. */
#include <math.h>

#include "convolve/convolve.h"
#include "samples.h"

/* Return the sample that a tap reads for output pixel (x, y). */
static float golden_tap_sample(const gf_convolve_plan *plan, const gf_rows *in, uint32_t c,
                               int64_t x, int64_t y) {
    const gf_format *format = &plan->head.in;
    const int64_t column = gf_edge_index(plan->edge.mode, x, (int64_t)format->width),
                  row = gf_edge_index(plan->edge.mode, y, (int64_t)format->height);
    if (column < 0 || row < 0)
        return plan->edge.value;
    return gf_get_sample(format->type, gf_row(in, (uint64_t)row),
                         (uint64_t)column * format->channels + c);
}

static float golden_integer(const gf_convolve_plan *plan, const gf_rows *in, uint32_t c, int64_t x,
                            int64_t y) {
    const int64_t scale = (int64_t)plan->scale;
    int64_t n = (int64_t)plan->offset * scale;
    for (uint32_t i = 0; i < plan->count; i++) {
        const gf_convolve_tap *tap = &plan->taps[i];
        n += (int64_t)tap->weight * (int64_t)golden_tap_sample(plan, in, c, x + tap->x, y + tap->y);
    }
    return (float)gf_convolve_divide(
        n, scale); /* gf_put_sample clamps: values up to 65536 are exact */
}

static float golden_real(const gf_convolve_plan *plan, const gf_rows *in, uint32_t c, int64_t x,
                         int64_t y) {
    float s = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        const gf_convolve_tap *tap = &plan->taps[i];
        const float k = (float)tap->weight,
                    v = golden_tap_sample(plan, in, c, x + tap->x, y + tap->y);
        s = i ? fmaf(k, v, s) : k * v;
    }
    if (plan->scale != 1)
        s /= (float)plan->scale;
    if (plan->offset != 0)
        s += (float)plan->offset;
    return s;
}

gf_status gf_convolve_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_convolve_plan *plan = (const gf_convolve_plan *)head;
    const gf_format *format = &head->in;
    const gf_rows *in = &strip->in[0];
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        unsigned char *out = gf_row(&strip->out, y);
        for (uint64_t x = 0; x < format->width; x++)
            for (uint32_t c = 0; c < gf_measured_channels(format); c++) {
                const float result = (plan->form == GF_CONVOLVE_REAL
                                          ? golden_real
                                          : golden_integer)(plan, in, c, (int64_t)x, (int64_t)y);
                gf_put_sample(format->type, out, x * format->channels + c, result);
            }
        gf_restore_alpha(format, gf_row(in, y), out, format->width);
    }
    return GF_OK;
}
