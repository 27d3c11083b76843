/* Progress reports, and the numbers of bytes read and written. */
#include "io_util.h"
#include "pipe.h"
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define WIDTH 64
#define HEIGHT 40
#define STRIP 4

static gf_engine *open_engine(const char *backend, bool unthreaded) {
    const gf_engine_options options = {
        .backend = backend, .threads = 2, .rows_per_strip = STRIP, .unthreaded = unthreaded};
    return test_engine(&options);
}

/* Write a colour picture in the format of the name's extension. */
static void put_picture(const char *name) {
    const gf_format format = {WIDTH, HEIGHT, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    const gf_file_options options = {.force = true};
    assert_ok(save_image(in_directory(name), &format, pixels, NULL, &options, 1));
}

static uint64_t file_size(const char *name) {
    struct stat info;
    assert_int_equal(stat(in_directory(name), &info), 0);
    return (uint64_t)info.st_size;
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct received {
    pthread_t thread;
    uint64_t calls, done, total;
} received;

static bool receive(void *context, const gf_progress *progress) {
    received *so_far = context;
    assert_true(pthread_equal(pthread_self(), so_far->thread));
    assert_int_equal(progress->in.width, WIDTH);
    assert_int_equal(progress->in.height, HEIGHT);
    assert_int_equal(progress->in.channels, 3);
    assert_true(progress->done > so_far->done);
    assert_true(progress->done <= progress->total);
    so_far->done = progress->done;
    so_far->total = progress->total;
    so_far->calls++;
    return true;
}

static received run(const char *backend, bool unthreaded, const char *name, const char *in) {
    const gf_filter *filter = gf_filter_find(name);
    const gf_filter_info *info = gf_filter_describe(filter);
    const bool image = info->makes_image;
    AUTO(settings) gf_settings *settings = test_settings(filter, info->cases[0]);
    AUTO(engine) gf_engine *engine = open_engine(backend, unthreaded);
    const char *paths[2] = {in_directory(in), in_directory(in)};
    received all = {.thread = pthread_self()};
    const gf_file_options options = {.progress = receive, .progress_context = &all, .force = true};
    AUTO(result) gf_result *result = NULL;
    assert_ok(test_run_files(&(test_files){engine, filter, settings, paths,
                                           image ? in_directory("out.ppm") : NULL, &options,
                                           .result = &result}));
    return all;
}

/* Every strip is reported in order, in the caller's thread. A filter that reads its image twice
 * reports both passes. */
TEST(reports_every_strip) {
    put_picture("in.ppm");
    put_picture("in.png");
    for (size_t i = 0; i < test_filter_count(); i++) {
        const char *name = gf_filter_describe(gf_filter_at(i))->name;
        const uint64_t times = strcmp(name, "normalize") == 0 ? 2 : 1;
        for (int variant = 0; variant < 4; variant++) {
            const received all = run("cpu", variant & 1, name, variant & 2 ? "in.png" : "in.ppm");
            assert_int_equal(all.calls, times * HEIGHT / STRIP);
            assert_int_equal(all.done, times * HEIGHT);
            assert_int_equal(all.total, times * HEIGHT);
        }
    }
}

/* Golden processes the image as one strip. */
TEST(reports_a_whole_image) {
    put_picture("in.ppm");
    const received all = run("golden", false, "smooth", "in.ppm");
    assert_true(all.calls >= 1);
    assert_int_equal(all.done, HEIGHT);
    assert_int_equal(all.total, HEIGHT);
}

/* ---- batches --------------------------------------------------------------------------------- */

#define ITEMS 6

typedef struct received_items {
    atomic_uint_least64_t done[ITEMS], total[ITEMS];
} received_items;

static bool receive_item(void *context, const gf_progress *progress) {
    received_items *all = context;
    assert_true(progress->item < ITEMS);
    assert_true(progress->done > all->done[progress->item]);
    all->done[progress->item] = progress->done;
    all->total[progress->item] = progress->total;
    return true;
}

TEST(reports_the_item) {
    test_item items[ITEMS];
    static received_items all;
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    const test_batch_options options = {
        .engine = {.backend = "cpu", .threads = 3, .rows_per_strip = STRIP},
        .files = {.progress = receive_item, .progress_context = &all, .force = true}};
    put_picture("in.ppm");
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = (test_item){.in = in_directory("in.ppm"), .out = test_path("%zu.ppm", i)};
    assert_ok(test_run_batch(filter, settings, items, ITEMS, &options));
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(all.done[i], HEIGHT);
        assert_int_equal(all.total[i], HEIGHT);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef struct counted_bytes {
    uint64_t in_bytes, out_bytes;
} counted_bytes;

/* Return the bytes read and written. */
static counted_bytes run_bytes(const char *filter_name, const char *in, const char *second,
                               const char *out, const char *samples) {
    const gf_filter *filter = gf_filter_find(filter_name);
    AUTO(settings) gf_settings *settings = test_settings(filter, samples ? "bins=2 extract=1" : "");
    AUTO(engine) gf_engine *engine = open_engine("cpu", false);
    const char *const names[2] = {in_directory(in), in_directory(second ? second : in)};
    /* The sandbox blocks memory checkers, see tests/long/valgrind.sh. */
    const gf_file_options options = {.force = true, .no_sandbox = getenv("GF_TEST_NO_SANDBOX")};
    AUTO(result) gf_result *result = NULL;
    gf_report report;
    gf_step_report output;
    if (samples)
        assert_ok(gf_settings_set(settings, "out", in_directory(samples), NULL));
    assert_ok(test_run_files(
        &(test_files){engine, filter, settings, names, out ? in_directory(out) : NULL, &options,
                      .result = &result, .report = &report, .output = &output}));
    return (counted_bytes){report.in_bytes, output.out_bytes};
}

TEST(counts_the_bytes_of_files) {
    static const char *const inputs[] = {"in.ppm", "in.png", "in.jpg", "in.bmp", "in.tga"};
    static const char *const outputs[] = {"o.png", "o.ppm", "o.pam", "o.raw", "o.jpg", "o.bmp"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        put_picture(inputs[i]);
        for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) {
            const counted_bytes report = run_bytes("smooth", inputs[i], NULL, outputs[k], NULL);
            assert_int_equal(report.in_bytes, file_size(inputs[i]));
            assert_int_equal(report.out_bytes, file_size(outputs[k]));
        }
    }
}

TEST(counts_all_inputs_and_samples) {
    put_picture("in.ppm");
    put_picture("in.png");
    counted_bytes report = run_bytes("dot", "in.ppm", "in.png", NULL, NULL);
    assert_int_equal(report.in_bytes, file_size("in.ppm") + file_size("in.png"));
    assert_int_equal(report.out_bytes, 0);
    report = run_bytes("hist", "in.png", NULL, NULL, "s.csv");
    assert_int_equal(report.in_bytes, file_size("in.png"));
    assert_int_equal(report.out_bytes, file_size("s.csv"));
    assert_true(report.out_bytes > 0);
}

/* normalize holds an image from a pipe in memory. */
TEST(counts_the_bytes_of_a_pipe) {
    static const char *const names[] = {"smooth", "normalize"};
    static const char *const kinds[] = {"in.ppm", "in.png", "in.jpg"};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 3; k++) {
            put_picture(kinds[k]);
            test_feeder *feeder = test_feed_file(in_directory("pipe"), in_directory(kinds[k]), 0);
            const counted_bytes report = run_bytes(names[i], "pipe", NULL, "o.ppm", NULL);
            assert_int_equal(report.in_bytes, file_size(kinds[k]));
            test_feed_end(feeder);
        }
}

TEST(counts_no_bytes_in_memory) {
    const gf_filter *filter = gf_filter_find("smooth");
    const gf_format format = {WIDTH, HEIGHT, 1, GF_U8, false};
    AUTO(free) unsigned char *in = random_pixels(&format, 1), *out = random_pixels(&format, 2);
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    AUTO(engine) gf_engine *engine = open_engine("cpu", false);
    gf_report report;
    gf_step_report output;
    assert_ok(
        test_run_memory(&(test_memory){engine, filter, settings, &format, &(gf_pixels){in, WIDTH},
                                       out, WIDTH, .report = &report, .output = &output}));
    assert_int_equal(report.in_bytes, 0);
    assert_int_equal(output.out_bytes, 0);
}

int main(void) {
    return test_main_in_directory();
}
