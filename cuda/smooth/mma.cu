// smooth of u8 rows on tensor cores, by the plan's integer form (gf_smooth_fixed): 256 samples of a
// warp need as few as 2 matrix products. One kernel, smooth_mma.
//
// A line is 128 bytes of a row, with interleaved channels: 8 chunks of 16 bytes. A chunk, with SIDE
// bytes before and after it, is one row of a byte matrix. The other matrix contains the taps, C
// bytes apart and shifted by one byte per column. The product contains the weighted sums. With this
// layout of the fragments, a lane loads and stores the word of its own number:
//
//     A  lane 4g + t has word t of each 16 bytes of chunk g, and the same of a second line, whose
//        chunks are rows 8 to 15
//     D  lane 4g + t gets two adjacent columns of chunk g, twice: the sums of its word t
//
// Sums start below 2^31 - 1 such that they saturate where samples become white. They are scaled and
// rounded in the plan's fixed point: the highest byte is the result. If the next byte is 0, the
// sample is a near-tie, and the exact path computes it.
#include "cuda/smooth/device.cuh"
#include "cuda/window/bytes.cuh"

// Tuning constants of smooth_mma. Sizes are in bytes.
struct mma_policy {
    static constexpr int LINE = 128;
    static constexpr int GROUPS = 3; // maximum groups of 8 lines per tile
    static constexpr int TILE = GROUPS * 8 * LINE;
    static constexpr int MAX_TIES = 20; // of a lane's 96 samples; more: recomputing all is as fast
    // Resident blocks per SM, which limit the registers. Only data-center chips hold 32 blocks.
    static constexpr int BLOCKS = gf_arch == 800 || gf_arch == 900 || gf_arch / 100 == 10 ? 32 : 16;
};

struct mma_args : gf_smooth_rows {
    uint32_t taps[32];     // byte SIDE + 16 + d: of an input d bytes after the output
    uint32_t start;        // of every sum; saturates after gf_smooth_fixed.max more
    uint32_t factor, half; // fixed-point factor and offset of a sum
    uint32_t row_bytes;
    uint32_t left, right; // before and from here on, windows contain an edge
    // A tile is rows_per_tile rows, or if that is 0, tile_bytes of a row, or last_bytes at its end.
    uint32_t rows_per_tile, tiles_per_row, tile_bytes, last_bytes;
    gf_divider strides, tiles, edges; // divide by in_stride, tiles_per_row, edge samples per row
};

// ---- products -----------------------------------------------------------------------------------

