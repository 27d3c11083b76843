// smooth of u8 rows by tensor cores: the plan's integer form (gf_smooth_fixed), 256 samples of a
// warp with as few as 2 matrix products. One kernel, smooth_mma.
//
// A line is 128 bytes of a row, its channels as they lie: 8 chunks of 16. With SIDE bytes before
// and after it, a chunk is a row of a matrix of bytes; the taps, shifted by a byte from column to
// column and C bytes apart, are the other matrix; their product holds the weighted sums. Its
// fragments make a lane read and write the word of its own number:
//
//   A  lane 4g + t has the words t of each 16 bytes of chunk g; and so of a second line, whose
//      chunks are the rows 8 to 15
//   D  lane 4g + t gets two neighbouring columns of chunk g, twice: the sums of its word t
//
// Sums saturate where samples become white, because they begin that far below 2^31 - 1. They are
// multiplied and rounded in the plan's fixed point: the highest byte is the result, and the next
// one is 0 where the sample is a near-tie: there the exact path decides.
#include "smooth_chain.cuh"

#include "smooth/smooth.h"

// The kernel's policy.
#define GF_MMA_THREADS 32 // a warp
#define GF_MMA_LINE 128
#define GF_MMA_GROUPS 3 // of 8 lines, that a tile may have
#define GF_MMA_TILE (GF_MMA_GROUPS * 8 * GF_MMA_LINE)
#define GF_MMA_MAX_SIDE 48
#define GF_MMA_TAP_WORDS (GF_MMA_MAX_SIDE / 2 + 8)
#define GF_MMA_MANY 20 // near-ties of a lane's 96 samples: computing all is as fast
// Blocks whose registers must fit an SM; chips that are not made for computing hold fewer blocks.
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ / 100 == 10
#define GF_MMA_BLOCKS 32
#else
#define GF_MMA_BLOCKS 16
#endif

struct gf_mma_args {
    uint32_t taps[GF_MMA_TAP_WORDS]; // byte SIDE + 16 + d: of an input d bytes after the output
    uint32_t start;                  // of every sum; saturates at `most` more
    uint32_t factor, half;           // of a sum
    uint32_t row_bytes;
    uint32_t tile_bytes, last; // of a tile that is a part of a row, and of its last tile
    uint32_t left, right;      // before and from here on, a row has only edge
    gf_divider tiles, edges;   // divide by the tiles of a row; by the samples of a row's edges
};

// Fills in what does not depend on the image; false if there is no such form.
static inline bool gf_mma_args_of(const gf_smooth_integer *by, int channels, int side,
                                  gf_mma_args *args) {
    gf_smooth_fixed fixed;
    if (!gf_smooth_fixed_of(by, &fixed))
        return false;
    args->start = 0x7fffffffu - fixed.max;
    args->factor = fixed.factor;
    args->half = fixed.half - args->start * args->factor; // whole numbers modulo 2^32
    const int reach = static_cast<int>(by->reach);
    for (int k = -reach; k <= reach; k++) {
        const int byte = side + 16 + k * channels;
        args->taps[byte / 4] |= static_cast<uint32_t>(by->tap[k + reach]) << 8 * (byte % 4);
    }
    return true;
}

// ---- products -----------------------------------------------------------------------------------

// to = from + bytes * taps, of 32 or 16 bytes a row, saturating.
GF_DEVICE void gf_mma(uint32_t *to, const uint32_t *from, uint32_t a0, uint32_t a1, uint32_t a2,
                      uint32_t a3, uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(from[0]), "r"(from[1]),
          "r"(from[2]), "r"(from[3]));
#else
    __trap(); // never launched
#endif
}

GF_DEVICE void gf_mma(uint32_t *to, const uint32_t *from, uint32_t a0, uint32_t a1, uint32_t b0) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};\n"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a0), "r"(a1), "r"(b0), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]));
#else
    __trap();
#endif
}

