#include "png_util.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Return the capacity for size bytes: a power of two greater than size. */
static size_t capacity_of(size_t size) {
    size_t capacity = 64;
    while (capacity <= size)
        capacity *= 2;
    return capacity;
}

/* Append data. bytes must be empty, or filled by this function only. */
static void put(png_bytes *bytes, const void *data, size_t size) {
    const size_t capacity = capacity_of(bytes->size + size);
    if (bytes->data == NULL || capacity != capacity_of(bytes->size))
        bytes->data = realloc(bytes->data, capacity);
    if (bytes->data == NULL)
        abort();
    if (size != 0)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static void put32(png_bytes *bytes, uint32_t v) {
    const unsigned char raw[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                                  (unsigned char)(v >> 8), (unsigned char)v};
    put(bytes, raw, 4);
}

void png_put_signature(png_bytes *file) {
    put(file, "\x89PNG\r\n\x1a\n", 8);
}

void png_put_chunk(png_bytes *file, const char *name, const void *data, size_t size,
                   bool wrong_checksum) {
    put32(file, (uint32_t)size);
    put(file, name, 4);
    put(file, data, size);
    uLong sum = crc32(0, (const Bytef *)name, 4);
    if (size != 0)
        sum = crc32(sum, data, (uInt)size);
    put32(file, (uint32_t)sum ^ (wrong_checksum ? 1 : 0));
}

/* ---- samples --------------------------------------------------------------------------------- */

static unsigned channels_of(int color) {
    return color == 2 ? 3 : color == 4 ? 2 : color == 6 ? 4 : 1;
}

/* Make samples with few different values, so that several pixels have the transparent colour. */
static uint16_t *make_samples(const png_spec *spec) {
    size_t count = (size_t)spec->width * spec->height * channels_of(spec->color);
    uint16_t *samples = malloc(count * sizeof *samples);
    uint32_t seed = spec->seed + 1;
    if (samples == NULL)
        abort();
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t v = (seed >> 16) & 1 ? seed >> 8 : (seed >> 20 & 1) * 0x1234u;
        samples[i] = (uint16_t)(v & ((1u << spec->depth) - 1));
    }
    return samples;
}

static int palette_count(const png_spec *spec) {
    return spec->palette_count != 0 ? spec->palette_count : 1 << spec->depth;
}

static unsigned char palette_value(int index, int channel) {
    return (unsigned char)(index * 37 + channel * 101 + 11);
}

static unsigned char palette_alpha(int index) {
    return (unsigned char)(index * 59 + 3);
}

/* Return the number of entries of tRNS. The colours after them in PLTE are opaque. */
static int alpha_count(const png_spec *spec) {
    return palette_count(spec) / 2 + 1 > palette_count(spec) ? 1 : (palette_count(spec) + 1) / 2;
}

/* ---- from samples to a file ------------------------------------------------------------------ */

