/* Changes of rows: sample types, in memory and in whole files; orientation; parts of images. */
#include "io/stream/convert.h"

#include <math.h>

#include "core/convert.h"
#include "io/meta/metadata.h"
#include "io_util.h"

/* Convert all samples to another type. The caller frees the result. */
static void *convert_all(const gf_format *format, const void *pixels, gf_type type) {
    const gf_format to = {format->width, format->height, format->channels, type, format->alpha};
    const gf_conversion how = gf_conversion_of(format, &to, false);
    const uint64_t n = gf_row_samples(format) * format->height;
    unsigned char *out = test_alloc(n * gf_type_bytes(type));
    gf_convert_samples(&how, out, pixels, n);
    return out;
}

static void *convert_row(gf_format format, const void *row, gf_type type) {
    return convert_all(&format, row, type);
}

/* ---- every integer value --------------------------------------------------------------------- */

TEST(raises_every_integer) {
    uint8_t bytes[256];
    AUTO(free) uint16_t *words = test_alloc(65536 * sizeof *words);
    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    for (unsigned i = 0; i < 65536; i++)
        words[i] = (uint16_t)i;
    AUTO(free) uint16_t *from_u8 = convert_row((gf_format){256, 1, 1, GF_U8, false}, bytes, GF_U16);
    AUTO(free)
    float *f32_from_u8 = convert_row((gf_format){256, 1, 1, GF_U8, false}, bytes, GF_F32);
    AUTO(free)
    float *f32_from_u16 = convert_row((gf_format){65536, 1, 1, GF_U16, false}, words, GF_F32);
    for (unsigned i = 0; i < 256; i++) {
        assert_int_equal(from_u8[i], i * 0x101);
        /* Binary64 has over twice the bits of binary32: rounding the quotient twice is the same as
         * rounding it once. */
        assert_true(f32_from_u8[i] == (float)((double)i / 255));
    }
    for (unsigned i = 0; i < 65536; i++)
        assert_true(f32_from_u16[i] == (float)((double)i / 65535));
    /* 8 bits, stored in 16 or as f32, and back: the same value. */
    uint8_t *back = convert_row((gf_format){256, 1, 1, GF_U16, false}, from_u8, GF_U8);
    assert_memory_equal(back, bytes, sizeof bytes);
    free(back);
    back = convert_row((gf_format){256, 1, 1, GF_F32, false}, f32_from_u8, GF_U8);
    assert_memory_equal(back, bytes, sizeof bytes);
    free(back);
    AUTO(free)
    uint16_t *words_back =
        convert_row((gf_format){65536, 1, 1, GF_F32, false}, f32_from_u16, GF_U16);
    assert_memory_equal(words_back, words, 65536 * sizeof *words);
    AUTO(free)
    uint8_t *lowered = convert_row((gf_format){65536, 1, 1, GF_U16, false}, words, GF_U8);
    for (unsigned i = 0; i < 65536; i++) /* no value is farther than 128 from a multiple of 257 */
        assert_true(abs((int)i - 257 * lowered[i]) <= 128);
}

/* ---- binary32 -------------------------------------------------------------------------------- */

