/* Misuse of the library: every mistake returns an error or a defined value. Also lifetimes of
 * results, settings and engines. */
#include <errno.h>

#include "io_util.h"

#include "testing.h"

static const gf_format grey = {.width = 8, .height = 4, .channels = 1, .type = GF_U8};
static const unsigned char pixels[32] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
static const gf_pixels in[2] = {{pixels, 8}, {pixels, 8}};

static gf_engine *open_engine(void) {
    const gf_engine_options options = {.backend = "cpu", .threads = 2};
    return test_engine(&options);
}

/* ---- filters and settings -------------------------------------------------------------------- */

/* Check every function that accepts a filter and settings. */
static void assert_usage_error(gf_engine *engine, const gf_filter *filter,
                               const gf_settings *settings, const char *part) {
    const char *const paths[2] = {in_directory("in.pgm"), in_directory("in.pgm")};
    unsigned char out[32];
    gf_format format;
    uint64_t bytes;
    gf_result *result = (gf_result *)out;
    gf_report report = {.strips = 1};
    assert_error(test_filter_output(filter, settings, &grey, &format), GF_USAGE, part);
    assert_error(test_result_bytes(filter, settings, &grey, &bytes), GF_USAGE, part);
    assert_error(test_run_memory(&(test_memory){engine, filter, settings, &grey, in, out, 8,
                                                .result = &result, .report = &report}),
                 GF_USAGE, part);
    assert_null(result);
    assert_int_equal(report.strips, 0);
    result = (gf_result *)out;
    report.strips = 1;
    assert_error(test_run_list(&(test_list){engine, filter, settings, &grey, 1, in,
                                            .result = &result, .report = &report}),
                 GF_USAGE, part);
    assert_null(result);
    assert_int_equal(report.strips, 0);
    result = (gf_result *)out;
    report.strips = 1;
    assert_error(
        test_run_files(&(test_files){engine, filter, settings, paths, in_directory("out.pgm"),
                                     .result = &result, .report = &report}),
        GF_USAGE, part);
    assert_null(result);
    assert_int_equal(report.strips, 0);
    assert_int_equal(count_files(false), 1);
    result = (gf_result *)out;
    assert_error(test_run_device(&(test_memory){engine, filter, settings, &grey, in, out, 8,
                                                .result = &result}),
                 GF_USAGE, part);
    assert_null(result);
}

TEST(rejects_other_settings) {
    AUTO(engine) gf_engine *engine = open_engine();
    put_bytes(in_directory("in.pgm"), "P5 1 1 255\n.", 12);
    for (size_t i = 0; i < test_filter_count(); i++) {
        const gf_filter_info *info = gf_filter_describe(gf_filter_at(i));
        AUTO(settings) gf_settings *settings = gf_settings_new(info->params, info->param_count);
        for (size_t k = 0; k < test_filter_count(); k++)
            if (gf_filter_describe(gf_filter_at(k))->params != info->params)
                assert_usage_error(engine, gf_filter_at(k), settings,
                                   "belong to another table of parameters");
        assert_usage_error(engine, NULL, settings, "the filter is NULL");
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

TEST(runs_default_settings) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(engine) gf_engine *engine = open_engine();
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    unsigned char want[64] = {0}, got[64] = {1};
    assert_ok(test_run_memory(&(test_memory){engine, filter, settings, &grey, in, want, 8}));
    assert_ok(test_run_memory(&(test_memory){engine, filter, NULL, &grey, in, got, 8}));
    for (uint64_t y = 0; y < grey.height; y++)
        assert_memory_equal(want + 8 * y, got + 8 * y, (size_t)grey.width);
}

TEST(rejects_other_lists_of_steps) {
    const gf_filter *smooth = gf_filter_find("smooth"), *hist = gf_filter_find("hist");
    const struct {
        gf_step steps[3];
        uint32_t count, step;
        const char *message;
    } cases[] = {
        {{{.filter = smooth}}, 0, 0, "the filter is NULL"},
        {{{.filter = NULL}}, 1, 0, "the filter is NULL"},
        {{{.filter = smooth}}, 1, 0, "add a writer"},
        {{{.filter = smooth}, {.filter = hist, .from = GF_FROM_INPUT}},
         2,
         1,
         "step 1, smooth: produces an image; add a writer"},
        {{{.filter = hist}, {.filter = smooth}}, 2, 2, "step 2, smooth: produces an image; add"},
        {{{.filter = hist, .from = 1}}, 1, 0, "the image after the step before it, or the input"},
    };
    AUTO(engine) gf_engine *engine = open_engine();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gf_job job = {.steps = cases[i].steps,
                            .step_count = cases[i].count,
                            .memory = GF_HOST,
                            .in = in,
                            .format = grey};
        gf_step_info info[3];
        assert_error(gf_run(engine, &job, NULL, &why), GF_USAGE, cases[i].message);
        assert_int_equal(why.step, cases[i].step);
        assert_error(gf_job_inspect(&job, info, &why), GF_USAGE, cases[i].message);
    }
    gf_step many[33] = {{.filter = smooth}};
    const gf_job job = {.steps = many, .step_count = 33};
    assert_error(gf_run(engine, &job, NULL, &why), GF_USAGE, "33 steps; a job has at most 32");
    for (int i = 0; i < 32; i++)
        many[i].filter = hist;
    const gf_job most = {
        .steps = many, .step_count = 32, .memory = GF_HOST, .in = in, .format = grey};
    assert_ok(gf_run(engine, &most, NULL, &why));
    assert_int_equal(gf_run(engine, NULL, NULL, NULL), GF_USAGE);
}

