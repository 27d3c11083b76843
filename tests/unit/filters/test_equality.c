/* Every backend against golden, bit for bit, for every case of every filter. Sizes, types,
 * channels, contents, strip heights, thread counts and SIMD levels are random. Compares images and
 * every cell of the tables. GF_TEST_ROUNDS lengthens the test, GF_TEST_SEED repeats a failure. */

#include "engine/backend.h"
#include "strip.h"

static uint64_t compared, runs;

/* Result of one backend. */
typedef struct outcome {
    test_image image; /* no memory if the filter makes no image */
    gf_result *result;
} outcome;

static outcome run(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                   const test_image *in, const gf_format *drawn, size_t padding,
                   const char *backend) {
    outcome out = {0};
    if (drawn->width)
        out.image = test_image_new(*drawn, padding);
    const gf_pixels pixels[2] = {{in[0].rows.data, in[0].stride}, {in[1].rows.data, in[1].stride}};
    gf_report report;
    gf_error error = {0};
    if (gf_run_memory(engine, filter, settings, &in->format, pixels, out.image.rows.data,
                      out.image.stride, &out.result, &report, &error))
        fail_msg("%s: %s", backend, error.message);
    assert_string_equal(report.backend, backend); /* verify which backend ran */
    return out;
}

static void outcome_free(outcome *out) {
    test_image_free(&out->image);
    gf_result_free(out->result);
}

static gf_engine *open_backend(const char *backend, const gf_format *format, test_random *random,
                               gf_engine_options *options) {
    const uint64_t strips[] = {0, 1, 2, 3, 17, 64, format->height};
    *options = (gf_engine_options){.backend = backend,
                                   .threads = (uint32_t)(1 + test_below(random, 9)),
                                   .rows_per_strip = strips[test_below(random, 7)]};
    gf_isa isa;
    do
        isa = (gf_isa)test_below(random, GF_ISA_COUNT);
    while (!gf_isa_available(isa));
    options->simd = gf_simd_names()[1 + isa];
    return test_engine(options);
}

/* Compare golden and `backend` on one random image (or pair), with random strip heights and
 * threads. Return false if the case does not apply to the image. */
