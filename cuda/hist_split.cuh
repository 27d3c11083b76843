// Extraction of several bins, up to 64: a stable partition. As with one bin every block knows from
// counts where its samples of each bin begin.
#ifndef GF_HIST_SPLIT_CUH
#define GF_HIST_SPLIT_CUH

#include "hist_place.cuh"

// ---- ranks --------------------------------------------------------------------------------------

// Which extracted bin a sample is in: a table of u8's values; of other types' bins a bit each, and
// for each word how many bits lie in those before it.
template <typename T> struct HistRanks {
    uint32_t bits[GF_HIST_MAX_BINS / 32];
    uint8_t before[GF_HIST_MAX_BINS / 32];
};

template <> struct HistRanks<uint8_t> { uint8_t table[256]; };

// All threads of the block; a barrier must follow.
static __device__ __forceinline__ void hist_set_ranks(const HistArgs &a,
                                                      HistRanks<uint8_t> *ranks) {
    for (uint32_t v = threadIdx.x; v < 256; v += HIST_THREADS)
        ranks->table[v] =
            static_cast<uint8_t>(hist_rank(a, hist_bin<uint8_t>(a, static_cast<uint8_t>(v))));
}

template <typename T>
static __device__ __forceinline__ void hist_set_ranks(const HistArgs &a, HistRanks<T> *ranks) {
    for (uint32_t word = threadIdx.x; word <= (a.bins - 1) / 32; word += HIST_THREADS) {
        uint32_t bits = 0, before = 0;
        for (uint32_t i = 0; i < a.extracts; i++) {
            const uint32_t bin = a.extract_all ? i : a.listed[i];
            before += bin < word * 32;
            bits |= bin / 32 == word ? 1u << bin % 32 : 0;
        }
        ranks->bits[word] = bits;
        ranks->before[word] = static_cast<uint8_t>(before);
    }
}

// a.extracts or more if none.
template <typename T>
static __device__ __forceinline__ uint32_t hist_rank_in(const HistArgs &a,
                                                        const HistRanks<T> &ranks, uint32_t bin) {
    const uint32_t known = min(bin, a.bins - 1), bits = ranks.bits[known / 32]; // of NaN too large
    const uint32_t rank =
        ranks.before[known / 32] + static_cast<uint32_t>(__popc(bits & ((1u << known % 32) - 1)));
    return bin < a.bins && (bits >> known % 32 & 1) ? rank : a.extracts;
}

static __device__ __forceinline__ uint32_t hist_rank_of(const HistArgs &,
                                                        const HistRanks<uint8_t> &ranks,
                                                        uint8_t value) {
    return ranks.table[value];
}

template <typename T>
static __device__ __forceinline__ uint32_t hist_rank_of(const HistArgs &a,
                                                        const HistRanks<T> &ranks, T value) {
    return hist_rank_in(a, ranks, hist_bin<T>(a, value));
}

// Bit k is set if sample k is in an extracted bin.
static __device__ __forceinline__ uint32_t hist_any(const HistArgs &a,
                                                    const HistRanks<uint8_t> &ranks,
                                                    const uint4 &v) {
    uint32_t hits = 0;
#pragma unroll
    for (int k = 0; k < 16; k++)
        hits |= ranks.table[hist_word(v, k / 4) >> k % 4 * 8 & 255] < a.extracts ? 1u << k : 0;
    return hits;
}

template <typename T>
static __device__ __forceinline__ uint32_t hist_any(const HistArgs &a, const HistRanks<T> &ranks,
                                                    const uint4 &v) {
    uint32_t bins[hist_vector<T>::size], hits = 0;
    hist_bins<T>(a, v, bins);
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        const uint32_t known = min(bins[k], a.bins - 1);
        const bool in = ranks.bits[known / 32] >> known % 32 & 1;
        hits |= in && bins[k] < a.bins ? 1u << k : 0;
    }
    return hits;
}

// ---- counting -----------------------------------------------------------------------------------

// Only how many samples of each extracted bin the blocks' chunks have: where counting did not leave
// it behind. Reads each sample once.
template <typename T, bool Dense>
__global__ void __launch_bounds__(HIST_THREADS, HIST_FIT(HIST_BLOCKS))
    hist_count_selected(HistArgs a, uint32_t *counts) {
    __shared__ HistRanks<T> ranks;
    __shared__ uint32_t selected[GF_HIST_MAX_LISTED];
    hist_set_ranks(a, &ranks);
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    __syncthreads();
    HistWalk walk = hist_walk<T, Dense>(a);
    while (walk.left > 0) {
        HistPair<T> pair;
        hist_load_pair<T, Dense>(a, &walk, &pair);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t hits = hist_any(a, ranks, pair.v[i]) & ((1u << pair.valid[i]) - 1);
#pragma unroll
            for (int k = 0; k < hist_vector<T>::size; k++) {
                T x;
                hist_get(pair.v[i], k, &x);
                if (hits >> k & 1)
                    atomicAdd(&selected[hist_rank_of(a, ranks, x)], 1u);
            }
        }
    }
    __syncthreads();
    if (threadIdx.x < a.extracts)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = selected[threadIdx.x];
}

