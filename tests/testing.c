#include "testing.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAINT 0xa5
#define MARGIN 256

uint64_t test_next(test_random *random) {
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t test_below(test_random *random, uint64_t n) {
    return (test_next(random) >> 16) % n;
}

uint64_t test_environment(const char *name, uint64_t fallback) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : fallback;
}

test_image test_image_new(gf_format format, size_t padding) {
    test_image image = {.format = format};
    size_t sample = gf_type_bytes(format.type);
    image.stride = gf_row_bytes(&format) + padding / sample * sample;
    image.size = 2 * MARGIN + (size_t)format.height * image.stride;
    image.memory = malloc(image.size);
    assert_non_null(image.memory);
    memset(image.memory, PAINT, image.size);
    image.rows = (gf_rows){image.memory + MARGIN, image.stride, 0, format.height};
    return image;
}

void test_image_free(test_image *image) {
    free(image->memory);
    image->memory = NULL;
}

static bool painted(const unsigned char *from, const unsigned char *to) {
    while (from < to)
        if (*from++ != PAINT)
            return false;
    return true;
}

bool test_margins_intact(const test_image *image) {
    size_t row = gf_row_bytes(&image->format);
    const unsigned char *end = image->memory + image->size;
    bool intact = painted(image->memory, image->memory + MARGIN) && painted(end - MARGIN, end);
    for (uint64_t y = 0; y < image->format.height && intact; y++) {
        const unsigned char *p = gf_row(&image->rows, y);
        intact = painted(p + row, p + image->stride);
    }
    return intact;
}

static uint32_t sample_of(test_content content, gf_type type, uint64_t i, uint64_t y,
                          test_random *random) {
    static const uint32_t odd_floats[] = {
        0x7fc00000, 0xffc12345, 0x7f800001, 0x7f800000, 0xff800000, 0x80000000, 0x00000000,
        0x00000001, 0x807fffff, 0x7f7fffff, 0xff7fffff, 0x3f800000, 0x42c80000, 0x00800000};
    const uint32_t max = type == GF_U8 ? 255 : 65535;
    float f;
    uint32_t bits;
    switch (content) {
    case TEST_UNIFORM:
        if (type != GF_F32)
            return (uint32_t)test_below(random, (uint64_t)max + 1);
        f = (float)((double)test_below(random, 1u << 24) / 65536.0 - 20.0);
        memcpy(&bits, &f, sizeof bits);
        return bits;
    case TEST_EXTREMES:
        if (type == GF_F32)
            return test_below(random, 4) ? 0x3f800000 + (uint32_t)test_below(random, 1u << 23)
                                         : odd_floats[test_below(random, 14)];
        switch (test_below(random, 4)) {
        case 0:
            return 0;
        case 1:
            return 1;
        case 2:
            return max - 1;
        default:
            return max;
        }
    default:
        bits = (uint32_t)((i * 3 + y * 5) % 512);
        bits = bits < 256 ? bits : 511 - bits;
        if (type == GF_F32) {
            f = (float)bits / 255.0f;
            memcpy(&bits, &f, sizeof bits);
            return bits;
        }
        return bits * (max / 255) + (uint32_t)test_below(random, 3) % (max - 254);
    }
}

void test_fill(const test_image *image, test_content content, test_random *random) {
    size_t bytes = gf_type_bytes(image->format.type);
    for (uint64_t y = 0; y < image->format.height; y++)
        for (uint64_t i = 0; i < gf_row_samples(&image->format); i++) {
            uint32_t value = sample_of(content, image->format.type, i, y, random);
            unsigned char u8 = (unsigned char)value;
            uint16_t u16 = (uint16_t)value;
            const void *source = bytes == 1   ? (const void *)&u8
                                 : bytes == 2 ? (const void *)&u16
                                              : (const void *)&value;
            memcpy(gf_row(&image->rows, y) + i * bytes, source, bytes);
        }
}

static uint32_t sample_at(const test_image *image, uint64_t y, uint64_t i) {
    size_t bytes = gf_type_bytes(image->format.type);
    const unsigned char *p = gf_row(&image->rows, y) + i * bytes;
    uint16_t u16;
    uint32_t u32;
    if (bytes == 1)
        return *p;
    if (bytes == 2) {
        memcpy(&u16, p, sizeof u16);
        return u16;
    }
    memcpy(&u32, p, sizeof u32);
    return u32;
}

/* White where samples differ: one grey PGM a sample. */
static void leave_picture(const test_image *a, const test_image *b) {
    char path[512];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/gpufilter-difference-%ld.pgm", folder ? folder : "/tmp",
             (long)getpid());
    FILE *file = fopen(path, "wb");
    if (!file)
        return;
    uint64_t samples = gf_row_samples(&a->format);
    fprintf(file, "P5\n%" PRIu64 " %" PRIu64 "\n255\n", samples, a->format.height);
    for (uint64_t y = 0; y < a->format.height; y++)
        for (uint64_t i = 0; i < samples; i++)
            fputc(sample_at(a, y, i) == sample_at(b, y, i) ? 0 : 255, file);
    fclose(file);
    print_error("  difference picture: %s\n", path);
}

