/* Every step works from the last pixel to the first, because it makes the row longer: that way one
 * row can be expanded where it lies. */
#include "io/png_expand.h"

#include <string.h>

#include "io/bytes.h"

void gf_png_layout_format(const gf_png_layout *layout, gf_format *format) {
    if (layout->indexed) {
        format->channels = layout->has_alpha ? 4 : 3;
    } else {
        format->channels = layout->channels + (layout->has_key ? 1 : 0);
    }
    format->type = layout->depth == 16 ? GF_U16 : GF_U8;
    format->width = layout->width;
}

size_t gf_png_layout_bytes(const gf_png_layout *layout) {
    return (size_t)((layout->width * layout->channels * layout->depth + 7) / 8);
}

/* Spread eight samples of `depth` bits, the first in the highest ones, to bytes in memory order. */
static uint64_t expand_spread(uint64_t samples, uint32_t depth) {
    const uint32_t gap = 8 - depth;
    const uint64_t four = (1u << 4 * depth) - 1, two = (1u << 2 * depth) - 1,
                   one = (1u << depth) - 1;
    uint64_t v = samples;

    v = (v | v << 4 * gap) & four * UINT64_C(0x0000000100000001);
    v = (v | v << 2 * gap) & two * UINT64_C(0x0001000100010001);
    v = (v | v << gap) & one * UINT64_C(0x0101010101010101);
    return gf_host_is_little() ? __builtin_bswap64(v) : v;
}

/* Unpack samples of fewer than 8 bits to a byte each, times a factor. The first sample of a byte is
 * in its high bits. Only grey and palettes are packed, so a sample is a pixel. */
static void unpack(const unsigned char *raw, unsigned char *out, uint64_t width, uint32_t depth,
                   uint32_t factor) {
    const uint32_t per_byte = 8 / depth, mask = (1u << depth) - 1;
    uint64_t x = width;

    for (; x % 8 != 0; x--) {
        const uint32_t shift = (per_byte - 1 - (uint32_t)((x - 1) % per_byte)) * depth;
        out[x - 1] = (unsigned char)(((uint32_t)raw[(x - 1) / per_byte] >> shift & mask) * factor);
    }
    for (; x != 0; x -= 8) {
        const unsigned char *packed = raw + (x / 8 - 1) * depth;
        uint64_t samples = 0;
        for (uint32_t i = 0; i < depth; i++)
            samples = samples << 8 | packed[i];
        samples = expand_spread(samples, depth) * factor; /* at most 255 in each byte */
        memcpy(out + x - 8, &samples, 8);
    }
}

static void look_up(const gf_png_layout *layout, unsigned char *row) {
    size_t channels = layout->has_alpha ? 4 : 3;

    for (uint64_t x = layout->width; x-- > 0;)
        memcpy(row + x * channels, layout->palette[row[x]], channels);
}

/* Inlined with `channels` known. The factor is that of grey which was not brought to the full
 * range. */
static inline void expand_alpha8(const gf_png_layout *layout, unsigned char *row, size_t channels,
                                 uint32_t factor) {
    for (uint64_t x = layout->width; x-- > 0;) {
        unsigned char pixel[4] = {0};
        bool opaque = false;
        for (size_t c = 0; c < channels; c++) {
            const uint32_t v = row[x * channels + c];
            opaque |= v != layout->key[c];
            pixel[c] = (unsigned char)(v * factor);
        }
        pixel[channels] = opaque ? 255 : 0;
        memcpy(row + x * (channels + 1), pixel, channels + 1);
    }
}

static inline void expand_alpha16(const gf_png_layout *layout, unsigned char *row,
                                  size_t channels) {
    for (uint64_t x = layout->width; x-- > 0;) {
        uint16_t pixel[4] = {0};
        bool opaque = false;
        memcpy(pixel, row + 2 * x * channels, 2 * channels);
        for (size_t c = 0; c < channels; c++)
            opaque |= pixel[c] != layout->key[c];
        pixel[channels] = opaque ? 65535 : 0;
        memcpy(row + 2 * x * (channels + 1), pixel, 2 * (channels + 1));
    }
}

static void expand_alpha(const gf_png_layout *layout, unsigned char *row, uint32_t factor) {
    if (layout->depth == 16 && layout->channels == 1)
        expand_alpha16(layout, row, 1);
    else if (layout->depth == 16)
        expand_alpha16(layout, row, 3);
    else if (layout->channels == 1)
        expand_alpha8(layout, row, 1, factor);
    else
        expand_alpha8(layout, row, 3, 1);
}

void gf_png_expand_row(const gf_png_layout *layout, const unsigned char *raw, unsigned char *out) {
    /* Of grey of fewer than 8 bits to the full range: a whole number. The key is not of that range.
     */
    const uint32_t factor =
        layout->depth < 8 && !layout->indexed ? 255 / ((1u << layout->depth) - 1) : 1;

    if (layout->depth == 16)
        gf_copy_big16(out, raw, layout->width * layout->channels);
    else if (layout->depth < 8)
        unpack(raw, out, layout->width, layout->depth, layout->has_key ? 1 : factor);
    else if (out != raw)
        memcpy(out, raw, gf_png_layout_bytes(layout));
    if (layout->indexed)
        look_up(layout, out);
    else if (layout->has_key)
        expand_alpha(layout, out, factor);
}
