/* Golden implementation of convert: docs/numerics.md defines it. */
#include "convert/convert.h"
#include "samples.h"

static float golden_clamp(float v) {
    return v > 0 ? v < 1 ? v : 1 : 0; /* NaN: 0 */
}

/* Return the bits of a result of arithmetic. */
static uint32_t golden_real(float v) {
    return v != v ? 0x7fc00000 : gf_float_bits(v);
}

/* Convert one sample, given its bits. srgb: NULL for alpha, too. */
static uint32_t golden_convert(gf_type from, gf_type to, const gf_srgb *srgb, uint32_t bits) {
    const uint32_t max = gf_type_max(to);
    const float v = gf_float_of_bits(bits);
    uint32_t code = 0;
    if (from == to)
        return bits;
    if (to == GF_F32)
        return gf_float_bits(srgb ? srgb->linear[bits] : (float)bits / (float)gf_type_max(from));
    if (from == GF_U8)
        return bits * 257;
    if (from == GF_U16)
        return (2 * bits + 257) / 514; /* nearest */
    if (!srgb)
        return (uint32_t)rint((double)golden_clamp(v) * (double)max);
    /* The last code value whose threshold is not above v. */
    for (uint32_t step = 0x8000; step > 0; step /= 2)
        if (code + step <= max && v >= srgb->thresholds[code + step])
            code += step;
    return code;
}

static void golden_pixel(const gf_conversion *how, const void *in, void *out, uint64_t first,
                         uint64_t *outside) {
    const uint64_t last = first + how->channels - 1;
    uint32_t result[GF_MAX_CHANNELS];
    for (uint64_t i = first; i <= last; i++) {
        const bool alpha = how->alpha && i == last;
        uint32_t bits = gf_sample_bits(how->from, in, i);
        if (how->divide) {
            const float a = golden_clamp(gf_get_sample(GF_F32, in, last));
            bits = alpha ? gf_float_bits(a) : a > 0 ? golden_real(gf_float_of_bits(bits) / a) : 0;
        }
        const float v = gf_float_of_bits(bits);
        if (how->from == GF_F32 && how->to != GF_F32 && !(v >= 0 && v <= 1))
            ++*outside;
        result[i - first] = golden_convert(how->from, how->to, alpha ? NULL : how->srgb, bits);
    }
    for (uint64_t i = first; i <= last; i++) {
        uint32_t bits = result[i - first];
        if (how->multiply && i != last)
            bits = golden_real(gf_float_of_bits(bits) * gf_float_of_bits(result[last - first]));
        if (how->to == GF_F32)
            memcpy((float *)out + i, &bits, sizeof bits); /* a copied NaN keeps its bits */
        else
            gf_put_sample(how->to, out, i, (float)bits);
    }
}

gf_status gf_convert_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error) {
    const gf_conversion *how = &((const gf_convert_plan *)plan)->how;
    uint64_t none = 0;
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++)
        for (uint64_t i = 0; i < gf_row_samples(&plan->in); i += how->channels)
            golden_pixel(how, gf_row(&strip->in[0], y), gf_row(&strip->out, y), i,
                         plan->state_bytes ? strip->state : &none);
    return GF_OK;
}
