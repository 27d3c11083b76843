/* The run of a job on files, on images in host memory or on images in device memory. Many images
 * of one format in host memory run as one tall image if rows are independent, otherwise in turn. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "engine/run/task.h"
#include "io/stream/stream.h"

/* The measurement of a tall image: that of each image. */
typedef struct gf_tall {
    const gf_measure *measure; /* NULL for a filter without a result */
    uint64_t count, height;    /* height of each image */
    gf_task *parts;            /* one task per image, with a plan and an open measure */
} gf_tall;

/* Pass the records of each image to its own measure. */
static gf_status tall_rows(const gf_plan *plan, void *data, const gf_rows *out, gf_error *error) {
    const gf_tall *tall = data;
    const uint64_t end = out->y0 + out->rows;
    gf_status status = GF_OK;
    (void)plan;
    for (uint64_t y = out->y0, next; y < end && !status; y = next) {
        const uint64_t image = y / tall->height, first = image * tall->height;
        next = first + tall->height < end ? first + tall->height : end;
        const gf_rows rows = {gf_row(out, y), out->stride, y - first, next - y};
        status =
            tall->measure->rows(tall->parts[image].plan, tall->parts[image].data, &rows, error);
    }
    return status;
}

static gf_status tall_finish(const gf_plan *plan, void *data, const void *state, gf_error *error) {
    const gf_tall *tall = data;
    gf_status status = GF_OK;
    (void)plan;
    for (uint64_t i = 0; i < tall->count && !status; i++)
        status = tall->measure->finish(tall->parts[i].plan, tall->parts[i].data, state, error);
    return status;
}

/* Run all images as one image of this plan, and free the plan. */
static gf_status tall_run(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                          gf_plan *plan, gf_made *made, gf_result **results, gf_error *error) {
    static const gf_measure measure = {.rows = tall_rows, .finish = tall_finish};
    gf_tall tall = {
        .measure = chain->filter->measure, .count = chain->count, .height = format->height};
    gf_task task = gf_task_begin(engine, chain, made);
    gf_plan one = *plan;
    task.plan = plan;
    task.images = 1;
    one.in = *format;
    one.out.height /= chain->count;
    gf_status status =
        gf_inputs_open_memory(&task.inputs, plan->inputs, format, chain->count, chain->in, error);
    if (!status && one.out.width)
        status = gf_memory_sink(&one.out, chain->count, chain->out, &task.sink, error);
    for (uint64_t i = 0; i < chain->count && one.out.width && !status; i++) {
        const gf_pixels in[] = {chain->in[0][i], chain->in[1] ? chain->in[1][i] : chain->in[0][i]};
        status = gf_check_overlap(&one, chain->filter->info.name, in, &chain->out[i], error);
    }
    if (!status && tall.measure && !(tall.parts = calloc((size_t)tall.count, sizeof *tall.parts)))
        status = gf_fail_memory(error, chain->filter->info.name, tall.count * sizeof *tall.parts,
                                "the measurement");
    for (uint64_t i = 0; tall.parts && i < tall.count && !status; i++) {
        gf_task *part = &tall.parts[i];
        *part = (gf_task){.chain = chain, .inputs = {.name = "memory"}, .memory = task.memory};
        if (!(status = gf_chain_plan(chain, format, &part->plan, error)))
            status = gf_task_open_measure(part, error);
    }
    gf_delivery delivery = {.plan = plan, .measure = &measure, .data = &tall, .sink = task.sink};
    gf_pass pass = gf_task_pass(&task, &delivery);
    if (!status)
        status = gf_pass_run(&pass, error);
    for (uint64_t i = 0; tall.parts && results && i < tall.count && !status; i++)
        status = gf_task_make_result(&tall.parts[i], &results[i], error);
    made->report.total_seconds = gf_now() - task.began;
    gf_made_report_plan(made, &one);
    for (uint64_t i = 0; tall.parts && i < tall.count; i++)
        gf_task_end(&tall.parts[i]);
    free(tall.parts);
    gf_task_end(&task);
    return status;
}

/* Create the plan of the tall image. Return NULL, which is not a failure, if rows are not
 * independent, the height overflows, or the backend needs whole images. */
static gf_plan *tall_plan(gf_engine *engine, const gf_chain *chain, const gf_format *format) {
    gf_format all = *format;
    gf_plan *plan;
    if (chain->count < 2 || __builtin_mul_overflow(format->height, chain->count, &all.height) ||
        gf_format_check(&all, "memory", NULL) || gf_chain_plan(chain, &all, &plan, NULL))
        return NULL;
    gf_started on;
    char reason[GF_REASON_BYTES];
    const gf_node node = {.plan = plan};
    if (gf_rows_independent(plan) && (chain->out || !plan->out.width) &&
        !gf_engine_choose(engine, &(gf_workload){.plan = plan}, &on, reason, NULL) &&
        !on.backend->request(on.state, &(gf_nodes){&node, 1, 0}).whole_image)
        return plan;
    gf_plan_free(plan);
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
        if (!status && results) {
            results[i] = one.results[0];
            one.results[0] = NULL;
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
    for (uint32_t i = 0; i < chain->filter->info.inputs && !status; i++)
        if (!chain->in[i])
            status = gf_fail(error, GF_USAGE, "%s: needs %u input images, and one is NULL",
                             chain->filter->info.name, chain->filter->info.inputs);
    if (status)
        return status;
    if (job->memory == GF_DEVICE)
        return gf_run_on_device(engine, chain, format, job->stream, results, error);
    gf_plan *plan = tall_plan(engine, chain, format);
    status = plan ? tall_run(engine, chain, format, plan, made, results, error)
                  : images_run_each(engine, chain, format, made, results, error);
    for (uint64_t i = 0; status && results && i < chain->count; i++) {
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
