/* Output files: they appear complete or not at all, under the right name, and replace files only
 * with --force. Each test runs with unnamed files (O_TMPFILE) and with temporary names. */
#include "output_util.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Return the number of visible files that belong to count unfinished outputs. */
static int unfinished(int count) {
    return calls_setup.named ? count : 0;
}

TEST(appears_only_when_committed) {
    gf_output *output = open_output(in_directory("a"), false);
    assert_string_equal(gf_output_name(output), in_directory("a"));
    put_output(output, "hello");
    assert_int_equal(access(in_directory("a"), F_OK), -1);
    assert_int_equal(count_files(false), unfinished(1));
    commit(output);
    assert_bytes(in_directory("a"), "hello", 5);
    assert_int_equal(count_files(false), 1);
}

TEST(aborting_leaves_no_temporaries) {
    put_bytes(in_directory("a"), "old", 3);
    gf_output *output = open_output(in_directory("a"), true);
    put_output(output, "new");
    gf_output_close(output);
    assert_bytes(in_directory("a"), "old", 3);
    output = open_output(in_directory("b"), false);
    gf_output_close(output);
    assert_int_equal(count_files(false), 1);
}

TEST(keeps_existing_files_without_force) {
    put_bytes(in_directory("a"), "old", 3);
    assert_no_output(in_directory("a"), false, GF_FAILED,
                     "/a: already exists; use --force to replace it");
    assert_int_equal(count_files(false), 1);
    gf_output *output = open_output(in_directory("a"), true);
    put_output(output, "new!");
    assert_bytes(in_directory("a"), "old", 3);
    commit(output);
    assert_bytes(in_directory("a"), "new!", 4);
    assert_int_equal(count_files(false), 1);
}

/* Create the target while its output is written or, with late, just before the rename. */
static void keep_created(bool late) {
    gf_output *output = open_output(in_directory("a"), false);
    put_output(output, "ours");
    if (late)
        assert_ok(gf_output_prepare(output, &why));
    put_bytes(in_directory("a"), "theirs", 6);
    assert_error(late ? gf_output_commit(output, &why) : gf_output_prepare(output, &why), GF_FAILED,
                 "/a: already exists; use --force to replace it");
    gf_output_close(output);
    assert_bytes(in_directory("a"), "theirs", 6);
    assert_int_equal(count_files(false), 1);
}

TEST(keeps_files_created_during_the_run) {
    keep_created(false);
    empty_directory(NULL);
    keep_created(true);
}

/* Check that a prepared output is complete and has no name yet. */
TEST(prepares_before_it_names) {
    put_bytes(in_directory("a"), "old", 3);
    gf_output *output = open_output(in_directory("a"), true);
    put_output(output, "new");
    assert_ok(gf_output_prepare(output, &why));
    assert_bytes(in_directory("a"), "old", 3);
    assert_int_equal(count_files(false), 1 + unfinished(1));
    gf_output_close(output);
    assert_bytes(in_directory("a"), "old", 3);
    assert_int_equal(count_files(false), 1);
}

#define TWICE "another option or step already writes to it; name another file"

/* Different paths of one file are detected, whether it exists or not. */
TEST(rejects_a_second_output_to_a_file) {
    char dotted[4096];
    assert_int_equal(mkdir(in_directory("sub"), 0700), 0);
    assert_int_equal(symlink("sub", in_directory("other")), 0);
    gf_output *output = open_output(in_directory("sub/a"), false);
    assert_no_output(in_directory("sub/a"), false, GF_USAGE, "/sub/a: " TWICE);
    assert_no_output(in_directory("sub/a"), true, GF_USAGE, TWICE);
    assert_no_output(in_directory("sub/../sub/./a"), false, GF_USAGE, TWICE);
    assert_no_output(in_directory("other/a"), false, GF_USAGE, TWICE);
    gf_output *sibling = open_output(in_directory("a"), false);
    gf_output_close(sibling);
    commit(output);
    /* The file exists now and its output is closed: another output may open it. */
    assert_no_output(in_directory("sub/a"), false, GF_FAILED, "already exists");
    assert_int_equal(symlink("sub/a", in_directory("link")), 0);
    output = open_output(in_directory("link"), true);
    (void)snprintf(dotted, sizeof dotted, "%s/./sub//a", test_directory);
    assert_no_output(dotted, true, GF_USAGE, TWICE);
    assert_no_output(in_directory("link"), true, GF_USAGE, TWICE);
    gf_output_close(output);
    commit(open_output(in_directory("sub/a"), true));
    assert_int_equal(unlink(in_directory("sub/a")), 0);
    assert_int_equal(rmdir(in_directory("sub")), 0);
}

