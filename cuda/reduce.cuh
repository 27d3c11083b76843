// One value out of those of a group of threads.
#ifndef GF_REDUCE_CUH
#define GF_REDUCE_CUH

#include "vectors.cuh"

struct gf_plus {
    template <typename T> __device__ __forceinline__ T operator()(T x, T y) const {
        return x + y;
    }
};

struct gf_least {
    template <typename T> __device__ __forceinline__ T operator()(T x, T y) const {
        return x < y ? x : y;
    }
};

struct gf_largest {
    template <typename T> __device__ __forceinline__ T operator()(T x, T y) const {
        return x > y ? x : y;
    }
};

// Over neighbouring threads of a warp; every one of them gets it. All threads of the warp must
// come.
template <int GROUP, typename T, typename Operation>
static __device__ __forceinline__ T gf_reduce_group(T x, Operation operation) {
#pragma unroll
    for (int distance = GROUP / 2; distance > 0; distance /= 2)
        x = operation(x, __shfl_xor_sync(0xffffffffu, x, distance));
    return x;
}

// As a result holds it: NaN canonical.
static __device__ __forceinline__ unsigned long long gf_result_bits(double x) {
    return x == x ? static_cast<unsigned long long>(__double_as_longlong(x))
                  : 0x7ff8000000000000ull;
}

#endif
