/* Fast CPU implementation of compare. Threads share the rows. Equal pieces of a row cost one
 * memcmp. The loops are written for auto-vectorisation: selects instead of branches, constant
 * channel counts. */
#include "compare/compare.h"
#include "core/vec.h"

/* ---- counting -------------------------------------------------------------------------------- */

/* Each function returns the number of samples of n that count. It raises *largest, encoded as in a
 * record, to the largest difference. */

#define TYPE u8
#include "compare/compare_tmpl.h"
#define TYPE u16
#include "compare/compare_tmpl.h"

/* Return |a - b|; 0 for equal bits and for two NaNs, infinity for NaN and a number. d is NaN only
 * for a NaN or for two equal infinities. */
static inline double compare_difference(float a, float b, bool differs) {
    const double d = fabs((double)a - (double)b);
    const double special = isnan(a) & isnan(b) ? 0 : (double)INFINITY;
    const double any = isnan(d) ? special : d;
    return differs ? any : 0;
}

#define LANES 64

/* tolerance: whether plan->limit is not 0. */
GF_INLINE uint32_t compare_count_real(const gf_compare_plan *plan, const float *a, const float *b,
                                      size_t n, const bool tolerance, uint64_t *largest) {
    double max[LANES] = {0}, limit;
    uint64_t counts[LANES] = {0};
    uint32_t count = 0;
    memcpy(&limit, &plan->limit, sizeof limit);
    for (size_t i = 0; !tolerance && i < n; i++)
        count += gf_sample_bits(GF_F32, a, i) != gf_sample_bits(GF_F32, b, i);
    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < (n - i < LANES ? n - i : LANES); j++) {
            const bool differs =
                gf_sample_bits(GF_F32, a, i + j) != gf_sample_bits(GF_F32, b, i + j);
            const double d = compare_difference(a[i + j], b[i + j], differs);
            max[j] = d > max[j] ? d : max[j];
            if (tolerance)
                counts[j] += differs & (d >= limit);
        }
    for (size_t j = 0; j < LANES; j++) {
        uint64_t bits;
        memcpy(&bits, &max[j], sizeof bits);
        count += (uint32_t)counts[j];
        *largest = gf_max(*largest, bits);
    }
    return count;
}

