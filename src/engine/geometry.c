/* Cutting an image into bands. */
#include "engine/geometry.h"

#include <assert.h>
#include <inttypes.h>

#include "error.h"

static uint64_t min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Do the bands, with up to `pieces` payloads each, and `extra` bytes beside them keep to a budget?
 */
static bool fits(const gf_job *job, uint32_t pieces, uint64_t extra, uint64_t budget) {
    uint64_t in, out, both, all, payload = 0;
    if (job->plan->has_payload) {
        pieces = gf_payload_pieces(job, pieces);
        if (__builtin_mul_overflow(gf_payload_stride(job, pieces), pieces, &payload))
            return false;
    }
    return !__builtin_mul_overflow(job->in_rows, job->in_stride, &in) &&
           !__builtin_mul_overflow(job->out_rows, job->out_stride, &out) &&
           !__builtin_add_overflow(in, out, &both) &&
           !__builtin_add_overflow(both, payload, &both) &&
           !__builtin_mul_overflow(both, job->slots, &all) && extra <= budget &&
           all <= budget - extra;
}

/* What the ring may grow to for the sake of a halo. */
#define RING_BYTES (UINT64_C(48) << 20)

static void set_rows(gf_job *job, uint64_t rows, uint64_t height) {
    job->out_rows = min(rows, height);
    job->in_rows = min(job->out_rows + 2 * job->plan->halo, height);
}

uint64_t gf_count_bands(const gf_job *job) {
    assert(job->out_rows > 0);
    return (job->plan->in.height - 1) / job->out_rows + 1;
}

gf_status gf_choose_geometry(const gf_stream_job *job, gf_job *out, gf_error *error) {
    const gf_plan *plan = job->plan;
    const uint64_t height = plan->in.height;
    gf_band_wish wish = job->backend->wish(job->state, plan);
    *out = (gf_job){.filter = job->filter,
                    .plan = plan,
                    .in_stride = plan->inputs * gf_align(gf_row_bytes(&plan->in)),
                    .out_stride = gf_out_stride(plan),
                    .slots = wish.slots};
    uint64_t rows = height;
    if (!wish.whole_image) {
        rows = job->band_rows ? job->band_rows : wish.bytes / out->in_stride;
        if (rows < 1)
            rows = 1;
    }
    set_rows(out, rows, height);
    /* With a halo a low band copies more rows than it computes: twice the halo's height is better,
     * as long as the ring stays small, and once is the least. */
    for (uint64_t times = 2; times > 0 && !wish.whole_image && !job->band_rows; times--)
        if (rows < times * plan->halo) {
            set_rows(out, times * plan->halo, height);
            if (fits(out, wish.pieces, 0, RING_BYTES))
                break;
            set_rows(out, rows > plan->halo ? rows : plan->halo, height);
        }
    for (uint32_t slots = wish.slots;;) {
        /* Two bands need two slots: the second one's halo is copied from the first. */
        out->slots = (uint32_t)min(slots, gf_count_bands(out));
        if (fits(out, wish.pieces, wish.extra + plan->state_bytes, job->max_memory))
            return GF_OK;
        if (out->slots > 2)
            slots = out->slots - 1;
        else if (!wish.whole_image && !job->band_rows && out->out_rows > 1)
            set_rows(out, out->out_rows / 2, height);
        else
            return gf_fail(error, GF_FAILED,
                           "%s: bands of %" PRIu64 " rows need more than %" PRIu64
                           " bytes; raise --max-memory",
                           job->name, out->in_rows, job->max_memory);
    }
}

void gf_place_band(const gf_job *job, uint64_t k, gf_slot *slot) {
    const uint64_t height = job->plan->in.height, halo = job->plan->halo;
    uint64_t begin = k * job->out_rows, end = min(begin + job->out_rows, height);
    slot->out = (gf_rows){slot->out_buffer, job->out_stride, begin, end - begin};
    uint64_t first = begin < halo ? 0 : begin - halo;
    slot->in = (gf_rows){slot->in_buffer, job->in_stride, first, min(end + halo, height) - first};
}
