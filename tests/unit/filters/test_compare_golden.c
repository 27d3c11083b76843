/* compare against values computed by hand, on every backend. */
#include <float.h>
#include <math.h>

#include "compare/compare.h"
#include "core/filter.h"
#include "core/result.h"
#include "measuring.h"

static void assert_cell(const gf_result *result, size_t column, const char *name,
                        const char *want) {
    char got[48];
    const gf_value value = gf_result_cell(result, 0, 0, column);
    assert_int_equal(value.type, gf_result_table(result, 0)->columns[column].type);
    gf_value_format(&value, got, sizeof got);
    assert_string_equal(gf_result_table(result, 0)->columns[column].name, name);
    assert_string_equal(got, want);
}

static void assert_within(const char *tolerance, gf_format format, const void *a, const void *b,
                          const char *want) {
    for (const char *const *backend = test_backends(); *backend; backend++) {
        AUTO(result)
        gf_result *result = test_measure(*backend, "compare", tolerance, format, a, b, NULL);
        assert_string_equal(gf_result_text(result), want);
        assert_int_equal(gf_result_passed(result), strncmp(want, "same", 4) == 0);
    }
}

static void assert_summary(gf_format format, const void *a, const void *b, const char *want) {
    assert_within("", format, a, b, want);
}

/* Compare two f32 samples. */
static void assert_floats(float a, float b, const char *want) {
    assert_summary((gf_format){1, 1, 1, GF_F32, false}, &a, &b, want);
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- by hand --------------------------------------------------------------------------------- */

TEST(equal_images) {
    unsigned char image[5 * 3 * 4 * 4];
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (unsigned char)(i * 37); /* includes NaN as f32 */
    for (uint32_t channels = 1; channels <= 4; channels++)
        for (int type = GF_U8; type <= GF_F32; type++) {
            char want[48];
            snprintf(want, sizeof want, "same: %u samples\n", 15 * channels);
            assert_summary((gf_format){5, 3, channels, (gf_type)type, channels % 2 == 0}, image,
                           image, want);
        }
    AUTO(result)
    gf_result *result = test_measure("golden", "compare", "", (gf_format){5, 3, 4, GF_U8, true},
                                     image, image, NULL);
    const gf_table *table = gf_result_table(result, 0);
    assert_int_equal(gf_result_table_count(result), 1);
    assert_string_equal(table->name, "comparison");
    assert_true(table->single);
    assert_false(table->in_text);
    assert_int_equal(table->row_count, 1);
    assert_int_equal(table->column_count, 8);
    assert_cell(result, 0, "samples", "60");
    assert_cell(result, 1, "differing", "0");
    assert_cell(result, 2, "largest", "0");
    for (size_t column = 3; column < 8; column++)
        assert_int_equal(gf_result_cell(result, 0, 0, column).type, GF_VALUE_NONE);
}

TEST(table_contents) {
    const uint16_t a[6] = {1, 2, 3, 400, 500, 600}, b[6] = {1, 2, 3, 400, 65535, 0};
    const float fa[4] = {0.25f, 1, 2, 3}, fb[4] = {0.25f, 0.5f, 2, 4.25f};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        gf_result *result =
            test_measure(*backend, "compare", "", (gf_format){1, 2, 3, GF_U16, false}, a, b, NULL);
        assert_int_equal(gf_result_table(result, 0)->column_count, 8);
        assert_cell(result, 0, "samples", "6");
        assert_cell(result, 1, "differing", "2");
        assert_cell(result, 2, "largest", "65035");
        assert_cell(result, 3, "x", "0");
        assert_cell(result, 4, "y", "1");
        assert_cell(result, 5, "channel", "g");
        assert_cell(result, 6, "first", "500");
        assert_cell(result, 7, "second", "65535");
        gf_result_free(result);
        result =
            test_measure(*backend, "compare", "", (gf_format){2, 1, 2, GF_F32, true}, fa, fb, NULL);
        assert_cell(result, 1, "differing", "2");
        assert_cell(result, 2, "largest", "1.25");
        assert_cell(result, 3, "x", "0");
        assert_cell(result, 5, "channel", "a");
        assert_cell(result, 6, "first", "1");
        assert_cell(result, 7, "second", "0.5");
        gf_result_free(result);
    }
}

