/* The fast CPU implementation of compare: rows go to threads whole; pieces of a row that are the
 * same cost a memcmp. */
#include <string.h>

#include "compare/compare.h"
#include "compare/compare_simd.h"

static const gf_compare_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_compare_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_compare_simd_avx2,
    [GF_ISA_AVX512] = &gf_compare_simd_avx512,
#endif
};

/* The value of a sample, or the bits of an f32 one. */
static uint32_t value_at(const unsigned char *row, uint64_t i, gf_type type) {
    const size_t bytes = gf_type_bytes(type);
    uint16_t u16;
    uint32_t value;
    if (type == GF_U8)
        return row[i];
    if (type == GF_U16) {
        memcpy(&u16, row + i * bytes, sizeof u16);
        return u16;
    }
    memcpy(&value, row + i * bytes, sizeof value);
    return value;
}

/* The row's record from its first differing sample on, which is at or after i. */
static void find_first(const unsigned char *a, const unsigned char *b, uint64_t i, gf_type type,
                       gf_compare_record *record) {
    while (value_at(a, i, type) == value_at(b, i, type))
        i++;
    record->first = i;
    record->a = value_at(a, i, type);
    record->b = value_at(b, i, type);
}

static gf_compare_record compare_row(const gf_compare_simd *simd, const gf_format *format,
                                     const unsigned char *a, const unsigned char *b) {
    const gf_type type = format->type;
    const size_t bytes = gf_type_bytes(type);
    const uint64_t samples = gf_row_samples(format);
    gf_compare_record record = {.first = UINT64_MAX};
    for (uint64_t i = 0; i < samples; i += GF_COMPARE_PIECE) {
        const uint64_t left = samples - i;
        const size_t n = (size_t)(left < GF_COMPARE_PIECE ? left : GF_COMPARE_PIECE);
        if (memcmp(a + i * bytes, b + i * bytes, n * bytes) == 0)
            continue;
        if (record.differing == 0)
            find_first(a, b, i, type, &record);
        record.differing += simd->count[type](a + i * bytes, b + i * bytes, n, &record.largest);
    }
    return record;
}

size_t gf_compare_cpu_scratch(const gf_plan *plan) {
    (void)plan;
    return 0;
}

void gf_compare_cpu(const gf_plan *plan, const gf_band *band, uint32_t part, uint32_t parts,
                    void *scratch, gf_isa isa) {
    (void)scratch;
    const gf_compare_simd *simd = simd_levels[isa];
    const gf_format *format = &plan->in;
    const gf_rows in[] = {gf_band_input(band, plan->inputs, 0),
                          gf_band_input(band, plan->inputs, 1)};
    const uint64_t y0 = band->out.y0, end = y0 + gf_share(band->out.rows, part + 1, parts);
    for (uint64_t y = y0 + gf_share(band->out.rows, part, parts); y < end; y++) {
        const unsigned char *a = gf_row(&in[0], y), *b = gf_row(&in[1], y);
        if (plan->out.width)
            simd->draw[format->type](a, b, (size_t)format->width, format->channels,
                                     gf_row(&band->out, y));
        *(gf_compare_record *)gf_record(plan, &band->out, y) = compare_row(simd, format, a, b);
    }
}
