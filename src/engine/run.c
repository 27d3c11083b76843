/* Running one image: plan, source, backend, sink, in that order. */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "engine/engine.h"
#include "engine/stream.h"
#include "error.h"

static gf_status make_plan(const gf_filter *filter, const gf_settings *settings,
                           const gf_format *format, gf_plan **out, gf_error *error) {
    gf_plan *plan = calloc(1, filter->plan_bytes);
    if (!plan)
        return gf_fail_memory(error, filter->info.name, filter->plan_bytes, "a plan");
    plan->in = plan->out = *format;
    gf_status status = filter->plan(settings, plan, error);
    if (status) {
        free(plan);
        return status;
    }
    *out = plan;
    return GF_OK;
}

/* One image on its way. */
typedef struct gf_task {
    gf_source *source;
    gf_sink *sink;
    gf_plan *plan;
    const gf_metadata *metadata; /* for the output; NULL for none */
    double began;
} gf_task;

/* What was spent on starting the backend is this image's, if it is the first. */
static gf_task begin(const gf_engine *engine, gf_report *report) {
    *report = (gf_report){0};
    return (gf_task){.began = gf_now() - engine->start_seconds};
}

/* A profile that is lost changes how the picture looks: that must not pass for success. */
static gf_status check_metadata(const gf_task *task, const char *name, gf_error *error) {
    if (!task->metadata || !task->metadata->damaged[0])
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: its %s chunk is damaged; get an intact copy, or leave metadata out with "
                   "--strip",
                   name, task->metadata->damaged);
}

/* Chooses a backend, streams, and puts the output in place. */
static gf_status complete(gf_task *task, gf_engine *engine, const char *name,
                          const gf_filter *filter, gf_report *report, gf_error *error) {
    gf_stream_job job = {.name = name,
                         .filter = filter,
                         .plan = task->plan,
                         .band_rows = engine->options.band_rows,
                         .max_memory = engine->options.max_memory};
    double codec = task->source->cost > task->sink->cost ? task->source->cost : task->sink->cost;
    gf_status status = gf_engine_choose(engine, task->plan, codec, &job.backend, &job.state,
                                        report->reason, sizeof report->reason, error);
    if (status)
        return status;
    report->in = task->plan->in;
    report->out = task->plan->out;
    gf_error own = {0};
    status = gf_stream_run(&job, task->source, task->sink, report, &own);
    if (status && report->bands == 0 &&
        gf_engine_fall_back(engine, &job.backend, &job.state, report->reason, sizeof report->reason,
                            &own))
        status = gf_stream_run(&job, task->source, task->sink, report, &own);
    if (status && error)
        *error = own;
    report->start_seconds = engine->start_seconds;
    engine->start_seconds = 0;
    snprintf(report->backend, sizeof report->backend, "%s", job.backend->name);
    job.backend->describe(job.state, report->device, sizeof report->device);
    if (!status)
        status = check_metadata(task, name, error);
    if (!status)
        status = task->sink->ops->finish(task->sink, task->metadata, error);
    report->total_seconds = gf_now() - task->began;
    return status;
}

static void end(gf_task *task) {
    if (task->sink)
        task->sink->ops->close(task->sink);
    if (task->source)
        task->source->ops->close(task->source);
    free(task->plan);
}

gf_status gf_run_file(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                      const char *in_path, const char *out_path, const gf_file_options *options,
                      gf_report *report, gf_error *error) {
    const gf_file_options defaults = {0};
    gf_report unread;
    if (!options)
        options = &defaults;
    if (!report)
        report = &unread;
    const gf_limits limits = {.max_pixels = options->max_pixels,
                              .max_memory = options->max_memory,
                              .max_chunk = options->max_chunk};
    gf_task task = begin(engine, report);
    gf_status status = gf_source_open(in_path, &limits, &task.source, error);
    if (!status)
        status = make_plan(filter, settings, &task.source->format, &task.plan, error);
    if (!status && !options->strip)
        task.metadata = &task.source->metadata;
    if (!status)
        status = check_metadata(&task, in_path, error);
    if (!status)
        status = gf_sink_open(out_path, &task.plan->out, task.metadata, options, &task.sink, error);
    if (!status)
        status = complete(&task, engine, in_path, filter, report, error);
    end(&task);
    return status;
}

gf_status gf_run_memory(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                        const gf_format *format, const void *in, size_t in_stride, void *out,
                        size_t out_stride, gf_report *report, gf_error *error) {
    gf_report unread;
    if (!report)
        report = &unread;
    gf_task task = begin(engine, report);
    gf_status status = gf_memory_source(format, in, in_stride, &task.source, error);
    if (!status)
        status = make_plan(filter, settings, format, &task.plan, error);
    if (!status)
        status = gf_memory_sink(&task.plan->out, out, out_stride, &task.sink, error);
    if (!status)
        status = complete(&task, engine, "memory", filter, report, error);
    end(&task);
    return status;
}
