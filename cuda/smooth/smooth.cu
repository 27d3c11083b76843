// smooth on CUDA: the choice of kernels, and the general kernel.
#include "cuda/smooth/device.cuh"

struct general_policy {
    static constexpr int THREADS = 256;
    static constexpr int ROW_SAMPLES = 1024; // per piece of a row
    static constexpr int LANES = 32;         // columns of a signal
    static constexpr int COLUMN_ROWS = 62;   // per piece; with the means around it, 8 per thread
};

// The samples of a strip, on one side of the kernel.
struct general_side {
    unsigned char *data; // position `first` of signal 0
    uint64_t first;
    size_t across, along; // bytes from one signal, and from one position, to the next
};

struct general_args {
    general_side in, out;
    uint64_t length;           // positions of a whole signal
    uint64_t first, last;      // output positions [first, last)
    uint64_t signals, samples; // samples: at one position of all signals
    uint64_t tile;             // 0: no tiles
    uint64_t radius;
    uint32_t piece; // positions; the last one of a signal may be shorter
    int lanes;
    int alpha; // lanes in which all of these bits are set are copied; 0: none
    gf_smooth_constants constants;
    gf_images<2> images; // of rows only: signals of all images in order
};

// Return the mean at position p. sample: the enhanced sample there, of the lane.
GF_DEVICE float general_mean(const general_args &a, uint64_t p, const float *sample) {
    uint64_t begin, end;
    gf_smooth_tile(a.tile, p, a.length, &begin, &end);
    const int before = static_cast<int>(min(p - begin, a.radius));
    const int after = static_cast<int>(min(end - 1 - p, a.radius));
    sample -= before * a.lanes;
    float sum = *sample;
    for (int k = 0; k < before + after; k++) {
        sample += a.lanes;
        sum = __fadd_rn(sum, *sample);
    }
    return __fdiv_rn(sum, static_cast<float>(before + after + 1));
}

// Return the result at position p from the means around it. mean: the one there, of the lane.
GF_DEVICE float general_smooth(const general_args &a, uint64_t p, const float *mean) {
    uint64_t begin, end;
    gf_smooth_tile(a.tile, p, a.length, &begin, &end);
    const bool has_prev = p > begin, has_next = p + 1 < end;
    return gf_smooth_mid(has_prev ? mean[-a.lanes] : 0.0f, *mean, has_next ? mean[a.lanes] : 0.0f,
                         has_prev, has_next, a.constants);
}

