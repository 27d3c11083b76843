/* The golden backend: one thread, the whole image as one strip. Errors in the division into strips
 * therefore cannot affect it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "core/clock.h"
#include "core/error.h"

typedef struct gf_golden_run {
    gf_cut job;
    void *state;
    double busy;
} gf_golden_run;

static gf_status golden_open(const gf_engine_options *options, void **state, gf_error *error) {
    (void)options, (void)error;
    *state = NULL;
    return GF_OK;
}

static void golden_close(void *state) {
    (void)state;
}

static void golden_describe(const void *state, char *text, size_t size) {
    (void)state;
    snprintf(text, size, "1 thread, scalar");
}

static gf_strip_request golden_request(const void *state, const gf_plan *plan) {
    (void)state;
    return (gf_strip_request){.whole_image = true,
                              .slots = 1,
                              .pieces = 1,
                              .extra = plan->golden_bytes + plan->state_bytes};
}

static gf_status golden_begin(void *state, const gf_cut *job, gf_slot *slots, void **out,
                              gf_error *error) {
    (void)state;
    gf_golden_run *run = malloc(sizeof *run);
    if (!run)
        return gf_fail_memory(error, "golden", sizeof *run, "a run");
    run->job = *job;
    run->busy = 0;
    run->state = gf_aligned_alloc(1, (size_t)job->plan->state_bytes);
    gf_status status =
        run->state ? gf_slots_alloc(job, 1, slots, error)
                   : gf_fail_memory(error, "golden", job->plan->state_bytes, "the measurement");
    if (status) {
        free(run->state);
        free(run);
        return status;
    }
    memset(run->state, 0, (size_t)job->plan->state_bytes);
    *out = run;
    return GF_OK;
}

static gf_status golden_submit(void *state, gf_slot *slot, gf_error *error) {
    gf_golden_run *run = state;
    const gf_plan *plan = run->job.plan;
    gf_strip strip = gf_slot_strip(plan, slot);
    const double began = gf_now();
    strip.state = run->state;
    const gf_status status = plan->filter->golden(plan, &strip, error);
    run->busy += gf_now() - began;
    return status;
}

static gf_status golden_wait(void *run, gf_slot *slot, gf_error *error) {
    (void)run, (void)slot, (void)error;
    return GF_OK;
}

static void golden_busy(void *state, gf_busy busy[GF_STAGE_COUNT]) {
    const gf_golden_run *run = state;
    gf_busy_add(&busy[GF_COMPUTING], (gf_busy){run->busy, 1});
}

static gf_status golden_collect(void *state, void *total, gf_error *error) {
    (void)error;
    const gf_golden_run *run = state;
    memcpy(total, run->state, (size_t)run->job.plan->state_bytes);
    return GF_OK;
}

static void golden_end(void *state, gf_slot *slots) {
    gf_golden_run *run = state;
    gf_slots_free(slots, run->job.slots);
    free(run->state);
    free(run);
}

const gf_backend gf_backend_golden = {
    .name = "golden",
    .open = golden_open,
    .close = golden_close,
    .describe = golden_describe,
    .request = golden_request,
    .begin = golden_begin,
    .submit = golden_submit,
    .wait = golden_wait,
    .busy = golden_busy,
    .collect = golden_collect,
    .end = golden_end,
};
