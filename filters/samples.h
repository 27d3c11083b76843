/* Helpers shared by filters: samples of a row as numbers, luma, and the order of binary64 sums. */
#ifndef GF_SAMPLES_H
#define GF_SAMPLES_H

#include <math.h>
#include <string.h>

#include "core/image.h"
#include "core/machine.h"

/* The largest sample of a type; 1 for f32. */
GF_BOTH uint32_t gf_type_max(gf_type type) {
    return type == GF_U8 ? 255 : type == GF_U16 ? 65535 : 1;
}

/* ---- single samples, for golden functions ---------------------------------------------------- */

/* Return sample i of a row: the integer, or the bits of an f32. */
static inline uint32_t gf_sample_bits(gf_type type, const void *row, uint64_t i) {
    uint32_t bits;
    if (type == GF_U8)
        return ((const uint8_t *)row)[i];
    if (type == GF_U16)
        return ((const uint16_t *)row)[i];
    memcpy(&bits, (const float *)row + i, sizeof bits);
    return bits;
}

/* Convert the result of gf_sample_bits to a number. Integers are exact in binary32. */
static inline float gf_sample_number(gf_type type, uint32_t bits) {
    float number;
    if (type != GF_F32)
        return (float)bits;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline float gf_get_sample(gf_type type, const void *row, uint64_t i) {
    return gf_sample_number(type, gf_sample_bits(type, row, i));
}

/* Store x as sample i of a row. Integers: x is clamped, because converting a float outside their
 * range is undefined, and rounded to nearest even; NaN becomes 0. f32: NaN becomes 0x7fc00000. */
static inline void gf_put_sample(gf_type type, void *row, uint64_t i, float x) {
    const float max = type == GF_U8 ? 255 : 65535;
    const float clamped = !(x > 0) ? 0 : x < max ? x : max;
    const uint32_t nan = 0x7fc00000;
    if (type == GF_U8)
        ((uint8_t *)row)[i] = (uint8_t)rintf(clamped);
    else if (type == GF_U16)
        ((uint16_t *)row)[i] = (uint16_t)rintf(clamped);
    else
        memcpy((float *)row + i, x != x ? (const void *)&nan : (const void *)&x, sizeof x);
}

/* Return the luma of the pixel that begins at sample i, for golden functions. */
static inline float gf_golden_luma(gf_type type, const void *row, uint64_t i) {
    if (type == GF_F32)
        return 0.2126f * gf_get_sample(type, row, i) + 0.7152f * gf_get_sample(type, row, i + 1) +
               0.0722f * gf_get_sample(type, row, i + 2);
    return (float)((13933 * gf_sample_bits(type, row, i) +
                    46871 * gf_sample_bits(type, row, i + 1) +
                    4732 * gf_sample_bits(type, row, i + 2) + 32768) >>
                   16);
}

/* ---- luma ------------------------------------------------------------------------------------ */

/* The weights add up to 65536: the sum fits in 32 bits. */
GF_BOTH uint32_t gf_luma_integer(uint32_t r, uint32_t g, uint32_t b) {
    return (13933u * r + 46871u * g + 4732u * b + 32768u) >> 16;
}

GF_BOTH float gf_luma_real(float r, float g, float b) {
    return 0.2126f * r + 0.7152f * g + 0.0722f * b;
}

/* ---- binary64 sums along a row --------------------------------------------------------------- */

/* Lane l adds elements l, l + 256, l + 512, ... of one channel in ascending order, from +0. Then,
 * for stride 128, 64, ..., 1: lane[l] += lane[l + stride] for l < stride. The sum is lane 0. */
#define GF_LANES 256

/* Canonicalise NaN: the NaN that an addition returns depends on the processor. */
static inline double gf_canonical_double(double x) {
    const uint64_t nan = UINT64_C(0x7ff8000000000000);
    if (x != x)
        memcpy(&x, &nan, sizeof x);
    return x;
}

/* Add up the lanes of one channel, for golden functions. */
static inline double gf_golden_tree(double *lane) {
    for (int stride = GF_LANES / 2; stride > 0; stride /= 2)
        for (int l = 0; l < stride; l++)
            lane[l] += lane[l + stride];
    return gf_canonical_double(lane[0]);
}

#endif
