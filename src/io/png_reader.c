#include "io/png_reader.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "io/limits.h"
#include "io/metadata.h"
#include "io/png_fail.h"

/* ---- called by libpng ------------------------------------------------------------------------ */

/* Leaves libpng for the setjmp of the wrapper that called it. */
static _Noreturn void leave(png_structp png) {
    png_longjmp(png, 1);
}

/* libpng tells its failures apart only in words. The second comes only after the first was passed:
 * malloc failed. */
#define TOO_LARGE "chunk data is too large"
#define NO_ROOM "exceeds memory limits"

static void PNGCBAPI on_error(png_structp png, png_const_charp message) {
    gf_png_reader *reader = png_get_error_ptr(png);
    const char *name = reader->input.name;

    if (reader->cause.status != GF_OK)
        leave(png);
    if (strstr(message, TOO_LARGE) != NULL) {
        gf_fail(&reader->cause, GF_FAILED,
                "%s: its %.4s chunk is over the limit of %" PRIu64
                " bytes; raise it with --max-chunk",
                name, message, reader->limits.max_chunk);
    } else if (strstr(message, NO_ROOM) != NULL || strstr(message, "ut of memory") != NULL) {
        gf_fail(&reader->cause, GF_FAILED, "%s: out of memory", name);
    } else {
        gf_png_fail_damaged(&reader->cause, name, message);
    }
    leave(png);
}

/* True for a warning about tRNS after which the pixels are right. A tRNS has no meaning in an
 * image with an alpha channel. The low bits of a key with too many bits count. A duplicate, and a
 * tRNS in front of PLTE or behind the pixels, is intact, and decoders ignore it. */
static bool trns_is_harmless(const char *message) {
    return strstr(message, "with alpha") != NULL || strstr(message, "out-of-range") != NULL ||
           strstr(message, "duplicate") != NULL || strstr(message, "out of place") != NULL;
}

/* libpng goes on without an ancillary chunk that is damaged or too large. For metadata the first is
 * right, but a damaged tRNS loses pixels, and a limit must not be met in silence. */
static void PNGCBAPI on_warning(png_structp png, png_const_charp message) {
    gf_png_reader *reader = png_get_error_ptr(png);
    bool idat = strncmp(message, "IDAT", 4) == 0;
    bool trns = strncmp(message, "tRNS", 4) == 0;

    if (trns && !trns_is_harmless(message))
        on_error(png, message);
    if (strstr(message, "CRC error") != NULL) {
        memcpy(reader->bad_chunk, message, 4);
    } else if (!idat && (strstr(message, TOO_LARGE) != NULL || strstr(message, NO_ROOM) != NULL)) {
        on_error(png, message);
    }
}

static void read_input(png_structp png, unsigned char *data, size_t size) {
    gf_png_reader *reader = png_get_io_ptr(png);
    size_t ahead = reader->ahead_bytes < size ? reader->ahead_bytes : size;
    size_t got;

    if (ahead != 0) {
        memcpy(data, reader->ahead, ahead);
        reader->ahead_bytes -= ahead;
        memmove(reader->ahead, reader->ahead + ahead, reader->ahead_bytes);
    }
    if (gf_input_read(&reader->input, data + ahead, size - ahead, &got, &reader->cause) != GF_OK)
        leave(png);
    if (got < size - ahead) {
        gf_png_fail_short(&reader->cause, reader->input.name);
        leave(png);
    }
}

/* libpng passes over IDAT chunks after the pixels, but not if it did not read the pixels. */
static void pass_over_idat(png_structp png, unsigned char header[GF_PNG_CHUNK_HEADER]) {
    gf_png_reader *reader = png_get_io_ptr(png);
    unsigned char data[4096];
    gf_png_idat idat;
    size_t got;

    gf_png_idat_start(&idat, &reader->input, header);
    do {
        if (gf_png_idat_read(&idat, data, sizeof data, &got, &reader->cause) != GF_OK)
            leave(png);
    } while (got != 0);
    memcpy(header, idat.header, GF_PNG_CHUNK_HEADER);
}

static void PNGCBAPI on_read(png_structp png, png_bytep data, size_t size) {
    gf_png_reader *reader = png_get_io_ptr(png);

    read_input(png, data, size);
    if (size != GF_PNG_CHUNK_HEADER ||
        (png_get_io_state(png) & PNG_IO_MASK_LOC) != PNG_IO_CHUNK_HDR)
        return;
    if (reader->rows_by_others && reader->pixels_done && gf_png_idat_is(data))
        pass_over_idat(png, data);
    memcpy(reader->header, data, GF_PNG_CHUNK_HEADER);
}

/* What describes the colours stays right when samples change; other chunks are carried if their
 * name says that this is safe (PNG's safe-to-copy bit). Chunks about the old representation (bKGD,
 * hIST, sBIT, sPLT, APNG's frames) are not safe to copy. */
static bool is_carried(const png_byte name[5]) {
    static const char *const listed[] = {"iCCP", "sRGB", "gAMA", "cHRM",
                                         "cICP", "mDCV", "cLLI", "tIME"};

    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        if (memcmp(name, listed[i], 4) == 0)
            return true;
    }
    return (name[0] & 0x20) != 0 && (name[2] & 0x20) == 0 && (name[3] & 0x20) != 0;
}

