/* Raw rows without a header, read and written with a given shape. */
#include "io_util.h"
#include "pipe.h"

static gf_raw shape(const char *text) {
    gf_raw raw;
    assert_ok(gf_raw_parse(text, &raw, &why));
    return raw;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Check the pixels of a file, and that it has no metadata. */
static void assert_raw(const char *path, const char *text, uint64_t strip, const void *expected) {
    const gf_raw raw = shape(text);
    gf_format format;
    AUTO(free) unsigned char *pixels;
    AUTO(metadata) gf_metadata metadata;
    assert_ok(
        load_image(path, &(gf_limits){.raw = &raw}, strip, &format, &pixels, &metadata, &why));
    assert_true(gf_format_equal(&format, &raw.format));
    assert_memory_equal(pixels, expected, gf_row_bytes(&format) * format.height);
    assert_int_equal(metadata.count, 0);
    assert_true(metadata.pfm_scale == 0);
}

/* Read the same pixels from a file and from a pipe, with strips of every height. */
static void assert_reads(const void *file, size_t size, const char *text, const void *expected) {
    put_bytes(in_directory("x.png"), file, size);
    for (uint64_t strip = 1; strip <= shape(text).format.height; strip++) {
        assert_raw(in_directory("x.png"), text, strip, expected);
        test_feeder *feeder = test_feed(in_directory("fifo"), file, size);
        assert_raw(in_directory("fifo"), text, strip, expected);
        test_feed_end(feeder);
    }
}

TEST(reads_every_type_and_order) {
    const uint16_t deep[] = {0x0102, 0xfffe, 3, 0xa55a};
    const uint32_t bits[] = {0x3f800000, 0x7fc12345, 0x80000000, 1}; /* f32, including a NaN */
    assert_reads(TEXT("abcdef"), "3x2:u8", "abcdef");
    assert_reads(TEXT("abcdef"), "2x3:u8", "abcdef");
    assert_reads(TEXT("\x02\x01\xfe\xff\x03\x00\x5a\xa5"), "2x2:u16", deep);
    assert_reads(TEXT("\x02\x01\xfe\xff\x03\x00\x5a\xa5"), "2x2:u16le", deep);
    assert_reads(TEXT("\x01\x02\xff\xfe\x00\x03\xa5\x5a"), "2x2:u16be", deep);
    assert_reads(TEXT("\x00\x00\x80\x3f\x45\x23\xc1\x7f\x00\x00\x00\x80\x01\x00\x00\x00"),
                 "2x2:f32", bits);
    assert_reads(TEXT("\x00\x00\x80\x3f\x45\x23\xc1\x7f\x00\x00\x00\x80\x01\x00\x00\x00"),
                 "1x4:f32le", bits);
    assert_reads(TEXT("\x3f\x80\x00\x00\x7f\xc1\x23\x45\x80\x00\x00\x00\x00\x00\x00\x01"),
                 "2x2:f32be", bits);
}

TEST(reads_channels_after_an_offset) {
    const uint16_t deep[] = {0x0102, 0xfffe, 3, 0xa55a};
    static unsigned char far[10003];
    assert_reads(TEXT("abcdefghijkl"), "2x2x3:u8", "abcdefghijkl");
    assert_reads(TEXT("abcdefghijkl"), "1x3x4:u8", "abcdefghijkl");
    assert_reads(TEXT("#abcdef"), "3x1x2:u8+1", "abcdef");
    assert_reads(TEXT("header\x01\x02\xff\xfe\x00\x03\xa5\x5a"), "1x1x4:u16be+6", deep);
    memcpy(far + 9999, "rows", 4);
    assert_reads(far, sizeof far, "2x2:u8+9999", "rows");
    /* The offset is larger than the head that identifies other formats. */
    assert_reads("P5 1 1 255\nxxxxxxxxxabc", 23, "3x1:u8+20", "abc");
}

/* Bytes that identify other formats are pixels here. */
TEST(ignores_the_contents) {
    assert_reads(TEXT("\x89PNG\r\n\x1a\n"), "4x2:u8", "\x89PNG\r\n\x1a\n");
    assert_reads(TEXT("P5 1 1 255\r\nz"), "13x1:u8", "P5 1 1 255\r\nz");
    assert_reads(TEXT("P5 1 1 255\r\nz"), "2x1:u8+11", "\nz");
}

static void assert_fails(const void *file, size_t size, const char *text, const char *part,
                         const char *piped) {
    const gf_raw raw = shape(text);
    assert_bytes_fail("x.raw", file, size, &(gf_limits){.raw = &raw}, part);
    if (piped) {
        test_feeder *feeder = test_feed(in_directory("fifo"), file, size);
        assert_load_fails(in_directory("fifo"), &(gf_limits){.raw = &raw}, piped);
        test_feed_end(feeder);
    }
}

TEST(rejects_a_wrong_shape) {
    assert_fails(TEXT("abcde"), "3x2:u8", "has 5 bytes, but --raw specifies 6; correct its shape",
                 "the file ends too early, in row 2 of 2");
    assert_fails(TEXT("abcdefg"), "3x2:u8", "has 7 bytes, but --raw specifies 6; correct its shape",
                 "contains more than the 6 bytes that --raw specifies; correct its shape");
    assert_fails(TEXT("abcdef"), "3x2:u8+1", "has 6 bytes, but --raw specifies 7",
                 "the file ends too early, in row 2 of 2");
    assert_fails(TEXT("abcdef"), "1x2x3:u16be+100", "has 6 bytes, but --raw specifies 112",
                 "the file ends too early, in row 1 of 2");
    /* CR LF is data, not the end of a header line. */
    assert_fails(TEXT("\r\nabc"), "3x1:u8+1", "has 5 bytes, but --raw specifies 4",
                 "contains more than the 4 bytes");
    assert_fails(TEXT(""), "1x1:u8", "the file is empty", "the file is empty");
    assert_fails(TEXT("a"), "1000000000x1000000000x1:u8", "--max-pixels", "--max-pixels");
    assert_fails(TEXT("a"), "1x1:u8+9223372036854775807", "more bytes than any file", NULL);
}

TEST(enforces_the_limits) {
    const gf_raw raw = shape("3x2:u16"), none = {{0, 1, 1, GF_U8, false}, 0, false},
                 odd = {{1, 1, 5, GF_U8, false}, 0, false},
                 far = {{1, 1, 1, GF_U8, false}, UINT64_MAX, false};
    const struct {
        gf_limits limits;
        const char *part;
    } cases[] = {{{.raw = &raw, .max_pixels = 5},
                  "3x2 pixels are over the limit of 5; raise it with --max-pixels"},
                 {{.raw = &raw, .max_memory = 5}, "6 bytes for a row are over the limit of 5"},
                 {{.raw = &none}, "empty"},
                 {{.raw = &odd}, "5 channels"},
                 {{.raw = &far}, "--raw specifies more bytes than any file can have"}};
    put_bytes(in_directory("x.raw"), "abcdefghijkl", 12);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_open_fails(in_directory("x.raw"), &cases[i].limits, cases[i].part);
}

TEST(reports_the_format) {
    static const struct {
        const char *text, *stored;
    } cases[] = {{"4x2:u8", "8-bit raw"},
                 {"2x2:u16", "16-bit raw, little-endian"},
                 {"2x2:u16be", "16-bit raw, big-endian"},
                 {"1x1:f32be+4", "32-bit float raw, big-endian, offset 4"}};
    put_bytes(in_directory("x.raw"), "abcdefgh", 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gf_raw raw = shape(cases[i].text);
        const gf_file_options options = {.raw = &raw};
        gf_file_info info;
        gf_format format;
        AUTO(free) void *pixels;
        assert_ok(gf_inspect_file(in_directory("x.raw"), &options, &info, &why));
        assert_string_equal(info.kind, "raw");
        assert_string_equal(info.stored, cases[i].stored);
        assert_string_equal(info.metadata, "");
        assert_true(gf_format_equal(&info.format, &raw.format));
        assert_ok(gf_load_file(in_directory("x.raw"), &options, &format, &pixels, NULL, &why));
        assert_true(gf_format_equal(&format, &raw.format));
    }
}

TEST(reads_standard_input) {
    put_bytes(in_directory("x"), "..abcdef", 8);
    assert_non_null(freopen(in_directory("x"), "rb", stdin));
    assert_raw("-", "3x2:u8+2", 1, "abcdef");
    assert_int_equal(fgetc(stdin), EOF);
    /* If standard input was partly read before, the size of the file is not checked. */
    assert_int_equal(fseek(stdin, 2, SEEK_SET), 0);
    assert_raw("-", "3x2:u8", 1, "abcdef");
}

/* ---- several threads ------------------------------------------------------------------------- */

TEST(reads_the_same_pixels_with_any_threads) {
    static const gf_type types[] = {GF_U8, GF_U16, GF_F32};
    for (size_t t = 0; t < 3; t++)
        for (int big = 0; big <= 1; big++) {
            const gf_raw raw = {{1001, 900, 3, types[t], false}, 777, big == 1};
            const size_t size = gf_type_bytes(types[t]);
            const size_t bytes = gf_row_bytes(&raw.format) * raw.format.height;
            AUTO(free) unsigned char *pixels = random_pixels(&raw.format, (uint32_t)t);
            AUTO(free) unsigned char *file = test_alloc(raw.offset + bytes);
            memset(file, PAINT, raw.offset);
            for (size_t i = 0; i < bytes; i++)
                file[raw.offset + i] =
                    pixels[big == gf_host_is_little() ? i / size * size + size - 1 - i % size : i];
            put_bytes(in_directory("x.raw"), file, raw.offset + bytes);
            for (uint32_t threads = 1; threads <= 16; threads += 5) {
                const gf_limits limits = {.raw = &raw, .threads = threads};
                AUTO(source) gf_source *source = open_source(in_directory("x.raw"), &limits);
                assert_true(threads == 1 ? source->threads == 0 : source->threads > 1);
                assert_loads(in_directory("x.raw"), &limits, 400, &raw.format, pixels);
            }
        }
}

/* ---- writing --------------------------------------------------------------------------------- */

TEST(writes_exact_bytes) {
    const uint16_t deep[] = {0x0102, 0xfffe, 3};
    const float floats[] = {1.0f, -2.0f};
    const gf_file_options raw = {.write.format = "raw"};
    assert_writes("a.raw", &(gf_format){2, 1, 2, GF_U8, true}, "abcd", TEXT("abcd"));
    assert_writes("b.RAW", &(gf_format){1, 1, 3, GF_U16, false}, deep,
                  TEXT("\x02\x01\xfe\xff\x03\x00"));
    assert_ok(save_image(in_directory("c.dat"), &(gf_format){1, 2, 1, GF_F32, false}, floats, NULL,
                         &raw, 1));
    assert_bytes(in_directory("c.dat"), TEXT("\x00\x00\x80\x3f\x00\x00\x00\xc0"));
    assert_error(save_image(in_directory("a.raw"), &(gf_format){2, 1, 2, GF_U8, true}, "efgh", NULL,
                            NULL, 1),
                 GF_FAILED, "a.raw: already exists");
    assert_bytes(in_directory("a.raw"), TEXT("abcd"));
}

/* Every type and number of channels; small images, and one large enough for several threads. */
TEST(reads_all_formats_that_it_writes) {
    static const uint64_t sizes[][2] = {{1, 1}, {13, 1}, {31, 22}, {1500, 500}};
    for (uint32_t channels = 1; channels <= 4; channels++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int type = GF_U8; type <= GF_F32; type++) {
                const gf_raw raw = {
                    {sizes[s][0], sizes[s][1], channels, (gf_type)type, channels % 2 == 0},
                    0,
                    false};
                const gf_limits limits = {.raw = &raw, .threads = 3};
                const gf_file_options options = {.force = true};
                AUTO(free) unsigned char *pixels = random_pixels(&raw.format, channels);
                assert_ok(
                    save_image(in_directory("x.raw"), &raw.format, pixels, NULL, &options, 300));
                assert_loads(in_directory("x.raw"), &limits, 300, &raw.format, pixels);
            }
}

int main(void) {
    return test_main_in_directory();
}
