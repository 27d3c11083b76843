/* u8 samples inside a signal by integers, and those in doubt by the chain: smooth_cpu.h says what
 * a window and a doubt are. */
#include <math.h>
#include <string.h>

#include "smooth/smooth_cpu.h"

/* ---- which way ------------------------------------------------------------------------------- */

/* Values that round in 16 bits, found by trying every factor, and proven for every T by
 * tests/unit/filters/test_smooth_simd.c. Both have radius 2 and a weight of 0.6. */
static const struct {
    double scale;
    gf_smooth_seven by;
} exact_ways[] = {
    /* Gain 1.1, the default: 33 T / 1250, never less than 1/1250 from a middle unless on it. There
     * T = 625 + 1250 k, and T * 65169 mod 2^16 is 2^15 + 1 + 2 k; no other T comes close. */
    {33.0 / 1250, {{3, 6, 11, 11, 11, 8, 5, 0}, 6, 55365, 65169, -32768 + 16, 0, 0}},
    /* Gain 1 with --keep-brightness: T / 55 is never in the middle. */
    {1.0 / 55, {{3, 6, 11, 11, 11, 8, 5, 0}, 6, 38130, 0, -32768, 0, 0}},
};

/* The plan's scale is made of rounded parameters: a difference that is, of values up to 256, small
 * beside what `doubt` leaves. */
#define NEARLY (1.0 / (1 << 22))

const gf_smooth_seven *gf_smooth_exact_of(const gf_smooth_plan *plan) {
    const gf_smooth_integer *integer = &plan->integer;
    if (integer->form != GF_SMOOTH_TAPS || integer->reach != 3)
        return NULL;
    for (size_t i = 0; i < sizeof exact_ways / sizeof exact_ways[0]; i++) {
        if (memcmp(integer->tap, exact_ways[i].by.tap, 7) == 0 &&
            fabs((double)integer->scale / exact_ways[i].scale - 1) < NEARLY)
            return &exact_ways[i].by;
    }
    return NULL;
}

/* In units of 2^-16 with a sign bit. */
#define MAX_VALUE 32000

/* How sums become values. False if they do not fit the loops. */
static bool smooth_set_weights(gf_smooth_u8 *by) {
    const gf_smooth_integer *integer = &by->plan->integer;
    gf_smooth_weights *weights = &by->weights;
    *weights = (gf_smooth_weights){
        .near = integer->near, .next = integer->next, .tie_margin = integer->tie_margin};
    if (!by->plan->smooth) { /* one sum, given twice */
        weights->near = integer->scale / 2;
    } else if (integer->form == GF_SMOOTH_TAPS) {
        weights->near = integer->scale * (float)integer->tap[0];
        weights->next = integer->scale * (float)integer->tap[2 * integer->reach];
    }
    const float max = 255.0f * (float)(2 * integer->radius + 1);
    return max * (2 * weights->near + weights->next) < MAX_VALUE;
}

/* Do the plan's taps fit the loop of seven, and how? */
static bool smooth_set_seven(gf_smooth_u8 *by) {
    const gf_smooth_integer *integer = &by->plan->integer;
    const gf_smooth_seven *exact = gf_smooth_exact_of(by->plan);
    if (exact) {
        by->seven = *exact;
        return true;
    }
    if (integer->form != GF_SMOOTH_TAPS || integer->reach > 3 || !by->simd->seven_scales)
        return false;
    by->seven = (gf_smooth_seven){
        .last = 2 * integer->reach, .scale = integer->scale, .tie_margin = integer->tie_margin};
    uint32_t sum = 0, largest = 0, before = 0;
    for (uint32_t k = 0; k <= 2 * integer->reach; k++) {
        const uint32_t tap = by->seven.tap[k] = integer->tap[k];
        largest = tap + before > largest ? tap + before : largest;
        before = tap;
        sum += tap;
    }
    const float max = 255.0f * (float)sum;
    return largest <= 128 && max < 65536 && max * integer->scale < MAX_VALUE;
}

/* ---- scratch --------------------------------------------------------------------------------- */

#define SUMS_OUTPUTS 2048 /* of one segment by sums */
#define RING 4            /* rows of sums: three that are needed and the next one */

