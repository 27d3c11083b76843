// What every kernel file needs: checked calls, samples in and out, the rounding of the contract.
#ifndef GF_DEVICE_CUH
#define GF_DEVICE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

extern "C" {
#include "error.h"
#include "filter.h"
}

// Fails with CUDA's own words and clears the error, which would otherwise be met again by the next,
// innocent call. After a lack of memory the device can be used for something smaller, or later. Any
// other error is GF_NO_BACKEND: most stay with the process, and every later call meets them.
static inline gf_status gf_cuda_check(cudaError_t result, const char *what, gf_error *error) {
    if (result == cudaSuccess)
        return GF_OK;
    cudaGetLastError();
    return gf_fail(error, result == cudaErrorMemoryAllocation ? GF_FAILED : GF_NO_BACKEND,
                   "cuda: %s: %s; use --backend cpu", what, cudaGetErrorString(result));
}

// Blocks for a kernel whose blocks take turns: as many as there is work for, a few a processor at
// most. items_a_block: what a block does in one turn.
static inline unsigned gf_grid(uint64_t items, uint64_t items_a_block) {
    const uint64_t blocks_a_processor = 8; // of 256 threads: as many as are at home on one
    int device = 0, processors = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    const uint64_t turns = (items + items_a_block - 1) / items_a_block;
    const uint64_t most = static_cast<uint64_t>(processors) * blocks_a_processor;
    return static_cast<unsigned>(turns < most ? turns : most);
}

// Calls run with a sample of the type that an image has, for templates on it.
template <typename F> static inline void gf_for_type(gf_type type, F run) {
    if (type == GF_U8)
        run(uint8_t{});
    else if (type == GF_U16)
        run(uint16_t{});
    else
        run(float{});
}

// ---- samples ------------------------------------------------------------------------------------

// A sample as the arithmetic sees it.
template <typename T> static __device__ __forceinline__ float gf_load(T x) {
    return static_cast<float>(x);
}

// The store of the contract: clamp before the conversion (NaN to 0), nearest even; NaN canonical.
template <typename T> static __device__ __forceinline__ T gf_store(float x) {
    const float max = sizeof(T) == 1 ? 255.0f : 65535.0f;
    x = x > 0.0f ? x : 0.0f;
    x = x < max ? x : max;
    return static_cast<T>(__float2uint_rn(x));
}

template <> __device__ __forceinline__ float gf_store<float>(float x) {
    return x == x ? x : __uint_as_float(0x7fc00000u);
}

// A sample that is only carried: the same value in another type, the same bits in its own.
template <typename To, typename From> struct gf_carry {
    static __device__ __forceinline__ To run(From x) {
        return gf_store<To>(gf_load(x));
    }
};

template <typename T> struct gf_carry<T, T> {
    static __device__ __forceinline__ T run(T x) {
        return x;
    }
};

// Four neighbouring samples, moved as one word of their size.
template <typename T> struct __align__(4 * sizeof(T)) gf_quad {
    T v[4];
};

#endif
