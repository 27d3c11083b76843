/* What the library was built with, and what this machine has to compute with. */
#ifndef GF_MACHINE_H
#define GF_MACHINE_H

#include "gpufilter.h"

/* Inlined at every call: parameters that are constants there make a loop of their own. */
#define GF_INLINE static inline __attribute__((always_inline))

/* In the order of gf_simd_names() after "auto". Every level gives the same bits. */
typedef enum gf_isa {
    GF_ISA_PORTABLE, /* what the compiler assumes: SSE2 on x86-64, NEON on arm64 */
    GF_ISA_AVX2,
    GF_ISA_AVX512,
    GF_ISA_COUNT
} gf_isa;

/* Was this level compiled in, and does this processor have it? */
int gf_isa_available(gf_isa isa);

/* The best level here. */
gf_isa gf_isa_best(void);

/* The addresses of what NAME_simd.c defines as GF_SIMD_NAME(name), once a level. */
#ifdef GF_X86_64
#define GF_LEVELS(name)                                                                            \
    { &name##_portable, &name##_avx2, &name##_avx512 }
#else
#define GF_LEVELS(name)                                                                            \
    { &name##_portable }
#endif

/* Which of several processes on this machine this one is (gf_set_local_process): number `turn` of
 * `turns`, which is at least 1. */
typedef struct gf_local_process {
    unsigned turn, turns;
} gf_local_process;

gf_local_process gf_own_process(void);

#define GF_MAX_DEVICES 16

/* CUDA devices by number. */
typedef struct gf_device_list {
    int count;
    int list[GF_MAX_DEVICES];
} gf_device_list;

/* Reads "0,2", or "all" of those present, and keeps this process's: each has every turns-th; where
 * there are fewer devices than processes, several have one. GF_NO_BACKEND for a number that is not
 * below `present`. */
gf_status gf_device_list_read(const char *text, int present, gf_device_list *devices,
                              gf_error *error);

/* Both as GF_VERSION. Before 1.0 what is compiled into programs changes with every minor version;
 * from 1.0 on it is only added to, until the major one changes. */
static inline bool gf_version_serves(int library, int header) {
    const int series = library >= 10000 ? 10000 : 100;
    return header / series == library / series && header / 100 <= library / 100;
}

#endif
