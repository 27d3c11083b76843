/* Outputs that belong together get their names together, or what was there is there again. Each
 * test is run with files that have no name until then, and with temporary names. */
#include "output_util.h"

#include <pthread.h>
#include <signal.h>

static void appear_together(void **state) {
    static const char *const names[] = {"a", "b", "c", "d"};
    gf_output *outputs[4];
    gf_error error = {0};

    (void)state;
    put_old("b");
    put_old("d");
    for (int i = 0; i < 4; i++)
        outputs[i] = complete(names[i], true);
    assert_int_equal(gf_outputs_commit(outputs, 4, &error), GF_OK);
    close_all(outputs, 4);
    for (int i = 0; i < 4; i++)
        assert_bytes(in_folder(names[i]), names[i], 1);
    assert_int_equal(count_files(false), 4);
}

/* The last of five fails: new ones are no more, replaced ones are what they were, down to the
 * inode. */
static void are_taken_back(void **state) {
    static const char *const names[] = {"new", "old", "other", "older", "taken"};
    gf_output *outputs[5];
    gf_error error = {0};

    (void)state;
    put_old("old");
    put_old("older");
    const ino_t before = inode_of("old");
    for (int i = 0; i < 5; i++)
        outputs[i] = complete(names[i], i < 4);
    put_bytes(in_folder("taken"), "theirs", 6);
    assert_int_equal(gf_outputs_commit(outputs, 5, &error), GF_FAILED);
    assert_message(&error, "/taken: already exists; use --force to replace it");
    assert_null(strstr(error.message, "before that"));
    close_all(outputs, 5);
    assert_int_equal(inode_of("old"), before);
    assert_bytes(in_folder("old"), "old", 3);
    assert_bytes(in_folder("older"), "old", 3);
    assert_bytes(in_folder("taken"), "theirs", 6);
    assert_int_equal(count_files(false), 3);
}

/* Whichever call fails, of all that are made. */
static void leave_nothing_whichever_call_fails(void **state) {
    static const char *const names[] = {"a", "b", "c"};
    char all[sizeof calls];
    unsigned failures = 0;

    (void)state;
    for (unsigned call = 0; call == 0 || call <= strlen(all); call++) {
        gf_output *outputs[3];
        gf_error error = {0};
        (void)count_files(true);
        (void)begin(state);
        put_old("b");
        put_old("c");
        for (int i = 0; i < 3; i++)
            outputs[i] = complete(names[i], true);
        calls[0] = '\0';
        if (call > 0) {
            calls_do.fails = (char)(all[call - 1] & ~0x20);
            for (unsigned i = 0; i + 1 < call; i++)
                calls_do.after += (all[i] & ~0x20) == calls_do.fails;
            calls_do.cause = EIO;
        }
        const gf_status status = gf_outputs_commit(outputs, 3, &error);
        if (call == 0)
            memcpy(all, calls, sizeof all);
        close_all(outputs, 3);
        assert_int_equal(count_files(false), status == GF_OK ? 3 : 2);
        for (int i = 1; i < 3; i++)
            assert_bytes(in_folder(names[i]), status == GF_OK ? names[i] : "old",
                         status == GF_OK ? 1 : 3);
        if (status != GF_OK) {
            failures++;
            assert_message(&error,
                           ": cannot rename the output to its final name: Input/output error");
        }
    }
    /* Some calls are made because another one could not. */
    assert_true(failures >= (named ? 1 : 5));
}

static void say_what_cannot_be_taken_back(void **state) {
    gf_output *outputs[3];
    gf_error error = {0};

    (void)state;
    calls_do.no_exchange = true;
    put_old("a");
    outputs[0] = complete("a", true);
    outputs[1] = complete("b", true);
    outputs[2] = complete("c", false);
    put_old("c");
    assert_int_equal(gf_outputs_commit(outputs, 3, &error), GF_FAILED);
    assert_message(&error, "/c: already exists; use --force to replace it; ");
    assert_message(&error, "/a was already written");
    assert_null(strstr(error.message, "/b was"));
    close_all(outputs, 3);
    assert_bytes(in_folder("a"), "a", 1);
    assert_int_equal(count_files(false), 2);
}

