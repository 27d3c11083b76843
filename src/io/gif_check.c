#include "io/gif_check.h"

#include <stdint.h>

enum { EXTENSION = 0x21, FRAME = 0x2c };
enum { SCREEN_BYTES = 13, FRAME_BYTES = 10 };
enum { HAS_TABLE = 0x80 };

/* A code has 12 bits at most, and stands for no more pixels than there are codes. After a literal
 * of 12 bits stb_image has room for as many again. */
enum { MOST_BITS = 12, WIDENED_UP_TO = 1 << MOST_BITS, MOST_CODES = 1 << 13 };
enum { MOST_PIXELS_A_BYTE = 4096 };

static unsigned little16(const unsigned char *p) {
    return p[0] | (unsigned)p[1] << 8;
}

/* Bytes of the colour table that such flags announce. */
static size_t table_bytes(unsigned flags) {
    return (flags & HAS_TABLE) != 0 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

/* Offset behind blocks that each begin with their size, and end with one of none; 0 if the file
 * ends before. */
static size_t skip_blocks(const unsigned char *data, size_t size, size_t at) {
    while (at < size && data[at] != 0)
        at += 1 + (size_t)data[at];
    return at < size ? at + 1 : 0;
}

/* Does each of a frame's codes stand for something by then? The blocks, which begin behind the size
 * of literals at `at`, end in the file. */
static bool codes_have_meanings(const unsigned char *data, size_t at) {
    const unsigned literal = data[at++];
    if (literal > MOST_BITS)
        return false;
    const unsigned clear = 1U << literal, end = clear + 1;
    unsigned width = literal + 1, next = end + 1, bits = 0, held = 0, left = 0;
    bool cleared = false, follows = false; /* of what follows a code the next one is made */

    for (;;) {
        while (held < width) {
            if (left == 0 && (left = data[at++]) == 0)
                return true;
            bits |= (unsigned)data[at++] << held;
            held += 8;
            left--;
        }
        const unsigned code = bits & ((1U << width) - 1);
        bits >>= width;
        held -= width;
        if (code == end)
            return true;
        if (code == clear) {
            width = literal + 1;
            next = end + 1;
            cleared = true;
            follows = false;
            continue;
        }
        if (!cleared || code > next || (code == next && !follows))
            return false;
        next += follows;
        follows = true;
        if (next > MOST_CODES)
            return false;
        if ((next & ((1U << width) - 1)) == 0 && next < WIDENED_UP_TO)
            width++;
    }
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
    if (((data[10] | frame[9]) & HAS_TABLE) == 0)
        return GF_GIF_DAMAGED;
    at += FRAME_BYTES + table_bytes(frame[9]);
    if (skip_blocks(data, size, at + 1) == 0)
        return GF_GIF_CUT_OFF;
    return codes_have_meanings(data, at) ? GF_GIF_FITS : GF_GIF_BAD_CODES;
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
