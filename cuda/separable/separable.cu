// Separable filters on CUDA: the choice of kernels, and the general kernels.
#include "cuda/separable/device.cuh"

// ---- general kernels ----------------------------------------------------------------------------

// Type of the values between the passes, and of a tap.
template <gf_separable_form FORM>
using general_value =
    std::conditional_t<FORM == GF_SEPARABLE_SINGLE, float,
                       std::conditional_t<FORM == GF_SEPARABLE_DOUBLE, double, uint32_t>>;

// Return a + b, and a * b + c. Integers: exact.
GF_DEVICE float general_add(float a, float b) {
    return __fadd_rn(a, b);
}
GF_DEVICE double general_add(double a, double b) {
    return __dadd_rn(a, b);
}
template <typename T> GF_DEVICE T general_add(T a, T b) {
    return a + b;
}
GF_DEVICE float general_fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}
GF_DEVICE double general_fma(double a, double b, double c) {
    return __fma_rn(a, b, c);
}
template <typename T> GF_DEVICE T general_fma(uint32_t a, T b, T c) {
    return a * b + c;
}

// Tuning constants of the general kernels.
struct general_policy {
    static constexpr int THREADS = 256;
    static constexpr int N = 8; // adjacent results of a thread along the axis
    static constexpr int LANES = 32, GROUPS = THREADS / LANES; // along y: columns, groups of N rows
};

// Compute N adjacent sums of windows: get(d) is the value at distance d from the first center, taps
// are in shared memory. The values at distances -k and k from the centers stay in registers. With
// the next smaller k, both move by one: two loads serve N sums.
template <gf_separable_form FORM, typename Sum, typename Get>
GF_DEVICE void general_sums(const general_value<FORM> *taps, int radius,
                            Sum (&s)[general_policy::N], Get get) {
    constexpr int N = general_policy::N;
    Sum before[N], after[N];
#pragma unroll
    for (int j = 0; j < N; j++) {
        s[j] = static_cast<Sum>(-0.0); // fma(t, v, -0) is t * v
        before[j] = get(j - radius);
        after[j] = get(j + radius);
    }
#pragma unroll 1
    for (int k = radius; k > 0; k -= N) {
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (k == u)
                break;
            const auto tap = taps[k - u];
#pragma unroll
            for (int j = 0; j < N; j++) {
                const Sum x = before[(j + u) % N], y = after[(j - u + N) % N];
                s[j] = general_fma(tap, general_add(x, y), s[j]);
            }
            before[u] = get(N - k + u);
            after[N - 1 - u] = get(k - u - 1);
        }
        if (k < N)
            break;
    }
#pragma unroll
    for (int j = 0; j < N; j++)
        s[j] = general_fma(taps[0], get(j), s[j]);
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

// Return the bytes of a piece of separable_along_x with its halo, at most 56 KB.
template <typename Value> static constexpr size_t general_shared(int channels, int radius) {
    const size_t pixels = general_policy::THREADS / channels * general_policy::N + 2 * radius;
    return (pixels + pixels / general_policy::N + 1) * channels * sizeof(Value);
}

// Load the taps of an axis into shared memory. A barrier must follow.
template <typename Tap>
GF_DEVICE void general_load_taps(const general_args &a, int axis, Tap *taps) {
    for (int k = threadIdx.x; k <= a.radius[axis]; k += general_policy::THREADS)
        taps[k] = static_cast<const Tap *>(a.taps[axis])[k];
}

