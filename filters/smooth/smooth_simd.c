/* Vector loops of smooth for one SIMD level. */
#include "core/vec.h"
#include "smooth/smooth_cpu.h"

/* Loops over scratch process whole vectors, past n into the padding. Loops over an image pass the
 * last, partial vector through a buffer on the stack. */

static void smooth_load(gf_type type, float *dst, const void *src, size_t n, float gain) {
    GF_BY_TYPE(type, vec_convert, dst, src, n, gain);
}

/* Input of a mean: an array of rows, or one row read at multiples of step. */
typedef struct gf_smooth_taps {
    const float *const *rows; /* NULL: one row */
    const float *row;
    size_t step;
} gf_smooth_taps;

GF_INLINE const float *smooth_tap(const gf_smooth_taps *from, unsigned k) {
    return from->rows ? from->rows[k] : from->row + k * from->step;
}

/* In the common instances `taps` is a constant, and their sums are straight-line code. */
GF_INLINE void smooth_blur_taps(float *dst, const gf_smooth_taps *from, unsigned taps, bool odd,
                                size_t n, gf_smooth_prefetch prefetch) {
    const vec divisor = vec_set((float)taps), inverse = vec_set(1 / (float)taps);
#define QUOTIENT(s) (odd ? vec_over_odd(s, divisor, inverse) : (s) / divisor)
    size_t i = 0;
    /* Each addition depends on the previous one: four independent sums take little longer than
     * one. */
    for (; i + VEC_FLOATS < n; i += 4 * VEC_FLOATS) {
        for (size_t line = 0; line < 4 * VEC_FLOATS * prefetch.bytes; line += 64) {
            __builtin_prefetch(prefetch.read + i * prefetch.bytes + line);
            __builtin_prefetch(prefetch.write + i * prefetch.bytes + line, 1);
        }
        vec s[4];
        _Pragma("GCC unroll 4") for (size_t j = 0; j < 4; j++) s[j] =
            vec_load(smooth_tap(from, 0) + i + j * VEC_FLOATS);
        for (unsigned k = 1; k < taps; k++) {
            const float *p = smooth_tap(from, k) + i;
            _Pragma("GCC unroll 4") for (size_t j = 0; j < 4; j++) s[j] +=
                vec_load(p + j * VEC_FLOATS);
        }
        _Pragma("GCC unroll 4") for (size_t j = 0; j < 4; j++)
            vec_store(dst + i + j * VEC_FLOATS, QUOTIENT(s[j]));
    }
    for (; i < n; i += VEC_FLOATS) {
        vec s = vec_load(smooth_tap(from, 0) + i);
        for (unsigned k = 1; k < taps; k++)
            s += vec_load(smooth_tap(from, k) + i);
        vec_store(dst + i, QUOTIENT(s));
    }
#undef QUOTIENT
}

GF_INLINE void smooth_blur_from(float *dst, const gf_smooth_taps *from, unsigned taps, size_t n,
                                gf_smooth_prefetch prefetch) {
    if (taps == 3)
        smooth_blur_taps(dst, from, 3, true, n, prefetch);
    else if (taps == 5)
        smooth_blur_taps(dst, from, 5, true, n, prefetch);
    else if (taps == 7)
        smooth_blur_taps(dst, from, 7, true, n, prefetch);
    else if (taps % 2)
        smooth_blur_taps(dst, from, taps, true, n, prefetch);
    else
        smooth_blur_taps(dst, from, taps, false, n, prefetch);
}

static void smooth_blur(float *dst, const float *src, size_t step, unsigned taps, size_t n,
                        gf_smooth_prefetch prefetch) {
    const gf_smooth_taps from = {NULL, src, step};
    smooth_blur_from(dst, &from, taps, n, prefetch);
}

static void smooth_blur_rows(float *dst, const float *const *rows, unsigned taps, size_t n,
                             gf_smooth_prefetch prefetch) {
    const gf_smooth_taps from = {rows, NULL, 0};
    smooth_blur_from(dst, &from, taps, n, prefetch);
}

/* prev, next: whether the chain has them. */
GF_INLINE vec smooth_chained(const gf_smooth_chain *chain, const bool prev, const bool next,
                             size_t i) {
    const vec w = vec_set(chain->weight);
    vec t = vec_load(chain->mid + i);
    if (prev)
        t = (t + vec_load(chain->prev + i)) * w;
    if (next)
        t = (t + vec_load(chain->next + i)) * w;
    return t * vec_set(chain->factor);
}

