// convolve on CUDA.
//
//   kernel           used for                                     operations per sample
//   convolve_tiles   all plans                                    one load and fma per tap
//   convolve_bytes   u8, integer kernels up to 5 x 5 of small     3 (3 x 3) or 10 (5 x 5) dp4a
//                    elements, rows at multiples of 4 bytes
#include "cuda/device.cuh"

#include <algorithm>

#include "convolve/convolve.h"

struct convolve_args {
    gf_rows in, out;
    int64_t width, height; // pixels of the image
    uint32_t channels;
    bool alpha;
    gf_edge edge;
    int32_t kernel_width, kernel_height;
    uint32_t count; // of taps
    const gf_convolve_tap *taps;
    int64_t start, scale;         // integers: sum before the first tap, and divisor
    float first, divisor, offset; // binary32: the same, and what is added after the division
    uint64_t tiles_per_row, tiles;
};

// Return the first sample of row y, which may be outside the image; NULL for the edge value.
template <typename T> GF_DEVICE const T *convolve_row(const convolve_args &a, int64_t y) {
    const int64_t row = gf_edge_index(a.edge.mode, y, a.height) - static_cast<int64_t>(a.in.y0);
    return a.edge.mode == GF_EDGE_CONSTANT && (y < 0 || y >= a.height)
               ? nullptr
               : reinterpret_cast<const T *>(a.in.data + row * static_cast<int64_t>(a.in.stride));
}

// Return sample s of a row of convolve_row; s may be outside the image.
template <typename T> GF_DEVICE T convolve_sample(const convolve_args &a, const T *row, int64_t s) {
    const int64_t channels = a.channels;
    if (row && s >= 0 && s < a.width * channels)
        return row[s];
    const int64_t x = (s < 0 ? s - channels + 1 : s) / channels, c = s - x * channels;
    const int64_t at = row ? gf_edge_index(a.edge.mode, x, a.width) : -1;
    return at < 0 ? static_cast<T>(a.edge.value) : row[at * channels + c];
}

// ---- all plans ----------------------------------------------------------------------------------

struct convolve_policy {
    static constexpr int THREADS = 256;
    static constexpr int PIXELS = 32, ROWS = 32; // of a tile
    static constexpr int GROUP = 4;              // rows that a thread computes at a time
};

// Types of a tile: for WIDE plans integers, exact for all kernels of integers, otherwise binary32.
template <bool WIDE> struct convolve_types {
    typedef typename std::conditional<WIDE, int, float>::type Value; // of samples and weights
    typedef typename std::conditional<WIDE, long long, float>::type Sum;
};

GF_DEVICE float convolve_add(float k, float v, float s) {
    return __fmaf_rn(k, v, s);
}

GF_DEVICE long long convolve_add(int k, int v, long long s) {
    return s + static_cast<long long>(k) * v;
}

// Convert a sum to a sample.
template <typename T> GF_DEVICE T convolve_finish(const convolve_args &a, float s) {
    if (a.divisor != 1)
        s = __fdiv_rn(s, a.divisor);
    if (a.offset != 0)
        s = __fadd_rn(s, a.offset);
    return gf_store<T>(s);
}

template <typename T> GF_DEVICE T convolve_finish(const convolve_args &a, long long s) {
    const int64_t max = sizeof(T) == 1 ? 255 : 65535, q = gf_convolve_divide(s, a.scale);
    return static_cast<T>(q < 0 ? 0 : q < max ? q : max);
}

