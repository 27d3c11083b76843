/* Input of plain files. Several threads read a regular file directly into the caller's rows. */
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

/* Convert a row of the file to the image. row may equal src. Return false if a sample is invalid.
 */
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

/* Make vectors for consecutive rows of the file, in its order. Use one vector if the rows are also
 * consecutive in memory. */
static int plain_make_vectors(const read_job *job, unsigned char *dst, uint64_t rows,
                              struct iovec vectors[VECTORS]) {
    const size_t row_bytes = plain_part_bytes(job->source);
    const bool bottom_up = job->source->order.bottom_up;
    if (!bottom_up && job->stride == row_bytes) {
        vectors[0] = (struct iovec){dst, rows * row_bytes};
        return 1;
    }
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = bottom_up ? rows - 1 - i : i;
        vectors[i] = (struct iovec){dst + row * job->stride, row_bytes};
    }
    return (int)rows;
}

/* Read rows into dst; narrow rows are read into a buffer first. Return the number of bytes read. */
static size_t plain_read_rows(const read_job *job, unsigned char *dst, uint64_t rows, bool narrow,
                              uint64_t offset, struct read_part *result) {
    const gf_plain_source *source = job->source;
    const gf_row_order *order = &source->order;
    const size_t row_bytes = plain_part_bytes(source);
    unsigned char buffer[READ_BUFFER_BYTES];
    struct iovec vectors[VECTORS];
    vectors[0] = (struct iovec){buffer, rows * row_bytes};
    const int count = narrow ? 1 : plain_make_vectors(job, dst, rows, vectors);
    const size_t got =
        plain_read_vectors(fileno(source->input.file), vectors, count, offset, &result->cause);
    for (uint64_t i = 0; got == rows * row_bytes && i < rows; i++) {
        unsigned char *row = dst + (order->bottom_up ? rows - 1 - i : i) * job->stride;
        if (plain_convert_row(source, row, narrow ? buffer + i * row_bytes : row))
            continue;
        result->fail = source->format->fail;
        result->row = (offset - order->start) / gf_row_bytes(&order->format) + i;
        break;
    }
    return got;
}

