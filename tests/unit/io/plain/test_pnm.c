#include "io_util.h"
#include "pipe.h"

static void assert_reads(const void *file, size_t size, uint64_t width, uint64_t height,
                         uint32_t channels, gf_type type, const void *expected) {
    assert_bytes_load("x.pnm", file, size,
                      &(gf_format){width, height, channels, type, strstr(file, "_ALPHA")},
                      expected);
}

static void assert_fails(const void *file, size_t size, const char *part) {
    assert_bytes_fail("x.pnm", file, size, NULL, part);
}

/* Header of a PAM file. */
#define PAM(width, height, depth, maxval, more)                                                    \
    "P7\nWIDTH " #width "\nHEIGHT " #height "\nDEPTH " #depth "\nMAXVAL " #maxval "\n" more        \
    "ENDHDR\n"

/* ---- reading --------------------------------------------------------------------------------- */

TEST(reads_headers) {
    const uint16_t deep[] = {0x0102, 0xfffe};
    assert_reads(TEXT("P5\n2 1\n255\n\x07#"), 2, 1, 1, GF_U8, "\x07#");
    assert_reads(TEXT("P5 # a comment\n# another\n 0002\t\v\f\r1#x\n#\n255\nab"), 2, 1, 1, GF_U8,
                 "ab");
    assert_reads(TEXT("P5 1 2 00255 \n\n"), 1, 2, 1, GF_U8, "\n\n");
    assert_reads(TEXT("P5#\n1 1 255#to the end of the line\nz"), 1, 1, 1, GF_U8, "z");
    assert_reads(TEXT("P6 1 2 255 rgbRGB and what follows"), 1, 2, 3, GF_U8, "rgbRGB");
    assert_reads(TEXT("P5 2 1 65535 \x01\x02\xff\xfe"), 2, 1, 1, GF_U16, deep);
    assert_reads(TEXT(PAM(2, 1, 2, 255, "TUPLTYPE GRAYSCALE_ALPHA\n") "abcd"), 2, 1, 2, GF_U8,
                 "abcd");
    assert_reads(TEXT("P7\n# comment\n\n  MAXVAL\t65535 \nDEPTH 1\nHEIGHT 1\nWIDTH 2\nENDHDR\n"
                      "\x01\x02\xff\xfe"),
                 2, 1, 1, GF_U16, deep);
    assert_reads(TEXT(PAM(1, 1, 4, 255, "") "#abc"), 1, 1, 4, GF_U8, "#abc");
    assert_reads(TEXT("P7\r\nWIDTH 1\r\nHEIGHT 1\r\nDEPTH 1\r\nMAXVAL 255\r\nTUPLTYPE\n"
                      "ENDHDR \r\n\n"),
                 1, 1, 1, GF_U8, "\n");
}

TEST(reads_plain_formats) {
    const uint16_t deep[] = {0, 65535, 300, 7};
    assert_reads(TEXT("P2\n3 2\n255\n0 1 2\n# between\n003 254 255"), 3, 2, 1, GF_U8,
                 "\x00\x01\x02\x03\xfe\xff");
    assert_reads(TEXT("P2 1 #\r1 255 7"), 1, 1, 1, GF_U8, "\x07"); /* a comment that ends with CR */
    assert_reads(TEXT("P3 1 2 255 1 2 3\n\n4 5 6\n"), 1, 2, 3, GF_U8, "\1\2\3\4\5\6");
    assert_reads(TEXT("P2 2 2 65535 0 65535 300 7 "), 2, 2, 1, GF_U16, deep);
    assert_fails(TEXT("P2 1 2 255 0 256"), "row 2 of 2 has a sample greater than maxval 255");
    assert_fails(TEXT("P2 2 1 255 0 -1"), "sample is not a number");
    assert_fails(TEXT("P2 2 1 255 0 1x"), "sample is not a number");
    assert_fails(TEXT("P2 2 1 255 0"), "ends too early");
}

