// normalize on CUDA: divide samples by the mean of their channel. One kernel with three paths.
//
//   path       used for                                    operations per sample
//   exact      u16; u8 if the quick path is not exact      multiply by the inverse, two corrections
//   quick      u8, after the block has checked all values  one fma
//   division   f32                                         __fdiv_rn
#include "cuda/vectors.cuh"

#include "normalize/normalize.h"

struct normalize_args : gf_strip_rows {
    uint64_t row_bytes;
    const float *mean; // of each channel, in device memory
    float half;
    gf_partition partition;
};

// Divisor of one channel. inverse: 1 / mean, rounded. at_once: half / mean, rounded.
struct normalize_divisor {
    float mean, inverse, half, at_once;
};

// The float 2^23 + n, n < 2^23, has n in its low bits.
static constexpr float normalize_two_23 = 8388608.0f;
static constexpr uint32_t normalize_bits = 0x4b000000u; // of 2^23

// Return the stored sample of a non-negative value to which 2^23 was added, in the low bits.
template <typename T> GF_DEVICE uint32_t normalize_clamped(float x) {
    const uint32_t bits = __float_as_uint(x), max = normalize_bits + (sizeof(T) == 1 ? 255 : 65535);
    return bits < max ? bits : max;
}

// Correct a quotient by its own error, once.
GF_DEVICE float normalize_correct(float q, float x, const normalize_divisor &by) {
    return __fmaf_rn(__fmaf_rn(-by.mean, q, x), by.inverse, q);
}

// Compute one sample exactly. bits: bits of 2^23 + sample.
// x * inverse is within two ulps of the quotient. The first correction returns one of the two
// floats adjacent to the quotient, the second the nearest one (Markstein's theorem: the inverse is
// the float nearest to 1 / mean, and nothing underflows, because a nonzero mean of integers is at
// least 2^-64). docs/numerics.md defines the other operations.
template <typename T>
GF_DEVICE uint32_t normalize_exact(uint32_t bits, const normalize_divisor &by) {
    const float x = __fsub_rn(__uint_as_float(bits), normalize_two_23);
    const float q = normalize_correct(__fmul_rn(x, by.inverse), x, by);
    return normalize_clamped<T>(
        __fadd_rn(__fmul_rn(normalize_correct(q, x, by), by.half), normalize_two_23));
}

// Compute one u8 sample with other intermediate roundings, which seldom change the result.
GF_DEVICE uint32_t normalize_quick(uint32_t bits, const normalize_divisor &by) {
    const float x = __fsub_rn(__uint_as_float(bits), normalize_two_23);
    return normalize_clamped<uint8_t>(__fmaf_rn(x, by.at_once, normalize_two_23));
}

template <typename T> GF_DEVICE T normalize_sample(T x, const normalize_divisor &by) {
    if constexpr (sizeof(T) == sizeof(float))
        return gf_store<float>(__fdiv_rn(x, by.mean));
    else
        return static_cast<T>(normalize_exact<T>(normalize_bits + x, by));
}

