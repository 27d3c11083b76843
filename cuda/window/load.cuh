// Rows of an image in shared memory, with the samples outside of it (filters/window/edge.h).
#ifndef GF_LOAD_CUH
#define GF_LOAD_CUH

#include "cuda/vectors.cuh"

#include "window/edge.h"

// Input of a strip. Rows start on 16-byte boundaries, and their last 16 bytes may be read whole.
struct gf_window_source {
    const unsigned char *in; // first row in memory
    size_t stride;           // bytes
    int64_t first;           // number of that row
    int64_t width, height;   // pixels, of the image
    int64_t row_bytes;
    int channels;
    gf_edge edge;
};

static inline gf_window_source gf_window_source_of(const gf_plan *plan, const gf_strip *strip,
                                                   gf_edge edge) {
    const gf_rows *in = &strip->in[0];
    return {in->data,
            in->stride,
            static_cast<int64_t>(in->y0),
            static_cast<int64_t>(plan->in.width),
            static_cast<int64_t>(plan->in.height),
            static_cast<int64_t>(gf_row_bytes(&plan->in)),
            static_cast<int>(plan->in.channels),
            edge};
}

// Return row y, which may be outside the image; nullptr: all samples have the value of the edge.
GF_DEVICE const unsigned char *gf_window_row(const gf_window_source &a, int64_t y) {
    y = gf_edge_index(a.edge.mode, y, a.height);
    return y < 0 ? nullptr : a.in + static_cast<size_t>(y - a.first) * a.stride;
}

// Return sample i of a row. i counts the samples of the row and may be outside of it.
template <typename T>
static __device__ T gf_window_sample(const gf_window_source &a, const unsigned char *row,
                                     int64_t i) {
    const int64_t shifted = i + static_cast<int64_t>(a.channels) * 4096; // not negative
    const int c = static_cast<int>(shifted % a.channels);
    const int64_t x = gf_edge_index(a.edge.mode, (i - c) / a.channels, a.width);
    if (!row || x < 0)
        return static_cast<T>(a.edge.value);
    return reinterpret_cast<const T *>(row)[x * a.channels + c];
}

// A tile: MAIN units of 16 bytes of consecutive rows and HALO units on each side of them. Rows are
// STRIDE units apart in shared memory, and are loaded ROWS at a time by all threads of a block.
template <typename Sample, int TILE_MAIN, int TILE_HALO, int TILE_STRIDE, int TILE_ROWS, int BLOCK>
struct gf_window_shape {
    typedef Sample T;
    static constexpr int MAIN = TILE_MAIN, HALO = TILE_HALO, UNITS = MAIN + 2 * HALO;
    static constexpr int STRIDE = TILE_STRIDE, ROWS = TILE_ROWS, THREADS = BLOCK;
    static constexpr int COUNT = 16 / sizeof(T), SAMPLES = UNITS * COUNT;
    static constexpr int WARPS = THREADS / 32;
    // Units of a row that a lane copies. The first one of a row may be 7 before the tile.
    static constexpr int COPIES = (UNITS + 7 + 31) / 32;
    static constexpr int EACH = ROWS / WARPS; // rows per warp
    // Strides are whole units: the rows of a warp begin at one position in a cache line, or at two
    // in turn.
    static constexpr int PLACES = WARPS % 8 == 0 ? 1 : 2;
    static_assert(ROWS % WARPS == 0 && WARPS % 4 == 0 && THREADS % ROWS == 0,
                  "equal shares of a tile");
};

// Values of a tile that each step reads before its barrier, which hides the latency of the loads.
struct gf_window_part {
    int plain, plains; // the first block of ROWS rows inside the image, and the number of those
    int all;           // samples of a row that are outside of it
};

// The description of a tile in shared memory: registers are scarce.
template <typename Shape> struct gf_window_tile {
    static constexpr int OUTSIDE = INT32_MIN;
    gf_window_part part;
    int64_t left, top, bottom; // first sample of the tile in a row; first and last row to load
    int first, before;         // the first sample before the row that is needed, and their number
    int after;                 // the first sample after the row
    // For each needed sample that is outside the row, first those before it: the index in the tile
    // of the one whose value it has; OUTSIDE: the constant.
    int at[Shape::SAMPLES];
};

