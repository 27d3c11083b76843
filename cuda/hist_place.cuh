// Extraction of one bin: how many samples each block's chunk has is known from counting, so that
// every block knows where its own begin, and reads its chunk once more to write them.
#ifndef GF_HIST_PLACE_CUH
#define GF_HIST_PLACE_CUH

#include "hist_walk.cuh"
#include "hist_window.cuh"

// ---- listing ------------------------------------------------------------------------------------

// What a block puts in order in a turn of two vectors a thread: first the first ones of all
// threads, then the second ones.
template <typename T> struct HistTurn {
    static constexpr int samples = 2 * HIST_THREADS * hist_vector<T>::size;
    uint4 raw[2 * HIST_THREADS];    // the vectors
    uint16_t gap[2 * HIST_THREADS]; // a sample's place among them less its number, modulo 2^16
    uint16_t list[samples];         // the places of samples that are extracted, in order
    uint32_t warps[HIST_WARPS];     // how many of them each warp has: 16 bits each for both vectors
    uint64_t first;                 // the number of the first sample
};

template <typename T> struct HistPair {
    uint4 v[2];
    uint64_t j[2];
    uint32_t valid[2];
};

static __device__ __forceinline__ uint4 hist_load_now(const uint4 *from) {
    uint4 v; // volatile: where it is written it is begun
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

template <typename T, bool Dense>
static __device__ __forceinline__ void hist_load_pair(const HistArgs &a, HistWalk *walk,
                                                      HistPair<T> *pair) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        pair->v[i] = make_uint4(0, 0, 0, 0);
        pair->valid[i] = 0;
        pair->j[i] = walk->j;
        if (walk->left > 0) {
            if (Dense)
                pair->v[i] = hist_load_now(reinterpret_cast<const uint4 *>(walk->at));
            else
                pair->v[i] = hist_load<T, Dense>(a, *walk);
            pair->valid[i] = hist_valid<T>(a, *walk);
        }
        hist_step(a, walk);
    }
}

static __device__ __forceinline__ uint32_t hist_sum_warp(uint32_t n) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xffffffffu, n);
#else
#pragma unroll
    for (int by = 16; by > 0; by /= 2)
        n += __shfl_xor_sync(0xffffffffu, n, by);
    return n;
#endif
}

// The sum over the lanes up to this one.
static __device__ __forceinline__ uint32_t hist_sum_up(uint32_t n) {
#pragma unroll
    for (int by = 1; by < 32; by *= 2)
        asm volatile(
            "{ .reg .pred p; .reg .u32 other;\n"
            "shfl.sync.up.b32 other|p, %0, %1, 0, 0xffffffff;\n"
            "@p add.u32 %0, %0, other; }"
            : "+r"(n)
            : "r"(by));
    return n;
}

// Writes the places of hits, which begin at `place`, up to `end`: the last first.
static __device__ __forceinline__ void hist_list_hits(uint16_t *end, uint32_t hits,
                                                      uint32_t place) {
    while (hits) {
        const uint32_t k = static_cast<uint32_t>(31 - __clz(static_cast<int>(hits)));
        *--end = static_cast<uint16_t>(place + k);
        hits ^= 1u << k;
    }
}

// Lists the hits of all threads in order; how many there are. Between its two barriers, when the
// vectors lie in shared memory, `then` is called. A turn's reads of the list and the next call need
// no barrier between them.
template <typename T, typename F>
static __device__ __forceinline__ uint32_t hist_list(HistTurn<T> *turn, const HistPair<T> &pair,
                                                     uint32_t hits0, uint32_t hits1, F then) {
    constexpr uint32_t size = hist_vector<T>::size;
    const uint32_t n = static_cast<uint32_t>(__popc(hits0)) | static_cast<uint32_t>(__popc(hits1))
                                                                  << 16;
    const uint32_t upto = hist_sum_up(n), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 31)
        turn->warps[warp] = upto;
    __syncthreads();
    const uint32_t other = lane < HIST_WARPS ? turn->warps[lane] : 0;
    const uint32_t all = hist_sum_warp(other);
    const uint32_t end = hist_sum_warp(lane < warp ? other : 0) + upto; // of the thread's, in both
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t place = (i * HIST_THREADS + threadIdx.x) * size;
        turn->raw[i * HIST_THREADS + threadIdx.x] = pair.v[i];
        turn->gap[i * HIST_THREADS + threadIdx.x] =
            static_cast<uint16_t>(place - static_cast<uint32_t>(pair.j[i]));
    }
    if (threadIdx.x == 0)
        turn->first = pair.j[0];
    then();
    hist_list_hits(turn->list + (end & 0xffff), hits0, threadIdx.x * size);
    hist_list_hits(turn->list + (all & 0xffff) + (end >> 16), hits1,
                   (HIST_THREADS + threadIdx.x) * size);
    __syncthreads();
    return (all & 0xffff) + (all >> 16);
}

