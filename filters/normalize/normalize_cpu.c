/* The fast CPU implementation of normalize: vectors of samples by vectors of means. */
#include "normalize/normalize.h"

#include "normalize/normalize_simd.h"

static const gf_normalize_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_normalize_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_normalize_simd_avx2,
    [GF_ISA_AVX512] = &gf_normalize_simd_avx512,
#endif
};

#define PIECE_PIXELS 4096 /* alpha is put back while it is in the cache */

size_t gf_normalize_cpu_scratch(const gf_plan *plan) {
    (void)plan;
    return GF_NORMALIZE_PERIOD * sizeof(float);
}

static void fill_means(const gf_normalize_plan *plan, float *means) {
    const uint32_t channels = plan->head.in.channels;
    const uint32_t measured = gf_measured_channels(channels, false);
    for (uint32_t i = 0; i < GF_NORMALIZE_PERIOD; i++)
        means[i] = i % channels < measured ? plan->mean[i % channels] : 1;
}

/* Pixels [x, x + n) of a row. */
static void normalize_piece(const gf_normalize_plan *plan, const gf_normalize_simd *simd,
                            const unsigned char *in, unsigned char *out, uint64_t x, uint64_t n,
                            const float *means) {
    const gf_format *format = &plan->head.in;
    const size_t first = (size_t)(x * format->channels), samples = (size_t)(n * format->channels);
    switch (format->type) {
    case GF_U8:
        simd->u8(out + first, in + first, samples, means, plan->half);
        break;
    case GF_U16:
        simd->u16((uint16_t *)(void *)out + first, (const uint16_t *)(const void *)in + first,
                  samples, means, plan->half);
        break;
    default:
        simd->f32((float *)(void *)out + first, (const float *)(const void *)in + first, samples,
                  means);
        break;
    }
    const size_t pixel = gf_type_bytes(format->type) * format->channels;
    gf_restore_alpha(format, in + x * pixel, out + x * pixel, n);
}

void gf_normalize_cpu(const gf_plan *head, const gf_band *band, uint32_t part, uint32_t parts,
                      void *scratch, gf_isa isa) {
    const gf_normalize_plan *plan = (const gf_normalize_plan *)head;
    const uint64_t rows = band->out.rows, width = head->in.width;
    fill_means(plan, scratch);
    for (uint64_t i = gf_share(rows, part, parts); i < gf_share(rows, part + 1, parts); i++) {
        const uint64_t y = band->out.y0 + i;
        for (uint64_t x = 0; x < width; x += PIECE_PIXELS)
            normalize_piece(plan, simd_levels[isa], gf_row(&band->in, y), gf_row(&band->out, y), x,
                            width - x < PIECE_PIXELS ? width - x : PIECE_PIXELS, scratch);
    }
}
