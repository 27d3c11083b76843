// convert on CUDA: sample types, linear light and premultiplied alpha. One kernel.
//
// Bytes of DRAM per sample are those of both types. Tables of u8 are in shared memory, those of u16
// in the L2 cache.
#include "cuda/vectors.cuh"

#include "convert/convert.h"
#include "samples.h"

struct convert_args : gf_strip_rows {
    uint64_t samples, vectors; // of a row; the last vector may be incomplete
    gf_partition partition;    // in vectors
    const uint32_t *tables;    // the constants of the plan
    uint32_t table_words;
    gf_srgb srgb;   // without pointers
    uint32_t alpha; // index of alpha in a pixel, 1 or 3; 0: none
    bool divide, multiply;
    gf_u64 *outside; // the state; NULL: none
};

template <typename In, typename Out> struct convert_policy {
    static constexpr int BYTES = sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out);
    static constexpr int SAMPLES = 16 / BYTES; // of a vector: 16 bytes of the larger type
    static constexpr int UNROLL = 4;           // vectors whose loads are in flight
};
static constexpr uint64_t convert_piece = 256; // vectors of a group of 32 threads
static constexpr uint64_t convert_narrow = 64; // vectors of a row for a group of 4 threads

// Clamp to 0..1; a NaN becomes 0.
GF_DEVICE float convert_clamp(float v) {
    const float low = v > 0.0f ? v : 0.0f;
    return low < 1.0f ? low : 1.0f;
}

// Divide an integer by the maximum of its type, correctly rounded: see vec_over_odd.
template <typename T> GF_DEVICE float convert_share(uint32_t code) {
    constexpr float max = sizeof(T) == 1 ? 255.0f : 65535.0f, inverse = 1.0f / max;
    const float x = static_cast<float>(code), q = __fmul_rn(x, inverse);
    return __fmaf_rn(__fmaf_rn(-q, max, x), inverse, q);
}

// Convert one sample, given its bits. light: by the tables.
template <typename In, typename Out, bool LIGHT>
GF_DEVICE uint32_t convert_sample(const gf_srgb &srgb, bool light, uint32_t bits) {
    constexpr bool REAL = sizeof(Out) == 4;
    if constexpr (sizeof(In) == sizeof(Out))
        return bits;
    else if constexpr (sizeof(In) == 1 && !REAL)
        return bits * 257;
    else if constexpr (sizeof(In) == 2 && !REAL)
        return (bits * 255 + 32895) >> 16;
    else if constexpr (REAL)
        return gf_float_bits(LIGHT && light ? srgb.linear[bits] : convert_share<In>(bits));
    else if (LIGHT && light)
        return gf_srgb_code(&srgb, gf_float_of_bits(bits));
    else // rounded once, to an integer: numbers from 2^23 have no fraction
        return gf_float_bits(__fmaf_rn(convert_clamp(gf_float_of_bits(bits)),
                                       sizeof(Out) == 1 ? 255.0f : 65535.0f, 8388608.0f)) &
               0xffff;
}

// Convert the bits of the samples of a vector. Vectors with f32 hold whole pixels with alpha.
// Returns the number of f32 samples outside 0..1 that are stored as integers.
template <typename In, typename Out, bool LIGHT, int SAMPLES>
GF_DEVICE uint32_t convert_vector(const convert_args &a, const gf_srgb &srgb,
                                  uint32_t (&x)[SAMPLES]) {
    const auto is_alpha = [&](int k) { return a.alpha != 0 && (k & a.alpha) == a.alpha; };
    const auto alpha_of = [&](int k) { return gf_float_of_bits(a.alpha == 1 ? x[k | 1] : x[3]); };
    uint32_t outside = 0;
    if constexpr (sizeof(In) == 4)
        if (a.divide) {
#pragma unroll
            for (int k = 0; k < SAMPLES; k++) {
                const float alpha = convert_clamp(alpha_of(k));
                const float quotient = gf_store<float>(__fdiv_rn(gf_float_of_bits(x[k]), alpha));
                x[k] = gf_float_bits(is_alpha(k) ? alpha : alpha > 0 ? quotient : 0.0f);
            }
        }
#pragma unroll
    for (int k = 0; k < SAMPLES; k++) {
        const float v = gf_float_of_bits(x[k]);
        if constexpr (sizeof(In) == 4 && sizeof(Out) < 4)
            outside += !(v >= 0.0f && v <= 1.0f);
        x[k] = convert_sample<In, Out, LIGHT>(srgb, !is_alpha(k), x[k]);
    }
    if constexpr (sizeof(Out) == 4)
        if (a.multiply) {
#pragma unroll
            for (int k = 0; k < SAMPLES; k++)
                if (!is_alpha(k))
                    x[k] = gf_float_bits(
                        gf_store<float>(__fmul_rn(gf_float_of_bits(x[k]), alpha_of(k))));
        }
    return outside;
}

