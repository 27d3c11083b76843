/* A batch of files: validation, threads, and the options of an item. */
#include "engine/batch/files.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/filter.h"
#include "engine/batch/schedule.h"

#define OTHER_FILES 32u /* files that a process has open in addition to those of a batch */

bool gf_batch_is_auto(const gf_file_batch *batch) {
    const char *name = batch->options.engine.backend;
    return !name || strcmp(name, "auto") == 0;
}

uint64_t gf_batch_expected(const gf_file_batch *batch) {
    const uint64_t expected = batch->source.take ? batch->source.expected : 0;
    return expected && expected < batch->count ? expected : batch->count;
}

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

gf_status gf_batch_check(const gf_file_batch *batch, gf_error *error) {
    const gf_filter_info *info = &batch->chain.filter->info;
    if (info->inputs != 1)
        return gf_fail(error, GF_USAGE,
                       "%s: needs %u inputs, and a batch has one per item; run them one by one",
                       info->name, info->inputs);
    gf_status status = gf_check_options(&batch->options.engine, &batch->chain.options, error);
    if (!status)
        status = files_check_parameters(batch, error);
    if (!status && batch->source.take && batch->options.in_order)
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

uint32_t gf_batch_engines(const gf_file_batch *batch, uint32_t devices) {
    const uint32_t max = batch->threads / devices;
    return max < 1 ? 1 : max > GF_BATCH_MAX_ENGINES ? GF_BATCH_MAX_ENGINES : max;
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
