/* Run of one image: plan, inputs, outputs, backend, in that order. */
#include "engine/run/task.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"
#include "io/file/output.h"
#include "io/stream/convert.h"

gf_task gf_task_begin(gf_engine *engine, const gf_chain *chain, gf_made *made) {
    *made = (gf_made){.results = {NULL}};
    return (gf_task){.engine = engine,
                     .chain = chain,
                     .threads = gf_engine_threads(engine),
                     .memory = engine->options.max_memory,
                     .made = made,
                     .began = gf_now() - engine->start_seconds};
}

void gf_task_end(gf_task *task) {
    if (task->data)
        task->chain->filter->measure->close(task->data);
    if (task->samples)
        gf_sample_sink_close(task->samples);
    if (task->sink)
        task->sink->ops->close(task->sink);
    gf_inputs_close(&task->inputs);
    gf_plan_free(task->plan);
    *task = (gf_task){0};
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static const gf_metadata *task_metadata(const gf_task *task) {
    return task->with_metadata ? &task->inputs.sources[0]->metadata : &task->stripped;
}

gf_status gf_task_update_metadata(const gf_task *task, gf_error *error) {
    gf_source *source = task->inputs.sources[0];
    const char *damaged = source->metadata.damaged;
    const bool all_pages = task->page || task->more_pages;
    if (!task->with_metadata)
        return GF_OK;
    const gf_status status =
        gf_metadata_update(&source->metadata, &task->stored, source->pages <= 1 || all_pages,
                           &source->dropped, task->inputs.name, error);
    if (status || !damaged[0])
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: the %.*s chunk is damaged; get an intact copy, or omit metadata with "
                   "--strip",
                   task->inputs.name, (int)strcspn(damaged, " "), damaged);
}

gf_status gf_task_convert_sink(gf_task *task, gf_error *error) {
    return gf_convert_sink(&task->sink, &task->plan->out, &task->stored, task->inputs.type.linear,
                           task->inputs.file_type == GF_F32, error);
}

void gf_task_report_input(const gf_task *task) {
    const gf_inputs *inputs = &task->inputs;
    gf_report *report = &task->made->report;
    report->in_bytes = report->pages = 0;
    for (uint32_t i = 0; i < inputs->count && inputs->sources[i]; i++) {
        report->in_bytes += inputs->sources[i]->bytes;
        if (inputs->sources[i]->pages > report->pages)
            report->pages = inputs->sources[i]->pages;
    }
    gf_inputs_remarks(inputs, &report->remarks);
    if (task->sink)
        gf_remarks_add(&report->remarks, &task->sink->remarks);
}

void gf_task_report_stored(const gf_task *task) {
    gf_step_report *output = &task->made->steps[task->chain->output];
    const gf_type type = task->stored.type;
    if (!task->stored.width)
        return;
    output->out = task->stored;
    if (task->with_metadata && type < task->plan->out.type && type < task->inputs.file_type)
        output->dropped |= GF_DROPPED_DEPTH;
}

gf_status gf_task_open_files(gf_task *task, gf_error *error) {
    const gf_filter *filter = task->chain->filter;
    const gf_file_options *options = &task->chain->options;
    const bool all_pages = options->page == GF_ALL_PAGES;
    gf_limits limits = gf_limits_of(options, task->threads);
    const bool stacked = all_pages && !filter->info.makes_image;
    limits.page = all_pages ? task->page : options->page;
    limits.stacked = stacked;
    limits.shared = filter->info.makes_image && !filter->refine; /* which measures first */
    limits.place = task->place;
    task->watch = (gf_watch){.item = task->chain->item,
                             .progress = options->progress,
                             .context = options->progress_context};
    gf_input_type type = {
        .linear = options->linear, .premultiply = options->premultiply, .nodata = filter->nodata};
    if (filter->info.makes_image)
        type.depth = options->write.depth;
    else if (options->linear)
        return gf_fail(error, GF_USAGE, "--linear: %s does not produce an image",
                       filter->info.name);
    if (options->premultiply && !filter->mixes_pixels)
        return gf_fail(error, GF_USAGE, "--premultiply: %s does not mix the colours of pixels",
                       filter->info.name);
    if (all_pages && filter->info.inputs != 1)
        return gf_fail(error, GF_USAGE,
                       "--page all: %s has two inputs; choose a page with --page N",
                       filter->info.name);
    gf_status status = gf_inputs_open_files(&task->inputs, filter->info.inputs,
                                            task->chain->in_paths, &limits, type, error);
    if (status)
        return status;
    const uint32_t pages = task->inputs.sources[0]->pages, page = task->page ? task->page : 1;
    task->more_pages = all_pages && !stacked && page < pages;
    if (task->made)
        gf_task_report_input(task);
    if (all_pages && page < pages && !task->inputs.stats[0].st_mode)
        return gf_fail(error, GF_FAILED,
                       "%s: --page all cannot read %" PRIu32 " pages from a pipe; name a file",
                       task->inputs.name, pages);
    if ((status = gf_chain_plan(task->chain, &task->inputs.format, &task->plan, error)))
        return status;
    if (filter->nodata == GF_NODATA_APART)
        gf_plan_set_nodata(task->plan, task->inputs.sources[0]->nodata);
    const uint32_t passes = task->plan->measure_first ? 2 : 1;
    task->watch.rows = task->plan->in.height;
    task->watch.pass = all_pages ? (page - 1) * passes : 0;
    task->watch.passes = all_pages && !stacked && pages > 1 ? pages * passes : passes;
    const bool back = options->linear || task->inputs.premultiplied; /* to the type of the file */
    task->stored = task->plan->out;
    task->stored.alpha = task->stored.alpha || task->inputs.premultiplied;
    task->stored.type =
        gf_depth_type(options->write.depth, back ? task->inputs.file_type : task->stored.type);
    /* An image drawn from two inputs is neither of them and has no metadata. */
    task->with_metadata =
        !options->write.strip && task->plan->out.width && filter->info.inputs == 1;
    task->stripped.associated_alpha =
        task->inputs.sources[0]->metadata.associated_alpha && filter->info.inputs == 1;
    if (options->linear && (task->inputs.file_type != GF_F32 || task->stored.type != GF_F32))
        status = gf_srgb_check(&task->inputs.sources[0]->metadata, task->inputs.name, error);
    return status ? status : gf_task_update_metadata(task, error);
}

