/* Many files: who begins which, who is told, and the way of the CPU, where each thread has an image
 * of its own. */
#include "engine/batch_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/batch_plan.h"
#include "engine/engine.h"
#include "engine/thread.h"
#include "error.h"
#include "plan.h"

/* ---- beginning ------------------------------------------------------------------------------- */

bool gf_files_may_begin(const gf_files *files) {
    return files->next < files->count && !files->stop &&
           (!files->window || files->next < files->told + files->ahead);
}

uint64_t gf_files_begin(gf_files *files) {
    files->busy++;
    return files->next++;
}

bool gf_files_over(const gf_files *files) {
    return files->status || (files->busy == 0 && (files->stop || files->next == files->count));
}

/* The next item; false if there are no more. Waits where a slow one keeps others from being told
 * of. */
static bool take(gf_files *files, uint64_t *item) {
    pthread_mutex_lock(&files->lock);
    while (!gf_files_may_begin(files) && files->next < files->count && !files->stop)
        pthread_cond_wait(&files->moved, &files->lock);
    const bool good = gf_files_may_begin(files);
    if (good)
        *item = gf_files_begin(files);
    pthread_mutex_unlock(&files->lock);
    return good;
}

void gf_files_give_up(gf_files *files, gf_status status, const gf_error *error) {
    pthread_mutex_lock(&files->lock);
    if (!files->status) {
        files->status = status;
        files->error = *error;
    }
    files->stop = true;
    pthread_cond_broadcast(&files->moved);
    pthread_mutex_unlock(&files->lock);
}

/* ---- telling --------------------------------------------------------------------------------- */

static void call(gf_files *files, uint64_t item, gf_status status, const gf_error *error,
                 const gf_report *report, gf_result *result) {
    const gf_batch_done done = {.item = item,
                                .status = status,
                                .error = status ? error : NULL,
                                .report = report,
                                .result = status ? NULL : result};
    const gf_batch_options *options = &files->options;
    if (options->done && !options->done(options->context, &done)) {
        pthread_mutex_lock(&files->lock);
        files->stop = true;
        pthread_mutex_unlock(&files->lock);
    }
    gf_result_free(result);
}

/* Tells of what is there without a gap. */
static void tell_in_order(gf_files *files) {
    for (;;) {
        gf_told *told = &files->window[files->told % files->ahead];
        if (!told->there)
            return;
        told->there = false;
        call(files, files->told, told->status, &told->error, &told->report, told->result);
        pthread_mutex_lock(&files->lock);
        files->told++;
        pthread_mutex_unlock(&files->lock);
    }
}

void gf_files_tell(gf_files *files, uint64_t item, gf_status status, const gf_error *error,
                   gf_report *report, gf_result *result) {
    pthread_mutex_lock(&files->telling);
    if (!report->reason[0])
        snprintf(report->reason, sizeof report->reason, "%s", files->reason);
    if (files->window) {
        gf_told *told = &files->window[item % files->ahead];
        *told = (gf_told){true, status, *error, *report, result};
        tell_in_order(files);
    } else {
        call(files, item, status, error, report, result);
    }
    pthread_mutex_unlock(&files->telling);
    pthread_mutex_lock(&files->lock);
    files->busy--;
    pthread_cond_broadcast(&files->moved);
    pthread_mutex_unlock(&files->lock);
}

/* ---- each thread an image -------------------------------------------------------------------- */

gf_file_options gf_files_options(const gf_files *files, uint64_t item) {
    gf_file_options options = files->options.files;
    options.force = options.force || files->items[item].replace;
    return options;
}

bool gf_files_run_one(gf_files *files, gf_engine *engine, uint64_t item, bool may_leave) {
    const gf_batch_item *what = &files->items[item];
    const gf_file_options options = gf_files_options(files, item);
    gf_error error = {0};
    gf_report report = {0};
    gf_result *result = NULL;
    const gf_status status = gf_run_file(engine, files->filter, files->settings, &what->in,
                                         what->out, &options, &result, &report, &error);
    /* A backend was chosen, and no band went to it. */
    if (status && may_leave && report.backend[0] && report.bands == 0)
        return false;
    gf_files_tell(files, item, status, &error, &report, result);
    return true;
}

typedef struct gf_files_worker {
    gf_files *files;
    gf_engine *engine;
    pthread_t thread;
} gf_files_worker;

static void *work(void *argument) {
    gf_files_worker *worker = argument;
    uint64_t item;
    while (take(worker->files, &item))
        gf_files_run_one(worker->files, worker->engine, item, false);
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

static gf_status run_on_threads(gf_files *files, gf_error *error) {
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

/* ---- all of it ------------------------------------------------------------------------------- */

#define LEAST_AHEAD 64u

static gf_status begin(gf_files *files, gf_error *error) {
    pthread_mutex_init(&files->lock, NULL);
    pthread_mutex_init(&files->telling, NULL);
    pthread_cond_init(&files->moved, NULL);
    if (!files->options.in_order)
        return GF_OK;
    files->ahead = 4 * (uint64_t)files->threads;
    files->ahead = files->ahead < LEAST_AHEAD ? LEAST_AHEAD : files->ahead;
    files->window = calloc((size_t)files->ahead, sizeof *files->window);
    return files->window ? GF_OK
                         : gf_fail_memory(error, files->filter->info.name,
                                          files->ahead * sizeof *files->window, "results in order");
}

static void end(gf_files *files) {
    for (uint64_t i = 0; files->window && i < files->ahead; i++)
        if (files->window[i].there)
            gf_result_free(files->window[i].result);
    free(files->window);
    pthread_cond_destroy(&files->moved);
    pthread_mutex_destroy(&files->telling);
    pthread_mutex_destroy(&files->lock);
}

static gf_status run_batch(const gf_files_devices *devices, const gf_filter *filter,
                           const gf_settings *settings, const gf_batch_item *items, uint64_t count,
                           const gf_batch_options *options, gf_error *error) {
    const gf_batch_options defaults = {0};
    gf_files files = {.filter = filter,
                      .settings = settings,
                      .items = items,
                      .count = count,
                      .options = options ? *options : defaults};
    gf_files_devices planned = {0};
    gf_status status = gf_files_check(&files, error);
    if (status || count == 0)
        return status;
    if (!devices) {
        status = gf_files_choose(&files, &planned, error);
        devices = planned.count ? &planned : NULL;
    }
    if (status)
        return status;
    status = begin(&files, error);
    if (!status && devices)
        gf_files_run_on_devices(&files, devices);
    else if (!status)
        status = run_on_threads(&files, error);
    end(&files);
    if (!status && files.status) {
        status = files.status;
        if (error)
            *error = files.error;
    }
    return status;
}

gf_status gf_run_batch_on(const gf_files_devices *devices, const gf_filter *filter,
                          const gf_settings *settings, const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error) {
    return run_batch(devices, filter, settings, items, count, options, error);
}

gf_status gf_run_batch(const gf_filter *filter, const gf_settings *settings,
                       const gf_batch_item *items, uint64_t count, const gf_batch_options *options,
                       gf_error *error) {
    return run_batch(NULL, filter, settings, items, count, options, error);
}
