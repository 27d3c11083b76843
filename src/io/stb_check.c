/* Memory for stb_image, and checks for files that stb_image does not handle safely. */
#include "io/stb.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/bytes.h"

/* ---- arena allocator ------------------------------------------------------------------------- */

/* Under AddressSanitizer, poison the gaps between blocks. Out-of-bounds writes are then detected as
 * for malloc. */
#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif
#ifdef ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define arena_poison(address, size) __asan_poison_memory_region(address, size)
#define arena_unpoison(address, size) __asan_unpoison_memory_region(address, size)
#else
#define arena_poison(address, size) ((void)(address), (void)(size))
#define arena_unpoison(address, size) ((void)(address), (void)(size))
#endif

/* A gap precedes each block and follows the last one. */
enum { ALIGN = 16, GAP = 32, NONE = 1 };

void gf_arena_init(gf_arena *arena, void *base, size_t size) {
    *arena = (gf_arena){.base = base, .size = size, .last = NONE};
}

void *gf_arena_alloc(gf_arena *arena, size_t size) {
    const size_t left = arena->size - arena->used;
    if (left < 2 * GAP + ALIGN || size > left - 2 * GAP - ALIGN) {
        arena->exhausted = true;
        return NULL;
    }
    const size_t start = arena->used + GAP;
    const size_t end = start + (size + ALIGN - 1) / ALIGN * ALIGN;
    unsigned char *block = arena->base + start;
    arena_poison(block - GAP, end + GAP - arena->used);
    arena_unpoison(block, size);
    if (start < arena->touched)
        memset(block, 0, size < arena->touched - start ? size : arena->touched - start);
    arena->last = arena->used;
    arena->used = end;
    if (end > arena->touched)
        arena->touched = end;
    return block;
}

void gf_arena_free(gf_arena *arena, void *block) {
    if (!block || arena->last == NONE || block != arena->base + arena->last + GAP)
        return;
    arena_poison(block, arena->used - arena->last - GAP);
    arena->used = arena->last;
    arena->last = NONE;
}

void gf_arena_end(gf_arena *arena) {
    arena_unpoison(arena->base, arena->touched != 0 ? arena->touched + GAP : 0);
}

/* ---- sizes of files and memory --------------------------------------------------------------- */

enum { MAGIC_BYTES = 30, SMALL_CANVAS = 1 << 22 };

static bool stb_has_magic(const unsigned char *data, const char *magic) {
    return memcmp(data, magic, strlen(magic)) == 0;
}

bool gf_stb_is_hdr(const unsigned char *data) {
    return stb_has_magic(data, "#?");
}

/* The oldest info header has 12 bytes and smaller fields. */
uint32_t gf_bmp_bits(const unsigned char *data) {
    return gf_little16(data + (data[14] == 12 ? 24 : 28));
}

/* A run of 128 pixels takes one byte plus one pixel. */
static uint64_t tga_bytes(const unsigned char *data, uint64_t pixels) {
    const uint64_t bits = data[16];
    return (data[2] & 8) != 0 ? pixels / 128 * (1 + bits / 8) : pixels * bits / 8;
}

uint64_t gf_stb_min_bytes(const gf_stb_bytes *bytes, const gf_format *format) {
    const uint64_t pixels = format->width * format->height;
    if (bytes->size < MAGIC_BYTES)
        return 0;
    /* A frame may cover only part of its canvas; allow this for up to SMALL_CANVAS pixels. A code
     * of 12 bits represents fewer than 4096 pixels, i.e. 2730 per byte. */
    if (stb_has_magic(bytes->data, "GIF8"))
        return pixels <= SMALL_CANVAS ? 0 : (pixels - SMALL_CANVAS) / 2730;
    if (stb_has_magic(bytes->data, "BM"))
        return pixels / 8 * gf_bmp_bits(bytes->data);
    if (stb_has_magic(bytes->data, "8BPS"))
        return pixels / 64 * 3; /* two bytes per run of 128 samples */
    if (gf_stb_is_hdr(bytes->data))
        return pixels / 127 * 8; /* two bytes per run of 127 samples, for each of four channels */
    return tga_bytes(bytes->data, pixels);
}

