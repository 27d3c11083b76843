/* axis-sum against values computed by hand, on every backend of this machine. */

#include "core/result.h"
#include "measuring.h"

/* Compare the column `grey` of a table. */
static void check_grey(const char *backend, const char *text, gf_format format, const void *pixels,
                       const char *table, const char *want) {
    AUTO(result)
    gf_result *result = test_measure(backend, "axis-sum", text, format, pixels, NULL, NULL);
    test_column(result, table, "grey", want);
}

/* The matrix 0..23 with 4 rows of 6 samples. */
TEST(published_check) {
    uint8_t u8[24];
    uint16_t u16[24];
    float f32[24];
    for (int i = 0; i < 24; i++) {
        u8[i] = (uint8_t)i;
        u16[i] = (uint16_t)i;
        f32[i] = (float)i;
    }
    const void *const images[] = {u8, u16, f32};
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (int type = GF_U8; type <= GF_F32; type++) {
            gf_format format = {6, 4, 1, (gf_type)type, false};
            gf_result *result =
                test_measure(*backend, "axis-sum", "", format, images[type], NULL, NULL);
            test_column(result, "sums", "y", "0 1 2 3");
            test_column(result, "sums", "grey", "15 51 87 123");
            test_column(result, "totals", "sum", "276");
            test_column(result, "totals", "mean", "11.5");
            gf_result_free(result);
            result = test_measure(*backend, "axis-sum", "axis=y", format, images[type], NULL, NULL);
            test_column(result, "sums", "x", "0 1 2 3 4 5");
            test_column(result, "sums", "grey", "36 40 44 48 52 56");
            test_column(result, "totals", "sum", "276");
            gf_result_free(result);
        }
}

TEST(channels_and_alpha) {
    const uint8_t rgba[] = {1, 2, 3, 200, 10, 20, 30, 201, /* */ 4, 5, 6, 202, 40, 50, 60, 203};
    const uint16_t grey_alpha[] = {7, 1000, 8, 2000};
    const test_measured cases[] = {
        {"", 2, 2, 4, GF_U8, rgba,
         "columns: 4; sums.r: 11 44; .g: 22 55; .b: 33 66; totals.channel: r g b"},
        {"axis=y", 2, 2, 4, GF_U8, rgba,
         "sums.r: 5 50; .data: 402 404; totals.channel: r g b data; .sum: 55 77 99 806",
         .data = true},
        {"", 2, 1, 2, GF_U16, grey_alpha, "columns: 2; sums.grey: 15"},
    };
    test_measure_cases("axis-sum", cases, sizeof cases / sizeof cases[0]);
}

/* The sum of 70000 samples of 65535 exceeds 2^32. */
TEST(sums_past_32_bits) {
    enum { WIDTH = 70000 };
    AUTO(free) uint16_t *white = malloc(WIDTH * sizeof *white);
    assert_non_null(white);
    memset(white, 0xff, WIDTH * sizeof *white);
    const test_measured cases[] = {
        {"", WIDTH, 1, 1, GF_U16, white, "sums.grey: 4587450000"},
        {"axis=y", 1, WIDTH, 1, GF_U16, white, "sums.grey: 4587450000"},
    };
    test_measure_cases("axis-sum", cases, sizeof cases / sizeof cases[0]);
}

/* One rounding for integers: (2^53 + 1) / 3 is an integer, but 2^53 + 1 is no binary64. */
TEST(means) {
    const uint8_t v[] = {1, 2, 4, 10, 20, 0};
    const float real[] = {0.5f, 1, -3};
    assert_true(gf_quotient(UINT64_C(9007199254740993), 3) == 3002399751580331.0);
    assert_true(gf_quotient(UINT64_C(9007199254740993), 1) == 9007199254740992.0);
    assert_true(gf_quotient((gf_u128)UINT64_MAX << 64, UINT64_MAX) == 0x1p64);
    assert_true(gf_quotient(1, UINT64_MAX) == 0x1p-64);
    assert_true(gf_quotient(2, 3) == 2.0 / 3);
    assert_true(gf_quotient(0, 3) == 0);
    const test_measured cases[] = {
        {"mean", 3, 2, 1, GF_U8, v, "means.grey: 2.3333333333333335 10; totals.sum: 37"},
        {"axis=y mean", 3, 2, 1, GF_U8, v, "means.grey: 5.5 11 2"},
        {"mean", 3, 1, 1, GF_F32, real, "means.grey: -0.5"},
    };
    test_measure_cases("axis-sum", cases, sizeof cases / sizeof cases[0]);
}

