// Weighted sums of bytes along both axes on tensor cores: both passes in one kernel, window_bytes.
//
// Both passes are products of byte matrices. A Toeplitz matrix holds the taps of 16 outputs. Taps
// of two bytes are two matrices, high and low, as are the values between the passes.
//
//     x   16 columns x 8 rows = sum over 16 KX bytes of taps (16 x 16 KX) * samples (16 KX x 8)
//     y   16 rows x 8 columns = sum over 16 KB rows of taps (16 x 16 KB) * values (16 KB x 8)
//
// A lane 4g + t gets, of the products of x, columns g and g + 8 of rows 2t and 2t + 1. In the
// products of y, it must supply column g of 4 rows. The order of the rows in a sum is free if both
// matrices have the same one, so that a lane's own values of two products along x are its word of a
// product along y: no value moves between lanes. The order of the columns of a product along x is
// free, too. It is such that a lane gets 4 adjacent columns of the products along y.
//
// A Filter class defines the results:
//
//     Args                  arguments of the kernel; extends gf_bytes_args
//     WIDE                  whether taps have two bytes. The values between the passes are then
//                           bytes 1 and 2 of a sum along x plus 128, else bytes 0 and 1
//     START                 added to the sums along y. WIDE: 128, to the sums along x and, times
//                           2^16, to those along y
//     NARROW                whether the plan passes gf_bytes_narrow
//     word(args, s, ties)   4 adjacent results of sums along y. ties: of window_tile
#ifndef GF_BYTES_CUH
#define GF_BYTES_CUH

#include "cuda/window/march.cuh"

#define GF_BYTES_RADIUS 20 // maximum

// Tuning constants of window_bytes for KX blocks of 16 bytes and KB blocks of 16 rows per
// window. Sizes are in bytes. Wide windows keep more rows of each column in registers, so that a
// warp has fewer columns.
template <int KX, int KB> struct gf_bytes_policy {
    static constexpr bool WIDE = KX + KB > 7;
    static constexpr int WARPS = 8, THREADS = 32 * WARPS;
    static constexpr int GROUPS = WIDE ? 2 : 4;  // of 16 columns per warp
    static constexpr int BLOCKS = 2;             // resident per SM
    static constexpr int UNITS = WARPS * GROUPS; // of 16 bytes per row of a tile
    static constexpr int STAGES = 4;             // of 16 rows in shared memory
    static constexpr int MIN_STEPS = 6;          // of 16 output rows per block
};

// Taps by distance, from -GF_BYTES_RADIUS.
struct gf_bytes_window {
    int radius[2];
    uint16_t taps[2][2 * GF_BYTES_RADIUS + 1];
};

struct gf_bytes_args : gf_march, gf_bytes_window {};

// Return the tap at a distance, of samples that are `step` apart.
GF_BOTH uint32_t gf_bytes_tap(const gf_bytes_window &a, int axis, int step, int distance) {
    const int k = distance / step;
    const bool one = k * step == distance && k <= a.radius[axis] && -k <= a.radius[axis];
    return one ? a.taps[axis][k + GF_BYTES_RADIUS] : 0;
}

// Test whether the taps that have a high byte are in fewer blocks: not in the first and the last
// one along x, and not in the last one of 4 along y. Taps decrease from the center.
template <int KX, int KB> static inline bool gf_bytes_narrow(const gf_bytes_window &a, int step) {
    int reach[2] = {};
    for (int axis = 0; axis < 2; axis++)
        while (reach[axis] < a.radius[axis] &&
               a.taps[axis][GF_BYTES_RADIUS + reach[axis] + 1] > 255)
            reach[axis]++;
    return (KX == 3 || reach[0] * step <= 16 * (KX / 2 - 1)) &&
           (KB < 4 || a.radius[1] + reach[1] <= 32);
}

// ---- products -----------------------------------------------------------------------------------

// Compute to = from + taps * bytes, 32 or 16 of them per sum, with saturation.
GF_DEVICE void gf_bytes_multiply(uint32_t *to, const uint32_t *from, const uint32_t (&a)[2],
                                 const uint32_t (&c)[2], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(c[0]), "r"(c[1]), "r"(b0), "r"(b1), "r"(from[0]), "r"(from[1]),
          "r"(from[2]), "r"(from[3]));
#else
    __trap(); // never launched
#endif
}

GF_DEVICE void gf_bytes_multiply(uint32_t *to, const uint32_t *from, const uint32_t (&a)[2],
                                 uint32_t b0) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};\n"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]));
#else
    __trap();
#endif
}

