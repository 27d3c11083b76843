/* Location and permissions of outputs: links, directories, long names, modes and access control
 * lists. Each test runs with unnamed files (O_TMPFILE) and with temporary names. */
#include "output_util.h"
#include "testing.h"

#include <sys/stat.h>
#include <sys/xattr.h>

TEST(keeps_permissions) {
    struct stat info;
    mode_t mask = umask(022);
    commit(open_output(in_directory("a"), false));
    assert_int_equal(stat(in_directory("a"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0644);
    assert_int_equal(chmod(in_directory("a"), 0606), 0);
    commit(open_output(in_directory("a"), true));
    assert_int_equal(stat(in_directory("a"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0606);
    umask(mask);
}

#define ACL "system.posix_acl_access"

/* Set an access control list in the format of the kernel: owner, user, group, mask and others. */
static void put_acl(const char *path, const char *name, unsigned user) {
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
        test_skip("the file system has no access control lists");
}

/* A replaced file without a list gets none from the default list of its directory. An existing list
 * of a replaced file is kept. */
TEST(keeps_access_control_lists) {
    unsigned char before[256], after[256];
    struct stat info;
    put_bytes(in_directory("a"), "old", 3);
    assert_int_equal(chmod(in_directory("a"), 0640), 0);
    put_bytes(in_directory("b"), "old", 3);
    put_acl(in_directory("b"), ACL, 4);
    put_acl(in_directory(""), "system.posix_acl_default", 6);
    commit(open_output(in_directory("a"), true));
    commit(open_output(in_directory("b"), true));
    assert_int_equal(removexattr(in_directory(""), "system.posix_acl_default"), 0);
    assert_int_equal(stat(in_directory("a"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(getxattr(in_directory("a"), ACL, after, sizeof after), -1);
    put_bytes(in_directory("c"), "old", 3);
    put_acl(in_directory("c"), ACL, 4);
    assert_int_equal(getxattr(in_directory("c"), ACL, before, sizeof before), 44);
    assert_int_equal(getxattr(in_directory("b"), ACL, after, sizeof after), 44);
    assert_memory_equal(before, after, 44);
}

TEST(follows_links) {
    struct stat info;
    put_bytes(in_directory("real"), "old", 3);
    assert_int_equal(symlink("real", in_directory("link")), 0);
    assert_no_output(in_directory("link"), false, GF_FAILED, "already exists");
    gf_output *output = open_output(in_directory("link"), true);
    put_output(output, "new");
    commit(output);
    assert_int_equal(lstat(in_directory("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_bytes(in_directory("real"), "new", 3);
    assert_int_equal(symlink("nowhere", in_directory("dangling")), 0);
    assert_no_output(in_directory("dangling"), true, GF_FAILED, "dangling symbolic link");
    assert_int_equal(count_files(false), 3);
}

TEST(rejects_directories_and_invalid_paths) {
    put_bytes(in_directory("file"), "x", 1);
    assert_no_output(test_directory, true, GF_FAILED, "is a directory");
    assert_no_output(in_directory("none/a.png"), false, GF_FAILED, "directory does not exist");
    assert_no_output(in_directory("none/"), false, GF_FAILED, "is not a file name");
    assert_no_output(in_directory("file/a.png"), false, GF_FAILED, "Not a directory");
    assert_no_output("", false, GF_FAILED, "is not a file name");
    assert_int_equal(count_files(false), 1);
    if (geteuid() != 0) {
        assert_int_equal(chmod(test_directory, 0500), 0);
        assert_no_output(in_directory("a"), false, GF_FAILED, "Permission denied");
        assert_int_equal(chmod(test_directory, 0700), 0);
    }
}

TEST(accepts_the_longest_names) {
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    gf_output *output = open_output(in_directory(name), false);
    put_output(output, "x");
    commit(output);
    assert_bytes(in_directory(name), "x", 1);
}

/* Some file systems limit encrypted names to 143 bytes, and some accept only valid UTF-8. */
TEST(temporary_names_have_whole_characters) {
    const bool before = calls_setup.named;
    char name[161];
    for (int shift = 0; shift < 3; shift++) {
        memset(name, 'n', sizeof name);
        for (int i = shift; i + 3 < (int)sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 3);
        name[sizeof name - 1] = '\0';
        calls_setup.named = true;
        gf_output *output = open_output(in_directory(name), false);
        const char *last = strrchr(gf_output_pending_path(output), '/') + 2;
        const char *end = strstr(last, ".gpufilter-");
        calls_setup.named = before;
        assert_non_null(end);
        assert_true(strlen(last) < 143);
        assert_true(end - last > 60);
        assert_int_equal((end - last - shift) % 3, 0);
        gf_output_close(output);
    }
}

int main(void) {
    return test_main_of_outputs();
}
