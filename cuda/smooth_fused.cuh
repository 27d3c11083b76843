// smooth along rows for the common parameters, in registers: radius 1 to 3, no tiles.
//
// A thread computes 4 pixels of C channels. It loads 12 pixels, from 4 before to 4 after its own,
// as 3*C aligned words of 4 samples, and keeps everything in registers: no shared memory, no
// barrier. Neighbouring threads load the same words, which the L1 cache serves: a sample is read
// once from memory, written once. Rows begin on 64-byte boundaries. Threads whose window reaches
// over an end of the row take each pixel on its own, straight from the definition, so every width
// is exact.
#ifndef GF_SMOOTH_FUSED_CUH
#define GF_SMOOTH_FUSED_CUH

#include "device.cuh"
#include "smooth_stages.cuh"

#define GF_FUSED_THREADS 256
#define GF_FUSED_PIXELS 4

struct gf_fused_args {
    const unsigned char *in;
    unsigned char *out;
    size_t in_stride, out_stride; // bytes
    uint64_t width;               // pixels
    uint64_t rows;
    gf_smooth_constants constants;
};

// One sample of one pixel by the definition; row points at the channel's first sample. Few threads
// come here: kept out of line, it costs the others no registers.
template <typename T, int C, int R>
static __device__ __noinline__ float smooth_at_end(const T *row, uint64_t i, uint64_t width,
                                                   const gf_smooth_constants &k) {
    float around[3] = {0.0f, 0.0f, 0.0f};
    for (int d = -1; d <= 1; d++) {
        if ((d != 0 && !k.smooth) || (d < 0 && i == 0) || (d > 0 && i + 1 == width))
            continue;
        const uint64_t p = i + d;
        const uint64_t lo = p < R ? 0 : p - R, hi = width - 1 - p < R ? width - 1 : p + R;
        float window[2 * R + 1];
        for (uint64_t q = lo; q <= hi; q++)
            window[q - lo] = enhance(gf_load(row[q * C]), k.gain);
        around[d + 1] = blur(window, 1, static_cast<int>(hi - lo) + 1);
    }
    if (!k.smooth)
        return around[1];
    return smooth(around[0], around[1], around[2], {i > 0, i + 1 < width}, k);
}

template <typename Tin, typename Tout, int C, int R>
__global__ void __launch_bounds__(GF_FUSED_THREADS) smooth_fused(const gf_fused_args a) {
    const uint64_t first =
        (static_cast<uint64_t>(blockIdx.x) * GF_FUSED_THREADS + threadIdx.x) * GF_FUSED_PIXELS;
    if (first >= a.width)
        return;
    const bool alpha = C == 2 || C == 4;
    const int filtered = alpha ? C - 1 : C;
    const gf_smooth_constants &k = a.constants;
    for (uint64_t y = blockIdx.y; y < a.rows; y += gridDim.y) {
        const Tin *row = reinterpret_cast<const Tin *>(a.in + y * a.in_stride);
        Tout *out = reinterpret_cast<Tout *>(a.out + y * a.out_stride);
        if (first < 4 || a.width - first < 8) {
            for (uint64_t i = first; i < a.width && i < first + GF_FUSED_PIXELS; i++) {
                for (int c = 0; c < filtered; c++)
                    out[i * C + c] =
                        gf_store<Tout>(smooth_at_end<Tin, C, R>(row + c, i, a.width, k));
                if (alpha)
                    out[i * C + C - 1] = gf_carry<Tout, Tin>::run(row[i * C + C - 1]);
            }
            continue;
        }
        Tin raw[12 * C];
#pragma unroll
        for (int q = 0; q < 3 * C; q++) {
            const gf_quad<Tin> quad =
                reinterpret_cast<const gf_quad<Tin> *>(row + (first - 4) * C)[q];
#pragma unroll
            for (int j = 0; j < 4; j++)
                raw[4 * q + j] = quad.v[j];
        }
        Tout result[4 * C];
#pragma unroll
        for (int c = 0; c < filtered; c++) {
            float loaded[12];
#pragma unroll
            for (int i = 0; i < 12; i++)
                loaded[i] = enhance(gf_load(raw[i * C + c]), k.gain);
            float blurred[6];
#pragma unroll
            for (int i = 0; i < 6; i++) {
                float sum = loaded[i + 3 - R];
#pragma unroll
                for (int t = 1; t < 2 * R + 1; t++)
                    sum = __fadd_rn(sum, loaded[i + 3 - R + t]);
                blurred[i] = __fdiv_rn(sum, static_cast<float>(2 * R + 1));
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float t = blurred[i + 1];
                if (k.smooth)
                    t = smooth(blurred[i], t, blurred[i + 2], {true, true}, k);
                result[i * C + c] = gf_store<Tout>(t);
            }
        }
        if (alpha) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                result[i * C + C - 1] = gf_carry<Tout, Tin>::run(raw[(i + 4) * C + C - 1]);
        }
#pragma unroll
        for (int q = 0; q < C; q++) {
            gf_quad<Tout> quad;
#pragma unroll
            for (int j = 0; j < 4; j++)
                quad.v[j] = result[4 * q + j];
            reinterpret_cast<gf_quad<Tout> *>(out + first * C)[q] = quad;
        }
    }
}

#endif