TEST(rounds_and_clamps) {
    /* The exact products are in the comments. Halves occur only for 0.5: 255 and 65535 are odd. */
    static const struct {
        float value;
        unsigned u8, u16;
    } cases[] = {
        {0.0f, 0, 0},
        {-0.0f, 0, 0},
        {1.0f, 255, 65535},
        {0.5f, 128, 32768},           /* 127.5 and 32767.5: to even, up */
        {0x1.fffffep-2f, 127, 32767}, /* just below */
        {0.1f, 26, 6554},             /* 25.5000004, 6553.5001 */
        {0x1.999998p-4f, 25, 6553},   /* the value below 0.1f: 25.4999985, 6553.4996 */
        {0.7f, 178, 45874},           /* 178.499997, 45874.4992 */
        {0x1.66668p-1f, 179, 45875},  /* 178.50004, 45874.51 */
        {1.0f / 512.0f, 0, 128},      /* 0.498, 127.998 */
        {0x1p-16f, 0, 1},             /* 0.99998 */
        {0x1p-17f, 0, 0},             /* 0.499992 */
        {0x1.8p-16f, 0, 1},           /* 1.49998 */
        {0x1.0001p-17f, 0, 0},        /* 0.4999998 */
        {0x1.000102p-17f, 0, 1},      /* 0.5000000+: above one half */
        {2.0f, 255, 65535},
        {3.0e38f, 255, 65535},
        {-1.0f, 0, 0},
        {-1e-45f, 0, 0},
        {1e-45f, 0, 0},
        {0x1.fffffep-1f, 255, 65535}, /* 254.99998, 65534.996 */
    };
    enum { COUNT = sizeof cases / sizeof *cases, SPECIAL = 4 };
    float values[COUNT + SPECIAL];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = cases[i].value;
    values[COUNT] = (float)INFINITY;
    values[COUNT + 1] = -(float)INFINITY;
    values[COUNT + 2] = (float)NAN;
    values[COUNT + 3] = -(float)NAN;
    const gf_format format = {COUNT + SPECIAL, 1, 1, GF_F32, false};
    AUTO(free) uint8_t *u8 = convert_row(format, values, GF_U8);
    AUTO(free) uint16_t *u16 = convert_row(format, values, GF_U16);
    for (size_t i = 0; i < COUNT; i++)
        if (u8[i] != cases[i].u8 || u16[i] != cases[i].u16)
            fail_msg("%a: %u and %u, expected %u and %u", (double)values[i], u8[i], u16[i],
                     cases[i].u8, cases[i].u16);
    assert_int_equal(u8[COUNT], 255);
    assert_int_equal(u16[COUNT], 65535);
    for (size_t i = COUNT + 1; i < COUNT + SPECIAL; i++)
        assert_int_equal(u8[i] | u16[i], 0);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The same conversions, one sample at a time. */
static double sample_at(const gf_format *format, const void *pixels, uint64_t i) {
    return format->type == GF_U8    ? ((const uint8_t *)pixels)[i] / 255.0
           : format->type == GF_U16 ? ((const uint16_t *)pixels)[i] / 65535.0
                                    : (double)((const float *)pixels)[i];
}

static void *convert_each(const gf_format *format, const void *pixels, gf_type type) {
    const uint64_t n = gf_row_samples(format) * format->height;
    unsigned char *out = test_alloc(n * gf_type_bytes(type));
    for (uint64_t i = 0; i < n; i++) {
        const double v = sample_at(format, pixels, i), unit = v > 0 ? v < 1 ? v : 1 : 0;
        if (type == GF_U8)
            out[i] = (uint8_t)lrint(unit * 255);
        else if (type == GF_U16)
            ((uint16_t *)(void *)out)[i] = (uint16_t)lrint(unit * 65535);
        else
            ((float *)(void *)out)[i] = (float)v;
    }
    return out;
}

/* Replace the samples of an f32 image by numbers around 0..1. */
static void random_reals(const gf_format *format, void *pixels, uint32_t *seed) {
    const uint64_t n = gf_row_samples(format) * format->height;
    for (uint64_t i = 0; format->type == GF_F32 && i < n; i++)
        ((float *)pixels)[i] = (float)((double)next_random(seed) / 8000000.0 - 0.5);
}

/* Sizes around the block of the conversion, all channels, also in place: samples that grow start at
 * the end of the memory. */
TEST(converts_rows) {
    static const uint64_t widths[] = {1, 2, 7, 64, 255, 256, 257, 341, 342, 1023, 1024, 1025, 3000};
    uint32_t seed = 1;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (gf_type from = GF_U8; from <= GF_F32; from++)
            for (gf_type to = GF_U8; to <= GF_F32; to++) {
                if (from == to)
                    continue;
                gf_format format = {widths[w], 1 + next_random(&seed) % 9,
                                    1 + next_random(&seed) % 4, from, false};
                format.alpha = format.channels % 2 == 0;
                const uint64_t n = gf_row_samples(&format) * format.height;
                const size_t in_bytes = n * gf_type_bytes(from), bytes = n * gf_type_bytes(to);
                const size_t start = in_bytes < bytes ? bytes - in_bytes : 0;
                gf_format stored = format;
                AUTO(free) unsigned char *pixels = random_pixels(&format, (unsigned)w);
                AUTO(free) unsigned char *block = test_alloc(start + in_bytes);
                random_reals(&format, pixels, &seed);
                stored.type = to;
                AUTO(free) unsigned char *expected = convert_each(&format, pixels, to);
                AUTO(free) unsigned char *got = convert_all(&format, pixels, to);
                assert_memory_equal(got, expected, bytes);
                memcpy(block + start, pixels, in_bytes);
                const gf_conversion how = gf_conversion_of(&format, &stored, false);
                gf_convert_samples(&how, block, block + start, n);
                assert_memory_equal(block, expected, bytes);
            }
}

/* ---- wrappers -------------------------------------------------------------------------------- */

/* The wrapper seeks, and has the metadata, the threads and the bytes of what it wraps. */
TEST(forwards_to_files) {
    const gf_format format = {301, 200, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 5), *got;
    const size_t row = gf_row_bytes(&format);
    AUTO(free) unsigned char *rows = test_alloc(2 * row);
    AUTO(free) uint8_t *missing = test_alloc(row);
    gf_left_out left_out = {.images = 1, .end = format.height, .missing = missing};
    gf_metadata metadata = {.count = 0}, read;
    assert_ok(save_image(in_directory("x.ppm"), &format, pixels, NULL, NULL, 9));
    gf_source *source = open_source(in_directory("x.ppm"), NULL);
    assert_ok(gf_nodata_source(&source, &left_out, "x.ppm", NULL));
    assert_null(source->ops->announce);
    source->ops->seek(source, 150);
    assert_ok(source->ops->read(source, rows, row, 2, NULL));
    assert_memory_equal(rows, pixels + 150 * row, 2 * row);
    assert_ok(source->ops->finish(source, NULL));
    assert_int_equal(source->bytes, format.height * row + strlen("P6\n301 200\n255\n"));
    source->ops->close(source);

    metadata = (gf_metadata){0};
    gf_metadata_add(&metadata, "pHYs", false, "\0\0\1\0\0\0\1\0\1", 9);
    gf_metadata_add(&metadata, "tEXt", true, "a\0b", 3);
    assert_ok(save_image(in_directory("x.png"), &format, pixels, &metadata, NULL, 200));
    source = open_source(in_directory("x.png"), NULL);
    assert_ok(gf_nodata_source(&source, &left_out, "x.png", NULL));
    assert_int_equal(source->metadata.count, 1);
    assert_non_null(source->ops->announce);
    assert_ok(load_source(source, 50, &got, &read, NULL));
    assert_memory_equal(got, pixels, format.height * row);
    assert_int_equal(read.count, 2);
    assert_string_equal(read.chunks[0].name, "pHYs");
    assert_string_equal(read.chunks[1].name, "tEXt");
    gf_metadata_clear(&read);
    gf_metadata_clear(&metadata);
}

/* ---- parts of images ------------------------------------------------------------------------- */

/* Read a part of a file in strips, and compare it with the same part of its pixels. */
static void assert_part(const char *path, const gf_limits *limits, const gf_format *whole,
                        const unsigned char *pixels, uint32_t *seed) {
    const size_t row = gf_row_bytes(whole), pixel = row / whole->width;
    gf_crop crop = {next_random(seed) % whole->width, next_random(seed) % whole->height, 0, 0};
    const bool wide = next_random(seed) % 4 == 0; /* all columns */
    gf_limits part = *limits;
    gf_format format;
    AUTO(free) unsigned char *got;
    crop.x = wide ? 0 : crop.x;
    crop.width = wide ? whole->width : 1 + next_random(seed) % (whole->width - crop.x);
    crop.height = 1 + next_random(seed) % (whole->height - crop.y);
    part.crop = &crop;
    const uint64_t strip = 1 + next_random(seed) % crop.height;
    assert_ok(load_image(path, &part, strip, &format, &got, NULL, NULL));
    assert_int_equal(format.width, crop.width);
    assert_int_equal(format.height, crop.height);
    for (uint64_t y = 0; y < crop.height; y++)
        assert_memory_equal(got + y * crop.width * pixel,
                            pixels + (crop.y + y) * row + crop.x * pixel, crop.width * pixel);
}

/* Files with and without random access, wide and narrow rows, with one and several threads. */
TEST(reads_parts_of_files) {
    static const struct {
        const char *name;
        gf_format format;
    } files[] = {
        {"a.ppm", {67, 41, 3, GF_U8, false}},       {"a.pam", {300, 5, 4, GF_U16, true}},
        {"a.pfm", {33, 29, 1, GF_F32, false}},      {"a.png", {71, 60, 2, GF_U8, true}},
        {"big.png", {1200, 900, 3, GF_U16, false}}, {"a.bmp", {50, 20, 3, GF_U8, false}},
        {"wide.pgm", {40000, 9, 1, GF_U16, false}}, {"wide.pfm", {30000, 7, 3, GF_F32, false}},
        {"a.raw", {30011, 11, 2, GF_U8, true}},
    };
    uint32_t seed = 7;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const gf_format *format = &files[i].format;
        const char *path = in_directory(files[i].name);
        const gf_raw raw = {.format = *format};
        AUTO(free) unsigned char *pixels = random_pixels(format, (unsigned)i);
        assert_ok(save_image(path, format, pixels, NULL, NULL, format->height));
        for (int round = 0; round < 12; round++) {
            const gf_limits limits = {.threads = round % 2 ? 4 : 1,
                                      .no_sandbox = getenv("GF_TEST_NO_SANDBOX"),
                                      .raw = strcmp(files[i].name, "a.raw") == 0 ? &raw : NULL};
            assert_part(path, &limits, format, pixels, &seed);
        }
    }
}

