/* Output of plain files: a header, then uncompressed rows. PGM, PPM and PAM store 16-bit samples in
 * big-endian order. PFM stores little-endian f32, the last row first. NPY files are in native
 * order. Raw files have no header and are little-endian. One system call writes many rows. Several
 * threads write where that is faster. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/formats.h"
#include "io/npy.h"

enum {
    WRITE_BUFFER_BYTES = 1 << 18, /* buffer for reordered rows; it stays in the cache */
    WRITE_PART_BYTES = 1 << 19,   /* min bytes per thread; below, one thread's write() is faster */
    WRITE_PIECE_BYTES = 1 << 20,  /* approximate size of a mapped piece */
    WRITE_MIN_THREADS = 3         /* fewer threads populate pages more slowly than write() does */
};
/* More threads only wait: the kernel adds pages to a file one at a time. */
#define WRITE_MAX_THREADS 4u

typedef struct plain_sink {
    gf_sink base;
    gf_row_order order;
    uint64_t y;            /* next row */
    gf_pool *pool;         /* pool of base.threads threads; NULL: one thread writes */
    uint32_t max_used;     /* max threads that wrote at the same time */
    unsigned char *buffer; /* reordered rows; NULL: write the caller's rows as they are */
    uint64_t buffer_rows;
    /* The last row comes first and the output is not seekable: buffer the whole image. */
    bool buffer_all;
} plain_sink;

/* Convert rows to the order of the file, without gaps. */
static void plain_reorder(const gf_row_order *order, unsigned char *dst, const unsigned char *src,
                          size_t stride, uint64_t rows) {
    const size_t row_bytes = gf_row_bytes(&order->format);
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = order->bottom_up ? rows - 1 - i : i;
        gf_row_order_copy(order, dst + i * row_bytes, src + row * stride,
                          gf_row_samples(&order->format));
    }
}

/* ---- writing with one thread ----------------------------------------------------------------- */

static gf_status plain_write_rows(plain_sink *sink, const unsigned char *src, size_t stride,
                                  uint64_t rows, gf_error *error) {
    const gf_row_order *order = &sink->order;
    gf_output *output = sink->base.output;
    const size_t row_bytes = gf_row_bytes(&order->format);
    gf_status status = GF_OK;
    if (!sink->buffer)
        return gf_output_write_rows(output, src, stride, row_bytes, rows, error);
    for (uint64_t i = 0, n; i < rows && !status; i += n) {
        n = rows - i < sink->buffer_rows ? rows - i : sink->buffer_rows;
        plain_reorder(order, sink->buffer, src + i * stride, stride, n);
        if (order->bottom_up)
            status = gf_output_seek(output, gf_row_order_offset(order, sink->y + i, n), error);
        if (!status)
            status = gf_output_write(output, sink->buffer, n * row_bytes, error);
    }
    return status;
}

/* ---- writing with several threads ------------------------------------------------------------ */

typedef struct write_job {
    const plain_sink *sink;
    const unsigned char *src;
    size_t stride;
    uint64_t rows;
    uint32_t parts;
    int causes[WRITE_MAX_THREADS]; /* errno of each part; 0: none */
} write_job;

static void plain_write_part(void *context, uint32_t task, uint32_t thread) {
    write_job *job = context;
    const plain_sink *sink = job->sink;
    const gf_row_order *order = &sink->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    const uint64_t max = WRITE_PIECE_BYTES / row_bytes + 1;
    (void)thread;
    for (uint64_t i = gf_share(job->rows, task, job->parts), n; i < end; i += n) {
        gf_output_map map;
        n = end - i < max ? end - i : max;
        job->causes[task] = gf_output_map_open(
            sink->base.output, gf_row_order_offset(order, sink->y + i, n), n * row_bytes, &map);
        if (job->causes[task] != 0)
            return;
        plain_reorder(order, map.data, job->src + i * job->stride, job->stride, n);
        gf_output_map_close(&map);
    }
}

static gf_status plain_write_shared(plain_sink *sink, const unsigned char *src, size_t stride,
                                    uint64_t rows, gf_error *error) {
    const uint64_t parts = rows * gf_row_bytes(&sink->order.format) / WRITE_PART_BYTES;
    const uint32_t threads = sink->base.threads;
    write_job job = {.sink = sink,
                     .src = src,
                     .stride = stride,
                     .rows = rows,
                     .parts = parts < 1         ? 1
                              : parts < threads ? (uint32_t)parts
                                                : threads};
    gf_work work = {.run = plain_write_part, .context = &job, .count = job.parts};
    if (job.parts > sink->max_used)
        sink->max_used = job.parts;
    gf_pool_run(sink->pool, &work);
    for (uint32_t i = 0; i < job.parts; i++)
        if (job.causes[i] != 0)
            return gf_output_fail_write(sink->base.output, job.causes[i], error);
    return GF_OK;
}

/* ---- sink interface -------------------------------------------------------------------------- */

static gf_status plain_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                             gf_error *error) {
    plain_sink *sink = (plain_sink *)base;
    const gf_row_order *order = &sink->order;
    gf_status status = GF_OK;
    if (sink->buffer_all)
        plain_reorder(order,
                      sink->buffer + gf_row_order_offset(order, sink->y, rows) - order->start, src,
                      stride, rows);
    else
        status =
            (sink->pool ? plain_write_shared : plain_write_rows)(sink, src, stride, rows, error);
    sink->y += rows;
    return status;
}

static gf_status plain_sink_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    (void)metadata;
    plain_sink *sink = (plain_sink *)base;
    const gf_format *format = &sink->order.format;
    gf_status status = GF_OK;
    if (sink->pool) {
        base->threads = sink->max_used;
        base->busy_seconds = gf_pool_busy(sink->pool);
    }
    if (sink->buffer_all)
        status = gf_output_write(base->output, sink->buffer, gf_row_bytes(format) * format->height,
                                 error);
    return status ? status : gf_output_prepare(base->output, error);
}

