// Counting u8: the 256 values are counted, and only in the end it is asked in which bins they are,
// so that a sample costs a shift, a mask and an addition in shared memory, whatever the bins.
#ifndef GF_HIST_VALUES_CUH
#define GF_HIST_VALUES_CUH

#include "hist_device.cuh"

#define HIST_BATCH 2 // vectors that a thread loads before it looks at the first

// Counters of value v of channel c stand side by side, one for each lane that may meet another:
// of 32 columns no two lanes of a warp share a bank, whatever the picture. Of 16, where 32 would
// leave a processor too few threads, two may.
template <uint32_t Tables> struct hist_columns { static constexpr uint32_t count = Tables <= 2 ? 32 : 16; };

// counts[rank * blocks + block]: the samples of an extracted bin in a block's chunk.
static __device__ __forceinline__ void hist_add_selected(const HistArgs &a, uint32_t *selected,
                                                         uint32_t bin, uint32_t sum) {
    const uint32_t rank = hist_rank(a, bin);
    if (rank < a.extracts && rank < GF_HIST_MAX_LISTED)
        atomicAdd(&selected[rank], sum);
}

static __device__ __forceinline__ void hist_store_selected(const HistArgs &a,
                                                           const uint32_t *selected,
                                                           uint32_t *counts) {
    __syncthreads();
    if (counts && threadIdx.x < a.extracts && threadIdx.x < GF_HIST_MAX_LISTED)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = selected[threadIdx.x];
}

// A thread takes every HIST_THREADSth vector of its block's chunk; Tables is how many channels are
// measured. Reads each byte once; shared memory: Tables * 256 * columns counters. Adds to the
// state, and where bins are extracted writes how many of their samples the chunk has.
template <uint32_t Tables, bool Dense>
__global__ void __launch_bounds__(HIST_THREADS, HIST_BLOCKS)
    hist_count_values(HistArgs a, hist_u64 *state, uint32_t *counts) {
    constexpr uint32_t columns = hist_columns<Tables>::count, table = 256 * columns * 4;
    constexpr int shift = columns == 32 ? 7 : 6; // of a value, to its row
    constexpr uint32_t mask = 255u << shift;
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t sums[Tables * 256], selected[GF_HIST_MAX_LISTED];
    for (uint32_t i = threadIdx.x; i < Tables * 64 * columns; i += HIST_THREADS)
        reinterpret_cast<uint4 *>(hist_shared)[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    __syncthreads();

    uint32_t column; // the lane as a register of its own: else it is masked for every sample anew
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(column));
    column = column % columns * 4;
    const auto add = [&](uint32_t value_row, uint32_t c) {
        atomicAdd(reinterpret_cast<uint32_t *>(reinterpret_cast<char *>(hist_shared) + value_row +
                                               c * table),
                  1u);
    };
    // Byte k of a vector; the channel of the first is `channel`, which only three channels make
    // differ from vector to vector.
    const auto count = [&](uint32_t word, int k, const uint32_t (&at)[3]) {
        const int by = shift - k % 4 * 8;
        const uint32_t row = (by < 0 ? word >> -by : word << by) & mask;
        if (Tables == 3)
            add(row + at[k % 3], 0);
        else
            add(row | column, static_cast<uint32_t>(k) % Tables);
    };

    HistWalk walk = hist_walk<uint8_t, Dense>(a);
    while (walk.left > 0) {
        uint4 v[HIST_BATCH];
        uint32_t valid[HIST_BATCH], channel[HIST_BATCH];
#pragma unroll
        for (int b = 0; b < HIST_BATCH; b++) {
            valid[b] = 0;
            if (walk.left > 0) {
                v[b] = hist_load<uint8_t, Dense>(a, walk);
                valid[b] = hist_valid<uint8_t>(a, walk);
            }
            channel[b] = walk.channel;
            hist_step(a, &walk);
        }
#pragma unroll
        for (int b = 0; b < HIST_BATCH; b++) {
            const uint32_t c = Tables == 3 ? channel[b] : 0; // of others it is always the first
            if (valid[b] == 16) {
                const uint32_t at[3] = {column + c * table, column + (c == 2 ? 0 : c + 1) * table,
                                        column + (c == 0 ? 2 : c - 1) * table};
#pragma unroll
                for (int k = 0; k < 16; k++)
                    count(hist_word(v[b], k / 4), k, at);
            } else {
                uint32_t at = c;
                for (uint32_t k = 0; k < valid[b]; k++) {
                    add((v[b].x << shift & mask) | column, at);
                    at = at + 1 == Tables ? 0 : at + 1;
                    v[b].x = __funnelshift_r(v[b].x, v[b].y, 8);
                    v[b].y = __funnelshift_r(v[b].y, v[b].z, 8);
                    v[b].z = __funnelshift_r(v[b].z, v[b].w, 8);
                    v[b].w >>= 8;
                }
            }
        }
    }

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < Tables * 256; i += HIST_THREADS) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < columns; k++) // each thread from another bank on
            sum += hist_shared[i * columns + (k + threadIdx.x) % columns];
        sums[i] = sum;
    }
    __syncthreads();
    // The values of a bin lie side by side: the thread of the first one has them all.
    for (uint32_t i = threadIdx.x; i < Tables * 256; i += HIST_THREADS) {
        const uint32_t bin = hist_bin<uint8_t>(a, static_cast<uint8_t>(i));
        if (i % 256 > 0 && hist_bin<uint8_t>(a, static_cast<uint8_t>(i - 1)) == bin)
            continue;
        uint32_t sum = sums[i];
        for (uint32_t k = i + 1;
             k % 256 > 0 && hist_bin<uint8_t>(a, static_cast<uint8_t>(k)) == bin; k++)
            sum += sums[k];
        if (sum == 0)
            continue;
        atomicAdd(&state[i / 256 * (a.bins + 1) + bin], static_cast<hist_u64>(sum));
        if (counts)
            hist_add_selected(a, selected, bin, sum);
    }
    hist_store_selected(a, selected, counts);
}

#endif