/* Only some columns of wide rows are read: the others may be missing at the end of the file. */
TEST(leaves_out_columns) {
    const gf_raw raw = {
        .format = {50000, 3, 1, GF_U16, false}, .offset = 10, .big_endian = !gf_host_is_little()};
    const gf_crop crop = {.x = 7, .y = 1, .width = 1000, .height = 2};
    const gf_limits limits = {.raw = &raw, .crop = &crop, .threads = 2};
    const size_t size = 10 + 300000;
    AUTO(free) unsigned char *bytes = test_alloc(size);
    uint16_t rows[1000];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 / 3);
    put_bytes(in_directory("x.raw"), bytes, size);
    AUTO(source) gf_source *source = open_source(in_directory("x.raw"), &limits);
    /* Without its end the file has the wrong size, which is reported when it is opened. */
    assert_int_equal(truncate(in_directory("x.raw"), 10 + 200014 + 2000), 0);
    for (size_t y = 1; y < 3; y++) {
        assert_ok(source->ops->read(source, rows, sizeof rows, 1, NULL));
        assert_memory_equal(rows, bytes + 10 + y * 100000 + 14, sizeof rows);
    }
    source->ops->seek(source, 1);
    memset(rows, 0, sizeof rows);
    assert_ok(source->ops->read(source, rows, sizeof rows, 1, NULL));
    assert_memory_equal(rows, bytes + 10 + 200014, sizeof rows);
    assert_ok(source->ops->finish(source, NULL));
}

