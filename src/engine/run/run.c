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
    for (uint32_t i = 0; i < GF_MAX_NODES; i++)
        if (task->node[i].data)
            task->node[i].measure->close(task->node[i].data);
    for (uint32_t i = 0; i < GF_MAX_STEPS; i++) {
        if (task->samples[i])
            gf_sample_sink_close(task->samples[i]);
        if (task->writer[i].sink)
            task->writer[i].sink->ops->close(task->writer[i].sink);
    }
    gf_inputs_close(&task->inputs);
    gf_graph_free(task->graph);
    *task = (gf_task){0};
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Return the metadata for a writer. */
static const gf_metadata *task_metadata(const gf_task *task, const gf_writer *writer) {
    return task->with_metadata && !writer->bare && !task->chain->step[writer->step].write.strip
               ? &task->inputs.sources[0]->metadata
               : &task->stripped;
}

gf_status gf_task_update_metadata(const gf_task *task, gf_error *error) {
    gf_source *source = task->inputs.sources[0];
    const char *damaged = source->metadata.damaged;
    const bool all_pages = task->page || task->more_pages;
    gf_status status = GF_OK;
    bool copied = false;
    for (uint32_t i = 0; i < task->graph->writers && !status; i++) {
        const gf_writer *writer = &task->graph->writer[i];
        if (task_metadata(task, writer) == &task->stripped)
            continue;
        copied = true;
        status =
            gf_metadata_update(&source->metadata, &writer->stored, source->pages <= 1 || all_pages,
                               &source->dropped, task->inputs.name, error);
    }
    if (status || !copied || !damaged[0])
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: the %.*s chunk is damaged; get an intact copy, or omit metadata with "
                   "--strip",
                   task->inputs.name, (int)strcspn(damaged, " "), damaged);
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
    for (uint32_t i = 0; i < GF_MAX_STEPS; i++)
        if (task->writer[i].sink)
            gf_remarks_add(&report->remarks, &task->writer[i].sink->remarks);
    report->remarks.outside += task->outside;
}

void gf_task_report_stored(const gf_task *task) {
    const gf_graph *graph = task->graph;
    for (uint32_t i = 0; i < graph->writers; i++) {
        const gf_writer *writer = &graph->writer[i];
        gf_step_report *output = &task->made->steps[writer->step];
        const gf_type type = writer->stored.type;
        output->out = writer->stored;
        if (task_metadata(task, writer) != &task->stripped && type < writer->reduced &&
            type < task->inputs.format.type)
            output->dropped |= GF_DROPPED_DEPTH;
    }
}

/* Decide what happens to samples with the nodata value, which are replaced in the input: what the
 * filter of a job with one filter needs. *conflict: another filter that would leave them out. */
static gf_nodata_use task_nodata(const gf_chain *chain, const gf_filter **conflict) {
    *conflict = NULL;
    if (chain->filters == 1)
        return chain->step[chain->first].filter->nodata;
    bool input = true; /* the step reads the first image */
    for (uint32_t i = 0; i < chain->steps; i++) {
        const gf_filter *filter = chain->step[i].filter;
        input = input || chain->step[i].from_input;
        if (!filter)
            continue;
        if (filter->nodata && (input || filter->info.inputs == 2))
            *conflict = filter;
        input = input && !filter->info.makes_image;
    }
    return GF_NODATA_KEPT;
}

/* Return the scale, in 1/8, at which all steps that read the input need it. Decoders do not scale
 * linear light. */
static uint32_t task_eighths(const void *context, const gf_format *image) {
    const gf_chain *chain = context;
    uint64_t eighths = chain->options.linear ? 8 : 1;
    for (uint32_t i = 0; i < chain->steps; i++) {
        const gf_chain_step *step = &chain->step[i];
        const bool scales = step->filter && step->filter->eighths;
        if (i == 0 || step->from_input)
            eighths = gf_max(eighths, scales ? step->filter->eighths(step->settings, image) : 8);
    }
    return (uint32_t)eighths;
}

