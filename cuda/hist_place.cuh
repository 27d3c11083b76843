// Extraction of one bin: how many samples each block's chunk has is known from counting, so that
// every block knows where its own begin, and reads its chunk once more to write them.
//
// The values of a bin are an interval, because a greater sample never has a lesser bin: the host
// finds it, and no kernel computes a bin here.
#ifndef GF_HIST_PLACE_CUH
#define GF_HIST_PLACE_CUH

#include "hist_device.cuh"

// ---- the interval -------------------------------------------------------------------------------

// lo <= v <= hi. For u8 what hist_hits compares four bytes with.
template <typename T> struct HistWindow { T lo, hi; };

template <> struct HistWindow<uint8_t> { uint32_t add_lo, low_lo, add_above, low_above; };

// Bit k is set if sample k is in the interval.
template <typename T>
static __device__ __forceinline__ uint32_t hist_hits(const HistWindow<T> &window, const uint4 &v) {
    uint32_t hits = 0;
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        T x;
        hist_get(v, k, &x);
        if (x >= window.lo && x <= window.hi)
            hits |= 1u << k;
    }
    return hits;
}

// Bytes that are not less than a bound have their last bit set. Adding 128 less the bound's low 7
// bits to a byte's low 7 carries into that bit if these are not less; of that, the byte's own last
// bit and whether the bound is below 128, the majority is the answer.
static __device__ __forceinline__ uint32_t hist_reach(uint32_t word, uint32_t add, uint32_t low) {
    const uint32_t sum = (word & 0x7f7f7f7fu) + add;
    return (sum & word) | (sum & low) | (word & low);
}

template <>
__device__ __forceinline__ uint32_t hist_hits<uint8_t>(const HistWindow<uint8_t> &window,
                                                       const uint4 &v) {
    uint32_t hits = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t word = hist_word(v, i);
        const uint32_t in = hist_reach(word, window.add_lo, window.low_lo) &
                            ~hist_reach(word, window.add_above, window.low_above) & 0x80808080u;
        hits |= ((in >> 7) * 0x10204080u >> 28) << 4 * i; // bits 0, 8, 16, 24 side by side
    }
    return hits;
}

// ---- placing ------------------------------------------------------------------------------------

// What a block puts in order in a turn.
template <typename T> struct HistTurn {
    uint4 raw[HIST_THREADS];      // the threads' vectors
    uint64_t first[HIST_THREADS]; // and the number of the first sample of each
    uint16_t list[HIST_THREADS * hist_vector<T>::size]; // samples that are extracted
    uint32_t warps[HIST_WARPS];                         // how many of them each warp has
};

// The sum over the threads of the warp before this one.
static __device__ __forceinline__ uint32_t hist_before(uint32_t n) {
    uint32_t sum = n;
#pragma unroll
    for (int by = 1; by < 32; by *= 2) {
        const uint32_t other = __shfl_up_sync(0xffffffffu, sum, by);
        sum += threadIdx.x % 32 >= static_cast<uint32_t>(by) ? other : 0;
    }
    return sum - n;
}

// Lists the samples of the threads' hits in order; how many there are. Calls of it, and reads of
// what it lists, need no barrier between them but the two inside.
template <typename T>
static __device__ __forceinline__ uint32_t hist_list(HistTurn<T> *turn, const uint4 &v, uint64_t j,
                                                     uint32_t hits) {
    const uint32_t n = static_cast<uint32_t>(__popc(hits)), warp = threadIdx.x / 32;
    uint32_t place = hist_before(n);
    if (threadIdx.x % 32 == 31)
        turn->warps[warp] = place + n;
    __syncthreads();
    const uint32_t mine = threadIdx.x % 32 < HIST_WARPS ? turn->warps[threadIdx.x % 32] : 0;
    const uint32_t before = hist_before(mine);
    place += __shfl_sync(0xffffffffu, before, static_cast<int>(warp));
    const uint32_t all = __shfl_sync(0xffffffffu, before, 31);
    turn->raw[threadIdx.x] = v;
    turn->first[threadIdx.x] = j;
    uint32_t sample = threadIdx.x * hist_vector<T>::size;
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        if (hits >> k & 1)
            turn->list[place++] = static_cast<uint16_t>(sample);
        sample++;
    }
    __syncthreads();
    return all;
}

template <typename T>
static __device__ __forceinline__ T hist_listed(const HistTurn<T> &turn, uint32_t sample) {
    return reinterpret_cast<const T *>(turn.raw)[sample];
}

