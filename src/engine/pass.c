/* One image through the backend that was chosen for it. Where that fails, auto lets another do it,
 * with the same bits: the image is read again from its beginning, and the rows that the consumer
 * has already are dropped. */
#include "engine/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

/* A pass by the backend that computes it now. */
typedef struct gf_way {
    gf_pass *pass;
    gf_verifier verifier; /* between the stream and the consumer, if the image is verified */
    gf_stream_job job;
} gf_way;

/* Puts golden before the consumer. */
static gf_status put_verifier(gf_way *way, gf_error *error) {
    const gf_pass *pass = way->pass;
    way->verifier = (gf_verifier){.next = pass->consumer,
                                  .backend = way->job.backend,
                                  .state = way->job.state,
                                  .threads = gf_engine_threads(pass->engine),
                                  .name = pass->inputs->name};
    way->job.consumer = gf_verifier_consumer(&way->verifier, pass->plan);
    return gf_engine_checkers(pass->engine, &way->verifier.pool, error);
}

/* Streams the image to the consumer, through golden if it is to be verified. */
static gf_status run(gf_way *way, gf_stream_rest *rest, gf_error *error) {
    const gf_pass *pass = way->pass;
    gf_status status = GF_OK;
    way->job.consumer = pass->consumer;
    if (pass->engine->options.verify)
        status = put_verifier(way, error);
    return status ? status
                  : gf_stream_run(&way->job, pass->inputs->source, pass->report, rest, error);
}

/* ---- where the backend has failed ------------------------------------------------------------ */

/* Payloads went on strip by strip: no new strip may lie across the place up to which they did. */
static void match_strips(gf_stream_job *job, uint64_t rows_per_strip) {
    gf_job unread;
    for (uint64_t parts = 1; parts <= rows_per_strip; parts++) {
        if (rows_per_strip % parts)
            continue;
        job->rows_per_strip = rows_per_strip / parts;
        if (!gf_choose_geometry(job, &unread, NULL))
            return;
    }
}

/* Begins the inputs and the report again, for the backend that is left. */
static gf_status start_over(gf_way *way, const gf_stream_rest *rest, const gf_error *failure,
                            gf_error *error) {
    gf_pass *pass = way->pass;
    if (!gf_inputs_can_restart(pass->inputs)) {
        char cause[sizeof pass->report->reason];
        gf_engine_give_reason(cause, sizeof cause, failure);
        return gf_fail(error, GF_FAILED,
                       "%s: %s; the input cannot be read again: run again, or use --backend cpu",
                       pass->inputs->name, cause);
    }
    if (pass->plan->has_payload)
        match_strips(&way->job, rest->rows_per_strip);
    pass->report->strips = 0;
    return gf_inputs_restart(pass->inputs, error);
}

/* Says who did what: both, where the first one's rows are in the outputs. */
static void report_both(const gf_way *way, const gf_stream_rest *rest, const gf_report *before) {
    gf_report *report = way->pass->report;
    char text[sizeof report->reason];
    const uint64_t done = rest->done - way->pass->first;
    if (done)
        snprintf(text, sizeof text, "%.130s; %s went on at row %" PRIu64, report->reason,
                 way->job.backend->name, rest->done);
    else
        snprintf(text, sizeof text, "%.130s; %s did it instead", report->reason,
                 way->job.backend->name);
    memcpy(report->reason, text, sizeof text);
    report->device_failed = report->device_failed || rest->by_backend;
    if (!done)
        return;
    snprintf(report->backend, sizeof report->backend, "%.7s+%.7s", before->backend,
             way->job.backend->name);
    way->job.backend->describe(way->job.state, text, sizeof text);
    snprintf(report->device, sizeof report->device, "%.90s; %.90s", before->device, text);
}

/* After a failure, of which *failure tells: may another backend do what is left? */
static bool may_go_on(gf_way *way, const gf_stream_rest *rest, const gf_error *failure) {
    gf_report *report = way->pass->report;
    gf_engine *engine = way->pass->engine;
    return (rest->by_backend || !rest->begun) &&
           gf_engine_fall_back(engine, &way->job.backend, &way->job.state, report->reason,
                               sizeof report->reason, failure) &&
           (rest->begun || !engine->leaves);
}

/* ---- one image ------------------------------------------------------------------------------- */

static void report_who(const gf_way *way) {
    gf_report *report = way->pass->report;
    snprintf(report->backend, sizeof report->backend, "%s", way->job.backend->name);
    way->job.backend->describe(way->job.state, report->device, sizeof report->device);
}

static gf_status stream(gf_way *way, gf_error *error) {
    gf_pass *pass = way->pass;
    gf_stream_rest rest = {.begun = false};
    gf_error failure = {0};
    report_who(way);
    gf_status status = run(way, &rest, &failure);
    if (status && may_go_on(way, &rest, &failure)) {
        const gf_report before = *pass->report;
        const gf_error first = failure;
        report_who(way);
        report_both(way, &rest, &before);
        status = rest.begun ? start_over(way, &rest, &first, &failure) : GF_OK;
        if (!status)
            status = run(way, rest.begun ? NULL : &rest, &failure);
    }
    pass->begun = !status || rest.begun || pass->report->strips > 0;
    if (status && error) /* what another backend made good is none */
        *error = failure;
    return status;
}

gf_status gf_pass_run(gf_pass *pass, gf_error *error) {
    gf_engine *engine = pass->engine;
    gf_report *report = pass->report;
    const gf_plan *plan = pass->plan;
    const gf_source *source = pass->inputs->source;
    gf_way way = {.pass = pass,
                  .job = {.name = pass->inputs->name,
                          .filter = pass->filter,
                          .plan = plan,
                          .first = pass->first,
                          .end = pass->end,
                          .rows_per_strip = engine->options.rows_per_strip,
                          .max_memory = pass->memory,
                          .unthreaded = engine->options.unthreaded}};
    const gf_workload work = {.plan = plan,
                              .codec = {.decode = source->cost,
                                        .decode_threads = source->threads,
                                        .encode = pass->encode,
                                        .encode_threads = pass->encode_threads},
                              .rows = pass->end ? pass->end - pass->first : 0,
                              .images = pass->images};
    char reason[sizeof report->reason];
    pass->begun = false;
    gf_status status = gf_engine_choose(engine, &work, &way.job.backend, &way.job.state, reason,
                                        sizeof reason, error);
    if (status)
        return status;
    if (!report->device_failed) /* when the image was read before: that is what is to be told */
        memcpy(report->reason, reason, sizeof reason);
    report->in = plan->in;
    report->out = plan->out;
    report->brightness = plan->brightness;
    if (plan->advice)
        snprintf(report->advice, sizeof report->advice, "%s", plan->advice);
    report->strips = 0;
    report->device_failed = report->device_failed || engine->lost;
    status = stream(&way, error);
    report->verified = engine->options.verify && !status;
    report->start_seconds += engine->start_seconds;
    engine->start_seconds = 0;
    return status;
}
