/* GIF: frames drawn on a transparent canvas. */
#include <string.h>

#include "io/bytes.h"
#include "io/stb/raster.h"

enum { SCREEN_BYTES = 13, FRAME_BYTES = 10, CONTROL_BYTES = 8 };
enum { EXTENSION = 0x21, GRAPHIC_CONTROL = 0xf9, FRAME = 0x2c };
enum { HAS_TABLE = 0x80, INTERLACED = 0x40 }; /* flags of screen and frame */
enum { ERASE = 2, RESTORE = 3 };              /* disposal */

/* A code has at most 12 bits. Codes of 12 bits represent fewer than 2730 pixels per byte. */
enum { MAX_BITS = 12, MAX_CODES = 1 << MAX_BITS, MAX_LITERAL_BITS = 8, PIXELS_PER_BYTE = 2730 };

/* Return the bytes of the colour table described by the flags. */
static size_t gif_table_bytes(unsigned flags) {
    return (flags & HAS_TABLE) != 0 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

size_t gf_gif_first_block(const unsigned char *data) {
    return SCREEN_BYTES + gif_table_bytes(data[10]);
}

size_t gf_gif_skip_blocks(const unsigned char *data, size_t size, size_t at) {
    while (at < size && data[at] != 0)
        at += 1 + (size_t)data[at];
    return at < size ? at + 1 : 0;
}

/* A frame, and the position of the next pixel. */
typedef struct gif_frame {
    uint32_t x, y, width, height;
    unsigned flags, disposal, colors;
    int transparent; /* index; -1: none */
    const unsigned char *table;
    uint32_t column, row, pass; /* row: in the frame */
    uint64_t left;              /* pixels */
} gif_frame;

/* Draw the next pixel of a frame, unless it is transparent or outside the canvas. An interlaced
 * frame stores every 8th row first, then those halfway between them, and so on. */
static void gif_draw(const gf_raster *gif, gif_frame *frame, unsigned char *canvas,
                     unsigned index) {
    static const uint32_t starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    const uint64_t x = (uint64_t)frame->x + frame->column, y = (uint64_t)frame->y + frame->row;
    if ((int)index != frame->transparent && x < gif->format.width && y < gif->format.height) {
        unsigned char *to = canvas + (y * gif->format.width + x) * 4;
        memcpy(to, index < frame->colors ? frame->table + (size_t)3 * index : (unsigned char[3]){0},
               3);
        to[3] = 255;
    }
    frame->left--;
    if (++frame->column < frame->width)
        return;
    const bool interlaced = (frame->flags & INTERLACED) != 0;
    frame->column = 0;
    frame->row += interlaced ? steps[frame->pass] : 1;
    while (interlaced && frame->row >= frame->height && frame->pass < 3)
        frame->row = starts[++frame->pass];
}

/* Draw the pixels of a frame. `at` is the offset of the number of literal bits; the sub-blocks
 * after it end within the file. The first clear code may be missing; without one at the end of the
 * table, the table stays as it is. */
static bool gif_draw_codes(gf_raster *gif, gif_frame *frame, unsigned char *canvas, size_t at) {
    struct string {
        uint16_t prefix, length;
        unsigned char first, last;
    } table[MAX_CODES];
    unsigned char string[MAX_CODES];
    const unsigned char *data = gif->data;
    const unsigned literal = data[at++], clear = 1U << (literal & 15), end = clear + 1;
    unsigned width = literal + 1, next = end + 1, previous = MAX_CODES, bits = 0, held = 0,
             left = 0;
    if (literal == 0 || literal > MAX_LITERAL_BITS)
        return gf_raster_fail(gif, GF_RASTER_DAMAGED, "the GIF has an invalid code size");
    for (unsigned i = 0; i < clear; i++)
        table[i] = (struct string){0, 1, (unsigned char)i, (unsigned char)i};
    for (;;) {
        for (; held < width && (left || (left = data[at++]) != 0); held += 8, left--)
            bits |= (unsigned)data[at++] << held;
        unsigned code = bits & ((1U << width) - 1);
        if (held < width || code == end)
            break;
        bits >>= width;
        held -= width;
        if (code == clear) {
            width = literal + 1;
            next = end + 1;
            previous = MAX_CODES;
            continue;
        }
        if (code > next || (code == next && (previous == MAX_CODES || next == MAX_CODES)))
            return gf_raster_fail(gif, GF_RASTER_DAMAGED, "the GIF has an undefined code");
        if (previous < MAX_CODES && next < MAX_CODES) {
            table[next].prefix = (uint16_t)previous;
            table[next].length = (uint16_t)(table[previous].length + 1);
            table[next].first = table[previous].first;
            table[next].last = table[code == next ? previous : code].first;
            width += ++next == 1U << width && width < MAX_BITS;
        }
        previous = code;
        const unsigned length = table[code].length;
        for (unsigned i = length; i > 0; i--, code = table[code].prefix)
            string[i - 1] = table[code].last;
        gif->damaged += length > frame->left;
        for (unsigned i = 0; i < length && frame->left; i++)
            gif_draw(gif, frame, canvas, string[i]);
    }
    return !frame->left || gf_raster_fail(gif, GF_RASTER_DAMAGED, "pixels of the GIF are missing");
}

/* Find the next frame at or after *at, and set *at to its codes. Return false if there is none:
 * *at is then 0 if the file ends. */
static bool gif_find_frame(const gf_raster *gif, size_t *at, gif_frame *frame) {
    const unsigned char *data = gif->data;
    *frame = (gif_frame){.transparent = -1};
    while (*at && *at < gif->size && data[*at] == EXTENSION) {
        if (gif->size - *at >= CONTROL_BYTES && data[*at + 1] == GRAPHIC_CONTROL) {
            frame->disposal = data[*at + 3] >> 2 & 7;
            frame->transparent = (data[*at + 3] & 1) != 0 ? data[*at + 6] : -1;
        }
        *at = gf_gif_skip_blocks(data, gif->size, *at + 2);
    }
    if (*at >= gif->size || (data[*at] == FRAME && gif->size - *at < FRAME_BYTES))
        *at = 0;
    if (!*at || data[*at] != FRAME)
        return false;
    const unsigned char *from = data + *at;
    frame->x = gf_little16(from + 1);
    frame->y = gf_little16(from + 3);
    frame->width = gf_little16(from + 5);
    frame->height = gf_little16(from + 7);
    frame->flags = from[9];
    frame->left = (uint64_t)frame->width * frame->height;
    const bool local = (frame->flags & HAS_TABLE) != 0;
    frame->table = local ? from + FRAME_BYTES : data + SCREEN_BYTES;
    frame->colors = (unsigned)gif_table_bytes(local ? frame->flags : data[10]) / 3;
    *at += FRAME_BYTES + gif_table_bytes(frame->flags);
    return true;
}

/* Like other readers, enlarge the canvas if the first frame does not fit. */
bool gf_gif_head(gf_raster *gif) {
    size_t at = gf_gif_first_block(gif->data);
    gif_frame frame;
    if (!gif_find_frame(gif, &at, &frame))
        return gf_raster_fail(gif, at ? GF_RASTER_DAMAGED : GF_RASTER_TRUNCATED,
                              "the GIF has no frame");
    const uint64_t right = (uint64_t)frame.x + frame.width, width = gf_little16(gif->data + 6),
                   bottom = (uint64_t)frame.y + frame.height, height = gf_little16(gif->data + 8);
    gif->format = (gf_format){.width = right > width ? right : width,
                              .height = bottom > height ? bottom : height,
                              .channels = 4};
    gif->alpha = GF_RASTER_OPAQUE;
    const uint64_t pixels = gif->format.width * gif->format.height;
    gif->min_bytes = frame.left / PIXELS_PER_BYTE;
    if (pixels > GF_RASTER_FREE_PIXELS + frame.left)
        gif->min_bytes += (pixels - frame.left - GF_RASTER_FREE_PIXELS) / PIXELS_PER_BYTE;
    return true;
}

/* Draw the frames up to the one to be read; those before it leave what their disposal says:
 * themselves, nothing, or what was there before. Frames after it are counted, as far as the file is
 * valid. */
bool gf_gif_read(gf_raster *gif, unsigned char *canvas) {
    const uint64_t width = gif->format.width, height = gif->format.height;
    size_t at = gf_gif_first_block(gif->data);
    gif_frame frame;
    while (gif_find_frame(gif, &at, &frame)) {
        const size_t codes = at;
        at = gf_gif_skip_blocks(gif->data, gif->size, at + 1);
        if (!at || ++gif->pages > gif->page)
            continue;
        const uint64_t right = (uint64_t)frame.x + frame.width,
                       bottom = (uint64_t)frame.y + frame.height;
        const bool last = gif->pages == gif->page, erased = !last && frame.disposal == ERASE;
        for (uint64_t y = frame.y; erased && frame.x < width && y < height && y < bottom; y++)
            memset(canvas + (y * width + frame.x) * 4, 0,
                   ((right < width ? right : width) - frame.x) * 4);
        if (erased || (!last && frame.disposal == RESTORE))
            continue;
        if (!frame.colors)
            return gf_raster_fail(gif, GF_RASTER_DAMAGED, "the GIF has no colour table");
        if (!gif_draw_codes(gif, &frame, canvas, codes))
            return false;
    }
    return gif->pages >= gif->page ||
           gf_raster_fail(gif, at ? GF_RASTER_NO_PAGE : GF_RASTER_TRUNCATED, NULL);
}
