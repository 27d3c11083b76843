/* BMP, TGA and PSD: rows of pixels, plain or as runs. */
#include "io/stb/raster.h"

#include <string.h>

#include "io/bytes.h"

/* ---- pixels of 8 to 32 bits, and indices ----------------------------------------------------- */

/* Set the bits of each channel; the alpha may have none. Return false if a channel has gaps or more
 * than 8 bits. */
static bool raster_set_masks(gf_raster *raster, const uint32_t masks[GF_MAX_CHANNELS]) {
    bool valid = true;
    raster->format.channels = masks[3] ? 4 : 3;
    for (uint32_t c = 0; c < GF_MAX_CHANNELS; c++) {
        raster->shift[c] = masks[c] ? (uint32_t)__builtin_ctz(masks[c]) : 0;
        raster->max[c] = masks[c] >> raster->shift[c];
        valid = valid && raster->max[c] <= 255 && (raster->max[c] & (raster->max[c] + 1)) == 0;
    }
    return valid;
}

/* Set the usual masks for pixels of 15 to 32 bits; false for others. */
static bool raster_set_bits(gf_raster *raster, uint32_t bits, bool alpha) {
    static const uint32_t deep[] = {0xff0000, 0xff00, 0xff, 0xff000000},
                          packed[] = {0x7c00, 0x3e0, 0x1f, 0x8000};
    (void)raster_set_masks(raster, bits <= 16 ? packed : deep);
    if (bits != 32 && !(bits == 16 && alpha))
        raster->format.channels = 3;
    return bits == 15 || bits == 16 || bits == 24 || bits == 32;
}

/* Convert the channels of a pixel: v of n bits to round(v * 255 / (2^n - 1)). */
static void raster_unpack(const gf_raster *raster, uint32_t value, unsigned char *to) {
    for (uint32_t c = 0; c < raster->format.channels; c++) {
        const uint32_t max = raster->max[c], v = value >> raster->shift[c] & max;
        to[c] = (unsigned char)(max == 255 || max == 0 ? v : (510 * v + max) / (2 * max));
    }
}

static uint32_t raster_little(const unsigned char *from, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint32_t)from[i] << 8 * i;
    return value;
}

/* Read palette entries first to first + count - 1. */
static void raster_read_palette(gf_raster *raster, size_t at, size_t entry, size_t first,
                                size_t count) {
    raster->indexed = true;
    for (size_t i = 0; i < 256; i++)
        raster->palette[i][3] = 255;
    for (size_t i = 0; i < count && first + i < 256; i++)
        raster_unpack(raster, raster_little(raster->data + at + i * entry, entry),
                      raster->palette[first + i]);
}

/* Store a value or index as pixel (x, y) of the file. */
static void raster_put(const gf_raster *raster, unsigned char *pixels, uint64_t x, uint64_t y,
                       uint32_t value) {
    const gf_format *format = &raster->format;
    const uint64_t column = raster->right_to_left ? format->width - 1 - x : x,
                   row = raster->top_down ? y : format->height - 1 - y;
    unsigned char *to = pixels + (row * format->width + column) * format->channels;
    if (raster->indexed)
        memcpy(to, raster->palette[value & 255], format->channels);
    else
        raster_unpack(raster, value, to);
}

/* Return pixel i of a row. Indices are packed from the highest bits on. */
static uint32_t raster_pixel(const gf_raster *raster, const unsigned char *from, uint64_t i) {
    const size_t bits = raster->bits, bytes = (bits + 7) / 8;
    if (!raster->indexed)
        return raster_little(from + i * bytes, bytes);
    return (uint32_t)from[i * bits / 8] >> (8 - bits - i * bits % 8) & ((1U << bits) - 1);
}

/* Decode rows that are not packed. Return true. */
static bool raster_read_rows(const gf_raster *raster, unsigned char *pixels, uint64_t row_bytes) {
    for (uint64_t y = 0; y < raster->format.height; y++)
        for (uint64_t x = 0; x < raster->format.width; x++)
            raster_put(raster, pixels, x, y,
                       raster_pixel(raster, raster->data + raster->at + y * row_bytes, x));
    return true;
}

/* ---- BMP ------------------------------------------------------------------------------------- */

