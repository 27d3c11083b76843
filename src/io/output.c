/* Outputs: files that appear whole or not at all.
 *
 * An output is a file in the folder of its target, so that it can get its name there. It has no
 * name until it is complete: so it is gone when the process is, whatever ends it. Where the system
 * or the file system does not know such files, it has a temporary name. output_commit.c gives it
 * its own. */
#define _GNU_SOURCE /* O_TMPFILE, statx, madvise, realpath, writev */

#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "io/input.h"

enum {
    VECTORS = 256,      /* rows in one call to the system */
    VECTOR_BYTES = 1024 /* a shorter row is copied sooner than the system is told of it */
};

/* ---- claims: what this process is writing right now, so that two outputs never go to one place -
 */

static pthread_mutex_t claim_lock = PTHREAD_MUTEX_INITIALIZER;
static gf_output *claims;

static gf_status output_take_claim(gf_output *output, const struct stat *info, const char *name,
                                   gf_error *error) {
    pthread_mutex_lock(&claim_lock);
    const gf_output *other = claims;
    while (other && (other->device != info->st_dev || other->inode != info->st_ino ||
                     strcmp(other->claimed, name) != 0))
        other = other->next_claim;
    if (!other) {
        output->device = info->st_dev;
        output->inode = info->st_ino;
        output->claimed = name;
        output->next_claim = claims;
        claims = output;
    }
    pthread_mutex_unlock(&claim_lock);
    if (!other)
        return GF_OK;
    return gf_fail(error, GF_USAGE, "%s: is written already by another option; name another file",
                   output->name);
}

void gf_output_drop_claim(gf_output *output) {
    if (!output->claimed)
        return;
    pthread_mutex_lock(&claim_lock);
    gf_output **at = &claims;
    while (*at != output)
        at = &(*at)->next_claim;
    *at = output->next_claim;
    output->claimed = NULL;
    pthread_mutex_unlock(&claim_lock);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* The part behind the last slash. */
static const char *path_last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *gf_path_extension(const char *path) {
    const char *dot = strrchr(path_last_part(path), '.');
    return dot ? dot + 1 : "";
}

/* ---- the output ------------------------------------------------------------------------------ */

/* Without a file yet. NULL if out of memory. */
static gf_output *output_new(const char *name, gf_error *error) {
    gf_output *new = malloc(sizeof *new);
    if (!new) {
        gf_fail_memory(error, name, sizeof *new, "output");
        return NULL;
    }
    memset(new, 0, offsetof(gf_output, buffer));
    new->fd = -1;
    new->folder = -1;
    new->slot = -1;
    new->name = strdup(name);
    if (!new->name) {
        gf_fail_memory(error, name, strlen(name) + 1, "its name");
        gf_output_close(new);
        return NULL;
    }
    return new;
}

void gf_output_close(gf_output *output) {
    if (!output)
        return;
    if (output->owned)
        (void)close(output->fd);
    if (output->folder >= 0)
        (void)close(output->folder);
    if (output->temporary && !output->joined) {
        (void)unlink(output->temporary);
        gf_temporary_abandon();
    }
    gf_temporary_drop(output->slot);
    gf_output_drop_claim(output);
    free(output->temporary);
    free(output->folder_path);
    free(output->target);
    free(output->name);
    free(output);
}

const char *gf_output_name(const gf_output *output) {
    return output->name;
}

const char *gf_output_reach(const gf_output *output) {
    return !output ? NULL : output->nameless[0] != '\0' ? output->nameless : output->temporary;
}

uint64_t gf_output_bytes(const gf_output *output) {
    struct stat info = output->made;
    if (!output->target)
        return output->streamed;
    if (output->placed == GF_UNCOMMITTED && stat(gf_output_reach(output), &info) != 0)
        return 0;
    return (uint64_t)info.st_size;
}

bool gf_output_seekable(const gf_output *output) {
    return gf_output_reach(output) != NULL;
}

/* ---- failures -------------------------------------------------------------------------------- */

gf_status gf_output_fail(const char *path, const char *what, int cause, gf_error *error) {
    if (cause == ENOENT)
        (void)gf_fail(error, GF_FAILED, "%s: its folder does not exist; create it first", path);
    else
        (void)gf_fail(error, GF_FAILED, "%s: %s: %s", path, what, strerror(cause));
    if (error)
        error->cause = cause;
    return GF_FAILED;
}

gf_status gf_output_fail_write(const gf_output *output, int cause, gf_error *error) {
    return gf_output_fail(output->name, "cannot write", cause, error);
}

static gf_status output_fail_create(const char *path, int cause, gf_error *error) {
    return gf_output_fail(path, "cannot create a file in its folder", cause, error);
}

gf_status gf_output_fail_exists(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: exists already; use --force to replace it", name);
}

/* ---- syncing: the file, and then its name ---------------------------------------------------- */

/* Whether its folder can be synced is found out before any work. */
static gf_status output_open_folder(gf_output *output, gf_error *error) {
    if (output->sync != GF_SYNC_ALWAYS || !output->target)
        return GF_OK;
    output->folder = open(output->folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->folder >= 0)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: cannot open its folder, to sync it: %s; leave --sync out, or allow it to "
                   "be read",
                   output->name, strerror(errno));
}