/* Open the inputs, with the second ones of steps. */
static gf_status task_open_inputs(gf_task *task, const gf_limits *limits, gf_error *error) {
    const gf_chain *chain = task->chain;
    const gf_filter *conflict;
    const gf_format *formats[GF_MAX_INPUTS] = {NULL};
    task->inputs = (gf_inputs){.pair = chain->filters == 1 && chain->inputs == 2,
                               .nodata = task_nodata(chain, &conflict)};
    gf_status status =
        gf_inputs_open_files(&task->inputs, chain->inputs, chain->in_paths, limits, error);
    if (!status && conflict && task->inputs.left_out)
        status = gf_fail(error, GF_FAILED,
                         "%s: has a nodata value, which %s leaves out, and other steps do not; use "
                         "--nodata none, or run 'gpufilter %s' alone",
                         task->inputs.name, conflict->info.name, conflict->info.name);
    if (status)
        return status;
    gf_chain read = *chain; /* TIFFs may have samples that are premultiplied already */
    if (task->inputs.sources[0]->metadata.associated_alpha &&
        read.options.premultiply == GF_PREMULTIPLY_AUTO)
        read.options.premultiply = GF_PREMULTIPLY_OFF;
    read.scaled = task->inputs.sources[0]->scaled;
    if ((status = gf_graph_new(&read, &task->inputs.format, &task->graph, error)))
        return status;
    for (uint32_t i = 0; i < chain->steps && !status; i++) {
        const gf_format *out = &task->graph->out[i];
        if (chain->step[i].filter && out->width)
            status = gf_chain_fail_step(
                chain, i, gf_check_pixels(out, limits, chain->step[i].filter->info.name, error),
                error);
    }
    gf_graph_inputs(task->graph, formats);
    for (uint32_t step = 0, i = 1; i < chain->inputs && !status; step++) {
        const gf_filter *filter = chain->step[step].filter;
        if (filter && filter->info.inputs == 2) {
            status = gf_chain_fail_step(
                chain, step, gf_inputs_check_second(&task->inputs, i, formats[i], error), error);
            i++;
        }
    }
    return status;
}

/* Return the number of passes over the image: one for each edge that is measured first, and one. */
static uint32_t task_passes(const gf_graph *graph) {
    uint64_t edges = 0;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        if (graph->plan[i]->measure_first)
            edges |= UINT64_C(1) << graph->node[i].from;
    return 1 + (uint32_t)__builtin_popcountll(edges);
}

gf_status gf_task_open_files(gf_task *task, gf_error *error) {
    const gf_chain *chain = task->chain;
    const gf_file_options *options = &chain->options;
    const bool all_pages = options->page == GF_ALL_PAGES, makes = chain->makes_image;
    gf_limits limits = gf_limits_of(options, task->threads);
    const bool stacked = all_pages && !makes;
    limits.page = all_pages ? task->page : options->page;
    limits.stacked = stacked;
    limits.shared = makes && !chain->refines; /* which measures first */
    limits.place = task->place;
    limits.eighths = task_eighths;
    limits.chain = chain;
    task->watch = (gf_watch){
        .item = chain->item, .progress = options->progress, .context = options->progress_context};
    gf_status status = task_open_inputs(task, &limits, error);
    const gf_source *source = task->inputs.sources[0];
    if (status)
        return status;
    const uint32_t pages = source->pages, page = task->page ? task->page : 1;
    task->more_pages = all_pages && !stacked && page < pages;
    if (task->made)
        gf_task_report_input(task);
    if (all_pages && page < pages && !task->inputs.stats[0].st_mode)
        return gf_fail(error, GF_FAILED,
                       "%s: --page all cannot read %" PRIu32 " pages from a pipe; name a file",
                       task->inputs.name, pages);
    if (task->inputs.nodata == GF_NODATA_APART)
        gf_plan_set_nodata(gf_graph_plan(task->graph, chain->first), source->nodata);
    const uint32_t passes = task_passes(task->graph);
    task->watch.rows = task->inputs.format.height;
    task->watch.pass = all_pages ? (page - 1) * passes : 0;
    task->watch.passes = all_pages && !stacked && pages > 1 ? pages * passes : passes;
    /* An image drawn from two inputs is neither of them and has no metadata. */
    task->with_metadata = makes || !task->inputs.pair;
    task->stripped.associated_alpha = source->metadata.associated_alpha && !task->inputs.pair;
    if (chain->options.premultiply == GF_PREMULTIPLY_ON && gf_has_alpha(&task->inputs.format) &&
        source->metadata.associated_alpha)
        return gf_fail(error, GF_FAILED,
                       "%s: --premultiply: its samples are premultiplied already; --alpha none "
                       "filters alpha with them",
                       task->inputs.name);
    if (task->graph->linear)
        status = gf_srgb_check(&source->metadata, task->inputs.name, error);
    return status ? status : gf_task_update_metadata(task, error);
}

