/* One image through its chosen backend. If the backend fails under auto, the image is read again
 * from the start and computed by another backend, with the same bits. Rows that the consumer
 * already has are dropped. */
#include "engine/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

/* A pass and the backend that currently computes it. */
typedef struct gf_attempt {
    gf_pass *pass;
    gf_verifier verifier; /* between stream and consumer, if verification is enabled */
    gf_stream_job job;
} gf_attempt;

/* Insert the verifier before the consumer. */
static gf_status attempt_add_verifier(gf_attempt *attempt, gf_error *error) {
    const gf_pass *pass = attempt->pass;
    attempt->verifier = (gf_verifier){.next = pass->consumer,
                                      .backend = attempt->job.backend,
                                      .state = attempt->job.state,
                                      .threads = gf_engine_threads(pass->engine),
                                      .name = pass->inputs->name};
    attempt->job.consumer = gf_verifier_consumer(&attempt->verifier, pass->plan);
    return gf_engine_verify_pool(pass->engine, &attempt->verifier.pool, error);
}

/* Stream the image to the consumer, through the verifier if enabled. */
static gf_status attempt_run(gf_attempt *attempt, gf_stream_stop *stop, gf_error *error) {
    const gf_pass *pass = attempt->pass;
    gf_status status = GF_OK;
    attempt->job.consumer = pass->consumer;
    if (pass->engine->options.verify)
        status = attempt_add_verifier(attempt, error);
    return status ? status : gf_stream_run(&attempt->job, pass->inputs, pass->report, stop, error);
}

/* ---- fallback after a failed backend --------------------------------------------------------- */

/* Choose a strip height that divides the previous one. Payloads were consumed strip by strip, so no
 * new strip may cross the row reached so far. */
static void attempt_match_strips(gf_stream_job *job, uint64_t rows_per_strip) {
    gf_cut unread;
    for (uint64_t parts = 1; parts <= rows_per_strip; parts++) {
        if (rows_per_strip % parts)
            continue;
        job->rows_per_strip = rows_per_strip / parts;
        if (!gf_choose_geometry(job, &unread, NULL))
            return;
    }
}

/* Restart the inputs and the report for the fallback backend. */
static gf_status attempt_restart(gf_attempt *attempt, const gf_stream_stop *stop,
                                 const gf_error *failure, gf_error *error) {
    gf_pass *pass = attempt->pass;
    if (!gf_inputs_can_restart(pass->inputs)) {
        char cause[sizeof pass->report->reason];
        gf_engine_format_reason(cause, sizeof cause, failure);
        return gf_fail(error, GF_FAILED,
                       "%s: %s; the input cannot be read again: run again, or use --backend cpu",
                       pass->inputs->name, cause);
    }
    if (pass->plan->has_payload)
        attempt_match_strips(&attempt->job, stop->rows_per_strip);
    pass->report->strips = 0;
    return gf_inputs_restart(pass->inputs, error);
}

/* Report the failure and the fallback; report both backends if the first one produced rows. */
static void attempt_report_fallback(const gf_attempt *attempt, const gf_stream_stop *stop,
                                    const gf_report *before) {
    gf_report *report = attempt->pass->report;
    char text[sizeof report->reason];
    const uint64_t done = stop->done - attempt->pass->first;
    if (done)
        snprintf(text, sizeof text, "%.130s; %s continued at row %" PRIu64, report->reason,
                 attempt->job.backend->name, stop->done);
    else
        snprintf(text, sizeof text, "%.130s; %s was used instead", report->reason,
                 attempt->job.backend->name);
    memcpy(report->reason, text, sizeof text);
    report->device_failed = report->device_failed || stop->by_backend;
    if (!done)
        return;
    snprintf(report->backend, sizeof report->backend, "%.7s+%.7s", before->backend,
             attempt->job.backend->name);
    attempt->job.backend->describe(attempt->job.state, text, sizeof text);
    snprintf(report->device, sizeof report->device, "%.90s; %.90s", before->device, text);
}

/* Switch to another backend after *failure, if one may compute the rest. Return whether it may. */
static bool attempt_fall_back(gf_attempt *attempt, const gf_stream_stop *stop,
                              const gf_error *failure) {
    gf_report *report = attempt->pass->report;
    gf_engine *engine = attempt->pass->engine;
    return (stop->by_backend || !stop->begun) &&
           gf_engine_fall_back(engine, &attempt->job.backend, &attempt->job.state, report->reason,
                               sizeof report->reason, failure) &&
           (stop->begun || !engine->may_defer);
}

