/* Common functions of sources and sinks, limits, and the sources and sinks that have no
 * file: images in memory and pairs of sources. */
#include "io/io.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/machine.h"
#include "gpufilter_tools.h"
#include "io/file/output.h"

/* ---- limits ---------------------------------------------------------------------------------- */

gf_limits gf_limits_resolve(const gf_limits *limits) {
    gf_limits resolved = limits ? *limits : (gf_limits){0};
    if (!resolved.max_pixels)
        resolved.max_pixels = GF_DEFAULT_MAX_PIXELS;
    if (!resolved.max_memory)
        resolved.max_memory = gf_default_memory();
    if (!resolved.max_chunk)
        resolved.max_chunk = GF_DEFAULT_MAX_CHUNK;
    if (!resolved.max_seconds)
        resolved.max_seconds = GF_DEFAULT_MAX_SECONDS;
    if (!resolved.threads)
        resolved.threads = 1;
    return resolved;
}

gf_limits gf_limits_of(const gf_file_options *options, uint32_t threads) {
    gf_limits limits = {.threads = threads};
    if (options)
        limits = (gf_limits){.max_pixels = options->max_pixels,
                             .max_memory = options->max_memory,
                             .max_chunk = options->max_chunk,
                             .max_seconds = options->max_seconds,
                             .no_sandbox = options->no_sandbox,
                             .threads = threads,
                             .raw = options->raw,
                             .strict = options->strict,
                             .alpha = options->alpha,
                             .keep_nodata = options->keep_nodata,
                             .autorotate = options->autorotate,
                             .crop = options->crop,
                             .page = options->page,
                             .as = options->as,
                             .channels = options->channels};
    return gf_limits_resolve(&limits);
}

gf_status gf_check_options(const gf_engine_options *engine, const gf_file_options *files,
                           gf_error *error) {
    const struct {
        const char *name;
        uint64_t value, max;
    } list[] = {{"threads", engine ? engine->threads : 0, GF_MAX_THREADS},
                {"depth", files ? files->write.depth : 0, GF_DEPTH_F32},
                {"sync", files ? files->sync : 0, GF_SYNC_NEVER},
                {"quality", files ? files->write.quality : 0, 100}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].value > list[i].max)
            return gf_fail(error, GF_USAGE, "%s: %" PRIu64 " is above the maximum of %" PRIu64,
                           list[i].name, list[i].value, list[i].max);
    return GF_OK;
}

uint64_t gf_limit_seconds(const gf_limits *limits, const gf_format *format) {
    enum { SAMPLES_PER_SECOND = 10000000 };
    return limits->max_seconds + format->height * gf_row_samples(format) / SAMPLES_PER_SECOND;
}

gf_status gf_check_pixels(const gf_format *format, const gf_limits *limits, const char *name,
                          gf_error *error) {
    const uint64_t width = format->width, height = format->height;
    uint64_t pixels;
    if (width == 0 || height == 0)
        return gf_fail(error, GF_FAILED,
                       "%s: the image is empty (%" PRIu64 "x%" PRIu64
                       " pixels); it needs at least one pixel",
                       name, width, height);
    if (__builtin_mul_overflow(width, height, &pixels) || pixels > limits->max_pixels)
        return gf_fail(error, GF_FAILED,
                       "%s: %" PRIu64 "x%" PRIu64 " pixels are over the limit of %" PRIu64
                       "; raise it with --max-pixels",
                       name, width, height, limits->max_pixels);
    return gf_format_check(format, name, error);
}

gf_status gf_check_memory(uint64_t bytes, uint64_t max_memory, const char *name, const char *what,
                          gf_error *error) {
    if (bytes <= max_memory)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: %" PRIu64 " bytes for %s are over the limit of %" PRIu64
                   "; raise it with --max-memory",
                   name, bytes, what, max_memory);
}

void *gf_alloc_limited(uint64_t bytes, uint64_t max_memory, const char *name, const char *what,
                       gf_error *error) {
    if (gf_check_memory(bytes, max_memory, name, what, error))
        return NULL;
    void *memory = calloc(1, (size_t)bytes);
    if (!memory)
        gf_set_memory_error(error, name, bytes, what);
    return memory;
}

