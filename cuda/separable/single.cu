// Separable filters in binary32 up to radius 8, and box of u16, whose sums of up to 255 samples are
// exact: both axes in one kernel, window_columns.
//
// A kernel supports all radii up to R, its class. The sums of a smaller radius begin with -0:
// fma(t, v, -0) is t * v, and fma(-0, v, -0) is -0 if v is finite and not negative. Values of f32
// after the radius are masked: they become +0.
#include "cuda/separable/device.cuh"
#include "cuda/window/columns.cuh"

static constexpr int single_small = 4, single_large = 8; // classes of radii

struct single_args : gf_columns_args {
    float taps[2][single_large + 1];    // -0 after the radius
    uint32_t mask[2][single_large + 1]; // all bits, 0 after the radius
    float count, inverse;               // 1 / count
    float amount, threshold;
};

static __device__ __noinline__ float4 single_divide_rare(float4 s, float count) {
    return make_float4(
        gf_store<float>(__fdiv_rn(s.x, count)), gf_store<float>(__fdiv_rn(s.y, count)),
        gf_store<float>(__fdiv_rn(s.z, count)), gf_store<float>(__fdiv_rn(s.w, count)));
}

// Divide by the count, correctly rounded. The quotient of two steps was compared with that of a
// division for all counts and all significands of s. It would be +0 for -0. The range excludes
// over- and underflow. u16: rounded again to an integer, this is the rounded mean: n is odd, so it
// is at least 1 / 2n > 2^-9 away from a tie, and a quotient below 2^16 is within 2^-9.
template <typename T> GF_DEVICE void single_divide(const single_args &a, float (&s)[4]) {
    float x[4];
    bool plain = true;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const float q = __fmul_rn(s[j], a.inverse), size = fabsf(s[j]);
        const float to = __fmaf_rn(__fmaf_rn(-q, a.count, s[j]), a.inverse, q);
        x[j] = __uint_as_float(__float_as_uint(to) | (__float_as_uint(s[j]) & 0x80000000u));
        plain &= size <= 0x1p120f && (size >= 0x1p-100f || size == 0);
    }
    if (sizeof(T) == 4 && !plain) {
        const float4 q = single_divide_rare(make_float4(s[0], s[1], s[2], s[3]), a.count);
        x[0] = q.x, x[1] = q.y, x[2] = q.z, x[3] = q.w;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        s[j] = x[j];
}

template <typename T> GF_DEVICE float single_sharpened(const single_args &a, float v, float s) {
    const float d = __fadd_rn(v, -s);
    float x = fabsf(d) < a.threshold ? v : __fmaf_rn(a.amount, d, v);
    if constexpr (sizeof(T) < 4) {
        x = x > 0 ? x : 0;
        x = x < (1u << 8 * sizeof(T)) - 1 ? x : (1u << 8 * sizeof(T)) - 1;
    }
    return x;
}

// ---- sums ---------------------------------------------------------------------------------------

// Compute N sums along an axis: get(k, j) is the value at distance k from sample j.
template <int R, bool MASKED, int N, typename Get>
GF_DEVICE void single_sum(const single_args &a, int axis, float (&s)[N], Get get) {
#pragma unroll
    for (int j = 0; j < N; j++)
        s[j] = -0.0f;
#pragma unroll
    for (int k = R; k > 0; k--)
#pragma unroll
        for (int j = 0; j < N; j++) {
            float pair = __fadd_rn(get(-k, j), get(k, j));
            if (MASKED)
                pair = __uint_as_float(__float_as_uint(pair) & a.mask[axis][k]);
            s[j] = __fmaf_rn(a.taps[axis][k], pair, s[j]);
        }
#pragma unroll
    for (int j = 0; j < N; j++)
        s[j] = __fmaf_rn(a.taps[axis][0], get(0, j), s[j]);
}

// MASKED: f32 with a radius below R. Values after the radius may be infinite or NaN. DIVIDE: unless
// the count is 1.
template <typename Sample, int CHANNELS, int RADIUS, bool SHARPEN, bool MASKED, bool DIVIDE>
struct single_filter {
    typedef single_args Args;
    typedef Sample T;
    static constexpr int C = CHANNELS, X = RADIUS, R = RADIUS;
    static constexpr bool ALIGNED = sizeof(T) == 4 && !MASKED, SYMMETRIC = true, CENTER = SHARPEN;
    static constexpr bool CLAMP = false;
    // The registers of the ring and of the windows limit the large class.
    static constexpr int BLOCKS = R == single_large ? 3 : 4;
    static constexpr int RUN = R == single_large && C == 4 && sizeof(T) > 1 ? 8 : 16;
    static constexpr int ROWS = R == single_small && sizeof(T) < 4 ? 8 : 4;
    struct State {};

