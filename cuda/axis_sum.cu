// axis-sum on the GPU: sums along rows or down columns.
#include "column_sums.cuh"
#include "lane_sums.cuh"

#include "axis_sum/axis_sum.h"

namespace {

template <typename T>
cudaError_t run_rows(const gf_row_sums &a, uint32_t channels, cudaStream_t stream) {
    cudaError_t result = cudaSuccess;
    gf_for_channels(channels, [&](auto n) {
        result = gf_launch_integer_rows<gf_sample_sums<T, decltype(n)::value>>(a, stream);
    });
    return result;
}

template <>
cudaError_t run_rows<float>(const gf_row_sums &a, uint32_t channels, cudaStream_t stream) {
    return gf_launch_lanes<1>(a, channels, stream);
}

cudaError_t rows(const gf_plan *head, const gf_band *band, cudaStream_t stream) {
    gf_row_sums a = {};
    a.in[0] = gf_row(&band->in, band->out.y0);
    a.in_stride = band->in.stride;
    a.records = band->out.data + gf_record_offset(head);
    a.out_stride = band->out.stride;
    a.width = head->in.width;
    a.rows = band->out.rows;
    a.row_bytes = gf_row_bytes(&head->in);
    a.measured = reinterpret_cast<const gf_axis_sum_plan *>(head)->measured;
    a.shares = gf_share_rows(a.rows, a.row_bytes, 1);
    cudaError_t result = cudaSuccess;
    gf_for_type(head->in.type, [&](auto sample) {
        result = run_rows<decltype(sample)>(a, head->in.channels, stream);
    });
    return result;
}

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
    const bool down = reinterpret_cast<const gf_axis_sum_plan *>(head)->columns;
    return gf_cuda_check(down ? columns(head, band, stream) : rows(head, band, stream), "axis-sum",
                         error);
}

} // namespace

extern "C" const gf_filter_cuda gf_axis_sum_cuda = {nullptr, launch};
