/* median, percentile, erode and dilate: values computed by hand, the order of f32, the sorting
 * networks, and golden against windows that are sorted one by one. */
#include <math.h>

#include "measuring.h"
#include "percentile/networks.h"
#include "percentile/percentile.h"

static gf_format grey(uint64_t width, uint64_t height, gf_type type) {
    return (gf_format){width, height, 1, type, false};
}

/* Run a case on an image of u8 on every backend. */
static void check_u8(const char *filter, const char *text, uint64_t width, uint64_t height,
                     const uint8_t *in, const uint8_t *want) {
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[64];
        test_measure(*backend, filter, text, grey(width, height, GF_U8), in, NULL, out);
        assert_memory_equal(out, want, width * height);
    }
}

/* ---- values computed by hand ----------------------------------------------------------------- */

TEST(median_of_nine) {
    const uint8_t in[] = {9, 1, 8, 2, 7, 3, 6, 4, 5};
    /* The window of the first sample: 9 9 1, 9 9 1, 2 2 7. */
    check_u8("median", "", 3, 3, in, (uint8_t[]){7, 7, 7, 6, 5, 5, 6, 5, 5});
    check_u8("median", "edge=constant:0", 3, 3, in, (uint8_t[]){0, 2, 0, 2, 5, 3, 0, 3, 0});
}

TEST(percentiles_of_a_row) {
    const uint8_t in[] = {50, 10, 40, 20, 30};
    /* Windows of 5 with the edges replicated: 50 50 50 10 40, ..., 40 20 30 30 30. */
    check_u8("percentile", "radius=2,0 percent=0", 5, 1, in, (uint8_t[]){10, 10, 10, 10, 20});
    check_u8("percentile", "radius=2,0 percent=19.9", 5, 1, in, (uint8_t[]){10, 10, 10, 10, 20});
    check_u8("percentile", "radius=2,0 percent=20", 5, 1, in, (uint8_t[]){40, 20, 20, 20, 30});
    check_u8("percentile", "radius=2,0 percent=79.9", 5, 1, in, (uint8_t[]){50, 50, 40, 30, 30});
    check_u8("percentile", "radius=2,0 percent=80", 5, 1, in, (uint8_t[]){50, 50, 50, 40, 40});
    check_u8("percentile", "radius=2,0 percent=100", 5, 1, in, (uint8_t[]){50, 50, 50, 40, 40});
}

TEST(masks_shrink_and_grow) {
    const uint8_t in[] = {0, 0, 0, 0, 0, 0, 9, 9, 9, 0, 0, 9, 9, 9, 0, 0, 9, 9, 9, 0};
    const uint8_t smaller[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 9, 0, 0};
    const uint8_t larger[] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    check_u8("erode", "", 5, 4, in, smaller);
    check_u8("dilate", "", 5, 4, in, larger);
    check_u8("erode", "edge=constant:0", 5, 4, in,
             (uint8_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0});
    check_u8("dilate", "radius=0,1", 5, 4, in,
             (uint8_t[]){0, 9, 9, 9, 0, 0, 9, 9, 9, 0, 0, 9, 9, 9, 0, 0, 9, 9, 9, 0});
}

/* The percentage is not rounded to binary32: 625 * 0.16 / 100 is 1, in binary32 it is less. */
TEST(indices_are_those_of_binary64) {
    static const struct {
        const char *text;
        uint32_t count, index;
        gf_percentile_form form;
    } cases[] = {
        {"percent=0.16 radius=12", 625, 1, GF_PERCENTILE_SELECT},
        {"percent=0.15 radius=12", 625, 0, GF_PERCENTILE_MINIMUM},
        {"percent=50", 9, 4, GF_PERCENTILE_NETWORK},
        {"percent=50 radius=4", 81, 40, GF_PERCENTILE_SELECT},
        {"percent=50 radius=3,2", 35, 17, GF_PERCENTILE_SELECT},
        {"percent=99.999 radius=63", 16129, 16128, GF_PERCENTILE_MAXIMUM},
        {"percent=100", 9, 8, GF_PERCENTILE_MAXIMUM},
    };
    const gf_filter *filter = gf_filter_find("percentile");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(settings) gf_settings *settings = test_settings(filter, cases[i].text);
        const gf_format format = grey(8, 8, GF_U8);
        gf_plan *head;
        assert_ok(gf_plan_new(filter, settings, &format, &head, &why));
        const gf_percentile_plan *plan = (const gf_percentile_plan *)head;
        assert_int_equal(plan->count, cases[i].count);
        assert_int_equal(plan->index, cases[i].index);
        assert_int_equal(plan->form, cases[i].form);
        gf_plan_free(head);
    }
}

