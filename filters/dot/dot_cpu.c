/* The fast CPU implementation of dot: rows go to threads whole. */
#include "dot/dot.h"

#include <string.h>

#include "dot/dot_simd.h"

static const gf_dot_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_dot_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_dot_simd_avx2,
    [GF_ISA_AVX512] = &gf_dot_simd_avx512,
#endif
};

size_t gf_dot_cpu_scratch(const gf_plan *plan) {
    return plan->in.type == GF_F32 ? GF_DOT_LANES * sizeof(double) : 0;
}

void gf_dot_cpu(const gf_plan *head, const gf_band *band, uint32_t part, uint32_t parts,
                void *scratch, gf_isa isa) {
    const gf_dot_simd *simd = simd_levels[isa];
    const gf_format *format = &head->in;
    const size_t n = (size_t)gf_row_samples(format);
    const gf_rows in[] = {gf_band_input(band, head->inputs, 0),
                          gf_band_input(band, head->inputs, 1)};
    const uint64_t y0 = band->out.y0, end = y0 + gf_share(band->out.rows, part + 1, parts);
    for (uint64_t y = y0 + gf_share(band->out.rows, part, parts); y < end; y++) {
        const void *a = gf_row(&in[0], y), *b = gf_row(&in[1], y);
        /* Of all channels; those that are measured are the first. */
        uint64_t integers[GF_MAX_CHANNELS * GF_DOT_SSD];
        double reals[GF_MAX_CHANNELS * GF_DOT_SUMS];
        if (format->type == GF_U8)
            simd->row_u8(a, b, n, format->channels, integers);
        else if (format->type == GF_U16)
            simd->row_u16(a, b, n, format->channels, integers);
        else
            simd->row_f32(a, b, n, format->channels, reals, scratch);
        memcpy(gf_record(head, &band->out, y),
               format->type == GF_F32 ? (const void *)reals : (const void *)integers, head->record);
    }
}
