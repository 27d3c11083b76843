// Medians of 3 x 3, 5 x 5 and 7 x 7 pixels, by sorting networks in registers.
//
// Each operation on a word orders two pairs of integers, or one pair of f32. A byte is compared as
// the high byte of 16 bits, whatever is in the low byte: that only decides between equal bytes.
#include "cuda/percentile/device.cuh"
#include "cuda/window/march.cuh"

#include "percentile/networks.h"

// ---- operations ---------------------------------------------------------------------------------

template <typename T> GF_DEVICE uint32_t percentile_max(uint32_t a, uint32_t b) {
    if constexpr (sizeof(T) == 4)
        return max(static_cast<int32_t>(a), static_cast<int32_t>(b));
    else
        return __vmaxu2(a, b);
}

// One instruction.
template <typename T> GF_DEVICE uint32_t percentile_max(uint32_t a, uint32_t b, uint32_t c) {
    return percentile_max<T>(percentile_max<T>(a, b), c);
}

// Return a * b + c. The factors must not be constants, for which the compiler adds on the unit that
// also computes minima.
GF_DEVICE uint32_t percentile_multiply_add(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result;
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

// Order two words. low, high: whether the minimum and the maximum are needed. If both are, the
// maximum is also the sum without the minimum, carries included: the multiplier computes half
// of them so, while the unit for minima does the rest.
template <typename T>
GF_DEVICE void percentile_order(uint32_t &a, uint32_t &b, const percentile_args &args, int turn,
                                bool low = true, bool high = true) {
    const uint32_t least = percentile_min<T>(a, b);
    if (low && high && turn % 2 != 0)
        b = percentile_multiply_add(least, args.minus_one, percentile_multiply_add(a, args.one, b));
    else
        b = percentile_max<T>(a, b);
    a = least;
}

// Merge sorted sequences of A and B words, which are SA and SB words apart (Batcher). Only words
// FROM to TO - 1 of the result are valid.
template <typename T, int A, int B, int FROM = 0, int TO = A + B, int SA = 1, int SB = 1>
GF_DEVICE void percentile_merge(const uint32_t *a, const uint32_t *b, uint32_t *out,
                                const percentile_args &args) {
    if constexpr (A == 0 || B == 0) {
#pragma unroll
        for (int i = FROM; i < TO; i++)
            out[i] = A > 0 ? a[i * SA] : b[i * SB];
    } else if constexpr (A == 1 && B == 1) {
        out[0] = a[0], out[1] = b[0];
        percentile_order<T>(out[0], out[1], args, 1, FROM == 0, TO == 2);
    } else {
        constexpr int EVEN = (A + 1) / 2 + (B + 1) / 2, ODD = A / 2 + B / 2;
        constexpr int BEGIN = FROM > 0 ? (FROM - 1) / 2 : 0, END = TO / 2;
        uint32_t even[EVEN], odd[ODD];
        percentile_merge<T, (A + 1) / 2, (B + 1) / 2, (FROM > 0 ? BEGIN + 1 : 0),
                         (END < EVEN ? END + 1 : EVEN), 2 * SA, 2 * SB>(a, b, even, args);
        percentile_merge<T, A / 2, B / 2, BEGIN, (END < ODD ? END : ODD), 2 * SA, 2 * SB>(
            a + SA, b + SB, odd, args);
        out[0] = even[0];
#pragma unroll
        for (int i = BEGIN; 2 * i + 1 < TO; i++) {
            const int n = 2 * i + 1;
            out[n] = i < ODD ? odd[i] : even[i + 1];
            if (i >= ODD || i + 1 >= EVEN)
                continue;
            out[n + 1] = even[i + 1];
            percentile_order<T>(out[n], out[n + 1], args, i, n >= FROM, n + 1 < TO);
        }
    }
}

// Return the word in the middle of three: their sum without the least and the greatest one.
template <typename T, bool MULTIPLY>
GF_DEVICE uint32_t percentile_middle(uint32_t a, uint32_t b, uint32_t c,
                                     const percentile_args &args) {
    const uint32_t low = percentile_min<T>(a, b, c), high = percentile_max<T>(a, b, c);
    if (!MULTIPLY)
        return a + b + c - low - high;
    const uint32_t sum =
        percentile_multiply_add(a, args.one, percentile_multiply_add(b, args.one, c));
    return percentile_multiply_add(low, args.minus_one,
                                   percentile_multiply_add(high, args.minus_one, sum));
}

// Sort 4 or 6 words: both halves, and merge these.
template <typename T, int N>
GF_DEVICE void percentile_sort(uint32_t *v, const percentile_args &args) {
    uint32_t half[N];
#pragma unroll
    for (int i = 0; i < N; i += N / 2) {
        half[i] = v[i], half[i + 1] = v[i + 1];
        if constexpr (N == 4) {
            percentile_order<T>(half[i], half[i + 1], args, 1);
        } else {
            half[i] = percentile_min<T>(v[i], v[i + 1], v[i + 2]);
            half[i + 1] = percentile_middle<T, true>(v[i], v[i + 1], v[i + 2], args);
            half[i + 2] = percentile_max<T>(v[i], v[i + 1], v[i + 2]);
        }
    }
    percentile_merge<T, N / 2, N / 2>(half, half + N / 2, v, args);
}

// ---- walks down tiles ---------------------------------------------------------------------------

// A block walks down a tile, whose windows have a radius of R: of medians, 1. A thread computes W
// words of each row. SHIFT: bytes between neighbours. FORMS: words computed per word: each has some
// of the samples in high bytes. KEPT: words of these that are kept of a row.
template <typename Sample, int CHANNELS, int RADIUS, bool IS_MEDIAN>
struct percentile_march_policy {
    typedef Sample T;
    static constexpr bool MEDIAN = IS_MEDIAN;
    static constexpr int C = CHANNELS, R = RADIUS, SHIFT = C * sizeof(T);
    static constexpr int H = (R * SHIFT + 3) / 4; // words of a halo
    static constexpr int W = sizeof(T) == 4 && H > 2 ? 4 : 2, ALL = W + 2 * H;
    static constexpr int FORMS = sizeof(T) == 1 ? 2 : 1, KEPT = MEDIAN ? 3 : 1;
    static constexpr int THREADS = 256, BLOCKS = W == 2 ? 3 : 2, MIN_STEPS = 4;
    static constexpr int ROWS = 8, AHEAD = 2; // rows and number of the steps that are loaded
    static constexpr int MAIN = THREADS * W / 4, HALO = (H + 3) / 4, STRIDE = (MAIN + 2 * HALO) | 1;
    typedef gf_window_shape<T, MAIN, HALO, STRIDE, ROWS, THREADS> Window;
};

struct percentile_march_args : percentile_args, gf_shares {};

template <typename Policy> struct percentile_march_shared {
    uint4 in[Policy::AHEAD + 1][Policy::ROWS * Policy::STRIDE];
    gf_window_tile<typename Policy::Window> tile;
};

template <int N> struct alignas(4 * N) percentile_words { uint32_t at[N]; };

// The rows that a thread has read in a step, and the 2 R before them: of each sample and its
// neighbours along x, the least one, or the low, middle and high one.
template <typename Policy> struct percentile_rows {
    typedef typename Policy::T T;
    typedef percentile_words<Policy::W> Words;
    static constexpr int W = Policy::W, H = Policy::H, R = Policy::R, FORMS = Policy::FORMS;
    static constexpr int ROWS = Policy::ROWS, KEPT = Policy::KEPT, ALL = Policy::ALL;
    static constexpr bool KEYS = !Policy::MEDIAN || sizeof(T) == 4; // else samples
    uint32_t kept[W * FORMS][KEPT][ROWS + 2 * R];
    uint32_t own[W][ROWS + R]; // alpha

    // Return form f of the word at a byte of w. The low bytes of form 0 do not matter.
    static __device__ __forceinline__ uint32_t form(const uint32_t *w, int at, int f) {
        if (FORMS == 2 && f == 0 && at % 4 == 0)
            return w[at / 4] << 8;
        at -= FORMS == 2 && f == 0;
        return at % 4 == 0 ? w[at / 4] : __funnelshift_r(w[at / 4], w[at / 4 + 1], at % 4 * 8);
    }

    // Return the least of the words that get(0) to get(2 R) return.
    template <typename Get> static __device__ __forceinline__ uint32_t least(Get get) {
        uint32_t result = get(0);
#pragma unroll
        for (int i = 1; i < 2 * R; i += 2)
            result = percentile_min<T>(result, get(i), get(i + 1));
        return result;
    }

    // Add row r of the step, and return the median of the window that ends with it.
    static __device__ __forceinline__ uint32_t median(const percentile_args &a, uint32_t x,
                                                      uint32_t y, uint32_t z,
                                                      uint32_t (*rows)[ROWS + 2 * R], int r) {
        uint32_t *l = rows[0] + r, *m = rows[KEPT / 2] + r, *h = rows[KEPT - 1] + r;
        l[2] = percentile_min<T>(x, y, z);
        m[2] = percentile_middle<T, true>(x, y, z, a);
        h[2] = percentile_max<T>(x, y, z);
        return percentile_middle<T, true>(percentile_max<T>(l[0], l[1], l[2]),
                                          percentile_middle<T, false>(m[0], m[1], m[2], a),
                                          percentile_min<T>(h[0], h[1], h[2]), a);
    }

    // Add row r of the step, at `from` in shared memory, and return the results R rows before it.
    __device__ __forceinline__ Words add(const percentile_march_args &a, const uint32_t *from,
                                         int r) {
        Words out = *reinterpret_cast<const Words *>(from);
        uint32_t w[ALL];
#pragma unroll
        for (int i = 0; i < ALL; i++) {
            w[i] = i >= H && i < H + W ? out.at[i - H] : from[i - H];
            if (KEYS)
                w[i] = percentile_key_word<T>(a, w[i]);
        }
#pragma unroll
        for (int k = 0; k < W; k++) {
            uint32_t result[FORMS];
#pragma unroll
            for (int f = 0; f < FORMS; f++) {
                uint32_t(*rows)[ROWS + 2 * R] = kept[k * FORMS + f];
                const auto get = [&](int i) {
                    return form(w, 4 * (H + k) + (i - R) * Policy::SHIFT, f);
                };
                if constexpr (Policy::MEDIAN) {
                    result[f] = median(a, get(0), get(1), get(2), rows, r);
                } else {
                    rows[0][r + 2 * R] = least(get);
                    result[f] = least([&](int i) { return rows[0][r + i]; });
                }
            }
            uint32_t word =
                FORMS == 2 ? __byte_perm(result[0], result[FORMS - 1], 0x7351) : result[0];
            if (KEYS)
                word = percentile_sample_word<T>(a, word);
            if (Policy::C % 2 == 0 && a.alpha) {
                uint32_t mask = 0; // of samples of the last channel
#pragma unroll
                for (int b = 0; b < 4; b++)
                    if ((4 * k + b) / sizeof(T) % Policy::C == Policy::C - 1)
                        mask |= 0xffu << 8 * b;
                own[k][r + R] = out.at[k];
                word = (word & ~mask) | (own[k][r] & mask);
            }
            out.at[k] = word;
        }
        return out;
    }

    // Keep the last rows for the next step.
    __device__ __forceinline__ void keep() {
#pragma unroll
        for (int i = 0; i < 2 * R; i++)
#pragma unroll
            for (int n = 0; n < W * FORMS * KEPT; n++)
                kept[n / KEPT][n % KEPT][i] = kept[n / KEPT][n % KEPT][ROWS + i];
#pragma unroll
        for (int i = 0; i < R; i++)
#pragma unroll
            for (int k = 0; k < W; k++)
                own[k][i] = own[k][ROWS + i];
    }
};

// Compute medians of 3 x 3 pixels, or minima. Block: 256 threads. Shared memory: 59 to 110 KB.
template <typename Policy>
__global__ void __launch_bounds__(Policy::THREADS, Policy::BLOCKS)
    percentile_march(const __grid_constant__ percentile_march_args a) {
    typedef percentile_words<Policy::W> Words;
    typedef std::conditional_t<sizeof(typename Policy::T) == 4, uint32_t, typename Policy::T> Bits;
    constexpr int SIZE = sizeof(Bits), BYTES = sizeof(Words), R = Policy::R;
    constexpr int ROWS = Policy::ROWS, AHEAD = Policy::AHEAD, STAGE = ROWS * Policy::STRIDE;
    extern __shared__ uint4 percentile_shared[];
    percentile_march_shared<Policy> *const shared =
        reinterpret_cast<percentile_march_shared<Policy> *>(percentile_shared);
    gf_share_each<1>(a, blockIdx.x, [&](uint64_t tile, uint64_t step, uint64_t n) {
        gf_wait_for_stream();
        const int64_t left = static_cast<int64_t>(tile) * Policy::MAIN * 16;
        const int64_t first = static_cast<int64_t>(step) * ROWS; // of the strip
        const int64_t stop = min(first + static_cast<int64_t>(n) * ROWS, a.rows);
        const int64_t offset = left + threadIdx.x * BYTES, rest = a.in.row_bytes - offset;
        const int rows = static_cast<int>(stop - first) + 2 * R, steps = (rows + ROWS - 1) / ROWS;
        // Whole steps are loaded, if the strip has these rows.
        const int64_t top = a.first + first - R;
        const int64_t bottom = min(top + steps * ROWS, a.first + a.rows + R) - 1;
        auto loader = gf_march_start<AHEAD>(a, shared, left / SIZE, top, bottom, R, steps);
        unsigned char *to = a.out + (first - 2 * R) * static_cast<int64_t>(a.out_stride) + offset;
        percentile_rows<Policy> state = {};
        for (int s = 0, y = 0, stage = 0; s < steps; s++) {
            const int next = stage < AHEAD ? stage + 1 : 0, last = stage > 0 ? stage - 1 : AHEAD;
            gf_march_step<AHEAD>(a, shared, &loader, s, steps, last * STAGE, next * STAGE);
            const uint32_t *from =
                reinterpret_cast<const uint32_t *>(shared->in[stage] + Policy::HALO) +
                threadIdx.x * Policy::W;
            stage = next;
#pragma unroll
            for (int r = 0; r < ROWS; r++, y++, from += 4 * Policy::STRIDE, to += a.out_stride) {
                if (y >= rows)
                    break;
                const Words out = state.add(a, from, r);
                if (y < 2 * R)
                    continue;
                if (rest >= BYTES)
                    *reinterpret_cast<Words *>(to) = out;
                else
#pragma unroll
                    for (int i = 0; i < BYTES; i += SIZE)
                        if (i < rest)
                            *reinterpret_cast<Bits *>(to + i) =
                                static_cast<Bits>(out.at[i / 4] >> i % 4 * 8);
            }
            state.keep();
        }
    });
}

// Queue the kernel. Returns false if the device has too little shared memory.
template <typename Policy>
static bool percentile_launch_policy(const percentile_args &args, gf_queue *queue) {
    constexpr size_t shared = sizeof(percentile_march_shared<Policy>);
    percentile_march_args a = {args, {}};
    gf_shares_set<Policy::MIN_STEPS>(&a, static_cast<uint64_t>(a.in.row_bytes), Policy::MAIN * 16,
                                     static_cast<uint64_t>(a.rows), Policy::ROWS,
                                     gf_sm_count() * Policy::BLOCKS);
    const bool launched = gf_allow_shared<percentile_march<Policy>>(shared);
    if (launched)
        gf_launch_kernel(percentile_march<Policy>, dim3(a.blocks), Policy::THREADS, shared, queue,
                         a);
    return launched;
}

bool percentile_launch_march(const percentile_args &a, gf_type type, bool median, gf_queue *queue) {
    bool launched = false;
    gf_dispatch(
        [&](auto sample, auto channels, auto radius) {
            typedef decltype(sample) T;
            if (!median)
                launched =
                    percentile_launch_policy<percentile_march_policy<T, channels, radius, false>>(
                        a, queue);
            else if constexpr (radius == 1)
                launched = percentile_launch_policy<percentile_march_policy<T, channels, 1, true>>(
                    a, queue);
        },
        gf_type_of{type}, gf_channels{static_cast<uint32_t>(a.in.channels)},
        gf_number<1, GF_PERCENTILE_MAX_NETWORK>{static_cast<uint32_t>(a.radius[0])});
    return launched;
}

// ---- 5 x 5 and 7 x 7 ----------------------------------------------------------------------------

// A block computes a tile of 128 pixels and ROWS rows of words. The words are in shared memory, one
// plane per channel; integers of row r are in the low half of a word, those of row r + ROWS in the
// high half. A thread computes N pixels of two rows.
template <typename Sample, int SIDE> struct percentile_network_policy {
    typedef Sample T;
    static constexpr int K = SIDE, R = K / 2, N = 8, WIDTH = 128, ACROSS = WIDTH / N;
    static constexpr int THREADS = 128, BLOCKS = 4;
    static constexpr int DOWN = 32 / ACROSS * 2;              // rows of a warp
    static constexpr int LANES = 64, LINES = THREADS / LANES; // that load a row; rows
    static constexpr int UNIT = 8 / sizeof(T);                // samples of 8 bytes
    static constexpr int HALVES = sizeof(T) < 4 ? 2 : 1;
    // Rows of words, and of results.
    static constexpr int ROWS = THREADS / 32 * DOWN, HEIGHT = HALVES * ROWS;
    static constexpr int IN = ROWS + 2 * R, COUNT = (IN + LINES - 1) / LINES; // of these per thread
    // A row has 8 pixels on each side of the tile, which makes 8 bytes of memory whole. Pixels p, p
    // + N, p + 2 N, ... are neighbours. Loads have no bank conflicts, stores few.
    static constexpr int GROUPS = (WIDTH + 16) / N, PART = 19, STRIDE = N * PART;
    static constexpr int PLANE = IN * STRIDE + 17;
    static constexpr int LINE = 4 * WIDTH; // samples of a row of results, at most
};

// Replace the first two of n wires by medians of them (networks.h).
template <typename T, int K> GF_DEVICE void percentile_two_medians(uint32_t *w, int n) {
    const auto low = [&](auto... i) { w[n++] = percentile_min<T>(w[i]...); };
    const auto high = [&](auto... i) { w[n++] = percentile_max<T>(w[i]...); };
#define LO(...) low(__VA_ARGS__);
#define HI(...) high(__VA_ARGS__);
    if constexpr (K == 5) {
        GF_TWO_MEDIANS_5(LO, HI)
    } else {
        GF_TWO_MEDIANS_7(LO, HI)
    }
#undef LO
#undef HI
    w[0] = w[n - 2], w[1] = w[n - 1];
}

// Compute the medians of N windows in two rows. get(d, j): word of column d and row j of the first
// window; put(i, y, word): result i of row y. Rows 1 to K - 1 are in the windows of both rows, and
// columns 1 to K - 1 in those of the first two pixels.
template <typename Policy, typename Get, typename Put>
GF_DEVICE void percentile_medians(const percentile_args &args, Get get, Put put) {
    typedef typename Policy::T T;
    constexpr int K = Policy::K, N = Policy::N, S = K - 1, COLUMNS = N + S, PAIRS = COLUMNS / 2 - 1;
    // Number of the first and the last word of K sorted columns that can be the median with K more
    // samples, and of S columns that can be in that range with S more.
    constexpr int FIRST = K * S - 1 - K * K / 2, LAST = K * K / 2;
    constexpr int FROM = FIRST - S, COUNT = LAST + 1 - FROM;
    constexpr int INPUTS = COUNT + 3 * S + 2;
    uint32_t column[COLUMNS][S], pair[PAIRS][2 * S], quad[4 * S], end[2][COLUMNS];
#pragma unroll
    for (int x = 0; x < N; x += 2) { // two pixels share S columns
#pragma unroll
        for (int d = x > 0 ? x + S : 0; d <= x + K; d++) {
            end[0][d] = get(d, 0), end[1][d] = get(d, K);
#pragma unroll
            for (int j = 0; j < S; j++)
                column[d][j] = get(d, j + 1);
            percentile_sort<T, S>(column[d], args);
            if (d % 2 == 0 && d > 0)
                percentile_merge<T, S, S>(column[d - 1], column[d], pair[d / 2 - 1], args);
        }
        uint32_t shared[S * S], row[2][S];
        if constexpr (K == 7) {
            if (x % 4 == 0)
                percentile_merge<T, 2 * S, 2 * S>(pair[x / 2 + 1], pair[x / 2 + 2], quad, args);
            percentile_merge<T, 4 * S, 2 * S, FROM, LAST + 1>(quad, pair[x / 2 + (x % 4 ? 2 : 0)],
                                                              shared, args);
        } else {
            percentile_merge<T, 2 * S, 2 * S, FROM, LAST + 1>(pair[x / 2], pair[x / 2 + 1], shared,
                                                              args);
        }
#pragma unroll
        for (int y = 0; y < 2; y++) {
#pragma unroll
            for (int i = 0; i < S; i++)
                row[y][i] = end[y][x + 1 + i];
            percentile_sort<T, S>(row[y], args);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int d = x + i * K; // the column that only this window has
            uint32_t w[96];
#pragma unroll
            for (int j = 0; j < INPUTS; j++) {
                const int k = j - COUNT, y = k / S - 1;
                w[j] = k < 0       ? shared[FROM + j]
                       : k < S     ? column[d][k]
                       : k < 3 * S ? row[y][k % S]
                                   : end[k - 3 * S][d];
            }
            percentile_two_medians<T, K>(w, INPUTS);
            put(x + i, 0, w[0]), put(x + i, 1, w[1]);
        }
    }
}

// Store the word of a sample i, counted from 8 pixels before the tile, of all its rows.
template <typename Policy>
GF_DEVICE uint32_t *percentile_place(uint32_t *words, unsigned channels, unsigned i) {
    const unsigned p = i * (65536 / channels + 1) >> 16; // i / channels: there are few
    return words + (i - p * channels) * Policy::PLANE + p % Policy::N * Policy::PART +
           p / Policy::N;
}

// Fill the samples of the rows of a tile that are not numbers `low` to `high` - 1: some are outside
// the image, or after the strip and not used. Not inlined: the registers of rare code would be
// taken from the code around it.
template <typename Policy>
static __device__ __noinline__ void percentile_fill_edge(const percentile_args &a, int64_t left,
                                                         int64_t top, int low, int high,
                                                         uint32_t *words) {
    typedef typename Policy::T T;
    __shared__ const T *rows[Policy::HALVES][Policy::IN];
    const int C = a.in.channels;
    const int64_t last = a.first + a.rows - 1 + Policy::R;
    for (int i = threadIdx.x; i < Policy::HALVES * Policy::IN; i += Policy::THREADS) {
        const int64_t y = top - Policy::R + i / Policy::IN * Policy::ROWS + i % Policy::IN;
        rows[0][i] = reinterpret_cast<const T *>(gf_window_row(a.in, y < last ? y : last));
    }
    __syncthreads();
    const T outside = static_cast<T>(a.in.edge.value);
    const int count = Policy::GROUPS * Policy::N * C - (high - low);
    for (int k = threadIdx.x % 32; k < count; k += 32) {
        const int i = k < low ? k : k + high - low;
        uint32_t *to = percentile_place<Policy>(words, C, i);
        const int64_t x = left - 8 + i / C;
        const int64_t inside = gf_edge_index(
            a.in.edge.mode, x < a.in.width + Policy::R ? x : a.in.width - 1, a.in.width);
        const int64_t at = inside * C + i % C;
#pragma unroll 4
        for (int r = threadIdx.x / 32; r < Policy::IN; r += Policy::THREADS / 32) {
            uint32_t word = 0;
#pragma unroll
            for (int h = 0; h < Policy::HALVES; h++) {
                const T *row = rows[h][r];
                word |= static_cast<uint32_t>(
                            percentile_key_of(row && inside >= 0 ? __ldg(row + at) : outside))
                        << 16 * h;
            }
            to[r * Policy::STRIDE] = sizeof(T) == 1 ? word * 0x101 : word; // as percentile_fill
        }
    }
}

// Fill samples `low` to `high` - 1 of the rows of a tile, which are inside the image.
template <typename Policy>
GF_DEVICE void percentile_fill(const percentile_args &a, int64_t left, int64_t top, int low,
                               int high, uint32_t *words) {
    typedef typename Policy::T T;
    constexpr int LANES = Policy::LANES, LINES = Policy::LINES, STRIDE = Policy::STRIDE;
    const int C = a.in.channels, line = threadIdx.x / LANES;
    const unsigned char *row =
        a.in.in + (top - Policy::R + line - a.in.first) * static_cast<int64_t>(a.in.stride) +
        (left - 8) * C * static_cast<int64_t>(sizeof(T));
    const int64_t step = LINES * static_cast<int64_t>(a.in.stride);
    for (int u = low / Policy::UNIT + threadIdx.x % LANES; u < high / Policy::UNIT; u += LANES) {
        uint2 v[Policy::COUNT][Policy::HALVES] = {};
        const unsigned char *from = row + 8 * u;
#pragma unroll
        for (int i = 0; i < Policy::COUNT; i++, from += step)
#pragma unroll
            for (int h = 0; h < Policy::HALVES; h++)
                if ((i + 1) * LINES <= Policy::IN || line + i * LINES < Policy::IN)
                    v[i][h] = __ldg(
                        reinterpret_cast<const uint2 *>(from + h * Policy::ROWS / LINES * step));
#pragma unroll
        for (int j = 0; j < Policy::UNIT; j++) {
            uint32_t *to = percentile_place<Policy>(words, C, u * Policy::UNIT + j) + line * STRIDE;
#pragma unroll
            for (int i = 0; i < Policy::COUNT; i++) {
                const bool second = j * sizeof(T) >= 4;
                const uint32_t low = second ? v[i][0].y : v[i][0].x;
                const uint32_t high =
                    second ? v[i][Policy::HALVES - 1].y : v[i][Policy::HALVES - 1].x;
                if ((i + 1) * LINES <= Policy::IN || line + i * LINES < Policy::IN)
                    to[i * LINES * STRIDE] =
                        sizeof(T) == 4   ? percentile_key_of(__uint_as_float(low))
                        : sizeof(T) == 2 ? __byte_perm(low, high, 0x5410 + 0x2222 * (j % 2))
                                         : __byte_perm(low, high, 0x4400 + 0x1111 * (j % 4));
            }
        }
    }
}

// Store the results of a warp, those of the words of rows y to y + DOWN - 1 of a tile.
template <typename Policy>
GF_DEVICE void percentile_store(const percentile_args &a, int64_t left, int64_t top, int y,
                                const typename Policy::T *results) {
    typedef typename Policy::T T;
    constexpr int EACH = 16 / sizeof(T), DOWN = Policy::DOWN;
    const int64_t width = (a.in.width - left) * a.in.channels, rest = a.first + a.rows - top - y;
    const int all = Policy::WIDTH * a.in.channels, n = width < all ? static_cast<int>(width) : all;
    const auto row_of = [](int i) { return i % DOWN + i / DOWN * Policy::ROWS; };
    T *const to = percentile_out<T>(a, top + y) + left * a.in.channels;
    const size_t stride = a.out_stride / sizeof(T);
    results += y * Policy::LINE;
    for (int at = threadIdx.x % 32 * EACH; at < n; at += 32 * EACH)
        if (at + EACH <= n) {
#pragma unroll
            for (int i = 0; i < DOWN * Policy::HALVES; i++)
                if (row_of(i) < rest)
                    *reinterpret_cast<uint4 *>(to + row_of(i) * stride + at) =
                        *reinterpret_cast<const uint4 *>(results + row_of(i) * Policy::LINE + at);
        } else {
#pragma unroll 1
            for (int i = 0; i < DOWN * Policy::HALVES && row_of(i) < rest; i++)
                for (int j = at; j < n; j++)
                    to[row_of(i) * stride + j] = results[row_of(i) * Policy::LINE + j];
        }
}

// Compute medians of K x K pixels. A warp computes two rows of words.
// Grid: tiles. Block: 256 threads. Shared memory: the results of a tile, and its words.
template <typename Policy>
__global__ void __launch_bounds__(Policy::THREADS, Policy::BLOCKS)
    percentile_network(const __grid_constant__ percentile_args a) {
    typedef typename Policy::T T;
    constexpr int R = Policy::R, N = Policy::N, ROWS = Policy::ROWS, LINE = Policy::LINE;
    if (gf_arch < 800) // never launched: too little shared memory
        return;
    extern __shared__ uint4 percentile_shared[];
    const int C = a.in.channels, lane = threadIdx.x % Policy::ACROSS;
    const int y = threadIdx.x / Policy::ACROSS * 2;
    // The tiles at the bottom take longer than others: they come first.
    const unsigned across = static_cast<unsigned>((a.in.width + Policy::WIDTH - 1) / Policy::WIDTH);
    const unsigned tile = (blockIdx.x + gridDim.x - across) % gridDim.x, down = tile / across;
    const int64_t left = static_cast<int64_t>(tile - down * across) * Policy::WIDTH;
    const int64_t top = a.first + static_cast<int64_t>(down) * Policy::HEIGHT;
    const int64_t bottom = top + Policy::HEIGHT + R;
    T *const results = reinterpret_cast<T *>(percentile_shared);
    uint32_t *const words = reinterpret_cast<uint32_t *>(results + Policy::HEIGHT * LINE);
    gf_wait_for_stream();
    // Samples of a row of the tile, and those of whole units inside the image.
    const int all = Policy::GROUPS * N * C, low = left > 0 ? 0 : 8 * C;
    const int64_t rest = (a.in.width - left + 8) * C;
    int high = rest < all ? static_cast<int>(rest) / Policy::UNIT * Policy::UNIT : all;
    if (top < R || bottom > min(a.in.height, a.first + a.rows + R))
        high = low;
    percentile_fill<Policy>(a, left, top, low, high, words);
    if (low > 0 || high < all)
        percentile_fill_edge<Policy>(a, left, top, low, high, words);
    __syncthreads();
    T *const to = results + y * LINE + lane * N * C;
#pragma unroll 1
    for (int i = 0; a.alpha && i < 2 * N * Policy::HALVES; i++) { // copy the last channel
        const int row = i / N % 2 + i / (2 * N) * ROWS, p = lane * N + i % N;
        if (left + p < a.in.width && top + y + row < a.first + a.rows)
            to[row * LINE + i % N * C + C - 1] = reinterpret_cast<const T *>(
                gf_window_row(a.in, top + y + row))[(left + p) * C + C - 1];
    }
    const uint32_t *from = words + y * Policy::STRIDE + lane;
#pragma unroll 1
    for (int c = 0; c < C - a.alpha; c++, from += Policy::PLANE) {
        const auto get = [&](int d, int j) {
            d += 8 - R;
            return from[j * Policy::STRIDE + d % N * Policy::PART + d / N];
        };
        const auto put = [&](int i, int row, uint32_t word) {
            T *at = to + i * C + c;
            at[row * LINE] =
                percentile_sample_of<T>(static_cast<typename percentile_key<T>::Type>(word));
            if constexpr (Policy::HALVES == 2)
                at[(row + ROWS) * LINE] = static_cast<T>(word >> 16);
        };
        percentile_medians<Policy>(a, get, put);
    }
    __syncwarp();
    percentile_store<Policy>(a, left, top, threadIdx.x / 32 * Policy::DOWN, results);
}

template <typename T, int K>
static bool percentile_launch_tile(const percentile_args &a, gf_queue *queue) {
    typedef percentile_network_policy<T, K> Policy;
    constexpr size_t results = Policy::HEIGHT * Policy::LINE * sizeof(T), plane = 4 * Policy::PLANE;
    const bool launched = gf_allow_shared<percentile_network<Policy>>(results + 4 * plane);
    if (launched)
        gf_launch_kernel(
            percentile_network<Policy>,
            dim3(gf_blocks(a.in.width, Policy::WIDTH) * gf_blocks(a.rows, Policy::HEIGHT)),
            Policy::THREADS, results + a.in.channels * plane, queue, a);
    return launched;
}

bool percentile_launch_network(const percentile_args &a, gf_type type, gf_queue *queue) {
    bool launched = false;
    gf_for_type(type, [&](auto sample) {
        typedef decltype(sample) T;
        launched = a.radius[0] == 1   ? percentile_launch_march(a, type, true, queue)
                   : a.radius[0] == 2 ? percentile_launch_tile<T, 5>(a, queue)
                                      : percentile_launch_tile<T, 7>(a, queue);
    });
    return launched;
}
