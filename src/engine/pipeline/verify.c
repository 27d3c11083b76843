/* Verification of strips by golden. Golden computes each strip into its own memory, divided into
 * parts of some rows, one per thread. A part includes its halo, so golden can compute it alone. */
#include "engine/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"

enum { VERIFY_TEXT = 256 };

/* Outcome of one part of a strip. */
struct gf_verify_part {
    gf_error error;          /* of golden */
    char where[VERIFY_TEXT]; /* first difference; empty for none */
};

/* Return the index of the first different item; there is at least one. */
static uint64_t verify_first_of(const void *a, const void *b, size_t item) {
    const unsigned char *p = a, *q = b;
    uint64_t i = 0;
    while (memcmp(p + i * item, q + i * item, item) == 0)
        i++;
    return i;
}

/* Format a sample; for f32 include its bits, because different values may print alike. */
static void verify_sample_text(gf_type type, const unsigned char *row, uint64_t i, char text[64]) {
    union {
        uint16_t u16;
        float f32;
        uint32_t bits;
    } sample = {.bits = 0};
    char number[40];
    memcpy(&sample, row + i * gf_type_bytes(type), gf_type_bytes(type)); /* little endian */
    const gf_value value = gf_value_sample(type, type == GF_F32 ? sample.f32 : (float)sample.u16);
    gf_value_format(&value, number, sizeof number);
    if (type == GF_F32)
        snprintf(text, 64, "%s (0x%08" PRIx32 ")", number, sample.bits);
    else
        snprintf(text, 64, "%s", number);
}

static void verify_describe_word(const char *of, const void *golden, const void *actual,
                                 char where[VERIFY_TEXT]) {
    const uint64_t i = verify_first_of(golden, actual, sizeof(uint64_t));
    uint64_t is, should;
    memcpy(&is, (const unsigned char *)actual + i * sizeof is, sizeof is);
    memcpy(&should, (const unsigned char *)golden + i * sizeof should, sizeof should);
    snprintf(where, VERIFY_TEXT,
             "number %" PRIu64 " of the measurement of %s is 0x%" PRIx64 ", expected 0x%" PRIx64, i,
             of, is, should);
}

/* Describe the first difference between the rows of golden's strip, image and records, and those
 * of the strip to verify in `where`. Leave it unchanged if there is none. */
static void verify_rows(const gf_plan *plan, const gf_strip *golden, const gf_strip *actual,
                        char where[VERIFY_TEXT]) {
    const gf_format *format = &plan->out;
    const size_t row_bytes = format->width ? gf_row_bytes(format) : 0;
    for (uint64_t y = golden->out.y0; y < golden->out.y0 + golden->out.rows; y++) {
        const unsigned char *p = gf_row(&golden->out, y), *q = gf_row(&actual->out, y);
        if (row_bytes && memcmp(p, q, row_bytes) != 0) {
            const uint64_t i = verify_first_of(p, q, gf_type_bytes(format->type));
            char is[64], should[64];
            verify_sample_text(format->type, q, i, is);
            verify_sample_text(format->type, p, i, should);
            snprintf(where, VERIFY_TEXT,
                     "x %" PRIu64 ", y %" PRIu64 ", channel %" PRIu64 " is %s, expected %s",
                     i / format->channels, y, i % format->channels, is, should);
            return;
        }
        const void *a = gf_record(plan, golden, y), *b = gf_record(plan, actual, y);
        if (plan->record && memcmp(a, b, plan->record) != 0) {
            char of[40];
            snprintf(of, sizeof of, "row %" PRIu64, y);
            verify_describe_word(of, a, b, where);
            return;
        }
    }
}

static void verify_end(gf_consumer *consumer) {
    gf_verifier *verifier = (gf_verifier *)consumer;
    free(verifier->rows);
    free(verifier->payloads.data);
    free(verifier->states);
    free(verifier->digests);
    free(verifier->part);
}

static const gf_plan *verify_plan(const gf_verifier *verifier) {
    return verifier->cut.nodes->node[0].plan;
}

static gf_status verify_begin(gf_consumer *consumer, const gf_cut *cut, gf_error *error) {
    gf_verifier *verifier = (gf_verifier *)consumer;
    const gf_plan *plan = cut->nodes->node[0].plan;
    const gf_edge_cut *to = &cut->edge[1];
    const size_t state_bytes = gf_align((size_t)plan->state_bytes);
    const size_t rows_bytes = (size_t)to->max_rows * (to->stride + plan->record);
    uint32_t parts = consumer->golden_parts;
    if (plan->has_payload) {
        parts = gf_payload_pieces(cut, 0, parts);
        verifier->payloads.stride = gf_payload_stride(cut, 0, parts);
        verifier->payloads.data = gf_aligned_alloc(parts, verifier->payloads.stride);
    }
    verifier->cut = *cut;
    verifier->parts = parts;
    verifier->rows = gf_aligned_alloc(1, rows_bytes);
    verifier->state_bytes = state_bytes;
    verifier->states = gf_aligned_alloc(parts, state_bytes);
    verifier->digests = calloc(cut->slots, sizeof *verifier->digests);
    verifier->part = calloc(parts, sizeof *verifier->part);
    if (verifier->rows && verifier->states && verifier->digests && verifier->part &&
        (!plan->has_payload || verifier->payloads.data)) {
        memset(verifier->states, 0, parts * state_bytes);
        return GF_OK;
    }
    verify_end(consumer);
    return gf_fail_memory(error, "golden",
                          rows_bytes + parts * (state_bytes + verifier->payloads.stride),
                          "a strip for comparison");
}

