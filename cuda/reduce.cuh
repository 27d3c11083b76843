// Sums over a block: exact ones with CUB, binary64 ones in the contract's order (filters/lanes.h).
#ifndef GF_REDUCE_CUH
#define GF_REDUCE_CUH

#include <cub/block/block_reduce.cuh>

#include "device.cuh"
#include "lanes.h"

#define GF_ROW_THREADS GF_LANES // one thread a lane

// What the sums of a block share; a barrier lies between two uses.
union gf_reduce_shared {
    typename cub::BlockReduce<unsigned long long, GF_ROW_THREADS>::TempStorage integer;
    double lane[GF_LANES];
};

// The sum over the block of one value a thread; valid in thread 0.
static __device__ __forceinline__ unsigned long long gf_block_total(unsigned long long x,
                                                                    gf_reduce_shared *shared) {
    __syncthreads();
    return cub::BlockReduce<unsigned long long, GF_ROW_THREADS>(shared->integer).Sum(x);
}

static __device__ __forceinline__ double gf_block_total(double x, gf_reduce_shared *shared) {
    __syncthreads();
    shared->lane[threadIdx.x] = x;
    __syncthreads();
    for (unsigned stride = GF_LANES / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride)
            shared->lane[threadIdx.x] += shared->lane[threadIdx.x + stride];
        __syncthreads();
    }
    return shared->lane[0];
}

// As a result holds it: NaN canonical.
static __device__ __forceinline__ unsigned long long gf_result_bits(unsigned long long x) {
    return x;
}

static __device__ __forceinline__ unsigned long long gf_result_bits(double x) {
    return x == x ? static_cast<unsigned long long>(__double_as_longlong(x))
                  : 0x7ff8000000000000ull;
}

// What sums of samples are made in: integers exactly, f32 in binary64.
template <typename T> struct gf_sum_type { typedef unsigned long long type; };

template <> struct gf_sum_type<float> { typedef double type; };

#endif
