/* One image by several ranks, here threads: the same bytes and numbers as by one process. */
#include "io_util.h"
#include "rank_threads.h"
#include "testing.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

enum { MOST_RANKS = 5 };

/* A job as all ranks get it, and what became of it. */
typedef struct shared_job {
    const gf_filter *filter;
    const gf_settings *settings;
    const char *in[2];
    const char *out;
    gf_file_options options;
    gf_engine_options engines[MOST_RANKS];
    gf_status status[MOST_RANKS];
    gf_error errors[MOST_RANKS];
    gf_result *result; /* rank 0's */
    gf_report report;
    bool others_have_results;
    void (*meanwhile)(void); /* happens once rank 0 has its inputs open, and no other has */
} shared_job;

/* Ranks whose second broadcast waits for what happens: the first one is about the engines. */
typedef struct delayed {
    const gf_ranks *ranks;
    void (*happens)(void);
    int broadcasts;
} delayed;

static void late_broadcast(void *context, void *data, size_t size) {
    delayed *late = context;

    if (++late->broadcasts == 2 && late->ranks->rank == 0)
        late->happens();
    late->ranks->broadcast(late->ranks->context, data, size);
}

static void late_reduce(void *context, void *data, size_t size, gf_merge *merge,
                        const void *merging) {
    const gf_ranks *ranks = ((delayed *)context)->ranks;
    ranks->reduce(ranks->context, data, size, merge, merging);
}

static void run_rank(const gf_ranks *ranks, void *context) {
    shared_job *job = context;
    const uint32_t rank = ranks ? ranks->rank : 0;
    gf_error *error = &job->errors[rank];
    gf_file_options options = job->options;
    gf_engine *engine = NULL;
    gf_result *result = NULL;
    gf_report report;
    delayed late = {.ranks = ranks, .happens = job->meanwhile};
    gf_ranks own;

    if (job->meanwhile) {
        own = *ranks; /* others of its calls are not reached */
        own.context = &late;
        own.broadcast = late_broadcast;
        own.reduce = late_reduce;
        ranks = &own;
    }
    options.ranks = ranks;
    gf_status status = gf_engine_open(&job->engines[rank], &engine, error);
    status = gf_ranks_agree(ranks, status, error);
    if (!status)
        status = gf_run_file(engine, job->filter, job->settings, job->in, job->out, &options,
                             &result, &report, error);
    gf_engine_close(engine);
    job->status[rank] = status;
    if (rank == 0) {
        job->result = result;
        job->report = report;
    } else if (result) {
        gf_result_free(result);
        __atomic_store_n(&job->others_have_results, true, __ATOMIC_RELAXED);
    }
}

/* count 0: without ranks. All must end alike. */
static gf_status run_job(shared_job *job, uint32_t count) {
    if (count == 0)
        run_rank(NULL, job);
    else
        run_as_ranks(count, run_rank, job);
    for (uint32_t r = 1; r < count; r++) {
        assert_int_equal(job->status[r], job->status[0]);
        assert_string_equal(job->errors[r].message, job->errors[0].message);
    }
    assert_false(job->others_have_results);
    return job->status[0];
}

static void put_image(const char *path, const test_image *image) {
    const gf_file_options options = {.force = true};
    gf_sink *sink;
    gf_error error = {0};

    if (gf_sink_open(path, &image->format, NULL, &options, 1, &sink, &error) ||
        sink->ops->write(sink, image->rows.data, image->stride, image->format.height, &error) ||
        sink->ops->finish(sink, NULL, &error) || sink->ops->place(sink, &error))
        fail_msg("%s", error.message);
    sink->ops->close(sink);
}

static void assert_same_file(const char *a, const char *b, const char *what) {
    size_t size_a, size_b;
    unsigned char *bytes_a = get_bytes(a, &size_a), *bytes_b = get_bytes(b, &size_b);

    if (size_a != size_b || memcmp(bytes_a, bytes_b, size_a) != 0)
        fail_msg("%s: %s differs", what, b);
    free(bytes_a);
    free(bytes_b);
}

/* ---- any image, any case, any ranks ------------------------------------------------------------
 */

/* Names of what one way of running it writes. */
typedef struct names {
    char image[1200], samples[1200];
} names;

static names make_names(const char *way, const char *ending, const char *samples) {
    names n;
    snprintf(n.image, sizeof n.image, "%s/%s.%s", test_folder, way, ending);
    snprintf(n.samples, sizeof n.samples, "%s/%s.%s", test_folder, way, samples);
    return n;
}

