/* --verify: one corrupted bit from a device is detected at any position. A correct device passes,
 * for any cut of the image. */

#include "core/image.h"
#include "fault_job.h"
#include "io/codecs.h"

typedef struct tally {
    fault_input input;
    uint64_t jobs, runs, corruptions, by_kind[CORRUPT_INPUT + 1];
} tally;

static gf_engine *open_engine(const char *backend, uint32_t threads, uint64_t rows_per_strip) {
    const gf_engine_options options = {.backend = backend,
                                       .threads = threads,
                                       .unthreaded = threads == 1,
                                       .rows_per_strip = rows_per_strip,
                                       .verify = true};
    return test_engine(&options);
}

/* ---- no false positives ---------------------------------------------------------------------- */

static void verify_correct(fault_job *job, void *context) {
    static const char *const backends[] = {"cpu", "cuda", "golden", NULL};
    enum { BACKENDS = sizeof backends / sizeof backends[0] };
    tally *all = context;
    const uint64_t step = test_stride(5, 5); /* others of the 48 for each job */
    for (uint64_t k = all->jobs++ % step; k < 3 * 4 * BACKENDS; k += step) {
        const char *backend = backends[k % BACKENDS];
        const uint64_t threads = 1 + 2 * (k / BACKENDS % 3), rows = 3 * (k / BACKENDS / 3);
        char what[300];
        snprintf(what, sizeof what, "%s '%s' verified on %s, %u threads, strips of %" PRIu64,
                 job->one.filter->info.name, job->one.text, backend, (unsigned)threads, rows);
        faulty_expect(&(faulty_plan){.rows = 2 + rows});
        gf_engine *engine = open_engine(backend, (uint32_t)threads, rows);
        const fault_outcome done = fault_run(job, engine, all->input, what);
        gf_engine_close(engine);
        if (done.status)
            fail_msg("%s: %s", what, done.error.message);
        assert_true(done.report.verified);
        all->runs++;
    }
}

static void passes(fault_input input) {
    tally all = {.input = input};
    gf_engine_stand_in(&faulty_backend);
    fault_for_all(input != FROM_MEMORY, verify_correct, &all);
    gf_engine_stand_in(NULL);
    print_message("%" PRIu64 " runs verified\n", all.runs);
}

TEST(passes_in_memory) {
    passes(FROM_MEMORY);
}

TEST(passes_with_files) {
    passes(FROM_FILES);
}

/* ---- corruption ------------------------------------------------------------------------------ */

static void try_corruption(fault_job *job, tally *all, faulty_plan *plan) {
    static const char *const reported[] = {[CORRUPT_ROW] = "channel",
                                           [CORRUPT_RECORD] = "measurement of row",
                                           [CORRUPT_PAYLOAD] = "sample",
                                           [CORRUPT_STATE] = "measurement of the image",
                                           [CORRUPT_INPUT] = "changed in memory"};
    char what[300];
    snprintf(what, sizeof what, "%s '%s', kind %d in strip %" PRIu64 ", bit %" PRIu64,
             job->one.filter->info.name, job->one.text, plan->corruption, plan->strip, plan->bit);
    faulty_expect(plan);
    gf_engine *engine = open_engine(plan->bit % 2 ? NULL : "cuda", 1 + plan->bit % 4, 0);
    const fault_outcome done = fault_run(job, engine, all->input, what);
    all->runs++;
    if (!faulty_corrupted()) {
        assert_int_equal(done.status, GF_OK);
        gf_engine_close(engine);
        return;
    }
    if (done.status != GF_FAILED)
        fail_msg("%s: is not detected", what);
    assert_message(&done.error, reported[plan->corruption]);
    assert_message(&done.error, "cuda (faulty ) is unreliable: use --backend cpu");
    assert_false(done.report.verified);
    /* The failure concerns one image only: the next one passes in the same engine. */
    faulty_expect(&(faulty_plan){.rows = plan->rows});
    assert_int_equal(fault_run(job, engine, all->input, what).status, GF_OK);
    gf_engine_close(engine);
    all->corruptions++;
    all->by_kind[plan->corruption]++;
}

static void try_corruptions(fault_job *job, void *context) {
    tally *all = context;
    test_random random = {77 + all->runs};
    const uint64_t step = test_stride(2, 2), begin = all->jobs++ % step;
    for (int kind = CORRUPT_ROW; kind <= CORRUPT_INPUT; kind++)
        for (uint64_t strip = begin; strip < (kind == CORRUPT_STATE ? 4 : 8); strip += step) {
            faulty_plan plan = {.rows = 1 + job->one.format.height / 8,
                                .corruption = (faulty_corruption)kind,
                                .strip = strip,
                                .bit = test_below(&random, 1u << 20)};
            try_corruption(job, all, &plan);
        }
}

static void detects(fault_input input) {
    tally all = {.input = input};
    gf_engine_stand_in(&faulty_backend);
    fault_for_all(input != FROM_MEMORY, try_corruptions, &all);
    gf_engine_stand_in(NULL);
    for (int kind = CORRUPT_ROW; kind <= CORRUPT_INPUT; kind++)
        assert_true(all.by_kind[kind] > 10);
    print_message("%" PRIu64 " corruptions, all detected\n", all.corruptions);
}

