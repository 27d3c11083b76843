/* Test images for verify and bench, and bitwise comparison of outputs. Sizes are close to powers of
 * two; contents range from noise to synthetic photographs. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"

/* ---- random numbers -------------------------------------------------------------------------- */

static uint64_t random_next(gf_random *random) {
    uint64_t x = *random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *random = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t gf_random_below(gf_random *random, uint64_t n) {
    return (random_next(random) >> 16) % n;
}

/* splitmix64: maps adjacent numbers to unrelated ones. */
static uint64_t random_mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

gf_random gf_random_start(uint64_t seed, uint64_t stream, uint64_t number) {
    const uint64_t state = random_mix(random_mix(random_mix(seed) + stream) + number);
    return state ? state : 1;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Return a power of two, plus -1, 0 or 1: vectors, warps, blocks and tiles end at powers of two. */
static uint64_t near_edge(gf_random *random, uint64_t max) {
    uint64_t bits = 0;
    while (UINT64_C(2) << bits <= max)
        bits++;
    const uint64_t size =
        (UINT64_C(1) << gf_random_below(random, bits + 1)) - 1 + gf_random_below(random, 3);
    return size < 1 ? 1 : size > max ? max : size;
}

gf_format gf_verify_format(gf_random *random, uint64_t round, bool small) {
    /* Maximum number of samples: mostly small for many images, sometimes a million. */
    static const uint64_t limits[] = {1u << 12, 1u << 12, 1u << 12, 1u << 14,
                                      1u << 16, 1u << 16, 1u << 18, (1u << 20) + 8};
    const uint64_t limit = small ? 1u << 13 : limits[gf_random_below(random, 8)];
    gf_format format = {.type = (gf_type)(round % 3), .channels = (uint32_t)(1 + round / 3 % 4)};
    format.alpha = format.channels % 2 == 0 && round / 12 % 4 != 3; /* else four data channels */
    const uint64_t pixels = limit / format.channels;
    format.width = gf_random_below(random, 4)
                       ? near_edge(random, pixels)
                       : 1 + gf_random_below(random, pixels < 700 ? pixels : 700);
    const uint64_t rows = pixels / format.width, kind = gf_random_below(random, 4);
    format.height = kind == 0   ? near_edge(random, rows)
                    : kind == 1 ? 1 + gf_random_below(random, rows)
                                : rows;
    return format;
}

/* ---- contents -------------------------------------------------------------------------------- */

static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void store_sample(const gf_format *format, void *pixels, uint64_t i, uint32_t value) {
    if (format->type == GF_U8)
        ((uint8_t *)pixels)[i] = (uint8_t)value;
    else if (format->type == GF_U16)
        ((uint16_t *)pixels)[i] = (uint16_t)value;
    else
        ((uint32_t *)pixels)[i] = value;
}

static uint32_t load_sample(const gf_format *format, const void *pixels, uint64_t i) {
    return format->type == GF_U8    ? ((const uint8_t *)pixels)[i]
           : format->type == GF_U16 ? ((const uint16_t *)pixels)[i]
                                    : ((const uint32_t *)pixels)[i];
}

static uint32_t max_value(const gf_format *format) {
    return format->type == GF_U8 ? 255 : 65535;
}

static uint32_t extreme(const gf_format *format, gf_random *random) {
    /* NaNs, infinities, zeros, subnormals, extreme values, 1, 100, and the neighbour of 1. */
    static const uint32_t special[] = {0x7fc00000, 0xffc12345, 0x7f800001, 0x7f800000, 0xff800000,
                                       0x80000000, 0x00000000, 0x00000001, 0x807fffff, 0x7f7fffff,
                                       0xff7fffff, 0x3f800000, 0x42c80000, 0x00800000, 0x3f7fffff};
    const uint64_t pick = random_next(random) >> 16;
    const uint32_t max = max_value(format);
    if (format->type != GF_F32)
        return pick % 4 < 2 ? (uint32_t)(pick % 4) : max - (uint32_t)(pick % 2);
    return pick % 4 ? 0x3f800000 + (uint32_t)(pick >> 2) % (1u << 23)
                    : special[(pick >> 2) % (sizeof special / sizeof special[0])];
}

/* Convert a value from 0 to 1 to a sample. unit: scale of f32 samples, 1 or 255. */
static uint32_t level(const gf_format *format, float x, float unit) {
    if (format->type == GF_F32)
        return float_bits(x * unit);
    const float max = (float)max_value(format);
    return (uint32_t)(x <= 0 ? 0 : x >= 1 ? max : x * max + 0.5f);
}

/* Fill with slow triangular waves in both directions. */
static void fill_waves(const gf_format *format, void *pixels, gf_random *random) {
    const uint64_t along = 1 + gf_random_below(random, 9), down = gf_random_below(random, 9);
    const float unit = gf_random_below(random, 2) ? 255 : 1;
    uint64_t i = 0;
    for (uint64_t y = 0; y < format->height; y++)
        for (uint64_t x = 0; x < format->width; x++)
            for (uint32_t c = 0; c < format->channels; c++, i++) {
                const uint64_t phase = (x * along + y * down + c * 100) % 1024;
                const float height = (float)(phase < 512 ? phase : 1023 - phase);
                store_sample(format, pixels, i, level(format, height * (1 / 511.0f), unit));
            }
}

void gf_verify_photo(const gf_format *format, void *pixels, gf_random *random) {
    const uint64_t size = 4 + gf_random_below(random, 60);
    const uint64_t seed = random_next(random);
    const float unit = gf_random_below(random, 2) ? 255 : 1;
    const float grain = gf_random_below(random, 2) ? 0.02f : 0;
    uint64_t i = 0;
    for (uint64_t y = 0; y < format->height; y++)
        for (uint64_t x = 0; x < format->width; x++) {
            const uint64_t area = random_mix(seed + (x + y / 3) / size * 7919 + y / size);
            const float shade = (float)(x % 500 + y % 300) * 0.0003f;
            for (uint32_t c = 0; c < format->channels; c++, i++) {
                const float flat = (float)(area >> (16 * c) & 255) * (0.7f / 255);
                const float noise = (float)(random_next(random) >> 40) * 0x1p-24f - 0.5f;
                store_sample(format, pixels, i, level(format, flat + shade + noise * grain, unit));
            }
        }
}

void gf_verify_fill(const gf_format *format, void *pixels, gf_random *random) {
    enum { NOISE, EXTREMES, WAVES, CONSTANT, PHOTO } const kind = gf_random_below(random, 5);
    if (kind == WAVES || kind == PHOTO) {
        (kind == WAVES ? fill_waves : gf_verify_photo)(format, pixels, random);
        return;
    }
    /* Random bits; for f32 also three value ranges whose sums round at different bits. */
    const uint64_t range = kind == NOISE ? gf_random_below(random, 4) : 0;
    const float scale = range == 1 ? 0x1p-24f : range == 2 ? 0x1p-16f : 0x1p-8f;
    const float offset = range == 2 ? -20 : 0;
    uint32_t value = 0;
    if (kind == CONSTANT)
        value = gf_random_below(random, 2)
                    ? extreme(format, random)
                    : (uint32_t)gf_random_below(random, max_value(format)) + 1;
    for (uint64_t i = 0; i < gf_row_samples(format) * format->height; i++) {
        if (kind == EXTREMES)
            value = extreme(format, random);
        if (kind == NOISE) {
            const uint64_t bits = random_next(random);
            const float real = (float)(bits >> 40) * scale + offset;
            value = format->type == GF_F32 && range ? float_bits(real) : (uint32_t)(bits >> 32);
        }
        store_sample(format, pixels, i, value);
    }
}

void gf_verify_second(const gf_format *format, const void *first, void *second, gf_random *random) {
    const uint64_t count = gf_row_samples(format) * format->height,
                   kind = gf_random_below(random, 8);
    if (kind == 0) {
        gf_verify_fill(format, second, random);
        return;
    }
    memcpy(second, first, gf_row_bytes(format) * (size_t)format->height);
    const uint64_t changes = kind == 1 ? 0 : 1 + gf_random_below(random, 16);
    const uint64_t how = gf_random_below(random, 3);
    for (uint64_t i = 0; i < changes; i++) {
        const uint64_t at = gf_random_below(random, count);
        const uint32_t value = how == 0
                                   ? load_sample(format, second, at) + 1 /* the smallest change */
                               : how == 1 ? extreme(format, random)
                                          : (uint32_t)(random_next(random) >> 32);
        store_sample(format, second, at, value);
    }
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* Count a difference, and describe the first one. */
__attribute__((format(printf, 2, 3))) static void differences_add(gf_differences *found,
                                                                  const char *format, ...) {
    va_list arguments;
    if (found->count++)
        return;
    va_start(arguments, format);
    vsnprintf(found->first, sizeof found->first, format, arguments);
    va_end(arguments);
}

static uint64_t real_bits(double real) {
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static void compare_table(const gf_result *want, const gf_result *got, size_t t,
                          gf_differences *found) {
    const gf_table *table = gf_result_table(want, t), *other = gf_result_table(got, t);
    const uint64_t rows = table->row_count;
    bool same = strcmp(table->name, other->name) == 0 && rows == other->row_count &&
                table->column_count == other->column_count;
    for (size_t c = 0; same && c < table->column_count; c++)
        same = strcmp(table->columns[c].name, other->columns[c].name) == 0 &&
               table->columns[c].type == other->columns[c].type;
    if (!same)
        differences_add(found, "expected table %s with %" PRIu64 " rows, got %s with %" PRIu64,
                        table->name, rows, other->name, other->row_count);
    for (uint64_t row = 0; same && row < rows; row++)
        for (size_t c = 0; c < table->column_count; c++) {
            const gf_value a = gf_result_cell(want, t, row, c), b = gf_result_cell(got, t, row, c);
            char wanted[40], actual[40];
            /* Compare every bit, including NaN payloads and the sign of 0. Members that a type does
             * not use are zero. */
            if (a.type != b.type || a.low != b.low || a.high != b.high ||
                real_bits(a.real) != real_bits(b.real) ||
                (a.type == GF_VALUE_TEXT && strcmp(a.text, b.text) != 0))
                differences_add(found, "table %s, row %" PRIu64 ", %s: expected %.48s, got %.48s",
                                table->name, row, table->columns[c].name,
                                gf_cli_cell_text(a, wanted), gf_cli_cell_text(b, actual));
        }
}

gf_differences gf_run_output_compare(const gf_format *format, const gf_run_output *want,
                                     const gf_run_output *got) {
    const gf_result *result = want->result, *other = got->result;
    gf_differences found = {0};
    const size_t count = result ? gf_result_table_count(result) : 0;
    const size_t got_count = other ? gf_result_table_count(other) : 0;
    if (!result != !other) {
        differences_add(&found, "expected %s, got %s", result ? "a result" : "no result",
                        other ? "one" : "none");
    } else if (got_count != count) {
        differences_add(&found, "expected %zu tables, got %zu", count, got_count);
    } else if (result) {
        for (size_t t = 0; t < count; t++)
            compare_table(result, other, t, &found);
        if (strcmp(gf_result_text(result), gf_result_text(other)) != 0)
            differences_add(&found, "the result text differs");
        if (gf_result_passed(result) != gf_result_passed(other))
            differences_add(&found, "expected the test to %s, but it %s",
                            gf_result_passed(result) ? "pass" : "fail",
                            gf_result_passed(other) ? "passed" : "failed");
    }
    const uint64_t row = gf_row_samples(format);
    if (!want->image ||
        memcmp(want->image, got->image, gf_row_bytes(format) * (size_t)format->height) == 0)
        return found;
    for (uint64_t i = 0; i < row * format->height; i++) {
        const uint32_t a = load_sample(format, want->image, i);
        const uint32_t b = load_sample(format, got->image, i);
        if (a != b)
            differences_add(&found,
                            "x %" PRIu64 ", y %" PRIu64 ", channel %" PRIu64 ": expected 0x%" PRIx32
                            ", got 0x%" PRIx32,
                            i % row / format->channels, i / row, i % format->channels, a, b);
    }
    return found;
}

gf_status gf_run_output_make(gf_engine *engine, const gf_run_input *input, gf_run_output *made,
                             gf_report *report, gf_error *error) {
    const gf_out_pixels out = {made->image, gf_row_bytes(&input->drawn)};
    gf_step steps[GF_CLI_MAX_STEPS];
    gf_result *results[GF_CLI_MAX_STEPS] = {NULL};
    gf_outcome outcome = {.results = results};
    gf_job job = gf_cli_job_of(input->filter, input->settings, steps);
    job.memory = GF_HOST;
    job.format = input->in;
    job.in = &input->images[0];
    steps[0].in = &input->images[1];
    steps[job.step_count - 1].out = made->image ? &out : NULL;
    gf_result_free(made->result);
    const gf_status status = gf_run(engine, &job, &outcome, error);
    made->result = results[0];
    *report = outcome.report;
    return status;
}

void gf_run_output_free(gf_run_output *made) {
    gf_result_free(made->result);
    free(made->image);
    *made = (gf_run_output){0};
}
