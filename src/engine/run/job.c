/* The run of a job on files, on images in host memory or on images in device memory. Many images
 * of one format in host memory run as one tall image if rows are independent, otherwise in turn. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "engine/run/task.h"
#include "io/stream/stream.h"

/* A node of a tall image that measures: each image has its own measure. */
typedef struct tall_node {
    uint32_t node;
    uint64_t count, height; /* of the images */
    gf_task *parts;         /* one task per image, with its nodes and open measures */
} tall_node;

/* Pass the records of each image to its own measure. */
static gf_status tall_rows(const gf_plan *plan, void *data, const gf_rows *out, gf_error *error) {
    const tall_node *tall = data;
    const uint64_t end = out->y0 + out->rows;
    gf_status status = GF_OK;
    for (uint64_t y = out->y0, next; y < end && !status; y = next) {
        const uint64_t image = y / tall->height, first = image * tall->height;
        const gf_task *part = &tall->parts[image];
        next = first + tall->height < end ? first + tall->height : end;
        const gf_rows rows = {gf_row(out, y), out->stride, y - first, next - y};
        status = plan->filter->measure->rows(part->graph->plan[tall->node], part->data[tall->node],
                                             &rows, error);
    }
    return status;
}

static gf_status tall_finish(const gf_plan *plan, void *data, const void *state, gf_error *error) {
    const tall_node *tall = data;
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < tall->count && !status; i++)
        status = plan->filter->measure->finish(tall->parts[i].graph->plan[tall->node],
                                               tall->parts[i].data[tall->node], state, error);
    return status;
}

/* Open the memory of the writers of all images. */
static gf_status tall_open_outputs(gf_task *task, const gf_graph *one, gf_error *error) {
    const gf_chain *chain = task->chain;
    gf_status status = GF_OK;
    for (uint32_t w = 0; w < one->writers && !status; w++) {
        const gf_writer *writer = &one->writer[w];
        const gf_out_pixels *out = chain->step[writer->step].out;
        status = gf_memory_sink(&writer->stored, chain->count, out, &task->writer[w].sink, error);
        for (uint64_t i = 0; i < chain->count && !status; i++) {
            gf_pixels in[GF_MAX_INPUTS];
            for (uint32_t k = 0; k < chain->inputs; k++)
                in[k] = chain->in[k][i];
            status =
                gf_check_overlap(one, gf_writer_name(chain, writer), in, writer, &out[i], error);
        }
    }
    return status;
}

/* Open the measures of all images. */
static gf_status tall_open_parts(const gf_task *task, const gf_format *format, gf_task *parts,
                                 gf_error *error) {
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < task->chain->count && !status; i++) {
        parts[i] =
            (gf_task){.chain = task->chain, .inputs = {.name = "memory"}, .memory = task->memory};
        if (!(status = gf_graph_new(task->chain, format, &parts[i].graph, error)))
            status = gf_task_open_measures(&parts[i], error);
    }
    return status;
}

/* Run all images as one image with these nodes, and free them. */
static gf_status tall_run(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                          gf_graph *graph, gf_made *made, gf_result **results, gf_error *error) {
    static const gf_measure measure = {.rows = tall_rows, .finish = tall_finish};
    tall_node nodes[GF_MAX_NODES];
    gf_task task = gf_task_begin(engine, chain, made), *parts = NULL;
    const gf_format *formats[GF_MAX_INPUTS];
    gf_graph *one = NULL;
    task.graph = graph;
    task.images = 1;
    gf_status status = gf_graph_new(chain, format, &one, error);
    if (!status) {
        gf_graph_inputs(one, formats);
        status = gf_inputs_open_memory(&task.inputs, chain->inputs, formats, chain->count,
                                       chain->in, error);
    }
    if (!status)
        status = tall_open_outputs(&task, one, error);
    if (!status && gf_chain_measures(chain) &&
        !(parts = calloc((size_t)chain->count, sizeof *parts)))
        status = gf_fail_memory(error, gf_chain_name(chain), chain->count * sizeof *parts,
                                "the measurement");
    if (parts && !status)
        status = tall_open_parts(&task, format, parts, error);
    gf_delivery delivery = gf_task_delivery(&task);
    for (uint32_t i = 0; parts && i < graph->nodes.count; i++) {
        nodes[i] = (tall_node){i, chain->count, format->height, parts};
        if (graph->plan[i]->filter->measure)
            delivery.node[i] = (gf_delivered){.measure = &measure, .data = &nodes[i]};
    }
    gf_pass pass = gf_task_pass(&task, &delivery);
    if (!status)
        status = gf_pass_run(&pass, error);
    for (uint64_t i = 0; parts && results && i < chain->count && !status; i++) {
        gf_result *own[GF_MAX_STEPS] = {NULL};
        status = gf_task_make_results(&parts[i], own, error);
        for (uint32_t k = 0; k < chain->steps; k++)
            results[k * chain->count + i] = own[k];
    }
    made->report.total_seconds = gf_now() - task.began;
    if (one)
        gf_made_report_graph(made, chain, one);
    for (uint64_t i = 0; parts && i < chain->count; i++)
        gf_task_end(&parts[i]);
    free(parts);
    gf_graph_free(one);
    gf_task_end(&task);
    return status;
}

