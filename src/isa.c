#include "isa.h"

#include "gpufilter.h"

static const char *const names[] = {"auto", "portable", "avx2", "avx512", 0};

const char *const *gf_simd_names(void) {
    return names;
}

int gf_isa_available(gf_isa isa) {
    switch (isa) {
    case GF_ISA_PORTABLE:
        return 1;
#ifdef GF_X86_64
    case GF_ISA_AVX2:
        return __builtin_cpu_supports("avx2") != 0;
    case GF_ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
    default:
        return 0;
    }
}

gf_isa gf_isa_best(void) {
    gf_isa isa = GF_ISA_AVX512;
    while (!gf_isa_available(isa))
        isa = (gf_isa)(isa - 1);
    return isa;
}
