#define _GNU_SOURCE /* syscall, wait4 */

#include "io/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "io/sandbox_enter.h"

/* ---- memory ---------------------------------------------------------------------------------- */

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

void gf_sandbox_leave(void) {
    gf_sandbox_exit(0);
}

static void nothing(void *context) {
    (void)context;
}

/* How a child ended. */
typedef struct ending {
    gf_sandbox_end end;
    int code; /* STOPPED: what it left with, 0 if a signal ended it */
} ending;

static double cpu_seconds(const struct rusage *usage) {
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

/* Wait for the end of a child. Returns 0 or an errno. */
static int wait_for(pid_t child, ending *ended, uint32_t seconds) {
    struct rusage usage;
    int status;

    while (wait4(child, &status, __WALL, &usage) < 0) {
        /* Reaped by another part of the program: it has ended, and how is unknown. */
        if (errno == ECHILD) {
            *ended = (ending){.end = GF_SANDBOX_DONE};
            return 0;
        }
        if (errno != EINTR)
            return errno;
    }
    if (WIFEXITED(status)) {
        const int code = WEXITSTATUS(status);
        *ended = (ending){.end = code == 0 ? GF_SANDBOX_DONE : GF_SANDBOX_STOPPED, .code = code};
        return 0;
    }
    const bool late = WTERMSIG(status) == SIGKILL && cpu_seconds(&usage) > 0.5 * seconds;
    *ended = (ending){.end = late ? GF_SANDBOX_TIME : GF_SANDBOX_STOPPED};
    return 0;
}

/* Kill and reap a child that wait4 failed for. It is not reaped yet, so no other process has its
 * number. Another call waits, since wait4 may fail again. */
static void kill_child(pid_t child) {
    siginfo_t info;

    (void)kill(child, SIGKILL);
    while (waitid(P_PID, (id_t)child, &info, WEXITED | __WALL) != 0 && errno == EINTR)
        continue;
}

/* Run the work in a child, until that has ended. */
static gf_status run(gf_sandbox_work *work, void *context, const gf_sandbox_memory *shared,
                     uint32_t seconds, const char *name, ending *ended, gf_error *error) {
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
    cause = wait_for(child, ended, seconds);
    if (cause == 0)
        return GF_OK;
    /* The shared piece may not be read while the child writes there. */
    kill_child(child);
    return gf_fail(error, GF_FAILED,
                   "%s: cannot wait for the process that decodes it: %s; run again", name,
                   strerror(cause));
}

gf_status gf_sandbox_run(gf_sandbox_work *work, void *context, const gf_sandbox_memory *shared,
                         uint32_t seconds, const char *name, gf_sandbox_end *end, gf_error *error) {
    ending ended = {0}, probe = {0};
    gf_status status = run(work, context, shared, seconds, name, &ended, error);

    if (status != GF_OK)
        return status;
    *end = ended.end;
    if (ended.end != GF_SANDBOX_STOPPED)
        return GF_OK;
    /* What the child says of its sandbox may be a lie that is to have it switched off: one that
     * does nothing tells the truth. */
    status = run(nothing, NULL, shared, seconds, name, &probe, error);
    if (status != GF_OK || probe.end != GF_SANDBOX_STOPPED)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: is not decoded, for want of a sandbox (%s); convert it to PNG, or use "
                   "--no-sandbox if you trust it",
                   name, probe.code != 0 ? strerror(probe.code) : "a process in it is killed");
}
