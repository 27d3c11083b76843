// smooth along y, radius 0 to 3: each thread loads the windows of its results into registers.
// Blocks are short and run in the order of the image, so that all of them access one region of it:
// blocks that walk down tiles reach 0.9 of the throughput of a copy, these 1.0 (H200). One kernel,
// smooth_columns.
#include "cuda/smooth/device.cuh"

template <typename T> struct columns_policy {
    static constexpr bool SMALL = sizeof(T) == 1, MEDIUM = sizeof(T) == 2;
    static constexpr int WARPS = 4;                           // per block, one below the other
    static constexpr int BYTES = SMALL || MEDIUM ? 8 : 16;    // of a row, per thread
    static constexpr int ROWS = SMALL ? 16 : MEDIUM ? 14 : 8; // per thread
    static constexpr int BLOCKS = SMALL ? 4 : MEDIUM ? 6 : 5; // resident per SM
    static constexpr int EXACT_BYTES = SMALL ? 4 : BYTES;     // see columns_exact
    static constexpr int EXACT_ROWS = MEDIUM ? 7 : 8;
    // Size of the tile that a block computes.
    static constexpr int TILE_BYTES = 32 * BYTES, TILE_ROWS = WARPS * ROWS;
};

// Rows are numbered from the first output row of the strip.
struct columns_args {
    const unsigned char *in; // row 0
    unsigned char *out;
    int in_stride, out_stride, row_bytes; // bytes
    int rows;                             // of the output
    int low, high;                        // rows [low, high) of the input are in memory
    int above, below;                     // rows of the image around the output, at most 64
    int channels, colours;                // colours: those that are filtered
    int tile_rows, tiles_per_row;
    gf_divider tiles; // divides by tiles_per_row
    gf_smooth_constants constants;
};

// Find the tile of a block: its number in a row, and its first row. The tiles at the bottom come
// first, then those at the top: they take longest.
template <typename Policy> GF_DEVICE void columns_tile(const columns_args &a, int *tile, int *y) {
    const int block = static_cast<int>(blockIdx.x);
    const int n = a.tiles_per_row > 1 ? static_cast<int>(gf_divide(blockIdx.x, a.tiles)) : block;
    *tile = block - n * a.tiles_per_row;
    *y = (n == 0 ? a.tile_rows - 1 : n - 1) * Policy::TILE_ROWS;
}

// Return the address of row y, or of the nearest row in memory.
GF_DEVICE const unsigned char *columns_row(const columns_args &a, int y) {
    return a.in + static_cast<int64_t>(min(max(y, a.low), a.high - 1)) * a.in_stride;
}

// Compute ROWS rows of BYTES bytes by the stages. EXACT: with edges, infinite sums, and fewer bytes
// in the row. Otherwise returns true if that is necessary.
template <typename T, int RADIUS, int ROWS, int BYTES, bool EXACT>
GF_DEVICE bool columns_compute(const columns_args &a, int y, int byte) {
    constexpr int AROUND = RADIUS + 1, IN = ROWS + 2 * AROUND;
    constexpr int WORDS = BYTES / 4, PER = 4 / sizeof(T);
    const unsigned char *from = a.in + static_cast<int64_t>(y - AROUND) * a.in_stride + byte;
    unsigned char *to = a.out + static_cast<int64_t>(y) * a.out_stride + byte;
    uint32_t words[IN][WORDS], out[ROWS][WORDS], bits[ROWS][PER];
    float max = 0.0f;
#pragma unroll
    for (int r = 0; r < IN; r++)
        gf_load_words<BYTES>(words[r], EXACT ? columns_row(a, y - AROUND + r) + byte
                                             : from + static_cast<int64_t>(r) * a.in_stride);
#pragma unroll
    for (int n = 0; n < WORDS * PER; n++) {
        float t[ROWS];
        if constexpr (EXACT) {
            gf_smooth_exact<T, RADIUS>(
                a.constants, gf_smooth_near(a.above + y), gf_smooth_near(a.below + a.rows - y), t,
                [&](int d) { return gf_chain_value<T>(words[d + AROUND], n); });
        } else {
            float v[IN];
#pragma unroll
            for (int r = 0; r < IN; r++)
                v[r] = gf_enhanced<T>(words[r], n, a.constants);
            gf_chain_line<T, RADIUS>(a.constants, v, t, &max);
        }
        const bool alpha = n % 2 == 1 && a.colours < a.channels && (n % 4 == 3 || a.channels == 2);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            bits[r][n % PER] =
                alpha ? gf_chain_bits<T>(words[r + AROUND], n) : gf_smooth_bits<T>(t[r]);
        if (n % PER == PER - 1)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                gf_pack_samples<T, PER, true>(bits[r], out[r] + n / PER);
    }
#pragma unroll
    for (int r = 0; r < ROWS && y + r < a.rows; r++) {
        unsigned char *row = to + static_cast<int64_t>(r) * a.out_stride;
        if (!EXACT || byte + BYTES <= a.row_bytes)
            gf_store_words<BYTES>(row, out[r]);
        else
#pragma unroll
            for (int k = 0; k < BYTES; k++)
                if (byte + k < a.row_bytes)
                    row[k] = static_cast<unsigned char>(out[r][k / 4] >> k % 4 * 8);
    }
    return sizeof(T) == 4 && max == __uint_as_float(0x7f800000u);
}

