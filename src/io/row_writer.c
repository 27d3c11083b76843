#include "io/row_writer.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/limits.h"
#include "io/output_map.h"
#include "pool.h"

enum {
    BUFFER_BYTES = 1 << 18, /* rows in the file's order, on their way from one cache to another */
    PART_BYTES = 1 << 19,   /* of a thread, at least: less is slower than one thread's write() */
    PIECE_BYTES = 1 << 20,  /* mapped at a time, about */
    LEAST_THREADS = 3       /* fewer make the pages of a file more slowly than write() does */
};
/* More wait for each other: a file takes new pages one at a time. */
#define MAX_THREADS 4u

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

/* ---- one thread ------------------------------------------------------------------------------ */

/* As many rows as the buffer holds, in the file's order. */
static void fill_buffer(const gf_row_writer *writer, const unsigned char *src, size_t stride,
                        uint64_t rows) {
    const gf_row_order *order = &writer->order;
    const size_t row_bytes = gf_row_bytes(&order->format);

    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = order->upwards ? rows - 1 - i : i;
        gf_row_order_copy(order, writer->buffer + i * row_bytes, src + row * stride,
                          gf_row_samples(&order->format));
    }
}

static gf_status write_rows(gf_row_writer *writer, const unsigned char *src, size_t stride,
                            uint64_t rows, gf_error *error) {
    const gf_row_order *order = &writer->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    gf_status status = GF_OK;

    if (writer->buffer == NULL)
        return gf_output_write_rows(writer->output, src, stride, row_bytes, rows, error);
    for (uint64_t i = 0, n; i < rows && status == GF_OK; i += n) {
        n = rows - i < writer->buffer_rows ? rows - i : writer->buffer_rows;
        fill_buffer(writer, src + i * stride, stride, n);
        status = order->upwards
                     ? gf_output_write_at(writer->output, writer->buffer, n * row_bytes,
                                          gf_row_order_offset(order, writer->y + i, n), error)
                     : gf_output_write(writer->output, writer->buffer, n * row_bytes, error);
    }
    return status;
}

/* ---- several threads ------------------------------------------------------------------------- */

typedef struct write_job {
    const gf_row_writer *writer;
    const unsigned char *src;
    size_t stride;
    uint64_t rows;
    uint32_t parts;
    int causes[MAX_THREADS]; /* errno of each, 0 for none */
} write_job;

static void write_part(void *context, uint32_t task, uint32_t thread) {
    write_job *job = context;
    const gf_row_writer *writer = job->writer;
    const gf_row_order *order = &writer->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    const uint64_t most = PIECE_BYTES / row_bytes + 1;

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

static gf_status write_shared(gf_row_writer *writer, const unsigned char *src, size_t stride,
                              uint64_t rows, gf_error *error) {
    const uint64_t parts = rows * gf_row_bytes(&writer->order.format) / PART_BYTES;
    write_job job = {.writer = writer,
                     .src = src,
                     .stride = stride,
                     .rows = rows,
                     .parts = parts < 1                 ? 1
                              : parts < writer->threads ? (uint32_t)parts
                                                        : writer->threads};
    gf_work work = {.run = write_part, .context = &job, .count = job.parts};

    if (job.parts > writer->widest)
        writer->widest = job.parts;
    gf_pool_run(writer->pool, &work);
    for (uint32_t i = 0; i < job.parts; i++)
        if (job.causes[i] != 0)
            return gf_output_fail_write(writer->output, job.causes[i], error);
    return GF_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

gf_status gf_row_writer_write(gf_row_writer *writer, const void *src, size_t stride, uint64_t rows,
                              gf_error *error) {
    const gf_status status = writer->pool != NULL ? write_shared(writer, src, stride, rows, error)
                                                  : write_rows(writer, src, stride, rows, error);

    writer->y += rows;
    return status;
}

static gf_status open_buffer(gf_row_writer *writer, uint64_t max_memory, gf_error *error) {
    const gf_format *format = &writer->order.format;
    const char *name = gf_output_name(writer->output);
    const size_t row_bytes = gf_row_bytes(format);
    const uint64_t most = max_memory < BUFFER_BYTES ? max_memory : BUFFER_BYTES;

    if (gf_row_order_plain(&writer->order) && !writer->order.upwards)
        return GF_OK;
    writer->buffer_rows = most / row_bytes;
    if (writer->buffer_rows > format->height)
        writer->buffer_rows = format->height;
    if (writer->buffer_rows == 0)
        writer->buffer_rows = 1;
    gf_status status = gf_check_memory(row_bytes, max_memory, name, "a row", error);
    if (status != GF_OK)
        return status;
    writer->buffer = malloc((size_t)writer->buffer_rows * row_bytes);
    return writer->buffer != NULL
               ? GF_OK
               : gf_fail_memory(error, name, writer->buffer_rows * row_bytes, "rows");
}

/* Several threads, if there is enough to do and the file system lets them. */
static gf_status open_pool(gf_row_writer *writer, uint32_t threads, gf_error *error) {
    const gf_row_order *order = &writer->order;
    const uint64_t bytes = order->format.height * gf_row_bytes(&order->format);

    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (bytes / PART_BYTES < threads)
        threads = (uint32_t)(bytes / PART_BYTES);
    if (threads < LEAST_THREADS || !gf_output_map_start(writer->output, order->start + bytes))
        return GF_OK;
    writer->threads = threads;
    return gf_pool_open(threads, &writer->pool, error);
}

/* What is written in the file's order goes on behind that. */
static gf_status write_header(const gf_row_writer *writer, const char *header, gf_error *error) {
    const size_t size = (size_t)writer->order.start;

    return writer->pool != NULL ? gf_output_write_at(writer->output, header, size, 0, error)
                                : gf_output_write(writer->output, header, size, error);
}

gf_status gf_row_writer_open(const gf_sink_setup *setup, const gf_row_order *order,
                             const char *header, gf_row_writer **opened, gf_error *error) {
    gf_row_writer *writer = calloc(1, sizeof *writer);

    if (writer == NULL)
        return gf_fail_memory(error, gf_output_name(setup->output), sizeof *writer, "writing rows");
    writer->output = setup->output;
    writer->order = *order;
    writer->y = setup->first;
    gf_status status = open_pool(writer, setup->threads, error);
    if (status == GF_OK && writer->pool == NULL)
        status = open_buffer(writer, setup->max_memory, error);
    if (status == GF_OK && setup->header)
        status = write_header(writer, header, error);
    else if (status == GF_OK && !order->upwards)
        status = gf_output_seek(writer->output, gf_row_order_offset(order, setup->first, 0), error);
    if (status != GF_OK) {
        gf_row_writer_close(writer);
        return status;
    }
    *opened = writer;
    return GF_OK;
}

uint32_t gf_row_writer_threads(const gf_row_writer *writer) {
    return writer->pool != NULL ? writer->threads : 1;
}

gf_busy gf_row_writer_busy(const gf_row_writer *writer) {
    return writer->pool != NULL ? (gf_busy){gf_pool_busy(writer->pool), writer->widest}
                                : (gf_busy){0};
}

void gf_row_writer_close(gf_row_writer *writer) {
    if (writer == NULL)
        return;
    gf_pool_close(writer->pool);
    free(writer->buffer);
    free(writer);
}
