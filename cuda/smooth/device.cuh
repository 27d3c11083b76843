// Helpers that the kernels of smooth share: stages, rows, the exact path, copies.
#ifndef GF_SMOOTH_DEVICE_CUH
#define GF_SMOOTH_DEVICE_CUH

#include "cuda/vectors.cuh"

#include "smooth/smooth.h"

// One pass over a strip. wide: for axis xy, the result of the x pass is unrounded f32; of rows this
// is the output, of columns the input.
struct gf_smooth_job {
    const gf_smooth_plan *plan;
    gf_strip strip;
    bool wide;
    gf_queue *queue;
};

// Queue a kernel for all rows of a strip. Returns false, without side effects, if the kernel does
// not support the plan or the image. smooth.cu lists when each is used.
typedef bool gf_smooth_kernel(const gf_smooth_job &job);
gf_smooth_kernel gf_smooth_mma_rows, gf_smooth_chain_rows;

// Queue the kernels of axis y, of both axes in one pass, and of either for u8. The latter two
// accept job.queue == nullptr, to only test whether they support the plan.
gf_smooth_kernel gf_smooth_columns, gf_smooth_stages, gf_smooth_bytes;

// ---- stages -------------------------------------------------------------------------------------

// Each operation is an intrinsic with its own rounding: no compiler setting can contract two.

struct gf_smooth_constants {
    alignas(8) float gain; // loaded with the next one
    float shifted_gain;    // -2^23 * gain, exact
    float weight, inner_factor, end_factor;
    bool smooth;
    uint32_t radius, reach; // samples on each side: of the mean, and of all stages
    float inverse[2 * GF_SMOOTH_INTEGER_REACH]; // [n]: 1 / n
};

static inline gf_smooth_constants gf_smooth_constants_of(const gf_smooth_plan *plan) {
    gf_smooth_constants k = {plan->gain,
                             -8388608.0f * plan->gain,
                             plan->weight,
                             plan->inner_factor,
                             plan->end_factor,
                             plan->smooth,
                             plan->radius,
                             plan->radius + plan->smooth,
                             {}};
    for (int n = 1; n < 2 * GF_SMOOTH_INTEGER_REACH; n++)
        k.inverse[n] = 1.0f / static_cast<float>(n);
    return k;
}

GF_DEVICE float gf_smooth_enhance(float x, float gain) {
    return __fmul_rn(x, gain);
}

// Compute the smooth stage. has_prev, has_next: whether the neighbors are in the tile.
GF_DEVICE float gf_smooth_mid(float prev, float mid, float next, bool has_prev, bool has_next,
                              const gf_smooth_constants &k) {
    float t = mid;
    if (has_prev)
        t = __fmul_rn(__fadd_rn(t, prev), k.weight);
    if (has_next)
        t = __fmul_rn(__fadd_rn(t, next), k.weight);
    if (has_prev && has_next)
        t = __fmul_rn(t, k.inner_factor);
    else if (has_prev || has_next)
        t = __fmul_rn(t, k.end_factor);
    return t;
}

// ---- rows ---------------------------------------------------------------------------------------

// Rows of a launch. The arguments of the fast kernels of rows extend it. Rows start on 64-byte
// boundaries; strides are multiples of 64.
struct gf_smooth_rows : gf_strip_rows {
    uint64_t width; // pixels
    uint32_t rows;
    gf_smooth_constants constants;
    gf_images<2> images; // one per block row
};

GF_DEVICE const unsigned char *gf_smooth_in(const gf_smooth_rows &a, uint32_t y) {
    return a.in + a.images.at[0][blockIdx.y] + y * a.in_stride;
}

GF_DEVICE unsigned char *gf_smooth_out(const gf_smooth_rows &a, uint32_t y) {
    return a.out + a.images.at[1][blockIdx.y] + y * a.out_stride;
}

// Test whether the fast kernels of rows support a plan: no tiles, and an even number of channels
// only with alpha, because they copy the last of 2 or 4 channels.
static inline bool gf_smooth_rows_fit(const gf_smooth_plan *plan) {
    return plan->tile == 0 && (plan->head.in.channels % 2 != 0 || gf_has_alpha(&plan->head.in));
}

static inline void gf_smooth_set_rows(gf_smooth_rows *a, const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    gf_set_strip_rows(a, &job.strip);
    a->width = plan->head.in.width;
    a->rows = static_cast<uint32_t>(job.strip.out.rows);
    a->constants = gf_smooth_constants_of(plan);
    a->images = gf_images_of<2>(&plan->head, &job.strip);
}

// ---- exact path ---------------------------------------------------------------------------------

