/* Reading an image a second time. */
#include "engine/task.h"
#include "error.h"

void gf_task_exchange_source(gf_task *task, gf_source *source) {
    task->source->ops->close(task->source);
    task->source = source;
    if (task->metadata)
        task->metadata = &source->metadata;
}

static bool is_same(const gf_task *task, const gf_format *before) {
    bool same = gf_format_equal(&task->source->format, before);
    for (uint32_t i = 0; i < task->filter->info.inputs; i++)
        same = same && gf_is_still(&task->seen[i], task->paths[i]);
    return same;
}

bool gf_task_can_read_again(const gf_task *task) {
    if (gf_memory_source_is(task->source))
        return true;
    for (uint32_t i = 0; i < task->filter->info.inputs; i++)
        if (!task->paths || !task->seen[i].regular)
            return false;
    return true;
}

gf_status gf_task_read_again(gf_task *task, gf_error *error) {
    if (gf_memory_source_rewind(task->source))
        return GF_OK;
    if (!gf_task_can_read_again(task))
        return gf_fail(error, GF_FAILED, "%s: it cannot be read again", task->name);
    const gf_format before = task->source->format;
    gf_task again = {.filter = task->filter, .paths = task->paths, .limits = task->limits};
    gf_status status = gf_task_open_sources(&again, error);
    if (again.source)
        gf_task_exchange_source(task, again.source);
    if (status)
        return status;
    if (!is_same(task, &before))
        return gf_fail(error, GF_FAILED, "%s: changed while it was read; run again", task->name);
    if (task->window)
        task->source->ops->seek(task->source, task->window);
    return GF_OK;
}