enum { BMP_FILE_HEADER = 14, BMP_OLD = 12, BMP_INFO = 40, BMP_WITH_ALPHA = 56, BMP_OS2 = 64 };
enum { BMP_PLAIN, BMP_RUNS_8, BMP_RUNS_4, BMP_MASKS, BMP_MASKS_ALPHA = 6 };
/* Offset of the masks: at the end of the info header, or in a larger one. */
enum { BMP_MASKS_AT = BMP_FILE_HEADER + BMP_INFO };

static uint64_t bmp_row_bytes(const gf_raster *bmp) {
    return (bmp->format.width * bmp->bits + 31) / 32 * 4;
}

/* Set how the pixels are stored. colors: entries of the palette, after the headers; 0: all. */
static bool bmp_set_pixels(gf_raster *bmp, uint32_t header, uint32_t compression, uint32_t colors) {
    size_t end = BMP_FILE_HEADER + (size_t)header;
    const size_t entry = header == BMP_OLD ? 3 : 4;
    const bool masks = (compression == BMP_MASKS || compression == BMP_MASKS_ALPHA) &&
                       header != BMP_OS2 && (bmp->bits == 16 || bmp->bits == 32);
    bmp->packed = (compression == BMP_RUNS_8 && bmp->bits == 8) ||
                  (compression == BMP_RUNS_4 && bmp->bits == 4);
    if (!masks && !bmp->packed && compression != BMP_PLAIN)
        return gf_raster_fail(bmp, GF_RASTER_UNSUPPORTED, "BMP with this compression");
    if (masks) {
        uint32_t read[GF_MAX_CHANNELS] = {0};
        const bool alpha = compression == BMP_MASKS_ALPHA || header >= BMP_WITH_ALPHA;
        const size_t count = alpha ? 4 : 3;
        end += header == BMP_INFO ? 4 * count : 0;
        if (bmp->size < BMP_MASKS_AT + 4 * count)
            return gf_raster_fail(bmp, GF_RASTER_TRUNCATED, NULL);
        for (size_t c = 0; c < count; c++)
            read[c] = gf_little32(bmp->data + BMP_MASKS_AT + 4 * c);
        if (!raster_set_masks(bmp, read))
            return gf_raster_fail(bmp, GF_RASTER_UNSUPPORTED, "BMP with these masks of channels");
    } else {
        (void)raster_set_bits(bmp, bmp->bits > 8 ? bmp->bits : 24, false);
        bmp->alpha = GF_RASTER_ZERO;
    }
    if (bmp->at < end + (bmp->bits <= 8 ? entry : 0))
        return gf_raster_fail(bmp, GF_RASTER_DAMAGED, "the pixels of the BMP begin in its header");
    if (bmp->at > bmp->size)
        return gf_raster_fail(bmp, GF_RASTER_TRUNCATED, NULL);
    if (bmp->bits <= 8) {
        const size_t space = (bmp->at - end) / entry, all = (size_t)1 << bmp->bits;
        const size_t count = colors && colors < all ? colors : all;
        raster_read_palette(bmp, end, entry, 0, count < space ? count : space);
    }
    return true;
}

