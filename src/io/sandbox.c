/* The sandbox: a child process that may compute, write to memory that it shares with us, and end.
 */
#define _GNU_SOURCE /* syscall, wait4 */

#include "io/sandbox.h"

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

/* System calls are made as such: libraries that watch the usual functions (sanitizers, profilers)
 * would do more than that. */

void gf_sandbox_exit(int code) {
    /* In front of calls that it knows not to return AddressSanitizer makes a system call, which
     * ends the child: the compiler must not see that this is one. */
    for (volatile bool again = true; again;)
        (void)syscall(SYS_exit, (long)code);
}

#ifdef ARCHITECTURE

/* The size of a piece that stays writable: the one around an address that the child writes to, and
 * one on each side. Its stack can grow by as much. stb takes up to 400 KiB of stack: it recurses
 * once for each code of a GIF. */
#define NEAR_BYTES ((uintptr_t)1 << 20)

enum { WINDOWS = 4 };

typedef struct range {
    uintptr_t begin, end;
} range;

/* Around what the child of this thread writes to. The parent finds them: in a child the first use
 * of a symbol costs 0.02 ms, and that of a thread's variables may allocate. */
static _Thread_local range windows[WINDOWS];

/* The stack, and variables of the thread: this library's, libc's, and those of the system. */
static void sandbox_find_windows(void) {
    const char stack = 0;
    const uintptr_t needed[WINDOWS] = {(uintptr_t)&stack, (uintptr_t)windows, (uintptr_t)&errno,
                                       (uintptr_t)pthread_self()};
    for (int i = 0; i < WINDOWS; i++) {
        const uintptr_t piece = needed[i] / NEAR_BYTES * NEAR_BYTES;
        windows[i] = (range){piece - NEAR_BYTES, piece + 2 * NEAR_BYTES};
    }
}

pid_t gf_sandbox_fork(void) {
    sandbox_find_windows();
    return (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
}

/* How many there may be may be very many: where the system cannot close all at once, those that a
 * program has. The filter forbids their use in any case. */
enum { MAX_FILES = 1024 };

static void sandbox_close_files(void) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 0L, ~0U, 0L) == 0)
        return;
#endif
    for (long fd = 0; fd < MAX_FILES; fd++)
        (void)syscall(SYS_close, fd);
}

/* A line of /proc/self/maps, "begin-end rw-s offset device inode ...", as far as it was read. */
typedef struct mapping {
    uintptr_t begin, end;
    enum { BEGIN, END, RIGHTS, OFFSET, DEVICE, INODE, REST } field;
    bool writable, shared;
    bool file; /* has an inode */
} mapping;

/* Take the next character. Returns true once all fields are known. */
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

/* The most that stays writable of one mapping of .data or .bss. */
#define DATA_BYTES ((uintptr_t)16 << 20)
/* The most that stays writable of small mappings together, to save calls and walks through page
 * tables: protecting takes 0.02 ms for each MiB. */
#define SPARE_BYTES ((uintptr_t)4 << 20)

typedef struct sandbox_map_state {
    range shared;       /* with the parent */
    uintptr_t data_end; /* of the mapping before, if that is a program's writable data */
    uintptr_t spare;    /* bytes that may stay writable */
    uint64_t mapped;    /* bytes of address space */
} sandbox_map_state;

/* Make memory read-only, except for the windows. */
static void sandbox_protect(uintptr_t begin, uintptr_t end, const range *window, int count) {
    if (begin >= end)
        return;
    if (count > 0) {
        sandbox_protect(begin, end < window->begin ? end : window->begin, window + 1, count - 1);
        sandbox_protect(begin > window->end ? begin : window->end, end, window + 1, count - 1);
    } else if (syscall(SYS_mprotect, begin, end - begin, (long)PROT_READ) != 0) {
        gf_sandbox_exit(errno);
    }
}

/* Unmap what is shared: the parent writes outputs, other images, what MPI or a device's driver has
 * there. Only the system knows all of it.
 *
 * Make what is private read-only: a page that the child writes to is copied for it, and no limit of
 * the system counts these copies. It may have to read any of them (resolving a symbol, for one), so
 * they are not unmapped. It writes to the windows, and to .data and .bss of programs (tables of
 * symbols, counts of branches). */
