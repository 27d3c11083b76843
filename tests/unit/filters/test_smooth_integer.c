/* The integer form of smooth's plan against the floating-point chain, and the multiplication that
 * replaces a division in the kernels. */
#include <math.h>

#include "smooth/smooth.h"
#include "testing.h"

static bool plan_of(const char *text, gf_type type, gf_smooth_plan *plan) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    *plan = (gf_smooth_plan){
        .head = {.in = {.width = 100, .height = 1, .channels = 1, .type = type}, .inputs = 1}};
    plan->head.out = plan->head.in;
    const gf_status status = filter->plan(settings, &plan->head, NULL);
    return status == GF_OK;
}

TEST(the_default_is_seven_taps) {
    static const uint8_t taps[] = {3, 6, 11, 11, 11, 8, 5};
    gf_smooth_plan plan;
    assert_true(plan_of("", GF_U8, &plan));
    assert_int_equal(plan.integer.form, GF_SMOOTH_TAPS);
    assert_int_equal(plan.integer.reach, 3);
    assert_memory_equal(plan.integer.tap, taps, sizeof taps);
    /* 1.1f and 0.6f are not exactly 11/10 and 3/5. */
    assert_true(fabs((double)plan.integer.scale * 1250 / 33 - 1) < 1.0 / (1 << 22));
    /* 33 T / 1250 is a multiple of 1 / 1250: a tie, or at least 1 / 1250 away from one, which is
     * more than the tie margin. */
    assert_true(plan.integer.tie_margin > 0 && plan.integer.tie_margin < 1.0f / 1250);
}

TEST(selects_the_form) {
    static const struct {
        const char *text;
        gf_type type;
        gf_smooth_integer_form form;
        uint32_t reach;
    } wanted[] = {
        {"", GF_U16, GF_SMOOTH_CHAIN_ONLY, 0},
        {"", GF_F32, GF_SMOOTH_CHAIN_ONLY, 0},
        {"gain=0", GF_U8, GF_SMOOTH_CHAIN_ONLY, 0},
        {"radius=9", GF_U8, GF_SMOOTH_CHAIN_ONLY, 0},
        {"radius=8", GF_U8, GF_SMOOTH_TAPS, 9},
        {"weight=0.25 radius=3", GF_U8, GF_SMOOTH_TAPS, 4},
        {"weight=0.3333", GF_U8, GF_SMOOTH_SUMS, 3},
        {"weight=100", GF_U8, GF_SMOOTH_TAPS, 3},
        {"weight=0", GF_U8, GF_SMOOTH_TAPS, 3},
        {"stages=enhance", GF_U8, GF_SMOOTH_TAPS, 0},
        {"stages=enhance,blur radius=5", GF_U8, GF_SMOOTH_TAPS, 5},
        {"keep-brightness", GF_U8, GF_SMOOTH_TAPS, 3},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        gf_smooth_plan plan;
        assert_true(plan_of(wanted[i].text, wanted[i].type, &plan));
        if (plan.integer.form != wanted[i].form || plan.integer.reach != wanted[i].reach)
            fail_msg("'%s': form %d, reach %u", wanted[i].text, (int)plan.integer.form,
                     plan.integer.reach);
    }
}

/* Both axes: the taps add up to at most 256. */
TEST(selects_the_form_of_both_axes) {
    gf_smooth_plan plan;
    assert_true(plan_of("weight=0.25 radius=8", GF_U8, &plan)); /* 6 * 17 */
    assert_true(plan.integer.xy_scale > 0);
    assert_true(plan_of("weight=0.47368421 radius=3", GF_U8, &plan)); /* (9 + 9 + 19) * 7 = 259 */
    assert_int_equal(plan.integer.form, GF_SMOOTH_TAPS);
    assert_true(plan.integer.xy_scale == 0);
}

/* Return the form's value at position i in binary64, which is exact enough. */
static double value_at(const gf_smooth_integer *by, const uint8_t *signal, uint64_t i) {
    uint64_t taps = 0, sums[3] = {0};
    for (uint32_t k = 0; k <= 2 * by->reach; k++)
        taps += (uint64_t)by->tap[k] * signal[i - by->reach + k];
    if (by->form == GF_SMOOTH_TAPS)
        return (double)by->scale * (double)taps;
    for (uint64_t j = 0; j < 3; j++)
        for (uint32_t k = 0; k <= 2 * by->radius; k++)
            sums[j] += signal[i + j - 1 - by->radius + k];
    return (double)by->near * (double)(sums[0] + sums[1]) + (double)by->next * (double)sums[2];
}

