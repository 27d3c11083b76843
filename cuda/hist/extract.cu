// hist on CUDA: extraction of the samples of selected bins, in image order.
//
//   kernels                                used for           method
//   hist_keys, hist_offsets, hist_collect  more than 64 bins  stable radix sort by bin (CUB)
//   hist_split                             up to 64 bins      list hits in shared memory, partition
//   hist_select                            one bin            the same list; the bin is an interval
//   hist_count_selected                    before the last two, if counting stored no counts
//
// hist_split and hist_select read counts: the number of samples of each extracted bin in the chunk
// of each block. From these each block computes its output offsets; it reads its chunk again.
#include "cuda/hist/device.cuh"

// The values of a bin are an interval (filters/hist/hist.h). The host computes it; kernels that
// extract one bin compare samples with it and compute no bins.

// Interval lo <= v <= hi. u8: constants of hist_bytes_ge for the comparison of four bytes at once.
template <typename T> struct hist_window { T lo, hi; };

template <> struct hist_window<uint8_t> { uint32_t add_lo, low_lo, add_above, low_above; };

// Compare four bytes with a bound: set the highest bit of each byte >= bound. Adding 128 minus the
// low 7 bits of the bound to the low 7 bits of a byte sets the highest bit if the byte's 7 bits are
// at least those of the bound. The result is the majority of this bit, the byte's highest bit, and
// (bound < 128).
GF_DEVICE uint32_t hist_bytes_ge(uint32_t word, uint32_t add, uint32_t low) {
    const uint32_t sum = (word & 0x7f7f7f7fu) + add;
    return (sum & word) | (sum & low) | (word & low);
}

// Set bit k if sample k of a vector is in the interval.
template <typename T> GF_DEVICE uint32_t hist_hits(const hist_window<T> &window, const uint4 &v) {
    uint32_t hits = 0;
    if constexpr (sizeof(T) == 1) {
#pragma unroll
        for (int i = 3; i >= 0; i--) {
            const uint32_t word = gf_word(v, i);
            const uint32_t in = hist_bytes_ge(word, window.add_lo, window.low_lo) &
                                ~hist_bytes_ge(word, window.add_above, window.low_above) &
                                0x80808080u;
            // The product moves the highest bits of the four bytes to bits 28 to 31.
            hits = __funnelshift_l(in * 0x00204081u, hits, 4);
        }
    } else {
#pragma unroll
        for (int k = 0; k < gf_hist_vector<T>::size; k++) {
            const T x = gf_sample_at<T>(v, k);
            if (x >= window.lo && x <= window.hi)
                hits |= 1u << k;
        }
    }
    return hits;
}

template <typename T> static hist_window<T> hist_window_of(const gf_hist_plan *plan) {
    uint32_t from, to;
    gf_hist_extracted_keys(plan, &from, &to);
    hist_window<T> window;
    if constexpr (sizeof(T) == 1) {
        const auto set = [](uint32_t bound, uint32_t *add, uint32_t *low) {
            *add = bound < 256 ? (128 - bound % 128) * 0x01010101u : 0; // no byte is >= 256
            *low = bound < 128 ? 0xffffffffu : 0;
        };
        set(from, &window.add_lo, &window.low_lo);
        set(to, &window.add_above, &window.low_above);
    } else {
        // An empty interval is 1..0.
        window.lo = static_cast<T>(from < to ? gf_hist_value(plan, from) : 1);
        window.hi = static_cast<T>(from < to ? gf_hist_value(plan, to - 1) : 0);
    }
    return window;
}

// ---- listing ------------------------------------------------------------------------------------

// Shared memory of one pass: first the first vectors of all threads, then the second ones.
template <typename T> struct hist_pass {
    static constexpr int samples = 2 * Policy::THREADS * gf_hist_vector<T>::size;
    uint4 raw[2 * Policy::THREADS];    // the vectors
    uint16_t gap[2 * Policy::THREADS]; // index in raw less index in the image, modulo 2^16
    uint16_t list[samples];            // indices of the extracted samples in raw, in order
    uint32_t warps[Policy::WARPS];     // extracted samples per warp, 16 bits for each vector
    uint64_t first;                    // image index of the first sample
};

template <typename T> struct hist_pair {
    uint4 v[2];
    uint64_t j[2];
    uint32_t valid[2];
};

