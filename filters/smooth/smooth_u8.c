/* u8 samples inside a signal by integers, and near-ties by the exact path. smooth_cpu.h defines
 * windows and near-ties. */
#include <math.h>
#include <string.h>

#include "smooth/smooth_cpu.h"

/* Plans that round in 16 bits. The factors were found by exhaustive search, and
 * tests/unit/filters/test_smooth_simd.c verifies them for every T. All have radius 2 and weight
 * 0.6. */
static const struct {
    double scale;
    gf_smooth_seven seven;
} exact_forms[] = {
    /* Gain 1.1, the default: 33 T / 1250 is at least 1/1250 away from a midpoint unless it is one.
     * Midpoints are T = 625 + 1250 k, where T * 65169 mod 2^16 is 2^15 + 1 + 2 k; no other T is
     * near these values. */
    {33.0 / 1250, {{3, 6, 11, 11, 11, 8, 5, 0}, 6, 55365, 65169, -32768 + 16, 0, 0}},
    /* Gain 1 with --keep-brightness: T / 55 is never a midpoint. */
    {1.0 / 55, {{3, 6, 11, 11, 11, 8, 5, 0}, 6, 38130, 0, -32768, 0, 0}},
};

/* Relative tolerance for the plan's scale, which is computed from rounded parameters. For values up
 * to 256 the difference is small compared with the slack of tie_margin. */
#define SCALE_TOLERANCE (1.0 / (1 << 22))

const gf_smooth_seven *gf_smooth_exact_of(const gf_smooth_plan *plan) {
    const gf_smooth_integer *integer = &plan->integer;
    if (integer->form != GF_SMOOTH_TAPS || integer->reach != 3)
        return NULL;
    for (size_t i = 0; i < sizeof exact_forms / sizeof exact_forms[0]; i++)
        if (memcmp(integer->tap, exact_forms[i].seven.tap, 7) == 0 &&
            fabs((double)integer->scale / exact_forms[i].scale - 1) < SCALE_TOLERANCE)
            return &exact_forms[i].seven;
    return NULL;
}

/* Max value: it must fit in units of 2^-16 with a sign bit. */
#define MAX_VALUE 32000

/* Set up the seven-tap loop. Returns false if it does not support the plan's taps. */
static bool smooth_set_seven(gf_smooth_u8 *u8) {
    const gf_smooth_integer *integer = &u8->plan->integer;
    const bool xy = u8->plan->axis == GF_SMOOTH_XY;
    const gf_smooth_seven *exact = xy ? NULL : gf_smooth_exact_of(u8->plan);
    if (exact) {
        u8->seven = *exact;
        return true;
    }
    if (integer->form != GF_SMOOTH_TAPS || integer->reach > 3 ||
        !(xy ? integer->xy_scale > 0 : u8->simd->seven_scales))
        return false;
    u8->seven = (gf_smooth_seven){.last = 2 * integer->reach,
                                  .scale = xy ? integer->xy_scale : integer->scale,
                                  .tie_margin = xy ? integer->xy_tie_margin : integer->tie_margin};
    uint32_t sum = 0, largest = 0, before = 0;
    for (uint32_t k = 0; k <= 2 * integer->reach; k++) {
        const uint32_t tap = u8->seven.tap[k] = integer->tap[k];
        largest = tap + before > largest ? tap + before : largest;
        before = tap;
        sum += tap;
    }
    const float max = 255.0f * (float)sum;
    return largest <= 128 && max < 65536 &&
           max * (xy ? (float)sum : 1) * u8->seven.scale < MAX_VALUE;
}

#define SUMS_OUTPUTS 2048 /* max outputs per segment computed from sums */
#define RING 4            /* rows of sums: three in use and the next one */
#define XY_ROWS 7         /* rows of sums for both axes */

static size_t smooth_row_sums(const gf_smooth_plan *plan) {
    const size_t sums =
        SUMS_OUTPUTS + (size_t)(2 * plan->integer.reach + 1) * GF_MAX_CHANNELS + GF_SMOOTH_U8_PAD;
    return (sums + 31) / 32 * 32;
}

