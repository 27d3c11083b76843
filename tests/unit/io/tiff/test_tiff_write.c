/* TIFF encoder: libtiff reads its files, which do not depend on the threads. */
#include <malloc.h>

#include "io_util.h"

#include "io/png/png.h"
#include "io/tiff/layout.h"

/* ---- images ---------------------------------------------------------------------------------- */

enum { CONTENTS = 5 };

/* Draw an image of any type. Contents: noise; gradient with noise; flat; blocks; lines. */
static unsigned char *draw(const gf_format *format, int content, uint64_t seed) {
    const size_t row = (size_t)gf_row_samples(format), samples = row * (size_t)format->height;
    unsigned char *pixels = test_alloc(samples * gf_type_bytes(format->type));
    test_random random = {seed * 2 + 1};
    for (size_t i = 0; i < samples; i++) {
        const size_t x = i % row, y = i / row;
        const uint64_t noise = test_next(&random);
        const uint64_t v = content == 0   ? noise
                           : content == 1 ? x * 40 + y * 70 + (noise & 1023)
                           : content == 2 ? 40000
                           : content == 3 ? (x / 50 ^ y / 20) * 7919
                                          : (x * x % 97 * 600) & (y % 6 < 4 ? 0xffff : 0);
        const uint16_t v16 = (uint16_t)v;
        const float number = (float)v16 / 65535;
        const uint32_t bits = (uint32_t)noise; /* any float, NaN too */
        if (format->type == GF_U8)
            pixels[i] = (unsigned char)(v >> 8);
        else if (format->type == GF_U16)
            memcpy(pixels + 2 * i, &v16, 2);
        else
            memcpy(pixels + 4 * i, content ? (const void *)&number : &bits, 4);
    }
    return pixels;
}

