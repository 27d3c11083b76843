/* Samples of other types than u8, u16 and f32, packed samples, chosen channels, and the images of
 * arrays and of files that are written one after the other. */
#include "io/bytes.h"
#include "io_util.h"
#include "tiff_file.h"

#include <math.h>
#include <zlib.h>

/* A type: NumPy's name, and its place in TIFF. */
static const struct type {
    const char *dtype;
    uint16_t bits, format;
} types[] = {{"u1", 8, SAMPLEFORMAT_UINT},    {"u2", 16, SAMPLEFORMAT_UINT},
             {"u4", 32, SAMPLEFORMAT_UINT},   {"u8", 64, SAMPLEFORMAT_UINT},
             {"i1", 8, SAMPLEFORMAT_INT},     {"i2", 16, SAMPLEFORMAT_INT},
             {"i4", 32, SAMPLEFORMAT_INT},    {"i8", 64, SAMPLEFORMAT_INT},
             {"f2", 16, SAMPLEFORMAT_IEEEFP}, {"f4", 32, SAMPLEFORMAT_IEEEFP},
             {"f8", 64, SAMPLEFORMAT_IEEEFP}, {"b1", 8, SAMPLEFORMAT_UINT}};

enum { TYPES = sizeof types / sizeof *types, TIFF_TYPES = TYPES - 1 };

/* Return the value of a binary16, from its definition. A NaN keeps its sign and payload. */
static float half_value(uint32_t bits) {
    const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    const double v = exponent ? (1 + fraction / 1024.0) * pow(2, exponent - 15)
                              : fraction / 1024.0 * pow(2, -14);
    const uint32_t special = (bits & 0x8000) << 16 | 0x7f800000 | (uint32_t)fraction << 13;
    float result = bits >> 15 ? -(float)v : (float)v;
    if (exponent == 31)
        memcpy(&result, &special, sizeof result);
    return result;
}

/* Return the value of native bytes as f32. */
static float value_of(const char *dtype, const void *at) {
    union {
        uint8_t u1;
        uint16_t u2;
        uint32_t u4;
        uint64_t u8;
        int8_t i1;
        int16_t i2;
        int32_t i4;
        int64_t i8;
        float f4;
        double f8;
        unsigned char bytes[8];
    } v;
    memcpy(&v, at, (size_t)(dtype[1] - '0'));
    switch (dtype[0] * 10 + dtype[1] - '0') {
    case 'u' * 10 + 1:
    case 'b' * 10 + 1:
        return (float)v.u1;
    case 'u' * 10 + 2:
        return (float)v.u2;
    case 'u' * 10 + 4:
        return (float)v.u4;
    case 'u' * 10 + 8:
        return (float)v.u8;
    case 'i' * 10 + 1:
        return (float)v.i1;
    case 'i' * 10 + 2:
        return (float)v.i2;
    case 'i' * 10 + 4:
        return (float)v.i4;
    case 'i' * 10 + 8:
        return (float)v.i8;
    case 'f' * 10 + 2:
        return half_value(v.u2);
    case 'f' * 10 + 4:
        return v.f4;
    default:
        return (float)v.f8;
    }
}

/* ---- NPY ------------------------------------------------------------------------------------- */

/* Append an array to a file in memory. Return the new size. */
static size_t put_array(unsigned char *file, size_t at, const char *dtype, const char *shape,
                        bool fortran, const void *data, size_t size) {
    char text[128];
    const int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }   \n",
                 dtype, fortran ? "True" : "False", shape);
    memcpy(file + at, "\x93NUMPY\1\0", 8);
    file[at + 8] = (unsigned char)length;
    file[at + 9] = 0;
    memcpy(file + at + 10, text, (size_t)length);
    memcpy(file + at + 10 + length, data, size);
    return at + 10 + (size_t)length + size;
}

