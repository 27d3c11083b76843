/* Division of an image into strips, and their layout in the ring. */
#include "engine/pipeline.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/machine.h"

static uint64_t geometry_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Return whether strips with up to `pieces` payloads, and `extra` bytes, fit in the budget. */
static bool geometry_fits(const gf_job *job, uint32_t pieces, uint64_t extra, uint64_t budget) {
    uint64_t ring, slot, all, payload = 0;
    if (job->plan->has_payload) {
        pieces = gf_payload_pieces(job, pieces);
        if (__builtin_mul_overflow(gf_payload_stride(job, pieces), pieces, &payload))
            return false;
    }
    return !__builtin_mul_overflow(gf_ring_rows(job), job->in_stride, &ring) &&
           !__builtin_mul_overflow(job->out_rows, job->out_stride, &slot) &&
           !__builtin_add_overflow(slot, payload, &slot) &&
           !__builtin_mul_overflow(slot, job->slots, &all) &&
           !__builtin_add_overflow(all, ring, &all) && extra <= budget && all <= budget - extra;
}

/* Return the memory of golden for one strip: its output, and its own memory for each part. Return
 * UINT64_MAX on overflow. */
static uint64_t geometry_golden_bytes(const gf_job *job, uint32_t parts) {
    const gf_plan *plan = job->plan;
    const uint64_t row = plan->golden_bytes / plan->in.height + 1;
    /* additional rows for the halos of the parts */
    const uint64_t halo_rows = parts * (2 * plan->halo + 2);
    uint64_t out, payload = 0, own;
    if (parts == 0)
        return 0;
    if (plan->has_payload) {
        const uint32_t pieces = gf_payload_pieces(job, parts);
        if (__builtin_mul_overflow(gf_payload_stride(job, pieces), pieces, &payload))
            return UINT64_MAX;
    }
    if (__builtin_mul_overflow(job->out_rows, job->out_stride, &out) ||
        __builtin_mul_overflow(row, job->out_rows + halo_rows, &own) ||
        __builtin_add_overflow(out, own, &out) || __builtin_add_overflow(out, payload, &out))
        return UINT64_MAX;
    return plan->golden_bytes ? out : out - own;
}

static void geometry_set_rows(gf_job *job, uint64_t rows) {
    uint64_t input_rows;
    gf_input_rows(job->plan, job->first, gf_job_end(job), &input_rows);
    job->out_rows = geometry_min(rows, gf_job_end(job) - job->first);
    job->in_rows = geometry_min(job->out_rows + 2 * job->plan->halo, input_rows);
}

uint64_t gf_count_strips(const gf_job *job) {
    assert(job->out_rows > 0);
    return (gf_job_end(job) - job->first - 1) / job->out_rows + 1;
}

/* Raise the strip height for the halo: two strips read, and partly compute, the rows of a halo, so
 * high strips do less redundant work. */
static void geometry_raise_for_halo(gf_job *job, const gf_strip_request *request) {
    const uint64_t rows = job->out_rows, halo = job->plan->halo;
    for (uint64_t times = request->halos; times > 0 && job->out_rows < times * halo; times /= 2) {
        geometry_set_rows(job, times * halo);
        if (times == 1 || geometry_fits(job, request->pieces, 0, request->max))
            return;
        geometry_set_rows(job, rows);
    }
}

/* Fit the strips to the rows that the source decodes together. Without output rows and halo, they
 * are multiples of them: it decodes in the ring, without a copy. A histogram of a tiled file takes
 * 0.9 times as long. Otherwise the source holds more rows than the ring, which is then short. */
static void geometry_fit_to_source(gf_job *job, gf_strip_request *request,
                                   const gf_stream_job *stream) {
    enum { SHORT_BYTES = 1 << 20 };
    const uint64_t rows = job->out_rows, together = stream->rows_together;
    const bool overlaps = job->plan->halo != 0;
    if (together == 0)
        return;
    if (overlaps || job->plan->out.width != 0) {
        const uint32_t slots = overlaps ? 5 : 4;
        if (rows < together && request->slots > slots) {
            request->slots = slots;
            if (!overlaps && rows > SHORT_BYTES / job->in_stride)
                geometry_set_rows(job, SHORT_BYTES / job->in_stride + 1);
        }
        return;
    }
    if (job->first % together != 0)
        return;
    if (rows >= together) {
        geometry_set_rows(job, rows - rows % together);
        return;
    }
    if (job->slots > 1)
        job->slots = stream->groups + 1; /* one is computed */
    geometry_set_rows(job, together);
    if (geometry_fits(job, request->pieces, 0, request->max))
        request->slots = job->slots;
    else
        geometry_set_rows(job, rows);
}