/* Returns 0 or an errno. EINVAL counts as done: the file system has no need of it. */
static int output_sync(int fd, int (*sync)(int)) {
    int failed;
    do
        failed = sync(fd);
    while (failed != 0 && errno == EINTR);
    return failed == 0 || errno == EINVAL ? 0 : errno;
}

int gf_output_sync_file(gf_output *output) {
    const int cause = output_sync(output->fd, output->sync == GF_SYNC_ALWAYS ? fsync : fdatasync);
    output->synced = cause == 0;
    return cause;
}

/* Is it to be on the disk before it has its name? */
static bool output_must_sync(const gf_output *output) {
    struct stat info;
    if (output->sync != GF_SYNC_REPLACING)
        return output->sync == GF_SYNC_ALWAYS;
    return output->replaces ||
           (output->force && output->target && lstat(output->target, &info) == 0);
}

static gf_status output_sync_if_due(gf_output *output, gf_error *error) {
    const int cause = output_must_sync(output) ? gf_output_sync_file(output) : 0;
    /* Pipes, terminals and the like have no disk. */
    if (cause == 0 || (cause == ENOTSUP && !gf_output_seekable(output)))
        return GF_OK;
    return gf_output_fail_write(output, cause, error);
}

gf_status gf_output_sync_folder(const gf_output *output, gf_error *error) {
    const int cause = output->folder >= 0 ? output_sync(output->folder, fsync) : 0;
    if (cause == 0)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: is complete, but may not be there after a power failure: cannot sync its "
                   "folder: %s",
                   output->name, strerror(cause));
}

/* ---- access: of a file that replaces another, never more people than before ------------------ */

static bool output_has_no_list(int cause) {
    return cause == ENODATA || cause == EOPNOTSUPP || cause == ENOSYS;
}

/* Its access control list; without one, none that the folder gives to new files. */
static bool output_keep_list(gf_output *output, const char *from) {
    static const char name[] = "system.posix_acl_access";
    /* Nothing is in the buffer yet, or not any more. */
    const ssize_t size = getxattr(from, name, output->buffer, sizeof output->buffer);
    if (size > 0)
        return fsetxattr(output->fd, name, output->buffer, (size_t)size, 0) == 0;
    if (size < 0 && !output_has_no_list(errno))
        return false;
    return fremovexattr(output->fd, name) == 0 || output_has_no_list(errno);
}

