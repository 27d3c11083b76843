/* Unnamed output files, and the fallback where the system cannot link them. Each test runs with
 * unnamed files (O_TMPFILE) and with temporary names. */
#include "output_util.h"
#include "testing.h"

#include <signal.h>
#include <sys/wait.h>

TEST(are_reachable_before_the_commit) {
    struct stat before;
    gf_output *output = complete("a", false);
    assert_int_equal(stat(gf_output_pending_path(output), &before), 0);
    assert_int_equal(before.st_size, 1);
    assert_int_equal(count_files(false), named);
    assert_ok(gf_output_commit(output, NULL));
    gf_output_close(output);
    struct stat after;
    assert_int_equal(stat(in_directory("a"), &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof after.st_mtim);
    assert_null(gf_output_pending_path(NULL));
}

/* An unnamed file disappears when the process is killed. */
TEST(leave_nothing_when_killed) {
    if (named)
        return; /* unnamed files only */
    int status = 0;
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
    assert_bytes(in_directory("a"), "old", 3);
    assert_int_equal(count_files(false), 1);
}

TEST(use_temporary_names_without_proc) {
    calls_setup.no_proc = true;
    gf_output *output = complete("a", false);
    assert_int_equal(count_files(false), 1);
    assert_ok(gf_output_commit(output, NULL));
    gf_output_close(output);
    assert_bytes(in_directory("a"), "a", 1);
}

/* The system creates an unnamed file but cannot link it: AppArmor, FUSE, some file systems. */
TEST(are_copied_if_they_cannot_be_linked) {
    static const int causes[] = {EPERM, EACCES, EXDEV, EOPNOTSUPP, ENOSYS, EINVAL, ENOENT};
    static const char *const names[] = {"a", "b", "c"};
    struct stat made, info;
    for (size_t k = 0; k < 2 * sizeof causes / sizeof *causes; k++) {
        const bool fails = k % 2 != 0;
        gf_output *outputs[3];
        put_old("a");
        assert_int_equal(chmod(in_directory("a"), 0604), 0);
        const ino_t before = inode_of("a");
        for (int i = 0; i < 3; i++)
            outputs[i] = complete(names[i], i < 2);
        assert_int_equal(stat(gf_output_pending_path(outputs[0]), &made), 0);
        if (fails)
            put_old("c");
        calls_setup.link_error = causes[k / 2];
        const gf_status status = gf_outputs_commit(outputs, 3, &why);
        assert_int_equal(status, fails ? GF_FAILED : GF_OK);
        if (fails)
            assert_message(&why, "/c: already exists");
        assert_null(strstr(why.message, "before that"));
        close_all(outputs, 3);
        assert_int_equal(count_files(false), fails ? 2 : 3);
        assert_int_equal(stat(in_directory("a"), &info), 0);
        assert_int_equal(info.st_mode & 07777, 0604);
        assert_int_equal(info.st_ino == before, fails);
        if (!fails)
            assert_memory_equal(&info.st_mtim, &made.st_mtim, sizeof info.st_mtim);
        for (int i = 0; i < 3; i++)
            if (!fails || i != 1)
                assert_bytes(in_directory(names[i]), fails ? "old" : names[i], fails ? 3 : 1);
        (void)count_files(true);
        (void)begin(state);
    }
}

/* The fallback copies more than one buffer and syncs the copy. If that fails, no file is left. */
TEST(are_copied_completely) {
    if (named)
        return; /* unnamed files only */
    static const unsigned char bytes[200000] = {[70000] = 7, [199999] = 9};
    for (int fails = 0; fails < 2; fails++) {
        put_old("a");
        gf_output *output = open_as("a", true, GF_SYNC_REPLACING);
        assert_ok(gf_output_write(output, bytes, sizeof bytes, &why));
        assert_ok(gf_output_prepare(output, &why));
        calls[0] = '\0';
        calls_setup.link_error = EPERM;
        calls_setup.fails = fails ? 'D' : 0;
        calls_setup.cause = ENOSPC;
        assert_int_equal(gf_output_commit(output, &why), fails ? GF_FAILED : GF_OK);
        gf_output_close(output);
        assert_string_equal(calls, fails ? "ld" : "lDR");
        if (fails) {
            assert_message(
                &why, "/a: cannot rename the output to its final name: No space left on device");
            assert_bytes(in_directory("a"), "old", 3);
        } else {
            assert_bytes(in_directory("a"), bytes, sizeof bytes);
        }
        assert_int_equal(count_files(true), 1);
        (void)begin(state);
    }
}

int main(void) {
    return test_main_of_outputs();
}
