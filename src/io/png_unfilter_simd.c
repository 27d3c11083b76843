/* Sub is a running sum: within a vector by shifting and adding, from one to the next by what was
 * carried. Average and Paeth wait for the pixel to the left, so what counts is how many operations
 * there are from one pixel to the next; all else is done beforehand. */
#include "io/png_unfilter.h"

#include <string.h>

#include "io/bytes.h"
#include "vec.h"

static inline void up(unsigned char *restrict out, const unsigned char *restrict in,
                      const unsigned char *restrict above, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(in[i] + above[i]);
}

static void native16(unsigned char *samples, size_t count) {
    gf_copy_big16(samples, samples, count);
}

#ifdef __SSE2__
#include <emmintrin.h>
#define INLINE static inline __attribute__((always_inline))

/* n bytes, 1 to 16 and known when compiling, to the low end of a vector. */
INLINE __m128i load(const unsigned char *p, size_t n) {
    uint64_t low = 0;
    if (n == 16)
        return _mm_loadu_si128((const __m128i *)(const void *)p);
    memcpy(&low, p, n);
    return _mm_cvtsi64_si128((long long)low);
}

INLINE void store(unsigned char *p, __m128i x, size_t n) {
    const uint64_t low = (uint64_t)_mm_cvtsi128_si64(x);
    memcpy(p, &low, n);
}

/* A pixel of 3 or 6 bytes is loaded and stored as 4 or 8 while the row goes on behind it: what is
 * too much in `out` is written over by the next pixel. */
INLINE size_t wide(size_t unit) {
    return unit == 3 ? 4 : unit == 6 ? 8 : unit;
}

/* ---- Sub ------------------------------------------------------------------------------------- */

INLINE void sub_pixels(unsigned char *out, const unsigned char *in, size_t bytes, size_t unit,
                       __m128i left) {
    size_t i = 0;
    for (; i + wide(unit) <= bytes; i += unit) {
        left = _mm_add_epi8(left, load(in + i, wide(unit)));
        store(out + i, left, wide(unit));
    }
    for (; i < bytes; i += unit) {
        left = _mm_add_epi8(left, load(in + i, unit));
        store(out + i, left, unit);
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
            __m128i x = load(in + i, 16);                                                          \
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
INLINE __m128i average_pixel(__m128i not_left, __m128i above, __m128i in) {
    const __m128i ones = _mm_set1_epi8(-1);
    return _mm_sub_epi8(_mm_avg_epu8(not_left, _mm_xor_si128(above, ones)), in);
}

INLINE void average(unsigned char *out, const unsigned char *in, const unsigned char *above,
                    size_t bytes, size_t unit) {
    const __m128i ones = _mm_set1_epi8(-1);
    __m128i not_left = ones;
    size_t i = 0;
    for (; i + wide(unit) <= bytes; i += unit) {
        not_left = average_pixel(not_left, load(above + i, wide(unit)), load(in + i, wide(unit)));
        store(out + i, _mm_xor_si128(not_left, ones), wide(unit));
    }
    for (; i < bytes; i += unit) {
        not_left = average_pixel(not_left, load(above + i, unit), load(in + i, unit));
        store(out + i, _mm_xor_si128(not_left, ones), unit);
    }
}

/* ---- Paeth ----------------------------------------------------------------------------------- */

/* mask ? a : b */
INLINE __m128i choose(__m128i mask, __m128i a, __m128i b) {
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
INLINE __m128i paeth_pixel(__m128i left, __m128i up_, __m128i corner, __m128i in) {
    const __m128i before = _mm_sub_epi16(_mm_add_epi16(_mm_add_epi16(corner, corner), corner), up_);
    const __m128i t = _mm_sub_epi16(before, left);
    const __m128i low = _mm_min_epi16(left, up_), high = _mm_max_epi16(left, up_);
    /* `in` is added to all three while it is not yet known which is nearest. */
    const __m128i nearest =
        choose(_mm_cmpgt_epi16(high, t), _mm_add_epi8(corner, in), _mm_add_epi8(low, in));
    return choose(_mm_cmpgt_epi16(t, low), nearest, _mm_add_epi8(high, in));
}

INLINE void paeth(unsigned char *out, const unsigned char *in, const unsigned char *above,
                  size_t bytes, size_t unit) {
    const __m128i zero = _mm_setzero_si128();
    __m128i left = zero, corner = zero;
    size_t i = 0;
    for (; i + wide(unit) <= bytes; i += unit) {
        const __m128i here = _mm_unpacklo_epi8(load(above + i, wide(unit)), zero);
        left = paeth_pixel(left, here, corner, _mm_unpacklo_epi8(load(in + i, wide(unit)), zero));
        corner = here;
        store(out + i, _mm_packus_epi16(left, left), wide(unit));
    }
    for (; i < bytes; i += unit) {
        const __m128i here = _mm_unpacklo_epi8(load(above + i, unit), zero);
        left = paeth_pixel(left, here, corner, _mm_unpacklo_epi8(load(in + i, unit), zero));
        corner = here;
        store(out + i, _mm_packus_epi16(left, left), unit);
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
            average(out, in, above, bytes, UNIT);                                                  \
        else                                                                                       \
            paeth(out, in, above, bytes, UNIT);                                                    \
    }

OF_UNIT(1)
OF_UNIT(2)
OF_UNIT(3)
OF_UNIT(4)
OF_UNIT(6)
OF_UNIT(8)

static void row(unsigned char *out, const unsigned char *in, const unsigned char *above,
                size_t bytes, uint32_t unit, uint32_t filter) {
    static void (*const rows[9])(unsigned char *, const unsigned char *, const unsigned char *,
                                 size_t, uint32_t) = {
        [1] = row1, [2] = row2, [3] = row3, [4] = row4, [6] = row6, [8] = row8};

    if (filter == GF_PNG_NONE)
        memcpy(out, in, bytes);
    else if (filter == GF_PNG_UP)
        up(out, in, above, bytes);
    else
        rows[unit](out, in, above, bytes, filter);
}

#else /* no x86: what waits for its left neighbour goes a byte at a time */

static void row(unsigned char *out, const unsigned char *in, const unsigned char *above,
                size_t bytes, uint32_t unit, uint32_t filter) {
    if (filter == GF_PNG_NONE)
        memcpy(out, in, bytes);
    else if (filter == GF_PNG_UP)
        up(out, in, above, bytes);
    else
        gf_png_unfilter_golden(out, in, above, bytes, unit, filter);
}

#endif

const gf_png_unfilter_simd GF_SIMD_NAME(gf_png_unfilter_simd) = {row, native16};
