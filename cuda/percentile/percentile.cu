// median, percentile, erode and dilate on CUDA.
//
//   file          kernel                 used for
//   network.cu    percentile_march       medians of 3 x 3 pixels; minima and maxima of 3 x 3, 5 x 5
//                                        and 7 x 7 pixels
//                 percentile_network     medians of 5 x 5 and 7 x 7 pixels
//   select.cu     percentile_bytes       other windows, u8
//                 percentile_ranks       other windows, u16 and f32
//                 percentile_search      all but minima and maxima, with little shared memory
//   extreme.cu    percentile_extreme     other minima and maxima
#include "cuda/percentile/device.cuh"

static percentile_args percentile_args_of(const gf_plan *head) {
    const gf_percentile_plan *plan = reinterpret_cast<const gf_percentile_plan *>(head);
    percentile_args a = {};
    a.in.width = static_cast<int64_t>(head->in.width);
    a.in.channels = static_cast<int>(head->in.channels);
    a.in.row_bytes = static_cast<int64_t>(gf_row_bytes(&head->in));
    a.radius[0] = static_cast<int>(plan->radius[0]);
    a.radius[1] = static_cast<int>(plan->radius[1]);
    a.index = plan->index;
    a.alpha = gf_has_alpha(&head->in);
    const bool maximum = plan->form == GF_PERCENTILE_MAXIMUM; // minimum of the complements
    const uint32_t offset = head->in.type == GF_F32 ? 0u - 0x7fffff : 0;
    a.sign = maximum ? ~0u : 1;
    a.offset = maximum ? ~offset : offset;
    a.back = 0 - a.offset * a.sign;
    a.one = 1;
    a.minus_one = ~0u;
    return a;
}

static size_t percentile_scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_percentile_plan *plan = reinterpret_cast<const gf_percentile_plan *>(head);
    return plan->form > GF_PERCENTILE_MAXIMUM
               ? 0
               : percentile_extreme_bytes(percentile_args_of(head), head->in.type, in_rows);
}

static void percentile_launch(const gf_plan *head, const gf_strip *strip, void *scratch,
                              gf_queue *queue) {
    const gf_percentile_plan *plan = reinterpret_cast<const gf_percentile_plan *>(head);
    const gf_type type = head->in.type;
    percentile_args a = percentile_args_of(head);
    a.in = gf_window_source_of(head, strip, plan->edge);
    a.out = strip->out.data;
    a.out_stride = strip->out.stride;
    a.first = static_cast<int64_t>(strip->out.y0);
    a.rows = static_cast<int64_t>(strip->out.rows);
    const bool extreme = plan->form <= GF_PERCENTILE_MAXIMUM;
    const bool square =
        a.radius[0] == a.radius[1] && a.radius[0] > 0 && a.radius[0] <= GF_PERCENTILE_MAX_NETWORK;
    if (extreme && square && percentile_launch_march(a, type, false, queue))
        return;
    if (extreme)
        percentile_launch_extreme(a, type, static_cast<unsigned char *>(scratch), queue);
    else if (plan->form == GF_PERCENTILE_SELECT || !percentile_launch_network(a, type, queue))
        percentile_launch_select(a, type, queue);
}

#define PERCENTILE_KERNELS                                                                         \
    { percentile_scratch_bytes, percentile_launch, nullptr, false }

extern "C" const gf_filter_cuda gf_median_cuda = PERCENTILE_KERNELS;
extern "C" const gf_filter_cuda gf_percentile_cuda = PERCENTILE_KERNELS;
extern "C" const gf_filter_cuda gf_erode_cuda = PERCENTILE_KERNELS;
extern "C" const gf_filter_cuda gf_dilate_cuda = PERCENTILE_KERNELS;
