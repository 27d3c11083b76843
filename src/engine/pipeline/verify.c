/* Verification of strips by golden. Golden computes each strip into its own memory, divided into
 * parts of some rows, one per thread. Golden can compute any part, because a part includes its
 * halo. */
#include "engine/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/image.h"

enum { VERIFY_TEXT = 256 };

/* Outcome of one part of a strip. */
typedef struct gf_verify_part {
    gf_status status; /* status of golden */
    gf_error error;
    char where[VERIFY_TEXT]; /* first difference; empty for none */
} gf_verify_part;

/* A stream whose strips are verified. */
struct gf_verify_run {
    gf_verifier *verifier;
    gf_cut job;
    const gf_slot *slot;   /* strip being compared */
    uint32_t parts;        /* maximum parts per strip, one per thread */
    uint32_t part_count;   /* number of parts of this strip */
    unsigned char *rows;   /* golden's output rows, then their records */
    gf_payloads payloads;  /* golden's payloads, one per part */
    unsigned char *states; /* golden's states, one per part */
    size_t state_bytes;    /* size of one state */
    uint64_t *digests;     /* per slot: digest of the input rows at submission */
    gf_verify_part *part;  /* outcomes of the parts */
};

/* ---- description of a difference ------------------------------------------------------------- */

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
    uint16_t u16;
    float f32;
    uint32_t bits;
    char number[40];
    switch (type) {
    case GF_U8:
        snprintf(text, 64, "%u", row[i]);
        break;
    case GF_U16:
        memcpy(&u16, row + i * sizeof u16, sizeof u16);
        snprintf(text, 64, "%u", u16);
        break;
    default:
        memcpy(&f32, row + i * sizeof f32, sizeof f32);
        memcpy(&bits, row + i * sizeof bits, sizeof bits);
        gf_value_format(&(gf_value){.type = GF_VALUE_FLOAT, .real = (double)f32}, number,
                        sizeof number);
        snprintf(text, 64, "%s (0x%08" PRIx32 ")", number, bits);
    }
}

