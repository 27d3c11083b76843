/* The stream between a source and a sink: order, halo, failure on either side, memory. */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/stream.h"
#include "error.h"
#include "testing.h"

/* A source and a sink that count, check the order, and fail where they are told to. */
typedef struct counting_source {
    gf_source base;
    uint64_t next, fail_at;
    bool finished;
    pthread_t reader; /* the thread of its last read */
    long pause;       /* nanoseconds a read takes */
} counting_source;

typedef struct counting_sink {
    gf_sink base;
    const gf_format *format;
    uint64_t next, fail_at;
    bool knows_rows;
} counting_sink;

/* Row y is y, repeated. */
static gf_status read_rows(gf_source *base, void *dst, size_t stride, uint64_t rows,
                           gf_error *error) {
    counting_source *source = (counting_source *)base;
    source->reader = pthread_self();
    nanosleep(&(struct timespec){.tv_nsec = source->pause}, NULL);
    for (uint64_t i = 0; i < rows; i++) {
        if (source->next == source->fail_at)
            return gf_fail(error, GF_FAILED, "source: row %" PRIu64, source->next);
        assert_true(source->next < base->format.height);
        memset((unsigned char *)dst + i * stride, (int)(source->next++ & 0xff),
               gf_row_bytes(&base->format));
    }
    return GF_OK;
}

static gf_status finish_source(gf_source *base, gf_error *error) {
    counting_source *source = (counting_source *)base;
    source->finished = true;
    if (source->fail_at == base->format.height)
        return gf_fail(error, GF_FAILED, "source: the end");
    return GF_OK;
}

static gf_status write_rows(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                            gf_error *error) {
    counting_sink *sink = (counting_sink *)base;
    for (uint64_t i = 0; i < rows; i++) {
        if (sink->next == sink->fail_at)
            return gf_fail(error, GF_FAILED, "sink: row %" PRIu64, sink->next);
        const unsigned char *row = (const unsigned char *)src + i * stride;
        for (size_t k = 0; sink->knows_rows && k < gf_row_bytes(sink->format); k++)
            if (row[k] != (sink->next & 0xff))
                fail_msg("row %" PRIu64 " holds %u", sink->next, row[k]);
        sink->next++;
    }
    return GF_OK;
}

static const gf_source_ops source_ops = {read_rows, finish_source, NULL, NULL};
static const gf_sink_ops sink_ops = {write_rows, NULL, NULL, NULL};

typedef struct outcome {
    gf_status status;
    gf_error error;
    gf_report report;
    uint64_t read, written;
    bool finished, read_here;
} outcome;

#define NEVER UINT64_MAX

/* Changes nothing, so that the sink can tell the rows apart. */
static const char plain[] = "stages=enhance gain=1";
static const char with_halo[] = "axis=y"; /* 3 rows on each side */

static outcome stream_by(bool unthreaded, counting_source source, const char *text, uint64_t height,
                         uint64_t band_rows, uint64_t sink_fails, uint64_t max_memory) {
    const gf_filter *filter = gf_filter_find("smooth");
    gf_settings *settings = test_settings(filter, text);
    gf_plan *plan = calloc(1, filter->plan_bytes);
    assert_non_null(plan);
    plan->in = plan->out = (gf_format){77, height, 1, GF_U8};
    plan->inputs = 1;
    assert_int_equal(filter->plan(settings, plan, NULL), GF_OK);
    source.base.ops = &source_ops;
    source.base.format = plan->in;
    counting_sink sink = {.base = {.ops = &sink_ops},
                          .format = &plan->out,
                          .fail_at = sink_fails,
                          .knows_rows = plan->halo == 0};
    void *state;
    gf_engine_options options = {.threads = unthreaded ? 1 : 2, .unthreaded = unthreaded};
    assert_int_equal(gf_backend_cpu.open(&options, &state, NULL), GF_OK);
    gf_stream_job job = {.name = "test",
                         .filter = filter,
                         .plan = plan,
                         .backend = &gf_backend_cpu,
                         .state = state,
                         .band_rows = band_rows,
                         .max_memory = max_memory,
                         .unthreaded = unthreaded};
    outcome result = {0};
    result.status =
        gf_stream_run(&job, &source.base, &sink.base, &result.report, NULL, &result.error);
    result.read = source.next;
    result.written = sink.next;
    result.finished = source.finished;
    result.read_here = pthread_equal(source.reader, pthread_self());
    gf_backend_cpu.close(state);
    gf_settings_free(settings);
    free(plan);
    return result;
}

