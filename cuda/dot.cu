// dot on the GPU: the sums of products along rows.
#include "lane_sums.cuh"

#include "dot/dot.h"

namespace {

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    const uint32_t measured = reinterpret_cast<const gf_dot_plan *>(head)->measured;
    return gf_cuda_check(gf_launch_rows<gf_product_sums>(head, band, measured, stream), "dot",
                         error);
}

} // namespace

extern "C" const gf_filter_cuda gf_dot_cuda = {nullptr, launch};
