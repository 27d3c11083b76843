// hist on CUDA: launch, and two small kernels.
//
//   file         kernels
//   count.cu     count the samples of an image, or of each of its rows
//   extract.cu   extract the samples of selected bins; sort.cu sorts them
//   hist.cu      hist_draw_mask: draw an image of the pixels in extracted bins
//                hist_sum_rows: sums, min and max of each row of f32, for statistics
//
// Each block processes one chunk of the strip. Kernels that count a whole image also store the
// number of samples of each extracted bin per chunk; extraction then need not count them again.
#include <math.h>

#include "cuda/hist/device.cuh"

// Partial results of a block: the sum and the sum of squares of each lane, min and max as keys.
template <int MEASURED> struct hist_row_shared {
    double sums[2 * MEASURED][GF_LANES];
    uint32_t keys[2 * MEASURED][GF_LANES];
};

// Sum the samples of a row in the lane of the thread.
template <int MEASURED>
GF_DEVICE void hist_sum_lane(const gf_hist_args &a, const float *row,
                             hist_row_shared<MEASURED> *shared) {
    const uint32_t lane = threadIdx.x;
    double sum[MEASURED] = {}, squares[MEASURED] = {};
    uint32_t min_key[MEASURED], max_key[MEASURED] = {};
#pragma unroll
    for (int s = 0; s < MEASURED; s++)
        min_key[s] = UINT32_MAX;
#pragma unroll 4
    for (uint64_t x = lane; x < a.width; x += GF_LANES)
#pragma unroll
        for (int s = 0; s < MEASURED; s++) {
            const float sample = gf_hist_sample<float>(a, row, x, static_cast<uint32_t>(s));
            const bool number = sample == sample;
            const double v = number ? sample : 0;
            const bool finite = fabsf(sample) < INFINITY;
            const uint32_t key = gf_hist_key(__float_as_uint(sample));
            sum[s] = __dadd_rn(sum[s], v);
            squares[s] = __fma_rn(v, v, squares[s]); // the product is exact
            min_key[s] = finite ? min(min_key[s], key) : min_key[s];
            max_key[s] = finite ? max(max_key[s], key) : max_key[s];
        }
#pragma unroll
    for (int s = 0; s < MEASURED; s++) {
        shared->sums[2 * s][lane] = sum[s];
        shared->sums[2 * s + 1][lane] = squares[s];
        shared->keys[2 * s][lane] = min_key[s];
        shared->keys[2 * s + 1][lane] = max_key[s];
    }
}

// Sum the rows of f32 in the order of filters/samples.h: thread l has lane l of each channel.
// Grid: one block per row, up to 2^30; blocks then loop. Block: 256 threads. Reads pixels once,
// writes 24 bytes per row and channel. Shared memory: 6 KB per channel. Registers: 40 to 80
// (sm_90).
template <int MEASURED>
__global__ void __launch_bounds__(GF_LANES) hist_sum_rows(gf_hist_args a, gf_rows records) {
    __shared__ hist_row_shared<MEASURED> shared;
    const uint32_t warp_lane = threadIdx.x % 32;
    gf_wait_for_stream();
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        hist_sum_lane(a, gf_hist_row<float>(a, y), &shared);
        __syncthreads();
        gf_hist_row_sums *record =
            reinterpret_cast<gf_hist_row_sums *>(records.data + y * records.stride);
        // Each warp reduces one tree at a time.
        for (uint32_t i = threadIdx.x / 32; i < 2 * MEASURED; i += GF_LANES / 32) {
            double x[8];
            uint32_t key = shared.keys[i][warp_lane];
#pragma unroll
            for (uint32_t k = 0; k < 8; k++) {
                const uint32_t other = shared.keys[i][warp_lane + 32 * k];
                x[k] = shared.sums[i][warp_lane + 32 * k];
                key = i % 2 ? max(key, other) : min(key, other);
            }
            const double total = gf_canonical(gf_add_lanes(x));
            key = gf_reduce_group<32>(
                key, [&](uint32_t p, uint32_t q) { return i % 2 ? max(p, q) : min(p, q); });
            if (warp_lane == 0 && i % 2) {
                record[i / 2].squares = total;
                record[i / 2].max = key;
            } else if (warp_lane == 0) {
                record[i / 2].sum = total;
                record[i / 2].min = key;
            }
        }
        __syncthreads();
    }
}

struct hist_mask {
    unsigned char *out; // first row
    size_t out_stride;
    uint32_t out_channels;
};

