// smooth along rows by the chain itself, in registers, for the common radii.
//
// A lane converts and enhances the pixels of its groups and of one group on either side; takes the
// means from one pixel before its own to one after; smooths and stores. All operations are those of
// the definition, in its order. Between 25 and 35 of them a sample; reads and writes it once.
#ifndef GF_SMOOTH_CHAIN_CUH
#define GF_SMOOTH_CHAIN_CUH

#include "smooth_direct.cuh"
#include "smooth_staged.cuh"

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

// fl(x / n), if *unsafe stays false. A quotient that is corrected by its own error is the rounded
// one for the n that occur here (tests/test_smooth_integer.c tries every mantissa), where nothing
// comes near the ends of binary32's range. It has the sign of a zero right, and of NaN makes NaN.
// Integer samples are always safe.
template <typename T, int N>
static __device__ __forceinline__ float gf_divided(float x, bool *unsafe) {
    const float n = static_cast<float>(N), inverse = 1.0f / n;
    if (sizeof(T) == 4)
        *unsafe |= fabsf(x) > 0x1p120f || (fabsf(x) < 0x1p-90f && x != 0.0f);
    const float quotient = __fmul_rn(x, inverse);
    return __fmaf_rn(-__fmaf_rn(n, quotient, -x), inverse, quotient);
}

// What is stored for t. Of integer samples it is a number and not negative; with 2^23 added it has
// no bits below 1 left, so the addition rounds, and its lowest bits are the integer.
template <typename Tin, typename Tout>
static __device__ __forceinline__ uint32_t gf_stored_bits(float t) {
    if constexpr (sizeof(Tout) == 4)
        return __float_as_uint(gf_store<Tout>(t));
    return __float_as_uint(__fadd_rn(t < 65535.0f ? t : 65535.0f, 8388608.0f));
}

template <typename In, typename Out, int CHANNELS, int RADIUS> struct gf_chain_work {
    typedef In Tin;
    typedef Out Tout;
    typedef gf_chain_args Args;
    static const int C = CHANNELS, HALO = 1;
    // Straight from memory 16 bytes; through shared memory 48 or 64, or what makes so many results.
    static const bool direct = C == 1 && sizeof(In) == 4;
    static const int GROUPS = direct             ? 1
                              : sizeof(In) == 1  ? (C == 1   ? 4
                                                    : C == 2 ? 2
                                                    : C == 3 ? 4
                                                             : 1)
                              : sizeof(Out) == 2 ? (C == 1   ? 8
                                                    : C == 2 ? 4
                                                             : 2)
                              : C == 1           ? 4
                              : C == 2           ? 2
                                                 : (sizeof(In) == 2 && C == 3 ? 2 : 1);
    static const int TURNS = 2;
    static const int RUNS = C == 1 ? 2 : 1;                                    // at once
    static const int WARPS = C == 3 || (C == 4 && sizeof(Out) == 4) ? 24 : 32; // a processor
    static const int filtered = C == 2 || C == 4 ? C - 1 : C;
    static_assert(RADIUS + 1 <= 4, "the window must lie within one group on either side");

    static __device__ __forceinline__ unsigned run(const gf_walk &a, const Args &args,
                                                   const uint32_t *raw, uint32_t *out) {
        uint32_t bits[4 * GROUPS * C];
        bool unsafe = false;
#pragma unroll
        for (int c = 0; c < filtered; c++) {
            float loaded[4 * GROUPS + 8];
#pragma unroll
            for (int i = 3 - RADIUS; i < 4 * GROUPS + 5 + RADIUS; i++)
                loaded[i] = gf_enhanced<Tin>(raw, i * C + c, args);
            float mean[4 * GROUPS + 2];
#pragma unroll
            for (int i = 0; i < 4 * GROUPS + 2; i++) {
                float sum = loaded[i + 3 - RADIUS];
#pragma unroll
                for (int k = 1; k < 2 * RADIUS + 1; k++)
                    sum = __fadd_rn(sum, loaded[i + 3 - RADIUS + k]);
                mean[i] = gf_divided<Tin, 2 * RADIUS + 1>(sum, &unsafe);
            }
#pragma unroll
            for (int i = 0; i < 4 * GROUPS; i++) {
                float t = mean[i + 1];
                if (a.constants.smooth)
                    t = smooth(mean[i], t, mean[i + 2], {true, true}, a.constants);
                bits[i * C + c] = gf_stored_bits<Tin, Tout>(t);
            }
        }
        if (C == 2 || C == 4) {
#pragma unroll
            for (int i = 0; i < 4 * GROUPS; i++)
                bits[i * C + C - 1] = carried(raw, (i + 4) * C + C - 1);
        }
        if (sizeof(Tout) == 4) {
#pragma unroll
            for (int i = 0; i < 4 * GROUPS * C; i++)
                out[i] = bits[i];
        } else {
#pragma unroll
            for (int i = 0; i < 2 * GROUPS * C; i++)
                out[i] = __byte_perm(bits[2 * i], bits[2 * i + 1], 0x5410);
        }
        return unsafe ? (1u << GROUPS * filtered) - 1 : 0;
    }

    static __device__ __forceinline__ void exactly(const gf_walk &a, uint32_t y, uint64_t p,
                                                   int c) {
        gf_smooth_exactly<Tin, Tout, C, RADIUS>(a, y, p, c);
    }

    // Sample i as the output holds it, in the lowest bits.
    static __device__ __forceinline__ uint32_t carried(const uint32_t *words, int i) {
        if (sizeof(Tin) == 4)
            return words[i];
        const uint32_t value = sizeof(Tin) == 2 ? words[i / 2] >> 16 * (i % 2) & 0xffff
                                                : words[i / 4] >> 8 * (i % 4) & 0xff;
        return sizeof(Tout) == 4 ? __float_as_uint(static_cast<float>(value)) : value;
    }
};

#endif
