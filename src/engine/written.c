/* Reading back what was written. */
#include "engine/task.h"
#include "io/read_back.h"

gf_status gf_task_check_written(const gf_task *task, gf_error *error) {
    /* Each rank has written a part of it. */
    if (task->ranks)
        return GF_OK;
    return gf_read_back(task->sink, &task->plan->out, &task->limits, task->digest, error);
}