// Computation for C channels and windows of at most SIDE bytes on each side. RADIUS: 0: any.
template <int CHANNELS, int BYTES, int MEAN> struct mma_work {
    static const int C = CHANNELS, SIDE = BYTES, RADIUS = MEAN;
    static const int PARTS = SIDE / 8 + 1; // parts of 16 bytes per matrix row
    static const int OWN = SIDE / 16; // part that contains a lane's own word, if SIDE % 16 == 0
    static const int AT_ONCE = PARTS <= 3 ? 4 : 2; // lines loaded at a time
    static const uint32_t FILTERED = C == 2 ? 0x00800080u : C == 4 ? 0x00808080u : 0x80808080u;
    static_assert(SIDE % 16 == 0 || (SIDE == 8 && C % 2 == 1), "alpha is taken from OWN");
    static_assert(2 * (SIDE + 16) <= 32 * 4, "all taps fit in the arguments, one word per lane");

    uint32_t taps[2][PARTS]; // for the first and the last two bytes of a word
    uint32_t start[4];

    // Return the offset of part p from the first byte of the chunk.
    GF_DEVICE int offset(int part) {
        return 16 * part - SIDE;
    }

    // Load the matrix of taps. A lane has 4 rows, from 4 * (lane % 4), of column lane / 4. This
    // column is the sum at byte 4 * (column / 2) + column % 2 of a chunk, or at that plus 2.
    __device__ __forceinline__ void set_up(const mma_args &args, int *quad) {
        const int lane = threadIdx.x % 32, odd = lane / 4 % 2;
        const uint32_t own = args.taps[lane];
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            const int at = (SIDE + 16 + offset(p)) / 4 + lane % 4 - lane / 8;
            const uint32_t before = __shfl_sync(~0u, own, at - 1);
            const uint32_t here = __shfl_sync(~0u, own, at);
            taps[0][p] = odd ? __funnelshift_r(before, here, 24) : here;
            taps[1][p] = __funnelshift_r(before, here, odd ? 8 : 16);
        }
        // The products need four consecutive registers. If the compiler could prove that all are
        // equal, it would copy one register for each product.
        if (lane < 4)
            quad[lane] = static_cast<int>(args.start);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++)
            start[i] = static_cast<const volatile int *>(quad)[i];
    }

    // Compute the results of a lane's words in two lines, x and y. tie: highest bits of bytes.
    __device__ __forceinline__ void lines(const mma_args &args, const uint32_t *x,
                                          const uint32_t *y, uint32_t *result,
                                          uint32_t *tie) const {
        uint32_t pair[2][2]; // [line][first or second two bytes]: fractions, then results
#pragma unroll
        for (int s = 0; s < 2; s++) {
            uint32_t sum[4];
#pragma unroll
            for (int p = 0; p + 1 < PARTS; p += 2)
                gf_bytes_multiply(sum, p == 0 ? start : sum, {x[p], y[p]}, {x[p + 1], y[p + 1]},
                                  taps[s][p], taps[s][p + 1]);
            if (PARTS % 2)
                gf_bytes_multiply(sum, sum, {x[PARTS - 1], y[PARTS - 1]}, taps[s][PARTS - 1]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[i] = sum[i] * args.factor + args.half;
            pair[0][s] = __byte_perm(sum[0], sum[1], 0x7362);
            pair[1][s] = __byte_perm(sum[2], sum[3], 0x7362);
        }
#pragma unroll
        for (int l = 0; l < 2; l++) {
            const uint32_t own = (l ? y : x)[OWN];
            const uint32_t fraction = __byte_perm(pair[l][0], pair[l][1], 0x5410);
            result[l] = __byte_perm(pair[l][0], pair[l][1], 0x7632);
            if (C == 2)
                result[l] = (result[l] & 0x00ff00ffu) | (own & 0xff00ff00u);
            if (C == 4)
                result[l] = (result[l] & 0x00ffffffu) | (own & 0xff000000u);
            // Mark bytes that are 0. A byte of 1 above one is marked, too, which only costs time.
            tie[l] = (fraction - 0x01010101u) & ~fraction & FILTERED;
        }
    }
};

// ---- tiles --------------------------------------------------------------------------------------

// Shared memory of a warp. The tile is surrounded by the units of 16 bytes that windows may reach.
// It has the alignment of global memory in 32-byte sectors: a copy reads a misaligned one twice.
template <typename Work> struct __align__(128) mma_shared {
    static const int BEFORE = mma_policy::LINE / 16;
    static const int AROUND = (Work::SIDE + 15) / 16;
    uint4 in[BEFORE + mma_policy::TILE / 16 + AROUND], out[mma_policy::TILE / 16];
    int queued[64]; // samples for the exact path, by offset in the tile; negative: none
};

// Tile. All sizes are in bytes.
struct mma_tile {
    const unsigned char *in;
    unsigned char *out;
    int begin; // offset in its row
    int rows;  // number of whole rows; 0: part of a row
    int bytes; // input bytes to process
};

GF_DEVICE mma_tile mma_find(const mma_args &a) {
    mma_tile tile = {};
    uint32_t y = blockIdx.x;
    if (a.rows_per_tile > 0) {
        y *= a.rows_per_tile;
        tile.rows = static_cast<int>(a.rows - y < a.rows_per_tile ? a.rows - y : a.rows_per_tile);
        tile.bytes = tile.rows * static_cast<int>(a.in_stride);
    } else {
        if (a.tiles_per_row > 1)
            y = gf_divide(y, a.tiles);
        const uint32_t before = blockIdx.x - y * a.tiles_per_row;
        tile.begin = before * a.tile_bytes;
        tile.bytes = static_cast<int>(before + 1 == a.tiles_per_row ? a.last_bytes : a.tile_bytes);
    }
    tile.in = gf_smooth_in(a, y) + tile.begin;
    tile.out = gf_smooth_out(a, y) + tile.begin;
    return tile;
}

