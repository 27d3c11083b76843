/* The sandbox: allowed work runs, other work is stopped; without a sandbox, no decoder runs. */
#define _GNU_SOURCE /* syscall */

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "io/stb/sandbox.h"

#include "sandbox_util.h"

/* ---- work functions -------------------------------------------------------------------------- */

static void leaves_early(void *context) {
    succeeds(context);
    gf_sandbox_exit(0);
    shared->survived = 1;
}

__attribute__((no_sanitize("address"))) static int deep(volatile int *above) {
    volatile int here[1024];
    here[0] = above[0] + 1;
    return here[0] < 0 ? 0 : deep(here) + here[0];
}

typedef enum deed {
    OPEN_A_FILE,
    READ_A_FILE,
    PRINT,
    CONNECT,
    FORK,
    RUN_A_PROGRAM,
    KILL_THE_PARENT,
    TRACE_THE_PARENT,
    ALLOCATE_WITHOUT_END,
    WAIT,
    WRITE_NOWHERE,
    CALL_WITHOUT_END,
    REPORT_NO_SANDBOX,
    DEEDS
} deed;

typedef struct attempt {
    deed deed;
    pid_t parent;
    const char *victim; /* path of a file to create */
} attempt;

/* Try what the sandbox forbids. WRITE_NOWHERE writes also under sanitizers. */
__attribute__((no_sanitize("address", "undefined"))) static void misbehaves(void *context) {
    const attempt *try = context;
    char *const arguments[] = {(char *)(uintptr_t) "true", NULL};
    volatile uintptr_t nowhere = 8;
    volatile int first = 0;
    char c;
    shared->reached = 1;
    switch (try->deed) {
    case OPEN_A_FILE:
        (void)open(try->victim, O_CREAT | O_WRONLY, 0600);
        break;
    case READ_A_FILE:
        shared->survived = read(open("/etc/passwd", O_RDONLY), &c, 1) == 1;
        break;
    case PRINT:
        shared->survived = write(1, "I was here\n", 11) == 11;
        break;
    case CONNECT:
        (void)socket(AF_INET, SOCK_STREAM, 0);
        break;
    case FORK:
        (void)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
        break;
    case RUN_A_PROGRAM:
        (void)execv("/bin/true", arguments);
        break;
    case KILL_THE_PARENT:
        (void)kill(try->parent, SIGKILL);
        break;
    case TRACE_THE_PARENT:
        (void)ptrace(PTRACE_ATTACH, try->parent, NULL, NULL);
        break;
    case ALLOCATE_WITHOUT_END:
        for (unsigned char *block;
             (block = mmap(NULL, (size_t)1 << 24, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED;)
            memset(block, 1, (size_t)1 << 24);
        break;
    case WAIT:
        (void)pause();
        break;
    case WRITE_NOWHERE:
        *(volatile int *)nowhere = 1;
        break;
    case CALL_WITHOUT_END:
        shared->survived = deep(&first);
        break;
    default: /* REPORT_NO_SANDBOX */
        gf_sandbox_exit(EINVAL);
    }
    shared->survived = 1;
}

/* Write to the memory of another image or of an output. */
__attribute__((no_sanitize("address", "undefined"))) static void writes_a_byte(void *context) {
    shared->reached = 1;
    *(volatile unsigned char *)context = 1;
    shared->survived = 1;
}

__attribute__((no_sanitize("address", "undefined"))) static void reads_a_byte(void *context) {
    shared->reached = 1;
    shared->survived = *(volatile unsigned char *)context + 1;
}

/* Write past the shared memory: the next page is not mapped. */
__attribute__((no_sanitize("address"))) static void writes_past_its_memory(void *context) {
    volatile unsigned char *bytes = context;
    shared->reached = 1;
    for (size_t i = memory.bytes - 1; i <= memory.bytes; i++)
        bytes[i] = 1;
    shared->survived = 1;
}

/* ---- results --------------------------------------------------------------------------------- */

TEST(runs_allowed_work) {
    int mine = 5;
    assert_int_equal(run(succeeds, &mine, 60), GF_SANDBOX_DONE);
    assert_int_equal(shared->counter, 42);
    assert_int_equal(mine, 5);
    assert_int_equal(run(leaves_early, &mine, 60), GF_SANDBOX_DONE);
    assert_int_equal(shared->counter, 42);
}

TEST(stops_forbidden_work) {
    attempt try = {.parent = getpid(), .victim = in_directory("victim")};
    for (; try.deed < DEEDS; try.deed++)
        if (run(misbehaves, &try, 60) != GF_SANDBOX_STOPPED)
            fail_msg("deed %d was not stopped", (int)try.deed);
    assert_int_equal(run(aborts, NULL, 60), GF_SANDBOX_STOPPED);
    assert_int_equal(count_files(false), 0);
}

TEST(stops_writes_past_the_memory) {
    assert_int_equal(run(writes_past_its_memory, memory.base, 60), GF_SANDBOX_STOPPED);
    assert_int_equal(memory.base[memory.bytes - 1], 1);
}

/* Check that the child cannot access other shared memory, of decoders or files. */
TEST(has_no_other_shared_memory) {
    const size_t bytes = 16 * (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *maps[12];
    const int file = open(in_directory("mapped"), O_CREAT | O_RDWR, 0600);
    assert_int_equal(ftruncate(file, (off_t)bytes), 0);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        maps[i] = i % 2 == 0 ? gf_sandbox_map(bytes)
                             : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        assert_true(maps[i] != NULL && maps[i] != MAP_FAILED);
    }
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        unsigned char *at = maps[i] + (i % 3 == 0 ? bytes - 1 : 0);
        assert_int_equal(run(writes_a_byte, at, 60), GF_SANDBOX_STOPPED);
        assert_int_equal(run(reads_a_byte, at, 60), GF_SANDBOX_STOPPED);
        assert_int_equal(*at, 0);
    }
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        gf_sandbox_unmap(maps[i], bytes);
    (void)close(file);
}

TEST(stops_endless_work) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(run(never_ends, NULL, 1), GF_SANDBOX_TIME);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_in_range(end.tv_sec - begin.tv_sec, 0, 60);
}

