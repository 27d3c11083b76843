/* Vectors of binary32 for the SIMD level of the current compilation.
 *
 * Each file *_simd.c is compiled once per level; GF_SIMD_NAME(x) appends the level to its symbols.
 * Arithmetic uses GCC's vector extension, which rounds every operation separately. Conversions use
 * intrinsics where the compiler generates slow code. */
#ifndef GF_VEC_H
#define GF_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/image.h"
#include "core/machine.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include <immintrin.h>
#define GF_SIMD_NAME(x) x##_avx512
#define VEC_FLOATS 16
#elif defined(__AVX2__)
#include <immintrin.h>
#define GF_SIMD_NAME(x) x##_avx2
#define VEC_FLOATS 8
#else
#ifdef GF_NEON
#include <arm_neon.h>
#define GF_SIMD_NAME(x) x##_neon
#else
#define GF_SIMD_NAME(x) x##_portable
#endif
#define VEC_FLOATS 4
#endif

typedef float vec __attribute__((vector_size(4 * VEC_FLOATS)));
typedef int32_t vec_i32 __attribute__((vector_size(4 * VEC_FLOATS)));
typedef uint16_t vec_words __attribute__((vector_size(4 * VEC_FLOATS)));
typedef float vec_unaligned __attribute__((vector_size(4 * VEC_FLOATS), aligned(4), may_alias));

/* A file *_tmpl.h is included once per sample type where vectors or sums differ by type. TYPE is
 * its parameter: u8, u16 or f32. GF_T(x) is x_u8 for u8. */
#define GF_T(x) GF_T_JOIN(x, TYPE)
#define GF_T_JOIN(x, type) GF_T_PASTE(x, type)
#define GF_T_PASTE(x, type) x##_##type

typedef uint8_t sample_u8;
typedef uint16_t sample_u16;
typedef float sample_f32;
typedef uint16_t wide_u8; /* holds the product of two samples */
typedef uint32_t wide_u16;

static inline vec vec_load(const float *p) {
    return (vec) * (const vec_unaligned *)p;
}

static inline void vec_store(float *p, vec x) {
    *(vec_unaligned *)p = (vec_unaligned)x;
}

static inline vec_words vec_load_words(const void *p) {
    vec_words x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline vec vec_set(float x) {
    return x - (vec){0}; /* not x + 0, which turns -0 into +0 */
}

/* Return all ones in each lane that is not NaN. */
static inline vec_i32 vec_is_number(vec x) {
    return x == x; /* NOLINT(misc-redundant-expression) */
}

/* Truncate towards zero. Requires |x| < 2^31. */
static inline vec_i32 vec_truncate(vec x) {
    return __builtin_convertvector(x, vec_i32);
}

#if VEC_FLOATS >= 8

/* Integer vectors for intrinsics: VEC_OP(add_epi16) is the intrinsic of this level. */
#if VEC_FLOATS == 16
typedef __m512i vec_bits;
#define VEC_OP(name) _mm512_##name
#define vec_broadcast _mm512_broadcast_i32x4
#else
typedef __m256i vec_bits;
#define VEC_OP(name) _mm256_##name
#define vec_broadcast _mm256_broadcastsi128_si256
#endif

static inline vec_bits vec_load_bits(const void *p) {
    vec_bits x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void vec_store_bits(void *p, vec_bits x) {
    memcpy(p, &x, sizeof x);
}

#endif

#if VEC_FLOATS == 16

/* Compare lanes: bit l is set if a[l] < b[l]. */
static inline unsigned vec_less(vec_i32 a, vec_i32 b) {
    return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b);
}

/* Store integers in [0, 255] as u8. */
static inline void vec_store_u8_int(uint8_t *p, vec_i32 x) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtusepi32_epi8((__m512i)x));
}

static inline vec vec_load_u8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

static inline vec vec_load_u16(const uint16_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)));
}

/* Clamp to [0, max], map NaN to 0, and round to nearest even. */
static inline __m512i vec_to_int(vec x, float max) {
    return _mm512_cvtps_epi32(
        _mm512_min_ps(_mm512_max_ps(x, _mm512_setzero_ps()), _mm512_set1_ps(max)));
}

static inline void vec_store_u8(uint8_t *p, vec x) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(vec_to_int(x, 255)));
}

static inline void vec_store_u16(uint16_t *p, vec x) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(vec_to_int(x, 65535)));
}

#elif VEC_FLOATS == 8