// Compute rows [y, stop) of bytes [byte, end) by the exact path. Not inlined, and in parts: the
// code is large.
template <typename T, int RADIUS>
static __device__ __noinline__ void columns_exact(const columns_args &a, int y, int stop, int byte,
                                                  int end) {
    typedef columns_policy<T> P;
#pragma unroll 1
    for (; y < stop && y < a.rows; y += P::EXACT_ROWS)
#pragma unroll 1
        for (int i = byte; i < end && i < a.row_bytes; i += P::EXACT_BYTES)
            columns_compute<T, RADIUS, P::EXACT_ROWS, P::EXACT_BYTES, true>(a, y, i);
}

// Smooth columns by the stages.
// Grid: one block per tile. Block: 128 threads. A warp computes 8 to 16 rows of 256 or 512 bytes; a
// thread starts to load all samples of its windows before it uses the first one. Reads each sample
// 2 times or less, from beyond the L1 cache up to 1.25 times, and writes it once; all accesses are
// coalesced. Tail: the exact path computes rows whose windows are clipped or not in memory, and the
// last samples of a row. Shared memory: none. Registers: 80 to 128 (sm_90).
template <typename T, int RADIUS>
__global__ void __launch_bounds__(32 * columns_policy<T>::WARPS, columns_policy<T>::BLOCKS)
    smooth_columns(const __grid_constant__ columns_args a) {
    typedef columns_policy<T> P;
    constexpr int AROUND = RADIUS + 1;
    int tile, y;
    columns_tile<P>(a, &tile, &y);
    const int byte = (tile * 32 + static_cast<int>(threadIdx.x) % 32) * P::BYTES;
    y += static_cast<int>(threadIdx.x) / 32 * P::ROWS;
    gf_wait_for_stream();
    if (byte >= a.row_bytes || y >= a.rows)
        return;
    const bool inside =
        y - AROUND >= a.low && y + P::ROWS + AROUND <= a.high && byte + P::BYTES <= a.row_bytes;
    if (!inside || columns_compute<T, RADIUS, P::ROWS, P::BYTES, false>(a, y, byte))
        columns_exact<T, RADIUS>(a, y, y + P::ROWS, byte, byte + P::BYTES);
}

// ---- launch -------------------------------------------------------------------------------------

// Divide the strip into tiles. Returns false if its size exceeds 32-bit numbers.
template <typename Policy> static bool columns_set(columns_args *a, const gf_smooth_job &job) {
    const gf_format *format = &job.plan->head.in;
    const gf_rows *in = &job.strip.in[0], *out = &job.strip.out;
    const uint64_t max = UINT64_C(1) << 30, row_bytes = gf_row_bytes(format);
    const uint64_t tiles = gf_divide_up(row_bytes, Policy::TILE_BYTES);
    const uint64_t tile_rows = gf_divide_up(out->rows, Policy::TILE_ROWS);
    if (in->stride >= max || out->stride >= max || in->rows >= max || tiles * tile_rows >= max)
        return false;
    a->in = gf_row(in, out->y0);
    a->out = out->data;
    a->in_stride = static_cast<int>(in->stride);
    a->out_stride = static_cast<int>(out->stride);
    a->row_bytes = static_cast<int>(row_bytes);
    a->rows = static_cast<int>(out->rows);
    a->low = -static_cast<int>(out->y0 - in->y0);
    a->high = a->low + static_cast<int>(in->rows);
    a->above = static_cast<int>(gf_min(out->y0, 64));
    a->below = static_cast<int>(gf_min(format->height - out->y0 - out->rows, 64));
    a->channels = static_cast<int>(format->channels);
    a->colours = static_cast<int>(gf_measured_channels(format));
    a->tile_rows = static_cast<int>(tile_rows);
    a->tiles_per_row = static_cast<int>(tiles);
    a->tiles = gf_divider_of(tiles);
    a->constants = gf_smooth_constants_of(job.plan);
    return true;
}

bool gf_smooth_columns(const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    const gf_format *format = &plan->head.in;
    if (plan->axis != GF_SMOOTH_Y || !gf_chain_fits(plan, format->type == GF_F32))
        return false;
    bool done = false;
    gf_dispatch(
        [&](auto sample, auto radius) {
            typedef columns_policy<decltype(sample)> Policy;
            columns_args a = {};
            done = columns_set<Policy>(&a, job);
            if (done)
                gf_launch_kernel(smooth_columns<decltype(sample), radius>,
                                 static_cast<unsigned>(a.tile_rows * a.tiles_per_row),
                                 32 * Policy::WARPS, 0, job.queue, a);
        },
        gf_type_of{format->type}, gf_number<0, 3>{plan->radius});
    return done;
}
