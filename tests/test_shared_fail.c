/* One image by several ranks, one of which fails: all do, with one reason, and nothing is left. */
#include "shared_job.h"

#include <fcntl.h>
#include <sys/stat.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_fail_together, empty_folder),
        cmocka_unit_test_teardown(one_rank_stops_all, empty_folder),
        cmocka_unit_test_teardown(little_memory_of_one_rank, empty_folder),
        cmocka_unit_test_teardown(inputs_that_change_stop_all, empty_folder),
        cmocka_unit_test_teardown(ready_of_rank_0_stops_all, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
