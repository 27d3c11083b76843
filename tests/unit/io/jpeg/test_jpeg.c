/* JPEG: pixels, compared with those of libjpeg in this test; metadata to and from JPEG and PNG;
 * damaged and unsupported files. */
#define _GNU_SOURCE /* memmem */

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "jpeg_file.h"

/* ---- files made by libjpeg ------------------------------------------------------------------- */

/* Decode with libjpeg, row by row, at a scale in 1/8. */
static unsigned char *decode_jpeg(const jpeg_file *file, unsigned eighths) {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, file->data, file->size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.scale_num = eighths;
    jpeg.scale_denom = 8;
    jpeg_start_decompress(&jpeg);
    const size_t row = jpeg.output_width * (size_t)jpeg.output_components;
    unsigned char *pixels = test_alloc(row * jpeg.output_height);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW rows = pixels + row * jpeg.output_scanline;
        jpeg_read_scanlines(&jpeg, &rows, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return pixels;
}

static gf_status load_jpeg(const void *data, size_t size, const gf_limits *limits, uint64_t strip,
                           gf_format *format, unsigned char **pixels, gf_metadata *metadata) {
    put_bytes(in_directory("x.jpg"), data, size);
    return load_image(in_directory("x.jpg"), limits, strip, format, pixels, metadata, &why);
}

static void assert_jpeg_rejected(const jpeg_file *file, const gf_limits *limits, const char *part) {
    assert_bytes_fail("x.jpg", file->data, file->size, limits, part);
}

/* Write a file of random pixels. */
static void put_jpeg(const char *name, const jpeg_shape *shape,
                     void (*put_markers)(j_compress_ptr)) {
    AUTO(free) jpeg_file file = make_jpeg(shape, 1, put_markers);
    put_bytes(in_directory(name), file.data, file.size);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static const jpeg_shape shapes[] = {
    {1, 1, 1, 1},
    {1, 1, 3, 2},
    {17, 33, 1, 1},
    {65, 41, 3, 1},
    {200, 131, 3, 2},
    {64, 48, 3, 2, .progressive = true},
    {37, 90, 1, 1, .progressive = true},
    {90, 37, 3, 1, .progressive = true, .restart = 3},
    {131, 65, 3, 2, .restart = 5},
    {50, 50, 3, 1, .rgb = true},
    {44, 31, 3, 2, .arithmetic = true},
    {31, 44, 3, 2, .separate = true},
};

TEST(decodes_as_libjpeg) {
    static const uint64_t strips[] = {1, 3, 16, 1000};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const gf_format format = {shapes[i].width, shapes[i].height, (uint32_t)shapes[i].components,
                                  GF_U8, false};
        AUTO(free) jpeg_file file = make_jpeg(&shapes[i], (uint32_t)i, NULL);
        AUTO(free) unsigned char *expected = decode_jpeg(&file, 8);
        put_bytes(in_directory("x.jpg"), file.data, file.size);
        for (size_t s = 0; s < sizeof strips / sizeof *strips; s++)
            assert_loads(in_directory("x.jpg"), NULL, strips[s], &format, expected);
    }
}

static uint32_t scale_to(const void *eighths, const gf_format *image) {
    assert_true(image->width > 0);
    return *(const uint32_t *)eighths;
}

/* The size of the source is rounded up; --crop counts in pixels of the file. */
TEST(scales_as_libjpeg) {
    const gf_crop crop = {0, 0, 1, 1};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t eighths = 1; eighths <= 8; eighths *= 2) {
            gf_limits limits = {.eighths = scale_to, .chain = &eighths};
            const gf_format format = {(shapes[i].width * eighths + 7) / 8,
                                      (shapes[i].height * eighths + 7) / 8,
                                      (uint32_t)shapes[i].components, GF_U8, false};
            AUTO(free) jpeg_file file = make_jpeg(&shapes[i], (uint32_t)i, NULL);
            AUTO(free) unsigned char *expected = decode_jpeg(&file, eighths);
            AUTO(free) unsigned char *whole = decode_jpeg(&file, 8);
            put_bytes(in_directory("x.jpg"), file.data, file.size);
            assert_loads(in_directory("x.jpg"), &limits, 5, &format, expected);
            limits.crop = &crop;
            const gf_format pixel = {1, 1, format.channels, GF_U8, false};
            assert_loads(in_directory("x.jpg"), &limits, 5, &pixel, whole);
        }
}

