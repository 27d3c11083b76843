// Helpers of all kernels: device properties, grid sizes, sample conversion, vectors, reductions.
#ifndef GF_DEVICE_CUH
#define GF_DEVICE_CUH

#include "cuda/queue.cuh"

#include <stdint.h>
#include <string.h>

#include <atomic>
#include <type_traits>

typedef unsigned long long gf_u64; // of the 64-bit atomics

// A device function. Always inlined, therefore its arguments stay in registers.
#define GF_DEVICE static __device__ __forceinline__

#define GF_WARP 0xffffffffu // mask of all lanes, for the warp intrinsics

// __CUDA_ARCH__, in constants that depend on it; 0 in host code.
#ifdef __CUDA_ARCH__
static constexpr int gf_arch = __CUDA_ARCH__;
#else
static constexpr int gf_arch = 0;
#endif

#define ADLER_BASE 65521u // modulus of Adler-32

// ---- host ---------------------------------------------------------------------------------------

#define GF_CACHED_DEVICES 64 // devices whose properties are kept

// Return compute(device) for the current device. A result other than 0 is kept: a small image takes
// less time than such queries. 0 means unknown: the next call computes it again. Each Compute,
// usually a lambda, has its own results. Threads may compute the same one at the same time.
template <typename Compute> static uint32_t gf_per_device(Compute compute) {
    static std::atomic<uint32_t> results[GF_CACHED_DEVICES];
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= GF_CACHED_DEVICES)
        return compute(device);
    uint32_t result = results[device].load(std::memory_order_relaxed);
    if (result == 0) {
        result = compute(device);
        results[device].store(result, std::memory_order_relaxed);
    }
    return result;
}

// Return an attribute of the current device; 1 if it is 0 or unknown.
template <cudaDeviceAttr ATTRIBUTE> static uint32_t gf_attribute() {
    const uint32_t value = gf_per_device([](int device) {
        int attribute = 0;
        return cudaDeviceGetAttribute(&attribute, ATTRIBUTE, device) == cudaSuccess
                   ? static_cast<uint32_t>(attribute)
                   : 0u;
    });
    return value > 0 ? value : 1;
}

static inline uint32_t gf_sm_count() {
    return gf_attribute<cudaDevAttrMultiProcessorCount>();
}

// Return the number of blocks of a kernel, without dynamic shared memory, that are resident on the
// current device. A kernel always has the same number of threads per block.
template <auto KERNEL> static uint64_t gf_resident_blocks(int threads) {
    const uint32_t per_sm = gf_per_device([threads](int) {
        int resident = 0;
        return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, KERNEL, threads, 0) ==
                       cudaSuccess
                   ? static_cast<uint32_t>(resident)
                   : 0u;
    });
    return static_cast<uint64_t>(gf_sm_count()) * (per_sm > 0 ? per_sm : 1);
}

// Let a kernel use this many bytes of dynamic shared memory per block on the current device. A
// kernel needs it above 48 KB, with less than 16 KB of static memory. Returns false if the device
// has less. Allows all that the device has: threads launch a kernel with different sizes.
template <auto KERNEL> static bool gf_allow_shared(size_t bytes) {
    return bytes <= 32 << 10 ||
           bytes <= gf_per_device([](int) {
               cudaFuncAttributes code;
               uint32_t max = gf_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>();
               if (cudaFuncGetAttributes(&code, KERNEL) == cudaSuccess)
                   max -= static_cast<uint32_t>(code.sharedSizeBytes);
               const cudaError_t result = cudaFuncSetAttribute(
                   KERNEL, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(max));
               cudaGetLastError(); // forget a failure
               return result == cudaSuccess ? max : 0u;
           });
}

static inline uint64_t gf_divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