// Convert the samples of one unit with one group of threads. Returns as convert_vector.
template <typename In, typename Out, bool LIGHT>
GF_DEVICE uint32_t convert_unit(const convert_args &a, const gf_srgb &srgb, const In *in, Out *out,
                                uint32_t samples, uint32_t lane) {
    typedef convert_policy<In, Out> Policy;
    constexpr int SAMPLES = Policy::SAMPLES, UNROLL = Policy::UNROLL;
    constexpr int IN_BYTES = SAMPLES * sizeof(In), OUT_BYTES = SAMPLES * sizeof(Out);
    constexpr int PER_WORD = 4 / sizeof(In);
    const uint32_t whole = samples / SAMPLES, group = a.partition.group;
    uint32_t outside = 0, x[SAMPLES];
    for (uint32_t first = lane; first < whole; first += UNROLL * group) {
        uint32_t words[UNROLL][IN_BYTES / 4], packed[OUT_BYTES / 4];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (first + u * group < whole)
                gf_load_words<IN_BYTES>(words[u], reinterpret_cast<const unsigned char *>(in) +
                                                      IN_BYTES * (first + u * group));
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (first + u * group >= whole)
                break;
#pragma unroll
            for (int k = 0; k < SAMPLES; k++)
                x[k] = words[u][k / PER_WORD] >> k % PER_WORD * 8 * sizeof(In) &
                       (sizeof(In) == 4 ? ~0u : (1u << 8 * (sizeof(In) % 4)) - 1);
            outside += convert_vector<In, Out, LIGHT>(a, srgb, x);
            gf_pack_samples<Out, SAMPLES>(x, packed);
            gf_store_words<OUT_BYTES>(
                reinterpret_cast<unsigned char *>(out) + OUT_BYTES * (first + u * group), packed);
        }
    }
    const uint32_t rest = samples % SAMPLES, done = samples - rest;
    if (rest != 0 && lane == 0) {
#pragma unroll
        for (uint32_t k = 0; k < SAMPLES; k++)
            x[k] = k < rest ? gf_bits(in[done + k]) : 0; // a 0 is not outside
        outside += convert_vector<In, Out, LIGHT>(a, srgb, x);
#pragma unroll
        for (uint32_t k = 0; k < SAMPLES; k++)
            if (k < rest) {
                if constexpr (sizeof(Out) == 4)
                    out[done + k] = gf_float_of_bits(x[k]);
                else
                    out[done + k] = static_cast<Out>(x[k]);
            }
    }
    return outside;
}

