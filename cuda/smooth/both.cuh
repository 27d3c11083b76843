// The exact path of smooth along both axes, and the border of images.
#ifndef GF_SMOOTH_BOTH_CUH
#define GF_SMOOTH_BOTH_CUH

#include "cuda/smooth/device.cuh"

// Parameters of the exact path. Rows are numbered in the image.
struct gf_both_args {
    const unsigned char *in; // row `first`
    unsigned char *out;      // row `out_first`
    size_t in_stride, out_stride;
    int64_t first, end; // rows in memory
    int64_t out_first, out_end;
    int64_t width, height;
    int channels, colours; // colours: those that are filtered
    gf_smooth_constants constants;
};

static inline gf_both_args gf_both_args_of(const gf_smooth_job &job) {
    const gf_format *format = &job.plan->head.in;
    const gf_rows *in = &job.strip.in[0], *out = &job.strip.out;
    return {in->data,
            out->data,
            in->stride,
            out->stride,
            static_cast<int64_t>(in->y0),
            static_cast<int64_t>(in->y0 + in->rows),
            static_cast<int64_t>(out->y0),
            static_cast<int64_t>(out->y0 + out->rows),
            static_cast<int64_t>(format->width),
            static_cast<int64_t>(format->height),
            static_cast<int>(format->channels),
            static_cast<int>(gf_measured_channels(format)),
            gf_smooth_constants_of(job.plan)};
}

// Return sum / count. inverse: 1 / count. Sums of integers: correctly rounded (no over- or
// underflow) from a quotient and its error.
template <typename T> GF_DEVICE float gf_both_divided(float sum, float count, float inverse) {
    if constexpr (sizeof(T) == 4)
        return __fdiv_rn(sum, count);
    const float q = __fmul_rn(sum, inverse);
    return __fmaf_rn(__fmaf_rn(-count, q, sum), inverse, q);
}

// N results at positions from `at` of a line, and the windows of one more mean on each side.
template <typename T, int RADIUS, int N> struct gf_both_line {
    float count[N + 2], inverse[N + 2]; // samples of each window; 1 / count
    bool has_prev[N], has_next[N];

    __device__ __forceinline__ gf_both_line(const gf_smooth_constants &k, int64_t at,
                                            int64_t length) {
        const int before = static_cast<int>(at < 64 ? at : 64);
        const int after = static_cast<int>(length - 1 - at < 64 ? length - 1 - at : 64);
#pragma unroll
        for (int j = 0; j < N + 2; j++) {
            const int lo = before + j - 1 < RADIUS ? before + j - 1 : RADIUS;
            const int hi = after - j + 1 < RADIUS ? after - j + 1 : RADIUS;
            const int n = lo + hi + 1 > 0 ? lo + hi + 1 : 1; // not positive outside of the line
            count[j] = static_cast<float>(n);
            inverse[j] = k.inverse[n];
        }
#pragma unroll
        for (int j = 0; j < N; j++)
            has_prev[j] = before + j > 0, has_next[j] = after - j > 0;
    }

    // get(d): the enhanced sample at distance d from the first position; -0, which changes no sum,
    // outside of the line.
    template <typename Get>
    __device__ __forceinline__ void chain(const gf_smooth_constants &k, float (&result)[N],
                                          Get get) const {
        float mean[N + 2];
#pragma unroll
        for (int j = 0; j < N + 2; j++)
            mean[j] = -0.0f;
#pragma unroll
        for (int d = -RADIUS - 1; d <= N + RADIUS; d++) {
            const float x = get(d);
#pragma unroll
            for (int j = 0; j < N + 2; j++)
                if (d - (j - 1) >= -RADIUS && d - (j - 1) <= RADIUS)
                    mean[j] = __fadd_rn(mean[j], x);
        }
#pragma unroll
        for (int j = 0; j < N + 2; j++)
            mean[j] = gf_both_divided<T>(mean[j], count[j], inverse[j]);
#pragma unroll
        for (int j = 0; j < N; j++)
            result[j] = k.smooth ? gf_smooth_mid(mean[j], mean[j + 1], mean[j + 2], has_prev[j],
                                                 has_next[j], k)
                                 : mean[j + 1];
    }
};

// Compute sample i of rows [y, stop), at most N, by the stages. Without the smooth stage, the rows
// that only that stage would read may be missing.
template <typename T, int RADIUS, int N>
static __device__ __noinline__ void gf_both_exact(const gf_both_args &a, int64_t y, int64_t stop,
                                                  int64_t i, float (&result)[N]) {
    const int64_t x = i / a.channels, stride = static_cast<int64_t>(a.in_stride);
    const gf_both_line<T, RADIUS, 1> along_x(a.constants, x, a.width);
    const gf_both_line<T, RADIUS, N> along_y(a.constants, y, a.height);
    int offset[2 * RADIUS + 3]; // of the pixels of a window, or of the nearest one
#pragma unroll
    for (int d = 0; d < 2 * RADIUS + 3; d++) {
        const int64_t p = x + d - RADIUS - 1;
        offset[d] = static_cast<int>((p < 0 ? 0 : p < a.width ? p : a.width - 1) - x) * a.channels;
    }
    const T *line = reinterpret_cast<const T *>(a.in + (y - a.first) * stride) + i;
    along_y.chain(a.constants, result, [&](int dy) {
        const int64_t row = y + dy;
        const bool outside = row < a.first || row >= a.end;
        if (N > 1 && (outside || row > stop + RADIUS))
            return -0.0f;
        const T *from = reinterpret_cast<const T *>(reinterpret_cast<const unsigned char *>(line) +
                                                    (outside ? 0 : dy * stride));
        float one[1];
        along_x.chain(a.constants, one, [&](int dx) {
            const int o = offset[dx + RADIUS + 1];
            const float v = gf_smooth_enhance(gf_load(from[o]), a.constants.gain);
            return o == dx * a.channels ? v : -0.0f;
        });
        return outside ? -0.0f : gf_smooth_enhance(one[0], a.constants.gain);
    });
}

// Queue smooth_border, after the kernel of the other samples.
void gf_both_border(const gf_smooth_job &job);

#endif
