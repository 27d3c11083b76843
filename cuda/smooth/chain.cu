// smooth of rows by the stages in registers: radius 0 to 3, any type. One kernel, smooth_tiles.
#include "cuda/smooth/device.cuh"

struct tiles_policy {
    static constexpr int THREADS = 64, WARPS = THREADS / 32;
    static constexpr int BLOCKS = 12; // resident blocks per SM
    static constexpr int ROWS = 2;    // rows per warp
    static constexpr int UNITS = 3;   // 16-byte units per run; odd: conflict-free
    static constexpr int PADDING = 8; // 16-byte units before and after a stage
    static constexpr int TILE = 32 * UNITS, STAGE = TILE + PADDING;
};

// Work of smooth_tiles on one run: PIXELS pixels, with HALO units of 16 bytes on each side. FIRST:
// the first sample of the run and its halo that gf_chain reads.
template <typename Sample, int CHANNELS, int MEAN> struct tiles_work {
    typedef Sample T;
    static const int C = CHANNELS, SIZE = sizeof(T), RADIUS = MEAN, AROUND = (RADIUS + 1) * C;
    static const int PIXELS = tiles_policy::UNITS * 16 / (C * SIZE), FILTERED = GF_COLOURS(C);
    static const int HALO = (AROUND * SIZE + 15) / 16, FIRST = HALO * 16 / SIZE - AROUND;
};

// Rows as tiles, one per warp: part of one or two rows.
struct tiles_args : gf_smooth_rows {
    uint64_t inner_end;           // pixels from here on take the exact path
    uint32_t in_units, out_units; // 16-byte units: per input stride, whole ones per output row
    uint32_t rows_per_tile, tiles_per_row;
    gf_divider by; // divides by tiles_per_row
};

// Tile: its first row, its rows (0 after the last tile), and the tiles before it in this row.
struct tiles_tile {
    uint32_t y, rows, before;
};

GF_DEVICE tiles_tile tiles_find(const tiles_args &a, uint32_t index) {
    const uint32_t row = a.tiles_per_row == 1 ? index : gf_divide(index, a.by);
    const uint32_t y = row * a.rows_per_tile, left = y < a.rows ? a.rows - y : 0;
    return {y, left < a.rows_per_tile ? left : a.rows_per_tile, index - row * a.tiles_per_row};
}

// Compute channel c of a group of up to 4 pixels from pixel p, in row y, by the exact path. Not
// inlined: few threads need it, and the caller needs fewer registers.
template <typename Work>
static __device__ __noinline__ void tiles_exact(const tiles_args &a, uint32_t y, uint64_t p,
                                                int c) {
    typedef typename Work::T T;
    const int C = Work::C, left = gf_smooth_near(p), right = gf_smooth_near(a.width - p);
    const T *in = reinterpret_cast<const T *>(gf_smooth_in(a, y)) + p * C;
    T *out = reinterpret_cast<T *>(gf_smooth_out(a, y)) + p * C;
    float t[4];
    gf_smooth_exact<T, Work::RADIUS>(a.constants, left, right, t,
                                     [&](int d) { return gf_load(in[d * C + c]); });
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < right)
            out[i * C + c] = gf_store<T>(t[i]);
    // The lane of the first channel copies the alpha.
    if (Work::FILTERED < C && c == 0)
        for (int i = 0; i < 4 && i < right; i++)
            out[i * C + C - 1] = in[i * C + C - 1];
}

// Compute the pixels near the ends of rows, which gf_chain cannot: one lane per channel of 4
// pixels. Adjacent pixels may be recomputed.
template <typename Work>
static __device__ __noinline__ void tiles_compute_ends(const tiles_args &a, tiles_tile tile) {
    const uint64_t begin = static_cast<uint64_t>(tile.before) * (32 * Work::PIXELS);
    const uint64_t beyond = begin + 32 * Work::PIXELS;
    const uint64_t end = beyond < a.width ? beyond : a.width;
    const uint64_t last = begin > a.inner_end ? begin : a.inner_end; // pixels from here on
    const uint32_t first_groups = begin == 0 ? 1 : 0;
    const uint32_t groups =
        first_groups + (end > last ? static_cast<uint32_t>(end - last + 3) / 4 : 0);
    const uint32_t tasks = tile.rows * groups * Work::FILTERED;
    for (uint32_t i = threadIdx.x % 32; i < tasks; i += 32) {
        const uint32_t group = i / Work::FILTERED, row = group / groups;
        const uint32_t g = group - row * groups;
        tiles_exact<Work>(a, tile.y + row, g < first_groups ? 0 : last + (g - first_groups) * 4,
                          static_cast<int>(i % Work::FILTERED));
    }
}

