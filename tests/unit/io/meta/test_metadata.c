/* Metadata describes the pixels of an output: EXIF data, texts, profiles, Photoshop resources and
 * PNG chunks that do not are changed or dropped. */
#include "io/meta/metadata.h"

#include <tiff.h>
#include <zlib.h>

#include "testing.h"

static const gf_format page = {60, 40, 1, GF_U8, false}, turned = {40, 60, 1, GF_U8, false},
                       deep = {60, 40, 1, GF_U16, false}, colour = {60, 40, 3, GF_U8, false};

/* Return metadata with one item, and the image of its file. */
static gf_metadata make_item(const char *name, const void *data, size_t size) {
    gf_metadata metadata = {0};
    metadata.image = page;
    gf_metadata_add(&metadata, name, false, data, size);
    return metadata;
}

/* ---- EXIF data ------------------------------------------------------------------------------- */

enum {
    FIRST = 8,
    CAMERA = 100,
    SECOND = 150,
    TEXT = 200,
    STATISTICS = 300,
    THUMBNAIL = 500,
    EXIF_BYTES = 550
};

typedef struct exif_file {
    bool little;
    unsigned char data[EXIF_BYTES];
} exif_file;

static void put(exif_file *file, size_t at, uint32_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        file->data[at + (file->little ? i : bytes - 1 - i)] = (unsigned char)(number >> 8 * i);
}

static uint32_t get(const exif_file *file, const unsigned char *data, size_t at, size_t bytes) {
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint32_t)data[at + (file->little ? i : bytes - 1 - i)] << 8 * i;
    return number;
}

static size_t entry_at(size_t directory, size_t k) {
    return directory + 2 + 12 * k;
}

static void put_entry(exif_file *file, size_t directory, size_t k, uint32_t tag, uint32_t type,
                      uint32_t count, uint32_t value) {
    const size_t at = entry_at(directory, k);
    put(file, directory, (uint32_t)k + 1, 2);
    put(file, at, tag, 2);
    put(file, at + 2, type, 2);
    put(file, at + 4, count, 4);
    put(file, at + 8, value, type == TIFF_SHORT ? 2 : 4);
}

static exif_file make_exif(bool little, const char *text, const char *statistics) {
    exif_file file = {.little = little};
    memcpy(file.data, little ? "II" : "MM", 2);
    put(&file, 2, 42, 2);
    put(&file, 4, FIRST, 4);
    put_entry(&file, FIRST, 0, TIFFTAG_IMAGEWIDTH, TIFF_SHORT, 1, 60);
    put_entry(&file, FIRST, 1, TIFFTAG_IMAGELENGTH, TIFF_LONG, 1, 40);
    put_entry(&file, FIRST, 2, TIFFTAG_IMAGEDESCRIPTION, TIFF_ASCII, (uint32_t)strlen(text) + 1,
              TEXT);
    put_entry(&file, FIRST, 3, TIFFTAG_ORIENTATION, TIFF_SHORT, 1, 6);
    put_entry(&file, FIRST, 4, TIFFTAG_EXIFIFD, TIFF_LONG, 1, CAMERA);
    put_entry(&file, FIRST, 5, TIFFTAG_GDAL_METADATA, TIFF_ASCII, (uint32_t)strlen(statistics) + 1,
              STATISTICS);
    put(&file, entry_at(FIRST, 6), SECOND, 4);
    put_entry(&file, CAMERA, 0, EXIFTAG_PIXELXDIMENSION, TIFF_SHORT, 1, 60);
    put_entry(&file, CAMERA, 1, EXIFTAG_PIXELYDIMENSION, TIFF_LONG, 1, 40);
    put_entry(&file, SECOND, 0, TIFFTAG_JPEGIFOFFSET, TIFF_LONG, 1, THUMBNAIL);
    put_entry(&file, SECOND, 1, TIFFTAG_JPEGIFBYTECOUNT, TIFF_LONG, 1, EXIF_BYTES - THUMBNAIL);
    assert_true(strlen(text) < STATISTICS - TEXT && strlen(statistics) < THUMBNAIL - STATISTICS);
    strcpy((char *)file.data + TEXT, text);
    strcpy((char *)file.data + STATISTICS, statistics);
    memset(file.data + THUMBNAIL, 'T', EXIF_BYTES - THUMBNAIL);
    return file;
}