uint64_t gf_stb_peak_bytes(const unsigned char *data, const gf_format *format) {
    const uint64_t pixels = format->width * format->height;
    const uint64_t image = format->height * (uint64_t)gf_row_bytes(format);
    if (stb_has_magic(data, "GIF8"))
        return pixels * 9; /* RGBA, the background, and a mask of the pixels drawn */
    if (stb_has_magic(data, "8BPS"))
        return image + pixels * 4 * gf_type_bytes(format->type); /* RGBA before RGB */
    return image;
}

/* ---- BMP ------------------------------------------------------------------------------------- */

/* stb_image before 2.28 does not clear its palette: an index past the colours of the file returns
 * uninitialized stack memory. With the oldest header it does not read the last four colours.
 * Therefore convert the file to the newer header and a full palette. */

enum {
    FILE_HEADER = 14,
    OLD_HEADER = 12,
    HEADER = 40,
    COLORS = 256,
    PIXELS = FILE_HEADER + HEADER + 4 * COLORS /* offset of the pixels in the converted file */
};

static void bmp_put_little32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

static void bmp_put_header(unsigned char *headers, const unsigned char *old, uint32_t header) {
    memcpy(headers, old, FILE_HEADER);
    bmp_put_little32(headers + 10, PIXELS);
    bmp_put_little32(headers + 14, HEADER);
    if (header == OLD_HEADER) {
        bmp_put_little32(headers + 18, gf_little16(old + 18));
        bmp_put_little32(headers + 22, gf_little16(old + 20));
        memcpy(headers + 26, old + 22, 4); /* planes and bits per pixel */
    } else {
        memcpy(headers + 18, old + 18, HEADER - 4);
    }
}

gf_status gf_bmp_fill_palette(unsigned char **file, size_t *size, const char *name,
                              gf_error *error) {
    const unsigned char *old = *file;
    if (*size < FILE_HEADER + OLD_HEADER || memcmp(old, "BM", 2) != 0)
        return GF_OK;
    const uint32_t pixels = gf_little32(old + 10), header = gf_little32(old + 14);
    if (header != OLD_HEADER && *size < FILE_HEADER + HEADER)
        return gf_fail_short(name, error);
    const uint32_t bits = gf_little16(old + (header == OLD_HEADER ? 24 : 28));
    if ((header != OLD_HEADER && header < HEADER) || bits > 8)
        return GF_OK;
    if (pixels > *size)
        return gf_fail_short(name, error);
    const size_t entry = header == OLD_HEADER ? 3 : 4, palette = FILE_HEADER + (size_t)header;
    if (pixels < palette + entry)
        return gf_fail(error, GF_FAILED, "%s: the BMP is damaged (no palette); get an intact copy",
                       name);
    unsigned char headers[PIXELS] = {0};
    bmp_put_header(headers, old, header);
    for (size_t i = 0; i < COLORS && palette + (i + 1) * entry <= pixels; i++)
        memcpy(headers + FILE_HEADER + HEADER + 4 * i, old + palette + i * entry, 3);
    /* Move the pixels in place: a copy of a large file may exceed the memory limit. */
    const size_t rest = *size - pixels;
    unsigned char *moved = pixels < PIXELS ? realloc(*file, PIXELS + rest) : *file;
    if (!moved)
        return gf_fail_memory(error, name, PIXELS + rest, "the file");
    memmove(moved + PIXELS, moved + pixels, rest);
    memcpy(moved, headers, PIXELS);
    *file = moved;
    *size = PIXELS + rest;
    return GF_OK;
}

/* ---- GIF ------------------------------------------------------------------------------------- */

enum { EXTENSION = 0x21, FRAME = 0x2c };
enum { SCREEN_BYTES = 13, FRAME_BYTES = 10 };
enum { HAS_TABLE = 0x80 };

