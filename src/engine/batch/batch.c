/* Batches of files: validation, threads, the choice of devices, and the public calls. */
#include "engine/batch/batch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/error.h"

#define OTHER_FILES 32u /* files that a process has open in addition to those of a batch */

/* Reject parameters that name files. */
static gf_status files_check_step(const gf_chain *chain, uint32_t step, gf_error *error) {
    const gf_filter *filter = chain->step[step].filter;
    for (size_t i = 0; filter && i < filter->info.param_count; i++) {
        const gf_param *param = &filter->info.params[i];
        if ((param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES) &&
            gf_settings_text(chain->step[step].settings, param->name))
            return gf_fail(
                error, GF_USAGE,
                "--%s: names one file, and there may be many inputs; run them one by one",
                param->name);
    }
    const gf_file_options own = {.write = chain->step[step].write};
    return gf_chain_fail_step(chain, step, gf_check_options(NULL, &own, error), error);
}

/* Reject what conflicts for every image. */
static gf_status files_check(const gf_file_batch *batch, gf_error *error) {
    const char *name = gf_chain_name(&batch->chain);
    if (batch->chain.inputs != 1)
        return gf_fail(error, GF_USAGE,
                       "%s: needs %u inputs, and a batch has one per item; run them one by one",
                       name, batch->chain.inputs);
    gf_status status = gf_check_options(&batch->options.engine, &batch->chain.options, error);
    for (uint32_t i = 0; i < batch->chain.steps && !status; i++)
        status = files_check_step(&batch->chain, i, error);
    if (!status && batch->source.take && batch->options.in_order)
        status = gf_fail(error, GF_USAGE, "%s: a shared batch cannot report items in order", name);
    if (!status && batch->chain.options.dry_run)
        status = gf_fail(error, GF_USAGE,
                         "%s: a batch does not support dry runs; check each file separately", name);
    if (!status && !batch->items && batch->count)
        status = gf_fail(error, GF_USAGE, "%s: the list of items is NULL", name);
    for (uint64_t i = 0; i < batch->count && !status; i++) {
        const gf_chain chain = gf_batch_chain(batch, i);
        const char *const *out = batch->items[i].out;
        status = gf_chain_check_paths(&chain, error);
        if (!status && chain.steps == chain.filters && out && out[0])
            status = gf_fail(error, GF_USAGE, "%s: produces no image; remove the output path %s",
                             name, out[0]);
    }
    if (status)
        return status;
    /* Reject settings that are invalid for every image format, with the first error. */
    gf_error first = {0};
    for (uint32_t channels = 1; channels <= GF_MAX_CHANNELS; channels++)
        for (gf_type type = GF_U8; type <= GF_F32; type++) {
            const gf_format format = {64, 64, channels, type, channels % 2 == 0};
            gf_graph *graph;
            const gf_status invalid =
                gf_graph_new(&batch->chain, &format, &graph, first.status ? NULL : &first);
            gf_graph_free(graph);
            if (!invalid)
                return GF_OK;
        }
    return gf_return_error(&first, error);
}

void gf_batch_share_threads(gf_file_batch *batch, uint32_t threads, uint64_t open_files) {
    const uint64_t files = open_files > OTHER_FILES + 2 ? (open_files - OTHER_FILES) / 2 : 1;
    batch->threads = (uint32_t)gf_min(threads, GF_MAX_THREADS);
    batch->at_once = (uint32_t)gf_min(gf_min(gf_batch_expected(batch), batch->threads), files);
    batch->threads_per_file =
        batch->at_once ? (batch->threads + batch->at_once - 1) / batch->at_once : 1;
}

#define TRIES 16u /* images to try before giving up */

gf_forecast gf_batch_expect(const gf_file_batch *batch, const gf_nodes *nodes,
                            const gf_codec_costs *codec) {
    const uint64_t device_files = gf_min(batch->at_once, gf_batch_engines(batch, 1));
    const gf_workload work = {nodes, *codec, 0, gf_batch_expected(batch)};
    const gf_auto_machine machine = {.threads = batch->threads,
                                     .devices = 1,
                                     .files = batch->at_once,
                                     .device_files = (uint32_t)device_files};
    gf_forecast forecast = gf_auto_expect(&work, &machine);
    gf_auto_scale(&forecast, work.images);
    return forecast;
}

/* Return whether CPU threads and a device should share the batch, assuming that all items resemble
 * this one. *forecast: without sharing. */
