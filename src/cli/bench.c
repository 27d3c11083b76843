/* gpufilter bench: how fast filters are on this machine, from memory to memory. What is timed is
 * compared with golden. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"

#define MAX_TARGETS 67 /* golden, cpu with one thread and all, 64 devices */
#define MIN_RUNS 3
#define MAX_RUNS 100

/* About as many pictures exist at a time: two inputs, what golden and a target make of them, and
 * the target's own. */
#define PICTURES 8

/* An engine that is timed. The first is golden. */
typedef struct gf_bench_target {
    char name[48]; /* "cpu, 2 threads" */
    gf_engine *engine;
} gf_bench_target;

/* One item timed on one target. */
typedef struct gf_bench_row {
    gf_report report; /* of the run of median length */
    uint32_t runs;    /* golden: 1 */
    bool differs;     /* from golden: then the times are not printed */
} gf_bench_row;

/* One filter with some settings. */
typedef struct gf_bench_item {
    const gf_filter *filter;
    const char *name; /* with its settings: "hist bins=8" */
    const char *text; /* of the settings, as a case has them; "" for the defaults */
    gf_settings *settings;
    gf_format drawn; /* what it draws of the picture; width 0: nothing */
    gf_bench_row rows[MAX_TARGETS];
} gf_bench_item;

typedef struct gf_bench {
    gf_format format; /* of the picture */
    double seconds;   /* for each number */
    bool json;
    int name_width; /* of the longest item's */
    gf_machine machine;
    gf_bench_target targets[MAX_TARGETS];
    size_t target_count;
    gf_bench_item *items;
    size_t item_count;
    void *pictures[2]; /* rows without gaps */
    bool differs;      /* a result, from golden's */
} gf_bench;