/* Two outputs to one pipe would be mixed. /dev/null accepts any number of outputs. */
TEST(rejects_a_second_output_to_a_pipe) {
    gf_output *outputs[2];
    const int reader = test_pipe_reader(in_directory("pipe"));
    gf_output *pipe = open_output(in_directory("pipe"), false);
    assert_no_output(in_directory("pipe"), false, GF_USAGE, TWICE);
    gf_output_close(pipe);
    close(reader);
    for (int i = 0; i < 2; i++)
        outputs[i] = open_output("/dev/null", false);
    for (int i = 0; i < 2; i++)
        commit(outputs[i]);
    outputs[0] = open_output("-", true);
    assert_no_output("-", true, GF_USAGE, "standard output: " TWICE);
    gf_output_close(outputs[0]);
    outputs[0] = open_output("-", true);
    gf_output_close(outputs[0]);
}

TEST(commits_a_separate_file) {
    gf_output_file *file;
    assert_ok(gf_output_file_open(in_directory("a"), NULL, &file, &why));
    assert_int_equal(access(in_directory("a"), F_OK), -1);
    assert_ok(gf_output_file_write(file, "text", 4, &why));
    assert_ok(gf_output_commit(file, &why));
    gf_output_file_close(file);
    assert_bytes(in_directory("a"), "text", 4);
    assert_int_equal(gf_output_file_open(in_directory("a"), NULL, &file, &why), GF_FAILED);
    assert_null(file);
    gf_output_file_close(file);
    assert_int_equal(count_files(false), 1);
}

TEST(writes_devices_directly) {
    struct stat info;
    gf_output *output = open_output("/dev/null", false);
    assert_false(gf_output_seekable(output));
    put_output(output, "gone");
    commit(output);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

TEST(reports_a_full_disk) {
    static const char text[200000];
    if (access("/dev/full", W_OK) != 0)
        test_skip("/dev/full does not exist");
    gf_output *output = open_output("/dev/full", false);
    put_output(output, "buffered");
    assert_error(gf_output_prepare(output, &why), GF_FAILED,
                 "/dev/full: cannot write: No space left on device");
    gf_output_close(output);
    output = open_output("/dev/full", false);
    assert_error(gf_output_write(output, text, sizeof text, &why), GF_FAILED, "No space left");
    gf_output_close(output);
}

/* Write pieces of odd sizes around the size of the buffer, and one piece at an offset. */
TEST(writes_every_byte) {
    static const size_t pieces[] = {1, 65535, 1, 65536, 0, 65537, 7, 200000, 3, 65535, 65535};
    static unsigned char all[700000];
    size_t used = 0;
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)next_random(&seed);
    gf_output *output = open_output(in_directory("a"), false);
    assert_true(gf_output_seekable(output));
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        assert_ok(gf_output_write(output, all + used, pieces[i], &why));
        used += pieces[i];
    }
    /* A seek first writes the buffer at its own offset. */
    assert_ok(gf_output_seek(output, used + 500, &why));
    assert_ok(gf_output_write(output, all + used + 500, 500, &why));
    assert_ok(gf_output_seek(output, 5, &why));
    assert_ok(gf_output_write(output, "\x00", 1, &why));
    all[5] = 0;
    assert_ok(gf_output_seek(output, used, &why));
    assert_ok(gf_output_write(output, all + used, 500, &why));
    commit(output);
    assert_bytes(in_directory("a"), all, used + 1000);
}

TEST(removes_temporaries_on_a_signal) {
    put_bytes(in_directory("old"), "old", 3);
    gf_output *one = open_output(in_directory("a"), false);
    gf_output *two = open_output(in_directory("old"), true);
    gf_output *done = open_output(in_directory("done"), false);
    put_output(one, "a");
    put_output(two, "b");
    commit(done);
    assert_int_equal(count_files(false), 2 + unfinished(2));
    errno = 42;
    gf_remove_temporaries();
    assert_int_equal(errno, 42);
    assert_int_equal(count_files(false), 2);
    assert_bytes(in_directory("old"), "old", 3);
    gf_output_close(one);
    gf_output_close(two);
    gf_remove_temporaries();
    assert_int_equal(count_files(false), 2);
}

TEST(releases_slots) {
    for (int i = 0; i < 200; i++) {
        gf_output *output = open_output(in_directory("a"), true);
        if (i % 2 == 0)
            commit(output);
        else
            gf_output_close(output);
    }
}

int main(void) {
    return test_main_of_outputs();
}
