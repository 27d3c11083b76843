// Weighted sums of bytes along both axes on tensor cores in short blocks: window_tile, for windows
// of up to 9 rows and 16 bytes on each side. The products are those of window_bytes. A block is one
// warp and computes one tile; it needs no barriers, and other blocks load while it computes.
#ifndef GF_TILE_CUH
#define GF_TILE_CUH

#include "cuda/window/bytes.cuh"

struct gf_tile_policy {
    static constexpr int BLOCKS = 14; // resident per SM
    static constexpr int MAX_RADIUS = 4, LOADED_ROWS = 48, ROWS = LOADED_ROWS - 2 * MAX_RADIUS;
    static constexpr int GROUPS = 8, BYTES = 16 * GROUPS; // of a row of the tile
    static constexpr int MAX_TIES = 112;                  // of a tile; more: all are recomputed
};

// The taps of a lane 4g + t, each word with 4. Along y: of rows g and g + 8 of 16 sums, then of row
// g and the second 16 rows of samples. From word 4 on, along x: of 3 x 16 columns, 2 words each.
struct alignas(16) gf_tile_lane {
    uint32_t word[12];
};

struct gf_tile_args : gf_bytes_image {
    int64_t last; // row of the image after the last one in memory
    int radius[2];
    unsigned tile_rows, tiles_per_row;
    gf_divider inner; // divides by the tiles between those at the edges
    // The compiler would copy registers that it knows to be equal for each product.
    alignas(16) uint32_t start[4];
    uint32_t zero[2];
    gf_tile_lane taps[2][32]; // low bytes, high bytes
};

// The tile in units of 16 bytes. SIDES: with one on each side.
template <bool SIDES> struct gf_tile_shared {
    typedef gf_tile_policy Policy;
    static constexpr int UNITS = Policy::GROUPS + 2 * SIDES;
    // Odd strides: the 8 rows of a matrix are in different banks.
    uint4 in[Policy::LOADED_ROWS][UNITS | 1];
    uint4 out[Policy::ROWS][Policy::GROUPS | 1];
    uint32_t found[Policy::GROUPS][32]; // near-ties of a lane; see gf_tile_list
    uint16_t list[Policy::MAX_TIES];    // row * BYTES + byte

    __device__ __forceinline__ const uint8_t *sample(int row, int byte) const {
        return reinterpret_cast<const uint8_t *>(in[row] + SIDES) + byte;
    }
};

struct gf_tile {
    int64_t y, left; // first row of the image, first byte of a row
    int rows;        // of the output, at most ROWS
};

// Find the tile of a block. Those at the edges take longest, so they come first; the others follow
// in the order of the image. SIDES: whether those at the left and the right are at an edge.
template <bool SIDES> GF_DEVICE gf_tile gf_tile_find(const gf_tile_args &a) {
    typedef gf_tile_policy P;
    const unsigned w = a.tiles_per_row, h = a.tile_rows, sides = !SIDES ? 0 : w > 1 ? 2 : 1;
    const unsigned ends = 2 * w, edges = ends + sides * (h - 2); // not used if h is 1
    unsigned n = blockIdx.x, x, y;
    if (n < ends) {
        y = n < w ? h - 1 : 0;
        x = n < w ? n : n - w;
    } else if (n < edges) {
        n -= ends;
        y = 1 + (sides == 2 ? n / 2 : n);
        x = sides == 2 ? n % 2 * (w - 1) : 0;
    } else {
        n -= edges;
        y = w > sides + 1 ? gf_divide(n, a.inner) : n;
        x = SIDES + n - y * (w - sides);
        y++;
    }
    const int64_t top = a.first + static_cast<int64_t>(y) * P::ROWS;
    return {top, static_cast<int64_t>(x) * P::BYTES,
            static_cast<int>(min(a.end - top, static_cast<int64_t>(P::ROWS)))};
}

