/* Fast CPU implementation of convert, on core/convert_simd.c. */
#include "convert/convert.h"
#include "core/vec.h"

void GF_SIMD_NAME(gf_convert_cpu)(const gf_plan *head, const gf_strip *strip, uint32_t part,
                                  uint32_t parts, void *scratch) {
    const gf_conversion *how = &((const gf_convert_plan *)head)->how;
    const uint64_t y0 = strip->out.y0, end = y0 + gf_share(strip->out.rows, part + 1, parts);
    uint64_t outside = 0;
    for (uint64_t y = y0 + gf_share(strip->out.rows, part, parts); y < end; y++)
        outside += GF_SIMD_NAME(gf_convert_samples)(
            how, gf_row(&strip->out, y), gf_row(&strip->in[0], y), gf_row_samples(&head->in));
    if (head->state_bytes)
        *(uint64_t *)strip->state += outside;
}
