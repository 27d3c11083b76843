// Counting u16 and f32: a sample's bin is computed, and one added to its counter.
#ifndef GF_HIST_COUNT_CUH
#define GF_HIST_COUNT_CUH

#include "hist_values.cuh"

// Where a block's counters are.
enum HistPlace {
    HIST_SHARED, // shared memory, 32 bits each; lanes that meet in one add without waiting
    HIST_LARGE,  // the same, but so many that only one block or two are at home on a processor
    HIST_PACKED, // shared memory, two in a word; as soon as one has 2^15 they go to the state
    HIST_GLOBAL  // the state itself
};

#define HIST_PACKED_FULL 0x8000u
#define HIST_COMFORTABLE (66 * 1024) // with so much shared memory HIST_BLOCKS are at home

struct HistCounters {
    HistPlace place;
    uint32_t count;  // counters: measured * (bins + 1)
    uint32_t copies; // of shared ones: a power of two up to a warp; lane l adds to copy l % copies
    size_t bytes;    // of shared memory
};

static inline HistCounters hist_counters(uint32_t count) {
    const size_t most = hist_device(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 1024;
    HistCounters counters = {HIST_SHARED, count, 32, 0};
    while (counters.copies > 1 && static_cast<size_t>(count) * counters.copies * 4 >
                                      (HIST_COMFORTABLE < most ? HIST_COMFORTABLE : most))
        counters.copies /= 2;
    counters.bytes = static_cast<size_t>(count) * counters.copies * 4;
    if (counters.bytes > HIST_COMFORTABLE)
        counters.place = HIST_LARGE;
    if (counters.bytes > most) {
        counters.place = HIST_PACKED;
        counters.bytes = (static_cast<size_t>(count) + 1) / 2 * 4;
    }
    if (counters.bytes > most) {
        counters.place = HIST_GLOBAL;
        counters.bytes = 0;
    }
    return counters;
}

// How many blocks of a kernel the device has at home.
template <typename K> static inline uint64_t hist_at_home(K kernel, size_t shared) {
    int blocks = 1;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, HIST_THREADS, shared);
    return (blocks > 0 ? static_cast<uint64_t>(blocks) : 1) *
           hist_device(cudaDevAttrMultiProcessorCount);
}

// Adds the samples of a vector. In shared counters every sample by itself, as a processor adds 1 to
// one for all lanes that ask for it at once. Elsewhere lanes that meet wait for each other: equal
// neighbours are added together there.
template <typename T, bool Many, HistPlace Place, bool Full>
static __device__ __forceinline__ void
hist_count_vector(const HistArgs &a, const HistCounters &counters, uint32_t lane_copy,
                  const uint4 &v, uint32_t valid, uint32_t channel, uint32_t *shared,
                  hist_u64 *state) {
    constexpr int size = hist_vector<T>::size;
    uint32_t bins[size];
    hist_bins<T>(a, v, bins);
    if (Many) {
        uint32_t base = channel * (a.bins + 1);
#pragma unroll
        for (int k = 0; k < size; k++) {
            bins[k] += base;
            base += a.bins + 1;
            base = base == counters.count ? 0 : base;
        }
    }
    if constexpr (Place == HIST_SHARED || Place == HIST_LARGE) {
#pragma unroll
        for (int k = 0; k < size; k++)
            if (Full || static_cast<uint32_t>(k) < valid)
                atomicAdd(&shared[bins[k] * counters.copies + lane_copy], 1u);
        return;
    }
    uint32_t many[size], had[size], run = 0;
#pragma unroll
    for (int k = 0; k < size; k++) {
        const uint32_t next = static_cast<uint32_t>(k) + 1;
        run += Full || next <= valid;
        const bool last = next == size || next == valid || bins[k] != bins[next % size];
        many[k] = last ? run : 0;
        run = last ? 0 : run;
    }
#pragma unroll
    for (int k = 0; k < size; k++) {
        had[k] = 0;
        if (many[k] == 0)
            continue;
        if constexpr (Place == HIST_PACKED)
            had[k] = atomicAdd(&shared[bins[k] / 2], many[k] << (bins[k] & 1) * 16);
        else
            atomicAdd(&state[bins[k]], static_cast<hist_u64>(many[k]));
    }
    if constexpr (Place == HIST_PACKED) {
#pragma unroll
        for (int k = 0; k < size; k++) {
            const uint32_t half = (bins[k] & 1) * 16, before = had[k] >> half & 0xffffu;
            if (before < HIST_PACKED_FULL && before + many[k] >= HIST_PACKED_FULL) {
                atomicSub(&shared[bins[k] / 2], HIST_PACKED_FULL << half);
                atomicAdd(&state[bins[k]], static_cast<hist_u64>(HIST_PACKED_FULL));
            }
        }
    }
}

