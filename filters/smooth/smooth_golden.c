/* Golden implementation of smooth, scalar, one function per stage: docs/numerics.md defines it. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "samples.h"
#include "smooth/smooth.h"

/* Wider intermediates (x87) would round twice. */
_Static_assert(FLT_EVAL_METHOD == 0, "binary32 operations must round to binary32");

void gf_smooth_golden_enhance(const float *in, float *out, uint64_t n, float gain) {
    for (uint64_t i = 0; i < n; i++)
        out[i] = in[i] * gain;
}

void gf_smooth_golden_blur(const float *in, float *out, uint64_t n, uint32_t radius) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t lo = i < radius ? 0 : i - radius;
        uint64_t hi = n - 1 - i < radius ? n - 1 : i + radius;
        float sum = in[lo];
        for (uint64_t k = lo + 1; k <= hi; k++)
            sum = sum + in[k];
        out[i] = sum / (float)(hi - lo + 1);
    }
}

void gf_smooth_golden_smooth(const float *in, float *out, uint64_t n, float weight) {
    for (uint64_t i = 0; i < n; i++) {
        float t = in[i];
        if (i > 0)
            t = (t + in[i - 1]) * weight;
        if (i < n - 1)
            t = (t + in[i + 1]) * weight;
        out[i] = t;
    }
}

void gf_smooth_golden_keep(const float *in, float *out, uint64_t n, float inner_factor,
                           float end_factor) {
    for (uint64_t i = 0; i < n; i++) {
        const bool end = i == 0 || i == n - 1;
        out[i] = in[i] * (n == 1 ? 1 : end ? end_factor : inner_factor);
    }
}

void gf_smooth_golden_chain(const gf_smooth_plan *plan, float *signal, float *work, uint64_t first,
                            uint64_t n, uint64_t whole) {
    uint64_t begin, end;
    for (uint64_t i = first; i < first + n; i = end) {
        gf_smooth_tile(plan->tile, i, whole, &begin, &end);
        begin = begin < first ? first : begin;
        end = end > first + n ? first + n : end;
        float *tile = signal + (begin - first);
        uint64_t length = end - begin;
        gf_smooth_golden_enhance(tile, work, length, plan->gain);
        gf_smooth_golden_blur(work, tile, length, plan->radius);
        if (plan->smooth) {
            gf_smooth_golden_smooth(tile, work, length, plan->weight);
            gf_smooth_golden_keep(work, tile, length, plan->inner_factor, plan->end_factor);
        }
    }
}

/* Columns start at the first input row of the strip. Only the rows of strip->out are stored; the
 * others are halo. */
gf_status gf_smooth_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_smooth_plan *plan = (const gf_smooth_plan *)head;
    const gf_rows *in = &strip->in[0], *out = &strip->out;
    const gf_type type = head->in.type;
    const uint64_t width = head->in.width, height = in->rows;
    const uint64_t from = out->y0 - in->y0, to = from + out->rows;
    const uint32_t channels = head->in.channels;
    const uint64_t longest = width > height ? width : height, pixels = width * height;
    float *plane = calloc((size_t)(pixels + 2 * longest), sizeof(float)); /* one channel */
    if (!plane)
        return gf_fail_memory(error, "golden", pixels * sizeof(float), "one channel");
    float *signal = plane + pixels, *work = signal + longest;
    for (uint32_t c = 0; c < gf_measured_channels(&head->in); c++) {
        for (uint64_t y = 0; y < height; y++)
            for (uint64_t x = 0; x < width; x++)
                plane[y * width + x] =
                    gf_get_sample(type, gf_row(in, in->y0 + y), x * channels + c);
        if (plan->axis != GF_SMOOTH_Y)
            for (uint64_t y = 0; y < height; y++)
                gf_smooth_golden_chain(plan, plane + y * width, work, 0, width, width);
        if (plan->axis != GF_SMOOTH_X)
            for (uint64_t x = 0; x < width; x++) {
                for (uint64_t y = 0; y < height; y++)
                    signal[y] = plane[y * width + x];
                gf_smooth_golden_chain(plan, signal, work, in->y0, height, head->in.height);
                for (uint64_t y = 0; y < height; y++)
                    plane[y * width + x] = signal[y];
            }
        for (uint64_t y = from; y < to; y++)
            for (uint64_t x = 0; x < width; x++)
                gf_put_sample(type, gf_row(out, in->y0 + y), x * channels + c,
                              plane[y * width + x]);
    }
    for (uint64_t y = from; y < to; y++)
        gf_restore_alpha(&head->in, gf_row(in, in->y0 + y), gf_row(out, in->y0 + y), width);
    free(plane);
    return GF_OK;
}
