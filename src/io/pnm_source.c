/* PGM, PPM, PAM and PFM in; and raw rows, which are the same without a header. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/costs.h"
#include "io/kinds.h"
#include "io/limits.h"
#include "io/metadata.h"
#include "io/pnm.h"
#include "io/row_reader.h"

typedef struct pnm_source {
    gf_source base;
    gf_input input;
    gf_pnm_header header;
    uint64_t max_memory;
    gf_row_order order;
    gf_row_reader *reader; /* NULL: what comes, comes in its order */
    uint64_t y;            /* of the next row */
    unsigned char *held;   /* a PFM that cannot be read backwards, once read */
    bool returned;         /* from a pipe: the header ends in CR, */
    bool fed;              /* and the first byte behind it is LF */
    bool raw;              /* no header: rows are all that there may be */
} pnm_source;

static gf_status fail_short(const pnm_source *source, uint64_t y, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: the file ends too early, in row %" PRIu64 " of %" PRIu64
                   "; get a complete copy",
                   source->input.name, y + 1, source->base.format.height);
}

/* Reads exactly size bytes that hold rows from row y on. */
static gf_status read_exactly(pnm_source *source, void *data, size_t size, uint64_t y,
                              gf_error *error) {
    size_t got;
    gf_status status = gf_input_read(&source->input, data, size, &got, error);

    if (status == GF_OK && got < size)
        status = fail_short(source, y + got / gf_row_bytes(&source->base.format), error);
    if (status == GF_OK && y == 0)
        source->fed = source->returned && *(const unsigned char *)data == '\n';
    return status;
}

static gf_status read_plain_row(pnm_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    uint64_t max = format->type == GF_U8 ? 255 : 65535;

    for (uint64_t i = 0; i < gf_row_samples(format); i++) {
        uint64_t value;
        gf_status status = gf_pnm_read_number(&source->input, max, "sample", &value, error);
        if (status != GF_OK)
            return status;
        if (format->type == GF_U8) {
            row[i] = (unsigned char)value;
        } else {
            uint16_t sample = (uint16_t)value;
            memcpy(row + 2 * i, &sample, sizeof sample);
        }
    }
    return GF_OK;
}

static gf_status read_binary_row(pnm_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    gf_status status = read_exactly(source, row, gf_row_bytes(format), source->y, error);

    if (status == GF_OK)
        gf_row_order_copy(&source->order, row, row, gf_row_samples(format));
    return status;
}

/* The file has the last row first: a pipe must be held before the first row is known. */
static gf_status hold(pnm_source *source, gf_error *error) {
    size_t row_bytes = gf_row_bytes(&source->base.format);
    uint64_t bytes = row_bytes * source->base.format.height;
    gf_status status =
        gf_check_memory(bytes, source->max_memory, source->input.name, "a PFM from a pipe", error);

    if (status != GF_OK)
        return status;
    source->held = malloc((size_t)bytes); /* NOLINT: an image has at least one sample */
    if (source->held == NULL)
        return gf_fail_memory(error, source->input.name, bytes, "a PFM from a pipe");
    return read_exactly(source, source->held, (size_t)bytes, 0, error);
}

static gf_status read_held_row(pnm_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    const uint64_t offset = gf_row_order_turn(&source->order, source->y) * gf_row_bytes(format);
    gf_status status = source->held == NULL ? hold(source, error) : GF_OK;

    if (status == GF_OK)
        gf_row_order_copy(&source->order, row, source->held + offset, gf_row_samples(format));
    return status;
}

static gf_status pnm_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                          gf_error *error) {
    pnm_source *source = (pnm_source *)base;
    unsigned char *out = dst;
    gf_status status = GF_OK;

    if (source->reader != NULL) {
        status = gf_row_reader_read(source->reader, dst, stride, source->y, rows, error);
        source->y += rows;
        return status;
    }
    for (uint64_t i = 0; i < rows && status == GF_OK; i++, source->y++) {
        unsigned char *row = out + i * stride;
        if (source->order.upwards) {
            status = read_held_row(source, row, error);
        } else if (source->header.plain) {
            status = read_plain_row(source, row, error);
        } else {
            status = read_binary_row(source, row, error);
        }
    }
    return status;
}

static uint64_t end_of(const pnm_source *source) {
    return source->order.start +
           source->base.format.height * (uint64_t)gf_row_bytes(&source->base.format);
}

