/* Broken PNGs: the fast way of reading refuses what libpng refuses, and makes the same image of
 * what it accepts. */
#include "png_both.h"

/* Small, so that damaged headers cannot make the test hold huge images. */
static const gf_limits limits = {.max_pixels = 5000, .max_chunk = 200};

static uint32_t get32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void repair_checksums(png_bytes *file) {
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

/* Is the zlib stream of the file right to its end, in zlib's eyes? */
static bool stream_is_right(const png_bytes *file) {
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
static void check_same(const png_bytes *file, const outcome *intact, const char *what, size_t where,
                       tally *count) {
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

static png_bytes copy_of(const png_bytes *file) {
    png_bytes copy = {malloc(file->size + 1), file->size};
    assert_non_null(copy.data);
    memcpy(copy.data, file->data, file->size);
    return copy;
}

static outcome make(const png_spec *spec, png_bytes *file) {
    outcome intact = {0};
    png_make(spec, file, &intact.format, &intact.pixels);
    return intact;
}

static void truncated_files_are_refused_alike(void **state) {
    static const png_extra late = {"tEXt", 2, "Title\0after", 11, false};
    uint32_t seed = 4;

    (void)state;
    for (int i = 0; i < 12; i++) {
        png_spec spec = random_spec(&seed, 20);
        png_bytes file;
        spec.window_bits = 0;
        spec.interlaced = false;
        spec.extras = &late;
        spec.extra_count = 1;
        png_make(&spec, &file, NULL, NULL);
        for (size_t size = 8; size < file.size; size++) {
            outcome fast = load(&file, size, NULL, gf_png_source_open, 3);
            assert_message(&fast.error, "x.png: the PNG ends too early; get a complete copy");
            clear(&fast);
        }
        free(file.data);
    }
}

static void check_flips(const png_spec *spec, int step, tally *count) {
    png_bytes file;
    outcome intact = make(spec, &file);

    for (size_t bit = 64; bit < 8 * file.size; bit += (size_t)step) {
        png_bytes broken = copy_of(&file);
        broken.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        check_same(&broken, &intact, "bit", bit, count);
        repair_checksums(&broken);
        check_same(&broken, &intact, "bit, checksum right,", bit, count);
        free(broken.data);
    }
    clear(&intact);
    free(file.data);
}

/* Every bit of small files; more files, and bits further apart, with GF_PNG_FLIPS in the
 * environment. */
static void flipped_bits_are_met_alike(void **state) {
    const char *more = getenv("GF_PNG_FLIPS");
    tally count = {0};
    uint32_t seed = 21;

    (void)state;
    check_flips(&(png_spec){.width = 9, .height = 9, .color = 2, .depth = 8}, 1, &count);
    check_flips(&(png_spec){.width = 8, .height = 7, .depth = 16, .idat_bytes = 1}, 3, &count);
    check_flips(&(png_spec){.width = 30, .height = 9, .color = 3, .depth = 4, .idat_bytes = 50}, 1,
                &count);
    check_flips(&(png_spec){.width = 11, .height = 9, .color = 6, .depth = 8, .strategy = Z_FIXED},
                1, &count);
    check_flips(&(png_spec){.width = 11, .height = 3, .color = 4, .depth = 8, .level = -1}, 1,
                &count);
    for (int i = 0; i < (more != NULL ? atoi(more) : 4); i++) {
        const png_spec spec = random_spec(&seed, 40);
        check_flips(&spec, 7, &count);
    }
    print_message("%d files, %d accepted; codes with unused words %d, damaged ends %d\n",
                  count.files, count.accepted, count.unused_codes, count.damaged_ends);
    assert_true(count.accepted > 0 && count.accepted < count.files);
}

/* ---- what is wrong with whole chunks --------------------------------------------------------- */

/* Puts the file together anew: the chunks before the first IDAT, what `middle` holds, and from
 * IDAT's end on what was there. */
static png_bytes with_middle(const png_bytes *file, const png_bytes *middle) {
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
static unsigned char *stream_of(const void *raw, size_t size, size_t *packed) {
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

static void set_up(setting *s) {
    png_spec spec = grey;
    *s = (setting){0};
    spec.extras = &text;
    spec.extra_count = 1;
    s->intact = make(&spec, &s->file);
    for (size_t i = 0; i < sizeof s->raw; i++)
        s->raw[i] = (unsigned char)(i % (WIDTH + 1) == 0 ? i / (WIDTH + 1) % 5 : i * i % 7);
}

static void tear_down(setting *s) {
    clear(&s->intact);
    free(s->file.data);
}

/* Takes the chunks over; what libpng makes of the file. */
static bool try_middle(setting *s, png_bytes *middle, const char *what) {
    const int before = s->count.accepted;
    png_bytes made = with_middle(&s->file, middle);
    check_same(&made, &s->intact, what, middle->size, &s->count);
    free(made.data);
    free(middle->data);
    *middle = (png_bytes){0};
    return s->count.accepted != before;
}

/* One IDAT chunk. */
static bool try_stream(setting *s, const unsigned char *stream, size_t size, const char *what) {
    png_bytes middle = {0};
    png_put_chunk(&middle, "IDAT", stream, size, false);
    return try_middle(s, &middle, what);
}

static void streams_of_the_wrong_length(void **state) {
    setting s;
    size_t size;

    (void)state;
    set_up(&s);
    for (size_t rows = 0; rows <= HEIGHT + 4; rows++)
        for (size_t odd = 0; odd < 3; odd++) {
            const size_t bytes = rows * (WIDTH + 1) - (rows == 0 ? 0 : odd);
            unsigned char *stream = stream_of(s.raw, bytes, &size);
            /* Too much is passed over, too little is not. */
            assert_int_equal(try_stream(&s, stream, size, "rows"), bytes >= RAW);
            assert_int_equal(try_stream(&s, stream, size + 20, "rows and more"), bytes >= RAW);
            for (size_t less = 1; less <= 6; less++)
                assert_false(try_stream(&s, stream, size - less, "stream cut short"));
            free(stream);
        }
    assert_int_equal(s.count.damaged_ends + s.count.unused_codes, 0);
    tear_down(&s);
}

static void wrong_filters(void **state) {
    setting s;
    size_t size;

    (void)state;
    set_up(&s);
    for (size_t row = 0; row < HEIGHT; row++)
        for (int filter = 0; filter < 256; filter++) {
            unsigned char before = s.raw[row * (WIDTH + 1)];
            s.raw[row * (WIDTH + 1)] = (unsigned char)filter;
            unsigned char *stream = stream_of(s.raw, RAW, &size);
            assert_int_equal(try_stream(&s, stream, size, "filter"), filter < 5);
            free(stream);
            s.raw[row * (WIDTH + 1)] = before;
        }
    tear_down(&s);
}

static void every_zlib_header(void **state) {
    setting s;
    size_t size;
    int accepted = 0;

    (void)state;
    set_up(&s);
    unsigned char *stream = stream_of(s.raw, RAW, &size);
    for (unsigned head = 0; head < 65536; head++) {
        if (head % 31 != 0 && head % 37 != 0) /* the former are right */
            continue;
        stream[0] = (unsigned char)(head >> 8);
        stream[1] = (unsigned char)head;
        accepted += try_stream(&s, stream, size, "zlib header");
    }
    assert_true(accepted > 8);
    free(stream);
    tear_down(&s);
}

/* libpng overlooks what is wrong behind the rows where a chunk ends before it. */
static void damaged_ends_are_refused(void **state) {
    setting s;
    size_t size;
    png_bytes middle = {0};

    (void)state;
    set_up(&s);
    unsigned char *stream = stream_of(s.raw, RAW, &size);
    stream[size - 1] ^= 1;
    assert_false(try_stream(&s, stream, size, "Adler-32"));
    assert_int_equal(s.count.damaged_ends, 0);
    png_put_chunk(&middle, "IDAT", stream, size - 4, false);
    png_put_chunk(&middle, "IDAT", stream + size - 4, 4, false);
    assert_true(try_middle(&s, &middle, "Adler-32 in a chunk of its own"));
    assert_int_equal(s.count.damaged_ends, 1);
    free(stream);
    tear_down(&s);
}

static void chunks_in_the_wrong_place(void **state) {
    static const struct {
        const char *name;
        const char *data;
        size_t size;
    } others[] = {
        {"IDAT", "", 0},
        {"IDAT", "12345", 5},
        {"tEXt", "A\0b", 3},
        {"tRNS", "\0\1", 2},
        {"PLTE", "\1\2\3", 3},
        {"IHDR", "\0\0\0\x0a", 4},
        {"gAMA", "\0\0\1\1", 4},
        {"ABCD", "x", 1},
        {"abCd", "x", 1},
        {"ab1d", "x", 1},
        {"\xff\xff\xff\xff", "", 0},
        {"IEND", "", 0},
        {"IEND", "x", 1},
    };
    setting s;
    size_t size;
    char long_data[300] = "";

    (void)state;
    set_up(&s);
    unsigned char *stream = stream_of(s.raw, RAW, &size);
    for (size_t i = 0; i <= sizeof others / sizeof *others; i++)
        for (int bad = 0; bad < 2; bad++) {
            const bool is_long = i == sizeof others / sizeof *others;
            const char *name = is_long ? "IDAT" : others[i].name;
            const void *data = is_long ? long_data : others[i].data;
            const size_t bytes = is_long ? sizeof long_data : others[i].size;
            png_bytes middle = {0};
            /* Before, at every place within, and behind the image's data; there also after others.
             */
            for (size_t at = 0; at <= size; at += at < 4 || at + 6 > size ? 1 : 5) {
                png_put_chunk(&middle, "IDAT", stream, at, false);
                png_put_chunk(&middle, name, data, bytes, bad);
                png_put_chunk(&middle, "IDAT", stream + at, size - at, false);
                (void)try_middle(&s, &middle, name);
            }
            png_put_chunk(&middle, "IDAT", stream, size, false);
            png_put_chunk(&middle, "gAMA", "\0\0\1\1", 4, false);
            png_put_chunk(&middle, name, data, bytes, bad);
            png_put_chunk(&middle, name, data, bytes, false);
            (void)try_middle(&s, &middle, name);
            /* Data put into the stream may be behind the rows. */
            if (memcmp(name, "IDAT", 4) != 0)
                assert_int_equal(s.count.damaged_ends, 0);
            s.count.damaged_ends = 0;
        }
    assert_true(s.count.accepted > 20);
    assert_int_equal(s.count.unused_codes, 0);
    free(stream);
    tear_down(&s);
}

static void lengths_that_no_chunk_has(void **state) {
    setting s;

    (void)state;
    set_up(&s);
    for (size_t at = 8; at + 12 <= s.file.size; at += 12 + get32(s.file.data + at))
        for (unsigned bit = 0; bit < 32; bit++) {
            png_bytes broken = copy_of(&s.file);
            broken.data[at + bit / 8] ^= (unsigned char)(0x80u >> bit % 8);
            check_same(&broken, &s.intact, "length", at, &s.count);
            free(broken.data);
        }
    assert_int_equal(s.count.accepted, 0);
    tear_down(&s);
}

/* ---- what is wrong in the deflate stream ----------------------------------------------------- */

/* Matches that reach further back than the stream, at several places. */
static void distances_before_the_beginning(void **state) {
    setting s;
    int accepted = 0;

    (void)state;
    set_up(&s);
    for (size_t known = 0; known < RAW; known += 7) {
        unsigned char stream[4 * RAW] = {0x78, 0x01}, before[RAW];
        z_stream zlib = {0};
        for (size_t i = 0; i < RAW; i++)
            before[i] = s.raw[i];
        assert_int_equal(deflateInit2(&zlib, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflateSetDictionary(&zlib, before + known, (uInt)(RAW - known)), Z_OK);
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

typedef struct bits {
    unsigned char bytes[64];
    size_t count;
} bits;

static void put_bits(bits *to, unsigned value, unsigned n) {
    for (unsigned i = 0; i < n; i++, to->count++)
        to->bytes[to->count / 8] |= (unsigned char)((value >> i & 1) << to->count % 8);
}

/* A pixel of 0 in a block whose code has four words of two bits and uses two of them. */
static void unused_words_of_codes(void **state) {
    const png_spec pixel = {.width = 1, .height = 1, .depth = 8};
    const unsigned char stored[] = {0, 0};
    bits stream = {{0x78, 0x01}, 16};
    png_bytes file, middle = {0};
    tally count = {0};
    outcome intact = make(&pixel, &file);

    (void)state;
    memset(intact.pixels, 0, 1);
    put_bits(&stream, 5, 3);  /* the last block, with codes of its own: */
    put_bits(&stream, 0, 10); /* 257 for literals, one for distances, */
    put_bits(&stream, 14, 4); /* in a code of which 18 lengths are told: */
    put_bits(&stream, 0, 6);  /* 16 and 17: none */
    put_bits(&stream, 1, 3);  /* 18: word 0 */
    put_bits(&stream, 0, 18); /* 0, 8, 7, ... */
    put_bits(&stream, 0, 18); /* ..., 13: none */
    put_bits(&stream, 2, 3);  /* 2: word 11 */
    put_bits(&stream, 0, 3);  /* 14: none */
    put_bits(&stream, 2, 3);  /* 1: word 10 */
    put_bits(&stream, 3, 2);  /* literal 0 has two bits: 00; */
    put_bits(&stream, 0, 1);  /* 138 have none */
    put_bits(&stream, 127, 7);
    put_bits(&stream, 0, 1); /* and 117 */
    put_bits(&stream, 106, 7);
    put_bits(&stream, 3, 2); /* the end has two bits: 01; */
    put_bits(&stream, 1, 2); /* distance 0 has one */
    put_bits(&stream, 0, 4); /* 0 0 */
    put_bits(&stream, 2, 2); /* end */
    stream.count = (stream.count + 7) / 8 * 8;
    const uint32_t sum = (uint32_t)adler32(adler32(0, NULL, 0), stored, 2);
    for (unsigned i = 0; i < 4; i++)
        put_bits(&stream, sum >> (24 - 8 * i) & 255, 8);
    png_put_chunk(&middle, "IDAT", stream.bytes, stream.count / 8, false);
    png_bytes made = with_middle(&file, &middle);
    check_same(&made, &intact, "unused words", 0, &count);
    assert_int_equal(count.unused_codes, 1);
    clear(&intact);
    free(made.data);
    free(middle.data);
    free(file.data);
}

/* Anything at all, from some place on. */
static void streams_of_nonsense(void **state) {
    const char *more = getenv("GF_PNG_FLIPS");
    uint32_t seed = 77;
    setting s;
    size_t size;

    (void)state;
    set_up(&s);
    for (int i = 0; i < (more != NULL ? 100 * atoi(more) : 3000); i++) {
        unsigned char *stream = stream_of(s.raw, RAW, &size);
        size_t from = 2 + next_random(&seed) % (size - 2), n = 1 + next_random(&seed) % 40;
        for (size_t at = from; at < size && at < from + n; at++)
            stream[at] = (unsigned char)next_random(&seed);
        (void)try_stream(&s, stream, size, "nonsense");
        free(stream);
    }
    tear_down(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_files_are_refused_alike),
        cmocka_unit_test(flipped_bits_are_met_alike),
        cmocka_unit_test(streams_of_the_wrong_length),
        cmocka_unit_test(wrong_filters),
        cmocka_unit_test(every_zlib_header),
        cmocka_unit_test(damaged_ends_are_refused),
        cmocka_unit_test(chunks_in_the_wrong_place),
        cmocka_unit_test(lengths_that_no_chunk_has),
        cmocka_unit_test(distances_before_the_beginning),
        cmocka_unit_test(unused_words_of_codes),
        cmocka_unit_test(streams_of_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