bool test_same(const test_image *golden, const test_image *other, const char *what) {
    size_t row = gf_row_bytes(&golden->format);
    for (uint64_t y = 0; y < golden->format.height; y++) {
        if (memcmp(gf_row(&golden->rows, y), gf_row(&other->rows, y), row) == 0)
            continue;
        uint64_t i = 0;
        while (sample_at(golden, y, i) == sample_at(other, y, i))
            i++;
        uint32_t channels = golden->format.channels;
        print_error("%s\n  differs first at x %" PRIu64 " y %" PRIu64 " channel %" PRIu64
                    ": golden %" PRIu32 " (0x%08" PRIx32 "), got %" PRIu32 " (0x%08" PRIx32 ")\n",
                    what, i / channels, y, i % channels, sample_at(golden, y, i),
                    sample_at(golden, y, i), sample_at(other, y, i), sample_at(other, y, i));
        leave_picture(golden, other);
        return false;
    }
    return true;
}

uint64_t test_width(test_random *random) {
    static const uint64_t widths[] = {1,   2,   3,   4,   5,    7,    8,    9,    15,   16,
                                      17,  31,  32,  33,  63,   64,   65,   127,  129,  255,
                                      256, 257, 511, 515, 1023, 1024, 1025, 2047, 2050, 4099};
    if (test_below(random, 4) == 0)
        return 1 + test_below(random, 700);
    return widths[test_below(random, sizeof widths / sizeof widths[0])];
}

uint64_t test_height(test_random *random) {
    static const uint64_t heights[] = {1, 2, 3, 4, 5, 7, 8, 16, 31, 33, 63, 64, 65, 67, 130, 140};
    return heights[test_below(random, sizeof heights / sizeof heights[0])];
}

gf_format test_format(test_random *random) {
    return (gf_format){.width = test_width(random),
                       .height = test_height(random),
                       .channels = (uint32_t)(1 + test_below(random, 4)),
                       .type = (gf_type)test_below(random, 3)};
}

gf_settings *test_settings(const gf_filter *filter, const char *text) {
    gf_settings *settings = gf_settings_new(filter->info.params, filter->info.param_count);
    assert_non_null(settings);
    gf_error error = {0};
    if (gf_settings_apply_case(settings, text, &error))
        fail_msg("%s", error.message);
    return settings;
}

test_band test_band_new(const gf_filter *filter, const char *text, uint64_t seed, gf_format format,
                        bool whole, size_t row_align) {
    test_random random = {seed};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    test_band band = {.filter = filter, .text = text, .seed = seed};
    band.settings = test_settings(filter, text);
    band.plan = calloc(1, filter->plan_bytes);
    assert_non_null(band.plan);
    band.plan->in = band.plan->out = format;
    assert_int_equal(filter->plan(band.settings, band.plan, NULL), GF_OK);
    /* At least one alignment of paint after each row. */
    size_t padding = row_align ? 2 * row_align - gf_row_bytes(&format) % row_align
                               : 4 + (size_t)test_below(&random, 60);
    band.in = test_image_new(format, padding);
    band.want = test_image_new(format, padding);
    band.got = test_image_new(format, padding);
    test_fill(&band.in, TEST_EXTREMES, &random);
    assert_int_equal(filter->golden(band.plan, &band.in.rows, &band.want.rows, NULL), GF_OK);

    uint64_t y0 = whole ? 0 : test_below(&random, format.height);
    uint64_t rows = whole ? format.height : 1 + test_below(&random, format.height - y0);
    uint64_t first = y0 < band.plan->halo ? 0 : y0 - band.plan->halo;
    uint64_t last = y0 + rows + band.plan->halo;
    last = last < format.height ? last : format.height;
    band.out = (gf_rows){gf_row(&band.got.rows, y0), band.got.stride, y0, rows};
    band.from = (gf_rows){gf_row(&band.in.rows, first), band.in.stride, first, last - first};
    return band;
}

void test_band_check(const test_band *band, const char *who) {
    const gf_format *format = &band->got.format;
    size_t row = gf_row_bytes(format);
    for (uint64_t y = 0; y < format->height; y++) {
        const unsigned char *got = gf_row(&band->got.rows, y);
        bool inside = y >= band->out.y0 && y < band->out.y0 + band->out.rows;
        if (inside ? memcmp(gf_row(&band->want.rows, y), got, row) != 0 : !painted(got, got + row))
            fail_msg("%s '%s' on %s: row %" PRIu64 " %s band is wrong, seed %" PRIu64 ", %" PRIu64
                     "x%" PRIu64 "x%u %s",
                     band->filter->info.name, band->text, who, y, inside ? "of the" : "outside the",
                     band->seed, format->width, format->height, format->channels,
                     gf_type_name(format->type));
    }
    if (!test_margins_intact(&band->got))
        fail_msg("%s '%s' on %s: wrote between the rows, seed %" PRIu64, band->filter->info.name,
                 band->text, who, band->seed);
}

void test_band_repaint(test_band *band) {
    memset(band->got.memory, PAINT, band->got.size);
}

void test_band_free(test_band *band) {
    test_image_free(&band->in);
    test_image_free(&band->want);
    test_image_free(&band->got);
    gf_settings_free(band->settings);
    free(band->plan);
}

bool test_has_cuda(void) {
    static int known = -1;
    if (known >= 0)
        return known;
    gf_engine_options options = {.backend = "cuda"};
    gf_engine *engine = NULL;
    gf_error error = {0};
    known = gf_engine_open(&options, &engine, &error) == GF_OK;
    gf_engine_close(engine);
    if (!known && test_environment("GF_REQUIRE_CUDA", 0))
        fail_msg("GF_REQUIRE_CUDA is set but: %s", error.message);
    if (!known)
        print_message("SKIP cuda: no device (%s)\n", error.message);
    return known;
}
