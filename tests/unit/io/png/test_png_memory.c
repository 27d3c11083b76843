/* PNG files in memory: scanning for a device, the data of IDAT chunks, and reading. */
#include "testing.h"

#include <zlib.h>

#include "io/png/png.h"

#include "png_util.h"

static const png_spec plain = {.width = 40, .height = 30, .color = 2, .depth = 8};

static bool is_scanned(png_spec spec, gf_png_scan *scan) {
    AUTO(free) png_bytes file;
    png_make(&spec, &file, NULL, NULL);
    return gf_png_scan_file(file.data, file.size, scan);
}

TEST(scans_plain_files_only) {
    static const png_extra text = {"tEXt", 0, "Title\0x", 7, false},
                           wrong = {"tEXt", 0, "Title\0x", 7, true},
                           key = {"tRNS", 1, "\0\1\0\1\0\1", 6, false};
    gf_png_scan scan;
    png_spec spec = plain;
    assert_true(is_scanned(spec, &scan));
    assert_true(scan.format.width == 40 && scan.format.height == 30 && scan.format.channels == 3);
    assert_true(scan.format.type == GF_U8 && scan.chunks == 1 && gf_png_scan_parts(&scan) == 1);
    spec.depth = 16;
    spec.color = 4;
    assert_true(is_scanned(spec, &scan) && scan.format.channels == 2 && scan.format.type == GF_U16);
    spec = plain;
    spec.interlaced = true;
    assert_false(is_scanned(spec, &scan));
    spec = plain;
    spec.transparent = true;
    assert_false(is_scanned(spec, &scan));
    spec = plain;
    spec.color = 3;
    assert_false(is_scanned(spec, &scan));
    spec = plain;
    spec.color = 0;
    spec.depth = 4;
    assert_false(is_scanned(spec, &scan));
    spec = plain;
    spec.window_bits = 9;
    assert_false(is_scanned(spec, &scan));
    spec = plain;
    spec.extras = &text;
    spec.extra_count = 1;
    assert_true(is_scanned(spec, &scan));
    spec.extras = &wrong;
    assert_false(is_scanned(spec, &scan));
    spec.extras = &key;
    assert_false(is_scanned(spec, &scan));
}

/* A file that is cut or changed in its structure is left to the other decoder. */
TEST(rejects_damaged_structure) {
    gf_png_scan scan;
    AUTO(free) png_bytes file;
    png_make(&plain, &file, NULL, NULL);
    for (size_t size = 0; size < file.size; size++)
        assert_false(gf_png_scan_file(file.data, size, &scan));
    const size_t idat = 8 + 25, data = idat + 8;
    for (size_t i = 0; i < file.size; i++) {
        const bool in_stream = i >= data + 2 && i < file.size - 12; /* and its CRC */
        file.data[i] ^= 0x10;
        assert_int_equal(gf_png_scan_file(file.data, file.size, &scan), in_stream);
        file.data[i] ^= 0x10;
    }
}

TEST(copies_the_stream) {
    AUTO(free) png_bytes file;
    gf_png_scan scan;
    size_t offset, size;
    png_spec spec = plain;
    spec.idat_bytes = 70;
    unsigned char raw[30 * (40 * 3 + 1)];
    png_make(&spec, &file, NULL, NULL);
    assert_true(gf_png_scan_file(file.data, file.size, &scan) && scan.chunks > 5);
    AUTO(free) unsigned char *copy = test_alloc(gf_png_scan_bytes(&scan));
    assert_true(gf_png_scan_copy(file.data, &scan, copy, &offset, &size));
    assert_true(offset == 0 && size == scan.bytes);
    uLongf got = sizeof raw;
    assert_int_equal(uncompress(raw, &got, copy, (uLong)size), Z_OK);
    assert_int_equal(got, sizeof raw);
    file.data[scan.idat + 100] ^= 1;
    assert_false(gf_png_scan_copy(file.data, &scan, copy, &offset, &size));
}

/* The strips of our encoder are found, each at a multiple of four bytes. */
TEST(finds_parts) {
    const gf_format format = {1000, 700, 3, GF_U8, false};
    AUTO(image) test_image image = test_image_new(format, 0);
    test_random random = {5};
    test_fill(&image, TEST_SMOOTH, &random);
    size_t bytes;
    AUTO(free) unsigned char *file = test_png(&image, &bytes);
    gf_png_scan scan;
    gf_png_strips strips;
    gf_png_strips_init(&format, GF_PNG_FAST, GF_ISA_PORTABLE, &strips);
    assert_true(gf_png_scan_file(file, bytes, &scan));
    assert_int_equal(scan.part_rows, strips.rows);
    const uint32_t parts = gf_png_scan_parts(&scan);
    assert_int_equal(parts, (700 - 1) / strips.rows + 1);
    size_t offsets[16], sizes[16];
    assert_in_range(parts, 2, 16);
    AUTO(free) unsigned char *copy = test_alloc(gf_png_scan_bytes(&scan));
    assert_true(gf_png_scan_copy(file, &scan, copy, offsets, sizes));
    size_t at = scan.idat;
    for (uint32_t k = 0; k < parts; k++, at += 12 + sizes[k - 1]) {
        assert_int_equal(offsets[k] % 4, 0);
        assert_true(offsets[k] + sizes[k] <= gf_png_scan_bytes(&scan));
        assert_memory_equal(copy + offsets[k], file + at + 8, sizes[k]);
    }
}

TEST(reads_from_memory) {
    gf_format format, wanted;
    gf_source *source;
    AUTO(free) void *pixels;
    AUTO(free) png_bytes file;
    AUTO(free) unsigned char *expected;
    png_spec spec = plain;
    spec.color = 3;
    spec.interlaced = true;
    png_make(&spec, &file, &wanted, &expected);
    assert_ok(gf_png_format(file.data, file.size, &format, &why));
    assert_true(gf_format_equal(&format, &wanted));
    assert_ok(gf_png_memory_source(file.data, file.size, "PNG", &source, &why));
    assert_ok(gf_source_read_all(source, "PNG", "the image", UINT64_MAX, 0, &pixels, &why));
    source->ops->close(source);
    assert_memory_equal(pixels, expected, gf_row_bytes(&format) * format.height);
    assert_int_equal(gf_png_format(file.data, 20, &format, &why), GF_FAILED);
    assert_string_equal(why.message, "PNG: the PNG ends too early; get a complete copy");
    assert_int_equal(gf_png_format(file.data, 0, &format, &why), GF_FAILED);
    assert_int_equal(gf_png_format("GIF89a..........", 16, &format, &why), GF_FAILED);
}

int main(void) {
    return test_main(NULL);
}
