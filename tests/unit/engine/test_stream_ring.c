/* The ring between a source and a sink: the rows of a strip stay valid and unchanged until the
 * strip is finished. Also the error that is reported if reading and computing fail together. */
#include <time.h>

#include "core/error.h"
#include "engine/pipeline/pipeline.h"
#include "testing.h"

#include "counting.h"

/* A backend that computes nothing. It checks the rows of a strip in `submit` and again in `wait`,
 * when the reader may be far ahead. */
typedef struct checker {
    gf_strip_request request;
    gf_cut cut;
    const gf_plan *plan;
    unsigned char *memory, *out; /* rings of the source; rows of all slots */
    long pause;                  /* nanoseconds per strip */
} checker;

/* Check the rows of a strip. Failures are returned: a cmocka failure works only in the thread that
 * runs the test. */
static gf_status check_rows(const gf_slot *slot, const checker *all, const char *when,
                            gf_error *error) {
    const gf_rows *in = &slot->in;
    const gf_range out = gf_cut_rows(&all->cut, 1, slot->strip);
    const gf_range needs = gf_map_needs(all->plan, out);
    if (out.first < out.end && (in->y0 > needs.first || in->y0 + in->rows < needs.end))
        return gf_fail(error, GF_FAILED, "%s: rows %" PRIu64 "+%" PRIu64 " for %" PRIu64, when,
                       in->y0, in->rows, out.first);
    for (uint64_t y = in->y0; y < in->y0 + in->rows; y++)
        for (size_t x = 0; x < gf_row_bytes(&all->plan->in); x++)
            if (gf_row(in, y)[x] != (y & 0xff))
                return gf_fail(error, GF_FAILED,
                               "%s: row %" PRIu64 " of the strip from %" PRIu64 " holds %u", when,
                               y, out.first, gf_row(in, y)[x]);
    return GF_OK;
}

static gf_strip_request checker_request(const void *state, const gf_nodes *nodes) {
    return ((const checker *)state)->request;
}

static gf_status checker_begin(void *state, const gf_cut *cut, gf_slot *slots, unsigned char **ring,
                               void **run, gf_error *error) {
    checker *all = state;
    const gf_edge_cut *to = &cut->edge[1];
    all->cut = *cut;
    all->plan = cut->nodes->node[0].plan;
    *ring = all->memory = malloc((size_t)cut->edge[0].ring_rows * cut->edge[0].stride);
    all->out = malloc((size_t)cut->slots * to->max_rows * to->stride);
    for (uint32_t i = 0; i < cut->slots; i++)
        slots[i].out->rows = (gf_rows){.data = all->out + i * to->max_rows * to->stride};
    *run = all;
    return GF_OK;
}

static gf_status checker_submit(void *run, gf_slot *slot, gf_error *error) {
    return check_rows(slot, run, "submitted", error);
}

static gf_status checker_wait(void *run, gf_slot *slot, gf_error *error) {
    const checker *all = run;
    const gf_range out = gf_cut_rows(&all->cut, 1, slot->strip);
    gf_rows *rows = &slot->out->rows;
    nanosleep(&(struct timespec){.tv_nsec = all->pause}, NULL);
    const gf_status status = check_rows(slot, all, "done", error);
    *rows = (gf_rows){rows->data, all->cut.edge[1].stride, out.first, out.end - out.first};
    for (uint64_t y = out.first; y < out.end; y++)
        memset(gf_row(rows, y), (int)(y & 0xff), gf_row_bytes(&all->plan->out));
    return status;
}

static void checker_busy(void *run, gf_busy busy[GF_STAGE_COUNT], double *nodes) {}

static void checker_end(void *run) {
    const checker *all = run;
    free(all->memory);
    free(all->out);
}

/* A source that writes announced rows at once, ahead of read. */
typedef struct eager_source {
    counting_source counting;
    uint64_t ahead;                     /* rows announced */
    unsigned char *to[GF_SOURCE_AHEAD]; /* of announcements */
    uint64_t announced, read;
} eager_source;

static gf_status eager_announce(gf_source *base, void *dst, size_t stride, uint64_t rows,
                                gf_error *error) {
    eager_source *source = (eager_source *)base;
    if (source->announced - source->read >= GF_SOURCE_AHEAD)
        return gf_fail(error, GF_FAILED, "too many announcements");
    source->to[source->announced++ % GF_SOURCE_AHEAD] = dst;
    for (uint64_t i = 0; i < rows; i++)
        memset((unsigned char *)dst + i * stride, (int)(source->ahead++ & 0xff),
               gf_row_bytes(&base->format));
    return GF_OK;
}

static gf_status eager_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                            gf_error *error) {
    eager_source *source = (eager_source *)base;
    if (source->announced && source->to[source->read++ % GF_SOURCE_AHEAD] != dst)
        return gf_fail(error, GF_FAILED, "read has other memory than announced");
    return read_rows(base, dst, stride, rows, error);
}

/* Rows stay valid and unchanged for strips of any height and rings of any length, including rings
 * shorter than two strips with their halos. */