static double largest_error; /* largest error so far, divided by the limit of the plan */

static void compare_with_chain(const gf_smooth_plan *plan, const uint8_t *samples, uint64_t n,
                               const char *text) {
    float signal[100], work[100];
    for (uint64_t i = 0; i < n; i++)
        signal[i] = samples[i];
    gf_smooth_golden_chain(plan, signal, work, 0, n, n);
    const gf_smooth_integer *by = &plan->integer;
    for (uint64_t i = by->reach; i + by->reach < n; i++) {
        const double value = value_at(by, samples, i), chain = (double)signal[i];
        if (value > 256 && chain >= 255.5)
            continue; /* both are stored as 255 */
        const double error = fabs(value - chain);
        if (error / ((double)by->tie_margin / 2) > largest_error)
            largest_error = error / ((double)by->tie_margin / 2);
        if (error > (double)by->tie_margin / 2)
            fail_msg("'%s': form %.9g, chain %.9g; tie margin %g", text, value, chain,
                     (double)by->tie_margin);
        /* Outside of the tie margin, both values round to the same integer. */
        const double rest = fabs(value - rint(value));
        if (0.5 - rest >= (double)by->tie_margin && rint(value) != rint(chain))
            fail_msg("'%s': %.9g and %.9g are stored differently", text, value, chain);
    }
}

#define SIDE 20

/* The same for both axes, with an image of SIDE x SIDE samples. Returns whether there is a form. */
static bool compare_both_axes(const gf_smooth_plan *plan, const uint8_t *samples,
                              const char *text) {
    float image[SIDE * SIDE], column[SIDE], work[SIDE];
    const gf_smooth_integer *by = &plan->integer;
    const uint64_t reach = by->reach, count = 2 * reach + 1;
    if (by->xy_scale == 0)
        return false;
    for (uint64_t i = 0; i < SIDE * SIDE; i++)
        image[i] = samples[i];
    for (uint64_t y = 0; y < SIDE; y++)
        gf_smooth_golden_chain(plan, image + y * SIDE, work, 0, SIDE, SIDE);
    for (uint64_t x = reach; x + reach < SIDE; x++) {
        for (uint64_t y = 0; y < SIDE; y++)
            column[y] = image[y * SIDE + x];
        gf_smooth_golden_chain(plan, column, work, 0, SIDE, SIDE);
        for (uint64_t y = reach; y + reach < SIDE; y++) {
            uint64_t sum = 0;
            for (uint64_t j = 0; j < count; j++)
                for (uint64_t k = 0; k < count; k++)
                    sum += (uint64_t)by->tap[j] * by->tap[k] *
                           samples[(y - reach + j) * SIDE + x - reach + k];
            assert_true(sum < 1 << 24);
            const double value = (double)by->xy_scale * (double)sum, chain = (double)column[y];
            const double error = fabs(value - chain) / (double)by->xy_tie_margin;
            if (value > 256 && chain >= 255.5)
                continue;
            largest_error = error > largest_error ? error : largest_error;
            if (error > 0.75)
                fail_msg("'%s', both axes: form %.9g, chain %.9g; tie margin %g", text, value,
                         chain, (double)by->xy_tie_margin);
        }
    }
    return true;
}

static void random_settings(test_random *random, char *text, size_t size) {
    static const char *const stages[] = {"", " stages=enhance,blur", " stages=blur,smooth",
                                         " stages=smooth", " keep-brightness"};
    const char *which = stages[test_below(random, sizeof stages / sizeof stages[0])];
    const bool enhances = which[0] == 0 || which[1] == 'k' || which[8] == 'e';
    const bool smooths = which[0] == 0 || which[1] == 'k' || which[8] != 'e';
    const bool blurs = which[0] == 0 || which[1] == 'k' || which[8] != 's';
    int at = 0;
    if (enhances)
        at += snprintf(text + at, size - (size_t)at, "gain=%g ",
                       0.05 + (double)test_below(random, 2000) / 701);
    if (smooths)
        at += snprintf(text + at, size - (size_t)at, "weight=%g ",
                       (double)(1 + test_below(random, 64)) / (double)(1 + test_below(random, 64)));
    if (blurs)
        at += snprintf(text + at, size - (size_t)at, "radius=%" PRIu64, test_below(random, 9));
    snprintf(text + at, size - (size_t)at, "%s", which);
}

