// resize of u8 on tensor cores, of form FIXED: bytes_along and bytes_down.
//
// Sums are products of byte matrices. A tap is the sum of three signed bytes, times 1, 2^8 and
// 2^16: three products are added modulo 2^32, therefore the total is exact. Channels stay
// interleaved: the taps of an output byte are C bytes apart, and most bytes of the matrix are 0.
#include "cuda/resize/device.cuh"
#include "cuda/window/march.cuh"

#include <algorithm>

// Tuning constants. Sizes are in bytes.
struct bytes_policy {
    static constexpr int THREADS = 256, WARPS = THREADS / 32;
    // Resident blocks per SM, for the registers.
    static constexpr int ALONG_BLOCKS = 4, DOWN_BLOCKS = 3;
    static constexpr int STEP = 32;    // inputs of a product
    static constexpr int START = 4;    // along x: tiles that take as long as the taps of a block
    static constexpr int ACROSS = 256; // along y: of a row, per block
    static constexpr int STAGES = 4;   // along y: of STEP rows
    static constexpr int STEPS = 16;   // along y: of 16 rows of outputs, at most
};

struct bytes_args : gf_resize_args {
    int steps;      // along x: of a group, at most
    int row;        // along x: bytes of a row of a tile, an odd number of units
    uint32_t share; // along x: rows of a block; along y: pieces of a row of a block
};

// ---- products -----------------------------------------------------------------------------------

// Compute to = from + a * b. TAPS_FIRST: a are signed, b unsigned; otherwise the opposite.
template <bool TAPS_FIRST>
GF_DEVICE void bytes_multiply(int32_t (&to)[4], const int32_t (&from)[4], const uint32_t *a,
                              const uint32_t *b) {
#if __CUDA_ARCH__ >= 800
#define MULTIPLY(types)                                                                            \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." types                                             \
        ".s32 "                                                                                    \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"                    \
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])                                       \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(from[0]),          \
          "r"(from[1]), "r"(from[2]), "r"(from[3]))
    if (TAPS_FIRST)
        MULTIPLY("s8.u8");
    else
        MULTIPLY("u8.s8");
#undef MULTIPLY
#else
    __trap(); // never launched
#endif
}

typedef int32_t bytes_sums[3][4]; // of 16 x 8 outputs, by byte of the taps

// Return the result of sum i, before it is clamped.
GF_DEVICE uint32_t bytes_result(const bytes_sums &sums, int i) {
    const uint32_t low = sums[0][i], middle = sums[1][i], high = sums[2][i];
    const int32_t sum = static_cast<int32_t>(low + (middle << 8) + (high << 16));
    // The high word is (sum + 2^21) >> 22, with one instruction.
    const int64_t wide = static_cast<int64_t>(sum) * 1024 + (INT64_C(1) << 31);
    return static_cast<uint32_t>(static_cast<uint64_t>(wide) >> 32);
}

// Store the bytes of a tap: the second one `second` bytes after the first, the third one at
// `third`.
GF_DEVICE void bytes_store_tap(unsigned char *to, int second, unsigned char *third, int32_t tap) {
    const int8_t low = static_cast<int8_t>(tap);
    const int32_t rest = (tap - low) >> 8;
    const int8_t middle = static_cast<int8_t>(rest);
    to[0] = static_cast<unsigned char>(low);
    to[second] = static_cast<unsigned char>(middle);
    *third = static_cast<unsigned char>((rest - middle) >> 8);
}

GF_DEVICE void bytes_clear(unsigned char *memory, int bytes) {
    for (int i = threadIdx.x; i < bytes / 16; i += bytes_policy::THREADS)
        reinterpret_cast<uint4 *>(memory)[i] = make_uint4(0, 0, 0, 0);
}

// ---- along x ------------------------------------------------------------------------------------

