/* Many files: which is begun next, how one is run, and who is told of it, in which order. */
#include "engine/batch_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "error.h"
#include "filter.h"

#define LEAST_AHEAD 64u

gf_status gf_files_init(gf_files *files, gf_error *error) {
    pthread_mutex_init(&files->lock, NULL);
    pthread_mutex_init(&files->taking, NULL);
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

void gf_files_clear(gf_files *files) {
    for (uint64_t i = 0; files->window && i < files->ahead; i++)
        if (files->window[i].there)
            gf_result_free(files->window[i].result);
    free(files->window);
    pthread_cond_destroy(&files->moved);
    pthread_mutex_destroy(&files->telling);
    pthread_mutex_destroy(&files->taking);
    pthread_mutex_destroy(&files->lock);
}

/* ---- beginning ------------------------------------------------------------------------------- */

uint64_t gf_files_expected(const gf_files *files) {
    const gf_batch_options *options = &files->options;
    return options->take && options->expected && options->expected < files->count
               ? options->expected
               : files->count;
}

bool gf_files_has_more(const gf_files *files) {
    return !files->stop && (files->options.take ? !files->taken : files->next < files->count);
}

bool gf_files_may_begin(const gf_files *files) {
    return gf_files_has_more(files) && (!files->window || files->next < files->told + files->ahead);
}

bool gf_files_over(const gf_files *files) {
    return files->status || (files->busy == 0 && !gf_files_has_more(files));
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

/* ---- taking ---------------------------------------------------------------------------------- */

/* Asks once, unless it has been stopped, or others were told meanwhile that there are no more. */
static gf_take ask(gf_files *files, uint64_t *item) {
    gf_take took = GF_TAKE_NONE;
    pthread_mutex_lock(&files->taking);
    pthread_mutex_lock(&files->lock);
    const bool more = gf_files_has_more(files);
    pthread_mutex_unlock(&files->lock);
    if (more)
        took = files->options.take(files->options.context, item);
    if (took == GF_TAKEN && *item >= files->count) {
        gf_error error = {0};
        gf_files_give_up(files,
                         gf_fail(&error, GF_USAGE,
                                 "%s: item %" PRIu64 " was taken, and there are %" PRIu64,
                                 files->filter->info.name, *item, files->count),
                         &error);
        took = GF_TAKE_NONE;
    }
    if (took == GF_TAKE_NONE) {
        pthread_mutex_lock(&files->lock);
        files->taken = true;
        pthread_mutex_unlock(&files->lock);
    }
    pthread_mutex_unlock(&files->taking);
    return took;
}

bool gf_files_begin(gf_files *files, uint64_t *item) {
    gf_take took = GF_TAKEN;
    files->busy++; /* or all might seem to be over while it is asked for */
    if (!files->options.take)
        *item = files->next++;
    else
        do {
            pthread_mutex_unlock(&files->lock);
            took = ask(files, item);
            pthread_mutex_lock(&files->lock);
        } while (took == GF_TAKE_LATER);
    /* What comes after a stop is nobody's. */
    if (took == GF_TAKEN && !(files->options.take && files->stop))
        return true;
    files->busy--;
    pthread_cond_broadcast(&files->moved);
    return false;
}

/* ---- telling --------------------------------------------------------------------------------- */

static void stop(gf_files *files) {
    pthread_mutex_lock(&files->lock);
    files->stop = true;
    pthread_mutex_unlock(&files->lock);
}

static void call(gf_files *files, uint64_t item, gf_status status, const gf_error *error,
                 const gf_report *report, gf_result *result) {
    const gf_batch_done done = {.item = item,
                                .status = status,
                                .error = status ? error : NULL,
                                .report = report,
                                .result = status ? NULL : result};
    const gf_batch_options *options = &files->options;
    if (options->done && !options->done(options->context, &done))
        stop(files);
    gf_result_free(result);
    pthread_mutex_lock(&files->lock);
    files->over++;
    pthread_mutex_unlock(&files->lock);
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
    if (status && files->options.fail_fast)
        stop(files);
    pthread_mutex_lock(&files->telling);
    if (!report->reason[0] || (files->device_failed && !report->device_failed))
        memcpy(report->reason, files->reason, sizeof report->reason);
    report->device_failed = report->device_failed || files->device_failed;
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

/* ---- one of them ----------------------------------------------------------------------------- */

gf_file_options gf_files_options(const gf_files *files, uint64_t item) {
    gf_file_options options = files->options.files;
    options.force = options.force || files->items[item].replace;
    return options;
}

typedef struct gf_files_item {
    const gf_file_options *options; /* of the batch */
    uint64_t item;
} gf_files_item;

/* gf_file_options.ready, of a file that does not know that it is one of many. */
static gf_status on_ready(void *context, const gf_ready *one, gf_error *error) {
    const gf_files_item *item = context;
    gf_ready ready = *one;
    ready.item = item->item;
    return item->options->ready(item->options->ready_context, &ready, error);
}

/* gf_file_options.progress, of such a file. */
static void on_progress(void *context, const gf_progress *one) {
    const gf_files_item *item = context;
    gf_progress progress = *one;
    progress.item = item->item;
    item->options->progress(item->options->progress_context, &progress);
}

void gf_files_note_loss(gf_files *files, const gf_error *error) {
    pthread_mutex_lock(&files->telling);
    if (!files->device_failed)
        gf_engine_give_reason(files->reason, sizeof files->reason, error);
    files->device_failed = true;
    pthread_mutex_unlock(&files->telling);
}

/* Did the engine's device fail, and is nothing there to take its place? */
static bool is_lost(const gf_engine *engine, gf_status status) {
    return status == GF_NO_BACKEND && engine->lost && !engine->replaceable;
}

bool gf_files_run_one(gf_files *files, gf_engine *engine, uint64_t item, gf_leave leave) {
    const gf_batch_item *what = &files->items[item];
    gf_file_options options = gf_files_options(files, item);
    gf_files_item asked = {&files->options.files, item};
    if (options.ready) {
        options.ready = on_ready;
        options.ready_context = &asked;
    }
    if (options.progress) {
        options.progress = on_progress;
        options.progress_context = &asked;
    }
    gf_error error = {0};
    gf_report report = {0};
    gf_result *result = NULL;
    const gf_status status = gf_run_file(engine, files->filter, files->settings, &what->in,
                                         what->out, &options, &result, &report, &error);
    if (leave >= GF_LEAVE_LOST && is_lost(engine, status))
        return false;
    /* A backend was chosen, and no band went to it. */
    if (status && leave >= GF_LEAVE_UNBEGUN && report.backend[0] && report.bands == 0)
        return false;
    gf_files_tell(files, item, status, &error, &report, result);
    return true;
}