/* -inf < ... < -0 < +0 < ... < +inf < NaN; every NaN becomes 0x7fc00000. */
TEST(order_of_f32) {
    const uint32_t sorted[] = {0xff800000, 0xff7fffff, 0x80000001, 0x80000000, 0,
                               1,          0x3f800000, 0x7f800000, 0x7fc00000};
    uint32_t in[9], out[9];
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (uint32_t percent = 0; percent < 9; percent++) {
            for (uint32_t i = 0; i < 9; i++)
                in[i] = sorted[i * 5 % 9];
            in[7] = 0xffc12345; /* 7 * 5 % 9 is 8: another NaN */
            char text[64];
            snprintf(text, sizeof text, "percent=%.1f", percent * 100 / 9.0 + 0.1);
            test_measure(*backend, "percentile", text, grey(3, 3, GF_F32), in, NULL, out);
            assert_int_equal(out[4], sorted[percent]);
        }
}

TEST(refuses_what_it_cannot_compute) {
    const uint8_t in[1] = {0};
    assert_int_equal(
        test_measure_error("median", "edge=constant:256", grey(1, 1, GF_U8), in, UINT64_MAX),
        GF_USAGE);
    assert_message(&why, "--edge 'constant:256': the value must be an integer from 0 to 255");
}

/* ---- sorting networks ------------------------------------------------------------------------ */

/* Wires hold 64 inputs of 0 and 1 each: the minimum of two is their conjunction. */
#define CE(a, b) low = v[a] & v[b], v[b] = v[a] | v[b], v[a] = low;
#define LO(a, b) v[a] = v[a] & v[b];
#define HI(a, b) v[b] = v[a] | v[b];

/* Return whether the networks find the median of K sorted columns of K - 1, and K samples more, for
 * a combination of the numbers of ones in the columns and among these samples: inputs, in base K,
 * and its last digit in base K + 1. */
static bool median_is_right(uint32_t K, uint32_t inputs) {
    const uint8_t order[3][8] = {{GF_CORE_ORDER_3}, {GF_CORE_ORDER_5}, {GF_CORE_ORDER_7}};
    uint64_t v[42] = {0}, core[8], low;
    uint32_t ones = 0;
    for (uint32_t c = 0; c < K; c++, inputs /= K) {
        const uint32_t of_column = inputs % K;
        ones += of_column;
        for (uint32_t j = K - 1 - of_column; j < K - 1; j++)
            v[c * (K - 1) + j] = 1;
    }
    if (K == 3) {
        GF_CORE_3(CE, LO, HI)
    } else if (K == 5) {
        GF_CORE_5(CE, LO, HI)
    } else {
        GF_CORE_7(CE, LO, HI)
    }
    for (uint32_t j = 0; j < K + 1; j++)
        core[j] = v[order[K / 2 - 1][j]];
    memcpy(v, core, sizeof core);
    for (uint32_t j = 0; j < K; j++)
        v[K + 1 + j] = j >= K - inputs;
    if (K == 3) {
        GF_MEDIAN_3(CE, LO, HI)
    } else if (K == 5) {
        GF_MEDIAN_5(CE, LO, HI)
    } else {
        GF_MEDIAN_7(CE, LO, HI)
    }
    return v[K] == (ones + inputs > K * K / 2);
}

/* All inputs of 0 and 1: 3^3 * 4, 5^5 * 6 and 7^7 * 8 for sorted columns and samples. */
TEST(networks_find_medians) {
    for (uint32_t inputs = 0; inputs < 108; inputs++)
        assert_true(median_is_right(3, inputs));
    for (uint32_t inputs = 0; inputs < 18750; inputs++)
        assert_true(median_is_right(5, inputs));
    for (uint32_t inputs = 0; inputs < 6588344; inputs += (uint32_t)test_stride(31, 1))
        assert_true(median_is_right(7, inputs));
}

#define WIRES(...) ((const uint32_t[]){__VA_ARGS__})
#define APPEND(first, operation, ...)                                                              \
    v[n] = first;                                                                                  \
    for (size_t i = 0; i < sizeof WIRES(__VA_ARGS__) / sizeof(uint32_t); i++)                      \
        v[n] = v[n] operation v[WIRES(__VA_ARGS__)[i]];                                            \
    n++;
#define LEAST(...) APPEND(true, &&, __VA_ARGS__)
#define GREATEST(...) APPEND(false, ||, __VA_ARGS__)

/* All inputs of 0 and 1 in sorted groups. */
TEST(networks_find_two_medians) {
    for (uint32_t K = 5; K <= 7; K += 2) {
        const uint32_t size[6] = {2 * K, K - 1, K - 1, K - 1, 1, 1};
        for (uint32_t inputs = 0; inputs < (2 * K + 1) * K * K * K * 4; inputs++) {
            bool v[96];
            uint32_t n = 0, ones[6], rest = inputs;
            for (uint32_t g = 0; g < 6; rest /= size[g] + 1, g++) {
                ones[g] = rest % (size[g] + 1);
                for (uint32_t j = 0; j < size[g]; j++)
                    v[n++] = j >= size[g] - ones[g];
            }
            if (K == 5) {
                GF_TWO_MEDIANS_5(LEAST, GREATEST)
            } else {
                GF_TWO_MEDIANS_7(LEAST, GREATEST)
            }
            for (uint32_t y = 0; y < 2; y++)
                assert_int_equal(v[n - 2 + y],
                                 ones[0] + ones[1] + ones[2 + y] + ones[4 + y] >= 2 * K);
        }
    }
}

