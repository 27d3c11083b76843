#include <stdlib.h>

#include "engine/backend.h"
#include "error.h"

void *gf_aligned_alloc(size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, gf_align(bytes), &all))
        return NULL;
    return aligned_alloc(GF_ROW_ALIGN, all ? all : GF_ROW_ALIGN);
}

uint32_t gf_payload_pieces(const gf_job *job, uint32_t wanted) {
    const size_t head = job->filter->measure->payload_bytes(job->plan, 0);
    const size_t all = job->filter->measure->payload_bytes(job->plan, job->out_rows);
    uint64_t pieces = (all - head) / (4 * head) + 1;
    if (pieces > job->out_rows)
        pieces = job->out_rows;
    return pieces < wanted ? (uint32_t)pieces : wanted;
}

size_t gf_payload_stride(const gf_job *job, uint32_t pieces) {
    if (!job->plan->has_payload)
        return 0;
    const uint64_t rows = (job->out_rows + pieces - 1) / pieces;
    return gf_align(job->filter->measure->payload_bytes(job->plan, rows));
}

gf_status gf_slots_alloc(const gf_job *job, uint32_t payload_pieces, gf_slot *slots,
                         gf_error *error) {
    unsigned char *ring = gf_aligned_alloc(1, (size_t)gf_ring_rows(job) * job->in_stride);
    if (!ring)
        return gf_fail_memory(error, "bands", gf_ring_rows(job) * job->in_stride,
                              "the ring; use a smaller --band-rows");
    const size_t out_bytes = (size_t)job->out_rows * job->out_stride;
    const size_t payload_bytes = gf_payload_stride(job, payload_pieces);
    for (uint32_t i = 0; i < job->slots; i++) {
        slots[i].ring = ring;
        slots[i].out_buffer = gf_aligned_alloc(1, out_bytes);
        if (payload_bytes) {
            slots[i].payload_buffer = gf_aligned_alloc(payload_pieces, payload_bytes);
            slots[i].payload_stride = payload_bytes;
            slots[i].payload_pieces = payload_pieces;
        }
        if (!slots[i].out_buffer || (payload_bytes && !slots[i].payload_buffer)) {
            gf_slots_free(slots, i + 1);
            return gf_fail_memory(error, "bands", out_bytes + payload_pieces * payload_bytes,
                                  "one band; use a smaller --band-rows");
        }
    }
    return GF_OK;
}

void gf_slots_free(gf_slot *slots, uint32_t count) {
    if (count > 0)
        free(slots[0].ring);
    for (uint32_t i = 0; i < count; i++) {
        free(slots[i].out_buffer);
        free(slots[i].payload_buffer);
        slots[i].ring = slots[i].out_buffer = slots[i].payload_buffer = NULL;
    }
}