/* 0 is white, 1 is black. Each binary row starts at a byte. */
TEST(reads_bitmaps) {
    assert_reads(TEXT("P1\n3 2\n0 1 0\n#c\n101"), 3, 2, 1, GF_U8, "\xff\0\xff\0\xff\0");
    assert_reads(TEXT("P1 2 2#\n0#1\n1\r10 and more"), 2, 2, 1, GF_U8, "\xff\0\0\xff");
    assert_reads(TEXT("P4 1 3 \x80\x7f\xff"), 1, 3, 1, GF_U8, "\0\xff\0");
    assert_reads(TEXT("P4\n11 2\n\xa5\x5f\x0f\x80"), 11, 2, 1, GF_U8,
                 "\0\xff\0\xff\xff\0\xff\0\xff\0\xff\xff\xff\xff\xff\0\0\0\0\0\xff\xff");
    assert_reads(TEXT("P4 8 1\r\n\x0f"), 8, 1, 1, GF_U8, "\xff\xff\xff\xff\0\0\0\0");
    assert_reads(TEXT(PAM(2, 1, 1, 1, "TUPLTYPE BLACKANDWHITE\n") "\0\1"), 2, 1, 1, GF_U8,
                 "\0\xff"); /* here 1 is white */
    assert_reads(TEXT(PAM(1, 1, 2, 1, "TUPLTYPE BLACKANDWHITE_ALPHA\n") "\1\0"), 1, 1, 2, GF_U8,
                 "\xff\0");
    assert_fails(TEXT("P1 2 1 0"), "ends too early");
    assert_fails(TEXT("P1 2 1 02"), "a sample is not 0 or 1");
    assert_fails(TEXT("P4 9 2 \xff\xff\xff"), "ends too early, in row 2 of 2");
    assert_fails(TEXT("P4 0 2 \xff"), "empty");
    assert_fails(TEXT("P4 18446744073709551615 1 \xff"), "--max-pixels");
    assert_fails(TEXT(PAM(1, 1, 1, 255, "TUPLTYPE BLACKANDWHITE\n") "a"),
                 "'BLACKANDWHITE' is not supported");
    assert_fails(TEXT(PAM(1, 1, 1, 1, "TUPLTYPE BLACKANDWHITE_ALPHA\n") "\1"),
                 "DEPTH 1 with TUPLTYPE 'BLACKANDWHITE_ALPHA'");
    assert_fails(TEXT(PAM(1, 1, 1, 1, "") "\2"), "row 1 of 1 has a sample greater than maxval 1;");
}

/* Samples of any other maxval are scaled to 255 or 65535. */
TEST(scales_samples) {
    const uint16_t ten[] = {0, 64, 32800, 65535}, twelve[] = {16, 65535, 32759, 32776};
    assert_reads(TEXT("P2 4 1 15 0 1 7 15"), 4, 1, 1, GF_U8, "\0\x11\x77\xff");
    assert_reads(TEXT("P5 3 1 2 \0\1\2"), 3, 1, 1, GF_U8, "\0\x80\xff"); /* 127.5: up */
    assert_reads(TEXT("P6 1 1 254 \x7e\x7f\xfe"), 1, 1, 3, GF_U8, "\x7e\x80\xff");
    assert_reads(TEXT("P5 4 1 1023\n\0\0\0\1\2\0\3\xff"), 4, 1, 1, GF_U16, ten);
    assert_reads(TEXT("P5 4 1 1023\r\n\0\0\0\1\2\0\3\xff"), 4, 1, 1, GF_U16, ten);
    assert_reads(TEXT("P2 4 1 1023 0 1 512 1023"), 4, 1, 1, GF_U16, ten);
    assert_reads(TEXT(PAM(1, 2, 2, 4095, "") "\0\1\x0f\xff\x07\xff\x08\0"), 1, 2, 2, GF_U16,
                 twelve);
    assert_fails(TEXT("P5 1 1 0 a"), "maxval 0 is not in the range 1 to 65535");
    assert_fails(TEXT("P5 1 1 65536 ab"), "maxval 65536 is not in the range 1 to 65535");
    assert_fails(TEXT("P5 2 3 15 \1\2\3\4\5\x10"),
                 "row 3 of 3 has a sample greater than maxval 15; the file is damaged");
    assert_fails(TEXT("P5 1 2 1023 \3\xff\4\0"),
                 "row 2 of 2 has a sample greater than maxval 1023");
    assert_fails(TEXT("P3 1 2 15 1 2 3 4 16 6"), "row 2 of 2 has a sample greater than maxval 15");
}

