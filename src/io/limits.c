#include "io/limits.h"

#include <inttypes.h>

#include "error.h"

gf_limits gf_limits_of(const gf_file_options *options, uint32_t threads) {
    if (options == NULL)
        return (gf_limits){.threads = threads};
    return (gf_limits){.max_pixels = options->max_pixels,
                       .max_memory = options->max_memory,
                       .max_chunk = options->max_chunk,
                       .max_seconds = options->max_seconds,
                       .no_sandbox = options->no_sandbox,
                       .threads = threads,
                       .raw = options->raw};
}

gf_limits gf_limits_resolve(const gf_limits *limits) {
    gf_limits resolved = {0};

    if (limits != NULL)
        resolved = *limits;
    if (resolved.max_pixels == 0)
        resolved.max_pixels = GF_DEFAULT_MAX_PIXELS;
    if (resolved.max_memory == 0)
        resolved.max_memory = GF_DEFAULT_MAX_MEMORY;
    if (resolved.max_chunk == 0)
        resolved.max_chunk = GF_DEFAULT_MAX_CHUNK;
    if (resolved.max_seconds == 0)
        resolved.max_seconds = GF_DEFAULT_MAX_SECONDS;
    if (resolved.threads == 0)
        resolved.threads = 1;
    return resolved;
}

gf_status gf_check_pixels(uint64_t width, uint64_t height, const gf_limits *limits,
                          const char *name, gf_error *error) {
    uint64_t pixels;

    if (width == 0 || height == 0) {
        return gf_fail(error, GF_FAILED,
                       "%s: the image is empty (%" PRIu64 "x%" PRIu64
                       " pixels); it needs at least one pixel",
                       name, width, height);
    }
    if (__builtin_mul_overflow(width, height, &pixels) || pixels > limits->max_pixels) {
        return gf_fail(error, GF_FAILED,
                       "%s: %" PRIu64 "x%" PRIu64 " pixels are over the limit of %" PRIu64
                       "; raise it with --max-pixels",
                       name, width, height, limits->max_pixels);
    }
    return GF_OK;
}

gf_status gf_check_memory(uint64_t bytes, uint64_t max_memory, const char *name, const char *what,
                          gf_error *error) {
    if (bytes > max_memory) {
        return gf_fail(error, GF_FAILED,
                       "%s: %" PRIu64 " bytes for %s are over the limit of %" PRIu64
                       "; raise it with --max-memory",
                       name, bytes, what, max_memory);
    }
    return GF_OK;
}