static outcome stream_from(counting_source source, const char *text, uint64_t height,
                           uint64_t band_rows, uint64_t sink_fails, uint64_t max_memory) {
    return stream_by(false, source, text, height, band_rows, sink_fails, max_memory);
}

static outcome stream(const char *text, uint64_t height, uint64_t band_rows, uint64_t source_fails,
                      uint64_t sink_fails, uint64_t max_memory) {
    return stream_from((counting_source){.fail_at = source_fails}, text, height, band_rows,
                       sink_fails, max_memory);
}

static void every_row_once_in_order(void **state) {
    (void)state;
    const uint64_t bands[] = {0, 1, 2, 3, 5, 64, 99, 100, 101, 1000};
    for (size_t i = 0; i < sizeof bands / sizeof bands[0]; i++) {
        outcome result = stream(i % 2 ? plain : with_halo, 100, bands[i], NEVER, NEVER, 1 << 30);
        assert_int_equal(result.status, GF_OK);
        assert_int_equal(result.read, 100);
        assert_int_equal(result.written, 100);
        assert_true(result.finished);
        if (bands[i]) {
            uint64_t rows = bands[i] < 100 ? bands[i] : 100;
            assert_int_equal(result.report.band_rows, rows);
            assert_int_equal(result.report.bands, (100 + rows - 1) / rows);
        }
    }
}

static void a_failing_source_stops_the_stream(void **state) {
    (void)state;
    for (uint64_t at = 0; at <= 40; at++) {
        outcome result = stream(plain, 40, 3, at, NEVER, 1 << 30);
        assert_int_equal(result.status, GF_FAILED);
        assert_non_null(strstr(result.error.message, "source: "));
        assert_true(result.written <= at);
        assert_int_equal(result.read, at);
    }
}

static void a_failing_sink_stops_the_stream(void **state) {
    (void)state;
    for (uint64_t at = 0; at < 40; at++) {
        outcome result = stream(plain, 40, 3, NEVER, at, 1 << 30);
        assert_int_equal(result.status, GF_FAILED);
        assert_non_null(strstr(result.error.message, "sink: "));
        assert_int_equal(result.written, at);
    }
}

static void memory_bounds_the_bands(void **state) {
    (void)state;
    /* A row takes 128 bytes in a band (77, rounded up): 4096 bytes hold two slots of 8 rows each
     * way. */
    outcome result = stream(plain, 1000, 0, NEVER, NEVER, 4096);
    assert_int_equal(result.status, GF_OK);
    assert_true(result.report.band_rows <= 8);
    assert_int_equal(result.written, 1000);
    /* One band would do, but only smaller ones fit. */
    result = stream(with_halo, 20, 0, NEVER, NEVER, 5000);
    assert_int_equal(result.status, GF_OK);
    assert_int_equal(result.read, 20);
    assert_int_equal(result.written, 20);
    assert_true(result.report.bands > 1);
    /* A row each way is the least. */
    result = stream(plain, 1000, 0, NEVER, NEVER, 256);
    assert_int_equal(result.status, GF_OK);
    assert_int_equal(result.report.band_rows, 1);
    assert_int_equal(result.written, 1000);
    result = stream(plain, 1000, 0, NEVER, NEVER, 255);
    assert_int_equal(result.status, GF_FAILED);
    assert_non_null(strstr(result.error.message, "--max-memory"));
    result = stream(plain, 1000, 500, NEVER, NEVER, 4096);
    assert_int_equal(result.status, GF_FAILED);
}

/* ---- the ring ------------------------------------------------------------------------------- */

/* A backend that computes nothing, but looks at a band's rows when it was submitted and again when
 * it is waited for, while the reader may be far ahead. */
typedef struct looker {
    gf_band_wish wish;
    gf_job job;
    unsigned char *buffer;
    long pause; /* nanoseconds a band takes */
} looker;