// Position of a lane in the copies of its warp. A warp copies whole rows from the cache line in
// which the tile begins, four whole lines at a time. A part of a line costs the same as a line:
// copies that begin inside of one reach 0.83 instead of 0.91 of the throughput of a copy (H200).
template <typename Shape> struct gf_window_loader {
    const unsigned char *from; // unit 0 of the tile, in the next row of the warp
    // Offsets in the tile of the lane's first copy of the next rows, in bytes; a bit for each of
    // their copies that is in the image.
    int at[Shape::PLACES];
    uint32_t inside;
};

// Prepare to load rows [top, bottom]. left: number of the first sample of the tile, after the halo.
// radius: pixels on each side of the tile that are needed. A barrier must follow.
template <typename Shape>
GF_DEVICE gf_window_loader<Shape> gf_window_open(const gf_window_source &a, int64_t left,
                                                 int64_t top, int64_t bottom, int radius,
                                                 gf_window_tile<Shape> *tile) {
    constexpr int SAMPLES = Shape::SAMPLES, COUNT = Shape::COUNT, ROWS = Shape::ROWS;
    const int64_t samples = a.width * a.channels;
    const int reach = radius * a.channels, thread = threadIdx.x;
    gf_window_loader<Shape> w;
    left -= Shape::HALO * COUNT;
    w.from = a.in + (top - a.first + thread / 32) * static_cast<int64_t>(a.stride) +
             left * static_cast<int64_t>(sizeof(typename Shape::T));
    const int start = left < 0 ? static_cast<int>(-left) : 0;
    const int after = samples - left < SAMPLES ? static_cast<int>(samples - left) : SAMPLES;
    const int before = start < reach ? start : reach;
    const int all = before + (SAMPLES - after < reach ? SAMPLES - after : reach);
    const int begin = start / COUNT * 16, size = (after + COUNT - 1) / COUNT * 16 - begin;
    w.inside = 0;
#pragma unroll
    for (int p = 0; p < Shape::PLACES; p++) {
        const unsigned char *row = w.from + p * Shape::WARPS * static_cast<int64_t>(a.stride);
        w.at[p] = thread % 32 * 16 - static_cast<int>(reinterpret_cast<uintptr_t>(row) % 128);
#pragma unroll
        for (int i = 0; i < Shape::COPIES; i++)
            if (static_cast<unsigned>(w.at[p] + 512 * i - begin) < static_cast<unsigned>(size))
                w.inside |= 1u << (p * Shape::COPIES + i);
    }
    if (thread == 0) {
        gf_window_part *part = &tile->part;
        const int64_t last = bottom < a.height ? bottom : a.height - 1;
        part->plain = top < 0 ? static_cast<int>((-top + ROWS - 1) / ROWS) : 0;
        part->plains = static_cast<int>((last + 1 - top) / ROWS) - part->plain;
        part->plains = part->plains < 0 ? 0 : part->plains;
        part->all = all;
        tile->left = left, tile->top = top, tile->bottom = bottom;
        tile->first = start - before, tile->before = before, tile->after = after;
    }
#pragma unroll 1
    for (int n = thread; n < all; n += Shape::THREADS) {
        const int64_t i = left + (n < before ? start - before + n : after + n - before);
        const int64_t c = (i + 4096 * a.channels) % a.channels;
        const int64_t x = gf_edge_index(a.edge.mode, (i - c) / a.channels, a.width);
        tile->at[n] = x < 0 ? tile->OUTSIDE : static_cast<int>(x * a.channels + c - left);
    }
    return w;
}

// Return row r of block `block` of ROWS rows; nullptr: all samples are outside the image.
template <typename Shape>
GF_DEVICE const unsigned char *gf_window_tile_row(const gf_window_source &a,
                                                  const gf_window_tile<Shape> &tile, int block,
                                                  int r) {
    const int64_t y = tile.top + static_cast<int64_t>(block) * Shape::ROWS + r;
    return gf_window_row(a, y < tile.bottom ? y : tile.bottom);
}

