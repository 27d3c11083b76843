// Timing by CUDA events, all runners in each round; copy and read as references.
#include "cuda_bench.cuh"

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

#define READ_THREADS 512
#define READ_LOADS 8

// Read the input with eight 16-byte loads in flight per thread. One wave of blocks, grid-stride
// loop.
static __global__ void __launch_bounds__(READ_THREADS)
    read_all(const uint4 *in, uint64_t n, uint32_t *out) {
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * READ_THREADS * READ_LOADS;
    uint32_t x = 0;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * READ_THREADS * READ_LOADS + threadIdx.x;
         i < n; i += step)
#pragma unroll
        for (int k = 0; k < READ_LOADS; k++)
            if (i + k * READ_THREADS < n) {
                const uint4 v = in[i + k * READ_THREADS];
                x ^= v.x ^ v.y ^ v.z ^ v.w;
            }
    // Almost never true, but the compiler cannot remove the loads.
    if (x == 0x12345678u)
        *out = x;
}

BenchRunner bench_read(const BenchCase *bench) {
    const size_t bytes = bench->in_bytes();
    BenchMemory out = bench_memory(sizeof(uint32_t));
    const uint4 *in = reinterpret_cast<const uint4 *>(bench->in);
    int device = 0, sms = 1, blocks = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, read_all, READ_THREADS, 0);
    const unsigned grid = static_cast<unsigned>(sms * blocks);
    BenchRunner runner;
    runner.name = "read";
    runner.bytes = static_cast<double>(bytes);
    runner.run = [=](cudaStream_t stream) {
        read_all<<<grid, READ_THREADS, 0, stream>>>(in, bytes / sizeof(uint4),
                                                    reinterpret_cast<uint32_t *>(out.get()));
        return cudaGetLastError() == cudaSuccess;
    };
    return runner;
}
