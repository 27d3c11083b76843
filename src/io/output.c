#define _GNU_SOURCE /* renameat2 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "io/files.h"
#include "io/temporaries.h"

/* Names of temporary files stay under NAME_MAX (255) whatever the target is called. */
enum { BUFFER_BYTES = 1 << 16, STEM_BYTES = 200, ATTEMPTS = 16 };

struct gf_output {
    char *name;      /* for messages: the path as given, or "standard output" */
    char *target;    /* where the file goes, symbolic links resolved; NULL if written directly */
    char *temporary; /* where it is until it is complete; NULL if written directly */
    int fd;
    int slot; /* of the temporary, for gf_remove_temporaries */
    bool force;
    bool owned; /* close fd in the end (not for standard output) */
    size_t used;
    unsigned char buffer[BUFFER_BYTES];
};

/* ---- names ----------------------------------------------------------------------------------- */

static gf_status fail_exists(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: exists already; use --force to replace it", name);
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static uint64_t random_number(void) {
    static _Thread_local uint64_t counter;
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number)
        return number;
    /* Only uniqueness matters: O_EXCL turns a clash into another attempt. */
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    number = (uint64_t)now.tv_sec * UINT64_C(1000000007) + (uint64_t)now.tv_nsec;
    return number ^ ((uint64_t)getpid() << 40) ^ (counter++ << 56);
}

/* ".NAME.gpufilter-RANDOM.tmp" in the target's folder, so that renaming it is atomic. */
static char *temporary_name(const char *target) {
    const char *stem = last_part(target);
    size_t folder = (size_t)(stem - target);
    size_t size = folder + STEM_BYTES + 64;
    char *name = malloc(size);

    if (name != NULL) {
        memcpy(name, target, folder);
        (void)snprintf(name + folder, size - folder, ".%.*s.gpufilter-%016" PRIx64 ".tmp",
                       STEM_BYTES, stem, random_number());
    }
    return name;
}

/* ---- opening --------------------------------------------------------------------------------- */

static gf_status open_standard(gf_output *output, gf_error *error) {
    if (!output->force && isatty(STDOUT_FILENO)) {
        return gf_fail(error, GF_USAGE,
                       "standard output is a terminal; redirect it, or use --force");
    }
    output->fd = STDOUT_FILENO;
    return GF_OK;
}

/* What exists and is no regular file: a device or a pipe is a destination, not something to be
 * replaced. */
static gf_status open_special(gf_output *output, const char *path, mode_t mode, gf_error *error) {
    if (S_ISDIR(mode)) {
        return gf_fail(error, GF_FAILED, "%s: is a folder; name a file in it", path);
    }
    if (S_ISBLK(mode) && !output->force) {
        return gf_fail(error, GF_FAILED, "%s: is a block device; use --force to overwrite it",
                       path);
    }
    output->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (output->fd < 0)
        return gf_fail(error, GF_FAILED, "%s: cannot open: %s", path, strerror(errno));
    output->owned = true;
    if (!output->force && isatty(output->fd)) {
        return gf_fail(error, GF_USAGE, "%s: is a terminal; name a file, or use --force", path);
    }
    return GF_OK;
}

static gf_status fail_create(const char *path, int cause, gf_error *error) {
    if (cause == ENOENT) {
        return gf_fail(error, GF_FAILED, "%s: its folder does not exist; create it first", path);
    }
    return gf_fail(error, GF_FAILED, "%s: cannot create a file in its folder: %s", path,
                   strerror(cause));
}

static gf_status create_temporary(gf_output *output, mode_t mode, gf_error *error) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        output->temporary = temporary_name(output->target);
        if (output->temporary == NULL)
            return gf_fail_memory(error, output->name, strlen(output->target) + STEM_BYTES,
                                  "a name");
        /* Noted before it exists, so that no signal falls between the two. */
        output->slot = gf_temporary_add(output->temporary);
        if (output->slot < 0)
            return gf_fail(error, GF_FAILED,
                           "%s: too many outputs are open at once, or its path is too long",
                           output->name);
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (output->fd >= 0) {
            output->owned = true;
            return GF_OK;
        }
        int cause = errno;
        gf_temporary_drop(output->slot);
        output->slot = -1;
        free(output->temporary);
        output->temporary = NULL;
        if (cause != EEXIST)
            return fail_create(output->name, cause, error);
    }
    return fail_create(output->name, EEXIST, error);
}

/* Sets output->target. */
static gf_status resolve_target(gf_output *output, const char *path, bool exists, gf_error *error) {
    struct stat info;

    if (exists) {
        /* Replace what a link points to, not the link. */
        output->target = realpath(path, NULL);
        if (output->target == NULL)
            return gf_fail(error, GF_FAILED, "%s: cannot resolve: %s", path, strerror(errno));
        return GF_OK;
    }
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        return gf_fail(error, GF_FAILED,
                       "%s: is a symbolic link to nothing; remove it or create its target", path);
    }
    if (*last_part(path) == '\0')
        return gf_fail(error, GF_FAILED, "%s: is not a file name", path);
    output->target = strdup(path);
    if (output->target == NULL)
        return gf_fail_memory(error, path, strlen(path) + 1, "its name");
    return GF_OK;
}

