/* Outputs: they appear whole or not at all, under the right name, and never over what must stay.
 * Each test is run with files that have no name until they are complete, and with temporary names.
 */
#include "output_calls.h"

#include "io_util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "io/files.h"

/* Files that are there beside the outputs that are under way: those of so many. */
static int unfinished(int count) {
    return calls_do.named ? count : 0;
}

static gf_output *open_output(const char *path, bool force) {
    gf_output *output;
    gf_error error = {0};

    if (gf_output_open(path, force, &output, &error) != GF_OK)
        fail_msg("%s", error.message);
    return output;
}

static void put_output(gf_output *output, const char *text) {
    gf_error error = {0};

    assert_int_equal(gf_output_write(output, text, strlen(text), &error), GF_OK);
}

static void commit(gf_output *output) {
    gf_error error = {0};

    if (gf_output_prepare(output, &error) != GF_OK || gf_output_place(output, &error) != GF_OK)
        fail_msg("%s", error.message);
    gf_output_close(output);
}

static void assert_no_output(const char *path, bool force, gf_status status, const char *part) {
    gf_output *output;
    gf_error error = {0};

    assert_int_equal(gf_output_open(path, force, &output, &error), status);
    assert_null(output);
    assert_message(&error, part);
}

static void appears_only_when_committed(void **state) {
    (void)state;
    gf_output *output = open_output(in_folder("a"), false);
    assert_string_equal(gf_output_name(output), in_folder("a"));
    put_output(output, "hello");
    assert_int_equal(access(in_folder("a"), F_OK), -1);
    assert_int_equal(count_files(false), unfinished(1));
    commit(output);
    assert_bytes(in_folder("a"), "hello", 5);
    assert_int_equal(count_files(false), 1);
}

static void aborting_leaves_no_litter(void **state) {
    (void)state;
    put_bytes(in_folder("a"), "old", 3);
    gf_output *output = open_output(in_folder("a"), true);
    put_output(output, "new");
    gf_output_close(output);
    assert_bytes(in_folder("a"), "old", 3);
    output = open_output(in_folder("b"), false);
    gf_output_close(output);
    assert_int_equal(count_files(false), 1);
}

static void keeps_what_exists_without_force(void **state) {
    (void)state;
    put_bytes(in_folder("a"), "old", 3);
    assert_no_output(in_folder("a"), false, GF_FAILED,
                     "/a: exists already; use --force to replace it");
    assert_int_equal(count_files(false), 1);
    gf_output *output = open_output(in_folder("a"), true);
    put_output(output, "new!");
    assert_bytes(in_folder("a"), "old", 3);
    commit(output);
    assert_bytes(in_folder("a"), "new!", 4);
    assert_int_equal(count_files(false), 1);
}

/* While the output was written, or, with late, in the moment before it is renamed. */
static void keep_what_appeared(bool late) {
    gf_error error = {0};
    gf_output *output = open_output(in_folder("a"), false);
    put_output(output, "ours");
    if (late)
        assert_int_equal(gf_output_prepare(output, &error), GF_OK);
    put_bytes(in_folder("a"), "theirs", 6);
    assert_int_equal(late ? gf_output_place(output, &error) : gf_output_prepare(output, &error),
                     GF_FAILED);
    assert_message(&error, "/a: exists already; use --force to replace it");
    gf_output_close(output);
    assert_bytes(in_folder("a"), "theirs", 6);
    assert_int_equal(count_files(false), 1);
}

static void keeps_what_appeared_meanwhile(void **state) {
    (void)state;
    keep_what_appeared(false);
    empty_folder(NULL);
    keep_what_appeared(true);
}

/* A prepared output is whole, and still has no name. */
static void prepares_before_it_places(void **state) {
    gf_error error = {0};

    (void)state;
    put_bytes(in_folder("a"), "old", 3);
    gf_output *output = open_output(in_folder("a"), true);
    put_output(output, "new");
    assert_int_equal(gf_output_prepare(output, &error), GF_OK);
    assert_bytes(in_folder("a"), "old", 3);
    assert_int_equal(count_files(false), 1 + unfinished(1));
    gf_output_close(output);
    assert_bytes(in_folder("a"), "old", 3);
    assert_int_equal(count_files(false), 1);
}

