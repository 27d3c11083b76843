// Sums along rows: of samples (one image, axis-sum) or of products (two images, dot). The function
// at the end of this file chooses the kernel.
//
// f32 is summed in binary64, in the order that filters/samples.h defines: 256 lanes per channel,
// then a tree. The f32 kernels differ only in the assignment of lanes to threads. In this file,
// "lane" is a lane of that order.
#ifndef GF_ROW_SUMS_CUH
#define GF_ROW_SUMS_CUH

#include "cuda/vectors.cuh"
#include "samples.h"

// IMAGES: inputs.
template <int IMAGES> struct gf_row_sums : gf_row_args<IMAGES> { uint32_t channels, measured; };

template <int IMAGES> GF_DEVICE gf_u64 *gf_sums_at(const gf_row_sums<IMAGES> &a, uint64_t y) {
    return gf_record_at<gf_u64>(a, y);
}

// One u8 vector split by channel: each word holds samples of one channel, or zeros. With three
// channels, channel 0 is the channel of the first sample of the vector.
template <int CHANNELS> struct gf_planes {
    static const int words = CHANNELS == 1 ? 4 : CHANNELS == 4 ? 1 : 2;
    uint32_t w[CHANNELS][words];

    __device__ __forceinline__ gf_planes(const uint4 &v) {
        if constexpr (CHANNELS == 4) {
            const uint32_t low[2] = {__byte_perm(v.x, v.y, 0x5140), __byte_perm(v.z, v.w, 0x5140)};
            const uint32_t high[2] = {__byte_perm(v.x, v.y, 0x7362), __byte_perm(v.z, v.w, 0x7362)};
#pragma unroll
            for (int c = 0; c < 4; c++)
                w[c][0] = __byte_perm(c < 2 ? low[0] : high[0], c < 2 ? low[1] : high[1],
                                      c % 2 ? 0x7632 : 0x5410);
        } else {
            const uint32_t from[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
#pragma unroll
                for (int k = 0; k < words; k++)
                    w[c][k] = CHANNELS == 3 && k == 1 // samples 12 to 15: the first channel has two
                                  ? __byte_perm(v.w, 0, c == 0 ? 0x4430 : 0x4440 + c)
                                  : gf_channel_word<CHANNELS>(from + k * CHANNELS, c);
        }
    }
};

// ---- u8 and u16 ---------------------------------------------------------------------------------

// Add vectors to the sums of a thread: samples, or the products a.b, a.a, b.b in the order of dot's
// records. Channel c of a vector is added to sum[..][(c + shift) % CHANNELS].
template <typename T, int CHANNELS, int IMAGES> struct gf_integer_sums {
    // A product of u16 may need 32 bits. GF_MAX_PIECE limits the number of other summands.
    typedef typename std::conditional<IMAGES == 2 && sizeof(T) == 2, gf_u64, uint32_t>::type Sum;
    static const int sums = IMAGES == 1 ? 1 : 3;

    GF_DEVICE void add(Sum (&sum)[sums][CHANNELS], int shift, const uint4 (&q)[IMAGES]) {
        if constexpr (sizeof(T) == 1) {
            const gf_planes<CHANNELS> a(q[0]), b(q[IMAGES - 1]);
#pragma unroll
            for (int i = 0; i < CHANNELS; i++) {
                const int c = (i + shift) % CHANNELS;
#pragma unroll
                for (int k = 0; k < a.words; k++) {
                    const uint32_t by = IMAGES == 1 ? 0x01010101u : b.w[i][k];
                    sum[0][c] = __dp4a(a.w[i][k], by, sum[0][c]);
                    if constexpr (IMAGES == 2) {
                        sum[1][c] = __dp4a(a.w[i][k], a.w[i][k], sum[1][c]);
                        sum[2][c] = __dp4a(b.w[i][k], b.w[i][k], sum[2][c]);
                    }
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int c = (i + shift) % CHANNELS;
                const Sum x = gf_sample_at<T>(q[0], i);
                if constexpr (IMAGES == 1) {
                    sum[0][c] += x;
                } else {
                    const Sum y = gf_sample_at<T>(q[1], i);
                    sum[0][c] += x * y;
                    sum[1][c] += x * x;
                    sum[2][c] += y * y;
                }
            }
        }
    }
};

// Add the sums of the warps of a block, and store them in the record of its row. VALUES: of a warp.
template <int VALUES>
GF_DEVICE void gf_store_block_sums(const gf_u64 (&parts)[GF_BLOCK / 32][VALUES], uint32_t values,
                                   bool is_row, gf_u64 *record) {
    __syncthreads();
    if (threadIdx.x < values) {
        gf_u64 total = 0;
        for (int warp = 0; warp < GF_BLOCK / 32; warp++)
            total += parts[warp][threadIdx.x];
        if (is_row)
            record[threadIdx.x] = total;
        else
            atomicAdd(&record[threadIdx.x], total);
    }
    __syncthreads();
}

// Sum rows of integers.
// Grid: one group of GROUP threads per unit, up to 2^30 blocks; blocks then loop. Block: 256
// threads. A unit is a row, or with GROUP = 256 a piece of a row. Reads each sample once, 16 bytes
// per load; writes one record per row. Pieces of a row add to its record by atomics; the record is
// zero before. Shared memory: one sum per warp, kind and channel, at most 768 B. Registers: 32 to
// 48 for axis-sum, 48 to 80 for dot (sm_90).
template <typename T, int CHANNELS, int IMAGES, int GROUP>
__global__ void __launch_bounds__(GF_BLOCK)
    gf_sum_integer_rows(const __grid_constant__ gf_row_sums<IMAGES> a) {
    typedef gf_integer_sums<T, CHANNELS, IMAGES> Sums;
    typedef typename Sums::Sum Sum;
    const int values = Sums::sums * CHANNELS, vector_samples = 16 / sizeof(T);
    // With three channels a multiple of three: the first channel of each vector of a thread is then
    // a compile-time constant. 64-bit sums leave fewer registers.
    const int unroll = CHANNELS != 3 ? 4 : sizeof(Sum) == 8 ? 3 : 6;
    __shared__ gf_u64 parts[GF_BLOCK / 32][values];
    const uint32_t lane = threadIdx.x % GROUP, groups = GF_BLOCK / GROUP;
    gf_wait_for_stream();
    // All threads of a block run the same number of iterations: they synchronize to reduce.
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * groups; first < a.partition.units;
         first += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit =
            gf_unit_at<GROUP == GF_BLOCK>(a.partition, a.row_bytes, first + threadIdx.x / GROUP);
        const unsigned char *row[IMAGES];
        gf_row_inputs(a, unit.y, unit.begin, row);
        Sum sum[Sums::sums][CHANNELS] = {};
        gf_visit_vectors<IMAGES, GROUP, unroll>(
            row, unit.bytes, lane, [&](int u, uint64_t, uint32_t, const uint4(&q)[IMAGES]) {
                Sums::add(sum, u * GROUP * vector_samples % CHANNELS, q);
            });
        // The channel of each sum depends on the first vector of the thread.
        const uint32_t phase = lane * vector_samples % CHANNELS;
        gf_u64 *record = gf_sums_at(a, unit.y);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
#pragma unroll
            for (int s = 0; s < Sums::sums; s++) {
                const int value = c * Sums::sums + s;
                Sum x = sum[s][c];
                if (CHANNELS == 3)
                    x = phase == 0   ? x
                        : phase == 1 ? sum[s][(c + CHANNELS - 1) % CHANNELS]
                                     : sum[s][(c + CHANNELS - 2) % CHANNELS];
                if (GROUP < GF_BLOCK) { // rows of at most 24 KiB: the total fits 32 bits
                    x = gf_reduce_group<GROUP>(x, gf_plus());
                    if (unit.bytes && lane == 0 && c < static_cast<int>(a.measured))
                        record[value] = x;
                } else {
                    const gf_u64 total = gf_reduce_group<32>(static_cast<gf_u64>(x), gf_plus());
                    if (threadIdx.x % 32 == 0)
                        parts[threadIdx.x / 32][value] = total;
                }
            }
        if (GROUP == GF_BLOCK)
            gf_store_block_sums(parts, a.measured * Sums::sums, a.partition.pieces == 1, record);
    }
}

// ---- f32 ----------------------------------------------------------------------------------------

// Tuning constants of the f32 kernels.
struct gf_lanes_policy {
    static constexpr int PER_THREAD = 8;   // lanes, in gf_sum_few_lanes
    static constexpr int SHORT_ROW = 2048; // pixels; up to this width, one warp per row
};

// Sums per channel for one or two images, in the order of dot's records.
template <int IMAGES> static constexpr int gf_sums_of = IMAGES == 1 ? 1 : 4;

// Add one sample to the sums. Each operation is rounded separately. A product of two f32 is exact
// in binary64; rounding it before the addition changes nothing.
GF_DEVICE void gf_add_sample(double (&sum)[1], const float (&x)[1]) {
    sum[0] = __dadd_rn(sum[0], static_cast<double>(x[0]));
}

GF_DEVICE void gf_add_sample(double (&sum)[4], const float (&x)[2]) {
    const double p = x[0], q = x[1], d = __dsub_rn(p, q);
    sum[0] = __fma_rn(p, q, sum[0]);
    sum[1] = __fma_rn(p, p, sum[1]);
    sum[2] = __fma_rn(q, q, sum[2]);
    sum[3] = __dadd_rn(sum[3], __dmul_rn(d, d));
}

// Return the bits of a sum for a record.
GF_DEVICE gf_u64 gf_result_bits(double x) {
    return static_cast<gf_u64>(__double_as_longlong(gf_canonical(x)));
}

// Add the samples of one vector per image to the four lanes of a thread.
template <int IMAGES, int SUMS>
GF_DEVICE void gf_add_vectors(double (&sum)[4][SUMS], const uint4 (&q)[IMAGES]) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float x[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            x[i] = gf_sample_at<float>(q[i], j);
        gf_add_sample(sum[j], x);
    }
}

