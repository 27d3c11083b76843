/* Rows of plain files. Several threads read a regular file directly into the caller's rows. */
#define _GNU_SOURCE /* preadv, 64-bit offsets */

#include "io/plain/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/error.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/stream/convert.h"

/* ---- rows of files --------------------------------------------------------------------------- */

static gf_status plain_fail_short(const gf_plain_source *source, uint64_t y, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: the file ends too early, in row %" PRIu64 " of %" PRIu64
                   "; get a complete copy",
                   source->input.name, y + 1, source->base.format.height);
}

bool gf_plain_has_size(const gf_plain_source *source) {
    return source->input.regular && source->input.size != 0;
}

/* Return the bytes of a row that are read: all, or those of the columns that are not cut. */
static size_t plain_part_bytes(const gf_plain_source *source) {
    return gf_row_bytes(source->bitmap ? &source->order.format : &source->base.format);
}

uint64_t gf_plain_end(const gf_plain_source *source) {
    const gf_format *format = &source->order.format;
    return source->order.start + format->height * (uint64_t)gf_row_bytes(format);
}

static bool plain_convert_row(const gf_plain_source *source, unsigned char *row,
                              const unsigned char *src) {
    const gf_format *format = &source->base.format;
    if (source->convert)
        return source->convert(source, row, src);
    gf_copy_order(row, src, gf_row_samples(format), gf_type_bytes(format->type),
                  source->order.little);
    return true;
}

/* ---- reading rows in any order, with several threads ----------------------------------------- */

enum {
    VECTORS = 256,              /* rows per preadv call */
    READ_PART_BYTES = 1 << 18,  /* min bytes per part */
    READ_MAX_PARTS = 4,         /* parts per thread; slow threads process fewer */
    READ_PIECE_BYTES = 1 << 18, /* bytes to read and then reorder while they are in the cache */
    READ_NARROW_BYTES = 512,    /* shorter rows: reading into a buffer and copying is faster */
    READ_BUFFER_BYTES = 1 << 15,
    CUT_MIN_BYTES = 1 << 14 /* of a row that are left out: they take longer than a call */
};
#define READ_MAX_THREADS 16u /* they saturate the bus to a GPU */

/* Rows of one read call, and the results of its parts. */
typedef struct read_job {
    const gf_plain_source *source;
    unsigned char *dst;
    size_t stride;
    uint64_t rows;
    uint32_t parts;
    struct read_part {
        int cause; /* errno; 0: none */
        /* Another failure, in this row of the file; NULL: none. */
        gf_status (*fail)(const gf_plain_source *source, uint64_t row, gf_error *error);
        uint64_t row;
    } results[READ_MAX_PARTS * READ_MAX_THREADS];
} read_job;

/* Fill all vectors from the file. Return the number of bytes read; it is smaller at the end of the
 * file, or on a failure, which sets *cause. */
static size_t plain_read_vectors(int fd, struct iovec *vectors, int count, uint64_t offset,
                                 int *cause) {
    size_t all = 0, rest = 0;
    for (ssize_t got;; rest = (size_t)got, all += rest) {
        for (; count > 0 && rest >= vectors->iov_len; vectors++, count--)
            rest -= vectors->iov_len;
        if (count == 0)
            return all;
        vectors->iov_base = (unsigned char *)vectors->iov_base + rest;
        vectors->iov_len -= rest;
        do
            got = preadv(fd, vectors, count, (off_t)(offset + all));
        while (got < 0 && errno == EINTR);
        if (got <= 0) {
            *cause = got < 0 ? errno : 0;
            return all;
        }
    }
}