/* Whole vectors are stored aligned: no store touches two cache lines. Partial vectors at both ends
 * go through the stack. */
GF_INLINE void smooth_finish_samples(const gf_type type, const bool prev, const bool next,
                                     unsigned char *dst, const gf_smooth_chain *by, size_t n) {
    const size_t bytes = gf_type_bytes(type), off = (uintptr_t)dst / bytes % VEC_FLOATS;
    const gf_smooth_chain chain = {by->prev, by->mid, by->next, by->weight, by->factor};
    size_t i, count = off ? VEC_FLOATS - off : 0;
    float buffer[VEC_FLOATS];
    if (count) {
        count = count < n ? count : n;
        vec_store_samples(type, buffer, 0, smooth_chained(&chain, prev, next, 0));
        memcpy(dst, buffer, count * bytes);
    }
    for (i = count; i + VEC_FLOATS <= n; i += VEC_FLOATS)
        vec_store_samples(type, dst, i, smooth_chained(&chain, prev, next, i));
    if (i < n) {
        vec_store_samples(type, buffer, 0, smooth_chained(&chain, prev, next, i));
        memcpy(dst + i * bytes, buffer, (n - i) * bytes);
    }
}

static void smooth_finish(gf_type type, void *dst, const gf_smooth_chain *chain, size_t n) {
    if (chain->prev && chain->next)
        GF_BY_TYPE(type, smooth_finish_samples, true, true, dst, chain, n);
    else if (chain->prev)
        GF_BY_TYPE(type, smooth_finish_samples, true, false, dst, chain, n);
    else if (chain->next)
        GF_BY_TYPE(type, smooth_finish_samples, false, true, dst, chain, n);
    else
        GF_BY_TYPE(type, smooth_finish_samples, false, false, dst, chain, n);
}

/* Uses 64-bit words, which the compiler vectorises. */
static void smooth_blend(unsigned char *restrict dst, const unsigned char *restrict src, size_t n,
                         const unsigned char mask[64]) {
    uint64_t keep[8], old[8], new[8];
    memcpy(keep, mask, sizeof keep);
    size_t i = 0;
    for (; n - i >= 64; i += 64) {
        memcpy(old, dst + i, sizeof old);
        memcpy(new, src + i, sizeof new);
        for (size_t j = 0; j < 8; j++)
            old[j] = (old[j] & ~keep[j]) | (new[j] & keep[j]);
        memcpy(dst + i, old, sizeof old);
    }
    for (size_t j = 0; i + j < n; j++)
        if (mask[j])
            dst[i + j] = src[i + j];
}

/* ---- u8 by integers: near-ties --------------------------------------------------------------- */

/* Add output i + j to the list for each bit j of `which`. */
static void smooth_add_ties(gf_smooth_ties *ties, size_t i, uint64_t which) {
    for (; which; which &= which - 1)
        ties->indices[ties->count++] = (uint16_t)(i + (size_t)__builtin_ctzll(which));
}

/* Convert tie_margin to units of 2^-16, plus 2 for rounding and truncation of the sum. */
static int32_t smooth_fixed_width(float margin) {
    return (int32_t)(margin * 65536) + 1 + 2;
}

/* ---- seven taps ------------------------------------------------------------------------------ */

#define BYTES (4 * VEC_FLOATS) /* samples per iteration */

#if VEC_FLOATS >= 8

#define ZERO ((vec_bits){0})
#define LOW VEC_OP(set1_epi32)(0xffff)

#if VEC_FLOATS == 16
static inline bool smooth_any_less(vec_bits x, vec_bits limit) {
    return _mm512_cmplt_epi16_mask(x, limit) != 0;
}
static inline bool smooth_any_less_u16(vec_bits x, vec_bits limit) {
    return _mm512_cmplt_epu16_mask(x, limit) != 0;
}
static inline uint64_t smooth_all_less(vec_bits lo, vec_bits hi, vec_bits limit) {
    const vec_bits l = _mm512_movm_epi16(_mm512_cmplt_epi16_mask(lo, limit));
    const vec_bits h = _mm512_movm_epi16(_mm512_cmplt_epi16_mask(hi, limit));
    return _mm512_movepi8_mask(_mm512_packs_epi16(l, h));
}
#else
static inline bool smooth_any_less(vec_bits x, vec_bits limit) {
    return _mm256_movemask_epi8(_mm256_cmpgt_epi16(limit, x)) != 0;
}
static inline bool smooth_any_less_u16(vec_bits x, vec_bits limit) {
    return !_mm256_testc_si256(ZERO, _mm256_subs_epu16(limit, x));
}
static inline uint64_t smooth_all_less(vec_bits lo, vec_bits hi, vec_bits limit) {
    const vec_bits l = _mm256_cmpgt_epi16(limit, lo), h = _mm256_cmpgt_epi16(limit, hi);
    return (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(l, h));
}
#endif

