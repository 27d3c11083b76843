// Rows as vectors of 16 bytes, and the groups of threads that walk along them.
//
// A row begins at a 64-byte boundary, and its padding up to the next one may be read: the vector
// that holds a row's end is read whole, and the bytes after the end become zero.
#ifndef GF_VECTORS_CUH
#define GF_VECTORS_CUH

#include "device.cuh"

#define GF_BLOCK 256 // threads of a block whose threads are shared out among rows

// ONCE: what is read need not stay in the cache. Kernels that only read are faster with it (1.06
// against 0.98 of the copy), kernels that write as much as they read are slower (0.88 against
// 0.95).
template <bool ONCE> GF_DEVICE uint4 gf_load_vector(const unsigned char *p) {
    return ONCE ? __ldcs(reinterpret_cast<const uint4 *>(p)) : *reinterpret_cast<const uint4 *>(p);
}

// The first n bytes (of at least 1); the rest is zero.
GF_DEVICE uint4 gf_first_bytes(uint4 v, uint32_t n) {
    uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t have = n > 4 * i ? n - 4 * i : 0;
        w[i] = have >= 4 ? w[i] : w[i] & ((1u << 8 * have) - 1);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

// Walks along `bytes` bytes of a row of each image. `lane` is one of GROUP threads that walk side
// by side: vector v goes to lane v % GROUP. Calls take(u, v, have, vectors) for every vector; u
// counts to UNROLL, and the loads of UNROLL vectors are issued before the first is used. have:
// bytes of the vector before the row's end, at most 16; 0 behind it, where vectors are zero.
template <int IMAGES, int GROUP, int UNROLL, bool ONCE = true, typename Take>
GF_DEVICE void gf_walk(const unsigned char *const (&row)[IMAGES], uint64_t bytes, uint32_t lane,
                       Take take) {
    const uint32_t step = UNROLL * GROUP; // vectors
    const uint64_t steps = bytes / 16 / step;
    const unsigned char *p[IMAGES];
    uint4 q[UNROLL][IMAGES];
    uint64_t v = lane;
#pragma unroll
    for (int i = 0; i < IMAGES; i++)
        p[i] = row[i] + 16 * lane;
#pragma unroll 1
    for (uint64_t n = 0; n < steps; n++) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < IMAGES; i++)
                q[u][i] = gf_load_vector<ONCE>(p[i] + 16 * u * GROUP);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            take(u, v + u * GROUP, 16u, q[u]);
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            p[i] += 16 * step;
        v += step;
    }
    const uint32_t rest = static_cast<uint32_t>(bytes - 16 * step * steps); // bytes
    if (rest == 0)
        return;
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            q[u][i] = 16 * (lane + u * GROUP) < rest ? gf_load_vector<ONCE>(p[i] + 16 * u * GROUP)
                                                     : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const uint32_t at = 16 * (lane + u * GROUP);
        const uint32_t have = at + 16 <= rest ? 16 : at < rest ? rest - at : 0;
        if (have % 16 != 0)
#pragma unroll
            for (int i = 0; i < IMAGES; i++)
                q[u][i] = gf_first_bytes(q[u][i], have);
        take(u, v + u * GROUP, have, q[u]);
    }
}

// ---- which threads walk along which row ---------------------------------------------------------

// How the threads of a grid are shared out: a group to a row, or to a piece of one. Rows have
// several pieces only if the group is a whole block.
struct gf_shares {
    uint32_t group;
    uint32_t pieces;      // of a row
    uint64_t piece_bytes; // of each but the last: whole vectors, pixels, and iterations of a block
    uint64_t units;       // pieces of all rows
};

// Bytes of a piece at most: 4096 vectors a thread, of which each may add 16 products of u8 to a sum
// of 32 bits.
#define GF_MAX_PIECE (UINT64_C(256) * 4096 * 16 / 12288 * 12288)

// A narrow row gets few threads, so that each has work; a wide one a block. Rows are cut where one
// block a row would leave SMs idle.
static inline gf_shares gf_share_rows(uint64_t rows, uint64_t row_bytes, uint32_t images) {
    const uint64_t iteration = GF_BLOCK * 16 * 3; // also whole pixels of three channels
    const uint64_t processors = gf_processors();
    gf_shares shares = {GF_BLOCK, 1, row_bytes, rows};
    if (row_bytes <= 384)
        shares.group = 4;
    else if (row_bytes <= (images == 1 ? 8192 : 24576) &&
             (row_bytes <= 2048 || rows >= 16 * processors))
        shares.group = 16;
    if (shares.group != GF_BLOCK)
        return shares;
    uint64_t pieces = rows < 8 * processors ? 16 * processors / rows : 1;
    const uint64_t piece = (row_bytes / pieces + iteration) / iteration * iteration;
    shares.piece_bytes = piece < GF_MAX_PIECE ? piece : GF_MAX_PIECE;
    shares.pieces = static_cast<uint32_t>(gf_divide_up(row_bytes, shares.piece_bytes));
    shares.units = rows * shares.pieces;
    return shares;
}

static inline unsigned gf_share_grid(const gf_shares &shares) {
    return gf_blocks(shares.units, GF_BLOCK / shares.group);
}

// Calls run with the group as a type.
template <typename F> static inline void gf_for_group(uint32_t group, F run) {
    if (group == 4)
        run(std::integral_constant<int, 4>{});
    else if (group == 16)
        run(std::integral_constant<int, 16>{});
    else
        run(std::integral_constant<int, GF_BLOCK>{});
}

// A group's unit of work. bytes is 0 where there is none.
struct gf_unit {
    uint64_t y, begin, bytes;
};

// CUT: rows may have several pieces.
template <bool CUT>
GF_DEVICE gf_unit gf_unit_at(const gf_shares &shares, uint64_t row_bytes, uint64_t unit) {
    if (unit >= shares.units)
        return {0, 0, 0};
    if (!CUT || shares.pieces == 1)
        return {unit, 0, row_bytes};
    const uint64_t y = unit / shares.pieces, begin = unit % shares.pieces * shares.piece_bytes;
    const uint64_t rest = row_bytes - begin;
    return {y, begin, rest < shares.piece_bytes ? rest : shares.piece_bytes};
}

#endif