gf_delivery gf_task_delivery(gf_task *task) {
    const gf_graph *graph = task->graph;
    gf_delivery delivery = {.nodes = &graph->nodes,
                            .written = task->writer,
                            .written_count = graph->writers,
                            .digests = task->engine->options.verify};
    memcpy(delivery.node, task->node, sizeof delivery.node);
    for (uint32_t i = 0; i < graph->writers; i++)
        task->writer[i].edge = graph->writer[i].edge;
    return delivery;
}

gf_pass gf_task_pass(gf_task *task, gf_delivery *delivery) {
    const gf_nodes *nodes = delivery->nodes;
    gf_sink *last = NULL;
    for (uint32_t i = 0; i < delivery->written_count; i++)
        if (delivery->written[i].edge == nodes->count)
            last = delivery->written[i].sink;
    task->watch.name = task->inputs.name;
    delivery->watch = &task->watch;
    delivery->report = &task->made->report;
    gf_delivery_init(delivery);
    return (gf_pass){.engine = task->engine,
                     .inputs = &task->inputs,
                     .nodes = nodes,
                     .job = {.sink = last},
                     .consumer = &delivery->base,
                     .images = task->images,
                     .memory = task->memory,
                     .report = &task->made->report};
}

/* ---- measuring first ------------------------------------------------------------------------- */

/* Store the nodes that make an edge, in order. *at: their number; place[e]: the edge that edge e
 * becomes. */
static void refine_copy_nodes(const gf_nodes *nodes, uint32_t edge, gf_node *to, uint32_t *at,
                              uint32_t place[GF_MAX_EDGES]) {
    if (edge == 0 || place[edge])
        return;
    const gf_node *node = &nodes->node[edge - 1];
    refine_copy_nodes(nodes, node->from, to, at, place);
    to[*at] = (gf_node){.plan = node->plan, .from = place[node->from]};
    place[edge] = ++*at;
}

/* Measure the image of an edge with the filters that its nodes need, in one pass, and refine the
 * plans of these nodes. */
static gf_status refine_edge(gf_task *task, uint32_t edge, gf_error *error) {
    const gf_graph *graph = task->graph;
    const char *name = task->inputs.name;
    uint32_t place[GF_MAX_EDGES] = {0}, of[GF_MAX_NODES] = {0};
    gf_node list[GF_MAX_NODES];
    gf_nodes nodes = {.node = list};
    gf_delivery delivery = {.nodes = &nodes};
    uint64_t memory = 0;
    gf_status status = GF_OK;
    refine_copy_nodes(&graph->nodes, edge, list, &nodes.count, place);
    const uint32_t first = nodes.count;
    for (uint32_t i = 0; i < graph->nodes.count && !status; i++) {
        const gf_plan *plan = graph->plan[i]->measure_first;
        if (graph->node[i].from != edge || !plan)
            continue;
        gf_delivered *to = &delivery.node[nodes.count];
        const gf_measure_options keep = {.name = name};
        to->measure = plan->filter->measure;
        of[nodes.count] = i;
        list[nodes.count++] = (gf_node){.plan = plan, .from = place[edge]};
        memory += plan->result_bytes;
        status = gf_check_memory(memory, task->memory, name, "the result", error);
        if (!status)
            status = to->measure->open(plan, &keep, &to->data, error);
    }
    gf_pass pass = gf_task_pass(task, &delivery);
    pass.memory -= gf_min(memory, pass.memory);
    if (!status)
        status = gf_pass_run(&pass, error);
    task->watch.pass++;
    for (uint32_t i = first; i < nodes.count; i++) {
        gf_plan *plan = graph->plan[of[i]];
        if (!status)
            status = plan->filter->refine(plan, delivery.node[i].data, error);
        if (delivery.node[i].data)
            delivery.node[i].measure->close(delivery.node[i].data);
    }
    return status ? status : gf_inputs_restart(&task->inputs, error);
}

