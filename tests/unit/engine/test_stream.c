/* The stream between a source and a sink: order, halo, failures on either side, memory, threads. */
#include <pthread.h>

#include "core/error.h"
#include "core/result.h"
#include "engine/engine.h"
#include "engine/pipeline/pipeline.h"
#include "testing.h"

#include "counting.h"

typedef struct outcome {
    gf_status status;
    gf_error error;
    gf_report report;
    uint64_t read, written;
    bool finished, read_here;
} outcome;

/* Identity, so that the sink can identify rows. */
static const char plain[] = "stages=enhance gain=1";
enum { HALO = 3 };
static const char with_halo[] = "axis=y"; /* HALO rows on each side */

static outcome stream_by(bool unthreaded, counting_source source, const char *text, uint64_t height,
                         uint64_t rows_per_strip, uint64_t sink_fails, uint64_t max_memory) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    gf_plan *plan = NULL;
    assert_ok(
        gf_plan_new(filter, settings, &(gf_format){77, height, 1, GF_U8, false}, &plan, NULL));
    source.base.ops = &source_ops;
    source.base.format = plan->in;
    counting_sink sink = {.base = {.ops = &sink_ops},
                          .format = &plan->out,
                          .fail_at = sink_fails,
                          .checks_rows = gf_map_one_to_one(plan)};
    void *state;
    gf_engine_options options = {.threads = unthreaded ? 1 : 2, .unthreaded = unthreaded};
    assert_ok(gf_backend_cpu.open(&options, &state, NULL));
    outcome result = {0};
    gf_inputs inputs = {.count = 1, .sources = {&source.base}};
    const gf_node node = {.plan = plan};
    const gf_nodes nodes = {&node, 1, 2};
    gf_delivery delivery = {.nodes = &nodes,
                            .written = &(gf_written){.edge = 1, .sink = &sink.base},
                            .written_count = 1,
                            .report = &result.report};
    gf_delivery_init(&delivery);
    gf_stream_job job = {.name = "test",
                         .nodes = &nodes,
                         .on = {&gf_backend_cpu, state},
                         .consumer = &delivery.base,
                         .rows_per_strip = rows_per_strip,
                         .max_memory = max_memory,
                         .unthreaded = unthreaded};
    result.status = gf_stream_run(&job, &inputs, &result.report, NULL, &result.error);
    result.read = source.next;
    result.written = sink.next;
    result.finished = source.finished;
    result.read_here = pthread_equal(source.reader, pthread_self());
    gf_backend_cpu.close(state);
    gf_plan_free(plan);
    return result;
}

static outcome stream_from(counting_source source, const char *text, uint64_t height,
                           uint64_t rows_per_strip, uint64_t sink_fails, uint64_t max_memory) {
    return stream_by(false, source, text, height, rows_per_strip, sink_fails, max_memory);
}

static outcome stream(const char *text, uint64_t height, uint64_t rows_per_strip,
                      uint64_t source_fails, uint64_t sink_fails, uint64_t max_memory) {
    return stream_from((counting_source){.fail_at = source_fails}, text, height, rows_per_strip,
                       sink_fails, max_memory);
}

TEST(every_row_once_in_order) {
    const uint64_t strips[] = {0, 1, 2, 3, 5, 64, 99, 100, 101, 1000};
    for (size_t i = 0; i < sizeof strips / sizeof strips[0]; i++) {
        outcome result = stream(i % 2 ? plain : with_halo, 100, strips[i], NEVER, NEVER, 1 << 30);
        assert_int_equal(result.status, GF_OK);
        assert_int_equal(result.read, 100);
        assert_int_equal(result.written, 100);
        assert_true(result.finished);
        if (strips[i]) {
            uint64_t rows = strips[i] < 100 ? strips[i] : 100;
            assert_int_equal(result.report.rows_per_strip, rows);
            /* The last rows of a halo are due in further strips. */
            const uint64_t due = rows < 100 && i % 2 == 0 ? 100 + HALO : 100;
            assert_int_equal(result.report.strips, (due + rows - 1) / rows);
        }
    }
}

TEST(a_failing_source_stops_the_stream) {
    for (uint64_t at = 0; at <= 40; at++) {
        outcome result = stream(plain, 40, 3, at, NEVER, 1 << 30);
        assert_int_equal(result.status, GF_FAILED);
        assert_non_null(strstr(result.error.message, "source: "));
        assert_true(result.written <= at);
        assert_int_equal(result.read, at);
    }
}

TEST(a_failing_sink_stops_the_stream) {
    for (uint64_t at = 0; at < 40; at++) {
        outcome result = stream(plain, 40, 3, NEVER, at, 1 << 30);
        assert_int_equal(result.status, GF_FAILED);
        assert_non_null(strstr(result.error.message, "sink: "));
        assert_int_equal(result.written, at);
    }
}