// Shape of a block: groups of 8 outputs, and tiles of ROWS rows. A warp computes ITEMS groups of
// SIDE rows of a tile.
template <int GROUP_COUNT, int TILE_ROWS> struct along_shape {
    static constexpr int GROUPS = GROUP_COUNT, ROWS = TILE_ROWS;
    static constexpr int OUT = 8 * GROUPS, PITCH = OUT + 16; // of results
    static constexpr int ITEMS = GROUPS < 8 ? 1 : GROUPS / 8;
    static constexpr int SIDE = GROUPS < 8 ? ROWS * GROUPS / 8 : ROWS, M = SIDE / 16;
    static_assert(SIDE % 16 == 0 && ITEMS * SIDE * 8 == GROUPS * ROWS, "whole products");

    static __host__ __device__ int taps(int steps) {
        return GROUPS * steps * 768;
    }
    static int bytes(const bytes_args &a) {
        return taps(a.steps) + 2 * ROWS * (a.row + PITCH);
    }
};

// Bytes of a row, from a multiple of 16 on.
struct along_reach {
    uint64_t from;
    int bytes;
};

// Return the bytes that output bytes [first, end) read.
static __host__ __device__ along_reach along_reach_of(const gf_resize_span *spans,
                                                      uint32_t channels, uint32_t first,
                                                      uint32_t end) {
    const gf_resize_span last = spans[(end - 1) / channels];
    const uint64_t from = spans[first / channels].first * channels / 16 * 16;
    return {from, static_cast<int>((last.first + last.count) * channels - from)};
}

// Compute the sums along x.
// Grid: x: pieces of a row; y: shares of the rows; z: images. Block: 256 threads. The matrix of
// samples has 16 rows, 32 bytes of them at a time, that of the taps 8 columns of outputs. A block
// prepares the taps of its columns once. While a tile is computed, the next one is copied, and the
// results of the one before are stored. Shared memory: up to 222 KB.
template <typename Shape>
__global__ void __launch_bounds__(bytes_policy::THREADS, bytes_policy::ALONG_BLOCKS)
    bytes_along(const __grid_constant__ bytes_args a) {
    constexpr int THREADS = bytes_policy::THREADS, WARPS = bytes_policy::WARPS;
    constexpr int OUT = Shape::OUT, GROUPS = Shape::GROUPS, ITEMS = Shape::ITEMS;
    constexpr int ROWS = Shape::ROWS, M = Shape::M, PITCH = Shape::PITCH;
    extern __shared__ __align__(16) unsigned char bytes_memory[];
    __shared__ along_reach reaches[GROUPS];
    unsigned char *taps = bytes_memory, *tiles = taps + Shape::taps(a.steps),
                  *results = tiles + 2 * ROWS * a.row;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t o0 = blockIdx.x * OUT;
    const int outputs = static_cast<int>(a.samples - o0 < OUT ? a.samples - o0 : OUT);
    const uint64_t y0 = static_cast<uint64_t>(blockIdx.y) * a.share;
    const int rows = static_cast<int>(a.rows - y0 < a.share ? a.rows - y0 : a.share);
    // Tables are older than the kernel before this one.
    const along_reach all = along_reach_of(a.spans, a.channels, o0, o0 + outputs);
    if (threadIdx.x < GROUPS) {
        const int o = 8 * threadIdx.x;
        reaches[threadIdx.x] =
            o < outputs ? along_reach_of(a.spans, a.channels, o0 + o, o0 + min(o + 8, outputs))
                        : along_reach{all.from, 0};
    }
    bytes_clear(taps, Shape::taps(a.steps));
    __syncthreads();
    gf_wait_for_stream();
    gf_let_next_start();
    // A warp copies every 8th row.
    const size_t jump = WARPS * a.in_stride;
    const int tile = ROWS * a.row;
    const unsigned char *in = a.in + a.images.at[0][blockIdx.z] +
                              (a.first + y0 + warp) * a.in_stride + all.from + 16 * lane;
    int left = rows - warp; // rows to copy
    const auto load = [&](unsigned char *to) {
        to += warp * a.row + 16 * lane;
        const unsigned char *from = in;
#pragma unroll 1
        for (int rest = all.bytes - 16 * lane; rest > 0; rest -= 512, from += 512, to += 512) {
            const unsigned char *p = from;
            unsigned char *q = to;
#pragma unroll
            for (int y = 0; y < ROWS; y += WARPS, p += jump, q += WARPS * a.row)
                gf_copy_async(reinterpret_cast<uint4 *>(q), p, y < left);
        }
        in += ROWS * a.in_stride;
        left -= ROWS;
        __pipeline_commit();
    };
    load(tiles);
    if (const int o = threadIdx.x % OUT; o < outputs) {
        const uint32_t x = (o0 + o) / a.channels, c = o0 + o - x * a.channels;
        const gf_resize_span span = a.spans[x];
        const int32_t *from = static_cast<const int32_t *>(a.taps) + span.taps;
        const uint32_t first =
            static_cast<uint32_t>(span.first * a.channels + c - reaches[o / 8].from);
        unsigned char *own = taps + o / 8 * a.steps * 768;
        for (uint32_t k = threadIdx.x / OUT; k < span.count; k += THREADS / OUT) {
            const uint32_t b = first + k * a.channels;
            unsigned char *to = own + b / 32 * 768;
            const uint32_t word = b % 32 / 16 * 4 + b % 4, at = o % 8 * 4 + b % 16 / 4; // lane
            bytes_store_tap(to + at * 16 + word, 8, to + 512 + at * 8 + word, from[k]);
        }
    }
    unsigned char *out = a.out + a.images.at[1][blockIdx.z] + y0 * a.out_stride + o0;
    const auto store = [&](const unsigned char *from, int n) {
        constexpr int UNITS = OUT / 16;
        const int unit = threadIdx.x % UNITS * 16;
#pragma unroll
        for (int y = 0; y < ROWS; y += THREADS / UNITS) {
            const int row = threadIdx.x / UNITS + y;
            if (row >= n)
                break;
            unsigned char *to = out + row * a.out_stride + unit;
            const unsigned char *result = from + row * PITCH + unit;
            if (unit + 16 <= outputs)
                *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(result);
            else
#pragma unroll 1
                for (int k = 0; k < outputs - unit; k++)
                    to[k] = result[k];
        }
        out += ROWS * a.out_stride;
    };
    // The items of a warp.
    __syncthreads();
    const unsigned char *own_taps[ITEMS];
    uint32_t own[ITEMS];
    int lengths[ITEMS];
    const int m = GROUPS < WARPS ? warp % (WARPS / GROUPS) * Shape::SIDE : 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int group = warp * GROUPS / WARPS + i;
        const along_reach reach = reaches[group];
        own_taps[i] = taps + group * a.steps * 768 + lane * 16;
        own[i] = static_cast<uint32_t>(__cvta_generic_to_shared(
            tiles + (m + lane % 16) * a.row + lane / 16 * 16 + (reach.from - all.from)));
        lengths[i] = reach.bytes;
    }
    unsigned char *own_results =
        results + (m + lane / 4) * PITCH + 8 * (warp * GROUPS / WARPS) + lane % 4 * 2;
    int odd = 0; // tile
