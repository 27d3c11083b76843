/* Commit of several outputs: all get their names, or all replaced files are restored. Each test
 * runs with unnamed files (O_TMPFILE) and with temporary names. */
#include "output_util.h"

#include <pthread.h>
#include <signal.h>

TEST(appear_together) {
    static const char *const names[] = {"a", "b", "c", "d"};
    gf_output *outputs[4];
    put_old("b");
    put_old("d");
    for (int i = 0; i < 4; i++)
        outputs[i] = complete(names[i], true);
    assert_ok(gf_outputs_commit(outputs, 4, &why));
    close_all(outputs, 4);
    for (int i = 0; i < 4; i++)
        assert_bytes(in_directory(names[i]), names[i], 1);
    assert_int_equal(count_files(false), 4);
}

/* The last of five outputs fails. New files are removed; replaced files and inodes are restored. */
TEST(are_rolled_back) {
    static const char *const names[] = {"new", "old", "other", "older", "taken"};
    gf_output *outputs[5];
    put_old("old");
    put_old("older");
    const ino_t before = inode_of("old");
    for (int i = 0; i < 5; i++)
        outputs[i] = complete(names[i], i < 4);
    put_bytes(in_directory("taken"), "theirs", 6);
    assert_error(gf_outputs_commit(outputs, 5, &why), GF_FAILED,
                 "/taken: already exists; use --force to replace it");
    assert_null(strstr(why.message, "before that"));
    close_all(outputs, 5);
    assert_int_equal(inode_of("old"), before);
    assert_bytes(in_directory("old"), "old", 3);
    assert_bytes(in_directory("older"), "old", 3);
    assert_bytes(in_directory("taken"), "theirs", 6);
    assert_int_equal(count_files(false), 3);
}

/* Fail each call once, in order. */
TEST(leave_nothing_after_any_failed_call) {
    static const char *const names[] = {"a", "b", "c"};
    char all[sizeof calls];
    unsigned failures = 0;
    for (unsigned call = 0; call == 0 || call <= strlen(all); call++) {
        gf_output *outputs[3];
        (void)count_files(true);
        (void)begin(state);
        put_old("b");
        put_old("c");
        for (int i = 0; i < 3; i++)
            outputs[i] = complete(names[i], true);
        calls[0] = '\0';
        if (call > 0) {
            calls_setup.fails = (char)(all[call - 1] & ~0x20);
            for (unsigned i = 0; i + 1 < call; i++)
                calls_setup.after += (all[i] & ~0x20) == calls_setup.fails;
            calls_setup.cause = EIO;
        }
        const gf_status status = gf_outputs_commit(outputs, 3, &why);
        if (call == 0)
            memcpy(all, calls, sizeof all);
        close_all(outputs, 3);
        assert_int_equal(count_files(false), status == GF_OK ? 3 : 2);
        for (int i = 1; i < 3; i++)
            assert_bytes(in_directory(names[i]), status == GF_OK ? names[i] : "old",
                         status == GF_OK ? 1 : 3);
        if (status != GF_OK) {
            failures++;
            assert_message(&why,
                           ": cannot rename the output to its final name: Input/output error");
        }
    }
    /* Some calls are fallbacks for calls that failed. */
    assert_true(failures >= (named ? 1 : 5));
}

TEST(report_failed_rollbacks) {
    gf_output *outputs[3];
    calls_setup.no_exchange = true;
    put_old("a");
    outputs[0] = complete("a", true);
    outputs[1] = complete("b", true);
    outputs[2] = complete("c", false);
    put_old("c");
    assert_error(gf_outputs_commit(outputs, 3, &why), GF_FAILED,
                 "/c: already exists; use --force to replace it; ");
    assert_message(&why, "/a was already written");
    assert_null(strstr(why.message, "/b was"));
    close_all(outputs, 3);
    assert_bytes(in_directory("a"), "a", 1);
    assert_int_equal(count_files(false), 2);
}

/* A replaced file that cannot be restored is kept under its temporary name. */
TEST(keep_files_that_cannot_be_restored) {
    gf_output *outputs[2];
    char bytes[4] = "";
    put_old("a");
    outputs[0] = complete("a", true);
    outputs[1] = complete("b", false);
    put_old("b");
    calls_setup.fails = 'X';
    calls_setup.after = 1;
    calls_setup.cause = EIO;
    assert_error(gf_outputs_commit(outputs, 2, &why), GF_FAILED,
                 "/a was already written; the file that it replaced is now ");
    close_all(outputs, 2);
    assert_bytes(in_directory("a"), "a", 1);
    FILE *kept = fopen(strrchr(why.message, ' ') + 1, "rb");
    assert_non_null(kept);
    assert_int_equal(fread(bytes, 1, sizeof bytes, kept), 3);
    assert_memory_equal(bytes, "old", 3);
    assert_int_equal(fclose(kept), 0);
    assert_int_equal(count_files(false), 3);
}

/* The target of a replacement is deleted before the commit. Its output is then new, and a rollback
 * removes it. */
