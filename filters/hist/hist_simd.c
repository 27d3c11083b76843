/* Loops of hist for one SIMD level. Most are written for auto-vectorisation. */
#include "hist/hist_simd.h"
#include "core/vec.h"

/* ---- measured samples ------------------------------------------------------------------------ */

#if VEC_FLOATS >= 8

/* Compute the luma of four pixels per 128 bits, 32 bits each. rg: R and G of a pixel as two 16-bit
 * numbers in 32 bits. The weight of G exceeds a signed 16-bit factor: 46871 G = -18665 G + 65536 G,
 * and the upper half of the 32 bits already holds 65536 G. */
static inline vec_bits hist_luma_bits(vec_bits pixels, __m128i rg, __m128i b) {
    const vec_bits x = VEC_OP(shuffle_epi8)(pixels, vec_broadcast(rg));
    const vec_bits y = VEC_OP(shuffle_epi8)(pixels, vec_broadcast(b));
    /* -18665, 13933 */
    vec_bits sum = VEC_OP(madd_epi16)(x, VEC_OP(set1_epi32)((int)0xb717366d));
    sum = VEC_OP(add_epi32)(sum, VEC_OP(madd_epi16)(y, VEC_OP(set1_epi32)(4732)));
    sum = VEC_OP(add_epi32)(sum, x & VEC_OP(set1_epi32)((int)0xffff0000));
    return VEC_OP(srli_epi32)(VEC_OP(add_epi32)(sum, VEC_OP(set1_epi32)(32768)), 16);
}

/* Compute the luma of n u8 pixels in whole vectors. Returns the number of pixels processed. */
GF_INLINE size_t hist_luma_vectors(const uint8_t *p, size_t n, const size_t channels,
                                   uint8_t *values) {
    /* Byte indices of R and G, and of B, of four pixels; 0x80: a zero byte. */
    const int c = (int)channels, two = 0x00010001 * c, rg0 = (int)0x80018000, b0 = (int)0x80808002;
    const __m128i rg = _mm_setr_epi32(rg0, rg0 + two, rg0 + 2 * two, rg0 + 3 * two);
    const __m128i b = _mm_setr_epi32(b0, b0 + c, b0 + 2 * c, b0 + 3 * c);
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
    return i;
}

#endif

GF_INLINE void hist_luma(const gf_type type, const void *pixels, size_t n, const size_t channels,
                         void *values) {
    size_t i = 0;
#if VEC_FLOATS >= 8
    if (type == GF_U8)
        i = hist_luma_vectors(pixels, n, channels, values);
#endif
    for (; i < n; i++) {
        const float *real = (const float *)pixels + i * channels;
        const uint16_t *u16 = (const uint16_t *)pixels + i * channels;
        const uint8_t *u8 = (const uint8_t *)pixels + i * channels;
        if (type == GF_F32)
            ((float *)values)[i] = gf_luma_real(real[0], real[1], real[2]);
        else if (type == GF_U16)
            ((uint16_t *)values)[i] = (uint16_t)gf_luma_integer(u16[0], u16[1], u16[2]);
        else
            ((uint8_t *)values)[i] = (uint8_t)gf_luma_integer(u8[0], u8[1], u8[2]);
    }
}

GF_INLINE void hist_gather_samples(const gf_type type, const gf_hist_plan *plan,
                                   const unsigned char *pixels, size_t n, unsigned char *values) {
    const size_t channels = plan->head.in.channels, bytes = gf_type_bytes(type);
    const unsigned char *from = pixels + plan->first * bytes;
    if (plan->luma && channels == 3)
        hist_luma(type, pixels, n, 3, values);
    else if (plan->luma)
        hist_luma(type, pixels, n, 4, values);
    else
        for (size_t i = 0; i < n; i++)
            memcpy(values + i * bytes, from + i * channels * bytes, bytes);
}

static void hist_gather(const gf_hist_plan *plan, const void *pixels, size_t n, void *values) {
    GF_BY_TYPE(plan->head.in.type, hist_gather_samples, plan, pixels, n, values);
}

/* ---- bins ------------------------------------------------------------------------------------ */

static void hist_bins_u8(uint32_t count, const uint8_t *values, size_t n, uint32_t *bins) {
    for (size_t i = 0; i < n; i++)
        bins[i] = gf_hist_bin_integer(values[i], count, 255);
}

/* Compute floor(v * count / 65535) in 16 bits. Let v * count = 65536 high + low = 65535 q + s with
 * s < 65535; q fits in 16 bits because count < 65536. If s >= q, then high = q and low = s - q, and
 * low + high + 1 does not carry. Otherwise high = q - 1 and low = 65536 + s - q, and it carries.
 * The result is high plus the carry. */
