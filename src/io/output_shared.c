/* One output that several ranks write: rank 0 has the file, the others join it. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

#include "agree.h"
#include "error.h"
#include "io/output_open.h"
#include "io/temporaries.h"

bool gf_output_sharable(const char *path) {
    struct stat info;

    return strcmp(path, "-") != 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode));
}

/* Only files in memory are mapped, which takes reading; they are of one machine. */
static int flags_of(const gf_output *output) {
#ifdef __linux__
    struct statfs system;
    if (statfs(output->temporary, &system) == 0 && system.f_type == TMPFS_MAGIC)
        return O_RDWR | O_CLOEXEC;
#else
    (void)output;
#endif
    return O_WRONLY | O_CLOEXEC;
}

#define OPENS (S_IRUSR | S_IWUSR)

static gf_status fail_mode(const gf_output *output, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: cannot keep its permissions: %s", output->name,
                   strerror(errno));
}

/* Where it is open for reading, too, NFS may write a whole page back of which this rank changed
 * only some bytes, over those of the rank beside it. *mode is what it is to have once all have
 * opened it, if that is not what it has. */
static gf_status reopen(gf_output *output, mode_t *mode, gf_error *error) {
    struct stat info;

    if (!gf_output_seekable(output))
        return gf_fail(error, GF_FAILED, "%s: is no file any more; run again", output->name);
    /* What replaces a file that nobody may write to must be opened by its name first. */
    if (fstat(output->fd, &info) == 0 && (info.st_mode & OPENS) != OPENS) {
        if (fchmod(output->fd, info.st_mode | OPENS) != 0)
            return fail_mode(output, error);
        *mode = info.st_mode;
    }
    const int fd = open(output->temporary, flags_of(output));
    if (fd < 0)
        return gf_fail(error, GF_FAILED, "%s: cannot open again: %s", output->name,
                       strerror(errno));
    (void)close(output->fd);
    output->fd = fd;
    return GF_OK;
}

static gf_status join(const char *path, bool force, const char *temporary, uint32_t rank,
                      gf_output **joined, gf_error *error) {
    gf_output *output = gf_output_new(path, force, error);

    *joined = output;
    if (output == NULL)
        return GF_FAILED;
    output->joined = true;
    output->temporary = strdup(temporary);
    if (output->temporary == NULL)
        return gf_fail_memory(error, path, strlen(temporary) + 1, "its name");
    /* Should rank 0 be killed, the others' signals remove it. */
    output->slot = gf_temporary_add(temporary);
    if (output->slot >= 0)
        gf_temporary_made(output->slot);
    output->fd = open(temporary, flags_of(output));
    if (output->fd < 0 && errno == ENOENT)
        return gf_fail(error, GF_FAILED,
                       "%s: rank %u does not see the file that rank 0 has begun: the folder must "
                       "be on a file system that all machines share",
                       path, rank);
    if (output->fd < 0)
        return gf_fail(error, GF_FAILED, "%s: rank %u cannot open it: %s", path, rank,
                       strerror(errno));
    output->owned = true;
    return GF_OK;
}

/* The name of rank 0's file, for the caller to free; NULL if there is no memory for it. */
static char *tell_name(const gf_ranks *ranks, const char *name) {
    uint64_t size = name != NULL ? strlen(name) + 1 : 0;

    ranks->broadcast(ranks->context, &size, sizeof size);
    char *told = malloc((size_t)size);
    if (gf_ranks_agree(ranks, told == NULL ? GF_FAILED : GF_OK, NULL) != GF_OK || told == NULL) {
        free(told);
        return NULL;
    }
    if (name != NULL)
        memcpy(told, name, (size_t)size);
    ranks->broadcast(ranks->context, told, (size_t)size);
    return told;
}

gf_status gf_output_open_shared(const char *path, bool force, const gf_ranks *ranks,
                                gf_output **output, gf_error *error) {
    gf_status status = GF_OK;
    bool replaces = false;
    mode_t mode = 0;

    *output = NULL;
    if (gf_is_first(ranks))
        status = gf_alone(ranks) ? gf_output_open(path, force, output, error)
                                 : gf_output_open_named(path, force, output, error);
    if (gf_alone(ranks))
        return status;
    if (status == GF_OK && *output != NULL)
        status = reopen(*output, &mode, error);
    status = gf_follow_first(ranks, status, error);
    if (status == GF_OK) {
        char *temporary = tell_name(ranks, gf_output_reach(*output));
        if (*output != NULL)
            replaces = (*output)->replaces;
        ranks->broadcast(ranks->context, &replaces, sizeof replaces);
        if (temporary == NULL)
            status = gf_fail(error, GF_FAILED, "%s: out of memory for its name", path);
        else if (ranks->rank != 0)
            status = join(path, force, temporary, ranks->rank, output, error);
        free(temporary);
        if (*output != NULL)
            (*output)->replaces = replaces;
        status = gf_ranks_agree(ranks, status, error);
        if (status == GF_OK && *output != NULL && mode != 0 && fchmod((*output)->fd, mode) != 0)
            status = fail_mode(*output, error);
        status = gf_follow_first(ranks, status, error);
    }
    if (status != GF_OK) {
        gf_output_close(*output);
        *output = NULL;
    }
    return status;
}