// Normalize one vector. shift: channel of its first sample, relative to the thread's first vector,
// whose first channel is by[0]. Alpha is copied.
template <bool QUICK, typename T, int COLOURS, int CHANNELS>
GF_DEVICE uint4 normalize_vector(const uint4 &v, const normalize_divisor (&by)[CHANNELS],
                                 int shift) {
    const int per_word = 4 / sizeof(T);
    uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t b[per_word];
#pragma unroll
        for (int k = 0; k < per_word; k++) {
            const int c = (per_word * i + k + shift) % CHANNELS;
            const bool copied = c >= COLOURS;
            if constexpr (sizeof(T) == 1) {
                b[k] = __byte_perm(w[i], normalize_bits, 0x7540 | k);
                if (!copied)
                    b[k] = QUICK ? normalize_quick(b[k], by[c])
                                 : normalize_exact<uint8_t>(b[k], by[c]);
            } else if constexpr (sizeof(T) == 2) {
                b[k] = __byte_perm(w[i], normalize_bits, k == 0 ? 0x7410 : 0x7432);
                if (!copied)
                    b[k] = normalize_exact<uint16_t>(b[k], by[c]);
            } else if (!copied) {
                w[i] = __float_as_uint(normalize_sample(__uint_as_float(w[i]), by[c]));
            }
        }
        if constexpr (sizeof(T) == 1)
            w[i] = gf_pack(b[0], b[1], b[2], b[3]);
        else if constexpr (sizeof(T) == 2)
            w[i] = __byte_perm(b[0], b[1], 0x5410);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

// Normalize one unit with one group of threads.
template <bool QUICK, typename T, int COLOURS, int CHANNELS, int GROUP>
GF_DEVICE void normalize_unit(const unsigned char *in, unsigned char *out, uint32_t bytes,
                              uint32_t lane, const normalize_divisor (&by)[CHANNELS]) {
    const int vector_samples = 16 / sizeof(T);
    const unsigned char *const row[1] = {in};
    gf_visit_vectors<1, GROUP, CHANNELS == 3 ? 3 : 4, false>(
        row, bytes, lane, [&](int u, uint64_t v, uint32_t valid, const uint4(&q)[1]) {
            const int shift = u * GROUP * vector_samples % CHANNELS;
            if (valid == 16) {
                __stcs(reinterpret_cast<uint4 *>(out) + v,
                       normalize_vector<QUICK, T, COLOURS>(q[0], by, shift));
                return;
            }
            const T *from = reinterpret_cast<const T *>(in + 16 * v);
            T *to = reinterpret_cast<T *>(out + 16 * v);
#pragma unroll 1
            for (uint32_t i = 0; i < valid / sizeof(T); i++) {
                const uint32_t channel = (i + shift) % CHANNELS;
                T result = from[i];
#pragma unroll
                for (uint32_t c = 0; c < COLOURS; c++)
                    if (c == channel)
                        result = normalize_sample(from[i], by[c]);
                to[i] = result;
            }
        });
}

template <typename T = float, int CHANNELS = 1, int GROUP = 32> struct normalize_policy {
    static constexpr int PIECE_BYTES = 3072; // whole pixels
    // Resident blocks per SM: five, for enough loads in flight, or four if registers limit them.
    static constexpr int BLOCKS =
        gf_arch < 800 || GROUP == 4 || (sizeof(T) == 4 && CHANNELS == 4) ? 4 : 5;
};

// Normalize rows.
// Grid: one group of GROUP threads per unit, up to 2^30 blocks; blocks then loop. Block: 256
// threads. With GROUP = 4 a unit is a row, with GROUP = 32 a piece of 3072 bytes. Reads and writes
// each sample once, 16 bytes per access, with four loads in flight. With three channels it is three
// loads, therefore the channel of each sample is a compile-time constant. Tail: the samples of the
// vector that holds the end of the row are written one by one. Shared memory: none. Registers: 48
// to 64 (sm_90), for 4 or 5 resident blocks.
template <typename T, int COLOURS, int CHANNELS, int GROUP>
__global__ void __launch_bounds__(GF_BLOCK, normalize_policy<T, CHANNELS, GROUP>::BLOCKS)
    normalize_rows(normalize_args a) {
    const int vector_samples = 16 / sizeof(T);
    const uint32_t lane = threadIdx.x % GROUP, groups = GF_BLOCK / GROUP;
    normalize_divisor by[CHANNELS], mine[CHANNELS];
    gf_wait_for_stream();
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        const float mean = a.mean[c];
        by[c] = {mean, __frcp_rn(mean), a.half, __fdiv_rn(a.half, mean)};
    }
    // Test whether the quick path is exact for all 256 values. Each thread tests one.
    bool quick = sizeof(T) == 1;
    if constexpr (sizeof(T) == 1) {
        const uint32_t bits = normalize_bits + threadIdx.x;
#pragma unroll
        for (int c = 0; c < COLOURS; c++)
            quick = quick && normalize_quick(bits, by[c]) == normalize_exact<uint8_t>(bits, by[c]);
        quick = __syncthreads_and(quick);
    }
    const uint32_t phase = lane * vector_samples % CHANNELS;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
        mine[c] = CHANNELS != 3 || phase == 0 ? by[c]
                  : phase == 1                ? by[(c + 1) % CHANNELS]
                                              : by[(c + 2) % CHANNELS];
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * groups; first < a.partition.units;
         first += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit =
            gf_unit_at<GROUP == 32>(a.partition, a.row_bytes, first + threadIdx.x / GROUP);
        const unsigned char *in = a.in + unit.y * a.in_stride + unit.begin;
        unsigned char *out = a.out + unit.y * a.out_stride + unit.begin;
        const uint32_t bytes = static_cast<uint32_t>(unit.bytes); // at most a piece
        if (sizeof(T) == 1 && quick)
            normalize_unit<true, T, COLOURS, CHANNELS, GROUP>(in, out, bytes, lane, mine);
        else
            normalize_unit<false, T, COLOURS, CHANNELS, GROUP>(in, out, bytes, lane, mine);
    }
}

