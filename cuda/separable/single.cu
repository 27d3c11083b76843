// Separable filters in binary32 up to radius 8: both axes in one kernel, separable_single.
//
// A thread computes 4 adjacent samples of a column of rows. Their sums along x stay in registers,
// in a ring of rows, from which the sums along y are computed. The channels stay interleaved: the
// window of 4 samples is 4 + 2 * radius * channels samples, in vectors of 4.
//
// A kernel supports all radii up to R, its class. The sums of a smaller radius begin with -0:
// fma(t, v, -0) is t * v, and fma(-0, v, -0) is -0 if v is finite and not negative.
#include "cuda/separable/device.cuh"

#include <utility>

// Tuning constants of separable_single.
struct single_policy {
    static constexpr int THREADS = 128;
    static constexpr int ROWS = 4;             // per step
    static constexpr int SMALL = 4, LARGE = 8; // classes of radii, multiples of ROWS
    static constexpr int MIN_STEPS = 8;        // per block
    // Resident blocks per SM. The registers of the ring and of the windows limit the large class.
    static constexpr int blocks(int radius, int channels) {
        return radius == SMALL ? 5 : channels < 3 ? 4 : 3;
    }
};

// The image downwards, or upside down: then rows are numbered from the last one.
struct single_way {
    gf_window_source in;
    unsigned char *out; // first row of the strip
    int64_t out_stride; // bytes
    int64_t first;      // number of that row
};

struct single_args {
    single_way way[2];
    int64_t rows;        // of the strip
    uint64_t steps;      // of all tiles
    uint64_t tile_steps; // of a tile
    int64_t last;        // first sample of the last tile
    int radius[2];
    float taps[2][single_policy::LARGE + 1]; // -0 after the radius
    float count, inverse;                    // 1 / count
    float amount, threshold;
    bool sharpen, alpha;
};

template <typename Sample, int CHANNELS, int RADIUS> struct single_shape {
    typedef Sample T;
    static constexpr int C = CHANNELS, R = RADIUS, ROWS = single_policy::ROWS;
    static constexpr int THREADS = single_policy::THREADS;
    // Samples in shared memory, as in the image.
    static constexpr int COUNT = 16 / sizeof(T), MAIN = 4 * THREADS / COUNT;
    static constexpr int HALO = (R * C + COUNT - 1) / COUNT, STRIDE = MAIN + 2 * HALO;
    typedef gf_window_shape<T, MAIN, HALO, STRIDE, ROWS, THREADS> Window;
    // Integers are converted to vectors of 4 values in shared memory, one step ahead.
    static constexpr bool CONVERTED = sizeof(T) < 4;
    static constexpr int SIDE = R * C / 4, VALUES_STRIDE = THREADS + 2 * SIDE;
    static constexpr int WINDOW_STRIDE = CONVERTED ? VALUES_STRIDE : STRIDE;
    static constexpr int VALUES = CONVERTED ? ROWS * VALUES_STRIDE : 0;
    // Steps by which samples are complete before they are used, and loads are issued. A stage is
    // kept for R rows: alpha and sharpen read the center of the window.
    static constexpr int COMPLETE = CONVERTED ? 2 : 1, AHEAD = COMPLETE + 1;
    static constexpr int STAGES = AHEAD + R / ROWS + 1, STAGE = ROWS * STRIDE;
    // Rows of the ring, and steps after which it begins again.
    static constexpr int RING = (2 * R + ROWS) / ROWS * ROWS, PHASES = RING / ROWS;
    static_assert(R % ROWS == 0, "whole steps between a sum along x and the center of its window");
};

template <typename Shape> struct single_shared {
    uint4 stages[Shape::STAGES * Shape::STAGE];
    float4 values[2 * Shape::VALUES + 1];
    gf_window_tile<typename Shape::Window> tile;
};

// ---- samples ------------------------------------------------------------------------------------

// Load 4 samples from shared memory. The integer in the low bits of 2^23 is converted without the
// slow conversion unit.
template <typename T> GF_DEVICE float4 single_load(const T *from) {
    constexpr float magic = 8388608.0f;
    if constexpr (sizeof(T) == 4)
        return *reinterpret_cast<const float4 *>(from);
    uint32_t bits[4];
    if constexpr (sizeof(T) == 2) {
        const uint2 word = *reinterpret_cast<const uint2 *>(from);
#pragma unroll
        for (int i = 0; i < 4; i++)
            bits[i] = __byte_perm(i < 2 ? word.x : word.y, __float_as_uint(magic),
                                  i % 2 == 0 ? 0x7410 : 0x7432);
    } else {
        const uint32_t word = *reinterpret_cast<const uint32_t *>(from);
#pragma unroll
        for (int i = 0; i < 4; i++)
            bits[i] = __byte_perm(word, __float_as_uint(magic), 0x7440 | i);
    }
    return make_float4(
        __fadd_rn(__uint_as_float(bits[0]), -magic), __fadd_rn(__uint_as_float(bits[1]), -magic),
        __fadd_rn(__uint_as_float(bits[2]), -magic), __fadd_rn(__uint_as_float(bits[3]), -magic));
}

