/* Geometry of strips: heights requested by backends, and their reduction when memory is short. */

#include "core/error.h"
#include "core/filter.h"
#include "engine/pipeline/pipeline.h"
#include "testing.h"

static gf_strip_request requested;

static gf_strip_request request(const void *state, const gf_nodes *nodes) {
    return requested;
}

static const gf_backend fake_backend = {.name = "fake", .request = request};
static gf_consumer consumer;

static gf_node node;
static const gf_nodes nodes = {&node, 1, 2};

/* Create a job of u8 rows of 640 bytes. */
static gf_stream_job job_of(const gf_filter *filter, const char *text, uint64_t height,
                            uint64_t rows_per_strip) {
    const gf_format format = {640, height, 1, GF_U8, false};
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    gf_plan *plan = NULL;
    assert_ok(gf_plan_new(filter, settings, &format, &plan, NULL));
    node.plan = plan;
    return (gf_stream_job){.name = "image",
                           .nodes = &nodes,
                           .on = {&fake_backend, NULL},
                           .consumer = &consumer,
                           .rows_per_strip = rows_per_strip,
                           .max_memory = UINT64_MAX};
}

/* The same, with rows of 640 bytes also in the output. */
static gf_stream_job job_new(const char *text, uint64_t height, uint64_t rows_per_strip) {
    return job_of(gf_filter_find("smooth"), text, height, rows_per_strip);
}

static void job_free(gf_stream_job *job) {
    gf_plan_free((gf_plan *)(uintptr_t)job->nodes->node[0].plan);
}

static gf_cut chosen(const gf_stream_job *job) {
    gf_cut out;
    assert_ok(gf_choose_geometry(job, &out, &why));
    return out;
}

/* Return the most rows of a strip in the ring. */
static uint64_t rows_of(const gf_stream_job *job) {
    const gf_cut out = chosen(job);
    return out.edge[0].keep + out.edge[0].max_rows;
}

static uint64_t memory_of(const gf_cut *job) {
    return (job->edge[0].ring_rows + job->edge[1].ring_rows) * 640 + requested.extra;
}

TEST(strips_have_the_requested_height) {
    gf_stream_job job = job_new("", 1000, 0);
    static const struct {
        uint64_t bytes, rows;
        uint32_t slots;
    } requests[] = {{0, 1, 3},    {639, 1, 3},         {640, 1, 3},         {1279, 1, 3},
                    {1280, 2, 3}, {640 * 400, 400, 3}, {640 * 600, 600, 2}, {1 << 30, 1000, 1}};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        requested = (gf_strip_request){.bytes = requests[i].bytes, .slots = 3};
        const gf_cut out = chosen(&job);
        assert_int_equal(out.height, requests[i].rows);
        assert_int_equal(out.edge[0].keep + out.edge[0].max_rows, requests[i].rows);
        assert_int_equal(out.slots, requests[i].slots); /* at most the number of strips */
        assert_int_equal(out.strips, (999 + requests[i].rows) / requests[i].rows);
    }
    requested = (gf_strip_request){.whole_image = true, .bytes = 640, .slots = 3};
    assert_int_equal(chosen(&job).height, 1000);
    job.rows_per_strip = 7; /* set by the user */
    requested.whole_image = false;
    assert_int_equal(chosen(&job).height, 7);
    job_free(&job);
}

/* The halo is 3 rows: 2 of the blur radius and 1 of the smooth stage. */
TEST(halos_increase_the_height) {
    gf_stream_job job = job_new("axis=y", 1000, 0);
    assert_int_equal(node.plan->before, 3);
    assert_int_equal(node.plan->after, 3);
    requested = (gf_strip_request){.bytes = 640, .slots = 2, .halos = 8, .max = UINT64_MAX};
    assert_int_equal(chosen(&job).height, 24);
    assert_int_equal(rows_of(&job), 30);
    requested.bytes = 640 * 24;
    assert_int_equal(chosen(&job).height, 24);
    requested.bytes = 640 * 25;
    assert_int_equal(chosen(&job).height, 25);
    /* The height in halos is halved while the strips exceed `max` bytes; at least one halo. */
    requested.bytes = 640;
    requested.max = 640 * (2 * 24 + 6 + 2 * 24);
    assert_int_equal(chosen(&job).height, 24);
    requested.max--;
    assert_int_equal(chosen(&job).height, 12);
    requested.max = 0;
    assert_int_equal(chosen(&job).height, 3);
    job.rows_per_strip = 1;
    assert_int_equal(chosen(&job).height, 1);
    job_free(&job);
}

/* Strips without output rows are multiples of the rows that the source decodes together, unless
 * that takes too much memory. */
