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

/* One byte a sample; the first sample of a byte is in its high bits. Only grey and palettes are
 * packed, so a sample is a pixel. */
static void unpack(const unsigned char *raw, unsigned char *out, uint64_t width, uint32_t depth) {
    uint32_t per_byte = 8 / depth;
    uint32_t mask = (1u << depth) - 1;

    for (uint64_t x = width; x-- > 0;) {
        uint32_t shift = (per_byte - 1 - (uint32_t)(x % per_byte)) * depth;
        out[x] = (unsigned char)(((uint32_t)raw[x / per_byte] >> shift) & mask);
    }
}

static void look_up(const gf_png_layout *layout, unsigned char *row) {
    size_t channels = layout->has_alpha ? 4 : 3;

    for (uint64_t x = layout->width; x-- > 0;)
        memcpy(row + x * channels, layout->palette[row[x]], channels);
}

static void add_alpha8(const gf_png_layout *layout, unsigned char *row) {
    size_t channels = layout->channels;

    for (uint64_t x = layout->width; x-- > 0;) {
        unsigned char pixel[4] = {0};
        bool opaque = false;
        for (size_t c = 0; c < channels; c++) {
            pixel[c] = row[x * channels + c];
            opaque |= pixel[c] != layout->key[c];
        }
        pixel[channels] = opaque ? 255 : 0;
        memcpy(row + x * (channels + 1), pixel, channels + 1);
    }
}

static void add_alpha16(const gf_png_layout *layout, unsigned char *row) {
    size_t channels = layout->channels;

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

/* Grey of fewer than 8 bits to the full range: 255 / (2^depth - 1) is a whole number. Alpha, if
 * any, is in every second byte and full range already. */
static void scale(const gf_png_layout *layout, unsigned char *row) {
    unsigned factor = 255 / ((1u << layout->depth) - 1);
    size_t step = layout->has_key ? 2 : 1;

    for (uint64_t x = 0; x < layout->width; x++)
        row[x * step] = (unsigned char)(row[x * step] * factor);
}

void gf_png_expand_row(const gf_png_layout *layout, const unsigned char *raw, unsigned char *out) {
    if (layout->depth == 16) {
        gf_copy_big16(out, raw, layout->width * layout->channels);
        if (layout->has_key)
            add_alpha16(layout, out);
        return;
    }
    if (layout->depth < 8) {
        unpack(raw, out, layout->width, layout->depth);
    } else if (out != raw) {
        memcpy(out, raw, gf_png_layout_bytes(layout));
    }
    if (layout->indexed) {
        look_up(layout, out);
        return;
    }
    if (layout->has_key)
        add_alpha8(layout, out);
    if (layout->depth < 8)
        scale(layout, out);
}
