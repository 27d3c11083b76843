/* The golden backend: one thread, the whole image as one band, so that a mistake in cutting bands
 * cannot hide in it. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/backend.h"
#include "error.h"

typedef struct gf_golden_run {
    gf_job job;
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

static gf_band_wish golden_wish(const void *state, const gf_plan *plan) {
    (void)state;
    return (gf_band_wish){.whole_image = true, .slots = 1, .extra = plan->golden_bytes};
}

static gf_status golden_begin(void *state, const gf_job *job, gf_slot *slots, void **out,
                              gf_error *error) {
    (void)state;
    gf_golden_run *run = malloc(sizeof *run);
    if (!run)
        return gf_fail_memory(error, "golden", sizeof *run, "a run");
    run->job = *job;
    gf_status status = gf_slots_alloc(job, slots, error);
    if (status) {
        free(run);
        return status;
    }
    *out = run;
    return GF_OK;
}

static gf_status golden_submit(void *state, gf_slot *slot, gf_error *error) {
    gf_golden_run *run = state;
    return run->job.filter->golden(run->job.plan, &slot->in, &slot->out, error);
}

static gf_status golden_wait(void *run, gf_slot *slot, gf_error *error) {
    (void)run, (void)slot, (void)error;
    return GF_OK;
}

static void golden_end(void *state, gf_slot *slots) {
    gf_golden_run *run = state;
    gf_slots_free(slots, run->job.slots);
    free(run);
}

const gf_backend gf_backend_golden = {
    .name = "golden",
    .open = golden_open,
    .close = golden_close,
    .describe = golden_describe,
    .wish = golden_wish,
    .begin = golden_begin,
    .submit = golden_submit,
    .wait = golden_wait,
    .end = golden_end,
};
