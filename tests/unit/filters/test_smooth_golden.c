/* The golden stages of smooth against values computed by hand, and the published check. */

#include "smooth/smooth.h"
#include "testing.h"

static void assert_floats(const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t a, b;
        memcpy(&a, &got[i], sizeof a);
        memcpy(&b, &want[i], sizeof b);
        if (a != b)
            fail_msg("position %zu: got %.9g (0x%08x), want %.9g (0x%08x)", i, (double)got[i], a,
                     (double)want[i], b);
    }
}

/* Powers of two and small integers: every intermediate value is exact. */
TEST(enhance_multiplies) {
    const float in[] = {0, 1, 2, -3, 100};
    const float want[] = {0, 1.5f, 3, -4.5f, 150};
    float out[5];
    gf_smooth_golden_enhance(in, out, 5, 1.5f);
    assert_floats(out, want, 5);
}

TEST(blur_averages_samples_inside_the_row) {
    const float in[] = {8, 16, 24, 0, 12, 4};
    /* radius 1: (8+16)/2, (8+16+24)/3, (16+24+0)/3 = 13.333.., (24+0+12)/3, (0+12+4)/3, (12+4)/2 */
    const float want1[] = {12, 16, 40.0f / 3, 12, 16.0f / 3, 8};
    /* radius 2: 48/3, 48/4, 60/5, 56/5, 40/4, 16/3 */
    const float want2[] = {16, 12, 12, 11.2f, 10, 16.0f / 3};
    /* radius 9: the whole row, 64/6 for all samples */
    const float want9[] = {64.0f / 6, 64.0f / 6, 64.0f / 6, 64.0f / 6, 64.0f / 6, 64.0f / 6};
    float out[6];
    gf_smooth_golden_blur(in, out, 6, 0);
    assert_floats(out, in, 6);
    gf_smooth_golden_blur(in, out, 6, 1);
    assert_floats(out, want1, 6);
    gf_smooth_golden_blur(in, out, 6, 2);
    assert_floats(out, want2, 6);
    gf_smooth_golden_blur(in, out, 6, 9);
    assert_floats(out, want9, 6);
}

/* 2^24 + 1 is not a binary32 number: adding left to right loses each 1, right to left does not. */
TEST(blur_adds_left_to_right) {
    const float in[] = {16777216, 1, 1};
    const float want[] = {8388608, 16777216.0f / 3, 1};
    float out[3];
    gf_smooth_golden_blur(in, out, 3, 1);
    assert_floats(out, want, 3);
}

TEST(smooth_adds_previous_then_next) {
    const float in[] = {4, 8, 16, 2};
    /* w = 1/2: (4+8)/2; ((8+4)/2 + 16)/2; ((16+8)/2 + 2)/2; (2+16)/2 */
    const float want[] = {6, 11, 7, 9};
    float out[4];
    gf_smooth_golden_smooth(in, out, 4, 0.5f);
    assert_floats(out, want, 4);
    gf_smooth_golden_smooth(in, out, 1, 0.5f); /* one sample: no neighbours, no weight */
    assert_floats(out, in, 1);
    const float pair[] = {1.5f, 1.5f};
    gf_smooth_golden_smooth(in + 3, out, 1, 0.5f);
    gf_smooth_golden_smooth((const float[]){1, 2}, out, 2, 0.5f);
    assert_floats(out, pair, 2);
}

TEST(keep_scales_ends_separately) {
    const float in[] = {2, 4, 6, 8};
    const float want[] = {1, 16, 24, 4};
    float out[4];
    gf_smooth_golden_keep(in, out, 4, 4, 0.5f);
    assert_floats(out, want, 4);
    gf_smooth_golden_keep(in, out, 1, 4, 0.5f);
    assert_floats(out, in, 1);
}

