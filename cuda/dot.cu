// dot on the GPU: the sums of products along rows.
#include "lane_sums.cuh"

#include "dot/dot.h"

namespace {

template <typename T>
cudaError_t run(const gf_row_sums &a, uint32_t channels, cudaStream_t stream) {
    cudaError_t result = cudaSuccess;
    gf_for_channels(channels, [&](auto n) {
        result = gf_launch_integer_rows<gf_product_sums<T, decltype(n)::value>>(a, stream);
    });
    return result;
}

template <> cudaError_t run<float>(const gf_row_sums &a, uint32_t channels, cudaStream_t stream) {
    return gf_launch_lanes<2>(a, channels, stream);
}

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    gf_row_sums a = {};
    for (uint32_t i = 0; i < 2; i++) {
        const gf_rows rows = gf_band_input(band, head->inputs, i);
        a.in[i] = gf_row(&rows, band->out.y0);
    }
    a.in_stride = band->in.stride;
    a.records = band->out.data + gf_record_offset(head);
    a.out_stride = band->out.stride;
    a.width = head->in.width;
    a.rows = band->out.rows;
    a.row_bytes = gf_row_bytes(&head->in);
    a.measured = reinterpret_cast<const gf_dot_plan *>(head)->measured;
    a.shares = gf_share_rows(a.rows, a.row_bytes, 2);
    cudaError_t result = cudaSuccess;
    gf_for_type(head->in.type,
                [&](auto sample) { result = run<decltype(sample)>(a, head->in.channels, stream); });
    return gf_cuda_check(result, "dot", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_dot_cuda = {nullptr, launch};