static uint32_t compare_count(const gf_compare_plan *plan, const void *a, const void *b, size_t n,
                              uint64_t *largest) {
    const gf_type type = plan->head.in.type;
    return type == GF_U8    ? compare_count_u8(plan, a, b, n, largest)
           : type == GF_U16 ? compare_count_u16(plan, a, b, n, largest)
           : plan->limit    ? compare_count_real(plan, a, b, n, true, largest)
                            : compare_count_real(plan, a, b, n, false, largest);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* part: the difference, scaled to 0..669. */
static inline void compare_put_pixel(uint8_t *rgb, bool differs, uint32_t part, uint32_t grey) {
    const uint32_t colour = differs ? gf_compare_colour(96 + part) : grey * 0x010101;
    rgb[0] = (uint8_t)colour;
    rgb[1] = (uint8_t)(colour >> 8);
    rgb[2] = (uint8_t)(colour >> 16);
}

static inline void compare_draw_integers(const gf_type type, const void *a, const void *b, size_t n,
                                         const uint32_t channels, uint8_t *rgb) {
    const uint32_t largest = gf_type_max(type), shift = type == GF_U8 ? 2 : 10;
    for (size_t x = 0; x < n; x++) {
        const size_t i = x * channels;
        uint32_t max = 0;
        for (uint32_t c = 0; c < channels; c++) {
            const int32_t d =
                (int32_t)gf_sample_bits(type, a, i + c) - (int32_t)gf_sample_bits(type, b, i + c);
            const uint32_t size = (uint32_t)(d < 0 ? -d : d);
            max = size > max ? size : max;
        }
        uint32_t luma = gf_sample_bits(type, a, i);
        if (channels >= 3)
            luma = gf_luma_integer(luma, gf_sample_bits(type, a, i + 1),
                                   gf_sample_bits(type, a, i + 2));
        compare_put_pixel(rgb + 3 * x, max > 0, max * 669 / largest, luma >> shift);
    }
}

static inline void compare_draw_reals(const float *a, const float *b, size_t n,
                                      const uint32_t channels, uint8_t *rgb) {
    for (size_t x = 0; x < n; x++) {
        double max = 0;
        bool any = false;
        for (uint32_t c = 0; c < channels; c++) {
            const size_t i = x * channels + c;
            const bool differs = gf_sample_bits(GF_F32, a, i) != gf_sample_bits(GF_F32, b, i);
            const double d = compare_difference(a[i], b[i], differs);
            any |= differs;
            max = d > max ? d : max;
        }
        const float *p = a + x * channels;
        const float luma = channels >= 3 ? gf_luma_real(p[0], p[1], p[2]) : p[0];
        const float low = luma > 0 ? luma : 0; /* also replaces NaN */
        const float grey = low < 1 ? low : 1;
        max = max < 1 ? max : 1;
        compare_put_pixel(rgb + 3 * x, any, (uint32_t)(int32_t)(max * 669.0),
                          (uint32_t)(int32_t)(grey * 255.0f) >> 2);
    }
}

GF_INLINE void compare_draw_channels(const gf_type type, const void *a, const void *b, size_t n,
                                     const uint32_t channels, uint8_t *rgb) {
    if (type == GF_F32)
        compare_draw_reals(a, b, n, channels, rgb);
    else
        compare_draw_integers(type, a, b, n, channels, rgb);
}

/* Instantiate the loop for each type and channel count. */
static void compare_draw(const gf_format *format, const void *a, const void *b, uint8_t *rgb) {
    const size_t n = (size_t)format->width;
    if (format->channels == 1)
        GF_BY_TYPE(format->type, compare_draw_channels, a, b, n, 1, rgb);
    else if (format->channels == 2)
        GF_BY_TYPE(format->type, compare_draw_channels, a, b, n, 2, rgb);
    else if (format->channels == 3)
        GF_BY_TYPE(format->type, compare_draw_channels, a, b, n, 3, rgb);
    else
        GF_BY_TYPE(format->type, compare_draw_channels, a, b, n, 4, rgb);
}

/* ---- one part of a strip --------------------------------------------------------------------- */

#define PIECE 4096 /* samples: the count fits in 32 bits */

static gf_compare_record compare_row(const gf_compare_plan *plan, const unsigned char *a,
                                     const unsigned char *b) {
    const gf_type type = plan->head.in.type;
    const size_t bytes = gf_type_bytes(type);
    const uint64_t samples = gf_row_samples(&plan->head.in);
    gf_compare_record record = {.first = UINT64_MAX};
    for (uint64_t i = 0; i < samples; i += PIECE) {
        const size_t n = (size_t)(samples - i < PIECE ? samples - i : PIECE);
        if (memcmp(a + i * bytes, b + i * bytes, n * bytes) == 0)
            continue;
        const uint32_t count =
            compare_count(plan, a + i * bytes, b + i * bytes, n, &record.largest);
        if (count && record.differing == 0) {
            uint64_t ignored = 0;
            record.first = i;
            while (gf_sample_bits(type, a, record.first) == gf_sample_bits(type, b, record.first))
                record.first++;
            /* Unless it counts, halve the part with the first sample that does. */
            for (size_t left = (size_t)(i + n - record.first), half = 1; half > 0;) {
                const size_t at = record.first * bytes;
                const bool here = compare_count(plan, a + at, b + at, half, &ignored) > 0;
                record.first += here ? 0 : half;
                left = here ? half : left - half;
                half = left / 2;
            }
            record.a = gf_sample_bits(type, a, record.first);
            record.b = gf_sample_bits(type, b, record.first);
        }
        record.differing += count;
    }
    return record;
}

void GF_SIMD_NAME(gf_compare_cpu)(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                                  uint32_t parts, void *scratch) {
    const uint64_t y0 = strip->out.y0, end = y0 + gf_share(strip->out.rows, part + 1, parts);
    for (uint64_t y = y0 + gf_share(strip->out.rows, part, parts); y < end; y++) {
        const unsigned char *a = gf_row(&strip->in[0], y), *b = gf_row(&strip->in[1], y);
        if (plan->out.width)
            compare_draw(&plan->in, a, b, gf_row(&strip->out, y));
        *(gf_compare_record *)gf_record(plan, strip, y) =
            compare_row((const gf_compare_plan *)plan, a, b);
    }
}
