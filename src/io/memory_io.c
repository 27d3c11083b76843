/* Sources and sinks over rows in memory. */

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/io.h"
#include "io/limits.h"

typedef struct memory_source {
    gf_source base;
    const unsigned char *data;
    size_t stride;
    uint64_t y;                   /* of the next row */
    void *owned;                  /* released in the end, if not borrowed */
    void (*release)(void *owned); /* NULL: borrowed */
} memory_source;

typedef struct memory_sink {
    gf_sink base;
    unsigned char *data;
    size_t stride;
    size_t row_bytes;
    uint64_t y; /* of the next row */
} memory_sink;

static gf_status source_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                             gf_error *error) {
    memory_source *source = (memory_source *)base;
    size_t row_bytes = gf_row_bytes(&base->format);
    unsigned char *out = dst;

    (void)error;
    for (uint64_t i = 0; i < rows; i++, source->y++)
        memcpy(out + i * stride, source->data + source->y * source->stride, row_bytes);
    return GF_OK;
}

static gf_status source_finish(gf_source *base, gf_error *error) {
    (void)base;
    (void)error;
    return GF_OK;
}

static void source_close(gf_source *base) {
    memory_source *source = (memory_source *)base;

    if (source->release != NULL)
        source->release(source->owned);
    gf_metadata_clear(&base->metadata);
    free(source);
}

static const gf_source_ops memory_ops = {source_read, source_finish, source_close, NULL};

static gf_status check_rows(const gf_format *format, size_t stride, gf_error *error) {
    gf_status status = gf_format_check(format, "memory", error);

    if (status == GF_OK && stride < gf_row_bytes(format))
        status = gf_fail(error, GF_FAILED,
                         "memory: a stride of %zu bytes is shorter than a row of %zu bytes", stride,
                         gf_row_bytes(format));
    return status;
}

gf_status gf_memory_source(const gf_format *format, const void *data, size_t stride,
                           gf_source **source, gf_error *error) {
    gf_status status = check_rows(format, stride, error);

    *source = NULL;
    if (status != GF_OK)
        return status;
    memory_source *new = calloc(1, sizeof *new);
    if (new == NULL)
        return gf_fail_memory(error, "memory", sizeof *new, "a source");
    new->base.ops = &memory_ops;
    new->base.format = *format;
    gf_metadata_init(&new->base.metadata);
    new->data = data;
    new->stride = stride;
    *source = &new->base;
    return GF_OK;
}

void gf_memory_source_own(gf_source *base, void *data, void (*release)(void *data)) {
    memory_source *source = (memory_source *)base;

    source->owned = data;
    source->release = release;
}

gf_status gf_source_read_all(gf_source *source, const char *name, const char *what,
                             uint64_t max_memory, void **pixels, gf_error *error) {
    const gf_format *format = &source->format;
    const size_t row = gf_row_bytes(format);
    const uint64_t bytes = format->height * row;
    gf_status status = gf_check_memory(bytes, max_memory, name, what, error);

    if (status != GF_OK)
        return status;
    void *rows = malloc((size_t)bytes); /* NOLINT: an image has at least one sample */
    if (rows == NULL)
        return gf_fail_memory(error, name, bytes, "the image");
    status = source->ops->read(source, rows, row, format->height, error);
    if (status == GF_OK)
        status = source->ops->finish(source, error);
    if (status != GF_OK) {
        free(rows);
        return status;
    }
    *pixels = rows;
    return GF_OK;
}

bool gf_memory_source_is(const gf_source *base) {
    return base->ops == &memory_ops;
}

bool gf_memory_source_rewind(gf_source *base) {
    if (!gf_memory_source_is(base))
        return false;
    ((memory_source *)base)->y = 0;
    return true;
}

static gf_status sink_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                            gf_error *error) {
    memory_sink *sink = (memory_sink *)base;
    const unsigned char *in = src;

    (void)error;
    for (uint64_t i = 0; i < rows; i++, sink->y++)
        memcpy(sink->data + sink->y * sink->stride, in + i * stride, sink->row_bytes);
    return GF_OK;
}

static gf_status sink_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    (void)base;
    (void)metadata;
    (void)error;
    return GF_OK;
}

/* The rows are where they belong. */
static gf_status sink_place(gf_sink *base, gf_error *error) {
    (void)base;
    (void)error;
    return GF_OK;
}

static void sink_close(gf_sink *base) {
    free(base);
}

gf_status gf_memory_sink(const gf_format *format, void *data, size_t stride, gf_sink **sink,
                         gf_error *error) {
    static const gf_sink_ops ops = {sink_write, sink_finish, sink_place, sink_close};
    gf_status status = check_rows(format, stride, error);

    *sink = NULL;
    if (status != GF_OK)
        return status;
    memory_sink *new = calloc(1, sizeof *new);
    if (new == NULL)
        return gf_fail_memory(error, "memory", sizeof *new, "a sink");
    new->base.ops = &ops;
    new->data = data;
    new->stride = stride;
    new->row_bytes = gf_row_bytes(format);
    *sink = &new->base;
    return GF_OK;
}
