/* A batch of images in memory returns the same results as single runs: every case of every filter,
 * on every backend, with random counts, sizes and strides. */

#include "core/filter.h"
#include "testing.h"

#define MAX 40

static uint64_t batches, images, together;

/* Return a small format, as is typical in batches. */
static gf_format small_format(test_random *random) {
    gf_format format = test_format(random);
    while (format.width * format.height * format.channels > 20000) {
        format.width = (format.width + 1) / 2;
        format.height = (format.height + 1) / 2;
    }
    return format;
}

typedef struct batch {
    uint64_t count;
    test_image in[2 * MAX], out[MAX];
    gf_pixels pixels[2 * MAX];
    gf_out_pixels capacities[MAX];
    gf_result *results[MAX];
} batch;

static void fill(batch *all, const gf_format *format, const gf_format *drawn, uint32_t inputs,
                 test_random *random) {
    all->count = 1 + test_below(random, test_below(random, 2) ? 4 : MAX);
    for (uint64_t i = 0; i < all->count * inputs; i++) {
        all->in[i] = test_image_new(*format, (size_t)test_below(random, 40));
        test_fill(&all->in[i], (test_content)test_below(random, TEST_CONTENT_COUNT), random);
        if (i % 2 && inputs == 2 && test_below(random, 2)) { /* a nearly equal pair */
            for (uint64_t y = 0; y < format->height; y++)
                memcpy(gf_row(&all->in[i].rows, y), gf_row(&all->in[i - 1].rows, y),
                       gf_row_bytes(format));
            test_disturb(&all->in[i], random);
        }
        all->pixels[i] = (gf_pixels){all->in[i].rows.data, all->in[i].stride};
    }
    for (uint64_t i = 0; i < all->count && drawn->width; i++) {
        all->out[i] = test_image_new(*drawn, (size_t)test_below(random, 40));
        all->capacities[i] = (gf_out_pixels){all->out[i].rows.data, all->out[i].stride};
    }
}

static void clear(batch *all, uint32_t inputs, bool drawn) {
    for (uint64_t i = 0; i < all->count * inputs; i++)
        test_image_free(&all->in[i]);
    for (uint64_t i = 0; i < all->count; i++) {
        if (drawn)
            test_image_free(&all->out[i]);
        gf_result_free(all->results[i]);
    }
}

/* Compare each image of the batch with a single golden run. */
static void check(gf_engine *golden, const gf_filter *filter, const gf_settings *settings,
                  const gf_format *format, const gf_format *drawn, const batch *all,
                  const char *what) {
    for (uint64_t i = 0; i < all->count; i++) {
        test_image want = {0};
        gf_result *result = NULL;
        gf_error error = {0};
        char which[600];
        if (drawn->width)
            want = test_image_new(*drawn, 0);
        if (gf_run_memory(golden, filter, settings, format, &all->pixels[i * filter->info.inputs],
                          want.rows.data, want.stride, &result, NULL, &error))
            fail_msg("%s: %s", what, error.message);
        snprintf(which, sizeof which, "%s, image %" PRIu64 " of %" PRIu64, what, i, all->count);
        if ((drawn->width && !test_same(&want, &all->out[i], which)) ||
            !test_same_result(result, all->results[i], which))
            fail_msg("%s", "the batch differs");
        if (drawn->width && !test_margins_intact(&all->out[i]))
            fail_msg("%s: wrote outside its rows", which);
        gf_result_free(result);
        if (drawn->width)
            test_image_free(&want);
    }
}

