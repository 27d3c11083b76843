// convolve on CUDA.
//
//   kernel            used for
//   convolve_tiles    all plans
//   convolve_integer  u8, integer kernels of small elements, windows of up to 49 bytes
#include "cuda/window/march.cuh"

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

// ---- integer kernels on u8 ----------------------------------------------------------------------

// On tensor cores, as products of byte matrices: 16 rows x 8 columns of sums = 16 rows x 16 BLOCKS
// bytes of samples * taps of a row of the kernel, for each of its rows.

struct integer_policy {
    static constexpr int WARPS = 8, THREADS = 32 * WARPS;
    static constexpr int GROUPS = 4;             // of 16 columns per warp
    static constexpr int BLOCKS = 2;             // resident per SM
    static constexpr int UNITS = WARPS * GROUPS; // of 16 bytes per row of a tile
    static constexpr int STAGES = 5;             // of 16 rows in shared memory: two are in use
    static constexpr int AHEAD = STAGES - 2;     // stages that are loaded before they are used
    static constexpr int MIN_STEPS = 6;          // of 16 output rows per block
};

struct integer_args : gf_march {
    int width, height; // of the kernel
    int start;         // first value of a sum
    // Division of sums of at least 0 by `scale`, unless it is 1; `bias` is subtracted from the
    // quotient. If the scale is even, sums without a remainder are midpoints.
    uint32_t scale;
    int bias;
    gf_divider by;
    int8_t taps[GF_CONVOLVE_SIDE][GF_CONVOLVE_SIDE]; // by row
};

template <int BLOCKS> struct integer_shared {
    typedef integer_policy Policy;
    static constexpr int HALO = BLOCKS / 2; // units on each side of a tile
    // Odd strides: the 8 rows of a block are in different banks.
    static constexpr int STRIDE = (Policy::UNITS + 2 * HALO) | 1, OUT_STRIDE = Policy::GROUPS | 1;
    typedef gf_window_shape<uint8_t, Policy::UNITS, HALO, STRIDE, 16, Policy::THREADS> Shape;
    uint4 in[Policy::STAGES][16 * STRIDE];
    uint4 out[Policy::WARPS][16 * OUT_STRIDE];
    uint32_t taps[GF_CONVOLVE_SIDE][BLOCKS / 2][32][4]; // of a lane, for both halves of a group
    gf_window_tile<Shape> tile;
};

