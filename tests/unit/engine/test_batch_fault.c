/* Devices that fail in the middle of a batch: every file is processed exactly once, with golden's
 * bits. If no permitted device remains, unprocessed files leave no output. */
#include "batch_util.h"
#include "pipe.h"

#include "faulty_backend.h"

#define COUNT 26  /* inputs, valid and damaged */
#define ENGINES 2 /* max engines per device in runs with pipes */
#define PIPES 5   /* inputs that may be pipes, ... */
#define PIPE 0    /* ... starting with this one */

static uint64_t runs, noted, stopped, pipes_lost;

typedef struct scenario {
    const char *filter, *text, *backend;
    uint32_t devices, threads;
    uint64_t max_memory; /* a small limit makes all images large */
    bool pipe;
} scenario;

static bool is_pipe(int i) {
    return i >= PIPE && i < PIPE + PIPES;
}

/* Check all items. Return how many were reported. Another device cannot read a pipe again,
 * therefore up to max_lost pipes may fail. */
static int check(const char *what, bool image, int max_lost) {
    int reported = 0, outputs = 0, lost_pipes = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(got[i].times <= 1);
        reported += got[i].times;
        outputs += access(want_paths[i], F_OK) == 0;
        const bool lost = is_pipe(i) && (got[i].status == GF_NO_BACKEND ||
                                         strstr(got[i].error.message, "cannot be read again"));
        if (got[i].times == 0 || want[i].status || lost) {
            if (access(out_paths[i], F_OK) == 0)
                fail_msg("%s: item %d is there", what, i);
            if (lost) {
                assert_message(&got[i].error, "injected failure");
                lost_pipes++;
                continue;
            }
            if (got[i].times && strcmp(got[i].error.message, want[i].error.message) != 0)
                fail_msg("%s: item %d: %s", what, i, got[i].error.message);
            continue;
        }
        if (got[i].status)
            fail_msg("%s: item %d: %s", what, i, got[i].error.message);
        assert_string_equal(got[i].text, want[i].text);
        outputs += image;
        if (image)
            check_file(i, what);
    }
    /* No temporary files remain. */
    assert_int_equal(count_files(false), outputs + 75);
    assert_true(lost_pipes <= max_lost);
    pipes_lost += (uint64_t)lost_pipes;
    return reported;
}

/* Feed the input of an item from a pipe. */
static test_feeder *start_pipe(test_item *item, char path[1300]) {
    snprintf(path, 1300, "%s.fifo", item->in);
    test_feeder *feeder = test_feed_file(path, item->in, 0);
    item->in = path;
    return feeder;
}

static gf_status run(const scenario *w, const gf_settings *settings) {
    const gf_filter *filter = gf_filter_find(w->filter);
    listener all = {.in_order = false};
    test_item items[ITEMS];
    const test_batch_options options = {.engine = {.backend = w->backend,
                                                   .threads = w->threads,
                                                   .max_memory = w->max_memory,
                                                   .verify = w->threads % 3 == 0},
                                        .done = on_done,
                                        .context = &all};
    gf_batch_devices devices = {.count = w->devices, .names = {"0", "1", "2"}};
    test_feeder *feeders[PIPES];
    char paths[PIPES][1300];
    make_items(items, gf_filter_describe(filter)->makes_image);
    for (int i = 0; w->pipe && i < PIPES; i++)
        feeders[i] = start_pipe(&items[PIPE + i], paths[i]);
    const gf_status status =
        test_run_batch_on(&(test_batch){&devices, filter, settings, items, COUNT, &options});
    for (int i = 0; w->pipe && i < PIPES; i++)
        test_feed_end(feeders[i]);
    return status;
}

static bool any_noted(void) {
    for (int i = 0; i < COUNT; i++)
        if (got[i].times && got[i].report.device_failed &&
            strstr(got[i].report.reason, "injected failure"))
            return true;
    return false;
}

