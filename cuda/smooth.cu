// smooth on the GPU: which kernel runs, on what.
#include "device.cuh"
#include "smooth_general.cuh"
#include "smooth_kernels.cuh"

#include "smooth/smooth.h"

#define SHARED_BYTES_LIMIT (48 * 1024) // what a block has on every device without asking
#define ROW_PIECE_SAMPLES 1024
#define COLUMN_PIECE_ROWS 64

static gf_smooth_constants constants_of(const gf_smooth_plan *plan) {
    return {plan->gain, plan->weight, plan->inner_factor, plan->end_factor, plan->smooth};
}

// ---- the general kernel -------------------------------------------------------------------------

static size_t general_shared(int length, int radius, int lanes) {
    return static_cast<size_t>(2 * (length + 2 * radius + 2) + length + 2) * lanes * sizeof(float);
}

template <typename Tin, typename Tout>
static void launch_general(const gf_general_args &a, cudaStream_t stream) {
    const uint64_t pieces = (a.last - a.first + a.length - 1) / a.length * a.across;
    // One wave: each block then works through several pieces, loading one while it blurs another.
    smooth_general<Tin, Tout><<<gf_grid(pieces, 1), GF_GENERAL_THREADS,
                                general_shared(a.length, a.radius, a.lanes), stream>>>(a);
}

// All rows of out, along x.
template <typename Tin, typename Tout>
static void general_rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                         cudaStream_t stream) {
    const int channels = static_cast<int>(plan->head.in.channels);
    gf_general_args a = {};
    a.in = gf_row(in, out->y0);
    a.out = out->data;
    a.in_across = in->stride;
    a.out_across = out->stride;
    a.in_position = channels * sizeof(Tin);
    a.out_position = channels * sizeof(Tout);
    a.signal = a.last = plan->head.in.width;
    a.across = out->rows;
    a.tile = plan->tile;
    a.lanes = channels;
    a.last_lanes = channels;
    a.length = ROW_PIECE_SAMPLES / channels;
    a.radius = static_cast<int>(plan->radius);
    a.channels = channels;
    a.constants = constants_of(plan);
    launch_general<Tin, Tout>(a, stream);
}

// All rows of out, along y.
template <typename Tin, typename Tout>
static void general_columns(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                            cudaStream_t stream) {
    const uint64_t samples = gf_row_samples(&plan->head.in);
    gf_general_args a = {};
    a.radius = static_cast<int>(plan->radius);
    a.length = COLUMN_PIECE_ROWS;
    a.lanes = general_shared(a.length, a.radius, 32) <= SHARED_BYTES_LIMIT ? 32 : 16;
    a.in = in->data;
    a.in_first = in->y0;
    a.out = out->data;
    a.in_across = a.lanes * sizeof(Tin);
    a.out_across = a.lanes * sizeof(Tout);
    a.in_position = in->stride;
    a.out_position = out->stride;
    a.signal = plan->head.in.height;
    a.first = out->y0;
    a.last = out->y0 + out->rows;
    a.across = (samples + a.lanes - 1) / a.lanes;
    a.last_lanes = samples - (a.across - 1) * a.lanes;
    a.tile = plan->tile;
    a.channels = static_cast<int>(plan->head.in.channels);
    a.constants = constants_of(plan);
    launch_general<Tin, Tout>(a, stream);
}

static_assert((2 * (COLUMN_PIECE_ROWS + 2 * GF_SMOOTH_MAX_RADIUS + 2) + COLUMN_PIECE_ROWS + 2) *
                      16 * sizeof(float) <=
                  SHARED_BYTES_LIMIT,
              "16 lanes must fit at the largest radius");
static_assert((2 * (ROW_PIECE_SAMPLES + (2 * GF_SMOOTH_MAX_RADIUS + 2) * GF_MAX_CHANNELS) +
               ROW_PIECE_SAMPLES + 2 * GF_MAX_CHANNELS) *
                      sizeof(float) <=
                  SHARED_BYTES_LIMIT,
              "a piece of a row must fit at the largest radius");

// ---- choice -------------------------------------------------------------------------------------

template <typename Tin, typename Tout>
static void rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                 cudaStream_t stream) {
    const bool to_float = sizeof(Tout) > sizeof(Tin);
    if (sizeof(Tout) == 1 && (gf_smooth_mma_rows(plan, in, out, stream) ||
                              gf_smooth_integer_rows(plan, in, out, stream)))
        return;
    if (!gf_smooth_chain_rows(plan, to_float, in, out, stream))
        general_rows<Tin, Tout>(plan, in, out, stream);
}

// The unrounded result of the x pass, for the y pass of axis xy.
static size_t between_stride(const gf_plan *plan) {
    return (static_cast<size_t>(gf_row_samples(&plan->in)) * sizeof(float) + 63) & ~size_t(63);
}

template <typename T>
static void run(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out, void *scratch,
                cudaStream_t stream) {
    if (plan->axis == GF_SMOOTH_X) {
        rows<T, T>(plan, in, out, stream);
    } else if (plan->axis == GF_SMOOTH_Y) {
        general_columns<T, T>(plan, in, out, stream);
    } else {
        const gf_rows between = {static_cast<unsigned char *>(scratch), between_stride(&plan->head),
                                 in->y0, in->rows};
        rows<T, float>(plan, in, &between, stream);
        general_columns<float, T>(plan, &between, out, stream);
    }
}

static size_t scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_smooth_plan *plan = reinterpret_cast<const gf_smooth_plan *>(head);
    return plan->axis == GF_SMOOTH_XY ? static_cast<size_t>(in_rows) * between_stride(head) : 0;
}

static gf_status launch(const gf_plan *head, const gf_band *band, void *scratch,
                        void *stream_handle, gf_error *error) {
    const gf_rows *in = &band->in, *out = &band->out;
    const gf_smooth_plan *plan = reinterpret_cast<const gf_smooth_plan *>(head);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    gf_for_type(head->in.type,
                [&](auto sample) { run<decltype(sample)>(plan, in, out, scratch, stream); });
    return gf_cuda_check(cudaGetLastError(), "smooth", error);
}

extern "C" const gf_filter_cuda gf_smooth_cuda = {scratch_bytes, launch};