/* Every sample of a file of one row is the nearest integer of sample * top / maxval. */
TEST(scales_every_sample) {
    static const uint32_t maxvals[] = {1,    2,    3,     100,   127,   128,  253,
                                       254,  256,  257,   511,   999,   1000, 1023,
                                       4095, 9999, 16383, 32768, 65533, 65534};
    for (size_t m = 0; m < sizeof maxvals / sizeof *maxvals; m++) {
        const uint32_t maxval = maxvals[m], size = maxval < 256 ? 1 : 2;
        const uint32_t top = size == 1 ? 255 : 65535;
        AUTO(free) char *file = test_alloc(100 + size * (maxval + 1));
        gf_format format;
        AUTO(free) unsigned char *pixels;
        char *to = file + sprintf(file, "P5 %u 1 %u\n", maxval + 1, maxval);
        for (uint32_t v = 0; v <= maxval; v++) {
            if (size == 2)
                *to++ = (char)(v >> 8);
            *to++ = (char)v;
        }
        put_bytes(in_directory("x.pnm"), file, (size_t)(to - file));
        assert_ok(load_image(in_directory("x.pnm"), NULL, 2, &format, &pixels, NULL, &why));
        for (uint32_t v = 0; v <= maxval; v++) {
            uint16_t got = pixels[v * size];
            if (size == 2)
                memcpy(&got, pixels + 2 * v, 2);
            /* |got - v * top / maxval| <= 1/2, and a tie is rounded up */
            const int64_t off = 2 * ((int64_t)got * maxval - (int64_t)v * top);
            assert_true(off <= (int64_t)maxval && off > -(int64_t)maxval);
        }
    }
}

static void read_with_threads(const char *file, size_t size, uint32_t threads,
                              const unsigned char *expected, const char *message) {
    const gf_limits limits = {.threads = threads};
    gf_format format;
    unsigned char *pixels;
    put_bytes(in_directory("x.pnm"), file, size);
    for (uint64_t strip = 300; strip <= 300 * 300 * 300; strip *= 300 * 300) {
        const gf_status status =
            load_image(in_directory("x.pnm"), &limits, strip, &format, &pixels, NULL, &why);
        if (message) {
            assert_int_equal(status, GF_FAILED);
            assert_message(&why, message);
        } else {
            if (status != GF_OK)
                fail_msg("%s", why.message);
            assert_memory_equal(pixels, expected, gf_row_bytes(&format) * format.height);
            free(pixels);
        }
    }
}

/* Large files: several threads return the pixels and the errors of one. */
TEST(converts_with_any_threads) {
    static const uint32_t widths[] = {3, 4093};
    uint32_t seed = 3;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        const uint32_t width = widths[w], height = 3000000 / width * 2, packed = (width + 7) / 8;
        const size_t samples = (size_t)width * height;
        AUTO(free) char *file = test_alloc(100 + samples);
        AUTO(free) unsigned char *pixels = test_alloc(samples);
        for (uint32_t threads = 1; threads <= 7; threads += 6) {
            int head = sprintf(file, "P4\n%u %u\n", width, height);
            for (size_t i = 0; i < (size_t)packed * height; i++)
                file[(size_t)head + i] = (char)next_random(&seed);
            for (uint32_t y = 0; y < height; y++)
                for (uint32_t x = 0; x < width; x++) {
                    const unsigned byte =
                        (unsigned char)file[(size_t)head + (size_t)y * packed + x / 8];
                    pixels[(size_t)y * width + x] = byte >> (7 - x % 8) & 1 ? 0 : 255;
                }
            read_with_threads(file, (size_t)head + (size_t)packed * height, threads, pixels, NULL);

            head = sprintf(file, "P5\n%u %u\n51\n", width, height);
            for (size_t i = 0; i < samples; i++) {
                file[(size_t)head + i] = (char)(next_random(&seed) % 52);
                pixels[i] = (unsigned char)(file[(size_t)head + i] * 5);
            }
            read_with_threads(file, (size_t)head + samples, threads, pixels, NULL);
            char message[99];
            sprintf(message, "row %u of %u has a sample greater than maxval 51", height / 3,
                    height);
            file[(size_t)head + (size_t)(height / 3) * width - 1] = 52;
            file[(size_t)head + samples - 1] = 53;
            read_with_threads(file, (size_t)head + samples, threads, NULL, message);
        }
    }
}

TEST(rejects_formats_that_lose_values) {
    assert_fails(TEXT(PAM(1, 1, 5, 255, "") "abcde"), "DEPTH 5");
    assert_fails(TEXT(PAM(1, 1, 4, 255, "TUPLTYPE CMYK\n") "abcd"), "CMYK");
    assert_fails(TEXT(PAM(1, 1, 3, 255, "TUPLTYPE GRAYSCALE\n") "abc"),
                 "DEPTH 3 with TUPLTYPE 'GRAYSCALE'");
    assert_fails(TEXT("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nENDHDR\na"), "no MAXVAL");
}

