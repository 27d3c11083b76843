/* Batches of files: validation, choice of devices, and execution on CPU threads. */
#include "engine/batch/batch.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/error.h"
#include "core/filter.h"
#include "core/thread.h"
#include "io/file/output.h"

#define OTHER_FILES 32u /* files that a process has open in addition to those of a batch */
#define MIN_AHEAD 64u   /* minimum number of items in progress beyond an unreported one */

/* ---- validation ------------------------------------------------------------------------------ */

/* Reject settings that are invalid for every image format, with the first error. */
static gf_status files_check_settings(const gf_file_batch *batch, gf_error *error) {
    gf_error first = {0};
    gf_status status = GF_OK;
    for (uint32_t channels = 1; channels <= 4; channels++)
        for (gf_type type = GF_U8; type <= GF_F32; type++) {
            const gf_format format = {64, 64, channels, type, channels % 2 == 0};
            gf_plan *plan = NULL;
            const gf_status rejected =
                gf_chain_plan(&batch->chain, &format, &plan, status ? NULL : &first);
            gf_plan_free(plan);
            if (!rejected)
                return GF_OK;
            status = status ? status : rejected;
        }
    if (error)
        *error = first;
    return status;
}

static gf_status files_check_parameters(const gf_file_batch *batch, gf_error *error) {
    const gf_filter_info *info = &batch->chain.filter->info;
    for (size_t i = 0; i < info->param_count; i++) {
        const gf_param *param = &info->params[i];
        if ((param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES) &&
            gf_settings_text(batch->chain.settings, param->name))
            return gf_fail(error, GF_USAGE,
                           "--%s: names one file, and there may be many inputs; run them one by "
                           "one",
                           param->name);
    }
    return GF_OK;
}

static gf_status files_check_items(const gf_file_batch *batch, gf_error *error) {
    const gf_filter_info *info = &batch->chain.filter->info;
    gf_status status = GF_OK;
    if (!batch->items && batch->count)
        return gf_fail(error, GF_USAGE, "%s: the list of items is NULL", info->name);
    for (uint64_t i = 0; i < batch->count && !status; i++) {
        const gf_chain chain = gf_batch_chain(batch, i);
        status = gf_chain_check_paths(&chain, error);
        if (!status && !info->makes_image && batch->items[i].out)
            status = gf_fail(error, GF_USAGE, "%s: produces no image; remove the output path %s",
                             info->name, batch->items[i].out[0]);
    }
    return status;
}

/* Reject a filter of two inputs, and settings that conflict for every image. */
static gf_status files_check(const gf_file_batch *batch, gf_error *error) {
    const gf_filter_info *info = &batch->chain.filter->info;
    if (info->inputs != 1)
        return gf_fail(error, GF_USAGE,
                       "%s: needs %u inputs, and a batch has one per item; run them one by one",
                       info->name, info->inputs);
    gf_status status = gf_check_options(&batch->options.engine, &batch->chain.options, error);
    if (!status)
        status = files_check_parameters(batch, error);
    if (!status && gf_batch_is_shared(batch) && batch->options.in_order)
        status =
            gf_fail(error, GF_USAGE, "%s: a shared batch cannot report items in order", info->name);
    if (!status && batch->chain.options.dry_run)
        status = gf_fail(error, GF_USAGE,
                         "%s: a batch does not support dry runs; check each file separately",
                         info->name);
    if (!status)
        status = files_check_items(batch, error);
    return status ? status : files_check_settings(batch, error);
}

/* ---- threads --------------------------------------------------------------------------------- */

void gf_batch_share_threads(gf_file_batch *batch, uint32_t threads, uint64_t open_files) {
    const uint64_t count = gf_batch_expected(batch);
    const uint64_t max = open_files > OTHER_FILES + 2 ? (open_files - OTHER_FILES) / 2 : 1;
    batch->threads = threads < GF_BATCH_MAX_THREADS ? threads : GF_BATCH_MAX_THREADS;
    batch->at_once = count < batch->threads ? (uint32_t)count : batch->threads;
    batch->at_once = batch->at_once < max ? batch->at_once : (uint32_t)max;
    batch->threads_per_file =
        batch->at_once ? (batch->threads + batch->at_once - 1) / batch->at_once : 1;
}