int gf_output_keep_access(gf_output *output, const char *from, const struct stat *info) {
    mode_t mode = info->st_mode & 0777;
    /* The owner is kept where that is allowed. Without its group, what the group might do is for
     * another group; and with a list these bits are what anybody on it may do at most. */
    if (fchown(output->fd, (uid_t)-1, info->st_gid) != 0 || !output_keep_list(output, from))
        mode &= ~(mode_t)S_IRWXG;
    (void)!fchown(output->fd, info->st_uid, (gid_t)-1);
    return fchmod(output->fd, mode);
}

/* ---- its temporary name ---------------------------------------------------------------------- */

/* Names of temporary files are short enough for every file system (143 bytes where names are
 * encrypted) whatever the target is called. */
enum { STEM_BYTES = 64, AROUND_STEM = sizeof "..gpufilter-0123456789abcdef.tmp" };

/* A number that no other has, most likely: a clash is another attempt. */
static uint64_t temporary_number(void) {
    static _Thread_local uint64_t counter;
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t time = (uint64_t)now.tv_sec * UINT64_C(1000000007) + (uint64_t)now.tv_nsec;
    return time ^ ((uint64_t)getpid() << 40) ^ (counter++ << 56);
}

/* What is taken of a name: whole characters of UTF-8, since some file systems know no others. */
static int temporary_stem_bytes(const char *stem) {
    size_t length = strnlen(stem, STEM_BYTES);
    if (stem[length] != '\0')
        while (length > 0 && ((unsigned char)stem[length] & 0xc0) == 0x80)
            length--;
    return (int)length;
}

/* ".NAME.gpufilter-NUMBER.tmp" in the target's folder, so that renaming it is atomic. */
static char *temporary_name(const char *target) {
    const char *stem = path_last_part(target);
    size_t folder = (size_t)(stem - target);
    size_t size = folder + STEM_BYTES + AROUND_STEM;
    char *name = malloc(size);
    if (name) {
        memcpy(name, target, folder);
        snprintf(name + folder, size - folder, ".%.*s.gpufilter-%016" PRIx64 ".tmp",
                 temporary_stem_bytes(stem), stem, temporary_number());
    }
    return name;
}

/* Can files in the folder be made, but neither renamed nor removed? */
static bool folder_is_append_only(const char *folder) {
    struct statx info;
    return statx(AT_FDCWD, folder, 0, 0, &info) == 0 &&
           (info.stx_attributes & STATX_ATTR_APPEND) != 0;
}

/* Check whether a file can have such a name, and be renamed and removed. Returns 0 or an errno:
 * ENAMETOOLONG for its path, EPERM where the folder is append-only. */
static int output_check_temporary(const gf_output *output) {
    const char *stem = path_last_part(output->target);
    if (stem - output->target + temporary_stem_bytes(stem) + AROUND_STEM > PATH_MAX)
        return ENAMETOOLONG;
    return folder_is_append_only(output->folder_path) ? EPERM : 0;
}

int gf_output_begin_temporary(gf_output *output) {
    const int refused = output_check_temporary(output);
    if (refused != 0)
        return refused;
    output->temporary = temporary_name(output->target);
    if (!output->temporary)
        return ENOMEM;
    output->slot = gf_temporary_add(output->temporary);
    return output->slot < 0 ? EMFILE : 0;
}

void gf_output_end_temporary(gf_output *output) {
    gf_temporary_drop(output->slot);
    output->slot = -1;
    free(output->temporary);
    output->temporary = NULL;
}

/* Report why an output has no temporary name. */
static gf_status output_fail_temporary(const gf_output *output, int cause, gf_error *error) {
    switch (cause) {
    case ENOMEM:
        return gf_fail_memory(error, output->name, strlen(output->target) + STEM_BYTES, "a name");
    case ENAMETOOLONG:
        return gf_fail(error, GF_FAILED,
                       "%s: its path is too long for a temporary file beside it; change into its "
                       "folder and name it from there",
                       output->name);
    case EPERM:
        return gf_fail(
            error, GF_FAILED,
            "%s: its folder is append-only, so no file in it can be replaced or removed; "
            "write to another folder",
            output->name);
    default:
        return gf_fail(error, GF_FAILED, "%s: too many outputs are open at once", output->name);
    }
}