/* Nor is what was there removed, then. */
static void keep_what_cannot_be_taken_back(void **state) {
    gf_output *outputs[2];
    gf_error error = {0};
    char bytes[4] = "";

    (void)state;
    put_old("a");
    outputs[0] = complete("a", true);
    outputs[1] = complete("b", false);
    put_old("b");
    calls_do.fails = 'X';
    calls_do.after = 1;
    calls_do.cause = EIO;
    assert_int_equal(gf_outputs_commit(outputs, 2, &error), GF_FAILED);
    assert_message(&error, "/a was already written; the file that it replaced is now ");
    close_all(outputs, 2);
    assert_bytes(in_folder("a"), "a", 1);
    FILE *kept = fopen(strrchr(error.message, ' ') + 1, "rb");
    assert_non_null(kept);
    assert_int_equal(fread(bytes, 1, sizeof bytes, kept), 3);
    assert_memory_equal(bytes, "old", 3);
    assert_int_equal(fclose(kept), 0);
    assert_int_equal(count_files(false), 3);
}

/* What an output was to replace is gone: it is new, and so taken back. */
static void replace_what_is_gone(void **state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        gf_output *outputs[2];
        gf_error error = {0};
        put_old("a");
        outputs[0] = complete("a", true);
        outputs[1] = complete("b", false);
        assert_int_equal(unlink(in_folder("a")), 0);
        if (fails)
            put_old("b");
        assert_int_equal(gf_outputs_commit(outputs, 2, &error), fails ? GF_FAILED : GF_OK);
        assert_null(strstr(error.message, "before that"));
        close_all(outputs, 2);
        assert_int_equal(count_files(false), fails ? 1 : 2);
        assert_bytes(in_folder(fails ? "b" : "a"), fails ? "old" : "a", fails ? 3 : 1);
        (void)count_files(true);
    }
}

/* A folder that took the target's name stays, whether the output is the last or not. */
static void do_not_move_folders(void **state) {
    (void)state;
    for (int place = 0; place < 2; place++) {
        gf_output *outputs[2];
        gf_error error = {0};
        put_old("a");
        outputs[place] = complete("a", true);
        outputs[1 - place] = complete("b", true);
        assert_int_equal(unlink(in_folder("a")), 0);
        assert_int_equal(mkdir(in_folder("a"), 0700), 0);
        put_bytes(in_folder("a/in"), "", 0);
        assert_int_equal(gf_outputs_commit(outputs, 2, &error), GF_FAILED);
        assert_message(&error, "/a: cannot rename the output to its final name: Is a directory");
        close_all(outputs, 2);
        assert_int_equal(count_files(false), 1);
        assert_int_equal(unlink(in_folder("a/in")), 0);
        assert_int_equal(rmdir(in_folder("a")), 0);
    }
}

/* A folder where files are made, and neither renamed nor removed (chattr +a). */
static void need_no_temporary_that_would_stay(void **state) {
    gf_output *output;
    gf_error error = {0};

    (void)state;
    put_old("a");
    calls_do.append_only = true;
    assert_no_output(
        in_folder("a"), true, GF_FAILED,
        "/a: its directory is append-only, so files in it cannot be replaced or removed; "
        "write to another directory");
    assert_bytes(in_folder("a"), "old", 3);
    assert_int_equal(count_files(false), 1);
    assert_int_equal(gf_output_open(in_folder("b"), NULL, false, &output, &error),
                     named ? GF_FAILED : GF_OK);
    if (output != NULL)
        commit(output);
    assert_int_equal(count_files(false), named ? 1 : 2);
    /* It appears while its output is written. */
    if (!named) {
        output = complete("c", true);
        put_old("c");
        assert_int_equal(gf_output_commit(output, &error), GF_FAILED);
        assert_message(&error,
                       "/c: cannot rename the output to its final name: Operation not permitted");
        gf_output_close(output);
        assert_int_equal(count_files(false), 3);
    }
}

