/* Output files that appear complete or not at all. An output is created in the directory of its
 * target, so that a rename or a link gives it its name. The file is unnamed (O_TMPFILE) until it is
 * complete: however the process ends, the kernel removes it. Systems and file systems without
 * O_TMPFILE get a temporary name instead. io/file/commit.c gives the file its final name. */
#define _GNU_SOURCE /* O_TMPFILE, statx, realpath, writev */

#include "io/file/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "io/file/input.h"

enum {
    MAX_VECTORS = 256,      /* rows per writev call */
    MIN_VECTOR_BYTES = 1024 /* shorter rows: copying into the buffer is faster than writev */
};

/* ---- claims: no two outputs of this process write to the same file --------------------------- */

static pthread_mutex_t claim_lock = PTHREAD_MUTEX_INITIALIZER;
static gf_output *claims;

static gf_status output_claim(gf_output *output, const struct stat *info, const char *name,
                              gf_error *error) {
    pthread_mutex_lock(&claim_lock);
    const gf_output *other = claims;
    while (other && (other->device != info->st_dev || other->inode != info->st_ino ||
                     strcmp(other->claim_name, name) != 0))
        other = other->next_claim;
    if (!other) {
        output->device = info->st_dev;
        output->inode = info->st_ino;
        output->claim_name = name;
        output->next_claim = claims;
        claims = output;
    }
    pthread_mutex_unlock(&claim_lock);
    if (!other)
        return GF_OK;
    return gf_fail(error, GF_USAGE, "%s: another option already writes to it; name another file",
                   output->name);
}

void gf_output_drop_claim(gf_output *output) {
    if (!output->claim_name)
        return;
    pthread_mutex_lock(&claim_lock);
    gf_output **at = &claims;
    while (*at != output)
        at = &(*at)->next_claim;
    *at = output->next_claim;
    output->claim_name = NULL;
    pthread_mutex_unlock(&claim_lock);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Return the part after the last slash. */
static const char *path_last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *gf_path_extension(const char *path) {
    const char *dot = strrchr(path_last_part(path), '.');
    return dot ? dot + 1 : "";
}

/* ---- output objects -------------------------------------------------------------------------- */

/* Allocate an output without a file. Return NULL if out of memory. */
static gf_output *output_new(const char *name, gf_error *error) {
    gf_output *new = malloc(sizeof *new);
    if (!new) {
        gf_fail_memory(error, name, sizeof *new, "an output");
        return NULL;
    }
    memset(new, 0, offsetof(gf_output, buffer));
    new->fd = -1;
    new->directory_fd = -1;
    new->slot = -1;
    new->name = strdup(name);
    if (!new->name) {
        gf_fail_memory(error, name, strlen(name) + 1, "its path");
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
    if (output->directory_fd >= 0)
        (void)close(output->directory_fd);
    if (output->temporary && !output->joined) {
        (void)unlink(output->temporary);
        gf_temporary_abandon();
    }
    gf_temporary_drop(output->slot);
    gf_output_drop_claim(output);
    free(output->temporary);
    free(output->directory_path);
    free(output->target);
    free(output->name);
    free(output);
}

const char *gf_output_name(const gf_output *output) {
    return output->name;
}

const char *gf_output_pending_path(const gf_output *output) {
    return !output ? NULL : output->proc_path[0] != '\0' ? output->proc_path : output->temporary;
}

uint64_t gf_output_bytes(const gf_output *output) {
    struct stat info = output->info;
    if (!output->target)
        return output->streamed;
    if (output->commit_state == GF_UNCOMMITTED && stat(gf_output_pending_path(output), &info) != 0)
        return 0;
    return (uint64_t)info.st_size;
}

bool gf_output_seekable(const gf_output *output) {
    return gf_output_pending_path(output) != NULL;
}

/* ---- failures -------------------------------------------------------------------------------- */

gf_status gf_output_fail(const char *path, const char *what, int cause, gf_error *error) {
    if (cause == ENOENT) /* also for directories such as /proc, which hold no files of users */
        (void)gf_fail(
            error, GF_FAILED,
            "%s: its directory does not exist or holds no files; create it first, or name "
            "another",
            path);
    else
        (void)gf_fail(error, GF_FAILED, "%s: %s: %s", path, what, strerror(cause));
    return gf_fail_cause(error, cause);
}

static gf_status output_fail_write(const gf_output *output, int cause, gf_error *error) {
    return gf_output_fail(output->name, "cannot write", cause, error);
}

static gf_status output_fail_create(const char *path, int cause, gf_error *error) {
    return gf_output_fail(path, "cannot create a file in its directory", cause, error);
}

gf_status gf_output_fail_exists(const char *name, gf_error *error) {
    (void)gf_fail(error, GF_FAILED, "%s: already exists; use --force to replace it", name);
    return gf_fail_cause(error, EEXIST);
}

/* ---- syncing the file and its directory ------------------------------------------------------ */

/* Open the directory for fsync before any work is done, so that a failure is reported early. */
static gf_status output_open_directory(gf_output *output, gf_error *error) {
    if (output->sync != GF_SYNC_ALWAYS || !output->target)
        return GF_OK;
    output->directory_fd = open(output->directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->directory_fd >= 0)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: cannot open its directory for fsync: %s; omit --sync or make it readable",
                   output->name, strerror(errno));
}

/* Sync a descriptor. Return 0 or an errno. EINVAL is success: the file system has no sync. */
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

/* Return whether the file must be on disk before it gets its name. */
static bool output_is_sync_required(const gf_output *output) {
    struct stat info;
    if (output->sync != GF_SYNC_REPLACING)
        return output->sync == GF_SYNC_ALWAYS;
    return output->replaces ||
           (output->force && output->target && lstat(output->target, &info) == 0);
}

static gf_status output_sync_if_required(gf_output *output, gf_error *error) {
    const int cause = output_is_sync_required(output) ? gf_output_sync_file(output) : 0;
    /* Pipes and terminals do not support sync. */
    if (cause == 0 || (cause == ENOTSUP && !gf_output_seekable(output)))
        return GF_OK;
    return output_fail_write(output, cause, error);
}

gf_status gf_output_sync_directory(const gf_output *output, gf_error *error) {
    const int cause = output->directory_fd >= 0 ? output_sync(output->directory_fd, fsync) : 0;
    if (cause == 0)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: is complete, but may be lost in a power failure: cannot fsync its "
                   "directory: %s",
                   output->name, strerror(cause));
}

