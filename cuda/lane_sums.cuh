// Sums along the rows of f32 images, in binary64 and in the order of filters/samples.h: of samples
// (one image) or of products (two).
#ifndef GF_LANE_SUMS_CUH
#define GF_LANE_SUMS_CUH

#include "samples.h"
#include "row_sums.cuh"

// Sums of a channel, one image's or two's; in the order of dot's records.
#define GF_SUMS_OF(IMAGES) ((IMAGES) == 1 ? 1 : 4)

// Each operation is rounded on its own. A product of two f32 is exact in binary64, so that it makes
// no difference whether it is rounded before it is added.
static __device__ __forceinline__ void gf_add(double (&sum)[1], const float (&x)[1]) {
    sum[0] = __dadd_rn(sum[0], static_cast<double>(x[0]));
}

static __device__ __forceinline__ void gf_add(double (&sum)[4], const float (&x)[2]) {
    const double p = x[0], q = x[1], d = __dsub_rn(p, q);
    sum[0] = __fma_rn(p, q, sum[0]);
    sum[1] = __fma_rn(p, p, sum[1]);
    sum[2] = __fma_rn(q, q, sum[2]);
    sum[3] = __dadd_rn(sum[3], __dmul_rn(d, d));
}

static __device__ __forceinline__ float gf_f32_at(const uint4 &v, int i) {
    return __uint_as_float(i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w);
}

// A block of 64 threads a channel walks along a row: its vectors side by side hold 256 pixels, so
// that a thread keeps the lanes that the four samples of its first vector belong to. Reads each
// sample once, 16 bytes a load, DEEP of them under way; writes a record a row. Behind a row's end
// zeros are added, which changes no sum: none is ever -0. Shared memory: the lanes of each sum and
// channel, 4 samples' to a thread, those of a thread apart so that reading neighbouring lanes meets
// few of the same banks.
template <int CHANNELS, int IMAGES, int DEEP>
__global__ void __launch_bounds__(64 * CHANNELS) gf_sum_lanes(gf_row_sums a) {
    const int threads = 64 * CHANNELS, sums = GF_SUMS_OF(IMAGES), apart = threads + 4;
    __shared__ double lanes[sums][4 * apart];
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        const unsigned char *row[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            row[i] = a.in[i] + y * a.in_stride;
        double sum[4][sums] = {};
        gf_walk<IMAGES, threads, DEEP / IMAGES>(
            row, a.row_bytes, threadIdx.x, [&](int, uint64_t, uint32_t, const uint4(&q)[IMAGES]) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    float x[IMAGES];
#pragma unroll
                    for (int i = 0; i < IMAGES; i++)
                        x[i] = gf_f32_at(q[i], j);
                    gf_add(sum[j], x);
                }
            });
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int s = 0; s < sums; s++)
                lanes[s][j * apart + threadIdx.x] = sum[j][s];
        __syncthreads();
        // A warp a tree, in turn.
        for (uint32_t value = threadIdx.x / 32; value < a.measured * sums; value += threads / 32) {
            const uint32_t c = value / sums;
            double x[8];
#pragma unroll
            for (uint32_t i = 0; i < 8; i++) {
                const uint32_t e = (threadIdx.x % 32 + 32 * i) * CHANNELS + c;
                x[i] = lanes[value % sums][e % 4 * apart + e / 4];
            }
#pragma unroll
            for (int stride = 4; stride > 0; stride /= 2)
#pragma unroll
                for (int i = 0; i < stride; i++)
                    x[i] = __dadd_rn(x[i], x[i + stride]);
            const double total = gf_reduce_group<32>(x[0], gf_plus());
            if (threadIdx.x % 32 == 0)
                gf_record_at(a, y)[value] = gf_result_bits(total);
        }
        __syncthreads();
    }
}

