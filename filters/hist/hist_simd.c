/* Loops of hist for one SIMD level. Most are written for auto-vectorisation. */
#include "hist/hist_simd.h"
#include "core/vec.h"

/* ---- measured samples ------------------------------------------------------------------------ */

/* NAME_n: compute the luma of n pixels. channels is a compile-time constant. */
#define LUMA(NAME, TYPE, OF)                                                                       \
    static inline void NAME##_n(const TYPE *pixels, size_t n, size_t channels, TYPE *values) {     \
        for (size_t i = 0; i < n; i++) {                                                           \
            const TYPE *p = pixels + i * channels;                                                 \
            values[i] = (TYPE)OF(p[0], p[1], p[2]);                                                \
        }                                                                                          \
    }

LUMA(hist_luma_u16, uint16_t, gf_luma_integer)
LUMA(hist_luma_f32, float, gf_luma_real)

#if VEC_FLOATS < 8

LUMA(hist_luma_u8, uint8_t, gf_luma_integer)

#else

LUMA(hist_luma_rest, uint8_t, gf_luma_integer)

/* Shuffles for four pixels per 128 bits: R and G of a pixel as two 16-bit numbers in 32 bits, and
 * B. The weight of G exceeds a signed 16-bit factor: 46871 G = -18665 G + 65536 G, and the upper
 * half of the 32 bits already holds 65536 G. */
#define LUMA_SHUFFLES(CHANNELS)                                                                    \
    const __m128i rg =                                                                             \
        (CHANNELS) == 3 ? _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1)   \
                        : _mm_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1); \
    const __m128i b =                                                                              \
        (CHANNELS) == 3                                                                            \
            ? _mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1)           \
            : _mm_setr_epi8(2, -1, -1, -1, 6, -1, -1, -1, 10, -1, -1, -1, 14, -1, -1, -1)

/* Compute the luma of four pixels per 128 bits, 32 bits each. */
static inline vec_bits hist_luma_bits(vec_bits pixels, __m128i rg, __m128i b) {
    const vec_bits x = VEC_OP(shuffle_epi8)(pixels, vec_broadcast(rg));
    const vec_bits y = VEC_OP(shuffle_epi8)(pixels, vec_broadcast(b));
    /* -18665, 13933 */
    vec_bits sum = VEC_OP(madd_epi16)(x, VEC_OP(set1_epi32)((int)0xb717366d));
    sum = VEC_OP(add_epi32)(sum, VEC_OP(madd_epi16)(y, VEC_OP(set1_epi32)(4732)));
    sum = VEC_OP(add_epi32)(sum, x & VEC_OP(set1_epi32)((int)0xffff0000));
    return VEC_OP(srli_epi32)(VEC_OP(add_epi32)(sum, VEC_OP(set1_epi32)(32768)), 16);
}

static inline void hist_luma_u8_n(const uint8_t *p, size_t n, size_t channels, uint8_t *values) {
    LUMA_SHUFFLES(channels);
    size_t i = 0;
#if VEC_FLOATS == 16
    const __m512i spread = _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
    for (; (n - i) * channels >= 64; i += 16) { /* each load reads 64 bytes */
        __builtin_prefetch(p + i * channels + 3072);
        __m512i pixels = _mm512_loadu_si512(p + i * channels);
        if (channels == 3)
            pixels = _mm512_permutexvar_epi32(spread, pixels);
        _mm_storeu_si128((__m128i *)(values + i),
                         _mm512_cvtepi32_epi8(hist_luma_bits(pixels, rg, b)));
    }
#else
    for (; n - i >= 8 && (n - i) * channels >= 4 * channels + 16; i += 8) {
        const __m128i *low = (const __m128i *)(p + i * channels);
        const __m128i *high = (const __m128i *)(p + (i + 4) * channels);
        const __m256i luma =
            hist_luma_bits(_mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                                   _mm_loadu_si128(high), 1),
                           rg, b);
        const __m128i words =
            _mm_packus_epi32(_mm256_castsi256_si128(luma), _mm256_extracti128_si256(luma, 1));
        _mm_storel_epi64((__m128i *)(values + i), _mm_packus_epi16(words, words));
    }
