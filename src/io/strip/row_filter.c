/* PNG filters in scalar code, as in the specification. Used to unfilter where no vector code
 * exists, and as the reference in tests. */
#include "io/strip/row_filter.h"

static int png_predict(uint32_t filter, int left, int up, int upper_left) {
    switch (filter) {
    case GF_PNG_SUB:
        return left;
    case GF_PNG_UP:
        return up;
    case GF_PNG_AVERAGE:
        return (left + up) / 2;
    case GF_PNG_PAETH:
        return gf_png_paeth(left, up, upper_left);
    default:
        return 0;
    }
}

void gf_png_unfilter_golden(unsigned char *out, const unsigned char *in, const unsigned char *above,
                            size_t from, size_t to, uint32_t bpp, uint32_t filter) {
    for (size_t i = from; i < to; i++) {
        const int left = i >= bpp ? out[i - bpp] : 0;
        const int upper_left = i >= bpp ? above[i - bpp] : 0;
        out[i] = (unsigned char)(in[i] + png_predict(filter, left, above[i], upper_left));
    }
}
