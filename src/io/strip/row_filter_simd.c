/* PNG filter loops, compiled once per SIMD level.
 *
 * Filtering is left to the auto-vectoriser: byte arithmetic, and selects instead of branches.
 * Unfiltering depends on the pixel to the left, except for Up. Sub is a prefix sum: shifts and adds
 * within a vector, and a carry between vectors. For Average and Paeth the latency from one pixel to
 * the next dominates; all other work is done before. */
#include "io/strip/row_filter.h"

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
        /* (a + b) / 2 in 8 bits. */
        const unsigned char mean = (unsigned char)((a & b) + ((a ^ b) >> 1));
        dst[i] = (unsigned char)(row[i] - mean);
    }
}

static inline unsigned char filter_abs_diff(unsigned char x, unsigned char y) {
    const unsigned char x_minus_y = (unsigned char)(x - y), y_minus_x = (unsigned char)(y - x);
    return x > y ? x_minus_y : y_minus_x;
}

/* With p = a + b - c: |p - a| = |b - c| and |p - b| = |a - c|. If a and b are on the same side of
 * c, |p - c| is their sum: c is never nearest, and pc is 255. Else it is their difference. */
static void filter_paeth(unsigned char *restrict dst, const unsigned char *row,
                         const unsigned char *left, const unsigned char *above,
                         const unsigned char *above_left, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char a = left[i], b = above[i], c = above_left[i];
        const unsigned char pa = filter_abs_diff(b, c), pb = filter_abs_diff(a, c),
                            difference = filter_abs_diff(pa, pb);
        const unsigned char same_side = (unsigned char)((b > c) ^ (a > c) ? 0 : 255);
        const unsigned char pc = difference | same_side;
        const unsigned char b_or_c = pb <= pc ? b : c;
        const unsigned char b_c_min = pb <= pc ? pb : pc;
        const unsigned char nearest = pa <= b_c_min ? a : b_or_c;
        dst[i] = (unsigned char)(row[i] - nearest);
    }
}

