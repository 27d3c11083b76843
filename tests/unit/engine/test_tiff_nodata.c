/* Samples with the nodata value of GDAL: measurements leave them out, on every backend. Loops over
 * the samples compute what is expected. */
#include "faulty_backend.h"
#include "io_util.h"
#include "measuring.h"
#include "samples.h"
#include "tiff_file.h"

#include <math.h>

enum { MAX_SIDE = 24, MAX_SAMPLES = MAX_SIDE * MAX_SIDE * 3, VALUES = 10 };

/* An image of the values 0 to 9, and -1 for samples with the nodata value. */
typedef struct marked {
    uint32_t width, height, channels;
    gf_type type;
    int values[MAX_SAMPLES];
} marked;

static void put_tiff(const char *name, const tiff_spec *spec, const char *nodata,
                     const unsigned char *rows, size_t row) {
    static const TIFFFieldInfo info[] = {
        {42113, -1, -1, TIFF_ASCII, FIELD_CUSTOM, true, false, (char *)"GDALNoData"}};
    test_random random = test_seeded(1);
    TIFF *tiff = TIFFOpen(in_directory(name), "w");
    assert_non_null(tiff);
    assert_int_equal(TIFFMergeFieldInfo(tiff, info, 1), 0);
    tiff_set_tags(tiff, spec, &random);
    TIFFSetField(tiff, 42113, nodata);
    for (uint32_t y = 0; y < spec->height; y++)
        assert_true(TIFFWriteScanline(tiff, (void *)(rows + y * row), y, 0) >= 0);
    TIFFClose(tiff);
}

/* Write the image, with `value` as the nodata value. */
static void put_marked(const char *name, const marked *image, float value) {
    static unsigned char rows[MAX_SAMPLES * sizeof(float)];
    char text[32];
    tiff_spec spec = tiff_small_grey(image->width, 0);
    spec.height = image->height;
    spec.samples = (uint16_t)image->channels;
    spec.bits = (uint16_t)(8 * gf_type_bytes(image->type));
    spec.format = image->type == GF_F32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT;
    spec.photometric = image->channels == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
    spec.extra = image->channels == 2 ? EXTRASAMPLE_UNSPECIFIED : TIFF_NO_EXTRA;
    for (uint32_t i = 0; i < image->width * image->height * image->channels; i++)
        gf_put_sample(image->type, rows, i, image->values[i] < 0 ? value : (float)image->values[i]);
    snprintf(text, sizeof text, "%.9g", (double)value);
    put_tiff(name, &spec, text, rows,
             (size_t)image->width * image->channels * gf_type_bytes(image->type));
}

static gf_result *measure(const char *backend, const char *filter, const char *text,
                          const char *const *names, const gf_file_options *options,
                          gf_report *report) {
    const gf_filter *found = gf_filter_find(filter);
    gf_engine *engine =
        test_engine(&(gf_engine_options){.backend = backend, .threads = 3, .rows_per_strip = 4});
    AUTO(settings) gf_settings *settings = test_settings(found, text);
    const char *in[2];
    gf_result *result = NULL;
    for (uint32_t i = 0; i < found->info.inputs; i++)
        in[i] = in_directory(names[i]);
    if (test_run_files(&(test_files){engine, found, settings, in, NULL, options, .result = &result,
                                     .report = report}))
        fail_msg("%s %s on %s: %s", filter, text, backend, why.message);
    gf_engine_close(engine);
    return result;
}

static double number(const gf_result *result, const char *table, const char *column, uint64_t row) {
    const gf_value value = test_cell(result, table, column, row);
    return value.type == GF_VALUE_UINT ? (double)value.low : value.real;
}

static void assert_number(double is, double want, const char *what, uint64_t row) {
    if (is != want && !(isnan(is) && isnan(want)))
        fail_msg("%s, row %" PRIu64 ": %.17g, not %.17g", what, row, is, want);
}

static const char *channel_name(const marked *image, uint32_t c) {
    static const char *const names[] = {"r", "g", "b"};
    return image->channels == 3 ? names[c] : c == 0 ? "grey" : "data";
}

