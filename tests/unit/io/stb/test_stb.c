#define _GNU_SOURCE /* memmem */

#include <math.h>

#include "io_util.h"
#include "small_files.h"

static gf_status load_bytes(const char *name, const void *data, size_t size,
                            const gf_limits *limits) {
    gf_format format;
    AUTO(free) unsigned char *pixels;
    put_bytes(in_directory(name), data, size);
    return load_image(in_directory(name), limits, 4, &format, &pixels, NULL, &why);
}

/* ---- round trips ----------------------------------------------------------------------------- */

TEST(round_trips_tga) {
    for (uint32_t channels = 1; channels <= 4; channels++) {
        const gf_format format = {33, 17, channels, GF_U8, channels % 2 == 0};
        AUTO(free) unsigned char *pixels = random_pixels(&format, channels);
        assert_round_trips("x.TGA", format);
        memset(pixels, 7, gf_row_bytes(&format) * format.height / 2); /* a long run */
        assert_round_trip(in_directory("x.TGA"), &format, pixels);
    }
}

/* A TGA may contain a text of 0 to 255 bytes. The first byte of the file is its length. */
TEST(reads_tga_with_any_text) {
    static const unsigned char head[18] = {0, 0, 2, [12] = 4, [14] = 4, [16] = 24, [17] = 0x20};
    unsigned char file[18 + 255 + 48];
    for (size_t length = 0; length < 256; length++) {
        unsigned char pixels[48];
        gf_file_info info;
        memcpy(file, head, sizeof head);
        file[0] = (unsigned char)length;
        memset(file + 18, 0xff, length);
        for (size_t i = 0; i < 48; i++) {
            file[18 + length + i] = (unsigned char)(5 * i);
            pixels[i / 3 * 3 + 2 - i % 3] = (unsigned char)(5 * i); /* from BGR */
        }
        assert_bytes_load("x.tga", file, 18 + length + 48, &(gf_format){4, 4, 3, GF_U8, false},
                          pixels);
        assert_ok(gf_inspect_file(in_directory("x.tga"), NULL, &info, &why));
        assert_string_equal(info.stored, "24 bits per pixel");
    }
}

TEST(round_trips_bmp) {
    for (uint32_t channels = 3; channels <= 4; channels++)
        assert_round_trips("x.bmp", (gf_format){0, 0, channels, GF_U8, channels % 2 == 0});
}