static void filter_row(gf_png_filter filter, unsigned char *dst, const unsigned char *row,
                       const unsigned char *above, size_t n, size_t bpp) {
    if (filter == GF_PNG_SUB || filter == GF_PNG_UP)
        filter_sub(dst, row, filter == GF_PNG_UP ? above : row - bpp, n);
    else if (filter == GF_PNG_AVERAGE)
        filter_average(dst, row, row - bpp, above, n);
    else if (filter == GF_PNG_PAETH)
        filter_paeth(dst, row, row - bpp, above, above - bpp, n);
    else
        memcpy(dst, row, n);
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

#define TYPE u8
#include "io/strip/count_largest_tmpl.h"
#define TYPE u16
#include "io/strip/count_largest_tmpl.h"

static uint64_t count_largest(const gf_format *format, const void *row) {
    const uint64_t samples = gf_row_samples(format);
    const uint32_t step = gf_has_alpha(format) ? format->channels : 0;
    return format->type == GF_U8 ? count_largest_u8(row, samples, step)
                                 : count_largest_u16(row, samples, step);
}

/* ---- predictors of TIFF ---------------------------------------------------------------------- */

typedef uint16_t loose16 __attribute__((aligned(1), may_alias));
typedef uint32_t loose32 __attribute__((aligned(1), may_alias));

static void difference16(unsigned char *restrict dst, const unsigned char *src, size_t n,
                         size_t channels) {
    const loose16 *in = (const loose16 *)src;
    loose16 *out = (loose16 *)dst;
    memcpy(dst, src, 2 * channels);
    for (size_t i = channels; i < n; i++)
        out[i] = (uint16_t)(in[i] - in[i - channels]);
    gf_copy_order(dst, dst, n, 2, true);
}

static void difference_float(unsigned char *restrict dst, const unsigned char *src, size_t n,
                             size_t channels) {
    const loose32 *in = (const loose32 *)src;
    for (int shift = 24; shift >= 0; shift -= 8, dst += n) {
        for (size_t i = 0; i < channels; i++) {
            const uint32_t before = shift < 24 ? in[n - channels + i] >> shift >> 8 : 0;
            dst[i] = (unsigned char)((in[i] >> shift) - before);
        }
        for (size_t i = channels; i < n; i++)
            dst[i] = (unsigned char)((in[i] >> shift) - (in[i - channels] >> shift));
    }
}

/* ---- unfiltering ----------------------------------------------------------------------------- */

static inline void unfilter_up(unsigned char *restrict out, const unsigned char *restrict in,
                               const unsigned char *restrict above, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(in[i] + above[i]);
}

static void copy_big16(unsigned char *dst, const unsigned char *src, size_t n) {
    gf_copy_order(dst, src, n, 2, false);
}

#ifdef __SSE2__
#include <emmintrin.h>

/* Load n bytes (1..8, a constant) into the low end of a vector. */
GF_INLINE __m128i unfilter_load(const unsigned char *p, size_t n) {
    uint64_t low = 0;
    memcpy(&low, p, n);
    return _mm_cvtsi64_si128((long long)low);
}

GF_INLINE void unfilter_store(unsigned char *p, __m128i x, size_t n) {
    const uint64_t low = (uint64_t)_mm_cvtsi128_si64(x);
    memcpy(p, &low, n);
}

/* Pixels of 3 or 6 bytes are loaded and stored as 4 or 8 bytes within the row. The next pixel
 * overwrites the excess in `out`. */
GF_INLINE size_t unfilter_wide(size_t bpp) {
    return bpp == 3 ? 4 : bpp == 6 ? 8 : bpp;
}

/* Load the pixel before a byte of a row; zeros before the first one. */
GF_INLINE __m128i unfilter_left(const unsigned char *row, size_t from, size_t bpp) {
    return from == 0 ? _mm_setzero_si128() : unfilter_load(row + from - bpp, bpp);
}

/* Return the end of the pixels: the last one may not have the bytes of a wide one. */
GF_INLINE size_t unfilter_sub(unsigned char *out, const unsigned char *in, size_t from, size_t to,
                              size_t bpp) {
    const size_t wide = unfilter_wide(bpp);
    __m128i left = unfilter_left(out, from, bpp);
    size_t i = from;
#ifdef __AVX2__
    /* Process the whole pixels of a vector per iteration. Byte 15 belongs to the next iteration for
     * 3-byte pixels, which overwrites it. */
    const size_t step = 16 / bpp * bpp;
    char indices[16], pixels[16];
    for (size_t j = 0; j < 16; j++) {
        indices[j] = (char)j;
        pixels[j] = (char)(j % bpp);
    }
    const __m128i index = _mm_loadu_si128((const __m128i *)(const void *)indices),
                  pixel = _mm_loadu_si128((const __m128i *)(const void *)pixels),
                  last = _mm_add_epi8(pixel, _mm_set1_epi8((char)(step - bpp)));
    left = _mm_shuffle_epi8(left, pixel);
    for (; i + 16 <= to; i += step) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        /* Negative indices select zeros. */
        for (size_t shift = bpp; shift < 16; shift *= 2)
            x = _mm_add_epi8(x,
                             _mm_shuffle_epi8(x, _mm_sub_epi8(index, _mm_set1_epi8((char)shift))));
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_add_epi8(x, left));
        left = _mm_add_epi8(left, _mm_shuffle_epi8(x, last));
    }
#endif
    for (; i + wide <= to; i += bpp) {
        left = _mm_add_epi8(left, unfilter_load(in + i, wide));
        unfilter_store(out + i, left, wide);
    }
    return i;
}

/* pavgb rounds up. The rounded-up mean of complements is the complement of the rounded-down mean.
 * Keeping the complement of the left pixel leaves two operations per pixel: ~out = ~(in +
 * ~up(~left, ~above)) = up(~left, ~above) - in. */