/* Read a part of the rows; narrow ones are read into a buffer first. */
static void plain_read_part(void *context, uint32_t task, uint32_t thread) {
    read_job *job = context;
    const gf_plain_source *source = job->source;
    const gf_row_order *order = &source->order;
    const size_t row_bytes = plain_part_bytes(source), file_bytes = gf_row_bytes(&order->format);
    const bool narrow = row_bytes < READ_NARROW_BYTES && row_bytes != job->stride;
    /* One vector if the rows are consecutive in memory, in the order of the file. */
    const bool joined = narrow || (!order->bottom_up && job->stride == row_bytes);
    const uint64_t piece = READ_PIECE_BYTES / row_bytes + 1;
    const uint64_t max = row_bytes != file_bytes ? 1
                         : narrow                ? READ_BUFFER_BYTES / row_bytes
                         : piece < VECTORS       ? piece
                                                 : VECTORS;
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    struct read_part *result = &job->results[task];
    unsigned char buffer[READ_BUFFER_BYTES];
    struct iovec vectors[VECTORS];
    (void)thread;
    for (uint64_t i = gf_share(job->rows, task, job->parts), rows; i < end; i += rows) {
        unsigned char *dst = job->dst + i * job->stride;
        rows = end - i < max ? end - i : max;
        const uint64_t offset = gf_row_order_offset(order, source->y + i, rows) + source->cut_bytes;
        /* cppcheck-suppress legacyUninitvar ; it is read before it is used */
        vectors[0] = (struct iovec){narrow ? buffer : dst, rows * row_bytes};
        for (uint64_t k = 0; !joined && k < rows; k++)
            vectors[k] = (struct iovec){dst + (order->bottom_up ? rows - 1 - k : k) * job->stride,
                                        row_bytes};
        const size_t got = plain_read_vectors(fileno(source->input.file), vectors,
                                              joined ? 1 : (int)rows, offset, &result->cause);
        if (got < rows * row_bytes) {
            result->fail = plain_fail_short;
            result->row = (offset + got - order->start) / file_bytes;
            return;
        }
        for (uint64_t k = 0; k < rows; k++) {
            unsigned char *row = dst + (order->bottom_up ? rows - 1 - k : k) * job->stride;
            if (plain_convert_row(source, row, narrow ? buffer + k * row_bytes : row))
                continue;
            result->fail = source->format->fail;
            result->row = (offset - order->start) / file_bytes + k;
            return;
        }
    }
}

static uint32_t plain_count_parts(const gf_plain_source *source, uint64_t rows, uint32_t max) {
    const uint64_t parts = rows * plain_part_bytes(source) / READ_PART_BYTES;
    return parts < 1 ? 1 : parts < max ? (uint32_t)parts : max;
}

static gf_status plain_read_shared(gf_plain_source *source, void *dst, size_t stride, uint64_t rows,
                                   gf_error *error) {
    read_job job = {.source = source,
                    .dst = dst,
                    .stride = stride,
                    .rows = rows,
                    .parts = plain_count_parts(source, rows, READ_MAX_PARTS * source->threads)};
    gf_work work = {.run = plain_read_part, .context = &job, .count = job.parts};
    const uint32_t used = job.parts < source->threads ? job.parts : source->threads;
    if (used > source->max_used)
        source->max_used = used;
    gf_pool_run(source->pool, &work);
    for (uint32_t i = 0; i < job.parts; i++) {
        const struct read_part *result = &job.results[i];
        if (result->cause != 0)
            return gf_input_fail_read(&source->input, result->cause, error);
        if (result->fail)
            return result->fail(source, result->row, error);
    }
    return GF_OK;
}

/* ---- reading rows in the order of the file --------------------------------------------------- */

static gf_status plain_read_binary(gf_plain_source *source, unsigned char *row, gf_error *error) {
    const size_t size = gf_row_bytes(&source->order.format);
    size_t got;
    const gf_status status = gf_input_read(&source->input, row, size, &got, error);
    if (status)
        return status;
    if (got < size)
        return plain_fail_short(source, source->y, error);
    if (source->y == 0)
        source->first_byte = *row;
    return plain_convert_row(source, row, row) ? GF_OK
                                               : source->format->fail(source, source->y, error);
}

