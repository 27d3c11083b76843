/* Golden implementation of compare: docs/numerics.md defines it. */
#include <math.h>
#include <string.h>

#include "compare/compare.h"

/* Return the difference of two samples, given their bits. Exact for integers. */
static double golden_distance(gf_type type, uint32_t a, uint32_t b) {
    const float p = gf_sample_number(type, a), q = gf_sample_number(type, b);
    if (a == b || (isnan(p) && isnan(q)))
        return 0;
    if (isnan(p) || isnan(q))
        return (double)INFINITY;
    return fabs((double)p - (double)q);
}

static void golden_compare_row(const gf_compare_plan *plan, const unsigned char *a,
                               const unsigned char *b, gf_compare_record *record) {
    const gf_format *format = &plan->head.in;
    *record = (gf_compare_record){.first = UINT64_MAX};
    for (uint64_t i = 0; i < gf_row_samples(format); i++) {
        const uint32_t p = gf_sample_bits(format->type, a, i),
                       q = gf_sample_bits(format->type, b, i);
        const double distance = golden_distance(format->type, p, q);
        uint64_t bits = (uint64_t)(format->type == GF_F32 ? 0 : distance); /* as in a record */
        if (format->type == GF_F32)
            memcpy(&bits, &distance, sizeof bits);
        record->largest = gf_max(record->largest, bits);
        if (p == q || bits < plan->limit)
            continue;
        if (record->differing++ == 0) {
            record->first = i;
            record->a = p;
            record->b = q;
        }
    }
}

/* Return the grey value of a pixel of the first image at a quarter of its brightness. */
static uint8_t golden_dark_grey(const gf_format *format, const unsigned char *row, uint64_t x) {
    const uint64_t i = x * format->channels;
    const float luma = format->channels >= 3 ? gf_golden_luma(format->type, row, i)
                                             : gf_get_sample(format->type, row, i);
    if (format->type != GF_F32)
        return (uint8_t)((uint32_t)luma >> (format->type == GF_U8 ? 2 : 10));
    const float within = luma > 0 ? luma < 1 ? luma : 1 : 0; /* NaN: 0 */
    return (uint8_t)((uint8_t)(within * 255.0f) >> 2);
}

static void golden_draw_pixel(const gf_format *format, const unsigned char *a,
                              const unsigned char *b, uint64_t x, uint8_t *rgb) {
    bool differs = false;
    double largest = 0;
    for (uint64_t i = x * format->channels; i < (x + 1) * format->channels; i++) {
        const uint32_t p = gf_sample_bits(format->type, a, i),
                       q = gf_sample_bits(format->type, b, i);
        differs = differs || p != q;
        largest = fmax(largest, golden_distance(format->type, p, q));
    }
    if (!differs) {
        rgb[0] = rgb[1] = rgb[2] = golden_dark_grey(format, a, x);
        return;
    }
    /* The sum of the three grows from 96 to 3 * 255, red first, then green, then blue. */
    const double max = gf_type_max(format->type);
    int sum = 96 + (int)floor((largest < max ? largest : max) * 669 / max);
    for (int i = 0; i < 3; i++) {
        rgb[i] = (uint8_t)(sum < 255 ? sum : 255);
        sum -= rgb[i];
    }
}

gf_status gf_compare_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error) {
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        const unsigned char *a = gf_row(&strip->in[0], y), *b = gf_row(&strip->in[1], y);
        for (uint64_t x = 0; x < plan->out.width; x++)
            golden_draw_pixel(&plan->in, a, b, x, gf_row(&strip->out, y) + 3 * x);
        golden_compare_row((const gf_compare_plan *)plan, a, b, gf_record(plan, strip, y));
    }
    return GF_OK;
}
