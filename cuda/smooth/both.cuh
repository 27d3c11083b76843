// The exact path of smooth along y and along both axes, and the border of images.
#ifndef GF_SMOOTH_BOTH_CUH
#define GF_SMOOTH_BOTH_CUH

#include "cuda/smooth/device.cuh"
#include "cuda/window/bytes.cuh"

typedef gf_bytes_policy<3, 2> gf_both_policy; // of window_bytes: 16 bytes around a sample

// Parameters of the exact path. Rows are numbered in the image.
struct gf_both_args {
    gf_rows in, out;
    int64_t width, height;
    int channels, colours; // colours: those that are filtered
    bool along_x;          // as well as along y
    gf_smooth_constants constants;
};

static inline gf_both_args gf_both_args_of(const gf_smooth_job &job) {
    const gf_format *format = &job.plan->head.in;
    return {job.strip.in[0],
            job.strip.out,
            static_cast<int64_t>(format->width),
            static_cast<int64_t>(format->height),
            static_cast<int>(format->channels),
            static_cast<int>(gf_measured_channels(format)),
            job.plan->axis == GF_SMOOTH_XY,
            gf_smooth_constants_of(job.plan)};
}

// Compute sample i of rows [y, stop), at most N, by the stages. Without the smooth stage, the rows
// that only that stage would read may be missing.
template <typename T, int RADIUS, int N>
static __device__ __noinline__ void gf_both_exact(const gf_both_args &a, int64_t y, int64_t stop,
                                                  int64_t i, float (&result)[N]) {
    const int64_t x = i / a.channels, end = static_cast<int64_t>(a.in.y0 + a.in.rows);
    const int left = gf_smooth_near(x), right = gf_smooth_near(a.width - x);
    const int below = gf_smooth_near(min(end, stop + RADIUS + 1) - y);
    const unsigned char *line = a.in.data + (y - a.in.y0) * a.in.stride + i * sizeof(T);
    gf_smooth_exact<T, RADIUS>(
        a.constants, gf_smooth_near(y - a.in.y0), below, result, [&](int dy) {
            const int64_t offset = dy * static_cast<int64_t>(a.in.stride);
            const T *from = reinterpret_cast<const T *>(line + offset);
            float one[1] = {gf_load(*from)};
            if (a.along_x)
                gf_smooth_exact<T, RADIUS>(a.constants, left, right, one,
                                           [&](int dx) { return gf_load(from[dx * a.channels]); });
            return one[0];
        });
}

// Queue smooth_border, after the kernel of the other samples. ties: the arguments of window_bytes
// with its near-ties, or nullptr.
void gf_both_border(const gf_smooth_job &job, const gf_bytes_args *ties);

#endif