static void assert_size(const exif_file *file, const unsigned char *data, size_t directory,
                        size_t k, uint32_t number) {
    const size_t at = entry_at(directory, k);
    const uint32_t type = get(file, data, at + 2, 2);
    assert_true(type == TIFF_SHORT || type == TIFF_LONG);
    assert_int_equal(get(file, data, at + 8, type == TIFF_SHORT ? 2 : 4), number);
}

/* Return what is dropped. */
static uint32_t update(gf_metadata *metadata, const gf_format *image, bool whole) {
    uint32_t dropped = 0;
    assert_ok(gf_metadata_update(metadata, image, whole, &dropped, "file", &why));
    return dropped;
}

/* The sizes follow the image, and the thumbnail goes, with its bytes. */
TEST(adapts_exif) {
    static const char *const names[] = {GF_ITEM_EXIF, "eXIf", GF_ITEM_GEO};
    for (int i = 0; i < 6; i++) {
        const exif_file file = make_exif(i % 2, "A scene", "<GDALMetadata></GDALMetadata>");
        AUTO(metadata) gf_metadata metadata = make_item(names[i / 2], file.data, EXIF_BYTES);
        const gf_chunk *item = &metadata.chunks[0];
        assert_int_equal(update(&metadata, &turned, true), 0);
        assert_int_equal(item->size, THUMBNAIL);
        for (int k = 0; k < 2; k++) {
            assert_size(&file, item->data, k ? CAMERA : FIRST, 0, 40);
            assert_size(&file, item->data, k ? CAMERA : FIRST, 1, 60);
        }
        assert_int_equal(get(&file, item->data, entry_at(FIRST, 6), 4), 0);
        assert_null(memchr(item->data + SECOND, 'T', THUMBNAIL - SECOND));
        assert_string_equal((char *)item->data + TEXT, "A scene");
        unsigned char before[THUMBNAIL];
        memcpy(before, item->data, THUMBNAIL);
        assert_int_equal(update(&metadata, &turned, true), 0); /* changes nothing */
        assert_memory_equal(item->data, before, THUMBNAIL);
        /* Nothing else changes. */
        assert_int_equal(update(&metadata, &page, true), 0);
        put((exif_file *)&file, entry_at(FIRST, 6), 0, 4);
        for (size_t at = TEXT; at < THUMBNAIL; at++)
            assert_int_equal(item->data[at], file.data[at]);
    }
}

/* Values outside of the data are no numbers; a size that is set has one value. */
TEST(ignores_values_outside) {
    exif_file file = make_exif(true, "A scene", "<GDALMetadata></GDALMetadata>");
    put(&file, entry_at(FIRST, 0) + 4, 1000, 4);
    put(&file, entry_at(FIRST, 3) + 4, 1000, 4);
    AUTO(metadata) gf_metadata metadata = make_item(GF_ITEM_EXIF, file.data, EXIF_BYTES);
    assert_int_equal(gf_metadata_orientation(&metadata), 0);
    assert_int_equal(update(&metadata, &turned, true), 0);
    assert_size(&file, metadata.chunks[0].data, FIRST, 0, 40);
    assert_int_equal(get(&file, metadata.chunks[0].data, entry_at(FIRST, 0) + 4, 4), 1);
}

/* A thumbnail before other values is cleared; one of strips, too. */
TEST(clears_thumbnails_inside) {
    exif_file file = make_exif(true, "A scene", "<GDALMetadata></GDALMetadata>");
    for (int strips = 0; strips < 2; strips++) {
        put(&file, entry_at(SECOND, 0), strips ? TIFFTAG_STRIPOFFSETS : TIFFTAG_JPEGIFOFFSET, 2);
        put(&file, entry_at(SECOND, 1), strips ? TIFFTAG_STRIPBYTECOUNTS : TIFFTAG_JPEGIFBYTECOUNT,
            2);
        put(&file, entry_at(SECOND, 1) + 8, 20, 4);
        AUTO(metadata) gf_metadata metadata = make_item(GF_ITEM_EXIF, file.data, EXIF_BYTES);
        assert_int_equal(update(&metadata, &page, true), 0);
        assert_int_equal(metadata.chunks[0].size, EXIF_BYTES);
        for (size_t at = THUMBNAIL; at < EXIF_BYTES; at++)
            assert_int_equal(metadata.chunks[0].data[at], at < THUMBNAIL + 20 ? 0 : 'T');
    }
}

