// normalize on the GPU: vectors of samples, divided by their channels' means.
#include "vectors.cuh"

#include "normalize/normalize.h"

namespace {

struct Args {
    const unsigned char *in; // of the first row
    unsigned char *out;
    size_t in_stride, out_stride;
    uint64_t row_bytes;
    uint32_t measured;
    float mean[GF_MAX_CHANNELS], half;
    gf_shares shares;
};

// What a channel's samples are divided by. inverse: 1 / mean, rounded.
struct Divisor {
    float mean, inverse, half;
};

// As docs/numerics.md says it.
template <typename T> __device__ __forceinline__ T exactly(T x, const Divisor &by) {
    return gf_store<T>(__fmul_rn(__fdiv_rn(gf_load(x), by.mean), by.half));
}

template <> __device__ __forceinline__ float exactly<float>(float x, const Divisor &by) {
    return gf_store<float>(__fdiv_rn(x, by.mean));
}

// One step from a quotient towards the nearest.
__device__ __forceinline__ float nearer(float q, float x, const Divisor &by) {
    return __fmaf_rn(__fmaf_rn(-by.mean, q, x), by.inverse, q);
}

#define TWO_23 8388608.0f // a float of 2^23 + n ends in the bits of the integer n < 2^23

// The store of a value that is not negative: its integer in the low bits.
template <typename T> __device__ __forceinline__ uint32_t rounded(float x) {
    const uint32_t bits = __float_as_uint(__fadd_rn(x, TWO_23)), max = sizeof(T) == 1 ? 255 : 65535;
    const uint32_t most = 0x4b000000u + max;
    return bits < most ? bits : most;
}

// A vector of T. CHANNELS divisors, the first being that of the vector's first sample; ALPHA: the
// last channel is carried.
template <typename T, int CHANNELS> struct Vector;

// One step makes of x * inverse the nearest quotient, or may not: whether it does for all 256
// values, a block tries out before it begins.
template <int CHANNELS> struct Vector<uint8_t, CHANNELS> {
    static __device__ __forceinline__ uint32_t quickly(uint32_t bits, const Divisor &by) {
        const float x = __fsub_rn(__uint_as_float(bits), TWO_23);
        return rounded<uint8_t>(__fmul_rn(nearer(__fmul_rn(x, by.inverse), x, by), by.half));
    }

    static __device__ __forceinline__ bool exact(const Divisor (&by)[CHANNELS], uint32_t measured) {
        bool same = true;
#pragma unroll
        for (uint32_t c = 0; c < CHANNELS; c++)
            if (c < measured)
                same = same && (quickly(0x4b000000u + threadIdx.x, by[c]) & 0xffu) ==
                                   exactly(static_cast<uint8_t>(threadIdx.x), by[c]);
        return __syncthreads_and(same);
    }

    static __device__ __forceinline__ uint4 run(uint4 v, const Divisor (&by)[CHANNELS], int shift) {
        uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t b[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int c = (4 * i + k + shift) % CHANNELS;
                const uint32_t bits = __byte_perm(w[i], 0x4b000000u, 0x7540 | k);
                b[k] = CHANNELS % 2 == 0 && c == CHANNELS - 1 ? bits : quickly(bits, by[c]);
            }
            w[i] = __byte_perm(__byte_perm(b[0], b[1], 0x0040), __byte_perm(b[2], b[3], 0x0040),
                               0x5410);
        }
        return make_uint4(w[0], w[1], w[2], w[3]);
    }
};

// x * inverse is at most two units in the last place off; one step makes it one of the two
// neighbours of the quotient, and from there the step leads to the nearest (Markstein's theorem:
// the inverse is the nearest to 1 / mean, and nothing is too small: a mean of u16 that is not 0 is
// at least 2^-64).
template <int CHANNELS> struct Vector<uint16_t, CHANNELS> {
    static __device__ __forceinline__ uint32_t quickly(uint32_t bits, const Divisor &by) {
        const float x = __fsub_rn(__uint_as_float(bits), TWO_23);
        const float q = nearer(nearer(__fmul_rn(x, by.inverse), x, by), x, by);
        return rounded<uint16_t>(__fmul_rn(q, by.half));
    }

    static __device__ __forceinline__ bool exact(const Divisor (&)[CHANNELS], uint32_t) {
        return true;
    }

    static __device__ __forceinline__ uint4 run(uint4 v, const Divisor (&by)[CHANNELS], int shift) {
        uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t b[2];
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const int c = (2 * i + k + shift) % CHANNELS;
                const uint32_t bits = __byte_perm(w[i], 0x4b000000u, k == 0 ? 0x7410 : 0x7432);
                b[k] = CHANNELS % 2 == 0 && c == CHANNELS - 1 ? bits : quickly(bits, by[c]);
            }
            w[i] = __byte_perm(b[0], b[1], 0x5410);
        }
        return make_uint4(w[0], w[1], w[2], w[3]);
    }
};

