// Separable filters on CUDA: the choice of kernels, and the general kernels.
#include "cuda/separable/device.cuh"

// ---- general kernels ----------------------------------------------------------------------------

// Arithmetic of a form: the type of the values between the passes, and that of a tap.
template <gf_separable_form FORM> struct general_form {
    typedef float Value;
    typedef float Tap;
};
template <> struct general_form<GF_SEPARABLE_DOUBLE> {
    typedef double Value;
    typedef double Tap;
};
template <> struct general_form<GF_SEPARABLE_FIXED> {
    typedef uint32_t Value;
    typedef uint32_t Tap;
};
template <> struct general_form<GF_SEPARABLE_SUMS> {
    typedef uint32_t Value;
    typedef uint32_t Tap;
};

GF_DEVICE float general_add(float a, float b) {
    return __fadd_rn(a, b);
}
GF_DEVICE double general_add(double a, double b) {
    return __dadd_rn(a, b);
}
GF_DEVICE float general_fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}
GF_DEVICE double general_fma(double a, double b, double c) {
    return __fma_rn(a, b, c);
}

// Return the sum of a window: get(k) is the value at distance k, from -radius to radius.
template <gf_separable_form FORM, typename Sum, typename Get>
GF_DEVICE Sum general_sum(const void *taps, int radius, Get get) {
    typedef typename general_form<FORM>::Tap Tap;
    const Tap *t = static_cast<const Tap *>(taps);
    if constexpr (FORM == GF_SEPARABLE_FIXED || FORM == GF_SEPARABLE_SUMS) {
        Sum s = static_cast<Sum>(t[0]) * get(0);
        for (int k = 1; k <= radius; k++)
            s += static_cast<Sum>(t[k]) * get(-k) + static_cast<Sum>(t[k]) * get(k);
        return s;
    } else {
        if (radius == 0)
            return t[0] * get(0);
        Sum s = t[radius] * general_add(get(-radius), get(radius));
        for (int k = radius - 1; k > 0; k--)
            s = general_fma(t[k], general_add(get(-k), get(k)), s);
        return general_fma(t[0], get(0), s);
    }
}

struct general_args {
    gf_window_source in;
    unsigned char *between; // values of the rows of `in`, then those of a row outside the image
    size_t between_stride;
    uint64_t between_rows; // including that row
    unsigned char *out;
    size_t out_stride;
    int64_t first; // output row 0
    uint64_t rows;
    const void *taps[2];
    int radius[2];
    uint32_t count;
    bool alpha, sharpen;
    float amount, threshold;
};

// Compute the pass along x of all rows in memory.
// Grid: x: groups of 256 samples. y: rows, strided. Block: 256 threads, one sample each. Reads from
// the caches; any radius and edge.
template <gf_separable_form FORM, typename T>
__global__ void __launch_bounds__(256) separable_along_x(const __grid_constant__ general_args a) {
    typedef typename general_form<FORM>::Value Value;
    const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x, C = a.in.channels;
    gf_wait_for_stream();
    if (i >= a.in.width * C)
        return;
    const bool inner = i >= a.radius[0] * C && i + a.radius[0] * C < a.in.width * C;
    for (uint64_t y = blockIdx.y; y < a.between_rows; y += gridDim.y) {
        const bool outside = y + 1 == a.between_rows;
        const T *row = reinterpret_cast<const T *>(a.in.in + y * a.in.stride) + i;
        const auto get = [&](int k) {
            if (outside)
                return static_cast<Value>(a.in.edge.value);
            if (inner)
                return static_cast<Value>(row[k * C]);
            return static_cast<Value>(gf_window_sample<T>(
                a.in, reinterpret_cast<const unsigned char *>(row - i), i + k * C));
        };
        Value s = general_sum<FORM, Value>(a.taps[0], a.radius[0], get);
        if constexpr (FORM == GF_SEPARABLE_FIXED)
            s = (s + 128) >> 8;
        reinterpret_cast<Value *>(a.between + y * a.between_stride)[i] = s;
    }
}

// Return the result of a window with the sum s. v: the sample at its center.
template <gf_separable_form FORM, typename T, typename Sum>
GF_DEVICE T general_result(const general_args &a, Sum s, T v) {
    if constexpr (FORM == GF_SEPARABLE_FIXED) {
        return static_cast<T>((s + (1u << 23)) >> 24);
    } else if constexpr (FORM == GF_SEPARABLE_SUMS) {
        return static_cast<T>((s + a.count / 2) / a.count);
    } else {
        if (a.count > 1)
            s = __fdiv_rn(static_cast<float>(s), static_cast<float>(a.count));
        if (a.sharpen) {
            const Sum sample = static_cast<Sum>(v), d = general_add(sample, -s);
            s = (d < 0 ? -d : d) < static_cast<Sum>(a.threshold)
                    ? sample
                    : general_fma(static_cast<Sum>(a.amount), d, sample);
        }
        if constexpr (FORM == GF_SEPARABLE_DOUBLE)
            return gf_store<T>(static_cast<float>(rint(s)));
        else
            return gf_store<T>(s);
    }
}

