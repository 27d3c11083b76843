// axis-sum on the GPU: sums along rows or down columns.
#include "column_sums.cuh"
#include "lane_sums.cuh"

#include "axis_sum/axis_sum.h"

namespace {

cudaError_t columns(const gf_plan *head, const gf_band *band, cudaStream_t stream) {
    gf_column_sums a = {};
    a.in = gf_row(&band->in, band->out.y0);
    a.in_stride = band->in.stride;
    a.state = band->state;
    a.samples = gf_row_samples(&head->in);
    a.rows = band->out.rows;
    a.row_bytes = gf_row_bytes(&head->in);
    cudaError_t result = cudaSuccess;
    gf_for_type(head->in.type,
                [&](auto sample) { result = gf_launch_columns<decltype(sample)>(a, stream); });
    return result;
}

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    const gf_axis_sum_plan *plan = reinterpret_cast<const gf_axis_sum_plan *>(head);
    return gf_cuda_check(plan->columns
                             ? columns(head, band, stream)
                             : gf_launch_rows<gf_sample_sums>(head, band, plan->measured, stream),
                         "axis-sum", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_axis_sum_cuda = {nullptr, launch};
