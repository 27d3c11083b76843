/* The integer loops of smooth for one SIMD level. */
#include "smooth/smooth_u8_simd.h"

#include "vec.h"

/* Outputs i + j are in doubt, for each bit j. */
static void note(gf_smooth_doubts *doubts, size_t i, uint64_t which) {
    for (; which; which &= which - 1)
        doubts->at[doubts->count++] = (uint16_t)(i + (size_t)__builtin_ctzll(which));
}

/* A doubt in units of 2^-16, and 2 for what a sum of this size loses by rounding and by being cut.
 */
static int32_t fixed_width(float doubt) {
    return (int32_t)(doubt * 65536) + 1 + 2;
}

/* ---- seven taps ------------------------------------------------------------------------------ */

#if VEC_FLOATS >= 8

#if VEC_FLOATS == 16
typedef __m512i ints;
#define OP(name) _mm512_##name
#define ZERO _mm512_setzero_si512()
static inline ints load(const uint8_t *p) {
    return _mm512_loadu_si512(p);
}
static inline void store(uint8_t *p, ints x) {
    _mm512_storeu_si512(p, x);
}
static inline bool any_less(ints x, ints limit) {
    return _mm512_cmplt_epi16_mask(x, limit) != 0;
}
static inline uint64_t all_less(ints lo, ints hi, ints limit) {
    const ints l = _mm512_movm_epi16(_mm512_cmplt_epi16_mask(lo, limit));
    const ints h = _mm512_movm_epi16(_mm512_cmplt_epi16_mask(hi, limit));
    return _mm512_movepi8_mask(_mm512_packs_epi16(l, h));
}
#else
typedef __m256i ints;
#define OP(name) _mm256_##name
#define ZERO _mm256_setzero_si256()
static inline ints load(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
static inline void store(uint8_t *p, ints x) {
    _mm256_storeu_si256((__m256i *)p, x);
}
static inline bool any_less(ints x, ints limit) {
    return _mm256_movemask_epi8(_mm256_cmpgt_epi16(limit, x)) != 0;
}
static inline uint64_t all_less(ints lo, ints hi, ints limit) {
    const ints l = _mm256_cmpgt_epi16(limit, lo), h = _mm256_cmpgt_epi16(limit, hi);
    return (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(l, h));
}
#endif

#define BYTES (4 * VEC_FLOATS)

static inline ints set16(unsigned x) {
    return OP(set1_epi16)((short)x);
}

/* Products of two vectors of samples with two taps, added, in the 16-bit lanes of one half: in an
 * order that packus undoes. */
#define PAIR(half, a, b, taps) OP(maddubs_epi16)(OP(unpack##half##_epi8)(a, b), taps)
#define SUM(half)                                                                                  \
    OP(add_epi16)                                                                                  \
    (OP(add_epi16)(PAIR(half, a, b, taps[0]), PAIR(half, c, d, taps[1])),                          \
     OP(add_epi16)(PAIR(half, e, f, taps[2]), PAIR(half, g, ZERO, taps[3])))

static inline __attribute__((always_inline)) ints halved(ints x, ints factor) {
    /* mulhrs by 2^10: (x + 16) >> 5 */
    return OP(mulhrs_epi16)(OP(mulhi_epu16)(x, factor), set16(1 << 10));
}

/* What is in a unit of 2^-16 of a value, moved up by a half and the doubt: its upper 16 bits are
 * the rounded value, and the lower ones are less than twice the doubt where it is in doubt. */
typedef struct gf_scaling {
    vec scale, up;
} gf_scaling;

static inline __attribute__((always_inline)) ints scaled(ints dwords, const gf_scaling *by) {
    const vec x = OP(cvtepi32_ps)(dwords);
    return (ints)vec_truncate(vec_multiply_add(x, by->scale, by->up));
}

/* The values of a half, and what decides on doubt, less than a limit: the lower bits, moved down
 * for a signed comparison. */
static inline __attribute__((always_inline)) ints rounded(ints sums, const gf_scaling *by,
                                                          ints *rest) {
    const ints a = scaled(OP(unpacklo_epi16)(sums, ZERO), by);
    const ints b = scaled(OP(unpackhi_epi16)(sums, ZERO), by);
    const ints low = OP(set1_epi32)(0xffff);
    *rest = OP(add_epi16)(OP(packus_epi32)((a & low), (b & low)), set16(0x8000));
    return OP(packus_epi32)(OP(srli_epi32)(a, 16), OP(srli_epi32)(b, 16));
}

/* Outputs [from, to) in whole vectors. */
static inline __attribute__((always_inline)) void seven_by(uint8_t *dst, const uint8_t *first,
                                                           ptrdiff_t step, size_t from, size_t to,
                                                           const gf_smooth_seven *by,
                                                           bool in_16_bits, gf_smooth_ahead ahead,
                                                           gf_smooth_doubts *doubts) {
    ints taps[4];
    ptrdiff_t at[7];
    for (int k = 0; k < 4; k++)
        taps[k] = set16(by->tap[2 * k] | (unsigned)by->tap[2 * k + 1] << 8);
    for (unsigned k = 0; k < 7; k++)
        at[k] = (ptrdiff_t)(k < by->last ? k : by->last) * step;
    const ints factor = set16(by->factor), tie = set16(by->tie);
    const int width = fixed_width(by->doubt);
    const gf_scaling scaling = {vec_set(65536 * by->scale), vec_set((float)(32768 + width))};
    const ints below = OP(set1_epi16)(in_16_bits ? by->tie_below : (short)(2 * width - 32768));
    for (size_t i = from; i < to && doubts->count <= doubts->enough; i += BYTES) {
        const uint8_t *p = first + i;
        __builtin_prefetch(p + ahead.read);
        __builtin_prefetch(dst + i + ahead.write, 1);
        const ints a = load(p), b = load(p + at[1]), c = load(p + at[2]), d = load(p + at[3]);
        const ints e = load(p + at[4]), f = load(p + at[5]), g = load(p + at[6]);
        const ints lo = SUM(lo), hi = SUM(hi);
        ints s, t;
        if (in_16_bits) {
            store(dst + i, OP(packus_epi16)(halved(lo, factor), halved(hi, factor)));
            s = OP(mullo_epi16)(lo, tie);
            t = OP(mullo_epi16)(hi, tie);
        } else {
            const ints x = rounded(lo, &scaling, &s), y = rounded(hi, &scaling, &t);
            store(dst + i, OP(packus_epi16)(x, y));
        }
        if (__builtin_expect(any_less(OP(min_epi16)(s, t), below), 0))
            note(doubts, i, all_less(s, t, below));
    }
}

static void seven_vectors(uint8_t *dst, const uint8_t *first, ptrdiff_t step, size_t from,
                          size_t to, const gf_smooth_seven *by, gf_smooth_ahead ahead,
                          gf_smooth_doubts *doubts) {
    if (by->factor)
        seven_by(dst, first, step, from, to, by, true, ahead, doubts);
    else
        seven_by(dst, first, step, from, to, by, false, ahead, doubts);
}

/* Fewer than a vector: through the stack. */
static void seven_few(uint8_t *dst, const uint8_t *first, ptrdiff_t step, size_t n,
                      const gf_smooth_seven *by, gf_smooth_doubts *doubts) {
    uint8_t in[7][BYTES] = {{0}}, out[BYTES];
    for (unsigned k = 0; k <= by->last; k++)
        memcpy(in[k], first + (ptrdiff_t)k * step, n);
    seven_vectors(out, in[0], BYTES, 0, BYTES, by, (gf_smooth_ahead){0}, doubts);
    memcpy(dst, out, n);
    size_t kept = 0;
    for (size_t i = 0; i < doubts->count; i++)
        if (doubts->at[i] < n)
            doubts->at[kept++] = doubts->at[i];
    doubts->count = kept;
}

/* The vectors between begin on their boundary, so that no store touches two cache lines; the first
 * and the last one overlap them. */
static void seven(uint8_t *dst, const uint8_t *first, ptrdiff_t step, size_t n,
                  const gf_smooth_seven *by, gf_smooth_ahead ahead, gf_smooth_doubts *doubts) {
    if (n < BYTES) {
        seven_few(dst, first, step, n, by, doubts);
        return;
    }
    const size_t head = -(uintptr_t)dst % BYTES, tail = (n - head) % BYTES;
    if (head)
        seven_vectors(dst, first, step, 0, BYTES, by, ahead, doubts);
    seven_vectors(dst, first, step, head, n - tail, by, ahead, doubts);
    if (tail)
        seven_vectors(dst, first, step, n - BYTES, n, by, ahead, doubts);
}

#else

/* For the compiler to make vectors of. */
static void seven(uint8_t *restrict dst, const uint8_t *restrict first, ptrdiff_t step, size_t n,
                  const gf_smooth_seven *by, gf_smooth_ahead ahead,
                  gf_smooth_doubts *restrict doubts) {
    (void)ahead;
    uint16_t w[7], sums[64];
    for (int k = 0; k < 7; k++)
        w[k] = by->tap[k];
    const uint16_t factor = by->factor, tie = by->tie;
    const int16_t below = by->tie_below;
    for (size_t i = 0; i < n && doubts->count <= doubts->enough; i += 64) {
        const size_t count = n - i < 64 ? n - i : 64;
        int16_t least = INT16_MAX;
        for (size_t j = 0; j < count; j++) {
            const uint8_t *p = first + i + j;
            const uint16_t sum =
                (uint16_t)(p[0] * w[0] + p[step] * w[1] + p[2 * step] * w[2] + p[3 * step] * w[3] +
                           p[4 * step] * w[4] + p[5 * step] * w[5] + p[6 * step] * w[6]);
            const uint16_t high = (uint16_t)(sum * (uint32_t)factor >> 16);
            const int16_t value = (int16_t)((uint16_t)(high + 16) >> 5);
            const int16_t hash = (int16_t)(uint16_t)(sum * (uint32_t)tie);
            sums[j] = sum;
            least = hash < least ? hash : least;
            dst[i + j] = (uint8_t)(value < 255 ? value : 255);
        }
        for (size_t j = 0; least < below && j < count; j++)
            if ((int16_t)(uint16_t)(sums[j] * (uint32_t)tie) < below)
                note(doubts, i + j, 1);
    }
}

#endif

/* ---- sums of equal taps ---------------------------------------------------------------------- */

/* 16-bit lanes in scratch: loops run in whole vectors, past n into padding. */
typedef uint16_t words __attribute__((vector_size(4 * VEC_FLOATS)));
#define WORDS (2 * VEC_FLOATS)

static inline words load_words(const uint16_t *p) {
    words x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void store_words(uint16_t *p, words x) {
    memcpy(p, &x, sizeof x);
}

/* sums[i] += sums[i + by], ascending: what is ahead is still what it was. */
static void add_ahead(uint16_t *sums, size_t by, size_t n) {
    for (size_t i = 0; i < n; i += WORDS)
        store_words(sums + i, load_words(sums + i) + load_words(sums + i + by));
}

static void add_samples(uint16_t *restrict sums, const uint8_t *restrict samples, size_t n) {
    for (size_t i = 0; i < n; i++)
        sums[i] = (uint16_t)(sums[i] + samples[i]);
}

/* Sums of h samples become those of 2h or 2h + 1: the binary digits of `taps`, from the second. */
static void along(uint16_t *restrict sums, const uint8_t *restrict first, size_t step,
                  unsigned taps, size_t n) {
    const size_t all = n + (taps - 1) * step;
    for (size_t i = 0; i < all; i++)
        sums[i] = first[i];
    unsigned digit = 1, have = 1;
    while (2 * digit <= taps)
        digit *= 2;
    while ((digit /= 2)) {
        add_ahead(sums, have * step, n + (taps - 2 * have) * step);
        have *= 2;
        if (taps & digit) {
            add_samples(sums, first + have * step, n + (taps - have - 1) * step);
            have++;
        }
    }
}

static void slide(uint16_t *restrict to, const uint16_t *restrict from, const uint8_t *restrict in,
                  const uint8_t *restrict out, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = (uint16_t)(from[i] + in[i] - out[i]);
}

/* ---- sums to samples ------------------------------------------------------------------------- */

static inline words set_words(uint16_t x) {
    return (words){0} + x;
}

/* Values are in units of 2^-16, moved up by a half and the doubt: the upper 16 bits are the rounded
 * value, and the lower are less than twice the doubt where it is in doubt. */
typedef struct gf_fixed {
    words p, q;
    vec near, next, up;
    vec_i32 limit;
} gf_fixed;

/* The values of WORDS outputs, in two vectors. */
static inline __attribute__((always_inline)) void values(const gf_fixed *by, bool one_sum,
                                                         const uint16_t *before,
                                                         const uint16_t *here,
                                                         const uint16_t *after, vec_i32 x[2]) {
    uint16_t sum[WORDS];
    const words two = load_words(before) + load_words(here);
    store_words(sum, one_sum ? two * by->p + load_words(after) * by->q : two);
    for (int i = 0; i < 2; i++) {
        const vec other =
            one_sum ? by->up
                    : vec_multiply_add(vec_load_u16(after + i * VEC_FLOATS), by->next, by->up);
        x[i] = vec_truncate(vec_multiply_add(vec_load_u16(sum + i * VEC_FLOATS), by->near, other));
    }
}

static inline __attribute__((always_inline)) void round_by(uint8_t *dst, const uint16_t *before,
                                                           const uint16_t *here,
                                                           const uint16_t *after, size_t n,
                                                           const gf_fixed *by, bool one_sum,
                                                           gf_smooth_doubts *doubts) {
    uint8_t some[WORDS] = {0};
    for (size_t i = 0; i < n && doubts->count <= doubts->enough; i += WORDS) {
        vec_i32 x[2];
        values(by, one_sum, before + i, here + i, after + i, x);
        uint64_t in_doubt = vec_less(x[0] & 0xffff, by->limit) |
                            (uint64_t)vec_less(x[1] & 0xffff, by->limit) << VEC_FLOATS;
        uint8_t *to = n - i < WORDS ? some : dst + i;
        vec_store_u8_int(to, x[0] >> 16);
        vec_store_u8_int(to + VEC_FLOATS, x[1] >> 16);
        if (n - i < WORDS) {
            memcpy(dst + i, some, n - i);
            in_doubt &= (UINT64_C(1) << (n - i)) - 1;
        }
        if (__builtin_expect(in_doubt != 0, 0))
            note(doubts, i, in_doubt);
    }
}

static void round_sums(uint8_t *dst, const uint16_t *before, const uint16_t *here,
                       const uint16_t *after, size_t n, const gf_smooth_weights *weights,
                       gf_smooth_doubts *doubts) {
    const int32_t width = fixed_width(weights->doubt);
    const gf_fixed by = {.p = set_words(weights->p),
                         .q = set_words(weights->q),
                         .near = vec_set(65536 * (weights->p ? weights->scale : weights->near)),
                         .next = vec_set(65536 * weights->next),
                         .up = vec_set((float)(32768 + width)),
                         .limit = (vec_i32){0} + 2 * width};
    if (weights->p)
        round_by(dst, before, here, after, n, &by, true, doubts);
    else
        round_by(dst, before, here, after, n, &by, false, doubts);
}

const gf_smooth_u8_simd GF_SIMD_NAME(gf_smooth_u8_simd) = {
    .seven_scales = VEC_FLOATS >= 8,
    .seven = seven,
    .along = along,
    .add = add_samples,
    .slide = slide,
    .round = round_sums,
};