/* ---- one image ------------------------------------------------------------------------------- */

static void attempt_report_backend(const gf_attempt *attempt) {
    gf_report *report = attempt->pass->report;
    snprintf(report->backend, sizeof report->backend, "%s", attempt->job.backend->name);
    attempt->job.backend->describe(attempt->job.state, report->device, sizeof report->device);
}

/* Record a failure of the device, also if it happened while the file failed. */
static void attempt_note_device_failure(const gf_attempt *attempt, const gf_error *device_error) {
    gf_report *report = attempt->pass->report;
    gf_engine_note_failure(attempt->pass->engine, attempt->job.backend, device_error);
    gf_engine_format_reason(report->reason, sizeof report->reason, device_error);
    report->device_failed = true;
}

static gf_status pass_stream(gf_attempt *attempt, gf_error *error) {
    gf_pass *pass = attempt->pass;
    gf_stream_stop stop = {.begun = false};
    gf_error failure = {0};
    attempt_report_backend(attempt);
    gf_status status = attempt_run(attempt, &stop, &failure);
    if (status && stop.by_backend)
        stop.device_error = failure;
    if (stop.device_error.status == GF_NO_BACKEND)
        attempt_note_device_failure(attempt, &stop.device_error);
    if (status && attempt_fall_back(attempt, &stop, &failure)) {
        const gf_report before = *pass->report;
        const gf_error first = failure;
        attempt_report_backend(attempt);
        attempt_report_fallback(attempt, &stop, &before);
        status = stop.begun ? attempt_restart(attempt, &stop, &first, &failure) : GF_OK;
        if (!status)
            status = attempt_run(attempt, stop.begun ? NULL : &stop, &failure);
    }
    pass->begun = !status || stop.begun || pass->report->strips > 0;
    if (status && error) /* a failure that the fallback recovered from is not reported */
        *error = failure;
    return status;
}

static gf_status pass_try(gf_pass *pass, gf_error *error) {
    gf_engine *engine = pass->engine;
    gf_report *report = pass->report;
    const gf_plan *plan = pass->plan;
    const gf_inputs *inputs = pass->inputs;
    const gf_source *source = inputs->sources[0], *second = inputs->sources[1];
    gf_attempt attempt = {.pass = pass,
                          .job = {.name = inputs->name,
                                  .plan = plan,
                                  .first = pass->first,
                                  .end = pass->end,
                                  .rows_per_strip = engine->options.rows_per_strip,
                                  .rows_together = second ? 0 : source->rows_together,
                                  .groups = source->groups,
                                  .max_memory = pass->memory - gf_inputs_memory(inputs),
                                  .unthreaded = engine->options.unthreaded}};
    const gf_workload work = {.plan = plan,
                              .codec = {.decode = source->cost + (second ? second->cost : 0),
                                        .decode_threads = gf_inputs_threads(inputs),
                                        .encode = pass->encode,
                                        .encode_threads = pass->encode_threads},
                              .rows = pass->end ? pass->end - pass->first : 0,
                              .images = pass->images};
    char reason[sizeof report->reason];
    pass->begun = false;
    gf_status status = gf_engine_choose(engine, &work, &attempt.job.backend, &attempt.job.state,
                                        reason, sizeof reason, error);
    if (status)
        return status;
    if (!report->device_failed) /* keep the reason of a failure in an earlier pass over the image */
        memcpy(report->reason, reason, sizeof reason);
    report->in = plan->in;
    report->pixels = plan->in.width * plan->in.height;
    report->strips = 0;
    report->device_failed = report->device_failed || engine->cuda_failed;
    status = pass_stream(&attempt, error);
    report->verified = engine->options.verify && !status;
    report->start_seconds += engine->start_seconds;
    engine->start_seconds = 0;
    return status;
}

gf_status gf_pass_run(gf_pass *pass, gf_error *error) {
    gf_error failure = {0};
    if (gf_inputs_memory(pass->inputs) > pass->memory / 2)
        gf_inputs_shrink(pass->inputs);
    gf_status status = pass_try(pass, &failure);
    if (status == GF_FAILED && !pass->begun && gf_inputs_memory(pass->inputs) != 0) {
        gf_inputs_shrink(pass->inputs);
        status = pass_try(pass, &failure);
    }
    if (status && error)
        *error = failure;
    return status;
}