gf_status gf_choose_geometry(const gf_stream_job *job, gf_job *out, gf_error *error) {
    const gf_plan *plan = job->plan;
    gf_strip_request request = job->backend->request(job->state, plan);
    *out = (gf_job){.filter = job->filter,
                    .plan = plan,
                    .first = job->first,
                    .end = job->end,
                    .in_stride = plan->inputs * gf_align(gf_row_bytes(&plan->in)),
                    .out_stride = gf_out_stride(plan),
                    .slots = request.slots};
    uint64_t rows = plan->in.height;
    if (!request.whole_image) {
        rows = job->rows_per_strip ? job->rows_per_strip : request.bytes / out->in_stride;
        if (rows < 1)
            rows = 1;
    }
    geometry_set_rows(out, rows);
    if (!request.whole_image && !job->rows_per_strip) {
        geometry_raise_for_halo(out, &request);
        if (request.fits_source)
            geometry_fit_to_source(out, &request, job);
    }
    for (uint32_t slots = request.slots;;) {
        out->slots = (uint32_t)geometry_min(slots, gf_count_strips(out));
        const uint64_t golden =
            geometry_golden_bytes(out, request.golden_parts + job->consumer->golden_parts);
        uint64_t extra = request.extra + job->consumer->extra + plan->state_bytes;
        if (!__builtin_add_overflow(extra, golden, &extra) &&
            geometry_fits(out, request.pieces, extra, job->max_memory))
            return GF_OK;
        if (out->slots > 2)
            slots = out->slots - 1;
        else if (!request.whole_image && !job->rows_per_strip && out->out_rows > 1)
            geometry_set_rows(out, out->out_rows / 2);
        else if (out->slots > 1)
            slots = 1;
        else
            return gf_fail(error, GF_FAILED,
                           "%s: strips of %" PRIu64 " rows need more than %" PRIu64
                           " bytes; raise --max-memory",
                           job->name, out->in_rows, job->max_memory);
    }
}

bool gf_shrink_geometry(const gf_stream_job *job, gf_job *geometry) {
    if (job->backend->request(job->state, job->plan).whole_image)
        return false;
    if (geometry->slots > 2)
        geometry->slots = (geometry->slots + 1) / 2;
    else if (!job->rows_per_strip && geometry->out_rows > 1)
        geometry_set_rows(geometry, geometry->out_rows / 2);
    else if (geometry->slots > 1)
        geometry->slots = 1;
    else
        return false;
    return true;
}

/* Return the first input row of the job and store the number of input rows in *rows. */
static uint64_t geometry_first_input_row(const gf_job *job, uint64_t *rows) {
    return gf_input_rows(job->plan, job->first, gf_job_end(job), rows);
}

static bool geometry_ring_holds_all(const gf_job *job) {
    uint64_t input_rows;
    geometry_first_input_row(job, &input_rows);
    return gf_ring_rows(job) == input_rows;
}

/* Return the row in the ring of image row y of strip k. Each slot starts out_rows rows after the
 * previous one, with a halo above it. */
static uint64_t geometry_ring_row(const gf_job *job, uint64_t k, uint64_t y) {
    uint64_t input_rows;
    if (geometry_ring_holds_all(job))
        return y - geometry_first_input_row(job, &input_rows);
    /* row within the slot, its halo included */
    const uint64_t above = y + job->plan->halo - (job->first + k * job->out_rows);
    return k % job->slots * job->out_rows + above;
}

void gf_locate_strip(const gf_job *job, uint64_t k, gf_slot *slot) {
    const uint64_t begin = job->first + k * job->out_rows;
    const uint64_t end = geometry_min(begin + job->out_rows, gf_job_end(job));
    slot->out = (gf_rows){slot->out_buffer, job->out_stride, begin, end - begin};
    slot->in = (gf_rows){.stride = job->in_stride};
    slot->in.y0 = gf_input_rows(job->plan, begin, end, &slot->in.rows);
    slot->in.data = slot->ring + geometry_ring_row(job, k, slot->in.y0) * job->in_stride;
}

uint64_t gf_strips_before(const gf_job *job, uint64_t k) {
    const uint64_t slots = job->slots, slot = k % slots;
    if (k < slots)
        return 0;
    /* In the previous cycle of the ring: the strip in this slot, and the strips that share the rows
     * below it, unless the ring ends there. */
    const uint64_t shared_strips = (2 * job->plan->halo + job->out_rows - 1) / job->out_rows;
    return k - slots + 1 +
           (geometry_ring_holds_all(job) ? 0 : geometry_min(shared_strips, slots - 1 - slot));
}

/* ---- buffers of the slots -------------------------------------------------------------------- */

void *gf_aligned_alloc(size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, gf_align(bytes), &all))
        return NULL;
    return aligned_alloc(GF_ROW_ALIGN, all ? all : GF_ROW_ALIGN);
}

uint32_t gf_payload_pieces(const gf_job *job, uint32_t wanted) {
    const size_t head = job->filter->payload->bytes(job->plan, 0);
    const size_t all = job->filter->payload->bytes(job->plan, job->out_rows);
    uint64_t pieces = (all - head) / (4 * head) + 1;
    if (pieces > job->out_rows)
        pieces = job->out_rows;
    return pieces < wanted ? (uint32_t)pieces : wanted;
}

size_t gf_payload_stride(const gf_job *job, uint32_t pieces) {
    if (!job->plan->has_payload)
        return 0;
    const uint64_t rows = (job->out_rows + pieces - 1) / pieces;
    return gf_align(job->filter->payload->bytes(job->plan, rows));
}

gf_status gf_slots_alloc(const gf_job *job, uint32_t payload_pieces, gf_slot *slots,
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