TEST(reports_damage) {
    static const char pgm[] = "P5 3 2 255\nabcdef";
    static const char pam[] =
        "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\na";
    char line[1000] = "";
    assert_fails(TEXT("P5 0 1 255 "), "empty");
    assert_fails(TEXT("P5 -1 1 255 a"), "width is not a number");
    assert_fails(TEXT("P5 1x 1 255 a"), "width is not a number");
    assert_fails(TEXT("P5 99999999999999999999999 1 255 a"), "--max-pixels");
    assert_fails(TEXT("P5 18446744073709551615 18446744073709551615 255 a"), "--max-pixels");
    assert_fails(TEXT("P5 100000 1000 255 a"), "the file ends too early, in row 1 of 1000");
    assert_fails(TEXT("P5x"), "unsupported image format");
    assert_fails(TEXT("P8 1 1 255 a"), "unsupported image format");
    assert_fails(TEXT("P7\nWIDTH x\n"), "WIDTH is not a number");
    assert_fails(TEXT("P7\nNAME x\n"), "NAME");
    assert_fails(TEXT("Pf 1 1 0\nabcd"), "scale");
    assert_fails(TEXT("Pf 1 1 nan\nabcd"), "scale");
    assert_fails(TEXT("Pf 1 1 1e999\nabcd"), "scale");
    assert_fails(TEXT("P5 1 # a comment without an end"), "ends too early");
    assert_fails(TEXT("P5 1 1 \xff"), "maxval is not a number");
    assert_fails(TEXT("Pf 1 1 \x01\nabcd"), "scale is not a number");
    assert_fails(TEXT("Pf 1 1 -1\xe9\nabcd"), "scale is not a number");
    assert_fails(
        TEXT(
            "Pf 1 1 -1.00000000000000000000000000000000000000000000000000000000000000000000000000000000001\nabcd"),
        "scale is not a number");
    assert_fails(TEXT("P7\nWIDTH\n"), "ends too early");
    assert_fails(TEXT("P7\nWIDTH\nHEIGHT 1\n"), "WIDTH is not a number");
    assert_fails(TEXT("P7\nWIDTH 1 2\n"), "unknown header line starting with 2");
    assert_fails(TEXT("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR a\n"),
                 "ENDHDR is not on a line of its own");
    assert_fails(TEXT(PAM(99999999999999999999999, 1, 1, 255, "")), "--max-pixels");
    assert_fails(TEXT(PAM(1, 1, 0, 255, "")), "DEPTH 0");
    assert_fails(TEXT("P7\nTUPLTYPE RGB\nTUPLTYPE RGB\n"),
                 "unknown header line starting with TUPLTYPE");
    assert_fails(
        TEXT("P7\nTUPLTYPE A_TUPLE_OF_SAMPLES_THAT_HAS_A_NAME_LONGER_THAN_ANY_THAT_CAN_BE_READ\n"),
        "TUPLTYPE");
    memset(line, 'W', sizeof line - 1);
    memcpy(line, "P7\n", 3);
    assert_fails(line, sizeof line - 1, "a header line is too long");
    line[3] = '#'; /* a comment may have this length */
    assert_fails(line, sizeof line - 1, "ends too early");
    for (size_t size = 3; size < sizeof pgm - 1; size++)
        assert_fails(pgm, size, "ends too early");
    for (size_t size = 3; size < sizeof pam - 1; size++)
        assert_fails(pam, size, "ends too early");
}

/* ---- writing --------------------------------------------------------------------------------- */

TEST(writes_exact_bytes) {
    const uint16_t deep[] = {0x0102, 0xfffe, 3};
    const float floats[] = {1.0f, -2.0f};
    const gf_metadata scaled = {.pfm_scale = 0.1};
    assert_writes("x.pgm", &(gf_format){2, 1, 1, GF_U8, false}, "ab", TEXT("P5\n2 1\n255\nab"));
    assert_writes("x.PPM", &(gf_format){1, 1, 3, GF_U16, false}, deep,
                  TEXT("P6\n1 1\n65535\n\x01\x02\xff\xfe\x00\x03"));
    assert_writes("x.pam", &(gf_format){1, 1, 4, GF_U8, true}, "rgba",
                  TEXT(PAM(1, 1, 4, 255, "TUPLTYPE RGB_ALPHA\n") "rgba"));
    assert_writes("x.pfm", &(gf_format){1, 2, 1, GF_F32, false}, floats,
                  TEXT("Pf\n1 2\n-1.0\n\x00\x00\x00\xc0\x00\x00\x80\x3f"));
    assert_ok(save_image(in_directory("y.pfm"), &(gf_format){1, 1, 1, GF_F32, false}, floats,
                         &scaled, NULL, 1));
    assert_bytes(in_directory("y.pfm"), TEXT("Pf\n1 1\n-0.1\n\x00\x00\x80\x3f"));
}

