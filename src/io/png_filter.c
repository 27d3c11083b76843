/* PNG's row filters as the specification defines them, a byte at a time: what unfilters where
 * no vectors do, and what tests compare with. */
#include "io/png_filter.h"

#include <stdlib.h>

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

void gf_png_unfilter_golden(unsigned char *out, const unsigned char *in, const unsigned char *above,
                            size_t bytes, uint32_t unit, uint32_t filter) {
    for (size_t i = 0; i < bytes; i++) {
        const int left = i >= unit ? out[i - unit] : 0;
        const int corner = i >= unit ? above[i - unit] : 0;
        out[i] = (unsigned char)(in[i] + png_predict(filter, left, above[i], corner));
    }
}
