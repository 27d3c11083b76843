#include "io/gif_check.h"

#include <stdint.h>

enum { EXTENSION = 0x21, FRAME = 0x2c };
enum { SCREEN_BYTES = 13, FRAME_BYTES = 10 };

/* A code has 12 bits at most, and stands for no more pixels than there are codes. */
enum { MOST_PIXELS_A_BYTE = 4096 };

static unsigned little16(const unsigned char *p) {
    return p[0] | (unsigned)p[1] << 8;
}

/* Bytes of the colour table that such flags announce. */
static size_t table_bytes(unsigned flags) {
    return (flags & 0x80) != 0 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

/* Offset behind blocks that each begin with their size, and end with one of none; 0 if the file
 * ends before. */
static size_t skip_blocks(const unsigned char *data, size_t size, size_t at) {
    while (at < size && data[at] != 0)
        at += 1 + (size_t)data[at];
    return at < size ? at + 1 : 0;
}

static gf_gif_state check_frame(const unsigned char *data, size_t size, size_t at) {
    if (size - at < FRAME_BYTES)
        return GF_GIF_CUT_OFF;
    const unsigned char *frame = data + at;
    const unsigned width = little16(frame + 5), height = little16(frame + 7);
    if (little16(frame + 1) + width > little16(data + 6) ||
        little16(frame + 3) + height > little16(data + 8))
        return GF_GIF_DAMAGED;
    if ((uint64_t)width * height / MOST_PIXELS_A_BYTE > size)
        return GF_GIF_CUT_OFF;
    /* The size of the first codes is before the blocks. */
    at += FRAME_BYTES + table_bytes(frame[9]) + 1;
    return skip_blocks(data, size, at) != 0 ? GF_GIF_FITS : GF_GIF_CUT_OFF;
}

gf_gif_state gf_gif_check(const unsigned char *data, size_t size) {
    size_t at = SCREEN_BYTES;

    if (size < SCREEN_BYTES)
        return GF_GIF_CUT_OFF;
    at += table_bytes(data[10]);
    while (at < size && data[at] == EXTENSION) {
        at = skip_blocks(data, size, at + 2);
        if (at == 0)
            return GF_GIF_CUT_OFF;
    }
    if (at >= size)
        return GF_GIF_CUT_OFF;
    return data[at] == FRAME ? check_frame(data, size, at) : GF_GIF_DAMAGED;
}
