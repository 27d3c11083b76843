// Which kernel smooths u8 rows by tensor cores.
//
// Thread mapping: a block is a warp and does a tile: up to 3 KB of a row, or as many narrow rows,
// with what lies between them. Blocks that end at once make room for others in the order of the
// image, which suits the memory; a warp that stays for a second tile costs a tenth of its speed.
// Shared memory: 6.6 KB. Reads a sample once and writes it once, 16 bytes at a time, in about 9
// instructions; of samples in doubt and near a row's ends, every 32 cost a warp 150 more.
#include "smooth_kernels.cuh"
#include "smooth_mma_exact.cuh"

#define GF_MMA_THREADS 32
// Blocks whose registers a processor must have room for; those for other uses than computing take
// fewer blocks.
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ / 100 == 10
#define GF_MMA_BLOCKS 32
#else
#define GF_MMA_BLOCKS 16
#endif
#define GF_MMA_MANY 20 // samples in doubt of a lane's 96: all of them are as soon done

// All samples of a tile as if no end of a row were near. doubts: of each group of lines, a bit for
// each of a lane's samples in doubt: 7 - line, from the lowest of its byte.
template <typename Work>
static __device__ __forceinline__ void gf_mma_products(const Work &work, const gf_mma_args &args,
                                                       int bytes, gf_mma_shared<Work> *shared,
                                                       uint32_t *doubts) {
    const int PARTS = Work::PARTS, AT_ONCE = Work::AT_ONCE, lane = threadIdx.x;
    const uint32_t *from = reinterpret_cast<const uint32_t *>(shared->in + shared->BEFORE) + lane;
    uint32_t *to = reinterpret_cast<uint32_t *>(shared->out) + lane;
#pragma unroll
    for (int g = 0; g < GF_MMA_GROUPS; g++)
        doubts[g] = 0;
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
                uint32_t result[2], doubt[2];
                work.lines(args, raw[k], raw[k + 1], result, doubt);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    to[(l + k + i) * (GF_MMA_LINE / 4)] = result[i];
                    doubts[g] |= doubt[i] >> (l + k + i) % 8;
                }
            }
        }
    }
}

// The place of a lane's next sample in doubt, which is then forgotten; -1 if there is none.
static __device__ __forceinline__ int gf_mma_next(uint32_t *doubts) {
    uint32_t some = 0;
    int line = 7;
#pragma unroll
    for (int g = GF_MMA_GROUPS - 1; g >= 0; g--)
        if (doubts[g] != 0) {
            some = doubts[g];
            line = 8 * g + 7;
        }
    bool found = false;
#pragma unroll
    for (int g = 0; g < GF_MMA_GROUPS; g++)
        if (!found && doubts[g] != 0) {
            doubts[g] &= doubts[g] - 1;
            found = true;
        }
    const int bit = __ffs(static_cast<int>(some)) - 1, lane = threadIdx.x;
    return some == 0 ? -1 : (line - bit % 8) * GF_MMA_LINE + lane * 4 + bit / 8;
}

