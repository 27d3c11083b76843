// hist on the GPU: which kernels run, on what.
#include "hist_count.cuh"
#include "hist_extract.cuh"

#include <limits.h>
#include <stdint.h>

#include <cub/version.cuh>

namespace {

// ---- mask ---------------------------------------------------------------------------------------

struct MaskArgs {
    unsigned char *out; // of the first row
    size_t out_stride;
    uint32_t out_channels;
};

// A thread a pixel. Reads and writes each pixel once.
template <typename T>
__global__ void __launch_bounds__(HIST_THREADS) draw_mask(HistArgs a, MaskArgs mask) {
    const uint64_t pixels = a.width * a.rows;
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * HIST_THREADS;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * HIST_THREADS + threadIdx.x; i < pixels;
         i += step) {
        const uint64_t y = i / a.width, x = i % a.width;
        const T *row = hist_row<T>(a, y);
        bool selected = false;
        for (uint32_t s = 0; s < a.measured && !selected; s++)
            selected = hist_rank(a, hist_bin<T>(a, hist_sample<T>(a, row, x, s))) < a.extracts;
        T *to = reinterpret_cast<T *>(mask.out + y * mask.out_stride) + x * mask.out_channels;
        for (uint32_t c = 0; c < mask.out_channels; c++) {
            T value = 0;
            if (selected && c < a.channels)
                value = row[x * a.channels + c];
            else if (selected)
                value = static_cast<T>(sizeof(T) == 1 ? 255 : 65535); // alpha that is new
            to[c] = value;
        }
    }
}

// ---- launching ----------------------------------------------------------------------------------

template <typename T, HistPlace Place>
void count_placed(const gf_hist_plan *plan, const gf_band *band, const HistArgs &a,
                  const HistCounters &counters, cudaStream_t stream) {
    const size_t shared = hist_shared_bytes(counters);
    if (plan->per_row) {
        hist_count_rows<T, Place><<<gf_grid(a.rows, 1), HIST_THREADS, shared, stream>>>(
            a, counters, band->out.data + gf_record_offset(&plan->head), band->out.stride);
        return;
    }
    const uint64_t pieces = (a.width + HIST_PIECE_PIXELS - 1) / HIST_PIECE_PIXELS * a.rows;
    hist_count<T, Place><<<gf_grid(pieces, 1), HIST_THREADS, shared, stream>>>(
        a, counters, static_cast<unsigned long long *>(band->state));
}

template <typename T>
void count(const gf_hist_plan *plan, const gf_band *band, const HistArgs &a, cudaStream_t stream) {
    const HistCounters counters = hist_counters(plan);
    if (counters.place == HIST_COPIES)
        count_placed<T, HIST_COPIES>(plan, band, a, counters, stream);
    else if (counters.place == HIST_SHARED)
        count_placed<T, HIST_SHARED>(plan, band, a, counters, stream);
    else
        count_placed<T, HIST_GLOBAL>(plan, band, a, counters, stream);
}

// ---- extraction ---------------------------------------------------------------------------------

// Scratch of n samples: for one bin the tiles' counts; for several keys and places, unsorted and
// sorted, and what the sort asks for.
struct Scratch {
    size_t keys, places, sorted_keys, sorted_places, sort, sort_bytes, bytes;
};

int key_bits(uint32_t extracts) {
    int bits = 1;
    while (extracts >> bits)
        bits++;
    return bits;
}

// How CUB counts: before CUDA 12 in 32 bits.
#if CUB_VERSION >= 200000
typedef int64_t Count;
#define MOST_SORTED INT64_MAX
#else
typedef int Count;
#define MOST_SORTED INT_MAX
#endif

cudaError_t sort(void *scratch, size_t *bytes, const uint32_t *keys, uint32_t *sorted_keys,
                 const hist_u64 *places, hist_u64 *sorted_places, uint64_t n, uint32_t extracts,
                 cudaStream_t stream) {
    return cub::DeviceRadixSort::SortPairs(scratch, *bytes, keys, sorted_keys, places,
                                           sorted_places, static_cast<Count>(n), 0,
                                           key_bits(extracts), stream);
}

size_t aligned(size_t bytes) {
    return (bytes + 255) & ~static_cast<size_t>(255);
}

Scratch layout(const gf_hist_plan *plan, uint64_t n) {
    Scratch scratch = {};
    if (plan->extracts == 1) {
        scratch.bytes = (n + HIST_TILE - 1) / HIST_TILE * sizeof(hist_u64);
    } else if (plan->extracts > 1) {
        scratch.places = aligned(n * sizeof(uint32_t));
        scratch.sorted_keys = scratch.places + aligned(n * sizeof(hist_u64));
        scratch.sorted_places = scratch.sorted_keys + aligned(n * sizeof(uint32_t));
        scratch.sort = scratch.sorted_places + aligned(n * sizeof(hist_u64));
        const cudaError_t result =
            sort(nullptr, &scratch.sort_bytes, nullptr, nullptr, nullptr, nullptr,
                 n < MOST_SORTED ? n : MOST_SORTED, plan->extracts, nullptr);
        // More than there is: the allocation then fails and says so.
        scratch.bytes = result == cudaSuccess ? scratch.sort + scratch.sort_bytes : SIZE_MAX / 2;
    }
    return scratch;
}

