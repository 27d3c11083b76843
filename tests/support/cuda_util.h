/* Memory and streams of a CUDA device, for tests that are built with CUDA. */
#ifndef CUDA_UTIL_H
#define CUDA_UTIL_H

#include <cuda_runtime_api.h>

#include "testing.h"

static inline void must(cudaError_t result) {
    if (result != cudaSuccess)
        fail_msg("%s", cudaGetErrorString(result));
}

/* Allocate cleared memory, for any stream. */
static inline void *device_alloc(size_t size) {
    void *memory = NULL;
    must(cudaMalloc(&memory, size));
    must(cudaMemset(memory, 0, size));
    must(cudaDeviceSynchronize());
    return memory;
}

static inline void test_auto_device(void *variable) {
    void *memory;
    memcpy(&memory, variable, sizeof memory);
    must(cudaFree(memory));
}

static inline cudaStream_t new_stream(void) {
    cudaStream_t stream;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static inline void test_auto_stream(cudaStream_t *stream) {
    must(cudaStreamDestroy(*stream));
}

static inline gf_engine *cuda_engine(void) {
    return test_engine(&(gf_engine_options){.backend = "cuda"});
}

#endif
