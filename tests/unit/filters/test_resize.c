/* resize: values computed by hand, sizes, tables against libm, and flat images. */
#include "resize/resize.h"

#include <math.h>

#include "measuring.h"

static const char *const kernels[] = {"box", "bilinear", "hamming", "bicubic", "lanczos3"};

static const double pi = 3.14159265358979323846;

static gf_format image_of(uint64_t width, uint64_t height, uint32_t channels, gf_type type) {
    return (gf_format){width, height, channels, type, false};
}

/* ---- values computed by hand ----------------------------------------------------------------- */

/* Run a case on every backend, along x and along y. */
static void check(const char *options, gf_type type, uint64_t n, const void *in, uint64_t out,
                  const void *want) {
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (int y = 0; y < 2; y++) {
            char text[64];
            unsigned char got[256];
            (void)snprintf(text, sizeof text, "exact=%ux%u %s", y ? 1 : (unsigned)out,
                           y ? (unsigned)out : 1, options);
            if (strcmp(*backend, "cuda") == 0)
                continue;
            test_measure(*backend, "resize", text, image_of(y ? 1 : n, y ? n : 1, 1, type), in,
                         NULL, got);
            assert_memory_equal(got, want, out * gf_type_bytes(type));
        }
}

TEST(box_means) {
    check("kernel=box", GF_U8, 4, (uint8_t[]){10, 21, 30, 40}, 2, (uint8_t[]){16, 35});
    /* Centers 0.75 and 2.25, half a width of 0.75: two samples, because 0.5 is inside, and one,
     * because -0.5 is not. */
    check("kernel=box", GF_U8, 3, (uint8_t[]){10, 20, 30}, 2, (uint8_t[]){15, 30});
    check("kernel=box", GF_U8, 2, (uint8_t[]){10, 20}, 5, (uint8_t[]){10, 10, 20, 20, 20});
    check("kernel=box", GF_U16, 3, (uint16_t[]){65535, 65535, 65534}, 1, (uint16_t[]){65535});
    check("kernel=box", GF_U16, 3, (uint16_t[]){65535, 65534, 65534}, 1, (uint16_t[]){65534});
    check("kernel=box", GF_F32, 4, (float[]){1, 2, -4, 8}, 2, (float[]){1.5f, 2});
    /* The sample at floor(center): 0.75 and 2.25; 1 and 3. */
    check("kernel=box no-antialias", GF_U8, 3, (uint8_t[]){1, 2, 3}, 2, (uint8_t[]){1, 3});
    check("kernel=box no-antialias", GF_U8, 4, (uint8_t[]){1, 2, 3, 4}, 2, (uint8_t[]){2, 4});
}

TEST(bilinear_weights) {
    check("kernel=bilinear", GF_U8, 2, (uint8_t[]){0, 200}, 4, (uint8_t[]){0, 50, 150, 200});
    /* Weights 3 3 1 and 1 3 3 of 7. */
    check("kernel=bilinear", GF_U8, 4, (uint8_t[]){7, 14, 70, 0}, 2, (uint8_t[]){19, 32});
    check("kernel=bilinear", GF_U16, 4, (uint16_t[]){7, 14, 70, 0}, 2, (uint16_t[]){19, 32});
    check("kernel=bilinear no-antialias", GF_U8, 4, (uint8_t[]){10, 20, 30, 50}, 2,
          (uint8_t[]){15, 40});
    check("kernel=bilinear", GF_F32, 2, (float[]){-1, 3}, 4, (float[]){-1, 0, 2, 3});
}

TEST(bicubic_weights) {
    /* 111 111 29 -9 of 242, and the reverse; results are clamped. */
    check("", GF_U8, 4, (uint8_t[]){242, 0, 0, 0}, 2, (uint8_t[]){111, 0});
    check("", GF_U8, 4, (uint8_t[]){0, 0, 242, 0}, 2, (uint8_t[]){29, 111});
    check("", GF_U8, 4, (uint8_t[]){255, 255, 255, 0}, 2, (uint8_t[]){255, 138});
    check("", GF_U16, 4, (uint16_t[]){242, 0, 0, 0}, 2, (uint16_t[]){111, 0});
    check("", GF_U16, 4, (uint16_t[]){65535, 65535, 65535, 0}, 2, (uint16_t[]){65535, 35476});
}

