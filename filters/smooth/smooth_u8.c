#include "smooth/smooth_u8.h"

#include <math.h>
#include <string.h>

/* ---- which way ------------------------------------------------------------------------------- */

/* Values that round in 16 bits, found by trying every factor, and proven for every T by
 * tests/test_smooth_simd.c. Both have radius 2 and a weight of 0.6. */
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
#define MOST_VALUE 32000

/* How sums become values. False if they do not fit the loops. */
static bool weigh(gf_smooth_u8 *by) {
    const gf_smooth_integer *integer = &by->plan->integer;
    const uint16_t p = integer->tap[0], q = integer->tap[2 * integer->reach];
    const uint32_t most = 255 * (2 * integer->radius + 1);
    gf_smooth_weights weights = {
        .near = integer->near, .next = integer->next, .doubt = integer->doubt};
    if (!by->plan->smooth) { /* one sum, given twice */
        weights.p = 1;
        weights.scale = integer->scale / 2;
    } else if (integer->form == GF_SMOOTH_TAPS) {
        weights.near = integer->scale * (float)p;
        weights.next = integer->scale * (float)q;
        if (most * (2u * p + q) < 1u << 16) {
            weights.p = p;
            weights.q = q;
            weights.scale = integer->scale;
        }
    }
    by->weights = weights;
    const float largest = weights.p ? weights.scale * (float)(2 * weights.p + weights.q)
                                    : 2 * weights.near + weights.next;
    return largest * (float)most < MOST_VALUE;
}

/* Do the plan's taps fit the loop of seven, and how? */
static bool seven_of(gf_smooth_u8 *by) {
    const gf_smooth_integer *integer = &by->plan->integer;
    const gf_smooth_seven *exact = gf_smooth_exact_of(by->plan);
    if (exact) {
        by->seven = *exact;
        return true;
    }
    if (integer->form != GF_SMOOTH_TAPS || integer->reach > 3 || !by->simd->seven_scales)
        return false;
    by->seven = (gf_smooth_seven){
        .last = 2 * integer->reach, .scale = integer->scale, .doubt = integer->doubt};
    uint32_t sum = 0, largest = 0, before = 0;
    for (uint32_t k = 0; k <= 2 * integer->reach; k++) {
        const uint32_t tap = by->seven.tap[k] = integer->tap[k];
        largest = tap + before > largest ? tap + before : largest;
        before = tap;
        sum += tap;
    }
    const float most = 255.0f * (float)sum;
    return largest <= 128 && most < 65536 && most * integer->scale < MOST_VALUE;
}

/* ---- scratch --------------------------------------------------------------------------------- */

#define SUMS_OUTPUTS 2048 /* of one strip by sums */
#define RING 4            /* rows of sums: three that are needed and the next one */

static size_t row_sums(const gf_smooth_plan *plan) {
    const size_t sums =
        SUMS_OUTPUTS + (size_t)(2 * plan->integer.reach + 1) * GF_MAX_CHANNELS + GF_SMOOTH_U8_PAD;
    return (sums + 31) / 32 * 32;
}

size_t gf_smooth_u8_bytes(const gf_smooth_plan *plan) {
    if (plan->integer.form == GF_SMOOTH_CHAIN_ONLY)
        return 0;
    const size_t bytes = sizeof(gf_smooth_doubts) + RING * row_sums(plan) * sizeof(uint16_t);
    return (bytes + 63) / 64 * 64;
}

bool gf_smooth_u8_on(gf_smooth_u8 *by, const gf_smooth_plan *plan, const gf_smooth_u8_simd *simd,
                     void *scratch) {
    *by = (gf_smooth_u8){.plan = plan, .simd = simd};
    if (plan->integer.form == GF_SMOOTH_CHAIN_ONLY)
        return false;
    by->by_seven = seven_of(by);
    by->sums = scratch;
    by->doubts = (gf_smooth_doubts *)(void *)(by->sums + RING * row_sums(plan));
    return weigh(by) || by->by_seven;
}