/* ---- permissions: a replaced file never becomes accessible to more users --------------------- */

static bool output_is_acl_absent(int cause) {
    return cause == ENODATA || cause == EOPNOTSUPP || cause == ENOSYS;
}

/* Copy the access control list. Without one, remove the directory's default from the new file. */
static bool output_copy_acl(gf_output *output, const char *from) {
    static const char name[] = "system.posix_acl_access";
    /* The buffer is empty here: either nothing was written yet, or everything was flushed. */
    const ssize_t size = getxattr(from, name, output->buffer, sizeof output->buffer);
    if (size > 0)
        return fsetxattr(output->fd, name, output->buffer, (size_t)size, 0) == 0;
    if (size < 0 && !output_is_acl_absent(errno))
        return false;
    return fremovexattr(output->fd, name) == 0 || output_is_acl_absent(errno);
}

int gf_output_copy_access(gf_output *output, const char *from, const struct stat *info) {
    mode_t mode = info->st_mode & 0777;
    /* If the group or the list cannot be copied, clear the group bits. They would apply to another
     * group, or, as the mask of an access control list, to every user on it. A failure to set the
     * owner is ignored. */
    if (fchown(output->fd, (uid_t)-1, info->st_gid) != 0 || !output_copy_acl(output, from))
        mode &= ~(mode_t)S_IRWXG;
    (void)!fchown(output->fd, info->st_uid, (gid_t)-1);
    return fchmod(output->fd, mode);
}

/* ---- temporary names ------------------------------------------------------------------------- */

/* Bytes of the target's name in a temporary name, and of the text around it. The result fits every
 * file system: encrypted names are limited to 143 bytes. */
enum { STEM_BYTES = 64, AFFIX_BYTES = sizeof "..gpufilter-0123456789abcdef.tmp" };

/* Return a number that is probably unique. After a collision the caller tries another. */
static uint64_t temporary_number(void) {
    static _Thread_local uint64_t counter;
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t time = (uint64_t)now.tv_sec * UINT64_C(1000000007) + (uint64_t)now.tv_nsec;
    return time ^ ((uint64_t)getpid() << 40) ^ (counter++ << 56);
}

/* Return the bytes of the target's name to use: valid UTF-8, which some file systems require. */
static int temporary_stem_bytes(const char *stem) {
    size_t length = strnlen(stem, STEM_BYTES);
    if (stem[length] != '\0')
        while (length > 0 && ((unsigned char)stem[length] & 0xc0) == 0x80)
            length--;
    return (int)length;
}

