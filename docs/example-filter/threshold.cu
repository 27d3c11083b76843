// threshold on the GPU: a thread a sample.
#include "device.cuh"

#include "threshold/threshold.h"

namespace {

// Thread mapping: x along a row, a block row (grid y) walks down the rows. Reads and writes a
// sample once; nothing is shared. Alpha, the last of an even number of channels, is carried.
template <typename T>
__global__ void threshold(const unsigned char *in, size_t in_stride, unsigned char *out,
                          size_t out_stride, uint64_t samples, uint64_t rows, uint32_t channels,
                          float limit, float largest) {
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= samples)
        return;
    const bool alpha = channels % 2 == 0 && i % channels == channels - 1;
    for (uint64_t y = blockIdx.y; y < rows; y += gridDim.y) {
        const T x = reinterpret_cast<const T *>(in + y * in_stride)[i];
        reinterpret_cast<T *>(out + y * out_stride)[i] = alpha ? x
                                                         : static_cast<float>(x) >= limit
                                                             ? static_cast<T>(largest)
                                                             : T(0);
    }
}

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const gf_threshold_plan *plan = reinterpret_cast<const gf_threshold_plan *>(head);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    const uint64_t samples = gf_row_samples(&head->in), rows = band->out.rows;
    const dim3 grid(static_cast<unsigned>((samples + 255) / 256),
                    static_cast<unsigned>(rows < 65535 ? rows : 65535));
    gf_for_type(head->in.type, [&](auto sample) {
        threshold<decltype(sample)><<<grid, 256, 0, stream>>>(
            gf_row(&band->in, band->out.y0), band->in.stride, band->out.data, band->out.stride,
            samples, rows, head->in.channels, plan->limit, plan->largest);
    });
    return gf_cuda_check(cudaGetLastError(), "threshold", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_threshold_cuda = {nullptr, launch};
