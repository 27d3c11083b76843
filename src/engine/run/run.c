/* Run of one image: plan, inputs, outputs, backend, in that order. Also completes an image that was
 * run in ranges of rows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/filter.h"
#include "core/result.h"
#include "core/thread.h"
#include "engine/run/task.h"
#include "io/file/output.h"
#include "io/io.h"

/* Add what the sink of an image has counted and omitted to the report. */
static void run_report_sink(const gf_task *task) {
    gf_report *report = task->report;
    const gf_source *source = task->inputs.source;
    const gf_format *stored = task->stored.width ? &task->stored : &task->plan->out;
    report->counted = task->sink->counts_clipped
                          ? stored->width * stored->height * gf_measured_channels(stored)
                          : 0;
    report->clipped = task->sink->clipped;
    gf_remarks_add(&report->remarks, &task->sink->remarks);
    if (task->with_metadata)
        report->dropped = source->dropped | task->sink->dropped |
                          gf_metadata_lost(&source->metadata, task->sink->form);
    gf_task_report_stored(task);
}

/* Finish the sink, or its page, and add the time: a threaded sink does most of its work after the
 * last row. */
static gf_status run_finish_sink(gf_task *task, gf_error *error) {
    gf_sink *sink = task->sink;
    gf_busy *busy = &task->report->busy[GF_ENCODING];
    const double began = gf_now();
    const gf_status status = (task->more_pages ? sink->end_page : sink->ops->finish)(
        sink, gf_task_metadata(task), error);
    *busy = sink->threads ? (gf_busy){sink->busy_seconds, sink->threads}
                          : (gf_busy){busy->seconds + gf_now() - began, 1};
    run_report_sink(task);
    return status;
}

/* Complete the sample file and the result, after the measure has received everything. */
static gf_status run_finish_result(gf_task *task, gf_result **result, gf_error *error) {
    gf_status status = task->samples ? gf_sample_sink_finish(task->samples, error) : GF_OK;
    return status ? status : gf_task_make_result(task, result, error);
}

/* Compute the image, or its page, and the result, and write all outputs under temporary names. */
static gf_status run_compute(gf_task *task, gf_result **result, gf_error *error) {
    gf_status status = gf_task_refine(task, error);
    if (!status)
        status = gf_task_stream(task, error);
    if (!status && task->sink)
        status = gf_task_update_metadata(task, error);
    if (!status && task->sink)
        status = run_finish_sink(task, error);
    if (!status)
        status = run_finish_result(task, result, error);
    gf_task_report_input(task);
    task->report->total_seconds = gf_now() - task->began;
    return status;
}

void gf_ready_add(const gf_ready *ready, gf_output_file *file) {
    *(gf_output **)ready->outputs = file;
}

/* Call options->ready, which may add an output of the caller, then rename all outputs. Take
 * ownership of the result. */