static void normalize_launch(const gf_plan *head, const gf_strip *strip, void *, gf_queue *queue) {
    const gf_normalize_plan *plan = reinterpret_cast<const gf_normalize_plan *>(head);
    normalize_args a = {};
    gf_set_strip_rows(&a, strip);
    a.row_bytes = gf_row_bytes(&head->in);
    a.mean = static_cast<const float *>(strip->constants);
    a.half = plan->half;
    a.partition = gf_partition_pieces(strip->out.rows, a.row_bytes, normalize_policy<>::PIECE_BYTES,
                                      a.row_bytes <= 512 ? 4 : 32);
    const unsigned grid = gf_partition_grid(a.partition);
    gf_dispatch(
        [&](auto sample, auto c, auto alpha) {
            typedef decltype(sample) Sample;
            const int COLOURS = alpha ? GF_COLOURS(c) : int{c};
            const auto kernel = a.partition.group == 4 ? normalize_rows<Sample, COLOURS, c, 4>
                                                       : normalize_rows<Sample, COLOURS, c, 32>;
            gf_launch_kernel(kernel, grid, GF_BLOCK, 0, queue, a);
        },
        gf_type_of{head->in.type}, gf_channels{head->in.channels},
        gf_flag{gf_has_alpha(&head->in)});
}

// ---- means --------------------------------------------------------------------------------------

static constexpr int means_threads = 256; // of normalize_means

// Compute the mean of each channel from the sums of its rows: as the measure of axis-sum and refine
// of filters/normalize/normalize.c do.
// Grid: one block per channel. Block: 256 threads. Integer sums are added in any order. f32 sums
// are added by one thread from the first row to the last; the block loads the next ones while it
// adds. Shared memory: 4 KB. Registers: 25 to 30 (sm_90).
template <bool REAL>
__global__ void __launch_bounds__(means_threads)
    normalize_means(const unsigned char *records, size_t stride, uint64_t rows, double count,
                    float *means) {
    __shared__ gf_u64 sums[2][means_threads];
    const unsigned char *record = records + blockIdx.x * sizeof(uint64_t);
    const auto load = [&](uint64_t y) {
        return y < rows ? *reinterpret_cast<const gf_u64 *>(record + y * stride) : 0;
    };
    double total = 0;
    gf_wait_for_stream();
    if constexpr (REAL) {
        gf_u64 next = load(threadIdx.x);
        for (uint64_t first = 0; first < rows; first += means_threads) {
            gf_u64 *stage = sums[first / means_threads % 2];
            stage[threadIdx.x] = next;
            __syncthreads();
            next = load(first + means_threads + threadIdx.x);
            if (threadIdx.x == 0) {
                const uint64_t left = rows - first;
                const int n = left < means_threads ? static_cast<int>(left) : means_threads;
#pragma unroll 8
                for (int i = 0; i < n; i++)
                    total =
                        __dadd_rn(total, __longlong_as_double(static_cast<long long>(stage[i])));
            }
        }
    } else {
        gf_u64 sum = 0; // no image in device memory exceeds 64 bits
        for (uint64_t y = threadIdx.x; y < rows; y += means_threads)
            sum += load(y);
        sums[0][threadIdx.x] = sum;
        for (unsigned distance = means_threads / 2; distance > 0; distance /= 2) {
            __syncthreads();
            if (threadIdx.x < distance)
                sums[0][threadIdx.x] += sums[0][threadIdx.x + distance];
        }
        total = __ull2double_rn(sums[0][0]);
    }
    if (threadIdx.x == 0) {
        const float mean = __double2float_rn(__ddiv_rn(total, count));
        means[blockIdx.x] = mean <= 0 ? 1 : mean;
    }
}

static void normalize_refine(const gf_plan *plan, const gf_rows *records, void *constants,
                             gf_queue *queue) {
    const unsigned channels = gf_measured_channels(&plan->in);
    const double count = static_cast<double>(plan->in.width) * static_cast<double>(records->rows);
    gf_flag{plan->in.type == GF_F32}([&](auto real) {
        gf_launch_kernel(normalize_means<decltype(real)::value>, channels, means_threads, 0, queue,
                         records->data, records->stride, records->rows, count,
                         static_cast<float *>(constants));
    });
}

extern "C" const gf_filter_cuda gf_normalize_cuda = {nullptr, normalize_launch, normalize_refine,
                                                     false};