/* A code has at most 12 bits and represents at most as many pixels as there are codes. If literals
 * have 12 bits, stb_image's table has twice as many entries. */
enum { MAX_BITS = 12, MAX_WIDTH_CODES = 1 << MAX_BITS, MAX_CODES = 1 << 13 };
enum { MAX_PIXELS_PER_BYTE = 4096 };

/* Return the bytes of the colour table described by the flags. */
static size_t gif_table_bytes(unsigned flags) {
    return (flags & HAS_TABLE) != 0 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

/* Return the offset after a sequence of sub-blocks. Each begins with its size; one of size 0 ends
 * the sequence. Return 0 if the file ends before. */
static size_t gif_skip_blocks(const unsigned char *data, size_t size, size_t at) {
    while (at < size && data[at] != 0)
        at += 1 + (size_t)data[at];
    return at < size ? at + 1 : 0;
}

/* Return whether each code of a frame is defined when it occurs. `at` is the offset of the minimum
 * code size. The sub-blocks after it must end within the file. */
static bool gif_codes_are_defined(const unsigned char *data, size_t at) {
    const unsigned literal = data[at++];
    if (literal > MAX_BITS)
        return false;
    const unsigned clear = 1U << literal, end = clear + 1;
    unsigned width = literal + 1, next = end + 1, bits = 0, bit_count = 0, left = 0;
    bool cleared = false, has_previous = false; /* a code was read since the last clear code */
    for (;;) {
        while (bit_count < width) {
            if (left == 0 && (left = data[at++]) == 0)
                return true;
            bits |= (unsigned)data[at++] << bit_count;
            bit_count += 8;
            left--;
        }
        const unsigned code = bits & ((1U << width) - 1);
        bits >>= width;
        bit_count -= width;
        if (code == end)
            return true;
        if (code == clear) {
            width = literal + 1;
            next = end + 1;
            cleared = true;
            has_previous = false;
            continue;
        }
        if (!cleared || code > next || (code == next && !has_previous))
            return false;
        next += has_previous;
        has_previous = true;
        if (next > MAX_CODES)
            return false;
        if ((next & ((1U << width) - 1)) == 0 && next < MAX_WIDTH_CODES)
            width++;
    }
}

static gf_stb_outcome gif_check_frame(const unsigned char *data, size_t size, size_t at) {
    if (size - at < FRAME_BYTES)
        return GF_STB_TRUNCATED;
    const unsigned char *frame = data + at;
    const unsigned width = gf_little16(frame + 5), height = gf_little16(frame + 7);
    if (gf_little16(frame + 1) + width > gf_little16(data + 6) ||
        gf_little16(frame + 3) + height > gf_little16(data + 8))
        return GF_STB_INVALID_HEADER;
    if ((uint64_t)width * height / MAX_PIXELS_PER_BYTE > size)
        return GF_STB_TRUNCATED;
    if (((data[10] | frame[9]) & HAS_TABLE) == 0)
        return GF_STB_INVALID_HEADER;
    at += FRAME_BYTES + gif_table_bytes(frame[9]);
    if (gif_skip_blocks(data, size, at + 1) == 0)
        return GF_STB_TRUNCATED;
    return gif_codes_are_defined(data, at) ? GF_STB_DECODED : GF_STB_INVALID_CODES;
}

gf_stb_outcome gf_gif_check(const unsigned char *data, size_t size) {
    size_t at = SCREEN_BYTES;
    if (size < SCREEN_BYTES)
        return GF_STB_TRUNCATED;
    at += gif_table_bytes(data[10]);
    while (at < size && data[at] == EXTENSION) {
        at = gif_skip_blocks(data, size, at + 2);
        if (at == 0)
            return GF_STB_TRUNCATED;
    }
    if (at >= size)
        return GF_STB_TRUNCATED;
    return data[at] == FRAME ? gif_check_frame(data, size, at) : GF_STB_INVALID_HEADER;
}