/* 64 bytes of any values; an even number of samples in both byte orders. */
TEST(converts_every_type) {
    enum { BYTES = 4096 };
    unsigned char data[BYTES], other[BYTES], file[BYTES + 256];
    float expected[BYTES];
    for (size_t t = 0; t < TYPES; t++)
        for (int big = 0; big < 2; big++) {
            test_random random = test_seeded(t);
            const size_t size = types[t].bits / 8, n = BYTES / size;
            char dtype[8], shape[32], what[64];
            for (size_t i = 0; i < BYTES; i++)
                data[i] = (unsigned char)test_below(&random, 256);
            if (size == 8) /* above the middle of two floats, but not as a double */
                memcpy(data, &(uint64_t){(UINT64_C(1) << 62) + (UINT64_C(1) << 38) + 1}, 8);
            for (size_t i = 0; i < BYTES; i++)
                other[i] =
                    data[big == gf_host_is_little() ? i / size * size + size - 1 - i % size : i];
            for (size_t i = 0; i < n; i++)
                expected[i] = value_of(types[t].dtype, data + i * size);
            snprintf(dtype, sizeof dtype, "%c%s", big ? '>' : '<', types[t].dtype);
            snprintf(shape, sizeof shape, "(4, %zu, 2)", n / 8);
            snprintf(what, sizeof what, "%s", dtype);
            put_bytes(in_directory("x.npy"), file,
                      put_array(file, 0, dtype, shape, false, other, BYTES));
            const gf_format format = {n / 8, 4, 2, GF_F32, false};
            assert_image(in_directory("x.npy"), &(gf_limits){.as = GF_DEPTH_F32}, 2, &format,
                         expected, what);
            if (types[t].dtype[0] == 'u' ? size > 2 : t != 9)
                assert_load_fails(in_directory("x.npy"), NULL,
                                  "read them with --as f32 or --as u16");
        }
}

TEST(keeps_only_values_of_u16) {
    static const double good[] = {0, -0.0, 1, 65535, 256}, bad[] = {-1, 0.5, 65536, NAN, 7};
    const uint16_t kept[] = {0, 0, 1, 65535, 256};
    const gf_limits limits = {.as = GF_DEPTH_16, .threads = 2};
    unsigned char file[256];
    const char *path = in_directory("y.npy");
    gf_source *source;
    put_bytes(path, file, put_array(file, 0, "=f8", "(5, 1)", false, good, sizeof good));
    assert_image(path, &limits, 2, &(gf_format){1, 5, 1, GF_U16, false}, kept, "u16");
    put_bytes(path, file, put_array(file, 0, "=f8", "(5, 1)", false, bad, sizeof bad));
    assert_load_fails(
        path, &limits,
        "--as u16 keeps integers from 0 to 65535; samples with other values: 4, from -1 to "
        "65536; use --as f32");
    const gf_limits part = {.as = GF_DEPTH_16, .crop = &(gf_crop){0, 4, 1, 1}};
    assert_image(path, &part, 2, &(gf_format){1, 1, 1, GF_U16, false}, &(uint16_t){7}, "a part");
    assert_error(gf_source_open(path, &(gf_limits){.as = GF_DEPTH_8}, &source, &why), GF_USAGE,
                 "--as: must be u16 or f32");
}

/* Every image of arrays of 2 to 5 dimensions in both orders, one after the other in a file. */
TEST(reads_every_page) {
    static const struct {
        const char *shape;
        uint32_t sizes[5]; /* two dimensions of pages, height, width, channels */
    } arrays[] = {{"(3, 5)", {1, 1, 3, 5, 1}},          {"(3, 5, 2)", {1, 1, 3, 5, 2}},
                  {"(4, 3, 5)", {1, 4, 3, 5, 1}},       {"(2, 4, 3, 5)", {2, 4, 3, 5, 1}},
                  {"(2, 3, 4, 5, 3)", {2, 3, 4, 5, 3}}, {"(2, 3, 4, 1)", {1, 2, 3, 4, 1}}};
    enum { ARRAYS = sizeof arrays / sizeof *arrays };
    static unsigned char file[ARRAYS * 2048], data[2048], image[512];
    gf_file_info info;
    for (int fortran = 0; fortran < 2; fortran++) {
        const char *path = in_directory("pages.npy");
        size_t size = 0;
        for (size_t a = 0; a < ARRAYS; a++) {
            const uint32_t *n = arrays[a].sizes;
            const size_t total = (size_t)n[0] * n[1] * n[2] * n[3] * n[4];
            for (size_t i = 0; i < total; i++)
                data[2 * i] = (unsigned char)i, data[2 * i + 1] = (unsigned char)(i >> 8 | a << 4);
            size = put_array(file, size, "<i2", arrays[a].shape, fortran, data, 2 * total);
        }
        put_bytes(path, file, size);
        uint32_t page = 0;
        for (size_t a = 0; a < ARRAYS; a++) {
            const uint32_t *n = arrays[a].sizes;
            const uint32_t total = n[0] * n[1] * n[2] * n[3] * n[4];
            for (uint32_t p = 0; p < n[0] * n[1]; p++) {
                const uint32_t first[2] = {p / n[1], p % n[1]};
                for (uint32_t i = 0; i < n[2] * n[3] * n[4]; i++) {
                    const uint32_t at[5] = {first[0], first[1], i / n[4] / n[3], i / n[4] % n[3],
                                            i % n[4]};
                    uint32_t index = 0;
                    for (int k = 0; k < 5; k++) {
                        const int d = fortran ? 4 - k : k;
                        index = index * n[d] + at[d];
                    }
                    assert_true(index < total);
                    const uint16_t v = (uint16_t)(index | a << 12);
                    memcpy(image + 2 * i, &v, 2);
                }
                char what[64];
                snprintf(what, sizeof what, "page %u%s", ++page, fortran ? ", Fortran" : "");
                assert_image(path, &(gf_limits){.page = page, .as = GF_DEPTH_16}, 2,
                             &(gf_format){n[3], n[2], n[4], GF_U16, false}, image, what);
            }
        }
        const gf_file_options options = {.page = page + 1, .as = GF_DEPTH_F32};
        assert_error(gf_inspect_file(path, &options, &info, &why), GF_FAILED,
                     "has no page 23; choose one from 1 to 22 with --page");
    }
}

