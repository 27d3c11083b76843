/* Consumer of an image: writes rows to the sink and passes measurements to the measure. */
#include "engine/pipeline/pipeline.h"

#include <assert.h>

#include "core/error.h"

static gf_status delivery_take(gf_delivery *delivery, const gf_slot *slot, gf_error *error) {
    const gf_measure *measure = delivery->measure;
    const gf_plan *plan = delivery->plan;
    gf_sink *sink = delivery->sink;
    const gf_node_rows *out = &slot->out[0];
    const uint64_t end = out->rows.y0 + out->rows.rows;
    const uint64_t first = gf_max(delivery->next, out->rows.y0);
    gf_status status = GF_OK;
    if (first >= end)
        return GF_OK;
    assert(!plan->has_payload || first == out->rows.y0);
    delivery->next = end;
    const gf_rows rows = gf_rows_part(&out->rows, first, end - first);
    if (sink)
        status = sink->ops->write(sink, rows.data, rows.stride, rows.rows, error);
    if (!status && delivery->digests)
        delivery->digest = gf_digest_rows(delivery->digest, &rows, gf_row_bytes(&plan->out));
    if (!status && plan->record) {
        const gf_rows all = {out->records, plan->record, out->rows.y0, out->rows.rows};
        const gf_rows records = gf_rows_part(&all, first, end - first);
        status = measure->rows(plan, delivery->data, &records, error);
    }
    for (uint32_t i = 0; i < out->payload_pieces && !status; i++)
        status =
            measure->payload(plan, delivery->data, out->payloads + i * out->payload_stride, error);
    return status;
}

static gf_status delivery_strip(gf_consumer *consumer, const gf_slot *slot, gf_error *error) {
    gf_delivery *delivery = (gf_delivery *)consumer;
    const gf_watch *watch = delivery->watch;
    const double began = gf_now();
    const gf_status status = delivery_take(delivery, slot, error);
    gf_busy_add(&delivery->report->busy[GF_ENCODING], (gf_busy){gf_now() - began, 1});
    if (status || !watch || !watch->progress)
        return status;
    const uint64_t done = slot->in[0].y0 + slot->in[0].rows - watch->first;
    if (done <= delivery->seen) /* the strip has no new rows, or another backend reads again */
        return GF_OK;
    delivery->seen = done;
    const gf_progress now = {.item = watch->item,
                             .in = delivery->plan->in,
                             .done = watch->pass * watch->rows + done,
                             .total = watch->passes * watch->rows};
    return watch->progress(watch->context, &now)
               ? GF_OK
               : gf_fail(error, GF_FAILED, "%s: cancelled", watch->name);
}

static gf_status delivery_state(gf_consumer *consumer, uint32_t node, const void *state,
                                gf_error *error) {
    gf_delivery *delivery = (gf_delivery *)consumer;
    (void)node;
    return delivery->measure->finish(delivery->plan, delivery->data, state, error);
}

void gf_delivery_init(gf_delivery *delivery) {
    delivery->base = (gf_consumer){.strip = delivery_strip, .state = delivery_state};
}
