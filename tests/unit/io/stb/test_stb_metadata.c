/* Metadata of BMP, PSD, GIF and TGA. The files are only headers: gf_raster_metadata does not need
 * pixels. */
#include "io/stb/raster.h"
#include "io_util.h"

static gf_metadata metadata;
static uint32_t dropped;

/* Read a copy of exactly this size, so that ASan detects reads past its end. */
static void read_bytes(const void *data, size_t size) {
    AUTO(free) unsigned char *copy = test_alloc(size);
    memcpy(copy, data, size);
    gf_raster_file file = {.name = "x", .data = copy, .size = size};
    file.metadata = (gf_metadata){0};
    assert_ok(gf_raster_metadata(&file, NULL));
    metadata = file.metadata;
    dropped = file.dropped;
}

/* Also read every beginning of the file, which must be accepted. */
static void read_file(const void *data, size_t size) {
    for (size_t cut = GF_RASTER_MIN_BYTES; cut < size; cut++) {
        read_bytes(data, cut);
        gf_metadata_clear(&metadata);
    }
    read_bytes(data, size);
}

static void assert_item(const char *name, const void *data, size_t size) {
    const gf_chunk *item = gf_metadata_find(&metadata, name);
    if (!item)
        fail_msg("no %s", name);
    assert_int_equal(item->size, size);
    assert_memory_equal(item->data, data, size);
}

static void assert_resolution(double x, double y, gf_resolution_unit unit) {
    gf_resolution r;
    assert_true(gf_metadata_resolution(&metadata, &r));
    assert_true(r.x == x && r.y == y && r.unit == unit);
}

/* ---- BMP ------------------------------------------------------------------------------------- */

TEST(reads_bmp) {
    unsigned char file[14 + 124 + 20] = "BM";
    file[14] = 40;
    memcpy(file + 38, "\x13\x0b\0\0\x23\x2e\0\0", 8); /* 2835 and 11811 per metre */
    read_file(file, 14 + 40);
    assert_int_equal(metadata.count, 1);
    assert_resolution(72, 300, GF_PER_INCH);
    gf_metadata_clear(&metadata);
    file[38] = 0x14; /* no whole number per inch */
    read_file(file, 14 + 40);
    assert_resolution(28.36, 118.11, GF_PER_CM);
    gf_metadata_clear(&metadata);
    file[14] = 124;
    memcpy(file + 70, "DEBM", 4);
    file[126] = 124;
    file[130] = 7;
    memcpy(file + 138, "profile", 7);
    read_file(file, 145);
    assert_int_equal(metadata.count, 2);
    assert_item(GF_ITEM_ICC, "profile", 7);
    gf_metadata_clear(&metadata);
    file[70] = 'L'; /* the file contains only the name of its profile */
    read_file(file, 145);
    assert_int_equal(metadata.count, 1);
    gf_metadata_clear(&metadata);
    file[14] = 12; /* the oldest header */
    read_file(file, 145);
    assert_int_equal(metadata.count, 0);
    gf_metadata_clear(&metadata);
}

/* ---- PSD ------------------------------------------------------------------------------------- */

#define PSD "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\2\0\0\0\2\0\x08\0\3"
#define RESOURCE(id, name, size, data) "8BIM" id name "\0\0\0" size data

TEST(reads_psd) {
    static const char resources[] =
        "PHUT\4\x22\0\0\0\0\0\4none" /* of another program: the ones behind it count */
        RESOURCE("\3\xed", "\0\0", "\x10", "\0\x48\x80\0\0\1\0\1\0\x60\0\0\0\1\0\1")
            RESOURCE("\4\x04", "\3abc", "\5", "\x1c\2\0\0\2\0")
                RESOURCE("\4\x0f", "\4abcd\0", "\4", "icc.")
                    RESOURCE("\4\x0f", "\0\0", "\4", "next")
                        RESOURCE("\4\x22", "\0\0", "\x08", "II*\0\0\0\0\0")
                            RESOURCE("\4\x24", "\0\0", "\3", "xmp\0")
                                RESOURCE("\4\x09", "\0\0", "\2", "??");
    enum { RESOURCES = sizeof resources - 1, HEAD = sizeof PSD - 1 };
    unsigned char file[HEAD + 4 + 3 + 4 + RESOURCES] = PSD "\0\0\0\3abc";
    file[HEAD + 10] = RESOURCES;
    memcpy(file + HEAD + 11, resources, RESOURCES);
    read_file(file, sizeof file);
    assert_int_equal(metadata.count, 5);
    assert_resolution(72.5, 96, GF_PER_INCH);
    assert_item(GF_ITEM_8BIM, "8BIM\4\x04\3abc\0\0\0\5\x1c\2\0\0\2", 20);
    assert_item(GF_ITEM_ICC, "icc.", 4);
    assert_item(GF_ITEM_EXIF, "II*\0\0\0\0\0", 8);
    assert_item(GF_ITEM_XMP, "xmp", 3);
    gf_metadata_clear(&metadata);
}

