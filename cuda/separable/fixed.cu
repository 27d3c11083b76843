// Separable filters of u8 in fixed point, and small boxes, on tensor cores: window_tile for small
// windows, else window_bytes.
#include "cuda/separable/device.cuh"
#include "cuda/window/tile.cuh"

// Base: gf_bytes_args or gf_tile_args.
template <typename Base> struct fixed_args : Base {
    uint32_t factor, half; // of fixed_box: see fixed_box_fits
};

template <typename Base, bool FEW> struct fixed_gauss_of {
    typedef fixed_args<Base> Args;
    static constexpr bool WIDE = true, TIES = false, ALONG_X = true, NARROW = FEW;
    static constexpr uint32_t START = 128;
    static __device__ __forceinline__ uint32_t word(const Args &, const uint32_t (&s)[4],
                                                    uint32_t *) {
        return gf_bytes_highest(s);
    }
};

template <typename Base> using fixed_gauss = fixed_gauss_of<Base, true>;
template <typename Base> using fixed_full = fixed_gauss_of<Base, false>;

template <typename Base> struct fixed_box {
    typedef fixed_args<Base> Args;
    static constexpr bool WIDE = false, TIES = false, ALONG_X = true, NARROW = false;
    static constexpr uint32_t START = 0;
    static __device__ __forceinline__ uint32_t word(const Args &a, const uint32_t (&s)[4],
                                                    uint32_t *) {
        uint32_t value[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            value[i] = s[i] * a.factor + a.half;
        return gf_bytes_highest(value);
    }
};

static gf_bytes_window fixed_window(const gf_separable_plan *plan) {
    gf_bytes_window window = {};
    for (int axis = 0; axis < 2; axis++) {
        window.radius[axis] = static_cast<int>(plan->radius[axis]);
        for (int k = 0; k <= window.radius[axis]; k++)
            window.taps[axis][GF_BYTES_RADIUS - k] = window.taps[axis][GF_BYTES_RADIUS + k] =
                static_cast<uint16_t>(gf_separable_taps<uint32_t>(plan, axis)[k]);
    }
    return window;
}

template <typename Base> static fixed_args<Base> fixed_args_of(const gf_separable_plan *plan) {
    fixed_args<Base> a = {};
    a.factor = (1u << 24) / plan->count + 1;
    a.half = plan->count / 2 * a.factor;
    return a;
}

template <int KX, int KB, template <typename> class Filter>
static bool fixed_launch(const gf_separable_job &job) {
    const gf_separable_plan *plan = job.plan;
    const gf_bytes_window window = fixed_window(plan);
    if constexpr (KX == 3 && KB == 2)
        if (window.radius[1] <= gf_tile_policy::MAX_RADIUS) {
            auto a = fixed_args_of<gf_tile_args>(plan);
            return gf_tile_launch<Filter<gf_tile_args>>(&a, window, &plan->head, job.strip,
                                                        plan->edge, job.queue);
        }
    if constexpr (Filter<gf_bytes_args>::NARROW) {
        // Sigma 2 of 4 channels, and taps cut off by --truncate.
        constexpr int FULL_KX = KX == 5 && KB == 2 ? 5 : 11, FULL_KB = FULL_KX == 5 ? 2 : 4;
        if (!gf_bytes_narrow<KX, KB>(window, static_cast<int>(plan->head.in.channels)))
            return fixed_launch<FULL_KX, FULL_KB, fixed_full>(job);
    }
    auto a = fixed_args_of<gf_bytes_args>(plan);
    static_cast<gf_bytes_window &>(a) = window;
    return gf_march_launch<gf_bytes_policy<KX, KB>, window_bytes<KX, KB, Filter<gf_bytes_args>>>(
        &a, &plan->head, job.strip, plan->edge, sizeof(gf_bytes_shared<KX, KB>), job.queue);
}

// Test whether a box can be divided in 32 bits. Its mean is x / n, rounded down, for the sum of n
// samples plus n / 2: x < 255.5 n. The kernel computes x * f >> 24 with f * n = 2^24 + e, 0 < e <=
// n. This is x / n + x * e / (n * 2^24), which is less than 1 / n more: x * e < 255.5 n^2 < 2^24.
// The product is below 255.5 (2^24 + n) < 2^32. n is odd, so f * n is not 2^24.
static bool fixed_box_fits(const gf_separable_plan *plan) {
    return plan->form == GF_SEPARABLE_SUMS && plan->head.in.type == GF_U8 && plan->count > 1 &&
           plan->count <= 256;
}

bool gf_separable_fixed(const gf_separable_job &job) {
    const gf_separable_plan *plan = job.plan;
    const uint32_t halo = plan->radius[0] * plan->head.in.channels;
    const bool low = plan->radius[1] <= 8;
    if (fixed_box_fits(plan) && low && halo <= 32)
        return halo <= 16 ? fixed_launch<3, 2, fixed_box>(job) : fixed_launch<5, 2, fixed_box>(job);
    if (plan->form != GF_SEPARABLE_FIXED || gf_separable_taps<uint32_t>(plan, 0)[0] > 65535 ||
        gf_separable_taps<uint32_t>(plan, 1)[0] > 65535)
        return false;
    if (halo <= 16)
        return low ? fixed_launch<3, 2, fixed_gauss>(job) : fixed_launch<3, 4, fixed_gauss>(job);
    if (halo <= 32)
        return low ? fixed_launch<5, 2, fixed_gauss>(job) : fixed_launch<5, 4, fixed_gauss>(job);
    if (halo <= 64)
        return low ? fixed_launch<9, 2, fixed_gauss>(job) : fixed_launch<9, 4, fixed_gauss>(job);
    return low ? fixed_launch<11, 2, fixed_gauss>(job) : fixed_launch<11, 4, fixed_gauss>(job);
}