/* Allocate ".NAME.gpufilter-NUMBER.tmp", in the target's directory to make the rename atomic. */
static char *temporary_name(const char *target) {
    const char *stem = path_last_part(target);
    size_t prefix = (size_t)(stem - target);
    size_t size = prefix + STEM_BYTES + AFFIX_BYTES;
    char *name = malloc(size);
    if (name) {
        memcpy(name, target, prefix);
        snprintf(name + prefix, size - prefix, ".%.*s.gpufilter-%016" PRIx64 ".tmp",
                 temporary_stem_bytes(stem), stem, temporary_number());
    }
    return name;
}

/* Return whether files can be created in the directory, but neither renamed nor removed. */
static bool directory_is_append_only(const char *path) {
    struct statx info;
    return statx(AT_FDCWD, path, 0, 0, &info) == 0 &&
           (info.stx_attributes & STATX_ATTR_APPEND) != 0;
}

/* Check whether a temporary file can be created, renamed and removed. Return 0 or an errno:
 * ENAMETOOLONG if its path is too long, EPERM if the directory is append-only. */
static int output_check_temporary(const gf_output *output) {
    const char *stem = path_last_part(output->target);
    if (stem - output->target + temporary_stem_bytes(stem) + AFFIX_BYTES > PATH_MAX)
        return ENAMETOOLONG;
    return directory_is_append_only(output->directory_path) ? EPERM : 0;
}

int gf_output_register_temporary(gf_output *output) {
    const int refused = output_check_temporary(output);
    if (refused != 0)
        return refused;
    output->temporary = temporary_name(output->target);
    if (!output->temporary)
        return ENOMEM;
    output->slot = gf_temporary_add(output->temporary);
    return output->slot < 0 ? EMFILE : 0;
}

void gf_output_unregister_temporary(gf_output *output) {
    gf_temporary_drop(output->slot);
    output->slot = -1;
    free(output->temporary);
    output->temporary = NULL;
}

/* Report why there is no temporary name. */
static gf_status output_fail_temporary(const gf_output *output, int cause, gf_error *error) {
    switch (cause) {
    case ENOMEM:
        return gf_fail_memory(error, output->name, strlen(output->target) + STEM_BYTES, "a name");
    case ENAMETOOLONG:
        return gf_fail(error, GF_FAILED,
                       "%s: its path is too long for a temporary file in its directory; change to "
                       "that directory and use a relative path",
                       output->name);
    case EPERM:
        return gf_fail(
            error, GF_FAILED,
            "%s: its directory is append-only, so files in it cannot be replaced or removed; "
            "write to another directory",
            output->name);
    default:
        return gf_fail(error, GF_FAILED, "%s: too many open outputs", output->name);
    }
}

gf_status gf_output_create_temporary(gf_output *output, mode_t mode, gf_error *error) {
    for (int attempt = 0; attempt < GF_TEMPORARY_ATTEMPTS; attempt++) {
        const int failed = gf_output_register_temporary(output);
        if (failed != 0)
            return output_fail_temporary(output, failed, error);
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        int cause = errno;
        gf_temporary_made(output->slot);
        if (output->fd >= 0) {
            output->owned = true;
            return GF_OK;
        }
        gf_output_unregister_temporary(output);
        if (cause != EEXIST)
            return output_fail_create(output->name, cause, error);
    }
    return output_fail_create(output->name, EEXIST, error);
}

/* ---- creating the file ----------------------------------------------------------------------- */

/* Set proc_path, which linkat needs. Return false unless /proc is that of this process. */
static bool output_find_proc_path(gf_output *output) {
    struct stat file, linked;
    snprintf(output->proc_path, sizeof output->proc_path, "/proc/self/fd/%d", output->fd);
    return fstat(output->fd, &file) == 0 && stat(output->proc_path, &linked) == 0 &&
           file.st_dev == linked.st_dev && file.st_ino == linked.st_ino;
}