static gf_status plain_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                            gf_error *error) {
    gf_plain_source *source = (gf_plain_source *)base;
    unsigned char *out = dst;
    gf_status status = GF_OK;
    if (source->pool) {
        status = plain_read_shared(source, dst, stride, rows, error);
        source->y += rows;
        return status;
    }
    for (; rows != 0 && !status; rows--, out += stride, source->y++)
        status = (source->read_text ? source->read_text : plain_read_binary)(source, out, error);
    base->bytes = source->input.offset;
    return status;
}

static gf_status plain_finish(gf_source *base, gf_error *error) {
    gf_plain_source *source = (gf_plain_source *)base;
    if (source->pool)
        gf_input_seek(&source->input, gf_plain_end(source));
    else if (source->format->check_end && source->format->check_end(source, error))
        return GF_FAILED;
    if (base->threads != 0) {
        base->threads = source->max_used;
        base->busy_seconds = gf_pool_busy(source->pool);
    }
    base->bytes = source->input.offset;
    return GF_OK;
}

static void plain_close(gf_source *base) {
    gf_plain_source *source = (gf_plain_source *)base;
    gf_metadata_clear(&base->metadata);
    gf_pool_close(source->pool);
    gf_input_close(&source->input);
    free(source);
}

static void plain_seek(gf_source *base, uint64_t y) {
    ((gf_plain_source *)base)->y = y;
}

/* Leave out columns if a call per row is faster than reading them. */
static bool plain_cut(gf_source *base, uint64_t x, uint64_t width) {
    gf_plain_source *source = (gf_plain_source *)base;
    const size_t pixel = gf_row_bytes(&base->format) / (size_t)base->format.width;
    if (source->bitmap || (base->format.width - width) * pixel < CUT_MIN_BYTES)
        return false;
    source->cut_bytes = (size_t)x * pixel;
    base->format.width = width;
    return true;
}

/* ---- headers of images ----------------------------------------------------------------------- */

void gf_plain_describe(gf_plain_source *source, const char *word, const char *tail) {
    gf_source *base = &source->base;
    const gf_samples samples = gf_samples_of(base);
    snprintf(base->stored, sizeof base->stored, "%" PRIu32 "-bit%s%s%s%s", 8 * samples.bytes,
             samples.kind == 'f'   ? " float"
             : samples.kind == 'i' ? " signed"
             : samples.kind == 'b' ? " bool"
                                   : "",
             word,
             samples.bytes == 1     ? ""
             : source->order.little ? ", little-endian"
                                    : ", big-endian",
             tail);
}

/* Return true if another image of the same family follows. */
static bool plain_is_followed(gf_plain_source *source) {
    unsigned char head[8];
    gf_input *input = &source->input;
    return !source->read_text && gf_plain_has_size(source) && input->size >= sizeof head &&
           source->end <= input->size - sizeof head &&
           !gf_input_read_at(input, head, sizeof head, source->end, NULL) &&
           source->format->follows(head);
}

