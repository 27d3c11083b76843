/* Plain loops, for the compiler to vectorise. */
#include "hist/hist_simd.h"

#include <string.h>

#include "engine/vec.h"
#include "hist/hist_bin.h"

#define GATHER(NAME, TYPE, LUMA)                                                                   \
    static void NAME(const gf_hist_plan *plan, const TYPE *pixels, size_t n, TYPE *values) {       \
        const size_t channels = plan->head.in.channels;                                            \
        if (plan->luma) {                                                                          \
            for (size_t i = 0; i < n; i++) {                                                       \
                const TYPE *p = pixels + i * channels;                                             \
                values[i] = (TYPE)LUMA(p[0], p[1], p[2]);                                          \
            }                                                                                      \
        } else if (plan->measured == channels) {                                                   \
            memcpy(values, pixels, n *channels * sizeof *values);                                  \
        } else {                                                                                   \
            for (size_t i = 0; i < n; i++)                                                         \
                values[i] = pixels[i * channels + plan->first];                                    \
        }                                                                                          \
    }

GATHER(gather_u8, uint8_t, gf_luma_integer)
GATHER(gather_u16, uint16_t, gf_luma_integer)
GATHER(gather_f32, float, gf_luma_real)

static void gather(const gf_hist_plan *plan, const void *pixels, size_t n, void *values) {
    switch (plan->head.in.type) {
    case GF_U8:
        gather_u8(plan, pixels, n, values);
        break;
    case GF_U16:
        gather_u16(plan, pixels, n, values);
        break;
    default:
        gather_f32(plan, pixels, n, values);
        break;
    }
}

#define BINS_INTEGER(NAME, TYPE, MAX)                                                              \
    static void NAME(uint32_t count, const TYPE *values, size_t n, uint32_t *bins) {               \
        for (size_t i = 0; i < n; i++)                                                             \
            bins[i] = gf_hist_bin_integer(values[i], count, MAX);                                  \
    }

BINS_INTEGER(bins_u8, uint8_t, 255)
BINS_INTEGER(bins_u16, uint16_t, 65535)

static void bins_f32(uint32_t count, const float *values, size_t n, uint32_t *bins) {
    for (size_t i = 0; i < n; i++)
        bins[i] = gf_hist_bin_real((double)values[i], count);
}

#define BINS_RANGED(NAME, TYPE)                                                                    \
    static void NAME(const gf_hist_plan *plan, const TYPE *values, size_t n, uint32_t *bins) {     \
        const double lo = plan->lo, width = plan->hi - plan->lo;                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            bins[i] = gf_hist_bin_real(((double)values[i] - lo) / width, plan->bins);              \
    }

BINS_RANGED(ranged_u8, uint8_t)
BINS_RANGED(ranged_u16, uint16_t)
BINS_RANGED(ranged_f32, float)

static void bins(const gf_hist_plan *plan, const void *values, size_t n, uint32_t *out) {
    switch (plan->head.in.type) {
    case GF_U8:
        if (plan->ranged)
            ranged_u8(plan, values, n, out);
        else
            bins_u8(plan->bins, values, n, out);
        break;
    case GF_U16:
        if (plan->ranged)
            ranged_u16(plan, values, n, out);
        else
            bins_u16(plan->bins, values, n, out);
        break;
    default:
        if (plan->ranged)
            ranged_f32(plan, values, n, out);
        else
            bins_f32(plan->bins, values, n, out);
        break;
    }
}

const gf_hist_simd GF_SIMD_NAME(gf_hist_simd) = {gather, bins};