// Convert rows.
// Grid: one group of 4 or 32 threads per unit, up to 2^30 blocks, with tables of u8 up to 8 per SM;
// blocks then loop. Block: 256 threads. A unit is a row of at most 64 vectors, or a piece of 256
// vectors. Reads and writes each sample once, 16 bytes per access of the larger type and as many
// samples of the other one, with four loads in flight. Tail: one thread converts the samples after
// the last whole vector. Shared memory: the tables of u8, 1 or 4.4 KB. Registers: 30 to 64 (sm_90).
// Each warp that counted samples adds them to the state.
template <typename In, typename Out, bool LIGHT>
__global__ void __launch_bounds__(GF_BLOCK) convert_rows(const __grid_constant__ convert_args a) {
    constexpr int SAMPLES = convert_policy<In, Out>::SAMPLES;
    extern __shared__ uint32_t convert_tables[];
    const uint32_t group = a.partition.group, groups = GF_BLOCK / group;
    gf_srgb srgb = a.srgb;
    uint32_t outside = 0;
    gf_wait_for_stream();
    if constexpr (LIGHT) {
        constexpr bool SHARED = sizeof(In) == 1 || sizeof(Out) == 1;
        for (uint32_t i = threadIdx.x; SHARED && i < a.table_words; i += GF_BLOCK)
            convert_tables[i] = a.tables[i];
        __syncthreads();
        srgb.linear = srgb.thresholds =
            reinterpret_cast<const float *>(SHARED ? convert_tables : a.tables);
        srgb.starts =
            reinterpret_cast<const uint16_t *>(srgb.thresholds + (sizeof(Out) == 1 ? 257 : 65537));
    }
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * groups; first < a.partition.units;
         first += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit = gf_unit_at<true>(a.partition, a.vectors, first + threadIdx.x / group);
        const uint64_t begin = unit.begin * SAMPLES, rest = a.samples - begin;
        const uint64_t samples = rest < unit.bytes * SAMPLES ? rest : unit.bytes * SAMPLES;
        outside += convert_unit<In, Out, LIGHT>(
            a, srgb, reinterpret_cast<const In *>(a.in + unit.y * a.in_stride) + begin,
            reinterpret_cast<Out *>(a.out + unit.y * a.out_stride) + begin,
            static_cast<uint32_t>(samples), threadIdx.x % group);
    }
    if constexpr (sizeof(In) == 4 && sizeof(Out) < 4) {
        outside = gf_reduce_group<32>(outside, gf_plus());
        if (threadIdx.x % 32 == 0 && outside != 0 && a.outside)
            atomicAdd(a.outside, gf_u64{outside});
    }
}

static void convert_launch(const gf_plan *head, const gf_strip *strip, void *, gf_queue *queue) {
    const gf_conversion *how = &reinterpret_cast<const gf_convert_plan *>(head)->how;
    const bool light = how->srgb != nullptr;
    convert_args a = {};
    gf_set_strip_rows(&a, strip);
    a.samples = gf_row_samples(&head->in);
    a.alpha = how->alpha ? how->channels - 1 : 0;
    a.divide = how->divide;
    a.multiply = how->multiply;
    a.outside = head->state_bytes ? static_cast<gf_u64 *>(strip->state) : nullptr;
    a.tables = static_cast<const uint32_t *>(strip->constants);
    if (light)
        a.srgb = *how->srgb;
    gf_dispatch(
        [&](auto in, auto out, auto linear) {
            typedef decltype(in) In;
            typedef decltype(out) Out;
            constexpr bool LIGHT = linear && (sizeof(In) == 4) != (sizeof(Out) == 4);
            const bool shared = LIGHT && (sizeof(In) == 1 || sizeof(Out) == 1);
            a.vectors = gf_divide_up(a.samples, convert_policy<In, Out>::SAMPLES);
            const bool narrow = a.vectors <= convert_narrow;
            a.partition = gf_partition_pieces(strip->out.rows, a.vectors,
                                              narrow ? a.vectors : convert_piece, narrow ? 4 : 32);
            a.table_words = shared ? static_cast<uint32_t>(head->constant_bytes / 4) : 0;
            const uint64_t per_block = GF_BLOCK / a.partition.group;
            const unsigned grid = shared ? gf_grid(a.partition.units, per_block)
                                         : gf_blocks(a.partition.units, per_block);
            gf_launch_kernel(convert_rows<In, Out, LIGHT>, grid, GF_BLOCK, 4 * a.table_words, queue,
                             a);
        },
        gf_type_of{head->in.type}, gf_type_of{head->out.type}, gf_flag{light});
}

extern "C" const gf_filter_cuda gf_convert_cuda = {nullptr, convert_launch, nullptr, false};
