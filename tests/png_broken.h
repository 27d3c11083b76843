/* What the tests of broken PNGs share: files to break, and both ways of reading held against each
 * other. */
#ifndef PNG_BROKEN_H
#define PNG_BROKEN_H

#include "png_both.h"

/* Small, so that damaged headers cannot make the test hold huge images. */
static const gf_limits limits = {.max_pixels = 5000, .max_chunk = 200};

static inline uint32_t get32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Is the zlib stream of the file right to its end, in zlib's eyes? */
static inline bool stream_is_right(const png_bytes *file) {
    z_stream stream = {0};
    unsigned char out[4096];
    int status = Z_OK;

    assert_int_equal(inflateInit(&stream), Z_OK);
    for (size_t at = 8; at + 12 <= file->size && status == Z_OK;) {
        size_t size = get32(file->data + at);
        if (size > file->size - at - 12)
            break;
        stream.next_in = file->data + at + 8;
        stream.avail_in = memcmp(file->data + at + 4, "IDAT", 4) == 0 ? (uInt)size : 0;
        while (stream.avail_in != 0 && status == Z_OK) {
            stream.next_out = out;
            stream.avail_out = sizeof out;
            status = inflate(&stream, Z_NO_FLUSH);
        }
        at += size + 12;
    }
    (void)inflateEnd(&stream);
    return status == Z_STREAM_END;
}

typedef struct tally {
    int files, accepted, unused_codes, damaged_ends;
} tally;

/* Both refuse or both accept and give the same image, but for the two exceptions of
 * io/png_inflate.h. intact is the image before the damage. */
static inline void check_same(const png_bytes *file, const outcome *intact, const char *what,
                              size_t where, tally *count) {
    outcome fast = load(file, file->size, &limits, gf_png_source_open, 1 + where % 5);
    outcome oracle = load(file, file->size, &limits, gf_png_source_open_libpng, 1);
    const bool fast_ok = fast.error.status == GF_OK, oracle_ok = oracle.error.status == GF_OK;

    count->files++;
    count->accepted += oracle_ok;
    if (!fast_ok)
        assert_message(&fast.error, "x.png: ");
    if (fast_ok && oracle_ok) {
        if (!same_image(&fast, &oracle) || !same_metadata(&fast.metadata, &oracle.metadata))
            fail_msg("%s at %zu: another image", what, where);
    } else if (fast_ok) {
        count->unused_codes++;
        if (!(strstr(oracle.error.message, "set)") != NULL && same_image(&fast, intact)))
            fail_msg("%s at %zu: accepted; libpng: %s", what, where, oracle.error.message);
    } else if (oracle_ok) {
        count->damaged_ends++;
        if (stream_is_right(file))
            fail_msg("%s at %zu: refused: %s", what, where, fast.error.message);
    }
    clear(&fast);
    clear(&oracle);
}

static inline png_bytes copy_of(const png_bytes *file) {
    png_bytes copy = {malloc(file->size + 1), file->size};
    assert_non_null(copy.data);
    memcpy(copy.data, file->data, file->size);
    return copy;
}

static inline outcome make(const png_spec *spec, png_bytes *file) {
    outcome intact = {0};
    png_make(spec, file, &intact.format, &intact.pixels);
    return intact;
}

/* ---- an image whose IDAT chunks are replaced ------------------------------------------------- */

/* Puts the file together anew: the chunks before the first IDAT, what `middle` holds, and from
 * IDAT's end on what was there. */
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

/* A zlib stream, with some room behind it. */
static inline unsigned char *stream_of(const void *raw, size_t size, size_t *packed) {
    uLongf room = compressBound(size) + 64;
    unsigned char *data = calloc(1, room);
    assert_non_null(data);
    assert_int_equal(compress(data, &room, raw, size), Z_OK);
    *packed = room;
    return data;
}

enum { WIDTH = 10, HEIGHT = 6, RAW = (WIDTH + 1) * HEIGHT };
static const png_spec grey = {.width = WIDTH, .height = HEIGHT, .depth = 8};
static const png_extra text = {"tEXt", 2, "Title\0after", 11, false};

typedef struct setting {
    png_bytes file;
    outcome intact;
    tally count;
    unsigned char raw[RAW + 4 * (WIDTH + 1)];
} setting;

static inline void set_up(setting *s) {
    png_spec spec = grey;
    *s = (setting){0};
    spec.extras = &text;
    spec.extra_count = 1;
    s->intact = make(&spec, &s->file);
    for (size_t i = 0; i < sizeof s->raw; i++)
        s->raw[i] = (unsigned char)(i % (WIDTH + 1) == 0 ? i / (WIDTH + 1) % 5 : i * i % 7);
}

static inline void tear_down(setting *s) {
    clear(&s->intact);
    free(s->file.data);
}

/* Takes the chunks over; what libpng makes of the file. */
static inline bool try_middle(setting *s, png_bytes *middle, const char *what) {
    const int before = s->count.accepted;
    png_bytes made = with_middle(&s->file, middle);
    check_same(&made, &s->intact, what, middle->size, &s->count);
    free(made.data);
    free(middle->data);
    *middle = (png_bytes){0};
    return s->count.accepted != before;
}

#endif