#endif
    hist_luma_rest_n(p + i * channels, n - i, channels, values + i);
}

#endif

#define GATHER(NAME, TYPE, LUMA)                                                                   \
    static void NAME(const gf_hist_plan *plan, const void *from, size_t n, void *to) {             \
        const TYPE *pixels = from;                                                                 \
        TYPE *values = to;                                                                         \
        const size_t channels = plan->head.in.channels;                                            \
        if (plan->luma && channels == 3)                                                           \
            LUMA(pixels, n, 3, values);                                                            \
        else if (plan->luma)                                                                       \
            LUMA(pixels, n, 4, values);                                                            \
        else                                                                                       \
            for (size_t i = 0; i < n; i++)                                                         \
                values[i] = pixels[i * channels + plan->first];                                    \
    }

GATHER(hist_gather_u8, uint8_t, hist_luma_u8_n)
GATHER(hist_gather_u16, uint16_t, hist_luma_u16_n)
GATHER(hist_gather_f32, float, hist_luma_f32_n)

/* ---- bins ------------------------------------------------------------------------------------ */

static void hist_bins_u8(uint32_t count, const uint8_t *values, size_t n, uint32_t *bins) {
    for (size_t i = 0; i < n; i++)
        bins[i] = gf_hist_bin_integer(values[i], count, 255);
}

/* Compute floor(v * count / 65535) in 16 bits. Let v * count = 65536 high + low = 65535 q + s with
 * s < 65535; q fits in 16 bits because count < 65536. If s >= q, then high = q and low = s - q, and
 * low + high + 1 does not carry. Otherwise high = q - 1 and low = 65536 + s - q, and it carries.
 * The result is high plus the carry. */
static void hist_bins_below(uint32_t count, const uint16_t *values, size_t n, uint32_t *bins) {
    const uint16_t factor = (uint16_t)count, last = (uint16_t)(count - 1);
    for (size_t i = 0; i < n; i++) {
        const uint32_t product = (uint32_t)values[i] * factor;
        const uint16_t high = (uint16_t)(product >> 16), low = (uint16_t)product;
        const uint16_t limit = (uint16_t)(65535 - low);
        const uint16_t carry = high >= limit;
        const uint16_t bin = (uint16_t)(high + carry);
        bins[i] = bin < last ? bin : last;
    }
}

static void hist_bins_u16(uint32_t count, const uint16_t *values, size_t n, uint32_t *bins) {
    if (count < 65536)
        hist_bins_below(count, values, n, bins);
    else
        for (size_t i = 0; i < n; i++)
            bins[i] = values[i]; /* v * 65536 / 65535 is v, or 65536 for v = 65535 */
}

#define INSIDE_BATCH 512

/* Compare bits: those of 1 are 0x3f800000, those of NaN and of negative numbers are larger. */
static bool hist_is_inside(const void *values, size_t n) {
    const uint32_t *bits = values;
    uint32_t max = 0;
    for (size_t i = 0; i < n && max <= 0x3f800000u; i += INSIDE_BATCH) {
        const size_t end = n - i < INSIDE_BATCH ? n : i + INSIDE_BATCH;
        for (size_t j = i; j < end; j++)
            max = bits[j] > max ? bits[j] : max;
    }
    return max <= 0x3f800000u;
}

static void hist_bins_f32(uint32_t count, const float *values, size_t n, uint32_t *bins) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t bin = (uint32_t)(int32_t)((double)values[i] * count);
        bins[i] = bin < count ? bin : count - 1;
    }
}

/* FAST: whether WHOLE supports the samples. */
#define BINS(NAME, TYPE, FAST, WHOLE)                                                              \
    static void NAME(const gf_hist_plan *plan, const void *from, size_t n, uint32_t *bins) {       \
        const double lo = plan->lo, hi = plan->hi, span = hi - lo;                                 \
        const TYPE *values = from;                                                                 \
        if (FAST) {                                                                                \
            WHOLE(plan->bins, values, n, bins);                                                    \
            return;                                                                                \
        }                                                                                          \
        if (plan->clamps)                                                                          \
            for (size_t i = 0; i < n; i++)                                                         \
                bins[i] = gf_hist_bin_ranged((double)values[i], 0, 1, 1, plan->bins);              \
        else                                                                                       \
            for (size_t i = 0; i < n; i++)                                                         \
                bins[i] = gf_hist_bin_ranged((double)values[i], lo, hi, span, plan->bins);         \
    }

