/* JPEG, BMP, TGA, PSD, GIF (the first frame) and HDR in, through stb_image: the file and the image
 * are held whole. stb is not made for hostile files, so it runs in a sandbox (sandbox.h), and what
 * comes out is checked here as if anybody had written it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/sandbox.h"
#include "io/stb.h"

/* Files without a size (pipes) are read in pieces that double. */
enum { FIRST_PIECE = 1 << 16 };

/* Of a file that is larger than this the header is looked at before the rest is read. */
#define FIRST_LOOK ((size_t)8 << 20)

/* What stb takes beside the image, however little memory is allowed for that. */
#define MIN_ARENA ((size_t)1 << 20)

/* Before the arena, in the same memory. */
#define RESULT_BYTES ((size_t)4096)

_Static_assert(sizeof(gf_stb_result) <= RESULT_BYTES, "the arena begins behind it");

/* A file that is being opened. */
typedef struct opening {
    const char *name;
    const gf_limits *limits;
    unsigned char *data;
    size_t size;
    uint64_t file_bytes; /* size, or more if that is only the beginning */
    gf_sandbox_memory shared;
    size_t wanted; /* bytes that it would have if there were enough memory */
} opening;

/* ---- the whole file -------------------------------------------------------------------------- */

/* Reads to the end, or until `most` bytes are there. What was read before stays. */
static gf_status stb_read_file(opening *file, gf_input *input, size_t max, bool *ended,
                               gf_error *error) {
    const uint64_t limit = file->limits->max_memory;
    size_t capacity = FIRST_PIECE;
    gf_status status;
    *ended = false;
    /* No more than shows that it is too large. */
    if (limit < max)
        max = (size_t)limit + 1;
    if (input->regular) {
        status = gf_check_memory(input->size, limit, file->name, "the file", error);
        if (status)
            return status;
        /* One more byte, so that the end is seen without growing. */
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
        unsigned char *grown = realloc(file->data, capacity);
        if (!grown)
            return gf_fail_memory(error, file->name, capacity, "the file");
        file->data = grown;
        status = gf_input_read(input, file->data + file->size, capacity - file->size, &got, error);
        if (status)
            return status;
        file->size += got;
        if (file->size < capacity) {
            *ended = true;
            return GF_OK;
        }
        capacity *= 2;
    }
}

/* ---- what came out --------------------------------------------------------------------------- */

static gf_status stb_check_format(const gf_stb_result *result, const opening *file,
                                  gf_format *format, gf_error *error) {
    const gf_limits *limits = file->limits;
    gf_status status;
    *format = (gf_format){.width = result->width,
                          .height = result->height,
                          .channels = result->channels,
                          .type = (gf_type)result->type};
    status = gf_check_pixels(format, limits, file->name, error);
    if (!status)
        status = gf_check_memory(file->file_bytes + gf_stb_peak_bytes(file->data, format),
                                 limits->max_memory, file->name, "the file and its image", error);
    return status;
}

static gf_status stb_fail_stopped(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: cannot decode (the decoder crashed and was stopped); get an intact copy or "
                   "convert it to PNG",
                   name);
}

static gf_status stb_fail_memory(const opening *file, gf_error *error) {
    if (file->shared.bytes < file->wanted)
        return gf_fail_memory(error, file->name, file->wanted, "the decoder");
    return gf_fail(error, GF_FAILED,
                   "%s: decoding takes more than the limit of %" PRIu64
                   " bytes; raise it with --max-memory",
                   file->name, file->limits->max_memory);
}

