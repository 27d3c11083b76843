/* The cost model of auto: its inputs, and forecasts for synthetic plans, codecs and machines. */
#include "testing.h"

#include "engine/engine.h"
#include "io/codecs.h"

static gf_forecast expect(const gf_plan *plan, gf_codec_costs codec, gf_auto_machine on) {
    const gf_node node = {.plan = plan};
    const gf_nodes nodes = {&node, 1, 0};
    return gf_auto_expect(&(gf_workload){.nodes = &nodes, .codec = codec}, &on);
}

static void assert_about(double got, double want) {
    if (got < want * 0.999 || got > want * 1.001)
        fail_msg("%g is not about %g", got, want);
}

/* The start-up of a GPU pays off for a large image, not for a small one. */
TEST(auto_includes_the_start_up) {
    const gf_codec_costs none = {0};
    const gf_auto_machine two = {.threads = 2};
    gf_plan plan = {.in = {1000, 1000, 3, GF_U8, false}, .inputs = 1, .cost = 2};
    assert_false(expect(&plan, none, two).cuda);
    plan.in.height = 1000000;
    assert_true(expect(&plan, none, two).cuda);
    /* A slow codec, equal for both backends, hides the gain of a fast kernel. */
    assert_false(expect(&plan, (gf_codec_costs){.decode = 10}, two).cuda);
    assert_false(expect(&plan, (gf_codec_costs){.encode = 10}, two).cuda);
    /* With more cores, the CPU is faster up to larger images. */
    assert_false(expect(&plan, none, (gf_auto_machine){.threads = 64}).cuda);
    /* A started device has no start-up cost. Many images share the cost. */
    plan.in.height = 1000;
    assert_true(expect(&plan, none, (gf_auto_machine){.threads = 2, .cuda_started = true}).cuda);
    const gf_node node = {.plan = &plan};
    const gf_nodes nodes = {&node, 1, 0};
    assert_true(gf_auto_expect(&(gf_workload){.nodes = &nodes, .images = 10000}, &two).cuda);
    assert_false(gf_auto_expect(&(gf_workload){.nodes = &nodes, .images = 10}, &two).cuda);
    /* A thumbnail is still faster on the CPU. */
    plan.in = (gf_format){100, 100, 3, GF_U8, false};
    assert_false(expect(&plan, none, (gf_auto_machine){.threads = 2, .cuda_started = true}).cuda);
}

/* 10^9 samples: a cost of 1 ns is one second of one core. */
TEST(auto_shares_cores_between_stages) {
    const gf_plan plan = {.in = {100000, 10000, 1, GF_U8, false}, .inputs = 1, .cost = 6};
    gf_codec_costs codec = {.decode = 2.5, .encode = 2, .decode_threads = 1, .encode_threads = 1};
    gf_auto_machine on = {.threads = 16, .cuda_started = true};
    /* With enough cores, the slowest stage decides: the decoder with its one thread. */
    assert_about(expect(&plan, codec, on).cpu_seconds, 2.5);
    assert_about(expect(&plan, codec, on).cuda_seconds, 2.5);
    codec.encode = 8;
    assert_about(expect(&plan, codec, on).cpu_seconds, 8);
    /* The encoder's work is divided by its threads, at most one per core. */
    codec.encode_threads = 64;
    assert_about(expect(&plan, codec, on).cpu_seconds, 2.5);
    on.threads = 4;
    assert_about(expect(&plan, codec, on).cpu_seconds, (2.5 + 8 + 6) / 4);
    assert_about(expect(&plan, codec, on).cuda_seconds, (2.5 + 8) / 4);
    assert_true(expect(&plan, codec, on).cuda);
    /* One core runs all stages in sequence. */
    on.threads = 1;
    assert_about(expect(&plan, codec, on).cpu_seconds, 2.5 + 8 + 6);
    assert_about(expect(&plan, codec, on).cuda_seconds, 2.5 + 8);
}

