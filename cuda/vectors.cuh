// 16-byte vector access to rows, and the partition of rows among groups of threads.
//
// A row starts on a 64-byte boundary, and its padding up to the next boundary may be read. The
// vector that holds the end of a row is loaded whole; the bytes after the end are then set to zero.
#ifndef GF_VECTORS_CUH
#define GF_VECTORS_CUH

#include <cuda_pipeline.h>

#include "cuda/device.cuh"

#define GF_BLOCK 256 // threads per block of the kernels that partition rows

// Load 16 bytes. STREAMING: evict first. Kernels that only read are faster with it (1.06 of the
// copy bandwidth, 0.98 without it), those that write what they read slower (0.88, and 0.95).
template <bool STREAMING> GF_DEVICE uint4 gf_load_vector(const unsigned char *p) {
    return STREAMING ? __ldcs(reinterpret_cast<const uint4 *>(p))
                     : *reinterpret_cast<const uint4 *>(p);
}

// Keep the first n bytes, n > 0, and set the others to zero.
GF_DEVICE uint4 gf_first_bytes(uint4 v, uint32_t n) {
    uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t valid = n > 4 * i ? n - 4 * i : 0;
        w[i] = valid >= 4 ? w[i] : w[i] & ((1u << 8 * valid) - 1);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

// Iterate over `bytes` bytes of one row of each image, in 16-byte vectors. `lane` is the index of
// the thread in its group of GROUP threads; vector v belongs to lane v % GROUP. The loads of UNROLL
// vectors are issued before the first vector is used.
// Calls visit(u, v, valid, vectors) for each vector. u: 0..UNROLL - 1. valid: bytes of the vector
// before the end of the row, at most 16. Vectors after the end are zero and have valid = 0.
template <int IMAGES, int GROUP, int UNROLL, bool STREAMING = true, typename Visit>
GF_DEVICE void gf_visit_vectors(const unsigned char *const (&row)[IMAGES], uint64_t bytes,
                                uint32_t lane, Visit visit) {
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
                q[u][i] = gf_load_vector<STREAMING>(p[i] + 16 * u * GROUP);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            visit(u, v + u * GROUP, 16u, q[u]);
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            p[i] += 16 * step;
        v += step;
    }
    const uint32_t rest = static_cast<uint32_t>(bytes - 16 * step * steps);
    if (rest == 0)
        return;
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            q[u][i] = 16 * (lane + u * GROUP) < rest
                          ? gf_load_vector<STREAMING>(p[i] + 16 * u * GROUP)
                          : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const uint32_t at = 16 * (lane + u * GROUP);
        const uint32_t valid = at + 16 <= rest ? 16 : at < rest ? rest - at : 0;
        if (valid % 16 != 0)
#pragma unroll
            for (int i = 0; i < IMAGES; i++)
                q[u][i] = gf_first_bytes(q[u][i], valid);
        visit(u, v + u * GROUP, valid, q[u]);
    }
}

GF_DEVICE uint32_t gf_shared_address(const void *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Start to copy 16 bytes into shared memory if active, with a predicate; the compiler would
// generate a branch for each condition. Before sm_80 the copy is synchronous.
GF_DEVICE void gf_copy_async(uint32_t to, const unsigned char *from, bool active) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "{\n"
        ".reg .pred active;\n"
        "setp.ne.s32 active, %2, 0;\n"
        "@active cp.async.cg.shared.global [%0], [%1], 16;\n"
        "}\n" ::"r"(to),
        "l"(from), "r"(static_cast<int>(active))
        : "memory");
#else
    if (active)
        *static_cast<uint4 *>(__cvta_shared_to_generic(to)) =
            *reinterpret_cast<const uint4 *>(from);
#endif
}

GF_DEVICE void gf_copy_async(uint4 *to, const unsigned char *from, bool active) {
    gf_copy_async(gf_shared_address(to), from, active);
}

// Rows of a strip. The arguments of kernels of rows extend it.
struct gf_strip_rows {
    const unsigned char *in; // first row
    unsigned char *out;
    size_t in_stride, out_stride;
};

static inline void gf_set_strip_rows(gf_strip_rows *a, const gf_strip *strip) {
    *a = {gf_row(&strip->in[0], strip->out.y0), strip->out.data, strip->in[0].stride,
          strip->out.stride};
}

// Partition of rows: one group of threads per row, or one block per piece of a row.
struct gf_partition {
    uint32_t group;
    uint32_t pieces;      // pieces per row; more than 1 only if group is GF_BLOCK
    uint64_t piece_bytes; // except the last: whole vectors, pixels, iterations
    uint64_t units;       // pieces in all rows
};

// Maximum bytes per piece: 4096 vectors per thread add 16 u8 products each to a 32-bit sum.
#define GF_MAX_PIECE (UINT64_C(256) * 4096 * 16 / 12288 * 12288)