GF_DEVICE void integer_multiply(int (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    __trap(); // never launched
#endif
}

// Return the tap of a row of the kernel at a distance in bytes.
GF_DEVICE uint32_t integer_tap(const integer_args &a, int row, int distance) {
    const int at = distance + a.width / 2 * a.in.channels, i = at / a.in.channels;
    const bool one = at >= 0 && i * a.in.channels == at && i < a.width;
    return one ? static_cast<uint8_t>(a.taps[row][i]) : 0;
}

// Store the taps of all lanes. A lane 4g + t has bytes 4t to 4t + 3 of each block, for column g of
// each half of a group. The window of the first half begins HALO blocks before the group, that of
// the other one a block later.
template <int BLOCKS>
GF_DEVICE void integer_set_taps(const integer_args &a, integer_shared<BLOCKS> *shared) {
    const int words = a.height * (BLOCKS / 2) * 32 * 4;
    for (int i = threadIdx.x; i < words; i += integer_policy::THREADS) {
        const int half = i % 4 / 2, lane = i / 4 % 32, pair = i / 128 % (BLOCKS / 2);
        const int row = i / (64 * BLOCKS), block = 2 * pair + i % 2 + half - BLOCKS / 2;
        const int first = 16 * block + lane % 4 * 4 - (8 * half + lane / 4);
        shared->taps[row][pair][lane][i % 4] =
            gf_pack(integer_tap(a, row, first), integer_tap(a, row, first + 1),
                    integer_tap(a, row, first + 2), integer_tap(a, row, first + 3));
    }
}

// Return two results in bytes 0 and 1.
GF_DEVICE uint32_t integer_results(const integer_args &a, int x, int y) {
    const auto quotient = [&](int sum) {
        const uint32_t n = static_cast<uint32_t>(sum), q = gf_divide(n, a.by);
        const bool odd_midpoint = a.scale % 2 == 0 && q * a.scale == n && q % 2 == 1;
        return static_cast<int>(q) - a.bias - (odd_midpoint ? 1 : 0);
    };
    if (a.scale > 1) {
        x = quotient(x);
        y = quotient(y);
    }
    uint32_t bytes;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;\n" : "=r"(bytes) : "r"(y), "r"(x));
    return bytes;
}

// Compute output rows [y0, stop) of the tile that begins at byte `left`.
template <int BLOCKS>
GF_DEVICE void integer_tile(const integer_args &a, integer_shared<BLOCKS> *shared, int64_t left,
                            int64_t y0, int64_t stop) {
    typedef integer_shared<BLOCKS> Shared;
    typedef integer_policy Policy;
    constexpr int GROUPS = Policy::GROUPS, STAGE = 16 * Shared::STRIDE, OUT = Shared::OUT_STRIDE;
    constexpr int PAIRS = GROUPS + BLOCKS - 1, AHEAD = Policy::AHEAD;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int rows = static_cast<int>(stop - y0), steps = (rows + 15) / 16 + 1;
    const int above = a.height / 2, below = a.height - 1 - above;
    auto loader =
        gf_march_start<AHEAD>(a, shared, left, y0 - above, stop - 1 + below, a.width / 2, steps);
    uint4 *out = shared->out[warp];
    uint16_t *to_out = reinterpret_cast<uint16_t *>(out + g * OUT) + t;
    const int64_t begin = left + warp * GROUPS * 16;
    const int plain = begin + 16 * GROUPS <= a.in.row_bytes && a.own == ~0u ? rows - 16 : -1;
    unsigned char *to = a.out + begin + lane % GROUPS * 16 +
                        static_cast<size_t>(y0 - a.first + lane / GROUPS) * a.out_stride;
    // Address of the lane's row of a stage, and of its block of a pair.
    uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(
        shared->in[0] + lane % 16 * Shared::STRIDE + warp * GROUPS + lane / 16));
    asm volatile("" : "+r"(base));                   // not computed again in each step
    int before = 0, stage = 0, free = AHEAD * STAGE; // of the rows before, of this step, to load
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const auto next = [](int at) {
            return at == (Policy::STAGES - 1) * STAGE ? 0 : at + STAGE;
        };
        const int here = stage;
        stage = next(stage);
        gf_march_step<AHEAD>(a, shared, &loader, step, steps, free, stage);
        free = next(free);
        if (step == 0)
            continue;
        int sum[GROUPS][2][4];
#pragma unroll
        for (int i = 0; i < GROUPS * 8; i++)
            sum[i / 8][i / 4 % 2][i % 4] = a.start;
#pragma unroll 1
        for (int j = 0; j < a.height; j++) {
            const int row = lane % 16 + j, at = row < 16 ? before : here - 16 * Shared::STRIDE;
            const uint32_t from = base + 16 * (at + j * Shared::STRIDE);
            uint32_t b[PAIRS][4];
#pragma unroll
            for (int q = 0; q < PAIRS; q++)
                gf_load_blocks(b[q], from + 16 * q);
#pragma unroll
            for (int pair = 0; pair < BLOCKS / 2; pair++) {
                const uint4 taps = *reinterpret_cast<const uint4 *>(shared->taps[j][pair][lane]);
#pragma unroll
                for (int m = 0; m < GROUPS; m++) {
                    integer_multiply(sum[m][0], b[m + 2 * pair], taps.x, taps.y);
                    integer_multiply(sum[m][1], b[m + 1 + 2 * pair], taps.z, taps.w);
                }
            }
        }
        before = here;
#pragma unroll
        for (int i = 0; i < GROUPS * 4; i++) {
            const int m = i / 4, half = i / 2 % 2, down = i % 2;
            to_out[8 * (8 * down * OUT + m) + 4 * half] = static_cast<uint16_t>(
                integer_results(a, sum[m][half][2 * down], sum[m][half][2 * down + 1]));
        }
        __syncwarp();
        const int done = 16 * (step - 1); // output rows
        if (done <= plain) {
            const uint4 *from = out + lane / GROUPS * OUT + lane % GROUPS;
#pragma unroll
            for (int i = 0; i < GROUPS / 2; i++)
                *reinterpret_cast<uint4 *>(to + i * (32 / GROUPS) * a.out_stride) =
                    from[i * (32 / GROUPS) * OUT];
        } else {
            gf_march_store_edge<GROUPS>(a, out, y0 + done, rows - done < 16 ? rows - done : 16,
                                        begin);
        }
        to += 16 * a.out_stride;
        __syncwarp();
    }
    __pipeline_wait_prior(0);
}

// Compute a convolution of u8 with taps of one byte.
// Grid: resident blocks at most. Block: 256 threads. Shares of the work, tiles of 512 bytes, stages
// and stores are those of window_bytes. A warp computes 16 rows x 64 bytes in a step, from two
// stages. Reads each sample 1 + 2 * HALO / 16 times, mostly from the L2 cache, and writes it once.
// Shared memory: 71 KB at most. Registers: 128 at most (sm_90).
template <int BLOCKS>
__global__ void __launch_bounds__(integer_policy::THREADS, integer_policy::BLOCKS)
    convolve_integer(const __grid_constant__ integer_args a) {
    extern __shared__ uint4 memory[];
    integer_shared<BLOCKS> *shared = reinterpret_cast<integer_shared<BLOCKS> *>(memory);
    integer_set_taps(a, shared);
    gf_wait_for_stream();
    gf_march_each(a, blockIdx.x, integer_policy::UNITS,
                  [&](int64_t left, int64_t first, int64_t stop) {
                      integer_tile(a, shared, left, first, stop);
                  });
}

