// smooth along both axes of u16 and f32 by the three stages, radius 1 to 3, in one pass over the
// image: window_columns, and smooth_border.
#include "cuda/smooth/both.cuh"
#include "cuda/window/columns.cuh"

struct stages_args : gf_columns_args {
    gf_smooth_constants constants;
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

// Return the result of the smooth stage, with the brightness factor, which may be 1.
GF_DEVICE float stages_smooth(const gf_smooth_constants &k, float prev, float mid, float next) {
    mid = __fmul_rn(__fadd_rn(mid, prev), k.weight);
    mid = __fmul_rn(__fadd_rn(mid, next), k.weight);
    return __fmul_rn(mid, k.inner_factor);
}

// Compute again, by the stages, the results that are NaN of rows [y, stop) of the strip and 4
// samples from i: they may be due to infinite sums.
template <typename T, int MEAN>
static __device__ __noinline__ void stages_revise(const gf_both_args &a, int64_t y, int64_t stop,
                                                  int64_t i) {
    for (; y < stop; y++) {
        T *row = reinterpret_cast<T *>(a.out + y * static_cast<int64_t>(a.out_stride));
        for (int64_t j = i; j < i + 4 && j < a.width * a.channels; j++) {
            float x[1];
            if (j % a.channels >= a.colours || !isnan(static_cast<float>(row[j])))
                continue;
            gf_both_exact<T, MEAN>(a, a.out_first + y, a.out_first + y + 1, j, x);
            row[j] = gf_store<T>(x[0]);
        }
    }
}

template <typename Sample, int CHANNELS, int MEAN> struct stages_filter {
    typedef stages_args Args;
    typedef Sample T;
    static constexpr int C = CHANNELS, R = 4, TAPS = 2 * MEAN + 1, BLOCKS = 4;
    static constexpr bool CONVERTED = true, ALIGNED = false, SYMMETRIC = false, CENTER = false;
    struct State {
        float prev[4], mid[4]; // means
    };

    // Enhance 4 samples.
    static __device__ __forceinline__ float4 convert(const Args &a, float4 v) {
        return make_float4(
            gf_smooth_enhance(v.x, a.constants.gain), gf_smooth_enhance(v.y, a.constants.gain),
            gf_smooth_enhance(v.z, a.constants.gain), gf_smooth_enhance(v.w, a.constants.gain));
    }

    static __device__ __forceinline__ void along_x(const Args &a, const float4 *window,
                                                   float (&s)[4]) {
        constexpr int FIRST = (R - MEAN - 1) * C / 4; // vector that is needed first
        float v[4 + 2 * R * C], mean[4 + 2 * C];      // mean: from a pixel before the samples
#pragma unroll
        for (int i = FIRST; i < 1 + 2 * (R * C / 4) - FIRST; i++) {
            const float4 q = window[i];
            v[4 * i] = q.x, v[4 * i + 1] = q.y, v[4 * i + 2] = q.z, v[4 * i + 3] = q.w;
        }
#pragma unroll
        for (int i = 0; i < 4 + 2 * C; i++)
            mean[i] = stages_mean<T, TAPS>([&](int k) { return v[i + (R - 1 - MEAN + k) * C]; });
#pragma unroll
        for (int j = 0; j < 4; j++)
            s[j] =
                gf_smooth_enhance(stages_smooth(a.constants, mean[j], mean[j + C], mean[j + 2 * C]),
                                  a.constants.gain);
    }

    template <typename Get>
    static __device__ __forceinline__ void along_y(const Args &a, State &state, Get get,
                                                   float (&s)[4]) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float next = stages_mean<T, TAPS>([&](int k) { return get(k + 1 - MEAN, j); });
            s[j] = stages_smooth(a.constants, state.prev[j], state.mid[j], next);
            state.prev[j] = state.mid[j];
            state.mid[j] = next;
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
        stages_revise<T, MEAN>(a.exact, y, stop, i);
    }
};

bool gf_smooth_stages(const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    const gf_format *format = &plan->head.in;
    const bool real = format->type == GF_F32;
    if (plan->axis != GF_SMOOTH_XY || !plan->smooth || plan->radius == 0 || format->type == GF_U8 ||
        !gf_chain_fits(plan, real))
        return false;
    stages_args a = {};
    a.radius[0] = a.radius[1] = static_cast<int>(plan->radius) + 1;
    a.constants = gf_smooth_constants_of(plan);
    if (job.queue)
        a.exact = gf_both_args_of(job);
    bool queued = false;
    const auto launch = [&](auto sample, auto channels, auto radius) {
        queued = gf_columns_launch<stages_filter<decltype(sample), channels, radius>>(
            &a, &plan->head, &job.strip, {GF_EDGE_REPLICATE, 0}, job.queue);
    };
    gf_dispatch(
        [&](auto wide, auto channels, auto radius) {
            typedef std::conditional_t<wide, float, uint16_t> T;
            launch(T{}, channels, radius);
        },
        gf_flag{real}, gf_channels{format->channels}, gf_number<1, 3>{plan->radius});
    if (queued && job.queue)
        gf_both_border(job, nullptr);
    return queued;
}