template <typename T, bool DENSE>
GF_DEVICE void hist_load_pair(const gf_hist_args &a, gf_hist_walk *walk, hist_pair<T> *pair) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        pair->v[i] = make_uint4(0, 0, 0, 0);
        pair->valid[i] = 0;
        pair->j[i] = walk->j;
        if (walk->left > 0) {
            uint4 &v = pair->v[i];
            if (DENSE) // volatile: the compiler must issue the load here
                asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                             : "l"(reinterpret_cast<const uint4 *>(walk->at)));
            else
                v = gf_hist_load<T, DENSE>(a, *walk);
            pair->valid[i] = gf_hist_valid<T>(a, *walk);
        }
        gf_hist_step(a, walk);
    }
}

GF_DEVICE uint32_t hist_sum_warp(uint32_t n) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(GF_WARP, n);
#else
    return gf_reduce_group<32>(n, gf_plus());
#endif
}

// Write the indices of hits before `end`, the last one first. index: that of sample 0.
GF_DEVICE void hist_list_hits(uint16_t *end, uint32_t hits, uint32_t index) {
    while (hits) {
        const uint32_t k = static_cast<uint32_t>(31 - __clz(hits));
        *--end = static_cast<uint16_t>(index + k);
        hits ^= 1u << k;
    }
}

// List the hits of all threads in order, and return their number. `then` is called between the two
// barriers, after the vectors are stored in shared memory. Calls need no barrier between.
template <typename T, typename F>
GF_DEVICE uint32_t hist_list(hist_pass<T> *pass, const hist_pair<T> &pair, uint32_t hits0,
                             uint32_t hits1, F then) {
    constexpr uint32_t size = gf_hist_vector<T>::size;
    const uint32_t n = __popc(hits0) | static_cast<uint32_t>(__popc(hits1)) << 16;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t upto = n; // inclusive prefix sum over the lanes of the warp
#pragma unroll
    for (int by = 1; by < 32; by *= 2)
        asm volatile(
            "{ .reg .pred p; .reg .u32 other;\n"
            "shfl.sync.up.b32 other|p, %0, %1, 0, 0xffffffff;\n"
            "@p add.u32 %0, %0, other; }"
            : "+r"(upto)
            : "r"(by));
    if (lane == 31)
        pass->warps[warp] = upto;
    __syncthreads();
    const uint32_t other = lane < Policy::WARPS ? pass->warps[lane] : 0;
    const uint32_t all = hist_sum_warp(other);
    const uint32_t end = hist_sum_warp(lane < warp ? other : 0) + upto; // end of the thread's hits
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t index = (i * Policy::THREADS + threadIdx.x) * size;
        pass->raw[i * Policy::THREADS + threadIdx.x] = pair.v[i];
        pass->gap[i * Policy::THREADS + threadIdx.x] =
            static_cast<uint16_t>(index - static_cast<uint32_t>(pair.j[i]));
    }
    if (threadIdx.x == 0)
        pass->first = pair.j[0];
    then();
    hist_list_hits(pass->list + (end & 0xffff), hits0, threadIdx.x * size);
    hist_list_hits(pass->list + (all & 0xffff) + (end >> 16), hits1,
                   (Policy::THREADS + threadIdx.x) * size);
    __syncthreads();
    return (all & 0xffff) + (all >> 16);
}

template <typename T> GF_DEVICE T hist_listed(const hist_pass<T> &pass, uint32_t index) {
    return reinterpret_cast<const T *>(pass.raw)[index];
}

// Return the image index of a listed sample. Within a pass, 16 bits suffice.
template <typename T>
GF_DEVICE uint64_t hist_index(const hist_pass<T> &pass, uint64_t first, uint32_t index) {
    const uint32_t number = index - pass.gap[index / gf_hist_vector<T>::size];
    return first + static_cast<uint16_t>(number - static_cast<uint32_t>(first));
}

// Sum the counts of one extracted bin over the blocks before this one, and over all blocks. All
// lanes of the warp get both sums. Warps may pass different bins.
GF_DEVICE void hist_sum_counts(const uint32_t *counts, uint32_t nth, gf_u64 *before, gf_u64 *all) {
    gf_u64 sum = 0, sum_before = 0;
    for (uint32_t b = threadIdx.x % 32; b < gridDim.x; b += 32) {
        const uint32_t count = counts[nth * gridDim.x + b];
        sum += count;
        sum_before += b < blockIdx.x ? count : 0;
    }
    *before = gf_reduce_group<32>(sum_before, gf_plus());
    *all = gf_reduce_group<32>(sum, gf_plus());
}