static void hist_bins_u16(uint32_t count, const uint16_t *values, size_t n, uint32_t *bins) {
    const uint16_t factor = (uint16_t)count, last = (uint16_t)(count - 1);
    for (size_t i = 0; count == 65536 && i < n; i++)
        bins[i] = values[i]; /* v * 65536 / 65535 is v, or 65536 for v = 65535 */
    for (size_t i = 0; count < 65536 && i < n; i++) {
        const uint32_t product = (uint32_t)values[i] * factor;
        const uint16_t high = (uint16_t)(product >> 16), low = (uint16_t)product;
        const uint16_t limit = (uint16_t)(65535 - low);
        const uint16_t carry = high >= limit;
        const uint16_t bin = (uint16_t)(high + carry);
        bins[i] = bin < last ? bin : last;
    }
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

static void hist_bins_keys(uint32_t nan, const uint32_t *values, size_t n, uint32_t *bins) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = values[i];
        bins[i] = (bits & 0x7fffffffu) > 0x7f800000u ? nan : gf_hist_key(bits) >> 16;
    }
}

/* Compute the counters of samples outside of lo..hi, too. */
GF_INLINE void hist_bins_ranged(const gf_type type, const gf_hist_plan *plan, const void *values,
                                size_t n, uint32_t *bins) {
    const bool clamps = type == GF_F32 && plan->clamps;
    const double lo = clamps ? 0 : plan->lo, hi = clamps ? 1 : plan->hi, span = hi - lo;
    for (size_t i = 0; i < n; i++) {
        const double v = type == GF_F32   ? (double)((const float *)values)[i]
                         : type == GF_U16 ? (double)((const uint16_t *)values)[i]
                                          : (double)((const uint8_t *)values)[i];
        bins[i] = gf_hist_bin_ranged(v, lo, hi, span, plan->bins);
    }
}

static void hist_bins(const gf_hist_plan *plan, const void *values, size_t n, uint32_t *bins) {
    const gf_type type = plan->head.in.type;
    if (plan->keys)
        hist_bins_keys(plan->bins, values, n, bins);
    else if (plan->ranged || (type == GF_F32 && !hist_is_inside(values, n)))
        GF_BY_TYPE(type, hist_bins_ranged, plan, values, n, bins);
    else if (type == GF_U8)
        hist_bins_u8(plan->bins, values, n, bins);
    else if (type == GF_U16)
        hist_bins_u16(plan->bins, values, n, bins);
    else
        hist_bins_f32(plan->bins, values, n, bins);
}

/* ---- counting -------------------------------------------------------------------------------- */

typedef uint8_t vec_bytes __attribute__((vector_size(4 * VEC_FLOATS)));

#if VEC_FLOATS == 16
/* Return count + 1 in every lane where x >= edge. */
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
#endif

#define EDGES_PER_PASS 8

#define PREFETCH_BYTES 3072 /* the hardware prefetcher misses the strided reads */

/* Vectors of samples and of their counters. */
typedef vec_bytes values_u8, counts_u8;
typedef vec_words values_u16, counts_u16;
typedef vec values_f32;
typedef vec_i32 counts_f32;
typedef uint8_t count_u8;
typedef uint16_t count_u16;
typedef uint32_t count_f32;

#define TYPE u8
#include "hist/hist_above_tmpl.h"
#define TYPE u16
#include "hist/hist_above_tmpl.h"
#define TYPE f32
#include "hist/hist_above_tmpl.h"

/* ---- extraction ------------------------------------------------------------------------------ */

#if VEC_FLOATS >= 8

/* hist_inside_TYPE: one bit for each of SELECT_BATCH samples, set if it is in the range. */
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

/* Store the samples of 16 lanes whose bits are set, and undefined ones after them. */
GF_INLINE void hist_compress(const gf_type type, void *out, const void *p, __mmask16 mask) {
    __m512i x;
    if (type == GF_U8)
        x = _mm512_cvtepu8_epi32(_mm_loadu_si128(p));
    else if (type == GF_U16)
        x = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p));
    else
        x = _mm512_loadu_si512(p);
    x = _mm512_maskz_compress_epi32(mask, x);
    if (type == GF_U8)
        _mm_storeu_si128(out, _mm512_cvtepi32_epi8(x));
    else if (type == GF_U16)
        _mm256_storeu_si256(out, _mm512_cvtepi32_epi16(x));
    else
        _mm512_storeu_si512(out, x);
}