static bool bmp_head(gf_raster *bmp) {
    const unsigned char *data = bmp->data;
    const uint32_t header = gf_little32(data + 14);
    const bool old = header == BMP_OLD;
    if (!old && (header < BMP_INFO || header > 124))
        return gf_raster_fail(bmp, GF_RASTER_UNSUPPORTED, "BMP with this header");
    if (bmp->size < BMP_FILE_HEADER + (size_t)header)
        return gf_raster_fail(bmp, GF_RASTER_TRUNCATED, NULL);
    const uint32_t width = old ? gf_little16(data + 18) : gf_little32(data + 18),
                   height = old ? gf_little16(data + 20) : gf_little32(data + 22);
    bmp->top_down = height > INT32_MAX;
    bmp->format = (gf_format){.width = width, .height = bmp->top_down ? 0 - height : height};
    bmp->bits = gf_little16(data + (old ? 24 : 28));
    bmp->at = gf_little32(data + 10);
    if (width == 0 || width > INT32_MAX || height == 0)
        return gf_raster_fail(bmp, GF_RASTER_DAMAGED, "the size of the BMP is invalid");
    if (!bmp->bits || bmp->bits > 32 || (bmp->bits > 8 ? bmp->bits % 8 : 8 % bmp->bits) != 0)
        return gf_raster_fail(bmp, GF_RASTER_UNSUPPORTED, "BMP with this depth");
    if (!bmp_set_pixels(bmp, header, old ? BMP_PLAIN : gf_little32(data + 30),
                        old ? 0 : gf_little32(data + 46)))
        return false;
    /* Padding after the last row may be missing, and runs may leave out pixels. */
    const uint64_t pixels = bmp->format.width * bmp->format.height;
    if (!bmp->packed)
        bmp->min_bytes = bmp->at + bmp_row_bytes(bmp) * (bmp->format.height - 1) +
                         (bmp->format.width * bmp->bits + 7) / 8;
    else if (pixels > GF_RASTER_FREE_PIXELS)
        bmp->min_bytes = bmp->at + (pixels - GF_RASTER_FREE_PIXELS) / 128;
    return true;
}

/* Decode runs: a count and an index or two; after a count of 0, the end of the row or of the image,
 * a move to the right and up, or a count of literal indices. Pixels that are left out have index 0.
 * After the last row, the end of the image may be missing. Some writers encode the padding of rows
 * to 32 bits, too. */
static bool bmp_read(gf_raster *bmp, unsigned char *pixels) {
    enum { END_ROW, END_IMAGE, MOVE };
    if (!bmp->packed)
        return raster_read_rows(bmp, pixels, bmp_row_bytes(bmp));
    const uint64_t width = bmp->format.width, height = bmp->format.height,
                   padded = bmp_row_bytes(bmp) * 8 / bmp->bits;
    const unsigned char *code = bmp->data + bmp->at, *end = bmp->data + bmp->size;
    for (uint64_t i = 0; i < width * height; i++)
        memcpy(pixels + 3 * i, bmp->palette[0], 3);
    for (uint64_t x = 0, y = 0; y < height || end - code >= 2;) {
        if (end - code < 2)
            return (x == width && y == height - 1) ||
                   gf_raster_fail(bmp, GF_RASTER_TRUNCATED, NULL);
        if (code[0] == 0 && code[1] == END_IMAGE)
            return true;
        if (y >= height) {
            bmp->damaged++;
            return true;
        }
        const bool literal = code[0] == 0 && code[1] > MOVE, move = code[0] == 0 && code[1] == MOVE;
        const unsigned count = literal ? code[1] : code[0];
        const size_t bytes = 2 + (literal ? (count * bmp->bits + 15) / 16 * 2 : 2 * (size_t)move);
        if ((size_t)(end - code) < bytes)
            return gf_raster_fail(bmp, GF_RASTER_TRUNCATED, NULL);
        if (code[0] == 0 && code[1] == END_ROW)
            x = 0;
        else if (move)
            x += code[2];
        y += move ? code[3] : count == 0;
        bmp->damaged += x + count > padded;
        for (unsigned i = 0; i < count && x < width; i++, x++)
            raster_put(bmp, pixels, x, y,
                       raster_pixel(bmp, code + 1 + literal, literal ? i : i % (8 / bmp->bits)));
        code += bytes;
    }
    return true;
}

/* ---- TGA ------------------------------------------------------------------------------------- */

enum { TGA_HEADER = 18, TGA_INDEXED = 1, TGA_GREY = 3, TGA_PACKED = 8 };
enum {
    TGA_ATTRIBUTES = 0xf,
    TGA_RIGHT_TO_LEFT = 0x10,
    TGA_TOP_DOWN = 0x20,
    TGA_INTERLEAVED = 0xc0
};

