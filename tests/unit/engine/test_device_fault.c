/* A device that fails at every call, once or for ever: under auto another backend goes on, with
 * golden's bits, and the report says so; where the device was named, the run fails and leaves
 * nothing. */
#include <inttypes.h>
#include <signal.h>

#include "core/error.h"
#include "fault_job.h"

typedef struct tally {
    fault_way way;
    uint64_t cases, runs, unmet, fell_back, refused;
} tally;

static gf_engine *open_engine(const char *backend, const fault_job *job, uint64_t n) {
    const gf_engine_options options = {.backend = backend,
                                       .threads = 1 + (uint32_t)(n % 3),
                                       .unthreaded = n % 5 == 4,
                                       .verify = n % 4 == 2,
                                       .rows_per_strip =
                                           n % 7 == 3 ? 1 + job->format.height / 4 : 0};
    gf_engine *engine = NULL;
    gf_error error = {0};
    if (gf_engine_open(&options, &engine, &error) && error.status != GF_NO_BACKEND)
        fail_msg("%s", error.message);
    return engine;
}

/* One failure under auto. */
static void try_auto(fault_job *job, tally *all, const faulty_plan *plan) {
    char what[400];
    snprintf(what, sizeof what, "%s '%s', way %d, call %" PRIu64 " %s, status %d",
             job->filter->info.name, job->text, all->way, plan->fail_at,
             plan->for_ever ? "and on" : "once", plan->status);
    faulty_expect(plan);
    gf_engine *engine = open_engine(NULL, job, plan->fail_at);
    fault_outcome done = fault_run(job, engine, all->way, what);
    const char *failed = faulty_failed();
    if (!failed) { /* cut into fewer strips: there was no such call */
        assert_int_equal(done.status, GF_OK);
        gf_engine_close(engine);
        all->unmet++;
        return;
    }
    all->runs++;
    if (done.status) {
        /* A pipe cannot be read again. Before the first strip is submitted (call 3) nothing was
         * read. */
        if (all->way != FROM_PIPE || plan->fail_at < 3)
            fail_msg("%s: %s", what, done.error.message);
        assert_message(&done.error, "cannot be read again");
        assert_message(&done.error, "told to fail");
        all->refused++;
    } else if (strcmp(failed, "open") == 0) {
        assert_false(done.report.device_failed);
        /* What reads its image twice may start it for the second time. */
        if (strcmp(done.report.backend, "cuda") != 0)
            assert_non_null(strstr(done.report.reason, "told to fail"));
    } else if (strcmp(failed, "begin") == 0 && plan->status == GF_FAILED && !plan->for_ever &&
               !done.report.device_failed) {
        assert_string_equal(done.report.backend, "cuda"); /* in smaller strips */
    } else {
        if (!done.report.device_failed || !strstr(done.report.reason, "told to fail") ||
            (!job->filter->before && !strstr(done.report.backend, "cpu")))
            fail_msg("%s: by %s, because '%s'", what, done.report.backend, done.report.reason);
        all->fell_back++;
    }
    /* A device without memory is tried again, one that is gone is not. */
    const uint64_t before = faulty_calls();
    const bool gone = strcmp(failed, "open") != 0 && plan->status == GF_NO_BACKEND;
    if (all->way == FROM_MEMORY) {
        done = fault_run(job, engine, all->way, what);
        assert_int_equal(done.status, GF_OK);
        if (gone) {
            assert_string_equal(done.report.backend, "cpu");
            assert_true(done.report.device_failed);
            assert_int_equal(faulty_calls(), before);
        } else {
            assert_true(faulty_calls() > before);
            if (!plan->for_ever)
                assert_string_equal(done.report.backend, "cuda");
        }
    }
    gf_engine_close(engine);
}

