/* A batch of images in memory returns the same results as single runs: every case of every filter,
 * on every backend, with random counts, sizes and strides. */

#include "core/filter.h"
#include "job.h"

#define MAX 40

/* Return a small format, as is typical in batches. */
static gf_format small_format(test_random *random) {
    gf_format format = test_format(random);
    while (format.width * format.height * format.channels > 20000) {
        format.width = (format.width + 1) / 2;
        format.height = (format.height + 1) / 2;
    }
    return format;
}

typedef struct comparison {
    gf_engine *golden;
    const char *backend;
    uint64_t images, together; /* together: batches in fewer strips than images */
} comparison;

static bool compare_once(void *context, const gf_filter *filter, const char *text, uint64_t seed) {
    static const uint64_t strips[] = {0, 0, 1, 3, 17, 1000};
    comparison *all = context;
    test_random random = test_seeded(seed);
    const gf_format format = small_format(&random);
    const uint64_t count = 1 + test_below(&random, test_below(&random, 2) ? 4 : MAX);
    const uint32_t inputs = filter->info.inputs;
    test_job jobs[MAX];
    test_outcome got[MAX] = {{.result = NULL}};
    gf_pixels in[2 * MAX];
    gf_out_pixels out[MAX];
    gf_result *results[MAX];
    for (uint64_t i = 0; i < count; i++) {
        if (!test_job_new(&jobs[i], filter, text, format, &random))
            return false; /* the first one: all images have the same format */
        test_job_fill(&jobs[i], &random);
        memcpy(in + i * inputs, jobs[i].pixels, inputs * sizeof *in);
        if (jobs[i].drawn.width)
            got[i].image = test_image_new(jobs[i].drawn, (size_t)test_below(&random, 40));
        out[i] = (gf_out_pixels){got[i].image.rows.data, got[i].image.stride};
    }
    const gf_engine_options options = {.backend = all->backend,
                                       .threads = (uint32_t)(1 + test_below(&random, 4)),
                                       .rows_per_strip = strips[test_below(&random, 6)]};
    AUTO(engine) gf_engine *engine = test_engine(&options);
    gf_report report;
    gf_step_report output;
    char what[512], which[600];
    test_describe(what, &jobs[0], seed, &options);
    if (test_run_list(&(test_list){engine, filter, jobs[0].settings, &format, count, in,
                                   jobs[0].drawn.width ? out : NULL, .result = results,
                                   .report = &report, .output = &output}))
        fail_msg("%s: %s", what, why.message);
    assert_string_equal(report.backend, all->backend);
    assert_true(gf_format_equal(&report.in, &format));
    assert_true(gf_format_equal(&output.out, &jobs[0].drawn));
    for (uint64_t i = 0; i < count; i++) {
        test_outcome want = test_run(&jobs[i], all->golden, 0);
        got[i].result = results[i];
        snprintf(which, sizeof which, "%s, image %" PRIu64 " of %" PRIu64, what, i, count);
        test_check_outcome(&want, &got[i], which);
        test_outcome_free(&want);
        test_outcome_free(&got[i]);
        test_job_free(&jobs[i]);
    }
    /* Single runs need at least one strip per image. */
    all->together += !options.rows_per_strip && report.strips < count;
    all->images += count;
    return true;
}

static void run_all(const char *backend) {
    comparison all = {.golden = test_engine(&(gf_engine_options){.backend = "golden"}),
                      .backend = backend};
    const uint64_t batches = test_each_case(compare_once, &all, test_rounds(4), false);
    gf_engine_close(all.golden);
    print_message("%s: %" PRIu64 " batches of %" PRIu64 " images, %" PRIu64
                  " in fewer strips than images\n",
                  backend, batches, all.images, all.together);
    assert_true((all.together > 0) == (strcmp(backend, "golden") != 0));
}

TEST(golden_takes_batches) {
    run_all("golden");
}

