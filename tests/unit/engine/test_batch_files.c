/* A batch of files produces the same bytes, results and errors as single runs, on threads and on
 * devices (replaced by the cpu backend). */
#include "batch_util.h"
#include "pipe.h"

#include <sys/stat.h>

/* ---- batch and single runs ------------------------------------------------------------------- */

static void check_batch(const char *what, bool image) {
    int good = 0;
    check_outcomes(what);
    for (int i = 0; i < ITEMS; i++) {
        if (want[i].status) {
            assert_int_equal(access(out_paths[i], F_OK), -1);
            continue;
        }
        good++;
        assert_true(gf_format_equal(&got[i].report.in, &want[i].report.in));
        assert_true(got[i].report.total_seconds > 0);
        if (image)
            check_file(i, what);
    }
    assert_true(good > ITEMS / 2);
    /* No temporary files remain: at most one input and two outputs per item. */
    assert_true(count_files(false) <= 3 * ITEMS);
}

static const struct scenario {
    const char *backend;
    uint32_t devices; /* 0: CPU threads */
    uint32_t threads;
    uint64_t max_memory;
    bool in_order;
} scenarios[] = {
    {"cpu", 0, 1, 0, true},       {"cpu", 0, 2, 0, false},    {"cpu", 0, 7, 0, true},
    {"golden", 0, 3, 0, false},   {"auto", 0, 2, 0, false},   {"cpu", 0, 200, 0, true},
    {"cpu", 1, 1, 0, false},      {"cpu", 1, 4, 0, true},     {"cpu", 3, 2, 0, false},
    {"cpu", 2, 5, 100000, false}, {"cpu", 2, 3, 20000, true}, {"golden", 2, 4, 0, false},
    {"cpu", 1, 4, 20000, false},  {"cpu", 2, 9, 20000, true}, {"cpu", 1, 3, 20000, true},
};

static void run_scenarios(const char *name, const char *text, const gf_file_options *options) {
    const gf_filter *filter = gf_filter_find(name);
    const bool image = gf_filter_describe(filter)->makes_image;
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    test_item items[ITEMS];
    run_each(filter, settings, options, ITEMS);
    static uint64_t calls; /* `make check` runs other scenarios in each */
    const uint64_t step = test_stride(5, 1);
    for (uint64_t w = calls++ % step; w < sizeof scenarios / sizeof scenarios[0]; w += step) {
        const struct scenario *scenario = &scenarios[w];
        listener all = {.in_order = scenario->in_order};
        const test_batch_options batch = {.engine = {.backend = scenario->backend,
                                                     .threads = scenario->threads,
                                                     .max_memory = scenario->max_memory},
                                          .files = *options,
                                          .in_order = scenario->in_order,
                                          .done = on_done,
                                          .context = &all};
        const gf_batch_devices devices = {.count = scenario->devices};
        char what[200];
        snprintf(what, sizeof what, "%s '%s', %s, %u devices, %u threads, %s", name, text,
                 scenario->backend, scenario->devices, scenario->threads,
                 scenario->in_order ? "in order" : "as it comes");
        make_items(items, image);
        if (test_run_batch_on(&(test_batch){scenario->devices ? &devices : NULL, filter, settings,
                                            items, ITEMS, &batch}))
            fail_msg("%s: %s", what, why.message);
        check_batch(what, image);
    }
}

TEST(equals_one_by_one) {
    run_scenarios("smooth", "", &(gf_file_options){0});
    run_scenarios("smooth", "axis=xy radius=5 keep-brightness",
                  &(gf_file_options){.write.strip = true});
    run_scenarios("normalize", "", &(gf_file_options){0});
    run_scenarios("hist", "bins=7", &(gf_file_options){0});
    run_scenarios("hist", "bins=9 extract=2 channel=all", &(gf_file_options){0});
    run_scenarios("axis-sum", "axis=y", &(gf_file_options){0});
}

/* ---- stopping and continuing ----------------------------------------------------------------- */

TEST(stops_when_reported) {
    test_item items[ITEMS];
    for (uint32_t devices = 0; devices < 3; devices++) {
        listener all = {.max = 3};
        const test_batch_options options = {
            .engine = {.backend = "cpu", .threads = 2}, .done = on_done, .context = &all};
        make_items(items, true);
        assert_ok(run_smooth(items, ITEMS, devices, &options));
        /* Items in progress complete: one per thread, and a few per device. */
        assert_true(all.calls >= 3 && all.calls < ITEMS);
        for (int i = 0; i < ITEMS; i++)
            assert_true(got[i].times <= 1);
        if (devices == 0)
            assert_true(all.calls <= 4);
    }
}

