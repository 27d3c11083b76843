// CUB peers of axis-sum, dot and compare. Each call follows CUB's documentation.
#include "cuda_bench.cuh"
#include "peer_cub.cuh"

#include "compare/compare.h"

#include <cmath>
#include <type_traits>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace {

// Offset of the begin or end of row y. 32 bits are fastest for CUB and suffice for the timed sizes.
struct Begin {
    uint32_t stride, width;
    __host__ __device__ uint32_t operator()(uint32_t y) const {
        return y * stride + width;
    }
};

template <typename T, typename Sum>
void row_sums(const BenchCase *bench, std::vector<BenchRunner> &peers) {
    const uint64_t rows = bench->rows, stride = bench->in_stride / sizeof(T);
    const BenchMemory out = bench_memory(rows * sizeof(Sum));
    if (!out || rows * stride > UINT32_MAX)
        return;
    const T *in = reinterpret_cast<const T *>(bench->in);
    Sum *sums = reinterpret_cast<Sum *>(out.get());
    const thrust::counting_iterator<uint32_t> row(0);
    const auto begin =
        thrust::make_transform_iterator(row, Begin{static_cast<uint32_t>(stride), 0});
    const auto end = thrust::make_transform_iterator(
        row, Begin{static_cast<uint32_t>(stride), static_cast<uint32_t>(bench->row->width)});
    peers.push_back(bench_cub_runner(
        "CUB SegmentedReduce", bench->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            return cub::DeviceSegmentedReduce::Sum(temp, bytes, in, sums,
                                                   static_cast<int64_t>(rows), begin, end, stream);
        }));
    peers.back().validate = [=] {
        const std::vector<Sum> got = bench_download<Sum>(out.get(), rows);
        for (uint64_t y = 0; y < rows; y++) {
            const Sum expected = *reinterpret_cast<const Sum *>(bench->record(y % BENCH_PERIOD));
            // CUB's order of summation differs: floating-point sums differ in the last digits.
            if (std::fabs(static_cast<double>(got[y]) - static_cast<double>(expected)) >
                (sizeof(T) == 4 ? 1e-6 * static_cast<double>(expected) : 0))
                return false;
        }
        return true;
    };
}

template <typename T, typename Sum> struct Product {
    const T *a, *b;
    __host__ __device__ Sum operator()(int64_t i) const {
        return static_cast<Sum>(a[i]) * static_cast<Sum>(b[i]);
    }
};

template <typename T, typename Sum> struct Difference {
    const T *a, *b;
    __host__ __device__ Sum operator()(int64_t i) const {
        return a[i] != b[i];
    }
};

// Reduce Op over all samples of two images without padding. expected: the result.
template <typename T, typename Sum, template <typename, typename> class Op>
void reduce_pair(const BenchCase *bench, double expected, std::vector<BenchRunner> &peers) {
    const BenchMemory a = bench_packed(bench, 0), b = bench_packed(bench, 1);
    const BenchMemory out = bench_memory(sizeof(Sum));
    if (!a || !b || !out)
        return;
    const int64_t n = static_cast<int64_t>(gf_row_samples(&bench->format()) * bench->rows);
    const Op<T, Sum> op = {reinterpret_cast<const T *>(a.get()),
                           reinterpret_cast<const T *>(b.get())};
    const auto in = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), op);
    Sum *sum = reinterpret_cast<Sum *>(out.get());
    peers.push_back(bench_cub_runner(
        "CUB Reduce", bench->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            (void)a, (void)b, (void)out;
            return cub::DeviceReduce::Sum(temp, bytes, in, sum, n, stream);
        }));
    peers.back().validate = [=] {
        const double got = static_cast<double>(bench_download<Sum>(out.get(), 1)[0]);
        return std::fabs(got - expected) <= (std::is_same<Sum, float>::value ? 1e-3 * expected : 0);
    };
}

} // namespace

double bench_expected_dot(const BenchCase *bench) {
    double expected = 0;
    for (size_t y = 0; y < BENCH_PERIOD; y++) {
        const unsigned char *record = bench->record(y);
        expected += bench->row->type == GF_F32
                        ? *reinterpret_cast<const double *>(record)
                        : static_cast<double>(*reinterpret_cast<const uint64_t *>(record));
    }
    return expected * static_cast<double>(bench->repeats());
}

double bench_expected_differing(const BenchCase *bench) {
    uint64_t expected = 0;
    for (size_t y = 0; y < BENCH_PERIOD; y++)
        expected += reinterpret_cast<const gf_compare_record *>(bench->record(y))->differing;
    return static_cast<double>(expected * bench->repeats());
}

void bench_cub_sums(const BenchCase *bench, std::vector<BenchRunner> &peers) {
    const std::string group = bench->row->group;
    const gf_type type = bench->row->type;
    if (group == "axis-sum" && bench->row->channels == 1 && !bench->plan->state_bytes) {
        if (type == GF_U8)
            row_sums<uint8_t, uint64_t>(bench, peers);
        else if (type == GF_U16)
            row_sums<uint16_t, uint64_t>(bench, peers);
        else
            row_sums<float, double>(bench, peers);
    }
    if (group == "dot" && bench->row->channels == 1) {
        if (type == GF_U8)
            reduce_pair<uint8_t, uint64_t, Product>(bench, bench_expected_dot(bench), peers);
        else if (type == GF_U16)
            reduce_pair<uint16_t, uint64_t, Product>(bench, bench_expected_dot(bench), peers);
        else
            reduce_pair<float, float, Product>(bench, bench_expected_dot(bench), peers);
    }
    if (group == "compare") {
        if (type == GF_U8)
            reduce_pair<uint8_t, uint64_t, Difference>(bench, bench_expected_differing(bench),
                                                       peers);
        else if (type == GF_F32)
            reduce_pair<float, uint64_t, Difference>(bench, bench_expected_differing(bench), peers);
    }
}
