// axis-sum on the GPU: sums along rows or down columns.
//
//   kernel                       used for            order of a column's rows
//   gf_sum_integer_rows, ...     rows                row_sums.cuh
//   gf_sum_integer_columns       columns, u8, u16    any: blocks add chunks of rows to the state
//   gf_sum_f32_columns           columns, f32        the image's: a thread goes down all rows
#include <cuda_pipeline.h>

#include "row_sums.cuh"

#include "axis_sum/axis_sum.h"

struct gf_column_sums {
    const unsigned char *in; // the first row
    size_t in_stride;
    void *state;
    uint64_t samples, rows, row_bytes; // samples of a row
    uint32_t chunk;                    // rows of a block at a time
};

// ---- integers -----------------------------------------------------------------------------------

// Sums of the samples of a vector down at most 257 rows. u8 are added two to a word.
template <typename T> struct gf_vector_sums {
    static const int samples = 16 / sizeof(T);
    uint32_t even[4] = {}, odd[4] = {}; // of each word, its even bytes or halves, and the others

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

#define GF_ROWS_A_THREAD 256 // at most, of a chunk

// A block takes a tile of ACROSS vectors down a chunk of rows: thread t vector t % ACROSS of every
// (256 / ACROSS)th row, eight loads under way. What the threads have is added up in shared memory,
// a word a sample of the tile, and then to the state. Reads each sample once. A vector may reach
// behind the row's end; what is summed there is dropped.
template <typename T, int ACROSS>
__global__ void __launch_bounds__(GF_BLOCK) gf_sum_integer_columns(gf_column_sums a) {
    const int samples = gf_vector_sums<T>::samples, down = GF_BLOCK / ACROSS, deep = 8;
    __shared__ uint32_t tile[samples][ACROSS];
    const uint32_t across = threadIdx.x % ACROSS;
    const uint64_t at = (static_cast<uint64_t>(blockIdx.x) * ACROSS + across) * 16;
    for (uint64_t top = static_cast<uint64_t>(blockIdx.y) * a.chunk; top < a.rows;
         top += static_cast<uint64_t>(gridDim.y) * a.chunk) {
        for (uint32_t i = threadIdx.x; i < ACROSS * samples; i += GF_BLOCK)
            tile[i / ACROSS][i % ACROSS] = 0;
        __syncthreads();
        const uint64_t rest = a.rows - top;
        const uint32_t rows = rest < a.chunk ? static_cast<uint32_t>(rest) : a.chunk;
        gf_vector_sums<T> sums;
        const unsigned char *p = a.in + (top + threadIdx.x / ACROSS) * a.in_stride + at;
        for (uint32_t y = threadIdx.x / ACROSS; y < rows; y += deep * down) {
            uint4 q[deep];
#pragma unroll
            for (int i = 0; i < deep; i++)
                q[i] = y + i * down < rows && at < a.row_bytes
                           ? gf_load_vector<true>(p + i * down * a.in_stride)
                           : make_uint4(0, 0, 0, 0);
#pragma unroll
            for (int i = 0; i < deep; i++)
                sums.add(q[i]);
            p += deep * down * a.in_stride;
        }
#pragma unroll
        for (int i = 0; i < samples; i++)
            atomicAdd(&tile[i][across], sums.at(i));
        __syncthreads();
        unsigned long long *state = static_cast<unsigned long long *>(a.state);
        for (uint32_t i = threadIdx.x; i < ACROSS * samples; i += GF_BLOCK) {
            const uint64_t sample = static_cast<uint64_t>(blockIdx.x) * ACROSS * samples + i;
            if (sample < a.samples)
                atomicAdd(&state[sample],
                          static_cast<unsigned long long>(tile[i % samples][i / samples]));
        }
        __syncthreads();
    }
}

template <typename T, int ACROSS>
static void gf_run_integer_columns(gf_column_sums a, cudaStream_t stream) {
    const uint64_t tiles = gf_divide_up(gf_divide_up(a.row_bytes, 16), ACROSS);
    const uint64_t down = GF_BLOCK / ACROSS;
    // Two waves of blocks, if that leaves each thread eight rows to load at once.
    const uint64_t fair = a.rows * tiles / (16 * gf_processors());
    const uint64_t chunk = gf_divide_up(fair, 8 * down) * (8 * down);
    const uint64_t max = GF_ROWS_A_THREAD * down;
    a.chunk = static_cast<uint32_t>(chunk < 8 * down ? 8 * down : chunk < max ? chunk : max);
    const uint64_t chunks = gf_divide_up(a.rows, a.chunk);
    const dim3 grid(static_cast<unsigned>(tiles),
                    static_cast<unsigned>(chunks < 65535 ? chunks : 65535));
    gf_sum_integer_columns<T, ACROSS><<<grid, GF_BLOCK, 0, stream>>>(a);
}

// ---- f32 ----------------------------------------------------------------------------------------

#define GF_STAGES 8 // of rows, on their way or there

// The order of rows counts: a thread goes down all rows of a column, and a block of WARPS warps
// down a tile of 128 bytes a warp. The rows ahead are on their way to shared memory, 32 KiB,
// because so few threads have nothing else to wait with, and the rows of the next stage are
// converted while those of the last are added. Rows behind the last are zeros, which change no sum:
// none is ever -0. Reads each sample once. A vector may reach behind the row's end; those columns
// are dropped.
template <int WARPS>
static __global__ void __launch_bounds__(32 * WARPS) gf_sum_f32_columns(gf_column_sums a) {
    const int tile = 32 * WARPS, rows = 32 / WARPS; // of a stage
    __shared__ __align__(16) float ring[GF_STAGES][rows][tile];
    // What this thread copies: four samples from `chunk` of every fourth row from `down`.
    const uint32_t t = threadIdx.x, chunk = t % (tile / 4) * 4, down = t / (tile / 4);
    const uint64_t left = static_cast<uint64_t>(blockIdx.x) * tile;
    const uint64_t stages = (a.rows + rows - 1) / rows;
    const bool copies = (left + chunk) * sizeof(float) < a.row_bytes;
    const unsigned char *from = a.in + (left + chunk) * sizeof(float) + down * a.in_stride;
    uint64_t rest = copies && a.rows > down ? a.rows - down : 0; // rows from `from` on
    const auto fetch = [&](uint32_t slot) {
#pragma unroll
        for (uint32_t r = 0; r < rows; r += 4) {
            float4 *to = reinterpret_cast<float4 *>(&ring[slot][r + down][chunk]);
            if (r < rest)
                __pipeline_memcpy_async(to, from + r * a.in_stride, 16);
            else
                *to = make_float4(0, 0, 0, 0);
        }
        __pipeline_commit();
        from += rows * a.in_stride;
        rest = rest > rows ? rest - rows : 0;
    };
    const auto meet = [] {
        if (WARPS == 1)
            __syncwarp();
        else
            __syncthreads();
    };
    for (uint32_t slot = 0; slot < GF_STAGES; slot++)
        fetch(slot);
    double *state = static_cast<double *>(a.state) + left + t;
    double sum = left + t < a.samples ? *state : 0;
    double x[rows] = {}; // of the stage before
    for (uint64_t stage = 0; stage < stages; stage++) {
        const uint32_t slot = stage % GF_STAGES;
        __pipeline_wait_prior(GF_STAGES - 1);
        meet();
        float next[rows];
#pragma unroll
        for (int r = 0; r < rows; r++)
            next[r] = ring[slot][r][t];
        meet();
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
        *state = sum == sum ? sum : __longlong_as_double(0x7ff8000000000000ll);
}

template <int WARPS> static void gf_run_f32_columns(const gf_column_sums &a, cudaStream_t stream) {
    const unsigned tiles = static_cast<unsigned>(gf_divide_up(a.samples, 32 * WARPS));
    gf_sum_f32_columns<WARPS><<<tiles, 32 * WARPS, 0, stream>>>(a);
}

// ---- launch -------------------------------------------------------------------------------------

template <typename T>
static void axis_sum_columns(const gf_plan *head, const gf_strip *strip, cudaStream_t stream) {
    gf_column_sums a = {};
    a.in = gf_row(&strip->in, strip->out.y0);
    a.in_stride = strip->in.stride;
    a.state = strip->state;
    a.samples = gf_row_samples(&head->in);
    a.rows = strip->out.rows;
    a.row_bytes = gf_row_bytes(&head->in);
    if constexpr (std::is_same<T, float>::value) {
        // Neighbouring warps that keep in step read neighbouring memory; where there are few of
        // them they are needed on all SMs.
        if (a.samples < 128 * gf_processors())
            gf_run_f32_columns<1>(a, stream);
        else
            gf_run_f32_columns<4>(a, stream);
    } else if (a.row_bytes <= 4 * 16) {
        gf_run_integer_columns<T, 4>(a, stream);
    } else {
        gf_run_integer_columns<T, 32>(a, stream);
    }
}

static gf_status axis_sum_launch(const gf_plan *head, const gf_strip *strip, void *,
                                 void *stream_handle, gf_error *error) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    const gf_axis_sum_plan *plan = reinterpret_cast<const gf_axis_sum_plan *>(head);
    cudaError_t result = cudaSuccess;
    if (plan->columns) {
        gf_for_type(head->in.type,
                    [&](auto sample) { axis_sum_columns<decltype(sample)>(head, strip, stream); });
        result = cudaGetLastError();
    } else {
        result = gf_launch_rows<1>(head, strip, plan->measured, stream);
    }
    return gf_cuda_check(result, "axis-sum", error);
}

extern "C" const gf_filter_cuda gf_axis_sum_cuda = {nullptr, axis_sum_launch};
