// normalize on the GPU: vectors of samples, divided by their channels' means.
#include "vectors.cuh"

#include "normalize/normalize.h"

namespace {

struct Args {
    const unsigned char *in; // of the first row
    unsigned char *out;
    size_t in_stride, out_stride;
    uint64_t row_bytes;
    float mean[GF_MAX_CHANNELS], half;
    gf_shares shares;
};

// What a channel's samples are divided by. inverse: 1 / mean, rounded; at_once: half / mean,
// rounded.
struct Divisor {
    float mean, inverse, half, at_once;
};

#define TWO_23 8388608.0f // a float of 2^23 + n ends in the bits of the integer n < 2^23

// The store of a value that is not negative, to which 2^23 was added: its integer in the low bits.
template <typename T> __device__ __forceinline__ uint32_t clamped(float x) {
    const uint32_t bits = __float_as_uint(x), max = sizeof(T) == 1 ? 255 : 65535;
    const uint32_t most = 0x4b000000u + max;
    return bits < most ? bits : most;
}

// One step from a quotient towards the nearest.
__device__ __forceinline__ float nearer(float q, float x, const Divisor &by) {
    return __fmaf_rn(__fmaf_rn(-by.mean, q, x), by.inverse, q);
}

// x * inverse is at most two units in the last place off; one step makes it one of the two
// neighbours of the quotient, and from there the step leads to the nearest (Markstein's theorem:
// the inverse is the nearest to 1 / mean, and nothing is too small: a mean of integers that is not
// 0 is at least 2^-64). The rest is as docs/numerics.md says it.
template <typename T>
__device__ __forceinline__ uint32_t exactly(uint32_t bits, const Divisor &by) {
    const float x = __fsub_rn(__uint_as_float(bits), TWO_23);
    const float q = nearer(nearer(__fmul_rn(x, by.inverse), x, by), x, by);
    return clamped<T>(__fadd_rn(__fmul_rn(q, by.half), TWO_23));
}

// Rounded in other places, which seldom makes a difference: a block tries all values of u8 first.
__device__ __forceinline__ uint32_t quickly(uint32_t bits, const Divisor &by) {
    const float x = __fsub_rn(__uint_as_float(bits), TWO_23);
    return clamped<uint8_t>(__fmaf_rn(x, by.at_once, TWO_23));
}

// A vector of T. CHANNELS divisors, the first being that of the vector's first sample; of an even
// number of channels the last is alpha and carried. quick: what try_out said.
template <typename T, int CHANNELS> struct Vector;

template <int CHANNELS> struct Vector<uint8_t, CHANNELS> {
    static __device__ __forceinline__ bool try_out(const Divisor (&by)[CHANNELS]) {
        const uint32_t bits = 0x4b000000u + threadIdx.x;
        bool same = true;
#pragma unroll
        for (int c = 0; c < CHANNELS - (CHANNELS % 2 == 0); c++)
            same = same && quickly(bits, by[c]) == exactly<uint8_t>(bits, by[c]);
        return __syncthreads_and(same);
    }

    template <bool QUICK>
    static __device__ __forceinline__ uint4 run(uint4 v, const Divisor (&by)[CHANNELS], int shift) {
        uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t b[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int c = (4 * i + k + shift) % CHANNELS;
                b[k] = __byte_perm(w[i], 0x4b000000u, 0x7540 | k);
                if (CHANNELS % 2 != 0 || c != CHANNELS - 1)
                    b[k] = QUICK ? quickly(b[k], by[c]) : exactly<uint8_t>(b[k], by[c]);
            }
            w[i] = __byte_perm(__byte_perm(b[0], b[1], 0x0040), __byte_perm(b[2], b[3], 0x0040),
                               0x5410);
        }
        return make_uint4(w[0], w[1], w[2], w[3]);
    }

    static __device__ __forceinline__ uint8_t sample(uint8_t x, const Divisor &by) {
        return static_cast<uint8_t>(exactly<uint8_t>(0x4b000000u + x, by));
    }
};

template <int CHANNELS> struct Vector<uint16_t, CHANNELS> {
    static __device__ __forceinline__ bool try_out(const Divisor (&)[CHANNELS]) {
        return false;
    }

    template <bool>
    static __device__ __forceinline__ uint4 run(uint4 v, const Divisor (&by)[CHANNELS], int shift) {
        uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t b[2];
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const int c = (2 * i + k + shift) % CHANNELS;
                b[k] = __byte_perm(w[i], 0x4b000000u, k == 0 ? 0x7410 : 0x7432);
                if (CHANNELS % 2 != 0 || c != CHANNELS - 1)
                    b[k] = exactly<uint16_t>(b[k], by[c]);
            }
            w[i] = __byte_perm(b[0], b[1], 0x5410);
        }
        return make_uint4(w[0], w[1], w[2], w[3]);
    }

    static __device__ __forceinline__ uint16_t sample(uint16_t x, const Divisor &by) {
        return static_cast<uint16_t>(exactly<uint16_t>(0x4b000000u + x, by));
    }
};

template <int CHANNELS> struct Vector<float, CHANNELS> {
    static __device__ __forceinline__ bool try_out(const Divisor (&)[CHANNELS]) {
        return false;
    }

    template <bool>
    static __device__ __forceinline__ uint4 run(uint4 v, const Divisor (&by)[CHANNELS], int shift) {
        uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int c = (i + shift) % CHANNELS;
            if (CHANNELS % 2 != 0 || c != CHANNELS - 1)
                w[i] = __float_as_uint(sample(__uint_as_float(w[i]), by[c]));
        }
        return make_uint4(w[0], w[1], w[2], w[3]);
    }

    static __device__ __forceinline__ float sample(float x, const Divisor &by) {
        return gf_store<float>(__fdiv_rn(x, by.mean));
    }
};

