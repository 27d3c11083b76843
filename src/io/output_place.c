/* Giving outputs their names: all that belong together, or none of them. */
#define _GNU_SOURCE /* renameat2 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "io/output_link.h"
#include "io/output_sync.h"
#include "io/output_temporary.h"
#include "thread.h"

/* ---- names: these return 0 or an errno ------------------------------------------------------- */

static int rename_with(const char *from, const char *to, unsigned flags) {
#ifdef RENAME_NOREPLACE
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags) == 0 ? 0 : errno;
#else
    (void)from, (void)to, (void)flags;
    return ENOSYS;
#endif
}

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

static int rename_new(gf_output *output) {
    struct stat info;
    int cause = rename_with(output->temporary, output->target, RENAME_NOREPLACE);

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
static int place_new(gf_output *output) {
    int cause = 0;

    if (output->temporary == NULL)
        cause = gf_output_give_name(output);
    if (cause == 0 && output->temporary != NULL)
        cause = rename_new(output);
    if (cause == 0) {
        output->placed = GF_NEW;
        gf_output_end_temporary(output);
    }
    return cause;
}

static int exchange(gf_output *output) {
    struct stat info;
    const int cause = rename_with(output->temporary, output->target, RENAME_EXCHANGE);

    if (cause != 0 || lstat(output->temporary, &info) != 0 || !S_ISDIR(info.st_mode))
        return cause;
    (void)rename_with(output->temporary, output->target, RENAME_EXCHANGE);
    return EISDIR;
}

/* Gives the file a name that something has. revocable: in a way that can be taken back, if
 * possible. */
static int place_over(gf_output *output, bool revocable) {
    int cause = 0;

    /* It came while the output was written. */
    if (output->nameless[0] != '\0' && !output->synced && output->sync != GF_SYNC_NEVER)
        cause = gf_output_sync_file(output);
    if (cause == 0 && output->temporary == NULL)
        cause = gf_output_give_temporary(output);
    if (cause != 0)
        return cause;
    if (revocable) {
        cause = exchange(output);
        output->placed = cause == 0 ? GF_EXCHANGED : GF_NOT_PLACED;
        /* It is gone. */
        if (cause == ENOENT)
            cause = place_new(output);
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

static gf_status place(gf_output *output, bool revocable, gf_error *error) {
    /* What is written directly is where it should be; of ranks the first one's is the file. */
    if (!gf_output_seekable(output) || output->joined)
        return GF_OK;
    int cause = stat(gf_output_reach(output), &output->made) != 0 ? errno
                : output->force && output->replaces               ? EEXIST
                                                                  : place_new(output);
    if (cause == EEXIST && !output->force)
        return gf_output_fail_exists(output->name, error);
    if (cause == EEXIST)
        cause = place_over(output, revocable);
    return cause == 0
               ? GF_OK
               : gf_output_fail(output->name, "cannot put the output in place", cause, error);
}

/* 1: nobody has put something else there since; 0: somebody has, or it is gone; -1: cannot tell. */
static int is_still_ours(const gf_output *output) {
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
static bool take_back(gf_output *output) {
    const gf_placed placed = output->placed;
    const int ours = placed == GF_NOT_PLACED ? 0 : is_still_ours(output);

    output->placed = GF_NOT_PLACED;
    if (ours == 0)
        return true;
    if (ours > 0 && placed == GF_NEW)
        return unlink(output->target) == 0;
    if (ours > 0 && placed == GF_EXCHANGED)
        return rename_with(output->temporary, output->target, RENAME_EXCHANGE) == 0;
    return false;
}

/* Append to the message of a failure. */
static void extend_message(gf_error *error, const char *before, const char *name,
                           const char *after) {
    if (error == NULL)
        return;
    const gf_error so_far = *error;
    (void)gf_set_error(error, so_far.status, "%s; %s%s%s", so_far.message, before, name, after);
    error->cause = so_far.cause;
}

static void take_all_back(gf_output *const *outputs, size_t count, gf_error *error) {
    while (count > 0) {
        gf_output *output = outputs[--count];
        const bool exchanged = output->placed == GF_EXCHANGED;
        if (take_back(output))
            continue;
        extend_message(error, "", output->name, " was put in place before that");
        if (!exchanged)
            continue;
        /* The only copy of what was there: it stays. */
        extend_message(error, "what it replaced is in ", output->temporary, "");
        gf_output_end_temporary(output);
    }
}

/* Remove the temporary files, and name in the message those that stay: nothing removes them later.
 */
static void remove_temporaries(gf_output *const *outputs, size_t count, gf_error *error) {
    for (size_t i = 0; i < count; i++) {
        const char *temporary = outputs[i]->joined ? NULL : outputs[i]->temporary;
        if (temporary != NULL && unlink(temporary) != 0 && errno != ENOENT)
            extend_message(error, "cannot remove its temporary file ", temporary, "");
    }
}

/* What it replaced is not needed any more. */
static void settle(gf_output *output) {
    if (output->placed == GF_EXCHANGED)
        (void)unlink(output->temporary);
    if (!output->joined)
        gf_output_end_temporary(output);
    gf_claim_drop(&output->claim);
}

/* ---- all ------------------------------------------------------------------------------------- */

gf_status gf_outputs_place(gf_output *const *outputs, size_t count, gf_error *error) {
    gf_status status = GF_OK;
    size_t placed = 0;
    sigset_t before;

    /* A signal that ends the program waits until all have their names. */
    gf_hold_signals(&before);
    for (; placed < count && status == GF_OK; placed += status == GF_OK)
        status = place(outputs[placed], placed + 1 < count, error);
    if (status != GF_OK) {
        take_all_back(outputs, placed, error);
        remove_temporaries(outputs, count, error);
    }
    for (size_t i = 0; i < count && status == GF_OK; i++)
        settle(outputs[i]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count && status == GF_OK; i++)
        status = gf_output_sync_folder(outputs[i], error);
    return status;
}

gf_status gf_output_place(gf_output *output, gf_error *error) {
    return gf_outputs_place(&output, 1, error);
}