// Compute tiles of 32 x 32 pixels.
// Grid: one block per tile, up to 2^30 blocks; blocks loop over further tiles. Block: 256 threads;
// a thread computes four rows of one column of samples at a time. Shared memory: the samples of the
// tile and its window as words, at most 34 KB, and the taps, 1.8 KB. Registers: 48 (sm_90), for 5
// resident blocks. Reads each sample 1.1 times (3 x 3) to 2.1 times (15 x 15), writes it once.
// Tail: samples outside the image are not stored.
template <typename T, bool WIDE>
__global__ void __launch_bounds__(convolve_policy::THREADS) convolve_tiles(convolve_args a) {
    typedef convolve_policy Policy;
    typedef typename convolve_types<WIDE>::Value Value;
    typedef typename convolve_types<WIDE>::Sum Sum;
    extern __shared__ uint32_t convolve_shared[];
    Value *const tile = reinterpret_cast<Value *>(convolve_shared);
    __shared__ Value weights[GF_CONVOLVE_TAPS];
    __shared__ int at[GF_CONVOLVE_TAPS];
    const int channels = static_cast<int>(a.channels), columns = Policy::PIXELS * channels;
    const int stride = (Policy::PIXELS + a.kernel_width - 1) * channels;
    const int rows = Policy::ROWS + a.kernel_height - 1;
    const int64_t samples = a.width * channels;
    gf_wait_for_stream();
    for (uint32_t t = threadIdx.x; t < a.count; t += Policy::THREADS) {
        const gf_convolve_tap tap = a.taps[t];
        weights[t] = static_cast<Value>(tap.weight);
        at[t] = (tap.y + a.kernel_height / 2) * stride + (tap.x + a.kernel_width / 2) * channels;
    }
    for (uint64_t index = blockIdx.x; index < a.tiles; index += gridDim.x) {
        const uint64_t down = index / a.tiles_per_row;
        const int64_t y0 = static_cast<int64_t>(a.out.y0 + down * Policy::ROWS);
        const int64_t first = static_cast<int64_t>(index - down * a.tiles_per_row) * columns;
        const int64_t end = static_cast<int64_t>(a.out.y0 + a.out.rows);
        const int used = end - y0 < Policy::ROWS ? static_cast<int>(end - y0) : Policy::ROWS;
        __syncthreads();
        for (int r = threadIdx.x / 32; r < rows - Policy::ROWS + used; r += Policy::THREADS / 32) {
            const T *row = convolve_row<T>(a, y0 + r - a.kernel_height / 2);
            const int64_t left = first - a.kernel_width / 2 * channels;
            for (int i = threadIdx.x % 32; i < stride; i += 32)
                tile[r * stride + i] = static_cast<Value>(convolve_sample<T>(a, row, left + i));
        }
        __syncthreads();
        for (int unit = threadIdx.x; unit < columns * (Policy::ROWS / Policy::GROUP);
             unit += Policy::THREADS) {
            const int column = unit % columns, r = unit / columns * Policy::GROUP;
            const int64_t s = first + column;
            if (s >= samples || r >= used)
                continue;
            Sum sums[Policy::GROUP];
            for (int g = 0; g < Policy::GROUP; g++)
                sums[g] = WIDE ? static_cast<Sum>(a.start) : static_cast<Sum>(a.first);
            for (uint32_t t = 0; t < a.count; t++) {
                const Value *v = tile + r * stride + column + at[t];
#pragma unroll
                for (int g = 0; g < Policy::GROUP; g++)
                    sums[g] = convolve_add(weights[t], v[g * stride], sums[g]);
            }
            const bool copied = a.alpha && column % channels == channels - 1;
            for (int g = 0; g < Policy::GROUP && r + g < used; g++) {
                const uint64_t y = static_cast<uint64_t>(y0 + r + g);
                T *to = reinterpret_cast<T *>(a.out.data + (y - a.out.y0) * a.out.stride) + s;
                if (copied)
                    *to = reinterpret_cast<const T *>(a.in.data + (y - a.in.y0) * a.in.stride)[s];
                else
                    *to = convolve_finish<T>(a, sums[g]);
            }
        }
    }
}

// ---- small integer kernels on u8 ----------------------------------------------------------------

struct convolve_bytes_policy {
    static constexpr int WARPS = 4;       // one above the other
    static constexpr int ROWS = 16;       // of a warp; ROWS + SIDE - 1 is a multiple of SIDE
    static constexpr int PIXELS = 4 * 32; // of a warp: four per lane
};

// The taps of a row as signed bytes, for the first, second, third and fourth of four pixels. With
// SIDE = 3: k0 k1 k2 0, and 0 k0 k1 k2. With SIDE = 5: k0 k1 k2 k3; 0 0 k4 0; 0 k0 k1 k2; 0 0 k3
// k4.
struct convolve_bytes_args {
    convolve_args all;
    int start; // first value of a sum: offset * scale + 128 * sum of the taps
    float scale, inverse;
    uint32_t taps[5][4];
};

