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

/* Stream the image to the consumer, through the verifier if enabled. */
static gf_status attempt_run(gf_attempt *attempt, gf_stream_stop *stop, gf_error *error) {
    const gf_pass *pass = attempt->pass;
    gf_stream_job *job = &attempt->job;
    gf_status status = GF_OK;
    job->consumer = pass->consumer;
    if (pass->engine->options.verify) {
        attempt->verifier = (gf_verifier){.next = pass->consumer,
                                          .backend = job->backend,
                                          .state = job->state,
                                          .threads = gf_engine_threads(pass->engine),
                                          .name = pass->inputs->name};
        job->consumer = gf_verifier_consumer(&attempt->verifier, pass->plan);
        status = gf_engine_verify_pool(pass->engine, &attempt->verifier.pool, error);
    }
    return status ? status : gf_stream_run(job, pass->inputs, pass->report, stop, error);
}

/* ---- fallback after a failed backend --------------------------------------------------------- */

/* Restart the inputs and the report for the fallback backend. */
static gf_status attempt_restart(gf_attempt *attempt, const gf_error *failure, gf_error *error) {
    gf_pass *pass = attempt->pass;
    const uint64_t rows = pass->report->rows_per_strip;
    gf_cut unread;
    if (!gf_inputs_can_restart(pass->inputs)) {
        char cause[sizeof pass->report->reason];
        gf_engine_format_reason(cause, sizeof cause, failure);
        return gf_fail(error, GF_FAILED,
                       "%s: %s; the input cannot be read again: run again, or use --backend cpu",
                       pass->inputs->name, cause);
    }
    /* Payloads were consumed strip by strip, so no new strip may cross the row reached so far:
     * choose a strip height that divides the previous one. */
    for (uint64_t parts = 1; pass->plan->has_payload && parts <= rows; parts++) {
        attempt->job.rows_per_strip = rows / parts;
        if (rows % parts == 0 && !gf_choose_geometry(&attempt->job, &unread, NULL))
            break;
    }
    pass->report->strips = 0;
    return gf_inputs_restart(pass->inputs, error);
}

/* Report the failure and the fallback; report both backends if the first one produced rows. */
static void attempt_report_fallback(const gf_attempt *attempt, uint64_t done,
                                    const gf_report *before) {
    const gf_backend *backend = attempt->job.backend;
    gf_report *report = attempt->pass->report;
    char text[sizeof report->reason];
    if (done == attempt->pass->first) {
        snprintf(text, sizeof text, "%.130s; %s was used instead", before->reason, backend->name);
    } else {
        snprintf(text, sizeof text, "%.130s; %s continued at row %" PRIu64, before->reason,
                 backend->name, done);
        snprintf(report->backend, sizeof report->backend, "%.7s+%.7s", before->backend,
                 backend->name);
        snprintf(report->device, sizeof report->device, "%.90s; ", before->device);
        const size_t used = strlen(report->device);
        backend->describe(attempt->job.state, report->device + used, sizeof report->device - used);
    }
    memcpy(report->reason, text, sizeof text);
}

static void attempt_report_backend(const gf_attempt *attempt) {
    gf_report *report = attempt->pass->report;
    snprintf(report->backend, sizeof report->backend, "%s", attempt->job.backend->name);
    attempt->job.backend->describe(attempt->job.state, report->device, sizeof report->device);
}

static gf_status pass_stream(gf_attempt *attempt, gf_error *error) {
    gf_pass *pass = attempt->pass;
    gf_engine *engine = pass->engine;
    gf_report *report = pass->report;
    gf_stream_stop stop = {.begun = false};
    attempt_report_backend(attempt);
    gf_status status = attempt_run(attempt, &stop, error);
    const bool may_continue = status && (stop.by_backend || !stop.begun);
    if (status && stop.by_backend)
        stop.device_error = *error;
    /* Record a failure of the device, also if it happened while the file failed. */
    if (stop.device_error.status == GF_NO_BACKEND) {
        gf_engine_note_failure(engine, attempt->job.backend, &stop.device_error);
        gf_engine_format_reason(report->reason, sizeof report->reason, &stop.device_error);
        report->device_failed = true;
    }
    /* Switch to another backend, if one may compute the rest. */
    if (may_continue &&
        gf_engine_fall_back(engine, &attempt->job.backend, &attempt->job.state, report->reason,
                            sizeof report->reason, error) &&
        (stop.begun || !engine->may_defer)) {
        const gf_report before = *report;
        const gf_error first = *error;
        attempt_report_backend(attempt);
        attempt_report_fallback(attempt, stop.done, &before);
        report->device_failed = report->device_failed || stop.by_backend;
        status = stop.begun ? attempt_restart(attempt, &first, error) : GF_OK;
        if (!status)
            status = attempt_run(attempt, stop.begun ? NULL : &stop, error);
    }
    pass->begun = !status || stop.begun || report->strips > 0;
    return status;
}

static gf_status pass_try(gf_pass *pass, gf_error *error) {
    gf_engine *engine = pass->engine;
    gf_report *report = pass->report;
    const gf_plan *plan = pass->plan;
    const gf_inputs *inputs = pass->inputs;
    const gf_source *source = inputs->sources[0], *second = inputs->sources[1];
    const uint32_t threads = source->threads; /* of each decoder */
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
    const gf_workload work = {
        .plan = plan,
        .codec = {.decode = source->cost + (second ? second->cost : 0),
                  .decode_threads = second && second->threads < threads ? second->threads : threads,
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
    report->device_failed = report->device_failed || engine->cuda_error.status;
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