// Compute the pass along x of all rows in memory.
// Grid: x: pieces of a row, of whole pixels. y: rows, strided. Block: 256 threads, 8 adjacent
// results of a channel each. A piece and its halo are converted in shared memory, through which the
// results leave, too: all accesses are coalesced. 8 pixels are followed by a gap of one, so that
// lanes access different banks. Any radius and edge. Shared memory: 10 to 56 KB.
template <gf_separable_form FORM, typename T>
__global__ void __launch_bounds__(general_policy::THREADS)
    separable_along_x(const __grid_constant__ general_args a) {
    typedef general_value<FORM> Value;
    constexpr int THREADS = general_policy::THREADS, N = general_policy::N;
    extern __shared__ double general_memory[];
    __shared__ Value taps[GF_SEPARABLE_MAX_RADIUS + 1];
    Value *values = reinterpret_cast<Value *>(general_memory);
    const int C = a.in.channels, radius = a.radius[0], pixels = THREADS / C * N;
    const int g = threadIdx.x / C, c = threadIdx.x - g * C;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * pixels;
    const int64_t rest = a.in.width - first;
    const int count = rest < pixels ? static_cast<int>(rest) : pixels;
    const bool inner = first >= radius && rest >= pixels + radius;
    const auto at = [&](int pixel) { return C * (pixel + pixel / N); };
    // Call visit(pixel, channel, sample) for the thread's share of `all` samples of a piece.
    const auto each = [&](int all, auto visit) {
        int pixel = g, channel = c;
        for (int i = threadIdx.x; i < all; i += THREADS) {
            visit(pixel, channel, i);
            pixel += THREADS / C, channel += THREADS % C;
            if (channel >= C)
                channel -= C, pixel++;
        }
    };
    gf_wait_for_stream();
    general_load_taps(a, 0, taps);
    for (uint64_t y = blockIdx.y; y < a.between_rows; y += gridDim.y) {
        const unsigned char *row = a.in.in + y * a.in.stride;
        const T *from = reinterpret_cast<const T *>(row) + (first - radius) * C;
        const bool outside = y + 1 == a.between_rows;
        __syncthreads(); // before the values are overwritten
        each((count + 2 * radius) * C, [&](int pixel, int channel, int i) {
            values[at(pixel) + channel] =
                outside ? static_cast<Value>(a.in.edge.value)
                : inner
                    ? static_cast<Value>(from[i])
                    : static_cast<Value>(gf_window_sample<T>(a.in, row, (first - radius) * C + i));
        });
        __syncthreads();
        Value s[N];
        const Value *window = values + at(g * N) + c;
        const bool active = g * N < count && g < THREADS / C;
        if (active)
            general_sums<FORM>(taps, radius, s, [&](int d) { return window[at(d + radius)]; });
        __syncthreads();
        for (int j = 0; active && j < N; j++)
            if constexpr (FORM == GF_SEPARABLE_FIXED) // to 16 bits
                values[at(g * N + j) + c] = (s[j] + 128) >> 8;
            else
                values[at(g * N + j) + c] = s[j];
        __syncthreads();
        Value *to = reinterpret_cast<Value *>(a.between + y * a.between_stride) + first * C;
        each(count * C,
             [&](int pixel, int channel, int i) { to[i] = values[at(pixel) + channel]; });
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

// Compute the pass along y, and store the results.
// Grid: x: groups of 32 samples. y: groups of 64 rows, strided. Block: 256 threads; a warp has 8
// rows of the samples. Any radius and edge: reads from the caches.
template <gf_separable_form FORM, typename T>
__global__ void __launch_bounds__(general_policy::THREADS)
    separable_along_y(const __grid_constant__ general_args a) {
    typedef general_value<FORM> Value;
    typedef std::conditional_t<FORM == GF_SEPARABLE_SUMS, gf_u64, Value> Sum;
    constexpr int N = general_policy::N, LANES = general_policy::LANES;
    constexpr int STEP = general_policy::GROUPS * N;
    __shared__ Value taps[GF_SEPARABLE_MAX_RADIUS + 1];
    const int64_t i = static_cast<int64_t>(blockIdx.x) * LANES + threadIdx.x % LANES;
    const int radius = a.radius[1], C = a.in.channels;
    gf_wait_for_stream();
    general_load_taps(a, 1, taps);
    __syncthreads();
    if (i >= a.in.width * C)
        return;
    const bool is_alpha = a.alpha && i % C == C - 1;
    for (uint64_t row = static_cast<uint64_t>(blockIdx.y) * STEP + threadIdx.x / LANES * N;
         row < a.rows; row += static_cast<uint64_t>(gridDim.y) * STEP) {
        const int64_t y = a.first + static_cast<int64_t>(row);
        const int64_t stride = static_cast<int64_t>(a.between_stride);
        const unsigned char *column = a.between + i * static_cast<int64_t>(sizeof(Value));
        const bool inner = y >= radius && y + N - 1 + radius < a.in.height && row + N <= a.rows;
        // Rows after the strip are not used, and may be missing: those of the last one replace
        // them.
        const int64_t last = a.first + static_cast<int64_t>(a.rows) - 1 + radius;
        Sum s[N];
        general_sums<FORM>(taps, radius, s, [&](int d) {
            int64_t at = y + d - a.in.first;
            if (!inner) {
                at = gf_edge_index(a.in.edge.mode, y + d < last ? y + d : last, a.in.height);
                at = at < 0 ? static_cast<int64_t>(a.between_rows) - 1 : at - a.in.first;
            }
            return static_cast<Sum>(*reinterpret_cast<const Value *>(column + at * stride));
        });
#pragma unroll
        for (int j = 0; j < N; j++) {
            if (row + j >= a.rows)
                break;
            const T v =
                reinterpret_cast<const T *>(a.in.in + (y + j - a.in.first) * a.in.stride)[i];
            reinterpret_cast<T *>(a.out + (row + j) * a.out_stride)[i] =
                is_alpha ? v : general_result<FORM>(a, s[j], v);
        }
    }
}

static size_t general_stride(const gf_separable_plan *plan) {
    const size_t value = plan->form == GF_SEPARABLE_DOUBLE ? sizeof(double) : sizeof(float);
    return gf_align(static_cast<size_t>(gf_row_samples(&plan->head.in)) * value);
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
    typedef general_policy Policy;
    typedef general_value<FORM> Value;
    const int C = a.in.channels, pixels = Policy::THREADS / C * Policy::N;
    const size_t shared = general_shared<Value>(C, a.radius[0]);
    gf_allow_shared<separable_along_x<FORM, T>>(shared);
    gf_launch_kernel(
        separable_along_x<FORM, T>,
        dim3(gf_blocks(plan->head.in.width, pixels), gf_blocks(a.between_rows, 1, 65535)),
        Policy::THREADS, shared, job.queue, a);
    gf_launch_kernel(separable_along_y<FORM, T>,
                     dim3(gf_blocks(gf_row_samples(&plan->head.in), Policy::LANES),
                          gf_blocks(a.rows, Policy::GROUPS * Policy::N, 65535)),
                     Policy::THREADS, 0, job.queue, a);
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
    return gf_separable_fixed(job) || // tensor cores: u8 in fixed point, small boxes of u8
           gf_separable_single(job);  // window_columns: binary32 and box of u16, radius up to 8
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
