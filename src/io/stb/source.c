/* BMP, TGA, PSD, GIF and HDR input, with the whole file and image in memory. The decoders, which
 * for HDR are stb_image, run in a sandbox (sandbox.h); their result is checked here as untrusted
 * data. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "io/stb/raster.h"
#include "io/stream/stream.h"

/* Initial buffer for inputs of unknown size (pipes); it is doubled as needed. */
enum { FIRST_READ_BYTES = 1 << 16 };

/* Check the header of a larger file before reading the rest. */
#define HEADER_READ_BYTES ((size_t)8 << 20)

_Static_assert(sizeof(gf_raster_result) <= GF_RASTER_PIXELS_AT, "the pixels begin behind it");

/* Read up to the end, or until data holds `max` bytes. Bytes already read are kept. */
static gf_status stb_read_file(gf_raster_file *file, gf_input *input, size_t max, bool *at_end,
                               gf_error *error) {
    const uint64_t limit = file->limits->max_memory;
    /* In a regular file, one more byte detects the end without another allocation. */
    size_t capacity = input->regular ? (size_t)input->size + 1 : FIRST_READ_BYTES;
    *at_end = false;
    if (input->regular && gf_check_memory(input->size, limit, file->name, "the file", error))
        return GF_FAILED;
    /* Read one byte more than the limit, which proves that the file exceeds it. */
    max = limit < max ? (size_t)limit + 1 : max;
    while (!*at_end && file->size < max) {
        size_t got;
        while (capacity <= file->size)
            capacity *= 2;
        capacity = capacity < max ? capacity : max;
        unsigned char *resized = realloc(file->data, capacity);
        if (!resized)
            return gf_fail_memory(error, file->name, capacity, "the file");
        file->data = resized;
        if (gf_input_read(input, file->data + file->size, capacity - file->size, &got, error))
            return GF_FAILED;
        file->size += got;
        *at_end = file->size < capacity;
        if (gf_check_memory(file->size, limit, file->name, "the file", error))
            return GF_FAILED;
    }
    return GF_OK;
}

static gf_status stb_fail_stopped(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: cannot decode (the decoder crashed and was stopped); get an intact copy or "
                   "convert it to PNG",
                   name);
}

/* Convert an untrusted result to a status and a format. */
static gf_status stb_check_result(const gf_raster_result *result, const gf_raster_file *file,
                                  gf_format *format, gf_error *error) {
    const int length = (int)sizeof result->reason - 1;
    const gf_limits *limits = file->limits;
    gf_status status;
    switch (result->outcome) {
    case GF_RASTER_READ:
    case GF_RASTER_OVER_LIMIT:
        *format = (gf_format){.width = result->width,
                              .height = result->height,
                              .channels = result->channels,
                              .type = (gf_type)result->type,
                              .alpha = result->channels % 2 == 0};
        if ((status = gf_check_pixels(format, limits, file->name, error)) ||
            (status = gf_check_memory(file->file_bytes + format->height * gf_row_bytes(format),
                                      limits->max_memory, file->name, "the file and its image",
                                      error)) ||
            result->outcome == GF_RASTER_READ)
            return status;
        return stb_fail_stopped(file->name, error);
    case GF_RASTER_OVER_MEMORY:
        return gf_fail_memory(error, file->name, limits->max_memory, "the decoder");
    case GF_RASTER_TRUNCATED:
        return gf_fail_short(file->name, error);
    case GF_RASTER_DAMAGED:
        return gf_fail(error, GF_FAILED, "%s: cannot decode (%.*s); get an intact copy", file->name,
                       length, result->reason);
    case GF_RASTER_UNSUPPORTED:
        return gf_fail(error, GF_FAILED, "%s: %.*s is not supported; convert it to PNG", file->name,
                       length, result->reason);
    case GF_RASTER_NO_PAGE:
        return gf_fail_page(file->name, limits->page, result->pages, error);
    default:
        return stb_fail_stopped(file->name, error);
    }
}

/* Unmap memory that a source owns. It begins with its own gf_sandbox_memory, stored there after the
 * child has exited. */
static void stb_release(void *memory) {
    const gf_sandbox_memory shared = *(const gf_sandbox_memory *)memory;
    gf_sandbox_unmap(shared.base, shared.bytes);
}

/* Run the decoder and copy its result, which is untrusted. */
static gf_status stb_run_decoder(gf_raster_file *file, gf_raster_result *result, gf_error *error) {
    gf_sandbox_end end = GF_SANDBOX_DONE;
    gf_status status = GF_OK;
    memset(file->shared.base, 0, sizeof *result);
    if (file->limits->no_sandbox)
        gf_raster_decode(file);
    else
        status = gf_sandbox_run(gf_raster_decode, file, &file->shared, file->limits->max_seconds,
                                file->name, &end, error);
    if (status)
        return status;
    if (end == GF_SANDBOX_TIME)
        return gf_fail(error, GF_FAILED,
                       "%s: decoding exceeds the limit of %" PRIu32
                       " seconds; raise it with --max-seconds",
                       file->name, file->limits->max_seconds);
    if (end == GF_SANDBOX_STOPPED)
        return stb_fail_stopped(file->name, error);
    memcpy(result, file->shared.base, sizeof *result);
    return GF_OK;
}