/* The case's names of files are "-": they get real ones. */
static void set_files(gf_settings *settings, const gf_filter *filter, const names *n) {
    for (size_t i = 0; i < filter->info.param_count; i++) {
        const gf_param *param = &filter->info.params[i];
        const char *name = param->type == GF_PARAM_IMAGE     ? n->image
                           : param->type == GF_PARAM_SAMPLES ? n->samples
                                                             : NULL;
        if (name && gf_settings_given(settings, param->name))
            assert_int_equal(gf_settings_set(settings, param->name, name, NULL), GF_OK);
    }
}

static void set_engines(shared_job *job, bool devices, test_random *random) {
    static const uint64_t bands[] = {0, 0, 1, 2, 3, 17};
    for (int r = 0; r < MOST_RANKS; r++)
        job->engines[r] =
            (gf_engine_options){.backend = devices && test_below(random, 3) ? "cuda" : "cpu",
                                .turn = (uint32_t)r,
                                .threads = (uint32_t)(1 + test_below(random, 3)),
                                .band_rows = bands[test_below(random, 6)]};
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* False if the case does not suit the image. */
static bool compare_once(const gf_filter *filter, const char *text, uint64_t seed, bool devices) {
    static const char *const sample_endings[] = {"csv", "npy", "json"};
    test_random random = {seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    gf_format format = test_format(&random), drawn;
    if (format.type == GF_F32) /* as PFM has it */
        format.channels = format.channels < 3 ? 1 : 3;
    const char *ending = format.type == GF_F32 ? "pfm" : "pam";
    const char *samples = sample_endings[test_below(&random, 3)];
    const names inputs[2] = {make_names("a", ending, ""), make_names("b", ending, "")};
    gf_settings *settings = test_settings(filter, text);
    if (gf_filter_output(filter, settings, &format, &drawn, NULL)) {
        gf_settings_free(settings);
        return false;
    }
    const char *kind = drawn.type == GF_F32 ? "pfm" : "pam";
    const names one = make_names("one", kind, samples), many = make_names("many", kind, samples);
    set_files(settings, filter, &one);
    test_image image = test_image_new(format, 0);
    test_fill(&image, (test_content)test_below(&random, TEST_CONTENT_COUNT), &random);
    put_image(inputs[0].image, &image);
    test_disturb(&image, &random);
    put_image(inputs[1].image, &image);
    test_image_free(&image);

    shared_job first = {.filter = filter,
                        .settings = settings,
                        .in = {inputs[0].image, inputs[1].image},
                        .out = filter->info.makes_image ? one.image : NULL};
    set_engines(&first, false, &random);
    shared_job second = first;
    set_engines(&second, devices, &random);
    if (run_job(&first, 0))
        fail_msg("%s", first.errors[0].message);
    const uint32_t count = (uint32_t)(1 + test_below(&random, MOST_RANKS));
    set_files(settings, filter, &many);
    second.out = filter->info.makes_image ? many.image : NULL;
    char what[512];
    snprintf(what, sizeof what,
             "%s '%s': seed %" PRIu64 ", %" PRIu64 "x%" PRIu64 "x%u %s, %u ranks",
             filter->info.name, text, seed, format.width, format.height, format.channels,
             gf_type_name(format.type), count);
    if (run_job(&second, count))
        fail_msg("%s: %s", what, second.errors[0].message);
    assert_int_equal(second.report.ranks, count > 1 ? count : 0);
    assert_non_null(strstr("cpu+cuda+cpu", second.report.backend));
    assert_true(gf_format_equal(&second.report.in, &first.report.in));
    if (!test_same_result(first.result, second.result, what))
        fail_msg("%s: other results", what);
    if (drawn.width)
        assert_same_file(one.image, many.image, what);
    const bool extracted = exists(one.samples);
    assert_int_equal(exists(many.samples), extracted);
    if (extracted)
        assert_same_file(one.samples, many.samples, what);
    assert_int_equal(count_files(true), 2 + (drawn.width ? 2 : 0) + (extracted ? 2 : 0));
    gf_result_free(first.result);
    gf_result_free(second.result);
    gf_settings_free(settings);
    return true;
}

static void compare_all(bool devices) {
    const uint64_t rounds = test_environment("GF_TEST_ROUNDS", 12);
    const uint64_t seed = test_environment("GF_TEST_SEED", 1);
    uint64_t runs = 0;

    for (size_t f = 0; f < gf_filter_count(); f++) {
        const gf_filter *filter = gf_filter_at(f);
        for (size_t c = 0; filter->info.cases[c]; c++) {
            uint64_t suited = 0;
            for (uint64_t round = 0; round < rounds || (suited == 0 && round < 100); round++)
                suited +=
                    compare_once(filter, filter->info.cases[c], seed + round * 1000 + c, devices);
            if (suited == 0)
                fail_msg("%s '%s' suits no image", filter->info.name, filter->info.cases[c]);
            runs += suited;
        }
    }
    print_message("%" PRIu64 " images by ranks, 0 differences\n", runs);
}

static void ranks_equal_one_process(void **state) {
    (void)state;
    compare_all(false);
}

/* Some ranks on devices, some on the CPU. */
static void ranks_on_devices_equal_one_process(void **state) {
    (void)state;
    if (!test_has_cuda())
        skip();
    compare_all(true);
}

/* ---- what is not shared -----------------------------------------------------------------------
 */

static void put_grey(const char *name, uint64_t height) {
    const gf_format format = {.width = 50, .height = height, .channels = 1, .type = GF_U8};
    test_random random = {height};
    test_image image = test_image_new(format, 0);

    test_fill(&image, TEST_UNIFORM, &random);
    put_image(in_folder(name), &image);
    test_image_free(&image);
}

static shared_job smooth_job(const char *in, const char *out) {
    shared_job job = {.filter = gf_filter_find("smooth"),
                      .settings = test_settings(gf_filter_find("smooth"), "axis=y radius=9"),
                      .in = {in_folder(in)},
                      .out = in_folder(out)};
    for (int r = 0; r < MOST_RANKS; r++)
        job.engines[r] = (gf_engine_options){.backend = "cpu", .threads = 1};
    return job;
}

static void free_job(shared_job *job) {
    gf_settings_free((gf_settings *)job->settings);
}

static void rank_0_does_what_cannot_be_shared(void **state) {
    static const char *const ways[][3] = {{"in.png", "x.pgm", "cpu"},
                                          {"in.pgm", "x.png", "cpu"},
                                          {"in.pgm", "x.pgm", "golden"},
                                          {"in.pgm", "x.pgm", "cpu"}};
    (void)state;
    put_grey("in.pgm", 40);
    put_grey("in.png", 40);
    for (size_t i = 0; i < 4; i++) {
        shared_job job = smooth_job(ways[i][0], ways[i][1]);
        for (int r = 0; r < MOST_RANKS; r++)
            job.engines[r].backend = ways[i][2];
        assert_int_equal(run_job(&job, 3), GF_OK);
        assert_int_equal(job.report.ranks, i == 3 ? 3 : 0);
        assert_true(exists(in_folder(ways[i][1])));
        unlink(in_folder(ways[i][1]));
        free_job(&job);
    }
}

/* ---- failures: of all, with one reason, and nothing is left -------------------------------------
 */

static void assert_all_fail(shared_job *job, gf_status status, const char *part) {
    const int before = count_files(false);

    assert_int_equal(run_job(job, 4), status);
    assert_message(&job->errors[0], part);
    assert_null(job->result);
    assert_int_equal(count_files(false), before);
    free_job(job);
}

static void all_fail_together(void **state) {
    shared_job job;

    (void)state;
    put_grey("in.pgm", 40);
    job = smooth_job("missing.pgm", "out.pgm");
    assert_all_fail(&job, GF_FAILED, "cannot open");
    put_bytes(in_folder("out.pgm"), "old", 3);
    job = smooth_job("in.pgm", "out.pgm");
    assert_all_fail(&job, GF_FAILED, "exists already");
    assert_bytes(in_folder("out.pgm"), "old", 3);
    job = smooth_job("in.pgm", "no/folder/out.pgm");
    assert_all_fail(&job, GF_FAILED, "folder does not exist");
    job = smooth_job("in.pgm", "out2.pfm");
    assert_all_fail(&job, GF_FAILED, "holds only f32");
    job = smooth_job("in.pgm", "out2.xyz");
    assert_all_fail(&job, GF_USAGE, "cannot tell the format");
    job = smooth_job("in.pgm", "out2.pgm");
    job.engines[2].backend = "nonsense";
    assert_all_fail(&job, GF_USAGE, "no such backend");
}

/* One rank has too little memory for its bands, which it finds out in the middle. */
static void one_rank_stops_all(void **state) {
    (void)state;
    put_grey("in.pgm", 40);
    for (uint32_t r = 0; r < 4; r++) {
        shared_job job = smooth_job("in.pgm", "out.pgm");
        job.engines[r].max_memory = 100;
        assert_all_fail(&job, GF_FAILED, "--max-memory");
    }
    shared_job job = {.filter = gf_filter_find("axis-sum"),
                      .settings = test_settings(gf_filter_find("axis-sum"), ""),
                      .in = {in_folder("in.pgm")}};
    job.engines[3].max_memory = 50;
    assert_all_fail(&job, GF_FAILED, "--max-memory");
}

static void replace_by_older(void) {
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    put_grey("in.pgm", 40);
    assert_int_equal(utimensat(AT_FDCWD, in_folder("in.pgm"), times, 0), 0);
}

static void lengthen_input(void) {
    struct stat info;
    assert_int_equal(stat(in_folder("in.pgm"), &info), 0);
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(truncate(in_folder("in.pgm"), info.st_size + 1), 0);
    assert_int_equal(utimensat(AT_FDCWD, in_folder("in.pgm"), times, 0), 0);
}

/* The same while others have measured something already: in whatever step one runs out of memory.
 */
static void little_memory_of_one_rank(void **state) {
    uint64_t failed = 0, done = 0;
    (void)state;
    put_grey("in.pgm", 40);
    for (uint64_t memory = 1; memory < 1000; memory += 5) {
        shared_job job = {.filter = gf_filter_find("axis-sum"),
                          .settings = test_settings(gf_filter_find("axis-sum"), ""),
                          .in = {in_folder("in.pgm")}};
        for (int r = 0; r < 3; r++)
            job.engines[r] = (gf_engine_options){.backend = "cpu", .threads = 1};
        job.engines[memory % 3].max_memory = memory;
        if (run_job(&job, 3)) {
            assert_message(&job.errors[0], "--max-memory");
            failed++;
        } else {
            done++;
        }
        gf_result_free(job.result);
        free_job(&job);
    }
    assert_true(failed > 20 && done > 20);
}

/* Strips of columns whose bytes must be turned round. */
static void strips_of_foreign_byte_order(void **state) {
    const gf_raw raw = {.format = {.width = 7, .height = 33, .channels = 3, .type = GF_F32},
                        .offset = 5,
                        .big = true};
    unsigned char bytes[5 + 7 * 33 * 3 * 4];
    test_random random = {77};

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) /* exponents that are those of sane numbers */
        bytes[i] =
            (unsigned char)(i % 4 == 1 ? 0x3e + test_below(&random, 3) : test_below(&random, 256));
    put_bytes(in_folder("in.raw"), (const char *)bytes, sizeof bytes);
    shared_job one = {.filter = gf_filter_find("axis-sum"),
                      .settings = test_settings(gf_filter_find("axis-sum"), "axis=y"),
                      .in = {in_folder("in.raw")},
                      .options = {.raw = &raw}};
    for (int r = 0; r < MOST_RANKS; r++)
        one.engines[r] = (gf_engine_options){.backend = "cpu", .threads = 2};
    shared_job many = one;
    assert_int_equal(run_job(&one, 0), GF_OK);
    for (uint32_t count = 2; count <= MOST_RANKS; count++) {
        assert_int_equal(run_job(&many, count), GF_OK);
        assert_true(test_same_result(one.result, many.result, "strips"));
        gf_result_free(many.result);
    }
    gf_result_free(one.result);
    free_job(&one);
}

static void report_tells_of_all(void **state) {
    (void)state;
    put_grey("in.pgm", 40);
    shared_job job = smooth_job("in.pgm", "out.pgm");
    for (int r = 0; r < 4; r++)
        job.engines[r].band_rows = r == 2 ? 3 : 1;
    assert_int_equal(run_job(&job, 4), GF_OK);
    assert_int_equal(job.report.ranks, 4);
    assert_int_equal(job.report.bands, 10 + 10 + 4 + 10);
    assert_int_equal(job.report.band_rows, 3);
    assert_int_equal(job.report.busy[GF_COMPUTING].workers, 4);
    assert_int_equal(job.report.out.height, 40);
    free_job(&job);
}

static void cut_input(void) {
    assert_int_equal(truncate(in_folder("in.pgm"), 100), 0);
}

static void remove_input(void) {
    assert_int_equal(unlink(in_folder("in.pgm")), 0);
}

static void turn_into_folder(void) {
    remove_input();
    assert_int_equal(mkdir(in_folder("in.pgm"), 0777), 0);
}

/* What becomes of an input after rank 0 has opened it. */
static void inputs_that_change_stop_all(void **state) {
    static const struct {
        void (*happens)(void);
        const char *says;
    } ways[] = {{replace_by_older, "rank 1 finds another file there than rank 0"},
                {lengthen_input, "rank 1 finds another file there than rank 0"},
                {cut_input, "ends too early"},
                {remove_input, "cannot open"},
                {turn_into_folder, "in.pgm"}};
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        put_grey("in.pgm", 40);
        shared_job job = smooth_job("in.pgm", "out.pgm");
        job.meanwhile = ways[i].happens;
        assert_int_equal(run_job(&job, 3), GF_FAILED);
        assert_message(&job.errors[0], ways[i].says);
        assert_false(exists(in_folder("out.pgm")));
        assert_int_equal(count_files(true), exists(in_folder("in.pgm")));
        free_job(&job);
    }
    assert_int_equal(rmdir(in_folder("in.pgm")), 0);
}