// Start to copy a tile and its halo, without bytes outside of its rows: no result depends on them.
template <typename Work>
GF_DEVICE void mma_load(const mma_args &a, const mma_tile &tile, mma_shared<Work> *shared) {
    typedef mma_shared<Work> Shared;
    const int lane = threadIdx.x;
    const int memory = tile.rows > 0 ? tile.bytes : static_cast<int>(a.in_stride) - tile.begin;
    uint4 *to = shared->in + Shared::BEFORE;
#pragma unroll
    for (int k = 0; k < mma_policy::TILE / 512; k++)
        gf_copy_async(to + lane + 32 * k, tile.in + (lane + 32 * k) * 16,
                      (lane + 32 * k) * 16 < tile.bytes);
    const int halo_offset =
        lane < Shared::AROUND ? lane - Shared::AROUND : tile.bytes / 16 + lane - Shared::AROUND;
    gf_copy_async(to + halo_offset, tile.in + halo_offset * 16,
                  lane < 2 * Shared::AROUND && halo_offset * 16 + tile.begin >= 0 &&
                      halo_offset * 16 < memory);
}

// Store a tile: whole units, and the remaining bytes at the ends of whole rows.
template <typename Work>
GF_DEVICE void mma_store(const mma_args &a, const mma_tile &tile, const mma_shared<Work> *shared) {
    const int lane = threadIdx.x, units = tile.bytes / 16;
    if (tile.rows == 0) {
#pragma unroll
        for (int k = 0; k < mma_policy::TILE / 512; k++)
            if (lane + 32 * k < units)
                *reinterpret_cast<uint4 *>(tile.out + (lane + 32 * k) * 16) =
                    shared->out[lane + 32 * k];
        return;
    }
#pragma unroll 1
    for (int unit = lane; unit < units; unit += 32) {
        const uint32_t r = gf_divide(unit * 16, a.strides);
        const int pos = unit * 16 - static_cast<int>(r * static_cast<uint32_t>(a.in_stride));
        const int valid = static_cast<int>(a.row_bytes) - pos;
        unsigned char *to = tile.out + r * a.out_stride + pos;
        const unsigned char *from = reinterpret_cast<const unsigned char *>(shared->out + unit);
        if (valid >= 16)
            *reinterpret_cast<uint4 *>(to) = shared->out[unit];
        else
            for (int i = 0; i < valid; i++)
                to[i] = from[i];
    }
}

// ---- exact path ---------------------------------------------------------------------------------

// Compute sample `at` of a tile by the exact path; negative: none. The sample may be just after the
// tile, where less than 16 bytes of a row remain. All lanes must call it.
template <typename Work>
GF_DEVICE void mma_compute_sample(const mma_args &a, const mma_tile &tile, int at,
                                  mma_shared<Work> *shared) {
    const int C = Work::C, RADIUS = Work::RADIUS, radius = static_cast<int>(a.constants.radius);
    const unsigned char *in = reinterpret_cast<const unsigned char *>(shared->in + shared->BEFORE);
    uint32_t pos = tile.begin + at;
    if (tile.rows > 0)
        pos -= gf_divide(pos, a.strides) * static_cast<uint32_t>(a.in_stride);
    const uint32_t x = pos / C, after = static_cast<uint32_t>(a.width) - 1 - x;
    const int left = x < 64 ? x : 64, right = after < 64 ? after + 1 : 65;
    const bool active = at >= 0 && pos < a.row_bytes; // not in the padding between rows
    const bool inside = !active || (left > radius && right > radius + 1);
    const bool all_inside = RADIUS > 0 && __all_sync(~0u, inside);
    if (!active)
        return;
    in += at;
    uint8_t result = *in;
    if (GF_COLOURS(C) == C || pos % C != C - 1) { // alpha is copied
        float t[1];
        const auto get = [&](int d) { return gf_load(in[d * C]); };
        if constexpr (RADIUS > 0)
            if (all_inside)
                gf_smooth_exact<uint8_t, RADIUS, true>(a.constants, 0, 0, t, get);
        if (!all_inside) { // the tile may lack samples outside every window
            const int reach = static_cast<int>(a.constants.reach);
            gf_smooth_exact<uint8_t, RADIUS == 0 ? -1 : RADIUS>(a.constants, min(left, reach),
                                                                min(right, reach + 1), t, get);
        }
        result = gf_store<uint8_t>(t[0]);
    }
    if (at < tile.bytes)
        reinterpret_cast<unsigned char *>(shared->out)[at] = result;
    else
        tile.out[at] = result;
}

