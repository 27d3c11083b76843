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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "io/sandbox.h"
#include "io/sandbox_enter.h"
#include "io_util.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RSS_FACTOR = 8 };
#else
enum { RSS_FACTOR = 1 };
#endif

/* What a child and its parent both see. */
static struct shared {
    volatile int reached;      /* the work began */
    volatile int survived;     /* what it should not have lived through */
    volatile uint64_t counter; /* while it runs */
} * shared;
static gf_sandbox_memory memory; /* which is there */

static char victim[2048]; /* a file that nobody may make */

static int map_shared(void **state) {
    memory.bytes = 2 * (size_t)sysconf(_SC_PAGESIZE);
    memory.base = gf_sandbox_map(memory.bytes);
    shared = (struct shared *)(void *)memory.base;
    return make_folder(state) != 0 || shared == NULL;
}

static int unmap_shared(void **state) {
    gf_sandbox_unmap(memory.base, memory.bytes);
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
    for (size_t i = memory.bytes - 1; i < (size_t)1 << 20; i++)
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

/* ---- pixels ---------------------------------------------------------------------------------- */

static const char gif[] =
    "GIF89a\2\0\2\0\x80\0\0\x0a\x14\x1e\xff\xff\xff"
    ",\0\0\0\0\2\0\2\0\0\2\3D\x34\5\0;";
static const char psd[] =
    "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\4\0\x08\0\3"
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
    "\0\2\0\2\0\2\xfd\7\xfd\x08\xfd\x09";
static const char deep_psd[] =
    "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\2\0\x10\0\3"
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c";

/* Both ways must give the same image, or the same refusal. Returns whether there is one. */
static bool same_both_ways(const char *name) {
    const gf_limits inside = {.max_memory = (uint64_t)64 << 20, .max_seconds = 20};
    gf_limits outside = inside;
    gf_format format[2];
    unsigned char *pixels[2];
    gf_error error[2] = {{0}, {0}};

    outside.no_sandbox = true;
    const gf_status first =
        load_image(in_folder(name), &inside, 3, &format[0], &pixels[0], NULL, &error[0]);
    const gf_status second =
        load_image(in_folder(name), &outside, 3, &format[1], &pixels[1], NULL, &error[1]);
    if (first != second || strcmp(error[0].message, error[1].message) != 0)
        fail_msg("%s: '%s' and '%s'", name, error[0].message, error[1].message);
    if (first == GF_OK) {
        assert_int_equal(format[0].width, format[1].width);
        assert_int_equal(format[0].height, format[1].height);
        assert_int_equal(format[0].channels, format[1].channels);
        assert_int_equal(format[0].type, format[1].type);
        assert_memory_equal(pixels[0], pixels[1], gf_row_bytes(&format[0]) * format[0].height);
    }
    free(pixels[0]);
    free(pixels[1]);
    return first == GF_OK;
}

/* A file of each kind, and what is left of it when some of its bytes are others. */
static void decodes_as_in_process(void **state) {
    static const struct {
        const char *name;
        uint32_t channels;
        gf_type type;
        const char *bytes; /* NULL: written by ourselves */
        size_t size;
    } files[] = {
        {"a.jpg", 3, GF_U8, NULL, 0},
        {"grey.jpg", 1, GF_U8, NULL, 0},
        {"a.bmp", 3, GF_U8, NULL, 0},
        {"alpha.bmp", 4, GF_U8, NULL, 0},
        {"a.tga", 3, GF_U8, NULL, 0},
        {"alpha.tga", 4, GF_U8, NULL, 0},
        {"grey.tga", 1, GF_U8, NULL, 0},
        {"two.tga", 2, GF_U8, NULL, 0},
        {"a.hdr", 3, GF_F32, NULL, 0},
        {"a.gif", 0, GF_U8, gif, sizeof gif - 1},
        {"a.psd", 0, GF_U8, psd, sizeof psd - 1},
        {"deep.psd", 0, GF_U16, deep_psd, sizeof deep_psd - 1},
    };
    uint32_t seed = 1;
    int kept = 0, refused = 0;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *name = files[i].name;
        gf_error error = {0};
        size_t size;
        if (files[i].bytes != NULL) {
            put_bytes(in_folder(name), files[i].bytes, files[i].size);
        } else {
            const gf_format format = {61, 37, files[i].channels, files[i].type};
            unsigned char *pixels = random_pixels(&format, (uint32_t)i);
            if (format.type == GF_F32)
                memset(pixels, 0x3f, gf_row_bytes(&format) * format.height);
            assert_int_equal(save_image(in_folder(name), &format, pixels, NULL, NULL, 5, &error),
                             GF_OK);
            free(pixels);
        }
        if (!same_both_ways(name))
            fail_msg("%s: is refused", name);
        unsigned char *file = get_bytes(in_folder(name), &size);
        for (int round = 0; round < 40; round++) {
            unsigned char *damaged = malloc(size);
            memcpy(damaged, file, size);
            /* Most of them in the headers. */
            const size_t most = round % 3 == 0 || size < 200 ? size : 200;
            for (uint32_t n = 1 + next_random(&seed) % 3; n > 0; n--)
                damaged[4 + next_random(&seed) % (most - 4)] = (unsigned char)next_random(&seed);
            put_bytes(in_folder(name), damaged, size);
            *(same_both_ways(name) ? &kept : &refused) += 1;
            free(damaged);
        }
        free(file);
    }
    assert_in_range(kept, 50, 10000);
    assert_in_range(refused, 50, 10000);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* So many zeros behind such a beginning. */
static void put_head(const char *name, const void *head, size_t size, size_t bytes) {
    put_bytes(in_folder(name), head, size);
    assert_int_equal(truncate(in_folder(name), (off_t)(size + bytes)), 0);
}

/* A JPEG of 65500x65500 pixels as far as its header says, with so many bytes behind it. */
static void put_large_claim(const char *name, uint16_t side, size_t bytes) {
    static const unsigned char head[] = {0xff, 0xd8, 0xff, 0xc0, 0, 17,   8, 0, 0,    0, 0,
                                         3,    1,    0x11, 0,    2, 0x11, 0, 3, 0x11, 0};
    unsigned char claim[sizeof head];

    memcpy(claim, head, sizeof head);
    claim[7] = claim[9] = (unsigned char)(side >> 8);
    claim[8] = claim[10] = (unsigned char)side;
    put_head(name, claim, sizeof claim, bytes);
}

/* In less than so many MiB. part: of the message; NULL: it is read. */
static void open_in(const char *name, const gf_limits *limits, long mebibytes, const char *part) {
    const pid_t child = fork();
    int status;

    if (child == 0) {
        struct rusage self, below;
        gf_error error = {0};
        gf_source *source;
        const gf_status opened = gf_source_open(in_folder(name), limits, &source, &error);
        if (opened != (part != NULL ? GF_FAILED : GF_OK) ||
            (part != NULL && strstr(error.message, part) == NULL))
            _exit(1);
        (void)getrusage(RUSAGE_SELF, &self);
        (void)getrusage(RUSAGE_CHILDREN, &below);
        const long most = mebibytes * 1024 * RSS_FACTOR; /* KiB */
        _exit(self.ru_maxrss < most && below.ru_maxrss < most ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void refuse_claim(const char *part) {
    open_in("x.jpg", NULL, 64, part);
}

static void refuses_large_claims_in_little_memory(void **state) {
    (void)state;
    put_large_claim("x.jpg", 65500, 2000);
    refuse_claim("ends too early");
    /* Of a large file only the beginning is read. */
    put_large_claim("x.jpg", 65500, (size_t)100 << 20);
    refuse_claim("the file and its image are over the limit");
    /* Within the limits, but there is nothing behind it. */
    put_large_claim("x.jpg", 30000, 2000);
    refuse_claim("x.jpg: ");
    /* What is not there is not filled in: 8000x8000 pixels. */
    put_bytes(in_folder("x.jpg"),
              "BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x18\0\0\0"
              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\2\1\0\6\5\4",
              61);
    refuse_claim("ends too early");
    /* stb clears all of a GIF before it looks at what follows. */
    put_bytes(in_folder("x.jpg"),
              "GIF89a\x20\x4e\x20\x4e\x80\0\0\x0a\x14\x1e\xff\xff\xff"
              ",\0\0\0\0\x20\x4e\x20\x4e\0\2\2D\1\0;",
              35);
    refuse_claim("ends too early");
    put_bytes(in_folder("x.jpg"),
              "GIF89a\xd0\x07\xd0\x07\x80\0\0\x0a\x14\x1e\xff\xff\xff"
              ",\1\0\0\0\xd0\x07\x01\0\0\2\2D\1\0;",
              35);
    refuse_claim("its header is damaged");
}

/* Of what can never become an image not all is read. */
static void reads_the_beginning_of_what_is_none(void **state) {
    const size_t large = (size_t)100 << 20;

    (void)state;
    put_head("x.tga", "\xff\xff\xff", 3, large);
    open_in("x.tga", NULL, 64, "unknown image type");
    put_head("x.psd", "8BPS\0\1\0\0\0\0\0\0\0\4\0\0\0\4\0\0\0\4\0\x08\0\3", 26, large);
    open_in("x.psd", NULL, 64, "three channels");
    put_head("x.gif", "GIF89a\4\0\4\0\0\0\0\x55", 14, large);
    open_in("x.gif", NULL, 64, "its header is damaged");
    put_head("x.hdr", "#?RADIANCE\nnothing\n\n", 20, large);
    open_in("x.hdr", NULL, 64, "cannot decode");
}

/* What is behind the pixels counts, but not twice. */
static void holds_a_large_file_once(void **state) {
    const char head[] =
        "BM\0\0\0\0\0\0\0\0\x36\4\0\0\x28\0\0\0\4\0\0\0\4\0\0\0\1\0\x08\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    (void)state;
    put_head("x.bmp", head, sizeof head, (size_t)100 << 20);
    open_in("x.bmp", NULL, 130, NULL);
}

/* A pipe that does not end is left as soon as it gave too much. */
static void stops_at_the_limit_of_a_pipe(void **state) {
    const gf_limits limits = {.max_memory = ((uint64_t)32 << 20) + 1000};
    static unsigned char zeros[1 << 16];

    (void)state;
    put_large_claim("head.jpg", 2000, sizeof zeros);
    assert_int_equal(mkfifo(in_folder("x.jpg"), 0600), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        size_t size;
        unsigned char *head = get_bytes(in_folder("head.jpg"), &size);
        const int pipe = open(in_folder("x.jpg"), O_WRONLY);
        while (write(pipe, head, size) > 0)
            memset(head, 0, size);
        _exit(0);
    }
    open_in("x.jpg", &limits, 48, "over the limit of 33555432");
    (void)kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
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
        cmocka_unit_test_teardown(decodes_as_in_process, empty_folder),
        cmocka_unit_test_teardown(refuses_large_claims_in_little_memory, empty_folder),
        cmocka_unit_test_teardown(reads_the_beginning_of_what_is_none, empty_folder),
        cmocka_unit_test_teardown(holds_a_large_file_once, empty_folder),
        cmocka_unit_test_teardown(stops_at_the_limit_of_a_pipe, empty_folder),
    };

    return cmocka_run_group_tests(tests, map_shared, unmap_shared);
}
