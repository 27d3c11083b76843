/* Run of one image: plan, inputs, outputs, backend, in that order. Also completes an image that was
 * run in ranges of rows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "engine/run/task.h"
#include "io/file/output.h"
#include "io/stream/memory.h"

/* Finish the sink, or its page, and add the time: a threaded sink does most of its work after the
 * last row. Report what it has counted and omitted. */
static gf_status run_finish_sink(gf_task *task, gf_error *error) {
    gf_sink *sink = task->sink;
    gf_busy *busy = &task->made->report.busy[GF_ENCODING];
    gf_step_report *output = &task->made->steps[task->chain->output];
    const gf_source *source = task->inputs.sources[0];
    const gf_format *stored = task->stored.width ? &task->stored : &task->plan->out;
    const double began = gf_now();
    const gf_status status = (task->more_pages ? sink->end_page : sink->ops->finish)(
        sink, gf_task_metadata(task), error);
    *busy = sink->threads ? (gf_busy){sink->busy_seconds, sink->threads}
                          : (gf_busy){busy->seconds + gf_now() - began, 1};
    output->counted =
        sink->counts_clipped ? stored->width * stored->height * gf_measured_channels(stored) : 0;
    output->clipped = sink->clipped;
    gf_remarks_add(&task->made->report.remarks, &sink->remarks);
    if (task->with_metadata)
        output->dropped =
            source->dropped | sink->dropped | gf_metadata_lost(&source->metadata, sink->form);
    gf_task_report_stored(task);
    return status;
}

void gf_ready_add(const gf_ready *ready, gf_output_file *file) {
    *(gf_output **)ready->outputs = file;
}

/* Call options->ready, which may add an output of the caller, then rename all outputs. Free the
 * results on failure. */
static gf_status run_publish(gf_task *task, gf_error *error) {
    const gf_file_options *options = &task->chain->options;
    gf_made *made = task->made;
    gf_step_report *output = &made->steps[task->chain->output];
    gf_remarks *remarks = &made->report.remarks;
    gf_output *outputs[3], *extra = NULL;
    size_t count = 0;
    gf_status status = GF_OK;
    if (task->sink && task->sink->output)
        outputs[count++] = task->sink->output;
    if (task->samples)
        outputs[count++] = gf_sample_sink_output(task->samples);
    for (size_t i = 0; i < count; i++)
        output->out_bytes += gf_output_bytes(outputs[i]);
    if (remarks->outside)
        gf_note(remarks, "--depth: %" PRIu64 " f32 samples outside 0..1 clipped", remarks->outside);
    if (remarks->nodata)
        gf_note(remarks, "%" PRIu64 " samples have the nodata value of %s file%s", remarks->nodata,
                task->inputs.count > 1 ? "a" : "the",
                task->chain->filter->nodata ? " and are left out; --nodata none measures them"
                                            : ", and are treated as others");
    if (options->ready) {
        output->file = task->sink ? gf_output_pending_path(task->sink->output) : NULL;
        const gf_outcome outcome = gf_made_outcome(made);
        const gf_ready ready = {.item = task->chain->item, .outcome = &outcome, .outputs = &extra};
        status = options->ready(options->ready_context, &ready, error);
        output->file = NULL;
    }
    if (extra)
        outputs[count++] = extra;
    if (!status)
        status = gf_outputs_commit(outputs, count, error);
    if (status)
        gf_made_free_results(made);
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
    gf_made made;         /* sum of the pages before the current one */
    run_written *written; /* pages to read back; NULL: none */
    size_t count;         /* computed pages */
} run_pages;

/* Compute the image, or its page, and the result, and write all outputs under temporary names. Add
 * the statistics to those of the pages before: formats, backend and sizes are those of the first
 * one. */
static gf_status run_compute(gf_task *task, run_pages *pages, gf_error *error) {
    gf_made *page = task->made;
    gf_status status = gf_task_refine(task, error);
    if (!status)
        status = gf_task_stream(task, error);
    if (!status && task->sink)
        status = gf_task_update_metadata(task, error);
    if (!status && task->sink)
        status = run_finish_sink(task, error);
    if (!status)
        status = gf_task_make_result(task, &page->results[0], error);
    gf_task_report_input(task);
    page->report.total_seconds = gf_now() - task->began;
    if (status)
        return status;
    if (page->report.verified) {
        run_written *grown = realloc(pages->written, (pages->count + 1) * sizeof *grown);
        if (!grown)
            return gf_fail_memory(error, task->inputs.name, (pages->count + 1) * sizeof *grown,
                                  "the list of pages");
        pages->written = grown;
        grown[pages->count] = (run_written){task->stored, task->digest};
    }
    if (pages->count++) {
        gf_made_add(&pages->made, page);
        memcpy(pages->made.results, page->results, sizeof page->results);
    } else {
        pages->made = *page;
    }
    return GF_OK;
}