GF_INLINE size_t unfilter_average(unsigned char *out, const unsigned char *in,
                                  const unsigned char *above, size_t from, size_t to, size_t bpp) {
    const size_t wide = unfilter_wide(bpp);
    const __m128i ones = _mm_set1_epi8(-1);
    __m128i not_left = _mm_xor_si128(unfilter_left(out, from, bpp), ones);
    size_t i = from;
    for (; i + wide <= to; i += bpp) {
        const __m128i not_above = _mm_xor_si128(unfilter_load(above + i, wide), ones);
        not_left = _mm_sub_epi8(_mm_avg_epu8(not_left, not_above), unfilter_load(in + i, wide));
        unfilter_store(out + i, _mm_xor_si128(not_left, ones), wide);
    }
    return i;
}

/* mask ? a : b */
GF_INLINE __m128i unfilter_choose(__m128i mask, __m128i a, __m128i b) {
#if defined(__AVX512VL__)
    /* No blend here: the compiler would use mask registers, which are slow to load. */
    return _mm_ternarylogic_epi32(mask, a, b, 0xca);
#elif defined(__AVX2__)
    return _mm_blendv_epi8(b, a, mask);
#else
    return _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b));
#endif
}

/* Reconstruct a pixel in 16-bit lanes. With low and high the smaller and larger of left and up, and
 * t = 3 upper_left - left - up: the upper left is nearest if low < t < high. Otherwise the nearest
 * is low for t >= high, and high for t <= low. */
GF_INLINE __m128i unfilter_paeth_pixel(__m128i left, __m128i up, __m128i upper_left, __m128i in) {
    const __m128i before =
        _mm_sub_epi16(_mm_add_epi16(_mm_add_epi16(upper_left, upper_left), upper_left), up);
    const __m128i t = _mm_sub_epi16(before, left);
    const __m128i low = _mm_min_epi16(left, up), high = _mm_max_epi16(left, up);
    /* Add `in` to all three candidates before the selection: shorter latency. */
    const __m128i nearest = unfilter_choose(_mm_cmpgt_epi16(high, t), _mm_add_epi8(upper_left, in),
                                            _mm_add_epi8(low, in));
    return unfilter_choose(_mm_cmpgt_epi16(t, low), nearest, _mm_add_epi8(high, in));
}

GF_INLINE size_t unfilter_paeth(unsigned char *out, const unsigned char *in,
                                const unsigned char *above, size_t from, size_t to, size_t bpp) {
    const size_t wide = unfilter_wide(bpp);
    const __m128i zero = _mm_setzero_si128();
    __m128i left = _mm_unpacklo_epi8(unfilter_left(out, from, bpp), zero),
            upper_left = _mm_unpacklo_epi8(unfilter_left(above, from, bpp), zero);
    size_t i = from;
    for (; i + wide <= to; i += bpp) {
        const __m128i here = _mm_unpacklo_epi8(unfilter_load(above + i, wide), zero);
        left = unfilter_paeth_pixel(left, here, upper_left,
                                    _mm_unpacklo_epi8(unfilter_load(in + i, wide), zero));
        upper_left = here;
        unfilter_store(out + i, _mm_packus_epi16(left, left), wide);
    }
    return i;
}

/* ---- several rows at once -------------------------------------------------------------------- */

#ifdef __AVX2__

/* Average and Paeth are limited by the latency from a pixel to the next. Therefore four rows (two
 * for pixels of more than 4 bytes) are reconstructed together, one in each part of a vector, each
 * DELAY pixels behind the row above. A delay of 1 would put the move of a result to the next part
 * into the chain of dependent operations. */
enum { DELAY = 2, MAX_DIAGONAL = 4 };

typedef struct diagonal_rows {
    unsigned char *out[MAX_DIAGONAL];
    const unsigned char *in[MAX_DIAGONAL], *above[MAX_DIAGONAL];
    uint32_t filter[MAX_DIAGONAL];
} diagonal_rows;

GF_INLINE size_t diagonal_count(size_t bpp) {
    return bpp > 4 ? 2 : 4;
}

