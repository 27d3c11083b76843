/* The vector loops of smooth for one SIMD level. */
#include "smooth/smooth_simd.h"

#include "engine/vec.h"

/* Loops over scratch run in whole vectors, past n into padding. Loops that touch an image hand its
 * last, partial vector through a buffer on the stack. */

#define DEFINE_LOAD(name, type, vec_load_type)                                                     \
    static void name(float *dst, const void *src, size_t n, float gain) {                          \
        const type *p = src;                                                                       \
        const vec g = vec_set(gain);                                                               \
        size_t i = 0;                                                                              \
        for (; i + VEC_FLOATS <= n; i += VEC_FLOATS)                                               \
            vec_store(dst + i, vec_load_type(p + i) * g);                                          \
        if (i < n) {                                                                               \
            type tail[VEC_FLOATS] = {0};                                                           \
            memcpy(tail, p + i, (n - i) * sizeof(type));                                           \
            vec_store(dst + i, vec_load_type(tail) * g);                                           \
        }                                                                                          \
    }

DEFINE_LOAD(load_u8, uint8_t, vec_load_u8)
DEFINE_LOAD(load_u16, uint16_t, vec_load_u16)
DEFINE_LOAD(load_f32, float, vec_load)

/* `taps` is a constant in the common instances, so that their sums are straight-line code. */
static inline __attribute__((always_inline)) void blur_taps(float *dst, const float *src,
                                                            size_t step, unsigned taps, size_t n) {
    const vec divisor = vec_set((float)taps);
    size_t i = 0;
    for (; i + 4 * VEC_FLOATS <= n; i += 4 * VEC_FLOATS) {
        const float *p = src + i;
        vec s0 = vec_load(p), s1 = vec_load(p + VEC_FLOATS);
        vec s2 = vec_load(p + 2 * VEC_FLOATS), s3 = vec_load(p + 3 * VEC_FLOATS);
        for (unsigned k = 1; k < taps; k++) {
            p += step;
            s0 += vec_load(p);
            s1 += vec_load(p + VEC_FLOATS);
            s2 += vec_load(p + 2 * VEC_FLOATS);
            s3 += vec_load(p + 3 * VEC_FLOATS);
        }
        vec_store(dst + i, s0 / divisor);
        vec_store(dst + i + VEC_FLOATS, s1 / divisor);
        vec_store(dst + i + 2 * VEC_FLOATS, s2 / divisor);
        vec_store(dst + i + 3 * VEC_FLOATS, s3 / divisor);
    }
    for (; i < n; i += VEC_FLOATS) {
        vec s = vec_load(src + i);
        for (unsigned k = 1; k < taps; k++)
            s += vec_load(src + i + k * step);
        vec_store(dst + i, s / divisor);
    }
}

static void blur(float *dst, const float *src, size_t step, unsigned taps, size_t n) {
    switch (taps) {
    case 3:
        blur_taps(dst, src, step, 3, n);
        break;
    case 5:
        blur_taps(dst, src, step, 5, n);
        break;
    case 7:
        blur_taps(dst, src, step, 7, n);
        break;
    default:
        blur_taps(dst, src, step, taps, n);
        break;
    }
}

static void smooth(float *dst, const float *prev, const float *mid, const float *next, size_t n,
                   float weight, float factor) {
    const vec w = vec_set(weight), f = vec_set(factor);
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec t = vec_load(mid + i);
        if (prev)
            t = (t + vec_load(prev + i)) * w;
        if (next)
            t = (t + vec_load(next + i)) * w;
        vec_store(dst + i, t * f);
    }
}

#define DEFINE_STORE(name, type, vec_store_type)                                                   \
    static void name(void *dst, const float *src, size_t n) {                                      \
        type *p = dst;                                                                             \
        size_t i = 0;                                                                              \
        for (; i + VEC_FLOATS <= n; i += VEC_FLOATS)                                               \
            vec_store_type(p + i, vec_load(src + i));                                              \
        if (i < n) {                                                                               \
            type tail[VEC_FLOATS];                                                                 \
            vec_store_type(tail, vec_load(src + i));                                               \
            memcpy(p + i, tail, (n - i) * sizeof(type));                                           \
        }                                                                                          \
    }

static inline void store_canonical(float *p, vec x) {
    vec_store(p, vec_canonical(x));
}

DEFINE_STORE(store_u8, uint8_t, vec_store_u8)
DEFINE_STORE(store_u16, uint16_t, vec_store_u16)
DEFINE_STORE(store_f32, float, store_canonical)

const gf_smooth_simd GF_SIMD_NAME(gf_smooth_simd) = {
    .load = {load_u8, load_u16, load_f32},
    .blur = blur,
    .smooth = smooth,
    .store = {store_u8, store_u16, store_f32},
};
