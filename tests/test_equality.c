/* Every backend against golden, to the bit, for every case of every filter: random sizes, types,
 * channels, contents, band heights, thread counts, SIMD levels. GF_TEST_ROUNDS and GF_TEST_SEED
 * make it longer or run a failure again. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "testing.h"

static uint64_t compared, runs;

static gf_engine *open_engine(const gf_engine_options *options) {
    gf_engine *engine = NULL;
    gf_error error = {0};
    if (gf_engine_open(options, &engine, &error))
        fail_msg("%s", error.message);
    return engine;
}

static void run(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                const test_image *in, const test_image *out, const char *backend) {
    gf_report report;
    gf_error error = {0};
    if (gf_run_memory(engine, filter, settings, &in->format, in->rows.data, in->stride,
                      out->rows.data, out->stride, &report, &error))
        fail_msg("%s: %s", backend, error.message);
    assert_string_equal(report.backend, backend); /* prove what ran */
}

/* One random image through golden and through `backend` with random ways of cutting it up. */
static void compare_once(gf_engine *golden, const char *backend, const gf_filter *filter,
                         const char *text, uint64_t seed) {
    test_random random = {seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    gf_format format = test_format(&random);
    gf_settings *settings = test_settings(filter, text);
    test_image in = test_image_new(format, (size_t)test_below(&random, 40));
    test_image want = test_image_new(format, (size_t)test_below(&random, 40));
    test_image got = test_image_new(format, (size_t)test_below(&random, 40));
    test_fill(&in, (test_content)test_below(&random, TEST_CONTENT_COUNT), &random);
    run(golden, filter, settings, &in, &want, "golden");

    const uint64_t bands[] = {0, 1, 2, 3, 17, 64, format.height};
    gf_engine_options options = {.backend = backend,
                                 .threads = (uint32_t)(1 + test_below(&random, 3)),
                                 .band_rows = bands[test_below(&random, 7)]};
    gf_isa isa;
    do
        isa = (gf_isa)test_below(&random, GF_ISA_COUNT);
    while (!gf_isa_available(isa));
    options.simd = gf_simd_names()[1 + isa];
    gf_engine *engine = open_engine(&options);
    run(engine, filter, settings, &in, &got, backend);
    gf_engine_close(engine);

    char what[512];
    snprintf(what, sizeof what,
             "%s '%s' on %s: seed %" PRIu64 ", %" PRIu64 "x%" PRIu64
             "x%u %s, threads %u, simd %s, "
             "band rows %" PRIu64,
             filter->info.name, text, backend, seed, format.width, format.height, format.channels,
             gf_type_name(format.type), options.threads, options.simd, options.band_rows);
    if (!test_same(&want, &got, what))
        fail_msg("%s differs from golden", backend);
    if (!test_margins_intact(&got))
        fail_msg("%s: wrote outside its rows", what);
    compared += format.width * format.height * format.channels;
    runs++;
    test_image_free(&in);
    test_image_free(&want);
    test_image_free(&got);
    gf_settings_free(settings);
}

static void compare_all(const char *backend, uint64_t rounds) {
    gf_engine *golden = open_engine(&(gf_engine_options){.backend = "golden"});
    const uint64_t seed = test_environment("GF_TEST_SEED", 1);
    compared = runs = 0;
    for (size_t f = 0; f < gf_filter_count(); f++) {
        const gf_filter *filter = gf_filter_at(f);
        for (size_t c = 0; filter->cases[c]; c++)
            for (uint64_t round = 0; round < rounds; round++)
                compare_once(golden, backend, filter, filter->cases[c], seed + round * 1000 + c);
    }
    gf_engine_close(golden);
    assert_true(runs > 0);
    print_message("%s: %" PRIu64 " images, %" PRIu64 " samples compared, 0 differences\n", backend,
                  runs, compared);
}

static void cpu_equals_golden(void **state) {
    (void)state;
    compare_all("cpu", test_environment("GF_TEST_ROUNDS", 12));
}

static void cuda_equals_golden(void **state) {
    (void)state;
    if (!test_has_cuda())
        skip();
    compare_all("cuda", test_environment("GF_TEST_ROUNDS", 12));
}

/* One band by every SIMD level, each in a random number of parts. */
static void band_on_cpu(const gf_filter *filter, const char *text, uint64_t seed) {
    test_random random = {seed};
    gf_format format = test_format(&random);
    test_band band = test_band_new(filter, text, seed, format, false, 0);
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        test_band_repaint(&band);
        size_t bytes = filter->cpu.scratch_bytes(band.plan);
        void *scratch = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
        assert_non_null(scratch);
        uint32_t parts = (uint32_t)(1 + test_below(&random, 5));
        for (uint32_t part = 0; part < parts; part++)
            filter->cpu.run(band.plan, &band.from, &band.out, part, parts, scratch, (gf_isa)isa);
        free(scratch);
        test_band_check(&band, gf_simd_names()[1 + isa]);
    }
    test_band_free(&band);
}

/* The CPU functions alone, on rows in painted memory: nothing is written outside the output rows,
 * and a band in the middle of an image gives what the whole image gives. */
static void cpu_bands_stay_inside(void **state) {
    (void)state;
    const uint64_t rounds = test_environment("GF_TEST_ROUNDS", 12);
    for (size_t f = 0; f < gf_filter_count(); f++)
        for (size_t c = 0; gf_filter_at(f)->cases[c]; c++)
            for (uint64_t round = 0; round < rounds; round++)
                band_on_cpu(gf_filter_at(f), gf_filter_at(f)->cases[c], 1 + round * 7919 + c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_equals_golden),
        cmocka_unit_test(cpu_bands_stay_inside),
        cmocka_unit_test(cuda_equals_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