/* Load a pixel of each row, one behind the other, from[k] + at - k * delay. */
GF_INLINE __m256i diagonal_load(const unsigned char *const from[MAX_DIAGONAL], size_t at,
                                size_t delay, size_t bpp) {
    __m128i low, high;
    if (bpp > 4) {
        low = unfilter_load(from[0] + at, 8);
        high = unfilter_load(from[1] + at - delay, 8);
        return _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(low, high));
    }
    low =
        _mm_unpacklo_epi32(unfilter_load(from[0] + at, 4), unfilter_load(from[1] + at - delay, 4));
    high = _mm_unpacklo_epi32(unfilter_load(from[2] + at - 2 * delay, 4),
                              unfilter_load(from[3] + at - 3 * delay, 4));
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(low, high));
}

GF_INLINE void diagonal_store(unsigned char *const to[MAX_DIAGONAL], size_t at, size_t delay,
                              size_t bpp, __m256i x) {
    const __m256i bytes = _mm256_packus_epi16(x, x);
    const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
    if (bpp > 4) {
        unfilter_store(to[0] + at, low, 8);
        unfilter_store(to[1] + at - delay, high, 8);
        return;
    }
    unfilter_store(to[0] + at, low, 4);
    unfilter_store(to[1] + at - delay, _mm_srli_epi64(low, 32), 4);
    unfilter_store(to[2] + at - 2 * delay, high, 4);
    unfilter_store(to[3] + at - 3 * delay, _mm_srli_epi64(high, 32), 4);
}

/* Move the result of each row to the part of the next row. The first part receives the pixel of the
 * row above all. */
GF_INLINE __m256i diagonal_next_up(__m256i result, const unsigned char *above, size_t bpp) {
    const __m256i first =
        _mm256_castsi128_si256(_mm_cvtepu8_epi16(unfilter_load(above, bpp > 4 ? 8 : 4)));
    return bpp > 4 ? _mm256_permute2x128_si256(first, result, 0x20)
                   : _mm256_blend_epi32(_mm256_permute4x64_epi64(result, 0x90), first, 3);
}

/* Return a mask of the rows whose filter is in the set. */
GF_INLINE __m256i diagonal_mask(const diagonal_rows *rows, size_t bpp, uint32_t set) {
    int32_t lanes[8];
    for (size_t i = 0; i < 8; i++)
        lanes[i] = (set >> rows->filter[i * diagonal_count(bpp) / 8] & 1) != 0 ? -1 : 0;
    return _mm256_loadu_si256((const __m256i *)(const void *)lanes);
}

GF_INLINE __m256i diagonal_choose(__m256i mask, __m256i a, __m256i b) {
#if defined(__AVX512VL__)
    return _mm256_ternarylogic_epi32(mask, a, b, 0xca);
#else
    return _mm256_blendv_epi8(b, a, mask);
#endif
}

/* As unfilter_paeth_pixel. */
GF_INLINE __m256i diagonal_paeth(__m256i left, __m256i up, __m256i upper_left, __m256i in) {
    const __m256i before = _mm256_sub_epi16(
        _mm256_add_epi16(_mm256_add_epi16(upper_left, upper_left), upper_left), up);
    const __m256i t = _mm256_sub_epi16(before, left);
    const __m256i low = _mm256_min_epi16(left, up), high = _mm256_max_epi16(left, up);
    const __m256i nearest = diagonal_choose(
        _mm256_cmpgt_epi16(high, t), _mm256_add_epi8(upper_left, in), _mm256_add_epi8(low, in));
    return diagonal_choose(_mm256_cmpgt_epi16(t, low), nearest, _mm256_add_epi8(high, in));
}

/* Reconstruct bytes [from, to) of rows. mixed: not all filters are Paeth. Paeth with some
 * neighbours set to zero is None, Sub or Up. */
