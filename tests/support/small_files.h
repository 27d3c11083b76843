/* GIF, BMP, TGA and PSD files for tests, of kinds that the project does not write. */
#ifndef SMALL_FILES_H
#define SMALL_FILES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/stb/raster.h"

/* A file in memory; free data at the end. */
typedef struct small_file {
    unsigned char *data;
    size_t size;
} small_file;

static inline void small_put(small_file *file, const void *data, size_t size) {
    file->data = realloc(file->data, file->size + size + 1);
    if (!file->data)
        abort();
    if (size)
        memcpy(file->data + file->size, data, size);
    file->size += size;
}

static inline void small_byte(small_file *file, unsigned value) {
    small_put(file, &(unsigned char){(unsigned char)value}, 1);
}

static inline void small_little(small_file *file, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        small_byte(file, value >> 8 * i & 255);
}

static inline void small_big(small_file *file, uint32_t value, int bytes) {
    while (bytes-- > 0)
        small_byte(file, value >> 8 * bytes & 255);
}

static inline void small_zeros(small_file *file, size_t count) {
    while (count-- > 0)
        small_byte(file, 0);
}

enum { SMALL_PIXELS = 1 << 22 };

/* Read a page of a file as gf_raster_decode does, but into heap memory of exact size, where
 * sanitizers detect overruns. The caller frees *pixels, NULL without an image. */
static inline gf_raster_outcome small_read(gf_raster *raster, const unsigned char *data,
                                           size_t size, uint32_t page, unsigned char **pixels) {
    unsigned char *copy = malloc(size);
    *raster = (gf_raster){.data = copy, .size = size, .page = page};
    *pixels = NULL;
    if (!copy)
        abort();
    memcpy(copy, data, size);
    bool read = gf_raster_head(raster);
    if (read && raster->min_bytes > size)
        read = gf_raster_fail(raster, GF_RASTER_TRUNCATED, NULL);
    if (read && raster->format.width * raster->format.height - 1 >= SMALL_PIXELS) /* or empty */
        read = gf_raster_fail(raster, GF_RASTER_OVER_LIMIT, NULL);
    if (read) {
        *pixels = calloc((size_t)raster->format.height, gf_row_bytes(&raster->format));
        if (!*pixels)
            abort();
        read = gf_raster_read(raster, *pixels);
    }
    free(copy);
    raster->data = NULL;
    return read ? GF_RASTER_READ : raster->outcome;
}

/* ---- GIF ------------------------------------------------------------------------------------- */

typedef struct gif_frame {
    unsigned x, y, width, height;
    const unsigned char *indices;
    bool transparent; /* index 0 is transparent */
    unsigned disposal;
    bool interlaced;
    bool no_clear; /* the codes do not begin with a clear code */
    bool deferred; /* no clear code when the table is full */
    size_t cut;    /* pixels that are missing at the end */
} gif_frame;

/* Writer of codes, lowest bit first, in blocks of 255 bytes. */
typedef struct gif_codes {
    small_file *file;
    unsigned bits, held;
    unsigned char block[256];
} gif_codes;

static inline void gif_end_block(gif_codes *codes) {
    if (codes->block[0])
        small_put(codes->file, codes->block, 1 + (size_t)codes->block[0]);
    codes->block[0] = 0;
}

static inline void gif_put_code(gif_codes *codes, unsigned code, unsigned width) {
    codes->bits |= code << codes->held;
    for (codes->held += width; codes->held >= 8; codes->held -= 8) {
        codes->block[++codes->block[0]] = (unsigned char)codes->bits;
        codes->bits >>= 8;
        if (codes->block[0] == 255)
            gif_end_block(codes);
    }
}

/* Begin a file with a global table of 2^depth entries (i, 255 - i, 7 i). */
static inline small_file gif_begin(unsigned width, unsigned height, unsigned depth,
                                   unsigned background) {
    small_file file = {0};
    small_put(&file, "GIF89a", 6);
    small_little(&file, width, 2);
    small_little(&file, height, 2);
    small_byte(&file, 0xf0 | (depth - 1));
    small_byte(&file, background);
    small_byte(&file, 0);
    for (unsigned i = 0; i < 1u << depth; i++) {
        small_byte(&file, i);
        small_byte(&file, 255 - i);
        small_byte(&file, 7 * i);
    }
    return file;
}

