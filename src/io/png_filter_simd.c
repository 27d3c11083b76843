/* Loops over the bytes of PNG rows, compiled once a SIMD level.
 *
 * Filtering is written for the compiler to vectorise: everything in bytes, selects instead of
 * branches. Unfiltering waits for the pixel to the left, except for Up. Sub is a running sum:
 * within a vector by shifting and adding, from one to the next by what was carried. In Average and
 * Paeth the number of operations from one pixel to the next counts; all else is done beforehand. */
#include "io/png_filter.h"

#include <string.h>

#include "core/image.h"
#include "core/vec.h"
#include "io/bytes.h"

/* ---- filtering ------------------------------------------------------------------------------- */

static void filter_sub(unsigned char *restrict dst, const unsigned char *row,
                       const unsigned char *left, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = (unsigned char)(row[i] - left[i]);
}

static void filter_average(unsigned char *restrict dst, const unsigned char *row,
                           const unsigned char *left, const unsigned char *above, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char a = left[i], b = above[i];
        /* Half the sum, in a byte. */
        const unsigned char mean = (unsigned char)((a & b) + ((a ^ b) >> 1));
        dst[i] = (unsigned char)(row[i] - mean);
    }
}

static inline unsigned char filter_apart(unsigned char x, unsigned char y) {
    const unsigned char more = (unsigned char)(x - y), less = (unsigned char)(y - x);
    return x > y ? more : less;
}

/* With p = a + b - c, |p - a| is |b - c| and |p - b| is |a - c|. |p - c| is their sum where a and b
 * lie on one side of c: no less than either, so that c is not the nearest. Otherwise it is their
 * difference. */
static void filter_paeth(unsigned char *restrict dst, const unsigned char *row,
                         const unsigned char *left, const unsigned char *above,
                         const unsigned char *above_left, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char a = left[i], b = above[i], c = above_left[i];
        const unsigned char pa = filter_apart(b, c), pb = filter_apart(a, c),
                            between = filter_apart(pa, pb);
        const unsigned char one_side = (unsigned char)((b > c) ^ (a > c) ? 0 : 255);
        const unsigned char pc = between | one_side;
        const unsigned char b_or_c = pb <= pc ? b : c;
        const unsigned char b_c_min = pb <= pc ? pb : pc;
        const unsigned char best = pa <= b_c_min ? a : b_or_c;
        dst[i] = (unsigned char)(row[i] - best);
    }
}

static void filter_row(gf_png_filter filter, unsigned char *dst, const unsigned char *row,
                       const unsigned char *above, size_t n, size_t pixel) {
    switch (filter) {
    case GF_PNG_SUB:
        filter_sub(dst, row, row - pixel, n);
        break;
    case GF_PNG_UP:
        filter_sub(dst, row, above, n);
        break;
    case GF_PNG_AVERAGE:
        filter_average(dst, row, row - pixel, above, n);
        break;
    case GF_PNG_PAETH:
        filter_paeth(dst, row, row - pixel, above, above - pixel, n);
        break;
    default:
        memcpy(dst, row, n);
    }
}

