// Blocks that walk down tiles: shares of the work; and of tiles of bytes: loads, matrices, stores.
#ifndef GF_MARCH_CUH
#define GF_MARCH_CUH

#include "cuda/window/load.cuh"

// ---- shares -------------------------------------------------------------------------------------

// The image is divided into tiles, parts of a row of a fixed size, and these into steps of some
// rows. A block computes an equal share of the steps of all tiles, in the order of the tiles.
struct gf_shares {
    uint64_t tile_steps; // steps of a tile
    uint64_t tiles;
    uint32_t blocks; // of the grid
};

// Return the first step of a block. The begin of a tile takes as long as START steps. Those of the
// first and the last tile take an eighth longer: they fill in samples.
template <int START> GF_DEVICE uint64_t gf_share(const gf_shares &a, unsigned block) {
    const uint64_t inner = a.tile_steps + START, edge = inner + a.tile_steps / 8;
    const uint64_t all = a.tiles == 1 ? edge : 2 * edge + (a.tiles - 2) * inner;
    const uint64_t at = all * block / a.blocks;
    uint64_t tile = 0, rest = at, length = inner;
    if (at >= edge && all - at > edge) {
        tile = 1 + (at - edge) / inner;
        rest = at - edge - (tile - 1) * inner;
    } else {
        length = edge;
        if (at >= edge)
            tile = a.tiles - 1, rest = edge - (all - at);
    }
    rest = rest > START ? rest - START : 0;
    return tile * a.tile_steps + (length == inner ? rest : rest * a.tile_steps / (length - START));
}

// Call run(tile, step, n) for the share of a block of each tile: n steps of it.
template <int START, typename Run>
GF_DEVICE void gf_share_each(const gf_shares &a, unsigned block, Run run) {
    uint64_t step = gf_share<START>(a, block);
    const uint64_t end = gf_share<START>(a, block + 1);
    while (step < end) {
        const uint64_t tile = step / a.tile_steps, first = step - tile * a.tile_steps;
        const uint64_t left = a.tile_steps - first, n = end - step < left ? end - step : left;
        run(tile, first, n);
        step += n;
    }
}

// Divide `rows` rows of some units into tiles and steps, and these among at most `wave` blocks, of
// at least MIN_STEPS steps.
template <int MIN_STEPS>
static inline void gf_shares_set(gf_shares *a, uint64_t units, uint64_t tile_units, uint64_t rows,
                                 uint64_t step_rows, uint64_t wave) {
    a->tiles = gf_divide_up(units, tile_units);
    a->tile_steps = gf_divide_up(rows, step_rows);
    a->blocks = gf_blocks(a->tiles * a->tile_steps, MIN_STEPS, wave);
}

// ---- tiles of bytes -----------------------------------------------------------------------------

// The strip of a kernel of bytes.
struct gf_bytes_image {
    gf_window_source in;
    unsigned char *out; // output row 0
    size_t out_stride;
    int64_t first; // row of the image
    int64_t end;   // row of the image after the last output row
    uint32_t own;  // mask of the bytes of a word that are not alpha
};

struct gf_march : gf_shares, gf_bytes_image {
    int64_t last; // first byte of the last tile
};

static inline void gf_bytes_image_set(gf_bytes_image *a, const gf_plan *plan, const gf_strip *strip,
                                      gf_edge edge) {
    const gf_rows *out = &strip->out;
    a->in = gf_window_source_of(plan, strip, edge);
    a->out = out->data;
    a->out_stride = out->stride;
    a->first = static_cast<int64_t>(out->y0);
    a->end = static_cast<int64_t>(out->y0 + out->rows);
    const bool alpha = gf_has_alpha(&plan->in);
    a->own = !alpha ? ~0u : a->in.channels == 2 ? 0x00ff00ffu : 0x00ffffffu;
}

// Call run(left, first, stop) for the share of a block of each tile: rows [first, stop) of the tile
// that begins at byte `left`. The last tile ends with the row, and may overlap the one before it:
// all its rows can be stored at once.
template <typename Run>
GF_DEVICE void gf_march_each(const gf_march &a, unsigned block, int units, Run run) {
    gf_share_each<2>(a, block, [&](uint64_t tile, uint64_t step, uint64_t n) {
        const int64_t first = a.first + static_cast<int64_t>(16 * step), stop = first + 16 * n;
        const int64_t left = static_cast<int64_t>(tile) * units * 16;
        run(left < a.last ? left : a.last, first, stop < a.end ? stop : a.end);
    });
}

// Start to load the first AHEAD steps of rows [top, bottom] of a tile into the stages shared->in,
// and complete the first one. radius: pixels on each side that are needed.
template <int AHEAD, typename Args, typename Shared>
GF_DEVICE auto gf_march_start(const Args &a, Shared *shared, int64_t left, int64_t top,
                              int64_t bottom, int radius, int steps) {
    __syncthreads(); // before the tile and stages are overwritten
    auto loader = gf_window_open(a.in, left, top, bottom, radius, &shared->tile);
    __syncthreads();
    const gf_window_part part = shared->tile.part;
#pragma unroll
    for (int s = 0; s < AHEAD; s++) {
        if (s < steps)
            gf_window_load(a.in, shared->tile, part, &loader, s, shared->in[s]);
        __pipeline_commit();
    }
    __pipeline_wait_prior(AHEAD - 1);
    __syncthreads();
    if (part.all > 0)
        gf_window_finish(a.in, shared->tile, 0, shared->in[0]);
    return loader;
}