// Compute the pass along y, and store the results. Grid and block as for separable_along_x.
template <gf_separable_form FORM, typename T>
__global__ void __launch_bounds__(256) separable_along_y(const __grid_constant__ general_args a) {
    typedef typename general_form<FORM>::Value Value;
    typedef std::conditional_t<FORM == GF_SEPARABLE_SUMS, gf_u64, Value> Sum;
    const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x, C = a.in.channels;
    gf_wait_for_stream();
    if (i >= a.in.width * C)
        return;
    const bool is_alpha = a.alpha && i % C == C - 1;
    for (uint64_t row = blockIdx.y; row < a.rows; row += gridDim.y) {
        const int64_t y = a.first + static_cast<int64_t>(row);
        const T v = reinterpret_cast<const T *>(a.in.in + (y - a.in.first) * a.in.stride)[i];
        T *to = reinterpret_cast<T *>(a.out + row * a.out_stride) + i;
        const bool inner = y >= a.radius[1] && y + a.radius[1] < a.in.height;
        const auto get = [&](int k) {
            int64_t at = y + k;
            if (!inner)
                at = gf_edge_index(a.in.edge.mode, at, a.in.height);
            at = at < 0 ? static_cast<int64_t>(a.between_rows) - 1 : at - a.in.first;
            return reinterpret_cast<const Value *>(a.between + at * a.between_stride)[i];
        };
        if (is_alpha)
            *to = v;
        else
            *to = general_result<FORM>(a, general_sum<FORM, Sum>(a.taps[1], a.radius[1], get), v);
    }
}

static size_t general_stride(const gf_separable_plan *plan) {
    const size_t value = plan->form == GF_SEPARABLE_DOUBLE ? sizeof(double) : sizeof(float);
    return (static_cast<size_t>(gf_row_samples(&plan->head.in)) * value + 63) & ~size_t(63);
}

template <gf_separable_form FORM, typename T>
static void general_launch_form(const gf_separable_job &job) {
    const gf_separable_plan *plan = job.plan;
    const gf_strip *strip = job.strip;
    general_args a = {};
    a.in = gf_window_source_of(&plan->head, strip, plan->edge);
    a.between = static_cast<unsigned char *>(job.scratch);
    a.between_stride = general_stride(plan);
    a.between_rows = strip->in[0].rows + 1;
    a.out = strip->out.data;
    a.out_stride = strip->out.stride;
    a.first = static_cast<int64_t>(strip->out.y0);
    a.rows = strip->out.rows;
    const size_t tap = gf_separable_tap_bytes(plan->form);
    a.taps[0] = strip->constants;
    a.taps[1] = static_cast<const unsigned char *>(strip->constants) + (plan->radius[0] + 1) * tap;
    a.radius[0] = static_cast<int>(plan->radius[0]);
    a.radius[1] = static_cast<int>(plan->radius[1]);
    a.count = plan->count;
    a.alpha = gf_has_alpha(&plan->head.in);
    a.sharpen = plan->sharpen;
    a.amount = plan->amount;
    a.threshold = plan->threshold;
    const unsigned across = gf_blocks(gf_row_samples(&plan->head.in), 256);
    gf_launch_kernel(separable_along_x<FORM, T>, dim3(across, gf_blocks(a.between_rows, 1, 65535)),
                     256, 0, job.queue, a);
    gf_launch_kernel(separable_along_y<FORM, T>, dim3(across, gf_blocks(a.rows, 1, 65535)), 256, 0,
                     job.queue, a);
}

// Queue the general kernels. They support every plan.
static void general_launch(const gf_separable_job &job) {
    gf_for_type(job.plan->head.in.type, [&](auto sample) {
        typedef decltype(sample) T;
        const gf_separable_form form = job.plan->form;
        if (form == GF_SEPARABLE_SINGLE)
            return general_launch_form<GF_SEPARABLE_SINGLE, T>(job);
        if constexpr (sizeof(T) == 1)
            if (form == GF_SEPARABLE_FIXED)
                return general_launch_form<GF_SEPARABLE_FIXED, T>(job);
        if constexpr (sizeof(T) == 2)
            if (form == GF_SEPARABLE_DOUBLE)
                return general_launch_form<GF_SEPARABLE_DOUBLE, T>(job);
        if constexpr (sizeof(T) < 4)
            general_launch_form<GF_SEPARABLE_SUMS, T>(job);
    });
}

// ---- dispatch -----------------------------------------------------------------------------------

// Queue the fastest kernel that is not general. Returns false if there is none.
static bool separable_fused(const gf_separable_job &job) {
    return gf_separable_fixed(job) || // window_bytes: u8 in fixed point, small boxes of u8
           gf_separable_single(job);  // window_columns: binary32, radius up to 8
}

static size_t separable_scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_separable_plan *plan = reinterpret_cast<const gf_separable_plan *>(head);
    return separable_fused({plan, nullptr, nullptr, nullptr})
               ? 0
               : (in_rows + 1) * general_stride(plan);
}

static void separable_launch(const gf_plan *head, const gf_strip *strip, void *scratch,
                             gf_queue *queue) {
    const gf_separable_job job = {reinterpret_cast<const gf_separable_plan *>(head), strip, scratch,
                                  queue};
    if (!separable_fused(job))
        general_launch(job); // separable_along_x, separable_along_y: all plans
}

#define SEPARABLE_KERNELS                                                                          \
    { separable_scratch_bytes, separable_launch, nullptr, false }

extern "C" const gf_filter_cuda gf_gaussian_cuda = SEPARABLE_KERNELS;
extern "C" const gf_filter_cuda gf_box_cuda = SEPARABLE_KERNELS;
extern "C" const gf_filter_cuda gf_sharpen_cuda = SEPARABLE_KERNELS;