/* The folder does not say that it is such a one. */
static void name_a_temporary_that_stays(void **state) {
    gf_error error = {0};

    (void)state;
    put_old("a");
    gf_output *output = complete("a", true);
    calls_do.stay = true;
    assert_int_equal(gf_output_commit(output, &error), GF_FAILED);
    assert_message(
        &error,
        "/a: cannot rename the output to its final name: Operation not permitted; cannot "
        "remove the temporary file ");
    const char *last = strrchr(error.message, '/');
    assert_non_null(last);
    assert_int_equal(strncmp(last, "/.a.gpufilter-", 14), 0);
    assert_int_equal(access(in_folder(last + 1), F_OK), 0);
    gf_output_close(output);
    assert_bytes(in_folder("a"), "old", 3);
}

static void replace_both(void) {
    assert_int_equal(unlink(in_folder("a")), 0);
    put_bytes(in_folder("a"), "theirs", 6);
    assert_int_equal(unlink(in_folder("b")), 0);
    put_bytes(in_folder("b"), "theirs", 6);
}

/* What somebody has put there since is not taken away. */
static void keep_what_came_since(void **state) {
    gf_output *outputs[3];
    gf_error error = {0};

    (void)state;
    put_old("b");
    outputs[0] = complete("a", false);
    outputs[1] = complete("b", true);
    outputs[2] = complete("c", false);
    calls_do.fails = named ? 'N' : 'L';
    calls_do.after = named ? 1 : 2;
    calls_do.cause = EEXIST;
    calls_do.meanwhile = replace_both;
    assert_int_equal(gf_outputs_commit(outputs, 3, &error), GF_FAILED);
    assert_message(&error, "/c: already exists");
    close_all(outputs, 3);
    assert_bytes(in_folder("a"), "theirs", 6);
    assert_bytes(in_folder("b"), "theirs", 6);
    assert_int_equal(count_files(false), 2);
}

static int held = -1;

static void look_at_signals(void) {
    sigset_t now;

    (void)pthread_sigmask(SIG_BLOCK, NULL, &now);
    held = sigismember(&now, SIGTERM) + sigismember(&now, SIGINT) + !sigismember(&now, SIGSEGV);
}

static void are_not_parted_by_a_signal(void **state) {
    gf_output *outputs[2];

    (void)state;
    outputs[0] = complete("a", false);
    outputs[1] = complete("b", false);
    calls_do.fails = named ? 'N' : 'L';
    calls_do.after = 1;
    calls_do.meanwhile = look_at_signals;
    assert_int_equal(gf_outputs_commit(outputs, 2, NULL), GF_OK);
    close_all(outputs, 2);
    assert_int_equal(held, 3);
    look_at_signals();
    assert_int_equal(held, 1);
}

int main(void) {
#define BOTH(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        BOTH(appear_together),
        BOTH(are_taken_back),
        BOTH(leave_nothing_whichever_call_fails),
        BOTH(say_what_cannot_be_taken_back),
        BOTH(keep_what_cannot_be_taken_back),
        BOTH(replace_what_is_gone),
        BOTH(do_not_move_folders),
        BOTH(need_no_temporary_that_would_stay),
        BOTH(name_a_temporary_that_stays),
        BOTH(keep_what_came_since),
        BOTH(are_not_parted_by_a_signal),
    };
    const int failed =
        cmocka_run_group_tests_name("without a name", tests, make_folder, remove_folder);

    named = true;
    return failed +
           cmocka_run_group_tests_name("by temporary names", tests, make_folder, remove_folder);
}