/* A damaged row below the part is not read; one above it is, if the rows have to be decoded. */
TEST(ignores_rows_below) {
    const gf_format format = {400, 300, 3, GF_U8, false};
    gf_crop crop = {.width = 400, .height = 10};
    gf_limits limits = {.crop = &crop, .threads = 1};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 3);
    gf_format read;
    size_t size;
    assert_ok(save_image(in_directory("x.png"), &format, pixels, NULL, NULL, 300));
    AUTO(free) unsigned char *bytes = test_bytes(in_directory("x.png"), &size);
    put_bytes(in_directory("x.png"), bytes, size - 40000);
    for (limits.threads = 1; limits.threads <= 4; limits.threads += 3) {
        AUTO(free) unsigned char *got;
        crop.height = 10;
        assert_ok(load_image(in_directory("x.png"), &limits, 3, &read, &got, NULL, &why));
        assert_memory_equal(got, pixels, 10 * gf_row_bytes(&format));
        crop.height = 300;
        assert_load_fails(in_directory("x.png"), &limits, "x.png: the PNG ends too early");
    }
}

TEST(rejects_parts_outside) {
    static const struct {
        gf_crop crop;
        const char *message; /* NULL: inside */
    } cases[] = {
        {{0, 0, 10, 8}, NULL},
        {{9, 7, 1, 1}, NULL},
        {{10, 0, 1, 1},
         "x.pgm: --crop 10,0,1,1 is not inside the image of 10x8 pixels; correct it"},
        {{0, 8, 1, 1}, "x.pgm: --crop 0,8,1,1 is not inside the image of 10x8 pixels; correct it"},
        {{1, 0, 10, 8},
         "x.pgm: --crop 1,0,10,8 is not inside the image of 10x8 pixels; correct it"},
        {{0, 1, 10, 8},
         "x.pgm: --crop 0,1,10,8 is not inside the image of 10x8 pixels; correct it"},
        {{UINT64_MAX, 0, 2, 1},
         "x.pgm: --crop 18446744073709551615,0,2,1 is not inside the image of 10x8 pixels; correct it"},
        {{0, 2, 1, UINT64_MAX},
         "x.pgm: --crop 0,2,1,18446744073709551615 is not inside the image of 10x8 pixels; correct it"},
        {{0, 0, 0, 1}, "--crop: the rectangle is empty"},
        {{0, 0, 1, 0}, "--crop: the rectangle is empty"},
    };
    const gf_format format = {10, 8, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    assert_ok(save_image(in_directory("x.pgm"), &format, pixels, NULL, NULL, 8));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gf_file_options options = {.crop = &cases[i].crop};
        gf_format read;
        AUTO(free) void *got;
        const gf_status status =
            gf_load_file(in_directory("x.pgm"), &options, &read, &got, NULL, &why);
        assert_int_equal(status == GF_OK, cases[i].message == NULL);
        if (status)
            assert_message(&why, cases[i].message);
        else
            assert_int_equal(read.width * read.height, cases[i].crop.width * cases[i].crop.height);
        /* The description of a file is that of the whole file. */
        gf_file_info info;
        assert_ok(gf_inspect_file(in_directory("x.pgm"), &options, &info, NULL));
        assert_true(gf_format_equal(&info.format, &format));
    }
}

