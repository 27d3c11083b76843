/* Generated PNGs: chunks of every name in every order, valid, damaged and missing, and all kinds
 * of streams. The reader must agree with libpng (png_both.h), except for the differences
 * listed in docs/design-files.md. By default, the test uses some of the files; with GF_HOSTILE
 * in the environment it uses all (make hostile). */
#include "hostile.h"
#include "png_file.h"
#include "testing.h"

enum { PIECES = 48 };

typedef struct piece {
    char name[5];
    unsigned char *data; /* owned */
    size_t size;
    bool wrong_checksum;
} piece;

typedef struct pieces {
    piece list[PIECES];
    size_t count;
} pieces;

static bool one_in(uint32_t *seed, uint32_t n) {
    return next_random(seed) % n == 0;
}

static void flip_bit(unsigned char *data, size_t size, uint32_t *seed) {
    const size_t at = next_random(seed) % size;
    data[at] ^= (unsigned char)(1u << next_random(seed) % 8);
}

static void insert_piece(pieces *all, size_t at, const char *name, const void *data, size_t size) {
    piece made = {.data = malloc(size + 1), .size = size};
    if (all->count == PIECES) {
        free(made.data);
        return;
    }
    assert_non_null(made.data);
    memcpy(made.name, name, 4);
    if (size != 0)
        memcpy(made.data, data, size);
    memmove(all->list + at + 1, all->list + at, (all->count - at) * sizeof *all->list);
    all->list[at] = made;
    all->count++;
}

static void remove_piece(pieces *all, size_t at) {
    free(all->list[at].data);
    all->count--;
    memmove(all->list + at, all->list + at + 1, (all->count - at) * sizeof *all->list);
}

static pieces split_chunks(const png_bytes *file) {
    pieces all = {0};
    for (size_t at = 8; at < file->size; at += 12 + get32(file->data + at))
        insert_piece(&all, all.count, (const char *)file->data + at + 4, file->data + at + 8,
                     get32(file->data + at));
    return all;
}

