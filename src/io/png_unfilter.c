#include "io/png_unfilter.h"

static const gf_png_unfilter_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_png_unfilter_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_png_unfilter_simd_avx2,
    [GF_ISA_AVX512] = &gf_png_unfilter_simd_avx512,
#endif
};

const gf_png_unfilter_simd *gf_png_unfilter_level(gf_isa isa) {
    return simd_levels[isa];
}
