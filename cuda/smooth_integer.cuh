// smooth of u8 rows by integers: what the plan's integer form says, 4 pixels of a channel at a
// time.
//
// A group's channel is a word of 4 bytes. With HALO words before and after it, each weighted sum
// of the group takes 2 * HALO + 1 dp4a (each adds 4 products of bytes). Then
//
//   BY_TAPS   they are added onto the bits of 2^23, and so are floats without a conversion. One
//             saturating fma makes of each a share of 255, another rounds it; what is left over
//             tells of doubt. About 9 operations a sample;
//   BY_SUMS   where means, not samples, have weights. About 12 operations.
//
// Reads a byte and writes a byte a sample.
#ifndef GF_SMOOTH_INTEGER_CUH
#define GF_SMOOTH_INTEGER_CUH

#include "smooth_direct.cuh"
#include "smooth_staged.cuh"

// 2^23: a float from here on holds whole numbers, in its lowest bits.
#define GF_WHOLE 8388608.0f
#define GF_WHOLE_BITS 0x4b000000u

// Sums are wanted for the 4 pixels of a group, and, of a mean, for the one before and after.
#define GF_PHASES 6

enum gf_integer_way { GF_BY_TAPS, GF_BY_SUMS };

struct gf_integer_args {
    uint32_t tap[GF_PHASES][7]; // [1 + pixel][word]
    float scale, offset;        // BY_TAPS: share of 255 = scale * (2^23 + T) + offset
    float near, next;           // BY_SUMS: share of 255
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

// The 4 bytes of channel c of a group of C channels. Alphas are not asked for.
template <int C>
static __device__ __forceinline__ uint32_t gf_channel_word(const uint32_t *group, int c) {
    if (C == 1)
        return group[0];
    if (C == 2) // of (g a g a)(g a g a)
        return __byte_perm(group[0], group[1], 0x6420);
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

// A word of the lowest byte of each of four words.
static __device__ __forceinline__ uint32_t gf_pack(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

template <int CHANNELS, int WORDS, gf_integer_way WAY> struct gf_integer_work {
    typedef uint8_t Tin;
    typedef uint8_t Tout;
    typedef gf_integer_args Args;
    static const int C = CHANNELS, HALO = WORDS;
    static const int GROUPS = C == 2 ? 2 : C == 4 ? 1 : 4; // 16 bytes, or 48
    static const int TURNS = C == 3 ? 8 : 4;
    static const int RUNS = C == 4 || HALO == 3 ? 1 : C == 1 && HALO == 1 ? 4 : 2; // at once
    static const int WARPS = C == 3 || (C == 4 && HALO > 1) ? 24 : 32;             // a processor
    static const int filtered = C == 2 || C == 4 ? C - 1 : C;

    // The weighted sum at pixel -1 to 4 of the group whose words begin at `word`.
    static __device__ __forceinline__ uint32_t sum(const Args &args, const uint32_t *word,
                                                   int pixel) {
        uint32_t sum = GF_WHOLE_BITS;
#pragma unroll
        for (int k = 0; k < 2 * HALO + 1; k++)
            sum = __dp4a(word[k], args.tap[1 + pixel][k], sum);
        return sum;
    }

    // Rounds a share of 255; the result is in the lowest byte.
    static __device__ __forceinline__ uint32_t round(const Args &args, float share, bool *doubt) {
        const float whole = __fmaf_rn(share, 255.0f, GF_WHOLE);
        const float rest = __fmaf_rn(share, 255.0f, -__fsub_rn(whole, GF_WHOLE));
        *doubt |= fabsf(rest) > args.sure;
        return __float_as_uint(whole);
    }

    // The results of a channel of the groups, in the lowest byte of 4 words a group.
    static __device__ __forceinline__ void channel(const Args &args, const uint32_t *word,
                                                   uint32_t (*value)[4], bool *doubt) {
        float mean[4 * GROUPS + 2]; // as a sum, of the pixel before the run and so on
        if (WAY == GF_BY_SUMS) {
#pragma unroll
            for (int i = 0; i < 4 * GROUPS + 2; i++) {
                const int g = i == 0 ? 0 : i == 4 * GROUPS + 1 ? GROUPS - 1 : (i - 1) / 4;
                mean[i] = __fsub_rn(__uint_as_float(sum(args, word + g, i - 1 - 4 * g)), GF_WHOLE);
            }
        }
#pragma unroll
        for (int i = 0; i < 4 * GROUPS; i++) {
            float share;
            if (WAY == GF_BY_SUMS)
                share = __saturatef(__fmaf_rn(
                    mean[i + 2], args.next, __fmul_rn(__fadd_rn(mean[i], mean[i + 1]), args.near)));
            else
                share = __saturatef(__fmaf_rn(__uint_as_float(sum(args, word + i / 4, i % 4)),
                                              args.scale, args.offset));
            value[i / 4][i % 4] = round(args, share, &doubt[i / 4]);
        }
    }

    static __device__ __forceinline__ unsigned run(const gf_walk &, const Args &args,
                                                   const uint32_t *raw, uint32_t *out) {
        uint32_t value[filtered][GROUPS][4];
        bool doubt[filtered][GROUPS] = {};
#pragma unroll
        for (int c = 0; c < filtered; c++) {
            uint32_t word[GROUPS + 2 * HALO];
#pragma unroll
            for (int g = 0; g < GROUPS + 2 * HALO; g++)
                word[g] = gf_channel_word<C>(raw + g * C, c);
            channel(args, word, value[c], doubt[c]);
        }
        unsigned unknown = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
#pragma unroll
            for (int c = 0; c < filtered; c++)
                unknown |= doubt[c][g] ? 1u << (g * filtered + c) : 0;
            const uint32_t *in = raw + (g + HALO) * C;
            uint32_t *to = out + g * C;
            const uint32_t *v = value[0][g];
            if (C == 1) {
                to[0] = gf_pack(v[0], v[1], v[2], v[3]);
            } else if (C == 2) {
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    const uint32_t grey = __byte_perm(v[2 * k], v[2 * k + 1], 0x0400);
                    to[k] = (grey & 0x00ff00ffu) | (in[k] & 0xff00ff00u);
                }
            } else {
                const uint32_t *w = value[C < 3 ? 0 : 1][g], *x = value[C < 3 ? 0 : 2][g];
                if (C == 3) {
                    to[0] = gf_pack(v[0], w[0], x[0], v[1]);
                    to[1] = gf_pack(w[1], x[1], v[2], w[2]);
                    to[2] = gf_pack(x[2], v[3], w[3], x[3]);
                } else {
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const uint32_t rg = __byte_perm(v[k], w[k], 0x0040);
                        const uint32_t ba = __byte_perm(x[k], in[k], 0x0070);
                        to[k] = __byte_perm(rg, ba, 0x5410);
                    }
                }
            }
        }
        return unknown;
    }

