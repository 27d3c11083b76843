/* Generated hostile PNGs: each must be rejected, or return libpng's pixels, in limited time. */
#include "hostile.h"

static hostile totals;

static void try_png(const png_bytes *file, const char *what, size_t where, hostile *to) {
    tally count = {0};
    const double start = cpu_seconds();
    check_same(file, what, where, &count);
    hostile_count(to, count.accepted != 0, start, what, where);
}

/* Make a small file of each kind, as the input of the changes. */
static png_bytes small_file(size_t kind, bool interlaced, size_t idat_bytes) {
    static const png_extra extras[] = {{"gAMA", 0, "\0\0\xb1\x8f", 4, false},
                                       {"tEXt", 1, "a\0b", 3, false},
                                       {"tIME", 2, "\x07\xea\1\1\0\0\0", 7, false}};
    const png_spec spec = {.width = 4,
                           .height = 3,
                           .color = kinds[kind][0],
                           .depth = kinds[kind][1],
                           .interlaced = interlaced,
                           .transparent = kinds[kind][0] < 4 && kind % 2 == 0,
                           .palette_count = kinds[kind][0] == 3 ? 2 : 0,
                           .idat_bytes = idat_bytes,
                           .extras = extras,
                           .extra_count = 3};
    png_bytes file;
    png_make(&spec, &file, NULL, NULL);
    return file;
}

TEST(cut_and_flipped) {
    for (size_t kind = 0; kind < KINDS; kind++)
        for (int variant = 0; variant < 3; variant++) {
            if (!hostile_all() && variant != (int)kind % 3)
                continue;
            AUTO(free) png_bytes file = small_file(kind, variant == 1, variant == 2 ? 9 : 0);
            every_cut(&file, try_png, "cut", &totals);
            every_flip(&file, hostile_all() ? 1 : 7, repair_checksums, try_png, "bit", &totals);
            if (hostile_all())
                every_byte(&file, try_png, "byte", &totals);
        }
    hostile_print(&totals);
}

static void put32_at(unsigned char *at, uint32_t v) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> (24 - 8 * i));
}

TEST(invalid_sizes) {
    static const uint32_t sizes[] = {0,          1,          2,          1000000,   0x7ffffffe,
                                     0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < (size_t)SIZES * SIZES; i++) {
            AUTO(free) png_bytes file = small_file(kind, i % 2 != 0, 0);
            put32_at(file.data + 16, sizes[i / SIZES]);
            put32_at(file.data + 20, sizes[i % SIZES]);
            repair_checksums(&file);
            try_png(&file, "size", i, &totals);
        }
    hostile_print(&totals);
}

/* Every combination of depth, colour type and the three methods, valid or not. */
TEST(header_combinations) {
    AUTO(free) png_bytes file = small_file(2, false, 0);
    for (unsigned depth = 0; depth <= 17; depth++)
        for (unsigned color = 0; color < 9; color++)
            for (unsigned method = 0; method < 8; method++) {
                const unsigned char header[] = {(unsigned char)depth, (unsigned char)color,
                                                (unsigned char)(method & 1 ? 255 : 0),
                                                (unsigned char)(method & 2 ? 1 : 0),
                                                (unsigned char)(method & 4 ? 2 : 0)};
                memcpy(file.data + 24, header, sizeof header);
                repair_checksums(&file);
                try_png(&file, "header", depth * 100 + color, &totals);
            }
    hostile_print(&totals);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static size_t chunk_end(const png_bytes *file, size_t at) {
    return at + 12 + get32(file->data + at);
}

/* Remove, repeat or move the chunk at `at`, or give it other data or another name. */
static png_bytes change_chunk(const png_bytes *file, size_t at, int variant) {
    static const char names[][5] = {"IHDR", "PLTE", "IDAT", "IEND", "tRNS", "ABCD", "iCCP"};
    const size_t end = chunk_end(file, at), length = end - at;
    png_bytes made = {malloc(2 * file->size + 2000), 0};
    assert_non_null(made.data);
    memcpy(made.data, file->data, at);
    made.size = at;
    if (variant == 1 || variant == 2) { /* repeat */
        memcpy(made.data + made.size, file->data + at, length);
        made.size += length;
    } else if (variant >= 4 && variant < 7) { /* other data */
        static const size_t sizes[] = {0, 1, 1000};
        const size_t size = sizes[variant - 4];
        put32_at(made.data + at, (uint32_t)size);
        memcpy(made.data + at + 4, file->data + at + 4, 4);
        memset(made.data + at + 8, 1, size + 4);
        made.size += 12 + size;
    } else if (variant >= 7) {
        memcpy(made.data + at, file->data + at, length);
        memcpy(made.data + at + 4, names[variant - 7], 4);
        made.size += length;
    }
    if (variant == 1) {
        memcpy(made.data + made.size, file->data + at, file->size - at);
        made.size += file->size - at;
    } else {
        memcpy(made.data + made.size, file->data + end, file->size - end);
        made.size += file->size - end;
    }
    if (variant == 3) { /* move to the end */
        memcpy(made.data + made.size, file->data + at, length);
        made.size += length;
    }
    repair_checksums(&made);
    return made;
}

TEST(malformed_chunks) {
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t idat = 0; idat < 20; idat += 7) {
            AUTO(free) png_bytes file = small_file(kind, false, idat);
            for (size_t at = 8; at + 12 <= file.size; at = chunk_end(&file, at)) {
                for (int variant = 0; variant < 14; variant++) {
                    AUTO(free) png_bytes made = change_chunk(&file, at, variant);
                    try_png(&made, "chunk", at * 100 + (size_t)variant, &totals);
                }
                for (size_t checksum_byte = 1; checksum_byte <= 4; checksum_byte++) {
                    AUTO(free) png_bytes made = copy_of(&file);
                    made.data[chunk_end(&file, at) - checksum_byte] ^= 0x40;
                    try_png(&made, "check sum", at, &totals);
                }
            }
        }
    hostile_print(&totals);
}

