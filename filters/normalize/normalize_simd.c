/* Fast CPU implementation of normalize: vectors of samples divided by vectors of means. */
#include "core/vec.h"
#include "normalize/normalize.h"

/* Samples per repetition of the means: a whole number of pixels and of vectors. */
#define PERIOD 48

#define PIECE_PIXELS 4096 /* alpha is restored while the piece is in the cache */

/* NAME: normalize n samples, starting at a pixel boundary. Whole periods use vectors; the rest goes
 * through a buffer of one period. Alpha is overwritten; the caller restores it. */
#define NORMALIZE(NAME, TYPE, LOAD, STORE)                                                         \
    static inline void NAME##_period(TYPE *out, const TYPE *in, const float *means, vec half) {    \
        for (size_t j = 0; j < PERIOD; j += VEC_FLOATS)                                            \
            STORE(out + j, LOAD(in + j) / vec_load(means + j) * half);                             \
    }                                                                                              \
    static void NAME(void *to, const void *from, size_t n, const float *means, float half) {       \
        TYPE *out = to, rest[PERIOD] = {0};                                                        \
        const TYPE *in = from;                                                                     \
        size_t i = 0;                                                                              \
        for (; n - i >= PERIOD; i += PERIOD)                                                       \
            NAME##_period(out + i, in + i, means, vec_set(half));                                  \
        memcpy(rest, in + i, (n - i) * sizeof *rest);                                              \
        NAME##_period(rest, rest, means, vec_set(half));                                           \
        memcpy(out + i, rest, (n - i) * sizeof *rest);                                             \
    }

NORMALIZE(normalize_u8, uint8_t, vec_load_u8, vec_store_u8)
NORMALIZE(normalize_u16, uint16_t, vec_load_u16, vec_store_u16)
NORMALIZE(normalize_f32, float, vec_load, vec_store_canonical) /* half is 1: x * 1 = x */

static void (*const normalize_loops[])(void *to, const void *from, size_t n, const float *means,
                                       float half) = {
    [GF_U8] = normalize_u8, [GF_U16] = normalize_u16, [GF_F32] = normalize_f32};

void GF_SIMD_NAME(gf_normalize_cpu)(const gf_plan *head, const gf_strip *strip, uint32_t part,
                                    uint32_t parts, void *scratch) {
    (void)scratch;
    const gf_normalize_plan *plan = (const gf_normalize_plan *)head;
    const gf_format *format = &head->in;
    const uint32_t channels = format->channels, measured = gf_measured_channels(format);
    const size_t pixel = channels * gf_type_bytes(format->type);
    const uint64_t y0 = strip->out.y0, end = y0 + gf_share(strip->out.rows, part + 1, parts);
    float means[PERIOD];
    for (uint32_t i = 0; i < PERIOD; i++)
        means[i] = i % channels < measured ? plan->mean[i % channels] : 1;
    for (uint64_t y = y0 + gf_share(strip->out.rows, part, parts); y < end; y++)
        for (uint64_t x = 0; x < format->width; x += PIECE_PIXELS) {
            const uint64_t left = format->width - x, n = left < PIECE_PIXELS ? left : PIECE_PIXELS;
            const unsigned char *in = gf_row(&strip->in, y) + x * pixel;
            unsigned char *out = gf_row(&strip->out, y) + x * pixel;
            normalize_loops[format->type](out, in, (size_t)(n * channels), means, plan->half);
            gf_restore_alpha(format, in, out, n);
        }
}
