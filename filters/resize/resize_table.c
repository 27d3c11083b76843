/* Tables of resize: windows, weights of the kernels, and taps in the form of a plan. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "resize/resize.h"

/* ---- weights --------------------------------------------------------------------------------- */

/* sin and cos of a C library may differ in the last bit. The operations below are defined by IEEE
 * 754. x is reduced to r = high + low, |r| <= pi / 4, and the terms up to r^3 are sums of two
 * doubles. */
double gf_resize_sin(double x, bool cosine) {
    /* pi / 2 in three parts. n <= 6: the products with the first two are exact. */
    const double part1 = 0x1.921fb544p+0, part2 = 0x1.0b4611a6p-34, part3 = 0x1.3198a2e037073p-69;
    int n = (int)(x * 0x1.45f306dc9c883p-1 + 0.5);
    const double a = x - n * part1, b = a - n * part2; /* a is exact */
    const double rest = ((a - b) - n * part2) - n * part3;
    const double high = b + rest, low = rest - (high - b);
    const double z = high * high, z_low = fma(high, high, -z) + 2 * high * low;
    double tail = 1, value;
    n += cosine;
    for (int k = 16 + n % 2; k > 4 - n % 2; k -= 2)
        tail = 1 - z * tail / (k * (k + 1));
    if (n % 2) { /* 1 - z / 2 + z^2 / 24 - ... */
        const double half = z / 2, sum = 1 - half;
        value = sum + (((1 - sum) - half) - z_low / 2 + z * z / 24 * tail);
    } else { /* r - r^3 / 6 + r^5 / 120 - ... */
        const double cube = z * high, cube_low = fma(z, high, -cube) + z_low * high + z * low;
        const double sixth = cube / 6, sixth_low = (fma(-6, sixth, cube) + cube_low) / 6;
        const double sum = high - sixth;
        value = sum + (((high - sum) - sixth) + (low - sixth_low) + cube * z / 120 * tail);
    }
    return n & 2 ? -value : value;
}

static const double pi = 0x1.921fb54442d18p+1; /* M_PI */

static double resize_sinc(double x) {
    return x == 0 ? 1 : gf_resize_sin(x * pi, false) / (x * pi);
}

/* Return the weight of a kernel at a distance. The operations and their order are those of Pillow,
 * as the rest of the weights. */
static double resize_weight(gf_resize_kernel kernel, double distance) {
    const double x = fabs(distance);
    switch (kernel) {
    case GF_RESIZE_BOX:
        return distance > -0.5 && distance <= 0.5;
    case GF_RESIZE_BILINEAR:
        return x < 1 ? 1 - x : 0;
    case GF_RESIZE_HAMMING:
        if (x == 0 || x >= 1)
            return x == 0;
        return resize_sinc(x) * ((double)0.54f + (double)0.46f * gf_resize_sin(x * pi, true));
    case GF_RESIZE_BICUBIC:
        return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
    default: /* GF_RESIZE_LANCZOS3 */
        return distance >= -3 && distance < 3 ? resize_sinc(x) * resize_sinc(x / 3) : 0;
    }
}

gf_range gf_resize_window(const gf_resize_side *side, uint64_t i, double *weights) {
    static const double supports[] = {0.5, 1, 1, 2, 3}; /* half the width of each kernel */
    const double scale = side->length / (double)side->out;
    const double stretch = side->antialias && scale > 1 ? scale : 1, inverse = 1 / stretch;
    const double center = side->from + ((double)i + 0.5) * scale;
    const double support = supports[side->kernel] * stretch;
    const double first = center - support + 0.5, end = center + support + 0.5;
    const gf_range window = {first > 0 ? (uint64_t)first : 0,
                             end < (double)side->in ? (uint64_t)end : side->in};
    const uint64_t count = window.end - window.first;
    double sum = 0;
    if (!weights)
        return window;
    for (uint64_t k = 0; k < count; k++) {
        const double distance = (double)(k + window.first) - center + 0.5;
        sum += weights[k] = resize_weight(side->kernel, distance * inverse);
    }
    for (uint64_t k = 0; k < count; k++)
        weights[k] /= sum;
    return window;
}

/* ---- taps ------------------------------------------------------------------------------------ */

