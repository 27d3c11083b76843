// smooth of u8 rows by integers: what the plan's integer form says, 4 pixels of a channel at a
// time.
//
// A group's channel is a word of 4 bytes. With HALO words before and after it, each weighted sum
// of the group takes 2 * HALO + 1 dp4a (each adds 4 products of bytes). They add onto the bits of
// 2^23, so that the sum is a float without a conversion. One saturating fma makes it a share of
// 255, another rounds it; what is left over tells whether the rounding is in doubt.
//
// About 11 operations a sample for the default parameters; reads a byte and writes a byte.
#ifndef GF_SMOOTH_INTEGER_CUH
#define GF_SMOOTH_INTEGER_CUH

#include "smooth_walk.cuh"

// 2^23: a float from here on holds whole numbers, in its lowest bits.
#define GF_WHOLE 8388608.0f
#define GF_WHOLE_BITS 0x4b000000u

// Sums are wanted for the 4 pixels of a group, and, of a mean, for the one before and after.
#define GF_PHASES 6

struct gf_integer_args {
    uint32_t tap[GF_PHASES][7]; // [1 + pixel][word]
    float scale, offset;        // TAPS: share of 255 = scale * (2^23 + T) + offset
    float near, next;           // SUMS: share of 255
    float sure;                 // further than this from a whole number is doubtful
};

static inline gf_integer_args gf_integer_args_of(const gf_smooth_integer *by, int halo) {
    gf_integer_args args = {};
    const int reach = static_cast<int>(by->form == GF_SMOOTH_SUMS ? by->radius : by->reach);
    for (int phase = 0; phase < GF_PHASES; phase++)
        for (int k = -reach; k <= reach; k++) {
            const int byte = 4 * halo + phase - 1 + k; // from the first word on
            const uint32_t tap = by->form == GF_SMOOTH_SUMS ? 1 : by->tap[k + reach];
            if (byte >= 0 && byte < 4 * (2 * halo + 1)) // else that phase is not asked for
                args.tap[phase][byte / 4] |= tap << 8 * (byte % 4);
        }
    args.scale = by->scale / 255;
    args.offset = -GF_WHOLE * args.scale; // exact
    args.near = by->near / 255;
    args.next = by->next / 255;
    args.sure = 0.5f - by->doubt;
    return args;
}

static __device__ __forceinline__ uint32_t gf_dot4(uint32_t bytes, uint32_t taps, uint32_t sum) {
    return __dp4a(bytes, taps, sum);
}

// The 4 bytes of channel c of a group of C channels.
template <int C>
static __device__ __forceinline__ uint32_t gf_channel_word(const uint32_t *group, int c) {
    if (C == 1)
        return group[0];
    if (C == 2) // of (g a g a)(g a g a)
        return __byte_perm(group[0], group[1], 0x6420 + 0x1111 * c);
    if (C == 3) {
        // bytes c, c + 3, c + 6, c + 9 of (0 1 2 3)(4 5 6 7)(8 9 10 11)
        if (c == 0)
            return __byte_perm(__byte_perm(group[0], group[1], 0x0630), group[2], 0x5210);
        if (c == 1)
            return __byte_perm(__byte_perm(group[0], group[1], 0x0741), group[2], 0x6210);
        return __byte_perm(__byte_perm(group[0], group[1], 0x0052), group[2], 0x7410);
    }
    // a byte of each word
    const uint32_t low = __byte_perm(group[0], group[1], 0x0040 + 0x0011 * c);
    const uint32_t high = __byte_perm(group[2], group[3], 0x0040 + 0x0011 * c);
    return __byte_perm(low, high, 0x5410);
}

static __device__ __forceinline__ uint32_t gf_pack(float a, float b, float c, float d) {
    const uint32_t low = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x0040);
    const uint32_t high = __byte_perm(__float_as_uint(c), __float_as_uint(d), 0x0040);
    return __byte_perm(low, high, 0x5410);
}