gf_pass gf_task_pass(gf_task *task, gf_delivery *delivery) {
    task->watch.name = task->inputs.name;
    delivery->watch = &task->watch;
    delivery->report = &task->made->report;
    gf_delivery_init(delivery);
    return (gf_pass){.engine = task->engine,
                     .inputs = &task->inputs,
                     .node = {.plan = delivery->plan},
                     .job = {.sink = delivery->sink},
                     .consumer = &delivery->base,
                     .images = task->images,
                     .memory = task->memory,
                     .report = &task->made->report};
}

gf_status gf_task_refine(gf_task *task, gf_error *error) {
    const gf_plan *first = task->plan->measure_first;
    const char *name = task->inputs.name;
    void *data = NULL;
    if (!first)
        return GF_OK;
    assert(task->chain->filter->info.inputs == 1); /* for gf_inputs_buffer */
    const gf_measure *measure = first->filter->measure;
    const gf_measure_options keep = {.name = name};
    gf_busy *decoding = &task->made->report.busy[GF_DECODING];
    gf_status status = GF_OK;
    if (!gf_inputs_can_restart(&task->inputs))
        status = gf_inputs_buffer(&task->inputs, &task->memory, decoding, error);
    if (status ||
        (status = gf_check_memory(first->result_bytes, task->memory, name, "the result", error)) ||
        (status = measure->open(first, &keep, &data, error)))
        return status;
    gf_delivery delivery = {.plan = first, .measure = measure, .data = data};
    gf_pass pass = gf_task_pass(task, &delivery);
    pass.memory -= first->result_bytes;
    status = gf_pass_run(&pass, error);
    task->watch.pass++;
    if (!status && !(status = task->chain->filter->refine(task->plan, data, error)))
        status = gf_inputs_restart(&task->inputs, error);
    measure->close(data);
    return status;
}

gf_status gf_task_open_measure(gf_task *task, gf_error *error) {
    const gf_measure *measure = task->chain->filter->measure;
    if (!measure)
        return GF_OK;
    gf_status status = gf_check_memory(task->plan->result_bytes, task->memory, task->inputs.name,
                                       "the result", error);
    if (status)
        return status;
    task->memory -= task->plan->result_bytes;
    const bool buffered = task->keep_samples || task->buffer_samples;
    const gf_measure_options keep = {.samples = task->samples,
                                     .all = task->keep_samples,
                                     .max_memory = buffered ? task->memory / 2 : 0,
                                     .left_out = task->inputs.left_out,
                                     .name = task->inputs.name};
    task->memory -= keep.max_memory;
    return measure->open(task->plan, &keep, &task->data, error);
}

