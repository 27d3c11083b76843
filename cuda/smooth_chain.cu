// smooth of rows by the stages in registers: radius 0 to 3, any type.
//
//   kernel                             used for
//   smooth_staged (smooth_staged.cuh)  narrow rows, and results larger than the samples
//   smooth_tiles                      rows that fill warps, and results as large as the samples
#include "smooth_chain.cuh"
#include "smooth_staged.cuh"

// ---- tiles -------------------------------------------------------------------------------------

#define GF_TILE_THREADS 64
#define GF_TILE_WARPS (GF_TILE_THREADS / 32)
#define GF_TILE_BLOCKS 12 // resident on an SM
#define GF_TILE_ROWS 2    // that a warp takes
#define GF_TILE_UNITS 3   // of a run; an odd number: conflict-free
#define GF_TILE_PAD 8     // units of 16 bytes before and after a stage

// What a warp does: from row y on, so many rows of a tile.
struct gf_chain_tile {
    uint32_t index, y, rows;
};

GF_DEVICE gf_chain_tile gf_find_chain_tile(const gf_walk &a) {
    const gf_tile tile = gf_find_tile(a, gf_first_tile());
    const uint32_t left = tile.y < a.rows ? a.rows - tile.y : 0;
    return {tile.before, tile.y, left < a.rows_a_tile ? left : a.rows_a_tile};
}

// Pixels at the ends of rows, of which the arithmetic for the inside knows nothing: a lane a
// channel of 4 of them. Those beside them may be done again.
template <typename Work>
static __device__ __noinline__ void gf_tile_ends(const gf_walk &a, gf_chain_tile tile) {
    const uint64_t begin = static_cast<uint64_t>(tile.index) * (32 * Work::PIXELS);
    const uint64_t beyond = begin + 32 * Work::PIXELS;
    const uint64_t end = beyond < a.width ? beyond : a.width;
    const uint64_t last = begin > a.inner_end ? begin : a.inner_end; // from here on
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

// A lane's run of which something is not known. Its last group may reach into the next one, whose
// lane does the same.
template <typename Work>
static __device__ __noinline__ void gf_tile_again(const gf_walk &a, uint32_t y, uint64_t first) {
    for (uint64_t p = first; p < first + Work::PIXELS && p < a.width; p += 4)
        for (int c = 0; c < Work::filtered; c++)
            gf_work_group<Work>(a, y, p, c);
}

// A lane's run is 48 bytes, a tile 32 runs side by side. A warp takes a tile of two rows, one
// below the other: its place in them is computed once. Both rows' parts are copied asynchronously
// into shared memory, HALO units of 16 bytes on either side with them, while other warps work;
// results leave through the same place. So all traffic is in whole lines, each sample is read once
// (those of a halo twice) and written once, and no register waits for memory. Pixels whose window
// reaches over an end of the row, or which lie in no whole unit there, are done again at the end by
// the exact path.
//
// A tile lies in shared memory as it does in a line of 128 bytes. Where the two differ by half of
// a sector of 32, an asynchronous copy moves each sector twice: 0.9 of the bandwidth are left.
//
// Blocks are small and end soon: one that ends makes room at once, and all that are at work read
// and write one part of the image. Shared memory: 3.5 KB a warp. Registers:
// 52 to 80 (sm_90).
template <typename Work>
__global__ void __launch_bounds__(GF_TILE_THREADS, GF_TILE_BLOCKS)
    smooth_tiles(const __grid_constant__ gf_walk a,
                 const __grid_constant__ typename Work::Args args) {
    const int UNITS = GF_TILE_UNITS, ROWS = GF_TILE_ROWS, HALO = Work::HALO;
    const int TILE = 32 * UNITS, STAGE = TILE + GF_TILE_PAD;
    static_assert(HALO <= GF_TILE_PAD / 2, "two halos lie between two stages");
    __shared__ __align__(128) uint4 shared[GF_TILE_WARPS][GF_TILE_PAD + ROWS * STAGE];
    uint4 *stage = shared[threadIdx.x / 32] + GF_TILE_PAD;
    const int lane = threadIdx.x % 32;
    const gf_chain_tile tile = gf_find_chain_tile(a);
    if (tile.rows == 0)
        return;

    // The lane's first unit, those from there to the end of the row, and what it fetches of the
    // halos, as seen from there.
    const uint32_t begin = tile.index * TILE + lane;
    const int in_left = static_cast<int>(a.in_units) - static_cast<int>(begin);
    const int out_left = static_cast<int>(a.out_units) - static_cast<int>(begin);
    const int beside = lane < HALO ? -HALO : TILE - HALO;
    const bool besides = lane < HALO ? tile.index > 0 : lane < 2 * HALO && beside < in_left;
    const unsigned char *from = a.in + tile.y * a.in_stride + static_cast<uint64_t>(begin) * 16;
    unsigned char *to = a.out + tile.y * a.out_stride + static_cast<uint64_t>(begin) * 16;
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
        if (row < static_cast<int>(tile.rows)) {
            uint4 *const unit = stage + row * STAGE + lane;
#pragma unroll
            for (int k = 0; k < UNITS; k++)
                gf_copy_async(unit + k * 32, from + k * 512, k * 32 < in_left);
            gf_copy_async(unit + beside, from + beside * 16, besides);
            from += a.in_stride;
        }
        __pipeline_commit();
    }

    unsigned again = 0; // a bit a row
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
        again |= (Work::run(a, args, words, result) ? 1u : 0u) << row;
        __syncwarp(); // all have read their neighbours' units
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
        __pipeline_commit(); // nothing: the row after this one is now the last that is waited for
    }

    __syncwarp(); // what is written again is written after that
    for (; again; again &= again - 1)
        gf_tile_again<Work>(a, tile.y + __ffs(static_cast<int>(again)) - 1,
                            (static_cast<uint64_t>(tile.index) * 32 + lane) * Work::PIXELS);
    if (tile.index == 0 ||
        (static_cast<uint64_t>(tile.index) + 1) * (32 * Work::PIXELS) > a.inner_end)
        gf_tile_ends<Work>(a, tile);
}