static uint64_t verify_digest_input(const gf_plan *plan, const gf_slot *slot) {
    uint64_t digest = 0;
    for (uint32_t i = 0; i < plan->inputs; i++)
        digest = gf_digest_rows(digest, &slot->in[i], gf_row_bytes(&plan->in));
    return digest;
}

static void verify_filled(gf_consumer *consumer, const gf_slot *slot) {
    const gf_verifier *verifier = (const gf_verifier *)consumer;
    verifier->digests[slot->index] = verify_digest_input(verify_plan(verifier), slot);
}

static void verify_run_part(void *context, uint32_t task, uint32_t thread) {
    (void)thread;
    const gf_verifier *verifier = context;
    const gf_plan *plan = verify_plan(verifier);
    const gf_edge_cut *to = &verifier->cut.edge[1];
    struct gf_verify_part *part = &verifier->part[task];
    const gf_strip actual = gf_slot_strip(plan, verifier->slot->in, &verifier->slot->out[0]);
    gf_strip golden = actual; /* with golden's buffers as output */
    golden.out.data = verifier->rows;
    golden.out.stride = to->stride;
    golden.records = verifier->rows + to->max_rows * to->stride;
    golden.state = verifier->states + task * verifier->state_bytes;
    if (plan->has_payload)
        golden.payload = verifier->payloads.data + task * verifier->payloads.stride;
    golden = gf_strip_part(plan, &golden, task, verifier->part_count);
    part->where[0] = 0;
    part->error.status = GF_OK;
    if (!plan->filter->golden(plan, &golden, &part->error))
        verify_rows(plan, &golden, &actual, part->where);
}

/* Fail with the difference, and advise the user which component to test. */
static gf_status verify_fail(const gf_verifier *verifier, const char *where, gf_error *error) {
    const gf_stream_job *stream = verifier->stream;
    const gf_backend *backend = stream->on.backend;
    const bool host = backend == &gf_backend_cpu || backend == &gf_backend_golden;
    char device[sizeof((gf_report *)0)->device];
    backend->describe(stream->on.state, device, sizeof device);
    return gf_fail(error, GF_FAILED, "%s: %s; %s (%s) is unreliable: %s", stream->name, where,
                   backend->name, device,
                   host ? "test this machine's memory" : "use --backend cpu, and test the device");
}

static gf_status verify_strip(gf_consumer *consumer, const gf_slot *slot, gf_error *error) {
    gf_verifier *verifier = (gf_verifier *)consumer;
    const gf_plan *plan = verify_plan(verifier);
    char where[VERIFY_TEXT];
    if (verify_digest_input(plan, slot) != verifier->digests[slot->index]) {
        snprintf(where, sizeof where,
                 "input rows %" PRIu64 " to %" PRIu64 " changed in memory during the computation",
                 slot->in[0].y0, slot->in[0].y0 + slot->in[0].rows - 1);
        return verify_fail(verifier, where, error);
    }
    const gf_node_rows *out = &slot->out[0];
    if (out->rows.rows == 0)
        return verifier->next->strip(verifier->next, slot, error);
    verifier->slot = slot;
    verifier->part_count = (uint32_t)gf_min(out->rows.rows, verifier->parts);
    gf_work work = {.run = verify_run_part, .context = verifier, .count = verifier->part_count};
    gf_pool_run(verifier->pool, &work);
    for (uint32_t i = 0; i < verifier->part_count; i++) {
        const struct gf_verify_part *part = &verifier->part[i];
        if (part->error.status)
            return gf_return_error(&part->error, error);
        if (part->where[0])
            return verify_fail(verifier, part->where, error);
    }
    const gf_payloads actual = {out->payloads, out->payload_stride, out->payload_pieces};
    verifier->payloads.count = verifier->part_count;
    if (plan->has_payload &&
        plan->filter->payload->differ(plan, out->rows.rows, &verifier->payloads, &actual, where,
                                      sizeof where))
        return verify_fail(verifier, where, error);
    return verifier->next->strip(verifier->next, slot, error);
}

static gf_status verify_state(gf_consumer *consumer, uint32_t node, const void *state,
                              gf_error *error) {
    const gf_verifier *verifier = (const gf_verifier *)consumer;
    const gf_plan *plan = verify_plan(verifier);
    unsigned char *golden = verifier->states;
    char where[VERIFY_TEXT];
    for (uint32_t i = 1; i < verifier->parts && plan->state_bytes; i++)
        plan->filter->measure->merge(plan, golden, golden + i * verifier->state_bytes);
    if (memcmp(golden, state, (size_t)plan->state_bytes) != 0) {
        verify_describe_word("the image", golden, state, where);
        return verify_fail(verifier, where, error);
    }
    return verifier->next->state(verifier->next, node, state, error);
}

gf_consumer *gf_verifier_consumer(gf_verifier *verifier) {
    const gf_plan *plan = verifier->stream->nodes->node[0].plan;
    /* An ordered state requires one part. */
    const uint32_t parts = plan->ordered ? 1 : verifier->threads;
    verifier->base = (gf_consumer){.golden_parts = parts,
                                   .extra = plan->state_bytes * parts,
                                   .begin = verify_begin,
                                   .filled = verify_filled,
                                   .strip = verify_strip,
                                   .state = verify_state,
                                   .end = verify_end};
    return &verifier->base;
}
