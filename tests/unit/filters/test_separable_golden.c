/* gaussian, box and sharpen: taps, values computed by hand, and the bounds that docs/numerics.md
 * states, for windows that maximise the error. */
#include <float.h>
#include <math.h>

#include "measuring.h"
#include "separable/separable.h"

enum { LONGEST = 2 * GF_SEPARABLE_MAX_RADIUS + 1 };

/* ---- taps ------------------------------------------------------------------------------------ */

/* Compute the taps t[0..radius] in long double, with exp of the C library. */
static void real_taps(double sigma, uint32_t radius, long double *t) {
    long double sum = 0;
    for (uint32_t k = radius; k > 0; k--) {
        const long double x = (long double)k / (long double)sigma;
        t[k] = expl(-x * x / 2);
        sum += 2 * t[k];
    }
    t[0] = 1;
    for (uint32_t k = radius + 1; k-- > 0;)
        t[k] /= sum + 1;
}

/* Values of mpmath with 200 bits, and the bits that the definition gives. */
TEST(taps_have_the_defined_bits) {
    static const struct {
        double sigma;
        uint32_t radius, k;
        double defined, real;
    } cases[] = {
        {1, 4, 0, 0x1.9884a307594fbp-2, 0x1.9884a307594fbp-2},
        {1, 4, 2, 0x1.ba4b99d1799abp-5, 0x1.ba4b99d1799aap-5},
        {1, 4, 4, 0x1.18a9c4fd536c6p-13, 0x1.18a9c4fd536c6p-13},
        {0.2, 1, 1, 0x1.f42ddfa5489cep-19, 0x1.f42ddfa5489dap-19},
        {5, 20, 0, 0x1.46d39dcd3d08cp-4, 0x1.46d39dcd3d08cp-4},
        {5, 20, 13, 0x1.64156b94ff936p-9, 0x1.64156b94ff938p-9},
        {120, 480, 0, 0x1.b3c74a1fc795ap-9, 0x1.b3c74a1fc795dp-9},
        {120, 480, 480, 0x1.2b644ba96e97fp-20, 0x1.2b644ba96e980p-20},
    };
    double t[GF_SEPARABLE_MAX_RADIUS + 1];
    long double real[GF_SEPARABLE_MAX_RADIUS + 1];
    const volatile long double one = 1;
    const bool extended = one + LDBL_EPSILON > one; /* valgrind computes in binary64 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gf_separable_gaussian(cases[i].sigma, cases[i].radius, t);
        real_taps(cases[i].sigma, cases[i].radius, real);
        if (t[cases[i].k] != cases[i].defined ||
            (extended && (double)real[cases[i].k] != cases[i].real))
            fail_msg("sigma %g, tap %u: %a, real %La", cases[i].sigma, cases[i].k, t[cases[i].k],
                     real[cases[i].k]);
    }
}

/* The relative error of a tap at distance k is below (16 + 2 (k / sigma)^2) * 2^-53. Taps in fixed
 * point are real taps rounded up or down. */
TEST(taps_are_close_to_real_ones) {
    for (double sigma = 0.2; sigma < 121; sigma *= 1.05)
        for (uint32_t radius = 1; radius <= GF_SEPARABLE_MAX_RADIUS; radius += 1 + radius / 6) {
            double t[GF_SEPARABLE_MAX_RADIUS + 1];
            long double real[GF_SEPARABLE_MAX_RADIUS + 1];
            uint32_t fixed[GF_SEPARABLE_MAX_RADIUS + 1], sum = 0;
            gf_separable_gaussian(sigma, radius, t);
            real_taps(sigma, radius, real);
            for (uint32_t k = 0; k <= radius; k++) {
                const double x = k / sigma, bound = (16 + 2 * x * x) * 0x1p-53;
                if (fabsl((long double)t[k] - real[k]) > (long double)bound * real[k] + 1e-300L)
                    fail_msg("sigma %g, tap %u: %a, real %La", sigma, k, t[k], real[k]);
            }
            if (radius > GF_SEPARABLE_NARROW)
                continue;
            gf_separable_fixed(t, radius, fixed);
            for (uint32_t k = 0; k <= radius; k++) {
                sum += (k ? 2 : 1) * fixed[k];
                assert_true(fabs(fixed[k] - t[k] * 65536) <= 1);
            }
            assert_int_equal(sum, 65536);
            assert_true(fixed[0] % 2 == 0 && (fixed[0] < 65536 || !fixed[1]));
        }
}

/* ---- values computed by hand ----------------------------------------------------------------- */

typedef struct example {
    const char *filter, *text;
    uint64_t width, height;
    const void *in, *out;
} example;

static void check_examples(gf_type type, const example *examples, size_t count) {
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (const example *e = examples; e < examples + count; e++) {
            const gf_format format = {e->width, e->height, 1, type, false};
            const size_t size = (size_t)(e->width * e->height) << type;
            unsigned char got[256];
            print_message("%s: %s %s\n", *backend, e->filter, e->text);
            test_measure(*backend, e->filter, e->text, format, e->in, NULL, got);
            assert_memory_equal(got, e->out, size);
        }
}

TEST(bytes) {
    static const uint8_t impulse[] = {0, 0, 255, 0, 0}, ramp[] = {0, 1, 5},
                         tie[] = {42, 80, 101, 80, 42},
                         step[] = {100, 100, 100, 100, 200, 100, 100, 100, 100};
    /* FIXED. The taps of sigma 0.5 are 51548, 6977 and 17.
     * 51548 * 255 + 128 = 51346 * 256 + 292, and 51346 / 256 = 200.6. 6977 * 255 gives 27.15.
     * tie: 51548 * 101 + 6977 * 160 + 17 * 84 + 128 = 256 * (96 * 256 + 128): 96.5 is rounded up.
     * SUMS. Windows of 3 add up to 2, 6 and 11: means 0.67, 2 and 3.67 (replicate), or 2, 6 and 7
     * (mirror). Constant 9: 10, 6 and 15.
     * sharpen. The taps of sigma 1 are 0.39894, 0.24197, 0.05399, 0.00443 and 0.00013: the center
     * becomes 200 + 60.1, its neighbours 100 - 24.2, 100 - 5.4, 100 - 0.4 and 100 - 0.01. */
    const example examples[] = {
        {"gaussian", "sigma=0.5,0", 5, 1, impulse, (uint8_t[]){0, 27, 201, 27, 0}},
        {"gaussian", "sigma=0,0.5", 1, 5, impulse, (uint8_t[]){0, 27, 201, 27, 0}},
        {"gaussian", "sigma=0.5,0", 5, 1, tie, (uint8_t[]){50, 78, 97, 78, 50}},
        {"box", "radius=1,0 edge=replicate", 3, 1, ramp, (uint8_t[]){0, 2, 4}},
        {"box", "radius=1,0", 3, 1, ramp, (uint8_t[]){1, 2, 2}},
        {"box", "radius=0,1 edge=constant:9", 1, 3, ramp, (uint8_t[]){3, 2, 5}},
        {"sharpen", "sigma=1,0", 9, 1, step, (uint8_t[]){100, 100, 95, 76, 255, 76, 95, 100, 100}},
        {"sharpen", "sigma=1,0 amount=0.5", 9, 1, step,
         (uint8_t[]){100, 100, 97, 88, 230, 88, 97, 100, 100}},
        {"sharpen", "sigma=1,0 threshold=6", 9, 1, step,
         (uint8_t[]){100, 100, 100, 76, 255, 76, 100, 100, 100}},
        {"sharpen", "amount=0", 9, 1, step, step},
    };
    check_examples(GF_U8, examples, sizeof examples / sizeof *examples);
}

TEST(words) {
    /* Windows of 3 x 3 of a 2 x 2 image add up to 274, 242, 212 and 181. 65535 * 0.0033247 = 217.9
     * at the center of 120: DOUBLE. 65535 * 0.078212 = 5125.6, and * 0.079792 = 5229.1: SINGLE. */
    static const uint16_t square[] = {10, 20, 30, 41}, impulse[] = {0, 65535, 0};
    const example examples[] = {
        {"box", "radius=1", 2, 2, square, (uint16_t[]){30, 27, 24, 20}},
        {"gaussian", "sigma=120,0 edge=constant:0", 3, 1, impulse, (uint16_t[]){218, 218, 218}},
        {"gaussian", "sigma=5,0 edge=constant:0", 3, 1, impulse, (uint16_t[]){5126, 5229, 5126}},
        {"sharpen", "sigma=5,0 edge=constant:0", 3, 1, impulse, (uint16_t[]){0, 65535, 0}},
    };
    check_examples(GF_U16, examples, sizeof examples / sizeof *examples);
}

/* The outer pair is added first: (1 + 1) + 2^24 is exact, (2^24 + 1) + 1 is not. */
TEST(floats) {
    static const float big[] = {1, 0x1p24f, 1}, sum = 0x1p24f + 2;
    const float odd[] = {0x1p24f / 3, sum / 3, 0x1p24f / 3}, nan = NAN;
    const uint32_t not_a_number = 0x7fc00000;
    const float point = 0.5f;
    const example examples[] = {
        {"box", "radius=1,0 edge=replicate", 3, 1, big, odd},
        {"gaussian", "", 1, 1, &nan, &not_a_number},
        {"gaussian", "sigma=0.3 edge=constant:-0", 1, 1, (float[]){-0.0f}, (float[]){-0.0f}},
        {"sharpen", "sigma=3 threshold=1", 1, 1, &point, &point},
    };
    check_examples(GF_F32, examples, sizeof examples / sizeof *examples);
}

/* Differences of exactly T are sharpened, smaller ones are not. */
TEST(threshold_is_included) {
    const float in[] = {0, 1, 0};
    const gf_format format = {3, 1, 1, GF_F32, false};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        float blurred[3], got[3];
        char text[80];
        test_measure(*backend, "gaussian", "sigma=1,0", format, in, NULL, blurred);
        const float d = in[1] - blurred[1], steps[] = {d, nextafterf(d, 2)};
        for (int i = 0; i < 2; i++) {
            snprintf(text, sizeof text, "sigma=1,0 threshold=%.9g", (double)steps[i]);
            test_measure(*backend, "sharpen", text, format, in, NULL, got);
            assert_true(got[1] == (i == 0 ? 1 + d : 1));
        }
    }
}

