/* Written for the compiler to vectorise: everything in bytes, selects instead of branches. */
#include "io/png_filter.h"

#include "vec.h"

static void none(unsigned char *restrict dst, const unsigned char *row, size_t n) {
    memcpy(dst, row, n);
}

static void sub(unsigned char *restrict dst, const unsigned char *row, const unsigned char *left,
                size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = (unsigned char)(row[i] - left[i]);
}

static void average(unsigned char *restrict dst, const unsigned char *row,
                    const unsigned char *left, const unsigned char *above, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char a = left[i], b = above[i];
        /* Half the sum, in a byte. */
        const unsigned char mean = (unsigned char)((a & b) + ((a ^ b) >> 1));
        dst[i] = (unsigned char)(row[i] - mean);
    }
}

static inline unsigned char apart(unsigned char x, unsigned char y) {
    const unsigned char more = (unsigned char)(x - y), less = (unsigned char)(y - x);
    return x > y ? more : less;
}

/* With p = a + b - c, |p - a| is |b - c| and |p - b| is |a - c|. |p - c| is their sum where a and b
 * lie on one side of c: no less than either, so that c is not the nearest. Otherwise it is their
 * difference. */
static void paeth(unsigned char *restrict dst, const unsigned char *row, const unsigned char *left,
                  const unsigned char *above, const unsigned char *above_left, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char a = left[i], b = above[i], c = above_left[i];
        const unsigned char pa = apart(b, c), pb = apart(a, c), between = apart(pa, pb);
        const unsigned char one_side = (unsigned char)((b > c) ^ (a > c) ? 0 : 255);
        const unsigned char pc = between | one_side;
        const unsigned char b_or_c = pb <= pc ? b : c;
        const unsigned char b_c_least = pb <= pc ? pb : pc;
        const unsigned char best = pa <= b_c_least ? a : b_or_c;
        dst[i] = (unsigned char)(row[i] - best);
    }
}

static void filter_row(gf_png_filter filter, unsigned char *dst, const unsigned char *row,
                       const unsigned char *above, size_t n, size_t pixel) {
    switch (filter) {
    case GF_PNG_SUB:
        sub(dst, row, row - pixel, n);
        break;
    case GF_PNG_UP:
        sub(dst, row, above, n);
        break;
    case GF_PNG_AVERAGE:
        average(dst, row, row - pixel, above, n);
        break;
    case GF_PNG_PAETH:
        paeth(dst, row, row - pixel, above, above - pixel, n);
        break;
    default:
        none(dst, row, n);
    }
}

static uint64_t magnitude(const unsigned char *residuals, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n;) {
        uint32_t part = 0;
        const size_t end = n - i < 65536 ? n : i + 65536;
        for (; i < end; i++)
            part += residuals[i] < 128 ? residuals[i] : (unsigned char)(0 - residuals[i]);
        sum += part;
    }
    return sum;
}

static void swap16(unsigned char *restrict dst, const unsigned char *src, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t v;
        memcpy(&v, src + 2 * i, sizeof v);
        v = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap16(v) : v;
        memcpy(dst + 2 * i, &v, sizeof v);
    }
}

const gf_png_filter_simd GF_SIMD_NAME(gf_png_filter_simd) = {filter_row, magnitude, swap16};
