/* Running one image: plan, source, outputs, backend, in that order. */
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "clock.h"
#include "engine/task.h"
#include "error.h"
#include "io/files.h"
#include "plan.h"
#include "result.h"
#include "thread.h"

/* A sink with threads of its own has not done much when it has taken the last row. */
static gf_status finish_sink(gf_task *task, gf_error *error) {
    gf_sink *sink = task->sink;
    gf_busy *busy = &task->report->busy[GF_ENCODING];
    const double began = gf_now();
    const gf_status status = sink->ops->finish(sink, task->metadata, error);
    *busy = gf_sink_busy(sink, busy->seconds + gf_now() - began);
    return status;
}

/* Computes the image and the result, and writes all outputs but for their names. Where ranks must
 * stop together, they agree. */
static gf_status compute(gf_task *task, const gf_settings *settings, gf_result **result,
                         gf_error *error) {
    gf_status status =
        task->ranks ? gf_task_stream_shared(task, settings, error) : gf_task_stream(task, error);
    if (!status && task->sink)
        status = gf_task_check_metadata(task, error);
    if (!status && task->sink)
        status = finish_sink(task, error);
    if (!status && task->sink && task->verified)
        status = gf_task_check_written(task, error);
    status = gf_ranks_agree(task->ranks, status, error);
    if (!status && task->samples)
        status = gf_sample_sink_finish(task->samples, error);
    if (!status && gf_is_first(task->ranks))
        status = gf_task_make_result(task, result, error);
    task->report->in_bytes = task->source->bytes;
    task->report->total_seconds = gf_now() - task->began;
    return gf_ranks_agree(task->ranks, status, error);
}

/* The task's own outputs; returns how many, at most two. */
static size_t list_outputs(const gf_task *task, gf_output **outputs) {
    size_t count = 0;
    if (task->sink && task->sink->output)
        outputs[count++] = task->sink->output;
    if (task->samples)
        outputs[count++] = gf_sample_sink_output(task->samples);
    return count;
}

/* Report what went into the outputs. */
static void report_outputs(gf_task *task, bool strip) {
    gf_output *outputs[2];
    const size_t count = list_outputs(task, outputs);
    for (size_t i = 0; i < count; i++)
        task->report->out_bytes += gf_output_bytes(outputs[i]);
    if (!task->sink)
        return;
    task->report->counts_clipped = task->sink->counts_clipped;
    task->report->clipped = task->sink->clipped;
    task->report->dropped = strip ? 0 : task->source->dropped;
}

static gf_status place_all(gf_task *task, const gf_file_options *options, gf_error *error) {
    gf_output *outputs[3];
    size_t count = list_outputs(task, outputs);
    if (options && options->beside)
        outputs[count++] = gf_output_file_output(options->beside);
    return gf_outputs_place(outputs, count, error);
}

