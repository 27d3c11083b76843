/* PNG files in memory: scans of simple ones for a decoder on a device, and a source of all. */
#include <stdatomic.h>
#include <string.h>

#include "core/checksum.h"
#include "io/bytes.h"
#include "io/png/inflate.h"
#include "io/png/png.h"

enum { HEAD_BYTES = 8, FRAME_BYTES = 12, IHDR_BYTES = 13 };
/* Bytes of ancillary chunks: the limits on metadata allow as many. */
enum { MAX_SKIPPED = 1 << 20 };

/* Locate the chunk at *at, whose data is only read, and move *at after it. */
static bool scan_next(const unsigned char *file, size_t size, size_t *at, gf_chunk *chunk) {
    const unsigned char *head = file + *at;
    if (size - *at < FRAME_BYTES)
        return false;
    *chunk = (gf_chunk){.size = gf_big32(head), .data = (unsigned char *)head + 8};
    memcpy(chunk->name, head + 4, 4);
    if (chunk->size > INT32_MAX || chunk->size > size - *at - FRAME_BYTES)
        return false;
    *at += FRAME_BYTES + chunk->size;
    return true;
}

static bool scan_is(const gf_chunk *chunk, const char *name) {
    return memcmp(chunk->name, name, 4) == 0;
}

static bool scan_is_intact(const gf_chunk *chunk) {
    return gf_crc32(0, chunk->data - 4, 4 + chunk->size) == gf_big32(chunk->data + chunk->size);
}

/* Return whether a chunk is ancillary, small and intact, and does not change pixels. */
static bool scan_may_skip(const gf_chunk *chunk) {
    enum { SMALL = 1 << 16 };
    for (int i = 0; i < 4; i++)
        if ((unsigned)((chunk->name[i] | 0x20) - 'a') > 25)
            return false;
    return (chunk->name[0] & 0x20) && !(chunk->name[2] & 0x20) && chunk->size <= SMALL &&
           !scan_is(chunk, "tRNS") && scan_is_intact(chunk);
}

static bool scan_read_head(const gf_chunk *chunk, gf_format *format) {
    static const uint8_t channels[7] = {[0] = 1, [2] = 3, [4] = 2, [6] = 4};
    const unsigned char *data = chunk->data;
    if (!scan_is(chunk, "IHDR") || chunk->size != IHDR_BYTES || !scan_is_intact(chunk) ||
        (data[8] != 8 && data[8] != 16) || data[9] > 6 || !channels[data[9]] || data[10] ||
        data[11] || data[12])
        return false;
    *format = (gf_format){.width = gf_big32(data),
                          .height = gf_big32(data + 4),
                          .channels = channels[data[9]],
                          .type = data[8] == 16 ? GF_U16 : GF_U8};
    format->alpha = format->channels % 2 == 0;
    const gf_limits limits = gf_limits_resolve(NULL);
    return format->width <= INT32_MAX && format->height <= INT32_MAX &&
           !gf_check_pixels(format, &limits, "", NULL);
}

bool gf_png_scan_file(const unsigned char *file, size_t size, gf_png_scan *scan) {
    size_t at = HEAD_BYTES, start, skipped = 0;
    gf_chunk chunk;
    *scan = (gf_png_scan){.chunks = 0};
    if (size < HEAD_BYTES || memcmp(file, "\x89PNG\r\n\x1a\n", HEAD_BYTES) != 0 ||
        !scan_next(file, size, &at, &chunk) || !scan_read_head(&chunk, &scan->format))
        return false;
    for (start = at; scan_next(file, size, &at, &chunk) && !scan_is(&chunk, "IEND"); start = at) {
        if (!scan_is(&chunk, "IDAT")) {
            if (scan->chunks != 0 && !scan->after)
                scan->after = start;
            skipped += at - start;
            if (!scan_may_skip(&chunk) || skipped > MAX_SKIPPED)
                return false;
            continue;
        }
        if (scan->chunks == 0) {
            scan->idat = start;
            if (chunk.size < 3 || !gf_png_inflate_supports(chunk.data))
                return false;
        }
        if (scan->after || ++scan->chunks > 1u << 20)
            return false;
        scan->bytes += chunk.size;
    }
    if (scan->chunks == 0 || at - start != FRAME_BYTES || !scan_is(&chunk, "IEND") ||
        !scan_is_intact(&chunk))
        return false;
    scan->after = scan->after ? scan->after : start;
    scan->end = at;
    gf_png_strips strips;
    gf_png_strips_init(&scan->format, GF_PNG_FAST, GF_ISA_PORTABLE, &strips);
    const bool parts = file[scan->idat + 9] == 1 && /* the zlib header of our encoder */
                       scan->chunks == (scan->format.height - 1) / strips.rows + 1;
    scan->part_rows = parts ? strips.rows : scan->format.height;
    return true;
}

gf_status gf_png_scan_late(const unsigned char *file, const gf_png_scan *scan, gf_source *source,
                           const char *name, gf_error *error) {
    gf_status status = GF_OK;
    gf_chunk chunk;
    for (size_t at = scan->after;
         !status && scan_next(file, scan->end, &at, &chunk) && !scan_is(&chunk, "IEND");) {
        chunk.late = true;
        status = gf_metadata_append_chunk(&source->metadata, &chunk, &source->dropped, name, error);
    }
    return status;
}

static size_t scan_align(size_t bytes) {
    return (bytes + 3) & ~(size_t)3;
}

size_t gf_png_scan_bytes(const gf_png_scan *scan) {
    return scan_align((size_t)scan->bytes) + 4 * (size_t)gf_png_scan_parts(scan);
}

bool gf_png_scan_copy(const unsigned char *file, const gf_png_scan *scan, unsigned char *to,
                      size_t *offsets, size_t *sizes) {
    const bool parts = gf_png_scan_parts(scan) > 1;
    size_t at = scan->idat, used = 0;
    offsets[0] = sizes[0] = 0;
    for (uint32_t k = 0; k < scan->chunks; k++) {
        gf_chunk chunk;
        if (!scan_next(file, SIZE_MAX, &at, &chunk) || !scan_is_intact(&chunk))
            return false;
        if (parts) {
            offsets[k] = used = scan_align(used);
            sizes[k] = chunk.size;
        } else {
            sizes[0] += chunk.size;
        }
        memmove(to + used, chunk.data, chunk.size);
        used += chunk.size;
    }
    return true;
}

gf_status gf_png_memory_source(const void *file, size_t size, const char *name, gf_source **source,
                               gf_error *error) {
    const gf_limits limits = gf_limits_resolve(NULL);
    gf_input input;
    gf_status status = gf_input_open_memory(&input, file, size, name, error);
    if (!status && (status = gf_png_source_open(&input, &limits, source, error)))
        gf_input_close(&input);
    return status;
}

uint64_t gf_png_count_left(uint64_t files) {
    static atomic_uint_fast64_t left;
    return atomic_fetch_add(&left, files) + files;
}