TEST(the_chain_is_within_the_tie) {
    const uint64_t rounds = test_rounds(12) * 100;
    test_random random = {test_environment("GF_TEST_SEED", 20261120)};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    uint64_t forms[3] = {0};
    for (uint64_t round = 0; round < rounds; round++) {
        char text[128];
        random_settings(&random, text, sizeof text);
        gf_smooth_plan plan;
        assert_true(plan_of(text, GF_U8, &plan));
        forms[plan.integer.form]++;
        uint8_t samples[100];
        const uint64_t content = test_below(&random, 4), base = test_below(&random, 256);
        for (int i = 0; i < 100; i++) {
            const uint64_t x = test_next(&random);
            samples[i] = (uint8_t)(content == 0   ? x
                                   : content == 1 ? (x & 1 ? 255 : 0)
                                   : content == 2 ? base
                                                  : base + (x & 3));
        }
        compare_with_chain(&plan, samples, 100, text);
    }
    assert_int_equal(forms[GF_SMOOTH_CHAIN_ONLY], 0);
    assert_true(forms[GF_SMOOTH_TAPS] > 0 && forms[GF_SMOOTH_SUMS] > 0);
    print_message("%" PRIu64 " plans by taps, %" PRIu64
                  " by sums; largest error %.2f of the limit\n",
                  forms[GF_SMOOTH_TAPS], forms[GF_SMOOTH_SUMS], largest_error);
}

/* Round a value as the store does. */
static uint32_t stored(double value) {
    return value >= 255.5 ? 255 : (uint32_t)(value + 0.5);
}

/* Try all sums of a plan, at most 50000 of them. The stored value is the same on both sides of the
 * tie margin. Return the share of sums that take the exact path. */
static double try_every_sum(const gf_smooth_integer *by, const char *text) {
    gf_smooth_fixed fixed;
    assert_true(gf_smooth_fixed_of(by, &fixed));
    uint64_t all = 0, tried = 0, is_tie = 0;
    for (uint32_t k = 0; k <= 2 * by->reach; k++)
        all += by->tap[k];
    all *= 255;
    const uint64_t step = all / 50000 + 1;
    for (uint64_t sum = 0; sum <= all; sum += step) {
        const uint64_t taken = sum < fixed.max ? sum : fixed.max;
        const uint64_t word = taken * fixed.factor + fixed.half;
        if (word > UINT32_MAX)
            fail_msg("'%s': the sum %" PRIu64 " overflows", text, sum);
        tried++;
        if ((word >> 16 & 255) == 0) {
            is_tie++;
            continue;
        }
        const double value = (double)by->scale * (double)sum, tie = (double)by->tie_margin;
        const uint32_t low = stored(value < tie ? 0 : value - tie), high = stored(value + tie);
        if (word >> 24 != low || low != high)
            fail_msg("'%s': the sum %" PRIu64 ", %.9g, is stored as %" PRIu64, text, sum, value,
                     word >> 24);
    }
    return (double)is_tie / (double)tried;
}

TEST(the_chain_of_both_axes_is_within_the_tie) {
    const uint64_t rounds = test_rounds(12) * 100;
    test_random random = {test_environment("GF_TEST_SEED", 20261128)};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    uint64_t forms = 0;
    largest_error = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        char text[128];
        random_settings(&random, text, sizeof text);
        gf_smooth_plan plan;
        assert_true(plan_of(round % 4 ? text : round % 8 ? "" : "keep-brightness", GF_U8, &plan));
        uint8_t samples[SIDE * SIDE];
        const uint64_t base = test_below(&random, 256), range = 1 + test_below(&random, 256);
        for (int i = 0; i < SIDE * SIDE; i++)
            samples[i] = (uint8_t)(base + test_below(&random, range));
        forms += compare_both_axes(&plan, samples, text);
    }
    assert_true(forms > rounds / 4);
    print_message("%" PRIu64 " of %" PRIu64 " plans for both axes; largest error %.2f\n", forms,
                  rounds, largest_error);
}

