/* PNG encoder: an independent reader decodes its files, which do not depend on the threads. */
#include "io_util.h"

#include <png.h>
#include <zlib.h>

#include "io/png/png.h"

#include "png_encoder_util.h"

/* ---- a reader -------------------------------------------------------------------------------- */

static uint32_t big32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Return the filtered rows of a file. Check the order and the checksums of its chunks, and the
 * stream. */
static unsigned char *read_filtered(const unsigned char *file, size_t size, size_t wanted) {
    unsigned char *stream = malloc(size), *filtered = malloc(wanted + 1);
    size_t at = 8, coded = 0;
    bool ended = false;
    assert_true(stream && filtered);
    assert_memory_equal(file, "\x89PNG\r\n\x1a\n", 8);
    while (!ended) {
        assert_true(at + 12 <= size);
        const uint32_t length = big32(file + at);
        assert_true(length <= size - at - 12);
        assert_int_equal(crc32(0, file + at + 4, length + 4), big32(file + at + 8 + length));
        if (memcmp(file + at + 4, "IDAT", 4) == 0) {
            memcpy(stream + coded, file + at + 8, length);
            coded += length;
        }
        ended = memcmp(file + at + 4, "IEND", 4) == 0;
        at += length + 12;
    }
    assert_int_equal(at, size);
    uLongf got = (uLongf)wanted + 1;
    assert_int_equal(uncompress(filtered, &got, stream, (uLong)coded), Z_OK);
    assert_int_equal(got, wanted);
    free(stream);
    return filtered;
}

static int predict(int filter, int a, int b, int c) {
    const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    const int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
    return (const int[]){0, a, b, (a + b) / 2, paeth}[filter];
}

/* Decode a file and compare its pixels. Samples in the file are big-endian. */
static void check_pixels(const gf_format *format, const unsigned char *pixels,
                         const unsigned char *file, size_t size) {
    const size_t row = gf_row_bytes(format), sample = gf_type_bytes(format->type);
    const size_t pixel = format->channels * sample;
    assert_int_equal(big32(file + 16), format->width);
    assert_int_equal(big32(file + 20), format->height);
    assert_int_equal(file[24], 8 * sample);
    assert_int_equal(file[25], ((const int[]){0, 0, 4, 2, 6}[format->channels]));
    AUTO(free)
    unsigned char *filtered = read_filtered(file, size, (row + 1) * (size_t)format->height);
    AUTO(free) unsigned char *above = calloc(1, row), *here = calloc(1, row);
    assert_true(above && here);
    for (uint64_t y = 0; y < format->height; y++) {
        const unsigned char *in = filtered + y * (row + 1);
        assert_in_range(in[0], 0, 4);
        for (size_t i = 0; i < row; i++) {
            const int a = i < pixel ? 0 : here[i - pixel], c = i < pixel ? 0 : above[i - pixel];
            here[i] = (unsigned char)(in[1 + i] + predict(in[0], a, above[i], c));
        }
        const size_t swap = sample == 2 && gf_host_is_little();
        for (size_t i = 0; i < row; i++)
            if (here[i] != pixels[y * row + (i ^ swap)])
                fail_msg("%lu x %lu: wrong in row %lu", (unsigned long)format->width,
                         (unsigned long)format->height, (unsigned long)y);
        memcpy(above, here, row);
    }
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Write x.png. */
static void encode(const gf_format *format, const unsigned char *pixels, const char *compression,
                   uint32_t threads, uint64_t max_memory, uint64_t rows) {
    const gf_file_options options = {
        .force = true, .write.compression = compression, .max_memory = max_memory};
    const size_t row = gf_row_bytes(format);
    gf_sink *sink;
    assert_ok(gf_sink_open(in_directory("x.png"), format, NULL, &options, threads, &sink, &why));
    for (uint64_t y = 0; y < format->height; y += rows) {
        const uint64_t n = format->height - y < rows ? format->height - y : rows;
        assert_ok(sink->ops->write(sink, pixels + y * row, row, n, &why));
    }
    assert_ok(sink->ops->finish(sink, NULL, &why));
    assert_ok(gf_output_commit(sink->output, &why));
    sink->ops->close(sink);
}

static void check_image(gf_format format, const char *compression, int content, uint64_t seed) {
    static const struct {
        uint32_t threads;
        uint64_t max_memory, rows;
    } variants[] = {{2, 0, 7}, {7, 0, 1000000}, {16, 0, 1}, {3, 8 << 20, 3}};
    AUTO(free) unsigned char *pixels = draw(&format, content, seed);
    size_t size;
    encode(&format, pixels, compression, 1, 0, format.height);
    AUTO(free) unsigned char *file = test_bytes(in_directory("x.png"), &size);
    check_pixels(&format, pixels, file, size);
    for (size_t w = 0; w < sizeof variants / sizeof *variants; w++) {
        encode(&format, pixels, compression, variants[w].threads, variants[w].max_memory,
               variants[w].rows);
        assert_bytes(in_directory("x.png"), file, size);
    }
}

TEST(any_threads_write_the_same_bytes) {
    test_random random = {test_environment("GF_TEST_SEED", 91)};
    for (int round = 0; round < 36; round++) {
        gf_format format = {1 + test_below(&random, round % 3 ? 900 : 40),
                            1 + test_below(&random, round % 5 ? 700 : 9),
                            1 + (uint32_t)test_below(&random, 4),
                            test_below(&random, 3) ? GF_U8 : GF_U16, false};
        format.alpha = format.channels % 2 == 0;
        const char *compression =
            round % 4 ? "fast" : gf_names(GF_NAMES_COMPRESSION)[1 + round / 4 % 3];
        check_image(format, compression, round % CONTENTS, test_next(&random));
    }
}

/* Rows longer than a block and than a strip, both of 256 KiB, and of few bytes; images with many
 * strips. */
TEST(every_shape) {
    static const gf_format shapes[] = {{90000, 5, 3, GF_U8, false},  {140000, 6, 1, GF_U16, false},
                                       {262143, 4, 1, GF_U8, false}, {262144, 4, 1, GF_U8, false},
                                       {1, 300000, 1, GF_U8, false}, {2, 70000, 4, GF_U16, true},
                                       {1, 1, 1, GF_U8, false},      {40000, 16, 2, GF_U8, true}};
    const uint64_t step = test_stride(3, 3);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int content = 0; content < CONTENTS; content += 5)
            for (uint64_t k = (s + (uint64_t)content / 5) % step; k < 3; k += step)
                check_image(shapes[s], (const char *const[]){"fast", "balanced", "none"}[k],
                            content, s);
    check_image((gf_format){300000, 3, 3, GF_U8, false}, "fast", TWO_PARTS, 1);
}

