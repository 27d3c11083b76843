// smooth along y, radius 0 to 3: each thread loads the windows of its results into registers.
// Blocks are short and run in the order of the image, so that all of them access one region of it:
// blocks that walk down tiles reach 0.9 of the throughput of a copy, these 1.0 (H200). Kernels:
// smooth_columns, by the stages; smooth_bytes, u8 on tensor cores by the plan's integer form.
#include "cuda/smooth/both.cuh"
#include "cuda/window/bytes.cuh"

// Tuning constants of smooth_columns.
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

// Tuning constants of smooth_bytes. Blocks of one warp: near-ties delay some.
struct bytes_policy {
    // Resident blocks per SM, which limit the registers. Some GPUs hold 16 at most.
    static constexpr int BLOCKS = gf_arch == 800 || gf_arch == 900 || gf_arch / 100 == 10 ? 18 : 16;
    static constexpr int AHEAD = 11; // blocks per SM between a tile and the one that it prefetches
    static constexpr int TILE_BYTES = 128, TILE_ROWS = 24, LOADED_ROWS = 32; // reach: up to 4
    static constexpr int MAX_TIES = 16; // of a lane's 96 samples; more: all are computed again
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

struct bytes_args : columns_args {
    float scale, offset[2]; // of the plan's integer form; see gf_both_round
    int ahead;              // rows between a tile and the one that it prefetches
    // The compiler would copy registers that it knows to be equal for each product.
    alignas(16) uint32_t start[4]; // the bits of 2^23: sums T are those of 2^23 + T
    uint32_t zero;
    alignas(4) uint8_t taps[32][4]; // [16 + i]: the taps of rows i, i + 4, i + 8, i + 12
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

// ---- on tensor cores ----------------------------------------------------------------------------

// 24 rows x 8 columns of sums are the product of a Toeplitz matrix of the taps, 24 x 32, and 32
// rows x 8 columns of samples. A lane 4g + t must supply column g of rows 4t to 4t + 3 of each half
// of the 32 rows, and gets rows g, g + 8 and g + 16 of columns 2t and 2t + 1. The order of the rows
// is free if both matrices have the same one, and so is that of the columns of 16 products: a lane
// loads 16 adjacent bytes of rows t, t + 4, ... t + 28, and gets 16 adjacent results, twice.

// Transpose 4 x 4 bytes.
GF_DEVICE void bytes_transpose(const uint32_t (&w)[4], uint32_t (&to)[4]) {
    const uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
    const uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
    to[0] = __byte_perm(a, b, 0x5410), to[1] = __byte_perm(a, b, 0x7632);
    to[2] = __byte_perm(c, d, 0x5410), to[3] = __byte_perm(c, d, 0x7632);
}

// Remove a near-tie. Returns its bit in a word of ties, and the index of that word; -1: none.
GF_DEVICE int bytes_next_tie(uint32_t (&ties)[4], int *w) {
    uint32_t mask = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) { // without branches
        const uint32_t some = mask == 0 ? ties[k] : 0;
        *w = some != 0 ? k : *w;
        mask |= some;
        ties[k] ^= some & (0 - some);
    }
    return __ffs(static_cast<int>(mask)) - 1;
}

// Smooth columns of u8 on tensor cores.
// Grid: one block per tile of 24 rows and 128 bytes. Block: one warp. Reads each sample 1.33 times
// and writes it once, 16 bytes per access, in about 9 instructions; a tile that starts half a wave
// later is prefetched into the L2 cache. A near-tie costs a warp about 100 instructions. Tail: the
// exact path computes rows near the top and the bottom, and the last samples of a row that fill no
// vector. Shared memory: none. Registers: 96 (sm_90).
template <int RADIUS, bool ALPHA>
__global__ void __launch_bounds__(32, bytes_policy::BLOCKS)
    smooth_bytes(const __grid_constant__ bytes_args a) {
    typedef bytes_policy P;
    constexpr int ROWS = P::TILE_ROWS;
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    const int reach = static_cast<int>(a.constants.reach);
    int tile, y;
    columns_tile<P>(a, &tile, &y);
    const int begin = tile * P::TILE_BYTES, rest = a.row_bytes - begin, top = y - reach;
    uint32_t in[2][4][4]; // [half of the rows][row][word]
    const int at = 16 * (g / 2) + 64 * (g % 2);
    gf_wait_for_stream();
    if (at < rest) {
        const unsigned char *from = a.in + static_cast<int64_t>(top + t) * a.in_stride + begin + at;
        const bool inside = top >= a.low && top + P::LOADED_ROWS <= a.high;
#pragma unroll
        for (int r = 0; r < 8; r++)
            gf_load_words<16>(in[r / 4][r % 4],
                              inside ? from + static_cast<int64_t>(4 * r) * a.in_stride
                                     : columns_row(a, top + t + 4 * r) + begin + at);
    }
    const int later = top + a.ahead + lane; // the first 8 rows belong to the tile above, too
    if (lane >= 8 && later < a.high)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(
            a.in + static_cast<int64_t>(later) * a.in_stride + begin));