TEST(create_deleted_targets) {
    for (int fails = 0; fails < 2; fails++) {
        gf_output *outputs[2];
        put_old("a");
        outputs[0] = complete("a", true);
        outputs[1] = complete("b", false);
        assert_int_equal(unlink(in_directory("a")), 0);
        if (fails)
            put_old("b");
        assert_int_equal(gf_outputs_commit(outputs, 2, &why), fails ? GF_FAILED : GF_OK);
        assert_null(strstr(why.message, "before that"));
        close_all(outputs, 2);
        assert_int_equal(count_files(false), fails ? 1 : 2);
        assert_bytes(in_directory(fails ? "b" : "a"), fails ? "old" : "a", fails ? 3 : 1);
        (void)count_files(true);
    }
}

/* A directory that now has the name of the target is kept, whether the output is the last or not.
 */
TEST(do_not_move_directories) {
    for (int slot = 0; slot < 2; slot++) {
        gf_output *outputs[2];
        put_old("a");
        outputs[slot] = complete("a", true);
        outputs[1 - slot] = complete("b", true);
        assert_int_equal(unlink(in_directory("a")), 0);
        assert_int_equal(mkdir(in_directory("a"), 0700), 0);
        put_bytes(in_directory("a/in"), "", 0);
        assert_error(gf_outputs_commit(outputs, 2, &why), GF_FAILED,
                     "/a: cannot rename the output to its final name: Is a directory");
        close_all(outputs, 2);
        assert_int_equal(count_files(false), 1);
        assert_int_equal(unlink(in_directory("a/in")), 0);
        assert_int_equal(rmdir(in_directory("a")), 0);
    }
}

/* In an append-only directory (chattr +a), files can be created but neither renamed nor removed. */
TEST(create_no_temporary_that_cannot_be_removed) {
    gf_output *output;
    put_old("a");
    calls_setup.append_only = true;
    assert_no_output(
        in_directory("a"), true, GF_FAILED,
        "/a: its directory is append-only, so files in it cannot be replaced or removed; "
        "write to another directory");
    assert_bytes(in_directory("a"), "old", 3);
    assert_int_equal(count_files(false), 1);
    assert_int_equal(gf_output_open(in_directory("b"), NULL, false, &output, &why),
                     named ? GF_FAILED : GF_OK);
    if (output != NULL)
        commit(output);
    assert_int_equal(count_files(false), named ? 1 : 2);
    /* The target appears while its output is written. */
    if (!named) {
        output = complete("c", true);
        put_old("c");
        assert_error(gf_output_commit(output, &why), GF_FAILED,
                     "/c: cannot rename the output to its final name: Operation not permitted");
        gf_output_close(output);
        assert_int_equal(count_files(false), 3);
    }
}

/* The directory does not report that it is append-only. */
TEST(report_a_temporary_that_cannot_be_removed) {
    put_old("a");
    gf_output *output = complete("a", true);
    calls_setup.keep_names = true;
    assert_error(gf_output_commit(output, &why), GF_FAILED,
                 "/a: cannot rename the output to its final name: Operation not permitted; cannot "
                 "remove the temporary file ");
    const char *last = strrchr(why.message, '/');
    assert_non_null(last);
    assert_int_equal(strncmp(last, "/.a.gpufilter-", 14), 0);
    assert_int_equal(access(in_directory(last + 1), F_OK), 0);
    gf_output_close(output);
    assert_bytes(in_directory("a"), "old", 3);
}

static void replace_both(void) {
    assert_int_equal(unlink(in_directory("a")), 0);
    put_bytes(in_directory("a"), "theirs", 6);
    assert_int_equal(unlink(in_directory("b")), 0);
    put_bytes(in_directory("b"), "theirs", 6);
}

/* A rollback keeps files that another process has created since. */
TEST(keep_files_created_during_the_commit) {
    gf_output *outputs[3];
    put_old("b");
    outputs[0] = complete("a", false);
    outputs[1] = complete("b", true);
    outputs[2] = complete("c", false);
    calls_setup.fails = named ? 'N' : 'L';
    calls_setup.after = named ? 1 : 2;
    calls_setup.cause = EEXIST;
    calls_setup.hook = replace_both;
    assert_error(gf_outputs_commit(outputs, 3, &why), GF_FAILED, "/c: already exists");
    close_all(outputs, 3);
    assert_bytes(in_directory("a"), "theirs", 6);
    assert_bytes(in_directory("b"), "theirs", 6);
    assert_int_equal(count_files(false), 2);
}

static int blocked = -1;

static void count_blocked_signals(void) {
    sigset_t now;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &now);
    blocked = sigismember(&now, SIGTERM) + sigismember(&now, SIGINT) + !sigismember(&now, SIGSEGV);
}

TEST(are_committed_with_signals_blocked) {
    gf_output *outputs[2];
    outputs[0] = complete("a", false);
    outputs[1] = complete("b", false);
    calls_setup.fails = named ? 'N' : 'L';
    calls_setup.after = 1;
    calls_setup.hook = count_blocked_signals;
    assert_ok(gf_outputs_commit(outputs, 2, NULL));
    close_all(outputs, 2);
    assert_int_equal(blocked, 3);
    count_blocked_signals();
    assert_int_equal(blocked, 1);
}

int main(void) {
    return test_main_of_outputs();
}