/* Fails by its status: cmocka's failures end only the thread that all began in. */
static gf_status look_at(const gf_slot *slot, const gf_job *job, const char *when,
                         gf_error *error) {
    const gf_rows *in = &slot->in;
    const uint64_t first = slot->out.y0 < job->plan->halo ? 0 : slot->out.y0 - job->plan->halo;
    const uint64_t below = slot->out.y0 + slot->out.rows + job->plan->halo;
    const uint64_t end = below < job->plan->in.height ? below : job->plan->in.height;
    if (in->y0 != first || in->y0 + in->rows != end)
        return gf_fail(error, GF_FAILED, "%s: rows %" PRIu64 "+%" PRIu64 " for %" PRIu64, when,
                       in->y0, in->rows, slot->out.y0);
    for (uint64_t y = first; y < end; y++)
        for (size_t x = 0; x < gf_row_bytes(&job->plan->in); x++)
            if (gf_row(in, y)[x] != (y & 0xff))
                return gf_fail(error, GF_FAILED,
                               "%s: row %" PRIu64 " of the band from %" PRIu64 " holds %u", when, y,
                               slot->out.y0, gf_row(in, y)[x]);
    return GF_OK;
}

static gf_band_wish look_wish(const void *state, const gf_plan *plan) {
    (void)plan;
    return ((const looker *)state)->wish;
}

static gf_status look_begin(void *state, const gf_job *job, gf_slot *slots, void **run,
                            gf_error *error) {
    looker *all = state;
    all->job = *job;
    *run = all;
    return gf_slots_alloc(job, 0, slots, error);
}

static gf_status look_submit(void *run, gf_slot *slot, gf_error *error) {
    return look_at(slot, &((const looker *)run)->job, "submitted", error);
}

static gf_status look_wait(void *run, gf_slot *slot, gf_error *error) {
    const looker *all = run;
    nanosleep(&(struct timespec){.tv_nsec = all->pause}, NULL);
    const gf_status status = look_at(slot, &all->job, "done", error);
    for (uint64_t i = 0; i < slot->out.rows; i++)
        memcpy(slot->out.data + i * slot->out.stride, gf_row(&slot->in, slot->out.y0 + i),
               gf_row_bytes(&all->job.plan->in));
    return status;
}

static void look_busy(void *run, gf_busy busy[GF_STAGE_COUNT]) {
    (void)run;
    (void)busy;
}

static void look_end(void *run, gf_slot *slots) {
    gf_slots_free(slots, ((const looker *)run)->job.slots);
}

/* No row of a band is overwritten, or missing, until it is done with: of any height, with rings of
 * any length, also such that are shorter than two bands with their halos. */
static void bands_stay_whole(void **state) {
    (void)state;
    static const gf_backend backend = {.name = "looker",
                                       .wish = look_wish,
                                       .begin = look_begin,
                                       .submit = look_submit,
                                       .wait = look_wait,
                                       .busy = look_busy,
                                       .end = look_end};
    const gf_filter *filter = gf_filter_find("smooth");
    test_random random = {7};
    for (int i = 0; i < 400; i++) {
        gf_plan plan = {.in = {5, 1 + test_below(&random, 300), 1, GF_U8},
                        .inputs = 1,
                        .halo = test_below(&random, 3) ? test_below(&random, 40) : 0};
        plan.out = plan.in;
        looker all = {.wish = {.bytes = 64,
                               .halos = (uint32_t)test_below(&random, 9),
                               .most = test_below(&random, 1u << 16),
                               .slots = 1 + (uint32_t)test_below(&random, 9)},
                      .pause = test_below(&random, 2) ? 20000 : 0};
        counting_source source = {.base = {.ops = &source_ops, .format = plan.in},
                                  .fail_at = NEVER};
        counting_sink sink = {
            .base = {.ops = &sink_ops}, .format = &plan.out, .fail_at = NEVER, .knows_rows = true};
        gf_stream_job job = {.name = "test",
                             .filter = filter,
                             .plan = &plan,
                             .backend = &backend,
                             .state = &all,
                             .band_rows = test_below(&random, 2) ? 1 + test_below(&random, 90) : 0,
                             .max_memory = 1u << 20,
                             .unthreaded = test_below(&random, 8) == 0};
        gf_report report = {0};
        gf_error error = {0};
        if (gf_stream_run(&job, &source.base, &sink.base, &report, NULL, &error))
            fail_msg("%s", error.message);
        assert_int_equal(source.next, plan.in.height);
        assert_int_equal(sink.next, plan.in.height);
    }
}