gf_status gf_task_refine(gf_task *task, gf_error *error) {
    const gf_graph *graph = task->graph;
    gf_busy *decoding = &task->made->report.busy[GF_DECODING];
    uint64_t edges = 0; /* that have been measured */
    gf_status status = GF_OK;
    task->inputs.reading = 1; /* second images are not measured */
    if (task_passes(graph) > 1 && !gf_inputs_can_restart(&task->inputs))
        status = gf_inputs_buffer(&task->inputs, &task->memory, decoding, error);
    for (uint32_t i = 0; i < graph->nodes.count && !status; i++) {
        const uint32_t edge = graph->node[i].from;
        if (!graph->plan[i]->measure_first || edges >> edge & 1)
            continue;
        edges |= UINT64_C(1) << edge; /* its nodes come before node i, and are refined */
        status = refine_edge(task, edge, error);
    }
    task->inputs.reading = 0;
    return status;
}

/* ---- the last pass --------------------------------------------------------------------------- */

gf_status gf_task_open_measures(gf_task *task, gf_error *error) {
    const gf_graph *graph = task->graph;
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < graph->nodes.count && !status; i++) {
        const gf_plan *plan = graph->plan[i];
        const uint32_t step = graph->step[i];
        if (!plan->filter->measure)
            continue;
        status = gf_check_memory(plan->result_bytes, task->memory, task->inputs.name, "the result",
                                 error);
        if (status)
            return status;
        task->memory -= plan->result_bytes;
        const bool keep_samples = task->keep_samples && task->chain->step[step].samples_path;
        const bool buffered = keep_samples || task->buffer_samples[step];
        const gf_measure_options keep = {.samples = task->samples[step],
                                         .all = keep_samples,
                                         .max_memory = buffered ? task->memory / 2 : 0,
                                         .left_out = task->inputs.left_out,
                                         .name = task->inputs.name};
        task->memory -= keep.max_memory;
        task->node[i].measure = plan->filter->measure;
        status = plan->filter->measure->open(plan, &keep, &task->node[i].data, error);
    }
    return status;
}

void gf_task_count_outside(gf_task *task) {
    for (uint32_t i = 0; i < task->graph->nodes.count; i++) {
        const gf_delivered *of = &task->node[i];
        if (task->graph->counts[i])
            task->outside += of->measure->cell(task->graph->plan[i], of->data, 0, 0, 0).low;
    }
}

/* Set the cost of writing all images, per sample of the input. */
static void task_set_encoding(const gf_task *task, gf_pass *pass) {
    const double samples = gf_image_samples(&task->inputs.format);
    pass->encode = pass->encode_threads = 0;
    for (uint32_t i = 0; i < task->graph->writers; i++) {
        const gf_sink *sink = task->writer[i].sink;
        if (!sink)
            continue;
        pass->encode += sink->cost * gf_image_samples(&task->graph->writer[i].stored) / samples;
        pass->encode_threads = (uint32_t)gf_max(pass->encode_threads, sink->threads);
    }
}

/* Use the optional memory of the sinks for the strips. Return whether any had some. */
static bool task_shrink_sinks(gf_task *task, gf_error *error) {
    bool any = false;
    for (uint32_t i = 0; i < task->graph->writers; i++) {
        gf_written *writer = &task->writer[i];
        if (!writer->sink || !writer->sink->shrink)
            continue;
        task->memory += writer->memory;
        if (writer->sink->shrink(writer->sink, error))
            return false;
        writer->memory = gf_min(writer->sink->memory, task->memory);
        task->memory -= writer->memory;
        any = true;
    }
    return any;
}

static gf_status task_stream(gf_task *task, gf_error *error) {
    const gf_graph *graph = task->graph;
    gf_error failure = {0};
    gf_status status = gf_task_open_measures(task, error);
    if (status)
        return status;
    gf_delivery delivery = gf_task_delivery(task);
    gf_pass pass = gf_task_pass(task, &delivery);
    task_set_encoding(task, &pass);
    pass.dry_run = task->chain->options.dry_run;
    status = gf_pass_run(&pass, &failure);
    if (status == GF_FAILED && !pass.begun && task_shrink_sinks(task, &failure)) {
        pass.memory = task->memory;
        status = gf_pass_run(&pass, &failure);
    }
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        task->made->steps[graph->step[i]].seconds += pass.seconds[i];
    if (!status)
        gf_task_count_outside(task);
    if (status && error)
        *error = failure;
    return status;
}