static bool run_once(gf_engine *golden, const char *backend, const gf_filter *filter,
                     const char *text, uint64_t seed) {
    test_random random = {seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    const gf_format format = small_format(&random);
    gf_format drawn;
    gf_settings *settings = test_settings(filter, text);
    if (gf_filter_output(filter, settings, &format, &drawn, NULL)) {
        gf_settings_free(settings);
        return false;
    }
    static batch all;
    memset(&all, 0, sizeof all);
    fill(&all, &format, &drawn, filter->info.inputs, &random);
    const uint64_t strips[] = {0, 0, 1, 3, 17, 1000};
    const gf_engine_options options = {.backend = backend,
                                       .threads = (uint32_t)(1 + test_below(&random, 4)),
                                       .rows_per_strip = strips[test_below(&random, 6)]};
    gf_engine *engine = test_engine(&options);
    gf_report report;
    gf_error error = {0};
    char what[512];
    snprintf(what, sizeof what,
             "%s '%s' on %s: seed %" PRIu64 ", %" PRIu64 "x%" PRIu64
             "x%u %s, threads %u, rows per strip %" PRIu64,
             filter->info.name, text, backend, seed, format.width, format.height, format.channels,
             gf_type_name(format.type), options.threads, options.rows_per_strip);
    if (gf_run_memory_batch(engine, filter, settings, &format, all.count, all.pixels,
                            drawn.width ? all.capacities : NULL, all.results, &report, &error))
        fail_msg("%s: %s", what, error.message);
    assert_string_equal(report.backend, backend);
    assert_true(gf_format_equal(&report.in, &format));
    assert_true(gf_format_equal(&report.out, &drawn));
    check(golden, filter, settings, &format, &drawn, &all, what);
    /* Single runs need at least one strip per image. */
    if (!options.rows_per_strip && report.strips < all.count)
        together++;
    batches++;
    images += all.count;
    gf_engine_close(engine);
    clear(&all, filter->info.inputs, drawn.width > 0);
    gf_settings_free(settings);
    return true;
}

static void run_all(const char *backend) {
    gf_engine *golden = test_engine(&(gf_engine_options){.backend = "golden"});
    const uint64_t rounds = test_rounds(4);
    const uint64_t seed = test_environment("GF_TEST_SEED", 1);
    batches = images = together = 0;
    for (size_t f = 0; f < gf_filter_count(); f++) {
        const gf_filter *filter = gf_filter_at(f);
        for (size_t c = 0; filter->info.cases[c]; c++) {
            uint64_t suited = 0;
            for (uint64_t round = 0; round < rounds || (suited == 0 && round < 100); round++)
                suited +=
                    run_once(golden, backend, filter, filter->info.cases[c], seed + round * 97 + c);
            assert_true(suited > 0);
        }
    }
    gf_engine_close(golden);
    print_message("%s: %" PRIu64 " batches of %" PRIu64 " images, %" PRIu64
                  " in fewer strips than images\n",
                  backend, batches, images, together);
    assert_true((together > 0) == (strcmp(backend, "golden") != 0));
}

static void golden_takes_batches(void **state) {
    (void)state;
    run_all("golden");
}

static void cpu_takes_batches(void **state) {
    (void)state;
    run_all("cpu");
}

static void cuda_takes_batches(void **state) {
    (void)state;
    test_needs_gpu();
    run_all("cuda");
}

/* ---- shared strips --------------------------------------------------------------------------- */

static bool stands_alone(const char *name, const char *text) {
    const gf_format format = {.width = 9, .height = 7, .channels = 3, .type = GF_U8};
    const gf_filter *filter = gf_filter_find(name);
    gf_settings *settings = test_settings(filter, text);
    gf_plan *plan;
    assert_int_equal(gf_plan_new(filter, settings, &format, &plan, NULL), GF_OK);
    const bool alone = gf_rows_independent(filter, plan);
    free(plan);
    gf_settings_free(settings);
    return alone;
}

static void rows_stand_alone_where_nothing_crosses_them(void **state) {
    (void)state;
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

static void rejects_unsuitable_images(void **state) {
    static const unsigned char rows[32];
    const gf_format format = {.width = 8, .height = 4, .channels = 1, .type = GF_U8};
    const gf_format empty = {.width = 0, .height = 4, .channels = 1, .type = GF_U8};
    const gf_pixels good[3] = {{rows, 8}, {rows, 8}, {rows, 8}};
    const gf_pixels hole[3] = {{rows, 8}, {NULL, 8}, {rows, 8}};
    const gf_pixels narrow[3] = {{rows, 8}, {rows, 8}, {rows, 7}};
    unsigned char drawn[3][32];
    const gf_out_pixels out[3] = {{drawn[0], 8}, {drawn[1], 8}, {drawn[2], 8}};
    const gf_out_pixels none[3] = {{drawn[0], 8}, {drawn[1], 8}, {NULL, 8}};
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu", .threads = 2});
    gf_error error = {0};

    (void)state;
    for (int scenario = 0; scenario < 2; scenario++) { /* in shared strips, then one by one */
        const gf_filter *filter = gf_filter_find("smooth");
        gf_settings *settings = test_settings(filter, scenario ? "axis=y" : "");
#define RUN(format, in, out)                                                                       \
    gf_run_memory_batch(engine, filter, settings, format, 3, in, out, NULL, NULL, &error)
        assert_int_equal(RUN(&format, good, out), GF_OK);
        assert_int_equal(RUN(&format, hole, out), GF_USAGE);
        assert_int_equal(RUN(&format, NULL, out), GF_USAGE);
        assert_int_equal(RUN(&format, narrow, out), GF_FAILED);
        assert_int_equal(RUN(&format, good, none), GF_USAGE);
        assert_int_equal(RUN(&format, good, NULL), GF_USAGE);
        assert_int_equal(RUN(&empty, good, out), GF_FAILED);
        gf_settings_free(settings);
    }
    const gf_filter *filter = gf_filter_find("axis-sum");
    gf_settings *settings = test_settings(filter, "");
    gf_result *results[3] = {(gf_result *)drawn, (gf_result *)drawn, (gf_result *)drawn};
    assert_int_equal(gf_run_memory_batch(engine, filter, settings, &format, 3, hole, NULL, results,
                                         NULL, &error),
                     GF_USAGE);
    for (int i = 0; i < 3; i++)
        assert_null(results[i]);
    assert_int_equal(
        gf_run_memory_batch(engine, filter, settings, &format, 0, NULL, NULL, NULL, NULL, &error),
        GF_OK);
    assert_int_equal(
        gf_run_memory_batch(engine, NULL, settings, &format, 3, good, NULL, results, NULL, &error),
        GF_USAGE);
    gf_settings_free(settings);
    gf_engine_close(engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_takes_batches),
        cmocka_unit_test(cpu_takes_batches),
        cmocka_unit_test(cuda_takes_batches),
        cmocka_unit_test(rows_stand_alone_where_nothing_crosses_them),
        cmocka_unit_test(rejects_unsuitable_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
