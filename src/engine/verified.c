/* Golden's bands lie in memory of its own. Each is cut into parts of some rows, one a thread: a
 * part is legal for golden as every band is, with the rows around it that it reads. */
#include "engine/verified.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "engine/verified_differ.h"
#include "error.h"

typedef struct gf_verified_run {
    gf_verifier *verifier;
    gf_job job;
    void *inner;            /* the backend's */
    const gf_slot *slot;    /* that is compared */
    uint32_t parts;         /* of a band, at most; one thread does each */
    uint32_t cut;           /* of this band */
    unsigned char *rows;    /* golden's */
    gf_payloads payloads;   /* golden's, one a part */
    unsigned char *states;  /* golden's, one a part */
    size_t state_bytes;     /* of each */
    uint64_t *digests;      /* of what each slot holds, as it was submitted */
    gf_verified_part *part; /* what each found */
} gf_verified_run;

static gf_status open_verified(const gf_engine_options *options, void **state, gf_error *error) {
    (void)options, (void)state;
    return gf_fail(error, GF_NO_BACKEND, "verified: is no backend of its own");
}

static void close_verified(void *state) {
    (void)state;
}

static void describe(const void *state, char *text, size_t size) {
    const gf_verifier *verifier = state;
    verifier->backend->describe(verifier->state, text, size);
}

/* A state that passes through the rows in order does so here. */
static uint32_t count_parts(const gf_verifier *verifier, const gf_plan *plan) {
    return plan->ordered ? 1 : verifier->threads;
}

static gf_band_wish wish(const void *state, const gf_plan *plan) {
    const gf_verifier *verifier = state;
    gf_band_wish all = verifier->backend->wish(verifier->state, plan);
    all.checks = count_parts(verifier, plan);
    all.extra += plan->state_bytes * all.checks;
    return all;
}

static void free_run(gf_verified_run *run) {
    free(run->rows);
    free(run->payloads.data);
    free(run->states);
    free(run->digests);
    free(run->part);
    free(run);
}

static gf_status alloc_run(gf_verified_run *run, gf_error *error) {
    const gf_job *job = &run->job;
    const gf_plan *plan = job->plan;
    run->rows = gf_aligned_alloc(1, (size_t)job->out_rows * job->out_stride);
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
                              job->out_rows * job->out_stride +
                                  run->parts * (run->state_bytes + run->payloads.stride),
                              "a band to compare with");
    memset(run->states, 0, run->parts * run->state_bytes);
    return GF_OK;
}

static gf_status begin(void *state, const gf_job *job, gf_slot *slots, void **out,
                       gf_error *error) {
    gf_verifier *verifier = state;
    gf_verified_run *run = calloc(1, sizeof *run);
    if (!run)
        return gf_fail_memory(error, "golden", sizeof *run, "a run");
    run->verifier = verifier;
    run->job = *job;
    run->parts = count_parts(verifier, job->plan);
    if (job->plan->has_payload)
        run->parts = gf_payload_pieces(job, run->parts);
    gf_status status = alloc_run(run, error);
    if (!status)
        status = verifier->backend->begin(verifier->state, job, slots, &run->inner, error);
    if (status) {
        free_run(run);
        return status;
    }
    *out = run;
    return GF_OK;
}

/* Of all input rows that a band holds. */
static uint64_t digest_input(const gf_plan *plan, const gf_slot *slot) {
    const gf_band band = {.in = slot->in};
    uint64_t digest = 0;
    for (uint32_t i = 0; i < plan->inputs; i++) {
        const gf_rows rows = gf_band_input(&band, plan->inputs, i);
        digest = gf_digest_rows(digest, &rows, gf_row_bytes(&plan->in));
    }
    return digest;
}

static gf_status submit(void *state, gf_slot *slot, gf_error *error) {
    gf_verified_run *run = state;
    run->digests[slot->index] = digest_input(run->job.plan, slot);
    return run->verifier->backend->submit(run->inner, slot, error);
}

/* ---- golden's part --------------------------------------------------------------------------- */

/* Part `task` of the band, by golden. */
static gf_band cut_part(const gf_verified_run *run, uint32_t task) {
    const gf_plan *plan = run->job.plan;
    const gf_slot *slot = run->slot;
    const uint64_t begin = slot->out.y0 + gf_share(slot->out.rows, task, run->cut);
    const uint64_t end = slot->out.y0 + gf_share(slot->out.rows, task + 1, run->cut);
    const gf_rows all = {run->rows, run->job.out_stride, slot->out.y0, slot->out.rows};
    gf_band band = {.in = {.stride = slot->in.stride},
                    .out = {gf_row(&all, begin), all.stride, begin, end - begin},
                    .state = run->states + task * run->state_bytes};
    band.in.y0 = gf_held_rows(plan, begin, end, &band.in.rows);
    band.in.data = gf_row(&slot->in, band.in.y0);
    if (plan->has_payload)
        band.payload = run->payloads.data + task * run->payloads.stride;
    return band;
}

