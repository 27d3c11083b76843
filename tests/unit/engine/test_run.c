/* Complete runs: outputs that appear together, one memory budget, a file that is read twice. */
#include "io_util.h"
#include "pipe.h"
#include "testing.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/filter.h"
#include "engine/run/task.h"

static gf_engine *open_engine(uint64_t max_memory) {
    const gf_engine_options options = {.backend = "cpu", .threads = 2, .max_memory = max_memory};
    return test_engine(&options);
}

/* Write a grey picture. Each value depends on its position. */
static void put_picture(const char *name, unsigned width, unsigned height) {
    AUTO(free) unsigned char *file = test_alloc(64 + (size_t)width * height);
    const size_t head = (size_t)sprintf((char *)file, "P5 %u %u 255\n", width, height);
    for (size_t i = 0; i < (size_t)width * height; i++)
        file[head + i] = (unsigned char)(i * 7 + i / width);
    put_bytes(in_directory(name), file, head + (size_t)width * height);
}

/* Create settings of hist with these files in the test directory; NULL: not set. */
static gf_settings *hist_settings(const char *text, const char *samples, const char *mask) {
    gf_settings *settings = test_settings(gf_filter_find("hist"), text);
    if (samples)
        assert_ok(gf_settings_set(settings, "out", in_directory(samples), NULL));
    if (mask)
        assert_ok(gf_settings_set(settings, "mask", in_directory(mask), NULL));
    return settings;
}

static gf_status run_hist(const gf_settings *settings, uint64_t max_memory,
                          const gf_file_options *options, gf_result **result) {
    const char *const paths[1] = {in_directory("in.pgm")};
    AUTO(engine) gf_engine *engine = open_engine(max_memory);
    return test_run_files(&(test_files){engine, gf_filter_find("hist"), settings, paths, NULL,
                                        options, .result = result});
}

/* ---- all outputs or none --------------------------------------------------------------------- */

typedef struct ready_record {
    int calls;
    bool has_result;
    gf_status returned;
} ready_record;

/* All results are computed, and no output has its name. */
static gf_status on_ready(void *context, const gf_ready *ready, gf_error *error) {
    ready_record *record = context;
    const gf_result *result = ready->outcome->results[0];
    record->calls++;
    record->has_result = result != NULL;
    if (result)
        assert_int_equal(gf_result_cell(result, 0, 0, 0).low, 0);
    assert_int_equal(access(in_directory("new.csv"), F_OK), -1);
    assert_bytes(in_directory("old.png"), "old", 3);
    if (record->returned) {
        error->status = record->returned;
        (void)strcpy(error->message, "ready: not now");
    }
    return record->returned;
}

TEST(commits_outputs_after_ready) {
    ready_record record = {.returned = GF_FAILED};
    const gf_file_options options = {.force = true, .ready = on_ready, .ready_context = &record};
    gf_result *result;
    put_picture("in.pgm", 20, 10);
    put_bytes(in_directory("old.png"), "old", 3);
    AUTO(settings) gf_settings *settings = hist_settings("bins=4 extract=1", "new.csv", "old.png");
    assert_error(run_hist(settings, 0, &options, &result), GF_FAILED, "ready: not now");
    assert_null(result);
    assert_true(record.calls == 1 && record.has_result);
    assert_int_equal(access(in_directory("new.csv"), F_OK), -1);
    assert_bytes(in_directory("old.png"), "old", 3);
    assert_int_equal(count_files(false), 2);
    record = (ready_record){.returned = GF_OK};
    assert_ok(run_hist(settings, 0, &options, NULL));
    assert_true(record.calls == 1 && record.has_result);
    assert_int_equal(access(in_directory("new.csv"), F_OK), 0);
    size_t size;
    AUTO(free) char *png = (char *)test_bytes(in_directory("old.png"), &size);
    assert_memory_equal(png, "\x89PNG", 4);
    assert_int_equal(count_files(false), 3);
}

