// dot on CUDA: sums of products along rows. row_sums.cuh has the kernels.
#include "row_sums.cuh"

#include "dot/dot.h"

static gf_status dot_launch(const gf_plan *head, const gf_strip *strip, void *, void *stream_handle,
                            gf_error *error) {
    const uint32_t measured = reinterpret_cast<const gf_dot_plan *>(head)->measured;
    return gf_cuda_check(
        gf_launch_rows<2>(head, strip, measured, static_cast<cudaStream_t>(stream_handle)), "dot",
        error);
}

extern "C" const gf_filter_cuda gf_dot_cuda = {nullptr, dot_launch, nullptr, 0, false};