TEST(cpu_takes_batches) {
    run_all("cpu");
}

TEST(cuda_takes_batches) {
    test_needs_gpu();
    run_all("cuda");
}

/* ---- shared strips --------------------------------------------------------------------------- */

static bool stands_alone(const char *name, const char *text) {
    const gf_format format = {.width = 9, .height = 7, .channels = 3, .type = GF_U8};
    const gf_filter *filter = gf_filter_find(name);
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    gf_plan *plan;
    assert_ok(gf_plan_new(filter, settings, &format, &plan, NULL));
    const bool alone = gf_rows_independent(plan);
    gf_plan_free(plan);
    return alone;
}

TEST(rows_stand_alone_where_nothing_crosses_them) {
    assert_true(stands_alone("smooth", ""));
    assert_true(stands_alone("smooth", "radius=9 tile=4"));
    assert_false(stands_alone("smooth", "axis=y"));
    assert_false(stands_alone("smooth", "axis=xy"));
    assert_true(stands_alone("smooth", "axis=y stages=enhance"));
    assert_false(stands_alone("normalize", ""));
    assert_true(stands_alone("axis-sum", ""));
    assert_false(stands_alone("axis-sum", "axis=y"));
    assert_false(stands_alone("hist", ""));
    assert_true(stands_alone("dot", ""));
    assert_true(stands_alone("compare", ""));
}

/* ---- rejected arguments ---------------------------------------------------------------------- */

TEST(rejects_unsuitable_images) {
    static const unsigned char rows[32];
    const gf_format format = {.width = 8, .height = 4, .channels = 1, .type = GF_U8};
    const gf_format empty = {.width = 0, .height = 4, .channels = 1, .type = GF_U8};
    const gf_pixels good[3] = {{rows, 8}, {rows, 8}, {rows, 8}};
    const gf_pixels hole[3] = {{rows, 8}, {NULL, 8}, {rows, 8}};
    const gf_pixels narrow[3] = {{rows, 8}, {rows, 8}, {rows, 7}};
    unsigned char drawn[3][32];
    const gf_out_pixels out[3] = {{drawn[0], 8}, {drawn[1], 8}, {drawn[2], 8}};
    const gf_out_pixels none[3] = {{drawn[0], 8}, {drawn[1], 8}, {NULL, 8}};
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu", .threads = 2});
    for (int scenario = 0; scenario < 2; scenario++) { /* in shared strips, then one by one */
        const gf_filter *filter = gf_filter_find("smooth");
        AUTO(settings) gf_settings *settings = test_settings(filter, scenario ? "axis=y" : "");
#define RUN(format, in, out)                                                                       \
    test_run_list(&(test_list){engine, filter, settings, format, 3, in, out})
        assert_ok(RUN(&format, good, out));
        assert_int_equal(RUN(&format, hole, out), GF_USAGE);
        assert_int_equal(RUN(&format, NULL, out), GF_USAGE);
        assert_int_equal(RUN(&format, narrow, out), GF_USAGE);
        assert_int_equal(RUN(&format, good, none), GF_USAGE);
        assert_int_equal(RUN(&format, good, NULL), GF_USAGE);
        assert_int_equal(RUN(&empty, good, out), GF_FAILED);
    }
    const gf_filter *filter = gf_filter_find("axis-sum");
    gf_settings *settings = test_settings(filter, "");
    gf_result *results[3] = {(gf_result *)drawn, (gf_result *)drawn, (gf_result *)drawn};
    assert_int_equal(
        test_run_list(&(test_list){engine, filter, settings, &format, 3, hole, .result = results}),
        GF_USAGE);
    for (int i = 0; i < 3; i++)
        assert_null(results[i]);
    assert_int_equal(
        test_run_list(&(test_list){engine, NULL, settings, &format, 3, good, .result = results}),
        GF_USAGE);
    gf_settings_free(settings);
}

int main(void) {
    return test_main(NULL);
}