static gf_status output_create(gf_output *output, mode_t mode, gf_error *error) {
    /* Replacing a file requires a temporary name. If that is impossible, fail now. */
    const bool refused = output->replaces && output_check_temporary(output) != 0;
    output->fd = refused ? -1 : open(output->directory_path, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    output->owned = output->fd >= 0;
    if (output->owned && output_find_proc_path(output))
        return GF_OK;
    if (output->owned)
        (void)close(output->fd);
    output->owned = false;
    output->proc_path[0] = '\0';
    return gf_output_create_temporary(output, mode, error);
}

/* ---- opening --------------------------------------------------------------------------------- */

static gf_status output_open_standard(gf_output *output, gf_error *error) {
    struct stat info;
    if (fstat(STDOUT_FILENO, &info) != 0)
        return gf_fail(error, GF_FAILED, "standard output: cannot write: %s", strerror(errno));
    gf_status status = output_claim(output, &info, "", error);
    if (status)
        return status;
    if (!output->force && isatty(STDOUT_FILENO))
        return gf_fail(error, GF_USAGE,
                       "standard output is a terminal; redirect it, or use --force");
    output->fd = STDOUT_FILENO;
    return GF_OK;
}

/* Open an existing device or pipe, which is written directly. Reject directories. */
static gf_status output_open_special(gf_output *output, const char *path, const struct stat *info,
                                     gf_error *error) {
    const mode_t mode = info->st_mode;
    if (S_ISDIR(mode))
        return gf_fail(error, GF_FAILED, "%s: is a directory; name a file in it", path);
    if (S_ISBLK(mode) && !output->force)
        return gf_fail(error, GF_FAILED, "%s: is a block device; use --force to overwrite it",
                       path);
    /* Several outputs may write to a terminal or to /dev/null. */
    gf_status status = S_ISCHR(mode) ? GF_OK : output_claim(output, info, "", error);
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

/* Set output->target and output->directory_path. */
static gf_status output_resolve_target(gf_output *output, const char *path, bool exists,
                                       gf_error *error) {
    struct stat info;
    const bool link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
    if (link && !exists)
        return gf_fail(error, GF_FAILED,
                       "%s: is a dangling symbolic link; remove it or create its target", path);
    if (!link && *path_last_part(path) == '\0')
        return gf_fail(error, GF_FAILED, "%s: is not a file name", path);
    /* Replace the target of a symbolic link, not the link. */
    output->target = link ? realpath(path, NULL) : strdup(path);
    if (!output->target && link)
        return gf_fail(error, GF_FAILED, "%s: cannot resolve the symbolic link: %s", path,
                       strerror(errno));
    if (output->target) {
        const size_t prefix = (size_t)(path_last_part(output->target) - output->target);
        output->directory_path = prefix ? strndup(output->target, prefix) : strdup(".");
    }
    return output->directory_path ? GF_OK
                                  : gf_fail_memory(error, path, strlen(path) + 1, "its path");
}

/* Claim the target until the output is committed or closed. */
static gf_status output_claim_target(gf_output *output, gf_error *error) {
    struct stat info;
    return stat(output->directory_path, &info) == 0
               ? output_claim(output, &info, path_last_part(output->target), error)
               : output_fail_create(output->name, errno, error);
}

/* Return whether standard output or standard error is redirected to this file. Replacing the file
 * would lose the text printed to it. */
static bool output_is_standard_stream(const struct stat *info) {
    struct stat standard;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &standard) == 0 && standard.st_dev == info->st_dev &&
            standard.st_ino == info->st_ino)
            return true;
    return false;
}