static gf_status fail_wait(void *run, gf_slot *slot, gf_error *error) {
    (void)run;
    (void)slot;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    return gf_fail(error, GF_NO_BACKEND, "device: gone");
}

/* While the reader is slow to find out that its file is damaged, the device fails: that there is
 * nothing to go on with is what is told, and nobody goes on. */
static void a_damaged_file_is_told_before_a_device(void **state) {
    (void)state;
    static const gf_backend backend = {.name = "looker",
                                       .wish = look_wish,
                                       .begin = look_begin,
                                       .submit = look_submit,
                                       .wait = fail_wait,
                                       .busy = look_busy,
                                       .end = look_end};
    for (uint64_t fail_at = 3; fail_at < 9; fail_at += 3) {
        gf_plan plan = {.in = {5, 9, 1, GF_U8}, .inputs = 1};
        plan.out = plan.in;
        looker all = {.wish = {.slots = 3}};
        counting_source source = {.base = {.ops = &source_ops, .format = plan.in},
                                  .fail_at = fail_at,
                                  .pause = 400000000};
        counting_sink sink = {.base = {.ops = &sink_ops}, .format = &plan.out, .fail_at = NEVER};
        const gf_stream_job job = {.name = "test",
                                   .filter = gf_filter_find("smooth"),
                                   .plan = &plan,
                                   .backend = &backend,
                                   .state = &all,
                                   .band_rows = 3,
                                   .max_memory = 1u << 20};
        gf_report report = {0};
        gf_stream_rest rest;
        gf_error error = {0};
        const gf_status status =
            gf_stream_run(&job, &source.base, &sink.base, &report, &rest, &error);
        /* The second band is being read when the first is waited for, the third is not begun. */
        assert_int_equal(status, fail_at == 3 ? GF_FAILED : GF_NO_BACKEND);
        assert_true(rest.by_backend == (fail_at > 3));
        assert_non_null(strstr(error.message, fail_at == 3 ? "source: row 3" : "device: gone"));
        assert_true((rest.source != NULL) == (fail_at > 3));
        if (rest.source)
            rest.source->ops->close(rest.source);
    }
}