static inline vec_bits smooth_set16(unsigned x) {
    return VEC_OP(set1_epi16)((short)x);
}

/* Multiply the low or high halves of vectors of samples by their taps and add the products, in
 * 16-bit lanes. packus restores the order. */
GF_INLINE vec_bits smooth_sum(const bool high, const vec_bits in[8], const vec_bits taps[4]) {
    vec_bits sum = ZERO;
    _Pragma("GCC unroll 4") for (size_t k = 0; k < 8; k += 2) {
        const vec_bits pairs = high ? VEC_OP(unpackhi_epi8)(in[k], in[k + 1])
                                    : VEC_OP(unpacklo_epi8)(in[k], in[k + 1]);
        sum = VEC_OP(add_epi16)(sum, VEC_OP(maddubs_epi16)(pairs, taps[k / 2]));
    }
    return sum;
}

/* Taps in pairs, and the offsets of the samples of a window. */
typedef struct gf_smooth_window {
    vec_bits taps[4];
    ptrdiff_t offsets[7];
} gf_smooth_window;

GF_INLINE gf_smooth_window smooth_window_of(const gf_smooth_seven *seven, ptrdiff_t step) {
    gf_smooth_window window;
    for (int k = 0; k < 4; k++)
        window.taps[k] = smooth_set16(seven->tap[2 * k] | (unsigned)seven->tap[2 * k + 1] << 8);
    for (unsigned k = 0; k < 7; k++)
        window.offsets[k] = (ptrdiff_t)(k < seven->last ? k : seven->last) * step;
    return window;
}

GF_INLINE void smooth_sums(const uint8_t *p, const gf_smooth_window *window, vec_bits *lo,
                           vec_bits *hi) {
    vec_bits in[8];
    _Pragma("GCC unroll 7") for (size_t k = 0; k < 7; k++) in[k] =
        vec_load_bits(p + window->offsets[k]);
    in[7] = ZERO;
    *lo = smooth_sum(false, in, window->taps);
    *hi = smooth_sum(true, in, window->taps);
}

GF_INLINE vec_bits smooth_fixed_value(vec_bits x, vec_bits factor) {
    /* mulhrs by 2^10: (x + 16) >> 5 */
    return VEC_OP(mulhrs_epi16)(VEC_OP(mulhi_epu16)(x, factor), smooth_set16(1 << 10));
}

/* Scale to units of 2^-16, plus a half and the tie margin. The upper 16 bits are the rounded value.
 * The lower 16 bits of a near-tie are less than twice the margin. */
typedef struct gf_smooth_scaling {
    vec scale, up;
} gf_smooth_scaling;

GF_INLINE vec_bits smooth_scaled(vec_bits dwords, const gf_smooth_scaling *scaling) {
    const vec x = VEC_OP(cvtepi32_ps)(dwords);
    return (vec_bits)vec_truncate(vec_multiply_add(x, scaling->scale, scaling->up));
}

/* Compute the values of one half. *rest: the lower bits, offset for a signed comparison with the
 * near-tie limit. */
GF_INLINE vec_bits smooth_rounded(vec_bits sums, const gf_smooth_scaling *scaling, vec_bits *rest) {
    const vec_bits a = smooth_scaled(VEC_OP(unpacklo_epi16)(sums, ZERO), scaling);
    const vec_bits b = smooth_scaled(VEC_OP(unpackhi_epi16)(sums, ZERO), scaling);
    *rest = VEC_OP(add_epi16)(VEC_OP(packus_epi32)((a & LOW), (b & LOW)), smooth_set16(0x8000));
    return VEC_OP(packus_epi32)(VEC_OP(srli_epi32)(a, 16), VEC_OP(srli_epi32)(b, 16));
}