static bool stop_at(void *context, const gf_progress *progress) {
    uint64_t *calls = context;
    return ++*calls < 2;
}

/* A callback that returns false ends the run. No output appears. */
TEST(progress_can_cancel) {
    uint64_t calls = 0;
    const gf_format tall = {8, 400, 1, GF_U8, false};
    AUTO(image) test_image image = test_image_new(tall, 0);
    const char *path = in_directory("in.pgm");
    test_put(path, &image);
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu", .rows_per_strip = 10});
    const gf_file_options options = {.progress = stop_at, .progress_context = &calls};
    assert_error(test_run_files(&(test_files){engine, gf_filter_find("smooth"), NULL, &path,
                                              in_directory("cancelled.pgm"), &options}),
                 GF_FAILED, "cancelled");
    assert_int_equal(calls, 2);
    assert_int_equal(access(in_directory("cancelled.pgm"), F_OK), -1);
}

TEST(returns_zero_for_unknown_names) {
    const gf_filter *filter = gf_filter_find("hist");
    AUTO(settings) gf_settings *settings = test_settings(filter, "bins=7 range=1,2 per-row");
    double lo = 9, hi = 9;
    assert_int_equal(gf_settings_int(settings, "bins"), 7);
    assert_int_equal(gf_settings_int(settings, "range"), 0);
    assert_int_equal(gf_settings_int(settings, "none"), 0);
    assert_int_equal(gf_settings_size(settings, "bins"), 0);
    assert_int_equal(gf_settings_choice(settings, "bins"), 0);
    assert_int_equal(gf_settings_list(settings, "bins"), 0);
    assert_true(gf_settings_float(settings, "bins") == 0);
    assert_false(gf_settings_flag(settings, "bins"));
    assert_false(gf_settings_range(settings, "bins", &lo, &hi));
    assert_true(lo == 0 && hi == 0);
    assert_null(gf_settings_text(settings, "none"));
    assert_false(gf_settings_given(settings, "none"));
    assert_int_equal(gf_settings_set(settings, "none", "1", &why), GF_USAGE);
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

static gf_status run_file(gf_engine *engine, const char *name, const char *const *paths,
                          const char *out) {
    const gf_filter *filter = gf_filter_find(name);
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    return test_run_files(&(test_files){engine, filter, settings, paths, out});
}

TEST(rejects_invalid_paths) {
    const char *const file[2] = {in_directory("in.pgm"), NULL};
    const char *const stdin_twice[2] = {"-", "-"};
    AUTO(engine) gf_engine *engine = open_engine();
    put_bytes(in_directory("in.pgm"), "P5 1 1 255\n.", 12);
    assert_error(run_file(engine, "smooth", file, NULL), GF_USAGE,
                 "smooth: produces an image; give an output path");
    assert_error(run_file(engine, "hist", file, in_directory("out.png")), GF_USAGE,
                 "hist: produces no image");
    assert_int_equal(run_file(engine, "hist", NULL, NULL), GF_USAGE);
    assert_error(run_file(engine, "hist", file + 1, NULL), GF_USAGE,
                 "hist: needs 1 input paths, and one is NULL");
    assert_int_equal(run_file(engine, "dot", file, NULL), GF_USAGE);
    assert_error(run_file(engine, "dot", stdin_twice, NULL), GF_USAGE,
                 "dot: standard input can be read only once");
    const gf_step steps[] = {{.filter = gf_filter_find("smooth")},
                             {.out_path = in_directory("none/out.pgm")},
                             {.filter = gf_filter_find("hist")}};
    const gf_job job = {.steps = steps, .step_count = 3, .in_path = file[0]};
    assert_error(gf_run(engine, &job, NULL, &why), GF_FAILED, "step 2, write: /");
    assert_int_equal(why.step, 2);
    const gf_write_options high = {.quality = 300};
    const gf_step first[] = {{.out_path = in_directory("out.pgm"), .write = &high},
                             {.filter = gf_filter_find("hist")}};
    const gf_job other = {.steps = first, .step_count = 2, .in_path = file[0]};
    assert_error(gf_run(engine, &other, NULL, &why), GF_USAGE, "quality: 300 is above");
    assert_int_equal(count_files(false), 1);
}

static gf_status run_memory(gf_engine *engine, const char *name, const char *text,
                            const gf_format *format, const gf_pixels *rows, void *out) {
    const gf_filter *filter = gf_filter_find(name);
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    return test_run_memory(&(test_memory){engine, filter, settings, format, rows, out, 8});
}

TEST(rejects_invalid_memory) {
    const gf_pixels one[] = {{pixels, 8}, {NULL, 8}, {pixels, 8}},
                    narrow[2] = {{pixels, 7}, {pixels, 7}};
    const gf_format odd[] = {{0, 4, 1, GF_U8, false},      {8, 0, 1, GF_U8, false},
                             {8, 4, 5, GF_U8, 5 % 2 == 0}, {8, 4, 0, GF_U8, 0 % 2 == 0},
                             {8, 4, 1, (gf_type)3, false}, {UINT64_MAX, 4, 1, GF_U8, false}};
    unsigned char out[64];
    AUTO(engine) gf_engine *engine = open_engine();
    assert_error(run_memory(engine, "smooth", "", &grey, in, NULL), GF_USAGE,
                 "smooth: produces an image; give an output buffer");
    assert_int_equal(run_memory(engine, "normalize", "", &grey, in, NULL), GF_USAGE);
    assert_int_equal(run_memory(engine, "hist", "bins=4 extract=1 mask=m.png", &grey, in, NULL),
                     GF_USAGE);
    assert_error(run_memory(engine, "smooth", "", &grey, NULL, out), GF_USAGE,
                 "smooth: needs 1 input images, and one is NULL");
    assert_int_equal(run_memory(engine, "dot", "", &grey, one, NULL), GF_USAGE);
    assert_error(run_memory(engine, "dot", "", &grey, one + 1, NULL), GF_USAGE,
                 "dot: needs 2 input images, and one is NULL");
    assert_error(run_memory(engine, "dot", "", &grey, narrow, NULL), GF_USAGE,
                 "is smaller than a row");
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_int_equal(run_memory(engine, "smooth", "", &odd[i], in, out), GF_FAILED);
    /* The engine remains usable. */
    assert_ok(run_memory(engine, "smooth", "", &grey, in, out));
}

/* Strides whose product with the height, or whose sum with the address, overflows. */
TEST(rejects_large_strides) {
    const size_t strides[] = {SIZE_MAX,        SIZE_MAX / 2,          SIZE_MAX / 3,
                              (size_t)1 << 63, ((size_t)1 << 63) - 1, (size_t)1 << 62};
    const gf_format one = {.width = 8, .height = 1, .channels = 1, .type = GF_U8};
    unsigned char out[64];
    AUTO(engine) gf_engine *engine = open_engine();
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        const gf_pixels wide = {pixels, strides[i]};
        const gf_out_pixels wide_out[] = {{out, strides[i]}, {out + 32, 8}};
        assert_error(run_memory(engine, "smooth", "", &grey, &wide, out), GF_USAGE,
                     "bytes, is too large");
        assert_int_equal(test_run_memory(&(test_memory){engine, gf_filter_find("smooth"), settings,
                                                        &grey, in, out, strides[i]}),
                         GF_USAGE);
        assert_int_equal(test_run_list(&(test_list){engine, gf_filter_find("smooth"), settings,
                                                    &grey, 2, in, wide_out}),
                         GF_USAGE);
        assert_int_equal(gf_save_file(in_directory("a.pgm"), &grey, &wide, NULL, &why), GF_USAGE);
        /* One row: the stride has no effect. */
        assert_ok(run_memory(engine, "smooth", "", &one, &wide, out));
    }
}

