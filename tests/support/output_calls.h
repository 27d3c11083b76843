/* The system's calls that give an output its file, its name and its place on the disk: these stand
 * in for them, note what was asked for, and fail where a test says so. */
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

/* What was called, a letter each: L linkat, R rename, N and X renameat2 (without replacing, to
 * exchange), D fdatasync, F fsync. Small ones failed. */
static char calls[256];

static struct {
    bool named;              /* there are no files without a name */
    bool no_proc;            /* nor is there /proc */
    bool no_exchange;        /* file systems exchange no names */
    int stay_nameless;       /* what has no name gets none, for this errno */
    bool stay;               /* nothing is renamed or removed */
    bool append_only;        /* nor is it in such a folder, which says so */
    char fails;              /* this call, */
    unsigned after;          /* when it has been called so often, */
    int cause;               /* with this errno */
    void (*meanwhile)(void); /* is called before that */
} calls_do;

static inline void calls_reset(void) {
    memset(&calls_do, 0, sizeof calls_do);
    calls[0] = '\0';
}

/* Returns 0, or the errno that the call is to fail with. */
static inline int calls_note(char letter, int cause) {
    const size_t used = strlen(calls);
    unsigned before = 0;

    for (size_t i = 0; i < used; i++)
        before += (calls[i] | 0x20) == (letter | 0x20);
    if (cause == 0 && calls_do.fails == letter && before == calls_do.after) {
        if (calls_do.meanwhile != NULL)
            calls_do.meanwhile();
        cause = calls_do.cause;
    }
    if (used + 1 < sizeof calls)
        (void)snprintf(calls + used, sizeof calls - used, "%c", letter);
    errno = cause;
    return cause;
}

/* What the system then said. */
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
    if (calls_do.named && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int stat(const char *path, struct stat *info) {
    if (calls_do.no_proc && strncmp(path, "/proc/", 6) == 0) {
        errno = ENOENT;
        return -1;
    }
    return fstatat(AT_FDCWD, path, info, 0);
}

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *info) {
    const long result = syscall(SYS_statx, folder, path, flags, mask, info);

    if (result == 0 && calls_do.append_only)
        info->stx_attributes |= STATX_ATTR_APPEND;
    return (int)result;
}

static inline int calls_stay(void) {
    return calls_do.stay || calls_do.append_only ? EPERM : 0;
}

int unlink(const char *path) {
    errno = calls_stay();
    return errno != 0 ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
    const int cause = strncmp(old, "/proc/", 6) == 0 ? calls_do.stay_nameless : 0;

    return calls_end(calls_note('L', cause) ? -1 : syscall(SYS_linkat, from, old, to, new, flags));
}

int rename(const char *old, const char *new) {
    return calls_end(calls_note('R', calls_stay())
                         ? -1
                         : syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0));
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    const bool exchange = flags == RENAME_EXCHANGE;
    const int cause = exchange && calls_do.no_exchange ? EINVAL : calls_stay();

    return calls_end(calls_note(exchange ? 'X' : 'N', cause)
                         ? -1
                         : syscall(SYS_renameat2, from, old, to, new, flags));
}

int fdatasync(int fd) {
    return calls_end(calls_note('D', 0) ? -1 : syscall(SYS_fdatasync, fd));
}

int fsync(int fd) {
    return calls_end(calls_note('F', 0) ? -1 : syscall(SYS_fsync, fd));
}

#endif
