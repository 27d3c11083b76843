// Smoothing rows in registers, strip by strip, by way of shared memory: for rows that fill their
// warps, and results as large as the samples.
//
// Thread mapping: a lane's run is 48 bytes, a strip 32 runs side by side. A warp takes a strip of
// two rows, one below the other: where it lies in them, and what of it is there, is found once.
// Both rows' parts are copied asynchronously into shared memory, HALO units of 16 bytes on either
// side with them, while other warps work; results leave through the same place: so all traffic is
// in whole lines, each sample is read once (those of a halo twice) and written once, and no
// register waits for memory. Pixels whose window reaches over an end of the row, or which lie in no
// whole unit there, are done again at the end by the definition.
//
// A strip lies in shared memory as it does in a line of 128 bytes. Where the two differ by half of
// a sector of 32, an asynchronous copy moves each sector twice: 0.9 of the bandwidth are left.
//
// Blocks are small and end soon: one that ends makes room at once, and all that are at work read
// and write one part of the image.
//
// Shared memory: 3.5 KB a warp.
#ifndef GF_SMOOTH_STRIPS_CUH
#define GF_SMOOTH_STRIPS_CUH

#include "smooth_staged.cuh"

#define GF_STRIP_THREADS 64
#define GF_STRIP_WARPS (GF_STRIP_THREADS / 32)
#define GF_STRIP_BLOCKS 12 // a processor
#define GF_STRIP_ROWS 2    // that a warp takes
#define GF_STRIP_UNITS 3   // of a run; an odd number: lanes meet in no bank
#define GF_STRIP_PAD 8     // units of 16 bytes before and after a stage

// What a warp does: from row y on, so many rows of a strip.
struct gf_strip {
    uint32_t index, y, rows;
};

static __device__ __forceinline__ gf_strip gf_find_strip(const gf_walk &a) {
    const gf_tile tile = gf_find_tile(a, gf_first_turn());
    const uint32_t left = tile.y < a.rows ? a.rows - tile.y : 0;
    return {tile.before, tile.y, left < a.rows_a_tile ? left : a.rows_a_tile};
}

// Pixels at the ends of rows, of which the arithmetic for the inside knows nothing: a lane a
// channel of 4 of them. Those beside them may be done again.
template <typename Work>
static __device__ __noinline__ void gf_strip_ends(const gf_walk &a, gf_strip strip) {
    const uint64_t begin = static_cast<uint64_t>(strip.index) * (32 * Work::PIXELS);
    const uint64_t beyond = begin + 32 * Work::PIXELS;
    const uint64_t end = beyond < a.width ? beyond : a.width;
    const uint64_t last = begin > a.inner_end ? begin : a.inner_end; // from here on
    const uint32_t first_groups = begin == 0 ? 1 : 0;
    const uint32_t groups =
        first_groups + (end > last ? static_cast<uint32_t>(end - last + 3) / 4 : 0);
    const uint32_t tasks = strip.rows * groups * Work::filtered;
    for (uint32_t i = threadIdx.x % 32; i < tasks; i += 32) {
        const uint32_t group = i / Work::filtered, row = group / groups;
        const uint32_t g = group - row * groups;
        Work::exactly(a, strip.y + row, g < first_groups ? 0 : last + (g - first_groups) * 4,
                      static_cast<int>(i % Work::filtered));
    }
}

// A lane's run of which something is not known. Its last group may reach into the next one, whose
// lane does the same.
template <typename Work>
static __device__ __noinline__ void gf_strip_again(const gf_walk &a, uint32_t y, uint64_t first) {
    for (uint64_t p = first; p < first + Work::PIXELS && p < a.width; p += 4)
        for (int c = 0; c < Work::filtered; c++)
            Work::exactly(a, y, p, c);
}