TEST(alpha_is_copied) {
    const uint8_t in[] = {0, 7, 90, 200, 0, 1}; /* grey and alpha */
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t got[6];
        test_measure(*backend, "box", "radius=1,0", (gf_format){3, 1, 2, GF_U8, true}, in, NULL,
                     got);
        assert_memory_equal(got, ((uint8_t[]){60, 7, 30, 200, 60, 1}), 6);
    }
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* The error of integers has these parts. Each is below the bound of all windows, also along both
 * axes: the taps of an axis add up to 1, so that errors of the two axes add up at most. */
static double fixed_bound(double sigma, uint32_t radius) {
    double t[GF_SEPARABLE_NARROW + 1], taps = 0;
    uint32_t fixed[GF_SEPARABLE_NARROW + 1];
    gf_separable_gaussian(sigma, radius, t);
    gf_separable_fixed(t, radius, fixed);
    for (uint32_t k = 0; k <= radius; k++)
        taps += (k ? 2 : 1) * fabs(fixed[k] / 65536.0 - t[k]);
    /* Half of the errors of the taps are positive: 255 * taps / 2 for each axis. Then the rounding
     * between the axes, and that of the result. */
    return 255 * taps + 1.0 / 512 + 0.5;
}

/* Return the bound of SINGLE for samples up to `max`, in units of a sample. */
static double single_bound(double sigma, uint32_t radius, double max) {
    double t[GF_SEPARABLE_MAX_RADIUS + 1], tail = 0, sums = 1, more = 0, less = 0;
    gf_separable_gaussian(sigma, radius, t);
    for (uint32_t k = radius; k > 0; k--) {
        tail += 2 * t[k]; /* the sum after tap k is at most max * tail */
        sums += tail;
    }
    for (uint32_t k = 0; k <= radius; k++) {
        const double error = (k ? 2 : 1) * ((double)(float)t[k] - t[k]);
        more += error > 0 ? error : 0;
        less -= error < 0 ? error : 0;
    }
    const double taps = more > less ? more : less;
    /* Along y, sums of two samples are rounded, too. */
    return 0.5 + max * (2 * (taps + sums * 0x1p-24) + 0x1p-24) * (1 + 0x1p-12);
}

