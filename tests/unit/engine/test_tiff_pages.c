/* Files with several pages: each page of the output is what a run for this page alone produces. */
#include "io_util.h"
#include "tiff_file.h"

enum { MAX_PAGES = 5 };

/* ---- all pages ------------------------------------------------------------------------------- */

typedef struct run_case {
    gf_engine *engine;
    const gf_filter *filter;
    gf_settings *settings;
    gf_file_options options;
} run_case;

typedef struct test_made {
    gf_report report;
    gf_step_report output;
} test_made;

static test_made run(const run_case *c, uint32_t page, const char *out) {
    const char *in = in_directory("in.tif");
    gf_file_options options = c->options;
    test_made made;
    options.page = page;
    options.no_sandbox = true; /* all codecs */
    if (test_run_files(&(test_files){c->engine, c->filter, c->settings, &in, in_directory(out),
                                     &options, .report = &made.report, .output = &made.output}))
        fail_msg("page %u: %s", (unsigned)page, why.message);
    return made;
}

/* Compare a page of all.tif, as libtiff and as our reader read it, with the image in one.tif. */
static void check_page(uint32_t page) {
    gf_format expected, found, stored = {0};
    AUTO(free) void *a, *b;
    assert_ok(gf_load_file(in_directory("one.tif"), NULL, &expected, &a, NULL, &why));
    assert_ok(gf_load_file(in_directory("all.tif"), &(gf_file_options){.page = page}, &found, &b,
                           NULL, &why));
    AUTO(free)
    unsigned char *reference = tiff_reference(in_directory("all.tif"), page - 1, &stored);
    const size_t size = gf_row_bytes(&expected) * (size_t)expected.height;
    assert_non_null(reference);
    assert_true(gf_format_equal(&expected, &found) && gf_format_equal(&expected, &stored));
    assert_memory_equal(a, b, size);
    assert_memory_equal(a, reference, size);
}

TEST(writes_every_page) {
    static const char *const filters[] = {"smooth", "normalize"};
    static const char *const codecs[] = {"deflate", "none", "lzw"};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        test_random random = test_seeded(seed);
        tiff_spec pages[MAX_PAGES];
        uint32_t count = 1 + (uint32_t)test_below(&random, MAX_PAGES), counted = 0;
        bool float_sums = false;
        for (uint32_t i = 0; i < count; i++) {
            pages[i] = tiff_random(&random, 70);
            pages[i].big = pages[0].big;
            pages[i].big_endian = pages[0].big_endian;
            /* A thumbnail is not a page. */
            pages[i].subfile = i && test_below(&random, 4) == 0 ? FILETYPE_REDUCEDIMAGE : 0;
            counted += !pages[i].subfile;
            float_sums = float_sums || pages[i].bits == 32;
        }
        assert_true(tiff_write(in_directory("in.tif"), pages, count, &random));
        const gf_filter *filter = gf_filter_find(filters[!float_sums && seed % 2]);
        const bool reduces = test_below(&random, 3) == 0;
        run_case c = {.filter = filter,
                      .settings = test_settings(filter, ""),
                      .engine = test_engine(
                          &(gf_engine_options){.backend = "cpu",
                                               .threads = 1 + (uint32_t)test_below(&random, 3),
                                               .verify = test_below(&random, 2)}),
                      .options = {.force = true,
                                  .write.depth = reduces ? GF_DEPTH_8 : GF_DEPTH_INPUT,
                                  .write.tiff_compression = codecs[test_below(&random, 3)]}};
        test_made sum = {.output = {.clipped = 0}};
        const test_made all = run(&c, GF_ALL_PAGES, "all.tif");
        for (uint32_t page = 1; page <= counted; page++) {
            const test_made one = run(&c, page, "one.tif");
            sum.report.pixels += one.report.pixels;
            sum.output.counted += one.output.counted;
            sum.output.clipped += one.output.clipped;
            sum.report.strips += one.report.strips;
            sum.output.dropped |= one.output.dropped;
            assert_true(page > 1 || gf_format_equal(&all.report.in, &one.report.in));
            check_page(page);
        }
        assert_int_equal(all.report.pages, counted);
        assert_int_equal(all.report.pixels, sum.report.pixels);
        assert_int_equal(all.output.counted, sum.output.counted);
        assert_int_equal(all.output.clipped, sum.output.clipped);
        assert_int_equal(all.report.strips, sum.report.strips);
        assert_int_equal(all.output.dropped, sum.output.dropped);
        gf_file_info info;
        assert_int_equal(gf_inspect_file(in_directory("all.tif"),
                                         &(gf_file_options){.page = counted + 1}, &info, NULL),
                         GF_FAILED);
        gf_settings_free(c.settings);
        gf_engine_close(c.engine);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void write_pages(uint32_t count) {
    test_random random = test_seeded(count);
    tiff_spec pages[MAX_PAGES];
    for (uint32_t i = 0; i < count; i++)
        pages[i] = tiff_small_grey(20 + i, 0);
    assert_true(tiff_write(in_directory("in.tif"), pages, count, &random));
}

static gf_status try_filter(const char *name, const char *out) {
    const char *in[] = {in_directory("in.tif"), in_directory("in.tif")};
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu", .threads = 1});
    const gf_filter *filter = gf_filter_find(name);
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    const gf_file_options options = {.page = GF_ALL_PAGES};
    AUTO(result) gf_result *result = NULL;
    return test_run_files(&(test_files){
        engine, filter, settings, in, out ? in_directory(out) : NULL, &options, .result = &result});
}

TEST(refuses_what_loses_pages) {
    gf_file_info info;
    gf_format format;
    void *pixels;
    write_pages(3);
    assert_error(try_filter("smooth", "x.png"), GF_USAGE,
                 "the input has 3 pages, and this format holds one image");
    assert_int_equal(access(in_directory("x.png"), F_OK), -1);
    assert_error(try_filter("hist", NULL), GF_FAILED,
                 "page 2 has another size or type than those before, and --page all "
                 "measures them together; choose a page with --page N");
    assert_error(try_filter("compare", NULL), GF_USAGE,
                 "--page all: compare has two inputs; choose a page with --page N");
    const gf_file_options all = {.page = GF_ALL_PAGES};
    const gf_step steps[] = {{.filter = gf_filter_find("median")},
                             {.filter = gf_filter_find("hist")}};
    const char *in = in_directory("in.tif");
    const gf_job job = {.steps = steps, .step_count = 2, .in_path = in, .options = &all};
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu"});
    assert_error(gf_run(engine, &job, NULL, &why), GF_USAGE,
                 "--page all: the pages of a pipeline that changes or writes the image are not "
                 "measured; choose one with --page N");
    assert_int_equal(gf_inspect_file(in_directory("in.tif"), &all, &info, &why), GF_USAGE);
    assert_error(gf_load_file(in_directory("in.tif"), &all, &format, &pixels, NULL, &why), GF_USAGE,
                 "--page all: only filters read all pages");
    write_pages(1); /* nothing is lost */
    assert_ok(try_filter("smooth", "x.png"));
}

/* Measure a page with a filter; 0: all. Return the cells of the first column of numbers. */
static uint64_t *measure(const char *backend, const char *name, uint32_t page, size_t column,
                         uint64_t *rows) {
    const char *in[] = {in_directory("in.tif")};
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){
        .backend = backend, .threads = 2, .rows_per_strip = 3, .verify = true});
    const gf_filter *filter = gf_filter_find(name);
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    const gf_file_options options = {.page = page ? page : GF_ALL_PAGES};
    AUTO(result) gf_result *result = NULL;
    gf_report report;
    assert_ok(test_run_files(&(test_files){engine, filter, settings, in, NULL, &options,
                                           .result = &result, .report = &report}));
    assert_int_equal(report.pages, 3);
    *rows = gf_result_table(result, 0)->row_count;
    uint64_t *cells = malloc(*rows * sizeof *cells);
    assert_true(gf_result_column(result, 0, column, cells));
    return cells;
}