/* Each process has a standard input of its own: only rank 0 reads from it. */
static void standard_input_is_not_shared(void **state) {
    static const char *const filters[] = {"smooth", "normalize"};
    const int before = dup(STDIN_FILENO);

    (void)state;
    put_grey("in.pgm", 40);
    for (int i = 0; i < 2; i++) {
        shared_job one = smooth_job("in.pgm", "one.pgm"), many = smooth_job("in.pgm", "many.pgm");
        free_job(&one);
        free_job(&many);
        one.filter = many.filter = gf_filter_find(filters[i]);
        one.settings = test_settings(one.filter, "");
        many.settings = test_settings(many.filter, "");
        one.options.force = many.options.force = true;
        many.in[0] = "-";
        assert_int_equal(run_job(&one, 0), GF_OK);
        const int fd = open(in_folder("in.pgm"), O_RDONLY);
        assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
        close(fd);
        assert_int_equal(run_job(&many, 3), GF_OK);
        assert_int_equal(many.report.ranks, 0);
        assert_same_file(in_folder("one.pgm"), in_folder("many.pgm"), filters[i]);
        free_job(&one);
        free_job(&many);
    }
    assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
    close(before);
}

static gf_status refuse(void *context, const gf_ready *ready, gf_error *error) {
    (void)context, (void)ready;
    return error->status = GF_FAILED;
}