static void files_plan_threads(gf_file_batch *batch) {
    const gf_engine_options *engine = &batch->options.engine;
    const uint32_t threads = engine->threads ? engine->threads : gf_cores();
    struct rlimit limit;
    const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    gf_batch_share_threads(batch, engine->unthreaded ? 1 : threads,
                           known ? (uint64_t)limit.rlim_cur : UINT64_MAX);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* List the devices of this process: from a list, "all", or the backend's choice (NULL). */
static gf_status files_list_devices(const char *list, gf_batch_devices *devices, gf_error *error) {
    gf_device_list own;
    size_t present = INT_MAX; /* numbers out of range are rejected when the engine is opened */
    gf_status status = GF_OK;
    devices->count = list ? 0 : 1;
    if (!list)
        return GF_OK;
    if (strcmp(list, "all") == 0)
        status = gf_devices(NULL, 0, &present, error);
    if (!status)
        status = gf_device_list_read(list, (int)present, &own, error);
    for (int i = 0; !status && i < own.count; i++)
        snprintf(devices->names[devices->count++], sizeof devices->names[0], "%d", own.list[i]);
    return status;
}

/* ---- auto ------------------------------------------------------------------------------------ */

#define TRIES 16u /* images to try before giving up */

/* Return the cost of reading an item and writing its output; 0 for writing an unknown format. */
static gf_codec_costs files_codec_costs(const gf_file_batch *batch, const gf_source *source,
                                        const char *out) {
    const gf_file_options *options = &batch->chain.options;
    gf_codec_costs codec = {0};
    if (out)
        codec = gf_encoding_costs(out, options, batch->threads_per_file);
    codec.decode = source->cost;
    codec.decode_threads = source->threads;
    return codec;
}

gf_forecast gf_batch_expect(const gf_file_batch *batch, const gf_plan *plan,
                            const gf_codec_costs *codec) {
    const bool in_memory = gf_batch_image_bytes(&plan->in, &plan->out) <= GF_BATCH_SMALL;
    const uint32_t engines = gf_batch_engines(batch, 1);
    const gf_auto_machine machine = {
        .threads = batch->threads,
        .devices = 1,
        .images = gf_batch_expected(batch),
        .files = batch->at_once,
        .device_files = in_memory || batch->at_once < engines ? batch->at_once : engines,
        .in_memory = in_memory};
    gf_forecast forecast;
    gf_auto_expect(plan, codec, &machine, &forecast);
    gf_auto_scale(&forecast, gf_batch_expected(batch));
    return forecast;
}

/* Return whether CPU threads and a device should share the batch, assuming that all items resemble
 * this one. *forecast: without sharing. */
static bool files_wants_both(gf_file_batch *batch, const gf_task *task, gf_forecast *forecast) {
    const gf_format *in = &task->plan->in;
    const gf_buffer none = {NULL, 0};
    gf_byte_buffer buffer = {0};
    gf_png_scan scan;
    const bool png =
        gf_batch_png_is_candidate(batch, task) && gf_batch_png_read(task, &none, &buffer, &scan);
    const bool shared =
        png && gf_auto_expect_shared(gf_batch_expected(batch),
                                     (double)(gf_row_bytes(in) + 1) * (double)in->height,
                                     gf_png_scan_parts(&scan), forecast);
    const bool forced = png && gf_device_decodes_always();
    batch->parts = png ? gf_png_scan_parts(&scan) : 1;
    free(buffer.data);
    forecast->cuda = forecast->cuda || forced;
    return shared || forced;
}

/* Decide by the first image that can be opened, and opened again. Set batch->with_cpu. */
static bool files_wants_cuda(gf_file_batch *batch) {
    for (uint64_t i = 0; i < batch->count && i < TRIES; i++) {
        const gf_batch_item *item = &batch->items[i];
        gf_chain chain;
        gf_task task;
        if (!gf_stat_file(item->in).st_mode)
            continue;
        gf_forecast forecast = {.cuda = false};
        const gf_status status = gf_batch_open_image(batch, i, &chain, &task, NULL);
        if (!status) {
            const gf_codec_costs codec =
                files_codec_costs(batch, task.inputs.sources[0], chain.out_path);
            forecast = gf_batch_expect(batch, task.plan, &codec);
            batch->with_cpu = files_wants_both(batch, &task, &forecast);
            snprintf(batch->reason, sizeof batch->reason, "%s", forecast.reason);
        }
        gf_task_end(&task);
        if (!status)
            return forecast.cuda;
    }
    return false;
}

/* Choose the devices that run the batch; none: CPU threads. Set the backend of
 * batch->options.engine, and the reason of auto. */
static gf_status files_choose(gf_file_batch *batch, gf_batch_devices *devices, gf_error *error) {
    gf_engine_options *engine = &batch->options.engine;
    if (gf_batch_is_auto(batch)) {
        if (engine->devices)
            engine->backend = "cuda";
        else if (!gf_has_cuda() || !files_wants_cuda(batch))
            engine->backend = "cpu";
    }
    /* If auto expects CUDA to be faster, the backend stays "auto" to allow a fallback. */
    if (!gf_batch_is_auto(batch) && strcmp(engine->backend, "cuda") != 0)
        return GF_OK;
    return files_list_devices(engine->devices, devices, error);
}

/* ---- CPU threads ----------------------------------------------------------------------------- */

typedef struct files_workers {
    gf_file_batch *batch;
    gf_engine *engines[GF_BATCH_MAX_THREADS]; /* one engine per worker */
} files_workers;

/* Run items one after the other. Wait while the window of unreported items is full. */
static void files_work(void *context, uint32_t worker, uint32_t thread) {
    const files_workers *workers = context;
    gf_file_batch *batch = workers->batch;
    uint64_t item;
    (void)thread;
    pthread_mutex_lock(&batch->lock);
    while (!gf_batch_finished(batch)) {
        if (!gf_batch_may_begin(batch)) {
            pthread_cond_wait(&batch->changed, &batch->lock);
        } else if (gf_batch_begin(batch, &item)) {
            pthread_mutex_unlock(&batch->lock);
            gf_batch_run_item(batch, workers->engines[worker], item, false);
            pthread_mutex_lock(&batch->lock);
        }
    }
    pthread_mutex_unlock(&batch->lock);
}

/* Run all items on threads, each with its own engine. Fewer threads are used if some cannot be
 * started. Return an error if an engine cannot be opened: no item was started then. */
static gf_status files_run_on_threads(gf_file_batch *batch, gf_error *error) {
    const uint32_t count = batch->at_once;
    files_workers workers = {.batch = batch};
    gf_work work = {.run = files_work, .context = &workers, .count = count};
    gf_engine_options options = batch->options.engine;
    options.threads = batch->threads_per_file;
    options.unthreaded = batch->threads_per_file == 1;
    gf_pool *pool = NULL;
    gf_status status = gf_pool_open(count, &pool, error);
    for (uint32_t i = 0; i < count && !status; i++)
        status = gf_engine_open(&options, &workers.engines[i], error);
    if (!status)
        gf_pool_run(pool, &work);
    for (uint32_t i = 0; i < count; i++)
        gf_engine_close(workers.engines[i]);
    gf_pool_close(pool);
    return status;
}

/* ---- the whole batch ------------------------------------------------------------------------- */

/* Run the items of a valid batch. Return why some could not be run. */
static gf_status files_run(gf_file_batch *batch, const gf_batch_devices *devices, gf_error *error) {
    gf_status status = GF_OK;
    if (batch->options.in_order) {
        const uint64_t ahead = 4 * (uint64_t)batch->threads;
        batch->ahead = ahead < MIN_AHEAD ? MIN_AHEAD : ahead;
        batch->window = calloc((size_t)batch->ahead, sizeof *batch->window);
        if (!batch->window)
            return gf_fail_memory(error, batch->chain.filter->info.name,
                                  batch->ahead * sizeof *batch->window, "results in order");
    }
    pthread_mutex_init(&batch->lock, NULL);
    pthread_mutex_init(&batch->reporting, NULL);
    pthread_cond_init(&batch->changed, NULL);
    if (devices->count)
        gf_batch_run_on_devices(batch, devices);
    else
        status = files_run_on_threads(batch, error);
    pthread_cond_destroy(&batch->changed);
    pthread_mutex_destroy(&batch->reporting);
    pthread_mutex_destroy(&batch->lock);
    for (uint64_t i = 0; i < batch->ahead; i++)
        if (batch->window[i].pending) /* not reported */
            gf_made_free_results(&batch->window[i].made);
    free(batch->window);
    if (status || !batch->error.status)
        return status;
    /* Items without a device are not processed. A shared batch cannot count them. */
    if (batch->device_failed && !gf_batch_is_shared(batch))
        return gf_fail(error, batch->error.status,
                       "%.400s; %" PRIu64 " of %" PRIu64
                       " files were not processed, and no device is left",
                       batch->error.message, batch->count - batch->reported, batch->count);
    if (error)
        *error = batch->error;
    return batch->error.status;
}

gf_status gf_run_batch_on(const gf_batch_devices *devices, const gf_job *job,
                          const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error) {
    gf_file_batch batch = {.items = items, .count = count};
    gf_batch_devices chosen = {0};
    if (options)
        batch.options = *options;
    if (batch.options.source)
        batch.source = *batch.options.source;
    gf_status status = gf_chain_open(job, &batch.chain, error);
    if (!status)
        status = files_check(&batch, error);
    if (!status && count) {
        files_plan_threads(&batch);
        if (!devices) {
            status = files_choose(&batch, &chosen, error);
            devices = &chosen;
        }
        if (!status)
            status = files_run(&batch, devices, error);
    }
    gf_chain_close(&batch.chain);
    return status;
}

gf_status gf_run_batch(const gf_job *job, const gf_batch_item *items, uint64_t count,
                       const gf_batch_options *options, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    return gf_run_batch_on(NULL, job, items, count, options, error);
}