static void plain_read_part(void *context, uint32_t task, uint32_t thread) {
    read_job *job = context;
    const gf_plain_source *source = job->source;
    const gf_row_order *order = &source->order;
    const size_t row_bytes = plain_part_bytes(source);
    const bool cut = row_bytes != gf_row_bytes(&order->format);
    const bool narrow = row_bytes < READ_NARROW_BYTES && row_bytes != job->stride;
    const uint64_t piece = READ_PIECE_BYTES / row_bytes + 1;
    const uint64_t max = cut               ? 1
                         : narrow          ? READ_BUFFER_BYTES / row_bytes
                         : piece < VECTORS ? piece
                                           : VECTORS;
    const uint64_t end = gf_share(job->rows, task + 1, job->parts);
    struct read_part *result = &job->results[task];
    (void)thread;
    for (uint64_t i = gf_share(job->rows, task, job->parts), rows; i < end; i += rows) {
        rows = end - i < max ? end - i : max;
        const uint64_t offset = gf_row_order_offset(order, source->y + i, rows) + source->cut_bytes;
        const size_t got =
            plain_read_rows(job, job->dst + i * job->stride, rows, narrow, offset, result);
        if (result->fail)
            return;
        if (got < rows * row_bytes) {
            result->fail = plain_fail_short;
            result->row = (offset + got - order->start) / gf_row_bytes(&order->format);
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
        gf_input_skip_to(&source->input, gf_plain_end(source));
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

void gf_plain_describe(gf_plain_source *source, const gf_samples *samples, const char *word,
                       const char *tail) {
    gf_source *base = &source->base;
    snprintf(base->stored, sizeof base->stored, "%" PRIu32 "-bit%s%s%s%s", 8 * samples->bytes,
             samples->kind == 'f'   ? " float"
             : samples->kind == 'i' ? " signed"
             : samples->kind == 'b' ? " bool"
                                    : "",
             word,
             samples->bytes == 1 ? ""
             : samples->little   ? ", little-endian"
                                 : ", big-endian",
             tail);
}

/* Read a header at the position of the input, and set where its images end. */
static gf_status plain_read_header(gf_plain_source *source, const gf_limits *limits, uint64_t page,
                                   gf_error *error) {
    const gf_status status = source->format->read(source, limits, page, error);
    source->images = source->images ? source->images : 1;
    source->end = source->end ? source->end : gf_plain_end(source);
    return status;
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
        gf_error *cause = found ? NULL : error;
        const gf_status status =
            plain_read_header(&next, limits, found ? 1 : wanted - before, cause);
        if (status && !found)
            return status;
        pages += status ? 0 : next.images;
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

static gf_status plain_open_readers(gf_plain_source *source, uint32_t threads, gf_error *error) {
    const gf_format *format = &source->order.format;
    if (source->read_text ||
        !(source->order.bottom_up ? source->input.regular : gf_plain_has_size(source)))
        return GF_OK;
    source->threads = plain_count_parts(source, format->height,
                                        threads < READ_MAX_THREADS ? threads : READ_MAX_THREADS);
    source->base.threads = source->threads > 1 ? source->threads : 0;
    return gf_pool_open(source->threads, &source->pool, error);
}

/* Report a truncated file on opening, not after most of the work, if the size is known. */
static gf_status plain_check_size(const gf_plain_source *source, gf_error *error) {
    const gf_format *format = &source->order.format;
    if (source->read_text || !gf_plain_has_size(source))
        return GF_OK;
    const uint64_t start = source->order.start, size = source->input.size;
    const uint64_t rows = size < start ? 0 : (size - start) / gf_row_bytes(format);
    return rows < format->height ? plain_fail_short(source, rows, error) : GF_OK;
}

/* Read a pipe up to its rows. */
static gf_status plain_skip_to_rows(gf_plain_source *source, gf_error *error) {
    unsigned char skipped[4096];
    while (source->input.offset < source->order.start) {
        const uint64_t rest = source->order.start - source->input.offset;
        const size_t want = rest < sizeof skipped ? (size_t)rest : sizeof skipped;
        size_t got;
        const gf_status status = gf_input_read(&source->input, skipped, want, &got, error);
        if (status)
            return status;
        if (got < want)
            return plain_fail_short(source, 0, error);
    }
    return GF_OK;
}

/* order: of top-down rows without a header; NULL: read it. */
static gf_status plain_open(const gf_input *input, const gf_plain_format *file,
                            const gf_row_order *order, const gf_limits *limits, gf_source **opened,
                            gf_error *error) {
    static const gf_source_ops in_order = {
        .read = plain_read, .finish = plain_finish, .close = plain_close};
    static const gf_source_ops in_any_order = {.read = plain_read,
                                               .finish = plain_finish,
                                               .close = plain_close,
                                               .seek = plain_seek,
                                               .cut = plain_cut};
    enum { UPSIDE_DOWN = 4 }; /* orientation */
    gf_plain_source *source = gf_source_new(sizeof *source, &in_order, input->name, error);
    if (!source)
        return GF_FAILED;
    source->base.cost = GF_PLAIN_COST;
    source->format = file;
    source->input = *input;
    gf_status status = GF_OK;
    if (order) {
        source->order = *order;
        source->base.format = order->format;
    } else {
        status = file->follows ? plain_find_image(source, limits, error)
                               : file->read(source, limits, 1, error);
    }
    if (!status)
        status = plain_check_size(source, error);
    if (!status)
        status = plain_open_readers(source, limits->threads, error);
    if (!status && !source->pool)
        status = plain_skip_to_rows(source, error);
    if (source->pool)
        source->base.ops = &in_any_order;
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

gf_status gf_plain_open(const gf_input *input, const gf_plain_format *format,
                        const gf_limits *limits, gf_source **opened, gf_error *error) {
    return plain_open(input, format, NULL, limits, opened, error);
}

gf_status gf_rows_source_open(const gf_input *input, const gf_row_order *order,
                              const gf_limits *limits, gf_source **opened, gf_error *error) {
    static const gf_plain_format none = {0};
    return plain_open(input, &none, order, limits, opened, error);
}