static void run_on(const char *backend, const char *parameters, const test_image *in,
                   const test_image *out) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(filter, parameters);
    const gf_pixels pixels = {in->rows.data, in->stride};
    gf_engine_options options = {.backend = backend};
    AUTO(engine) gf_engine *engine = NULL;
    assert_ok(gf_engine_open(&options, &engine, &why));
    assert_ok(test_run_memory(&(test_memory){engine, filter, settings, &in->format, &pixels,
                                             out->rows.data, out->stride}));
}

static void run_golden(const char *parameters, const test_image *in, const test_image *out) {
    run_on("golden", parameters, in, out);
}

TEST(published_check) {
    gf_format format = {.width = 1024, .height = 1, .channels = 1, .type = GF_F32};
    AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
    for (unsigned i = 0; i < 1024; i++) {
        float x = (float)(i % 10) + (float)i / 100.0f;
        memcpy(in.rows.data + 4 * i, &x, sizeof x);
    }
    const uint32_t first_in[] = {0x00000000, 0x3f8147ae, 0x400147ae}; /* 0 1.01 2.02 */
    assert_memory_equal(in.rows.data, first_in, sizeof first_in);
    const uint32_t want[] = {0x3fd54fe1, 0x40155184, 0x40599409};
    const char *const backends[] = {"golden", "cpu", test_has_cuda() ? "cuda" : "auto"};
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        memset(out.rows.data, 0, sizeof want);
        run_on(backends[i], "tile=256", &in, &out);
        assert_memory_equal(out.rows.data, want, sizeof want);
    }
}

/* T = 3a+6b+11c+11d+11e+8f+5g, F = 33 T / 1250: the default chain in integers, inside the row. */
TEST(default_chain_by_hand) {
    gf_format format = {.width = 9, .height = 1, .channels = 1, .type = GF_U8};
    AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
    const unsigned char row[] = {10, 20, 30, 40, 50, 60, 70, 80, 90};
    memcpy(in.rows.data, row, sizeof row);
    run_golden("", &in, &out);
    /* x = 3: 30+120+330+440+550+480+350 = 2300, 33*2300/1250 = 60.72; x = 4: 2850 -> 75.24 */
    assert_int_equal(out.rows.data[3], 61);
    assert_int_equal(out.rows.data[4], 75);
    /* x = 0: B0 = 1.1*(10+20+30)/3 = 22, B1 = 1.1*100/4 = 27.5; (22 + 27.5) * 0.6 = 29.7 */
    assert_int_equal(out.rows.data[0], 30);
    /* x = 8: B8 = 1.1*240/3 = 88, B7 = 1.1*300/4 = 82.5; 170.5 * 0.6 = 102.3 */
    assert_int_equal(out.rows.data[8], 102);
}

TEST(store_clamps_and_rounds_to_even) {
    gf_format format = {.width = 1, .height = 6, .channels = 1, .type = GF_U8};
    AUTO(image) test_image in = test_image_new(format, 3), out = test_image_new(format, 5);
    const unsigned char values[] = {1, 3, 5, 0, 255, 200};
    for (unsigned y = 0; y < 6; y++)
        *gf_row(&in.rows, y) = values[y];
    run_golden("stages=enhance gain=0.5", &in, &out);
    const unsigned char halves[] = {0, 2, 2, 0, 128, 100}; /* 0.5, 1.5, 2.5, 0, 127.5, 100 */
    for (unsigned y = 0; y < 6; y++)
        assert_int_equal(*gf_row(&out.rows, y), halves[y]);
    run_golden("stages=enhance gain=60", &in, &out);
    const unsigned char clamped[] = {60, 180, 255, 0, 255, 255};
    for (unsigned y = 0; y < 6; y++)
        assert_int_equal(*gf_row(&out.rows, y), clamped[y]);
    assert_true(test_margins_intact(&out));
}