// Extract one bin.
// Grid: one block per chunk. Block: 512 threads; each pass processes two vectors per thread. Hits
// are listed in shared memory and then written contiguously while the next vectors are loaded.
// Reads each sample once; without DENSE, its whole pixel. Writes 8 bytes and the value for each
// sample of the bin. Shared memory: a hist_pass. Registers: 40 (sm_90), 3 resident blocks.
template <typename T, bool DENSE>
__global__ void __launch_bounds__(Policy::THREADS, Policy::resident(Policy::BLOCKS))
    hist_select(gf_hist_args a, hist_window<T> window, const uint32_t *counts, gf_u64 *payload) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    hist_pass<T> *pass = reinterpret_cast<hist_pass<T> *>(hist_shared);
    gf_wait_for_stream();
    gf_hist_walk walk = gf_hist_start<T, DENSE>(a);
    uint32_t iterations = (gf_hist_iterations(walk) + 1) / 2;
    hist_pair<T> pair;
    hist_load_pair<T, DENSE>(a, &walk, &pair);

    gf_u64 before, all;
    hist_sum_counts(counts, 0, &before, &all);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        payload[0] = 0;
        payload[1] = all;
    }
    gf_u64 *positions = payload + 2 + before;
    T *values = reinterpret_cast<T *>(payload + 2 + all) + before;

    for (; iterations > 0; iterations--) {
        const uint32_t hits0 = hist_hits<T>(window, pair.v[0]) & ((1u << pair.valid[0]) - 1);
        const uint32_t hits1 = hist_hits<T>(window, pair.v[1]) & ((1u << pair.valid[1]) - 1);
        const uint32_t n = hist_list<T>(pass, pair, hits0, hits1,
                                        [&] { hist_load_pair<T, DENSE>(a, &walk, &pair); });
        const uint64_t first = pass->first;
        for (uint32_t h = threadIdx.x; h < n; h += Policy::THREADS) {
            const uint32_t index = pass->list[h];
            positions[h] = hist_index<T>(*pass, first, index);
            values[h] = hist_listed<T>(*pass, index);
        }
        positions += n;
        values += n;
    }
}

// ---- extracted bins -----------------------------------------------------------------------------

// Map from samples to extracted bins. u8: a table of values. Other types: one bit per bin, and for
// each word the number of bits set in the words before it.
template <typename T> struct hist_extracted {
    uint32_t bits[GF_HIST_MAX_BINS / 32];
    uint8_t before[GF_HIST_MAX_BINS / 32];
};

template <> struct hist_extracted<uint8_t> { uint8_t table[256]; };

// Build the map. All threads of the block must call it; a barrier must follow.
template <typename T>
GF_DEVICE void hist_set_extracted(const gf_hist_args &a, hist_extracted<T> *extracted) {
    if constexpr (sizeof(T) == 1) {
        for (uint32_t v = threadIdx.x; v < 256; v += Policy::THREADS)
            extracted->table[v] = static_cast<uint8_t>(
                gf_hist_nth(a, gf_hist_bin<uint8_t>(a, static_cast<uint8_t>(v))));
    } else {
        for (uint32_t word = threadIdx.x; word <= (a.bins - 1) / 32; word += Policy::THREADS) {
            uint32_t bits = 0, before = 0;
            for (uint32_t i = 0; i < a.extracts; i++) {
                const uint32_t bin = a.extract_all ? i : a.listed[i];
                before += bin < word * 32;
                bits |= bin / 32 == word ? 1u << bin % 32 : 0;
            }
            extracted->bits[word] = bits;
            extracted->before[word] = static_cast<uint8_t>(before);
        }
    }
}

// Return the index of the extracted bin of a sample; a.extracts or more if there is none.
template <typename T>
GF_DEVICE uint32_t hist_sample_nth(const gf_hist_args &a, const hist_extracted<T> &extracted,
                                   T value) {
    if constexpr (sizeof(T) == 1) {
        return extracted.table[value];
    } else {
        const uint32_t bin = gf_hist_clamp(gf_hist_bin<T>(a, value), a.bins, a.ranged);
        const uint32_t clamped = min(bin, a.bins - 1),
                       bits = extracted.bits[clamped / 32]; // the bin of NaN is too large
        const uint32_t before = bits & ((1u << clamped % 32) - 1);
        const uint32_t nth = extracted.before[clamped / 32] + static_cast<uint32_t>(__popc(before));
        return bin < a.bins && (bits >> clamped % 32 & 1) ? nth : a.extracts;
    }
}