/* Read the file. If the header of a large one is rejected, the rest is not read. */
static gf_status stb_load_file(gf_raster_file *file, gf_input *input, gf_error *error) {
    gf_raster_result result;
    gf_format format;
    bool at_end;
    gf_status status = stb_read_file(file, input, HEADER_READ_BYTES, &at_end, error);
    if (!status && !at_end) {
        file->file_bytes = input->regular ? input->size : file->size;
        file->header_only = true;
        status = stb_run_decoder(file, &result, error);
        file->header_only = false;
        if (!status && result.outcome != GF_RASTER_TRUNCATED)
            status = stb_check_result(&result, file, &format, error);
        if (!status)
            status = stb_read_file(file, input, SIZE_MAX, &at_end, error);
    }
    file->file_bytes = file->size;
    return status || file->size >= GF_RASTER_MIN_BYTES ? status : gf_fail_short(file->name, error);
}

/* Decode the file, check the result, and release the shared memory after the pixels. */
static gf_status stb_decode_file(gf_raster_file *file, gf_raster_result *result, gf_format *format,
                                 gf_error *error) {
    gf_status status = stb_run_decoder(file, result, error);
    if (status || (status = stb_check_result(result, file, format, error)))
        return status;
    const uint64_t bytes = format->height * (uint64_t)gf_row_bytes(format);
    if (bytes > file->shared.bytes - GF_RASTER_PIXELS_AT)
        return stb_fail_stopped(file->name, error);
    gf_sandbox_trim(file->shared.base + GF_RASTER_PIXELS_AT + bytes,
                    file->shared.base + file->shared.bytes);
    if (result->unread)
        gf_note(&file->metadata.remarks, "%" PRIu32 " more channels (masks) are not read",
                result->unread);
    return result->damaged
               ? gf_damage(&file->metadata.remarks, file->limits->strict, file->name, error,
                           "%" PRIu64 " runs extend past their row or image, where they end",
                           result->damaged)
               : GF_OK;
}

static gf_status stb_open_source(gf_raster_file *file, gf_input *input, gf_source **opened,
                                 gf_error *error) {
    const uint64_t max = SIZE_MAX / 4, limit = file->limits->max_memory;
    gf_raster_result result;
    gf_format format = {0};
    gf_status status;
    /* Map the memory that the limits allow, or less if that fails. Untouched pages use no memory.
     */
    file->shared.bytes = GF_RASTER_PIXELS_AT + (size_t)(limit < max ? limit : max);
    while (!(file->shared.base = gf_sandbox_map(file->shared.bytes))) {
        if (file->shared.bytes / 2 < 2 * GF_RASTER_PIXELS_AT)
            return gf_fail_memory(error, file->name, file->shared.bytes, "the decoder");
        file->shared.bytes /= 2;
    }
    if ((status = stb_load_file(file, input, error)) ||
        (status = gf_raster_metadata(file, error)) ||
        (status = stb_decode_file(file, &result, &format, error)))
        return status;
    /* Only an allocation can fail; report it with the name of the file. */
    if (gf_memory_source(&format, file->shared.base + GF_RASTER_PIXELS_AT, gf_row_bytes(&format),
                         opened, NULL))
        return gf_fail(error, GF_FAILED, "%s: out of memory for a source", file->name);
    memcpy(file->shared.base, &file->shared, sizeof file->shared);
    gf_memory_source_own(*opened, file->shared.base, stb_release);
    file->shared.base = NULL;
    (*opened)->metadata = file->metadata;
    (*opened)->dropped = file->dropped;
    (*opened)->pages = result.pages;
    file->metadata = (gf_metadata){0};
    const gf_raster_kind kind = gf_raster_find(file->data);
    char *text = (*opened)->stored;
    const size_t size = sizeof(*opened)->stored;
    if (kind == GF_RASTER_PSD)
        snprintf(text, size, "%d-bit planar %s", format.type == GF_U16 ? 16 : 8,
                 format.channels > 2 ? "RGB" : "grey");
    else if (kind == GF_RASTER_GIF)
        snprintf(text, size, "palette, frame %" PRIu32 " of %" PRIu32,
                 file->limits->page ? file->limits->page : 1, result.pages);
    else if (kind == GF_RASTER_HDR)
        snprintf(text, size, "8-bit RGB with shared exponent");
    else
        snprintf(text, size, "%" PRIu32 " bits per pixel%s%s", result.bits,
                 result.indexed ? ", palette" : "", result.packed ? ", run-length coded" : "");
    return GF_OK;
}

gf_status gf_stb_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    gf_input reader = *input;
    gf_raster_file file = {.name = input->name, .limits = limits};
    const gf_status status = stb_open_source(&file, &reader, opened, error);
    gf_metadata_clear(&file.metadata);
    if (file.shared.base)
        gf_sandbox_unmap(file.shared.base, file.shared.bytes);
    free(file.data);
    if (status)
        return status;
    /* The file is fully read; the input can be closed. */
    (*opened)->bytes = reader.offset;
    gf_input_close(&reader);
    return GF_OK;
}