/* Store the samples of a batch whose bits are set, and their positions. Returns their number.
 * Writes 16 at a time, selected or not. The rest of the batch leaves enough space. */
GF_INLINE size_t hist_store_batch(const gf_type type, const unsigned char *values, select_mask mask,
                                  uint64_t position, uint64_t *positions, unsigned char *out) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const size_t bytes = gf_type_bytes(type);
    size_t count = 0;
    for (size_t j = 0; j < SELECT_BATCH; j += 16, mask >>= 16) {
        const __mmask16 partial = (__mmask16)mask;
        const __m512i lanes = _mm512_maskz_compress_epi32(partial, lane);
        const __m512i base = _mm512_set1_epi64((long long)(position + j));
        const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(lanes));
        const __m512i high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(lanes, 1));
        _mm512_storeu_si512(positions + count, _mm512_add_epi64(low, base));
        _mm512_storeu_si512(positions + count + 8, _mm512_add_epi64(high, base));
        hist_compress(type, out + count * bytes, values + j * bytes, partial);
        count += (size_t)__builtin_popcount(partial);
    }
    return count;
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

GF_INLINE size_t hist_store_batch(const gf_type type, const unsigned char *values, select_mask mask,
                                  uint64_t position, uint64_t *positions, unsigned char *out) {
    const size_t bytes = gf_type_bytes(type);
    size_t count = 0;
    for (; mask; mask &= mask - 1, count++) {
        const size_t j = (size_t)__builtin_ctz(mask);
        positions[count] = position + j;
        memcpy(out + count * bytes, values + j * bytes, bytes);
    }
    return count;
}

#endif

GF_INLINE select_mask hist_inside(const gf_type type, const void *p, const void *range) {
    return type == GF_U8    ? hist_inside_u8(p, range)
           : type == GF_U16 ? hist_inside_u16(p, range)
                            : hist_inside_f32(p, range);
}

#endif

/* Return whether sample i of `a` is at least sample j of `b`. */
GF_INLINE int hist_is_above(const gf_type type, const void *a, size_t i, const void *b, size_t j) {
    return type == GF_F32 ? ((const float *)a)[i] >= ((const float *)b)[j]
                          : gf_sample_bits(type, a, i) >= gf_sample_bits(type, b, j);
}

/* Process whole batches where the SIMD level has them, then single samples. Every sample is
 * written; the count advances only for selected ones: branch-free. At most n samples are
 * written. */
GF_INLINE size_t hist_select_samples(const gf_type type, const unsigned char *values, size_t n,
                                     const gf_hist_selection *selection) {
    const size_t bytes = gf_type_bytes(type);
    const uint64_t position = selection->position;
    uint64_t *positions = selection->positions;
    unsigned char *out = selection->values;
    size_t count = 0, i = 0;
    float range[2]; /* a copy, which no store changes */
    memcpy(range, selection->range, 2 * bytes);
#if VEC_FLOATS >= 8
    for (; n - i >= SELECT_BATCH; i += SELECT_BATCH) {
        const select_mask mask = hist_inside(type, values + i * bytes, range);
        if (mask)
            count += hist_store_batch(type, values + i * bytes, mask, position + i,
                                      positions + count, out + count * bytes);
    }
#endif
    for (; i < n; i++) {
        positions[count] = position + i;
        memcpy(out + count * bytes, values + i * bytes, bytes);
        count += (size_t)(hist_is_above(type, values, i, range, 0) &
                          hist_is_above(type, range, 1, values, i));
    }
    return count;
}

static size_t hist_select(gf_type type, const void *values, size_t n,
                          const gf_hist_selection *selection) {
    return GF_BY_TYPE(type, hist_select_samples, values, n, selection);
}

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
    .gather = hist_gather,
    .bins = hist_bins,
    .above = {hist_above_u8, hist_above_u16, hist_above_f32},
    .inside = hist_is_inside,
    .select = hist_select,
    .add_lanes = hist_add_lanes,
    .halve_lanes = hist_halve_lanes,
    .max_edges = {2 * VEC_FLOATS, 2 * VEC_FLOATS, VEC_FLOATS == 16 ? 16 : 2 * VEC_FLOATS},
    .min_periods = 64 / VEC_FLOATS,
};

void GF_SIMD_NAME(gf_hist_cpu)(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                               uint32_t parts, void *scratch) {
    gf_hist_compute(&GF_SIMD_NAME(gf_hist_simd), plan, strip, part, parts, scratch);
}
