// CUB peers of hist: counting, and selecting the samples of a bin with their positions.
#include "cuda_bench.cuh"
#include "peer_cub.cuh"

#include "hist/hist.h"

#include <algorithm>

#include <limits.h>

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

// Older CUB versions support only plain arrays in MultiHistogramEven; newer ones deprecate them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

uint64_t bench_expected_count(const BenchCase *bench, uint32_t c, uint32_t bin) {
    const uint32_t bins = reinterpret_cast<const gf_hist_plan *>(bench->plan)->bins;
    return reinterpret_cast<const uint64_t *>(
               bench->expected_state.data())[static_cast<size_t>(c) * (bins + 1) + bin] *
           bench->repeats();
}

namespace {

// Count with 32-bit counters on samples without padding, the fastest layout for CUB. For integers,
// CUB's bins equal ours with 8 and 256 bins, and with 65536 bins of u16.
template <typename T, typename Level>
void even(const BenchCase *bench, std::vector<BenchRunner> &peers) {
    const uint32_t bins = reinterpret_cast<const gf_hist_plan *>(bench->plan)->bins;
    const BenchMemory packed = bench_packed(bench, 0);
    const BenchMemory counts = bench_memory(bins * sizeof(unsigned));
    const uint64_t n = bench->row->width * bench->rows;
    if (!packed || !counts || n > INT_MAX)
        return;
    const Level top = static_cast<Level>(sizeof(T) == 4 ? 1 : 1 << 8 * sizeof(T));
    peers.push_back(bench_cub_runner(
        "CUB HistogramEven", bench->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            return cub::DeviceHistogram::HistogramEven(
                temp, bytes, reinterpret_cast<const T *>(packed.get()),
                reinterpret_cast<unsigned *>(counts.get()), static_cast<int>(bins) + 1,
                static_cast<Level>(0), top, static_cast<int>(n), stream);
        }));
    if (sizeof(T) == 4) {
        peers.back().caveat = "computes float bins by another formula; result not checked";
        return;
    }
    peers.back().validate = [=] {
        const std::vector<unsigned> got = bench_download<unsigned>(counts.get(), bins);
        for (uint32_t i = 0; i < bins; i++)
            if (got[i] != bench_expected_count(bench, 0, i))
                return false;
        return true;
    };
}

void even_rgb(const BenchCase *bench, std::vector<BenchRunner> &peers) {
    const int bins = static_cast<int>(reinterpret_cast<const gf_hist_plan *>(bench->plan)->bins);
    const BenchMemory counts = bench_memory(3 * static_cast<size_t>(bins) * sizeof(unsigned));
    unsigned *to = reinterpret_cast<unsigned *>(counts.get());
    const BenchMemory packed = bench_packed(bench, 0);
    const uint64_t n = bench->row->width * bench->rows;
    if (!packed || !counts || n > INT_MAX / 3)
        return;
    peers.push_back(bench_cub_runner(
        "CUB MultiHistogram", bench->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            unsigned *each[3] = {to, to + bins, to + 2 * bins};
            const int levels[3] = {bins + 1, bins + 1, bins + 1};
            const int lower[3] = {0, 0, 0}, upper[3] = {256, 256, 256};
            (void)counts;
            return cub::DeviceHistogram::MultiHistogramEven<3, 3>(
                temp, bytes, static_cast<const uint8_t *>(packed.get()), each, levels, lower, upper,
                static_cast<int>(n), stream);
        }));
    peers.back().validate = [=] {
        const std::vector<unsigned> got =
            bench_download<unsigned>(counts.get(), 3 * static_cast<size_t>(bins));
        for (int i = 0; i < 3 * bins; i++)
            if (got[static_cast<size_t>(i)] !=
                bench_expected_count(bench, static_cast<uint32_t>(i / bins),
                                     static_cast<uint32_t>(i % bins)))
                return false;
        return true;
    };
}

template <typename T> struct Inside {
    T low, high;
    __host__ __device__ bool operator()(T value) const {
        return value >= low && value <= high;
    }
    __host__ __device__ bool operator()(const thrust::tuple<uint64_t, T> &sample) const {
        return operator()(thrust::get<1>(sample));
    }
};

template <typename T> struct InsideAt {
    const T *values;
    Inside<T> inside;
    __host__ __device__ bool operator()(uint64_t position) const {
        return inside(values[position]);
    }
};