/* A thread costs more than an image of one band; of more bands, reading is a thread's own. */
static void one_band_takes_no_thread(void **state) {
    (void)state;
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

/* Every band is taken before the next is read, and the source ends before the last is taken. */
static void unthreaded_takes_turns(void **state) {
    (void)state;
    const uint64_t bands[] = {0, 1, 2, 3, 7, 39, 40, 41};
    for (size_t i = 0; i < 2 * sizeof bands / sizeof bands[0]; i++) {
        const uint64_t rows = bands[i / 2];
        const char *text = i % 2 ? plain : with_halo;
        const counting_source source = {.fail_at = NEVER}, ends_badly = {.fail_at = 40};
        outcome result = stream_by(true, source, text, 40, rows, NEVER, 1 << 30);
        assert_int_equal(result.status, GF_OK);
        assert_true(result.read_here && result.finished);
        assert_int_equal(result.read, 40);
        assert_int_equal(result.written, 40);
        result = stream_by(true, ends_badly, text, 40, rows, NEVER, 1 << 30);
        assert_non_null(strstr(result.error.message, "source: the end"));
        assert_int_equal(result.written, (result.report.bands - 1) * result.report.band_rows);
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

/* Ten reads of 5 ms each; nothing else takes long. */
static void busy_is_who_works(void **state) {
    (void)state;
    const counting_source slow = {.fail_at = NEVER, .pause = 5000000};
    for (uint64_t rows = 4; rows <= 40; rows += 36) {
        outcome result = stream_from(slow, plain, 40, rows, NEVER, 1 << 30);
        const gf_busy *busy = result.report.busy;
        const double least = 0.005 * (double)result.report.bands;
        assert_int_equal(result.status, GF_OK);
        assert_int_equal(busy[GF_DECODING].workers, 1);
        assert_true(busy[GF_DECODING].seconds >= least);
        assert_true(busy[GF_COMPUTING].workers > 0 && busy[GF_COMPUTING].workers <= 2);
        assert_true(busy[GF_COMPUTING].seconds > 0 && busy[GF_COMPUTING].seconds < least);
        assert_int_equal(busy[GF_ENCODING].workers, 1);
        assert_true(busy[GF_ENCODING].seconds > 0 && busy[GF_ENCODING].seconds < least);
        assert_int_equal(busy[GF_UPLOADING].workers, 0);
        assert_int_equal(busy[GF_DOWNLOADING].workers, 0);
    }
    /* A source with threads of its own knows better than a clock around its calls. */
    counting_source shared = {.base = {.threads = 3, .busy_seconds = 7}, .fail_at = NEVER};
    outcome result = stream_from(shared, plain, 40, 4, NEVER, 1 << 30);
    assert_int_equal(result.report.busy[GF_DECODING].workers, 3);
    assert_true(result.report.busy[GF_DECODING].seconds == 7);
}

static void stages_have_names(void **state) {
    (void)state;
    assert_string_equal(gf_stage_name(GF_DECODING), "decoding");
    assert_string_equal(gf_stage_name(GF_UPLOADING), "uploading");
    assert_string_equal(gf_stage_name(GF_COMPUTING), "computing");
    assert_string_equal(gf_stage_name(GF_DOWNLOADING), "downloading");
    assert_string_equal(gf_stage_name(GF_ENCODING), "encoding");
    assert_null(gf_stage_name(GF_STAGE_COUNT));
}

/* Golden takes the whole image as one band, whatever is asked for. */
static void golden_is_one_band(void **state) {
    (void)state;
    gf_format format = {31, 57, 3, GF_U8};
    test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
    gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    gf_engine_options options = {.backend = "golden", .band_rows = 4};
    gf_engine *engine = NULL;
    gf_report report;
    assert_int_equal(gf_engine_open(&options, &engine, NULL), GF_OK);
    const gf_pixels pixels = {in.rows.data, in.stride};
    assert_int_equal(gf_run_memory(engine, gf_filter_find("smooth"), settings, &format, &pixels,
                                   out.rows.data, out.stride, NULL, &report, NULL),
                     GF_OK);
    assert_int_equal(report.bands, 1);
    gf_engine_close(engine);
    gf_settings_free(settings);
    test_image_free(&in);
    test_image_free(&out);
}

/* ---- auto: made-up plans, codecs and machines ------------------------------------------------ */

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
    engine->images = 7;
    gf_auto_machine machine = gf_engine_machine(engine);
    assert_int_equal(machine.threads, 5);
    assert_int_equal(machine.devices, 1);
    assert_int_equal(machine.images, 7);
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
    gf_error error = {GF_FAILED, "cuda: device memory: out of memory"};
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
        cmocka_unit_test(every_row_once_in_order),
        cmocka_unit_test(a_failing_source_stops_the_stream),
        cmocka_unit_test(a_failing_sink_stops_the_stream),
        cmocka_unit_test(memory_bounds_the_bands),
        cmocka_unit_test(bands_stay_whole),
        cmocka_unit_test(a_damaged_file_is_told_before_a_device),
        cmocka_unit_test(one_band_takes_no_thread),
        cmocka_unit_test(unthreaded_takes_turns),
        cmocka_unit_test(busy_is_who_works),
        cmocka_unit_test(stages_have_names),
        cmocka_unit_test(golden_is_one_band),
        cmocka_unit_test(auto_weighs_the_start_up),
        cmocka_unit_test(auto_adds_up_what_shares_the_cores),
        cmocka_unit_test(auto_divides_transfers_among_devices),
        cmocka_unit_test(auto_knows_its_machine),
        cmocka_unit_test(only_auto_falls_back),
        cmocka_unit_test(png_costs_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
