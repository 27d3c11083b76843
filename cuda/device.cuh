// What the kernels of all filters share: checked calls, grids, samples, vectors of 16 bytes.
#ifndef GF_DEVICE_CUH
#define GF_DEVICE_CUH

#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

extern "C" {
#include "core/error.h"
#include "core/filter.h"
}

// A function that kernels call. Inlined: its arguments stay in registers.
#define GF_DEVICE static __device__ __forceinline__

#define GF_WARP 0xffffffffu // all lanes, for the functions that synchronise some of them

// ---- host ---------------------------------------------------------------------------------------

// Fails with CUDA's own words and clears the error: the next, unrelated call would report it again.
// After a lack of memory (GF_FAILED) the device works for something smaller, or later. Any other
// error is GF_NO_BACKEND: most stay with the process, and every later call returns them.
static inline gf_status gf_cuda_check(cudaError_t result, const char *what, gf_error *error) {
    if (result == cudaSuccess)
        return GF_OK;
    cudaGetLastError();
    return gf_fail(error, result == cudaErrorMemoryAllocation ? GF_FAILED : GF_NO_BACKEND,
                   "cuda: %s: %s; use --backend cpu", what, cudaGetErrorString(result));
}

static inline gf_status gf_set_device(int device, gf_error *error) {
    return gf_cuda_check(cudaSetDevice(device), "cudaSetDevice", error);
}

// An attribute of the current device.
static inline uint32_t gf_attribute(cudaDeviceAttr attribute) {
    int device = 0, value = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&value, attribute, device);
    return static_cast<uint32_t>(value);
}

static inline uint32_t gf_processors() {
    return gf_attribute(cudaDevAttrMultiProcessorCount);
}

// a / b, rounded up.
static inline uint64_t gf_divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

// A grid that covers so many items, up to 2^30 blocks; beyond that, blocks loop.
static inline unsigned gf_blocks(uint64_t items, uint64_t items_a_block) {
    const uint64_t blocks = gf_divide_up(items, items_a_block), max = 1u << 30;
    return static_cast<unsigned>(blocks < max ? blocks : max);
}

// A grid for blocks that loop: as many as there is work for, 8 an SM at most, which are resident if
// they have 256 threads. items_a_block: of one iteration.
static inline unsigned gf_grid(uint64_t items, uint64_t items_a_block) {
    const uint64_t blocks = gf_divide_up(items, items_a_block), max = 8 * gf_processors();
    return static_cast<unsigned>(blocks < max ? blocks : max);
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

// Calls run with n, of N to LAST, as a type.
template <int N, int LAST, typename F> static inline void gf_for_number(uint32_t n, F run) {
    if constexpr (N < LAST)
        if (n != N)
            return gf_for_number<N + 1, LAST>(n, run);
    run(std::integral_constant<int, N>{});
}

template <typename F> static inline void gf_for_channels(uint32_t channels, F run) {
    gf_for_number<1, 4>(channels, run);
}

// Calls run with a flag as a type.
template <typename F> static inline void gf_for_flag(bool flag, F run) {
    if (flag)
        run(std::true_type{});
    else
        run(std::false_type{});
}

// ---- samples ------------------------------------------------------------------------------------

// The channels of C that a filter computes: the last of 2 or 4 is alpha.
#define GF_COLOURS(C) ((C) - ((C) % 2 == 0))

// A sample as the arithmetic sees it.
template <typename T> GF_DEVICE float gf_load(T x) {
    return static_cast<float>(x);
}

// The store of the contract: clamp before the conversion (NaN to 0), nearest even; a NaN that is
// stored as f32 is canonical.
template <typename T> GF_DEVICE T gf_store(float x) {
    if constexpr (sizeof(T) == sizeof(float))
        return x == x ? x : __uint_as_float(0x7fc00000u);
    const float max = sizeof(T) == 1 ? 255.0f : 65535.0f;
    x = x > 0.0f ? x : 0.0f;
    x = x < max ? x : max;
    return static_cast<T>(__float2uint_rn(x));
}

// Copies a sample that is not computed: the same bits, or the same value in another type.
template <typename To, typename From> GF_DEVICE To gf_carry(From x) {
    if constexpr (std::is_same<To, From>::value)
        return x;
    else
        return gf_store<To>(gf_load(x));
}

// ---- vectors ------------------------------------------------------------------------------------

GF_DEVICE uint32_t gf_word(const uint4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// Sample k of a vector of T. k is a constant after unrolling.
template <typename T> GF_DEVICE T gf_sample_at(const uint4 &v, int k) {
    const int a_word = 4 / sizeof(T);
    const uint32_t word = gf_word(v, k / a_word);
    if constexpr (sizeof(T) == sizeof(float))
        return __uint_as_float(word);
    else
        return static_cast<T>(word >> k % a_word * 8 * sizeof(T));
}

// The lowest bytes of four words.
GF_DEVICE uint32_t gf_pack(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// The 4 bytes of channel c of 4 pixels of u8. c is a constant after unrolling.
template <int C> GF_DEVICE uint32_t gf_channel_word(const uint32_t *group, int c) {
    if (C == 1)
        return group[0];
    if (C == 2)
        return __byte_perm(group[0], group[1], c == 0 ? 0x6420 : 0x7531);
    if (C == 3) {
        // bytes c, c + 3, c + 6, c + 9 of (0 1 2 3)(4 5 6 7)(8 9 10 11)
        if (c == 0)
            return __byte_perm(__byte_perm(group[0], group[1], 0x0630), group[2], 0x5210);
        if (c == 1)
            return __byte_perm(__byte_perm(group[0], group[1], 0x0741), group[2], 0x6210);
        return __byte_perm(__byte_perm(group[0], group[1], 0x0052), group[2], 0x7410);
    }
    const uint32_t low = __byte_perm(group[0], group[1], 0x0040 + 0x0011 * c);
    const uint32_t high = __byte_perm(group[2], group[3], 0x0040 + 0x0011 * c);
    return __byte_perm(low, high, 0x5410);
}

// Loads words, 4, 8 or 16 bytes at a time: the most that divides BYTES.
template <int BYTES> GF_DEVICE void gf_load_words(uint32_t *words, const unsigned char *from) {
    typedef typename std::conditional<BYTES % 8 == 0, uint2, uint32_t>::type Small;
    typedef typename std::conditional<BYTES % 16 == 0, uint4, Small>::type Vector;
#pragma unroll
    for (int i = 0; i < BYTES; i += static_cast<int>(sizeof(Vector))) {
        const Vector v = *reinterpret_cast<const Vector *>(from + i);
        memcpy(words + i / 4, &v, sizeof v);
    }
}

// ---- reductions ---------------------------------------------------------------------------------

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

// Combines the values of GROUP neighbouring lanes; each of them gets the result. All lanes of the
// warp must call it.
template <int GROUP, typename T, typename Operation>
GF_DEVICE T gf_reduce_group(T x, Operation operation) {
#pragma unroll
    for (int distance = GROUP / 2; distance > 0; distance /= 2)
        x = operation(x, __shfl_xor_sync(GF_WARP, x, distance));
    return x;
}

#endif