int32_t gf_resize_fixed(double weight) {
    const double scaled = weight * (1 << GF_RESIZE_FIXED_BITS);
    return (int32_t)(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

/* Store the taps of a window in a form. Return false if they do not keep its promises. */
static bool resize_store(gf_resize_form form, const double *weights, uint64_t count, void *taps) {
    const double one = (double)(UINT64_C(1) << GF_RESIZE_WIDE_BITS);
    const int64_t half = 1 << (GF_RESIZE_FIXED_BITS - 1), max = 255;
    int64_t error = -2 * half, all = 0;
    double sum = 0, before = 0;
    for (uint64_t k = 0; k < count; k++) {
        const int32_t fixed = gf_resize_fixed(weights[k]);
        sum += weights[k];
        error += fixed;
        all += fixed < 0 ? -fixed : fixed;
        if (form == GF_RESIZE_SINGLE) {
            ((float *)taps)[k] = (float)weights[k];
        } else if (form == GF_RESIZE_FIXED) {
            ((int32_t *)taps)[k] = fixed;
        } else { /* differences of rounded sums: errors do not add up */
            const double rounded = k + 1 < count ? floor(sum * one + 0.5) : one;
            ((double *)taps)[k] = rounded - before;
            before = rounded;
        }
    }
    assert(all < 8 * half); /* see GF_RESIZE_WIDE */
    return form != GF_RESIZE_FIXED ||
           (error * max >= -half && error * max < half && all * max < INT32_MAX - half);
}

/* Fill in the tables in the form of the plan. Return false if the taps do not keep the promises of
 * the form. */
static bool resize_fill(const gf_resize_plan *plan, const gf_resize_side *side, gf_range *rows) {
    gf_resize_span *spans = plan->head.owned;
    double *taps = (double *)(spans + side->out);
    uint64_t next = 0;
    bool kept = true;
    for (uint64_t i = 0; i < side->out && kept; i++) {
        double *first = taps + next; /* weights, which taps of up to their size replace */
        const gf_range window = gf_resize_window(side, i, first);
        assert(window.first < window.end && window.end <= side->in);
        if (plan->down)
            rows[i] = window;
        uint64_t count = window.end - window.first;
        if (plan->form == GF_RESIZE_SINGLE) { /* 0 * NaN is NaN */
            for (; *first == 0; first++)
                count--;
            while (first[count - 1] == 0)
                count--;
        }
        spans[i] = (gf_resize_span){window.first + (uint64_t)(first - taps) - next, count, next};
        kept = resize_store(plan->form, first, count,
                            (unsigned char *)taps + next * gf_resize_tap_bytes(plan->form));
        next += count;
    }
    return kept;
}

gf_status gf_resize_set_tables(gf_resize_plan *plan, const gf_resize_side *side, gf_error *error) {
    uint64_t count = 0;
    assert(side->out > 0);
    plan->spans = side->out;
    if (side->in == side->out && side->length == (double)side->in) {
        plan->head.golden_only = plan->head.copies = true;
        return GF_OK; /* COPY */
    }
    for (uint64_t i = 0; i < side->out; i++) {
        const gf_range window = gf_resize_window(side, i, NULL);
        count += window.end - window.first;
    }
    const size_t spans = side->out * sizeof(gf_resize_span), taps = count * sizeof(double);
    const size_t rows = plan->down ? side->out * sizeof(gf_range) : 0;
    unsigned char *memory = plan->head.constants = plan->head.owned =
        calloc(1, spans + taps + rows);
    if (!memory)
        return gf_fail_memory(error, "resize", spans + taps + rows, "its tables");
    gf_range *map = (gf_range *)(void *)(memory + spans + taps);
    const gf_type type = plan->head.in.type;
    plan->form = type == GF_U8    ? GF_RESIZE_FIXED
                 : type == GF_U16 ? GF_RESIZE_WIDE
                                  : GF_RESIZE_SINGLE;
    if (!resize_fill(plan, side, map)) {
        plan->form = GF_RESIZE_WIDE;
        plan->head.golden_only = true; /* for windows of thousands of samples */
        (void)resize_fill(plan, side, map);
    }
    plan->head.rows = plan->down ? map : NULL;
    plan->head.constant_bytes = spans + count * gf_resize_tap_bytes(plan->form);
    return GF_OK;
}
