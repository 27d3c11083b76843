/* Bins and luma as the fast implementations compute them, on the CPU and on the GPU. */
#ifndef GF_HIST_BIN_H
#define GF_HIST_BIN_H

#include <stdint.h>

#ifdef __CUDACC__
#define GF_HIST_INLINE static __host__ __device__ __forceinline__
#else
#define GF_HIST_INLINE static inline
#endif

/* v * bins fits 32 bits: 65535 * 65536 < 2^32. max is a constant where this is called: the division
 * is a multiplication. */
GF_HIST_INLINE uint32_t gf_hist_bin_integer(uint32_t v, uint32_t bins, uint32_t max) {
    uint32_t bin = v * bins / max;
    return bin < bins ? bin : bins - 1;
}

/* The bin of a number on the scale of 0 to 1; `bins` for NaN. */
GF_HIST_INLINE uint32_t gf_hist_bin_real(double v, uint32_t bins) {
    double scaled = v * (double)bins;
    if (!(scaled == scaled))
        return bins;
    scaled = scaled > 0 ? scaled : 0;
    return scaled < (double)bins ? (uint32_t)scaled : bins - 1;
}

/* The weights add up to 65536, so that the sum fits 32 bits. */
GF_HIST_INLINE uint32_t gf_hist_luma_integer(uint32_t r, uint32_t g, uint32_t b) {
    return (13933u * r + 46871u * g + 4732u * b + 32768u) >> 16;
}

GF_HIST_INLINE float gf_hist_luma_real(float r, float g, float b) {
    return 0.2126f * r + 0.7152f * g + 0.0722f * b;
}

#endif