// Begin a step, whose rows are complete after this. Start to load a later one into the stage at
// `free`, and complete the next one, which has arrived at `next`.
template <int AHEAD, typename Args, typename Shared, typename Loader>
GF_DEVICE void gf_march_step(const Args &a, Shared *shared, Loader *loader, int step, int steps,
                             int free, int next) {
    const gf_window_part part = shared->tile.part;
    __pipeline_wait_prior(AHEAD - 2);
    __syncthreads();
    if (step + AHEAD < steps)
        gf_window_load(a.in, shared->tile, part, loader, step + AHEAD, shared->in[0] + free);
    __pipeline_commit();
    if (part.all > 0 && step + 1 < steps)
        gf_window_finish(a.in, shared->tile, step + 1, shared->in[0] + next);
}

// Load N blocks of 8 rows x 16 bytes, adjacent in shared memory, as matrices. at: address of block
// lane / 8 of row lane % 8. Loads of a last pair use those of the first 16 lanes.
template <int N> GF_DEVICE void gf_load_blocks(uint32_t (&b)[N], uint32_t at) {
#if __CUDA_ARCH__ >= 800
#pragma unroll
    for (int i = 0; i + 4 <= N; i += 4)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                     : "=r"(b[i]), "=r"(b[i + 1]), "=r"(b[i + 2]), "=r"(b[i + 3])
                     : "r"(at + 16 * i));
    if constexpr (N % 4 == 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\n"
                     : "=r"(b[N - 2]), "=r"(b[N - 1])
                     : "r"(at + 16 * (N - 2)));
#else
    __trap(); // never launched
#endif
}

// Return results with the alpha of the input. own: see gf_bytes_image.
GF_DEVICE uint4 gf_with_alpha(uint4 v, uint4 in, uint32_t own) {
    return make_uint4((v.x & own) | (in.x & ~own), (v.y & own) | (in.y & ~own),
                      (v.z & own) | (in.z & ~own), (v.w & own) | (in.w & ~own));
}

// Store rows [y, y + rows) x 16 GROUPS bytes of a warp from shared memory, near an edge or with
// alpha, whose loads are all started before the first one is used. begin: first byte in the row.
template <int GROUPS>
static __device__ __noinline__ void gf_march_store_edge(const gf_march &a, const uint4 *out,
                                                        int64_t y, int rows, int64_t begin) {
    constexpr int EACH = 32 / GROUPS, N = 16 / EACH;
    const int unit = threadIdx.x % GROUPS, first = threadIdx.x % 32 / GROUPS;
    const int64_t at = begin + 16 * unit, rest = a.in.row_bytes - at;
    const uint32_t own = a.own;
    const unsigned char *in = a.in.in + static_cast<size_t>(y - a.in.first) * a.in.stride + at;
    unsigned char *to = a.out + static_cast<size_t>(y - a.first) * a.out_stride + at;
    uint4 alpha[N];
#pragma unroll
    for (int n = 0; n < N; n++) {
        const int r = first + n * EACH;
        alpha[n] = own != ~0u && r < rows && rest > 0
                       ? *reinterpret_cast<const uint4 *>(in + r * a.in.stride)
                       : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
        const int r = first + n * EACH;
        const uint4 both = gf_with_alpha(out[r * (GROUPS | 1) + unit], alpha[n], own);
        if (r < rows && rest >= 16)
            *reinterpret_cast<uint4 *>(to + r * a.out_stride) = both;
        else if (r < rows)
#pragma unroll 1
            for (int k = 0; k < rest; k++)
                to[r * a.out_stride + k] =
                    static_cast<unsigned char>(gf_word(both, k / 4) >> k % 4 * 8);
    }
}

// Queue a kernel whose arguments extend gf_march, and set these. Policy: UNITS of 16 bytes per
// tile, BLOCKS per SM, at least MIN_STEPS of a block, THREADS. Returns false if the device does not
// support it; no queue: only test this.
template <typename Policy, auto KERNEL, typename Args>
static bool gf_march_launch(Args *a, const gf_plan *plan, const gf_strip *strip, gf_edge edge,
                            size_t shared, gf_queue *queue) {
    if (gf_code_version(reinterpret_cast<const void *>(KERNEL)) < 80 ||
        !gf_allow_shared<KERNEL>(shared))
        return false;
    if (!queue)
        return true;
    gf_bytes_image_set(a, plan, strip, edge);
    const int64_t tile = 16 * Policy::UNITS, row_bytes = a->in.row_bytes;
    a->last = row_bytes > tile ? (row_bytes - tile + 15) / 16 * 16 : 0;
    const uint64_t wave = static_cast<uint64_t>(gf_sm_count()) * Policy::BLOCKS;
    gf_shares_set<Policy::MIN_STEPS>(a, static_cast<uint64_t>(row_bytes), tile, strip->out.rows, 16,
                                     wave);
    gf_launch_kernel(KERNEL, dim3(a->blocks), Policy::THREADS, shared, queue, *a);
    return true;
}

#endif