/* All orders of the chunks of a palette image, with bytes after its end. */
TEST(chunks_in_any_order) {
    AUTO(free) png_bytes file = small_file(8, false, 0);
    size_t at[16] = {8}, count = 0;
    while (at[count] + 12 <= file.size) {
        at[count + 1] = chunk_end(&file, at[count]);
        count++;
    }
    for (size_t first = 0; first < count; first++)
        for (size_t second = 0; second < count; second++)
            for (size_t third = 0; third < count; third++) {
                const size_t order[] = {first, second, third};
                AUTO(free) png_bytes made = {malloc(4 * file.size), 8};
                assert_non_null(made.data);
                memcpy(made.data, file.data, 8);
                for (size_t i = 0; i < count; i++) {
                    const size_t from = i < 3 ? order[i] : i;
                    memcpy(made.data + made.size, file.data + at[from], at[from + 1] - at[from]);
                    made.size += at[from + 1] - at[from];
                }
                memset(made.data + made.size, 'x', first);
                made.size += first;
                try_png(&made, "order", first * 100 + second * 10 + third, &totals);
            }
    hostile_print(&totals);
}

/* ---- extreme compression and counts ------------------------------------------------------ */

static void try_large(png_bytes *file, const char *what) {
    gf_limits large = {.max_pixels = 5000};
    const double start = cpu_seconds();
    outcome fast = load(file, file->size, &large, gf_png_codec.open_source, 1);
    const bool accepted = fast.error.status == GF_OK;
    if (!accepted)
        assert_message(&fast.error, "x.png: ");
    hostile_count(&totals, accepted, start, what, file->size);
    clear(&fast);
    free(file->data);
}

/* Write a chunk of compressed zeros, with `prefix` before the stream. */
static void put_bomb(png_bytes *file, const char *name, const char *prefix, size_t prefix_size,
                     size_t zeros) {
    static unsigned char block[1 << 16];
    const size_t capacity = prefix_size + zeros / 1000 + 1000;
    AUTO(free) unsigned char *data = malloc(capacity);
    z_stream stream = {0};
    assert_non_null(data);
    if (prefix_size != 0)
        memcpy(data, prefix, prefix_size);
    assert_int_equal(deflateInit(&stream, 9), Z_OK);
    stream.next_out = data + prefix_size;
    stream.avail_out = (uInt)(capacity - prefix_size);
    for (size_t at = 0; at < zeros; at += sizeof block) {
        stream.next_in = block;
        stream.avail_in = sizeof block;
        assert_int_equal(deflate(&stream, Z_NO_FLUSH), Z_OK);
    }
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    png_put_chunk(file, name, data, prefix_size + stream.total_out, false);
    (void)deflateEnd(&stream);
}

/* Insert chunks between the header and the pixels of a file. */
static png_bytes insert_chunks(const png_bytes *middle) {
    AUTO(free) png_bytes file;
    png_make(&grey, &file, NULL, NULL);
    png_bytes made = {malloc(file.size + middle->size), file.size + middle->size};
    assert_non_null(made.data);
    memcpy(made.data, file.data, 33);
    memcpy(made.data + 33, middle->data, middle->size);
    memcpy(made.data + 33 + middle->size, file.data + 33, file.size - 33);
    return made;
}

TEST(bombs) {
    static const struct {
        const char *name, *prefix;
        size_t size;
    } names[] = {{"zTXt", "a\0", 3}, {"iTXt", "a\0\1\0\0", 6}, {"iCCP", "a\0", 3}, {"IDAT", "", 0}};
    for (size_t i = 0; i < 4; i++)
        for (size_t zeros = 1 << 12; zeros <= (hostile_all() ? (size_t)1 << 31 : 1 << 26);
             zeros <<= 3) {
            AUTO(free) png_bytes middle = {0};
            put_bomb(&middle, names[i].name, names[i].prefix, names[i].size, zeros);
            png_bytes file = insert_chunks(&middle);
            try_large(&file, names[i].name);
        }
    hostile_print(&totals);
}

/* A million chunks of minimum size. */
TEST(many_chunks) {
    static const struct {
        const char *name, *data;
        size_t size;
    } names[] = {{"tEXt", "a\0", 2},
                 {"abCd", "", 0},
                 {"abcd", "", 0},
                 {"IDAT", "", 0},
                 {"zTXt", "a\0\0", 3}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO(free) png_bytes one = {0}, middle;
        png_put_chunk(&one, names[i].name, names[i].data, names[i].size, false);
        const size_t count = hostile_all() ? 1000000 : 100000;
        middle = (png_bytes){malloc(count * one.size), count * one.size};
        assert_non_null(middle.data);
        for (size_t k = 0; k < count; k++)
            memcpy(middle.data + k * one.size, one.data, one.size);
        png_bytes file = insert_chunks(&middle);
        try_large(&file, names[i].name);
    }
    hostile_print(&totals);
}

int main(void) {
    return test_main(NULL);
}
