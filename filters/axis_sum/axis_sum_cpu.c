/* The fast CPU implementation of axis-sum: rows go to threads whole, columns in strips whose sums
 * stay in the cache. */
#include "axis_sum/axis_sum.h"

#include <string.h>

#include "axis_sum/axis_sum_simd.h"

static const gf_axis_sum_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_axis_sum_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_axis_sum_simd_avx2,
    [GF_ISA_AVX512] = &gf_axis_sum_simd_avx512,
#endif
};

static void sum_rows(const gf_axis_sum_plan *plan, const gf_axis_sum_simd *simd,
                     const gf_band *band, uint64_t begin, uint64_t end, double *lanes) {
    const gf_format *format = &plan->head.in;
    const size_t n = (size_t)gf_row_samples(format);
    for (uint64_t y = begin; y < end; y++) {
        const void *row = gf_row(&band->in, y);
        void *record = gf_record(&plan->head, &band->out, y);
        uint64_t integers[GF_MAX_CHANNELS];
        double reals[GF_MAX_CHANNELS];
        if (format->type == GF_U8)
            simd->row_u8(row, n, format->channels, integers);
        else if (format->type == GF_U16)
            simd->row_u16(row, n, format->channels, integers);
        else
            simd->row_f32(row, n, format->channels, reals, lanes);
        memcpy(record, format->type == GF_F32 ? (const void *)reals : (const void *)integers,
               plan->head.record);
    }
}

/* Samples [begin, end) of all rows of the band. */
static void sum_columns(const gf_axis_sum_plan *plan, const gf_axis_sum_simd *simd,
                        const gf_band *band, uint64_t begin, uint64_t end) {
    const gf_type type = plan->head.in.type;
    const unsigned char *rows = gf_row(&band->in, band->out.y0);
    for (uint64_t i = begin; i < end; i += GF_AXIS_SUM_STRIP) {
        const uint64_t left = end - i;
        simd->add[type]((uint64_t *)band->state + i, rows + i * gf_type_bytes(type),
                        band->in.stride, band->out.rows,
                        (size_t)(left < GF_AXIS_SUM_STRIP ? left : GF_AXIS_SUM_STRIP));
    }
}

size_t gf_axis_sum_cpu_scratch(const gf_plan *plan) {
    (void)plan;
    return GF_AXIS_SUM_LANES * sizeof(double);
}

void gf_axis_sum_cpu(const gf_plan *head, const gf_band *band, uint32_t part, uint32_t parts,
                     void *scratch, gf_isa isa) {
    const gf_axis_sum_plan *plan = (const gf_axis_sum_plan *)head;
    const gf_axis_sum_simd *simd = simd_levels[isa];
    if (plan->columns) {
        const uint64_t n = gf_row_samples(&head->in);
        sum_columns(plan, simd, band, gf_share(n, part, parts), gf_share(n, part + 1, parts));
    } else {
        const uint64_t y = band->out.y0, rows = band->out.rows;
        sum_rows(plan, simd, band, y + gf_share(rows, part, parts),
                 y + gf_share(rows, part + 1, parts), scratch);
    }
}