TEST(bounds_of_all_windows) {
    double fixed = 0, words = 0, bytes = 0;
    for (double sigma = 0.2; sigma < 121; sigma *= 1.003)
        for (uint32_t radius = 1; radius <= GF_SEPARABLE_NARROW; radius++) {
            fixed = fmax(fixed, fixed_bound(sigma, radius));
            words = fmax(words, single_bound(sigma, radius, 65535));
        }
    for (double sigma = 0.2; sigma < 121; sigma *= 1.1)
        bytes = fmax(bytes, single_bound(sigma, GF_SEPARABLE_MAX_RADIUS, 255));
    print_message("bounds: u8 %.4f, u16 %.4f; u8 above radius %d: %.4f\n", fixed, words,
                  GF_SEPARABLE_NARROW, bytes);
    assert_true(fixed <= 0.6 && words <= 0.6 && bytes <= 0.51);
}

/* ---- windows that maximise the error --------------------------------------------------------- */

typedef struct subject {
    gf_engine *engine;
    gf_settings *settings;
    gf_separable_plan *plan;
    test_image in, out;                 /* one window: its center is the result */
    uint32_t w, h;                      /* size of the window */
    long double x[LONGEST], y[LONGEST]; /* real taps of the window */
} subject;

/* sigma 0: the taps of box. */
static void spread_taps(double sigma, uint32_t radius, long double *taps) {
    long double t[GF_SEPARABLE_MAX_RADIUS + 1];
    if (sigma > 0)
        real_taps(sigma, radius, t);
    for (uint32_t k = 0; k <= radius; k++)
        taps[radius - k] = taps[radius + k] = sigma > 0 ? t[k] : 1.0L / (2 * radius + 1);
}

