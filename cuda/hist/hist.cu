// hist on CUDA: kernel selection and launch.
//
//   header             kernels
//   cuda/hist/count.cuh     count the samples of an image, or of each of its rows
//   cuda/hist/extract.cuh   extract the samples of selected bins
//   (this file)        hist_draw_mask: draw an image of the pixels in extracted bins
//                      hist_sum_rows: sums, min and max of each row of f32, for statistics
//
// Each block processes one chunk of the strip. Kernels that count a whole image also store the
// number of samples of each extracted bin per chunk; extraction then need not count them again.
#include <math.h>

#include "cuda/hist/count.cuh"
#include "cuda/hist/extract.cuh"

// ---- counting -----------------------------------------------------------------------------------

// Test whether the tables of `channels` channels fit into the shared memory of a block.
static bool hist_tables_fit(uint32_t channels) {
    const size_t tables = channels == 3 ? HistTable<3>::all : HistTable<4>::all;
    return tables + 8 * 1024 <= gf_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>();
}

template <uint32_t TABLES, bool DENSE>
static void hist_launch_values(HistArgs a, uint32_t channels, hist_u64 *state, uint32_t *counts,
                               gf_queue *queue) {
    constexpr auto kernel = hist_count_values<TABLES, DENSE>;
    const size_t shared = HistTable<TABLES>::all;
    hist_join_rows(&a, 16);
    const dim3 grid(hist_cut_common(&a), 1, channels);
    hist_set_max_shared<kernel>();
    gf_launch_kernel(kernel, grid, HIST_THREADS, shared, queue, a, state, counts);
}

// Queue a counting kernel. Returns whether it writes counts; with a channel per block it does not.
static bool hist_launch_count(HistArgs a, uint8_t, hist_u64 *state, uint32_t *counts,
                              gf_queue *queue) {
    const uint32_t measured = a.measured;
    if (measured >= 3 && !hist_tables_fit(measured)) {
        a.measured = 1;
        hist_launch_values<1, false>(a, measured, state, nullptr, queue);
        return false;
    }
    if (!hist_dense(a))
        hist_launch_values<1, false>(a, 1, state, counts, queue);
    else
        gf_for_channels(measured, [&](auto n) {
            hist_launch_values<decltype(n)::value, true>(a, 1, state, counts, queue);
        });
    return true;
}

template <typename T>
static bool hist_launch_count(HistArgs a, T, hist_u64 *state, uint32_t *counts, gf_queue *queue) {
    uint32_t channels = 1;
    HistCounters counters = hist_counters(a.measured * a.counters);
    if (counters.large && a.measured > 1) {
        channels = a.measured;
        a.measured = 1;
        counters = hist_counters(a.counters);
    }
    const bool common = !counters.large && channels == 1 && !a.keys;
    const auto launch = [&](auto constant, uint32_t threads) {
        constexpr auto kernel = decltype(constant)::value;
        hist_join_rows(&a, 16 / sizeof(T), threads);
        hist_set_max_shared<kernel>();
        dim3 grid(1, counters.parts, channels);
        if (counters.large) // limits the time for counters to that for samples
            grid.x = hist_cut(&a, gf_divide_up(gf_sm_count(), counters.parts * channels),
                              counters.bytes / 64);
        else
            grid.x = hist_cut_common(&a);
        gf_launch_kernel(kernel, grid, threads, counters.bytes, queue, a, counters, state,
                         common ? counts : nullptr);
    };
    if constexpr (sizeof(T) == sizeof(float))
        if (a.keys) { // always too many for HIST_SHARED_BUDGET
            hist_for_layout(a, [&](auto dense, auto) {
                constexpr auto kernel =
                    hist_count<T, decltype(dense)::value, false, true, HIST_KEYS>;
                launch(std::integral_constant<decltype(kernel), kernel>{}, HIST_LARGE_THREADS);
            });
            return false;
        }
    hist_for_layout(a, [&](auto dense, auto many) {
        gf_for_flag(counters.large, [&](auto large) {
            gf_for_flag(a.ranged || a.nodata != UINT32_MAX, [&](auto ranged) {
                constexpr auto kernel = hist_count < T, decltype(dense)::value,
                               decltype(many)::value, decltype(large)::value,
                               decltype(ranged)::value ? HIST_RANGED : HIST_PLAIN > ;
                launch(std::integral_constant<decltype(kernel), kernel>{},
                       decltype(large)::value ? HIST_LARGE_THREADS : HIST_THREADS);
            });
        });
    });
    return common;
}

