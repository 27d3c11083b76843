/* The SIMD code of smooth on inputs that random images seldom contain, at every SIMD level: every
 * sum of the 16-bit path, images full of ties, every quotient. */
#include <math.h>

#include "core/filter.h"
#include "smooth/smooth.h"
#include "smooth/smooth_cpu.h"
#include "testing.h"

static gf_plan *plan_of(const char *text, gf_format format) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    gf_plan *plan = NULL;
    assert_ok(gf_plan_new(filter, settings, &format, &plan, &why));
    return plan;
}

/* ---- 16-bit path ----------------------------------------------------------------------------- */

/* Check every sum T of a plan whose exact value is T * numerator / denominator, apart from the
 * rounding of the parameters. Every T is detected as a tie, or is further than the tie margin from
 * a tie and rounds like the exact value. */
static void check_every_sum(const char *text, uint32_t numerator, uint32_t denominator,
                            unsigned ties) {
    AUTO(free) gf_plan *head = plan_of(text, (gf_format){100, 1, 1, GF_U8, false});
    const gf_smooth_plan *plan = (const gf_smooth_plan *)head;
    const gf_smooth_seven *by = gf_smooth_exact_of(plan);
    assert_non_null(by);
    assert_memory_equal(by->tap, plan->integer.tap, 7);
    assert_int_equal(by->tap[7], 0);
    uint32_t max = 0, found = 0;
    for (int k = 0; k < 7; k++) {
        max += 255u * by->tap[k];
        assert_true(by->tap[k] + by->tap[k + 1] <= 128); /* maddubs does not saturate */
    }
    assert_true(max < 1u << 14);
    for (uint32_t t = 0; t <= max; t++) {
        const uint32_t value = ((t * by->factor >> 16) + 16) >> 5;
        const uint32_t rounded = (2 * numerator * t + denominator) / (2 * denominator);
        const double real = (double)numerator * t / denominator;
        const double off = fabs(real - floor(real) - 0.5);
        if ((int16_t)(uint16_t)(t * by->tie) < by->tie_below) {
            found++;
            continue;
        }
        if ((value < 255 ? value : 255) != (rounded < 255 ? rounded : 255))
            fail_msg("'%s': T = %u rounds to %u, expected %u", text, t, value, rounded);
        if (off <= (double)plan->integer.tie_margin && real < 256)
            fail_msg("'%s': T = %u is a tie that is not detected", text, t);
    }
    assert_int_equal(found, ties);
}

TEST(every_sum_rounds_correctly) {
    check_every_sum("", 33, 1250, 8); /* 625, 1875, ..., 9375; larger sums are 255 */
    check_every_sum("keep-brightness", 1, 55, 0);
    AUTO(free) gf_plan *other = plan_of("gain=1.2", (gf_format){100, 1, 1, GF_U8, false});
    assert_null(gf_smooth_exact_of((const gf_smooth_plan *)other));
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Compare golden and the CPU function at every level, in `parts` parts. */
static void compare(const char *text, const test_image *in, uint32_t parts, const char *what) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(free) gf_plan *plan = plan_of(text, in->format);
    AUTO(image) test_image want = test_image_new(in->format, 0);
    const gf_strip golden = {.in = {in->rows}, .out = want.rows};
    assert_ok(filter->golden(plan, &golden, NULL));
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        AUTO(image) test_image got = test_image_new(in->format, 5);
        AUTO(free)
        void *scratch = aligned_alloc(64, (filter->cpu.scratch_bytes(plan) + 63) & ~(size_t)63);
        assert_non_null(scratch);
        const gf_strip strip = {.in = {in->rows}, .out = got.rows};
        for (uint32_t part = 0; part < parts; part++)
            filter->cpu.run[isa](plan, &strip, part, parts, scratch);
        char whole[256];
        snprintf(whole, sizeof whole, "%s, '%s', %s, %u parts", what, text,
                 gf_names(GF_NAMES_SIMD)[1 + isa], parts);
        if (!test_same(&want, &got, whole))
            fail_msg("%s differs from golden", whole);
        if (!test_margins_intact(&got))
            fail_msg("%s: wrote outside its rows", whole);
    }
}

/* Fill an image with content of one of five kinds. */
static void fill(const test_image *image, unsigned kind, test_random *random) {
    for (uint64_t y = 0; y < image->format.height; y++) {
        unsigned char *row = gf_row(&image->rows, y);
        for (uint64_t i = 0; i < gf_row_samples(&image->format); i++) {
            const uint64_t r = test_next(random) >> 32;
            switch (kind) {
            case 0: /* all ties: T = 55 * 125 = 6875 */
                row[i] = 125;
                break;
            case 1: /* mostly ties, interrupted at any lane of a vector */
                row[i] = r % 61 ? 125 : (unsigned char)r;
                break;
            case 2: /* a few ties */
                row[i] = (unsigned char)(124 + r % 3);
                break;
            case 3: /* sums up to the maximum */
                row[i] = r & 1 ? 255 : 0;
                break;
            default:
                row[i] = (unsigned char)r;
            }
        }
    }
}

