#include "testing.h"

#include <unistd.h>

#include "io/codecs.h"
#include "io/file/output.h"

#define PAINT TEST_PAINT
#define MARGIN TEST_MARGIN

uint64_t test_next(test_random *random) {
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

test_random test_seeded(uint64_t seed) {
    test_random random = {seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    return random;
}

uint64_t test_below(test_random *random, uint64_t n) {
    return (test_next(random) >> 16) % n;
}

static struct test_entry {
    struct CMUnitTest test;
    int line;
} test_entries[64];
static size_t test_entry_count;

void test_add(const char *name, CMUnitTestFunction run, int line) {
    size_t i = test_entry_count++;
    assert_true(i < sizeof test_entries / sizeof test_entries[0]);
    for (; i > 0 && test_entries[i - 1].line > line; i--)
        test_entries[i] = test_entries[i - 1];
    test_entries[i] = (struct test_entry){{.name = name, .test_func = run}, line};
}

int test_main(const test_fixture *fixture) {
    struct CMUnitTest tests[sizeof test_entries / sizeof test_entries[0]];
    const test_fixture with = fixture ? *fixture : (test_fixture){0};
    for (size_t i = 0; i < test_entry_count; i++) {
        tests[i] = test_entries[i].test;
        tests[i].setup_func = with.before;
        tests[i].teardown_func = with.after;
    }
    return _cmocka_run_group_tests(with.name ? with.name : "tests", tests, test_entry_count,
                                   with.start, with.stop);
}

/* With GF_TEST_FUNCTION=TEXT, run only the test functions whose names contain TEXT. */
__attribute__((constructor)) static void test_select_functions(void) {
    static char pattern[128];
    const char *text = getenv("GF_TEST_FUNCTION");
    if (text && *text && (size_t)snprintf(pattern, sizeof pattern, "*%s*", text) < sizeof pattern)
        cmocka_set_test_filter(pattern);
}

_Thread_local gf_error why;

void test_check_ok(gf_status status, const char *file, int line) {
    if (status)
        print_error("%s\n", why.message);
    _assert_int_equal(status, GF_OK, file, line);
}

void assert_message(const gf_error *error, const char *part) {
    assert_int_not_equal(error->status, GF_OK);
    assert_null(strchr(error->message, '\n'));
    if (!strstr(error->message, part))
        fail_msg("'%s' is not in '%s'", part, error->message);
}

void *test_alloc(size_t size) {
    void *memory = malloc(size);
    assert_true(memory || !size);
    return memory;
}

void *test_zeros(size_t size) {
    return memset(test_alloc(size), 0, size);
}

unsigned char *test_bytes(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = test_zeros(*size + 1);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

const char *test_tier(void) {
    const char *tier = getenv("GF_TEST_TIER");
    return tier && *tier ? tier : "test";
}

uint64_t test_rounds(uint64_t count) {
    const char *tier = test_tier();
    if (strcmp(tier, "check") == 0)
        count = (count + 5) / 6;
    else if (strcmp(tier, "test") == 0)
        count = (count + 1) / 2;
    else
        count *= 8;
    return test_environment("GF_TEST_ROUNDS", count);
}

uint64_t test_stride(uint64_t check, uint64_t test) {
    const char *tier = test_tier();
    return strcmp(tier, "check") == 0 ? check : strcmp(tier, "test") == 0 ? test : 1;
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
    image.memory = test_alloc(image.size);
    memset(image.memory, PAINT, image.size);
    image.rows = (gf_rows){image.memory + MARGIN, image.stride, 0, format.height};
    return image;
}

void test_image_free(test_image *image) {
    free(image->memory);
    image->memory = NULL;
}

bool test_painted(const unsigned char *from, const unsigned char *to) {
    while (from < to)
        if (*from++ != PAINT)
            return false;
    return true;
}

bool test_margins_intact(const test_image *image) {
    size_t row = gf_row_bytes(&image->format);
    const unsigned char *end = image->memory + image->size;
    bool intact =
        test_painted(image->memory, image->memory + MARGIN) && test_painted(end - MARGIN, end);
    for (uint64_t y = 0; y < image->format.height && intact; y++) {
        const unsigned char *p = gf_row(&image->rows, y);
        intact = test_painted(p + row, p + image->stride);
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
    default: /* TEST_SMOOTH */
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

static void put_sample(const test_image *image, uint64_t y, uint64_t i, uint32_t value) {
    size_t bytes = gf_type_bytes(image->format.type);
    unsigned char u8 = (unsigned char)value;
    uint16_t u16 = (uint16_t)value;
    const void *source = bytes == 1   ? (const void *)&u8
                         : bytes == 2 ? (const void *)&u16
                                      : (const void *)&value;
    memcpy(gf_row(&image->rows, y) + i * bytes, source, bytes);
}

void test_fill(const test_image *image, test_content content, test_random *random) {
    const gf_type type = image->format.type;
    const uint32_t flat = sample_of(TEST_EXTREMES, type, 0, 0, random);
    for (uint64_t y = 0; y < image->format.height; y++)
        for (uint64_t i = 0; i < gf_row_samples(&image->format); i++)
            put_sample(image, y, i,
                       content == TEST_FLAT ? flat : sample_of(content, type, i, y, random));
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

void test_put(const char *path, const test_image *image) {
    const gf_file_options options = {.force = true, .write.compression = "fast"};
    gf_sink *sink;
    assert_ok(gf_sink_open(path, &image->format, NULL, &options, 1, &sink, &why));
    assert_ok(sink->ops->write(sink, image->rows.data, image->stride, image->format.height, &why));
    assert_ok(sink->ops->finish(sink, NULL, &why));
    assert_ok(gf_output_commit(sink->output, &why));
    sink->ops->close(sink);
}

unsigned char *test_png(const test_image *image, size_t *size) {
    char path[4096];
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%s/gf-test-%d.png", folder ? folder : "/tmp", (int)getpid());
    const gf_pixels pixels = {image->rows.data, image->stride};
    assert_ok(gf_save_file(path, &image->format, &pixels, &(gf_file_options){.force = true}, &why));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = test_alloc(*size);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    unlink(path);
    return bytes;
}

void test_disturb(const test_image *image, test_random *random) {
    for (uint64_t n = test_below(random, 4); n > 0; n--) {
        uint64_t y = test_below(random, image->format.height);
        uint64_t i = test_below(random, gf_row_samples(&image->format));
        const uint32_t other = sample_of(TEST_UNIFORM, image->format.type, i, y, random);
        /* By a random amount, or by the minimum. */
        put_sample(image, y, i, test_below(random, 2) ? other : sample_at(image, y, i) ^ 1);
    }
}

/* Write a grey PGM with one pixel per sample, white where the samples differ. */
static void write_difference(const test_image *a, const test_image *b) {
    char path[512];
    const char *directory = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/gpufilter-difference-%ld.pgm", directory ? directory : "/tmp",
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
    print_error("  difference image: %s\n", path);
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
        write_difference(golden, other);
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
    gf_format format = {.width = test_width(random),
                        .height = test_height(random),
                        .channels = (uint32_t)(1 + test_below(random, 4)),
                        .type = (gf_type)test_below(random, 3)};
    format.alpha = format.channels % 2 == 0 && test_below(random, 4) != 0;
    return format;
}

static const char *const smooth_limits[] = {
    /* u8: the sum of two neighbouring taps is 128, the maximum for pairs of products, or 129. */
    "radius=1 weight=7.75 keep-brightness",
    "radius=1 weight=32 keep-brightness",
    "radius=1 weight=0.015873016 keep-brightness",
    /* The sum of all taps is 257, the maximum for 16-bit products, or more. */
    "radius=1 weight=42 keep-brightness",
    "radius=1 weight=10.25 keep-brightness",
    "radius=2 weight=25 keep-brightness",
    "radius=2 weight=12.5 keep-brightness",
    "radius=3 weight=8.5 keep-brightness",
    "radius=3 weight=18 keep-brightness",
    /* The maximum sum of the taps, and one more. */
    "radius=1 weight=17.714285714 keep-brightness",
    "radius=1 weight=20.833333333 keep-brightness",
    /* The longest windows of the integer code, and one more. */
    "radius=7",
    "radius=9",
    "radius=8 stages=enhance,blur",
    "radius=9 stages=enhance,blur",
    /* Columns: the maximum number of rows processed at once. */
    "radius=127 axis=y",
    "radius=127 axis=xy tile=200",
    NULL,
};

static const char *const axis_sum_means[] = {"mean", "axis=y mean", NULL};

static const char *const hist_limits[] = {
    /* One bin: the first, with all lower values; the last; one around 0; one on each side of 0. */
    "bins=4 extract=0 out=-",
    "bins=4 extract=3 out=-",
    "bins=9 range=-40,40 extract=0 out=- mask=-",
    "bins=9 range=-40,40 extract=4 out=-",
    "bins=10 range=-40,40 extract=4 out=-",
    "bins=10 range=-40,40 extract=5 out=- channel=all",
    "bins=9 range=-40,40 extract=8 out=-",
    "bins=9 range=-30,-2 extract=3 out=-",
    "bins=65536 extract=65535 out=-",
    /* The maximum number of bins that CUDA extracts without sorting, and one more. */
    "bins=64 extract=all out=-",
    "bins=65 extract=all out=- channel=all",
    /* Bins found by comparison with edges, by tables of each size, and without tables. */
    "bins=17",
    "bins=33 channel=all",
    "bins=34",
    "bins=256 channel=all",
    "bins=257 per-row",
    "bins=271 channel=all",
    "bins=272 channel=all",
    "bins=1039 channel=all",
    "bins=1040",
    "bins=65535",
    /* Ranges inside and outside of binary32, and ranges that binary32 cannot resolve. */
    "bins=10 range=-3e38,3e38 channel=all",
    "bins=11 range=-1e300,1e300",
    "bins=7 range=0,1e-35 extract=0,6 out=-",
    "bins=8 range=1e30,1.00001e30",
    /* Statistics from the counts of bins, of values, and of both. */
    "statistics channel=all",
    "bins=65536 statistics",
    "bins=300 statistics extract=all out=- channel=all",
    "bins=2 statistics range=-1e38,1e38 extract=0 out=-",
    "bins=20 statistics per-row range=-40,40",
    "bins=60000 range=1,1.001",
    /* The same limits with counters for values below and above the range. */
    "bins=13 range=20,120",
    "bins=14 range=20,120 channel=all",
    "bins=15 range=20,120",
    "bins=29 range=100,20000 channel=all",
    "bins=30 range=100,20000",
    "bins=31 range=20,120",
    "bins=32 range=20,120 per-row channel=all",
    "bins=253 range=20,120 per-row",
    "bins=254 range=20,120 per-row channel=all",
    "bins=255 range=20,120 channel=all",
    "bins=256 range=-1,120 mask=- extract=7",
    "bins=269 range=20,120 channel=all",
    "bins=270 range=20,120 channel=all",
    "bins=1037 range=20,120 channel=all",
    "bins=1038 range=20,120",
    "bins=65535 range=20,120 per-row",
    "bins=65536 range=20,120 channel=all extract=65535 out=-",
    "bins=64 range=0.1,0.9 extract=all out=-",
    "bins=65 range=20,200 extract=all out=- channel=all",
    /* Ranges that end at samples, that contain no sample, and that contain all samples. */
    "bins=5 range=0,255 extract=4 out=-",
    "bins=2 range=255,65535 extract=0,1 out=- mask=-",
    "bins=3 range=0.25,0.5 extract=all out=-",
    "bins=4 range=70000,80000 extract=1 out=-",
    "bins=4 range=-80000,70000 extract=all out=-",
    /* Two passes. */
    "bins=9 range=data extract=0,8 out=-",
    "bins=300 range=data channel=all statistics mask=- extract=299",
    "bins=5 range=data per-row",
    NULL,
};

const char *test_case(const gf_filter *filter, size_t i) {
    size_t own = 0;
    while (own < i && filter->info.cases[own])
        own++;
    if (filter->info.cases[own])
        return filter->info.cases[own];
    if (strcmp(filter->info.name, "hist") == 0)
        return hist_limits[i - own];
    if (strcmp(filter->info.name, "axis-sum") == 0)
        return axis_sum_means[i - own];
    if (strcmp(filter->info.name, "smooth") == 0)
        return smooth_limits[i - own];
    return NULL;
}

gf_settings *test_settings(const gf_filter *filter, const char *text) {
    gf_settings *settings = gf_settings_new(filter->info.params, filter->info.param_count);
    assert_non_null(settings);
    assert_ok(gf_settings_apply_case(settings, text, &why));
    return settings;
}

/* Compare two cells bit by bit: a NaN equals itself, and -0 differs from 0. */
static bool same_cell(gf_value a, gf_value b) {
    if (a.type != b.type || a.low != b.low || a.high != b.high)
        return false;
    if (a.type == GF_VALUE_TEXT)
        return strcmp(a.text, b.text) == 0;
    return memcmp(&a.real, &b.real, sizeof a.real) == 0;
}

static bool same_table(const gf_result *a, const gf_result *b, size_t t, const char *what) {
    const gf_table *want = gf_result_table(a, t), *got = gf_result_table(b, t);
    if (strcmp(want->name, got->name) != 0 || want->row_count != got->row_count ||
        want->column_count != got->column_count) {
        print_error("%s\n  table %s: %" PRIu64 " rows, golden has %" PRIu64 "\n", what, want->name,
                    got->row_count, want->row_count);
        return false;
    }
    for (uint64_t row = 0; row < want->row_count; row++)
        for (size_t column = 0; column < want->column_count; column++) {
            gf_value x = gf_result_cell(a, t, row, column), y = gf_result_cell(b, t, row, column);
            if (same_cell(x, y))
                continue;
            char golden[64], other[64];
            gf_value_format(&x, golden, sizeof golden);
            gf_value_format(&y, other, sizeof other);
            print_error("%s\n  table %s differs first at row %" PRIu64
                        " column %s: golden %s, got %s\n",
                        what, want->name, row, want->columns[column].name, golden, other);
            return false;
        }
    return true;
}

bool test_same_result(const gf_result *golden, const gf_result *other, const char *what) {
    if (!golden || !other) {
        if (golden || other)
            print_error("%s\n  only one of the two has a result\n", what);
        return !golden && !other;
    }
    bool same = gf_result_table_count(golden) == gf_result_table_count(other) &&
                gf_result_passed(golden) == gf_result_passed(other) &&
                strcmp(gf_result_text(golden), gf_result_text(other)) == 0;
    if (!same)
        print_error("%s\n  golden: %s  got: %s", what, gf_result_text(golden),
                    gf_result_text(other));
    for (size_t t = 0; same && t < gf_result_table_count(golden); t++)
        same = same_table(golden, other, t, what);
    return same;
}

gf_engine *test_engine(const gf_engine_options *options) {
    gf_engine *engine = NULL;
    assert_ok(gf_engine_open(options, &engine, &why));
    return engine;
}

bool test_has_cuda(void) {
    static int available = -1;
    if (available >= 0)
        return available;
    gf_engine_options options = {.backend = "cuda"};
    gf_engine *engine = NULL;
    available = gf_engine_open(&options, &engine, &why) == GF_OK;
    gf_engine_close(engine);
    if (!available && test_environment("GF_REQUIRE_CUDA", 0))
        fail_msg("GF_REQUIRE_CUDA is set but: %s", why.message);
    if (!available)
        print_message("no CUDA device: %s\n", why.message);
    return available;
}

void test_needs_gpu(void) {
    if (!test_has_cuda())
        test_skip("no GPU");
}
