// smooth of rows in registers, through tiles in shared memory. Supports narrow rows, and results
// larger than the samples. Also the queue of the exact path, which cuda/smooth/integer.cu shares.
//
// A Work class defines the computation of one run. Each has Tin, Tout, C, filtered (channels),
// GROUPS and HALO (in groups of 4 pixels), Args, and RADIUS and AROUND for the exact path
// (gf_smooth_exact). Work with a queue also has TILES_PER_WARP (approximate), WARPS (resident per
// SM), and
//
//     static __device__ unsigned compute(const gf_smooth_rows &, const Args &,
//                                        const uint32_t *raw, uint32_t *out)
//
// compute() computes GROUPS groups from the words of HALO + GROUPS + HALO groups, as if no edge
// were near. It returns one bit for each channel of a group that the exact path must compute.
#ifndef GF_SMOOTH_STAGED_CUH
#define GF_SMOOTH_STAGED_CUH

#include "cuda/smooth/device.cuh"

// Rows as runs: consecutive groups of 4 pixels, one run per lane.
struct gf_smooth_runs : gf_smooth_rows {
    uint32_t runs;                    // per row; the last ones may be past its end
    uint64_t inner_end;               // pixels from here on take the exact path
    uint32_t inner_first, inner_runs; // first run without edges, and number of such runs
    uint32_t in_units, out_units;     // 16-byte units: per input stride, whole ones per output row
};

// Divide rows into runs. Returns false if rows are too wide for the kernels.
template <typename Work> static bool gf_smooth_set_runs(gf_smooth_runs *a) {
    const uint64_t run = 4 * Work::GROUPS, runs = gf_divide_up(a->width, run);
    const size_t pixel = Work::C * sizeof(typename Work::Tout);
    if (runs * Work::GROUPS * Work::filtered >= UINT64_C(1) << 29 || a->in_stride > UINT32_MAX / 4)
        return false;
    a->in_units = static_cast<uint32_t>(a->in_stride / 16);
    a->out_units = static_cast<uint32_t>(a->width * pixel / 16);
    const uint64_t inner = a->width < a->reach ? 0 : a->width - a->reach;
    const uint64_t whole = static_cast<uint64_t>(a->out_units) * 16 / pixel;
    a->inner_end = inner < whole ? inner : whole;
    const uint64_t first = gf_divide_up(a->reach, run), end = a->inner_end / run;
    a->inner_first = static_cast<uint32_t>(first);
    a->inner_runs = end > first ? static_cast<uint32_t>(end - first) : 0;
    a->runs = static_cast<uint32_t>(runs);
    return true;
}

// Compute channel c of the group of up to 4 pixels from pixel p, in row y, by the exact path.
template <typename Work>
GF_DEVICE void gf_smooth_work(const gf_smooth_rows &a, uint32_t y, uint64_t p, int c) {
    gf_smooth_group<typename Work::Tin, typename Work::Tout, Work::C, Work::RADIUS, Work::AROUND>(
        a, y, p, c);
}

// ---- queue --------------------------------------------------------------------------------------

// Groups with an edge in their window, and groups that the fast arithmetic cannot compute, are
// stored in a queue per warp. When 32 are queued, each lane computes one of them by the exact path.
// Every width is therefore exact, and rare work costs little.

// Return a mask of the bits from n on.
GF_DEVICE unsigned gf_bits_from(int64_t n) {
    return n >= 32 ? 0 : n <= 0 ? ~0u : ~0u << n;
}

// Expand a mask of groups to one bit for each filtered channel.
template <typename Work> GF_DEVICE unsigned gf_group_bits(unsigned groups) {
    unsigned bits = 0;
#pragma unroll
    for (int g = 0; g < Work::GROUPS; g++)
        bits |= groups >> g & 1 ? ((1u << Work::filtered) - 1) << g * Work::filtered : 0;
    return bits;
}

// Add the groups near an end of the row to those pending of a run, and remove those past it.
template <typename Work>
GF_DEVICE unsigned gf_pending_groups(const gf_smooth_runs &a, uint32_t run, unsigned pending) {
    const int64_t begin = static_cast<int64_t>(run) * (4 * Work::GROUPS);
    const unsigned inside = ~gf_bits_from((static_cast<int64_t>(a.width) - begin + 3) >> 2);
    const unsigned edges = ~gf_bits_from((static_cast<int64_t>(a.reach) - begin + 3) >> 2) |
                           gf_bits_from((static_cast<int64_t>(a.inner_end) - begin) >> 2);
    return (pending | gf_group_bits<Work>(edges)) & gf_group_bits<Work>(inside);
}

