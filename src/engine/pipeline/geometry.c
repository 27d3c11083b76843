/* Choice of the strip height and the number of slots. */
#include "engine/pipeline/pipeline.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"

static const gf_plan *geometry_plan(const gf_cut *cut, uint32_t node) {
    return cut->nodes->node[node].plan;
}

/* Return whether strips of an edge share rows. */
static bool geometry_overlaps(const gf_nodes *nodes) {
    bool overlaps = false;
    for (uint32_t i = 0; i < nodes->count; i++)
        overlaps = overlaps || !gf_map_one_to_one(nodes->node[i].plan);
    return overlaps;
}

/* Return the bytes of the records of a strip, and of up to `pieces` payloads per node. 128 bits
 * suffice. */
static gf_u128 geometry_slot_bytes(const gf_cut *cut, uint32_t pieces) {
    gf_u128 bytes = 0;
    for (uint32_t i = 0; i < cut->nodes->count; i++) {
        const gf_plan *plan = geometry_plan(cut, i);
        bytes += (gf_u128)cut->edge[i + 1].max_rows * plan->record;
        if (plan->has_payload) {
            const uint32_t count = gf_payload_pieces(cut, i, pieces);
            bytes += (gf_u128)gf_payload_stride(cut, i, count) * count;
        }
    }
    return bytes;
}

/* Return the bytes of strips with up to `pieces` payloads. */
static gf_u128 geometry_bytes(const gf_cut *cut, uint32_t pieces) {
    gf_u128 bytes = geometry_slot_bytes(cut, pieces) * cut->slots;
    for (uint32_t e = 0; e <= cut->nodes->count; e++) {
        bytes += (gf_u128)cut->edge[e].ring_rows * cut->edge[e].stride;
        if (e && gf_node_has_second(&cut->nodes->node[e - 1]) && !cut->in) {
            const gf_edge_cut *from = &cut->edge[cut->nodes->node[e - 1].from];
            bytes += (gf_u128)cut->slots * from->max_rows * from->stride;
        }
    }
    return bytes;
}

/* Return the most rows that strips of an edge share, in rows of the edge with the largest ones. */
static uint64_t geometry_halo(const gf_cut *cut) {
    size_t largest = 1;
    uint64_t most = 0;
    for (uint32_t e = 0; e <= cut->nodes->count; e++)
        largest = cut->edge[e].stride > largest ? cut->edge[e].stride : largest;
    for (uint32_t e = 0; e <= cut->nodes->count; e++)
        most = gf_max(most, (cut->edge[e].keep * cut->edge[e].stride + largest - 1) / largest);
    return most;
}

/* Return the memory of golden for one strip: its output, and rows and halos of each part. */
static gf_u128 geometry_golden_bytes(const gf_cut *cut, uint32_t parts) {
    gf_u128 bytes = parts ? geometry_slot_bytes(cut, parts) : 0;
    for (uint32_t i = 0; i < cut->nodes->count && parts; i++) {
        const gf_plan *plan = geometry_plan(cut, i);
        const gf_edge_cut *from = &cut->edge[cut->nodes->node[i].from], *to = &cut->edge[i + 1];
        const gf_u128 row = plan->golden_bytes / gf_plan_rows(plan) + 1;
        bytes += (gf_u128)(to->keep + to->max_rows) * to->stride;
        bytes += plan->golden_bytes ? row * (to->max_rows + parts * (from->keep + 2)) : 0;
    }
    return bytes;
}

/* Return the number of images whose rows are read with those of an edge: itself and second ones. */
static uint32_t geometry_images(const gf_nodes *nodes, uint32_t edge) {
    uint32_t images = 1;
    for (uint32_t i = edge; i < nodes->count; i++)
        images += nodes->node[i].from == edge && gf_node_has_second(&nodes->node[i]);
    return images;
}

/* Return the strip height for which the largest edge has a number of bytes. */
static uint64_t geometry_height(const gf_cut *cut, uint64_t bytes) {
    const double height = (double)gf_edge_rows(cut->nodes, 0);
    double most = 0;
    for (uint32_t e = 0; e <= cut->nodes->count; e++) {
        const double row = (double)cut->edge[e].stride * geometry_images(cut->nodes, e);
        most = fmax(most, row * fmax((double)gf_edge_rows(cut->nodes, e) / height, 1));
    }
    return (uint64_t)((double)bytes / most);
}

/* Raise the strip height for the halo: two strips read, and partly compute, the rows of a halo, so
 * high strips do less redundant work. */
static void geometry_raise_for_halo(gf_cut *cut, const gf_strip_request *request) {
    const uint64_t rows = cut->height, halo = (geometry_halo(cut) + 1) / 2;
    for (uint64_t times = request->halos; times > 0; times /= 2) {
        if (rows >= times * halo)
            return;
        gf_cut_set(cut, times * halo, cut->slots);
        if (times == 1 || geometry_bytes(cut, request->pieces) <= request->max)
            return;
        gf_cut_set(cut, rows, cut->slots);
    }
}

