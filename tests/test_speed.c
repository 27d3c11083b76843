/* What is timed is what filters make: every case of every filter on every backend, against golden;
 * and what else the library says about speed. */
#include "io_util.h"
#include "testing.h"

#include "engine/engine.h"
#include "measuring.h"

static gf_engine *open_engine(const gf_engine_options *options) {
    gf_engine *engine = NULL;
    gf_error error = {0};
    if (gf_engine_open(options, &engine, &error))
        fail_msg("%s", error.message);
    return engine;
}

/* ---- filters -----------------------------------------------------------------------------------
 */

static bool time_once(gf_engine *golden, gf_engine *engine, const char *backend,
                      const gf_filter *filter, const char *text, uint64_t seed) {
    test_random random = {seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    const gf_format format = test_format(&random);
    gf_format drawn;
    gf_settings *settings = test_settings(filter, text);
    if (gf_filter_output(filter, settings, &format, &drawn, NULL)) {
        gf_settings_free(settings);
        return false;
    }
    test_image in[2], want = {0}, got = {0};
    gf_pixels pixels[2];
    for (int i = 0; i < 2; i++) {
        in[i] = test_image_new(format, (size_t)test_below(&random, 40));
        test_fill(&in[i], (test_content)test_below(&random, TEST_CONTENT_COUNT), &random);
        pixels[i] = (gf_pixels){in[i].rows.data, in[i].stride};
    }
    if (drawn.width) {
        want = test_image_new(drawn, 0);
        got = test_image_new(drawn, (size_t)test_below(&random, 40));
    }
    gf_result *expected, *timed;
    gf_speed speed;
    gf_error error = {0};
    char what[400];
    snprintf(what, sizeof what, "%s '%s' on %s, seed %llu", filter->info.name, text, backend,
             (unsigned long long)seed);
    if (gf_run_memory(golden, filter, settings, &format, pixels, want.rows.data, want.stride,
                      &expected, NULL, &error) ||
        gf_time_filter(engine, filter, settings, &format, pixels, got.rows.data, got.stride, 0,
                       &timed, &speed, &error))
        fail_msg("%s: %s", what, error.message);
    assert_string_equal(speed.backend, backend);
    assert_true(speed.device[0] != 0);
    assert_true(speed.seconds > 0);
    assert_int_equal(speed.passes, 3);
    assert_true(speed.bytes >= format.height * gf_row_bytes(&format) * filter->info.inputs);
    if ((drawn.width && !test_same(&want, &got, what)) || !test_same_result(expected, timed, what))
        fail_msg("%s: what was timed differs from golden", what);
    if (drawn.width) {
        assert_true(test_margins_intact(&got));
        test_image_free(&want);
        test_image_free(&got);
    }
    test_image_free(&in[0]);
    test_image_free(&in[1]);
    gf_result_free(expected);
    gf_result_free(timed);
    gf_settings_free(settings);
    return true;
}

static void times_what_filters_make(void **state) {
    (void)state;
    const uint64_t rounds = test_environment("GF_TEST_ROUNDS", 3);
    gf_engine *golden = open_engine(&(gf_engine_options){.backend = "golden"});
    for (const char *const *backend = test_backends(); *backend; backend++)
        for (uint64_t bands = 0; bands < 20; bands += 17) {
            const gf_engine_options options = {
                .backend = *backend, .threads = 3, .band_rows = bands};
            gf_engine *engine = open_engine(&options);
            for (size_t f = 0; f < gf_filter_count(); f++) {
                const gf_filter *filter = gf_filter_at(f);
                for (size_t c = 0; filter->info.cases[c]; c++) {
                    uint64_t suited = 0;
                    for (uint64_t i = 0; i < rounds || (suited == 0 && i < 100); i++)
                        suited += time_once(golden, engine, *backend, filter, filter->info.cases[c],
                                            1 + i * 1009 + c + bands);
                    assert_true(suited > 0);
                }
            }
            gf_engine_close(engine);
        }
    gf_engine_close(golden);
}

static void spends_the_time_it_is_given(void **state) {
    static unsigned char rows[64 * 64];
    const gf_format format = {.width = 64, .height = 64, .channels = 1, .type = GF_U8};
    const gf_pixels in = {rows, 64};
    const gf_filter *filter = gf_filter_find("axis-sum");
    gf_settings *settings = test_settings(filter, "");
    gf_engine *engine = open_engine(&(gf_engine_options){.backend = "cpu", .threads = 1});
    gf_speed speed;

    (void)state;
    assert_int_equal(
        gf_time_filter(engine, filter, settings, &format, &in, NULL, 0, 10, NULL, &speed, NULL),
        GF_OK);
    assert_int_equal(speed.passes, 100);
    assert_int_equal(speed.bytes, 64 * 64 + 64 * 8);
    gf_settings_free(settings);
    gf_engine_close(engine);
}

static void refuses_what_cannot_be_timed(void **state) {
    static unsigned char rows[32];
    const gf_format format = {.width = 8, .height = 4, .channels = 1, .type = GF_U8};
    const gf_pixels in[2] = {{rows, 8}, {NULL, 8}};
    const gf_filter *smooth = gf_filter_find("smooth"), *dot = gf_filter_find("dot");
    gf_settings *one = test_settings(smooth, ""), *two = test_settings(dot, "");
    gf_engine *engine = open_engine(&(gf_engine_options){.backend = "cpu", .threads = 1});
    gf_engine *small =
        open_engine(&(gf_engine_options){.backend = "cpu", .threads = 1, .max_memory = 1000});
    gf_engine *any = open_engine(NULL);
    gf_memory_speed memory;
    gf_speed speed;
    gf_error error = {0};

    (void)state;
    assert_int_equal(
        gf_time_filter(engine, smooth, one, &format, in, NULL, 8, 0, NULL, &speed, &error),
        GF_USAGE);
    assert_message(&error, "smooth: it makes an image; give memory for it");
    assert_int_equal(
        gf_time_filter(engine, smooth, one, &format, in, rows, 7, 0, NULL, &speed, &error),
        GF_FAILED);
    assert_int_equal(
        gf_time_filter(engine, dot, two, &format, in, NULL, 0, 0, NULL, &speed, &error), GF_USAGE);
    assert_int_equal(
        gf_time_filter(engine, NULL, two, &format, in, NULL, 0, 0, NULL, &speed, &error), GF_USAGE);
    assert_int_equal(
        gf_time_filter(engine, dot, one, &format, in, NULL, 0, 0, NULL, &speed, &error), GF_USAGE);
    assert_int_equal(gf_time_memory(any, 1000, 0, &memory, &error), GF_USAGE);
    assert_int_equal(gf_time_memory(engine, 0, 0, &memory, &error), GF_USAGE);
    assert_int_equal(gf_time_memory(small, 501, 0, &memory, &error), GF_FAILED);
    assert_int_equal(gf_time_memory(small, 500, 0, &memory, &error), GF_OK);
    gf_engine_close(engine);
    gf_engine_close(small);
    gf_engine_close(any);
    gf_settings_free(one);
    gf_settings_free(two);
}

/* ---- memory and files --------------------------------------------------------------------------
 */

static void times_copies(void **state) {
    (void)state;
    for (const char *const *backend = test_backends(); *backend; backend++) {
        gf_engine *engine = open_engine(&(gf_engine_options){.backend = *backend, .threads = 3});
        gf_memory_speed speed;
        const bool device = strcmp(*backend, "cuda") == 0;
        assert_int_equal(gf_time_memory(engine, 1000001, 0.01, &speed, NULL), GF_OK);
        assert_true(speed.copy > 0);
        assert_true((speed.upload > 0) == device);
        assert_true((speed.download > 0) == device);
        assert_true((speed.both > 0) == device);
        gf_engine_close(engine);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_what_filters_make),
        cmocka_unit_test(spends_the_time_it_is_given),
        cmocka_unit_test(refuses_what_cannot_be_timed),
        cmocka_unit_test(times_copies),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