gf_status gf_output_create_temporary(gf_output *output, mode_t mode, gf_error *error) {
    for (int attempt = 0; attempt < GF_TEMPORARY_ATTEMPTS; attempt++) {
        const int failed = gf_output_begin_temporary(output);
        if (failed != 0)
            return output_fail_temporary(output, failed, error);
        /* For reading, too: what is only written cannot be mapped. */
        output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        int cause = errno;
        gf_temporary_made(output->slot);
        if (output->fd >= 0) {
            output->owned = true;
            return GF_OK;
        }
        gf_output_end_temporary(output);
        if (cause != EEXIST)
            return output_fail_create(output->name, cause, error);
    }
    return output_fail_create(output->name, EEXIST, error);
}

/* ---- its file -------------------------------------------------------------------------------- */

/* It gets its name through /proc, which must be that of this process. */
static bool output_is_reached(gf_output *output) {
    struct stat made, reached;
    snprintf(output->nameless, sizeof output->nameless, "/proc/self/fd/%d", output->fd);
    return fstat(output->fd, &made) == 0 && stat(output->nameless, &reached) == 0 &&
           made.st_dev == reached.st_dev && made.st_ino == reached.st_ino;
}

static gf_status output_create(gf_output *output, mode_t mode, gf_error *error) {
    /* An output that replaces a file needs a temporary name in the end: check now that it can have
     * one. */
    const bool refused = output->replaces && output_check_temporary(output) != 0;
    output->fd = refused ? -1 : open(output->folder_path, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    output->owned = output->fd >= 0;
    if (output->owned && output_is_reached(output))
        return GF_OK;
    if (output->owned)
        (void)close(output->fd);
    output->owned = false;
    output->nameless[0] = '\0';
    return gf_output_create_temporary(output, mode, error);
}

/* ---- opening: where it goes, and whether it may ---------------------------------------------- */

static gf_status output_open_standard(gf_output *output, gf_error *error) {
    struct stat info;
    if (fstat(STDOUT_FILENO, &info) != 0)
        return gf_fail(error, GF_FAILED, "standard output: cannot write: %s", strerror(errno));
    gf_status status = output_take_claim(output, &info, "", error);
    if (status)
        return status;
    if (!output->force && isatty(STDOUT_FILENO))
        return gf_fail(error, GF_USAGE,
                       "standard output is a terminal; redirect it, or use --force");
    output->fd = STDOUT_FILENO;
    return GF_OK;
}

/* What exists and is no regular file: a device or a pipe is a destination, not something to be
 * replaced. */
static gf_status output_open_special(gf_output *output, const char *path, const struct stat *info,
                                     gf_error *error) {
    const mode_t mode = info->st_mode;
    if (S_ISDIR(mode))
        return gf_fail(error, GF_FAILED, "%s: is a folder; name a file in it", path);
    if (S_ISBLK(mode) && !output->force)
        return gf_fail(error, GF_FAILED, "%s: is a block device; use --force to overwrite it",
                       path);
    /* Terminals and /dev/null take what comes from many. */
    gf_status status = S_ISCHR(mode) ? GF_OK : output_take_claim(output, info, "", error);
    if (status)
        return status;
    output->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (output->fd < 0)
        return gf_fail(error, GF_FAILED, "%s: cannot open: %s", path, strerror(errno));
    output->owned = true;
    if (!output->force && isatty(output->fd))
        return gf_fail(error, GF_USAGE, "%s: is a terminal; name a file, or use --force", path);
    return GF_OK;
}

/* Sets output->target and its folder. */
static gf_status output_resolve_target(gf_output *output, const char *path, bool exists,
                                       gf_error *error) {
    struct stat info;
    const bool link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
    if (link && !exists)
        return gf_fail(error, GF_FAILED,
                       "%s: is a symbolic link to nothing; remove it or create its target", path);
    if (!link && *path_last_part(path) == '\0')
        return gf_fail(error, GF_FAILED, "%s: is not a file name", path);
    /* Replace what a link points to, not the link. */
    output->target = link ? realpath(path, NULL) : strdup(path);
    if (!output->target && link)
        return gf_fail(error, GF_FAILED, "%s: cannot resolve: %s", path, strerror(errno));
    if (output->target) {
        const size_t folder = (size_t)(path_last_part(output->target) - output->target);
        output->folder_path = folder ? strndup(output->target, folder) : strdup(".");
    }
    return output->folder_path ? GF_OK : gf_fail_memory(error, path, strlen(path) + 1, "its name");
}

/* Nobody else may write to the target until it is in place. */
static gf_status output_claim_target(gf_output *output, gf_error *error) {
    struct stat info;
    return stat(output->folder_path, &info) == 0
               ? output_take_claim(output, &info, path_last_part(output->target), error)
               : output_fail_create(output->name, errno, error);
}

/* What is printed, or told of errors, would go to the file that is replaced, and be lost with it.
 */
static bool output_is_standard(const struct stat *info) {
    struct stat standard;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &standard) == 0 && standard.st_dev == info->st_dev &&
            standard.st_ino == info->st_ino)
            return true;
    return false;
}

