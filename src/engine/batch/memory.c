/* Many images of one format in memory: as one tall image if rows are independent, otherwise one
 * after the other. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/filter.h"
#include "core/thread.h"
#include "engine/run/task.h"
#include "io/io.h"

/* Arguments of the caller. */
typedef struct gf_batch {
    const gf_settings *settings;
    const gf_format *format;
    uint64_t count;
    const gf_pixels *in;
    const gf_out_pixels *out;
    gf_result **results;
} gf_batch;

/* ---- one tall image -------------------------------------------------------------------------- */

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

/* Open a measure for each image. */
static gf_status tall_open_parts(gf_tall *tall, const gf_filter *filter, const gf_batch *batch,
                                 uint64_t memory, gf_error *error) {
    gf_status status = GF_OK;
    tall->parts = calloc((size_t)batch->count, sizeof *tall->parts);
    if (!tall->parts)
        return gf_fail_memory(error, filter->info.name, batch->count * sizeof *tall->parts,
                              "the measurement");
    for (uint64_t i = 0; i < batch->count && !status; i++) {
        gf_task *part = &tall->parts[i];
        *part = (gf_task){.filter = filter, .inputs = {.name = "memory"}, .memory = memory};
        status = gf_plan_new(filter, batch->settings, batch->format, &part->plan, error);
        if (!status)
            status = gf_task_open_measure(part, error);
    }
    return status;
}

static void tall_close(gf_tall *tall) {
    for (uint64_t i = 0; tall->parts && i < tall->count; i++)
        gf_task_end(&tall->parts[i]);
    free(tall->parts);
}

/* Run all images as one image of this plan. */
static gf_status tall_run(gf_engine *engine, const gf_filter *filter, const gf_batch *batch,
                          const gf_plan *plan, gf_report *report, gf_error *error) {
    static const gf_measure measure = {.rows = tall_rows, .finish = tall_finish};
    const double began = gf_now() - engine->start_seconds;
    gf_tall tall = {
        .measure = filter->measure, .count = batch->count, .height = batch->format->height};
    gf_delivery delivery = {.plan = plan, .measure = &measure, .data = &tall, .report = report};
    gf_inputs inputs;
    gf_pass pass = {.engine = engine,
                    .inputs = &inputs,
                    .filter = filter,
                    .plan = plan,
                    .consumer = &delivery.base,
                    .images = 1,
                    .memory = engine->options.max_memory,
                    .report = report};
    gf_format out = plan->out;
    out.height /= batch->count;
    gf_status status = gf_inputs_open_memory(&inputs, filter->info.inputs, batch->format,
                                             batch->count, batch->in, error);
    if (!status && out.width)
        status = gf_memory_sink(&out, batch->count, batch->out, &delivery.sink, error);
    const gf_plan one = {.in = *batch->format, .out = out, .inputs = plan->inputs};
    for (uint64_t i = 0; delivery.sink && i < batch->count && !status; i++)
        status = gf_check_overlap(filter->info.name, &one, batch->in + i * one.inputs,
                                  &batch->out[i], error);
    if (!status && filter->measure)
        status = tall_open_parts(&tall, filter, batch, pass.memory, error);
    gf_delivery_init(&delivery);
    if (!status)
        status = gf_pass_run(&pass, error);
    for (uint64_t i = 0; tall.parts && batch->results && i < tall.count && !status; i++)
        status = gf_task_make_result(&tall.parts[i], &batch->results[i], error);
    report->total_seconds = gf_now() - began;
    report->in = *batch->format;
    report->out.height /= batch->count;
    report->pixels /= batch->count;
    tall_close(&tall);
    if (delivery.sink)
        delivery.sink->ops->close(delivery.sink);
    gf_inputs_close(&inputs);
    return status;
}

/* Create the plan of the tall image. Return NULL, which is not a failure, if rows are not
 * independent, the height overflows, or the backend needs whole images. */
static gf_plan *tall_plan(gf_engine *engine, const gf_filter *filter, const gf_batch *batch) {
    gf_format all = *batch->format;
    gf_plan *plan;
    if (batch->count < 2 ||
        __builtin_mul_overflow(batch->format->height, batch->count, &all.height) ||
        gf_format_check(&all, "memory", NULL) ||
        gf_plan_new(filter, batch->settings, &all, &plan, NULL))
        return NULL;
    const gf_backend *backend;
    void *state;
    char reason[sizeof((gf_report *)0)->reason];
    if (gf_rows_independent(plan) && (batch->out || !plan->out.width) &&
        !gf_engine_choose(engine, &(gf_workload){.plan = plan}, &backend, &state, reason,
                          sizeof reason, NULL) &&
        !backend->request(state, plan).whole_image)
        return plan;
    free(plan);
    return NULL;
}

/* ---- one after the other --------------------------------------------------------------------- */

static gf_status memory_run_each(gf_engine *engine, const gf_filter *filter, const gf_batch *batch,
                                 gf_report *report, gf_error *error) {
    const uint32_t inputs = filter->info.inputs;
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < batch->count && !status; i++) {
        const gf_out_pixels out = batch->out ? batch->out[i] : (gf_out_pixels){0};
        gf_report one;
        status = gf_run_memory_of(engine, filter, batch->settings, batch->format,
                                  batch->in + i * inputs, out, batch->count - i,
                                  batch->results ? &batch->results[i] : NULL, &one, error);
        if (!status && i > 0)
            gf_report_add(&one, report);
        if (!status)
            *report = one;
    }
    report->pixels = report->in.width * report->in.height; /* of one image */
    return status;
}

gf_status gf_run_memory_batch(gf_engine *engine, const gf_filter *filter,
                              const gf_settings *settings, const gf_format *format, uint64_t count,
                              const gf_pixels *in, const gf_out_pixels *out, gf_result **results,
                              gf_report *report, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_batch batch = {settings, format, count, in, out, results};
    gf_report unread;
    if (!report)
        report = &unread;
    *report = (gf_report){0};
    for (uint64_t i = 0; results && i < count; i++)
        results[i] = NULL;
    gf_status status = gf_check_use(filter, settings, error);
    if (!status)
        status = gf_format_check(format, "memory", error);
    if (!status && !in && count)
        status =
            gf_fail(error, GF_USAGE, "%s: the list of input images is NULL", filter->info.name);
    if (status)
        return status;
    gf_plan *plan = tall_plan(engine, filter, &batch);
    status = plan ? tall_run(engine, filter, &batch, plan, report, error)
                  : memory_run_each(engine, filter, &batch, report, error);
    free(plan);
    for (uint64_t i = 0; status && results && i < count; i++) {
        gf_result_free(results[i]);
        results[i] = NULL;
    }
    return status;
}
