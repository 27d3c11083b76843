// smooth on CUDA: the choice of kernels, and the general kernel.
#include "cuda/smooth/device.cuh"

// Tuning constants of smooth_general.
struct general_policy {
    static constexpr int THREADS = 256;
    static constexpr int SHARED_LIMIT = 48
                                        << 10; // bytes of a block on every device, without opt-in
    static constexpr int ROW_SAMPLES = 1024;   // per piece of a row
    static constexpr int COLUMN_ROWS = 64;     // per piece of columns
};

struct general_args {
    const unsigned char *in; // position in_first, lane 0 of signal group 0
    unsigned char *out;      // position first, likewise
    uint64_t in_first;
    size_t in_across, out_across;     // bytes from one signal group to the next
    size_t in_position, out_position; // bytes from one position to the next
    uint64_t signal;                  // positions of a whole signal
    uint64_t first, last;             // output positions [first, last)
    uint64_t across;                  // signal groups: rows, or groups of `lanes` columns
    uint64_t last_lanes;              // lanes of the last group; all others have `lanes`
    uint64_t tile;                    // 0: no tiles
    int lanes, length, radius;
    int channels; // 2 or 4: the last one is alpha; else each lane is filtered
    gf_smooth_constants constants;
    gf_images<2> images; // of rows only: signal groups of all images in order
};

struct general_piece {
    const unsigned char *in; // as in general_args, of the piece's signal group
    unsigned char *out;
    uint64_t begin, end;           // output positions
    uint64_t load_begin, load_end; // positions to load and enhance
    int lanes;
};

GF_DEVICE general_piece general_find(const general_args &a, uint64_t index) {
    const uint64_t pieces = (a.last - a.first + a.length - 1) / a.length;
    general_piece piece;
    const uint64_t across = index / pieces;
    const gf_image_row row = gf_find_row(a.images, across);
    piece.in = a.in + a.images.at[0][row.image] + row.y * a.in_across;
    piece.out = a.out + a.images.at[1][row.image] + row.y * a.out_across;
    piece.begin = a.first + (index % pieces) * a.length;
    piece.end = a.last - piece.begin < a.length ? a.last : piece.begin + a.length;
    const uint64_t reach = a.radius + 1;
    piece.load_begin = piece.begin < reach ? 0 : piece.begin - reach;
    piece.load_end = a.signal - piece.end < reach ? a.signal : piece.end + reach;
    // Columns are processed in strips: rows that only a smooth stage would read may be missing.
    if (!a.constants.smooth) {
        piece.load_begin = piece.begin < a.radius ? 0 : piece.begin - a.radius;
        piece.load_end = a.signal - piece.end < a.radius ? a.signal : piece.end + a.radius;
    }
    piece.lanes = across + 1 == a.across ? static_cast<int>(a.last_lanes) : a.lanes;
    return piece;
}

GF_DEVICE void general_tile_of(const general_args &a, uint64_t p, uint64_t *begin, uint64_t *end) {
    *begin = a.tile ? p - p % a.tile : 0;
    *end = a.tile && a.tile < a.signal - *begin ? *begin + a.tile : a.signal;
}

template <typename Tin>
static __device__ void general_load(const general_args &a, const general_piece &piece,
                                    float *loaded, int thread, int threads) {
    const int count = static_cast<int>(piece.load_end - piece.load_begin) * piece.lanes;
    const unsigned char *base = piece.in + (piece.load_begin - a.in_first) * a.in_position;
    for (int i = thread; i < count; i += threads) {
        const int position = i / piece.lanes, lane = i - position * piece.lanes;
        const Tin *p = reinterpret_cast<const Tin *>(base + position * a.in_position) + lane;
        loaded[i] = gf_smooth_enhance(gf_load(*p), a.constants.gain);
    }
}

// Blur a piece. blurred: positions [begin - 1, end + 1), as far as they exist and are needed.
static __device__ void general_blur_piece(const general_args &a, const general_piece &piece,
                                          const float *loaded, float *blurred, int thread,
                                          int threads) {
    const int side = a.constants.smooth ? 1 : 0;
    const uint64_t from = piece.begin < side ? 0 : piece.begin - side;
    const uint64_t to = a.signal - piece.end < side ? a.signal : piece.end + side;
    const int count = static_cast<int>(to - from) * piece.lanes;
    for (int i = thread; i < count; i += threads) {
        const int position = i / piece.lanes, lane = i - position * piece.lanes;
        const uint64_t p = from + position;
        uint64_t tile_begin, tile_end;
        general_tile_of(a, p, &tile_begin, &tile_end);
        uint64_t lo = p - tile_begin < a.radius ? tile_begin : p - a.radius;
        uint64_t hi = tile_end - 1 - p < a.radius ? tile_end - 1 : p + a.radius;
        // Positions at the ends may belong to an adjacent tile; no result needs their means.
        lo = lo < piece.load_begin ? piece.load_begin : lo;
        hi = hi < piece.load_end ? hi : piece.load_end - 1;
        const int at = static_cast<int>(lo - piece.load_begin) * piece.lanes + lane;
        const int index = static_cast<int>(p + 1 - piece.begin) * piece.lanes + lane;
        const int taps = static_cast<int>(hi - lo) + 1;
        const float *sample = loaded + at;
        float sum = *sample;
        for (int k = 1; k < taps; k++) {
            sample += piece.lanes;
            sum = __fadd_rn(sum, *sample);
        }
        blurred[index] = __fdiv_rn(sum, static_cast<float>(taps));
    }
}

