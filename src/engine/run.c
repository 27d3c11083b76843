/* Running one image: plan, source, backend, sink, in that order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "engine/engine.h"
#include "engine/stream.h"
#include "error.h"
#include "io/limits.h"
#include "io/metadata.h"
#include "io/sample_sink.h"
#include "plan.h"
#include "result.h"

/* One image on its way. */
typedef struct gf_task {
    gf_engine *engine;
    const gf_filter *filter;
    const char *name; /* of the image, for messages */
    gf_source *source;
    gf_sink *sink;           /* NULL: no image is made */
    gf_sample_sink *samples; /* NULL: no samples go into a file */
    bool keep_samples;       /* in the result */
    gf_plan *plan;
    void *data;                  /* of the filter's measure */
    const gf_metadata *metadata; /* for the output; NULL for none */
    gf_report *report;
    double began;
} gf_task;

/* What was spent on starting the backend is this image's, if it is the first. */
static gf_task begin(gf_engine *engine, const gf_filter *filter, const char *name,
                     gf_report *report) {
    *report = (gf_report){0};
    return (gf_task){.engine = engine,
                     .filter = filter,
                     .name = strcmp(name, "-") == 0 ? "standard input" : name,
                     .report = report,
                     .began = gf_now() - engine->start_seconds};
}

/* A profile that is lost changes how the picture looks: that must not pass for success. */
static gf_status check_metadata(const gf_task *task, gf_error *error) {
    if (!task->metadata || !task->metadata->damaged[0])
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: its %s chunk is damaged; get an intact copy, or leave metadata out with "
                   "--strip",
                   task->name, task->metadata->damaged);
}

/* Chooses a backend and streams the image through it. */
static gf_status stream(gf_task *task, gf_error *error) {
    gf_engine *engine = task->engine;
    gf_report *report = task->report;
    gf_stream_job job = {.name = task->name,
                         .filter = task->filter,
                         .plan = task->plan,
                         .band_rows = engine->options.band_rows,
                         .max_memory = engine->options.max_memory,
                         .data = task->data};
    double codec = task->source->cost;
    if (task->sink && task->sink->cost > codec)
        codec = task->sink->cost;
    gf_status status = gf_engine_choose(engine, task->plan, codec, &job.backend, &job.state,
                                        report->reason, sizeof report->reason, error);
    if (status)
        return status;
    report->in = task->plan->in;
    report->out = task->plan->out;
    report->bands = 0;
    gf_error own = {0};
    status = gf_stream_run(&job, task->source, task->sink, report, &own);
    if (status && report->bands == 0 &&
        gf_engine_fall_back(engine, &job.backend, &job.state, report->reason, sizeof report->reason,
                            &own))
        status = gf_stream_run(&job, task->source, task->sink, report, &own);
    if (status && error)
        *error = own;
    report->start_seconds += engine->start_seconds;
    engine->start_seconds = 0;
    snprintf(report->backend, sizeof report->backend, "%s", job.backend->name);
    job.backend->describe(job.state, report->device, sizeof report->device);
    return status;
}

static gf_status open_measure(gf_task *task, gf_error *error) {
    const gf_measure *measure = task->filter->measure;
    if (!measure)
        return GF_OK;
    const uint64_t max_memory = task->engine->options.max_memory;
    gf_status status =
        gf_check_memory(task->plan->result_bytes, max_memory, task->name, "the result", error);
    if (status)
        return status;
    const gf_keep keep = {.samples = task->samples,
                          .all = task->keep_samples,
                          .max_memory = max_memory - task->plan->result_bytes,
                          .name = task->name};
    return measure->open(task->plan, &keep, &task->data, error);
}

/* A result that cannot be built any more is still the task's to free. */
static gf_status make_result(gf_task *task, gf_result **result, gf_error *error) {
    if (!result || !task->data)
        return GF_OK;
    gf_plan *plan = task->plan;
    void *data = task->data;
    task->plan = NULL;
    task->data = NULL;
    return gf_result_new(task->filter, plan, data, result, error);
}