/* Every SIMD level writes the same bytes. */
TEST(simd_levels_write_the_same_bytes) {
    const gf_format format = {701, 400, 3, GF_U8, false};
    for (int content = 0; content < CONTENTS; content++) {
        unsigned char *pixels = draw(&format, content, 5), *first = NULL;
        size_t first_size = 0;
        for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
            gf_output *output;
            gf_sink *sink;
            size_t size;
            if (isa && !gf_isa_available((gf_isa)isa))
                continue;
            assert_ok(gf_output_open(in_directory("part"), &replacing, false, &output, &why));
            assert_ok(open_encoder(&format, "balanced", (gf_isa)isa, 2, 1 << 28, output, &sink));
            assert_ok(sink->ops->write(sink, pixels, gf_row_bytes(&format), format.height, &why));
            assert_ok(sink->ops->finish(sink, NULL, &why));
            assert_ok(gf_output_commit(sink->output, &why));
            sink->ops->close(sink);
            unsigned char *bytes = test_bytes(in_directory("part"), &size);
            if (first) {
                assert_int_equal(size, first_size);
                assert_memory_equal(bytes, first, size);
                free(bytes);
            } else {
                first = bytes;
                first_size = size;
            }
        }
        free(first);
        free(pixels);
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static size_t size_of(const gf_format *format, const unsigned char *pixels,
                      const char *compression) {
    size_t size;
    encode(format, pixels, compression, 2, 0, 64);
    free(test_bytes(in_directory("x.png"), &size));
    return size;
}

static void count_bytes(png_structp png, png_bytep data, size_t size) {
    *(size_t *)png_get_io_ptr(png) += size;
}

/* Return the size of libpng's file: level 1 with the Sub filter, other levels with all filters. */
static size_t size_by_libpng(const gf_format *format, const unsigned char *pixels, int level) {
    static const int colors[] = {0, 0, 4, 2, 6};
    const size_t row = gf_row_bytes(format);
    size_t size = 0;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &size, count_bytes, NULL);
    png_set_IHDR(png, info, (png_uint_32)format->width, (png_uint_32)format->height, 8,
                 colors[format->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, level);
    png_set_compression_strategy(png, level == 1 ? Z_DEFAULT_STRATEGY : Z_FILTERED);
    png_set_filter(png, 0, level == 1 ? PNG_FILTER_SUB : PNG_ALL_FILTERS);
    png_write_info(png, info);
    for (uint64_t y = 0; y < format->height; y++)
        png_write_row(png, pixels + y * row);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return size;
}

TEST(more_effort_makes_smaller_files) {
    const gf_format format = {1200, 800, 3, GF_U8, false};
    for (int content = 0; content < CONTENTS; content++) {
        AUTO(free) unsigned char *pixels = draw(&format, content, 9);
        const size_t raw = gf_row_bytes(&format) * (size_t)format.height;
        const size_t fast = size_of(&format, pixels, "fast");
        const size_t balanced = size_of(&format, pixels, "balanced");
        const size_t small = size_of(&format, pixels, "small");
        const size_t six = size_by_libpng(&format, pixels, 6);
        const size_t one = size_by_libpng(&format, pixels, 1);
        if (getenv("GF_TEST_SHOW"))
            print_message("%d: %zu %zu %zu, 6: %zu, 1: %zu\n", content, fast, balanced, small, six,
                          one);
        /* Tolerance: one strip and one code description. */
        assert_true(balanced <= fast + fast / 100);
        assert_true(small <= balanced + 100);
        assert_true(small <= six + six / 200 + 100);
        assert_true(fast <= one + one / 50);
        assert_true(fast < raw + raw / 1000 + 1000);
    }
}

/* "none" stores unfiltered rows with their filter bytes, in stored blocks of up to 65535 bytes. A
 * strip has at most 256 KiB, or one row. */
TEST(none_stores_rows) {
    static const gf_format shapes[] = {
        {1, 1, 1, GF_U8, false},      {65533, 1, 1, GF_U8, false},  {65534, 1, 1, GF_U8, false},
        {65535, 1, 1, GF_U8, false},  {65534, 4, 1, GF_U8, false},  {32767, 9, 1, GF_U16, false},
        {131069, 3, 1, GF_U8, false}, {262143, 2, 1, GF_U8, false}, {262144, 3, 1, GF_U8, false},
        {1000, 700, 3, GF_U8, false}, {70000, 3, 4, GF_U16, true}};
    enum { FRAME = 8 + 25 + 12 + 2 + 4, CHUNK = 12, BLOCK = 65535, STRIP = 1 << 18 };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const gf_format *format = &shapes[s];
        const size_t row = gf_row_bytes(format) + 1, max = STRIP / row ? STRIP / row : 1;
        AUTO(free) unsigned char *pixels = draw(format, 0, s);
        size_t want = FRAME;
        for (size_t y = 0, rows; y < format->height; y += rows) {
            rows = format->height - y < max ? (size_t)format->height - y : max;
            want += CHUNK + rows * row + (rows * row + BLOCK - 1) / BLOCK * 5;
        }
        assert_int_equal(size_of(format, pixels, "none"), want);
        check_image(*format, "none", 0, s);
    }
}