// Compute all samples of a tile by the stages in registers, as if no edge were near. A lane
// processes 16 or 24 bytes at a time, and the whole pixels in them.
template <typename Work>
GF_DEVICE void mma_compute_all(const mma_args &a, int bytes, mma_shared<Work> *shared) {
    const int C = Work::C, RADIUS = Work::RADIUS, AROUND = (RADIUS + 1) * C;
    const int WORDS = C == 3 ? 6 : 4, HALO = (AROUND + 3) / 4;
    const uint32_t *in = reinterpret_cast<const uint32_t *>(shared->in + shared->BEFORE);
    uint32_t *out = reinterpret_cast<uint32_t *>(shared->out);
#pragma unroll 1
    for (int first = threadIdx.x * WORDS; first * 4 < bytes; first += 32 * WORDS) {
        uint32_t words[WORDS + 2 * HALO], result[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS + 2 * HALO; i++)
            words[i] = in[first - HALO + i];
        gf_chain<uint8_t, C, RADIUS, WORDS * 4 / C, HALO * 4 - AROUND>(a.constants, words, result);
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            out[first + i] = result[i];
    }
}

// ---- kernel -------------------------------------------------------------------------------------

// Compute all samples of a tile on tensor cores, as if no edge were near. ties: 0; for each group
// of lines, gets one bit per near-tie of a lane: bit 7 - line of its byte, counted from the lowest.
template <typename Work>
GF_DEVICE void mma_compute(const Work &work, const mma_args &args, int bytes,
                           mma_shared<Work> *shared, uint32_t *ties) {
    const int PARTS = Work::PARTS, AT_ONCE = Work::AT_ONCE, lane = threadIdx.x;
    const uint32_t *from = reinterpret_cast<const uint32_t *>(shared->in + shared->BEFORE) + lane;
    uint32_t *to = reinterpret_cast<uint32_t *>(shared->out) + lane;
#pragma unroll
    for (int g = 0; g < mma_policy::GROUPS; g++) {
        if (g * 8 * mma_policy::LINE >= bytes)
            break;
#pragma unroll
        for (int l = 8 * g; l < 8 * g + 8; l += AT_ONCE) {
            uint32_t raw[AT_ONCE][PARTS];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
                for (int p = 0; p < PARTS; p++)
                    raw[k][p] = from[((l + k) * mma_policy::LINE + Work::offset(p)) / 4];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k += 2) {
                uint32_t result[2], tie[2];
                work.lines(args, raw[k], raw[k + 1], result, tie);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    to[(l + k + i) * (mma_policy::LINE / 4)] = result[i];
                    ties[g] |= tie[i] >> (l + k + i) % 8;
                }
            }
        }
    }
}

// Remove a lane's next near-tie and return its offset in the tile; -1 if there is none.
GF_DEVICE int mma_next(uint32_t *ties) {
    uint32_t mask = 0;
    int line = 7;
#pragma unroll
    for (int g = 0; g < mma_policy::GROUPS; g++) { // without branches
        const uint32_t group = mask == 0 ? ties[g] : 0;
        line = group != 0 ? 8 * g + 7 : line;
        mask |= group;
        ties[g] ^= group & (0 - group);
    }
    const int bit = __ffs(mask) - 1, lane = threadIdx.x;
    return mask == 0 ? -1 : (line - bit % 8) * mma_policy::LINE + lane * 4 + bit / 8;
}