/* The same where the device was asked for. */
static void try_named(fault_job *job, tally *all, const faulty_plan *plan) {
    char what[400];
    snprintf(what, sizeof what, "%s '%s' on cuda, way %d, call %" PRIu64, job->filter->info.name,
             job->text, all->way, plan->fail_at);
    faulty_expect(plan);
    gf_engine *engine = open_engine("cuda", job, plan->fail_at);
    if (!engine) {
        assert_string_equal(faulty_failed(), "open");
        return;
    }
    fault_outcome done = fault_run(job, engine, all->way, what);
    all->runs += faulty_failed() != NULL;
    if (!faulty_failed()) {
        assert_int_equal(done.status, GF_OK);
    } else if (!done.status) {
        assert_string_equal(faulty_failed(), "begin");
        assert_int_equal(plan->status, GF_FAILED);
        assert_false(plan->for_ever);
    } else {
        if (done.status != plan->status)
            fail_msg("%s: %s", what, done.error.message);
        assert_message(&done.error, "told to fail");
        if (plan->status == GF_NO_BACKEND && all->way != FROM_PIPE)
            assert_int_equal(fault_run(job, engine, all->way, what).status, GF_NO_BACKEND);
        all->refused++;
    }
    gf_engine_close(engine);
}

static void try_every_call(fault_job *job, void *context) {
    tally *all = context;
    faulty_plan plan = {.rows = 1 + job->format.width % 4};
    faulty_expect(&plan);
    gf_engine *engine = open_engine(NULL, job, 0);
    fault_outcome whole = fault_run(job, engine, all->way, job->text);
    gf_engine_close(engine);
    assert_int_equal(whole.status, GF_OK);
    assert_string_equal(whole.report.backend, "cuda");
    assert_false(whole.report.device_failed);
    const uint64_t calls = faulty_calls();
    assert_true(calls > 4);
    for (uint64_t n = 1; n <= calls; n++) {
        /* All kinds in turn; GF_TEST_ALL_KINDS: each of them at every call. */
        const bool every = test_environment("GF_TEST_ALL_KINDS", 0);
        for (uint64_t kind = every ? 0 : (n + all->cases) % 4, end = every ? 4 : kind + 1;
             kind < end; kind++) {
            plan.fail_at = n;
            plan.for_ever = kind % 2;
            plan.status = kind / 2 ? GF_NO_BACKEND : GF_FAILED;
            try_auto(job, all, &plan);
            try_named(job, all, &plan);
        }
    }
    all->cases++;
}

static void goes_on(fault_way way) {
    tally all = {.way = way};
    gf_engine_stand_in(&faulty_backend);
    fault_for_all(way != FROM_MEMORY, try_every_call, &all);
    gf_engine_stand_in(NULL);
    assert_true((way == FROM_PIPE ? all.refused : all.fell_back) > 300);
    assert_true(all.unmet < all.runs / 4);
    print_message("%" PRIu64 " failures: %" PRIu64 " fell back, %" PRIu64 " were refused\n",
                  all.runs, all.fell_back, all.refused);
}

/* Memory for the strips of one backend, and little more. */
static void try_with(fault_job *job, tally *all, bool verify) {
    faulty_plan plan = {.rows = 9, .status = GF_NO_BACKEND, .for_ever = true};
    gf_engine_options options = {.threads = 2, .verify = verify};
    fault_outcome done;
    for (uint64_t memory = 512;; memory += memory / 4) {
        gf_engine *both[2];
        faulty_expect(&plan);
        options.max_memory = memory;
        options.backend = "cpu";
        assert_int_equal(gf_engine_open(&options, &both[0], NULL), GF_OK);
        options.backend = NULL;
        assert_int_equal(gf_engine_open(&options, &both[1], NULL), GF_OK);
        bool enough = true;
        for (int i = 0; i < 2; i++) {
            done = fault_run(job, both[i], all->way, job->text);
            enough = enough && !done.status;
            gf_engine_close(both[i]);
        }
        if (enough)
            break;
    }
    const uint64_t calls = faulty_calls();
    for (plan.fail_at = 2; plan.fail_at <= calls; plan.fail_at += 1 + all->runs % 7) {
        char what[400];
        gf_engine *engine;
        snprintf(what, sizeof what, "%s '%s', way %d, in %" PRIu64 " bytes, call %" PRIu64,
                 job->filter->info.name, job->text, all->way, options.max_memory, plan.fail_at);
        faulty_expect(&plan);
        assert_int_equal(gf_engine_open(&options, &engine, NULL), GF_OK);
        done = fault_run(job, engine, all->way, what);
        gf_engine_close(engine);
        all->runs++;
        /* Samples of lower strips have more heads, which are held, too. */
        if (!done.status || strstr(done.error.message, "held until the end"))
            continue;
        if (all->way != FROM_PIPE)
            fail_msg("%s: %s", what, done.error.message);
        assert_message(&done.error, "cannot be read again");
        assert_message(&done.error, "told to fail");
        all->refused++;
    }
}