/* Rows of two images that share a byte. Rows of one stride may be side by side. */
TEST(rejects_overlapping_memory) {
    const struct {
        size_t from, to, in_stride, out_stride;
        bool overlaps;
    } cases[] = {{0, 0, 8, 8, true},     {0, 31, 8, 8, true},   {31, 0, 8, 8, true},
                 {0, 32, 8, 8, false},   {32, 0, 8, 8, false},  {0, 8, 16, 16, false},
                 {8, 0, 16, 16, false},  {0, 7, 16, 16, true},  {0, 9, 16, 16, true},
                 {0, 24, 16, 16, false}, {0, 25, 16, 16, true}, {7, 0, 17, 17, true},
                 {8, 0, 17, 17, false},  {0, 8, 16, 17, true},  {0, 100, 16, 8, false}};
    const gf_filter *smooth = gf_filter_find("smooth");
    AUTO(settings)
    gf_settings *settings = test_settings(smooth, ""), *xy = test_settings(smooth, "axis=xy");
    AUTO(engine) gf_engine *engine = open_engine();
    unsigned char memory[256] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gf_pixels from[2] = {{pixels, 8}, {memory + cases[i].from, cases[i].in_stride}};
        const gf_out_pixels to[2] = {{memory + 192, 8},
                                     {memory + cases[i].to, cases[i].out_stride}};
        const gf_status want = cases[i].overlaps ? GF_USAGE : GF_OK;
        assert_int_equal(test_run_memory(&(test_memory){engine, smooth, settings, &grey, &from[1],
                                                        to[1].data, to[1].stride}),
                         want);
        if (want)
            assert_message(&why, "smooth: the output overlaps an input; use other memory for it");
        /* As one tall image, and one after the other. */
        assert_int_equal(test_run_list(&(test_list){engine, smooth, settings, &grey, 2, from, to}),
                         want);
        assert_int_equal(test_run_list(&(test_list){engine, smooth, xy, &grey, 2, from, to}), want);
    }
}