GF_INLINE void diagonal(const diagonal_rows *rows, size_t from, size_t to, size_t bpp, bool mixed) {
    enum { AVERAGE = 1 << GF_PNG_AVERAGE, PAETH = 1 << GF_PNG_PAETH, UP = 1 << GF_PNG_UP };
    const size_t count = diagonal_count(bpp), delay = DELAY * bpp, wide = bpp > 4 ? 8 : 4;
    const __m256i uses_left = diagonal_mask(rows, bpp, 1 << GF_PNG_SUB | AVERAGE | PAETH),
                  uses_up = diagonal_mask(rows, bpp, UP | AVERAGE | PAETH),
                  uses_both = diagonal_mask(rows, bpp, PAETH),
                  averages = diagonal_mask(rows, bpp, AVERAGE);
    /* At the start of a row, the last one has no pixel yet: its neighbours to the left are zero. */
    unsigned char zeros[8] = {0};
    const unsigned char *left_of[MAX_DIAGONAL], *above_left_of[MAX_DIAGONAL];
    size_t at = from + (count - 1) * delay;
    for (size_t k = 0; k < count; k++) {
        const bool start = at - k * delay == 0;
        left_of[k] = start ? zeros : rows->out[k] - bpp;
        above_left_of[k] = start ? zeros : rows->above[k] - bpp;
        gf_png_unfilter_golden(rows->out[k], rows->in[k], rows->above[k], from, at - k * delay,
                               (uint32_t)bpp, rows->filter[k]);
    }
    __m256i left = diagonal_load(left_of, at, delay, bpp),
            upper_left = diagonal_load(above_left_of, at, delay, bpp),
            up = diagonal_load(rows->above, at, delay, bpp),
            next_up = diagonal_load(rows->above, at + bpp, delay, bpp);
    for (; at + (DELAY + 1) * bpp + wide <= to; at += bpp) {
        const __m256i in = diagonal_load(rows->in, at, delay, bpp);
        __m256i result;
        if (mixed) {
            const __m256i l = _mm256_and_si256(left, uses_left), u = _mm256_and_si256(up, uses_up);
            const __m256i mean = _mm256_srli_epi16(_mm256_add_epi16(l, u), 1);
            result = diagonal_paeth(l, u, _mm256_and_si256(upper_left, uses_both), in);
            result = diagonal_choose(averages, _mm256_add_epi8(mean, in), result);
        } else {
            result = diagonal_paeth(left, up, upper_left, in);
        }
        diagonal_store(rows->out, at, delay, bpp, result);
        upper_left = up;
        left = result;
        up = next_up;
        next_up = diagonal_next_up(result, rows->above[0] + at + DELAY * bpp, bpp);
    }
    for (size_t k = 0; k < count; k++)
        gf_png_unfilter_golden(rows->out[k], rows->in[k], rows->above[k], at - k * delay, to,
                               (uint32_t)bpp, rows->filter[k]);
}

#endif

#endif /* __SSE2__ */

/* ---- NEON ------------------------------------------------------------------------------------ */

#ifdef GF_NEON

/* Load n bytes (1..8, a constant). */
GF_INLINE uint8x8_t unfilter_load(const unsigned char *p, size_t n) {
    uint64_t bytes = 0;
    memcpy(&bytes, p, n);
    return vcreate_u8(bytes);
}

GF_INLINE void unfilter_store(unsigned char *p, uint8x8_t x, size_t n) {
    const uint64_t bytes = vget_lane_u64(vreinterpret_u64_u8(x), 0);
    memcpy(p, &bytes, n);
}

/* As with SSE2: pixels of 3 or 6 bytes are loaded and stored as 4 or 8 bytes. */
GF_INLINE size_t unfilter_wide(size_t bpp) {
    return bpp == 3 ? 4 : bpp == 6 ? 8 : bpp;
}

GF_INLINE uint8x8_t unfilter_left(const unsigned char *row, size_t from, size_t bpp) {
    return from == 0 ? vdup_n_u8(0) : unfilter_load(row + from - bpp, bpp);
}