// Load the samples of a tile and its window, minus 128, as words.
template <int SIDE, int C>
GF_DEVICE void convolve_bytes_load(const convolve_args &a, int64_t y0, int64_t first,
                                   uint32_t (*tile)[34 * C]) {
    typedef convolve_bytes_policy Policy;
    const int rows = Policy::WARPS * Policy::ROWS + SIDE - 1, words = 34 * C;
    const int64_t needed_first = static_cast<int64_t>(a.out.y0) - a.kernel_height / 2;
    const int64_t needed_end = static_cast<int64_t>(a.out.y0 + a.out.rows) + a.kernel_height / 2;
    for (int i = threadIdx.x; i < rows * words; i += 32 * Policy::WARPS) {
        const int r = i / words, word = i - r * words;
        const int64_t y = y0 + r - SIDE / 2, s = first + 4 * (word - C);
        uint32_t value = 0;
        if (y >= needed_first && y < needed_end) {
            const uint8_t *row = convolve_row<uint8_t>(a, y);
            if (row && s >= 0 && s + 4 <= a.width * C)
                value = *reinterpret_cast<const uint32_t *>(row + s);
            else if (s < a.width * C + 4 * C)
                for (int e = 0; e < 4; e++)
                    value |= uint32_t{convolve_sample<uint8_t>(a, row, s + e)} << 8 * e;
        }
        tile[r][word] = value ^ 0x80808080u;
    }
}

// Add a row of taps to the sums of four pixels of one channel. left, own and right: the samples of
// the pixels and of their neighbours.
template <int SIDE>
GF_DEVICE void convolve_bytes_add(const uint32_t (&k)[4], uint32_t left, uint32_t own,
                                  uint32_t right, int (&s)[4]) {
    const uint32_t before = __byte_perm(left, own, 0x5432), after = __byte_perm(own, right, 0x5432);
    const auto dot = [](uint32_t v, uint32_t taps, int sum) {
        return __dp4a(static_cast<int>(v), static_cast<int>(taps), sum);
    };
    if constexpr (SIDE == 3) {
        s[0] = dot(before, k[1], s[0]);
        s[1] = dot(own, k[0], s[1]);
        s[2] = dot(own, k[1], s[2]);
        s[3] = dot(after, k[0], s[3]);
    } else {
        s[0] = dot(own, k[1], dot(before, k[0], s[0]));
        s[1] = dot(own, k[3], dot(before, k[2], s[1]));
        s[2] = dot(after, k[1], dot(own, k[0], s[2]));
        s[3] = dot(after, k[3], dot(own, k[2], s[3]));
    }
}

// Return N / scale, rounded to nearest even and clamped, for |N| < 2^22. The quotient is corrected
// as in vec_over_odd (core/vec.h). 1.5 * 2^23 + n has n in its low bits.
GF_DEVICE uint32_t convolve_bytes_finish(int n, float scale, float inverse) {
    const float two_23 = 12582912.0f;
    const int bits = 0x4b400000;
    const float x = __fsub_rn(__int_as_float(n + bits), two_23), q = __fmul_rn(x, inverse);
    const float quotient = __fmaf_rn(__fmaf_rn(-scale, q, x), inverse, q);
    const int result = __float_as_int(__fadd_rn(quotient, two_23)) - bits;
    return static_cast<uint32_t>(min(max(result, 0), 255));
}

// Store four pixels. own: their samples minus 128, for alpha. valid: pixels before the end of the
// row.
template <int C>
GF_DEVICE void convolve_bytes_store(const convolve_bytes_args &a, const int (&s)[C][4],
                                    const uint32_t *own, uint8_t *to, int64_t valid) {
    uint32_t bits[4 * C], words[C];
#pragma unroll
    for (int i = 0; i < 4 * C; i++)
        bits[i] = convolve_bytes_finish(s[i % C][i / C], a.scale, a.inverse);
    gf_pack_samples<uint8_t, 4 * C>(bits, words);
    if (C % 2 == 0 && a.all.alpha) {
        const uint32_t mask = C == 2 ? 0xff00ff00u : 0xff000000u;
#pragma unroll
        for (int w = 0; w < C; w++)
            words[w] = (words[w] & ~mask) | ((own[w] ^ 0x80808080u) & mask);
    }
    if (valid >= 4) {
#pragma unroll
        for (int w = 0; w < C; w++)
            reinterpret_cast<uint32_t *>(to)[w] = words[w];
        return;
    }
#pragma unroll
    for (int i = 0; i < 4 * C; i++)
        if (i < valid * C)
            to[i] = static_cast<uint8_t>(words[i / 4] >> i % 4 * 8);
}