static gf_status output_keep_target_access(gf_output *output, const struct stat *info,
                                           gf_error *error) {
    if (gf_output_keep_access(output, output->target, info) == 0)
        return GF_OK;
    return gf_fail(error, GF_FAILED, "%s: cannot keep its permissions: %s", output->name,
                   strerror(errno));
}

static gf_status output_open_path(gf_output *output, const char *path, bool named,
                                  gf_error *error) {
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (!exists && errno != ENOENT)
        return gf_fail(error, GF_FAILED, "%s: cannot open: %s", path, strerror(errno));
    if (exists && !S_ISREG(info.st_mode))
        return output_open_special(output, path, &info, error);
    if (exists && output_is_standard(&info))
        return gf_fail(error, GF_USAGE,
                       "%s: standard output or standard error goes there, too; name another file",
                       path);
    if (exists && !output->force)
        return gf_output_fail_exists(path, error);
    gf_status status = output_resolve_target(output, path, exists, error);
    if (!status)
        status = output_claim_target(output, error);
    if (status)
        return status;
    /* Nobody else may open it before it is known who may. */
    const mode_t mode = exists ? info.st_mode & S_IRWXU : 0666;
    output->replaces = exists;
    output->access_later = exists && named;
    if (named)
        return gf_output_create_temporary(output, mode | S_IRUSR | S_IWUSR, error);
    status = output_create(output, mode, error);
    return status || !exists ? status : output_keep_target_access(output, &info, error);
}