static void ready_of_rank_0_stops_all(void **state) {
    (void)state;
    put_grey("in.pgm", 40);
    shared_job job = smooth_job("in.pgm", "out.pgm");
    job.options.ready = refuse;
    assert_all_fail(&job, GF_FAILED, "");
}

static void more_ranks_than_rows(void **state) {
    (void)state;
    for (uint64_t height = 1; height < 5; height++) {
        put_grey("in.pgm", height);
        shared_job one = smooth_job("in.pgm", "one.pgm"), many = smooth_job("in.pgm", "many.pgm");
        one.options.force = many.options.force = true;
        assert_int_equal(run_job(&one, 0), GF_OK);
        assert_int_equal(run_job(&many, 5), GF_OK);
        assert_same_file(in_folder("one.pgm"), in_folder("many.pgm"), "few rows");
        free_job(&one);
        free_job(&many);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ranks_equal_one_process, empty_folder),
        cmocka_unit_test_teardown(ranks_on_devices_equal_one_process, empty_folder),
        cmocka_unit_test_teardown(rank_0_does_what_cannot_be_shared, empty_folder),
        cmocka_unit_test_teardown(all_fail_together, empty_folder),
        cmocka_unit_test_teardown(one_rank_stops_all, empty_folder),
        cmocka_unit_test_teardown(little_memory_of_one_rank, empty_folder),
        cmocka_unit_test_teardown(strips_of_foreign_byte_order, empty_folder),
        cmocka_unit_test_teardown(report_tells_of_all, empty_folder),
        cmocka_unit_test_teardown(inputs_that_change_stop_all, empty_folder),
        cmocka_unit_test_teardown(standard_input_is_not_shared, empty_folder),
        cmocka_unit_test_teardown(ready_of_rank_0_stops_all, empty_folder),
        cmocka_unit_test_teardown(more_ranks_than_rows, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