// Set bit k if sample k of a vector is in an extracted bin.
template <typename T>
GF_DEVICE uint32_t hist_any(const gf_hist_args &a, const hist_extracted<T> &extracted,
                            const uint4 &v) {
    uint32_t hits = 0;
    if constexpr (sizeof(T) == 1) {
#pragma unroll
        for (int k = 0; k < 16; k++)
            hits |=
                extracted.table[gf_word(v, k / 4) >> k % 4 * 8 & 255] < a.extracts ? 1u << k : 0;
    } else {
        uint32_t bins[gf_hist_vector<T>::size];
        gf_hist_bins<T>(a, v, bins);
#pragma unroll
        for (int k = 0; k < gf_hist_vector<T>::size; k++) {
            const uint32_t bin = gf_hist_clamp(bins[k], a.bins, a.ranged);
            const uint32_t clamped = min(bin, a.bins - 1);
            const bool in = extracted.bits[clamped / 32] >> clamped % 32 & 1;
            hits |= in && bin < a.bins ? 1u << k : 0;
        }
    }
    return hits;
}

// Count the samples of each extracted bin per chunk, if the counting kernel did not.
// Grid: one block per chunk. Block: 512 threads. Reads each sample once. Shared memory: a
// hist_extracted, 0.5 to 10 KB in all. Registers: 40 (sm_90).
template <typename T, bool DENSE>
__global__ void __launch_bounds__(Policy::THREADS, Policy::resident(Policy::BLOCKS))
    hist_count_selected(gf_hist_args a, uint32_t *counts) {
    __shared__ hist_extracted<T> extracted;
    __shared__ uint32_t selected[GF_HIST_MAX_LISTED];
    gf_wait_for_stream();
    hist_set_extracted(a, &extracted);
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    __syncthreads();
    gf_hist_walk walk = gf_hist_start<T, DENSE>(a);
    while (walk.left > 0) {
        hist_pair<T> pair;
        hist_load_pair<T, DENSE>(a, &walk, &pair);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t hits = hist_any(a, extracted, pair.v[i]) & ((1u << pair.valid[i]) - 1);
#pragma unroll
            for (int k = 0; k < gf_hist_vector<T>::size; k++) {
                const T x = gf_sample_at<T>(pair.v[i], k);
                if (hits >> k & 1)
                    atomicAdd(&selected[hist_sample_nth(a, extracted, x)], 1u);
            }
        }
    }
    __syncthreads();
    if (threadIdx.x < a.extracts)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = selected[threadIdx.x];
}

// ---- splitting ----------------------------------------------------------------------------------

// Output offsets of the samples of each bin.
struct hist_split_state {
    gf_u64 all[GF_HIST_MAX_LISTED];
    gf_u64 next[GF_HIST_MAX_LISTED];                  // of the block: next sample
    gf_u64 begin[Policy::WARPS][GF_HIST_MAX_LISTED];  // of a warp in this round
    uint16_t many[Policy::WARPS][GF_HIST_MAX_LISTED]; // samples of a warp in this round
};