/* Encode with the parameters that the sink uses. */
static jpeg_file encode_with_libjpeg(const gf_format *format, const unsigned char *pixels,
                                     int quality) {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &data, &size);
    jpeg.image_width = (JDIMENSION)format->width;
    jpeg.image_height = (JDIMENSION)format->height;
    jpeg.input_components = (int)format->channels;
    jpeg.in_color_space = format->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&jpeg, TRUE);
    for (uint64_t y = 0; y < format->height; y++) {
        JSAMPROW row = (JSAMPROW)(pixels + y * gf_row_bytes(format));
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return (jpeg_file){data, size};
}

TEST(encodes_as_libjpeg) {
    static const uint32_t qualities[] = {0, 1, 50, 100};
    static const uint64_t sizes[][2] = {{1, 1}, {17, 3}, {300, 101}};
    for (size_t i = 0; i < 3; i++)
        for (uint32_t channels = 1; channels <= 3; channels += 2)
            for (size_t q = 0; q < 4; q++) {
                const gf_format format = {sizes[i][0], sizes[i][1], channels, GF_U8,
                                          channels % 2 == 0};
                const gf_file_options options = {.write.quality = qualities[q], .force = true};
                AUTO(free) unsigned char *pixels = random_pixels(&format, channels);
                assert_ok(
                    save_image(in_directory("o.jpg"), &format, pixels, NULL, &options, 1 + 3 * q));
                jpeg_file file =
                    encode_with_libjpeg(&format, pixels, qualities[q] ? (int)qualities[q] : 95);
                assert_bytes(in_directory("o.jpg"), file.data, file.size);
                free(file.data);
            }
}

/* ---- metadata -------------------------------------------------------------------------------- */

#define EXIF(orientation)                                                                          \
    "Exif\0\0II*\0\x08\0\0\0\3\0"                                                                  \
    "\x12\1\3\0\1\0\0\0" orientation                                                               \
    "\0\0\0"                                                                                       \
    "\x1a\1\5\0\1\0\0\0\x32\0\0\0"                                                                 \
    "\x1b\1\5\0\1\0\0\0\x3a\0\0\0"                                                                 \
    "\0\0\0\0"                                                                                     \
    "\x90\1\0\0\2\0\0\0\x58\2\0\0\3\0\0\0" /* 400/2, 600/3 */
#define XMP "http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>"
#define FLIR "FLIR\0raw"
#define PHOTOSHOP                                                                                  \
    "Photoshop 3.0\0"                                                                              \
    "8BIM\4\4\0\0\0\0\0\0"
static const char exif[] = EXIF("\6");
enum { EXIF_BYTES = sizeof exif - 1, PROFILE_BYTES = 150000 };

static unsigned char profile[PROFILE_BYTES];

static void put_marker(j_compress_ptr jpeg, int marker, const void *data, size_t size) {
    jpeg_write_marker(jpeg, marker, data, (unsigned)size);
}

static void put_all(j_compress_ptr jpeg) {
    uint32_t seed = 7;
    for (size_t i = 0; i < sizeof profile; i++)
        profile[i] = (unsigned char)(next_random(&seed) % 5);
    put_marker(jpeg, JPEG_APP0 + 1, exif, EXIF_BYTES);
    put_marker(jpeg, JPEG_APP0 + 1, XMP, sizeof XMP - 1);
    put_marker(jpeg, JPEG_APP0 + 1, FLIR, sizeof FLIR - 1);
    put_marker(jpeg, JPEG_APP0 + 13, PHOTOSHOP, sizeof PHOTOSHOP - 1);
    jpeg_write_icc_profile(jpeg, profile, sizeof profile);
    put_marker(jpeg, JPEG_COM, "a comment", 9);
}