/* One differing sample, at every position, for every type. */
TEST(one_sample_anywhere) {
    enum { WIDTH = 3, HEIGHT = 3 };
    static const char *const names[] = {"r", "g", "b", "a"};
    for (int type = GF_U8; type <= GF_F32; type++)
        for (unsigned i = 0; i < WIDTH * HEIGHT * 4; i++) {
            const size_t bytes = gf_type_bytes((gf_type)type);
            unsigned char a[WIDTH * HEIGHT * 4 * 4] = {0}, b[sizeof a] = {0};
            const uint8_t u8[] = {12, 19};
            const uint16_t u16[] = {12, 19};
            const float f32[] = {12, 19};
            const unsigned char *values = type == GF_U8    ? u8
                                          : type == GF_U16 ? (const unsigned char *)u16
                                                           : (const unsigned char *)f32;
            char want[128];
            memcpy(a + i * bytes, values, bytes);
            memcpy(b + i * bytes, values + bytes, bytes);
            snprintf(want, sizeof want,
                     "different: 1 of 36 samples, largest difference 7; "
                     "first at x %u, y %u, channel %s: 12 and 19\n",
                     i / 4 % WIDTH, i / 4 / WIDTH, names[i % 4]);
            assert_summary((gf_format){WIDTH, HEIGHT, 4, (gf_type)type, true}, a, b, want);
        }
}

/* The first difference in row-major order, and the largest one, at any position of long rows. */
TEST(first_and_largest_of_many) {
    enum { WIDTH = 9001 };
    AUTO(free) uint8_t *a = calloc(2, WIDTH), *b = calloc(2, WIDTH);
    assert_non_null(a);
    assert_non_null(b);
    const gf_format format = {WIDTH, 2, 1, GF_U8, false};
    b[WIDTH] = 200;
    assert_summary(format, a, b,
                   "different: 1 of 18002 samples, largest difference 200; "
                   "first at x 0, y 1, channel grey: 0 and 200\n");
    b[9000] = 3;
    assert_summary(format, a, b,
                   "different: 2 of 18002 samples, largest difference 200; "
                   "first at x 9000, y 0, channel grey: 0 and 3\n");
    a[8500] = 255;
    assert_summary(format, a, b,
                   "different: 3 of 18002 samples, largest difference 255; "
                   "first at x 8500, y 0, channel grey: 255 and 0\n");
    b[8192] = 1;
    b[4097] = 2;
    assert_summary(format, a, b,
                   "different: 5 of 18002 samples, largest difference 255; "
                   "first at x 4097, y 0, channel grey: 0 and 2\n");
    memset(a, 1, 2 * WIDTH);
    memset(b, 0, 2 * WIDTH);
    assert_summary(format, a, b,
                   "different: 18002 of 18002 samples, largest difference 1; "
                   "first at x 0, y 0, channel grey: 1 and 0\n");
}

/* f32 samples are equal if their bits are equal. The difference is numeric. */
TEST(special_numbers) {
    const float nan = float_of(0x7fc00000), other = float_of(0x7fc00001);
    assert_floats(nan, nan, "same: 1 samples\n");
    assert_floats(INFINITY, INFINITY, "same: 1 samples\n");
    assert_floats(-0.0f, -0.0f, "same: 1 samples\n");
#define FIRST "; first at x 0, y 0, channel grey: "
    assert_floats(nan, other,
                  "different: 1 of 1 samples, largest difference 0" FIRST
                  "nan (7fc00000) and nan (7fc00001)\n");
    assert_floats(-0.0f, 0, "different: 1 of 1 samples, largest difference 0" FIRST "-0 and 0\n");
    assert_floats(1, nan, "different: 1 of 1 samples, largest difference inf" FIRST "1 and nan\n");
    assert_floats(nan, INFINITY,
                  "different: 1 of 1 samples, largest difference inf" FIRST "nan and inf\n");
    assert_floats(INFINITY, -INFINITY,
                  "different: 1 of 1 samples, largest difference inf" FIRST "inf and -inf\n");
    assert_floats(INFINITY, 3,
                  "different: 1 of 1 samples, largest difference inf" FIRST "inf and 3\n");
    assert_floats(1, float_of(0x3f800001),
                  "different: 1 of 1 samples, largest difference 1.1920928955078125e-07" FIRST
                  "1 and 1.0000001\n");
    assert_floats(0, float_of(1), /* 2^-149 */
                  "different: 1 of 1 samples, largest difference 1.401298464324817e-45" FIRST
                  "0 and 1e-45\n");
    assert_floats(FLT_MAX, -FLT_MAX,
                  "different: 1 of 1 samples, largest difference 6.805646932770577e+38" FIRST
                  "3.4028235e+38 and -3.4028235e+38\n");
#undef FIRST
    /* The record holds the exact bits of the first differing samples. */
    const gf_filter *filter = gf_filter_find("compare");
    gf_compare_record record;
    const float pair[2] = {float_of(0xffc12345), float_of(0x7f800001)};
    gf_compare_plan plan = {
        .head = {.in = {1, 1, 1, GF_F32, false}, .inputs = 2, .record = sizeof record}};
    const gf_strip strip = {.in = {{(unsigned char *)&pair[0], sizeof *pair, 7, 1},
                                   {(unsigned char *)&pair[1], sizeof *pair, 7, 1}},
                            .out = {.y0 = 7, .rows = 1},
                            .records = (unsigned char *)&record};
    assert_ok(filter->golden(&plan.head, &strip, NULL));
    assert_int_equal(record.a, 0xffc12345);
    assert_int_equal(record.b, 0x7f800001);
    assert_int_equal(record.first, 0);
    plan.head.in = (gf_format){1, 1, 1, GF_U8, false};
    const gf_strip same = {.in = {{(unsigned char[]){9}, 1, 0, 1}, {(unsigned char[]){9}, 1, 0, 1}},
                           .out = {.rows = 1},
                           .records = (unsigned char *)&record};
    assert_ok(filter->golden(&plan.head, &same, NULL));
    assert_int_equal(record.first, UINT64_MAX);
    assert_int_equal(record.a, 0);
    assert_int_equal(record.b, 0);
}