static void subject_open(subject *s, const char *text, gf_type type) {
    const gf_filter *filter = gf_filter_find(strstr(text, "radius") ? "box" : "gaussian");
    gf_plan *plan;
    double sigma[2];
    *s = (subject){.engine = test_engine(&(gf_engine_options){.backend = "golden"}),
                   .settings = test_settings(filter, text)};
    assert_ok(gf_plan_new(filter, s->settings, &(gf_format){9, 9, 1, type, false}, &plan, &why));
    s->plan = (gf_separable_plan *)plan;
    s->w = 2 * s->plan->radius[0] + 1;
    s->h = 2 * s->plan->radius[1] + 1;
    s->in = test_image_new((gf_format){s->w, s->h, 1, type, false}, 0);
    s->out = test_image_new(s->in.format, 0);
    gf_settings_pair(s->settings, "sigma", sigma);
    spread_taps(sigma[0], s->plan->radius[0], s->x);
    spread_taps(sigma[1], s->plan->radius[1], s->y);
}

static void subject_close(subject *s) {
    gf_settings_free(s->settings);
    gf_engine_close(s->engine);
    gf_plan_free(&s->plan->head);
    test_image_free(&s->in);
    test_image_free(&s->out);
}

static double sample_at(const test_image *image, uint32_t x, uint32_t y) {
    const void *row = gf_row(&image->rows, y);
    return image->format.type == GF_U8    ? ((const uint8_t *)row)[x]
           : image->format.type == GF_U16 ? ((const uint16_t *)row)[x]
                                          : (double)((const float *)row)[x];
}

static void set_sample(const test_image *image, uint32_t x, uint32_t y, double v) {
    void *row = gf_row(&image->rows, y);
    if (image->format.type == GF_U8)
        ((uint8_t *)row)[x] = (uint8_t)v;
    else if (image->format.type == GF_U16)
        ((uint16_t *)row)[x] = (uint16_t)v;
    else
        ((float *)row)[x] = (float)v;
}

static long double subject_real(const subject *s) {
    long double real = 0;
    for (uint32_t y = 0; y < s->h; y++) {
        long double row = 0;
        for (uint32_t x = 0; x < s->w; x++)
            row += s->x[x] * (long double)sample_at(&s->in, x, y);
        real += s->y[y] * row;
    }
    return real;
}

/* Run golden on the window. Return the error of its center. */
static double subject_error(const subject *s) {
    assert_ok(test_run_memory(&(test_memory){.engine = s->engine,
                                             .filter = s->plan->head.filter,
                                             .settings = s->settings,
                                             .format = &s->in.format,
                                             .in = &(gf_pixels){s->in.rows.data, s->in.stride},
                                             .out = s->out.rows.data,
                                             .out_stride = s->out.stride}));
    const double got = sample_at(&s->out, s->w / 2, s->h / 2);
    return (double)fabsl((long double)got - subject_real(s));
}

/* Lower one sample far from the center, so that the real result is `above` the middle between two
 * integers. */
static void subject_tune(const subject *s, double above) {
    const uint32_t y = s->h / 2;
    uint32_t x = 0;
    while (x < s->w / 2 && s->x[x] * s->y[y] < 3e-4L)
        x++;
    const long double real = subject_real(s),
                      want = floorl(real - 0.5L) + 0.5L + (long double)above;
    const double lower = (double)(rintl((real - want) / (s->x[x] * s->y[y])));
    set_sample(&s->in, x, y, fmax(0, fmin(65535, sample_at(&s->in, x, y) - lower)));
}