static void assert_item(const gf_metadata *metadata, const char *name, const void *data,
                        size_t size) {
    const gf_chunk *item = gf_metadata_find(metadata, name);
    if (!item)
        fail_msg("no %s", name);
    assert_int_equal(item->size, size);
    assert_memory_equal(item->data, data, size);
}

/* Check all items of put_all. jpeg: those that only JPEG stores, too. */
static void assert_all_items(const gf_metadata *metadata, bool jpeg) {
    gf_resolution r;
    assert_item(metadata, GF_ITEM_EXIF, exif + 6, EXIF_BYTES - 6);
    assert_item(metadata, GF_ITEM_XMP, "<x:xmpmeta/>", 12);
    assert_item(metadata, GF_ITEM_ICC, profile, sizeof profile);
    assert_item(metadata, GF_ITEM_COMMENT, "a comment", 9);
    assert_int_equal(gf_metadata_orientation(metadata), 6);
    assert_true(gf_metadata_resolution(metadata, &r));
    assert_true(r.x == 200 && r.y == 200 && r.unit == GF_PER_INCH);
    if (jpeg) {
        assert_item(metadata, GF_ITEM_APP1, FLIR, sizeof FLIR - 1);
        assert_item(metadata, GF_ITEM_8BIM, PHOTOSHOP + 14, sizeof PHOTOSHOP - 15);
    }
}

static gf_metadata load_metadata(const char *name) {
    gf_format format;
    AUTO(free) unsigned char *pixels;
    gf_metadata metadata;
    assert_ok(load_image(in_directory(name), NULL, 16, &format, &pixels, &metadata, &why));
    return metadata;
}

