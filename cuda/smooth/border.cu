// smooth along both axes by the stages: near-ties of window_bytes, and samples near the edges of an
// image, where windows are clipped. One kernel, smooth_border.
#include "cuda/smooth/both.cuh"

#include <algorithm>

struct border_policy {
    static constexpr int THREADS = 128;
    static constexpr int ROWS = 4; // per thread: they share sums along x
    static constexpr int EACH = 4; // blocks per list of near-ties
};

// The border: whole rows at the top and at the bottom, and the first and last pixels of the others.
struct border_args {
    gf_both_args exact;
    int64_t top, bottom;   // rows [out_first, top) and [bottom, out_end) are whole
    int64_t samples, side; // of a row; of the first or last pixels of a row in the border
    unsigned lists;        // of near-ties
    gf_bytes_args ties;
    int64_t groups[3]; // of ROWS rows: at the top, at the bottom, between
};

// Compute and store rows [y, stop) of sample i.
template <typename T, int RADIUS, int N>
GF_DEVICE void border_compute(const gf_both_args &a, int64_t y, int64_t stop, int64_t i,
                              bool wait) {
    float result[N];
    if (i % a.channels < a.colours)
        gf_both_exact<T, RADIUS>(a, y, stop, i, result);
    if (wait)
        gf_wait_for_stream();
#pragma unroll
    for (int r = 0; r < N; r++)
        if (y + r < stop && i % a.channels < a.colours)
            reinterpret_cast<T *>(a.out +
                                  (y + r - a.out_first) * static_cast<int64_t>(a.out_stride))[i] =
                gf_store<T>(result[r]);
}

// Compute the near-ties of a list, or if a block has found more than fit, its whole share.
template <typename T, int RADIUS>
GF_DEVICE void border_ties(const gf_bytes_args &a, const gf_both_args &exact, unsigned list,
                           unsigned thread) {
    constexpr unsigned THREADS = border_policy::EACH * border_policy::THREADS;
    const uint32_t count = a.ties.counts[list];
    const uint64_t *at = a.ties.at + static_cast<uint64_t>(list) * a.ties.max;
    if (count <= a.ties.max) {
        for (uint32_t n = thread; n < count; n += THREADS) {
            const int64_t y = static_cast<int64_t>(at[n]) / a.in.row_bytes;
            const int64_t i = static_cast<int64_t>(at[n]) - y * a.in.row_bytes;
            border_compute<T, RADIUS, 1>(exact, exact.out_first + y, exact.out_end, i, false);
        }
        return;
    }
    gf_march_each(a, list, gf_both_policy::UNITS, [&](int64_t left, int64_t first, int64_t stop) {
        for (int64_t y = first; y < stop; y++)
            for (int64_t i = left + thread;
                 i < left + 16 * gf_both_policy::UNITS && i < a.in.row_bytes; i += THREADS)
                border_compute<T, RADIUS, 1>(exact, y, stop, i, false);
    });
}

// Compute near-ties and the border of a strip.
// Grid: 4 blocks per list of near-ties, then one thread per group of 4 rows of a border sample.
// Block: 128 threads. A thread computes the sums along x of up to 12 rows, and from them its
// results; those of near-ties are one row. Reads each sample of the border about 12 times, from the
// caches; all accesses to whole rows are coalesced. Tail: further threads do nothing. Shared
// memory: none. Registers: 128 at most (sm_90).
template <typename T, int RADIUS>
__global__ void __launch_bounds__(border_policy::THREADS)
    smooth_border(const __grid_constant__ border_args a) {
    constexpr int ROWS = border_policy::ROWS, EACH = border_policy::EACH;
    const unsigned thread = threadIdx.x;
    if (blockIdx.x < EACH * a.lists) {
        gf_wait_for_stream();
        border_ties<T, RADIUS>(a.ties, a.exact, blockIdx.x / EACH,
                               blockIdx.x % EACH * border_policy::THREADS + thread);
        return;
    }
    const int64_t whole = (a.groups[0] + a.groups[1]) * a.samples;
    const int64_t n = static_cast<int64_t>(blockIdx.x - EACH * a.lists) * border_policy::THREADS;
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
    // The kernel of the other samples writes to these, too.
    border_compute<T, RADIUS, ROWS>(a.exact, y, stop, i, true);
}

void gf_both_border(const gf_smooth_job &job, const gf_bytes_args *ties) {
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
    if (threads == 0 && !ties)
        return;
    const uint64_t blocks = gf_divide_up(static_cast<uint64_t>(threads), border_policy::THREADS);
    if (ties) {
        a.ties = *ties;
        a.lists = ties->blocks;
    }
    gf_dispatch(
        [&](auto sample, auto radius) {
            gf_launch_kernel(smooth_border<decltype(sample), radius>,
                             static_cast<unsigned>(border_policy::EACH * a.lists + blocks),
                             border_policy::THREADS, 0, job.queue, a);
        },
        gf_type_of{plan->head.in.type}, gf_number<0, 3>{plan->radius});
}
