// Sums along the rows of f32 images, in binary64 and in the order of filters/lanes.h: of samples
// (one image) or of products (two).
#ifndef GF_LANE_SUMS_CUH
#define GF_LANE_SUMS_CUH

#include "lanes.h"
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
// sample once, 16 bytes a load; writes a record a row. Behind a row's end zeros are added, which
// changes no sum: none is ever -0. Shared memory: the lanes of each sum and channel, 4 samples' to
// a thread, those of a thread apart so that reading neighbouring lanes meets few of the same banks.
template <int CHANNELS, int IMAGES>
__global__ void __launch_bounds__(64 * CHANNELS) gf_sum_lanes(gf_row_sums a) {
    const int threads = 64 * CHANNELS, sums = GF_SUMS_OF(IMAGES), apart = threads + 4;
    __shared__ double lanes[sums][4 * apart];
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        const unsigned char *row[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            row[i] = a.in[i] + y * a.in_stride;
        double sum[4][sums] = {};
        gf_walk<IMAGES, threads, IMAGES == 1 ? 8 : 4>(row, a.row_bytes, threadIdx.x,
                                                      [&](int, uint64_t, const uint4(&q)[IMAGES]) {
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

// Rows of at most 32 * DEEP pixels (256, so that no lane has more than one): 2^log_group threads a
// row, as many as it has pixels, up to a warp. What a lane without a pixel would add to the tree is
// +0, which changes nothing.
template <int IMAGES, int DEEP>
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
            double sum[DEEP][sums] = {};
#pragma unroll
            for (uint32_t i = 0; i < DEEP; i++) {
                if (lane + 32 * i >= width)
                    continue;
                float x[IMAGES];
#pragma unroll
                for (int k = 0; k < IMAGES; k++)
                    x[k] = reinterpret_cast<const float *>(
                        a.in[k] + y * a.in_stride)[(lane + 32 * i) * channels + c];
                gf_add(sum[i], x);
            }
#pragma unroll
            for (int s = 0; s < sums; s++) {
#pragma unroll
                for (int stride = DEEP / 2; stride > 0; stride /= 2)
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

template <int IMAGES>
static inline cudaError_t gf_launch_lanes(const gf_row_sums &a, uint32_t channels,
                                          cudaStream_t stream) {
    const uint64_t most = 1u << 30; // blocks
    if (a.width <= GF_LANES) {
        uint32_t log_group = 0;
        while (log_group < 5 && (1u << log_group) < a.width)
            log_group++;
        const uint64_t rows_a_block = GF_BLOCK >> log_group;
        const uint64_t blocks = (a.rows + rows_a_block - 1) / rows_a_block;
        const unsigned grid = static_cast<unsigned>(blocks < most ? blocks : most);
        if (a.width <= 32)
            gf_sum_few_lanes<IMAGES, 1><<<grid, GF_BLOCK, 0, stream>>>(a, channels, log_group);
        else
            gf_sum_few_lanes<IMAGES, 8><<<grid, GF_BLOCK, 0, stream>>>(a, channels, log_group);
        return cudaGetLastError();
    }
    const unsigned grid = static_cast<unsigned>(a.rows < most ? a.rows : most);
    gf_for_channels(channels, [&](auto n) {
        const int count = decltype(n)::value;
        gf_sum_lanes<count, IMAGES><<<grid, 64 * count, 0, stream>>>(a);
    });
    return cudaGetLastError();
}

#endif