// Return a result as a sample, in the low bits. Integers must be in the range of the type, or round
// to it: a sum of a window is, because the rounding errors of all operations are below 2^-19.
template <typename T> GF_DEVICE uint32_t single_bits(float x) {
    if constexpr (sizeof(T) == 4)
        return __float_as_uint(gf_store<float>(x));
    else
        return __float_as_uint(__fadd_rn(x, 8388608.0f));
}

static __device__ __noinline__ float4 single_divide_rare(float4 s, float count) {
    return make_float4(__fdiv_rn(s.x, count), __fdiv_rn(s.y, count), __fdiv_rn(s.z, count),
                       __fdiv_rn(s.w, count));
}

// Divide by the count, correctly rounded. The quotient of two steps was compared with that of a
// division for all counts and all significands of s. It would be +0 for -0. The range excludes
// over- and underflow.
GF_DEVICE void single_divide(const single_args &a, float (&s)[4]) {
    float x[4];
    bool plain = true;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const float q = __fmul_rn(s[j], a.inverse), size = fabsf(s[j]);
        const float to = __fmaf_rn(__fmaf_rn(-q, a.count, s[j]), a.inverse, q);
        x[j] = __uint_as_float(__float_as_uint(to) | (__float_as_uint(s[j]) & 0x80000000u));
        plain &= size <= 0x1p120f && (size >= 0x1p-100f || size == 0);
    }
    if (!plain) {
        const float4 q = single_divide_rare(make_float4(s[0], s[1], s[2], s[3]), a.count);
        x[0] = q.x, x[1] = q.y, x[2] = q.z, x[3] = q.w;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        s[j] = x[j];
}

template <typename T> GF_DEVICE float single_sharpened(const single_args &a, float v, float s) {
    const float d = __fadd_rn(v, -s);
    float x = fabsf(d) < a.threshold ? v : __fmaf_rn(a.amount, d, v);
    if constexpr (sizeof(T) < 4) {
        x = x > 0 ? x : 0;
        x = x < (1u << 8 * sizeof(T)) - 1 ? x : (1u << 8 * sizeof(T)) - 1;
    }
    return x;
}

// ---- sums ---------------------------------------------------------------------------------------

// Compute 4 sums along an axis: get(k, j) is the value at distance k from sample j.
template <typename Shape, typename Get>
GF_DEVICE void single_sum(const single_args &a, int axis, float (&s)[4], Get get) {
    constexpr int R = Shape::R;
#pragma unroll
    for (int j = 0; j < 4; j++)
        s[j] = -0.0f;
#pragma unroll
    for (int k = R; k > 0; k--)
        // Values of f32 may be negative, infinite or NaN.
        if (Shape::CONVERTED || k <= a.radius[axis])
#pragma unroll
            for (int j = 0; j < 4; j++)
                s[j] = __fmaf_rn(a.taps[axis][k], __fadd_rn(get(-k, j), get(k, j)), s[j]);
#pragma unroll
    for (int j = 0; j < 4; j++)
        s[j] = __fmaf_rn(a.taps[axis][0], get(0, j), s[j]);
}

// Compute the sums along x of 4 samples. window: begins R pixels before them.
template <typename Shape>
GF_DEVICE void single_along_x(const single_args &a, const float4 *window, float (&s)[4]) {
    float v[4 + 8 * Shape::SIDE];
#pragma unroll
    for (int i = 0; i < 1 + 2 * Shape::SIDE; i++) {
        const float4 q = window[i];
        v[4 * i] = q.x, v[4 * i + 1] = q.y, v[4 * i + 2] = q.z, v[4 * i + 3] = q.w;
    }
    single_sum<Shape>(a, 0, s, [&](int k, int j) { return v[(Shape::R + k) * Shape::C + j]; });
}

// ---- kernel -------------------------------------------------------------------------------------