BINS(hist_bins_of_u8, uint8_t, !plan->ranged, hist_bins_u8)
BINS(hist_bins_of_u16, uint16_t, !plan->ranged, hist_bins_u16)
BINS(hist_bins_or_counters_of_f32, float, !plan->ranged && hist_is_inside(from, n), hist_bins_f32)

static void hist_bins_of_f32(const gf_hist_plan *plan, const void *from, size_t n, uint32_t *bins) {
    if (!plan->keys) {
        hist_bins_or_counters_of_f32(plan, from, n, bins);
        return;
    }
    const uint32_t *values = from, nan = plan->bins;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = values[i];
        bins[i] = (bits & 0x7fffffffu) > 0x7f800000u ? nan : gf_hist_key(bits) >> 16;
    }
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Count into few bins without a table: count the samples at or above each edge. Each vector of
 * samples is compared with up to 8 edges. Each edge has its own vector of counters. */
typedef uint8_t vec_bytes __attribute__((vector_size(4 * VEC_FLOATS)));

/* Return count + 1 in every lane where x >= edge. */
#if VEC_FLOATS == 16
static inline vec_bytes hist_count_u8(vec_bytes count, vec_bytes x, vec_bytes edge) {
    return (vec_bytes)_mm512_mask_sub_epi8((__m512i)count,
                                           _mm512_cmpge_epu8_mask((__m512i)x, (__m512i)edge),
                                           (__m512i)count, _mm512_set1_epi8(-1));
}
static inline vec_words hist_count_u16(vec_words count, vec_words x, vec_words edge) {
    return (vec_words)_mm512_mask_sub_epi16((__m512i)count,
                                            _mm512_cmpge_epu16_mask((__m512i)x, (__m512i)edge),
                                            (__m512i)count, _mm512_set1_epi16(-1));
}
static inline vec_i32 hist_count_f32(vec_i32 count, vec x, vec edge) {
    return (vec_i32)_mm512_mask_sub_epi32((__m512i)count,
                                          _mm512_cmp_ps_mask((__m512)x, (__m512)edge, _CMP_GE_OQ),
                                          (__m512i)count, _mm512_set1_epi32(-1));
}
#define MAX_EDGES_U8 32
#define MAX_EDGES_U16 32
#define MAX_EDGES_F32 16
#else
static inline vec_bytes hist_count_u8(vec_bytes count, vec_bytes x, vec_bytes edge) {
    return count - (vec_bytes)(x >= edge);
}
static inline vec_words hist_count_u16(vec_words count, vec_words x, vec_words edge) {
    return count - (vec_words)(x >= edge);
}
static inline vec_i32 hist_count_f32(vec_i32 count, vec x, vec edge) {
    return count - (vec_i32)(x >= edge);
}
#define MAX_EDGES_U8 (2 * VEC_FLOATS)
#define MAX_EDGES_U16 (2 * VEC_FLOATS)
#define MAX_EDGES_F32 (2 * VEC_FLOATS)
#endif

#define EDGES_PER_PASS 8

#define PREFETCH_BYTES 3072 /* the hardware prefetcher misses the strided reads */

