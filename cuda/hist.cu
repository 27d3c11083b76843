// hist on the GPU: which kernels run, on what.
#include "hist_mask.cuh"
#include "hist_rows.cuh"
#include "hist_sort.cuh"
#include "hist_split.cuh"

#include <math.h>

namespace {

// ---- counting -----------------------------------------------------------------------------------

// Each is true if it has written how many samples of the extracted bins the chunks have.

template <uint32_t Tables, bool Dense>
bool count_values_of(HistArgs a, uint32_t channels, hist_u64 *state, uint32_t *counts,
                     cudaStream_t stream) {
    const auto kernel = hist_count_values<Tables, Dense>;
    const size_t shared = HistTable<Tables>::all;
    hist_join_rows(&a, 16);
    const dim3 grid(hist_cut_common(&a), 1, channels);
    hist_allow(kernel, shared);
    kernel<<<grid, HIST_THREADS, shared, stream>>>(a, state, channels == 1 ? counts : nullptr);
    return channels == 1;
}

// Whether a block has room for the tables of so many channels.
bool tables_fit(uint32_t channels) {
    const size_t tables = channels == 3 ? HistTable<3>::all : HistTable<4>::all;
    return tables + 8 * 1024 <= hist_device(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

bool count_values(HistArgs a, hist_u64 *state, uint32_t *counts, cudaStream_t stream) {
    const uint32_t measured = a.measured;
    if (measured >= 3 && !tables_fit(measured)) {
        a.measured = 1; // blocks for each channel
        return count_values_of<1, false>(a, measured, state, counts, stream);
    }
    if (!hist_dense(a))
        return count_values_of<1, false>(a, 1, state, counts, stream);
    if (measured == 1)
        return count_values_of<1, true>(a, 1, state, counts, stream);
    if (measured == 2)
        return count_values_of<2, true>(a, 1, state, counts, stream);
    if (measured == 3)
        return count_values_of<3, true>(a, 1, state, counts, stream);
    return count_values_of<4, true>(a, 1, state, counts, stream);
}

template <typename T, bool Dense, bool Many, bool Large, bool Ranged>
bool count_bins_by(HistArgs a, uint32_t channels, const HistCounters &counters, hist_u64 *state,
                   uint32_t *counts, cudaStream_t stream) {
    const auto kernel = hist_count<T, Dense, Many, Large, Ranged>;
    const uint32_t threads = Large ? HIST_LARGE_THREADS : HIST_THREADS;
    hist_join_rows(&a, 16 / sizeof(T), threads);
    hist_allow(kernel, counters.bytes);
    dim3 grid(1, counters.parts, channels);
    if (Large) // what a block does for its counters should not be more than for its samples
        grid.x = hist_cut(
            &a, hist_up(hist_device(cudaDevAttrMultiProcessorCount), counters.parts * channels),
            counters.bytes / 64);
    else
        grid.x = hist_cut_common(&a);
    const bool common = !Large && channels == 1;
    kernel<<<grid, threads, counters.bytes, stream>>>(a, counters, state,
                                                      common ? counts : nullptr);
    return common;
}

template <typename T, bool Dense, bool Many>
bool count_bins_of(const HistArgs &a, uint32_t channels, const HistCounters &counters,
                   hist_u64 *state, uint32_t *counts, cudaStream_t stream) {
    const auto by = a.ranged ? (counters.large ? count_bins_by<T, Dense, Many, true, true>
                                               : count_bins_by<T, Dense, Many, false, true>)
                             : (counters.large ? count_bins_by<T, Dense, Many, true, false>
                                               : count_bins_by<T, Dense, Many, false, false>);
    return by(a, channels, counters, state, counts, stream);
}

template <typename T>
bool count_bins(HistArgs a, hist_u64 *state, uint32_t *counts, cudaStream_t stream) {
    uint32_t channels = 1;
    HistCounters counters = hist_counters(a.measured * a.counters);
    if (counters.large && a.measured > 1) {
        channels = a.measured; // blocks for each channel
        a.measured = 1;
        counters = hist_counters(a.counters);
    }
    if (!hist_dense(a))
        return count_bins_of<T, false, false>(a, channels, counters, state, counts, stream);
    if (a.measured > 1)
        return count_bins_of<T, true, true>(a, channels, counters, state, counts, stream);
    return count_bins_of<T, true, false>(a, channels, counters, state, counts, stream);
}

// ---- extraction ---------------------------------------------------------------------------------

template <typename T, bool Dense>
void extract_few(HistArgs a, bool counted, uint32_t *counts, hist_u64 *payload,
                 cudaStream_t stream) {
    hist_join_rows(&a, 16 / sizeof(T));
    const unsigned grid = hist_cut_common(&a);
    if (!counted)
        hist_count_selected<T, Dense><<<grid, HIST_THREADS, 0, stream>>>(a, counts);
    if (a.extracts == 1) {
        const auto kernel = hist_place<T, Dense>;
        hist_allow(kernel, sizeof(HistTurn<T>));
        kernel<<<grid, HIST_THREADS, sizeof(HistTurn<T>), stream>>>(
            a, hist_window<T>(a, a.extract_all ? 0 : a.listed[0]), counts, payload);
    } else {
        const auto kernel = hist_split<T, Dense>;
        hist_allow(kernel, sizeof(HistSplitShared<T>));
        kernel<<<grid, HIST_THREADS, sizeof(HistSplitShared<T>), stream>>>(a, counts, payload);
    }
}

template <typename T, bool Dense>
gf_status extract_sorted(HistArgs a, void *memory, hist_u64 *payload, cudaStream_t stream,
                         gf_error *error) {
    hist_join_rows(&a, 16 / sizeof(T));
    const unsigned grid = hist_cut_common(&a);
    const uint64_t n = a.rows * a.samples;
    const HistSortScratch scratch = hist_sort_scratch(n, a.extracts);
    unsigned char *base = static_cast<unsigned char *>(memory);
    hist_keys<T, Dense>
        <<<grid, HIST_THREADS, 0, stream>>>(a, reinterpret_cast<uint32_t *>(base + scratch.keys),
                                            reinterpret_cast<hist_u64 *>(base + scratch.places));
    const gf_status status = hist_sort(memory, n, a.extracts, stream, error);
    if (status)
        return status;
    hist_offsets<<<static_cast<unsigned>(hist_up(a.extracts + 1, HIST_THREADS)), HIST_THREADS, 0,
                   stream>>>(reinterpret_cast<const uint32_t *>(base + scratch.sorted_keys), n,
                             a.extracts, payload);
    hist_collect<T><<<gf_grid(n, HIST_THREADS), HIST_THREADS, 0, stream>>>(
        a, reinterpret_cast<const hist_u64 *>(base + scratch.sorted_places), payload);
    return GF_OK;
}

template <typename T>
gf_status extract(const HistArgs &a, bool counted, void *scratch, hist_u64 *payload,
                  cudaStream_t stream, gf_error *error) {
    if (a.extracts > GF_HIST_MAX_LISTED)
        return hist_dense(a) ? extract_sorted<T, true>(a, scratch, payload, stream, error)
                             : extract_sorted<T, false>(a, scratch, payload, stream, error);
    uint32_t *counts = static_cast<uint32_t *>(scratch);
    if (hist_dense(a))
        extract_few<T, true>(a, counted, counts, payload, stream);
    else
        extract_few<T, false>(a, counted, counts, payload, stream);
    return GF_OK;
}

// ---- all of it ----------------------------------------------------------------------------------

template <typename T>
gf_status run(const gf_hist_plan *plan, const gf_band *band, const HistArgs &a, void *scratch,
              cudaStream_t stream, gf_error *error) {
    hist_u64 *state = static_cast<hist_u64 *>(band->state);
    uint32_t *counts = a.extracts > 0 && a.extracts <= GF_HIST_MAX_LISTED
                           ? static_cast<uint32_t *>(scratch)
                           : nullptr;
    bool counted = false;
    gf_status status = GF_OK;
    if (plan->per_row) {
        status = hist_rows<T>(plan, band, a, stream, error);
    } else if constexpr (sizeof(T) == 1) {
        counted = count_values(a, state, counts, stream);
    } else {
        counted = count_bins<T>(a, state, counts, stream);
    }
    if (plan->mask) {
        const HistMask mask = {band->out.data, band->out.stride, plan->head.out.channels};
        draw_mask<T><<<gf_grid(a.rows * a.width, HIST_THREADS), HIST_THREADS, 0, stream>>>(a, mask);
    }
    if (!status && a.extracts)
        status =
            extract<T>(a, counted, scratch, static_cast<hist_u64 *>(band->payload), stream, error);
    return status;
}

size_t scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_hist_plan *plan = reinterpret_cast<const gf_hist_plan *>(head);
    const uint64_t n = in_rows * head->in.width * plan->measured;
    if (plan->extracts == 0)
        return 0;
    if (plan->extracts > GF_HIST_MAX_LISTED)
        return hist_sort_scratch(n, plan->extracts).bytes;
    return hist_most_blocks(n) * plan->extracts * sizeof(uint32_t);
}

// What hist_bin_ranged needs.
void set_scale(HistArgs *a) {
    const double scale = a->bins / a->span, blur = (a->bins + 2 + fabs(a->lo * scale)) * 0x1p-21;
    if (isfinite(a->span) && scale > 1e-290 && scale < 1e290)
        a->scale = scale;
    a->quick_scale = static_cast<float>(scale);
    a->quick_lo = static_cast<float>(a->lo * scale);
    a->blur = scale > 1e-30 && scale < 1e30 && blur < 0.25 ? static_cast<float>(blur) : 1;
}

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    const gf_hist_plan *plan = reinterpret_cast<const gf_hist_plan *>(head);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    HistArgs a = {};
    a.in = gf_row(&band->in, band->out.y0);
    a.in_stride = band->in.stride;
    a.width = head->in.width;
    a.rows = band->out.rows;
    a.before = band->out.y0 * a.width * plan->measured;
    a.channels = head->in.channels;
    a.first = plan->first;
    a.measured = plan->measured;
    a.bins = plan->bins;
    a.counters = plan->counters;
    a.luma = plan->luma;
    a.ranged = plan->ranged;
    a.extract_all = plan->extract_all;
    a.lo = plan->lo;
    a.hi = plan->hi;
    a.span = plan->hi - plan->lo;
    set_scale(&a);
    // Three channels of u8 have tables that take the room of a block.
    const bool wide = head->in.type == GF_U8 && plan->measured == 3 && !plan->per_row;
    a.blocks = wide && tables_fit(3) ? HistTable<3>::blocks : HIST_BLOCKS;
    a.extracts = plan->extracts;
    for (int i = 0; i < GF_HIST_MAX_LISTED; i++)
        a.listed[i] = plan->listed[i];
    gf_status status = GF_OK;
    gf_for_type(head->in.type, [&](auto sample) {
        status = run<decltype(sample)>(plan, band, a, scratch, stream, error);
    });
    return status ? status : gf_cuda_check(cudaGetLastError(), "hist", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_hist_cuda = {scratch_bytes, launch};