// Smooth rows or columns.
// Rows and columns are the same problem: a signal has positions with `lanes` samples each, and
// position p + 1 is stored `lanes` floats after position p in shared memory. Rows: a position is a
// pixel, and the lanes are its channels. Columns: a position is a row, and the lanes are adjacent
// samples of it.
// Grid: one block per piece of a signal; blocks loop over more than 2^30 pieces. Block: 256 threads
// at most, a multiple of the lanes. It loads and enhances a piece and its halo, computes the means,
// then smooths and stores, with barriers between; other resident blocks load at the same time.
// Reads each sample 1 + 2 * (radius + 1) / piece times, writes it once. Windows are clipped at the
// ends of a tile, therefore every width, height and tile size is exact. Tail: lanes after the last
// sample of a row load and store nothing. Shared memory: (2 * piece + 2 * radius + 4) * lanes
// floats. Registers: 32 (sm_90), 8 resident blocks up to a radius of 40.
template <typename Tin, typename Tout>
__global__ void __launch_bounds__(general_policy::THREADS)
    smooth_general(const __grid_constant__ general_args a) {
    extern __shared__ float loaded[];
    const uint64_t side = a.constants.smooth ? 1 : 0, reach = a.radius + side;
    const uint64_t pieces = (a.last - a.first + a.piece - 1) / a.piece; // of a signal
    const int lanes = a.lanes, lane = threadIdx.x % lanes;
    const uint32_t thread = threadIdx.x / lanes, step = blockDim.x / lanes;
    float *const blurred = loaded + (a.piece + 2 * reach) * lanes;
    gf_wait_for_stream();
    for (uint64_t n = blockIdx.x; n < pieces * a.signals; n += gridDim.x) {
        const uint64_t signal = n / pieces, begin = a.first + n % pieces * a.piece;
        const uint64_t end = min(begin + a.piece, a.last);
        // Rows that only the smooth stage would read may be missing.
        const uint64_t load = begin - min(begin, reach), load_end = min(end + reach, a.length);
        const uint64_t blur = begin - min(begin, side), blur_end = min(end + side, a.length);
        const bool active = signal * lanes + lane < a.samples;
        const gf_image_row row = gf_find_row(a.images, signal);
        const unsigned char *in = a.in.data + a.images.at[0][row.image] + row.y * a.in.across;
        unsigned char *out = a.out.data + a.images.at[1][row.image] + row.y * a.out.across;
        const auto in_at = [&](uint64_t p) {
            return reinterpret_cast<const Tin *>(in + (p - a.in.first) * a.in.along)[lane];
        };
        // Counted, so that the compiler issues four loads at a time.
        const uint32_t ahead = static_cast<uint32_t>(load_end - load) + step - 1 - thread;
        const uint32_t loads = active ? ahead / step : 0;
#pragma unroll 4
        for (uint32_t i = 0; i < loads; i++)
            loaded[threadIdx.x + i * blockDim.x] =
                gf_smooth_enhance(gf_load(in_at(load + thread + i * step)), a.constants.gain);
        __syncthreads();
        for (uint64_t p = blur + thread; active && p < blur_end; p += step)
            blurred[static_cast<int>(p - blur) * lanes + lane] =
                general_mean(a, p, loaded + static_cast<int>(p - load) * lanes + lane);
        __syncthreads();
        for (uint64_t p = begin + thread; active && p < end; p += step) {
            Tout *to = reinterpret_cast<Tout *>(out + (p - a.out.first) * a.out.along) + lane;
            const float *mean = blurred + static_cast<int>(p - blur) * lanes + lane;
            // Rows: lanes are channels. Columns: each signal starts at a multiple of 4 samples.
            *to = a.alpha && (lane & a.alpha) == a.alpha ? gf_convert<Tout>(in_at(p))
                  : a.constants.smooth ? gf_store<Tout>(general_smooth(a, p, mean))
                                       : gf_store<Tout>(*mean);
        }
    }
}

static constexpr size_t general_shared(size_t piece, size_t radius, size_t lanes) {
    return (2 * piece + 2 * radius + 4) * lanes * sizeof(float);
}

// Without opt-in, every device has 48 KB per block. A piece of a row of 4 channels is smaller.
static_assert(general_shared(general_policy::COLUMN_ROWS, GF_SMOOTH_MAX_RADIUS,
                             general_policy::LANES) <= 48 << 10,
              "a piece of columns must fit at the largest radius");