TEST(parses_parts) {
    static const char *const invalid[] = {
        "",         "1",       "1,2,3",   "1,2,3,4,5", "1,2,3,",   "1,2,3,4 ", "-1,2,3,4",
        "1, 2,3,4", "1,2,0,4", "1,2,3,0", "1x2x3x4",   "+1,2,3,4", ",2,3,4"};
    gf_crop crop = {5, 6, 7, 8};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        assert_error(gf_crop_parse(invalid[i], &crop, &why), GF_USAGE, "--crop '");
        assert_int_equal(crop.x + crop.y + crop.width + crop.height, 5 + 6 + 7 + 8);
    }
    assert_ok(gf_crop_parse("0,20,300,4000", &crop, &why));
    assert_int_equal(crop.x, 0);
    assert_int_equal(crop.y, 20);
    assert_int_equal(crop.width, 300);
    assert_int_equal(crop.height, 4000);
}

/* ---- orientation ----------------------------------------------------------------------------- */

/* Write an image with an orientation, in either byte order, and a resolution of 2 by 3. */
static void save_turned(const gf_format *format, const void *pixels, unsigned orientation,
                        bool big) {
    unsigned char little[26] = "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0";
    unsigned char exif[26] = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1";
    const gf_file_options force = {.force = true};
    little[18] = (unsigned char)orientation;
    exif[19] = (unsigned char)orientation;
    if (!big)
        memcpy(exif, little, sizeof exif);
    AUTO(metadata) gf_metadata metadata = {0};
    gf_metadata_add(&metadata, "pHYs", false, "\0\0\0\2\0\0\0\3\0", 9);
    gf_metadata_add(&metadata, "eXIf", false, exif, sizeof exif);
    gf_metadata_add(&metadata, "tEXt", true, "a\0b", 3);
    assert_ok(save_image(in_directory("t.png"), format, pixels, &metadata, &force, format->height));
}

/* Sides of the upright image where row 0 and column 0 of the file are, as EXIF defines them. */
static const struct {
    char row, column;
} sides[9] = {{0, 0},     {'t', 'l'}, {'t', 'r'}, {'b', 'r'}, {'b', 'l'},
              {'l', 't'}, {'r', 't'}, {'r', 'b'}, {'l', 'b'}};

/* Set a coordinate of the upright image: `at` of `size` from a side. */
static void place(char side, uint64_t at, uint64_t size, uint64_t *x, uint64_t *y) {
    const uint64_t value = side == 'l' || side == 't' ? at : size - 1 - at;
    *(side == 'l' || side == 'r' ? x : y) = value;
}

TEST(turns_images) {
    static const uint64_t sizes[][2] = {{1, 1}, {5, 3}, {1, 9}, {200, 130}, {64, 129}};
    uint32_t seed = 3;
    for (unsigned orientation = 1; orientation <= 8; orientation++)
        for (unsigned k = 0; k < 8 * sizeof sizes / sizeof *sizes; k++) {
            const gf_format format = {sizes[k / 8][0], sizes[k / 8][1], 1 + k % 4,
                                      k % 8 < 4 ? GF_U8 : GF_U16, (1 + k % 4) % 2 == 0};
            const size_t row = gf_row_bytes(&format), pixel = row / format.width;
            const gf_limits limits = {.autorotate = true, .threads = 1 + k % 2 * 3};
            AUTO(free) unsigned char *pixels = random_pixels(&format, k), *got;
            AUTO(metadata) gf_metadata metadata;
            save_turned(&format, pixels, orientation, k % 3 == 0);
            gf_source *source = open_source(in_directory("t.png"), &limits);
            assert_int_equal(gf_metadata_orientation(&source->metadata), 1);
            const gf_format turned = source->format;
            assert_int_equal(turned.width, orientation < 5 ? format.width : format.height);
            assert_int_equal(turned.height, orientation < 5 ? format.height : format.width);
            const uint64_t strip = 1 + next_random(&seed) % turned.height;
            assert_ok(load_source(source, strip, &got, &metadata, NULL));
            for (uint64_t r = 0; r < format.height; r++)
                for (uint64_t c = 0; c < format.width; c++) {
                    uint64_t x = 0, y = 0;
                    place(sides[orientation].row, r, format.height, &x, &y);
                    place(sides[orientation].column, c, format.width, &x, &y);
                    assert_memory_equal(got + (y * turned.width + x) * pixel,
                                        pixels + r * row + c * pixel, pixel);
                }
            /* The metadata is complete, and that before the pixels is adapted. */
            assert_int_equal(metadata.count, 3);
            assert_true(metadata.chunks[2].late);
            assert_int_equal(gf_metadata_find(&metadata, "pHYs")->data[3], orientation < 5 ? 2 : 3);
            assert_int_equal(gf_metadata_find(&metadata, "pHYs")->data[7], orientation < 5 ? 3 : 2);
        }
}