static bool compare_once(gf_engine *golden, const char *backend, const gf_filter *filter,
                         const char *text, uint64_t seed) {
    test_random random = {seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    gf_format format = test_format(&random), drawn;
    gf_settings *settings = test_settings(filter, text);
    if (gf_filter_output(filter, settings, &format, &drawn, NULL)) {
        gf_settings_free(settings);
        return false;
    }
    test_image in[2];
    for (int i = 0; i < 2; i++)
        in[i] = test_image_new(format, (size_t)test_below(&random, 40));
    test_fill(&in[0], (test_content)test_below(&random, TEST_CONTENT_COUNT), &random);
    if (test_below(&random, 2)) {
        for (uint64_t y = 0; y < format.height; y++)
            memcpy(gf_row(&in[1].rows, y), gf_row(&in[0].rows, y), gf_row_bytes(&format));
        test_disturb(&in[1], &random);
    } else {
        test_fill(&in[1], (test_content)test_below(&random, TEST_CONTENT_COUNT), &random);
    }
    gf_engine_options options;
    gf_engine *engine = open_backend(backend, &format, &random, &options);
    outcome want = run(golden, filter, settings, in, &drawn, 0, "golden");
    outcome got =
        run(engine, filter, settings, in, &drawn, (size_t)test_below(&random, 40), backend);
    gf_engine_close(engine);

    char what[512];
    snprintf(what, sizeof what,
             "%s '%s' on %s: seed %" PRIu64 ", %" PRIu64 "x%" PRIu64
             "x%u %s, threads %u, simd %s, "
             "rows per strip %" PRIu64,
             filter->info.name, text, backend, seed, format.width, format.height, format.channels,
             gf_type_name(format.type), options.threads, options.simd, options.rows_per_strip);
    if ((drawn.width && !test_same(&want.image, &got.image, what)) ||
        !test_same_result(want.result, got.result, what))
        fail_msg("%s differs from golden", backend);
    if (drawn.width && !test_margins_intact(&got.image))
        fail_msg("%s: wrote outside its rows", what);
    compared += format.width * format.height * format.channels * filter->info.inputs;
    runs++;
    outcome_free(&want);
    outcome_free(&got);
    test_image_free(&in[0]);
    test_image_free(&in[1]);
    gf_settings_free(settings);
    return true;
}

/* Compare `backend` with golden for all cases. without_cpu: ignore the filters' CPU functions. */
static void compare_all(const char *backend, bool without_cpu, uint64_t rounds) {
    gf_engine *golden = test_engine(&(gf_engine_options){.backend = "golden"});
    const uint64_t seed = test_environment("GF_TEST_SEED", 1);
    compared = runs = 0;
    for (size_t f = 0; f < gf_filter_count(); f++) {
        const gf_filter *filter = gf_filter_at(f);
        gf_filter bare = *filter;
        bare.cpu = (gf_filter_cpu){0};
        for (size_t c = 0; test_case(filter, c); c++) {
            uint64_t suited = 0;
            for (uint64_t round = 0; round < rounds || (suited == 0 && round < 100); round++)
                suited += compare_once(golden, backend, without_cpu ? &bare : filter,
                                       test_case(filter, c), seed + round * 1000 + c);
            if (suited == 0)
                fail_msg("%s '%s' suits no image", filter->info.name, test_case(filter, c));
        }
    }
    gf_engine_close(golden);
    assert_true(runs > 0);
    print_message("%s: %" PRIu64 " images, %" PRIu64 " samples compared, 0 differences\n", backend,
                  runs, compared);
}

static void cpu_equals_golden(void **state) {
    (void)state;
    compare_all("cpu", false, test_rounds(12));
}

/* Filters without a CPU function: golden computes strips. */
static void golden_strips_equal_golden(void **state) {
    (void)state;
    compare_all("cpu", true, test_rounds(12) / 4 + 1);
}

static void cuda_equals_golden(void **state) {
    (void)state;
    test_needs_gpu();
    compare_all("cuda", false, test_rounds(12));
}

/* Compute one strip at every SIMD level, each in a random number of parts. Return false if the case
 * does not apply to the image. */
static bool strip_on_cpu(const gf_filter *filter, const char *text, uint64_t seed) {
    test_random random = {seed};
    gf_format format = test_format(&random);
    test_strip strip;
    if (!test_strip_new(&strip, filter, text, seed, format, false, 0))
        return false;
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        test_strip_repaint(&strip);
        size_t bytes = gf_cpu_scratch_bytes(filter, strip.plan);
        void *scratch = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
        unsigned char *state = aligned_alloc(64, (strip.state_size + 64) & ~(size_t)63);
        assert_true(scratch && state);
        if (strip.state)
            memcpy(state, strip.state, strip.state_size);
        const uint32_t parts = (uint32_t)(1 + test_below(&random, 5));
        /* Each part has its capacity, followed by painted bytes. */
        size_t capacity = 0;
        if (strip.plan->has_payload)
            capacity = filter->payload->bytes(strip.plan, (strip.out.rows + parts - 1) / parts);
        const size_t stride = (capacity + TEST_MARGIN + 63) & ~(size_t)63;
        unsigned char *payloads = aligned_alloc(64, parts * stride);
        assert_non_null(payloads);
        memset(payloads, TEST_PAINT, parts * stride);
        for (uint32_t part = 0; part < parts; part++) {
            const gf_strip piece = {strip.from, strip.out, state + TEST_MARGIN,
                                    payloads + part * stride};
            assert_int_equal(gf_compute_part(filter, strip.plan, &piece, part, parts, scratch,
                                             (gf_isa)isa, NULL),
                             GF_OK);
            if (!test_painted(payloads + part * stride + capacity, payloads + (part + 1) * stride))
                fail_msg("%s '%s': a payload is too long, seed %" PRIu64, filter->info.name, text,
                         seed);
        }
        test_strip_check(&strip, gf_simd_names()[1 + isa], state, payloads, parts, stride);
        free(scratch);
        free(state);
        free(payloads);
    }
    test_strip_free(&strip);
    return true;
}

/* The CPU functions alone, on rows in painted memory. They write only to the output rows, and a
 * strip from the middle of an image equals the same rows of the whole image. */
static void cpu_strips_stay_inside(void **state) {
    (void)state;
    const uint64_t rounds = test_rounds(12);
    for (size_t f = 0; f < gf_filter_count(); f++) {
        const gf_filter *filter = gf_filter_at(f);
        for (size_t c = 0; test_case(filter, c); c++) {
            uint64_t suited = 0;
            for (uint64_t round = 0; round < rounds || (suited == 0 && round < 100); round++)
                suited += strip_on_cpu(filter, test_case(filter, c), 1 + round * 7919 + c);
            assert_true(suited > 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_equals_golden),
        cmocka_unit_test(golden_strips_equal_golden),
        cmocka_unit_test(cpu_strips_stay_inside),
        cmocka_unit_test(cuda_equals_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
