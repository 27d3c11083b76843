// The stages of smooth along rows, in registers, for radius 0 to 3.
//
// A lane converts and enhances the pixels of its run and its halo, computes the means from one
// pixel before the run to one after it, smooths and stores. All operations are those of the stages,
// in the same order: 15 to 20 per sample.
#ifndef GF_SMOOTH_CHAIN_CUH
#define GF_SMOOTH_CHAIN_CUH

#include "cuda/smooth/device.cuh"

// Minimum gain of integer samples, except 0. With smaller gains the products approach the smallest
// normal binary32 numbers, and only a true division is exact.
#define GF_MIN_GAIN 1e-6f

struct gf_chain_args {
    float gain, shifted_gain; // -2^23 * gain, exact
};

GF_BOTH gf_chain_args gf_chain_args_of(float gain) {
    return {gain, -8388608.0f * gain};
}

// Test whether the stages in registers support a plan. real: the samples are f32.
static inline bool gf_chain_fits(const gf_smooth_plan *plan, bool real) {
    return plan->tile == 0 && plan->radius <= 3 &&
           (real || plan->gain == 0 || plan->gain >= GF_MIN_GAIN);
}

// Return sample i of words, enhanced. The bits of an integer sample v are inserted into the float
// 2^23 + v; the fma subtracts 2^23 * gain from the exact product and rounds once: fl(v * gain).
template <typename T>
GF_DEVICE float gf_enhanced(const uint32_t *words, int i, const gf_chain_args &args) {
    if constexpr (sizeof(T) == 4)
        return gf_smooth_enhance(__uint_as_float(words[i]), args.gain);
    const uint32_t bits = 0x4b000000u; // 2^23
    uint32_t whole;
    if (sizeof(T) == 2)
        whole = __byte_perm(words[i / 2], bits, i % 2 ? 0x7432 : 0x7410);
    else
        whole = __byte_perm(words[i / 4], bits, 0x7440 + i % 4);
    return __fmaf_rn(__uint_as_float(whole), args.gain, args.shifted_gain);
}

// Return the bits of t as stored in the output, in the low bits.
template <typename Tout> GF_DEVICE uint32_t gf_smooth_bits(float t) {
    if constexpr (sizeof(Tout) == 4)
        return __float_as_uint(gf_store<Tout>(t));
    uint16_t bits; // rounds to even and clamps, NaN to 0, as gf_store
    asm("cvt.rni.u16.f32 %0, %1;" : "=h"(bits) : "f"(t));
    return sizeof(Tout) == 1 && bits > 255 ? 255 : bits;
}

// Return sample i as stored in the output, in the low bits.
template <typename Tin, typename Tout>
GF_DEVICE uint32_t gf_converted_bits(const uint32_t *words, int i) {
    if (sizeof(Tin) == 4)
        return words[i];
    const uint32_t value = sizeof(Tin) == 2 ? words[i / 2] >> 16 * (i % 2) & 0xffff
                                            : words[i / 4] >> 8 * (i % 4) & 0xff;
    return sizeof(Tout) == 4 ? __float_as_uint(static_cast<float>(value)) : value;
}

// Compute the stages for PIXELS pixels with no edge in any window. Sample FIRST of words is the
// first of the pixel RADIUS + 1 before them. Returns true if the results are invalid: the exact
// path must compute them.
template <typename Tin, typename Tout, int C, int RADIUS, int PIXELS, int FIRST>
GF_DEVICE bool gf_chain(const gf_smooth_constants &k, const gf_chain_args &args,
                        const uint32_t *words, uint32_t *out) {
    const int AROUND = RADIUS + 1, filtered = GF_COLOURS(C);
    uint32_t bits[PIXELS * C];
    float max = 0.0f;
    const float weight = k.weight;
#pragma unroll
    for (int c = 0; c < filtered; c++) {
        float loaded[PIXELS + 2 * AROUND], mean[PIXELS + 2], t[PIXELS];
#pragma unroll
        for (int i = 0; i < PIXELS + 2 * AROUND; i++)
            loaded[i] = gf_enhanced<Tin>(words, FIRST + i * C + c, args);
#pragma unroll
        for (int i = 0; i < PIXELS + 2; i++) {
            float sum = loaded[i];
#pragma unroll
            for (int j = 1; j < 2 * RADIUS + 1; j++)
                sum = __fadd_rn(sum, loaded[i + j]);
            mean[i] = gf_smooth_divided<Tin, 2 * RADIUS + 1>(sum, &max);
        }
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            t[i] = mean[i + 1];
        if (k.smooth) {
#pragma unroll
            for (int i = 0; i < PIXELS; i++) {
                t[i] = __fmul_rn(__fadd_rn(t[i], mean[i]), weight);
                t[i] = __fmul_rn(__fadd_rn(t[i], mean[i + 2]), weight);
            }
        }
        if (k.inner_factor != 1.0f)
#pragma unroll
            for (int i = 0; i < PIXELS; i++)
                t[i] = __fmul_rn(t[i], k.inner_factor);
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bits[i * C + c] = gf_smooth_bits<Tout>(t[i]);
    }
    if (filtered < C) {
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bits[i * C + C - 1] =
                gf_converted_bits<Tin, Tout>(words, FIRST + (AROUND + i) * C + C - 1);
    }
    gf_pack_samples<Tout, PIXELS * C>(bits, out);
    return sizeof(Tin) == 4 && max == __uint_as_float(0x7f800000u);
}

#endif