#pragma unroll 1
    for (int y = 0; y < rows; y += ROWS, odd ^= 1) {
        __pipeline_wait_prior(0);
        __syncthreads();
        load(tiles + (odd ^ 1) * tile);
        if (y > 0)
            store(results + (odd ^ 1) * ROWS * PITCH, ROWS);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const unsigned char *b = own_taps[i];
            uint32_t at = own[i] + odd * tile;
            bytes_sums sums[M] = {};
#pragma unroll 2
            for (int rest = lengths[i]; rest > 0; rest -= 32, at += 32, b += 768) {
                uint32_t x[M][4], w[3][2];
#pragma unroll
                for (int k = 0; k < M; k++)
                    gf_load_blocks(x[k], at + 16 * k * a.row);
                gf_load_words<16>(w[0], b);
                gf_load_words<8>(w[2], b + 512 - lane * 8);
#pragma unroll
                for (int plane = 0; plane < 3; plane++)
#pragma unroll
                    for (int k = 0; k < M; k++)
                        bytes_multiply<false>(sums[k][plane], sums[k][plane], x[k], w[plane]);
            }
#pragma unroll
            for (int h = 0; h < 2 * M; h++) {
                const uint32_t bits[2] = {bytes_result(sums[h / 2], h % 2 * 2),
                                          bytes_result(sums[h / 2], h % 2 * 2 + 1)};
                uint32_t pair;
                asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;\n"
                    : "=r"(pair)
                    : "r"(bits[1]), "r"(bits[0]));
                *reinterpret_cast<uint16_t *>(own_results + (odd * ROWS + 8 * h) * PITCH + 8 * i) =
                    static_cast<uint16_t>(pair);
            }
        }
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    store(results + (odd ^ 1) * ROWS * PITCH, (rows - 1) % ROWS + 1);
}