static uint64_t largest(const gf_format *format, const unsigned char *pixels) {
    const uint64_t samples = gf_row_samples(format) * format->height;
    uint64_t count = 0;
    uint16_t v;
    for (uint64_t i = 0; i < samples; i++) {
        if (gf_has_alpha(format) && i % format->channels == format->channels - 1)
            continue;
        memcpy(&v, pixels + (format->type == GF_U8 ? i : 2 * i), format->type == GF_U8 ? 1 : 2);
        count += format->type == GF_U8 ? pixels[i] == 255 : v == 65535;
    }
    return format->type == GF_F32 ? 0 : count;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct how {
    const char *compression;
    uint32_t threads;
    uint64_t max_memory, rows; /* rows of one call; 0: all */
    uint64_t classic_max;      /* 0: as usual */
    bool shrink;
    bool pipe;                          /* write to /dev/null, which cannot seek */
    const gf_metadata *metadata, *late; /* at the start and at the end */
} how;

static gf_status open_sink(const gf_format *format, const how *h, gf_sink **sink) {
    static const gf_file_options replacing = {.force = true};
    gf_output *output;
    gf_metadata none = {0};
    assert_ok(gf_output_open(h->pipe ? "/dev/null" : in_directory("x.tif"), &replacing, false,
                             &output, &why));
    const gf_sink_setup setup = {.output = output,
                                 .format = format,
                                 .metadata = h->metadata ? h->metadata : &none,
                                 .compression = h->compression,
                                 .max_memory = h->max_memory ? h->max_memory : 1 << 30,
                                 .classic_max = h->classic_max,
                                 .threads = h->threads ? h->threads : 1};
    *sink = NULL;
    const gf_status status = gf_tiff_codec.open_sink(&setup, sink, &why);
    if (status && *sink) {
        (*sink)->ops->close(*sink);
        *sink = NULL;
    }
    return status;
}

/* Write x.tif. */
static void encode(const gf_format *format, const unsigned char *pixels, const how *h) {
    const size_t row = gf_row_bytes(format);
    const uint64_t rows = h->rows ? h->rows : format->height;
    gf_sink *sink;
    assert_ok(open_sink(format, h, &sink));
    assert_int_equal(sink->counts_clipped, format->type != GF_F32);
    assert_true(sink->memory <= (h->max_memory ? h->max_memory : 1 << 30));
    if (h->shrink) {
        assert_ok(sink->shrink(sink, &why));
        assert_int_equal(sink->threads, 0);
        assert_null(sink->shrink);
    }
    for (uint64_t y = 0; y < format->height; y += rows) {
        const uint64_t n = format->height - y < rows ? format->height - y : rows;
        assert_ok(sink->ops->write(sink, pixels + y * row, row, n, &why));
    }
    assert_ok(sink->ops->finish(sink, h->late, &why));
    assert_int_equal(sink->clipped, largest(format, pixels));
    assert_ok(gf_output_commit(sink->output, &why));
    sink->ops->close(sink);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int warnings; /* and errors of libtiff */

static void count_warning(const char *module, const char *format, va_list arguments) {
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    warnings++;
}

static TIFF *open_tiff(void) {
    TIFFSetWarningHandler(count_warning);
    TIFFSetErrorHandler(count_warning);
    TIFF *tiff = TIFFOpen(in_directory("x.tif"), "r");

    assert_non_null(tiff);
    return tiff;
}

static uint32_t tag32(TIFF *tiff, uint32_t tag) {
    uint32_t value = 0;
    assert_int_equal(TIFFGetField(tiff, tag, &value), 1);
    return value;
}

static uint16_t tag16(TIFF *tiff, uint32_t tag) {
    uint16_t value = 0;
    assert_int_equal(TIFFGetFieldDefaulted(tiff, tag, &value), 1);
    return value;
}

/* Read x.tif with libtiff, and compare its tags and samples. */
static void check_file(const gf_format *format, const unsigned char *pixels, const how *h) {
    static const uint16_t codes[][2] = {{1, 0}, {5, 0}, {8, 0}, {50000, 0}};
    static const char *const names[] = {"none", "lzw", "deflate", "zstd"};
    const size_t row = gf_row_bytes(format);
    const uint32_t channels = format->channels;
    uint16_t count = 0, *extra = NULL;
    TIFF *tiff = open_tiff();
    warnings = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(names[i], h->compression) == 0)
            assert_int_equal(tag16(tiff, TIFFTAG_COMPRESSION), codes[i][0]);
    assert_int_equal(tag32(tiff, TIFFTAG_IMAGEWIDTH), format->width);
    assert_int_equal(tag32(tiff, TIFFTAG_IMAGELENGTH), format->height);
    assert_int_equal(tag16(tiff, TIFFTAG_BITSPERSAMPLE), 8 * gf_type_bytes(format->type));
    assert_int_equal(tag16(tiff, TIFFTAG_SAMPLESPERPIXEL), channels);
    assert_int_equal(tag16(tiff, TIFFTAG_SAMPLEFORMAT), format->type == GF_F32 ? 3 : 1);
    assert_int_equal(tag16(tiff, TIFFTAG_PHOTOMETRIC), channels >= 3 ? 2 : 1);
    assert_int_equal(tag16(tiff, TIFFTAG_PLANARCONFIG), 1);
    if (strcmp(h->compression, "none") != 0)
        assert_int_equal(tag16(tiff, TIFFTAG_PREDICTOR), format->type == GF_F32 ? 3 : 2);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &count, &extra);
    assert_int_equal(count, channels % 2 == 0);
    assert_true(!count || *extra == (gf_has_alpha(format) ? EXTRASAMPLE_UNASSALPHA
                                                          : EXTRASAMPLE_UNSPECIFIED));
    const uint32_t rows = tag32(tiff, TIFFTAG_ROWSPERSTRIP);
    assert_true(rows * row <= 1 << 18 || rows == 1);
    assert_int_equal(TIFFNumberOfStrips(tiff), (format->height + rows - 1) / rows);
    AUTO(free) unsigned char *strip = test_alloc(rows * row);
    for (uint32_t k = 0; k < TIFFNumberOfStrips(tiff); k++) {
        const uint64_t left = format->height - (uint64_t)k * rows;
        const size_t size = (size_t)(left < rows ? left : rows) * row;
        assert_int_equal(TIFFReadEncodedStrip(tiff, k, strip, (tmsize_t)size), size);
        if (memcmp(strip, pixels + (size_t)k * rows * row, size) != 0)
            fail_msg("%u x %u, %u channels, type %d, %s: strip %u differs", (unsigned)format->width,
                     (unsigned)format->height, channels, format->type, h->compression, k);
    }
    assert_int_equal(TIFFReadDirectory(tiff), 0); /* one image */
    assert_int_equal(warnings, 0);
    TIFFClose(tiff);
}

