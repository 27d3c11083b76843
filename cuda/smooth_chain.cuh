// smooth along rows by the chain itself, in registers, for the common radii.
//
// A lane converts and enhances the pixels of its run and those around it; takes the means from one
// pixel before its own to one after; smooths and stores. All operations are those of the
// definition, in its order. 15 to 20 of them a sample; reads and writes it once.
#ifndef GF_SMOOTH_CHAIN_CUH
#define GF_SMOOTH_CHAIN_CUH

#include "smooth_staged.cuh"
#include "smooth_strips.cuh"

struct gf_chain_args {
    float gain, shifted_gain; // -2^23 * gain, exact
};

// Sample i of words, enhanced. An integer sample v is made the float 2^23 + v by its bits alone;
// the fma then subtracts 2^23 * gain from the exact product, and rounds once: fl(v * gain).
template <typename T>
static __device__ __forceinline__ float gf_enhanced(const uint32_t *words, int i,
                                                    const gf_chain_args &args) {
    if constexpr (sizeof(T) == 4)
        return enhance(__uint_as_float(words[i]), args.gain);
    const uint32_t bits = 0x4b000000u; // 2^23
    uint32_t whole;
    if (sizeof(T) == 2)
        whole = __byte_perm(words[i / 2], bits, i % 2 ? 0x7432 : 0x7410);
    else
        whole = __byte_perm(words[i / 4], bits, 0x7440 + i % 4);
    return __fmaf_rn(__uint_as_float(whole), args.gain, args.shifted_gain);
}

// fl(x / n), in the sign of zero and for NaN, too (tests/test_smooth_integer.c tries it).
//
// Of integer samples: a product with 1/n as the sum of two floats, rounded once. What remains of
// 1/n is 2^-48 of it; a quotient by 3, 5 or 7 is further from the middle between two floats.
//
// Of floats, of which some are so small that a part of the product would underflow: a quotient
// corrected by its own error, which is exact. Only an infinity makes a NaN of that: the largest
// magnitude is kept.
template <typename T, int N>
static __device__ __forceinline__ float gf_divided(float x, float *most) {
    const float n = static_cast<float>(N);
    if constexpr (sizeof(T) != 4) {
        const float high = 1.0f / n;
        const float low = static_cast<float>(1.0 / N - static_cast<double>(high));
        return __fmaf_rn(x, high, __fmul_rn(x, low));
    }
    const float size = fabsf(x);
    *most = size > *most ? size : *most;
    const float inverse = 1.0f / n;
    const float quotient = __fmul_rn(x, inverse);
    return __fmaf_rn(-__fmaf_rn(n, quotient, -x), inverse, quotient);
}

// The bits stored for t, in the lowest places.
template <typename Tout> static __device__ __forceinline__ uint32_t gf_stored_bits(float t) {
    if constexpr (sizeof(Tout) == 4)
        return __float_as_uint(gf_store<Tout>(t));
    uint16_t bits; // rounds to even and clamps, NaN to 0, as the store of the contract does
    asm("cvt.rni.u16.f32 %0, %1;" : "=h"(bits) : "f"(t));
    return sizeof(Tout) == 1 && bits > 255 ? 255 : bits;
}

// Sample i as the output holds it, in the lowest bits.
template <typename Tin, typename Tout>
static __device__ __forceinline__ uint32_t gf_carried(const uint32_t *words, int i) {
    if (sizeof(Tin) == 4)
        return words[i];
    const uint32_t value = sizeof(Tin) == 2 ? words[i / 2] >> 16 * (i % 2) & 0xffff
                                            : words[i / 4] >> 8 * (i % 4) & 0xff;
    return sizeof(Tout) == 4 ? __float_as_uint(static_cast<float>(value)) : value;
}