static size_t smooth_sums_bytes(const gf_smooth_plan *plan) {
    return plan->axis == GF_SMOOTH_XY ? XY_ROWS * GF_SMOOTH_XY_MAX * sizeof(float)
                                      : RING * smooth_row_sums(plan) * sizeof(uint16_t);
}

size_t gf_smooth_u8_bytes(const gf_smooth_plan *plan) {
    if (plan->integer.form == GF_SMOOTH_CHAIN_ONLY)
        return 0;
    return smooth_sums_bytes(plan) + (sizeof(gf_smooth_ties) + 63) / 64 * 64;
}

bool gf_smooth_u8_init(gf_smooth_u8 *u8, const gf_smooth_plan *plan, const gf_smooth_simd *simd,
                       void *scratch) {
    const gf_smooth_integer *integer = &plan->integer;
    *u8 = (gf_smooth_u8){.plan = plan, .simd = simd};
    if (integer->form == GF_SMOOTH_CHAIN_ONLY)
        return false;
    u8->use_seven = smooth_set_seven(u8);
    u8->sums = scratch;
    u8->ties = (gf_smooth_ties *)(void *)((unsigned char *)scratch + smooth_sums_bytes(plan));
    if (plan->axis == GF_SMOOTH_XY)
        return u8->use_seven && !plan->tile;
    const float max = 255.0f * (float)(2 * integer->radius + 1); /* of a sum */
    return u8->use_seven || max * (2 * integer->near + integer->next) < MAX_VALUE;
}

/* With more near-ties than one in this many samples, running the chain on all samples is faster.
 * With gain 1.5 or 2, every few sums are midpoints. */
#define MIN_SAMPLES_PER_TIE 64

static void smooth_clear_ties(const gf_smooth_u8 *u8, size_t n) {
    u8->ties->count = 0;
    u8->ties->limit = n / MIN_SAMPLES_PER_TIE + 8;
}

/* Recompute near-ties by the chain. Returns false if there are too many. stride: between rows, for
 * both axes; 0: one axis. */
static bool smooth_resolve_ties(const gf_smooth_u8 *u8, uint8_t *dst, const uint8_t *first,
                                ptrdiff_t step, ptrdiff_t stride) {
    if (u8->ties->count > u8->ties->limit)
        return false;
    u8->simd->resolve(u8->plan, dst, first, step, stride, u8->ties);
    return true;
}

/* Far enough to hide the memory latency, near enough to stay in L1. */
static const gf_smooth_distance along_row = {2048, 1024};

bool gf_smooth_u8_row(const gf_smooth_u8 *u8, const uint8_t *in, uint8_t *dst, size_t n) {
    const gf_smooth_plan *plan = u8->plan;
    const size_t step = plan->head.in.channels, extra = plan->smooth ? 2 * step : 0;
    const size_t segment = u8->use_seven ? n : SUMS_OUTPUTS / step * step;
    const uint8_t *first = in - plan->integer.reach * step;
    for (size_t i = 0, count; i < n; i += count, first += count, dst += count) {
        count = n - i < segment ? n - i : segment;
        smooth_clear_ties(u8, n);
        if (u8->use_seven) {
            u8->simd->seven(dst, first, (ptrdiff_t)step, count, &u8->seven, along_row, u8->ties);
        } else {
            u8->simd->along(u8->sums, first, step, 2 * plan->radius + 1, count + extra);
            u8->simd->round(dst, u8->sums, u8->sums + extra / 2, u8->sums + extra, count,
                            &plan->integer, u8->ties);
        }
        if (!smooth_resolve_ties(u8, dst, first, (ptrdiff_t)step, 0))
            return false;
    }
    return true;
}

/* Return the ring entry of the sums around row y. */
static uint16_t *smooth_sums_at(const gf_smooth_u8 *u8, uint64_t y) {
    return u8->sums + y % RING * smooth_row_sums(u8->plan);
}

/* Derive the sums around row y + 1 from those around row y: add one row and subtract one. */
static void smooth_slide_sums(const gf_smooth_u8 *u8, const gf_rows *in, size_t x, size_t n,
                              uint64_t y) {
    const uint64_t r = u8->plan->radius;
    u8->simd->slide(smooth_sums_at(u8, y + 1), smooth_sums_at(u8, y), gf_row(in, y + 1 + r) + x,
                    gf_row(in, y - r) + x, n);
}

