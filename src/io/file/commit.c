/* Committing outputs: give the files their final names, all of one group or none. */
#define _GNU_SOURCE /* renameat2, futimens */

#include "io/file/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "core/error.h"
#include "core/thread.h"

/* ---- copying; functions return 0 or an errno ------------------------------------------------- */

static int output_copy_bytes(int to, int from) {
    enum { MAX_BYTES = 1 << 30 }; /* bytes per sendfile call */
    off_t at = 0;
    ssize_t copied;
    do
        copied = sendfile(to, from, &at, MAX_BYTES);
    while (copied > 0 || (copied < 0 && errno == EINTR));
    return copied == 0 ? 0 : errno;
}

/* Copy permissions and modification time; a later check may compare the time. */
static int output_copy_metadata(gf_output *output, const struct stat *info, const char *from) {
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, info->st_mtim};
    if ((output->replaces && gf_output_copy_access(output, from, info) != 0) ||
        futimens(output->fd, times) != 0)
        return errno;
    const int cause = output->synced ? gf_output_sync_file(output) : 0;
    return cause == 0 && fstat(output->fd, &output->info) != 0 ? errno : cause;
}

/* Copy an unnamed file that the system refuses to link to a file with a temporary name. Return
 * `cause` if that file cannot be created. */
static int output_copy_to_temporary(gf_output *output, int cause) {
    const int from = output->fd;
    const mode_t allowed = output->replaces ? S_IRWXU : 0777;
    struct stat info;
    gf_error ignored;
    if (fstat(from, &info) != 0)
        return errno;
    if (gf_output_create_temporary(output, info.st_mode & allowed, &ignored)) {
        output->fd = from;
        return cause;
    }
    cause = output_copy_bytes(output->fd, from);
    if (cause == 0)
        cause = output_copy_metadata(output, &info, output->proc_path);
    (void)close(from);
    output->proc_path[0] = '\0';
    output->owned = false;
    if (close(output->fd) != 0 && errno != EINTR && cause == 0)
        cause = errno;
    output->fd = -1;
    return cause;
}

/* ---- naming; functions return 0 or an errno -------------------------------------------------- */

/* Return whether the system refuses to link an unnamed file although it created it. This happens
 * with AppArmor and SELinux, on file systems without hard links, on FUSE and in sandboxes without
 * linkat, and on bind mounts of a subdirectory. Other errors would also affect a copy. */
static bool output_is_link_refused(int cause) {
    return cause == EPERM || cause == EACCES || cause == EXDEV || cause == EOPNOTSUPP ||
           cause == ENOENT || cause == ENOSYS || cause == EINVAL;
}

static int output_copy_if_refused(gf_output *output, int cause) {
    return output_is_link_refused(cause) ? output_copy_to_temporary(output, cause) : cause;
}

/* Link the file to its target, which must not exist. If the system refuses, copy it. */
static int output_link_target(gf_output *output) {
    if (linkat(AT_FDCWD, output->proc_path, AT_FDCWD, output->target, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    return output_copy_if_refused(output, errno);
}

/* Link the file to a temporary name. If the system refuses, copy it. */
static int output_link_temporary(gf_output *output) {
    int cause = EEXIST;
    for (int attempt = 0; attempt < GF_TEMPORARY_ATTEMPTS && cause == EEXIST; attempt++) {
        cause = gf_output_register_temporary(output);
        if (cause == 0) {
            if (linkat(AT_FDCWD, output->proc_path, AT_FDCWD, output->temporary,
                       AT_SYMLINK_FOLLOW) != 0)
                cause = errno;
            gf_temporary_made(output->slot);
        }
        if (cause != 0)
            gf_output_unregister_temporary(output);
    }
    return output_copy_if_refused(output, cause);
}

static int output_rename_flags(const char *from, const char *to, unsigned flags) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags) == 0 ? 0 : errno;
}

static int output_rename_noreplace(gf_output *output) {
    struct stat info;
    int cause = output_rename_flags(output->temporary, output->target, RENAME_NOREPLACE);
    if (cause == 0 || cause == EEXIST)
        return cause;
    /* Not every file system supports RENAME_NOREPLACE or hard links. The last resort is to test for
     * the target first. */
    cause = link(output->temporary, output->target) == 0 ? 0 : errno;
    if (cause == 0)
        (void)unlink(output->temporary);
    if (cause == 0 || cause == EEXIST)
        return cause;
    if (lstat(output->target, &info) == 0)
        return EEXIST;
    return rename(output->temporary, output->target) == 0 ? 0 : errno;
}

/* Give the file its final name. Return EEXIST if the target exists. */
static int output_commit_new(gf_output *output) {
    int cause = 0;
    if (!output->temporary)
        cause = output_link_target(output);
    if (cause == 0 && output->temporary)
        cause = output_rename_noreplace(output);
    if (cause == 0) {
        output->commit_state = GF_NEW;
        gf_output_unregister_temporary(output);
    }
    return cause;
}

static int output_exchange(gf_output *output) {
    struct stat info;
    const int cause = output_rename_flags(output->temporary, output->target, RENAME_EXCHANGE);
    if (cause != 0 || lstat(output->temporary, &info) != 0 || !S_ISDIR(info.st_mode))
        return cause;
    (void)output_rename_flags(output->temporary, output->target, RENAME_EXCHANGE);
    return EISDIR;
}

/* Replace the existing target. reversible: exchange the two names, if the file system can, so that
 * the commit can be rolled back. */
