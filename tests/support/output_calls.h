/* Replacements of the system calls that create, name and sync output files: they record each call,
 * and fail on request. */
#ifndef OUTPUT_CALLS_H
#define OUTPUT_CALLS_H

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls so far, one letter per call: L linkat, R rename, N and X renameat2 (RENAME_NOREPLACE,
 * RENAME_EXCHANGE), D fdatasync, F fsync. Lower case: the call failed. */
static char calls[256];

static struct {
    bool named;         /* no unnamed files (O_TMPFILE) */
    bool no_proc;       /* no /proc */
    bool no_exchange;   /* no RENAME_EXCHANGE */
    int link_error;     /* errno for linking unnamed files; 0: linking works */
    bool keep_names;    /* files cannot be renamed or removed */
    bool append_only;   /* the same, and the directory is marked as append-only */
    char fails;         /* letter of the call that fails */
    unsigned after;     /* number of such calls before it */
    int cause;          /* errno of the call; 0: it does not fail */
    void (*hook)(void); /* called before the call; NULL: none */
} calls_setup;

static inline void calls_reset(void) {
    memset(&calls_setup, 0, sizeof calls_setup);
    calls[0] = '\0';
}

/* Record a call. Return 0, or the errno that it fails with. */
static inline int calls_record(char letter, int cause) {
    const size_t used = strlen(calls);
    unsigned before = 0;
    for (size_t i = 0; i < used; i++)
        before += (calls[i] | 0x20) == (letter | 0x20);
    if (cause == 0 && calls_setup.fails == letter && before == calls_setup.after) {
        if (calls_setup.hook != NULL)
            calls_setup.hook();
        cause = calls_setup.cause;
    }
    if (used + 1 < sizeof calls)
        (void)snprintf(calls + used, sizeof calls - used, "%c", letter);
    errno = cause;
    return cause;
}

/* Mark the last call as failed unless its result is 0. */
static inline int calls_end(long result) {
    if (result != 0)
        calls[strlen(calls) - 1] |= 0x20;
    return (int)result;
}

int open(const char *path, int flags, ...) {
    unsigned mode = 0;
    va_list rest;
    va_start(rest, flags);
    if ((flags & (O_CREAT | O_TMPFILE)) != 0)
        mode = va_arg(rest, unsigned);
    va_end(rest);
    if (calls_setup.named && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int stat(const char *path, struct stat *info) {
    if (calls_setup.no_proc && strncmp(path, "/proc/", 6) == 0) {
        errno = ENOENT;
        return -1;
    }
    return fstatat(AT_FDCWD, path, info, 0);
}

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *info) {
    const long result = syscall(SYS_statx, directory, path, flags, mask, info);
    if (result == 0 && calls_setup.append_only)
        info->stx_attributes |= STATX_ATTR_APPEND;
    return (int)result;
}

static inline int calls_keep_names(void) {
    return calls_setup.keep_names || calls_setup.append_only ? EPERM : 0;
}

int unlink(const char *path) {
    errno = calls_keep_names();
    return errno != 0 ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
    const int cause = strncmp(old, "/proc/", 6) == 0 ? calls_setup.link_error : 0;
    return calls_end(calls_record('L', cause) ? -1
                                              : syscall(SYS_linkat, from, old, to, new, flags));
}

int rename(const char *old, const char *new) {
    return calls_end(calls_record('R', calls_keep_names())
                         ? -1
                         : syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0));
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    const bool exchange = flags == RENAME_EXCHANGE;
    const int cause = exchange && calls_setup.no_exchange ? EINVAL : calls_keep_names();
    return calls_end(calls_record(exchange ? 'X' : 'N', cause)
                         ? -1
                         : syscall(SYS_renameat2, from, old, to, new, flags));
}

int fdatasync(int fd) {
    return calls_end(calls_record('D', 0) ? -1 : syscall(SYS_fdatasync, fd));
}

int fsync(int fd) {
    return calls_end(calls_record('F', 0) ? -1 : syscall(SYS_fsync, fd));
}

#endif