// Convert a block of rows to values, with the halo that the windows need.
template <typename Shape> GF_DEVICE void single_convert(const uint4 *stage, float4 *values) {
    constexpr int SIDE = Shape::SIDE, ROWS = Shape::ROWS, HALO = Shape::HALO * Shape::COUNT;
    typedef typename Shape::T T;
    const int thread = threadIdx.x;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        values[r * Shape::VALUES_STRIDE + SIDE + thread] =
            single_load(reinterpret_cast<const T *>(stage + r * Shape::STRIDE) + HALO + 4 * thread);
    static_assert(2 * SIDE * ROWS <= Shape::THREADS, "one vector of the halo per thread");
    if (thread < 2 * SIDE * ROWS) {
        const int r = thread % ROWS, n = thread / ROWS, i = n < SIDE ? n : n + Shape::THREADS;
        values[r * Shape::VALUES_STRIDE + i] = single_load(
            reinterpret_cast<const T *>(stage + r * Shape::STRIDE) + HALO + 4 * (i - SIDE));
    }
}

// Store the first n of 4 samples.
template <typename T>
static __device__ __noinline__ void single_store_tail(unsigned char *to, uint4 bits, int n) {
    for (int j = 0; j < n; j++)
        if constexpr (sizeof(T) == 4)
            reinterpret_cast<uint32_t *>(to)[j] = gf_word(bits, j);
        else
            reinterpret_cast<T *>(to)[j] = static_cast<T>(gf_word(bits, j));
}

// Complete and store 4 results from their sums. center: the samples. n: those inside the row.
template <typename Shape>
GF_DEVICE void single_store(const single_args &a, float (&s)[4], const typename Shape::T *center,
                            int n, unsigned char *to) {
    typedef typename Shape::T T;
    constexpr int C = Shape::C;
    uint32_t bits[4];
    if (sizeof(T) == 4 && a.count > 1)
        single_divide(a, s);
    if (a.sharpen || a.alpha) {
        const float4 q = single_load(center);
        const float v[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (a.sharpen)
                s[j] = single_sharpened<T>(a, v[j], s[j]);
            bits[j] = single_bits<T>(s[j]);
            if (C % 2 == 0 && j % C == C - 1 && a.alpha)
                bits[j] = Shape::CONVERTED ? single_bits<T>(v[j]) : __float_as_uint(v[j]);
        }
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
            bits[j] = single_bits<T>(s[j]);
    }
    if (n == 4) {
        uint32_t words[sizeof(T)];
        gf_pack_samples<T, 4>(bits, words);
        gf_store_words<4 * sizeof(T)>(to, words);
    } else if (n > 0) {
        single_store_tail<T>(to, gf_vector_of(bits), n);
    }
}

// Rows of a tile that a block computes.
struct single_piece {
    int64_t left;  // first sample
    int64_t first; // row of the strip
    int rows;
};

// Positions in the stages: of the step that is loaded, completed, converted, computed, and of the
// centers of its windows.
template <typename Shape> struct single_stages {
    int loaded, complete, next, center;

    __device__ __forceinline__ static void advance(int *stage) {
        *stage = *stage == (Shape::STAGES - 1) * Shape::STAGE ? 0 : *stage + Shape::STAGE;
    }
    __device__ __forceinline__ void advance() {
        advance(&loaded);
        advance(&complete);
        advance(&next);
        advance(&center);
    }
};