// Compute the edge samples and the near-ties by the exact path, 32 samples at a time.
template <typename Work>
GF_DEVICE void mma_compute_exact(const mma_args &a, const mma_tile &tile, uint32_t *ties,
                                 mma_shared<Work> *shared) {
    const int lane = threadIdx.x;
    // Edge samples of a row in this tile: those before `left` and from `right` on.
    const int row_end = static_cast<int>(a.row_bytes) - tile.begin;
    const int left_count = max(static_cast<int>(a.left) - tile.begin, 0);
    const int right_begin = max(static_cast<int>(a.right) - tile.begin, 0);
    // Less than 16 bytes remain after the last tile.
    const int end = tile.rows > 0 || row_end < tile.bytes + 16 ? row_end : tile.bytes;
    const int per_row = left_count + max(end - right_begin, 0);
    const int edges = tile.rows > 0 ? per_row * tile.rows : per_row;
    int done = 0;
    uint32_t queued = 0;
    bool more;
    do {
        // Get up to 32 samples, one per lane. Ignore near-ties after the tile.
        const bool edge = done < edges;
        int at = -1;
        if (edge) {
            const int i = done + lane, r = per_row == 1 ? i : gf_divide(i, a.edges);
            const int k = i - r * per_row;
            if (i < edges)
                at = r * static_cast<int>(a.in_stride) +
                     (k < left_count ? k : right_begin + k - left_count);
            done += 32;
        } else {
            at = mma_next(ties);
        }
        const uint32_t lanes = __ballot_sync(~0u, at >= 0);
        more = edge || lanes != 0;
        if (at >= 0)
            shared->queued[queued + __popc(lanes & ((1u << lane) - 1))] =
                !edge && at >= tile.bytes ? -1 : at;
        queued += __popc(lanes);
        __syncwarp();
        if (queued >= 32 || !more) {
            const uint32_t batch = queued < 32 ? queued : 32;
            queued -= batch;
            mma_compute_sample<Work>(
                a, tile, lane < static_cast<int>(batch) ? shared->queued[queued + lane] : -1,
                shared);
            __syncwarp();
        }
    } while (more);
}

// Smooth rows on tensor cores.
// Grid: one block per tile. Block: one warp. A tile is up to 3 KB of a row, or several whole narrow
// rows with the padding between them. Finished blocks are replaced in image order, therefore
// resident blocks access one region of memory; a warp that processes a second tile loses a tenth of
// its speed. Reads and writes each sample once, 16 bytes per access, in about 9 instructions; every
// 32 near-ties and edge samples cost a warp 150 more. Shared memory: 6.6 KB. Registers: 50 to 64
// (sm_90), 32 resident blocks.
template <typename Work>
__global__ void __launch_bounds__(32, mma_policy::BLOCKS)
    smooth_mma(const __grid_constant__ mma_args a) {
    __shared__ mma_shared<Work> shared;
    const mma_tile tile = mma_find(a);
    gf_wait_for_stream();
    mma_load(a, tile, &shared);
    __pipeline_commit();
    Work work;
    work.set_up(a, shared.queued);
    __pipeline_wait_prior(0);
    __syncwarp();
    uint32_t ties[mma_policy::GROUPS] = {};
    mma_compute(work, a, tile.bytes, &shared, ties);
    __syncwarp();

    // If most samples are near-ties, as in flat areas of some values, recompute all.
    if constexpr (Work::RADIUS > 0) {
        int is_tie = 0;
#pragma unroll
        for (int g = 0; g < mma_policy::GROUPS; g++)
            is_tie += __popc(ties[g]);
        if (__popc(__ballot_sync(~0u, is_tie > mma_policy::MAX_TIES)) > 16) {
            mma_compute_all<Work>(a, tile.bytes, &shared);
#pragma unroll
            for (int g = 0; g < mma_policy::GROUPS; g++)
                ties[g] = 0;
            __syncwarp();
        }
    }

    mma_compute_exact(a, tile, ties, &shared);
    mma_store<Work>(a, tile, &shared);
}

// ---- launch -------------------------------------------------------------------------------------

