/* Many images of one format: through the backend as one tall image where rows stand alone,
 * otherwise one by one. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine/task.h"
#include "error.h"
#include "io/limits.h"
#include "plan.h"
#include "result.h"
#include "thread.h"

/* What the caller gave. */
typedef struct gf_batch {
    const gf_settings *settings;
    const gf_format *format;
    uint64_t count;
    const gf_pixels *in;
    const gf_out_pixels *out;
    gf_result **results;
} gf_batch;

static void drop_results(const gf_batch *batch) {
    for (uint64_t i = 0; batch->results && i < batch->count; i++) {
        gf_result_free(batch->results[i]);
        batch->results[i] = NULL;
    }
}

/* ---- what each image of a tall one measures -------------------------------------------------- */

typedef struct gf_batch_data {
    const gf_measure *measure;
    uint64_t count, height; /* of an image */
    struct gf_batch_part {
        gf_plan *plan;
        void *data;
    } parts[];
} gf_batch_data;

static gf_status take_rows(const gf_plan *tall, void *data, const gf_rows *out, gf_error *error) {
    (void)tall;
    const gf_batch_data *all = data;
    const uint64_t end = out->y0 + out->rows;
    gf_status status = GF_OK;
    for (uint64_t y = out->y0, next; y < end && !status; y = next) {
        const uint64_t image = y / all->height, first = image * all->height;
        next = first + all->height < end ? first + all->height : end;
        const gf_rows rows = {gf_row(out, y), out->stride, y - first, next - y};
        const struct gf_batch_part *part = &all->parts[image];
        status = all->measure->rows(part->plan, part->data, &rows, error);
    }
    return status;
}

static gf_status finish_all(const gf_plan *tall, void *data, const void *state, gf_error *error) {
    (void)tall;
    const gf_batch_data *all = data;
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < all->count && !status; i++)
        status = all->measure->finish(all->parts[i].plan, all->parts[i].data, state, error);
    return status;
}

static void close_all(void *data) {
    gf_batch_data *all = data;
    for (uint64_t i = 0; i < all->count; i++) {
        if (all->parts[i].data)
            all->measure->close(all->parts[i].data);
        free(all->parts[i].plan);
    }
    free(all);
}

/* Stands in for the filter's own while the images are one. */
static const gf_measure batch_measure = {
    .rows = take_rows, .finish = finish_all, .close = close_all};

static gf_status open_all(const gf_filter *filter, const gf_batch *batch, uint64_t memory,
                          void **out, gf_error *error) {
    const gf_keep keep = {.name = "memory"};
    const uint64_t bytes = sizeof(gf_batch_data) + batch->count * sizeof(struct gf_batch_part);
    gf_batch_data *all = calloc(1, (size_t)bytes);
    *out = all;
    if (!all)
        return gf_fail_memory(error, filter->info.name, bytes, "what is measured");
    all->measure = filter->measure;
    all->height = batch->format->height;
    gf_status status = GF_OK;
    for (; all->count < batch->count && !status; all->count++) {
        struct gf_batch_part *part = &all->parts[all->count];
        status = gf_plan_new(filter, batch->settings, batch->format, &part->plan, error);
        if (!status)
            status =
                gf_check_memory(part->plan->result_bytes, memory, keep.name, "the result", error);
        if (!status)
            status = filter->measure->open(part->plan, &keep, &part->data, error);
    }
    return status;
}

static gf_status make_results(const gf_filter *filter, const gf_batch *batch, void *data,
                              gf_error *error) {
    gf_batch_data *all = data;
    gf_status status = GF_OK;
    for (uint64_t i = 0; all && batch->results && i < all->count && !status; i++) {
        const struct gf_batch_part part = all->parts[i];
        all->parts[i] = (struct gf_batch_part){0};
        status = gf_result_new(filter, part.plan, part.data, &batch->results[i], error);
    }
    return status;
}

/* ---- as one tall image ----------------------------------------------------------------------- */

static gf_format tall(const gf_format *format, uint64_t count) {
    gf_format all = *format;
    all.height *= count;
    return all;
}

