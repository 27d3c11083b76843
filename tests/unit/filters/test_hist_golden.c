/* hist against values computed by hand, on every backend of this machine. */

#include "core/result.h"
#include "measuring.h"

TEST(published_check) {
    float v[128];
    for (int i = 0; i < 128; i++)
        v[i] = (float)(i % 80) / 100.0f;
    const gf_format formats[] = {{128, 1, 1, GF_F32, false},
                                 {1, 128, 1, GF_F32, false},
                                 {16, 8, 1, GF_F32, false},
                                 {32, 2, 2, GF_F32, true}};
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (int i = 0; i < 4; i++) {
            AUTO(result)
            gf_result *result = test_measure(*backend, "hist",
                                             i < 3 ? "bins=8 extract=0 out=-"
                                                   : "bins=8 channel=all extract=0 out=-",
                                             formats[i], v, NULL, NULL);
            if (i < 3)
                test_column(result, "bins", "grey", "26 24 26 22 13 12 5 0");
            test_column(result, "extracted", "count", "26");
            test_column(result, "samples", "value",
                        "0 0.01 0.02 0.03 0.04 0.05 0.06 0.07 0.08 0.09 0.1 0.11 0.12 "
                        "0 0.01 0.02 0.03 0.04 0.05 0.06 0.07 0.08 0.09 0.1 0.11 0.12");
            assert_non_null(strstr(gf_result_text(result), "Bin 0 [0, 0.125) count: 26\n"));
            assert_non_null(strstr(gf_result_text(result), " 0 0.01 0.02 0.03 "));
        }
}

