// What the kernels of smooth share: the stages, the walk over rows, the exact path, asynchronous
// copies, and how rows are dealt out. smooth.cu lists the kernels.
#ifndef GF_SMOOTH_DEVICE_CUH
#define GF_SMOOTH_DEVICE_CUH

#include <cuda_pipeline.h>

#include "device.cuh"

#include "smooth/smooth.h"

// Kernels for rows. Each returns false, having done nothing, for a plan or an image that it is not
// made for. to_float: the output is f32, not rounded, for the y pass that follows.

// u8 by tensor cores: radius up to 8, where weights are small whole numbers.
bool gf_smooth_mma_rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                        cudaStream_t stream);
// u8 by integers: radius up to 8.
bool gf_smooth_integer_rows(const gf_smooth_plan *plan, const gf_rows *in, const gf_rows *out,
                            cudaStream_t stream);
// The stages themselves, in registers: radius 0 to 3.
bool gf_smooth_chain_rows(const gf_smooth_plan *plan, bool to_float, const gf_rows *in,
                          const gf_rows *out, cudaStream_t stream);

// ---- stages -------------------------------------------------------------------------------------

// Each operation is an intrinsic that rounds on its own: no compiler setting can contract two.

struct gf_smooth_constants {
    float gain, weight, inner_factor, end_factor;
    bool smooth;
};

static inline gf_smooth_constants gf_smooth_constants_of(const gf_smooth_plan *plan) {
    return {plan->gain, plan->weight, plan->inner_factor, plan->end_factor, plan->smooth};
}

// A position's place in its tile.
struct gf_smooth_end {
    bool has_prev, has_next;
};

GF_DEVICE float enhance(float x, float gain) {
    return __fmul_rn(x, gain);
}

GF_DEVICE float smooth(float prev, float mid, float next, gf_smooth_end end,
                       const gf_smooth_constants &k) {
    float t = mid;
    if (end.has_prev)
        t = __fmul_rn(__fadd_rn(t, prev), k.weight);
    if (end.has_next)
        t = __fmul_rn(__fadd_rn(t, next), k.weight);
    if (end.has_prev && end.has_next)
        t = __fmul_rn(t, k.inner_factor);
    else if (end.has_prev || end.has_next)
        t = __fmul_rn(t, k.end_factor);
    return t;
}

// ---- walk ---------------------------------------------------------------------------------------

// n / divisor = n * magic >> 32 + shift, for n below 2^31. The magic number of divisor 1 does not
// fit.
struct gf_divider {
    uint32_t magic, shift;
};

static inline gf_divider gf_divider_of(uint64_t divisor) {
    gf_divider by = {};
    while (UINT64_C(2) << by.shift < divisor)
        by.shift++;
    by.magic =
        static_cast<uint32_t>((UINT64_C(1) << (32 + by.shift)) / (divisor > 1 ? divisor : 2) + 1);
    return by;
}

GF_DEVICE uint32_t gf_divide(uint32_t n, const gf_divider &by) {
    return __umulhi(n, by.magic) >> by.shift;
}

// The rows of a strip, and how a launch cuts them. A lane of most kernels takes a run of
// neighbouring groups of 4 pixels. Rows begin on 64-byte boundaries; strides are multiples of 64.
struct gf_walk {
    const unsigned char *in;
    unsigned char *out;
    size_t in_stride, out_stride; // bytes
    uint32_t in_stride32;         // the same
    uint64_t width;               // pixels
    uint32_t rows;
    uint32_t runs;                    // of a row, the last ones perhaps beyond its end
    gf_divider by;                    // divides by runs, tiles_a_row or in_stride
    uint32_t lanes;                   // that share a row of a tile, a run each
    uint32_t rows_a_tile;             // of each the same part; 0: a tile is a part of one row
    uint32_t tiles_a_row;             // 1, unless a row needs more
    uint32_t tiles;                   // in all; where there are none, runs
    uint64_t inner_end;               // pixels from here on take the exact path
    uint32_t next_runs;               // runs with a halo behind them
    uint32_t inner_first, inner_runs; // so many runs from that one on are far from the row's ends
    uint32_t in_units, out_units;     // 16 bytes each: of a stride of the input, and those that an
                                      // output row fills
    uint32_t radius, reach;           // samples on each side: of the mean, and of all stages
    float inverse[2 * GF_SMOOTH_INTEGER_REACH]; // [n]: 1 / n
    gf_smooth_constants constants;
};

