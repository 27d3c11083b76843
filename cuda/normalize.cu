// normalize on the GPU: a thread a sample.
#include "device.cuh"

#include "normalize/normalize.h"

namespace {

#define THREADS 256

struct Args {
    const unsigned char *in; // of the first row
    unsigned char *out;
    size_t in_stride, out_stride;
    uint64_t samples, rows; // samples a row
    uint32_t channels, measured;
    float mean[GF_MAX_CHANNELS], half;
};

// Blocks take pieces of rows in turn; thread t of a block takes every 256th sample. Reads and
// writes each sample once. Alpha is copied.
template <typename T> __global__ void __launch_bounds__(THREADS) normalize(Args a) {
    const uint64_t piece_samples = THREADS * 8;
    const uint64_t pieces = (a.samples + piece_samples - 1) / piece_samples;
    for (uint64_t piece = blockIdx.x; piece < pieces * a.rows; piece += gridDim.x) {
        const uint64_t y = piece / pieces, begin = piece % pieces * piece_samples;
        const T *in = reinterpret_cast<const T *>(a.in + y * a.in_stride);
        T *out = reinterpret_cast<T *>(a.out + y * a.out_stride);
        for (uint64_t i = begin + threadIdx.x; i < a.samples && i < begin + piece_samples;
             i += THREADS) {
            const uint32_t c = static_cast<uint32_t>(i % a.channels);
            const T value = in[i];
            out[i] = c < a.measured ? gf_store<T>(gf_load(value) / a.mean[c] * a.half) : value;
        }
    }
}

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const gf_normalize_plan *plan = reinterpret_cast<const gf_normalize_plan *>(head);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    Args a = {};
    a.in = gf_row(&band->in, band->out.y0);
    a.out = band->out.data;
    a.in_stride = band->in.stride;
    a.out_stride = band->out.stride;
    a.samples = gf_row_samples(&head->in);
    a.rows = band->out.rows;
    a.channels = head->in.channels;
    a.measured = gf_measured_channels(head->in.channels, false);
    for (uint32_t c = 0; c < GF_MAX_CHANNELS; c++)
        a.mean[c] = plan->mean[c];
    a.half = plan->half;
    const unsigned grid = gf_grid(a.samples * a.rows, THREADS * 8);
    gf_for_type(head->in.type,
                [&](auto sample) { normalize<decltype(sample)><<<grid, THREADS, 0, stream>>>(a); });
    return gf_cuda_check(cudaGetLastError(), "normalize", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_normalize_cuda = {nullptr, launch};
