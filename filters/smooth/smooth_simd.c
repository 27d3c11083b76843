/* The vector loops of smooth for one SIMD level. */
#include "smooth/smooth_simd.h"
#include "core/vec.h"
#include "smooth/smooth_u8.h"

/* Loops over scratch run in whole vectors, past n into padding. Loops that touch an image hand its
 * last, partial vector through a buffer on the stack. */

#define DEFINE_LOAD(name, type, vec_load_type)                                                     \
    static void name(float *dst, const void *src, size_t n, float gain) {                          \
        const type *p = src;                                                                       \
        const vec g = vec_set(gain);                                                               \
        size_t i = 0;                                                                              \
        for (; i + VEC_FLOATS <= n; i += VEC_FLOATS) {                                             \
            vec_store(dst + i, vec_load_type(p + i) * g);                                          \
        }                                                                                          \
        if (i < n) {                                                                               \
            type tail[VEC_FLOATS] = {0};                                                           \
            memcpy(tail, p + i, (n - i) * sizeof(type));                                           \
            vec_store(dst + i, vec_load_type(tail) * g);                                           \
        }                                                                                          \
    }

DEFINE_LOAD(load_u8, uint8_t, vec_load_u8)
DEFINE_LOAD(load_u16, uint16_t, vec_load_u16)
DEFINE_LOAD(load_f32, float, vec_load)

/* Where the samples lie that a mean is made of: rows, or one row that is read at every step. */
typedef struct gf_samples {
    const float *const *rows; /* NULL: one row */
    const float *row;
    size_t step;
} gf_samples;

static inline __attribute__((always_inline)) const float *sample(const gf_samples *from,
                                                                 unsigned k) {
    return from->rows ? from->rows[k] : from->row + k * from->step;
}

/* `taps` is a constant in the common instances, so that their sums are straight-line code. */
static inline __attribute__((always_inline)) void blur_taps(float *dst, const gf_samples *from,
                                                            unsigned taps, bool odd, size_t n,
                                                            gf_smooth_soon soon) {
    const vec divisor = vec_set((float)taps), inverse = vec_set(1 / (float)taps);
#define QUOTIENT(s) (odd ? vec_over_odd(s, divisor, inverse) : (s) / divisor)
    size_t i = 0;
    /* One sum waits for itself at every tap: four take hardly longer than one. */
    for (; i + VEC_FLOATS < n; i += 4 * VEC_FLOATS) {
        for (size_t line = 0; line < 4 * VEC_FLOATS * soon.bytes; line += 64) {
            __builtin_prefetch(soon.read + i * soon.bytes + line);
            __builtin_prefetch(soon.write + i * soon.bytes + line, 1);
        }
        const float *p = sample(from, 0) + i;
        vec s0 = vec_load(p), s1 = vec_load(p + VEC_FLOATS);
        vec s2 = vec_load(p + 2 * VEC_FLOATS), s3 = vec_load(p + 3 * VEC_FLOATS);
        for (unsigned k = 1; k < taps; k++) {
            p = sample(from, k) + i;
            s0 += vec_load(p);
            s1 += vec_load(p + VEC_FLOATS);
            s2 += vec_load(p + 2 * VEC_FLOATS);
            s3 += vec_load(p + 3 * VEC_FLOATS);
        }
        vec_store(dst + i, QUOTIENT(s0));
        vec_store(dst + i + VEC_FLOATS, QUOTIENT(s1));
        vec_store(dst + i + 2 * VEC_FLOATS, QUOTIENT(s2));
        vec_store(dst + i + 3 * VEC_FLOATS, QUOTIENT(s3));
    }
    for (; i < n; i += VEC_FLOATS) {
        vec s = vec_load(sample(from, 0) + i);
        for (unsigned k = 1; k < taps; k++)
            s += vec_load(sample(from, k) + i);
        vec_store(dst + i, QUOTIENT(s));
    }
#undef QUOTIENT
}

static inline __attribute__((always_inline)) void blur_from(float *dst, const gf_samples *from,
                                                            unsigned taps, size_t n,
                                                            gf_smooth_soon soon) {
    if (taps == 3)
        blur_taps(dst, from, 3, true, n, soon);
    else if (taps == 5)
        blur_taps(dst, from, 5, true, n, soon);
    else if (taps == 7)
        blur_taps(dst, from, 7, true, n, soon);
    else if (taps % 2)
        blur_taps(dst, from, taps, true, n, soon);
    else
        blur_taps(dst, from, taps, false, n, soon);
}

