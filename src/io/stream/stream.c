/* Common functions of sources and sinks, images in memory, and the ring of announced memory. */
#include "io/stream/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/file/output.h"
#include "io/limits.h"
#include "io/stream/announced.h"

void *gf_source_new(size_t size, const gf_source_ops *ops, const char *name, gf_error *error) {
    gf_source *source = calloc(1, size);
    if (!source) {
        gf_fail_memory(error, name, size, "a source");
        return NULL;
    }
    source->ops = ops;
    return source;
}

gf_status gf_source_read_all(gf_source *source, const char *name, const char *what,
                             uint64_t max_memory, size_t min_row, void **pixels, gf_error *error) {
    const uint64_t height = source->format.height;
    const size_t row = gf_row_bytes(&source->format), shift = min_row > row ? min_row - row : 0;
    *pixels = gf_alloc_limited(height * (row + shift), max_memory, name, what, error);
    if (!*pixels)
        return GF_FAILED;
    gf_status status =
        source->ops->read(source, (unsigned char *)*pixels + height * shift, row, height, error);
    if (!status)
        status = source->ops->finish(source, error);
    if (status) {
        free(*pixels);
        *pixels = NULL;
    }
    return status;
}

void *gf_sink_new(size_t size, const gf_sink_ops *ops, struct gf_output *output, gf_error *error) {
    gf_sink *sink = calloc(1, size);
    if (!sink) {
        gf_fail_memory(error, output ? gf_output_name(output) : "memory", size, "a sink");
        gf_output_close(output);
        return NULL;
    }
    sink->ops = ops;
    sink->output = output;
    return sink;
}

typedef struct memory_source {
    gf_source base;
    const gf_pixels *images;
    gf_pixels one;                /* images points here if there is one image */
    uint64_t y, height;           /* next row of the stack; rows per image */
    void *owned;                  /* argument of release */
    void (*release)(void *owned); /* called by close; NULL: borrowed */
} memory_source;

typedef struct memory_sink {
    gf_sink base;
    const gf_out_pixels *images;
    gf_format format; /* of each image */
    uint64_t count, y;
} memory_sink;

static gf_status memory_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                             gf_error *error) {
    (void)error;
    memory_source *source = (memory_source *)base;
    const size_t row_bytes = gf_row_bytes(&base->format);
    for (uint64_t i = 0; i < rows; i++, source->y++) {
        const gf_pixels *image = &source->images[source->y / source->height];
        memcpy((unsigned char *)dst + i * stride,
               (const unsigned char *)image->data + source->y % source->height * image->stride,
               row_bytes);
    }
    return GF_OK;
}

static gf_status memory_read_end(gf_source *base, gf_error *error) {
    (void)base, (void)error;
    return GF_OK;
}

static void memory_source_close(gf_source *base) {
    memory_source *source = (memory_source *)base;
    if (source->release)
        source->release(source->owned);
    gf_metadata_clear(&base->metadata);
    free(source);
}

static void memory_seek(gf_source *base, uint64_t y) {
    ((memory_source *)base)->y = y;
}

static const gf_source_ops memory_ops = {.read = memory_read,
                                         .finish = memory_read_end,
                                         .close = memory_source_close,
                                         .seek = memory_seek};

gf_status gf_batch_source(const gf_format *format, uint64_t count, const gf_pixels *images,
                          gf_source **source, gf_error *error) {
    gf_status status = gf_format_check(format, "memory", error);
    *source = NULL;
    for (uint64_t i = 0; i < count && !status; i++)
        status = gf_pixels_check("memory", "image", format, images[i], error);
    if (status)
        return status;
    memory_source *new = gf_source_new(sizeof *new, &memory_ops, "memory", error);
    if (!new)
        return GF_FAILED;
    new->base.format = *format;
    new->base.format.height *= count;
    new->images = images;
    new->height = format->height;
    *source = &new->base;
    return GF_OK;
}

gf_status gf_memory_source(const gf_format *format, const void *data, size_t stride,
                           gf_source **source, gf_error *error) {
    const gf_pixels one = {data, stride};
    gf_status status = gf_batch_source(format, 1, &one, source, error);
    if (status)
        return status;
    memory_source *new = (memory_source *)*source;
    new->one = one;
    new->images = &new->one;
    return GF_OK;
}

void gf_memory_source_own(gf_source *base, void *data, void (*release)(void *data)) {
    memory_source *source = (memory_source *)base;
    source->owned = data;
    source->release = release;
}

