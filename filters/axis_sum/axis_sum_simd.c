/* The loops are written for the compiler to vectorise: sums lie side by side, a whole number of
 * pixels and of vectors apart. */
#include "axis_sum/axis_sum_simd.h"

#include "engine/vec.h"
#include "lanes.h"

#define PERIOD 192 /* samples: a multiple of every channel count and of every vector */

#define ROW_SUM(NAME, TYPE, FLUSH)                                                                 \
    static void NAME(const TYPE *row, size_t n, uint32_t channels, uint64_t *sums) {               \
        uint64_t all[PERIOD] = {0};                                                                \
        size_t i = 0;                                                                              \
        while (n - i >= PERIOD) {                                                                  \
            uint32_t some[PERIOD] = {0};                                                           \
            for (size_t k = 0; k < (FLUSH) && n - i >= PERIOD; k++, i += PERIOD)                   \
                for (size_t j = 0; j < PERIOD; j++)                                                \
                    some[j] += row[i + j];                                                         \
            for (size_t j = 0; j < PERIOD; j++)                                                    \
                all[j] += some[j];                                                                 \
        }                                                                                          \
        for (size_t j = 0; j < n - i; j++)                                                         \
            all[j] += row[i + j];                                                                  \
        for (uint32_t c = 0; c < channels; c++) {                                                  \
            sums[c] = 0;                                                                           \
            for (size_t j = c; j < PERIOD; j += channels)                                          \
                sums[c] += all[j];                                                                 \
        }                                                                                          \
    }

/* As many additions as 32 bits hold. */
ROW_SUM(row_u8, uint8_t, 1u << 24)
ROW_SUM(row_u16, uint16_t, 1u << 16)

static void row_f32(const float *row, size_t n, uint32_t channels, double *sums, double *lanes) {
    const size_t period = (size_t)GF_LANES * channels;
    for (size_t j = 0; j < period; j++)
        lanes[j] = 0;
    size_t i = 0;
    for (; n - i >= period; i += period)
        for (size_t j = 0; j < period; j++)
            lanes[j] += (double)row[i + j];
    for (size_t j = 0; j < n - i; j++)
        lanes[j] += (double)row[i + j];
    for (size_t stride = GF_LANES / 2; stride > 0; stride /= 2)
        for (size_t j = 0; j < stride * channels; j++)
            lanes[j] += lanes[j + stride * channels];
    for (uint32_t c = 0; c < channels; c++)
        sums[c] = gf_canonical_double(lanes[c]);
}

static void add_u8(uint64_t *sums, const uint8_t *row, size_t n) {
    for (size_t i = 0; i < n; i++)
        sums[i] += row[i];
}

static void add_u16(uint64_t *sums, const uint16_t *row, size_t n) {
    for (size_t i = 0; i < n; i++)
        sums[i] += row[i];
}

static void add_f32(double *sums, const float *row, size_t n) {
    for (size_t i = 0; i < n; i++)
        sums[i] = gf_canonical_double(sums[i] + (double)row[i]);
}

const gf_axis_sum_simd GF_SIMD_NAME(gf_axis_sum_simd) = {row_u8, row_u16, row_f32,
                                                         add_u8, add_u16, add_f32};
