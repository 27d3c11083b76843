// Counting u16 and f32: a sample's bin is computed, and one added to its counter.
#ifndef GF_HIST_COUNT_CUH
#define GF_HIST_COUNT_CUH

#include "hist_values.cuh"

#define HIST_COMFORTABLE (66 * 1024) // with so much shared memory HIST_BLOCKS are at home
#define HIST_LARGE_THREADS 1024

// Counters of a block, in shared memory, 32 bits each.
struct HistCounters {
    uint32_t count; // of all channels, one after the other: measured * a channel's counters, and
                    // one more for what is none of these ..
    uint32_t
        copies;     // .. and how often; a power of two up to a warp. Lane l adds to copy l % copies
    uint32_t parts; // blocks that share these out, where one has no room: count each
    size_t bytes;   // of shared memory
    bool large;     // more than is comfortable: one block, of more threads
};

static inline void hist_set_copies(HistCounters *counters, uint32_t copies) {
    counters->copies = copies;
    counters->bytes = (static_cast<size_t>(counters->count) + 1) * copies * 4;
}

static inline HistCounters hist_counters(uint32_t count) {
    const size_t most = hist_device(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 1024;
    const size_t limit = HIST_COMFORTABLE < most ? HIST_COMFORTABLE : most;
    HistCounters counters = {count, 32, 1, 0, false};
    counters.parts = static_cast<uint32_t>(hist_up(static_cast<size_t>(count) * 4 + 4, most));
    counters.count = static_cast<uint32_t>(hist_up(count, counters.parts));
    hist_set_copies(&counters, 32);
    while (counters.copies > 1 && counters.bytes > limit)
        hist_set_copies(&counters, counters.copies / 2);
    counters.large = counters.bytes > limit;
    return counters;
}

// The counters of a vector's samples.
template <typename T, bool Many, bool Ranged>
static __device__ __forceinline__ void hist_keys_of(const HistArgs &a, const uint4 &v,
                                                    uint32_t channel,
                                                    uint32_t (&keys)[hist_vector<T>::size]) {
    hist_bins<T, Ranged>(a, v, keys);
    if (!Many)
        return;
    uint32_t base = channel * a.counters;
    const uint32_t all = a.measured * a.counters;
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        keys[k] += base;
        base += a.counters;
        base = base == all ? 0 : base;
    }
}

// Adds the samples of a vector to counters from..from + count - 1; what is not to be counted goes
// to the one after them, which takes less time than not to add. An addition of 1 to shared memory
// is done at once for all lanes that ask for the same.
template <typename T, bool Many, bool Parts, bool Ranged>
static __device__ __forceinline__ void hist_count_vector(const HistArgs &a,
                                                         const HistCounters &counters,
                                                         uint32_t from, uint32_t lane_copy,
                                                         const uint4 &v, uint32_t valid,
                                                         uint32_t channel, uint32_t *shared) {
    constexpr int size = hist_vector<T>::size;
    uint32_t keys[size];
    hist_keys_of<T, Many, Ranged>(a, v, channel, keys);
    if (Parts) {
#pragma unroll
        for (int k = 0; k < size; k++)
            keys[k] = min(keys[k] - from, counters.count);
    }
    if (valid < size) {
#pragma unroll
        for (int k = 0; k < size; k++)
            keys[k] = static_cast<uint32_t>(k) < valid ? keys[k] : counters.count;
    }
#pragma unroll
    for (int k = 0; k < size; k++)
        atomicAdd(&shared[keys[k] * counters.copies + lane_copy], 1u);
}

// A thread takes each so manieth vector of its block's chunk. Blocks y share out the bins, where
// these are too many, and blocks z the channels. Reads each sample, and without Dense its whole
// pixel, once in each y and z, which go through memory together; adds to the state, and where bins
// are extracted and counts is given writes how many of their samples the chunk has.
template <typename T, bool Dense, bool Many, bool Large, bool Ranged>
__global__ void __launch_bounds__(Large ? HIST_LARGE_THREADS : HIST_THREADS,
                                  Large ? 1 : HIST_FIT(HIST_BLOCKS))
    hist_count(HistArgs a, HistCounters counters, hist_u64 *state, uint32_t *counts) {
    constexpr int threads = Large ? HIST_LARGE_THREADS : HIST_THREADS;
    constexpr int batch = !Dense ? 1 : Ranged ? 2 : 4;
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t selected[GF_HIST_MAX_LISTED];
    for (uint32_t i = threadIdx.x; i < counters.bytes / 4; i += threads)
        hist_shared[i] = 0;
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    __syncthreads();

    const uint32_t lane_copy = threadIdx.x & (counters.copies - 1);
    const uint32_t from = Large ? blockIdx.y * counters.count : 0;
    HistWalk walk = hist_walk<T, Dense>(a);
    for (uint32_t turns = (hist_turns<threads>(walk) + batch - 1) / batch; turns > 0; turns--) {
        uint4 v[batch];
        uint32_t valid[batch], channel[batch];
#pragma unroll
        for (int b = 0; b < batch; b++) {
            valid[b] = 0;
            if (walk.left > 0) {
                v[b] = hist_load<T, Dense>(a, walk);
                valid[b] = hist_valid<T>(a, walk);
            }
            channel[b] = walk.channel;
            hist_step<threads>(a, &walk);
        }
#pragma unroll
        for (int b = 0; b < batch; b++)
            hist_count_vector<T, Many, Large, Ranged>(a, counters, from, lane_copy, v[b], valid[b],
                                                      channel[b], hist_shared);
    }

    __syncthreads();
    const uint32_t all = a.measured * a.counters;
    state += static_cast<uint64_t>(blockIdx.z) * a.counters;
    for (uint32_t i = threadIdx.x; i < counters.count && from + i < all; i += threads) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < counters.copies; k++) // each thread from another bank on
            sum += hist_shared[i * counters.copies + ((k + threadIdx.x) & (counters.copies - 1))];
        if (sum == 0)
            continue;
        atomicAdd(&state[from + i], static_cast<hist_u64>(sum));
        const uint32_t bin = Many ? i % a.counters : i;
        if (!Large && counts && bin < a.bins)
            hist_add_selected(a, selected, bin, sum);
    }
    if (!Large)
        hist_store_selected(a, selected, counts);
}

#endif
