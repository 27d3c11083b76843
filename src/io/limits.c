/* Limits: defaults and checks. */
#include "io/limits.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/machine.h"
#include "gpufilter_tools.h"

gf_limits gf_limits_resolve(const gf_limits *limits) {
    gf_limits r = limits ? *limits : (gf_limits){0};
    r.max_pixels = r.max_pixels ? r.max_pixels : GF_DEFAULT_MAX_PIXELS;
    r.max_memory = r.max_memory ? r.max_memory : gf_default_memory();
    r.max_chunk = r.max_chunk ? r.max_chunk : GF_DEFAULT_MAX_CHUNK;
    r.max_seconds = r.max_seconds ? r.max_seconds : GF_DEFAULT_MAX_SECONDS;
    r.threads = r.threads ? r.threads : 1;
    return r;
}

gf_limits gf_limits_of(const gf_file_options *options, uint32_t threads) {
    static const gf_file_options defaults = {0};
    options = options ? options : &defaults;
    return gf_limits_resolve(&(gf_limits){.max_pixels = options->max_pixels,
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
                                          .channels = options->channels});
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