static uint64_t filter_magnitude(const unsigned char *residuals, size_t n) {
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

/* Channels repeat within a vector, whole pixels or not: 1 and 3 have no alpha, 2 and 4 divide the
 * number of lanes. */
typedef uint8_t lanes8 __attribute__((vector_size(sizeof(vec))));
typedef uint16_t lanes16 __attribute__((vector_size(sizeof(vec))));

/* Each lane counts up to MOST samples before it is added up. */
#define COUNT_LARGEST(NAME, TYPE, LANES, MAX)                                                      \
    static uint64_t NAME(const TYPE *row, uint64_t samples, uint32_t channels) {                   \
        enum { WIDTH = sizeof(LANES) / sizeof(TYPE) };                                             \
        const TYPE largest = (TYPE)-1;                                                             \
        const bool alpha = gf_has_alpha(channels);                                                 \
        LANES counted = {0};                                                                       \
        for (uint32_t lane = 0; lane < WIDTH; lane++)                                              \
            counted[lane] = alpha && lane % channels == channels - 1 ? 0 : largest;                \
        uint64_t count = 0, i = 0;                                                                 \
        while (samples - i >= WIDTH) {                                                             \
            const uint64_t left = (samples - i) / WIDTH, turns = left < (MAX) ? left : (MAX);      \
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

/* ---- unfiltering ----------------------------------------------------------------------------- */

static inline void unfilter_up(unsigned char *restrict out, const unsigned char *restrict in,
                               const unsigned char *restrict above, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(in[i] + above[i]);
}

static void copy_big16(unsigned char *dst, const unsigned char *src, size_t n) {
    gf_copy_big16(dst, src, n);
}

#ifdef __SSE2__
#include <emmintrin.h>
#define INLINE static inline __attribute__((always_inline))

/* n bytes, 1 to 16 and known when compiling, to the low end of a vector. */
INLINE __m128i unfilter_load(const unsigned char *p, size_t n) {
    uint64_t low = 0;
    if (n == 16)
        return _mm_loadu_si128((const __m128i *)(const void *)p);
    memcpy(&low, p, n);
    return _mm_cvtsi64_si128((long long)low);
}

INLINE void unfilter_store(unsigned char *p, __m128i x, size_t n) {
    const uint64_t low = (uint64_t)_mm_cvtsi128_si64(x);
    memcpy(p, &low, n);
}

/* A pixel of 3 or 6 bytes is loaded and stored as 4 or 8 while the row goes on behind it: what is
 * too much in `out` is written over by the next pixel. */
INLINE size_t unfilter_wide(size_t unit) {
    return unit == 3 ? 4 : unit == 6 ? 8 : unit;
}

/* ---- Sub ------------------------------------------------------------------------------------- */

INLINE void sub_pixels(unsigned char *out, const unsigned char *in, size_t bytes, size_t unit,
                       __m128i left) {
    size_t i = 0;
    for (; i + unfilter_wide(unit) <= bytes; i += unit) {
        left = _mm_add_epi8(left, unfilter_load(in + i, unfilter_wide(unit)));
        unfilter_store(out + i, left, unfilter_wide(unit));
    }
    for (; i < bytes; i += unit) {
        left = _mm_add_epi8(left, unfilter_load(in + i, unit));
        unfilter_store(out + i, left, unit);
    }
}

#ifdef __AVX2__
/* As many whole pixels as a vector holds. The byte in position 15 of 3-byte pixels belongs to the
 * next step, which writes it again. */
#define SUB(UNIT)                                                                                  \
    static void sub##UNIT(unsigned char *out, const unsigned char *in, size_t bytes) {             \
        enum { STEP = 16 / UNIT * UNIT, LAST = STEP - UNIT };                                      \
        char pick[16];                                                                             \
        for (int j = 0; j < 16; j++)                                                               \
            pick[j] = (char)(LAST + j % UNIT);                                                     \
        const __m128i last = _mm_loadu_si128((const __m128i *)(const void *)pick);                 \
        __m128i carried = _mm_setzero_si128();                                                     \
        size_t i = 0;                                                                              \
        for (; i + 16 <= bytes; i += STEP) {                                                       \
            __m128i x = unfilter_load(in + i, 16);                                                 \
            x = _mm_add_epi8(x, _mm_slli_si128(x, UNIT));                                          \
            if (2 * UNIT < 16)                                                                     \
                x = _mm_add_epi8(x, _mm_slli_si128(x, 2 * UNIT));                                  \
            if (4 * UNIT < 16)                                                                     \
                x = _mm_add_epi8(x, _mm_slli_si128(x, 4 * UNIT));                                  \
            if (8 * UNIT < 16)                                                                     \
                x = _mm_add_epi8(x, _mm_slli_si128(x, 8 * UNIT));                                  \
            _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_add_epi8(x, carried));              \
            carried = _mm_add_epi8(carried, _mm_shuffle_epi8(x, last));                            \
        }                                                                                          \
        sub_pixels(out + i, in + i, bytes - i, UNIT, carried);                                     \
    }
#else
#define SUB(UNIT)                                                                                  \
    static void sub##UNIT(unsigned char *out, const unsigned char *in, size_t bytes) {             \
        sub_pixels(out, in, bytes, UNIT, _mm_setzero_si128());                                     \
    }
#endif

/* ---- Average --------------------------------------------------------------------------------- */

/* The instruction's mean rounds up. The mean of complements, rounded up, is the complement of the
 * mean rounded down; so with the complement of the left pixel there are two operations a pixel:
 * ~out = ~(in + ~up(~left, ~above)) = up(~left, ~above) - in. */
INLINE __m128i unfilter_average_pixel(__m128i not_left, __m128i above, __m128i in) {
    const __m128i ones = _mm_set1_epi8(-1);
    return _mm_sub_epi8(_mm_avg_epu8(not_left, _mm_xor_si128(above, ones)), in);
}

INLINE void unfilter_average(unsigned char *out, const unsigned char *in,
                             const unsigned char *above, size_t bytes, size_t unit) {
    const __m128i ones = _mm_set1_epi8(-1);
    __m128i not_left = ones;
    size_t i = 0;
    for (; i + unfilter_wide(unit) <= bytes; i += unit) {
        not_left = unfilter_average_pixel(not_left, unfilter_load(above + i, unfilter_wide(unit)),
                                          unfilter_load(in + i, unfilter_wide(unit)));
        unfilter_store(out + i, _mm_xor_si128(not_left, ones), unfilter_wide(unit));
    }
    for (; i < bytes; i += unit) {
        not_left = unfilter_average_pixel(not_left, unfilter_load(above + i, unit),
                                          unfilter_load(in + i, unit));
        unfilter_store(out + i, _mm_xor_si128(not_left, ones), unit);
    }
}