/* Threads write rows of a large PNG to memory that was announced, also after the rows above have
 * been mirrored there. */
TEST(mirrors_rows_written_ahead) {
    enum { STRIP = 100, STRIPS = 15, SLOTS = 3 };
    static const gf_format format = {2100, STRIP * STRIPS, 3, GF_U8, false};
    const size_t row = gf_row_bytes(&format);
    AUTO(free) unsigned char *pixels = random_pixels(&format, 9);
    for (size_t i = 0; i < row * format.height; i++) /* compressible, in all row filters */
        pixels[i] = (unsigned char)(i / 3 % 211 + pixels[i] % 4);
    save_turned(&format, pixels, 2, false);
    const gf_limits limits = {.threads = 4, .autorotate = true};
    AUTO(source) gf_source *source = open_source(in_directory("t.png"), &limits);
    assert_true(source->threads > 1);
    const size_t stride = row + MARGIN;
    AUTO(free) unsigned char *ring = test_alloc(SLOTS * STRIP * stride), *line = test_alloc(row);
    memset(ring, PAINT, SLOTS * STRIP * stride);
    for (size_t strip = 0, announced = 0; strip < STRIPS; strip++) {
        unsigned char *slot = ring + strip % SLOTS * STRIP * stride;
        for (; announced < strip + SLOTS && announced < STRIPS; announced++)
            assert_ok(source->ops->announce(source, ring + announced % SLOTS * STRIP * stride,
                                            stride, STRIP, NULL));
        assert_ok(source->ops->read(source, slot, stride, STRIP, NULL));
        for (size_t y = 0; y < STRIP; y++, slot += stride) {
            const unsigned char *from = pixels + (strip * STRIP + y) * row;
            for (size_t i = 0; i < row; i++)
                line[i] = from[row - 3 - i / 3 * 3 + i % 3];
            assert_memory_equal(slot, line, row);
            for (size_t i = row; i < stride; i++)
                assert_int_equal(slot[i], PAINT);
        }
    }
    assert_ok(source->ops->finish(source, NULL));
}

/* The image is turned first: the part is that of the upright image. */
TEST(crops_turned_images) {
    const gf_format format = {90, 70, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 4);
    uint32_t seed = 11;
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        gf_limits limits = {.autorotate = true, .threads = 1};
        gf_format turned;
        AUTO(free) unsigned char *upright;
        save_turned(&format, pixels, orientation, false);
        assert_ok(load_image(in_directory("t.png"), &limits, 70, &turned, &upright, NULL, NULL));
        for (int round = 0; round < 8; round++)
            assert_part(in_directory("t.png"), &limits, &turned, upright, &seed);
        /* Limits of memory apply to the image, which is read with the first row. */
        limits.max_memory = 90 * 70 * 3 - 1;
        AUTO(free) unsigned char *ignored;
        const gf_status status =
            load_image(in_directory("t.png"), &limits, 70, &turned, &ignored, NULL, &why);
        assert_int_equal(status, orientation < 3 ? GF_OK : GF_FAILED);
        if (status)
            assert_message(&why, "18900 bytes for an image to turn are over the limit of 18899");
    }
}

/* The resolutions of EXIF data are those of columns and rows. */
TEST(turns_resolutions) {
    static const unsigned char exif[] =
        "II*\0\x08\0\0\0\2\0"
        "\x1a\1\5\0\1\0\0\0\x26\0\0\0"
        "\x1b\1\5\0\1\0\0\0\x2e\0\0\0"
        "\0\0\0\0\x64\0\0\0\1\0\0\0\x32\0\0\0\1\0\0";
    for (int transposed = 0; transposed < 2; transposed++) {
        gf_resolution r;
        AUTO(metadata) gf_metadata metadata = {0};
        gf_metadata_add(&metadata, GF_ITEM_EXIF, false, exif, sizeof exif);
        gf_metadata_set_upright(&metadata, transposed);
        assert_true(gf_metadata_resolution(&metadata, &r));
        assert_true(r.x == (transposed ? 50 : 100) && r.y == (transposed ? 100 : 50));
    }
}

