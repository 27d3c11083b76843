/* Written for the compiler to vectorise: everything in bytes, selects instead of branches. */
#include "io/png_filter.h"

#include "image.h"
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

/* Channels repeat within a vector, whole pixels or not: 1 and 3 have no alpha, 2 and 4 divide the
 * number of lanes. */
typedef uint8_t lanes8 __attribute__((vector_size(sizeof(vec))));
typedef uint16_t lanes16 __attribute__((vector_size(sizeof(vec))));

/* Each lane counts up to MOST samples before it is added up. */
#define COUNT_LARGEST(NAME, TYPE, LANES, MOST)                                                     \
    static uint64_t NAME(const TYPE *row, uint64_t samples, uint32_t channels) {                   \
        enum { WIDTH = sizeof(LANES) / sizeof(TYPE) };                                             \
        const TYPE largest = (TYPE)-1;                                                             \
        const bool alpha = gf_has_alpha(channels);                                                 \
        LANES counted = {0};                                                                       \
        for (uint32_t lane = 0; lane < WIDTH; lane++)                                              \
            counted[lane] = alpha && lane % channels == channels - 1 ? 0 : largest;                \
        uint64_t count = 0, i = 0;                                                                 \
        while (samples - i >= WIDTH) {                                                             \
            const uint64_t left = (samples - i) / WIDTH, turns = left < (MOST) ? left : (MOST);    \
            LANES counts = {0};                                                                    \
            for (const TYPE *end = row + i + turns * WIDTH; row + i != end; i += WIDTH) {          \
                LANES x;                                                                           \
                memcpy(&x, row + i, sizeof x);                                                     \
                counts -= (LANES)(x == largest) & counted;                                         \
            }                                                                                      \
            for (uint32_t lane = 0; lane < WIDTH; lane++)                                          \
                count += counts[lane];                                                             \
        }                                                                                          \
        for (; i < samples; i++)                                                                   \
            count += row[i] == largest && counted[i % WIDTH];                                      \
        return count;                                                                              \
    }

COUNT_LARGEST(count_largest8, uint8_t, lanes8, 255)
COUNT_LARGEST(count_largest16, uint16_t, lanes16, 65535)

static uint64_t count_largest(const gf_format *format, const void *row) {
    const uint64_t samples = gf_row_samples(format);
    return format->type == GF_U8 ? count_largest8(row, samples, format->channels)
                                 : count_largest16(row, samples, format->channels);
}

const gf_png_filter_simd GF_SIMD_NAME(gf_png_filter_simd) = {filter_row, magnitude, swap16,
                                                             count_largest};