/* Raw rows from a pipe: with a wrong shape there may be more of them. */
static gf_status check_end(pnm_source *source, gf_error *error) {
    unsigned char byte;
    size_t got;
    const gf_status status = gf_input_read(&source->input, &byte, 1, &got, error);

    if (status != GF_OK || got == 0)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: holds more than the %" PRIu64 " bytes that --raw says; give its real shape",
                   source->input.name, end_of(source));
}

/* Nothing follows the pixels that would matter: netpbm files may hold further images. But a single
 * byte may mean that what was taken for the first sample was the header's. */
static gf_status pnm_finish(gf_source *base, gf_error *error) {
    pnm_source *source = (pnm_source *)base;

    if (source->fed && gf_input_byte(&source->input) != EOF && gf_input_byte(&source->input) == EOF)
        return gf_fail(error, GF_FAILED,
                       "%s: its header ends in CR LF, which may be part of the image; give it as a "
                       "file, not by a pipe",
                       source->input.name);
    if (source->raw && source->reader == NULL) {
        const gf_status status = check_end(source, error);
        if (status != GF_OK)
            return status;
    }
    if (source->reader != NULL)
        gf_input_skip_to(&source->input, end_of(source));
    if (base->threads != 0) {
        const gf_busy busy = gf_row_reader_busy(source->reader);
        base->threads = busy.workers;
        base->busy_seconds = busy.seconds;
    }
    base->bytes = source->input.offset;
    return GF_OK;
}

static void pnm_close(gf_source *base) {
    pnm_source *source = (pnm_source *)base;

    gf_metadata_clear(&base->metadata);
    gf_row_reader_close(source->reader);
    gf_input_close(&source->input);
    free(source->held);
    free(source);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Files that know no size (in /proc) call themselves empty. */
static bool knows_size(const pnm_source *source) {
    return source->input.regular && source->input.size != 0;
}

/* Headers that were written as text on Windows end in two characters, of which the format knows
 * one. Where the file is longer than it should be by just that one, it is no sample. */
static gf_status skip_line_feed(pnm_source *source, gf_error *error) {
    const gf_format *format = &source->base.format;
    unsigned char end[2];

    if (source->header.plain || !source->input.regular ||
        source->input.size != source->order.start + format->height * gf_row_bytes(format) + 1) {
        return GF_OK;
    }
    gf_status status =
        gf_input_read_at(&source->input, end, sizeof end, source->order.start - 1, error);
    if (status == GF_OK && end[0] == '\r' && end[1] == '\n') {
        (void)gf_input_byte(&source->input);
        source->order.start++;
    }
    return status;
}

/* A truncated file is told at once where its size is known, not after most of the work. */
static gf_status check_size(const pnm_source *source, gf_error *error) {
    const gf_format *format = &source->base.format;
    uint64_t row_bytes = gf_row_bytes(format);

    if (source->header.plain || !knows_size(source))
        return GF_OK;
    uint64_t rows = (source->input.size - source->order.start) / row_bytes;
    return rows < format->height ? fail_short(source, rows, error) : GF_OK;
}

static void describe(pnm_source *source) {
    const gf_pnm_header *header = &source->header;
    gf_source *base = &source->base;
    const gf_value scale = {.type = GF_VALUE_DOUBLE, .real = header->pfm_scale};
    char text[40];

    (void)snprintf(base->kind, sizeof base->kind, "%s", header->kind);
    gf_value_format(&scale, text, sizeof text);
    if (base->format.type == GF_F32)
        (void)snprintf(base->stored, sizeof base->stored, "32-bit float, %s-endian, scale %s",
                       header->little ? "little" : "big", text);
    else
        (void)snprintf(base->stored, sizeof base->stored, "%d-bit %s",
                       base->format.type == GF_U8 ? 8 : 16, header->plain ? "text" : "binary");
}

/* Where rows have a place, they can be read from there, by many. */
static gf_status open_reader(pnm_source *source, uint32_t threads, gf_error *error) {
    const bool backwards = source->order.upwards;

    if (source->header.plain || !(backwards ? source->input.regular : knows_size(source)))
        return GF_OK;
    gf_status status =
        gf_row_reader_open(&source->input, &source->order, threads, &source->reader, error);
    if (status == GF_OK && gf_row_reader_threads(source->reader) > 1)
        source->base.threads = gf_row_reader_threads(source->reader);
    return status;
}

static gf_status open_image(pnm_source *source, const gf_limits *limits, gf_error *error) {
    const gf_pnm_header *header = &source->header;
    gf_status status = gf_pnm_read_header(&source->input, limits, &source->header, error);

    if (status != GF_OK)
        return status;
    source->base.format = header->format;
    source->base.metadata.pfm_scale = header->pfm_scale;
    source->order = (gf_row_order){.format = header->format,
                                   .start = source->input.offset,
                                   .upwards = header->format.type == GF_F32,
                                   .little = header->little};
    source->returned = !source->input.regular && !header->plain && source->input.last == '\r';
    describe(source);
    status = check_size(source, error);
    if (status == GF_OK)
        status = skip_line_feed(source, error);
    return status == GF_OK ? open_reader(source, limits->threads, error) : status;
}

/* ---- raw rows -------------------------------------------------------------------------------- */

/* A wrong shape would give wrong pixels: it is told where it can be. */
static gf_status check_raw_size(const pnm_source *source, gf_error *error) {
    if (!knows_size(source) || source->input.size == end_of(source))
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: holds %" PRIu64 " bytes, and --raw says %" PRIu64 "; give its real shape",
                   source->input.name, source->input.size, end_of(source));
}