/* ---- all sources and sinks ------------------------------------------------------------------- */

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
                             uint64_t max_memory, void **pixels, gf_error *error) {
    const gf_format *format = &source->format;
    const size_t row = gf_row_bytes(format);
    void *rows = gf_alloc_limited(format->height * row, max_memory, name, what, error);
    if (!rows)
        return GF_FAILED;
    gf_status status = source->ops->read(source, rows, row, format->height, error);
    if (!status)
        status = source->ops->finish(source, error);
    if (status)
        free(rows);
    else
        *pixels = rows;
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

/* ---- images in memory ------------------------------------------------------------------------ */

typedef struct memory_source {
    gf_source base;
    const gf_pixels *images; /* image i is images[i * step] */
    size_t step;
    gf_pixels one;                /* images points here if there is one image */
    uint64_t y, height;           /* next row of the stack; rows per image */
    void *owned;                  /* argument of release */
    void (*release)(void *owned); /* called by close; NULL: borrowed */
} memory_source;

typedef struct memory_sink {
    gf_sink base;
    const gf_out_pixels *images;
    size_t row_bytes;
    uint64_t y, height;
} memory_sink;

static gf_status memory_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                             gf_error *error) {
    (void)error;
    memory_source *source = (memory_source *)base;
    const size_t row_bytes = gf_row_bytes(&base->format);
    for (uint64_t i = 0; i < rows; i++, source->y++) {
        const gf_pixels *image = &source->images[source->y / source->height * source->step];
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
                          size_t step, gf_source **source, gf_error *error) {
    gf_status status = gf_format_check(format, "memory", error);
    *source = NULL;
    for (uint64_t i = 0; i < count && !status; i++)
        status = gf_pixels_check("memory", "image", format, images[i * step], error);
    if (status)
        return status;
    memory_source *new = gf_source_new(sizeof *new, &memory_ops, "memory", error);
    if (!new)
        return GF_FAILED;
    new->base.format = *format;
    new->base.format.height *= count;
    new->images = images;
    new->step = step;
    new->height = format->height;
    *source = &new->base;
    return GF_OK;
}

gf_status gf_memory_source(const gf_format *format, const void *data, size_t stride,
                           gf_source **source, gf_error *error) {
    const gf_pixels one = {data, stride};
    gf_status status = gf_batch_source(format, 1, &one, 1, source, error);
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

gf_pixels gf_memory_source_pixels(const gf_source *base) {
    return ((const memory_source *)base)->one;
}

bool gf_memory_source_is(const gf_source *source) {
    return source->ops == &memory_ops;
}

static gf_status memory_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                              gf_error *error) {
    (void)error;
    memory_sink *sink = (memory_sink *)base;
    for (uint64_t i = 0; i < rows; i++, sink->y++) {
        const gf_out_pixels *image = &sink->images[sink->y / sink->height];
        memcpy((unsigned char *)image->data + sink->y % sink->height * image->stride,
               (const unsigned char *)src + i * stride, sink->row_bytes);
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

gf_status gf_memory_sink(const gf_format *format, uint64_t count, const gf_out_pixels *images,
                         gf_sink **sink, gf_error *error) {
    static const gf_sink_ops ops = {memory_write, memory_finish, memory_sink_close};
    gf_status status = gf_format_check(format, "memory", error);
    *sink = NULL;
    for (uint64_t i = 0; i < count && !status; i++)
        status = gf_pixels_check("memory", "output", format,
                                 (gf_pixels){images[i].data, images[i].stride}, error);
    if (status)
        return status;
    memory_sink *new = gf_sink_new(sizeof *new, &ops, NULL, error);
    if (!new)
        return GF_FAILED;
    new->images = images;
    new->row_bytes = gf_row_bytes(format);
    new->height = format->height;
    *sink = &new->base;
    return GF_OK;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

typedef struct pair_source {
    gf_source base;
    gf_source_ops ops;
    gf_source *halves[2];
    double seconds[2]; /* spent in read */
} pair_source;

/* The row of the first image starts at the stride, that of the second at its middle. */
static gf_status pair_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                           gf_error *error) {
    pair_source *pair = (pair_source *)base;
    gf_status status = GF_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        const double start = gf_now();
        status = pair->halves[i]->ops->read(
            pair->halves[i], (unsigned char *)dst + i * (stride / 2), stride, rows, error);
        pair->seconds[i] += gf_now() - start;
    }
    return status;
}

/* Add remarks about one image, with the position of that image. */
static void pair_add_remarks(gf_remarks *to, const char *which, const gf_remarks *from) {
    const size_t used = strlen(to->damage);
    if (from->damage[0])
        (void)snprintf(to->damage + used, sizeof to->damage - used, "%s%s image: %s",
                       used ? "; " : "", which, from->damage);
    for (const char *line = from->notes; *line; line += *line == '\n') {
        const int length = (int)strcspn(line, "\n");
        gf_note(to, "%s image: %.*s", which, length, line);
        line += length;
    }
}

static gf_status pair_finish(gf_source *base, gf_error *error) {
    static const char *const which[] = {"first", "second"};
    pair_source *pair = (pair_source *)base;
    gf_status status = GF_OK;
    for (size_t i = 0; i < 2 && !status; i++)
        status = pair->halves[i]->ops->finish(pair->halves[i], error);
    for (size_t i = 0; i < 2; i++) {
        base->busy_seconds += gf_source_busy(pair->halves[i], pair->seconds[i]).seconds;
        base->bytes += pair->halves[i]->bytes;
        pair_add_remarks(&base->metadata.remarks, which[i], &pair->halves[i]->metadata.remarks);
    }
    return status;
}

static void pair_close(gf_source *base) {
    pair_source *pair = (pair_source *)base;
    for (size_t i = 0; i < 2; i++)
        pair->halves[i]->ops->close(pair->halves[i]);
    gf_metadata_clear(&base->metadata);
    free(pair);
}

static void pair_seek(gf_source *base, uint64_t y) {
    pair_source *pair = (pair_source *)base;
    for (size_t i = 0; i < 2; i++)
        pair->halves[i]->ops->seek(pair->halves[i], y);
}

static void pair_shrink(gf_source *base) {
    pair_source *pair = (pair_source *)base;
    for (size_t i = 0; i < 2; i++)
        if (pair->halves[i]->ops->shrink)
            pair->halves[i]->ops->shrink(pair->halves[i]);
    base->threads = 0;
    base->memory = 0;
}

gf_status gf_pair_source(gf_source *a, gf_source *b, const char *a_name, const char *b_name,
                         gf_source **source, gf_error *error) {
    *source = NULL;
    gf_format format = a->format; /* alpha is declared by either image */
    format.alpha = b->format.alpha;
    if (!gf_format_equal(&format, &b->format)) {
        char is[96], want[96];
        gf_format_text(&b->format, is, sizeof is);
        gf_format_text(&a->format, want, sizeof want);
        return gf_fail(error, GF_FAILED,
                       "%s: is %s, but %s is %s; both must have the same size, channels and type",
                       b_name, is, a_name, want);
    }
    pair_source *pair = gf_source_new(sizeof *pair, NULL, a_name, error);
    if (!pair)
        return GF_FAILED;
    pair->ops = (gf_source_ops){.read = pair_read,
                                .finish = pair_finish,
                                .close = pair_close,
                                .seek = a->ops->seek && b->ops->seek ? pair_seek : NULL,
                                .shrink = pair_shrink};
    pair->base.ops = &pair->ops;
    format.alpha = a->format.alpha || b->format.alpha;
    pair->base.format = format;
    pair->base.cost = a->cost + b->cost;
    pair->base.memory = a->memory + b->memory;
    pair->base.threads = a->threads < b->threads ? a->threads : b->threads;
    pair->base.held = a->held || b->held;
    pair->base.pages = a->pages > b->pages ? a->pages : b->pages;
    pair->halves[0] = a;
    pair->halves[1] = b;
    *source = &pair->base;
    return GF_OK;
}
