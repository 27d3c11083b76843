/* Division of an image into strips, and their layout in the ring. */
#include "engine/pipeline/pipeline.h"

#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"

/* Return the bytes of the output of a strip with up to `pieces` payloads. 128 bits suffice. */
static gf_u128 geometry_out_bytes(const gf_cut *job, uint32_t pieces) {
    const size_t row = (job->out.data ? 0 : job->out_stride) + job->plan->record;
    const gf_u128 rows = (gf_u128)job->out_rows * row;
    if (!job->plan->has_payload)
        return rows;
    pieces = gf_payload_pieces(job, pieces);
    return rows + (gf_u128)gf_payload_stride(job, pieces) * pieces;
}

/* Return whether strips with up to `pieces` payloads, and `extra` bytes, fit in the budget. */
static bool geometry_fits(const gf_cut *job, uint32_t pieces, gf_u128 extra, uint64_t budget) {
    const gf_u128 ring = (gf_u128)job->ring_rows * (job->plan->inputs * job->in_stride);
    return ring + geometry_out_bytes(job, pieces) * job->slots + extra <= budget;
}

/* Return the rows that a strip reads above and below its own, together. */
static uint64_t geometry_halo(const gf_cut *job) {
    return gf_map_span(job->plan, gf_cut_output(job), 1) - 1;
}

/* Return the output rows for a number of input rows, at most as many: both fit the cache. */
static uint64_t geometry_out_rows(const gf_plan *plan, uint64_t rows) {
    const double ratio = (double)gf_plan_rows(plan) / (double)plan->in.height;
    return ratio < 1 ? (uint64_t)((double)rows * ratio) : rows;
}

/* Return the memory of golden for one strip: its output, and rows and halos of each part. */
static gf_u128 geometry_golden_bytes(const gf_cut *job, uint32_t parts) {
    const gf_u128 row = job->plan->golden_bytes / gf_plan_rows(job->plan) + 1;
    const gf_u128 rows = job->out_rows + parts * (geometry_halo(job) + 2);
    return parts ? geometry_out_bytes(job, parts) + (job->plan->golden_bytes ? row * rows : 0) : 0;
}

static void geometry_set(gf_cut *job, uint64_t rows, uint32_t slots) {
    const gf_range all = gf_cut_output(job);
    job->out_rows = gf_min(rows, all.end - all.first);
    job->in_rows = gf_map_span(job->plan, all, job->out_rows);
    job->slots = slots;
    job->ring_rows = job->in[0].data ? 0 : gf_map_span(job->plan, all, slots * job->out_rows);
}

/* Raise the strip height for the halo: two strips read, and partly compute, the rows of a halo, so
 * high strips do less redundant work. */
static void geometry_raise_for_halo(gf_cut *job, const gf_strip_request *request) {
    const uint64_t rows = job->out_rows, halo = (geometry_halo(job) + 1) / 2;
    for (uint64_t times = request->halos; times > 0; times /= 2) {
        const uint64_t raised = geometry_out_rows(job->plan, times * halo);
        if (rows >= raised)
            return;
        geometry_set(job, raised, job->slots);
        if (times == 1 || geometry_fits(job, request->pieces, 0, request->max))
            return;
        geometry_set(job, rows, job->slots);
    }
}

/* Fit the strips to the rows that the source decodes together. Without output rows and halo, they
 * are multiples of them: it decodes in the ring, without a copy. A histogram of a tiled file takes
 * 0.9 times as long. Otherwise the source holds more rows than the ring, which is then short. */
