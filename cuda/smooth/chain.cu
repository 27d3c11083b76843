// smooth of rows by the stages in registers: radius 0 to 3, any type.
//
//   kernel                             used for
//   smooth_staged (cuda/smooth/staged.cuh)  narrow rows, and results larger than the samples
//   smooth_tiles                       rows that fill warps, and results as large as the samples
#include "cuda/smooth/chain.cuh"
#include "cuda/smooth/staged.cuh"

// ---- tiles --------------------------------------------------------------------------------------

#define GF_TILE_THREADS 64
#define GF_TILE_WARPS (GF_TILE_THREADS / 32)
#define GF_TILE_BLOCKS 12 // resident blocks per SM
#define GF_TILE_ROWS 2    // rows per warp
#define GF_TILE_UNITS 3   // 16-byte units per run; odd: conflict-free
#define GF_TILE_PADDING 8 // 16-byte units before and after a stage

// Tile of a warp: its index in the row, its first row, its rows.
struct gf_chain_tile {
    uint32_t index, y, rows;
};

GF_DEVICE gf_chain_tile gf_find_chain_tile(const gf_walk &a) {
    const gf_tile tile = gf_find_tile(a, gf_first_tile());
    const uint32_t left = tile.y < a.rows ? a.rows - tile.y : 0;
    return {tile.before, tile.y, left < a.rows_per_tile ? left : a.rows_per_tile};
}

// Compute the pixels near the ends of rows, which gf_chain cannot: one lane per channel of 4
// pixels. Adjacent pixels may be recomputed.
template <typename Work>
static __device__ __noinline__ void gf_tile_ends(const gf_walk &a, gf_chain_tile tile) {
    const uint64_t begin = static_cast<uint64_t>(tile.index) * (32 * Work::PIXELS);
    const uint64_t beyond = begin + 32 * Work::PIXELS;
    const uint64_t end = beyond < a.width ? beyond : a.width;
    const uint64_t last = begin > a.inner_end ? begin : a.inner_end; // pixels from here on
    const uint32_t first_groups = begin == 0 ? 1 : 0;
    const uint32_t groups =
        first_groups + (end > last ? static_cast<uint32_t>(end - last + 3) / 4 : 0);
    const uint32_t tasks = tile.rows * groups * Work::filtered;
    for (uint32_t i = threadIdx.x % 32; i < tasks; i += 32) {
        const uint32_t group = i / Work::filtered, row = group / groups;
        const uint32_t g = group - row * groups;
        gf_work_group<Work>(a, tile.y + row, g < first_groups ? 0 : last + (g - first_groups) * 4,
                            static_cast<int>(i % Work::filtered));
    }
}

// Recompute a lane's run with invalid results. Its last group may extend into the next run; the
// values that it stores there are the same.
template <typename Work>
static __device__ __noinline__ void gf_tile_redo(const gf_walk &a, uint32_t y, uint64_t first) {
    for (uint64_t p = first; p < first + Work::PIXELS && p < a.width; p += 4)
        for (int c = 0; c < Work::filtered; c++)
            gf_work_group<Work>(a, y, p, c);
}

