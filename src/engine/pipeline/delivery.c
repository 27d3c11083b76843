/* Consumer of an image: writes rows to the sinks and passes measurements to the measures. */
#include "engine/pipeline/pipeline.h"

#include <assert.h>

#include "core/error.h"

/* Write the new rows of a strip of a node, from `first` on. */
static gf_status delivery_write(const gf_delivery *delivery, uint32_t node, const gf_rows *out,
                                uint64_t first, gf_error *error) {
    const gf_rows rows = gf_rows_part(out, first, out->y0 + out->rows - first);
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < delivery->written_count && !status; i++) {
        gf_written *to = &delivery->written[i];
        if (to->edge != node + 1 || !to->sink)
            continue;
        status = to->sink->ops->write(to->sink, rows.data, rows.stride, rows.rows, error);
        if (!status && delivery->digests)
            to->digest = gf_digest_rows(to->digest, &rows,
                                        gf_row_bytes(&delivery->nodes->node[node].plan->out));
    }
    return status;
}

/* Take what a node has made of a strip. */
static gf_status delivery_take_node(gf_delivery *delivery, uint32_t node, const gf_slot *slot,
                                    gf_error *error) {
    gf_delivered *to = &delivery->node[node];
    const gf_measure *measure = to->measure;
    const gf_plan *plan = delivery->nodes->node[node].plan;
    const gf_node_rows *out = &slot->out[node];
    const uint64_t end = out->rows.y0 + out->rows.rows;
    const uint64_t first = gf_max(to->next, out->rows.y0);
    if (first >= end)
        return GF_OK;
    assert(!plan->has_payload || first == out->rows.y0);
    to->next = end;
    gf_status status = delivery_write(delivery, node, &out->rows, first, error);
    if (!status && plan->record && measure) {
        const gf_rows all = {out->records, plan->record, out->rows.y0, out->rows.rows};
        const gf_rows records = gf_rows_part(&all, first, end - first);
        status = measure->rows(plan, to->data, &records, error);
    }
    for (uint32_t i = 0; i < out->payload_pieces && measure && !status; i++)
        status = measure->payload(plan, to->data, out->payloads + i * out->payload_stride, error);
    return status;
}

static gf_status delivery_strip(gf_consumer *consumer, const gf_slot *slot, gf_error *error) {
    gf_delivery *delivery = (gf_delivery *)consumer;
    const gf_watch *watch = delivery->watch;
    const double began = gf_now();
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < delivery->nodes->count && !status; i++)
        status = delivery_take_node(delivery, i, slot, error);
    gf_busy_add(&delivery->report->busy[GF_ENCODING], (gf_busy){gf_now() - began, 1});
    if (status || !watch || !watch->progress)
        return status;
    const uint64_t done = slot->in.y0 + slot->in.rows - watch->first;
    if (done <= delivery->seen) /* the strip has no new rows, or another backend reads again */
        return GF_OK;
    delivery->seen = done;
    const gf_progress now = {.item = watch->item,
                             .in = delivery->nodes->node[0].plan->in,
                             .done = watch->pass * watch->rows + done,
                             .total = watch->passes * watch->rows};
    return watch->progress(watch->context, &now)
               ? GF_OK
               : gf_fail(error, GF_FAILED, "%s: cancelled", watch->name);
}

static gf_status delivery_state(gf_consumer *consumer, uint32_t node, const void *state,
                                gf_error *error) {
    const gf_delivered *to = &((gf_delivery *)consumer)->node[node];
    const gf_plan *plan = ((gf_delivery *)consumer)->nodes->node[node].plan;
    return to->measure ? to->measure->finish(plan, to->data, state, error) : GF_OK;
}

void gf_delivery_init(gf_delivery *delivery) {
    delivery->base = (gf_consumer){.strip = delivery_strip, .state = delivery_state};
}
