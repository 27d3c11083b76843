/* Encoders count clipped samples exactly: the number is the same for every backend, format, strip
 * height and batch. */
#include "io_util.h"
#include "testing.h"

#include <math.h>

#include "engine/batch/batch.h"
#include "io/strip/row_filter.h"

/* ---- counting -------------------------------------------------------------------------------- */

/* Count with every available SIMD level. All levels must agree. */
static uint64_t count_simd(const gf_format *format, const unsigned char *row) {
    const uint64_t count = gf_png_simd_of(GF_ISA_PORTABLE)->count_largest(format, row);
    for (gf_isa isa = GF_ISA_PORTABLE; isa < GF_ISA_COUNT; isa++)
        if (gf_isa_available(isa))
            assert_int_equal(gf_png_simd_of(isa)->count_largest(format, row), count);
    return count;
}

static uint64_t count_one_by_one(const gf_format *format, const unsigned char *row) {
    const size_t bytes = gf_type_bytes(format->type);
    uint64_t count = 0;
    for (uint64_t x = 0; x < format->width; x++)
        for (uint32_t c = 0; c < format->channels; c++) {
            const unsigned char *sample = row + (x * format->channels + c) * bytes;
            const bool alpha = format->channels % 2 == 0 && c == format->channels - 1;
            count += !alpha && sample[0] == 255 && (bytes == 1 || sample[1] == 255);
        }
    return count;
}

/* Mixtures of 255 and other bytes, with bytes of 255 before and after the row. */
TEST(counts_rows_of_any_width) {
    enum { MAX = 600 * 8 };
    unsigned char row[MAX + 64];
    uint32_t seed = 5;
    for (uint64_t width = 1; width < 600; width += width < 80 ? 1 : 37)
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (int type = GF_U8; type <= GF_U16; type++)
                for (uint32_t share = 0; share <= 4; share++) {
                    const gf_format format = {width, 1, channels, (gf_type)type, channels % 2 == 0};
                    memset(row, 255, sizeof row);
                    for (size_t i = 0; i < gf_row_bytes(&format); i++)
                        if (next_random(&seed) % 4 >= share)
                            row[32 + i] = (unsigned char)next_random(&seed);
                    assert_int_equal(count_simd(&format, row + 32),
                                     count_one_by_one(&format, row + 32));
                }
}

/* The count exceeds a SIMD lane of 8 or of 16 bits. */
TEST(counts_long_rows) {
    const uint64_t bytes = UINT64_C(3) << 20;
    AUTO(free) unsigned char *row = test_alloc(bytes);
    memset(row, 255, bytes);
    for (uint32_t channels = 1; channels <= 4; channels++) {
        const uint64_t pixels = bytes / channels, colours = channels - (channels % 2 == 0);
        assert_int_equal(
            count_simd(&(gf_format){pixels, 1, channels, GF_U8, channels % 2 == 0}, row),
            pixels * colours);
        assert_int_equal(
            count_simd(&(gf_format){pixels / 2, 1, channels, GF_U16, channels % 2 == 0}, row),
            pixels / 2 * colours);
    }
}

/* ---- reports --------------------------------------------------------------------------------- */

static gf_engine *open_engine(const char *backend, uint32_t threads, uint64_t rows_per_strip) {
    const gf_engine_options options = {
        .backend = backend, .threads = threads, .rows_per_strip = rows_per_strip};
    return test_engine(&options);
}

/* Count the clipped samples of golden's result in memory, one by one. */
static uint64_t count_golden(const gf_settings *settings, const test_image *in) {
    AUTO(engine) gf_engine *engine = open_engine("golden", 1, 0);
    AUTO(image) test_image out = test_image_new(in->format, 0);
    uint64_t count = 0;
    assert_ok(test_run_memory(&(test_memory){engine, gf_filter_find("smooth"), settings,
                                             &in->format, &(gf_pixels){in->rows.data, in->stride},
                                             out.rows.data, out.stride}));
    for (uint64_t y = 0; y < in->format.height; y++)
        count += count_one_by_one(&in->format, gf_row(&out.rows, y));
    return count;
}