TEST(ready_has_no_result_for_images) {
    ready_record record = {.returned = GF_OK};
    const gf_file_options options = {.ready = on_ready, .ready_context = &record};
    const gf_filter *smooth = gf_filter_find("smooth");
    const char *const paths[1] = {in_directory("in.pgm")};
    AUTO(settings) gf_settings *settings = test_settings(smooth, "");
    AUTO(engine) gf_engine *engine = open_engine(0);
    put_picture("in.pgm", 20, 10);
    put_bytes(in_directory("old.png"), "old", 3);
    assert_ok(test_run_files(
        &(test_files){engine, smooth, settings, paths, in_directory("out.png"), &options}));
    assert_true(record.calls == 1 && !record.has_result);
    assert_int_equal(access(in_directory("out.png"), F_OK), 0);
}

/* Run in a child process with a file size limit of 4 KiB: one output fits, the other does not. */
static void run_limited(const char *text) {
    int how;
    put_bytes(in_directory("s.csv"), "old", 3);
    put_bytes(in_directory("m.pam"), "old", 3);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {4096, 4096};
        const gf_file_options options = {.force = true};
        gf_settings *settings = hist_settings(text, "s.csv", "m.pam");
        bool passed = signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                      run_hist(settings, 0, &options, NULL) == GF_FAILED &&
                      strstr(why.message, "File too large") != NULL;
        _exit(passed ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_bytes(in_directory("s.csv"), "old", 3);
    assert_bytes(in_directory("m.pam"), "old", 3);
    assert_int_equal(count_files(false), 3);
}

TEST(keeps_all_files_if_one_output_fails) {
    put_picture("in.pgm", 60, 60); /* the mask has 7200 bytes, one bin of 256 has few samples */
    run_limited("bins=256 extract=1");
    put_picture("in.pgm", 30, 30); /* the mask has 1800 bytes, all samples as text over 4096 */
    run_limited("bins=1 extract=0");
}

TEST(rejects_one_file_for_two_outputs) {
    const gf_file_options options = {.force = true, .write.format = "png"};
    put_picture("in.pgm", 20, 10);
    AUTO(settings) gf_settings *settings = hist_settings("bins=4 extract=1", "a.csv", "./a.csv");
    assert_error(run_hist(settings, 0, &options, NULL), GF_USAGE,
                 "/a.csv: another option or step already writes to it; name another file");
    assert_int_equal(count_files(false), 1);
}

/* ---- memory budget --------------------------------------------------------------------------- */

/* Run normalize on a file, or on a pipe. */
static gf_status normalize(bool piped, uint64_t max_memory) {
    const char *const path = in_directory(piped ? "pipe" : "in.pgm");
    const gf_filter *filter = gf_filter_find("normalize");
    const gf_file_options options = {.force = true};
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    AUTO(engine) gf_engine *engine = open_engine(max_memory);
    test_feeder *feeder = piped ? test_feed_file(path, in_directory("in.pgm"), 0) : NULL;
    gf_status status = test_run_files(
        &(test_files){engine, filter, settings, &path, in_directory("out.pgm"), &options});
    if (piped)
        test_feed_end(feeder);
    return status;
}

/* A pipe of 1000 x 1000 bytes is held in memory. Strips are parts of it, and need no ring. */
TEST(held_images_count_against_memory) {
    put_picture("in.pgm", 1000, 1000);
    assert_ok(normalize(false, 200000));
    assert_error(normalize(true, 999999), GF_FAILED,
                 "1000000 bytes for an image from a pipe that is read twice");
    assert_message(&why, "--max-memory");
    assert_error(normalize(true, 1000100), GF_FAILED,
                 "for the result are over the limit of 100; raise it with --max-memory");
    assert_ok(normalize(true, 1009000));
}

/* A PNG of 6,000,000 bytes that two threads decode, with 14 MB of memory if there is enough. */
TEST(decoding_threads_need_no_memory) {
    const gf_format format = {3000, 2000, 1, GF_U8, false};
    const gf_limits limits = {.threads = 2};
    AUTO(free) unsigned char *pixels = test_alloc(3000 * 2000);
    test_random random = {1};
    for (size_t i = 0; i < 3000 * 2000; i++)
        pixels[i] = (unsigned char)test_below(&random, 256);
    assert_ok(save_image(in_directory("in.png"), &format, pixels, NULL, NULL, 100));
    gf_source *source = open_source(in_directory("in.png"), &limits);
    assert_int_equal(source->threads, 2);
    assert_in_range(source->memory, 10000000, 20000000);
    source->ops->close(source);
    assert_int_equal(rename(in_directory("in.png"), in_directory("in.pgm")), 0);
    for (uint64_t memory = 7000000; memory < 60000000; memory += 3000000)
        for (int piped = 0; piped < 2; piped++)
            if (normalize(piped != 0, memory) != GF_OK)
                fail_msg("%lu bytes: %s", (unsigned long)memory, why.message);
}

/* 10000 samples of 9 bytes each. */
TEST(held_samples_get_half_of_the_rest) {
    static const char held[] = "are kept in memory until the end";
    const gf_file_options options = {.force = true};
    put_picture("in.pgm", 100, 100);
    AUTO(settings) gf_settings *several = hist_settings("bins=2 extract=all", "s.csv", NULL);
    assert_error(run_hist(several, 150000, &options, NULL), GF_FAILED, held);
    assert_message(&why, "--max-memory");
    assert_ok(run_hist(several, 400000, &options, NULL));
    AUTO(settings) gf_settings *one = hist_settings("bins=1 extract=0", "s.csv", NULL);
    assert_ok(run_hist(one, 150000, &options, NULL));
}

/* Runs in memory also hold all samples of a bin. */
TEST(holds_samples_of_images_in_memory) {
    const gf_format format = {100, 100, 1, GF_U8, false};
    const gf_filter *hist = gf_filter_find("hist");
    AUTO(settings) gf_settings *settings = hist_settings("bins=1 extract=0", "s.csv", NULL);
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    const gf_pixels in = {pixels, 100};
    gf_engine *engine = open_engine(150000);
    assert_error(test_run_memory(&(test_memory){engine, hist, settings, &format, &in}), GF_FAILED,
                 "are kept in memory until the end");
    gf_engine_close(engine);
    engine = open_engine(600000);
    assert_ok(test_run_memory(&(test_memory){engine, hist, settings, &format, &in}));
    gf_engine_close(engine);
}

/* ---- files that are read twice --------------------------------------------------------------- */

/* Run the measurement of normalize on a file that changes after it was opened. */
static gf_status measure_changed(void (*change)(void)) {
    const gf_filter *filter = gf_filter_find("normalize");
    AUTO(engine) gf_engine *engine = open_engine(0);
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    gf_made made;
    const char *path = in_directory("in.pgm");
    const gf_step steps[] = {{.filter = filter, .settings = settings}, {.out_path = "out.pgm"}};
    const gf_job job = {.steps = steps, .step_count = 2, .in_path = path};
    gf_chain chain;
    assert_ok(gf_chain_open_files(&job, &chain, NULL));
    gf_task task = gf_task_begin(engine, &chain, &made);
    put_picture("in.pgm", 20, 10);
    assert_ok(gf_task_open_files(&task, &why));
    assert_true(task.inputs.stats[0].st_mode);
    change();
    gf_status status = gf_task_refine(&task, &why);
    gf_task_end(&task);
    return status;
}

static void keep(void) {}

static void replace(void) {
    struct stat info;
    assert_int_equal(stat(in_directory("in.pgm"), &info), 0);
    put_picture("other.pgm", 20, 10);
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, in_directory("other.pgm"), times, 0), 0);
    assert_int_equal(rename(in_directory("other.pgm"), in_directory("in.pgm")), 0);
}