#define TWICE "is written already by another option; name another file"

/* However the file is called, whether it exists or not. */
static void refuses_to_write_one_file_twice(void **state) {
    char dotted[4096];

    (void)state;
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    assert_int_equal(symlink("sub", in_folder("other")), 0);
    gf_output *output = open_output(in_folder("sub/a"), false);
    assert_no_output(in_folder("sub/a"), false, GF_USAGE, "/sub/a: " TWICE);
    assert_no_output(in_folder("sub/a"), true, GF_USAGE, TWICE);
    assert_no_output(in_folder("sub/../sub/./a"), false, GF_USAGE, TWICE);
    assert_no_output(in_folder("other/a"), false, GF_USAGE, TWICE);
    gf_output *beside = open_output(in_folder("a"), false);
    gf_output_close(beside);
    commit(output);
    /* It is there now, and nobody writes it: the next one may. */
    assert_no_output(in_folder("sub/a"), false, GF_FAILED, "exists already");
    assert_int_equal(symlink("sub/a", in_folder("link")), 0);
    output = open_output(in_folder("link"), true);
    (void)snprintf(dotted, sizeof dotted, "%s/./sub//a", test_folder);
    assert_no_output(dotted, true, GF_USAGE, TWICE);
    assert_no_output(in_folder("link"), true, GF_USAGE, TWICE);
    gf_output_close(output);
    commit(open_output(in_folder("sub/a"), true));
    assert_int_equal(unlink(in_folder("sub/a")), 0);
    assert_int_equal(rmdir(in_folder("sub")), 0);
}

