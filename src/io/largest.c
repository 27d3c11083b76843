#include "io/largest.h"

uint64_t gf_count_largest(gf_isa isa, const gf_format *format, const void *row) {
    static gf_count_largest_row *const by_isa[GF_ISA_COUNT] = {
        [GF_ISA_PORTABLE] = gf_count_largest_portable,
#ifdef GF_X86_64
        [GF_ISA_AVX2] = gf_count_largest_avx2,
        [GF_ISA_AVX512] = gf_count_largest_avx512,
#endif
    };
    return by_isa[isa](format, row);
}
