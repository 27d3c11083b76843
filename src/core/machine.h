/* Build options, SIMD levels and CUDA devices of this machine. */
#ifndef GF_MACHINE_H
#define GF_MACHINE_H

#include "gpufilter.h"

/* Force inlining, so that constant arguments specialize the loops of each call. */
#define GF_INLINE static inline __attribute__((always_inline))

/* Call one of three instances of a GF_INLINE function, each with a constant type. */
#define GF_BY_TYPE(type, function, ...)                                                            \
    ((type) == GF_U8    ? function(GF_U8, __VA_ARGS__)                                             \
     : (type) == GF_U16 ? function(GF_U16, __VA_ARGS__)                                            \
                        : function(GF_F32, __VA_ARGS__))

/* A function that CPU and GPU share. */
#ifdef __CUDACC__
#define GF_BOTH static __host__ __device__ __forceinline__
#else
#define GF_BOTH static inline
#endif

/* Return whether the first byte of an integer in memory is the lowest one. */
GF_BOTH bool gf_host_is_little(void) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

/* The value of a member that C++ leaves out of an initializer; C sets it to 0. */
#ifdef __cplusplus
#define GF_DEFAULT(value) = value
#else
#define GF_DEFAULT(value)
#endif

/* "auto", then the names of the SIMD levels: the list GF_NAMES_SIMD. */
extern const char *const gf_simd_names[];

/* SIMD levels. Every level produces the same bits. */
typedef enum gf_isa {
    GF_ISA_PORTABLE, /* without intrinsics: what the compiler makes of vectors of 128 bits */
    GF_ISA_AVX2,
    GF_ISA_AVX512,
    GF_ISA_NEON, /* every arm64 processor has it */
    GF_ISA_COUNT
} gf_isa;

/* Return whether this level is compiled in and the CPU supports it. */
int gf_isa_available(gf_isa isa);

gf_isa gf_isa_best(void);

/* The variants that NAME_simd.c defines as GF_SIMD_NAME(name), one per level: their names in a
 * declaration, and a table of their addresses. */
#define GF_LEVEL_NAMES(name) name##_portable, name##_avx2, name##_avx512, name##_neon
#if defined(GF_X86_64)
#define GF_LEVELS(name)                                                                            \
    {                                                                                              \
        [GF_ISA_PORTABLE] = &name##_portable, [GF_ISA_AVX2] = &name##_avx2,                        \
        [GF_ISA_AVX512] = &name##_avx512                                                           \
    }
#elif defined(GF_AARCH64)
#define GF_LEVELS(name)                                                                            \
    { [GF_ISA_PORTABLE] = &name##_portable, [GF_ISA_NEON] = &name##_neon }
#else
#define GF_LEVELS(name)                                                                            \
    { [GF_ISA_PORTABLE] = &name##_portable }
#endif

#define GF_MAX_THREADS 1024u

/* Limits of control groups; UINT64_MAX: none. */
typedef struct gf_group_limits {
    uint64_t cores;  /* CPU quota, rounded up */
    uint64_t memory; /* bytes */
} gf_group_limits;

/* Read the smallest limits of the control groups of this process and of those that contain them.
 * root: prefix of /proc and /sys, for tests; "". */
gf_group_limits gf_group_limits_read(const char *root);

/* Allocate memory that starts at a page, in large pages if it fills one and the kernel has some:
 * rows of tiles are far apart, each in another small page. Free it with free. NULL: no memory. */
void *gf_alloc_pages(size_t bytes);

#define GF_MAX_DEVICES 16

/* CUDA device numbers. */
typedef struct gf_device_list {
    int count;
    int list[GF_MAX_DEVICES];
} gf_device_list;

/* Parse "0,2" or "all" (of the `present` devices) and keep the share of this process
 * (gf_set_local_process): device i of the list belongs to process i modulo the number of processes.
 * If there are fewer devices than processes, several processes share one. Return GF_NO_BACKEND for
 * a number not below `present`. NULL: one of all devices. */
gf_status gf_device_list_read(const char *text, int present, gf_device_list *devices,
                              gf_error *error);

/* Return whether a library is compatible with a header; both versions are encoded as GF_VERSION.
 * Before 1.0, the ABI may change with each minor version. From 1.0, it only grows until the major
 * version changes. */
static inline bool gf_version_compatible(int library, int header) {
    const int series = library >= 10000 ? 10000 : 100;
    return header / series == library / series && header / 100 <= library / 100;
}

#endif
