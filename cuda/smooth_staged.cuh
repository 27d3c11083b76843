// Smoothing rows in registers, by way of shared memory, tile by tile: for narrow rows, too, and for
// results that are larger than the samples. And the queue of the exact path, which
// smooth_integer.cu shares.
//
// Work says what is done with a lane's run. Every kind has Tin, Tout, C, filtered (channels),
// GROUPS and HALO (of 4 pixels), Args, and RADIUS and AROUND for the exact path (gf_smooth_exact).
// With a queue it has TURNS (tiles of a warp, about), WARPS (resident on an SM), and
//   static __device__ unsigned run(const gf_walk &, const Args &, const uint32_t *raw,
//                                  uint32_t *out)
// which makes of the words of HALO + GROUPS + HALO groups those of GROUPS groups, as if no end of
// the row were near, and returns a bit for each channel of a group that it does not know.
#ifndef GF_SMOOTH_STAGED_CUH
#define GF_SMOOTH_STAGED_CUH

#include "smooth_device.cuh"

// Sets what kernels read of a row's width; false if rows are too wide for them.
template <typename Work> static bool gf_walk_fits(gf_walk *walk) {
    const uint64_t run = 4 * Work::GROUPS, runs = gf_divide_up(walk->width, run);
    const size_t pixel = Work::C * sizeof(typename Work::Tout);
    if (runs * Work::GROUPS * Work::filtered >= UINT64_C(1) << 29 ||
        walk->in_stride > UINT32_MAX / 4)
        return false;
    walk->in_units = static_cast<uint32_t>(walk->in_stride / 16);
    walk->out_units = static_cast<uint32_t>(walk->width * pixel / 16);
    const uint64_t inner = walk->width < walk->reach ? 0 : walk->width - walk->reach;
    const uint64_t whole = static_cast<uint64_t>(walk->out_units) * 16 / pixel;
    walk->inner_end = inner < whole ? inner : whole;
    const uint64_t first = gf_divide_up(walk->reach, run), end = walk->inner_end / run;
    walk->inner_first = static_cast<uint32_t>(first);
    walk->inner_runs = end > first ? static_cast<uint32_t>(end - first) : 0;
    walk->runs = static_cast<uint32_t>(runs);
    return true;
}

// Channel c of the group of up to 4 pixels from p on, in row y, by the exact path.
template <typename Work>
GF_DEVICE void gf_work_group(const gf_walk &a, uint32_t y, uint64_t p, int c) {
    gf_smooth_group<typename Work::Tin, typename Work::Tout, Work::C, Work::RADIUS, Work::AROUND>(
        a, y, p, c);
}

// ---- queue --------------------------------------------------------------------------------------

// Groups whose window reaches over an end of the row, and those that the fast arithmetic does not
// know, wait in a queue of the warp's until 32 of them have gathered; then each lane does one of
// them by the exact path. So every width is exact, and rare work costs little.

// Bits from n on of a run's groups.
GF_DEVICE unsigned gf_bits_from(int64_t n) {
    return n >= 32 ? 0 : n <= 0 ? ~0u : ~0u << n;
}

// A bit for each filtered channel of the groups that have one.
template <typename Work> GF_DEVICE unsigned gf_group_bits(unsigned groups) {
    unsigned bits = 0;
#pragma unroll
    for (int g = 0; g < Work::GROUPS; g++)
        bits |= groups >> g & 1 ? ((1u << Work::filtered) - 1) << g * Work::filtered : 0;
    return bits;
}

// What is unknown of a run near an end of its row: the groups there, but not what lies beyond the
// row.
template <typename Work>
GF_DEVICE unsigned gf_left_over(const gf_walk &a, uint32_t run, unsigned unknown) {
    const int64_t begin = static_cast<int64_t>(run) * (4 * Work::GROUPS);
    const unsigned there = ~gf_bits_from((static_cast<int64_t>(a.width) - begin + 3) >> 2);
    const unsigned edges = ~gf_bits_from((static_cast<int64_t>(a.reach) - begin + 3) >> 2) |
                           gf_bits_from((static_cast<int64_t>(a.inner_end) - begin) >> 2);
    return (unknown | gf_group_bits<Work>(edges)) & gf_group_bits<Work>(there);
}

