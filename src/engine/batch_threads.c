/* As many engines as there are files at a time, each in a thread that takes one file after the
 * other. */
#include "engine/batch_threads.h"

#include <stdlib.h>

#include "error.h"
#include "filter.h"
#include "thread.h"

typedef struct gf_files_worker {
    gf_files *files;
    gf_engine *engine;
    pthread_t thread;
} gf_files_worker;

/* The next item; false if there are no more. Waits where a slow one keeps others from being told
 * of. */
static bool take(gf_files *files, uint64_t *item) {
    pthread_mutex_lock(&files->lock);
    while (!gf_files_may_begin(files) && gf_files_has_more(files))
        pthread_cond_wait(&files->moved, &files->lock);
    const bool good = gf_files_may_begin(files) && gf_files_begin(files, item);
    pthread_mutex_unlock(&files->lock);
    return good;
}

static void *work(void *argument) {
    gf_files_worker *worker = argument;
    uint64_t item;
    while (take(worker->files, &item))
        gf_files_run_one(worker->files, worker->engine, item, GF_LEAVE_NOTHING);
    return NULL;
}

/* Fewer threads than asked for, if there are no more to be had, do it as well: one is the caller.
 */
static void run_workers(gf_files_worker *workers, uint32_t count) {
    uint32_t started = 1;
    while (started < count &&
           gf_thread_start(&workers[started].thread, work, &workers[started]) == 0)
        started++;
    work(&workers[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
}

gf_status gf_files_run_on_threads(gf_files *files, gf_error *error) {
    const uint32_t count = files->at_once;
    gf_engine_options options = files->options.engine;
    options.threads = files->each;
    options.unthreaded = files->each == 1;
    gf_files_worker *workers = calloc(count, sizeof *workers);
    if (!workers)
        return gf_fail_memory(error, files->filter->info.name, count * sizeof *workers, "threads");
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        workers[i].files = files;
        status = gf_engine_open(&options, &workers[i].engine, error);
    }
    if (!status)
        run_workers(workers, count);
    for (uint32_t i = 0; i < count; i++)
        gf_engine_close(workers[i].engine);
    free(workers);
    return status;
}
