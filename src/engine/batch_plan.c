#include "engine/batch_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/engine.h"
#include "engine/task.h"
#include "error.h"
#include "io/costs.h"
#include "io/path.h"
#include "plan.h"
#include "pool.h"

#define MAX_THREADS 1024u
#define OTHER_FILES 32u /* that a process has open beside those of a batch */
#define MAX_ENGINES 4u  /* of a device: reading, computing and writing are three */

/* ---- checks ---------------------------------------------------------------------------------- */

/* Settings that no image suits: the first reason is as good as any. */
static gf_status check_settings(const gf_files *files, gf_error *error) {
    static const gf_type types[] = {GF_U8, GF_U16, GF_F32};
    gf_error first = {0};
    gf_status status = GF_OK;
    for (uint32_t channels = 1; channels <= 4; channels++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            const gf_format format = {64, 64, channels, types[t]};
            gf_format out;
            gf_error one = {0};
            const gf_status refused =
                gf_filter_output(files->filter, files->settings, &format, &out, &one);
            if (!refused)
                return GF_OK;
            if (!status) {
                status = refused;
                first = one;
            }
        }
    if (error)
        *error = first;
    return status;
}

static gf_status check_parameters(const gf_files *files, gf_error *error) {
    const gf_filter_info *info = &files->filter->info;
    for (size_t i = 0; i < info->param_count; i++) {
        const gf_param *param = &info->params[i];
        if ((param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES) &&
            gf_settings_text(files->settings, param->name))
            return gf_fail(error, GF_USAGE,
                           "--%s: names one file, and there may be many images; run them one by "
                           "one",
                           param->name);
    }
    return GF_OK;
}

static gf_status check_items(const gf_files *files, gf_error *error) {
    const gf_filter_info *info = &files->filter->info;
    if (!files->items && files->count)
        return gf_fail(error, GF_USAGE, "%s: it reads files, and they are NULL", info->name);
    for (uint64_t i = 0; i < files->count; i++) {
        const gf_batch_item *item = &files->items[i];
        if (!item->in || (info->makes_image && !item->out))
            return gf_fail(error, GF_USAGE, "%s: the name of a file is NULL", info->name);
        if (!info->makes_image && item->out)
            return gf_fail(error, GF_USAGE, "%s: it makes no image, so nothing goes to %s",
                           info->name, item->out);
    }
    return GF_OK;
}

void gf_files_share(gf_files *files, uint32_t threads, uint64_t open_files) {
    const uint64_t most =
        open_files > OTHER_FILES + 2 ? (open_files - OTHER_FILES) / 2 : UINT64_C(1);
    files->threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    const uint64_t count = gf_files_expected(files);
    files->at_once = count < files->threads ? (uint32_t)count : files->threads;
    files->at_once = files->at_once < most ? files->at_once : (uint32_t)most;
    files->each = files->at_once ? (files->threads + files->at_once - 1) / files->at_once : 1;
}

uint64_t gf_files_bytes(const gf_format *in, const gf_format *out) {
    return in->height * gf_row_bytes(in) + out->height * gf_row_bytes(out);
}

uint32_t gf_files_engines(const gf_files *files, uint32_t devices) {
    const uint32_t most = files->threads / devices;
    return most < 1 ? 1 : most > MAX_ENGINES ? MAX_ENGINES : most;
}

