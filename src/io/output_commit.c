/* Giving outputs their names: all that belong together, or none of them. */
#define _GNU_SOURCE /* renameat2, futimens */

#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "core/error.h"
#include "core/thread.h"

/* ---- copying: these return 0 or an errno ----------------------------------------------------- */

static int output_copy_bytes(int to, int from) {
    enum { MAX_BYTES = 1 << 30 }; /* in one call to the system */
    off_t at = 0;
    ssize_t put;
    do
        put = sendfile(to, from, &at, MAX_BYTES);
    while (put > 0 || (put < 0 && errno == EINTR));
    return put == 0 ? 0 : errno;
}

/* Time and all: a record of what was made may hold it. */
static int output_copy_rest(gf_output *output, const struct stat *info, const char *from) {
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, info->st_mtim};
    if ((output->replaces && gf_output_keep_access(output, from, info) != 0) ||
        futimens(output->fd, times) != 0)
        return errno;
    const int cause = output->synced ? gf_output_sync_file(output) : 0;
    return cause == 0 && fstat(output->fd, &output->made) != 0 ? errno : cause;
}

/* Copy a file without a name, which the system gives none, to one that has a temporary name.
 * Returns `cause` if there is none. */
static int output_copy_to_temporary(gf_output *output, int cause) {
    const int from = output->fd;
    const mode_t allowed = output->replaces ? S_IRWXU : 0777;
    struct stat info;
    gf_error unread;
    if (fstat(from, &info) != 0)
        return errno;
    if (gf_output_create_temporary(output, info.st_mode & allowed, &unread)) {
        output->fd = from;
        return cause;
    }
    cause = output_copy_bytes(output->fd, from);
    if (cause == 0)
        cause = output_copy_rest(output, &info, output->nameless);
    (void)close(from);
    output->nameless[0] = '\0';
    output->owned = false;
    if (close(output->fd) != 0 && errno != EINTR && cause == 0)
        cause = errno;
    output->fd = -1;
    return cause;
}

/* ---- names: these return 0 or an errno ------------------------------------------------------- */

/* Does the system refuse to name a file that has no name, though it made that file? AppArmor and
 * SELinux do, file systems without links, FUSE and sandboxes without the call, and mounts of a part
 * of a file system. Other errors would meet a copy, too. */
static bool output_is_refused(int cause) {
    return cause == EPERM || cause == EACCES || cause == EXDEV || cause == EOPNOTSUPP ||
           cause == ENOENT || cause == ENOSYS || cause == EINVAL;
}

static int output_copy_if_refused(gf_output *output, int cause) {
    return output_is_refused(cause) ? output_copy_to_temporary(output, cause) : cause;
}

/* Give it the name of its target, if nothing has that, or, where the system refuses, a temporary
 * one. */
static int output_give_name(gf_output *output) {
    if (linkat(AT_FDCWD, output->nameless, AT_FDCWD, output->target, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    return output_copy_if_refused(output, errno);
}

/* Give it a temporary name. ENAMETOOLONG also for a full table of temporaries. */
static int output_give_temporary(gf_output *output) {
    int cause = EEXIST;
    for (int attempt = 0; attempt < GF_TEMPORARY_ATTEMPTS && cause == EEXIST; attempt++) {
        cause = gf_output_begin_temporary(output);
        if (cause == 0) {
            if (linkat(AT_FDCWD, output->nameless, AT_FDCWD, output->temporary,
                       AT_SYMLINK_FOLLOW) != 0)
                cause = errno;
            gf_temporary_made(output->slot);
        }
        if (cause != 0)
            gf_output_end_temporary(output);
    }
    return output_copy_if_refused(output, cause);
}

static int output_rename_with(const char *from, const char *to, unsigned flags) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags) == 0 ? 0 : errno;
}

static int output_rename_new(gf_output *output) {
    struct stat info;
    int cause = output_rename_with(output->temporary, output->target, RENAME_NOREPLACE);
    if (cause == 0 || cause == EEXIST)
        return cause;
    /* Not every file system knows that call, nor hard links; what is left is to look first. */
    cause = link(output->temporary, output->target) == 0 ? 0 : errno;
    if (cause == 0)
        (void)unlink(output->temporary);
    if (cause == 0 || cause == EEXIST)
        return cause;
    if (lstat(output->target, &info) == 0)
        return EEXIST;
    return rename(output->temporary, output->target) == 0 ? 0 : errno;
}

/* Gives the file its name only if nothing has it: otherwise EEXIST. */
static int output_commit_new(gf_output *output) {
    int cause = 0;
    if (!output->temporary)
        cause = output_give_name(output);
    if (cause == 0 && output->temporary)
        cause = output_rename_new(output);
    if (cause == 0) {
        output->placed = GF_NEW;
        gf_output_end_temporary(output);
    }
    return cause;
}

static int output_exchange(gf_output *output) {
    struct stat info;
    const int cause = output_rename_with(output->temporary, output->target, RENAME_EXCHANGE);
    if (cause != 0 || lstat(output->temporary, &info) != 0 || !S_ISDIR(info.st_mode))
        return cause;
    (void)output_rename_with(output->temporary, output->target, RENAME_EXCHANGE);
    return EISDIR;
}

/* Gives the file a name that something has. revocable: in a way that can be taken back, if
 * possible. */