/* Every number of the options that has a range. */
TEST(rejects_numbers_out_of_range) {
    const gf_file_options options[] = {{.write.depth = (gf_depth)4}, {.write.depth = (gf_depth)-1},
                                       {.sync = (gf_sync)3},         {.sync = (gf_sync)-1},
                                       {.write.quality = 101},       {.write.quality = UINT32_MAX}};
    static const char *const names[] = {
        "depth: ", "depth: ", "sync: ", "sync: ", "quality: ", "quality: "};
    const gf_filter *smooth = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(smooth, "");
    gf_engine *engine = open_engine(), *many = NULL;
    gf_format format;
    gf_file_info info;
    void *loaded;
    put_bytes(in_directory("in.pgm"), "P5 1 1 255\n.", 12);
    const char *paths[1] = {in_directory("in.pgm")}, *out = in_directory("out.jpg");
    const test_item item = {.in = paths[0], .out = out};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const test_batch_options batch = {.files = options[i]};
        assert_error(
            test_run_files(&(test_files){engine, smooth, settings, paths, out, &options[i]}),
            GF_USAGE, names[i]);
        assert_error(test_run_batch(smooth, settings, &item, 1, &batch), GF_USAGE, names[i]);
        assert_int_equal(gf_inspect_file(paths[0], &options[i], &info, &why), GF_USAGE);
        assert_int_equal(gf_load_file(paths[0], &options[i], &format, &loaded, NULL, &why),
                         GF_USAGE);
        assert_error(gf_save_file(out, &grey, in, &options[i], &why), GF_USAGE, names[i]);
    }
    const test_batch_options threads = {.engine = {.threads = 1025}};
    assert_error(test_run_batch(smooth, settings, &item, 1, &threads), GF_USAGE,
                 "threads: 1025 is above the maximum of 1024");
    assert_error(gf_engine_open(&threads.engine, &many, &why), GF_USAGE,
                 "threads: 1025 is above the maximum of 1024");
    assert_null(many);
    assert_int_equal(count_files(false), 1);
    gf_engine_close(engine);
}