// Channels of groups that wait, by number: a row's after those of the rows before it, a group's
// side by side.
template <int MAX> struct gf_queue {
    uint32_t waiting;
    uint32_t group[32 + MAX]; // most that an iteration adds
};

// Computes groups that wait, 32 at a time; all of them, or until fewer are left. All lanes call it.
template <typename Work>
static __device__ __noinline__ void gf_drain(const gf_walk &a, uint32_t *group, uint32_t *waiting,
                                             bool all) {
    const uint32_t lane = threadIdx.x % 32;
    uint32_t left = *waiting;
    while (left >= 32 || (all && left > 0)) {
        const uint32_t some = left < 32 ? left : 32;
        left -= some;
        if (lane < some) {
            const uint32_t number = group[left + lane], a_row = a.runs * Work::GROUPS;
            const uint32_t g = number / Work::filtered, y = g / a_row;
            gf_work_group<Work>(a, y, static_cast<uint64_t>(g - y * a_row) * 4,
                                static_cast<int>(number % Work::filtered));
        }
    }
    __syncwarp();
    if (lane == 0)
        *waiting = left;
    __syncwarp();
}

// The number of a warp among those of all blocks, and how many these are: the first tile of a warp,
// and the step to its next.
GF_DEVICE uint32_t gf_first_tile() {
    return (blockIdx.x * blockDim.x + threadIdx.x) / 32;
}

GF_DEVICE uint32_t gf_tile_step() {
    return gridDim.x * (blockDim.x / 32);
}

// Blocks for so many tiles. Blocks that end make room for others on whichever SM is ahead: so a
// warp takes few tiles, but enough of them to fill its queue.
template <typename Work> static unsigned gf_walk_blocks(uint64_t tiles, uint64_t wave, int warps) {
    const uint64_t full = gf_divide_up(tiles, warps);
    const uint64_t enough = full / Work::TURNS;
    return static_cast<unsigned>(enough > wave ? enough : full < wave ? full : wave);
}

// ---- tiles --------------------------------------------------------------------------------------

#define GF_STAGED_THREADS 64
#define GF_STAGED_WARPS (GF_STAGED_THREADS / 32)

// How the rows of one kind of work pass through shared memory, in units of 16 bytes.
template <typename Work> struct gf_stage_shape {
    static const int C = Work::C, GROUPS = Work::GROUPS, HALO = Work::HALO;
    static const int in_group = 4 * C * sizeof(typename Work::Tin); // bytes
    static const int out_group = 4 * C * sizeof(typename Work::Tout);
    static const int in_run = GROUPS * in_group, out_run = GROUPS * out_group;
    static const int in_units = in_run / 16, out_units = out_run / 16;
    // On either side of a tile; an even number, so that the sectors of 32 bytes that memory moves
    // do not lie askew in shared memory: each would be read twice.
    static const int halo_units = (HALO * in_group + 31) / 32 * 2;
    static_assert(in_run % 16 == 0 && out_run % 16 == 0, "a run is made of whole units");
};

template <typename Work> struct gf_stage_shared {
    typedef gf_stage_shape<Work> Shape;
    uint4 stage[2][32 * Shape::in_units + 2 * Shape::halo_units];
    uint4 out[32 * Shape::out_units];
};

// Where unit u of a stage lies: in its own block of 8. A lane reads and writes its own `units`
// units, and all lanes neighbouring ones: in both cases 8 lanes, which move 128 bytes at a time,
// access no bank twice.
GF_DEVICE int gf_slot(int units, int u) {
    return units % 4 == 0 ? u ^ (u >> 3 & 3) : units % 2 == 0 ? u ^ (u >> 3 & 1) : u;
}

// A tile: its first row, and how many tiles lie before it there.
struct gf_tile {
    uint32_t y, before;
};

GF_DEVICE gf_tile gf_find_tile(const gf_walk &a, uint32_t index) {
    const uint32_t row = a.tiles_a_row == 1 ? index : gf_divide(index, a.by);
    return {row * a.rows_a_tile, index - row * a.tiles_a_row};
}

