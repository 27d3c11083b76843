// The picture of where two images differ.
#ifndef GF_COMPARE_DRAW_CUH
#define GF_COMPARE_DRAW_CUH

#include "vectors.cuh"

#include "compare/compare.h"
#include "samples.h"

// bits: the value, or of f32 its bits. distance: how far apart samples with different bits are; as
// in a record. green: a distance on a scale of 255. dark: a luma or grey value, a quarter as
// bright.
template <typename T> struct gf_sample {
    static __device__ __forceinline__ uint32_t bits(T x) {
        return x;
    }

    static __device__ __forceinline__ T of_bits(uint32_t bits) {
        return static_cast<T>(bits);
    }

    static __device__ __forceinline__ unsigned long long distance(T x, T y) {
        return x > y ? x - y : y - x;
    }

    static __device__ __forceinline__ uint32_t green(unsigned long long distance) {
        const uint32_t max = sizeof(T) == 1 ? 255 : 65535;
        return static_cast<uint32_t>(distance) * 255 / max;
    }

    static __device__ __forceinline__ uint32_t luma(const T *p) {
        return gf_luma_integer(p[0], p[1], p[2]);
    }

    static __device__ __forceinline__ uint32_t dark(uint32_t grey) {
        return grey >> (sizeof(T) == 1 ? 2 : 10);
    }
};

template <> struct gf_sample<float> {
    static __device__ __forceinline__ uint32_t bits(float x) {
        return __float_as_uint(x);
    }

    static __device__ __forceinline__ float of_bits(uint32_t bits) {
        return __uint_as_float(bits);
    }

    static __device__ __forceinline__ unsigned long long distance(float x, float y) {
        if (x != x || y != y)
            return x != x && y != y ? 0 : 0x7ff0000000000000ull;
        return static_cast<unsigned long long>(
            __double_as_longlong(fabs(__dsub_rn(static_cast<double>(x), static_cast<double>(y)))));
    }

    static __device__ __forceinline__ uint32_t green(unsigned long long distance) {
        const double d = __longlong_as_double(static_cast<long long>(distance));
        return static_cast<uint32_t>(__dmul_rn(d < 1.0 ? d : 1.0, 255.0));
    }

    static __device__ __forceinline__ float luma(const float *p) {
        return gf_luma_real(p[0], p[1], p[2]);
    }

    static __device__ __forceinline__ uint32_t dark(float grey) {
        grey = grey > 0.0f ? grey : 0.0f; // NaN, too
        grey = grey < 1.0f ? grey : 1.0f;
        return static_cast<uint32_t>(__fmul_rn(grey, 255.0f)) >> 2;
    }
};

struct gf_drawing {
    const unsigned char *a, *b; // the first row of each image
    size_t in_stride;
    unsigned char *out;
    size_t out_stride;
    uint64_t width, rows;
};

// Four pixels of an image, of which n are there.
template <typename T, int CHANNELS> struct gf_four_pixels {
    static const int samples = 4 * CHANNELS, words = CHANNELS * sizeof(T);
    uint32_t w[words];

    __device__ __forceinline__ void load(const unsigned char *p, int n) {
        if (n < 4) {
#pragma unroll
            for (int i = 0; i < words; i++)
                w[i] = 0;
#pragma unroll
            for (int i = 0; i < samples; i++)
                if (i < n * CHANNELS)
                    w[i * sizeof(T) / 4] |= gf_sample<T>::bits(reinterpret_cast<const T *>(p)[i])
                                            << 8 * (i * sizeof(T) % 4);
            return;
        }
        typedef typename std::conditional<
            words % 4 == 0, uint4,
            typename std::conditional<words % 2 == 0, uint2, uint1>::type>::type Load;
        const int step = sizeof(Load) / 4;
#pragma unroll
        for (int i = 0; i < words; i += step) {
            const Load load = reinterpret_cast<const Load *>(p)[i / step];
            const uint32_t *loaded = reinterpret_cast<const uint32_t *>(&load);
#pragma unroll
            for (int k = 0; k < step; k++)
                w[i + k] = loaded[k];
        }
    }

    __device__ __forceinline__ T at(int i) const {
        return gf_sample<T>::of_bits(w[i * sizeof(T) / 4] >> 8 * (i * sizeof(T) % 4));
    }
};