TEST(strips_fit_the_source) {
    static const struct {
        uint64_t together, max, first, rows;
        uint32_t groups, slots;
    } cases[] = {
        {0, UINT64_MAX, 0, 10, 2, 4},    {64, UINT64_MAX, 0, 64, 2, 3},
        {64, UINT64_MAX, 128, 64, 2, 3}, {64, UINT64_MAX, 100, 10, 2, 4},
        {3, UINT64_MAX, 0, 9, 2, 4},     {3, 0, 0, 9, 2, 4},
        {64, 640 * 3 * 64, 0, 64, 2, 3}, {64, 640 * 3 * 64 - 1, 0, 10, 2, 4},
        {64, UINT64_MAX, 0, 10, 0, 4},   {1000, UINT64_MAX, 0, 1000, 2, 1},
    };
    gf_stream_job job = job_of(gf_filter_find("hist"), "", 1000, 0);
    assert_int_equal(node.plan->out.width, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        requested = (gf_strip_request){
            .bytes = 6400, .slots = 4, .fits_source = cases[i].groups != 0, .max = cases[i].max};
        job.rows_together = cases[i].together;
        job.groups = cases[i].groups;
        job.source = (gf_range){cases[i].first, 1000};
        assert_int_equal(chosen(&job).height, cases[i].rows);
        assert_int_equal(chosen(&job).slots, cases[i].slots);
    }
    requested.slots = 1; /* without threads */
    assert_int_equal(chosen(&job).slots, 1);
    job.rows_per_strip = 7; /* set by the user */
    assert_int_equal(chosen(&job).height, 7);
    job_free(&job);
}

/* With output rows, or strips that overlap, there are few small strips if the source holds more
 * rows than a strip. */
TEST(rings_are_short_if_the_source_holds_rows) {
    static const struct {
        const char *text;
        uint64_t together, rows;
        uint32_t slots, chosen_slots;
    } cases[] = {
        {"", 5000, 1639, 6, 4},      {"", 0, 2000, 6, 6},          {"", 100, 2000, 6, 6},
        {"", 5000, 2000, 4, 4},      {"axis=y", 5000, 2000, 7, 5}, {"axis=y", 0, 2000, 7, 7},
        {"axis=y", 100, 2000, 7, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gf_stream_job job = job_new(cases[i].text, 50000, 0);
        requested = (gf_strip_request){
            .bytes = 2000 * 640, .slots = cases[i].slots, .fits_source = true, .max = UINT64_MAX};
        job.rows_together = cases[i].together;
        job.groups = 2;
        assert_int_equal(chosen(&job).height, cases[i].rows);
        assert_int_equal(chosen(&job).slots, cases[i].chosen_slots);
        job_free(&job);
    }
}

/* Strips stay the same with exactly the memory that they use. With one byte less, first their
 * number, then their height is reduced, until none fits. */
TEST(strips_fit_in_memory) {
    static const char *const cases[] = {"", "axis=y", "axis=y radius=40"};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (uint64_t rows_per_strip = 0; rows_per_strip <= 5; rows_per_strip += 5) {
            gf_stream_job job = job_new(cases[c], 301, rows_per_strip);
            requested = (gf_strip_request){.bytes = 640 * 40, .slots = 4, .extra = 12345};
            gf_cut out = chosen(&job), before;
            unsigned steps = 0;
            do {
                before = out;
                assert_true(memory_of(&out) <= job.max_memory);
                job.max_memory = memory_of(&out);
                gf_cut same = chosen(&job);
                assert_int_equal(same.height, out.height);
                assert_int_equal(same.slots, out.slots);
                job.max_memory--;
                steps++;
            } while (!gf_choose_geometry(&job, &out, &why));
            assert_int_equal(before.slots, 1);
            assert_int_equal(before.height, rows_per_strip ? rows_per_strip : 1);
            assert_true(steps >= (rows_per_strip ? 4 : 8)); /* in several steps */
            assert_non_null(strstr(why.message, "raise --max-memory"));
            job_free(&job);
        }
}

/* An image of fewer rows than its halo is one strip, and lower ones if memory is short. */
TEST(images_lower_than_their_halo) {
    gf_stream_job job = job_new("axis=y radius=40", 20, 0);
    requested = (gf_strip_request){.bytes = 640 * 40, .slots = 4};
    gf_cut out = chosen(&job);
    assert_int_equal(out.height, 20);
    assert_int_equal(out.strips, 1);
    job.max_memory = memory_of(&out) - 1;
    out = chosen(&job);
    assert_int_equal(out.height, 5); /* two strips of 10 rows need as much */
    assert_true(out.strips > 2);     /* the last rows are due after the halo */
    job.max_memory = 640;
    assert_int_equal(gf_choose_geometry(&job, &out, &why), GF_FAILED);
    job_free(&job);
}

/* Sizes that overflow count as too large. */
TEST(sizes_do_not_overflow) {
    gf_stream_job job = job_new("", 1000, 0);
    gf_plan *plan = (gf_plan *)(uintptr_t)node.plan;
    plan->in.height = plan->out.height = UINT64_C(1) << 58;
    requested = (gf_strip_request){.whole_image = true, .slots = 4};
    gf_cut out;
    assert_int_equal(gf_choose_geometry(&job, &out, &why), GF_FAILED);
    requested.whole_image = false;
    requested.bytes = UINT64_MAX;
    assert_ok(gf_choose_geometry(&job, &out, &why));
    assert_true(out.height < UINT64_C(1) << 58);
    requested = (gf_strip_request){.bytes = 640, .slots = 2, .extra = 10};
    job.max_memory = 9;
    assert_int_equal(gf_choose_geometry(&job, &out, &why), GF_FAILED);
    job_free(&job);
}

int main(void) {
    return test_main(NULL);
}