static gf_status task_stream(gf_task *task, gf_error *error) {
    gf_error failure = {0};
    gf_status status = gf_task_open_measure(task, error);
    if (status)
        return status;
    gf_delivery delivery = {.plan = task->plan,
                            .measure = task->chain->filter->measure,
                            .data = task->data,
                            .sink = task->sink,
                            .digests = task->sink && task->engine->options.verify};
    if (task->sink && task->sink->converts) {
        task->sink->digests = delivery.digests;
        delivery.digests = false;
    }
    gf_pass pass = gf_task_pass(task, &delivery);
    pass.encode = task->sink ? task->sink->cost : 0;
    pass.encode_threads = task->sink ? task->sink->threads : 0;
    status = gf_pass_run(&pass, &failure);
    gf_sink *sink = task->sink;
    if (status == GF_FAILED && !pass.begun && sink && sink->shrink) {
        /* Use the sink's optional memory for the strips. */
        task->memory += task->sink_memory;
        if (!sink->shrink(sink, &failure)) {
            task->sink_memory = gf_min(sink->memory, task->memory);
            task->memory -= task->sink_memory;
            pass.memory = task->memory;
            status = gf_pass_run(&pass, &failure);
        }
    }
    task->digest = task->sink && task->sink->converts ? task->sink->digest : delivery.digest;
    if (status && error)
        *error = failure;
    return status;
}

gf_status gf_task_make_result(gf_task *task, gf_result **result, gf_error *error) {
    const gf_status status = task->samples ? gf_sample_sink_finish(task->samples, error) : GF_OK;
    gf_plan *plan = task->plan;
    void *data = task->data;
    if (status || !data)
        return status;
    task->plan = NULL;
    task->data = NULL;
    return gf_result_new(task->chain->filter, plan, data, result, error);
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Finish the sink, or its page, and add the time: a threaded sink does most of its work after the
 * last row. Report what it has counted and omitted. */
gf_status gf_task_finish_sink(gf_task *task, gf_error *error) {
    gf_sink *sink = task->sink;
    gf_busy *busy = &task->made->report.busy[GF_ENCODING];
    gf_step_report *output = &task->made->steps[task->chain->output];
    const gf_source *source = task->inputs.sources[0];
    const gf_format *stored = task->stored.width ? &task->stored : &task->plan->out;
    const double began = gf_now();
    const gf_status status =
        (task->more_pages ? sink->end_page : sink->ops->finish)(sink, task_metadata(task), error);
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

gf_status gf_task_publish(gf_task *task, gf_error *error) {
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
 * the statistics to those of the pages before; formats, backend and sizes are of the first one. */
static gf_status run_compute(gf_task *task, run_pages *pages, gf_error *error) {
    gf_made *page = task->made;
    gf_made_report_plan(page, task->plan);
    gf_status status = gf_task_refine(task, error);
    if (!status)
        status = task_stream(task, error);
    if (!status && task->sink && !(status = gf_task_update_metadata(task, error)))
        status = gf_task_finish_sink(task, error);
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
    return gf_task_publish(task, error);
}

gf_status gf_task_open_samples(gf_task *task, gf_error *error) {
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

gf_status gf_task_open_outputs(gf_task *task, gf_error *error) {
    const gf_chain *chain = task->chain;
    if (task->plan->out.width) {
        gf_status status = gf_sink_open(chain->out_path, &task->stored, task_metadata(task),
                                        &chain->options, task->threads, &task->sink, error);
        if (status || (status = run_prepare_sink(task, error)))
            return status;
        if (task->more_pages && !task->sink->end_page)
            return gf_fail(error, GF_USAGE,
                           "%s: --page all: the input has %" PRIu32
                           " pages, and this format holds one image; write .tif",
                           chain->out_path, task->made->report.pages);
    }
    return gf_task_open_samples(task, error);
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
    if (!(status = gf_task_open_files(&next, error)) &&
        !(status = gf_inputs_check_same(&next.inputs, &task->inputs, error)) &&
        !(status = gf_sink_next_page(&next.sink, chain->out_path, &next.stored,
                                     task_metadata(&next), &chain->options, next.threads, error)))
        status = run_prepare_sink(&next, error);
    gf_task_end(task);
    *task = next;
    return status;
}

gf_status gf_run_files(gf_engine *engine, const gf_chain *chain, gf_made *made, gf_error *error) {
    const bool dry = chain->options.dry_run;
    run_pages pages = {.count = 0};
    gf_task task = gf_task_begin(engine, chain, made);
    task.place = chain->options.page == GF_ALL_PAGES ? &pages.place : NULL;
    gf_status status = gf_task_open_files(&task, error);
    if (!status)
        status = gf_task_open_outputs(&task, error);
    while (!status && task.more_pages && !dry)
        status = run_page(&task, &pages, error);
    if (!status && !dry)
        status = run_complete(&task, &pages, error);
    gf_task_end(&task);
    free(pages.written);
    return status;
}

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
    task.keep_samples = chain->samples_path;
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
    if (has_image && !status &&
        !(status = gf_memory_sink(&task.plan->out, 1, &chain->out[image], &task.sink, error)))
        status = gf_check_overlap(task.plan, info->name, in, &chain->out[image], error);
    if (!status)
        status = run_complete(&task, &pages, error);
    gf_task_end(&task);
    free(pages.written);
    return status;
}