static int output_commit_replacing(gf_output *output, bool reversible) {
    int cause = 0;
    /* The target was created while the output was written, so the file is not synced yet. */
    if (output->proc_path[0] != '\0' && !output->synced && output->sync != GF_SYNC_NEVER)
        cause = gf_output_sync_file(output);
    if (cause == 0 && !output->temporary)
        cause = output_link_temporary(output);
    if (cause != 0)
        return cause;
    if (reversible) {
        cause = output_exchange(output);
        output->commit_state = cause == 0 ? GF_EXCHANGED : GF_UNCOMMITTED;
        /* The target was removed in the meantime. */
        if (cause == ENOENT)
            cause = output_commit_new(output);
        if (cause != EINVAL && cause != ENOSYS && cause != EOPNOTSUPP)
            return cause;
    }
    /* This is the last output of the group, or names cannot be exchanged. */
    if (rename(output->temporary, output->target) != 0)
        return errno;
    output->commit_state = GF_REPLACED;
    gf_output_unregister_temporary(output);
    return 0;
}

static gf_status output_commit_one(gf_output *output, bool reversible, gf_error *error) {
    /* Outputs written directly have no other name. A shared file is committed by its creator. */
    if (!gf_output_seekable(output) || output->joined)
        return GF_OK;
    int cause = stat(gf_output_pending_path(output), &output->info) != 0 ? errno : 0;
    if (cause == 0)
        cause = output->force && output->replaces ? EEXIST : output_commit_new(output);
    if (cause == EEXIST && !output->force)
        return gf_output_fail_exists(output->name, error);
    if (cause == EEXIST)
        cause = output_commit_replacing(output, reversible);
    return cause == 0 ? GF_OK
                      : gf_output_fail(output->name, "cannot rename the output to its final name",
                                       cause, error);
}

/* Return 1 if the target is the committed file, 0 if it was replaced or removed, -1 if unknown. */
static int output_is_unmodified(const gf_output *output) {
    const struct stat *committed = &output->info;
    struct stat info;
    if (lstat(output->target, &info) != 0)
        return errno == ENOENT ? 0 : -1;
    /* Compare more than the inode: a new file can reuse it. */
    return info.st_dev == committed->st_dev && info.st_ino == committed->st_ino &&
           info.st_size == committed->st_size && info.st_mtim.tv_sec == committed->st_mtim.tv_sec &&
           info.st_mtim.tv_nsec == committed->st_mtim.tv_nsec;
}

/* Restore the state before the commit. Return false if the output stays. */
static bool output_roll_back(gf_output *output) {
    const gf_commit_state state = output->commit_state;
    const int unmodified = state == GF_UNCOMMITTED ? 0 : output_is_unmodified(output);
    output->commit_state = GF_UNCOMMITTED;
    if (unmodified == 0)
        return true;
    if (unmodified > 0 && state == GF_NEW)
        return unlink(output->target) == 0;
    if (unmodified > 0 && state == GF_EXCHANGED)
        return output_rename_flags(output->temporary, output->target, RENAME_EXCHANGE) == 0;
    return false;
}

/* Append text to the message of an error. */
static void output_extend_message(gf_error *error, const char *before, const char *name,
                                  const char *after) {
    if (!error)
        return;
    const gf_error previous = *error;
    (void)gf_set_error(error, previous.status, "%s; %s%s%s", previous.message, before, name, after);
    error->cause = previous.cause;
}

static void output_roll_back_all(gf_output *const *outputs, size_t count, gf_error *error) {
    while (count > 0) {
        gf_output *output = outputs[--count];
        const bool exchanged = output->commit_state == GF_EXCHANGED;
        if (output_roll_back(output))
            continue;
        output_extend_message(error, "", output->name, " was already written");
        if (!exchanged)
            continue;
        /* Keep the only copy of the replaced file. */
        output_extend_message(error, "the file that it replaced is now ", output->temporary, "");
        gf_output_unregister_temporary(output);
    }
}

/* Remove the temporary files. Append those that cannot be removed to the message, since nothing
 * removes them later. */
static void output_remove_temporaries(gf_output *const *outputs, size_t count, gf_error *error) {
    for (size_t i = 0; i < count; i++) {
        const char *temporary = outputs[i]->joined ? NULL : outputs[i]->temporary;
        if (temporary && unlink(temporary) != 0 && errno != ENOENT)
            output_extend_message(error, "cannot remove the temporary file ", temporary, "");
    }
}

/* Remove the replaced file and release the output's names. */
static void output_finish_commit(gf_output *output) {
    if (output->commit_state == GF_EXCHANGED)
        (void)unlink(output->temporary);
    if (!output->joined)
        gf_output_unregister_temporary(output);
    gf_output_drop_claim(output);
}

/* ---- committing a group ---------------------------------------------------------------------- */

gf_status gf_outputs_commit(gf_output *const *outputs, size_t count, gf_error *error) {
    gf_status status = GF_OK;
    size_t committed = 0;
    sigset_t before;
    /* Defer terminating signals until all files have their names. */
    gf_block_signals(&before);
    for (; committed < count && !status; committed += !status)
        status = output_commit_one(outputs[committed], committed + 1 < count, error);
    if (status) {
        output_roll_back_all(outputs, committed, error);
        output_remove_temporaries(outputs, count, error);
    }
    for (size_t i = 0; i < count && !status; i++)
        output_finish_commit(outputs[i]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count && !status; i++)
        status = gf_output_sync_directory(outputs[i], error);
    return status;
}

gf_status gf_output_commit(gf_output *output, gf_error *error) {
    return gf_outputs_commit(&output, 1, error);
}

/* ---- public interface: files written as a whole ---------------------------------------------- */

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