static int output_commit_over(gf_output *output, bool revocable) {
    int cause = 0;
    /* It came while the output was written. */
    if (output->nameless[0] != '\0' && !output->synced && output->sync != GF_SYNC_NEVER)
        cause = gf_output_sync_file(output);
    if (cause == 0 && !output->temporary)
        cause = output_give_temporary(output);
    if (cause != 0)
        return cause;
    if (revocable) {
        cause = output_exchange(output);
        output->placed = cause == 0 ? GF_EXCHANGED : GF_UNCOMMITTED;
        /* It is gone. */
        if (cause == ENOENT)
            cause = output_commit_new(output);
        if (cause != EINVAL && cause != ENOSYS && cause != EOPNOTSUPP)
            return cause;
    }
    /* The last one, or the system or the file system exchanges no names. */
    if (rename(output->temporary, output->target) != 0)
        return errno;
    output->placed = GF_OVER;
    gf_output_end_temporary(output);
    return 0;
}

static gf_status output_commit_one(gf_output *output, bool revocable, gf_error *error) {
    /* What is written directly is where it should be; of a file that processes share, its
     * creator's is the file. */
    if (!gf_output_seekable(output) || output->joined)
        return GF_OK;
    int cause = stat(gf_output_reach(output), &output->made) != 0 ? errno
                : output->force && output->replaces               ? EEXIST
                                                                  : output_commit_new(output);
    if (cause == EEXIST && !output->force)
        return gf_output_fail_exists(output->name, error);
    if (cause == EEXIST)
        cause = output_commit_over(output, revocable);
    return cause == 0
               ? GF_OK
               : gf_output_fail(output->name, "cannot put the output in place", cause, error);
}

/* 1: nobody has put something else there since; 0: somebody has, or it is gone; -1: cannot tell. */
static int output_is_still_ours(const gf_output *output) {
    const struct stat *made = &output->made;
    struct stat info;
    if (lstat(output->target, &info) != 0)
        return errno == ENOENT ? 0 : -1;
    /* A file that is gone leaves its inode to the next one. */
    return info.st_dev == made->st_dev && info.st_ino == made->st_ino &&
           info.st_size == made->st_size && info.st_mtim.tv_sec == made->st_mtim.tv_sec &&
           info.st_mtim.tv_nsec == made->st_mtim.tv_nsec;
}

/* Back to what was there before. False where it stays. */
static bool output_take_back(gf_output *output) {
    const gf_commit_state placed = output->placed;
    const int ours = placed == GF_UNCOMMITTED ? 0 : output_is_still_ours(output);
    output->placed = GF_UNCOMMITTED;
    if (ours == 0)
        return true;
    if (ours > 0 && placed == GF_NEW)
        return unlink(output->target) == 0;
    if (ours > 0 && placed == GF_EXCHANGED)
        return output_rename_with(output->temporary, output->target, RENAME_EXCHANGE) == 0;
    return false;
}

/* Append to the message of a failure. */
static void output_extend_message(gf_error *error, const char *before, const char *name,
                                  const char *after) {
    if (!error)
        return;
    const gf_error so_far = *error;
    (void)gf_set_error(error, so_far.status, "%s; %s%s%s", so_far.message, before, name, after);
    error->cause = so_far.cause;
}

static void output_take_all_back(gf_output *const *outputs, size_t count, gf_error *error) {
    while (count > 0) {
        gf_output *output = outputs[--count];
        const bool exchanged = output->placed == GF_EXCHANGED;
        if (output_take_back(output))
            continue;
        output_extend_message(error, "", output->name, " was put in place before that");
        if (!exchanged)
            continue;
        /* The only copy of what was there: it stays. */
        output_extend_message(error, "what it replaced is in ", output->temporary, "");
        gf_output_end_temporary(output);
    }
}

/* Remove the temporary files, and name in the message those that stay: nothing removes them later.
 */
static void output_remove_temporaries(gf_output *const *outputs, size_t count, gf_error *error) {
    for (size_t i = 0; i < count; i++) {
        const char *temporary = outputs[i]->joined ? NULL : outputs[i]->temporary;
        if (temporary && unlink(temporary) != 0 && errno != ENOENT)
            output_extend_message(error, "cannot remove its temporary file ", temporary, "");
    }
}

/* What it replaced is not needed any more. */
static void output_settle(gf_output *output) {
    if (output->placed == GF_EXCHANGED)
        (void)unlink(output->temporary);
    if (!output->joined)
        gf_output_end_temporary(output);
    gf_output_drop_claim(output);
}

/* ---- all ------------------------------------------------------------------------------------- */

gf_status gf_outputs_commit(gf_output *const *outputs, size_t count, gf_error *error) {
    gf_status status = GF_OK;
    size_t placed = 0;
    sigset_t before;
    /* A signal that ends the program waits until all have their names. */
    gf_block_signals(&before);
    for (; placed < count && !status; placed += !status)
        status = output_commit_one(outputs[placed], placed + 1 < count, error);
    if (status) {
        output_take_all_back(outputs, placed, error);
        output_remove_temporaries(outputs, count, error);
    }
    for (size_t i = 0; i < count && !status; i++)
        output_settle(outputs[i]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count && !status; i++)
        status = gf_output_sync_folder(outputs[i], error);
    return status;
}

gf_status gf_output_commit(gf_output *output, gf_error *error) {
    return gf_outputs_commit(&output, 1, error);
}

/* ---- whole files ----------------------------------------------------------------------------- */

gf_status gf_output_file_open(const char *path, const gf_file_options *options,
                              gf_output_file **file, gf_error *error) {
    return gf_output_open(path, options, false, file, error);
}

gf_status gf_output_file_write(gf_output_file *file, const void *data, size_t size,
                               gf_error *error) {
    gf_status status = gf_output_write(file, data, size, error);
    return status ? status : gf_output_prepare(file, error);
}

void gf_output_file_close(gf_output_file *file) {
    gf_output_close(file);
}