/* Distances 1/4, 1/4, 3/4 and 5/4; the last one is outside of hamming: 122.44 122.44 10.13 of 255,
 * and for lanczos3 118.37 118.37 35.93 -17.67; of 65535 31466.03, 2602.94, 30420.85, 9234.59
 * and -4541.29. */
TEST(sharp_kernels) {
    check("kernel=hamming", GF_U8, 4, (uint8_t[]){0, 255, 0, 0}, 2, (uint8_t[]){122, 10});
    check("kernel=hamming", GF_U16, 4, (uint16_t[]){65535, 0, 0, 0}, 2, (uint16_t[]){31466, 0});
    check("kernel=hamming", GF_U16, 4, (uint16_t[]){0, 65535, 0, 0}, 2, (uint16_t[]){31466, 2603});
    check("kernel=lanczos3", GF_U8, 4, (uint8_t[]){0, 255, 0, 0}, 2, (uint8_t[]){118, 36});
    check("kernel=lanczos3", GF_U8, 4, (uint8_t[]){255, 0, 0, 0}, 2, (uint8_t[]){118, 0});
    check("kernel=lanczos3", GF_U16, 4, (uint16_t[]){0, 0, 65535, 0}, 2, (uint16_t[]){9235, 30421});
    check("kernel=lanczos3", GF_U16, 4, (uint16_t[]){65535, 65535, 65535, 0}, 2,
          (uint16_t[]){65535, 35114});
}

/* A stage rounds: 0 1, 1 1 has the means 1 and 1 along x, and then 1. */
TEST(integers_are_rounded_between_axes) {
    uint8_t got;
    for (const char *const *backend = test_backends(); *backend && strcmp(*backend, "cuda");
         backend++) {
        test_measure(*backend, "resize", "exact=1x1 kernel=box", image_of(2, 2, 1, GF_U8),
                     (uint8_t[]){0, 1, 0, 1}, NULL, &got);
        assert_int_equal(got, 1);
        test_measure(*backend, "resize", "exact=1x1 kernel=box", image_of(2, 2, 1, GF_U8),
                     (uint8_t[]){0, 0, 1, 0}, NULL, &got);
        assert_int_equal(got, 1); /* x: 0 and 1, y: 1 */
        /* y first, which loses more than twice as many samples: 1 0 0 0 0 becomes 0. */
        test_measure(*backend, "resize", "exact=1x1 kernel=box", image_of(2, 4, 1, GF_U8),
                     (uint8_t[]){1, 1, 1, 1, 0, 0, 0, 0}, NULL, &got);
        assert_int_equal(got, 1);
    }
}

/* Samples without a weight have no influence, and stored NaNs are canonical. */
TEST(nan_stays_in_its_windows) {
    const float nan = NAN;
    float got[3];
    test_measure("cpu", "resize", "width=3 kernel=bilinear", image_of(9, 3, 1, GF_F32),
                 (float[]){nan, 1, 2, 3,        4,   5, 6, 7, INFINITY, nan, 1, 2, 3,       4,
                           5,   6, 7, INFINITY, nan, 1, 2, 3, 4,        5,   6, 7, INFINITY},
                 NULL, (float[9]){0});
    test_measure("cpu", "resize", "exact=3x1 kernel=box", image_of(9, 1, 1, GF_F32),
                 (float[]){-nan, 1, 2, 3, 4, 5, 6, 7, INFINITY}, NULL, got);
    uint32_t bits;
    memcpy(&bits, &got[0], sizeof bits);
    assert_int_equal(bits, 0x7fc00000);
    assert_true(got[1] == 4 && isinf(got[2]));
}

/* Rows and windows of more samples than the cpu backend transposes at once. At an odd factor,
 * windows of one sample have neighbours that begin before them. */