TEST(fixed_point_rounds_every_sum) {
    gf_smooth_plan plan;
    gf_smooth_fixed fixed;
    assert_true(plan_of("", GF_U8, &plan));
    /* Of 1250 values between two integers, 5 are closer than 1/512 to the middle and count as ties.
     * Sums above 9669 are white and never ties. */
    const double share = try_every_sum(&plan.integer, "");
    assert_true(share > 0.8 * 5 / 1250 * 9669 / 14025 && share < 1.2 * 5 / 1250 * 9669 / 14025);
    /* With a small gain, all values are close to each other. */
    assert_true(plan_of("stages=enhance,blur radius=1 gain=0.003", GF_U8, &plan));
    try_every_sum(&plan.integer, "gain=0.003");
    /* Not supported: steps of 2 or 3, and weights that are not fractions. */
    assert_true(plan_of("stages=enhance gain=2.5", GF_U8, &plan));
    assert_false(gf_smooth_fixed_of(&plan.integer, &fixed));
    assert_true(plan_of("weight=0.3333", GF_U8, &plan));
    assert_false(gf_smooth_fixed_of(&plan.integer, &fixed));

    const uint64_t rounds = test_rounds(12) * 25;
    test_random random = {test_environment("GF_TEST_SEED", 20261120)};
    uint64_t tried = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        char text[128];
        random_settings(&random, text, sizeof text);
        assert_true(plan_of(text, GF_U8, &plan));
        if (!gf_smooth_fixed_of(&plan.integer, &fixed))
            continue;
        tried++;
        try_every_sum(&plan.integer, text);
    }
    assert_true(tried > rounds / 10);
    print_message("%" PRIu64 " of %" PRIu64 " plans in fixed point\n", tried, rounds);
}

/* q = fl(x * fl(1/n)), then q + fl(1/n) * (x - n q), each rounded once, equals fl(x / n). Both
 * sides scale with powers of two: without underflow, one binade proves all. */
TEST(a_corrected_quotient_is_the_division) {
    for (int n = 1; n <= 2 * GF_SMOOTH_INTEGER_REACH - 1; n++) {
        const float divisor = (float)n, inverse = 1.0f / divisor;
        for (uint32_t mantissa = 0; mantissa < 1u << 23; mantissa++) {
            const float x = (float)(mantissa + (1u << 23));
            const float quotient = x * inverse;
            const float got = fmaf(fmaf(-divisor, quotient, x), inverse, quotient);
            if (got != x / divisor)
                fail_msg("%g / %d: %.9g", (double)x, n, (double)got);
        }
    }
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Compute -(a * b + c). gcc would compute -a * b - c, a zero of the other sign. */
static float minus_fma(float a, float b, float c) {
    const volatile float sum = fmaf(a, b, c);
    return -sum;
}

/* The same for the divisors 3, 5 and 7, with underflow and up to the largest float. If the quotient
 * is subnormal, x - n q is also exact, and x / n is never a tie because n is odd. (All 2^32 floats
 * were tested once. An infinity yields NaN.) This form preserves -0. */
TEST(corrected_quotients_hold_at_extremes) {
    const uint32_t normal = 30u << 23, infinity = 255u << 23; /* far from underflow: 2^-97 */
    for (int n = 3; n <= 7; n += 2) {
        const float divisor = (float)n, inverse = 1.0f / divisor;
        for (uint32_t bits = 0; bits < infinity; bits += bits < 1u << 16           ? 1
                                                         : bits < normal           ? 11
                                                         : bits < infinity - 65536 ? 4099
                                                                                   : 1) {
            const float x = float_of(bits), quotient = x * inverse;
            const float got = fmaf(minus_fma(divisor, quotient, -x), inverse, quotient);
            if (got != x / divisor)
                fail_msg("%g / %d: %.9g", (double)x, n, (double)got);
        }
        const float got = fmaf(minus_fma(divisor, -0.0f, 0.0f), inverse, -0.0f);
        assert_true(got == 0 && signbit(got));
    }
}

/* x * high + fl(x * low), rounded once, equals fl(x / n) if high + low is 1/n with a relative error
 * below 2^-48, and nothing underflows. */
TEST(a_product_in_two_parts_is_the_division) {
    for (int n = 3; n <= 7; n += 2) {
        const float divisor = (float)n, high = 1.0f / divisor;
        const float low = (float)(1.0 / n - (double)high);
        for (uint32_t mantissa = 0; mantissa < 1u << 23; mantissa++) {
            const float x = (float)(mantissa + (1u << 23));
            const float got = fmaf(x, high, x * low);
            if (got != x / divisor)
                fail_msg("%g / %d: %.9g", (double)x, n, (double)got);
        }
    }
}

int main(void) {
    return test_main(NULL);
}
