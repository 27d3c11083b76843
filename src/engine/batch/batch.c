/* Batches of files: the choice of devices, and the public calls. */
#include "engine/batch/batch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/error.h"
#include "core/thread.h"
#include "engine/batch/png.h"
#include "engine/batch/workers.h"
#include "io/file/output.h"

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
    const uint32_t engines = gf_batch_engines(batch, 1);
    const gf_auto_machine machine = {.threads = batch->threads,
                                     .devices = 1,
                                     .images = gf_batch_expected(batch),
                                     .files = batch->at_once,
                                     .device_files =
                                         batch->at_once < engines ? batch->at_once : engines};
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

/* ---- the whole batch ------------------------------------------------------------------------- */

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
        status = gf_batch_check(&batch, error);
    if (!status && count) {
        files_plan_threads(&batch);
        if (!devices) {
            status = files_choose(&batch, &chosen, error);
            devices = &chosen;
        }
        if (!status)
            status = gf_batch_run(&batch, devices, error);
    }
    gf_chain_close(&batch.chain);
    return status;
}

gf_status gf_run_batch(const gf_job *job, const gf_batch_item *items, uint64_t count,
                       const gf_batch_options *options, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    return gf_run_batch_on(NULL, job, items, count, options, error);
}
