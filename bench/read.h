/* Reference of benchmarks: a pass that only reads device memory. */
#ifndef BENCH_READ_H
#define BENCH_READ_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Queue a kernel that reads all bytes, a multiple of 16. out: 4 bytes of device memory. */
cudaError_t bench_queue_read(const void *in, size_t bytes, uint32_t *out, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