static gf_status run_publish(gf_task *task, const gf_file_options *options, gf_result *made,
                             gf_result **result, gf_error *error) {
    gf_output *outputs[3], *extra = NULL;
    size_t count = 0;
    gf_status status = GF_OK;
    if (task->sink && task->sink->output)
        outputs[count++] = task->sink->output;
    if (task->samples)
        outputs[count++] = gf_sample_sink_output(task->samples);
    for (size_t i = 0; i < count; i++)
        task->report->out_bytes += gf_output_bytes(outputs[i]);
    if (task->report->remarks.outside)
        gf_note(&task->report->remarks, "--depth: %" PRIu64 " f32 samples outside 0..1 clipped",
                task->report->remarks.outside);
    if (task->report->remarks.nodata)
        gf_note(&task->report->remarks, "%" PRIu64 " samples have the nodata value of %s file%s",
                task->report->remarks.nodata, task->inputs.count > 1 ? "a" : "the",
                task->filter->nodata ? " and are left out; --nodata none measures them"
                                     : ", and are treated as others");
    if (options->ready) {
        const gf_ready ready = {.item = task->item,
                                .file =
                                    task->sink ? gf_output_pending_path(task->sink->output) : NULL,
                                .result = made,
                                .report = task->report,
                                .outputs = &extra};
        status = options->ready(options->ready_context, &ready, error);
    }
    if (extra)
        outputs[count++] = extra;
    if (!status)
        status = gf_outputs_commit(outputs, count, error);
    if (status || !result)
        gf_result_free(made);
    else
        *result = made;
    return status;
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Rows of a page, for reading them back. */
typedef struct run_written {
    gf_format format;
    uint64_t digest;
} run_written;

/* Pages of one file. Without GF_ALL_PAGES there is one. */
typedef struct run_pages {
    gf_page_place place;  /* in the input */
    gf_report report;     /* sum of the pages before the current one */
    run_written *written; /* pages to read back; NULL: none */
    size_t count;         /* computed pages */
} run_pages;

/* Note a computed page, and add its statistics to those of the pages before: formats, backend and
 * sizes are those of the first one. */
static gf_status run_note_page(run_pages *pages, const gf_task *task, gf_error *error) {
    const gf_report *page = task->report;
    if (page->verified) {
        run_written *grown = realloc(pages->written, (pages->count + 1) * sizeof *grown);
        if (!grown)
            return gf_fail_memory(error, task->inputs.name, (pages->count + 1) * sizeof *grown,
                                  "the list of pages");
        pages->written = grown;
        grown[pages->count] = (run_written){task->stored, task->digest};
    }
    if (pages->count++)
        gf_report_add(&pages->report, page);
    else
        pages->report = *page;
    return GF_OK;
}

/* Compare the rows of the finished file with those written. */
static gf_status run_read_back(const run_pages *pages, const gf_task *task, gf_error *error) {
    gf_limits limits = task->inputs.limits;
    gf_page_place place = {0};
    gf_status status = GF_OK;
    limits.place = &place;
    for (size_t i = 0; i < pages->count && pages->written && !status; i++) {
        limits.page = (uint32_t)i + 1;
        status = gf_read_back(task->sink, &pages->written[i].format, &limits,
                              pages->written[i].digest, error);
    }
    return status;
}

/* Compute everything, then rename the outputs: none appears before all are complete. */
static gf_status run_complete(gf_task *task, run_pages *pages, const gf_file_options *options,
                              gf_result **result, gf_error *error) {
    gf_result *made = NULL;
    gf_status status = run_compute(task, &made, error);
    if (!status)
        status = run_note_page(pages, task, error);
    if (!status && task->sink)
        status = run_read_back(pages, task, error);
    if (status) {
        gf_result_free(made);
        return status;
    }
    *task->report = pages->report;
    return run_publish(task, options, made, result, error);
}

/* Clear the outputs of a call and validate its arguments. */
static gf_status run_check(const gf_filter *filter, const gf_settings *settings, gf_result **result,
                           gf_report *report, gf_error *error) {
    *report = (gf_report){0};
    if (result)
        *result = NULL;
    return gf_check_use(filter, settings, error);
}

/* ---- files ----------------------------------------------------------------------------------- */

gf_status gf_check_paths(const gf_filter *filter, const char *const *in_paths, const char *out_path,
                         gf_error *error) {
    for (uint32_t i = 0; i < filter->info.inputs; i++)
        if (!in_paths || !in_paths[i])
            return gf_fail(error, GF_USAGE, "%s: needs %u input paths, and one is NULL",
                           filter->info.name, filter->info.inputs);
    if (filter->info.makes_image && !out_path)
        return gf_fail(error, GF_USAGE, "%s: produces an image; give an output path",
                       filter->info.name);
    if (!filter->info.makes_image && out_path)
        return gf_fail(error, GF_USAGE, "%s: produces no image; remove the output path %s",
                       filter->info.name, out_path);
    if (filter->info.inputs == 2 && strcmp(in_paths[0], "-") == 0 && strcmp(in_paths[1], "-") == 0)
        return gf_fail(error, GF_USAGE,
                       "%s: standard input can be read only once; name one of the files",
                       filter->info.name);
    return GF_OK;
}

/* Open the sample file, if there is one. */
static gf_status run_open_samples(gf_task *task, const gf_settings *settings,
                                  const gf_file_options *options, gf_error *error) {
    const char *path = gf_filter_file(task->filter, settings, GF_PARAM_SAMPLES);
    gf_sample_layout layout = {0};
    if (!path)
        return GF_OK;
    task->filter->payload->layout(task->plan, &layout);
    gf_status status = gf_sample_sink_open(path, options, &layout, &task->samples, error);
    task->buffer_samples =
        !status && (layout.with_bin || gf_sample_sink_wants_count(task->samples));
    return status;
}

/* Convert the rows of the open sink if necessary, and reserve its memory. */
static gf_status run_prepare_sink(gf_task *task, gf_error *error) {
    const gf_status status = gf_task_convert_sink(task, error);
    if (status)
        return status;
    task->sink_memory = task->sink->memory < task->memory ? task->sink->memory : task->memory;
    task->memory -= task->sink_memory;
    return GF_OK;
}

/* Open the sink and the sample file. */
static gf_status run_open_outputs(gf_task *task, const gf_settings *settings, const char *out_path,
                                  const gf_file_options *options, gf_error *error) {
    if (!task->filter->info.makes_image)
        out_path = gf_filter_file(task->filter, settings, GF_PARAM_IMAGE);
    if (task->plan->out.width) {
        gf_status status = gf_sink_open(out_path, &task->stored, gf_task_metadata(task), options,
                                        task->threads, &task->sink, error);
        if (!status)
            status = run_prepare_sink(task, error);
        if (!status && task->more_pages && !task->sink->end_page)
            status = gf_fail(error, GF_USAGE,
                             "%s: --page all: the input has %" PRIu32
                             " pages, and this format holds one image; write .tif",
                             out_path, task->report->pages);
        if (status)
            return status;
    }
    return run_open_samples(task, settings, options, error);
}

/* Compute a page that is not the last one, and open the next one. */
static gf_status run_page(gf_task *task, run_pages *pages, const gf_settings *settings,
                          const char *const *in_paths, const char *out_path,
                          const gf_file_options *options, gf_error *error) {
    gf_status status = run_compute(task, NULL, error);
    if (!status)
        status = run_note_page(pages, task, error);
    if (status)
        return status;
    gf_task next = gf_task_begin(task->engine, task->filter, task->report);
    next.item = task->item;
    next.place = task->place;
    next.page = (uint32_t)pages->count + 1;
    next.sink = task->sink;
    task->sink = NULL;
    status = gf_task_open_files(&next, settings, in_paths, options, error);
    if (!status)
        status = gf_inputs_check_same(&next.inputs, &task->inputs, error);
    if (!status)
        status = gf_sink_next_page(&next.sink, out_path, &next.stored, gf_task_metadata(&next),
                                   options, next.threads, error);
    if (!status)
        status = run_prepare_sink(&next, error);
    gf_task_end(task);
    *task = next;
    return status;
}

gf_status gf_task_write(gf_task *task, const gf_settings *settings, const char *out_path,
                        gf_fill_sink *fill, void *context, const gf_file_options *options,
                        gf_result **result, gf_error *error) {
    const double began = gf_now();
    gf_result *made = *result;
    *result = NULL;
    gf_status status = run_open_outputs(task, settings, out_path, options, error);
    gf_sink *sink = task->sink;
    if (!status && sink)
        status = fill(context, sink, error);
    gf_busy_add(&task->report->busy[GF_ENCODING], (gf_busy){gf_now() - began, 1});
    if (!status && sink)
        status = run_finish_sink(task, error);
    if (!status)
        return run_publish(task, options, made, result, error);
    gf_result_free(made);
    return status;
}

gf_status gf_run_file_of(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                         const char *const *in_paths, const char *out_path, uint64_t item,
                         const gf_file_options *options, gf_result **result, gf_report *report,
                         gf_error *error) {
    gf_status status = run_check(filter, settings, result, report, error);
    if (!status)
        status = gf_check_options(NULL, options, error);
    if (!status)
        status = gf_check_paths(filter, in_paths, out_path, error);
    if (status)
        return status;
    run_pages pages = {.count = 0};
    gf_task task = gf_task_begin(engine, filter, report);
    task.item = item;
    task.place = options->page == GF_ALL_PAGES ? &pages.place : NULL;
    status = gf_task_open_files(&task, settings, in_paths, options, error);
    if (!status)
        status = run_open_outputs(&task, settings, out_path, options, error);
    while (!status && task.more_pages && !options->dry_run)
        status = run_page(&task, &pages, settings, in_paths, out_path, options, error);
    if (!status && !options->dry_run)
        status = run_complete(&task, &pages, options, result, error);
    gf_task_end(&task);
    free(pages.written);
    return status;
}

gf_status gf_run_file(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                      const char *const *in_paths, const char *out_path,
                      const gf_file_options *options, gf_result **result, gf_report *report,
                      gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_file_options defaults = {0};
    gf_report unread;
    return gf_run_file_of(engine, filter, settings, in_paths, out_path, 0,
                          options ? options : &defaults, result, report ? report : &unread, error);
}

/* ---- ranges of rows -------------------------------------------------------------------------- */

gf_status gf_finish_rows(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                         const gf_partial *partial, gf_rows_file *file,
                         const gf_file_options *options, gf_result **result, gf_report *report,
                         gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const double began = gf_now();
    const gf_report done = *report;
    gf_result *made = NULL;
    gf_task task = gf_task_begin(engine, filter, report);
    *report = done;
    if (result)
        *result = NULL;
    task.inputs.name = filter->info.name;
    task.sink = file;
    gf_status status = gf_plan_new(filter, settings, gf_partial_format(partial), &task.plan, error);
    if (!status)
        status = run_open_samples(&task, settings, options, error);
    if (!status)
        status = gf_task_open_measure(&task, error);
    if (!status && task.data)
        status = gf_partial_deliver(partial, task.plan, task.data, error);
    if (!status && task.sink)
        status = run_finish_sink(&task, error);
    if (!status)
        status = run_finish_result(&task, &made, error);
    report->total_seconds += gf_now() - began;
    if (!status)
        status = run_publish(&task, options, made, result, error);
    else
        gf_result_free(made);
    gf_task_end(&task);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

gf_status gf_check_overlap(const char *name, const gf_plan *plan, const gf_pixels *in,
                           const gf_out_pixels *out, gf_error *error) {
    for (uint32_t i = 0; i < plan->inputs; i++)
        if (gf_pixels_overlap(&plan->in, in[i], &plan->out, (gf_pixels){out->data, out->stride}))
            return gf_fail(error, GF_USAGE,
                           "%s: the output overlaps an input; use other memory for it", name);
    return GF_OK;
}

gf_status gf_run_memory_of(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                           const gf_format *format, const gf_pixels *in, gf_out_pixels out,
                           uint64_t images, gf_result **result, gf_report *report,
                           gf_error *error) {
    const gf_file_options no_files = {0};
    gf_status status = run_check(filter, settings, result, report, error);
    if (status)
        return status;
    gf_task task = gf_task_begin(engine, filter, report);
    task.images = images;
    status = gf_task_open_memory(&task, settings, format, in, error);
    if (!status && task.plan->out.width)
        status = out.data ? gf_memory_sink(&task.plan->out, 1, &out, &task.sink, error)
                          : gf_fail(error, GF_USAGE, "%s: produces an image; give an output buffer",
                                    filter->info.name);
    if (!status && task.sink)
        status = gf_check_overlap(filter->info.name, task.plan, in, &out, error);
    run_pages pages = {.count = 0};
    if (!status)
        status = run_complete(&task, &pages, &no_files, result, error);
    gf_task_end(&task);
    free(pages.written);
    return status;
}

gf_status gf_run_memory(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                        const gf_format *format, const gf_pixels *in, void *out, size_t out_stride,
                        gf_result **result, gf_report *report, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_report unread;
    return gf_run_memory_of(engine, filter, settings, format, in, (gf_out_pixels){out, out_stride},
                            1, result, report ? report : &unread, error);
}