static uint64_t most_open_files(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

gf_status gf_files_check(gf_files *files, gf_error *error) {
    gf_status status = gf_check_use(files->filter, files->settings, error);
    if (status)
        return status;
    if (files->filter->info.inputs != 1)
        return gf_fail(error, GF_USAGE, "%s: it reads %u images at a time; run them one by one",
                       files->filter->info.name, files->filter->info.inputs);
    status = check_parameters(files, error);
    if (!status && files->options.take && files->options.in_order)
        status = gf_fail(error, GF_USAGE, "%s: items that are taken have no order to be told in",
                         files->filter->info.name);
    if (!status && files->options.files.dry_run)
        status = gf_fail(error, GF_USAGE, "%s: a batch makes no dry run; open each file by itself",
                         files->filter->info.name);
    if (!status)
        status = check_items(files, error);
    if (!status)
        status = check_settings(files, error);
    const gf_engine_options *engine = &files->options.engine;
    const uint32_t threads = engine->unthreaded ? 1
                             : engine->threads  ? engine->threads
                                                : gf_cpu_count();
    gf_files_share(files, threads, most_open_files());
    return status;
}

/* ---- devices --------------------------------------------------------------------------------- */

static gf_status add_device(gf_files_devices *devices, unsigned long n, const char *list,
                            gf_error *error) {
    char name[sizeof devices->names[0]];
    snprintf(name, sizeof name, "%lu", n);
    for (uint32_t i = 0; i < devices->count; i++)
        if (strcmp(devices->names[i], name) == 0)
            return gf_fail(error, GF_USAGE, "--device '%s': names device %lu twice", list, n);
    memcpy(devices->names[devices->count++], name, sizeof name);
    return GF_OK;
}

static gf_status all_devices(gf_files_devices *devices, gf_error *error) {
    size_t count;
    gf_status status = gf_devices(NULL, 0, &count, error);
    for (size_t i = 0; i < count && i < GF_FILES_MAX_DEVICES && !status; i++)
        status = add_device(devices, i, "all", error);
    return status;
}

/* "0,2" as an engine each. */
static gf_status split_devices(const char *list, gf_files_devices *devices, gf_error *error) {
    if (!list) {
        devices->count = 1;
        return GF_OK;
    }
    if (strcmp(list, "all") == 0)
        return all_devices(devices, error);
    gf_status status = GF_OK;
    for (const char *p = list; !status; p++) {
        char *end;
        const unsigned long n = strtoul(p, &end, 10);
        if (*p < '0' || *p > '9' || (*end && *end != ',') || n > 99999 ||
            devices->count == GF_FILES_MAX_DEVICES)
            return gf_fail(error, GF_USAGE,
                           "--device '%s': must be device numbers such as 0 or 0,2, or all", list);
        status = add_device(devices, n, list, error);
        p = end;
        if (!*p)
            break;
    }
    return status;
}

static void keep_own(const gf_engine_options *engine, gf_files_devices *devices) {
    uint32_t own = 0;
    for (uint32_t i = 0; i < devices->count; i++)
        if (gf_turn_has(engine, i, devices->count))
            memmove(devices->names[own++], devices->names[i], sizeof devices->names[i]);
    devices->count = own;
}

/* ---- auto ------------------------------------------------------------------------------------ */

#define TRIES 16u /* at finding an image to judge the batch by */

/* What reading it and writing its output take. */
static gf_codec_costs codec_of(const gf_files *files, const gf_task *task,
                               const gf_batch_item *item) {
    const gf_file_options *options = &files->options.files;
    gf_codec_costs codec = {0};
    if (item->out) {
        const char *format = options->format ? options->format : gf_path_ending(item->out);
        if (!gf_format_costs(format, options->compression, files->each, &codec))
            codec = (gf_codec_costs){0};
    }
    codec.decode = task->source->cost;
    codec.decode_threads = task->source->threads;
    return codec;
}

gf_forecast gf_files_expect(const gf_files *files, const gf_plan *plan,
                            const gf_codec_costs *codec) {
    const bool held = gf_files_bytes(&plan->in, &plan->out) <= GF_FILES_SMALL;
    const uint32_t engines = gf_files_engines(files, 1);
    const gf_auto_machine machine = {
        .threads = files->threads,
        .devices = 1,
        .images = gf_files_expected(files),
        .files = files->at_once,
        .device_files = held || files->at_once < engines ? files->at_once : engines,
        .held = held};
    gf_forecast forecast;
    gf_auto_expect(plan, codec, &machine, &forecast);
    gf_auto_times(&forecast, gf_files_expected(files));
    return forecast;
}

/* By the first image that can be opened and may be opened again. */
static bool wants_cuda(gf_files *files) {
    for (uint64_t i = 0; i < files->count && i < TRIES; i++) {
        const gf_batch_item *item = &files->items[i];
        if (!gf_see(item->in).regular)
            continue;
        gf_task task = {.filter = files->filter, .threads = files->each, .name = item->in};
        gf_forecast forecast;
        const gf_status status =
            gf_task_open_inputs(&task, files->settings, &item->in, &files->options.files, NULL);
        if (!status) {
            const gf_codec_costs codec = codec_of(files, &task, item);
            forecast = gf_files_expect(files, task.plan, &codec);
            snprintf(files->reason, sizeof files->reason, "%s", forecast.reason);
        }
        gf_task_end(&task);
        if (!status)
            return forecast.cuda;
    }
    return false;
}

gf_status gf_files_choose(gf_files *files, gf_files_devices *devices, gf_error *error) {
    gf_engine_options *engine = &files->options.engine;
    const bool any = !engine->backend || strcmp(engine->backend, "auto") == 0;
    if (any && engine->devices)
        engine->backend = "cuda";
    else if (any && !(gf_has_cuda() && wants_cuda(files)))
        engine->backend = "cpu";
    /* What auto takes for CUDA's stays auto, and so may fall back. */
    if (engine->backend && strcmp(engine->backend, "auto") != 0 &&
        strcmp(engine->backend, "cuda") != 0)
        return GF_OK;
    const gf_status status = split_devices(engine->devices, devices, error);
    if (!status)
        keep_own(engine, devices);
    return status;
}