// Set the taps, and the division: of a sum N, the kernel computes (N + scale / 2 + bias * scale) /
// scale - bias in integers from 0 to 2^31. Returns false if a tap does not fit in a byte.
static bool integer_set(const gf_convolve_plan *plan, integer_args *a) {
    const int sign = plan->scale < 0 ? -1 : 1, scale = sign * static_cast<int>(plan->scale);
    int bound = sign * static_cast<int>(plan->offset * plan->scale);
    a->width = static_cast<int>(plan->width);
    a->height = static_cast<int>(plan->height);
    a->start = bound;
    bound = abs(bound);
    for (uint32_t i = 0; i < plan->count; i++) {
        const gf_convolve_tap &tap = plan->taps[i];
        const int k = sign * static_cast<int>(tap.weight);
        if (abs(k) > 127)
            return false;
        a->taps[tap.y + a->height / 2][tap.x + a->width / 2] = static_cast<int8_t>(k);
        bound += 255 * abs(k);
    }
    a->scale = static_cast<uint32_t>(scale);
    if (scale == 1)
        return true;
    a->bias = (bound / scale + 2) / 2 * 2; // even: quotients keep their parity
    a->start += scale / 2 + a->bias * scale;
    a->by = gf_divider_of(a->scale);
    return true;
}

// Queue convolve_integer. Returns false if it does not support the plan.
static bool integer_try(const gf_convolve_plan *plan, const gf_strip *strip, gf_queue *queue) {
    const uint32_t reach = plan->width / 2 * plan->head.in.channels; // bytes
    integer_args a = {};
    if (plan->head.in.type != GF_U8 || plan->form != GF_CONVOLVE_SINGLE || reach > 24 ||
        !integer_set(plan, &a))
        return false;
    const auto launch = [&](auto blocks) {
        return gf_march_launch<integer_policy, convolve_integer<blocks>>(
            &a, &plan->head, strip, plan->edge, sizeof(integer_shared<blocks>), queue);
    };
    return reach <= 8 ? launch(std::integral_constant<int, 2>{})
                      : launch(std::integral_constant<int, 4>{});
}

// ---- launch -------------------------------------------------------------------------------------

template <typename T, bool WIDE>
static void convolve_launch_tiles(convolve_args a, gf_queue *queue) {
    typedef convolve_policy Policy;
    const size_t samples = static_cast<size_t>(Policy::PIXELS + a.kernel_width - 1) * a.channels;
    const size_t rows = static_cast<size_t>(Policy::ROWS + a.kernel_height - 1);
    a.tiles_per_row = gf_divide_up(static_cast<uint64_t>(a.width), Policy::PIXELS);
    a.tiles = a.tiles_per_row * gf_divide_up(a.out.rows, Policy::ROWS);
    gf_launch_kernel(convolve_tiles<T, WIDE>, gf_blocks(a.tiles, 1), Policy::THREADS,
                     samples * rows * sizeof(uint32_t), queue, a);
}

static void convolve_launch(const gf_plan *head, const gf_strip *strip, void *, gf_queue *queue) {
    const gf_convolve_plan *plan = reinterpret_cast<const gf_convolve_plan *>(head);
    convolve_args a = {};
    if (integer_try(plan, strip, queue))
        return;
    a.in = strip->in[0];
    a.out = strip->out;
    a.width = static_cast<int64_t>(head->in.width);
    a.height = static_cast<int64_t>(head->in.height);
    a.channels = head->in.channels;
    a.alpha = gf_has_alpha(&head->in);
    a.edge = plan->edge;
    a.kernel_width = static_cast<int32_t>(plan->width);
    a.kernel_height = static_cast<int32_t>(plan->height);
    a.count = plan->count;
    a.taps = static_cast<const gf_convolve_tap *>(strip->constants);
    a.divisor = static_cast<float>(plan->scale);
    if (plan->form == GF_CONVOLVE_REAL) {
        a.first = plan->count > 0 ? -0.0f : 0.0f; // fma(k, v, -0) is fl(k * v)
        a.offset = static_cast<float>(plan->offset);
    } else {
        a.scale = static_cast<int64_t>(plan->scale);
        a.start = static_cast<int64_t>(plan->offset) * a.scale;
        a.first = static_cast<float>(a.start);
    }
    gf_for_type(head->in.type, [&](auto sample) {
        typedef decltype(sample) T;
        if (plan->form == GF_CONVOLVE_REAL || plan->form == GF_CONVOLVE_SINGLE)
            convolve_launch_tiles<T, false>(a, queue);
        else if constexpr (sizeof(T) < sizeof(float))
            convolve_launch_tiles<T, true>(a, queue);
    });
}

extern "C" const gf_filter_cuda gf_convolve_cuda = {nullptr, convolve_launch, nullptr, false};