static gf_status skip_to_rows(pnm_source *source, gf_error *error) {
    unsigned char skipped[4096];

    while (source->input.offset < source->order.start) {
        const uint64_t rest = source->order.start - source->input.offset;
        const size_t want = rest < sizeof skipped ? (size_t)rest : sizeof skipped;
        size_t got;
        const gf_status status = gf_input_read(&source->input, skipped, want, &got, error);
        if (status != GF_OK)
            return status;
        if (got < want)
            return fail_short(source, 0, error);
    }
    return GF_OK;
}

static void describe_raw(const gf_raw *raw, gf_source *base) {
    static const char *const types[] = {"8-bit", "16-bit", "32-bit float"};
    char offset[40] = "";

    (void)snprintf(base->kind, sizeof base->kind, "raw");
    if (raw->offset != 0)
        (void)snprintf(offset, sizeof offset, ", from byte %" PRIu64, raw->offset);
    (void)snprintf(base->stored, sizeof base->stored, "%s raw%s%s", types[raw->format.type],
                   raw->format.type == GF_U8 ? ""
                   : raw->big                ? ", big-endian"
                                             : ", little-endian",
                   offset);
}

static gf_status open_rows(pnm_source *source, const gf_limits *limits, gf_error *error) {
    const gf_raw *raw = limits->raw;
    const char *name = source->input.name;

    source->raw = true;
    gf_status status = gf_check_pixels(raw->format.width, raw->format.height, limits, name, error);
    if (status == GF_OK)
        status = gf_format_check(&raw->format, name, error);
    if (status != GF_OK)
        return status;
    source->base.format = raw->format;
    source->order =
        (gf_row_order){.format = raw->format, .start = raw->offset, .little = !raw->big};
    if (raw->offset > INT64_MAX || end_of(source) > INT64_MAX)
        return gf_fail(error, GF_FAILED,
                       "%s: no file is as long as --raw says; give its real shape", name);
    describe_raw(raw, &source->base);
    status = check_raw_size(source, error);
    if (status == GF_OK)
        status = open_reader(source, limits->threads, error);
    return status == GF_OK && source->reader == NULL ? skip_to_rows(source, error) : status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static void pnm_seek(gf_source *base, const gf_window *window) {
    pnm_source *source = (pnm_source *)base;

    source->y = window->y;
    gf_row_reader_narrow(source->reader, window->x, window->width);
}

typedef gf_status open_contents(pnm_source *source, const gf_limits *limits, gf_error *error);

static gf_status open_source(open_contents *open, const gf_input *input, const gf_limits *limits,
                             gf_source **opened, gf_error *error) {
    static const gf_source_ops in_order = {pnm_read, pnm_finish, pnm_close, NULL};
    static const gf_source_ops in_any_order = {pnm_read, pnm_finish, pnm_close, pnm_seek};
    pnm_source *source = calloc(1, sizeof *source);

    if (source == NULL)
        return gf_fail_memory(error, input->name, sizeof *source, "a source");
    source->base.ops = &in_order;
    source->base.cost = GF_PLAIN_COST;
    gf_metadata_init(&source->base.metadata);
    source->input = *input;
    source->max_memory = limits->max_memory;
    gf_status status = open(source, limits, error);
    if (status != GF_OK) {
        free(source);
        return status;
    }
    if (source->reader != NULL)
        source->base.ops = &in_any_order;
    *opened = &source->base;
    return GF_OK;
}

gf_status gf_pnm_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    return open_source(open_image, input, limits, opened, error);
}

gf_status gf_raw_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    return open_source(open_rows, input, limits, opened, error);
}
