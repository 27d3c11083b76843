// smooth along both axes of u16 and f32 by the stages, radius 1 to 3, in one pass over the image.
// Kernels: window_columns, and smooth_border.
#include "cuda/smooth/both.cuh"
#include "cuda/window/columns.cuh"

struct stages_args : gf_columns_args {
    gf_both_args exact;
};

// Return the mean of TAPS values, correctly rounded; NaN for an infinite sum.
template <typename T, int TAPS, typename Get> GF_DEVICE float stages_mean(Get get) {
    float sum = get(0), max = 0.0f;
#pragma unroll
    for (int k = 1; k < TAPS; k++)
        sum = __fadd_rn(sum, get(k));
    return gf_smooth_divided<T, TAPS>(sum, &max);
}

// Compute the smooth stage of N means. get(k, j): mean j, k positions after it. KEEP: with the
// brightness factor.
template <bool KEEP, int N, typename Get>
GF_DEVICE void stages_smooth(const gf_smooth_constants &k, float (&s)[N], Get get) {
#pragma unroll
    for (int j = 0; j < N; j++) {
        s[j] = __fmul_rn(__fadd_rn(get(0, j), get(-1, j)), k.weight);
        s[j] = __fmul_rn(__fadd_rn(s[j], get(1, j)), k.weight);
        if (KEEP)
            s[j] = __fmul_rn(s[j], k.inner_factor);
    }
}

// Compute again, by the stages, the results that are NaN of rows [y, stop) of the strip and 4
// samples from i: they may be due to infinite sums.
template <typename T, int RADIUS>
static __device__ __noinline__ void stages_revise(const gf_both_args &a, int64_t y, int64_t stop,
                                                  int64_t i) {
    for (; y < stop; y++) {
        T *row = reinterpret_cast<T *>(a.out + y * static_cast<int64_t>(a.out_stride));
        for (int64_t j = i; j < i + 4 && j < a.width * a.channels; j++) {
            float x[1];
            if (j % a.channels >= a.colours || !isnan(static_cast<float>(row[j])))
                continue;
            gf_both_exact<T, RADIUS>(a, a.out_first + y, a.out_first + y + 1, j, x);
            row[j] = gf_store<T>(x[0]);
        }
    }
}

template <typename Sample, int CHANNELS, int RADIUS, bool KEEP> struct stages_filter {
    typedef stages_args Args;
    typedef Sample T;
    static constexpr int C = CHANNELS, X = 4, R = 4, TAPS = 2 * RADIUS + 1;
    static constexpr int RUN = sizeof(T) < 4 ? 32 : 16, ROWS = sizeof(T) < 4 ? 8 : 4, BLOCKS = 4;
    static constexpr bool ALIGNED = false, SYMMETRIC = false, CENTER = false, CLAMP = true;
    struct State {
        float prev[4], mid[4]; // means
    };

    static __device__ __forceinline__ float value(const Args &a, const uint32_t *words, int i) {
        return gf_enhanced<T>(words, i, a.exact.constants);
    }

    static __device__ __forceinline__ void along_x(const Args &a, const float *v, float (&s)[RUN]) {
        float mean[RUN + 2 * C]; // from a pixel before the samples
#pragma unroll
        for (int i = 0; i < RUN + 2 * C; i++)
            mean[i] = stages_mean<T, TAPS>([&](int k) { return v[i + (X - 1 - RADIUS + k) * C]; });
        stages_smooth<KEEP>(a.exact.constants, s,
                            [&](int k, int j) { return mean[j + (1 + k) * C]; });
#pragma unroll
        for (int j = 0; j < RUN; j++)
            s[j] = gf_smooth_enhance(s[j], a.exact.constants.gain);
    }

    template <typename Get>
    static __device__ __forceinline__ void along_y(const Args &a, State &state, Get get,
                                                   float (&s)[4]) {
        float next[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            next[j] = stages_mean<T, TAPS>([&](int k) { return get(k + 1 - RADIUS, j); });
        stages_smooth<KEEP>(a.exact.constants, s, [&](int k, int j) {
            return k < 0 ? state.prev[j] : k == 0 ? state.mid[j] : next[j];
        });
#pragma unroll
        for (int j = 0; j < 4; j++) {
            state.prev[j] = state.mid[j];
            state.mid[j] = next[j];
        }
    }

    static __device__ __forceinline__ bool complete(const Args &, float (&s)[4], const T *,
                                                    uint32_t (&bits)[4]) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            bits[j] = sizeof(T) == 4 ? gf_columns_bits<float>(s[j]) : gf_smooth_bits<T>(s[j]);
        return sizeof(T) == 4 && (isnan(s[0]) || isnan(s[1]) || isnan(s[2]) || isnan(s[3]));
    }

    static __device__ __forceinline__ void revise(const Args &a, int64_t y, int64_t stop,
                                                  int64_t i) {
        stages_revise<T, RADIUS>(a.exact, y, stop, i);
    }
};

bool gf_smooth_stages(const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    const gf_format *format = &plan->head.in;
    const bool real = format->type == GF_F32;
    if (plan->axis != GF_SMOOTH_XY || plan->radius == 0 || format->type == GF_U8 || !plan->smooth ||
        !gf_chain_fits(plan, real))
        return false;
    stages_args a = {};
    a.radius[0] = a.radius[1] = static_cast<int>(plan->radius + 1);
    a.exact = gf_both_args_of(job);
    bool queued = false;
    gf_dispatch(
        [&](auto sample, auto channels, auto radius, auto keep) {
            typedef decltype(sample) T;
            if constexpr (sizeof(T) > 1 && (sizeof(T) < 4 || keep)) // the factor may be 1
                queued = gf_columns_launch<stages_filter<T, channels, radius, keep>>(
                    &a, &plan->head, &job.strip, {GF_EDGE_REPLICATE, 0}, job.queue);
        },
        gf_type_of{format->type}, gf_channels{format->channels}, gf_number<1, 3>{plan->radius},
        gf_flag{real || plan->inner_factor != 1});
    if (queued && job.queue)
        gf_both_border(job);
    return queued;
}