// ---- row sums -----------------------------------------------------------------------------------

struct HistSums {
    unsigned char *data; // gf_hist_row_sums of the first row
    size_t stride;
};

// Sum the rows of f32 in the order of filters/samples.h: thread l of a block has lane l of each
// measured channel.
// Grid: one block per row, up to 2^30; blocks then loop. Block: 256 threads. Reads each pixel once,
// writes 24 bytes per row and channel. Shared memory: 6 KB per channel. Registers: 40 to 80
// (sm_90).
template <int Measured>
__global__ void __launch_bounds__(GF_LANES) hist_sum_rows(HistArgs a, HistSums records) {
    __shared__ double sums[2 * Measured][GF_LANES];
    __shared__ uint32_t keys[2 * Measured][GF_LANES]; // for each channel the min, then the max
    const uint32_t lane = threadIdx.x, warp_lane = lane % 32;
    gf_wait_for_stream();
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        const float *row = hist_row<float>(a, y);
        double sum[Measured] = {}, squares[Measured] = {};
        uint32_t min_key[Measured], max_key[Measured] = {};
#pragma unroll
        for (int s = 0; s < Measured; s++)
            min_key[s] = UINT32_MAX;
#pragma unroll 4
        for (uint64_t x = lane; x < a.width; x += GF_LANES)
#pragma unroll
            for (int s = 0; s < Measured; s++) {
                const float sample = hist_sample<float>(a, row, x, static_cast<uint32_t>(s));
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
        for (int s = 0; s < Measured; s++) {
            sums[2 * s][lane] = sum[s];
            sums[2 * s + 1][lane] = squares[s];
            keys[2 * s][lane] = min_key[s];
            keys[2 * s + 1][lane] = max_key[s];
        }
        __syncthreads();
        gf_hist_row_sums *record =
            reinterpret_cast<gf_hist_row_sums *>(records.data + y * records.stride);
        // Each warp reduces one tree at a time.
        for (uint32_t i = lane / 32; i < 2 * Measured; i += GF_LANES / 32) {
            double x[8];
            uint32_t key = keys[i][warp_lane];
#pragma unroll
            for (uint32_t k = 0; k < 8; k++) {
                const uint32_t other = keys[i][warp_lane + 32 * k];
                x[k] = sums[i][warp_lane + 32 * k];
                key = i % 2 ? max(key, other) : min(key, other);
            }
#pragma unroll
            for (int stride = 4; stride > 0; stride /= 2)
#pragma unroll
                for (int k = 0; k < stride; k++)
                    x[k] = __dadd_rn(x[k], x[k + stride]);
            double total = gf_reduce_group<32>(x[0], gf_plus());
            total = total == total ? total : __longlong_as_double(0x7ff8000000000000ll);
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

static void hist_launch_sums(const gf_hist_plan *plan, const gf_strip *strip, const HistArgs &a,
                             gf_queue *queue) {
    const gf_rows records = gf_strip_records(&plan->head, strip);
    unsigned char *data = reinterpret_cast<unsigned char *>(gf_hist_sums_of(plan, records.data));
    gf_for_channels(a.measured, [&](auto n) {
        gf_launch_kernel(hist_sum_rows<decltype(n)::value>, gf_blocks(a.rows, 1), GF_LANES, 0,
                         queue, a, HistSums{data, records.stride});
    });
}

// ---- mask ---------------------------------------------------------------------------------------

struct HistMask {
    unsigned char *out; // first row
    size_t out_stride;
    uint32_t out_channels;
};

// Draw the pixels in extracted bins, and black elsewhere.
// Grid: one thread per pixel, at most 8 blocks per SM, which loop. Block: 512 threads. Reads and
// writes each pixel once. Shared memory: none. Registers: 40 to 48 (sm_90).
template <typename T>
__global__ void __launch_bounds__(HIST_THREADS) hist_draw_mask(HistArgs a, HistMask mask) {
    gf_wait_for_stream();
    const uint64_t pixels = a.width * a.rows;
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * HIST_THREADS;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * HIST_THREADS + threadIdx.x; i < pixels;
         i += step) {
        const uint64_t y = i / a.width, x = i % a.width;
        const T *row = hist_row<T>(a, y);
        bool selected = false;
        for (uint32_t s = 0; s < a.measured && !selected; s++)
            selected = hist_nth(a, hist_bin<T>(a, hist_sample<T>(a, row, x, s))) < a.extracts;
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

// ---- extraction ---------------------------------------------------------------------------------

template <typename T, bool DENSE>
static void hist_extract_few(const gf_hist_plan *plan, const HistArgs &a, unsigned grid,
                             bool counted, uint32_t *counts, hist_u64 *payload, gf_queue *queue) {
    if (!counted)
        gf_launch_kernel(hist_count_selected<T, DENSE>, grid, HIST_THREADS, 0, queue, a, counts);
    if (a.extracts == 1 && a.nodata == UINT32_MAX) { // the samples of the bin form an interval
        constexpr auto kernel = hist_select<T, DENSE>;
        hist_set_max_shared<kernel>();
        gf_launch_kernel(kernel, grid, HIST_THREADS, sizeof(HistPass<T>), queue, a,
                         hist_window<T>(plan), counts, payload);
    } else {
        constexpr auto kernel = hist_split<T, DENSE>;
        hist_set_max_shared<kernel>();
        gf_launch_kernel(kernel, grid, HIST_THREADS, sizeof(HistSplitShared<T>), queue, a, counts,
                         payload);
    }
}

template <typename T, bool DENSE>
static void hist_extract_sorted(const HistArgs &a, unsigned grid, void *memory, hist_u64 *payload,
                                gf_queue *queue) {
    const uint64_t n = a.rows * a.samples;
    const HistSortScratch scratch = hist_sort_scratch(n, a.extracts);
    unsigned char *base = static_cast<unsigned char *>(memory);
    gf_launch_kernel(hist_keys<T, DENSE>, grid, HIST_THREADS, 0, queue, a,
                     reinterpret_cast<uint32_t *>(base),
                     reinterpret_cast<hist_u64 *>(base + scratch.indices));
    hist_sort(memory, n, a.extracts, queue);
    const unsigned bins = static_cast<unsigned>(gf_divide_up(a.extracts + 1, HIST_THREADS));
    gf_launch_kernel(hist_offsets, bins, HIST_THREADS, 0, queue,
                     reinterpret_cast<const uint32_t *>(base + scratch.sorted_keys), n, a.extracts,
                     payload);
    gf_launch_kernel(hist_collect<T>, gf_grid(n, HIST_THREADS), HIST_THREADS, 0, queue, a,
                     reinterpret_cast<const hist_u64 *>(base + scratch.sorted_indices), payload);
}

template <typename T>
static void hist_extract(const gf_hist_plan *plan, HistArgs a, bool counted, void *scratch,
                         hist_u64 *payload, gf_queue *queue) {
    const bool dense = hist_dense(a);
    hist_join_rows(&a, 16 / sizeof(T));
    const unsigned grid = hist_cut_common(&a);
    gf_for_flag(dense, [&](auto flag) {
        const bool DENSE = decltype(flag)::value;
        if (a.extracts > GF_HIST_MAX_LISTED)
            hist_extract_sorted<T, DENSE>(a, grid, scratch, payload, queue);
        else
            hist_extract_few<T, DENSE>(plan, a, grid, counted, static_cast<uint32_t *>(scratch),
                                       payload, queue);
    });
}

// ---- launch -------------------------------------------------------------------------------------

// Set the constants of hist_bin_exact and hist_bins_ranged.
static void hist_set_scale(HistArgs *a) {
    const double scale = a->bins / a->span, margin = (a->bins + 2 + fabs(a->lo * scale)) * 0x1p-21;
    if (isfinite(a->span) && scale > 1e-290 && scale < 1e290)
        a->scale = scale;
    a->quick_scale = static_cast<float>(scale);
    a->quick_lo = static_cast<float>(a->lo * scale);
    a->margin = scale > 1e-30 && scale < 1e30 && margin < 0.25 ? static_cast<float>(margin) : 1;
}

static HistArgs hist_args_of(const gf_hist_plan *plan, const gf_strip *strip) {
    HistArgs a = {};
    a.in = gf_row(&strip->in, strip->out.y0);
    a.in_stride = strip->in.stride;
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
    hist_set_scale(&a);
    // The tables of three u8 channels leave shared memory for two resident blocks.
    const bool wide = plan->head.in.type == GF_U8 && plan->measured == 3 && !plan->per_row;
    a.blocks = wide && hist_tables_fit(3) ? HistTable<3>::blocks : HIST_BLOCKS;
    a.extracts = plan->extracts;
    for (int i = 0; i < GF_HIST_MAX_LISTED; i++)
        a.listed[i] = plan->listed[i];
    return a;
}

template <typename T>
static void hist_run(const gf_hist_plan *plan, const gf_strip *strip, const HistArgs &a,
                     void *scratch, gf_queue *queue) {
    hist_u64 *state = static_cast<hist_u64 *>(strip->state);
    const bool few = a.extracts > 0 && a.extracts <= GF_HIST_MAX_LISTED;
    uint32_t *counts = few ? static_cast<uint32_t *>(scratch) : nullptr;
    bool counted = false;
    if (plan->per_row)
        hist_rows<T>(plan, strip, a, queue);
    else if (!plan->folded)
        counted = hist_launch_count(a, T{}, state, counts, queue);
    if (plan->values) {
        const gf_hist_plan values = gf_hist_value_plan(plan);
        hist_launch_count(hist_args_of(&values, strip), T{}, state + gf_hist_state_counters(plan),
                          nullptr, queue);
    }
    if (plan->row_sums)
        hist_launch_sums(plan, strip, a, queue);
    if (plan->mask)
        gf_launch_kernel(hist_draw_mask<T>, gf_grid(a.rows * a.width, HIST_THREADS), HIST_THREADS,
                         0, queue, a,
                         HistMask{strip->out.data, strip->out.stride, plan->head.out.channels});
    if (a.extracts)
        hist_extract<T>(plan, a, counted, scratch, static_cast<hist_u64 *>(strip->payload), queue);
}

static size_t hist_scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_hist_plan *plan = reinterpret_cast<const gf_hist_plan *>(head);
    const uint64_t n = in_rows * head->in.width * plan->measured;
    if (plan->extracts == 0)
        return 0;
    if (plan->extracts > GF_HIST_MAX_LISTED)
        return hist_sort_scratch(n, plan->extracts).bytes;
    return hist_max_blocks(n) * plan->extracts * sizeof(uint32_t);
}

static void hist_launch(const gf_plan *head, const gf_strip *strip, void *scratch,
                        gf_queue *queue) {
    const gf_hist_plan *plan = reinterpret_cast<const gf_hist_plan *>(head);
    const HistArgs a = hist_args_of(plan, strip);
    gf_for_type(head->in.type,
                [&](auto sample) { hist_run<decltype(sample)>(plan, strip, a, scratch, queue); });
}

extern "C" const gf_filter_cuda gf_hist_cuda = {hist_scratch_bytes, hist_launch, nullptr, 0, true};