static void check_image(gf_format format, const char *compression, int content, uint64_t seed) {
    const how variants[] = {
        {.compression = compression, .threads = 2, .rows = 7},
        {.compression = compression, .threads = 7},
        {.compression = compression, .threads = 16, .rows = 1},
        {.compression = compression, .threads = 3, .rows = 3, .max_memory = 16 << 20},
        {.compression = compression, .threads = 5, .rows = 5, .shrink = true}};
    const how first = {.compression = compression};
    AUTO(free) unsigned char *pixels = draw(&format, content, seed);
    size_t size;
    encode(&format, pixels, &first);
    check_file(&format, pixels, &first);
    AUTO(free) unsigned char *file = test_bytes(in_directory("x.tif"), &size);
    for (size_t w = 0; w < sizeof variants / sizeof *variants; w++) {
        encode(&format, pixels, &variants[w]);
        assert_bytes(in_directory("x.tif"), file, size);
    }
}

TEST(any_threads_write_the_same_bytes) {
    test_random random = {test_environment("GF_TEST_SEED", 92)};
    for (uint64_t round = 0; round < test_rounds(60); round++) {
        gf_format format = {1 + test_below(&random, round % 3 ? 900 : 40),
                            1 + test_below(&random, round % 5 ? 700 : 9),
                            1 + (uint32_t)test_below(&random, 4),
                            (const gf_type[]){GF_U8, GF_U16, GF_F32}[round % 3], false};
        format.alpha = format.channels % 2 == 0 && test_below(&random, 4) != 0;
        check_image(format, gf_names(GF_NAMES_TIFF_COMPRESSION)[round / 3 % 4],
                    (int)test_below(&random, CONTENTS), test_next(&random));
    }
}

/* Rows longer than a block and than a strip, and of few bytes; heights around that of a strip. */
TEST(every_shape) {
    static const gf_format shapes[] = {
        {300000, 3, 3, GF_U8, false}, {140000, 4, 1, GF_U16, false}, {262144, 3, 1, GF_U8, false},
        {65537, 3, 1, GF_F32, false}, {1, 300000, 1, GF_U8, false},  {2, 40000, 4, GF_F32, true},
        {1, 1, 1, GF_U8, false},      {1, 1, 4, GF_F32, true},       {3, 1, 2, GF_U16, true},
        {1000, 86, 3, GF_U8, false},  {1000, 87, 3, GF_U8, false},   {1000, 88, 3, GF_U8, false},
        {1000, 174, 3, GF_U8, false}, {1000, 175, 3, GF_U8, false}};
    const uint64_t step = test_stride(4, 1);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (uint64_t c = s % step; c < 4; c += step)
            check_image(shapes[s], gf_names(GF_NAMES_TIFF_COMPRESSION)[c],
                        (int)((s + c) % CONTENTS), s);
}

/* ---- predictors ------------------------------------------------------------------------------ */

/* Return byte k, from the lowest one, of a sample of `size` bytes. */
static unsigned byte_of(const unsigned char *sample, size_t size, size_t k) {
    return sample[gf_host_is_little() ? k : size - 1 - k];
}

static unsigned sample16(const unsigned char *sample) {
    return byte_of(sample, 2, 0) + 256u * byte_of(sample, 2, 1);
}

