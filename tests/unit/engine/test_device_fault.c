/* A device that fails at any call, once or permanently. Under auto, another backend completes the
 * image with golden's bits, and the report says so. If the device was requested, the run fails and
 * leaves no output. */

#include "core/error.h"
#include "fault_job.h"

typedef struct tally {
    fault_input input;
    uint64_t cases, runs, not_reached, fell_back, rejected;
} tally;

static gf_engine *open_engine(const char *backend, const fault_job *job, uint64_t n) {
    const gf_engine_options options = {.backend = backend,
                                       .threads = 1 + (uint32_t)(n % 3),
                                       .unthreaded = n % 5 == 4,
                                       .verify = n % 4 == 2,
                                       .rows_per_strip =
                                           n % 7 == 3 ? 1 + job->one.format.height / 4 : 0};
    gf_engine *engine = NULL;
    if (gf_engine_open(&options, &engine, &why) && why.status != GF_NO_BACKEND)
        fail_msg("%s", why.message);
    return engine;
}

/* Inject one failure under auto. */
static void try_auto(fault_job *job, tally *all, const faulty_plan *plan) {
    char what[400];
    snprintf(what, sizeof what, "%s '%s', input %d, call %" PRIu64 " %s, status %d",
             job->one.filter->info.name, job->one.text, all->input, plan->fail_at,
             plan->permanent ? "and on" : "once", plan->status);
    faulty_expect(plan);
    gf_engine *engine = open_engine(NULL, job, plan->fail_at);
    fault_outcome done = fault_run(job, engine, all->input, what);
    const char *failed = faulty_failed();
    if (!failed) { /* fewer strips: this call was not made */
        assert_int_equal(done.status, GF_OK);
        gf_engine_close(engine);
        all->not_reached++;
        return;
    }
    all->runs++;
    if (done.status) {
        /* A pipe cannot be read again. Call 3 submits the first strip: nothing was read before. */
        if (all->input != FROM_PIPE || plan->fail_at < 3)
            fail_msg("%s: %s", what, done.error.message);
        assert_message(&done.error, "cannot be read again");
        assert_message(&done.error, "injected failure");
        all->rejected++;
    } else if (strcmp(failed, "open") == 0) {
        assert_false(done.report.device_failed);
        /* For a filter that reads its image twice, the device may start in the second pass. */
        if (strcmp(done.report.backend, "cuda") != 0)
            assert_non_null(strstr(done.report.reason, "injected failure"));
    } else if (strcmp(failed, "begin") == 0 && plan->status == GF_FAILED && !plan->permanent &&
               !done.report.device_failed) {
        assert_string_equal(done.report.backend, "cuda"); /* with smaller strips */
    } else {
        if (!done.report.device_failed || !strstr(done.report.reason, "injected failure") ||
            (!test_filter_before(job->one.filter, job->one.settings, &job->one.format) &&
             !strstr(done.report.backend, "cpu")))
            fail_msg("%s: ran on %s, reason '%s'", what, done.report.backend, done.report.reason);
        all->fell_back++;
    }
    /* A device without memory is tried again. A lost device is not. */
    const uint64_t before = faulty_calls();
    const bool device_lost = strcmp(failed, "open") != 0 && plan->status == GF_NO_BACKEND;
    if (all->input == FROM_MEMORY) {
        done = fault_run(job, engine, all->input, what);
        assert_int_equal(done.status, GF_OK);
        if (device_lost) {
            assert_string_equal(done.report.backend, "cpu");
            assert_true(done.report.device_failed);
            assert_int_equal(faulty_calls(), before);
        } else {
            assert_true(faulty_calls() > before);
            if (!plan->permanent)
                assert_string_equal(done.report.backend, "cuda");
        }
    }
    gf_engine_close(engine);
}

/* Inject the same failure with a requested device. */
static void try_named(fault_job *job, tally *all, const faulty_plan *plan) {
    char what[400];
    snprintf(what, sizeof what, "%s '%s' on cuda, input %d, call %" PRIu64,
             job->one.filter->info.name, job->one.text, all->input, plan->fail_at);
    faulty_expect(plan);
    AUTO(engine) gf_engine *engine = open_engine("cuda", job, plan->fail_at);
    if (!engine) {
        assert_string_equal(faulty_failed(), "open");
        return;
    }
    fault_outcome done = fault_run(job, engine, all->input, what);
    all->runs += faulty_failed() != NULL;
    if (!faulty_failed()) {
        assert_int_equal(done.status, GF_OK);
    } else if (!done.status) {
        assert_string_equal(faulty_failed(), "begin");
        assert_int_equal(plan->status, GF_FAILED);
        assert_false(plan->permanent);
    } else {
        if (done.status != plan->status)
            fail_msg("%s: %s", what, done.error.message);
        assert_message(&done.error, "injected failure");
        if (plan->status == GF_NO_BACKEND && all->input != FROM_PIPE)
            assert_int_equal(fault_run(job, engine, all->input, what).status, GF_NO_BACKEND);
        all->rejected++;
    }
}

static void try_every_call(fault_job *job, void *context) {
    tally *all = context;
    faulty_plan plan = {.rows = 1 + job->one.format.width % 4};
    faulty_expect(&plan);
    gf_engine *engine = open_engine(NULL, job, 0);
    fault_outcome complete = fault_run(job, engine, all->input, job->one.text);
    gf_engine_close(engine);
    assert_int_equal(complete.status, GF_OK);
    assert_string_equal(complete.report.backend, "cuda");
    assert_false(complete.report.device_failed);
    const uint64_t calls = faulty_calls();
    assert_true(calls > 4);
    for (uint64_t n = 1; n <= calls; n += n < 6 ? 1 : test_stride(7, 7)) {
        /* The kinds of failures alternate. GF_TEST_ALL_KINDS: every kind at every call. */
        const bool every = test_environment("GF_TEST_ALL_KINDS", 0);
        for (uint64_t kind = every ? 0 : (n + all->cases) % 4, end = every ? 4 : kind + 1;
             kind < end; kind++) {
            plan.fail_at = n;
            plan.permanent = kind % 2;
            plan.status = kind / 2 ? GF_NO_BACKEND : GF_FAILED;
            try_auto(job, all, &plan);
            try_named(job, all, &plan);
        }
    }
    all->cases++;
}