static void touch(void) {
    const struct timespec times[2] = {{1, 5}, {1, 5}};
    assert_int_equal(utimensat(AT_FDCWD, in_directory("in.pgm"), times, 0), 0);
}

/* Change the time within the same second. */
static void touch_within_a_second(void) {
    struct stat info;
    assert_int_equal(stat(in_directory("in.pgm"), &info), 0);
    const long other = info.st_mtim.tv_nsec == 0 ? 1 : info.st_mtim.tv_nsec - 1;
    const struct timespec times[2] = {info.st_atim, {info.st_mtim.tv_sec, other}};
    assert_int_equal(utimensat(AT_FDCWD, in_directory("in.pgm"), times, 0), 0);
}

static void append_byte(void) {
    struct stat info;
    assert_int_equal(stat(in_directory("in.pgm"), &info), 0);
    FILE *file = fopen(in_directory("in.pgm"), "ab");
    assert_non_null(file);
    fputc(0, file);
    fclose(file);
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, in_directory("in.pgm"), times, 0), 0);
}

TEST(detects_changed_files) {
    static void (*const changes[])(void) = {replace, touch, touch_within_a_second, append_byte};
    assert_ok(measure_changed(keep));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        assert_error(measure_changed(changes[i]), GF_FAILED,
                     "/in.pgm: changed while it was read; run again");
}