    // Rows g and g + 8 of the products: of the first half of the samples, and of the second one.
    // The taps of row g + 16 and the second half are those of row g and the first one.
    const uint32_t taps = reinterpret_cast<const uint32_t *>(a.taps)[lane];
    const uint32_t first[2] = {__shfl_sync(~0u, taps, 16 + t - g),
                               __shfl_sync(~0u, taps, 8 + t - g)};
    const uint32_t second[2] = {a.zero, __shfl_sync(~0u, taps, 24 + t - g)};
    const uint32_t start[4] = {a.start[0], a.start[1], a.start[2], a.start[3]};
    uint32_t out[3][2][4], ties[4] = {}; // [8 rows][half of the tile][word]; [word]
#pragma unroll
    for (int w = 0; w < 4; w++) {
        uint32_t b[2][4];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint32_t rows[4] = {in[half][0][w], in[half][1][w], in[half][2][w],
                                      in[half][3][w]};
            bytes_transpose(rows, b[half]);
        }
#pragma unroll
        for (int part = 0; part < 2; part++) { // 16 rows, then 8
            uint32_t sum[4][4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (part == 0)
                    gf_bytes_multiply(sum[j], start, first, second, b[0][j], b[1][j]);
                else
                    gf_bytes_multiply(sum[j], start, first, b[1][j]);
#pragma unroll
            for (int h = 2 * part; h < 2 + part; h++)
#pragma unroll
                for (int p = 0; p < 2; p++) {
                    const int k = h % 2 * 2 + p;
                    const auto s = [&](int i) {
                        return __fadd_rn(__uint_as_float(sum[i][k]), -8388608.0f);
                    };
                    out[h][p][w] = gf_both_round(s, a.scale, a.offset, &ties[w]);
                }
        }
    }
    const int rows = min(a.rows - y, ROWS), whole = min(rest, P::TILE_BYTES) & -16;
    const int64_t down = y + g, right = begin + 16 * t;
    const unsigned char *own = a.in + down * a.in_stride + right;
    unsigned char *to = a.out + down * a.out_stride + right;
    const uint32_t alpha = !ALPHA ? 0 : a.channels == 2 ? 0xff00ff00 : 0xff000000;
#pragma unroll
    for (int h = 0; h < 3; h++)
#pragma unroll
        for (int p = 0; p < 2; p++)
            if (g + 8 * h < rows && 16 * t + 64 * p < whole) {
                if (ALPHA) {
                    uint32_t words[4];
                    gf_load_words<16>(words,
                                      own + static_cast<int64_t>(8 * h) * a.in_stride + 64 * p);
#pragma unroll
                    for (int w = 0; w < 4; w++)
                        out[h][p][w] = (out[h][p][w] & ~alpha) | (words[w] & alpha);
                }
                gf_store_words<16>(to + static_cast<int64_t>(8 * h) * a.out_stride + 64 * p,
                                   out[h][p]);
            }