static unsigned char paeth(int a, int b, int c) {
    int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
    return (unsigned char)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* Filter a packed row. */
static void put_filtered(png_bytes *out, const unsigned char *row, const unsigned char *above,
                         size_t bytes, size_t unit, unsigned filter) {
    const unsigned char type = (unsigned char)filter;
    put(out, &type, 1);
    for (size_t i = 0; i < bytes; i++) {
        int left = i >= unit ? row[i - unit] : 0;
        int up = above[i];
        int corner = i >= unit ? above[i - unit] : 0;
        const int predicted[5] = {0, left, up, (left + up) / 2, paeth(left, up, corner)};
        unsigned char v = (unsigned char)(row[i] - predicted[filter]);
        put(out, &v, 1);
    }
}

/* Return the filter of row n, counted within its pass. */
static unsigned filter_of(const png_spec *spec, uint32_t n) {
    switch (spec->filter) {
    case PNG_ROWS_CYCLE:
        return (n + spec->seed) % 5;
    case PNG_ROWS_RANDOM:
        return ((((n + 1) * 2654435761u ^ spec->seed * 40503u) >> 11) & 0xffff) % 5;
    default:
        return (unsigned)spec->filter - PNG_ROWS_NONE;
    }
}

/* Write the pixels (x0 + i dx, y0 + j dy) as a separate image. */
static void put_pass(const png_spec *spec, const uint16_t *samples, uint32_t x0, uint32_t y0,
                     uint32_t dx, uint32_t dy, png_bytes *out) {
    unsigned channels = channels_of(spec->color);
    unsigned depth = (unsigned)spec->depth;
    if (x0 >= spec->width || y0 >= spec->height)
        return;
    uint32_t width = (spec->width - x0 + dx - 1) / dx;
    size_t bytes = ((size_t)width * channels * depth + 7) / 8;
    size_t unit = channels * depth >= 8 ? channels * depth / 8 : 1;
    unsigned char *row = malloc(bytes);
    unsigned char *above = calloc(1, bytes);
    if (row == NULL || above == NULL)
        abort();
    for (uint32_t y = y0, n = 0; y < spec->height; y += dy, n++) {
        size_t bit = 0;
        memset(row, 0, bytes);
        for (uint32_t x = x0; x < spec->width; x += dx)
            for (unsigned c = 0; c < channels; c++, bit += depth) {
                unsigned v = samples[((size_t)y * spec->width + x) * channels + c];
                if (depth == 16) {
                    row[bit / 8] = (unsigned char)(v >> 8);
                    row[bit / 8 + 1] = (unsigned char)v;
                } else {
                    row[bit / 8] |= (unsigned char)(v << (8 - depth - bit % 8));
                }
            }
        put_filtered(out, row, above, bytes, unit, filter_of(spec, n));
        memcpy(above, row, bytes);
    }
    free(row);
    free(above);
}

static unsigned char *pack(const png_spec *spec, const png_bytes *raw, size_t *size) {
    z_stream stream = {0};
    int level = spec->level == 0 ? Z_DEFAULT_COMPRESSION : spec->level < 0 ? 0 : spec->level;
    int bits = spec->window_bits != 0 ? spec->window_bits : 15;
    if (deflateInit2(&stream, level, Z_DEFLATED, bits, 8, spec->strategy) != Z_OK)
        abort();
    const size_t step = spec->flush != 0 ? spec->flush_bytes : raw->size;
    uLong capacity = deflateBound(&stream, raw->size) + 16 * (raw->size / step + 1);
    unsigned char *packed = malloc(capacity);
    if (packed == NULL)
        abort();
    stream.next_in = raw->data;
    stream.next_out = packed;
    stream.avail_out = (uInt)capacity;
    for (size_t left = raw->size; left != 0;) {
        stream.avail_in = (uInt)(left < step ? left : step);
        left -= stream.avail_in;
        if (deflate(&stream, left == 0 ? Z_FINISH : spec->flush) !=
                (left == 0 ? Z_STREAM_END : Z_OK) ||
            stream.avail_in != 0)
            abort();
    }
    *size = stream.total_out;
    (void)deflateEnd(&stream);
    return packed;
}

static void put_idat(const png_spec *spec, const uint16_t *samples, png_bytes *file) {
    static const uint32_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                         {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    png_bytes raw = {0};
    if (spec->interlaced) {
        for (int i = 0; i < 7; i++)
            put_pass(spec, samples, adam7[i][0], adam7[i][1], adam7[i][2], adam7[i][3], &raw);
    } else {
        put_pass(spec, samples, 0, 0, 1, 1, &raw);
    }
    size_t size;
    unsigned char *packed = pack(spec, &raw, &size);
    size_t max = spec->idat_bytes != 0 ? spec->idat_bytes : size;
    uint32_t random = spec->seed;
    for (size_t at = 0, bytes; at < size; at += bytes) {
        random = random * 1664525u + 1013904223u;
        bytes = spec->idat_random ? (random >> 8) % (max + 1) : max;
        bytes = size - at < bytes ? size - at : bytes;
        png_put_chunk(file, "IDAT", packed + at, bytes, false);
    }
    free(packed);
    free(raw.data);
}

static void put_extras(const png_spec *spec, int position, png_bytes *file) {
    for (size_t i = 0; i < spec->extra_count; i++) {
        const png_extra *extra = &spec->extras[i];
        if (extra->position == position)
            png_put_chunk(file, extra->name, extra->data, extra->size, extra->wrong_checksum);
    }
}

static void put_colors(const png_spec *spec, const uint16_t *samples, png_bytes *file) {
    unsigned char data[768];
    if (spec->color == 3) {
        int count = palette_count(spec);
        for (int i = 0; i < count * 3; i++)
            data[i] = palette_value(i / 3, i % 3);
        png_put_chunk(file, "PLTE", data, (size_t)count * 3, false);
    }
    if (!spec->transparent)
        return;
    if (spec->color == 3) {
        for (int i = 0; i < alpha_count(spec); i++)
            data[i] = palette_alpha(i);
        png_put_chunk(file, "tRNS", data, (size_t)alpha_count(spec), false);
    } else {
        unsigned channels = channels_of(spec->color);
        for (unsigned c = 0; c < channels; c++) {
            /* Bits above the depth must be ignored. */
            unsigned v = samples[c] | (spec->depth < 16 ? 0xa500u & ~((1u << spec->depth) - 1) : 0);
            data[2 * c] = (unsigned char)(v >> 8);
            data[2 * c + 1] = (unsigned char)v;
        }
        png_put_chunk(file, "tRNS", data, 2 * (size_t)channels, false);
    }
}

/* ---- expected image -------------------------------------------------------------------------- */

static void expect_pixel(const png_spec *spec, const uint16_t *samples, size_t pixel,
                         uint16_t out[4]) {
    unsigned channels = channels_of(spec->color);
    const uint16_t *in = samples + pixel * channels;
    if (spec->color == 3) {
        bool defined = in[0] < palette_count(spec);
        for (int c = 0; c < 3; c++)
            out[c] = defined ? palette_value(in[0], c) : 0;
        out[3] = spec->transparent && in[0] < alpha_count(spec) ? palette_alpha(in[0]) : 255;
        return;
    }
    for (unsigned c = 0; c < channels; c++)
        out[c] = (uint16_t)(spec->depth < 8 ? in[c] * 255 / ((1 << spec->depth) - 1) : in[c]);
    if (spec->transparent) {
        bool is_key = memcmp(in, samples, channels * sizeof *in) == 0;
        out[channels] = is_key ? 0 : spec->depth == 16 ? 65535 : 255;
    }
}

static unsigned char *expect(const png_spec *spec, const uint16_t *samples, gf_format *format) {
    unsigned channels = spec->color == 3 ? 3 : channels_of(spec->color);
    *format = (gf_format){spec->width, spec->height, channels + (spec->transparent ? 1 : 0),
                          spec->depth == 16 ? GF_U16 : GF_U8,
                          (channels + (spec->transparent ? 1 : 0)) % 2 == 0};
    unsigned char *image = malloc(gf_row_bytes(format) * format->height);
    if (image == NULL)
        abort();
    for (size_t pixel = 0; pixel < (size_t)spec->width * spec->height; pixel++) {
        uint16_t out[4];
        expect_pixel(spec, samples, pixel, out);
        for (unsigned c = 0; c < format->channels; c++) {
            size_t at = pixel * format->channels + c;
            if (format->type == GF_U16)
                memcpy(image + 2 * at, &out[c], 2);
            else
                image[at] = (unsigned char)out[c];
        }
    }
    return image;
}

void png_make(const png_spec *spec, png_bytes *file, gf_format *format, unsigned char **expected) {
    uint16_t *samples = make_samples(spec);
    png_bytes header = {0};
    const unsigned char rest[5] = {(unsigned char)spec->depth, (unsigned char)spec->color, 0, 0,
                                   spec->interlaced};
    *file = (png_bytes){0};
    png_put_signature(file);
    put32(&header, spec->width);
    put32(&header, spec->height);
    put(&header, rest, sizeof rest);
    png_put_chunk(file, "IHDR", header.data, header.size, false);
    put_extras(spec, 0, file);
    put_colors(spec, samples, file);
    put_extras(spec, 1, file);
    put_idat(spec, samples, file);
    put_extras(spec, 2, file);
    png_put_chunk(file, "IEND", NULL, 0, false);
    if (format != NULL)
        *expected = expect(spec, samples, format);
    free(header.data);
    free(samples);
}
