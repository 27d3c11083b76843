#define _GNU_SOURCE /* syscall */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "io/sandbox.h"
#include "io/sandbox_enter.h"
#include "io_util.h"

/* What a child and its parent both see. */
static struct shared {
    volatile int reached;      /* the work began */
    volatile int survived;     /* what it should not have lived through */
    volatile uint64_t counter; /* while it runs */
} * shared;
static gf_sandbox_memory memory; /* which is there */

static char victim[2048]; /* a file that nobody may make */

/* The page behind it is nobody's: otherwise chance would put something there. */
static int map_shared(void **state) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    memory.bytes = 2 * page;
    memory.base = gf_sandbox_map(memory.bytes + page);
    shared = (struct shared *)(void *)memory.base;
    return make_folder(state) != 0 || shared == NULL ||
           mprotect(memory.base + memory.bytes, page, PROT_NONE) != 0;
}

static int unmap_shared(void **state) {
    gf_sandbox_unmap(memory.base, memory.bytes + (size_t)sysconf(_SC_PAGESIZE));
    return remove_folder(state);
}

/* ---- works ----------------------------------------------------------------------------------- */

static void does_its_work(void *context) {
    *(int *)context += 1; /* a copy */
    shared->reached = 1;
    shared->counter = 42;
}

static void leaves_early(void *context) {
    does_its_work(context);
    gf_sandbox_leave();
    shared->survived = 1;
}

static void opens_a_file(void *context) {
    (void)context;
    shared->reached = 1;
    (void)open(victim, O_CREAT | O_WRONLY, 0600);
    shared->survived = 1;
}

static void reads_a_file(void *context) {
    char c;
    (void)context;
    shared->reached = 1;
    shared->survived = read(open("/etc/passwd", O_RDONLY), &c, 1) == 1;
    shared->survived = 1;
}

static void prints(void *context) {
    (void)context;
    shared->reached = 1;
    shared->survived = write(1, "I was here\n", 11) == 11;
    shared->survived = 1;
}

static void connects(void *context) {
    (void)context;
    shared->reached = 1;
    (void)socket(AF_INET, SOCK_STREAM, 0);
    shared->survived = 1;
}

static void forks(void *context) {
    (void)context;
    shared->reached = 1;
    (void)gf_sandbox_fork();
    shared->survived = 1;
}

static void runs_a_program(void *context) {
    char *const arguments[] = {(char *)(uintptr_t) "true", NULL};
    (void)context;
    shared->reached = 1;
    (void)execv("/bin/true", arguments);
    shared->survived = 1;
}

static void kills_its_parent(void *context) {
    shared->reached = 1;
    (void)kill(*(pid_t *)context, SIGKILL);
    shared->survived = 1;
}

static void traces_its_parent(void *context) {
    shared->reached = 1;
    (void)ptrace(PTRACE_ATTACH, *(pid_t *)context, NULL, NULL);
    shared->survived = 1;
}