/* Compute outputs [range[0], range[1]) in whole vectors. */
GF_INLINE void smooth_seven_range(uint8_t *dst, const uint8_t *first, ptrdiff_t step,
                                  const size_t range[2], const gf_smooth_seven *seven,
                                  const bool in_16_bits, gf_smooth_distance distance,
                                  gf_smooth_ties *ties) {
    const gf_smooth_window window = smooth_window_of(seven, step);
    const vec_bits factor = smooth_set16(seven->factor), tie = smooth_set16(seven->tie);
    const int width = smooth_fixed_width(seven->tie_margin);
    const gf_smooth_scaling scaling = {vec_set(65536 * seven->scale),
                                       vec_set((float)(32768 + width))};
    const vec_bits below =
        VEC_OP(set1_epi16)(in_16_bits ? seven->tie_below : (short)(2 * width - 32768));
    for (size_t i = range[0], end = range[1]; i < end && ties->count <= ties->limit; i += BYTES) {
        const uint8_t *p = first + i;
        __builtin_prefetch(p + distance.read);
        __builtin_prefetch(dst + i + distance.write, 1);
        vec_bits lo, hi, s, t;
        smooth_sums(p, &window, &lo, &hi);
        if (in_16_bits) {
            vec_store_bits(dst + i, VEC_OP(packus_epi16)(smooth_fixed_value(lo, factor),
                                                         smooth_fixed_value(hi, factor)));
            s = VEC_OP(mullo_epi16)(lo, tie);
            t = VEC_OP(mullo_epi16)(hi, tie);
        } else {
            const vec_bits x = smooth_rounded(lo, &scaling, &s),
                           y = smooth_rounded(hi, &scaling, &t);
            vec_store_bits(dst + i, VEC_OP(packus_epi16)(x, y));
        }
        if (__builtin_expect(smooth_any_less(VEC_OP(min_epi16)(s, t), below), 0))
            smooth_add_ties(ties, i, smooth_all_less(s, t, below));
    }
}

/* Inner vectors are stored aligned: no store touches two cache lines. The first and the last vector
 * overlap them. */
static void smooth_seven(uint8_t *dst, const uint8_t *first, ptrdiff_t step, size_t n,
                         const gf_smooth_seven *seven, gf_smooth_distance distance,
                         gf_smooth_ties *ties) {
    const size_t head = -(uintptr_t)dst % BYTES, tail = (n - head) % BYTES;
    const size_t ranges[][2] = {{0, head}, {head, n - tail}, {n - BYTES, tail ? n : 0}};
    for (int i = 0; i < 3; i++)
        if (seven->factor)
            smooth_seven_range(dst, first, step, ranges[i], seven, true, distance, ties);
        else
            smooth_seven_range(dst, first, step, ranges[i], seven, false, distance, ties);
}

/* In each half of a block, the even sums are stored before the odd ones. smooth_store_block merges
 * them. */
static void smooth_sums_x(float *sums, const uint8_t *first, size_t step, size_t n,
                          const gf_smooth_seven *seven, size_t prefetch) {
    const gf_smooth_window window = smooth_window_of(seven, (ptrdiff_t)step);
    for (size_t i = 0; i < n; i += BYTES) {
        const uint8_t *p = first + (n - i < BYTES ? n - BYTES : i);
        __builtin_prefetch(p + prefetch);
        vec_bits half[2];
        smooth_sums(p, &window, &half[0], &half[1]);
        _Pragma("GCC unroll 2") for (size_t j = 0; j < 2; j++) {
            float *to = sums + i + 2 * j * VEC_FLOATS;
            vec_store(to, VEC_OP(cvtepi32_ps)(half[j] & LOW));
            vec_store(to + VEC_FLOATS, VEC_OP(cvtepi32_ps)(VEC_OP(srli_epi32)(half[j], 16)));
        }
    }
}

static inline vec_bits smooth_merge_upper(vec_bits even, vec_bits odd) {
    return VEC_OP(srli_epi32)(even, 16) | (odd & ~LOW);
}

/* Return the lower halves of values, or -1 for values above 255, offset for a signed comparison. */
static inline vec_bits smooth_merge_lower(vec_bits even, vec_bits odd) {
    const vec_bits lower = (even & LOW) | VEC_OP(slli_epi32)(odd, 16);
    const vec_bits rest = VEC_OP(sub_epi16)(smooth_set16(255), smooth_merge_upper(even, odd));
    return (lower | VEC_OP(srai_epi16)(rest, 15)) ^ smooth_set16(0x8000);
}

