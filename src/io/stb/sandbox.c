/* Sandbox: a child process that can only compute, write to memory shared with the parent, and
 * exit. */
#define _GNU_SOURCE /* syscall, wait4 */

#include "io/stb/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

/* System calls go through syscall(), since sanitizers and profilers intercept the libc wrappers. */

void gf_sandbox_exit(int code) {
    /* AddressSanitizer inserts a system call before functions that do not return, which would kill
     * the child. The loop hides from the compiler that this function does not return. */
    for (volatile bool again = true; again;)
        (void)syscall(SYS_exit, (long)code);
}

#ifdef ARCHITECTURE

/* Exit with errno if a system call has failed. */
static void sandbox_check(bool success) {
    if (!success)
        gf_sandbox_exit(errno);
}

/* Granularity of writable memory. The unit that contains an address written by the child stays
 * writable, and one unit on each side; the stack can grow by one unit. The readers need up to 140
 * KiB of stack, for a row of HDR. */
#define WINDOW_BYTES ((uintptr_t)1 << 20)

enum { WINDOWS = 4 };

typedef struct range {
    uintptr_t begin, end;
} range;

/* Address ranges that stay writable in the child. The parent computes them: in a child the first
 * use of a symbol takes 0.02 ms, and that of a thread-local variable may allocate. */
static _Thread_local range windows[WINDOWS];

/* Set the windows: the stack and the thread-local variables of this library, libc and the thread
 * library. A shared library allocates its variables here, on first use: the child cannot allocate.
 */
static void sandbox_find_windows(void) {
    const char stack = 0;
    const uintptr_t addresses[WINDOWS] = {(uintptr_t)&stack, (uintptr_t)windows, (uintptr_t)&errno,
                                          (uintptr_t)pthread_self()};
    for (int i = 0; i < WINDOWS; i++) {
        const uintptr_t start = addresses[i] / WINDOW_BYTES * WINDOW_BYTES;
        windows[i] = (range){start - WINDOW_BYTES, start + 2 * WINDOW_BYTES};
    }
}

/* Parser state for one line of /proc/self/maps: "begin-end rw-s offset device inode ...". */
typedef struct mapping {
    uintptr_t begin, end;
    enum { BEGIN, END, RIGHTS, OFFSET, DEVICE, INODE, REST } field;
    bool writable, shared;
    bool file; /* the inode is not 0 */
} mapping;