TEST(memory_bounds_the_strips) {
    /* A row needs 128 bytes in a strip (77, rounded up). 4096 bytes hold two slots with 8 rows in
     * and 8 rows out each. */
    outcome result = stream(plain, 1000, 0, NEVER, NEVER, 4096);
    assert_int_equal(result.status, GF_OK);
    assert_true(result.report.rows_per_strip <= 8);
    assert_int_equal(result.written, 1000);
    /* The image fits in one strip, but only smaller strips fit in memory. */
    result = stream(with_halo, 20, 0, NEVER, NEVER, 5000);
    assert_int_equal(result.status, GF_OK);
    assert_int_equal(result.read, 20);
    assert_int_equal(result.written, 20);
    assert_true(result.report.strips > 1);
    /* The minimum is one row in and one row out. */
    result = stream(plain, 1000, 0, NEVER, NEVER, 256);
    assert_int_equal(result.status, GF_OK);
    assert_int_equal(result.report.rows_per_strip, 1);
    assert_int_equal(result.written, 1000);
    result = stream(plain, 1000, 0, NEVER, NEVER, 255);
    assert_int_equal(result.status, GF_FAILED);
    assert_non_null(strstr(result.error.message, "--max-memory"));
    result = stream(plain, 1000, 500, NEVER, NEVER, 4096);
    assert_int_equal(result.status, GF_FAILED);
}

/* Two inputs are read together: the strips hold the same rows of both. A failure of either stops
 * the stream, and the other one is not finished. */
TEST(two_inputs_are_read_together) {
    const gf_filter *filter = gf_filter_find("compare");
    const gf_format format = {77, 40, 1, GF_U8, false};
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    gf_engine_options options = {.threads = 2};
    void *cpu;
    assert_ok(gf_backend_cpu.open(&options, &cpu, NULL));
    for (uint64_t at = 0; at < 2 * 41 + 1; at++)
        for (uint64_t rows = 0; rows <= 41; rows += 5) {
            counting_source sources[2] = {{.fail_at = at < 41 ? at : NEVER},
                                          {.fail_at = at >= 41 && at < 82 ? at - 41 : NEVER}};
            gf_inputs inputs = {.count = 2, .sources = {&sources[0].base, &sources[1].base}};
            gf_report report = {0};
            gf_plan *plan = NULL;
            void *data = NULL;
            const gf_measure_options keep = {.name = "test"};
            assert_ok(gf_plan_new(filter, settings, &format, &plan, NULL));
            assert_ok(filter->measure->open(plan, &keep, &data, NULL));
            for (int i = 0; i < 2; i++) {
                sources[i].base.ops = &source_ops;
                sources[i].base.format = format;
            }
            const gf_node node = {.plan = plan};
            const gf_nodes nodes = {&node, 1, 0};
            gf_delivery delivery = {.nodes = &nodes,
                                    .node = {{.measure = filter->measure, .data = data}},
                                    .report = &report};
            gf_delivery_init(&delivery);
            const gf_stream_job job = {.name = "test",
                                       .nodes = &nodes,
                                       .on = {&gf_backend_cpu, cpu},
                                       .consumer = &delivery.base,
                                       .rows_per_strip = rows,
                                       .max_memory = 1 << 30};
            const gf_status status = gf_stream_run(&job, &inputs, &report, NULL, &why);
            assert_int_equal(status, at < 82 ? GF_FAILED : GF_OK);
            assert_true(!status || strstr(why.message, "source: "));
            assert_true(sources[1].next <= sources[0].next);
            assert_true(status || (sources[0].next == 40 && sources[1].next == 40));
            assert_true(sources[0].finished == (status == GF_OK || at == 40 || at == 81));
            assert_true(sources[1].finished == (status == GF_OK || at == 81));
            if (!status) {
                AUTO(result) gf_result *result = NULL;
                assert_ok(gf_result_new(filter, plan, data, &result, NULL));
                assert_true(gf_result_passed(result)); /* equal rows are side by side */
                continue;
            }
            filter->measure->close(data);
            gf_plan_free(plan);
        }
    gf_backend_cpu.close(cpu);
}

/* ---- the ring -------------------------------------------------------------------------------- */

/* A thread costs more than an image of one strip. With more strips, a separate thread reads. */
TEST(one_strip_needs_no_thread) {
    assert_true(stream(plain, 40, 40, NEVER, NEVER, 1 << 30).read_here);
    assert_true(stream(with_halo, 40, 40, NEVER, NEVER, 1 << 30).read_here);
    assert_false(stream(plain, 40, 39, NEVER, NEVER, 1 << 30).read_here);
    outcome result = stream(plain, 40, 40, NEVER, 0, 1 << 30);
    assert_int_equal(result.status, GF_FAILED);
    assert_non_null(strstr(result.error.message, "sink: row 0"));
    result = stream(plain, 40, 40, 40, NEVER, 1 << 30);
    assert_int_equal(result.status, GF_FAILED);
    assert_non_null(strstr(result.error.message, "source: the end"));
    assert_int_equal(result.written, 0);
}