static void check_hist(const char *backend, const marked *image) {
    static const char *const name[] = {"a.tif"};
    const char *text = image->type == GF_F32
                           ? "bins=10 range=0,10 channel=all per-row extract=all statistics"
                           : "bins=10 range=0,10 channel=all per-row extract=2 statistics";
    gf_report report;
    AUTO(result) gf_result *result = measure(backend, "hist", text, name, NULL, &report);
    AUTO(result)
    gf_result *folded = measure(backend, "hist", "bins=7 channel=all statistics", name, NULL, NULL);
    uint64_t missing = 0;
    for (uint32_t c = 0; c < image->channels; c++) {
        const char *channel = channel_name(image, c);
        uint64_t counts[VALUES + 1] = {0}, all = 0;
        for (uint32_t y = 0; y < image->height; y++) {
            uint64_t row[VALUES + 1] = {0};
            for (uint32_t x = 0; x < image->width; x++)
                row[image->values[(y * image->width + x) * image->channels + c] + 1]++;
            for (int v = 0; v <= VALUES; v++)
                counts[v] += row[v];
            for (int v = 0; v < VALUES; v++)
                assert_number(number(result, "rows", "count",
                                     (y * image->channels + c) * VALUES + (uint64_t)v),
                              (double)row[v + 1], "rows", y);
        }
        for (int v = 0; v < VALUES; v++) {
            all += counts[v + 1];
            assert_number(number(result, "bins", channel, (uint64_t)v), (double)counts[v + 1],
                          channel, (uint64_t)v);
        }
        assert_number(number(result, "totals", "nan", c), (double)counts[0], "nan", c);
        assert_number(number(folded, "totals", "nan", c), (double)counts[0], "folded nan", c);
        assert_number(number(result, "statistics", "count", c), (double)all, "count", c);
        missing += counts[0];
    }
    assert_int_equal(report.remarks.nodata, missing);
}

/* Expect the means of lines: of rows or columns. */
static void check_means(const char *backend, const marked *image, bool columns) {
    static const char *const name[] = {"a.tif"};
    gf_result *result =
        measure(backend, "axis-sum", columns ? "axis=y mean" : "mean", name, NULL, NULL);
    const uint32_t lines = columns ? image->width : image->height;
    const uint32_t length = columns ? image->height : image->width;
    for (uint32_t c = 0; c < image->channels; c++) {
        double total = 0, total_count = 0;
        for (uint32_t line = 0; line < lines; line++) {
            double sum = 0, count = 0;
            for (uint32_t i = 0; i < length; i++) {
                const uint32_t x = columns ? line : i, y = columns ? i : line;
                const int v = image->values[(y * image->width + x) * image->channels + c];
                sum += v < 0 ? 0 : v;
                count += v >= 0;
            }
            assert_number(number(result, "means", channel_name(image, c), line), sum / count,
                          columns ? "columns" : "rows", line);
            total += sum;
            total_count += count;
        }
        assert_number(number(result, "totals", "sum", c), total, "sum", c);
        assert_number(number(result, "totals", "mean", c), total / total_count, "mean", c);
    }
    gf_result_free(result);
}

/* A sample is left out if it is missing in either image. */
static void check_dot(const char *backend, const marked *a, const marked *b) {
    static const char *const names[] = {"a.tif", "b.tif"};
    AUTO(result) gf_result *result = measure(backend, "dot", "", names, NULL, NULL);
    for (uint32_t c = 0; c < a->channels; c++) {
        double ab = 0, aa = 0, ssd = 0, count = 0;
        for (uint32_t i = c; i < a->width * a->height * a->channels; i += a->channels) {
            const double p = a->values[i], q = b->values[i];
            const bool both = p >= 0 && q >= 0;
            ab += both ? p * q : 0;
            aa += both ? p * p : 0;
            ssd += both ? (p - q) * (p - q) : 0;
            count += both;
        }
        assert_number(number(result, "products", "a.b", c), ab, "a.b", c);
        assert_number(number(result, "products", "a.a", c), aa, "a.a", c);
        assert_number(number(result, "products", "mse", c), ssd / count, "mse", c);
    }
}

TEST(leaves_out_samples) {
    static const float values[3][3] = {{77, 200, 255}, {10, 300, 65535}, {-9999, NAN, INFINITY}};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        test_random random = test_seeded(seed);
        static marked a, b;
        a.width = 1 + (uint32_t)test_below(&random, MAX_SIDE);
        a.height = 1 + (uint32_t)test_below(&random, MAX_SIDE);
        a.channels = 1 + (uint32_t)test_below(&random, 3);
        a.type = (gf_type)(seed % 3);
        b = a;
        for (uint32_t i = 0; i < a.width * a.height * a.channels; i++) {
            a.values[i] = (int)test_below(&random, VALUES + 3) - 1;
            a.values[i] = a.values[i] < VALUES ? a.values[i] : -1;
            b.values[i] = (int)test_below(&random, VALUES + 1) - 1;
        }
        put_marked("a.tif", &a, values[a.type][test_below(&random, 3)]);
        put_marked("b.tif", &b, values[a.type][test_below(&random, 3)]);
        for (const char *const *backend = test_backends(); *backend; backend++) {
            check_hist(*backend, &a);
            check_means(*backend, &a, false);
            check_means(*backend, &a, true);
            check_dot(*backend, &a, &b);
        }
    }
}

