/* Opening an output: where it goes, and whether it may. */

#define _XOPEN_SOURCE 700 /* realpath */

#include "io/output_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "io/output_access.h"
#include "io/output_create.h"
#include "io/output_temporary.h"
#include "io/path.h"

static gf_status take_claim(gf_output *output, dev_t device, ino_t inode, const char *name,
                            gf_error *error) {
    output->claim = (gf_claim){.device = device, .inode = inode, .name = name};
    if (gf_claim_take(&output->claim))
        return GF_OK;
    return gf_fail(error, GF_USAGE, "%s: is written already by another option; name another file",
                   output->name);
}

static gf_status open_standard(gf_output *output, gf_error *error) {
    struct stat info;

    if (fstat(STDOUT_FILENO, &info) != 0)
        return gf_fail(error, GF_FAILED, "standard output: cannot write: %s", strerror(errno));
    gf_status status = take_claim(output, info.st_dev, info.st_ino, "", error);
    if (status != GF_OK)
        return status;
    if (!output->force && isatty(STDOUT_FILENO)) {
        return gf_fail(error, GF_USAGE,
                       "standard output is a terminal; redirect it, or use --force");
    }
    output->fd = STDOUT_FILENO;
    return GF_OK;
}

/* What exists and is no regular file: a device or a pipe is a destination, not something to be
 * replaced. */
static gf_status open_special(gf_output *output, const char *path, const struct stat *info,
                              gf_error *error) {
    const mode_t mode = info->st_mode;

    if (S_ISDIR(mode)) {
        return gf_fail(error, GF_FAILED, "%s: is a folder; name a file in it", path);
    }
    if (S_ISBLK(mode) && !output->force) {
        return gf_fail(error, GF_FAILED, "%s: is a block device; use --force to overwrite it",
                       path);
    }
    /* Terminals and /dev/null take what comes from many. */
    gf_status status =
        S_ISCHR(mode) ? GF_OK : take_claim(output, info->st_dev, info->st_ino, "", error);
    if (status != GF_OK)
        return status;
    output->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (output->fd < 0)
        return gf_fail(error, GF_FAILED, "%s: cannot open: %s", path, strerror(errno));
    output->owned = true;
    if (!output->force && isatty(output->fd)) {
        return gf_fail(error, GF_USAGE, "%s: is a terminal; name a file, or use --force", path);
    }
    return GF_OK;
}

/* Sets output->target. */
static gf_status resolve_target(gf_output *output, const char *path, bool exists, gf_error *error) {
    struct stat info;

    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        if (!exists)
            return gf_fail(error, GF_FAILED,
                           "%s: is a symbolic link to nothing; remove it or create its target",
                           path);
        /* Replace what a link points to, not the link. */
        output->target = realpath(path, NULL);
        if (output->target == NULL)
            return gf_fail(error, GF_FAILED, "%s: cannot resolve: %s", path, strerror(errno));
        return GF_OK;
    }
    if (*gf_path_last_part(path) == '\0')
        return gf_fail(error, GF_FAILED, "%s: is not a file name", path);
    output->target = strdup(path);
    if (output->target == NULL)
        return gf_fail_memory(error, path, strlen(path) + 1, "its name");
    return GF_OK;
}

/* Nobody else may write to the target until it is in place. */
static gf_status claim_target(gf_output *output, gf_error *error) {
    const char *last = gf_path_last_part(output->target);
    struct stat info;
    char *folder = gf_path_folder(output->target);

    if (folder == NULL)
        return gf_fail_memory(error, output->name, strlen(output->target), "a name");
    const bool there = stat(folder, &info) == 0;
    const int cause = errno;
    free(folder);
    return there ? take_claim(output, info.st_dev, info.st_ino, last, error)
                 : gf_output_fail_create(output->name, cause, error);
}

/* What is printed, or told of errors, would go to the file that is replaced, and be lost with it.
 */
static bool is_standard(const struct stat *info) {
    struct stat standard;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &standard) == 0 && standard.st_dev == info->st_dev &&
            standard.st_ino == info->st_ino)
            return true;
    return false;
}

static gf_status open_path(gf_output *output, const char *path, bool named, gf_error *error) {
    struct stat info;
    bool exists = stat(path, &info) == 0;

    if (!exists && errno != ENOENT)
        return gf_fail(error, GF_FAILED, "%s: cannot open: %s", path, strerror(errno));
    if (exists && !S_ISREG(info.st_mode))
        return open_special(output, path, &info, error);
    if (exists && is_standard(&info))
        return gf_fail(error, GF_USAGE,
                       "%s: standard output or standard error goes there, too; name another file",
                       path);
    if (exists && !output->force)
        return gf_output_fail_exists(path, error);
    gf_status status = resolve_target(output, path, exists, error);
    if (status == GF_OK)
        status = claim_target(output, error);
    if (status != GF_OK)
        return status;
    /* Nobody else may open it before it is known who may. */
    const mode_t mode = exists ? info.st_mode & S_IRWXU : 0666;
    output->replaces = exists;
    status = named ? gf_output_create_temporary(output, mode, error)
                   : gf_output_create(output, mode, error);
    if (status == GF_OK && exists && gf_output_keep_access(output, output->target, &info) != 0)
        status =
            gf_fail(error, GF_FAILED, "%s: cannot keep its permissions: %s", path, strerror(errno));
    return status;
}

static gf_status open_output(const char *path, bool force, bool named, gf_output **output,
                             gf_error *error) {
    bool standard = strcmp(path, "-") == 0;
    gf_output *new = gf_output_new(standard ? "standard output" : path, force, error);

    *output = NULL;
    if (new == NULL)
        return GF_FAILED;
    gf_status status = standard ? open_standard(new, error) : open_path(new, path, named, error);
    if (status != GF_OK) {
        gf_output_close(new);
        return status;
    }
    *output = new;
    return GF_OK;
}

gf_status gf_output_open(const char *path, bool force, gf_output **output, gf_error *error) {
    return open_output(path, force, false, output, error);
}

gf_status gf_output_open_named(const char *path, bool force, gf_output **output, gf_error *error) {
    return open_output(path, force, true, output, error);
}