TEST(simd_levels_predict_the_same_bytes) {
    enum { MAX = 200, BYTES = 4 };
    test_random random = {test_environment("GF_TEST_SEED", 5)};
    for (int round = 0; round < 3000; round++) {
        const size_t channels = 1 + (size_t)test_below(&random, 4);
        const size_t n = channels * (1 + (size_t)test_below(&random, MAX / 4));
        unsigned char in[BYTES * MAX + 3], want[2][BYTES * MAX], got[BYTES * MAX + 2];
        const size_t shift = (size_t)test_below(&random, 4);
        const unsigned char *src = in + shift;
        for (size_t i = 0; i < sizeof in; i++)
            in[i] = (unsigned char)test_next(&random);
        for (size_t i = 0; i < n; i++) {
            const unsigned here = sample16(src + 2 * i);
            const unsigned left = i < channels ? 0 : sample16(src + 2 * (i - channels));
            want[0][2 * i] = (unsigned char)(here - left);
            want[0][2 * i + 1] = (unsigned char)((here - left) >> 8);
        }
        for (size_t k = BYTES * n; k-- > 0;) {
            const size_t j = k - channels;
            const unsigned left =
                k < channels ? 0 : byte_of(src + j % n * BYTES, BYTES, BYTES - 1 - j / n);
            want[1][k] =
                (unsigned char)(byte_of(src + k % n * BYTES, BYTES, BYTES - 1 - k / n) - left);
        }
        for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
            const gf_png_simd *simd = gf_png_simd_of((gf_isa)isa);
            if (isa && !gf_isa_available((gf_isa)isa))
                continue;
            for (int kind = 0; kind < 2; kind++) {
                const size_t size = (kind ? 4 : 2) * n;
                memset(got, PAINT, sizeof got);
                (kind ? simd->difference_float : simd->difference16)(got + 1, src, n, channels);
                assert_memory_equal(got + 1, want[kind], size);
                assert_int_equal(got[0], PAINT);
                assert_int_equal(got[1 + size], PAINT);
            }
        }
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A file is a BigTIFF if it would be too large otherwise; with any number of threads. */
TEST(large_files_are_bigtiff) {
    const gf_format format = {501, 300, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = draw(&format, 1, 3);
    size_t size, big_size;
    for (int c = 0; c < 4; c++) {
        how h = {.compression = gf_names(GF_NAMES_TIFF_COMPRESSION)[c], .threads = 3};
        encode(&format, pixels, &h);
        AUTO(free) unsigned char *bytes = test_bytes(in_directory("x.tif"), &size);
        assert_memory_equal(bytes, "II*\0", 4);
        h.classic_max = size;
        encode(&format, pixels, &h);
        unsigned char *same = test_bytes(in_directory("x.tif"), &big_size);
        assert_int_equal(big_size, size);
        assert_memory_equal(same, bytes, size);
        free(same);
        h.classic_max--;
        encode(&format, pixels, &h);
        same = test_bytes(in_directory("x.tif"), &big_size);
        assert_memory_equal(same, "II+\0\x08\0\0\0", 8);
        /* Only the header and the directory differ. */
        assert_memory_equal(same + 16, bytes + 16, size - 1000);
        assert_true(big_size > size);
        check_file(&format, pixels, &h);
        free(same);
    }
}

TEST(compresses_as_png) {
    const gf_format format = {1200, 800, 3, GF_U8, false};
    for (int content = 0; content < CONTENTS; content++) {
        AUTO(free) unsigned char *pixels = draw(&format, content, 9);
        const size_t raw = gf_row_bytes(&format) * (size_t)format.height;
        size_t size, lzw;
        encode(&format, pixels, &(how){.compression = "deflate"});
        free(test_bytes(in_directory("x.tif"), &size));
        encode(&format, pixels, &(how){.compression = "lzw"});
        free(test_bytes(in_directory("x.tif"), &lzw));
        if (getenv("GF_TEST_SHOW"))
            print_message("%d: %zu, lzw %zu, of %zu\n", content, size, lzw, raw);
        assert_true(size < raw + raw / 500 + 1000);
        assert_true(content == 0 || size < lzw);
        /* Matches are found. */
        assert_true(content < 2 || size < raw / 50);
    }
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Little-endian EXIF data: orientation 6, Make "gf", an EXIF directory with a version, and GPS. */
static const unsigned char exif[] = {
    'I',  'I',  '*', 0,    8, 0, 0, 0,                   /* header */
    4,    0,                                             /* first directory, at 8 */
    0x0f, 1,    2,   0,    3, 0, 0, 0, 'g', 'f', 0,   0, /* Make */
    0x12, 1,    3,   0,    1, 0, 0, 0, 6,   0,   0,   0, /* Orientation */
    0x69, 0x87, 4,   0,    1, 0, 0, 0, 62,  0,   0,   0, /* EXIF */
    0x25, 0x88, 4,   0,    1, 0, 0, 0, 80,  0,   0,   0, /* GPS */
    0,    0,    0,   0,                                  /* no further image */
    1,    0,    0,   0x90, 7, 0, 4, 0, 0,   0,   '0', '2', '3', '2', 0, 0, 0, 0, /* EXIF, at 62 */
    1,    0,    0,   0,    1, 0, 4, 0, 0,   0,   2,   3,   0,   0,   0, 0, 0, 0, /* GPS, at 80 */
};

static void add(gf_metadata *metadata, const char *name, const void *data, size_t size) {
    gf_metadata_add(metadata, name, false, data, size);
}

static void make_items(gf_metadata *metadata) {
    const gf_resolution resolution = {118.11, 300, GF_PER_CM};
    *metadata = (gf_metadata){0};
    add(metadata, GF_ITEM_ICC, "a profile", 9);
    add(metadata, GF_ITEM_XMP, "<x/>", 4);
    add(metadata, GF_ITEM_8BIM, "8BIM\4\4\0\0\0\0\0\2\x1c\2", 14);
    add(metadata, GF_ITEM_RESOLUTION, &resolution, sizeof resolution);
    add(metadata, GF_ITEM_EXIF, exif, sizeof exif);
    add(metadata, GF_ITEM_COMMENT, "not stored", 10);
}

static gf_status read_file_at(void *context, void *data, size_t size, uint64_t offset,
                              gf_error *error) {
    FILE *file = context;
    if (fseek(file, (long)offset, SEEK_SET) || fread(data, 1, size, file) != size)
        return gf_set_error(error, GF_FAILED, "end of file");
    return GF_OK;
}

/* Read the items of x.tif. */
static void read_items(gf_metadata *metadata) {
    const gf_limits limits = {.max_chunk = 1 << 20};
    FILE *file = fopen(in_directory("x.tif"), "rb");
    TIFF *tiff = open_tiff();
    gf_tiff_tags tags;
    *metadata = (gf_metadata){0};
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const gf_ifd_file bytes = {read_file_at, file, (uint64_t)ftell(file), "x", NULL};
    assert_ok(
        gf_tiff_read_metadata(&bytes, TIFFCurrentDirOffset(tiff), metadata, &tags, &limits, &why));
    TIFFClose(tiff);
    fclose(file);
}

static void check_same_item(const gf_metadata *a, const gf_metadata *b, const char *name) {
    const gf_chunk *x = gf_metadata_find(a, name), *y = gf_metadata_find(b, name);
    assert_true(x && y && x->size == y->size);
    assert_memory_equal(x->data, y->data, x->size);
}

TEST(metadata_is_written_and_read) {
    const gf_format format = {31, 41, 4, GF_U16, true};
    AUTO(free) unsigned char *pixels = draw(&format, 1, 3);
    gf_metadata items, back, again;
    gf_resolution resolution;
    make_items(&items);
    for (int big = 0; big < 2; big++) {
        const how h = {.compression = "deflate", .metadata = &items, .classic_max = big ? 1 : 0};
        encode(&format, pixels, &h);
        check_file(&format, pixels, &h);
        TIFF *tiff = open_tiff();
        uint32_t size = 0;
        const char *data = NULL, *make = NULL;
        float x = 0, y = 0;
        toff_t directory = 0;
        assert_int_equal(TIFFIsBigTIFF(tiff), big);
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_ICCPROFILE, &size, &data), 1);
        assert_int_equal(size, 9);
        assert_memory_equal(data, "a profile", 9);
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_XMLPACKET, &size, &data), 1);
        assert_int_equal(size, 4);
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_PHOTOSHOP, &size, &data), 1);
        assert_int_equal(size, 14);
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_MAKE, &make), 1);
        assert_string_equal(make, "gf");
        assert_int_equal(tag16(tiff, TIFFTAG_ORIENTATION), 6);
        assert_int_equal(tag16(tiff, TIFFTAG_RESOLUTIONUNIT), 3);
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_XRESOLUTION, &x), 1);
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_YRESOLUTION, &y), 1);
        assert_true(x == 118.11f && y == 300);
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_EXIFIFD, &directory), 1);
        assert_int_equal(TIFFReadEXIFDirectory(tiff, directory), 1);
        assert_int_equal(TIFFGetField(tiff, EXIFTAG_EXIFVERSION, &data), 1);
        assert_memory_equal(data, "0232", 4);
        TIFFClose(tiff);
        read_items(&back);
        assert_int_equal(back.count, 5);
        check_same_item(&back, &items, GF_ITEM_ICC);
        check_same_item(&back, &items, GF_ITEM_XMP);
        check_same_item(&back, &items, GF_ITEM_8BIM);
        assert_true(gf_metadata_resolution(&back, &resolution));
        assert_true(resolution.x == 118.11 && resolution.y == 300 && resolution.unit == GF_PER_CM);
        assert_int_equal(gf_metadata_orientation(&back), 6);
        /* The same items give the same file. */
        size_t file_size;
        AUTO(free) unsigned char *file = test_bytes(in_directory("x.tif"), &file_size);
        encode(&format, pixels,
               &(how){.compression = "deflate", .late = &back, .classic_max = h.classic_max});
        assert_bytes(in_directory("x.tif"), file, file_size);
        read_items(&again);
        check_same_item(&back, &again, GF_ITEM_EXIF);
        gf_metadata_clear(&back);
        gf_metadata_clear(&again);
    }
    gf_metadata_clear(&items);
}

