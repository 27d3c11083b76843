/* Conversion of samples: type, linear light, alpha. docs/numerics.md defines every value. Readers,
 * writers and the filter convert use it. */
#ifndef GF_CORE_CONVERT_H
#define GF_CORE_CONVERT_H

#include <string.h>

#include "core/image.h"
#include "core/machine.h"

/* Return the bits of a number, and the number of some bits. */
GF_BOTH uint32_t gf_float_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

GF_BOTH float gf_float_of_bits(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ---- sRGB (srgb.c) --------------------------------------------------------------------------- */

/* Tables of u8 or u16, as docs/numerics.md defines them. */
typedef struct gf_srgb {
    const float *linear; /* linear light of each code value */
    /* The least light of each code value, from 1 to the maximum; then infinity. */
    const float *thresholds;
    /* The code value of the least number in each bucket: binary32 numbers that differ only in their
     * last `shift` bits. A bucket has at most one threshold above its least number. Follows the
     * thresholds in memory. */
    const uint16_t *starts;
    size_t linear_bytes; /* size of the first table */
    size_t code_bytes;   /* size of the other two, a multiple of 4 */
    float low;           /* least number of the first bucket; 1 is in the last one */
    uint32_t shift;      /* bits of a number after those that select its bucket */
    uint32_t base;       /* bits of the first bucket */
} gf_srgb;

/* Return the tables of a type, which the first call computes. */
const gf_srgb *gf_srgb_of(gf_type type);

/* Return the code value of linear light. */
GF_BOTH uint32_t gf_srgb_code(const gf_srgb *codes, float v) {
    const float above = v > codes->low ? v : codes->low; /* also for a NaN */
    const float light = above < 1.0f ? above : 1.0f;
    const uint32_t start = codes->starts[(gf_float_bits(light) >> codes->shift) - codes->base];
    return start + (light >= codes->thresholds[start + 1]);
}

/* ---- samples (convert_simd.c) ---------------------------------------------------------------- */

/* Operations on each pixel, in this order: divide, convert, multiply. */
typedef struct gf_conversion {
    gf_type from, to;
    uint32_t channels;
    bool alpha;          /* the last channel is alpha, in one of both formats at least */
    bool divide;         /* f32: clamp alpha to 0..1, divide the colours by it; 0 where it is 0 */
    bool multiply;       /* to f32: multiply the colours by alpha */
    const gf_srgb *srgb; /* between integers in sRGB and linear light, except alpha; NULL: none */
} gf_conversion;

/* Return how to convert. If only one format has alpha, the other is premultiplied. linear: from or
 * to linear light, if one of the types is f32. */
static inline gf_conversion gf_conversion_of(const gf_format *from, const gf_format *to,
                                             bool linear) {
    const bool light = linear && (from->type == GF_F32) != (to->type == GF_F32);
    return (gf_conversion){.from = from->type,
                           .to = to->type,
                           .channels = to->channels,
                           .alpha = from->alpha || to->alpha,
                           .divide = to->alpha && !from->alpha,
                           .multiply = from->alpha && !to->alpha,
                           .srgb = light ? gf_srgb_of(from->type == GF_F32 ? to->type : from->type)
                                         : NULL};
}

/* Convert whole pixels. Return the number of f32 samples outside 0..1, or NaN, that are stored as
 * integers. No alignment is required. Those that grow may be at the end of dst, others at its
 * start: each block is read before it is written, and ends before the next one. */
typedef uint64_t gf_convert_function(const gf_conversion *how, void *dst, const void *src,
                                     uint64_t samples);
gf_convert_function GF_LEVEL_NAMES(gf_convert_samples);

/* The same at the best SIMD level of this machine. */
static inline uint64_t gf_convert_samples(const gf_conversion *how, void *dst, const void *src,
                                          uint64_t samples) {
    gf_convert_function *const levels[GF_ISA_COUNT] = GF_LEVELS(gf_convert_samples);
    return levels[gf_isa_best()](how, dst, src, samples);
}

#endif
