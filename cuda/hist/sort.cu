// Radix sort for the extraction of many bins, by CUB.
#include "cuda/hist/device.cuh"

#include <limits.h>

// Without these, CUB defines functions of the NVTX profiling interface.
#define CCCL_DISABLE_NVTX
#define NVTX_DISABLE
#include <cub/device/device_radix_sort.cuh>
#include <cub/version.cuh>

// CUB's type of counts: 32 bits before CUDA 12.
#if CUB_VERSION >= 200000
typedef int64_t Count;
#define MAX_SORTED INT64_MAX
#else
typedef int Count;
#define MAX_SORTED INT_MAX
#endif

// Sort, or if base is NULL, set scratch->sort_bytes.
static cudaError_t hist_sort_pairs(unsigned char *base, gf_hist_sort_layout *scratch, uint64_t n,
                                   uint32_t extracts, cudaStream_t stream) {
    const auto at = [&](size_t offset) -> void * { return base ? base + offset : nullptr; };
    int bits = 1;
    while (extracts >> bits)
        bits++;
    return cub::DeviceRadixSort::SortPairs(
        at(scratch->sort), scratch->sort_bytes, static_cast<const uint32_t *>(at(0)),
        static_cast<uint32_t *>(at(scratch->sorted_keys)),
        static_cast<const gf_u64 *>(at(scratch->indices)),
        static_cast<gf_u64 *>(at(scratch->sorted_indices)), static_cast<Count>(n), 0, bits, stream);
}

static size_t hist_sort_aligned(size_t bytes) {
    return (bytes + 255) & ~static_cast<size_t>(255);
}

gf_hist_sort_layout gf_hist_sort_layout_of(uint64_t n, uint32_t extracts) {
    gf_hist_sort_layout scratch = {};
    scratch.indices = hist_sort_aligned(n * sizeof(uint32_t));
    scratch.sorted_keys = scratch.indices + hist_sort_aligned(n * sizeof(gf_u64));
    scratch.sorted_indices = scratch.sorted_keys + hist_sort_aligned(n * sizeof(uint32_t));
    scratch.sort = scratch.sorted_indices + hist_sort_aligned(n * sizeof(gf_u64));
    const cudaError_t result =
        hist_sort_pairs(nullptr, &scratch, n < MAX_SORTED ? n : MAX_SORTED, extracts, nullptr);
    // On failure, return a size that cannot be allocated; the allocation then reports the error.
    scratch.bytes = result == cudaSuccess ? scratch.sort + scratch.sort_bytes : SIZE_MAX / 2;
    return scratch;
}

void gf_hist_sort(void *memory, uint64_t n, uint32_t extracts, gf_queue *queue) {
    if (!queue->status && n > MAX_SORTED)
        gf_queue_fail(queue, GF_FAILED,
                      "cuda: sorting 2^31 or more samples of a strip requires CUDA 12 or later; "
                      "use --backend cpu");
    if (queue->status || gf_sequence_refuse(queue))
        return;
    gf_hist_sort_layout scratch = gf_hist_sort_layout_of(n, extracts);
    const cudaError_t result =
        hist_sort_pairs(static_cast<unsigned char *>(memory), &scratch, n, extracts, queue->stream);
    gf_queue_check(queue, result, "radix sort");
}
