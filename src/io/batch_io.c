/* Many images in memory as one source or sink. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/io.h"

/* The next row: of which image, and which one of it. */
typedef struct gf_place_in_batch {
    uint64_t image, y, height;
} gf_place_in_batch;

typedef struct batch_source {
    gf_source base;
    const gf_pixels *images;
    size_t step;
    gf_place_in_batch next;
} batch_source;

typedef struct batch_sink {
    gf_sink base;
    const gf_out_pixels *images;
    size_t row_bytes;
    gf_place_in_batch next;
} batch_sink;

static void advance(gf_place_in_batch *next) {
    if (++next->y == next->height) {
        next->y = 0;
        next->image++;
    }
}

/* One image of a batch, and all of them as one. */
static gf_status check(const gf_format *format, const void *data, size_t stride, gf_error *error) {
    if (!data)
        return gf_fail(error, GF_USAGE, "memory: an image of the batch is NULL");
    if (stride < gf_row_bytes(format))
        return gf_fail(error, GF_FAILED,
                       "memory: a stride of %zu bytes is shorter than a row of %zu bytes", stride,
                       gf_row_bytes(format));
    return GF_OK;
}

/* ---- source ---------------------------------------------------------------------------------- */

static gf_status source_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                             gf_error *error) {
    (void)error;
    batch_source *source = (batch_source *)base;
    const size_t row_bytes = gf_row_bytes(&base->format);
    unsigned char *to = dst;
    for (uint64_t i = 0; i < rows; i++, advance(&source->next)) {
        const gf_pixels *image = &source->images[source->next.image * source->step];
        memcpy(to + i * stride, (const unsigned char *)image->data + source->next.y * image->stride,
               row_bytes);
    }
    return GF_OK;
}

static gf_status source_finish(gf_source *base, gf_error *error) {
    (void)base, (void)error;
    return GF_OK;
}

static void source_close(gf_source *base) {
    gf_metadata_clear(&base->metadata);
    free(base);
}

gf_status gf_batch_source(const gf_format *format, uint64_t count, const gf_pixels *images,
                          size_t step, gf_source **out, gf_error *error) {
    static const gf_source_ops ops = {source_read, source_finish, source_close, NULL};
    gf_status status = GF_OK;
    *out = NULL;
    for (uint64_t i = 0; i < count && !status; i++)
        status = check(format, images[i * step].data, images[i * step].stride, error);
    if (status)
        return status;
    batch_source *source = calloc(1, sizeof *source);
    if (!source)
        return gf_fail_memory(error, "memory", sizeof *source, "a source");
    source->base.ops = &ops;
    source->base.format = *format;
    source->base.format.height *= count;
    gf_metadata_init(&source->base.metadata);
    source->images = images;
    source->step = step;
    source->next.height = format->height;
    *out = &source->base;
    return GF_OK;
}

/* ---- sink ------------------------------------------------------------------------------------ */

static gf_status sink_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                            gf_error *error) {
    (void)error;
    batch_sink *sink = (batch_sink *)base;
    const unsigned char *from = src;
    for (uint64_t i = 0; i < rows; i++, advance(&sink->next)) {
        const gf_out_pixels *image = &sink->images[sink->next.image];
        memcpy((unsigned char *)image->data + sink->next.y * image->stride, from + i * stride,
               sink->row_bytes);
    }
    return GF_OK;
}

static gf_status sink_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    (void)base, (void)metadata, (void)error;
    return GF_OK;
}

static gf_status sink_place(gf_sink *base, gf_error *error) {
    (void)base, (void)error;
    return GF_OK;
}

static void sink_close(gf_sink *base) {
    free(base);
}

gf_status gf_batch_sink(const gf_format *format, uint64_t count, const gf_out_pixels *images,
                        gf_sink **out, gf_error *error) {
    static const gf_sink_ops ops = {sink_write, sink_finish, sink_place, sink_close};
    gf_status status = GF_OK;
    *out = NULL;
    for (uint64_t i = 0; i < count && !status; i++)
        status = check(format, images[i].data, images[i].stride, error);
    if (status)
        return status;
    batch_sink *sink = calloc(1, sizeof *sink);
    if (!sink)
        return gf_fail_memory(error, "memory", sizeof *sink, "a sink");
    sink->base.ops = &ops;
    sink->images = images;
    sink->row_bytes = gf_row_bytes(format);
    sink->next.height = format->height;
    *out = &sink->base;
    return GF_OK;
}
