/* The loops of hist. Most are plain, for the compiler to vectorise. */
#include "hist/hist_simd.h"

#include <string.h>

#include "hist/hist_bin.h"
#include "hist/hist_simd_count.h"
#include "hist/hist_simd_luma.h"
#include "hist/hist_simd_select.h"
#include "vec.h"

/* ---- measured samples ------------------------------------------------------------------------ */

#define GATHER(NAME, TYPE, LUMA)                                                                   \
    static void NAME(const gf_hist_plan *plan, const TYPE *pixels, size_t n, TYPE *values) {       \
        const size_t channels = plan->head.in.channels;                                            \
        if (plan->luma)                                                                            \
            LUMA(pixels, n, channels, values);                                                     \
        else if (plan->measured == channels)                                                       \
            memcpy(values, pixels, n *channels * sizeof *values);                                  \
        else                                                                                       \
            for (size_t i = 0; i < n; i++)                                                         \
                values[i] = pixels[i * channels + plan->first];                                    \
    }

GATHER(gather_u8, uint8_t, luma_u8)
GATHER(gather_u16, uint16_t, luma_u16)
GATHER(gather_f32, float, luma_f32)

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

/* ---- bins ------------------------------------------------------------------------------------ */

static void bins_u8(uint32_t count, const uint8_t *values, size_t n, uint32_t *bins) {
    for (size_t i = 0; i < n; i++)
        bins[i] = gf_hist_bin_integer(values[i], count, 255);
}

/* floor(v * count / 65535) in 16 bits. With v * count = 65536 high + low it is high, or high + 1
 * where low + high + 1 carries: let v * count = 65535 q + s, s < 65535; then high is q and low is
 * s - q where s >= q, which does not carry; otherwise high is q - 1 and low is 65536 + s - q, which
 * does. q fits because count < 65536. */
static void bins_u16_below(uint32_t count, const uint16_t *values, size_t n, uint32_t *bins) {
    const uint16_t factor = (uint16_t)count, last = (uint16_t)(count - 1);
    for (size_t i = 0; i < n; i++) {
        const uint32_t product = (uint32_t)values[i] * factor;
        const uint16_t high = (uint16_t)(product >> 16), low = (uint16_t)product;
        const uint16_t room = (uint16_t)(65535 - low);
        const uint16_t carry = high >= room;
        const uint16_t bin = (uint16_t)(high + carry);
        bins[i] = bin < last ? bin : last;
    }
}

static void bins_u16(uint32_t count, const uint16_t *values, size_t n, uint32_t *bins) {
    if (count < 65536)
        bins_u16_below(count, values, n, bins);
    else
        for (size_t i = 0; i < n; i++)
            bins[i] = values[i]; /* v * 65536 / 65535 is v, or 65536 for the last one */
}

/* gf_hist_bin_real without a branch, and with a conversion that every processor has. */
static inline uint32_t bin_real(double v, double count, uint32_t nan) {
    double scaled = v * count;
    const bool number = scaled == scaled; /* NOLINT(misc-redundant-expression) */
    scaled = scaled > 0 ? scaled : 0;
    scaled = scaled < count ? scaled : count - 1;
    const int32_t bin = (int32_t)scaled;
    return number ? (uint32_t)bin : nan;
}

static void bins_f32(uint32_t count, const float *values, size_t n, uint32_t *bins) {
    const double scale = count;
    for (size_t i = 0; i < n; i++)
        bins[i] = bin_real((double)values[i], scale, count);
}

/* gf_hist_bin_ranged likewise. */
static inline uint32_t bin_ranged(double v, double lo, double hi, double span, double count) {
    double bin = (v - lo) / span * count;
    const bool number = v == v; /* NOLINT(misc-redundant-expression) */
    bin = bin > 0 ? bin : 0;
    bin = bin < count ? bin : count - 1;
    bin = v < lo ? count + GF_HIST_AT_BELOW : bin;
    bin = v > hi ? count + GF_HIST_AT_ABOVE : bin;
    return (uint32_t)(int32_t)(number ? bin : count + GF_HIST_AT_NAN);
}

#define BINS_RANGED(NAME, TYPE)                                                                    \
    static void NAME(const gf_hist_plan *plan, const TYPE *values, size_t n, uint32_t *bins) {     \
        const double lo = plan->lo, hi = plan->hi, span = hi - lo, count = plan->bins;             \
        for (size_t i = 0; i < n; i++)                                                             \
            bins[i] = bin_ranged((double)values[i], lo, hi, span, count);                          \
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

const gf_hist_simd GF_SIMD_NAME(gf_hist_simd) = {
    .gather = gather,
    .bins = bins,
    .above = {above_u8, above_u16, above_f32},
    .select = {select_u8, select_u16, select_f32},
    .most_edges = {MOST_EDGES_U8, MOST_EDGES_U16, MOST_EDGES_F32},
    .least_periods = 64 / VEC_FLOATS,
};