// Begins to copy a tile into a stage: the runs of all lanes in order, and, of a row of several
// tiles, the units around them. What is not in the image is left out, and never used.
template <typename Work> GF_DEVICE void gf_fetch(const gf_walk &a, gf_tile tile, uint4 *stage) {
    typedef gf_stage_shape<Work> Shape;
    const int lane = threadIdx.x % 32, halo = Shape::halo_units;
    const unsigned char *row = a.in + tile.y * a.in_stride;
    const int a_row = static_cast<int>(a.lanes) * Shape::in_units;
    if (a.rows_a_tile == 1) {
        const uint32_t begin = tile.before * a_row;
        const int left = static_cast<int>(a.in_units - begin);
        const int end = (left < a_row + halo ? left : a_row + halo) + halo - lane;
        const unsigned char *from = row + (static_cast<int64_t>(begin) + (lane - halo)) * 16;
        uint4 *to = stage + gf_slot(Shape::in_units, lane); // 32 units on, all slots are 32 on
#pragma unroll
        for (int k = 0; k < (32 * Shape::in_units + 2 * halo + 31) / 32; k++)
            gf_copy_async(to + k * 32, from + k * 512,
                          (k > 0 || begin > 0 || lane >= halo) && k * 32 < end);
    } else {
        const int rows =
            static_cast<int>(a.rows - tile.y < a.rows_a_tile ? a.rows - tile.y : a.rows_a_tile);
#pragma unroll 1
        for (int u = lane; u < rows * a_row; u += 32) {
            const int r = u / a_row;
            const uint32_t unit = u - r * a_row;
            gf_copy_async(stage + gf_slot(Shape::in_units, u + halo),
                          row + r * a.in_stride + unit * 16, unit < a.in_units);
        }
    }
}

// Writes the runs of all lanes, as far as whole units of a row go.
template <typename Work>
GF_DEVICE void gf_write(const gf_walk &a, gf_tile tile, const uint32_t *words, uint4 *stage) {
    typedef gf_stage_shape<Work> Shape;
    const int lane = threadIdx.x % 32;
    unsigned char *row = a.out + tile.y * a.out_stride;
    const int a_row = static_cast<int>(a.lanes) * Shape::out_units;
#pragma unroll
    for (int k = 0; k < Shape::out_units; k++)
        stage[gf_slot(Shape::out_units, lane * Shape::out_units + k)] = gf_vector_of(words + 4 * k);
    __syncwarp();
    if (a.rows_a_tile == 1) {
        const uint32_t begin = tile.before * a_row;
        const int left = static_cast<int>(a.out_units - begin);
        const int end = (left < a_row ? left : a_row) - lane;
        unsigned char *to = row + (static_cast<int64_t>(begin) + lane) * 16;
        const uint4 *from = stage + gf_slot(Shape::out_units, lane);
#pragma unroll
        for (int k = 0; k < Shape::out_units; k++)
            if (k * 32 < end)
                *reinterpret_cast<uint4 *>(to + k * 512) = from[k * 32];
    } else {
        const int rows =
            static_cast<int>(a.rows - tile.y < a.rows_a_tile ? a.rows - tile.y : a.rows_a_tile);
#pragma unroll 1
        for (int u = lane; u < rows * a_row; u += 32) {
            const int r = u / a_row;
            const uint32_t unit = u - r * a_row;
            if (unit < a.out_units)
                *reinterpret_cast<uint4 *>(row + r * a.out_stride + unit * 16) =
                    stage[gf_slot(Shape::out_units, u)];
        }
    }
    __syncwarp();
}

