/* Fast CPU implementation of normalize: vectors of samples divided by vectors of means. */
#include "core/vec.h"
#include "normalize/normalize.h"

/* Samples per repetition of the means: a whole number of pixels and of vectors. */
#define PERIOD 48

#define PIECE_PIXELS 4096 /* alpha is restored while the piece is in the cache */

GF_INLINE void normalize_period(const gf_type type, void *out, const void *in, size_t i,
                                const float *means, vec half) {
    for (size_t j = 0; j < PERIOD; j += VEC_FLOATS)
        vec_store_samples(type, out, i + j,
                          vec_load_samples(type, in, i + j) / vec_load(means + j) * half);
}

/* Normalize n samples, starting at a pixel boundary. Whole periods use vectors; the rest goes
 * through a buffer of one period. Alpha is overwritten; the caller restores it. half is 1 for f32:
 * x * 1 = x. */
GF_INLINE void normalize_samples(const gf_type type, void *out, const void *in, size_t n,
                                 const float *means, float half) {
    const size_t bytes = gf_type_bytes(type);
    float rest[PERIOD] = {0};
    size_t i = 0;
    for (; n - i >= PERIOD; i += PERIOD)
        normalize_period(type, out, in, i, means, vec_set(half));
    memcpy(rest, (const unsigned char *)in + i * bytes, (n - i) * bytes);
    normalize_period(type, rest, rest, 0, means, vec_set(half));
    memcpy((unsigned char *)out + i * bytes, rest, (n - i) * bytes);
}

void GF_SIMD_NAME(gf_normalize_cpu)(const gf_plan *head, const gf_strip *strip, uint32_t part,
                                    uint32_t parts, void *scratch) {
    const gf_normalize_plan *plan = (const gf_normalize_plan *)head;
    const gf_format *format = &head->in;
    const uint32_t channels = format->channels, measured = gf_measured_channels(format);
    const size_t pixel = channels * gf_type_bytes(format->type);
    const uint64_t y0 = strip->out.y0, end = y0 + gf_share(strip->out.rows, part + 1, parts);
    const float *mean = strip->constants;
    float means[PERIOD];
    for (uint32_t i = 0; i < PERIOD; i++)
        means[i] = i % channels < measured ? mean[i % channels] : 1;
    for (uint64_t y = y0 + gf_share(strip->out.rows, part, parts); y < end; y++)
        for (uint64_t x = 0; x < format->width; x += PIECE_PIXELS) {
            const uint64_t left = format->width - x, n = left < PIECE_PIXELS ? left : PIECE_PIXELS;
            const unsigned char *in = gf_row(&strip->in[0], y) + x * pixel;
            unsigned char *out = gf_row(&strip->out, y) + x * pixel;
            GF_BY_TYPE(format->type, normalize_samples, out, in, (size_t)(n * channels), means,
                       plan->half);
            gf_restore_alpha(format, in, out, n);
        }
}