static void geometry_fit_to_source(gf_cut *job, gf_strip_request *request,
                                   const gf_stream_job *stream) {
    enum { SHORT_BYTES = 1 << 20 };
    const uint64_t rows = job->out_rows, together = stream->rows_together;
    const bool overlaps = !gf_map_one_to_one(job->plan);
    if (together == 0)
        return;
    if (overlaps || job->plan->out.width != 0) {
        const uint32_t slots = overlaps ? 5 : 4;
        if (rows < together && request->slots > slots) {
            request->slots = slots;
            if (!overlaps && rows > SHORT_BYTES / job->in_stride)
                geometry_set(job, SHORT_BYTES / job->in_stride + 1, job->slots);
        }
        return;
    }
    if (job->first % together != 0)
        return;
    if (rows >= together) {
        geometry_set(job, rows - rows % together, job->slots);
        return;
    }
    geometry_set(job, together, job->slots > 1 ? stream->groups + 1 : 1); /* one is computed */
    if (geometry_fits(job, request->pieces, 0, request->max))
        request->slots = job->slots;
    else
        geometry_set(job, rows, job->slots);
}

/* Strips in memory need no memory of their own: rows in halos, and bytes of input with a halo. */
#define MEMORY_HALOS 16
#define MEMORY_BYTES (UINT64_C(2) << 20)

gf_status gf_choose_geometry(const gf_stream_job *job, gf_cut *out, gf_error *error) {
    const gf_plan *plan = job->plan;
    gf_strip_request request = job->on.backend->request(job->on.state, plan);
    if (job->in[0].data && request.in_memory) {
        request.halos = MEMORY_HALOS;
        if (!gf_map_one_to_one(plan))
            request.bytes = gf_max(request.bytes, MEMORY_BYTES);
    }
    if (job->in[0].data && job->out.data && request.in_memory && request.pieces == 1)
        request.slots = 1; /* nothing overlaps: the calling thread computes */
    *out = (gf_cut){.plan = plan,
                    .first = job->first,
                    .end = job->end,
                    .in_stride = gf_align(gf_row_bytes(&plan->in)),
                    .out_stride = plan->out.width ? gf_align(gf_row_bytes(&plan->out)) : 0};
    if (request.in_memory) {
        memcpy(out->in, job->in, sizeof out->in);
        out->out = job->out;
    }
    const uint64_t rows =
        request.whole_image ? gf_plan_rows(plan)
        : job->rows_per_strip
            ? job->rows_per_strip
            : geometry_out_rows(plan, request.bytes / (plan->inputs * out->in_stride));
    geometry_set(out, rows ? rows : 1, request.slots);
    if (!request.whole_image && !job->rows_per_strip) {
        geometry_raise_for_halo(out, &request);
        if (request.fits_source)
            geometry_fit_to_source(out, &request, job);
    }
    for (uint32_t slots = request.slots;;) {
        geometry_set(out, out->out_rows, (uint32_t)gf_min(slots, gf_count_strips(out)));
        const gf_u128 golden =
            geometry_golden_bytes(out, request.golden_parts + job->consumer->golden_parts);
        const gf_u128 extra = golden + request.extra + job->consumer->extra + plan->state_bytes;
        if (geometry_fits(out, request.pieces, extra, job->max_memory))
            return GF_OK;
        if (out->slots > 2)
            slots = out->slots - 1;
        else if (!request.whole_image && !job->rows_per_strip && out->out_rows > 1)
            geometry_set(out, out->out_rows / 2, slots);
        else if (out->slots > 1)
            slots = 1;
        else
            return gf_fail(error, GF_FAILED,
                           "%s: strips of %" PRIu64 " rows need more than %" PRIu64
                           " bytes; raise --max-memory",
                           job->name, out->in_rows, job->max_memory);
    }
}

bool gf_shrink_geometry(const gf_stream_job *job, gf_cut *geometry) {
    if (job->on.backend->request(job->on.state, job->plan).whole_image)
        return false;
    if (geometry->slots > 2)
        geometry_set(geometry, geometry->out_rows, (geometry->slots + 1) / 2);
    else if (!job->rows_per_strip && geometry->out_rows > 1)
        geometry_set(geometry, geometry->out_rows / 2, geometry->slots);
    else if (geometry->slots > 1)
        geometry_set(geometry, geometry->out_rows, 1);
    else
        return false;
    return true;
}