/* Fit the strips to the rows that the source decodes together. Without output rows and halo, they
 * are multiples of them: it decodes in the ring, without a copy. A histogram of a tiled file takes
 * 0.9 times as long. Otherwise the source holds more rows than the ring, which is then short. */
static void geometry_fit_to_source(gf_cut *cut, gf_strip_request *request,
                                   const gf_stream_job *stream) {
    enum { SHORT_BYTES = 1 << 20 };
    const uint64_t rows = cut->height, together = stream->rows_together;
    const size_t stride = cut->edge[0].stride;
    const bool overlaps = geometry_overlaps(cut->nodes);
    bool makes_image = false;
    for (uint32_t i = 0; i < cut->nodes->count; i++)
        makes_image = makes_image || cut->edge[i + 1].stride;
    if (together == 0)
        return;
    if (overlaps || makes_image) {
        const uint32_t slots = overlaps ? 5 : 4;
        if (rows < together && request->slots > slots) {
            request->slots = slots;
            if (!overlaps && rows > SHORT_BYTES / stride)
                gf_cut_set(cut, SHORT_BYTES / stride + 1, cut->slots);
        }
        return;
    }
    if (cut->edge[0].start % together != 0)
        return;
    if (rows >= together) {
        gf_cut_set(cut, rows - rows % together, cut->slots);
        return;
    }
    gf_cut_set(cut, together, cut->slots > 1 ? stream->groups + 1 : 1); /* one is computed */
    if (geometry_bytes(cut, request->pieces) <= request->max)
        request->slots = cut->slots;
    else
        gf_cut_set(cut, rows, cut->slots);
}

/* Strips in memory need no memory of their own: rows in halos, and bytes of input with a halo. */
#define MEMORY_HALOS 16
#define MEMORY_BYTES (UINT64_C(2) << 20)

gf_status gf_choose_geometry(const gf_stream_job *job, gf_cut *cut, gf_error *error) {
    gf_strip_request request = job->on.backend->request(job->on.state, job->nodes);
    if (job->in && request.in_memory) {
        request.halos = MEMORY_HALOS;
        if (geometry_overlaps(job->nodes))
            request.bytes = gf_max(request.bytes, MEMORY_BYTES);
    }
    if (job->in && job->out.data && request.in_memory && request.pieces == 1)
        request.slots = 1; /* nothing overlaps: the calling thread computes */
    *cut = (gf_cut){.nodes = job->nodes, .source = job->source, .apart = request.apart};
    if (request.in_memory) {
        cut->in = job->in;
        cut->out = job->out;
    }
    gf_cut_set(cut, UINT64_MAX, request.slots); /* for the strides */
    const uint64_t rows = request.whole_image   ? UINT64_MAX
                          : job->rows_per_strip ? job->rows_per_strip
                                                : geometry_height(cut, request.bytes);
    gf_cut_set(cut, gf_max(rows, 1), request.slots);
    if (!request.whole_image && !job->rows_per_strip) {
        geometry_raise_for_halo(cut, &request);
        if (request.fits_source)
            geometry_fit_to_source(cut, &request, job);
    }
    gf_u128 extra = request.extra;
    for (uint32_t i = 0; i < job->nodes->count; i++) /* merged, and those of the verifier */
        extra += (gf_u128)geometry_plan(cut, i)->state_bytes * (1 + job->consumer->golden_parts);
    for (uint32_t slots = request.slots;;) {
        gf_cut_set(cut, cut->height, (uint32_t)gf_min(slots, cut->strips));
        const gf_u128 golden =
            geometry_golden_bytes(cut, request.golden_parts + job->consumer->golden_parts);
        const gf_u128 bytes = geometry_bytes(cut, request.pieces) + golden + extra;
        if (bytes <= job->max_memory) {
            cut->bytes = (uint64_t)bytes;
            return GF_OK;
        }
        if (cut->slots > 2)
            slots = cut->slots - 1;
        else if (!request.whole_image && !job->rows_per_strip && cut->height > 1)
            gf_cut_set(cut, cut->height / 2, slots);
        else if (cut->slots > 1)
            slots = 1;
        else
            return gf_fail(error, GF_FAILED,
                           "%s: strips of %" PRIu64 " rows need more than %" PRIu64
                           " bytes; raise --max-memory",
                           job->name, cut->edge[0].keep + cut->edge[0].max_rows, job->max_memory);
    }
}

bool gf_shrink_geometry(const gf_stream_job *job, gf_cut *cut) {
    if (job->on.backend->request(job->on.state, job->nodes).whole_image)
        return false;
    if (cut->slots > 2)
        gf_cut_set(cut, cut->height, (cut->slots + 1) / 2);
    else if (!job->rows_per_strip && cut->height > 1)
        gf_cut_set(cut, cut->height / 2, cut->slots);
    else if (cut->slots > 1)
        gf_cut_set(cut, cut->height, 1);
    else
        return false;
    return true;
}