/* An output that cannot be written is rejected before the image is read. */
TEST(checks_the_output_before_measuring) {
    const gf_format format = {20, 10, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    /* A truncated PNG: opening it does not detect the damage. */
    const gf_file_options png = {.write.format = "png"};
    assert_ok(save_image(in_directory("in.pgm"), &format, pixels, NULL, &png, 1));
    assert_int_equal(truncate(in_directory("in.pgm"), 100), 0);
    assert_int_equal(mkdir(in_directory("out.pgm"), 0700), 0);
    assert_error(normalize(false, 0), GF_FAILED, "/out.pgm: is a directory");
    assert_int_equal(rmdir(in_directory("out.pgm")), 0);
    assert_error(normalize(false, 0), GF_FAILED, "/in.pgm: ");
    assert_int_equal(count_files(false), 1);
}

/* ---- dry runs -------------------------------------------------------------------------------- */

/* A dry run opens and rejects the same files as a run, and writes none. */
/* ---- premultiplied alpha --------------------------------------------------------------------- */

/* Filter in.png into a file of this name; load it. The caller frees the rows. */
static void *filter_file(const char *backend, const char *text, const char *out,
                         gf_file_options options, gf_format *format) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = backend, .threads = 2});
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    const char *in = in_directory("in.png");
    void *pixels;
    options.force = true;
    assert_ok(
        test_run_files(&(test_files){engine, filter, settings, &in, in_directory(out), &options}));
    assert_ok(gf_load_file(in_directory(out), NULL, format, &pixels, NULL, &why));
    return pixels;
}

/* The definition of docs/numerics.md, on the array of one image. */
static void *premultiplied(const char *text, const gf_format *format, const uint8_t *pixels) {
    const uint64_t n = format->width * format->height;
    const gf_format data = {format->width, format->height, 4, GF_F32, false};
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "golden"});
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    float *in = malloc(n * 16), *out = malloc(n * 16);
    assert_true(in && out);
    for (uint64_t i = 0; i < n * 4; i++) {
        in[i] = (float)pixels[i] / 255.0f;
        if (i % 4 != 3)
            in[i] *= (float)pixels[i | 3] / 255.0f;
    }
    assert_ok(test_run_memory(&(test_memory){engine, filter, settings, &data,
                                             &(gf_pixels){in, gf_row_bytes(&data)}, out,
                                             gf_row_bytes(&data)}));
    for (uint64_t i = 0; i < n * 4; i += 4) {
        const float a = out[i + 3] < 1 ? out[i + 3] : 1;
        for (size_t c = 0; c < 3; c++)
            out[i + c] = a > 0 ? out[i + c] / a : 0;
        out[i + 3] = a;
    }
    free(in);
    return out;
}

TEST(weighs_colours_by_alpha) {
    static const char *const backends[] = {"golden", "cpu"};
    static const char *const cases[] = {"keep-brightness axis=xy", "radius=7", "gain=0.5 axis=y"};
    const gf_format format = {61, 37, 4, GF_U8, true};
    uint8_t pixels[61 * 37 * 4];
    test_random random = test_seeded(7);
    gf_format got;
    for (size_t i = 0; i < sizeof pixels; i++) { /* transparent, opaque and other pixels */
        const size_t x = i / 4 % 61;
        const uint64_t alpha = x < 20 ? 0u : x < 40 ? 255u : test_below(&random, 256);
        pixels[i] = (uint8_t)(i % 4 == 3 ? alpha : test_below(&random, 256));
    }
    assert_ok(gf_save_file(in_directory("in.png"), &format,
                           &(gf_pixels){pixels, gf_row_bytes(&format)},
                           &(gf_file_options){.force = true}, &why));
    for (size_t k = 0; k < 3; k++) {
        AUTO(free) float *want = premultiplied(cases[k], &format, pixels);
        for (int b = 0; b < 2; b++) {
            const gf_file_options on = {.premultiply = GF_PREMULTIPLY_ON,
                                        .write.depth = GF_DEPTH_F32};
            AUTO(free) float *real = filter_file(backends[b], cases[k], "out.tif", on, &got);
            assert_true(gf_has_alpha(&got) && got.type == GF_F32);
            assert_memory_equal(real, want, sizeof pixels * sizeof *real);
            AUTO(free)
            uint8_t *codes = filter_file(backends[b], cases[k], "out.png",
                                         (gf_file_options){.premultiply = GF_PREMULTIPLY_ON}, &got);
            assert_true(gf_has_alpha(&got) && got.type == GF_U8);
            for (size_t i = 0; i < sizeof pixels; i++) {
                const double v = want[i] > 0 ? want[i] < 1 ? (double)want[i] : 1 : 0;
                assert_int_equal(codes[i], (int)rint(v * 255));
            }
        }
    }
}