static void blur(float *dst, const float *src, size_t step, unsigned taps, size_t n,
                 gf_smooth_soon soon) {
    const gf_samples from = {NULL, src, step};
    blur_from(dst, &from, taps, n, soon);
}

static void blur_rows(float *dst, const float *const *rows, unsigned taps, size_t n,
                      gf_smooth_soon soon) {
    const gf_samples from = {rows, NULL, 0};
    blur_from(dst, &from, taps, n, soon);
}

static inline __attribute__((always_inline)) vec smoothed(const float *prev, const float *mid,
                                                          const float *next, size_t i, vec w,
                                                          vec factor) {
    vec t = vec_load(mid + i);
    if (prev)
        t = (t + vec_load(prev + i)) * w;
    if (next)
        t = (t + vec_load(next + i)) * w;
    return t * factor;
}

/* Whole vectors begin on their boundary, so that none of them touches two cache lines; what is
 * before and behind goes through the stack. Inlined again for the common case, in which both
 * neighbours are there. */
#define DEFINE_FINISH(name, type, vec_store_type)                                                  \
    static inline __attribute__((always_inline)) void name##_where(                                \
        type *dst, const float *prev, const float *mid, const float *next, size_t n, vec w,        \
        vec factor) {                                                                              \
        const size_t off = (uintptr_t)dst / sizeof(type) % VEC_FLOATS;                             \
        size_t i, count = off ? VEC_FLOATS - off : 0;                                              \
        type some[VEC_FLOATS];                                                                     \
        if (count) {                                                                               \
            count = count < n ? count : n;                                                         \
            vec_store_type(some, smoothed(prev, mid, next, 0, w, factor));                         \
            memcpy(dst, some, count * sizeof(type));                                               \
        }                                                                                          \
        for (i = count; i + VEC_FLOATS <= n; i += VEC_FLOATS)                                      \
            vec_store_type(dst + i, smoothed(prev, mid, next, i, w, factor));                      \
        if (i < n) {                                                                               \
            vec_store_type(some, smoothed(prev, mid, next, i, w, factor));                         \
            memcpy(dst + i, some, (n - i) * sizeof(type));                                         \
        }                                                                                          \
    }                                                                                              \
    static void name(void *dst, const float *prev, const float *mid, const float *next, size_t n,  \
                     float w, float factor) {                                                      \
        if (prev && next)                                                                          \
            name##_where(dst, prev, mid, next, n, vec_set(w), vec_set(factor));                    \
        else if (prev)                                                                             \
            name##_where(dst, prev, mid, NULL, n, vec_set(w), vec_set(factor));                    \
        else if (next)                                                                             \
            name##_where(dst, NULL, mid, next, n, vec_set(w), vec_set(factor));                    \
        else                                                                                       \
            name##_where(dst, NULL, mid, NULL, n, vec_set(w), vec_set(factor));                    \
    }

DEFINE_FINISH(finish_u8, uint8_t, vec_store_u8)
DEFINE_FINISH(finish_u16, uint16_t, vec_store_u16)
DEFINE_FINISH(finish_f32, float, vec_store_canonical)

/* Read and written as 64-bit words; the compiler makes vectors of them. */
static void blend(unsigned char *restrict dst, const unsigned char *restrict src, size_t n,
                  const unsigned char mask[64]) {
    uint64_t keep[8], old[8], new[8];
    memcpy(keep, mask, sizeof keep);
    size_t i = 0;
    for (; n - i >= 64; i += 64) {
        memcpy(old, dst + i, sizeof old);
        memcpy(new, src + i, sizeof new);
        for (size_t j = 0; j < 8; j++)
            old[j] = (old[j] & ~keep[j]) | (new[j] & keep[j]);
        memcpy(dst + i, old, sizeof old);
    }
    for (size_t j = 0; i + j < n; j++)
        if (mask[j])
            dst[i + j] = src[i + j];
}

const gf_smooth_simd GF_SIMD_NAME(gf_smooth_simd) = {
    .load = {load_u8, load_u16, load_f32},
    .blur = blur,
    .blur_rows = blur_rows,
    .finish = {finish_u8, finish_u16, finish_f32},
    .blend = blend,
};

void GF_SIMD_NAME(gf_smooth_cpu)(const gf_plan *plan, const gf_band *band, uint32_t part,
                                 uint32_t parts, void *scratch) {
    gf_smooth_compute(&GF_SIMD_NAME(gf_smooth_simd), &GF_SIMD_NAME(gf_smooth_u8_simd), plan, band,
                      part, parts, scratch);
}
