#include "io/stb_sizes.h"

#include <string.h>

enum { HEADER = 30, SMALL_CANVAS = 1 << 22 };

static bool is(const unsigned char *data, const char *magic) {
    return memcmp(data, magic, strlen(magic)) == 0;
}

/* stb passes over bytes of 0xff before a marker. */
bool gf_stb_is_jpeg(const unsigned char *data) {
    return data[0] == 0xff && (data[1] == 0xff || data[1] == 0xd8);
}

bool gf_stb_is_hdr(const unsigned char *data) {
    return is(data, "#?");
}

static uint64_t bmp_bits(const unsigned char *data) {
    const unsigned char *bits = data + (data[14] == 12 ? 24 : 28);
    return (uint64_t)bits[0] | (uint64_t)bits[1] << 8;
}

/* A run of 128 pixels is a byte and one pixel. */
static uint64_t tga_bytes(const unsigned char *data, uint64_t pixels) {
    const uint64_t bits = data[16];
    return (data[2] & 8) != 0 ? pixels / 128 * (1 + bits / 8) : pixels * bits / 8;
}

uint64_t gf_stb_least_bytes(const gf_stb_bytes *bytes, const gf_format *format) {
    const uint64_t pixels = format->width * format->height;

    if (bytes->size < HEADER)
        return 0;
    /* A frame may be smaller than its canvas, but not by any measure. A code of 12 bits stands for
     * fewer than 4096 pixels. */
    if (is(bytes->data, "GIF8"))
        return pixels <= SMALL_CANVAS ? 0 : (pixels - SMALL_CANVAS) / 2730;
    if (gf_stb_is_jpeg(bytes->data))
        return pixels / 2048; /* a bit for each 8x8 samples, in few components that are scaled up */
    if (is(bytes->data, "BM"))
        return pixels / 8 * bmp_bits(bytes->data);
    if (is(bytes->data, "8BPS"))
        return pixels / 64 * 3; /* runs of 128 samples in two bytes */
    if (gf_stb_is_hdr(bytes->data))
        return pixels / 127 * 8; /* runs of 127 of each of four, likewise */
    return tga_bytes(bytes->data, pixels);
}

uint64_t gf_stb_peak_bytes(const unsigned char *data, const gf_format *format) {
    const uint64_t pixels = format->width * format->height;
    const uint64_t image = format->height * (uint64_t)gf_row_bytes(format);

    if (gf_stb_is_jpeg(data))
        return 2 * image; /* the components apart, too */
    if (is(data, "GIF8"))
        return pixels * 9; /* RGBA, the background, and which pixels were drawn */
    if (is(data, "8BPS"))
        return image + pixels * 4 * gf_type_bytes(format->type); /* RGBA before RGB */
    return image;
}