// A warp takes a tile: up to 32 runs side by side in a row, or of narrow rows several whole ones, a
// lane a run. A tile is copied asynchronously into a stage in shared memory, with what lies around
// it, while the warp works on the tile before; results leave through shared memory, too. So all
// traffic is in whole lines, each sample is read once and written once, and no register waits for
// memory. Shared memory: up to 12 KB a warp. Registers: 53 to 96 (sm_90), as Work::WARPS allows.
template <typename Work>
__global__ void __launch_bounds__(GF_STAGED_THREADS, Work::WARPS / GF_STAGED_WARPS)
    smooth_staged(const __grid_constant__ gf_walk a,
                  const __grid_constant__ typename Work::Args args) {
    typedef gf_stage_shape<Work> Shape;
    const int GROUPS = Work::GROUPS, HALO = Work::HALO, halo = Shape::halo_units;
    __shared__ gf_stage_shared<Work> shared[GF_STAGED_WARPS];
    __shared__ gf_queue<32 * GROUPS * Work::filtered> queues[GF_STAGED_WARPS];
    const unsigned lane = threadIdx.x % 32;
    gf_stage_shared<Work> &my = shared[threadIdx.x / 32];
    auto &queue = queues[threadIdx.x / 32];
    const uint32_t r = lane / a.lanes, l = lane - r * a.lanes; // the lane's row and run in a tile
    if (lane == 0)
        queue.waiting = 0;
    __syncwarp(); // a warp without a tile drains at once

    uint32_t index = gf_first_tile();
    gf_tile tile = gf_find_tile(a, index);
    if (index < a.tiles)
        gf_fetch<Work>(a, tile, my.stage[0]);
    __pipeline_commit();
    for (int turn = 0; index < a.tiles; turn ^= 1) {
        index += gf_tile_step();
        const gf_tile next = gf_find_tile(a, index);
        if (index < a.tiles)
            gf_fetch<Work>(a, next, my.stage[turn ^ 1]);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncwarp();

        // The run and the units around it.
        uint32_t words[(Shape::in_units + 2 * halo) * 4], result[Shape::out_run / 4];
        const uint4 *stage = my.stage[turn];
#pragma unroll
        for (int k = 0; k < Shape::in_units + 2 * halo; k++)
            gf_unpack(stage[gf_slot(Shape::in_units, lane * Shape::in_units + k)], words + 4 * k);
        unsigned unknown =
            Work::run(a, args, words + (halo * 16 - HALO * Shape::in_group) / 4, result);
        gf_write<Work>(a, tile, result, my.out);

        const uint32_t y = tile.y + r, run = tile.before * a.lanes + l;
        if (r >= a.rows_a_tile || y >= a.rows)
            unknown = 0;
        else if (run - a.inner_first >= a.inner_runs)
            unknown = gf_left_over<Work>(a, run, unknown);
        for (; unknown; unknown &= unknown - 1)
            queue.group[atomicAdd(&queue.waiting, 1)] =
                (y * a.runs + run) * (GROUPS * Work::filtered) + __ffs(static_cast<int>(unknown)) -
                1;
        __syncwarp(); // also before the stage is filled again
        const uint32_t waiting = queue.waiting;
        __syncwarp(); // before a lane adds to it again
        if (waiting >= 32)
            gf_drain<Work>(a, queue.group, &queue.waiting, false);
        tile = next;
    }
    gf_drain<Work>(a, queue.group, &queue.waiting, true);
}

// Queues the work on all rows of a walk; false if rows are too long to be counted.
template <typename Work>
static bool gf_staged_launch(gf_walk walk, uint64_t rows, const typename Work::Args &args,
                             cudaStream_t stream) {
    if (!gf_walk_fits<Work>(&walk))
        return false;
    walk.tiles_a_row = static_cast<uint32_t>(gf_divide_up(walk.runs, 32));
    walk.lanes = static_cast<uint32_t>(gf_divide_up(walk.runs, walk.tiles_a_row));
    walk.rows_a_tile = walk.tiles_a_row == 1 ? 32 / walk.lanes : 1;
    walk.runs = walk.tiles_a_row * walk.lanes;
    walk.by = gf_divider_of(walk.tiles_a_row);
    const uint64_t wave = gf_walk_wave(smooth_staged<Work>, GF_STAGED_THREADS);
    const uint64_t a_row = static_cast<uint64_t>(walk.runs) * Work::GROUPS * Work::filtered;
    gf_walk_rows(walk, rows, (UINT64_C(1) << 31) / a_row, [&](gf_walk &part) {
        part.tiles =
            static_cast<uint32_t>(gf_divide_up(part.rows, part.rows_a_tile) * part.tiles_a_row);
        const unsigned blocks = gf_walk_blocks<Work>(part.tiles, wave, GF_STAGED_WARPS);
        smooth_staged<Work><<<blocks, GF_STAGED_THREADS, 0, stream>>>(part, args);
    });
    return true;
}

#endif
