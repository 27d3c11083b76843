/* Conversion of samples, vectorized by the compiler. */
#include "core/convert.h"

#include <assert.h>

#include "core/vec.h"

enum { BLOCK = 1024 }; /* samples converted at a time, in the cache; whole pixels with alpha */

/* Samples of one type, aligned. */
typedef union block {
    uint8_t u8[BLOCK];
    uint16_t u16[BLOCK];
    float f32[BLOCK];
} block;

/* Clamp to 0..1; a NaN becomes 0. */
static inline float convert_clamp(float v) {
    const float low = v > 0.0f ? v : 0.0f;
    return low < 1.0f ? low : 1.0f;
}

/* Clamp, multiply by the maximum, and round once, to nearest even: numbers from 2^23, or 2^52, have
 * no fraction. The product is exact in binary64. */
static inline uint32_t convert_unit(float v, float max) {
#ifdef FP_FAST_FMAF
    return gf_float_bits(fmaf(convert_clamp(v), max, 0x1p23f)) & 0xffff;
#else
    const double rounded = (double)convert_clamp(v) * (double)max + 0x1p52;
    return (uint32_t)(int32_t)(rounded - 0x1p52);
#endif
}

/* Replace NaN by 0x7fc00000: the NaN that an operation returns depends on the processor. */
static inline float convert_canonical(float v) {
    const uint32_t bits = gf_float_bits(v);
    return gf_float_of_bits((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits);
}

/* Convert n samples between two types. srgb: between integers and linear light; NULL: none.
 *
 * u16 to u8: v / 257 is rounded to nearest. v / 257 = k + 1/2 would mean 2 v = 257 (2 k + 1), an
 * odd number: there are no ties. */
static void convert_block(gf_type in, gf_type out, const gf_srgb *srgb, block *restrict to,
                          const block *restrict from, size_t n) {
    const gf_srgb tables = srgb ? *srgb : (gf_srgb){0};
    if (in == out)
        memcpy(to, from, n * gf_type_bytes(in));
    else if (srgb && in == GF_U8)
        for (size_t i = 0; i < n; i++)
            to->f32[i] = tables.linear[from->u8[i]];
    else if (srgb && in == GF_U16)
        for (size_t i = 0; i < n; i++)
            to->f32[i] = tables.linear[from->u16[i]];
    else if (srgb && out == GF_U8)
        for (size_t i = 0; i < n; i++)
            to->u8[i] = (uint8_t)gf_srgb_code(&tables, from->f32[i]);
    else if (srgb)
        for (size_t i = 0; i < n; i++)
            to->u16[i] = (uint16_t)gf_srgb_code(&tables, from->f32[i]);
    else if (in == GF_U8 && out == GF_U16)
        for (size_t i = 0; i < n; i++)
            to->u16[i] = (uint16_t)(from->u8[i] * 257u);
    else if (in == GF_U8)
        for (size_t i = 0; i < n; i++)
            to->f32[i] = (float)from->u8[i] / 255.0f;
    else if (in == GF_U16 && out == GF_U8)
        for (size_t i = 0; i < n; i++)
            to->u8[i] = (uint8_t)((from->u16[i] * 255u + 32895u) >> 16);
    else if (in == GF_U16)
        for (size_t i = 0; i < n; i++)
            to->f32[i] = (float)from->u16[i] / 65535.0f;
    else if (out == GF_U8)
        for (size_t i = 0; i < n; i++)
            to->u8[i] = (uint8_t)convert_unit(from->f32[i], 255.0f);
    else
        for (size_t i = 0; i < n; i++)
            to->u16[i] = (uint16_t)convert_unit(from->f32[i], 65535.0f);
}

GF_INLINE void convert_divide(const size_t channels, block *b, size_t n) {
    for (size_t i = 0; i < n; i += channels) {
        const float alpha = convert_clamp(b->f32[i + channels - 1]);
        for (size_t c = 0; c + 1 < channels; c++)
            b->f32[i + c] = alpha > 0.0f ? convert_canonical(b->f32[i + c] / alpha) : 0.0f;
        b->f32[i + channels - 1] = alpha;
    }
}

GF_INLINE void convert_multiply(const size_t channels, block *b, size_t n) {
    for (size_t i = 0; i < n; i += channels)
        for (size_t c = 0; c + 1 < channels; c++)
            b->f32[i + c] = convert_canonical(b->f32[i + c] * b->f32[i + channels - 1]);
}

/* Return the number of samples that convert_clamp changes, except -0. */
static uint32_t convert_count(const block *b, size_t n) {
    uint32_t outside = 0;
    for (size_t i = 0; i < n; i++)
        outside += !(b->f32[i] >= 0.0f && b->f32[i] <= 1.0f);
    return outside;
}

uint64_t GF_SIMD_NAME(gf_convert_samples)(const gf_conversion *how, void *dst, const void *src,
                                          uint64_t samples) {
    const gf_type from = how->from, to = how->to;
    const size_t from_bytes = gf_type_bytes(from), to_bytes = gf_type_bytes(to);
    const gf_format stored = {.channels = how->channels, .type = to, .alpha = how->alpha};
    uint64_t outside = 0;
    block in, out, alpha;
    assert(!how->alpha || stored.channels == 2 || stored.channels == 4);
    for (uint64_t i = 0, n; i < samples; i += n) {
        n = gf_min(samples - i, BLOCK);
        memcpy(&in, (const unsigned char *)src + i * from_bytes, n * from_bytes);
        if (how->divide)
            stored.channels == 2 ? convert_divide(2, &in, n) : convert_divide(4, &in, n);
        if (from == GF_F32 && to != GF_F32)
            outside += convert_count(&in, n);
        convert_block(from, to, how->srgb, &out, &in, n);
        if (how->srgb && how->alpha) {
            convert_block(from, to, NULL, &alpha, &in, n);
            gf_restore_alpha(&stored, alpha.u8, out.u8, n / stored.channels);
        }
        if (how->multiply)
            stored.channels == 2 ? convert_multiply(2, &out, n) : convert_multiply(4, &out, n);
        memcpy((unsigned char *)dst + i * to_bytes, &out, n * to_bytes);
    }
    return outside;
}
