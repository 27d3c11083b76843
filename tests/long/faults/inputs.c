/* Generate small images of each kind. */
#define _GNU_SOURCE

#include "faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { WIDTH = 37, HEIGHT = 23 };

typedef struct gf_bytes {
    unsigned char *data;
    size_t size, capacity;
} gf_bytes;

static void put(gf_bytes *bytes, const void *data, size_t size) {
    while (bytes->size + size > bytes->capacity) {
        bytes->capacity = bytes->capacity ? 2 * bytes->capacity : 4096;
        bytes->data = need(realloc(bytes->data, bytes->capacity));
    }
    if (size)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static void put_byte(gf_bytes *bytes, unsigned value) {
    const unsigned char byte = (unsigned char)value;
    put(bytes, &byte, 1);
}

static void put32(gf_bytes *bytes, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
        put_byte(bytes, value >> shift & 255);
}

__attribute__((format(printf, 2, 3))) static void put_text(gf_bytes *bytes, const char *format,
                                                           ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(bytes, text, strlen(text));
}

static void keep(gf_tree *inputs, const char *name, gf_bytes *bytes) {
    tree_add(inputs, name, S_IFREG | 0644, bytes->data, bytes->size);
    free(bytes->data);
}

/* Return a sample of a synthetic picture: a wave with noise. */
static unsigned sample(unsigned x, unsigned y, unsigned c) {
    const uint32_t noise = (x * 2654435761u + y * 40503u + c * 97u) >> 7 & 15;
    return (3 * x + 5 * y + 40 * c + noise) & 255;
}

/* ---- PNG ------------------------------------------------------------------------------------- */

static void put_chunk(gf_bytes *png, const char *type, const void *data, size_t size) {
    put32(png, (uint32_t)size);
    const size_t start = png->size;
    put(png, type, 4);
    put(png, data, size);
    put32(png, (uint32_t)crc32(0, png->data + start, (uInt)(size + 4)));
}

static void put_packed(gf_bytes *png, const char *type, const void *data, size_t size) {
    uLongf capacity = compressBound((uLong)size);
    unsigned char *packed = need(malloc(capacity));
    if (compress2(packed, &capacity, data, (uLong)size, 6) != Z_OK)
        fatal("zlib");
    put_chunk(png, type, packed, capacity);
    free(packed);
}

/* Write one deflate block per byte; the program decodes streams of many blocks with zlib. */
static void put_flushed(gf_bytes *png, const unsigned char *data, size_t size) {
    z_stream stream = {0};
    const size_t capacity = 64 + 16 * size;
    unsigned char *packed = need(malloc(capacity));
    if (deflateInit(&stream, 6) != Z_OK)
        fatal("zlib");
    stream.next_out = packed;
    stream.avail_out = (uInt)capacity;
    for (size_t i = 0; i < size; i++) {
        stream.next_in = (Bytef *)(uintptr_t)(data + i);
        stream.avail_in = 1;
        if (deflate(&stream, i + 1 < size ? Z_PARTIAL_FLUSH : Z_FINISH) < Z_OK)
            fatal("zlib");
    }
    put_chunk(png, "IDAT", packed, stream.total_out);
    deflateEnd(&stream);
    free(packed);
}

static void put_rows(gf_bytes *raw, unsigned channels, unsigned bytes, unsigned x0, unsigned y0,
                     unsigned dx, unsigned dy, bool palette) {
    for (unsigned y = y0; y < HEIGHT && x0 < WIDTH; y += dy) {
        put_byte(raw, 0);
        for (unsigned x = x0; x < WIDTH; x += dx)
            for (unsigned c = 0; c < channels; c++)
                for (unsigned b = 0; b < bytes; b++)
                    put_byte(raw, palette ? sample(x, y, c) & 7 : sample(x, y, c + b));
    }
}

enum { PALETTE = 1, INTERLACED = 2, METADATA = 4, FLUSHED = 8 };

static void put_metadata(gf_bytes *png) {
    static const unsigned char icc[64] = {0, 0, 0, 64};
    gf_bytes profile = {0};
    uLongf capacity = compressBound(sizeof icc);
    unsigned char packed[256];
    put_chunk(png, "gAMA", "\0\0\xb1\x8f", 4);
    put_chunk(
        png, "cHRM",
        "\0\0\x7a\x26\0\0\x80\x84\0\0\xfa\0\0\0\x80\xe8\0\0\x75\x30\0\0\xea\x60\0\0\x3a\x98\0\0\x17\x70",
        32);
    put_chunk(png, "pHYs", "\0\0\x0b\x13\0\0\x0b\x13\1", 9);
    put_chunk(png, "tIME", "\x07\xe8\1\2\3\4\5", 7);
    put_chunk(png, "tEXt", "Title\0A small picture", 21);
    put_chunk(png, "iTXt", "Author\0\0\0en\0\0nobody", 19);
    if (compress2(packed, &capacity, icc, sizeof icc, 6) != Z_OK)
        fatal("zlib");
    put(&profile, "some profile\0", 14);
    put(&profile, packed, capacity);
    put_chunk(png, "iCCP", profile.data, profile.size);
    free(profile.data);
    put_chunk(png, "sBIT", "\5\6\5", 3);
    put_chunk(png, "bKGD", "\0\1\0\2\0\3", 6);
    put_chunk(png, "eXIf", "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0", 26);
    put_chunk(png, "prVt", "private", 7);
}

static void add_png(gf_tree *inputs, const char *name, unsigned channels, unsigned bytes,
                    unsigned flags) {
    static const unsigned char colors[] = {0, 0, 4, 2, 6};
    static const unsigned adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                         {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    const bool palette = flags & PALETTE;
    gf_bytes png = {0}, header = {0}, raw = {0};
    put(&png, "\x89PNG\r\n\x1a\n", 8);
    put32(&header, WIDTH);
    put32(&header, HEIGHT);
    put_byte(&header, 8 * bytes);
    put_byte(&header, palette ? 3 : colors[channels]);
    put(&header, "\0\0", 2);
    put_byte(&header, flags & INTERLACED ? 1 : 0);
    put_chunk(&png, "IHDR", header.data, header.size);
    if (flags & METADATA)
        put_metadata(&png);
    if (palette) {
        put_chunk(&png, "PLTE",
                  "\0\0\0\xff\0\0\0\xff\0\0\0\xff\xff\xff\0\0\xff\xff\xff\0\xff\xff\xff\xff", 24);
        put_chunk(&png, "tRNS", "\x80\xff\x40", 3);
    }
    if (flags & INTERLACED)
        for (size_t i = 0; i < 7; i++)
            put_rows(&raw, channels, bytes, adam7[i][0], adam7[i][1], adam7[i][2], adam7[i][3],
                     palette);
    else
        put_rows(&raw, channels, bytes, 0, 0, 1, 1, palette);
    if (flags & FLUSHED)
        put_flushed(&png, raw.data, raw.size);
    else
        put_packed(&png, "IDAT", raw.data, raw.size);
    if (flags & METADATA)
        put_chunk(&png, "tEXt", "Comment\0behind the pixels", 25);
    put_chunk(&png, "IEND", NULL, 0);
    free(header.data);
    free(raw.data);
    keep(inputs, name, &png);
}

/* ---- others ---------------------------------------------------------------------------------- */

static void put_plain(gf_bytes *file, unsigned width, unsigned height, unsigned channels,
                      unsigned bytes) {
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            for (unsigned c = 0; c < channels; c++)
                for (unsigned b = 0; b < bytes; b++)
                    put_byte(file, sample(x, y, c + b));
}

static void add_pnm(gf_tree *inputs, const char *name, char kind, unsigned width, unsigned height) {
    gf_bytes file = {0};
    put_text(&file, "P%c\n# drawn by a test\n%u %u\n255\n", kind, width, height);
    put_plain(&file, width, height, kind == '6' ? 3 : 1, 1);
    keep(inputs, name, &file);
}

static void add_text_pnm(gf_tree *inputs, const char *name) {
    gf_bytes file = {0};
    put_text(&file, "P2\n%d %d\n255\n", WIDTH, HEIGHT);
    for (unsigned y = 0; y < HEIGHT; y++)
        for (unsigned x = 0; x < WIDTH; x++)
            put_text(&file, "%u%c", sample(x, y, 0), x + 1 < WIDTH ? ' ' : '\n');
    keep(inputs, name, &file);
}

static void add_pam(gf_tree *inputs, const char *name) {
    gf_bytes file = {0};
    put_text(&file, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 65535\nTUPLTYPE RGB_ALPHA\nENDHDR\n",
             WIDTH, HEIGHT);
    put_plain(&file, WIDTH, HEIGHT, 4, 2);
    keep(inputs, name, &file);
}

static void put_floats(gf_bytes *file, unsigned width, unsigned height, unsigned channels) {
    for (unsigned y = 0; y < height; y++)
        for (unsigned i = 0; i < width * channels; i++) {
            const float value = (float)sample(i, y, 0) / 256.0f;
            put(file, &value, sizeof value);
        }
}

static void add_pfm(gf_tree *inputs, const char *name) {
    gf_bytes file = {0};
    put_text(&file, "PF\n%d %d\n-1.0\n", WIDTH, HEIGHT);
    put_floats(&file, WIDTH, HEIGHT, 3);
    keep(inputs, name, &file);
}

static void add_raw(gf_tree *inputs, const char *name) {
    gf_bytes file = {0};
    put_text(&file, "0123456789");
    put_plain(&file, WIDTH, HEIGHT, 1, 2);
    keep(inputs, name, &file);
}

static void add_large(gf_tree *inputs, const char *name, unsigned width, unsigned height) {
    gf_bytes file = {0};
    put_floats(&file, width, height, 1);
    keep(inputs, name, &file);
}

/* Add a grey TIFF of one strip, which all pages share. */
static void add_tiff(gf_tree *inputs, const char *name, uint32_t pages) {
    enum { ENTRIES = 9, DIRECTORY = 2 + 12 * ENTRIES + 4, SHORT = 3, LONG = 4 };
    gf_bytes file = {0}, rows = {0};
    for (unsigned y = 0; y < HEIGHT; y++)
        for (unsigned x = 0; x < WIDTH; x++)
            put_byte(&rows, sample(x, y, 0));
    uLongf size = compressBound(rows.size);
    unsigned char *packed = need(malloc(size));
    if (compress(packed, &size, rows.data, rows.size) != Z_OK)
        abort();
    const uint32_t entries[ENTRIES][3] = {
        {256, LONG, WIDTH}, {257, LONG, HEIGHT}, {258, SHORT, 8},
        {259, SHORT, 8},    {262, SHORT, 1},     {273, LONG, 8 + pages * DIRECTORY},
        {277, SHORT, 1},    {278, LONG, HEIGHT}, {279, LONG, (uint32_t)size}};
    put(&file, "MM\0*\0\0\0\x08", 8);
    for (uint32_t page = 1; page <= pages; page++) {
        put_byte(&file, 0);
        put_byte(&file, ENTRIES);
        for (size_t i = 0; i < ENTRIES; i++) {
            put32(&file, entries[i][0] << 16 | entries[i][1]);
            put32(&file, 1);
            put32(&file, entries[i][1] == SHORT ? entries[i][2] << 16 : entries[i][2]);
        }
        put32(&file, page < pages ? 8 + page * DIRECTORY : 0);
    }
    put(&file, packed, size);
    free(packed);
    free(rows.data);
    keep(inputs, name, &file);
}

static void add_psd(gf_tree *inputs, const char *name) {
    gf_bytes file = {0};
    put(&file, "8BPS\0\1\0\0\0\0\0\0\0\3", 14);
    put32(&file, HEIGHT);
    put32(&file, WIDTH);
    put(&file, "\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18);
    for (unsigned c = 0; c < 3; c++)
        for (unsigned y = 0; y < HEIGHT; y++)
            for (unsigned x = 0; x < WIDTH; x++)
                put_byte(&file, sample(x, y, c));
    keep(inputs, name, &file);
}

static void add_text(gf_tree *inputs, const char *name, const char *text, size_t size) {
    gf_bytes file = {0};
    put(&file, text, size);
    keep(inputs, name, &file);
}

void make_inputs(gf_tree *inputs, bool large) {
    add_png(inputs, "grey.png", 1, 1, 0);
    add_png(inputs, "rgb.png", 3, 1, 0);
    add_png(inputs, "rgba.png", 4, 1, 0);
    add_png(inputs, "rgb16.png", 3, 2, 0);
    add_png(inputs, "palette.png", 1, 1, PALETTE);
    add_png(inputs, "interlaced.png", 3, 1, INTERLACED);
    add_png(inputs, "interlaced-palette.png", 1, 1, INTERLACED | PALETTE);
    add_png(inputs, "metadata.png", 3, 1, METADATA);
    add_png(inputs, "flushed.png", 1, 1, FLUSHED);
    add_pnm(inputs, "grey.pgm", '5', WIDTH, HEIGHT);
    add_tiff(inputs, "grey.tif", 1);
    add_tiff(inputs, "pages.tif", 3);
    add_pnm(inputs, "rgb.ppm", '6', WIDTH, HEIGHT);
    add_pnm(inputs, "other.ppm", '6', WIDTH, HEIGHT);
    inputs->list[inputs->count - 1].data[200] ^= 1;
    add_pnm(inputs, "wide.pgm", '5', 2100, 1000);
    add_pnm(inputs, "wide.ppm", '6', 1500, 700);
    add_text_pnm(inputs, "text.pgm");
    add_pam(inputs, "rgba16.pam");
    add_pfm(inputs, "rgb.pfm");
    add_raw(inputs, "rows.raw");
    if (large)
        add_large(inputs, "large.raw", 4000, 3000);
    add_psd(inputs, "rgb.psd");
    add_text(inputs, "old", "what was there before\n", 22);
    inputs->list[inputs->count - 1].mode = S_IFREG | 0664; /* not the mode of a new file */
    add_text(inputs, "list", "a.pgm\nb.png\nc.pfm\n", 18);
    add_text(inputs, "list0", "a.pgm\0b.png\0", 12);
    add_text(inputs, "steps", "median\nwrite {stem}.tif\nnormalize\n", 34);
}