/* All directories are those of a BigTIFF, or none. */
TEST(pages_are_linked) {
    const gf_format formats[] = {
        {31, 41, 3, GF_U8, false}, {7, 9, 1, GF_U16, false}, {1, 1, 4, GF_F32, true}};
    for (int big = 0; big < 2; big++) {
        gf_sink *sink;
        assert_ok(open_sink(&formats[0], &(how){.classic_max = big ? 1 : 0}, &sink));
        for (int i = 0; i < 3; i++) {
            const size_t row = gf_row_bytes(&formats[i]);
            AUTO(free) unsigned char *pixels = draw(&formats[i], 0, (uint64_t)i);
            assert_ok(sink->ops->write(sink, pixels, row, formats[i].height, &why));
            assert_ok((i < 2 ? sink->end_page : sink->ops->finish)(sink, NULL, &why));
            if (i < 2)
                assert_ok(gf_sink_next_page(&sink, in_directory("x.tif"), &formats[i + 1], NULL,
                                            NULL, 1, &why));
        }
        assert_ok(gf_output_commit(sink->output, &why));
        sink->ops->close(sink);
        TIFF *tiff = open_tiff();
        assert_int_equal(TIFFIsBigTIFF(tiff), big);
        assert_int_equal(TIFFNumberOfDirectories(tiff), 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(TIFFSetDirectory(tiff, (uint16_t)i), 1);
            assert_int_equal(tag32(tiff, TIFFTAG_IMAGEWIDTH), formats[i].width);
            assert_int_equal(tag32(tiff, TIFFTAG_IMAGELENGTH), formats[i].height);
        }
        TIFFClose(tiff);
    }
    assert_int_equal(warnings, 0);
}