// Start to load a tile near the top or the bottom: rows outside the image are those whose values
// they have. Not inlined: rare.
template <bool SIDES>
static __device__ __noinline__ void gf_tile_load_edge(const gf_tile_args &a, gf_tile tile,
                                                      gf_tile_shared<SIDES> *shared) {
    typedef gf_tile_policy P;
    constexpr int UNITS = gf_tile_shared<SIDES>::UNITS;
    const int64_t bottom = tile.y + tile.rows - 1 + a.radius[1];
    const int lane = threadIdx.x, at = 16 * (lane - SIDES);
    const uint32_t fill = 0x01010101u * static_cast<uint8_t>(a.in.edge.value);
    const bool inside = lane < UNITS && tile.left + at >= 0 && tile.left + at < a.in.row_bytes;
    for (int r = 0; r < P::LOADED_ROWS; r += 32) {
        // Each lane finds a row.
        const unsigned char *own =
            gf_window_row(a.in, min(tile.y - a.radius[1] + r + lane, bottom));
#pragma unroll 4
        for (int k = 0; k < min(32, P::LOADED_ROWS - r); k++) {
            const unsigned char *row = reinterpret_cast<const unsigned char *>(
                __shfl_sync(~0u, reinterpret_cast<unsigned long long>(own), k));
            uint4 *to = &shared->in[r + k][lane < UNITS ? lane : 0];
            gf_copy_async(to, row + tile.left + at, inside && row);
            if (!row && lane < UNITS)
                *to = make_uint4(fill, fill, fill, fill);
        }
    }
}

// Fill in the samples before and after the rows of a tile, which has arrived. Not inlined: rare.
static __device__ __noinline__ void gf_tile_finish_edge(const gf_tile_args &a, gf_tile tile,
                                                        gf_tile_shared<true> *shared) {
    typedef gf_tile_policy P;
    constexpr int SIZE = 16 * gf_tile_shared<true>::UNITS;
    const int c = a.in.channels, reach = a.radius[0] * c, lane = threadIdx.x;
    // A lane finds a sample, of 16 before a row or 16 after it, and its place in the tile.
    const int k = lane - 16, q = (k + 16 * c) / c - 16; // rounded down
    const int64_t end = lane < 16 ? 0 : a.in.width, left = tile.left - 16;
    const int64_t x = gf_edge_index(a.in.edge.mode, end + q, a.in.width);
    const int64_t place = end * c + k - left, from = x < 0 ? -1 : x * c + k - q * c - left;
    const int to = static_cast<int>(place >= 0 && place < SIZE ? place : -1);
    const int at = static_cast<int>(from >= 0 && from < SIZE ? from : -1);
    uint32_t needed = __ballot_sync(~0u, to >= 0 && (lane < 16 ? -k <= reach : k < reach));
#pragma unroll 1
    for (; needed != 0; needed &= needed - 1) {
        const int which = __ffs(static_cast<int>(needed)) - 1;
        const int put = __shfl_sync(~0u, to, which), get = __shfl_sync(~0u, at, which);
        for (int r = lane; r < P::LOADED_ROWS; r += 32) {
            uint8_t *row = reinterpret_cast<uint8_t *>(shared->in[r]);
            row[put] = get >= 0 ? row[get] : static_cast<uint8_t>(a.in.edge.value);
        }
    }
}

// Start to load a tile. Returns whether a part of it is before or after the rows.
template <bool SIDES>
GF_DEVICE bool gf_tile_load(const gf_tile_args &a, gf_tile tile, gf_tile_shared<SIDES> *shared) {
    typedef gf_tile_policy P;
    constexpr int EACH = 32 / P::GROUPS; // rows per copy of the warp
    const int lane = threadIdx.x, first = lane / P::GROUPS, u = lane % P::GROUPS;
    const int64_t top = tile.y - a.radius[1], stride = static_cast<int64_t>(a.in.stride);
    const int64_t rest = a.in.row_bytes - tile.left, row = top - a.in.first;
    const bool left = tile.left > 0, right = rest > P::BYTES, inside = 16 * u < rest;
    if (top < a.in.first || top + P::LOADED_ROWS > a.last) {
        gf_tile_load_edge(a, tile, shared);
    } else {
        const unsigned char *corner = a.in.in + tile.left;
        const unsigned char *from = corner + (row + first) * stride + 16 * u;
        const unsigned char *side = corner + (row + lane) * stride;
#pragma unroll
        for (int r = 0; r < P::LOADED_ROWS; r += EACH, from += EACH * stride)
            gf_copy_async(&shared->in[first + r][SIDES + u], from, inside);
#pragma unroll
        for (int r = 0; r < P::LOADED_ROWS; r += 32, side += 32 * stride)
            if (SIDES && r + lane < P::LOADED_ROWS) {
                gf_copy_async(&shared->in[r + lane][0], side - 16, left);
                gf_copy_async(&shared->in[r + lane][1 + P::GROUPS], side + P::BYTES, right);
            }
    }
    return SIDES && (!left || rest < P::BYTES + 16);
}

