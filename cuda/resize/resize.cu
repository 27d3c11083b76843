// resize on CUDA: the choice of kernels, and the general kernel, of all forms and types.
#include "cuda/resize/device.cuh"

#include <tuple>

struct general_args {
    const unsigned char *in; // row 0 of the image
    unsigned char *out;      // first row to compute
    size_t in_stride, out_stride;
    uint64_t first, rows; // rows to compute
    uint64_t samples;     // of an output row
    uint32_t channels;
    const gf_resize_span *spans;
    const void *taps;
    gf_images<2> images; // one per blockIdx.z
};

// The sum before the first product: with -0.0, fma(t, v, sum) is t * v.
template <typename Sum> static constexpr Sum general_zero = static_cast<Sum>(-0.0);

template <gf_resize_form FORM>
using general_sum = std::tuple_element_t<FORM, std::tuple<uint32_t, int32_t, int64_t, float>>;

// Load a tap.
template <gf_resize_form FORM>
GF_DEVICE general_sum<FORM> general_tap(const general_args &a, uint64_t at) {
    if constexpr (FORM == GF_RESIZE_COPY)
        return 0;
    else if constexpr (FORM == GF_RESIZE_WIDE)
        return static_cast<int64_t>(static_cast<const double *>(a.taps)[at]);
    else
        return static_cast<const general_sum<FORM> *>(a.taps)[at];
}

GF_DEVICE uint32_t general_add(uint32_t, uint32_t, uint32_t v) { // COPY: the bits of the sample
    return v;
}
GF_DEVICE int32_t general_add(int32_t sum, int32_t tap, uint32_t v) {
    return sum + tap * static_cast<int32_t>(v);
}
GF_DEVICE int64_t general_add(int64_t sum, int64_t tap, uint32_t v) {
    return sum + tap * v;
}
GF_DEVICE float general_add(float sum, float tap, uint32_t v) {
    return __fmaf_rn(tap, __uint_as_float(v), sum);
}

template <typename T, gf_resize_form FORM> GF_DEVICE T general_result(general_sum<FORM> sum) {
    if constexpr (FORM == GF_RESIZE_COPY) {
        return gf_sample_at<T>(make_uint4(sum, 0, 0, 0), 0);
    } else if constexpr (FORM == GF_RESIZE_SINGLE) {
        return gf_store<T>(sum);
    } else {
        constexpr int BITS = FORM == GF_RESIZE_WIDE ? GF_RESIZE_WIDE_BITS : GF_RESIZE_FIXED_BITS;
        const int32_t v =
            static_cast<int32_t>((sum + (general_sum<FORM>{1} << (BITS - 1))) >> BITS);
        const int32_t max = sizeof(T) == 1 ? 255 : 65535;
        return static_cast<T>(v < 0 ? 0 : v < max ? v : max);
    }
}

// Compute the sums along x or y.
// Grid: x: pieces of a row; y: groups of N rows, strided; z: images. Block: up to 256 threads. A
// thread computes a sample of N rows, which use the same taps along x. Shared memory: none; the
// samples that neighbours read are in the caches.
template <gf_resize_form FORM, typename T, bool DOWN>
__global__ void __launch_bounds__(256) general_kernel(const __grid_constant__ general_args a) {
    constexpr int N = DOWN ? 1 : 8;
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, x = i / a.channels;
    const unsigned char *in = a.in + a.images.at[0][blockIdx.z];
    unsigned char *out = a.out + a.images.at[1][blockIdx.z];
    const size_t step = DOWN ? a.in_stride : a.channels * sizeof(T);
    gf_wait_for_stream();
    if (i >= a.samples)
        return;
    for (uint64_t y = static_cast<uint64_t>(blockIdx.y) * N; y < a.rows;
         y += static_cast<uint64_t>(gridDim.y) * N) {
        gf_resize_span span = {a.first + y, 1, 0};
        if (FORM != GF_RESIZE_COPY)
            span = a.spans[DOWN ? a.first + y : x];
        const unsigned char *from = DOWN ? in + span.first * a.in_stride + i * sizeof(T)
                                         : in + (a.first + y) * a.in_stride +
                                               ((span.first - x) * a.channels + i) * sizeof(T);
        general_sum<FORM> sums[N];
#pragma unroll
        for (int r = 0; r < N; r++)
            sums[r] = general_zero<general_sum<FORM>>;
#pragma unroll 2
        for (uint64_t k = 0; k < span.count; k++, from += step) {
            const general_sum<FORM> tap = general_tap<FORM>(a, span.taps + k);
#pragma unroll
            for (int r = 0; r < N; r++) {
                const size_t row = y + r < a.rows ? r * a.in_stride : 0;
                sums[r] =
                    general_add(sums[r], tap, gf_bits(*reinterpret_cast<const T *>(from + row)));
            }
        }
#pragma unroll
        for (int r = 0; r < N; r++)
            if (y + r < a.rows)
                reinterpret_cast<T *>(out + (y + r) * a.out_stride)[i] =
                    general_result<T, FORM>(sums[r]);
    }
}

template <gf_resize_form FORM, typename T, bool DOWN>
static void general_launch(const general_args &a, gf_queue *queue) {
    const unsigned threads =
        a.samples < 256 ? static_cast<unsigned>(a.samples + 31) / 32 * 32 : 256;
    const dim3 grid(static_cast<unsigned>(gf_divide_up(a.samples, threads)),
                    gf_blocks(a.rows, DOWN ? 1 : 8, 65535), a.images.count);
    gf_launch_kernel(general_kernel<FORM, T, DOWN>, grid, threads, 0, queue, a);
}

static void resize_launch(const gf_plan *head, const gf_strip *strip, void *, gf_queue *queue) {
    const gf_resize_plan *plan = reinterpret_cast<const gf_resize_plan *>(head);
    if (plan->joined[0])
        return gf_resize_launch_both(strip, plan, queue);
    general_args a = {};
    a.in = strip->in[0].data - strip->in[0].y0 * strip->in[0].stride;
    a.out = strip->out.data;
    a.in_stride = strip->in[0].stride;
    a.out_stride = strip->out.stride;
    a.first = strip->out.y0;
    a.rows = strip->out.rows;
    a.channels = head->in.channels;
    a.samples = gf_row_samples(&head->out);
    a.spans = static_cast<const gf_resize_span *>(strip->constants);
    a.taps = gf_resize_taps(plan, strip->constants);
    a.images = gf_images_of<2>(head, strip);
    const auto run = [&](auto form, auto sample) {
        gf_flag{plan->down}(
            [&](auto down) { general_launch<form, decltype(sample), down>(a, queue); });
    };
    gf_for_type(head->in.type, [&](auto sample) {
        if (plan->form == GF_RESIZE_COPY)
            general_launch<GF_RESIZE_COPY, decltype(sample), true>(a, queue);
        else if constexpr (sizeof(sample) == 4)
            run(std::integral_constant<gf_resize_form, GF_RESIZE_SINGLE>(), sample);
        else if (plan->form == GF_RESIZE_WIDE)
            run(std::integral_constant<gf_resize_form, GF_RESIZE_WIDE>(), sample);
        else if constexpr (sizeof(sample) == 1)
            run(std::integral_constant<gf_resize_form, GF_RESIZE_FIXED>(), sample);
    });
}

extern "C" const gf_filter_cuda gf_resize_cuda = {nullptr, resize_launch, nullptr,
                                                  true,    true,          gf_resize_join};
