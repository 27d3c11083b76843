/* Intact PNG chunks with a broken zlib stream: the reader and libpng reject the same files, except
 * for the "Differences from libpng" in docs/design-files.md. */
#include "png_broken.h"

/* Try a stream in one IDAT chunk. */
static bool try_stream(setting *s, const unsigned char *stream, size_t size, const char *what) {
    png_bytes middle = {0};
    png_put_chunk(&middle, "IDAT", stream, size, false);
    return try_middle(s, &middle, what);
}

/* ---- broken streams -------------------------------------------------------------------------- */

TEST(streams_of_the_wrong_length) {
    setting s;
    size_t size;
    set_up(&s);
    for (size_t rows = 0; rows <= HEIGHT + 4; rows++)
        for (size_t odd = 0; odd < 3; odd++) {
            const size_t bytes = rows * (WIDTH + 1) - (rows == 0 ? 0 : odd);
            AUTO(free) unsigned char *stream = stream_of(s.raw, bytes, &size);
            /* Extra data is skipped; missing data is an error. */
            assert_int_equal(try_stream(&s, stream, size, "rows"), bytes >= RAW);
            assert_int_equal(try_stream(&s, stream, size + 20, "rows and more"), bytes >= RAW);
            for (size_t less = 1; less <= 6; less++)
                assert_false(try_stream(&s, stream, size - less, "stream cut short"));
        }
    assert_int_equal(differences(&s.count), 0);
    tear_down(&s);
}

TEST(wrong_filters) {
    setting s;
    size_t size;
    set_up(&s);
    for (size_t row = 0; row < HEIGHT; row++)
        for (int filter = 0; filter < 256; filter++) {
            unsigned char before = s.raw[row * (WIDTH + 1)];
            s.raw[row * (WIDTH + 1)] = (unsigned char)filter;
            AUTO(free) unsigned char *stream = stream_of(s.raw, RAW, &size);
            assert_int_equal(try_stream(&s, stream, size, "filter"), filter < 5);
            s.raw[row * (WIDTH + 1)] = before;
        }
    tear_down(&s);
}

TEST(every_zlib_header) {
    setting s;
    size_t size;
    int accepted = 0;
    set_up(&s);
    AUTO(free) unsigned char *stream = stream_of(s.raw, RAW, &size);
    for (unsigned head = 0; head < 65536; head++) {
        if (head % 31 != 0 && head % 37 != 0) /* multiples of 31 are valid */
            continue;
        stream[0] = (unsigned char)(head >> 8);
        stream[1] = (unsigned char)head;
        accepted += try_stream(&s, stream, size, "zlib header");
    }
    assert_true(accepted > 8);
    tear_down(&s);
}

/* libpng ignores damage after the rows if a chunk ends before the damage. The reader rejects it. */
TEST(damage_after_the_rows_is_rejected) {
    setting s;
    size_t size;
    png_bytes middle = {0};
    set_up(&s);
    AUTO(free) unsigned char *stream = stream_of(s.raw, RAW, &size);
    stream[size - 1] ^= 1;
    assert_false(try_stream(&s, stream, size, "Adler-32"));
    assert_int_equal(s.count.by[END_IS_DAMAGED], 0);
    png_put_chunk(&middle, "IDAT", stream, size - 4, false);
    png_put_chunk(&middle, "IDAT", stream + size - 4, 4, false);
    assert_true(try_middle(&s, &middle, "Adler-32 in a chunk of its own"));
    assert_int_equal(s.count.by[END_IS_DAMAGED], 1);
    tear_down(&s);
}

/* ---- broken blocks --------------------------------------------------------------------------- */

