#define _GNU_SOURCE /* syscall */

#include "io/sandbox_enter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
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

pid_t gf_sandbox_fork(void) {
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

/* A line of /proc/self/maps, "begin-end rw-s ...", as far as it was read. */
typedef struct mapping {
    uintptr_t begin, end;
    enum { BEGIN, END, RIGHTS, REST } field;
    bool shared;
} mapping;

/* Takes the next character. true: what the line tells of is known. */
static bool read_mapping(mapping *line, char c) {
    if (c == '\n') {
        *line = (mapping){.field = BEGIN};
    } else if (line->field == REST) {
        return false;
    } else if (c == '-' && line->field == BEGIN) {
        line->field = END;
    } else if (c == ' ') {
        line->field++;
        return line->field == REST;
    } else if (line->field == RIGHTS) {
        line->shared |= c == 's';
    } else {
        uintptr_t *number = line->field == BEGIN ? &line->begin : &line->end;
        *number = *number << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return false;
}

/* What the parent writes elsewhere (outputs, other images, what MPI or a device's driver has there)
 * is not for the child to write. Nobody knows all of it but the system. */
static void unmap_shared(const gf_sandbox_memory *kept) {
    const uintptr_t first = kept != NULL ? (uintptr_t)kept->base : 0;
    const uintptr_t last = kept != NULL ? first + kept->bytes : 0;
    const long maps = syscall(SYS_openat, (long)AT_FDCWD, "/proc/self/maps", (long)O_RDONLY, 0L);
    mapping line = {.field = BEGIN};
    char text[4096];
    long got;

    if (maps < 0)
        gf_sandbox_exit(errno);
    while ((got = syscall(SYS_read, maps, text, sizeof text)) > 0) {
        for (long i = 0; i < got; i++) {
            if (!read_mapping(&line, text[i]) || !line.shared ||
                (line.begin < last && line.end > first))
                continue;
            if (syscall(SYS_munmap, line.begin, line.end - line.begin) != 0)
                gf_sandbox_exit(errno);
        }
    }
    if (got < 0)
        gf_sandbox_exit(errno);
    (void)syscall(SYS_close, maps);
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
    unmap_shared(shared);
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