template <typename T>
static __device__ __forceinline__ uint64_t hist_number(const HistTurn<T> &turn, uint32_t sample) {
    return turn.first[sample / hist_vector<T>::size] + sample % hist_vector<T>::size;
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

// A block goes through its chunk in turns of a vector a thread: hits are listed in shared memory
// and then written side by side. Reads each sample once, without Dense its whole pixel; writes 8
// bytes and the value of each sample of the bin.
template <typename T, bool Dense>
__global__ void __launch_bounds__(HIST_THREADS, HIST_BLOCKS)
    hist_place(HistArgs a, HistWindow<T> window, const uint32_t *counts, hist_u64 *payload) {
    __shared__ HistTurn<T> turn;
    const uint64_t begin = blockIdx.x * a.chunk;
    const uint64_t end = begin + a.chunk < a.end ? begin + a.chunk : a.end;
    HistWalk walk = hist_walk<T, Dense>(a, begin + threadIdx.x);
    uint4 next = make_uint4(0, 0, 0, 0);
    if (walk.i < end)
        next = hist_load<T, Dense>(a, walk);

    hist_u64 before, all;
    hist_sum_counts(counts, 0, &before, &all);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        payload[0] = 0;
        payload[1] = all;
    }
    hist_u64 *positions = payload + 2 + before;
    T *values = reinterpret_cast<T *>(payload + 2 + all) + before;

    for (uint64_t base = begin; base < end; base += HIST_THREADS) {
        const uint4 v = next;
        const uint64_t j = walk.j + a.before;
        const uint32_t valid = walk.i < end ? hist_valid<T>(a, walk) : 0;
        hist_step(a, &walk);
        if (walk.i < end)
            next = hist_load<T, Dense>(a, walk);
        const uint32_t hits = hist_hits<T>(window, v) & ((1u << valid) - 1);
        const uint32_t n = hist_list<T>(&turn, v, j, hits);
        for (uint32_t h = threadIdx.x; h < n; h += HIST_THREADS) {
            const uint32_t sample = turn.list[h];
            positions[h] = hist_number<T>(turn, sample);
            values[h] = hist_listed<T>(turn, sample);
        }
        positions += n;
        values += n;
    }
}

// ---- host ---------------------------------------------------------------------------------------

// Samples in ascending order: the n-th of a type.
static inline uint32_t hist_ordered_count(uint8_t) {
    return 256;
}

static inline uint32_t hist_ordered_count(uint16_t) {
    return 65536;
}

static inline uint32_t hist_ordered_count(float) {
    return 2 * 0x7f800000u + 2; // from one infinity to the other, with two zeros
}

static inline void hist_ordered(uint32_t n, uint8_t *x) {
    *x = static_cast<uint8_t>(n);
}

static inline void hist_ordered(uint32_t n, uint16_t *x) {
    *x = static_cast<uint16_t>(n);
}

static inline void hist_ordered(uint32_t n, float *x) {
    const uint32_t bits = n <= 0x7f800000u ? 0xff800000u - n : n - 0x7f800001u;
    memcpy(x, &bits, sizeof bits);
}

// The bin of a sample, as the host computes it.
template <typename T> static inline uint32_t hist_bin_of(const HistArgs &a, T value) {
    if (a.ranged)
        return gf_hist_bin_real((static_cast<double>(value) - a.lo) / a.span, a.bins);
    if (sizeof(T) == sizeof(float))
        return gf_hist_bin_real(static_cast<double>(value), a.bins);
    return gf_hist_bin_integer(static_cast<uint32_t>(value), a.bins, sizeof(T) == 1 ? 255 : 65535);
}

// The first sample whose bin is at least `bin`, as the n-th; the number of all if there is none.
template <typename T> static inline uint32_t hist_first_of(const HistArgs &a, uint32_t bin) {
    uint32_t from = 0, to = hist_ordered_count(T{});
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        T x;
        hist_ordered(middle, &x);
        if (hist_bin_of<T>(a, x) >= bin)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

static inline void hist_bound(uint32_t bound, uint32_t *add, uint32_t *low) {
    const uint32_t rest = bound < 256 ? 128 - bound % 128 : 0; // no byte reaches 256
    *add = rest * 0x01010101u;
    *low = bound < 128 ? 0xffffffffu : 0;
}

static inline void hist_set_window(uint32_t from, uint32_t to, HistWindow<uint8_t> *window) {
    hist_bound(from, &window->add_lo, &window->low_lo);
    hist_bound(to, &window->add_above, &window->low_above);
}

template <typename T>
static inline void hist_set_window(uint32_t from, uint32_t to, HistWindow<T> *window) {
    // Of no samples: neither 1 nor anything is at least 1 and at most 0.
    window->lo = 1;
    window->hi = 0;
    if (from < to) {
        hist_ordered(from, &window->lo);
        hist_ordered(to - 1, &window->hi);
    }
}

template <typename T> static inline HistWindow<T> hist_window(const HistArgs &a, uint32_t bin) {
    HistWindow<T> window;
    hist_set_window(hist_first_of<T>(a, bin), hist_first_of<T>(a, bin + 1), &window);
    return window;
}

#endif
