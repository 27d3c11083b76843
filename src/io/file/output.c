/* Output files that appear complete or not at all. An output is created in the directory of its
 * target, so that a rename or a link gives it its name. The file is unnamed (O_TMPFILE) until it is
 * complete: however the process ends, the kernel removes it. Systems and file systems without
 * O_TMPFILE get a temporary name instead. */
#define _GNU_SOURCE /* O_TMPFILE, statx, realpath, writev, renameat2, futimens */

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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/thread.h"
#include "io/file/input.h"

enum {
    MAX_VECTORS = 256,       /* rows per writev call */
    MIN_VECTOR_BYTES = 1024, /* shorter rows: copying into the buffer is faster than writev */
    TEMPORARY_ATTEMPTS = 16  /* to find an unused temporary name */
};
#define BUFFER_BYTES ((size_t)1 << 16)

typedef enum commit_state {
    COMMIT_NONE,
    COMMIT_NEW,       /* no file had the target's name */
    COMMIT_EXCHANGED, /* the replaced file has the temporary name until all outputs are committed */
    COMMIT_REPLACED   /* the replaced file no longer exists */
} commit_state;

struct gf_output {
    char *name;           /* path as given, or "standard output"; for messages */
    char *target;         /* final path, symbolic links resolved; NULL if written directly */
    char *directory_path; /* directory of target; "." if target has no slash */
    char *temporary;      /* temporary path; NULL for an unnamed file or if written directly */
    char proc_path[32];   /* /proc/self/fd path of an unnamed file; "" otherwise */
    /* Claim that prevents two outputs from writing to the same file. It consists of the directory
     * (device and inode) and the file name, so the file need not exist; for files written directly,
     * of the file itself and the name "". NULL: no claim. */
    const char *claim_name;
    dev_t device;
    ino_t inode;
    gf_output *next_claim;
    int fd;
    int directory_fd; /* directory of target, open for fsync; -1 if it is not synced */
    int slot;         /* slot of the temporary path in the table of temporary files; -1: none */
    gf_sync sync;
    commit_state state;
    struct stat info; /* status of the file when it was committed */
    bool force;
    bool replaces;     /* the target existed when the output was opened */
    bool defer_access; /* other processes open the file; copy permissions in prepare */
    bool synced;
    bool standard; /* standard output: do not close fd */
    bool joined;   /* the temporary file belongs to another process, which commits or removes it */
    size_t used;
    uint64_t streamed; /* bytes written sequentially */
    unsigned char buffer[BUFFER_BYTES];
};

static const char cannot_write[] = "cannot write",
                  cannot_create[] = "cannot create a file in its directory";

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
    return gf_fail(error, GF_USAGE,
                   "%s: another option or step already writes to it; name another file",
                   output->name);
}

static void output_drop_claim(gf_output *output) {
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
    char *copy = strdup(name);
    if (!new || !copy) {
        gf_set_memory_error(error, name, sizeof *new, "an output");
        free(new);
        free(copy);
        return NULL;
    }
    memset(new, 0, offsetof(gf_output, buffer));
    new->fd = new->directory_fd = new->slot = -1;
    new->name = copy;
    return new;
}

void gf_output_close(gf_output *output) {
    if (!output)
        return;
    if (output->fd >= 0 && !output->standard)
        (void)close(output->fd);
    if (output->directory_fd >= 0)
        (void)close(output->directory_fd);
    if (output->temporary && !output->joined) {
        (void)unlink(output->temporary);
        gf_temporary_abandon();
    }
    gf_temporary_drop(output->slot);
    output_drop_claim(output);
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
    if (output->state == COMMIT_NONE && stat(gf_output_pending_path(output), &info) != 0)
        return 0;
    return (uint64_t)info.st_size;
}

bool gf_output_seekable(const gf_output *output) {
    return gf_output_pending_path(output) != NULL;
}

/* ---- failures -------------------------------------------------------------------------------- */

static gf_status output_fail(const gf_output *output, const char *what, int cause,
                             gf_error *error) {
    if (cause == ENOENT) /* also for directories such as /proc, which hold no files of users */
        (void)gf_fail(
            error, GF_FAILED,
            "%s: its directory does not exist or holds no files; create it first, or name "
            "another",
            output->name);
    else
        (void)gf_fail(error, GF_FAILED, "%s: %s: %s", output->name, what, strerror(cause));
    return gf_fail_cause(error, cause);
}