TEST(strips_stay_intact) {
    static const gf_backend backend = {.name = "checker",
                                       .request = checker_request,
                                       .begin = checker_begin,
                                       .submit = checker_submit,
                                       .wait = checker_wait,
                                       .busy = checker_busy,
                                       .end = checker_end};
    static const gf_source_ops eager_ops = {
        .read = eager_read, .finish = finish_source, .announce = eager_announce};
    const gf_filter *filter = gf_filter_find("smooth");
    test_random random = {7};
    for (int i = 0; i < 400; i++) {
        gf_plan plan = {.filter = filter,
                        .in = {5, 1 + test_below(&random, 300), 1, GF_U8, false},
                        .inputs = 1,
                        .before = test_below(&random, 3) ? test_below(&random, 40) : 0,
                        .after = test_below(&random, 3) ? test_below(&random, 40) : 0};
        gf_range rows[400];
        plan.out = plan.in;
        if (test_below(&random, 3) == 0) {
            const uint64_t in = plan.in.height,
                           out = plan.out.height = 1 + test_below(&random, 400);
            for (uint64_t y = 0; y < out; y++) {
                const uint64_t first = y * in / out, end = ((y + 1) * in + out - 1) / out;
                rows[y] = (gf_range){first < plan.before ? 0 : first - plan.before,
                                     in - end < plan.after ? in : end + plan.after};
            }
            plan.before = plan.after = 0;
            plan.rows = rows;
        }
        const gf_node node = {.plan = &plan};
        const gf_nodes nodes = {&node, 1, 2};
        checker all = {.request = {.bytes = 64,
                                   .halos = (uint32_t)test_below(&random, 9),
                                   .max = test_below(&random, 1u << 16),
                                   .slots = 1 + (uint32_t)test_below(&random, 9)},
                       .pause = test_below(&random, 2) ? 20000 : 0};
        const gf_source_ops *ops = test_below(&random, 2) ? &source_ops : &eager_ops;
        eager_source source = {.counting = {.base = {.ops = ops, .format = plan.in},
                                            .pause = test_below(&random, 2) ? 50000 : 0,
                                            .fail_at = NEVER}};
        counting_sink sink = {
            .base = {.ops = &sink_ops}, .format = &plan.out, .fail_at = NEVER, .checks_rows = true};
        gf_inputs inputs = {.count = 1, .sources = {&source.counting.base}};
        gf_report report = {0};
        gf_delivery delivery = {.nodes = &nodes,
                                .written = &(gf_written){.edge = 1, .sink = &sink.base},
                                .written_count = 1,
                                .report = &report};
        gf_delivery_init(&delivery);
        gf_stream_job job = {.name = "test",
                             .nodes = &nodes,
                             .on = {&backend, &all},
                             .consumer = &delivery.base,
                             .rows_per_strip =
                                 test_below(&random, 2) ? 1 + test_below(&random, 90) : 0,
                             .max_memory = 1u << 20,
                             .unthreaded = test_below(&random, 8) == 0};
        assert_ok(gf_stream_run(&job, &inputs, &report, NULL, &why));
        assert_int_equal(source.counting.next, plan.in.height);
        assert_int_equal(sink.next, plan.out.height);
    }
}

static gf_status fail_wait(void *run, gf_slot *slot, gf_error *error) {
    nanosleep(&(struct timespec){.tv_nsec = ((const checker *)run)->pause}, NULL);
    return gf_fail(error, GF_NO_BACKEND, "device: lost");
}

/* The reader detects a damaged file before or after the device fails. The damaged file is reported,
 * no backend continues, and the failure of the device is recorded. */
TEST(damaged_files_are_reported_before_devices) {
    static const gf_backend backend = {.name = "checker",
                                       .request = checker_request,
                                       .begin = checker_begin,
                                       .submit = checker_submit,
                                       .wait = fail_wait,
                                       .busy = checker_busy,
                                       .end = checker_end};
    static const struct {
        uint64_t fail_at;
        long pause; /* of the device */
        bool by_backend;
    } cases[] = {{3, 100000000, false}, {6, 100000000, true}, {3, 900000000, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gf_plan plan = {
            .filter = gf_filter_find("smooth"), .in = {5, 9, 1, GF_U8, false}, .inputs = 1};
        plan.out = plan.in;
        const gf_node node = {.plan = &plan};
        const gf_nodes nodes = {&node, 1, 2};
        checker all = {.request = {.slots = 3}, .pause = cases[i].pause};
        counting_source source = {.base = {.ops = &source_ops, .format = plan.in},
                                  .fail_at = cases[i].fail_at,
                                  .pause = 400000000};
        counting_sink sink = {.base = {.ops = &sink_ops}, .format = &plan.out, .fail_at = NEVER};
        gf_inputs inputs = {.count = 1, .sources = {&source.base}};
        gf_report report = {0};
        gf_delivery delivery = {.nodes = &nodes,
                                .written = &(gf_written){.edge = 1, .sink = &sink.base},
                                .written_count = 1,
                                .report = &report};
        gf_delivery_init(&delivery);
        const gf_stream_job job = {.name = "test",
                                   .nodes = &nodes,
                                   .on = {&backend, &all},
                                   .consumer = &delivery.base,
                                   .rows_per_strip = 3,
                                   .max_memory = 1u << 20};
        gf_stream_stop rest;
        const gf_status status = gf_stream_run(&job, &inputs, &report, &rest, &why);
        /* The second strip is being read while the first is awaited; the third is not started. */
        assert_int_equal(status, cases[i].by_backend ? GF_NO_BACKEND : GF_FAILED);
        assert_true(rest.by_backend == cases[i].by_backend);
        assert_non_null(
            strstr(why.message, cases[i].by_backend ? "device: lost" : "source: row 3"));
        assert_non_null(strstr(rest.device_error.message, "device: lost"));
    }
}

int main(void) {
    return test_main(NULL);
}