// Of samples of C channels whose windows reach at most SIDE bytes to either side; of means with
// that RADIUS, or, if it is 0, any.
template <int CHANNELS, int BYTES, int MEAN> struct gf_mma_work {
    static const int C = CHANNELS, SIDE = BYTES, RADIUS = MEAN;
    static const int PARTS = SIDE / 8 + 1; // of 16 bytes, a chunk's row
    static const int OWN = SIDE / 16; // the part that holds a lane's own word, if SIDE % 16 == 0
    static const int AT_ONCE = PARTS <= 3 ? 4 : 2; // lines
    static const uint32_t FILTERED = C == 2 ? 0x00800080u : C == 4 ? 0x00808080u : 0x80808080u;
    static_assert(SIDE % 16 == 0 || (SIDE == 8 && C % 2 == 1), "alpha is taken from OWN");
    static_assert(SIDE <= GF_MMA_MAX_SIDE, "all taps fit in the arguments");

    uint32_t taps[2][PARTS]; // of the first and the last two bytes of a word
    uint32_t start[4];

    // Byte k of part p lies so far after the first of the chunk.
    GF_DEVICE int offset(int part) {
        return 16 * part - SIDE;
    }

    // Of the taps' matrix a lane has 4 rows from 4 * (lane % 4) on of column lane / 4, which is the
    // sum at byte 4 * (column / 2) + column % 2 of a chunk, or that plus 2. four: shared memory.
    __device__ __forceinline__ void set_up(const gf_mma_args &args, int *four) {
        const int lane = threadIdx.x % 32, odd = lane / 4 % 2;
        static_assert(GF_MMA_TAP_WORDS == 32, "a word a lane");
        const uint32_t mine = args.taps[lane];
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            const int at = (SIDE + 16 + offset(p)) / 4 + lane % 4 - lane / 8;
            const uint32_t before = __shfl_sync(~0u, mine, at - 1);
            const uint32_t here = __shfl_sync(~0u, mine, at);
            taps[0][p] = odd ? __funnelshift_r(before, here, 24) : here;
            taps[1][p] = __funnelshift_r(before, here, odd ? 8 : 16);
        }
        // Four registers side by side, as the products take them. Of a value that it knows to be
        // one, the compiler would make copies for each product.
        if (lane < 4)
            four[lane] = static_cast<int>(args.start);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++)
            start[i] = static_cast<const volatile int *>(four)[i];
    }

    // The words of a lane in two lines, x and y, become its results; a bit (the highest of a byte)
    // for each near-tie.
    __device__ __forceinline__ void lines(const gf_mma_args &args, const uint32_t *x,
                                          const uint32_t *y, uint32_t *result,
                                          uint32_t *tie) const {
        uint32_t pair[2][2]; // [line][first or second two bytes]: fractions, then results
#pragma unroll
        for (int s = 0; s < 2; s++) {
            uint32_t sum[4];
#pragma unroll
            for (int p = 0; p + 1 < PARTS; p += 2)
                gf_mma(sum, p == 0 ? start : sum, x[p], y[p], x[p + 1], y[p + 1], taps[s][p],
                       taps[s][p + 1]);
            if (PARTS % 2)
                gf_mma(sum, sum, x[PARTS - 1], y[PARTS - 1], taps[s][PARTS - 1]);
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
            // Of bytes that are 0 (and of a 1 above one: that costs time only).
            tie[l] = (fraction - 0x01010101u) & ~fraction & FILTERED;
        }
    }
};

// ---- tiles --------------------------------------------------------------------------------------

// Around a tile lie as many units of 16 bytes as windows reach. It lies as in memory relative to
// sectors of 32 bytes: an asynchronous copy reads those twice that it has to take apart.
template <typename Work> struct __align__(128) gf_mma_shared {
    static const int BEFORE = GF_MMA_LINE / 16;
    static const int AROUND = (Work::SIDE + 15) / 16;
    uint4 in[BEFORE + GF_MMA_TILE / 16 + AROUND];
    uint4 out[GF_MMA_TILE / 16];
    int waiting[64]; // samples for the exact path, by their place in the tile; none if negative
};

// A tile, in bytes.
struct gf_mma_tile {
    const unsigned char *in;
    unsigned char *out;
    int begin; // in its row
    int rows;  // that it has whole; 0: it is a part of a row
    int bytes; // of the input, that are done here
};

GF_DEVICE gf_mma_tile gf_mma_find(const gf_walk &a, const gf_mma_args &args) {
    gf_mma_tile tile;
    uint32_t y = blockIdx.x;
    if (a.rows_a_tile > 0) {
        y *= a.rows_a_tile;
        tile.begin = 0;
        tile.rows = static_cast<int>(a.rows - y < a.rows_a_tile ? a.rows - y : a.rows_a_tile);
        tile.bytes = tile.rows * static_cast<int>(a.in_stride);
    } else {
        if (a.tiles_a_row > 1)
            y = gf_divide(y, args.tiles);
        const uint32_t before = blockIdx.x - y * a.tiles_a_row;
        tile.begin = before * args.tile_bytes;
        tile.rows = 0;
        tile.bytes = static_cast<int>(before + 1 == a.tiles_a_row ? args.last : args.tile_bytes);
    }
    tile.in = a.in + y * a.in_stride + tile.begin;
    tile.out = a.out + y * a.out_stride + tile.begin;
    return tile;
}

