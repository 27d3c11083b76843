/* Rows of plain files. A reader takes them from a regular file straight to where they are wanted,
 * by several threads at a time; a writer puts many of them into one call to the system, and has
 * several threads where that is faster. */
#define _GNU_SOURCE /* preadv, 64-bit offsets */

#include "io/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/error.h"
#include "core/thread.h"

enum {
    VECTORS = 256,              /* rows in one call to the system */
    READ_PART_BYTES = 1 << 18,  /* read by a thread at a time, at least */
    READ_MOST_PARTS = 4,        /* a thread: who is late does fewer of them */
    READ_PIECE_BYTES = 1 << 18, /* read, and while still in the cache put in order */
    READ_NARROW_BYTES = 512,    /* a shorter row is copied sooner than the system is told of it */
    READ_BUFFER_BYTES = 1 << 15
};
#define READ_MAX_THREADS GF_PLAIN_DECODE_THREADS

struct gf_row_reader {
    const gf_input *input;
    gf_row_order order;
    size_t left, row_bytes; /* of a row: bytes that are skipped, and those that are read */
    gf_pool *pool;
    uint32_t threads;
    uint32_t widest; /* threads that have read at a time */
};

/* ---- reading: one thread --------------------------------------------------------------------- */

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
    } results[READ_MOST_PARTS * READ_MAX_THREADS];
} read_job;

