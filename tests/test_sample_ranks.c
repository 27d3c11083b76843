/* Files of samples that several ranks write are those that one process writes. */
#define _GNU_SOURCE

#include "sample_trial.h"

#include "io/spool.h"

/* ---- ranks ----------------------------------------------------------------------------------- */

static void cut_rows(trial *shared, uint32_t count, uint64_t height, test_random *random) {
    shared->cuts[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
        const uint64_t left = height - shared->cuts[i - 1];
        shared->cuts[i] =
            shared->cuts[i - 1] + (test_below(random, 3) ? test_below(random, left + 1) : 0);
    }
    shared->cuts[count] = height;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(equals_one_process, empty_folder),
        cmocka_unit_test_teardown(writes_a_single_sample, empty_folder),
        cmocka_unit_test_teardown(spools_many_samples, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