static bool files_wants_both(gf_file_batch *batch, const gf_task *task, gf_forecast *forecast) {
    const gf_format *in = &task->inputs.format;
    const gf_buffer none = {NULL, 0};
    gf_buffer buffer = {NULL, 0};
    gf_png_scan scan;
    const bool png =
        gf_batch_png_is_candidate(batch, task) && gf_batch_png_read(task, &none, &buffer, &scan);
    const bool shared =
        png && gf_auto_expect_shared(gf_batch_expected(batch),
                                     (double)(gf_row_bytes(in) + 1) * (double)in->height,
                                     gf_png_scan_parts(&scan), forecast);
    const bool forced = png && gf_device_decodes_always;
    batch->parts = png ? gf_png_scan_parts(&scan) : 1;
    free(buffer.data);
    forecast->cuda = forecast->cuda || forced;
    return shared || forced;
}

/* Decide by the first image that can be opened, and opened again. Set batch->with_cpu. */
static bool files_wants_cuda(gf_file_batch *batch) {
    for (uint64_t i = 0; i < batch->count && i < TRIES; i++) {
        gf_chain chain;
        gf_task task;
        gf_forecast forecast = {.cuda = false};
        if (!gf_stat_file(batch->items[i].in).st_mode)
            continue;
        const gf_status status = gf_batch_open_image(batch, i, &chain, &task, NULL);
        if (!status) {
            gf_codec_costs codec = {0}; /* 0 for writing an unknown format */
            for (uint32_t w = 0; w < task.graph->writers; w++) {
                const gf_writer *writer = &task.graph->writer[w];
                const char *path = chain.step[writer->step].out_path;
                const gf_codec_costs one =
                    gf_encoding_costs(path, &batch->chain.options, batch->threads_per_file);
                codec.encode += one.encode * gf_image_samples(&writer->stored) /
                                gf_image_samples(&task.inputs.format);
                codec.encode_threads = (uint32_t)gf_max(codec.encode_threads, one.encode_threads);
            }
            codec.decode = task.inputs.sources[0]->cost;
            codec.decode_threads = task.inputs.sources[0]->threads;
            forecast = gf_batch_expect(batch, &task.graph->nodes, &codec);
            batch->with_cpu = files_wants_both(batch, &task, &forecast);
            memcpy(batch->reason, forecast.reason, sizeof batch->reason);
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
    const char *list = engine->devices;
    gf_device_list own = {.count = 0};
    size_t present = INT_MAX; /* numbers out of range are rejected when the engine is opened */
    gf_status status = GF_OK;
    if (gf_batch_is_auto(batch)) {
        if (list)
            engine->backend = "cuda";
        else if (!gf_has_cuda() || !files_wants_cuda(batch))
            engine->backend = "cpu";
    }
    /* If auto expects CUDA to be faster, the backend stays "auto" to allow a fallback. */
    if (!gf_batch_is_auto(batch) && strcmp(engine->backend, "cuda") != 0)
        return GF_OK;
    devices->count = list ? 0 : 1; /* without a list, the backend chooses one */
    if (list && strcmp(list, "all") == 0)
        status = gf_devices(NULL, 0, &present, error);
    if (list && !status)
        status = gf_device_list_read(list, (int)present, &own, error);
    for (int i = 0; !status && i < own.count; i++)
        snprintf(devices->names[devices->count++], sizeof devices->names[0], "%d", own.list[i]);
    return status;
}

gf_status gf_run_batch_on(const gf_batch_devices *devices, const gf_job *job,
                          const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error) {
    gf_file_batch batch = {.items = items, .count = count};
    const gf_engine_options *engine = &batch.options.engine;
    gf_batch_devices chosen = {0};
    struct rlimit limit;
    if (options)
        batch.options = *options;
    if (batch.options.source)
        batch.source = *batch.options.source;
    gf_status status = gf_chain_open(job, &batch.chain, error);
    if (!status && !(status = files_check(&batch, error)) && count) {
        const uint32_t threads = engine->threads ? engine->threads : gf_cores();
        const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
        gf_batch_share_threads(&batch, engine->unthreaded ? 1 : threads,
                               known ? (uint64_t)limit.rlim_cur : UINT64_MAX);
        if (devices || !(status = files_choose(&batch, &chosen, error)))
            status = gf_batch_run(&batch, devices ? devices : &chosen, error);
    }
    gf_chain_close(&batch.chain);
    return status;
}

gf_status gf_run_batch(const gf_job *job, const gf_batch_item *items, uint64_t count,
                       const gf_batch_options *options, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    return gf_run_batch_on(NULL, job, items, count, options, error);
}
