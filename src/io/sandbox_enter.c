#define _GNU_SOURCE /* syscall */

#include "io/sandbox_enter.h"

#include <errno.h>
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

void gf_sandbox_enter(pid_t parent, uint32_t seconds) {
    /* A parent that is killed leaves no child behind, even if it died before this was said. */
    set_flag(PR_SET_PDEATHSIG, SIGKILL);
    if ((pid_t)syscall(SYS_getppid) != parent)
        gf_sandbox_exit(ESRCH);
    close_files();
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

void gf_sandbox_enter(pid_t parent, uint32_t seconds) {
    (void)parent;
    (void)seconds;
    gf_sandbox_exit(ENOSYS);
}

#endif