static gf_step_report run(gf_engine *engine, const gf_settings *settings, const char *in,
                          const char *out, const char *compression) {
    const gf_file_options options = {.force = true, .write.compression = compression};
    gf_step_report report;
    assert_ok(test_run_files(&(test_files){engine, gf_filter_find("smooth"), settings, &in, out,
                                           &options, .output = &report}));
    return report;
}

static const struct kind {
    const char *name, *compression;
    uint32_t channels; /* bit c: the format supports c channels */
    bool wide;         /* supports u16 */
} kinds[] = {{"o.png", "fast", 0x1e, true}, {"o.png", "balanced", 0x1e, true},
             {"o.png", "none", 0x1e, true}, {"o.png", "small", 0x1e, true},
             {"o.jpg", NULL, 0x0a, false},  {"o.bmp", NULL, 0x1a, false},
             {"o.tga", NULL, 0x1e, false}};

TEST(every_encoder_and_backend) {
    test_random random = {9};
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    gf_engine *engines[] = {open_engine("golden", 1, 0), open_engine("cpu", 1, 0),
                            open_engine("cpu", 3, 7),
                            test_has_cuda() ? open_engine("cuda", 0, 0) : NULL};
    const int count = engines[3] ? 4 : 3;
    const char *in = in_directory("in.png");
    for (uint32_t channels = 1; channels <= 4; channels++)
        for (int type = GF_U8; type <= GF_U16; type++) {
            AUTO(image)
            test_image image = test_image_new(
                (gf_format){333, 257, channels, (gf_type)type, channels % 2 == 0}, 0);
            test_fill(&image, TEST_UNIFORM, &random);
            test_put(in, &image);
            const uint64_t want = count_golden(settings, &image);
            assert_true(want > 0 && want < UINT64_C(333) * 257 * channels);
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                for (int e = 0; e < count; e++) {
                    if (!(kinds[k].channels >> channels & 1) || (type == GF_U16 && !kinds[k].wide))
                        continue;
                    const gf_step_report report =
                        run(engines[e], settings, in, in_directory(kinds[k].name),
                            kinds[k].compression);
                    assert_true(report.counted != 0);
                    assert_int_equal(report.clipped, want);
                }
        }
    for (int e = 0; e < count; e++)
        gf_engine_close(engines[e]);
}