/* Find the image that limits->page selects, and count those of the file. */
static gf_status plain_find_image(gf_plain_source *source, const gf_limits *limits,
                                  gf_error *error) {
    const uint64_t max_counted = limits->place ? 1 << 20 : 4096;
    const uint64_t wanted = limits->page ? limits->page : 1;
    gf_page_place *place = limits->place, at = {.page = 1};
    const gf_plain_source blank = *source;
    gf_plain_source next = blank;
    uint64_t pages = 0;
    bool found = false;
    if (place && place->page && place->page <= wanted) {
        at = *place;
        pages = at.page - 1;
        gf_input_seek(&next.input, at.offset);
    }
    for (;;) {
        const uint64_t before = pages, offset = next.input.offset;
        const gf_status status =
            next.format->read(&next, limits, found ? 1 : wanted - before, found ? NULL : error);
        if (status && !found)
            return status;
        next.end = next.end ? next.end : gf_plain_end(&next);
        pages += status ? 0 : next.images ? next.images : 1;
        if (!found && wanted <= pages) {
            *source = next;
            found = true;
            at = (gf_page_place){.page = before + 1, .pages = at.pages, .offset = offset};
        }
        if (status || (found && (at.pages || pages >= max_counted)) || !plain_is_followed(&next))
            break;
        const uint64_t end = next.end;
        next = blank;
        gf_input_seek(&next.input, end);
    }
    at.pages = at.pages ? at.pages : pages;
    if (!found)
        return gf_fail_page(source->input.name, wanted, pages, error);
    source->base.pages = (uint32_t)at.pages;
    if (place)
        *place = at;
    if (at.pages > 1) {
        const size_t used = strlen(source->base.stored);
        snprintf(source->base.stored + used, sizeof source->base.stored - used,
                 ", page %" PRIu64 " of %" PRIu64 "%s", wanted, at.pages,
                 at.pages < max_counted ? "" : " or more");
        if (source->input.regular)
            gf_input_seek(&source->input, source->order.start);
    }
    return GF_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Prepare to read the rows: in any order if the file allows it. */
static gf_status plain_start(gf_plain_source *source, uint32_t threads, gf_error *error) {
    static const gf_source_ops in_any_order = {.read = plain_read,
                                               .finish = plain_finish,
                                               .close = plain_close,
                                               .seek = plain_seek,
                                               .cut = plain_cut};
    const gf_format *format = &source->order.format;
    const bool binary = !source->read_text, sized = binary && gf_plain_has_size(source);
    const uint64_t start = source->order.start, size = source->input.size;
    const uint64_t stored = size < start ? 0 : (size - start) / gf_row_bytes(format);
    /* Report a truncated file on opening, not after most of the work, if the size is known. */
    if (sized && stored < format->height)
        return plain_fail_short(source, stored, error);
    if (source->order.bottom_up ? binary && source->input.regular : sized) {
        source->threads = plain_count_parts(
            source, format->height, threads < READ_MAX_THREADS ? threads : READ_MAX_THREADS);
        source->base.threads = source->threads > 1 ? source->threads : 0;
        source->base.ops = &in_any_order;
        return gf_pool_open(source->threads, &source->pool, error);
    }
    while (source->input.offset < start) { /* read a pipe up to its rows */
        unsigned char skipped[4096];
        const uint64_t rest = start - source->input.offset;
        const size_t want = rest < sizeof skipped ? (size_t)rest : sizeof skipped;
        size_t got;
        const gf_status status = gf_input_read(&source->input, skipped, want, &got, error);
        if (status || got < want)
            return status ? status : plain_fail_short(source, 0, error);
    }
    return GF_OK;
}

gf_status gf_plain_open(const gf_input *input, const gf_plain_format *format,
                        const gf_row_order *order, const gf_limits *limits, gf_source **opened,
                        gf_error *error) {
    static const gf_source_ops in_order = {
        .read = plain_read, .finish = plain_finish, .close = plain_close};
    static const gf_plain_format none = {0};
    enum { UPSIDE_DOWN = 4 }; /* orientation */
    gf_plain_source *source = gf_source_new(sizeof *source, &in_order, input->name, error);
    if (!source)
        return GF_FAILED;
    source->base.cost = GF_PLAIN_COST;
    source->format = format ? format : &none;
    source->input = *input;
    gf_status status = GF_OK;
    if (!format) {
        source->order = *order;
        source->base.format = order->format;
    } else {
        status = format->follows ? plain_find_image(source, limits, error)
                                 : format->read(source, limits, 1, error);
    }
    if (!status)
        status = plain_start(source, limits->threads, error);
    gf_source *top_down = &source->base;
    if (!status && !source->pool && source->order.bottom_up)
        status = gf_turn_source(&top_down, UPSIDE_DOWN, "a PFM from a pipe", limits->max_memory,
                                source->input.name, error);
    if (status)
        free(source);
    else
        *opened = top_down;
    return status;
}

/* ---- output; one system call writes many rows ---------------------------------------------------
 */

enum { WRITE_BUFFER_BYTES = 1 << 18 }; /* buffer for reordered rows; it stays in the cache */

typedef struct rows_sink {
    gf_sink base;
    gf_row_order order;
    uint64_t y;            /* next row */
    unsigned char *buffer; /* reordered rows; NULL: write the caller's rows as they are */
    uint64_t buffer_rows;
    /* The last row comes first and the output is not seekable: buffer the whole image. */
    bool buffer_all;
} rows_sink;

static gf_status rows_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                            gf_error *error) {
    rows_sink *sink = (rows_sink *)base;
    const gf_row_order *order = &sink->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    const unsigned char *from = src;
    gf_status status = GF_OK;
    if (!sink->buffer)
        return gf_output_write_rows(base->output, src, stride, row_bytes, rows, error);
    for (uint64_t n; rows != 0 && !status; rows -= n, from += n * stride, sink->y += n) {
        n = rows < sink->buffer_rows ? rows : sink->buffer_rows;
        const uint64_t at = gf_row_order_offset(order, sink->y, n);
        unsigned char *to = sink->buffer + (sink->buffer_all ? at - order->start : 0);
        for (uint64_t i = 0; i < n; i++)
            gf_copy_order(to + i * row_bytes, from + (order->bottom_up ? n - 1 - i : i) * stride,
                          gf_row_samples(&order->format), gf_type_bytes(order->format.type),
                          order->little);
        if (order->bottom_up && !sink->buffer_all)
            status = gf_output_seek(base->output, at, error);
        if (!status && !sink->buffer_all)
            status = gf_output_write(base->output, sink->buffer, n * row_bytes, error);
    }
    return status;
}

