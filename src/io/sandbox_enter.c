#define _GNU_SOURCE /* syscall */

#include "io/sandbox_enter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#endif

#if defined(__linux__) && defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__linux__) && defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__linux__) && defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

/* System calls are made as such: libraries that watch the usual functions (sanitizers, profilers)
 * would do more than that. */

void gf_sandbox_exit(int code) {
    for (;;)
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
static void find_windows(void) {
    const char stack = 0;
    const uintptr_t needed[WINDOWS] = {(uintptr_t)&stack, (uintptr_t)windows, (uintptr_t)&errno,
                                       (uintptr_t)pthread_self()};

    for (int i = 0; i < WINDOWS; i++) {
        const uintptr_t piece = needed[i] / NEAR_BYTES * NEAR_BYTES;
        windows[i] = (range){piece - NEAR_BYTES, piece + 2 * NEAR_BYTES};
    }
}

pid_t gf_sandbox_fork(void) {
    find_windows();
    return (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
}

/* How many there may be may be very many: where the system cannot close all at once, those that a
 * program has. The filter forbids their use in any case. */
enum { MOST_FILES = 1024 };

static void close_files(void) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 0L, ~0U, 0L) == 0)
        return;
#endif
    for (long fd = 0; fd < MOST_FILES; fd++)
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
static bool read_mapping(mapping *line, char c) {
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

typedef struct memory {
    range shared;       /* with the parent */
    uintptr_t data_end; /* of the mapping before, if that is a program's writable data */
    uintptr_t spare;    /* bytes that may stay writable */
    uint64_t mapped;    /* bytes of address space */
} memory;

/* Make memory read-only, except for the windows. */
static void protect(uintptr_t begin, uintptr_t end, const range *window, int count) {
    if (begin >= end)
        return;
    if (count > 0) {
        protect(begin, end < window->begin ? end : window->begin, window + 1, count - 1);
        protect(begin > window->end ? begin : window->end, end, window + 1, count - 1);
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
static void restrict_mapping(const mapping *line, memory *known) {
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
        protect(line->begin + (data ? DATA_BYTES : 0), line->end, windows, WINDOWS);
}

static void set_limit(int which, uint64_t most) {
    struct rlimit limit;

    if (syscall(SYS_prlimit64, 0L, (long)which, NULL, &limit) != 0)
        gf_sandbox_exit(errno);
    if (most < limit.rlim_max)
        limit.rlim_max = most;
    limit.rlim_cur = limit.rlim_max;
    if (syscall(SYS_prlimit64, 0L, (long)which, &limit, NULL) != 0)
        gf_sandbox_exit(errno);
}

/* Leave the child the memory that it needs to decode, and no more. */
static void restrict_memory(const gf_sandbox_memory *shared) {
    const long maps = syscall(SYS_openat, (long)AT_FDCWD, "/proc/self/maps", (long)O_RDONLY, 0L);
    mapping line = {.field = BEGIN};
    memory known = {.spare = SPARE_BYTES};
    char text[4096];
    long got;

    if (maps < 0)
        gf_sandbox_exit(errno);
    if (shared != NULL)
        known.shared = (range){(uintptr_t)shared->base, (uintptr_t)shared->base + shared->bytes};
    while ((got = syscall(SYS_read, maps, text, sizeof text)) > 0) {
        for (long i = 0; i < got; i++) {
            if (read_mapping(&line, text[i]))
                restrict_mapping(&line, &known);
        }
    }
    if (got < 0)
        gf_sandbox_exit(errno);
    (void)syscall(SYS_close, maps);
    /* Only the stack can grow, as far as the user allows: that may be a GiB. */
    set_limit(RLIMIT_AS, known.mapped + NEAR_BYTES);
}

static void set_flag(long which, long value) {
    if (syscall(SYS_prctl, which, value, 0L, 0L, 0L) != 0)
        gf_sandbox_exit(errno);
}

/* Allows exit, of this architecture, and nothing else. */
static void enter_filter(void) {
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
    set_flag(PR_SET_PDEATHSIG, SIGKILL);
    if ((pid_t)syscall(SYS_getppid) != parent)
        gf_sandbox_exit(ESRCH);
    close_files();
    restrict_memory(shared);
    set_limit(RLIMIT_NOFILE, 0);
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_CPU, seconds);
    set_flag(PR_SET_DUMPABLE, 0);
    set_flag(PR_SET_NO_NEW_PRIVS, 1);
    enter_filter();
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
