/* When u8 samples may be smoothed by integers: smooth.h has the forms. */
#include "smooth/smooth.h"

/* Below these, products of the chain could be subnormal, with errors that are no longer a share of
 * the value. (A --weight that small gives black, in any arithmetic, or is undone by the factor.) */
#define MIN_GAIN 1e-6f

/* The largest p, q of a weight that is a fraction: taps p, 2p + q and so on must fit in 8 bits. */
#define MAX_TAP 255

/* The chain makes of whole numbers a value with at most radius*2 + 1 + 6 roundings: one for the
 * gain, 2*radius additions, the division, twice an addition and a product, the factor. All terms
 * are >= 0, so each rounding is an error of at most 2^-24 of the value. Evaluating the form in
 * binary32 takes fewer than 8 (its constants included, which are made in binary64; and the fraction
 * p / q is within 2^-24 of the weight). Values above 256 do not matter: both are stored as 255. */
static float smooth_tie_margin(uint32_t radius) {
    const double roundings = 2.0 * radius + 1 + 6 + 8;
    return (float)(256 * roundings / 16777216 * 1.01);
}

/* Is w, to the last bit, the binary32 number nearest to a small fraction p / q? */
static bool smooth_is_fraction(float w, uint32_t *p, uint32_t *q) {
    for (*q = 1; *q <= MAX_TAP; (*q)++) {
        const double numerator = (double)w * *q + 0.5;
        if (numerator * 2 + *q > MAX_TAP + 1)
            return false; /* 2p + q only grows with q */
        *p = (uint32_t)numerator;
        if (2 * *p + *q <= MAX_TAP && (float)((double)*p / *q) == w)
            return true;
    }
    return false;
}

gf_smooth_integer gf_smooth_integer_of(const gf_smooth_plan *plan) {
    gf_smooth_integer by = {.form = GF_SMOOTH_CHAIN_ONLY};
    const uint32_t radius = plan->radius;
    if (plan->head.in.type != GF_U8 || plan->gain < MIN_GAIN ||
        radius + 1 > GF_SMOOTH_INTEGER_REACH)
        return by;
    by.radius = radius;
    by.reach = radius + plan->smooth;
    by.tie_margin = smooth_tie_margin(radius);
    const double mean = (double)plan->gain / (2 * radius + 1);
    uint32_t p = 0, q = 1; /* taps of the means: p, p, q; without the smooth stage there is one */
    if (!plan->smooth) {
        by.form = GF_SMOOTH_TAPS;
        by.scale = (float)mean;
        for (uint32_t k = 0; k <= 2 * radius; k++)
            by.tap[k] = 1;
        return by;
    }
    const double w = plan->weight, factor = plan->inner_factor;
    if (smooth_is_fraction(plan->weight, &p, &q)) {
        by.form = GF_SMOOTH_TAPS;
        by.scale = (float)(mean * w * factor / q);
        for (uint32_t k = 0; k <= 2 * radius; k++) {
            by.tap[k] = (uint8_t)(by.tap[k] + p);         /* the mean before */
            by.tap[k + 1] = (uint8_t)(by.tap[k + 1] + p); /* the mean here */
            by.tap[k + 2] = (uint8_t)(by.tap[k + 2] + q); /* the mean after */
        }
        return by;
    }
    by.form = GF_SMOOTH_SUMS;
    by.near = (float)(mean * w * w * factor);
    by.next = (float)(mean * w * factor);
    return by;
}

/* The middle between two integers lies in the middle of the zone of doubt, which is 2^16 wide.
 *
 * The factor is off by at most 1/2, so a value by up to `most` / 2, all on one side: half of that
 * is taken away. It must fit in the zone beside the plan's own doubt, with 2 for what is cut off.
 *
 * Sums beyond `most` are taken for it: it must be white and out of doubt, which it is not if a step
 * of T is nearly a step of the result, or more. */
bool gf_smooth_fixed_of(const gf_smooth_integer *by, gf_smooth_fixed *fixed) {
    const double one = 1 << 24, zone = 1 << 15;
    const double scale = (double)by->scale, exact = scale * one, largest = 255.25 / scale;
    if (by->form != GF_SMOOTH_TAPS || exact < 1 || scale > 1)
        return false;
    const uint32_t every_sum = (1 << 23) - 1;
    fixed->max = largest < every_sum ? (uint32_t)largest : every_sum;
    fixed->factor = (uint32_t)(exact + 0.5);
    const double lean = ((double)fixed->factor - exact) * (double)fixed->max / 2;
    fixed->half = (1u << 23) + (1u << 15) - (uint32_t)(int32_t)lean;
    return (double)by->tie_margin * one + (lean < 0 ? -lean : lean) + 2 <= zone &&
           (fixed->max == every_sum || (double)fixed->max * scale >= 254.5 + 2.0 / 256);
}
