/* The samples of one bin and where they are, for the SIMD level that hist_simd.c is being compiled
 * for. */
#ifndef GF_HIST_SIMD_SELECT_H
#define GF_HIST_SIMD_SELECT_H

#include "vec.h"

/* Always writes, and moves on where the sample is wanted: no branch to guess. The last ones write
 * to a place that is still among the n. */
#define SELECT_PLAIN(NAME, TYPE)                                                                   \
    static inline size_t NAME(const TYPE *values, size_t n, const TYPE *range, uint64_t position,  \
                              uint64_t *positions, TYPE *out) {                                    \
        const TYPE lo = range[0], hi = range[1];                                                   \
        size_t taken = 0;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            const TYPE v = values[i];                                                              \
            positions[taken] = position + i;                                                       \
            out[taken] = v;                                                                        \
            taken += (size_t)((v >= lo) & (v <= hi));                                              \
        }                                                                                          \
        return taken;                                                                              \
    }

SELECT_PLAIN(plain_u8, uint8_t)
SELECT_PLAIN(plain_u16, uint16_t)
SELECT_PLAIN(plain_f32, float)

/* Which of SELECT_BATCH samples are in the range, a bit each; and taking those. */
#if VEC_FLOATS == 16

#define SELECT_BATCH 64
typedef uint64_t select_mask;

static inline select_mask inside_u8(const uint8_t *p, const uint8_t *range) {
    const __m512i x = _mm512_loadu_si512(p);
    return _mm512_cmpge_epu8_mask(x, _mm512_set1_epi8((char)range[0])) &
           _mm512_cmple_epu8_mask(x, _mm512_set1_epi8((char)range[1]));
}

static inline select_mask inside_u16(const uint16_t *p, const uint16_t *range) {
    const __m512i lo = _mm512_set1_epi16((short)range[0]), hi = _mm512_set1_epi16((short)range[1]);
    select_mask mask = 0;
    for (int i = 0; i < 2; i++) {
        const __m512i x = _mm512_loadu_si512(p + 32 * i);
        mask |= (select_mask)(_mm512_cmpge_epu16_mask(x, lo) & _mm512_cmple_epu16_mask(x, hi))
                << (32 * i);
    }
    return mask;
}

static inline select_mask inside_f32(const float *p, const float *range) {
    const __m512 lo = _mm512_set1_ps(range[0]), hi = _mm512_set1_ps(range[1]);
    select_mask mask = 0;
    for (int i = 0; i < 4; i++) {
        const __m512 x = _mm512_loadu_ps(p + 16 * i);
        mask |= (select_mask)(_mm512_cmp_ps_mask(x, lo, _CMP_GE_OQ) &
                              _mm512_cmp_ps_mask(x, hi, _CMP_LE_OQ))
                << (16 * i);
    }
    return mask;
}

static inline void store_u8(uint8_t *out, const uint8_t *p, __mmask16 mask) {
    const __m512i x = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    _mm_storeu_si128((__m128i *)out, _mm512_cvtepi32_epi8(_mm512_maskz_compress_epi32(mask, x)));
}

static inline void store_u16(uint16_t *out, const uint16_t *p, __mmask16 mask) {
    const __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    _mm256_storeu_si256((__m256i *)out,
                        _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(mask, x)));
}

static inline void store_f32(float *out, const float *p, __mmask16 mask) {
    _mm512_storeu_ps(out, _mm512_maskz_compress_ps(mask, _mm512_loadu_ps(p)));
}

/* Writes 16 positions and values at a time, wanted or not: what lies ahead in the batch is room
 * enough. */
#define TAKE(TYPE, STORE)                                                                          \
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);  \
    for (size_t j = 0; j < SELECT_BATCH; j += 16, mask >>= 16) {                                   \
        const __mmask16 some = (__mmask16)mask;                                                    \
        const __m512i lanes = _mm512_maskz_compress_epi32(some, lane);                             \
        const __m512i base = _mm512_set1_epi64((long long)(position + i + j));                     \
        const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(lanes));                  \
        const __m512i high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(lanes, 1));           \
        _mm512_storeu_si512(positions + taken, _mm512_add_epi64(low, base));                       \
        _mm512_storeu_si512(positions + taken + 8, _mm512_add_epi64(high, base));                  \
        STORE(out + taken, values + i + j, some);                                                  \
        taken += (size_t)__builtin_popcount(some);                                                 \
    }