/* Store the upper halves of four vectors. Return a bit for each near-tie: a value up to 255 whose
 * lower half is less than limit. */
GF_INLINE uint64_t smooth_store_block(uint8_t *dst, const vec_i32 x[4], int32_t limit) {
    const vec_bits a = (vec_bits)x[0], b = (vec_bits)x[1], c = (vec_bits)x[2], d = (vec_bits)x[3];
    vec_store_bits(dst, VEC_OP(packus_epi16)(smooth_merge_upper(a, b), smooth_merge_upper(c, d)));
    const vec_bits least = VEC_OP(min_epu16)(VEC_OP(min_epu16)(a, b), VEC_OP(min_epu16)(c, d));
    if (__builtin_expect(!smooth_any_less_u16(least, VEC_OP(set1_epi32)(limit)), 1))
        return 0; /* no upper half is less than 0 */
    return smooth_all_less(smooth_merge_lower(a, b), smooth_merge_lower(c, d),
                           smooth_set16((unsigned)(limit - 32768)));
}

#else

/* Written for auto-vectorisation. */
static void smooth_seven(uint8_t *restrict dst, const uint8_t *restrict first, ptrdiff_t step,
                         size_t n, const gf_smooth_seven *seven, gf_smooth_distance distance,
                         gf_smooth_ties *restrict ties) {
    uint16_t w[7], sums[64];
    for (int k = 0; k < 7; k++)
        w[k] = seven->tap[k];
    const uint16_t factor = seven->factor, tie = seven->tie;
    const int16_t below = seven->tie_below;
    for (size_t i = 0; i < n && ties->count <= ties->limit; i += 64) {
        const size_t count = n - i < 64 ? n - i : 64;
        int16_t min = INT16_MAX;
        for (size_t j = 0; j < count; j++) {
            const uint8_t *p = first + i + j;
            const uint16_t sum =
                (uint16_t)(p[0] * w[0] + p[step] * w[1] + p[2 * step] * w[2] + p[3 * step] * w[3] +
                           p[4 * step] * w[4] + p[5 * step] * w[5] + p[6 * step] * w[6]);
            const uint16_t high = (uint16_t)(sum * (uint32_t)factor >> 16);
            const int16_t value = (int16_t)((uint16_t)(high + 16) >> 5);
            const int16_t hash = (int16_t)(uint16_t)(sum * (uint32_t)tie);
            sums[j] = sum;
            min = hash < min ? hash : min;
            dst[i + j] = (uint8_t)(value < 255 ? value : 255);
        }
        for (size_t j = 0; min < below && j < count; j++)
            if ((int16_t)(uint16_t)(sums[j] * (uint32_t)tie) < below)
                smooth_add_ties(ties, i + j, 1);
    }
}

static void smooth_sums_x(float *restrict sums, const uint8_t *restrict first, size_t step,
                          size_t n, const gf_smooth_seven *seven, size_t prefetch) {
    for (size_t i = 0; i < n; i += BYTES) {
        const uint8_t *p = first + (n - i < BYTES ? n - BYTES : i);
        uint16_t block[BYTES] = {0};
        for (size_t k = 0; k <= seven->last; k++)
            for (size_t j = 0; j < BYTES; j++)
                block[j] = (uint16_t)(block[j] + p[k * step + j] * seven->tap[k]);
        for (size_t j = 0; j < BYTES; j++)
            sums[i + j] = block[j];
    }
}

GF_INLINE uint64_t smooth_store_block(uint8_t *dst, const vec_i32 x[4], int32_t limit) {
    uint64_t is_tie = 0;
    for (size_t j = 0; j < 4; j++) {
        vec_store_u8_int(dst + j * VEC_FLOATS, x[j] >> 16);
        is_tie |= (uint64_t)vec_less(x[j] & 0xffff, (vec_i32){0} + limit) << j * VEC_FLOATS;
    }
    return is_tie;
}

#endif

/* T is an exact integer in binary32. Values are in units of 2^-16, plus a half and the tie
 * margin. */