// Compute the output offsets of the block for each bin, and write the head of the payload. Returns
// the number of samples of all extracted bins.
GF_DEVICE gf_u64 hist_begin_split(const gf_hist_args &a, hist_split_state *split,
                                  const uint32_t *counts, gf_u64 *payload) {
    for (uint32_t nth = threadIdx.x / 32; nth < a.extracts; nth += Policy::WARPS) {
        gf_u64 before, all;
        hist_sum_counts(counts, nth, &before, &all);
        split->next[nth] = before;
        split->all[nth] = all;
    }
    for (uint32_t i = threadIdx.x; i < Policy::WARPS * GF_HIST_MAX_LISTED; i += Policy::THREADS)
        split->many[i / GF_HIST_MAX_LISTED][i % GF_HIST_MAX_LISTED] = 0;
    __syncthreads();
    gf_u64 begin = 0;
    for (uint32_t nth = 0; nth < a.extracts; nth++) {
        if (threadIdx.x == nth) {
            split->next[nth] += begin;
            if (blockIdx.x == 0)
                payload[nth] = begin;
        }
        begin += split->all[nth];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        payload[a.extracts] = begin;
    return begin;
}

template <typename T> struct hist_split_shared {
    hist_pass<T> pass;
    hist_extracted<T> extracted;
    hist_split_state split;
};

// Extract up to 64 bins.
// Grid, block and reads: as hist_select. The listed samples are processed in rounds of one sample
// per thread. Lanes with the same bin are found by a warp match; the counts of the warps are summed
// bin by bin. Shared memory: a hist_split_shared. Registers: 40 (sm_90).
template <typename T, bool DENSE>
__global__ void __launch_bounds__(Policy::THREADS, Policy::resident(Policy::BLOCKS))
    hist_split(gf_hist_args a, const uint32_t *counts, gf_u64 *payload) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    hist_split_shared<T> *shared = reinterpret_cast<hist_split_shared<T> *>(hist_shared);
    hist_pass<T> &pass = shared->pass;
    hist_extracted<T> &extracted = shared->extracted;
    hist_split_state &split = shared->split;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    gf_wait_for_stream();
    hist_set_extracted(a, &extracted);
    const gf_u64 all = hist_begin_split(a, &split, counts, payload);
    gf_u64 *positions = payload + a.extracts + 1;
    T *values = reinterpret_cast<T *>(positions + all);
    __syncthreads();

    gf_hist_walk walk = gf_hist_start<T, DENSE>(a);
    for (uint32_t iterations = (gf_hist_iterations(walk) + 1) / 2; iterations > 0; iterations--) {
        hist_pair<T> pair;
        hist_load_pair<T, DENSE>(a, &walk, &pair);
        uint32_t hits[2];
#pragma unroll
        for (int i = 0; i < 2; i++)
            hits[i] = hist_any(a, extracted, pair.v[i]) & ((1u << pair.valid[i]) - 1);
        const uint32_t n = hist_list<T>(&pass, pair, hits[0], hits[1], [] {});
        const uint64_t first = pass.first;
        for (uint32_t round = 0; round < n; round += Policy::THREADS) {
            const bool listed = round + threadIdx.x < n;
            uint32_t index = 0, nth = GF_HIST_MAX_LISTED;
            T value = 0;
            if (listed) {
                index = pass.list[round + threadIdx.x];
                value = hist_listed<T>(pass, index);
                nth = hist_sample_nth(a, extracted, value);
            }
            const uint32_t peers = __match_any_sync(GF_WARP, nth);
            const uint32_t before = __popc(peers & ((1u << lane) - 1));
            if (listed && before == 0)
                split.many[warp][nth] = static_cast<uint16_t>(__popc(peers));
            __syncthreads();
            if (threadIdx.x < a.extracts) {
                gf_u64 next = split.next[threadIdx.x];
                for (int w = 0; w < Policy::WARPS; w++) {
                    split.begin[w][threadIdx.x] = next;
                    next += split.many[w][threadIdx.x];
                    split.many[w][threadIdx.x] = 0;
                }
                split.next[threadIdx.x] = next;
            }
            __syncthreads();
            if (listed) {
                const gf_u64 to = split.begin[warp][nth] + before;
                positions[to] = hist_index<T>(pass, first, index);
                values[to] = value;
            }
        }
    }
}

// ---- sorting ------------------------------------------------------------------------------------

// Write the key of each sample (its bin) and its index in the strip, for the sort. One vector per
// thread and iteration; 40 to 52 registers (sm_90).
template <typename T, bool DENSE>
__global__ void __launch_bounds__(Policy::THREADS)
    hist_keys(gf_hist_args a, uint32_t *keys, gf_u64 *indices) {
    gf_wait_for_stream();
    for (gf_hist_walk walk = gf_hist_start<T, DENSE>(a); walk.left > 0; gf_hist_step(a, &walk)) {
        const uint4 v = gf_hist_load<T, DENSE>(a, walk);
        const uint32_t valid = gf_hist_valid<T>(a, walk);
#pragma unroll
        for (int k = 0; k < gf_hist_vector<T>::size; k++)
            if (static_cast<uint32_t>(k) < valid) {
                const T x = gf_sample_at<T>(v, k);
                const uint64_t index = walk.j - a.before + k;
                keys[index] =
                    min(gf_hist_nth(a, gf_hist_bin<T>(a, x)), a.extracts); // no bin: sorted last
                indices[index] = index;
            }
    }
}