// Queue of a warp: channels of groups, numbered by row, group and channel.
template <int MAX> struct gf_smooth_pending {
    uint32_t queued;
    uint32_t group[32 + MAX]; // MAX: what one iteration adds
};

// Compute queued groups, 32 at a time; all of them, or until fewer remain. All lanes must call it.
template <typename Work>
static __device__ __noinline__ void gf_smooth_drain(const gf_smooth_runs &a, uint32_t *group,
                                                    uint32_t *queued, bool all) {
    const uint32_t lane = threadIdx.x % 32;
    uint32_t left = *queued;
    while (left >= 32 || (all && left > 0)) {
        const uint32_t batch = left < 32 ? left : 32;
        left -= batch;
        if (lane < batch) {
            const uint32_t number = group[left + lane], per_row = a.runs * Work::GROUPS;
            const uint32_t g = number / Work::filtered, y = g / per_row;
            gf_smooth_work<Work>(a, y, static_cast<uint64_t>(g - y * per_row) * 4,
                                 static_cast<int>(number % Work::filtered));
        }
    }
    __syncwarp();
    if (lane == 0)
        *queued = left;
    __syncwarp();
}

// Compute queued groups if there are enough for all lanes. All lanes must call it, after adding.
template <typename Work>
GF_DEVICE void gf_smooth_drain_full(const gf_smooth_runs &a, uint32_t *group, uint32_t *queued) {
    __syncwarp();
    const uint32_t count = *queued;
    __syncwarp(); // before a lane adds to it again
    if (count >= 32)
        gf_smooth_drain<Work>(a, group, queued, false);
}

// Return the first tile of a warp, and the step to its next tile.
GF_DEVICE uint32_t gf_first_tile() {
    return (blockIdx.x * blockDim.x + threadIdx.x) / 32;
}

GF_DEVICE uint32_t gf_tile_step() {
    return gridDim.x * (blockDim.x / 32);
}

// Return the number of blocks for `tiles` tiles. A finished block is replaced on any SM that is
// ahead. Therefore a warp processes few tiles, but enough of them to fill its queue.
template <typename Work>
static unsigned gf_smooth_blocks(uint64_t tiles, uint64_t wave, int warps) {
    const uint64_t full = gf_divide_up(tiles, warps), enough = full / Work::TILES_PER_WARP;
    return static_cast<unsigned>(enough > wave ? enough : full < wave ? full : wave);
}

// ---- tiles --------------------------------------------------------------------------------------

// Rows as tiles, one per warp: part of a row, or of two, or several whole rows.
struct gf_smooth_tiles : gf_smooth_runs {
    uint32_t rows_per_tile, tiles_per_row;
    gf_divider by; // divides by tiles_per_row
    // For smooth_staged: lanes per row of a tile, one run each, and tiles in all.
    uint32_t lanes, tiles;
};

// Tile: its first row, its rows (0 after the last tile), and the tiles before it in this row.
struct gf_tile {
    uint32_t y, rows, before;
};

GF_DEVICE gf_tile gf_find_tile(const gf_smooth_tiles &a, uint32_t index) {
    const uint32_t row = a.tiles_per_row == 1 ? index : gf_divide(index, a.by);
    const uint32_t y = row * a.rows_per_tile, left = y < a.rows ? a.rows - y : 0;
    return {y, left < a.rows_per_tile ? left : a.rows_per_tile, index - row * a.tiles_per_row};
}

// Tuning constants of smooth_staged. Work::TILES_PER_WARP and Work::WARPS are the others.
struct gf_staged_policy {
    static constexpr int THREADS = 64, WARPS = THREADS / 32;
};

// Layout of a tile in shared memory for one Work, in units of 16 bytes.
template <typename Work> struct gf_stage_shape {
    static const int C = Work::C, GROUPS = Work::GROUPS, HALO = Work::HALO;
    static const int in_group = 4 * C * sizeof(typename Work::Tin); // bytes
    static const int out_group = 4 * C * sizeof(typename Work::Tout);
    static const int in_run = GROUPS * in_group, out_run = GROUPS * out_group;
    static const int in_units = in_run / 16, out_units = out_run / 16;
    // units on each side of a tile. Even, so that the 32-byte sectors of a copy stay aligned in
    // shared memory; otherwise each sector would be read twice.
    static const int halo_units = (HALO * in_group + 31) / 32 * 2;
    static_assert(in_run % 16 == 0 && out_run % 16 == 0, "a run must be whole units");
};

template <typename Work> struct gf_stage_shared {
    typedef gf_stage_shape<Work> Shape;
    uint4 stage[2][32 * Shape::in_units + 2 * Shape::halo_units];
    uint4 out[32 * Shape::out_units];
};