// Compute sum = from + the product of blocks [FIRST, END) of 16 taps with get(block).
template <int FIRST, int END, int BLOCKS, typename Get>
GF_DEVICE void gf_bytes_product(uint32_t (&sum)[4], const uint32_t (&from)[4],
                                const uint32_t (&taps)[BLOCKS][2], Get get) {
#pragma unroll
    for (int k = FIRST; k + 1 < END; k += 2)
        gf_bytes_multiply(sum, k == FIRST ? from : sum, taps[k], taps[k + 1], get(k), get(k + 1));
    if constexpr ((END - FIRST) % 2 == 1)
        gf_bytes_multiply(sum, sum, taps[END - 1], get(END - 1));
}

// ---- taps ---------------------------------------------------------------------------------------

// The taps of a lane: of two rows of a Toeplitz matrix, 4 adjacent bytes per block of 16.
template <int BLOCKS> struct gf_bytes_taps { uint32_t high[BLOCKS][2], low[BLOCKS][2]; };

// at(block, half, byte): distance from output to input.
template <int BLOCKS, typename At>
GF_DEVICE void gf_bytes_set_taps(const uint16_t *table, gf_bytes_taps<BLOCKS> *taps, At at) {
#pragma unroll
    for (int block = 0; block < BLOCKS; block++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t tap[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                tap[i] = table[128 + at(block, half, i)];
            taps->low[block][half] = gf_pack(tap[0], tap[1], tap[2], tap[3]);
            taps->high[block][half] = gf_pack(tap[0] >> 8, tap[1] >> 8, tap[2] >> 8, tap[3] >> 8);
        }
}

// ---- passes -------------------------------------------------------------------------------------

template <int KX, int KB> struct gf_bytes_shared {
    typedef gf_bytes_policy<KX, KB> Policy;
    static constexpr int HALO = KX / 2; // units on each side of a tile
    static constexpr int UNITS = Policy::UNITS + 2 * HALO;
    // Odd strides: the 8 rows of a block are in different banks.
    static constexpr int STRIDE = UNITS | 1, OUT_STRIDE = Policy::GROUPS | 1;
    typedef gf_window_shape<uint8_t, Policy::UNITS, HALO, STRIDE, 16, Policy::THREADS> Shape;
    uint4 in[Policy::STAGES][16 * STRIDE];
    uint4 out[Policy::WARPS][16 * OUT_STRIDE];
    // Values of the blocks of rows before the newest one: of a lane, its four words of a group.
    uint32_t values[Policy::WARPS][KB - 1][Policy::GROUPS][4][32];
    uint16_t taps[2][256]; // by distance, from -128
    gf_window_tile<Shape> tile;
};

// Compute 16 columns x 8 rows of sums along x. half: 128. product(to, from, high): add the product
// with the high or the low bytes of the taps.
template <bool WIDE, typename Product>
GF_DEVICE void gf_bytes_along_x(const uint32_t (&half)[4], uint32_t (&sum)[4], Product product) {
    const uint32_t zero[4] = {};
    product(sum, WIDE ? half : zero, false);
    if constexpr (WIDE) {
        uint32_t top[4];
        product(top, zero, true);
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] += top[i] * 256;
    }
}

// Convert the sums along x of 16 rows. value: [first or last 8 columns][high or low bytes].
template <bool WIDE>
GF_DEVICE void gf_bytes_between(const uint32_t (&sum)[2][4], uint32_t (&value)[2][2]) {
    constexpr uint32_t BYTES = WIDE ? 0x6251 : 0x5140;
#pragma unroll
    for (int c = 0; c < 2; c++) {
        const uint32_t first = __byte_perm(sum[0][2 * c], sum[0][2 * c + 1], BYTES);
        const uint32_t second = __byte_perm(sum[1][2 * c], sum[1][2 * c + 1], BYTES);
        value[c][0] = __byte_perm(first, second, 0x7632);
        value[c][1] = __byte_perm(first, second, 0x5410);
    }
}

// Compute 16 rows x 8 columns of sums along y. start: of the sums; WIDE: 128. BOTH: values have two
// bytes. product(to, from, high, plane): as along x, of the high (0) or the low (1) bytes of them.
template <bool WIDE, bool BOTH = true, typename Product>
GF_DEVICE void gf_bytes_along_y(const uint32_t (&start)[4], uint32_t (&sum)[4], Product product) {
    const uint32_t zero[4] = {};
    uint32_t middle[4], top[4];
    if constexpr (!WIDE && !BOTH) {
        product(sum, start, false, 1);
    } else if constexpr (!WIDE) {
        product(top, zero, false, 0);
        product(sum, start, false, 1);
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] += top[i] * 256;
    } else {
        product(top, start, true, 0);
        product(middle, zero, false, 0);
        product(middle, middle, true, 1);
        product(sum, zero, false, 1);
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] = top[i] * 65536 + (middle[i] * 256 + sum[i]);
    }
}