/* Merged sums of columns exceed 2^32. */
TEST(states_merge) {
    const gf_filter *filter = gf_filter_find("axis-sum");
    AUTO(settings) gf_settings *settings = test_settings(filter, "axis=y");
    AUTO(free) gf_plan *plan = calloc(1, filter->plan_bytes);
    assert_non_null(plan);
    plan->in = (gf_format){3, 1, 1, GF_U16, false};
    plan->inputs = 1;
    assert_ok(filter->plan(settings, plan, NULL));
    assert_int_equal(plan->state_bytes, 24);
    uint64_t sums[3] = {1, UINT64_C(0xffffffff), UINT64_C(1) << 60};
    const uint64_t more[3] = {2, 1, UINT64_C(1) << 60};
    filter->measure->merge(plan, sums, more);
    assert_int_equal(sums[0], 3);
    assert_true(sums[1] == UINT64_C(1) << 32);
    assert_true(sums[2] == UINT64_C(1) << 61);
}

/* 2^53 + 1 rounds to 2^53, but 2^53 + 2 is exact. Lane 0 holds 2^53 + 1 = 2^53, lane 1 holds 1 + 1
 * = 2, and the tree adds them last. Any other order returns 2^53. */
TEST(rows_are_summed_in_lanes) {
    float row[258] = {0};
    row[0] = 9007199254740992.0f;
    row[1] = row[256] = row[257] = 1;
    const test_measured cases[] = {
        {"", 258, 1, 1, GF_F32, row, "sums.grey: 9007199254740994"},
        /* The same samples in a column are added one by one. */
        {"axis=y", 1, 258, 1, GF_F32, row, "sums.grey: 9007199254740992"},
    };
    test_measure_cases("axis-sum", cases, sizeof cases / sizeof cases[0]);
}

/* The tree starts with stride 128: lanes 0 and 128 yield 2^53 + 1 = 2^53, lanes 1 and 129 yield 1 +
 * 1 = 2. */
TEST(the_tree_halves) {
    float row[256] = {0};
    row[0] = 9007199254740992.0f;
    row[128] = row[1] = row[129] = 1;
    for (const char *const *backend = test_backends(); *backend; backend++)
        check_grey(*backend, "", (gf_format){256, 1, 1, GF_F32, false}, row, "sums",
                   "9007199254740994");
}

TEST(special_numbers) {
    const float inf = 1.0f / 0.0f;
    const uint32_t odd_nan = 0xffc12345;
    float nan;
    memcpy(&nan, &odd_nan, sizeof nan);
    const float rows[] = {-0.0f, -0.0f, inf, 1, inf, -inf, nan, 1, 1e-45f, 1e-45f};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        AUTO(result)
        gf_result *result = test_measure(*backend, "axis-sum", "",
                                         (gf_format){2, 5, 1, GF_F32, false}, rows, NULL, NULL);
        /* Lanes start at +0, and adding -0 does not change that. */
        assert_true(test_cell(result, "sums", "grey", 0).real == 0);
        test_column(result, "sums", "grey", "0 inf nan nan 2.802596928649634e-45");
        for (uint64_t row = 2; row < 4; row++) {
            const double value = test_cell(result, "sums", "grey", row).real;
            uint64_t bits;
            memcpy(&bits, &value, sizeof bits);
            assert_true(bits == UINT64_C(0x7ff8000000000000));
        }
        check_grey(*backend, "axis=y", (gf_format){2, 5, 1, GF_F32, false}, rows, "sums",
                   "nan -inf");
    }
}

TEST(large_results_are_rejected) {
    static uint8_t rows[1000];
    assert_error(
        test_measure_error("axis-sum", "", (gf_format){1, 1000, 1, GF_U8, false}, rows, 7999),
        GF_FAILED, "--max-memory");
}

int main(void) {
    return test_main(NULL);
}
