/* One image through its chosen backend. If the backend fails under auto, another one computes the
 * image from its first row, with the same bits. Rows that the consumer already has are dropped. */
#include "engine/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

/* Restart the inputs and the report for the fallback backend. */
static gf_status pass_restart(gf_pass *pass, const gf_error *failure, gf_error *error) {
    const uint64_t rows = pass->report->rows_per_strip;
    gf_cut unread;
    if (!gf_inputs_can_restart(pass->inputs)) {
        char cause[GF_REASON_BYTES];
        gf_engine_format_reason(cause, failure);
        return gf_fail(error, GF_FAILED,
                       "%s: %s; the input cannot be read again: run again, or use --backend cpu",
                       pass->inputs->name, cause);
    }
    /* Payloads were consumed strip by strip, so no new strip may cross the row reached so far:
     * choose a strip height that divides the previous one. */
    bool has_payload = false;
    for (uint32_t i = 0; i < pass->nodes->count; i++)
        has_payload = has_payload || pass->nodes->node[i].plan->has_payload;
    for (uint64_t parts = 1; has_payload && parts <= rows; parts++) {
        pass->job.rows_per_strip = rows / parts;
        if (rows % parts == 0 && !gf_choose_geometry(&pass->job, &unread, NULL))
            break;
    }
    pass->report->strips = 0;
    return gf_inputs_restart(pass->inputs, error);
}

static void pass_report_backend(const gf_pass *pass) {
    gf_report *report = pass->report;
    snprintf(report->backend, sizeof report->backend, "%s", pass->job.on.backend->name);
    pass->job.on.backend->describe(pass->job.on.state, report->device, sizeof report->device);
}

/* Report the failure and the fallback; report both backends if the first one produced rows. */
static void pass_report_fallback(const gf_pass *pass, uint64_t done) {
    gf_report *report = pass->report;
    const gf_report before = *report;
    const char *name = pass->job.on.backend->name;
    pass_report_backend(pass);
    if (done == 0) {
        snprintf(report->reason, sizeof report->reason, "%.130s; %s was used instead",
                 before.reason, name);
        return;
    }
    char device[sizeof report->device];
    memcpy(device, report->device, sizeof device);
    snprintf(report->reason, sizeof report->reason, "%.130s; %s continued at row %" PRIu64,
             before.reason, name, done);
    snprintf(report->backend, sizeof report->backend, "%.7s+%.7s", before.backend, name);
    snprintf(report->device, sizeof report->device, "%.90s; %.90s", before.device, device);
}

/* Stream the image to the consumer, through the verifier if enabled. */
static gf_status pass_stream(gf_pass *pass, gf_stream_stop *stop, gf_error *error) {
    gf_engine *engine = pass->engine;
    gf_status status = GF_OK;
    pass->job.consumer = pass->consumer;
    if (engine->options.verify) {
        if (!engine->verify)
            status = gf_backend_verify.open(&engine->options, &engine->verify, error);
        pass->verifier =
            (gf_verifier){.next = pass->consumer, .stream = &pass->job, .golden = engine->verify};
        pass->job.consumer = gf_verifier_consumer(&pass->verifier, gf_engine_threads(engine));
    }
    return status ? status : gf_stream_run(&pass->job, pass->inputs, pass->report, stop, error);
}