// Queues the work on all rows of a walk; false if rows are too long to be counted, or leave a
// quarter of their warps' lanes without work.
template <typename Work>
static bool gf_tiles_launch(gf_walk walk, uint64_t rows, const typename Work::Args &args,
                            cudaStream_t stream) {
    const uint64_t pixels = 32 * Work::PIXELS, tiles = gf_divide_up(walk.width, pixels);
    if (walk.width * 4 < tiles * pixels * 3 || !gf_walk_fits<Work>(&walk))
        return false;
    walk.tiles_a_row = static_cast<uint32_t>(tiles);
    walk.by = gf_divider_of(tiles);
    const uint64_t wave = gf_walk_wave(smooth_tiles<Work>, GF_TILE_THREADS) * GF_TILE_WARPS;
    gf_walk_rows(walk, rows, (UINT64_C(1) << 31) / tiles - GF_TILE_ROWS, [&](gf_walk &part) {
        // Few rows are not made to wait for each other.
        const uint64_t each = part.rows * tiles / wave;
        part.rows_a_tile = each < 1              ? 1
                           : each < GF_TILE_ROWS ? static_cast<uint32_t>(each)
                                                 : GF_TILE_ROWS;
        const uint64_t warps = gf_divide_up(part.rows, part.rows_a_tile) * tiles;
        const unsigned blocks = static_cast<unsigned>(gf_divide_up(warps, GF_TILE_WARPS));
        smooth_tiles<Work><<<blocks, GF_TILE_THREADS, 0, stream>>>(part, args);
    });
    return true;
}

// ---- work ---------------------------------------------------------------------------------------