// Divide rows into tiles, for 16-byte accesses. Sets the rest of the arguments.
static void mma_set_tiles(mma_args *a, uint32_t channels) {
    const uint32_t max = mma_policy::TILE, stride = static_cast<uint32_t>(a->in_stride);
    const uint32_t row = static_cast<uint32_t>(a->width * channels),
                   edge = a->constants.reach * channels;
    const uint32_t whole = row & ~15u;
    a->row_bytes = row;
    a->left = edge < row ? edge : row;
    a->right = row - a->left > edge ? row - edge : a->left;
    a->strides = gf_divider_of(stride);
    if (stride <= max / 2) {
        a->rows_per_tile = max / stride;
        a->tiles_per_row = 1;
        a->edges = gf_divider_of(a->left + row - a->right);
        return;
    }
    if (a->right > whole)
        a->right = whole;
    // Divide the row into about equal tiles of whole lines.
    const uint32_t line = mma_policy::LINE, lines = (whole + line - 1) / line;
    const uint32_t fewest = (lines + max / line - 1) / (max / line);
    a->tile_bytes = (lines + fewest - 1) / fewest * line;
    a->tiles_per_row = (whole + a->tile_bytes - 1) / a->tile_bytes;
    a->last_bytes = whole - (a->tiles_per_row - 1) * a->tile_bytes;
    a->tiles = gf_divider_of(a->tiles_per_row);
}

// Queue the kernel for all rows of an image. Returns false if rows are too long or too many for its
// counters or too short for their stride, or if the plan or the device code does not support it.
template <typename Work> static bool mma_launch(const gf_smooth_job &job) {
    const gf_smooth_integer *by = &job.plan->integer;
    gf_smooth_fixed fixed;
    mma_args a = {};
    gf_smooth_set_rows(&a, job);
    if (a.in_stride > UINT32_C(1) << 30 ||
        (a.in_stride > mma_policy::TILE / 2 && a.width * Work::C < 16) ||
        !gf_smooth_fixed_of(by, &fixed) ||
        gf_code_version(reinterpret_cast<const void *>(smooth_mma<Work>)) < 80)
        return false;
    a.start = 0x7fffffffu - fixed.max;
    a.factor = fixed.factor;
    a.half = fixed.half - a.start * a.factor; // integers modulo 2^32
    const int reach = static_cast<int>(by->reach);
    for (int k = -reach; k <= reach; k++) {
        const int byte = Work::SIDE + 16 + k * Work::C;
        a.taps[byte / 4] |= static_cast<uint32_t>(by->tap[k + reach]) << 8 * (byte % 4);
    }
    mma_set_tiles(&a, Work::C);
    if (job.strip.out.rows > (UINT64_C(1) << 30) / a.tiles_per_row)
        return false;
    const unsigned tiles =
        a.rows_per_tile > 0 ? gf_blocks(a.rows, a.rows_per_tile) : a.rows * a.tiles_per_row;
    gf_launch_kernel(smooth_mma<Work>, dim3(tiles, a.images.count), 32, 0, job.queue, a);
    return true;
}

bool gf_smooth_mma_rows(const gf_smooth_job &job) {
    const gf_smooth_integer *by = &job.plan->integer;
    // A gain without a mean may make every second sample a tie.
    if (!gf_smooth_rows_fit(job.plan) || job.wide || by->form != GF_SMOOTH_TAPS || by->reach == 0)
        return false;
    const uint32_t channels = job.plan->head.in.channels, side = by->reach * channels;
    const uint32_t radius = job.plan->radius;
    bool done = false;
    gf_dispatch(
        [&](auto n, auto units, auto mean) {
            // With SIDE 8, the chunk itself is not loaded aligned: images with alpha need 16.
            constexpr int C = n, SIDE = units > 0 ? 16 * units : 8, R = mean;
            constexpr int MAX = (GF_SMOOTH_INTEGER_REACH * C + 15) / 16 * 16;
            // Whether a mean of this radius may need SIDE bytes, and no fewer.
            constexpr bool NEEDED =
                SIDE <= 16 && R * C <= SIDE && (SIDE == 8 || C % 2 == 0 || (R + 1) * C > 8);
            if constexpr (SIDE <= MAX && (SIDE > 8 || C % 2 == 1))
                done = mma_launch<mma_work<C, SIDE, NEEDED ? R : 0>>(job);
        },
        gf_channels{channels}, gf_number<0, 3>{side <= 8 && channels % 2 ? 0 : (side + 15) / 16},
        gf_number<0, 3>{radius <= 3 ? radius : 0});
    return done;
}
