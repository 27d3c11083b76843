/* Verification of strips by golden, which computes all nodes from the same rows of the source, into
 * its own memory. Each strip is divided into parts of some rows, one per thread. A part includes
 * its halo, so golden can compute it alone. Rows of edges that no one reads are not compared: rows
 * that are delivered depend on them. */
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

/* Golden's rows and measurements of a node. */
struct gf_verify_node {
    uint32_t parts;      /* maximum parts per strip, one per thread */
    uint32_t part_count; /* number of parts of this strip */
    gf_rows view;        /* rows of its edge in this strip: kept ones and new ones */
    unsigned char *rows; /* memory of the view, then the records of new rows */
    unsigned char *records;
    gf_payloads payloads;  /* one per part */
    unsigned char *states; /* one per part */
    size_t state_bytes;    /* size of one state */
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

/* Describe the first difference between the rows of golden's strip, image (if it is delivered) and
 * records, and those of the strip to verify in `where`. Leave it unchanged if there is none. */
static void verify_rows(const gf_plan *plan, bool image, const gf_strip *golden,
                        const gf_strip *actual, char where[VERIFY_TEXT]) {
    const gf_format *format = &plan->out;
    const size_t row_bytes = image ? gf_row_bytes(format) : 0;
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
    for (uint32_t i = 0; verifier->node && i < verifier->cut.nodes->count; i++) {
        free(verifier->node[i].rows);
        free(verifier->node[i].payloads.data);
        free(verifier->node[i].states);
    }
    free(verifier->node);
    free(verifier->digests);
    free(verifier->part);
}

static const gf_plan *verify_plan(const gf_verifier *verifier, uint32_t node) {
    return verifier->cut.nodes->node[node].plan;
}

/* An ordered state requires one part. */
static uint32_t verify_parts(const gf_plan *plan, uint32_t threads) {
    return plan->ordered ? 1 : threads;
}

/* Allocate the memory of a node. */
static gf_status verify_begin_node(gf_verifier *verifier, uint32_t i, gf_error *error) {
    const gf_cut *cut = &verifier->cut;
    const gf_plan *plan = verify_plan(verifier, i);
    const gf_edge_cut *to = &cut->edge[i + 1];
    struct gf_verify_node *node = &verifier->node[i];
    const size_t rows = (size_t)(to->keep + to->max_rows) * to->stride;
    const size_t all = rows + (size_t)to->max_rows * plan->record;
    node->parts = verify_parts(plan, verifier->threads);
    if (plan->has_payload) {
        node->parts = gf_payload_pieces(cut, i, node->parts);
        node->payloads.stride = gf_payload_stride(cut, i, node->parts);
        node->payloads.data = gf_aligned_alloc(node->parts, node->payloads.stride);
    }
    node->rows = gf_aligned_alloc(1, all);
    node->records = node->rows + rows;
    node->view = (gf_rows){node->rows, to->stride, to->start, 0};
    node->state_bytes = gf_align((size_t)plan->state_bytes);
    node->states = gf_aligned_alloc(node->parts, node->state_bytes);
    if (!node->rows || !node->states || (plan->has_payload && !node->payloads.data))
        return gf_fail_memory(error, "golden",
                              all + node->parts * (node->state_bytes + node->payloads.stride),
                              "a strip for comparison");
    memset(node->states, 0, node->parts * node->state_bytes);
    return GF_OK;
}

static gf_status verify_begin(gf_consumer *consumer, const gf_cut *cut, gf_error *error) {
    gf_verifier *verifier = (gf_verifier *)consumer;
    const uint32_t count = cut->nodes->count;
    verifier->cut = *cut;
    verifier->node = calloc(count, sizeof *verifier->node);
    verifier->digests = calloc(cut->slots, sizeof *verifier->digests);
    verifier->part = calloc(verifier->threads, sizeof *verifier->part);
    gf_status status = verifier->node && verifier->digests && verifier->part
                           ? GF_OK
                           : gf_fail_memory(error, "golden", count * sizeof *verifier->node,
                                            "a strip for comparison");
    for (uint32_t i = 0; i < count && !status; i++)
        status = verify_begin_node(verifier, i, error);
    if (status)
        verify_end(consumer);
    return status;
}

static uint64_t verify_digest_input(const gf_verifier *verifier, const gf_slot *slot) {
    uint64_t digest = gf_digest_rows(0, &slot->in, gf_row_bytes(&verify_plan(verifier, 0)->in));
    for (uint32_t i = 0; i < verifier->cut.nodes->count; i++)
        if (gf_node_has_second(&verifier->cut.nodes->node[i]))
            digest = gf_digest_rows(digest, &slot->out[i].second,
                                    gf_row_bytes(&verify_plan(verifier, i)->in));
    return digest;
}

static void verify_filled(gf_consumer *consumer, const gf_slot *slot) {
    const gf_verifier *verifier = (const gf_verifier *)consumer;
    verifier->digests[slot->index] = verify_digest_input(verifier, slot);
}

/* Return the rows that a node reads of its edge in the current strip. */
static const gf_rows *verify_in(const gf_verifier *verifier, uint32_t node) {
    const uint32_t from = verifier->cut.nodes->node[node].from;
    return from ? &verifier->node[from - 1].view : &verifier->slot->in;
}

static void verify_run_part(void *context, uint32_t task, uint32_t thread) {
    (void)thread;
    const gf_verifier *verifier = context;
    const uint32_t i = verifier->current;
    const struct gf_verify_node *node = &verifier->node[i];
    const gf_plan *plan = verify_plan(verifier, i);
    const gf_node_rows *out = &verifier->slot->out[i];
    const bool written = verifier->cut.nodes->written >> (i + 1) & 1;
    struct gf_verify_part *part = &verifier->part[task];
    const gf_strip actual = gf_slot_strip(plan, verify_in(verifier, i), out);
    gf_strip golden = actual; /* with golden's buffers as output */
    golden.out = gf_rows_part(&node->view, out->rows.y0, out->rows.rows);
    if (!plan->out.width)
        golden.out.data = NULL;
    golden.records = node->records;
    golden.state = node->states + task * node->state_bytes;
    if (plan->has_payload)
        golden.payload = node->payloads.data + task * node->payloads.stride;
    golden = gf_strip_part(plan, &golden, task, node->part_count);
    part->where[0] = 0;
    part->error.status = GF_OK;
    if (!plan->filter->golden(plan, &golden, &part->error))
        verify_rows(plan, written, &golden, &actual, part->where);
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

/* Compute the new rows of a node, and compare them. */
static gf_status verify_node(gf_verifier *verifier, uint32_t i, gf_error *error) {
    const gf_plan *plan = verify_plan(verifier, i);
    const gf_node_rows *out = &verifier->slot->out[i];
    struct gf_verify_node *node = &verifier->node[i];
    const uint64_t strip = verifier->slot->strip, count = out->rows.rows;
    const gf_range needs = gf_cut_needs(&verifier->cut, i + 1, strip);
    const uint64_t kept = gf_cut_rows(&verifier->cut, i + 1, strip).first - needs.first;
    char where[VERIFY_TEXT];
    if (node->view.stride && kept) /* the rows that this strip shares with the one before */
        memmove(node->rows, gf_row(&node->view, needs.first), kept * node->view.stride);
    node->view.y0 = needs.first;
    node->view.rows = kept + count;
    if (count == 0)
        return GF_OK;
    verifier->current = i;
    node->part_count = (uint32_t)gf_min(count, node->parts);
    gf_work work = {.run = verify_run_part, .context = verifier, .count = node->part_count};
    gf_pool_run(verifier->pool, &work);
    for (uint32_t k = 0; k < node->part_count; k++) {
        const struct gf_verify_part *part = &verifier->part[k];
        if (part->error.status)
            return gf_return_error(&part->error, error);
        if (part->where[0])
            return verify_fail(verifier, part->where, error);
    }
    const gf_payloads actual = {out->payloads, out->payload_stride, out->payload_pieces};
    node->payloads.count = node->part_count;
    return plan->has_payload && plan->filter->payload->differ(plan, count, &node->payloads, &actual,
                                                              where, sizeof where)
               ? verify_fail(verifier, where, error)
               : GF_OK;
}

static gf_status verify_strip(gf_consumer *consumer, const gf_slot *slot, gf_error *error) {
    gf_verifier *verifier = (gf_verifier *)consumer;
    char where[VERIFY_TEXT];
    gf_status status = GF_OK;
    if (verify_digest_input(verifier, slot) != verifier->digests[slot->index]) {
        snprintf(where, sizeof where,
                 "input rows %" PRIu64 " to %" PRIu64 " changed in memory during the computation",
                 slot->in.y0, slot->in.y0 + slot->in.rows - 1);
        return verify_fail(verifier, where, error);
    }
    verifier->slot = slot;
    for (uint32_t i = 0; i < verifier->cut.nodes->count && !status; i++)
        status = verify_node(verifier, i, error);
    return status ? status : verifier->next->strip(verifier->next, slot, error);
}

static gf_status verify_state(gf_consumer *consumer, uint32_t node, const void *state,
                              gf_error *error) {
    const gf_verifier *verifier = (const gf_verifier *)consumer;
    const gf_plan *plan = verify_plan(verifier, node);
    const struct gf_verify_node *of = &verifier->node[node];
    char where[VERIFY_TEXT];
    for (uint32_t i = 1; i < of->parts && plan->state_bytes; i++)
        plan->filter->measure->merge(plan, of->states, of->states + i * of->state_bytes);
    if (memcmp(of->states, state, (size_t)plan->state_bytes) != 0) {
        verify_describe_word("the image", of->states, state, where);
        return verify_fail(verifier, where, error);
    }
    return verifier->next->state(verifier->next, node, state, error);
}

gf_consumer *gf_verifier_consumer(gf_verifier *verifier) {
    const gf_nodes *nodes = verifier->stream->nodes;
    uint32_t most = 0;
    uint64_t states = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const uint32_t parts = verify_parts(nodes->node[i].plan, verifier->threads);
        most = (uint32_t)gf_max(most, parts);
        states += nodes->node[i].plan->state_bytes * parts;
    }
    verifier->base = (gf_consumer){.golden_parts = most,
                                   .extra = states,
                                   .begin = verify_begin,
                                   .filled = verify_filled,
                                   .strip = verify_strip,
                                   .state = verify_state,
                                   .end = verify_end};
    return &verifier->base;
}
