/* PNG filters in scalar code, as in the specification. Used to unfilter where no vector code
 * exists, and as the reference in tests. */
#include "io/strip/row_filter.h"

void gf_png_unfilter_golden(unsigned char *out, const unsigned char *in, const unsigned char *above,
                            size_t from, size_t to, uint32_t bpp, uint32_t filter) {
    for (size_t i = from; i < to; i++) {
        const int left = i >= bpp ? out[i - bpp] : 0, up = above[i];
        const int upper_left = i >= bpp ? above[i - bpp] : 0;
        const int predicted = filter == GF_PNG_SUB       ? left
                              : filter == GF_PNG_UP      ? up
                              : filter == GF_PNG_AVERAGE ? (left + up) / 2
                              : filter == GF_PNG_PAETH   ? gf_png_paeth(left, up, upper_left)
                                                         : 0;
        out[i] = (unsigned char)(in[i] + predicted);
    }
}