static void smooth_round_xy(uint8_t *dst, const float *const sums[7], size_t n,
                            const gf_smooth_seven *seven, size_t prefetch, gf_smooth_ties *ties) {
    const int32_t width = smooth_fixed_width(seven->tie_margin);
    const vec scale = vec_set(65536 * seven->scale), up = vec_set((float)(32768 + width));
    vec taps[7];
    for (int k = 0; k < 7; k++)
        taps[k] = vec_set(seven->tap[k]);
    for (size_t i = 0; i < n && ties->count <= ties->limit; i += BYTES) {
        const size_t at = n - i < BYTES ? n - BYTES : i;
        __builtin_prefetch(dst + at + prefetch, 1);
        vec_i32 x[4];
        _Pragma("GCC unroll 4") for (size_t j = 0; j < 4; j++) {
            vec t = vec_load(sums[0] + i + j * VEC_FLOATS) * taps[0];
            _Pragma("GCC unroll 6") for (size_t k = 1; k < 7; k++) t =
                vec_multiply_add(vec_load(sums[k] + i + j * VEC_FLOATS), taps[k], t);
            x[j] = vec_truncate(vec_multiply_add(t, scale, up));
        }
        const uint64_t is_tie = smooth_store_block(dst + at, x, 2 * width);
        if (__builtin_expect(is_tie != 0, 0))
            smooth_add_ties(ties, at, is_tie);
    }
}

/* Max positions of a window. */
#define WINDOW (2 * GF_SMOOTH_INTEGER_REACH + 1)

/* Run the blur and smooth stages of docs/numerics.md on windows of taps + means - 1 enhanced
 * positions, one window per lane. means: 3 with the smooth stage, 1 without. */
GF_INLINE vec smooth_chain_windows(const gf_smooth_plan *plan, const unsigned taps,
                                   const unsigned means, const vec *in) {
    const vec divisor = vec_set((float)taps), inverse = vec_set(1 / (float)taps);
    const vec w = vec_set(plan->weight);
    vec mean[3] = {0};
    for (unsigned i = 0; i < means; i++) {
        vec sum = in[i];
        for (unsigned k = 1; k < taps; k++)
            sum += in[i + k];
        mean[i] = vec_over_odd(sum, divisor, inverse);
    }
    return means == 1 ? mean[0]
                      : ((mean[1] + mean[0]) * w + mean[2]) * w * vec_set(plan->inner_factor);
}

/* Both axes: the rows of the window are the lanes of the chain along x. */
GF_INLINE uint8_t smooth_window_result(const gf_smooth_plan *plan, const unsigned taps,
                                       const unsigned means, const uint8_t *first, ptrdiff_t step,
                                       const ptrdiff_t stride) {
    const ptrdiff_t count = (ptrdiff_t)(taps + means - 1);
    const vec gain = vec_set(plan->gain);
    uint8_t samples[7][16] = {0}, result[VEC_FLOATS];
    float column[16];
    vec window[WINDOW];
    for (ptrdiff_t k = 0; stride && k < count; k++)
        for (ptrdiff_t y = 0; y < count; y++)
            samples[k][y] = first[y * stride + k * step];
    for (ptrdiff_t y = 0; stride && y < count; y += VEC_FLOATS) {
        for (ptrdiff_t k = 0; k < count; k++)
            window[k] = vec_load_u8(samples[k] + y) * gain;
        vec_store(column + y, smooth_chain_windows(plan, taps, means, window));
    }
    for (ptrdiff_t k = 0; k < count; k++)
        window[k] = vec_set(stride ? column[k] : (float)first[k * step]) * gain;
    vec_store_u8(result, smooth_chain_windows(plan, taps, means, window));
    return result[0];
}

GF_INLINE void smooth_resolve_list(const gf_smooth_plan *plan, const unsigned taps,
                                   const unsigned means, uint8_t *dst, const uint8_t *first,
                                   const ptrdiff_t steps[2], const gf_smooth_ties *ties) {
    for (size_t i = 0; i < ties->count; i++) {
        const uint16_t at = ties->indices[i];
        dst[at] = steps[1] ? smooth_window_result(plan, taps, means, first + at, steps[0], steps[1])
                           : smooth_window_result(plan, taps, means, first + at, steps[0], 0);
    }
}

static void smooth_resolve(const gf_smooth_plan *plan, uint8_t *dst, const uint8_t *first,
                           ptrdiff_t step, ptrdiff_t stride, const gf_smooth_ties *ties) {
    const unsigned taps = 2 * plan->radius + 1, means = plan->smooth ? 3 : 1;
    const ptrdiff_t steps[2] = {step, stride};
    if (taps == 5 && means == 3) /* constants, for the compiler */
        smooth_resolve_list(plan, 5, 3, dst, first, steps, ties);
    else
        smooth_resolve_list(plan, taps, means, dst, first, steps, ties);
}

