// axis-sum on CUDA: sums along rows (row_sums.cuh) or columns.
//
//   kernel                   used for           order of summation in a column
//   axis_sum_integer_columns columns, u8, u16   any: blocks add chunks of rows to the state
//   axis_sum_f32_columns     columns, f32       image order: one thread per column
#include <cuda_pipeline.h>

#include <algorithm>

#include "cuda/sums/row_sums.cuh"

#include "axis_sum/axis_sum.h"

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
        gf_launch_rows<1>(head, strip, queue);
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
