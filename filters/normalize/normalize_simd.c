#include "normalize/normalize_simd.h"

#include "vec.h"

/* Vectors over whole periods; then the rest through a buffer of one period. */
#define NORMALIZE(NAME, TYPE, LOAD, STORE)                                                         \
    static inline void NAME##_period(TYPE *out, const TYPE *in, const float *means, vec half) {    \
        for (size_t j = 0; j < GF_NORMALIZE_PERIOD; j += VEC_FLOATS)                               \
            STORE(out + j, LOAD(in + j) / vec_load(means + j) * half);                             \
    }                                                                                              \
    static void NAME(TYPE *out, const TYPE *in, size_t n, const float *means, float half) {        \
        size_t i = 0;                                                                              \
        for (; n - i >= GF_NORMALIZE_PERIOD; i += GF_NORMALIZE_PERIOD)                             \
            NAME##_period(out + i, in + i, means, vec_set(half));                                  \
        TYPE rest[GF_NORMALIZE_PERIOD] = {0};                                                      \
        memcpy(rest, in + i, (n - i) * sizeof *rest);                                              \
        NAME##_period(rest, rest, means, vec_set(half));                                           \
        memcpy(out + i, rest, (n - i) * sizeof *rest);                                             \
    }

static inline void store_canonical(float *p, vec x) {
    vec_store(p, vec_canonical(x));
}

NORMALIZE(u8, uint8_t, vec_load_u8, vec_store_u8)
NORMALIZE(u16, uint16_t, vec_load_u16, vec_store_u16)
NORMALIZE(scaled_f32, float, vec_load, store_canonical)

static void f32(float *out, const float *in, size_t n, const float *means) {
    scaled_f32(out, in, n, means, 1); /* x * 1 is x */
}

const gf_normalize_simd GF_SIMD_NAME(gf_normalize_simd) = {u8, u16, f32};