/* A file that is read again, because a device fails after some strips, is counted again. */
TEST(counts_again_after_a_failure) {
    static marked a, b;
    uint64_t failures = 0;
    test_random random = test_seeded(41);
    a = (marked){.width = 7, .height = MAX_SIDE, .channels = 3, .type = GF_U16};
    b = a;
    for (uint32_t i = 0; i < a.width * a.height * a.channels; i++) {
        a.values[i] = (int)test_below(&random, VALUES + 1) - 1;
        b.values[i] = (int)test_below(&random, VALUES + 1) - 1;
    }
    put_marked("a.tif", &a, 300);
    put_marked("b.tif", &b, 10);
    gf_engine_stand_in(&faulty_backend);
    for (uint64_t call = 1; call <= 20; call++)
        for (int filter = 0; filter < 3; filter++) {
            faulty_expect(&(faulty_plan){
                .fail_at = call, .status = GF_NO_BACKEND, .permanent = true, .rows = 2});
            if (filter < 2)
                check_means("auto", &a, filter != 0);
            else
                check_dot("auto", &a, &b);
            failures += faulty_failed() != NULL;
        }
    gf_engine_stand_in(NULL);
    assert_true(failures > 20);
}

/* The value of the tag is that of stored samples. */
TEST(converts_the_value) {
    static const struct {
        uint16_t bits, format, photometric;
        const char *nodata;
        unsigned char row[8]; /* 4 pixels */
        gf_depth as;
        uint64_t count;
    } cases[] = {
        {8, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISBLACK, "7", {7, 8, 7, 9}, 0, 2},
        {8, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISBLACK, "7.5", {7, 8, 7, 9}, 0, 0},
        {8, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISBLACK, "263", {7, 8, 7, 9}, 0, 0},
        {8, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISBLACK, "none", {0, 8, 7, 9}, 0, 0},
        {8, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISWHITE, "7", {7, 8, 7, 248}, 0, 2},
        {4, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISBLACK, "3", {0x35, 0x73}, 0, 2},
        {12,
         SAMPLEFORMAT_UINT,
         PHOTOMETRIC_MINISBLACK,
         "4095",
         {0xff, 0xf0, 0, 0xff, 0xf0, 1},
         0,
         2},
        {12, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISBLACK, "1", {0, 0x10, 1, 0, 0, 1}, GF_DEPTH_16, 3},
        {16,
         SAMPLEFORMAT_INT,
         PHOTOMETRIC_MINISBLACK,
         "-1",
         {255, 255, 0, 255, 255, 255},
         GF_DEPTH_F32,
         2},
    };
    static const char *const name[] = {"a.tif"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiff_spec spec = tiff_small_grey(4, 0);
        gf_report report;
        spec.height = 1;
        spec.bits = cases[i].bits;
        spec.format = cases[i].format;
        spec.photometric = cases[i].photometric;
        put_tiff("a.tif", &spec, cases[i].nodata, cases[i].row, 8);
        gf_result_free(measure("cpu", "hist", "range=-9999999,9999999", name,
                               &(gf_file_options){.as = cases[i].as}, &report));
        if (report.remarks.nodata != cases[i].count)
            fail_msg("%zu: %" PRIu64 " samples", i, report.remarks.nodata);
    }
}

/* Count samples once, also if the image is read twice or in ranges of rows, and say so. */
TEST(notes_the_count) {
    static marked image = {.width = 3, .height = 9, .channels = 1, .type = GF_U16};
    static const char *const name[] = {"a.tif"};
    const char *path = in_directory("a.tif"), *out = in_directory("b.tif");
    const gf_filter *smooth = gf_filter_find("smooth"), *sums = gf_filter_find("axis-sum");
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu"});
    AUTO(settings)
    gf_settings *settings = test_settings(smooth, ""), *defaults = test_settings(sums, "");
    const gf_file_options kept = {.keep_nodata = true}, force = {.force = true};
    gf_report report;
    gf_format format;
    bool possible;
    for (int i = 0; i < 27; i++)
        image.values[i] = i % 3 == 0 ? -1 : 1 + i % 9;
    put_marked("a.tif", &image, 0);
    gf_result *result = measure("cpu", "hist", "range=data bins=7", name, NULL, &report);
    test_column(result, "bins", "grey", "3 3 0 3 3 0 6");
    assert_string_equal(report.remarks.notes,
                        "9 samples have the nodata value of the file and are "
                        "left out; --nodata none measures them");
    gf_result_free(result);
    result = measure("cpu", "hist", "range=0,9 bins=3", name, &kept, &report);
    test_column(result, "bins", "grey", "12 6 9");
    assert_string_equal(report.remarks.notes, "");
    gf_result_free(result);
    assert_ok(test_run_files(
        &(test_files){engine, smooth, settings, &path, out, &force, .report = &report}));
    assert_string_equal(report.remarks.notes,
                        "9 samples have the nodata value of the file, and are treated as others");
    /* The counts of means are not those of ranges of rows. */
    for (int i = 0; i < 2; i++) {
        assert_ok(test_rows_possible(
            &(test_files){engine, sums, defaults, &path, NULL, i ? &kept : &force}, &format,
            &possible));
        assert_int_equal(possible, i);
    }
}

int main(void) {
    return test_main_in_directory();
}