static gf_status open_path(gf_output *output, const char *path, gf_error *error) {
    struct stat info;
    bool exists = stat(path, &info) == 0;

    if (!exists && errno != ENOENT)
        return gf_fail(error, GF_FAILED, "%s: cannot open: %s", path, strerror(errno));
    if (exists && !S_ISREG(info.st_mode))
        return open_special(output, path, info.st_mode, error);
    if (exists && !output->force)
        return fail_exists(path, error);
    gf_status status = resolve_target(output, path, exists, error);
    if (status != GF_OK)
        return status;
    /* The new file is never open to more people than the one it replaces. */
    mode_t mode = exists ? info.st_mode & 0777 : 0666;
    status = create_temporary(output, mode, error);
    if (status == GF_OK && exists) {
        /* The owner is kept where that is allowed. Without its group, what the group might do is
         * for another group. */
        if (fchown(output->fd, (uid_t)-1, info.st_gid) != 0)
            mode &= ~(mode_t)S_IRWXG;
        (void)!fchown(output->fd, info.st_uid, (gid_t)-1);
    }
    if (status == GF_OK && exists && fchmod(output->fd, mode) != 0)
        status =
            gf_fail(error, GF_FAILED, "%s: cannot keep its permissions: %s", path, strerror(errno));
    return status;
}

gf_status gf_output_open(const char *path, bool force, gf_output **output, gf_error *error) {
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard output" : path;
    gf_output *new = calloc(1, sizeof *new);

    *output = NULL;
    if (new == NULL)
        return gf_fail_memory(error, name, sizeof *new, "output");
    new->fd = -1;
    new->slot = -1;
    new->force = force;
    new->name = strdup(name);
    gf_status status = new->name == NULL ? gf_fail_memory(error, name, strlen(name) + 1, "its name")
                       : standard        ? open_standard(new, error)
                                         : open_path(new, path, error);
    if (status != GF_OK) {
        gf_output_close(new);
        return status;
    }
    *output = new;
    return GF_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

const char *gf_output_name(const gf_output *output) {
    return output->name;
}

bool gf_output_seekable(const gf_output *output) {
    return output->temporary != NULL;
}

static gf_status fail_write(const gf_output *output, int cause, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: cannot write: %s", output->name, strerror(cause));
}

/* Is the failure one that goes away by waiting? Waits, if so. */
static bool can_retry(int fd, int cause) {
    if (cause == EAGAIN) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        return poll(&wait, 1, -1) >= 0 || errno == EINTR;
    }
    return cause == EINTR;
}

/* Writes all of it at the file position (at < 0) or at an offset. */
static gf_status write_all(const gf_output *output, const unsigned char *data, size_t size,
                           off_t at, gf_error *error) {
    while (size != 0) {
        ssize_t put = at < 0 ? write(output->fd, data, size) : pwrite(output->fd, data, size, at);
        if (put < 0) {
            if (can_retry(output->fd, errno))
                continue;
            return fail_write(output, errno, error);
        }
        data += put;
        size -= (size_t)put;
        at += at < 0 ? 0 : put;
    }
    return GF_OK;
}

static gf_status flush(gf_output *output, gf_error *error) {
    size_t used = output->used;

    output->used = 0;
    return write_all(output, output->buffer, used, -1, error);
}

gf_status gf_output_write(gf_output *output, const void *data, size_t size, gf_error *error) {
    if (size > BUFFER_BYTES - output->used) {
        gf_status status = flush(output, error);
        if (status != GF_OK)
            return status;
    }
    if (size >= BUFFER_BYTES)
        return write_all(output, data, size, -1, error);
    if (size != 0) {
        memcpy(output->buffer + output->used, data, size);
        output->used += size;
    }
    return GF_OK;
}

gf_status gf_output_write_at(gf_output *output, const void *data, size_t size, uint64_t offset,
                             gf_error *error) {
    if (offset > INT64_MAX)
        return fail_write(output, EFBIG, error);
    return write_all(output, data, size, (off_t)offset, error);
}

/* ---- completing ------------------------------------------------------------------------------ */

/* Gives the temporary its final name only if nothing has that name. */
static gf_status rename_new(const gf_output *output, gf_error *error) {
    struct stat info;

#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, output->temporary, AT_FDCWD, output->target, RENAME_NOREPLACE) == 0)
        return GF_OK;
    if (errno == EEXIST)
        return fail_exists(output->name, error);
#endif
    /* Not every file system knows that call, nor hard links; what is left is to look first. */
    if (link(output->temporary, output->target) == 0) {
        (void)unlink(output->temporary);
        return GF_OK;
    }
    if (errno == EEXIST || lstat(output->target, &info) == 0)
        return fail_exists(output->name, error);
    if (rename(output->temporary, output->target) != 0)
        return gf_fail(error, GF_FAILED, "%s: cannot put the output in place: %s", output->name,
                       strerror(errno));
    return GF_OK;
}

static gf_status put_in_place(const gf_output *output, gf_error *error) {
    if (!output->force)
        return rename_new(output, error);
    if (rename(output->temporary, output->target) != 0)
        return gf_fail(error, GF_FAILED, "%s: cannot put the output in place: %s", output->name,
                       strerror(errno));
    return GF_OK;
}

gf_status gf_output_commit(gf_output *output, gf_error *error) {
    gf_status status = flush(output, error);

    if (status != GF_OK)
        return status;
    if (output->owned) {
        /* Some file systems report only here that the disk is full. After EINTR Linux has closed.
         */
        int failed = close(output->fd);
        output->fd = -1;
        output->owned = false;
        if (failed != 0 && errno != EINTR)
            return fail_write(output, errno, error);
    }
    if (output->temporary != NULL) {
        status = put_in_place(output, error);
        if (status == GF_OK) {
            gf_temporary_drop(output->slot);
            output->slot = -1;
            free(output->temporary);
            output->temporary = NULL;
        }
    }
    return status;
}

void gf_output_close(gf_output *output) {
    if (output == NULL)
        return;
    if (output->owned)
        (void)close(output->fd);
    if (output->temporary != NULL)
        (void)unlink(output->temporary);
    gf_temporary_drop(output->slot);
    free(output->temporary);
    free(output->target);
    free(output->name);
    free(output);
}
