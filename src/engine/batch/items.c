/* Items of a batch: selection of the next item, its run from file to file, and its report. */
#include <inttypes.h>

#include "core/error.h"
#include "engine/batch/batch.h"

/* ---- starting -------------------------------------------------------------------------------- */

uint64_t gf_batch_expected(const gf_file_batch *batch) {
    const uint64_t expected = gf_batch_is_shared(batch) ? batch->source.expected : 0;
    return expected && expected < batch->count ? expected : batch->count;
}

static bool items_has_more(const gf_file_batch *batch) {
    return !batch->stop &&
           (gf_batch_is_shared(batch) ? !batch->exhausted : batch->begun < batch->count);
}

bool gf_batch_may_begin(const gf_file_batch *batch) {
    return items_has_more(batch) && !batch->taking &&
           (!batch->window || batch->begun < batch->reported + batch->ahead);
}

bool gf_batch_finished(const gf_file_batch *batch) {
    return batch->error.status ||
           (!items_has_more(batch) && !batch->taking && batch->begun == batch->reported);
}

/* Called with the lock held. */
static void items_end(gf_file_batch *batch, const gf_error *error) {
    if (!batch->error.status)
        batch->error = *error;
    batch->stop = true;
    pthread_cond_broadcast(&batch->changed);
}

void gf_batch_abort(gf_file_batch *batch, const gf_error *error) {
    pthread_mutex_lock(&batch->lock);
    items_end(batch, error);
    pthread_mutex_unlock(&batch->lock);
}

/* Take an item of a shared list. Do not start it if the batch was stopped. */
static bool items_take(gf_file_batch *batch, uint64_t *item) {
    gf_take took;
    batch->taking = true;
    do {
        pthread_mutex_unlock(&batch->lock);
        took = batch->source.take(batch->source.context, item);
        pthread_mutex_lock(&batch->lock);
    } while (took == GF_TAKE_LATER && !batch->stop);
    batch->taking = false;
    batch->exhausted = took == GF_TAKE_NONE;
    if (took == GF_TAKEN && *item >= batch->count) {
        gf_error error;
        (void)gf_fail(&error, GF_USAGE,
                      "%s: item %" PRIu64 " is out of range; the batch has %" PRIu64,
                      batch->chain.filter->info.name, *item, batch->count);
        items_end(batch, &error);
    }
    pthread_cond_broadcast(&batch->changed);
    return took == GF_TAKEN && !batch->stop;
}

bool gf_batch_begin(gf_file_batch *batch, uint64_t *item) {
    *item = batch->begun;
    const bool begun = !gf_batch_is_shared(batch) || items_take(batch, item);
    batch->begun += begun;
    return begun;
}

/* ---- reporting ------------------------------------------------------------------------------- */

void gf_batch_note_device_failure(gf_file_batch *batch, const gf_engine *engine) {
    pthread_mutex_lock(&batch->reporting);
    if (!batch->device_failed)
        gf_engine_format_reason(batch->reason, sizeof batch->reason, &engine->cuda_error);
    batch->device_failed = true;
    pthread_mutex_unlock(&batch->reporting);
}

static void items_report_one(gf_file_batch *batch, uint64_t item, gf_batch_outcome *outcome) {
    const gf_status status = outcome->status;
    const gf_batch_options *options = &batch->options;
    if (status)
        gf_made_free_results(&outcome->made);
    const gf_outcome made = gf_made_outcome(&outcome->made);
    const gf_batch_done done = {
        .item = item, .status = status, .error = status ? &outcome->error : NULL, .outcome = &made};
    const bool proceed = !options->done || options->done(options->context, &done);
    gf_made_free_results(&outcome->made);
    pthread_mutex_lock(&batch->lock);
    batch->reported++;
    batch->stop = batch->stop || !proceed;
    pthread_cond_broadcast(&batch->changed);
    pthread_mutex_unlock(&batch->lock);
}

void gf_batch_report(gf_file_batch *batch, uint64_t item, gf_batch_outcome *outcome) {
    gf_report *report = &outcome->made.report;
    if (outcome->status && batch->options.fail_fast) {
        pthread_mutex_lock(&batch->lock);
        batch->stop = true;
        pthread_mutex_unlock(&batch->lock);
    }
    pthread_mutex_lock(&batch->reporting);
    if (!report->reason[0] || (batch->device_failed && !report->device_failed))
        memcpy(report->reason, batch->reason, sizeof report->reason);
    report->device_failed = report->device_failed || batch->device_failed;
    if (!batch->window) {
        items_report_one(batch, item, outcome);
    } else {
        gf_batch_outcome *next = &batch->window[item % batch->ahead];
        *next = *outcome;
        next->pending = true;
        while ((next = &batch->window[batch->reported % batch->ahead])->pending) {
            next->pending = false;
            items_report_one(batch, batch->reported, next);
        }
    }
    memset(outcome->made.results, 0, sizeof outcome->made.results);
    pthread_mutex_unlock(&batch->reporting);
}

/* ---- one item -------------------------------------------------------------------------------- */

gf_chain gf_batch_chain(const gf_file_batch *batch, uint64_t item) {
    const gf_batch_item *files = &batch->items[item];
    gf_chain chain = batch->chain;
    chain.item = item;
    chain.in_paths[0] = files->in;
    chain.out_path = chain.output && files->out ? files->out[0] : NULL;
    chain.options.force = chain.options.force || files->replace;
    return chain;
}

gf_status gf_batch_open_image(const gf_file_batch *batch, uint64_t item, gf_chain *chain,
                              gf_task *task, gf_error *error) {
    *chain = gf_batch_chain(batch, item);
    *task = (gf_task){.chain = chain, .threads = batch->threads_per_file};
    return gf_task_open_files(task, error);
}

bool gf_batch_device_failed(const gf_engine *engine) {
    return engine->cuda_failed && !engine->may_fall_back;
}

bool gf_batch_run_item(gf_file_batch *batch, gf_engine *engine, uint64_t item, bool again) {
    const gf_chain chain = gf_batch_chain(batch, item);
    gf_batch_outcome outcome = {0};
    const gf_report *report = &outcome.made.report;
    outcome.status = gf_run_files(engine, &chain, &outcome.made, &outcome.error);
    const bool device_failed = outcome.status == GF_NO_BACKEND && gf_batch_device_failed(engine);
    /* a backend was chosen, but received no strip */
    const bool not_begun =
        outcome.status && engine->may_defer && report->backend[0] && report->strips == 0;
    if (again && (device_failed || not_begun))
        return false;
    gf_batch_report(batch, item, &outcome);
    return true;
}