/* So is one before the directories, which follow it when a library has appended them. */
TEST(clears_thumbnails_before_directories) {
    static const char exif[] =
        "MM\0*\0\0\0\30TTTTTTTTTTTTTTTT"
        "\0\1\1\22\0\3\0\0\0\1\0\1\0\0\0\0\0\52" /* orientation; the next directory is at 42 */
        "\0\2\2\1\0\4\0\0\0\1\0\0\0\10\2\2\0\4\0\0\0\1\0\0\0\20\0\0\0";
    AUTO(metadata) gf_metadata metadata = make_item(GF_ITEM_EXIF, exif, sizeof exif);
    assert_int_equal(update(&metadata, &page, true), 0);
    assert_int_equal(metadata.chunks[0].size, sizeof exif);
    for (size_t at = 8; at < 24; at++)
        assert_int_equal(metadata.chunks[0].data[at], 0);
}

/* Any bytes are accepted: beginnings, in memory of exactly their size, and random changes. */
TEST(survives_any_exif) {
    test_random random = {test_environment("GF_TEST_SEED", 5)};
    const exif_file file = make_exif(false, "ImageJ=1\nimages=2\nmin=1\n",
                                     "<GDALMetadata><Item name=\"STATISTICS_MEAN\">1</Item>");
    for (size_t size = 1; size <= EXIF_BYTES; size++)
        for (int round = 0; round < 4; round++) {
            exif_file copy = file;
            for (int k = 0; k < 2 * round; k++)
                copy.data[test_next(&random) % size] = (unsigned char)test_next(&random);
            AUTO(metadata) gf_metadata metadata = make_item(GF_ITEM_EXIF, copy.data, size);
            (void)update(&metadata, &turned, false);
            assert_true(metadata.chunks[0].size <= size);
        }
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void expect_text(const char *text, const gf_format *image, bool whole, const char *expected,
                        uint32_t dropped) {
    const exif_file file = make_exif(true, text, "<GDALMetadata></GDALMetadata>");
    AUTO(metadata) gf_metadata metadata = make_item(GF_ITEM_EXIF, file.data, EXIF_BYTES);
    assert_int_equal(update(&metadata, image, whole), dropped);
    const unsigned char *exif = metadata.chunks[0].data;
    assert_string_equal((char *)exif + TEXT, expected);
    assert_true(get(&file, exif, entry_at(FIRST, 2) + 4, 4) >= strlen(expected) + 1);
    assert_true(get(&file, exif, entry_at(FIRST, 2) + 4, 4) <= strlen(text) + 1);
}

TEST(adapts_descriptions) {
    static const char ome[] =
        "<?xml version=\"1.0\"?><OME xmlns=\"u\"><Pixels SizeX=\"60\"/></OME>";
    static const char shape[] = "{\"shape\": [40, 60]}", scene[] = "min=1 <b>{\"shape\"</b>";
    expect_text("ImageJ=1.5\nimages=3\nslices=3\nunit=um\nmin=0.0\nmax=9.0\n", &page, false,
                "ImageJ=1.5\nunit=um\n", 0);
    expect_text("ImageJ=1.5\nimages=3\nslices=3\nunit=um\nmin=0.0\nmax=9.0\n", &turned, true,
                "ImageJ=1.5\nimages=3\nslices=3\nunit=um\n", 0);
    expect_text(shape, &page, true, shape, 0);
    expect_text(shape, &page, false, "", GF_DROPPED_TEXT);
    expect_text(shape, &turned, true, "", GF_DROPPED_TEXT);
    expect_text(shape, &deep, true, shape, 0);
    expect_text("{\"shape\": [3, 40, 60]}", &colour, true, "", GF_DROPPED_TEXT); /* planar */
    expect_text("{\"shape\": [9, 40, 60, 3]}", &colour, true, "{\"shape\": [9, 40, 60, 3]}", 0);
    expect_text(ome, &page, true, ome, 0);
    expect_text(ome, &deep, true, "", GF_DROPPED_TEXT);
    expect_text(ome, &colour, true, "", GF_DROPPED_TEXT);
    expect_text(scene, &turned, false, scene, 0);
}

TEST(drops_statistics) {
    static const char text[] =
        "<GDALMetadata>\n  <Item name=\"STATISTICS_MAXIMUM\" sample=\"0\">9"
        "</Item>\n  <Item name=\"A\">b</Item>\n</GDALMetadata>";
    const exif_file file = make_exif(true, "A scene", text);
    AUTO(metadata) gf_metadata metadata = make_item(GF_ITEM_GEO, file.data, EXIF_BYTES);
    assert_int_equal(update(&metadata, &page, true), 0);
    assert_string_equal((char *)metadata.chunks[0].data + STATISTICS,
                        "<GDALMetadata>\n  \n  <Item name=\"A\">b</Item>\n</GDALMetadata>");
}

static void expect_xmp(const char *text, const char *expected, bool note) {
    static const char plain[] = "XML:com.adobe.xmp\0\0\0\0";
    static const char with_language[] = "XML:com.adobe.xmp\0\0\0x-default\0";
    static const struct {
        const char *name, *head;
        size_t size;
    } forms[] = {{GF_ITEM_XMP, "", 0},
                 {"iTXt", plain, sizeof plain},
                 {"iTXt", with_language, sizeof with_language}};
    char chunk[1024];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const size_t before = forms[i].size;
        memcpy(chunk, forms[i].head, before);
        strcpy(chunk + before, text);
        AUTO(metadata)
        gf_metadata metadata = make_item(forms[i].name, chunk, before + strlen(text));
        assert_int_equal(update(&metadata, &page, true), 0);
        assert_int_equal(metadata.chunks[0].size, before + strlen(expected));
        assert_memory_equal(metadata.chunks[0].data + before, expected, strlen(expected));
        assert_int_equal(metadata.remarks.notes[0] != '\0', note);
    }
}

