/* The loops are written for the compiler to vectorise: selects instead of branches, channel counts
 * that are constants. */
#include "compare/compare_simd.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "luma.h"
#include "vec.h"

/* ---- counting -------------------------------------------------------------------------------- */

#define COUNT_INTEGERS(NAME, TYPE)                                                                 \
    static uint32_t NAME(const void *a_row, const void *b_row, size_t n, uint64_t *largest) {      \
        const TYPE *a = a_row, *b = b_row;                                                         \
        TYPE most = 0;                                                                             \
        uint32_t count = 0;                                                                        \
        for (size_t i = 0; i < n; i++) {                                                           \
            const TYPE d = (TYPE)(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]);                        \
            count += d != 0;                                                                       \
            most = d > most ? d : most;                                                            \
        }                                                                                          \
        if (most > *largest)                                                                       \
            *largest = most;                                                                       \
        return count;                                                                              \
    }

COUNT_INTEGERS(count_u8, uint8_t)
COUNT_INTEGERS(count_u16, uint16_t)

static inline uint32_t bits_of(const float *p) {
    uint32_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
}

/* 0 for the same bits and for two NaNs, infinite for a NaN and a number. A difference is NaN only
 * where a NaN is, or where infinities are the same. */
static inline double difference(float a, float b, bool differs) {
    const double d = fabs((double)a - (double)b);
    const double special = isnan(a) & isnan(b) ? 0 : (double)INFINITY;
    const double any = isnan(d) ? special : d;
    return differs ? any : 0;
}

#define LANES 64

static uint32_t count_f32(const void *a_row, const void *b_row, size_t n, uint64_t *largest) {
    const float *a = a_row, *b = b_row;
    double most[LANES] = {0};
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += bits_of(a + i) != bits_of(b + i);
    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < (n - i < LANES ? n - i : LANES); j++) {
            const double d =
                difference(a[i + j], b[i + j], bits_of(a + i + j) != bits_of(b + i + j));
            most[j] = d > most[j] ? d : most[j];
        }
    for (size_t j = 0; j < LANES; j++) {
        uint64_t bits;
        memcpy(&bits, &most[j], sizeof bits);
        if (bits > *largest)
            *largest = bits;
    }
    return count;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static inline void put_pixel(uint8_t *rgb, bool differs, uint32_t green, uint32_t grey) {
    rgb[0] = (uint8_t)(differs ? 255 : grey);
    rgb[1] = (uint8_t)(differs ? green : grey);
    rgb[2] = (uint8_t)(differs ? 0 : grey);
}

static inline uint32_t real_grey(float luma) {
    luma = luma > 0 ? luma : 0; /* NaN, too */
    luma = luma < 1 ? luma : 1;
    return (uint32_t)(int32_t)(luma * 255.0f) >> 2;
}

#define DRAW_INTEGERS(NAME, TYPE, GREEN, SHIFT)                                                    \
    static inline void NAME##_n(const TYPE *a, const TYPE *b, size_t n, uint32_t channels,         \
                                uint8_t *rgb) {                                                    \
        for (size_t x = 0; x < n; x++) {                                                           \
            uint32_t most = 0;                                                                     \
            for (uint32_t c = 0; c < channels; c++) {                                              \
                const int32_t d = a[x * channels + c] - b[x * channels + c];                       \
                const uint32_t size = (uint32_t)(d < 0 ? -d : d);                                  \
                most = size > most ? size : most;                                                  \
            }                                                                                      \
            const TYPE *p = a + x * channels;                                                      \
            const uint32_t luma = channels < 3 ? p[0] : gf_luma_integer(p[0], p[1], p[2]);         \
            put_pixel(rgb + 3 * x, most > 0, GREEN, luma >> (SHIFT));                              \
        }                                                                                          \
    }

DRAW_INTEGERS(draw_u8, uint8_t, most, 2)
DRAW_INTEGERS(draw_u16, uint16_t, most * 255 / 65535, 10)

static inline void draw_f32_n(const float *a, const float *b, size_t n, uint32_t channels,
                              uint8_t *rgb) {
    for (size_t x = 0; x < n; x++) {
        double most = 0;
        bool any = false;
        for (uint32_t c = 0; c < channels; c++) {
            const float *p = a + x * channels + c, *q = b + x * channels + c;
            const bool differs = bits_of(p) != bits_of(q);
            const double d = difference(*p, *q, differs);
            any |= differs;
            most = d > most ? d : most;
        }
        const float *p = a + x * channels;
        float luma = p[0];
        if (channels >= 3)
            luma = gf_luma_real(p[0], p[1], p[2]);
        most = most < 1 ? most : 1;
        put_pixel(rgb + 3 * x, any, (uint32_t)(int32_t)(most * 255.0), real_grey(luma));
    }
}

/* The loop again for each channel count. */
#define DRAW(NAME, TYPE)                                                                           \
    static void NAME(const void *a, const void *b, size_t n, uint32_t channels, uint8_t *rgb) {    \
        const TYPE *p = a, *q = b;                                                                 \
        switch (channels) {                                                                        \
        case 1:                                                                                    \
            NAME##_n(p, q, n, 1, rgb);                                                             \
            break;                                                                                 \
        case 2:                                                                                    \
            NAME##_n(p, q, n, 2, rgb);                                                             \
            break;                                                                                 \
        case 3:                                                                                    \
            NAME##_n(p, q, n, 3, rgb);                                                             \
            break;                                                                                 \
        default:                                                                                   \
            NAME##_n(p, q, n, 4, rgb);                                                             \
            break;                                                                                 \
        }                                                                                          \
    }

DRAW(draw_u8, uint8_t)
DRAW(draw_u16, uint16_t)
DRAW(draw_f32, float)

const gf_compare_simd GF_SIMD_NAME(gf_compare_simd) = {
    .count = {count_u8, count_u16, count_f32},
    .draw = {draw_u8, draw_u16, draw_f32},
};