static inline gf_walk gf_walk_of(const gf_smooth_plan *plan, const gf_rows *in,
                                 const gf_rows *out) {
    gf_walk walk = {};
    walk.in = gf_row(in, out->y0);
    walk.out = out->data;
    walk.in_stride = in->stride;
    walk.out_stride = out->stride;
    walk.in_stride32 = static_cast<uint32_t>(in->stride);
    walk.width = plan->head.in.width;
    walk.radius = plan->radius;
    walk.reach = plan->radius + (plan->smooth ? 1 : 0);
    for (int n = 1; n < 2 * GF_SMOOTH_INTEGER_REACH; n++)
        walk.inverse[n] = 1.0f / static_cast<float>(n);
    walk.constants = gf_smooth_constants_of(plan);
    return walk;
}

// Calls launch with a walk over each `most` of so many rows.
template <typename F>
static void gf_walk_rows(gf_walk walk, uint64_t rows, uint64_t max, F launch) {
    for (uint64_t y = 0; y < rows; y += max) {
        walk.rows = static_cast<uint32_t>(rows - y < max ? rows - y : max);
        launch(walk);
        walk.in += walk.rows * walk.in_stride;
        walk.out += walk.rows * walk.out_stride;
    }
}

// Resident blocks of a kernel on the device.
template <typename Kernel> static uint64_t gf_walk_wave(Kernel kernel, int threads) {
    int resident = 1;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0);
    return static_cast<uint64_t>(gf_processors()) * (resident > 0 ? resident : 1);
}

// ---- exact path ---------------------------------------------------------------------------------

// fl(x / N), in the sign of zero and for NaN, too (tests/unit/filters/test_smooth_integer.c tries it).
//
// Of integer samples: a product with 1/N as the sum of two floats, rounded once. What remains of
// 1/N is 2^-48 of it; a quotient by 3, 5 or 7 is further from the middle between two floats.
//
// Of floats, of which some are so small that a part of the product would underflow: a quotient
// corrected by its own error, which is exact. Only an infinity makes a NaN of that: the largest
// magnitude is kept.
template <typename T, int N> GF_DEVICE float gf_divided(float x, float *max) {
    const float n = static_cast<float>(N);
    if constexpr (sizeof(T) != 4) {
        const float high = 1.0f / n;
        const float low = static_cast<float>(1.0 / N - static_cast<double>(high));
        return __fmaf_rn(x, high, __fmul_rn(x, low));
    }
    const float size = fabsf(x);
    *max = size > *max ? size : *max;
    const float inverse = 1.0f / n;
    const float quotient = __fmul_rn(x, inverse);
    return __fmaf_rn(-__fmaf_rn(n, quotient, -x), inverse, quotient);
}