// Begins to copy a tile and what lies around it. What is not in its rows' memory is left out: no
// result depends on it.
template <typename Work>
GF_DEVICE void gf_mma_fetch(const gf_walk &a, const gf_mma_tile &tile,
                            gf_mma_shared<Work> *shared) {
    typedef gf_mma_shared<Work> Shared;
    const int lane = threadIdx.x;
    const int memory = tile.rows > 0 ? tile.bytes : static_cast<int>(a.in_stride) - tile.begin;
    uint4 *to = shared->in + Shared::BEFORE;
#pragma unroll
    for (int k = 0; k < GF_MMA_TILE / 512; k++)
        gf_copy_async(to + lane + 32 * k, tile.in + (lane + 32 * k) * 16,
                      (lane + 32 * k) * 16 < tile.bytes);
    const int beside =
        lane < Shared::AROUND ? lane - Shared::AROUND : tile.bytes / 16 + lane - Shared::AROUND;
    gf_copy_async(to + beside, tile.in + beside * 16,
                  lane < 2 * Shared::AROUND && beside * 16 + tile.begin >= 0 &&
                      beside * 16 < memory);
}

// Writes a tile: whole units, and what is less at the ends of whole rows.
template <typename Work>
GF_DEVICE void gf_mma_write(const gf_walk &a, const gf_mma_args &args, const gf_mma_tile &tile,
                            const gf_mma_shared<Work> *shared) {
    const int lane = threadIdx.x, units = tile.bytes / 16;
    if (tile.rows == 0) {
#pragma unroll
        for (int k = 0; k < GF_MMA_TILE / 512; k++)
            if (lane + 32 * k < units)
                *reinterpret_cast<uint4 *>(tile.out + (lane + 32 * k) * 16) =
                    shared->out[lane + 32 * k];
        return;
    }
#pragma unroll 1
    for (int unit = lane; unit < units; unit += 32) {
        const uint32_t r = gf_divide(unit * 16, a.by);
        const int pos = unit * 16 - static_cast<int>(r * static_cast<uint32_t>(a.in_stride));
        const int there = static_cast<int>(args.row_bytes) - pos;
        unsigned char *to = tile.out + r * a.out_stride + pos;
        const unsigned char *from = reinterpret_cast<const unsigned char *>(shared->out + unit);
        if (there >= 16)
            *reinterpret_cast<uint4 *>(to) = shared->out[unit];
        else
            for (int i = 0; i < there; i++)
                to[i] = from[i];
    }
}

// ---- exact path ---------------------------------------------------------------------------------

// Computes sample `at` of a tile by the exact path, or just behind it, where less than 16 bytes of
// a row are left; none if negative. All lanes call it.
template <typename Work>
GF_DEVICE void gf_mma_exact_sample(const gf_walk &a, const gf_mma_args &args,
                                   const gf_mma_tile &tile, int at, gf_mma_shared<Work> *shared) {
    const int C = Work::C, RADIUS = Work::RADIUS, radius = static_cast<int>(a.radius);
    const unsigned char *in = reinterpret_cast<const unsigned char *>(shared->in + shared->BEFORE);
    uint32_t pos = tile.begin + at;
    if (tile.rows > 0)
        pos -= gf_divide(pos, a.by) * static_cast<uint32_t>(a.in_stride);
    const uint32_t x = pos / C, after = static_cast<uint32_t>(a.width) - 1 - x;
    const int left = x < 64 ? x : 64, right = after < 64 ? after + 1 : 65;
    const bool does = at >= 0 && pos < args.row_bytes; // not between rows
    const bool inside = !does || (left > radius && right > radius + 1);
    const bool easy = RADIUS > 0 && __all_sync(~0u, inside);
    if (!does)
        return;
    in += at;
    uint8_t result = *in;
    if (GF_COLOURS(C) == C || pos % C != C - 1) { // an alpha is carried
        float t[1];
        if constexpr (RADIUS > 0)
            if (easy)
                gf_smooth_exact<uint8_t, C, RADIUS, RADIUS + 1, 1, true>(a, in, 0, 0, t);
        if (!easy) { // samples that no window reaches may not be in the tile
            const int reach = static_cast<int>(a.reach);
            gf_smooth_exact<uint8_t, C, RADIUS == 0 ? -1 : RADIUS, RADIUS == 0 ? 0 : RADIUS + 1, 1>(
                a, in, left < reach ? left : reach, right <= reach ? right : reach + 1, t);
        }
        result = gf_store<uint8_t>(t[0]);
    }
    if (at < tile.bytes)
        reinterpret_cast<unsigned char *>(shared->out)[at] = result;
    else
        tile.out[at] = result;
}

