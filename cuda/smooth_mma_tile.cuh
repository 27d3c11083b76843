// How rows pass through shared memory on their way to tensor cores and back, tile by tile.
#ifndef GF_SMOOTH_MMA_TILE_CUH
#define GF_SMOOTH_MMA_TILE_CUH

#include "smooth_mma.cuh"
#include "smooth_staged.cuh"

#define GF_MMA_GROUPS 3 // of 8 lines, that a tile may have
#define GF_MMA_TILE (GF_MMA_GROUPS * 8 * GF_MMA_LINE)

// Around a tile lie as many units of 16 bytes as windows reach. It lies as in memory relative to
// sectors of 32 bytes: an asynchronous copy reads those twice that it has to take apart.
template <typename Work> struct __align__(128) gf_mma_shared {
    static const int BEFORE = GF_MMA_LINE / 16;
    static const int AROUND = (Work::SIDE + 15) / 16;
    uint4 in[BEFORE + GF_MMA_TILE / 16 + AROUND];
    uint4 out[GF_MMA_TILE / 16];
    int waiting[64]; // samples, by their place in the tile; none if negative
};

// A tile, in bytes.
struct gf_mma_tile {
    const unsigned char *in;
    unsigned char *out;
    int begin; // in its row
    int rows;  // that it has whole; 0: it is a part of a row
    int bytes; // of the input, that are done here
};

static __device__ __forceinline__ gf_mma_tile gf_mma_find(const gf_walk &a,
                                                          const gf_mma_args &args) {
    gf_mma_tile tile;
    uint32_t y = blockIdx.x;
    if (a.rows_a_tile > 0) {
        y *= a.rows_a_tile;
        tile.begin = 0;
        tile.rows = static_cast<int>(a.rows - y < a.rows_a_tile ? a.rows - y : a.rows_a_tile);
        tile.bytes = tile.rows * static_cast<int>(a.in_stride);
    } else {
        if (a.tiles_a_row > 1)
            y = __umulhi(y, args.row_magic) >> args.row_shift;
        const uint32_t before = blockIdx.x - y * a.tiles_a_row;
        tile.begin = before * args.tile_bytes;
        tile.rows = 0;
        tile.bytes = static_cast<int>(before + 1 == a.tiles_a_row ? args.last : args.tile_bytes);
    }
    tile.in = a.in + y * a.in_stride + tile.begin;
    tile.out = a.out + y * a.out_stride + tile.begin;
    return tile;
}

// Begins to copy a tile and what lies around it. What is not in its rows' memory is left out:
// nothing that comes of it stays.
template <typename Work>
static __device__ __forceinline__ void gf_mma_fetch(const gf_walk &a, const gf_mma_tile &tile,
                                                    gf_mma_shared<Work> *shared) {
    typedef gf_mma_shared<Work> Shared;
    const int lane = threadIdx.x;
    const int memory = tile.rows > 0 ? tile.bytes : static_cast<int>(a.in_stride) - tile.begin;
    uint4 *to = shared->in + Shared::BEFORE;
#pragma unroll
    for (int k = 0; k < GF_MMA_TILE / 512; k++)
        gf_copy_async(to + lane + 32 * k, tile.in + (lane + 32 * k) * 16,
                      (lane + 32 * k) * 16 < tile.bytes);
    const int beside =
        lane < Shared::AROUND ? lane - Shared::AROUND : tile.bytes / 16 + lane - Shared::AROUND;
    gf_copy_async(to + beside, tile.in + beside * 16,
                  lane < 2 * Shared::AROUND && beside * 16 + tile.begin >= 0 &&
                      beside * 16 < memory);
}

// Writes a tile: whole units, and what is less at the ends of whole rows.
template <typename Work>
static __device__ __forceinline__ void gf_mma_write(const gf_walk &a, const gf_mma_args &args,
                                                    const gf_mma_tile &tile,
                                                    const gf_mma_shared<Work> *shared) {
    const int lane = threadIdx.x, units = tile.bytes / 16;
    if (tile.rows == 0) {
#pragma unroll
        for (int k = 0; k < GF_MMA_TILE / 512; k++)
            if (lane + 32 * k < units)
                *reinterpret_cast<uint4 *>(tile.out + (lane + 32 * k) * 16) =
                    shared->out[lane + 32 * k];
        return;
    }
#pragma unroll 1
    for (int unit = lane; unit < units; unit += 32) {
        const uint32_t r = __umulhi(unit * 16, a.magic) >> a.shift;
        const int pos = unit * 16 - static_cast<int>(r * static_cast<uint32_t>(a.in_stride));
        const int there = static_cast<int>(args.row_bytes) - pos;
        unsigned char *to = tile.out + r * a.out_stride + pos;
        const unsigned char *from = reinterpret_cast<const unsigned char *>(shared->out + unit);
        if (there >= 16)
            *reinterpret_cast<uint4 *>(to) = shared->out[unit];
        else
            for (int i = 0; i < there; i++)
                to[i] = from[i];
    }
}

#endif