/* Append the LZW codes of indices below 2^depth. */
static inline void gif_put_codes(small_file *file, unsigned depth, const unsigned char *indices,
                                 size_t count, const gif_frame *frame) {
    static uint16_t child[4096][256];
    const unsigned clear = 1u << depth;
    unsigned width = depth + 1, next = clear + 2, string = 4096;
    gif_codes codes = {.file = file};
    memset(child, 0, sizeof child);
    small_byte(file, depth);
    if (!frame->no_clear)
        gif_put_code(&codes, clear, width);
    for (size_t i = 0; i < count; i++) {
        const unsigned index = indices[i];
        if (string < 4096 && child[string][index]) {
            string = child[string][index];
            continue;
        }
        if (string < 4096) {
            gif_put_code(&codes, string, width);
            if (next < 4096) {
                child[string][index] = (uint16_t)next;
                width += next++ == 1u << width && width < 12;
            } else if (!frame->deferred) {
                gif_put_code(&codes, clear, width);
                memset(child, 0, sizeof child);
                width = depth + 1;
                next = clear + 2;
            }
        }
        string = index;
    }
    if (string < 4096)
        gif_put_code(&codes, string, width);
    width += next == 1u << width && width < 12;
    gif_put_code(&codes, clear + 1, width);
    gif_put_code(&codes, 0, 7);
    gif_end_block(&codes);
    small_byte(file, 0);
}

static inline void gif_add(small_file *file, unsigned depth, const gif_frame *frame) {
    static const unsigned starts[] = {0, 4, 2, 1, 1}, steps[] = {8, 8, 4, 2, 0};
    const size_t count = (size_t)frame->width * frame->height;
    unsigned char *rows = malloc(count + 1);
    if (!rows)
        abort();
    small_put(file, "!\xf9\4", 3);
    small_byte(file, frame->disposal << 2 | frame->transparent);
    small_zeros(file, 4);
    small_byte(file, ',');
    small_little(file, frame->x, 2);
    small_little(file, frame->y, 2);
    small_little(file, frame->width, 2);
    small_little(file, frame->height, 2);
    small_byte(file, frame->interlaced ? 0x40 : 0);
    size_t row = 0;
    for (int pass = frame->interlaced ? 0 : 4; pass < (frame->interlaced ? 4 : 5); pass++)
        for (unsigned y = frame->interlaced ? starts[pass] : 0; y < frame->height;
             y += frame->interlaced ? steps[pass] : 1)
            memcpy(rows + row++ * frame->width, frame->indices + (size_t)y * frame->width,
                   frame->width);
    gif_put_codes(file, depth, rows, count - frame->cut, frame);
    free(rows);
}

static inline void gif_end(small_file *file) {
    small_byte(file, ';');
}

/* ---- BMP ------------------------------------------------------------------------------------- */

typedef struct bmp_spec {
    int32_t width, height; /* height < 0: top row first */
    unsigned bits, compression;
    unsigned header; /* bytes; 0: 40 */
    unsigned colors; /* entries of the palette: (i, 255 - i, 7 i) */
    unsigned gap;    /* bytes between palette and pixels */
    uint32_t masks[4];
} bmp_spec;

static inline small_file bmp_begin(const bmp_spec *spec) {
    const unsigned header = spec->header ? spec->header : 40,
                   masks = header == 40 && spec->compression == 3   ? 12
                           : header == 40 && spec->compression == 6 ? 16
                                                                    : 0;
    const unsigned entry = header == 12 ? 3 : 4;
    small_file file = {0};
    small_put(&file, "BM\0\0\0\0\0\0\0\0", 10);
    small_little(&file, 14 + header + masks + entry * spec->colors + spec->gap, 4);
    small_little(&file, header, 4);
    small_little(&file, (uint32_t)spec->width, header == 12 ? 2 : 4);
    small_little(&file, (uint32_t)spec->height, header == 12 ? 2 : 4);
    small_little(&file, 1, 2);
    small_little(&file, spec->bits, 2);
    if (header > 12) {
        small_little(&file, spec->compression, 4);
        small_zeros(&file, 12);
        small_little(&file, spec->colors, 4);
        small_zeros(&file, 4);
    }
    for (unsigned i = 0; i < 4 && 4 * i < (header > 40 ? header - 40 : masks); i++)
        small_little(&file, spec->masks[i], 4);
    if (header > 56)
        small_zeros(&file, header - 56);
    for (unsigned i = 0; i < spec->colors; i++) {
        small_byte(&file, 7 * i);
        small_byte(&file, 255 - i);
        small_byte(&file, i);
        small_zeros(&file, entry - 3);
    }
    small_zeros(&file, spec->gap);
    return file;
}