template <typename T>
static __device__ __forceinline__ T hist_listed(const HistTurn<T> &turn, uint32_t place) {
    return reinterpret_cast<const T *>(turn.raw)[place];
}

// The sample's number. Within a turn 16 bits tell it, as numbers leave out no sample.
template <typename T>
static __device__ __forceinline__ uint64_t hist_number(const HistTurn<T> &turn, uint64_t first,
                                                       uint32_t place) {
    const uint32_t number = place - turn.gap[place / hist_vector<T>::size];
    return first + static_cast<uint16_t>(number - static_cast<uint32_t>(first));
}

// The counts of the blocks before this one, and of all, for one rank; every thread of a warp has
// them. The warps may ask for different ranks.
static __device__ __forceinline__ void hist_sum_counts(const uint32_t *counts, uint32_t rank,
                                                       hist_u64 *before, hist_u64 *all) {
    hist_u64 sum = 0, sum_before = 0;
    for (uint32_t b = threadIdx.x % 32; b < gridDim.x; b += 32) {
        const uint32_t count = counts[rank * gridDim.x + b];
        sum += count;
        sum_before += b < blockIdx.x ? count : 0;
    }
#pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, by);
        sum_before += __shfl_xor_sync(0xffffffffu, sum_before, by);
    }
    *before = sum_before;
    *all = sum;
}

// A block goes through its chunk in turns of two vectors a thread: hits are listed in shared memory
// and then written side by side, while the next vectors are on their way. Reads each sample once,
// without Dense its whole pixel; writes 8 bytes and the value of each sample of the bin. Shared
// memory: a HistTurn.
template <typename T, bool Dense>
__global__ void __launch_bounds__(HIST_THREADS, HIST_FIT(HIST_BLOCKS))
    hist_place(HistArgs a, HistWindow<T> window, const uint32_t *counts, hist_u64 *payload) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    HistTurn<T> *turn = reinterpret_cast<HistTurn<T> *>(hist_shared);
    HistWalk walk = hist_walk<T, Dense>(a);
    uint32_t turns = (hist_turns(walk) + 1) / 2;
    HistPair<T> pair;
    hist_load_pair<T, Dense>(a, &walk, &pair);

    hist_u64 before, all;
    hist_sum_counts(counts, 0, &before, &all);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        payload[0] = 0;
        payload[1] = all;
    }
    hist_u64 *positions = payload + 2 + before;
    T *values = reinterpret_cast<T *>(payload + 2 + all) + before;

    for (; turns > 0; turns--) {
        const uint32_t hits0 = hist_hits<T>(window, pair.v[0]) & ((1u << pair.valid[0]) - 1);
        const uint32_t hits1 = hist_hits<T>(window, pair.v[1]) & ((1u << pair.valid[1]) - 1);
        const uint32_t n = hist_list<T>(turn, pair, hits0, hits1,
                                        [&] { hist_load_pair<T, Dense>(a, &walk, &pair); });
        const uint64_t first = turn->first;
        for (uint32_t h = threadIdx.x; h < n; h += HIST_THREADS) {
            const uint32_t place = turn->list[h];
            positions[h] = hist_number<T>(*turn, first, place);
            values[h] = hist_listed<T>(*turn, place);
        }
        positions += n;
        values += n;
    }
}

#endif