static bool tga_head(gf_raster *tga) {
    const unsigned char *data = tga->data;
    const unsigned type = data[2] & (TGA_PACKED - 1), flags = data[17];
    const bool indexed = type == TGA_INDEXED;
    const size_t entry = ((size_t)data[7] + 7) / 8, colors = data[1] ? gf_little16(data + 5) : 0,
                 palette = TGA_HEADER + (size_t)data[0];
    if (data[1] > 1 || data[2] > 11 || type == 0 || type > TGA_GREY || (indexed && !colors))
        return gf_raster_fail(tga, GF_RASTER_DAMAGED, "the header is not that of a TGA");
    if ((flags & TGA_INTERLEAVED) != 0 || (indexed && data[16] != 8))
        return gf_raster_fail(tga, GF_RASTER_UNSUPPORTED,
                              "TGA with interleaved rows or 16-bit indices");
    tga->bits = data[16];
    tga->packed = (data[2] & TGA_PACKED) != 0;
    tga->top_down = (flags & TGA_TOP_DOWN) != 0;
    tga->right_to_left = (flags & TGA_RIGHT_TO_LEFT) != 0;
    tga->alpha = (flags & TGA_ATTRIBUTES) == 8 ? GF_RASTER_DECLARED : GF_RASTER_ZERO;
    tga->format = (gf_format){.width = gf_little16(data + 12), .height = gf_little16(data + 14)};
    bool valid;
    if (type == TGA_GREY) {
        valid = raster_set_masks(tga, (const uint32_t[]){0xff, 0xff00, 0, 0}) &&
                (tga->bits == 8 || tga->bits == 16);
        tga->format.channels = tga->bits / 8;
    } else {
        valid = raster_set_bits(tga, indexed ? data[7] : tga->bits, (flags & TGA_ATTRIBUTES) != 0);
    }
    if (!valid || !tga->format.width || !tga->format.height)
        return gf_raster_fail(tga, GF_RASTER_DAMAGED, "size or depth of the TGA are invalid");
    tga->at = palette + colors * entry;
    if (tga->at > tga->size)
        return gf_raster_fail(tga, GF_RASTER_TRUNCATED, NULL);
    if (indexed)
        raster_read_palette(tga, palette, entry, gf_little16(data + 3), colors);
    const uint64_t pixels = tga->format.width * tga->format.height, bytes = (tga->bits + 7) / 8;
    tga->min_bytes = tga->at + (tga->packed ? (pixels + 127) / 128 * (1 + bytes) : pixels * bytes);
    return true;
}

/* Decode packets, which may continue in the next row: a byte with the count, then one pixel to
 * repeat or `count` pixels. */
static bool tga_read(gf_raster *tga, unsigned char *pixels) {
    const size_t bytes = (tga->bits + 7) / 8;
    size_t at = tga->at;
    if (!tga->packed)
        return raster_read_rows(tga, pixels, tga->format.width * bytes);
    for (uint64_t x = 0, y = 0; y < tga->format.height;) {
        if (at == tga->size)
            return gf_raster_fail(tga, GF_RASTER_TRUNCATED, NULL);
        const unsigned code = tga->data[at++];
        const size_t step = code < 0x80 ? bytes : 0; /* to the next pixel of the packet */
        unsigned count = (code & 0x7f) + 1;
        for (; count > 0 && y < tga->format.height; count--, at += step) {
            if (tga->size - at < bytes)
                return gf_raster_fail(tga, GF_RASTER_TRUNCATED, NULL);
            raster_put(tga, pixels, x, y, raster_little(tga->data + at, bytes));
            x = x + 1 < tga->format.width ? x + 1 : 0;
            y += x == 0;
        }
        at += bytes - step; /* the pixel of a run */
        tga->damaged += count > 0;
    }
    return true;
}

/* ---- PSD ------------------------------------------------------------------------------------- */

enum { PSD_HEADER = 26, PSD_GREY = 1, PSD_RGB = 3, PSD_SECTIONS = 3, PSD_MAX_CHANNELS = 56 };

/* Return whether the composite has an alpha channel: the number of layers is negative, or, with 16
 * bits, a tagged block says so. `at` and `size`: the section of the layers. */
static bool psd_is_transparent(const gf_raster *psd, uint64_t at, uint64_t size) {
    const unsigned char *data = psd->data;
    const uint64_t end = at + size;
    if (size < 8 || gf_big32(data + at))
        return size >= 6 && (data[at + 4] & 0x80) != 0;
    for (at += 8 + (uint64_t)gf_big32(data + at + 4) /* masks */; at + 12 <= end;
         at += 12 + (((uint64_t)gf_big32(data + at + 8) + 3) & ~(uint64_t)3))
        if (memcmp(data + at + 4, "Mt16", 4) == 0)
            return true;
    return false;
}