// A tile's run. HALO: units of 16 bytes.
template <typename T, int CHANNELS, int MEAN> struct gf_tile_chain {
    typedef T Tin;
    typedef T Tout;
    typedef gf_chain_args Args;
    static const int C = CHANNELS, SIZE = sizeof(T), filtered = GF_COLOURS(C);
    static const int RADIUS = MEAN, AROUND = RADIUS + 1;
    static const int PIXELS = GF_TILE_UNITS * 16 / (C * SIZE), GROUPS = (PIXELS + 3) / 4;
    static const int HALO = (AROUND * C * SIZE + 15) / 16;

    // Whether the run has to be computed again by the exact path.
    GF_DEVICE bool run(const gf_walk &a, const Args &args, const uint32_t *words, uint32_t *out) {
        const int FIRST = HALO * 16 / SIZE - AROUND * C;
        return gf_chain<T, T, C, RADIUS, PIXELS, FIRST>(a.constants, args, words, out);
    }
};

// A tile's run.
template <typename In, typename Out, int CHANNELS, int MEAN> struct gf_chain_work {
    typedef In Tin;
    typedef Out Tout;
    typedef gf_chain_args Args;
    static const int C = CHANNELS, HALO = 1, filtered = GF_COLOURS(C);
    static const int RADIUS = MEAN, AROUND = RADIUS + 1;
    static_assert(RADIUS + 1 <= 4, "the window must lie within one group on either side");
    // Through shared memory 48 or 64 bytes, or what makes so many results.
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
    static const int TURNS = sizeof(In) == 4 ? 2 : C == 3 ? 8 : 4;
    static const int WARPS = C == 3 && sizeof(In) == 1 ? 18 // of 12 KB each, on an SM
                             : C == 3 || (C == 4 && sizeof(Out) == 4) ? 24
                                                                      : 32;

    GF_DEVICE unsigned run(const gf_walk &a, const Args &args, const uint32_t *raw, uint32_t *out) {
        const bool again =
            gf_chain<In, Out, C, RADIUS, 4 * GROUPS, (3 - RADIUS) * C>(a.constants, args, raw, out);
        return again ? (1u << GROUPS * filtered) - 1 : 0;
    }
};

// ---- launch -------------------------------------------------------------------------------------

// Smaller gains bring the products near binary32's least numbers, where dividing takes a division.
#define MIN_GAIN 1e-6f

template <typename Tin, typename Tout, int C, int RADIUS>
static bool gf_chain_launch(const gf_walk &walk, uint64_t rows, const gf_chain_args &args,
                            cudaStream_t stream) {
    if constexpr (sizeof(Tin) == sizeof(Tout))
        if (gf_tiles_launch<gf_tile_chain<Tin, C, RADIUS>>(walk, rows, args, stream))
            return true;
    return gf_staged_launch<gf_chain_work<Tin, Tout, C, RADIUS>>(walk, rows, args, stream);
}

bool gf_smooth_chain_rows(const gf_smooth_plan *plan, bool to_float, const gf_rows *in,
                          const gf_rows *out, cudaStream_t stream) {
    const gf_type type = plan->head.in.type;
    if (plan->tile != 0 || plan->radius > 3 ||
        (type != GF_F32 && plan->gain != 0 && plan->gain < MIN_GAIN))
        return false;
    const gf_walk walk = gf_walk_of(plan, in, out);
    const gf_chain_args args = {plan->gain, -8388608.0f * plan->gain};
    bool done = false;
    gf_for_type(type, [&](auto sample) {
        gf_for_flag(to_float, [&](auto wide) {
            gf_for_channels(plan->head.in.channels, [&](auto channels) {
                gf_for_number<0, 3>(plan->radius, [&](auto radius) {
                    typedef decltype(sample) Tin;
                    typedef typename std::conditional<decltype(wide)::value, float, Tin>::type Tout;
                    done = gf_chain_launch<Tin, Tout, decltype(channels)::value,
                                           decltype(radius)::value>(walk, out->rows, args, stream);
                });
            });
        });
    });
    return done;
}