/* Every strip is written before the next is read, and the source ends before the last write. */
TEST(unthreaded_alternates) {
    const uint64_t strips[] = {0, 1, 2, 3, 7, 39, 40, 41};
    for (size_t i = 0; i < 2 * sizeof strips / sizeof strips[0]; i++) {
        const uint64_t rows = strips[i / 2];
        const char *text = i % 2 ? plain : with_halo;
        const counting_source source = {.fail_at = NEVER}, fails_at_end = {.fail_at = 40};
        outcome result = stream_by(true, source, text, 40, rows, NEVER, 1 << 30);
        assert_int_equal(result.status, GF_OK);
        assert_true(result.read_here && result.finished);
        assert_int_equal(result.read, 40);
        assert_int_equal(result.written, 40);
        result = stream_by(true, fails_at_end, text, 40, rows, NEVER, 1 << 30);
        assert_non_null(strstr(result.error.message, "source: the end"));
        const uint64_t due = (result.report.strips - 1) * result.report.rows_per_strip;
        assert_int_equal(result.written, i % 2 || due == 0 ? due : due - HALO);
        for (uint64_t at = 0; at < 40; at++) {
            const counting_source fails = {.fail_at = at};
            result = stream_by(true, fails, text, 40, rows, NEVER, 1 << 30);
            assert_non_null(strstr(result.error.message, "source: "));
            assert_true(result.written <= at);
            result = stream_by(true, source, text, 40, rows, at, 1 << 30);
            assert_non_null(strstr(result.error.message, "sink: "));
            assert_int_equal(result.written, at);
        }
    }
}

/* Ten reads of 5 ms each; computing and writing take less. */
TEST(busy_times_cover_the_work) {
    const counting_source slow = {.fail_at = NEVER, .pause = 5000000};
    for (uint64_t rows = 4; rows <= 40; rows += 36) {
        outcome result = stream_from(slow, plain, 40, rows, NEVER, 1 << 30);
        const gf_busy *busy = result.report.busy;
        const double min = 0.005 * (double)result.report.strips;
        assert_int_equal(result.status, GF_OK);
        assert_int_equal(busy[GF_DECODING].workers, 1);
        assert_true(busy[GF_DECODING].seconds >= min);
        assert_true(busy[GF_COMPUTING].workers > 0 && busy[GF_COMPUTING].workers <= 2);
        assert_true(busy[GF_COMPUTING].seconds > 0 && busy[GF_COMPUTING].seconds < min);
        assert_int_equal(busy[GF_ENCODING].workers, 1);
        assert_true(busy[GF_ENCODING].seconds > 0 && busy[GF_ENCODING].seconds < min);
        assert_int_equal(busy[GF_UPLOADING].workers, 0);
        assert_int_equal(busy[GF_DOWNLOADING].workers, 0);
    }
    /* A source with its own threads measures its busy time itself. */
    counting_source shared = {.base = {.threads = 3, .busy_seconds = 7}, .fail_at = NEVER};
    outcome result = stream_from(shared, plain, 40, 4, NEVER, 1 << 30);
    assert_int_equal(result.report.busy[GF_DECODING].workers, 3);
    assert_true(result.report.busy[GF_DECODING].seconds == 7);
}

TEST(stages_have_names) {
    assert_string_equal(gf_names(GF_NAMES_STAGE)[GF_DECODING], "decoding");
    assert_string_equal(gf_names(GF_NAMES_STAGE)[GF_UPLOADING], "uploading");
    assert_string_equal(gf_names(GF_NAMES_STAGE)[GF_COMPUTING], "computing");
    assert_string_equal(gf_names(GF_NAMES_STAGE)[GF_DOWNLOADING], "downloading");
    assert_string_equal(gf_names(GF_NAMES_STAGE)[GF_ENCODING], "encoding");
    assert_null(gf_names(GF_NAMES_STAGE)[GF_STAGE_COUNT]);
}

/* Golden processes the image as one strip, regardless of rows_per_strip. */
TEST(golden_runs_one_strip) {
    gf_format format = {31, 57, 3, GF_U8, false};
    AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    gf_engine_options options = {.backend = "golden", .rows_per_strip = 4};
    AUTO(engine) gf_engine *engine = NULL;
    gf_report report;
    assert_ok(gf_engine_open(&options, &engine, NULL));
    const gf_pixels pixels = {in.rows.data, in.stride};
    assert_ok(
        test_run_memory(&(test_memory){engine, gf_filter_find("smooth"), settings, &format, &pixels,
                                       out.rows.data, out.stride, .report = &report}));
    assert_int_equal(report.strips, 1);
}

int main(void) {
    return test_main(NULL);
}