// ---- placing ------------------------------------------------------------------------------------

// Where the samples of each bin go, as places among all of them.
struct HistSplit {
    hist_u64 all[GF_HIST_MAX_LISTED];
    hist_u64 next[GF_HIST_MAX_LISTED];              // of the block
    hist_u64 begin[HIST_WARPS][GF_HIST_MAX_LISTED]; // of a warp in this round
    uint16_t many[HIST_WARPS][GF_HIST_MAX_LISTED];  // samples of a warp in this round
};

// The places where the block's samples of each bin begin; the head of the payload.
static __device__ __forceinline__ hist_u64 hist_begin_split(const HistArgs &a, HistSplit *split,
                                                            const uint32_t *counts,
                                                            hist_u64 *payload) {
    for (uint32_t rank = threadIdx.x / 32; rank < a.extracts; rank += HIST_WARPS) {
        hist_u64 before, all;
        hist_sum_counts(counts, rank, &before, &all);
        split->next[rank] = before;
        split->all[rank] = all;
    }
    for (uint32_t i = threadIdx.x; i < HIST_WARPS * GF_HIST_MAX_LISTED; i += HIST_THREADS)
        split->many[i / GF_HIST_MAX_LISTED][i % GF_HIST_MAX_LISTED] = 0;
    __syncthreads();
    hist_u64 begin = 0;
    for (uint32_t rank = 0; rank < a.extracts; rank++) {
        if (threadIdx.x == rank) {
            split->next[rank] += begin;
            if (blockIdx.x == 0)
                payload[rank] = begin;
        }
        begin += split->all[rank];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        payload[a.extracts] = begin;
    return begin;
}

template <typename T> struct HistSplitShared {
    HistTurn<T> turn;
    HistRanks<T> ranks;
    HistSplit split;
};

// As hist_place; what is listed is dealt out in rounds of a sample a thread. Lanes with the same
// rank find each other, the warps' numbers are added up rank by rank. Shared memory: a
// HistSplitShared.
template <typename T, bool Dense>
__global__ void __launch_bounds__(HIST_THREADS, HIST_FIT(HIST_BLOCKS))
    hist_split(HistArgs a, const uint32_t *counts, hist_u64 *payload) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    HistSplitShared<T> *shared = reinterpret_cast<HistSplitShared<T> *>(hist_shared);
    HistTurn<T> &turn = shared->turn;
    HistRanks<T> &ranks = shared->ranks;
    HistSplit &split = shared->split;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    hist_set_ranks(a, &ranks);
    const hist_u64 all = hist_begin_split(a, &split, counts, payload);
    hist_u64 *positions = payload + a.extracts + 1;
    T *values = reinterpret_cast<T *>(positions + all);
    __syncthreads();

    HistWalk walk = hist_walk<T, Dense>(a);
    for (uint32_t turns = (hist_turns(walk) + 1) / 2; turns > 0; turns--) {
        HistPair<T> pair;
        hist_load_pair<T, Dense>(a, &walk, &pair);
        uint32_t hits[2];
#pragma unroll
        for (int i = 0; i < 2; i++)
            hits[i] = hist_any(a, ranks, pair.v[i]) & ((1u << pair.valid[i]) - 1);
        const uint32_t n = hist_list<T>(&turn, pair, hits[0], hits[1], [] {});
        const uint64_t first = turn.first;
        for (uint32_t round = 0; round < n; round += HIST_THREADS) {
            const bool listed = round + threadIdx.x < n;
            uint32_t place = 0, rank = GF_HIST_MAX_LISTED;
            T value = 0;
            if (listed) {
                place = turn.list[round + threadIdx.x];
                value = hist_listed<T>(turn, place);
                rank = hist_rank_of(a, ranks, value);
            }
            const uint32_t peers = __match_any_sync(0xffffffffu, rank);
            const uint32_t before = static_cast<uint32_t>(__popc(peers & ((1u << lane) - 1)));
            if (listed && before == 0)
                split.many[warp][rank] = static_cast<uint16_t>(__popc(peers));
            __syncthreads();
            if (threadIdx.x < a.extracts) {
                hist_u64 next = split.next[threadIdx.x];
                for (int w = 0; w < HIST_WARPS; w++) {
                    split.begin[w][threadIdx.x] = next;
                    next += split.many[w][threadIdx.x];
                    split.many[w][threadIdx.x] = 0;
                }
                split.next[threadIdx.x] = next;
            }
            __syncthreads();
            if (listed) {
                const hist_u64 to = split.begin[warp][rank] + before;
                positions[to] = hist_number<T>(turn, first, place);
                values[to] = value;
            }
        }
    }
}

#endif