/* Sizes around every boundary of a vector and of a strip. */
TEST(images_full_of_ties) {
    static const char *const cases[] = {"",
                                        "axis=y",
                                        "keep-brightness",
                                        "radius=8",
                                        "radius=8 axis=y",
                                        "weight=0.3333",
                                        "tile=40",
                                        "stages=blur",
                                        "gain=1.3",
                                        "gain=0.5 radius=1",
                                        "stages=smooth weight=1",
                                        "axis=xy",
                                        "axis=xy keep-brightness",
                                        "axis=xy stages=blur radius=3",
                                        "axis=xy stages=enhance,blur radius=1 gain=1.5",
                                        "axis=xy gain=0.5 radius=1 weight=2",
                                        "axis=xy gain=2.1 weight=0.5",
                                        "axis=xy tile=40",
                                        "gain=3 axis=y",
                                        "stages=enhance gain=0.5"};
    static const uint64_t wide[] = {1344, 1365, 1366, 2047, 2049, 4095, 4097, 6000};
    test_random random = {test_environment("GF_TEST_SEED", 3)};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    for (uint64_t round = 0; round < 25 * test_rounds(12); round++) {
        gf_format format = {1 + test_below(&random, 300), 1 + test_below(&random, 40),
                            (uint32_t)(1 + test_below(&random, 4)), GF_U8, false};
        format.alpha = format.channels % 2 == 0 && round % 4 != 0;
        if (test_below(&random, 6) == 0)
            format.width = wide[test_below(&random, sizeof wide / sizeof wide[0])];
        AUTO(image) test_image in = test_image_new(format, (size_t)test_below(&random, 3));
        const unsigned kind = (unsigned)test_below(&random, 5);
        fill(&in, kind, &random);
        char what[128];
        snprintf(what, sizeof what, "round %" PRIu64 ", %" PRIu64 "x%" PRIu64 "x%u, kind %u", round,
                 format.width, format.height, format.channels, kind);
        compare(cases[test_below(&random, sizeof cases / sizeof cases[0])], &in,
                (uint32_t)(1 + test_below(&random, 5)), what);
    }
}

/* Change a window of both axes until its sum T is `wanted`. Returns false after too many tries. */
static bool steer_window(const gf_smooth_integer *by, uint32_t wanted, uint8_t window[49],
                         test_random *random) {
    const uint64_t count = 2 * by->reach + 1;
    int64_t off = -(int64_t)wanted;
    for (uint64_t i = 0; i < count * count; i++) {
        window[i] = (uint8_t)test_below(random, 256);
        off += (int64_t)by->tap[i / count] * by->tap[i % count] * window[i];
    }
    for (int tries = 0; off != 0 && tries < 100000; tries++) {
        uint64_t at[2]; /* one sample up, or down, and another one back */
        int64_t change = 0;
        for (int k = 0; k < 2; k++) {
            at[k] = test_below(random, count * count);
            change += (k ? -1 : 1) * (int64_t)by->tap[at[k] / count] * by->tap[at[k] % count];
        }
        const bool single = llabs(off) > 300;
        const int sign = off > 0 ? -1 : 1;
        if (single && window[at[0]] != (sign > 0 ? 255 : 0)) {
            off += sign * (int64_t)by->tap[at[0] / count] * by->tap[at[0] % count];
            window[at[0]] = (uint8_t)(window[at[0]] + sign);
        } else if (!single && llabs(off + change) <= llabs(off) && window[at[0]] < 255 &&
                   window[at[1]] > 0 && at[0] != at[1]) {
            off += change;
            window[at[0]]++;
            window[at[1]]--;
        }
    }
    return off == 0;
}

/* Images of windows whose values are as close as possible to a midpoint, so that only the chain
 * determines the result. */
