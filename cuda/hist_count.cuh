// Counting u16 and f32: a sample's bin is computed, and one added to its counter.
#ifndef GF_HIST_COUNT_CUH
#define GF_HIST_COUNT_CUH

#include "hist_values.cuh"

// Where a block's counters are.
enum HistPlace {
    HIST_SHARED, // shared memory, 32 bits each; lanes that meet in one add without waiting
    HIST_PACKED, // shared memory, two in a word; as soon as one has 2^15 they go to the state
    HIST_GLOBAL  // the state itself
};

#define HIST_PACKED_FULL 0x8000u

struct HistCounters {
    HistPlace place;
    uint32_t count;  // counters: measured * (bins + 1)
    uint32_t copies; // of shared ones: a power of two up to a warp; lane l adds to copy l % copies
    size_t bytes;    // of shared memory
};

static inline HistCounters hist_counters(uint32_t count) {
    const size_t comfortable = 66 * 1024; // with it all blocks of a processor are at home
    const size_t most = hist_device(cudaDevAttrMaxSharedMemoryPerBlockOptin) - 1024;
    HistCounters counters = {HIST_SHARED, count, 32, 0};
    while (counters.copies > 1 && static_cast<size_t>(count) * counters.copies * 4 >
                                      (comfortable < most ? comfortable : most))
        counters.copies /= 2;
    counters.bytes = static_cast<size_t>(count) * counters.copies * 4;
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

// How many blocks are at home on a processor.
static inline uint64_t hist_at_home(size_t shared) {
    const uint64_t room = hist_device(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    const uint64_t blocks = room / (shared + 2048);
    return blocks < 1 ? 1 : blocks < HIST_BLOCKS ? blocks : HIST_BLOCKS;
}

// Adds the samples of a vector. Where lanes that meet in a counter wait for each other, equal
// neighbours are added at once.
template <typename T, bool Many, HistPlace Place>
static __device__ __forceinline__ void
hist_count_vector(const HistArgs &a, const HistCounters &counters, uint32_t lane_copy,
                  uint32_t shift, uint4 v, uint32_t valid, uint32_t channel, uint32_t *shared,
                  hist_u64 *state) {
    const uint32_t all = Many ? counters.count : 0;
    uint32_t base = Many ? channel * (a.bins + 1) : 0, last = 0, run = 0;
    const auto add = [&](uint32_t counter, uint32_t many) {
        if constexpr (Place == HIST_SHARED) {
            atomicAdd(&shared[(counter << shift) + lane_copy], 1u);
        } else if constexpr (Place == HIST_PACKED) {
            const uint32_t half = (counter & 1) * 16;
            const uint32_t had = atomicAdd(&shared[counter / 2], many << half) >> half & 0xffffu;
            if (had < HIST_PACKED_FULL && had + many >= HIST_PACKED_FULL) {
                atomicSub(&shared[counter / 2], HIST_PACKED_FULL << half);
                atomicAdd(&state[counter], static_cast<hist_u64>(HIST_PACKED_FULL));
            }
        } else {
            atomicAdd(&state[counter], static_cast<hist_u64>(many));
        }
    };
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        if (static_cast<uint32_t>(k) < valid) {
            T x;
            hist_get(v, k, &x);
            const uint32_t counter = base + hist_bin<T>(a, x);
            if constexpr (Place == HIST_SHARED) {
                add(counter, 1);
            } else {
                if (run > 0 && counter != last) {
                    add(last, run);
                    run = 0;
                }
                last = counter;
                run++;
            }
        }
        if (Many) {
            base += a.bins + 1;
            base = base == all ? 0 : base;
        }
    }
    if (Place != HIST_SHARED && run > 0)
        add(last, run);
}

// A thread takes every HIST_THREADSth vector of its block's chunk. Row y of the grid counts the
// channels from first + y * measured on. Reads each sample once, and without Dense its whole pixel;
// adds to the state, and where bins are extracted and counts is given writes how many of their
// samples the chunk has.
//
// Packed counters: between two barriers, a turn of HIST_BATCH vectors, a block adds at most
// 512 * 4 * 8 = 2^14 to a counter that was below 2^15 before: 16 bits hold it.
template <typename T, bool Dense, bool Many, HistPlace Place>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_count(HistArgs a, HistCounters counters, hist_u64 *state, uint32_t *counts) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t selected[GF_HIST_MAX_LISTED];
    static_assert(HIST_THREADS * HIST_BATCH * 8 + HIST_PACKED_FULL <= 0xffff, "16 bits");
    a.first += blockIdx.y * a.measured;
    state += static_cast<uint64_t>(blockIdx.y) * counters.count;
    if constexpr (Place != HIST_GLOBAL)
        for (uint32_t i = threadIdx.x; i < counters.bytes / 4; i += HIST_THREADS)
            hist_shared[i] = 0;
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    __syncthreads();

    const uint32_t lane_copy = threadIdx.x & (counters.copies - 1);
    const uint32_t shift = static_cast<uint32_t>(31 - __clz(static_cast<int>(counters.copies)));
    const uint64_t begin = blockIdx.x * a.chunk;
    const uint64_t end = begin + a.chunk < a.end ? begin + a.chunk : a.end;
    HistWalk walk = hist_walk<T, Dense>(a, begin + threadIdx.x);
    constexpr int batch = Dense ? HIST_BATCH : 1;
    for (uint64_t turn = begin; turn < end; turn += batch * HIST_THREADS) {
        uint4 v[batch];
        uint32_t valid[batch], channel[batch];
#pragma unroll
        for (int b = 0; b < batch; b++) {
            valid[b] = 0;
            if (walk.i < end) {
                v[b] = hist_load<T, Dense>(a, walk);
                valid[b] = hist_valid<T>(a, walk);
            }
            channel[b] = walk.channel;
            hist_step(a, &walk);
        }
#pragma unroll
        for (int b = 0; b < batch; b++) {
            if (valid[b] == hist_vector<T>::size)
                hist_count_vector<T, Many, Place>(a, counters, lane_copy, shift, v[b],
                                                  hist_vector<T>::size, channel[b], hist_shared,
                                                  state);
            else if (valid[b] > 0)
                hist_count_vector<T, Many, Place>(a, counters, lane_copy, shift, v[b], valid[b],
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
                sum += hist_shared[(i << shift) + ((k + threadIdx.x) & (counters.copies - 1))];
        if (sum == 0)
            continue;
        atomicAdd(&state[i], static_cast<hist_u64>(sum));
        const uint32_t bin = Many ? i % (a.bins + 1) : i;
        if (Place == HIST_SHARED && counts && bin < a.bins)
            hist_add_selected(a, selected, bin, sum);
    }
    if (Place == HIST_SHARED)
        hist_store_selected(a, selected, counts);
}

#endif