/* With a tolerance, samples count if their difference is larger. The largest difference is that of
 * all samples. */
TEST(tolerance_of_integers) {
    const gf_format format = {2, 2, 1, GF_U8, false};
    const uint8_t a[4] = {10, 12, 13, 200}, b[4] = {12, 12, 10, 201};
    const char want[] =
        "different: 1 of 4 samples, largest difference 3; "
        "first at x 0, y 1, channel grey: 13 and 10\n";
    assert_within("tolerance=2", format, a, b, want);
    assert_within("tolerance=2.99", format, a, b, want);
    assert_within("tolerance=0", (gf_format){3, 1, 1, GF_U8, false}, a + 1, b + 1,
                  "different: 2 of 3 samples, largest difference 3; "
                  "first at x 1, y 0, channel grey: 13 and 10\n");
    assert_within("tolerance=3", format, a, b,
                  "same within the tolerance: 4 samples, largest difference 3\n");
    assert_within("tolerance=257", format, a, b, /* 1 in the low byte */
                  "same within the tolerance: 4 samples, largest difference 3\n");
    assert_within("tolerance=3", format, a, a, "same: 4 samples\n");
    const uint16_t wide_a[2] = {0, 65535}, wide_b[2] = {65534, 0};
    assert_within("tolerance=65534", (gf_format){2, 1, 1, GF_U16, false}, wide_a, wide_b,
                  "different: 1 of 2 samples, largest difference 65535; "
                  "first at x 1, y 0, channel grey: 65535 and 0\n");
}

TEST(tolerance_of_reals) {
    const float nan = float_of(0x7fc00000), other = float_of(0x7fc00001);
    const float a[6] = {0, nan, 1, 1, 0.5f, INFINITY}, b[6] = {-0.0f, other, 1.25f, 1.5f, nan, 0};
    const gf_format format = {6, 1, 1, GF_F32, false}, four = {4, 1, 1, GF_F32, false};
    assert_within("tolerance=0", (gf_format){2, 1, 1, GF_F32, false}, a, b, "same: 2 samples\n");
    assert_within("tolerance=0.25", format, a, b,
                  "different: 3 of 6 samples, largest difference inf; "
                  "first at x 3, y 0, channel grey: 1 and 1.5\n");
    assert_within("tolerance=0.5", four, a, b,
                  "same within the tolerance: 4 samples, largest difference 0.5\n");
    assert_within("tolerance=1e9", format, a, b,
                  "different: 2 of 6 samples, largest difference inf; "
                  "first at x 4, y 0, channel grey: 0.5 and nan\n");
}

/* All samples differ, but only one by more than the tolerance, at any position of a long row. */
TEST(tolerance_anywhere) {
    enum { WIDTH = 9001 };
    const unsigned places[] = {0, 1, 63, 64, 2047, 2048, 4095, 4096, 8191, 8192, 9000};
    AUTO(free) float *image = calloc(2, WIDTH * sizeof *image);
    assert_non_null(image);
    for (int type = GF_U8; type <= GF_F32; type++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            unsigned char *a = (unsigned char *)image, *b = a + WIDTH * sizeof *image;
            char want[128];
            for (unsigned x = 0; x < WIDTH; x++) {
                gf_put_sample((gf_type)type, a, x, 7);
                gf_put_sample((gf_type)type, b, x, x == places[i] ? 0 : x % 2 ? 8 : 9);
            }
            snprintf(want, sizeof want,
                     "different: 1 of 9001 samples, largest difference 7; "
                     "first at x %u, y 0, channel grey: 7 and 0\n",
                     places[i]);
            assert_within("tolerance=2", (gf_format){WIDTH, 1, 1, (gf_type)type, false}, a, b,
                          want);
        }
}

