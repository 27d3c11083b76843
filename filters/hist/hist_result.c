/* What hist keeps on the host: from states, records and payloads. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hist/hist_differ.h"
#include "hist/hist_result.h"
#include "io/sample_sink.h"

static void merge(const gf_plan *plan, void *state, const void *other) {
    uint64_t *to = state;
    const uint64_t *from = other;
    for (uint64_t i = 0; i < gf_hist_counters((const gf_hist_plan *)plan); i++)
        to[i] += from[i];
}

static size_t payload_bytes(const gf_plan *head, uint64_t rows) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    return gf_hist_head_bytes(plan) +
           gf_hist_sample_bytes(plan, rows * head->in.width * plan->measured);
}

static size_t payload_used(const gf_plan *head, const void *payload) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const uint64_t *offsets = payload;
    return gf_hist_head_bytes(plan) + gf_hist_sample_bytes(plan, offsets[plan->extracts]);
}

static void layout(const gf_plan *head, gf_sample_layout *out) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    *out = (gf_sample_layout){.type = head->in.type,
                              .width = head->in.width,
                              .channels = plan->measured,
                              .with_bin = plan->extracts > 1,
                              .bins = plan->bins};
    for (uint32_t s = 0; s < plan->measured; s++) {
        out->names[s] = gf_hist_channel_name(plan, s);
        out->indices[s] = plan->luma ? GF_SAMPLE_LUMA : (uint8_t)(plan->first + s);
    }
}

static void close_data(void *data) {
    gf_hist_data *hist = data;
    if (!hist)
        return;
    gf_hist_samples_close(hist->samples);
    free(hist->counts);
    free(hist->rows);
    free(hist);
}

static gf_status open_data(const gf_plan *head, const gf_keep *keep, void **out, gf_error *error) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const uint64_t counters = gf_hist_counters(plan);
    gf_hist_data *hist = calloc(1, sizeof *hist);
    gf_status status = GF_OK;
    if (hist)
        hist->counts = calloc((size_t)counters, sizeof *hist->counts);
    if (hist && plan->per_row)
        hist->rows = calloc((size_t)(counters * head->in.height), sizeof *hist->rows);
    if (!hist || !hist->counts || (plan->per_row && !hist->rows))
        status = gf_fail_memory(error, keep->name, head->result_bytes, "the counts");
    else if (plan->extracts)
        status = gf_hist_samples_open(plan, keep, &hist->samples, error);
    if (status) {
        close_data(hist);
        hist = NULL;
    }
    *out = hist;
    return status;
}

static gf_status take_rows(const gf_plan *head, void *data, const gf_rows *out, gf_error *error) {
    (void)error;
    gf_hist_data *hist = data;
    const uint64_t counters = gf_hist_counters((const gf_hist_plan *)head);
    for (uint64_t y = out->y0; y < out->y0 + out->rows; y++) {
        const uint64_t *record = gf_record(head, out, y);
        memcpy(hist->rows + y * counters, record, head->record);
        for (uint64_t i = 0; i < counters; i++)
            hist->counts[i] += record[i];
    }
    return GF_OK;
}

static gf_status take_payload(const gf_plan *head, void *data, const void *payload,
                              gf_error *error) {
    (void)head;
    return gf_hist_samples_take(((gf_hist_data *)data)->samples, payload, error);
}

static gf_status join(const gf_plan *head, void *data, const gf_ranks *ranks, gf_error *error) {
    gf_hist_data *hist = data;
    (void)head;
    return hist->samples ? gf_hist_samples_join(hist->samples, ranks, error) : GF_OK;
}

static gf_status finish(const gf_plan *head, void *data, const void *state, gf_error *error) {
    gf_hist_data *hist = data;
    if (head->state_bytes)
        memcpy(hist->counts, state, (size_t)head->state_bytes);
    return hist->samples ? gf_hist_samples_finish(hist->samples, error) : GF_OK;
}

const gf_measure gf_hist_measure = {
    .merge = merge,
    .payload_bytes = payload_bytes,
    .payload_used = payload_used,
    .differ = gf_hist_differ,
    .layout = layout,
    .open = open_data,
    .rows = take_rows,
    .payload = take_payload,
    .join = join,
    .finish = finish,
    .describe = gf_hist_describe,
    .cell = gf_hist_cell,
    .close = close_data,
};