// State of a thread.
template <typename Shape> struct single_block {
    typedef typename Shape::T T;
    static constexpr int R = Shape::R, ROWS = Shape::ROWS, STAGE = Shape::STAGE;
    const single_args &a;
    const single_way &way;
    const single_piece &piece;
    single_shared<Shape> *shared;
    gf_window_loader loader;
    single_stages<Shape> stages;
    int current; // position of the samples or values of the step
    int step, steps;
    int row;           // of the piece, which the step computes first
    int n;             // samples of the thread that are inside the row
    unsigned char *to; // its results
    float ring[Shape::RING][4];

    // Start to load the first steps, and complete those that the first iteration needs.
    __device__ __forceinline__ void open() {
        const int64_t top = way.first + piece.first - a.radius[1];
        const int lag = R + a.radius[1];
        __syncthreads(); // before the tile and stages are overwritten
        loader = gf_window_open(way.in, piece.left, top, top + piece.rows - 1 + 2 * a.radius[1],
                                a.radius[0], &shared->tile);
        steps = (piece.rows + lag + ROWS - 1) / ROWS;
        __syncthreads();
#pragma unroll 1
        for (int i = 0; i < Shape::AHEAD && i < steps; i++)
            gf_window_load(way.in, shared->tile, &loader, i, shared->stages + i * STAGE);
        __pipeline_commit();
        const int64_t at = piece.left + 4 * threadIdx.x, inside = way.in.width * Shape::C - at;
        n = inside < 0 ? 0 : inside < 4 ? static_cast<int>(inside) : 4;
        to = way.out + at * static_cast<int64_t>(sizeof(T)) + (piece.first - lag) * way.out_stride;
        stages = {Shape::AHEAD * STAGE, Shape::COMPLETE * STAGE, STAGE,
                  (Shape::STAGES - R / ROWS) % Shape::STAGES * STAGE};
        current = step = 0;
        row = -lag;
        __pipeline_wait_prior(0);
        __syncthreads();
        if (loader.edge)
#pragma unroll 1
            for (int i = 0; i < Shape::COMPLETE && i < steps; i++)
                gf_window_finish(way.in, shared->tile, i, shared->stages + i * STAGE);
        if constexpr (Shape::CONVERTED) {
            __syncthreads();
            single_convert<Shape>(shared->stages, shared->values);
        }
    }

    // Load, complete and convert the steps after this one. Returns the window of the thread.
    __device__ __forceinline__ const float4 *prepare() {
        // Step + COMPLETE has arrived. Step is complete, or converted.
        __pipeline_wait_prior(0);
        __syncthreads();
        if (step + Shape::AHEAD < steps)
            gf_window_load(way.in, shared->tile, &loader, step + Shape::AHEAD,
                           shared->stages + stages.loaded);
        __pipeline_commit();
        if (loader.edge && step + Shape::COMPLETE < steps)
            gf_window_finish(way.in, shared->tile, step + Shape::COMPLETE,
                             shared->stages + stages.complete);
        const int now = current;
        if constexpr (Shape::CONVERTED) {
            current ^= Shape::VALUES;
            single_convert<Shape>(shared->stages + stages.next, shared->values + current);
            return shared->values + now + threadIdx.x;
        }
        current = stages.next;
        return reinterpret_cast<const float4 *>(shared->stages + now) + threadIdx.x;
    }

    // Compute a step, if there is one. PHASE: its index in the ring.
    template <int PHASE> __device__ __forceinline__ bool compute() {
        if (step == steps)
            return false;
        const float4 *window = prepare();
        const uint4 *center = shared->stages + stages.center + Shape::HALO;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            constexpr int RING = Shape::RING;
            const int newest = PHASE * ROWS + r, middle = newest + RING - R;
            single_along_x<Shape>(a, window + r * Shape::WINDOW_STRIDE, ring[newest]);
            if (static_cast<unsigned>(row + r) >= static_cast<unsigned>(piece.rows))
                continue;
            float s[4];
            single_sum<Shape>(a, 1, s, [&](int k, int j) { return ring[(middle + k) % RING][j]; });
            single_store<Shape>(
                a, s, reinterpret_cast<const T *>(center + r * Shape::STRIDE) + 4 * threadIdx.x, n,
                to + r * way.out_stride);
        }
        stages.advance();
        row += ROWS;
        to += ROWS * way.out_stride;
        step++;
        return true;
    }

    template <int... PHASES>
    __device__ __forceinline__ void run(std::integer_sequence<int, PHASES...>) {
        open();
#pragma unroll 1
        while ((compute<PHASES>() && ...))
            ;
    }
};

// Compute a separable filter in binary32.
// Grid: resident blocks. Block: 128 threads. The image is divided into tiles of 512 samples, and
// these into steps of 4 rows; a block computes an equal share of all steps. Blocks compute
// downwards and upwards in turn: two neighbours read the rows that both need at the same time, and
// the second one finds them in the L2 cache. The rows and their halo are copied asynchronously into
// stages in shared memory. All accesses are coalesced and conflict-free. Tail: samples outside the
// image are filled in in shared memory; the last samples of a row are stored one by one.
template <typename Shape>
__global__ void __launch_bounds__(single_policy::THREADS, single_policy::blocks(Shape::R, Shape::C))
    separable_single(const __grid_constant__ single_args a) {
    extern __shared__ uint4 memory[];
    single_shared<Shape> *shared = reinterpret_cast<single_shared<Shape> *>(memory);
    uint64_t begin = a.steps * blockIdx.x / gridDim.x;
    uint64_t end = a.steps * (blockIdx.x + 1) / gridDim.x;
    const bool up = blockIdx.x % 2 == 1;
    const single_way &way = a.way[up];
    gf_wait_for_stream();
    while (begin < end) {
        const uint64_t tile = (up ? end - 1 : begin) / a.tile_steps, top = tile * a.tile_steps;
        const uint64_t from = begin > top ? begin : top;
        const uint64_t to = end < top + a.tile_steps ? end : top + a.tile_steps;
        const int64_t y = static_cast<int64_t>(from - top) * Shape::ROWS;
        const int64_t all = static_cast<int64_t>(to - top) * Shape::ROWS;
        const int64_t stop = all < a.rows ? all : a.rows;
        // The last tile ends with the row, and may overlap the one before it.
        const int64_t left = static_cast<int64_t>(tile) * 4 * Shape::THREADS;
        const single_piece piece = {left < a.last ? left : a.last, up ? a.rows - stop : y,
                                    static_cast<int>(stop - y)};
        single_block<Shape> block = {a, way, piece, shared, {}, {}, 0, 0, 0, 0, 0, nullptr, {}};
        block.run(std::make_integer_sequence<int, Shape::PHASES>{});
        if (up)
            end = from;
        else
            begin = to;
    }
}