    // If most samples are near-ties, as in flat areas of some values, recompute all.
    int count = 0;
#pragma unroll
    for (int w = 0; w < 4; w++)
        count += __popc(ties[w]);
    const bool all = __popc(__ballot_sync(~0u, count > P::MAX_TIES)) > 16;
    // The windows of rows [first_row, last_row) are in memory, and not clipped.
    const int first_row = a.low + RADIUS + 1 - y, last_row = a.high - RADIUS - 1 - y;
    int w = 0;
#pragma unroll 1
    for (int bit = 0; !all && (bit = bytes_next_tie(ties, &w)) >= 0;) {
        const int word = 5 - bit % 8, r = word / 2 * 8, byte = word % 2 * 64 + 4 * w + bit / 8;
        if (g + r < first_row || g + r >= last_row || g + r >= rows || 16 * t + byte >= whole ||
            (alpha >> bit & 1) != 0)
            continue;
        const unsigned char *from = own + static_cast<int64_t>(r) * a.in_stride + byte;
        float result[1];
        gf_smooth_exact<uint8_t, RADIUS, true>(a.constants, 0, 0, result, [&](int d) {
            return gf_load(from[static_cast<int64_t>(d) * a.in_stride]);
        });
        to[static_cast<int64_t>(r) * a.out_stride + byte] = gf_store<uint8_t>(result[0]);
    }
    if (!all && whole == P::TILE_BYTES && first_row <= 0 && last_row >= rows)
        return;
    __syncwarp(); // after the stores of other lanes
#pragma unroll 1
    for (int r = 0; r < rows; r += 8)
        if (all || 4 * lane >= whole || r < first_row || min(r + 8, rows) > last_row)
            columns_exact<uint8_t, RADIUS>(a, y + r, y + r + 8, begin + 4 * lane,
                                           begin + 4 * lane + 4);
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

static void bytes_launch(bytes_args *a, const gf_smooth_job &job) {
    const gf_smooth_integer *by = &job.plan->integer;
    const int reach = static_cast<int>(by->reach);
    // A value is rounded once, to a multiple of 2^-16 if it is below 256.
    a->scale = by->scale;
    a->offset[1] = by->tie_margin + 0x1p-16f;
    a->offset[0] = -a->offset[1];
    for (uint32_t &start : a->start)
        start = 0x4b000000; // 2^23
    for (int i = -16; i < 16; i++)
        for (int k = 0; k < 4; k++) {
            const int row = i + 4 * k;
            a->taps[16 + i][k] = row >= 0 && row <= 2 * reach ? by->tap[row] : 0;
        }
    const int blocks = static_cast<int>(gf_sm_count()) * bytes_policy::AHEAD;
    a->ahead = (blocks / a->tiles_per_row + 1) * bytes_policy::TILE_ROWS;
    gf_dispatch(
        [&](auto radius, auto alpha) {
            gf_launch_kernel(smooth_bytes<radius, alpha>,
                             static_cast<unsigned>(a->tile_rows * a->tiles_per_row), 32, 0,
                             job.queue, *a);
        },
        gf_number<0, 3>{job.plan->radius}, gf_flag{gf_has_alpha(&job.plan->head.in)});
}

bool gf_smooth_columns(const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    const gf_smooth_integer *by = &plan->integer;
    const gf_format *format = &plan->head.in;
    if (plan->axis != GF_SMOOTH_Y || !gf_chain_fits(plan, format->type == GF_F32))
        return false;
    bytes_args bytes = {};
    if (format->type == GF_U8 && by->form == GF_SMOOTH_TAPS && by->reach > 0 &&
        gf_code_version(reinterpret_cast<const void *>(smooth_bytes<0, false>)) >= 80 &&
        columns_set<bytes_policy>(&bytes, job)) {
        bytes_launch(&bytes, job);
        return true;
    }
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