/* Parse one character. Return true once all fields up to the inode are known. */
static bool sandbox_read_mapping(mapping *line, char c) {
    if (c == '\n') {
        *line = (mapping){.field = BEGIN};
    } else if (line->field == INODE) {
        line->file = c != '0';
        line->field = REST;
        return true;
    } else if (line->field == REST) {
        return false;
    } else if (c == ' ' || (c == '-' && line->field == BEGIN)) {
        line->field++;
    } else if (line->field == RIGHTS) {
        line->writable |= c == 'w';
        line->shared |= c == 's';
    } else if (line->field < RIGHTS) {
        uintptr_t *number = line->field == BEGIN ? &line->begin : &line->end;
        *number = *number << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return false;
}

/* Bytes of each mapping with .data or .bss that stay writable. */
#define MAX_DATA_BYTES ((uintptr_t)16 << 20)
/* Bytes of small mappings that stay writable, all together. This saves system calls and page table
 * walks: mprotect takes 0.02 ms per MiB. */
#define SMALL_BYTES ((uintptr_t)4 << 20)

typedef struct sandbox_map_state {
    range shared;         /* memory shared with the parent */
    uintptr_t data_end;   /* end of the previous mapping if it is writable program data, else 0 */
    uintptr_t small_left; /* bytes of small mappings that may still stay writable */
    uint64_t mapped;      /* bytes of address space */
} sandbox_map_state;

/* Make a range read-only, except for the windows. */
static void sandbox_protect(uintptr_t begin, uintptr_t end, const range *window, int count) {
    if (begin >= end)
        return;
    if (count > 0) {
        sandbox_protect(begin, end < window->begin ? end : window->begin, window + 1, count - 1);
        sandbox_protect(begin > window->end ? begin : window->end, end, window + 1, count - 1);
    } else {
        sandbox_check(syscall(SYS_mprotect, begin, end - begin, (long)PROT_READ) == 0);
    }
}

/* Restrict one mapping.
 *
 * Shared mappings are unmapped: the parent uses them for outputs, other images, MPI and device
 * drivers. Only /proc/self/maps lists all of them.
 *
 * Private mappings become read-only. The kernel copies each page that the child writes to, and no
 * resource limit counts these copies. The mappings stay readable because the child may need any of
 * them, e.g. to resolve a symbol. Writable are the windows, and the .data and .bss of programs
 * (symbol tables, coverage counters). */
static void sandbox_restrict_mapping(const mapping *line, sandbox_map_state *state) {
    const uintptr_t size = line->end - line->begin;
    const bool data = line->file || line->begin == state->data_end;
    /* Shared memory also has an inode, but no .bss after it. */
    state->data_end = line->file && line->writable && !line->shared ? line->end : 0;
    if (line->shared && (line->begin >= state->shared.end || line->end <= state->shared.begin)) {
        sandbox_check(syscall(SYS_munmap, line->begin, size) == 0);
        return;
    }
    state->mapped += size;
    if (!line->writable || line->shared || GF_SANITIZED)
        return;
    if (!data && size <= state->small_left)
        state->small_left -= size;
    else
        sandbox_protect(line->begin + (data ? MAX_DATA_BYTES : 0), line->end, windows, WINDOWS);
}

static void sandbox_set_limit(int which, uint64_t max) {
    struct rlimit limit;
    sandbox_check(syscall(SYS_prlimit64, 0L, (long)which, NULL, &limit) == 0);
    if (max < limit.rlim_max)
        limit.rlim_max = max;
    limit.rlim_cur = limit.rlim_max;
    sandbox_check(syscall(SYS_prlimit64, 0L, (long)which, &limit, NULL) == 0);
}

/* Restrict the child to the memory that it needs for decoding. */
static void sandbox_restrict_memory(const gf_sandbox_memory *shared) {
    const long maps = syscall(SYS_openat, (long)AT_FDCWD, "/proc/self/maps", (long)O_RDONLY, 0L);
    mapping line = {.field = BEGIN};
    sandbox_map_state state = {.small_left = SMALL_BYTES};
    char text[4096];
    long got;
    sandbox_check(maps >= 0);
    state.shared = (range){(uintptr_t)shared->base, (uintptr_t)shared->base + shared->bytes};
    while ((got = syscall(SYS_read, maps, text, sizeof text)) > 0) {
        for (long i = 0; i < got; i++) {
            if (sandbox_read_mapping(&line, text[i]))
                sandbox_restrict_mapping(&line, &state);
        }
    }
    sandbox_check(got == 0);
    (void)syscall(SYS_close, maps);
    /* Only the stack can still grow. The user's stack limit may be 1 GiB. */
    sandbox_set_limit(RLIMIT_AS, state.mapped + WINDOW_BYTES);
}

static void sandbox_set_flag(long which, long value) {
    sandbox_check(syscall(SYS_prctl, which, value, 0L, 0L, 0L) == 0);
}

/* Drop everything but private memory and `shared`. Afterwards any system call except exit kills the
 * process. On failure, exit with an errno as status. */
static void sandbox_enter(pid_t parent, const gf_sandbox_memory *shared, uint32_t seconds) {
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    static const struct sock_fprog program = {sizeof code / sizeof *code, code};
    /* Descriptors closed if close_range is missing: the limit may be huge. The seccomp filter
     * prevents the use of the others. */
    enum { MAX_FILES = 1024 };
    bool closed = false;
    /* Kill the child when the parent dies, even if the parent died before this call. */
    sandbox_set_flag(PR_SET_PDEATHSIG, SIGKILL);
    if ((pid_t)syscall(SYS_getppid) != parent)
        gf_sandbox_exit(ESRCH);
#ifdef SYS_close_range
    closed = syscall(SYS_close_range, 0L, ~0U, 0L) == 0;
#endif
    for (long fd = 0; fd < MAX_FILES && !closed; fd++)
        (void)syscall(SYS_close, fd);
    sandbox_restrict_memory(shared);
    sandbox_set_limit(RLIMIT_NOFILE, 0);
    sandbox_set_limit(RLIMIT_CORE, 0);
    sandbox_set_limit(RLIMIT_CPU, seconds);
    sandbox_set_flag(PR_SET_DUMPABLE, 0);
    sandbox_set_flag(PR_SET_NO_NEW_PRIVS, 1);
    /* The seccomp filter: allow exit of this architecture, kill the process on all else. */
    sandbox_check(
        syscall(SYS_prctl, (long)PR_SET_SECCOMP, (long)SECCOMP_MODE_FILTER, &program, 0L, 0L) == 0);
}

#else

static void sandbox_find_windows(void) {}

static void sandbox_enter(pid_t parent, const gf_sandbox_memory *shared, uint32_t seconds) {
    (void)parent;
    (void)shared;
    (void)seconds;
    gf_sandbox_exit(ENOSYS);
}

#endif

void *gf_sandbox_map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void gf_sandbox_trim(void *begin, void *end) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)begin + page - 1) / page * page;
    const uintptr_t to = (uintptr_t)end / page * page;
    /* MADV_REMOVE frees the pages; munmap of a part does not, while another part is mapped. On
     * failure the memory is freed later. */
    if (from < to)
        (void)madvise((unsigned char *)begin + (from - (uintptr_t)begin), to - from, MADV_REMOVE);
}