// Return the swizzled index of unit u of a stage, within its block of 8 units. A lane accesses its
// own `units` units, or all lanes access consecutive units. In both cases, 8 lanes (128 bytes per
// transaction) are conflict-free.
GF_DEVICE int gf_swizzle(int units, int u) {
    return units % 4 == 0 ? u ^ (u >> 3 & 3) : units % 2 == 0 ? u ^ (u >> 3 & 1) : u;
}

// Call visit(u, r, unit) for each unit u of a tile that belongs to the lane: `unit` of row r.
template <typename Visit>
GF_DEVICE void gf_staged_each_unit(gf_tile tile, int per_row, Visit visit) {
    const int rows = static_cast<int>(tile.rows);
#pragma unroll 1
    for (int u = threadIdx.x % 32; u < rows * per_row; u += 32) {
        const int r = u / per_row;
        visit(u, r, static_cast<uint32_t>(u - r * per_row));
    }
}

// Start to copy a tile into a stage: the runs of all lanes in order. If a row has several tiles,
// also copy the units around them. Units outside the image are not copied and not used.
template <typename Work>
GF_DEVICE void gf_staged_load(const gf_smooth_tiles &a, gf_tile tile, uint4 *stage) {
    typedef gf_stage_shape<Work> Shape;
    const int lane = threadIdx.x % 32, halo = Shape::halo_units;
    const unsigned char *row = gf_smooth_in(a, tile.y);
    const int per_row = static_cast<int>(a.lanes) * Shape::in_units;
    if (a.rows_per_tile == 1) {
        const uint32_t begin = tile.before * per_row;
        const int left = static_cast<int>(a.in_units - begin);
        const int end = (left < per_row + halo ? left : per_row + halo) + halo - lane;
        const unsigned char *from = row + (static_cast<int64_t>(begin) + (lane - halo)) * 16;
        uint4 *to = stage + gf_swizzle(Shape::in_units, lane); // the swizzle repeats every 32 units
#pragma unroll
        for (int k = 0; k < (32 * Shape::in_units + 2 * halo + 31) / 32; k++)
            gf_copy_async(to + k * 32, from + k * 512,
                          (k > 0 || begin > 0 || lane >= halo) && k * 32 < end);
    } else {
        gf_staged_each_unit(tile, per_row, [&](int u, int r, uint32_t unit) {
            gf_copy_async(stage + gf_swizzle(Shape::in_units, u + halo),
                          row + r * a.in_stride + unit * 16, unit < a.in_units);
        });
    }
}

// Store the runs of all lanes, up to the last whole unit of a row.
template <typename Work>
GF_DEVICE void gf_staged_store(const gf_smooth_tiles &a, gf_tile tile, const uint32_t *words,
                               uint4 *stage) {
    typedef gf_stage_shape<Work> Shape;
    const int lane = threadIdx.x % 32;
    unsigned char *row = gf_smooth_out(a, tile.y);
    const int per_row = static_cast<int>(a.lanes) * Shape::out_units;
#pragma unroll
    for (int k = 0; k < Shape::out_units; k++)
        stage[gf_swizzle(Shape::out_units, lane * Shape::out_units + k)] =
            gf_vector_of(words + 4 * k);
    __syncwarp();
    if (a.rows_per_tile == 1) {
        const uint32_t begin = tile.before * per_row;
        const int left = static_cast<int>(a.out_units - begin);
        const int end = (left < per_row ? left : per_row) - lane;
        unsigned char *to = row + (static_cast<int64_t>(begin) + lane) * 16;
        const uint4 *from = stage + gf_swizzle(Shape::out_units, lane);
#pragma unroll
        for (int k = 0; k < Shape::out_units; k++)
            if (k * 32 < end)
                *reinterpret_cast<uint4 *>(to + k * 512) = from[k * 32];
    } else {
        gf_staged_each_unit(tile, per_row, [&](int u, int r, uint32_t unit) {
            if (unit < a.out_units)
                *reinterpret_cast<uint4 *>(row + r * a.out_stride + unit * 16) =
                    stage[gf_swizzle(Shape::out_units, u)];
        });
    }
    __syncwarp();
}

