// threshold on the GPU: one block per row.
#include "cuda/device.cuh"

#include "samples.h"
#include "threshold/threshold.h"

// Grid: one block of 256 threads per row, up to 2^30 blocks; blocks loop over further rows.
// A thread computes every 256th sample of its row. No shared memory. Reads and writes each sample
// once. The filter has no halo, so `in` and `out` hold the same rows. Alpha, the last of an even
// number of channels, is copied.
template <typename T>
static __global__ void threshold(gf_rows in, gf_rows out, gf_threshold_plan plan) {
    const uint32_t channels = plan.head.in.channels;
    gf_wait_for_stream();
    for (uint64_t y = blockIdx.x; y < out.rows; y += gridDim.x)
        for (uint64_t i = threadIdx.x; i < plan.head.in.width * channels; i += blockDim.x) {
            const T x = reinterpret_cast<const T *>(in.data + y * in.stride)[i];
            const bool reached = static_cast<float>(x) >= plan.limit;
            const T result = static_cast<T>(reached ? gf_type_max(plan.head.in.type) : 0);
            const bool alpha = channels % 2 == 0 && i % channels == channels - 1;
            reinterpret_cast<T *>(out.data + y * out.stride)[i] = alpha ? x : result;
        }
}

static void threshold_launch(const gf_plan *head, const gf_strip *strip, void *, gf_queue *queue) {
    gf_for_type(head->in.type, [&](auto sample) {
        gf_launch_kernel(threshold<decltype(sample)>, gf_blocks(strip->out.rows, 1), 256, 0, queue,
                         strip->in[0], strip->out,
                         *reinterpret_cast<const gf_threshold_plan *>(head));
    });
}

extern "C" const gf_filter_cuda gf_threshold_cuda = {nullptr, threshold_launch, nullptr, false};