static size_t bench_image_bytes(const gf_format *format) {
    return gf_cli_row_bytes(format) * (size_t)format->height;
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Add a target. The name of one of the cuda backend ends with its device. */
static gf_status bench_add_target(gf_bench *bench, const char *name, gf_engine_options options,
                                  gf_error *error) {
    if (bench->target_count == MAX_TARGETS)
        return gf_set_error(error, GF_USAGE, "bench: too many devices");
    gf_bench_target *target = &bench->targets[bench->target_count];
    snprintf(target->name, sizeof target->name, "%s", name);
    if (strcmp(options.backend, "cuda") == 0)
        options.devices = target->name + strlen("cuda "); /* has to outlive the engine */
    const gf_status status = gf_engine_open(&options, &target->engine, error);
    bench->target_count += !status;
    return status;
}

/* The devices listed, or all that can be used, each by itself. */
static gf_status bench_add_cuda(gf_bench *bench, const gf_engine_options *options, const char *list,
                                gf_error *error) {
    const bool all = !list || strcmp(list, "all") == 0;
    gf_status status = GF_OK;
    char name[48];
    while (!all && list && !status) {
        snprintf(name, sizeof name, "cuda %.*s", (int)strcspn(list, ","), list);
        status = bench_add_target(bench, name, *options, error);
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    for (size_t i = 0; all && i < bench->machine.count && !status; i++) {
        snprintf(name, sizeof name, "cuda %" PRIu32, bench->machine.devices[i].index);
        if (bench->machine.devices[i].usable)
            status = bench_add_target(bench, name, *options, error);
    }
    return status;
}

static gf_status open_targets(gf_bench *bench, const gf_cli_line *line, gf_error *error) {
    const char *backend = gf_settings_text(line->filter, "backend");
    const char *devices = line->options.engine.devices;
    char name[48];
    const bool cpu = strcmp(backend, "cuda") != 0, cuda = strcmp(backend, "cpu") != 0;
    const uint32_t threads = line->options.threads ? line->options.threads : gf_cores();
    gf_engine_options options = {.backend = "golden",
                                 .simd = line->options.engine.simd,
                                 .max_memory = line->options.engine.max_memory};
    if (devices && !cuda)
        return gf_set_error(error, GF_USAGE, "--device: is for --backend cuda or all");
    gf_status status = gf_machine_look(&bench->machine, error);
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
    if (!status && cuda)
        status = bench_add_cuda(bench, &options, devices, error);
    if (!status && bench->target_count == 1)
        status = gf_set_error(error, GF_NO_BACKEND,
                              "bench: no CUDA device is usable; 'gpufilter devices' says why");
    return status;
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
    const gf_status status = gf_settings_apply_case(item->settings, item->text, error);
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
static gf_format choose_picture(const gf_settings *settings) {
    const uint64_t pixels = (uint64_t)gf_settings_int(settings, "size") * 1000000;
    gf_format format = {.width = 1,
                        .channels = (uint32_t)gf_settings_int(settings, "channels"),
                        .type = (gf_type)gf_settings_choice(settings, "type")};
    while (2 * format.width * format.width < 3 * pixels)
        format.width++;
    format.height = pixels / format.width;
    return format;
}

static gf_status allocate_picture(const gf_format *format, void **picture, gf_error *error) {
    *picture = malloc(bench_image_bytes(format)); /* NOLINT: a picture has at least one sample */
    return *picture ? GF_OK
                    : gf_set_error(error, GF_FAILED,
                                   "bench: out of memory for a picture; use a smaller --size");
}

/* Something like a photograph, and the same again with some samples changed. */
static gf_status draw_pictures(gf_bench *bench, uint64_t max_memory, gf_error *error) {
    const size_t bytes = bench_image_bytes(&bench->format);
    if (bytes > max_memory / PICTURES)
        return gf_set_error(error, GF_USAGE,
                            "bench: %d pictures of %zu bytes are more than --max-memory; use a "
                            "smaller --size",
                            PICTURES, bytes);
    for (int i = 0; i < 2; i++)
        if (allocate_picture(&bench->format, &bench->pictures[i], error))
            return GF_FAILED;
    gf_random random = gf_random_start(1, 0, 0);
    gf_verify_photo(&bench->format, bench->pictures[0], &random);
    memcpy(bench->pictures[1], bench->pictures[0], bytes);
    const size_t sample =
        bytes / (size_t)(bench->format.width * bench->format.height * bench->format.channels);
    for (size_t i = 0; i < bytes; i += 4001 * sample)
        ((unsigned char *)bench->pictures[1])[i] ^= 1;
    return GF_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* Stages of a run that are printed. */
static const struct {
    const char *name;
    gf_stage stage;
} stages[] = {
    {"uploading", GF_UPLOADING}, {"computing", GF_COMPUTING}, {"downloading", GF_DOWNLOADING}};
enum { STAGES = sizeof stages / sizeof stages[0] };

/* 0 where it is not known. */
static double row_seconds(const gf_bench_row *row) {
    return row->differs ? 0 : row->report.total_seconds - row->report.start_seconds;
}

/* Seconds that a stage was busy, as the mean of its workers; 0 if the backend has no such stage. */
static double stage_seconds(const gf_bench_row *row, int i) {
    const gf_busy *busy = &row->report.busy[stages[i].stage];
    return busy->workers && !row->differs ? busy->seconds / busy->workers : 0;
}

static void print_start(const gf_bench *bench) {
    char format[64];
    gf_cli_format_text(&bench->format, format, sizeof format);
    gf_machine_text(&bench->machine);
    printf("picture: %s, generated; every result is compared with golden's\n\n", format);
    printf("%-*s %-17s %8s %8s", bench->name_width, "filter", "where", "ms", "MP/s");
    for (int i = 0; i < STAGES; i++)
        printf(" %s", stages[i].name);
    putchar('\n');
    fflush(stdout);
}

static void bench_print_row(const gf_bench *bench, const gf_bench_item *item, size_t t) {
    const gf_bench_row *row = &item->rows[t];
    const double pixels = (double)bench->format.width * (double)bench->format.height;
    printf("%-*s %-17s", bench->name_width, item->name, bench->targets[t].name);
    if (row->differs)
        printf(" differs from golden");
    else
        printf(" %8.3f %8.0f", row_seconds(row) * 1e3, pixels / row_seconds(row) * 1e-6);
    for (int i = 0; i < STAGES && !row->differs; i++)
        if (stage_seconds(row, i) > 0)
            printf(" %*.3f", (int)strlen(stages[i].name), stage_seconds(row, i) * 1e3);
        else
            printf(" %*s", (int)strlen(stages[i].name), "-");
    putchar('\n');
    fflush(stdout);
}

/* Print a member of an object: a number above zero, or null. */
static void print_number(const char *name, double number) {
    printf(", \"%s\": ", name);
    printf(number > 0 ? "%.6g" : "null", number);
}

static void bench_json_row(const gf_bench *bench, const gf_bench_item *item, size_t t) {
    const gf_bench_row *row = &item->rows[t];
    printf("{\"filter\": \"%s\"", gf_filter_describe(item->filter)->name);
    gf_json_string(stdout, "settings", item->text);
    gf_json_string(stdout, "where", bench->targets[t].name);
    gf_json_string(stdout, "backend", row->report.backend);
    gf_json_string(stdout, "device", row->report.device);
    print_number("seconds", row_seconds(row));
    for (int i = 0; i < STAGES; i++)
        print_number(stages[i].name, stage_seconds(row, i));
    gf_json_count(stdout, "runs", row->runs);
    printf(", \"same\": %s}", row->differs ? "false" : "true");
}

static void bench_print_json(const gf_bench *bench) {
    printf("{\"schema\": \"gpufilter-bench\", \"version\": 3, \"program\": \"%s\"", gf_version());
    gf_machine_json(&bench->machine);
    printf(", \"image\": ");
    gf_json_format(stdout, &bench->format);
    printf(", \"filters\": [");
    for (size_t i = 0; i < bench->item_count; i++)
        for (size_t t = 0; t < bench->target_count; t++) {
            printf("%s", i || t ? ", " : "");
            bench_json_row(bench, &bench->items[i], t);
        }
    printf("]}\n");
}

/* ---- timing ---------------------------------------------------------------------------------- */

static int compare_reports(const void *a, const void *b) {
    const gf_report *x = a, *y = b;
    return (x->total_seconds > y->total_seconds) - (x->total_seconds < y->total_seconds);
}

/* Run an item on a target once, into the same memory each time. */
static gf_status run_item(const gf_bench *bench, const gf_bench_item *item, size_t t, gf_made *made,
                          gf_report *report, gf_error *error) {
    const size_t stride = gf_cli_row_bytes(&bench->format);
    const gf_pixels in[2] = {{bench->pictures[0], stride}, {bench->pictures[1], stride}};
    if (item->drawn.width && !made->image && allocate_picture(&item->drawn, &made->image, error))
        return GF_FAILED;
    gf_result_free(made->result);
    return gf_run_memory(bench->targets[t].engine, item->filter, item->settings, &bench->format, in,
                         made->image, gf_cli_row_bytes(&item->drawn), &made->result, report, error);
}

/* Time an item on a target: golden with one run, others with several after one to warm up. */
static gf_status time_row(const gf_bench *bench, gf_bench_item *item, size_t t, gf_made *made,
                          gf_error *error) {
    gf_bench_row *row = &item->rows[t];
    gf_report reports[MAX_RUNS];
    double spent = 0;
    gf_status status = run_item(bench, item, t, made, &reports[0], error);
    row->runs = t == 0;
    while (!status && t && row->runs < MAX_RUNS &&
           (row->runs < MIN_RUNS || spent < bench->seconds)) {
        gf_report *report = &reports[row->runs++];
        status = run_item(bench, item, t, made, report, error);
        spent += report->total_seconds;
    }
    qsort(reports, row->runs, sizeof reports[0], compare_reports);
    row->report = reports[row->runs / 2];
    return status;
}

/* Compare what a target made with what golden made. */
static void compare_row(gf_bench *bench, gf_bench_item *item, size_t t, const gf_made *want,
                        const gf_made *got) {
    gf_bench_row *row = &item->rows[t];
    const gf_bench_target *target = &bench->targets[t];
    const gf_found found = gf_made_compare(&item->drawn, want, got);
    row->differs = found.count > 0;
    bench->differs = bench->differs || row->differs;
    if (!row->differs)
        return;
    fflush(stdout);
    fprintf(stderr, "gpufilter: bench: %s on %s differs from golden: %s\n", item->name,
            target->name, found.where);
}

/* Golden first: what is timed is compared with it, whole. */
static gf_status time_item(gf_bench *bench, gf_bench_item *item, gf_error *error) {
    gf_made want = {0}, got = {0};
    gf_status status = GF_OK;
    for (size_t t = 0; t < bench->target_count && !status; t++) {
        status = time_row(bench, item, t, t ? &got : &want, error);
        if (!status && t)
            compare_row(bench, item, t, &want, &got);
        gf_made_free(&got);
        if (!status && !bench->json)
            bench_print_row(bench, item, t);
    }
    gf_made_free(&want);
    return status;
}

static gf_status time_filters(gf_bench *bench, gf_error *error) {
    gf_status status = GF_OK;
    for (size_t i = 0; i < bench->item_count && !status; i++)
        status = time_item(bench, &bench->items[i], error);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void free_bench(gf_bench *bench) {
    for (size_t i = 0; i < bench->target_count; i++)
        gf_engine_close(bench->targets[i].engine);
    for (size_t i = 0; i < bench->item_count; i++)
        gf_settings_free(bench->items[i].settings);
    free(bench->items);
    free(bench->pictures[0]);
    free(bench->pictures[1]);
}

/* In text each number is printed when it is known, JSON in the end. */
static gf_status run_bench(const gf_cli_line *line, gf_error *error) {
    gf_bench bench = {.format = choose_picture(line->filter),
                      .name_width = 12,
                      .seconds = (double)gf_settings_float(line->filter, "seconds"),
                      .json = line->options.json};
    gf_status status = add_items(&bench, line, error);
    if (!status)
        status = open_targets(&bench, line, error);
    if (!status)
        status = draw_pictures(&bench, line->options.engine.max_memory, error);
    if (!status && !bench.json)
        print_start(&bench);
    if (!status)
        status = time_filters(&bench, error);
    if (!status && bench.json)
        bench_print_json(&bench);
    if (!status && bench.differs)
        status = GF_FAILED; /* it is printed already */
    free_bench(&bench);
    return status;
}

static const char *const backends[] = {"all", "cpu", "cuda", NULL};
static const char *const types[] = {"u8", "u16", "f32", NULL};

static const gf_param params[] = {
    GF_CLI_INT("size", 0, "MP", "millions of pixels of the picture", "24", 1, 10000),
    GF_CLI_INT("channels", 0, "N", "its channels: grey, grey and alpha, RGB, or RGBA", "3", 1, 4),
    GF_CLI_CHOICE("type", 0, "TYPE", "its samples", "u8", types),
    GF_CLI_FLOAT("seconds", 0, "S", "about how long each filter is run, three times at the least",
                 "0.2", 0, 1000),
    GF_CLI_CHOICE("backend", 'b', "NAME", "who is timed beside golden", "all", backends),
    GF_CLI_FLAG("json", 0, "print one line of JSON"),
};

static const char *const shared[] = {"device", "threads", "simd",    "max-memory",
                                     "color",  "help",    "version", NULL};

const gf_command gf_bench_command = {
    .info = {.name = "bench",
             .summary = "time filters on this machine",
             .operands = "[FILTER]...",
             .details =
                 "Draws a picture and filters it from memory to memory, on each backend. Prints\n"
                 "the run of median length: ms and MP/s in all, and for how many ms of them each\n"
                 "stage was busy; the stages overlap.\n"
                 "Every CUDA device, or each of those in --device, is timed by itself.\n"
                 "No times are printed of a filter that differs from golden in any bit: the\n"
                 "exit code is then 1. FILTER is a name, or a name and its settings in one\n"
                 "argument; without any all filters are timed with their default settings.\n",
             .examples = "gpufilter bench\n"
                         "gpufilter bench smooth 'smooth radius=8 axis=xy'\n"
                         "gpufilter bench 'hist bins=8 extract=3' --type u16 --channels 1\n"
                         "gpufilter bench --size 4 --json\n",
             .params = params,
             .param_count = sizeof params / sizeof params[0]},
    .shared = shared,
    .run = run_bench,
};