/* ---- systems without a sandbox --------------------------------------------------------------- */

/* Install a filter: a system call with this first argument fails from now on. */
static int make_call_fail(uint32_t number, uint32_t argument, uint32_t cause) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | cause),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0;
}

/* In a child process, check that an image is rejected with `part` in the message, and is decoded
 * with no_sandbox. Return 0, or the number of the failed step. */
static int open_without(uint32_t number, uint32_t argument, uint32_t cause, const char *part) {
    const gf_limits trusting = {.no_sandbox = true};
    gf_source *source;
    int status;
    const pid_t child = fork();
    if (child == 0) {
        if (make_call_fail(number, argument, cause) != 0)
            _exit(10);
        if (gf_source_open(in_directory("x.bmp"), NULL, &source, &why) != GF_FAILED)
            _exit(11);
        if (strstr(why.message, part) == NULL || strstr(why.message, "x.bmp: ") == NULL)
            _exit(12);
        if (children_left())
            _exit(13);
        if (gf_source_open(in_directory("x.bmp"), &trusting, &source, &why) != GF_OK)
            _exit(14);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

TEST(rejects_images_without_a_sandbox) {
    const gf_format format = {5, 3, 3, GF_U8, false};
    unsigned char *pixels = random_pixels(&format, 1);
    assert_ok(save_image(in_directory("x.bmp"), &format, pixels, NULL, NULL, 1));
    free(pixels);
    assert_int_equal(
        open_without(SYS_prctl, PR_SET_SECCOMP, EINVAL,
                     "no sandbox available (Invalid argument); convert it to PNG, or use "
                     "--no-sandbox if you trust the file"),
        0);
    assert_int_equal(open_without(SYS_prctl, PR_SET_NO_NEW_PRIVS, EPERM, "--no-sandbox"), 0);
    assert_int_equal(open_without(SYS_clone, 0, EAGAIN,
                                  "cannot create a child process: Resource temporarily "
                                  "unavailable"),
                     0);
    /* Older systems have no close_range: files are closed one by one. */
    assert_int_equal(open_without(SYS_close_range, 0, ENOSYS, ""), 11);
}

int main(void) {
    return test_main(&(test_fixture){map_shared, unmap_shared, .after = empty_directory});
}
