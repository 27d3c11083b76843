#define _GNU_SOURCE /* preadv, 64-bit offsets */

#include "io/row_reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "error.h"
#include "io/costs.h"
#include "pool.h"

enum {
    VECTORS = 256,         /* rows in one call to the system */
    PART_BYTES = 1 << 18,  /* read by a thread at a time, at least */
    MOST_PARTS = 4,        /* a thread: who is late does fewer of them */
    PIECE_BYTES = 1 << 18, /* read, and while still in the cache put in order */
    NARROW_BYTES = 512,    /* a shorter row is copied sooner than the system is told of it */
    BUFFER_BYTES = 1 << 15
};
#define MAX_THREADS GF_PLAIN_DECODE_THREADS

struct gf_row_reader {
    const gf_input *input;
    gf_row_order order;
    size_t left, row_bytes; /* of a row: bytes that are skipped, and those that are read */
    gf_pool *pool;
    uint32_t threads;
    uint32_t widest; /* threads that have read at a time */
};

/* ---- one thread ------------------------------------------------------------------------------ */

/* Rows of one call, and what became of it. */
typedef struct read_job {
    const gf_row_reader *reader;
    unsigned char *dst;
    size_t stride;
    uint64_t y, rows;
    uint32_t parts;
    struct read_part {
        int cause; /* errno, 0 for none */
        bool ended;
        uint64_t row; /* of the file, where it ended */
    } results[MOST_PARTS * MAX_THREADS];
} read_job;

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Fills all vectors from the file. Returns the bytes that are there: fewer at its end, or on a
 * failure, which is in *cause. */
static size_t read_vectors(int fd, struct iovec *vectors, int count, uint64_t offset, int *cause) {
    size_t all = 0;

    while (count > 0) {
        const ssize_t got = preadv(fd, vectors, count, (off_t)(offset + all));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            *cause = got < 0 ? errno : 0;
            break;
        }
        all += (size_t)got;
        size_t rest = (size_t)got;
        for (; count > 0 && rest >= vectors->iov_len; vectors++, count--)
            rest -= vectors->iov_len;
        if (count > 0) {
            vectors->iov_base = (unsigned char *)vectors->iov_base + rest;
            vectors->iov_len -= rest;
        }
    }
    return all;
}

/* Vectors for rows that lie together in the file, in its order: one where they do so in memory. */
static int make_vectors(const read_job *job, unsigned char *dst, uint64_t rows,
                        struct iovec vectors[VECTORS]) {
    const size_t row_bytes = job->reader->row_bytes;
    const bool upwards = job->reader->order.upwards;

    if (!upwards && job->stride == row_bytes) {
        vectors[0] = (struct iovec){dst, rows * row_bytes};
        return 1;
    }
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = upwards ? rows - 1 - i : i;
        vectors[i] = (struct iovec){dst + row * job->stride, row_bytes};
    }
    return (int)rows;
}

static void put_in_order(const read_job *job, unsigned char *dst, uint64_t rows) {
    const gf_row_order *order = &job->reader->order;
    const uint64_t samples = job->reader->row_bytes / gf_type_bytes(order->format.type);

    if (gf_row_order_plain(order))
        return;
    for (uint64_t i = 0; i < rows; i++)
        gf_row_order_copy(order, dst + i * job->stride, dst + i * job->stride, samples);
}

/* Reads rows to where they belong. Returns how many bytes were there. */
static size_t read_wide(const read_job *job, unsigned char *dst, uint64_t rows, uint64_t offset,
                        int *cause) {
    struct iovec vectors[VECTORS];
    const int count = make_vectors(job, dst, rows, vectors);
    const size_t got =
        read_vectors(fileno(job->reader->input->file), vectors, count, offset, cause);

    if (got == rows * job->reader->row_bytes)
        put_in_order(job, dst, rows);
    return got;
}

/* The same through a buffer that holds them all. */
static size_t read_narrow(const read_job *job, unsigned char *dst, uint64_t rows, uint64_t offset,
                          int *cause) {
    const gf_row_order *order = &job->reader->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    unsigned char buffer[BUFFER_BYTES];
    struct iovec vector = {buffer, (size_t)rows * row_bytes};
    const size_t got = read_vectors(fileno(job->reader->input->file), &vector, 1, offset, cause);

    for (uint64_t i = 0; got == rows * row_bytes && i < rows; i++) {
        const uint64_t row = order->upwards ? rows - 1 - i : i;
        gf_row_order_copy(order, dst + row * job->stride, buffer + i * row_bytes,
                          gf_row_samples(&order->format));
    }
    return got;
}