// Recompute a lane's run with invalid results. Its last group may extend into the next run; the
// values that it stores there are the same.
template <typename Work>
static __device__ __noinline__ void tiles_redo(const tiles_args &a, uint32_t y, uint64_t first) {
    for (uint64_t p = first; p < first + Work::PIXELS && p < a.width; p += 4)
        for (int c = 0; c < Work::FILTERED; c++)
            tiles_exact<Work>(a, y, p, c);
}

// Start to copy the rows of a tile and their halos, a group per row. begin: the lane's first unit.
template <typename Work>
GF_DEVICE void tiles_load(const tiles_args &a, tiles_tile tile, uint32_t begin, uint4 *stage) {
    const int TILE = tiles_policy::TILE, HALO = Work::HALO, lane = threadIdx.x % 32;
    static_assert(HALO <= tiles_policy::PADDING / 2, "two halos fit between two stages");
    const int left = static_cast<int>(a.in_units) - static_cast<int>(begin); // units to the end
    const int halo_offset = lane < HALO ? -HALO : TILE - HALO; // of the unit that the lane copies
    const bool has_halo = lane < HALO ? tile.before > 0 : lane < 2 * HALO && halo_offset < left;
    const unsigned char *from = gf_smooth_in(a, tile.y) + static_cast<uint64_t>(begin) * 16;
#pragma unroll
    for (int row = 0; row < tiles_policy::ROWS; row++) {
        if (row < static_cast<int>(tile.rows)) {
            uint4 *const unit = stage + row * tiles_policy::STAGE + lane;
#pragma unroll
            for (int k = 0; k < tiles_policy::UNITS; k++)
                gf_copy_async(unit + k * 32, from + k * 512, k * 32 < left);
            gf_copy_async(unit + halo_offset, from + halo_offset * 16, has_halo);
            from += a.in_stride;
        }
        __pipeline_commit();
    }
}

// Compute the lane's run in its stage. Returns true if the exact path must recompute it.
template <typename Work> GF_DEVICE bool tiles_compute(const tiles_args &a, uint4 *stage) {
    const int UNITS = tiles_policy::UNITS, HALO = Work::HALO;
    uint4 *const run = stage + threadIdx.x % 32 * UNITS;
    uint32_t words[(UNITS + 2 * HALO) * 4], result[UNITS * 4];
#pragma unroll
    for (int k = 0; k < UNITS + 2 * HALO; k++)
        gf_unpack(run[k - HALO], words + 4 * k);
    const bool redo = gf_chain<typename Work::T, Work::C, Work::RADIUS, Work::PIXELS, Work::FIRST>(
        a.constants, words, result);
    __syncwarp(); // all lanes have read the units of their neighbors
#pragma unroll
    for (int k = 0; k < UNITS; k++)
        run[k] = gf_vector_of(result + 4 * k);
    return redo;
}