template <typename Tin, typename Tout>
static __device__ void general_store(const general_args &a, const general_piece &piece,
                                     const float *blurred, int thread, int threads) {
    const int count = static_cast<int>(piece.end - piece.begin) * piece.lanes;
    const bool has_alpha = GF_COLOURS(a.channels) < a.channels;
    for (int i = thread; i < count; i += threads) {
        const int position = i / piece.lanes, lane = i - position * piece.lanes;
        const uint64_t p = piece.begin + position;
        Tout *q = reinterpret_cast<Tout *>(piece.out + (p - a.first) * a.out_position) + lane;
        // Rows: lanes are channels. Columns: each group starts at a multiple of 4 samples.
        if (has_alpha && (lane & (a.channels - 1)) == a.channels - 1) {
            const Tin *source =
                reinterpret_cast<const Tin *>(piece.in + (p - a.in_first) * a.in_position) + lane;
            *q = gf_convert<Tout>(*source);
            continue;
        }
        uint64_t tile_begin, tile_end;
        general_tile_of(a, p, &tile_begin, &tile_end);
        const gf_smooth_end end = {p > tile_begin, p + 1 < tile_end};
        const float *mid = blurred + (position + 1) * piece.lanes + lane;
        float t = *mid;
        if (a.constants.smooth)
            t = gf_smooth_mid(end.has_prev ? mid[-piece.lanes] : 0.0f, t,
                              end.has_next ? mid[piece.lanes] : 0.0f, end, a.constants);
        *q = gf_store<Tout>(t);
    }
}

// Smooth rows or columns.
// Rows and columns are the same problem: a signal has positions with `lanes` samples each, and
// position p + 1 is stored `lanes` floats after position p in shared memory. Rows: a position is a
// pixel, and the lanes are its channels. Columns: a position is a row, and the lanes are adjacent
// samples of it.
// Grid: one wave of at most 8 blocks per SM, which loop over pieces of `length` positions x
// `lanes`. Block: 256 threads. The first half (producers) loads and enhances the next piece into
// one of two buffers, while the second half (consumers) blurs the current piece into a third. After
// a barrier, all threads smooth and store; then a second barrier.
// Reads each sample 1 + 2 * (radius + 1) / length times, writes it once. Windows are clipped at the
// ends of a tile, therefore every width, height and tile size is exact; the last piece is shorter.
// Shared memory: (2 * (length + 2 * radius + 2) + length + 2) * lanes floats. Registers: 48 to 64
// (sm_90), 4 or 5 resident blocks.
template <typename Tin, typename Tout>
__global__ void __launch_bounds__(general_policy::THREADS)
    smooth_general(const __grid_constant__ general_args a) {
    extern __shared__ float shared[];
    const int loaded_floats = (a.length + 2 * a.radius + 2) * a.lanes;
    float *const loaded[2] = {shared, shared + loaded_floats};
    float *const blurred = shared + 2 * loaded_floats;
    const int half = general_policy::THREADS / 2;
    const bool producer = threadIdx.x < half;
    const int thread = producer ? threadIdx.x : threadIdx.x - half;

    const uint64_t pieces = (a.last - a.first + a.length - 1) / a.length * a.across;
    uint64_t index = blockIdx.x;
    if (index >= pieces)
        return;
    general_piece piece = general_find(a, index);
    gf_wait_for_stream();
    if (producer)
        general_load<Tin>(a, piece, loaded[0], thread, half);
    __syncthreads();
    for (int buffer = 0;; buffer ^= 1) {
        const uint64_t next = index + gridDim.x;
        const bool more = next < pieces;
        const general_piece next_piece = more ? general_find(a, next) : piece;
        if (producer) {
            if (more)
                general_load<Tin>(a, next_piece, loaded[buffer ^ 1], thread, half);
        } else {
            general_blur_piece(a, piece, loaded[buffer], blurred, thread, half);
        }
        __syncthreads();
        general_store<Tin, Tout>(a, piece, blurred, threadIdx.x, general_policy::THREADS);
        if (!more)
            break;
        __syncthreads();
        piece = next_piece;
        index = next;
    }
}

static constexpr size_t general_shared(int length, int radius, int lanes) {
    return static_cast<size_t>(2 * (length + 2 * radius + 2) + length + 2) * lanes * sizeof(float);
}