/* NAME_n: process `periods` whole periods with a constant number of edges. */
#define ABOVE(NAME, TYPE, COUNT_TYPE, VALUES, COUNTS, COUNT, PERIOD)                               \
    GF_INLINE void NAME##_n(const TYPE *values, size_t periods, const TYPE *edges,                 \
                            const uint32_t n, uint32_t *lanes) {                                   \
        const size_t width = sizeof(VALUES) / sizeof(TYPE);                                        \
        for (size_t phase = 0; phase < (PERIOD); phase += width) {                                 \
            COUNTS counts[EDGES_PER_PASS] = {{0}};                                                 \
            VALUES limits[EDGES_PER_PASS];                                                         \
            for (uint32_t e = 0; e < n; e++)                                                       \
                limits[e] = edges[e] - (VALUES){0};                                                \
            for (size_t t = 0; t < periods; t++) {                                                 \
                VALUES x;                                                                          \
                __builtin_prefetch(values + t * (PERIOD) + phase + PREFETCH_BYTES / sizeof(TYPE)); \
                memcpy(&x, values + t * (PERIOD) + phase, sizeof x);                               \
                _Pragma("GCC unroll 8") for (uint32_t e = 0; e < n; e++) counts[e] =               \
                    COUNT(counts[e], x, limits[e]);                                                \
            }                                                                                      \
            for (uint32_t e = 0; e < n; e++) {                                                     \
                COUNT_TYPE partial[sizeof(VALUES) / sizeof(TYPE)];                                 \
                memcpy(partial, &counts[e], sizeof partial);                                       \
                for (size_t j = 0; j < width; j++)                                                 \
                    lanes[e * (PERIOD) + phase + j] += partial[j];                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void NAME(const void *samples, size_t n, const void *limits, uint32_t count,            \
                     uint32_t *lanes) {                                                            \
        const TYPE *values = samples, *edges = limits;                                             \
        const size_t periods = n / (PERIOD);                                                       \
        uint32_t e = 0;                                                                            \
        for (; count - e >= 8; e += 8)                                                             \
            NAME##_n(values, periods, edges + e, 8, lanes + (size_t)e * (PERIOD));                 \
        uint32_t *rest = lanes + (size_t)e * (PERIOD);                                             \
        if (count - e == 7)                                                                        \
            NAME##_n(values, periods, edges + e, 7, rest);                                         \
        else if (count - e == 6)                                                                   \
            NAME##_n(values, periods, edges + e, 6, rest);                                         \
        else if (count - e == 5)                                                                   \
            NAME##_n(values, periods, edges + e, 5, rest);                                         \
        else if (count - e == 4)                                                                   \
            NAME##_n(values, periods, edges + e, 4, rest);                                         \
        else if (count - e == 3)                                                                   \
            NAME##_n(values, periods, edges + e, 3, rest);                                         \
        else if (count - e == 2)                                                                   \
            NAME##_n(values, periods, edges + e, 2, rest);                                         \
        else if (count - e == 1)                                                                   \
            NAME##_n(values, periods, edges + e, 1, rest);                                         \
        for (e = 0; e < count; e++)                                                                \
            for (size_t j = 0; j < n - periods * (PERIOD); j++)                                    \
                lanes[e * (PERIOD) + j] += values[periods * (PERIOD) + j] >= edges[e];             \
    }

ABOVE(hist_above_u8, uint8_t, uint8_t, vec_bytes, vec_bytes, hist_count_u8, GF_HIST_PERIOD_U8)
ABOVE(hist_above_u16, uint16_t, uint16_t, vec_words, vec_words, hist_count_u16, GF_HIST_PERIOD_U16)
ABOVE(hist_above_f32, float, uint32_t, vec, vec_i32, hist_count_f32, GF_HIST_PERIOD_F32)

/* ---- extraction ------------------------------------------------------------------------------ */

#if VEC_FLOATS < 8

#define SELECT_BATCHES(INSIDE, STORE)

#else

/* hist_inside_TYPE: one bit for each of SELECT_BATCH samples, set if it is in the range.
 * STORE_SELECTED: store the samples whose bits are set. */
#if VEC_FLOATS == 16

#define SELECT_BATCH 64
typedef uint64_t select_mask;

static inline select_mask hist_inside_u8(const uint8_t *p, const uint8_t *range) {
    const __m512i x = _mm512_loadu_si512(p);
    return _mm512_cmpge_epu8_mask(x, _mm512_set1_epi8((char)range[0])) &
           _mm512_cmple_epu8_mask(x, _mm512_set1_epi8((char)range[1]));
}

static inline select_mask hist_inside_u16(const uint16_t *p, const uint16_t *range) {
    const __m512i lo = _mm512_set1_epi16((short)range[0]), hi = _mm512_set1_epi16((short)range[1]);
    select_mask mask = 0;
    for (int i = 0; i < 2; i++) {
        const __m512i x = _mm512_loadu_si512(p + 32 * i);
        mask |= (select_mask)(_mm512_cmpge_epu16_mask(x, lo) & _mm512_cmple_epu16_mask(x, hi))
                << (32 * i);
    }
    return mask;
}

static inline select_mask hist_inside_f32(const float *p, const float *range) {
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

static inline void hist_store_u8(uint8_t *out, const uint8_t *p, __mmask16 mask) {
    const __m512i x = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    _mm_storeu_si128((__m128i *)out, _mm512_cvtepi32_epi8(_mm512_maskz_compress_epi32(mask, x)));
}

static inline void hist_store_u16(uint16_t *out, const uint16_t *p, __mmask16 mask) {
    const __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    _mm256_storeu_si256((__m256i *)out,
                        _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(mask, x)));
}

static inline void hist_store_f32(float *out, const float *p, __mmask16 mask) {
    _mm512_storeu_ps(out, _mm512_maskz_compress_ps(mask, _mm512_loadu_ps(p)));
}

/* Write 16 positions and values at a time, selected or not. The rest of the batch leaves enough
 * space. */
#define STORE_SELECTED(STORE)                                                                      \
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);  \
    for (size_t j = 0; j < SELECT_BATCH; j += 16, mask >>= 16) {                                   \
        const __mmask16 partial = (__mmask16)mask;                                                 \
        const __m512i lanes = _mm512_maskz_compress_epi32(partial, lane);                          \
        const __m512i base = _mm512_set1_epi64((long long)(position + i + j));                     \
        const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(lanes));                  \
        const __m512i high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(lanes, 1));           \
        _mm512_storeu_si512(positions + count, _mm512_add_epi64(low, base));                       \
        _mm512_storeu_si512(positions + count + 8, _mm512_add_epi64(high, base));                  \
        STORE(out + count, values + i + j, partial);                                               \
        count += (size_t)__builtin_popcount(partial);                                              \
    }