// Smooth rows by Work::compute.
// Grid: about TILES_PER_WARP tiles per warp, at least one wave if there are enough tiles. Block: 64
// threads. A tile is up to 32 consecutive runs of a row, or several whole narrow rows; one run per
// lane. Each tile and its halo are copied asynchronously into one of two stages in shared memory
// while the warp computes the previous tile; results also leave through shared memory. All accesses
// are coalesced; reads and writes each sample once; no register waits for memory. Tail: the queue.
// Shared memory: 2.5 to 11.5 KB per warp. Registers: 54 to 96 (sm_90), as Work::WARPS allows.
template <typename Work>
__global__ void __launch_bounds__(gf_staged_policy::THREADS, Work::WARPS / gf_staged_policy::WARPS)
    smooth_staged(const __grid_constant__ gf_smooth_tiles a,
                  const __grid_constant__ typename Work::Args args) {
    typedef gf_stage_shape<Work> Shape;
    const int GROUPS = Work::GROUPS, HALO = Work::HALO, halo = Shape::halo_units;
    __shared__ gf_stage_shared<Work> shared[gf_staged_policy::WARPS];
    __shared__ gf_smooth_pending<32 * GROUPS * Work::filtered> queues[gf_staged_policy::WARPS];
    const unsigned lane = threadIdx.x % 32;
    gf_stage_shared<Work> &my = shared[threadIdx.x / 32];
    auto &queue = queues[threadIdx.x / 32];
    const uint32_t r = lane / a.lanes, l = lane - r * a.lanes; // row and run of the lane in a tile
    if (lane == 0)
        queue.queued = 0;
    __syncwarp(); // a warp without a tile drains the queue at once

    uint32_t index = gf_first_tile();
    gf_tile tile = gf_find_tile(a, index);
    gf_wait_for_stream();
    if (index < a.tiles)
        gf_staged_load<Work>(a, tile, my.stage[0]);
    __pipeline_commit();
    for (int buffer = 0; index < a.tiles; buffer ^= 1) {
        index += gf_tile_step();
        const gf_tile next = gf_find_tile(a, index);
        if (index < a.tiles)
            gf_staged_load<Work>(a, next, my.stage[buffer ^ 1]);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncwarp();

        // Load the run and its halo.
        uint32_t words[(Shape::in_units + 2 * halo) * 4], result[Shape::out_run / 4];
        const uint4 *stage = my.stage[buffer];
#pragma unroll
        for (int k = 0; k < Shape::in_units + 2 * halo; k++)
            gf_unpack(stage[gf_swizzle(Shape::in_units, lane * Shape::in_units + k)],
                      words + 4 * k);
        unsigned pending =
            Work::compute(a, args, words + (halo * 16 - HALO * Shape::in_group) / 4, result);
        gf_staged_store<Work>(a, tile, result, my.out);

        const uint32_t y = tile.y + r, run = tile.before * a.lanes + l;
        if (r >= tile.rows)
            pending = 0;
        else if (run - a.inner_first >= a.inner_runs)
            pending = gf_pending_groups<Work>(a, run, pending);
        for (; pending; pending &= pending - 1)
            queue.group[atomicAdd(&queue.queued, 1)] =
                (y * a.runs + run) * (GROUPS * Work::filtered) + __ffs(pending) - 1;
        gf_smooth_drain_full<Work>(a, queue.group, &queue.queued); // also orders uses of the stage
        tile = next;
    }
    gf_smooth_drain<Work>(a, queue.group, &queue.queued, true);
}

// Queue the kernel for all rows of a strip.
template <typename Work>
static bool gf_staged_launch(const gf_smooth_job &job, const typename Work::Args &args) {
    gf_smooth_tiles a = {};
    gf_smooth_set_rows(&a, job);
    if (!gf_smooth_set_runs<Work>(&a))
        return false;
    a.tiles_per_row = static_cast<uint32_t>(gf_divide_up(a.runs, 32));
    a.lanes = static_cast<uint32_t>(gf_divide_up(a.runs, a.tiles_per_row));
    a.rows_per_tile = a.tiles_per_row == 1 ? 32 / a.lanes : 1;
    a.runs = a.tiles_per_row * a.lanes;
    a.by = gf_divider_of(a.tiles_per_row);
    const int threads = gf_staged_policy::THREADS;
    const uint64_t wave = gf_resident_blocks<smooth_staged<Work>>(threads);
    const uint64_t per_row = static_cast<uint64_t>(a.runs) * Work::GROUPS * Work::filtered;
    gf_smooth_parts(a, job.strip.out.rows, (UINT64_C(1) << 31) / per_row,
                    [&](gf_smooth_tiles &part) {
                        part.tiles = static_cast<uint32_t>(
                            gf_divide_up(part.rows, part.rows_per_tile) * part.tiles_per_row);
                        const unsigned blocks =
                            gf_smooth_blocks<Work>(part.tiles, wave, gf_staged_policy::WARPS);
                        gf_launch_kernel(smooth_staged<Work>, dim3(blocks, part.images.count),
                                         threads, 0, job.queue, part, args);
                    });
    return true;
}

#endif