// Find the first sorted key of each bin by binary search, one thread per bin. 16 registers (sm_90).
static __global__ void __launch_bounds__(Policy::THREADS)
    hist_offsets(const uint32_t *keys, uint64_t n, uint32_t extracts, gf_u64 *offsets) {
    const uint32_t bin = blockIdx.x * Policy::THREADS + threadIdx.x;
    gf_wait_for_stream();
    if (bin > extracts)
        return;
    uint64_t from = 0, to = n;
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (keys[middle] < bin)
            from = middle + 1;
        else
            to = middle;
    }
    offsets[bin] = from;
}

// Write the positions and values of the sorted samples. One thread per sample, at most 8 blocks per
// SM, which loop; 28 registers (sm_90).
template <typename T>
__global__ void __launch_bounds__(Policy::THREADS)
    hist_collect(gf_hist_args a, const gf_u64 *indices, gf_u64 *payload) {
    gf_wait_for_stream();
    const gf_u64 count = payload[a.extracts];
    gf_u64 *positions = payload + a.extracts + 1;
    T *out = reinterpret_cast<T *>(positions + count);
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * Policy::THREADS;
    const bool small = a.rows * a.samples >> 32 == 0; // 64-bit divisions are slow
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * Policy::THREADS + threadIdx.x; i < count;
         i += step) {
        const uint64_t j = indices[i];
        const uint64_t y =
            small ? static_cast<uint32_t>(j) / static_cast<uint32_t>(a.samples) : j / a.samples;
        const uint64_t at = j - y * a.samples;
        const T *row = gf_hist_row<T>(a, y);
        positions[i] = a.before + j;
        out[i] = a.measured == 1 ? gf_hist_sample<T>(a, row, at, 0) : row[at]; // else all channels
    }
}

void gf_hist_queue_extract(const gf_hist_plan *plan, const gf_hist_args &strip_args, bool counted,
                           void *scratch, gf_u64 *payload, gf_queue *queue) {
    gf_dispatch(
        [&](auto sample, auto dense) {
            typedef decltype(sample) T;
            constexpr int threads = Policy::THREADS;
            gf_hist_args a = strip_args;
            gf_hist_join_rows(&a, 16 / sizeof(T));
            const unsigned grid = gf_hist_cut_common(&a);
            unsigned char *base = static_cast<unsigned char *>(scratch);
            uint32_t *counts = static_cast<uint32_t *>(scratch);
            if (a.extracts > GF_HIST_MAX_LISTED) {
                const uint64_t n = a.rows * a.samples;
                const gf_hist_sort_layout at = gf_hist_sort_layout_of(n, a.extracts);
                gf_launch_kernel(hist_keys<T, dense>, grid, threads, 0, queue, a, counts,
                                 reinterpret_cast<gf_u64 *>(base + at.indices));
                gf_hist_sort(scratch, n, a.extracts, queue);
                gf_launch_kernel(hist_offsets, gf_blocks(a.extracts + 1, threads), threads, 0,
                                 queue, reinterpret_cast<const uint32_t *>(base + at.sorted_keys),
                                 n, a.extracts, payload);
                gf_launch_kernel(hist_collect<T>, gf_grid(n, threads), threads, 0, queue, a,
                                 reinterpret_cast<const gf_u64 *>(base + at.sorted_indices),
                                 payload);
                return;
            }
            if (!counted)
                gf_launch_kernel(hist_count_selected<T, dense>, grid, threads, 0, queue, a, counts);
            if (a.extracts == 1 && a.nodata == UINT32_MAX) { // the samples form an interval
                gf_allow_shared<hist_select<T, dense>>(sizeof(hist_pass<T>));
                gf_launch_kernel(hist_select<T, dense>, grid, threads, sizeof(hist_pass<T>), queue,
                                 a, hist_window_of<T>(plan), counts, payload);
            } else {
                gf_allow_shared<hist_split<T, dense>>(sizeof(hist_split_shared<T>));
                gf_launch_kernel(hist_split<T, dense>, grid, threads, sizeof(hist_split_shared<T>),
                                 queue, a, counts, payload);
            }
        },
        gf_type_of{plan->head.in.type}, gf_flag{gf_hist_dense(strip_args)});
}
