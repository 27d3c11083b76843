/* Count the calls that may fail, and make the selected one fail. The linker option --wrap inserts
 * these functions for each symbol of calls.def. Without GF_FAULT_FD or GF_FAULT in the environment,
 * they only forward calls.
 *
 * Manually: GF_FAULT=once:17 build/gpufilter-faults ..., with the names of modes below;
 * GF_FAULT=trace:0 lists the calls on standard error. */
#define _GNU_SOURCE

#include "layer_inside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

/* The real functions, for the layer itself. */
void *__real_mmap(void *, size_t, int, int, int, off_t);
ssize_t __real_write(int, const void *, size_t);
int __real_kill(pid_t, int);
int __real_open(const char *, int, ...);
int __real_openat(int, const char *, int, ...);
int __real_fcntl(int, int, ...);
int __real_ioctl(int, unsigned long, ...);

extern const char __executable_start;

static gf_faults own; /* of a manual run */
static gf_faults *faults;
static int trace;
static _Atomic int failing_class; /* 1 + the class that fails from now on */

static void start_manually(const char *text) {
    static const char *const names[FAULT_MODES] = {
        "count", "once", "on", "other", "short", "interrupted", "unsupported", "before", "after"};
    const char *colon = strchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    faults = &own;
    own.classes = UINT32_MAX;
    own.at = colon ? strtoull(colon + 1, NULL, 10) : 0;
    trace = strncmp(text, "trace", length) == 0;
    own.lacking = (uint32_t)own.at;
    for (int mode = 0; mode < FAULT_MODES; mode++)
        if (strlen(names[mode]) == length && strncmp(text, names[mode], length) == 0)
            own.mode = (gf_fault_mode)mode;
}

/* Runs before all other constructors of the program, and before it starts threads. */
__attribute__((constructor(101))) static void start(void) {
    const char *descriptor = getenv(FAULT_DESCRIPTOR), *manual = getenv("GF_FAULT");
    if (manual) {
        start_manually(manual);
    } else if (descriptor) {
        void *memory = __real_mmap(NULL, sizeof(gf_faults), PROT_READ | PROT_WRITE, MAP_SHARED,
                                   (int)strtol(descriptor, NULL, 10), 0);
        faults = memory == MAP_FAILED ? NULL : memory;
    }
    if (faults && !faults->main_process)
        faults->main_process = getpid();
}

#ifdef GF_COVERAGE
/* Coverage counters are written later, through the same calls. */
__attribute__((destructor)) static void stop(void) {
    faults = NULL;
}
#endif

static void note(uint64_t number, int symbol) {
    char line[96];
    const int length =
        snprintf(line, sizeof line, "%" PRIu64 " %s\n", number, gf_fault_calls[symbol].symbol);
    (void)!__real_write(2, line, (size_t)length);
}

static uint64_t offset_of(const void *site) {
    return (uint64_t)((const char *)site - &__executable_start);
}

/* Set a breakpoint here to find the failing call. */
__attribute__((noinline)) void gf_fault_injected(int symbol, const void *site);
void gf_fault_injected(int symbol, const void *site) {
    unsigned nothing = 0;
    if (atomic_compare_exchange_strong(&faults->symbol, &nothing, (unsigned)symbol + 1))
        atomic_store(&faults->site, offset_of(site));
    atomic_fetch_add(&faults->injected, 1);
}

void gf_fault_die(void) {
    (void)__real_kill(faults->main_process, SIGKILL);
    for (;;)
        pause();
}

/* Return the errno of a call in this mode; 0: it does not fail. */
static int errno_of(const gf_fault_call *call, int mode) {
    switch (mode) {
    case FAULT_ONCE:
        return call->usual;
    case FAULT_REPEATED:
        /* cudaErrorIllegalAddress: all later calls fail, too. */
        return call->class == FAULT_CUDA ? 700 : call->usual;
    case FAULT_OTHER_CAUSE:
        return call->other;
    case FAULT_INTERRUPTED:
        return call->interrupted ? EINTR : 0;
    case FAULT_UNSUPPORTED:
        return call->unsupported;
    default:
        return 0;
    }
}

/* Return 1 + the class whose calls all fail from the selected call on; 0: none. */
static int group(int symbol, int mode) {
    const gf_fault_class class = gf_fault_calls[symbol].class;
    return mode == FAULT_REPEATED && class != FAULT_CLEAN ? (int)class + 1 : 0;
}