// Compute tiles of 128 x 64 pixels.
// Grid: one block per tile, up to 2^30 blocks; blocks loop over further tiles. Block: four warps. A
// lane computes four adjacent pixels, and walks down 16 rows: it reads each row of its windows once
// and adds it to the sums of SIDE output rows. Shared memory: 34 KB at most (C = 4), 27 KB for RGB.
// Reads each sample 1.1 times, writes it once. Tail: single bytes at the end of a row.
template <int SIDE, int C>
__global__ void __launch_bounds__(32 * convolve_bytes_policy::WARPS)
    convolve_bytes(convolve_bytes_args a) {
    typedef convolve_bytes_policy Policy;
    static_assert((Policy::ROWS + SIDE - 1) % SIDE == 0, "the sums must rotate completely");
    __shared__ __align__(16) uint32_t tile[Policy::WARPS * Policy::ROWS + SIDE - 1][34 * C];
    const int lane = threadIdx.x % 32, r0 = threadIdx.x / 32 * Policy::ROWS;
    gf_wait_for_stream();
    for (uint64_t index = blockIdx.x; index < a.all.tiles; index += gridDim.x) {
        const uint64_t down = index / a.all.tiles_per_row;
        const uint64_t skipped = down * Policy::WARPS * Policy::ROWS; // output rows
        const int64_t x =
            static_cast<int64_t>(index - down * a.all.tiles_per_row) * Policy::PIXELS + 4 * lane;
        __syncthreads();
        convolve_bytes_load<SIDE, C>(a.all, static_cast<int64_t>(a.all.out.y0 + skipped),
                                     (x - 4 * lane) * C, tile);
        __syncthreads();
        uint8_t *out = a.all.out.data + (skipped + r0) * a.all.out.stride + x * C;
        int sums[SIDE][C][4] = {};
#pragma unroll 1
        for (int first = 0; first < Policy::ROWS + SIDE - 1; first += SIDE)
#pragma unroll
            for (int u = 0; u < SIDE; u++) {
                const uint32_t *words = tile[r0 + first + u] + lane * C;
                uint32_t group[3][C];
#pragma unroll
                for (int g = 0; g < 3; g++)
                    gf_load_words<4 * C>(group[g],
                                         reinterpret_cast<const unsigned char *>(words + g * C));
#pragma unroll
                for (int c = 0; c < C; c++) {
                    const uint32_t left = gf_channel_word<C>(group[0], c),
                                   own = gf_channel_word<C>(group[1], c),
                                   right = gf_channel_word<C>(group[2], c);
#pragma unroll
                    for (int p = 0; p < 4; p++)
                        sums[u][c][p] = a.start;
#pragma unroll
                    for (int k = 0; k < SIDE; k++) // of output row first + u - k
                        convolve_bytes_add<SIDE>(a.taps[k], left, own, right,
                                                 sums[(u - k + SIDE) % SIDE][c]);
                }
                const int done = first + u - (SIDE - 1);
                if (done >= 0 && skipped + r0 + done < a.all.out.rows)
                    convolve_bytes_store<C>(a, sums[(u + 1) % SIDE],
                                            tile[r0 + done + SIDE / 2] + (lane + 1) * C,
                                            out + done * a.all.out.stride, a.all.width - x);
            }
    }
}

// ---- launch -------------------------------------------------------------------------------------

// Set the arguments of convolve_bytes. Return the side of the square that contains the taps, 3 or
// 5; 0: the kernel cannot compute the strip.
static int convolve_bytes_set(const gf_convolve_plan *plan, convolve_bytes_args *a) {
    const gf_rows &in = a->all.in, &out = a->all.out;
    const uintptr_t address = reinterpret_cast<uintptr_t>(in.data) | in.stride |
                              reinterpret_cast<uintptr_t>(out.data) | out.stride;
    double bound = fabs(plan->offset * plan->scale), sum = 0;
    int radius = 1;
    for (uint32_t i = 0; i < plan->count; i++) {
        const gf_convolve_tap &tap = plan->taps[i];
        radius = std::max({radius, abs(tap.x), abs(tap.y)});
        if (fabs(tap.weight) > 127)
            return 0;
        bound += 255 * fabs(tap.weight);
        sum += tap.weight;
    }
    if (plan->head.in.type != GF_U8 || plan->form != GF_CONVOLVE_SINGLE || address % 4 != 0 ||
        radius > 2 || bound >= 4194304) // 2^22
        return 0;
    a->start = static_cast<int>(plan->offset * plan->scale + 128 * sum);
    a->scale = static_cast<float>(plan->scale);
    a->inverse = 1 / a->scale;
    for (uint32_t i = 0; i < plan->count; i++) {
        const gf_convolve_tap &tap = plan->taps[i];
        const uint32_t k = static_cast<uint8_t>(static_cast<int8_t>(tap.weight));
        uint32_t *row = a->taps[tap.y + radius];
        const int x = tap.x + radius;
        if (radius == 1) {
            row[0] |= k << 8 * x;
            row[1] |= k << 8 * (x + 1);
        } else {
            row[x < 4 ? 0 : 1] |= k << 8 * (x < 4 ? x : 2);
            row[x < 3 ? 2 : 3] |= k << 8 * (x < 3 ? x + 1 : x - 1);
        }
    }
    return 2 * radius + 1;
}