/* Compute everything, then rename the outputs: none appears before all are complete. Before that,
 * compare the rows of a verified file with those written. */
static gf_status run_complete(gf_task *task, run_pages *pages, gf_error *error) {
    gf_limits limits = task->inputs.limits;
    gf_page_place place = {0};
    gf_status status = run_compute(task, pages, error);
    limits.place = &place;
    for (size_t i = 0; task->sink && pages->written && i < pages->count && !status; i++) {
        const run_written *page = &pages->written[i];
        limits.page = (uint32_t)i + 1;
        status = gf_read_back(task->sink, &page->format, &limits, page->digest, error);
    }
    if (status) {
        gf_made_free_results(task->made);
        return status;
    }
    *task->made = pages->made;
    return run_publish(task, error);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Open the sample file, if there is one. */
static gf_status run_open_samples(gf_task *task, gf_error *error) {
    const gf_chain *chain = task->chain;
    gf_sample_layout layout = {0};
    if (!chain->samples_path)
        return GF_OK;
    chain->filter->payload->layout(task->plan, &layout);
    gf_status status =
        gf_sample_sink_open(chain->samples_path, &chain->options, &layout, &task->samples, error);
    task->buffer_samples =
        !status && (layout.with_bin || gf_sample_sink_wants_count(task->samples));
    return status;
}

/* Convert the rows of the open sink if necessary, and reserve its memory. */
static gf_status run_prepare_sink(gf_task *task, gf_error *error) {
    const gf_status status = gf_task_convert_sink(task, error);
    if (status)
        return status;
    task->sink_memory = gf_min(task->sink->memory, task->memory);
    task->memory -= task->sink_memory;
    return GF_OK;
}

/* Open the sink and the sample file. */
static gf_status run_open_outputs(gf_task *task, gf_error *error) {
    const gf_chain *chain = task->chain;
    if (task->plan->out.width) {
        gf_status status = gf_sink_open(chain->out_path, &task->stored, gf_task_metadata(task),
                                        &chain->options, task->threads, &task->sink, error);
        if (!status)
            status = run_prepare_sink(task, error);
        if (!status && task->more_pages && !task->sink->end_page)
            status = gf_fail(error, GF_USAGE,
                             "%s: --page all: the input has %" PRIu32
                             " pages, and this format holds one image; write .tif",
                             chain->out_path, task->made->report.pages);
        if (status)
            return status;
    }
    return run_open_samples(task, error);
}

/* Compute a page that is not the last one, and open the next one. */
static gf_status run_page(gf_task *task, run_pages *pages, gf_error *error) {
    const gf_chain *chain = task->chain;
    gf_status status = run_compute(task, pages, error);
    if (status)
        return status;
    gf_task next = gf_task_begin(task->engine, chain, task->made);
    next.place = task->place;
    next.page = (uint32_t)pages->count + 1;
    next.sink = task->sink;
    task->sink = NULL;
    status = gf_task_open_files(&next, error);
    if (!status)
        status = gf_inputs_check_same(&next.inputs, &task->inputs, error);
    if (!status)
        status = gf_sink_next_page(&next.sink, chain->out_path, &next.stored,
                                   gf_task_metadata(&next), &chain->options, next.threads, error);
    if (!status)
        status = run_prepare_sink(&next, error);
    gf_task_end(task);
    *task = next;
    return status;
}

gf_status gf_task_write(gf_task *task, gf_fill_sink *fill, void *context, gf_error *error) {
    const double began = gf_now();
    gf_status status = run_open_outputs(task, error);
    gf_sink *sink = task->sink;
    if (!status && sink)
        status = fill(context, sink, error);
    gf_busy_add(&task->made->report.busy[GF_ENCODING], (gf_busy){gf_now() - began, 1});
    if (!status && sink)
        status = run_finish_sink(task, error);
    if (!status)
        return run_publish(task, error);
    gf_made_free_results(task->made);
    return status;
}

gf_status gf_run_files(gf_engine *engine, const gf_chain *chain, gf_made *made, gf_error *error) {
    const bool dry = chain->options.dry_run;
    run_pages pages = {.count = 0};
    gf_task task = gf_task_begin(engine, chain, made);
    task.place = chain->options.page == GF_ALL_PAGES ? &pages.place : NULL;
    gf_status status = gf_task_open_files(&task, error);
    if (!status)
        status = run_open_outputs(&task, error);
    while (!status && task.more_pages && !dry)
        status = run_page(&task, &pages, error);
    if (!status && !dry)
        status = run_complete(&task, &pages, error);
    gf_task_end(&task);
    free(pages.written);
    return status;
}

/* ---- ranges of rows -------------------------------------------------------------------------- */

gf_status gf_finish_rows(gf_engine *engine, const gf_job *job, const gf_partial *partial,
                         gf_rows_file *file, gf_outcome *outcome, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const double began = gf_now();
    gf_chain chain;
    gf_made made;
    gf_status status = gf_chain_open_files(job, &chain, error);
    gf_task task = gf_task_begin(engine, &chain, &made);
    made.report = outcome->report;
    for (uint32_t i = 0; outcome->steps && i < chain.steps; i++)
        made.steps[i] = outcome->steps[i];
    task.sink = file;
    task.inputs.name = status ? NULL : chain.filter->info.name;
    if (!status)
        status = gf_chain_plan(&chain, gf_partial_format(partial), &task.plan, error);
    if (!status)
        status = run_open_samples(&task, error);
    if (!status)
        status = gf_task_open_measure(&task, error);
    if (!status && task.data)
        status = gf_partial_deliver(partial, task.plan, task.data, error);
    if (!status && task.sink)
        status = run_finish_sink(&task, error);
    if (!status)
        status = gf_task_make_result(&task, &made.results[0], error);
    made.report.total_seconds += gf_now() - began;
    if (!status)
        status = run_publish(&task, error);
    gf_task_end(&task);
    gf_made_return(&made, &chain, outcome);
    gf_chain_close(&chain);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

gf_status gf_check_overlap(const gf_plan *plan, const char *name, const gf_pixels *in,
                           const gf_out_pixels *out, gf_error *error) {
    for (uint32_t i = 0; i < plan->inputs; i++)
        if (gf_pixels_overlap(&plan->in, in[i], &plan->out, (gf_pixels){out->data, out->stride}))
            return gf_fail(error, GF_USAGE,
                           "%s: the output overlaps an input; use other memory for it", name);
    return GF_OK;
}

gf_status gf_run_image(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                       uint64_t image, gf_made *made, gf_error *error) {
    const gf_filter_info *info = &chain->filter->info;
    run_pages pages = {.count = 0};
    gf_task task = gf_task_begin(engine, chain, made);
    gf_pixels in[2] = {{NULL, 0}};
    gf_status status = GF_OK;
    task.images = chain->count - image;
    task.keep_samples = task.buffer_samples = chain->samples_path != NULL;
    for (uint32_t i = 0; i < info->inputs && !status; i++) {
        in[i] = chain->in[i][image];
        if (!in[i].data)
            status = gf_fail(error, GF_USAGE, "%s: needs %u input images, and one is NULL",
                             info->name, info->inputs);
    }
    if (!status)
        status = gf_inputs_open_memory(&task.inputs, info->inputs, format, 1,
                                       (const gf_pixels *[]){&in[0], &in[1]}, error);
    if (!status)
        status = gf_chain_plan(chain, format, &task.plan, error);
    const bool has_image = !status && task.plan->out.width;
    if (has_image && (!chain->out || !chain->out[image].data))
        status =
            gf_fail(error, GF_USAGE, "%s: produces an image; give an output buffer", info->name);
    if (has_image && !status)
        status = gf_memory_sink(&task.plan->out, 1, &chain->out[image], &task.sink, error);
    if (has_image && !status)
        status = gf_check_overlap(task.plan, info->name, in, &chain->out[image], error);
    if (!status)
        status = run_complete(&task, &pages, error);
    gf_task_end(&task);
    free(pages.written);
    return status;
}
