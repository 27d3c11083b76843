// Extraction: the samples of some bins, in image order.
//
// One bin: tiles of samples are counted, the counts scanned, and each tile's samples written from
// where the tiles before it end; within a tile an exclusive block prefix sum gives every sample its
// place. Several bins: a stable radix sort by bin (CUB's) of the samples' places in the band.
#ifndef GF_HIST_EXTRACT_CUH
#define GF_HIST_EXTRACT_CUH

#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "hist_device.cuh"

#define HIST_ITEMS 8 // consecutive samples of a thread
#define HIST_TILE (HIST_THREADS * HIST_ITEMS)

typedef unsigned long long hist_u64;
typedef cub::BlockScan<hist_u64, HIST_THREADS> HistScan;

// Sample j of the band in image order: measured samples of a pixel lie side by side.
struct HistAt {
    uint64_t y, x;
    uint32_t s;
};

static __device__ __forceinline__ HistAt hist_at(const HistArgs &a, uint64_t j) {
    const uint64_t pixel = j / a.measured;
    return {pixel / a.width, pixel % a.width, static_cast<uint32_t>(j % a.measured)};
}

static __device__ __forceinline__ void hist_next(const HistArgs &a, HistAt *at) {
    if (++at->s < a.measured)
        return;
    at->s = 0;
    if (++at->x < a.width)
        return;
    at->x = 0;
    at->y++;
}

template <typename T>
static __device__ __forceinline__ T hist_value(const HistArgs &a, const HistAt &at) {
    return hist_sample<T>(a, hist_row<T>(a, at.y), at.x, at.s);
}

static __device__ __forceinline__ uint64_t hist_position(const HistArgs &a, uint64_t j) {
    return a.y0 * a.width * a.measured + j;
}

// Which of a thread's samples, from j on, are in the one extracted bin: a bit each. Their values.
template <typename T>
static __device__ __forceinline__ unsigned hist_pick(const HistArgs &a, uint64_t j, uint64_t n,
                                                     T *values) {
    unsigned picked = 0;
    if (j >= n)
        return 0;
    HistAt at = hist_at(a, j);
#pragma unroll
    for (int k = 0; k < HIST_ITEMS; k++) {
        if (j + k < n) {
            values[k] = hist_value<T>(a, at);
            if (hist_rank(a, hist_bin<T>(a, values[k])) == 0)
                picked |= 1u << k;
            hist_next(a, &at);
        }
    }
    return picked;
}

// How many samples of each tile are in the bin.
template <typename T>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_tile_counts(HistArgs a, uint64_t n, uint64_t tiles, hist_u64 *counts) {
    __shared__ typename HistScan::TempStorage scan;
    for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        T values[HIST_ITEMS];
        const unsigned picked =
            hist_pick<T>(a, tile * HIST_TILE + threadIdx.x * HIST_ITEMS, n, values);
        hist_u64 before, all;
        HistScan(scan).ExclusiveSum(static_cast<hist_u64>(__popc(picked)), before, all);
        if (threadIdx.x == 0)
            counts[tile] = all;
        __syncthreads();
    }
}

// Counts become where each tile begins; offsets[0] = 0 and offsets[1] = all. One block, in turns.
static __global__ void __launch_bounds__(HIST_THREADS)
    hist_scan_tiles(hist_u64 *counts, uint64_t tiles, hist_u64 *offsets) {
    __shared__ typename HistScan::TempStorage scan;
    hist_u64 carried = 0;
    for (uint64_t first = 0; first < tiles; first += HIST_THREADS) {
        const uint64_t tile = first + threadIdx.x;
        const hist_u64 count = tile < tiles ? counts[tile] : 0;
        hist_u64 before, all;
        HistScan(scan).ExclusiveSum(count, before, all);
        if (tile < tiles)
            counts[tile] = carried + before;
        carried += all;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        offsets[0] = 0;
        offsets[1] = carried;
    }
}

// Every sample of the bin to its place.
template <typename T>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_place(HistArgs a, uint64_t n, uint64_t tiles, const hist_u64 *begins, hist_u64 *payload) {
    __shared__ typename HistScan::TempStorage scan;
    hist_u64 *positions = payload + 2;
    T *out = reinterpret_cast<T *>(positions + payload[1]);
    for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        T values[HIST_ITEMS];
        const uint64_t j = tile * HIST_TILE + threadIdx.x * HIST_ITEMS;
        const unsigned picked = hist_pick<T>(a, j, n, values);
        hist_u64 place;
        HistScan(scan).ExclusiveSum(static_cast<hist_u64>(__popc(picked)), place);
        place += begins[tile];
#pragma unroll
        for (int k = 0; k < HIST_ITEMS; k++)
            if (picked >> k & 1) {
                positions[place] = hist_position(a, j + k);
                out[place] = values[k];
                place++;
            }
        __syncthreads();
    }
}

// ---- several bins -------------------------------------------------------------------------------

// The key of every sample: which extracted bin it is in. Keys of all others come last.
template <typename T>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_keys(HistArgs a, uint64_t n, uint32_t *keys, hist_u64 *places) {
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * HIST_TILE; first < n;
         first += static_cast<uint64_t>(gridDim.x) * HIST_TILE) {
        for (uint64_t j = first + threadIdx.x; j < n && j < first + HIST_TILE; j += HIST_THREADS) {
            keys[j] = hist_rank(a, hist_bin<T>(a, hist_value<T>(a, hist_at(a, j))));
            places[j] = j;
        }
    }
}

// Where each bin begins among the sorted keys: thread j fills in those that begin at j.
static __global__ void __launch_bounds__(HIST_THREADS)
    hist_offsets(const uint32_t *keys, uint64_t n, uint32_t extracts, hist_u64 *offsets) {
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * HIST_THREADS;
    for (uint64_t j = static_cast<uint64_t>(blockIdx.x) * HIST_THREADS + threadIdx.x; j <= n;
         j += step) {
        const uint32_t from = j == 0 ? 0 : keys[j - 1] + 1;
        const uint32_t to = j == n ? extracts : keys[j];
        for (uint32_t bin = from; bin <= to; bin++)
            offsets[bin] = j;
    }
}

template <typename T>
__global__ void __launch_bounds__(HIST_THREADS)
    hist_gather(HistArgs a, const hist_u64 *places, hist_u64 *payload) {
    const hist_u64 count = payload[a.extracts];
    hist_u64 *positions = payload + a.extracts + 1;
    T *out = reinterpret_cast<T *>(positions + count);
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * HIST_THREADS;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * HIST_THREADS + threadIdx.x; i < count;
         i += step) {
        const uint64_t j = places[i];
        positions[i] = hist_position(a, j);
        out[i] = hist_value<T>(a, hist_at(a, j));
    }
}

#endif