TEST(networks_sort) {
    for (uint32_t size = 2; size <= 7; size++)
        for (uint32_t ones = 0; ones < 128; ones++) {
            uint64_t v[7], low;
            for (int i = 0; i < 7; i++)
                v[i] = ones >> i & 1;
            if (size == 2) {
                GF_SORT_2(CE)
            } else if (size == 3) {
                GF_SORT_3(CE)
            } else if (size == 4) {
                GF_SORT_4(CE)
            } else if (size == 5) {
                GF_SORT_5(CE)
            } else if (size == 6) {
                GF_SORT_6(CE)
            } else {
                GF_SORT_7(CE)
            }
            for (uint32_t i = 0; i + 1 < size; i++)
                assert_true(v[i] <= v[i + 1]);
        }
}

/* ---- golden ---------------------------------------------------------------------------------- */

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Golden counts and divides the axes; here each window is sorted. */
TEST(golden_equals_sorted_windows) {
    static const char *const cases[] = {
        "percent=50",
        "percent=30 radius=2,1 edge=mirror",
        "percent=0 radius=1,3 edge=reflect",
        "percent=100 radius=4,0 edge=constant:3",
        "percent=85 radius=5,7 edge=constant:100",
    };
    test_random random = test_seeded(7);
    const gf_filter *filter = gf_filter_find("percentile");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const gf_format format =
            grey(1 + test_below(&random, 12), 1 + test_below(&random, 9), GF_F32);
        AUTO(settings) gf_settings *settings = test_settings(filter, cases[k]);
        float in[12 * 9], out[12 * 9], window[11 * 15];
        gf_plan *head;
        for (size_t i = 0; i < 12 * 9; i++)
            in[i] = (float)test_below(&random, 40) - 20;
        assert_ok(gf_plan_new(filter, settings, &format, &head, &why));
        const gf_percentile_plan *plan = (const gf_percentile_plan *)head;
        test_measure("golden", "percentile", cases[k], format, in, NULL, out);
        for (int64_t y = 0; y < (int64_t)format.height; y++)
            for (int64_t x = 0; x < (int64_t)format.width; x++) {
                size_t n = 0;
                for (int64_t j = y - plan->radius[1]; j <= y + plan->radius[1]; j++)
                    for (int64_t i = x - plan->radius[0]; i <= x + plan->radius[0]; i++) {
                        const int64_t at = gf_edge_index(plan->edge.mode, i, (int64_t)format.width);
                        const int64_t row =
                            gf_edge_index(plan->edge.mode, j, (int64_t)format.height);
                        window[n++] = at < 0 || row < 0 ? plan->edge.value
                                                        : in[row * (int64_t)format.width + at];
                    }
                qsort(window, n, sizeof *window, compare_floats);
                const float got = out[y * (int64_t)format.width + x];
                assert_memory_equal(&got, &window[plan->index], sizeof got);
            }
        gf_plan_free(head);
    }
}

/* Images of several tiles, and divisions of the image that are rare, on every backend. From 1,000
 * rows on, strips have more than one row. */
TEST(tiles_equal_golden) {
    static const struct {
        const char *filter, *text;
        gf_format format;
    } cases[] = {
        {"median", "edge=mirror", {2100, 1000, 1, GF_U8, false}},
        {"median", "radius=2", {150, 1000, 3, GF_U8, false}},
        {"median", "radius=3", {150, 1000, 4, GF_F32, true}},
        {"median", "radius=20", {150, 1000, 2, GF_U16, true}},
        {"percentile", "percent=30 radius=9,12", {300, 1000, 3, GF_U8, false}},
        {"percentile", "percent=60 radius=33,9 edge=reflect", {130, 1000, 1, GF_F32, false}},
        {"erode", "radius=76,377", {100, 1000, 3, GF_F32, false}},
        {"erode", "radius=9 edge=constant:7", {3100, 1000, 1, GF_U8, false}},
        {"dilate", "radius=511", {50, 1000, 4, GF_U16, true}},
    };
    test_random random = test_seeded(8);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const size_t bytes = gf_row_bytes(&cases[k].format) * cases[k].format.height;
        uint8_t *in = test_alloc(bytes), *want = test_alloc(bytes), *out = test_alloc(bytes);
        for (size_t i = 0; i < bytes; i++)
            in[i] = (uint8_t)test_below(&random, 256);
        test_measure("golden", cases[k].filter, cases[k].text, cases[k].format, in, NULL, want);
        for (const char *const *backend = test_backends(); *backend; backend++) {
            test_measure(*backend, cases[k].filter, cases[k].text, cases[k].format, in, NULL, out);
            assert_memory_equal(out, want, bytes);
        }
        free(in);
        free(want);
        free(out);
    }
}

int main(void) {
    return test_main(NULL);
}
