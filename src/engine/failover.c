/* One image through the backend that was chosen for it. Where that fails, "auto" lets another go
 * on: with the same bits, so that rows which went on stay as they are, and the next one computes
 * those that come after them. They are still in the ring, or have not been read yet.
 *
 * Only what accumulated over the image is lost with its device. Then, and where there is no memory
 * to keep what was read, the image is read again from its beginning; what went on already is
 * computed for the state's sake, if there is one, and dropped. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/geometry.h"
#include "engine/stream.h"
#include "engine/task.h"
#include "engine/verified.h"
#include "error.h"

typedef struct gf_way {
    gf_task *task;
    const gf_backend *backend; /* that computes, */
    void *state;               /* and its own */
    gf_verifier verifier;      /* between the stream and that, if the image is verified */
    gf_stream_job job;
} gf_way;

/* The stream goes through the backend that computes, past golden if it is to be verified. */
static gf_status aim(gf_way *way, gf_error *error) {
    gf_engine *engine = way->task->engine;
    way->job.backend = way->backend;
    way->job.state = way->state;
    if (!engine->options.verify)
        return GF_OK;
    way->verifier = (gf_verifier){.backend = way->backend,
                                  .state = way->state,
                                  .threads = gf_engine_threads(engine),
                                  .name = way->task->name};
    way->job.backend = &gf_backend_verified;
    way->job.state = &way->verifier;
    return gf_engine_checkers(engine, &way->verifier.pool, error);
}

static gf_status run(gf_way *way, gf_source *source, gf_stream_rest *rest, gf_error *error) {
    return gf_stream_run(&way->job, source, way->task->sink, way->task->report, rest, error);
}

/* ---- where the backend has failed ------------------------------------------------------------ */

/* Payloads went on band by band: no new band may lie across the place up to which they did. */
static void match_bands(gf_stream_job *job, uint64_t band_rows) {
    gf_job unread;
    for (uint64_t parts = 1; parts <= band_rows; parts++) {
        if (band_rows % parts)
            continue;
        job->band_rows = band_rows / parts;
        if (!gf_choose_geometry(job, &unread, NULL))
            return;
    }
}

static gf_status start_over(gf_way *way, gf_stream_rest *rest, const char *why,
                            const gf_error *failure, gf_error *error) {
    gf_task *task = way->task;
    if (rest->source)
        rest->source->ops->close(rest->source);
    rest->source = NULL;
    if (!gf_task_can_read_again(task)) {
        char cause[sizeof task->report->reason];
        gf_engine_give_reason(cause, sizeof cause, failure);
        return gf_fail(error, GF_FAILED,
                       "%s: %s; %s, and the input cannot be read again: run again, or use "
                       "--backend cpu",
                       task->name, cause, why);
    }
    const gf_status status = gf_task_read_again(task, error);
    if (status)
        return status;
    way->job.handed = rest->done;
    if (task->plan->has_payload)
        match_bands(&way->job, rest->band_rows);
    task->report->bands = 0;
    return run(way, task->source, NULL, error);
}

/* What is left of the image as a job of its own; false if its bands find no memory beside what is
 * held of it. */
static bool cut_rest(gf_stream_job *job, const gf_stream_rest *rest) {
    gf_job unread;
    gf_stream_job left = *job;
    if (!rest->source || rest->bytes > left.max_memory)
        return false;
    left.first = rest->done;
    left.max_memory -= rest->bytes;
    if (gf_choose_geometry(&left, &unread, NULL))
        return false;
    *job = left;
    return true;
}

/* The rest of the image, by the backend that is left. */
static gf_status go_on(gf_way *way, gf_stream_rest *rest, const gf_error *failure,
                       gf_error *error) {
    gf_stream_job *job = &way->job;
    gf_status status = aim(way, error);
    if (status)
        return status;
    if (!rest->begun)
        return run(way, way->task->source, rest, error);
    if (job->plan->state_bytes && rest->done > job->first)
        return start_over(way, rest, "what was measured is lost with it", failure, error);
    if (!cut_rest(job, rest))
        return start_over(way, rest, "there is no memory for what was read", failure, error);
    return run(way, rest->source, NULL, error);
}

