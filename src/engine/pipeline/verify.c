/* Verification of strips by golden, which computes all nodes from the same rows of the source, into
 * its own memory. Rows of edges that are not delivered are not compared: those that are depend on
 * them. */
#include "engine/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"

enum { VERIFY_TEXT = 256 };

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
        uint8_t u8;
        uint16_t u16;
        float f32;
        uint32_t bits;
    } sample;
    char number[40];
    memcpy(&sample, row + i * gf_type_bytes(type), gf_type_bytes(type));
    const gf_value value = gf_value_sample(type, type == GF_F32   ? sample.f32
                                                 : type == GF_U16 ? (float)sample.u16
                                                                  : (float)sample.u8);
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

/* Describe the first difference between the rows of golden, image (if it is delivered) and records,
 * and those to verify in `where`. Return whether there is one. */
static bool verify_rows(const gf_plan *plan, bool image, const gf_node_rows *golden,
                        const gf_node_rows *actual, char where[VERIFY_TEXT]) {
    const gf_format *format = &plan->out;
    const size_t row_bytes = image ? gf_row_bytes(format) : 0;
    for (uint64_t i = 0, y = actual->rows.y0; i < actual->rows.rows; i++, y++) {
        const void *a = golden->records + i * plan->record, *b = actual->records + i * plan->record;
        if (row_bytes) {
            const unsigned char *p = gf_row(&golden->rows, y), *q = gf_row(&actual->rows, y);
            if (memcmp(p, q, row_bytes) != 0) {
                const uint64_t at = verify_first_of(p, q, gf_type_bytes(format->type));
                char is[64], should[64];
                verify_sample_text(format->type, q, at, is);
                verify_sample_text(format->type, p, at, should);
                snprintf(where, VERIFY_TEXT,
                         "x %" PRIu64 ", y %" PRIu64 ", channel %" PRIu64 " is %s, expected %s",
                         at / format->channels, y, at % format->channels, is, should);
                return true;
            }
        }
        if (plan->record && memcmp(a, b, plan->record) != 0) {
            char of[40];
            snprintf(of, sizeof of, "row %" PRIu64, y);
            verify_describe_word(of, a, b, where);
            return true;
        }
    }
    return false;
}

static void verify_free(gf_verifier *verifier) {
    free(verifier->out);
    free(verifier->digests);
}

static void verify_end(gf_consumer *consumer) {
    gf_verifier *verifier = (gf_verifier *)consumer;
    gf_backend_verify.end(verifier->run);
    verify_free(verifier);
}

static const gf_plan *verify_plan(const gf_verifier *verifier, uint32_t node) {
    return verifier->cut.nodes->node[node].plan;
}

static gf_status verify_begin(gf_consumer *consumer, const gf_cut *cut, gf_error *error) {
    gf_verifier *verifier = (gf_verifier *)consumer;
    const uint32_t count = cut->nodes->count;
    unsigned char *ring;
    verifier->cut = *cut;
    verifier->cut.in = &verifier->slot.in; /* not in a ring: strips have rows of the stream */
    verifier->cut.out.data = NULL;
    gf_cut_set(&verifier->cut, cut->height, 1);
    verifier->out = calloc(count, sizeof *verifier->out);
    verifier->digests = calloc(cut->slots, sizeof *verifier->digests);
    verifier->slot = (gf_slot){.out = verifier->out};
    const gf_status status =
        verifier->out && verifier->digests
            ? gf_backend_verify.begin(verifier->golden, &verifier->cut, &verifier->slot, &ring,
                                      &verifier->run, error)
            : gf_fail_memory(error, "golden", count * sizeof *verifier->out,
                             "a strip for comparison");
    if (status)
        verify_free(verifier);
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

/* Compare what a node has made of a strip. */
static gf_status verify_node(const gf_verifier *verifier, uint32_t i, const gf_slot *slot,
                             gf_error *error) {
    const gf_plan *plan = verify_plan(verifier, i);
    const gf_node_rows *golden = &verifier->out[i], *actual = &slot->out[i];
    const gf_payloads want = {golden->payloads, golden->payload_stride, golden->payload_pieces};
    const gf_payloads got = {actual->payloads, actual->payload_stride, actual->payload_pieces};
    const uint64_t rows = actual->rows.rows;
    const bool written = verifier->cut.nodes->written >> (i + 1) & 1;
    char where[VERIFY_TEXT];
    return verify_rows(plan, written, golden, actual, where) ||
                   (rows && plan->has_payload &&
                    plan->filter->payload->differ(plan, rows, &want, &got, where, sizeof where))
               ? verify_fail(verifier, where, error)
               : GF_OK;
}

static gf_status verify_strip(gf_consumer *consumer, const gf_slot *slot, gf_error *error) {
    gf_verifier *verifier = (gf_verifier *)consumer;
    char where[VERIFY_TEXT];
    if (verify_digest_input(verifier, slot) != verifier->digests[slot->index]) {
        snprintf(where, sizeof where,
                 "input rows %" PRIu64 " to %" PRIu64 " changed in memory during the computation",
                 slot->in.y0, slot->in.y0 + slot->in.rows - 1);
        return verify_fail(verifier, where, error);
    }
    verifier->slot.strip = slot->strip;
    verifier->slot.in = slot->in;
    for (uint32_t i = 0; i < verifier->cut.nodes->count; i++)
        verifier->out[i].second = slot->out[i].second;
    gf_status status = gf_backend_verify.submit(verifier->run, &verifier->slot, error);
    if (!status)
        status = gf_backend_verify.wait(verifier->run, &verifier->slot, error);
    for (uint32_t i = 0; i < verifier->cut.nodes->count && !status; i++)
        status = verify_node(verifier, i, slot, error);
    return status ? status : verifier->next->strip(verifier->next, slot, error);
}

static gf_status verify_state(gf_consumer *consumer, uint32_t node, const void *state,
                              gf_error *error) {
    const gf_verifier *verifier = (const gf_verifier *)consumer;
    const size_t bytes = (size_t)verify_plan(verifier, node)->state_bytes;
    void *golden = gf_aligned_alloc(1, bytes);
    char where[VERIFY_TEXT];
    if (!golden)
        return gf_fail_memory(error, "golden", bytes, "the measurement");
    gf_status status = GF_OK;
    if (bytes)
        status = gf_backend_verify.collect(verifier->run, node, golden, error);
    if (!status && memcmp(golden, state, bytes) != 0) {
        verify_describe_word("the image", golden, state, where);
        status = verify_fail(verifier, where, error);
    }
    free(golden);
    return status ? status : verifier->next->state(verifier->next, node, state, error);
}

gf_consumer *gf_verifier_consumer(gf_verifier *verifier, uint32_t parts) {
    verifier->base = (gf_consumer){.golden_parts = parts,
                                   .begin = verify_begin,
                                   .filled = verify_filled,
                                   .strip = verify_strip,
                                   .state = verify_state,
                                   .end = verify_end};
    return &verifier->base;
}
