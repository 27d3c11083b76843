/* The items of a batch: which is begun next, how one is run from file to file, and when it is
 * reported. */
#include <inttypes.h>

#include "core/error.h"
#include "engine/batch.h"

/* ---- beginning ------------------------------------------------------------------------------- */

uint64_t gf_batch_expected(const gf_file_batch *batch) {
    const uint64_t expected = gf_batch_is_shared(batch) ? batch->source.expected : 0;
    return expected && expected < batch->count ? expected : batch->count;
}

static bool items_has_more(const gf_file_batch *batch) {
    return !batch->stop &&
           (gf_batch_is_shared(batch) ? !batch->taken : batch->begun < batch->count);
}

bool gf_batch_may_begin(const gf_file_batch *batch) {
    return items_has_more(batch) && !batch->asking &&
           (!batch->window || batch->begun < batch->reported + batch->ahead);
}

bool gf_batch_finished(const gf_file_batch *batch) {
    return batch->error.status ||
           (!items_has_more(batch) && !batch->asking && batch->begun == batch->reported);
}

/* Under the lock. */
static void items_end(gf_file_batch *batch, const gf_error *error) {
    if (!batch->error.status)
        batch->error = *error;
    batch->stop = true;
    pthread_cond_broadcast(&batch->moved);
}

void gf_batch_give_up(gf_file_batch *batch, const gf_error *error) {
    pthread_mutex_lock(&batch->lock);
    items_end(batch, error);
    pthread_mutex_unlock(&batch->lock);
}

/* Takes an item of a shared list. What comes after a stop is not begun. */
static bool items_take(gf_file_batch *batch, uint64_t *item) {
    gf_take took;
    batch->asking = true;
    do {
        pthread_mutex_unlock(&batch->lock);
        took = batch->source.take(batch->source.context, item);
        pthread_mutex_lock(&batch->lock);
    } while (took == GF_TAKE_LATER && !batch->stop);
    batch->asking = false;
    batch->taken = took == GF_TAKE_NONE;
    if (took == GF_TAKEN && *item >= batch->count) {
        gf_error error;
        (void)gf_fail(&error, GF_USAGE, "%s: item %" PRIu64 " was taken, and there are %" PRIu64,
                      batch->filter->info.name, *item, batch->count);
        items_end(batch, &error);
    }
    pthread_cond_broadcast(&batch->moved);
    return took == GF_TAKEN && !batch->stop;
}

bool gf_batch_begin(gf_file_batch *batch, uint64_t *item) {
    *item = batch->begun;
    const bool good = !gf_batch_is_shared(batch) || items_take(batch, item);
    batch->begun += good;
    return good;
}

/* ---- reporting ------------------------------------------------------------------------------- */

void gf_batch_note_loss(gf_file_batch *batch, const gf_engine *engine) {
    pthread_mutex_lock(&batch->reporting);
    if (!batch->device_failed)
        gf_engine_give_reason(batch->reason, sizeof batch->reason, &engine->loss);
    batch->device_failed = true;
    pthread_mutex_unlock(&batch->reporting);
}

static void items_report_one(gf_file_batch *batch, uint64_t item,
                             const gf_batch_outcome *extension) {
    const gf_status status = extension->status;
    const gf_batch_options *options = &batch->options;
    const gf_batch_done done = {.item = item,
                                .status = status,
                                .error = status ? &extension->error : NULL,
                                .report = &extension->report,
                                .result = status ? NULL : extension->result};
    const bool go_on = !options->done || options->done(options->context, &done);
    gf_result_free(extension->result);
    pthread_mutex_lock(&batch->lock);
    batch->reported++;
    batch->stop = batch->stop || !go_on;
    pthread_cond_broadcast(&batch->moved);
    pthread_mutex_unlock(&batch->lock);
}

void gf_batch_report(gf_file_batch *batch, uint64_t item, gf_batch_outcome *extension) {
    gf_report *report = &extension->report;
    if (extension->status && batch->options.fail_fast) {
        pthread_mutex_lock(&batch->lock);
        batch->stop = true;
        pthread_mutex_unlock(&batch->lock);
    }
    pthread_mutex_lock(&batch->reporting);
    if (!report->reason[0] || (batch->device_failed && !report->device_failed))
        memcpy(report->reason, batch->reason, sizeof report->reason);
    report->device_failed = report->device_failed || batch->device_failed;
    if (!batch->window) {
        items_report_one(batch, item, extension);
    } else {
        gf_batch_outcome *next = &batch->window[item % batch->ahead];
        *next = *extension;
        next->there = true;
        while ((next = &batch->window[batch->reported % batch->ahead])->there) {
            next->there = false;
            items_report_one(batch, batch->reported, next);
        }
    }
    extension->result = NULL;
    pthread_mutex_unlock(&batch->reporting);
}

/* ---- one item -------------------------------------------------------------------------------- */

gf_file_options gf_batch_file_options(const gf_file_batch *batch, uint64_t item) {
    gf_file_options options = batch->options.files;
    options.force = options.force || batch->items[item].replace;
    return options;
}

gf_status gf_batch_open_image(const gf_file_batch *batch, uint64_t item, gf_task *task,
                              gf_error *error) {
    const char *const *path = &batch->items[item].in;
    const gf_file_options options = gf_batch_file_options(batch, item);
    *task = (gf_task){.filter = batch->filter, .threads = batch->each, .item = item};
    return gf_task_open_files(task, batch->settings, path, &options, error);
}

bool gf_batch_is_lost(const gf_engine *engine) {
    return engine->lost && !engine->replaceable;
}

bool gf_batch_run_item(gf_file_batch *batch, gf_engine *engine, uint64_t item, bool again) {
    const gf_batch_item *what = &batch->items[item];
    const gf_file_options options = gf_batch_file_options(batch, item);
    gf_batch_outcome extension = {0};
    const gf_report *report = &extension.report;
    extension.status =
        gf_run_file_of(engine, batch->filter, batch->settings, &what->in, what->out, item, &options,
                       &extension.result, &extension.report, &extension.error);
    const bool lost = extension.status == GF_NO_BACKEND && gf_batch_is_lost(engine);
    /* A backend was chosen, and no strip went to it. */
    const bool unbegun =
        extension.status && engine->leaves && report->backend[0] && report->strips == 0;
    if (again && (lost || unbegun))
        return false;
    gf_batch_report(batch, item, &extension);
    return true;
}
