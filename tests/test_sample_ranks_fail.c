/* Files of samples of several ranks, one of which fails: all do, with one reason, and nothing is
 * left. */
#define _GNU_SOURCE

#include "sample_trial.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "io/spool.h"

/* ---- failures -------------------------------------------------------------------------------- */

/* All fail, with one message; so many files are left. */
static void assert_all_fail(trial *shared, uint32_t count, gf_status status, const char *part,
                            int files) {
    run_as_ranks(count, run_rank, shared);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(shared->status[i], status);
        assert_message(&shared->error[i], part);
        assert_string_equal(shared->error[i].message, shared->error[0].message);
    }
    assert_int_equal(count_files(false), files);
}

static samples few_samples(void) {
    test_random random = {14};
    return make_samples(GF_U8, 40, 1, 60, 3, 1, 2, &random);
}

static trial try_few(const samples *all, const char *path, const char *format) {
    return (trial){
        .all = all, .path = path, .format = format, .cuts = {0, 20, 40, 60}, .breaks = NONE};
}

static void refuses_for_all(void **state) {
    samples all = few_samples();
    (void)state;
    put_bytes(in_folder("old.csv"), "old", 3);
    trial shared = try_few(&all, in_folder("old.csv"), NULL);
    assert_all_fail(&shared, 3, GF_FAILED, "/old.csv: exists already; use --force to replace it",
                    1);
    assert_bytes(in_folder("old.csv"), "old", 3);
    shared = try_few(&all, in_folder("none/a.csv"), NULL);
    assert_all_fail(&shared, 3, GF_FAILED, "/a.csv: its folder does not exist", 1);
    shared = try_few(&all, in_folder("a"), NULL);
    assert_all_fail(&shared, 3, GF_USAGE, "/a: cannot tell the format of samples", 1);
    shared = try_few(&all, "-", "csv");
    assert_all_fail(&shared, 3, GF_USAGE, "standard output: several ranks write samples into", 1);
    shared = try_few(&all, "/dev/null", "npy");
    assert_all_fail(&shared, 3, GF_USAGE, "/dev/null: several ranks write samples into", 1);
    free_samples(&all);
}

static void replaces_with_force(void **state) {
    samples all = few_samples();
    (void)state;
    write_alone(&all, in_folder("alone"), "json");
    put_bytes(in_folder("old.json"), "old", 3);
    trial shared = try_few(&all, in_folder("old.json"), NULL);
    shared.force = true;
    run_as_ranks(3, run_rank, &shared);
    assert_int_equal(shared.status[0], GF_OK);
    assert_same_files(in_folder("alone"), in_folder("old.json"));
    assert_int_equal(count_files(false), 2);
    free_samples(&all);
}

/* Whichever it is that fails. */
static void one_fails_for_all(void **state) {
    samples all = few_samples();
    (void)state;
    for (uint32_t rank = 0; rank < 3; rank++) {
        trial shared = try_few(&all, in_folder("a.csv"), NULL);
        shared.breaks = rank;
        assert_all_fail(&shared, 3, GF_FAILED,
                        "/a.csv: samples of bin 4294967295 of 3 come behind those of bin 2", 0);
    }
    free_samples(&all);
}

/* Closed before the end. */
static void leaves_nothing_unfinished(void **state) {
    samples all = few_samples();
    (void)state;
    trial shared = try_few(&all, in_folder("a.csv"), NULL);
    shared.stops = true;
    run_as_ranks(3, run_rank, &shared);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(shared.status[i], GF_OK);
    assert_int_equal(shared.files, 1);
    assert_int_equal(count_files(false), 0);
    free_samples(&all);
}

/* In a child, where no file may grow past a limit, as on a full disk. */
static void in_child_with_limit(rlim_t bytes, trial *shared, uint32_t count) {
    int how = 0;
    const pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) {
        const struct rlimit limit = {bytes, bytes};
        if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(1);
        run_as_ranks(count, run_rank, shared);
        for (uint32_t i = 0; i < count; i++)
            if (shared->status[i] != GF_FAILED ||
                strstr(shared->error[i].message, ": cannot write: File too large") == NULL)
                _exit(2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_int_equal(count_files(false), 0);
}

/* The last rank, and with it rank 0's tail; only the tail; a spool of one rank. */
static void a_full_disk_fails_for_all(void **state) {
    samples all = few_samples();
    test_random random = {15};
    (void)state;
    write_alone(&all, in_folder("alone"), "json");
    size_t size;
    free(get_bytes(in_folder("alone"), &size));
    empty_folder(NULL);
    trial shared = try_few(&all, in_folder("a.json"), NULL);
    in_child_with_limit((rlim_t)size - 100, &shared, 3);
    in_child_with_limit((rlim_t)size - 1, &shared, 3);
    in_child_with_limit(100, &shared, 3);
    free_samples(&all);
    all = make_samples(GF_F32, 500, 1, 600, 1, 1, 1, &random);
    for (int lacks = 0; lacks < 2; lacks++) {
        atomic_store(&lacks_nameless, lacks);
        shared = (trial){
            .all = &all, .path = in_folder("a.npy"), .cuts = {0, 10, 590, 600}, .breaks = NONE};
        in_child_with_limit((rlim_t)GF_SPOOL_BYTES - 1, &shared, 3);
    }
    atomic_store(&lacks_nameless, false);
    free_samples(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(refuses_for_all, empty_folder),
        cmocka_unit_test_teardown(replaces_with_force, empty_folder),
        cmocka_unit_test_teardown(one_fails_for_all, empty_folder),
        cmocka_unit_test_teardown(leaves_nothing_unfinished, empty_folder),
        cmocka_unit_test_teardown(a_full_disk_fails_for_all, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
