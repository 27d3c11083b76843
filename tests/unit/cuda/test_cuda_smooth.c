/* smooth's CUDA kernels on inputs that exercise the special cases of each. Results equal
 * golden, and nothing is written outside the output rows. */

#include "strip.h"

/* Check all rows of an image with 64-byte alignment. Even numbers of channels include alpha. */
static void check(const char *text, uint64_t seed, uint64_t width, uint64_t height,
                  uint32_t channels, int type) {
    const gf_format format = {width, height, channels, (gf_type)type, channels % 2 == 0};
    assert_true(test_strip_on_device(gf_filter_find("smooth"), text, seed, format, true, 64));
}

/* The integer path of u8: scales that skip values up to white, and random parameters. */
TEST(bright_and_random_parameters) {
    test_needs_gpu();
    static const char *const cases[] = {
        "stages=enhance gain=1.8",
        "stages=enhance gain=2",
        "stages=enhance gain=10",
        "stages=enhance gain=100",
        "stages=smooth weight=2",
        "stages=smooth weight=2.0001",
        "stages=enhance,blur radius=1 gain=100",
        "gain=10 weight=1",
        "gain=3 weight=1.5 radius=3",
        "stages=enhance,blur radius=4 gain=10",
        "stages=enhance,blur radius=4 gain=0.0001",
        "stages=enhance,blur radius=8 gain=20",
        "stages=blur,smooth radius=8 weight=9.5",
    };
    const gf_filter *smooth = gf_filter_find("smooth");
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            check(cases[c], 777 + c, 501 + c, 9, channels, GF_U8);
    for (size_t c = 0; test_case(smooth, c); c++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (uint64_t seed = 0; seed < 4; seed++) /* different contents */
                check(test_case(smooth, c), 1777 + c * 4 + seed, 501 + c, 9, channels, GF_U8);
    const uint64_t rounds = test_rounds(12) * 10;
    test_random random = {test_environment("GF_TEST_SEED", 20261120)};
    for (uint64_t round = 0; round < rounds; round++) {
        char text[128];
        const double top = test_below(&random, 2) ? 100 : 3;
        const double gain = top * (double)(1 + test_below(&random, 1000)) / 1000;
        const double weight =
            test_below(&random, 2)
                ? (double)(1 + test_below(&random, 30)) / (double)(1 + test_below(&random, 30))
                : (double)(1 + test_below(&random, 3000)) / 1001;
        const int radius = (int)test_below(&random, 9);
        if (test_below(&random, 4) == 0)
            snprintf(text, sizeof text, "stages=enhance,blur gain=%g radius=%d", gain, radius);
        else
            snprintf(text, sizeof text, "gain=%g weight=%g radius=%d%s", gain, weight, radius,
                     test_below(&random, 2) ? " keep-brightness" : "");
        gf_format format = {1 + test_below(&random, 300), 3, (uint32_t)(1 + test_below(&random, 4)),
                            GF_U8, false};
        format.alpha = format.channels % 2 == 0 && test_below(&random, 4) != 0;
        assert_true(test_strip_on_device(smooth, text, round, format, true, 64));
    }
}

/* Windows just below and above one run, group or tile of the row kernels, at both ends of rows of
 * all lengths around these sizes. */
TEST(every_radius_and_width) {
    test_needs_gpu();
    for (uint32_t radius = 0; radius <= 9; radius++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (int type = GF_U8; type <= GF_F32; type++)
                for (uint64_t width = 1; width < 80; width += 1 + width / 9) {
                    char text[64];
                    snprintf(text, sizeof text, "radius=%u%s", radius,
                             width % 2 ? "" : " weight=0.3333 gain=0.9");
                    check(text, 9000 + radius * 100 + width, width, 3, channels, type);
                }
}

/* Rows that fill one warp or several: row ends at every position within a lane, and a last warp
 * with little work. */
TEST(rows_of_several_warps) {
    test_needs_gpu();
    for (int type = GF_U16; type <= GF_F32; type++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (uint32_t warps = 1; warps <= 4; warps *= 2)
                for (int d = -9; d <= 26; d += 1 + (d > 9 ? 4 : 0)) {
                    const uint64_t bytes = 1536; /* per warp: 48 per lane */
                    const uint64_t pixel = channels * (type == GF_U16 ? 2 : 4);
                    char text[64];
                    snprintf(text, sizeof text, "radius=%d%s", 1 + (d + 9) % 3,
                             d % 2 ? "" : " weight=0.3333 gain=0.9");
                    check(text, 7000 + warps * 100 + (uint64_t)(d + 9),
                          warps * bytes / pixel + (uint64_t)(d + 9) - 9, 3, channels, type);
                }
}

/* u8 rows of one tile, part of a tile, or several tiles: row ends at every position of the last
 * tile, and windows across tiles. */
TEST(rows_of_several_tiles) {
    test_needs_gpu();
    static const uint64_t bytes[] = {1472, 1536, 3072, 6144, 9216};
    static const int radii[] = {1, 2, 3, 8};
    for (size_t b = 0; b < sizeof bytes / sizeof bytes[0]; b++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (uint64_t d = 0; d < 40; d += 1 + d / 4) {
                const uint64_t at = b * 1000 + channels * 100 + d;
                char text[64];
                snprintf(text, sizeof text, "radius=%d", radii[at % 4]);
                check(text, at, bytes[b] / channels + d - 20, 5, channels, GF_U8);
            }
}

/* Any row stride, in the input and in the output. */
TEST(rows_far_apart) {
    test_needs_gpu();
    static const size_t aligns[] = {128, 512, 1024, 2048, 4096};
    static const uint64_t widths[] = {1, 3, 15, 16, 17, 100, 1000, 3100};
    const gf_filter *smooth = gf_filter_find("smooth");
    for (size_t i = 0; i < sizeof aligns / sizeof aligns[0]; i++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            for (int type = GF_U8; type <= GF_F32; type++) {
                const uint32_t channels = (uint32_t)(1 + (i + w) % 4);
                const gf_format format = {widths[w], 7, channels, (gf_type)type, channels % 2 == 0};
                assert_true(test_strip_on_device(smooth, "", i * 10 + w, format, true, aligns[i]));
            }
}

/* About every second sum is a tie; of both axes together, one of 256, more than a list has room
 * for. */
TEST(ties_all_over) {
    test_needs_gpu();
    static const char *const cases[] = {
        "stages=enhance,blur radius=1 gain=1.5",
        "stages=enhance,blur radius=2 gain=2.5",
        "stages=enhance,blur radius=3 gain=3.5",
        "gain=1.5 weight=1 radius=1",
        "gain=2.5 weight=1 radius=2",
        "gain=3.5 weight=1 radius=3",
        "stages=enhance gain=0.5",
        "stages=enhance,smooth gain=0.25 weight=1",
        "axis=xy radius=3 gain=0.4375 weight=1",
        "axis=xy gain=0.9 weight=0.45", /* sums above 2^23 */
        "axis=xy gain=5",
    };
    static const uint64_t widths[] = {5, 33, 100, 509, 1537, 3200};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            for (uint32_t channels = 1; channels <= 4; channels++)
                check(cases[c], c * 100 + w, widths[w], 70, channels, GF_U8);
}

/* Columns of every height around one window and one chunk, with row ends at every position of a
 * thread, and images of several chunks. */
TEST(columns_of_several_chunks) {
    test_needs_gpu();
    static const char *const settings[] = {"", " stages=enhance,blur", " keep-brightness",
                                           " weight=0.3333 gain=0.9"};
    const gf_filter *smooth = gf_filter_find("smooth");
    for (uint32_t radius = 0; radius <= 3; radius++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (int type = GF_U8; type <= GF_F32; type++)
                for (uint64_t height = 1; height < 2000; height += 1 + height / 9 * height / 9) {
                    const uint64_t at = height + radius + channels;
                    char text[96];
                    snprintf(text, sizeof text, "axis=%s radius=%u%s", at % 2 ? "y" : "xy", radius,
                             settings[height % 4]);
                    const gf_format format = {1 + at * 7 % 40, height, channels, (gf_type)type,
                                              channels % 2 == 0};
                    assert_true(
                        test_strip_on_device(smooth, text, 5000 + at, format, at % 3 != 0, 64));
                }
    for (int type = GF_U8; type <= GF_F32; type++)
        for (uint32_t channels = 1; channels <= 4; channels++) {
            const gf_format format = {2100 + channels, 1100, channels, (gf_type)type,
                                      channels % 2 == 0};
            check("axis=y", channels, format.width, 1100, channels, type);
            assert_true(
                test_strip_on_device(smooth, "axis=xy radius=3", channels, format, false, 64));
        }
}

int main(void) {
    return test_main(NULL);
}