template <int CHANNELS> struct Vector<float, CHANNELS> {
    static __device__ __forceinline__ bool exact(const Divisor (&)[CHANNELS], uint32_t) {
        return true;
    }

    static __device__ __forceinline__ uint4 run(uint4 v, const Divisor (&by)[CHANNELS], int shift) {
        uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int c = (i + shift) % CHANNELS;
            if (CHANNELS % 2 != 0 || c != CHANNELS - 1)
                w[i] = __float_as_uint(exactly(__uint_as_float(w[i]), by[c]));
        }
        return make_uint4(w[0], w[1], w[2], w[3]);
    }
};

// GROUP threads walk along a row, or a block along a piece of one. Reads and writes each sample
// once, 16 bytes at a time, four loads (of three channels: three, so that a thread's vectors begin
// with channels that are known when this is compiled) under way; the samples of the vector that
// holds the row's end are written one by one. Alpha is copied.
template <typename T, int CHANNELS, int GROUP>
__global__ void __launch_bounds__(GF_BLOCK) normalize(Args a) {
    const int vector_samples = 16 / sizeof(T);
    const uint32_t lane = threadIdx.x % GROUP, groups = GF_BLOCK / GROUP;
    Divisor by[CHANNELS], mine[CHANNELS];
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
        by[c] = {a.mean[c], __frcp_rn(a.mean[c]), a.half};
    const bool exact = Vector<T, CHANNELS>::exact(by, a.measured);
    const uint32_t phase = lane * vector_samples % CHANNELS;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
        mine[c] = CHANNELS != 3 || phase == 0 ? by[c]
                  : phase == 1                ? by[(c + 1) % CHANNELS]
                                              : by[(c + 2) % CHANNELS];
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * groups; first < a.shares.units;
         first += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit = gf_unit_at<GROUP>(a.shares, a.row_bytes, first + threadIdx.x / GROUP);
        const unsigned char *const row[1] = {a.in + unit.y * a.in_stride + unit.begin};
        unsigned char *out = a.out + unit.y * a.out_stride + unit.begin;
        if (!exact) {
            for (uint64_t i = lane; i < unit.bytes / sizeof(T); i += GROUP) {
                const uint32_t c = static_cast<uint32_t>(i % CHANNELS);
                const T x = reinterpret_cast<const T *>(row[0])[i];
                T made = x;
#pragma unroll
                for (uint32_t k = 0; k < CHANNELS; k++)
                    if (k == c && k < a.measured)
                        made = exactly(x, by[k]);
                reinterpret_cast<T *>(out)[i] = made;
            }
            continue;
        }
        gf_walk<1, GROUP, CHANNELS == 3 ? 3 : 4>(
            row, unit.bytes, lane, [&](int u, uint64_t v, const uint4(&q)[1]) {
                const uint4 made =
                    Vector<T, CHANNELS>::run(q[0], mine, u * GROUP * vector_samples % CHANNELS);
                if (16 * (v + 1) <= unit.bytes) {
                    __stcs(reinterpret_cast<uint4 *>(out) + v, made);
                    return;
                }
                const uint32_t w[4] = {made.x, made.y, made.z, made.w};
#pragma unroll
                for (int i = 0; i < vector_samples; i++)
                    if (16 * v + (i + 1) * sizeof(T) <= unit.bytes) {
                        const int in_word = 4 / sizeof(T), bits = 8 * sizeof(T) * (i % in_word);
                        const uint32_t x = w[i / in_word] >> bits;
                        T *to = reinterpret_cast<T *>(out + 16 * v) + i;
                        if (sizeof(T) == sizeof(float))
                            *reinterpret_cast<uint32_t *>(to) = x;
                        else
                            *to = static_cast<T>(x);
                    }
            });
    }
}

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
    a.measured = gf_measured_channels(head->in.channels, false);
    for (uint32_t c = 0; c < GF_MAX_CHANNELS; c++)
        a.mean[c] = plan->mean[c];
    a.half = plan->half;
    a.shares = gf_share_rows(band->out.rows, a.row_bytes);
    const unsigned grid = gf_share_grid(&a.shares);
    gf_for_type(head->in.type, [&](auto sample) {
        gf_for_channels(head->in.channels, [&](auto n) {
            gf_for_group(a.shares.group, [&](auto group) {
                normalize<decltype(sample), decltype(n)::value, decltype(group)::value>
                    <<<grid, GF_BLOCK, 0, stream>>>(a);
            });
        });
    });
    return gf_cuda_check(cudaGetLastError(), "normalize", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_normalize_cuda = {nullptr, launch};
