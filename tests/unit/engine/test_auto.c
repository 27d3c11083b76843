/* What auto expects of made-up plans, codecs and machines, and what it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "io/io.h"

static gf_forecast expect(const gf_plan *plan, gf_codec_costs codec, gf_auto_machine on) {
    gf_forecast forecast;
    gf_auto_expect(plan, &codec, &on, &forecast);
    return forecast;
}

static void assert_about(double got, double want) {
    if (got < want * 0.999 || got > want * 1.001)
        fail_msg("%g is not about %g", got, want);
}

/* A GPU's start-up is never paid for a small image, and is for a long enough one. */
static void auto_weighs_the_start_up(void **state) {
    (void)state;
    const gf_codec_costs none = {0};
    const gf_auto_machine two = {.threads = 2};
    gf_plan plan = {.in = {1000, 1000, 3, GF_U8}, .inputs = 1, .cost = 2};
    assert_false(expect(&plan, none, two).cuda);
    plan.in.height = 1000000;
    assert_true(expect(&plan, none, two).cuda);
    /* Behind a slow codec, which is the same on both sides, a fast kernel gains nothing. */
    assert_false(expect(&plan, (gf_codec_costs){.decode = 10}, two).cuda);
    assert_false(expect(&plan, (gf_codec_costs){.encode = 10}, two).cuda);
    /* On more cores the CPU wins for longer. */
    assert_false(expect(&plan, none, (gf_auto_machine){.threads = 64}).cuda);
    /* Once started, it is free; for many images, nearly so. */
    plan.in.height = 1000;
    assert_true(expect(&plan, none, (gf_auto_machine){.threads = 2, .cuda_started = true}).cuda);
    assert_true(expect(&plan, none, (gf_auto_machine){.threads = 2, .images = 10000}).cuda);
    assert_false(expect(&plan, none, (gf_auto_machine){.threads = 2, .images = 10}).cuda);
    /* But not for a thumbnail. */
    plan.in = (gf_format){100, 100, 3, GF_U8};
    assert_false(expect(&plan, none, (gf_auto_machine){.threads = 2, .cuda_started = true}).cuda);
}

/* 10^9 samples: a cost of 1 ns is a second of one core. */
static void auto_adds_up_what_shares_the_cores(void **state) {
    (void)state;
    const gf_plan plan = {.in = {100000, 10000, 1, GF_U8}, .inputs = 1, .cost = 6};
    gf_codec_costs codec = {.decode = 2.5, .encode = 2, .decode_threads = 1, .encode_threads = 1};
    gf_auto_machine on = {.threads = 16, .cuda_started = true};
    /* Enough cores: the slowest stage, which is the decoder in its one thread. */
    assert_about(expect(&plan, codec, on).cpu_seconds, 2.5);
    assert_about(expect(&plan, codec, on).cuda_seconds, 2.5);
    codec.encode = 8;
    assert_about(expect(&plan, codec, on).cpu_seconds, 8);
    /* The encoder's work divided by its threads, of which there are no more than cores. */
    codec.encode_threads = 64;
    assert_about(expect(&plan, codec, on).cpu_seconds, 2.5);
    on.threads = 4;
    assert_about(expect(&plan, codec, on).cpu_seconds, (2.5 + 8 + 6) / 4);
    assert_about(expect(&plan, codec, on).cuda_seconds, (2.5 + 8) / 4);
    assert_true(expect(&plan, codec, on).cuda);
    /* One core does everything, one after the other. */
    on.threads = 1;
    assert_about(expect(&plan, codec, on).cpu_seconds, 2.5 + 8 + 6);
    assert_about(expect(&plan, codec, on).cuda_seconds, 2.5 + 8);
}

/* Uploads and what comes back, at 10 GB/s and by all devices at a time. */
static void auto_divides_transfers_among_devices(void **state) {
    (void)state;
    gf_plan plan = {.in = {100000, 10000, 1, GF_F32}, .inputs = 2, .cost = 100};
    const gf_codec_costs none = {0};
    gf_auto_machine on = {.threads = 2, .cuda_started = true};
    assert_about(expect(&plan, none, on).cuda_seconds, 0.8);
    on.devices = 4;
    assert_about(expect(&plan, none, on).cuda_seconds, 0.2);
    plan.download = 40;
    assert_about(expect(&plan, none, on).cuda_seconds, 1);
    /* What a codec cannot deliver, no number of devices takes. */
    assert_about(expect(&plan, (gf_codec_costs){.decode = 3}, on).cuda_seconds, 3);
}

/* The engine tells the model what it was opened with. */
static void auto_knows_its_machine(void **state) {
    (void)state;
    gf_engine_options options = {.threads = 5};
    gf_engine *engine = NULL;
    assert_int_equal(gf_engine_open(&options, &engine, NULL), GF_OK);
    gf_auto_machine machine = gf_engine_machine(engine);
    assert_int_equal(machine.threads, 5);
    assert_int_equal(machine.devices, 1);
    assert_false(machine.cuda_started);
    engine->options.devices = "0,2,5";
    engine->options.threads = 0;
    machine = gf_engine_machine(engine);
    assert_int_equal(machine.threads, gf_cores());
    assert_int_equal(machine.devices, 3);
    gf_engine_close(engine);
}

/* A backend that cannot begin is replaced under auto, never where it was asked for. */
static void only_auto_falls_back(void **state) {
    (void)state;
    gf_error error = {.status = GF_FAILED, .message = "cuda: device memory: out of memory"};
    char reason[64];
    void *backend_state = NULL;
    gf_engine *engine = NULL;
    const gf_backend *backend = &gf_backend_golden;
    assert_int_equal(gf_engine_open(NULL, &engine, NULL), GF_OK);
    assert_true(
        gf_engine_fall_back(engine, &backend, &backend_state, reason, sizeof reason, &error));
    assert_ptr_equal(backend, &gf_backend_cpu);
    assert_non_null(backend_state);
    assert_string_equal(reason, error.message);
    assert_false(
        gf_engine_fall_back(engine, &backend, &backend_state, reason, sizeof reason, &error));
    gf_engine_close(engine);
    gf_engine_options options = {.backend = "golden"};
    backend = &gf_backend_golden;
    assert_int_equal(gf_engine_open(&options, &engine, NULL), GF_OK);
    assert_false(
        gf_engine_fall_back(engine, &backend, &backend_state, reason, sizeof reason, &error));
    gf_engine_close(engine);
}

/* A source and a sink tell auto what they cost; without that every filter would look like the
 * slowest part of a job. */
static void png_costs_something(void **state) {
    (void)state;
    const char *path = "samples/cutout.png";
    gf_source *source = NULL;
    gf_sink *sink = NULL;
    gf_error error = {0};
    if (gf_source_open(path, NULL, &source, &error))
        fail_msg("%s", error.message);
    gf_file_options options = {.format = "png"};
    if (gf_sink_open("/dev/null", &source->format, NULL, &options, 1, &sink, &error))
        fail_msg("%s", error.message);
    assert_true(source->cost > 0);
    assert_true(sink->cost > 0);
    sink->ops->close(sink);
    source->ops->close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_weighs_the_start_up),
        cmocka_unit_test(auto_adds_up_what_shares_the_cores),
        cmocka_unit_test(auto_divides_transfers_among_devices),
        cmocka_unit_test(auto_knows_its_machine),
        cmocka_unit_test(only_auto_falls_back),
        cmocka_unit_test(png_costs_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
