// Timing on a device: a filter on an image in its memory, and copies.
#ifndef GF_SPEED_CUH
#define GF_SPEED_CUH

#include "device.cuh"

extern "C" {
#include "engine/trial.h"
}

// Pieces of memory that what is timed takes turns on: so many sizes of the cache together, as far
// as they go.
#define GF_SPEED_COPIES 64
#define GF_SPEED_CACHES UINT64_C(4)

static inline gf_status gf_speed_alloc(void **memory, size_t bytes, gf_error *error) {
    return gf_cuda_check(cudaMalloc(memory, bytes ? bytes : 1), "device memory", error);
}

// How many copies are enough, and not too much for the memory there is.
static inline int gf_speed_copies(uint64_t bytes) {
    int device = 0, cache = 0;
    size_t free_bytes = 0, total = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device);
    cudaMemGetInfo(&free_bytes, &total);
    const uint64_t wanted = GF_SPEED_CACHES * static_cast<uint64_t>(cache) / bytes + 1;
    const uint64_t room = free_bytes / 2 / bytes;
    const uint64_t most = wanted < room ? wanted : room;
    return most < 1 ? 1 : most > GF_SPEED_COPIES ? GF_SPEED_COPIES : static_cast<int>(most);
}

// What gf_backend.time and gf_backend.copy say, on one started device.
gf_status gf_cuda_time(int device, gf_trial *trial, gf_error *error);
gf_status gf_cuda_copy(int device, uint64_t bytes, double budget, gf_memory_speed *speed,
                       gf_error *error);

#endif
