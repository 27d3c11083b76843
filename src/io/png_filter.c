#include "io/png_filter.h"

#include <stdlib.h>

const gf_png_filter_simd *gf_png_filter_simd_of(gf_isa isa) {
    static const gf_png_filter_simd *const by_isa[GF_ISA_COUNT] = {
        [GF_ISA_PORTABLE] = &gf_png_filter_simd_portable,
#ifdef GF_X86_64
        [GF_ISA_AVX2] = &gf_png_filter_simd_avx2,
        [GF_ISA_AVX512] = &gf_png_filter_simd_avx512,
#endif
    };
    return by_isa[isa];
}

/* Whichever of a (left), b (above) and c (above left) is nearest to a + b - c, in this order. */
static int paeth(int a, int b, int c) {
    const int p = a + b - c;
    const int pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    if (pa <= pb && pa <= pc)
        return a;
    return pb <= pc ? b : c;
}

void gf_png_filter_plainly(gf_png_filter filter, unsigned char *dst, const unsigned char *row,
                           const unsigned char *above, size_t n, size_t pixel) {
    for (size_t i = 0; i < n; i++) {
        const int a = *(row + i - pixel), b = above[i], c = *(above + i - pixel);
        const int predicted = filter == GF_PNG_SUB       ? a
                              : filter == GF_PNG_UP      ? b
                              : filter == GF_PNG_AVERAGE ? (a + b) / 2
                              : filter == GF_PNG_PAETH   ? paeth(a, b, c)
                                                         : 0;
        dst[i] = (unsigned char)(row[i] - predicted);
    }
}
