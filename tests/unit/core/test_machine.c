/* Limits of control groups, read below a fake root directory. */
#include <errno.h>
#include <sys/stat.h>

#include "core/machine.h"
#include "io_util.h"

/* Write a file below the root, and create its directories. */
static void put_file(const char *name, const char *text) {
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", test_directory, name);
    for (char *end = path + strlen(test_directory); (end = strchr(end + 1, '/')) != NULL;) {
        *end = 0;
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
        *end = '/';
    }
    put_bytes(path, text, strlen(text));
}

static void remove_tree(void) {
    char command[2048];
    snprintf(command, sizeof command, "rm -rf '%s'/*", test_directory);
    assert_int_equal(system(command), 0);
}

static void assert_limits(uint64_t cores, uint64_t memory) {
    const gf_group_limits limits = gf_group_limits_read(test_directory);
    assert_true(limits.cores == cores);
    assert_true(limits.memory == memory);
    remove_tree();
}

TEST(reads_version_2) {
    assert_limits(UINT64_MAX, UINT64_MAX); /* no files */
    put_file("proc/self/cgroup", "0::/a.slice/b.scope\n");
    put_file("sys/fs/cgroup/a.slice/b.scope/cpu.max", "max 100000\n");
    put_file("sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
    assert_limits(UINT64_MAX, UINT64_MAX);
    put_file("proc/self/cgroup", "0::/a.slice/b.scope\n");
    put_file("sys/fs/cgroup/a.slice/b.scope/cpu.max", "250000 100000\n");
    put_file("sys/fs/cgroup/a.slice/b.scope/memory.max", "1048576\n");
    assert_limits(3, 1048576);
    /* A fraction of a core is one. A container sees its own group as the root. */
    put_file("proc/self/cgroup", "0::/\n");
    put_file("sys/fs/cgroup/cpu.max", "1000 100000\n");
    put_file("sys/fs/cgroup/memory.max", "7\n");
    assert_limits(1, 7);
}

/* The smallest limit applies, of the group and of those that contain it. */
TEST(reads_nested_groups) {
    put_file("proc/self/cgroup", "0::/a/b/c\n");
    put_file("sys/fs/cgroup/a/cpu.max", "400000 100000\n");
    put_file("sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
    put_file("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    put_file("sys/fs/cgroup/a/memory.max", "1000\n");
    put_file("sys/fs/cgroup/a/b/memory.max", "max\n");
    put_file("sys/fs/cgroup/a/b/c/memory.max", "2000\n");
    put_file("sys/fs/cgroup/a/b/d/memory.max", "1\n"); /* a sibling */
    assert_limits(2, 1000);
}

TEST(reads_version_1) {
    put_file("proc/self/cgroup", "9:name=systemd:/x\n4:memory:/m/n\n2:cpu,cpuacct:/c\n0::/\n");
    put_file("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "150000\n");
    put_file("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "50000\n");
    put_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put_file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put_file("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "5000\n");
    put_file("sys/fs/cgroup/memory/m/n/memory.limit_in_bytes", "9223372036854771712\n");
    assert_limits(3, 5000);
    /* The path is that of the host; the container has the controllers at the root. */
    put_file("proc/self/cgroup", "4:memory:/docker/0123\n");
    put_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n");
    assert_limits(UINT64_MAX, 6000);
}

/* Invalid files are no limits. */
TEST(ignores_other_texts) {
    static const char *const groups[] = {"", "\n", "0", "0:", "0::", ":::\n0::/../..\n", "x"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        put_file("proc/self/cgroup", groups[i]);
        put_file("sys/fs/cgroup/cpu.max", "many\n");
        put_file("sys/fs/cgroup/memory.max", "");
        assert_limits(UINT64_MAX, UINT64_MAX);
    }
    put_file("proc/self/cgroup", "0::/\n");
    put_file("sys/fs/cgroup/cpu.max", "5000 0\n");
    assert_limits(UINT64_MAX, UINT64_MAX);
}

/* The defaults follow the limits of this process. */
TEST(defaults_follow_the_limits) {
    const gf_group_limits limits = gf_group_limits_read("");
    assert_true(gf_cores() >= 1 && gf_cores() <= limits.cores);
    assert_true(gf_default_memory() >= 1 && gf_default_memory() <= GF_DEFAULT_MAX_MEMORY);
    assert_true(gf_default_memory() == GF_DEFAULT_MAX_MEMORY ||
                gf_default_memory() == limits.memory / 2);
}

int main(void) {
    return test_main_in_directory();
}
