/* Command bench: times of filters from memory to memory. Every result is compared with golden. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"

#define MAX_TARGETS 67 /* golden, cpu with one thread, cpu with all threads, 64 devices */
#define MIN_RUNS 3
#define MAX_RUNS 100

#define MAX_IMAGES                                                                                 \
    8 /* in memory at once: two inputs, outputs of golden and a target, its buffers */

/* A timed engine. The first target is golden. */
typedef struct gf_bench_target {
    char name[48]; /* "cpu, 2 threads" */
    gf_engine *engine;
} gf_bench_target;

/* One item timed on one target. */
typedef struct gf_bench_row {
    gf_report report; /* of the run with the median time */
    uint32_t runs;    /* 1 for golden */
    bool differs;     /* the result differs from golden; times are not printed */
} gf_bench_row;

/* One filter with some settings. */
typedef struct gf_bench_item {
    const char *name;       /* filter and settings: "hist bins=8" */
    const char *text;       /* the settings: without any, the first case of the filter */
    gf_run_input run;       /* with the settings as given */
    gf_settings *effective; /* including derived values, for JSON */
    gf_bench_row rows[MAX_TARGETS];
} gf_bench_item;

typedef struct gf_bench {
    gf_format format; /* of the generated images */
    double seconds;   /* minimum time per item and target */
    bool json;
    int name_width; /* of the longest item name */
    gf_machine machine;
    gf_bench_target targets[MAX_TARGETS];
    size_t target_count;
    gf_bench_item *items;
    size_t item_count;
    void *images[2]; /* packed rows */
    bool differs;    /* at least one result differs from golden */
} gf_bench;

