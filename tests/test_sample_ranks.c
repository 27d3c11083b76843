/* Files of samples that several ranks write are those that one process writes. */
#define _GNU_SOURCE

#include "sample_util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agree.h"
#include "io/spool.h"
#include "rank_threads.h"
#include "testing.h"

enum { MOST_RANKS = 5, LARGEST_PIECE = 300 };

/* ---- the system's open ----------------------------------------------------------------------- */

static atomic_bool lacks_nameless; /* files: as many file systems do */
static atomic_int nameless, refused;

/* Takes the place of the system's. */
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        if (atomic_load(&lacks_nameless)) {
            atomic_fetch_add(&refused, 1);
            errno = EOPNOTSUPP;
            return -1;
        }
        atomic_fetch_add(&nameless, 1);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* A bin for each position, or NONE, and a value. */
#define NONE UINT32_MAX

typedef struct samples {
    gf_sample_layout layout;
    uint64_t height;
    uint32_t *bins;
    unsigned char *values;
} samples;

static uint64_t row_positions(const samples *all) {
    return all->layout.width * all->layout.channels;
}

/* One in `sparse` positions is a sample, of bin k * step. */
static samples make_samples(gf_type type, uint64_t width, uint32_t channels, uint64_t height,
                            uint32_t bins, uint32_t step, uint64_t sparse, test_random *random) {
    samples all = {.layout = {.type = type,
                              .width = width,
                              .channels = channels,
                              .names = {"r", "g", "b"},
                              .indices = {0, 1, 2},
                              .with_bin = bins > 1,
                              .bins = (bins - 1) * step + 1},
                   .height = height};
    const uint64_t count = height * row_positions(&all);
    const size_t bytes = gf_type_bytes(type);
    all.bins = malloc(count * sizeof *all.bins + 1);
    all.values = malloc(count * bytes + 1);
    assert_non_null(all.bins);
    assert_non_null(all.values);
    for (uint64_t i = 0; i < count; i++) {
        const bool taken = sparse != 0 && test_below(random, sparse) == 0;
        const uint64_t bits = test_next(random);
        all.bins[i] = taken ? (uint32_t)test_below(random, bins) * step : NONE;
        memcpy(all.values + i * bytes, &bits, bytes);
    }
    /* The bin of a file of one bin may be any. */
    if (bins == 1)
        for (uint64_t i = 0; i < count; i++)
            all.bins[i] = all.bins[i] == NONE ? NONE : 7;
    return all;
}

static void free_samples(samples *all) {
    free(all->bins);
    free(all->values);
}

