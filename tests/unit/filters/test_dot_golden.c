/* dot on integers against values computed by hand, on every backend. Some sums exceed 64 bits. */

#include "dot_util.h"

static void assert_text(const gf_result *result, uint64_t row, size_t column, const char *want) {
    char got[48];
    const gf_value value = gf_result_cell(result, 0, row, column);
    gf_value_format(&value, got, sizeof got);
    assert_string_equal(got, want);
}

/* Check the columns "a.b" to "psnr" of a row as text, with enough digits to identify all bits. */
static void assert_row(const gf_result *result, uint64_t row, const char *const want[7]) {
    for (size_t column = CHANNEL; column <= PSNR; column++)
        assert_text(result, row, column, want[column]);
}

/* ---- by hand --------------------------------------------------------------------------------- */

TEST(published_check) {
    const uint8_t u8[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const uint16_t u16[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const float f32[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const void *const images[] = {u8, u16, f32};
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (int type = GF_U8; type <= GF_F32; type++) {
            AUTO(result)
            gf_result *result = run(*backend, (gf_format){8, 1, 1, (gf_type)type, false},
                                    images[type], images[type]);
            const gf_table *table = gf_result_table(result, 0);
            assert_string_equal(table->name, "products");
            assert_int_equal(table->row_count, 1);
            assert_int_equal(table->column_count, 7);
            assert_int_equal(table->columns[AB].type,
                             type == GF_F32 ? GF_VALUE_DOUBLE : GF_VALUE_UINT);
            assert_text(result, 0, CHANNEL, "grey");
            assert_text(result, 0, AB, "140");
            assert_text(result, 0, AA, "140");
            assert_text(result, 0, BB, "140");
            assert_text(result, 0, MSE, "0");
            assert_text(result, 0, PSNR, "inf");
        }
}

/* (3 4).(4 3) = 24; 24/25; (1 + 1)/2. Differences of max / 5 in a quarter of the pixels: mse is
 * max^2 / 100, and psnr is 20 dB. */
TEST(cosine_mse_and_psnr) {
    const uint8_t p8[4] = {51, 7, 9, 0}, q8[4] = {0, 7, 9, 0};
    const uint16_t p16[4] = {0, 100, 0, 60000}, q16[4] = {0, 100, 13107, 60000};
    const float p32[2] = {3, 4}, q32[2] = {4, 3}, far32[2] = {13, -6};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        gf_result *result = run(*backend, (gf_format){2, 2, 1, GF_U8, false}, p8, q8);
        assert_row(
            result, 0,
            (const char *[]){"grey", "130", "2731", "130", "0.21817793456592643", "650.25", "20"});
        gf_result_free(result);
        result = run(*backend, (gf_format){1, 4, 1, GF_U16, false}, p16, q16);
        assert_text(result, 0, AA, "3600010000");
        assert_text(result, 0, BB, "3771803449");
        assert_text(result, 0, MSE, "42948362.25");
        assert_text(result, 0, PSNR, "20");
        gf_result_free(result);
        result = run(*backend, (gf_format){2, 1, 1, GF_F32, false}, p32, q32);
        assert_row(result, 0, (const char *[]){"grey", "24", "25", "25", "0.96", "1", "0"});
        gf_result_free(result);
        result = run(*backend, (gf_format){1, 2, 1, GF_F32, false}, p32, far32);
        assert_row(
            result, 0,
            (const char *[]){"grey", "15", "25", "205", "0.20952908873087348", "100", "-20"});
        gf_result_free(result);
    }
}

TEST(black_has_no_cosine) {
    const uint8_t black[2] = {0, 0}, white[2] = {255, 255};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        AUTO(result)
        gf_result *result = run(*backend, (gf_format){2, 1, 1, GF_U8, false}, black, white);
        assert_row(result, 0, (const char *[]){"grey", "0", "0", "130050", "nan", "65025", "0"});
        assert_nan(result, COSINE);
    }
}

TEST(channels_and_total) {
    const uint8_t a[] = {1, 2, 3, 4, 10, 20, 30, 40}, b[] = {1, 1, 1, 9, 2, 2, 2, 9};
    const float fa[] = {1, 2, 3, 4, 10, 20, 30, 40}, fb[] = {1, 1, 1, 9, 2, 2, 2, 9};
    const struct {
        bool alpha;
        uint32_t channels;
        size_t rows;
        const char *names[5], *products[5], *mse[5];
    } wants[] = {
        {true,
         4,
         4,
         {"r", "g", "b", "total"},
         {"21", "42", "63", "126"},
         {"32", "162.5", "394", "196.16666666666666"}},
        {false,
         4,
         5,
         {"r", "g", "b", "data", "total"},
         {"21", "42", "63", "396", "522"},
         {"32", "162.5", "394", "493", "270.375"}},
        {true, 2, 1, {"grey"}, {"84"}, {"213"}},
        {false,
         2,
         3,
         {"grey", "data", "total"},
         {"84", "438", "522"},
         {"213", "327.75", "270.375"}},
    };
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (size_t w = 0; w < sizeof wants / sizeof wants[0]; w++)
            for (int real = 0; real < 2; real++) {
                const gf_format format = {2, 4 / wants[w].channels, wants[w].channels,
                                          real ? GF_F32 : GF_U8, wants[w].alpha};
                gf_result *result =
                    run(*backend, format, real ? (const void *)fa : a, real ? (const void *)fb : b);
                assert_int_equal(gf_result_table(result, 0)->row_count, wants[w].rows);
                for (size_t row = 0; row < wants[w].rows; row++) {
                    assert_text(result, row, CHANNEL, wants[w].names[row]);
                    assert_text(result, row, AB, wants[w].products[row]);
                    assert_text(result, row, MSE, wants[w].mse[row]);
                }
                gf_result_free(result);
            }
}

/* ---- large numbers --------------------------------------------------------------------------- */

/* Rows of white pixels: sums that exceed 32 bits. */
TEST(white_rows) {
    const size_t width8 = 4000001, width16 = 70000;
    AUTO(free) uint8_t *u8 = test_alloc(width8);
    AUTO(free) uint16_t *u16 = test_alloc(width16 * sizeof *u16);
    memset(u8, 0xff, width8);
    memset(u16, 0xff, width16 * sizeof *u16);
    for (const char *const *backend = test_backends(); *backend; backend++) {
        gf_result *result = run(*backend, (gf_format){width8, 1, 1, GF_U8, false}, u8, u8);
        for (size_t column = AB; column <= BB; column++)
            assert_text(result, 0, column, "260100065025"); /* 4000001 * 65025 */
        gf_result_free(result);
        result = run(*backend, (gf_format){width16, 1, 1, GF_U16, false}, u16, u16);
        for (size_t column = AB; column <= BB; column++)
            assert_text(result, 0, column, "300638535750000"); /* 70000 * 4294836225 */
        gf_result_free(result);
    }
}

/* Compute a result from format.height copies of one record, in two strips. */
static gf_result *measure(gf_format format, const uint64_t *record) {
    const gf_filter *filter = gf_filter_find("dot");
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    gf_plan *plan;
    void *data;
    gf_result *result;
    assert_ok(gf_plan_new(filter, settings, &format, &plan, &why));
    AUTO(free) unsigned char *rows = test_alloc((size_t)format.height * plan->record);
    for (uint64_t y = 0; y < format.height; y++)
        memcpy(rows + y * plan->record, record, plan->record);
    const uint64_t cut = format.height / 3;
    gf_rows first = {rows, plan->record, 0, cut};
    gf_rows second = {gf_row(&first, cut), plan->record, cut, format.height - cut};
    assert_ok(filter->measure->open(plan, &(gf_measure_options){.name = "test"}, &data, &why));
    assert_ok(filter->measure->rows(plan, data, &first, &why));
    assert_ok(filter->measure->rows(plan, data, &second, &why));
    assert_ok(filter->measure->finish(plan, data, NULL, &why));
    assert_ok(gf_result_new(filter, plan, data, &result, &why));
    return result;
}

/* 16 rows of 2^31 white pixels: 2^35 * 65535^2 = 2^67 - 131071 * 2^35. */
TEST(totals_past_64_bits) {
    const uint64_t row = (UINT64_C(1) << 31) * 4294836225;
    gf_result *result = measure((gf_format){UINT64_C(1) << 31, 16, 1, GF_U16, false},
                                (const uint64_t[]){row, row, row});
    gf_value sum = gf_result_cell(result, 0, 0, AB);
    assert_int_equal(sum.high, 7);
    assert_int_equal(sum.low, UINT64_C(0) - (UINT64_C(131071) << 35));
    for (size_t column = AB; column <= BB; column++)
        assert_text(result, 0, column, "147569449024408780800");
    assert_text(result, 0, MSE, "0");
    assert_text(result, 0, PSNR, "inf");
    gf_result_free(result);
    /* Three such channels against black. The total has 3 * 2^35 samples. */
    result = measure((gf_format){UINT64_C(1) << 31, 16, 3, GF_U16, false},
                     (const uint64_t[]){0, row, 0, 0, row, 0, 0, row, 0});
    assert_row(result, 2,
               (const char *[]){"b", "0", "147569449024408780800", "0", "nan", "4294836225", "0"});
    assert_row(
        result, 3,
        (const char *[]){"total", "0", "442708347073226342400", "0", "nan", "4294836225", "0"});
    gf_result_free(result);
}

/* a and b differ by 1 in one of 2^31 bright pixels per row. The sums of squares exceed the 53 bits
 * of a binary64, but their difference is exact. */
TEST(small_differences_of_large_sums) {
    const uint64_t aa = UINT64_C(65534) * 65534 << 31, ab = aa + 65534;
    AUTO(result)
    gf_result *result = measure((gf_format){UINT64_C(1) << 31, 16, 1, GF_U16, false},
                                (const uint64_t[]){ab, aa, ab + 65535});
    assert_text(result, 0, MSE, "4.656612873077393e-10"); /* 16 / 2^35 = 2^-31 */
}

TEST(rejects_rows_too_wide_for_64_bits) {
    const gf_filter *filter = gf_filter_find("dot");
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    gf_format format = {4295098371, 1, 1, GF_U16, false}; /* the largest: 2^64 / 65535^2 */
    gf_format out;
    assert_ok(test_filter_output(filter, settings, &format, &out));
    format.width++;
    assert_int_equal(test_filter_output(filter, settings, &format, &out), GF_FAILED);
    assert_string_equal(why.message,
                        "dot: rows of 4295098372 pixels are too wide for exact 64-bit sums of u16 "
                        "products; the limit is 4295098371 pixels");
    format.type = GF_U8;
    assert_ok(test_filter_output(filter, settings, &format, &out));
    format.type = GF_F32;
    assert_ok(test_filter_output(filter, settings, &format, &out));
}

int main(void) {
    return test_main(NULL);
}