static unsigned convolve_grid(convolve_args *a, uint64_t pixels, uint64_t rows) {
    a->tiles_per_row = gf_divide_up(static_cast<uint64_t>(a->width), pixels);
    a->tiles = a->tiles_per_row * gf_divide_up(a->out.rows, rows);
    return gf_blocks(a->tiles, 1);
}

template <typename T, bool WIDE>
static void convolve_launch_tiles(convolve_args a, gf_queue *queue) {
    typedef convolve_policy Policy;
    const size_t samples = static_cast<size_t>(Policy::PIXELS + a.kernel_width - 1) * a.channels;
    const size_t rows = static_cast<size_t>(Policy::ROWS + a.kernel_height - 1);
    const unsigned grid = convolve_grid(&a, Policy::PIXELS, Policy::ROWS);
    gf_launch_kernel(convolve_tiles<T, WIDE>, grid, Policy::THREADS,
                     samples * rows * sizeof(uint32_t), queue, a);
}

static void convolve_launch(const gf_plan *head, const gf_strip *strip, void *, gf_queue *queue) {
    const gf_convolve_plan *plan = reinterpret_cast<const gf_convolve_plan *>(head);
    convolve_bytes_args a = {};
    a.all.in = strip->in[0];
    a.all.out = strip->out;
    a.all.width = static_cast<int64_t>(head->in.width);
    a.all.height = static_cast<int64_t>(head->in.height);
    a.all.channels = head->in.channels;
    a.all.alpha = gf_has_alpha(&head->in);
    a.all.edge = plan->edge;
    a.all.kernel_width = static_cast<int32_t>(plan->width);
    a.all.kernel_height = static_cast<int32_t>(plan->height);
    a.all.count = plan->count;
    a.all.taps = static_cast<const gf_convolve_tap *>(strip->constants);
    a.all.divisor = static_cast<float>(plan->scale);
    if (plan->form == GF_CONVOLVE_REAL) {
        a.all.first = plan->count > 0 ? -0.0f : 0.0f; // fma(k, v, -0) is fl(k * v)
        a.all.offset = static_cast<float>(plan->offset);
    } else {
        a.all.scale = static_cast<int64_t>(plan->scale);
        a.all.start = static_cast<int64_t>(plan->offset) * a.all.scale;
        a.all.first = static_cast<float>(a.all.start);
    }
    const int side = convolve_bytes_set(plan, &a);
    if (side > 0) {
        typedef convolve_bytes_policy Policy;
        const unsigned grid = convolve_grid(&a.all, Policy::PIXELS, Policy::WARPS * Policy::ROWS);
        gf_channels{head->in.channels}([&](auto c) {
            gf_launch_kernel(side == 3 ? convolve_bytes<3, c> : convolve_bytes<5, c>, grid,
                             32 * Policy::WARPS, 0, queue, a);
        });
        return;
    }
    gf_for_type(head->in.type, [&](auto sample) {
        typedef decltype(sample) T;
        if (plan->form == GF_CONVOLVE_REAL || plan->form == GF_CONVOLVE_SINGLE)
            convolve_launch_tiles<T, false>(a.all, queue);
        else if constexpr (sizeof(T) < sizeof(float))
            convolve_launch_tiles<T, true>(a.all, queue);
    });
}

extern "C" const gf_filter_cuda gf_convolve_cuda = {nullptr, convolve_launch, nullptr, false};
