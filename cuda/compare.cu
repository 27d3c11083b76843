// compare on the GPU: a block a row.
#include "reduce.cuh"

#include "compare/compare.h"
#include "luma.h"

namespace {

struct Args {
    const unsigned char *a, *b;
    size_t in_stride;
    unsigned char *out; // of the first row: its drawing, and behind it its record
    size_t out_stride, record_offset;
    bool draw;
    uint64_t width, rows;
    uint32_t channels;
};

// ---- samples ------------------------------------------------------------------------------------

// bits: the value, or of f32 its bits. distance: how far apart samples with different bits are; as
// in a record. green: a distance on a scale of 255. dark: a luma or grey value, a quarter as
// bright.
template <typename T> struct Sample {
    static __device__ __forceinline__ uint32_t bits(T x) {
        return x;
    }

    static __device__ __forceinline__ unsigned long long distance(T x, T y) {
        return x > y ? x - y : y - x;
    }

    static __device__ __forceinline__ unsigned char green(unsigned long long distance) {
        const uint32_t max = sizeof(T) == 1 ? 255 : 65535;
        return static_cast<unsigned char>(static_cast<uint32_t>(distance) * 255 / max);
    }

    static __device__ __forceinline__ uint32_t luma(const T *p) {
        return gf_luma_integer(p[0], p[1], p[2]);
    }

    static __device__ __forceinline__ unsigned char dark(uint32_t grey) {
        return static_cast<unsigned char>(grey >> (sizeof(T) == 1 ? 2 : 10));
    }
};

template <> struct Sample<float> {
    static __device__ __forceinline__ uint32_t bits(float x) {
        return __float_as_uint(x);
    }

    static __device__ __forceinline__ unsigned long long distance(float x, float y) {
        if (x != x || y != y)
            return x != x && y != y ? 0 : 0x7ff0000000000000ull;
        return static_cast<unsigned long long>(
            __double_as_longlong(fabs(__dsub_rn(static_cast<double>(x), static_cast<double>(y)))));
    }

    static __device__ __forceinline__ unsigned char green(unsigned long long distance) {
        const double d = __longlong_as_double(static_cast<long long>(distance));
        return static_cast<unsigned char>(__dmul_rn(d < 1.0 ? d : 1.0, 255.0));
    }

    static __device__ __forceinline__ float luma(const float *p) {
        return gf_luma_real(p[0], p[1], p[2]);
    }

    static __device__ __forceinline__ unsigned char dark(float grey) {
        grey = grey > 0.0f ? grey : 0.0f; // NaN, too
        grey = grey < 1.0f ? grey : 1.0f;
        return static_cast<unsigned char>(static_cast<int>(__fmul_rn(grey, 255.0f)) >> 2);
    }
};

// ---- a row --------------------------------------------------------------------------------------

// The combined value of the threads of a block; valid in thread 0. A barrier lies before it.
template <typename Operation>
__device__ __forceinline__ unsigned long long block_reduce(unsigned long long x,
                                                           gf_reduce_shared *shared,
                                                           Operation operation) {
    __syncthreads();
    return cub::BlockReduce<unsigned long long, GF_ROW_THREADS>(shared->integer)
        .Reduce(x, operation);
}

struct Least {
    __device__ __forceinline__ unsigned long long operator()(unsigned long long x,
                                                             unsigned long long y) const {
        return x < y ? x : y;
    }
};

struct Largest {
    __device__ __forceinline__ unsigned long long operator()(unsigned long long x,
                                                             unsigned long long y) const {
        return x > y ? x : y;
    }
};

template <typename T>
__device__ __forceinline__ void draw_pixel(unsigned char *rgb, const T *p, uint32_t channels,
                                           bool differs, unsigned long long most) {
    if (differs) {
        rgb[0] = 255;
        rgb[1] = Sample<T>::green(most);
        rgb[2] = 0;
    } else {
        rgb[0] = rgb[1] = rgb[2] =
            channels < 3 ? Sample<T>::dark(p[0]) : Sample<T>::dark(Sample<T>::luma(p));
    }
}

// One block of 256 a row, in turn: thread t takes pixels t, t+256, ... of both images, draws them
// if asked to, and the block writes a record a row.
template <typename T> __global__ void __launch_bounds__(GF_ROW_THREADS) compare_rows(Args args) {
    __shared__ gf_reduce_shared shared;
    for (uint64_t y = blockIdx.x; y < args.rows; y += gridDim.x) {
        const T *a = reinterpret_cast<const T *>(args.a + y * args.in_stride);
        const T *b = reinterpret_cast<const T *>(args.b + y * args.in_stride);
        unsigned char *out = args.out + y * args.out_stride;
        unsigned long long differing = 0, first = UINT64_MAX, largest = 0;
        for (uint64_t x = threadIdx.x; x < args.width; x += GF_ROW_THREADS) {
            const uint64_t pixel = x * args.channels;
            const unsigned long long before = differing;
            unsigned long long most = 0;
            for (uint64_t i = pixel; i < pixel + args.channels; i++) {
                if (Sample<T>::bits(a[i]) == Sample<T>::bits(b[i]))
                    continue;
                const unsigned long long distance = Sample<T>::distance(a[i], b[i]);
                most = distance > most ? distance : most;
                first = i < first ? i : first;
                differing++;
            }
            largest = most > largest ? most : largest;
            if (args.draw)
                draw_pixel(out + 3 * x, a + pixel, args.channels, differing > before, most);
        }
        differing = gf_block_total(differing, &shared);
        first = block_reduce(first, &shared, Least());
        largest = block_reduce(largest, &shared, Largest());
        if (threadIdx.x == 0) {
            gf_compare_record record = {differing, first, largest, 0, 0};
            if (differing) {
                record.a = Sample<T>::bits(a[first]);
                record.b = Sample<T>::bits(b[first]);
            }
            *reinterpret_cast<gf_compare_record *>(out + args.record_offset) = record;
        }
    }
}

gf_status launch(const gf_plan *plan, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    const gf_rows a = gf_band_input(band, plan->inputs, 0),
                  b = gf_band_input(band, plan->inputs, 1);
    Args args = {};
    args.a = gf_row(&a, band->out.y0);
    args.b = gf_row(&b, band->out.y0);
    args.in_stride = band->in.stride;
    args.out = band->out.data;
    args.out_stride = band->out.stride;
    args.record_offset = gf_record_offset(plan);
    args.draw = plan->out.width != 0;
    args.width = plan->in.width;
    args.rows = band->out.rows;
    args.channels = plan->in.channels;
    const unsigned blocks = gf_grid(args.rows, 1);
    gf_for_type(plan->in.type, [&](auto sample) {
        compare_rows<decltype(sample)><<<blocks, GF_ROW_THREADS, 0, stream>>>(args);
    });
    return gf_cuda_check(cudaGetLastError(), "compare", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_compare_cuda = {nullptr, launch};
