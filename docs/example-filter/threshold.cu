// threshold on the GPU: a thread a sample.
#include "device.cuh"

#include "threshold/threshold.h"

// Thread mapping: x along a row, a block row (grid y) walks down the rows. Reads and writes a
// sample once; nothing is shared. Without a halo, `in` holds the rows of `out`. Alpha, the last of
// an even number of channels, is carried.
template <typename T>
static __global__ void threshold(gf_rows in, gf_rows out, gf_threshold_plan plan) {
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const uint32_t channels = plan.head.in.channels;
    if (i >= plan.head.in.width * channels)
        return;
    const bool alpha = channels % 2 == 0 && i % channels == channels - 1;
    for (uint64_t y = blockIdx.y; y < out.rows; y += gridDim.y) {
        const T x = reinterpret_cast<const T *>(in.data + y * in.stride)[i];
        const T made = static_cast<float>(x) >= plan.limit ? static_cast<T>(plan.largest) : T(0);
        reinterpret_cast<T *>(out.data + y * out.stride)[i] = alpha ? x : made;
    }
}

static gf_status threshold_launch(const gf_plan *head, const gf_band *band, void *scratch,
                                  void *stream_handle, gf_error *error) {
    (void)scratch;
    const gf_threshold_plan *plan = reinterpret_cast<const gf_threshold_plan *>(head);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    const uint64_t rows = band->out.rows;
    const dim3 grid(gf_blocks(gf_row_samples(&head->in), 256),
                    static_cast<unsigned>(rows < 65535 ? rows : 65535));
    gf_for_type(head->in.type, [&](auto sample) {
        threshold<decltype(sample)><<<grid, 256, 0, stream>>>(band->in, band->out, *plan);
    });
    return gf_cuda_check(cudaGetLastError(), "threshold", error);
}

extern "C" const gf_filter_cuda gf_threshold_cuda = {nullptr, threshold_launch};