TEST(near_ties_of_both_axes) {
    static const char *const cases[] = {"axis=xy", "axis=xy keep-brightness", "axis=xy gain=1.4",
                                        "axis=xy radius=1 gain=1.07",
                                        "axis=xy stages=enhance,blur radius=3 gain=0.9"};
    test_random random = {test_environment("GF_TEST_SEED", 77)};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    uint64_t ties = 0, missed = 0; /* missed: not where the integer form alone would round */
    for (uint64_t round = 0; round < test_rounds(12) * 5; round++) {
        const char *text = cases[round % (sizeof cases / sizeof cases[0])];
        const gf_format format = {210, 77, (uint32_t)(1 + test_below(&random, 3)), GF_U8, false};
        AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
        AUTO(free) gf_plan *head = plan_of(text, format);
        const gf_smooth_integer *by = &((const gf_smooth_plan *)head)->integer;
        assert_true(by->xy_scale > 0);
        const uint64_t count = 2 * by->reach + 1, across = 210 / count, down = 77 / count;
        AUTO(free) double *values = calloc(across * down * format.channels, sizeof(double));
        assert_non_null(values);
        for (uint64_t i = 0; i < across * down * format.channels; i++) {
            uint32_t best = 0;
            double least = 1; /* distance from a midpoint */
            for (int k = 0; k < 20; k++) {
                const double scale = (double)by->xy_scale;
                const double middle = (double)test_below(&random, 200) + 0.5;
                const uint32_t sum = (uint32_t)(middle / scale + 0.5);
                if (fabs(sum * scale - middle) < least) {
                    least = fabs(sum * scale - middle);
                    best = sum;
                }
            }
            uint8_t window[49];
            if (steer_window(by, best, window, &random))
                values[i] = best * (double)by->xy_scale;
            const uint64_t x = i / format.channels % across, y = i / format.channels / across;
            for (uint64_t j = 0; j < count * count; j++)
                gf_row(&in.rows, y * count + j / count)[(x * count + j % count) * format.channels +
                                                        i % format.channels] = window[j];
        }
        compare(text, &in, 1, "near-ties");
        const gf_strip strip = {.in = {in.rows}, .out = out.rows};
        assert_ok(gf_filter_find("smooth")->golden(head, &strip, NULL));
        for (uint64_t i = 0; i < across * down * format.channels; i++) {
            const uint64_t x = i / format.channels % across, y = i / format.channels / across;
            const uint8_t got = gf_row(
                &out.rows,
                y * count +
                    by->reach)[(x * count + by->reach) * format.channels + i % format.channels];
            ties += values[i] > 0;
            missed += values[i] > 0 && got != (uint8_t)(values[i] + 0.5);
        }
    }
    print_message("%" PRIu64 " near-ties, %" PRIu64 " rounded the other way by the chain\n", ties,
                  missed);
    assert_true(missed > ties / 20);
}

/* All u8 cases on black and white, which reach the maximum sums. */
TEST(every_case_of_black_and_white) {
    const gf_filter *filter = gf_filter_find("smooth");
    test_random random = {31};
    for (size_t c = 0; test_case(filter, c); c++)
        for (uint32_t channels = 1; channels <= 4; channels++) {
            test_image in =
                test_image_new((gf_format){307 + c, 8, channels, GF_U8, channels % 2 == 0}, 1);
            fill(&in, 3, &random);
            compare(test_case(filter, c), &in, 2, "black and white");
            test_image_free(&in);
        }
}

/* Flat rows of every grey, T = 55 v, with one different sample at any position. */
TEST(flat_images) {
    for (unsigned value = 0; value < 256; value++) {
        const gf_format format = {200, 1, 1, GF_U8, false};
        AUTO(image) test_image in = test_image_new(format, 0);
        memset(in.rows.data, (int)value, 200);
        in.rows.data[value % 200] = (unsigned char)(value * 7);
        compare("", &in, 1, "flat");
    }
}

static const gf_smooth_simd *const levels[GF_ISA_COUNT] = GF_LEVELS(gf_smooth_simd);

/* All ties are detected, at any position. Other samples are not. */
TEST(ties_are_counted) {
    AUTO(free) gf_plan *plan = plan_of("", (gf_format){4096, 1, 1, GF_U8, false});
    AUTO(free) uint8_t *in = calloc(4096 + 6, 1), *out = calloc(4096, 1);
    AUTO(free) void *scratch = aligned_alloc(64, gf_smooth_u8_bytes((const gf_smooth_plan *)plan));
    assert_true(in && out && scratch);
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        gf_smooth_u8 by;
        assert_true(gf_smooth_u8_init(&by, (const gf_smooth_plan *)plan, levels[isa], scratch));
        for (size_t n = GF_SMOOTH_U8_MIN; n <= 264; n++) {
            /* One tie from one tap: 625 = 5 * 125, at the last sample of the window. Overlapping
             * vectors report it again. */
            for (size_t at = 0; at < n; at++) {
                memset(in, 0, n + 6);
                in[at + 6] = 125;
                by.ties->count = 0;
                assert_true(gf_smooth_u8_row(&by, in + 3, out, n));
                if (by.ties->count < 1 || by.ties->count > 3 || by.ties->indices[0] != at)
                    fail_msg("%s: tie at %zu of %zu: %zu found", gf_names(GF_NAMES_SIMD)[1 + isa],
                             at, n, by.ties->count);
            }
        }
        /* Too many ties for the list. */
        memset(in, 125, 4096 + 6);
        assert_false(gf_smooth_u8_row(&by, in + 3, out, 4096));
    }
}