// The taps of a lane, in the registers of each product: along x of an even group of columns, and of
// an odd one, which begins in the second half of a pair; along y of 16 and of 8 rows.
struct gf_tile_taps {
    uint32_t even[3][2], odd[3][2], both[2][2], last[2];

    // lane: in the arguments of the kernel. Lanes that load different ones from constant memory
    // would wait for each other.
    template <bool ALONG_X>
    __device__ __forceinline__ void load(const gf_tile_lane *lane, uint32_t zero) {
        asm volatile("" : "+l"(lane)); // a generic address
        const uint4 y = *reinterpret_cast<const uint4 *>(lane->word);
        both[0][0] = y.x, both[0][1] = y.y, both[1][0] = zero, both[1][1] = y.z;
        last[0] = y.x ^ zero, last[1] = y.y ^ zero;
        if (ALONG_X) {
            const uint4 p = *reinterpret_cast<const uint4 *>(lane->word + 4);
            const uint2 q = *reinterpret_cast<const uint2 *>(lane->word + 8);
            const uint32_t words[6] = {p.x, p.y, p.z, p.w, q.x, q.y};
#pragma unroll
            for (int i = 0; i < 6; i++)
                even[i / 2][i % 2] = words[i], odd[i / 2][i % 2] = words[i] ^ zero;
        }
    }
};

// List the near-ties of the warp. groups: a bit for each group of columns in which the lane has
// found some. A word of `found` has a bit in each byte for each word of results, from the last row.
// Returns their number; the list ends after MAX_TIES.
template <bool SIDES> GF_DEVICE int gf_tile_list(gf_tile_shared<SIDES> *shared, uint32_t groups) {
    typedef gf_tile_policy P;
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    uint32_t ties = 0;
    int m = 0;
#pragma unroll 1
    for (int count = 0;;) {
        if (ties == 0 && groups != 0) {
            m = __ffs(static_cast<int>(groups)) - 1;
            groups &= groups - 1;
            ties = shared->found[m][lane];
        }
        const uint32_t some = __ballot_sync(~0u, ties != 0);
        if (some == 0) {
            __syncwarp();
            return count;
        }
        const int n = count + __popc(some & ((1u << lane) - 1));
        if (ties != 0 && n < P::MAX_TIES) {
            const int bit = __ffs(static_cast<int>(ties)) - 1;
            const int row = g + P::ROWS - 8 - bit % 8 * 8, byte = 16 * m + 4 * t + bit / 8;
            shared->list[n] = static_cast<uint16_t>(row * P::BYTES + byte);
        }
        ties &= ties - 1; // 0 stays
        count += __popc(some);
    }
}

// Store a tile that extends beyond the rows or the bottom of the strip. Not inlined: rare.
template <bool SIDES>
static __device__ __noinline__ void gf_tile_store_edge(const gf_tile_args &a, gf_tile tile,
                                                       const gf_tile_shared<SIDES> &shared) {
    typedef gf_tile_policy P;
    const int64_t stride = static_cast<int64_t>(a.out_stride);
    unsigned char *corner = a.out + (tile.y - a.first) * stride + tile.left;
#pragma unroll 2
    for (int k = threadIdx.x; k < tile.rows * P::GROUPS; k += 32) {
        const int r = k / P::GROUPS, u = k % P::GROUPS;
        const int64_t rest = a.in.row_bytes - tile.left - 16 * u;
        const uint4 v =
            gf_with_alpha(shared.out[r][u], shared.in[r + a.radius[1]][SIDES + u], a.own);
        unsigned char *to = corner + r * stride + 16 * u;
        if (rest >= 16)
            *reinterpret_cast<uint4 *>(to) = v;
        else
            for (int i = 0; i < rest; i++)
                to[i] = static_cast<unsigned char>(gf_word(v, i / 4) >> i % 4 * 8);
    }
}