// Smooth rows by the stages.
// Grid: one warp per tile. Block: 64 threads. A run is 48 bytes, one per lane; a tile is 32
// consecutive runs in each of two rows. The column offsets are computed once for both rows. Each
// row is copied asynchronously into shared memory, with HALO units of 16 bytes on each side, while
// other warps compute; results leave through the same memory. All accesses are coalesced; reads
// each sample once (halo samples twice) and writes it once; no register waits for memory. Tail:
// pixels with an edge in their window, or in no whole unit at the end of the row, are recomputed by
// the exact path.
// A tile has the same alignment in shared memory as in its 128-byte line. If the two differ by half
// of a 32-byte sector, an asynchronous copy moves each sector twice, and the kernel reaches 0.9 of
// the bandwidth.
// Blocks are small and short: a finished block is replaced at once, and all resident blocks access
// one region of the image. Shared memory: 3.5 KB per warp. Registers: 52 to 80 (sm_90), 12 resident
// blocks.
template <typename Work>
__global__ void __launch_bounds__(GF_TILE_THREADS, GF_TILE_BLOCKS)
    smooth_tiles(const __grid_constant__ gf_walk a,
                 const __grid_constant__ typename Work::Args args) {
    const int UNITS = GF_TILE_UNITS, ROWS = GF_TILE_ROWS, HALO = Work::HALO;
    const int TILE = 32 * UNITS, STAGE = TILE + GF_TILE_PADDING;
    static_assert(HALO <= GF_TILE_PADDING / 2, "two halos fit between two stages");
    __shared__ __align__(128) uint4 shared[GF_TILE_WARPS][GF_TILE_PADDING + ROWS * STAGE];
    uint4 *stage = shared[threadIdx.x / 32] + GF_TILE_PADDING;
    const int lane = threadIdx.x % 32;
    const gf_chain_tile tile = gf_find_chain_tile(a);
    if (tile.rows == 0)
        return;

    // The lane's first unit, the units from it to the end of the row, and the offset of the halo
    // unit that the lane copies.
    const uint32_t begin = tile.index * TILE + lane;
    const int in_left = static_cast<int>(a.in_units) - static_cast<int>(begin);
    const int out_left = static_cast<int>(a.out_units) - static_cast<int>(begin);
    const int halo_offset = lane < HALO ? -HALO : TILE - HALO;
    const bool has_halo = lane < HALO ? tile.index > 0 : lane < 2 * HALO && halo_offset < in_left;
    const unsigned char *from =
        gf_walk_in(a) + tile.y * a.in_stride + static_cast<uint64_t>(begin) * 16;
    unsigned char *to = gf_walk_out(a) + tile.y * a.out_stride + static_cast<uint64_t>(begin) * 16;
    gf_wait_for_stream();
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
        if (row < static_cast<int>(tile.rows)) {
            uint4 *const unit = stage + row * STAGE + lane;
#pragma unroll
            for (int k = 0; k < UNITS; k++)
                gf_copy_async(unit + k * 32, from + k * 512, k * 32 < in_left);
            gf_copy_async(unit + halo_offset, from + halo_offset * 16, has_halo);
            from += a.in_stride;
        }
        __pipeline_commit();
    }

    unsigned redo = 0; // one bit per row
#pragma unroll 1
    for (uint32_t row = 0; row < tile.rows; row++) {
        __pipeline_wait_prior(ROWS - 1);
        __syncwarp();
        uint4 *const run = stage + lane * UNITS;
        uint32_t words[(UNITS + 2 * HALO) * 4], result[UNITS * 4];
#pragma unroll
        for (int k = 0; k < UNITS + 2 * HALO; k++) {
            gf_unpack(run[k - HALO], words + 4 * k);
        }
        redo |= (Work::run(a, args, words, result) ? 1u : 0u) << row;
        __syncwarp(); // all lanes have read the units of their neighbors
#pragma unroll
        for (int k = 0; k < UNITS; k++)
            run[k] = gf_vector_of(result + 4 * k);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < UNITS; k++)
            if (k * 32 < out_left)
                *reinterpret_cast<uint4 *>(to + k * 512) = stage[lane + k * 32];
        to += a.out_stride;
        stage += STAGE;
        __pipeline_commit(); // an empty group: the next row is now the oldest pending copy
    }

    __syncwarp(); // order the stores above before the stores below
    for (; redo; redo &= redo - 1)
        gf_tile_redo<Work>(a, tile.y + __ffs(static_cast<int>(redo)) - 1,
                           (static_cast<uint64_t>(tile.index) * 32 + lane) * Work::PIXELS);
    if (tile.index == 0 ||
        (static_cast<uint64_t>(tile.index) + 1) * (32 * Work::PIXELS) > a.inner_end)
        gf_tile_ends<Work>(a, tile);
}

// Queue the kernel for all rows. Returns false if rows are too long for its counters, or leave more
// than a quarter of the lanes idle.
template <typename Work>
static bool gf_tiles_launch(gf_walk walk, uint64_t rows, const typename Work::Args &args,
                            gf_queue *queue) {
    const uint64_t pixels = 32 * Work::PIXELS, tiles = gf_divide_up(walk.width, pixels);
    if (walk.width * 4 < tiles * pixels * 3 || !gf_walk_fits<Work>(&walk))
        return false;
    walk.tiles_per_row = static_cast<uint32_t>(tiles);
    walk.by = gf_divider_of(tiles);
    const uint64_t wave = gf_resident_blocks<smooth_tiles<Work>>(GF_TILE_THREADS) * GF_TILE_WARPS;
    gf_walk_rows(walk, rows, (UINT64_C(1) << 31) / tiles - GF_TILE_ROWS, [&](gf_walk &part) {
        // With few rows, assign one row per tile to occupy all SMs.
        const uint64_t each = part.rows * tiles / wave;
        part.rows_per_tile = each < 1              ? 1
                             : each < GF_TILE_ROWS ? static_cast<uint32_t>(each)
                                                   : GF_TILE_ROWS;
        const uint64_t warps = gf_divide_up(part.rows, part.rows_per_tile) * tiles;
        const unsigned blocks = static_cast<unsigned>(gf_divide_up(warps, GF_TILE_WARPS));
        gf_launch_kernel(smooth_tiles<Work>, dim3(blocks, part.images.count), GF_TILE_THREADS, 0,
                         queue, part, args);
    });
    return true;
}

