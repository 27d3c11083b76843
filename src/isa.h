/* The SIMD levels of the fast CPU code, chosen at run time. */
#ifndef GF_ISA_H
#define GF_ISA_H

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

#endif