// All samples of a tile as if no end of a row were near, by the stages in registers: a lane 16 or
// 24 bytes at a time, as many pixels as there are whole in them.
template <typename Work>
GF_DEVICE void gf_mma_all(const gf_walk &a, int bytes, gf_mma_shared<Work> *shared) {
    const int C = Work::C, RADIUS = Work::RADIUS, AROUND = (RADIUS + 1) * C;
    const int WORDS = C == 3 ? 6 : 4, BESIDE = (AROUND + 3) / 4;
    const gf_chain_args args = {a.constants.gain, -8388608.0f * a.constants.gain};
    const uint32_t *in = reinterpret_cast<const uint32_t *>(shared->in + shared->BEFORE);
    uint32_t *out = reinterpret_cast<uint32_t *>(shared->out);
#pragma unroll 1
    for (int first = threadIdx.x * WORDS; first * 4 < bytes; first += 32 * WORDS) {
        uint32_t words[WORDS + 2 * BESIDE], result[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS + 2 * BESIDE; i++)
            words[i] = in[first - BESIDE + i];
        gf_chain<uint8_t, uint8_t, C, RADIUS, WORDS * 4 / C, BESIDE * 4 - AROUND>(a.constants, args,
                                                                                  words, result);
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            out[first + i] = result[i];
    }
}

// ---- kernel -------------------------------------------------------------------------------------

// All samples of a tile as if no end of a row were near. doubts: of each group of lines, a bit for
// each of a lane's near-ties: 7 - line, from the lowest of its byte.
template <typename Work>
GF_DEVICE void gf_mma_products(const Work &work, const gf_mma_args &args, int bytes,
                               gf_mma_shared<Work> *shared, uint32_t *ties) {
    const int PARTS = Work::PARTS, AT_ONCE = Work::AT_ONCE, lane = threadIdx.x;
    const uint32_t *from = reinterpret_cast<const uint32_t *>(shared->in + shared->BEFORE) + lane;
    uint32_t *to = reinterpret_cast<uint32_t *>(shared->out) + lane;
#pragma unroll
    for (int g = 0; g < GF_MMA_GROUPS; g++)
        ties[g] = 0;
#pragma unroll
    for (int g = 0; g < GF_MMA_GROUPS; g++) {
        if (g * 8 * GF_MMA_LINE >= bytes)
            break;
#pragma unroll
        for (int l = 8 * g; l < 8 * g + 8; l += AT_ONCE) {
            uint32_t raw[AT_ONCE][PARTS];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
                for (int p = 0; p < PARTS; p++)
                    raw[k][p] = from[((l + k) * GF_MMA_LINE + Work::offset(p)) / 4];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k += 2) {
                uint32_t result[2], tie[2];
                work.lines(args, raw[k], raw[k + 1], result, tie);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    to[(l + k + i) * (GF_MMA_LINE / 4)] = result[i];
                    ties[g] |= tie[i] >> (l + k + i) % 8;
                }
            }
        }
    }
}

// Takes the place of a lane's next near-tie; -1 if there is none.
GF_DEVICE int gf_mma_next(uint32_t *ties) {
    uint32_t some = 0;
    int line = 7;
#pragma unroll
    for (int g = GF_MMA_GROUPS - 1; g >= 0; g--)
        if (ties[g] != 0) {
            some = ties[g];
            line = 8 * g + 7;
        }
    bool found = false;
#pragma unroll
    for (int g = 0; g < GF_MMA_GROUPS; g++)
        if (!found && ties[g] != 0) {
            ties[g] &= ties[g] - 1;
            found = true;
        }
    const int bit = __ffs(static_cast<int>(some)) - 1, lane = threadIdx.x;
    return some == 0 ? -1 : (line - bit % 8) * GF_MMA_LINE + lane * 4 + bit / 8;
}