/* Process the whole pixels of a vector per iteration, as with AVX2. */
GF_INLINE size_t unfilter_sub(unsigned char *out, const unsigned char *in, size_t from, size_t to,
                              size_t bpp) {
    const size_t wide = unfilter_wide(bpp), step = 16 / bpp * bpp;
    uint8_t indices[16], pixels[16];
    for (size_t j = 0; j < 16; j++) {
        indices[j] = (uint8_t)j;
        pixels[j] = (uint8_t)(j % bpp);
    }
    const uint8x16_t index = vld1q_u8(indices), pixel = vld1q_u8(pixels),
                     last = vaddq_u8(pixel, vdupq_n_u8((uint8_t)(step - bpp)));
    const uint8x8_t before = unfilter_left(out, from, bpp);
    uint8x16_t left = vqtbl1q_u8(vcombine_u8(before, before), pixel);
    size_t i = from;
    for (; i + 16 <= to; i += step) {
        uint8x16_t x = vld1q_u8(in + i);
        /* Indices below 0 select zeros. */
        for (size_t shift = bpp; shift < 16; shift *= 2)
            x = vaddq_u8(x, vqtbl1q_u8(x, vsubq_u8(index, vdupq_n_u8((uint8_t)shift))));
        vst1q_u8(out + i, vaddq_u8(x, left));
        left = vaddq_u8(left, vqtbl1q_u8(x, last));
    }
    uint8x8_t one = vget_low_u8(left);
    for (; i + wide <= to; i += bpp) {
        one = vadd_u8(one, unfilter_load(in + i, wide));
        unfilter_store(out + i, one, wide);
    }
    return i;
}

GF_INLINE size_t unfilter_average(unsigned char *out, const unsigned char *in,
                                  const unsigned char *above, size_t from, size_t to, size_t bpp) {
    const size_t wide = unfilter_wide(bpp);
    uint8x8_t left = unfilter_left(out, from, bpp);
    size_t i = from;
    for (; i + wide <= to; i += bpp) {
        left = vadd_u8(vhadd_u8(left, unfilter_load(above + i, wide)), unfilter_load(in + i, wide));
        unfilter_store(out + i, left, wide);
    }
    return i;
}

/* Select as unfilter_paeth_pixel of SSE2, and add the bytes of `in`. */
GF_INLINE int16x8_t unfilter_paeth_pixel(int16x8_t left, int16x8_t up, int16x8_t upper_left,
                                         uint8x8_t in) {
    const int16x8_t before =
        vsubq_s16(vaddq_s16(vaddq_s16(upper_left, upper_left), upper_left), up);
    const int16x8_t t = vsubq_s16(before, left);
    const int16x8_t low = vminq_s16(left, up), high = vmaxq_s16(left, up);
    const int16x8_t nearest = vbslq_s16(vcgtq_s16(high, t), upper_left, low);
    const int16x8_t chosen = vbslq_s16(vcgtq_s16(t, low), nearest, high);
    const uint8x16_t bytes = vreinterpretq_u8_s16(chosen);
    return vreinterpretq_s16_u8(vaddq_u8(bytes, vreinterpretq_u8_u16(vmovl_u8(in))));
}

GF_INLINE int16x8_t unfilter_widen(uint8x8_t x) {
    return vreinterpretq_s16_u16(vmovl_u8(x));
}

GF_INLINE size_t unfilter_paeth(unsigned char *out, const unsigned char *in,
                                const unsigned char *above, size_t from, size_t to, size_t bpp) {
    const size_t wide = unfilter_wide(bpp);
    int16x8_t left = unfilter_widen(unfilter_left(out, from, bpp)),
              upper_left = unfilter_widen(unfilter_left(above, from, bpp));
    size_t i = from;
    for (; i + wide <= to; i += bpp) {
        const int16x8_t here = unfilter_widen(unfilter_load(above + i, wide));
        left = unfilter_paeth_pixel(left, here, upper_left, unfilter_load(in + i, wide));
        upper_left = here;
        unfilter_store(out + i, vmovn_u16(vreinterpretq_u16_s16(left)), wide);
    }
    return i;
}

#endif

/* ---- dispatch by pixel size ------------------------------------------------------------------ */

#if defined(__SSE2__) || defined(GF_NEON)

GF_INLINE void unfilter_span(unsigned char *out, const unsigned char *in,
                             const unsigned char *above, size_t from, size_t to, size_t bpp,
                             uint32_t filter) {
    const size_t end = filter == GF_PNG_SUB       ? unfilter_sub(out, in, from, to, bpp)
                       : filter == GF_PNG_AVERAGE ? unfilter_average(out, in, above, from, to, bpp)
                                                  : unfilter_paeth(out, in, above, from, to, bpp);
    gf_png_unfilter_golden(out, in, above, end, to, (uint32_t)bpp, filter);
}