/* Uploads and downloads overlap, each at 10 GB/s per device. */
TEST(auto_divides_transfers_among_devices) {
    gf_plan plan = {.in = {100000, 10000, 1, GF_F32, false}, .inputs = 2, .cost = 100};
    const gf_codec_costs none = {0};
    gf_auto_machine on = {.threads = 2, .cuda_started = true};
    assert_about(expect(&plan, none, on).cuda_seconds, 0.8);
    on.devices = 4;
    assert_about(expect(&plan, none, on).cuda_seconds, 0.2);
    plan.download = 40;
    assert_about(expect(&plan, none, on).cuda_seconds, 1);
    /* More devices do not speed up a slow codec. */
    assert_about(expect(&plan, (gf_codec_costs){.decode = 3}, on).cuda_seconds, 3);
}

/* The model uses the options of the engine. */
TEST(auto_reads_the_engine_options) {
    gf_engine_options options = {.threads = 5};
    AUTO(engine) gf_engine *engine = NULL;
    assert_ok(gf_engine_open(&options, &engine, NULL));
    gf_auto_machine machine = gf_engine_machine(engine);
    assert_int_equal(machine.threads, 5);
    assert_int_equal(machine.devices, 1);
    assert_false(machine.cuda_started);
    engine->options.devices = "0,2,5";
    engine->options.threads = 0;
    machine = gf_engine_machine(engine);
    assert_int_equal(machine.threads, gf_cores());
    assert_int_equal(machine.devices, 3);
}

/* auto replaces a backend that cannot begin; a requested backend is not replaced. */
TEST(only_auto_falls_back) {
    gf_error error = {.status = GF_FAILED, .message = "cuda: device memory: out of memory"};
    char reason[GF_REASON_BYTES];
    gf_engine *engine = NULL;
    gf_started on = {&gf_backend_golden, NULL};
    assert_ok(gf_engine_open(NULL, &engine, NULL));
    assert_true(gf_engine_fall_back(engine, &on, reason, &error));
    assert_ptr_equal(on.backend, &gf_backend_cpu);
    assert_non_null(on.state);
    assert_string_equal(reason, error.message);
    assert_false(gf_engine_fall_back(engine, &on, reason, &error));
    gf_engine_close(engine);
    gf_engine_options options = {.backend = "golden"};
    on.backend = &gf_backend_golden;
    assert_ok(gf_engine_open(&options, &engine, NULL));
    assert_false(gf_engine_fall_back(engine, &on, reason, &error));
    gf_engine_close(engine);
}

/* Sources and sinks report their costs to auto. Without costs, every filter would appear to be the
 * slowest stage of a job. */
TEST(png_has_costs) {
    const char *path = "samples/cutout.png";
    gf_source *source = NULL;
    gf_sink *sink = NULL;
    assert_ok(gf_source_open(path, NULL, &source, &why));
    gf_file_options options = {.write.format = "png"};
    assert_ok(gf_sink_open("/dev/null", &source->format, NULL, &options, 1, &sink, &why));
    assert_true(source->cost > 0);
    assert_true(sink->cost > 0);
    sink->ops->close(sink);
    source->ops->close(source);
}

/* The CPU and a device share many PNG files: both finish after (1 + s/g) / (1/c + 1/g) seconds. */
TEST(shares_many_png_files) {
    gf_forecast many = {.cpu_seconds = 4, .cuda_seconds = 8};
    gf_forecast few = {.cpu_seconds = 0.4, .cuda_seconds = 1};
    gf_forecast parts = few;
    /* 12.4 GB: 0.744 s on the device, after 0.3 s and 0.174 s for a stream of 6.2 MB */
    assert_true(gf_auto_expect_shared(2000, 6.2e6, 1, &many));
    assert_true(many.cuda);
    assert_true(many.cuda_seconds > 1.02 && many.cuda_seconds < 1.03);
    assert_false(gf_auto_expect_shared(200, 6.2e6, 1, &few)); /* the stream takes longer */
    assert_true(few.cpu_seconds == 0.4 && few.cuda_seconds == 1 && !few.cuda);
    assert_true(gf_auto_expect_shared(200, 6.2e6, 24, &parts));
    assert_non_null(strstr(parts.reason, "together"));
}

int main(void) {
    return test_main(NULL);
}