/* Nothing in the result need be true. */
static gf_status stb_judge(const gf_stb_result *result, const opening *file, gf_format *format,
                           gf_error *error) {
    static const char *const faults[] = {
        [GF_STB_CUT_OFF] = "the file ends too early; get a complete copy",
        [GF_STB_BAD_HEADER] = "its header is damaged; get an intact copy",
        [GF_STB_BAD_TABLE] = "the JPEG is damaged (bad Huffman table); get an intact copy",
        [GF_STB_BAD_CODES] =
            "the GIF is damaged (a code that stands for nothing); get an intact copy",
        [GF_STB_PSD_CHANNELS] = "only PSD with the three channels of RGB is read; save it as PNG",
        [GF_STB_PSD_PACKED] = "compressed 16-bit PSD is not read; save it uncompressed or as PNG"};
    const uint32_t outcome = result->outcome;
    gf_status status = GF_OK;
    if (outcome == GF_STB_DECODED || outcome == GF_STB_OVER_LIMIT)
        status = stb_check_format(result, file, format, error);
    if (status || outcome == GF_STB_DECODED)
        return status;
    if (outcome == GF_STB_OVER_MEMORY)
        return stb_fail_memory(file, error);
    if (outcome == GF_STB_REFUSED)
        return gf_fail(error, GF_FAILED,
                       "%s: cannot decode (%.*s); get an intact copy or convert it to PNG",
                       file->name, (int)sizeof result->reason - 1, result->reason);
    if (outcome < sizeof faults / sizeof *faults && faults[outcome])
        return gf_fail(error, GF_FAILED, "%s: %s", file->name, faults[outcome]);
    return stb_fail_stopped(file->name, error);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Maps what the limits allow, or as much of it as there is: only what is touched will cost
 * anything.
 */
static gf_status stb_map_shared(opening *file, gf_error *error) {
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

/* Of memory that a source owns: it begins with what it is, when the child has ended. */
static void stb_release(void *memory) {
    gf_sandbox_memory shared = *(const gf_sandbox_memory *)memory;
    stb_unmap_shared(&shared);
}

static void stb_decode(void *context) {
    gf_stb_decode(context);
}

/* What the decoder says comes into *result, which need not be true. */
static gf_status stb_run_decoder(const opening *file, bool look, gf_stb_result *result,
                                 gf_error *error) {
    gf_sandbox_end end = GF_SANDBOX_DONE;
    gf_arena arena;
    gf_stb_task task = {.data = file->data,
                        .size = file->size,
                        .file_bytes = file->file_bytes,
                        .limits = file->limits,
                        .arena = &arena,
                        .result = (gf_stb_result *)(void *)file->shared.base,
                        .look = look};
    gf_status status = GF_OK;
    gf_arena_init(&arena, file->shared.base + RESULT_BYTES, file->shared.bytes - RESULT_BYTES);
    if (file->limits->no_sandbox) {
        stb_decode(&task);
    } else {
        task.leave = gf_sandbox_exit;
        /* What this thread has of stb's variables: in a shared library that is made when it is
         * asked for, and behind the fork nobody could make it. */
        (void)gf_stb_reason();
        status = gf_sandbox_run(stb_decode, &task, &file->shared, file->limits->max_seconds,
                                file->name, &end, error);
    }
    gf_arena_end(&arena);
    if (status)
        return status;
    if (end == GF_SANDBOX_TIME)
        return gf_fail(error, GF_FAILED,
                       "%s: decoding takes more than the limit of %" PRIu32
                       " seconds; raise it with --max-seconds",
                       file->name, file->limits->max_seconds);
    if (end == GF_SANDBOX_STOPPED)
        return stb_fail_stopped(file->name, error);
    memcpy(result, task.result, sizeof *result);
    return GF_OK;
}

/* Does what was said of a file's beginning hold for all of it? Of a BMP the header may become one
 * that stb knows. */
static bool stb_is_final(const gf_stb_result *look, const opening *file) {
    return look->outcome != GF_STB_DECODED && look->outcome != GF_STB_CUT_OFF &&
           (look->outcome != GF_STB_REFUSED || memcmp(file->data, "BM", 2) != 0);
}

/* Looks at the header of a large file: if that is refused, no more of it is read. */
static gf_status stb_look_at(opening *file, gf_error *error) {
    gf_stb_result result;
    gf_format format;
    gf_status status = stb_map_shared(file, error);
    if (status)
        return status;
    status = stb_run_decoder(file, true, &result, error);
    if (!status && stb_is_final(&result, file))
        status = stb_judge(&result, file, &format, error);
    stb_unmap_shared(&file->shared);
    return status;
}

static gf_status stb_load_file(opening *file, gf_input *input, gf_error *error) {
    bool ended;
    gf_status status = stb_read_file(file, input, FIRST_LOOK, &ended, error);
    if (status || ended) {
        file->file_bytes = file->size;
        return status;
    }
    file->file_bytes = input->regular ? input->size : file->size;
    if ((status = stb_look_at(file, error)) ||
        (status = stb_read_file(file, input, SIZE_MAX, &ended, error)))
        return status;
    file->file_bytes = file->size;
    return GF_OK;
}

/* Of the shared memory only the pixels are of use afterwards. */
static gf_status stb_decode_file(opening *file, gf_format *format, unsigned char **pixels,
                                 gf_error *error) {
    const size_t capacity = file->shared.bytes - RESULT_BYTES;
    gf_stb_result result;
    gf_status status = stb_run_decoder(file, false, &result, error);
    if (status || (status = stb_judge(&result, file, format, error)))
        return status;
    const uint64_t bytes = format->height * (uint64_t)gf_row_bytes(format);
    if (bytes > capacity || result.offset > capacity - bytes || result.offset % sizeof(float) != 0)
        return stb_fail_stopped(file->name, error);
    *pixels = file->shared.base + RESULT_BYTES + result.offset;
    gf_sandbox_trim(file->shared.base, *pixels);
    gf_sandbox_trim(*pixels + bytes, file->shared.base + file->shared.bytes);
    return GF_OK;
}

/* As far as a glance at the header tells; anything else is TGA. */
static void stb_describe(const opening *file, const gf_format *format, char *text, size_t size) {
    const unsigned char *data = file->data;
    if (gf_stb_is_jpeg(data)) {
        snprintf(text, size, "8-bit %s, lossy", format->channels == 1 ? "grey" : "colour");
    } else if (memcmp(data, "BM", 2) == 0 && file->size >= 30) {
        snprintf(text, size, "%u bits a pixel", gf_bmp_bits(data));
    } else if (memcmp(data, "8BPS", 4) == 0) {
        snprintf(text, size, "%d-bit RGB in planes", format->type == GF_U16 ? 16 : 8);
    } else if (memcmp(data, "GIF8", 4) == 0) {
        snprintf(text, size, "palette, the first frame");
    } else if (gf_stb_is_hdr(data)) {
        snprintf(text, size, "8-bit RGB with a common exponent");
    } else {
        snprintf(text, size, "%d bits a pixel%s%s", data[16], (data[2] & 7) == 1 ? ", palette" : "",
                 (data[2] & 8) != 0 ? ", run-length coded" : "");
    }
}

static gf_status stb_open_source(opening *file, gf_input *input, gf_source **opened,
                                 gf_error *error) {
    gf_format format;
    unsigned char *pixels;
    gf_status status = stb_load_file(file, input, error);
    if (!status && file->size < GF_STB_MIN_BYTES)
        return gf_fail_short(file->name, error);
    if (status || (status = gf_bmp_fill_palette(&file->data, &file->size, file->name, error)) ||
        (status = stb_map_shared(file, error)) ||
        (status = stb_decode_file(file, &format, &pixels, error)))
        return status;
    /* All that can fail is memory, and it is this file's. */
    if (gf_memory_source(&format, pixels, gf_row_bytes(&format), opened, NULL))
        return gf_fail(error, GF_FAILED, "%s: out of memory for a source", file->name);
    memcpy(file->shared.base, &file->shared, sizeof file->shared);
    gf_memory_source_own(*opened, file->shared.base, stb_release);
    file->shared.base = NULL;
    stb_describe(file, &format, (*opened)->stored, sizeof(*opened)->stored);
    if (gf_stb_is_jpeg(file->data))
        (*opened)->dropped = gf_jpeg_metadata(file->data, file->size);
    return GF_OK;
}

gf_status gf_stb_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    gf_input reader = *input;
    opening file = {.name = input->name, .limits = limits};
    gf_status status = stb_open_source(&file, &reader, opened, error);
    stb_unmap_shared(&file.shared);
    free(file.data);
    if (status)
        return status;
    (*opened)->cost = GF_STB_DECODE_COST;
    /* Everything is read, so the input is not needed any longer. */
    (*opened)->bytes = reader.offset;
    gf_input_close(&reader);
    return GF_OK;
}