/* Return tap k of the plan along an axis, of any form. */
static double plan_tap(const gf_separable_plan *plan, int axis, uint32_t k) {
    const size_t i = (axis ? plan->radius[0] + 1 : 0) + k;
    return plan->form == GF_SEPARABLE_FIXED ? ((const uint32_t *)plan->head.constants)[i] / 65536.0
           : plan->form == GF_SEPARABLE_SINGLE ? (double)((const float *)plan->head.constants)[i]
                                               : ((const double *)plan->head.constants)[i];
}

static uint32_t distance(uint32_t i, uint32_t size) {
    return i > size / 2 ? i - size / 2 : size / 2 - i;
}

/* Samples are `max` where the error of the taps has one sign, and 0 elsewhere; a few differ, so
 * that the real result comes close to the middle between two integers. */
static double worst_of_taps(const char *text, uint64_t rounds, test_random *random) {
    subject s;
    double worst = 0;
    subject_open(&s, text, GF_U8);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t y = 0; y < s.h; y++)
            for (uint32_t x = 0; x < s.w; x++) {
                const double error =
                    plan_tap(s.plan, 0, distance(x, s.w)) * plan_tap(s.plan, 1, distance(y, s.h)) -
                    (double)(s.x[x] * s.y[y]);
                set_sample(&s.in, x, y, (error > 0) == (round % 2 == 0) ? 255 : 0);
            }
        for (int i = 0; i < 4; i++)
            set_sample(&s.in, (uint32_t)test_below(random, s.w), (uint32_t)test_below(random, s.h),
                       (double)test_below(random, 256));
        worst = fmax(worst, subject_error(&s));
    }
    subject_close(&s);
    return worst;
}

TEST(worst_windows_of_fixed_taps) {
    static const char *const cases[] = {
        "sigma=5",   "sigma=4.9",           "sigma=3.3,0.9",          "sigma=1",
        "sigma=0.6", "sigma=20 truncate=1", "sigma=100 truncate=0.19"};
    test_random random = test_seeded(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double worst = worst_of_taps(cases[i], test_rounds(120), &random);
        print_message("u8 %s: error %.4f\n", cases[i], worst);
        assert_true(worst <= 0.6);
    }
}

/* Choose for each tap the two values of a pool, of some tries, whose rounded sum is lowest (sign
 * 1) or highest (-1). Store their numbers in a window, and return its sum. */
static float steer(const subject *s, int axis, const float *pool, uint32_t count, int sign,
                   uint32_t *window, test_random *random) {
    const uint32_t r = s->plan->radius[axis];
    float sum = 0;
    for (uint32_t k = r + 1; k-- > 0;) {
        const float t = (float)plan_tap(s->plan, axis, k);
        long double best = -1;
        float best_sum = 0;
        for (int i = 0; i < 40; i++) {
            const uint32_t a = (uint32_t)test_below(random, count);
            const uint32_t b = k ? (uint32_t)test_below(random, count) : a;
            const float v = k ? pool[a] + pool[b] : pool[a];
            const float rounded = k == r ? t * v : fmaf(t, v, sum);
            const long double exact_v = (long double)pool[a] + (long double)(k ? pool[b] : 0.0f);
            const long double lost =
                sign * ((long double)t * exact_v + (long double)sum - (long double)rounded);
            if (i > 0 && lost <= best)
                continue;
            best = lost;
            best_sum = rounded;
            window[r - k] = a;
            window[r + k] = b;
        }
        sum = best_sum;
    }
    return sum;
}

enum { POOL = 48 };

/* Steer every rounding of rows, and of the column of their sums, one way. Return the worst error,
 * and store the multiple of 2^-24 that bounds it for f32. */