/* Each difference occurs once, in ascending order. */
TEST(tolerance_of_every_integer) {
    for (int type = GF_U8; type <= GF_U16; type++) {
        const uint32_t max = gf_type_max((gf_type)type), half = (max + 1) / 2;
        const uint32_t tolerances[] = {0, 1, half - 2, half - 1, half, half + 1, max - 1, max};
        AUTO(free) unsigned char *a = calloc(2, (max + 1) * gf_type_bytes((gf_type)type));
        assert_non_null(a);
        for (uint32_t x = 0; x <= max; x++)
            gf_put_sample((gf_type)type, a, x, (float)x);
        for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++) {
            const uint32_t t = tolerances[i];
            char text[32], want[128];
            snprintf(text, sizeof text, "tolerance=%u", t);
            if (t < max)
                snprintf(want, sizeof want,
                         "different: %u of %u samples, largest difference %u; "
                         "first at x %u, y 0, channel grey: %u and 0\n",
                         max - t, max + 1, max, t + 1, t + 1);
            else
                snprintf(want, sizeof want,
                         "same within the tolerance: %u samples, largest difference %u\n", max + 1,
                         max);
            assert_within(text, (gf_format){max + 1, 1, 1, (gf_type)type, false}, a,
                          a + (max + 1) * gf_type_bytes((gf_type)type), want);
        }
    }
}

/* ---- difference image ------------------------------------------------------------------------ */

static void assert_drawing(gf_format format, const void *a, const void *b, const uint8_t *want) {
    const size_t size = (size_t)(format.width * format.height * 3);
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t got[768] = {0};
        gf_result_free(test_measure(*backend, "compare", "diff=-", format, a, b, got));
        assert_memory_equal(got, want, size);
    }
}

TEST(draws_grey) {
    const uint8_t a8[4] = {200, 10, 3, 255}, b8[4] = {200, 11, 255, 255};
    assert_drawing((gf_format){2, 2, 1, GF_U8, false}, a8, b8,
                   (uint8_t[]){50, 50, 50, 98, 0, 0, 255, 255, 247, 63, 63, 63});
    /* 40000 / 1024; 65535 / 1024; 98 and 97 of 65535 are 1 and 0 of 669. */
    const uint16_t a16[4] = {40000, 1000, 1000, 65535}, b16[4] = {40000, 1098, 903, 65535};
    assert_drawing((gf_format){2, 2, 1, GF_U16, false}, a16, b16,
                   (uint8_t[]){39, 39, 39, 97, 0, 0, 96, 0, 0, 63, 63, 63});
    const uint16_t black[1] = {0}, white[1] = {65535};
    assert_drawing((gf_format){1, 1, 1, GF_U16, false}, black, white, (uint8_t[]){255, 255, 255});
    /* The brightness, 96 to 765 in all, is proportional to the difference. */
    uint8_t all_a[256] = {0}, all_b[256], want[768];
    for (int d = 0; d < 256; d++) {
        const int sum = d ? 96 + d * 669 / 255 : 0;
        all_b[d] = (uint8_t)d;
        want[3 * d] = (uint8_t)(sum < 255 ? sum : 255);
        want[3 * d + 1] = (uint8_t)(sum < 255 ? 0 : sum < 510 ? sum - 255 : 255);
        want[3 * d + 2] = (uint8_t)(sum < 510 ? 0 : sum - 510);
    }
    assert_drawing((gf_format){256, 1, 1, GF_U8, false}, all_a, all_b, want);
}

/* Alpha affects the difference, but not the grey. */
TEST(draws_alpha) {
    const uint8_t a[8] = {80, 0, 80, 255, 80, 255, 80, 100},
                  b[8] = {80, 0, 80, 0, 81, 250, 80, 100};
    assert_drawing((gf_format){2, 2, 2, GF_U8, true}, a, b,
                   (uint8_t[]){20, 20, 20, 255, 255, 255, 109, 0, 0, 20, 20, 20});
}

