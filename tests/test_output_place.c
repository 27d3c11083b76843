/* Outputs that belong together get their names together, or what was there is there again; and what
 * is to be on the disk is, before it has its name. Each test is run with files that have no name
 * until then, and with temporary names. */
#include "output_calls.h"

#include "io_util.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "io/files.h"

static bool named; /* no file is without a name */

static int begin(void **state) {
    (void)state;
    calls_reset();
    calls_do.named = named;
    return 0;
}

static int end(void **state) {
    calls_reset();
    return empty_folder(state);
}

static gf_output *open_as(const char *name, bool force, gf_sync sync) {
    gf_output *output;
    gf_error error = {0};

    if (gf_output_open(in_folder(name), force, &output, &error) != GF_OK ||
        gf_output_set_sync(output, sync, &error) != GF_OK)
        fail_msg("%s", error.message);
    return output;
}

/* A complete output with its name as text. */
static gf_output *complete(const char *name, bool force) {
    gf_output *output = open_as(name, force, GF_SYNC_NEVER);
    gf_error error = {0};

    assert_int_equal(gf_output_write(output, name, strlen(name), &error), GF_OK);
    if (gf_output_prepare(output, &error) != GF_OK)
        fail_msg("%s", error.message);
    return output;
}

static void close_all(gf_output **outputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        gf_output_close(outputs[i]);
}

static void put_old(const char *name) {
    put_bytes(in_folder(name), "old", 3);
}

static ino_t inode_of(const char *name) {
    struct stat info;

    assert_int_equal(lstat(in_folder(name), &info), 0);
    return info.st_ino;
}

/* ---- together -------------------------------------------------------------------------------- */

static void appear_together(void **state) {
    static const char *const names[] = {"a", "b", "c", "d"};
    gf_output *outputs[4];
    gf_error error = {0};

    (void)state;
    put_old("b");
    put_old("d");
    for (int i = 0; i < 4; i++)
        outputs[i] = complete(names[i], true);
    assert_int_equal(gf_outputs_place(outputs, 4, &error), GF_OK);
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
    assert_int_equal(gf_outputs_place(outputs, 5, &error), GF_FAILED);
    assert_message(&error, "/taken: exists already; use --force to replace it");
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
        const gf_status status = gf_outputs_place(outputs, 3, &error);
        if (call == 0)
            memcpy(all, calls, sizeof all);
        close_all(outputs, 3);
        assert_int_equal(count_files(false), status == GF_OK ? 3 : 2);
        for (int i = 1; i < 3; i++)
            assert_bytes(in_folder(names[i]), status == GF_OK ? names[i] : "old",
                         status == GF_OK ? 1 : 3);
        if (status != GF_OK) {
            failures++;
            assert_message(&error, ": cannot put the output in place: Input/output error");
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
    assert_int_equal(gf_outputs_place(outputs, 3, &error), GF_FAILED);
    assert_message(&error, "/c: exists already; use --force to replace it; ");
    assert_message(&error, "/a was put in place before that");
    assert_null(strstr(error.message, "/b was"));
    close_all(outputs, 3);
    assert_bytes(in_folder("a"), "a", 1);
    assert_int_equal(count_files(false), 2);
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
        assert_int_equal(gf_outputs_place(outputs, 2, &error), fails ? GF_FAILED : GF_OK);
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
        assert_int_equal(gf_outputs_place(outputs, 2, &error), GF_FAILED);
        assert_message(&error, "/a: cannot put the output in place: Is a directory");
        close_all(outputs, 2);
        assert_int_equal(count_files(false), 1);
        assert_int_equal(unlink(in_folder("a/in")), 0);
        assert_int_equal(rmdir(in_folder("a")), 0);
    }
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
    assert_int_equal(gf_outputs_place(outputs, 3, &error), GF_FAILED);
    assert_message(&error, "/c: exists already");
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
    assert_int_equal(gf_outputs_place(outputs, 2, NULL), GF_OK);
    close_all(outputs, 2);
    assert_int_equal(held, 3);
    look_at_signals();
    assert_int_equal(held, 1);
}

/* ---- on the disk ----------------------------------------------------------------------------- */

/* What is called for an output of this name, opened like this. */
static void assert_calls(const char *name, bool force, gf_sync sync, const char *nameless,
                         const char *temporary) {
    gf_error error = {0};
    gf_output *output = open_as(name, force, sync);

    calls[0] = '\0';
    if (gf_output_prepare(output, &error) != GF_OK || gf_output_place(output, &error) != GF_OK)
        fail_msg("%s", error.message);
    gf_output_close(output);
    assert_string_equal(calls, named ? temporary : nameless);
}

