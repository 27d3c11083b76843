/* gpufilter bench: how fast everything is here. */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

/* ---- who is timed ---------------------------------------------------------------------------- */

static gf_status add_target(gf_bench *bench, const char *name, const gf_engine_options *options,
                            gf_error *error) {
    if (bench->target_count == GF_BENCH_TARGETS)
        return gf_set_error(error, GF_USAGE, "bench: too many devices");
    gf_bench_target *target = &bench->targets[bench->target_count];
    gf_status status = gf_engine_open(options, &target->engine, error);
    if (status)
        return status;
    snprintf(target->name, sizeof target->name, "%s", name);
    bench->target_count++;
    return GF_OK;
}

/* One thread, and all of them. */
static gf_status add_cpu(gf_bench *bench, const gf_engine_options *common, gf_error *error) {
    gf_engine_options options = *common;
    options.backend = "cpu";
    options.threads = 1;
    gf_status status = add_target(bench, "cpu, 1 thread", &options, error);
    const uint32_t threads = common->threads ? common->threads : gf_cores();
    if (status || threads == 1)
        return status;
    char name[48];
    snprintf(name, sizeof name, "cpu, %" PRIu32 " threads", threads);
    options.threads = threads;
    return add_target(bench, name, &options, error);
}

static gf_status add_device(gf_bench *bench, const gf_engine_options *common, const char *device,
                            gf_error *error) {
    gf_engine_options options = *common;
    char name[48];
    options.backend = "cuda";
    options.devices = device;
    snprintf(name, sizeof name, "cuda %.40s", device);
    return add_target(bench, name, &options, error);
}

/* The devices listed, or all that can be used, each for itself. */
static gf_status add_cuda(gf_bench *bench, const gf_engine_options *common, const char *list,
                          gf_error *error) {
    gf_status status = GF_OK;
    if (list && strcmp(list, "all") != 0) {
        for (const char *item = list; !status; item += strcspn(item, ",") + 1) {
            char device[40];
            snprintf(device, sizeof device, "%.*s", (int)strcspn(item, ","), item);
            status = add_device(bench, common, device, error);
            if (!item[strcspn(item, ",")])
                break;
        }
        return status;
    }
    for (size_t i = 0; i < bench->machine.count && !status; i++) {
        const gf_device *device = &bench->machine.devices[i];
        char index[16];
        snprintf(index, sizeof index, "%" PRIu32, device->index);
        if (device->usable)
            status = add_device(bench, common, index, error);
    }
    return status;
}

static gf_status open_targets(gf_bench *bench, const gf_cli_line *line, gf_error *error) {
    const char *backend = gf_settings_text(line->filter, "backend");
    const char *devices = gf_settings_text(line->common, "device");
    const bool cpu = strcmp(backend, "cuda") != 0, cuda = strcmp(backend, "cpu") != 0;
    const gf_engine_options common = {.simd = gf_settings_text(line->common, "simd"),
                                      .threads = (uint32_t)gf_settings_int(line->common, "threads"),
                                      .max_memory = gf_settings_size(line->common, "max-memory")};
    if (devices && !cuda)
        return gf_set_error(error, GF_USAGE, "--device: is for --backend cuda or all");
    gf_status status = gf_machine_look(&bench->machine, error);
    if (!status && bench->machine.none.status && (devices || !cpu)) {
        *error = bench->machine.none;
        status = bench->machine.none.status;
    }
    if (!status && cpu)
        status = add_cpu(bench, &common, error);
    if (!status && cuda)
        status = add_cuda(bench, &common, devices, error);
    if (!status && bench->target_count == 0)
        status = gf_set_error(error, GF_NO_BACKEND,
                              "bench: no CUDA device is usable; 'gpufilter devices' says why");
    gf_engine_options other = common;
    if (!status)
        status = gf_engine_open(&other, &bench->any, error);
    other.backend = "golden";
    return status ? status : gf_engine_open(&other, &bench->golden, error);
}

/* ---- what is timed --------------------------------------------------------------------------- */

/* "hist" or "hist bins=8 extract=3" */
static gf_status add_item(gf_bench *bench, const char *operand, gf_error *error) {
    gf_bench_item *item = &bench->items[bench->item_count];
    char name[32];
    const size_t length = strcspn(operand, " ");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name),
             operand);
    item->filter = gf_filter_find(name);
    item->name = operand;
    if ((int)strlen(operand) > bench->name_width)
        bench->name_width = (int)strlen(operand);
    item->text = operand + length + strspn(operand + length, " ");
    if (!item->filter)
        return gf_set_error(error, GF_USAGE, "bench: '%s': no such filter; see 'gpufilter --help'",
                            operand);
    const gf_filter_info *info = gf_filter_describe(item->filter);
    item->settings = gf_settings_new(info->params, info->param_count);
    bench->item_count++;
    if (!item->settings)
        return gf_set_error(error, GF_FAILED, "bench: out of memory");
    gf_status status = gf_settings_apply_case(item->settings, item->text, error);
    return status ? status
                  : gf_filter_output(item->filter, item->settings, &bench->format, &item->drawn,
                                     error);
}