static inline unsigned vec_less(vec_i32 a, vec_i32 b) {
    return (unsigned)_mm256_movemask_ps((vec)(a < b));
}

static inline void vec_store_u8_int(uint8_t *p, vec_i32 x) {
    const __m256i i = (__m256i)x;
    const __m128i w = _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(w, w));
}

static inline vec vec_load_u8(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline vec vec_load_u16(const uint16_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)));
}

/* Clamp to [0, max], map NaN to 0, and round to nearest even. Return eight u16 in order. */
static inline __m128i vec_to_u16(vec x, float max) {
    __m256i i = _mm256_cvtps_epi32(
        _mm256_min_ps(_mm256_max_ps(x, _mm256_setzero_ps()), _mm256_set1_ps(max)));
    return _mm_packus_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
}

static inline void vec_store_u8(uint8_t *p, vec x) {
    __m128i i = vec_to_u16(x, 255);
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(i, i));
}

static inline void vec_store_u16(uint16_t *p, vec x) {
    _mm_storeu_si128((__m128i *)p, vec_to_u16(x, 65535));
}

#elif defined(GF_NEON)

static inline unsigned vec_less(vec_i32 a, vec_i32 b) {
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcltq_s32((int32x4_t)a, (int32x4_t)b), bits));
}

/* Return bit i for byte i that is all ones; the others are 0. */
static inline uint64_t vec_mask64(const uint8x16_t bytes[4]) {
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const uint8x16_t a = vpaddq_u8(vandq_u8(bytes[0], bits), vandq_u8(bytes[1], bits));
    const uint8x16_t b = vpaddq_u8(vandq_u8(bytes[2], bits), vandq_u8(bytes[3], bits));
    const uint8x16_t c = vpaddq_u8(a, b);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(c, c)), 0);
}

/* Store the low bytes of four numbers. */
static inline void vec_store_low_bytes(uint8_t *p, uint16x4_t x) {
    const uint8x8_t bytes = vqmovn_u16(vcombine_u16(x, x));
    memcpy(p, &bytes, 4);
}

static inline void vec_store_u8_int(uint8_t *p, vec_i32 x) {
    vec_store_low_bytes(p, vqmovun_s32((int32x4_t)x));
}

static inline vec vec_load_u8(const uint8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const uint16x8_t words = vmovl_u8(vcreate_u8(four));
    return (vec)vcvtq_f32_u32(vmovl_u16(vget_low_u16(words)));
}

static inline vec vec_load_u16(const uint16_t *p) {
    return (vec)vcvtq_f32_u32(vmovl_u16(vld1_u16(p)));
}

/* The conversion rounds to nearest even, and maps NaN and negative numbers to 0. */
static inline void vec_store_u8(uint8_t *p, vec x) {
    vec_store_low_bytes(p, vqmovn_u32(vcvtnq_u32_f32((float32x4_t)x)));
}

static inline void vec_store_u16(uint16_t *p, vec x) {
    vst1_u16(p, vqmovn_u32(vcvtnq_u32_f32((float32x4_t)x)));
}

#else

typedef uint8_t vec_u8 __attribute__((vector_size(VEC_FLOATS)));
typedef uint16_t vec_u16 __attribute__((vector_size(2 * VEC_FLOATS)));

static inline unsigned vec_less(vec_i32 a, vec_i32 b) {
    const vec_i32 x = a < b;
    return (unsigned)((x[0] & 1) | (x[1] & 2) | (x[2] & 4) | (x[3] & 8));
}

static inline void vec_store_u8_int(uint8_t *p, vec_i32 x) {
    x |= (x > 255); /* saturate: the low byte becomes 255 */
    const vec_u8 i = __builtin_convertvector(x, vec_u8);
    memcpy(p, &i, sizeof i);
}

static inline vec vec_load_u8(const uint8_t *p) {
    vec_u8 x;
    memcpy(&x, p, sizeof x);
    return __builtin_convertvector(__builtin_convertvector(x, vec_i32), vec);
}

static inline vec vec_load_u16(const uint16_t *p) {
    vec_u16 x;
    memcpy(&x, p, sizeof x);
    return __builtin_convertvector(__builtin_convertvector(x, vec_i32), vec);
}

/* Clamp to [0, max], map NaN to 0, and round to nearest even. Adding 2^23 leaves a float below 2^22
 * no bits below 1: the addition rounds, and its low bits are the integer. */
