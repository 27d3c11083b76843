/* Image contents of the CPU benchmark, and the check of the cpu backend against golden. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

/* ---- contents -------------------------------------------------------------------------------- */

static uint64_t next(uint64_t *state) { /* xorshift64* */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static void put(unsigned char *row, uint64_t i, gf_type type, double value) {
    const uint16_t u16 = (uint16_t)(value * 65535);
    const float f32 = (float)value;
    if (type == GF_U8)
        row[i] = (uint8_t)(value * 255);
    else if (type == GF_U16)
        memcpy(row + i * sizeof u16, &u16, sizeof u16);
    else
        memcpy(row + i * sizeof f32, &f32, sizeof f32);
}

void bench_fill(const gf_format *format, const gf_rows *rows, bench_content content,
                uint64_t seed) {
    uint64_t state = 2 * seed + 1;
    double *wave = malloc((size_t)format->width * sizeof *wave);
    for (uint64_t x = 0; wave && x < format->width; x++)
        wave[x] = 0.25 * sin((double)x / 97) + 0.1 * sin((double)x / 11 + (double)seed);
    for (uint64_t y = 0; wave && y < format->height; y++)
        for (uint64_t x = 0; x < format->width; x++)
            for (uint32_t c = 0; c < format->channels; c++) {
                const double noise = (double)(next(&state) >> 11) * 0x1p-53;
                const double slope = (double)(y + 70 * c) / 131;
                const double photo = 0.5 +
                                     wave[x] * (1 - 2 * fabs(slope / 2 - floor(slope / 2) - 0.5)) +
                                     0.06 * (noise - 0.5);
                put(gf_row(rows, y), x * format->channels + c, format->type,
                    content == BENCH_PHOTO   ? photo
                    : content == BENCH_NOISE ? noise
                                             : 0.5);
            }
    free(wave);
}

/* ---- results --------------------------------------------------------------------------------- */

static bool same_value(const gf_value *a, const gf_value *b) {
    return a->type == b->type && a->low == b->low && a->high == b->high &&
           memcmp(&a->real, &b->real, sizeof a->real) == 0 &&
           (a->type != GF_VALUE_TEXT || strcmp(a->text, b->text) == 0);
}

static bool same_result(const gf_result *a, const gf_result *b) {
    for (size_t t = 0; a && t < gf_result_table_count(a); t++) {
        const gf_table *table = gf_result_table(a, t), *other = gf_result_table(b, t);
        if (!other || table->row_count != other->row_count)
            return false;
        for (uint64_t row = 0; row < table->row_count; row++)
            for (size_t column = 0; column < table->column_count; column++) {
                const gf_value p = gf_result_cell(a, t, row, column);
                const gf_value q = gf_result_cell(b, t, row, column);
                if (!same_value(&p, &q))
                    return false;
            }
    }
    return true;
}

/* Run a case on one backend and return its image and result. */
static bool run(const gf_engine_options *options, const bench_case *c, const gf_format *format,
                const gf_pixels *in, unsigned char *out, size_t stride, gf_result **result) {
    const gf_filter *filter = gf_filter_find(c->filter);
    gf_settings *settings = gf_settings_new(filter->info.params, filter->info.param_count);
    gf_engine *engine = NULL;
    gf_error error = {0};
    const gf_out_pixels to = {out, stride};
    gf_result *results[2] = {NULL};
    gf_outcome outcome = {.results = results};
    const gf_step steps[2] = {{.filter = filter, .settings = settings, .in = in + 1, .out = &to},
                              {.out = &to}};
    const gf_job job = {.steps = steps,
                        .step_count = filter->info.makes_image ? 2 : 1,
                        .memory = GF_HOST,
                        .in = in,
                        .format = *format};
    gf_status status = gf_settings_apply_case(settings, c->text, &error);
    if (!status)
        status = gf_engine_open(options, &engine, &error);
    if (!status)
        status = gf_run(engine, &job, &outcome, &error);
    *result = results[0];
    if (status)
        fprintf(stderr, "bench-cpu: %s %s: %s\n", c->filter, c->text, error.message);
    gf_engine_close(engine);
    gf_settings_free(settings);
    return !status;
}

bool bench_check(const bench_case *c, const bench_options *options) {
    const gf_format format = {1237, 67, c->channels, c->type, c->channels % 2 == 0};
    const size_t stride = gf_row_bytes(&format);
    const size_t bytes = stride * (size_t)format.height;
    const size_t out_stride = (size_t)format.width * 16;
    unsigned char *in = malloc(2 * bytes), *out = calloc(2, out_stride * (size_t)format.height);
    gf_result *golden = NULL, *cpu = NULL;
    bool same = in && out;
    if (same) {
        unsigned char *other = out + out_stride * (size_t)format.height;
        const gf_rows rows[2] = {{in, stride, 0, format.height},
                                 {in + bytes, stride, 0, format.height}};
        for (uint32_t i = 0; i < 2; i++)
            bench_fill(&format, &rows[i], c->content, c->same ? 0 : i);
        const gf_pixels pixels[2] = {{in, stride}, {in + bytes, stride}};
        same = run(&(gf_engine_options){.backend = "golden"}, c, &format, pixels, out, out_stride,
                   &golden) &&
               run(&(gf_engine_options){.backend = "cpu",
                                        .threads = 2,
                                        .simd = gf_names(GF_NAMES_SIMD)[1 + options->isa]},
                   c, &format, pixels, other, out_stride, &cpu);
        if (same && (memcmp(out, other, out_stride * (size_t)format.height) != 0 ||
                     !same_result(golden, cpu))) {
            fprintf(stderr, "bench-cpu: %s %s: the cpu backend differs from golden\n", c->filter,
                    c->text);
            same = false;
        }
    }
    gf_result_free(golden);
    gf_result_free(cpu);
    free(in);
    free(out);
    return same;
}