/* ---- Paeth ----------------------------------------------------------------------------------- */

/* mask ? a : b */
INLINE __m128i unfilter_choose(__m128i mask, __m128i a, __m128i b) {
#if defined(__AVX512VL__)
    /* Not a blend: for that one the compiler would take mask registers, which are slow to fill. */
    return _mm_ternarylogic_epi32(mask, a, b, 0xca);
#elif defined(__AVX2__)
    return _mm_blendv_epi8(b, a, mask);
#else
    return _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b));
#endif
}

/* 16-bit lanes. With low and high the smaller and larger of left and up, and t = 3 corner - left -
 * up: the corner is nearest where low < t < high; the other two are on either side of it. */
INLINE __m128i unfilter_paeth_pixel(__m128i left, __m128i up_, __m128i corner, __m128i in) {
    const __m128i before = _mm_sub_epi16(_mm_add_epi16(_mm_add_epi16(corner, corner), corner), up_);
    const __m128i t = _mm_sub_epi16(before, left);
    const __m128i low = _mm_min_epi16(left, up_), high = _mm_max_epi16(left, up_);
    /* `in` is added to all three while it is not yet known which is nearest. */
    const __m128i nearest =
        unfilter_choose(_mm_cmpgt_epi16(high, t), _mm_add_epi8(corner, in), _mm_add_epi8(low, in));
    return unfilter_choose(_mm_cmpgt_epi16(t, low), nearest, _mm_add_epi8(high, in));
}

INLINE void unfilter_paeth(unsigned char *out, const unsigned char *in, const unsigned char *above,
                           size_t bytes, size_t unit) {
    const __m128i zero = _mm_setzero_si128();
    __m128i left = zero, corner = zero;
    size_t i = 0;
    for (; i + unfilter_wide(unit) <= bytes; i += unit) {
        const __m128i here = _mm_unpacklo_epi8(unfilter_load(above + i, unfilter_wide(unit)), zero);
        left = unfilter_paeth_pixel(
            left, here, corner,
            _mm_unpacklo_epi8(unfilter_load(in + i, unfilter_wide(unit)), zero));
        corner = here;
        unfilter_store(out + i, _mm_packus_epi16(left, left), unfilter_wide(unit));
    }
    for (; i < bytes; i += unit) {
        const __m128i here = _mm_unpacklo_epi8(unfilter_load(above + i, unit), zero);
        left = unfilter_paeth_pixel(left, here, corner,
                                    _mm_unpacklo_epi8(unfilter_load(in + i, unit), zero));
        corner = here;
        unfilter_store(out + i, _mm_packus_epi16(left, left), unit);
    }
}

/* ---- by unit --------------------------------------------------------------------------------- */

#define OF_UNIT(UNIT)                                                                              \
    SUB(UNIT)                                                                                      \
    static void row##UNIT(unsigned char *out, const unsigned char *in, const unsigned char *above, \
                          size_t bytes, uint32_t filter) {                                         \
        if (filter == GF_PNG_SUB)                                                                  \
            sub##UNIT(out, in, bytes);                                                             \
        else if (filter == GF_PNG_AVERAGE)                                                         \
            unfilter_average(out, in, above, bytes, UNIT);                                         \
        else                                                                                       \
            unfilter_paeth(out, in, above, bytes, UNIT);                                           \
    }

OF_UNIT(1)
OF_UNIT(2)
OF_UNIT(3)
OF_UNIT(4)
OF_UNIT(6)
OF_UNIT(8)

static void unfilter_pixels(unsigned char *out, const unsigned char *in, const unsigned char *above,
                            size_t bytes, uint32_t unit, uint32_t filter) {
    static void (*const rows[9])(unsigned char *, const unsigned char *, const unsigned char *,
                                 size_t, uint32_t) = {
        [1] = row1, [2] = row2, [3] = row3, [4] = row4, [6] = row6, [8] = row8};
    rows[unit](out, in, above, bytes, filter);
}

#else /* no x86: what waits for its left neighbour goes a byte at a time */
#define unfilter_pixels gf_png_unfilter_golden
#endif

static void unfilter_row(unsigned char *out, const unsigned char *in, const unsigned char *above,
                         size_t bytes, uint32_t unit, uint32_t filter) {
    if (filter == GF_PNG_NONE)
        memcpy(out, in, bytes);
    else if (filter == GF_PNG_UP)
        unfilter_up(out, in, above, bytes);
    else
        unfilter_pixels(out, in, above, bytes, unit, filter);
}

const gf_png_simd GF_SIMD_NAME(gf_png_simd) = {filter_row, unfilter_row, filter_magnitude,
                                               copy_big16, count_largest};