template <bool SIDES>
GF_DEVICE void gf_tile_store(const gf_tile_args &a, gf_tile tile,
                             const gf_tile_shared<SIDES> &shared) {
    typedef gf_tile_policy P;
    constexpr int EACH = 32 / P::GROUPS;
    if (tile.rows < P::ROWS || tile.left + P::BYTES > a.in.row_bytes)
        return gf_tile_store_edge(a, tile, shared);
    const int u = threadIdx.x % P::GROUPS, first = threadIdx.x / P::GROUPS;
    const int64_t stride = static_cast<int64_t>(a.out_stride);
    unsigned char *to = a.out + (tile.y - a.first + first) * stride + tile.left + 16 * u;
    uint4 v[P::ROWS / EACH];
#pragma unroll
    for (int i = 0; i < P::ROWS / EACH; i++)
        v[i] = shared.out[first + EACH * i][u];
    if (a.own != ~0u)
#pragma unroll
        for (int i = 0; i < P::ROWS / EACH; i++)
            v[i] = gf_with_alpha(v[i], shared.in[first + EACH * i + a.radius[1]][SIDES + u], a.own);
#pragma unroll
    for (int i = 0; i < P::ROWS / EACH; i++, to += EACH * stride)
        *reinterpret_cast<uint4 *>(to) = v[i];
}

// Load 16 rows x 16 columns at `at` of a lane as values of one byte: even columns, then odd ones.
GF_DEVICE void gf_tile_columns(uint32_t at, uint32_t (&value)[2][2]) {
#if __CUDA_ARCH__ >= 800
    uint32_t p, q; // of 8 rows: rows 2t and 2t + 1 of columns 2g and 2g + 1
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n"
                 : "=r"(p), "=r"(q)
                 : "r"(at));
    value[0][1] = __byte_perm(p, q, 0x6420);
    value[1][1] = __byte_perm(p, q, 0x7531);
#else
    __trap(); // never launched
#endif
}

// Compute 8 rows x 8 columns of sums along y from 16 rows of values, if taps have two bytes. Rows g
// and g + 8 of a product are row g with the high and the low bytes of the taps.
GF_DEVICE void gf_tile_last_rows(uint32_t (&sum)[4], const uint32_t (&taps)[2],
                                 const uint32_t (&value)[2]) {
    const uint32_t zero[4] = {};
    uint32_t high[4], low[4]; // bytes of the values
    gf_bytes_multiply(high, zero, taps, value[0]);
    gf_bytes_multiply(low, zero, taps, value[1]);
#pragma unroll
    for (int i = 0; i < 2; i++) // 128 * 65536: to round
        sum[i] = high[i] * 65536 + ((high[2 + i] + low[i] + 128 * 256) * 256 + low[2 + i]);
}

