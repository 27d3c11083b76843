// Filters of windows in binary32, along both axes in one kernel, window_columns.
//
// A thread computes 4 adjacent samples of a column of rows. Their results along x stay in
// registers, in a ring of rows, from which those along y are computed. The results along x are
// computed in runs of RUN samples of a row, which load less of windows per sample than 4 samples
// do: a warp computes those of its columns, and its lanes exchange them through shared memory. The
// channels stay interleaved.
//
// A Filter class defines the results:
//
//     Args         arguments of the kernel; extends gf_columns_args
//     T, C         sample type, channels
//     X, R         pixels on each side, a multiple of 4; rows on each side
//     RUN          see above: 8, 16 or 32, a multiple of 16 bytes
//     ROWS         rows per step: 4 or 8
//     ALIGNED      whether the radii are R
//     SYMMETRIC    whether an image upside down has the same results, upside down
//     CLAMP        whether integers from complete() must be clamped
//     CENTER       whether complete() reads the samples in the centers of the windows
//     BLOCKS       resident per SM
//     State        of a thread
//     value(args, words, i)                  the value of sample i of words
//     along_x(args, v, s)                    RUN results along x. v: values from X pixels before
//     them along_y(args, state, get, s)           4 results along y of the next row. get(k, j):
//     result
//                                            j along x, k rows below. Is called before row 0, too
//     complete(args, s, center, bits)        the bits of the results; whether revise() is needed
//     revise(args, y, stop, i)               rows [y, stop) of the strip, 4 samples from i, stored
#ifndef GF_COLUMNS_CUH
#define GF_COLUMNS_CUH

#include "cuda/window/march.cuh"

#include <utility>

struct gf_columns_policy {
    static constexpr int THREADS = 128;
    static constexpr int MIN_STEPS = 8; // per block
    static constexpr int START = 4;     // steps before the first result of a tile
    // Bytes of a block whose loads are in flight: about 40 KB per SM. More are slower than fewer.
    static constexpr int FLIGHT = 8 << 10;
};

// The image downwards, or upside down: then rows are numbered from the last one.
struct gf_columns_way {
    gf_window_source in;
    unsigned char *out; // first row of the strip
    int64_t out_stride; // bytes
    int64_t first;      // number of that row
};

struct gf_columns_args : gf_shares {
    gf_columns_way way[2];
    int64_t rows; // of the strip
    int radius[2];
    bool alpha;
};

template <typename F> struct gf_columns_shape {
    typedef typename F::T T;
    typedef F Filter;
    static constexpr int C = F::C, X = F::X, R = F::R, ROWS = F::ROWS;
    static constexpr int THREADS = gf_columns_policy::THREADS, WARPS = THREADS / 32;
    // Samples in shared memory, as in the image.
    static constexpr int COUNT = 16 / sizeof(T), SAMPLES = 4 * THREADS, MAIN = SAMPLES / COUNT;
    static constexpr int HALO = (X * C + COUNT - 1) / COUNT, UNITS = MAIN + 2 * HALO;
    static constexpr int STRIDE = UNITS | 1; // odd: 8 lanes load from different banks
    typedef gf_window_shape<T, MAIN, HALO, STRIDE, ROWS, THREADS> Window;
    // Steps after which loads are issued; and those for which a stage is kept, because the centers
    // of windows are read, for alpha also.
    static constexpr int AHEAD = 1 + gf_columns_policy::FLIGHT / (ROWS * MAIN * 16);
    static constexpr int KEPT = C % 2 == 0 || F::CENTER ? (R + ROWS - 1) / ROWS : 0;
    static constexpr int STAGES = AHEAD + KEPT + 1, STAGE = ROWS * STRIDE;
    // Rows of the ring, and steps after which it begins again. The code of more than 16 rows does
    // not fit into the instruction cache: after 2 steps of them, the ring is rotated.
    static constexpr int RING = 2 * R + ROWS, PHASES = RING > 16 ? 2 : RING / ROWS;
    static_assert(RING % ROWS == 0, "whole steps");
    // Whether blocks have equal shares. f32 is limited by memory: it is faster if all tiles are
    // divided at the same rows, so that blocks read whole rows together.
    static constexpr bool EQUAL = sizeof(T) < 4;
    static constexpr int ROW = 33; // results along x; odd: fewer lanes store to the same banks
};