/* Matches with distances before the start of the stream, at several offsets. */
TEST(distances_before_the_start) {
    setting s;
    int accepted = 0;
    set_up(&s);
    for (size_t offset = 0; offset < RAW; offset += 7) {
        unsigned char stream[4 * RAW] = {0x78, 0x01}, before[RAW];
        z_stream zlib = {0};
        for (size_t i = 0; i < RAW; i++)
            before[i] = s.raw[i];
        assert_int_equal(deflateInit2(&zlib, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflateSetDictionary(&zlib, before + offset, (uInt)(RAW - offset)), Z_OK);
        zlib.next_in = s.raw;
        zlib.avail_in = RAW;
        zlib.next_out = stream + 2;
        zlib.avail_out = sizeof stream - 6;
        assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
        const size_t size = 2 + zlib.total_out;
        (void)deflateEnd(&zlib);
        const uint32_t sum = (uint32_t)adler32(adler32(0, NULL, 0), s.raw, RAW);
        for (size_t i = 0; i < 4; i++)
            stream[size + i] = (unsigned char)(sum >> (24 - 8 * i));
        accepted += try_stream(&s, stream, size + 4, "distance");
    }
    assert_true(accepted < 5);
    tear_down(&s);
}

/* Matches at the maximum distance, which zlib never encodes, in blocks that end at any bit. */
TEST(distances_of_the_whole_window) {
    /* ROWS: whole matches fill the rows exactly. */
    enum { ROW = 1 << 10, WINDOW = 1 << 15, MATCH = 258, ROWS = WINDOW / ROW + 7 * (MATCH / 2) };
    const png_spec image = {.width = ROW - 1, .height = ROWS, .depth = 8};
    static unsigned char stream[7 + WINDOW + sizeof(((bits *)0)->bytes)] = {0x78, 1,    0,   0,
                                                                            0x80, 0xff, 0x7f};
    bits blocks = {{0}, 0};
    uint32_t seed = 7, sum = (uint32_t)adler32(0, NULL, 0);
    AUTO(free) png_bytes file, middle = {0};
    tally count = {0};
    size_t left = 0;
    for (size_t i = 0; i < WINDOW; i++)
        stream[7 + i] = (unsigned char)(i % ROW == 0 ? i / ROW % 5 : next_random(&seed));
    for (size_t at = WINDOW; at < (size_t)ROW * ROWS; at += MATCH, left--) {
        if (left == 0) {
            if (at != WINDOW)
                put_bits(&blocks, 0, 7); /* end of block */
            put_bits(&blocks, 2, 3);     /* fixed codes */
            left = 1 + next_random(&seed) % 400;
        }
        put_bits(&blocks, 0xa3, 8);    /* 258 bytes: 11000101 */
        put_bits(&blocks, 0x17, 5);    /* 24577 to 32768: 11101 */
        put_bits(&blocks, 0x1fff, 13); /* 32768 */
    }
    put_bits(&blocks, 0, 7);
    put_bits(&blocks, 3, 10); /* the last block is empty */
    blocks.count = (blocks.count + 7) / 8 * 8;
    for (size_t i = 0; i < (size_t)ROW * ROWS; i++)
        sum = (uint32_t)adler32(sum, stream + 7 + i % WINDOW, 1);
    for (unsigned i = 0; i < 4; i++)
        put_bits(&blocks, sum >> (24 - 8 * i) & 255, 8);
    assert_true(blocks.count / 8 <= sizeof blocks.bytes);
    memcpy(stream + 7 + WINDOW, blocks.bytes, sizeof blocks.bytes);
    png_put_chunk(&middle, "IDAT", stream, 7 + WINDOW + blocks.count / 8, false);
    png_make(&image, &file, NULL, NULL);
    AUTO(free) png_bytes made = with_middle(&file, &middle);
    outcome ours = load(&made, made.size, NULL, gf_png_codec.open_source, 3);
    outcome oracle = png_oracle(&made, made.size, NULL);
    check_outcomes(&ours, &oracle, &made, "distances of 32768", 0, &count);
    assert_true(count.accepted == 1 && differences(&count) == 0);
    clear(&ours);
    clear(&oracle);
}

/* One zero pixel in a block with an incomplete code: two of its four 2-bit words are used. ISA-L
 * accepts the code, zlib rejects it. */
TEST(unused_words_of_codes) {
    const png_spec pixel = {.width = 1, .height = 1, .depth = 8};
    const unsigned char stored[] = {0, 0};
    bits stream = {{0x78, 0x01}, 16};
    AUTO(free) png_bytes file, middle = {0};
    tally count = {0};
    png_make(&pixel, &file, NULL, NULL);
    put_bits(&stream, 5, 3);  /* last block, dynamic codes: */
    put_bits(&stream, 0, 10); /* 257 literals, 1 distance */
    put_bits(&stream, 14, 4); /* 18 lengths of the code for lengths: */
    put_bits(&stream, 0, 6);  /* 16 and 17: unused */
    put_bits(&stream, 1, 3);  /* 18: word 0 */
    put_bits(&stream, 0, 18); /* 0, 8, 7, ... */
    put_bits(&stream, 0, 18); /* ..., 13: unused */
    put_bits(&stream, 2, 3);  /* 2: word 11 */
    put_bits(&stream, 0, 3);  /* 14: unused */
    put_bits(&stream, 2, 3);  /* 1: word 10 */
    put_bits(&stream, 3, 2);  /* literal 0: 2 bits, word 00 */
    put_bits(&stream, 0, 1);  /* 138 unused literals */
    put_bits(&stream, 127, 7);
    put_bits(&stream, 0, 1); /* 117 unused literals */
    put_bits(&stream, 106, 7);
    put_bits(&stream, 3, 2); /* end of block: 2 bits, word 01 */
    put_bits(&stream, 1, 2); /* distance 0: 1 bit */
    put_bits(&stream, 0, 4); /* literals 0 and 0 */
    put_bits(&stream, 2, 2); /* end of block */
    stream.count = (stream.count + 7) / 8 * 8;
    const uint32_t sum = (uint32_t)adler32(adler32(0, NULL, 0), stored, 2);
    for (unsigned i = 0; i < 4; i++)
        put_bits(&stream, sum >> (24 - 8 * i) & 255, 8);
    png_put_chunk(&middle, "IDAT", stream.bytes, stream.count / 8, false);
    AUTO(free) png_bytes made = with_middle(&file, &middle);
    check_same(&made, "unused words", 0, &count);
    assert_int_equal(count.accepted, 0);
}

/* Blocks after many empty blocks. */
TEST(damage_after_many_blocks) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *message; /* NULL: the stream is valid */
    } ends[] = {
        {"\1\2\0\xfd\xff\0\0\0\2\0\1", 11, NULL},
        {"\1\2\0\xfd\xff\0\0\0\2\0\2", 11, "(IDAT: incorrect data check)"},
        {"\1\2\0\xfd\xff\0\0\0\2", 9, "(Not enough image data)"},
        {"\1\2\0\xfd\xff\0", 6, "(Not enough image data)"},
        {"\1\2\0\xfd\xfe\0\0", 7, "(IDAT: invalid block)"},
        {"\7", 1, "(IDAT: invalid block)"},
        {"\3\2\0\0\0", 5, "(IDAT: invalid distance too far back)"},
    };
    const png_spec pixel = {.width = 1, .height = 1, .depth = 8};
    AUTO(free) png_bytes file;
    bits blocks = {{0}, 0};
    for (int i = 0; i < 8 * 100; i++)
        put_bits(&blocks, 2, 10); /* an empty block with fixed codes */
    png_make(&pixel, &file, NULL, NULL);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        unsigned char stream[2 + sizeof blocks.bytes + 16] = {0x78, 0x01};
        tally count = {0};
        AUTO(free) png_bytes middle = {0};
        memcpy(stream + 2, blocks.bytes, blocks.count / 8);
        memcpy(stream + 2 + blocks.count / 8, ends[i].bytes, ends[i].size);
        png_put_chunk(&middle, "IDAT", stream, 2 + blocks.count / 8 + ends[i].size, false);
        AUTO(free) png_bytes made = with_middle(&file, &middle);
        check_same(&made, "after many blocks", i, &count);
        outcome ours = load(&made, made.size, NULL, gf_png_codec.open_source, 1);
        if (ends[i].message == NULL)
            assert_int_equal(ours.error.status, GF_OK);
        else
            assert_message(&ours.error, ends[i].message);
        clear(&ours);
    }
}