// Compute weighted sums along y or both axes.
// Filter: as of window_bytes, and
//
//     ALONG_X   whether there is a pass along x
//     TIES      whether results may be near-ties, which the block lists. word then moves ties by
//               one bit to the left, and adds 1 to their bytes
//     finish(a, tile, shared, ties)   if TIES: complete the results in shared->out
//
// Grid: one block per tile of 40 rows and 128 bytes. Block: one warp. Copies 48 rows with 16 more
// bytes on each side into shared memory, waits for them once, and computes 16 columns at a time.
// Reads each sample 1.5 times, from beyond the L2 cache about once, and writes it once; all
// accesses are coalesced. About 8 instructions per result, 11 if WIDE. Tail: bytes of incomplete
// units and rows after the last one are not stored. Shared memory: 15 KB. Registers: 128 (sm_90).
template <typename Filter>
__global__ void __launch_bounds__(32, gf_tile_policy::BLOCKS)
    window_tile(const __grid_constant__ typename Filter::Args a) {
    typedef gf_tile_policy P;
    constexpr bool WIDE = Filter::WIDE, SIDES = Filter::ALONG_X;
    constexpr int PARTS = P::LOADED_ROWS / 16, UNROLL = 4;
    __shared__ gf_tile_shared<SIDES> shared;
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    const gf_tile tile = gf_tile_find<SIDES>(a);
    gf_wait_for_stream();
    const bool edge = gf_tile_load(a, tile, &shared);
    __pipeline_commit();
    gf_tile_taps low = {}, high = {};
    low.load<SIDES>(&a.taps[0][lane], a.zero[0]);
    if constexpr (WIDE)
        high.load<SIDES>(&a.taps[1][lane], a.zero[1]);
    const uint32_t start[4] = {a.start[0], a.start[1], a.start[2], a.start[3]};
    __pipeline_wait_prior(0);
    __syncwarp();
    if constexpr (SIDES)
        if (edge) {
            gf_tile_finish_edge(a, tile, &shared);
            __syncwarp();
        }
    // Pairs of units: matrix lane / 8 of a load is unit lane / 8 % 2 of 8 rows lane / 16.
    const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(
        SIDES ? &shared.in[lane / 16 * 8 + lane % 8][lane / 8 % 2] : &shared.in[lane % 16][0]));
    // The compiler would compute the base of shared memory again and again.
    uint32_t out = static_cast<uint32_t>(__cvta_generic_to_shared(shared.out[g])) + 4 * t;
    asm volatile("" : "+r"(out));
    uint32_t b[2][PARTS][4]; // [pair][16 rows][8 rows, unit]
    const auto load = [&](uint32_t(&to)[PARTS][4], int pair) {
#pragma unroll
        for (int n = 0; n < PARTS; n++)
            gf_load_blocks(to[n], at + 16 * n * sizeof(shared.in[0]) + 32 * pair);
    };
    if (SIDES)
        load(b[0], 0);
    uint32_t groups = 0; // with near-ties
#pragma unroll UNROLL
    for (int m = 0; m < P::GROUPS; m++) {
        const auto &now = b[m / 2 % 2];
        auto &next = b[(m / 2 + 1) % 2];
        if (SIDES && m % 2 == 0)
            load(next, m / 2 + 1);
        uint32_t value[PARTS][2][2]; // of 16 rows; see gf_bytes_between
#pragma unroll
        for (int n = 0; n < PARTS; n++) {
            if constexpr (!SIDES) {
                gf_tile_columns(at + 16 * n * sizeof(shared.in[0]) + 16 * m, value[n]);
            } else {
                uint32_t sum[2][4];
#pragma unroll
                for (int h = 0; h < 2; h++)
                    gf_bytes_along_x<WIDE>(
                        start, sum[h], [&](uint32_t(&to)[4], const uint32_t(&from)[4], bool top) {
                            const gf_tile_taps &k = top ? high : low;
                            const uint32_t *p = now[n] + 2 * h, *q = next[n] + 2 * h;
                            if (m % 2 == 0) {
                                gf_bytes_multiply(to, from, k.even[0], k.even[1], p[0], p[1]);
                                gf_bytes_multiply(to, to, k.even[2], q[0]);
                            } else {
                                gf_bytes_multiply(to, from, k.odd[1], k.odd[2], q[0], q[1]);
                                gf_bytes_multiply(to, to, k.odd[0], p[1]);
                            }
                        });
                gf_bytes_between<WIDE>(sum, value[n]);
            }
        }
        uint32_t ties = 0;
#pragma unroll
        for (int n = 0; n < PARTS; n++) {
            uint32_t sum[2][4];
#pragma unroll
            for (int c = 0; c < 2; c++) {
                if constexpr (WIDE)
                    if (n + 1 == PARTS) {
                        const uint32_t taps[2] = {high.last[0], low.last[0]};
                        gf_tile_last_rows(sum[c], taps, value[n][c]);
                        continue;
                    }
                gf_bytes_along_y<WIDE, SIDES>(
                    start, sum[c],
                    [&](uint32_t(&to)[4], const uint32_t(&from)[4], bool top, int plane) {
                        const gf_tile_taps &k = top ? high : low;
                        if (n + 1 < PARTS)
                            gf_bytes_multiply(to, from, k.both[0], k.both[1], value[n][c][plane],
                                              value[n + 1][c][plane]);
                        else
                            gf_bytes_multiply(to, from, k.last, value[n][c][plane]);
                    });
            }
#pragma unroll
            for (int h = 0; h < 2 - n / (PARTS - 1); h++) {
                // Columns of both products: 0 1, 2 3; without a pass along x 0 2, 1 3.
                const uint32_t first = sum[0][2 * h + 1], second = sum[1][2 * h];
                const uint32_t s[4] = {sum[0][2 * h], SIDES ? first : second,
                                       SIDES ? second : first, sum[1][2 * h + 1]};
                const uint32_t to = out + ((16 * n + 8 * h) * sizeof(shared.out[0]) + 16 * m);
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(Filter::word(a, s, &ties))
                             : "memory");
            }
        }
        if constexpr (Filter::TIES)
            if ((shared.found[m][lane] = ties & a.own) != 0)
                groups |= 1u << m;
    }
    __syncwarp();
    if constexpr (Filter::TIES) {
        Filter::finish(a, tile, &shared, gf_tile_list(&shared, groups));
        __syncwarp();
    }
    gf_tile_store(a, tile, shared);
}