TEST(writes_grey_bmp_as_equal_channels) {
    const gf_format format = {5, 3, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    unsigned char colors[45];
    for (size_t i = 0; i < 45; i++)
        colors[i] = pixels[i / 3];
    assert_ok(save_image(in_directory("x.bmp"), &format, pixels, NULL, NULL, 1));
    assert_loads(in_directory("x.bmp"), NULL, 1, &(gf_format){5, 3, 3, GF_U8, false}, colors);
}

/* HDR stores multiples of the shared exponent's step exactly. */
TEST(writes_hdr_of_floats) {
    static const uint32_t widths[] = {3, 40};
    for (size_t w = 0; w < 2; w++) {
        const gf_format format = {widths[w], 7, 3, GF_F32, false};
        float pixels[40 * 7 * 3];
        for (size_t i = 0; i < widths[w] * 7 * 3; i += 3) {
            pixels[i] = 1.5f * (float)(1 << i % 9);
            pixels[i + 1] = 0.25f * (float)(1 << i % 9);
            pixels[i + 2] = 0;
        }
        assert_round_trip(in_directory("x.hdr"), &format, pixels);
    }
}

/* ---- rejections ------------------------------------------------------------------------------ */

TEST(rejects_unsupported_formats) {
    assert_rejected("y.jpg", &(gf_format){1, 1, 4, GF_U8, true},
                    "y.jpg: JPEG does not support an alpha channel; write .png or .pam");
    assert_rejected("y.jpg", &(gf_format){1, 1, 2, GF_U8, true}, "alpha");
    assert_rejected("y.jpg", &(gf_format){1, 1, 3, GF_U16, false},
                    "only u8 samples, and this image is u16");
    assert_rejected("y.bmp", &(gf_format){1, 1, 3, GF_F32, false}, "write .tif");
    assert_rejected("y.tga", &(gf_format){1, 1, 1, GF_U16, false}, "write .png");
    assert_rejected("y.bmp", &(gf_format){1, 1, 2, GF_U8, true}, "grey BMP");
    assert_rejected("y.hdr", &(gf_format){1, 1, 3, GF_U8, false}, "only f32");
    assert_rejected("y.hdr", &(gf_format){1, 1, 4, GF_F32, true}, "alpha");
    assert_rejected("y.tga", &(gf_format){65536, 1, 1, GF_U8, false}, "65535");
    assert_rejected("y.jpg", &(gf_format){1, 65536, 3, GF_U8, false}, "65500");
    assert_rejected("y.bmp", &(gf_format){50000, 50000, 4, GF_U8, true}, "2 GiB");
}

TEST(rejects_samples_outside_the_range_of_hdr) {
    static const float invalid[] = {-1.0f, INFINITY, NAN, 0x1p127f};
    for (size_t i = 0; i < 4; i++) {
        assert_error(save_image(in_directory("y.hdr"), &(gf_format){1, 1, 1, GF_F32, false},
                                &invalid[i], NULL, NULL, 1),
                     GF_FAILED, "write .pfm");
        assert_int_equal(count_files(false), 0);
    }
}

TEST(limit_errors_name_the_option) {
    const gf_format format = {30, 20, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    const gf_file_options options = {.max_memory = 1799};
    size_t size;
    assert_error(save_image(in_directory("x.bmp"), &format, pixels, NULL, &options, 1), GF_FAILED,
                 "over the limit of 1799; raise it with --max-memory");
    assert_int_equal(count_files(false), 0);
    assert_ok(save_image(in_directory("x.bmp"), &format, pixels, NULL, NULL, 1));
    AUTO(free) unsigned char *file = test_bytes(in_directory("x.bmp"), &size);
    assert_bytes_fail("x.bmp", file, size, &(gf_limits){.max_pixels = 599}, "--max-pixels");
    assert_bytes_fail("x.bmp", file, size, &(gf_limits){.max_memory = 1000},
                      "the file are over the limit");
    assert_bytes_fail("x.bmp", file, size, &(gf_limits){.max_memory = size + 1799}, "--max-memory");
    assert_ok(load_bytes("x.bmp", file, size, &(gf_limits){.max_memory = size + 1800}));
}

/* ---- damage ---------------------------------------------------------------------------------- */

TEST(reports_truncation) {
    static const char *const names[] = {"x.bmp", "x.tga", "x.hdr"};
    for (size_t i = 0; i < 3; i++) {
        const gf_format format = {21, 13, 3, i == 2 ? GF_F32 : GF_U8, false};
        AUTO(free) unsigned char *pixels = random_pixels(&format, 5);
        size_t size;
        if (i == 2)
            memset(pixels, 0x3f, gf_row_bytes(&format) * format.height);
        assert_ok(save_image(in_directory(names[i]), &format, pixels, NULL, NULL, 1));
        AUTO(free) unsigned char *file = test_bytes(in_directory(names[i]), &size);
        for (size_t cut = 0; cut < size; cut++) {
            /* BMP: the padding of the last row contains no pixels. */
            gf_status status = load_bytes(names[i], file, cut, NULL);
            if (status == GF_OK && (i != 0 || cut + 4 <= size))
                fail_msg("%s: truncated to %zu of %zu bytes", names[i], cut, size);
            if (status != GF_OK)
                assert_message(&why, names[i]);
        }
        assert_error(load_bytes(names[i], file, size - 5, NULL), GF_FAILED, "ends too early");
    }
}

/* A pixel without a palette entry is black, not uninitialized memory. The palette of the oldest
 * header ends at the pixels. */
TEST(fills_the_palettes_of_bmps) {
    static const char few[] =
        "BM\0\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\3\0\0\0\1\0\0\0\1\0\4\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
        "abc\0def\0\x1f\0\0\0";
    static const char old[] =
        "BM\0\0\0\0\0\0\0\0\x20\0\0\0\x0c\0\0\0\2\0\1\0\1\0\x08\0"
        "abcdef\1\0\0\0";
    static const char none[] =
        "BM\0\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\2\0\1\0\1\0\x08\0"
        "\1\0\0\0\0\0";
    assert_bytes_load("x.bmp", few, sizeof few - 1, &(gf_format){3, 1, 3, GF_U8, false},
                      "fed\0\0\0cba");
    assert_bytes_load("x.bmp", old, sizeof old - 1, &(gf_format){2, 1, 3, GF_U8, false}, "fedcba");
    assert_bytes_fail(
        "x.bmp", none, sizeof none - 1, NULL,
        "x.bmp: cannot decode (the pixels of the BMP begin in its header); get an intact copy");
}

/* ---- PSD and GIF (read only) ----------------------------------------------------------------- */

TEST(reads_psd) {
    static const char deep[] =
        "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\2\0\x10\0\3"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c";
    static const uint16_t expected[] = {0x0102, 0x0506, 0x090a, 0x0304, 0x0708, 0x0b0c};
    char cmyk[sizeof deep];
    assert_bytes_load("x.psd", deep, sizeof deep - 1, &(gf_format){2, 1, 3, GF_U16, false},
                      expected);
    assert_bytes_fail("x.psd", deep, sizeof deep - 2, NULL, "ends too early");
    memcpy(cmyk, deep, sizeof deep);
    cmyk[25] = 4;
    assert_bytes_fail(
        "x.psd", cmyk, sizeof cmyk - 1, NULL,
        "x.psd: PSD other than RGB or grey with 8 or 16 bits is not supported; convert it to PNG");
}

TEST(reads_gif) {
    static const char gif[] =
        "GIF89a\1\0\1\0\x80\0\0\x0a\x14\x1e\xff\xff\xff"
        ",\0\0\0\0\1\0\1\0\0\2\2D\1\0;";
    assert_bytes_load("x.gif", gif, sizeof gif - 1, /* no transparent pixel: no alpha */
                      &(gf_format){1, 1, 3, GF_U8, false}, "\x0a\x14\x1e");
}

/* Frames are pages: their number is reported, and each can be read. */
TEST(reads_the_frames_of_a_gif) {
    static const unsigned char indices[] = {1, 2, 3};
    AUTO(free) small_file file = gif_begin(1, 1, 2, 0);
    for (int i = 0; i < 3; i++)
        gif_add(&file, 2, &(gif_frame){.width = 1, .height = 1, .indices = indices + i});
    gif_end(&file);
    put_bytes(in_directory("x.gif"), file.data, file.size);
    for (uint32_t page = 0; page <= 3; page++) {
        const gf_limits limits = {.page = page};
        AUTO(free) unsigned char *pixels;
        char stored[64];
        gf_source *source = open_source(in_directory("x.gif"), &limits);
        snprintf(stored, sizeof stored, "palette, frame %u of 3", page ? page : 1);
        assert_string_equal(source->stored, stored);
        assert_int_equal(source->pages, 3);
        assert_ok(load_source(source, 1, &pixels, NULL, &why));
        assert_int_equal(pixels[0], page ? page : 1);
    }
    assert_open_fails(in_directory("x.gif"), &(gf_limits){.page = 4},
                      "x.gif: has no page 4; choose one from 1 to 3 with --page");
}

/* Damage that is read is reported, and fails with --strict. Parts that are not read are noted.
 */
TEST(remarks_on_damage_and_channels) {
    const psd_spec spec = {.width = 2, .height = 1, .channels = 5, .depth = 8, .mode = 3};
    AUTO(free) small_file file = psd_make(&spec, (const unsigned char *)"abcdefghij");
    gf_metadata metadata;
    gf_format format;
    unsigned char *pixels;
    put_bytes(in_directory("x.psd"), file.data, file.size);
    assert_ok(load_image(in_directory("x.psd"), NULL, 1, &format, &pixels, &metadata, &why));
    assert_string_equal(metadata.remarks.damage, "");
    assert_string_equal(metadata.remarks.notes, "2 more channels (masks) are not read");
    assert_memory_equal(pixels, "acebdf", 6);
    free(pixels);
    gf_metadata_clear(&metadata);

    static const char tga[] = "\0\0\x0b\0\0\0\0\0\0\0\0\0\2\0\1\0\x08\0\x83\7";
    put_bytes(in_directory("x.tga"), tga, sizeof tga - 1);
    assert_ok(load_image(in_directory("x.tga"), NULL, 1, &format, &pixels, &metadata, &why));
    assert_non_null(strstr(metadata.remarks.damage, "1 runs extend past"));
    free(pixels);
    gf_metadata_clear(&metadata);
    assert_error(load_image(in_directory("x.tga"), &(gf_limits){.strict = true}, 1, &format,
                            &pixels, &metadata, &why),
                 GF_FAILED, "x.tga: 1 runs extend past");
}

/* A BMP with a negative height stores its top row first. */
TEST(reads_bmp_top_down) {
    static const char bmp[] =
        "BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\xfe\xff\xff\xff\1\0\x18\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\2\1\0\6\5\4\0";
    assert_bytes_load("x.bmp", bmp, sizeof bmp - 1, &(gf_format){1, 2, 3, GF_U8, false},
                      "\1\2\3\4\5\6");
}

TEST(detects_formats_by_content) {
    const gf_format format = {4, 4, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    const gf_file_options bmp = {.write.format = "bmp"};
    assert_ok(save_image(in_directory("x.tga"), &format, pixels, NULL, &bmp, 1));
    assert_loads(in_directory("x.tga"), NULL, 1, &format, pixels);
    assert_bytes_fail("x.tga", "this is not a TGA file at all", 29, NULL, "x.tga: cannot decode");
    assert_bytes_fail("x.bmp", "BM and other words in a text", 28, NULL,
                      "x.bmp: unsupported image format");
}

int main(void) {
    return test_main_in_directory();
}