// ---- launch -------------------------------------------------------------------------------------

// Set the ways of a strip. Upside down, rows are counted from the end of the image.
static void single_set_ways(const gf_separable_job &job, single_args *a) {
    const gf_strip *strip = job.strip;
    const gf_rows *out = &strip->out;
    single_way *down = &a->way[0], *up = &a->way[1];
    down->in = gf_window_source_of(&job.plan->head, strip, job.plan->edge);
    down->out = out->data;
    down->out_stride = static_cast<int64_t>(out->stride);
    down->first = static_cast<int64_t>(out->y0);
    *up = *down;
    up->in.in += (strip->in[0].rows - 1) * strip->in[0].stride;
    up->in.stride = 0 - strip->in[0].stride; // modulo 2^64
    up->in.first = up->in.height - static_cast<int64_t>(strip->in[0].y0 + strip->in[0].rows);
    up->out += (out->rows - 1) * out->stride;
    up->out_stride = -down->out_stride;
    up->first = up->in.height - static_cast<int64_t>(out->y0 + out->rows);
}

template <typename Shape> static void single_launch(const gf_separable_job &job) {
    constexpr int64_t TILE = 4 * Shape::THREADS;
    const gf_separable_plan *plan = job.plan;
    single_args a = {};
    single_set_ways(job, &a);
    a.rows = static_cast<int64_t>(job.strip->out.rows);
    for (int axis = 0; axis < 2; axis++) {
        a.radius[axis] = static_cast<int>(plan->radius[axis]);
        for (uint32_t k = 0; k <= single_policy::LARGE; k++)
            a.taps[axis][k] =
                k <= plan->radius[axis] ? gf_separable_taps<float>(plan, axis)[k] : -0.0f;
    }
    a.count = static_cast<float>(plan->count);
    a.inverse = 1 / a.count;
    a.sharpen = plan->sharpen;
    a.amount = plan->amount;
    a.threshold = plan->threshold;
    a.alpha = gf_has_alpha(&plan->head.in);
    const int64_t samples = a.way[0].in.width * Shape::C, count = Shape::COUNT;
    a.last = samples > TILE ? (samples - TILE + count - 1) / count * count : 0;
    a.tile_steps = gf_divide_up(static_cast<uint64_t>(a.rows), Shape::ROWS);
    a.steps = a.tile_steps * gf_divide_up(static_cast<uint64_t>(samples), TILE);
    const uint64_t wave =
        static_cast<uint64_t>(gf_sm_count()) * single_policy::blocks(Shape::R, Shape::C);
    static_assert(sizeof(single_shared<Shape>) <= 48 << 10, "the default limit of a launch");
    gf_launch_kernel(separable_single<Shape>,
                     dim3(gf_blocks(a.steps, single_policy::MIN_STEPS, wave)), Shape::THREADS,
                     sizeof(single_shared<Shape>), job.queue, a);
}

bool gf_separable_single(const gf_separable_job &job) {
    const gf_separable_plan *plan = job.plan;
    const uint32_t *radius = plan->radius, max = radius[0] > radius[1] ? radius[0] : radius[1];
    if (plan->form != GF_SEPARABLE_SINGLE || max > single_policy::LARGE)
        return false;
    if (!job.queue)
        return true;
    gf_dispatch(
        [&](auto sample, auto channels, auto large) {
            constexpr int R = large ? single_policy::LARGE : single_policy::SMALL;
            single_launch<single_shape<decltype(sample), channels, R>>(job);
        },
        gf_type_of{plan->head.in.type}, gf_channels{plan->head.in.channels},
        gf_flag{max > single_policy::SMALL});
    return true;
}
