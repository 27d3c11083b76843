/* Ranks that do one image together, and the device of one of them fails: that rank goes on by
 * itself, and all end alike, with golden's bits. */
#include "faulty_backend.h"
#include "shared_job.h"

#include <inttypes.h>

#include "engine/rest.h"

static uint64_t fell_back;

static void put_floats(const char *name) {
    const gf_format format = {.width = 41, .height = 60, .channels = 3, .type = GF_F32};
    test_random random = {8};
    test_image image = test_image_new(format, 0);
    test_fill(&image, TEST_UNIFORM, &random);
    test_put(in_folder(name), &image);
    test_image_free(&image);
}

static void try_every_call(const char *name, const char *text, const char *in, uint32_t ranks) {
    const gf_filter *filter = gf_filter_find(name);
    const bool image = filter->info.makes_image;
    char what[1400], out[1200], want_path[1200], in_path[1200];
    snprintf(in_path, sizeof in_path, "%s/%s", test_folder, in);
    snprintf(want_path, sizeof want_path, "%s/want.%s", test_folder, strrchr(in, '.') + 1);
    snprintf(out, sizeof out, "%s/out.%s", test_folder, strrchr(in, '.') + 1);
    shared_job want = {.filter = filter,
                       .settings = test_settings(filter, text),
                       .in = {in_path},
                       .out = image ? want_path : NULL,
                       .engines = {{.backend = "golden"}},
                       .options = {.force = true}};
    assert_int_equal(run_job(&want, 0), GF_OK);
    const char *samples = in_folder("samples.csv");
    const bool extracts = rename(samples, in_folder("want.csv")) == 0;
    uint64_t met = 0;
    for (uint64_t n = 1;; n++) {
        shared_job job = want;
        job.out = image ? out : NULL;
        for (uint32_t r = 0; r < ranks; r++)
            job.engines[r] = (gf_engine_options){.threads = 1 + r % 2, .verify = n % 3 == 0};
        faulty_expect(&(faulty_plan){.fail_at = n,
                                     .for_ever = n % 2,
                                     .status = n % 4 < 2 ? GF_NO_BACKEND : GF_FAILED,
                                     .rows = 3});
        snprintf(what, sizeof what, "%s '%s' by %u ranks, call %" PRIu64, name, text, ranks, n);
        if (run_job(&job, ranks))
            fail_msg("%s: %s", what, job.errors[0].message);
        if (image)
            assert_same_file(want_path, out, what);
        if (extracts)
            assert_same_file(in_folder("want.csv"), in_folder("samples.csv"), what);
        assert_true(test_same_result(want.result, job.result, what));
        gf_result_free(job.result);
        const char *failed = faulty_failed();
        if (!failed)
            break;
        met++;
        if (strcmp(failed, "open") != 0 && job.report.device_failed) {
            assert_non_null(strstr(job.report.reason, "told to fail"));
            fell_back++;
        } else if (strcmp(failed, "submit") == 0 || strcmp(failed, "wait") == 0) {
            fail_msg("%s: nobody says so", what);
        }
    }
    assert_true(met > 20);
    gf_result_free(want.result);
    free_job(&want);
    count_files(true);
}

static void a_rank_goes_on(void **state) {
    (void)state;
    gf_engine_stand_in(&faulty_backend);
    put_grey("a.pgm", 90);
    try_every_call("smooth", "axis=y radius=9", "a.pgm", 3);
    put_grey("a.pgm", 70);
    try_every_call("normalize", "", "a.pgm", 2);
    put_grey("a.pgm", 80);
    try_every_call("hist", "bins=7", "a.pgm", 3);
    put_grey("a.pgm", 80);
    char text[1200];
    snprintf(text, sizeof text, "bins=9 extract=2,3 out=%s/samples.csv", test_folder);
    try_every_call("hist", text, "a.pgm", 4);
    put_floats("a.pfm");
    try_every_call("axis-sum", "axis=y", "a.pfm", 3);
    gf_engine_stand_in(NULL);
    assert_true(fell_back > 100);
}

/* Of column sums a rank has a strip, which is less than a row of its source. */
static void what_is_left_is_as_wide_as_the_strip(void **state) {
    (void)state;
    enum { WIDTH = 5, ROWS = 4, STRIDE = 64 };
    const gf_plan plan = {.in = {.width = WIDTH, .height = ROWS, .channels = 1, .type = GF_U8},
                          .inputs = 1};
    const gf_job geometry = {
        .plan = &plan, .in_stride = STRIDE, .in_rows = 2, .out_rows = 2, .slots = 2};
    unsigned char ring[ROWS * STRIDE], got[ROWS][WIDTH + 1];
    for (size_t i = 0; i < sizeof ring; i++)
        ring[i] = (unsigned char)(i % 251);
    const gf_slot slots[2] = {{.ring = ring}, {.ring = ring}};
    gf_source image = {.format = {.width = 500, .height = 9, .channels = 3, .type = GF_U8}};
    const gf_left left = {.geometry = &geometry, .slots = slots, .filled = 2, .source = &image};
    uint64_t bytes;
    gf_source *rest = gf_rest_source(&left, &bytes);
    assert_non_null(rest);
    assert_int_equal(bytes, ROWS * STRIDE);
    memset(got, 255, sizeof got);
    assert_int_equal(rest->ops->read(rest, got, WIDTH + 1, ROWS, NULL), GF_OK);
    for (size_t y = 0; y < ROWS; y++) {
        assert_memory_equal(got[y], ring + y * STRIDE, WIDTH);
        assert_int_equal(got[y][WIDTH], 255);
    }
    rest->ops->close(rest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_as_wide_as_the_strip),
        cmocka_unit_test(a_rank_goes_on),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
