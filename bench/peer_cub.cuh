// How a call of CUB becomes a runner: asked for its memory once, then run in that.
#ifndef GF_PEER_CUB_CUH
#define GF_PEER_CUB_CUH

#include "cuda_bench.cuh"

// call(temp, bytes, stream)
template <typename Call> BenchRunner bench_cub_runner(const char *name, double moved, Call call) {
    BenchRunner runner;
    runner.name = name;
    runner.bytes = moved;
    size_t bytes = 0;
    runner.failed = call(static_cast<void *>(nullptr), bytes, nullptr) != cudaSuccess;
    const BenchMemory temp = bench_memory(bytes);
    runner.failed = runner.failed || !temp;
    runner.run = [=](cudaStream_t stream) {
        size_t size = bytes;
        return call(static_cast<void *>(temp.get()), size, stream) == cudaSuccess;
    };
    return runner;
}

// The dot product that a peer must find, of all rows.
double bench_want_dot(const BenchCase *made);
// The number of samples that differ, of all rows.
double bench_want_differing(const BenchCase *made);
// The count of bin `bin` of measured channel c over all rows.
uint64_t bench_want_count(const BenchCase *made, uint32_t c, uint32_t bin);

#endif