// Sum rows of f32.
// Grid: one block per row, up to 2^30; blocks then loop. Block: 64 threads per channel. The vectors
// of a block hold 256 pixels, therefore a thread keeps the lanes of the four samples of its first
// vector. Reads each sample once, 16 bytes per load, UNROLL loads in flight; writes one record per
// row. Tail: zeros are added, which change no sum, because no sum is ever -0. Shared memory: the
// lanes of each sum and channel, 2 to 33 KB; the padding between the four lanes of a thread reduces
// bank conflicts. Registers: 40 to 252 for axis-sum, 66 to 254 for dot (sm_90).
template <int CHANNELS, int IMAGES, int UNROLL>
__global__ void __launch_bounds__(64 * CHANNELS)
    gf_sum_lanes(const __grid_constant__ gf_row_sums<IMAGES> a) {
    const int threads = 64 * CHANNELS, sums = gf_sums_of<IMAGES>, pitch = threads + 4;
    __shared__ double lanes[sums][4 * pitch];
    gf_wait_for_stream();
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        const unsigned char *row[IMAGES];
        gf_row_inputs(a, y, 0, row);
        double sum[4][sums] = {};
        gf_visit_vectors<IMAGES, threads, UNROLL / IMAGES>(
            row, a.row_bytes, threadIdx.x,
            [&](int, uint64_t, uint32_t, const uint4(&q)[IMAGES]) { gf_add_vectors(sum, q); });
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int s = 0; s < sums; s++)
                lanes[s][j * pitch + threadIdx.x] = sum[j][s];
        __syncthreads();
        // Each warp reduces one tree at a time.
        for (uint32_t value = threadIdx.x / 32; value < a.measured * sums; value += threads / 32) {
            const uint32_t c = value / sums;
            double x[8];
#pragma unroll
            for (uint32_t i = 0; i < 8; i++) {
                const uint32_t e = (threadIdx.x % 32 + 32 * i) * CHANNELS + c;
                x[i] = lanes[value % sums][e % 4 * pitch + e / 4];
            }
            const double total = gf_add_lanes(x);
            if (threadIdx.x % 32 == 0)
                gf_sums_at(a, y)[value] = gf_result_bits(total);
        }
        __syncthreads();
    }
}