static void run_all(fault_input input) {
    tally all = {.input = input};
    gf_engine_stand_in(&faulty_backend);
    fault_for_all(input != FROM_MEMORY, try_every_call, &all);
    gf_engine_stand_in(NULL);
    assert_true((input == FROM_PIPE ? all.rejected : all.fell_back) > 300);
    assert_true(all.not_reached < all.runs / 4);
    print_message("%" PRIu64 " failures: %" PRIu64 " fell back, %" PRIu64 " were rejected\n",
                  all.runs, all.fell_back, all.rejected);
}

/* Inject failures with just enough memory for the strips of either backend alone. */
static void try_with(fault_job *job, tally *all, bool verify) {
    faulty_plan plan = {.rows = 9, .status = GF_NO_BACKEND, .permanent = true};
    gf_engine_options options = {.threads = 2, .verify = verify};
    fault_outcome done;
    for (uint64_t memory = 512;; memory += memory / 4) {
        gf_engine *both[2];
        faulty_expect(&plan);
        options.max_memory = memory;
        options.backend = "cpu";
        assert_ok(gf_engine_open(&options, &both[0], NULL));
        options.backend = NULL;
        assert_ok(gf_engine_open(&options, &both[1], NULL));
        bool enough = true;
        for (int i = 0; i < 2; i++) {
            done = fault_run(job, both[i], all->input, job->one.text);
            enough = enough && !done.status;
            gf_engine_close(both[i]);
        }
        if (enough)
            break;
    }
    const uint64_t calls = faulty_calls();
    for (plan.fail_at = 2; plan.fail_at <= calls;
         plan.fail_at += 1 + all->runs % test_stride(23, 23)) {
        char what[400];
        gf_engine *engine;
        snprintf(what, sizeof what, "%s '%s', input %d, in %" PRIu64 " bytes, call %" PRIu64,
                 job->one.filter->info.name, job->one.text, all->input, options.max_memory,
                 plan.fail_at);
        faulty_expect(&plan);
        assert_ok(gf_engine_open(&options, &engine, NULL));
        done = fault_run(job, engine, all->input, what);
        gf_engine_close(engine);
        all->runs++;
        /* Smaller strips produce more payload headers, which also count against the limit. */
        if (!done.status || strstr(done.error.message, "held until the end"))
            continue;
        if (all->input != FROM_PIPE)
            fail_msg("%s: %s", what, done.error.message);
        assert_message(&done.error, "cannot be read again");
        assert_message(&done.error, "injected failure");
        all->rejected++;
    }
}

static void try_little_memory(fault_job *job, void *context) {
    try_with(job, context, false);
    try_with(job, context, true);
}

TEST(falls_back_with_little_memory) {
    gf_engine_stand_in(&faulty_backend);
    for (int input = FROM_MEMORY; input < FAULT_INPUTS; input++) {
        tally all = {.input = (fault_input)input};
        fault_for_all(input != FROM_MEMORY, try_little_memory, &all);
        print_message("%" PRIu64 " failures, %" PRIu64 " were rejected\n", all.runs, all.rejected);
    }
    gf_engine_stand_in(NULL);
}

TEST(falls_back_in_memory) {
    run_all(FROM_MEMORY);
}

TEST(falls_back_with_files) {
    run_all(FROM_FILES);
}

TEST(falls_back_with_pipes) {
    run_all(FROM_PIPE);
}

/* Golden function of smooth that fails on its first call. */
static gf_status fail_once(const gf_plan *plan, const gf_strip *strip, gf_error *error) {
    static atomic_bool done;
    return atomic_exchange(&done, true) ? gf_filter_find("smooth")->golden(plan, strip, error)
                                        : gf_fail(error, GF_FAILED, "golden: injected failure");
}

/* The device fails in `begin`, and the replacing backend fails later. The image is not started
 * again with less memory for the sink, because part of it has been read. */
TEST(does_not_restart_after_reading) {
    const gf_engine_options options = {.threads = 4, .rows_per_strip = 16, .verify = true};
    const gf_format format = {900, 700, 3, GF_U8, false};
    gf_filter broken = *gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(&broken, "");
    test_image image = test_image_new(format, 0);
    test_random random = {4};
    const char *in = in_directory("in.ppm"), *out = in_directory("out.png");
    gf_engine *engine;
    broken.golden = fail_once;
    test_fill(&image, TEST_UNIFORM, &random);
    test_put(in, &image);
    test_image_free(&image);
    gf_engine_stand_in(&faulty_backend);
    faulty_expect(&(faulty_plan){.fail_at = 2, .permanent = true, .status = GF_FAILED, .rows = 16});
    assert_ok(gf_engine_open(&options, &engine, NULL));
    assert_int_equal(test_run_files(&(test_files){engine, &broken, settings, &in, out}), GF_FAILED);
    assert_string_equal(why.message, "golden: injected failure");
    gf_engine_close(engine);
    gf_engine_stand_in(NULL);
    assert_int_equal(count_files(true), 1);
}

int main(void) {
    return test_main_in_directory();
}