// Return the most bytes that n adjacent outputs read, from a multiple of n on.
static int along_most(const gf_resize_plan *plan, uint32_t n) {
    const uint32_t samples = static_cast<uint32_t>(gf_row_samples(&plan->head.out));
    int most = 0;
    for (uint32_t o = 0; o < samples; o += n)
        most =
            std::max(most, along_reach_of(static_cast<const gf_resize_span *>(plan->head.constants),
                                          plan->head.in.channels, o, std::min(o + n, samples))
                               .bytes);
    return most;
}

// Queue the kernel for at least `blocks` blocks per SM. Returns false if their memory does not fit.
template <typename Shape>
static bool along_launch(bytes_args a, const gf_resize_plan *plan, int blocks, gf_queue *queue) {
    a.row = (along_most(plan, Shape::OUT) + 31) / 32 * 32 + 16;
    // An SM has 228 KB on sm_90. The system and static memory take some of each block.
    const int bytes = Shape::bytes(a), fit = (228 << 10) / (bytes + 1536);
    if (a.row > 8192 || fit < blocks ||
        !gf_allow_shared<bytes_along<Shape>>(static_cast<size_t>(bytes)))
        return false;
    // Choose the tiles of a block such that the last wave is full.
    const uint64_t resident = gf_sm_count() * std::min(fit, bytes_policy::ALONG_BLOCKS);
    const uint64_t columns = gf_divide_up(a.samples, Shape::OUT);
    const uint64_t tiles = gf_divide_up(a.rows, Shape::ROWS);
    uint64_t least = ~UINT64_C(0);
    for (uint64_t n = 1; n <= std::min<uint64_t>(tiles, 64); n++) {
        const uint64_t all = columns * a.images.count * gf_divide_up(tiles, n);
        const uint64_t time = gf_divide_up(all, resident) * (n + bytes_policy::START);
        if (time < least) {
            least = time;
            a.share = static_cast<uint32_t>(n * Shape::ROWS);
        }
    }
    const dim3 grid(static_cast<unsigned>(columns),
                    static_cast<unsigned>(gf_divide_up(a.rows, a.share)), a.images.count);
    if (grid.y > 65535)
        return false;
    gf_launch_kernel(bytes_along<Shape>, grid, bytes_policy::THREADS, static_cast<size_t>(bytes),
                     queue, a);
    return true;
}

static bool along_launch_any(bytes_args a, const gf_resize_plan *plan, gf_queue *queue) {
    a.steps = (along_most(plan, 8) + 31) / 32;
    return along_launch<along_shape<16, 32>>(a, plan, 4, queue) ||
           along_launch<along_shape<8, 32>>(a, plan, 1, queue) ||
           along_launch<along_shape<4, 64>>(a, plan, 1, queue) ||
           along_launch<along_shape<4, 32>>(a, plan, 1, queue);
}

// ---- along y ------------------------------------------------------------------------------------

// Load 32 rows x 16 columns as values of one byte: even columns, then odd ones. at: row of lane.
GF_DEVICE void down_load(uint32_t (&x)[2][2], uint32_t at) {
#if __CUDA_ARCH__ >= 800
    uint32_t m[4]; // of 8 rows: rows 2t and 2t + 1 of columns 2g and 2g + 1
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at));
#pragma unroll
    for (int h = 0; h < 2; h++) {
        x[0][h] = __byte_perm(m[2 * h], m[2 * h + 1], 0x6420);
        x[1][h] = __byte_perm(m[2 * h], m[2 * h + 1], 0x7531);
    }
#else
    __trap(); // never launched
#endif
}