static bool psd_head(gf_raster *psd) {
    const unsigned char *data = psd->data;
    uint64_t at = PSD_HEADER, section = 0, size = 0;
    if (psd->size < PSD_HEADER)
        return gf_raster_fail(psd, GF_RASTER_TRUNCATED, NULL);
    const uint32_t mode = gf_big16(data + 24), stored = gf_big16(data + 12),
                   colors = mode == PSD_RGB ? 3 : 1;
    psd->bits = gf_big16(data + 22);
    if (gf_big16(data + 4) != 1 || (mode != PSD_RGB && mode != PSD_GREY) ||
        (psd->bits != 8 && psd->bits != 16))
        return gf_raster_fail(psd, GF_RASTER_UNSUPPORTED,
                              "PSD other than RGB or grey with 8 or 16 bits");
    for (int i = 0; i < PSD_SECTIONS; i++) {
        if (at + 4 > psd->size)
            return gf_raster_fail(psd, GF_RASTER_TRUNCATED, NULL);
        size = gf_big32(data + at);
        section = at + 4;
        at = section + size;
    }
    if (at + 2 > psd->size)
        return gf_raster_fail(psd, GF_RASTER_TRUNCATED, NULL);
    if (gf_big16(data + at) > 1)
        return gf_raster_fail(psd, GF_RASTER_UNSUPPORTED, "PSD with ZIP compression");
    if (stored < colors || stored > PSD_MAX_CHANNELS)
        return gf_raster_fail(psd, GF_RASTER_DAMAGED, "the PSD has an invalid number of channels");
    psd->packed = data[at + 1] != 0;
    psd->at = (size_t)at + 2;
    psd->format = (gf_format){
        .width = gf_big32(data + 18),
        .height = gf_big32(data + 14),
        .channels = colors + (stored > colors && psd_is_transparent(psd, section, size)),
        .type = psd->bits == 16 ? GF_U16 : GF_U8};
    psd->unread = stored - psd->format.channels;
    const uint64_t rows = psd->format.height * stored, row = psd->format.width * psd->bits / 8;
    psd->min_bytes = psd->at + rows * (psd->packed ? 2 + row / 128 * 2 : row);
    return true;
}

/* Store a row of a channel: `size` bytes at `from`. In PackBits, they end the row even if a run is
 * longer. The pixels are 0 before. */
static bool psd_read_row(gf_raster *psd, const unsigned char *from, size_t size,
                         unsigned char *to) {
    const size_t bytes = psd->bits / 8, row = (size_t)psd->format.width * bytes;
    size_t k = 0;
    for (size_t at = 0; at < size;) {
        const unsigned code = psd->packed ? from[at++] : 0;
        const bool run = code > 128;
        const size_t count = !psd->packed ? size : run ? 257 - code : code == 128 ? 0 : code + 1;
        if ((run ? 1 : count) > size - at)
            break;
        psd->damaged += count > row - k;
        for (size_t i = 0; i < count && k < row; i++, k++) {
            const unsigned value = from[at + (run ? 0 : i)];
            unsigned char *sample = to + k / bytes * psd->format.channels * bytes;
            if (bytes == 1)
                *sample = (unsigned char)value;
            else
                *(uint16_t *)(void *)sample |= (uint16_t)(k % 2 ? value : value << 8);
        }
        at += run ? 1 : count;
    }
    return k == row || gf_raster_fail(psd, GF_RASTER_DAMAGED, "a row of the PSD is too short");
}

/* The planes follow each other; before packed ones are the sizes of the rows of all planes. */
static bool psd_read(gf_raster *psd, unsigned char *pixels) {
    const gf_format *format = &psd->format;
    const uint64_t rows = format->height * (format->channels + psd->unread);
    size_t at = psd->at + (psd->packed ? 2 * (size_t)rows : 0);
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t y = i % format->height, c = i / format->height;
        const size_t size = psd->packed ? gf_big16(psd->data + psd->at + 2 * i)
                                        : (size_t)format->width * psd->bits / 8;
        if (size > psd->size - at)
            return gf_raster_fail(psd, GF_RASTER_TRUNCATED, NULL);
        if (c < format->channels &&
            !psd_read_row(psd, psd->data + at, size,
                          pixels + y * gf_row_bytes(format) + c * gf_type_bytes(format->type)))
            return false;
        at += size;
    }
    return true;
}

