// Smoothing rows in registers, by way of shared memory, tile by tile: for narrow rows, too, and for
// results that are larger than the samples.
//
// Thread mapping: a warp takes a tile: up to 32 runs side by side in a row, or of narrow rows
// several whole ones, a lane a run. A tile is copied asynchronously into a stage in shared memory,
// with what lies around it, while the warp works on the tile before; results leave through shared
// memory, too: so all traffic is in whole lines, each sample is read once and written once, and no
// register waits for memory.
//
// Shared memory: up to 12 KB a warp.
#ifndef GF_SMOOTH_STAGED_CUH
#define GF_SMOOTH_STAGED_CUH

#include <cuda_pipeline.h>

#include "smooth_walk.cuh"

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
// meet in no bank.
static __device__ __forceinline__ int gf_slot(int units, int u) {
    return units % 4 == 0 ? u ^ (u >> 3 & 3) : units % 2 == 0 ? u ^ (u >> 3 & 1) : u;
}

// A tile: its first row, and how many tiles lie before it there.
struct gf_tile {
    uint32_t y, before;
};

static __device__ __forceinline__ gf_tile gf_find_tile(const gf_walk &a, uint32_t index) {
    const uint32_t row = a.tiles_a_row == 1 ? index : __umulhi(index, a.magic) >> a.shift;
    return {row * a.rows_a_tile, index - row * a.tiles_a_row};
}

// Begins to copy 16 bytes into shared memory, if `does`. (The compiler's own way makes a branch of
// each condition.) Before sm_80 there is no such copy, and it is done at once.
static __device__ __forceinline__ void gf_copy_async(uint4 *to, const unsigned char *from,
                                                     bool does) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "{\n"
        ".reg .pred does;\n"
        "setp.ne.s32 does, %2, 0;\n"
        "@does cp.async.cg.shared.global [%0], [%1], 16;\n"
        "}\n" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
        "l"(from), "r"(static_cast<int>(does))
        : "memory");
#else
    if (does)
        *to = *reinterpret_cast<const uint4 *>(from);
#endif
}

// Begins to copy a tile into a stage: the runs of all lanes in order, and, of a row of several
// tiles, the units around them. What is not in the image is left out, and nobody uses what is then
// there.
template <typename Work>
static __device__ __forceinline__ void gf_fetch(const gf_walk &a, gf_tile tile, uint4 *stage) {
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
static __device__ __forceinline__ void gf_write(const gf_walk &a, gf_tile tile,
                                                const uint32_t *words, uint4 *stage) {
    typedef gf_stage_shape<Work> Shape;
    const int lane = threadIdx.x % 32;
    unsigned char *row = a.out + tile.y * a.out_stride;
    const int a_row = static_cast<int>(a.lanes) * Shape::out_units;
#pragma unroll
    for (int k = 0; k < Shape::out_units; k++)
        stage[gf_slot(Shape::out_units, lane * Shape::out_units + k)] =
            make_uint4(words[4 * k], words[4 * k + 1], words[4 * k + 2], words[4 * k + 3]);
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
    gf_queue<32 *GROUPS *Work::filtered> &queue = queues[threadIdx.x / 32];
    const uint32_t r = lane / a.lanes, l = lane - r * a.lanes; // the lane's row and run in a tile
    if (lane == 0)
        queue.waiting = 0;
    __syncwarp(); // a warp without a tile drains at once

    uint32_t index = gf_first_turn();
    gf_tile tile = gf_find_tile(a, index);
    if (index < a.tiles)
        gf_fetch<Work>(a, tile, my.stage[0]);
    __pipeline_commit();
    for (int turn = 0; index < a.tiles; turn ^= 1) {
        index += gf_turn_step();
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
        for (int k = 0; k < Shape::in_units + 2 * halo; k++) {
            const uint4 v = stage[gf_slot(Shape::in_units, lane * Shape::in_units + k)];
            words[4 * k] = v.x;
            words[4 * k + 1] = v.y;
            words[4 * k + 2] = v.z;
            words[4 * k + 3] = v.w;
        }
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
        __syncwarp(); // before anyone adds to it again
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
    walk.tiles_a_row = (walk.runs + 31) / 32;
    walk.lanes = (walk.runs + walk.tiles_a_row - 1) / walk.tiles_a_row;
    walk.rows_a_tile = walk.tiles_a_row == 1 ? 32 / walk.lanes : 1;
    const uint64_t wave = gf_walk_wave(smooth_staged<Work>, GF_STAGED_THREADS);
    walk.runs = walk.tiles_a_row * walk.lanes;
    gf_walk_divide_by(&walk, walk.tiles_a_row);
    const uint64_t most_rows =
        (UINT64_C(1) << 31) / (static_cast<uint64_t>(walk.runs) * Work::GROUPS * Work::filtered);
    for (uint64_t y = 0; y < rows; y += most_rows) {
        const uint64_t some = rows - y < most_rows ? rows - y : most_rows;
        walk.rows = static_cast<uint32_t>(some);
        walk.tiles = static_cast<uint32_t>((some + walk.rows_a_tile - 1) / walk.rows_a_tile *
                                           walk.tiles_a_row);
        const unsigned blocks = gf_walk_blocks<Work>(walk.tiles, wave, GF_STAGED_WARPS);
        smooth_staged<Work><<<blocks, GF_STAGED_THREADS, 0, stream>>>(walk, args);
        walk.in += some * walk.in_stride;
        walk.out += some * walk.out_stride;
    }
    return true;
}

#endif