// Return the number of blocks for all items, at most max; blocks loop over the remaining items.
static inline unsigned gf_blocks(uint64_t items, uint64_t items_per_block,
                                 uint64_t max = 1u << 30) {
    const uint64_t blocks = gf_divide_up(items, items_per_block);
    return static_cast<unsigned>(blocks < max ? blocks : max);
}

// Return the grid size of a kernel with a grid-stride loop: one block per items_per_block items, at
// most 8 blocks per SM. With 256 threads, 8 blocks are resident.
static inline unsigned gf_grid(uint64_t items, uint64_t items_per_block) {
    return gf_blocks(items, items_per_block, 8 * gf_sm_count());
}

// Call run with a sample of the image's type, to instantiate templates.
template <typename F> static inline void gf_for_type(gf_type type, F run) {
    if (type == GF_U8)
        run(uint8_t{});
    else if (type == GF_U16)
        run(uint16_t{});
    else
        run(float{});
}

// Choices for gf_dispatch: they call run with a sample of a type, or a compile-time constant.
struct gf_type_of {
    gf_type type;
    template <typename F> void operator()(F run) const {
        gf_for_type(type, run);
    }
};

// n: in the range FIRST..LAST.
template <int FIRST, int LAST> struct gf_number {
    uint32_t n;
    template <typename F> void operator()(F run) const {
        if constexpr (FIRST < LAST)
            if (n != FIRST)
                return gf_number<FIRST + 1, LAST>{n}(run);
        run(std::integral_constant<int, FIRST>{});
    }
};

struct gf_flag {
    bool flag;
    template <typename F> void operator()(F run) const {
        gf_number<0, 1>{flag}([&](auto n) { run(std::bool_constant<n != 0>{}); });
    }
};

typedef gf_number<1, 4> gf_channels;

// Call run with one argument per choice.
template <typename F, typename Choice, typename... Others>
static inline void gf_dispatch(F run, Choice choice, Others... others) {
    choice([&](auto first) {
        if constexpr (sizeof...(others) == 0)
            run(first);
        else
            gf_dispatch([&](auto... rest) { run(first, rest...); }, others...);
    });
}

// Wait until the previous kernel of the stream has completed and its writes are visible. See
// gf_launch_kernel; after another launch this returns at once.
GF_DEVICE void gf_wait_for_stream() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

// Let the blocks of the next kernel of the stream start as soon as there is room for them. Before
// it waits for the stream, that kernel may read only what existed before this one.
GF_DEVICE void gf_let_next_start() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// ---- division -----------------------------------------------------------------------------------

// Division by an invariant divisor: n / divisor = n * magic >> (32 + shift), for n < 2^31. The
// magic number of divisor 1 does not fit 32 bits.
struct gf_divider {
    uint32_t magic, shift;
};

static inline gf_divider gf_divider_of(uint64_t divisor) {
    gf_divider by = {};
    while (UINT64_C(2) << by.shift < divisor)
        by.shift++;
    by.magic =
        static_cast<uint32_t>((UINT64_C(1) << (32 + by.shift)) / (divisor > 1 ? divisor : 2) + 1);
    return by;
}

GF_DEVICE uint32_t gf_divide(uint32_t n, const gf_divider &by) {
    return __umulhi(n, by.magic) >> by.shift;
}

// ---- images -------------------------------------------------------------------------------------

// Images of a launch. A kernel numbers their rows consecutively, or has one block row (blockIdx.y)
// per image. LISTS: number of inputs, and one more if the kernel writes images.
template <int LISTS> struct gf_images {
    uint32_t count, rows; // rows: per image, if there are several; less than 2^31 in all
    gf_divider by;        // divides by rows
    // Bytes from the first image to each one. The last list may be that of the outputs. Large
    // parameters slow down a launch, therefore there are no other lists.
    ptrdiff_t at[LISTS][GF_STRIP_IMAGES];
};

