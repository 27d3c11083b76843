/* One image in ranges of rows: the same bytes and numbers as in one run, for any cut. Partial
 * results are rejected if they are damaged, or belong to other work or to changed files. */
#include "gpufilter_tools.h"
#include "io_util.h"
#include "job.h"

#include "faulty_backend.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { MAX_RANGES = 5 };

/* Input files, a filter, and the output files of one run. */
typedef struct work {
    const gf_filter *filter;
    gf_settings *settings;
    char in[2][1200], image[1200], samples[1200];
    const char *in_paths[2];
} work;

static void path_of(char path[1200], const char *stem, const char *extension) {
    snprintf(path, 1200, "%s/%s.%s", test_directory, stem, extension);
}

/* Replace the file names "-" of a case by real ones. */
static void name_files(work *job, const char *stem, const char *image, const char *samples) {
    const gf_filter_info *info = gf_filter_describe(job->filter);
    path_of(job->image, stem, image);
    path_of(job->samples, stem, samples);
    for (size_t i = 0; i < info->param_count; i++) {
        const gf_param *param = &info->params[i];
        const char *name = param->type == GF_PARAM_IMAGE     ? job->image
                           : param->type == GF_PARAM_SAMPLES ? job->samples
                                                             : NULL;
        if (name && gf_settings_given(job->settings, param->name))
            assert_ok(gf_settings_set(job->settings, param->name, name, NULL));
    }
}

static const char *drawn_path(const work *job) {
    return gf_filter_describe(job->filter)->makes_image ? job->image : NULL;
}

/* Return the job of a filter on the inputs of a work. steps: two. */
static gf_job job_of(const work *job, const gf_filter *filter, const gf_settings *settings,
                     const gf_file_options *options, gf_step *steps) {
    gf_job made = test_job_of(filter, settings, steps);
    made.in_path = job->in_paths[0];
    made.options = options;
    steps[0].in_path = filter->info.inputs > 1 ? job->in_paths[1] : NULL;
    if (made.step_count > 1)
        steps[1].out_path = job->image;
    return made;
}

/* Serialize and deserialize a partial result, as for a message between processes. */
static gf_partial *serialize(const gf_job *job, gf_partial *partial) {
    const size_t size = gf_partial_size(partial);
    AUTO(free) unsigned char *bytes = test_alloc(size);
    gf_partial *read;
    gf_partial_write(partial, bytes);
    gf_partial_free(partial);
    assert_ok(gf_partial_read(job, bytes, size, &read, &why));
    return read;
}

/* Run a job in `ranges` ranges, each in an engine of its own, and merge the results. */
static gf_status run_ranges(const gf_job *job, const gf_partial *before, const gf_rows_file *file,
                            uint64_t height, uint32_t ranges, const gf_engine_options *engines,
                            gf_partial **all, gf_report *report) {
    gf_status status = GF_OK;
    *all = NULL;
    for (uint32_t r = 0; r < ranges && !status; r++) {
        const gf_rows_range rows = {.file = file ? gf_rows_file_name(file) : NULL,
                                    .first = gf_share(height, r, ranges),
                                    .end = gf_share(height, r + 1, ranges),
                                    .before = before};
        gf_engine *engine;
        gf_partial *part = NULL;
        gf_outcome outcome = {.steps = NULL};
        status = gf_engine_open(&engines[r], &engine, &why);
        if (!status)
            status = gf_run_rows(engine, job, &rows, &part, &outcome, &why);
        *report = outcome.report;
        gf_engine_close(engine);
        if (status)
            break;
        part = serialize(job, part);
        if (*all) {
            status = gf_partial_merge(*all, part, &why);
            gf_partial_free(part);
        } else {
            *all = part;
        }
    }
    return status;
}