static void run_part(void *context, uint32_t task, uint32_t thread) {
    (void)thread;
    gf_verified_run *run = context;
    const gf_plan *plan = run->job.plan;
    gf_verified_part *part = &run->part[task];
    const gf_band band = cut_part(run, task);
    part->where[0] = 0;
    part->status = run->job.filter->golden(plan, &band, &part->error);
    if (!part->status)
        gf_rows_differ(plan, &band.out, &run->slot->out, part->where);
}

/* What is wrong, and whom to trust no more. */
static gf_status fail(const gf_verified_run *run, const char *where, gf_error *error) {
    gf_verifier *verifier = run->verifier;
    char device[sizeof((gf_report *)0)->device];
    verifier->backend->describe(verifier->state, device, sizeof device);
    verifier->differs = true;
    return gf_fail(error, GF_FAILED, "%s: %s; %s (%s) is not to be trusted: %s", verifier->name,
                   where, verifier->backend->name, device,
                   verifier->backend == &gf_backend_cpu || verifier->backend == &gf_backend_golden
                       ? "test this machine's memory"
                       : "use --backend cpu, and test the device");
}

static gf_status compare_payloads(const gf_verified_run *run, char where[GF_DIFFER_TEXT]) {
    const gf_slot *slot = run->slot;
    const gf_payloads golden = {run->payloads.data, run->payloads.stride, run->cut};
    const gf_payloads got = {slot->payload_buffer, slot->payload_stride, slot->payload_pieces};
    return run->job.filter->measure->differ(run->job.plan, slot->out.rows, &golden, &got, where,
                                            GF_DIFFER_TEXT)
               ? GF_FAILED
               : GF_OK;
}

static gf_status compare(gf_verified_run *run, gf_error *error) {
    const gf_slot *slot = run->slot;
    char where[GF_DIFFER_TEXT];
    if (digest_input(run->job.plan, slot) != run->digests[slot->index]) {
        snprintf(where, sizeof where,
                 "input rows %" PRIu64 " to %" PRIu64 " changed in memory while they were computed",
                 slot->in.y0, slot->in.y0 + slot->in.rows - 1);
        return fail(run, where, error);
    }
    run->cut = slot->out.rows < run->parts ? (uint32_t)slot->out.rows : run->parts;
    gf_work work = {.run = run_part, .context = run, .count = run->cut};
    gf_pool_run(run->verifier->pool, &work);
    for (uint32_t i = 0; i < run->cut; i++) {
        const gf_verified_part *part = &run->part[i];
        if (part->status) {
            if (error)
                *error = part->error;
            return part->status;
        }
        if (part->where[0])
            return fail(run, part->where, error);
    }
    if (run->job.plan->has_payload && compare_payloads(run, where))
        return fail(run, where, error);
    return GF_OK;
}

static gf_status wait(void *state, gf_slot *slot, gf_error *error) {
    gf_verified_run *run = state;
    const gf_status status = run->verifier->backend->wait(run->inner, slot, error);
    if (status)
        return status;
    run->slot = slot;
    return compare(run, error);
}

static void busy(void *state, gf_busy all[GF_STAGE_COUNT]) {
    const gf_verified_run *run = state;
    run->verifier->backend->busy(run->inner, all);
}

static gf_status collect(void *state, void *total, gf_error *error) {
    const gf_verified_run *run = state;
    const gf_plan *plan = run->job.plan;
    char where[GF_DIFFER_TEXT];
    const gf_status status = run->verifier->backend->collect(run->inner, total, error);
    if (status)
        return status;
    for (uint32_t i = 1; i < run->parts; i++)
        run->job.filter->measure->merge(plan, run->states, run->states + i * run->state_bytes);
    if (!gf_state_differs(plan, run->states, total, where))
        return GF_OK;
    return fail(run, where, error);
}

static void end(void *state, gf_slot *slots) {
    gf_verified_run *run = state;
    run->verifier->backend->end(run->inner, slots);
    free_run(run);
}

const gf_backend gf_backend_verified = {
    .name = "verified",
    .open = open_verified,
    .close = close_verified,
    .describe = describe,
    .wish = wish,
    .begin = begin,
    .submit = submit,
    .wait = wait,
    .busy = busy,
    .collect = collect,
    .end = end,
};