static_assert(general_shared(general_policy::COLUMN_ROWS, GF_SMOOTH_MAX_RADIUS, 16) <=
                  general_policy::SHARED_LIMIT,
              "16 lanes must fit at the largest radius");
static_assert(general_shared(general_policy::ROW_SAMPLES / GF_MAX_CHANNELS, GF_SMOOTH_MAX_RADIUS,
                             GF_MAX_CHANNELS) <= general_policy::SHARED_LIMIT,
              "a piece of a row must fit at the largest radius");

// Return the arguments for the rows or columns of a strip, whose samples have these sizes.
template <bool COLUMNS>
static general_args general_args_of(const gf_smooth_job &job, size_t in_bytes, size_t out_bytes) {
    const gf_smooth_plan *plan = job.plan;
    const gf_rows *in = &job.strip.in[0], *out = &job.strip.out;
    const gf_format *format = &plan->head.in;
    const int channels = static_cast<int>(format->channels);
    general_args a = {};
    a.out = out->data;
    a.tile = plan->tile;
    a.radius = static_cast<int>(plan->radius);
    a.channels = gf_has_alpha(format) ? channels : 1;
    a.constants = gf_smooth_constants_of(plan);
    if (COLUMNS) {
        const uint64_t samples = gf_row_samples(format);
        a.length = general_policy::COLUMN_ROWS;
        a.lanes = general_shared(a.length, a.radius, 32) <= general_policy::SHARED_LIMIT ? 32 : 16;
        a.in = in->data;
        a.in_first = in->y0;
        a.in_across = a.lanes * in_bytes;
        a.out_across = a.lanes * out_bytes;
        a.in_position = in->stride;
        a.out_position = out->stride;
        a.signal = format->height;
        a.first = out->y0;
        a.last = out->y0 + out->rows;
        a.images.count = 1;
        a.across = gf_divide_up(samples, a.lanes);
        a.last_lanes = samples - (a.across - 1) * a.lanes;
    } else {
        a.length = general_policy::ROW_SAMPLES / channels;
        a.lanes = channels;
        a.in = gf_row(in, out->y0);
        a.in_across = in->stride;
        a.out_across = out->stride;
        a.in_position = channels * in_bytes;
        a.out_position = channels * out_bytes;
        a.signal = a.last = format->width;
        a.images = gf_images_of<2>(&plan->head, &job.strip);
        a.across = out->rows * a.images.count;
        a.last_lanes = channels;
    }
    return a;
}

// Queue the kernel for all rows of a strip, along x or y. Supports every plan.
template <bool COLUMNS> static void general_launch(const gf_smooth_job &job) {
    gf_dispatch(
        [&](auto sample, auto wide) {
            typedef decltype(sample) Sample;
            typedef std::conditional_t<wide, float, Sample> Wide;
            typedef std::conditional_t<COLUMNS, Wide, Sample> Tin;
            typedef std::conditional_t<COLUMNS, Sample, Wide> Tout;
            const general_args a = general_args_of<COLUMNS>(job, sizeof(Tin), sizeof(Tout));
            const uint64_t pieces = gf_divide_up(a.last - a.first, a.length) * a.across;
            // One wave: each block processes several pieces and overlaps loading with blurring.
            gf_launch_kernel(smooth_general<Tin, Tout>, gf_grid(pieces, 1), general_policy::THREADS,
                             general_shared(a.length, a.radius, a.lanes), job.queue, a);
        },
        gf_type_of{job.plan->head.in.type}, gf_flag{job.wide});
}

// ---- dispatch -----------------------------------------------------------------------------------

// Return the row stride of the unrounded result of the x pass, the input of the y pass of axis xy.
static size_t smooth_between_stride(const gf_plan *plan) {
    return (static_cast<size_t>(gf_row_samples(&plan->in)) * sizeof(float) + 63) & ~size_t(63);
}

static size_t smooth_scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_smooth_plan *plan = reinterpret_cast<const gf_smooth_plan *>(head);
    const gf_smooth_job test = {plan, {}, true, nullptr};
    if (gf_smooth_both(test, nullptr))
        return gf_smooth_both_bytes(head, in_rows);
    return plan->axis == GF_SMOOTH_XY && !gf_smooth_stages(test)
               ? in_rows * smooth_between_stride(head)
               : 0;
}

static void smooth_launch(const gf_plan *head, const gf_strip *strip, void *scratch,
                          gf_queue *queue) {
    const gf_smooth_plan *plan = reinterpret_cast<const gf_smooth_plan *>(head);
    const gf_rows between = {static_cast<unsigned char *>(scratch), smooth_between_stride(head),
                             strip->in[0].y0, strip->in[0].rows};
    gf_smooth_job job = {plan, *strip, plan->axis == GF_SMOOTH_XY, queue};
    // In one pass. window_bytes: both axes of u8, radius up to 3, weights as smooth_mma;
    // window_columns: y, and both axes of u16 and f32, radius 1 to 3.
    if (gf_smooth_both(job, scratch) || gf_smooth_stages(job))
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