static void allocates_without_end(void *context) {
    (void)context;
    shared->reached = 1;
    for (;;) {
        unsigned char *block =
            mmap(NULL, (size_t)1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            break;
        memset(block, 1, (size_t)1 << 24);
    }
    shared->survived = 1;
}

static void waits(void *context) {
    (void)context;
    shared->reached = 1;
    (void)pause();
    shared->survived = 1;
}

static void aborts(void *context) {
    (void)context;
    shared->reached = 1;
    abort();
}

/* As the sanitizers have it, too. */
__attribute__((no_sanitize("address", "undefined"))) static void writes_nowhere(void *context) {
    volatile uintptr_t nowhere = 8;
    (void)context;
    shared->reached = 1;
    *(volatile int *)nowhere = 1;
    shared->survived = 1;
}

/* Another image's pixels, or an output. */
__attribute__((no_sanitize("address", "undefined"))) static void writes_a_byte(void *context) {
    shared->reached = 1;
    *(volatile unsigned char *)context = 1;
    shared->survived = 1;
}

__attribute__((no_sanitize("address", "undefined"))) static void reads_a_byte(void *context) {
    shared->reached = 1;
    shared->survived = *(volatile unsigned char *)context + 1;
}

/* The page behind what is shared is not there. */
__attribute__((no_sanitize("address"))) static void writes_past_its_memory(void *context) {
    volatile unsigned char *bytes = context;
    shared->reached = 1;
    for (size_t i = memory.bytes - 1; i <= memory.bytes; i++)
        bytes[i] = 1;
    shared->survived = 1;
}

__attribute__((no_sanitize("address"))) static int deep(volatile int *above) {
    volatile int here[1024];
    here[0] = above[0] + 1;
    return here[0] < 0 ? 0 : deep(here) + here[0];
}

static void calls_itself_without_end(void *context) {
    volatile int first = 0;
    (void)context;
    shared->reached = 1;
    shared->survived = deep(&first) + 1;
}

static void says_that_there_is_no_sandbox(void *context) {
    (void)context;
    shared->reached = 1;
    gf_sandbox_exit(EINVAL);
    shared->survived = 1;
}

static void never_ends(void *context) {
    (void)context;
    shared->reached = 1;
    for (;;)
        shared->counter++;
}

static void computes_for_a_while(void *context) {
    (void)context;
    shared->reached = 1;
    for (volatile uint64_t i = 0; i < UINT64_C(300000000); i++)
        shared->counter = i;
}

/* ---- what becomes of them -------------------------------------------------------------------- */

/* Is any child of ours left, running or dead? */
static bool children_left(void) {
    return waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD;
}

static gf_sandbox_end run(gf_sandbox_work *work, void *context, uint32_t seconds) {
    gf_error error = {0};
    gf_sandbox_end end;

    memset((void *)shared, 0, sizeof *shared);
    if (gf_sandbox_run(work, context, &memory, seconds, "x", &end, &error) != GF_OK)
        fail_msg("%s", error.message);
    assert_int_equal(shared->reached, 1);
    assert_int_equal(shared->survived, 0);
    assert_false(children_left());
    return end;
}

static void lets_work_be_done(void **state) {
    int mine = 5;

    (void)state;
    assert_int_equal(run(does_its_work, &mine, 60), GF_SANDBOX_DONE);
    assert_int_equal(shared->counter, 42);
    assert_int_equal(mine, 5);
    assert_int_equal(run(leaves_early, &mine, 60), GF_SANDBOX_DONE);
    assert_int_equal(shared->counter, 42);
}

static void stops_what_does_harm(void **state) {
    static gf_sandbox_work *const works[] = {opens_a_file,
                                             reads_a_file,
                                             prints,
                                             connects,
                                             forks,
                                             runs_a_program,
                                             kills_its_parent,
                                             traces_its_parent,
                                             allocates_without_end,
                                             waits,
                                             aborts,
                                             writes_nowhere,
                                             calls_itself_without_end,
                                             says_that_there_is_no_sandbox};
    pid_t self = getpid();

    (void)state;
    snprintf(victim, sizeof victim, "%s", in_folder("victim"));
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (run(works[i], &self, 60) != GF_SANDBOX_STOPPED)
            fail_msg("work %zu was not stopped", i);
    }
    assert_int_equal(count_files(false), 0);
}

static void stops_what_writes_past_its_memory(void **state) {
    (void)state;
    assert_int_equal(run(writes_past_its_memory, memory.base, 60), GF_SANDBOX_STOPPED);
    assert_int_equal(memory.base[memory.bytes - 1], 1);
}