/* Inject one failure and check the outcome of the batch. */
static void try_once(const scenario *w, const gf_settings *settings, const faulty_plan *plan) {
    const bool image = gf_filter_find(w->filter)->info.makes_image;
    const bool named = strcmp(w->backend, "cuda") == 0;
    char what[300];
    snprintf(what, sizeof what, "%s '%s' on %s, %u devices, call %" PRIu64 " %s, status %d%s",
             w->filter, w->text, w->backend, w->devices, plan->fail_at,
             plan->permanent ? "and on" : "once", plan->status, w->pipe ? ", pipe" : "");
    faulty_expect(plan);
    const gf_status status = run(w, settings);
    const int reported = check(what, image, !w->pipe ? 0 : named ? ENGINES : PIPES);
    const char *failed = faulty_failed();
    runs += failed != NULL;
    if (status) {
        /* The batch fails only if no requested device remains. */
        if (!named || !failed)
            fail_msg("%s: %s", what, why.message);
        assert_int_equal(status, GF_NO_BACKEND);
        assert_message(&why, "injected failure");
        /* If an additional engine cannot be opened, the open engines continue. */
        if (strcmp(failed, "open") != 0 || reported > 0) {
            char left[60];
            snprintf(left, sizeof left, "%d of %d files were not processed", COUNT - reported,
                     COUNT);
            assert_message(&why, left);
            assert_true(plan->only == NULL);
        }
        stopped++;
        return;
    }
    assert_int_equal(reported, COUNT);
    if (failed && any_noted())
        noted++;
    else if (failed && plan->status == GF_NO_BACKEND && strcmp(failed, "open") != 0)
        fail_msg("%s: the failure of %s is not reported", what, failed);
}

static void try_calls(const scenario *w, gf_status status, const char *only, uint64_t step) {
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find(w->filter), w->text);
    faulty_plan plan = {.rows = 6};
    run_each(gf_filter_find(w->filter), settings, NULL, COUNT);
    faulty_expect(&plan);
    assert_ok(run(w, settings));
    assert_int_equal(check("without a failure", gf_filter_find(w->filter)->info.makes_image, false),
                     COUNT);
    assert_false(any_noted());
    const uint64_t calls = faulty_calls();
    assert_true(calls > 10);
    for (uint64_t n = 1; n <= calls; n += n < 12 ? 1 : step * test_stride(7, 7)) {
        plan.fail_at = n;
        plan.status = status;
        plan.only = only;
        plan.permanent = n % 2;
        try_once(w, settings, &plan);
    }
}

static int make_all(void **state) {
    if (make_inputs(state))
        return 1;
    gf_engine_stand_in(&faulty_backend);
    assert_int_equal(count_files(false), 75); /* five of the ITEMS inputs do not exist */
    return 0;
}

/* Under auto, the cpu backend completes the batch. */
TEST(auto_continues) {
    static const scenario scenarios[] = {
        {"smooth", "", "auto", 1, 1, 0, false},
        {"smooth", "axis=y", "auto", 1, 4, 0, true},
        {"smooth", "axis=xy", "auto", 1, 4, 20000, true},
        {"normalize", "", "auto", 1, 3, 0, false},
        {"hist", "bins=7", "auto", 1, 3, 0, false},
        {"hist", "bins=9 extract=2", "auto", 1, 3, 20000, false},
    };
    runs = noted = stopped = pipes_lost = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        try_calls(&scenarios[i], GF_NO_BACKEND, NULL, 5);
        try_calls(&scenarios[i], GF_FAILED, NULL, 17);
    }
    assert_int_equal(stopped, 0);
    assert_true(noted > runs / 2);
    print_message("%" PRIu64 " failures, %" PRIu64 " noted, all done\n", runs, noted);
}

/* A requested device is not replaced: the batch ends. */
TEST(named_device_stops) {
    static const scenario scenarios[] = {
        {"smooth", "", "cuda", 1, 1, 0, false},
        {"smooth", "axis=y", "cuda", 1, 4, 20000, false},
        {"smooth", "", "cuda", 1, 1, 0, true},
        {"normalize", "", "cuda", 1, 3, 0, false},
        {"hist", "bins=7", "cuda", 1, 5, 0, false},
    };
    runs = noted = stopped = pipes_lost = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        try_calls(&scenarios[i], GF_NO_BACKEND, NULL, 3);
    assert_true(stopped > runs / 2);
    print_message("%" PRIu64 " failures, %" PRIu64 " ended the batch\n", runs, stopped);
}