// Smooth rows by the stages.
// Grid: one warp per tile. Block: 64 threads. A run is 48 bytes, one per lane; a tile is 32
// consecutive runs in each of two rows. The column offsets are computed once for both rows. Each
// row is copied asynchronously into shared memory, with HALO units of 16 bytes on each side, while
// other warps compute; results leave through the same memory. All accesses are coalesced; reads
// each sample once (halo samples twice) and writes it once; no register waits for memory. Tail:
// pixels with an edge in their window, or in no whole unit, take the exact path.
// A tile has the same alignment in shared memory as in its 128-byte line. If they differ by half of
// a 32-byte sector, a copy moves each sector twice, and the kernel reaches 0.9 of the bandwidth.
// Blocks are short: a finished one is replaced at once, and all access one region of the image.
// Shared memory: 3.5 KB per warp. Registers: 52 to 80 (sm_90), 12 resident blocks.
template <typename Work>
__global__ void __launch_bounds__(tiles_policy::THREADS, tiles_policy::BLOCKS)
    smooth_tiles(const __grid_constant__ tiles_args a) {
    typedef tiles_policy Policy;
    const int ROWS = Policy::ROWS, STAGE = Policy::STAGE;
    __shared__ __align__(128) uint4 shared[Policy::WARPS][Policy::PADDING + ROWS * STAGE];
    uint4 *stage = shared[threadIdx.x / 32] + Policy::PADDING;
    const int lane = threadIdx.x % 32;
    const tiles_tile tile = tiles_find(a, (blockIdx.x * blockDim.x + threadIdx.x) / 32);
    if (tile.rows == 0)
        return;
    const uint32_t begin = tile.before * Policy::TILE + lane; // the lane's first unit
    gf_wait_for_stream();
    tiles_load<Work>(a, tile, begin, stage);

    const int left = static_cast<int>(a.out_units) - static_cast<int>(begin);
    unsigned char *to = gf_smooth_out(a, tile.y) + static_cast<uint64_t>(begin) * 16;
    unsigned redo = 0; // one bit per row
#pragma unroll 1
    for (uint32_t row = 0; row < tile.rows; row++) {
        __pipeline_wait_prior(ROWS - 1);
        __syncwarp();
        redo |= (tiles_compute<Work>(a, stage) ? 1u : 0u) << row;
        __syncwarp();
#pragma unroll
        for (int k = 0; k < Policy::UNITS; k++)
            if (k * 32 < left)
                *reinterpret_cast<uint4 *>(to + k * 512) = stage[lane + k * 32];
        to += a.out_stride;
        stage += STAGE;
        __pipeline_commit(); // an empty group: the next row is now the oldest pending copy
    }

    __syncwarp(); // order the stores above before the stores below
    for (; redo; redo &= redo - 1)
        tiles_redo<Work>(a, tile.y + __ffs(redo) - 1,
                         (static_cast<uint64_t>(tile.before) * 32 + lane) * Work::PIXELS);
    if (tile.before == 0 ||
        (static_cast<uint64_t>(tile.before) + 1) * (32 * Work::PIXELS) > a.inner_end)
        tiles_compute_ends<Work>(a, tile);
}

// Queue the kernel for all rows. Returns false if they are too long or too many for its counters.
template <typename Work> static bool tiles_launch(const gf_smooth_job &job) {
    typedef tiles_policy Policy;
    constexpr size_t PIXEL = Work::C * sizeof(typename Work::T);
    tiles_args a = {};
    gf_smooth_set_rows(&a, job);
    const uint64_t tiles = gf_divide_up(a.width, 32 * Work::PIXELS), rows = job.strip.out.rows;
    if (a.width >= UINT64_C(1) << 29 || a.in_stride > UINT32_MAX / 4 ||
        rows > (UINT64_C(1) << 31) / tiles - Policy::ROWS)
        return false;
    a.in_units = static_cast<uint32_t>(a.in_stride / 16);
    a.out_units = static_cast<uint32_t>(a.width * PIXEL / 16);
    const uint64_t inner = gf_max(a.width, a.constants.reach) - a.constants.reach;
    a.inner_end = gf_min(inner, static_cast<uint64_t>(a.out_units) * 16 / PIXEL);
    a.tiles_per_row = static_cast<uint32_t>(tiles);
    a.by = gf_divider_of(tiles);
    // With few rows, assign one row per tile to occupy all SMs.
    const uint64_t wave = gf_resident_blocks<smooth_tiles<Work>>(Policy::THREADS) * Policy::WARPS;
    a.rows_per_tile = static_cast<uint32_t>(gf_max(1, gf_min(rows * tiles / wave, Policy::ROWS)));
    const uint64_t warps = gf_divide_up(rows, a.rows_per_tile) * tiles;
    const unsigned blocks = static_cast<unsigned>(gf_divide_up(warps, Policy::WARPS));
    gf_launch_kernel(smooth_tiles<Work>, dim3(blocks, a.images.count), Policy::THREADS, 0,
                     job.queue, a);
    return true;
}

bool gf_smooth_chain_rows(const gf_smooth_job &job) {
    const gf_format *in = &job.plan->head.in;
    if (job.wide || !gf_smooth_rows_fit(job.plan) || !gf_chain_fits(job.plan, in->type == GF_F32))
        return false;
    bool done = false;
    gf_dispatch(
        [&](auto sample, auto channels, auto radius) {
            done = tiles_launch<tiles_work<decltype(sample), channels, radius>>(job);
        },
        gf_type_of{in->type}, gf_channels{in->channels}, gf_number<0, 3>{job.plan->radius});
    return done;
}
