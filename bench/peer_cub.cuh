// Runner for a CUB call: queries the temporary storage once, allocates it, and then runs the call
// in it.
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

// Return the dot product of all rows that a peer must compute.
double bench_expected_dot(const BenchCase *bench);
// Return the number of differing samples of all rows.
double bench_expected_differing(const BenchCase *bench);
// Return the count of bin `bin` of measured channel c over all rows.
uint64_t bench_expected_count(const BenchCase *bench, uint32_t c, uint32_t bin);

#endif