template <typename Shape> struct gf_columns_shared {
    uint4 stages[Shape::STAGES * Shape::STAGE];
    float4 results[Shape::WARPS][Shape::ROWS * Shape::ROW];
    uint4 partial[Shape::ROWS]; // results of the thread with less than 4 samples
    gf_window_tile<typename Shape::Window> tile;
};

// Return x. Neither compiler computes it again where it is used.
GF_DEVICE uint32_t gf_columns_opaque(uint32_t x) {
    return __shfl_sync(~0u, x, threadIdx.x % 32);
}

// ---- samples ------------------------------------------------------------------------------------

// Return sample i of words. The integer in the low bits of 2^23 is converted without the slow
// conversion unit.
template <typename T> GF_DEVICE float gf_columns_value(const uint32_t *words, int i) {
    constexpr float magic = 8388608.0f;
    if constexpr (sizeof(T) == 4)
        return __uint_as_float(words[i]);
    constexpr int PER = 4 / sizeof(T);
    const uint32_t bits = sizeof(T) == 2 ? (i % 2 == 0 ? 0x7410 : 0x7432) : 0x7440 | i % 4;
    return __fadd_rn(__uint_as_float(__byte_perm(words[i / PER], __float_as_uint(magic), bits)),
                     -magic);
}

// Return a result as a sample, in the low bits. Integers must be in the range of the type, or round
// to it: a sum of a window is, because the rounding errors of all operations are below 2^-19. The
// only NaN of the device is 2^31 - 1; it becomes the canonical one.
template <typename T> GF_DEVICE uint32_t gf_columns_bits(float x) {
    if constexpr (sizeof(T) == 4)
        return static_cast<uint32_t>(min(__float_as_int(x), 0x7fc00000));
    else
        return __float_as_uint(__fadd_rn(x, 8388608.0f));
}

// ---- kernel -------------------------------------------------------------------------------------

// Rows of a tile that a block computes.
struct gf_columns_piece {
    int64_t left;  // first sample
    int64_t first; // row of the strip
    int rows;
};