// Queue the kernel for all rows of a strip, along x or y. Supports every plan.
template <bool COLUMNS> static void general_launch(const gf_smooth_job &job) {
    typedef general_policy Policy;
    const gf_smooth_plan *plan = job.plan;
    const gf_rows *in = &job.strip.in[0], *out = &job.strip.out;
    const gf_format *format = &plan->head.in;
    const int channels = static_cast<int>(format->channels);
    general_args a = {};
    a.tile = plan->tile;
    a.radius = plan->radius;
    a.alpha = gf_has_alpha(format) ? channels - 1 : 0;
    a.constants = gf_smooth_constants_of(plan);
    a.images.count = 1;
    if (!COLUMNS)
        a.images = gf_images_of<2>(&plan->head, &job.strip);
    a.piece = COLUMNS ? Policy::COLUMN_ROWS : Policy::ROW_SAMPLES / channels;
    a.lanes = COLUMNS ? Policy::LANES : channels;
    a.length = COLUMNS ? format->height : format->width;
    a.first = COLUMNS ? out->y0 : 0;
    a.last = COLUMNS ? out->y0 + out->rows : format->width;
    a.samples = COLUMNS ? gf_row_samples(format) : out->rows * a.images.count * channels;
    a.signals = gf_divide_up(a.samples, a.lanes);
    gf_dispatch(
        [&](auto sample, auto wide) {
            typedef decltype(sample) Sample;
            typedef std::conditional_t<wide, float, Sample> Wide;
            typedef std::conditional_t<COLUMNS, Wide, Sample> Tin;
            typedef std::conditional_t<COLUMNS, Sample, Wide> Tout;
            const size_t in_bytes = a.lanes * sizeof(Tin), out_bytes = a.lanes * sizeof(Tout);
            a.in = COLUMNS ? general_side{in->data, in->y0, in_bytes, in->stride}
                           : general_side{gf_row(in, out->y0), 0, in->stride, in_bytes};
            a.out = COLUMNS ? general_side{out->data, out->y0, out_bytes, out->stride}
                            : general_side{out->data, 0, out->stride, out_bytes};
            const uint64_t pieces = gf_divide_up(a.last - a.first, a.piece) * a.signals;
            gf_launch_kernel(smooth_general<Tin, Tout>, gf_blocks(pieces, 1),
                             Policy::THREADS / a.lanes * a.lanes,
                             general_shared(a.piece, a.radius, a.lanes), job.queue, a);
        },
        gf_type_of{format->type}, gf_flag{job.wide});
}

// ---- dispatch -----------------------------------------------------------------------------------

// Return the row stride of the unrounded result of the x pass, the input of the y pass of axis xy.
static size_t smooth_between_stride(const gf_plan *plan) {
    return gf_align(static_cast<size_t>(gf_row_samples(&plan->in)) * sizeof(float));
}

static size_t smooth_scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_smooth_plan *plan = reinterpret_cast<const gf_smooth_plan *>(head);
    const gf_smooth_job test = {plan, {}, true, nullptr};
    return plan->axis == GF_SMOOTH_XY && !gf_smooth_bytes(test) && !gf_smooth_stages(test)
               ? in_rows * smooth_between_stride(head)
               : 0;
}

static void smooth_launch(const gf_plan *head, const gf_strip *strip, void *scratch,
                          gf_queue *queue) {
    const gf_smooth_plan *plan = reinterpret_cast<const gf_smooth_plan *>(head);
    const gf_rows between = {static_cast<unsigned char *>(scratch), smooth_between_stride(head),
                             strip->in[0].y0, strip->in[0].rows};
    gf_smooth_job job = {plan, *strip, plan->axis == GF_SMOOTH_XY, queue};
    // Along y and along both axes in one pass, radius up to 3: window_tile, u8, weights as
    // smooth_mma; smooth_columns, along y; window_columns, both axes of u16 and f32, radius from 1.
    if (gf_smooth_bytes(job) || gf_smooth_columns(job) || gf_smooth_stages(job))
        return;
    if (job.wide)
        job.strip.out = between;
    // The kernels of rows, the fastest first. They compute most samples with other arithmetic, or
    // as if no edge were near. The remaining samples (near-ties of integers, samples near an edge)
    // take the exact path of cuda/smooth/device.cuh.
    if (plan->axis != GF_SMOOTH_Y &&
        !gf_smooth_mma_rows(job) && // smooth_mma: u8, radius up to 8, weights are small integers
        !gf_smooth_chain_rows(job)) // smooth_tiles: radius 0 to 3
        general_launch<false>(job); // smooth_general: any radius and tile
    job.strip.out = strip->out;
    if (job.wide)
        job.strip.in[0] = between;
    if (plan->axis != GF_SMOOTH_X)
        general_launch<true>(job);
}

extern "C" const gf_filter_cuda gf_smooth_cuda = {smooth_scratch_bytes, smooth_launch, nullptr,
                                                  true};
