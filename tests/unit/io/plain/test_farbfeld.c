/* Farbfeld files: exact bytes, and what they cannot store. */
#include "io_util.h"

#define HEADER "farbfeld\0\0\0\2\0\0\0\1"
#define PIXELS "\0\1\2\3\xff\xfe\xff\xff\x12\x34\0\0\x80\0\x7f\xff"
static const unsigned char file[] = HEADER PIXELS; /* and a NUL */
static const uint16_t samples[] = {0x0001, 0x0203, 0xfffe, 0xffff, 0x1234, 0x0000, 0x8000, 0x7fff};
static const gf_format format = {2, 1, 4, GF_U16, true};
enum { FILE_BYTES = sizeof file - 1 };

TEST(reads_big_endian_samples) {
    gf_file_info info;
    assert_bytes_load("x", file, FILE_BYTES, &format, samples);
    assert_ok(gf_inspect_file(in_directory("x"), NULL, &info, &why));
    assert_string_equal(info.kind, "ff");
    assert_string_equal(info.stored, "16-bit, big-endian");
}

TEST(writes_exact_bytes) {
    assert_writes("x.ff", &format, samples, file, FILE_BYTES);
    assert_round_trip(in_directory("x.ff"), &format, samples);
}

TEST(rejects_damaged_files) {
    unsigned char bytes[FILE_BYTES];
    for (size_t size = 8; size < FILE_BYTES; size++)
        assert_bytes_fail("x", file, size, NULL, "the file ends too early");
    memcpy(bytes, file, sizeof bytes);
    bytes[11] = 0;
    assert_bytes_fail("x", bytes, sizeof bytes, NULL, "the image is empty (0x1 pixels)");
    memset(bytes + 8, 0xff, 8);
    assert_bytes_fail("x", bytes, sizeof bytes, NULL, "raise it with --max-pixels");
    bytes[0] = 'F';
    assert_bytes_fail("x", bytes, sizeof bytes, NULL, "unsupported image format");
}

TEST(rejects_other_images) {
    assert_rejected("a.ff", &(gf_format){2, 1, 4, GF_U8, true},
                    "farbfeld supports only u16 samples, and this image is u8; write .png or give "
                    "--depth 16");
    assert_rejected("a.ff", &(gf_format){2, 1, 3, GF_U16, false},
                    "farbfeld does not support colour images");
    assert_rejected("a.ff", &(gf_format){2, 1, 2, GF_U16, true},
                    "grey farbfeld does not support an alpha channel; write .png or .pam");
    assert_rejected("a.ff", &(gf_format){2, 1, 4, GF_U16, false},
                    "farbfeld stores channel 4 only as alpha");
}

int main(void) {
    return test_main_in_directory();
}