TEST(reads_all_formats_that_it_writes) {
    static const struct {
        const char *name;
        uint32_t channels;
    } cases[] = {{"x.pgm", 1}, {"x.ppm", 3}, {"x.pnm", 1}, {"x.pnm", 3}, {"x.pam", 1},
                 {"x.pam", 2}, {"x.pam", 3}, {"x.pam", 4}, {"x.pfm", 1}, {"x.pfm", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t channels = cases[i].channels;
        for (int type = i < 8 ? GF_U8 : GF_F32; type <= (i < 8 ? GF_U16 : GF_F32); type++)
            assert_round_trips(cases[i].name,
                               (gf_format){0, 0, channels, (gf_type)type, channels % 2 == 0});
    }
}

TEST(rejects_formats_by_extension) {
    assert_rejected("y.pgm", &(gf_format){1, 1, 3, GF_U8, false}, "write .ppm");
    assert_rejected("y.ppm", &(gf_format){1, 1, 1, GF_U8, false}, "write .pgm");
    assert_rejected("y.pgm", &(gf_format){1, 1, 2, GF_U8, true},
                    "does not support an alpha channel");
    assert_rejected("y.pnm", &(gf_format){1, 1, 4, GF_U16, true}, "write .png or .pam");
    assert_rejected("y.ppm", &(gf_format){1, 1, 3, GF_F32, false}, "write .tif");
    assert_rejected("y.pam", &(gf_format){1, 1, 4, GF_F32, true}, "write .tif");
    assert_rejected("y.pfm", &(gf_format){1, 1, 1, GF_U16, false}, "only f32");
    assert_rejected("y.pfm", &(gf_format){1, 1, 4, GF_F32, true},
                    "does not support an alpha channel");
}

/* ---- PFM ------------------------------------------------------------------------------------- */

/* Two rows. The first float of the upper row is a NaN with a payload. */
static const uint32_t pfm_pixels[] = {0x7fc12345, 0x3f800000, 0x00000001, 0x80000000};
static const unsigned char pfm_little[] =
    "Pf\n2 2\n-2.5\n\x01\x00\x00\x00\x00\x00\x00\x80"
    "\x45\x23\xc1\x7f\x00\x00\x80\x3f";
static const unsigned char pfm_big[] =
    "Pf 2 2 2.5 \x00\x00\x00\x01\x80\x00\x00\x00"
    "\x7f\xc1\x23\x45\x3f\x80\x00\x00";

static void assert_is_pfm(const char *path) {
    gf_format format;
    AUTO(free) unsigned char *pixels;
    AUTO(metadata) gf_metadata metadata;
    assert_ok(load_image(path, NULL, 1, &format, &pixels, &metadata, &why));
    assert_int_equal(format.type, GF_F32);
    assert_int_equal(format.channels, 1);
    assert_memory_equal(pixels, pfm_pixels, sizeof pfm_pixels);
    assert_true(metadata.pfm_scale == 2.5);
}

TEST(reads_pfm_of_both_orders) {
    put_bytes(in_directory("l.pfm"), pfm_little, sizeof pfm_little - 1);
    assert_is_pfm(in_directory("l.pfm"));
    put_bytes(in_directory("b.pfm"), pfm_big, sizeof pfm_big - 1);
    assert_is_pfm(in_directory("b.pfm"));
}

/* Read a file from a pipe. message: of the error; NULL: pixels are expected. */
static void assert_piped(const void *file, size_t size, uint64_t max_memory, const char *pixels,
                         const char *message) {
    const char *path = in_directory("fifo");
    test_feeder *feeder = test_feed(path, file, size);
    const gf_limits limits = {.max_memory = max_memory};
    gf_format format;
    AUTO(free) unsigned char *got;
    const gf_status status = load_image(path, &limits, 1, &format, &got, NULL, &why);
    assert_int_equal(status, message ? GF_FAILED : GF_OK);
    if (message)
        assert_message(&why, message);
    else
        assert_memory_equal(got, pixels, gf_row_bytes(&format) * format.height);
    test_feed_end(feeder);
}

TEST(reads_pipes) {
    test_feeder *feeder = test_feed(in_directory("fifo"), pfm_big, sizeof pfm_big - 1);
    assert_is_pfm(in_directory("fifo"));
    test_feed_end(feeder);
    assert_piped(TEXT("P5 3 2 255\nabcdef"), 0, "abcdef", NULL);
    assert_piped(TEXT("P4 9 2\n\x80\0\xff\x80"), 0,
                 "\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0", NULL);
    assert_piped(TEXT("P5 1 1 1023\r\n\3\xff"), 0, NULL,
                 "its header ends in CR LF, and the LF may be part of the image");
    assert_piped(TEXT("P5 1 3 5 \1\5\6"), 0, NULL, "row 3 of 3 has a sample greater than maxval 5");
    assert_piped(pfm_big, sizeof pfm_big - 1, 15, NULL, "--max-memory");
    assert_piped(pfm_big, sizeof pfm_big - 2, 0, NULL, "ends too early, in row 2 of 2");
}

TEST(reads_standard_input) {
    put_bytes(in_directory("x.pgm"), TEXT("P5 3 2 255\nabcdef"));
    assert_non_null(freopen(in_directory("x.pgm"), "rb", stdin));
    assert_loads("-", NULL, 2, &(gf_format){3, 2, 1, GF_U8, false}, "abcdef");
    assert_load_fails("-", NULL, "standard input: the file is empty");
}

TEST(writes_pfm_to_a_pipe) {
    unsigned char got[64];
    const int reader = test_pipe_reader(in_directory("out.pfm"));
    assert_ok(save_image(in_directory("out.pfm"), &(gf_format){2, 2, 1, GF_F32, false}, pfm_pixels,
                         NULL, NULL, 1));
    const ssize_t size = read(reader, got, sizeof got);
    close(reader);
    assert_int_equal(size, sizeof pfm_little - 1);
    assert_memory_equal(got + 12, pfm_little + 12, 16);
    assert_memory_equal(got, "Pf\n2 2\n-1.0\n", 12);
}

/* The length of text is limited: a sparse file uses no disk space, but takes very long to read. */
TEST(limits_the_length_of_text) {
    static const struct {
        const char *start;
        char fill;
    } files[] = {{"P5 #", 'x'},    {"P5 ", ' '},      {"P2 1 1 255 ", ' '}, {"P2 1 1 255 ", '0'},
                 {"P5 1 ", '0'},   {"P7\n#", 'x'},    {"P7\n", '\n'},       {"P7\nENDHDR", ' '},
                 {"PF 1 1 ", ' '}, {"PF 1 1 #", 'x'}, {"P1 1 1 ", ' '},     {"P1 1 1 #", 'x'}};
    const size_t size = (size_t)1 << 22, max = (size_t)1 << 20;
    AUTO(free) char *text = malloc(size);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        gf_format format;
        unsigned char *pixels;
        const size_t length = strlen(files[i].start);
        memset(text, files[i].fill, size);
        memcpy(text, files[i].start, length);
        /* Valid text after the limit is not read. */
        memcpy(text + max + 100, "\n1 1 255\n1\n1\n", 14);
        put_bytes(in_directory("x.pgm"), text, size);
        assert_int_equal(load_image(in_directory("x.pgm"), NULL, 1, &format, &pixels, NULL, &why),
                         GF_FAILED);
        if (strstr(why.message, "too much text") == NULL &&
            strstr(why.message, "too long") == NULL &&
            strstr(why.message, "is not a number") == NULL &&
            strstr(why.message, "a line of its own") == NULL)
            fail_msg("%zu: %s", i, why.message);
    }
    /* A comment of almost 1 MiB is valid. */
    gf_format format;
    AUTO(free) unsigned char *pixels;
    memset(text, 'x', size);
    memcpy(text, "P2 1 1 #", 8);
    memcpy(text + max - 100, "\n255\n7\n", 8);
    put_bytes(in_directory("x.pgm"), text, max - 92);
    assert_ok(load_image(in_directory("x.pgm"), NULL, 1, &format, &pixels, NULL, &why));
    assert_int_equal(pixels[0], 7);
}

int main(void) {
    return test_main_in_directory();
}