/* ---- sums of equal taps ---------------------------------------------------------------------- */

/* 16-bit lanes in scratch. Loops process whole vectors, past n into the padding. */
#define WORDS (2 * VEC_FLOATS)

static inline void smooth_store_words(uint16_t *p, vec_words x) {
    memcpy(p, &x, sizeof x);
}

static void smooth_add_samples(uint16_t *restrict sums, const uint8_t *restrict samples, size_t n) {
    for (size_t i = 0; i < n; i++)
        sums[i] = (uint16_t)(sums[i] + samples[i]);
}

/* Double the number of samples per sum from h to 2h or 2h + 1, following the binary digits of
 * `taps` from the second on. */
static void smooth_along(uint16_t *restrict sums, const uint8_t *restrict first, size_t step,
                         unsigned taps, size_t n) {
    const size_t all = n + (taps - 1) * step;
    for (size_t i = 0; i < all; i++)
        sums[i] = first[i];
    unsigned digit = 1, have = 1;
    while (2 * digit <= taps)
        digit *= 2;
    while ((digit /= 2)) {
        /* Ascending: later sums are read before they change. */
        const uint16_t *later = sums + have * step;
        for (size_t i = 0; i < n + (taps - 2 * have) * step; i += WORDS)
            smooth_store_words(sums + i, vec_load_words(sums + i) + vec_load_words(later + i));
        have *= 2;
        if (taps & digit) {
            smooth_add_samples(sums, first + have * step, n + (taps - have - 1) * step);
            have++;
        }
    }
}

static void smooth_slide(uint16_t *restrict to, const uint16_t *restrict from,
                         const uint8_t *restrict in, const uint8_t *restrict out, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = (uint16_t)(from[i] + in[i] - out[i]);
}

/* ---- sums to samples ------------------------------------------------------------------------- */

/* Values are in units of 2^-16, plus a half and the tie margin. The upper 16 bits are the rounded
 * value. The lower 16 bits of a near-tie are less than twice the margin. */
static void smooth_round_sums(uint8_t *dst, const uint16_t *before, const uint16_t *here,
                              const uint16_t *after, size_t n, const gf_smooth_integer *weights,
                              gf_smooth_ties *ties) {
    const int32_t width = smooth_fixed_width(weights->tie_margin);
    const vec near = vec_set(65536 * weights->near), next = vec_set(65536 * weights->next);
    const vec up = vec_set((float)(32768 + width));
    const vec_i32 limit = (vec_i32){0} + 2 * width;
    uint8_t tail[WORDS] = {0};
    for (size_t i = 0; i < n && ties->count <= ties->limit; i += WORDS) {
        uint8_t *to = n - i < WORDS ? tail : dst + i;
        uint16_t two[WORDS];
        uint64_t is_tie = 0;
        smooth_store_words(two, vec_load_words(before + i) + vec_load_words(here + i));
        for (size_t j = 0; j < WORDS; j += VEC_FLOATS) {
            const vec other = vec_multiply_add(vec_load_u16(after + i + j), next, up);
            const vec_i32 x = vec_truncate(vec_multiply_add(vec_load_u16(two + j), near, other));
            vec_store_u8_int(to + j, x >> 16);
            is_tie |= (uint64_t)vec_less(x & 0xffff, limit) << j;
        }
        if (n - i < WORDS) {
            memcpy(dst + i, tail, n - i);
            is_tie &= (UINT64_C(1) << (n - i)) - 1;
        }
        if (__builtin_expect(is_tie != 0, 0))
            smooth_add_ties(ties, i, is_tie);
    }
}

const gf_smooth_simd GF_SIMD_NAME(gf_smooth_simd) = {
    .load = smooth_load,
    .blur = smooth_blur,
    .blur_rows = smooth_blur_rows,
    .finish = smooth_finish,
    .blend = smooth_blend,
    .seven_scales = VEC_FLOATS >= 8,
    .seven = smooth_seven,
    .sums_x = smooth_sums_x,
    .round_xy = smooth_round_xy,
    .resolve = smooth_resolve,
    .along = smooth_along,
    .add = smooth_add_samples,
    .slide = smooth_slide,
    .round = smooth_round_sums,
};

void GF_SIMD_NAME(gf_smooth_cpu)(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                                 uint32_t parts, void *scratch) {
    gf_smooth_compute(&GF_SIMD_NAME(gf_smooth_simd), plan, strip, part, parts, scratch);
}