gf_status gf_output_open(const char *path, const gf_file_options *options, bool named,
                         gf_output **output, gf_error *error) {
    const bool standard = strcmp(path, "-") == 0;
    gf_output *new = output_new(standard ? "standard output" : path, error);
    *output = NULL;
    if (!new)
        return GF_FAILED;
    new->force = options && options->force;
    new->sync = options ? options->sync : GF_SYNC_REPLACING;
    gf_status status =
        standard ? output_open_standard(new, error) : output_open_path(new, path, named, error);
    if (!status)
        status = output_open_folder(new, error);
    if (status)
        gf_output_close(new);
    else
        *output = new;
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes all of the vectors at the file position. */
static gf_status output_write_vectors(gf_output *output, struct iovec *vectors, int count,
                                      gf_error *error) {
    while (count > 0) {
        ssize_t put = writev(output->fd, vectors, count);
        if (put < 0) {
            if (gf_can_retry(output->fd, POLLOUT, errno))
                continue;
            return gf_output_fail_write(output, errno, error);
        }
        output->streamed += (uint64_t)put;
        for (; count > 0 && (size_t)put >= vectors->iov_len; vectors++, count--)
            put -= (ssize_t)vectors->iov_len;
        if (count > 0) {
            vectors->iov_base = (unsigned char *)vectors->iov_base + put;
            vectors->iov_len -= (size_t)put;
        }
    }
    return GF_OK;
}

static gf_status output_write_all(gf_output *output, const void *data, size_t size,
                                  gf_error *error) {
    /* writev would not write to it. */
    struct iovec vector = {(void *)data, size};
    return size ? output_write_vectors(output, &vector, 1, error) : GF_OK;
}

static gf_status output_flush(gf_output *output, gf_error *error) {
    size_t used = output->used;
    output->used = 0;
    return output_write_all(output, output->buffer, used, error);
}

gf_status gf_output_write(gf_output *output, const void *data, size_t size, gf_error *error) {
    if (size > GF_OUTPUT_BUFFER - output->used) {
        gf_status status = output_flush(output, error);
        if (status)
            return status;
    }
    if (size >= GF_OUTPUT_BUFFER)
        return output_write_all(output, data, size, error);
    if (size != 0) {
        memcpy(output->buffer + output->used, data, size);
        output->used += size;
    }
    return GF_OK;
}

gf_status gf_output_write_rows(gf_output *output, const void *rows, size_t stride, size_t row_bytes,
                               uint64_t count, gf_error *error) {
    unsigned char *row = (unsigned char *)rows; /* as above */
    struct iovec vectors[VECTORS];
    gf_status status = GF_OK;
    if (stride == row_bytes)
        return gf_output_write(output, rows, count * row_bytes, error);
    if (row_bytes < VECTOR_BYTES) {
        for (uint64_t i = 0; i < count && !status; i++)
            status = gf_output_write(output, row + i * stride, row_bytes, error);
        return status;
    }
    status = output_flush(output, error);
    for (uint64_t i = 0, n; i < count && !status; i += n) {
        n = count - i < VECTORS ? count - i : VECTORS;
        for (uint64_t k = 0; k < n; k++)
            vectors[k] = (struct iovec){row + (i + k) * stride, row_bytes};
        status = output_write_vectors(output, vectors, (int)n, error);
    }
    return status;
}

gf_status gf_output_seek(gf_output *output, uint64_t offset, gf_error *error) {
    gf_status status = output_flush(output, error);
    if (!status && (offset > INT64_MAX || lseek(output->fd, (off_t)offset, SEEK_SET) < 0))
        status = gf_output_fail_write(output, offset > INT64_MAX ? EFBIG : errno, error);
    return status;
}

/* ---- completing ------------------------------------------------------------------------------ */

/* Some file systems report only here that the disk is full. A file without a name must stay open:
 * then they are asked by closing another descriptor of it. Returns 0 or an errno. */
static int output_close_file(gf_output *output) {
    const bool stays = output->nameless[0] != '\0';
    const int fd = stays ? fcntl(output->fd, F_DUPFD_CLOEXEC, 0) : output->fd;
    if (!stays) {
        output->fd = -1;
        output->owned = false;
    }
    /* After EINTR Linux has closed. */
    return fd >= 0 && close(fd) != 0 && errno != EINTR ? errno : 0;
}

gf_status gf_output_prepare(gf_output *output, gf_error *error) {
    gf_status status = output_flush(output, error);
    struct stat info;
    if (!status && output->access_later && stat(output->target, &info) == 0)
        status = output_keep_target_access(output, &info, error);
    if (!status)
        status = output_sync_if_due(output, error);
    if (status)
        return status;
    const int cause = output->owned ? output_close_file(output) : 0;
    if (cause != 0)
        return gf_output_fail_write(output, cause, error);
    if (gf_output_seekable(output) && !output->joined && !output->force &&
        lstat(output->target, &info) == 0)
        return gf_output_fail_exists(output->name, error);
    return GF_OK;
}

/* ---- pieces in memory ------------------------------------------------------------------------ */

#ifndef MADV_POPULATE_WRITE /* in Linux since 5.14, in glibc since 2.35 */
#define MADV_POPULATE_WRITE 23
#endif

int gf_output_map_open(const gf_output *output, uint64_t offset, size_t size, gf_output_map *map) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = offset % page;
    int failed;
    map->page_bytes = size + (size_t)before;
    map->pages = mmap(NULL, map->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, output->fd,
                      (off_t)(offset - before));
    if (map->pages == MAP_FAILED)
        return errno;
    /* Touching a page that the file system has no room for would be a signal. */
    do {
        failed = madvise(map->pages, map->page_bytes, MADV_POPULATE_WRITE) != 0 ? errno : 0;
    } while (failed == EINTR);
    if (failed != 0) {
        gf_output_map_close(map);
        return failed == EFAULT ? ENOSPC : failed;
    }
    map->data = (unsigned char *)map->pages + before;
    return 0;
}