static double worst_of_rounding(const char *text, gf_type type, uint64_t rounds, double *multiple,
                                test_random *random) {
    static uint32_t rows[POOL][LONGEST], column[LONGEST];
    subject s;
    double worst = 0;
    subject_open(&s, text, type);
    for (uint64_t round = 0; round < rounds; round++) {
        const int sign = round % 2 ? 1 : -1;
        float samples[POOL], sums[POOL];
        for (int i = 0; i < POOL; i++)
            samples[i] = type == GF_U16 ? (float)(65535 - test_below(random, round % 3 ? 9000 : 99))
                                        : 1 - (float)test_below(random, 1 << 20) * 0x1p-24f;
        for (int i = 0; i < POOL; i++)
            sums[i] = steer(&s, 0, samples, POOL, sign, rows[i], random);
        steer(&s, 1, sums, POOL, sign, column, random);
        for (uint32_t y = 0; y < s.h; y++)
            for (uint32_t x = 0; x < s.w; x++)
                set_sample(&s.in, x, y, (double)samples[rows[column[y]][x]]);
        if (type == GF_U16)
            subject_tune(&s, sign * 0.01 * (double)(1 + round / 2 % 6));
        worst = fmax(worst, subject_error(&s));
    }
    *multiple = (s.plan->radius[0] + s.plan->radius[1]) / 2.0 + 8;
    subject_close(&s);
    return worst;
}

TEST(windows_that_steer_every_rounding) {
    static const struct {
        const char *text;
        uint64_t rounds;
    } cases[] = {{"sigma=5", 300},     {"sigma=2,5", 300}, {"sigma=100 truncate=0.2", 300},
                 {"sigma=20,1", 60},   {"sigma=1,20", 60}, {"sigma=120,0.7", 12},
                 {"sigma=0.7,120", 12}};
    test_random random = test_seeded(2);
    static const char *const boxes[] = {"radius=20", "radius=3,200"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double multiple;
        double worst = worst_of_rounding(cases[i].text, GF_U16, test_rounds(cases[i].rounds),
                                         &multiple, &random);
        print_message("u16 %s: error %.4f\n", cases[i].text, worst);
        assert_true(worst <= 0.6);
        worst = worst_of_rounding(cases[i].text, GF_F32, test_rounds(cases[i].rounds / 4 + 4),
                                  &multiple, &random) *
                0x1p24;
        print_message("f32 %s: error %.2f * 2^-24, bound %.1f\n", cases[i].text, worst, multiple);
        assert_true(worst <= multiple);
    }
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        double multiple;
        const double worst = worst_of_rounding(boxes[i], GF_F32, 20, &multiple, &random) * 0x1p24;
        print_message("f32 box %s: error %.2f * 2^-24, bound %.1f\n", boxes[i], worst, multiple);
        assert_true(worst <= multiple);
    }
}

/* ---- flat images ----------------------------------------------------------------------------- */

TEST(flat_images_stay_flat) {
    static const char *const cases[] = {"gaussian sigma=0.2",
                                        "gaussian sigma=1",
                                        "gaussian sigma=5",
                                        "gaussian sigma=5.2",
                                        "gaussian sigma=3,0",
                                        "gaussian sigma=40",
                                        "gaussian sigma=120",
                                        "gaussian sigma=0.9,7",
                                        "gaussian sigma=100 truncate=0.2",
                                        "box",
                                        "box radius=7,200",
                                        "box radius=511",
                                        "sharpen amount=100",
                                        "sharpen sigma=30",
                                        "sharpen sigma=9,0 threshold=1"};
    static const char *const edges[] = {"replicate", "reflect", "mirror", "constant"};
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "golden"});
    const uint64_t step = test_stride(9, 3);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (uint32_t value = 0; value < 256; value += value % 255 ? (uint32_t)step : 1)
            for (gf_type type = GF_U8; type <= GF_U16; type++) {
                const char *edge = edges[(value + c) % 4];
                const uint32_t v = type == GF_U8 ? value : 65535 - 257 * value + value % 7;
                char text[128], name[16];
                sscanf(cases[c], "%15s", name);
                snprintf(text, sizeof text, "%s edge=%s", cases[c] + strlen(name), edge);
                if (edge == edges[3])
                    snprintf(text + strlen(text), 16, ":%u", v);
                const gf_filter *filter = gf_filter_find(name);
                AUTO(settings) gf_settings *settings = test_settings(filter, text);
                AUTO(image) test_image in = test_image_new((gf_format){3, 2, 1, type, false}, 0);
                AUTO(image) test_image out = test_image_new(in.format, 0);
                for (uint32_t i = 0; i < 6; i++)
                    set_sample(&in, i % 3, i / 3, v);
                assert_ok(
                    test_run_memory(&(test_memory){.engine = engine,
                                                   .filter = filter,
                                                   .settings = settings,
                                                   .format = &in.format,
                                                   .in = &(gf_pixels){in.rows.data, in.stride},
                                                   .out = out.rows.data,
                                                   .out_stride = out.stride}));
                assert_true(test_same(&in, &out, text));
            }
}

int main(void) {
    return test_main(NULL);
}