GF_DEVICE uint32_t gf_bytes_highest(const uint32_t (&s)[4]) {
    return __byte_perm(__byte_perm(s[0], s[1], 0x7373), __byte_perm(s[2], s[3], 0x7373), 0x5410);
}

// ---- kernel -------------------------------------------------------------------------------------

// The computation of a block, with the taps of its lanes.
template <int KX, int KB, typename Filter> struct gf_bytes_block {
    typedef typename Filter::Args Args;
    typedef gf_bytes_shared<KX, KB> Shared;
    typedef gf_bytes_policy<KX, KB> Policy;
    static constexpr int GROUPS = Policy::GROUPS, STAGES = Policy::STAGES;
    static constexpr int N = GROUPS + 2 * Shared::HALO;
    // Blocks with high bytes of taps: [X, KX - X) and [0, Y). See gf_bytes_narrow.
    static constexpr int X = Filter::NARROW && KX > 3 ? 1 : 0;
    static constexpr int Y = Filter::NARROW && KB == 4 ? 3 : KB;
    gf_bytes_taps<KX> along_x;
    gf_bytes_taps<KB> along_y;
    uint32_t start[4]; // of sums

    __device__ __forceinline__ void open(const Args &a, Shared *shared) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        for (int i = threadIdx.x; i < 512; i += Policy::THREADS)
            shared->taps[i / 256][i % 256] = static_cast<uint16_t>(
                gf_bytes_tap(a, i / 256, i / 256 ? 1 : a.in.channels, i % 256 - 128));
        // The products need four consecutive registers. If the compiler could prove that all are
        // equal, it would copy one register for each product.
        if (threadIdx.x < 4)
            reinterpret_cast<uint32_t *>(shared->out[0])[threadIdx.x] = Filter::START;
        __syncthreads();
        for (int i = 0; i < 4; i++)
            start[i] = reinterpret_cast<const volatile uint32_t *>(shared->out[0])[i];
        gf_bytes_set_taps(shared->taps[0], &along_x, [&](int block, int h, int i) {
            return 16 * (block - Shared::HALO) + 4 * t + i - (g / 2 * 4 + g % 2 + 2 * h);
        });
        gf_bytes_set_taps(shared->taps[1], &along_y, [&](int block, int h, int i) {
            return 16 * block + i / 2 * 8 + 2 * t + i % 2 - a.radius[1] - (g + 8 * h);
        });
    }

    // Compute output rows [y0, stop) of the tile that begins at byte `left`.
    __device__ __forceinline__ void run(const Args &a, Shared *shared, int64_t left, int64_t y0,
                                        int64_t stop) const {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
        constexpr int STAGE = 16 * Shared::STRIDE, EACH = 32 / GROUPS, OUT = Shared::OUT_STRIDE;
        const int rows = static_cast<int>(stop - y0), steps = (rows + 15) / 16 + KB - 1;
        auto loader = gf_march_start<STAGES - 1>(a, shared, left, y0 - a.radius[1],
                                                 stop - 1 + a.radius[1], a.radius[0], steps);
        uint4 *out = shared->out[warp];
        uint32_t *to_out = reinterpret_cast<uint32_t *>(out + g * OUT) + t;
        // Whole rows of a warp without alpha are stored at once.
        const int64_t begin = left + warp * GROUPS * 16;
        const int plain = begin + 16 * GROUPS <= a.in.row_bytes && a.own == ~0u ? rows - 16 : -1;
        unsigned char *to = a.out + begin + lane % GROUPS * 16 +
                            static_cast<size_t>(y0 - a.first + lane / GROUPS) * a.out_stride;
        uint32_t(*values)[GROUPS][4][32] = shared->values[warp];
        int oldest = 0; // block of values
        int stage = 0, free = (STAGES - 1) * STAGE;
        uint32_t blocks = static_cast<uint32_t>(__cvta_generic_to_shared(
            shared->in[0] + lane % 8 * Shared::STRIDE + warp * GROUPS + lane / 8));
        asm volatile("" : "+r"(blocks)); // not computed again in each step
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            const int next = stage == (STAGES - 1) * STAGE ? 0 : stage + STAGE;
            gf_march_step<STAGES - 1>(a, shared, &loader, step, steps, free, next);
            const uint32_t read = blocks + stage * 16;
            free = stage;
            stage = next;
            uint32_t b[2][N];
            gf_load_blocks(b[0], read);
            gf_load_blocks(b[1], read + 8 * Shared::STRIDE * 16);
            uint32_t newest[GROUPS][2][2];
#pragma unroll
            for (int m = 0; m < GROUPS; m++) {
                uint32_t sum[2][4];
#pragma unroll
                for (int h = 0; h < 2; h++)
                    gf_bytes_along_x<Filter::WIDE>(
                        start, sum[h], [&](uint32_t(&to)[4], const uint32_t(&from)[4], bool high) {
                            const auto get = [&](int k) { return b[h][m + k]; };
                            if (high)
                                gf_bytes_product<X, KX - X>(to, from, along_x.high, get);
                            else
                                gf_bytes_product<0, KX>(to, from, along_x.low, get);
                        });
                gf_bytes_between<Filter::WIDE>(sum, newest[m]);
            }
#pragma unroll
            for (int m = 0; m < GROUPS; m++) {
                uint32_t value[KB][4], sum[2][4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
#pragma unroll
                    for (int k = 0, at = oldest; k + 1 < KB; k++, at = at + 2 == KB ? 0 : at + 1)
                        value[k][i] = values[at][m][i][lane];
                    value[KB - 1][i] = newest[m][i / 2][i % 2];
                    values[oldest][m][i][lane] = value[KB - 1][i];
                }
#pragma unroll
                for (int c = 0; c < 2; c++)
                    gf_bytes_along_y<Filter::WIDE>(
                        start, sum[c],
                        [&](uint32_t(&to)[4], const uint32_t(&from)[4], bool high, int plane) {
                            const auto get = [&](int k) { return value[k][2 * c + plane]; };
                            if (high)
                                gf_bytes_product<0, Y>(to, from, along_y.high, get);
                            else
                                gf_bytes_product<0, KB>(to, from, along_y.low, get);
                        });
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const uint32_t s[4] = {sum[0][2 * h], sum[0][2 * h + 1], sum[1][2 * h],
                                           sum[1][2 * h + 1]};
                    to_out[(8 * h * OUT + m) * 4] = Filter::word(a, s, nullptr);
                }
            }
            oldest = oldest + 2 == KB ? 0 : oldest + 1;
            if (step < KB - 1)
                continue;
            __syncwarp();
            const int done = 16 * (step - (KB - 1)); // output rows
            if (done <= plain) {
                const uint4 *from = out + lane / GROUPS * OUT + lane % GROUPS;
#pragma unroll
                for (int i = 0; i < GROUPS / 2; i++)
                    *reinterpret_cast<uint4 *>(to + i * EACH * a.out_stride) = from[i * EACH * OUT];
            } else {
                gf_march_store_edge<GROUPS>(a, out, y0 + done, rows - done < 16 ? rows - done : 16,
                                            begin);
            }
            to += 16 * a.out_stride;
            __syncwarp();
        }
        __pipeline_wait_prior(0);
    }
};

