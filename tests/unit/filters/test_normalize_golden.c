/* normalize against values computed by hand, on every backend of this machine. */

#include "measuring.h"

/* The mean is 100: the values become 0, 127.5 (to even: 128), 255 and 127.5. */
TEST(maps_the_mean_to_half_of_max) {
    const uint8_t in[] = {0, 100, 200, 100};
    const uint16_t in16[] = {0, 100, 200, 100};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[4];
        uint16_t out16[4];
        assert_null(test_measure(*backend, "normalize", "", (gf_format){2, 2, 1, GF_U8, false}, in,
                                 NULL, out));
        assert_memory_equal(out, ((uint8_t[]){0, 128, 255, 128}), 4);
        test_measure(*backend, "normalize", "", (gf_format){4, 1, 1, GF_U16, false}, in16, NULL,
                     out16);
        /* 32767.5 rounds to even: 32768. */
        assert_memory_equal(out16, ((uint16_t[]){0, 32768, 65535, 32768}), 8);
    }
}

/* The sum of 3 samples is 7. The mean is 7/3 in binary64 and 0x40155555 in binary32, slightly
 * below. 1 divided by it rounds to 0x3edb6db7, and 6 to 0x4024924a. */
TEST(every_step_rounds) {
    const float in[] = {1, 6, 0};
    const uint32_t want[] = {0x3edb6db7, 0x4024924a, 0};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        float out[3];
        test_measure(*backend, "normalize", "", (gf_format){3, 1, 1, GF_F32, false}, in, NULL, out);
        assert_memory_equal(out, want, sizeof out);
    }
}

TEST(clipped_at_white) {
    const uint8_t in[] = {0, 0, 0, 200}; /* mean 50: 4 * 127.5 = 510 */
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[4];
        test_measure(*backend, "normalize", "", (gf_format){4, 1, 1, GF_U8, false}, in, NULL, out);
        assert_memory_equal(out, ((uint8_t[]){0, 0, 0, 255}), 4);
    }
}

/* A mean of 0 or less counts as 1. */
TEST(nonpositive_means_count_as_1) {
    const uint8_t black[4] = {0};
    const float below[] = {-3, 1, -2, 0}, balanced[] = {-0.5f, 0.5f, 2, -2};
    const uint8_t zeros[4] = {0};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[4] = {1, 1, 1, 1};
        float real[4];
        test_measure(*backend, "normalize", "", (gf_format){2, 2, 1, GF_U8, false}, black, NULL,
                     out);
        assert_memory_equal(out, zeros, 4);
        test_measure(*backend, "normalize", "", (gf_format){2, 2, 1, GF_F32, false}, below, NULL,
                     real);
        assert_memory_equal(real, below, sizeof real);
        test_measure(*backend, "normalize", "", (gf_format){2, 2, 1, GF_F32, false}, balanced, NULL,
                     real);
        assert_memory_equal(real, balanced, sizeof real);
    }
}

TEST(each_channel_its_own_mean) {
    /* r: mean 20; g: mean 40; b: mean 0; alpha is copied */
    const uint8_t in[] = {10, 40, 0, 3, 30, 40, 0, 250};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[8];
        test_measure(*backend, "normalize", "", (gf_format){2, 1, 4, GF_U8, true}, in, NULL, out);
        /* 10/20*127.5 = 63.75, 30/20*127.5 = 191.25 */
        assert_memory_equal(out, ((uint8_t[]){64, 128, 0, 3, 191, 128, 0, 250}), 8);
    }
}

TEST(special_numbers) {
    const float inf = 1.0f / 0.0f;
    const uint32_t odd[] = {0xffc12345, 0x3f800000}, nan = 0x7fc00000;
    const float infinite[] = {inf, 4};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint32_t out[2];
        /* The mean is NaN, therefore all quotients are NaN. */
        test_measure(*backend, "normalize", "", (gf_format){2, 1, 1, GF_F32, false}, odd, NULL,
                     out);
        assert_true(out[0] == nan && out[1] == nan);
        test_measure(*backend, "normalize", "", (gf_format){2, 1, 1, GF_F32, false}, infinite, NULL,
                     out);
        assert_true(out[0] == nan && out[1] == 0);
        /* Alpha is copied bit for bit, including NaN. */
        test_measure(*backend, "normalize", "", (gf_format){1, 1, 2, GF_F32, true},
                     (uint32_t[]){0x40000000, 0xffc12345}, NULL, out);
        assert_true(out[0] == 0x3f800000 && out[1] == 0xffc12345);
    }
}

int main(void) {
    return test_main(NULL);
}