// Queue window_tile. Returns false if the device does not support it; no queue: only test this. The
// radius along y is at most MAX_RADIUS, and that along x at most 16 bytes.
template <typename Filter>
static bool gf_tile_launch(typename Filter::Args *a, const gf_bytes_window &window,
                           const gf_plan *plan, const gf_strip *strip, gf_edge edge,
                           gf_queue *queue) {
    typedef gf_tile_policy P;
    if (gf_code_version(reinterpret_cast<const void *>(window_tile<Filter>)) < 80)
        return false;
    if (!queue)
        return true;
    gf_bytes_image_set(a, plan, strip, edge);
    const uint64_t tiles = gf_divide_up(gf_row_bytes(&plan->in), P::BYTES);
    const uint64_t tile_rows = gf_divide_up(strip->out.rows, P::ROWS);
    a->last = a->in.first + static_cast<int64_t>(strip->in[0].rows);
    a->tile_rows = static_cast<unsigned>(tile_rows);
    a->tiles_per_row = static_cast<unsigned>(tiles);
    const uint64_t sides = Filter::ALONG_X ? 2 : 0;
    a->inner = gf_divider_of(tiles > sides ? tiles - sides : 1);
    for (int axis = 0; axis < 2; axis++)
        a->radius[axis] = window.radius[axis];
    for (uint32_t &start : a->start)
        start = Filter::START;
    for (int n = 0; n < 32 * 9 * 4; n++) {
        const int k = n % 4, lane = n / 4 % 32, i = n / 128 - 3; // -3 to -1: along y
        const int g = lane / 4, t = lane % 4;
        const int row = 2 * t - g + (i == -2 ? -8 : i == -1 ? 8 : 0) + k / 2 * 8 + k % 2;
        const int at = i / 2 * 16 + 4 * t - (g / 2 * 4 + g % 2 + i % 2 * 2) + k - 16;
        const uint32_t tap = i < 0 ? gf_bytes_tap(window, 1, 1, row - window.radius[1])
                                   : gf_bytes_tap(window, 0, a->in.channels, at);
        for (int high = 0; high < 2; high++)
            a->taps[high][lane].word[i < 0 ? i + 3 : i + 4] |= (tap >> 8 * high & 255) << 8 * k;
    }
    gf_launch_kernel(window_tile<Filter>, static_cast<unsigned>(tiles * tile_rows), 32, 0, queue,
                     *a);
    return true;
}

#endif