template <int LISTS>
static inline gf_images<LISTS> gf_images_of(const gf_plan *plan, const gf_strip *strip) {
    gf_images<LISTS> images = {};
    images.count = strip->images > 1 ? strip->images : 1;
    if (images.count == 1)
        return images;
    images.rows = static_cast<uint32_t>(strip->out.rows);
    images.by = gf_divider_of(images.rows);
    for (uint32_t i = 0; i < images.count; i++) {
        const gf_pixels *in = strip->in_list + i * plan->inputs;
        for (uint32_t k = 0; k < plan->inputs; k++)
            images.at[k][i] = static_cast<const unsigned char *>(in[k].data) -
                              static_cast<const unsigned char *>(strip->in_list[k].data);
        if (plan->out.width)
            images.at[LISTS - 1][i] =
                static_cast<unsigned char *>(strip->out_list[i].data) - strip->out.data;
    }
    return images;
}

struct gf_image_row {
    uint32_t image;
    uint64_t y;
};

// Locate row y of all rows.
template <int LISTS>
GF_DEVICE gf_image_row gf_find_row(const gf_images<LISTS> &images, uint64_t y) {
    if (images.count == 1)
        return {0, y};
    const uint32_t row = static_cast<uint32_t>(y), image = gf_divide(row, images.by);
    return {image, row - image * images.rows};
}

// ---- samples ------------------------------------------------------------------------------------

// Number of channels that a filter computes of an image with alpha, and of 1 or 3 channels.
#define GF_COLOURS(C) ((C) - ((C) % 2 == 0))

template <typename T> GF_DEVICE float gf_load(T x) {
    return static_cast<float>(x);
}

// Convert a result to a sample. Integers: clamp before the conversion (NaN becomes 0), round to
// nearest even. f32: a NaN becomes the canonical NaN.
template <typename T> GF_DEVICE T gf_store(float x) {
    if constexpr (sizeof(T) == sizeof(float))
        return x == x ? x : __uint_as_float(0x7fc00000u);
    const float max = sizeof(T) == 1 ? 255.0f : 65535.0f;
    x = x > 0.0f ? x : 0.0f;
    x = x < max ? x : max;
    return static_cast<T>(__float2uint_rn(x));
}

// Copy a sample that is not filtered: the same bits, or the same value in another type.
template <typename To, typename From> GF_DEVICE To gf_convert(From x) {
    if constexpr (std::is_same<To, From>::value)
        return x;
    else
        return gf_store<To>(gf_load(x));
}

// Return the value, or the bits of an f32.
template <typename T> GF_DEVICE uint32_t gf_bits(T x) {
    if constexpr (sizeof(T) == sizeof(float))
        return __float_as_uint(x);
    else
        return x;
}

// ---- vectors ------------------------------------------------------------------------------------