// REACH3: no window reaches further than 3 samples, so that the first pixel of a group needs no
// word after it and the last one none before it.
template <int CHANNELS, int WORDS, bool REACH3, bool BY_SUMS> struct gf_integer_work {
    typedef uint8_t Tin;
    typedef uint8_t Tout;
    typedef gf_integer_args Args;
    static const int C = CHANNELS, HALO = WORDS;
    // 16 bytes a lane, or 48 where that is no whole number of pixels.
    static const int GROUPS = C == 1 || C == 3 ? 4 : C == 2 ? 2 : 1;
    static const int BLOCKS = C == 3 ? 3 : 4;
    static const int filtered = C == 2 || C == 4 ? C - 1 : C;

    // The weighted sum at pixel -1 to 4 of the group whose words begin at `word`.
    static __device__ __forceinline__ uint32_t sum(const Args &args, const uint32_t *word,
                                                   int pixel) {
        uint32_t sum = GF_WHOLE_BITS;
#pragma unroll
        for (int k = 0; k < 2 * HALO + 1; k++) {
            if (REACH3 && ((pixel <= 0 && k == 2) || (pixel >= 3 && k == 0)))
                continue;
            sum = gf_dot4(word[k], args.tap[1 + pixel][k], sum);
        }
        return sum;
    }

    // Rounds a share of 255; the result is in the lowest byte.
    static __device__ __forceinline__ float round(const Args &args, float share, bool *doubt) {
        const float whole = __fmaf_rn(share, 255.0f, GF_WHOLE);
        const float rest = __fmaf_rn(share, 255.0f, -__fsub_rn(whole, GF_WHOLE));
        *doubt |= fabsf(rest) > args.sure;
        return whole;
    }

    static __device__ __forceinline__ unsigned run(const gf_walk &, const Args &args,
                                                   const uint32_t *raw, uint32_t *out) {
        float value[GROUPS][filtered][4];
        bool doubt[GROUPS] = {};
#pragma unroll
        for (int c = 0; c < filtered; c++) {
            uint32_t word[GROUPS + 2 * HALO];
#pragma unroll
            for (int g = 0; g < GROUPS + 2 * HALO; g++)
                word[g] = gf_channel_word<C>(raw + g * C, c);
            float mean[4 * GROUPS + 2]; // as a sum, of the pixel before the run and so on
            if (BY_SUMS) {
#pragma unroll
                for (int i = 0; i < 4 * GROUPS + 2; i++) {
                    const int g = i == 0 ? 0 : i == 4 * GROUPS + 1 ? GROUPS - 1 : (i - 1) / 4;
                    mean[i] =
                        __fsub_rn(__uint_as_float(sum(args, word + g, i - 1 - 4 * g)), GF_WHOLE);
                }
            }
#pragma unroll
            for (int i = 0; i < 4 * GROUPS; i++) {
                float share;
                if (BY_SUMS)
                    share = __saturatef(
                        __fmaf_rn(mean[i + 2], args.next,
                                  __fmul_rn(__fadd_rn(mean[i], mean[i + 1]), args.near)));
                else
                    share = __saturatef(__fmaf_rn(__uint_as_float(sum(args, word + i / 4, i % 4)),
                                                  args.scale, args.offset));
                value[i / 4][c][i % 4] = round(args, share, &doubt[i / 4]);
            }
        }
        unsigned unknown = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            unknown |= doubt[g] ? 1u << g : 0;
            const float(*v)[4] = value[g];
            const uint32_t *in = raw + (g + HALO) * C;
            uint32_t *to = out + g * C;
            if (C == 1) {
                to[0] = gf_pack(v[0][0], v[0][1], v[0][2], v[0][3]);
            } else if (C == 3) {
                to[0] = gf_pack(v[0][0], v[1][0], v[2][0], v[0][1]);
                to[1] = gf_pack(v[1][1], v[2][1], v[0][2], v[1][2]);
                to[2] = gf_pack(v[2][2], v[0][3], v[1][3], v[2][3]);
            } else if (C == 2) {
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    const uint32_t grey = __byte_perm(__float_as_uint(v[0][2 * k]),
                                                      __float_as_uint(v[0][2 * k + 1]), 0x0400);
                    to[k] = (grey & 0x00ff00ffu) | (in[k] & 0xff00ff00u);
                }
            } else {
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const uint32_t rg =
                        __byte_perm(__float_as_uint(v[0][k]), __float_as_uint(v[1][k]), 0x0040);
                    const uint32_t ba = __byte_perm(__float_as_uint(v[2][k]), in[k], 0x0070);
                    to[k] = __byte_perm(rg, ba, 0x5410);
                }
            }
        }
        return unknown;
    }
};

#endif