TEST(detects_in_memory) {
    detects(FROM_MEMORY);
}

TEST(detects_with_files) {
    detects(FROM_FILES);
}

/* Without --verify, the corruption is not detected. */
TEST(is_off_by_default) {
    gf_engine *golden, *engine;
    fault_job job;
    gf_engine_stand_in(&faulty_backend);
    assert_int_equal(gf_engine_open(&(gf_engine_options){.backend = "golden"}, &golden, NULL), 0);
    assert_ok(gf_engine_open(NULL, &engine, NULL));
    assert_true(fault_job_new(&job, gf_filter_find("smooth"), "", 3, false, golden));
    faulty_expect(&(faulty_plan){.rows = 3, .corruption = CORRUPT_ROW});
    test_outcome got = test_run(&job.one, engine, 0);
    assert_true(faulty_corrupted());
    assert_false(got.report.verified);
    assert_int_not_equal(memcmp(got.image.memory, job.want.image.memory, got.image.size), 0);
    test_outcome_free(&got);
    fault_job_free(&job);
    gf_engine_close(engine);
    gf_engine_close(golden);
    gf_engine_stand_in(NULL);
}

/* ---- written files --------------------------------------------------------------------------- */

/* Formats that return the written rows exactly are read back. Unchanged rows pass, and one changed
 * row is detected as a difference. */
TEST(reads_back) {
    static const struct {
        const char *name;
        gf_type type;
        uint32_t channels;
        bool exact;
    } kinds[] = {
        {"a.png", GF_U8, 4, true},  {"b.png", GF_U16, 1, true}, {"c.pgm", GF_U16, 1, true},
        {"d.ppm", GF_U8, 3, true},  {"e.pam", GF_U16, 2, true}, {"f.pfm", GF_F32, 3, true},
        {"g.raw", GF_U16, 3, true}, {"h.jpg", GF_U8, 3, false}, {"i.tga", GF_U8, 1, false}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const gf_format format = {33, 21, kinds[k].channels, kinds[k].type,
                                  kinds[k].channels % 2 == 0};
        const gf_file_options options = {.force = true};
        const gf_limits limits = {.threads = 1};
        test_random random = {k + 1};
        AUTO(image) test_image image = test_image_new(format, 0);
        gf_sink *sink;
        test_fill(&image, TEST_UNIFORM, &random);
        uint64_t digest = gf_digest_rows(0, &image.rows, gf_row_bytes(&format));
        assert_ok(
            gf_sink_open(in_directory(kinds[k].name), &format, NULL, &options, 1, &sink, NULL));
        assert_ok(sink->ops->write(sink, image.rows.data, image.stride, format.height, NULL));
        assert_ok(sink->ops->finish(sink, NULL, NULL));
        assert_ok(gf_read_back(sink, &format, &limits, digest, &why));
        gf_row(&image.rows, 20)[5] ^= 1;
        digest = gf_digest_rows(0, &image.rows, gf_row_bytes(&format));
        assert_int_equal(gf_read_back(sink, &format, &limits, digest, &why),
                         kinds[k].exact ? GF_FAILED : GF_OK);
        if (kinds[k].exact)
            assert_message(&why, "differ from the computed rows");
        sink->ops->close(sink);
    }
    assert_int_equal(count_files(false), 0);
}

/* The digest does not depend on the cut into strips or on padding. */
TEST(digests_rows) {
    unsigned char bytes[60];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37);
    const gf_rows all = {bytes, 20, 4, 3}, first = {bytes, 20, 4, 1}, rest = {bytes + 20, 20, 5, 2};
    const uint64_t digest = gf_digest_rows(0, &all, 17);
    assert_true(gf_digest_rows(gf_digest_rows(0, &first, 17), &rest, 17) == digest);
    bytes[38] ^= 1; /* padding */
    assert_true(gf_digest_rows(0, &all, 17) == digest);
    bytes[36] ^= 1;
    assert_true(gf_digest_rows(0, &all, 17) != digest);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Golden's strips count against the memory limit: --verify reduces the height of strips. */
TEST(golden_counts_against_memory) {
    const gf_format format = {500, 400, 1, GF_U8, false};
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "axis=y");
    AUTO(image) test_image in = test_image_new(format, 0), out = test_image_new(format, 0);
    const gf_pixels pixels = {in.rows.data, in.stride};
    uint64_t rows[2];
    for (int verify = 0; verify < 2; verify++) {
        const gf_engine_options options = {
            .backend = "cpu", .threads = 2, .max_memory = 100000, .verify = verify};
        AUTO(engine) gf_engine *engine;
        gf_report report;
        assert_ok(gf_engine_open(&options, &engine, NULL));
        assert_ok(
            test_run_memory(&(test_memory){engine, gf_filter_find("smooth"), settings, &format,
                                           &pixels, out.rows.data, out.stride, .report = &report}));
        rows[verify] = report.rows_per_strip;
    }
    assert_true(rows[1] < rows[0]);
}

int main(void) {
    return test_main_in_directory();
}
