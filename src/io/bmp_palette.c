/* stb_image before 2.28 does not clear its palette: an index past the colours of the file gives
 * whatever was on the stack. Of the palette behind the oldest header it never reads the last four
 * colours. So it is given the newer header, and a palette without an end. */
#include "io/bmp_palette.h"

#include <stdlib.h>
#include <string.h>

enum {
    FILE_HEADER = 14,
    OLD_HEADER = 12,
    HEADER = 40,
    COLORS = 256,
    PIXELS = FILE_HEADER + HEADER + 4 * COLORS /* offset in what is made */
};

static uint32_t little16(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t little32(const unsigned char *p) {
    return little16(p) | little16(p + 2) << 16;
}

static void put_little32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

static void put_header(unsigned char *made, const unsigned char *old, uint32_t header) {
    memcpy(made, old, FILE_HEADER);
    put_little32(made + 10, PIXELS);
    put_little32(made + 14, HEADER);
    if (header == OLD_HEADER) {
        put_little32(made + 18, little16(old + 18));
        put_little32(made + 22, little16(old + 20));
        memcpy(made + 26, old + 22, 4); /* planes and bits */
    } else {
        memcpy(made + 18, old + 18, HEADER - 4);
    }
}

gf_status gf_bmp_fill_palette(unsigned char **file, size_t *size, const char *name,
                              gf_error *error) {
    const unsigned char *old = *file;

    if (*size < FILE_HEADER + OLD_HEADER || memcmp(old, "BM", 2) != 0)
        return GF_OK;
    const uint32_t pixels = little32(old + 10), header = little32(old + 14);
    if (header != OLD_HEADER && *size < FILE_HEADER + HEADER)
        return gf_fail(error, GF_FAILED, "%s: the file ends too early; get a complete copy", name);
    const uint32_t bits = little16(old + (header == OLD_HEADER ? 24 : 28));
    if ((header != OLD_HEADER && header < HEADER) || bits > 8)
        return GF_OK;
    if (pixels > *size)
        return gf_fail(error, GF_FAILED, "%s: the file ends too early; get a complete copy", name);
    const size_t entry = header == OLD_HEADER ? 3 : 4, palette = FILE_HEADER + (size_t)header;
    if (pixels < palette + entry)
        return gf_fail(error, GF_FAILED, "%s: the BMP is damaged (no palette); get an intact copy",
                       name);
    unsigned char made[PIXELS] = {0};
    put_header(made, old, header);
    for (size_t i = 0; i < COLORS && palette + (i + 1) * entry <= pixels; i++)
        memcpy(made + FILE_HEADER + HEADER + 4 * i, old + palette + i * entry, 3);
    /* The pixels move: a copy of a large file is more than the limits may allow. */
    const size_t rest = *size - pixels;
    unsigned char *moved = pixels < PIXELS ? realloc(*file, PIXELS + rest) : *file;
    if (moved == NULL)
        return gf_fail_memory(error, name, PIXELS + rest, "the file");
    memmove(moved + PIXELS, moved + pixels, rest);
    memcpy(moved, made, PIXELS);
    *file = moved;
    *size = PIXELS + rest;
    return GF_OK;
}
