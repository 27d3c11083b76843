/* The loops are written for the compiler to vectorise: sums lie side by side, a whole number of
 * pixels and of vectors apart. */
#include "dot/dot_simd.h"

#include <string.h>

#include "dot/dot.h"
#include "engine/vec.h"
#include "lanes.h"

#define PERIOD 48 /* samples: a multiple of every channel count and of every vector of sums */

#define ROW_DOT(NAME, TYPE, PRODUCT, SOME, FLUSH)                                                  \
    static void NAME(const TYPE *a, const TYPE *b, size_t n, uint32_t channels, uint64_t *sums) {  \
        uint64_t all[GF_DOT_SSD][PERIOD] = {{0}};                                                  \
        size_t i = 0;                                                                              \
        while (n - i >= PERIOD) {                                                                  \
            SOME some[GF_DOT_SSD][PERIOD] = {{0}};                                                 \
            for (size_t k = 0; k < (FLUSH) && n - i >= PERIOD; k++, i += PERIOD)                   \
                for (size_t j = 0; j < PERIOD; j++) {                                              \
                    const PRODUCT p = a[i + j], q = b[i + j];                                      \
                    some[GF_DOT_AB][j] += (PRODUCT)(p * q);                                        \
                    some[GF_DOT_AA][j] += (PRODUCT)(p * p);                                        \
                    some[GF_DOT_BB][j] += (PRODUCT)(q * q);                                        \
                }                                                                                  \
            for (size_t s = 0; s < GF_DOT_SSD; s++)                                                \
                for (size_t j = 0; j < PERIOD; j++)                                                \
                    all[s][j] += some[s][j];                                                       \
        }                                                                                          \
        for (size_t j = 0; j < n - i; j++) {                                                       \
            const uint64_t p = a[i + j], q = b[i + j];                                             \
            all[GF_DOT_AB][j] += p * q;                                                            \
            all[GF_DOT_AA][j] += p * p;                                                            \
            all[GF_DOT_BB][j] += q * q;                                                            \
        }                                                                                          \
        for (uint32_t c = 0; c < channels; c++)                                                    \
            for (uint32_t s = 0; s < GF_DOT_SSD; s++) {                                            \
                uint64_t sum = 0;                                                                  \
                for (uint32_t j = c; j < PERIOD; j += channels)                                    \
                    sum += all[s][j];                                                              \
                sums[c * GF_DOT_SSD + s] = sum;                                                    \
            }                                                                                      \
    }

/* A product of u8 fits in 16 bits and 2^16 of them in 32; of u16 in 32 bits and in a row in 64. */
ROW_DOT(row_u8, uint8_t, uint16_t, uint32_t, 1u << 16)
ROW_DOT(row_u16, uint16_t, uint32_t, uint64_t, SIZE_MAX)

/* Adds the products of up to a period of samples to the lanes. */
static inline void add_f32(const float *a, const float *b, size_t n, size_t period, double *lanes) {
    double *ab = lanes, *aa = ab + period, *bb = aa + period, *ssd = bb + period;
    for (size_t j = 0; j < n; j++) {
        const double p = (double)a[j], q = (double)b[j], d = p - q;
        ab[j] += p * q;
        aa[j] += p * p;
        bb[j] += q * q;
        ssd[j] += d * d;
    }
}

static void row_f32(const float *a, const float *b, size_t n, uint32_t channels, double *sums,
                    double *lanes) {
    const size_t period = (size_t)GF_LANES * channels;
    memset(lanes, 0, GF_DOT_SUMS * period * sizeof *lanes);
    size_t i = 0;
    for (; n - i >= period; i += period)
        add_f32(a + i, b + i, period, period, lanes);
    add_f32(a + i, b + i, n - i, period, lanes);
    for (size_t s = 0; s < GF_DOT_SUMS; s++, lanes += period) {
        for (size_t stride = period / 2; stride >= channels; stride /= 2)
            for (size_t j = 0; j < stride; j++)
                lanes[j] += lanes[j + stride];
        for (uint32_t c = 0; c < channels; c++)
            sums[c * GF_DOT_SUMS + s] = gf_canonical_double(lanes[c]);
    }
}

const gf_dot_simd GF_SIMD_NAME(gf_dot_simd) = {row_u8, row_u16, row_f32};