    // Samples are >= 0, so that adding 0 for one that is not there changes no sum. The corrected
    // quotient is the division (tests/test_smooth_integer.c).
    static __device__ __forceinline__ void exactly(const gf_walk &a, uint32_t y, uint64_t p,
                                                   int c) {
        const int around = 4 * HALO;
        // Pixels of the row before p, and from p on, as far as they matter.
        const int left = p < 64 ? static_cast<int>(p) : 64;
        const int right = a.width - p < 64 ? static_cast<int>(a.width - p) : 64;
        const int radius = static_cast<int>(a.radius);
        const unsigned char *in = a.in + y * a.in_stride + p * C;
        unsigned char *out = a.out + y * a.out_stride + p * C;
        float loaded[4 + 2 * around];
#pragma unroll
        for (int i = 0; i < 4 + 2 * around; i++) {
            const int d = i - around;
            loaded[i] = 0.0f;
            if (d >= -left && d < right)
                loaded[i] = enhance(gf_load(in[d * C + c]), a.constants.gain);
        }
        float mean[6];
#pragma unroll
        for (int j = 0; j < 6; j++) {
            const int d = j - 1;
            float sum = 0.0f;
#pragma unroll
            for (int k = -around; k <= around; k++) {
                // Without the smooth stage a window may reach so far; nobody asks for the means
                // before and after then, of which only a part is there.
                const int i = around + d + k;
                if (i >= 0 && i < 4 + 2 * around && k >= -radius && k <= radius)
                    sum = __fadd_rn(sum, loaded[i]);
            }
            const int lo = d - radius < -left ? -left : d - radius;
            const int hi = d + radius < right ? d + radius : right - 1;
            const int n = hi < lo ? 1 : hi - lo + 1; // nothing is there past the row's ends
            const float quotient = __fmul_rn(sum, a.inverse[n]);
            mean[j] =
                __fmaf_rn(__fmaf_rn(-static_cast<float>(n), quotient, sum), a.inverse[n], quotient);
        }
        uint8_t stored[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float t = mean[i + 1];
            if (a.constants.smooth)
                t = smooth(mean[i], t, mean[i + 2], {i > -left, i + 1 < right}, a.constants);
            stored[i] = gf_store<uint8_t>(t);
        }
        if (C == 1 && right >= 4) {
            *reinterpret_cast<uchar4 *>(out) =
                make_uchar4(stored[0], stored[1], stored[2], stored[3]);
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < right)
                out[i * C + c] = stored[i];
        // The first channel's lane carries the alpha.
        for (int i = 0; i < 4 && i < right && filtered < C && c == 0; i++)
            out[i * C + C - 1] = in[i * C + C - 1];
    }
};

#endif
