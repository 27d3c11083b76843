/* The run of a job on files, on images in host memory or on images in device memory. Many images
 * of one format in host memory run as one tall image if rows are independent, otherwise in turn. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "engine/run/task.h"
#include "io/stream/stream.h"

/* Open images [first, first + count): those of all inputs, and of the writers of each one. */
static gf_status images_open(gf_task *task, const gf_graph *one, uint64_t first, uint64_t count,
                             gf_error *error) {
    const gf_chain *chain = task->chain;
    const gf_format *formats[GF_MAX_INPUTS];
    const gf_pixels *lists[GF_MAX_INPUTS];
    gf_pixels in[GF_MAX_INPUTS];
    for (uint32_t i = 0; i < chain->inputs; i++) {
        lists[i] = chain->in[i] + first;
        if (!lists[i]->data)
            return gf_fail(error, GF_USAGE, "%s: needs %u input images, and one is NULL",
                           gf_chain_name(chain), chain->inputs);
    }
    gf_graph_inputs(one, formats);
    gf_status status =
        gf_inputs_open_memory(&task->inputs, chain->inputs, formats, count, lists, error);
    for (uint32_t w = 0; w < one->writers && !status; w++) {
        const gf_writer *writer = &one->writer[w];
        const gf_out_pixels *out = chain->step[writer->step].out;
        const char *name = gf_writer_name(chain, writer);
        if (!out || !out[first].data)
            return gf_fail(error, GF_USAGE, "%s: produces an image; give an output buffer", name);
        out += first;
        status = gf_memory_sink(&writer->stored, count, out, &task->writer[w].sink, error);
        for (uint64_t i = 0; i < count && !status; i++) {
            for (uint32_t k = 0; k < chain->inputs; k++)
                in[k] = lists[k][i];
            status = gf_check_overlap(one, name, in, writer, &out[i], error);
        }
    }
    return status;
}

/* Keep the records of the rows of all images. */
static gf_status tall_rows(const gf_plan *plan, void *data, const gf_rows *out, gf_error *error) {
    (void)error;
    memcpy((unsigned char *)data + out->y0 * plan->record, gf_row(out, out->y0),
           (size_t)out->rows * plan->record);
    return GF_OK;
}

static gf_status tall_finish(const gf_plan *plan, void *data, const void *state, gf_error *error) {
    (void)plan, (void)data, (void)state, (void)error;
    return GF_OK;
}

/* Run all images as one image with these nodes, and free them. */
static gf_status tall_run(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                          gf_graph *graph, gf_made *made, gf_result **results, gf_error *error) {
    static const gf_measure measure = {.rows = tall_rows, .finish = tall_finish};
    gf_task task = gf_task_begin(engine, chain, made);
    unsigned char *records[GF_MAX_NODES] = {NULL};
    gf_graph *one = NULL;
    task.graph = graph;
    task.images = 1;
    gf_status status = gf_graph_new(chain, format, &one, error);
    if (!status)
        status = images_open(&task, one, 0, chain->count, error);
    gf_delivery delivery = gf_task_delivery(&task);
    for (uint32_t n = 0; n < graph->nodes.count && results && !status; n++) {
        const size_t bytes = graph->plan[n]->record * (size_t)graph->plan[n]->in.height;
        if (bytes && !(records[n] = malloc(bytes)))
            status = gf_fail_memory(error, gf_chain_name(chain), bytes, "the measurement");
        if (records[n])
            delivery.node[n] = (gf_delivered){.measure = &measure, .data = records[n]};
    }
    gf_pass pass = gf_task_pass(&task, &delivery);
    if (!status)
        status = gf_pass_run(&pass, error);
    for (uint64_t i = 0; chain->measures && results && i < chain->count && !status; i++) {
        gf_device_part parts[GF_MAX_NODES] = {{.state = NULL}};
        gf_task part = {.chain = chain, .inputs = {.name = "memory"}, .memory = task.memory};
        for (uint32_t n = 0; n < graph->nodes.count; n++)
            if (records[n]) {
                const size_t record = graph->plan[n]->record;
                parts[n].records =
                    (gf_rows){records[n] + i * format->height * record, record, 0, format->height};
            }
        status = gf_task_deliver(&part, format, parts, results + i, chain->count, error);
    }
    for (uint32_t n = 0; n < GF_MAX_NODES; n++)
        free(records[n]);
    made->report.total_seconds = gf_now() - task.began;
    if (one)
        gf_made_report_graph(made, chain, one);
    gf_graph_free(one);
    gf_task_end(&task);
    return status;
}

/* Create the nodes of the tall image. Return NULL, which is not a failure, if rows are not
 * independent, the size of outputs may depend on the height, the height overflows, an output is
 * missing, or the backend needs whole images. */
static gf_graph *tall_graph(gf_engine *engine, const gf_chain *chain, const gf_format *format) {
    gf_format all = *format;
    gf_graph *graph = NULL;
    bool fits = chain->count > 1 &&
                !__builtin_mul_overflow(format->height, chain->count, &all.height) &&
                !gf_format_check(&all, "memory", NULL) && !gf_graph_new(chain, &all, &graph, NULL);
    for (uint32_t i = 0; fits && i < graph->nodes.count; i++)
        fits = gf_rows_independent(graph->plan[i]) && !graph->plan[i]->filter->stages;
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

static gf_status images_run_one(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                                uint64_t image, gf_made *made, gf_error *error) {
    gf_task task = gf_task_begin(engine, chain, made);
    task.images = chain->count - image;
    task.keep_samples = true;
    gf_status status = gf_graph_new(chain, format, &task.graph, error);
    if (!status)
        status = images_open(&task, task.graph, image, 1, error);
    if (!status)
        status = gf_task_run(&task, error);
    gf_task_end(&task);
    return status;
}

static gf_status images_run_each(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                                 gf_made *made, gf_result **results, gf_error *error) {
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < chain->count && !status; i++) {
        gf_made one = {.results = {NULL}};
        status = images_run_one(engine, chain, format, i, &one, error);
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