/* (13933 * 255 + 32768) >> 16 = 54, green 182, blue 18; the image shows a quarter of that. */
TEST(draws_colour) {
    const uint8_t a[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9};
    const uint8_t b[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 8, 6, 11};
    assert_drawing((gf_format){2, 2, 3, GF_U8, false}, a, b,
                   (uint8_t[]){13, 13, 13, 45, 45, 45, 4, 4, 4, 103, 0, 0});
    /* The same with 65535: luma 13933, 46871, 4732; the image shows 1 / 1024 of that. */
    const uint16_t wide_a[16] = {65535, 0, 0, 7, 0, 65535, 0, 7, 0, 0, 65535, 7, 9, 9, 9, 9};
    const uint16_t wide_b[16] = {65535, 0, 0, 7, 0, 65535, 0, 7, 0, 0, 65535, 7, 9, 9, 9, 2579};
    assert_drawing((gf_format){2, 2, 4, GF_U16, true}, wide_a, wide_b,
                   (uint8_t[]){13, 13, 13, 45, 45, 45, 4, 4, 4, 122, 0, 0});
    /* 0.2126 * 255 = 54.2, 182.4 and 18.4, truncated; the image shows a quarter of that. */
    const float real_a[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    const float real_b[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0.5f, -0.25f};
    assert_drawing((gf_format){2, 2, 3, GF_F32, false}, real_a, real_b,
                   (uint8_t[]){13, 13, 13, 45, 45, 45, 4, 4, 4, 255, 175, 0});
}

/* Pixels exactly at a step of the displayed grey. A weight that differs in its last digit, or a
 * missing rounding, changes one of them. 13933 * 38530 + 32768 = 8 * 2^26 + 346, and so on. */
TEST(weighs_colours_exactly) {
    const uint16_t wide[18] = {38530, 0, 0, 0, 60134, 0, 0, 0, 42539,
                               48163, 0, 0, 0, 40089, 0, 0, 0, 56720};
    assert_drawing((gf_format){3, 2, 3, GF_U16, false}, wide, wide,
                   (uint8_t[]){8, 8, 8, 42, 42, 42, 3, 3, 3, 9, 9, 9, 27, 27, 27, 3, 3, 3});
    /* 0.2126 * 1.0331 * 255 = 56.007, ..., 0.2126 * 1.0325 * 255 = 55.97, ... */
    const float real[18] = {1.0331f, 0, 0, 0, 0.9871f, 0, 0, 0, 0.8695f,
                            1.0325f, 0, 0, 0, 0.9869f, 0, 0, 0, 0.8685f};
    assert_drawing((gf_format){3, 2, 3, GF_F32, false}, real, real,
                   (uint8_t[]){14, 14, 14, 45, 45, 45, 4, 4, 4, 13, 13, 13, 44, 44, 44, 3, 3, 3});
    /* Green and blue cancel exactly, and green is so large that adding red does not change it. */
    const float ordered[3] = {1, 0x1p40f * 0.0722f, -0x1p40f * 0.7152f};
    assert_drawing((gf_format){1, 1, 3, GF_F32, false}, ordered, ordered, (uint8_t[]){0, 0, 0});
}

TEST(draws_special_numbers) {
    const float nan = float_of(0x7fc00000), other = float_of(0xffc00001);
    /* Equal samples: NaN and negative values are black, values above 1 and inf are white. */
    const float same[6] = {nan, -3, -INFINITY, 7, INFINITY, 0.5f};
    assert_drawing((gf_format){6, 1, 1, GF_F32, false}, same, same,
                   (uint8_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 63, 63, 63, 63, 63, 63, 31, 31, 31});
    /* Two NaNs, and two zeros, differ by 0; NaN and a number differ by inf. Differences above 1
     * count as 1. */
    const float a[6] = {nan, 0, nan, INFINITY, 5, 0}, b[6] = {other, -0.0f, 1, 0, 3, 0.999f};
    assert_drawing((gf_format){6, 1, 1, GF_F32, false}, a, b,
                   (uint8_t[]){96, 0, 0, 96, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                               255, 254});
}

TEST(draws_only_with_diff) {
    const gf_filter *filter = gf_filter_find("compare");
    const gf_format format = {7, 5, 2, GF_F32, true};
    gf_format out;
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    assert_ok(test_filter_output(filter, settings, &format, &out));
    assert_int_equal(out.width, 0);
    assert_ok(gf_settings_set(settings, "diff", "d.png", NULL));
    assert_ok(test_filter_output(filter, settings, &format, &out));
    assert_true(gf_format_equal(&out, &(gf_format){7, 5, 3, GF_U8, false}));
}

int main(void) {
    return test_main(NULL);
}