/* ---- all formats ----------------------------------------------------------------------------- */

static const struct raster_reader {
    bool (*head)(gf_raster *raster);
    bool (*read)(gf_raster *raster, unsigned char *pixels);
} raster_readers[] = {
    [GF_RASTER_BMP] = {bmp_head, bmp_read},       [GF_RASTER_PSD] = {psd_head, psd_read},
    [GF_RASTER_GIF] = {gf_gif_head, gf_gif_read}, [GF_RASTER_HDR] = {gf_hdr_head, gf_hdr_read},
    [GF_RASTER_TGA] = {tga_head, tga_read},
};

bool gf_raster_head(gf_raster *raster) {
    const bool valid = raster_readers[gf_raster_find(raster->data)].head(raster);
    raster->format.alpha = raster->format.channels % 2 == 0;
    return valid;
}

bool gf_raster_read(gf_raster *raster, unsigned char *pixels) {
    gf_format *format = &raster->format;
    if (!raster_readers[gf_raster_find(raster->data)].read(raster, pixels))
        return false;
    /* Drop a last channel without information. */
    const uint64_t channels = format->channels, count = format->width * format->height;
    const unsigned char first = pixels[channels - 1];
    bool drop = channels % 2 == 0 && raster->alpha != GF_RASTER_DECLARED &&
                (first == 255 || (first == 0 && raster->alpha == GF_RASTER_ZERO));
    for (uint64_t i = 1; i < count && drop; i++)
        drop = pixels[channels * i + channels - 1] == first;
    for (uint64_t i = 0; i < count && drop; i++)
        memmove(pixels + (channels - 1) * i, pixels + channels * i, channels - 1);
    format->channels -= drop;
    format->alpha = format->alpha && !drop;
    return true;
}

/* Report a truncated file first: a higher limit does not help there. */
static bool raster_check_limits(gf_raster *raster, const gf_raster_file *file) {
    const gf_limits *limits = file->limits;
    const uint64_t bytes = raster->format.height * (uint64_t)gf_row_bytes(&raster->format);
    if (gf_check_pixels(&raster->format, limits, "", NULL))
        return gf_raster_fail(raster, GF_RASTER_OVER_LIMIT, NULL);
    if (raster->min_bytes > (file->header_only ? file->file_bytes : file->size))
        return gf_raster_fail(raster, GF_RASTER_TRUNCATED, NULL);
    if (gf_check_memory(file->file_bytes + bytes, limits->max_memory, "", "", NULL))
        return gf_raster_fail(raster, GF_RASTER_OVER_LIMIT, NULL);
    return bytes <= file->shared.bytes - GF_RASTER_PIXELS_AT ||
           gf_raster_fail(raster, GF_RASTER_OVER_MEMORY, NULL);
}

void gf_raster_decode(void *context) {
    const gf_raster_file *file = context;
    gf_raster_result *result = (gf_raster_result *)(void *)file->shared.base;
    gf_raster raster = {.data = file->data,
                        .size = file->size,
                        .page = file->limits->page ? file->limits->page : 1};
    if (gf_raster_head(&raster) && raster_check_limits(&raster, file) &&
        (file->header_only || gf_raster_read(&raster, file->shared.base + GF_RASTER_PIXELS_AT)))
        raster.outcome = GF_RASTER_READ;
    *result = (gf_raster_result){.outcome = raster.outcome,
                                 .channels = raster.format.channels,
                                 .type = raster.format.type,
                                 .width = raster.format.width,
                                 .height = raster.format.height,
                                 .damaged = raster.damaged,
                                 .unread = raster.unread,
                                 .pages = raster.pages,
                                 .bits = raster.bits,
                                 .indexed = raster.indexed,
                                 .packed = raster.packed};
    if (raster.reason)
        memcpy(result->reason, raster.reason, strnlen(raster.reason, sizeof result->reason - 1));
}
