// axis-sum and dot on CUDA: sums along rows, of samples (axis-sum) or of products of two images
// (dot), and along columns. sums_launch_rows chooses the kernel of rows.
//
//   kernel                   used for           order of summation in a column
//   axis_sum_integer_columns columns, u8, u16   any: blocks add chunks of rows to the state
//   axis_sum_f32_columns     columns, f32       image order: one thread per column
//
// f32 is summed along rows in binary64, in the order that filters/samples.h defines: 256 lanes per
// channel, then a tree. The f32 kernels differ only in the assignment of lanes to threads. In
// these, "lane" is a lane of that order.
#include <algorithm>

#include "cuda/vectors.cuh"

#include "axis_sum/axis_sum.h"
#include "dot/dot.h"
#include "samples.h"

// IMAGES: inputs.
template <int IMAGES> struct sums_args : gf_row_args<IMAGES> { uint32_t channels, measured; };

// One u8 vector split by channel: each word holds samples of one channel, or zeros. With three
// channels, channel 0 is the channel of the first sample of the vector.
template <int CHANNELS> struct sums_planes {
    static const int words = CHANNELS == 1 ? 4 : CHANNELS == 4 ? 1 : 2;
    uint32_t w[CHANNELS][words];

    __device__ __forceinline__ sums_planes(const uint4 &v) {
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
template <typename T, int CHANNELS, int IMAGES> struct sums_integer {
    // A product of u16 may need 32 bits. GF_MAX_PIECE limits the number of other summands.
    typedef typename std::conditional<IMAGES == 2 && sizeof(T) == 2, gf_u64, uint32_t>::type Sum;
    static const int sums = IMAGES == 1 ? 1 : 3;

    GF_DEVICE void add(Sum (&sum)[sums][CHANNELS], int shift, const uint4 (&q)[IMAGES]) {
        if constexpr (sizeof(T) == 1) {
            const sums_planes<CHANNELS> a(q[0]), b(q[IMAGES - 1]);
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
GF_DEVICE void sums_store_block(const gf_u64 (&parts)[GF_BLOCK / 32][VALUES], uint32_t values,
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
    sums_integer_rows(const __grid_constant__ sums_args<IMAGES> a) {
    typedef sums_integer<T, CHANNELS, IMAGES> Sums;
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
        gf_u64 *record = gf_record_at<gf_u64>(a, unit.y);
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
            sums_store_block(parts, a.measured * Sums::sums, a.partition.pieces == 1, record);
    }
}

// ---- f32 ----------------------------------------------------------------------------------------

// Tuning constants of the f32 kernels.
struct sums_lanes_policy {
    static constexpr int PER_THREAD = 8;   // lanes, in sums_few_lanes
    static constexpr int SHORT_ROW = 2048; // pixels; up to this width, one warp per row
};

// Sums per channel for one or two images, in the order of dot's records.
template <int IMAGES> static constexpr int sums_of = IMAGES == 1 ? 1 : 4;

// Add one sample to the sums. Each operation is rounded separately. A product of two f32 is exact
// in binary64; rounding it before the addition changes nothing.
GF_DEVICE void sums_add_sample(double (&sum)[1], const float (&x)[1]) {
    sum[0] = __dadd_rn(sum[0], static_cast<double>(x[0]));
}

GF_DEVICE void sums_add_sample(double (&sum)[4], const float (&x)[2]) {
    const double p = x[0], q = x[1], d = __dsub_rn(p, q);
    sum[0] = __fma_rn(p, q, sum[0]);
    sum[1] = __fma_rn(p, p, sum[1]);
    sum[2] = __fma_rn(q, q, sum[2]);
    sum[3] = __dadd_rn(sum[3], __dmul_rn(d, d));
}

// Return the bits of a sum for a record.
GF_DEVICE gf_u64 sums_result_bits(double x) {
    return static_cast<gf_u64>(__double_as_longlong(gf_canonical(x)));
}

// Add the samples of one vector per image to the four lanes of a thread.
template <int IMAGES, int SUMS>
GF_DEVICE void sums_add_vectors(double (&sum)[4][SUMS], const uint4 (&q)[IMAGES]) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float x[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            x[i] = gf_sample_at<float>(q[i], j);
        sums_add_sample(sum[j], x);
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
    sums_lanes(const __grid_constant__ sums_args<IMAGES> a) {
    const int threads = 64 * CHANNELS, sums = sums_of<IMAGES>, pitch = threads + 4;
    __shared__ double lanes[sums][4 * pitch];
    gf_wait_for_stream();
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        const unsigned char *row[IMAGES];
        gf_row_inputs(a, y, 0, row);
        double sum[4][sums] = {};
        gf_visit_vectors<IMAGES, threads, UNROLL / IMAGES>(
            row, a.row_bytes, threadIdx.x,
            [&](int, uint64_t, uint32_t, const uint4(&q)[IMAGES]) { sums_add_vectors(sum, q); });
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
                gf_record_at<gf_u64>(a, y)[value] = sums_result_bits(total);
        }
        __syncthreads();
    }
}

// Reduce 128 lanes in the order of the tree. Thread t of the warp has lanes 4t to 4t + 3. In the
// first two steps, each thread sends one half of its values and adds to the other half.
GF_DEVICE double sums_warp_tree(const double (&x)[4]) {
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
    sums_short_lanes(const __grid_constant__ sums_args<IMAGES> a) {
    const int sums = sums_of<IMAGES>;
    const uint32_t lane = threadIdx.x % 32;
    gf_wait_for_stream();
    for (uint64_t y = static_cast<uint64_t>(blockIdx.x) * (GF_BLOCK / 32) + threadIdx.x / 32;
         y < a.rows; y += static_cast<uint64_t>(gridDim.x) * (GF_BLOCK / 32)) {
        const unsigned char *row[IMAGES];
        gf_row_inputs(a, y, 0, row);
        double sum[2][4][sums] = {};
        gf_visit_vectors<IMAGES, 32, 4>(row, a.row_bytes, lane,
                                        [&](int u, uint64_t, uint32_t, const uint4(&q)[IMAGES]) {
                                            sums_add_vectors(sum[u % 2], q);
                                        });
#pragma unroll
        for (int s = 0; s < sums; s++) {
            double x[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                x[j] = __dadd_rn(sum[0][j][s], sum[1][j][s]); // stride 128
            const double total = sums_warp_tree(x);
            if (lane == 0)
                gf_record_at<gf_u64>(a, y)[s] = sums_result_bits(total);
        }
    }
}

// Sum rows of f32 with at most 256 pixels: a lane has one sample or none.
// Grid: 2^log_group threads per row, up to 2^30 blocks; blocks then loop. Block: 256 threads. A
// thread has up to eight lanes, 2^log_group apart. Reads each sample once. A lane without one adds
// +0: no change. Shared memory: none. Registers: 32 for axis-sum, 56 for dot (sm_90).
template <int IMAGES>
__global__ void __launch_bounds__(GF_BLOCK)
    sums_few_lanes(const __grid_constant__ sums_args<IMAGES> a, uint32_t log_group) {
    const int sums = sums_of<IMAGES>;
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
            float x[sums_lanes_policy::PER_THREAD][IMAGES] = {};
#pragma unroll
            for (uint32_t i = 0; i < sums_lanes_policy::PER_THREAD; i++)
#pragma unroll
                for (int k = 0; k < IMAGES; k++)
                    if (lane + (i << log_group) < width)
                        x[i][k] = reinterpret_cast<const float *>(
                            row[k])[(lane + (i << log_group)) * a.channels + c];
            double sum[sums_lanes_policy::PER_THREAD][sums] = {};
#pragma unroll
            for (int i = 0; i < sums_lanes_policy::PER_THREAD; i++)
                sums_add_sample(sum[i], x[i]);
#pragma unroll
            for (int s = 0; s < sums; s++) {
#pragma unroll
                for (int stride = sums_lanes_policy::PER_THREAD / 2; stride > 0; stride /= 2)
#pragma unroll
                    for (int i = 0; i < stride; i++)
                        sum[i][s] = __dadd_rn(sum[i][s], sum[i + stride][s]);
                double total = sum[0][s];
                for (uint32_t distance = group / 2; distance > 0; distance /= 2)
                    total = __dadd_rn(total, __shfl_xor_sync(GF_WARP, total, distance));
                if (lane == 0 && width)
                    gf_record_at<gf_u64>(a, y)[c * sums + s] = sums_result_bits(total);
            }
        }
    }
}

// Queue the kernel that sums the rows of a strip into their records.
template <int IMAGES>
static void sums_launch_rows(const gf_plan *plan, const gf_strip *strip, gf_queue *queue) {
    sums_args<IMAGES> a = {};
    gf_set_row_args(&a, plan, strip);
    a.channels = plan->in.channels;
    a.measured = gf_measured_channels(&plan->in);
    if (plan->in.type != GF_F32) { // 4 or 16 threads per row, or a block per piece of a row
        if (a.partition.pieces > 1)
            gf_clear_rows({a.records, a.record_stride, 0, a.rows},
                          a.measured * sums_integer<uint8_t, 1, IMAGES>::sums, queue);
        gf_dispatch(
            [&](auto is_u8, auto channels) {
                typedef std::conditional_t<is_u8, uint8_t, uint16_t> Sample;
                gf_for_group(a.partition.group, [&](auto group) {
                    gf_launch_kernel(
                        sums_integer_rows<Sample, decltype(channels)::value, IMAGES, group>,
                        gf_partition_grid(a.partition), GF_BLOCK, 0, queue, a);
                });
            },
            gf_flag{plan->in.type == GF_U8}, gf_channels{a.channels});
    } else if (a.width <= GF_LANES) { // up to 32 threads per row
        uint32_t log_group = 0;
        while ((static_cast<uint64_t>(sums_lanes_policy::PER_THREAD) << log_group) < a.width)
            log_group++;
        gf_launch_kernel(sums_few_lanes<IMAGES>, gf_blocks(a.rows, GF_BLOCK >> log_group), GF_BLOCK,
                         0, queue, a, log_group);
    } else if (a.channels == 1 && a.width <= sums_lanes_policy::SHORT_ROW) { // a warp per row
        gf_launch_kernel(sums_short_lanes<IMAGES>, gf_blocks(a.rows, GF_BLOCK / 32), GF_BLOCK, 0,
                         queue, a);
    } else { // a block per row. With few rows, each block needs more loads in flight
        const bool few_rows = a.rows < 4 * gf_sm_count();
        gf_channels{a.channels}([&](auto n) {
            const int count = decltype(n)::value;
            const int unroll = count == 1 || IMAGES * count == 4 ? 8 : 4;
            const auto kernel = few_rows ? sums_lanes<count, IMAGES, (count == 1 ? 32 : 16)>
                                         : sums_lanes<count, IMAGES, unroll>;
            gf_launch_kernel(kernel, gf_blocks(a.rows, 1), 64 * count, 0, queue, a);
        });
    }
}

// ---- columns ------------------------------------------------------------------------------------

struct axis_sum_args {
    const unsigned char *in; // first row
    size_t in_stride;
    void *state;
    uint64_t samples, rows, row_bytes; // samples: per row
    uint32_t chunk;                    // rows per block and iteration
};

// Sums of the samples of one vector over at most 257 rows. u8: two 16-bit sums per word.
template <typename T> struct axis_sum_vector {
    static const int samples = 16 / sizeof(T);
    uint32_t even[4] = {}, odd[4] = {}; // sums of the even and odd samples of each word

    __device__ __forceinline__ void add(const uint4 &v) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t mask = sizeof(T) == 1 ? 0x00ff00ffu : 0xffffu, word = gf_word(v, i);
            even[i] += word & mask;
            odd[i] += word >> 8 * sizeof(T) & mask;
        }
    }

    __device__ __forceinline__ uint32_t at(int i) const {
        const int word = i * static_cast<int>(sizeof(T)) / 4;
        const uint32_t sum = i % 2 ? odd[word] : even[word];
        return sizeof(T) == 2 ? sum : i % 4 < 2 ? sum & 0xffffu : sum >> 16;
    }
};

// Tuning constants of axis_sum_integer_columns.
struct integer_columns_policy {
    static constexpr int UNROLL = 8;     // rows per thread loaded at once
    static constexpr int MAX_ROWS = 256; // per thread in a chunk
};

// Sum columns of integers.
// Grid: x = tiles of ACROSS vectors, y = chunks of a.chunk rows. Block: 256 threads; thread t loads
// vector t % ACROSS of every (256 / ACROSS)th row, eight loads in flight. The threads add their
// sums to shared memory (one word per sample of the tile), and the block adds those to the state.
// Shared memory: 128 B to 2 KB. Registers: 40 to 48 (sm_90). Reads each sample once. The last
// vector may extend past the end of the row; those sums are discarded.
template <typename T, int ACROSS>
__global__ void __launch_bounds__(GF_BLOCK) axis_sum_integer_columns(axis_sum_args a) {
    const int samples = axis_sum_vector<T>::samples, row_threads = GF_BLOCK / ACROSS,
              unroll = integer_columns_policy::UNROLL;
    __shared__ uint32_t tile[samples][ACROSS];
    const uint32_t across = threadIdx.x % ACROSS;
    const uint64_t at = (static_cast<uint64_t>(blockIdx.x) * ACROSS + across) * 16;
    gf_wait_for_stream();
    for (uint64_t top = static_cast<uint64_t>(blockIdx.y) * a.chunk; top < a.rows;
         top += static_cast<uint64_t>(gridDim.y) * a.chunk) {
        for (uint32_t i = threadIdx.x; i < ACROSS * samples; i += GF_BLOCK)
            tile[i / ACROSS][i % ACROSS] = 0;
        __syncthreads();
        const uint64_t rest = a.rows - top;
        const uint32_t rows = rest < a.chunk ? static_cast<uint32_t>(rest) : a.chunk;
        axis_sum_vector<T> sums;
        const unsigned char *p = a.in + (top + threadIdx.x / ACROSS) * a.in_stride + at;
        for (uint32_t y = threadIdx.x / ACROSS; y < rows; y += unroll * row_threads) {
            uint4 q[unroll];
#pragma unroll
            for (int i = 0; i < unroll; i++)
                q[i] = y + i * row_threads < rows && at < a.row_bytes
                           ? gf_load_vector<true>(p + i * row_threads * a.in_stride)
                           : make_uint4(0, 0, 0, 0);
#pragma unroll
            for (int i = 0; i < unroll; i++)
                sums.add(q[i]);
            p += unroll * row_threads * a.in_stride;
        }
#pragma unroll
        for (int i = 0; i < samples; i++)
            atomicAdd(&tile[i][across], sums.at(i));
        __syncthreads();
        gf_u64 *state = static_cast<gf_u64 *>(a.state);
        for (uint32_t i = threadIdx.x; i < ACROSS * samples; i += GF_BLOCK) {
            const uint64_t sample = static_cast<uint64_t>(blockIdx.x) * ACROSS * samples + i;
            if (sample < a.samples)
                atomicAdd(&state[sample], gf_u64{tile[i % samples][i / samples]});
        }
        __syncthreads();
    }
}

template <typename T, int ACROSS>
static void axis_sum_launch_integer(axis_sum_args a, gf_queue *queue) {
    const uint64_t tiles = gf_divide_up(gf_divide_up(a.row_bytes, 16), ACROSS);
    const uint64_t row_threads = GF_BLOCK / ACROSS;
    // Two waves of blocks, but at least the rows that the threads load at once.
    const uint64_t balanced = a.rows * tiles / (16 * gf_sm_count());
    const uint64_t min = integer_columns_policy::UNROLL * row_threads;
    const uint64_t max = integer_columns_policy::MAX_ROWS * row_threads;
    a.chunk = static_cast<uint32_t>(std::clamp(gf_divide_up(balanced, min) * min, min, max));
    const dim3 grid(static_cast<unsigned>(tiles), gf_blocks(a.rows, a.chunk, 65535));
    gf_launch_kernel(axis_sum_integer_columns<T, ACROSS>, grid, GF_BLOCK, 0, queue, a);
}

static constexpr uint32_t f32_columns_stages = 8; // depth of the ring of rows in shared memory

// Sum columns of f32 in image order.
// Grid: one block per tile of WARPS * 32 columns. Block: WARPS warps; one thread sums all rows of
// one column. Rows are prefetched asynchronously into a ring of 8 stages in shared memory (32 KB),
// because too few threads are resident to hide the latency. The rows of the next stage are
// converted while those of the previous one are added. Registers: 50 with four warps, 118 with one
// warp (sm_90). Reads each sample once. Rows after the last one are zeros, which change no sum: no
// sum is ever -0. The last vector may extend past the end of the row; those columns are discarded.
template <int WARPS>
static __global__ void __launch_bounds__(32 * WARPS) axis_sum_f32_columns(axis_sum_args a) {
    const int tile = 32 * WARPS, rows = 32 / WARPS; // rows per stage
    __shared__ __align__(16) float ring[f32_columns_stages][rows][tile];
    // Each thread copies four samples from `chunk` of every fourth row from row_offset.
    const uint32_t t = threadIdx.x, chunk = t % (tile / 4) * 4, row_offset = t / (tile / 4);
    const uint64_t left = static_cast<uint64_t>(blockIdx.x) * tile;
    const uint64_t stages = (a.rows + rows - 1) / rows;
    const bool copies = (left + chunk) * sizeof(float) < a.row_bytes;
    const unsigned char *source = a.in + (left + chunk) * sizeof(float) + row_offset * a.in_stride;
    uint64_t rest = copies && a.rows > row_offset ? a.rows - row_offset : 0; // rows left
    const auto fetch = [&](uint32_t slot) {
#pragma unroll
        for (uint32_t r = 0; r < rows; r += 4) {
            float4 *to = reinterpret_cast<float4 *>(&ring[slot][r + row_offset][chunk]);
            if (r < rest)
                __pipeline_memcpy_async(to, source + r * a.in_stride, 16);
            else
                *to = make_float4(0, 0, 0, 0);
        }
        __pipeline_commit();
        source += rows * a.in_stride;
        rest = rest > rows ? rest - rows : 0;
    };
    const auto sync = [] {
        if (WARPS == 1)
            __syncwarp();
        else
            __syncthreads();
    };
    gf_wait_for_stream();
    for (uint32_t slot = 0; slot < f32_columns_stages; slot++)
        fetch(slot);
    double *state = static_cast<double *>(a.state) + left + t;
    double sum = left + t < a.samples ? *state : 0;
    double x[rows] = {}; // rows of the previous stage
    for (uint64_t stage = 0; stage < stages; stage++) {
        const uint32_t slot = stage % f32_columns_stages;
        __pipeline_wait_prior(f32_columns_stages - 1);
        sync();
        float next[rows];
#pragma unroll
        for (int r = 0; r < rows; r++)
            next[r] = ring[slot][r][t];
        sync();
        fetch(slot);
#pragma unroll
        for (int r = 0; r < rows; r++) {
            sum = __dadd_rn(sum, x[r]);
            x[r] = static_cast<double>(next[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < rows; r++)
        sum = __dadd_rn(sum, x[r]);
    if (left + t < a.samples)
        *state = gf_canonical(sum);
}

static void axis_sum_launch(const gf_plan *head, const gf_strip *strip, void *, gf_queue *queue) {
    if (!reinterpret_cast<const gf_axis_sum_plan *>(head)->columns) {
        sums_launch_rows<1>(head, strip, queue);
        return;
    }
    axis_sum_args a = {};
    a.in = gf_row(&strip->in[0], strip->out.y0);
    a.in_stride = strip->in[0].stride;
    a.state = strip->state;
    a.samples = gf_row_samples(&head->in);
    a.rows = strip->out.rows;
    a.row_bytes = gf_row_bytes(&head->in);
    gf_for_type(head->in.type, [&](auto sample) {
        typedef decltype(sample) T;
        if constexpr (std::is_same<T, float>::value) {
            // Warps of a block read adjacent memory. Few columns: one warp, to occupy all SMs.
            const int warps = a.samples < 128 * gf_sm_count() ? 1 : 4;
            gf_launch_kernel(warps == 1 ? axis_sum_f32_columns<1> : axis_sum_f32_columns<4>,
                             gf_blocks(a.samples, 32 * warps), 32 * warps, 0, queue, a);
        } else if (a.row_bytes <= 4 * 16) {
            axis_sum_launch_integer<T, 4>(a, queue);
        } else {
            axis_sum_launch_integer<T, 32>(a, queue);
        }
    });
}

extern "C" const gf_filter_cuda gf_axis_sum_cuda = {nullptr, axis_sum_launch, nullptr, true};

static void dot_launch(const gf_plan *plan, const gf_strip *strip, void *, gf_queue *queue) {
    sums_launch_rows<2>(plan, strip, queue);
}

extern "C" const gf_filter_cuda gf_dot_cuda = {nullptr, dot_launch, nullptr, true};
