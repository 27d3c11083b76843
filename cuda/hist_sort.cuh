// Extraction of all of more than 64 bins: the samples' places, sorted by bin. CUB sorts; its
// templates are compiled in a file of their own.
#ifndef GF_HIST_SORT_CUH
#define GF_HIST_SORT_CUH

#include "hist_walk.cuh"

// Scratch for n samples, and where in it these lie.
struct HistSortScratch {
    size_t keys, places, sorted_keys, sorted_places, sort, sort_bytes, bytes;
};

HistSortScratch hist_sort_scratch(uint64_t n, uint32_t extracts);

// Sorts places by key, stably. Keys are at most extracts.
gf_status hist_sort(void *memory, uint64_t n, uint32_t extracts, cudaStream_t stream,
                    gf_error *error);

// The key of every sample, its bin, and its place in the band. A thread writes a vector's.
template <typename T, bool Dense>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_keys(HistArgs a, uint32_t *keys, hist_u64 *places) {
    for (HistWalk walk = hist_walk<T, Dense>(a); walk.left > 0; hist_step(a, &walk)) {
        const uint4 v = hist_load<T, Dense>(a, walk);
        const uint32_t valid = hist_valid<T>(a, walk);
#pragma unroll
        for (int k = 0; k < hist_vector<T>::size; k++)
            if (static_cast<uint32_t>(k) < valid) {
                T x;
                hist_get(v, k, &x);
                const uint64_t place = walk.j - a.before + k;
                keys[place] = min(hist_bin<T>(a, x), a.extracts); // what is in no bin comes last
                places[place] = place;
            }
    }
}

// Where each bin begins among the sorted keys: a thread a bin searches.
static __global__ void __launch_bounds__(HIST_THREADS)
    hist_offsets(const uint32_t *keys, uint64_t n, uint32_t extracts, hist_u64 *offsets) {
    const uint32_t bin = blockIdx.x * HIST_THREADS + threadIdx.x;
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

// A thread a sample.
template <typename T>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_collect(HistArgs a, const hist_u64 *places, hist_u64 *payload) {
    const hist_u64 count = payload[a.extracts];
    hist_u64 *positions = payload + a.extracts + 1;
    T *out = reinterpret_cast<T *>(positions + count);
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * HIST_THREADS;
    const bool small = a.rows * a.samples >> 32 == 0; // 64-bit divisions take their time
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * HIST_THREADS + threadIdx.x; i < count;
         i += step) {
        const uint64_t j = places[i];
        const uint64_t y =
            small ? static_cast<uint32_t>(j) / static_cast<uint32_t>(a.samples) : j / a.samples;
        const uint64_t at = j - y * a.samples;
        const T *row = hist_row<T>(a, y);
        positions[i] = a.before + j;
        out[i] = a.measured == 1 ? hist_sample<T>(a, row, at, 0) : row[at]; // or all channels
    }
}

#endif
