/* Shared by the tests of broken PNG files: files to modify; comparison of reader and oracle. */
#ifndef PNG_BROKEN_H
#define PNG_BROKEN_H

#include "png_verdict.h"

/* Small limits, so that damaged headers cannot cause huge images. */
static const gf_limits limits = {.max_pixels = 5000, .max_chunk = 200};

static inline void check_same(const png_bytes *file, const char *what, size_t where, tally *count) {
    outcome ours = load(file, file->size, &limits, gf_png_codec.open_source, 1 + where % 5);
    outcome oracle = png_oracle(file, file->size, &limits);
    check_outcomes(&ours, &oracle, file, what, where, count);
    clear(&ours);
    clear(&oracle);
}

/* Set the checksums of all chunks, up to a chunk that exceeds the file. */
static inline void repair_checksums(png_bytes *file) {
    for (size_t at = 8; at + 12 <= file->size;) {
        size_t size = get32(file->data + at);
        if (size > file->size - at - 12)
            return;
        uint32_t sum = (uint32_t)crc32(0, file->data + at + 4, (uInt)size + 4);
        for (int i = 0; i < 4; i++)
            file->data[at + 8 + size + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
        at += size + 12;
    }
}

static inline png_bytes copy_of(const png_bytes *file) {
    png_bytes copy = {malloc(file->size + 1), file->size};
    assert_non_null(copy.data);
    memcpy(copy.data, file->data, file->size);
    return copy;
}

/* ---- an image with replaced IDAT chunks ------------------------------------------------------ */

/* Return a file of the chunks before the first IDAT chunk, the chunks of `middle`, and the chunks
 * after the last IDAT chunk. */
static inline png_bytes with_middle(const png_bytes *file, const png_bytes *middle) {
    size_t first = 0, end = 0;
    for (size_t at = 8; at + 12 <= file->size; at += 12 + get32(file->data + at))
        if (memcmp(file->data + at + 4, "IDAT", 4) == 0) {
            first = first == 0 ? at : first;
            end = at + 12 + get32(file->data + at);
        }
    png_bytes made = {malloc(file->size + middle->size), file->size - (end - first) + middle->size};
    assert_non_null(made.data);
    memcpy(made.data, file->data, first);
    memcpy(made.data + first, middle->data, middle->size);
    memcpy(made.data + first + middle->size, file->data + end, file->size - end);
    return made;
}

/* Return a zlib stream, followed by at least 64 zero bytes. */
static inline unsigned char *stream_of(const void *raw, size_t size, size_t *packed) {
    uLongf capacity = compressBound(size) + 64;
    unsigned char *data = calloc(1, capacity);
    assert_non_null(data);
    assert_int_equal(compress(data, &capacity, raw, size), Z_OK);
    *packed = capacity;
    return data;
}

/* Bits of a deflate stream. */
typedef struct bits {
    unsigned char bytes[1 << 14];
    size_t count;
} bits;

static inline void put_bits(bits *to, unsigned value, unsigned n) {
    for (unsigned i = 0; i < n; i++, to->count++)
        to->bytes[to->count / 8] |= (unsigned char)((value >> i & 1) << to->count % 8);
}

enum { WIDTH = 10, HEIGHT = 6, RAW = (WIDTH + 1) * HEIGHT };
static const png_spec grey = {.width = WIDTH, .height = HEIGHT, .depth = 8};
static const png_extra text = {"tEXt", 2, "Title\0after", 11, false};

typedef struct setting {
    png_bytes file;
    tally count;
    unsigned char raw[RAW + 4 * (WIDTH + 1)];
} setting;

static inline void set_up(setting *s) {
    png_spec spec = grey;
    *s = (setting){0};
    spec.extras = &text;
    spec.extra_count = 1;
    png_make(&spec, &s->file, NULL, NULL);
    for (size_t i = 0; i < sizeof s->raw; i++)
        s->raw[i] = (unsigned char)(i % (WIDTH + 1) == 0 ? i / (WIDTH + 1) % 5 : i * i % 7);
}

static inline void tear_down(setting *s) {
    free(s->file.data);
}

/* Check a file with these chunks, and free the chunks. Return true if libpng accepts the file. */
static inline bool try_middle(setting *s, png_bytes *middle, const char *what) {
    const int before = s->count.accepted;
    AUTO(free) png_bytes made = with_middle(&s->file, middle);
    check_same(&made, what, middle->size, &s->count);
    free(middle->data);
    *middle = (png_bytes){0};
    return s->count.accepted != before;
}

#endif
