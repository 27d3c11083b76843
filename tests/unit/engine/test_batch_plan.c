/* Decisions before a batch of files starts: validity, threads, engines and auto's forecast. */
#include "batch_util.h"

#include "core/filter.h"
#include "engine/batch/batch.h"
#include "engine/engine.h"

/* Errors common to all items are returned once, and no item starts. */
TEST(refuses_all) {
    const gf_filter *smooth = gf_filter_find("smooth"), *hist = gf_filter_find("hist");
    listener all = {0};
    test_batch_options options = {.done = on_done, .context = &all};
    test_item items[ITEMS];
    make_items(items, true);
    gf_settings *settings = test_settings(smooth, "keep-brightness weight=0");
    assert_error(test_run_batch(smooth, settings, items, ITEMS, &options), GF_USAGE,
                 "keep-brightness");
    gf_settings_free(settings);
    settings = test_settings(smooth, "");
    options.engine = (gf_engine_options){.backend = "cpu", .devices = "0"};
    assert_int_equal(test_run_batch(smooth, settings, items, ITEMS, &options), GF_USAGE);
    options.engine = (gf_engine_options){.backend = "none"};
    assert_int_equal(test_run_batch(smooth, settings, items, ITEMS, &options), GF_USAGE);
    static const char *const lists[] = {"", "0,", ",", "x", "0,0", "1-2", "-1", "0 ", "123456"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        options.engine = (gf_engine_options){.devices = lists[i]};
        assert_error(test_run_batch(smooth, settings, items, ITEMS, &options), GF_USAGE,
                     "--device");
    }
    if (!gf_has_cuda()) {
        options.engine = (gf_engine_options){.backend = "cuda"};
        assert_int_equal(test_run_batch(smooth, settings, items, ITEMS, &options), GF_NO_BACKEND);
    }
    options.engine = (gf_engine_options){0};
    items[3].out = NULL;
    assert_int_equal(test_run_batch(smooth, settings, items, ITEMS, &options), GF_USAGE);
    assert_int_equal(test_run_batch(smooth, settings, NULL, 2, &options), GF_USAGE);
    assert_ok(test_run_batch(smooth, settings, NULL, 0, NULL));
    gf_settings_free(settings);
    settings = test_settings(hist, "bins=4");
    items[0].out = NULL;
    assert_int_equal(test_run_batch(hist, settings, items, 2, &options), GF_USAGE);
    assert_ok(gf_settings_set(settings, "mask", in_directory("mask.png"), NULL));
    assert_error(test_run_batch(hist, settings, items, 1, &options), GF_USAGE, "--mask");
    gf_settings_free(settings);
    settings = test_settings(gf_filter_find("dot"), "");
    assert_int_equal(test_run_batch(gf_filter_find("dot"), settings, items, 1, &options), GF_USAGE);
    gf_settings_free(settings);
    const char *const out = in_directory("out.png");
    const gf_write_options high = {.quality = 300};
    const gf_step steps[] = {{.filter = smooth}, {.write = &high}};
    const gf_job job = {.steps = steps, .step_count = 2};
    const gf_batch_item item = {.in = in_directory("in.png"), .out = &out};
    assert_error(gf_run_batch(&job, &item, 1, NULL, &why), GF_USAGE, "quality: 300 is above");
    assert_int_equal(all.calls, 0);
}

/* ---- threads and engines --------------------------------------------------------------------- */

TEST(shares_the_threads) {
    static const struct {
        uint64_t count;
        uint32_t threads;
        uint64_t open_files;
        uint32_t at_once, each;
    } cases[] = {{1, 16, 1024, 1, 16},
                 {3, 16, 1024, 3, 6},
                 {16, 16, 1024, 16, 1},
                 {17, 16, 1024, 16, 1},
                 {9, 1, 1024, 1, 1},
                 {5, 8, 1024, 5, 2},
                 {2000, 5000, UINT64_MAX, 1024, 1},
                 /* Each image needs two open files. */
                 {2000, 64, 64, 16, 4},
                 {2000, 1024, 1024, 496, 3},
                 {10, 4, 40, 4, 1},
                 {10, 4, 38, 3, 2},
                 {10, 4, 3, 1, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gf_file_batch batch = {.count = cases[i].count};
        gf_batch_share_threads(&batch, cases[i].threads, cases[i].open_files);
        assert_int_equal(batch.at_once, cases[i].at_once);
        assert_int_equal(batch.threads_per_file, cases[i].each);
    }
}

TEST(counts_engines) {
    static const struct {
        uint32_t threads, devices, engines;
    } cases[] = {{1, 1, 1}, {2, 1, 2}, {3, 1, 3}, {4, 1, 4},  {64, 1, 4},
                 {2, 4, 1}, {7, 2, 3}, {8, 2, 4}, {15, 8, 1}, {16, 8, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const gf_file_batch batch = {.threads = cases[i].threads};
        assert_int_equal(gf_batch_engines(&batch, cases[i].devices), cases[i].engines);
    }
}

/* ---- forecasts of auto ----------------------------------------------------------------------- */

static gf_forecast expect(uint64_t side, uint64_t count, uint32_t threads, double cost) {
    const gf_plan plan = {.in = {side, side, 3, GF_U8, false},
                          .out = {side, side, 3, GF_U8, false},
                          .inputs = 1,
                          .cost = cost,
                          .download = 1};
    gf_file_batch batch = {.count = count};
    const gf_codec_costs codec = {.decode = 7, .encode = 10, .encode_threads = threads};
    gf_batch_share_threads(&batch, threads, UINT64_MAX);
    const gf_node node = {.plan = &plan};
    return gf_batch_expect(&batch, &(gf_nodes){&node, 1, 0}, &codec);
}

TEST(judges_batches) {
    /* The start-up pays off for many images, not for one. */
    assert_false(expect(1000, 1, 16, 100).cuda);
    assert_true(expect(1000, 1000, 16, 100).cuda);
    /* If the codec dominates, the cores limit both backends. */
    assert_false(expect(1000, 1000, 16, 0.3).cuda);
    /* At most four large images are decoded at once for a device; on the CPU, one per thread. */
    assert_false(expect(20000, 100, 64, 20).cuda);
    assert_true(expect(20000, 100, 16, 20).cuda);
    /* For one large image, the decoder limits both backends unless the filter costs more. */
    assert_false(expect(20000, 1, 16, 20).cuda);
    assert_true(expect(20000, 1, 16, 200).cuda);
    const gf_forecast few = expect(1000, 4, 16, 1), many = expect(1000, 400, 16, 1);
    assert_true(many.cpu_seconds > 20 * few.cpu_seconds &&
                many.cpu_seconds < 101 * few.cpu_seconds);
    /* Many images keep all threads busy. With four images, four threads decode. */
    assert_true(many.cpu_seconds < 1.01 * 400 * 3e6 * (7 + 10 + 1) * 1e-9 / 16);
    assert_true(few.cpu_seconds < 1.01 * 4 * 3e6 * 7e-9 / 4);
    assert_non_null(strstr(many.reason, "for all files"));
}

int main(void) {
    return test_main(&(test_fixture){make_inputs, remove_directory});
}