TEST(keeps_existing_files) {
    for (uint32_t devices = 0; devices < 3; devices += 2) {
        listener all = {0};
        test_item items[ITEMS];
        test_batch_options options = {
            .engine = {.backend = "cpu", .threads = 2}, .done = on_done, .context = &all};
        make_items(items, true);
        put_bytes(out_paths[0], "precious", 8);
        put_bytes(out_paths[1], "old", 3);
        put_bytes(out_paths[6], "stays", 5); /* its input is damaged */
        items[1].replace = true;
        items[6].replace = true;
        assert_ok(run_smooth(items, 8, devices, &options));
        assert_int_equal(got[0].status, GF_FAILED);
        assert_message(&got[0].error, "already exists");
        assert_bytes(out_paths[0], "precious", 8);
        assert_int_equal(got[1].status, GF_OK);
        assert_int_equal(got[6].status, GF_FAILED);
        assert_bytes(out_paths[6], "stays", 5);
        options.files.force = true;
        memset(got, 0, sizeof got);
        assert_ok(run_smooth(items, 1, devices, &options));
        assert_int_equal(got[0].status, GF_OK);
    }
}

/* Pipes are read once. */
TEST(reads_pipes) {
    for (uint32_t round = 0; round < 3; round++) {
        const uint32_t devices = round > 0;
        listener all = {0};
        test_item items[ITEMS];
        /* In the last round, the image is too large to be held for a device. */
        const test_batch_options options = {
            .engine = {.backend = "cpu", .threads = 2, .max_memory = round == 2 ? 3600 : 0},
            .done = on_done,
            .context = &all};
        const char *path = in_directory("pipe.png");
        make_items(items, true);
        test_feeder *feeder = test_feed_file(path, in_paths[0], 0);
        items[1].in = path;
        assert_ok(run_smooth(items, 3, devices, &options));
        test_feed_end(feeder);
        assert_int_equal(got[1].status, GF_OK);
        size_t size;
        AUTO(free) unsigned char *data = test_bytes(out_paths[0], &size);
        assert_bytes(out_paths[1], data, size);
    }
}

static gf_status never(void *context, const gf_ready *ready, gf_error *error) {
    snprintf(error->message, sizeof error->message, "not ready");
    return error->status = GF_FAILED;
}

TEST(calls_ready_before_the_commit) {
    for (uint32_t devices = 0; devices < 2; devices++) {
        listener all = {0};
        test_item items[ITEMS];
        const test_batch_options options = {.engine = {.backend = "cpu"},
                                            .files = {.ready = never},
                                            .done = on_done,
                                            .context = &all};
        make_items(items, true);
        assert_ok(run_smooth(items, 5, devices, &options));
        for (int i = 0; i < 5; i++) {
            assert_int_equal(got[i].status, GF_FAILED);
            assert_string_equal(got[i].error.message, "not ready");
            assert_int_equal(access(out_paths[i], F_OK), -1);
        }
    }
}

/* State of each file just before it was renamed. */
static struct stat looked[ITEMS];

static gf_status look(void *context, const gf_ready *ready, gf_error *error) {
    assert_true(ready->item < ITEMS);
    const char *file = ready->outcome->steps[1].file;
    assert_non_null(file);
    assert_int_equal(looked[ready->item].st_ino, 0);
    assert_int_equal(access(out_paths[ready->item], F_OK), -1);
    assert_int_equal(stat(file, &looked[ready->item]), 0);
    return GF_OK;
}

/* The `ready` callback receives a complete file: afterwards only its name changes. */
TEST(passes_ready_outputs) {
    for (uint32_t devices = 0; devices < 3; devices++) {
        listener all = {0};
        test_item items[ITEMS];
        const test_batch_options options = {.engine = {.backend = "cpu", .threads = 3},
                                            .files = {.ready = look},
                                            .done = on_done,
                                            .context = &all};
        memset(looked, 0, sizeof looked);
        make_items(items, true);
        assert_ok(run_smooth(items, ITEMS, devices, &options));
        for (int i = 0; i < ITEMS; i++) {
            struct stat now = {0};
            assert_int_equal(stat(out_paths[i], &now), got[i].status ? -1 : 0);
            assert_int_equal(now.st_ino, looked[i].st_ino);
            assert_int_equal(now.st_size, looked[i].st_size);
            assert_memory_equal(&now.st_mtim, &looked[i].st_mtim, sizeof now.st_mtim);
        }
    }
}

static bool count_calls(void *context, const gf_batch_done *done) {
    ++*(int *)context;
    return true;
}

/* A failed item is reported after all earlier items, but stops a fail_fast batch at once. */
TEST(stops_before_it_is_reported) {
    const gf_filter *filter = gf_filter_find("hist");
    AUTO(settings) gf_settings *settings = test_settings(filter, "bins=4");
    const char *path = in_directory("slow.png");
    for (int fast = 0; fast < 2; fast++) {
        int calls = 0;
        test_item items[ITEMS];
        const test_batch_options options = {.engine = {.backend = "cpu", .threads = 2},
                                            .in_order = true,
                                            .fail_fast = fast,
                                            .done = count_calls,
                                            .context = &calls};
        make_items(items, false);
        items[0].in = path;
        for (int i = 1; i < ITEMS; i++)
            items[i].in = "absent.png";
        /* The feeder writes to the pipe only after the other items had time to finish. */
        test_feeder *feeder = test_feed_file(path, in_paths[0], 100);
        assert_ok(test_run_batch(filter, settings, items, ITEMS, &options));
        test_feed_end(feeder);
        if (fast)
            assert_int_equal(calls, 2);
        else
            assert_int_equal(calls, ITEMS);
    }
}

int main(void) {
    return test_main(&(test_fixture){make_inputs, remove_directory});
}
