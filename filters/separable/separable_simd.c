/* Loops of the separable engine, compiled once per SIMD level. */
#include "core/vec.h"
#include "separable/separable_cpu.h"

/* Prefetch bytes [i, i + bytes) of the rows that the next group loads and stores in place of row
 * y: spread over the sums, they take 0.7 times the time of a load in one go. */
static inline void separable_prefetch(const gf_separable_group *group, size_t y, size_t i,
                                      size_t bytes) {
    for (size_t line = i; line < i + bytes; line += 64) {
        __builtin_prefetch(group->next + y * group->in_stride + line);
        __builtin_prefetch(group->out + (y + GF_SEPARABLE_GROUP) * group->out_stride + line, 1);
    }
}

/* ---- binary32 and binary64 ------------------------------------------------------------------- */

typedef float real_f32;
typedef vec reals_f32;
typedef double real_f64;
typedef double reals_f64 __attribute__((vector_size(4 * VEC_FLOATS)));
typedef uint32_t vec_u32 __attribute__((vector_size(4 * VEC_FLOATS)));
typedef int64_t vec_i64 __attribute__((vector_size(4 * VEC_FLOATS)));
typedef int32_t half_i32 __attribute__((vector_size(2 * VEC_FLOATS)));
typedef uint16_t half_u16 __attribute__((vector_size(VEC_FLOATS)));

#define reals_load_f32 vec_load
#define reals_store_f32 vec_store
#define reals_set_f32 vec_set
#define reals_fma_f32 vec_fma
#define reals_from_f32 vec_load_samples
#define reals_to_f32 vec_store_samples
#define reals_by_type_f32 GF_BY_TYPE

static inline vec reals_choose_f32(vec_i32 mask, vec a, vec b) {
    return (vec)((mask & (vec_i32)a) | (~mask & (vec_i32)b));
}

static inline vec reals_over_f32(vec x, uint32_t count) {
    return vec_over_odd(x, vec_set((float)count), vec_set(1 / (float)count));
}

static inline reals_f64 reals_choose_f64(vec_i64 mask, reals_f64 a, reals_f64 b) {
    return (reals_f64)((mask & (vec_i64)a) | (~mask & (vec_i64)b));
}