static inline vec_i32 vec_to_int(vec x, float max) {
    vec_i32 above = x < vec_set(max);
    x = (vec)(((vec_i32)x & above) | ((vec_i32)vec_set(max) & ~above & vec_is_number(x)));
    x = (vec)((vec_i32)x & (x > vec_set(0)));
    return (vec_i32)(x + vec_set(8388608.0f)) & 0x3fffff;
}

static inline void vec_store_u8(uint8_t *p, vec x) {
    vec_u8 i = __builtin_convertvector(vec_to_int(x, 255), vec_u8);
    memcpy(p, &i, sizeof i);
}

static inline void vec_store_u16(uint16_t *p, vec x) {
    vec_u16 i = __builtin_convertvector(vec_to_int(x, 65535), vec_u16);
    memcpy(p, &i, sizeof i);
}

#endif

/* Compute a * b + c, rounded once. */
static inline vec vec_fma(vec a, vec b, vec c) {
#if VEC_FLOATS == 16
    return _mm512_fmadd_ps(a, b, c);
#elif VEC_FLOATS == 8
    return _mm256_fmadd_ps(a, b, c);
#elif defined(GF_NEON)
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    for (int l = 0; l < VEC_FLOATS; l++)
        c[l] = fmaf(a[l], b[l], c[l]);
    return c;
#endif
}

/* Compute a * b + c, rounded once or twice depending on the level: not for bit-exact values. */
static inline vec vec_multiply_add(vec a, vec b, vec c) {
#if VEC_FLOATS >= 8 || defined(GF_NEON)
    return vec_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* Divide by an odd integer n < 2^23, correctly rounded for every x; inverse = fl(1 / n).
 *
 * q = fl(x * inverse) is within one ulp of x / n, r = x - q * n is exact, and fl(q + r * inverse)
 * is the correctly rounded quotient (Markstein). This also holds for subnormal quotients: x / n is
 * never a midpoint between two of them. The sign of a zero would be wrong, therefore zeros and
 * infinities are copied from x. tests/unit/filters/test_smooth_simd.c tests all values. On narrower
 * vectors, a plain division is equally fast. */
static inline vec vec_over_odd(vec x, vec n, vec inverse) {
#if VEC_FLOATS == 16
    const vec q = x * inverse;
    const vec r = _mm512_fnmadd_ps(q, n, x);
    /* Return x where x is a zero or an infinity. */
    return _mm512_fixupimm_ps(_mm512_fmadd_ps(r, inverse, q), x, _mm512_set1_epi32(0x110100), 0);
#else
    (void)inverse;
    return x / n;
#endif
}

/* Replace NaN by 0x7fc00000. */
static inline vec vec_canonical(vec x) {
    vec_i32 number = vec_is_number(x);
    return (vec)(((vec_i32)x & number) | (0x7fc00000 & ~number));
}

/* Load samples i, i + 1, ... of a row as numbers. The type is a constant at every call. */
GF_INLINE vec vec_load_samples(const gf_type type, const void *row, size_t i) {
    return type == GF_U8    ? vec_load_u8((const uint8_t *)row + i)
           : type == GF_U16 ? vec_load_u16((const uint16_t *)row + i)
                            : vec_load((const float *)row + i);
}

/* Multiply n samples by a factor. Whole vectors are stored: up to VEC_FLOATS - 1 more numbers. */
GF_INLINE void vec_convert(const gf_type type, float *to, const void *from, size_t n,
                           const float factor) {
    const size_t bytes = gf_type_bytes(type);
    size_t i = 0;
    for (; i + VEC_FLOATS <= n; i += VEC_FLOATS)
        vec_store(to + i, vec_load_samples(type, from, i) * vec_set(factor));
    if (i < n) {
        float rest[VEC_FLOATS] = {0};
        memcpy(rest, (const unsigned char *)from + i * bytes, (n - i) * bytes);
        vec_store(to + i, vec_load_samples(type, rest, 0) * vec_set(factor));
    }
}

/* Store samples: integers clamped and rounded, NaN of f32 as 0x7fc00000. */
GF_INLINE void vec_store_samples(const gf_type type, void *row, size_t i, vec x) {
    if (type == GF_U8)
        vec_store_u8((uint8_t *)row + i, x);
    else if (type == GF_U16)
        vec_store_u16((uint16_t *)row + i, x);
    else
        vec_store((float *)row + i, vec_canonical(x));
}

#endif