/* ---- TGA ------------------------------------------------------------------------------------- */

typedef struct tga_spec {
    unsigned type, width, height, bits, descriptor;
    unsigned first, colors, color_bits; /* palette; colors 0: none. Entries as of BMP, 24 bits */
} tga_spec;

static inline small_file tga_begin(const tga_spec *spec) {
    small_file file = {0};
    small_byte(&file, 0);
    small_byte(&file, spec->colors > 0);
    small_byte(&file, spec->type);
    small_little(&file, spec->first, 2);
    small_little(&file, spec->colors, 2);
    small_byte(&file, spec->color_bits);
    small_zeros(&file, 4);
    small_little(&file, spec->width, 2);
    small_little(&file, spec->height, 2);
    small_byte(&file, spec->bits);
    small_byte(&file, spec->descriptor);
    for (unsigned i = 0; i < spec->colors; i++)
        for (unsigned c = 0; c < (spec->color_bits + 7) / 8; c++)
            small_byte(&file, c == 0 ? 7 * i : c == 1 ? 255 - i : c == 2 ? i : 255);
    return file;
}

/* ---- PSD ------------------------------------------------------------------------------------- */

typedef struct psd_spec {
    unsigned width, height, channels, depth, mode;
    bool packed;
    bool transparent; /* the first channel after the colours is alpha */
} psd_spec;

/* Append a row in PackBits, as runs of at least three bytes and literals. */
static inline void psd_pack(small_file *file, const unsigned char *row, size_t size) {
    for (size_t at = 0; at < size;) {
        size_t run = 1, literal = 0;
        while (at + run < size && run < 128 && row[at + run] == row[at])
            run++;
        if (run >= 3) {
            small_byte(file, 257 - (unsigned)run);
            small_byte(file, row[at]);
            at += run;
            continue;
        }
        while (at + literal < size && literal < 128 &&
               (at + literal + 2 >= size || row[at + literal] != row[at + literal + 1] ||
                row[at + literal] != row[at + literal + 2]))
            literal++;
        small_byte(file, (unsigned)literal - 1);
        small_put(file, row + at, literal);
        at += literal;
    }
}

/* Make a file from planes of big-endian samples without gaps. */
static inline small_file psd_make(const psd_spec *spec, const unsigned char *planes) {
    const size_t row = (size_t)spec->width * spec->depth / 8,
                 rows = (size_t)spec->height * spec->channels;
    small_file file = {0}, packed = {0};
    small_put(&file, "8BPS\0\1\0\0\0\0\0\0", 12);
    small_big(&file, spec->channels, 2);
    small_big(&file, spec->height, 4);
    small_big(&file, spec->width, 4);
    small_big(&file, spec->depth, 2);
    small_big(&file, spec->mode, 2);
    small_zeros(&file, 8); /* colours, resources */
    if (spec->transparent)
        small_put(&file, "\0\0\0\6\0\0\0\2\xff\xff", 10); /* -1 layers */
    else
        small_zeros(&file, 4);
    small_big(&file, spec->packed, 2);
    for (size_t y = 0; y < rows && spec->packed; y++) {
        const size_t before = packed.size;
        psd_pack(&packed, planes + y * row, row);
        small_big(&file, (uint32_t)(packed.size - before), 2);
    }
    if (spec->packed)
        small_put(&file, packed.data, packed.size);
    else
        small_put(&file, planes, rows * row);
    free(packed.data);
    return file;
}

#endif