static void sandbox_restrict_mapping(const mapping *line, sandbox_map_state *known) {
    const uintptr_t size = line->end - line->begin;
    const bool data = line->file || line->begin == known->data_end;
    /* Shared memory has an inode, too, but no .bss behind it. */
    known->data_end = line->file && line->writable && !line->shared ? line->end : 0;
    if (line->shared && (line->begin >= known->shared.end || line->end <= known->shared.begin)) {
        if (syscall(SYS_munmap, line->begin, size) != 0)
            gf_sandbox_exit(errno);
        return;
    }
    known->mapped += size;
    if (!line->writable || line->shared || GF_SANITIZED)
        return;
    if (!data && size <= known->spare)
        known->spare -= size;
    else
        sandbox_protect(line->begin + (data ? DATA_BYTES : 0), line->end, windows, WINDOWS);
}

static void sandbox_set_limit(int which, uint64_t max) {
    struct rlimit limit;
    if (syscall(SYS_prlimit64, 0L, (long)which, NULL, &limit) != 0)
        gf_sandbox_exit(errno);
    if (max < limit.rlim_max)
        limit.rlim_max = max;
    limit.rlim_cur = limit.rlim_max;
    if (syscall(SYS_prlimit64, 0L, (long)which, &limit, NULL) != 0)
        gf_sandbox_exit(errno);
}

/* Leave the child the memory that it needs to decode, and no more. */
static void sandbox_restrict_memory(const gf_sandbox_memory *shared) {
    const long maps = syscall(SYS_openat, (long)AT_FDCWD, "/proc/self/maps", (long)O_RDONLY, 0L);
    mapping line = {.field = BEGIN};
    sandbox_map_state known = {.spare = SPARE_BYTES};
    char text[4096];
    long got;
    if (maps < 0)
        gf_sandbox_exit(errno);
    if (shared)
        known.shared = (range){(uintptr_t)shared->base, (uintptr_t)shared->base + shared->bytes};
    while ((got = syscall(SYS_read, maps, text, sizeof text)) > 0) {
        for (long i = 0; i < got; i++) {
            if (sandbox_read_mapping(&line, text[i]))
                sandbox_restrict_mapping(&line, &known);
        }
    }
    if (got < 0)
        gf_sandbox_exit(errno);
    (void)syscall(SYS_close, maps);
    /* Only the stack can grow, as far as the user allows: that may be a GiB. */
    sandbox_set_limit(RLIMIT_AS, known.mapped + NEAR_BYTES);
}

static void sandbox_set_flag(long which, long value) {
    if (syscall(SYS_prctl, which, value, 0L, 0L, 0L) != 0)
        gf_sandbox_exit(errno);
}

/* Allows exit, of this architecture, and nothing else. */
static void sandbox_enter_filter(void) {
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    static const struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (syscall(SYS_prctl, (long)PR_SET_SECCOMP, (long)SECCOMP_MODE_FILTER, &program, 0L, 0L) != 0)
        gf_sandbox_exit(errno);
}

void gf_sandbox_enter(pid_t parent, const gf_sandbox_memory *shared, uint32_t seconds) {
    /* A parent that is killed leaves no child behind, even if it died before this was said. */
    sandbox_set_flag(PR_SET_PDEATHSIG, SIGKILL);
    if ((pid_t)syscall(SYS_getppid) != parent)
        gf_sandbox_exit(ESRCH);
    sandbox_close_files();
    sandbox_restrict_memory(shared);
    sandbox_set_limit(RLIMIT_NOFILE, 0);
    sandbox_set_limit(RLIMIT_CORE, 0);
    sandbox_set_limit(RLIMIT_CPU, seconds);
    sandbox_set_flag(PR_SET_DUMPABLE, 0);
    sandbox_set_flag(PR_SET_NO_NEW_PRIVS, 1);
    sandbox_enter_filter();
}

#else

pid_t gf_sandbox_fork(void) {
    return fork();
}

