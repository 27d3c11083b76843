/* Writing an output, to its last byte. */

#define _XOPEN_SOURCE 700 /* writev */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "error.h"
#include "io/output_sync.h"

enum {
    VECTORS = 256,      /* rows in one call to the system */
    VECTOR_BYTES = 1024 /* a shorter row is copied sooner than the system is told of it */
};

/* ---- writing --------------------------------------------------------------------------------- */

/* Is the failure one that goes away by waiting? Waits, if so. */
static bool can_retry(int fd, int cause) {
    if (cause == EAGAIN) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        return poll(&wait, 1, -1) >= 0 || errno == EINTR;
    }
    return cause == EINTR;
}

/* Writes all of it at the file position (at < 0) or at an offset. */
static gf_status write_all(gf_output *output, const unsigned char *data, size_t size, off_t at,
                           gf_error *error) {
    while (size != 0) {
        ssize_t put = at < 0 ? write(output->fd, data, size) : pwrite(output->fd, data, size, at);
        if (put < 0) {
            if (can_retry(output->fd, errno))
                continue;
            return gf_output_fail_write(output, errno, error);
        }
        data += put;
        size -= (size_t)put;
        if (at < 0)
            output->streamed += (uint64_t)put;
        else
            at += put;
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
static gf_status write_vectors(gf_output *output, struct iovec *vectors, int count,
                               gf_error *error) {
    while (count > 0) {
        ssize_t put = writev(output->fd, vectors, count);
        if (put < 0) {
            if (can_retry(output->fd, errno))
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

/* Some file systems report only here that the disk is full. A file without a name must stay open:
 * then they are asked by closing another descriptor of it. Returns 0 or an errno. */
static int close_file(gf_output *output) {
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
    gf_status status = flush(output, error);
    struct stat info;

    if (status == GF_OK)
        status = gf_output_sync_if_due(output, error);
    if (status != GF_OK)
        return status;
    const int cause = output->owned ? close_file(output) : 0;
    if (cause != 0)
        return gf_output_fail_write(output, cause, error);
    if (gf_output_seekable(output) && !output->joined && !output->force &&
        lstat(output->target, &info) == 0)
        return gf_output_fail_exists(output->name, error);
    return GF_OK;
}