/* Those of rows [from, to), bin by bin, in calls of odd sizes. */
static gf_status feed(gf_sample_sink *sink, const samples *all, uint64_t from, uint64_t to,
                      gf_error *error) {
    const uint64_t row = row_positions(all), step = all->layout.bins > 300 ? 257 : 1;
    const size_t bytes = gf_type_bytes(all->layout.type);
    uint64_t positions[LARGEST_PIECE], most = 1;
    unsigned char values[LARGEST_PIECE * sizeof(float)];
    gf_status status = GF_OK;
    for (uint64_t bin = 0; bin < all->layout.bins && status == GF_OK; bin += step) {
        const uint32_t wanted = all->layout.with_bin ? (uint32_t)bin : 7;
        uint64_t count = 0;
        for (uint64_t i = from * row; i < to * row && status == GF_OK; i++) {
            if (all->bins[i] != wanted)
                continue;
            positions[count] = i;
            memcpy(values + count * bytes, all->values + i * bytes, bytes);
            if (++count == most) {
                status = gf_sample_sink_write(sink, wanted, positions, values, count, error);
                count = 0;
                most = 1 + (most * 7 + i) % LARGEST_PIECE;
            }
        }
        if (status == GF_OK)
            status = gf_sample_sink_write(sink, wanted, positions, values, count, error);
    }
    return status;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

typedef struct trial {
    const samples *all;
    const char *path, *format;
    bool force;
    uint64_t cuts[MOST_RANKS + 1]; /* rank i has rows cuts[i] .. cuts[i + 1] - 1 */
    uint32_t breaks;               /* this rank fails after some samples; NONE: no one */
    bool stops;                    /* none of them finishes */
    gf_status status[MOST_RANKS];
    gf_error error[MOST_RANKS];
    bool wants_count[MOST_RANKS];
    int files; /* in the folder when all samples have been given */
} trial;

static void run_rank(const gf_ranks *ranks, void *context) {
    trial *shared = context;
    const uint32_t rank = ranks->rank;
    const samples *all = shared->all;
    gf_error *error = &shared->error[rank];
    gf_sample_sink *sink = NULL;
    gf_status status = gf_sample_sink_open(shared->path, shared->format, shared->force,
                                           &all->layout, ranks, &sink, error);
    if (status == GF_OK) {
        shared->wants_count[rank] = gf_sample_sink_wants_count(sink);
        status = feed(sink, all, shared->cuts[rank], shared->cuts[rank + 1], error);
        if (status == GF_OK && shared->breaks == rank)
            status = gf_sample_sink_write(sink, UINT32_MAX, (uint64_t[]){0}, "\0\0\0\0", 1, error);
        status = gf_ranks_agree(ranks, status, error);
        if (rank == 0)
            shared->files = count_files(false);
        (void)gf_ranks_agree(ranks, GF_OK, NULL);
    }
    if (status == GF_OK && !shared->stops)
        status = gf_sample_sink_finish(sink, error);
    if (status == GF_OK && !shared->stops)
        status = gf_output_place(gf_sample_sink_output(sink), error);
    gf_sample_sink_close(sink);
    shared->status[rank] = status;
}

static void cut_rows(trial *shared, uint32_t count, uint64_t height, test_random *random) {
    shared->cuts[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
        const uint64_t left = height - shared->cuts[i - 1];
        shared->cuts[i] =
            shared->cuts[i - 1] + (test_below(random, 3) ? test_below(random, left + 1) : 0);
    }
    shared->cuts[count] = height;
}

static void write_alone(const samples *all, const char *path, const char *format) {
    gf_error error = {0};
    gf_sample_sink *sink = open_sink(path, format, &all->layout);
    if (feed(sink, all, 0, all->height, &error) != GF_OK)
        fail_msg("%s", error.message);
    finish(sink);
}

static void assert_same_files(const char *a, const char *b) {
    size_t size;
    unsigned char *want = get_bytes(a, &size);
    assert_bytes(b, want, size);
    free(want);
}

/* By so many ranks, each kind; rows are cut at random, or, with `even`, evenly. */
static void compare(const samples *all, uint32_t count, bool even, test_random *random) {
    for (size_t k = 0; k < 3; k++) {
        trial shared = {
            .all = all, .path = in_folder("shared"), .format = kinds[k], .breaks = NONE};
        cut_rows(&shared, count, all->height, random);
        for (uint32_t i = 0; even && i < count; i++)
            shared.cuts[i] = all->height * i / count;
        write_alone(all, in_folder("alone"), kinds[k]);
        run_as_ranks(count, run_rank, &shared);
        for (uint32_t i = 0; i < count; i++) {
            if (shared.status[i] != GF_OK)
                fail_msg("rank %u of %u: %s", i, count, shared.error[i].message);
            assert_false(shared.wants_count[i]);
        }
        assert_same_files(in_folder("alone"), in_folder("shared"));
        /* That of one process, and the temporary one, which only ranks need. */
        assert_in_range(shared.files, count > 1 ? 2 : 1, 2);
        assert_int_equal(count_files(false), 2);
        empty_folder(NULL);
    }
}

/* ---- the same bytes -------------------------------------------------------------------------- */

static void equals_one_process(void **state) {
    static const struct {
        uint32_t bins, step;
    } choices[] = {{1, 1}, {2, 1}, {3, 1}, {300, 1}, {256, 257}};
    const uint64_t rounds = test_environment("GF_TEST_ROUNDS", 60);
    test_random random = {test_environment("GF_TEST_SEED", 11)};
    (void)state;
    for (uint64_t round = 0; round < rounds; round++) {
        const size_t choice = test_below(&random, 5);
        const uint64_t sparse = (uint64_t[]){0, 1, 2, 10, 200}[test_below(&random, 5)];
        samples all =
            make_samples((gf_type)(round % 3), 1 + test_below(&random, 60),
                         (uint32_t)(1 + test_below(&random, 3)), 1 + test_below(&random, 40),
                         choices[choice].bins, choices[choice].step, sparse, &random);
        compare(&all, 1 + (uint32_t)(round % MOST_RANKS), false, &random);
        free_samples(&all);
    }
}

/* One sample at any place, and ranks without rows. */
static void writes_a_single_sample(void **state) {
    test_random random = {12};
    (void)state;
    for (uint64_t y = 0; y <= 4; y++) {
        samples all = make_samples(GF_U16, 1, 2, 4, 3, 1, 0, &random);
        if (y < 4)
            all.bins[y * row_positions(&all)] = (uint32_t)y % 3;
        compare(&all, MOST_RANKS, true, &random);
        free_samples(&all);
    }
}

/* More than a spool has memory for: of one bin and of several, with and without files that never
 * have a name. */
static void spools_many_samples(void **state) {
    test_random random = {13};
    (void)state;
    for (uint32_t bins = 1; bins <= 3; bins += 2)
        for (int lacks = 0; lacks < 2; lacks++) {
            samples all = make_samples(GF_U16, 200, 2, 1500, bins, 1, 1, &random);
            atomic_store(&lacks_nameless, lacks);
            atomic_store(&refused, 0);
            atomic_store(&nameless, 0);
            /* A line of CSV has 14 bytes and more. */
            assert_true(200 * 2 * 1500 / 2 * 14 > (int)GF_SPOOL_BYTES);
            compare(&all, 2, true, &random);
            /* Of each kind of file the output of the process that is alone, and the spools of two
             * ranks. The system itself may lack them. */
            assert_int_equal(atomic_load(lacks ? &refused : &nameless), 9);
            atomic_store(&lacks_nameless, false);
            free_samples(&all);
        }
}

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
        cmocka_unit_test_teardown(equals_one_process, empty_folder),
        cmocka_unit_test_teardown(writes_a_single_sample, empty_folder),
        cmocka_unit_test_teardown(spools_many_samples, empty_folder),
        cmocka_unit_test_teardown(refuses_for_all, empty_folder),
        cmocka_unit_test_teardown(replaces_with_force, empty_folder),
        cmocka_unit_test_teardown(one_fails_for_all, empty_folder),
        cmocka_unit_test_teardown(leaves_nothing_unfinished, empty_folder),
        cmocka_unit_test_teardown(a_full_disk_fails_for_all, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