/* If every file was reported, the batch returns no error of its own. */
TEST(last_pipe_is_reported) {
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    const gf_batch_devices devices = {.count = 1, .names = {"0"}};
    listener all = {.in_order = false};
    const test_batch_options options = {
        .engine = {.backend = "cuda", .threads = 2}, .done = on_done, .context = &all};
    test_item items[ITEMS];
    char path[1300];
    faulty_expect(&(faulty_plan){.rows = 6, .fail_at = 3, .status = GF_NO_BACKEND});
    make_items(items, true);
    test_feeder *feeder = start_pipe(&items[0], path);
    assert_ok(test_run_batch_on(
        &(test_batch){&devices, gf_filter_find("smooth"), settings, items, 1, &options}));
    test_feed_end(feeder);
    assert_int_equal(got[0].times, 1);
    assert_int_equal(got[0].status, GF_NO_BACKEND);
    assert_string_equal(faulty_failed(), "submit");
}

/* Another requested device completes the batch. */
TEST(others_do_the_rest) {
    static const scenario scenarios[] = {
        {"smooth", "", "cuda", 2, 4, 0, false},
        {"smooth", "axis=y", "cuda", 3, 6, 20000, false},
        {"smooth", "", "cuda", 2, 4, 20000, true},
        {"hist", "bins=7", "cuda", 2, 3, 0, false},
    };
    runs = noted = stopped = pipes_lost = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        try_calls(&scenarios[i], GF_NO_BACKEND, "1", 2);
    assert_true(runs > 20 && pipes_lost > 0);
    print_message("%" PRIu64 " failures, %" PRIu64 " noted, %" PRIu64 " at the start, %" PRIu64
                  " pipes lost\n",
                  runs, noted, stopped, pipes_lost);
}

/* A device that corrupts one bit of an image: outputs that golden refutes do not appear. */
TEST(corruption_fails_files) {
    static const scenario scenarios[] = {
        {"smooth", "", "auto", 1, 3, 0, false},
        {"smooth", "axis=y", "cuda", 2, 3, 20000, false},
        {"normalize", "", "cuda", 1, 3, 0, false},
        {"hist", "bins=7", "auto", 1, 3, 0, false},
    };
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const bool image = gf_filter_find(scenarios[i].filter)->info.makes_image;
        gf_settings *settings =
            test_settings(gf_filter_find(scenarios[i].filter), scenarios[i].text);
        run_each(gf_filter_find(scenarios[i].filter), settings, NULL, COUNT);
        faulty_expect(
            &(faulty_plan){.rows = 6, .corruption = image ? CORRUPT_ROW : CORRUPT_STATE, .bit = 9});
        assert_ok(run(&scenarios[i], settings));
        for (int n = 0; n < COUNT; n++) {
            assert_int_equal(got[n].times, 1);
            assert_int_equal(got[n].status, GF_FAILED);
            assert_int_equal(access(out_paths[n], F_OK), -1);
            if (!want[n].status)
                assert_message(&got[n].error, "is unreliable");
        }
        gf_settings_free(settings);
    }
}

/* A bit flips once: exactly one file fails, although a retry would succeed. Seldom none: the item
 * was a damaged file, or has failed on its device before. */
TEST(one_corruption_is_reported) {
    static const scenario scenarios[] = {
        {"smooth", "", "auto", 1, 3, 0, false},
        {"smooth", "", "cuda", 1, 6, 20000, false},
        {"hist", "bins=7", "cuda", 1, 9, 20000, false},
    };
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const bool image = gf_filter_find(scenarios[i].filter)->info.makes_image;
        gf_settings *settings =
            test_settings(gf_filter_find(scenarios[i].filter), scenarios[i].text);
        int failed = 0;
        run_each(gf_filter_find(scenarios[i].filter), settings, NULL, COUNT);
        for (int round = 0; round < 5 && failed == 0; round++) {
            faulty_expect(&(faulty_plan){.rows = 6,
                                         .corruption = image ? CORRUPT_ROW : CORRUPT_STATE,
                                         .bit = 9,
                                         .corrupts_once = true});
            assert_ok(run(&scenarios[i], settings));
            assert_true(faulty_corrupted());
            for (int n = 0; n < COUNT; n++) {
                assert_int_equal(got[n].times, 1);
                if (!strstr(got[n].error.message, "is unreliable")) {
                    assert_int_equal(got[n].status, want[n].status);
                    if (image && !want[n].status)
                        check_file(n, "another file than the corrupted one");
                    continue;
                }
                failed++;
                assert_message(&got[n].error, in_paths[n]);
                assert_int_equal(access(out_paths[n], F_OK), -1);
            }
        }
        if (failed != 1)
            fail_msg("%zu: %d files are reported as wrong", i, failed);
        gf_settings_free(settings);
    }
}

int main(void) {
    return test_main(&(test_fixture){make_all, remove_directory});
}