TEST(reads_images_of_pnm) {
    static const char file[] =
        "P5 2 1 255 abP6\n1 1\n65535\nABCDEFP7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\n"
        "MAXVAL 255\nENDHDR\nxyPf 1 1 -1\n\0\0\x80\x3fP3 1 1 255 1 2 3";
    const char *path = in_directory("x.pgm");
    const uint16_t rgb[] = {0x4142, 0x4344, 0x4546};
    const float one = 1;
    put_bytes(path, file, sizeof file - 1);
    assert_image(path, NULL, 2, &(gf_format){2, 1, 1, GF_U8, false}, "ab", "first");
    assert_image(path, &(gf_limits){.page = 2}, 2, &(gf_format){1, 1, 3, GF_U16, false}, rgb,
                 "second");
    assert_image(path, &(gf_limits){.page = 3}, 2, &(gf_format){1, 1, 2, GF_U8, false}, "xy",
                 "third");
    assert_image(path, &(gf_limits){.page = 4}, 2, &(gf_format){1, 1, 1, GF_F32, false}, &one,
                 "fourth");
    assert_load_fails(path, &(gf_limits){.page = 5}, "has no page 5; choose one from 1 to 4");
}

/* ---- channels -------------------------------------------------------------------------------- */

TEST(chooses_channels) {
    const unsigned char data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    unsigned char file[256];
    const char *path = in_directory("c.npy");
    gf_source *source;
    put_bytes(path, file, put_array(file, 0, "|u1", "(1, 2, 6)", false, data, 12));
    assert_image(path, &(gf_limits){.channels = "6,1,1,3"}, 2, &(gf_format){2, 1, 4, GF_U8, false},
                 "\6\1\1\3\14\7\7\11", "6,1,1,3");
    assert_image(path, &(gf_limits){.channels = "2"}, 2, &(gf_format){2, 1, 1, GF_U8, false},
                 "\2\10", "2");
    assert_load_fails(path, &(gf_limits){.channels = "7"},
                      "has no channel 7; choose from 1 to 6 with --channels");
    static const char *const invalid[] = {"", "0", "1,", ",1", "1,2,3,4,5", "1 2", "-1", "a"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        assert_error(gf_source_open(path, &(gf_limits){.channels = invalid[i]}, &source, &why),
                     GF_USAGE, "must be 1 to 4 numbers from 1");
}

/* ---- TIFF ------------------------------------------------------------------------------------ */

enum { WIDTH = 37, HEIGHT = 21, TILE = 16 };

/* Write random samples in every storage of a TIFF, and check what is read. */
static void each_storage(uint16_t photometric, uint16_t channels, uint16_t bits, uint16_t format,
                         void (*check)(const tiff_spec *spec, const uint64_t *samples,
                                       const char *what)) {
    static const uint16_t codecs[][2] = {{COMPRESSION_NONE, 1},
                                         {COMPRESSION_LZW, 1},
                                         {COMPRESSION_LZW, 2},
                                         {COMPRESSION_ADOBE_DEFLATE, 1},
                                         {COMPRESSION_ADOBE_DEFLATE, 2}};
    for (uint32_t i = 0; i < 5 * 8; i++) {
        const tiff_spec spec = {.width = WIDTH,
                                .height = HEIGHT,
                                .samples = channels,
                                .bits = bits,
                                .format = format,
                                .photometric = photometric,
                                .compression = codecs[i / 8][0],
                                .predictor = codecs[i / 8][1],
                                .extra = channels > 4 ? EXTRASAMPLE_UNSPECIFIED : TIFF_NO_EXTRA,
                                .tile_width = i & 1 ? TILE : 0,
                                .tile_height = TILE,
                                .planar = i & 2,
                                .big_endian = i & 4,
                                .rows_per_strip = 5};
        char what[128];
        if ((spec.predictor == 2 && bits % 8) || (spec.planar && channels == 1))
            continue;
        snprintf(what, sizeof what, "%u bits, format %u, %u samples, storage %u", bits, format,
                 channels, i);
        tiff_put(in_directory("x.tif"), &spec);
        AUTO(free) tiff_page page = tiff_decode(in_directory("x.tif"), 0);
        if (!page.samples)
            fail_msg("%s: libtiff cannot read it", what);
        check(&spec, page.samples, what);
    }
}

static void check_values(const tiff_spec *spec, const uint64_t *samples, const char *what) {
    static float expected[WIDTH * HEIGHT * 4];
    const char *dtype = NULL;
    const uint32_t channels = spec->samples > 4 ? 3 : spec->samples;
    for (size_t t = 0; t < TIFF_TYPES; t++)
        if (types[t].bits == spec->bits && types[t].format == spec->format)
            dtype = types[t].dtype;
    for (size_t i = 0; i < (size_t)WIDTH * HEIGHT * channels; i++) {
        const size_t c = spec->samples > 4 ? (i % 3 + 2) * 2 % 5 : i % channels; /* 4, 1, 3 */
        const uint64_t bits = samples[i / channels * spec->samples + c]
                              << (gf_host_is_little() ? 0 : 64 - spec->bits);
        expected[i] = value_of(dtype, &bits); /* its first bytes */
    }
    const gf_limits limits = {
        .as = GF_DEPTH_F32, .channels = spec->samples > 4 ? "5,2,4" : NULL, .threads = 2};
    assert_image(in_directory("x.tif"), &limits, 2,
                 &(gf_format){WIDTH, HEIGHT, channels, GF_F32, false}, expected, what);
}

TEST(reads_every_type_of_tiff) {
    static const uint16_t counts[] = {1, 3, 6};
    for (size_t t = 0; t < TIFF_TYPES; t++)
        for (int k = 0; k < 3; k++)
            each_storage(k ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK, counts[k], types[t].bits,
                         types[t].format, check_values);
}

static void check_packed(const tiff_spec *spec, const uint64_t *samples, const char *what) {
    static uint16_t scaled[WIDTH * HEIGHT * 3], raw[WIDTH * HEIGHT * 3];
    const uint64_t top = (1u << spec->bits) - 1;
    for (size_t i = 0; i < (size_t)WIDTH * HEIGHT * spec->samples; i++) {
        const uint64_t v =
            spec->photometric == PHOTOMETRIC_MINISWHITE ? top - samples[i] : samples[i];
        raw[i] = (uint16_t)v;
        scaled[i] = (uint16_t)lround((double)v * 65535 / (double)top);
    }
    const gf_format format = {WIDTH, HEIGHT, spec->samples, GF_U16, false};
    assert_image(in_directory("x.tif"), &(gf_limits){.threads = 2}, 2, &format, scaled, what);
    assert_image(in_directory("x.tif"), &(gf_limits){.as = GF_DEPTH_16}, 2, &format, raw, what);
}

TEST(scales_packed_samples) {
    static const uint16_t photometrics[] = {PHOTOMETRIC_MINISBLACK, PHOTOMETRIC_MINISWHITE,
                                            PHOTOMETRIC_RGB};
    for (uint16_t bits = 9; bits < 16; bits++)
        for (int k = 0; k < 3; k++)
            each_storage(photometrics[k], k == 2 ? 3 : 1, bits, SAMPLEFORMAT_UINT, check_packed);
}

/* ---- stacks, animations ---------------------------------------------------------------------- */

enum { SLICES = 3, ROWS = 4, COLUMNS = 5, SLICE = ROWS * COLUMNS };

/* Write all images as one, in one strip, and describe them: the directory then has the first. */
static void put_stack(const char *description, const unsigned char *pixels, uint16_t compression) {
    const char *path = in_directory("x.tif");
    tiff_spec spec = tiff_small_grey(COLUMNS, 0);
    spec.height = spec.rows_per_strip = SLICES * ROWS;
    spec.compression = compression;
    TIFF *tiff = tiff_begin(path, &spec);
    TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, description);
    assert_true(TIFFWriteEncodedStrip(tiff, 0, (void *)pixels, SLICES * SLICE) >= 0);
    TIFFClose(tiff);
    tiff_patch(path, TIFFTAG_IMAGELENGTH, ROWS);
    tiff_patch(path, TIFFTAG_ROWSPERSTRIP, ROWS);
    if (compression == COMPRESSION_NONE)
        tiff_patch(path, TIFFTAG_STRIPBYTECOUNTS, SLICE);
}