// Red, green and blue, the first lowest.
template <typename T, int CHANNELS>
static __device__ __forceinline__ uint32_t gf_draw_pixel(const gf_four_pixels<T, CHANNELS> &a,
                                                         const gf_four_pixels<T, CHANNELS> &b,
                                                         int pixel) {
    T p[CHANNELS];
    bool differs = false;
    unsigned long long most = 0;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        const T q = b.at(pixel * CHANNELS + c);
        p[c] = a.at(pixel * CHANNELS + c);
        if (gf_sample<T>::bits(p[c]) != gf_sample<T>::bits(q)) {
            const unsigned long long distance = gf_sample<T>::distance(p[c], q);
            most = distance > most ? distance : most;
            differs = true;
        }
    }
    if (differs)
        return 255u | gf_sample<T>::green(most) << 8;
    uint32_t dark;
    if (CHANNELS < 3)
        dark = gf_sample<T>::dark(p[0]);
    else
        dark = gf_sample<T>::dark(gf_sample<T>::luma(p));
    return dark * 0x010101u;
}

#define GF_STRETCH 128 // pixels of a row that a warp draws

// A warp draws stretches of 128 pixels of a row, a thread four of each, DEEP stretches at once so
// that their loads are under way together. A whole stretch's 384 bytes go through shared memory, so
// that they leave 16 at a time. Reads each sample once, and writes 3 bytes a pixel. The record's
// kernel reads the same band, which the cache then holds.
template <typename T, int CHANNELS, int DEEP>
static __global__ void __launch_bounds__(GF_BLOCK) gf_draw_rows(gf_drawing d) {
    __shared__ uint4 staged[GF_BLOCK / 32][GF_STRETCH * 3 / 16];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t *stage = reinterpret_cast<uint32_t *>(staged[warp]);
    const uint64_t across = (d.width + DEEP * GF_STRETCH - 1) / (DEEP * GF_STRETCH);
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * (GF_BLOCK / 32) + warp;
         i < across * d.rows; i += static_cast<uint64_t>(gridDim.x) * (GF_BLOCK / 32)) {
        const uint64_t y = i / across, begin = i % across * (DEEP * GF_STRETCH);
        gf_four_pixels<T, CHANNELS> a[DEEP], b[DEEP];
        int n[DEEP];
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            const uint64_t x = begin + k * GF_STRETCH + 4 * lane;
            const size_t at = y * d.in_stride + x * CHANNELS * sizeof(T);
            n[k] = x + 4 <= d.width ? 4 : x < d.width ? static_cast<int>(d.width - x) : 0;
            a[k].load(d.a + at, n[k]);
            b[k].load(d.b + at, n[k]);
        }
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            const uint64_t left = begin + k * GF_STRETCH;
            uint32_t rgb[4];
#pragma unroll
            for (int pixel = 0; pixel < 4; pixel++)
                rgb[pixel] = gf_draw_pixel(a[k], b[k], pixel);
            unsigned char *out = d.out + y * d.out_stride + 3 * left;
            if (left + GF_STRETCH <= d.width) {
                stage[3 * lane] = rgb[0] | rgb[1] << 24;
                stage[3 * lane + 1] = rgb[1] >> 8 | rgb[2] << 16;
                stage[3 * lane + 2] = rgb[2] >> 16 | rgb[3] << 8;
                __syncwarp();
                if (lane < GF_STRETCH * 3 / 16)
                    __stcs(reinterpret_cast<uint4 *>(out) + lane, staged[warp][lane]);
                __syncwarp();
                continue;
            }
#pragma unroll
            for (int byte = 0; byte < 12; byte++)
                if (byte < 3 * n[k])
                    out[12 * lane + byte] =
                        static_cast<unsigned char>(rgb[byte / 3] >> 8 * (byte % 3));
        }
    }
}

static inline void gf_draw(const gf_drawing &d, gf_type type, uint32_t channels,
                           cudaStream_t stream) {
    gf_for_type(type, [&](auto sample) {
        gf_for_channels(channels, [&](auto n) {
            typedef decltype(sample) Sample;
            const int count = decltype(n)::value, bytes = count * sizeof(Sample);
            const int deep = bytes <= 4 ? 4 : bytes <= 8 ? 2 : 1;
            const uint64_t across = (d.width + deep * GF_STRETCH - 1) / (deep * GF_STRETCH);
            const uint64_t blocks = (across * d.rows + GF_BLOCK / 32 - 1) / (GF_BLOCK / 32);
            const uint64_t most = 1u << 30;
            gf_draw_rows<Sample, count, deep>
                <<<static_cast<unsigned>(blocks < most ? blocks : most), GF_BLOCK, 0, stream>>>(d);
        });
    });
}

#endif