GF_DEVICE uint32_t gf_word(const uint4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

GF_DEVICE void gf_unpack(const uint4 &v, uint32_t *words) {
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
}

GF_DEVICE uint4 gf_vector_of(const uint32_t *words) {
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// Return sample k of a vector. k is constant after unrolling.
template <typename T> GF_DEVICE T gf_sample_at(const uint4 &v, int k) {
    const int per_word = 4 / sizeof(T);
    const uint32_t word = gf_word(v, k / per_word);
    if constexpr (sizeof(T) == sizeof(float))
        return __uint_as_float(word);
    else
        return static_cast<T>(word >> k % per_word * 8 * sizeof(T));
}

// Pack the lowest bytes of four words into one word.
GF_DEVICE uint32_t gf_pack(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// Pack samples, each in the low bits of a word, as far as they fill words. CLAMP: integers are
// signed, and clamped to the range of the type.
template <typename T, int SAMPLES, bool CLAMP = false>
GF_DEVICE void gf_pack_samples(const uint32_t *bits, uint32_t *to) {
#pragma unroll
    for (int i = 0; i < SAMPLES * static_cast<int>(sizeof(T)) / 4; i++) {
        if constexpr (sizeof(T) == 4)
            to[i] = bits[i];
        else if constexpr (sizeof(T) == 2 && CLAMP)
            asm("cvt.pack.sat.u16.s32 %0, %1, %2;"
                : "=r"(to[i])
                : "r"(bits[2 * i + 1]), "r"(bits[2 * i]));
        else if constexpr (sizeof(T) == 2)
            to[i] = __byte_perm(bits[2 * i], bits[2 * i + 1], 0x5410);
        else if constexpr (CLAMP) // with the conversions before it, two instructions (sm_90)
            asm("{\n"
                ".reg .b32 high;\n"
                "cvt.pack.sat.u8.s32.b32 high, %4, %3, 0;\n"
                "cvt.pack.sat.u8.s32.b32 %0, %2, %1, high;\n"
                "}\n"
                : "=r"(to[i])
                : "r"(bits[4 * i]), "r"(bits[4 * i + 1]), "r"(bits[4 * i + 2]),
                  "r"(bits[4 * i + 3]));
        else
            to[i] = gf_pack(bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]);
    }
}

// Return the 4 bytes of channel c of 4 u8 pixels. c is constant after unrolling.
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

// Load BYTES bytes with the widest load (4, 8 or 16 bytes) that divides BYTES.
template <int BYTES> GF_DEVICE void gf_load_words(uint32_t *words, const unsigned char *from) {
    typedef typename std::conditional<BYTES % 8 == 0, uint2, uint32_t>::type Small;
    typedef typename std::conditional<BYTES % 16 == 0, uint4, Small>::type Vector;
#pragma unroll
    for (int i = 0; i < BYTES; i += static_cast<int>(sizeof(Vector))) {
        const Vector v = *reinterpret_cast<const Vector *>(from + i);
        memcpy(words + i / 4, &v, sizeof v);
    }
}

// Store BYTES bytes, at an address that is a multiple of BYTES: 4, 8 or 16.
template <int BYTES> GF_DEVICE void gf_store_words(unsigned char *to, const uint32_t *words) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "one store");
    if constexpr (BYTES == 4)
        *reinterpret_cast<uint32_t *>(to) = words[0];
    else if constexpr (BYTES == 8)
        *reinterpret_cast<uint2 *>(to) = make_uint2(words[0], words[1]);
    else
        *reinterpret_cast<uint4 *>(to) = gf_vector_of(words);
}

// ---- reductions ---------------------------------------------------------------------------------

struct gf_plus {
    template <typename T> __device__ __forceinline__ T operator()(T x, T y) const {
        return x + y;
    }
};

struct gf_minimum {
    template <typename T> __device__ __forceinline__ T operator()(T x, T y) const {
        return x < y ? x : y;
    }
};

struct gf_maximum {
    template <typename T> __device__ __forceinline__ T operator()(T x, T y) const {
        return x > y ? x : y;
    }
};

GF_DEVICE double gf_canonical(double x) {
    return x == x ? x : __longlong_as_double(0x7ff8000000000000ll);
}

// Reduce the values of GROUP consecutive lanes by warp shuffles. All lanes of the group get the
// result. All lanes of the warp must call it.
template <int GROUP, typename T, typename Operation>
GF_DEVICE T gf_reduce_group(T x, Operation operation) {
#pragma unroll
    for (int distance = GROUP / 2; distance > 0; distance /= 2)
        x = operation(x, __shfl_xor_sync(GF_WARP, x, distance));
    return x;
}

// Add 256 values in the order of filters/samples.h. Thread t of the warp has values t + 32 * i.
GF_DEVICE double gf_add_lanes(double (&x)[8]) {
#pragma unroll
    for (int stride = 4; stride > 0; stride /= 2)
#pragma unroll
        for (int i = 0; i < stride; i++)
            x[i] = __dadd_rn(x[i], x[i + stride]);
    return gf_reduce_group<32>(x[0], gf_plus());
}

#endif
