/* BMP, TGA, PSD, GIF and HDR input, with the whole file and image in memory. The decoders, which
 * for HDR are stb_image, run in a sandbox (sandbox.h); their result is checked here as untrusted
 * data. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/sandbox.h"
#include "io/stb.h"

/* Initial buffer for inputs of unknown size (pipes); it is doubled as needed. */
enum { FIRST_READ_BYTES = 1 << 16 };

/* Check the header of a larger file before reading the rest. */
#define HEADER_READ_BYTES ((size_t)8 << 20)

/* Memory for stb in addition to the image, regardless of the memory limit. */
#define MIN_ARENA ((size_t)1 << 20)

/* Shared memory before the arena. */
#define RESULT_BYTES ((size_t)4096)

_Static_assert(sizeof(gf_stb_result) <= RESULT_BYTES, "the arena begins behind it");

/* A file that is being opened. */
typedef struct stb_file {
    const char *name;
    const gf_limits *limits;
    unsigned char *data;
    size_t size;
    uint64_t file_bytes; /* size of the whole file; size may cover only its beginning */
    gf_sandbox_memory shared;
    gf_metadata metadata;
    uint32_t dropped, pages; /* as in gf_source */
    size_t wanted; /* bytes of shared memory to allocate; shared.bytes is less if memory is short */
} stb_file;

/* ---- reading the file ------------------------------------------------------------------------ */

/* Read up to the end, or until data holds `max` bytes. Bytes already read are kept. */
static gf_status stb_read_file(stb_file *file, gf_input *input, size_t max, bool *at_end,
                               gf_error *error) {
    const uint64_t limit = file->limits->max_memory;
    size_t capacity = FIRST_READ_BYTES;
    gf_status status;
    *at_end = false;
    /* Read one byte more than the limit, which proves that the file exceeds it. */
    if (limit < max)
        max = (size_t)limit + 1;
    if (input->regular) {
        status = gf_check_memory(input->size, limit, file->name, "the file", error);
        if (status)
            return status;
        /* One more byte detects the end without another allocation. */
        capacity = (size_t)input->size + 1;
    }
    while (capacity <= file->size)
        capacity *= 2;
    for (;;) {
        size_t got;
        if (capacity > max)
            capacity = max;
        status = gf_check_memory(file->size, limit, file->name, "the file", error);
        if (status || file->size == max)
            return status;
        unsigned char *resized = realloc(file->data, capacity);
        if (!resized)
            return gf_fail_memory(error, file->name, capacity, "the file");
        file->data = resized;
        status = gf_input_read(input, file->data + file->size, capacity - file->size, &got, error);
        if (status)
            return status;
        file->size += got;
        if (file->size < capacity) {
            *at_end = true;
            return GF_OK;
        }
        capacity *= 2;
    }
}

/* ---- checking the result --------------------------------------------------------------------- */

static gf_status stb_check_format(const gf_stb_result *result, const stb_file *file,
                                  gf_format *format, gf_error *error) {
    const gf_limits *limits = file->limits;
    gf_status status;
    *format = (gf_format){.width = result->width,
                          .height = result->height,
                          .channels = result->channels,
                          .type = (gf_type)result->type,
                          .alpha = result->channels % 2 == 0};
    status = gf_check_pixels(format, limits, file->name, error);
    if (!status)
        status = gf_check_memory(file->file_bytes + format->height * (uint64_t)gf_row_bytes(format),
                                 limits->max_memory, file->name, "the file and its image", error);
    return status;
}

static gf_status stb_fail_stopped(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: cannot decode (the decoder crashed and was stopped); get an intact copy or "
                   "convert it to PNG",
                   name);
}

static gf_status stb_fail_memory(const stb_file *file, gf_error *error) {
    if (file->shared.bytes < file->wanted)
        return gf_fail_memory(error, file->name, file->wanted, "the decoder");
    return gf_fail(error, GF_FAILED,
                   "%s: decoding exceeds the limit of %" PRIu64
                   " bytes; raise it with --max-memory",
                   file->name, file->limits->max_memory);
}