/* What others share is not there: neither a decoder's memory nor a file, first page or last. */
static void has_no_other_shared_memory(void **state) {
    const size_t bytes = 16 * (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *maps[12];
    const int file = open(in_folder("mapped"), O_CREAT | O_RDWR, 0600);

    (void)state;
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

static void stops_what_never_ends(void **state) {
    struct timespec begin, end;

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(run(never_ends, NULL, 1), GF_SANDBOX_TIME);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_in_range(end.tv_sec - begin.tv_sec, 0, 60);
}

/* ---- who else is there ----------------------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void on_signal(int number) {
    (void)number;
    handled++;
}

static void reap_all(int number) {
    (void)number;
    handled++;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

/* What a program does with SIGCHLD is its own business. */
static void heeds_nobodys_sigchld(void **state) {
    void (*const ways[])(int) = {SIG_IGN, SIG_DFL, on_signal, reap_all};
    int context = 0;

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct sigaction action = {.sa_handler = ways[i]};
        struct sigaction before;
        handled = 0;
        assert_int_equal(sigaction(SIGCHLD, &action, &before), 0);
        assert_int_equal(run(does_its_work, &context, 60), GF_SANDBOX_DONE);
        assert_int_equal(run(aborts, &context, 60), GF_SANDBOX_STOPPED);
        assert_int_equal(handled, 0);
        assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
    }
}

/* A handler that interrupts system calls: it runs here, not in the child, where it would end it. */
static void waits_on_through_signals(void **state) {
    const struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct sigaction before;

    (void)state;
    handled = 0;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(run(computes_for_a_while, NULL, 60), GF_SANDBOX_DONE);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_in_range(handled, 5, 100000);
}

static void signal_everybody(int number) {
    (void)number;
    (void)kill(0, SIGUSR1);
}

/* As a terminal does, to the process and its children. */
static void hides_from_signals_to_all(void **state) {
    int status;

    (void)state;
    const pid_t group = fork();
    if (group == 0) {
        const struct sigaction often = {.sa_handler = signal_everybody};
        const struct sigaction heard = {.sa_handler = on_signal};
        const struct itimerval time = {{0, 5000}, {0, 5000}};
        gf_sandbox_end end;
        handled = 0;
        if (setpgid(0, 0) != 0 || sigaction(SIGALRM, &often, NULL) != 0 ||
            sigaction(SIGUSR1, &heard, NULL) != 0 || setitimer(ITIMER_REAL, &time, NULL) != 0 ||
            gf_sandbox_run(computes_for_a_while, NULL, &memory, 60, "x", &end, NULL) != GF_OK)
            _exit(10);
        _exit(end != GF_SANDBOX_DONE ? 11 : handled < 5 ? 12 : 0);
    }
    assert_int_equal(waitpid(group, &status, 0), group);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Who is killed leaves nobody behind. */
static void dies_with_its_parent(void **state) {
    gf_sandbox_end end;
    int status;

    (void)state;
    memset((void *)shared, 0, sizeof *shared);
    /* Orphans become our children. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        (void)gf_sandbox_run(never_ends, NULL, &memory, 30, "x", &end, NULL);
        _exit(0);
    }
    while (shared->counter < 1000)
        usleep(1000);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    pid_t orphan = 0;
    for (int i = 0; i < 1000 && orphan == 0; i++) {
        orphan = waitpid(-1, &status, WNOHANG | __WALL);
        usleep(10000);
    }
    assert_in_range(orphan, 1, INT_MAX);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

enum { THREADS = 4, ROUNDS = 20 };
static atomic_bool over;

static void *keep_allocating(void *context) {
    (void)context;
    while (!over) {
        for (size_t size = 16; size < 1 << 13; size *= 2)
            free(memset(malloc(size), 1, size));
        usleep(100);
    }
    return NULL;
}

static void *run_many(void *context) {
    gf_sandbox_end end = GF_SANDBOX_TIME;
    volatile int *done = context;

    for (int i = 0; i < ROUNDS; i++) {
        const bool bad = i % 4 == 3;
        pid_t self = getpid();
        gf_sandbox_work *work = bad ? aborts : does_its_work;
        if (gf_sandbox_run(work, &self, &memory, 60, "x", &end, NULL) == GF_OK &&
            end == (bad ? GF_SANDBOX_STOPPED : GF_SANDBOX_DONE))
            ++*done;
    }
    return NULL;
}

static void runs_in_many_threads(void **state) {
    pthread_t threads[2 * THREADS];
    int done[THREADS] = {0};

    (void)state;
    over = false;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &done[i]), 0);
        assert_int_equal(pthread_create(&threads[THREADS + i], NULL, keep_allocating, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    over = true;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[THREADS + i], NULL), 0);
        assert_int_equal(done[i], ROUNDS);
    }
    assert_false(children_left());
}

/* ---- where there is no sandbox --------------------------------------------------------------- */

/* From now on a system call, with this first argument, fails. */
static int refuse(uint32_t number, uint32_t argument, uint32_t cause) {
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

/* In a process of its own: 0 if an image is refused with this in the message, and decoded without a
 * sandbox; a number that says what else happened. */
static int without(uint32_t number, uint32_t argument, uint32_t cause, const char *part) {
    const gf_limits trusting = {.no_sandbox = true};
    gf_error error = {0};
    gf_source *source;
    int status;

    const pid_t child = fork();
    if (child == 0) {
        if (refuse(number, argument, cause) != 0)
            _exit(10);
        if (gf_source_open(in_folder("x.bmp"), NULL, &source, &error) != GF_FAILED)
            _exit(11);
        if (strstr(error.message, part) == NULL || strstr(error.message, "x.bmp: ") == NULL)
            _exit(12);
        if (children_left())
            _exit(13);
        if (gf_source_open(in_folder("x.bmp"), &trusting, &source, &error) != GF_OK)
            _exit(14);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void refuses_where_there_is_none(void **state) {
    const gf_format format = {5, 3, 3, GF_U8};
    unsigned char *pixels = random_pixels(&format, 1);
    gf_error error = {0};

    (void)state;
    assert_int_equal(save_image(in_folder("x.bmp"), &format, pixels, NULL, NULL, 1, &error), GF_OK);
    free(pixels);
    assert_int_equal(without(SYS_prctl, PR_SET_SECCOMP, EINVAL,
                             "for want of a sandbox (Invalid argument); convert it to PNG, or use "
                             "--no-sandbox if you trust it"),
                     0);
    assert_int_equal(without(SYS_prctl, PR_SET_NO_NEW_PRIVS, EPERM, "--no-sandbox"), 0);
    assert_int_equal(without(SYS_clone, 0, EAGAIN,
                             "cannot start a process to decode it: Resource temporarily "
                             "unavailable"),
                     0);
    /* Older systems: files are closed one by one. */
    assert_int_equal(without(SYS_close_range, 0, ENOSYS, ""), 11);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lets_work_be_done),
        cmocka_unit_test(stops_what_does_harm),
        cmocka_unit_test(stops_what_writes_past_its_memory),
        cmocka_unit_test_teardown(has_no_other_shared_memory, empty_folder),
        cmocka_unit_test(stops_what_never_ends),
        cmocka_unit_test(heeds_nobodys_sigchld),
        cmocka_unit_test(waits_on_through_signals),
        cmocka_unit_test(hides_from_signals_to_all),
        cmocka_unit_test(dies_with_its_parent),
        cmocka_unit_test(runs_in_many_threads),
        cmocka_unit_test_teardown(refuses_where_there_is_none, empty_folder),
    };

    return cmocka_run_group_tests(tests, map_shared, unmap_shared);
}