// Draw the pixels in extracted bins, and black elsewhere.
// Grid: one thread per pixel, at most 8 blocks per SM, which loop. Block: 512 threads. Reads and
// writes each pixel once. Shared memory: none. Registers: 40 to 48 (sm_90).
template <typename T>
__global__ void __launch_bounds__(Policy::THREADS) hist_draw_mask(gf_hist_args a, hist_mask mask) {
    gf_wait_for_stream();
    const uint64_t pixels = a.width * a.rows;
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * Policy::THREADS;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * Policy::THREADS + threadIdx.x; i < pixels;
         i += step) {
        const uint64_t y = i / a.width, x = i % a.width;
        const T *row = gf_hist_row<T>(a, y);
        bool selected = false;
        for (uint32_t s = 0; s < a.measured && !selected; s++)
            selected =
                gf_hist_nth(a, gf_hist_bin<T>(a, gf_hist_sample<T>(a, row, x, s))) < a.extracts;
        T *to = reinterpret_cast<T *>(mask.out + y * mask.out_stride) + x * mask.out_channels;
        for (uint32_t c = 0; c < mask.out_channels; c++) {
            T value = 0;
            if (selected && c < a.channels)
                value = row[x * a.channels + c];
            else if (selected)
                value = static_cast<T>(sizeof(T) == 1 ? 255 : 65535); // added alpha
            to[c] = value;
        }
    }
}

static gf_hist_args hist_args_of(const gf_hist_plan *plan, const gf_strip *strip) {
    gf_hist_args a = {};
    a.in = gf_row(&strip->in[0], strip->out.y0);
    a.in_stride = strip->in[0].stride;
    a.width = plan->head.in.width;
    a.rows = strip->out.rows;
    a.before = strip->out.y0 * a.width * plan->measured;
    a.channels = plan->head.in.channels;
    a.first = plan->first;
    a.measured = plan->measured;
    a.bins = plan->bins;
    a.counters = plan->counters;
    a.nodata = gf_hist_nodata(plan);
    a.luma = plan->luma;
    a.ranged = plan->ranged;
    a.extract_all = plan->extract_all;
    a.keys = plan->keys;
    a.lo = plan->lo;
    a.hi = plan->hi;
    a.span = plan->hi - plan->lo;
    // The constants of gf_hist_bin_exact and gf_hist_bins_ranged.
    const double scale = a.bins / a.span, margin = (a.bins + 2 + fabs(a.lo * scale)) * 0x1p-21;
    if (isfinite(a.span) && scale > 1e-290 && scale < 1e290)
        a.scale = scale;
    a.quick_scale = static_cast<float>(scale);
    a.quick_lo = static_cast<float>(a.lo * scale);
    a.margin = scale > 1e-30 && scale < 1e30 && margin < 0.25 ? static_cast<float>(margin) : 1;
    a.blocks = gf_hist_blocks(plan);
    a.extracts = plan->extracts;
    std::copy_n(plan->listed, GF_HIST_MAX_LISTED, a.listed);
    return a;
}

static size_t hist_scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_hist_plan *plan = reinterpret_cast<const gf_hist_plan *>(head);
    const uint64_t n = in_rows * head->in.width * plan->measured;
    if (plan->extracts == 0)
        return 0;
    if (plan->extracts > GF_HIST_MAX_LISTED)
        return gf_hist_sort_layout_of(n, plan->extracts).bytes;
    // The result of gf_hist_cut_common for a strip of n samples is at most this.
    const uint64_t blocks = Policy::BLOCKS * gf_sm_count() + n / Policy::CHUNK + 1;
    return blocks * plan->extracts * sizeof(uint32_t);
}

static void hist_launch(const gf_plan *head, const gf_strip *strip, void *scratch,
                        gf_queue *queue) {
    const gf_hist_plan *plan = reinterpret_cast<const gf_hist_plan *>(head);
    const gf_hist_args a = hist_args_of(plan, strip);
    gf_u64 *state = static_cast<gf_u64 *>(strip->state);
    const bool few = a.extracts > 0 && a.extracts <= GF_HIST_MAX_LISTED;
    uint32_t *counts = few ? static_cast<uint32_t *>(scratch) : nullptr;
    bool counted = false;
    if (!plan->folded)
        counted = gf_hist_queue_count(plan, strip, a, state, counts, queue);
    if (plan->values) {
        const gf_hist_plan values = gf_hist_value_plan(plan);
        gf_hist_queue_count(&values, strip, hist_args_of(&values, strip),
                            state + gf_hist_state_counters(plan), nullptr, queue);
    }
    if (plan->row_sums) {
        gf_rows sums = gf_strip_records(head, strip);
        sums.data = reinterpret_cast<unsigned char *>(gf_hist_sums_of(plan, sums.data));
        gf_channels{a.measured}([&](auto n) {
            gf_launch_kernel(hist_sum_rows<n>, gf_blocks(a.rows, 1), GF_LANES, 0, queue, a, sums);
        });
    }
    if (plan->mask)
        gf_for_type(head->in.type, [&](auto sample) {
            gf_launch_kernel(hist_draw_mask<decltype(sample)>,
                             gf_grid(a.rows * a.width, Policy::THREADS), Policy::THREADS, 0, queue,
                             a, hist_mask{strip->out.data, strip->out.stride, head->out.channels});
        });
    if (a.extracts)
        gf_hist_queue_extract(plan, a, counted, scratch, static_cast<gf_u64 *>(strip->payload),
                              queue);
}

extern "C" const gf_filter_cuda gf_hist_cuda = {hist_scratch_bytes, hist_launch, nullptr, true};
