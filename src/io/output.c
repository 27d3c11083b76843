/* Writing an output, and giving it its name. */

#define _GNU_SOURCE /* renameat2 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "error.h"
#include "io/output.h"
#include "io/temporaries.h"

enum {
    VECTORS = 256,      /* rows in one call to the system */
    VECTOR_BYTES = 1024 /* a shorter row is copied sooner than the system is told of it */
};

/* ---- writing --------------------------------------------------------------------------------- */

const char *gf_output_name(const gf_output *output) {
    return output->name;
}

const char *gf_output_temporary(const gf_output *output) {
    return output != NULL ? output->temporary : NULL;
}

bool gf_output_seekable(const gf_output *output) {
    return output->temporary != NULL;
}

gf_status gf_output_fail_write(const gf_output *output, int cause, gf_error *error) {
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
            return gf_output_fail_write(output, errno, error);
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
    if (size > GF_OUTPUT_BUFFER - output->used) {
        gf_status status = flush(output, error);
        if (status != GF_OK)
            return status;
    }
    if (size >= GF_OUTPUT_BUFFER)
        return write_all(output, data, size, -1, error);
    if (size != 0) {
        memcpy(output->buffer + output->used, data, size);
        output->used += size;
    }
    return GF_OK;
}

/* Writes all of the vectors at the file position. */
static gf_status write_vectors(const gf_output *output, struct iovec *vectors, int count,
                               gf_error *error) {
    while (count > 0) {
        ssize_t put = writev(output->fd, vectors, count);
        if (put < 0) {
            if (can_retry(output->fd, errno))
                continue;
            return gf_output_fail_write(output, errno, error);
        }
        for (; count > 0 && (size_t)put >= vectors->iov_len; vectors++, count--)
            put -= (ssize_t)vectors->iov_len;
        if (count > 0) {
            vectors->iov_base = (unsigned char *)vectors->iov_base + put;
            vectors->iov_len -= (size_t)put;
        }
    }
    return GF_OK;
}

gf_status gf_output_write_rows(gf_output *output, const void *rows, size_t stride, size_t row_bytes,
                               uint64_t count, gf_error *error) {
    /* writev would not write to it. */
    unsigned char *row = (unsigned char *)rows;
    struct iovec vectors[VECTORS];
    gf_status status = GF_OK;

    if (stride == row_bytes)
        return gf_output_write(output, rows, count * row_bytes, error);
    if (row_bytes < VECTOR_BYTES) {
        for (uint64_t i = 0; i < count && status == GF_OK; i++)
            status = gf_output_write(output, row + i * stride, row_bytes, error);
        return status;
    }
    status = flush(output, error);
    for (uint64_t i = 0, n; i < count && status == GF_OK; i += n) {
        n = count - i < VECTORS ? count - i : VECTORS;
        for (uint64_t k = 0; k < n; k++)
            vectors[k] = (struct iovec){row + (i + k) * stride, row_bytes};
        status = write_vectors(output, vectors, (int)n, error);
    }
    return status;
}

gf_status gf_output_seek(gf_output *output, uint64_t offset, gf_error *error) {
    gf_status status = flush(output, error);

    if (status == GF_OK && (offset > INT64_MAX || lseek(output->fd, (off_t)offset, SEEK_SET) < 0))
        status = gf_output_fail_write(output, offset > INT64_MAX ? EFBIG : errno, error);
    return status;
}

gf_status gf_output_write_at(gf_output *output, const void *data, size_t size, uint64_t offset,
                             gf_error *error) {
    if (offset > INT64_MAX)
        return gf_output_fail_write(output, EFBIG, error);
    return write_all(output, data, size, (off_t)offset, error);
}

/* ---- completing ------------------------------------------------------------------------------ */

gf_status gf_output_fail_exists(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: exists already; use --force to replace it", name);
}

/* Gives the temporary its final name only if nothing has that name. */
static gf_status rename_new(const gf_output *output, gf_error *error) {
    struct stat info;

#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, output->temporary, AT_FDCWD, output->target, RENAME_NOREPLACE) == 0)
        return GF_OK;
    if (errno == EEXIST)
        return gf_output_fail_exists(output->name, error);
#endif
    /* Not every file system knows that call, nor hard links; what is left is to look first. */
    if (link(output->temporary, output->target) == 0) {
        (void)unlink(output->temporary);
        return GF_OK;
    }
    if (errno == EEXIST || lstat(output->target, &info) == 0)
        return gf_output_fail_exists(output->name, error);
    if (rename(output->temporary, output->target) != 0)
        return gf_fail(error, GF_FAILED, "%s: cannot put the output in place: %s", output->name,
                       strerror(errno));
    return GF_OK;
}

static gf_status rename_over(const gf_output *output, gf_error *error) {
    if (rename(output->temporary, output->target) != 0)
        return gf_fail(error, GF_FAILED, "%s: cannot put the output in place: %s", output->name,
                       strerror(errno));
    return GF_OK;
}

gf_status gf_output_prepare(gf_output *output, gf_error *error) {
    gf_status status = flush(output, error);
    struct stat info;

    if (status != GF_OK)
        return status;
    if (output->owned) {
        /* Some file systems report only here that the disk is full. After EINTR Linux has closed.
         */
        int failed = close(output->fd);
        output->fd = -1;
        output->owned = false;
        if (failed != 0 && errno != EINTR)
            return gf_output_fail_write(output, errno, error);
    }
    if (output->temporary != NULL && !output->joined && !output->force &&
        lstat(output->target, &info) == 0)
        return gf_output_fail_exists(output->name, error);
    return GF_OK;
}

gf_status gf_output_place(gf_output *output, gf_error *error) {
    if (output->temporary != NULL && !output->joined) {
        gf_status status = output->force ? rename_over(output, error) : rename_new(output, error);
        if (status != GF_OK)
            return status;
        gf_temporary_drop(output->slot);
        output->slot = -1;
        free(output->temporary);
        output->temporary = NULL;
    }
    gf_claim_drop(&output->claim);
    return GF_OK;
}

void gf_output_close(gf_output *output) {
    if (output == NULL)
        return;
    if (output->owned)
        (void)close(output->fd);
    if (output->temporary != NULL && !output->joined) {
        (void)unlink(output->temporary);
        gf_temporary_give_way();
    }
    gf_temporary_drop(output->slot);
    gf_claim_drop(&output->claim);
    free(output->temporary);
    free(output->target);
    free(output->name);
    free(output);
}