/* Convert an untrusted result to a status and a format. */
static gf_status stb_check_result(const gf_stb_result *result, const stb_file *file,
                                  gf_format *format, gf_error *error) {
    const int length = (int)sizeof result->reason - 1;
    gf_status status;
    switch (result->outcome) {
    case GF_RASTER_READ:
        return stb_check_format(result, file, format, error);
    case GF_RASTER_OVER_LIMIT:
        status = stb_check_format(result, file, format, error);
        return status ? status : stb_fail_stopped(file->name, error);
    case GF_RASTER_OVER_MEMORY:
        return stb_fail_memory(file, error);
    case GF_RASTER_TRUNCATED:
        return gf_fail_short(file->name, error);
    case GF_RASTER_DAMAGED:
        return gf_fail(error, GF_FAILED, "%s: cannot decode (%.*s); get an intact copy", file->name,
                       length, result->reason);
    case GF_RASTER_UNSUPPORTED:
        return gf_fail(error, GF_FAILED, "%s: %.*s is not supported; convert it to PNG", file->name,
                       length, result->reason);
    case GF_RASTER_NO_PAGE:
        return gf_fail(error, GF_FAILED,
                       "%s: has no page %" PRIu32 "; choose one from 1 to %" PRIu32 " with --page",
                       file->name, file->limits->page, result->pages);
    default:
        return stb_fail_stopped(file->name, error);
    }
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Map the memory that the limits allow, or less if that fails. Untouched pages use no memory. */
static gf_status stb_map_shared(stb_file *file, gf_error *error) {
    const uint64_t limit = file->limits->max_memory;
    const uint64_t left = limit > file->file_bytes ? limit - file->file_bytes : 0;
    const uint64_t max = SIZE_MAX / 4;
    file->wanted = RESULT_BYTES + MIN_ARENA + (size_t)(left < max ? left : max);
    file->shared.bytes = file->wanted;
    while ((file->shared.base = gf_sandbox_map(file->shared.bytes)) == NULL) {
        if (file->shared.bytes / 2 < RESULT_BYTES + MIN_ARENA)
            return gf_fail_memory(error, file->name, file->shared.bytes, "the decoder");
        file->shared.bytes /= 2;
    }
    return GF_OK;
}

static void stb_unmap_shared(gf_sandbox_memory *shared) {
    if (shared->base)
        gf_sandbox_unmap(shared->base, shared->bytes);
    shared->base = NULL;
}

/* Unmap memory that a source owns. It begins with its own gf_sandbox_memory, stored there after the
 * child has exited. */
static void stb_release(void *memory) {
    gf_sandbox_memory shared = *(const gf_sandbox_memory *)memory;
    stb_unmap_shared(&shared);
}

static void stb_decode(void *context) {
    gf_stb_decode(context);
}

/* Run the decoder and copy its result, which is untrusted. */
static gf_status stb_run_decoder(const stb_file *file, bool header_only, gf_stb_result *result,
                                 gf_error *error) {
    gf_sandbox_end end = GF_SANDBOX_DONE;
    gf_arena arena;
    gf_stb_task task = {.data = file->data,
                        .size = file->size,
                        .file_bytes = file->file_bytes,
                        .limits = file->limits,
                        .arena = &arena,
                        .result = (gf_stb_result *)(void *)file->shared.base,
                        .header_only = header_only};
    gf_status status = GF_OK;
    gf_arena_init(&arena, file->shared.base + RESULT_BYTES, file->shared.bytes - RESULT_BYTES);
    if (file->limits->no_sandbox) {
        stb_decode(&task);
    } else {
        task.exit = gf_sandbox_exit;
        /* Allocate stb's thread-local variables: a shared library allocates them on first use, and
         * the child cannot allocate. */
        (void)gf_stb_reason();
        status = gf_sandbox_run(stb_decode, &task, &file->shared, file->limits->max_seconds,
                                file->name, &end, error);
    }
    gf_arena_end(&arena);
    if (status)
        return status;
    if (end == GF_SANDBOX_TIME)
        return gf_fail(error, GF_FAILED,
                       "%s: decoding exceeds the limit of %" PRIu32
                       " seconds; raise it with --max-seconds",
                       file->name, file->limits->max_seconds);
    if (end == GF_SANDBOX_STOPPED)
        return stb_fail_stopped(file->name, error);
    memcpy(result, task.result, sizeof *result);
    return GF_OK;
}

/* Check the header of a large file. If it is rejected, the rest is not read. */
static gf_status stb_check_header(stb_file *file, gf_error *error) {
    gf_stb_result result;
    gf_format format;
    gf_status status = stb_map_shared(file, error);
    if (status)
        return status;
    status = stb_run_decoder(file, true, &result, error);
    if (!status && result.outcome != GF_RASTER_READ && result.outcome != GF_RASTER_TRUNCATED)
        status = stb_check_result(&result, file, &format, error);
    stb_unmap_shared(&file->shared);
    return status;
}

static gf_status stb_load_file(stb_file *file, gf_input *input, gf_error *error) {
    bool at_end;
    gf_status status = stb_read_file(file, input, HEADER_READ_BYTES, &at_end, error);
    if (status || at_end) {
        file->file_bytes = file->size;
        return status;
    }
    file->file_bytes = input->regular ? input->size : file->size;
    if ((status = stb_check_header(file, error)) ||
        (status = stb_read_file(file, input, SIZE_MAX, &at_end, error)))
        return status;
    file->file_bytes = file->size;
    return GF_OK;
}

/* Decode the file, check the result, and release all shared memory except the pixels. */
static gf_status stb_decode_file(stb_file *file, gf_format *format, unsigned char **pixels,
                                 gf_error *error) {
    const size_t capacity = file->shared.bytes - RESULT_BYTES;
    gf_stb_result result;
    gf_status status = stb_run_decoder(file, false, &result, error);
    if (status || (status = stb_check_result(&result, file, format, error)))
        return status;
    file->pages = result.pages;
    if (result.damaged)
        status = gf_damage(&file->metadata.remarks, file->limits->strict, file->name, error,
                           "%" PRIu64 " runs extend past their row or image, where they end",
                           result.damaged);
    if (status)
        return status;
    if (result.unread)
        gf_note(&file->metadata.remarks, "%" PRIu32 " more channels (masks) are not read",
                result.unread);
    const uint64_t bytes = format->height * (uint64_t)gf_row_bytes(format);
    if (bytes > capacity || result.offset > capacity - bytes || result.offset % sizeof(float) != 0)
        return stb_fail_stopped(file->name, error);
    *pixels = file->shared.base + RESULT_BYTES + result.offset;
    gf_sandbox_trim(file->shared.base, *pixels);
    gf_sandbox_trim(*pixels + bytes, file->shared.base + file->shared.bytes);
    return GF_OK;
}

/* Describe how the file stores the pixels. Every kind not listed is TGA. */
static void stb_describe(const stb_file *file, const gf_format *format, char *text, size_t size) {
    const unsigned char *data = file->data;
    const bool old = data[14] == 12; /* the oldest header of a BMP: smaller fields */
    if (memcmp(data, "BM", 2) == 0 && file->size >= (old ? 26 : 34)) {
        const unsigned bits = data[old ? 24 : 28], compression = old ? 0 : data[30];
        snprintf(text, size, "%u bits per pixel%s%s", bits, bits <= 8 ? ", palette" : "",
                 compression == 1 || compression == 2 ? ", run-length coded" : "");
    } else if (memcmp(data, "8BPS", 4) == 0) {
        snprintf(text, size, "%d-bit planar %s", format->type == GF_U16 ? 16 : 8,
                 format->channels > 2 ? "RGB" : "grey");
    } else if (memcmp(data, "GIF8", 4) == 0) {
        snprintf(text, size, "palette, frame %" PRIu32 " of %" PRIu32,
                 file->limits->page ? file->limits->page : 1, file->pages);
    } else if (gf_stb_is_hdr(data)) {
        snprintf(text, size, "8-bit RGB with shared exponent");
    } else {
        snprintf(text, size, "%d bits per pixel%s%s", data[16],
                 (data[2] & 7) == 1 ? ", palette" : "",
                 (data[2] & 8) != 0 ? ", run-length coded" : "");
    }
}

static gf_status stb_open_source(stb_file *file, gf_input *input, gf_source **opened,
                                 gf_error *error) {
    gf_format format;
    unsigned char *pixels;
    gf_status status = stb_load_file(file, input, error);
    if (!status && file->size < GF_STB_MIN_BYTES)
        return gf_fail_short(file->name, error);
    if (status ||
        (status = gf_stb_metadata(file->data, file->size, &file->metadata, &file->dropped,
                                  file->name, error)) ||
        (status = stb_map_shared(file, error)) ||
        (status = stb_decode_file(file, &format, &pixels, error)))
        return status;
    /* Only an allocation can fail; report it with the name of the file. */
    if (gf_memory_source(&format, pixels, gf_row_bytes(&format), opened, NULL))
        return gf_fail(error, GF_FAILED, "%s: out of memory for a source", file->name);
    memcpy(file->shared.base, &file->shared, sizeof file->shared);
    gf_memory_source_own(*opened, file->shared.base, stb_release);
    file->shared.base = NULL;
    (*opened)->metadata = file->metadata;
    (*opened)->dropped = file->dropped;
    (*opened)->pages = file->pages;
    gf_metadata_init(&file->metadata);
    stb_describe(file, &format, (*opened)->stored, sizeof(*opened)->stored);
    return GF_OK;
}

gf_status gf_stb_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    gf_input reader = *input;
    stb_file file = {.name = input->name, .limits = limits};
    gf_metadata_init(&file.metadata);
    gf_status status = stb_open_source(&file, &reader, opened, error);
    gf_metadata_clear(&file.metadata);
    stb_unmap_shared(&file.shared);
    free(file.data);
    if (status)
        return status;
    (*opened)->cost = GF_STB_DECODE_COST;
    /* The file is fully read; the input can be closed. */
    (*opened)->bytes = reader.offset;
    gf_input_close(&reader);
    return GF_OK;
}
