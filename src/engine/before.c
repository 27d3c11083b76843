/* A filter that measures the whole image before it filters it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "engine/task.h"
#include "error.h"
#include "io/limits.h"
#include "io/metadata.h"
#include "plan.h"

/* Runs the filter before this one over the task's source and lets the plan learn from it. */
static gf_status measure_first(gf_task *task, gf_error *error) {
    const gf_filter *before = task->filter->before;
    gf_task first = *task;
    /* A pair of sources cannot begin again. */
    assert(task->filter->info.inputs == 1);
    first.filter = before;
    first.sink = NULL;
    first.samples = NULL;
    first.keep_samples = first.hold_samples = false;
    first.plan = NULL;
    first.data = NULL;
    gf_settings *settings = gf_settings_new(before->info.params, before->info.param_count);
    gf_status status =
        settings ? gf_plan_new(before, settings, &task->plan->in, &first.plan, error)
                 : gf_fail_memory(error, before->info.name, before->info.param_count, "settings");
    status = gf_ranks_agree(task->ranks, status, error);
    if (!status)
        status = task->ranks ? gf_task_stream_shared(&first, settings, error)
                             : gf_task_stream(&first, error);
    task->source = first.source; /* it may have been read again */
    task->listener.pass++;
    task->metadata = first.metadata;
    if (!status && gf_is_first(task->ranks))
        task->filter->learn(task->plan, first.plan, first.data);
    if (!status && task->ranks)
        task->ranks->broadcast(task->ranks->context, task->plan, task->filter->plan_bytes);
    if (first.data)
        before->measure->close(first.data);
    free(first.plan);
    gf_settings_free(settings);
    return status;
}

gf_status gf_measure_memory(gf_task *task, gf_error *error) {
    gf_status status = measure_first(task, error);
    (void)gf_memory_source_rewind(task->source);
    return status;
}

/* The source's image in memory, as a source of its own that knows its metadata, too. */
static gf_status hold(gf_task *task, gf_error *error) {
    gf_source *source = task->source, *held = NULL;
    const gf_format *format = &source->format;
    const size_t row = gf_row_bytes(format);
    void *pixels;
    gf_status status =
        gf_source_read_all(source, task->name, "an image that is read twice and comes from a pipe",
                           task->memory, &pixels, error);
    if (status)
        return status;
    if (gf_memory_source(format, pixels, row, &held, NULL)) {
        free(pixels);
        return gf_fail(error, GF_FAILED, "%s: out of memory for a source", task->name);
    }
    gf_memory_source_own(held, pixels, free);
    held->metadata = source->metadata;
    held->bytes = source->bytes;
    held->dropped = source->dropped;
    gf_metadata_init(&source->metadata);
    task->memory -= format->height * row;
    gf_task_exchange_source(task, held);
    return GF_OK;
}

gf_status gf_measure_file(gf_task *task, gf_error *error) {
    gf_status status;
    if (!task->seen[0].regular && !task->ranks) {
        status = hold(task, error);
        return status ? status : gf_measure_memory(task, error);
    }
    status = measure_first(task, error);
    /* With ranks a failure may be this one's own: the caller agrees on it. */
    return status ? status : gf_task_read_again(task, error);
}