// Compute weighted sums along both axes.
// Grid: resident blocks at most. Block: 256 threads. The image is divided into tiles of 512 or 256
// bytes of a row, and these into steps of 16 rows; a block computes an equal share of all steps,
// downwards. Rows and their halo are copied asynchronously into one of 4 stages in shared memory; a
// step ahead, samples outside the image are filled in there. A warp computes 64 or 32 columns: 16
// new rows along x, kept in registers with those before them, then 16 output rows along y, which
// leave through shared memory. Reads each sample 1 + HALO / 16 times, and writes it once; all
// accesses are coalesced. A step of radius 4 takes 350 instructions for 32 samples per lane. Tail:
// the bytes of an incomplete last unit are stored singly. Shared memory: 63 to 72 KB. Registers:
// 128 (sm_90).
template <int KX, int KB, typename Filter>
__global__ void __launch_bounds__(gf_bytes_policy<KX, KB>::THREADS, gf_bytes_policy<KX, KB>::BLOCKS)
    window_bytes(const __grid_constant__ typename Filter::Args a) {
    extern __shared__ uint4 memory[];
    gf_bytes_shared<KX, KB> *shared = reinterpret_cast<gf_bytes_shared<KX, KB> *>(memory);
    gf_bytes_block<KX, KB, Filter> block;
    block.open(a, shared);
    gf_wait_for_stream();
    gf_march_each(a, blockIdx.x, gf_bytes_policy<KX, KB>::UNITS,
                  [&](int64_t left, int64_t first, int64_t stop) {
                      block.run(a, shared, left, first, stop);
                  });
}

#endif
