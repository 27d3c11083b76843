#include "io/row_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/costs.h"
#include "io/limits.h"
#include "io/metadata.h"
#include "io/pnm.h"

gf_status gf_row_source_fail_short(const gf_row_source *source, uint64_t y, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: the file ends too early, in row %" PRIu64 " of %" PRIu64
                   "; get a complete copy",
                   source->input.name, y + 1, source->base.format.height);
}

bool gf_row_source_knows_size(const gf_row_source *source) {
    return source->input.regular && source->input.size != 0;
}

uint64_t gf_row_source_end(const gf_row_source *source) {
    return source->order.start +
           source->base.format.height * (uint64_t)gf_row_bytes(&source->base.format);
}

/* Reads exactly size bytes that hold rows from row y on. */
static gf_status read_exactly(gf_row_source *source, void *data, size_t size, uint64_t y,
                              gf_error *error) {
    size_t got;
    gf_status status = gf_input_read(&source->input, data, size, &got, error);

    if (status == GF_OK && got < size)
        status =
            gf_row_source_fail_short(source, y + got / gf_row_bytes(&source->base.format), error);
    if (status == GF_OK && y == 0)
        source->fed = source->returned && *(const unsigned char *)data == '\n';
    return status;
}

static gf_status read_plain_row(gf_row_source *source, unsigned char *row, gf_error *error) {
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

static gf_status read_binary_row(gf_row_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    gf_status status = read_exactly(source, row, gf_row_bytes(format), source->y, error);

    if (status == GF_OK)
        gf_row_order_copy(&source->order, row, row, gf_row_samples(format));
    return status;
}

/* The file has the last row first: a pipe must be held before the first row is known. */
static gf_status hold(gf_row_source *source, gf_error *error) {
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

static gf_status read_held_row(gf_row_source *source, unsigned char *row, gf_error *error) {
    const gf_format *format = &source->base.format;
    const uint64_t offset = gf_row_order_turn(&source->order, source->y) * gf_row_bytes(format);
    gf_status status = source->held == NULL ? hold(source, error) : GF_OK;

    if (status == GF_OK)
        gf_row_order_copy(&source->order, row, source->held + offset, gf_row_samples(format));
    return status;
}

static gf_status read_rows(gf_source *base, void *dst, size_t stride, uint64_t rows,
                           gf_error *error) {
    gf_row_source *source = (gf_row_source *)base;
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

/* Raw rows from a pipe: with a wrong shape there may be more of them. */
static gf_status check_end(gf_row_source *source, gf_error *error) {
    unsigned char byte;
    size_t got;
    const gf_status status = gf_input_read(&source->input, &byte, 1, &got, error);

    if (status != GF_OK || got == 0)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: holds more than the %" PRIu64 " bytes that --raw says; give its real shape",
                   source->input.name, gf_row_source_end(source));
}

/* Nothing follows the pixels that would matter: netpbm files may hold further images. But a single
 * byte may mean that what was taken for the first sample was the header's. */
static gf_status finish(gf_source *base, gf_error *error) {
    gf_row_source *source = (gf_row_source *)base;

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
        gf_input_skip_to(&source->input, gf_row_source_end(source));
    if (base->threads != 0) {
        const gf_busy busy = gf_row_reader_busy(source->reader);
        base->threads = busy.workers;
        base->busy_seconds = busy.seconds;
    }
    base->bytes = source->input.offset;
    return GF_OK;
}

static void close_source(gf_source *base) {
    gf_row_source *source = (gf_row_source *)base;

    gf_metadata_clear(&base->metadata);
    gf_row_reader_close(source->reader);
    gf_input_close(&source->input);
    free(source->held);
    free(source);
}

static void seek(gf_source *base, const gf_window *window) {
    gf_row_source *source = (gf_row_source *)base;

    source->y = window->y;
    gf_row_reader_narrow(source->reader, window->x, window->width);
}

/* ---- opening --------------------------------------------------------------------------------- */

gf_status gf_row_source_open_reader(gf_row_source *source, uint32_t threads, gf_error *error) {
    const bool backwards = source->order.upwards;

    if (source->header.plain ||
        !(backwards ? source->input.regular : gf_row_source_knows_size(source)))
        return GF_OK;
    gf_status status =
        gf_row_reader_open(&source->input, &source->order, threads, &source->reader, error);
    if (status == GF_OK && gf_row_reader_threads(source->reader) > 1)
        source->base.threads = gf_row_reader_threads(source->reader);
    return status;
}

gf_status gf_row_source_open(gf_open_rows *open, const gf_input *input, const gf_limits *limits,
                             gf_source **opened, gf_error *error) {
    static const gf_source_ops in_order = {read_rows, finish, close_source, NULL};
    static const gf_source_ops in_any_order = {read_rows, finish, close_source, seek};
    gf_row_source *source = calloc(1, sizeof *source);

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