/* ---- doubts ---------------------------------------------------------------------------------- */

/* Clamped and rounded to nearest even: after adding 2^23 no bits are left below 1. */
static uint8_t rounded(float x) {
    if (!(x > 0))
        return 0;
    return x < 255 ? (uint8_t)(x + 8388608.0f - 8388608.0f) : 255;
}

static inline float mean_of(const float *p, uint32_t radius) {
    float sum = p[0];
    for (uint32_t k = 1; k <= 2 * radius; k++)
        sum += p[k];
    return sum / (float)(2 * radius + 1);
}

/* One output by the chain, as docs/numerics.md defines it, from the first sample of its window. */
static inline uint8_t chain_of(const gf_smooth_plan *plan, const uint8_t *first, ptrdiff_t step,
                               uint32_t radius) {
    float p[2 * GF_SMOOTH_INTEGER_REACH + 1] = {0};
    for (uint32_t k = 0; k <= 2 * radius + 2; k++)
        p[k] = (float)first[(ptrdiff_t)k * step] * plan->gain;
    float t = mean_of(p + 1, radius);
    t = (t + mean_of(p, radius)) * plan->weight;
    t = (t + mean_of(p + 2, radius)) * plan->weight;
    return rounded(t * plan->inner_factor);
}

static uint8_t mean_alone(const gf_smooth_plan *plan, const uint8_t *first, ptrdiff_t step) {
    float p[2 * GF_SMOOTH_INTEGER_REACH + 1] = {0};
    for (uint32_t k = 0; k <= 2 * plan->radius; k++)
        p[k] = (float)first[(ptrdiff_t)k * step] * plan->gain;
    return rounded(mean_of(p, plan->radius));
}

/* More than one in so many, and the chain does all of them sooner than one by one. With a gain of
 * 1.5 or 2 every few sums lie in the middle between two integers. */
#define SELDOM 64

static void doubts_none(const gf_smooth_u8 *by, size_t n) {
    by->doubts->count = 0;
    by->doubts->enough = n / SELDOM + 8;
}

/* What is in doubt is made by the chain; false if that is too much to do one by one. */
static bool settle(const gf_smooth_u8 *by, uint8_t *dst, const uint8_t *first, ptrdiff_t step) {
    const gf_smooth_doubts *doubts = by->doubts;
    const gf_smooth_plan *plan = by->plan;
    if (doubts->count > doubts->enough)
        return false;
    for (size_t i = 0; i < doubts->count; i++) {
        const uint16_t at = doubts->at[i];
        if (!plan->smooth)
            dst[at] = mean_alone(plan, first + at, step);
        else if (plan->radius == 2) /* constants, for the compiler */
            dst[at] = chain_of(plan, first + at, step, 2);
        else if (plan->radius == 1)
            dst[at] = chain_of(plan, first + at, step, 1);
        else
            dst[at] = chain_of(plan, first + at, step, plan->radius);
    }
    return true;
}

/* ---- along rows ------------------------------------------------------------------------------ */

/* Far enough for memory to answer in time, near enough to stay in L1. */
static const gf_smooth_ahead along_row = {2048, 1024};

static bool row_by_sums(const gf_smooth_u8 *by, const uint8_t *first, uint8_t *dst, size_t n) {
    const gf_smooth_plan *plan = by->plan;
    const size_t step = plan->head.in.channels, more = plan->smooth ? 2 * step : 0;
    by->simd->along(by->sums, first, step, 2 * plan->radius + 1, n + more);
    by->simd->round(dst, by->sums, by->sums + more / 2, by->sums + more, n, &by->weights,
                    by->doubts);
    return settle(by, dst, first, (ptrdiff_t)step);
}