/* error.cause distinguishes a missing input from an existing output. */
TEST(stores_the_errno) {
    const char *none = in_directory("none.pgm"), *saved = in_directory("saved.pgm");
    gf_format format;
    void *loaded;
    assert_int_equal(gf_load_file(none, NULL, &format, &loaded, NULL, &why), GF_FAILED);
    assert_int_equal(why.cause, ENOENT);
    assert_ok(gf_save_file(saved, &grey, in, NULL, &why));
    assert_int_equal(gf_save_file(saved, &grey, in, NULL, &why), GF_FAILED);
    assert_int_equal(why.cause, EEXIST);
    assert_int_equal(
        gf_load_file(saved, &(gf_file_options){.max_pixels = 1}, &format, &loaded, NULL, &why),
        GF_FAILED);
    assert_int_equal(why.cause, 0);
}

TEST(returns_null_on_failure) {
    const char *const none[1] = {in_directory("none.png")};
    gf_engine *engine = (gf_engine *)test_directory;
    gf_result *result = (gf_result *)test_directory;
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("hist"), "");
    gf_format format;
    void *rows = test_directory;
    assert_int_equal(gf_engine_open(&(gf_engine_options){.backend = "abacus"}, &engine, NULL),
                     GF_USAGE);
    assert_null(engine);
    assert_error(gf_engine_open(&(gf_engine_options){.simd = "mmx"}, &engine, &why), GF_USAGE,
                 "mmx: no such SIMD level");
    assert_null(engine);
    engine = open_engine();
    assert_int_equal(test_run_files(&(test_files){engine, gf_filter_find("hist"), settings, none,
                                                  .result = &result}),
                     GF_FAILED);
    assert_null(result);
    assert_int_equal(gf_load_file(none[0], NULL, &format, &rows, NULL, NULL), GF_FAILED);
    assert_null(rows);
    gf_engine_close(engine);
    gf_engine_close(NULL);
    gf_settings_free(NULL);
    gf_result_free(NULL);
    gf_output_file_close(NULL);
}

