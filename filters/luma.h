/* Luma as the fast implementations compute it, on the CPU and on the GPU: the same operations in
 * the same order. Golden has its own. */
#ifndef GF_LUMA_H
#define GF_LUMA_H

#include <stdint.h>

#ifdef __CUDACC__
#define GF_BOTH static __host__ __device__ __forceinline__
#else
#define GF_BOTH static inline
#endif

/* The weights add up to 65536, so that the sum fits 32 bits. */
GF_BOTH uint32_t gf_luma_integer(uint32_t r, uint32_t g, uint32_t b) {
    return (13933u * r + 46871u * g + 4732u * b + 32768u) >> 16;
}

GF_BOTH float gf_luma_real(float r, float g, float b) {
    return 0.2126f * r + 0.7152f * g + 0.0722f * b;
}

#endif
