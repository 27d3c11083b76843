/* Every backend against golden, bit for bit, for every case of every filter. Sizes, types,
 * channels, contents, strip heights, thread counts and SIMD levels are random. Compares images and
 * every cell of the tables. GF_TEST_ROUNDS lengthens the test, GF_TEST_SEED repeats a failure. */

#include "backend/backend.h"
#include "job.h"
#include "strip.h"

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
    options->simd = gf_names(GF_NAMES_SIMD)[1 + isa];
    return test_engine(options);
}

typedef struct comparison {
    gf_engine *golden;
    gf_engine *device; /* runs the images in device memory; NULL: open an engine for each */
    const char *backend;
    bool without_cpu; /* ignore the filters' CPU functions */
    uint64_t samples; /* compared */
} comparison;

/* Compare golden and the backend on one random image (or pair). */
static bool compare_once(void *context, const gf_filter *filter, const char *text, uint64_t seed) {
    comparison *all = context;
    gf_filter bare = *filter;
    test_random random = test_seeded(seed);
    const gf_format format = test_format(&random);
    test_job job;
    bare.cpu = (gf_filter_cpu){0};
    if (!test_job_new(&job, all->without_cpu ? &bare : filter, text, format, &random))
        return false;
    test_job_fill(&job, &random);
    gf_engine_options options = {.backend = all->backend};
    if (all->device && test_reads_twice(text)) {
        test_job_free(&job);
        return true;
    }
    test_outcome want = test_run(&job, all->golden, 0), got;
    if (all->device) {
        got = test_job_on_device(&job, all->device, &random, NULL);
    } else { /* with random strip heights and threads */
        gf_engine *engine = open_backend(all->backend, &format, &random, &options);
        got = test_run(&job, engine, (size_t)test_below(&random, 40));
        gf_engine_close(engine);
        assert_string_equal(got.report.backend, all->backend); /* verify which backend ran */
    }
    char what[512];
    test_describe(what, &job, seed, &options);
    test_check_outcome(&want, &got, what);
    all->samples += format.width * format.height * format.channels * filter->info.inputs;
    test_outcome_free(&want);
    test_outcome_free(&got);
    test_job_free(&job);
    return true;
}

/* Compare a backend with golden for all cases. */
static void compare_all(comparison all, uint64_t rounds) {
    all.golden = test_engine(&(gf_engine_options){.backend = "golden"});
    const uint64_t images = test_each_case(compare_once, &all, rounds, true);
    gf_engine_close(all.golden);
    print_message("%s: %" PRIu64 " images, %" PRIu64 " samples compared, 0 differences\n",
                  all.backend, images, all.samples);
}

TEST(cpu_equals_golden) {
    compare_all((comparison){.backend = "cpu"}, test_rounds(12));
}

/* Filters without a CPU function: golden computes strips. */
TEST(golden_strips_equal_golden) {
    compare_all((comparison){.backend = "cpu", .without_cpu = true}, test_rounds(12) / 4 + 1);
}

TEST(cuda_equals_golden) {
    test_needs_gpu();
    compare_all((comparison){.backend = "cuda"}, test_rounds(12));
}

/* Images in device memory, with random strides and alignments. */
TEST(device_memory_equals_golden) {
    test_needs_gpu();
    AUTO(engine) gf_engine *device = test_engine(&(gf_engine_options){.backend = "cuda"});
    compare_all((comparison){.backend = "device memory", .device = device}, test_rounds(12));
}

/* Compute one strip at every SIMD level, each in a random number of parts. */
static bool strip_on_cpu(void *context, const gf_filter *filter, const char *text, uint64_t seed) {
    test_random random = test_seeded(seed);
    gf_format format = test_format(&random);
    test_strip strip;
    if (!test_strip_new(&strip, filter, text, seed, format, false, 0))
        return false;
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        test_strip_repaint(&strip);
        size_t bytes = gf_cpu_scratch_bytes(strip.plan);
        AUTO(free) void *scratch = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
        AUTO(free) unsigned char *state = aligned_alloc(64, (strip.state_size + 64) & ~(size_t)63);
        assert_true(scratch && state);
        if (strip.state)
            memcpy(state, strip.state, strip.state_size);
        const uint32_t parts = (uint32_t)(1 + test_below(&random, 5));
        /* Each part has its capacity, followed by painted bytes. */
        size_t capacity = 0;
        if (strip.plan->has_payload)
            capacity = filter->payload->bytes(strip.plan, (strip.out.rows + parts - 1) / parts);
        const size_t stride = (capacity + TEST_MARGIN + 63) & ~(size_t)63;
        AUTO(free) unsigned char *payloads = aligned_alloc(64, parts * stride);
        assert_non_null(payloads);
        memset(payloads, TEST_PAINT, parts * stride);
        for (uint32_t part = 0; part < parts; part++) {
            const gf_strip piece = {.in = {strip.from[0], strip.from[1]},
                                    .out = strip.out,
                                    .records = strip.records,
                                    .state = state + TEST_MARGIN,
                                    .payload = payloads + part * stride,
                                    .constants = strip.plan->constants};
            assert_ok(gf_compute_part(strip.plan, &piece, part, parts, scratch, (gf_isa)isa, NULL));
            if (!test_painted(payloads + part * stride + capacity, payloads + (part + 1) * stride))
                fail_msg("%s '%s': a payload is too long, seed %" PRIu64, filter->info.name, text,
                         seed);
        }
        test_strip_check(&strip, gf_names(GF_NAMES_SIMD)[1 + isa], state, payloads, parts, stride);
    }
    test_strip_free(&strip);
    return true;
}

/* The CPU functions alone, on rows in painted memory. They write only to the output rows, and a
 * strip from the middle of an image equals the same rows of the whole image. */
TEST(cpu_strips_stay_inside) {
    test_each_case(strip_on_cpu, NULL, test_rounds(12), true);
}

int main(void) {
    return test_main(NULL);
}