/* Chunks of few bytes take more memory than room in a file: all of them may not be too many. */
static gf_status check_metadata(gf_png_reader *reader) {
    const uint64_t free_of_charge = 1 << 20, bytes = reader->metadata_bytes;
    const char *name = reader->input.name;

    if (bytes > free_of_charge && (bytes - free_of_charge) / 2 > reader->limits.max_chunk) {
        return gf_fail(&reader->cause, GF_FAILED,
                       "%s: all of its metadata are over twice the limit of %" PRIu64
                       " bytes for a chunk; raise it with --max-chunk",
                       name, reader->limits.max_chunk);
    }
    return gf_check_memory(bytes, reader->limits.max_memory, name, "metadata", &reader->cause);
}

/* Returns 1 if the chunk is done with, 0 to leave it to libpng (which refuses critical ones). */
static int PNGCBAPI on_chunk(png_structp png, png_unknown_chunkp chunk) {
    gf_png_reader *reader = png_get_user_chunk_ptr(png);
    const char *name = reader->input.name;
    bool damaged = memcmp(reader->bad_chunk, chunk->name, 4) == 0;
    gf_chunk_place place = GF_BEFORE_PLTE;

    memset(reader->bad_chunk, 0, 4);
    if ((chunk->name[0] & 0x20) == 0)
        return 0;
    if ((chunk->location & PNG_HAVE_IHDR) == 0) {
        gf_fail(&reader->cause, GF_FAILED,
                "%s: the PNG is damaged (%.4s: missing IHDR); get an intact copy", name,
                (const char *)chunk->name);
        leave(png);
    }
    if (!is_carried(chunk->name))
        return 1;
    if (damaged) {
        memcpy(reader->metadata->damaged, chunk->name, 4);
        return 1;
    }
    if (reader->pixels_done) {
        place = GF_AFTER_IDAT;
    } else if ((chunk->location & PNG_HAVE_PLTE) != 0) {
        place = GF_BEFORE_IDAT;
    }
    /* Its own block of memory has a head, and the array may have twice the room. */
    reader->metadata_bytes += chunk->size + 2 * sizeof(gf_chunk) + 2 * sizeof(void *);
    if (check_metadata(reader) != GF_OK ||
        gf_metadata_append(reader->metadata, (const char *)chunk->name, place, chunk->data,
                           chunk->size, name, &reader->cause) != GF_OK) {
        leave(png);
    }
    return 1;
}

/* ---- calls to libpng: one setjmp each, no locals that change after it -------------------------
 */

static gf_status report(const gf_png_reader *reader, gf_error *error) {
    if (error != NULL)
        *error = reader->cause;
    return reader->cause.status;
}

static gf_status read_header(gf_png_reader *reader, gf_error *error) {
    /* libpng parses some metadata unless told that it does not know it. */
    static const png_byte carried[] =
        "iCCP\0sRGB\0gAMA\0cHRM\0pHYs\0eXIf\0tEXt\0zTXt\0iTXt\0tIME\0"
        "cICP\0mDCV\0cLLI\0oFFs\0bKGD\0hIST\0sBIT\0sPLT\0pCAL\0sCAL";
    png_structp png = reader->png;

    if (setjmp(png_jmpbuf(png)) != 0)
        return report(reader, error);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png, (png_alloc_size_t)reader->limits.max_chunk);
    /* The number of chunks is bounded by their bytes, in on_chunk. */
    png_set_chunk_cache_max(png, 0);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, carried, (int)(sizeof carried / 5));
    png_set_read_user_chunk_fn(png, reader, on_chunk);
    png_set_read_fn(png, reader, on_read);
    png_read_info(png, reader->info);
    return GF_OK;
}

gf_status gf_png_reader_open(gf_png_reader *reader, const gf_input *input, const gf_limits *limits,
                             gf_metadata *metadata, gf_error *error) {
    *reader = (gf_png_reader){.input = *input, .limits = *limits, .metadata = metadata};
    reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning);
    if (reader->png != NULL)
        reader->info = png_create_info_struct(reader->png);
    if (reader->info == NULL)
        return gf_fail(error, GF_FAILED, "%s: out of memory", input->name);
    return read_header(reader, error);
}

void gf_png_reader_give_back(gf_png_reader *reader, const unsigned char *bytes, size_t count) {
    memcpy(reader->ahead, bytes, count);
    reader->ahead_bytes = count;
}

gf_status gf_png_reader_start_rows(gf_png_reader *reader, bool interlaced, gf_error *error) {
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return report(reader, error);
    if (interlaced)
        (void)png_set_interlace_handling(reader->png);
    png_start_read_image(reader->png);
    return GF_OK;
}

static void reader_read_rows(png_structp png, unsigned char *rows, size_t stride, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        png_read_row(png, rows + i * stride, NULL);
}

gf_status gf_png_reader_rows(gf_png_reader *reader, unsigned char *rows, size_t stride,
                             uint64_t count, gf_error *error) {
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return report(reader, error);
    reader_read_rows(reader->png, rows, stride, count);
    return GF_OK;
}

gf_status gf_png_reader_end(gf_png_reader *reader, bool by_others, gf_error *error) {
    reader->pixels_done = true;
    reader->rows_by_others = by_others;
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return report(reader, error);
    /* libpng would go on inflating IDAT chunks, if it knew them. */
    if (by_others)
        png_set_keep_unknown_chunks(reader->png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "IDAT",
                                    1);
    png_read_end(reader->png, reader->info); /* NULL would skip late chunks */
    return GF_OK;
}

void gf_png_reader_close(gf_png_reader *reader) {
    png_destroy_read_struct(&reader->png, &reader->info, NULL);
}