/* Far enough for memory to respond: a row of a segment takes less than a microsecond. */
#define XY_PREFETCH_ROWS 2

/* As gf_smooth_u8_columns, along both axes. The sums along each row are computed once. */
static uint64_t smooth_u8_xy(const gf_smooth_u8 *u8, const gf_rows *in, const gf_rows *out,
                             size_t x, size_t n, uint64_t s, uint64_t e) {
    const uint64_t reach = u8->plan->integer.reach;
    const size_t step = u8->plan->head.in.channels, left = x - reach * step;
    float *const ring = (float *)(void *)u8->sums;
    const float *sums[XY_ROWS];
    uint64_t next = s - reach; /* row whose sums are computed next */
    for (uint64_t y = s; y < e; y++) {
        for (; next <= y + reach; next++)
            u8->simd->sums_x(ring + next % XY_ROWS * GF_SMOOTH_XY_MAX, gf_row(in, next) + left,
                             step, n, &u8->seven, XY_PREFETCH_ROWS * in->stride);
        for (uint64_t k = 0; k < XY_ROWS; k++) { /* unused taps are 0 */
            const uint64_t row = y - reach + (k < 2 * reach ? k : 2 * reach);
            sums[k] = ring + row % XY_ROWS * GF_SMOOTH_XY_MAX;
        }
        uint8_t *dst = gf_row(out, y) + x;
        smooth_clear_ties(u8, n);
        u8->simd->round_xy(dst, sums, n, &u8->seven, XY_PREFETCH_ROWS * out->stride, u8->ties);
        if (!smooth_resolve_ties(u8, dst, gf_row(in, y - reach) + left, (ptrdiff_t)step,
                                 (ptrdiff_t)in->stride))
            return y;
        if (u8->alpha)
            u8->simd->blend(dst, gf_row(in, y) + x, n, u8->alpha);
    }
    return e;
}

uint64_t gf_smooth_u8_columns(const gf_smooth_u8 *u8, const gf_rows *in, const gf_rows *out,
                              size_t x, size_t n, uint64_t s, uint64_t e) {
    if (u8->plan->axis == GF_SMOOTH_XY)
        return smooth_u8_xy(u8, in, out, x, n, s, e);
    const gf_smooth_plan *plan = u8->plan;
    const uint64_t reach = plan->integer.reach, side = plan->smooth;
    const ptrdiff_t step = (ptrdiff_t)in->stride;
    const gf_smooth_distance next_row = {(2 * reach + 1) * in->stride, out->stride};
    if (!u8->use_seven) { /* the sums before the last one of row s, which smooth_slide_sums adds */
        const uint64_t r = plan->radius, y0 = s - side;
        memset(smooth_sums_at(u8, y0), 0, n * sizeof(uint16_t));
        for (uint64_t y = y0 - r; y <= y0 + r; y++)
            u8->simd->add(smooth_sums_at(u8, y0), gf_row(in, y) + x, n);
        if (y0 < s)
            smooth_slide_sums(u8, in, x, n, y0);
    }
    for (uint64_t y = s; y < e; y++) {
        const uint8_t *first = gf_row(in, y - reach) + x;
        uint8_t *dst = gf_row(out, y) + x;
        smooth_clear_ties(u8, n);
        if (u8->use_seven) {
            u8->simd->seven(dst, first, step, n, &u8->seven, next_row, u8->ties);
        } else {
            if (side || y > s)
                smooth_slide_sums(u8, in, x, n, y - 1 + side);
            u8->simd->round(dst, smooth_sums_at(u8, y - side), smooth_sums_at(u8, y),
                            smooth_sums_at(u8, y + side), n, &plan->integer, u8->ties);
        }
        if (!smooth_resolve_ties(u8, dst, first, step, 0))
            return y;
        if (u8->alpha)
            u8->simd->blend(dst, gf_row(in, y) + x, n, u8->alpha);
    }
    return e;
}