    static __device__ __forceinline__ float value(const Args &, const uint32_t *words, int i) {
        // With one channel, the conversion unit is fast enough, and saves an instruction.
        if constexpr (sizeof(T) == 2 && C == 1) {
            uint16_t low, high;
            float x;
            asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(words[i / 2]));
            asm("cvt.rn.f32.u16 %0, %1;" : "=f"(x) : "h"(i % 2 ? high : low));
            return x;
        }
        return gf_columns_value<T>(words, i);
    }

    static __device__ __forceinline__ void along_x(const Args &a, const float *v, float (&s)[RUN]) {
        single_sum<R, MASKED>(a, 0, s, [&](int k, int j) { return v[j + (R + k) * C]; });
    }

    template <typename Get>
    static __device__ __forceinline__ void along_y(const Args &a, State &, Get get, float (&s)[4]) {
        single_sum<R, MASKED>(a, 1, s, get);
    }

    static __device__ __forceinline__ bool complete(const Args &a, float (&s)[4], const T *center,
                                                    uint32_t (&bits)[4]) {
        if (DIVIDE && a.count > 1)
            single_divide<T>(a, s);
        if (SHARPEN) {
            uint32_t words[sizeof(T)];
            gf_load_words<4 * sizeof(T)>(words, reinterpret_cast<const unsigned char *>(center));
#pragma unroll
            for (int j = 0; j < 4; j++)
                s[j] = single_sharpened<T>(a, gf_columns_value<T>(words, j), s[j]);
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            bits[j] = gf_columns_bits<T>(s[j]);
        return false;
    }

    static __device__ __forceinline__ void revise(const Args &, int64_t, int64_t, int64_t) {}
};

// ---- launch -------------------------------------------------------------------------------------

template <typename Filter> static bool single_launch(const gf_separable_job &job) {
    const gf_separable_plan *plan = job.plan;
    single_args a = {};
    for (int axis = 0; axis < 2; axis++) {
        a.radius[axis] = static_cast<int>(plan->radius[axis]);
        for (uint32_t k = 0; k <= single_large; k++) {
            const bool inside = k <= plan->radius[axis];
            a.taps[axis][k] = !inside ? -0.0f
                              : plan->form == GF_SEPARABLE_SUMS
                                  ? 1
                                  : gf_separable_taps<float>(plan, axis)[k];
            a.mask[axis][k] = inside ? ~0u : 0;
        }
    }
    a.count = static_cast<float>(plan->count);
    a.inverse = 1 / a.count;
    a.amount = plan->amount;
    a.threshold = plan->threshold;
    return gf_columns_launch<Filter>(&a, &plan->head, job.strip, plan->edge, job.queue);
}

// Launch the kernel for a type and a number of channels. exact: both radii are R.
template <typename T, int C, int R>
static bool single_choose(const gf_separable_job &job, bool exact) {
    bool queued = false;
    if constexpr (sizeof(T) == 4) {
        gf_dispatch(
            [&](auto sharpen, auto masked) {
                queued = single_launch<single_filter<T, C, R, sharpen, masked, !sharpen>>(job);
            },
            gf_flag{job.plan->sharpen}, gf_flag{!exact});
    } else {
        // Other forms compute gaussian and box of u8, and sharpen of u16.
        gf_dispatch(
            [&](auto box) {
                constexpr bool DIVIDE = box && sizeof(T) == 2;
                queued = single_launch<single_filter<T, C, R, sizeof(T) == 1, false, DIVIDE>>(job);
            },
            gf_flag{job.plan->form == GF_SEPARABLE_SUMS});
    }
    return queued;
}

bool gf_separable_single(const gf_separable_job &job) {
    const gf_separable_plan *plan = job.plan;
    const uint32_t *radius = plan->radius, max = radius[0] > radius[1] ? radius[0] : radius[1];
    const gf_type type = plan->head.in.type;
    const bool exact_sums = plan->form == GF_SEPARABLE_SUMS && type == GF_U16 && plan->count < 256;
    if ((plan->form != GF_SEPARABLE_SINGLE && !exact_sums) || max > single_large ||
        (type != GF_F32 && plan->sharpen != (type == GF_U8)))
        return false;
    bool queued = false;
    gf_dispatch(
        [&](auto sample, auto channels, auto large) {
            constexpr int R = large ? single_large : single_small;
            const bool exact = radius[0] == R && radius[1] == R;
            queued = single_choose<decltype(sample), channels, R>(job, exact);
        },
        gf_type_of{type}, gf_channels{plan->head.in.channels}, gf_flag{max > single_small});
    return queued;
}