/* XMP does not refer to a video or a gain map that the output does not contain. */
TEST(drops_other_parts) {
    expect_xmp(
        "<d xmlns:GCamera=\"u\" GCamera:MicroVideo=\"1\"\n  GCamera:MicroVideoOffset='40' "
        "a=\"b\"/>",
        "<d xmlns:GCamera=\"u\"\n  a=\"b\"/>", true);
    expect_xmp("<d><GCamera:MotionPhoto>1</GCamera:MotionPhoto><a>b</a></d>", "<d><a>b</a></d>",
               true);
    expect_xmp(
        "<d hdrgm:Version=\"1.0\"><Container:Directory><rdf:Seq><rdf:li>x</rdf:li></rdf:Seq>"
        "</Container:Directory></d>",
        "<d></d>", true);
    expect_xmp("<d><xmp:Thumbnails><rdf:Alt>x</rdf:Alt></xmp:Thumbnails></d>", "<d></d>", false);
    expect_xmp("<d><Container:Directory>", "<d><Container:Directory>", false); /* without an end */
    expect_xmp("<d GCamera:Other=\"1\" a=\"GCamera:MicroVideo\"/>",
               "<d GCamera:Other=\"1\" a=\"GCamera:MicroVideo\"/>", false);
}

/* Many parts, and parts without an end, take linear time: this would be hours. */
TEST(cuts_in_linear_time) {
    enum { SIZE = 8 << 20 };
    static const char *const parts[] = {"<GCamera:MotionPhoto>", " GCamera:MicroVideo=1"};
    AUTO(free) char *text = test_alloc(SIZE);
    for (size_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < SIZE; at++)
            text[at] = parts[i][at % strlen(parts[i])];
        AUTO(metadata) gf_metadata metadata = make_item(GF_ITEM_XMP, text, SIZE);
        assert_int_equal(update(&metadata, &page, true), 0);
    }
}

/* ---- Photoshop resources, profiles ----------------------------------------------------------- */

TEST(drops_thumbnails_of_photoshop) {
    static const char before[] =
        "8BIM\4\4\0\0\0\0\0\2ab"
        "8BIM\4\x0c\3abc\0\0\0\3xyz\0"
        "PHUT\4\x0c\0\0\0\0\0\2cd"
        "8BIM\4\x09\0\0\0\0\0\1e\0"
        "8BIM\4\5\0\0\0\0\0\1f"
        "tail";
    static const char after[] =
        "8BIM\4\4\0\0\0\0\0\2ab"
        "PHUT\4\x0c\0\0\0\0\0\2cd"
        "8BIM\4\5\0\0\0\0\0\1f"
        "tail";
    gf_metadata metadata = make_item(GF_ITEM_8BIM, before, sizeof before - 1);
    assert_int_equal(update(&metadata, &page, true), 0);
    assert_int_equal(metadata.chunks[0].size, sizeof after - 1);
    assert_memory_equal(metadata.chunks[0].data, after, sizeof after - 1);
    gf_metadata_clear(&metadata);
    for (size_t size = 0; size < sizeof before; size++) {
        metadata = make_item(GF_ITEM_8BIM, before, size);
        assert_int_equal(update(&metadata, &page, true), 0);
        gf_metadata_clear(&metadata);
    }
}

