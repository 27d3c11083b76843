/* Position of strips in the ring, their parts, and the buffers of slots. */
#include <assert.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "core/error.h"

gf_strip gf_strip_part(const gf_plan *plan, const gf_strip *strip, uint32_t part, uint32_t parts) {
    const uint64_t begin = strip->out.y0 + gf_share(strip->out.rows, part, parts);
    const uint64_t end = strip->out.y0 + gf_share(strip->out.rows, part + 1, parts);
    const gf_range needs = gf_map_needs(plan, (gf_range){begin, end});
    gf_strip piece = *strip;
    piece.out = gf_rows_part(&strip->out, begin, end - begin);
    piece.records = gf_record(plan, strip, begin);
    for (uint32_t i = 0; i < plan->inputs && begin < end; i++)
        piece.in[i] = gf_rows_part(&strip->in[i], needs.first, needs.end - needs.first);
    return piece;
}

gf_strip gf_slot_strip(const gf_plan *plan, const gf_slot *slot) {
    return (gf_strip){.in = {slot->in[0], slot->in[1]},
                      .out = slot->out,
                      .records = slot->records,
                      .payload = slot->payload_buffer,
                      .constants = plan->constants};
}

uint64_t gf_count_strips(const gf_cut *job) {
    assert(job->out_rows > 0);
    const gf_range rows = gf_cut_output(job);
    return (rows.end - rows.first - 1) / job->out_rows + 1;
}

static gf_range strips_rows(const gf_cut *job, uint64_t k) {
    const gf_range all = gf_cut_output(job);
    const uint64_t first = all.first + k * job->out_rows;
    return (gf_range){first, gf_min(first + job->out_rows, all.end)};
}

static gf_range strips_needs(const gf_cut *job, uint64_t k) {
    return gf_map_needs(job->plan, strips_rows(job, k));
}

/* Return the image row at the start of the ring while it holds strip k. Strips follow each other in
 * the ring until all slots are used; the next one starts it again, unless it holds all rows. */
static uint64_t strips_ring_start(const gf_cut *job, uint64_t k) {
    const gf_range all = gf_map_needs(job->plan, gf_cut_output(job));
    if (job->ring_rows == all.end - all.first)
        return all.first;
    return strips_needs(job, k - k % job->slots).first;
}

void gf_locate_strip(const gf_cut *job, uint64_t k, gf_slot *slot) {
    const gf_range out = strips_rows(job, k), in = strips_needs(job, k);
    const uint64_t at = in.first - strips_ring_start(job, k);
    slot->out = (gf_rows){slot->out_buffer, job->out_stride, out.first, out.end - out.first};
    if (job->out.data)
        slot->out = gf_rows_part(&job->out, out.first, out.end - out.first);
    for (uint32_t i = 0; i < job->plan->inputs; i++)
        slot->in[i] = job->in[i].data
                          ? gf_rows_part(&job->in[i], in.first, in.end - in.first)
                          : (gf_rows){slot->ring + (i * job->ring_rows + at) * job->in_stride,
                                      job->in_stride, in.first, in.end - in.first};
}

uint64_t gf_strips_before(const gf_cut *job, uint64_t k) {
    const uint64_t slots = job->slots, start = k - k % slots;
    if (k < slots)
        return 0;
    if (job->in[0].data)
        return k - slots + 1;
    /* The strip in this slot and, if the ring was started again since, those at strip k's place. */
    uint64_t before = k - slots + 1;
    const uint64_t last = strips_ring_start(job, k - slots), now = strips_ring_start(job, k);
    const uint64_t end = strips_needs(job, k).end - now;
    while (now != last && before < start && strips_needs(job, before).first - last < end)
        before++;
    return before;
}

void *gf_aligned_alloc(size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, gf_align(bytes), &all))
        return NULL;
    return aligned_alloc(GF_ROW_ALIGN, all ? all : GF_ROW_ALIGN);
}

uint32_t gf_payload_pieces(const gf_cut *job, uint32_t wanted) {
    const gf_payload_format *payload = job->plan->filter->payload;
    const size_t head = payload->bytes(job->plan, 0);
    const size_t all = payload->bytes(job->plan, job->out_rows);
    const uint64_t pieces = gf_min((all - head) / (4 * head) + 1, job->out_rows);
    return (uint32_t)gf_min(pieces, wanted);
}

size_t gf_payload_stride(const gf_cut *job, uint32_t pieces) {
    if (!job->plan->has_payload)
        return 0;
    const uint64_t rows = (job->out_rows + pieces - 1) / pieces;
    return gf_align(job->plan->filter->payload->bytes(job->plan, rows));
}

gf_status gf_slots_alloc(const gf_cut *job, uint32_t payload_pieces, gf_slot *slots,
                         gf_error *error) {
    const size_t ring_bytes = job->plan->inputs * (size_t)job->ring_rows * job->in_stride;
    unsigned char *ring = gf_alloc_pages(ring_bytes);
    if (!ring)
        return gf_fail_memory(error, "strips", ring_bytes,
                              "the ring; use a smaller --rows-per-strip");
    const size_t out_rows = job->out.data ? 0 : (size_t)job->out_rows * job->out_stride;
    const size_t out_bytes = out_rows + (size_t)job->out_rows * job->plan->record;
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
        slots[i].records = slots[i].out_buffer + out_rows;
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