/* Few wide rows are split, so that every part has work. */
TEST(few_wide_rows_are_cut) {
    test_random random = {5};
    for (int type = GF_U8; type <= GF_F32; type++) {
        const gf_format format = {70000, 2, 3, (gf_type)type, false};
        AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
        test_fill(&in, TEST_UNIFORM, &random);
        compare("", &in, 7, "few rows");
        AUTO(free) gf_plan *plan = plan_of("", format);
        const gf_filter *filter = gf_filter_find("smooth");
        AUTO(free)
        void *scratch = aligned_alloc(64, (filter->cpu.scratch_bytes(plan) + 63) & ~(size_t)63);
        const gf_strip strip = {.in = {in.rows}, .out = out.rows};
        filter->cpu.run[GF_ISA_PORTABLE](plan, &strip, 5, 7, scratch);
        /* Part 5 of 7 of two rows: no sample of the first row, some of the second. */
        const size_t bytes = gf_row_bytes(&format), sample = bytes / 70000;
        assert_true(test_painted(gf_row(&out.rows, 0), gf_row(&out.rows, 0) + bytes));
        assert_true(test_painted(gf_row(&out.rows, 1), gf_row(&out.rows, 1) + 20000 * sample));
        assert_true(
            test_painted(gf_row(&out.rows, 1) + 60100 * sample, gf_row(&out.rows, 1) + bytes));
    }
}

/* ---- quotients ------------------------------------------------------------------------------- */

#define QUOTIENTS 4096

/* Check x / taps for the bit patterns x = first, first + step, ... The other taps are -0. */
static void check_quotients(const gf_smooth_simd *simd, unsigned taps, uint32_t first,
                            uint32_t step) {
    static float in[QUOTIENTS + 255 * QUOTIENTS + GF_SMOOTH_PAD], out[QUOTIENTS + GF_SMOOTH_PAD];
    static unsigned ready; /* taps after the first that are already set to -0 */
    for (; ready < taps; ready++)
        for (size_t i = 0; i < QUOTIENTS; i++)
            in[(ready + 1) * QUOTIENTS + i] = -0.0f;
    for (uint32_t i = 0; i < QUOTIENTS; i++) {
        const uint32_t bits = first + i * step;
        memcpy(&in[i], &bits, sizeof bits);
    }
    simd->blur(out, in, QUOTIENTS, taps, QUOTIENTS, (gf_smooth_prefetch){0});
    const float divisor = (float)taps;
    uint32_t wrong = 0;
    for (size_t i = 0; i < QUOTIENTS; i++) {
        const float want = in[i] / divisor;
        uint32_t a, b;
        memcpy(&a, &want, sizeof a);
        memcpy(&b, &out[i], sizeof b);
        wrong |= (a ^ b) & (want == want || out[i] == out[i] ? UINT32_MAX : 0);
    }
    if (wrong)
        fail_msg("a quotient by %u is wrong: x from %08" PRIx32 " in steps of %" PRIu32, taps,
                 first, step);
}

/* All binades, signs, zeros, infinities, NaN and subnormals: 2^16 values per divisor. With
 * GF_TEST_ROUNDS >= 1000: all 2^32 values for divisors of common radii, 2^24 for other divisors. */
TEST(quotients_are_divisions) {
    const bool all = test_rounds(12) >= 1000;
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        for (unsigned taps = 1; taps <= 255; taps++) {
            const uint64_t bits = !all ? 16 : taps <= 7 && taps > 1 ? 32 : 24;
            const uint32_t step = (uint32_t)(UINT64_C(1) << (32 - bits));
            for (uint64_t i = 0; i < UINT64_C(1) << bits; i += QUOTIENTS)
                check_quotients(levels[isa], taps,
                                (uint32_t)i * step + (step > 1 ? taps * 77 % step : 0), step);
            /* All values around zero, infinity and the smallest normal number. */
            check_quotients(levels[isa], taps, 0, 1);
            check_quotients(levels[isa], taps, 0x80000000, 1);
            check_quotients(levels[isa], taps, 0x7f800000 - QUOTIENTS / 2, 1);
            check_quotients(levels[isa], taps, 0xff800000 - QUOTIENTS / 2, 1);
            check_quotients(levels[isa], taps, 0x00800000 - QUOTIENTS / 2, 1);
        }
    }
}

int main(void) {
    return test_main(NULL);
}