template <typename T>
gf_status extract(const gf_hist_plan *plan, const gf_band *band, const HistArgs &a, void *memory,
                  cudaStream_t stream, gf_error *error) {
    const uint64_t n = a.rows * a.width * a.measured;
    hist_u64 *payload = static_cast<hist_u64 *>(band->payload);
    if (plan->extracts == 1) {
        const uint64_t tiles = (n + HIST_TILE - 1) / HIST_TILE;
        hist_u64 *counts = static_cast<hist_u64 *>(memory);
        const unsigned grid = gf_grid(tiles, 1);
        hist_tile_counts<T><<<grid, HIST_THREADS, 0, stream>>>(a, n, tiles, counts);
        hist_scan_tiles<<<1, HIST_THREADS, 0, stream>>>(counts, tiles, payload);
        hist_place<T><<<grid, HIST_THREADS, 0, stream>>>(a, n, tiles, counts, payload);
        return GF_OK;
    }
    if (n > MOST_SORTED)
        return gf_fail(
            error, GF_FAILED,
            "cuda: built with a CUDA before 12, which cannot sort a band of 2^31 samples; "
            "use --backend cpu");
    unsigned char *base = static_cast<unsigned char *>(memory);
    Scratch scratch = layout(plan, n);
    uint32_t *keys = reinterpret_cast<uint32_t *>(base);
    uint32_t *sorted_keys = reinterpret_cast<uint32_t *>(base + scratch.sorted_keys);
    hist_u64 *places = reinterpret_cast<hist_u64 *>(base + scratch.places);
    hist_u64 *sorted_places = reinterpret_cast<hist_u64 *>(base + scratch.sorted_places);
    hist_keys<T><<<gf_grid(n, HIST_TILE), HIST_THREADS, 0, stream>>>(a, n, keys, places);
    gf_status status =
        gf_cuda_check(sort(base + scratch.sort, &scratch.sort_bytes, keys, sorted_keys, places,
                           sorted_places, n, plan->extracts, stream),
                      "sorting", error);
    if (status)
        return status;
    hist_offsets<<<gf_grid(n + 1, HIST_THREADS), HIST_THREADS, 0, stream>>>(
        sorted_keys, n, plan->extracts, payload);
    hist_gather<T>
        <<<gf_grid(n, HIST_THREADS), HIST_THREADS, 0, stream>>>(a, sorted_places, payload);
    return GF_OK;
}

template <typename T>
gf_status run(const gf_hist_plan *plan, const gf_band *band, const HistArgs &a, void *scratch,
              cudaStream_t stream, gf_error *error) {
    count<T>(plan, band, a, stream);
    if (plan->mask) {
        const MaskArgs mask = {band->out.data, band->out.stride, plan->head.out.channels};
        draw_mask<T><<<gf_grid(a.rows * a.width, HIST_THREADS), HIST_THREADS, 0, stream>>>(a, mask);
    }
    return plan->extracts ? extract<T>(plan, band, a, scratch, stream, error) : GF_OK;
}

size_t scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_hist_plan *plan = reinterpret_cast<const gf_hist_plan *>(head);
    return layout(plan, in_rows * head->in.width * plan->measured).bytes;
}

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    const gf_hist_plan *plan = reinterpret_cast<const gf_hist_plan *>(head);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    HistArgs a = {};
    a.in = gf_row(&band->in, band->out.y0);
    a.in_stride = band->in.stride;
    a.width = head->in.width;
    a.rows = band->out.rows;
    a.y0 = band->out.y0;
    a.channels = head->in.channels;
    a.first = plan->first;
    a.measured = plan->measured;
    a.bins = plan->bins;
    a.luma = plan->luma;
    a.ranged = plan->ranged;
    a.extract_all = plan->extract_all;
    a.lo = plan->lo;
    a.span = plan->hi - plan->lo;
    a.extracts = plan->extracts;
    for (int i = 0; i < GF_HIST_MAX_LISTED; i++)
        a.listed[i] = plan->listed[i];
    gf_status status = GF_OK;
    gf_for_type(head->in.type, [&](auto sample) {
        status = run<decltype(sample)>(plan, band, a, scratch, stream, error);
    });
    return status ? status : gf_cuda_check(cudaGetLastError(), "hist", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_hist_cuda = {scratch_bytes, launch};
