/* Bytes in memory, and in a nameless file once they are too many. */
#include "io/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "io/output_create.h"
#include "io/output_temporary.h"

struct gf_spool {
    const gf_output *output;
    int fd;          /* -1: all is in memory */
    uint64_t filed;  /* bytes in the file */
    uint64_t given;  /* of them given out again; without a file: of those in memory */
    bool is_reading; /* nothing is added any more */
    size_t used;
    unsigned char bytes[GF_SPOOL_BYTES];
};

gf_status gf_spool_open(const gf_output *output, gf_spool **spool, gf_error *error) {
    gf_spool *new = malloc(sizeof *new);

    *spool = new;
    if (new == NULL)
        return gf_fail_memory(error, gf_output_name(output), sizeof *new, "extracted samples");
    new->output = output;
    new->fd = -1;
    new->filed = new->given = 0;
    new->is_reading = false;
    new->used = 0;
    return GF_OK;
}

void gf_spool_close(gf_spool *spool) {
    if (spool == NULL)
        return;
    if (spool->fd >= 0)
        (void)close(spool->fd);
    free(spool);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* One whose temporary name is taken away at once. */
static gf_status open_unlinked(const gf_output *output, int *fd, gf_error *error) {
    gf_output *file = gf_output_new(output->name, false, error);
    gf_status status = GF_FAILED;

    if (file == NULL)
        return status;
    file->target = strdup(output->temporary);
    if (file->target == NULL)
        status = gf_fail_memory(error, output->name, strlen(output->temporary) + 1, "a name");
    else
        status = gf_output_create_temporary(file, 0600, error);
    if (status == GF_OK) {
        *fd = file->fd;
        file->owned = false;
    }
    gf_output_close(file);
    return status;
}

/* What is in memory goes into the file. */
static gf_status file_away(gf_spool *spool, gf_error *error) {
    gf_status status = GF_OK;

    if (spool->fd < 0)
        spool->fd = gf_output_open_nameless(spool->output->temporary, O_EXCL, 0600);
    if (spool->fd < 0)
        status = open_unlinked(spool->output, &spool->fd, error);
    for (size_t done = 0; done < spool->used && status == GF_OK;) {
        const ssize_t put = write(spool->fd, spool->bytes + done, spool->used - done);
        if (put >= 0)
            done += (size_t)put;
        else if (errno != EINTR)
            status = gf_output_fail_write(spool->output, errno, error);
    }
    spool->filed += spool->used;
    spool->used = 0;
    return status;
}

/* ---- adding and giving out ------------------------------------------------------------------- */

gf_status gf_spool_add(gf_spool *spool, const void *data, size_t size, gf_error *error) {
    const unsigned char *from = data;
    gf_status status = GF_OK;

    while (size > 0 && status == GF_OK) {
        if (spool->used == GF_SPOOL_BYTES)
            status = file_away(spool, error);
        const size_t room = GF_SPOOL_BYTES - spool->used;
        const size_t n = size < room ? size : room;
        memcpy(spool->bytes + spool->used, from, n);
        spool->used += n;
        from += n;
        size -= n;
    }
    return status;
}

/* Reads the next piece of the file into memory. */
static gf_status read_back(gf_spool *spool, size_t size, gf_error *error) {
    for (size_t done = 0; done < size;) {
        const ssize_t got =
            pread(spool->fd, spool->bytes + done, size - done, (off_t)(spool->given + done));
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            return gf_fail(error, GF_FAILED, "%s: cannot read its samples back: %s",
                           gf_output_name(spool->output),
                           got == 0 ? "the file is cut" : strerror(errno));
    }
    return GF_OK;
}

gf_status gf_spool_next(gf_spool *spool, const unsigned char **data, size_t *size,
                        gf_error *error) {
    gf_status status = GF_OK;

    if (!spool->is_reading && spool->fd >= 0)
        status = file_away(spool, error);
    spool->is_reading = true;
    const uint64_t left = (spool->fd >= 0 ? spool->filed : spool->used) - spool->given;
    *data = spool->bytes;
    *size = left < GF_SPOOL_BYTES ? (size_t)left : GF_SPOOL_BYTES;
    if (status == GF_OK && spool->fd >= 0)
        status = read_back(spool, *size, error);
    spool->given += *size;
    return status;
}