static gf_status rows_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    (void)metadata;
    const rows_sink *sink = (rows_sink *)base;
    if (sink->buffer_all && gf_output_write(base->output, sink->buffer, base->memory, error))
        return GF_FAILED;
    return gf_output_prepare(base->output, error);
}

static void rows_close(gf_sink *base) {
    rows_sink *sink = (rows_sink *)base;
    gf_output_close(base->output);
    free(sink->buffer);
    free(sink);
}

gf_status gf_rows_sink_open(const gf_sink_setup *setup, const gf_row_order *order,
                            const void *header, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {rows_write, rows_finish, rows_close};
    const gf_format *format = &order->format;
    const uint64_t memory = setup->max_memory, row_bytes = gf_row_bytes(format);
    rows_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    gf_status status = GF_OK;
    if (!sink)
        return GF_FAILED;
    *opened = &sink->base;
    sink->order = *order;
    sink->y = setup->first;
    sink->buffer_all = order->bottom_up && !gf_output_seekable(setup->output);
    if (order->bottom_up || (format->type != GF_U8 && order->little != gf_host_is_little())) {
        uint64_t rows = (memory < WRITE_BUFFER_BYTES ? memory : WRITE_BUFFER_BYTES) / row_bytes;
        rows = sink->buffer_all || rows > format->height ? format->height : rows ? rows : 1;
        sink->buffer_rows = rows;
        sink->base.memory = sink->buffer_all ? rows * row_bytes : 0;
        sink->buffer = gf_alloc_limited(rows * row_bytes, memory, gf_output_name(setup->output),
                                        sink->buffer_all ? "a PFM to a pipe" : "a row", error);
        status = sink->buffer ? GF_OK : GF_FAILED;
    }
    if (!status && setup->header)
        status = gf_output_write(setup->output, header, (size_t)order->start, error);
    else if (!status && !order->bottom_up)
        status = gf_output_seek(setup->output, gf_row_order_offset(order, sink->y, 0), error);
    return status;
}