// Return fl(x / N), including the sign of zero and NaN (tests/unit/filters/test_smooth_integer.c).
// Sums of integers: the product with 1/N as the sum of two floats, rounded once. The error of that
// sum is a relative 2^-48; a quotient by 3, 5 or 7 is further from the midpoint of two floats.
// f32, where part of that product may underflow: a quotient corrected by its own error, which is
// exact. An infinite x gives NaN: *max keeps the largest magnitude to detect this.
template <typename T, int N> GF_DEVICE float gf_smooth_divided(float x, float *max) {
    const float n = static_cast<float>(N);
    if constexpr (sizeof(T) != 4) {
        const float high = 1.0f / n;
        const float low = static_cast<float>(1.0 / N - static_cast<double>(high));
        return __fmaf_rn(x, high, __fmul_rn(x, low));
    }
    const float size = fabsf(x);
    *max = size > *max ? size : *max;
    const float inverse = 1.0f / n, quotient = __fmul_rn(x, inverse);
    return __fmaf_rn(-__fmaf_rn(n, quotient, -x), inverse, quotient);
}

// Return a number of positions, as far as windows reach.
GF_DEVICE int gf_smooth_near(int64_t n) {
    return static_cast<int>(n < 64 ? n : 64);
}

// Compute N consecutive results of a signal by the stages themselves.
// left, right: available positions before the first one, and from it on; results whose windows they
// cut elsewhere than at an end of the signal are undefined. get(d): sample at distance d from the
// first one. RADIUS: of the mean; -1: k.radius. INSIDE: all samples in windows are available.
template <typename T, int RADIUS, bool INSIDE = false, int N, typename Get>
GF_DEVICE void gf_smooth_exact(const gf_smooth_constants &k, int left, int right,
                               float (&result)[N], Get get) {
    const int radius = RADIUS >= 0 ? RADIUS : static_cast<int>(k.radius);
    const int around = RADIUS >= 0 ? RADIUS + 1 : static_cast<int>(k.reach);
    float mean[N + 2]; // starts one position before the first
#pragma unroll
    for (int j = 0; j < N + 2; j++)
        mean[j] = -0.0f; // adding -0 changes no sum, whatever its sign
#pragma unroll(RADIUS >= 0 ? N + 2 * RADIUS + 2 : 1)
    for (int d = -around; d < N + around; d++) {
        const bool inside = INSIDE || (d >= -left && d < right);
        const float x = inside ? gf_smooth_enhance(get(d), k.gain) : -0.0f;
#pragma unroll
        for (int j = 0; j < N + 2; j++) {
            // around is at most radius + 1: the first and the last mean need one comparison.
            const bool in_window =
                (j == 0 || d >= j - 1 - radius) && (j == N + 1 || d <= j - 1 + radius);
            if (RADIUS >= 0 && d == j - 1 - RADIUS)
                mean[j] = x;
            else if (in_window)
                mean[j] = __fadd_rn(mean[j], x);
        }
    }
#pragma unroll
    for (int j = 0; j < N + 2; j++) {
        if constexpr (INSIDE) {
            float max = 0.0f; // no sample is infinite
            mean[j] = gf_smooth_divided<T, 2 * RADIUS + 1>(mean[j], &max);
        } else {
            const int lo = j - 1 - radius < -left ? -left : j - 1 - radius;
            const int hi = j - 1 + radius < right ? j - 1 + radius : right - 1;
            const int n = hi < lo ? 1 : hi - lo + 1; // 1 if the window is empty
            if constexpr (sizeof(T) == 4) {
                mean[j] = __fdiv_rn(mean[j], static_cast<float>(n));
            } else { // correctly rounded (tests/unit/filters/test_smooth_integer.c)
                const float inverse = k.inverse[n], quotient = __fmul_rn(mean[j], inverse);
                mean[j] = __fmaf_rn(__fmaf_rn(-static_cast<float>(n), quotient, mean[j]), inverse,
                                    quotient);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        result[i] = mean[i + 1];
        if (k.smooth)
            result[i] = gf_smooth_mid(mean[i], result[i], mean[i + 2], INSIDE || i > -left,
                                      INSIDE || i + 1 < right, k);
    }
}

// ---- stages in registers ------------------------------------------------------------------------

// The stages along rows for radius 0 to 3. A lane converts and enhances the pixels of its run and
// its halo, computes the means from one pixel before the run to one after it, smooths and stores.
// All operations are those of the stages, in the same order: 15 to 20 per sample.

// Minimum gain of integer samples, except 0. With smaller gains the products approach the smallest
// normal binary32 numbers, and only a true division is exact.
#define GF_MIN_GAIN 1e-6f

// Test whether the stages in registers support a plan. real: the samples are f32.
static inline bool gf_chain_fits(const gf_smooth_plan *plan, bool real) {
    return plan->tile == 0 && plan->radius <= 3 &&
           (real || plan->gain == 0 || plan->gain >= GF_MIN_GAIN);
}

// Return sample i of words, enhanced. The bits of an integer sample v are inserted into the float
// 2^23 + v; the fma subtracts 2^23 * gain from the exact product and rounds once: fl(v * gain).
template <typename T>
GF_DEVICE float gf_enhanced(const uint32_t *words, int i, const gf_smooth_constants &k) {
    if constexpr (sizeof(T) == 4)
        return gf_smooth_enhance(__uint_as_float(words[i]), k.gain);
    const uint32_t bits = 0x4b000000u; // 2^23
    uint32_t whole;
    if (sizeof(T) == 2)
        whole = __byte_perm(words[i / 2], bits, i % 2 ? 0x7432 : 0x7410);
    else
        whole = __byte_perm(words[i / 4], bits, 0x7440 + i % 4);
    return __fmaf_rn(__uint_as_float(whole), k.gain, k.shifted_gain);
}

// Return the bits of t to be clamped. Integers: rounded to even, NaN is 0.
template <typename T> GF_DEVICE uint32_t gf_smooth_bits(float t) {
    return sizeof(T) == 4 ? __float_as_uint(gf_store<float>(t))
                          : static_cast<uint32_t>(__float2int_rn(t));
}

// Return the bits of sample i of words. i is constant after unrolling.
template <typename T> GF_DEVICE uint32_t gf_chain_bits(const uint32_t *words, int i) {
    constexpr int PER = 4 / sizeof(T), BITS = 8 * sizeof(T);
    return sizeof(T) == 4 ? words[i] : words[i / PER] >> BITS * (i % PER) & ((1u << BITS % 32) - 1);
}

template <typename T> GF_DEVICE float gf_chain_value(const uint32_t *words, int i) {
    const uint32_t bits = gf_chain_bits<T>(words, i);
    return sizeof(T) == 4 ? __uint_as_float(bits) : static_cast<float>(bits);
}

// Compute N results of a line with no edge in any window. v: enhanced samples, from RADIUS + 1
// positions before the first result. *max: see gf_smooth_divided.
template <typename T, int RADIUS, int N>
GF_DEVICE void gf_chain_line(const gf_smooth_constants &k, const float (&v)[N + 2 * RADIUS + 2],
                             float (&t)[N], float *max) {
    float mean[N + 2];
#pragma unroll
    for (int i = 0; i < N + 2; i++) {
        float sum = v[i];
#pragma unroll
        for (int j = 1; j < 2 * RADIUS + 1; j++)
            sum = __fadd_rn(sum, v[i + j]);
        mean[i] = gf_smooth_divided<T, 2 * RADIUS + 1>(sum, max);
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        t[i] = mean[i + 1];
    if (k.smooth) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            t[i] = __fmul_rn(__fadd_rn(t[i], mean[i]), k.weight);
            t[i] = __fmul_rn(__fadd_rn(t[i], mean[i + 2]), k.weight);
        }
    }
    if (k.inner_factor != 1.0f)
#pragma unroll
        for (int i = 0; i < N; i++)
            t[i] = __fmul_rn(t[i], k.inner_factor);
}

// Compute the stages for PIXELS pixels with no edge in any window. Sample FIRST of words is the
// first of the pixel RADIUS + 1 before them. Returns true if the exact path must compute them.
template <typename T, int C, int RADIUS, int PIXELS, int FIRST>
GF_DEVICE bool gf_chain(const gf_smooth_constants &k, const uint32_t *words, uint32_t *out) {
    const int AROUND = RADIUS + 1, filtered = GF_COLOURS(C);
    uint32_t bits[PIXELS * C];
    float max = 0.0f;
#pragma unroll
    for (int c = 0; c < filtered; c++) {
        float v[PIXELS + 2 * AROUND], t[PIXELS];
#pragma unroll
        for (int i = 0; i < PIXELS + 2 * AROUND; i++)
            v[i] = gf_enhanced<T>(words, FIRST + i * C + c, k);
        gf_chain_line<T, RADIUS>(k, v, t, &max);
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bits[i * C + c] = gf_smooth_bits<T>(t[i]);
    }
    if (filtered < C) { // alpha, as stored in the output
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bits[i * C + C - 1] = gf_chain_bits<T>(words, FIRST + (AROUND + i) * C + C - 1);
    }
    gf_pack_samples<T, PIXELS * C, true>(bits, out);
    return sizeof(T) == 4 && max == __uint_as_float(0x7f800000u);
}

#endif