gf_status gf_task_make_results(gf_task *task, gf_result **results, gf_error *error) {
    gf_graph *graph = task->graph;
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < task->chain->steps && !status; i++) {
        const gf_filter *filter = task->chain->step[i].filter;
        const uint32_t node = graph->node_of[i];
        if (!filter || filter->info.makes_image)
            continue;
        if (task->samples[i])
            status = gf_sample_sink_finish(task->samples[i], error);
        gf_plan *plan = graph->plan[node];
        void *data = task->node[node].data;
        if (status || !data)
            continue;
        graph->plan[node] = NULL;
        task->node[node].data = NULL;
        status = gf_result_new(filter, plan, data, &results[i], error);
    }
    return status;
}

gf_status gf_task_deliver(gf_task *task, const gf_format *format,
                          const gf_device_part parts[GF_MAX_NODES], gf_result **results,
                          uint64_t stride, gf_error *error) {
    gf_result *own[GF_MAX_STEPS] = {NULL};
    gf_status status = gf_graph_new(task->chain, format, &task->graph, error);
    if (!status)
        status = gf_task_open_measures(task, error);
    for (uint32_t i = 0; !status && i < task->graph->nodes.count; i++) {
        const gf_plan *plan = task->graph->plan[i];
        const gf_delivered *to = &task->node[i];
        const gf_device_part *part = &parts[i];
        if (part->records.data)
            status = to->measure->rows(plan, to->data, &part->records, error);
        if (!status && part->payload)
            status = to->measure->payload(plan, to->data, part->payload, error);
        if (!status && (part->records.data || part->payload || part->state))
            status = to->measure->finish(plan, to->data, part->state, error);
    }
    if (!status)
        status = gf_task_make_results(task, own, error);
    for (uint32_t k = 0; k < task->chain->steps; k++)
        results[k * stride] = own[k];
    gf_task_end(task);
    return status;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Finish a sink, or its page. Report what it has counted and omitted. */
static gf_status task_finish_sink(gf_task *task, uint32_t index, gf_error *error) {
    const gf_writer *writer = &task->graph->writer[index];
    gf_sink *sink = task->writer[index].sink;
    gf_step_report *output = &task->made->steps[writer->step];
    const gf_source *source = task->inputs.sources[0];
    const gf_format *stored = &writer->stored;
    const gf_metadata *metadata = task_metadata(task, writer);
    const gf_status status =
        (task->more_pages ? sink->end_page : sink->ops->finish)(sink, metadata, error);
    output->counted =
        sink->counts_clipped ? stored->width * stored->height * gf_measured_channels(stored) : 0;
    output->clipped = sink->clipped;
    gf_remarks_add(&task->made->report.remarks, &sink->remarks);
    if (metadata != &task->stripped)
        output->dropped =
            source->dropped | sink->dropped | gf_metadata_lost(&source->metadata, sink->form);
    return status;
}

/* Add the time of finishing to that of encoding: a threaded sink does most of its work after the
 * last row. */
gf_status gf_task_finish_sinks(gf_task *task, gf_error *error) {
    gf_busy *busy = &task->made->report.busy[GF_ENCODING], threads = {0, 0};
    const double began = gf_now();
    gf_status status = GF_OK;
    bool own = true; /* the calling thread encodes */
    for (uint32_t i = 0; i < task->graph->writers && !status; i++) {
        const gf_sink *sink = task->writer[i].sink;
        if (!sink)
            continue;
        status = task_finish_sink(task, i, error);
        gf_busy_add(&threads, (gf_busy){sink->busy_seconds, sink->threads});
        own = own && !sink->threads;
    }
    *busy = own ? (gf_busy){busy->seconds + gf_now() - began, 1} : threads;
    if (task->graph->writers)
        gf_task_report_stored(task);
    return status;
}

void gf_ready_add(const gf_ready *ready, gf_output_file *file) {
    *(gf_output **)ready->outputs = file;
}

gf_status gf_task_publish(gf_task *task, gf_error *error) {
    const gf_chain *chain = task->chain;
    const gf_file_options *options = &chain->options;
    gf_made *made = task->made;
    gf_remarks *remarks = &made->report.remarks;
    gf_output *outputs[2 * GF_MAX_STEPS + 1], *extra = NULL;
    size_t count = 0;
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < task->graph->writers; i++) {
        const gf_sink *sink = task->writer[i].sink;
        gf_step_report *output = &made->steps[task->graph->writer[i].step];
        if (!sink || !sink->output)
            continue;
        output->out_bytes += gf_output_bytes(outputs[count++] = sink->output);
        output->file = options->ready ? gf_output_pending_path(sink->output) : NULL;
    }
    for (uint32_t i = 0; i < chain->steps; i++) {
        if (!task->samples[i])
            continue;
        outputs[count] = gf_sample_sink_output(task->samples[i]);
        made->steps[i].out_bytes += gf_output_bytes(outputs[count++]);
    }
    if (remarks->outside)
        gf_note(remarks, "--depth: %" PRIu64 " f32 samples outside 0..1 clipped", remarks->outside);
    if (remarks->nodata)
        gf_note(remarks, "%" PRIu64 " samples have the nodata value of %s file%s", remarks->nodata,
                task->inputs.pair ? "a" : "the",
                task->inputs.nodata ? " and are left out; --nodata none measures them"
                                    : ", and are treated as others");
    if (options->ready) {
        const gf_outcome outcome = gf_made_outcome(made);
        const gf_ready ready = {.item = task->chain->item, .outcome = &outcome, .outputs = &extra};
        status = options->ready(options->ready_context, &ready, error);
        for (uint32_t i = 0; i < chain->steps; i++)
            made->steps[i].file = NULL;
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

/* Rows of a page that a writer has written, for reading them back. */
typedef struct run_written {
    uint32_t writer, page;
    gf_format format;
    uint64_t digest;
} run_written;

/* Pages of one file. Without GF_ALL_PAGES there is one. */
typedef struct run_pages {
    gf_page_place place;  /* in the input */
    gf_made made;         /* sum of the pages before the current one */
    run_written *written; /* to read back; NULL: none */
    size_t written_count;
    size_t count; /* computed pages */
} run_pages;

/* List the rows of all writers, to read them back. */
static gf_status run_list_written(const gf_task *task, run_pages *pages, gf_error *error) {
    const uint32_t writers = task->graph->writers;
    const size_t count = pages->written_count + writers;
    run_written *grown = realloc(pages->written, (count + 1) * sizeof *grown);
    if (!grown)
        return gf_fail_memory(error, task->inputs.name, count * sizeof *grown, "the list of pages");
    pages->written = grown;
    for (uint32_t i = 0; i < writers; i++)
        if (task->writer[i].sink)
            grown[pages->written_count++] =
                (run_written){i, (uint32_t)pages->count + 1, task->graph->writer[i].stored,
                              task->writer[i].digest};
    return GF_OK;
}

/* Compute the image, or its page, and the results, and write all outputs under temporary names. Add
 * the statistics to those of the pages before; formats, backend and sizes are of the first one. */
static gf_status run_compute(gf_task *task, run_pages *pages, gf_error *error) {
    gf_made *page = task->made;
    gf_made_report_graph(page, task->chain, task->graph);
    gf_status status = gf_task_refine(task, error);
    if (!status)
        status = task_stream(task, error);
    if (!status && !(status = gf_task_update_metadata(task, error)))
        status = gf_task_finish_sinks(task, error);
    if (!status)
        status = gf_task_make_results(task, page->results, error);
    gf_task_report_input(task);
    page->report.total_seconds = gf_now() - task->began;
    if (!status && page->report.verified)
        status = run_list_written(task, pages, error);
    if (status)
        return status;
    if (pages->count++) {
        gf_made_add(&pages->made, page);
        memcpy(pages->made.results, page->results, sizeof page->results);
    } else {
        pages->made = *page;
    }
    return GF_OK;
}

/* Compute everything, then rename the outputs: none appears before all are complete. Before that,
 * compare the rows of verified files with those written. */
static gf_status run_complete(gf_task *task, run_pages *pages, gf_error *error) {
    gf_limits limits = task->inputs.limits;
    gf_status status = run_compute(task, pages, error);
    for (uint32_t w = 0; w < GF_MAX_STEPS && !status; w++) {
        gf_page_place place = {0};
        limits.place = &place;
        for (size_t i = 0; i < pages->written_count && !status; i++) {
            const run_written *page = &pages->written[i];
            limits.page = page->page;
            if (page->writer == w && task->writer[w].sink->output)
                status =
                    gf_read_back(task->writer[w].sink, &page->format, &limits, page->digest, error);
        }
    }
    if (status) {
        gf_made_free_results(task->made);
        return status;
    }
    *task->made = pages->made;
    return gf_task_publish(task, error);
}

gf_status gf_task_run(gf_task *task, gf_error *error) {
    run_pages pages = {.count = 0};
    const gf_status status = run_complete(task, &pages, error);
    free(pages.written);
    return status;
}

static gf_status run_open_samples(gf_task *task, uint32_t i, gf_error *error) {
    const gf_chain_step *step = &task->chain->step[i];
    gf_sample_layout layout = {0};
    if (!step->samples_path)
        return GF_OK;
    step->filter->payload->layout(gf_graph_plan(task->graph, i), &layout);
    gf_status status = gf_sample_sink_open(step->samples_path, &task->chain->options, &layout,
                                           &task->samples[i], error);
    task->buffer_samples[i] =
        !status && (layout.with_bin || gf_sample_sink_wants_count(task->samples[i]));
    return status;
}

gf_status gf_task_open_samples(gf_task *task, gf_error *error) {
    const gf_chain *chain = task->chain;
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < chain->steps && !status; i++)
        status = gf_chain_fail_step(chain, i, run_open_samples(task, i, error), error);
    return status;
}

/* Open the sink of a writer, or its next page. */
static gf_status run_open_writer(gf_task *task, uint32_t i, gf_error *error) {
    const gf_writer *writer = &task->graph->writer[i];
    const gf_chain_step *step = &task->chain->step[writer->step];
    const gf_metadata *metadata = task_metadata(task, writer);
    gf_file_options options = task->chain->options;
    gf_written *to = &task->writer[i];
    options.write = step->write;
    const gf_status status = to->sink
                                 ? gf_sink_next_page(&to->sink, step->out_path, &writer->stored,
                                                     metadata, &options, task->threads, error)
                                 : gf_sink_open(step->out_path, &writer->stored, metadata, &options,
                                                task->threads, &to->sink, error);
    if (status)
        return status;
    to->memory = gf_min(to->sink->memory, task->memory);
    task->memory -= to->memory;
    if (task->more_pages && !to->sink->end_page)
        return gf_fail(error, GF_USAGE,
                       "%s: --page all: the input has %" PRIu32
                       " pages, and this format holds one image; write .tif",
                       step->out_path, task->made->report.pages);
    return GF_OK;
}

gf_status gf_task_open_outputs(gf_task *task, gf_error *error) {
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < task->graph->writers && !status; i++)
        status = gf_chain_fail_step(task->chain, task->graph->writer[i].step,
                                    run_open_writer(task, i, error), error);
    return status ? status : gf_task_open_samples(task, error);
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
    for (uint32_t i = 0; i < GF_MAX_STEPS; i++) {
        next.writer[i].sink = task->writer[i].sink;
        task->writer[i].sink = NULL;
    }
    if (!(status = gf_task_open_files(&next, error)))
        status = gf_inputs_check_same(&next.inputs, &task->inputs, error);
    for (uint32_t i = 0; !status && i < next.graph->writers; i++)
        status = run_open_writer(&next, i, error);
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
    if (!status && !dry) {
        status = run_complete(&task, &pages, error);
    } else if (!status) {
        gf_made_report_graph(made, chain, task.graph);
        status = task_stream(&task, error);
    }
    gf_task_end(&task);
    free(pages.written);
    return status;
}

gf_status gf_check_overlap(const gf_graph *graph, const char *name, const gf_pixels *in,
                           const gf_writer *writer, const gf_out_pixels *out, gf_error *error) {
    const gf_pixels to = {out->data, out->stride};
    bool overlaps = gf_pixels_overlap(&graph->node[0].plan->in, in[0], &writer->stored, to);
    for (uint32_t i = 0, input = 1; i < graph->nodes.count; i++)
        if (gf_node_has_second(&graph->node[i]))
            overlaps = overlaps ||
                       gf_pixels_overlap(&graph->plan[i]->in, in[input++], &writer->stored, to);
    return overlaps ? gf_fail(error, GF_USAGE,
                              "%s: the output overlaps an input; use other memory for it", name)
                    : GF_OK;
}

void gf_graph_inputs(const gf_graph *graph, const gf_format *formats[GF_MAX_INPUTS]) {
    uint32_t count = 0;
    formats[count++] = &graph->plan[0]->in;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        if (gf_node_has_second(&graph->node[i]))
            formats[count++] = &graph->plan[i]->in;
}