TEST(reads_stacks) {
    static const char *const texts[] = {"ImageJ=1.54f\nimages=3\nslices=3\n",
                                        "{\"shape\": [1, 3, 4, 5], \"truncated\": true}"};
    static const char *const others[] = {"ImageJ=1.54f\nimages=0\n", "ImageJ=1.54f\n",
                                         "ImageJ=1.54f\nimages=99\n", "{\"shape\": [3, 4, 5]}",
                                         "{\"shape\": [7], \"truncated\": true}"};
    const gf_format format = {COLUMNS, ROWS, 1, GF_U8, false};
    unsigned char pixels[SLICES * SLICE];
    gf_report report;
    gf_format found;
    void *loaded;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_stack(texts[i], pixels, COMPRESSION_NONE);
        for (uint32_t page = 1; page <= SLICES; page++)
            assert_image(in_directory("x.tif"), &(gf_limits){.page = page}, 2, &format,
                         pixels + (page - 1) * (size_t)SLICE, texts[i]);
        assert_load_fails(in_directory("x.tif"), &(gf_limits){.page = 4},
                          "has no page 4; choose one from 1 to 3 with --page");
        assert_ok(gf_load_file(in_directory("x.tif"), NULL, &found, &loaded, &report, NULL));
        assert_int_equal(report.pages, SLICES);
        free(loaded);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put_stack(others[i], pixels, COMPRESSION_NONE);
        assert_image(in_directory("x.tif"), NULL, 2, &format, pixels, others[i]);
        assert_load_fails(in_directory("x.tif"), &(gf_limits){.page = 2},
                          "has no page 2; choose one from 1 to 1");
    }
    /* Rows that cannot follow the first image: a note. */
    put_stack(texts[0], pixels, COMPRESSION_PACKBITS);
    assert_ok(gf_load_file(in_directory("x.tif"), NULL, &found, &loaded, &report, NULL));
    assert_string_equal(report.remarks.notes, "a stack of 3 images; only the first can be read");
    free(loaded);
}

