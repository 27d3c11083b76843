// Timing by CUDA events, all runners in each round; copy and read as references.
#include "cuda_bench.cuh"
#include "read.h"

#include <algorithm>

// Keep the device busy until the timed work is queued completely. Otherwise launch overhead is
// measured.
static __global__ void spin(unsigned nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

void bench_time(std::vector<BenchRunner> &runners, int warm_ups, int rounds, unsigned spin_ns) {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaDeviceSynchronize(); // wait for the preparation on the default stream
    for (int round = -warm_ups; round < rounds; round++)
        for (BenchRunner &runner : runners) {
            if (runner.failed)
                continue;
            spin<<<1, 1, 0, stream>>>(spin_ns);
            cudaEventRecord(begin, stream);
            const bool queued = runner.run(stream);
            cudaEventRecord(end, stream);
            float ms = 0;
            if (!queued || cudaStreamSynchronize(stream) != cudaSuccess ||
                cudaEventElapsedTime(&ms, begin, end) != cudaSuccess) {
                runner.failed = true;
                cudaGetLastError();
            }
            if (round < 0 && !runner.failed && round == -warm_ups && runner.validate) {
                runner.mismatch = !runner.validate();
                runner.checked = true;
            }
            if (round >= 0)
                runner.ms.push_back(ms);
        }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
}

double bench_median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double bench_rate(const BenchRunner &runner) {
    const double ms = bench_median(runner.ms);
    return ms > 0 ? runner.bytes / ms * 1e-6 : 0;
}

double bench_ratio(const BenchRunner &a, const BenchRunner &b) {
    std::vector<double> ratios;
    for (size_t i = 0; i < a.ms.size() && i < b.ms.size(); i++)
        ratios.push_back(a.bytes / a.ms[i] / (b.bytes / b.ms[i]));
    return bench_median(ratios);
}

// ---- references: copy and read -----------------------------------------------------------------

BenchRunner bench_copy(const BenchCase *bench) {
    const size_t bytes = bench->in_bytes();
    BenchMemory to = bench_memory(bytes);
    const unsigned char *in = bench->in;
    BenchRunner runner;
    runner.name = "copy";
    runner.bytes = 2.0 * static_cast<double>(bytes);
    runner.failed = !to;
    runner.run = [=](cudaStream_t stream) {
        return cudaMemcpyAsync(to.get(), in, bytes, cudaMemcpyDeviceToDevice, stream) ==
               cudaSuccess;
    };
    return runner;
}

BenchRunner bench_read(const BenchCase *bench) {
    const size_t bytes = bench->in_bytes();
    BenchMemory out = bench_memory(sizeof(uint32_t));
    const unsigned char *in = bench->in;
    BenchRunner runner;
    runner.name = "read";
    runner.bytes = static_cast<double>(bytes);
    runner.run = [=](cudaStream_t stream) {
        return bench_queue_read(in, bytes, reinterpret_cast<uint32_t *>(out.get()), stream) ==
               cudaSuccess;
    };
    return runner;
}
