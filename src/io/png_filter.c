/* PNG's row filters as the specification defines them, a byte at a time. */
#include "io/png_filter.h"

#include <stdlib.h>

const gf_png_simd *gf_png_simd_of(gf_isa isa) {
    static const gf_png_simd *const by_isa[GF_ISA_COUNT] = {
        [GF_ISA_PORTABLE] = &gf_png_simd_portable,
#ifdef GF_X86_64
        [GF_ISA_AVX2] = &gf_png_simd_avx2,
        [GF_ISA_AVX512] = &gf_png_simd_avx512,
#endif
    };
    return by_isa[isa];
}

/* The neighbour that is nearest to left + up - corner; of equally near ones the first. */
static int png_paeth(int left, int up, int corner) {
    const int guess = left + up - corner;
    const int from_left = abs(guess - left), from_up = abs(guess - up);
    const int from_corner = abs(guess - corner);
    if (from_left <= from_up && from_left <= from_corner)
        return left;
    return from_up <= from_corner ? up : corner;
}

static int png_predict(uint32_t filter, int left, int up, int corner) {
    switch (filter) {
    case GF_PNG_SUB:
        return left;
    case GF_PNG_UP:
        return up;
    case GF_PNG_AVERAGE:
        return (left + up) / 2;
    case GF_PNG_PAETH:
        return png_paeth(left, up, corner);
    default:
        return 0;
    }
}

void gf_png_filter_golden(gf_png_filter filter, unsigned char *dst, const unsigned char *row,
                          const unsigned char *above, size_t n, size_t pixel) {
    for (size_t i = 0; i < n; i++)
        dst[i] = (unsigned char)(row[i] - png_predict(filter, *(row + i - pixel), above[i],
                                                      *(above + i - pixel)));
}

void gf_png_unfilter_golden(unsigned char *out, const unsigned char *in, const unsigned char *above,
                            size_t bytes, uint32_t unit, uint32_t filter) {
    for (size_t i = 0; i < bytes; i++) {
        const int left = i >= unit ? out[i - unit] : 0;
        const int corner = i >= unit ? above[i - unit] : 0;
        out[i] = (unsigned char)(in[i] + png_predict(filter, left, above[i], corner));
    }
}