#else

#define SELECT_BATCH 32
typedef uint32_t select_mask;

static inline select_mask hist_inside_u8(const uint8_t *p, const uint8_t *range) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)p);
    const __m256i lo = _mm256_set1_epi8((char)range[0]), hi = _mm256_set1_epi8((char)range[1]);
    return (select_mask)_mm256_movemask_epi8(
        _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(x, lo), x),
                         _mm256_cmpeq_epi8(_mm256_min_epu8(x, hi), x)));
}

static inline __m256i hist_inside_16(const uint16_t *p, __m256i lo, __m256i hi) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)p);
    return _mm256_and_si256(_mm256_cmpeq_epi16(_mm256_max_epu16(x, lo), x),
                            _mm256_cmpeq_epi16(_mm256_min_epu16(x, hi), x));
}

static inline select_mask hist_inside_u16(const uint16_t *p, const uint16_t *range) {
    const __m256i lo = _mm256_set1_epi16((short)range[0]), hi = _mm256_set1_epi16((short)range[1]);
    const __m256i both =
        _mm256_packs_epi16(hist_inside_16(p, lo, hi), hist_inside_16(p + 16, lo, hi));
    return (select_mask)_mm256_movemask_epi8(_mm256_permute4x64_epi64(both, 0xd8));
}