/* Nothing appears before everything is there. */
static gf_status complete(gf_task *task, const gf_settings *settings,
                          const gf_file_options *options, gf_result **result, gf_error *error) {
    gf_result *made = NULL;
    gf_status status = compute(task, settings, &made, error);
    if (!status && task->ranks)
        gf_task_share_report(task);
    if (!status)
        report_outputs(task, options && options->strip);
    if (!status && options && options->ready && gf_is_first(task->ranks)) {
        const gf_ready ready = {.file = task->sink ? gf_output_reach(task->sink->output) : NULL,
                                .result = made,
                                .report = task->report};
        status = options->ready(options->ready_context, &ready, error);
    }
    status = gf_follow_first(task->ranks, status, error);
    if (!status)
        status = place_all(task, options, error);
    if (status || !result)
        gf_result_free(made);
    else
        *result = made;
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static gf_status check_paths(const gf_filter *filter, const char *const *in_paths,
                             const char *out_path, gf_error *error) {
    for (uint32_t i = 0; i < filter->info.inputs; i++)
        if (!in_paths || !in_paths[i])
            return gf_fail(error, GF_USAGE, "%s: it reads %u images, and the name of one is NULL",
                           filter->info.name, filter->info.inputs);
    if (filter->info.makes_image && !out_path)
        return gf_fail(error, GF_USAGE, "%s: it makes an image; name a file for it",
                       filter->info.name);
    if (!filter->info.makes_image && out_path)
        return gf_fail(error, GF_USAGE, "%s: it makes no image, so nothing goes to %s",
                       filter->info.name, out_path);
    if (filter->info.inputs == 2 && strcmp(in_paths[0], "-") == 0 && strcmp(in_paths[1], "-") == 0)
        return gf_fail(error, GF_USAGE,
                       "%s: standard input can be read only once; name one of the files",
                       filter->info.name);
    return GF_OK;
}

/* From its inputs, which are open, to its outputs: by one process, or by all of task->ranks. */
static gf_status run_opened(gf_task *task, const gf_settings *settings, const char *out_path,
                            const gf_file_options *options, gf_result **result, gf_error *error) {
    gf_file_options own = *options;
    own.ranks = task->ranks;
    gf_status status = gf_task_open_outputs(task, settings, out_path, &own, error);
    status = gf_ranks_agree(task->ranks, status, error);
    if (status || own.dry_run)
        return status;
    if (task->filter->before)
        status = gf_measure_file(task, error);
    status = gf_ranks_agree(task->ranks, status, error);
    return status ? status : complete(task, settings, &own, result, error);
}

static gf_status run_file(gf_task *task, const gf_settings *settings, const char *const *in_paths,
                          const char *out_path, const gf_file_options *options, gf_result **result,
                          gf_error *error) {
    const bool alone = gf_alone(options->ranks);
    gf_status status =
        alone ? gf_task_open_inputs(task, settings, in_paths, options, error)
              : gf_task_open_shared(task, settings, in_paths, out_path, options, error);
    if (!status && (task->ranks || gf_is_first(options->ranks)))
        status = run_opened(task, settings, out_path, options, result, error);
    return alone ? status : gf_follow_first(options->ranks, status, error);
}

gf_status gf_run_file(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                      const char *const *in_paths, const char *out_path,
                      const gf_file_options *options, gf_result **result, gf_report *report,
                      gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_file_options defaults = {0};
    gf_report unread;
    if (!report)
        report = &unread;
    *report = (gf_report){0};
    if (result)
        *result = NULL;
    gf_status status = gf_check_use(filter, settings, error);
    if (!status)
        status = check_paths(filter, in_paths, out_path, error);
    if (status)
        return status;
    gf_task task = gf_task_begin(engine, filter, in_paths[0], report);
    status =
        run_file(&task, settings, in_paths, out_path, options ? options : &defaults, result, error);
    gf_task_end(&task);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static gf_status run_memory(gf_task *task, const gf_settings *settings, const gf_format *format,
                            const gf_pixels *in, void *out, size_t out_stride, gf_result **result,
                            gf_error *error) {
    const gf_filter *filter = task->filter;
    task->keep_samples = task->hold_samples =
        gf_task_file(task, settings, GF_PARAM_SAMPLES) != NULL;
    gf_status status = gf_task_open_memory(task, format, in, error);
    if (!status)
        status = gf_plan_new(filter, settings, format, &task->plan, error);
    if (!status && task->plan->out.width)
        status = out ? gf_memory_sink(&task->plan->out, out, out_stride, &task->sink, error)
                     : gf_fail(error, GF_USAGE, "%s: it makes an image; give memory for it",
                               filter->info.name);
    if (!status && filter->before)
        status = gf_measure_memory(task, error);
    return status ? status : complete(task, settings, NULL, result, error);
}

gf_status gf_run_memory(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                        const gf_format *format, const gf_pixels *in, void *out, size_t out_stride,
                        gf_result **result, gf_report *report, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_report unread;
    if (!report)
        report = &unread;
    *report = (gf_report){0};
    if (result)
        *result = NULL;
    gf_status status = gf_check_use(filter, settings, error);
    if (status)
        return status;
    gf_task task = gf_task_begin(engine, filter, "memory", report);
    status = run_memory(&task, settings, format, in, out, out_stride, result, error);
    gf_task_end(&task);
    return status;
}
