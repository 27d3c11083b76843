// smooth along both axes of u16 and f32: samples near the edges of an image, where windows are
// clipped. One kernel, smooth_border.
#include "cuda/smooth/both.cuh"

#include <algorithm>

struct border_policy {
    static constexpr int THREADS = 128;
    static constexpr int ROWS = 4; // per thread: they share sums along x
};

// The border: whole rows at the top and at the bottom, and the first and last pixels of the others.
struct border_args {
    gf_both_args exact;
    int64_t top, bottom;   // rows [out_first, top) and [bottom, out_end) are whole
    int64_t samples, side; // of a row; of the first or last pixels of a row in the border
    int64_t groups[3];     // of ROWS rows: at the top, at the bottom, between
};

// Compute the border of a strip.
// Grid: one thread per group of 4 rows of a border sample. Block: 128 threads. A thread computes
// the sums along x of up to 12 rows, and from them its results. Reads each sample of the border
// about 12 times, from the caches; all accesses to whole rows are coalesced. Tail: further threads
// do nothing. Shared memory: none. Registers: 128 at most (sm_90).
template <typename T, int RADIUS>
__global__ void __launch_bounds__(border_policy::THREADS)
    smooth_border(const __grid_constant__ border_args a) {
    constexpr int ROWS = border_policy::ROWS;
    const unsigned thread = threadIdx.x;
    const int64_t whole = (a.groups[0] + a.groups[1]) * a.samples;
    const int64_t n = static_cast<int64_t>(blockIdx.x) * border_policy::THREADS;
    const int64_t m = n + thread - whole;
    if (m >= a.groups[2] * 2 * a.side)
        return;
    int64_t y, stop, i;
    if (m < 0) {
        const int64_t group = (n + thread) / a.samples;
        const bool top = group < a.groups[0];
        i = n + thread - group * a.samples;
        y = top ? a.exact.out_first + group * ROWS : a.bottom + (group - a.groups[0]) * ROWS;
        stop = top ? a.top : a.exact.out_end;
    } else {
        const int64_t group = m / (2 * a.side);
        i = m - group * 2 * a.side;
        i = i < a.side ? i : a.samples - 2 * a.side + i;
        y = a.top + group * ROWS;
        stop = a.bottom;
    }
    stop = stop < y + ROWS ? stop : y + ROWS;
    if (i % a.exact.channels >= a.exact.colours)
        return;
    float result[ROWS];
    gf_both_exact<T, RADIUS>(a.exact, y, stop, i, result);
    gf_wait_for_stream(); // the kernel of the other samples writes to these, too
    unsigned char *to =
        a.exact.out + (y - a.exact.out_first) * static_cast<int64_t>(a.exact.out_stride);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (y + r < stop)
            reinterpret_cast<T *>(to + r * static_cast<int64_t>(a.exact.out_stride))[i] =
                gf_store<T>(result[r]);
}

void gf_both_border(const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    const int64_t reach = plan->radius + (plan->smooth ? 1 : 0), rows = border_policy::ROWS;
    border_args a = {};
    gf_both_args *exact = &a.exact;
    *exact = gf_both_args_of(job);
    a.samples = exact->width * exact->channels;
    // Whether all samples are near an edge.
    const bool narrow = exact->width <= 2 * reach;
    a.top = std::clamp(narrow ? exact->height : reach, exact->out_first, exact->out_end);
    a.bottom = std::clamp(exact->height - reach, a.top, exact->out_end);
    a.side = narrow ? 0 : reach * exact->channels;
    a.groups[0] = (a.top - exact->out_first + rows - 1) / rows;
    a.groups[1] = (exact->out_end - a.bottom + rows - 1) / rows;
    a.groups[2] = (a.bottom - a.top + rows - 1) / rows;
    const int64_t threads = (a.groups[0] + a.groups[1]) * a.samples + a.groups[2] * 2 * a.side;
    if (threads == 0)
        return;
    const uint64_t blocks = gf_divide_up(static_cast<uint64_t>(threads), border_policy::THREADS);
    gf_dispatch(
        [&](auto sample, auto radius) {
            typedef decltype(sample) T;
            if constexpr (sizeof(T) > 1)
                gf_launch_kernel(smooth_border<T, radius>, static_cast<unsigned>(blocks),
                                 border_policy::THREADS, 0, job.queue, a);
        },
        gf_type_of{plan->head.in.type}, gf_number<1, 3>{plan->radius});
}