static size_t rows_min(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Fills all vectors from the file. Returns the bytes that are there: fewer at its end, or on a
 * failure, which is in *cause. */
static size_t reader_read_vectors(int fd, struct iovec *vectors, int count, uint64_t offset,
                                  int *cause) {
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
static int reader_make_vectors(const read_job *job, unsigned char *dst, uint64_t rows,
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

static void reader_put_in_order(const read_job *job, unsigned char *dst, uint64_t rows) {
    const gf_row_order *order = &job->reader->order;
    const uint64_t samples = job->reader->row_bytes / gf_type_bytes(order->format.type);
    if (gf_row_order_plain(order))
        return;
    for (uint64_t i = 0; i < rows; i++)
        gf_row_order_copy(order, dst + i * job->stride, dst + i * job->stride, samples);
}

/* Reads rows to where they belong. Returns how many bytes were there. */
static size_t reader_read_wide(const read_job *job, unsigned char *dst, uint64_t rows,
                               uint64_t offset, int *cause) {
    struct iovec vectors[VECTORS];
    const int count = reader_make_vectors(job, dst, rows, vectors);
    const size_t got =
        reader_read_vectors(fileno(job->reader->input->file), vectors, count, offset, cause);
    if (got == rows * job->reader->row_bytes)
        reader_put_in_order(job, dst, rows);
    return got;
}

/* The same through a buffer that holds them all. */
static size_t reader_read_narrow(const read_job *job, unsigned char *dst, uint64_t rows,
                                 uint64_t offset, int *cause) {
    const gf_row_order *order = &job->reader->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    unsigned char buffer[READ_BUFFER_BYTES];
    struct iovec vector = {buffer, (size_t)rows * row_bytes};
    const size_t got =
        reader_read_vectors(fileno(job->reader->input->file), &vector, 1, offset, cause);
    for (uint64_t i = 0; got == rows * row_bytes && i < rows; i++) {
        const uint64_t row = order->upwards ? rows - 1 - i : i;
        gf_row_order_copy(order, dst + row * job->stride, buffer + i * row_bytes,
                          gf_row_samples(&order->format));
    }
    return got;
}

static void reader_read_part(void *context, uint32_t task, uint32_t thread) {
    read_job *job = context;
    const gf_row_reader *reader = job->reader;
    const gf_row_order *order = &reader->order;
    const size_t row_bytes = reader->row_bytes;
    const bool whole = row_bytes == gf_row_bytes(&order->format);
    const bool narrow = whole && row_bytes < READ_NARROW_BYTES && row_bytes != job->stride;
    const uint64_t most = !whole   ? 1
                          : narrow ? READ_BUFFER_BYTES / row_bytes
                                   : rows_min(VECTORS, READ_PIECE_BYTES / row_bytes + 1);
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    struct read_part *result = &job->results[task];
    (void)thread;
    for (uint64_t i = gf_share(job->rows, task, job->parts), rows; i < end; i += rows) {
        rows = end - i < most ? end - i : most;
        const uint64_t offset = gf_row_order_offset(order, job->y + i, rows) + reader->left;
        const size_t got = (narrow ? reader_read_narrow : reader_read_wide)(
            job, job->dst + i * job->stride, rows, offset, &result->cause);
        if (got < rows * row_bytes) {
            result->ended = result->cause == 0;
            result->row = (offset + got - order->start) / gf_row_bytes(&order->format);
            return;
        }
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static gf_status reader_result(const read_job *job, gf_error *error) {
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

static uint32_t reader_count_parts(const gf_row_reader *reader, uint64_t rows, uint32_t most) {
    const uint64_t parts = rows * reader->row_bytes / READ_PART_BYTES;
    return parts < 1 ? 1 : parts < most ? (uint32_t)parts : most;
}

gf_status gf_row_reader_open(const gf_input *input, const gf_row_order *order, uint32_t threads,
                             gf_row_reader **opened, gf_error *error) {
    gf_row_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return gf_fail_memory(error, input->name, sizeof *reader, "reading rows");
    reader->input = input;
    reader->order = *order;
    reader->row_bytes = gf_row_bytes(&order->format);
    reader->threads = reader_count_parts(reader, order->format.height,
                                         threads < READ_MAX_THREADS ? threads : READ_MAX_THREADS);
    const gf_status status = gf_pool_open(reader->threads, &reader->pool, error);
    if (status) {
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
                    .parts = reader_count_parts(reader, rows, READ_MOST_PARTS * reader->threads)};
    gf_work work = {.run = reader_read_part, .context = &job, .count = job.parts};
    const uint32_t width = job.parts < reader->threads ? job.parts : reader->threads;
    if (width > reader->widest)
        reader->widest = width;
    gf_pool_run(reader->pool, &work);
    return reader_result(&job, error);
}

gf_busy gf_row_reader_busy(const gf_row_reader *reader) {
    return (gf_busy){gf_pool_busy(reader->pool), reader->widest};
}

void gf_row_reader_close(gf_row_reader *reader) {
    if (!reader)
        return;
    gf_pool_close(reader->pool);
    free(reader);
}

enum {
    WRITE_BUFFER_BYTES =
        1 << 18, /* rows in the file's order, on their way from one cache to another */
    WRITE_PART_BYTES =
        1 << 19, /* of a thread, at least: less is slower than one thread's write() */
    WRITE_PIECE_BYTES = 1 << 20, /* mapped at a time, about */
    WRITE_LEAST_THREADS = 3      /* fewer make the pages of a file more slowly than write() does */
};
/* More wait for each other: a file takes new pages one at a time. */
#define WRITE_MAX_THREADS 4u

struct gf_row_writer {
    gf_output *output;
    gf_row_order order;
    uint64_t y; /* of the next row */
    unsigned char *buffer;
    uint64_t buffer_rows;
    gf_pool *pool; /* NULL: one thread writes */
    uint32_t threads;
    uint32_t widest; /* threads that have written at a time */
};

/* ---- writing: one thread --------------------------------------------------------------------- */

/* As many rows as the buffer holds, in the file's order. */
static void writer_fill_buffer(const gf_row_writer *writer, const unsigned char *src, size_t stride,
                               uint64_t rows) {
    const gf_row_order *order = &writer->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = order->upwards ? rows - 1 - i : i;
        gf_row_order_copy(order, writer->buffer + i * row_bytes, src + row * stride,
                          gf_row_samples(&order->format));
    }
}

static gf_status writer_write_rows(gf_row_writer *writer, const unsigned char *src, size_t stride,
                                   uint64_t rows, gf_error *error) {
    const gf_row_order *order = &writer->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    gf_status status = GF_OK;
    if (!writer->buffer)
        return gf_output_write_rows(writer->output, src, stride, row_bytes, rows, error);
    for (uint64_t i = 0, n; i < rows && !status; i += n) {
        n = rows - i < writer->buffer_rows ? rows - i : writer->buffer_rows;
        writer_fill_buffer(writer, src + i * stride, stride, n);
        status = order->upwards
                     ? gf_output_write_at(writer->output, writer->buffer, n * row_bytes,
                                          gf_row_order_offset(order, writer->y + i, n), error)
                     : gf_output_write(writer->output, writer->buffer, n * row_bytes, error);
    }
    return status;
}

/* ---- writing: several threads ---------------------------------------------------------------- */

typedef struct write_job {
    const gf_row_writer *writer;
    const unsigned char *src;
    size_t stride;
    uint64_t rows;
    uint32_t parts;
    int causes[WRITE_MAX_THREADS]; /* errno of each, 0 for none */
} write_job;

static void writer_write_part(void *context, uint32_t task, uint32_t thread) {
    write_job *job = context;
    const gf_row_writer *writer = job->writer;
    const gf_row_order *order = &writer->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    const uint64_t most = WRITE_PIECE_BYTES / row_bytes + 1;
    (void)thread;
    for (uint64_t i = gf_share(job->rows, task, job->parts), n; i < end; i += n) {
        gf_output_map map;
        n = end - i < most ? end - i : most;
        job->causes[task] = gf_output_map_open(
            writer->output, gf_row_order_offset(order, writer->y + i, n), n * row_bytes, &map);
        if (job->causes[task] != 0)
            return;
        for (uint64_t k = 0; k < n; k++) {
            const uint64_t row = order->upwards ? n - 1 - k : k;
            gf_row_order_copy(order, map.data + k * row_bytes, job->src + (i + row) * job->stride,
                              gf_row_samples(&order->format));
        }
        gf_output_map_close(&map);
    }
}

static gf_status writer_write_shared(gf_row_writer *writer, const unsigned char *src, size_t stride,
                                     uint64_t rows, gf_error *error) {
    const uint64_t parts = rows * gf_row_bytes(&writer->order.format) / WRITE_PART_BYTES;
    write_job job = {.writer = writer,
                     .src = src,
                     .stride = stride,
                     .rows = rows,
                     .parts = parts < 1                 ? 1
                              : parts < writer->threads ? (uint32_t)parts
                                                        : writer->threads};
    gf_work work = {.run = writer_write_part, .context = &job, .count = job.parts};
    if (job.parts > writer->widest)
        writer->widest = job.parts;
    gf_pool_run(writer->pool, &work);
    for (uint32_t i = 0; i < job.parts; i++)
        if (job.causes[i] != 0)
            return gf_output_fail_write(writer->output, job.causes[i], error);
    return GF_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

gf_status gf_row_writer_write(gf_row_writer *writer, const void *src, size_t stride, uint64_t rows,
                              gf_error *error) {
    const gf_status status = writer->pool ? writer_write_shared(writer, src, stride, rows, error)
                                          : writer_write_rows(writer, src, stride, rows, error);
    writer->y += rows;
    return status;
}

static gf_status writer_open_buffer(gf_row_writer *writer, uint64_t max_memory, gf_error *error) {
    const gf_format *format = &writer->order.format;
    const char *name = gf_output_name(writer->output);
    const size_t row_bytes = gf_row_bytes(format);
    const uint64_t most = max_memory < WRITE_BUFFER_BYTES ? max_memory : WRITE_BUFFER_BYTES;
    if (gf_row_order_plain(&writer->order) && !writer->order.upwards)
        return GF_OK;
    writer->buffer_rows = most / row_bytes;
    if (writer->buffer_rows > format->height)
        writer->buffer_rows = format->height;
    if (writer->buffer_rows == 0)
        writer->buffer_rows = 1;
    gf_status status = gf_check_memory(row_bytes, max_memory, name, "a row", error);
    if (status)
        return status;
    writer->buffer = malloc((size_t)writer->buffer_rows * row_bytes);
    return writer->buffer ? GF_OK
                          : gf_fail_memory(error, name, writer->buffer_rows * row_bytes, "rows");
}

/* Several threads, if there is enough to do and the file system lets them. */
static gf_status writer_open_pool(gf_row_writer *writer, uint32_t threads, gf_error *error) {
    const gf_row_order *order = &writer->order;
    const uint64_t bytes = order->format.height * gf_row_bytes(&order->format);
    if (threads > WRITE_MAX_THREADS)
        threads = WRITE_MAX_THREADS;
    if (bytes / WRITE_PART_BYTES < threads)
        threads = (uint32_t)(bytes / WRITE_PART_BYTES);
    if (threads < WRITE_LEAST_THREADS || !gf_output_map_start(writer->output, order->start + bytes))
        return GF_OK;
    writer->threads = threads;
    return gf_pool_open(threads, &writer->pool, error);
}

/* What is written in the file's order goes on behind that. */
static gf_status writer_write_header(const gf_row_writer *writer, const char *header,
                                     gf_error *error) {
    const size_t size = (size_t)writer->order.start;
    return writer->pool ? gf_output_write_at(writer->output, header, size, 0, error)
                        : gf_output_write(writer->output, header, size, error);
}

gf_status gf_row_writer_open(const gf_sink_setup *setup, const gf_row_order *order,
                             const char *header, gf_row_writer **opened, gf_error *error) {
    gf_row_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return gf_fail_memory(error, gf_output_name(setup->output), sizeof *writer, "writing rows");
    writer->output = setup->output;
    writer->order = *order;
    writer->y = setup->first;
    gf_status status = writer_open_pool(writer, setup->threads, error);
    if (!status && !writer->pool)
        status = writer_open_buffer(writer, setup->max_memory, error);
    if (!status && setup->header)
        status = writer_write_header(writer, header, error);
    else if (!status && !order->upwards)
        status = gf_output_seek(writer->output, gf_row_order_offset(order, setup->first, 0), error);
    if (status) {
        gf_row_writer_close(writer);
        return status;
    }
    *opened = writer;
    return GF_OK;
}

uint32_t gf_row_writer_threads(const gf_row_writer *writer) {
    return writer->pool ? writer->threads : 1;
}

gf_busy gf_row_writer_busy(const gf_row_writer *writer) {
    return writer->pool ? (gf_busy){gf_pool_busy(writer->pool), writer->widest} : (gf_busy){0};
}

void gf_row_writer_close(gf_row_writer *writer) {
    if (!writer)
        return;
    gf_pool_close(writer->pool);
    free(writer->buffer);
    free(writer);
}