static void read_part(void *context, uint32_t task, uint32_t thread) {
    read_job *job = context;
    const gf_row_reader *reader = job->reader;
    const gf_row_order *order = &reader->order;
    const size_t row_bytes = reader->row_bytes;
    const bool whole = row_bytes == gf_row_bytes(&order->format);
    const bool narrow = whole && row_bytes < NARROW_BYTES && row_bytes != job->stride;
    const uint64_t most = !whole   ? 1
                          : narrow ? BUFFER_BYTES / row_bytes
                                   : least(VECTORS, PIECE_BYTES / row_bytes + 1);
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    struct read_part *result = &job->results[task];

    (void)thread;
    for (uint64_t i = gf_share(job->rows, task, job->parts), rows; i < end; i += rows) {
        rows = end - i < most ? end - i : most;
        const uint64_t offset = gf_row_order_offset(order, job->y + i, rows) + reader->left;
        const size_t got = (narrow ? read_narrow : read_wide)(job, job->dst + i * job->stride, rows,
                                                              offset, &result->cause);
        if (got < rows * row_bytes) {
            result->ended = result->cause == 0;
            result->row = (offset + got - order->start) / gf_row_bytes(&order->format);
            return;
        }
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static gf_status tell(const read_job *job, gf_error *error) {
    const char *name = job->reader->input->name;

    for (uint32_t i = 0; i < job->parts; i++) {
        const struct read_part *result = &job->results[i];
        if (result->cause != 0)
            return gf_fail(error, GF_FAILED, "%s: cannot read: %s", name, strerror(result->cause));
        if (result->ended)
            return gf_fail(error, GF_FAILED,
                           "%s: the file ends too early, in row %" PRIu64 " of %" PRIu64
                           "; get a complete copy",
                           name, result->row + 1, job->reader->order.format.height);
    }
    return GF_OK;
}

static uint32_t count_parts(const gf_row_reader *reader, uint64_t rows, uint32_t most) {
    const uint64_t parts = rows * reader->row_bytes / PART_BYTES;

    return parts < 1 ? 1 : parts < most ? (uint32_t)parts : most;
}

gf_status gf_row_reader_open(const gf_input *input, const gf_row_order *order, uint32_t threads,
                             gf_row_reader **opened, gf_error *error) {
    gf_row_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return gf_fail_memory(error, input->name, sizeof *reader, "reading rows");
    reader->input = input;
    reader->order = *order;
    reader->row_bytes = gf_row_bytes(&order->format);
    reader->threads =
        count_parts(reader, order->format.height, threads < MAX_THREADS ? threads : MAX_THREADS);
    const gf_status status = gf_pool_open(reader->threads, &reader->pool, error);
    if (status != GF_OK) {
        free(reader);
        return status;
    }
    *opened = reader;
    return GF_OK;
}

void gf_row_reader_narrow(gf_row_reader *reader, uint64_t x, uint64_t width) {
    const gf_format *format = &reader->order.format;
    const size_t pixel = format->channels * gf_type_bytes(format->type);

    reader->left = (size_t)x * pixel;
    reader->row_bytes = (size_t)width * pixel;
}

uint32_t gf_row_reader_threads(const gf_row_reader *reader) {
    return reader->threads;
}

gf_status gf_row_reader_read(gf_row_reader *reader, void *dst, size_t stride, uint64_t y,
                             uint64_t rows, gf_error *error) {
    read_job job = {.reader = reader,
                    .dst = dst,
                    .stride = stride,
                    .y = y,
                    .rows = rows,
                    .parts = count_parts(reader, rows, MOST_PARTS * reader->threads)};
    gf_work work = {.run = read_part, .context = &job, .count = job.parts};
    const uint32_t width = job.parts < reader->threads ? job.parts : reader->threads;

    if (width > reader->widest)
        reader->widest = width;
    gf_pool_run(reader->pool, &work);
    return tell(&job, error);
}

gf_busy gf_row_reader_busy(const gf_row_reader *reader) {
    return (gf_busy){gf_pool_busy(reader->pool), reader->widest};
}

void gf_row_reader_close(gf_row_reader *reader) {
    if (reader == NULL)
        return;
    gf_pool_close(reader->pool);
    free(reader);
}
