/* Unfiltering of PNG rows: golden against rows computed by hand, SIMD levels against golden. */

#include "io/strip/row_filter.h"
#include "testing.h"

static const uint32_t units[] = {1, 2, 3, 4, 6, 8};
enum { UNITS = sizeof units / sizeof *units };

/* ---- by hand --------------------------------------------------------------------------------- */

TEST(golden_equals_values_by_hand) {
    static const struct {
        uint32_t filter, unit;
        unsigned char above[6], in[6], out[6];
    } rows[] = {
        {GF_PNG_NONE, 3, {9, 9, 9, 9, 9, 9}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
        {GF_PNG_SUB, 1, {9, 9, 9, 9, 9, 9}, {1, 2, 3, 250, 1, 0}, {1, 3, 6, 0, 1, 1}},
        {GF_PNG_SUB, 2, {9, 9, 9, 9, 9, 9}, {10, 20, 1, 2, 255, 255}, {10, 20, 11, 22, 10, 21}},
        {GF_PNG_SUB,
         3,
         {9, 9, 9, 9, 9, 9},
         {200, 100, 50, 100, 1, 255},
         {200, 100, 50, 44, 101, 49}},
        {GF_PNG_UP, 3, {1, 2, 3, 250, 251, 252}, {1, 1, 1, 10, 10, 0}, {2, 3, 4, 4, 5, 252}},
        /* (0+11)/2 = 5, (6+255)/2 = 130, (131+254)/2 = 192, ... */
        {GF_PNG_AVERAGE, 1, {11, 255, 254, 0, 1, 3}, {1, 1, 100, 0, 0, 0}, {6, 131, 36, 18, 9, 6}},
        {GF_PNG_AVERAGE,
         3,
         {10, 21, 32, 255, 255, 0},
         {1, 1, 1, 1, 0, 2},
         {6, 11, 17, 131, 133, 10}},
        /* The first byte is predicted by Up. Then (left, up, corner): (15, 20, 10): p = 25, up;
         * (22, 20, 20): p = 22, left; (25, 100, 20): p = 105, up; (100, 90, 100): p = 90, up; (90,
         * 94, 90): p = 94, up. */
        {GF_PNG_PAETH,
         1,
         {10, 20, 20, 100, 90, 94},
         {5, 2, 3, 0, 0, 255},
         {15, 22, 25, 100, 90, 93}},
        /* (left, up, corner): (8, 12, 10): p = 10, corner; (10, 10, 10): left; (12, 20, 16): p =
         * 16, corner. */
        {GF_PNG_PAETH,
         3,
         {10, 10, 16, 12, 10, 20},
         {254, 0, 252, 1, 1, 1},
         {8, 10, 12, 11, 11, 17}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char out[6];
        gf_png_unfilter_golden(out, rows[i].in, rows[i].above, 0, 6, rows[i].unit, rows[i].filter);
        for (int j = 0; j < 6; j++)
            if (out[j] != rows[i].out[j])
                fail_msg("row %zu byte %d: %d, not %d", i, j, out[j], rows[i].out[j]);
    }
}

/* ---- SIMD levels ----------------------------------------------------------------------------- */

/* Row in painted memory, shifted from its alignment. */
typedef struct test_row {
    unsigned char *memory, *bytes;
} test_row;

static test_row new_row(size_t bytes, size_t shift, test_random *random) {
    test_row row = {.memory = malloc(bytes + 2 * TEST_MARGIN)};
    assert_non_null(row.memory);
    memset(row.memory, TEST_PAINT, bytes + 2 * TEST_MARGIN);
    row.bytes = row.memory + TEST_MARGIN / 2 + shift;
    for (size_t i = 0; random && i < bytes; i++)
        row.bytes[i] = (unsigned char)test_next(random);
    return row;
}

static void check(gf_isa isa, size_t pixels, uint32_t unit, uint32_t filter, test_random *random) {
    const size_t bytes = pixels * unit;
    test_row in = new_row(bytes, test_below(random, 64), random);
    test_row above = new_row(bytes, test_below(random, 64), random);
    test_row out = new_row(bytes, test_below(random, 64), NULL);
    AUTO(free) unsigned char *wanted = test_alloc(bytes);
    /* Half of the rows resemble images: small residuals and similar neighbours. */
    if (test_below(random, 2) == 0)
        for (size_t i = 0; i < bytes; i++) {
            in.bytes[i] = (unsigned char)(in.bytes[i] % 5 - 2);
            above.bytes[i] = (unsigned char)(i / unit + above.bytes[i] % 3);
        }
    /* In two parts: the second one continues after any pixel. */
    const size_t part = (size_t)test_below(random, pixels + 1) * unit;
    gf_png_unfilter_row *unfilter = gf_png_simd_of(isa)->unfilter;
    gf_png_unfilter_golden(wanted, in.bytes, above.bytes, 0, bytes, unit, filter);
    unfilter(out.bytes, in.bytes, above.bytes, 0, part, unit, filter);
    if (!test_painted(out.bytes + part, out.memory + bytes + 2 * TEST_MARGIN))
        fail_msg("level %d: %zu pixels of %u bytes, filter %u", (int)isa, part / unit, unit,
                 filter);
    unfilter(out.bytes, in.bytes, above.bytes, part, bytes, unit, filter);
    if (memcmp(out.bytes, wanted, bytes) != 0 || !test_painted(out.memory, out.bytes) ||
        !test_painted(out.bytes + bytes, out.memory + bytes + 2 * TEST_MARGIN))
        fail_msg("level %d: %zu pixels of %u bytes, filter %u", (int)isa, pixels, unit, filter);
    free(in.memory);
    free(above.memory);
    free(out.memory);
}

TEST(levels_equal_golden) {
    static const size_t wide[] = {127, 128, 129, 255, 256, 257, 1000, 4099};
    test_random random = {test_environment("GF_SEED", 5)};
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        for (size_t u = 0; gf_isa_available((gf_isa)isa) && u < UNITS; u++)
            for (uint32_t filter = 0; filter < GF_PNG_FILTERS; filter++) {
                for (int round = 0; round < 3; round++)
                    for (size_t pixels = 1; pixels <= 70; pixels++)
                        check((gf_isa)isa, pixels, units[u], filter, &random);
                for (size_t w = 0; w < sizeof wide / sizeof *wide; w++)
                    check((gf_isa)isa, wide[w], units[u], filter, &random);
            }
}

/* ---- several rows ---------------------------------------------------------------------------- */

/* Choose a filter so that groups of Paeth, of Average and Paeth, and of all types occur. */
static unsigned char choose_filter(test_random *random, uint64_t kind) {
    static const unsigned char slow[] = {GF_PNG_PAETH, GF_PNG_AVERAGE, GF_PNG_PAETH};
    if (kind == 0 || (kind == 1 && test_below(random, 8) != 0))
        return GF_PNG_PAETH;
    return kind == 2 ? slow[test_below(random, 3)]
                     : (unsigned char)test_below(random, GF_PNG_FILTERS);
}

static void check_rows(gf_isa isa, size_t pixels, uint32_t unit, uint64_t rows,
                       test_random *random) {
    const size_t bytes = pixels * unit, kind = (size_t)test_below(random, 4);
    const size_t in_stride = bytes + 1 + (size_t)test_below(random, 3),
                 out_stride = bytes + (size_t)test_below(random, 40);
    test_row in = new_row(in_stride * rows, test_below(random, 64), random);
    test_row above = new_row(bytes, test_below(random, 64), random);
    test_row out = new_row(out_stride * rows, test_below(random, 64), NULL);
    AUTO(free) unsigned char *wanted = test_alloc(out_stride * rows);
    const unsigned char *last = above.bytes;
    memcpy(wanted, out.bytes, out_stride * rows);
    for (uint64_t r = 0; r < rows; r++) {
        unsigned char *filtered = in.bytes + r * in_stride, *to = wanted + r * out_stride;
        filtered[0] = choose_filter(random, kind);
        for (size_t i = 1; i <= bytes && kind < 3; i++)
            filtered[i] = (unsigned char)(filtered[i] % 9 - 4);
        gf_png_unfilter_golden(to, filtered + 1, last, 0, bytes, unit, filtered[0]);
        last = to;
    }
    /* In up to three blocks of columns. */
    for (size_t from = 0, to; from < bytes; from = to) {
        to = from + (1 + (size_t)test_below(random, pixels)) * unit;
        to = from >= bytes / 2 || to > bytes ? bytes : to;
        gf_png_simd_of(isa)->unfilter_rows(out.bytes, out_stride, in.bytes, in_stride, above.bytes,
                                           from, to, unit, rows);
    }
    /* The margins between rows are compared, too. */
    if (memcmp(out.bytes, wanted, out_stride * rows) != 0 || !test_painted(out.memory, out.bytes) ||
        !test_painted(out.bytes + out_stride * rows,
                      out.memory + out_stride * rows + 2 * TEST_MARGIN))
        fail_msg("level %d: %zu pixels of %u bytes, %lu rows, kind %zu", (int)isa, pixels, unit,
                 (unsigned long)rows, kind);
    free(in.memory);
    free(above.memory);
    free(out.memory);
}

TEST(rows_equal_golden) {
    test_random random = {test_environment("GF_SEED", 6)};
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        for (size_t u = 0; gf_isa_available((gf_isa)isa) && u < UNITS; u++)
            for (uint64_t round = 0; round < test_rounds(600); round++) {
                const size_t pixels = 1 + (size_t)test_below(&random, round % 10 == 0 ? 3000 : 60);
                check_rows((gf_isa)isa, pixels, units[u], 1 + test_below(&random, 13), &random);
            }
}

/* Return the Paeth predictor as the specification defines it. */
static int paeth(int a, int b, int c) {
    const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

static uint32_t pair_of(int low, int high) {
    return (uint32_t)low | (uint32_t)high << 16;
}

/* One byte of each pair has the neighbours, the other one has them in another order. */
TEST(both_forms_of_paeth_are_equal) {
    for (int corner = 0; corner < 256; corner++)
        for (int up = 0; up < 256; up++)
            for (int left = 0; left < 256; left++)
                if (gf_png_paeth(left, up, corner) != paeth(left, up, corner) ||
                    gf_png_paeth_pair(pair_of(left, up), pair_of(up, corner),
                                      pair_of(corner, left)) !=
                        pair_of(paeth(left, up, corner), paeth(up, corner, left)))
                    fail_msg("left %d, up %d, corner %d", left, up, corner);
}

/* Decode two pixels of eight bytes. The first decodes to `left`, the second to the prediction. */
TEST(paeth_of_every_neighbourhood) {
    for (int isa = -1; isa < GF_ISA_COUNT; isa++) {
        gf_png_unfilter_row *row = gf_png_unfilter_golden;
        if (isa >= 0 && !gf_isa_available((gf_isa)isa))
            continue;
        if (isa >= 0)
            row = gf_png_simd_of((gf_isa)isa)->unfilter;
        for (int corner = 0; corner < 256; corner++)
            for (int up = 0; up < 256; up++)
                for (int left = 0; left < 256; left += 8) {
                    unsigned char in[16] = {0}, above[16], out[16];
                    for (int i = 0; i < 8; i++) {
                        in[i] = (unsigned char)(left + i - corner);
                        above[i] = (unsigned char)corner;
                        above[8 + i] = (unsigned char)up;
                    }
                    row(out, in, above, 0, 16, 8, GF_PNG_PAETH);
                    for (int i = 0; i < 8; i++)
                        if (out[i] != left + i || out[8 + i] != paeth(left + i, up, corner))
                            fail_msg("level %d: left %d, up %d, corner %d", isa, left + i, up,
                                     corner);
                }
    }
}

TEST(big_endian_becomes_native) {
    test_random random = {3};
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        for (size_t count = 0; gf_isa_available((gf_isa)isa) && count <= 150; count++) {
            test_row row = new_row(2 * count, count % 7, &random);
            AUTO(free) unsigned char *before = test_alloc(2 * count + 1);
            memcpy(before, row.bytes, 2 * count);
            gf_png_simd_of((gf_isa)isa)->swap16(row.bytes, row.bytes, count);
            for (size_t i = 0; i < count; i++) {
                uint16_t v;
                memcpy(&v, row.bytes + 2 * i, 2);
                assert_int_equal(v, before[2 * i] << 8 | before[2 * i + 1]);
            }
            assert_true(test_painted(row.memory, row.bytes));
            assert_true(test_painted(row.bytes + 2 * count, row.memory + 2 * count + 512));
            free(row.memory);
        }
}

int main(void) {
    return test_main(NULL);
}