static gf_status output_fail_exists(const gf_output *output, gf_error *error) {
    (void)gf_fail(error, GF_FAILED, "%s: already exists; use --force to replace it", output->name);
    return gf_fail_cause(error, EEXIST);
}

/* Sync a descriptor. Return 0 or an errno. EINVAL is success: the file system has no sync. */
static int output_sync(int fd, int (*sync)(int)) {
    int failed;
    do
        failed = sync(fd);
    while (failed != 0 && errno == EINTR);
    return failed == 0 || errno == EINVAL ? 0 : errno;
}

/* Sync the data written so far to disk. Return 0 or an errno. */
static int output_sync_file(gf_output *output) {
    const int cause = output_sync(output->fd, output->sync == GF_SYNC_ALWAYS ? fsync : fdatasync);
    output->synced = cause == 0;
    return cause;
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

/* Copy owner, group, mode and access control list of another file as far as permitted. Return 0, or
 * -1 with errno set. */
static int output_copy_access(gf_output *output, const char *from, const struct stat *info) {
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

/* Return the bytes of the target's name to use: valid UTF-8, which some file systems require. */
static int temporary_stem_bytes(const char *stem) {
    size_t length = strnlen(stem, STEM_BYTES);
    if (stem[length] != '\0')
        while (length > 0 && ((unsigned char)stem[length] & 0xc0) == 0x80)
            length--;
    return (int)length;
}

/* Check whether a temporary file can be created, renamed and removed. Return 0 or an errno:
 * ENAMETOOLONG if its path is too long, EPERM if the directory is append-only. */
static int output_check_temporary(const gf_output *output) {
    const char *stem = path_last_part(output->target);
    struct statx info;
    if (stem - output->target + temporary_stem_bytes(stem) + AFFIX_BYTES > PATH_MAX)
        return ENAMETOOLONG;
    return statx(AT_FDCWD, output->directory_path, 0, 0, &info) == 0 &&
                   (info.stx_attributes & STATX_ATTR_APPEND) != 0
               ? EPERM
               : 0;
}

/* Choose a temporary path and register it; call gf_temporary_made after creating the file. Return 0
 * or an errno: also ENOMEM, or EMFILE if the table of temporary files is full. */
static int output_register_temporary(gf_output *output) {
    static _Thread_local uint64_t counter;
    const char *stem = path_last_part(output->target);
    const size_t prefix = (size_t)(stem - output->target), size = prefix + STEM_BYTES + AFFIX_BYTES;
    const int refused = output_check_temporary(output);
    struct timespec now = {0};
    if (refused != 0)
        return refused;
    /* The number is probably unique. After a collision the caller tries another. */
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t time = (uint64_t)now.tv_sec * UINT64_C(1000000007) + (uint64_t)now.tv_nsec;
    const uint64_t number = time ^ ((uint64_t)getpid() << 40) ^ (counter++ << 56);
    if (!(output->temporary = malloc(size)))
        return ENOMEM;
    /* In the target's directory, to make the rename atomic. */
    snprintf(output->temporary, size, "%.*s.%.*s.gpufilter-%016" PRIx64 ".tmp", (int)prefix,
             output->target, temporary_stem_bytes(stem), stem, number);
    output->slot = gf_temporary_add(output->temporary);
    return output->slot < 0 ? EMFILE : 0;
}

/* Unregister and free the temporary path; no file has it any longer. */
static void output_unregister_temporary(gf_output *output) {
    gf_temporary_drop(output->slot);
    output->slot = -1;
    free(output->temporary);
    output->temporary = NULL;
}

/* Report why there is no temporary name. */
static gf_status output_fail_temporary(const gf_output *output, int cause, gf_error *error) {
    if (cause == ENOMEM)
        return gf_fail_memory(error, output->name, strlen(output->target) + STEM_BYTES, "a name");
    return gf_fail(error, GF_FAILED, "%s: %s", output->name,
                   cause == ENAMETOOLONG ? "its path is too long for a temporary file in its "
                                           "directory; change to that directory and use a "
                                           "relative path"
                   : cause == EPERM      ? "its directory is append-only, so files in it cannot be "
                                           "replaced or removed; write to another directory"
                                         : "too many open outputs");
}

/* Create a file with a temporary name in the directory of output->target. */
static gf_status output_create_temporary(gf_output *output, mode_t mode, gf_error *error) {
    int cause = EEXIST;
    for (int attempt = 0; attempt < TEMPORARY_ATTEMPTS && cause == EEXIST; attempt++) {
        const int failed = output_register_temporary(output);
        if (failed != 0)
            return output_fail_temporary(output, failed, error);
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        cause = errno;
        gf_temporary_made(output->slot);
        if (output->fd >= 0)
            return GF_OK;
        output_unregister_temporary(output);
    }
    return output_fail(output, cannot_create, cause, error);
}

/* ---- creating the file ----------------------------------------------------------------------- */

static gf_status output_create(gf_output *output, mode_t mode, gf_error *error) {
    struct stat file, linked;
    /* Replacing a file requires a temporary name. If that is impossible, fail now. */
    const bool refused = output->replaces && output_check_temporary(output) != 0;
    output->fd = refused ? -1 : open(output->directory_path, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    /* linkat needs proc_path: /proc must be that of this process. */
    snprintf(output->proc_path, sizeof output->proc_path, "/proc/self/fd/%d", output->fd);
    if (output->fd >= 0 && fstat(output->fd, &file) == 0 && stat(output->proc_path, &linked) == 0 &&
        file.st_dev == linked.st_dev && file.st_ino == linked.st_ino)
        return GF_OK;
    if (output->fd >= 0)
        (void)close(output->fd);
    output->fd = -1;
    output->proc_path[0] = '\0';
    return output_create_temporary(output, mode, error);
}

/* ---- opening --------------------------------------------------------------------------------- */

static gf_status output_open_standard(gf_output *output, gf_error *error) {
    struct stat info;
    output->standard = true;
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
static gf_status output_open_special(gf_output *output, const struct stat *info, gf_error *error) {
    const char *path = output->name;
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
    if (!output->force && isatty(output->fd))
        return gf_fail(error, GF_USAGE, "%s: is a terminal; name a file, or use --force", path);
    return GF_OK;
}

/* Set output->target and output->directory_path. */
static gf_status output_resolve_target(gf_output *output, bool exists, gf_error *error) {
    const char *path = output->name;
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

static gf_status output_copy_target_access(gf_output *output, const struct stat *info,
                                           gf_error *error) {
    if (output_copy_access(output, output->target, info) == 0)
        return GF_OK;
    return gf_fail(error, GF_FAILED, "%s: cannot preserve its permissions: %s", output->name,
                   strerror(errno));
}

static gf_status output_open_path(gf_output *output, bool named, gf_error *error) {
    const char *path = output->name;
    struct stat info, standard, directory;
    bool exists = stat(path, &info) == 0;
    if (!exists && errno != ENOENT)
        return gf_fail(error, GF_FAILED, "%s: cannot open: %s", path, strerror(errno));
    if (exists && !S_ISREG(info.st_mode))
        return output_open_special(output, &info, error);
    /* Replacing the file of a standard stream would lose the text printed to it. */
    for (int fd = STDOUT_FILENO; exists && fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &standard) == 0 && standard.st_dev == info.st_dev &&
            standard.st_ino == info.st_ino)
            return gf_fail(
                error, GF_USAGE,
                "%s: standard output or standard error is redirected to it; name another file",
                path);
    if (exists && !output->force)
        return output_fail_exists(output, error);
    gf_status status = output_resolve_target(output, exists, error);
    if (status)
        return status;
    if (stat(output->directory_path, &directory) != 0)
        return output_fail(output, cannot_create, errno, error);
    if ((status = output_claim(output, &directory, path_last_part(output->target), error)))
        return status;
    /* Give other users no access until the permissions of the target are copied. */
    const mode_t mode = exists ? info.st_mode & S_IRWXU : 0666;
    output->replaces = exists;
    output->defer_access = exists && named;
    if (named)
        return output_create_temporary(output, mode | S_IRUSR | S_IWUSR, error);
    status = output_create(output, mode, error);
    return status || !exists ? status : output_copy_target_access(output, &info, error);
}

gf_status gf_output_open(const char *path, const gf_file_options *options, bool named,
                         gf_output **output, gf_error *error) {
    const bool standard = strcmp(path, "-") == 0;
    gf_output *made = output_new(standard ? "standard output" : path, error);
    *output = NULL;
    if (!made)
        return GF_FAILED;
    made->force = options && options->force;
    made->sync = options ? options->sync : GF_SYNC_REPLACING;
    gf_status status =
        standard ? output_open_standard(made, error) : output_open_path(made, named, error);
    /* Open the directory for fsync before any work is done, so that a failure is reported early. */
    if (!status && made->sync == GF_SYNC_ALWAYS && made->target &&
        (made->directory_fd = open(made->directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        status =
            gf_fail(error, GF_FAILED,
                    "%s: cannot open its directory for fsync: %s; omit --sync or make it readable",
                    made->name, strerror(errno));
    if (status)
        gf_output_close(made);
    else
        *output = made;
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static gf_status output_write_vectors(gf_output *output, struct iovec *vectors, int count,
                                      gf_error *error) {
    for (ssize_t written = 0;;) {
        for (; count > 0 && (size_t)written >= vectors->iov_len; vectors++, count--)
            written -= (ssize_t)vectors->iov_len;
        if (count == 0)
            return GF_OK;
        vectors->iov_base = (unsigned char *)vectors->iov_base + written;
        vectors->iov_len -= (size_t)written;
        written = writev(output->fd, vectors, count);
        if (written < 0 && !gf_can_retry(output->fd, POLLOUT, errno))
            return output_fail(output, cannot_write, errno, error);
        written = written < 0 ? 0 : written;
        output->streamed += (uint64_t)written;
    }
}

static gf_status output_flush(gf_output *output, gf_error *error) {
    struct iovec vector = {output->buffer, output->used};
    output->used = 0;
    return output_write_vectors(output, &vector, 1, error);
}

gf_status gf_output_write(gf_output *output, const void *data, size_t size, gf_error *error) {
    struct iovec vector = {(void *)data, size}; /* writev only reads the data */
    gf_status status = size > BUFFER_BYTES - output->used ? output_flush(output, error) : GF_OK;
    if (status || size >= BUFFER_BYTES)
        return status ? status : output_write_vectors(output, &vector, 1, error);
    if (size != 0)
        memcpy(output->buffer + output->used, data, size);
    output->used += size;
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
        status = output_fail(output, cannot_write, offset > INT64_MAX ? EFBIG : errno, error);
    return status;
}

/* ---- completing ------------------------------------------------------------------------------ */

gf_status gf_output_prepare(gf_output *output, gf_error *error) {
    gf_status status = output_flush(output, error);
    struct stat info;
    if (!status && output->defer_access && stat(output->target, &info) == 0)
        status = output_copy_target_access(output, &info, error);
    if (status)
        return status;
    /* Must the file be on disk before it gets its name? */
    const bool sync = output->sync == GF_SYNC_ALWAYS ||
                      (output->sync == GF_SYNC_REPLACING &&
                       (output->replaces ||
                        (output->force && output->target && lstat(output->target, &info) == 0)));
    int cause = sync ? output_sync_file(output) : 0;
    if (cause == ENOTSUP && !gf_output_seekable(output)) /* pipes and terminals */
        cause = 0;
    /* Close the file, since some file systems report a full disk only on close. An unnamed file
     * must stay open; close a duplicate of its descriptor instead. On Linux the descriptor is
     * closed even after EINTR. */
    if (cause == 0 && !output->standard) {
        const bool keep_open = output->proc_path[0] != '\0';
        const int fd = keep_open ? fcntl(output->fd, F_DUPFD_CLOEXEC, 0) : output->fd;
        output->fd = keep_open ? output->fd : -1;
        cause = fd >= 0 && close(fd) != 0 && errno != EINTR ? errno : 0;
    }
    if (cause != 0)
        return output_fail(output, cannot_write, cause, error);
    if (gf_output_seekable(output) && !output->joined && !output->force &&
        lstat(output->target, &info) == 0)
        return output_fail_exists(output, error);
    return GF_OK;
}

/* ---- parts of a file that another process created -------------------------------------------- */

gf_status gf_output_join(const char *path, const char *temporary, gf_output **joined,
                         gf_error *error) {
    gf_output *output = output_new(path, error);
    *joined = NULL;
    if (!output)
        return GF_FAILED;
    output->joined = true;
    output->temporary = strdup(temporary);
    /* If the creating process is killed, the signal handlers of the others remove the file. */
    output->slot = gf_temporary_add(temporary);
    if (output->slot >= 0)
        gf_temporary_made(output->slot);
    /* Not for reading: with read access, NFS may write back a whole page although this process
     * changed only some of its bytes, and overwrite those of another process. */
    output->fd = output->temporary ? open(temporary, O_WRONLY | O_CLOEXEC) : -1;
    if (output->fd >= 0) {
        *joined = output;
        return GF_OK;
    }
    if (!output->temporary)
        gf_set_memory_error(error, path, strlen(temporary) + 1, "its path");
    else if (errno == ENOENT)
        (void)gf_fail(
            error, GF_FAILED,
            "%s: cannot find the temporary file of another process: its directory must be on "
            "a file system that all machines share",
            path);
    else
        (void)gf_fail(error, GF_FAILED, "%s: cannot open %s: %s", path, temporary, strerror(errno));
    gf_output_close(output);
    return GF_FAILED;
}

/* ---- naming; functions return 0 or an errno -------------------------------------------------- */

/* Copy an unnamed file to a file with a temporary name if linking failed because the system refuses
 * to link it although it created it. This happens with AppArmor and SELinux, on file systems
 * without hard links, on FUSE and in sandboxes without linkat, and on bind mounts of a
 * subdirectory. Other errors would also affect a copy: return them, also if the file cannot be
 * created. */
static int output_copy_if_refused(gf_output *output, int cause) {
    enum { MAX_BYTES = 1 << 30 }; /* bytes per sendfile call */
    const mode_t allowed = output->replaces ? S_IRWXU : 0777;
    const int from = output->fd;
    struct stat info;
    gf_error ignored;
    if (cause != EPERM && cause != EACCES && cause != EXDEV && cause != EOPNOTSUPP &&
        cause != ENOENT && cause != ENOSYS && cause != EINVAL)
        return cause;
    if (fstat(from, &info) != 0)
        return errno;
    if (output_create_temporary(output, info.st_mode & allowed, &ignored)) {
        output->fd = from;
        return cause;
    }
    off_t at = 0;
    ssize_t copied;
    do
        copied = sendfile(output->fd, from, &at, MAX_BYTES);
    while (copied > 0 || (copied < 0 && errno == EINTR));
    /* Copy permissions and modification time; a later check may compare the time. */
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, info.st_mtim};
    const bool complete =
        copied == 0 &&
        (!output->replaces || output_copy_access(output, output->proc_path, &info) == 0) &&
        futimens(output->fd, times) == 0;
    cause = !complete ? errno : output->synced ? output_sync_file(output) : 0;
    if (cause == 0 && fstat(output->fd, &output->info) != 0)
        cause = errno;
    (void)close(from);
    output->proc_path[0] = '\0';
    if (close(output->fd) != 0 && errno != EINTR && cause == 0)
        cause = errno;
    output->fd = -1;
    return cause;
}

/* Link the file to a temporary name. If the system refuses, copy it. */
static int output_link_temporary(gf_output *output) {
    int cause = EEXIST;
    for (int attempt = 0; attempt < TEMPORARY_ATTEMPTS && cause == EEXIST; attempt++) {
        cause = output_register_temporary(output);
        if (cause == 0) {
            if (linkat(AT_FDCWD, output->proc_path, AT_FDCWD, output->temporary,
                       AT_SYMLINK_FOLLOW) != 0)
                cause = errno;
            gf_temporary_made(output->slot);
        }
        if (cause != 0)
            output_unregister_temporary(output);
    }
    return output_copy_if_refused(output, cause);
}

static int output_rename_flags(const char *from, const char *to, unsigned flags) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags) == 0 ? 0 : errno;
}

/* Give the file its final name. Return EEXIST if the target exists. */
static int output_commit_new(gf_output *output) {
    const char *temporary, *target = output->target;
    struct stat info;
    int cause = 0;
    if (!output->temporary &&
        linkat(AT_FDCWD, output->proc_path, AT_FDCWD, output->target, AT_SYMLINK_FOLLOW) != 0)
        cause = output_copy_if_refused(output, errno);
    if (cause == 0 && (temporary = output->temporary)) {
        cause = output_rename_flags(temporary, target, RENAME_NOREPLACE);
        /* Not every file system supports RENAME_NOREPLACE or hard links. The last resort is to test
         * for the target first. */
        if (cause != 0 && cause != EEXIST) {
            cause = link(temporary, target) == 0 ? 0 : errno;
            if (cause == 0)
                (void)unlink(temporary);
        }
        if (cause != 0 && cause != EEXIST)
            cause = lstat(target, &info) == 0 ? EEXIST : rename(temporary, target) == 0 ? 0 : errno;
    }
    if (cause == 0) {
        output->state = COMMIT_NEW;
        output_unregister_temporary(output);
    }
    return cause;
}

/* Replace the existing target. reversible: exchange the two names, if the file system can, so that
 * the commit can be rolled back. */
static int output_commit_replacing(gf_output *output, bool reversible) {
    struct stat info;
    int cause = 0;
    /* The target was created while the output was written, so the file is not synced yet. */
    if (output->proc_path[0] != '\0' && !output->synced && output->sync != GF_SYNC_NEVER)
        cause = output_sync_file(output);
    if (cause == 0 && !output->temporary)
        cause = output_link_temporary(output);
    if (cause != 0)
        return cause;
    if (reversible) {
        cause = output_rename_flags(output->temporary, output->target, RENAME_EXCHANGE);
        if (cause == 0 && lstat(output->temporary, &info) == 0 && S_ISDIR(info.st_mode)) {
            (void)output_rename_flags(output->temporary, output->target, RENAME_EXCHANGE);
            cause = EISDIR;
        }
        output->state = cause == 0 ? COMMIT_EXCHANGED : COMMIT_NONE;
        /* The target was removed in the meantime. */
        if (cause == ENOENT)
            cause = output_commit_new(output);
        if (cause != EINVAL && cause != ENOSYS && cause != EOPNOTSUPP)
            return cause;
    }
    /* This is the last output of the group, or names cannot be exchanged. */
    if (rename(output->temporary, output->target) != 0)
        return errno;
    output->state = COMMIT_REPLACED;
    output_unregister_temporary(output);
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
        return output_fail_exists(output, error);
    if (cause == EEXIST)
        cause = output_commit_replacing(output, reversible);
    return cause == 0
               ? GF_OK
               : output_fail(output, "cannot rename the output to its final name", cause, error);
}

static void output_extend_message(gf_error *error, const char *before, const char *name,
                                  const char *after) {
    if (!error)
        return;
    const gf_error previous = *error;
    (void)gf_set_error(error, previous.status, "%s; %s%s%s", previous.message, before, name, after);
    error->cause = previous.cause;
}

/* Restore the state before the commit. */
static void output_roll_back(gf_output *output, gf_error *error) {
    const commit_state state = output->state;
    const struct stat *committed = &output->info;
    struct stat info;
    output->state = COMMIT_NONE;
    if (state == COMMIT_NONE)
        return;
    const bool found = lstat(output->target, &info) == 0;
    /* Compare more than the inode: a new file can reuse it. */
    const bool same = found && info.st_dev == committed->st_dev &&
                      info.st_ino == committed->st_ino && info.st_size == committed->st_size &&
                      info.st_mtim.tv_sec == committed->st_mtim.tv_sec &&
                      info.st_mtim.tv_nsec == committed->st_mtim.tv_nsec;
    /* A file that others have replaced or removed stays as it is. */
    if ((found ? !same : errno == ENOENT) ||
        (same && state == COMMIT_NEW && unlink(output->target) == 0) ||
        (same && state == COMMIT_EXCHANGED &&
         output_rename_flags(output->temporary, output->target, RENAME_EXCHANGE) == 0))
        return;
    output_extend_message(error, "", output->name, " was already written");
    if (state != COMMIT_EXCHANGED)
        return;
    /* Keep the only copy of the replaced file. */
    output_extend_message(error, "the file that it replaced is now ", output->temporary, "");
    output_unregister_temporary(output);
}

gf_status gf_outputs_commit(gf_output *const *outputs, size_t count, gf_error *error) {
    gf_status status = GF_OK;
    size_t committed = 0;
    sigset_t before;
    /* Defer terminating signals until all files have their names. */
    gf_block_signals(&before);
    for (; committed < count && !status; committed += !status)
        status = output_commit_one(outputs[committed], committed + 1 < count, error);
    while (status && committed > 0)
        output_roll_back(outputs[--committed], error);
    for (size_t i = 0; i < count; i++) {
        gf_output *output = outputs[i];
        const char *temporary = output->joined ? NULL : output->temporary;
        /* Remove the replaced file, or the temporary files. Nothing removes them later, so append
         * those that cannot be removed to the message. */
        if (temporary && (status || output->state == COMMIT_EXCHANGED) && unlink(temporary) != 0 &&
            status && errno != ENOENT)
            output_extend_message(error, "cannot remove the temporary file ", temporary, "");
        if (!status && !output->joined)
            output_unregister_temporary(output);
        if (!status)
            output_drop_claim(output);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count && !status; i++) {
        const int fd = outputs[i]->directory_fd, cause = fd >= 0 ? output_sync(fd, fsync) : 0;
        if (cause != 0)
            status = gf_fail(error, GF_FAILED,
                             "%s: is complete, but may be lost in a power failure: cannot fsync "
                             "its directory: %s",
                             outputs[i]->name, strerror(cause));
    }
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