/* A profile stays if it is one, for the colours of the image. */
TEST(drops_profiles_of_other_colours) {
    enum { BYTES = 132 };
    static const struct {
        const char *space;
        size_t bytes, stored;
        bool grey, rgb;
    } cases[] = {{"GRAY", BYTES, BYTES, true, false},      {"RGB ", BYTES, BYTES, false, true},
                 {"CMYK", BYTES, BYTES, false, false},     {"RGB ", BYTES - 1, BYTES, false, false},
                 {"GRAY", BYTES, BYTES - 1, false, false}, {"GRAY", 0, 0, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 4; k++) {
            unsigned char profile[BYTES] = {0, 0, 0, (unsigned char)cases[i].stored};
            unsigned char chunk[512] = "name\0";
            uLongf packed = sizeof chunk - 6;
            memcpy(profile + 16, cases[i].space, 4);
            memcpy(profile + 36, "acsp", 4);
            assert_int_equal(compress(chunk + 6, &packed, profile, cases[i].bytes), Z_OK);
            AUTO(metadata)
            gf_metadata metadata = k < 2 ? make_item(GF_ITEM_ICC, profile, cases[i].bytes)
                                         : make_item("iCCP", chunk, 6 + packed);
            const bool kept = k % 2 ? cases[i].rgb : cases[i].grey;
            const bool told = !kept && (k >= 2 || cases[i].bytes);
            assert_int_equal(update(&metadata, k % 2 ? &colour : &page, true),
                             told ? GF_DROPPED_ICC : 0);
            assert_int_equal(metadata.count, kept);
        }
}

/* ---- PNG chunks ------------------------------------------------------------------------------ */

static uint32_t append(gf_metadata *metadata, const char *name, bool late, const void *data,
                       size_t size) {
    AUTO(free) unsigned char *copy = test_alloc(size ? size : 1); /* of this size, for ASan */
    gf_chunk chunk = {.late = late, .size = size, .data = copy};
    uint32_t lost = 0;
    memcpy(copy, data, size);
    memcpy(chunk.name, name, 4);
    assert_ok(gf_metadata_append_chunk(metadata, &chunk, &lost, "x", NULL));
    return lost;
}

TEST(copies_valid_chunks_once) {
    static const struct {
        const char *name, *data;
        size_t size;
        bool late, valid, once;
        uint32_t kind;
    } cases[] = {
        {"sRGB", "\0", 1, false, true, true, 0},
        {"sRGB", "\0\0", 2, false, false, true, 0},
        {"gAMA", "\0\0\xb1\x8f", 4, false, true, true, GF_DROPPED_COLOUR},
        {"gAMA", "\0\0\xb1", 3, false, false, true, GF_DROPPED_COLOUR},
        {"gAMA", "\0\0\xb1\x8f", 4, true, false, true, GF_DROPPED_COLOUR},
        {"cICP", "\1\15\0\1", 4, false, true, true, GF_DROPPED_COLOUR},
        {"pHYs", "\0\0\0\1\0\0\0\1\1", 9, false, true, true, GF_DROPPED_RESOLUTION},
        {"pHYs", "\0\0\0\1\0\0\0\1", 8, false, false, true, GF_DROPPED_RESOLUTION},
        {"iCCP", "a\0\0?", 4, false, true, true, GF_DROPPED_ICC},
        {"eXIf", "II*\0\0\0\0\0", 8, true, true, true, GF_DROPPED_EXIF},
        {"eXIf", "Exif\0\0II*\0\0\0\0\0", 14, false, false, true, GF_DROPPED_EXIF},
        {"tEXt", "key\0text", 8, true, true, false, GF_DROPPED_TEXT},
        {"tEXt", "key", 3, false, false, false, GF_DROPPED_TEXT},
        {"zTXt", "\0\0x", 3, false, false, false, GF_DROPPED_TEXT},
        {"zTXt", "key", 4, false, false, false, GF_DROPPED_TEXT},
        {"iTXt", "key\0\0\0\0\0text", 12, true, true, false, GF_DROPPED_TEXT},
        {"iTXt", "key\0\0\0de\0\0", 10, false, true, false, GF_DROPPED_TEXT},
        {"iTXt", "key\0\0\0de\0", 9, false, false, false, GF_DROPPED_TEXT},
        {"iTXt", "key\0\1", 5, false, false, false, GF_DROPPED_TEXT},
        {"sRGB", "\3", 1, false, true, true, 0},
        {"sRGB", "\4", 1, false, false, true, 0},
        {"gAMA", "\0\0\0\0", 4, false, false, true, GF_DROPPED_COLOUR},
        {"pHYs", "\0\0\0\1\0\0\0\1\2", 9, false, false, true, GF_DROPPED_RESOLUTION},
        {"iCCP", "\0\0?", 3, false, false, true, GF_DROPPED_ICC},
        {"iCCP", "a\0\1?", 4, false, false, true, GF_DROPPED_ICC},
        {"iCCP", "a\0\0?", 4, true, false, true, GF_DROPPED_ICC},
        {"zTXt", "key\0\1x", 6, false, false, false, GF_DROPPED_TEXT},
        {"iTXt", "key\0\2\0\0\0text", 12, true, false, false, GF_DROPPED_TEXT},
        {"iTXt", "key\0\1\1\0\0text", 12, true, false, false, GF_DROPPED_TEXT},
        {"tIME", "\x07\xe8\14\37\27\73\74", 7, true, true, true, GF_DROPPED_OTHER},
        {"tIME", "\x07\xe8\1\1\0\0\0", 7, false, true, true, GF_DROPPED_OTHER},
        {"tIME", "\x07\xe8\15\1\0\0\0", 7, false, false, false, GF_DROPPED_OTHER},
        {"tIME", "\x07\xe8\0\1\0\0\0", 7, false, false, false, GF_DROPPED_OTHER},
        {"tIME", "\x07\xe8\1\1\30\0\0", 7, false, false, false, GF_DROPPED_OTHER},
        {"tIME", "123456", 6, false, false, false, GF_DROPPED_OTHER},
        {"teSt", "", 0, false, true, false, GF_DROPPED_OTHER}, /* unknown, safe to copy */
        {"bKGD", "\0\1", 2, false, false, false, GF_DROPPED_OTHER},
        {"sBIT", "\5", 1, false, false, false, GF_DROPPED_OTHER},
        {"hIST", "\0\1", 2, false, false, false, GF_DROPPED_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(metadata) gf_metadata metadata = {0};
        for (size_t n = 0; n < 2; n++) {
            const bool kept = cases[i].valid && !(n && cases[i].once);
            assert_int_equal(
                append(&metadata, cases[i].name, cases[i].late, cases[i].data, cases[i].size),
                kept                 ? 0
                : n && cases[i].once ? GF_DROPPED_OTHER
                                     : cases[i].kind);
        }
        assert_int_equal(metadata.count, cases[i].valid ? 2 - cases[i].once : 0);
    }
}

/* A text of ImageMagick is the EXIF data in it, if it has any, and there is no other. */
TEST(reads_texts_of_imagemagick) {
    static const char orientation[] =
        "45786966000049492a00080000000100120103000100000006000000\n"
        "00000000";
    static const char *const types[] = {"exif", "APP1", "iptc"};
    for (int i = 0; i < 6; i++) {
        char text[256];
        unsigned char chunk[512];
        const char *type = types[i / 2];
        gf_metadata metadata = {0};
        const int key = sprintf((char *)chunk, "Raw profile type %s", type) + 1 + i % 2;
        const int size =
            sprintf(text, "\n%s\n      32\n%s\n", type, i < 4 ? orientation : "3842494d04040000");
        uLongf packed = sizeof chunk - (size_t)key;
        chunk[key - 1] = 0;
        if (i % 2)
            assert_int_equal(compress(chunk + key, &packed, (Bytef *)text, (uLong)size), Z_OK);
        else
            memcpy(chunk + key, text, packed = (uLongf)size);
        const size_t bytes = (size_t)key + packed;
        assert_int_equal(append(&metadata, i % 2 ? "zTXt" : "tEXt", false, chunk, bytes), 0);
        assert_string_equal(metadata.chunks[0].name, i >= 4 ? (i % 2 ? "zTXt" : "tEXt") : "eXIf");
        assert_int_equal(gf_metadata_orientation(&metadata), i < 4 ? 6 : 0);
        assert_int_equal(append(&metadata, "eXIf", true, "II*\0\0\0\0\0", 8),
                         i < 4 ? GF_DROPPED_OTHER : 0);
        gf_metadata_clear(&metadata);
        for (size_t cut = 1; cut < bytes; cut++) { /* any bytes are accepted */
            metadata = (gf_metadata){0};
            (void)append(&metadata, i % 2 ? "zTXt" : "tEXt", false, chunk, cut);
            gf_metadata_clear(&metadata);
        }
    }
}

int main(void) {
    return test_main(NULL);
}