/* v * 8 div 255: bins 1, 2, 4 and 7 start at 32, 64, 128 (1024 / 255 = 4.01) and 224. */
TEST(integer_edges) {
    const uint8_t v[] = {0, 31, 32, 63, 64, 127, 128, 223, 224, 255};
    const uint16_t w[] = {0, 1, 65534, 65535};
    const test_measured cases[] = {
        {"bins=8", 10, 1, 1, GF_U8, v,
         "bins.grey: 2 2 1 1 1 0 1 2; .from: 0 32 64 96 128 160 192 224; "
         ".to: 31 63 95 127 159 191 223 255"},
        {"bins=8 extract=3 out=-", 10, 1, 1, GF_U8, v, "", "Bin 3 [96, 127] count: 1\n"},
        /* More bins than values: bin edges are between values, 255 / 510 apart. */
        {"bins=510 extract=3,509 out=-", 10, 1, 1, GF_U8, v,
         "extracted.from: 1.5 254.5; .to: 2 255",
         "Bin 3 [1.5, 2) count: 0\n"
         "Bin 509 [254.5, 255] count: 1\n"},
        /* One bin per value, except that 255 counts in the last bin. */
        {"", 10, 1, 1, GF_U8, v,
         "rows: 256; bins.grey@0: 1; .grey@31: 1; .grey@32: 1; .grey@63: 1; .grey@64: 1; "
         ".grey@127: 1; .grey@128: 1; .grey@223: 1; .grey@224: 1; .grey@255: 1"},
        {"bins=255", 10, 1, 1, GF_U8, v, "bins.grey@254: 1"},
        {"bins=1", 10, 1, 1, GF_U8, v, "bins.grey: 10"},
        /* 65534 * 65536 / 65535 = 65534.99..; 65535 * 65536 / 65535 = 65536: in the last bin. */
        {"bins=65536", 4, 1, 1, GF_U16, w,
         "bins.grey@0: 1; .grey@1: 1; .grey@65534: 1; .grey@65535: 1"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* fl(0.1) is above 0.1, and the preceding binary32 is below. fl(0.3) * 10 is above 3. The product
 * is exact and is not rounded up to the next bin. */
TEST(float_edges) {
    const float inf = 1.0f / 0.0f;
    const uint32_t bits[] = {0x3dcccccd, 0x3dcccccc, 0x3e99999a, 0x3e999999, 0x3f800000,
                             0x3f7fffff, 0x80000000, 0x00000001, 0xbf800000, 0x7fc00000,
                             0xffc00001, 0x7f800001, 0x40000000, 0x00000000};
    float v[16];
    memcpy(v, bits, sizeof bits);
    v[14] = inf;
    v[15] = -inf;
    const test_measured cases[] = {
        /* Below: -1, -inf; -0 and 1 are inside. */
        {"bins=10 extract=0,9 out=-", 16, 1, 1, GF_F32, v,
         "bins.grey: 6 1 1 1 0 0 0 0 0 4; totals.samples: 16; .nan: 3; .below: 2; .above: 2; "
         "samples.x: 1 6 7 8 13 15 4 5 12 14; "
         ".value: 0.099999994 -0 1e-45 -1 0 -inf 1 0.99999994 2 inf",
         "NaN in grey: 3\n"
         "Outside the range in grey: 2 below 0, 2 above 1, counted in the first and the "
         "last bin\n"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* The samples outside of 0..1 count in the end bins and apart, with every number of bins (and
 * method of counting), per row, and for each channel. Without any, there is no line in the text. */
TEST(clamped_samples_are_counted) {
    static float v[2][3000];
    static const char *const cases[] = {"bins=2 channel=all per-row extract=all out=-",
                                        "bins=600 channel=all per-row extract=0,599 out=-",
                                        "bins=60000 channel=all per-row extract=59999 out=-"};
    for (int i = 0; i < 3000; i++) {
        v[0][i] = i % 3 == 0 ? -0.0f : i % 3 == 1 ? 1 : 0.75f;
        v[1][i] = i % 3 == 0 ? -1e-45f : i % 3 == 1 ? 1.0000001f : 0.75f;
    }
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            gf_result *result = test_measure(*backend, "hist", cases[i],
                                             (gf_format){1000, 2, 3, GF_F32, false}, v, NULL, NULL);
            const uint64_t last = gf_result_table(result, 1)->row_count - 1;
            assert_int_equal(test_cell(result, "bins", "r", 0).low, 2000);
            assert_int_equal(test_cell(result, "bins", "g", last).low, 2000);
            assert_int_equal(test_cell(result, "rows", "count", 3 * (last + 1)).low, 1000);
            assert_int_equal(test_cell(result, "rows", "count", 5 * last + 4).low, 1000);
            test_column(result, "totals", "below", "1000 0 0");
            test_column(result, "totals", "above", "0 1000 0");
            assert_int_equal(
                test_cell(result, "extracted", "count", gf_result_table(result, 3)->row_count - 1)
                    .low,
                i == 0 ? 4000 : 2000);
            gf_result_free(result);
            result = test_measure(*backend, "hist", cases[i],
                                  (gf_format){1000, 1, 3, GF_F32, false}, v, NULL, NULL);
            assert_null(strstr(gf_result_text(result), "Outside"));
            gf_result_free(result);
        }
}

TEST(ranges) {
    const float v[] = {-1, -0.75f, -0.5f, 0, 0.5f, 1, 2, -5};
    const uint8_t u[] = {0, 99, 100, 149, 150, 199, 200, 255};
    const test_measured cases[] = {
        {"bins=4 range=-1,1", 8, 1, 1, GF_F32, v,
         "bins.grey: 2 1 1 2; .from: -1 -0.5 0 0.5; .to: -0.5 0 0.5 1; totals.samples: 8; "
         ".nan: 0; .below: 1; .above: 1",
         "Outside the range in grey: 1 below -1, 1 above 1\n"},
        {"bins=2 range=100,200 extract=all out=-", 8, 1, 1, GF_U8, u,
         "bins.grey: 2 3; .from: 100 150; .to: 150 200; totals.below: 2; .above: 1; "
         "samples.value: 100 149 150 199 200",
         "Bin 0 [100, 150) count: 2\n"
         "Bin 1 [150, 200] count: 3\n"},
        /* Integer bin edges are printed as integers; 3 / 11 * 55 would not be. */
        {"bins=11 range=0,55", 8, 1, 1, GF_U8, u,
         "bins.from: 0 5 10 15 20 25 30 35 40 45 50; .to: 5 10 15 20 25 30 35 40 45 50 55"},
        /* Each channel, including alpha, has its own counts, also per row. */
        {"bins=1 range=100,200 channel=all per-row", 2, 2, 2, GF_U8, u,
         "bins.grey: 3; .a: 2; totals.below: 1 1; .above: 0 1; rows.count: 1 1 2 1"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* The range of the finite samples of all measured channels; infinities are outside of it. Equal
 * ends put all samples into the last bin. */
TEST(range_of_the_data) {
    const float inf = 1.0f / 0.0f, nan = inf - inf;
    const float v[] = {3, -inf, 5, nan, -1, inf, 4, 1}, same[] = {inf, 2.5f, nan, 2.5f};
    const float zeros[] = {-0.0f, 0}, none[] = {nan, inf, -inf, nan};
    const uint16_t w[] = {100, 7, 300, 9, 200, 65535};
    const test_measured cases[] = {
        {"bins=3 range=data extract=0 out=-", 4, 2, 1, GF_F32, v,
         "bins.from: -1 1 3; .to: 1 3 5; .grey: 1 1 3; totals.nan: 1; .below: 1; .above: 1; "
         "samples.value: -1",
         "Range of the data: -1 to 5\n"},
        {"bins=4 range=data channel=all", 1, 2, 3, GF_U16, w,
         "bins.from: 7 16389 32771 49153; .b: 1 0 0 1"},
        {"range=data channel=b", 1, 2, 3, GF_U16, w, "bins.from@0: 300"},
        {"bins=3 range=data extract=2 out=-", 4, 1, 1, GF_F32, same,
         "bins.from: 2.5 2.5 2.5; .grey: 0 0 2; samples.x: 1 3"},
        {"bins=2 range=data", 2, 1, 1, GF_F32, zeros, "bins.from: 0 0; .grey: 0 2"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
    assert_error(
        test_measure_error("hist", "range=data", (gf_format){4, 1, 1, GF_F32, false}, none, 0),
        GF_FAILED, "no finite sample; give --range LO,HI");
}

/* Extremes include infinities, with and without finite samples. */
TEST(infinite_extremes) {
    const float inf = 1.0f / 0.0f;
    const float rows[][3] = {{1, 2, inf}, {-inf, 2, 1}, {inf, inf, inf}, {-inf, -inf, -inf}};
    static const char *const extremes[][2] = {
        {"1", "inf"}, {"-inf", "2"}, {"inf", "inf"}, {"-inf", "-inf"}};
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (int i = 0; i < 4; i++) {
            gf_result *result =
                test_measure(*backend, "hist", "statistics", (gf_format){3, 1, 1, GF_F32, false},
                             rows[i], NULL, NULL);
            test_column(result, "statistics", "min", extremes[i][0]);
            test_column(result, "statistics", "max", extremes[i][1]);
            test_column(result, "statistics", "p1", extremes[i][0]);
            gf_result_free(result);
        }
}

/* --statistics without options of bins leaves them out of the text. */
TEST(statistics_alone) {
    static const struct {
        const char *text;
        bool bins;
    } cases[] = {{"statistics", false},
                 {"statistics channel=all", false},
                 {"", true},
                 {"statistics bins=256", true},
                 {"statistics range=0,1", true},
                 {"statistics range=data", true},
                 {"statistics per-row", true},
                 {"statistics extract=1 out=-", true}};
    const float v[] = {0.25f, 3};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        AUTO(result)
        gf_result *result = test_measure("golden", "hist", cases[i].text,
                                         (gf_format){2, 1, 1, GF_F32, false}, v, NULL, NULL);
        bool shown = false;
        for (size_t t = 0; t < gf_result_table_count(result); t++)
            shown = shown || (strcmp(gf_result_table(result, t)->name, "bins") == 0 &&
                              gf_result_table(result, t)->in_text);
        assert_int_equal(shown, cases[i].bins);
        if (!cases[i].bins)
            assert_null(strstr(gf_result_text(result), "Outside"));
    }
}

/* Edges in text have the fewest decimals that move them by less than 1/10000 of a bin. Tables are
 * exact. */
TEST(edges_for_people) {
    const float v[] = {0.02f};
    gf_result *result = test_measure("golden", "hist", "bins=80 range=0,1.5 extract=1,79 out=-",
                                     (gf_format){1, 1, 1, GF_F32, false}, v, NULL, NULL);
    assert_non_null(strstr(gf_result_text(result), "Bin 1 [0.01875, 0.0375) count: 1\n"));
    assert_non_null(strstr(gf_result_text(result), "Bin 79 [1.48125, 1.5] count: 0\n"));
    gf_result_free(result);
    result = test_measure("golden", "hist", "bins=3 extract=1 out=-",
                          (gf_format){1, 1, 1, GF_F32, false}, v, NULL, NULL);
    assert_non_null(strstr(gf_result_text(result), "Bin 1 [0.3333, 0.6667) count: 0\n"));
    assert_true(test_cell(result, "bins", "to", 0).real == 1.0 / 3);
    gf_result_free(result);
    assert_true(gf_round_edge(1e300, 1e-9) == 1e300 && gf_round_edge(0.3, 0) == 0.3);
    assert_true(gf_round_edge(123456789.123, 1e9) == 123456789);
}

/* Samples at edges: 28 / 100 * 100 and 29 / 100 * 100 round to numbers below 29; 28 * 100 / 100 is
 * exact. */
TEST(range_edges) {
    uint8_t v[101];
    uint16_t w[101];
    float x[101];
    for (int i = 0; i <= 100; i++) {
        v[i] = (uint8_t)i;
        w[i] = (uint16_t)(i + 40000);
        x[i] = (float)i - 50;
    }
    const void *const images[] = {v, w, x};
    static const char *const cases[] = {"bins=100 range=0,100", "bins=100 range=40000,40100",
                                        "bins=100 range=-50,50"};
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (int type = GF_U8; type <= GF_F32; type++) {
            AUTO(result)
            gf_result *result = test_measure(*backend, "hist", cases[type],
                                             (gf_format){101, 1, 1, (gf_type)type, false},
                                             images[type], NULL, NULL);
            for (uint64_t bin = 0; bin < 100; bin++)
                assert_int_equal(test_cell(result, "bins", "grey", bin).low, bin < 99 ? 1 : 2);
        }
}

/* Samples outside of the range by the smallest possible difference, infinities and NaN; -0 equals
 * 0. Rounding never moves a sample back into the range. */
TEST(range_ends) {
    const uint32_t bits[] = {0x3dcccccc, 0x3dcccccd, 0x3dccccce, /* around fl(0.1) */
                             0x3f7fffff, 0x3f800000, 0x3f800001, /* around 1 */
                             0x7f800000, 0xff800000, 0x7fc00000,
                             0x80000000, 0x80000001, 0x00000001};
    float v[12];
    memcpy(v, bits, sizeof bits);
    const test_measured cases[] = {
        /* The lower end is 2^-27 above fl(0.1), less than half of the distance between floats. */
        {"bins=3 range=0.10000000149011613,1 extract=0,2 out=-", 12, 1, 1, GF_F32, v,
         "totals.below: 6; .above: 2; .nan: 1; samples.x: 2 3 4"},
        /* Below: -inf, -1e-45. */
        {"bins=2 range=0,1e-45 extract=0 out=-", 12, 1, 1, GF_F32, v,
         "totals.below: 2; samples.x: 9"},
        {"bins=65536 range=1,3e38 extract=0,65535 out=-", 12, 1, 1, GF_F32, v,
         "totals.below: 8; .above: 1; extracted.count: 2 0"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* (13933 * 255 + 32768) / 65536 is 54.7; 46871 yields 182.9, and 4732 yields 18.9. */
TEST(luma_and_channels) {
    const uint8_t rgba[] = {255, 0, 0, 9, 0, 255, 0, 9, 0, 0, 255, 9, 255, 255, 255, 9};
    const uint16_t grey_alpha[] = {0, 65535, 65535, 0};
    const float even[] = {0.5f, 0.5f, 0.5f};
    const test_measured cases[] = {
        {"extract=18,54,182,255 out=-", 4, 1, 4, GF_U8, rgba,
         "extracted.count: 1 1 1 1; samples.x: 2 0 1 3; .channel: luma luma luma luma; "
         ".value: 18 54 182 255"},
        {"bins=2 channel=g extract=1 out=-", 4, 1, 4, GF_U8, rgba, "bins.g: 2 2; samples.x: 1 3"},
        {"bins=2 channel=a", 4, 1, 4, GF_U8, rgba, "bins.a: 4 0"},
        {"bins=2 channel=all extract=1 out=-", 4, 1, 4, GF_U8, rgba,
         "bins.r: 2 2; .a: 4 0; samples.x: 0 1 2 3 3 3; .channel: r g b r g b"},
        {"bins=2", 2, 1, 2, GF_U16, grey_alpha, "bins.grey: 1 1"},
        /* The roundings of the weights cancel: the luma of a neutral grey is the grey itself. */
        {"bins=4 extract=2 out=-", 1, 1, 3, GF_F32, even, "samples.value: 0.5"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* Extracted samples are ordered by bin, then by position: a stable partition. */
TEST(partition) {
    const uint8_t v[] = {200, 3, 100, 255, /* */ 7, 90, 250, 5, /* */ 101, 201, 1, 102};
    const test_measured cases[] = {
        {"bins=3 extract=all out=-", 4, 3, 1, GF_U8, v,
         "extracted.bin: 0 1 2; .count: 4 4 4; samples.bin: 0 0 0 0 1 1 1 1 2 2 2 2; "
         ".value: 3 7 5 1 100 90 101 102 200 255 250 201; .x: 1 0 3 2 2 1 0 3 0 3 2 1; "
         ".y: 0 1 1 2 0 1 2 2 0 0 1 2"},
        {"bins=3 extract=0,2 out=-", 4, 3, 1, GF_U8, v,
         "samples.bin: 0 0 0 0 2 2 2 2; .value: 3 7 5 1 200 255 250 201"},
        /* An empty bin, and a bin with all samples. */
        {"bins=256 extract=4 out=-", 4, 3, 1, GF_U8, v, "extracted.count: 0; samples.value: "},
        {"bins=1 extract=0 out=-", 4, 3, 1, GF_U8, v,
         "samples.value: 200 3 100 255 7 90 250 5 101 201 1 102"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

TEST(counts_per_row) {
    const uint8_t v[] = {0, 0, 255, /* */ 255, 255, 255, /* */ 0, 255, 0};
    const test_measured cases[] = {
        {"bins=2 per-row", 3, 3, 1, GF_U8, v,
         "table: rows; rows.y: 0 0 1 1 2 2; .bin: 0 1 0 1 0 1; .count: 2 1 0 3 2 1; "
         "bins.grey: 4 5"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

TEST(masks) {
    const uint8_t grey[] = {0, 200, 255, 1}, rgba[] = {255, 1, 2, 0, 3, 255, 5, 77};
    const uint16_t rgb16[] = {65535, 1, 2, 3, 4, 5};
    const float real[] = {0.25f, 0.75f, -0.0f};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[8];
        uint16_t out16[8];
        float drawn[3];
        gf_result_free(test_measure(*backend, "hist", "bins=2 extract=1 mask=-",
                                    (gf_format){2, 2, 1, GF_U8, false}, grey, NULL, out));
        assert_memory_equal(out, ((uint8_t[]){0, 0, 200, 255, 255, 255, 0, 0}), 8);
        gf_result_free(test_measure(*backend, "hist", "bins=2 extract=1 channel=r mask=-",
                                    (gf_format){2, 1, 4, GF_U8, true}, rgba, NULL, out));
        assert_memory_equal(out, ((uint8_t[]){255, 1, 2, 0, 0, 0, 0, 0}), 8);
        gf_result_free(test_measure(*backend, "hist", "bins=2 extract=1 channel=all mask=-",
                                    (gf_format){2, 1, 3, GF_U16, false}, rgb16, NULL, out16));
        assert_memory_equal(out16, ((uint16_t[]){65535, 1, 2, 65535, 0, 0, 0, 0}), 16);
        gf_result_free(test_measure(*backend, "hist", "bins=2 extract=0 mask=-",
                                    (gf_format){3, 1, 1, GF_F32, false}, real, NULL, drawn));
        assert_memory_equal(drawn, ((float[]){0.25f, 0, -0.0f}), 12);
    }
}

/* The sum is 10, the sum of squares 30, the variance 30 / 4 - 2.5^2 = 1.25. */
TEST(integer_statistics) {
    static const char *const cases[] = {"statistics", "bins=3 statistics",
                                        "bins=3 statistics per-row",
                                        "bins=2 range=2,3.5 statistics extract=0 out=-"};
    const uint8_t bytes[] = {4, 1, 3, 2};
    const uint16_t words[] = {4, 1, 3, 2};
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
            const gf_format format = {2, 2, 1, i % 2 ? GF_U16 : GF_U8, false};
            AUTO(result)
            gf_result *result = test_measure(*backend, "hist", cases[i / 2], format,
                                             i % 2 ? (const void *)words : bytes, NULL, NULL);
            assert_string_equal(gf_result_table(result, 0)->name, "statistics");
            test_column(result, "statistics", "channel", "grey");
            test_column(result, "statistics", "count", "4");
            test_column(result, "statistics", "min", "1");
            test_column(result, "statistics", "max", "4");
            test_column(result, "statistics", "mean", "2.5");
            test_column(result, "statistics", "std", "1.118033988749895");
            test_column(result, "statistics", "median", "2");
            test_column(result, "statistics", "p1", "1");
            test_column(result, "statistics", "p99", "4");
            assert_non_null(strstr(gf_result_text(result),
                                   "grey: 4 samples, min 1, p1 1, median 2, p99 4, max 4, mean "
                                   "2.5, std 1.118034\n"));
            if (i / 2 > 2)
                test_column(result, "bins", "grey", "1 1");
            else if (i / 2 > 0)
                test_column(result, "bins", "grey", "4 0 0");
        }
}

/* Without --statistics, they are reported if each bin holds one integer value. */
TEST(statistics_without_the_option) {
    static const struct {
        const char *text;
        gf_type type;
        bool statistics;
    } cases[] = {{"", GF_U8, true},
                 {"per-row", GF_U8, true},
                 {"bins=255", GF_U8, false},
                 {"range=0,255", GF_U8, false},
                 {"", GF_U16, false},
                 {"bins=65536", GF_U16, true},
                 {"bins=65536", GF_F32, false}};
    const uint32_t zeros[4] = {0};
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            gf_result *result =
                test_measure(*backend, "hist", cases[i].text,
                             (gf_format){2, 2, 1, cases[i].type, false}, zeros, NULL, NULL);
            const size_t bins = strcmp(cases[i].text, "per-row") == 0, count = bins + 2;
            assert_string_equal(gf_result_table(result, bins)->name, "bins");
            assert_int_equal(gf_result_table_count(result), count + cases[i].statistics);
            assert_int_equal(strstr(gf_result_text(result), "grey: 4 samples, min 0") != NULL,
                             cases[i].statistics);
            if (cases[i].statistics)
                test_column(result, "statistics", "std", "0");
            gf_result_free(result);
        }
}

/* A percentile is the smallest sample such that the samples up to it are at least that share. Of 0
 * to 99, one sample is 1 %; of 0 to 100, two are needed. */
TEST(percentiles) {
    uint8_t v[101];
    for (int i = 0; i < 101; i++)
        v[i] = (uint8_t)(100 - i);
    const test_measured cases[] = {
        {"", 100, 1, 1, GF_U8, v + 1, "statistics.p1: 0; .median: 49; .p99: 98; .mean: 49.5"},
        {"bins=9 statistics", 101, 1, 1, GF_U8, v, "statistics.p1: 1; .median: 50; .p99: 99"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* Luma, and channels with alpha. The variance of 0, 0, 255 is 255^2 * 2 / 9, that of 1, 2, 3 is 6
 * / 9. */
TEST(statistics_of_channels) {
    const uint8_t rgba[] = {255, 0, 0, 1, 255, 0, 0, 2, 0, 255, 0, 3};
    const test_measured cases[] = {
        {"", 1, 3, 4, GF_U8, rgba,
         "statistics.channel: luma; .min: 54; .max: 182; .mean: 96.66666666666667"},
        {"bins=2 channel=all statistics", 1, 3, 4, GF_U8, rgba,
         "statistics.channel: r g b a; .median: 255 0 0 2; .mean: 170 85 0 2; "
         ".std: 120.20815280171308 120.20815280171308 0 0.8164965809277259"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* 2^48 samples, half of them 0 and half 65535, have a standard deviation; one more has none. */
TEST(statistics_of_many_samples) {
    const gf_filter *hist = gf_filter_find("hist");
    const gf_format format = {1 << 24, 1 << 24, 1, GF_U16, false};
    const gf_measure_options keep = {.name = "x"};
    AUTO(settings) gf_settings *settings = test_settings(hist, "bins=65536 statistics");
    for (uint64_t more = 0; more < 2; more++) {
        gf_plan *plan;
        AUTO(result) gf_result *result;
        void *data;
        assert_ok(gf_plan_new(hist, settings, &format, &plan, NULL));
        AUTO(free) uint64_t *counts = calloc(1, (size_t)plan->state_bytes);
        assert_non_null(counts);
        counts[0] = (UINT64_C(1) << 47) + more;
        counts[65535] = UINT64_C(1) << 47;
        assert_ok(hist->measure->open(plan, &keep, &data, NULL));
        assert_ok(hist->measure->finish(plan, data, counts, NULL));
        assert_ok(gf_result_new(hist, plan, data, &result, NULL));
        test_column(result, "statistics", "count", more ? "281474976710657" : "281474976710656");
        test_column(result, "statistics", "std", more ? "" : "32767.5");
    }
}

/* NaN is excluded, -0 precedes 0. Percentiles keep 8 significant bits: 10.02 becomes 10 and -7.77
 * becomes -7.75, rounded to zero. */
TEST(float_statistics) {
    const float nan = 0.0f / 0.0f, inf = 1.0f / 0.0f;
    const float few[] = {1, nan, -2.5f, 3}, none[] = {nan, -nan, nan, nan};
    const float zeros[] = {0, -0.0f, -0.0f, nan}, ends[] = {inf, 1, -nan, -inf};
    const float five[] = {10.01f, 100, 10.03f, -7.77f, 10.02f}, same[] = {0.3f, 0.3f, 0.3f, 0.3f};
    const test_measured cases[] = {
        /* std: sqrt(15.5 / 3). */
        {"bins=2 statistics", 2, 2, 1, GF_F32, few,
         "bins.grey: 1 2; statistics.count: 3; .min: -2.5; .max: 3; .mean: 0.5; "
         ".std: 2.273030282830976; .median: 1; .p1: -2.5; .p99: 3"},
        {"bins=2 statistics", 2, 2, 1, GF_F32, none,
         "statistics.count: 0; .min: ; .std: ", "=NaN in grey: 4\n"},
        {"bins=2 statistics", 2, 2, 1, GF_F32, zeros,
         "statistics.min: -0; .median: -0; .max: 0; .mean: 0"},
        {"bins=2 statistics", 2, 2, 1, GF_F32, ends,
         "statistics.count: 3; .min: -inf; .median: 1; .max: inf; .mean: nan; .std: nan"},
        {"bins=2 statistics", 1, 5, 1, GF_F32, five,
         "statistics.median: 10; .p1: -7.75; .p99: 100"},
        /* Percentiles are not outside of min and max. */
        {"bins=2 statistics", 2, 2, 1, GF_F32, same, "statistics.median: 0.3; .std: 0"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* 2^53 + 1 rounds to 2^53. As in axis-sum, lane 1 holds 1 + 1 = 2, and rows are added in order. The
 * cpu backend divides wide rows of three channels after 1365 pixels. Pixels 84 and 1620 have the
 * same lane. */
TEST(float_sums_are_ordered) {
    float row[258] = {0};
    row[0] = 9007199254740992.0f;
    row[1] = row[256] = row[257] = 1;
    const float column[] = {9007199254740992.0f, 1, 1};
    static float wide[3 * 2000];
    wide[0] = 9007199254740992.0f;
    wide[3 * 84] = wide[3 * 1620] = 1;
    const test_measured cases[] = {
        {"bins=1 statistics", 258, 1, 1, GF_F32, row, "statistics.mean@0: 34911625018375.945"},
        {"bins=1 statistics", 1, 3, 1, GF_F32, column, "statistics.mean@0: 3002399751580330.5"},
        {"bins=1 statistics channel=all", 2000, 1, 3, GF_F32, wide,
         "statistics.mean@0: 4503599627370.497"},
    };
    test_measure_cases("hist", cases, sizeof cases / sizeof cases[0]);
}

/* Counts exceed 2^32: states merge exactly. */
TEST(states_merge) {
    const gf_filter *filter = gf_filter_find("hist");
    AUTO(settings) gf_settings *settings = test_settings(filter, "bins=2");
    AUTO(free) gf_plan *plan = calloc(1, filter->plan_bytes);
    assert_non_null(plan);
    plan->in = (gf_format){1, 1, 1, GF_F32, false};
    plan->inputs = 1;
    assert_ok(filter->plan(settings, plan, NULL));
    assert_int_equal(plan->state_bytes, 40); /* two bins; NaN, below and above */
    uint64_t counts[5] = {UINT64_C(0xffffffff), 5, 0};
    const uint64_t more[5] = {1, UINT64_C(1) << 62, UINT64_C(1) << 33};
    filter->measure->merge(plan, counts, more);
    filter->measure->merge(plan, counts, more);
    assert_true(counts[0] == UINT64_C(0x100000001));
    assert_true(counts[1] == (UINT64_C(1) << 63) + 5);
    assert_true(counts[2] == UINT64_C(1) << 34);
}

TEST(rejects_invalid_settings) {
    static const struct {
        const char *text;
        uint32_t channels;
        const char *part;
    } invalid[] = {
        {"bins=8 extract=8", 1, "--extract '8'"},
        {"bins=8 extract=3,3", 1, "--extract '3,3'"},
        {"bins=8 extract=5,3", 1, "--extract '5,3'"},
        {"bins=8 extract=3,", 1, "--extract '3,'"},
        {"bins=8 extract=-1", 1, "--extract '-1'"},
        {"bins=8 extract=x", 1, "--extract 'x'"},
        {"out=v.csv", 1, "--extract"},
        {"mask=m.png", 1, "--extract"},
        {"channel=r", 1, "the image is grey"},
        {"channel=a", 3, "no alpha"},
        {"channel=b", 2, "the image is grey"},
    };
    static const uint8_t pixel[4];
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        assert_error(test_measure_error("hist", invalid[i].text,
                                        (gf_format){1, 1, invalid[i].channels, GF_U8,
                                                    invalid[i].channels % 2 == 0},
                                        pixel, 0),
                     GF_USAGE, invalid[i].part);
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("hist"), "");
    static const char *const ranges[] = {"1",    "1,1", "2,1", "nan,1",          "0,inf",
                                         "1,2,", ",2",  "1;2", "-1e308,1.7e308", "0x1,2"};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        assert_int_equal(gf_settings_set(settings, "range", ranges[i], NULL), GF_USAGE);
    assert_ok(gf_settings_set(settings, "range", "-0.5,1e3", NULL));
    assert_int_equal(gf_settings_set(settings, "bins", "0", NULL), GF_USAGE);
    assert_int_equal(gf_settings_set(settings, "bins", "65537", NULL), GF_USAGE);
}

/* Samples held until the end count against --max-memory. */
TEST(kept_samples_are_bounded) {
    static uint8_t pixels[1000000];
    const gf_format format = {1000, 1000, 1, GF_U8, false};
    assert_error(test_measure_error("hist", "bins=2 extract=all out=-", format, pixels, 17000000),
                 GF_FAILED, "are kept in memory until the end");
    assert_non_null(strstr(why.message, "--max-memory"));
    assert_ok(test_measure_error("hist", "bins=2 extract=all out=-", format, pixels, 19000000));
}

/* Two payloads of two rows each. A count of more samples than fit in a payload is a difference. */
TEST(payloads_that_exceed_their_memory_are_rejected) {
    const gf_filter *hist = gf_filter_find("hist");
    const gf_format format = {4, 4, 1, GF_U8, false};
    AUTO(settings) gf_settings *settings = test_settings(hist, "bins=8 extract=3 out=-");
    AUTO(free) gf_plan *plan;
    assert_ok(gf_plan_new(hist, settings, &format, &plan, NULL));
    const size_t stride = hist->payload->bytes(plan, 2);
    AUTO(free)
    gf_payloads golden = {calloc(2, stride), stride, 2}, got = {calloc(2, stride), stride, 2};
    assert_non_null(golden.data);
    assert_non_null(got.data);
    char where[200] = "";
    uint64_t *count = (uint64_t *)(void *)(got.data + stride) + 1;
    assert_false(hist->payload->differ(plan, 4, &golden, &got, where, sizeof where));
    *count = 8;
    assert_true(hist->payload->differ(plan, 4, &golden, &got, where, sizeof where));
    assert_string_equal(where, "bin 3 has too many samples");
    *count = 9; /* fewer than all 16 samples of the rows */
    assert_true(hist->payload->differ(plan, 4, &golden, &got, where, sizeof where));
    assert_string_equal(where, "the offsets of the extracted samples are inconsistent");
}

int main(void) {
    return test_main(NULL);
}