/* Two outputs into one pipe would be mixed; /dev/null takes them all. */
static void refuses_a_pipe_twice(void **state) {
    gf_output *outputs[2];

    (void)state;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    int reader = open(in_folder("pipe"), O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    gf_output *pipe = open_output(in_folder("pipe"), false);
    assert_no_output(in_folder("pipe"), false, GF_USAGE, TWICE);
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

static void finishes_a_file_of_ones_own_once(void **state) {
    gf_output_file *file;
    gf_error error = {0};

    (void)state;
    assert_int_equal(gf_output_file_open(in_folder("a"), NULL, &file, &error), GF_OK);
    assert_int_equal(access(in_folder("a"), F_OK), -1);
    assert_int_equal(gf_output_file_finish(file, "text", 4, &error), GF_OK);
    assert_int_equal(gf_output_file_finish(file, "more", 4, &error), GF_USAGE);
    assert_message(&error, "/a: is finished already");
    gf_output_file_close(file);
    assert_bytes(in_folder("a"), "text", 4);
    assert_int_equal(gf_output_file_open(in_folder("a"), NULL, &file, &error), GF_FAILED);
    assert_null(file);
    gf_output_file_close(file);
    assert_int_equal(count_files(false), 1);
}

static void keeps_permissions(void **state) {
    struct stat info;

    (void)state;
    mode_t mask = umask(022);
    commit(open_output(in_folder("a"), false));
    assert_int_equal(stat(in_folder("a"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0644);
    assert_int_equal(chmod(in_folder("a"), 0606), 0);
    commit(open_output(in_folder("a"), true));
    assert_int_equal(stat(in_folder("a"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0606);
    umask(mask);
}

#define LIST "system.posix_acl_access"

/* An access control list as the system has it: what the owner, a user, the group, anybody of those
 * two at most, and others may do. */
static void put_list(const char *path, const char *name, unsigned user) {
    static const unsigned tags[] = {1, 2, 4, 0x10, 0x20};
    const unsigned may[] = {6, user, 4, 6, 0};
    unsigned char list[4 + 5 * 8] = {2};

    for (int i = 0; i < 5; i++) {
        unsigned char *entry = list + 4 + 8 * i;
        memset(entry, tags[i] == 2 ? 1 : 0xff, 8);
        entry[0] = (unsigned char)tags[i];
        entry[2] = (unsigned char)may[i];
        entry[1] = entry[3] = 0;
    }
    if (setxattr(path, name, list, sizeof list, 0) != 0)
        skip();
}

/* Who is on the list of a folder for new files may not do anything with one that replaces a file
 * without a list; that of the file is kept. */
static void keeps_lists_of_who_may(void **state) {
    unsigned char before[256], after[256];
    struct stat info;

    (void)state;
    put_bytes(in_folder("a"), "old", 3);
    assert_int_equal(chmod(in_folder("a"), 0640), 0);
    put_bytes(in_folder("b"), "old", 3);
    put_list(in_folder("b"), LIST, 4);
    put_list(in_folder(""), "system.posix_acl_default", 6);
    commit(open_output(in_folder("a"), true));
    commit(open_output(in_folder("b"), true));
    assert_int_equal(removexattr(in_folder(""), "system.posix_acl_default"), 0);
    assert_int_equal(stat(in_folder("a"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(getxattr(in_folder("a"), LIST, after, sizeof after), -1);
    put_bytes(in_folder("c"), "old", 3);
    put_list(in_folder("c"), LIST, 4);
    assert_int_equal(getxattr(in_folder("c"), LIST, before, sizeof before), 44);
    assert_int_equal(getxattr(in_folder("b"), LIST, after, sizeof after), 44);
    assert_memory_equal(before, after, 44);
}

static void follows_links(void **state) {
    struct stat info;

    (void)state;
    put_bytes(in_folder("real"), "old", 3);
    assert_int_equal(symlink("real", in_folder("link")), 0);
    assert_no_output(in_folder("link"), false, GF_FAILED, "exists already");
    gf_output *output = open_output(in_folder("link"), true);
    put_output(output, "new");
    commit(output);
    assert_int_equal(lstat(in_folder("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_bytes(in_folder("real"), "new", 3);
    assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
    assert_no_output(in_folder("dangling"), true, GF_FAILED, "symbolic link to nothing");
    assert_int_equal(count_files(false), 3);
}

static void refuses_folders_and_bad_places(void **state) {
    (void)state;
    put_bytes(in_folder("file"), "x", 1);
    assert_no_output(test_folder, true, GF_FAILED, "is a folder");
    assert_no_output(in_folder("none/a.png"), false, GF_FAILED, "folder does not exist");
    assert_no_output(in_folder("none/"), false, GF_FAILED, "is not a file name");
    assert_no_output(in_folder("file/a.png"), false, GF_FAILED, "Not a directory");
    assert_no_output("", false, GF_FAILED, "is not a file name");
    assert_int_equal(count_files(false), 1);
    if (geteuid() != 0) {
        assert_int_equal(chmod(test_folder, 0500), 0);
        assert_no_output(in_folder("a"), false, GF_FAILED, "Permission denied");
        assert_int_equal(chmod(test_folder, 0700), 0);
    }
}

static void takes_the_longest_names(void **state) {
    char name[256];

    (void)state;
    memset(name, 'n', 255);
    name[255] = '\0';
    gf_output *output = open_output(in_folder(name), false);
    put_output(output, "x");
    commit(output);
    assert_bytes(in_folder(name), "x", 1);
}

/* File systems that encrypt names take 143 bytes, some take only UTF-8. */
static void calls_temporaries_by_whole_characters(void **state) {
    const bool named = calls_do.named;
    char name[161];

    (void)state;
    for (int shift = 0; shift < 3; shift++) {
        memset(name, 'n', sizeof name);
        for (int i = shift; i + 3 < (int)sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 3);
        name[sizeof name - 1] = '\0';
        calls_do.named = true;
        gf_output *output = open_output(in_folder(name), false);
        const char *last = strrchr(gf_output_reach(output), '/') + 2;
        const char *end = strstr(last, ".gpufilter-");
        calls_do.named = named;
        assert_non_null(end);
        assert_true(strlen(last) < 143);
        assert_true(end - last > 60);
        assert_int_equal((end - last - shift) % 3, 0);
        gf_output_close(output);
    }
}

static void writes_devices_directly(void **state) {
    struct stat info;

    (void)state;
    gf_output *output = open_output("/dev/null", false);
    assert_false(gf_output_seekable(output));
    put_output(output, "gone");
    commit(output);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

static void reports_a_full_disk(void **state) {
    static const char text[200000];
    gf_error error = {0};

    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    gf_output *output = open_output("/dev/full", false);
    put_output(output, "buffered");
    assert_int_equal(gf_output_prepare(output, &error), GF_FAILED);
    assert_message(&error, "/dev/full: cannot write: No space left on device");
    gf_output_close(output);
    output = open_output("/dev/full", false);
    assert_int_equal(gf_output_write(output, text, sizeof text, &error), GF_FAILED);
    assert_message(&error, "No space left");
    gf_output_close(output);
}

/* Odd pieces around the size of the buffer, and a piece at an offset. */
static void writes_every_byte(void **state) {
    static const size_t pieces[] = {1, 65535, 1, 65536, 0, 65537, 7, 200000, 3, 65535, 65535};
    static unsigned char all[700000];
    size_t used = 0;
    uint32_t seed = 1;
    gf_error error = {0};

    (void)state;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)next_random(&seed);
    gf_output *output = open_output(in_folder("a"), false);
    assert_true(gf_output_seekable(output));
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        assert_int_equal(gf_output_write(output, all + used, pieces[i], &error), GF_OK);
        used += pieces[i];
    }
    assert_int_equal(gf_output_write_at(output, all + used, 1000, used, &error), GF_OK);
    assert_int_equal(gf_output_write_at(output, "\x00", 1, 5, &error), GF_OK);
    all[5] = 0;
    put_output(output, "");
    /* What is in the buffer goes to where it belongs, whatever was written elsewhere. */
    commit(output);
    assert_bytes(in_folder("a"), all, used + 1000);
}

static void removes_temporaries_on_a_signal(void **state) {
    (void)state;
    put_bytes(in_folder("old"), "old", 3);
    gf_output *one = open_output(in_folder("a"), false);
    gf_output *two = open_output(in_folder("old"), true);
    gf_output *done = open_output(in_folder("done"), false);
    put_output(one, "a");
    put_output(two, "b");
    commit(done);
    assert_int_equal(count_files(false), 2 + unfinished(2));
    errno = 42;
    gf_remove_temporaries();
    assert_int_equal(errno, 42);
    assert_int_equal(count_files(false), 2);
    assert_bytes(in_folder("old"), "old", 3);
    gf_output_close(one);
    gf_output_close(two);
    gf_remove_temporaries();
    assert_int_equal(count_files(false), 2);
}

static void gives_slots_back(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        gf_output *output = open_output(in_folder("a"), true);
        if (i % 2 == 0)
            commit(output);
        else
            gf_output_close(output);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(appears_only_when_committed, empty_folder),
        cmocka_unit_test_teardown(aborting_leaves_no_litter, empty_folder),
        cmocka_unit_test_teardown(keeps_what_exists_without_force, empty_folder),
        cmocka_unit_test_teardown(keeps_what_appeared_meanwhile, empty_folder),
        cmocka_unit_test_teardown(prepares_before_it_places, empty_folder),
        cmocka_unit_test_teardown(refuses_to_write_one_file_twice, empty_folder),
        cmocka_unit_test_teardown(refuses_a_pipe_twice, empty_folder),
        cmocka_unit_test_teardown(finishes_a_file_of_ones_own_once, empty_folder),
        cmocka_unit_test_teardown(keeps_permissions, empty_folder),
        cmocka_unit_test_teardown(keeps_lists_of_who_may, empty_folder),
        cmocka_unit_test_teardown(follows_links, empty_folder),
        cmocka_unit_test_teardown(refuses_folders_and_bad_places, empty_folder),
        cmocka_unit_test_teardown(takes_the_longest_names, empty_folder),
        cmocka_unit_test_teardown(calls_temporaries_by_whole_characters, empty_folder),
        cmocka_unit_test_teardown(writes_devices_directly, empty_folder),
        cmocka_unit_test_teardown(reports_a_full_disk, empty_folder),
        cmocka_unit_test_teardown(writes_every_byte, empty_folder),
        cmocka_unit_test_teardown(removes_temporaries_on_a_signal, empty_folder),
        cmocka_unit_test_teardown(gives_slots_back, empty_folder),
    };

    const int failed =
        cmocka_run_group_tests_name("without a name", tests, make_folder, remove_folder);

    calls_do.named = true;
    return failed +
           cmocka_run_group_tests_name("by temporary names", tests, make_folder, remove_folder);
}