TEST(long_rows_equal_golden) {
    static const char *const texts[] = {"exact=3x21 kernel=lanczos3", "exact=9000x21", NULL};
    enum { WIDTH = 3000, HEIGHT = 21 };
    uint16_t *in = malloc(WIDTH * HEIGHT * sizeof *in);
    unsigned char *want = malloc(3 * WIDTH * HEIGHT * sizeof *in);
    unsigned char *got = malloc(3 * WIDTH * HEIGHT * sizeof *in);
    assert_true(in && want && got);
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
        in[i] = (uint16_t)(i * 2654435761U >> 16);
    for (int type = GF_U8; type <= GF_U16; type++)
        for (const char *const *text = texts; *text; text++) {
            const gf_format format = image_of(WIDTH, HEIGHT, 1, (gf_type)type);
            const size_t width = *text == texts[0] ? 3 : 9000;
            test_measure("golden", "resize", *text, format, in, NULL, want);
            test_measure("cpu", "resize", *text, format, in, NULL, got);
            assert_memory_equal(got, want, width * HEIGHT * gf_type_bytes(format.type));
        }
    free(in);
    free(want);
    free(got);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

TEST(sizes_keep_the_ratio) {
    static const struct {
        const char *text;
        uint64_t in[2], out[2];
    } cases[] = {
        {"width=50", {100, 75}, {50, 38}}, /* 37.5: up */
        {"height=50", {100, 75}, {67, 50}},
        {"width=200", {100, 75}, {200, 150}},
        {"width=200 no-enlarge", {100, 75}, {100, 75}},
        {"width=1", {1000, 3}, {1, 1}},
        {"scale=0.5", {5, 3}, {3, 2}},
        {"scale=0.001", {100, 100}, {1, 1}},
        {"scale=1.5", {5, 4}, {8, 6}},
        {"scale=1.5 no-enlarge", {5, 4}, {5, 4}},
        {"fit=100x100", {300, 200}, {100, 67}},
        {"fit=100x100", {200, 300}, {67, 100}},
        {"fit=600x500", {300, 200}, {600, 400}},
        {"fit=600x500 no-enlarge", {300, 200}, {300, 200}},
        {"fit=600x100 no-enlarge", {300, 200}, {150, 100}},
        {"cover=70x30", {300, 200}, {70, 30}},
        {"cover=600x100", {300, 200}, {600, 100}},
        {"cover=600x100 no-enlarge", {300, 200}, {300, 100}},
        {"exact=7x1000", {300, 200}, {7, 1000}},
        {"exact=7,1000", {300, 200}, {7, 1000}}, /* a list in Python */
        {"exact=7x1000 no-enlarge", {300, 200}, {7, 200}},
    };
    const gf_filter *filter = gf_filter_find("resize");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(settings) gf_settings *settings = test_settings(filter, cases[i].text);
        const gf_format in = image_of(cases[i].in[0], cases[i].in[1], 1, GF_U8);
        gf_format out;
        assert_ok(test_filter_output(filter, settings, &in, &out));
        if (out.width != cases[i].out[0] || out.height != cases[i].out[1])
            fail_msg("%s: %u x %u", cases[i].text, (unsigned)out.width, (unsigned)out.height);
    }
}

TEST(one_size_is_needed) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "resize: no size; give one of --width, --height, --scale, --fit, --cover and --exact"},
        {"width=5 height=5", "resize: more than one size; give one of --width"},
        {"fit=5", "--fit '5': must be two integers from 1 to 10000000, as in 800x600"},
        {"cover=0x5", "--cover '0x5': must be two integers"},
        {"exact=5x5x", "--exact '5x5x': must be two integers"},
        {"exact=99999999999x5", "--exact '99999999999x5': must be two integers"},
        {"exact=10000001x5", "--exact '10000001x5': must be two integers"},
        {"exact=+5x5", "--exact '+5x5': must be two integers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            test_measure_error("resize", cases[i].text, image_of(3, 3, 1, GF_U8), "abcdefghi", 0),
            GF_USAGE);
        assert_message(&why, cases[i].message);
    }
    assert_int_equal(
        test_measure_error("resize", "height=10000000", image_of(3, 1, 1, GF_U8), "abc", 0),
        GF_USAGE);
    assert_message(&why, "resize: a side would have more than 10000000 pixels");
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Return the taps of a stage. */
static gf_resize_plan *plan_of(const char *text, const gf_format *format) {
    const gf_filter *filter = gf_filter_find("resize");
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    gf_plan *plan;
    assert_ok(gf_plan_new(filter, settings, format, &plan, &why));
    return (gf_resize_plan *)plan;
}