static inline reals_f64 reals_load_f64(const double *p) {
    reals_f64 x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void reals_store_f64(double *p, reals_f64 x) {
    memcpy(p, &x, sizeof x);
}

static inline reals_f64 reals_set_f64(double x) {
    return x - (reals_f64){0};
}

static inline reals_f64 reals_fma_f64(reals_f64 a, reals_f64 b, reals_f64 c) {
#if VEC_FLOATS >= 8
    return VEC_OP(fmadd_pd)(a, b, c);
#elif defined(GF_NEON)
    return (reals_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return (reals_f64){__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
#endif
}

/* DOUBLE is for u16 only, and never for box. */
#define reals_by_type_f64(type, function, ...) function(GF_U16, __VA_ARGS__)

static inline reals_f64 reals_from_f64(const gf_type type, const void *row, size_t i) {
    half_u16 x;
    memcpy(&x, (const uint16_t *)row + i, sizeof x);
    return __builtin_convertvector(__builtin_convertvector(x, half_i32), reals_f64);
}

static inline reals_f64 reals_over_f64(reals_f64 x, uint32_t count) {
    return x;
}

/* Clamp, and round by adding 2^52: the low bits of the sum are the integer. */
static inline void reals_to_f64(const gf_type type, void *row, size_t i, reals_f64 x) {
    const reals_f64 max = reals_set_f64(65535);
    x = reals_choose_f64(x > 0, x, reals_set_f64(0));
    x = reals_choose_f64(x < max, x, max);
    const half_u16 samples = __builtin_convertvector((vec_i64)(x + 0x1p52), half_u16);
    memcpy((uint16_t *)row + i, &samples, sizeof samples);
}

#define TYPE f32
#include "separable/separable_real_tmpl.h"
#define TYPE f64
#include "separable/separable_real_tmpl.h"

/* ---- fixed point ----------------------------------------------------------------------------- */

#define WORDS (2 * VEC_FLOATS)

static void fixed_widen(uint16_t *restrict to, const uint8_t *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

#if VEC_FLOATS >= 8

static inline vec_bits fixed_sum(const uint16_t *a, const uint16_t *b) {
    return VEC_OP(add_epi16)(vec_load_bits(a), vec_load_bits(b));
}

static inline vec_bits fixed_multiply_add(vec_bits s, vec_bits pairs, vec_bits taps) {
#if VEC_FLOATS == 16
    return _mm512_dpwssd_epi32(s, pairs, taps);
#else
    return VEC_OP(add_epi32)(s, VEC_OP(madd_epi16)(pairs, taps));
#endif
}

/* Interleave the words of a and b, and add the products of the pairs with a pair of taps. */
static inline void fixed_add(vec_bits s[2], vec_bits a, vec_bits b, vec_bits taps) {
    s[0] = fixed_multiply_add(s[0], VEC_OP(unpacklo_epi16)(a, b), taps);
    s[1] = fixed_multiply_add(s[1], VEC_OP(unpackhi_epi16)(a, b), taps);
}

static inline vec_bits fixed_words(const vec_bits s[2]) {
    return VEC_OP(packs_epi32)(VEC_OP(srai_epi32)(s[0], 8), VEC_OP(srai_epi32)(s[1], 8));
}

/* Words are interleaved in each 128 bits by unpack instructions; pack instructions reverse it. */
GF_INLINE void fixed_along_r(int16_t *to, const uint16_t *a, const uint16_t *b, size_t n,
                             ptrdiff_t step, const uint32_t *taps, const size_t r) {
    const vec_bits bias = VEC_OP(set1_epi32)(GF_SEPARABLE_X_BIAS);
    for (size_t i = 0; i < n; i += WORDS, a += WORDS, b += WORDS) {
        vec_bits s[2] = {bias, bias}, z[2] = {bias, bias};
        const uint16_t *a_left = a, *a_right = a, *b_left = b, *b_right = b;
        for (size_t k = 0; k <= r; k += 2) {
            const vec_bits t = VEC_OP(set1_epi32)((int)taps[k / 2]);
            const ptrdiff_t next = k < r ? step : 0;
            fixed_add(s, fixed_sum(a_left, a_right), fixed_sum(a_left - next, a_right + next), t);
            fixed_add(z, fixed_sum(b_left, b_right), fixed_sum(b_left - next, b_right + next), t);
            a_left -= 2 * step;
            a_right += 2 * step;
            b_left -= 2 * step;
            b_right += 2 * step;
        }
        const vec_bits x = fixed_words(s), y = fixed_words(z);
        vec_store_bits(to + 2 * i, VEC_OP(unpacklo_epi16)(x, y));
        vec_store_bits(to + 2 * i + WORDS, VEC_OP(unpackhi_epi16)(x, y));
    }
}

static void fixed_along(int16_t *to, const uint16_t *a, const uint16_t *b, size_t n, size_t step,
                        const gf_separable_pairs *taps) {
    const size_t r = taps->radius[0];
    a += r * step;
    b += r * step;
    if (r == 4) /* sigma 1: an unrolled loop takes 0.94 times as long */
        fixed_along_r(to, a, b, n, (ptrdiff_t)step, taps->x, 4);
    else
        fixed_along_r(to, a, b, n, (ptrdiff_t)step, taps->x, r);
}

typedef vec_bits fixed_sums[4];

/* Store four vectors of sums as 2 * WORDS bytes; only n of them if n is smaller. The sums are
 * 2^31 below those to round. */
static inline void fixed_store(uint8_t *to, const fixed_sums s, size_t n) {
    const vec_bits a =
        VEC_OP(packs_epi32)(VEC_OP(srai_epi32)(s[0], 24), VEC_OP(srai_epi32)(s[1], 24));
    const vec_bits b =
        VEC_OP(packs_epi32)(VEC_OP(srai_epi32)(s[2], 24), VEC_OP(srai_epi32)(s[3], 24));
    const vec_bits mixed = (vec_bits)((vec_u32)VEC_OP(packs_epi16)(a, b) ^ 0x80808080u);
#if VEC_FLOATS == 16
    const vec_bits order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    const vec_bits bytes = _mm512_permutexvar_epi64(order, mixed);
#else
    const vec_bits bytes = _mm256_permute4x64_epi64(mixed, 0xd8);
#endif
    if (n >= 2 * WORDS)
        vec_store_bits(to, bytes);
    else
        memcpy(to, &bytes, n);
}

/* Add the products of pair j to the sums of both outputs. first: set the sums; a constant. */
GF_INLINE void fixed_block(fixed_sums s[2], const int16_t *pair, const gf_separable_pairs *taps,
                           size_t j, const bool first) {
    for (size_t q = 0; q < 4; q++) {
        const vec_bits v = vec_load_bits(pair + q * WORDS);
        for (size_t odd = 0; odd < 2; odd++) {
            const vec_bits t = VEC_OP(set1_epi32)((int)taps->y[odd][j]);
            s[odd][q] = first ? VEC_OP(madd_epi16)(v, t) : fixed_multiply_add(s[odd][q], v, t);
        }
    }
}

#elif defined(GF_NEON)

static inline int16x8_t fixed_sum(const uint16_t *a, const uint16_t *b) {
    return vreinterpretq_s16_u16(vaddq_u16(vld1q_u16(a), vld1q_u16(b)));
}

/* Add the products of eight words with a tap. */
static inline void fixed_add(int32x4_t s[2], int16x8_t words, uint32_t tap) {
    s[0] = vmlal_n_s16(s[0], vget_low_s16(words), (int16_t)(uint16_t)tap);
    s[1] = vmlal_high_n_s16(s[1], words, (int16_t)(uint16_t)tap);
}

/* Return the eight words of one row. */
GF_INLINE int16x8_t fixed_along_row(const uint16_t *mid, ptrdiff_t step, const uint32_t *taps,
                                    const size_t r) {
    int32x4_t s[2] = {vdupq_n_s32(GF_SEPARABLE_X_BIAS), vdupq_n_s32(GF_SEPARABLE_X_BIAS)};
    const uint16_t *left = mid, *right = mid;
    for (size_t k = 0; k <= r; k += 2) {
        const ptrdiff_t next = k < r ? step : 0;
        fixed_add(s, fixed_sum(left, right), taps[k / 2] & 0xffff);
        fixed_add(s, fixed_sum(left - next, right + next), taps[k / 2] >> 16);
        left -= 2 * step;
        right += 2 * step;
    }
    return vshrn_high_n_s32(vshrn_n_s32(s[0], 8), s[1], 8);
}

static void fixed_along(int16_t *to, const uint16_t *a, const uint16_t *b, size_t n, size_t step,
                        const gf_separable_pairs *taps) {
    const size_t r = taps->radius[0];
    a += r * step;
    b += r * step;
    for (size_t i = 0; i < n; i += WORDS) {
        const int16x8x2_t rows = {{fixed_along_row(a + i, (ptrdiff_t)step, taps->x, r),
                                   fixed_along_row(b + i, (ptrdiff_t)step, taps->x, r)}};
        vst2q_s16(to + 2 * i, rows);
    }
}

/* Sums of 16 samples: products of the first words of pairs in even lanes, others in odd lanes. */
typedef int32x4_t fixed_sums[8];

/* Add the products of pair j to the sums of both outputs. first: set the sums; a constant. */
GF_INLINE void fixed_block(fixed_sums s[2], const int16_t *pair, const gf_separable_pairs *taps,
                           size_t j, const bool first) {
    for (size_t q = 0; q < 4; q++) {
        const int16x8_t v = vld1q_s16(pair + q * WORDS);
        for (size_t odd = 0; odd < 2; odd++) {
            const int16x8_t t = vreinterpretq_s16_u32(vdupq_n_u32(taps->y[odd][j]));
            int32x4_t *sum = s[odd] + 2 * q;
            sum[0] = vmlal_s16(first ? vdupq_n_s32(0) : sum[0], vget_low_s16(v), vget_low_s16(t));
            sum[1] = vmlal_high_s16(first ? vdupq_n_s32(0) : sum[1], v, t);
        }
    }
}

/* Store 16 samples; only n of them if n is smaller. The sums are 2^31 below those to round. */
static inline void fixed_store(uint8_t *to, const fixed_sums s, size_t n) {
    int16x8_t words[2];
    for (size_t h = 0; h < 2; h++)
        words[h] = vuzp2q_s16(vreinterpretq_s16_s32(vpaddq_s32(s[4 * h], s[4 * h + 1])),
                              vreinterpretq_s16_s32(vpaddq_s32(s[4 * h + 2], s[4 * h + 3])));
    const uint8x16_t bytes =
        veorq_u8(vuzp2q_u8(vreinterpretq_u8_s16(words[0]), vreinterpretq_u8_s16(words[1])),
                 vdupq_n_u8(0x80));
    if (n >= 2 * WORDS)
        vst1q_u8(to, bytes);
    else
        memcpy(to, &bytes, n);
}

#else

/* Written for auto-vectorisation, 64 samples at a time. */
enum { FIXED_BLOCK = 64 };

static inline int16_t fixed_first(uint32_t pair) {
    return (int16_t)(uint16_t)pair;
}

static inline int16_t fixed_second(uint32_t pair) {
    return (int16_t)(uint16_t)(pair >> 16);
}

static void fixed_along_row(int16_t *restrict to, const uint16_t *restrict mid, size_t step,
                            const gf_separable_pairs *taps) {
    const size_t r = taps->radius[0];
    int32_t s[FIXED_BLOCK];
    for (size_t j = 0; j < FIXED_BLOCK; j++)
        s[j] = GF_SEPARABLE_X_BIAS;
    for (size_t k = 0; k <= r; k += 2) {
        const size_t first = k * step, second = (k < r ? k + 1 : k) * step;
        const int16_t t = fixed_first(taps->x[k / 2]), u = fixed_second(taps->x[k / 2]);
        const uint16_t *a = mid - first, *b = mid + first, *c = mid - second, *d = mid + second;
        for (size_t j = 0; j < FIXED_BLOCK; j++)
            s[j] += (int16_t)(a[j] + b[j]) * t + (int16_t)(c[j] + d[j]) * u;
    }
    for (size_t j = 0; j < FIXED_BLOCK; j++)
        to[2 * j] = (int16_t)(s[j] >> 8);
}

static void fixed_along(int16_t *to, const uint16_t *a, const uint16_t *b, size_t n, size_t step,
                        const gf_separable_pairs *taps) {
    const size_t mid = taps->radius[0] * step;
    for (size_t i = 0; i < n; i += FIXED_BLOCK) {
        fixed_along_row(to + 2 * i, a + mid + i, step, taps);
        fixed_along_row(to + 2 * i + 1, b + mid + i, step, taps);
    }
}

static void fixed_across_row(uint8_t *out, const void *const *pairs, size_t n,
                             const gf_separable_pairs *taps, const uint32_t *y) {
    for (size_t i = 0; i < n; i += FIXED_BLOCK) {
        uint32_t s[FIXED_BLOCK];
        uint8_t block[FIXED_BLOCK];
        for (size_t j = 0; j < FIXED_BLOCK; j++)
            s[j] = 1u << 31;
        for (size_t k = 0; k < taps->y_pairs; k++) {
            const int16_t t = fixed_first(y[k]), u = fixed_second(y[k]);
            const int16_t *restrict pair = pairs[k <= taps->radius[1] ? k : (k - 1) / 2];
            for (size_t j = 0; j < FIXED_BLOCK; j++)
                s[j] += (uint32_t)(pair[2 * (i + j)] * t + pair[2 * (i + j) + 1] * u);
        }
        for (size_t j = 0; j < FIXED_BLOCK; j++)
            block[j] = (uint8_t)(s[j] >> 24);
        memcpy(out + i, block, n - i < FIXED_BLOCK ? n - i : FIXED_BLOCK);
    }
}

static void fixed_across(const gf_separable_group *group, const gf_separable_pairs *taps) {
    for (size_t y = 0; y < group->rows; y++)
        fixed_across_row(group->out + y * group->out_stride, group->window + y / 2, group->n, taps,
                         taps->y[y % 2]);
}

#endif

#if VEC_FLOATS >= 8 || defined(GF_NEON)

static void fixed_across(const gf_separable_group *group, const gf_separable_pairs *taps) {
    const size_t n = group->n, r = taps->radius[1];
    for (size_t i = 0; i < n; i += 2 * WORDS)
        for (size_t y = 0; y < group->rows; y += 2) {
            const void *const *pairs = group->window + y / 2;
            uint8_t *out = group->out + y * group->out_stride + i;
            separable_prefetch(group, y, i, 2 * WORDS);
            separable_prefetch(group, y + 1, i, 2 * WORDS);
            fixed_sums s[2];
            fixed_block(s, (const int16_t *)pairs[0] + 2 * i, taps, 0, true);
            for (size_t j = 1; j <= r; j++)
                fixed_block(s, (const int16_t *)pairs[j] + 2 * i, taps, j, false);
            for (size_t j = r + 1; j < taps->y_pairs; j++)
                fixed_block(s, (const int16_t *)pairs[(j - 1) / 2] + 2 * i, taps, j, false);
            for (size_t odd = 0; odd < 2 && y + odd < group->rows; odd++)
                fixed_store(out + odd * group->out_stride, s[odd], n - i);
        }
}

#endif

/* ---- exact sums ------------------------------------------------------------------------------ */

typedef uint16_t word_u16;
typedef uint32_t word_u32;
typedef uint64_t word_u64;
typedef int16_t signed_word_u16;
typedef int32_t signed_word_u32;
typedef int64_t signed_word_u64;

#define SAMPLE_OF(word, type, row, i)                                                              \
    (word)((type) == GF_U8 ? ((const uint8_t *)(row))[i] : ((const uint16_t *)(row))[i])

/* Store the sums of each channel up to each column, modulo 2^32. */
static void sums_scan_u32(const gf_separable_line *line, uint32_t *restrict to,
                          const uint32_t *restrict from, size_t n) {
    const size_t channels = line->channels;
#if VEC_FLOATS >= 8
    const size_t bytes = gf_type_bytes(line->type);
    vec_u32 last = {0}, carry = {0}, shifts[4] = {{0}};
    const vec_u32 zero = {0};
    size_t steps = 0;
    /* Lanes of (zero, x), for x moved by 1, 2, 4, ... pixels. */
    for (size_t by = channels; by < VEC_FLOATS; by *= 2, steps++)
        for (size_t i = 0; i < VEC_FLOATS; i++)
            shifts[steps][i] = (uint32_t)(VEC_FLOATS + i - by);
    for (size_t i = 0; i < VEC_FLOATS; i++)
        carry[i] = (uint32_t)(VEC_FLOATS - channels + i % channels);
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_u32 x;
        __builtin_prefetch(line->next + i * bytes);
        memcpy(&x, from + i, sizeof x);
        for (size_t j = 0; j < steps; j++)
            x += __builtin_shuffle(zero, x, shifts[j]);
        last = x + __builtin_shuffle(last, carry);
        memcpy(to + i, &last, sizeof last);
    }
#else
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] + (i < channels ? 0 : to[i - channels]);
#endif
}

/* Sum a few columns directly. Divide by the upper half of a product of 16-bit integers. */
static void sums_across_u16(const gf_separable_line *line, const void *columns, void *sums,
                            size_t n) {
    const uint16_t *first = columns, multiplier = (uint16_t)line->mean->multiplier;
    const uint16_t half = (uint16_t)line->mean->half;
    const uint32_t shift = line->mean->shift;
    uint16_t *restrict s = sums;
    uint8_t *restrict out = line->out;
    for (size_t i = 0; i < n; i += WORDS) {
        __builtin_prefetch(line->next + i);
        vec_words x = vec_load_words(first + i);
        for (size_t k = 1; k <= 2 * (size_t)line->radius; k++)
            x += vec_load_words(first + i + k * line->channels);
        memcpy(s + i, &x, sizeof x);
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t x = (uint16_t)(s[i] + half);
        out[i] = (uint8_t)((uint16_t)(x * multiplier >> 16) >> shift);
    }
}

#define TYPE u16
#include "separable/separable_sums_tmpl.h"
#define TYPE u32
#include "separable/separable_sums_tmpl.h"
#define TYPE u64
#include "separable/separable_sums_tmpl.h"

static void sums_across_u32(const gf_separable_line *line, const void *columns, void *sums,
                            size_t n) {
    const size_t channels = line->channels;
    memset(sums, 0, channels * sizeof(uint32_t));
    sums_scan_u32(line, (uint32_t *)sums + channels, columns, n + 2 * line->radius * channels);
    sums_means_u32(line, sums, n);
}

static void sums_across_u64(const gf_separable_line *line, const void *columns, void *sums,
                            size_t n) {
    const size_t channels = line->channels, all = n + 2 * line->radius * channels;
    const uint64_t *from = columns;
    uint64_t *restrict to = (uint64_t *)sums + channels;
    memset(sums, 0, channels * sizeof *to);
    for (size_t i = 0; i < all; i++)
        to[i] = from[i] + (i < channels ? 0 : to[i - channels]);
    sums_means_u64(line, sums, n);
}

/* ---- one level ------------------------------------------------------------------------------- */

static const gf_separable_simd level = {
    .real = {{real_load_f32, real_along_f32, real_across_f32},
             {real_load_f64, real_along_f64, real_across_f64}},
    .widen = fixed_widen,
    .fixed_along = fixed_along,
    .fixed_across = fixed_across,
    .sums = {{sums_slide_u16, sums_across_u16},
             {sums_slide_u32, sums_across_u32},
             {sums_slide_u64, sums_across_u64}},
};

void GF_SIMD_NAME(gf_separable_cpu)(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                                    uint32_t parts, void *scratch) {
    gf_separable_compute(&level, plan, strip, part, parts, scratch);
}