/* Return 8 x 8 ordered dithering of a gradient. */
static size_t dither(size_t x, size_t y) {
    size_t threshold = 0;
    for (unsigned bit = 0; bit < 3; bit++)
        threshold = threshold << 2 | ((x ^ y) >> bit & 1) << 1 | (y >> bit & 1);
    return x / 32 % 64 > threshold ? 255 : 0;
}

/* Return noise that repeats in tiles. */
static size_t tiles(size_t x, size_t y, size_t c, size_t width, size_t height) {
    enum { ALL = 1 << 21 };
    static unsigned char noise[ALL];
    test_random random = {1};
    for (size_t i = 0; i < ALL && noise[ALL - 1] == 0; i++)
        noise[i] = (unsigned char)(1 + test_below(&random, 255));
    return noise[((y % height * width + x % width) * 3 + c) % ALL];
}

/* Repeating patterns without runs: they need few bits without matches, and far fewer with them. */
TEST(patterns_are_found_by_fast) {
    for (int kind = 0; kind < 10; kind++) {
        gf_format format = {2000, 700, 1, GF_U8, false};
        if (kind == 4 || kind == 6 || kind == 9)
            format.channels = 3;
        if (kind == 5)
            format = (gf_format){1, 90000, 3, GF_U8, false};
        const size_t row = gf_row_bytes(&format);
        AUTO(free) unsigned char *pixels = test_alloc(row * (size_t)format.height);
        for (size_t i = 0; i < row * format.height; i++) {
            const size_t y = i / row, x = i % row / format.channels, c = i % row % format.channels;
            const size_t value = kind == 0   ? (x + y) % 2 * 255
                                 : kind == 1 ? 192 + (x / 8 + y / 8) % 2 * 63
                                 : kind == 2 ? dither(x, y)
                                 : kind == 3 ? (x / 7 * 37 + y / 11 * 91) % 256
                                 : kind == 4 ? ((x + 2 * y) % 5 + 1) * (c + 2) * 97 % 256
                                 : kind == 6 ? tiles(x, y, c, 64, 64)
                                 : kind == 7 ? tiles(x, y, c, 2000, 5)
                                 : kind == 8 ? tiles(x, y, c, 1000, 700)
                                 : kind == 9 ? tiles(x, y, c, 250, 100)
                                             : 77;
            pixels[i] = (unsigned char)value;
        }
        const size_t fast = size_of(&format, pixels, "fast");
        const size_t one = size_by_libpng(&format, pixels, 1);
        if (getenv("GF_TEST_SHOW"))
            print_message("%d: %zu, 1: %zu\n", kind, fast, one);
        /* "fast" compresses each strip independently; libpng writes one stream. */
        assert_true(fast <= one + one / 10 || (kind == 7 && fast < row * format.height / 16));
    }
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Write more bytes than fit into one chunk, of every size. */
TEST(chunks_contain_all_bytes) {
    enum { MAX = 50 };
    for (size_t size = 1; size < 4 * MAX; size++) {
        unsigned char buffer[GF_PNG_IDAT_HEAD + 4 * MAX + GF_PNG_IDAT_TAIL];
        unsigned char *data = buffer + GF_PNG_IDAT_HEAD;
        AUTO(free) unsigned char *file;
        gf_output *output;
        size_t got, at = 0;
        for (size_t i = 0; i < size; i++)
            data[i] = (unsigned char)(i + 1);
        assert_ok(gf_output_open(in_directory("chunks"), &replacing, false, &output, &why));
        assert_ok(gf_png_idat_write_parts(output, data, size, MAX, &why));
        assert_ok(gf_output_prepare(output, &why));
        assert_ok(gf_output_commit(output, &why));
        gf_output_close(output);
        file = test_bytes(in_directory("chunks"), &got);
        assert_int_equal(got, size + (size + MAX - 1) / MAX * 12);
        for (size_t done = 0, length; done < size; done += length, at += length + 12) {
            length = size - done < MAX ? size - done : MAX;
            assert_int_equal(big32(file + at), length);
            assert_memory_equal(file + at + 4, "IDAT", 4);
            for (size_t i = 0; i < length; i++)
                assert_int_equal(file[at + 8 + i], (unsigned char)(done + i + 1));
            assert_int_equal(big32(file + at + 8 + length),
                             crc32(0, file + at + 4, (uInt)length + 4));
        }
    }
}

/* ---- strips and options ---------------------------------------------------------------------- */

/* Strips with "small" start with the preceding data that matches can reach. */
TEST(strips_match_those_above) {
    const gf_format format = {10000, 100, 1, GF_U8, false};
    AUTO(free) unsigned char *pixels = draw(&format, 0, 6);
    for (size_t i = 20000; i < 1000000; i++)
        pixels[i] = pixels[i - 20000];
    assert_in_range(size_of(&format, pixels, "small"), 20000, 40000);
}

TEST(rejects_unknown_compressions) {
    const gf_format format = {3, 3, 1, GF_U8, false};
    static const char *const wrong[] = {"0", "9", "-1", "", "Fast", "small ", "None"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const gf_file_options options = {.write.compression = wrong[i]};
        gf_sink *sink;
        assert_error(gf_sink_open(in_directory("y.png"), &format, NULL, &options, 1, &sink, &why),
                     GF_USAGE, "compression");
        assert_null(sink);
    }
}

int main(void) {
    return test_main_in_directory();
}