bool gf_memory_source_is(const gf_source *source) {
    return source->ops == &memory_ops;
}

/* Store a view of an image if its samples are aligned. That of an input is not written to. */
static bool memory_rows(const void *data, size_t stride, const gf_format *format, gf_rows *rows) {
    const size_t sample = gf_type_bytes(format->type);
    *rows = (gf_rows){NULL, stride, 0, format->height};
    memcpy(&rows->data, &data, sizeof data);
    return (uintptr_t)data % sample == 0 && stride % sample == 0;
}

bool gf_memory_source_rows(const gf_source *base, gf_rows *rows) {
    const memory_source *source = (const memory_source *)base;
    return base->ops == &memory_ops && source->height == base->format.height &&
           memory_rows(source->images->data, source->images->stride, &base->format, rows);
}

static gf_status memory_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                              gf_error *error) {
    (void)error;
    memory_sink *sink = (memory_sink *)base;
    for (uint64_t i = 0; i < rows; i++, sink->y++) {
        const unsigned char *from = (const unsigned char *)src + i * stride;
        const gf_out_pixels *image = &sink->images[sink->y / sink->format.height];
        unsigned char *to =
            (unsigned char *)image->data + sink->y % sink->format.height * image->stride;
        if (to != from)
            memcpy(to, from, gf_row_bytes(&sink->format));
    }
    return GF_OK;
}

static gf_status memory_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    (void)base, (void)metadata, (void)error;
    return GF_OK;
}

static void memory_sink_close(gf_sink *base) {
    free(base);
}

static const gf_sink_ops memory_sink_ops = {memory_write, memory_finish, memory_sink_close};

bool gf_memory_sink_rows(const gf_sink *base, const gf_format *format, gf_rows *rows) {
    const memory_sink *sink = (const memory_sink *)base;
    return base->ops == &memory_sink_ops && sink->count == 1 &&
           gf_format_equal(&sink->format, format) &&
           memory_rows(sink->images->data, sink->images->stride, format, rows);
}

gf_status gf_memory_sink(const gf_format *format, uint64_t count, const gf_out_pixels *images,
                         gf_sink **sink, gf_error *error) {
    gf_status status = gf_format_check(format, "memory", error);
    *sink = NULL;
    for (uint64_t i = 0; i < count && !status; i++)
        status = gf_pixels_check("memory", "output", format,
                                 (gf_pixels){images[i].data, images[i].stride}, error);
    if (status)
        return status;
    memory_sink *new = gf_sink_new(sizeof *new, &memory_sink_ops, NULL, error);
    if (!new)
        return GF_FAILED;
    new->images = images;
    new->format = *format;
    new->count = count;
    *sink = &new->base;
    return GF_OK;
}

static const gf_announced *announced_at(const gf_announcements *all, uint64_t i) {
    return &all->ring[i % GF_SOURCE_AHEAD];
}

uint64_t gf_announced_find(const gf_announcements *all, uint64_t i, uint64_t y) {
    while (i < all->count && announced_at(all, i)->end <= y)
        i++;
    return i;
}

void gf_announced_release(gf_announcements *all, uint64_t y) {
    all->released = gf_announced_find(all, all->released, y);
}

const gf_announced *gf_announced_last(const gf_announcements *all) {
    return all->count ? announced_at(all, all->count - 1) : NULL;
}

void gf_announced_add(gf_announcements *all, uint64_t y, unsigned char *to, size_t stride,
                      uint64_t rows) {
    gf_announced_release(all, y);
    assert(all->count - all->released < GF_SOURCE_AHEAD);
    const uint64_t first = all->count == all->released ? y : gf_announced_last(all)->end;
    all->ring[all->count % GF_SOURCE_AHEAD] = (gf_announced){first, first + rows, to, stride};
    all->count++; /* other threads now read it */
}

gf_announced gf_announced_rows(const gf_announcements *all, uint64_t i, uint64_t y) {
    gf_announced rows = {.first = y, .end = y};
    i = gf_announced_find(all, i, y);
    if (i == all->count || announced_at(all, i)->first > y)
        return rows;
    rows = *announced_at(all, i);
    rows.to += (y - rows.first) * rows.stride;
    rows.first = y;
    return rows;
}

void gf_announced_copy(unsigned char *dst, size_t stride, const unsigned char *from,
                       size_t from_stride, size_t bytes, uint64_t rows) {
    for (uint64_t i = 0; i < rows && from != dst; i++)
        memcpy(dst + i * stride, from + i * from_stride, bytes);
}