void gf_sandbox_unmap(void *memory, size_t bytes) {
    (void)munmap(memory, bytes);
}

/* ---- running a child process ----------------------------------------------------------------- */

/* Other results of a child than its exit status. */
enum { CHILD_KILLED = -1, CHILD_TIME = -2 };

/* Wait for a child to exit. Return 0 or an errno. */
static int sandbox_wait_for(pid_t child, uint32_t seconds, int *result) {
    struct rusage usage = {0};
    int status = 0;
    /* ECHILD: another part of the program has reaped it. It has exited, with an unknown status. */
    while (wait4(child, &status, __WALL, &usage) < 0 && errno != ECHILD)
        if (errno != EINTR)
            return errno;
    const double used = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    *result = WIFEXITED(status)                                     ? WEXITSTATUS(status)
              : WTERMSIG(status) == SIGKILL && used > 0.5 * seconds ? CHILD_TIME
                                                                    : CHILD_KILLED;
    return 0;
}

/* Run the work, or none for NULL, in a child process and wait for it to exit. */
static gf_status sandbox_run_once(gf_sandbox_work *work, void *context,
                                  const gf_sandbox_memory *shared, uint32_t seconds,
                                  const char *name, int *result, gf_error *error) {
    const pid_t parent = getpid();
    sigset_t all, before;
    /* Signal handlers of the program must not run in the child: they would clean up for the parent,
     * which continues. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    sandbox_find_windows();
    /* Fork without the fork handlers of libraries. The child raises no SIGCHLD when it exits. */
    const pid_t child = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
    if (child == 0) {
        sandbox_enter(parent, shared, seconds);
        if (work)
            work(context);
        gf_sandbox_exit(0);
    }
    int cause = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return gf_fail(error, GF_FAILED,
                       "%s: cannot create a child process: %s; run fewer processes at a time", name,
                       strerror(cause));
    cause = sandbox_wait_for(child, seconds, result);
    if (cause == 0)
        return GF_OK;
    /* Kill and reap the child: the parent must not read shared memory while it is written. The
     * child is not reaped yet, so its process ID is not reused. Use waitid, since wait4 may fail
     * again. */
    siginfo_t info;
    (void)kill(child, SIGKILL);
    while (waitid(P_PID, (id_t)child, &info, WEXITED | __WALL) != 0 && errno == EINTR)
        continue;
    return gf_fail(error, GF_FAILED,
                   "%s: cannot wait for the child process that decodes it: %s; run again", name,
                   strerror(cause));
}

gf_status gf_sandbox_run(gf_sandbox_work *work, void *context, const gf_sandbox_memory *shared,
                         uint32_t seconds, const char *name, gf_sandbox_end *end, gf_error *error) {
    int result = 0, probe = 0;
    gf_status status = sandbox_run_once(work, context, shared, seconds, name, &result, error);
    *end = result == 0            ? GF_SANDBOX_DONE
           : result == CHILD_TIME ? GF_SANDBOX_TIME
                                  : GF_SANDBOX_STOPPED;
    if (status || *end != GF_SANDBOX_STOPPED)
        return status;
    /* The child may report a false failure of the sandbox so that the user disables it. Test with a
     * child that runs no untrusted code. */
    status = sandbox_run_once(NULL, NULL, shared, seconds, name, &probe, error);
    if (status || probe == 0 || probe == CHILD_TIME)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: cannot decode: no sandbox available (%s); convert it to PNG, or use "
                   "--no-sandbox if you trust the file",
                   name, probe > 0 ? strerror(probe) : "its processes are killed");
}