// A thread takes every HIST_THREADSth vector of its block's chunk. Row y of the grid counts the
// channel first + y, if there are several rows. Reads each sample once, and without Dense its whole pixel;
// adds to the state, and where bins are extracted and counts is given writes how many of their
// samples the chunk has.
//
// Packed counters: between two barriers, a turn of 4 vectors, a block adds at most 512 * 4 * 8 =
// 2^14 to a counter that was below 2^15 before: 16 bits hold it.
template <typename T, bool Dense, bool Many, HistPlace Place>
__global__ void __launch_bounds__(HIST_THREADS, Place == HIST_SHARED   ? HIST_BLOCKS
                                                : Place == HIST_GLOBAL ? 2
                                                                       : 1)
    hist_count(HistArgs a, HistCounters counters, hist_u64 *state, uint32_t *counts) {
    constexpr int batch = !Dense ? 1 : Place == HIST_LARGE || Place == HIST_PACKED ? 4 : HIST_BATCH;
    constexpr bool alone = Place == HIST_SHARED || Place == HIST_LARGE;
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t selected[GF_HIST_MAX_LISTED];
    static_assert(HIST_THREADS * batch * 8 + HIST_PACKED_FULL <= 0xffff, "16 bits");
    state += static_cast<uint64_t>(blockIdx.y) * counters.count;
    if constexpr (Place != HIST_GLOBAL)
        for (uint32_t i = threadIdx.x; i < counters.bytes / 4; i += HIST_THREADS)
            hist_shared[i] = 0;
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    __syncthreads();

    const uint32_t lane_copy = threadIdx.x & (counters.copies - 1);
    HistWalk walk = hist_walk<T, Dense>(a);
    for (uint32_t turns = (hist_turns(walk) + batch - 1) / batch; turns > 0; turns--) {
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
            hist_step(a, &walk);
        }
#pragma unroll
        for (int b = 0; b < batch; b++) {
            if (valid[b] == hist_vector<T>::size)
                hist_count_vector<T, Many, Place, true>(a, counters, lane_copy, v[b], valid[b],
                                                        channel[b], hist_shared, state);
            else if (valid[b] > 0)
                hist_count_vector<T, Many, Place, false>(a, counters, lane_copy, v[b], valid[b],
                                                         channel[b], hist_shared, state);
        }
        if (Place == HIST_PACKED)
            __syncthreads();
    }
    if constexpr (Place == HIST_GLOBAL)
        return;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < counters.count; i += HIST_THREADS) {
        uint32_t sum = 0;
        if (Place == HIST_PACKED)
            sum = hist_shared[i / 2] >> (i & 1) * 16 & 0xffffu;
        else
            for (uint32_t k = 0; k < counters.copies; k++) // each thread from another bank on
                sum += hist_shared[i * counters.copies + ((k + threadIdx.x) & (counters.copies - 1))];
        if (sum == 0)
            continue;
        atomicAdd(&state[i], static_cast<hist_u64>(sum));
        const uint32_t bin = Many ? i % (a.bins + 1) : i;
        if (alone && counts && bin < a.bins)
            hist_add_selected(a, selected, bin, sum);
    }
    if (alone)
        hist_store_selected(a, selected, counts);
}

#endif
