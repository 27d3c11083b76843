#include "engine/trial.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "engine/pipeline.h"

/* ---- a filter -------------------------------------------------------------------------------- */

/* The band's rows in the image itself, not in the slot's buffers. */
static void place(const gf_trial *trial, uint64_t k, gf_slot *slot) {
    gf_cut_band(&trial->job, k, slot);
    slot->in.data = gf_row(&trial->in, slot->in.y0);
    slot->out.data = gf_row(&trial->out, slot->out.y0);
}

static gf_status take_payloads(const gf_trial *trial, const gf_slot *slot, gf_error *error) {
    const gf_job *job = &trial->job;
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < slot->payload_pieces && !status; i++)
        status = job->filter->measure->payload(
            job->plan, trial->data, slot->payload_buffer + i * slot->payload_stride, error);
    return status;
}

/* All bands, as many at a time as there are slots. */
static gf_status run_bands(const gf_backend *backend, void *run, const gf_trial *trial,
                           gf_slot *slots, bool first, gf_error *error) {
    const uint64_t bands = gf_count_bands(&trial->job), ring = trial->job.slots;
    gf_status status = GF_OK;
    for (uint64_t k = 0; k < bands + ring && !status; k++) {
        gf_slot *slot = &slots[k % ring];
        if (k >= ring && k - ring < bands)
            status = backend->wait(run, slot, error);
        if (k >= ring && k - ring < bands && first && !status)
            status = take_payloads(trial, slot, error);
        if (k < bands && !status) {
            place(trial, k, slot);
            status = backend->submit(run, slot, error);
        }
    }
    return status;
}

static gf_status pass(const gf_backend *backend, void *state, gf_trial *trial, gf_slot *slots,
                      bool first, gf_error *error) {
    const size_t state_bytes = (size_t)trial->job.plan->state_bytes;
    void *run;
    for (uint32_t i = 0; i < trial->job.slots; i++)
        slots[i] = (gf_slot){.index = i};
    gf_status status = backend->begin(state, &trial->job, slots, &run, error);
    if (status)
        return status;
    const double began = gf_now();
    status = run_bands(backend, run, trial, slots, first, error);
    if (!first)
        gf_laps_add(&trial->passes, gf_now() - began);
    if (!status && state_bytes) {
        memset(trial->state, 0, state_bytes);
        status = backend->collect(run, trial->state, error);
    }
    backend->end(run, slots);
    return status;
}

gf_status gf_trial_on_host(const gf_backend *backend, void *state, gf_trial *trial,
                           gf_error *error) {
    gf_slot *slots = calloc(trial->job.slots, sizeof *slots);
    if (!slots)
        return gf_fail_memory(error, "memory", trial->job.slots * sizeof *slots, "the ring");
    gf_status status = pass(backend, state, trial, slots, true, error);
    while (!status && !gf_laps_enough(&trial->passes, trial->budget))
        status = pass(backend, state, trial, slots, false, error);
    free(slots);
    return status;
}

/* ---- copies ---------------------------------------------------------------------------------- */

gf_status gf_time_host_copy(void (*copy)(void *state, void *to, const void *from, uint64_t bytes),
                            void *state, uint64_t bytes, double budget, gf_memory_speed *speed,
                            gf_error *error) {
    unsigned char *from = gf_aligned_alloc(1, (size_t)bytes);
    unsigned char *to = gf_aligned_alloc(1, (size_t)bytes);
    gf_status status = GF_OK;
    if (from && to) {
        gf_laps laps = {.count = 0};
        memset(from, 1, (size_t)bytes); /* pages that were never written are all the same one */
        copy(state, to, from, bytes);
        while (!gf_laps_enough(&laps, budget)) {
            const double began = gf_now();
            copy(state, to, from, bytes);
            gf_laps_add(&laps, gf_now() - began);
        }
        *speed = (gf_memory_speed){.copy = 2 * (double)bytes / gf_laps_median(&laps)};
    } else {
        status = gf_fail_memory(error, "memory", 2 * bytes, "copies");
    }
    free(from);
    free(to);
    return status;
}