/* A NaN affects only the outputs whose window contains it: 2 (blur) + 1 (smooth) on each side. */
TEST(nan_stays_in_its_window) {
    gf_format format = {.width = 16, .height = 1, .channels = 1, .type = GF_F32};
    AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
    memset(in.rows.data, 0, 64);
    const uint32_t odd_nan = 0xffc12345, canonical = 0x7fc00000;
    memcpy(in.rows.data + 4 * 8, &odd_nan, 4);
    run_golden("", &in, &out);
    for (unsigned i = 0; i < 16; i++) {
        uint32_t bits;
        memcpy(&bits, out.rows.data + 4 * i, sizeof bits);
        assert_int_equal(bits, i >= 5 && i <= 11 ? canonical : 0);
    }
}

TEST(flat_images_keep_their_brightness) {
    static const char *const cases[] = {
        "keep-brightness", "keep-brightness radius=127", "keep-brightness axis=xy weight=0.9",
        "keep-brightness weight=100 tile=3", "keep-brightness axis=y weight=0.01 radius=1"};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (unsigned value = 0; value <= 65535; value += value < 65000 ? 509 : 1) {
            gf_format format = {.width = 260, .height = 5, .channels = 1, .type = GF_U16};
            AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
            for (uint64_t i = 0; i < format.width * format.height; i++) {
                uint16_t v = (uint16_t)value;
                memcpy(in.rows.data + 2 * i, &v, sizeof v);
            }
            run_golden(cases[c], &in, &out);
            if (!test_same(&in, &out, cases[c]))
                fail_msg("a flat image of %u did not stay flat", value);
        }
}

TEST(alpha_is_untouched) {
    test_random random = {7};
    for (uint32_t channels = 2; channels <= 4; channels += 2)
        for (int type = GF_U8; type <= GF_F32; type++) {
            gf_format format = {33, 9, channels, (gf_type)type, channels % 2 == 0};
            AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
            test_fill(&in, TEST_EXTREMES, &random);
            run_golden("axis=xy", &in, &out);
            size_t bytes = gf_type_bytes(format.type);
            for (uint64_t y = 0; y < format.height; y++)
                for (uint64_t x = 0; x < format.width; x++) {
                    size_t at = (size_t)(x * channels + channels - 1) * bytes;
                    assert_memory_equal(gf_row(&in.rows, y) + at, gf_row(&out.rows, y) + at, bytes);
                }
        }
}

TEST(xy_is_x_then_y_unrounded) {
    test_random random = {11};
    gf_format format = {40, 30, 1, GF_F32, false};
    AUTO(image) test_image in = test_image_new(format, 0), x = test_image_new(format, 0);
    AUTO(image) test_image xy = test_image_new(format, 0), both = test_image_new(format, 0);
    test_fill(&in, TEST_UNIFORM, &random);
    run_golden("axis=x radius=3", &in, &x);
    run_golden("axis=y radius=3", &x, &xy);
    run_golden("axis=xy radius=3", &in, &both);
    assert_true(test_same(&xy, &both, "x, then y, on f32"));
}

TEST(tiles_are_rows_of_their_own) {
    test_random random = {13};
    gf_format format = {25, 3, 3, GF_U16, false};
    AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
    test_fill(&in, TEST_UNIFORM, &random);
    run_golden("tile=10 radius=4", &in, &out);
    for (uint64_t begin = 0; begin < 25; begin += 10) {
        gf_format part = format;
        part.width = begin == 20 ? 5 : 10;
        AUTO(image) test_image cut = test_image_new(part, 0), alone = test_image_new(part, 0);
        for (uint64_t y = 0; y < 3; y++)
            memcpy(gf_row(&cut.rows, y), gf_row(&in.rows, y) + begin * 6, gf_row_bytes(&part));
        run_golden("radius=4", &cut, &alone);
        for (uint64_t y = 0; y < 3; y++)
            assert_memory_equal(gf_row(&alone.rows, y), gf_row(&out.rows, y) + begin * 6,
                                gf_row_bytes(&part));
    }
}

int main(void) {
    return test_main(NULL);
}
