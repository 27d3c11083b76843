#include <stdlib.h>

#include "engine/backend.h"
#include "error.h"

gf_status gf_slots_alloc(const gf_job *job, gf_slot *slots, gf_error *error) {
    const size_t in_bytes = (size_t)job->in_rows * job->in_stride;
    const size_t out_bytes = (size_t)job->out_rows * job->out_stride;
    for (uint32_t i = 0; i < job->slots; i++) {
        slots[i].in_buffer = aligned_alloc(GF_ROW_ALIGN, in_bytes);
        slots[i].out_buffer = aligned_alloc(GF_ROW_ALIGN, out_bytes);
        if (!slots[i].in_buffer || !slots[i].out_buffer) {
            gf_slots_free(slots, i + 1);
            return gf_fail_memory(error, "bands", in_bytes + out_bytes,
                                  "one band; use a smaller --band-rows");
        }
    }
    return GF_OK;
}

void gf_slots_free(gf_slot *slots, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free(slots[i].in_buffer);
        free(slots[i].out_buffer);
        slots[i].in_buffer = slots[i].out_buffer = NULL;
    }
}