/* A green square on transparent red: no red appears at its edge; without --premultiply it does. */
TEST(transparent_colours_do_not_spread) {
    const gf_format format = {40, 1, 4, GF_U8, true};
    uint8_t pixels[40 * 4];
    gf_format got;
    for (size_t x = 0; x < 40; x++)
        memcpy(pixels + 4 * x, x < 20 ? (uint8_t[]){255, 0, 0, 0} : (uint8_t[]){0, 200, 0, 255}, 4);
    assert_ok(gf_save_file(in_directory("in.png"), &format,
                           &(gf_pixels){pixels, gf_row_bytes(&format)},
                           &(gf_file_options){.force = true}, NULL));
    for (int on = 0; on < 2; on++) {
        AUTO(free)
        uint8_t *out = filter_file("cpu", "keep-brightness", "out.png",
                                   (gf_file_options){.premultiply = (gf_premultiply)on}, &got);
        assert_int_equal(out[4 * 20] == 0, on);
        assert_int_equal(out[4 * 20 + 1] == 200, on);
        assert_int_equal(out[4 * 20 + 3] == 255, !on);
    }
}

/* Normalizing does not mix pixels, and associated alpha is premultiplied already. */
TEST(refuses_to_premultiply) {
    const gf_file_options on = {.premultiply = GF_PREMULTIPLY_ON, .force = true};
    const char *const paths[1] = {in_directory("in.png")};
    const gf_filter *filter = gf_filter_find("normalize");
    AUTO(engine) gf_engine *engine = open_engine(0);
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    assert_int_equal(
        test_run_files(&(test_files){engine, filter, settings, paths, in_directory("n.png"), &on}),
        GF_USAGE);
    assert_string_equal(why.message, "--premultiply: normalize does not mix the colours of pixels");
}

TEST(dry_run_writes_nothing) {
    ready_record record = {.returned = GF_OK};
    gf_file_options options = {.dry_run = true, .ready = on_ready, .ready_context = &record};
    gf_result *result;
    put_picture("in.pgm", 20, 10);
    put_bytes(in_directory("old.png"), "old", 3);
    gf_settings *settings = hist_settings("bins=4 extract=1", "new.csv", "old.png");
    assert_error(run_hist(settings, 0, &options, &result), GF_FAILED, "old.png: already exists");
    options.force = true;
    assert_ok(run_hist(settings, 0, &options, &result));
    assert_null(result);
    assert_int_equal(record.calls, 0);
    assert_bytes(in_directory("old.png"), "old", 3);
    assert_int_equal(count_files(false), 2);
    gf_settings_free(settings);
    settings = hist_settings("bins=4 extract=1", "none/new.csv", "old.png");
    assert_error(run_hist(settings, 0, &options, &result), GF_FAILED,
                 "its directory does not exist");
    gf_settings_free(settings);
    assert_int_equal(truncate(in_directory("in.pgm"), 4), 0);
    settings = hist_settings("bins=4", NULL, NULL);
    assert_error(run_hist(settings, 0, &options, &result), GF_FAILED, "in.pgm");
    const test_batch_options batch = {.files = options};
    assert_error(test_run_batch(gf_filter_find("hist"), settings, NULL, 0, &batch), GF_USAGE,
                 "hist: a batch does not support dry runs");
    gf_settings_free(settings);
    assert_int_equal(count_files(false), 2);
}

int main(void) {
    return test_main_in_directory();
}