static void sync_before_they_appear(void **state) {
    (void)state;
    assert_calls("a", false, GF_SYNC_REPLACING, "L", "N");
    assert_calls("a", true, GF_SYNC_REPLACING, "DLR", "DR");
    assert_calls("a", true, GF_SYNC_NEVER, "LR", "R");
    assert_calls("a", true, GF_SYNC_ALWAYS, "FLRF", "FRF");
    assert_calls("b", true, GF_SYNC_REPLACING, "L", "N");
    assert_calls("c", false, GF_SYNC_ALWAYS, "FLF", "FNF");
    assert_calls("d", false, GF_SYNC_NEVER, "L", "N");
}

/* It came while the output was written, and just before it was to have its name. */
static void sync_before_they_replace_what_appeared(void **state) {
    gf_error error = {0};

    (void)state;
    for (int late = 0; late < 2; late++) {
        gf_output *output = open_as("a", true, GF_SYNC_REPLACING);
        if (late)
            assert_int_equal(gf_output_prepare(output, &error), GF_OK);
        put_old("a");
        calls[0] = '\0';
        if (!late)
            assert_int_equal(gf_output_prepare(output, &error), GF_OK);
        assert_int_equal(gf_output_place(output, &error), GF_OK);
        gf_output_close(output);
        assert_bytes(in_folder("a"), "", 0);
        if (late && !named)
            assert_string_equal(calls, "lDLR");
        else if (!late)
            assert_string_equal(calls, named ? "DnR" : "DlLR");
        assert_int_equal(unlink(in_folder("a")), 0);
    }
}

static void tell_that_the_disk_fails(void **state) {
    static const char fails[] = {'D', 'F', 'F'};
    static const char *const messages[] = {"/a: cannot write: Input/output error",
                                           "/a: cannot write: Input/output error",
                                           "/a: is complete, but may not be there after a power "
                                           "failure: cannot sync its folder: Input/output error"};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        gf_error error = {0};
        put_old("a");
        gf_output *output = open_as("a", true, i == 0 ? GF_SYNC_REPLACING : GF_SYNC_ALWAYS);
        calls[0] = '\0';
        calls_do.fails = fails[i];
        calls_do.after = i / 2;
        calls_do.cause = EIO;
        gf_status status = gf_output_prepare(output, &error);
        assert_int_equal(status, i < 2 ? GF_FAILED : GF_OK);
        if (status == GF_OK)
            status = gf_output_place(output, &error);
        assert_int_equal(status, GF_FAILED);
        assert_message(&error, messages[i]);
        gf_output_close(output);
        assert_bytes(in_folder("a"), "old", i < 2 ? 3 : 0);
        assert_int_equal(count_files(false), 1);
    }
}

/* A pipe has no disk. */
static void sync_no_pipe(void **state) {
    gf_error error = {0};

    (void)state;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    const int reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    gf_output *output = open_as("pipe", false, GF_SYNC_ALWAYS);
    assert_int_equal(gf_output_prepare(output, &error), GF_OK);
    assert_int_equal(gf_output_place(output, &error), GF_OK);
    gf_output_close(output);
    assert_string_equal(calls, "f");
    close(reader);
}

/* ---- without a name -------------------------------------------------------------------------- */

