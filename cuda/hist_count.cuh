// Counting: counters in shared memory, in as many copies as fit, so that the lanes of a warp do not
// meet in one even where all samples fall into one bin.
#ifndef GF_HIST_COUNT_CUH
#define GF_HIST_COUNT_CUH

#include "hist_device.cuh"

#define HIST_SHARED_BYTES (48 * 1024) // what a block has on every device without asking
#define HIST_PIECE_PIXELS 4096        // that a block counts in one turn
// Shared counters have 32 bits: a block empties them before it has counted 2^32 samples.
#define HIST_ROUND_PIXELS (UINT64_C(1) << 29)

// Where a block's counters are.
enum HistPlace {
    HIST_COPIES, // shared memory, several copies: lane l adds to copy l % copies
    HIST_SHARED, // shared memory, once: lanes that meet add once for all
    HIST_GLOBAL  // the destination itself, in the same way
};

struct HistCounters {
    HistPlace place;
    uint32_t count;  // counters: measured * (bins + 1)
    uint32_t copies; // a power of two up to a warp
};

static inline HistCounters hist_counters(const gf_hist_plan *plan) {
    HistCounters counters = {HIST_COPIES, static_cast<uint32_t>(gf_hist_counters(plan)), 32};
    while (counters.copies > 1 &&
           static_cast<size_t>(counters.count) * counters.copies * 4 > HIST_SHARED_BYTES)
        counters.copies /= 2;
    // With few copies lanes would queue up after all.
    if (counters.copies < 8) {
        counters.copies = 1;
        counters.place =
            static_cast<size_t>(counters.count) * 4 > HIST_SHARED_BYTES ? HIST_GLOBAL : HIST_SHARED;
    }
    return counters;
}

static inline size_t hist_shared_bytes(const HistCounters &counters) {
    return counters.place == HIST_GLOBAL
               ? 0
               : static_cast<size_t>(counters.count) * counters.copies * 4;
}

// Adds one to a counter for every lane that counts; all lanes of a warp call it together.
template <HistPlace Place>
static __device__ __forceinline__ void hist_add(const HistCounters &counters, uint32_t *shared,
                                                unsigned long long *global, bool counts,
                                                uint32_t counter) {
    if constexpr (Place == HIST_COPIES) {
        if (counts)
            atomicAdd(&shared[counter * counters.copies + (threadIdx.x & (counters.copies - 1))],
                      1u);
        return;
    }
    const uint32_t key = counts ? counter : 0xffffffffu;
    const unsigned peers = __match_any_sync(0xffffffffu, key);
    const unsigned lane = threadIdx.x % 32;
    if (!counts || lane != static_cast<unsigned>(__ffs(static_cast<int>(peers)) - 1))
        return;
    const unsigned many = static_cast<unsigned>(__popc(peers));
    if (Place == HIST_SHARED)
        atomicAdd(&shared[counter], many);
    else
        atomicAdd(&global[counter], static_cast<unsigned long long>(many));
}

// Pixels [x, x + n) of a row. Every thread makes the same number of turns.
template <typename T, HistPlace Place>
static __device__ __forceinline__ void hist_count_pixels(const HistArgs &a,
                                                         const HistCounters &counters, const T *row,
                                                         uint64_t x, uint64_t n, uint32_t *shared,
                                                         unsigned long long *global) {
    for (uint64_t i = 0; i < n; i += HIST_THREADS) {
        const bool counts = i + threadIdx.x < n;
        for (uint32_t s = 0; s < a.measured; s++) {
            uint32_t counter = 0;
            if (counts)
                counter = s * (a.bins + 1) +
                          hist_bin<T>(a, hist_sample<T>(a, row, x + i + threadIdx.x, s));
            hist_add<Place>(counters, shared, global, counts, counter);
        }
    }
}

static __device__ __forceinline__ void hist_clear(const HistCounters &counters, uint32_t *shared) {
    for (uint32_t i = threadIdx.x; i < counters.count * counters.copies; i += HIST_THREADS)
        shared[i] = 0;
}

// The sum of a counter's copies. Threads begin at different copies: different banks.
static __device__ __forceinline__ unsigned long long hist_total(const HistCounters &counters,
                                                                const uint32_t *shared,
                                                                uint32_t i) {
    unsigned long long sum = 0;
    for (uint32_t k = 0; k < counters.copies; k++)
        sum += shared[i * counters.copies + ((k + threadIdx.x) & (counters.copies - 1))];
    return sum;
}

// The whole band into the state. Blocks take pieces of rows in turn; each sample is read once; in
// the end, or after a round, every block adds its counters to the state.
template <typename T, HistPlace Place>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_count(HistArgs a, HistCounters counters, unsigned long long *state) {
    extern __shared__ uint32_t hist_shared[];
    const uint64_t pieces = (a.width + HIST_PIECE_PIXELS - 1) / HIST_PIECE_PIXELS;
    const uint64_t round = HIST_ROUND_PIXELS / HIST_PIECE_PIXELS * gridDim.x;
    for (uint64_t first = 0; first < pieces * a.rows; first += round) {
        if constexpr (Place != HIST_GLOBAL) {
            hist_clear(counters, hist_shared);
            __syncthreads();
        }
        const uint64_t end = first + round < pieces * a.rows ? first + round : pieces * a.rows;
        for (uint64_t piece = first + blockIdx.x; piece < end; piece += gridDim.x) {
            const uint64_t x = piece % pieces * HIST_PIECE_PIXELS;
            const uint64_t n = a.width - x < HIST_PIECE_PIXELS ? a.width - x : HIST_PIECE_PIXELS;
            hist_count_pixels<T, Place>(a, counters, hist_row<T>(a, piece / pieces), x, n,
                                        hist_shared, state);
        }
        if constexpr (Place != HIST_GLOBAL) {
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < counters.count; i += HIST_THREADS) {
                const unsigned long long sum = hist_total(counters, hist_shared, i);
                if (sum)
                    atomicAdd(&state[i], sum);
            }
            __syncthreads();
        }
    }
}

// Each row into its record. Blocks take rows in turn.
template <typename T, HistPlace Place>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_count_rows(HistArgs a, HistCounters counters, unsigned char *records, size_t out_stride) {
    extern __shared__ uint32_t hist_shared[];
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        unsigned long long *record =
            reinterpret_cast<unsigned long long *>(records + y * out_stride);
        for (uint32_t i = threadIdx.x; i < counters.count; i += HIST_THREADS)
            record[i] = 0;
        for (uint64_t x = 0; x < a.width; x += HIST_ROUND_PIXELS) {
            if constexpr (Place != HIST_GLOBAL)
                hist_clear(counters, hist_shared);
            __syncthreads();
            const uint64_t n = a.width - x < HIST_ROUND_PIXELS ? a.width - x : HIST_ROUND_PIXELS;
            hist_count_pixels<T, Place>(a, counters, hist_row<T>(a, y), x, n, hist_shared, record);
            __syncthreads();
            if constexpr (Place != HIST_GLOBAL) {
                for (uint32_t i = threadIdx.x; i < counters.count; i += HIST_THREADS)
                    record[i] += hist_total(counters, hist_shared, i);
                __syncthreads();
            }
        }
    }
}

#endif