// The edges and the near-ties by the exact path, 32 samples at a time.
template <typename Work>
GF_DEVICE void gf_mma_exact(const gf_walk &a, const gf_mma_args &args, const gf_mma_tile &tile,
                            uint32_t *ties, gf_mma_shared<Work> *shared) {
    const int lane = threadIdx.x;
    // The edges of a row: what lies before `left` and from `right` on, as far as it is here.
    const int row_end = static_cast<int>(args.row_bytes) - tile.begin;
    int lefts = static_cast<int>(args.left) - tile.begin;
    int ends = static_cast<int>(args.right) - tile.begin;
    lefts = lefts > 0 ? lefts : 0;
    ends = ends > 0 ? ends : 0;
    // Behind the last tile less than 16 bytes are left.
    const int end = tile.rows > 0 || row_end < tile.bytes + 16 ? row_end : tile.bytes;
    const int a_row = lefts + (end > ends ? end - ends : 0);
    const int edges = tile.rows > 0 ? a_row * tile.rows : a_row;
    int done = 0;
    uint32_t waiting = 0;
    bool more;
    do {
        // Up to 32 samples, one a lane. Near-ties behind the tile do not count.
        const bool edge = done < edges;
        int at = -1;
        if (edge) {
            const int i = done + lane;
            const int r = a_row == 1 ? i : gf_divide(i, args.edges);
            const int k = i - r * a_row;
            if (i < edges)
                at = r * static_cast<int>(a.in_stride) + (k < lefts ? k : ends + k - lefts);
            done += 32;
        } else {
            at = gf_mma_next(ties);
        }
        const uint32_t lanes = __ballot_sync(~0u, at >= 0);
        more = edge || lanes != 0;
        if (at >= 0)
            shared->waiting[waiting + __popc(lanes & ((1u << lane) - 1))] =
                !edge && at >= tile.bytes ? -1 : at;
        waiting += __popc(lanes);
        __syncwarp();
        if (waiting >= 32 || !more) {
            const uint32_t some = waiting < 32 ? waiting : 32;
            waiting -= some;
            gf_mma_exact_sample<Work>(
                a, args, tile, lane < static_cast<int>(some) ? shared->waiting[waiting + lane] : -1,
                shared);
            __syncwarp();
        }
    } while (more);
}

// A block is a warp and computes a tile: up to 3 KB of a row, or as many narrow rows, with what
// lies between them. Blocks that end at once make room for others in the order of the image, which
// suits the memory; a warp that stays for a second tile loses a tenth of its speed. Shared
// memory: 6.6 KB. Reads a sample once and writes it once, 16 bytes at a time, in about 9
// instructions; of near-ties and samples near a row's ends, every 32 cost a warp 150 more.
// Registers: 50 to 64 (sm_90), so that 32 blocks are resident.
template <typename Work>
__global__ void __launch_bounds__(GF_MMA_THREADS, GF_MMA_BLOCKS)
    smooth_mma(const __grid_constant__ gf_walk a, const __grid_constant__ gf_mma_args args) {
    __shared__ gf_mma_shared<Work> shared;
    const gf_mma_tile tile = gf_mma_find(a, args);
    gf_mma_fetch(a, tile, &shared);
    __pipeline_commit();
    Work work;
    work.set_up(args, shared.waiting);
    __pipeline_wait_prior(0);
    __syncwarp();
    uint32_t ties[GF_MMA_GROUPS];
    gf_mma_products(work, args, tile.bytes, &shared, ties);
    __syncwarp();

    // Where most samples are near-ties, as in flat areas of some values, all are computed again.
    if constexpr (Work::RADIUS > 0) {
        int is_tie = 0;
#pragma unroll
        for (int g = 0; g < GF_MMA_GROUPS; g++)
            is_tie += __popc(ties[g]);
        if (__popc(__ballot_sync(~0u, is_tie > GF_MMA_MANY)) > 16) {
            gf_mma_all<Work>(a, tile.bytes, &shared);
#pragma unroll
            for (int g = 0; g < GF_MMA_GROUPS; g++)
                ties[g] = 0;
            __syncwarp();
        }
    }

    gf_mma_exact(a, args, tile, ties, &shared);
    gf_mma_write<Work>(a, args, tile, &shared);
}

// ---- launch -------------------------------------------------------------------------------------