static size_t smooth_row_sums(const gf_smooth_plan *plan) {
    const size_t sums =
        SUMS_OUTPUTS + (size_t)(2 * plan->integer.reach + 1) * GF_MAX_CHANNELS + GF_SMOOTH_U8_PAD;
    return (sums + 31) / 32 * 32;
}

size_t gf_smooth_u8_bytes(const gf_smooth_plan *plan) {
    if (plan->integer.form == GF_SMOOTH_CHAIN_ONLY)
        return 0;
    const size_t bytes = sizeof(gf_smooth_ties) + RING * smooth_row_sums(plan) * sizeof(uint16_t);
    return (bytes + 63) / 64 * 64;
}

bool gf_smooth_u8_on(gf_smooth_u8 *by, const gf_smooth_plan *plan, const gf_smooth_simd *simd,
                     void *scratch) {
    *by = (gf_smooth_u8){.plan = plan, .simd = simd};
    if (plan->integer.form == GF_SMOOTH_CHAIN_ONLY)
        return false;
    by->by_seven = smooth_set_seven(by);
    by->sums = scratch;
    by->ties = (gf_smooth_ties *)(void *)(by->sums + RING * smooth_row_sums(plan));
    return smooth_set_weights(by) || by->by_seven;
}

/* ---- doubts ---------------------------------------------------------------------------------- */

/* Clamped and rounded to nearest even: after adding 2^23 no bits are left below 1. */
static uint8_t smooth_round_chain(float x) {
    if (!(x > 0))
        return 0;
    return x < 255 ? (uint8_t)(x + 8388608.0f - 8388608.0f) : 255;
}

static inline float smooth_window_mean(const float *p, uint32_t radius) {
    float sum = p[0];
    for (uint32_t k = 1; k <= 2 * radius; k++)
        sum += p[k];
    return sum / (float)(2 * radius + 1);
}

/* One output by the chain, as docs/numerics.md defines it, from the first sample of its window.
 * smooth: of the smooth stage, or of the blur alone. */
GF_INLINE uint8_t smooth_window_chain(const gf_smooth_plan *plan, const uint8_t *first,
                                      ptrdiff_t step, uint32_t radius, bool smooth) {
    float p[2 * GF_SMOOTH_INTEGER_REACH + 1] = {0};
    for (uint32_t k = 0; k <= 2 * radius + (smooth ? 2 : 0); k++)
        p[k] = (float)first[(ptrdiff_t)k * step] * plan->gain;
    if (!smooth)
        return smooth_round_chain(smooth_window_mean(p, radius));
    float t = smooth_window_mean(p + 1, radius);
    t = (t + smooth_window_mean(p, radius)) * plan->weight;
    t = (t + smooth_window_mean(p + 2, radius)) * plan->weight;
    return smooth_round_chain(t * plan->inner_factor);
}

/* More than one in so many, and the chain does all of them sooner than one by one. With a gain of
 * 1.5 or 2 every few sums lie in the middle between two integers. */
#define SELDOM 64

static void smooth_clear_ties(const gf_smooth_u8 *by, size_t n) {
    by->ties->count = 0;
    by->ties->enough = n / SELDOM + 8;
}

/* What is in doubt is made by the chain; false if that is too much to do one by one. */
static bool smooth_resolve_ties(const gf_smooth_u8 *by, uint8_t *dst, const uint8_t *first,
                                ptrdiff_t step) {
    const gf_smooth_ties *ties = by->ties;
    const gf_smooth_plan *plan = by->plan;
    if (ties->count > ties->enough)
        return false;
    for (size_t i = 0; i < ties->count; i++) {
        const uint16_t at = ties->at[i];
        if (!plan->smooth)
            dst[at] = smooth_window_chain(plan, first + at, step, plan->radius, false);
        else if (plan->radius == 2) /* constants, for the compiler */
            dst[at] = smooth_window_chain(plan, first + at, step, 2, true);
        else if (plan->radius == 1)
            dst[at] = smooth_window_chain(plan, first + at, step, 1, true);
        else
            dst[at] = smooth_window_chain(plan, first + at, step, plan->radius, true);
    }
    return true;
}