/* All pages are measured as one image: counts are sums, and the rows of a page follow those of the
 * page before. */
TEST(measures_all_pages) {
    static const char *const backends[] = {"golden", "cpu"};
    const tiff_spec pages[] = {tiff_small_grey(9, 0), tiff_small_grey(9, 0), tiff_small_grey(9, 0)};
    test_random random = test_seeded(3);
    assert_true(tiff_write(in_directory("in.tif"), pages, 3, &random));
    for (size_t b = 0; b < 2; b++) {
        uint64_t rows, part, sum[256] = {0};
        AUTO(free) uint64_t *all = measure(backends[b], "hist", 0, 3, &rows);
        AUTO(free) uint64_t *sums = measure(backends[b], "axis-sum", 0, 1, &part);
        assert_int_equal(part, 3 * 5);
        for (uint32_t page = 1; page <= 3; page++) {
            uint64_t *one = measure(backends[b], "hist", page, 3, &part);
            for (uint64_t i = 0; i < part; i++)
                sum[i] += one[i];
            free(one);
            one = measure(backends[b], "axis-sum", page, 1, &part);
            assert_memory_equal(one, sums + (page - 1) * 5, part * sizeof *one);
            free(one);
        }
        assert_memory_equal(all, sum, rows * sizeof *all);
    }
}

/* A damaged page leaves no output. */
TEST(reports_a_damaged_page) {
    size_t size;
    write_pages(2);
    AUTO(free) unsigned char *data = test_bytes(in_directory("in.tif"), &size);
    const uint32_t first = data[4] | (uint32_t)data[5] << 8;
    const uint32_t second = first + 2 + 12u * data[first];
    const uint32_t directory = data[second] | (uint32_t)data[second + 1] << 8;
    data[directory + 3] = 0; /* tag 256, the width, becomes 0 */
    put_bytes(in_directory("in.tif"), data, size);
    assert_error(try_filter("smooth", "damaged.tif"), GF_FAILED, "in.tif: ");
    assert_int_equal(access(in_directory("damaged.tif"), F_OK), -1);
}

int main(void) {
    TIFFSetWarningHandler(tiff_silent);
    return test_main_in_directory();
}
