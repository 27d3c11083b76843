/* The fast CPU implementation of threshold: loops that the compiler makes vectors of. Where that is
 * not enough, they go to threshold_simd.c, which is compiled once a SIMD level. */
#include "threshold/threshold.h"

size_t gf_threshold_cpu_scratch(const gf_plan *plan) {
    (void)plan;
    return 0;
}

#define LOOP(TYPE)                                                                                 \
    do {                                                                                           \
        const TYPE *from = (const TYPE *)(const void *)in;                                         \
        TYPE *to = (TYPE *)(void *)out;                                                            \
        for (uint64_t i = 0; i < samples; i++)                                                     \
            to[i] = (float)from[i] >= plan->limit ? (TYPE)plan->largest : (TYPE)0;                 \
    } while (0)

void gf_threshold_cpu(const gf_plan *head, const gf_band *band, uint32_t part, uint32_t parts,
                      void *scratch, gf_isa isa) {
    (void)scratch, (void)isa;
    const gf_threshold_plan *plan = (const gf_threshold_plan *)head;
    const uint64_t rows = band->out.rows, samples = gf_row_samples(&head->in);
    for (uint64_t k = gf_share(rows, part, parts); k < gf_share(rows, part + 1, parts); k++) {
        const unsigned char *in = gf_row(&band->in, band->out.y0 + k);
        unsigned char *out = gf_row(&band->out, band->out.y0 + k);
        if (head->in.type == GF_U8)
            LOOP(uint8_t);
        else if (head->in.type == GF_U16)
            LOOP(uint16_t);
        else
            LOOP(float);
        gf_restore_alpha(&head->in, in, out, head->in.width);
    }
}
