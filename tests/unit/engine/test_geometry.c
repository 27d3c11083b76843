/* How images are cut into strips: the heights that backends wish for, and what is left of them
 * where memory is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/error.h"
#include "core/filter.h"
#include "engine/pipeline.h"
#include "testing.h"

static gf_strip_request wished;

static gf_strip_request request(const void *state, const gf_plan *plan) {
    (void)state;
    (void)plan;
    return wished;
}

static const gf_backend wishful = {.name = "wishful", .request = request};
static gf_consumer unconcerned;

/* u8 rows of 640 bytes, in and out. */
static gf_stream_job job_new(const char *text, uint64_t height, uint64_t rows_per_strip) {
    const gf_format format = {640, height, 1, GF_U8};
    gf_settings *settings = test_settings(gf_filter_find("smooth"), text);
    gf_plan *plan = NULL;
    assert_int_equal(gf_plan_new(gf_filter_find("smooth"), settings, &format, &plan, NULL), GF_OK);
    gf_settings_free(settings);
    return (gf_stream_job){.name = "image",
                           .filter = gf_filter_find("smooth"),
                           .plan = plan,
                           .backend = &wishful,
                           .consumer = &unconcerned,
                           .rows_per_strip = rows_per_strip,
                           .max_memory = UINT64_MAX};
}

static void job_free(gf_stream_job *job) {
    free((void *)(uintptr_t)job->plan);
}

static gf_job chosen(const gf_stream_job *job) {
    gf_job out;
    gf_error error = {0};
    if (gf_choose_geometry(job, &out, &error))
        fail_msg("%s", error.message);
    return out;
}

static uint64_t memory_of(const gf_job *job) {
    return (gf_ring_rows(job) + job->slots * job->out_rows) * 640 + wished.extra;
}

static void strips_are_as_high_as_wished(void **state) {
    (void)state;
    gf_stream_job job = job_new("", 1000, 0);
    static const struct {
        uint64_t bytes, rows;
        uint32_t slots;
    } requests[] = {{0, 1, 3},    {639, 1, 3},         {640, 1, 3},         {1279, 1, 3},
                    {1280, 2, 3}, {640 * 400, 400, 3}, {640 * 600, 600, 2}, {1 << 30, 1000, 1}};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        wished = (gf_strip_request){.bytes = requests[i].bytes, .slots = 3};
        const gf_job out = chosen(&job);
        assert_int_equal(out.out_rows, requests[i].rows);
        assert_int_equal(out.in_rows, requests[i].rows);
        assert_int_equal(out.slots, requests[i].slots); /* no more than there are strips */
        assert_int_equal(gf_count_strips(&out), (999 + requests[i].rows) / requests[i].rows);
    }
    wished = (gf_strip_request){.whole_image = true, .bytes = 640, .slots = 3};
    assert_int_equal(chosen(&job).out_rows, 1000);
    job.rows_per_strip = 7; /* the user's word */
    wished.whole_image = false;
    assert_int_equal(chosen(&job).out_rows, 7);
    job_free(&job);
}

/* The halo of radius 2 and the smooth stage down columns is 3 rows. */
static void halos_make_strips_higher(void **state) {
    (void)state;
    gf_stream_job job = job_new("axis=y", 1000, 0);
    assert_int_equal(job.plan->halo, 3);
    wished = (gf_strip_request){.bytes = 640, .slots = 2, .halos = 8, .max = UINT64_MAX};
    assert_int_equal(chosen(&job).out_rows, 24);
    assert_int_equal(chosen(&job).in_rows, 30);
    wished.bytes = 640 * 24;
    assert_int_equal(chosen(&job).out_rows, 24);
    wished.bytes = 640 * 25;
    assert_int_equal(chosen(&job).out_rows, 25);
    /* Half as many, and again, as long as that takes more than `most`; at least one. */
    wished.bytes = 640;
    wished.max = 640 * (2 * 24 + 6 + 2 * 24);
    assert_int_equal(chosen(&job).out_rows, 24);
    wished.max--;
    assert_int_equal(chosen(&job).out_rows, 12);
    wished.max = 0;
    assert_int_equal(chosen(&job).out_rows, 3);
    job.rows_per_strip = 1;
    assert_int_equal(chosen(&job).out_rows, 1);
    job_free(&job);
}

/* With exactly the memory that the strips take they stay; with a byte less there are fewer, then
 * lower ones, and in the end none. */
static void memory_is_kept_to(void **state) {
    (void)state;
    static const char *const cases[] = {"", "axis=y", "axis=y radius=40"};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (uint64_t rows_per_strip = 0; rows_per_strip <= 5; rows_per_strip += 5) {
            gf_stream_job job = job_new(cases[c], 301, rows_per_strip);
            wished = (gf_strip_request){.bytes = 640 * 40, .slots = 4, .extra = 12345};
            gf_job out = chosen(&job), before;
            unsigned steps = 0;
            gf_error error = {0};
            do {
                before = out;
                assert_true(memory_of(&out) <= job.max_memory);
                job.max_memory = memory_of(&out);
                gf_job same = chosen(&job);
                assert_int_equal(same.out_rows, out.out_rows);
                assert_int_equal(same.slots, out.slots);
                job.max_memory--;
                steps++;
            } while (!gf_choose_geometry(&job, &out, &error));
            assert_int_equal(before.slots, 1);
            assert_int_equal(before.out_rows, rows_per_strip ? rows_per_strip : 1);
            assert_true(steps >= (rows_per_strip ? 4 : 8)); /* not all at once */
            assert_non_null(strstr(error.message, "raise --max-memory"));
            job_free(&job);
        }
}

/* Sizes that no number holds are too much memory, not a little. */
static void nothing_overflows(void **state) {
    (void)state;
    gf_stream_job job = job_new("", 1000, 0);
    gf_plan *plan = (gf_plan *)(uintptr_t)job.plan;
    plan->in.height = plan->out.height = UINT64_C(1) << 58;
    wished = (gf_strip_request){.whole_image = true, .slots = 4};
    gf_job out;
    gf_error error = {0};
    assert_int_equal(gf_choose_geometry(&job, &out, &error), GF_FAILED);
    wished.whole_image = false;
    wished.bytes = UINT64_MAX;
    assert_int_equal(gf_choose_geometry(&job, &out, &error), GF_OK);
    assert_true(out.out_rows < UINT64_C(1) << 58);
    wished = (gf_strip_request){.bytes = 640, .slots = 2, .extra = 10};
    job.max_memory = 9;
    assert_int_equal(gf_choose_geometry(&job, &out, &error), GF_FAILED);
    job_free(&job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strips_are_as_high_as_wished),
        cmocka_unit_test(halos_make_strips_higher),
        cmocka_unit_test(memory_is_kept_to),
        cmocka_unit_test(nothing_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
