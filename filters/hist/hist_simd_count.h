/* Counting into few bins without a table: how many samples are at least as large as each edge, for
 * the SIMD level that hist_simd.c is being compiled for. A vector of samples is compared with up to
 * 8 edges, and each comparison counted in a vector of its own. */
#ifndef GF_HIST_SIMD_COUNT_H
#define GF_HIST_SIMD_COUNT_H

#include "vec.h"

typedef uint8_t vec_bytes __attribute__((vector_size(4 * VEC_FLOATS)));
typedef uint16_t vec_words __attribute__((vector_size(4 * VEC_FLOATS)));

/* count + 1 in every lane where x >= edge. */
#if VEC_FLOATS == 16
static inline vec_bytes count_u8(vec_bytes count, vec_bytes x, vec_bytes edge) {
    return (vec_bytes)_mm512_mask_sub_epi8((__m512i)count,
                                           _mm512_cmpge_epu8_mask((__m512i)x, (__m512i)edge),
                                           (__m512i)count, _mm512_set1_epi8(-1));
}
static inline vec_words count_u16(vec_words count, vec_words x, vec_words edge) {
    return (vec_words)_mm512_mask_sub_epi16((__m512i)count,
                                            _mm512_cmpge_epu16_mask((__m512i)x, (__m512i)edge),
                                            (__m512i)count, _mm512_set1_epi16(-1));
}
static inline vec_i32 count_f32(vec_i32 count, vec x, vec edge) {
    return (vec_i32)_mm512_mask_sub_epi32((__m512i)count,
                                          _mm512_cmp_ps_mask((__m512)x, (__m512)edge, _CMP_GE_OQ),
                                          (__m512i)count, _mm512_set1_epi32(-1));
}
#define MOST_EDGES_U8 32
#define MOST_EDGES_U16 32
#define MOST_EDGES_F32 16
#else
static inline vec_bytes count_u8(vec_bytes count, vec_bytes x, vec_bytes edge) {
    return count - (vec_bytes)(x >= edge);
}
static inline vec_words count_u16(vec_words count, vec_words x, vec_words edge) {
    return count - (vec_words)(x >= edge);
}
static inline vec_i32 count_f32(vec_i32 count, vec x, vec edge) {
    return count - (vec_i32)(x >= edge);
}
#define MOST_EDGES_U8 (2 * VEC_FLOATS)
#define MOST_EDGES_U16 (2 * VEC_FLOATS)
#define MOST_EDGES_F32 (2 * VEC_FLOATS)
#endif

#define EDGES_AT_ONCE 8

#define AHEAD 3072 /* bytes: the phases go in strides that the processor does not foresee */

/* NAME_n takes `turns` whole periods and a constant number of edges. */
#define ABOVE(NAME, TYPE, COUNT_TYPE, VALUES, COUNTS, COUNT, PERIOD)                               \
    static inline __attribute__((always_inline)) void NAME##_n(                                    \
        const TYPE *values, size_t turns, const TYPE *edges, const uint32_t n, uint32_t *lanes) {  \
        const size_t width = sizeof(VALUES) / sizeof(TYPE);                                        \
        for (size_t phase = 0; phase < (PERIOD); phase += width) {                                 \
            COUNTS counts[EDGES_AT_ONCE] = {{0}};                                                  \
            VALUES limits[EDGES_AT_ONCE];                                                          \
            for (uint32_t e = 0; e < n; e++)                                                       \
                limits[e] = edges[e] - (VALUES){0};                                                \
            for (size_t t = 0; t < turns; t++) {                                                   \
                VALUES x;                                                                          \
                __builtin_prefetch(values + t * (PERIOD) + phase + AHEAD / sizeof(TYPE));          \
                memcpy(&x, values + t * (PERIOD) + phase, sizeof x);                               \
                _Pragma("GCC unroll 8") for (uint32_t e = 0; e < n; e++) counts[e] =               \
                    COUNT(counts[e], x, limits[e]);                                                \
            }                                                                                      \
            for (uint32_t e = 0; e < n; e++) {                                                     \
                COUNT_TYPE some[sizeof(VALUES) / sizeof(TYPE)];                                    \
                memcpy(some, &counts[e], sizeof some);                                             \
                for (size_t j = 0; j < width; j++)                                                 \
                    lanes[e * (PERIOD) + phase + j] += some[j];                                    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void NAME(const void *samples, size_t n, const void *limits, uint32_t count,            \
                     uint32_t *lanes) {                                                            \
        const TYPE *values = samples, *edges = limits;                                             \
        const size_t turns = n / (PERIOD);                                                         \
        uint32_t e = 0;                                                                            \
        for (; count - e >= 8; e += 8)                                                             \
            NAME##_n(values, turns, edges + e, 8, lanes + (size_t)e * (PERIOD));                   \
        uint32_t *rest = lanes + (size_t)e * (PERIOD);                                             \
        switch (count - e) {                                                                       \
        case 7:                                                                                    \
            NAME##_n(values, turns, edges + e, 7, rest);                                           \
            break;                                                                                 \
        case 6:                                                                                    \
            NAME##_n(values, turns, edges + e, 6, rest);                                           \
            break;                                                                                 \
        case 5:                                                                                    \
            NAME##_n(values, turns, edges + e, 5, rest);                                           \
            break;                                                                                 \
        case 4:                                                                                    \
            NAME##_n(values, turns, edges + e, 4, rest);                                           \
            break;                                                                                 \
        case 3:                                                                                    \
            NAME##_n(values, turns, edges + e, 3, rest);                                           \
            break;                                                                                 \
        case 2:                                                                                    \
            NAME##_n(values, turns, edges + e, 2, rest);                                           \
            break;                                                                                 \
        case 1:                                                                                    \
            NAME##_n(values, turns, edges + e, 1, rest);                                           \
            break;                                                                                 \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        for (e = 0; e < count; e++)                                                                \
            for (size_t j = 0; j < n - turns * (PERIOD); j++)                                      \
                lanes[e * (PERIOD) + j] += values[turns * (PERIOD) + j] >= edges[e];               \
    }

ABOVE(above_u8, uint8_t, uint8_t, vec_bytes, vec_bytes, count_u8, GF_HIST_PERIOD_U8)
ABOVE(above_u16, uint16_t, uint16_t, vec_words, vec_words, count_u16, GF_HIST_PERIOD_U16)
ABOVE(above_f32, float, uint32_t, vec, vec_i32, count_f32, GF_HIST_PERIOD_F32)

#endif