template <typename Shape> struct gf_columns_block {
    typedef typename Shape::T T;
    typedef typename Shape::Filter Filter;
    static constexpr int R = Shape::R, C = Shape::C, ROWS = Shape::ROWS;
    static constexpr int SIZE = static_cast<int>(sizeof(T)), AHEAD = Shape::AHEAD;
    static constexpr uint32_t STAGE = 16 * Shape::STAGE;
    const typename Shape::Filter::Args &a;
    const gf_columns_way &way;
    const gf_columns_piece &piece;
    gf_columns_shared<Shape> *shared;
    gf_window_loader<typename Shape::Window> loader;
    uint32_t samples; // offset of the thread's samples in a stage
    // Offsets of the lane's first run: of its window in a stage, of its results.
    uint32_t window, results;
    // Positions in the stages in bytes: of the step that is loaded; of this step; and of the
    // centers of the windows of this step.
    uint32_t loaded, used, center;
    int step, steps;
    int row;           // of the piece, which the step computes first
    int whole;         // rows that the thread stores with whole vectors: 0, or all
    int64_t stride;    // bytes between rows of results
    unsigned char *to; // results of the thread
    int partial;       // samples less than 4 that the thread stores
    int thread;
    bool revise; // whether results of the thread need it
    float ring[Shape::RING][4];
    typename Filter::State state;

    __device__ __forceinline__ static void advance(uint32_t *stage) {
        *stage = *stage == (Shape::STAGES - 1) * STAGE ? 0 : *stage + STAGE;
    }
    template <typename To> __device__ __forceinline__ To *at(uint32_t offset) const {
        return reinterpret_cast<To *>(reinterpret_cast<unsigned char *>(shared) + offset);
    }
    __device__ __forceinline__ uint4 *stage(uint32_t position) const {
        return shared->stages + position / 16;
    }

    // Start to load a block, after those before it.
    __device__ __forceinline__ void load(const gf_window_part &part, int block, uint32_t position) {
        if (block < steps)
            gf_window_load(way.in, shared->tile, part, &loader, block, stage(position));
        __pipeline_commit();
    }

    // Start to load the first steps, and complete the first one.
    __device__ __forceinline__ void open() {
        const int lag = R + a.radius[1];
        thread = threadIdx.x;
        steps = (piece.rows + lag + ROWS - 1) / ROWS;
        samples = gf_columns_opaque(16 * Shape::HALO + thread * 4 * SIZE);
        open_runs();
        __syncthreads(); // before the tile and stages are overwritten
        const int64_t top = way.first + piece.first - a.radius[1];
        loader = gf_window_open(way.in, piece.left, top, top + piece.rows - 1 + 2 * a.radius[1],
                                a.radius[0], &shared->tile);
        __syncthreads();
#pragma unroll 1
        for (int i = 0; i < AHEAD; i++)
            load(shared->tile.part, i, i * STAGE);
        const int64_t begin = piece.left + 4 * thread;
        const int64_t count = way.in.width * way.in.channels - begin;
        whole = count >= 4 ? piece.rows : 0;
        partial = count > 0 && count < 4 ? static_cast<int>(count) : 0;
        stride = way.out_stride;
        to = way.out + begin * SIZE + (piece.first - lag) * stride;
        loaded = AHEAD * STAGE;
        used = 0;
        center = (Shape::STAGES - Shape::KEPT) % Shape::STAGES * STAGE;
        step = 0;
        row = -lag;
        revise = false;
        __pipeline_wait_prior(0);
        __syncthreads();
        if (shared->tile.part.all > 0)
            gf_window_finish(way.in, shared->tile, 0, stage(0));
    }

    // Load and complete the steps after this one, which is complete after the barrier. The next one
    // has arrived.
    __device__ __forceinline__ void prepare() {
        const gf_window_part part = shared->tile.part;
        __pipeline_wait_prior(AHEAD - 2);
        __syncthreads();
        if (part.all > 0 && step + 1 < steps)
            gf_window_finish(way.in, shared->tile, step + 1,
                             stage((step + 1) % Shape::STAGES * STAGE));
        load(part, step + AHEAD, loaded);
        advance(&loaded);
    }

    // The runs of a warp are numbered such that 8 lanes load from different banks: BESIDE adjacent
    // ones in each of UNITS rows, for runs of UNITS units. A lane has every 32nd run, STEP rows
    // apart.
    static constexpr int RUN = Filter::RUN, UNITS = RUN * SIZE / 16, BESIDE = 8 / UNITS;
    static constexpr int STEP = RUN / 4, RUNS = ROWS / STEP; // of a lane
    static_assert(UNITS <= STEP && ROWS % STEP == 0, "whole runs per lane");

    __device__ __forceinline__ void open_runs() {
        constexpr int GROUPS = 128 / RUN / BESIDE; // of adjacent runs per row
        const int lane = thread % 32, warp = thread / 32;
        const int r = lane / BESIDE % UNITS + UNITS * (lane / 8 / GROUPS);
        const int i = lane % BESIDE + BESIDE * (lane / 8 % GROUPS);
        window = gf_columns_opaque(16 * (r * Shape::STRIDE + i * UNITS + warp * 8 * SIZE));
        results = gf_columns_opaque(Shape::STAGES * STAGE +
                                    16 * ((warp * ROWS + r) * Shape::ROW + i * (RUN / 4)));
    }

    // Compute the results along x of the rows of the step.
    __device__ __forceinline__ void along_x(float (*rows)[4]) {
        constexpr int WORDS = 4 * (UNITS + 2 * Shape::HALO), FIRST = Shape::HALO * Shape::COUNT;
        constexpr int SIDE = Shape::X * C;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < RUNS; i++) {
            uint32_t words[WORDS];
            float v[RUN + 2 * SIDE], s[RUN];
            gf_load_words<4 * WORDS>(
                words, at<unsigned char>(used + window + 16 * i * STEP * Shape::STRIDE));
#pragma unroll
            for (int n = 0; n < RUN + 2 * SIDE; n++)
                v[n] = Filter::value(a, words, FIRST - SIDE + n);
            Filter::along_x(a, v, s);
            float4 *to_results = at<float4>(results + 16 * i * STEP * Shape::ROW);
#pragma unroll
            for (int n = 0; n < RUN / 4; n++)
                to_results[n] = make_float4(s[4 * n], s[4 * n + 1], s[4 * n + 2], s[4 * n + 3]);
        }
        __syncwarp();
        const float4 *from = shared->results[thread / 32] + thread % 32;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float4 q = from[r * Shape::ROW];
            rows[r][0] = q.x, rows[r][1] = q.y, rows[r][2] = q.z, rows[r][3] = q.w;
        }
    }

    // Store the first samples of a vector from shared memory.
    __device__ __forceinline__ void store_partial() const {
        typedef std::conditional_t<sizeof(T) == 4, uint32_t, T> Bits;
#pragma unroll 1
        for (int r = 0; r < ROWS; r++)
            if (row + r >= 0 && row + r < piece.rows)
#pragma unroll 1
                for (int j = 0; j < partial; j++)
                    reinterpret_cast<Bits *>(to + r * stride)[j] =
                        reinterpret_cast<const Bits *>(shared->partial + r)[j];
    }

    // Compute a step, if there is one. PHASE: its index in the ring.
    template <int PHASE> __device__ __forceinline__ bool compute() {
        if (step == steps)
            return false;
        prepare();
        along_x(ring + PHASE * ROWS);
        if (Filter::SYMMETRIC ? row > -ROWS : true) {
            unsigned char *result = to;
            const T *before = at<T>(samples + center), *now = at<T>(samples + used);
            const int end = whole - row;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                constexpr int RING = Shape::RING;
                const int mid = PHASE * ROWS + r + RING - R;
                float s[4];
                uint32_t bits[4], words[SIZE];
                Filter::along_y(
                    a, state, [&](int k, int j) { return ring[(mid + k) % RING][j]; }, s);
                const int back = r + Shape::KEPT * ROWS - R; // the row of the center
                const T *center_of =
                    (back < ROWS ? before + back * Shape::STRIDE * Shape::COUNT
                                 : now + (back - ROWS) * Shape::STRIDE * Shape::COUNT);
                revise |= Filter::complete(a, s, center_of, bits);
                if (C % 2 == 0 && a.alpha)
#pragma unroll
                    for (int j = C - 1; j < 4; j += C)
                        bits[j] = gf_bits(center_of[j]);
                gf_pack_samples<T, 4, Filter::CLAMP>(bits, words);
                if (r < end && (Filter::ALIGNED || row + r >= 0))
                    gf_store_words<4 * SIZE>(result, words);
                if (partial > 0)
                    gf_store_words<4 * SIZE>(reinterpret_cast<unsigned char *>(shared->partial + r),
                                             words);
                result += stride;
            }
            if (partial > 0)
                store_partial();
        }
        advance(&center);
        advance(&used);
        row += ROWS;
        to += ROWS * stride;
        step++;
        return true;
    }

    // Rotate the ring by PHASES steps. The next step replaces its first rows.
    __device__ __forceinline__ void rotate() {
        constexpr int BY = Shape::PHASES * ROWS, RING = Shape::RING;
        float next[RING][4];
#pragma unroll
        for (int i = ROWS; BY < RING && i < RING; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                next[i][j] = ring[(i + BY) % RING][j];
#pragma unroll
        for (int i = ROWS; BY < RING && i < RING; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                ring[i][j] = next[i][j];
    }

    template <int... PHASES>
    __device__ __forceinline__ void run(std::integer_sequence<int, PHASES...>) {
        open();
#pragma unroll 1
        while ((compute<PHASES>() && ...))
            rotate();
        if (revise)
            Filter::revise(a, piece.first, piece.first + piece.rows, piece.left + 4 * thread);
    }
};

// Compute a filter of windows in binary32.
// Grid: as many blocks as are resident, or about as many. Block: 128 threads. The image is divided
// into tiles of 512 samples, and these into steps of 4 or 8 rows; a block computes an equal share
// of all steps, or of those of a tile. Shares are computed downwards and upwards in turn: two
// neighbours read the rows that both need at the same time, and the second one finds them in the L2
// cache. The rows and their halo are copied asynchronously into stages in shared memory. All
// accesses are coalesced and conflict-free. Tail: samples outside the image are filled in in shared
// memory; the last samples of a row are stored one by one.
template <typename Filter>
__global__ void __launch_bounds__(gf_columns_policy::THREADS, Filter::BLOCKS)
    window_columns(const __grid_constant__ typename Filter::Args a) {
    typedef gf_columns_shape<Filter> Shape;
    extern __shared__ uint4 memory[];
    gf_columns_shared<Shape> *shared = reinterpret_cast<gf_columns_shared<Shape> *>(memory);
    const uint32_t tiles = static_cast<uint32_t>(a.tiles), number = blockIdx.x / tiles;
    const bool up = Filter::SYMMETRIC && (Shape::EQUAL ? blockIdx.x : number) % 2 == 1;
    gf_wait_for_stream();
    if (!Filter::SYMMETRIC)
        gf_let_next_start();
    const auto run = [&](uint64_t tile, uint64_t step, uint64_t n) {
        const int64_t y = static_cast<int64_t>(step) * Shape::ROWS, stop = y + n * Shape::ROWS;
        const int64_t end = stop < a.rows ? stop : a.rows;
        const gf_columns_piece piece = {static_cast<int64_t>(tile) * Shape::SAMPLES,
                                        up ? a.rows - end : y, static_cast<int>(end - y)};
        gf_columns_block<Shape> block = {a, a.way[up], piece, shared};
        block.run(std::make_integer_sequence<int, Shape::PHASES>{});
    };
    if constexpr (Shape::EQUAL) {
        gf_share_each<gf_columns_policy::START>(a, blockIdx.x, run);
    } else {
        const uint32_t pieces = a.blocks / tiles;
        const uint64_t first = a.tile_steps * number / pieces;
        run(blockIdx.x % tiles, first, a.tile_steps * (number + 1) / pieces - first);
    }
}

// ---- launch -------------------------------------------------------------------------------------

// Set the ways of a strip. Upside down, rows are counted from the end of the image.
static void gf_columns_set_ways(gf_columns_args *a, const gf_plan *plan, const gf_strip *strip,
                                gf_edge edge) {
    const gf_rows *out = &strip->out;
    gf_columns_way *down = &a->way[0], *up = &a->way[1];
    down->in = gf_window_source_of(plan, strip, edge);
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

// Divide the columns of tiles into pieces, so that the blocks of a wave have about equal shares.
static void gf_columns_divide(gf_columns_args *a, uint64_t wave) {
    const uint64_t max = gf_divide_up(a->tile_steps, gf_columns_policy::MIN_STEPS);
    uint64_t least = UINT64_MAX;
    for (uint64_t waves = 1; waves <= 8; waves++) {
        const uint64_t most = waves * wave / a->tiles;
        const uint64_t pieces = most < 1 ? 1 : most < max ? most : max;
        const uint64_t cost = gf_divide_up(a->tiles * pieces, wave) *
                              (gf_divide_up(a->tile_steps, pieces) + gf_columns_policy::START);
        if (cost < least)
            least = cost, a->blocks = static_cast<uint32_t>(a->tiles * pieces);
    }
}

// Queue window_columns, and set the arguments of its base. Returns false if the device does not
// support it; no queue: only test this.
template <typename Filter>
static bool gf_columns_launch(typename Filter::Args *a, const gf_plan *plan, const gf_strip *strip,
                              gf_edge edge, gf_queue *queue) {
    typedef gf_columns_shape<Filter> Shape;
    constexpr size_t shared = sizeof(gf_columns_shared<Shape>);
    if (!gf_allow_shared<window_columns<Filter>>(shared))
        return false;
    if (!queue)
        return true;
    gf_columns_set_ways(a, plan, strip, edge);
    a->rows = static_cast<int64_t>(strip->out.rows);
    a->alpha = gf_has_alpha(&plan->in);
    const uint64_t wave = static_cast<uint64_t>(gf_sm_count()) * Filter::BLOCKS;
    gf_shares_set<gf_columns_policy::MIN_STEPS>(a, gf_row_samples(&plan->in), Shape::SAMPLES,
                                                strip->out.rows, Shape::ROWS, wave);
    if (!Shape::EQUAL)
        gf_columns_divide(a, wave);
    gf_launch_kernel(window_columns<Filter>, dim3(a->blocks), Shape::THREADS, shared, queue, *a);
    return true;
}

#endif