/* libm is within one unit in the last place, and so are these. */
TEST(sines_are_those_of_libm) {
    test_random random = test_seeded(3);
    for (int i = 0; i < 200000; i++) {
        const double x = (double)test_below(&random, UINT64_C(1) << 40) * 0x1p-40 * 9.4247779607;
        const double s = gf_resize_sin(x, false), c = gf_resize_sin(x, true);
        assert_true(fabs(s - sin(x)) <= fabs(nextafter(s, 2) - s));
        assert_true(fabs(c - cos(x)) <= fabs(nextafter(c, 2) - c));
    }
    for (int k = 1; k <= 6; k++) { /* next to zeros */
        const double x = k * (pi / 2);
        assert_true(gf_resize_sin(x, k % 2) == (k % 2 ? cos(x) : sin(x)));
    }
    assert_true(gf_resize_sin(0, false) == 0 && gf_resize_sin(0, true) == 1);
}

/* Return the weight of a kernel as Pillow computes it, with libm. */
static double weight_of(gf_resize_kernel kernel, double x) {
    const double a = fabs(x), y = a / 3;
    if (kernel == GF_RESIZE_HAMMING)
        return a == 0  ? 1
               : a < 1 ? sin(a * pi) / (a * pi) * ((double)0.54f + (double)0.46f * cos(a * pi))
                       : 0;
    if (x < -3 || x >= 3)
        return 0;
    return (a == 0 ? 1 : sin(a * pi) / (a * pi)) * (y == 0 ? 1 : sin(y * pi) / (y * pi));
}

/* Compare the 22-bit tables of two sizes with those that libm gives. */
static uint64_t compare_tables(uint64_t in, uint64_t out, gf_resize_kernel kernel) {
    static double got[32768], want[32768];
    const gf_resize_side side = {in, out, 0, (double)in, kernel, true};
    const double scale = (double)in / (double)out, stretch = scale > 1 ? scale : 1;
    uint64_t taps = 0;
    for (uint64_t i = 0; i < out; i++) {
        const gf_range window = gf_resize_window(&side, i, got);
        const double center = ((double)i + 0.5) * scale;
        double sum = 0;
        for (uint64_t k = window.first; k < window.end; k++)
            sum += want[k - window.first] =
                weight_of(kernel, ((double)k - center + 0.5) * (1 / stretch));
        for (uint64_t k = 0; k < window.end - window.first; k++, taps++)
            if (gf_resize_fixed(got[k]) != gf_resize_fixed(want[k] / sum))
                fail_msg("%u to %u, %s: tap %u of %u is %.17g, expected %.17g", (unsigned)in,
                         (unsigned)out, kernels[kernel], (unsigned)k, (unsigned)i, got[k],
                         want[k] / sum);
    }
    return taps;
}

/* All pairs of sizes up to 4096 were compared once: docs/numerics.md. */
TEST(tables_are_those_of_libm) {
    test_random random = test_seeded(4);
    uint64_t taps = 0;
    for (uint64_t i = 0; i < test_rounds(600); i++)
        taps += compare_tables(1 + test_below(&random, 4096), 1 + test_below(&random, 4096),
                               i % 2 ? GF_RESIZE_HAMMING : GF_RESIZE_LANCZOS3);
    print_message("%u taps compared, 0 differences\n", (unsigned)taps);
}

/* Integers stay as they are if all are equal, for any kernel and sizes, also beyond the limits of
 * 22 bits: as taps of 2^-22, 20510 equal ones have a sum of 1.0024. */
TEST(flat_images_stay_flat) {
    static uint16_t in[70000], out[5000];
    test_random random = test_seeded(5);
    for (uint64_t i = 0; i < test_rounds(900); i++) {
        const gf_type type = (gf_type)(i % 2);
        const bool tall = i % 4 > 1, many = i % 16 > 13;
        const uint64_t n = 1 + test_below(&random, many ? 70000 : 3000);
        const uint64_t m = 1 + test_below(&random, many ? 4 : 3000);
        const uint32_t v = test_below(&random, 3) ? gf_type_bytes(type) == 1 ? 255 : 65535
                                                  : (uint32_t)test_below(&random, 256);
        char text[96];
        (void)snprintf(text, sizeof text, "exact=%ux%u kernel=%s%s", tall ? 1 : (unsigned)m,
                       tall ? (unsigned)m : 1, kernels[test_below(&random, 5)],
                       test_below(&random, 4) ? "" : " no-antialias");
        for (uint64_t k = 0; k < n; k++)
            if (type == GF_U8)
                ((uint8_t *)in)[k] = (uint8_t)v;
            else
                in[k] = (uint16_t)v;
        test_measure("cpu", "resize", text, image_of(tall ? 1 : n, tall ? n : 1, 1, type), in, NULL,
                     out);
        for (uint64_t k = 0; k < m; k++)
            if ((type == GF_U8 ? ((uint8_t *)out)[k] : out[k]) != v)
                fail_msg("%s of %u samples of %u: sample %u differs", text, (unsigned)n, v,
                         (unsigned)k);
    }
}