static void try_little_memory(fault_job *job, void *context) {
    try_with(job, context, false);
    try_with(job, context, true);
}

static void goes_on_with_little_memory(void **state) {
    (void)state;
    gf_engine_stand_in(&faulty_backend);
    for (int way = FROM_MEMORY; way < FAULT_WAYS; way++) {
        tally all = {.way = (fault_way)way};
        fault_for_all(way != FROM_MEMORY, try_little_memory, &all);
        print_message("%" PRIu64 " failures, %" PRIu64 " were refused\n", all.runs, all.refused);
    }
    gf_engine_stand_in(NULL);
}

static void goes_on_in_memory(void **state) {
    (void)state;
    goes_on(FROM_MEMORY);
}

static void goes_on_with_files(void **state) {
    (void)state;
    goes_on(FROM_FILES);
}

static void goes_on_with_pipes(void **state) {
    (void)state;
    goes_on(FROM_PIPE);
}

/* Once. */
static gf_status break_down(const gf_plan *plan, const gf_strip *strip, gf_error *error) {
    static atomic_bool done;
    return atomic_exchange(&done, true) ? gf_filter_find("smooth")->golden(plan, strip, error)
                                        : gf_fail(error, GF_FAILED, "golden: broke down");
}

/* An image that its device cannot begin, and another backend cannot end: it is not begun once more,
 * though its sink could spare some memory, since some of it was read. */
static void is_not_begun_twice(void **state) {
    (void)state;
    const gf_engine_options options = {.threads = 4, .rows_per_strip = 16, .verify = true};
    const gf_format format = {900, 700, 3, GF_U8};
    gf_filter broken = *gf_filter_find("smooth");
    gf_settings *settings = test_settings(&broken, "");
    test_image image = test_image_new(format, 0);
    test_random random = {4};
    const char *in = in_folder("in.ppm"), *out = in_folder("out.png");
    gf_engine *engine;
    gf_error error = {0};
    broken.golden = break_down;
    test_fill(&image, TEST_UNIFORM, &random);
    test_put(in, &image);
    test_image_free(&image);
    gf_engine_stand_in(&faulty_backend);
    faulty_expect(&(faulty_plan){.fail_at = 2, .for_ever = true, .status = GF_FAILED, .rows = 16});
    assert_int_equal(gf_engine_open(&options, &engine, NULL), GF_OK);
    assert_int_equal(gf_run_file(engine, &broken, settings, &in, out, NULL, NULL, NULL, &error),
                     GF_FAILED);
    assert_string_equal(error.message, "golden: broke down");
    gf_engine_close(engine);
    gf_engine_stand_in(NULL);
    gf_settings_free(settings);
    assert_int_equal(count_files(true), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_in_memory),  cmocka_unit_test(goes_on_with_files),
        cmocka_unit_test(goes_on_with_pipes), cmocka_unit_test(goes_on_with_little_memory),
        cmocka_unit_test(is_not_begun_twice),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