/* Says who did what: both, where the first one's rows are in the outputs. */
static void tell_both(const gf_way *way, const gf_stream_rest *rest, const gf_report *before) {
    gf_report *report = way->task->report;
    char text[sizeof report->reason];
    const uint64_t done = rest->done - way->task->first;
    if (done)
        snprintf(text, sizeof text, "%.130s; %s went on at row %" PRIu64, report->reason,
                 way->backend->name, rest->done);
    else
        snprintf(text, sizeof text, "%.130s; %s did it instead", report->reason,
                 way->backend->name);
    memcpy(report->reason, text, sizeof text);
    report->device_failed = report->device_failed || rest->by_backend;
    if (!done)
        return;
    snprintf(report->backend, sizeof report->backend, "%.7s+%.7s", before->backend,
             way->backend->name);
    way->backend->describe(way->state, text, sizeof text);
    snprintf(report->device, sizeof report->device, "%.90s; %.90s", before->device, text);
}

/* After a failure, of which *failure tells: may another backend do what is left? */
static bool may_go_on(gf_way *way, const gf_stream_rest *rest, const gf_error *failure) {
    gf_report *report = way->task->report;
    gf_engine *engine = way->task->engine;
    return !way->verifier.differs && (rest->by_backend || !rest->begun) &&
           gf_engine_fall_back(engine, &way->backend, &way->state, report->reason,
                               sizeof report->reason, failure) &&
           (rest->begun || !engine->leaves);
}

/* ---- one image ------------------------------------------------------------------------------- */

static void tell_who(const gf_way *way) {
    gf_report *report = way->task->report;
    snprintf(report->backend, sizeof report->backend, "%s", way->backend->name);
    way->backend->describe(way->state, report->device, sizeof report->device);
}

static gf_status stream(gf_way *way, gf_error *error) {
    gf_task *task = way->task;
    gf_stream_rest rest = {.begun = false};
    gf_error failure = {0};
    gf_status status = aim(way, error);
    if (status)
        return status;
    tell_who(way);
    status = run(way, task->source, &rest, &failure);
    if (status && may_go_on(way, &rest, &failure)) {
        const gf_report before = *task->report;
        const gf_error first = failure;
        tell_who(way);
        tell_both(way, &rest, &before);
        status = go_on(way, &rest, &first, &failure);
    }
    if (rest.source)
        rest.source->ops->close(rest.source);
    if (status == GF_FAILED && !rest.begun && task->report->bands == 0 &&
        gf_task_spare(task, &failure)) {
        way->job.max_memory = task->memory;
        status = run(way, task->source, NULL, &failure);
    }
    /* The band that differs was computed: nobody may take the image for one that was not begun. */
    task->report->bands += way->verifier.differs;
    if (status && error) /* what another backend made good is none */
        *error = failure;
    return status;
}

static gf_codec_costs codec_of(const gf_task *task) {
    gf_codec_costs codec = {.decode = task->source->cost, .decode_threads = task->source->threads};
    if (task->sink) {
        codec.encode = task->sink->cost;
        codec.encode_threads = task->sink->threads;
    }
    return codec;
}

gf_status gf_task_stream(gf_task *task, gf_error *error) {
    gf_engine *engine = task->engine;
    gf_report *report = task->report;
    gf_status status = gf_task_open_measure(task, error);
    if (status)
        return status;
    gf_way way = {.task = task};
    const gf_codec_costs codec = codec_of(task);
    char reason[sizeof report->reason];
    status = gf_engine_choose(engine, task->plan, &codec, &way.backend, &way.state, reason,
                              sizeof reason, error);
    if (status)
        return status;
    if (!report->device_failed) /* when the image was read before: that is what is to be told */
        memcpy(report->reason, reason, sizeof reason);
    report->in = task->plan->in;
    report->out = task->plan->out;
    report->brightness = task->plan->brightness;
    if (task->plan->advice)
        snprintf(report->advice, sizeof report->advice, "%s", task->plan->advice);
    report->bands = 0;
    report->device_failed = report->device_failed || engine->lost;
    task->verified = engine->options.verify;
    task->digest = 0;
    task->listener.first = task->first;
    task->listener.rows = (task->end ? task->end : task->plan->in.height) - task->first;
    way.job = (gf_stream_job){.name = task->name,
                              .filter = task->filter,
                              .plan = task->plan,
                              .first = task->first,
                              .end = task->end,
                              .band_rows = engine->options.band_rows,
                              .max_memory = task->memory,
                              .unthreaded = engine->options.unthreaded,
                              .data = task->data,
                              .listener = &task->listener,
                              .digest = task->verified ? &task->digest : NULL};
    status = stream(&way, error);
    report->verified = task->verified && !status;
    report->start_seconds += engine->start_seconds;
    engine->start_seconds = 0;
    return status;
}