/* Clipped samples are not counted where rows are copied, or in f32 images. */
TEST(copied_rows_are_not_counted) {
    static const char *const outs[] = {"o.ppm", "o.pam", "o.raw", "o.pfm", "o.hdr"};
    test_random random = {9};
    AUTO(settings)
    gf_settings *settings = test_settings(gf_filter_find("smooth"), "keep-brightness");
    AUTO(engine) gf_engine *engine = open_engine("cpu", 2, 0);
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++) {
        const gf_type type = i < 3 ? GF_U8 : GF_F32;
        AUTO(image) test_image image = test_image_new((gf_format){20, 10, 3, type, false}, 0);
        test_fill(&image, TEST_SMOOTH, &random);
        const char *in = in_directory(i < 3 ? "in.ppm" : "in.pfm");
        test_put(in, &image);
        const gf_step_report report = run(engine, settings, in, in_directory(outs[i]), NULL);
        assert_false(report.counted != 0);
        assert_int_equal(report.clipped, 0);
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

enum { ITEMS = 7 };

static bool keep_report(void *reports, const gf_batch_done *done) {
    assert_int_equal(done->status, GF_OK);
    gf_step_report *report = (gf_step_report *)reports + done->item;
    *report = done->outcome->steps[1];
    report->brightness = done->outcome->steps[0].brightness;
    memcpy(report->advice, done->outcome->steps[0].advice, sizeof report->advice);
    return true;
}

/* On CPU threads, on devices (replaced by the cpu backend) that batch small images, and on GPUs. */
TEST(counts_in_batches) {
    const gf_filter *smooth = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(smooth, "");
    test_item items[ITEMS];
    uint64_t want[ITEMS];
    test_random random = {4};
    for (int i = 0; i < ITEMS; i++) {
        test_image image =
            test_image_new((gf_format){50, 40, i % 2 ? 3 : 4, GF_U8, (i % 2 ? 3 : 4) % 2 == 0}, 0);
        test_fill(&image, i % 3 ? TEST_UNIFORM : TEST_SMOOTH, &random);
        items[i] = (test_item){.in = test_path("in%d.png", i), .out = test_path("out%d.png", i)};
        test_put(items[i].in, &image);
        want[i] = count_golden(settings, &image);
        test_image_free(&image);
    }
    for (uint32_t variant = 0; variant < (test_has_cuda() ? 4 : 3); variant++) {
        const gf_batch_devices on = {.count = variant % 3};
        gf_step_report reports[ITEMS];
        memset(reports, 0, sizeof reports);
        const test_batch_options options = {
            .engine = {.backend = variant < 3 ? "cpu" : "cuda", .threads = 2},
            .files = {.force = true},
            .done = keep_report,
            .context = reports};
        assert_ok(test_run_batch_on(
            &(test_batch){variant % 3 ? &on : NULL, smooth, settings, items, ITEMS, &options}));
        for (int i = 0; i < ITEMS; i++) {
            assert_true(reports[i].counted != 0);
            assert_int_equal(reports[i].clipped, want[i]);
            assert_true(fabs(reports[i].brightness - 1.452) < 1e-6);
            assert_string_equal(reports[i].advice, "--keep-brightness avoids it");
        }
    }
}

/* ---- brightness ------------------------------------------------------------------------------ */

/* The reported factor is the gain of a flat area. */
TEST(brightness_of_flat_areas) {
    static const struct {
        const char *text;
        double factor;
        const char *advice;
    } cases[] = {{"", 1.452, "--keep-brightness avoids it"},
                 {"axis=y", 1.452, "--keep-brightness avoids it"},
                 {"axis=xy", 1.452 * 1.452, "--keep-brightness avoids it"},
                 {"gain=1", 1.32, "--keep-brightness avoids it"},
                 {"gain=2", 2 * 1.32, "--keep-brightness and --gain 1 avoid it"},
                 {"weight=1", 3.3, "--keep-brightness avoids it"},
                 {"stages=enhance", 1.1, "--keep-brightness avoids it"},
                 {"stages=blur", 1, "--keep-brightness avoids it"},
                 {"stages=smooth", 1.32, "--keep-brightness avoids it"},
                 {"keep-brightness", 1, "a lower --gain avoids it"},
                 {"keep-brightness gain=3", 3, "a lower --gain avoids it"},
                 {"tile=1", 1.1, "--keep-brightness avoids it"},
                 {"tile=2", 1.1 * 1.2, "--keep-brightness avoids it"},
                 {"tile=2 axis=xy", 1.1 * 1.2 * 1.1 * 1.2, "--keep-brightness avoids it"}};
    const gf_format format = {41, 31, 1, GF_F32, false};
    AUTO(engine) gf_engine *engine = open_engine("cpu", 1, 0);
    AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
    for (uint64_t y = 0; y < format.height; y++)
        for (uint64_t x = 0; x < format.width; x++)
            ((float *)(void *)gf_row(&in.rows, y))[x] = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(settings)
        gf_settings *settings = test_settings(gf_filter_find("smooth"), cases[i].text);
        gf_step_report report;
        assert_ok(test_run_memory(&(test_memory){engine, gf_filter_find("smooth"), settings,
                                                 &format, &(gf_pixels){in.rows.data, in.stride},
                                                 out.rows.data, out.stride, .output = &report}));
        const double middle = (double)((float *)(void *)gf_row(&out.rows, 15))[20];
        if (fabs(report.brightness - cases[i].factor) > 1e-6 ||
            fabs(middle - cases[i].factor) > 1e-5 || strcmp(report.advice, cases[i].advice) != 0)
            fail_msg("%s: reported %.9g (%s), is %.9g", cases[i].text, report.brightness,
                     report.advice, middle);
    }
}

int main(void) {
    return test_main_in_directory();
}