static inline select_mask hist_inside_f32(const float *p, const float *range) {
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

#define STORE_SELECTED(STORE)                                                                      \
    for (; mask; mask &= mask - 1) {                                                               \
        const size_t j = i + (size_t)__builtin_ctz(mask);                                          \
        positions[count] = position + j;                                                           \
        out[count++] = values[j];                                                                  \
    }

#endif

#define SELECT_BATCHES(INSIDE, STORE)                                                              \
    for (; n - i >= SELECT_BATCH; i += SELECT_BATCH) {                                             \
        select_mask mask = INSIDE(values + i, range);                                              \
        if (mask == 0)                                                                             \
            continue;                                                                              \
        STORE_SELECTED(STORE)                                                                      \
    }

#endif

/* Process whole batches where the SIMD level has them, then single samples. Every sample is
 * written; the count advances only for selected ones: branch-free. At most n samples are
 * written. */
#define SELECT(NAME, TYPE, INSIDE, STORE)                                                          \
    static size_t NAME(const void *samples, size_t n, const void *limits, uint64_t position,       \
                       uint64_t *positions, void *to) {                                            \
        const TYPE *values = samples, *range = limits, lo = range[0], hi = range[1];               \
        TYPE *out = to;                                                                            \
        size_t count = 0, i = 0;                                                                   \
        SELECT_BATCHES(INSIDE, STORE)                                                              \
        for (; i < n; i++) {                                                                       \
            const TYPE v = values[i];                                                              \
            positions[count] = position + i;                                                       \
            out[count] = v;                                                                        \
            count += (size_t)((v >= lo) & (v <= hi));                                              \
        }                                                                                          \
        return count;                                                                              \
    }

SELECT(hist_select_u8, uint8_t, hist_inside_u8, hist_store_u8)
SELECT(hist_select_u16, uint16_t, hist_inside_u16, hist_store_u16)
SELECT(hist_select_f32, float, hist_inside_f32, hist_store_f32)

/* ---- row sums -------------------------------------------------------------------------------- */

/* Bits instead of comparisons, for auto-vectorisation. A product of two f32 is exact in binary64.
 * NaN is replaced by 0. Adding 0 changes no lane: no lane is -0. */
static void hist_add_lanes(const void *values, size_t n, const gf_hist_lanes *lanes, size_t first) {
    const uint32_t *from = values;
    double *restrict sums = lanes->sums + first, *restrict squares = lanes->squares + first;
    uint32_t *restrict min = lanes->min + first, *restrict max = lanes->max + first;
    for (size_t i = 0; i < n; i++) {
        const uint32_t number = 0 - (uint32_t)((from[i] & 0x7fffffffu) <= 0x7f800000u);
        const uint32_t finite = 0 - (uint32_t)((from[i] & 0x7fffffffu) < 0x7f800000u);
        const uint32_t bits = from[i] & number;
        const uint32_t key = gf_hist_key(from[i]);
        const uint32_t low = key | ~finite, high = key & finite;
        float v;
        memcpy(&v, &bits, sizeof v);
        sums[i] += (double)v;
        squares[i] += (double)v * (double)v;
        min[i] = low < min[i] ? low : min[i];
        max[i] = high > max[i] ? high : max[i];
    }
}

static void hist_halve_lanes(const gf_hist_lanes *lanes, size_t n) {
    double *restrict sums = lanes->sums, *restrict squares = lanes->squares;
    uint32_t *restrict min = lanes->min, *restrict max = lanes->max;
    for (size_t i = 0; i < n; i++) {
        sums[i] += sums[n + i];
        squares[i] += squares[n + i];
        min[i] = min[n + i] < min[i] ? min[n + i] : min[i];
        max[i] = max[n + i] > max[i] ? max[n + i] : max[i];
    }
}

const gf_hist_simd GF_SIMD_NAME(gf_hist_simd) = {
    .gather = {hist_gather_u8, hist_gather_u16, hist_gather_f32},
    .bins = {hist_bins_of_u8, hist_bins_of_u16, hist_bins_of_f32},
    .above = {hist_above_u8, hist_above_u16, hist_above_f32},
    .inside = hist_is_inside,
    .select = {hist_select_u8, hist_select_u16, hist_select_f32},
    .add_lanes = hist_add_lanes,
    .halve_lanes = hist_halve_lanes,
    .max_edges = {MAX_EDGES_U8, MAX_EDGES_U16, MAX_EDGES_F32},
    .min_periods = 64 / VEC_FLOATS,
};

void GF_SIMD_NAME(gf_hist_cpu)(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                               uint32_t parts, void *scratch) {
    gf_hist_compute(&GF_SIMD_NAME(gf_hist_simd), plan, strip, part, parts, scratch);
}
