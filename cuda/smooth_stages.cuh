// The three stages of smooth as device functions. Each operation is an intrinsic that rounds on its
// own: no compiler setting can contract two of them.
#ifndef GF_SMOOTH_STAGES_CUH
#define GF_SMOOTH_STAGES_CUH

static __device__ __forceinline__ float enhance(float x, float gain) {
    return __fmul_rn(x, gain);
}

// The mean of taps samples, `step` apart, added left to right.
static __device__ __forceinline__ float blur(const float *p, int step, int taps) {
    float sum = *p;
    for (int k = 1; k < taps; k++) {
        p += step;
        sum = __fadd_rn(sum, *p);
    }
    return __fdiv_rn(sum, static_cast<float>(taps));
}

// What a position in its tile means for the smooth stage.
struct gf_smooth_end {
    bool has_prev, has_next;
};

struct gf_smooth_constants {
    float gain, weight, inner_factor, end_factor;
    bool smooth;
};

static __device__ __forceinline__ float smooth(float prev, float mid, float next, gf_smooth_end end,
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

#endif