static void save_with(const char *name, const gf_metadata *metadata) {
    const gf_format format = {8, 8, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    const gf_file_options options = {.force = true};
    assert_ok(save_image(in_directory(name), &format, pixels, metadata, &options, 8));
}

/* From JPEG to JPEG nothing is lost, and through PNG all that PNG can store is kept. */
TEST(carries_metadata) {
    put_jpeg("a.jpg", &(jpeg_shape){20, 10, 3, 2}, put_all);
    AUTO(metadata) gf_metadata items, chunks;
    AUTO(metadata) gf_metadata first = load_metadata("a.jpg");
    assert_all_items(&first, true);
    assert_int_equal(gf_metadata_lost(&first, GF_FORM_JPEG), 0);
    assert_int_equal(gf_metadata_lost(&first, GF_FORM_PNG), GF_DROPPED_IPTC | GF_DROPPED_OTHER);
    assert_int_equal(gf_metadata_lost(&first, GF_FORM_NONE),
                     GF_DROPPED_ICC | GF_DROPPED_EXIF | GF_DROPPED_ORIENTATION | GF_DROPPED_XMP |
                         GF_DROPPED_IPTC | GF_DROPPED_RESOLUTION | GF_DROPPED_TEXT |
                         GF_DROPPED_OTHER);
    save_with("b.jpg", &first);
    AUTO(metadata) gf_metadata second = load_metadata("b.jpg");
    assert_all_items(&second, true);
    assert_int_equal(second.count, first.count);
    save_with("c.png", &second);
    chunks = load_metadata("c.png");
    assert_null(gf_metadata_find(&chunks, GF_ITEM_EXIF));
    assert_item(&chunks, "eXIf", exif + 6, EXIF_BYTES - 6);
    assert_item(&chunks, "pHYs", "\0\0\x1e\xc2\0\0\x1e\xc2\1", 9); /* 7874 per metre */
    assert_int_equal(gf_metadata_lost(&chunks, GF_FORM_JPEG), 0);
    items = (gf_metadata){0};
    assert_ok(gf_metadata_to_items(&chunks, &items, "c.png", NULL));
    assert_all_items(&items, false);
    save_with("d.jpg", &chunks);
    AUTO(metadata) gf_metadata last = load_metadata("d.jpg");
    assert_all_items(&last, false);
}

/* Segments, the last one without data. */
typedef struct jpeg_marker {
    int code;
    const char *data;
    size_t size;
} jpeg_marker;
static const jpeg_marker *markers;

static void put_markers(j_compress_ptr jpeg) {
    for (const jpeg_marker *m = markers; m->data; m++)
        put_marker(jpeg, m->code, m->data, m->size);
}

TEST(joins_the_pieces_of_a_profile) {
    static const jpeg_marker pieces[] = {{JPEG_APP0 + 2, TEXT("ICC_PROFILE\0\3\3xyz")},
                                         {JPEG_APP0 + 2, TEXT("ICC_PROFILE\0\1\3abc")},
                                         {JPEG_APP0 + 2, TEXT("ICC_PROFILE\0\2\3m")},
                                         {JPEG_APP0 + 2, TEXT("MPF\0")},
                                         {JPEG_APP0 + 12, TEXT("Ducky\0")},
                                         {0}};
    static const jpeg_marker damaged[][3] = {{{JPEG_APP0 + 2, TEXT("ICC_PROFILE\0\1\3abc")},
                                              {JPEG_APP0 + 2, TEXT("ICC_PROFILE\0\3\3xyz")}},
                                             {{JPEG_APP0 + 2, TEXT("ICC_PROFILE\0\1\1abc")},
                                              {JPEG_APP0 + 2, TEXT("ICC_PROFILE\0\1\1abc")}},
                                             {{JPEG_APP0 + 2, TEXT("ICC_PROFILE\0")}}};
    markers = pieces;
    put_jpeg("a.jpg", &(jpeg_shape){8, 8, 1, 1}, put_markers);
    AUTO(source) gf_source *source = open_source(in_directory("a.jpg"), NULL);
    assert_item(&source->metadata, GF_ITEM_ICC, "abcmxyz", 7);
    assert_int_equal(source->dropped, GF_DROPPED_OTHER); /* MPF */
    for (size_t i = 0; i < 3; i++) {
        markers = damaged[i];
        put_jpeg("a.jpg", &(jpeg_shape){8, 8, 1, 1}, put_markers);
        AUTO(metadata) gf_metadata metadata = load_metadata("a.jpg");
        assert_null(gf_metadata_find(&metadata, GF_ITEM_ICC));
        assert_string_equal(metadata.damaged, GF_ITEM_ICC);
    }
}

/* One item, in as many segments as necessary. */
TEST(joins_and_divides_resources) {
    enum { MAX = 65519, SIZE = 2 * MAX + 1 };
    static unsigned char large[SIZE];
    static const jpeg_marker pieces[] = {{JPEG_APP0 + 13, TEXT("Photoshop 3.0\0ab")},
                                         {JPEG_APP0 + 13, TEXT("Photoshop 3.0\0")},
                                         {JPEG_COM, TEXT("comment")},
                                         {JPEG_APP0 + 13, TEXT("Photoshop 3.0\0c")},
                                         {0}};
    markers = pieces;
    put_jpeg("a.jpg", &(jpeg_shape){8, 8, 1, 1}, put_markers);
    gf_metadata metadata = load_metadata("a.jpg");
    assert_item(&metadata, GF_ITEM_8BIM, "abc", 3);
    gf_metadata_clear(&metadata);
    for (size_t i = 0; i < SIZE; i++)
        large[i] = (unsigned char)(i * 7 >> 3);
    gf_metadata_add(&metadata, GF_ITEM_8BIM, false, large, SIZE);
    save_with("o.jpg", &metadata);
    gf_metadata_clear(&metadata);
    metadata = load_metadata("o.jpg");
    assert_item(&metadata, GF_ITEM_8BIM, large, SIZE);
    gf_metadata_clear(&metadata);
}

/* A segment has at most 65533 bytes, and a profile has at most 255 segments. */
TEST(reports_metadata_that_is_too_large) {
    static const struct {
        const char *name;
        size_t max;
        uint32_t kind;
        unsigned char head[22];
    } items[] = {{GF_ITEM_EXIF, 65527, GF_DROPPED_EXIF, ""},
                 {GF_ITEM_EXIF, 65527, GF_DROPPED_EXIF | GF_DROPPED_ORIENTATION,
                  "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6"},
                 {GF_ITEM_XMP, 65504, GF_DROPPED_XMP, ""},
                 {GF_ITEM_8BIM, 65519, 0, ""},                   /* continues in another segment */
                 {GF_ITEM_ICC, 255 * 65519, GF_DROPPED_ICC, ""}, /* 255 segments */
                 {GF_ITEM_COMMENT, 65533, GF_DROPPED_TEXT, ""}};
    static unsigned char large[255 * 65519 + 1];
    const gf_format format = {8, 8, 3, GF_U8, false};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        for (size_t extra = 0; extra < 2; extra++) {
            gf_sink *sink;
            AUTO(metadata) gf_metadata metadata = {0};
            memcpy(large, items[i].head, sizeof items[i].head);
            gf_metadata_add(&metadata, items[i].name, false, large, items[i].max + extra);
            assert_ok(
                gf_sink_open(in_directory("o.jpg"), &format, &metadata, NULL, 1, &sink, NULL));
            assert_int_equal(sink->dropped, extra ? items[i].kind : 0);
            sink->ops->close(sink);
        }
}

/* Resolutions as stored in the JFIF header, the pHYs chunk and back. */
TEST(converts_resolutions) {
    static const struct {
        gf_resolution from;
        unsigned char jfif[5]; /* unit, x, y */
        gf_resolution png;     /* read from the PNG */
    } cases[] = {
        {{300, 300, GF_PER_INCH}, {1, 1, 44, 1, 44}, {300, 300, GF_PER_INCH}},
        {{72, 96, GF_PER_INCH}, {1, 0, 72, 0, 96}, {72, 96, GF_PER_INCH}},
        {{118.11, 118.11, GF_PER_CM}, {1, 1, 44, 1, 44}, {300, 300, GF_PER_INCH}},
        {{118, 40, GF_PER_CM}, {2, 0, 118, 0, 40}, {118, 40, GF_PER_CM}},
        {{10.5, 10.5, GF_PER_CM}, {1, 0, 27, 0, 27}, {10.5, 10.5, GF_PER_CM}},
        {{12.7, 25.4, GF_PER_INCH}, {2, 0, 5, 0, 10}, {5, 10, GF_PER_CM}},
        {{2, 1, GF_PER_NONE}, {0, 0, 2, 0, 1}, {2, 1, GF_PER_NONE}},
        {{1e6, 0.25, GF_PER_INCH}, {1, 255, 255, 0, 1}, {39370079 / 100.0, 0.1, GF_PER_CM}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gf_resolution r;
        size_t size;
        gf_metadata metadata = {0};
        gf_metadata_add(&metadata, GF_ITEM_RESOLUTION, false, &cases[i].from, sizeof cases[i].from);
        save_with("o.jpg", &metadata);
        AUTO(free) unsigned char *file = test_bytes(in_directory("o.jpg"), &size);
        assert_memory_equal(file + 13, cases[i].jfif, 5);
        save_with("o.png", &metadata);
        gf_metadata_clear(&metadata);
        metadata = load_metadata("o.png");
        assert_true(gf_metadata_resolution(&metadata, &r));
        assert_true(r.x == cases[i].png.x && r.y == cases[i].png.y && r.unit == cases[i].png.unit);
        gf_metadata_clear(&metadata);
    }
}

static void put_empty_comments(j_compress_ptr jpeg) {
    for (int i = 0; i < 1000; i++)
        put_marker(jpeg, JPEG_COM, "", 0);
}

TEST(limits_metadata) {
    const jpeg_shape shape = {8, 8, 1, 1};
    jpeg_file file = make_jpeg(&shape, 1, put_all);
    const gf_limits limits = {.max_chunk = PROFILE_BYTES};
    assert_jpeg_rejected(
        &file, &limits,
        "the metadata is over the limit of 150000 bytes; raise it with --max-chunk");
    free(file.data);
    file = make_jpeg(&shape, 1, put_empty_comments);
    assert_jpeg_rejected(&file, &(gf_limits){.max_chunk = 32000},
                         "the metadata is over the limit of 32000 bytes");
    free(file.data);
}

/* ---- damaged and unsupported files ----------------------------------------------------------- */

/* Without its end marker, a file with one scan is complete, and one with several may not be. */
TEST(reports_truncation) {
    static const jpeg_shape cut[] = {{17, 9, 3, 1},
                                     {25, 9, 1, 1, .restart = 2},
                                     {9, 9, 3, 2, .progressive = true},
                                     {9, 9, 3, 2, .separate = true}};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        jpeg_file file = make_jpeg(&cut[i], 3, NULL);
        AUTO(free) unsigned char *expected = decode_jpeg(&file, 8);
        for (size_t size = 3; size < file.size; size++) {
            gf_format format;
            AUTO(free) unsigned char *pixels;
            const bool complete = !cut[i].progressive && !cut[i].separate && size + 2 >= file.size;
            const gf_status status = load_jpeg(file.data, size, NULL, 4, &format, &pixels, NULL);
            if (status != (complete ? GF_OK : GF_FAILED))
                fail_msg("%zu: %zu of %zu bytes", i, size, file.size);
            if (complete)
                assert_memory_equal(pixels, expected, gf_row_bytes(&format) * format.height);
            else
                assert_message(&why, "x.jpg: the file ends too early; get a complete copy");
        }
        free(file.data);
    }
}

TEST(rejects_by_name) {
    AUTO(free) jpeg_file cmyk = make_jpeg(&(jpeg_shape){9, 9, 4, 1}, 1, NULL);
    assert_jpeg_rejected(&cmyk, NULL, "CMYK JPEG is not supported");
    AUTO(free) jpeg_file file = make_jpeg(&(jpeg_shape){16, 16, 1, 1}, 1, NULL);
    unsigned char *frame = memmem(file.data, file.size, "\xff\xc0", 2);
    assert_non_null(frame);
    frame[4] = 12;
    assert_jpeg_rejected(&file, NULL, "JPEG with 12 bits per sample is not supported");
    frame[4] = 8;
    frame[1] = 0xc3;
    assert_jpeg_rejected(&file, NULL, "lossless and hierarchical JPEG");
    frame[1] = 0xc0;
    frame[5] = frame[7] = 0x1f;
    assert_jpeg_rejected(&file, NULL, "x.jpg: the JPEG is damaged");
    frame[5] = frame[7] = 0x7f;
    assert_jpeg_rejected(&file, &(gf_limits){.max_pixels = 1000000}, "--max-pixels");
}

TEST(rejects_damage) {
    AUTO(free) jpeg_file file = make_jpeg(&(jpeg_shape){64, 64, 1, 1}, 1, NULL);
    unsigned char *scan = memmem(file.data, file.size, "\xff\xda", 2), pixels[2];
    memcpy(pixels, scan + 100, 2);
    memcpy(scan + 100, "\xff\xd9", 2); /* an end marker within the pixels */
    assert_jpeg_rejected(&file, NULL, "x.jpg: the JPEG is damaged (");
    memcpy(scan + 100, pixels, 2);
    unsigned char *table = memmem(file.data, file.size, "\xff\xc4", 2);
    assert_non_null(table);
    memset(table + 5, 17, 16);
    assert_jpeg_rejected(&file, NULL, "x.jpg: the JPEG is damaged (");
}

/* Bytes before a restart marker are pixels that were not decoded. */
TEST(rejects_bytes_before_restarts) {
    const jpeg_shape shape = {64, 64, 1, 1, .restart = 4};
    AUTO(free) jpeg_file file = make_jpeg(&shape, 1, NULL);
    unsigned char *longer = test_alloc(file.size + 2), *marker;
    marker = memmem(file.data, file.size, "\xff\xd0", 2);
    assert_non_null(marker);
    const size_t at = (size_t)(marker - file.data);
    memcpy(longer, file.data, at);
    memcpy(longer + at, "UU", 2);
    memcpy(longer + at + 2, marker, file.size - at);
    assert_jpeg_rejected(&(jpeg_file){longer, file.size + 2}, NULL,
                         "2 extraneous bytes before marker 0xd");
    free(longer);
}

/* A file may end, with an end marker, before the scans of all components. */
TEST(rejects_missing_scans) {
    for (int progressive = 0; progressive < 2; progressive++) {
        const jpeg_shape shape = {33, 17, 3, 2, .progressive = progressive, .separate = true};
        AUTO(free) jpeg_file file = make_jpeg(&shape, 1, NULL);
        const unsigned char *end = file.data + file.size;
        unsigned char *scan = memmem(file.data, file.size, "\xff\xda", 2);
        AUTO(free) unsigned char *pixels;
        gf_format format;
        assert_ok(load_jpeg(file.data, file.size, NULL, 4, &format, &pixels, NULL));
        for (int scans = 1; scans < 3; scans++) {
            scan = memmem(scan + 2, (size_t)(end - scan) - 2, "\xff\xda", 2);
            assert_non_null(scan);
            const unsigned char held = scan[1];
            scan[1] = JPEG_EOI;
            char message[64];
            snprintf(message, sizeof message,
                     "x.jpg: the JPEG is damaged (component %d has no scan", scans + 1);
            assert_jpeg_rejected(&(jpeg_file){file.data, (size_t)(scan + 2 - file.data)}, NULL,
                                 message);
            scan[1] = held;
        }
    }
}

/* The coefficients of several scans are held in memory, and each scan takes time. */
TEST(limits_progressive_files) {
    const jpeg_shape shape = {200, 100, 3, 1, .progressive = true};
    AUTO(free) jpeg_file file = make_jpeg(&shape, 1, NULL);
    gf_format format;
    AUTO(free) unsigned char *pixels;
    assert_jpeg_rejected(&file, &(gf_limits){.max_memory = 25 * 13 * 3 * 128 - 1},
                         "the coefficients of a progressive JPEG");
    assert_ok(load_jpeg(file.data, file.size, &(gf_limits){.max_memory = 25 * 13 * 3 * 128}, 7,
                        &format, &pixels, NULL));
}

/* CPU seconds that pass with each reading of the clock of a thread. */
static time_t clock_step;

/* Replace the function of the C library. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    static time_t passed;
    const int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_THREAD_CPUTIME_ID) {
        passed += clock_step;
        time->tv_sec += passed;
    }
    return result;
}

/* Time between the reads of rows belongs to the filter. */
TEST(limits_the_time_of_scans) {
    const jpeg_shape shape = {200, 100, 3, 1, .progressive = true};
    const gf_limits limits = {.max_seconds = 2};
    AUTO(free) jpeg_file file = make_jpeg(&shape, 1, NULL);
    unsigned char row[600];
    clock_step = 1;
    assert_jpeg_rejected(&file, &limits,
                         "decoding exceeds the limit of 2 seconds; raise it with --max-seconds");
    clock_step = 0;
    put_bytes(in_directory("x.jpg"), file.data, file.size);
    gf_source *source = open_source(in_directory("x.jpg"), &limits);
    clock_step = 1;
    for (unsigned y = 0; y < shape.height; y++)
        assert_ok(source->ops->read(source, row, sizeof row, 1, NULL));
    assert_ok(source->ops->finish(source, NULL));
    source->ops->close(source);
    clock_step = 0;
}

/* ---- several images -------------------------------------------------------------------------- */

/* The index of an MPO with four images; the second one is a preview. */
static unsigned char mpo_index[4 + 8 + 2 + 12 + 4 + 4 * 16];

static void mpo_put(size_t at, uint32_t value, int bytes, bool little) {
    for (int i = 0; i < bytes; i++)
        mpo_index[at + (size_t)i] = (unsigned char)(value >> 8 * (little ? i : bytes - 1 - i));
}

static void mpo_fill(bool little, const uint32_t offsets[4]) {
    memcpy(mpo_index, little ? "MPF\0II*\0" : "MPF\0MM\0*", 8);
    mpo_put(8, 8, 4, little); /* the directory, from the byte order on */
    mpo_put(12, 1, 2, little);
    mpo_put(14, 0xb002, 2, little);
    mpo_put(16, 7, 2, little);
    mpo_put(18, 64, 4, little);
    mpo_put(22, 26, 4, little);
    for (size_t i = 0; i < 4; i++) {
        mpo_put(30 + 16 * i, i == 0 ? 0x20030000 : i == 1 ? 0x10001 : 0x20002, 4, little);
        mpo_put(30 + 16 * i + 8, offsets[i], 4, little);
    }
}

static void mpo_put_marker(j_compress_ptr jpeg) {
    jpeg_write_marker(jpeg, JPEG_APP0 + 2, mpo_index, sizeof mpo_index);
}

/* The images that follow in an MPO are pages, and previews are not. */
TEST(reads_the_images_of_an_mpo) {
    for (int little = 0; little < 2; little++) {
        uint32_t offsets[4] = {0};
        jpeg_file whole = {0}, files[4];
        mpo_fill(little, offsets);
        for (unsigned i = 0; i < 4; i++) {
            const jpeg_shape shape = {
                .width = 20 + i, .height = 10, .components = 3, .sampling = 1};
            files[i] = make_jpeg(&shape, i, i == 0 ? mpo_put_marker : NULL);
            whole.data = realloc(whole.data, whole.size + files[i].size);
            assert_non_null(whole.data);
            offsets[i] = (uint32_t)whole.size;
            memcpy(whole.data + whole.size, files[i].data, files[i].size);
            whole.size += files[i].size;
        }
        size_t at = 0;
        while (memcmp(whole.data + at, "MPF", 4) != 0)
            at++;
        for (size_t i = 1; i < 4; i++)
            offsets[i] -= (uint32_t)at + 4;
        mpo_fill(little, offsets);
        memcpy(whole.data + at, mpo_index, sizeof mpo_index);
        put_bytes(in_directory("x.jpg"), whole.data, whole.size);
        for (uint32_t page = 1; page <= 3; page++) {
            const gf_limits limits = {.page = page};
            const gf_format format = {page == 1 ? 20 : 20 + page, 10, 3, GF_U8, false};
            AUTO(free) unsigned char *expected = decode_jpeg(&files[page == 1 ? 0 : page], 8);
            AUTO(source) gf_source *source = open_source(in_directory("x.jpg"), &limits);
            assert_int_equal(source->pages, 3);
            assert_non_null(strstr(source->stored, page == 2 ? "image 2 of 3" : " of 3"));
            assert_loads(in_directory("x.jpg"), &limits, 3, &format, expected);
        }
        assert_jpeg_rejected(&whole, &(gf_limits){.page = 4},
                             "has no page 4; choose one from 1 to 3 with --page");
        assert_jpeg_rejected(&(jpeg_file){whole.data, whole.size - files[3].size},
                             &(gf_limits){.page = 3}, "ends too early");
        assert_jpeg_rejected(&files[1], &(gf_limits){.page = 2}, "has no pages; omit --page");
        mpo_put(30 + 32 + 8, 1, 4, little); /* an image within the first one */
        memcpy(whole.data + at, mpo_index, sizeof mpo_index);
        assert_jpeg_rejected(&whole, &(gf_limits){.page = 2}, "has no page 2");
        for (size_t i = 0; i < 4; i++)
            free(files[i].data);
        free(whole.data);
    }
}

int main(void) {
    return test_main_in_directory();
}
