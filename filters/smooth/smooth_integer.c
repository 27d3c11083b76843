/* Choice of the integer form of smooth for u8 samples: smooth.h defines the forms. */
#include "smooth/smooth.h"

/* Below this gain, products could be subnormal, with errors that are not relative to the value.
 * (With so small a --weight, the output is black in any arithmetic, or the factor compensates
 * it.) */
#define MIN_GAIN 1e-6f

/* Max numerator and denominator of a weight p / q: taps p, 2p + q and so on must fit in 8 bits. */
#define MAX_TAP 255

/* Is w the binary32 number nearest to a small fraction p / q? */
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

/* Max sum of the taps for both axes: S is below 2^16, and T is exact in binary32. */
#define MAX_XY_TAPS 256

/* Set the form for both axes, from the exact scale of one. The terms of T are >= 0, and their
 * weights are products of the weights of both passes: the roundings of both passes add up, as does
 * the error of the fraction p / q. Along x, the chain is not rounded to integers. xy_scale is
 * rounded once. The loops add the error of their own operations. */
static void smooth_set_xy(gf_smooth_integer *integer, double scale) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k <= 2 * integer->reach; k++)
        sum += integer->tap[k];
    if (sum > MAX_XY_TAPS)
        return;
    const double roundings = 2 * (2.0 * integer->radius + 7 + 1) + 1;
    integer->xy_scale = (float)(scale * scale);
    integer->xy_tie_margin = (float)(256 * roundings / 16777216 * 1.01);
}

gf_smooth_integer gf_smooth_integer_of(const gf_smooth_plan *plan) {
    gf_smooth_integer integer = {.form = GF_SMOOTH_CHAIN_ONLY};
    const uint32_t radius = plan->radius;
    if (plan->head.in.type != GF_U8 || plan->gain < MIN_GAIN ||
        radius + 1 > GF_SMOOTH_INTEGER_REACH)
        return integer;
    integer.radius = radius;
    integer.reach = radius + plan->smooth;
    /* Bound the difference between the integer form and the chain. The chain rounds at most
     * 2*radius + 7 times: the gain, 2*radius additions, the division, two additions and two
     * products, and the factor. All terms are >= 0: each rounding error is at most 2^-24 of the
     * value. Evaluating the form in binary32 rounds fewer than 8 times, including its constants,
     * which are computed in binary64; the fraction p / q is within 2^-24 of the weight. Values
     * above 256 do not matter: both are stored as 255. */
    const double roundings = 2.0 * radius + 1 + 6 + 8;
    integer.tie_margin = (float)(256 * roundings / 16777216 * 1.01);
    const double mean = (double)plan->gain / (2 * radius + 1);
    uint32_t p = 0, q = 1; /* taps of the means: p, p, q; one mean without the smooth stage */
    if (!plan->smooth) {
        integer.form = GF_SMOOTH_TAPS;
        integer.scale = (float)mean;
        integer.near = integer.scale / 2;
        for (uint32_t k = 0; k <= 2 * radius; k++)
            integer.tap[k] = 1;
        smooth_set_xy(&integer, mean);
        return integer;
    }
    const double w = plan->weight, factor = plan->inner_factor;
    if (smooth_is_fraction(plan->weight, &p, &q)) {
        integer.form = GF_SMOOTH_TAPS;
        const double scale = mean * w * factor / q;
        integer.scale = (float)scale;
        for (uint32_t k = 0; k <= 2 * radius; k++) {
            integer.tap[k] = (uint8_t)(integer.tap[k] + p);         /* mean at i - 1 */
            integer.tap[k + 1] = (uint8_t)(integer.tap[k + 1] + p); /* mean at i */
            integer.tap[k + 2] = (uint8_t)(integer.tap[k + 2] + q); /* mean at i + 1 */
        }
        integer.near = integer.scale * (float)p;
        integer.next = integer.scale * (float)q;
        smooth_set_xy(&integer, scale);
        return integer;
    }
    integer.form = GF_SMOOTH_SUMS;
    integer.near = (float)(mean * w * w * factor);
    integer.next = (float)(mean * w * factor);
    return integer;
}

/* `half` places the midpoint of two integers at the centre of the tie zone, which is 2^16 wide.
 *
 * The factor is off by at most 1/2, and a value by at most max / 2, always in the same direction:
 * half of that bias is subtracted. The other half must fit in the zone together with tie_margin,
 * plus 2 for truncation.
 *
 * Sums above max are replaced by max. Its value must be white and not a near-tie. This fails if one
 * step of T is about one step of the result, or more. */
bool gf_smooth_fixed_of(const gf_smooth_integer *integer, gf_smooth_fixed *fixed) {
    const double one = 1 << 24, tie_zone = 1 << 15;
    const double scale = (double)integer->scale, exact = scale * one, largest = 255.25 / scale;
    if (integer->form != GF_SMOOTH_TAPS || exact < 1 || scale > 1)
        return false;
    const uint32_t max_sum = (1 << 23) - 1;
    fixed->max = largest < max_sum ? (uint32_t)largest : max_sum;
    fixed->factor = (uint32_t)(exact + 0.5);
    const double bias = ((double)fixed->factor - exact) * (double)fixed->max / 2;
    fixed->half = (1u << 23) + (1u << 15) - (uint32_t)(int32_t)bias;
    return (double)integer->tie_margin * one + (bias < 0 ? -bias : bias) + 2 <= tie_zone &&
           (fixed->max == max_sum || (double)fixed->max * scale >= 254.5 + 2.0 / 256);
}