/* ---- along rows ------------------------------------------------------------------------------ */

/* Far enough for memory to answer in time, near enough to stay in L1. */
static const gf_smooth_ahead along_row = {2048, 1024};

bool gf_smooth_u8_row(const gf_smooth_u8 *by, const uint8_t *in, uint8_t *dst, size_t n) {
    const gf_smooth_plan *plan = by->plan;
    const size_t step = plan->head.in.channels, more = plan->smooth ? 2 * step : 0;
    const size_t segment = by->by_seven ? n : SUMS_OUTPUTS / step * step;
    const uint8_t *first = in - plan->integer.reach * step;
    for (size_t i = 0, some; i < n; i += some, first += some, dst += some) {
        some = n - i < segment ? n - i : segment;
        smooth_clear_ties(by, n);
        if (by->by_seven) {
            by->simd->seven(dst, first, (ptrdiff_t)step, some, &by->seven, along_row, by->ties);
        } else {
            by->simd->along(by->sums, first, step, 2 * plan->radius + 1, some + more);
            by->simd->round(dst, by->sums, by->sums + more / 2, by->sums + more, some, &by->weights,
                            by->ties);
        }
        if (!smooth_resolve_ties(by, dst, first, (ptrdiff_t)step))
            return false;
    }
    return true;
}

/* ---- down columns ---------------------------------------------------------------------------- */

/* The ring's place for the sums around row y. */
static uint16_t *smooth_sums_at(const gf_smooth_u8 *by, uint64_t y) {
    return by->sums + y % RING * smooth_row_sums(by->plan);
}

/* From the sums around row y those around y + 1: one row comes in, one goes out. */
static void smooth_slide_sums(const gf_smooth_u8 *by, const gf_rows *in, size_t x, size_t n,
                              uint64_t y) {
    const uint64_t r = by->plan->radius;
    by->simd->slide(smooth_sums_at(by, y + 1), smooth_sums_at(by, y), gf_row(in, y + 1 + r) + x,
                    gf_row(in, y - r) + x, n);
}

/* Make the sums that row s needs before the one that slides in with it. */
static void smooth_begin_sums(const gf_smooth_u8 *by, const gf_rows *in, size_t x, size_t n,
                              uint64_t s) {
    const uint64_t r = by->plan->radius, y0 = s - by->plan->smooth;
    memset(smooth_sums_at(by, y0), 0, n * sizeof(uint16_t));
    for (uint64_t y = y0 - r; y <= y0 + r; y++)
        by->simd->add(smooth_sums_at(by, y0), gf_row(in, y) + x, n);
    if (y0 < s)
        smooth_slide_sums(by, in, x, n, y0);
}

uint64_t gf_smooth_u8_columns(const gf_smooth_u8 *by, const gf_rows *in, const gf_rows *out,
                              size_t x, size_t n, uint64_t s, uint64_t e) {
    const gf_smooth_plan *plan = by->plan;
    const uint64_t reach = plan->integer.reach, side = plan->smooth;
    const ptrdiff_t step = (ptrdiff_t)in->stride;
    const gf_smooth_ahead next_row = {(2 * reach + 1) * in->stride, out->stride};
    if (!by->by_seven)
        smooth_begin_sums(by, in, x, n, s);
    for (uint64_t y = s; y < e; y++) {
        const uint8_t *first = gf_row(in, y - reach) + x;
        uint8_t *dst = gf_row(out, y) + x;
        smooth_clear_ties(by, n);
        if (by->by_seven) {
            by->simd->seven(dst, first, step, n, &by->seven, next_row, by->ties);
        } else {
            if (side || y > s)
                smooth_slide_sums(by, in, x, n, y - 1 + side);
            by->simd->round(dst, smooth_sums_at(by, y - side), smooth_sums_at(by, y),
                            smooth_sums_at(by, y + side), n, &by->weights, by->ties);
        }
        if (!smooth_resolve_ties(by, dst, first, step))
            return y;
        if (by->alpha)
            by->simd->blend(dst, gf_row(in, y) + x, n, by->alpha);
    }
    return e;
}
