#include "engine/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "error.h"
#include "io/files.h"
#include "io/limits.h"
#include "plan.h"
#include "result.h"

gf_task gf_task_begin(gf_engine *engine, const gf_filter *filter, const char *name,
                      gf_report *report) {
    *report = (gf_report){0};
    return (gf_task){.engine = engine,
                     .threads = gf_engine_threads(engine),
                     .filter = filter,
                     .name = strcmp(name, "-") == 0 ? "standard input" : name,
                     .memory = engine->options.max_memory,
                     .report = report,
                     .began = gf_now() - engine->start_seconds};
}

gf_status gf_task_check_metadata(const gf_task *task, gf_error *error) {
    if (!task->metadata || !task->metadata->damaged[0])
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: its %s chunk is damaged; get an intact copy, or leave metadata out with "
                   "--strip",
                   task->name, task->metadata->damaged);
}

const char *gf_task_file(const gf_task *task, const gf_settings *settings, gf_param_type type) {
    const gf_filter *filter = task->filter;
    for (size_t i = 0; i < filter->info.param_count; i++)
        if (filter->info.params[i].type == type)
            return gf_settings_text(settings, filter->info.params[i].name);
    return NULL;
}

gf_status gf_task_add_second(gf_task *task, gf_source *second, const char *name,
                             const char *second_name, gf_error *error) {
    gf_source *pair;
    gf_status status = gf_pair_source(task->source, second, name, second_name, &pair, error);
    if (status)
        second->ops->close(second);
    else
        task->source = pair;
    return status;
}

gf_status gf_task_open_sources(gf_task *task, gf_error *error) {
    const char *const *paths = task->paths;
    gf_status status = gf_source_open(paths[0], &task->limits, &task->source, error);
    if (status || task->filter->info.inputs == 1)
        return status;
    gf_source *second;
    status = gf_source_open(paths[1], &task->limits, &second, error);
    return status ? status : gf_task_add_second(task, second, paths[0], paths[1], error);
}

gf_status gf_task_open_inputs(gf_task *task, const gf_settings *settings, const char *const *paths,
                              const gf_file_options *options, gf_error *error) {
    const gf_filter *filter = task->filter;
    task->paths = paths;
    task->limits = gf_limits_of(options, task->threads);
    task->listener = (gf_listener){.tell = options->progress,
                                   .context = options->progress_context,
                                   .passes = filter->before ? 2 : 1};
    for (uint32_t i = 0; i < filter->info.inputs; i++)
        task->seen[i] = gf_see(paths[i]);
    gf_status status = gf_task_open_sources(task, error);
    if (!status)
        status = gf_plan_new(filter, settings, &task->source->format, &task->plan, error);
    /* What is drawn from two images is neither of them: it has no metadata. */
    if (!status && !options->strip && task->plan->out.width && filter->info.inputs == 1)
        task->metadata = &task->source->metadata;
    return status ? status : gf_task_check_metadata(task, error);
}

static void take_sinks_memory(gf_task *task) {
    const uint64_t held = task->sink->memory;
    task->sinks_memory = held < task->memory ? held : task->memory;
    task->memory -= task->sinks_memory;
}

gf_status gf_task_open_outputs(gf_task *task, const gf_settings *settings, const char *out_path,
                               const gf_file_options *options, gf_error *error) {
    const gf_filter *filter = task->filter;
    const char *samples_path = gf_task_file(task, settings, GF_PARAM_SAMPLES);
    if (!filter->info.makes_image)
        out_path = gf_task_file(task, settings, GF_PARAM_IMAGE);
    gf_status status = GF_OK;
    if (task->plan->out.width)
        status = gf_sink_open(out_path, &task->plan->out, task->metadata, options, task->threads,
                              &task->sink, error);
    if (!status && task->sink)
        take_sinks_memory(task);
    status = gf_ranks_agree(task->ranks, status, error);
    if (!status && samples_path) {
        gf_sample_layout layout = {0};
        filter->measure->layout(task->plan, &layout);
        status = gf_sample_sink_open(samples_path, options->sample_format, options->force, &layout,
                                     options->ranks, &task->samples, error);
        if (!status)
            status = gf_output_set_sync(gf_sample_sink_output(task->samples), options->sync, error);
        task->hold_samples =
            !status && (layout.with_bin || gf_sample_sink_wants_count(task->samples));
    }
    return status;
}

gf_status gf_task_open_memory(gf_task *task, const gf_format *format, const gf_pixels *in,
                              gf_error *error) {
    gf_source *sources[2] = {NULL, NULL};
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < task->filter->info.inputs && !status; i++)
        status = !in || !in[i].data
                     ? gf_fail(error, GF_USAGE, "%s: it reads %u images, and one is NULL",
                               task->filter->info.name, task->filter->info.inputs)
                     : gf_memory_source(format, in[i].data, in[i].stride, &sources[i], error);
    task->source = sources[0];
    if (!status && sources[1])
        status = gf_task_add_second(task, sources[1], "memory", "memory", error);
    return status;
}

gf_status gf_task_open_measure(gf_task *task, gf_error *error) {
    const gf_measure *measure = task->filter->measure;
    if (!measure || task->data)
        return GF_OK;
    gf_status status =
        gf_check_memory(task->plan->result_bytes, task->memory, task->name, "the result", error);
    if (status)
        return status;
    task->memory -= task->plan->result_bytes;
    const gf_keep keep = {.samples = task->samples,
                          .all = task->keep_samples,
                          .max_memory = task->hold_samples ? task->memory / 2 : 0,
                          .name = task->name};
    task->memory -= keep.max_memory;
    return measure->open(task->plan, &keep, &task->data, error);
}

bool gf_task_spare(gf_task *task, gf_error *error) {
    gf_sink *sink = task->sink;
    if (!sink || !sink->spare)
        return false;
    task->memory += task->sinks_memory;
    if (sink->spare(sink, error))
        return false;
    take_sinks_memory(task);
    return true;
}

gf_status gf_task_make_result(gf_task *task, gf_result **result, gf_error *error) {
    if (!task->data)
        return GF_OK;
    gf_plan *plan = task->plan;
    void *data = task->data;
    task->plan = NULL;
    task->data = NULL;
    return gf_result_new(task->filter, plan, data, result, error);
}

void gf_task_end(gf_task *task) {
    if (task->data)
        task->filter->measure->close(task->data);
    if (task->samples)
        gf_sample_sink_close(task->samples);
    if (task->sink)
        task->sink->ops->close(task->sink);
    if (task->source)
        task->source->ops->close(task->source);
    free(task->plan);
}