static void are_reached_until_they_appear(void **state) {
    struct stat before;

    (void)state;
    gf_output *output = complete("a", false);
    assert_int_equal(stat(gf_output_reach(output), &before), 0);
    assert_int_equal(before.st_size, 1);
    assert_int_equal(count_files(false), named);
    assert_int_equal(gf_output_place(output, NULL), GF_OK);
    gf_output_close(output);
    struct stat after;
    assert_int_equal(stat(in_folder("a"), &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof after.st_mtim);
    assert_null(gf_output_reach(NULL));
}

/* Killed at any time, what has no name leaves none. */
static void leave_nothing_when_killed(void **state) {
    int status = 0;

    (void)state;
    if (named)
        skip();
    put_old("a");
    const pid_t child = fork();
    if (child == 0) {
        gf_output *outputs[] = {complete("a", true), complete("b", false),
                                open_as("c", false, GF_SYNC_ALWAYS)};
        (void)kill(getpid(), SIGKILL);
        close_all(outputs, 3);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_bytes(in_folder("a"), "old", 3);
    assert_int_equal(count_files(false), 1);
}

static void have_a_name_without_proc(void **state) {
    (void)state;
    calls_do.no_proc = true;
    gf_output *output = complete("a", false);
    assert_int_equal(count_files(false), 1);
    assert_int_equal(gf_output_place(output, NULL), GF_OK);
    gf_output_close(output);
    assert_bytes(in_folder("a"), "a", 1);
}

/* The system made the file, and then gives it no name: AppArmor, some file systems. */
static void get_a_name_where_they_may_not(void **state) {
    static const char *const names[] = {"a", "b", "c"};
    struct stat made, info;

    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        gf_output *outputs[3];
        gf_error error = {0};
        put_old("a");
        assert_int_equal(chmod(in_folder("a"), 0604), 0);
        const ino_t before = inode_of("a");
        for (int i = 0; i < 3; i++)
            outputs[i] = complete(names[i], i < 2);
        assert_int_equal(stat(gf_output_reach(outputs[0]), &made), 0);
        if (fails)
            put_old("c");
        calls_do.stay_nameless = true;
        const gf_status status = gf_outputs_place(outputs, 3, &error);
        assert_int_equal(status, fails ? GF_FAILED : GF_OK);
        if (fails)
            assert_message(&error, "/c: exists already");
        assert_null(strstr(error.message, "before that"));
        close_all(outputs, 3);
        assert_int_equal(count_files(false), fails ? 2 : 3);
        assert_int_equal(stat(in_folder("a"), &info), 0);
        assert_int_equal(info.st_mode & 07777, 0604);
        assert_int_equal(info.st_ino == before, fails);
        if (!fails)
            assert_memory_equal(&info.st_mtim, &made.st_mtim, sizeof info.st_mtim);
        for (int i = 0; i < 3; i++)
            if (!fails || i != 1)
                assert_bytes(in_folder(names[i]), fails ? "old" : names[i], fails ? 3 : 1);
        (void)count_files(true);
        (void)begin(state);
    }
}

/* More than the copy's buffer holds, synced again, and nothing is left where that fails. */
static void are_copied_whole(void **state) {
    static const unsigned char bytes[200000] = {[70000] = 7, [199999] = 9};

    (void)state;
    if (named)
        skip();
    for (int fails = 0; fails < 2; fails++) {
        gf_error error = {0};
        put_old("a");
        gf_output *output = open_as("a", true, GF_SYNC_REPLACING);
        assert_int_equal(gf_output_write(output, bytes, sizeof bytes, &error), GF_OK);
        assert_int_equal(gf_output_prepare(output, &error), GF_OK);
        calls[0] = '\0';
        calls_do.stay_nameless = true;
        calls_do.fails = fails ? 'D' : 0;
        calls_do.cause = ENOSPC;
        assert_int_equal(gf_output_place(output, &error), fails ? GF_FAILED : GF_OK);
        gf_output_close(output);
        assert_string_equal(calls, fails ? "ld" : "lDR");
        if (fails) {
            assert_message(&error, "/a: cannot put the output in place: No space left on device");
            assert_bytes(in_folder("a"), "old", 3);
        } else {
            assert_bytes(in_folder("a"), bytes, sizeof bytes);
        }
        assert_int_equal(count_files(true), 1);
        (void)begin(state);
    }
}

int main(void) {
#define BOTH(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        BOTH(appear_together),
        BOTH(are_taken_back),
        BOTH(leave_nothing_whichever_call_fails),
        BOTH(say_what_cannot_be_taken_back),
        BOTH(replace_what_is_gone),
        BOTH(do_not_move_folders),
        BOTH(keep_what_came_since),
        BOTH(are_not_parted_by_a_signal),
        BOTH(sync_before_they_appear),
        BOTH(sync_before_they_replace_what_appeared),
        BOTH(tell_that_the_disk_fails),
        BOTH(sync_no_pipe),
        BOTH(are_reached_until_they_appear),
        BOTH(leave_nothing_when_killed),
        BOTH(have_a_name_without_proc),
        BOTH(get_a_name_where_they_may_not),
        BOTH(are_copied_whole),
    };
    const int failed =
        cmocka_run_group_tests_name("without a name", tests, make_folder, remove_folder);

    named = true;
    return failed +
           cmocka_run_group_tests_name("by temporary names", tests, make_folder, remove_folder);
}