// PIXELS neighbouring results of a channel, by the stages themselves. in: the sample of the first.
// left, right: pixels of the row before it and from it on, as far as they matter. RADIUS: of the
// mean; -1: a.radius. AROUND: pixels to look at on either side; 0: a.reach. INSIDE: all of them are
// there.
template <typename T, int C, int RADIUS, int AROUND, int PIXELS, bool INSIDE = false>
GF_DEVICE void gf_smooth_exact(const gf_walk &a, const T *in, int left, int right,
                               float (&result)[PIXELS]) {
    const int radius = RADIUS >= 0 ? RADIUS : static_cast<int>(a.radius);
    const int around = AROUND > 0 ? AROUND : static_cast<int>(a.reach);
    float mean[PIXELS + 2]; // from the pixel before the first on
#pragma unroll
    for (int j = 0; j < PIXELS + 2; j++)
        mean[j] = -0.0f; // changes no sum, whatever its sign
#pragma unroll(AROUND > 0 ? PIXELS + 2 * AROUND : 1)
    for (int d = -around; d < PIXELS + around; d++) {
        const bool there = INSIDE || (d >= -left && d < right);
        const float x = there ? enhance(gf_load(in[d * C]), a.constants.gain) : -0.0f;
#pragma unroll
        for (int j = 0; j < PIXELS + 2; j++) {
            // Of a constant AROUND this is one comparison for each distance; otherwise around is
            // radius + 1 at most, and the first and last mean are compared on one side only.
            const int apart = d < j - 1 ? j - 1 - d : d - j + 1;
            const bool in_window = AROUND > 0 ? apart <= AROUND && apart <= radius
                                              : (j == 0 || d >= j - 1 - radius) &&
                                                    (j == PIXELS + 1 || d <= j - 1 + radius);
            if (RADIUS >= 0 && d == j - 1 - RADIUS)
                mean[j] = x;
            else if (in_window)
                mean[j] = __fadd_rn(mean[j], x);
        }
    }
#pragma unroll
    for (int j = 0; j < PIXELS + 2; j++) {
        if constexpr (INSIDE) {
            float max = 0.0f; // none is infinite
            mean[j] = gf_divided<T, 2 * RADIUS + 1>(mean[j], &max);
        } else {
            const int lo = j - 1 - radius < -left ? -left : j - 1 - radius;
            const int hi = j - 1 + radius < right ? j - 1 + radius : right - 1;
            const int n = hi < lo ? 1 : hi - lo + 1; // outside the row there is none
            if constexpr (sizeof(T) == 4) {
                mean[j] = __fdiv_rn(mean[j], static_cast<float>(n));
            } else { // the corrected quotient is the division (tests/unit/filters/test_smooth_integer.c)
                const float inverse = a.inverse[n], quotient = __fmul_rn(mean[j], inverse);
                mean[j] = __fmaf_rn(__fmaf_rn(-static_cast<float>(n), quotient, mean[j]), inverse,
                                    quotient);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        result[i] = mean[i + 1];
        if (a.constants.smooth)
            result[i] = smooth(mean[i], result[i], mean[i + 2],
                               {INSIDE || i > -left, INSIDE || i + 1 < right}, a.constants);
    }
}

// Channel c of a group of up to 4 pixels from p on, in row y. Few threads come here: kept out of
// line, it costs the others no registers.
template <typename Tin, typename Tout, int C, int RADIUS, int AROUND>
static __device__ __noinline__ void gf_smooth_group(const gf_walk &a, uint32_t y, uint64_t p,
                                                    int c) {
    const int left = p < 64 ? static_cast<int>(p) : 64;
    const int right = a.width - p < 64 ? static_cast<int>(a.width - p) : 64;
    const Tin *in = reinterpret_cast<const Tin *>(a.in + y * a.in_stride) + p * C;
    Tout *out = reinterpret_cast<Tout *>(a.out + y * a.out_stride) + p * C;
    float t[4];
    gf_smooth_exact<Tin, C, RADIUS, AROUND>(a, in + c, left, right, t);
    if constexpr (sizeof(Tout) == 1 && C == 1)
        if (right >= 4 && p % 4 == 0) {
            *reinterpret_cast<uchar4 *>(out) =
                make_uchar4(gf_store<uint8_t>(t[0]), gf_store<uint8_t>(t[1]),
                            gf_store<uint8_t>(t[2]), gf_store<uint8_t>(t[3]));
            return;
        }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < right)
            out[i * C + c] = gf_store<Tout>(t[i]);
    // The first channel's lane carries the alpha.
    if (GF_COLOURS(C) < C && c == 0)
        for (int i = 0; i < 4 && i < right; i++)
            out[i * C + C - 1] = gf_carry<Tout>(in[i * C + C - 1]);
}

// ---- copies -------------------------------------------------------------------------------------

// Begins to copy 16 bytes into shared memory, if `does`. (The compiler's own way makes a branch of
// each condition.) Before sm_80 there is no such copy, and it is done at once.
GF_DEVICE void gf_copy_async(uint4 *to, const unsigned char *from, bool does) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "{\n"
        ".reg .pred does;\n"
        "setp.ne.s32 does, %2, 0;\n"
        "@does cp.async.cg.shared.global [%0], [%1], 16;\n"
        "}\n" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
        "l"(from), "r"(static_cast<int>(does))
        : "memory");
#else
    if (does)
        *to = *reinterpret_cast<const uint4 *>(from);
#endif
}

// A vector's words, and the vector of four words.
GF_DEVICE void gf_unpack(const uint4 &v, uint32_t *words) {
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
}

GF_DEVICE uint4 gf_vector_of(const uint32_t *words) {
    return make_uint4(words[0], words[1], words[2], words[3]);
}

#endif