// Compute the sums along y.
// Grid: x: parts of a row; y: groups of 16 rows, strided; z: images. Block: 256 threads; a warp
// computes 32 columns of a piece of 256. The matrix of taps has 16 rows of outputs, that of the
// samples 32 rows; the order of the rows in a sum is free, and is that in which a lane gets them.
// Shared memory: up to 64 KB.
__global__ void __launch_bounds__(bytes_policy::THREADS, bytes_policy::DOWN_BLOCKS)
    bytes_down(const __grid_constant__ bytes_args a) {
    typedef bytes_policy Policy;
    constexpr int ACROSS = Policy::ACROSS, STEP = Policy::STEP, STAGES = Policy::STAGES,
                  PITCH = ACROSS + 16, TILE = STEP * PITCH, HALVES = ACROSS / 128;
    constexpr int UNITS = ACROSS / 16, EACH = Policy::THREADS / UNITS; // rows copied at a time
    extern __shared__ __align__(16) unsigned char bytes_memory[];
    unsigned char *tiles = bytes_memory, *results = tiles + STAGES * TILE,
                  *taps = results + 16 * PITCH;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS * 16;
    const uint64_t part = static_cast<uint64_t>(a.share) * ACROSS, i0 = blockIdx.x * part;
    const int columns = static_cast<int>(a.samples - i0 < part ? a.samples - i0 : part);
    const int pieces = (columns + ACROSS - 1) / ACROSS;
    bool waited = false;
    for (uint64_t y0 = static_cast<uint64_t>(blockIdx.y) * 16; y0 < a.rows;
         y0 += static_cast<uint64_t>(gridDim.y) * 16) {
        const int rows = static_cast<int>(a.rows - y0 < 16 ? a.rows - y0 : 16);
        const uint64_t from = a.spans[a.first + y0].first;
        const gf_resize_span last = a.spans[a.first + y0 + rows - 1];
        const int height = static_cast<int>(last.first + last.count - from);
        const int steps = (height + STEP - 1) / STEP, all = steps * pieces;
        __syncthreads();
        bytes_clear(taps, steps * 1536);
        __syncthreads();
        if (const int r = threadIdx.x % 16; r < rows) {
            const gf_resize_span span = a.spans[a.first + y0 + r];
            const uint32_t first = static_cast<uint32_t>(span.first - from);
            for (uint32_t k = threadIdx.x / 16; k < span.count; k += Policy::THREADS / 16) {
                // Row `within` of 16 is byte 2 (within / 8) + within % 2 of lane within % 8 / 2.
                const uint32_t at = first + k, within = at % 16;
                unsigned char *to = taps + at / 32 * 1536 + (r % 8 * 4 + within % 8 / 2) * 16 +
                                    at % 32 / 16 * 8 + r / 8 * 4 + within / 8 * 2 + within % 2;
                bytes_store_tap(to, 512, to + 1024,
                                static_cast<const int32_t *>(a.taps)[span.taps + k]);
            }
        }
        if (!waited) { // tables are older than the kernel before this one
            gf_wait_for_stream();
            gf_let_next_start();
            waited = true;
        }
        const unsigned char *in =
            a.in + a.images.at[0][blockIdx.z] + i0 + unit + (from + row) * a.in_stride;
        const ptrdiff_t back = ACROSS - static_cast<ptrdiff_t>(steps - 1) * STEP * a.in_stride;
        int left = height - row, rest = columns - unit; // rows and bytes to copy
        const auto load = [&](unsigned char *to) {
            to += row * PITCH + unit;
#pragma unroll
            for (int y = 0; y < STEP; y += EACH)
                gf_copy_async(reinterpret_cast<uint4 *>(to + y * PITCH), in + y * a.in_stride,
                              left > y && rest > 0);
            __pipeline_commit();
            left -= STEP;
            if (left + row > 0) {
                in += STEP * a.in_stride;
            } else {
                in += back;
                left = height - row;
                rest -= ACROSS;
            }
        };
        unsigned char *out =
            a.out + a.images.at[1][blockIdx.z] + i0 + 16 * HALVES * warp + y0 * a.out_stride;
        for (int s = 0; s < STAGES - 1; s++)
            load(tiles + s * TILE);
        bytes_sums sums[2 * HALVES] = {};
        int step = 0, at = 16 * HALVES * warp; // column of the warp
        const unsigned char *own = taps + lane * 16;
#pragma unroll 1
        for (int n = 0; n < all; n++) {
            __pipeline_wait_prior(STAGES - 2);
            __syncthreads();
            load(tiles + (n + STAGES - 1) % STAGES * TILE);
            uint32_t x[HALVES][2][2];
#pragma unroll
            for (int i = 0; i < HALVES; i++)
                down_load(x[i], static_cast<uint32_t>(__cvta_generic_to_shared(
                                    tiles + n % STAGES * TILE + lane * PITCH +
                                    16 * (HALVES * warp + i))));
#pragma unroll
            for (int plane = 0; plane < 3; plane++) {
                uint32_t w[4];
                gf_load_words<16>(w, own + plane * 512);
#pragma unroll
                for (int i = 0; i < 2 * HALVES; i++)
                    bytes_multiply<true>(sums[i][plane], sums[i][plane], w, x[i / 2][i % 2]);
            }
            own += 1536;
            if (++step < steps)
                continue;
            step = 0;
            own = taps + lane * 16;
#pragma unroll
            for (int i = 0; i < 2 * HALVES; i++) {
                unsigned char *to = results + (lane / 4 + i % 2 * 8) * PITCH +
                                    16 * (HALVES * warp + i / 2) + lane % 4 * 4;
                const bytes_sums &even = sums[i / 2 * 2], &odd = sums[i / 2 * 2 + 1];
                const int h = i % 2 * 2;
                const uint32_t bits[4] = {bytes_result(even, h), bytes_result(odd, h),
                                          bytes_result(even, h + 1), bytes_result(odd, h + 1)};
                gf_pack_samples<uint8_t, 4, true>(bits, reinterpret_cast<uint32_t *>(to));
            }
#pragma unroll
            for (int i = 0; i < 24 * HALVES; i++)
                sums[i / 12][i / 4 % 3][i % 4] = 0;
            // A warp stores its own 16 rows.
            __syncwarp();
            const int y = lane / HALVES, u = 16 * (lane % HALVES);
            unsigned char *to = out + y * a.out_stride + u;
            const unsigned char *result = results + y * PITCH + 16 * HALVES * warp + u;
            if (y < rows && at + u + 16 <= columns)
                *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(result);
            else if (y < rows)
#pragma unroll 1
                for (int k = 0; k < columns - at - u; k++)
                    to[k] = result[k];
            __syncwarp();
            out += ACROSS;
            at += ACROSS;
        }
        __pipeline_wait_prior(0);
    }
}

