/* Any filter with any settings on any image: the cpu backend must return golden's bits, for any
 * strips, number of threads and SIMD level.
 *
 * The first bytes of an input give the filter, the strips, the shape of the image and the number of
 * one of the filter's cases. 0 is followed by settings ("radius=3 axis=xy"), ended by a NUL byte.
 * The rest is samples, which are repeated. */
#include "fuzz.h"

#include "testing.h"

typedef struct fuzz_job {
    const gf_filter *filter;
    gf_settings *settings;
    gf_format format, drawn;
    unsigned char *pixels[2];
} fuzz_job;

/* The results of an engine. */
typedef struct fuzz_output {
    gf_status status;
    gf_error error;
    unsigned char *drawn;
    gf_result *result;
} fuzz_output;

static gf_engine *open_engine(const gf_engine_options *options) {
    gf_engine *engine = NULL;
    gf_error error = {0};
    FUZZ_CHECK(gf_engine_open(options, &engine, &error) == GF_OK, "%s", error.message);
    return engine;
}

static fuzz_output run(gf_engine *engine, const fuzz_job *job) {
    const size_t row = gf_row_bytes(&job->format);
    const gf_pixels in[2] = {{job->pixels[0], row}, {job->pixels[1], row}};
    const size_t out_row = job->drawn.width != 0 ? gf_row_bytes(&job->drawn) : 0;
    fuzz_output output = {.drawn = calloc(1, out_row * (size_t)job->drawn.height + 1)};
    if (output.drawn == NULL)
        abort();
    why = (gf_error){0};
    output.status = test_run_memory(&(test_memory){engine, job->filter, job->settings, &job->format,
                                                   in, out_row != 0 ? output.drawn : NULL, out_row,
                                                   .result = &output.result});
    if (output.status != GF_OK)
        fuzz_check_error(output.status, &why);
    output.error = why;
    return output;
}

static void output_free(fuzz_output *output) {
    free(output->drawn);
    gf_result_free(output->result);
}

/* Return false if the settings do not apply to the image. */
static bool read_job(fuzz_bytes *bytes, fuzz_job *job) {
    const uint8_t which = fuzz_byte(bytes), shape = fuzz_byte(bytes), set = fuzz_byte(bytes);
    why = (gf_error){0};
    size_t cases = 0;
    job->filter = gf_filter_at(which % test_filter_count());
    const gf_filter_info *info = gf_filter_describe(job->filter);
    job->format = (gf_format){.width = 1 + fuzz_below(bytes, (shape & 64) != 0 ? 600 : 40),
                              .height = 1 + fuzz_below(bytes, (shape & 64) != 0 ? 8 : 40),
                              .channels = 1 + (shape & 3u),
                              .type = (gf_type)((shape >> 2 & 3) % 3),
                              .alpha = (shape & 1) != 0 && (shape & 32) == 0};
    job->settings = gf_settings_new(info->params, info->param_count);
    if (job->settings == NULL)
        abort();
    while (info->cases[cases] != NULL)
        cases++;
    gf_status status;
    if (set != 0) {
        status = gf_settings_apply_case(job->settings, info->cases[set % cases], &why);
        FUZZ_CHECK(status == GF_OK, "%s", why.message);
    } else {
        char *text = fuzz_text(bytes);
        const size_t length = strlen(text);
        status = gf_settings_apply_case(job->settings, text, &why);
        free(text);
        bytes->data += length < bytes->size ? length + 1 : length;
        bytes->size -= length < bytes->size ? length + 1 : length;
    }
    if (status == GF_OK)
        status = test_filter_output(job->filter, job->settings, &job->format, &job->drawn);
    if (status != GF_OK)
        fuzz_check_error(status, &why);
    return status == GF_OK;
}

static void read_pixels(const fuzz_bytes *bytes, fuzz_job *job) {
    const size_t size = gf_row_bytes(&job->format) * (size_t)job->format.height;
    for (size_t k = 0; k < 2; k++) {
        unsigned char *pixels = job->pixels[k] = malloc(size);
        if (pixels == NULL)
            abort();
        for (size_t i = 0; i < size; i++)
            pixels[i] = bytes->size == 0 ? (unsigned char)i : bytes->data[i % bytes->size];
        /* The second image differs from the first in one byte. */
        if (k == 1 && bytes->size > 2)
            pixels[bytes->data[0] * 251u % size] ^= bytes->data[1];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t strips[] = {0, 1, 2, 3, 7, 16, 33, 1000};
    static gf_engine *golden;
    fuzz_bytes bytes = {data, size};
    const uint8_t cut = fuzz_byte(&bytes);
    fuzz_job job = {0};
    if (golden == NULL)
        golden = open_engine(&(gf_engine_options){.backend = "golden", .max_memory = 16 << 20});
    if (read_job(&bytes, &job)) {
        gf_engine_options options = {.backend = "cpu",
                                     .threads = 1 + (cut >> 3 & 3),
                                     .unthreaded = cut >= 0xc0,
                                     .rows_per_strip = strips[cut & 7],
                                     .max_memory = 16 << 20};
        gf_isa isa = (gf_isa)(size % GF_ISA_COUNT);
        options.simd = gf_names(GF_NAMES_SIMD)[gf_isa_available(isa) ? 1 + (int)isa : 0];
        options.threads = options.unthreaded ? 1 : options.threads;
        read_pixels(&bytes, &job);
        gf_engine *engine = open_engine(&options);
        fuzz_output want = run(golden, &job), got = run(engine, &job);
        gf_engine_close(engine);
        /* The backends need different amounts of memory. */
        const bool limit = strstr(want.error.message, "--max-memory") != NULL ||
                           strstr(got.error.message, "--max-memory") != NULL;
        FUZZ_CHECK(want.status == got.status || limit, "golden %d, cpu %d: %s%s", (int)want.status,
                   (int)got.status, want.error.message, got.error.message);
        if (want.status == GF_OK && got.status == GF_OK) {
            const size_t row = job.drawn.width != 0 ? gf_row_bytes(&job.drawn) : 0;
            FUZZ_CHECK(memcmp(want.drawn, got.drawn, row * (size_t)job.drawn.height) == 0,
                       "%s: different pixels", gf_filter_describe(job.filter)->name);
            FUZZ_CHECK(test_same_result(want.result, got.result, "result"), "different results");
        }
        output_free(&want);
        output_free(&got);
    }
    gf_settings_free(job.settings);
    free(job.pixels[0]);
    free(job.pixels[1]);
    return 0;
}