// The chain for PIXELS pixels, no end of the row being near. Sample FIRST of words is the first of
// the pixel RADIUS + 1 before them. Returns whether the results are not known.
template <typename Tin, typename Tout, int C, int RADIUS, int PIXELS, int FIRST>
static __device__ __forceinline__ bool gf_chain(const gf_smooth_constants &k,
                                                const gf_chain_args &args, const uint32_t *words,
                                                uint32_t *out) {
    const int AROUND = RADIUS + 1, filtered = C == 2 || C == 4 ? C - 1 : C;
    uint32_t bits[PIXELS * C];
    float most = 0.0f;
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
            mean[i] = gf_divided<Tin, 2 * RADIUS + 1>(sum, &most);
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
            bits[i * C + c] = gf_stored_bits<Tout>(t[i]);
    }
    if (C == 2 || C == 4) {
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bits[i * C + C - 1] = gf_carried<Tin, Tout>(words, FIRST + (AROUND + i) * C + C - 1);
    }
    if (sizeof(Tout) == 4) {
#pragma unroll
        for (int i = 0; i < PIXELS * C; i++)
            out[i] = bits[i];
    } else if (sizeof(Tout) == 2) {
#pragma unroll
        for (int i = 0; i < PIXELS * C / 2; i++)
            out[i] = __byte_perm(bits[2 * i], bits[2 * i + 1], 0x5410);
    } else {
#pragma unroll
        for (int i = 0; i < PIXELS * C / 4; i++)
            out[i] = __byte_perm(__byte_perm(bits[4 * i], bits[4 * i + 1], 0x0040),
                                 __byte_perm(bits[4 * i + 2], bits[4 * i + 3], 0x0040), 0x5410);
    }
    return sizeof(Tin) == 4 && most == __uint_as_float(0x7f800000u);
}

// Rows that fill a warp.
template <typename T, int CHANNELS, int RADIUS> struct gf_strip_chain {
    typedef T Tin;
    typedef T Tout;
    typedef gf_chain_args Args;
    static const int C = CHANNELS, SIZE = sizeof(T);
    static const int filtered = C == 2 || C == 4 ? C - 1 : C;
    static const int PIXELS = GF_STRIP_UNITS * 16 / (C * SIZE), GROUPS = (PIXELS + 3) / 4;
    static const int AROUND = (RADIUS + 1) * C; // samples
    static const int HALO = (AROUND * SIZE + 15) / 16;

    static __device__ __forceinline__ bool run(const gf_walk &a, const Args &args,
                                               const uint32_t *words, uint32_t *out) {
        return gf_chain<T, T, C, RADIUS, PIXELS, HALO * 16 / SIZE - AROUND>(a.constants, args,
                                                                            words, out);
    }

    static __device__ __forceinline__ void exactly(const gf_walk &a, uint32_t y, uint64_t p,
                                                   int c) {
        gf_smooth_exactly<T, T, C, RADIUS>(a, y, p, c);
    }
};

// Narrow rows, and results that are larger than the samples.
template <typename In, typename Out, int CHANNELS, int RADIUS> struct gf_chain_work {
    typedef In Tin;
    typedef Out Tout;
    typedef gf_chain_args Args;
    static const int C = CHANNELS, HALO = 1;
    // Through shared memory 48 or 64 bytes, or what makes so many results.
    static const int GROUPS = sizeof(In) == 1    ? (C == 1   ? 4
                                                    : C == 2 ? 2
                                                    : C == 3 ? 4
                                                             : 1)
                              : sizeof(Out) == 2 ? (C == 1   ? 8
                                                    : C == 2 ? 4
                                                             : 2)
                              : C == 1           ? 4
                              : C == 2           ? 2
                                                 : (sizeof(In) == 2 && C == 3 ? 2 : 1);
    static const int TURNS = sizeof(In) == 4 ? 2 : C == 3 ? 8 : 4;
    static const int WARPS = C == 3 && sizeof(In) == 1 ? 18 // of 12 KB each, a processor
                             : C == 3 || (C == 4 && sizeof(Out) == 4) ? 24
                                                                      : 32;
    static const int filtered = C == 2 || C == 4 ? C - 1 : C;
    static_assert(RADIUS + 1 <= 4, "the window must lie within one group on either side");

    static __device__ __forceinline__ unsigned run(const gf_walk &a, const Args &args,
                                                   const uint32_t *raw, uint32_t *out) {
        const bool again =
            gf_chain<In, Out, C, RADIUS, 4 * GROUPS, (3 - RADIUS) * C>(a.constants, args, raw, out);
        return again ? (1u << GROUPS * filtered) - 1 : 0;
    }

    static __device__ __forceinline__ void exactly(const gf_walk &a, uint32_t y, uint64_t p,
                                                   int c) {
        gf_smooth_exactly<Tin, Tout, C, RADIUS>(a, y, p, c);
    }
};

#endif