void gf_output_map_close(gf_output_map *map) {
    (void)munmap(map->pages, map->page_bytes);
}

bool gf_output_map_start(gf_output *output, uint64_t size) {
    struct statfs system;
    gf_output_map first;
    if (!gf_output_seekable(output) || output->used != 0 || size > INT64_MAX ||
        fstatfs(output->fd, &system) != 0 || system.f_type != TMPFS_MAGIC ||
        ftruncate(output->fd, (off_t)size) != 0)
        return false;
    /* Older systems do not know the call. */
    if (gf_output_map_open(output, 0, 1, &first) != 0)
        return false;
    gf_output_map_close(&first);
    return true;
}

/* ---- a part of another process's file -------------------------------------------------------- */

bool gf_output_sharable(const char *path) {
    struct stat info;
    return strcmp(path, "-") != 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode));
}

/* Only files in memory are mapped, which takes reading; they are of one machine. Where others are
 * open for reading, too, NFS may write a whole page back of which this process changed only some
 * bytes, over those of the process beside it. */
static int output_part_flags(const char *temporary) {
    struct statfs system;
    const bool mapped = statfs(temporary, &system) == 0 && system.f_type == TMPFS_MAGIC;
    return (mapped ? O_RDWR : O_WRONLY) | O_CLOEXEC;
}

static gf_status output_open_part(gf_output *output, const char *temporary, gf_error *error) {
    output->joined = true;
    output->temporary = strdup(temporary);
    if (!output->temporary)
        return gf_fail_memory(error, output->name, strlen(temporary) + 1, "its name");
    /* Should the process that has created it be killed, the others' signals remove it. */
    output->slot = gf_temporary_add(temporary);
    if (output->slot >= 0)
        gf_temporary_made(output->slot);
    output->fd = open(temporary, output_part_flags(temporary));
    if (output->fd < 0 && errno == ENOENT)
        return gf_fail(error, GF_FAILED,
                       "%s: the file that another machine has begun is not there: its folder must "
                       "be on a file system that all machines share",
                       output->name);
    if (output->fd < 0)
        return gf_fail(error, GF_FAILED, "%s: cannot open %s: %s", output->name, temporary,
                       strerror(errno));
    output->owned = true;
    return GF_OK;
}

gf_status gf_output_join(const char *path, const char *temporary, gf_output **joined,
                         gf_error *error) {
    gf_output *output = output_new(path, error);
    *joined = NULL;
    if (!output)
        return GF_FAILED;
    const gf_status status = output_open_part(output, temporary, error);
    if (status)
        gf_output_close(output);
    else
        *joined = output;
    return status;
}