static size_t bench_image_bytes(const gf_format *format) {
    return gf_row_bytes(format) * (size_t)format->height;
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Add a target. The name of a cuda target is "cuda DEVICE". */
static gf_status bench_add_target(gf_bench *bench, const char *name, gf_engine_options options,
                                  gf_error *error) {
    if (bench->target_count == MAX_TARGETS)
        return gf_set_error(error, GF_USAGE, "bench: too many devices");
    gf_bench_target *target = &bench->targets[bench->target_count];
    snprintf(target->name, sizeof target->name, "%s", name);
    if (strcmp(options.backend, "cuda") == 0)
        options.devices = target->name + strlen("cuda "); /* must outlive the engine */
    const gf_status status = gf_engine_open(&options, &target->engine, error);
    bench->target_count += !status;
    return status;
}

static gf_status open_targets(gf_bench *bench, const gf_cli_line *line, gf_error *error) {
    const char *backend = gf_settings_text(line->filter, "backend");
    const char *devices = line->options.engine.devices;
    char name[48];
    const bool cpu = strcmp(backend, "cuda") != 0, cuda = strcmp(backend, "cpu") != 0;
    const bool all = !devices || strcmp(devices, "all") == 0; /* usable devices */
    const uint32_t threads = line->options.threads ? line->options.threads : gf_cores();
    gf_engine_options options = {.backend = "golden",
                                 .simd = line->options.engine.simd,
                                 .max_memory = line->options.engine.max_memory};
    if (devices && !cuda)
        return gf_set_error(error, GF_USAGE, "--device: requires --backend cuda or all");
    gf_status status = gf_machine_query(&bench->machine, error);
    if (!status && bench->machine.none.status && (devices || !cpu)) {
        *error = bench->machine.none;
        status = bench->machine.none.status;
    }
    if (!status)
        status = bench_add_target(bench, "golden", options, error);
    options.backend = "cpu";
    options.threads = 1;
    if (!status && cpu)
        status = bench_add_target(bench, "cpu, 1 thread", options, error);
    options.threads = threads;
    snprintf(name, sizeof name, "cpu, %" PRIu32 " threads", threads);
    if (!status && cpu && threads > 1)
        status = bench_add_target(bench, name, options, error);
    options.backend = "cuda";
    for (size_t i = 0; i < bench->machine.count && cuda && all && !status; i++) {
        snprintf(name, sizeof name, "cuda %" PRIu32, bench->machine.devices[i].index);
        if (bench->machine.devices[i].usable)
            status = bench_add_target(bench, name, options, error);
    }
    for (const char *at = cuda && !all ? devices : NULL; at && !status;) {
        snprintf(name, sizeof name, "cuda %.*s", (int)strcspn(at, ","), at);
        status = bench_add_target(bench, name, options, error);
        at = strchr(at, ',');
        at += at != NULL;
    }
    if (!status && bench->target_count == 1)
        status =
            gf_set_error(error, GF_NO_BACKEND,
                         "bench: no usable CUDA device; 'gpufilter devices' prints the reason");
    return status;
}

/* ---- items and images ------------------------------------------------------------------------ */

/* Add an item; operand: "hist" or "hist bins=8 extract=3". */
static gf_status add_item(gf_bench *bench, const char *operand, gf_error *error) {
    gf_bench_item *item = &bench->items[bench->item_count];
    gf_step_info step;
    char name[32];
    const size_t length = strcspn(operand, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, operand);
    if ((int)strlen(operand) > bench->name_width)
        bench->name_width = (int)strlen(operand);
    item->name = operand;
    item->text = operand + length + strspn(operand + length, " ");
    item->run = (gf_run_input){.filter = gf_filter_find(name), .in = bench->format};
    if (!item->run.filter)
        return gf_set_error(error, GF_USAGE, "bench: '%s': no such filter; see 'gpufilter --help'",
                            operand);
    const gf_filter_info *info = gf_filter_describe(item->run.filter);
    item->run.settings = gf_settings_new(info->params, info->param_count);
    bench->item_count++;
    if (!item->run.settings)
        return gf_set_error(error, GF_FAILED, "bench: out of memory");
    /* A filter may require a setting. */
    if (!*item->text)
        item->text = info->cases[0];
    gf_status status = gf_settings_apply_case(item->run.settings, item->text, error);
    if (status)
        return status;
    status = gf_cli_inspect(item->run.filter, item->run.settings, &bench->format, &step, error);
    item->run.drawn = step.out;
    item->effective = step.effective;
    return status;
}

static gf_status add_items(gf_bench *bench, const gf_cli_line *line, gf_error *error) {
    size_t count = line->operand_count;
    while (!line->operand_count && gf_filter_at(count))
        count++;
    bench->items = calloc(count + 1, sizeof *bench->items);
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

static gf_status allocate_image(const gf_format *format, void **image, gf_error *error) {
    *image = malloc(bench_image_bytes(format)); /* NOLINT: an image has at least one sample */
    return *image ? GF_OK
                  : gf_set_error(error, GF_FAILED,
                                 "bench: out of memory for an image; use a smaller --size");
}

/* Draw a synthetic photograph, and a copy with one sample in 4001 changed. */
static gf_status draw_images(gf_bench *bench, uint64_t max_memory, gf_error *error) {
    const size_t bytes = bench_image_bytes(&bench->format);
    if (bytes > max_memory / MAX_IMAGES)
        return gf_set_error(error, GF_USAGE,
                            "bench: %d images of %zu bytes exceed --max-memory; use a smaller "
                            "--size, or raise --max-memory",
                            MAX_IMAGES, bytes);
    for (int i = 0; i < 2; i++)
        if (allocate_image(&bench->format, &bench->images[i], error))
            return GF_FAILED;
    gf_random random = gf_random_start(1, 0, 0);
    gf_verify_photo(&bench->format, bench->images[0], &random);
    memcpy(bench->images[1], bench->images[0], bytes);
    for (size_t i = 0; i < bytes; i += 4001 * gf_type_bytes(bench->format.type))
        ((unsigned char *)bench->images[1])[i] ^= 1;
    return GF_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* Return the run time without start-up; 0 if the result differs from golden. */
static double row_seconds(const gf_bench_row *row) {
    return row->differs ? 0 : row->report.total_seconds - row->report.start_seconds;
}

/* Return the busy time of a stage in seconds, averaged over its workers; 0 if the backend has no
 * such stage or the result differs from golden. */
static double stage_seconds(const gf_bench_row *row, gf_stage stage) {
    const gf_busy *busy = &row->report.busy[stage];
    return busy->workers && !row->differs ? busy->seconds / busy->workers : 0;
}

static void bench_print_row(const gf_bench *bench, const gf_bench_item *item, size_t t) {
    const gf_bench_row *row = &item->rows[t];
    const double pixels = (double)bench->format.width * (double)bench->format.height;
    printf("%-*s %-17s", bench->name_width, item->name, bench->targets[t].name);
    if (row->differs)
        printf(" differs from golden");
    else
        printf(" %8.3f %8.0f", row_seconds(row) * 1e3, pixels / row_seconds(row) * 1e-6);
    for (gf_stage stage = GF_UPLOADING; stage <= GF_DOWNLOADING && !row->differs; stage++) {
        const int width = (int)strlen(gf_names(GF_NAMES_STAGE)[stage]);
        if (stage_seconds(row, stage) > 0)
            printf(" %*.3f", width, stage_seconds(row, stage) * 1e3);
        else
            printf(" %*s", width, "-");
    }
    putchar('\n');
    fflush(stdout);
}

/* Print a JSON member: a number above zero, or null. */
static void print_number(const char *name, double number) {
    printf(", \"%s\": ", name);
    printf(number > 0 ? "%.6g" : "null", number);
}

static void bench_print_json(const gf_bench *bench) {
    printf("{\"schema\": \"gpufilter-bench\", \"schema_version\": 4, \"program\": \"%s\"",
           gf_version());
    gf_machine_json(&bench->machine);
    gf_json_format(stdout, &bench->format);
    printf(", \"filters\": [");
    for (size_t i = 0; i < bench->item_count * bench->target_count; i++) {
        const gf_bench_item *item = &bench->items[i / bench->target_count];
        const gf_filter_info *info = gf_filter_describe(item->run.filter);
        const size_t t = i % bench->target_count;
        const gf_bench_row *row = &item->rows[t];
        printf("%s{\"filter\": \"%s\"", i ? ", " : "", info->name);
        gf_json_string(stdout, "settings", item->text);
        gf_json_settings(stdout, "parameters", info, item->effective);
        gf_json_string(stdout, "target", bench->targets[t].name);
        gf_json_string(stdout, "backend", row->report.backend);
        gf_json_string(stdout, "device", row->report.device);
        print_number("seconds", row_seconds(row));
        for (gf_stage stage = GF_UPLOADING; stage <= GF_DOWNLOADING; stage++)
            print_number(gf_names(GF_NAMES_STAGE)[stage], stage_seconds(row, stage));
        gf_json_count(stdout, "runs", row->runs);
        printf(", \"matches_golden\": %s}", row->differs ? "false" : "true");
    }
    printf("]}\n");
}

/* ---- timing ---------------------------------------------------------------------------------- */

static int compare_reports(const void *a, const void *b) {
    const gf_report *x = a, *y = b;
    return (x->total_seconds > y->total_seconds) - (x->total_seconds < y->total_seconds);
}

/* Time an item on all targets: first on golden, once, as the reference of the comparisons; on
 * others at least MIN_RUNS times after a warm-up run. */
static gf_status time_item(gf_bench *bench, gf_bench_item *item, gf_error *error) {
    gf_run_output want = {0}, got = {0};
    gf_status status = GF_OK;
    for (int i = 0; i < 2; i++)
        item->run.images[i] = (gf_pixels){bench->images[i], gf_row_bytes(&bench->format)};
    for (size_t t = 0; t < bench->target_count && !status; t++) {
        gf_engine *engine = bench->targets[t].engine;
        gf_bench_row *row = &item->rows[t];
        gf_run_output *made = t ? &got : &want;
        gf_report reports[MAX_RUNS] = {{.start_seconds = 0}};
        double spent = 0;
        if (item->run.drawn.width)
            status = allocate_image(&item->run.drawn, &made->image, error);
        if (!status)
            status = gf_run_output_make(engine, &item->run, made, &reports[0], error);
        row->runs = t == 0;
        while (!status && t && row->runs < MAX_RUNS &&
               (row->runs < MIN_RUNS || spent < bench->seconds)) {
            gf_report *report = &reports[row->runs++];
            status = gf_run_output_make(engine, &item->run, made, report, error);
            spent += report->total_seconds;
        }
        qsort(reports, row->runs, sizeof reports[0], compare_reports);
        row->report = reports[row->runs / 2];
        const gf_differences found = !status && t
                                         ? gf_run_output_compare(&item->run.drawn, &want, &got)
                                         : (gf_differences){0};
        row->differs = found.count;
        bench->differs = bench->differs || found.count;
        fflush(stdout);
        if (found.count)
            fprintf(stderr, "gpufilter: bench: %s on %s differs from golden: %s\n", item->name,
                    bench->targets[t].name, found.first);
        gf_run_output_free(&got);
        if (!status && !bench->json)
            bench_print_row(bench, item, t);
    }
    gf_run_output_free(&want);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Text rows are printed as soon as they are measured, JSON at the end. */
static gf_status run_bench(const gf_cli_line *line, gf_error *error) {
    gf_bench bench = {.format = {.width = 1,
                                 .channels = (uint32_t)gf_settings_int(line->filter, "channels"),
                                 .type = (gf_type)gf_settings_choice(line->filter, "type")},
                      .name_width = 12,
                      .seconds = (double)gf_settings_float(line->filter, "seconds"),
                      .json = line->options.json};
    char format[64];
    /* The aspect ratio is 3:2: 24 MP are 6000x4000. */
    const uint64_t pixels = (uint64_t)gf_settings_int(line->filter, "size") * 1000000;
    while (2 * bench.format.width * bench.format.width < 3 * pixels)
        bench.format.width++;
    bench.format.height = pixels / bench.format.width;
    bench.format.alpha = bench.format.channels % 2 == 0;
    gf_status status = add_items(&bench, line, error);
    if (!status)
        status = open_targets(&bench, line, error);
    if (!status)
        status = draw_images(&bench, line->options.engine.max_memory, error);
    if (!status && !bench.json) {
        gf_format_text(&bench.format, format, sizeof format);
        gf_machine_text(&bench.machine);
        printf("image: %s, generated; every result is compared with golden\n\n", format);
        printf("%-*s %-17s %8s %8s", bench.name_width, "filter", "target", "ms", "MP/s");
        for (gf_stage stage = GF_UPLOADING; stage <= GF_DOWNLOADING; stage++)
            printf(" %s", gf_names(GF_NAMES_STAGE)[stage]);
        putchar('\n');
        fflush(stdout);
    }
    for (size_t i = 0; i < bench.item_count && !status; i++)
        status = time_item(&bench, &bench.items[i], error);
    if (!status && bench.json)
        bench_print_json(&bench);
    if (!status && bench.differs)
        status = GF_FAILED; /* the difference has been printed */
    for (size_t i = 0; i < bench.target_count; i++)
        gf_engine_close(bench.targets[i].engine);
    for (size_t i = 0; i < bench.item_count; i++) {
        gf_settings_free(bench.items[i].run.settings);
        gf_settings_free(bench.items[i].effective);
    }
    free(bench.items);
    free(bench.images[0]);
    free(bench.images[1]);
    return status;
}

static const char *const backends[] = {"all", "cpu", "cuda", NULL};
static const char *const types[] = {"u8", "u16", "f32", NULL};

static const gf_param params[] = {
    GF_NUMBER_PARAM(INT, "size", 0, "MP", "image size in megapixels", "24", 1, 10000),
    GF_NUMBER_PARAM(INT, "channels", 0, "N", "channels: 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA", "3",
                    1, 4),
    GF_CHOICE_PARAM(CHOICE, "type", 0, "TYPE", "sample type", "u8", types),
    GF_NUMBER_PARAM(FLOAT, "seconds", 0, "S", "minimum time per filter and target; at least 3 runs",
                    "0.2", 0, 1000),
    GF_CHOICE_PARAM(CHOICE, "backend", 'b', "NAME", "backends to time; golden is always timed",
                    "all", backends),
    GF_FLAG_PARAM("json", 0, "print JSON; one line"),
};

const gf_command gf_bench_command = {
    .info = {.name = "bench",
             .summary = "time filters on this machine",
             .operands = "[FILTER]...",
             .details =
                 "Generates an image and filters it from memory to memory on each backend. Prints\n"
                 "the run with the median time: its time in ms, its throughput in MP/s, and the\n"
                 "busy time of each stage in ms. Stages overlap. Each CUDA device, or each device\n"
                 "in --device, is timed separately.\n"
                 "If a result differs from golden in any bit, its times are not printed and the\n"
                 "exit status is 1. FILTER is a filter name, or a name and settings in one\n"
                 "argument; without FILTER, all filters are timed with their defaults.\n",
             .examples = "gpufilter bench\n"
                         "gpufilter bench smooth 'smooth radius=8 axis=xy'\n"
                         "gpufilter bench 'hist bins=8 extract=3' --type u16 --channels 1\n"
                         "gpufilter bench --size 4 --json\n",
             .params = params,
             .param_count = sizeof params / sizeof params[0]},
    .shared = "device threads simd max-memory color help version",
    .run = run_bench,
};