static png_bytes join_chunks(pieces *all) {
    png_bytes file = {0};
    png_put_signature(&file);
    for (; all->count != 0; remove_piece(all, 0)) {
        const piece *first = &all->list[0];
        png_put_chunk(&file, first->name, first->data, first->size, first->wrong_checksum);
    }
    return file;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static const png_extra more[] = {
    {"tRNS", 0, "\0\1", 2, false},
    {"tRNS", 0, "\0\1\0\2\0\3", 6, false},
    {"tRNS", 0, "\x80", 1, false},
    {"tRNS", 0, "\x12\x34", 2, false},
    {"PLTE", 0, "\1\2\3\4\5\6\7\x08\x09", 9, false},
    {"PLTE", 0, "\1\2\3\4", 4, false},
    {"IHDR", 0, "\0\0\0\1\0\0\0\1\x08\0\0\0\0", 13, false},
    {"IEND", 0, "", 0, false},
    {"IDAT", 0, "\x78\x9c\x63\0\0\0\2\0\1", 9, false},
    {"IDAT", 0, "", 0, false},
    {"bKGD", 0, "\1", 1, false},
    {"bKGD", 0, "\0\1", 2, false},
    {"sBIT", 0, "\1", 1, false},
    {"hIST", 0, "\0\1\0\2\0\3", 6, false},
    {"sRGB", 0, "\1", 1, false},
    {"cHRM", 0, "\0\0z&\0\0\x80\x84\0\0\xfa\0\0\0\x80\xe8\0\0u0\0\0\xea`\0\0:\x98\0\0\x17p", 32,
     false},
    {"sPLT", 0, "name\0\x08\1\2\3\4\0\1", 12, false},
    {"oFFs", 0, "\0\0\0\1\0\0\0\2\0", 9, false},
    {"pCAL", 0, "name\0\0\0\0\0\0\0\0\1\0\2m\0001\0002", 20, false},
    {"sCAL", 0, "\1\61\0\62", 4, false},
    {"acTL", 0, "\0\0\0\1\0\0\0\0", 8, false},
    {"zTXt", 0, "key\0\0\x78\x9c\x63\0\0\0\1\0\1", 14, false},
    {"mDCV", 0, "123456789012345678901234", 24, false},
    {"abcd", 0, "safe", 4, false},
    {"abCd", 0, "unsafe?", 7, false},
    {"ABCD", 0, "critical", 8, false},
    {"ab1d", 0, "no name", 7, false},
};
enum { MORE = sizeof more / sizeof *more };

static const png_extra *any_extra(uint32_t *seed) {
    const size_t i = next_random(seed) % (CARRIED + DROPPED + 2 * MORE);
    return i < CARRIED             ? &carried[i]
           : i < CARRIED + DROPPED ? &dropped[i - CARRIED]
                                   : &more[(i - CARRIED - DROPPED) % MORE];
}

/* Add an ancillary chunk anywhere, with valid or other data. */
static void add_piece(pieces *all, uint32_t *seed) {
    const png_extra *extra = any_extra(seed);
    const size_t at = one_in(seed, 12) ? 0 : next_random(seed) % (all->count + 1);
    unsigned char data[300];
    size_t size = extra->size;
    memcpy(data, extra->data, size);
    if (one_in(seed, 6)) {
        const size_t below = one_in(seed, 8) ? sizeof data : 16;
        size = next_random(seed) % below;
    }
    for (size_t i = extra->size < size ? extra->size : size; i < size; i++)
        data[i] = (unsigned char)next_random(seed);
    if (size != 0 && one_in(seed, 6))
        flip_bit(data, size, seed);
    insert_piece(all, at, extra->name, data, size);
    if (at < all->count)
        all->list[at].wrong_checksum = extra->wrong_checksum || one_in(seed, 12);
}

static void change_piece(pieces *all, uint32_t *seed) {
    const size_t at = next_random(seed) % all->count, to = next_random(seed) % all->count;
    piece *p = &all->list[at], moved = *p;
    switch (next_random(seed) % 8) {
    case 0:
        remove_piece(all, at);
        break;
    case 1: /* move */
        memmove(p, p + 1, (all->count - 1 - at) * sizeof *p);
        memmove(all->list + to + 1, all->list + to, (all->count - 1 - to) * sizeof *p);
        all->list[to] = moved;
        break;
    case 2: /* repeat */
        insert_piece(all, to, moved.name, moved.data, moved.size);
        break;
    case 3:
        memcpy(p->name, any_extra(seed)->name, 4);
        break;
    case 4:
        p->size = next_random(seed) % (p->size + 1);
        break;
    case 5:
        p->wrong_checksum = true;
        break;
    default:
        if (p->size != 0)
            flip_bit(p->data, p->size, seed);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

enum { STREAM_BYTES = 1 << 15, RAW_BYTES = 1 << 21 };

/* Change the amount of data to more or less than the image's rows. */
static void change_rows(png_bytes *stream, uint32_t *seed) {
    static unsigned char raw[RAW_BYTES];
    uLongf size = RAW_BYTES / 4, packed = STREAM_BYTES;
    if (uncompress(raw, &size, stream->data, stream->size) != Z_OK)
        return;
    if (one_in(seed, 3)) {
        size = next_random(seed) % (size + 1);
    } else {
        const size_t extra = one_in(seed, 10) ? RAW_BYTES * 3 / 4 - size : next_random(seed) % 5000;
        memset(raw + size, 0, extra);
        size += extra;
    }
    if (compress(stream->data, &packed, raw, size) == Z_OK)
        stream->size = packed;
}

/* Damage the stream of the first IDAT chunks and split it again. */
static void change_stream(pieces *all, uint32_t *seed) {
    AUTO(free) png_bytes stream = {calloc(1, 2 * STREAM_BYTES), 0};
    size_t first = all->count;
    assert_non_null(stream.data);
    for (size_t i = all->count; i-- > 0;)
        if (strcmp(all->list[i].name, "IDAT") == 0)
            first = i;
    for (size_t i = first; i < all->count && strcmp(all->list[i].name, "IDAT") == 0;) {
        if (stream.size + all->list[i].size < STREAM_BYTES) {
            memcpy(stream.data + stream.size, all->list[i].data, all->list[i].size);
            stream.size += all->list[i].size;
        }
        remove_piece(all, i);
    }
    switch (next_random(seed) % 5) {
    case 0:
        change_rows(&stream, seed);
        break;
    case 1: /* truncated */
        stream.size = one_in(seed, 2) && stream.size > 8 ? stream.size - next_random(seed) % 8
                                                         : next_random(seed) % (stream.size + 1);
        break;
    case 2: /* extra bytes */
        for (size_t n = next_random(seed) % 30; n > 0; n--)
            stream.data[stream.size++] = (unsigned char)next_random(seed);
        break;
    default:
        for (size_t n = 1 + next_random(seed) % 3; n > 0 && stream.size != 0; n--) {
            const size_t from = one_in(seed, 3) && stream.size > 12 ? stream.size - 12 : 0;
            flip_bit(stream.data + from, stream.size - from, seed);
        }
    }
    const size_t max = one_in(seed, 2) ? stream.size + 1 : 1 + next_random(seed) % 300;
    for (size_t at = 0; at < stream.size && all->count < PIECES; at += max, first++)
        insert_piece(all, first, "IDAT", stream.data + at,
                     stream.size - at < max ? stream.size - at : max);
}

/* ---- files ----------------------------------------------------------------------------------- */

static png_bytes generate(uint32_t seed) {
    static const int flushes[] = {Z_NO_FLUSH, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
    png_spec spec = random_spec(&seed, one_in(&seed, 20) ? 70 : 12);
    png_bytes file;
    if (one_in(&seed, 3)) {
        spec.flush = flushes[next_random(&seed) % 5];
        spec.flush_bytes = 1 + next_random(&seed) % 300;
    }
    png_make(&spec, &file, NULL, NULL);
    pieces all = split_chunks(&file);
    free(file.data);
    for (size_t n = next_random(&seed) % 5; n > 0; n--)
        add_piece(&all, &seed);
    for (size_t n = one_in(&seed, 2) ? 0 : 1 + next_random(&seed) % 2; n > 0 && all.count > 0; n--)
        change_piece(&all, &seed);
    if (one_in(&seed, 4))
        change_stream(&all, &seed);
    file = join_chunks(&all);
    if (one_in(&seed, 20))
        file.size = 8 + next_random(&seed) % (file.size - 7);
    if (file.size > 8 && one_in(&seed, 15))
        flip_bit(file.data + 8, file.size - 8, &seed);
    if (one_in(&seed, 20))
        png_put_chunk(&file, "tail", "behind the end", 14, one_in(&seed, 2));
    return file;
}

TEST(generated_files_are_read_as_by_libpng) {
    const uint32_t files = hostile_all() ? 400000 : 20000;
    const uint32_t from = (uint32_t)test_environment("GF_TEST_SEED", 0);
    tally count = {0};
    for (uint32_t seed = from; seed < from + files; seed++) {
        AUTO(free) png_bytes file = generate(seed * 2654435761u + 1);
        check_same(&file, "seed", seed, &count);
    }
    print_tally(&count);
    assert_true(count.accepted > count.files / 10);
}

int main(void) {
    return test_main(NULL);
}