/* Streams, puts the outputs in place, makes the result. */
static gf_status complete(gf_task *task, gf_result **result, gf_error *error) {
    gf_status status = open_measure(task, error);
    if (!status)
        status = stream(task, error);
    if (!status && task->sink)
        status = check_metadata(task, error);
    if (!status && task->sink)
        status = task->sink->ops->finish(task->sink, task->metadata, error);
    if (!status && task->samples)
        status = gf_sample_sink_finish(task->samples, error);
    if (!status)
        status = make_result(task, result, error);
    task->report->total_seconds = gf_now() - task->began;
    return status;
}

static void end(gf_task *task) {
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

/* ---- a filter that measures first ------------------------------------------------------------ */

/* Runs the filter before this one over the task's source and lets the plan learn from it. */
static gf_status measure_first(gf_task *task, gf_error *error) {
    const gf_filter *before = task->filter->before;
    gf_task first = *task;
    first.filter = before;
    first.sink = NULL;
    first.samples = NULL;
    first.keep_samples = false;
    first.plan = NULL;
    first.data = NULL;
    gf_settings *settings = gf_settings_new(before->info.params, before->info.param_count);
    gf_status status =
        settings ? gf_plan_new(before, settings, &task->plan->in, &first.plan, error)
                 : gf_fail_memory(error, before->info.name, before->info.param_count, "settings");
    if (!status)
        status = open_measure(&first, error);
    if (!status)
        status = stream(&first, error);
    if (!status)
        task->filter->learn(task->plan, first.plan, first.data);
    if (first.data)
        before->measure->close(first.data);
    free(first.plan);
    gf_settings_free(settings);
    return status;
}

/* The source's image in memory, as a source of its own that knows its metadata, too. */
static gf_status hold(gf_task *task, const gf_limits *limits, gf_error *error) {
    gf_source *source = task->source, *held = NULL;
    const gf_format *format = &source->format;
    const gf_limits resolved = gf_limits_resolve(limits);
    const size_t row = gf_row_bytes(format);
    gf_status status = gf_check_memory(format->height * row, resolved.max_memory, task->name,
                                       "an image that is read twice and comes from a pipe", error);
    if (status)
        return status;
    unsigned char *pixels = malloc((size_t)format->height * row);
    if (!pixels)
        return gf_fail_memory(error, task->name, format->height * row, "the image");
    status = source->ops->read(source, pixels, row, format->height, error);
    if (!status)
        status = source->ops->finish(source, error);
    if (!status)
        status = gf_memory_source(format, pixels, row, &held, error);
    if (status) {
        free(pixels);
        return status;
    }
    gf_memory_source_own(held, pixels, free);
    held->metadata = source->metadata;
    gf_metadata_init(&source->metadata);
    source->ops->close(source);
    task->source = held;
    return GF_OK;
}

/* A file is read twice; what cannot be is held. */
static gf_status read_twice(gf_task *task, const char *path, const gf_limits *limits,
                            gf_error *error) {
    struct stat info;
    bool again = strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    gf_status status = again ? GF_OK : hold(task, limits, error);
    if (!status)
        status = measure_first(task, error);
    if (status)
        return status;
    if (!again) {
        gf_memory_source_rewind(task->source);
        return GF_OK;
    }
    task->source->ops->close(task->source);
    task->source = NULL;
    status = gf_source_open(path, limits, &task->source, error);
    if (!status && !gf_format_equal(&task->source->format, &task->plan->in))
        status = gf_fail(error, GF_FAILED, "%s: changed while it was read; run again", task->name);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The text of the filter's parameter of a type that names a file; NULL for none. */
static const char *named_file(const gf_filter *filter, const gf_settings *settings,
                              gf_param_type type) {
    for (size_t i = 0; i < filter->info.param_count; i++)
        if (filter->info.params[i].type == type)
            return gf_settings_text(settings, filter->info.params[i].name);
    return NULL;
}

/* The task's source and another one, side by side. */
static gf_status add_second(gf_task *task, gf_source *second, const char *name,
                            const char *second_name, gf_error *error) {
    gf_source *pair;
    gf_status status = gf_pair_source(task->source, second, name, second_name, &pair, error);
    if (status)
        second->ops->close(second);
    else
        task->source = pair;
    return status;
}

static gf_status open_inputs(gf_task *task, const char *const *paths, const gf_limits *limits,
                             gf_error *error) {
    gf_status status = gf_source_open(paths[0], limits, &task->source, error);
    if (status || task->filter->info.inputs == 1)
        return status;
    gf_source *second;
    if (strcmp(paths[0], "-") == 0 && strcmp(paths[1], "-") == 0)
        return gf_fail(error, GF_USAGE,
                       "%s: standard input can be read only once; name one of the files",
                       task->filter->info.name);
    status = gf_source_open(paths[1], limits, &second, error);
    return status ? status : add_second(task, second, paths[0], paths[1], error);
}

static gf_status open_outputs(gf_task *task, const gf_settings *settings, const char *out_path,
                              const gf_file_options *options, gf_error *error) {
    const gf_filter *filter = task->filter;
    const char *samples_path = named_file(filter, settings, GF_PARAM_SAMPLES);
    if (!filter->info.makes_image)
        out_path = named_file(filter, settings, GF_PARAM_IMAGE);
    if (out_path && samples_path && strcmp(out_path, "-") == 0 && strcmp(samples_path, "-") == 0)
        return gf_fail(error, GF_USAGE, "%s: standard output can hold only one of the outputs",
                       filter->info.name);
    gf_status status = GF_OK;
    if (task->plan->out.width)
        status =
            gf_sink_open(out_path, &task->plan->out, task->metadata, options, &task->sink, error);
    if (!status && samples_path) {
        gf_sample_layout layout = {0};
        filter->measure->layout(task->plan, &layout);
        status = gf_sample_sink_open(samples_path, options->sample_format, options->force, &layout,
                                     &task->samples, error);
    }
    return status;
}

gf_status gf_run_file(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                      const char *const *in_paths, const char *out_path,
                      const gf_file_options *options, gf_result **result, gf_report *report,
                      gf_error *error) {
    const gf_file_options defaults = {0};
    gf_report unread;
    if (!options)
        options = &defaults;
    const gf_limits limits = {.max_pixels = options->max_pixels,
                              .max_memory = options->max_memory,
                              .max_chunk = options->max_chunk};
    if (result)
        *result = NULL;
    gf_task task = begin(engine, filter, in_paths[0], report ? report : &unread);
    gf_status status = open_inputs(&task, in_paths, &limits, error);
    if (!status)
        status = gf_plan_new(filter, settings, &task.source->format, &task.plan, error);
    if (!status && filter->before)
        status = read_twice(&task, in_paths[0], &limits, error);
    /* What is drawn from two images is neither of them: it has no metadata. */
    if (!status && !options->strip && task.plan->out.width && filter->info.inputs == 1)
        task.metadata = &task.source->metadata;
    if (!status)
        status = check_metadata(&task, error);
    if (!status)
        status = open_outputs(&task, settings, out_path, options, error);
    if (!status)
        status = complete(&task, result, error);
    end(&task);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static gf_status open_memory(gf_task *task, const gf_format *format, const gf_pixels *in,
                             gf_error *error) {
    gf_status status = gf_memory_source(format, in[0].data, in[0].stride, &task->source, error);
    if (status || task->filter->info.inputs == 1)
        return status;
    gf_source *second;
    status = gf_memory_source(format, in[1].data, in[1].stride, &second, error);
    return status ? status : add_second(task, second, "memory", "memory", error);
}

gf_status gf_run_memory(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                        const gf_format *format, const gf_pixels *in, void *out, size_t out_stride,
                        gf_result **result, gf_report *report, gf_error *error) {
    gf_report unread;
    if (result)
        *result = NULL;
    gf_task task = begin(engine, filter, "memory", report ? report : &unread);
    task.keep_samples = named_file(filter, settings, GF_PARAM_SAMPLES) != NULL;
    gf_status status = open_memory(&task, format, in, error);
    if (!status)
        status = gf_plan_new(filter, settings, format, &task.plan, error);
    if (!status && filter->before) {
        status = measure_first(&task, error);
        gf_memory_source_rewind(task.source);
    }
    if (!status && task.plan->out.width)
        status = gf_memory_sink(&task.plan->out, out, out_stride, &task.sink, error);
    if (!status)
        status = complete(&task, result, error);
    end(&task);
    return status;
}