/* Create the nodes of the tall image. Return NULL, which is not a failure, if rows are not
 * independent, the height overflows, an output is missing, or the backend needs whole images. */
static gf_graph *tall_graph(gf_engine *engine, const gf_chain *chain, const gf_format *format) {
    gf_format all = *format;
    gf_graph *graph = NULL;
    bool fits = chain->count > 1 &&
                !__builtin_mul_overflow(format->height, chain->count, &all.height) &&
                !gf_format_check(&all, "memory", NULL) && !gf_graph_new(chain, &all, &graph, NULL);
    for (uint32_t i = 0; fits && i < graph->nodes.count; i++)
        fits = gf_rows_independent(graph->plan[i]);
    for (uint32_t i = 0; fits && i < graph->writers; i++)
        fits = chain->step[graph->writer[i].step].out != NULL;
    gf_started on;
    char reason[GF_REASON_BYTES];
    if (fits &&
        !gf_engine_choose(engine, &(gf_workload){.nodes = &graph->nodes}, &on, reason, NULL) &&
        !on.backend->request(on.state, &graph->nodes).whole_image)
        return graph;
    gf_graph_free(graph);
    return NULL;
}

static gf_status images_run_each(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                                 gf_made *made, gf_result **results, gf_error *error) {
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < chain->count && !status; i++) {
        gf_made one = {.results = {NULL}};
        status = gf_run_image(engine, chain, format, i, &one, error);
        if (!status && i > 0)
            gf_made_add(&one, made);
        for (uint32_t k = 0; k < chain->steps && !status && results; k++) {
            results[k * chain->count + i] = one.results[k];
            one.results[k] = NULL;
        }
        gf_made_free_results(&one);
        if (!status || i == 0)
            *made = one;
    }
    made->report.pixels = format->width * format->height; /* of one image */
    return status;
}

static gf_status job_run_memory(gf_engine *engine, const gf_job *job, const gf_chain *chain,
                                gf_made *made, gf_result **results, gf_error *error) {
    const gf_format *format = &job->format;
    gf_status status = gf_format_check(format, "memory", error);
    for (uint32_t i = 0; i < chain->inputs && !status; i++)
        if (!chain->in[i])
            status = gf_fail(error, GF_USAGE, "%s: needs %u input images, and one is NULL",
                             gf_chain_name(chain), chain->inputs);
    if (status)
        return status;
    if (job->memory == GF_DEVICE)
        return gf_run_on_device(engine, chain, format, job->stream, results, error);
    gf_graph *graph = tall_graph(engine, chain, format);
    status = graph ? tall_run(engine, chain, format, graph, made, results, error)
                   : images_run_each(engine, chain, format, made, results, error);
    for (uint64_t i = 0; status && results && i < chain->steps * chain->count; i++) {
        gf_result_free(results[i]);
        results[i] = NULL;
    }
    return status;
}

gf_status gf_run(gf_engine *engine, const gf_job *job, gf_outcome *outcome, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const uint64_t count = job && job->count ? job->count : 1, steps = job ? job->step_count : 0;
    const bool files = !job || job->memory == GF_FILES;
    gf_outcome unread = {.results = NULL};
    gf_chain chain = {0};
    gf_made made = {.results = {NULL}};
    if (!outcome)
        outcome = &unread;
    if (outcome->steps)
        memset(outcome->steps, 0, (size_t)steps * sizeof *outcome->steps);
    if (outcome->results)
        memset(outcome->results, 0, (size_t)(steps * count) * sizeof(gf_result *));
    gf_status status = (files ? gf_chain_open_files : gf_chain_open)(job, &chain, error);
    if (!status)
        status = files ? gf_run_files(engine, &chain, &made, error)
                       : job_run_memory(engine, job, &chain, &made, outcome->results, error);
    gf_made_return(&made, &chain, outcome);
    gf_chain_close(&chain);
    return status;
}
