/* Luma of n pixels, for the SIMD level that hist_simd.c is being compiled for. */
#ifndef GF_HIST_SIMD_LUMA_H
#define GF_HIST_SIMD_LUMA_H

#include "luma.h"
#include "vec.h"

#define LUMA_PLAIN(NAME, TYPE, LUMA)                                                               \
    static inline void NAME##_n(const TYPE *pixels, size_t n, size_t channels, TYPE *values) {     \
        for (size_t i = 0; i < n; i++) {                                                           \
            const TYPE *p = pixels + i * channels;                                                 \
            values[i] = (TYPE)LUMA(p[0], p[1], p[2]);                                              \
        }                                                                                          \
    }                                                                                              \
    static void NAME(const TYPE *pixels, size_t n, size_t channels, TYPE *values) {                \
        if (channels == 3)                                                                         \
            NAME##_n(pixels, n, 3, values);                                                        \
        else                                                                                       \
            NAME##_n(pixels, n, 4, values);                                                        \
    }

LUMA_PLAIN(luma_u16, uint16_t, gf_luma_integer)
LUMA_PLAIN(luma_f32, float, gf_luma_real)

#if VEC_FLOATS < 8

LUMA_PLAIN(luma_u8, uint8_t, gf_luma_integer)

#else

/* Four pixels from each 128 bits: R and G of a pixel as two 16-bit numbers in 32 bits, and B. The
 * weight of G does not fit a signed 16-bit factor: 46871 G is -18665 G + 65536 G, and 65536 G is
 * what lies in the upper half already. */
#define LUMA_SHUFFLES(CHANNELS)                                                                    \
    const __m128i rg =                                                                             \
        (CHANNELS) == 3 ? _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1)   \
                        : _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1); \
    const __m128i b =                                                                              \
        (CHANNELS) == 3                                                                            \
            ? _mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1)           \
            : _mm_setr_epi8(2, -1, -1, -1, 6, -1, -1, -1, 10, -1, -1, -1, 14, -1, -1, -1)

#if VEC_FLOATS == 16

#define LUMA_PIXELS 16

static inline __m128i luma_vector(const uint8_t *p, size_t channels, __m512i spread, __m512i rg,
                                  __m512i b) {
    __m512i pixels = _mm512_loadu_si512(p);
    if (channels == 3)
        pixels = _mm512_permutexvar_epi32(spread, pixels);
    const __m512i x = _mm512_shuffle_epi8(pixels, rg);
    const __m512i y = _mm512_shuffle_epi8(pixels, b);
    __m512i sum = _mm512_madd_epi16(x, _mm512_set1_epi32((int)0xb717366d)); /* -18665, 13933 */
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(y, _mm512_set1_epi32(4732)));
    sum = _mm512_add_epi32(sum, _mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000)));
    sum = _mm512_add_epi32(sum, _mm512_set1_epi32(32768));
    return _mm512_cvtepi32_epi8(_mm512_srli_epi32(sum, 16));
}

static inline void luma_u8_n(const uint8_t *p, size_t n, size_t channels, uint8_t *values) {
    LUMA_SHUFFLES(channels);
    const __m512i spread = _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
    const __m512i rg4 = _mm512_broadcast_i32x4(rg), b4 = _mm512_broadcast_i32x4(b);
    size_t i = 0;
    for (; (n - i) * channels >= 64; i += LUMA_PIXELS) { /* a load takes 64 bytes */
        __builtin_prefetch(p + i * channels + 3072);
        _mm_storeu_si128((__m128i *)(values + i),
                         luma_vector(p + i * channels, channels, spread, rg4, b4));
    }
    for (; i < n; i++)
        values[i] =
            (uint8_t)gf_luma_integer(p[i * channels], p[i * channels + 1], p[i * channels + 2]);
}

#else

#define LUMA_PIXELS 8

static inline __m256i luma_vector(const uint8_t *p, size_t channels, __m256i rg, __m256i b) {
    const __m256i pixels =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p)),
                                _mm_loadu_si128((const __m128i *)(p + 4 * channels)), 1);
    const __m256i x = _mm256_shuffle_epi8(pixels, rg);
    const __m256i y = _mm256_shuffle_epi8(pixels, b);
    __m256i sum = _mm256_madd_epi16(x, _mm256_set1_epi32((int)0xb717366d)); /* -18665, 13933 */
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(y, _mm256_set1_epi32(4732)));
    sum = _mm256_add_epi32(sum, _mm256_and_si256(x, _mm256_set1_epi32((int)0xffff0000)));
    sum = _mm256_add_epi32(sum, _mm256_set1_epi32(32768));
    return _mm256_srli_epi32(sum, 16);
}

static inline void luma_u8_n(const uint8_t *p, size_t n, size_t channels, uint8_t *values) {
    LUMA_SHUFFLES(channels);
    const __m256i rg2 = _mm256_broadcastsi128_si256(rg), b2 = _mm256_broadcastsi128_si256(b);
    size_t i = 0;
    for (; n - i >= LUMA_PIXELS && (n - i) * channels >= 4 * channels + 16; i += LUMA_PIXELS) {
        const __m256i luma = luma_vector(p + i * channels, channels, rg2, b2);
        const __m128i words =
            _mm_packus_epi32(_mm256_castsi256_si128(luma), _mm256_extracti128_si256(luma, 1));
        _mm_storel_epi64((__m128i *)(values + i), _mm_packus_epi16(words, words));
    }
    for (; i < n; i++)
        values[i] =
            (uint8_t)gf_luma_integer(p[i * channels], p[i * channels + 1], p[i * channels + 2]);
}

#endif

static void luma_u8(const uint8_t *pixels, size_t n, size_t channels, uint8_t *values) {
    if (channels == 3)
        luma_u8_n(pixels, n, 3, values);
    else
        luma_u8_n(pixels, n, 4, values);
}

#endif

#endif
