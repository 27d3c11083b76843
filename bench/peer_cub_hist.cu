// CUB beside hist: counting, and selecting the samples of a bin with their positions.
#include "cuda_bench.cuh"
#include "peer_cub.cuh"

#include "hist/hist.h"

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

// MultiHistogramEven with plain arrays is all that older CUBs have; newer ones want their own.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

uint64_t bench_want_count(const BenchCase *made, uint32_t c, uint32_t bin) {
    const uint32_t bins = reinterpret_cast<const gf_hist_plan *>(made->plan)->bins;
    return reinterpret_cast<const uint64_t *>(
               made->want_state.data())[static_cast<size_t>(c) * (bins + 1) + bin] *
           made->repeats();
}

namespace {

// Where the bins of integers are those of the contract: 8 and 256, and 65536 of u16.
template <typename T, typename Level>
void even(const BenchCase *made, std::vector<BenchRunner> &peers) {
    const uint32_t bins = reinterpret_cast<const gf_hist_plan *>(made->plan)->bins;
    const BenchMemory counts = bench_memory(bins * sizeof(unsigned));
    const T *in = reinterpret_cast<const T *>(made->in);
    const Level top = static_cast<Level>(sizeof(T) == 4 ? 1 : 1 << 8 * sizeof(T));
    const int64_t width = static_cast<int64_t>(made->row->width);
    const int64_t rows = static_cast<int64_t>(made->rows);
    const size_t stride = made->in_stride;
    peers.push_back(bench_cub_runner(
        "CUB HistogramEven", made->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            return cub::DeviceHistogram::HistogramEven(
                temp, bytes, in, reinterpret_cast<unsigned *>(counts.get()),
                static_cast<int>(bins) + 1, static_cast<Level>(0), top, width, rows, stride,
                stream);
        }));
    if (sizeof(T) == 4)
        return; // bins of floats are cut by another formula
    peers.back().right = [=] {
        const std::vector<unsigned> got = bench_download<unsigned>(counts.get(), bins);
        for (uint32_t i = 0; i < bins; i++)
            if (got[i] != bench_want_count(made, 0, i))
                return false;
        return true;
    };
}

void even_rgb(const BenchCase *made, std::vector<BenchRunner> &peers) {
    const int bins = static_cast<int>(reinterpret_cast<const gf_hist_plan *>(made->plan)->bins);
    const BenchMemory counts = bench_memory(3 * static_cast<size_t>(bins) * sizeof(unsigned));
    unsigned *to = reinterpret_cast<unsigned *>(counts.get());
    const uint8_t *in = made->in;
    const int64_t width = static_cast<int64_t>(made->row->width);
    const int64_t rows = static_cast<int64_t>(made->rows);
    const size_t stride = made->in_stride;
    peers.push_back(bench_cub_runner(
        "CUB MultiHistogram", made->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            unsigned *each[3] = {to, to + bins, to + 2 * bins};
            const int levels[3] = {bins + 1, bins + 1, bins + 1};
            const int lower[3] = {0, 0, 0}, upper[3] = {256, 256, 256};
            (void)counts;
            return cub::DeviceHistogram::MultiHistogramEven<3, 3>(
                temp, bytes, in, each, levels, lower, upper, width, rows, stride, stream);
        }));
    peers.back().right = [=] {
        const std::vector<unsigned> got =
            bench_download<unsigned>(counts.get(), 3 * static_cast<size_t>(bins));
        for (int i = 0; i < 3 * bins; i++)
            if (got[static_cast<size_t>(i)] != bench_want_count(made,
                                                                static_cast<uint32_t>(i / bins),
                                                                static_cast<uint32_t>(i % bins)))
                return false;
        return true;
    };
}

template <typename T> struct Inside {
    T low, high;
    __host__ __device__ bool operator()(const thrust::tuple<uint64_t, T> &sample) const {
        return thrust::get<1>(sample) >= low && thrust::get<1>(sample) <= high;
    }
};

// Values and positions at once; the samples lie without padding, so that a position is a count.
template <typename T> void select(const BenchCase *made, std::vector<BenchRunner> &peers) {
    const uint64_t n = gf_row_samples(&made->format()) * made->rows;
    const BenchMemory packed = bench_packed(made, 0);
    const uint64_t count = reinterpret_cast<const uint64_t *>(made->want_payload.data())[1];
    const uint64_t total = count * made->repeats();
    const BenchMemory positions = bench_memory((total + 1) * sizeof(uint64_t));
    const BenchMemory values = bench_memory((total + 1) * sizeof(T));
    const BenchMemory found = bench_memory(sizeof(uint64_t));
    if (!packed || !positions || !values || !found)
        return;
    const auto in = thrust::make_zip_iterator(thrust::make_tuple(
        thrust::counting_iterator<uint64_t>(0), reinterpret_cast<const T *>(packed.get())));
    const auto out = thrust::make_zip_iterator(thrust::make_tuple(
        reinterpret_cast<uint64_t *>(positions.get()), reinterpret_cast<T *>(values.get())));
    const unsigned scale = sizeof(T) == 1 ? 1 : 256;
    const Inside<T> inside = {static_cast<T>(96 * scale), static_cast<T>(128 * scale - 1)};
    peers.push_back(bench_cub_runner(
        "CUB Select::If", made->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            (void)packed, (void)values, (void)positions;
            return cub::DeviceSelect::If(temp, bytes, in, out,
                                         reinterpret_cast<uint64_t *>(found.get()),
                                         static_cast<int64_t>(n), inside, stream);
        }));
    peers.back().right = [=] {
        const uint64_t *want = reinterpret_cast<const uint64_t *>(made->want_payload.data()) + 2;
        if (bench_download<uint64_t>(found.get(), 1)[0] != total)
            return false;
        // The first and the last few: there may be billions.
        const uint64_t some = total < 1 << 20 ? total : 1 << 20;
        for (const uint64_t first : {UINT64_C(0), total - some}) {
            const uint64_t *from = reinterpret_cast<const uint64_t *>(positions.get()) + first;
            const std::vector<uint64_t> got = bench_download<uint64_t>(from, some);
            for (uint64_t i = first; i < first + some; i++)
                if (got[i - first] != want[i % count] + i / count * BENCH_PERIOD * made->row->width)
                    return false;
        }
        return true;
    };
}

} // namespace

void bench_cub_hist(const BenchCase *made, std::vector<BenchRunner> &peers) {
    const std::string group = made->row->group, text = made->row->text;
    const gf_type type = made->row->type;
    if (group == "hist" && made->row->channels == 1) {
        if (type == GF_U8)
            even<uint8_t, int>(made, peers);
        else if (type == GF_U16)
            even<uint16_t, int>(made, peers);
        else
            even<float, float>(made, peers);
    }
    if (group == "hist" && made->row->channels == 3 && text.find("all") != std::string::npos)
        even_rgb(made, peers);
    if (group == "extract" && text == "bins=8 extract=3" && type == GF_U8)
        select<uint8_t>(made, peers);
    if (group == "extract" && text == "bins=8 extract=3" && type == GF_U16)
        select<uint16_t>(made, peers);
}