gf_fault_decision gf_fault_decide(int symbol, int can, const void *site) {
    const gf_fault_decision unchanged = {.action = FAULT_CONTINUE};
    if (!faults)
        return unchanged;
    const gf_fault_call *call = &gf_fault_calls[symbol];
    if (!(faults->classes >> call->class & 1))
        return unchanged;
    const uint64_t number = atomic_fetch_add(&faults->calls, 1) + 1;
    const int mode = (int)faults->mode;
    if (trace)
        note(number, symbol);
    if (mode == FAULT_NONE) {
        if (number <= FAULT_TRACE)
            faults->trace[number - 1] =
                (struct gf_fault_trace){(uint32_t)symbol, (uint32_t)offset_of(site)};
        return unchanged;
    }
    const int mine = group(symbol, mode);
    const int is_due =
        mode == FAULT_UNSUPPORTED ? symbol == (int)faults->lacking : number == faults->at;
    if (!is_due && !(mine && atomic_load(&failing_class) == mine))
        return unchanged;
    if (mode == FAULT_BEFORE || mode == FAULT_AFTER) {
        gf_fault_injected(symbol, site);
        if (mode == FAULT_BEFORE)
            gf_fault_die();
        return (gf_fault_decision){.action = FAULT_DIE};
    }
    if (mode == FAULT_SHORT) {
        if (!call->partial || !(can & FAULT_CAN_BE_PARTIAL))
            return unchanged;
        gf_fault_injected(symbol, site);
        return (gf_fault_decision){.action = FAULT_PARTIAL};
    }
    const int cause = errno_of(call, mode);
    if (!cause || (mode == FAULT_UNSUPPORTED && !(can & FAULT_CAN_BE_UNSUPPORTED)))
        return unchanged;
    if (mine)
        atomic_store(&failing_class, mine);
    int none = 0;
    atomic_compare_exchange_strong(&faults->cause, &none, cause);
    gf_fault_injected(symbol, site);
    return (gf_fault_decision){.action = FAULT_FAIL, .cause = cause};
}

void gf_fault_report(int descriptor) {
    if (faults)
        atomic_fetch_or(&faults->reported, descriptor == 2 ? 1 : descriptor == 1 ? 2 : 0);
}

/* ---- calls with a variable number of arguments --------------------------------------------- */

static int has_mode(int flags) {
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* O_TMPFILE is the only flag that a file system may not support. */
static int can_be_unsupported(int flags) {
    return (flags & O_TMPFILE) == O_TMPFILE ? FAULT_CAN_BE_UNSUPPORTED : 0;
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (has_mode(flags)) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    const gf_fault_decision decision = gf_fault_decide(CALL_open, can_be_unsupported(flags), SITE);
    if (decision.action == FAULT_FAIL) {
        errno = decision.cause;
        return -1;
    }
    const int fd = __real_open(path, flags, mode);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    return fd;
}

int __wrap___open_2(const char *path, int flags);
int __wrap___open_2(const char *path, int flags) {
    const gf_fault_decision decision =
        gf_fault_decide(CALL___open_2, can_be_unsupported(flags), SITE);
    if (decision.action == FAULT_FAIL) {
        errno = decision.cause;
        return -1;
    }
    const int fd = __real_open(path, flags);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    return fd;
}

int __wrap_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...) {
    mode_t mode = 0;
    if (has_mode(flags)) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    const gf_fault_decision decision =
        gf_fault_decide(CALL_openat, can_be_unsupported(flags), SITE);
    if (decision.action == FAULT_FAIL) {
        errno = decision.cause;
        return -1;
    }
    const int fd = __real_openat(directory, path, flags, mode);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    return fd;
}

int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    const gf_fault_decision decision = gf_fault_decide(CALL_fcntl, 0, SITE);
    if (decision.action == FAULT_FAIL) {
        errno = decision.cause;
        return -1;
    }
    const int result = __real_fcntl(fd, command, argument);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    return result;
}

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...) {
    va_list args;
    va_start(args, request);
    void *argument = va_arg(args, void *);
    va_end(args);
    const gf_fault_decision decision = gf_fault_decide(CALL_ioctl, FAULT_CAN_BE_UNSUPPORTED, SITE);
    if (decision.action == FAULT_FAIL) {
        errno = decision.cause;
        return -1;
    }
    const int result = __real_ioctl(fd, request, argument);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    return result;
}