/* One MiB of data after the rows is skipped, and all data after the stream, for any chunk size. */
TEST(much_data_after_the_rows) {
    enum { MUCH = 1 << 20, TAIL = 200000 };
    static unsigned char raw[RAW + MUCH + 1];
    setting s;
    set_up(&s);
    memcpy(raw, s.raw, RAW);
    for (size_t more = 0; more < 2; more++)
        for (size_t piece = 1; piece < 1 << 30; piece *= 1000) {
            size_t size;
            unsigned char *stream = stream_of(raw, RAW + MUCH + more, &size);
            AUTO(free) png_bytes middle = {0};
            stream = realloc(stream, size + TAIL);
            assert_non_null(stream);
            memset(stream + size, 0, TAIL);
            const size_t all = size + (piece == 1 ? 0 : TAIL);
            png_put_chunk(&middle, "IDAT", stream, 10, false);
            for (size_t at = 10; at < all; at += piece)
                png_put_chunk(&middle, "IDAT", stream + at, all - at < piece ? all - at : piece,
                              false);
            assert_true(try_middle(&s, &middle, "much data after the rows"));
            assert_int_equal(differences(&s.count), more);
            assert_int_equal(s.count.by[TOO_MUCH_DATA], more);
            s.count = (tally){0};
            /* The checksum is verified if all data is read. */
            stream[size - 1] ^= 1;
            png_put_chunk(&middle, "IDAT", stream, size, false);
            AUTO(free) png_bytes made = with_middle(&s.file, &middle);
            outcome ours = load(&made, made.size, NULL, gf_png_codec.open_source, 1);
            assert_message(&ours.error,
                           more == 0 ? "(IDAT: incorrect data check)" : "(IDAT: too much data)");
            clear(&ours);
            free(stream);
        }
    tear_down(&s);
}

/* Random bytes at random offsets. */
TEST(random_bytes_in_streams) {
    const char *more = getenv("GF_PNG_FLIPS");
    uint32_t seed = 77;
    setting s;
    size_t size;
    set_up(&s);
    for (int i = 0; i < (more != NULL ? 100 * atoi(more) : 3000); i++) {
        AUTO(free) unsigned char *stream = stream_of(s.raw, RAW, &size);
        size_t from = 2 + next_random(&seed) % (size - 2), n = 1 + next_random(&seed) % 40;
        for (size_t at = from; at < size && at < from + n; at++)
            stream[at] = (unsigned char)next_random(&seed);
        (void)try_stream(&s, stream, size, "random bytes");
    }
    tear_down(&s);
}

int main(void) {
    return test_main(NULL);
}