// Reduce 128 lanes in the order of the tree. Thread t of the warp has lanes 4t to 4t + 3. In the
// first two steps, each thread sends one half of its values and adds to the other half.
GF_DEVICE double gf_warp_tree(const double (&x)[4]) {
    const uint32_t all = 0xffffffffu;
    const bool bit4 = threadIdx.x & 16, bit3 = threadIdx.x & 8;
    double keep[2];
#pragma unroll
    for (int j = 0; j < 2; j++)
        keep[j] = __dadd_rn(bit4 ? x[j + 2] : x[j],
                            __shfl_xor_sync(all, bit4 ? x[j] : x[j + 2], 16)); // stride 64
    double sum = __dadd_rn(bit3 ? keep[1] : keep[0],
                           __shfl_xor_sync(all, bit3 ? keep[0] : keep[1], 8)); // 32
#pragma unroll
    for (int distance = 4; distance > 0; distance /= 2) // 16, 8, 4
        sum = __dadd_rn(sum, __shfl_xor_sync(all, sum, distance));
    sum = __dadd_rn(sum, __shfl_xor_sync(all, sum, 16)); // 2
    return __dadd_rn(sum, __shfl_xor_sync(all, sum, 8)); // 1
}

// Sum short rows of f32, one channel: with a block per row, most time would be spent in the tree.
// Grid: one warp per row, up to 2^30 blocks; blocks then loop. Block: 256 threads. Thread t of a
// warp keeps lanes 4t to 4t + 3 and 128 + 4t to 131 + 4t. Reads each sample once, 16 bytes per
// load. Shared memory: none. Registers: 48 for axis-sum, 128 for dot (sm_90).
template <int IMAGES>
__global__ void __launch_bounds__(GF_BLOCK)
    gf_sum_short_lanes(const __grid_constant__ gf_row_sums<IMAGES> a) {
    const int sums = gf_sums_of<IMAGES>;
    const uint32_t lane = threadIdx.x % 32;
    gf_wait_for_stream();
    for (uint64_t y = static_cast<uint64_t>(blockIdx.x) * (GF_BLOCK / 32) + threadIdx.x / 32;
         y < a.rows; y += static_cast<uint64_t>(gridDim.x) * (GF_BLOCK / 32)) {
        const unsigned char *row[IMAGES];
        gf_row_inputs(a, y, 0, row);
        double sum[2][4][sums] = {};
        gf_visit_vectors<IMAGES, 32, 4>(row, a.row_bytes, lane,
                                        [&](int u, uint64_t, uint32_t, const uint4(&q)[IMAGES]) {
                                            gf_add_vectors(sum[u % 2], q);
                                        });
#pragma unroll
        for (int s = 0; s < sums; s++) {
            double x[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                x[j] = __dadd_rn(sum[0][j][s], sum[1][j][s]); // stride 128
            const double total = gf_warp_tree(x);
            if (lane == 0)
                gf_sums_at(a, y)[s] = gf_result_bits(total);
        }
    }
}

// Sum rows of f32 with at most 256 pixels: a lane has one sample or none.
// Grid: 2^log_group threads per row, up to 2^30 blocks; blocks then loop. Block: 256 threads. A
// thread has up to eight lanes, 2^log_group apart. Reads each sample once. A lane without one adds
// +0: no change. Shared memory: none. Registers: 32 for axis-sum, 56 for dot (sm_90).
template <int IMAGES>
__global__ void __launch_bounds__(GF_BLOCK)
    gf_sum_few_lanes(const __grid_constant__ gf_row_sums<IMAGES> a, uint32_t log_group) {
    const int sums = gf_sums_of<IMAGES>;
    const uint32_t group = 1u << log_group, rows_per_block = GF_BLOCK >> log_group;
    const uint32_t lane = threadIdx.x & (group - 1);
    gf_wait_for_stream();
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * rows_per_block; first < a.rows;
         first += static_cast<uint64_t>(gridDim.x) * rows_per_block) {
        const uint64_t y = first + (threadIdx.x >> log_group);
        const uint32_t width = y < a.rows ? static_cast<uint32_t>(a.width) : 0;
        const unsigned char *row[IMAGES];
        gf_row_inputs(a, width ? y : 0, 0, row);
        for (uint32_t c = 0; c < a.measured; c++) {
            float x[gf_lanes_policy::PER_THREAD][IMAGES] = {};
#pragma unroll
            for (uint32_t i = 0; i < gf_lanes_policy::PER_THREAD; i++)
#pragma unroll
                for (int k = 0; k < IMAGES; k++)
                    if (lane + (i << log_group) < width)
                        x[i][k] = reinterpret_cast<const float *>(
                            row[k])[(lane + (i << log_group)) * a.channels + c];
            double sum[gf_lanes_policy::PER_THREAD][sums] = {};
#pragma unroll
            for (int i = 0; i < gf_lanes_policy::PER_THREAD; i++)
                gf_add_sample(sum[i], x[i]);
#pragma unroll
            for (int s = 0; s < sums; s++) {
#pragma unroll
                for (int stride = gf_lanes_policy::PER_THREAD / 2; stride > 0; stride /= 2)
#pragma unroll
                    for (int i = 0; i < stride; i++)
                        sum[i][s] = __dadd_rn(sum[i][s], sum[i + stride][s]);
                double total = sum[0][s];
                for (uint32_t distance = group / 2; distance > 0; distance /= 2)
                    total = __dadd_rn(total, __shfl_xor_sync(GF_WARP, total, distance));
                if (lane == 0 && width)
                    gf_sums_at(a, y)[c * sums + s] = gf_result_bits(total);
            }
        }
    }
}