// The rims, and what is in doubt, by the definition, 32 samples at a time.
template <typename Work>
static __device__ __forceinline__ void gf_mma_settle(const gf_walk &a, const gf_mma_args &args,
                                                     const gf_mma_tile &tile, uint32_t *doubts,
                                                     gf_mma_shared<Work> *shared) {
    const int lane = threadIdx.x;
    // The rims: of a row, what lies before `left` and from `right` on, as far as it is here.
    const int row_end = static_cast<int>(args.row_bytes) - tile.begin;
    int lefts = static_cast<int>(args.left) - tile.begin;
    int ends = static_cast<int>(args.right) - tile.begin;
    lefts = lefts > 0 ? lefts : 0;
    ends = ends > 0 ? ends : 0;
    // Behind the last tile less than 16 bytes are left.
    const int end = tile.rows > 0 || row_end < tile.bytes + 16 ? row_end : tile.bytes;
    const int a_row = lefts + (end > ends ? end - ends : 0);
    const int rims = tile.rows > 0 ? a_row * tile.rows : a_row;
    int done = 0;
    uint32_t waiting = 0;
    bool more;
    do {
        // Up to 32 samples to do, a lane one. What is in doubt behind the tile does not count.
        const bool rim = done < rims;
        int at = -1;
        if (rim) {
            const int i = done + lane;
            const int r = a_row == 1 ? i : __umulhi(i, args.rim_magic) >> args.rim_shift;
            const int k = i - r * a_row;
            if (i < rims)
                at = r * static_cast<int>(a.in_stride) + (k < lefts ? k : ends + k - lefts);
            done += 32;
        } else {
            at = gf_mma_next(doubts);
        }
        const uint32_t lanes = __ballot_sync(~0u, at >= 0);
        more = rim || lanes != 0;
        if (at >= 0)
            shared->waiting[waiting + __popc(lanes & ((1u << lane) - 1))] =
                !rim && at >= tile.bytes ? -1 : at;
        waiting += __popc(lanes);
        __syncwarp();
        if (waiting >= 32 || !more) {
            const uint32_t some = waiting < 32 ? waiting : 32;
            waiting -= some;
            gf_mma_settle_one<Work>(
                a, args, tile, lane < static_cast<int>(some) ? shared->waiting[waiting + lane] : -1,
                shared);
            __syncwarp();
        }
    } while (more);
}

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
    uint32_t doubts[GF_MMA_GROUPS];
    gf_mma_products(work, args, tile.bytes, &shared, doubts);
    __syncwarp();

    // Where most samples are in doubt, as in flat areas of some values, all are.
    if constexpr (Work::RADIUS > 0) {
        int doubtful = 0;
#pragma unroll
        for (int g = 0; g < GF_MMA_GROUPS; g++)
            doubtful += __popc(doubts[g]);
        if (__popc(__ballot_sync(~0u, doubtful > GF_MMA_MANY)) > 16) {
            gf_mma_all<Work>(a, tile.bytes, &shared);
#pragma unroll
            for (int g = 0; g < GF_MMA_GROUPS; g++)
                doubts[g] = 0;
            __syncwarp();
        }
    }

    gf_mma_settle(a, args, tile, doubts, &shared);
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
    const uint32_t most = GF_MMA_TILE, stride = static_cast<uint32_t>(walk.in_stride);
    const uint32_t row = static_cast<uint32_t>(walk.width * Work::C), rim = walk.reach * Work::C;
    const uint32_t whole = row & ~15u;
    args.row_bytes = row;
    args.left = rim < row ? rim : row;
    args.right = row - args.left > rim ? row - rim : args.left;
    uint64_t tiles_a_row = 1;
    if (stride <= most / 2) {
        walk.rows_a_tile = most / stride;
        gf_walk_divide_by(&walk, args.left + row - args.right);
        args.rim_magic = walk.magic;
        args.rim_shift = walk.shift;
    } else {
        if (args.right > whole)
            args.right = whole;
        // About equal ones, of whole lines.
        const uint64_t lines = (whole + GF_MMA_LINE - 1) / GF_MMA_LINE;
        const uint64_t fewest = (lines + most / GF_MMA_LINE - 1) / (most / GF_MMA_LINE);
        args.tile_bytes = static_cast<uint32_t>((lines + fewest - 1) / fewest * GF_MMA_LINE);
        tiles_a_row = (whole + args.tile_bytes - 1) / args.tile_bytes;
        args.last = static_cast<uint32_t>(whole - (tiles_a_row - 1) * args.tile_bytes);
        walk.tiles_a_row = static_cast<uint32_t>(tiles_a_row);
        gf_walk_divide_by(&walk, tiles_a_row);
        args.row_magic = walk.magic;
        args.row_shift = walk.shift;
    }
    gf_walk_divide_by(&walk, stride);
    const uint64_t most_rows = (UINT64_C(1) << 30) / tiles_a_row;
    for (uint64_t y = 0; y < out->rows; y += most_rows) {
        const uint64_t some = out->rows - y < most_rows ? out->rows - y : most_rows;
        walk.rows = static_cast<uint32_t>(some);
        const uint64_t tiles = walk.rows_a_tile > 0
                                   ? (some + walk.rows_a_tile - 1) / walk.rows_a_tile
                                   : some * tiles_a_row;
        smooth_mma<Work><<<static_cast<unsigned>(tiles), GF_MMA_THREADS, 0, stream>>>(walk, args);
        walk.in += some * walk.in_stride;
        walk.out += some * walk.out_stride;
    }
    return true;
}

// ---- choice -------------------------------------------------------------------------------------

// Is there a window of a mean with this radius that needs SIDE bytes, and no fewer?
template <int C, int SIDE, int RADIUS> static constexpr bool gf_mma_has() {
    return SIDE <= 16 && RADIUS * C <= SIDE && (SIDE == 8 || C % 2 == 0 || (RADIUS + 1) * C > 8);
}

template <int C, int SIDE>
static bool by_radius(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                      cudaStream_t stream) {
    if constexpr (gf_mma_has<C, SIDE, 1>())
        if (plan->radius == 1)
            return gf_mma_launch<gf_mma_work<C, SIDE, 1>>(plan, in, out, stream);
    if constexpr (gf_mma_has<C, SIDE, 2>())
        if (plan->radius == 2)
            return gf_mma_launch<gf_mma_work<C, SIDE, 2>>(plan, in, out, stream);
    if constexpr (gf_mma_has<C, SIDE, 3>())
        if (plan->radius == 3)
            return gf_mma_launch<gf_mma_work<C, SIDE, 3>>(plan, in, out, stream);
    return gf_mma_launch<gf_mma_work<C, SIDE, 0>>(plan, in, out, stream);
}

// With 8 bytes on either side the chunks' own bytes are not loaded as they lie: not with an alpha.
template <int C>
static bool by_side(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                    cudaStream_t stream) {
    const uint32_t side = plan->integer.reach * C;
    if constexpr (C % 2 == 1)
        if (side <= 8)
            return by_radius<C, 8>(plan, in, out, stream);
    if (side <= 16)
        return by_radius<C, 16>(plan, in, out, stream);
    if constexpr (C > 1)
        if (side <= 32)
            return by_radius<C, 32>(plan, in, out, stream);
    if constexpr (C == 4)
        if (side <= 48)
            return by_radius<C, 48>(plan, in, out, stream);
    return false;
}

bool gf_smooth_mma_rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                        cudaStream_t stream) {
    // A gain alone may make every second sample a tie.
    if (plan->integer.form != GF_SMOOTH_TAPS || plan->tile != 0 || plan->integer.reach == 0)
        return false;
    switch (plan->head.in.channels) {
    case 1:
        return by_side<1>(plan, in, out, stream);
    case 2:
        return by_side<2>(plan, in, out, stream);
    case 3:
        return by_side<3>(plan, in, out, stream);
    default:
        return by_side<4>(plan, in, out, stream);
    }
}
