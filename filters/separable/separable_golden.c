/* Golden implementation of separable filters: one window after the other. separable.h defines the
 * arithmetic. Values are held in binary64, which represents all of them exactly. */
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "samples.h"
#include "separable/separable.h"

/* Return the sum along an axis: mid[-radius] to mid[radius] are the values of its window. */
static double golden_sum(const gf_separable_plan *plan, int axis, const double *mid) {
    const uint32_t r = plan->radius[axis], skipped = axis ? plan->radius[0] + 1 : 0;
    if (plan->form == GF_SEPARABLE_DOUBLE) {
        const double *t = (const double *)plan->head.constants + skipped;
        if (r == 0)
            return t[0] * mid[0];
        double s = t[r] * (mid[-(int)r] + mid[r]);
        for (uint32_t k = r - 1; k > 0; k--)
            s = fma(t[k], mid[-(int)k] + mid[k], s);
        return fma(t[0], mid[0], s);
    }
    if (plan->form == GF_SEPARABLE_SINGLE) {
        const float *t = (const float *)plan->head.constants + skipped;
        if (r == 0)
            return (double)(t[0] * (float)mid[0]);
        float s = t[r] * ((float)mid[-(int)r] + (float)mid[r]);
        for (uint32_t k = r - 1; k > 0; k--)
            s = fmaf(t[k], (float)mid[-(int)k] + (float)mid[k], s);
        return (double)fmaf(t[0], (float)mid[0], s);
    }
    const uint32_t *t = (const uint32_t *)plan->head.constants + skipped;
    uint64_t s = t[0] * (uint64_t)mid[0];
    for (uint32_t k = 1; k <= r; k++)
        s += t[k] * ((uint64_t)mid[-(int)k] + (uint64_t)mid[k]);
    return (double)s;
}

/* Return the value that the pass along y reads. */
static double golden_along_x(const gf_separable_plan *plan, const double *mid) {
    const double s = golden_sum(plan, 0, mid);
    return plan->form == GF_SEPARABLE_FIXED ? floor((s + 128) / 256) : s;
}

static double golden_sharpened(const gf_separable_plan *plan, double sample, double blurred) {
    if (plan->form == GF_SEPARABLE_DOUBLE) {
        const double d = sample - blurred;
        return fabs(d) < (double)plan->threshold ? sample : fma((double)plan->amount, d, sample);
    }
    const float v = (float)sample, d = v - (float)blurred;
    return (double)(fabsf(d) < plan->threshold ? v : fmaf(plan->amount, d, v));
}

/* Store the result of a window with the sum `s`. sample: the input at its center. */
static void golden_store(const gf_separable_plan *plan, double s, double sample, void *row,
                         uint64_t i) {
    const gf_type type = plan->head.in.type;
    if (plan->form == GF_SEPARABLE_FIXED) {
        s = (double)(((uint64_t)s + (UINT64_C(1) << 23)) >> 24);
    } else if (plan->form == GF_SEPARABLE_SUMS) {
        const uint64_t mean = ((uint64_t)s + plan->count / 2) / plan->count;
        s = (double)mean;
    } else if (plan->count > 1) {
        s = (double)((float)s / (float)plan->count);
    }
    if (plan->sharpen)
        s = golden_sharpened(plan, sample, s);
    /* Round once: a double near the midpoint of two integers could round to it as a float. */
    gf_put_sample(type, row, i, (float)(type == GF_F32 ? s : rint(s)));
}

/* Compute the pass along x of channel c for all input rows of a strip. After them, store the value
 * of rows outside the image. line: memory for a row and the samples around it. */
static void golden_rows(const gf_separable_plan *plan, const gf_rows *in, uint32_t c, double *line,
                        double *plane) {
    const gf_format *format = &plan->head.in;
    const int64_t width = (int64_t)format->width, r = plan->radius[0];
    for (uint64_t y = 0; y <= in->rows; y++) {
        for (int64_t x = -r; x < width + r; x++) {
            const int64_t at = y < in->rows ? gf_edge_index(plan->edge.mode, x, width) : -1;
            line[r + x] = at < 0 ? (double)plan->edge.value
                                 : (double)gf_get_sample(format->type, in->data + y * in->stride,
                                                         (uint64_t)at * format->channels + c);
        }
        for (int64_t x = 0; x < width; x++)
            plane[y * format->width + (uint64_t)x] = golden_along_x(plan, line + r + x);
    }
}

/* Compute the pass along y of channel c. line: memory for a column and the values around it. */
static void golden_columns(const gf_separable_plan *plan, const gf_strip *strip, uint32_t c,
                           double *line, const double *plane) {
    const gf_format *format = &plan->head.in;
    const gf_rows *in = &strip->in[0], *out = &strip->out;
    const int64_t height = (int64_t)format->height, r = plan->radius[1];
    const int64_t first = (int64_t)out->y0, rows = (int64_t)out->rows;
    for (uint64_t x = 0; x < format->width; x++) {
        for (int64_t y = -r; y < rows + r; y++) {
            const int64_t at = gf_edge_index(plan->edge.mode, first + y, height);
            const uint64_t row = at < 0 ? in->rows : (uint64_t)at - in->y0;
            line[r + y] = plane[row * format->width + x];
        }
        for (int64_t y = 0; y < rows; y++) {
            const uint64_t i = x * format->channels + c, at = (uint64_t)(first + y);
            golden_store(plan, golden_sum(plan, 1, line + r + y),
                         (double)gf_get_sample(format->type, gf_row(in, at), i), gf_row(out, at),
                         i);
        }
    }
}

gf_status gf_separable_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_separable_plan *plan = (const gf_separable_plan *)head;
    const gf_format *format = &head->in;
    const gf_rows *in = &strip->in[0], *out = &strip->out;
    const uint64_t size = format->width * (in->rows + 1);
    const uint64_t longest = format->width + format->height + 2 * GF_SEPARABLE_MAX_RADIUS;
    double *plane = calloc((size_t)(size + longest), sizeof(double));
    if (!plane)
        return gf_fail_memory(error, "golden", (size + longest) * sizeof(double), "one channel");
    for (uint32_t c = 0; c < gf_measured_channels(format); c++) {
        golden_rows(plan, in, c, plane + size, plane);
        golden_columns(plan, strip, c, plane + size, plane);
    }
    for (uint64_t y = out->y0; y < out->y0 + out->rows; y++)
        gf_restore_alpha(format, gf_row(in, y), gf_row(out, y), format->width);
    free(plane);
    return GF_OK;
}