/* All inputs as one source: of two images a row of each lies in a row of it. */
static gf_status open_sources(gf_task *task, const gf_batch *batch, gf_error *error) {
    const uint32_t inputs = task->filter->info.inputs;
    gf_source *sources[2] = {NULL, NULL};
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < inputs && !status; i++)
        status =
            gf_batch_source(batch->format, batch->count, batch->in + i, inputs, &sources[i], error);
    task->source = sources[0];
    if (status || !sources[1])
        return status;
    return gf_task_add_second(task, sources[1], "memory", "memory", error);
}

/* The task's filter is the one whose measure stands in. */
static gf_status run_tall(gf_task *task, const gf_filter *filter, const gf_batch *batch,
                          gf_error *error) {
    const gf_plan *plan = task->plan;
    gf_status status = open_sources(task, batch, error);
    if (!status && plan->out.width) {
        gf_format out = plan->out;
        out.height /= batch->count;
        status = gf_batch_sink(&out, batch->count, batch->out, &task->sink, error);
    }
    if (!status && filter->measure)
        status = open_all(filter, batch, task->memory, &task->data, error);
    if (!status)
        status = gf_task_stream(task, error);
    if (!status)
        status = make_results(filter, batch, task->data, error);
    task->report->total_seconds = gf_now() - task->began;
    task->report->in = *batch->format;
    task->report->out.height /= batch->count;
    return status;
}

/* The plan of the tall image, if the images may be one; NULL if they may not, which is no failure:
 * rows do not stand alone, there is no such height, or the backend wants every image whole. */
static gf_plan *plan_tall(gf_engine *engine, const gf_filter *filter, const gf_batch *batch) {
    gf_format all = tall(batch->format, batch->count);
    uint64_t height;
    gf_plan *plan;
    if (batch->count < 2 || __builtin_mul_overflow(batch->format->height, batch->count, &height) ||
        gf_format_check(&all, "memory", NULL) ||
        gf_plan_new(filter, batch->settings, &all, &plan, NULL))
        return NULL;
    const gf_backend *backend;
    void *state;
    char reason[sizeof((gf_report *)0)->reason];
    if (gf_rows_stand_alone(filter, plan) && (batch->out || !plan->out.width) &&
        !gf_engine_choose(engine, plan, NULL, &backend, &state, reason, sizeof reason, NULL) &&
        !backend->wish(state, plan).whole_image)
        return plan;
    free(plan);
    return NULL;
}

/* ---- one by one ------------------------------------------------------------------------------ */

static void add(gf_report *report, const gf_report *one) {
    gf_report sum = *one;
    sum.bands += report->bands;
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        gf_busy_add(&sum.busy[i], report->busy[i]);
    if (report->device_failed && !one->device_failed) {
        memcpy(sum.reason, report->reason, sizeof sum.reason);
        sum.device_failed = true;
    }
    sum.start_seconds += report->start_seconds;
    sum.total_seconds += report->total_seconds;
    *report = sum;
}

static gf_status run_each(gf_engine *engine, const gf_filter *filter, const gf_batch *batch,
                          gf_report *report, gf_error *error) {
    const uint32_t inputs = filter->info.inputs;
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < batch->count && !status; i++) {
        engine->images = batch->count - i;
        const gf_out_pixels out = batch->out ? batch->out[i] : (gf_out_pixels){0};
        gf_report one;
        status = gf_run_memory(engine, filter, batch->settings, batch->format,
                               batch->in + i * inputs, out.data, out.stride,
                               batch->results ? &batch->results[i] : NULL, &one, error);
        if (!status)
            add(report, &one);
    }
    engine->images = 0;
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
            gf_fail(error, GF_USAGE, "%s: it reads images, and they are NULL", filter->info.name);
    if (status)
        return status;
    gf_plan *plan = plan_tall(engine, filter, &batch);
    if (!plan) {
        status = run_each(engine, filter, &batch, report, error);
    } else {
        gf_filter stand_in = *filter;
        if (filter->measure)
            stand_in.measure = &batch_measure;
        gf_task task = gf_task_begin(engine, &stand_in, "memory", report);
        task.plan = plan;
        status = run_tall(&task, filter, &batch, error);
        gf_task_end(&task);
    }
    if (status)
        drop_results(&batch);
    return status;
}