/* A PNG with frames is the default image, with a note. */
TEST(notes_frames_of_png) {
    static unsigned char control[20] = {0, 0, 0, 8, 'a', 'c', 'T', 'L', 0, 0, 1, 2};
    const char *path = in_directory("x.png");
    const gf_format format = {1, 1, 1, GF_U8, false};
    gf_report report;
    gf_format found;
    AUTO(free) void *loaded;
    size_t size;
    assert_ok(gf_save_file(path, &format, &(gf_pixels){"a", 1}, NULL, NULL));
    AUTO(free) unsigned char *data = test_bytes(path, &size), *with = malloc(size + sizeof control);
    gf_put_big32(control + 16, (uint32_t)crc32(0, control + 4, 12));
    memcpy(with, data, 33);
    memcpy(with + 33, control, sizeof control);
    memcpy(with + 33 + sizeof control, data + 33, size - 33);
    put_bytes(path, with, size + sizeof control);
    assert_ok(gf_load_file(path, NULL, &found, &loaded, &report, NULL));
    assert_memory_equal(loaded, "a", 1);
    assert_string_equal(report.remarks.notes,
                        "an animation of 258 frames; only the default image is read");
    assert_load_fails(path, &(gf_limits){.page = 2}, "has no pages; omit --page");
}

int main(void) {
    return test_main_in_directory();
}