/* The directories of all pages are held in memory. */
TEST(many_pages_exceed_the_memory) {
    static const unsigned char profile[100000];
    const gf_format format = {1, 1, 1, GF_U8, false};
    gf_sink *sink;
    AUTO(metadata) gf_metadata items = {0};
    add(&items, GF_ITEM_ICC, (const char *)profile, sizeof profile);
    const gf_file_options options = {.max_memory = 900000};
    const how h = {.metadata = &items, .max_memory = options.max_memory};
    assert_ok(open_sink(&format, &h, &sink));
    gf_status status = GF_OK;
    int pages = 0;
    for (; pages < 9 && !status; pages++) {
        assert_ok(sink->ops->write(sink, "", 1, 1, &why));
        status = sink->end_page(sink, &items, &why);
        if (!status)
            assert_ok(gf_sink_next_page(&sink, in_directory("x.tif"), &format, &items, &options, 1,
                                        &why));
    }
    assert_int_equal(pages, 5); /* twice 500,000 bytes */
    assert_message(&why, "for the directories of the pages are over the limit of");
    sink->ops->close(sink);
}

/* Late metadata replaces that at the start; PNG chunks are converted. */
TEST(late_metadata_is_written) {
    const gf_format format = {5, 4, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = draw(&format, 1, 3);
    AUTO(metadata) gf_metadata early, late, back;
    gf_resolution resolution;
    early = (gf_metadata){0};
    late = (gf_metadata){0};
    add(&early, GF_ITEM_ICC, "early", 5);
    add(&late, "pHYs", "\0\0\x2e\x23\0\0\x17\x12\1", 9); /* 300 and 150 per inch */
    add(&late, "eXIf", exif, sizeof exif);
    add(&late, "tEXt", "Title\0no form in TIFF", 21);
    encode(&format, pixels, &(how){.compression = "lzw", .metadata = &early, .late = &late});
    read_items(&back);
    assert_null(gf_metadata_find(&back, GF_ITEM_ICC));
    assert_true(gf_metadata_resolution(&back, &resolution));
    assert_true(resolution.x == 300 && resolution.y == 150 && resolution.unit == GF_PER_INCH);
    assert_int_equal(gf_metadata_orientation(&back), 6);
}

TEST(resolutions_are_fractions) {
    static const double values[] = {72,      96.012,     300, 118.110236, 28.35,     0.000001,  4e9,
                                    2.0 / 3, 4294967295, 0.5, 1e-9,       123456.75, 2147483648};
    static const double without[] = {1e-10, 5e9};
    const gf_format format = {5, 4, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = draw(&format, 1, 3);
    gf_metadata items, back;
    gf_resolution got;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const gf_resolution resolution = {values[i], 72, GF_PER_NONE};
        items = (gf_metadata){0};
        add(&items, GF_ITEM_RESOLUTION, &resolution, sizeof resolution);
        encode(&format, pixels, &(how){.compression = "none", .late = &items});
        read_items(&back);
        assert_true(gf_metadata_resolution(&back, &got));
        assert_true(got.unit == GF_PER_NONE && got.y == 72);
        /* Exact, but for numbers with more digits than fit. */
        assert_true(got.x == values[i] || (values[i] == 2.0 / 3 && got.x == 0.666666667));
        gf_metadata_clear(&items);
        gf_metadata_clear(&back);
    }
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        const gf_resolution resolution = {72, without[i], GF_PER_INCH};
        items = (gf_metadata){0};
        add(&items, GF_ITEM_RESOLUTION, &resolution, sizeof resolution);
        encode(&format, pixels, &(how){.compression = "none", .late = &items});
        read_items(&back);
        assert_int_equal(back.count, 0);
        gf_metadata_clear(&items);
        gf_metadata_clear(&back);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

static void expect_failure(const how *h, const gf_format *format, gf_status status,
                           const char *text) {
    gf_sink *sink = NULL;
    assert_int_equal(open_sink(format, h, &sink), status);
    assert_null(sink);
    if (!strstr(why.message, text))
        fail_msg("%s", why.message);
}

/* Return the bytes that malloc has given out; 0 under a sanitizer. */
static uint64_t allocated(void) {
    const struct mallinfo2 info = mallinfo2();
    return info.hblkhd + info.uordblks;
}

/* A file that is held is not larger than the memory that was checked. */
TEST(held_files_fit_the_memory) {
    enum { OTHER_BYTES = 1 << 20 }; /* one strip, and the output buffer */
    for (uint64_t height = 2000; height < 3000; height += 150) {
        const gf_format format = {4096, height, 1, GF_U8, false};
        AUTO(free) unsigned char *pixels = draw(&format, 0, 1);
        gf_sink *sink = NULL;
        const uint64_t before = allocated();
        assert_ok(open_sink(&format, &(how){.compression = "none", .pipe = true}, &sink));
        assert_ok(sink->ops->write(sink, pixels, 4096, height, NULL));
        assert_true(allocated() <= before + sink->memory + OTHER_BYTES);
        assert_ok(sink->ops->finish(sink, NULL, NULL));
        sink->ops->close(sink);
    }
}

static int never_configured(uint16_t compression) {
    return 0;
}

static TIFF *never_opened(const char *name, const char *mode, thandle_t handle,
                          TIFFReadWriteProc read, TIFFReadWriteProc write, TIFFSeekProc seek,
                          TIFFCloseProc close, TIFFSizeProc size, TIFFMapFileProc map,
                          TIFFUnmapFileProc unmap, TIFFOpenOptions *options) {
    return NULL;
}

static tmsize_t never_written(TIFF *tiff, uint32_t strip, void *data, tmsize_t size) {
    TIFFErrorExtR(tiff, "test", "no %s", "luck");
    TIFFErrorExtR(tiff, "test", "a consequence");
    return -1;
}

TEST(failures_are_reported) {
    const gf_format format = {300, 400, 3, GF_U8, false}, wide = {30000000, 2, 3, GF_U8, false};
    static const char *const wrong[] = {"", "Deflate", "jpeg", "fast", "lzw "};
    AUTO(free) unsigned char *pixels = draw(&format, 1, 1);
    gf_sink *sink;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_failure(&(how){.compression = wrong[i]}, &format, GF_USAGE,
                       "use none, lzw, deflate or zstd");
    expect_failure(&(how){.compression = "deflate", .max_memory = 1 << 20}, &wide, GF_FAILED,
                   "--max-memory");
    AUTO(metadata) gf_metadata items = {0};
    add(&items, GF_ITEM_EXIF, exif, sizeof exif - 7);
    expect_failure(&(how){.compression = "none", .metadata = &items}, &format, GF_FAILED,
                   "the EXIF data is damaged");
    /* Calls of libtiff fail. */
    assert_ok(gf_tiff_load("x", &why));
    const gf_tiff_library saved = gf_libtiff;
    gf_libtiff.TIFFIsCODECConfigured = never_configured;
    expect_failure(&(how){.compression = "zstd"}, &format, GF_USAGE,
                   "cannot write zstd; use --tiff-compression deflate or none");
    gf_libtiff = saved;
    gf_libtiff.TIFFClientOpenExt = never_opened;
    assert_ok(open_sink(&format, &(how){.compression = "lzw", .threads = 2}, &sink));
    assert_error(sink->ops->write(sink, pixels, 900, 400, &why), GF_FAILED, "out of memory");
    sink->ops->close(sink);
    gf_libtiff = saved;
    gf_libtiff.TIFFWriteEncodedStrip = never_written;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        assert_ok(open_sink(&format, &(how){.compression = "lzw", .threads = threads}, &sink));
        assert_error(sink->ops->write(sink, pixels, 900, 400, &why), GF_FAILED,
                     "x.tif: libtiff cannot compress it (no luck); use");
        sink->ops->close(sink);
    }
    gf_libtiff = saved;
}

int main(void) {
    return test_main_in_directory();
}