static void verify_describe_sample(const gf_format *format, uint64_t y, const unsigned char *golden,
                                   const unsigned char *actual, char where[VERIFY_TEXT]) {
    const uint64_t i = verify_first_of(golden, actual, gf_type_bytes(format->type));
    char is[64], should[64];
    verify_sample_text(format->type, actual, i, is);
    verify_sample_text(format->type, golden, i, should);
    snprintf(where, VERIFY_TEXT,
             "x %" PRIu64 ", y %" PRIu64 ", channel %" PRIu64 " is %s, expected %s",
             i / format->channels, y, i % format->channels, is, should);
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
    const size_t row_bytes = plan->out.width ? gf_row_bytes(&plan->out) : 0;
    for (uint64_t y = golden->out.y0; y < golden->out.y0 + golden->out.rows; y++) {
        const unsigned char *p = gf_row(&golden->out, y), *q = gf_row(&actual->out, y);
        if (row_bytes && memcmp(p, q, row_bytes) != 0) {
            verify_describe_sample(&plan->out, y, p, q, where);
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

/* ---- preparation ----------------------------------------------------------------------------- */

static gf_verifier *verify_of(gf_consumer *consumer) {
    return (gf_verifier *)consumer;
}

static void verify_end(gf_consumer *consumer) {
    struct gf_verify_run *run = verify_of(consumer)->run;
    free(run->rows);
    free(run->payloads.data);
    free(run->states);
    free(run->digests);
    free(run->part);
    free(run);
}

static gf_status verify_alloc(struct gf_verify_run *run, gf_error *error) {
    const gf_cut *job = &run->job;
    const gf_plan *plan = job->plan;
    run->rows = gf_aligned_alloc(1, gf_cut_out_bytes(job));
    run->state_bytes = gf_align((size_t)plan->state_bytes);
    run->states = gf_aligned_alloc(run->parts, run->state_bytes);
    run->digests = calloc(job->slots, sizeof *run->digests);
    run->part = calloc(run->parts, sizeof *run->part);
    if (plan->has_payload) {
        run->payloads.stride = gf_payload_stride(job, run->parts);
        run->payloads.data = gf_aligned_alloc(run->parts, run->payloads.stride);
    }
    if (!run->rows || !run->states || !run->digests || !run->part ||
        (plan->has_payload && !run->payloads.data))
        return gf_fail_memory(error, "golden",
                              gf_cut_out_bytes(job) +
                                  run->parts * (run->state_bytes + run->payloads.stride),
                              "a strip for comparison");
    memset(run->states, 0, run->parts * run->state_bytes);
    return GF_OK;
}

static gf_status verify_begin(gf_consumer *consumer, const gf_cut *job, gf_error *error) {
    gf_verifier *verifier = verify_of(consumer);
    struct gf_verify_run *run = calloc(1, sizeof *run);
    if (!run)
        return gf_fail_memory(error, "golden", sizeof *run, "a run");
    verifier->run = run;
    run->verifier = verifier;
    run->job = *job;
    run->parts = consumer->golden_parts;
    if (job->plan->has_payload)
        run->parts = gf_payload_pieces(job, run->parts);
    const gf_status status = verify_alloc(run, error);
    if (status)
        verify_end(consumer);
    return status;
}

/* Digest all input rows of a strip. */
static uint64_t verify_digest_input(const gf_plan *plan, const gf_slot *slot) {
    uint64_t digest = 0;
    for (uint32_t i = 0; i < plan->inputs; i++)
        digest = gf_digest_rows(digest, &slot->in[i], gf_row_bytes(&plan->in));
    return digest;
}

static void verify_filled(gf_consumer *consumer, const gf_slot *slot) {
    struct gf_verify_run *run = verify_of(consumer)->run;
    run->digests[slot->index] = verify_digest_input(run->job.plan, slot);
}

/* ---- golden ---------------------------------------------------------------------------------- */

/* Return part `task` of the strip, with golden's buffers as output. */
static gf_strip verify_part_strip(const struct gf_verify_run *run, uint32_t task) {
    gf_strip strip = gf_slot_strip(run->job.plan, run->slot);
    strip.out.data = run->rows;
    strip.records = run->rows + run->job.out_rows * run->job.out_stride;
    strip.state = run->states + task * run->state_bytes;
    if (run->job.plan->has_payload)
        strip.payload = run->payloads.data + task * run->payloads.stride;
    return gf_strip_part(run->job.plan, &strip, task, run->part_count);
}

static void verify_run_part(void *context, uint32_t task, uint32_t thread) {
    (void)thread;
    struct gf_verify_run *run = context;
    const gf_plan *plan = run->job.plan;
    gf_verify_part *part = &run->part[task];
    const gf_strip strip = verify_part_strip(run, task), actual = gf_slot_strip(plan, run->slot);
    part->where[0] = 0;
    part->status = plan->filter->golden(plan, &strip, &part->error);
    if (!part->status)
        verify_rows(plan, &strip, &actual, part->where);
}

/* Fail with the difference, and advise the user which component to test. */
static gf_status verify_fail(const struct gf_verify_run *run, const char *where, gf_error *error) {
    const gf_verifier *verifier = run->verifier;
    char device[sizeof((gf_report *)0)->device];
    verifier->backend->describe(verifier->state, device, sizeof device);
    return gf_fail(error, GF_FAILED, "%s: %s; %s (%s) is unreliable: %s", verifier->name, where,
                   verifier->backend->name, device,
                   verifier->backend == &gf_backend_cpu || verifier->backend == &gf_backend_golden
                       ? "test this machine's memory"
                       : "use --backend cpu, and test the device");
}

static bool verify_payloads_differ(const struct gf_verify_run *run, char where[VERIFY_TEXT]) {
    const gf_slot *slot = run->slot;
    const gf_payloads golden = {run->payloads.data, run->payloads.stride, run->part_count};
    const gf_payloads actual = {slot->payload_buffer, slot->payload_stride, slot->payload_pieces};
    return run->job.plan->filter->payload->differ(run->job.plan, slot->out.rows, &golden, &actual,
                                                  where, VERIFY_TEXT);
}

static gf_status verify_strip_of(struct gf_verify_run *run, gf_error *error) {
    const gf_slot *slot = run->slot;
    char where[VERIFY_TEXT];
    if (verify_digest_input(run->job.plan, slot) != run->digests[slot->index]) {
        snprintf(where, sizeof where,
                 "input rows %" PRIu64 " to %" PRIu64 " changed in memory during the computation",
                 slot->in[0].y0, slot->in[0].y0 + slot->in[0].rows - 1);
        return verify_fail(run, where, error);
    }
    run->part_count = slot->out.rows < run->parts ? (uint32_t)slot->out.rows : run->parts;
    gf_work work = {.run = verify_run_part, .context = run, .count = run->part_count};
    gf_pool_run(run->verifier->pool, &work);
    for (uint32_t i = 0; i < run->part_count; i++) {
        const gf_verify_part *part = &run->part[i];
        if (part->status) {
            if (error)
                *error = part->error;
            return part->status;
        }
        if (part->where[0])
            return verify_fail(run, part->where, error);
    }
    if (run->job.plan->has_payload && verify_payloads_differ(run, where))
        return verify_fail(run, where, error);
    return GF_OK;
}

static gf_status verify_strip(gf_consumer *consumer, const gf_slot *slot, gf_error *error) {
    gf_verifier *verifier = verify_of(consumer);
    verifier->run->slot = slot;
    const gf_status status = verify_strip_of(verifier->run, error);
    return status ? status : verifier->next->strip(verifier->next, slot, error);
}

static gf_status verify_state(gf_consumer *consumer, const void *state, gf_error *error) {
    const gf_verifier *verifier = verify_of(consumer);
    const struct gf_verify_run *run = verifier->run;
    const gf_plan *plan = run->job.plan;
    char where[VERIFY_TEXT];
    for (uint32_t i = 1; i < run->parts && plan->state_bytes; i++)
        plan->filter->measure->merge(plan, run->states, run->states + i * run->state_bytes);
    if (memcmp(run->states, state, (size_t)plan->state_bytes) != 0) {
        verify_describe_word("the image", run->states, state, where);
        return verify_fail(run, where, error);
    }
    return verifier->next->state(verifier->next, state, error);
}

gf_consumer *gf_verifier_consumer(gf_verifier *verifier, const gf_plan *plan) {
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