/* u8 has taps of 2^-22 unless a flat image would change. Taps of 2^-35 have the sum 1. */
TEST(taps_have_the_sum_one) {
    const gf_format wide = image_of(20510, 1, 1, GF_U8), words = image_of(999, 1, 1, GF_U16);
    gf_resize_plan *plan = plan_of("exact=1x1 kernel=box", &wide);
    assert_int_equal(plan->form, GF_RESIZE_WIDE);
    gf_plan_free(&plan->head);
    plan = plan_of("exact=5x1 kernel=box", &wide);
    assert_int_equal(plan->form, GF_RESIZE_FIXED);
    gf_plan_free(&plan->head);
    for (size_t k = 0; k < 5; k++) {
        char text[64];
        (void)snprintf(text, sizeof text, "width=70 kernel=%s", kernels[k]);
        plan = plan_of(text, &words);
        const gf_resize_span *spans = plan->head.constants;
        const double *taps = gf_resize_taps(plan, spans);
        assert_int_equal(plan->form, GF_RESIZE_WIDE);
        for (int i = 0; i < 70; i++) {
            double sum = 0;
            for (uint64_t j = 0; j < spans[i].count; j++)
                sum += taps[spans[i].taps + j];
            assert_true(sum == 0x1p35);
        }
        gf_plan_free(&plan->head);
    }
}

/* ---- images that their decoder has scaled ------------------------------------------------------
 */

/* A ramp of the numbers of the columns, 813x313 pixels, scaled to 1/8: 102x40. The last column has
 * 5/8 of a pixel. A size from the scaled sides, or windows for 102 columns, would move the rest. */
TEST(scaled_images_keep_their_place) {
    const gf_format format = image_of(102, 40, 1, GF_F32);
    const gf_scaled scaled = {813, 313, 1};
    const gf_filter *filter = gf_filter_find("resize");
    AUTO(settings) gf_settings *settings = test_settings(filter, "width=50 fast");
    gf_plan *along, *down;
    float in[102], out[50];
    assert_ok(gf_plan_new_scaled(filter, settings, &format, &scaled, &along, NULL));
    assert_ok(gf_plan_next(along, settings, &down, NULL));
    assert_int_equal(along->out.width, 50);
    assert_int_equal(down->out.height, 19); /* 19.25; 40 * 50 / 102 is 19.6 */
    for (int i = 0; i < 102; i++)
        in[i] = 8 * (float)i + 4;
    const gf_strip strip = {.in = {{(unsigned char *)in, sizeof in, 0, 1}},
                            .out = {(unsigned char *)out, sizeof out, 0, 1},
                            .constants = along->constants};
    assert_ok(filter->golden(along, &strip, NULL));
    for (int i = 3; i < 47; i++)
        assert_true(fabs(out[i] - (i + 0.5) * 813 / 50) < 0.3);
    gf_plan_free(along);
    gf_plan_free(down);
}

/* The smallest scale that leaves twice the sides. */
TEST(decoders_scale_to_twice_the_size) {
    static const struct {
        const char *options;
        uint32_t eighths;
    } cases[] = {
        {"width=1000 fast", 8},    {"width=501 fast", 8},
        {"width=500 fast", 4},     {"width=251 fast", 4},
        {"width=250 fast", 2},     {"width=125 fast", 1},
        {"width=1 fast", 1},       {"exact=1x501 fast", 8},
        {"exact=1x500 fast", 4},   {"cover=500x250 fast", 4},
        {"cover=501x250 fast", 8}, {"cover=500x500 fast", 4},
        {"scale=0.25 fast", 4},    {"scale=3 fast", 8},
        {"width=125", 8},          {"width=125 fast no-antialias", 8},
    };
    const gf_filter *filter = gf_filter_find("resize");
    const gf_format format = image_of(2000, 2000, 3, GF_U8);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO(settings) gf_settings *settings = test_settings(filter, cases[i].options);
        const uint32_t eighths = filter->eighths(settings, &format);
        if (eighths != cases[i].eighths)
            fail_msg("%s: %u", cases[i].options, eighths);
    }
}

int main(void) {
    return test_main(NULL);
}
