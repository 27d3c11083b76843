/* threshold: samples below a level become 0, the others the largest value. */
#ifndef GF_THRESHOLD_H
#define GF_THRESHOLD_H

#include "filter.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gf_threshold_plan {
    gf_plan head;
    float limit;   /* the least sample that stays: fl(level * largest); level itself for f32 */
    float largest; /* 255, 65535 or 1 */
} gf_threshold_plan;

gf_status gf_threshold_golden(const gf_plan *plan, const gf_band *band, gf_error *error);

size_t gf_threshold_cpu_scratch(const gf_plan *plan);
void gf_threshold_cpu(const gf_plan *plan, const gf_band *band, uint32_t part, uint32_t parts,
                      void *scratch, gf_isa isa);

extern const gf_filter_cuda gf_threshold_cuda;

#ifdef __cplusplus
}
#endif

#endif
