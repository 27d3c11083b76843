// CUB beside axis-sum, dot and compare. Each call as its documentation suggests it for the job.
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

// Where a row begins or ends. 32 bits suit CUB best, and are enough for the sizes timed here.
struct Begin {
    uint32_t stride, width;
    __host__ __device__ uint32_t operator()(uint32_t y) const {
        return y * stride + width;
    }
};

template <typename T, typename Sum>
void row_sums(const BenchCase *made, std::vector<BenchRunner> &peers) {
    const uint64_t rows = made->rows, stride = made->in_stride / sizeof(T);
    const BenchMemory out = bench_memory(rows * sizeof(Sum));
    if (!out || rows * stride > UINT32_MAX)
        return;
    const T *in = reinterpret_cast<const T *>(made->in);
    Sum *sums = reinterpret_cast<Sum *>(out.get());
    const thrust::counting_iterator<uint32_t> row(0);
    const auto begin =
        thrust::make_transform_iterator(row, Begin{static_cast<uint32_t>(stride), 0});
    const auto end = thrust::make_transform_iterator(
        row, Begin{static_cast<uint32_t>(stride), static_cast<uint32_t>(made->row->width)});
    peers.push_back(bench_cub_runner(
        "CUB SegmentedReduce", made->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            return cub::DeviceSegmentedReduce::Sum(temp, bytes, in, sums,
                                                   static_cast<int64_t>(rows), begin, end, stream);
        }));
    peers.back().right = [=] {
        const std::vector<Sum> got = bench_download<Sum>(out.get(), rows);
        for (uint64_t y = 0; y < rows; y++) {
            const Sum want =
                *reinterpret_cast<const Sum *>(&made->want[y % BENCH_PERIOD * made->out_stride]);
            // It sums in an order of its own: floating-point sums differ in the last digits.
            if (std::fabs(static_cast<double>(got[y]) - static_cast<double>(want)) >
                (sizeof(T) == 4 ? 1e-6 * static_cast<double>(want) : 0))
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

// Op of all samples of two images without padding, summed. want: what comes out.
template <typename T, typename Sum, template <typename, typename> class Op>
void reduce_pair(const BenchCase *made, double want, std::vector<BenchRunner> &peers) {
    const BenchMemory a = bench_packed(made, 0), b = bench_packed(made, 1);
    const BenchMemory out = bench_memory(sizeof(Sum));
    if (!a || !b || !out)
        return;
    const int64_t n = static_cast<int64_t>(gf_row_samples(&made->format()) * made->rows);
    const Op<T, Sum> op = {reinterpret_cast<const T *>(a.get()),
                           reinterpret_cast<const T *>(b.get())};
    const auto in = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), op);
    Sum *sum = reinterpret_cast<Sum *>(out.get());
    peers.push_back(bench_cub_runner(
        "CUB Reduce", made->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            (void)a, (void)b, (void)out;
            return cub::DeviceReduce::Sum(temp, bytes, in, sum, n, stream);
        }));
    peers.back().right = [=] {
        const double got = static_cast<double>(bench_download<Sum>(out.get(), 1)[0]);
        return std::fabs(got - want) <= (std::is_same<Sum, float>::value ? 1e-3 * want : 0);
    };
}

} // namespace

double bench_want_dot(const BenchCase *made) {
    double want = 0;
    for (size_t y = 0; y < BENCH_PERIOD; y++) {
        const unsigned char *record = &made->want[y * made->out_stride];
        want += made->row->type == GF_F32
                    ? *reinterpret_cast<const double *>(record)
                    : static_cast<double>(*reinterpret_cast<const uint64_t *>(record));
    }
    return want * static_cast<double>(made->repeats());
}

double bench_want_differing(const BenchCase *made) {
    uint64_t want = 0;
    for (size_t y = 0; y < BENCH_PERIOD; y++)
        want += reinterpret_cast<const gf_compare_record *>(&made->want[y * made->out_stride])
                    ->differing;
    return static_cast<double>(want * made->repeats());
}

void bench_cub_sums(const BenchCase *made, std::vector<BenchRunner> &peers) {
    const std::string group = made->row->group;
    const gf_type type = made->row->type;
    if (group == "axis-sum" && made->row->channels == 1 && !made->plan->state_bytes) {
        if (type == GF_U8)
            row_sums<uint8_t, uint64_t>(made, peers);
        else if (type == GF_U16)
            row_sums<uint16_t, uint64_t>(made, peers);
        else
            row_sums<float, double>(made, peers);
    }
    if (group == "dot" && made->row->channels == 1) {
        if (type == GF_U8)
            reduce_pair<uint8_t, uint64_t, Product>(made, bench_want_dot(made), peers);
        else if (type == GF_U16)
            reduce_pair<uint16_t, uint64_t, Product>(made, bench_want_dot(made), peers);
        else
            reduce_pair<float, float, Product>(made, bench_want_dot(made), peers);
    }
    if (group == "compare") {
        if (type == GF_U8)
            reduce_pair<uint8_t, uint64_t, Difference>(made, bench_want_differing(made), peers);
        else if (type == GF_F32)
            reduce_pair<float, uint64_t, Difference>(made, bench_want_differing(made), peers);
    }
}
