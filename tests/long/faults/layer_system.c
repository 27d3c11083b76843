/* Calls with special cases: memory mapping, asprintf, syscall, and waiting for a process. */
#define _GNU_SOURCE

#include "layer_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);
int __wrap_asprintf(char **, const char *, ...) __attribute__((format(printf, 2, 3)));
int __wrap___asprintf_chk(char **, int, const char *, ...) __attribute__((format(printf, 3, 4)));
long __real_syscall(long, ...);
long __wrap_syscall(long, ...);
pid_t __real_wait4(pid_t, int *, int, struct rusage *);
pid_t __wrap_wait4(pid_t, int *, int, struct rusage *);

/* Only mapping a file may be unsupported. */
void *__wrap_mmap(void *at, size_t bytes, int allowed, int flags, int fd, off_t from) {
    const int can = flags & MAP_ANONYMOUS ? 0 : FAULT_CAN_BE_UNSUPPORTED;
    const gf_fault_decision decision = gf_fault_decide(CALL_mmap, can, SITE);
    if (decision.action == FAULT_FAIL) {
        errno = decision.cause;
        return MAP_FAILED;
    }
    void *result = __real_mmap(at, bytes, allowed, flags, fd, from);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    return result;
}

/* Format into allocated memory; return -1 if there is no memory. */
__attribute__((format(printf, 3, 0))) static int fault_asprintf(const gf_fault_decision *decision,
                                                                char **text, const char *format,
                                                                va_list args) {
    if (decision->action == FAULT_FAIL) {
        errno = decision->cause;
        return -1;
    }
    const int length = vasprintf(text, format, args);
    if (decision->action == FAULT_DIE)
        gf_fault_die();
    return length;
}

int __wrap_asprintf(char **text, const char *format, ...) {
    const gf_fault_decision decision = gf_fault_decide(CALL_asprintf, 0, SITE);
    va_list args;
    va_start(args, format);
    const int length = fault_asprintf(&decision, text, format, args);
    va_end(args);
    return length;
}

int __wrap___asprintf_chk(char **text, int flag, const char *format, ...) {
    const gf_fault_decision decision = gf_fault_decide(CALL___asprintf_chk, 0, SITE);
    va_list args;
    va_start(args, format);
    const int length = fault_asprintf(&decision, text, format, args);
    va_end(args);
    return length;
}

/* Only SYS_clone in the parent is wrapped: the other calls belong to the child. */
long __wrap_syscall(long number, ...) {
    long v[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        v[i] = va_arg(rest, long);
    va_end(rest);
    if (number != SYS_clone)
        return __real_syscall(number, v[0], v[1], v[2], v[3], v[4], v[5]);
    const pid_t self = getpid();
    const gf_fault_decision decision = gf_fault_decide(CALL_syscall, 0, SITE);
    if (decision.action == FAULT_FAIL) {
        errno = decision.cause;
        return -1;
    }
    const long result = __real_syscall(number, v[0], v[1], v[2], v[3], v[4], v[5]);
    if (decision.action == FAULT_DIE && getpid() == self)
        gf_fault_die();
    return result;
}

/* ECHILD: another part of the program has reaped the child, so it has ended. */
pid_t __wrap_wait4(pid_t child, int *status, int options, struct rusage *usage) {
    const gf_fault_decision decision = gf_fault_decide(CALL_wait4, 0, SITE);
    if (decision.action == FAULT_FAIL && decision.cause != ECHILD) {
        errno = decision.cause;
        return -1;
    }
    const pid_t result = __real_wait4(child, status, options, usage);
    if (decision.action == FAULT_DIE)
        gf_fault_die();
    if (decision.action != FAULT_FAIL)
        return result;
    errno = ECHILD;
    return -1;
}