/* Run the whole job in ranges. */
static gf_status run_cut(const work *whole, uint32_t ranges, const gf_engine_options *engines,
                         gf_result **result, gf_report *report) {
    const gf_file_options options = {.force = true};
    gf_step steps[2];
    const gf_job job = job_of(whole, whole->filter, whole->settings, &options, steps);
    AUTO(engine) gf_engine *engine;
    gf_format format, drawn;
    gf_rows_file *file = NULL;
    gf_partial *measured = NULL, *all = NULL;
    gf_result *results[2] = {NULL};
    bool possible;
    *result = NULL;
    assert_ok(gf_engine_open(&(gf_engine_options){.backend = "cpu"}, &engine, NULL));
    assert_ok(gf_rows_possible(engine, &job, &format, &possible, &why));
    assert_true(possible);
    gf_status status = gf_rows_file_open(&job, &format, &file, &why);
    const gf_filter *before = test_filter_before(whole->filter, whole->settings, &format);
    if (!status && before) {
        gf_step first[2];
        const gf_job measure = job_of(whole, before, NULL, &options, first);
        status =
            run_ranges(&measure, NULL, NULL, format.height, ranges, engines, &measured, report);
    }
    assert_ok(test_filter_output(whole->filter, whole->settings, &format, &drawn));
    const uint64_t rows = drawn.width ? drawn.height : format.height;
    if (!status)
        status = run_ranges(&job, measured, file, rows, ranges, engines, &all, report);
    if (!status) {
        gf_outcome outcome = {.report = *report, .results = results};
        status = gf_finish_rows(engine, &job, all, file, &outcome, &why);
        *report = outcome.report;
        *result = results[0];
    } else {
        gf_rows_file_close(file);
    }
    gf_partial_free(measured);
    gf_partial_free(all);
    return status;
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static void assert_same_file(const char *a, const char *b, const char *what) {
    size_t size_a, size_b;
    AUTO(free) unsigned char *bytes_a = test_bytes(a, &size_a), *bytes_b = test_bytes(b, &size_b);
    if (size_a != size_b || memcmp(bytes_a, bytes_b, size_a) != 0)
        fail_msg("%s: %s differs", what, b);
}

/* ---- any image, any case, any cut ------------------------------------------------------------ */

static void put_inputs(work *job, const gf_format *format, const char *extension,
                       test_random *random) {
    AUTO(image) test_image image = test_image_new(*format, 0);
    path_of(job->in[0], "a", extension);
    path_of(job->in[1], "b", extension);
    job->in_paths[0] = job->in[0];
    job->in_paths[1] = job->in[1];
    test_fill(&image, (test_content)test_below(random, TEST_CONTENT_COUNT), random);
    test_put(job->in[0], &image);
    test_disturb(&image, random);
    test_put(job->in[1], &image);
}

/* Compare one run with a run in ranges. Return false if the case does not apply to the image, or if
 * its sums depend on the order of rows. */
static bool compare_once(void *devices, const gf_filter *filter, const char *text, uint64_t seed) {
    static const char *const extensions[] = {"csv", "npy", "json"};
    static const uint64_t strips[] = {0, 0, 1, 2, 3, 17};
    test_random random = test_seeded(seed);
    gf_format format = test_format(&random), drawn;
    if (format.type == GF_F32) /* PFM supports 1 and 3 channels */
        format.channels = format.channels < 3 ? 1 : 3;
    format.alpha = format.channels % 2 == 0; /* PAM */
    const char *samples = extensions[test_below(&random, 3)];
    work job = {.filter = filter, .settings = test_settings(filter, text)};
    gf_engine_options engines[MAX_RANGES];
    gf_result *one, *many;
    gf_report report;
    char want_image[1200], want_samples[1200], what[512];
    if (test_filter_output(filter, job.settings, &format, &drawn)) {
        gf_settings_free(job.settings);
        return false;
    }
    put_inputs(&job, &format, format.type == GF_F32 ? "pfm" : "pam", &random);
    for (int r = 0; r < MAX_RANGES; r++)
        engines[r] = (gf_engine_options){
            .backend = *(bool *)devices && test_below(&random, 3) ? "cuda" : "cpu",
            .threads = (uint32_t)(1 + test_below(&random, 3)),
            .verify = test_below(&random, 4) == 0,
            .rows_per_strip = strips[test_below(&random, 6)]};
    gf_engine *engine;
    bool possible;
    assert_ok(gf_engine_open(&engines[0], &engine, NULL));
    name_files(&job, "one", drawn.type == GF_F32 ? "pfm" : "pam", samples);
    gf_step steps[2];
    const gf_job whole = job_of(&job, filter, job.settings, NULL, steps);
    assert_ok(gf_rows_possible(engine, &whole, &format, &possible, NULL));
    assert_true(
        possible || test_reads_twice(text) ||
        (strcmp(gf_filter_describe(filter)->name, "axis-sum") == 0 && format.type == GF_F32));
    if (possible &&
        test_run_files(&(test_files){engine, filter, job.settings, job.in_paths, drawn_path(&job),
                                     .result = &one, .report = &report}))
        fail_msg("%s", why.message);
    gf_engine_close(engine);
    if (!possible) {
        gf_settings_free(job.settings);
        count_files(true);
        return test_reads_twice(text); /* always refused */
    }
    memcpy(want_image, job.image, sizeof want_image);
    memcpy(want_samples, job.samples, sizeof want_samples);
    name_files(&job, "many", drawn.type == GF_F32 ? "pfm" : "pam", samples);
    const uint32_t ranges = (uint32_t)(1 + test_below(&random, MAX_RANGES));
    snprintf(what, sizeof what,
             "%s '%s': seed %" PRIu64 ", %" PRIu64 "x%" PRIu64 "x%u %s, %u ranges",
             gf_filter_describe(filter)->name, text, seed, format.width, format.height,
             format.channels, gf_type_name(format.type), ranges);
    if (run_cut(&job, ranges, engines, &many, &report))
        fail_msg("%s: %s", what, why.message);
    assert_true(test_same_result(one, many, what));
    if (drawn.width)
        assert_same_file(want_image, job.image, what);
    const bool extracted = exists(want_samples);
    assert_int_equal(exists(job.samples), extracted);
    if (extracted)
        assert_same_file(want_samples, job.samples, what);
    assert_int_equal(count_files(true), 2 + (drawn.width ? 2 : 0) + (extracted ? 2 : 0));
    gf_result_free(one);
    gf_result_free(many);
    gf_settings_free(job.settings);
    return true;
}

static void compare_all(bool devices) {
    const uint64_t images = test_each_case(compare_once, &devices, test_rounds(12), false);
    print_message("%" PRIu64 " images in ranges, 0 differences\n", images);
}

TEST(ranges_equal_one_run) {
    compare_all(false);
}

TEST(ranges_on_devices_equal_one_run) {
    test_needs_gpu();
    compare_all(true);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Create a job with a grey image of 50 x 40 pixels. */
static void open_grey(work *job, const char *filter, const char *text) {
    const gf_format format = {50, 40, 1, GF_U8, false};
    test_random random = {3};
    job->filter = gf_filter_find(filter);
    job->settings = test_settings(job->filter, text);
    put_inputs(job, &format, "pgm", &random);
    name_files(job, "out", "pgm", "csv");
}

static gf_partial *rows_of(const work *job, uint64_t first, uint64_t end) {
    const gf_rows_range rows = {.first = first, .end = end};
    gf_step steps[2];
    const gf_job whole = job_of(job, job->filter, job->settings, NULL, steps);
    AUTO(engine) gf_engine *engine;
    gf_partial *part;
    assert_ok(gf_engine_open(&(gf_engine_options){.backend = "cpu"}, &engine, NULL));
    (void)gf_run_rows(engine, &whole, &rows, &part, NULL, &why);
    return part;
}

TEST(rejects_other_work) {
    work job, other;
    open_grey(&job, "hist", "per-row extract=3");
    open_grey(&other, "hist", "bins=7");
    gf_partial *a = rows_of(&job, 0, 10), *gap = rows_of(&job, 11, 40);
    gf_partial *b = rows_of(&other, 10, 40);
    assert_int_equal(gf_partial_merge(a, gap, &why), GF_USAGE);
    assert_int_equal(gf_partial_merge(a, b, &why), GF_USAGE);
    assert_null(rows_of(&job, 11, 41));
    assert_int_equal(why.status, GF_USAGE);
    assert_null(rows_of(&job, 2, 1));
    /* Rows are missing. */
    gf_engine *engine;
    gf_step steps[2];
    gf_result *results[2] = {NULL};
    gf_outcome outcome = {.results = results};
    const gf_job whole = job_of(&job, job.filter, job.settings, NULL, steps);
    assert_ok(gf_engine_open(NULL, &engine, NULL));
    assert_int_equal(gf_finish_rows(engine, &whole, a, NULL, &outcome, &why), GF_USAGE);
    assert_null(results[0]);
    gf_engine_close(engine);
    gf_partial_free(a);
    gf_partial_free(b);
    gf_partial_free(gap);
    gf_settings_free(job.settings);
    gf_settings_free(other.settings);
    /* The range of the data is that of the whole image. */
    open_grey(&job, "hist", "range=data");
    assert_null(rows_of(&job, 0, 40));
    assert_int_equal(why.status, GF_USAGE);
    assert_message(&why, "run it as a whole, or give --range LO,HI");
    gf_settings_free(job.settings);
    /* The measurement of the preceding filter is missing. */
    open_grey(&job, "normalize", "");
    assert_null(rows_of(&job, 0, 10));
    assert_int_equal(why.status, GF_USAGE);
    gf_settings_free(job.settings);
}

/* The file differs between two machines. */
TEST(rejects_changed_files) {
    const struct timespec times[2] = {{1, 5}, {1, 5}};
    work job;
    open_grey(&job, "hist", "");
    gf_partial *a = rows_of(&job, 0, 10);
    assert_int_equal(utimensat(AT_FDCWD, job.in[0], times, 0), 0);
    gf_partial *b = rows_of(&job, 10, 40);
    assert_error(gf_partial_merge(a, b, &why), GF_FAILED, "share its file system");
    gf_partial_free(a);
    gf_partial_free(b);
    gf_settings_free(job.settings);
}

/* Truncated bytes, or one changed byte. */
TEST(rejects_damaged_bytes) {
    work job;
    open_grey(&job, "hist", "per-row extract=3 bins=4");
    gf_partial *a = rows_of(&job, 0, 40), *read;
    gf_step steps[2];
    const gf_job whole = job_of(&job, job.filter, job.settings, NULL, steps);
    const size_t size = gf_partial_size(a);
    AUTO(free) unsigned char *bytes = malloc(size), *copy = malloc(size);
    assert_true(bytes && copy);
    gf_partial_write(a, bytes);
    for (size_t n = 0; n < size; n += 1 + n / 64)
        assert_int_not_equal(gf_partial_read(&whole, bytes, n, &read, &why), GF_OK);
    for (size_t i = size / 2; i < size; i += 1 + i / 999) {
        memcpy(copy, bytes, size);
        copy[i] ^= 0x81;
        assert_int_equal(gf_partial_read(&whole, copy, size, &read, &why), GF_FAILED);
    }
    gf_partial_free(a);
    gf_settings_free(job.settings);
}

/* PNG rows have no fixed offsets, golden processes whole images, and a pipe is read once. */
TEST(reports_images_without_ranges) {
    static const char *const setups[][3] = {
        {"in.png", "x.pgm", "cpu"},     {"in.pgm", "x.png", "cpu"}, {"in.pgm", "x.pgm", "golden"},
        {"in.pgm", "/dev/null", "cpu"}, {"-", "x.pgm", "cpu"},      {"in.pgm", "x.pgm", "cpu"}};
    const gf_format format = {50, 40, 1, GF_U8, false};
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    AUTO(image) test_image image = test_image_new(format, 0);
    const int before = dup(STDIN_FILENO);
    test_put(in_directory("in.pgm"), &image);
    test_put(in_directory("in.png"), &image);
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        const bool standard = strcmp(setups[i][0], "-") == 0;
        const char *in[1] = {standard ? "-" : in_directory(setups[i][0])};
        const gf_engine_options engine_options = {.backend = setups[i][2]};
        AUTO(engine) gf_engine *engine;
        gf_format found;
        bool possible = false;
        const int fd = open(in_directory("in.pgm"), O_RDONLY);
        assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
        close(fd);
        assert_ok(gf_engine_open(&engine_options, &engine, NULL));
        assert_ok(test_rows_possible(
            &(test_files){engine, gf_filter_find("smooth"), settings, in,
                          *setups[i][1] == '/' ? setups[i][1] : in_directory(setups[i][1])},
            &found, &possible));
        assert_true(possible == (i == 5));
        assert_int_equal(found.height, 40);
    }
    assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
    close(before);
}

/* A turned image would be held in memory by each process. Mirrored rows are divided. */
TEST(turned_images_have_no_ranges) {
    static const unsigned char exif[26] = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1";
    const gf_format format = {50, 40, 1, GF_U8, false};
    gf_settings *smooth = test_settings(gf_filter_find("smooth"), ""),
                *dot = test_settings(gf_filter_find("dot"), "");
    AUTO(engine) gf_engine *engine;
    assert_ok(gf_engine_open(&(gf_engine_options){.backend = "cpu"}, &engine, NULL));
    for (unsigned char orientation = 1; orientation <= 8; orientation++) {
        const gf_file_options options = {
            .force = true, .autorotate = true, .write.tiff_compression = "none"};
        const char *in[2] = {in_directory("in.tif"), in_directory("in.tif")};
        unsigned char *pixels = random_pixels(&format, 1), turned[sizeof exif];
        gf_format found;
        bool possible;
        memcpy(turned, exif, sizeof exif);
        turned[19] = orientation;
        AUTO(metadata) gf_metadata metadata = {0};
        gf_metadata_add(&metadata, GF_ITEM_EXIF, false, turned, sizeof turned);
        assert_ok(save_image(in[0], &format, pixels, &metadata, &options, 40));
        for (int two = 0; two < 2; two++) {
            assert_ok(test_rows_possible(
                &(test_files){engine, gf_filter_find(two ? "dot" : "smooth"), two ? dot : smooth,
                              in, two ? NULL : in_directory("x.pgm"), &options},
                &found, &possible));
            assert_int_equal(possible, orientation <= 2);
        }
        free(pixels);
    }
    gf_settings_free(smooth);
    gf_settings_free(dot);
}

/* A device fails in the middle of a range: the cpu backend completes it with the same bits. */
TEST(device_failures_fall_back) {
    static const char *const cases[][2] = {
        {"smooth", "axis=y"}, {"hist", "extract=3 bins=5"}, {"hist", "per-row"}, {"dot", ""}};
    gf_engine_stand_in(&faulty_backend);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        work job;
        open_grey(&job, cases[c][0], cases[c][1]);
        gf_engine_options engines[3] = {{.threads = 1}, {.threads = 2}, {.threads = 1}};
        gf_result *want, *got;
        gf_report report;
        faulty_expect(&(faulty_plan){.rows = 3});
        assert_ok(run_cut(&job, 1, engines, &want, &report));
        if (exists(job.image))
            assert_int_equal(rename(job.image, in_directory("want")), 0);
        for (uint64_t n = 1;; n++) {
            faulty_expect(&(faulty_plan){
                .fail_at = n, .status = n % 2 ? GF_NO_BACKEND : GF_FAILED, .rows = 3});
            if (run_cut(&job, 3, engines, &got, &report))
                fail_msg("%s '%s', call %" PRIu64 ": %s", cases[c][0], cases[c][1], n, why.message);
            assert_true(test_same_result(want, got, cases[c][0]));
            if (exists(job.image))
                assert_same_file(in_directory("want"), job.image, cases[c][0]);
            gf_result_free(got);
            if (!faulty_failed())
                break;
        }
        gf_result_free(want);
        gf_settings_free(job.settings);
        count_files(true);
    }
    gf_engine_stand_in(NULL);
}

int main(void) {
    return test_main_in_directory();
}
