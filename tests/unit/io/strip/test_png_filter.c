/* PNG row filters: golden against values computed by hand, SIMD against golden. */

#include "io/strip/row_filter.h"
#include "testing.h"

/* Filter a row byte by byte, as in the specification. */
static void golden(unsigned filter, unsigned char *dst, const unsigned char *row,
                   const unsigned char *above, size_t n, size_t pixel) {
    for (size_t i = 0; i < n; i++) {
        const int a = *(row + i - pixel), b = above[i], c = *(above + i - pixel);
        const int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
        const int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
        dst[i] = (unsigned char)(row[i] - (const int[]){0, a, b, (a + b) / 2, paeth}[filter]);
    }
}

TEST(golden_equals_values_by_hand) {
    /* Two zero bytes precede each row: the pixel to the left of the first. */
    static const unsigned char above[] = {0, 0, 10, 200, 30, 250, 90, 0};
    static const unsigned char row[] = {0, 0, 11, 100, 35, 255, 80, 7};
    static const unsigned char wanted[GF_PNG_FILTERS][6] = {
        {11, 100, 35, 255, 80, 7},
        {11, 100, 35 - 11, 255 - 100, 80 - 35, 256 + 7 - 255},
        {11 - 10, 256 + 100 - 200, 35 - 30, 255 - 250, 256 + 80 - 90, 7},
        {11 - 5, 100 - 100, 35 - 20, 255 - 175, 80 - 62, 256 + 7 - 127},
        /* Paeth: p = a + b - c with (a, b, c) = (0 10 0) b, (0 200 0) b, (11 30 10): 31, b; (100
         * 250 200): 150, |50 100 50|: a; (35 90 30): 95, b; (255 0 250): 5, b. */
        {11 - 10, 256 + 100 - 200, 35 - 30, 255 - 100, 256 + 80 - 90, 7},
    };
    for (unsigned f = 0; f < GF_PNG_FILTERS; f++) {
        unsigned char got[6];
        golden(f, got, row + 2, above + 2, 6, 2);
        assert_memory_equal(got, wanted[f], 6);
    }
}

/* Compare all SIMD levels with golden. Values on coarse grids produce every order of (left, above,
 * above left) for Paeth. */
TEST(simd_levels_equal_golden) {
    enum { MAX = 700, FRONT = 64 };
    test_random random = {test_environment("GF_TEST_SEED", 81)};
    unsigned char row[FRONT + MAX], above[FRONT + MAX], plain[MAX], fast[MAX + 2 * TEST_MARGIN];
    for (int round = 0; round < 2500; round++) {
        const size_t n = round < 210 ? (size_t)round / 3 + 1 : 1 + test_below(&random, MAX);
        const size_t pixel = (const size_t[]){1, 2, 3, 4, 6, 8}[test_below(&random, 6)];
        const uint64_t kinds = test_below(&random, 3);
        for (size_t i = 0; i < FRONT + n; i++) {
            const unsigned spread = kinds == 0 ? 256 : kinds == 1 ? 3 : 17;
            row[i] = (unsigned char)(test_below(&random, spread) * (256 / spread));
            above[i] = (unsigned char)(test_below(&random, spread) * (256 / spread));
        }
        for (unsigned f = 0; f < GF_PNG_FILTERS; f++) {
            golden(f, plain, row + FRONT, above + FRONT, n, pixel);
            uint64_t sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += plain[i] < 128 ? plain[i] : 256u - plain[i];
            for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
                if (isa && !gf_isa_available((gf_isa)isa))
                    continue;
                const gf_png_simd *simd = gf_png_simd_of((gf_isa)isa);
                memset(fast, TEST_PAINT, sizeof fast);
                simd->filter((gf_png_filter)f, fast + TEST_MARGIN, row + FRONT, above + FRONT, n,
                             pixel);
                assert_memory_equal(fast + TEST_MARGIN, plain, n);
                assert_true(test_painted(fast, fast + TEST_MARGIN));
                assert_true(test_painted(fast + TEST_MARGIN + n, fast + sizeof fast));
                assert_int_equal(simd->magnitude(plain, n), sum);
            }
        }
    }
}

TEST(magnitudes_add_up_over_long_rows) {
    enum { LONG = 34000001 }; /* the sum exceeds 32 bits */
    AUTO(free) unsigned char *residuals = test_alloc(LONG);
    memset(residuals, 128, LONG);
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        if (!isa || gf_isa_available((gf_isa)isa))
            assert_int_equal(gf_png_simd_of((gf_isa)isa)->magnitude(residuals, LONG),
                             UINT64_C(128) * LONG);
}

TEST(swaps_samples) {
    test_random random = {82};
    unsigned char src[300], dst[300 + 2 * TEST_MARGIN];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (unsigned char)test_next(&random);
    for (size_t n = 0; n < 149; n++)
        for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
            if (isa && !gf_isa_available((gf_isa)isa))
                continue;
            memset(dst, TEST_PAINT, sizeof dst);
            gf_png_simd_of((gf_isa)isa)->swap16(dst + TEST_MARGIN, src + 1, n);
            for (size_t i = 0; i < n; i++) {
                uint16_t v;
                memcpy(&v, src + 1 + 2 * i, 2);
                assert_int_equal(dst[TEST_MARGIN + 2 * i], v >> 8);
                assert_int_equal(dst[TEST_MARGIN + 2 * i + 1], v & 255);
            }
            assert_true(test_painted(dst, dst + TEST_MARGIN));
            assert_true(test_painted(dst + TEST_MARGIN + 2 * n, dst + sizeof dst));
        }
}

int main(void) {
    return test_main(NULL);
}
