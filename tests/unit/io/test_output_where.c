/* Where an output goes, and who may do what with it there: links, folders, long names, modes and
 * lists. Each test is run with files that have no name until they are complete, and with temporary
 * names. */
#include "output_util.h"
#include "testing.h"

#include <sys/stat.h>
#include <sys/xattr.h>

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
        test_skip("the file system has no access lists");
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
    assert_no_output(in_folder("link"), false, GF_FAILED, "already exists");
    gf_output *output = open_output(in_folder("link"), true);
    put_output(output, "new");
    commit(output);
    assert_int_equal(lstat(in_folder("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_bytes(in_folder("real"), "new", 3);
    assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
    assert_no_output(in_folder("dangling"), true, GF_FAILED, "dangling symbolic link");
    assert_int_equal(count_files(false), 3);
}

static void refuses_folders_and_bad_places(void **state) {
    (void)state;
    put_bytes(in_folder("file"), "x", 1);
    assert_no_output(test_folder, true, GF_FAILED, "is a directory");
    assert_no_output(in_folder("none/a.png"), false, GF_FAILED, "directory does not exist");
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
    const bool before = calls_do.named;
    char name[161];

    (void)state;
    for (int shift = 0; shift < 3; shift++) {
        memset(name, 'n', sizeof name);
        for (int i = shift; i + 3 < (int)sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 3);
        name[sizeof name - 1] = '\0';
        calls_do.named = true;
        gf_output *output = open_output(in_folder(name), false);
        const char *last = strrchr(gf_output_pending_path(output), '/') + 2;
        const char *end = strstr(last, ".gpufilter-");
        calls_do.named = before;
        assert_non_null(end);
        assert_true(strlen(last) < 143);
        assert_true(end - last > 60);
        assert_int_equal((end - last - shift) % 3, 0);
        gf_output_close(output);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(keeps_permissions, empty_folder),
        cmocka_unit_test_teardown(keeps_lists_of_who_may, empty_folder),
        cmocka_unit_test_teardown(follows_links, empty_folder),
        cmocka_unit_test_teardown(refuses_folders_and_bad_places, empty_folder),
        cmocka_unit_test_teardown(takes_the_longest_names, empty_folder),
        cmocka_unit_test_teardown(calls_temporaries_by_whole_characters, empty_folder),
    };

    const int failed =
        cmocka_run_group_tests_name("without a name", tests, make_folder, remove_folder);

    calls_do.named = true;
    return failed +
           cmocka_run_group_tests_name("by temporary names", tests, make_folder, remove_folder);
}