static void unfilter_pixels(unsigned char *out, const unsigned char *in, const unsigned char *above,
                            size_t from, size_t to, uint32_t bpp, uint32_t filter) {
    bpp == 1   ? unfilter_span(out, in, above, from, to, 1, filter)
    : bpp == 2 ? unfilter_span(out, in, above, from, to, 2, filter)
    : bpp == 3 ? unfilter_span(out, in, above, from, to, 3, filter)
    : bpp == 4 ? unfilter_span(out, in, above, from, to, 4, filter)
    : bpp == 6 ? unfilter_span(out, in, above, from, to, 6, filter)
               : unfilter_span(out, in, above, from, to, 8, filter);
}

#ifdef __AVX2__
/* Reconstruct the next rows together. Return their number; 0 if it is faster to take one row.
 * Measured per row, in units of an Average row: Paeth 3, others 0.1, four rows together 3.4 to 4.4.
 */
static uint64_t unfilter_together(unsigned char *out, size_t out_stride, const unsigned char *in,
                                  size_t in_stride, const unsigned char *above, size_t from,
                                  size_t to, uint32_t bpp, uint64_t left) {
    const size_t count = diagonal_count(bpp);
    diagonal_rows rows;
    uint32_t cost = 0, paeth = 0;
    if (left < count || to - from < 16 * (size_t)bpp || *in < GF_PNG_AVERAGE)
        return 0;
    for (size_t k = 0; k < count; k++) {
        rows.filter[k] = in[k * in_stride];
        rows.in[k] = in + k * in_stride + 1;
        rows.out[k] = out + k * out_stride;
        rows.above[k] = k == 0 ? above : rows.out[k - 1];
        cost += rows.filter[k] == GF_PNG_PAETH ? 3 : rows.filter[k] == GF_PNG_AVERAGE;
        paeth += rows.filter[k] == GF_PNG_PAETH;
    }
    if (cost < 5)
        return 0;
    bpp == 1   ? diagonal(&rows, from, to, 1, paeth != count)
    : bpp == 2 ? diagonal(&rows, from, to, 2, paeth != count)
    : bpp == 3 ? diagonal(&rows, from, to, 3, paeth != count)
    : bpp == 4 ? diagonal(&rows, from, to, 4, paeth != count)
    : bpp == 6 ? diagonal(&rows, from, to, 6, paeth != count)
               : diagonal(&rows, from, to, 8, paeth != count);
    return count;
}
#endif

#else /* filters that depend on the left pixel use scalar code */
#define unfilter_pixels gf_png_unfilter_golden
#endif

static void unfilter_row(unsigned char *out, const unsigned char *in, const unsigned char *above,
                         size_t from, size_t to, uint32_t bpp, uint32_t filter) {
    if (filter == GF_PNG_NONE)
        memcpy(out + from, in + from, to - from);
    else if (filter == GF_PNG_UP)
        unfilter_up(out + from, in + from, above + from, to - from);
    else
        unfilter_pixels(out, in, above, from, to, bpp, filter);
}

static void unfilter_rows(unsigned char *out, size_t out_stride, const unsigned char *in,
                          size_t in_stride, const unsigned char *above, size_t from, size_t to,
                          uint32_t bpp, uint64_t rows) {
    while (rows) {
        uint64_t taken = 0;
#ifdef __AVX2__
        taken = unfilter_together(out, out_stride, in, in_stride, above, from, to, bpp, rows);
#endif
        if (!taken)
            unfilter_row(out, in + 1, above, from, to, bpp, *in);
        taken += !taken;
        above = out + (taken - 1) * out_stride;
        out += taken * out_stride;
        in += taken * in_stride;
        rows -= taken;
    }
}

const gf_png_simd GF_SIMD_NAME(gf_png_simd) = {filter_row,       unfilter_row,    unfilter_rows,
                                               filter_magnitude, copy_big16,      count_largest,
                                               difference16,     difference_float};
