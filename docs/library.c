/* Example of libgpufilter: ./library IN OUT
 *
 * Smooths a region of an image in memory, prints a histogram of the result, and smooths the file IN
 * into the file OUT. */
#include <gpufilter.h>
#include <inttypes.h>
#include <stdio.h>

/* An image of 4 rows of 8 grey pixels. The example filters a region of 6 columns: each row has 6
 * bytes, and rows start 8 bytes apart. */
enum { WIDTH = 6, HEIGHT = 4, STRIDE = 8 };
static const uint8_t picture[HEIGHT][STRIDE] = {
    {0, 10, 10, 10, 200, 200, 200, 255},
    {0, 10, 10, 10, 200, 200, 200, 255},
    {0, 10, 90, 10, 200, 200, 200, 255},
    {0, 10, 10, 10, 200, 200, 200, 255},
};

/* Return settings with the defaults of a filter; NULL if out of memory. */
static gf_settings *settings_of(const gf_filter *filter) {
    const gf_filter_info *info = gf_filter_describe(filter);
    return gf_settings_new(info->params, info->param_count);
}

/* Print the smoothed region. */
static void print_pixels(const uint8_t *pixels) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            printf("%4d%s", pixels[y * WIDTH + x], x < WIDTH - 1 ? "" : "\n");
}

/* Print all tables of a result of any filter. */
static void print_tables(const gf_result *result) {
    for (size_t t = 0; t < gf_result_table_count(result); t++) {
        const gf_table *table = gf_result_table(result, t);
        printf("%s:\n", table->name);
        for (size_t x = 0; x < table->column_count; x++)
            printf("%9s", table->columns[x].name);
        printf("\n");
        for (uint64_t y = 0; y < table->row_count; y++) {
            for (size_t x = 0; x < table->column_count; x++) {
                const gf_value value = gf_result_cell(result, t, y, x);
                char text[40]; /* large enough for any number */
                gf_value_format(&value, text, sizeof text);
                printf("%9s", text);
            }
            printf("\n");
        }
    }
}

int main(int argc, char **argv) {
    const gf_filter *smooth = gf_filter_find("smooth"), *hist = gf_filter_find("hist");
    gf_settings *smoothing = settings_of(smooth), *counting = settings_of(hist);
    gf_engine *engine = NULL;
    gf_result *result = NULL;
    gf_error error = {.status = GF_FAILED, .message = "out of memory"};
    gf_status status = GF_FAILED;

    if (argc != 3 || !gf_version_fits(GF_VERSION)) {
        fprintf(stderr, "usage: %s IN OUT (compiled for libgpufilter %s, found %s)\n", argv[0],
                GF_VERSION_STRING, gf_version());
        goto end;
    }
    if (!smoothing || !counting)
        goto failed;

    /* The engine owns threads and devices for all runs. "auto" picks the backend that is expected
     * to finish first. */
    const gf_engine_options options = {.backend = "auto"};
    if ((status = gf_engine_open(&options, &engine, &error)))
        goto failed;

    /* Parameters have the names and values of the command-line options. A flag has no value. */
    if ((status = gf_settings_set(smoothing, "radius", "1", &error)) ||
        (status = gf_settings_set(smoothing, "axis", "xy", &error)) ||
        (status = gf_settings_set(smoothing, "keep-brightness", NULL, &error)) ||
        (status = gf_settings_set(counting, "bins", "4", &error)))
        goto failed;

    /* Smooth from memory to memory: a filter, and a step that writes its image. The region starts
     * at column 1; the result has no gaps. */
    const gf_format format = {.width = WIDTH, .height = HEIGHT, .channels = 1, .type = GF_U8};
    const gf_pixels part = {&picture[0][1], STRIDE};
    uint8_t smoothed[HEIGHT][WIDTH];
    const gf_out_pixels to = {smoothed, WIDTH};
    const gf_step in_memory[] = {{.filter = smooth, .settings = smoothing}, {.out = &to}};
    const gf_job region = {
        .steps = in_memory, .step_count = 2, .memory = GF_HOST, .in = &part, .format = format};
    if ((status = gf_run(engine, &region, NULL, &error)))
        goto failed;
    print_pixels(smoothed[0]);

    /* A filter that measures returns a result and no image. */
    const gf_pixels again = {smoothed, WIDTH};
    const gf_step count = {.filter = hist, .settings = counting};
    const gf_job counts = {
        .steps = &count, .step_count = 1, .memory = GF_HOST, .in = &again, .format = format};
    gf_outcome counted = {.results = &result};
    if ((status = gf_run(engine, &counts, &counted, &error)))
        goto failed;
    print_tables(result);

    /* Smooth from file to file. Replace OUT if it exists. */
    const gf_file_options files = {.force = true};
    const gf_step steps[] = {{.filter = smooth, .settings = smoothing}, {.out_path = argv[2]}};
    const gf_job file = {.steps = steps, .step_count = 2, .in_path = argv[1], .options = &files};
    gf_step_report reports[2];
    gf_outcome done = {.steps = reports};
    if ((status = gf_run(engine, &file, &done, &error)))
        goto failed;
    printf("%s: %" PRIu64 " x %" PRIu64 " pixels of %" PRIu32 " channels\n", argv[2],
           reports[1].out.width, reports[1].out.height, reports[1].out.channels);
    fprintf(stderr, "%s, %s: %.3f s\n", done.report.backend, done.report.device,
            done.report.total_seconds);
    goto end;

failed:
    fprintf(stderr, "%s: %s\n", argv[0], error.message);
end: /* freeing or closing NULL does nothing */
    gf_result_free(result);
    gf_engine_close(engine);
    gf_settings_free(counting);
    gf_settings_free(smoothing);
    return (int)status;
}