static gf_status output_copy_target_access(gf_output *output, const struct stat *info,
                                           gf_error *error) {
    if (gf_output_copy_access(output, output->target, info) == 0)
        return GF_OK;
    return gf_fail(error, GF_FAILED, "%s: cannot preserve its permissions: %s", output->name,
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
    if (exists && output_is_standard_stream(&info))
        return gf_fail(
            error, GF_USAGE,
            "%s: standard output or standard error is redirected to it; name another file", path);
    if (exists && !output->force)
        return gf_output_fail_exists(path, error);
    gf_status status = output_resolve_target(output, path, exists, error);
    if (!status)
        status = output_claim_target(output, error);
    if (status)
        return status;
    /* Give other users no access until the permissions of the target are copied. */
    const mode_t mode = exists ? info.st_mode & S_IRWXU : 0666;
    output->replaces = exists;
    output->defer_access = exists && named;
    if (named)
        return gf_output_create_temporary(output, mode | S_IRUSR | S_IWUSR, error);
    status = output_create(output, mode, error);
    return status || !exists ? status : output_copy_target_access(output, &info, error);
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
        status = output_open_directory(new, error);
    if (status)
        gf_output_close(new);
    else
        *output = new;
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Write all vectors at the file offset. */
static gf_status output_write_vectors(gf_output *output, struct iovec *vectors, int count,
                                      gf_error *error) {
    while (count > 0) {
        ssize_t written = writev(output->fd, vectors, count);
        if (written < 0) {
            if (gf_can_retry(output->fd, POLLOUT, errno))
                continue;
            return output_fail_write(output, errno, error);
        }
        output->streamed += (uint64_t)written;
        for (; count > 0 && (size_t)written >= vectors->iov_len; vectors++, count--)
            written -= (ssize_t)vectors->iov_len;
        if (count > 0) {
            vectors->iov_base = (unsigned char *)vectors->iov_base + written;
            vectors->iov_len -= (size_t)written;
        }
    }
    return GF_OK;
}

static gf_status output_write_all(gf_output *output, const void *data, size_t size,
                                  gf_error *error) {
    /* The cast removes const: writev only reads the data. */
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
    unsigned char *row = (unsigned char *)rows; /* writev only reads the rows */
    struct iovec vectors[MAX_VECTORS];
    gf_status status = GF_OK;
    if (stride == row_bytes)
        return gf_output_write(output, rows, count * row_bytes, error);
    if (row_bytes < MIN_VECTOR_BYTES) {
        for (uint64_t i = 0; i < count && !status; i++)
            status = gf_output_write(output, row + i * stride, row_bytes, error);
        return status;
    }
    status = output_flush(output, error);
    for (uint64_t i = 0, n; i < count && !status; i += n) {
        n = count - i < MAX_VECTORS ? count - i : MAX_VECTORS;
        for (uint64_t k = 0; k < n; k++)
            vectors[k] = (struct iovec){row + (i + k) * stride, row_bytes};
        status = output_write_vectors(output, vectors, (int)n, error);
    }
    return status;
}

gf_status gf_output_seek(gf_output *output, uint64_t offset, gf_error *error) {
    gf_status status = output_flush(output, error);
    if (!status && (offset > INT64_MAX || lseek(output->fd, (off_t)offset, SEEK_SET) < 0))
        status = output_fail_write(output, offset > INT64_MAX ? EFBIG : errno, error);
    return status;
}

/* ---- completing ------------------------------------------------------------------------------ */

/* Close the file, since some file systems report a full disk only on close. An unnamed file must
 * stay open; close a duplicate of its descriptor instead. Return 0 or an errno. */
static int output_close_file(gf_output *output) {
    const bool keep_open = output->proc_path[0] != '\0';
    const int fd = keep_open ? fcntl(output->fd, F_DUPFD_CLOEXEC, 0) : output->fd;
    if (!keep_open) {
        output->fd = -1;
        output->owned = false;
    }
    /* On Linux the descriptor is closed even after EINTR. */
    return fd >= 0 && close(fd) != 0 && errno != EINTR ? errno : 0;
}

gf_status gf_output_prepare(gf_output *output, gf_error *error) {
    gf_status status = output_flush(output, error);
    struct stat info;
    if (!status && output->defer_access && stat(output->target, &info) == 0)
        status = output_copy_target_access(output, &info, error);
    if (!status)
        status = output_sync_if_required(output, error);
    if (status)
        return status;
    const int cause = output->owned ? output_close_file(output) : 0;
    if (cause != 0)
        return output_fail_write(output, cause, error);
    if (gf_output_seekable(output) && !output->joined && !output->force &&
        lstat(output->target, &info) == 0)
        return gf_output_fail_exists(output->name, error);
    return GF_OK;
}

/* ---- parts of a file that another process created -------------------------------------------- */

static gf_status output_open_part(gf_output *output, const char *temporary, gf_error *error) {
    output->joined = true;
    output->temporary = strdup(temporary);
    if (!output->temporary)
        return gf_fail_memory(error, output->name, strlen(temporary) + 1, "its path");
    /* If the creating process is killed, the signal handlers of the others remove the file. */
    output->slot = gf_temporary_add(temporary);
    if (output->slot >= 0)
        gf_temporary_made(output->slot);
    /* Not for reading: with read access, NFS may write back a whole page although this process
     * changed only some of its bytes, and overwrite those of another process. */
    output->fd = open(temporary, O_WRONLY | O_CLOEXEC);
    if (output->fd < 0 && errno == ENOENT)
        return gf_fail(
            error, GF_FAILED,
            "%s: cannot find the temporary file of another process: its directory must be on "
            "a file system that all machines share",
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