// Partition rows. A narrow row gets a small group, because a block would leave threads idle; a wide
// row gets a block. Rows are split into pieces if one block per row would leave SMs idle.
static inline gf_partition gf_partition_rows(uint64_t rows, uint64_t row_bytes, uint32_t images) {
    const uint64_t iteration = GF_BLOCK * 16 * 3; // also whole pixels of 3 channels
    const uint64_t sm_count = gf_sm_count();
    gf_partition partition = {GF_BLOCK, 1, row_bytes, rows};
    if (row_bytes <= 384)
        partition.group = 4;
    else if (row_bytes <= (images == 1 ? 8192 : 24576) &&
             (row_bytes <= 2048 || rows >= 16 * sm_count))
        partition.group = 16;
    if (partition.group != GF_BLOCK)
        return partition;
    uint64_t pieces = rows < 8 * sm_count ? 16 * sm_count / rows : 1;
    const uint64_t piece = (row_bytes / pieces + iteration) / iteration * iteration;
    partition.piece_bytes = piece < GF_MAX_PIECE ? piece : GF_MAX_PIECE;
    partition.pieces = static_cast<uint32_t>(gf_divide_up(row_bytes, partition.piece_bytes));
    partition.units = rows * partition.pieces;
    return partition;
}

// Divide rows of a length into pieces, for groups of threads.
static inline gf_partition gf_partition_pieces(uint64_t rows, uint64_t length, uint64_t piece,
                                               uint32_t group) {
    const uint64_t pieces = gf_divide_up(length, piece);
    return {group, static_cast<uint32_t>(pieces), piece, rows * pieces};
}

static inline unsigned gf_partition_grid(const gf_partition &partition) {
    return gf_blocks(partition.units, GF_BLOCK / partition.group);
}

// Call run with the group size as a compile-time constant.
template <typename F> static inline void gf_for_group(uint32_t group, F run) {
    if (group == 4)
        run(std::integral_constant<int, 4>{});
    else if (group == 16)
        run(std::integral_constant<int, 16>{});
    else
        run(std::integral_constant<int, GF_BLOCK>{});
}

// Unit of work of one group. bytes: 0 if there is none.
struct gf_unit {
    uint64_t y, begin, bytes;
};

// Locate a unit. SPLIT: rows may have several pieces.
template <bool SPLIT>
GF_DEVICE gf_unit gf_unit_at(const gf_partition &partition, uint64_t row_bytes, uint64_t unit) {
    if (unit >= partition.units)
        return {0, 0, 0};
    if (!SPLIT || partition.pieces == 1)
        return {unit, 0, row_bytes};
    const uint64_t y = unit / partition.pieces,
                   begin = unit % partition.pieces * partition.piece_bytes;
    const uint64_t rest = row_bytes - begin;
    return {y, begin, rest < partition.piece_bytes ? rest : partition.piece_bytes};
}

// Arguments of kernels that write a record per row. INPUTS: of the filter. LISTS: as in gf_images.
template <int INPUTS, int LISTS = INPUTS> struct gf_row_args {
    const unsigned char *in[INPUTS]; // first row of each input
    size_t in_stride;
    unsigned char *records; // record of the first row
    size_t record_stride;
    uint64_t width, rows, row_bytes; // rows: of all images in order
    gf_partition partition;
    gf_images<LISTS> images;
};

template <int INPUTS, int LISTS>
static inline void gf_set_row_args(gf_row_args<INPUTS, LISTS> *a, const gf_plan *plan,
                                   const gf_strip *strip) {
    for (uint32_t i = 0; i < INPUTS; i++)
        a->in[i] = gf_row(&strip->in[i], strip->out.y0);
    a->in_stride = strip->in[0].stride;
    const gf_rows records = gf_strip_records(plan, strip);
    a->images = gf_images_of<LISTS>(plan, strip);
    a->records = records.data;
    a->record_stride = records.stride;
    a->width = plan->in.width;
    a->rows = records.rows * a->images.count;
    a->row_bytes = gf_row_bytes(&plan->in);
    a->partition = gf_partition_rows(a->rows, a->row_bytes, INPUTS);
}

// Return the record of row y.
template <typename Record, typename Args>
GF_DEVICE Record *gf_record_at(const Args &a, uint64_t y) {
    return reinterpret_cast<Record *>(a.records + y * a.record_stride);
}

// Find the byte at offset `at` of row y of each input.
template <int INPUTS, int LISTS>
GF_DEVICE void gf_row_inputs(const gf_row_args<INPUTS, LISTS> &a, uint64_t y, uint64_t at,
                             const unsigned char *(&row)[INPUTS]) {
    const gf_image_row image_row = gf_find_row(a.images, y);
#pragma unroll
    for (int i = 0; i < INPUTS; i++)
        row[i] = a.in[i] + a.images.at[i][image_row.image] + image_row.y * a.in_stride + at;
}

#endif