// Work has Tin, C, filtered (channels), PIXELS (of a run), GROUPS (the same in groups), HALO, Args,
// exactly() as smooth_walk.cuh tells, and
//   static __device__ bool run(const gf_walk &, const Args &, const uint32_t *words, uint32_t *out)
// which makes of the words of a run and of HALO units on either side those of the run, as if no end
// of the row were near, and returns whether they have to be done again by the definition.
template <typename Work>
__global__ void __launch_bounds__(GF_STRIP_THREADS, GF_STRIP_BLOCKS)
    smooth_strips(const __grid_constant__ gf_walk a,
                  const __grid_constant__ typename Work::Args args) {
    const int UNITS = GF_STRIP_UNITS, ROWS = GF_STRIP_ROWS, HALO = Work::HALO;
    const int TILE = 32 * UNITS, STAGE = TILE + GF_STRIP_PAD;
    static_assert(HALO <= GF_STRIP_PAD / 2, "two halos lie between two stages");
    __shared__ __align__(128) uint4 shared[GF_STRIP_WARPS][GF_STRIP_PAD + ROWS * STAGE];
    uint4 *stage = shared[threadIdx.x / 32] + GF_STRIP_PAD;
    const int lane = threadIdx.x % 32;
    const gf_strip strip = gf_find_strip(a);
    if (strip.rows == 0)
        return;

    // The lane's first unit, those from there to the end of the row, and what it fetches of the
    // halos, as seen from there.
    const uint32_t begin = strip.index * TILE + lane;
    const int in_left = static_cast<int>(a.in_units) - static_cast<int>(begin);
    const int out_left = static_cast<int>(a.out_units) - static_cast<int>(begin);
    const int beside = lane < HALO ? -HALO : TILE - HALO;
    const bool besides = lane < HALO ? strip.index > 0 : lane < 2 * HALO && beside < in_left;
    const unsigned char *from = a.in + strip.y * a.in_stride + static_cast<uint64_t>(begin) * 16;
    unsigned char *to = a.out + strip.y * a.out_stride + static_cast<uint64_t>(begin) * 16;
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
        if (row < static_cast<int>(strip.rows)) {
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
    for (uint32_t row = 0; row < strip.rows; row++) {
        __pipeline_wait_prior(ROWS - 1);
        __syncwarp();
        uint4 *const run = stage + lane * UNITS;
        uint32_t words[(UNITS + 2 * HALO) * 4], result[UNITS * 4];
#pragma unroll
        for (int k = 0; k < UNITS + 2 * HALO; k++) {
            const uint4 v = run[k - HALO];
            words[4 * k] = v.x;
            words[4 * k + 1] = v.y;
            words[4 * k + 2] = v.z;
            words[4 * k + 3] = v.w;
        }
        again |= (Work::run(a, args, words, result) ? 1u : 0u) << row;
        __syncwarp(); // all have read their neighbours' units
#pragma unroll
        for (int k = 0; k < UNITS; k++)
            run[k] =
                make_uint4(result[4 * k], result[4 * k + 1], result[4 * k + 2], result[4 * k + 3]);
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
        gf_strip_again<Work>(a, strip.y + __ffs(static_cast<int>(again)) - 1,
                             (static_cast<uint64_t>(strip.index) * 32 + lane) * Work::PIXELS);
    if (strip.index == 0 ||
        (static_cast<uint64_t>(strip.index) + 1) * (32 * Work::PIXELS) > a.inner_end)
        gf_strip_ends<Work>(a, strip);
}

// Queues the work on all rows of a walk; false if rows are too long to be counted, or leave a
// quarter of their warps' lanes without work.
template <typename Work>
static bool gf_strips_launch(gf_walk walk, uint64_t rows, const typename Work::Args &args,
                             cudaStream_t stream) {
    const uint64_t pixels = 32 * Work::PIXELS, strips = (walk.width + pixels - 1) / pixels;
    if (walk.width * 4 < strips * pixels * 3 || !gf_walk_fits<Work>(&walk))
        return false;
    walk.tiles_a_row = static_cast<uint32_t>(strips);
    gf_walk_divide_by(&walk, walk.tiles_a_row);
    const uint64_t wave = gf_walk_wave(smooth_strips<Work>, GF_STRIP_THREADS) * GF_STRIP_WARPS;
    const uint64_t most_rows = (UINT64_C(1) << 31) / walk.tiles_a_row - GF_STRIP_ROWS;
    for (uint64_t y = 0; y < rows; y += most_rows) {
        const uint64_t some = rows - y < most_rows ? rows - y : most_rows;
        // Few rows are not made to wait for each other.
        const uint64_t each = some * walk.tiles_a_row / wave;
        walk.rows = static_cast<uint32_t>(some);
        walk.rows_a_tile = static_cast<uint32_t>(each < 1               ? 1
                                                 : each < GF_STRIP_ROWS ? each
                                                                        : GF_STRIP_ROWS);
        const uint64_t warps = (some + walk.rows_a_tile - 1) / walk.rows_a_tile * walk.tiles_a_row;
        const unsigned blocks =
            static_cast<unsigned>((warps + GF_STRIP_WARPS - 1) / GF_STRIP_WARPS);
        smooth_strips<Work><<<blocks, GF_STRIP_THREADS, 0, stream>>>(walk, args);
        walk.in += some * walk.in_stride;
        walk.out += some * walk.out_stride;
    }
    return true;
}

#endif