static void plain_sink_close(gf_sink *base) {
    plain_sink *sink = (plain_sink *)base;
    gf_output_close(base->output);
    gf_pool_close(sink->pool);
    free(sink->buffer);
    free(sink);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Use several threads if the image is large enough and the output can be mapped. */
static gf_status plain_open_writers(plain_sink *sink, uint32_t threads, gf_error *error) {
    const gf_row_order *order = &sink->order;
    const uint64_t bytes = order->format.height * gf_row_bytes(&order->format);
    if (threads > WRITE_MAX_THREADS)
        threads = WRITE_MAX_THREADS;
    if (bytes / WRITE_PART_BYTES < threads)
        threads = (uint32_t)(bytes / WRITE_PART_BYTES);
    if (threads < WRITE_MIN_THREADS ||
        !gf_output_map_start(sink->base.output, order->start + bytes))
        return GF_OK;
    sink->base.threads = threads;
    return gf_pool_open(threads, &sink->pool, error);
}

static gf_status plain_open_buffer(plain_sink *sink, uint64_t max_memory, gf_error *error) {
    const gf_format *format = &sink->order.format;
    const char *name = gf_output_name(sink->base.output);
    const char *what = sink->buffer_all ? "a PFM to a pipe" : "a row";
    const size_t row_bytes = gf_row_bytes(format);
    const uint64_t max = max_memory < WRITE_BUFFER_BYTES ? max_memory : WRITE_BUFFER_BYTES;
    uint64_t rows = max / row_bytes;
    if (gf_row_order_plain(&sink->order) && !sink->order.bottom_up)
        return GF_OK;
    if (sink->buffer_all || rows > format->height)
        rows = format->height;
    if (rows == 0)
        rows = 1;
    sink->buffer_rows = rows;
    sink->buffer = gf_alloc_limited(rows * row_bytes, max_memory, name, what, error);
    if (sink->buffer_all)
        sink->base.memory = rows * row_bytes;
    return sink->buffer ? GF_OK : GF_FAILED;
}

/* Format "-SCALE" with the fewest digits that preserve the value, and with a decimal point as other
 * writers do. */
static void pfm_print_scale(char text[32], double scale) {
    gf_c_locale scope = gf_c_locale_enter();
    int length = 0;
    for (int digits = 1; digits <= 17; digits++) {
        length = snprintf(text, 32, "-%.*g", digits, scale);
        if (strtod(text, NULL) == -scale)
            break;
    }
    gf_c_locale_leave(&scope);
    if (!strpbrk(text, ".e"))
        snprintf(text + length, 32 - (size_t)length, ".0");
}

/* Return the size of the header. */
static size_t plain_header(const gf_sink_setup *setup, char header[256]) {
    static const char *const tuples[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    const gf_format *format = setup->format;
    const uint64_t width = format->width, height = format->height;
    const uint64_t shape[] = {height, width, format->channels};
    const int maxval = format->type == GF_U8 ? 255 : 65535;
    const double pfm_scale = setup->metadata->pfm_scale;
    char scale[32];
    if (setup->kind == GF_SINK_NPY)
        return gf_npy_put_header(header, gf_npy_dtype(format->type), shape,
                                 format->channels == 1 ? 2 : 3);
    if (setup->kind == GF_SINK_PNM)
        return (size_t)snprintf(header, 256, "P%d\n%" PRIu64 " %" PRIu64 "\n%d\n",
                                format->channels == 1 ? 5 : 6, width, height, maxval);
    if (setup->kind == GF_SINK_PAM)
        return (size_t)snprintf(header, 256,
                                "P7\nWIDTH %" PRIu64 "\nHEIGHT %" PRIu64 "\nDEPTH %" PRIu32
                                "\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n",
                                width, height, format->channels, maxval, tuples[format->channels]);
    if (setup->kind != GF_SINK_PFM)
        return 0; /* raw */
    pfm_print_scale(scale, pfm_scale > 0 && isfinite(pfm_scale) ? pfm_scale : 1.0);
    return (size_t)snprintf(header, 256, "%s\n%" PRIu64 " %" PRIu64 "\n%s\n",
                            format->channels == 3 ? "PF" : "Pf", width, height, scale);
}

gf_status gf_plain_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {plain_write, plain_sink_finish, plain_sink_close};
    const bool pfm = setup->kind == GF_SINK_PFM, npy = setup->kind == GF_SINK_NPY;
    char header[256];
    plain_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    if (!sink)
        return GF_FAILED;
    sink->base.cost = GF_PLAIN_COST;
    sink->base.exact = true;
    sink->base.headerless = setup->kind == GF_SINK_RAW;
    sink->order =
        (gf_row_order){.format = *setup->format,
                       .start = plain_header(setup, header),
                       .bottom_up = pfm,
                       .little = npy ? gf_host_is_little() : pfm || setup->kind == GF_SINK_RAW};
    sink->y = setup->first;
    sink->buffer_all = pfm && !gf_output_seekable(setup->output);
    gf_status status = sink->buffer_all ? GF_OK : plain_open_writers(sink, setup->threads, error);
    if (!status && !sink->pool)
        status = plain_open_buffer(sink, setup->max_memory, error);
    if (!status && setup->header)
        status = gf_output_write(setup->output, header, (size_t)sink->order.start, error);
    else if (!status && !pfm)
        status =
            gf_output_seek(setup->output, gf_row_order_offset(&sink->order, sink->y, 0), error);
    if (status)
        plain_sink_close(&sink->base);
    else
        *opened = &sink->base;
    return status;
}