/* Damaged EXIF data of PNG and TIFF may contain an orientation. */
TEST(rejects_damaged_orientations) {
    static const char *const names[] = {"eXIf", GF_ITEM_EXIF};
    const gf_format format = {2, 2, 1, GF_U8, false};
    for (size_t i = 0; i < 2; i++) {
        AUTO(source) gf_source *source;
        assert_ok(gf_memory_source(&format, "abcd", 2, &source, NULL));
        strcpy(source->metadata.damaged, names[i]);
        assert_error(gf_rotate_source(&source, UINT64_MAX, "x.tif", &why), GF_FAILED,
                     "x.tif: the EXIF data is damaged");
    }
}

/* An orientation after the pixels is found too late to turn them. */
TEST(rejects_late_orientations) {
    static const unsigned char exif[] = "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0";
    const gf_format format = {30, 20, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    for (int early = 0; early <= 1; early++)
        for (unsigned char orientation = 0; orientation <= 8; orientation++)
            for (int turn = 0; turn <= 1; turn++) {
                AUTO(free) unsigned char *got;
                const gf_limits limits = {.autorotate = turn};
                const bool fails = turn && !early && orientation > 1;
                unsigned char data[26] = {0};
                gf_format read;
                AUTO(metadata) gf_metadata metadata = {0};
                memcpy(data, exif, sizeof exif);
                for (int late = !early; late <= 1; late++) {
                    data[18] = late ? orientation : 1;
                    gf_metadata_add(&metadata, "eXIf", late, data, sizeof data);
                }
                assert_ok(save_image(in_directory("l.png"), &format, pixels, &metadata,
                                     &(gf_file_options){.force = true}, 20));
                assert_int_equal(
                    load_image(in_directory("l.png"), &limits, 20, &read, &got, NULL, &why),
                    fails ? GF_FAILED : GF_OK);
                if (fails)
                    assert_message(&why,
                                   "l.png: the EXIF orientation follows the pixels; "
                                   "convert the file to TIFF first, or remove "
                                   "--autorotate");
            }
}

/* Readers use the first of two orientations, which turning changes. The second is not copied. */
TEST(omits_second_orientations) {
    static const unsigned char exif[] = "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0";
    static const gf_crop crop = {0, 0, 5, 5};
    const gf_limits limits[] = {{.autorotate = true}, {.crop = &crop}, {.autorotate = false}};
    const gf_format format = {30, 20, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    AUTO(metadata) gf_metadata metadata = {0};
    for (int late = 0; late <= 1; late++)
        gf_metadata_add(&metadata, "eXIf", late, exif, sizeof exif);
    assert_ok(save_image(in_directory("l.png"), &format, pixels, &metadata,
                         &(gf_file_options){.force = true}, 20));
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        AUTO(free) unsigned char *got;
        AUTO(metadata) gf_metadata read;
        gf_format turned;
        assert_ok(load_image(in_directory("l.png"), &limits[i], 1, &turned, &got, &read, NULL));
        assert_int_equal(read.count, 1);
        assert_int_equal(gf_metadata_orientation(&read), i == 0 ? 1 : 6);
    }
}

/* The note about further pages does not depend on the part that is read. */
TEST(keeps_the_number_of_pages) {
    const gf_format format = {2, 2, 1, GF_U8, false};
    const gf_crop crop = {0, 0, 1, 1};
    AUTO(source) gf_source *source;
    assert_ok(gf_memory_source(&format, "abcd", 2, &source, NULL));
    source->pages = 3;
    assert_ok(gf_crop_source(&source, &crop, UINT64_MAX, "x.tif", NULL));
    assert_int_equal(source->format.width, 1);
    assert_int_equal(source->pages, 3);
}

/* Only an orientation that exists is set; others and damaged data stay as they are. */
TEST(sets_orientations) {
    static const unsigned char with[26] = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6";
    unsigned char exif[26];
    const gf_chunk item = {.data = exif, .size = sizeof exif};
    for (size_t size = 0; size <= sizeof with; size++) {
        const gf_chunk part = {.data = malloc(size ? size : 1), .size = size};
        assert_non_null(part.data);
        memcpy(part.data, with, size);
        /* The entry ends 4 bytes before the end: the offset of the next directory follows. */
        assert_int_equal(gf_exif_set_orientation(&part, 1), size >= sizeof with - 4);
        assert_int_equal(gf_exif_orientation(&part), size >= sizeof with - 4 ? 1 : 0);
        free(part.data);
    }
    memcpy(exif, with, sizeof exif);
    exif[11] = 0x13; /* another tag */
    assert_false(gf_exif_set_orientation(&item, 1));
    assert_int_equal(exif[19], 6);
    memcpy(exif, with, sizeof exif);
    assert_true(gf_exif_set_orientation(&item, 0x102));
    assert_int_equal(exif[18], 1);
    assert_int_equal(exif[19], 2);
}

/* ---- whole files ----------------------------------------------------------------------------- */

TEST(loads_with_a_depth) {
    for (gf_type from = GF_U8; from <= GF_F32; from++)
        for (gf_depth depth = GF_DEPTH_INPUT; depth <= GF_DEPTH_F32; depth++) {
            const gf_format format = {700, 9, 3, from, false};
            const gf_crop crop = {11, 2, 650, 7};
            const gf_file_options options = {.write.depth = depth, .crop = &crop},
                                  force = {.force = true};
            const char *path = in_directory(from == GF_F32 ? "x.pfm" : "x.png");
            const size_t pixel = 3 * gf_type_bytes(from);
            unsigned char *pixels = random_pixels(&format, depth),
                          *part = test_alloc(650 * 7 * pixel);
            gf_format read, read_low, part_format = format;
            gf_report report;
            uint64_t outside = 0;
            AUTO(free) void *got;
            assert_ok(save_image(path, &format, pixels, NULL, &force, 9));
            for (size_t y = 0; y < 7; y++)
                memcpy(part + y * 650 * pixel, pixels + ((y + 2) * 700 + 11) * pixel, 650 * pixel);
            part_format.width = 650;
            part_format.height = 7;
            assert_ok(gf_load_file(path, &options, &read, &got, &report, NULL));
            const gf_type type = gf_depth_type(depth, from);
            for (size_t i = 0; from == GF_F32 && type < from && i < 650 * 7 * 3; i++)
                outside += !(((float *)(void *)part)[i] >= 0 && ((float *)(void *)part)[i] <= 1);
            assert_int_equal(report.remarks.outside, outside);
            /* Memory that suffices for the decoder, but not for the image. */
            AUTO(free) void *none;
            gf_file_options low = options;
            low.max_memory = 650 * 7 * 3 * gf_type_bytes(from > type ? from : type) - 1;
            assert_error(gf_load_file(path, &low, &read_low, &none, NULL, &why), GF_FAILED,
                         "bytes for the image are over the limit");
            assert_null(none);
            AUTO(free) unsigned char *expected = convert_each(&part_format, part, type);
            part_format.type = type;
            assert_true(gf_format_equal(&read, &part_format));
            if (type == from) /* bits, of a NaN too */
                assert_memory_equal(got, part, 650 * 7 * pixel);
            else
                assert_memory_equal(got, expected, 7 * gf_row_bytes(&read));
            free(part);
            free(pixels);
        }
}

/* Rows with margins, more than are converted at a time. */
TEST(saves_with_a_depth) {
    const gf_file_options force = {.force = true};
    const char *path = in_directory("x.npy");
    uint32_t seed = 5;
    for (gf_type from = GF_U8; from <= GF_F32; from++)
        for (gf_depth depth = GF_DEPTH_INPUT; depth <= GF_DEPTH_F32; depth++) {
            gf_format format = {1001, 300, 1, from, false}, read;
            const gf_file_options options = {.force = true, .write.depth = depth};
            const size_t row = gf_row_bytes(&format), stride = row + MARGIN - MARGIN % 4;
            AUTO(free) unsigned char *pixels = random_pixels(&format, depth);
            AUTO(free) unsigned char *padded = test_alloc(stride * format.height);
            AUTO(free) void *got;
            random_reals(&format, pixels, &seed);
            for (uint64_t y = 0; y < format.height; y++)
                memcpy(padded + y * stride, pixels + y * row, row);
            assert_ok(gf_save_file(path, &format, &(gf_pixels){padded, stride}, &options, &why));
            assert_ok(gf_load_file(path, &force, &read, &got, NULL, &why));
            const gf_type type = gf_depth_type(depth, from);
            AUTO(free) unsigned char *expected = convert_each(&format, pixels, type);
            format.type = type;
            assert_true(gf_format_equal(&read, &format));
            assert_memory_equal(got, expected, format.height * gf_row_bytes(&format));
        }
}

int main(void) {
    return test_main_in_directory();
}