// The sum of the 128 lanes of a warp, of which thread t has 4t to 4t + 3, in the order of the tree.
// A step hands half of what a thread has to the one that adds it up.
static __device__ __forceinline__ double gf_warp_tree(const double (&x)[4]) {
    const uint32_t all = 0xffffffffu;
    const bool high = threadIdx.x & 16, odd = threadIdx.x & 8;
    double keep[2];
#pragma unroll
    for (int j = 0; j < 2; j++)
        keep[j] = __dadd_rn(high ? x[j + 2] : x[j],
                            __shfl_xor_sync(all, high ? x[j] : x[j + 2], 16)); // stride 64
    double sum =
        __dadd_rn(odd ? keep[1] : keep[0], __shfl_xor_sync(all, odd ? keep[0] : keep[1], 8)); // 32
#pragma unroll
    for (int distance = 4; distance > 0; distance /= 2) // 16, 8, 4
        sum = __dadd_rn(sum, __shfl_xor_sync(all, sum, distance));
    sum = __dadd_rn(sum, __shfl_xor_sync(all, sum, 16)); // 2
    return __dadd_rn(sum, __shfl_xor_sync(all, sum, 8)); // 1
}

// The same for one channel by a warp a row, for rows so short that a block would spend its time in
// the tree: thread t keeps lanes 4t to 4t + 3 and 128 + 4t to 131 + 4t.
template <int IMAGES>
__global__ void __launch_bounds__(GF_BLOCK) gf_sum_short_lanes(gf_row_sums a) {
    const int sums = GF_SUMS_OF(IMAGES);
    const uint32_t lane = threadIdx.x % 32;
    for (uint64_t y = static_cast<uint64_t>(blockIdx.x) * (GF_BLOCK / 32) + threadIdx.x / 32;
         y < a.rows; y += static_cast<uint64_t>(gridDim.x) * (GF_BLOCK / 32)) {
        const unsigned char *row[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            row[i] = a.in[i] + y * a.in_stride;
        double sum[2][4][sums] = {};
        gf_walk<IMAGES, 32, 4>(row, a.row_bytes, lane,
                               [&](int u, uint64_t, uint32_t, const uint4(&q)[IMAGES]) {
#pragma unroll
                                   for (int j = 0; j < 4; j++) {
                                       float x[IMAGES];
#pragma unroll
                                       for (int i = 0; i < IMAGES; i++)
                                           x[i] = gf_f32_at(q[i], j);
                                       gf_add(sum[u % 2][j], x);
                                   }
                               });
#pragma unroll
        for (int s = 0; s < sums; s++) {
            double x[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                x[j] = __dadd_rn(sum[0][j][s], sum[1][j][s]); // stride 128
            const double total = gf_warp_tree(x);
            if (lane == 0)
                gf_record_at(a, y)[s] = gf_result_bits(total);
        }
    }
}

#define GF_FEW 8 // lanes of a thread

// Rows of at most 256 pixels, so that no lane has more than one: 2^log_group threads a row, each
// with up to eight lanes that far apart. What a lane without a pixel would add to the tree is +0,
// which changes nothing.
template <int IMAGES>
__global__ void __launch_bounds__(GF_BLOCK)
    gf_sum_few_lanes(gf_row_sums a, uint32_t channels, uint32_t log_group) {
    const int sums = GF_SUMS_OF(IMAGES);
    const uint32_t group = 1u << log_group, rows_a_block = GF_BLOCK >> log_group;
    const uint32_t lane = threadIdx.x & (group - 1);
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * rows_a_block; first < a.rows;
         first += static_cast<uint64_t>(gridDim.x) * rows_a_block) {
        const uint64_t y = first + (threadIdx.x >> log_group);
        const uint32_t width = y < a.rows ? static_cast<uint32_t>(a.width) : 0;
        for (uint32_t c = 0; c < a.measured; c++) {
            float x[GF_FEW][IMAGES] = {};
#pragma unroll
            for (uint32_t i = 0; i < GF_FEW; i++)
#pragma unroll
                for (int k = 0; k < IMAGES; k++)
                    if (lane + (i << log_group) < width)
                        x[i][k] = reinterpret_cast<const float *>(
                            a.in[k] + y * a.in_stride)[(lane + (i << log_group)) * channels + c];
            double sum[GF_FEW][sums] = {};
#pragma unroll
            for (int i = 0; i < GF_FEW; i++)
                gf_add(sum[i], x[i]);
#pragma unroll
            for (int s = 0; s < sums; s++) {
#pragma unroll
                for (int stride = GF_FEW / 2; stride > 0; stride /= 2)
#pragma unroll
                    for (int i = 0; i < stride; i++)
                        sum[i][s] = __dadd_rn(sum[i][s], sum[i + stride][s]);
                double total = sum[0][s];
                for (uint32_t distance = group / 2; distance > 0; distance /= 2)
                    total = __dadd_rn(total, __shfl_xor_sync(0xffffffffu, total, distance));
                if (lane == 0 && width)
                    gf_record_at(a, y)[c * sums + s] = gf_result_bits(total);
            }
        }
    }
}

// ---- which of them ------------------------------------------------------------------------------

#define GF_SHORT_ROW 2048 // pixels

static inline unsigned gf_lane_blocks(uint64_t rows, uint64_t rows_a_block) {
    const uint64_t blocks = (rows + rows_a_block - 1) / rows_a_block, most = 1u << 30;
    return static_cast<unsigned>(blocks < most ? blocks : most);
}

template <int IMAGES>
static inline cudaError_t gf_launch_lanes(const gf_row_sums &a, uint32_t channels,
                                          cudaStream_t stream) {
    if (a.width <= GF_LANES) {
        uint32_t log_group = 0;
        while ((static_cast<uint64_t>(GF_FEW) << log_group) < a.width)
            log_group++;
        gf_sum_few_lanes<IMAGES>
            <<<gf_lane_blocks(a.rows, GF_BLOCK >> log_group), GF_BLOCK, 0, stream>>>(a, channels,
                                                                                     log_group);
        return cudaGetLastError();
    }
    if (channels == 1 && a.width <= GF_SHORT_ROW) {
        gf_sum_short_lanes<IMAGES>
            <<<gf_lane_blocks(a.rows, GF_BLOCK / 32), GF_BLOCK, 0, stream>>>(a);
        return cudaGetLastError();
    }
    // Where rows are few, each must have more under way.
    const bool few = a.rows < 4 * gf_processors();
    gf_for_channels(channels, [&](auto n) {
        const int count = decltype(n)::value;
        const unsigned blocks = gf_lane_blocks(a.rows, 1);
        if (few)
            gf_sum_lanes<count, IMAGES, count == 1 ? 32 : 16><<<blocks, 64 * count, 0, stream>>>(a);
        else
            gf_sum_lanes<count, IMAGES, count == 1 || IMAGES * count == 4 ? 8 : 4>
                <<<blocks, 64 * count, 0, stream>>>(a);
    });
    return cudaGetLastError();
}

// ---- any ----------------------------------------------------------------------------------------

// The rows of a plan with such sums. Sums: gf_sample_sums or gf_product_sums; of f32 only how many
// images they are of matters.
template <template <typename T, int CHANNELS> class Sums>
static inline cudaError_t gf_launch_rows(const gf_plan *plan, const gf_band *band,
                                         uint32_t measured, cudaStream_t stream) {
    const gf_row_sums a = gf_row_sums_of(plan, band, measured);
    const uint32_t channels = plan->in.channels;
    cudaError_t result = cudaSuccess;
    gf_for_type(plan->in.type, [&](auto sample) {
        typedef decltype(sample) Sample;
        if constexpr (std::is_same<Sample, float>::value)
            result = gf_launch_lanes<Sums<uint8_t, 1>::images>(a, channels, stream);
        else
            gf_for_channels(channels, [&](auto n) {
                result = gf_launch_integer_rows<Sums<Sample, decltype(n)::value>>(a, stream);
            });
    });
    return result;
}

#endif