/* ---- GIF, TGA -------------------------------------------------------------------------------- */

TEST(reads_gif) {
    static const char file[] =
        "GIF89a\1\0\1\0\x80\0\0abcdef"
        "!\xfe\3one\2,2\0"
        "!\xfe\4more\0"
        "!\xff\x0bNETSCAPE2.0\3\1\0\0\0"
        "!\xff\x0bICCRGBG1012\2ic\1c\0"
        "!\xff\x0bXMP DataXMP\1?\0"
        ",\0\0\0\0\1\0\1\0\0\2\2D\1\0;";
    read_file(file, sizeof file - 1);
    assert_int_equal(metadata.count, 2);
    assert_item(GF_ITEM_COMMENT, "one,2", 5);
    assert_item(GF_ITEM_ICC, "icc", 3);
    assert_int_equal(dropped, GF_DROPPED_XMP);
    gf_metadata_clear(&metadata);
}

TEST(reads_tga) {
    unsigned char file[18 + 9 + 3] = {9, 0, 2, [12] = 1, [14] = 1, [16] = 24};
    memcpy(file + 18, "some text", 9);
    read_file(file, sizeof file);
    assert_int_equal(metadata.count, 1);
    assert_item(GF_ITEM_COMMENT, "some text", 9);
    gf_metadata_clear(&metadata);
}

/* Comments of a Radiance file are reported. Bytes behind the header are not lines. */
TEST(reports_comments_of_hdr) {
    static const struct {
        const char *file;
        uint32_t dropped;
    } cases[] = {{"#?RADIANCE\nEXPOSURE=1\n\n# pixels\n", 0},
                 {"#?RADIANCE\n# Written by stb_image_write.c\n\n", 0},
                 {"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n# a scene\n\n", GF_DROPPED_TEXT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_file(cases[i].file, strlen(cases[i].file));
        assert_int_equal(metadata.count, 0);
        assert_int_equal(dropped, cases[i].dropped);
        gf_metadata_clear(&metadata);
    }
}

/* Metadata of a file reaches its source. */
TEST(opens_with_metadata) {
    unsigned char file[18 + 4 + 3] = {4, 0, 2, [12] = 1, [14] = 1, [16] = 24};
    gf_file_info info;
    memcpy(file + 18, "text", 4);
    put_bytes(in_directory("x.tga"), file, sizeof file);
    assert_ok(gf_inspect_file(in_directory("x.tga"), NULL, &info, NULL));
    assert_string_equal(info.metadata, "comment");
}

/* Any bytes are accepted. */
TEST(accepts_random_bytes) {
    static const char *const heads[] = {"BM", PSD, "GIF89a\1\0\1\0\0\0\0!\xfe", "\xff"};
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        unsigned char file[300];
        const size_t size =
            GF_RASTER_MIN_BYTES + next_random(&seed) % (sizeof file - GF_RASTER_MIN_BYTES);
        for (size_t i = 0; i < size; i++)
            file[i] = (unsigned char)(next_random(&seed) % 3 ? next_random(&seed) % 20
                                                             : next_random(&seed));
        memcpy(file, heads[round % 4], strlen(heads[round % 4]));
        file[14] = round % 8 < 4 ? 124 : file[14];
        read_bytes(file, size);
        gf_metadata_clear(&metadata);
    }
}

int main(void) {
    return test_main_in_directory();
}