// Load a block of rows that are not all inside the image. Not inlined: the registers of rare code
// would be taken from the loops around it.
template <typename Shape>
static __device__ __noinline__ void gf_window_load_edge(const gf_window_source &a,
                                                        const gf_window_tile<Shape> &tile,
                                                        int block, uint4 *stage) {
    typedef typename Shape::T T;
#pragma unroll 1
    for (int u = threadIdx.x; u < Shape::ROWS * Shape::UNITS; u += Shape::THREADS) {
        const int r = u / Shape::UNITS, unit = u - r * Shape::UNITS;
        const int64_t at = tile.left + unit * Shape::COUNT;
        const unsigned char *row = gf_window_tile_row(a, tile, block, r);
        uint4 *to = stage + r * Shape::STRIDE + unit;
        if (row)
            gf_copy_async(to, row + at * static_cast<int64_t>(sizeof(T)),
                          at >= 0 && at < a.width * a.channels);
        else
            for (int i = 0; i < Shape::COUNT; i++)
                reinterpret_cast<T *>(to)[i] = static_cast<T>(a.edge.value);
    }
}

// Start to copy block `block` of ROWS rows into a stage, after those before it. Rows after the last
// one are copies of it. The copies end with a group of the pipeline.
template <typename Shape>
GF_DEVICE void gf_window_load(const gf_window_source &a, const gf_window_tile<Shape> &tile,
                              const gf_window_part &part, gf_window_loader<Shape> *w, int block,
                              uint4 *stage) {
    constexpr int WARPS = Shape::WARPS, STRIDE = Shape::STRIDE, PLACES = Shape::PLACES;
    if (static_cast<unsigned>(block - part.plain) < static_cast<unsigned>(part.plains)) {
        unsigned char *to = reinterpret_cast<unsigned char *>(stage + threadIdx.x / 32 * STRIDE);
        const unsigned char *row = w->from;
        uint32_t inside = w->inside;
        asm volatile("" : "+r"(inside)); // else each bit would take a register
#pragma unroll
        for (int r = 0; r < Shape::EACH; r++) {
            const int p = r % PLACES, at = w->at[p];
#pragma unroll
            for (int i = 0; i < Shape::COPIES; i++)
                gf_copy_async(
                    reinterpret_cast<uint4 *>(to + (r * WARPS * STRIDE + 32 * i) * 16 + at),
                    row + at + 512 * i, inside >> (p * Shape::COPIES + i) & 1);
            row += WARPS * a.stride;
        }
    } else {
        gf_window_load_edge(a, tile, block, stage);
    }
    w->from += Shape::ROWS * a.stride;
    if constexpr (Shape::EACH % PLACES != 0) {
        const int at = w->at[0];
        w->at[0] = w->at[1], w->at[1] = at;
        w->inside = (w->inside << Shape::COPIES | w->inside >> Shape::COPIES) &
                    ((1u << 2 * Shape::COPIES) - 1);
    }
}

// Fill in the samples outside the image of block `block`, which has arrived, of a tile with such
// samples. A barrier must precede and follow it. All threads must call it.
template <typename Shape>
static __device__ __noinline__ void gf_window_finish(const gf_window_source &a,
                                                     const gf_window_tile<Shape> &tile, int block,
                                                     uint4 *stage) {
    typedef typename Shape::T T;
    const int r = threadIdx.x % Shape::ROWS;
    T *to = reinterpret_cast<T *>(stage + r * Shape::STRIDE);
#pragma unroll 1
    for (int n = threadIdx.x / Shape::ROWS; n < tile.part.all; n += Shape::THREADS / Shape::ROWS) {
        const int i = n < tile.before ? tile.first + n : tile.after + n - tile.before;
        const int at = tile.at[n];
        if (at == tile.OUTSIDE)
            to[i] = static_cast<T>(a.edge.value);
        else if (at >= 0 && at < Shape::SAMPLES)
            to[i] = to[at];
        else // far from the tile: the window is larger than the image
            to[i] =
                reinterpret_cast<const T *>(gf_window_tile_row(a, tile, block, r))[tile.left + at];
    }
}

#endif