// Queues the work on all rows of an image; false if its rows are too long to be counted, or too
// short for how far they are apart, or the plan has no such form, or the device's code is for one
// without these products.
template <typename Work>
static bool gf_mma_launch(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                          cudaStream_t stream) {
    gf_walk walk = gf_walk_of(plan, in, out);
    gf_mma_args args = {};
    cudaFuncAttributes code;
    if (walk.in_stride > UINT32_C(1) << 30 ||
        (walk.in_stride > GF_MMA_TILE / 2 && walk.width * Work::C < 16) ||
        !gf_mma_args_of(&plan->integer, Work::C, Work::SIDE, &args))
        return false;
    if (cudaFuncGetAttributes(&code, smooth_mma<Work>) != cudaSuccess || code.ptxVersion < 80) {
        cudaGetLastError();
        return false;
    }
    const uint32_t max = GF_MMA_TILE, stride = walk.in_stride32;
    const uint32_t row = static_cast<uint32_t>(walk.width * Work::C), edge = walk.reach * Work::C;
    const uint32_t whole = row & ~15u;
    args.row_bytes = row;
    args.left = edge < row ? edge : row;
    args.right = row - args.left > edge ? row - edge : args.left;
    uint64_t tiles_a_row = 1;
    if (stride <= max / 2) {
        walk.rows_a_tile = max / stride;
        args.edges = gf_divider_of(args.left + row - args.right);
    } else {
        if (args.right > whole)
            args.right = whole;
        // About equal ones, of whole lines.
        const uint64_t lines = gf_divide_up(whole, GF_MMA_LINE);
        const uint64_t fewest = gf_divide_up(lines, max / GF_MMA_LINE);
        args.tile_bytes = static_cast<uint32_t>(gf_divide_up(lines, fewest) * GF_MMA_LINE);
        tiles_a_row = gf_divide_up(whole, args.tile_bytes);
        args.last = static_cast<uint32_t>(whole - (tiles_a_row - 1) * args.tile_bytes);
        walk.tiles_a_row = static_cast<uint32_t>(tiles_a_row);
        args.tiles = gf_divider_of(tiles_a_row);
    }
    walk.by = gf_divider_of(stride);
    gf_walk_rows(walk, out->rows, (UINT64_C(1) << 30) / tiles_a_row, [&](gf_walk &part) {
        const uint64_t tiles = part.rows_a_tile > 0 ? gf_divide_up(part.rows, part.rows_a_tile)
                                                    : part.rows * tiles_a_row;
        smooth_mma<Work><<<static_cast<unsigned>(tiles), GF_MMA_THREADS, 0, stream>>>(part, args);
    });
    return true;
}

// ---- choice -------------------------------------------------------------------------------------

// Is there a window of a mean with this radius that needs SIDE bytes, and no fewer?
template <int C, int SIDE, int RADIUS> static constexpr bool gf_mma_has() {
    return SIDE <= 16 && RADIUS * C <= SIDE && (SIDE == 8 || C % 2 == 0 || (RADIUS + 1) * C > 8);
}

template <int C, int SIDE>
static bool gf_mma_by_radius(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                             cudaStream_t stream) {
    bool done = false;
    gf_for_number<0, 3>(plan->radius <= 3 ? plan->radius : 0, [&](auto n) {
        const int RADIUS = gf_mma_has<C, SIDE, decltype(n)::value>() ? decltype(n)::value : 0;
        done = gf_mma_launch<gf_mma_work<C, SIDE, RADIUS>>(plan, in, out, stream);
    });
    return done;
}

// With 8 bytes on either side the chunks' own bytes are not loaded as they lie: not with an alpha.
template <int C>
static bool gf_mma_by_side(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                           cudaStream_t stream) {
    const uint32_t side = plan->integer.reach * C;
    if constexpr (C % 2 == 1)
        if (side <= 8)
            return gf_mma_by_radius<C, 8>(plan, in, out, stream);
    if (side <= 16)
        return gf_mma_by_radius<C, 16>(plan, in, out, stream);
    if constexpr (C > 1)
        if (side <= 32)
            return gf_mma_by_radius<C, 32>(plan, in, out, stream);
    if constexpr (C == 4)
        if (side <= 48)
            return gf_mma_by_radius<C, 48>(plan, in, out, stream);
    return false;
}

bool gf_smooth_mma_rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                        cudaStream_t stream) {
    // A gain alone may make every second sample a tie.
    if (plan->integer.form != GF_SMOOTH_TAPS || plan->tile != 0 || plan->integer.reach == 0)
        return false;
    bool done = false;
    gf_for_channels(plan->head.in.channels, [&](auto n) {
        done = gf_mma_by_side<decltype(n)::value>(plan, in, out, stream);
    });
    return done;
}