/* Rows at odd addresses with odd strides. The last row ends at the end of its allocation. */
TEST(accepts_rows_at_any_address) {
    for (size_t i = 0; i < test_filter_count(); i++) {
        const gf_filter *filter = gf_filter_at(i);
        const gf_filter_info *info = gf_filter_describe(filter);
        for (int type = GF_U8; type <= GF_F32; type++) {
            const gf_format format = {7, 5, 3, (gf_type)type, false};
            const size_t row = gf_row_bytes(&format), odd = row + 3;
            AUTO(free) unsigned char *even = malloc(5 * row), *drawn = malloc(5 * row);
            AUTO(free)
            unsigned char *uneven = malloc(1 + 4 * odd + row), *other = malloc(1 + 4 * odd + row);
            AUTO(settings) gf_settings *settings = test_settings(filter, info->cases[0]);
            AUTO(engine) gf_engine *engine = open_engine();
            gf_result *results[2];
            gf_format out;
            assert_ok(test_filter_output(filter, settings, &format, &out));
            for (size_t b = 0; b < 5 * row; b++)
                even[b] = (unsigned char)(b * 37 % 61);
            for (size_t y = 0; y < 5; y++)
                memcpy(uneven + 1 + y * odd, even + y * row, row);
            const gf_pixels packed[2] = {{even, row}, {even, row}};
            const gf_pixels padded[2] = {{uneven + 1, odd}, {uneven + 1, odd}};
            assert_ok(test_run_memory(&(test_memory){engine, filter, settings, &format, packed,
                                                     drawn, row, .result = &results[0]}));
            assert_ok(test_run_memory(&(test_memory){engine, filter, settings, &format, padded,
                                                     other + 1, odd, .result = &results[1]}));
            for (size_t y = 0; info->makes_image && y < out.height; y++)
                assert_memory_equal(drawn + y * row, other + 1 + y * odd, gf_row_bytes(&out));
            if (!info->makes_image)
                assert_true(test_same_result(results[0], results[1], info->name));
            gf_result_free(results[0]);
            gf_result_free(results[1]);
        }
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* Format all cells as text, and check the cells one row and one column past the end. */
static char *print_result(const gf_result *result) {
    char *text = NULL, cell[64];
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    for (size_t t = 0; t <= gf_result_table_count(result); t++) {
        const gf_table *table = gf_result_table(result, t);
        const uint64_t rows = table ? table->row_count : 0;
        const size_t columns = table ? table->column_count : 0;
        fprintf(to, "%s\n", table ? table->name : "end");
        for (uint64_t y = 0; y <= rows; y++)
            for (size_t x = 0; x <= columns; x++) {
                const gf_value value = gf_result_cell(result, t, y, x);
                if (y == rows || x == columns) {
                    assert_int_equal(value.type, GF_VALUE_TEXT);
                    assert_string_equal(value.text, "");
                }
                gf_value_format(&value, cell, sizeof cell);
                fprintf(to, "%s%c", cell, x == columns ? '\n' : ' ');
            }
    }
    fputs(gf_result_text(result), to);
    fclose(to);
    return text;
}

/* Results of every case remain valid after settings, engine and image are freed. */
TEST(results_outlive_settings_and_engine) {
    for (size_t i = 0; i < test_filter_count(); i++) {
        const gf_filter *filter = gf_filter_at(i);
        const gf_filter_info *info = gf_filter_describe(filter);
        for (const char *const *text = info->cases; !info->makes_image && *text; text++) {
            gf_settings *settings = test_settings(filter, *text);
            gf_engine *engine = open_engine();
            unsigned char *rows = malloc(32), *out = malloc(32 * 4);
            const gf_pixels own[2] = {{rows, 8}, {rows, 8}};
            gf_result *result;
            memcpy(rows, pixels, 32);
            if (test_run_memory(&(test_memory){engine, filter, settings, &grey, own, out, 32,
                                               .result = &result}) == GF_OK) {
                AUTO(free) char *before = print_result(result);
                gf_settings_free(settings);
                gf_engine_close(engine);
                free(rows);
                free(out);
                AUTO(free) char *after = print_result(result);
                assert_string_equal(after, before);
                gf_result_free(result);
                continue;
            }
            /* The case does not apply to this image. */
            gf_settings_free(settings);
            gf_engine_close(engine);
            free(rows);
            free(out);
        }
    }
}

TEST(returns_empty_cells_outside_tables) {
    AUTO(engine) gf_engine *engine = open_engine();
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("hist"), "bins=4");
    AUTO(result) gf_result *result;
    assert_ok(test_run_memory(
        &(test_memory){engine, gf_filter_find("hist"), settings, &grey, in, .result = &result}));
    const uint64_t far[] = {0, 99, UINT64_C(1) << 40, UINT64_MAX};
    for (size_t t = 0; t < 4; t++)
        for (size_t y = 0; y < 4; y++)
            for (size_t x = 0; x < 4; x++)
                if (t + y + x > 0)
                    assert_string_equal(
                        gf_result_cell(result, (size_t)far[t], far[y], (size_t)far[x]).text, "");
    assert_null(gf_result_table(result, 99));
    assert_null(gf_filter_at(SIZE_MAX));
    assert_null(gf_filter_find("none"));
}

/* ---- files and columns ----------------------------------------------------------------------- */

/* A saved image has the bytes of a run, and loads again; errors leave no file. */
TEST(saves_images) {
    const gf_format rgb = {2, 4, 3, GF_U8, false}; /* rows of 6 bytes, 8 bytes apart */
    const gf_pixels image = {pixels, 8};
    const char *out = in_directory("saved.png");
    gf_file_options options = {0};
    gf_format format;
    void *loaded;
    assert_ok(gf_save_file(out, &rgb, &image, NULL, &why));
    assert_ok(gf_load_file(out, NULL, &format, &loaded, NULL, &why));
    assert_true(format.width == 2 && format.height == 4 && format.channels == 3);
    for (size_t y = 0; y < 4; y++)
        assert_memory_equal((unsigned char *)loaded + 6 * y, pixels + 8 * y, 6);
    free(loaded);
    assert_error(gf_save_file(out, &rgb, &image, NULL, &why), GF_FAILED, "exists");
    options.force = true;
    assert_ok(gf_save_file(out, &rgb, &image, &options, &why));
    options.write.depth = GF_DEPTH_16;
    assert_ok(gf_save_file(out, &rgb, &image, &options, &why));
    assert_ok(gf_load_file(out, NULL, &format, &loaded, NULL, &why));
    assert_int_equal(format.type, GF_U16);
    for (size_t i = 0; i < 24; i++)
        assert_int_equal(((uint16_t *)loaded)[i], pixels[i / 6 * 8 + i % 6] * 257);
    free(loaded);
    assert_int_equal(gf_save_file(in_directory("a.xyz"), &rgb, &image, &options, &why), GF_USAGE);
    assert_int_equal(gf_save_file(in_directory("a.png"), &rgb, NULL, NULL, &why), GF_USAGE);
    assert_int_equal(gf_save_file(in_directory("a.png"), &rgb, &(gf_pixels){NULL, 8}, NULL, &why),
                     GF_USAGE);
    assert_error(gf_save_file(in_directory("a.png"), &rgb, &(gf_pixels){pixels, 5}, NULL, &why),
                 GF_USAGE, "smaller than a row");
    assert_int_equal(count_files(false), 1);
}

/* Columns equal their cells. */
TEST(returns_columns) {
    static const char *const filters[] = {"axis-sum", "hist", "dot", "compare"};
    AUTO(engine) gf_engine *engine = open_engine();
    for (size_t f = 0; f < 4; f++) {
        const gf_filter *filter = gf_filter_find(filters[f]);
        AUTO(settings) gf_settings *settings = test_settings(filter, "");
        AUTO(result) gf_result *result;
        assert_ok(test_run_memory(
            &(test_memory){engine, filter, settings, &grey, in, .result = &result}));
        for (size_t t = 0; t < gf_result_table_count(result); t++) {
            const gf_table *table = gf_result_table(result, t);
            AUTO(free)
            uint64_t *column = test_zeros(((size_t)table->row_count + 1) * sizeof *column);
            for (size_t c = 0; c < table->column_count; c++) {
                const gf_value_type type = table->columns[c].type;
                assert_true(gf_result_column(result, t, c, column));
                for (uint64_t y = 0; y < table->row_count; y++) {
                    const gf_value cell = gf_result_cell(result, t, y, c);
                    double real;
                    memcpy(&real, &column[y], sizeof real);
                    if (type == GF_VALUE_UINT)
                        assert_true(column[y] == cell.low);
                    else if (type == GF_VALUE_TEXT)
                        assert_true(((const char **)column)[y] == cell.text);
                    else
                        assert_true(cell.type == GF_VALUE_NONE ? real != real : real == cell.real);
                }
            }
            assert_false(gf_result_column(result, t, table->column_count, column));
        }
        assert_false(gf_result_column(result, gf_result_table_count(result), 0, NULL));
    }
}

int main(void) {
    return test_main_in_directory();
}