// Queue the kernel that sums the rows of a strip into their records.
template <int IMAGES>
static inline void gf_launch_rows(const gf_plan *plan, const gf_strip *strip, gf_queue *queue) {
    gf_row_sums<IMAGES> a = {};
    gf_set_row_args(&a, plan, strip);
    a.channels = plan->in.channels;
    a.measured = gf_measured_channels(&plan->in);
    if (plan->in.type != GF_F32) { // 4 or 16 threads per row, or a block per piece of a row
        if (a.partition.pieces > 1)
            gf_clear_rows({a.records, a.record_stride, 0, a.rows},
                          a.measured * gf_integer_sums<uint8_t, 1, IMAGES>::sums, queue);
        gf_dispatch(
            [&](auto is_u8, auto channels) {
                typedef std::conditional_t<is_u8, uint8_t, uint16_t> Sample;
                gf_for_group(a.partition.group, [&](auto group) {
                    gf_launch_kernel(
                        gf_sum_integer_rows<Sample, decltype(channels)::value, IMAGES, group>,
                        gf_partition_grid(a.partition), GF_BLOCK, 0, queue, a);
                });
            },
            gf_flag{plan->in.type == GF_U8}, gf_channels{a.channels});
    } else if (a.width <= GF_LANES) { // up to 32 threads per row
        uint32_t log_group = 0;
        while ((static_cast<uint64_t>(gf_lanes_policy::PER_THREAD) << log_group) < a.width)
            log_group++;
        gf_launch_kernel(gf_sum_few_lanes<IMAGES>, gf_blocks(a.rows, GF_BLOCK >> log_group),
                         GF_BLOCK, 0, queue, a, log_group);
    } else if (a.channels == 1 && a.width <= gf_lanes_policy::SHORT_ROW) { // a warp per row
        gf_launch_kernel(gf_sum_short_lanes<IMAGES>, gf_blocks(a.rows, GF_BLOCK / 32), GF_BLOCK, 0,
                         queue, a);
    } else { // a block per row. With few rows, each block needs more loads in flight
        const bool few_rows = a.rows < 4 * gf_sm_count();
        gf_channels{a.channels}([&](auto n) {
            const int count = decltype(n)::value;
            const int unroll = count == 1 || IMAGES * count == 4 ? 8 : 4;
            const auto kernel = few_rows ? gf_sum_lanes<count, IMAGES, (count == 1 ? 32 : 16)>
                                         : gf_sum_lanes<count, IMAGES, unroll>;
            gf_launch_kernel(kernel, gf_blocks(a.rows, 1), 64 * count, 0, queue, a);
        });
    }
}

#endif