/* Stream the image. If the backend fails, another one may compute the rest. */
static gf_status pass_compute(gf_pass *pass, gf_error *error) {
    gf_engine *engine = pass->engine;
    gf_report *report = pass->report;
    gf_stream_job *job = &pass->job;
    gf_stream_stop stop = {.begun = false};
    pass_report_backend(pass);
    gf_status status = pass_stream(pass, &stop, error);
    const gf_error failure = *error;
    if (status && stop.by_backend)
        stop.device_error = failure;
    /* Record a failure of the device, also if it happened while the file failed. */
    if (stop.device_error.status == GF_NO_BACKEND) {
        gf_engine_note_failure(engine, job->on.backend, &stop.device_error);
        gf_engine_format_reason(report->reason, &stop.device_error);
        report->device_failed = true;
    }
    if (status && (stop.by_backend || !stop.begun) &&
        gf_engine_fall_back(engine, &job->on, report->reason, &failure) &&
        (stop.begun || !engine->may_defer)) {
        pass_report_fallback(pass, stop.done);
        report->device_failed = report->device_failed || stop.by_backend;
        status = stop.begun ? pass_restart(pass, &failure, error) : GF_OK;
        if (!status)
            status = pass_stream(pass, stop.begun ? NULL : &stop, error);
    }
    pass->begun = !status || stop.begun || report->strips > 0;
    return status;
}

/* Use images in memory in place: those of all inputs, and of the sink of the last edge. */
static void pass_set_memory(gf_pass *pass) {
    gf_stream_job *job = &pass->job;
    const gf_format *last = &pass->nodes->node[pass->nodes->count - 1].plan->out;
    if (!gf_inputs_in_memory(pass->inputs, pass->in))
        return;
    job->in = pass->in;
    if (job->sink && !gf_memory_sink_rows(job->sink, last, &job->out))
        job->out.data = NULL;
}

/* Choose strips, and report them. */
static gf_status pass_report_strips(gf_pass *pass, gf_error *error) {
    gf_cut cut;
    pass->job.consumer = pass->consumer;
    pass_report_backend(pass);
    const gf_status status = gf_choose_geometry(&pass->job, &cut, error);
    pass->report->rows_per_strip = cut.height;
    pass->report->strips = cut.strips;
    pass->report->strip_bytes = cut.bytes;
    return status;
}

/* Choose a backend, and run the pass on it. */
static gf_status pass_try(gf_pass *pass, gf_error *error) {
    gf_engine *engine = pass->engine;
    gf_report *report = pass->report;
    gf_inputs *inputs = pass->inputs;
    const gf_source *source = inputs->sources[0];
    const gf_nodes *nodes = pass->nodes;
    const uint64_t height = nodes->node[0].plan->in.height;
    gf_stream_job *job = &pass->job;
    gf_codec_costs codec = {.decode_threads = source->threads,
                            .encode = pass->encode,
                            .encode_threads = pass->encode_threads};
    inputs->reading = 1;
    for (uint32_t i = 0; i < nodes->count; i++)
        inputs->reading += gf_node_has_second(&nodes->node[i]);
    for (uint32_t i = 0; i < inputs->reading; i++) {
        codec.decode += inputs->sources[i]->cost;
        codec.decode_threads = (uint32_t)gf_min(codec.decode_threads, inputs->sources[i]->threads);
    }
    *job = (gf_stream_job){.name = inputs->name,
                           .nodes = nodes,
                           .source = job->source,
                           .rows_per_strip = engine->options.rows_per_strip,
                           .rows_together = inputs->reading > 1 ? 0 : source->rows_together,
                           .groups = source->groups,
                           .max_memory = pass->memory - gf_inputs_memory(inputs),
                           .unthreaded = engine->options.unthreaded,
                           .sink = job->sink,
                           .seconds = pass->seconds};
    pass_set_memory(pass);
    const gf_workload work = {.nodes = nodes,
                              .codec = codec,
                              .rows = job->source.end ? gf_min(job->source.end, height) -
                                                            gf_min(job->source.first, height)
                                                      : 0,
                              .images = pass->images};
    char reason[GF_REASON_BYTES];
    pass->begun = false;
    gf_status status = gf_engine_choose(engine, &work, &job->on, reason, error);
    if (status)
        return status;
    if (!report->device_failed) /* keep the reason of a failure in an earlier pass over the image */
        memcpy(report->reason, reason, sizeof reason);
    report->strips = 0;
    report->device_failed = report->device_failed || engine->cuda_error.status;
    if (pass->dry_run)
        return pass_report_strips(pass, error);
    status = pass_compute(pass, error);
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