#elif VEC_FLOATS == 8

#define SELECT_BATCH 32
typedef uint32_t select_mask;

static inline select_mask inside_u8(const uint8_t *p, const uint8_t *range) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)p);
    const __m256i lo = _mm256_set1_epi8((char)range[0]), hi = _mm256_set1_epi8((char)range[1]);
    return (select_mask)_mm256_movemask_epi8(
        _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(x, lo), x),
                         _mm256_cmpeq_epi8(_mm256_min_epu8(x, hi), x)));
}

static inline __m256i inside_16(const uint16_t *p, __m256i lo, __m256i hi) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)p);
    return _mm256_and_si256(_mm256_cmpeq_epi16(_mm256_max_epu16(x, lo), x),
                            _mm256_cmpeq_epi16(_mm256_min_epu16(x, hi), x));
}

static inline select_mask inside_u16(const uint16_t *p, const uint16_t *range) {
    const __m256i lo = _mm256_set1_epi16((short)range[0]), hi = _mm256_set1_epi16((short)range[1]);
    const __m256i both = _mm256_packs_epi16(inside_16(p, lo, hi), inside_16(p + 16, lo, hi));
    return (select_mask)_mm256_movemask_epi8(_mm256_permute4x64_epi64(both, 0xd8));
}

static inline select_mask inside_f32(const float *p, const float *range) {
    const __m256 lo = _mm256_set1_ps(range[0]), hi = _mm256_set1_ps(range[1]);
    select_mask mask = 0;
    for (int i = 0; i < 4; i++) {
        const __m256 x = _mm256_loadu_ps(p + 8 * i);
        mask |= (select_mask)_mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(x, lo, _CMP_GE_OQ),
                                                              _mm256_cmp_ps(x, hi, _CMP_LE_OQ)))
                << (8 * i);
    }
    return mask;
}

#define TAKE(TYPE, STORE)                                                                          \
    for (; mask; mask &= mask - 1) {                                                               \
        const size_t j = i + (size_t)__builtin_ctz(mask);                                          \
        positions[taken] = position + j;                                                           \
        out[taken++] = values[j];                                                                  \
    }

#endif

#if VEC_FLOATS >= 8
#define SELECT(NAME, TYPE, INSIDE, STORE, PLAIN)                                                   \
    static size_t NAME(const void *samples, size_t n, const void *limits, uint64_t position,       \
                       uint64_t *positions, void *to) {                                            \
        const TYPE *values = samples, *range = limits;                                             \
        TYPE *out = to;                                                                            \
        size_t taken = 0, i = 0;                                                                   \
        for (; n - i >= SELECT_BATCH; i += SELECT_BATCH) {                                         \
            select_mask mask = INSIDE(values + i, range);                                          \
            if (mask == 0)                                                                         \
                continue;                                                                          \
            TAKE(TYPE, STORE)                                                                      \
        }                                                                                          \
        return taken +                                                                             \
               PLAIN(values + i, n - i, range, position + i, positions + taken, out + taken);      \
    }
#else
#define SELECT(NAME, TYPE, INSIDE, STORE, PLAIN)                                                   \
    static size_t NAME(const void *samples, size_t n, const void *limits, uint64_t position,       \
                       uint64_t *positions, void *to) {                                            \
        return PLAIN(samples, n, limits, position, positions, to);                                 \
    }
#endif

SELECT(select_u8, uint8_t, inside_u8, store_u8, plain_u8)
SELECT(select_u16, uint16_t, inside_u16, store_u16, plain_u16)
SELECT(select_f32, float, inside_f32, store_f32, plain_f32)

#endif
