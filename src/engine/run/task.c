/* Tasks: inputs, plan, preceding measurement and stream of one image. */
#include "engine/run/task.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"
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

const gf_metadata *gf_task_metadata(const gf_task *task) {
    return task->with_metadata ? &task->inputs.sources[0]->metadata : &task->stripped;
}

gf_status gf_task_update_metadata(const gf_task *task, gf_error *error) {
    gf_source *source = task->inputs.sources[0];
    const gf_metadata *metadata = gf_task_metadata(task);
    const bool all_pages = task->page || task->more_pages;
    if (metadata != &source->metadata)
        return GF_OK;
    const gf_status status =
        gf_metadata_update(&source->metadata, &task->stored, source->pages <= 1 || all_pages,
                           &source->dropped, task->inputs.name, error);
    if (status || !metadata->damaged[0])
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: the %.*s chunk is damaged; get an intact copy, or omit metadata with "
                   "--strip",
                   task->inputs.name, (int)strcspn(metadata->damaged, " "), metadata->damaged);
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
    if (!task->stored.width)
        return;
    output->out = task->stored;
    if (task->with_metadata && task->reduced)
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
        status = gf_fail(error, GF_FAILED,
                         "%s: --page all cannot read %" PRIu32 " pages from a pipe; name a file",
                         task->inputs.name, pages);
    if (!status)
        status = gf_chain_plan(task->chain, &task->inputs.format, &task->plan, error);
    if (status)
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
    task->reduced =
        task->stored.type < task->plan->out.type && task->stored.type < task->inputs.file_type;
    /* An image drawn from two inputs is neither of them and has no metadata. */
    task->with_metadata =
        !options->write.strip && task->plan->out.width && filter->info.inputs == 1;
    task->stripped.associated_alpha =
        task->inputs.sources[0]->metadata.associated_alpha && filter->info.inputs == 1;
    if (options->linear && (task->inputs.file_type != GF_F32 || task->stored.type != GF_F32))
        status = gf_srgb_check(&task->inputs.sources[0]->metadata, task->inputs.name, error);
    return status ? status : gf_task_update_metadata(task, error);
}

/* ---- passes ---------------------------------------------------------------------------------- */

gf_pass gf_task_pass(gf_task *task, gf_delivery *delivery) {
    task->watch.name = task->inputs.name;
    delivery->watch = &task->watch;
    delivery->report = &task->made->report;
    gf_delivery_init(delivery);
    return (gf_pass){.engine = task->engine,
                     .inputs = &task->inputs,
                     .plan = delivery->plan,
                     .consumer = &delivery->base,
                     .images = task->images,
                     .memory = task->memory,
                     .report = &task->made->report};
}

/* ---- measurement before the filter ----------------------------------------------------------- */

gf_status gf_task_refine(gf_task *task, gf_error *error) {
    const gf_plan *first = task->plan->measure_first;
    const char *name = task->inputs.name;
    void *data = NULL;
    if (!first)
        return GF_OK;
    assert(task->chain->filter->info.inputs == 1); /* for gf_inputs_buffer */
    const gf_measure *measure = first->filter->measure;
    const gf_measure_options keep = {.name = name};
    gf_status status = GF_OK;
    if (!gf_inputs_can_restart(&task->inputs))
        status = gf_inputs_buffer(&task->inputs, &task->memory,
                                  &task->made->report.busy[GF_DECODING], error);
    if (!status)
        status = gf_check_memory(first->result_bytes, task->memory, name, "the result", error);
    if (!status)
        status = measure->open(first, &keep, &data, error);
    if (!status) {
        gf_delivery delivery = {.plan = first, .measure = measure, .data = data};
        gf_pass pass = gf_task_pass(task, &delivery);
        pass.memory -= first->result_bytes;
        status = gf_pass_run(&pass, error);
        task->watch.pass++;
    }
    if (!status)
        status = task->chain->filter->refine(task->plan, data, error);
    if (!status)
        status = gf_inputs_restart(&task->inputs, error);
    if (data)
        measure->close(data);
    return status;
}

/* ---- the image ------------------------------------------------------------------------------- */

gf_status gf_task_open_measure(gf_task *task, gf_error *error) {
    const gf_measure *measure = task->chain->filter->measure;
    if (!measure)
        return GF_OK;
    gf_status status = gf_check_memory(task->plan->result_bytes, task->memory, task->inputs.name,
                                       "the result", error);
    if (status)
        return status;
    task->memory -= task->plan->result_bytes;
    const gf_measure_options keep = {.samples = task->samples,
                                     .all = task->keep_samples,
                                     .max_memory = task->buffer_samples ? task->memory / 2 : 0,
                                     .left_out = task->inputs.left_out,
                                     .name = task->inputs.name};
    task->memory -= keep.max_memory;
    return measure->open(task->plan, &keep, &task->data, error);
}

gf_status gf_task_stream(gf_task *task, gf_error *error) {
    gf_error failure = {0};
    gf_status status = gf_task_open_measure(task, error);
    if (status)
        return status;
    gf_made_report_plan(task->made, task->plan);
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