// One GROUP's way along a unit; see normalize.
template <bool QUICK, typename T, int CHANNELS, int GROUP>
__device__ __forceinline__ void walk(const unsigned char *in, unsigned char *out, uint32_t bytes,
                                     uint32_t lane, const Divisor (&by)[CHANNELS]) {
    const int vector_samples = 16 / sizeof(T);
    const unsigned char *const row[1] = {in};
    gf_walk<1, GROUP, CHANNELS == 3 ? 3 : 4, false>(
        row, bytes, lane, [&](int u, uint64_t v, uint32_t have, const uint4(&q)[1]) {
            const int shift = u * GROUP * vector_samples % CHANNELS;
            if (have == 16) {
                __stcs(reinterpret_cast<uint4 *>(out) + v,
                       Vector<T, CHANNELS>::template run<QUICK>(q[0], by, shift));
                return;
            }
            const T *from = reinterpret_cast<const T *>(in + 16 * v);
            T *to = reinterpret_cast<T *>(out + 16 * v);
#pragma unroll 1
            for (uint32_t i = 0; i < have / sizeof(T); i++) {
                const uint32_t channel = (i + shift) % CHANNELS;
                T made = from[i];
#pragma unroll
                for (uint32_t c = 0; c < CHANNELS - (CHANNELS % 2 == 0); c++)
                    if (c == channel)
                        made = Vector<T, CHANNELS>::sample(from[i], by[c]);
                to[i] = made;
            }
        });
}

// Blocks that a processor is to hold, so that enough loads are under way: five where the registers
// suffice. (Turing holds four of this size.)
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
#define BLOCKS_AT_HOME(T, CHANNELS, GROUP) 4
#else
#define BLOCKS_AT_HOME(T, CHANNELS, GROUP)                                                         \
    ((GROUP) == 4 || (sizeof(T) == sizeof(float) && (CHANNELS) == 4) ? 4 : 5)
#endif

// GROUP threads walk along a row, or a warp along 3 KiB of one, in turn. Reads and writes each
// sample once, 16 bytes at a time, four loads (of three channels: three, so that a thread's vectors
// begin with channels that are known when this is compiled) under way; the samples of the vector
// that holds the row's end are written one by one. Alpha is copied.
template <typename T, int CHANNELS, int GROUP>
__global__ void __launch_bounds__(GF_BLOCK, BLOCKS_AT_HOME(T, CHANNELS, GROUP)) normalize(Args a) {
    const int vector_samples = 16 / sizeof(T);
    const uint32_t lane = threadIdx.x % GROUP, groups = GF_BLOCK / GROUP;
    Divisor by[CHANNELS], mine[CHANNELS];
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
        by[c] = {a.mean[c], __frcp_rn(a.mean[c]), a.half, __fdiv_rn(a.half, a.mean[c])};
    const bool quick = Vector<T, CHANNELS>::try_out(by);
    const uint32_t phase = lane * vector_samples % CHANNELS;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
        mine[c] = CHANNELS != 3 || phase == 0 ? by[c]
                  : phase == 1                ? by[(c + 1) % CHANNELS]
                                              : by[(c + 2) % CHANNELS];
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * groups; first < a.shares.units;
         first += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit =
            gf_unit_at<GROUP == 32>(a.shares, a.row_bytes, first + threadIdx.x / GROUP);
        const unsigned char *in = a.in + unit.y * a.in_stride + unit.begin;
        unsigned char *out = a.out + unit.y * a.out_stride + unit.begin;
        const uint32_t bytes = static_cast<uint32_t>(unit.bytes); // PIECE_BYTES at most
        if (sizeof(T) == 1 && quick)
            walk<true, T, CHANNELS, GROUP>(in, out, bytes, lane, mine);
        else
            walk<false, T, CHANNELS, GROUP>(in, out, bytes, lane, mine);
    }
}

template <typename T, int CHANNELS> void run(const Args &a, cudaStream_t stream) {
    const unsigned grid = gf_share_grid(&a.shares);
    if (a.shares.group == 4)
        normalize<T, CHANNELS, 4><<<grid, GF_BLOCK, 0, stream>>>(a);
    else
        normalize<T, CHANNELS, 32><<<grid, GF_BLOCK, 0, stream>>>(a);
}

#define PIECE_BYTES 3072 // whole pixels

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const gf_normalize_plan *plan = reinterpret_cast<const gf_normalize_plan *>(head);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    Args a = {};
    a.in = gf_row(&band->in, band->out.y0);
    a.out = band->out.data;
    a.in_stride = band->in.stride;
    a.out_stride = band->out.stride;
    a.row_bytes = gf_row_bytes(&head->in);
    for (uint32_t c = 0; c < GF_MAX_CHANNELS; c++)
        a.mean[c] = plan->mean[c];
    a.half = plan->half;
    const uint64_t pieces = (a.row_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    a.shares = {a.row_bytes <= 512 ? 4u : 32u, static_cast<uint32_t>(pieces), PIECE_BYTES,
                band->out.rows * pieces};
    gf_for_type(head->in.type, [&](auto sample) {
        gf_for_channels(head->in.channels,
                        [&](auto n) { run<decltype(sample), decltype(n)::value>(a, stream); });
    });
    return gf_cuda_check(cudaGetLastError(), "normalize", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_normalize_cuda = {nullptr, launch};