static gf_status add_items(gf_bench *bench, const gf_cli_line *line, gf_error *error) {
    const size_t count = line->operand_count ? line->operand_count : gf_filter_count();
    bench->items = calloc(count, sizeof *bench->items);
    if (!bench->items)
        return gf_set_error(error, GF_FAILED, "bench: out of memory");
    gf_status status = GF_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = add_item(bench,
                          line->operand_count ? line->operands[i]
                                              : gf_filter_describe(gf_filter_at(i))->name,
                          error);
    return status;
}

/* Three to two, so that 24 MP are 6000 x 4000. */
static gf_format picture(const gf_settings *settings) {
    const uint64_t pixels = (uint64_t)gf_settings_int(settings, "size") * 1000000;
    gf_format format = {.width = 1,
                        .channels = (uint32_t)gf_settings_int(settings, "channels"),
                        .type = (gf_type)gf_settings_choice(settings, "type")};
    while (2 * format.width * format.width < 3 * pixels)
        format.width++;
    format.height = pixels / format.width;
    return format;
}

static void clear(gf_bench *bench) {
    for (size_t i = 0; i < bench->target_count; i++)
        gf_engine_close(bench->targets[i].engine);
    for (size_t i = 0; i < bench->item_count; i++)
        gf_settings_free(bench->items[i].settings);
    gf_engine_close(bench->any);
    gf_engine_close(bench->golden);
    gf_machine_free(&bench->machine);
    free(bench->items);
    free(bench->rows);
    free(bench->forecasts);
    free(bench->pictures[0]);
    free(bench->pictures[1]);
}

static gf_status run(const gf_cli_line *line, gf_error *error) {
    gf_bench bench = {.format = picture(line->filter),
                      .max_memory = gf_settings_size(line->common, "max-memory"),
                      .name_width = 12,
                      .seconds = (double)gf_settings_float(line->filter, "seconds"),
                      .json = gf_settings_flag(line->filter, "json")};
    gf_status status = add_items(&bench, line, error);
    if (!status)
        status = open_targets(&bench, line, error);
    if (!status)
        status = gf_bench_run(&bench, error);
    clear(&bench);
    return status;
}

static const char *const backends[] = {"all", "cpu", "cuda", NULL};
static const char *const types[] = {"u8", "u16", "f32", NULL};

static const gf_param params[] = {
    {.name = "size",
     .type = GF_PARAM_INT,
     .metavar = "MP",
     .help = "millions of pixels of the picture",
     .fallback = "24",
     .min = 1,
     .max = 10000},
    {.name = "channels",
     .type = GF_PARAM_INT,
     .metavar = "N",
     .help = "its channels: grey, grey and alpha, RGB, or RGBA",
     .fallback = "3",
     .min = 1,
     .max = 4},
    {.name = "type",
     .type = GF_PARAM_CHOICE,
     .metavar = "TYPE",
     .help = "its samples",
     .fallback = "u8",
     .choices = types},
    {.name = "seconds",
     .type = GF_PARAM_FLOAT,
     .metavar = "S",
     .help = "about how long each thing is tried, three times at the least",
     .fallback = "0.2",
     .min = 0,
     .max = 1000},
    {.name = "backend",
     .letter = 'b',
     .type = GF_PARAM_CHOICE,
     .metavar = "NAME",
     .help = "who is timed beside golden",
     .fallback = "all",
     .choices = backends},
    {.name = "json", .type = GF_PARAM_FLAG, .help = "print one line of JSON"},
};

static const char *const shared[] = {"device", "threads", "simd",    "max-memory",
                                     "color",  "help",    "version", NULL};

const gf_command gf_bench_command = {
    .info = {.name = "bench",
             .summary = "time filters, memory and files on this machine",
             .operands = "[FILTER]...",
             .details =
                 "Draws a picture and times on it, with the median of several tries:\n"
                 "  memory   copies, by one thread and by all; on a GPU, uploads and downloads\n"
                 "  filters  on pictures that lie where they are computed, no file and no\n"
                 "           transfer in between: MP/s, bytes moved a second, and what share that\n"
                 "           is of a copy by the same threads or on the same GPU\n"
                 "  files    reading and writing the picture at the default settings\n"
                 "and tells whom --backend auto would take for which images, and why.\n"
                 "Every CUDA device, or each of those in --device, is timed by itself.\n"
                 "Nothing is told of a filter whose result differs from golden's in any bit: the\n"
                 "exit code is then 1. FILTER is a name, or a name and its settings in one\n"
                 "argument; without any all filters are timed with their default settings.\n",
             .examples = "gpufilter bench\n"
                         "gpufilter bench smooth 'smooth radius=8 axis=xy'\n"
                         "gpufilter bench 'hist bins=8 extract=3' --type u16 --channels 1\n"
                         "gpufilter bench --size 4 --json\n",
             .params = params,
             .param_count = sizeof params / sizeof params[0]},
    .shared = shared,
    .least = 0,
    .most = SIZE_MAX,
    .run = run,
};