bool gf_smooth_u8_row(const gf_smooth_u8 *by, const uint8_t *in, uint8_t *dst, size_t n) {
    const size_t step = by->plan->head.in.channels;
    const uint8_t *first = in - by->plan->integer.reach * step;
    doubts_none(by, n);
    if (by->by_seven) {
        by->simd->seven(dst, first, (ptrdiff_t)step, n, &by->seven, along_row, by->doubts);
        return settle(by, dst, first, (ptrdiff_t)step);
    }
    const size_t strip = SUMS_OUTPUTS / step * step;
    for (size_t i = 0; i < n; i += strip) {
        doubts_none(by, n);
        if (!row_by_sums(by, first + i, dst + i, n - i < strip ? n - i : strip))
            return false;
    }
    return true;
}

/* ---- down columns ---------------------------------------------------------------------------- */

static uint64_t columns_by_taps(const gf_smooth_u8 *by, const gf_rows *in, const gf_rows *out,
                                size_t x, size_t n, uint64_t s, uint64_t e) {
    const ptrdiff_t step = (ptrdiff_t)in->stride;
    const gf_smooth_ahead next_row = {(2 * by->plan->integer.reach + 1) * in->stride, out->stride};
    for (uint64_t y = s; y < e; y++) {
        const uint8_t *first = gf_row(in, y - by->plan->integer.reach) + x;
        uint8_t *dst = gf_row(out, y) + x;
        doubts_none(by, n);
        by->simd->seven(dst, first, step, n, &by->seven, next_row, by->doubts);
        if (!settle(by, dst, first, step))
            return y;
        if (by->blend)
            by->blend(dst, gf_row(in, y) + x, n, by->alpha);
    }
    return e;
}

/* The ring's place for the sums around row y. */
static uint16_t *sums_at(const gf_smooth_u8 *by, uint64_t y) {
    return by->sums + y % RING * row_sums(by->plan);
}

/* From the sums around row y those around y + 1: one row comes in, one goes out. */
static void slide_to_next(const gf_smooth_u8 *by, const gf_rows *in, size_t x, size_t n,
                          uint64_t y) {
    const uint64_t r = by->plan->radius;
    by->simd->slide(sums_at(by, y + 1), sums_at(by, y), gf_row(in, y + 1 + r) + x,
                    gf_row(in, y - r) + x, n);
}

static uint64_t columns_by_sums(const gf_smooth_u8 *by, const gf_rows *in, const gf_rows *out,
                                size_t x, size_t n, uint64_t s, uint64_t e) {
    const gf_smooth_plan *plan = by->plan;
    const uint64_t r = plan->radius, side = plan->smooth ? 1 : 0;
    memset(sums_at(by, s - side), 0, n * sizeof(uint16_t));
    for (uint64_t y = s - side - r; y <= s - side + r; y++)
        by->simd->add(sums_at(by, s - side), gf_row(in, y) + x, n);
    if (side)
        slide_to_next(by, in, x, n, s - 1);
    for (uint64_t y = s; y < e; y++) {
        uint8_t *dst = gf_row(out, y) + x;
        if (side || y > s)
            slide_to_next(by, in, x, n, y - 1 + side);
        doubts_none(by, n);
        by->simd->round(dst, sums_at(by, y - side), sums_at(by, y), sums_at(by, y + side), n,
                        &by->weights, by->doubts);
        if (!settle(by, dst, gf_row(in, y - plan->integer.reach) + x, (ptrdiff_t)in->stride))
            return y;
        if (by->blend)
            by->blend(dst, gf_row(in, y) + x, n, by->alpha);
    }
    return e;
}

uint64_t gf_smooth_u8_columns(const gf_smooth_u8 *by, const gf_rows *in, const gf_rows *out,
                              size_t x, size_t n, uint64_t s, uint64_t e) {
    return by->by_seven ? columns_by_taps(by, in, out, x, n, s, e)
                        : columns_by_sums(by, in, out, x, n, s, e);
}