// Check the first and the last selected positions. There may be billions of them.
bool positions_match(const BenchCase *bench, const BenchMemory &found,
                     const BenchMemory &positions) {
    const uint64_t *expected =
        reinterpret_cast<const uint64_t *>(bench->expected_payload.data()) + 1;
    const uint64_t count = *expected++, total = count * bench->repeats();
    if (bench_download<uint64_t>(found.get(), 1)[0] != total)
        return false;
    const uint64_t window = std::min(total, UINT64_C(1) << 20);
    for (const uint64_t first : {UINT64_C(0), total - window}) {
        const uint64_t *from = reinterpret_cast<const uint64_t *>(positions.get()) + first;
        const std::vector<uint64_t> got = bench_download<uint64_t>(from, window);
        for (uint64_t i = first; i < first + window; i++)
            if (got[i - first] !=
                expected[i % count] + i / count * BENCH_PERIOD * bench->row->width)
                return false;
    }
    return true;
}

// Select values and positions: as pairs in one pass, and in two passes. The samples have no
// padding: a position is an index.
template <typename T> void select(const BenchCase *bench, std::vector<BenchRunner> &peers) {
    const int64_t n = static_cast<int64_t>(gf_row_samples(&bench->format()) * bench->rows);
    const uint64_t total =
        reinterpret_cast<const uint64_t *>(bench->expected_payload.data())[1] * bench->repeats();
    const BenchMemory packed = bench_packed(bench, 0);
    const BenchMemory to_positions = bench_memory((total + 1) * sizeof(uint64_t));
    const BenchMemory to_values = bench_memory((total + 1) * sizeof(T));
    const BenchMemory to_found = bench_memory(sizeof(uint64_t));
    if (!packed || !to_positions || !to_values || !to_found)
        return;
    const T *samples = reinterpret_cast<const T *>(packed.get());
    uint64_t *positions = reinterpret_cast<uint64_t *>(to_positions.get());
    T *values = reinterpret_cast<T *>(to_values.get());
    uint64_t *found = reinterpret_cast<uint64_t *>(to_found.get());
    const thrust::counting_iterator<uint64_t> count(0);
    const unsigned scale = sizeof(T) == 1 ? 1 : 256;
    const Inside<T> inside = {static_cast<T>(96 * scale), static_cast<T>(128 * scale - 1)};
    const auto validate = [=] {
        (void)packed, (void)to_values;
        return positions_match(bench, to_found, to_positions);
    };
    const auto in = thrust::make_zip_iterator(thrust::make_tuple(count, samples));
    const auto out = thrust::make_zip_iterator(thrust::make_tuple(positions, values));
    peers.push_back(bench_cub_runner(
        "CUB Select pairs", bench->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            return cub::DeviceSelect::If(temp, bytes, in, out, found, n, inside, stream);
        }));
    peers.back().validate = validate;
    const InsideAt<T> inside_at = {samples, inside};
    peers.push_back(bench_cub_runner(
        "CUB Select twice", bench->bytes, [=](void *temp, size_t &bytes, cudaStream_t stream) {
            size_t other = bytes;
            cudaError_t result =
                cub::DeviceSelect::If(temp, bytes, samples, values, found, n, inside, stream);
            if (result == cudaSuccess)
                result = cub::DeviceSelect::If(temp, other, count, positions, found, n, inside_at,
                                               stream);
            bytes = std::max(bytes, other);
            return result;
        }));
    peers.back().validate = validate;
}

} // namespace

void bench_cub_hist(const BenchCase *bench, std::vector<BenchRunner> &peers) {
    const std::string group = bench->row->group, text = bench->row->text;
    const gf_type type = bench->row->type;
    if (group == "hist" && bench->row->channels == 1) {
        if (type == GF_U8)
            even<uint8_t, int>(bench, peers);
        else if (type == GF_U16)
            even<uint16_t, int>(bench, peers);
        else
            even<float, float>(bench, peers);
    }
    if (group == "hist" && bench->row->channels == 3 && text.find("all") != std::string::npos)
        even_rgb(bench, peers);
    if (group == "extract" && text == "bins=8 extract=3" && type == GF_U8)
        select<uint8_t>(bench, peers);
    if (group == "extract" && text == "bins=8 extract=3" && type == GF_U16)
        select<uint16_t>(bench, peers);
}