static bool down_launch(bytes_args a, const gf_resize_plan *plan, gf_queue *queue) {
    typedef bytes_policy Policy;
    const gf_resize_span *spans = static_cast<const gf_resize_span *>(plan->head.constants);
    uint64_t most = 0;
    for (uint64_t y = a.first; y < a.first + a.rows; y += 16) {
        const gf_resize_span last = spans[std::min(y + 16, a.first + a.rows) - 1];
        most = std::max(most, last.first + last.count - spans[y].first);
    }
    const uint64_t steps = gf_divide_up(most, Policy::STEP);
    if (steps > Policy::STEPS)
        return false;
    const uint64_t pieces = gf_divide_up(a.samples, Policy::ACROSS);
    const uint64_t groups = gf_divide_up(a.rows, 16) * a.images.count;
    const uint64_t parts =
        std::clamp<uint64_t>(gf_divide_up(Policy::DOWN_BLOCKS * gf_sm_count(), groups),
                             gf_divide_up(pieces, 64), pieces);
    a.share = static_cast<uint32_t>(gf_divide_up(pieces, parts));
    const dim3 grid(static_cast<unsigned>(gf_divide_up(pieces, a.share)),
                    gf_blocks(a.rows, 16, 65535), a.images.count);
    const int shared = (Policy::STAGES * Policy::STEP + 16) * (Policy::ACROSS + 16) +
                       static_cast<int>(steps) * 1536;
    if (!gf_allow_shared<bytes_down>(static_cast<size_t>(shared)))
        return false;
    gf_launch_kernel(bytes_down, grid, Policy::THREADS, static_cast<size_t>(shared), queue, a);
    return true;
}

bool gf_resize_bytes(const gf_resize_args &args, const gf_resize_plan *plan, gf_queue *queue) {
    if (plan->form != GF_RESIZE_FIXED ||
        gf_code_version(reinterpret_cast<const void *>(bytes_down)) < 80)
        return false;
    bytes_args a = {};
    static_cast<gf_resize_args &>(a) = args;
    return plan->down ? down_launch(a, plan, queue) : along_launch_any(a, plan, queue);
}
