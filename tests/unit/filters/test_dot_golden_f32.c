/* dot on f32 against values computed by hand, on every backend: special numbers, rounding, and the
 * order of sums. */
#include <float.h>
#include <math.h>

#include "dot_util.h"

/* Check the bits of a binary64 cell in the first row. */
static void assert_bits(const gf_result *result, size_t column, double want) {
    const gf_value value = gf_result_cell(result, 0, 0, column);
    assert_int_equal(value.type, GF_VALUE_DOUBLE);
    assert_int_equal(bits_of(value.real), bits_of(want));
}

/* ---- binary64 -------------------------------------------------------------------------------- */

static gf_result *run_f32(const char *backend, uint64_t width, uint64_t height, const float *a,
                          const float *b) {
    return run(backend, (gf_format){width, height, 1, GF_F32, false}, a, b);
}

TEST(special_numbers) {
    const float zero = -0.0f, one = 1, nan = -NAN, inf = INFINITY, huge = FLT_MAX, tiny = 0x1p-149f;
    for (const char *const *backend = test_backends(); *backend; backend++) {
        gf_result *result = run_f32(*backend, 1, 1, &nan, &one);
        assert_nan(result, AB);
        assert_nan(result, AA);
        assert_bits(result, BB, 1);
        assert_nan(result, COSINE);
        assert_nan(result, MSE);
        assert_nan(result, PSNR);
        gf_result_free(result);
        result = run_f32(*backend, 1, 1, &inf, &inf);
        assert_bits(result, AB, (double)INFINITY);
        assert_nan(result, COSINE);
        assert_nan(result, MSE);
        gf_result_free(result);
        result = run_f32(*backend, 1, 2, (const float[]){inf, inf}, (const float[]){1, -1});
        assert_nan(result, AB);
        assert_bits(result, BB, 2);
        gf_result_free(result);
        result = run_f32(*backend, 1, 1, &inf, &one);
        assert_bits(result, MSE, (double)INFINITY);
        assert_bits(result, PSNR, (double)-INFINITY);
        gf_result_free(result);
        result = run_f32(*backend, 1, 1, &zero, &one); /* +0 + -0 */
        assert_bits(result, AB, 0);
        assert_bits(result, AA, 0);
        assert_nan(result, COSINE);
        gf_result_free(result);
        result = run_f32(*backend, 1, 1, &huge, &tiny); /* exact; subnormals are kept */
        assert_bits(result, AB, 0x1.fffffep127 * 0x1p-149);
        assert_bits(result, BB, 0x1p-298);
        gf_result_free(result);
    }
}

/* Differences and their squares are each rounded to binary64. */
TEST(squared_differences_round) {
    const float one = 1, tiny = 0x1p-60f, small = 0x1p-30f;
    for (const char *const *backend = test_backends(); *backend; backend++) {
        gf_result *result = run_f32(*backend, 1, 1, &one, &tiny);
        assert_bits(result, MSE, 1);
        gf_result_free(result);
        result = run_f32(*backend, 1, 1, &small, &one); /* 1 - 2^-29 + 2^-60 */
        assert_bits(result, MSE, 1 - 0x1p-29);
        gf_result_free(result);
    }
}

/* 2^53 + 1 is not a binary64 number: a product of 1 counts only if it was added to another 1. */
TEST(sums_along_a_row_in_lanes) {
    const struct {
        size_t large, ones[2];
        double want;
    } wants[] = {
        {0, {1, 2}, 0x1p53},         /* lane 2 is added to 2^53 before lane 1 */
        {0, {1, 3}, 0x1p53 + 2},     /* lanes 1 and 3 are added first */
        {0, {1, 257}, 0x1p53 + 2},   /* in the same lane */
        {128, {0, 256}, 0x1p53 + 2}, /* lane 0 adds 1 + 1 before lane 128 is added */
        {0, {256, 512}, 0x1p53},     /* added one by one to 2^53 */
        {512, {0, 256}, 0x1p53 + 2}, /* ascending order */
        {256, {0, 512}, 0x1p53},
    };
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (size_t w = 0; w < sizeof wants / sizeof wants[0]; w++) {
            float a[513] = {0}, b[513] = {0};
            a[wants[w].large] = 0x1p27f;
            b[wants[w].large] = 0x1p26f;
            for (int k = 0; k < 2; k++)
                a[wants[w].ones[k]] = b[wants[w].ones[k]] = 1;
            AUTO(result) gf_result *result = run_f32(*backend, 513, 1, a, b);
            assert_bits(result, AB, wants[w].want);
        }
}

TEST(rows_add_downwards) {
    const float down[] = {1, 1, 0x1p53f}, up[] = {0x1p53f, 1, 1}, ones[] = {1, 1, 1};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        gf_result *result = run_f32(*backend, 1, 3, down, ones);
        assert_bits(result, AB, 0x1p53 + 2);
        gf_result_free(result);
        result = run_f32(*backend, 1, 3, up, ones);
        assert_bits(result, AB, 0x1p53);
        gf_result_free(result);
    }
}

int main(void) {
    return test_main(NULL);
}
