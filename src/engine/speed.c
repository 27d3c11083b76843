/* Timing filters and copies on the backends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/filter.h"
#include "core/result.h"
#include "core/thread.h"
#include "engine/pipeline.h"
#include "engine/task.h"
#include "engine/trial.h"
#include "io/io.h"

/* ---- filters --------------------------------------------------------------------------------- */

/* A trial and the memory of its rows. */
typedef struct gf_speed_run {
    gf_task task;
    gf_consumer consumer; /* for the geometry: nothing is consumed */
    gf_stream_job stream;
    gf_trial trial;
    gf_speed *speed;
} gf_speed_run;

/* The image where the backend's bands would have it: rows aligned, those of two inputs side by
 * side. */
static gf_status lay_out(gf_speed_run *run, gf_error *error) {
    const gf_plan *plan = run->task.plan;
    const gf_job *job = &run->trial.job;
    const uint64_t height = plan->in.height;
    const uint64_t bytes = height * (job->in_stride + job->out_stride) + plan->state_bytes;
    gf_status status = gf_check_memory(bytes, run->task.memory, "memory", "what is timed", error);
    if (status)
        return status;
    run->trial.in =
        (gf_rows){gf_aligned_alloc((size_t)height, job->in_stride), job->in_stride, 0, height};
    run->trial.out = (gf_rows){gf_aligned_alloc(1, (size_t)height * job->out_stride),
                               job->out_stride, 0, height};
    run->trial.state = gf_aligned_alloc(1, (size_t)plan->state_bytes);
    if (!run->trial.in.data || !run->trial.out.data || !run->trial.state)
        return gf_fail_memory(error, "memory", bytes, "what is timed");
    gf_source *source = run->task.inputs.source;
    return source->ops->read(source, run->trial.in.data, job->in_stride, height, error);
}

/* Has the filter learn what it learns before it begins, and chooses a backend. */
static gf_status prepare(gf_speed_run *run, const gf_settings *settings, const gf_format *format,
                         const gf_pixels *in, gf_error *error) {
    gf_task *task = &run->task;
    gf_stream_job *stream = &run->stream;
    char reason[sizeof task->report->reason];
    gf_status status = gf_task_open_memory(task, settings, format, in, error);
    if (!status)
        status = gf_task_learn(task, error);
    if (!status)
        status = gf_task_open_measure(task, error);
    if (!status)
        status = gf_engine_choose(task->engine, &(gf_workload){.plan = task->plan},
                                  &stream->backend, &stream->state, reason, sizeof reason, error);
    if (status)
        return status;
    stream->name = "memory";
    stream->filter = task->filter;
    stream->plan = task->plan;
    stream->consumer = &run->consumer;
    stream->band_rows = task->engine->options.band_rows;
    stream->max_memory = task->memory;
    status = gf_choose_geometry(stream, &run->trial.job, error);
    return status ? status : lay_out(run, error);
}

static gf_status run_trial(gf_speed_run *run, gf_error *error) {
    const gf_backend *backend = run->stream.backend;
    gf_trial *trial = &run->trial;
    trial->data = run->task.data;
    return backend->time ? backend->time(run->stream.state, trial, error)
                         : gf_trial_on_host(backend, run->stream.state, trial, error);
}

/* Image rows and result of what was timed. */
static gf_status hand_out(gf_speed_run *run, void *out, size_t out_stride, gf_result **result,
                          gf_error *error) {
    gf_task *task = &run->task;
    const gf_plan *plan = task->plan;
    const gf_measure *measure = task->filter->measure;
    const gf_rows *rows = &run->trial.out;
    gf_result *made = NULL;
    gf_status status = GF_OK;
    for (uint64_t y = 0; plan->out.width && y < rows->rows; y++)
        memcpy((unsigned char *)out + y * out_stride, gf_row(rows, y), gf_row_bytes(&plan->out));
    if (measure && plan->record)
        status = measure->rows(plan, task->data, rows, error);
    if (measure && !status)
        status = measure->finish(plan, task->data, run->trial.state, error);
    if (!status)
        status = gf_task_make_result(task, &made, error);
    if (!status && result)
        *result = made;
    else
        gf_result_free(made);
    return status;
}

static gf_status check_out(const gf_plan *plan, const gf_filter *filter, const void *out,
                           size_t out_stride, gf_error *error) {
    if (plan->out.width && !out)
        return gf_fail(error, GF_USAGE, "%s: it makes an image; give memory for it",
                       filter->info.name);
    if (plan->out.width && out_stride < gf_row_bytes(&plan->out))
        return gf_fail(error, GF_FAILED,
                       "memory: a stride of %zu bytes is shorter than a row of %zu bytes",
                       out_stride, gf_row_bytes(&plan->out));
    return GF_OK;
}

gf_status gf_time_filter(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                         const gf_format *format, const gf_pixels *in, void *out, size_t out_stride,
                         double seconds, gf_result **result, gf_speed *speed, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_report unread;
    if (result)
        *result = NULL;
    gf_status status = gf_check_use(filter, settings, error);
    if (status)
        return status;
    gf_speed_run run = {.task = gf_task_begin(engine, filter, &unread),
                        .trial = {.budget = seconds}};
    status = prepare(&run, settings, format, in, error);
    if (!status)
        status = check_out(run.task.plan, filter, out, out_stride, error);
    if (!status)
        status = run_trial(&run, error);
    if (!status) {
        const gf_plan *plan = run.task.plan;
        const size_t drawn = plan->out.width ? gf_row_bytes(&plan->out) : 0;
        *speed = (gf_speed){.seconds = gf_laps_median(&run.trial.passes),
                            .passes = run.trial.passes.count,
                            .bytes = plan->in.height * (plan->inputs * gf_row_bytes(&plan->in) +
                                                        drawn + plan->record)};
        snprintf(speed->backend, sizeof speed->backend, "%s", run.stream.backend->name);
        run.stream.backend->describe(run.stream.state, speed->device, sizeof speed->device);
        status = hand_out(&run, out, out_stride, result, error);
    }
    free(run.trial.in.data);
    free(run.trial.out.data);
    free(run.trial.state);
    gf_task_end(&run.task);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

gf_status gf_time_memory(gf_engine *engine, uint64_t bytes, double seconds, gf_memory_speed *speed,
                         gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_backend *backend = engine->named;
    void *state;
    char reason[1];
    if (!backend)
        return gf_fail(error, GF_USAGE, "auto: copies by no backend of its own; name one");
    if (!bytes)
        return gf_fail(error, GF_USAGE, "%s: copies of 0 bytes take no time", backend->name);
    gf_status status =
        gf_check_memory(bytes, engine->options.max_memory / 2, "memory", "a copy", error);
    const gf_plan none = {0};
    if (!status)
        status = gf_engine_choose(engine, &(gf_workload){.plan = &none}, &backend, &state, reason,
                                  sizeof reason, error);
    return status ? status : backend->copy(state, bytes, seconds, speed, error);
}