void gf_sandbox_enter(pid_t parent, const gf_sandbox_memory *shared, uint32_t seconds) {
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
    /* Unmapping gives back none of the memory while a part of it is mapped. Without this it is
     * only held for longer. */
    if (from < to)
        (void)madvise((unsigned char *)begin + (from - (uintptr_t)begin), to - from, MADV_REMOVE);
}

void gf_sandbox_unmap(void *memory, size_t bytes) {
    (void)munmap(memory, bytes);
}

/* ---- the child ------------------------------------------------------------------------------- */

static void sandbox_nothing(void *context) {
    (void)context;
}

/* How a child ended. */
typedef struct extension {
    gf_sandbox_end end;
    int code; /* STOPPED: what it left with, 0 if a signal ended it */
} extension;

static double sandbox_cpu_seconds(const struct rusage *usage) {
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* Wait for the end of a child. Returns 0 or an errno. */
static int sandbox_wait_for(pid_t child, extension *ended, uint32_t seconds) {
    struct rusage usage;
    int status;
    while (wait4(child, &status, __WALL, &usage) < 0) {
        /* Reaped by another part of the program: it has ended, and how is unknown. */
        if (errno == ECHILD) {
            *ended = (extension){.end = GF_SANDBOX_DONE};
            return 0;
        }
        if (errno != EINTR)
            return errno;
    }
    if (WIFEXITED(status)) {
        const int code = WEXITSTATUS(status);
        *ended = (extension){.end = code == 0 ? GF_SANDBOX_DONE : GF_SANDBOX_STOPPED, .code = code};
        return 0;
    }
    const bool late = WTERMSIG(status) == SIGKILL && sandbox_cpu_seconds(&usage) > 0.5 * seconds;
    *ended = (extension){.end = late ? GF_SANDBOX_TIME : GF_SANDBOX_STOPPED};
    return 0;
}

/* Kill and reap a child that wait4 failed for. It is not reaped yet, so no other process has its
 * number. Another call waits, since wait4 may fail again. */
static void sandbox_kill_child(pid_t child) {
    siginfo_t info;
    (void)kill(child, SIGKILL);
    while (waitid(P_PID, (id_t)child, &info, WEXITED | __WALL) != 0 && errno == EINTR)
        continue;
}

/* Run the work in a child, until that has ended. */
static gf_status sandbox_run_once(gf_sandbox_work *work, void *context,
                                  const gf_sandbox_memory *shared, uint32_t seconds,
                                  const char *name, extension *ended, gf_error *error) {
    const pid_t parent = getpid();
    sigset_t all, before;
    /* No handler of ours may run in the child: it would tidy up behind a process that goes on. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = gf_sandbox_fork();
    if (child == 0) {
        gf_sandbox_enter(parent, shared, seconds);
        work(context);
        gf_sandbox_exit(0);
    }
    int cause = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return gf_fail(error, GF_FAILED,
                       "%s: cannot start a process to decode it: %s; run fewer at a time", name,
                       strerror(cause));
    cause = sandbox_wait_for(child, ended, seconds);
    if (cause == 0)
        return GF_OK;
    /* The shared piece may not be read while the child writes there. */
    sandbox_kill_child(child);
    return gf_fail(error, GF_FAILED,
                   "%s: cannot wait for the process that decodes it: %s; run again", name,
                   strerror(cause));
}

gf_status gf_sandbox_run(gf_sandbox_work *work, void *context, const gf_sandbox_memory *shared,
                         uint32_t seconds, const char *name, gf_sandbox_end *end, gf_error *error) {
    extension ended = {0}, probe = {0};
    gf_status status = sandbox_run_once(work, context, shared, seconds, name, &ended, error);
    if (status)
        return status;
    *end = ended.end;
    if (ended.end != GF_SANDBOX_STOPPED)
        return GF_OK;
    /* What the child says of its sandbox may be a lie that is to have it switched off: one that
     * does nothing tells the truth. */
    status = sandbox_run_once(sandbox_nothing, NULL, shared, seconds, name, &probe, error);
    if (status || probe.end != GF_SANDBOX_STOPPED)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: is not decoded, for want of a sandbox (%s); convert it to PNG, or use "
                   "--no-sandbox if you trust it",
                   name, probe.code != 0 ? strerror(probe.code) : "a process in it is killed");
}
