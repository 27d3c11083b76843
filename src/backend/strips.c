/* Position of strips in the ring, their parts, and the buffers of slots. */
#include <assert.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "core/error.h"
#include "core/machine.h"
#include "core/thread.h"

static uint64_t strips_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

gf_strip gf_strip_part(const gf_plan *plan, const gf_strip *strip, uint32_t part, uint32_t parts) {
    const uint64_t begin = strip->out.y0 + gf_share(strip->out.rows, part, parts);
    const uint64_t end = strip->out.y0 + gf_share(strip->out.rows, part + 1, parts);
    gf_strip piece = *strip;
    piece.out = (gf_rows){gf_row(&strip->out, begin), strip->out.stride, begin, end - begin};
    piece.in.y0 = gf_input_rows(plan, begin, end, &piece.in.rows);
    piece.in.data = gf_row(&strip->in, piece.in.y0);
    return piece;
}

uint64_t gf_count_strips(const gf_cut *job) {
    assert(job->out_rows > 0);
    return (gf_job_end(job) - job->first - 1) / job->out_rows + 1;
}

/* Return the first input row of the job and store the number of input rows in *rows. */
static uint64_t strips_first_input_row(const gf_cut *job, uint64_t *rows) {
    return gf_input_rows(job->plan, job->first, gf_job_end(job), rows);
}

static bool strips_ring_holds_all(const gf_cut *job) {
    uint64_t input_rows;
    strips_first_input_row(job, &input_rows);
    return gf_ring_rows(job) == input_rows;
}

/* Return the row in the ring of image row y of strip k. Each slot starts out_rows rows after the
 * previous one, with a halo above it. */
static uint64_t strips_ring_row(const gf_cut *job, uint64_t k, uint64_t y) {
    uint64_t input_rows;
    if (strips_ring_holds_all(job))
        return y - strips_first_input_row(job, &input_rows);
    /* row within the slot, its halo included */
    const uint64_t above = y + job->plan->halo - (job->first + k * job->out_rows);
    return k % job->slots * job->out_rows + above;
}

void gf_locate_strip(const gf_cut *job, uint64_t k, gf_slot *slot) {
    const uint64_t begin = job->first + k * job->out_rows;
    const uint64_t end = strips_min(begin + job->out_rows, gf_job_end(job));
    slot->out = (gf_rows){slot->out_buffer, job->out_stride, begin, end - begin};
    slot->in = (gf_rows){.stride = job->in_stride};
    slot->in.y0 = gf_input_rows(job->plan, begin, end, &slot->in.rows);
    slot->in.data = slot->ring + strips_ring_row(job, k, slot->in.y0) * job->in_stride;
}

uint64_t gf_strips_before(const gf_cut *job, uint64_t k) {
    const uint64_t slots = job->slots, slot = k % slots;
    if (k < slots)
        return 0;
    /* In the previous cycle of the ring: the strip in this slot, and the strips that share the rows
     * below it, unless the ring ends there. */
    const uint64_t shared_strips = (2 * job->plan->halo + job->out_rows - 1) / job->out_rows;
    return k - slots + 1 +
           (strips_ring_holds_all(job) ? 0 : strips_min(shared_strips, slots - 1 - slot));
}

/* ---- buffers of the slots -------------------------------------------------------------------- */

void *gf_aligned_alloc(size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, gf_align(bytes), &all))
        return NULL;
    return aligned_alloc(GF_ROW_ALIGN, all ? all : GF_ROW_ALIGN);
}

uint32_t gf_payload_pieces(const gf_cut *job, uint32_t wanted) {
    const size_t head = job->filter->payload->bytes(job->plan, 0);
    const size_t all = job->filter->payload->bytes(job->plan, job->out_rows);
    uint64_t pieces = (all - head) / (4 * head) + 1;
    if (pieces > job->out_rows)
        pieces = job->out_rows;
    return pieces < wanted ? (uint32_t)pieces : wanted;
}

size_t gf_payload_stride(const gf_cut *job, uint32_t pieces) {
    if (!job->plan->has_payload)
        return 0;
    const uint64_t rows = (job->out_rows + pieces - 1) / pieces;
    return gf_align(job->filter->payload->bytes(job->plan, rows));
}

gf_status gf_slots_alloc(const gf_cut *job, uint32_t payload_pieces, gf_slot *slots,
                         gf_error *error) {
    unsigned char *ring = gf_alloc_pages((size_t)gf_ring_rows(job) * job->in_stride);
    if (!ring)
        return gf_fail_memory(error, "strips", gf_ring_rows(job) * job->in_stride,
                              "the ring; use a smaller --rows-per-strip");
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
            return gf_fail_memory(error, "strips", out_bytes + payload_pieces * payload_bytes,
                                  "one strip; use a smaller --rows-per-strip");
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