// ---- work ---------------------------------------------------------------------------------------

// Work of smooth_tiles on one run. HALO: in units of 16 bytes.
template <typename T, int CHANNELS, int MEAN> struct gf_tile_chain {
    typedef T Tin;
    typedef T Tout;
    typedef gf_chain_args Args;
    static const int C = CHANNELS, SIZE = sizeof(T), filtered = GF_COLOURS(C);
    static const int RADIUS = MEAN, AROUND = RADIUS + 1;
    static const int PIXELS = GF_TILE_UNITS * 16 / (C * SIZE), GROUPS = (PIXELS + 3) / 4;
    static const int HALO = (AROUND * C * SIZE + 15) / 16;

    // Compute a run. Returns true if the exact path must recompute it.
    GF_DEVICE bool run(const gf_walk &a, const Args &args, const uint32_t *words, uint32_t *out) {
        const int FIRST = HALO * 16 / SIZE - AROUND * C;
        return gf_chain<T, T, C, RADIUS, PIXELS, FIRST>(a.constants, args, words, out);
    }
};

// Work of smooth_staged on one run.
template <typename In, typename Out, int CHANNELS, int MEAN> struct gf_chain_work {
    typedef In Tin;
    typedef Out Tout;
    typedef gf_chain_args Args;
    static const int C = CHANNELS, HALO = 1, filtered = GF_COLOURS(C);
    static const int RADIUS = MEAN, AROUND = RADIUS + 1;
    static_assert(RADIUS + 1 <= 4, "the window must fit into one group on each side");
    // Groups per run: a run is 48 or 64 bytes in shared memory, of input or of output.
    static const int GROUPS = sizeof(In) == 1    ? (C == 1   ? 4
                                                    : C == 2 ? 2
                                                    : C == 3 ? 4
                                                             : 1)
                              : sizeof(Out) == 2 ? (C == 1   ? 8
                                                    : C == 2 ? 4
                                                             : 2)
                              : C == 1           ? 4
                              : C == 2           ? 2
                                                 : (sizeof(In) == 2 && C == 3 ? 2 : 1);
    static const int TILES_PER_WARP = sizeof(In) == 4 ? 2 : C == 3 ? 8 : 4;
    static const int WARPS = C == 3 && sizeof(In) == 1                ? 18 // of 12 KB each, per SM
                             : C == 3 || (C == 4 && sizeof(Out) == 4) ? 24
                                                                      : 32;

    GF_DEVICE unsigned run(const gf_walk &a, const Args &args, const uint32_t *raw, uint32_t *out) {
        const bool redo =
            gf_chain<In, Out, C, RADIUS, 4 * GROUPS, (3 - RADIUS) * C>(a.constants, args, raw, out);
        return redo ? (1u << GROUPS * filtered) - 1 : 0;
    }
};

// ---- launch -------------------------------------------------------------------------------------

template <typename Tin, typename Tout, int C, int RADIUS>
static bool gf_chain_launch(const gf_walk &walk, uint64_t rows, const gf_chain_args &args,
                            gf_queue *queue) {
    if constexpr (sizeof(Tin) == sizeof(Tout))
        if (gf_tiles_launch<gf_tile_chain<Tin, C, RADIUS>>(walk, rows, args, queue))
            return true;
    return gf_staged_launch<gf_chain_work<Tin, Tout, C, RADIUS>>(walk, rows, args, queue);
}

bool gf_smooth_chain_rows(const gf_smooth_plan *plan, bool to_float, const gf_strip *strip,
                          gf_queue *queue) {
    const gf_type type = plan->head.in.type;
    if (plan->tile != 0 || plan->radius > 3 ||
        (type != GF_F32 && plan->gain != 0 && plan->gain < GF_MIN_GAIN))
        return false;
    const gf_walk walk = gf_walk_of(plan, strip);
    const gf_chain_args args = {plan->gain, -8388608.0f * plan->gain};
    bool done = false;
    gf_for_type(type, [&](auto sample) {
        gf_for_flag(to_float, [&](auto wide) {
            gf_for_channels(plan->head.in.channels, [&](auto channels) {
                gf_for_number<0, 3>(plan->radius, [&](auto radius) {
                    typedef decltype(sample) Tin;
                    typedef typename std::conditional<decltype(wide)::value, float, Tin>::type Tout;
                    done = gf_chain_launch<Tin, Tout, decltype(channels)::value,
                                           decltype(radius)::value>(walk, strip->out.rows, args,
                                                                    queue);
                });
            });
        });
    });
    return done;
}
