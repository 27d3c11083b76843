/* One image by several ranks: the same bytes and numbers as by one process. */
#include "shared_job.h"

#include <fcntl.h>
#include <inttypes.h>

/* ---- any image, any case, any ranks ------------------------------------------------------------
 */

/* Names of what one way of running it writes. */
typedef struct names {
    char image[1200], samples[1200];
} names;

static names make_names(const char *way, const char *ending, const char *samples) {
    names n;
    snprintf(n.image, sizeof n.image, "%s/%s.%s", test_folder, way, ending);
    snprintf(n.samples, sizeof n.samples, "%s/%s.%s", test_folder, way, samples);
    return n;
}

/* The case's names of files are "-": they get real ones. */
static void set_files(gf_settings *settings, const gf_filter *filter, const names *n) {
    for (size_t i = 0; i < filter->info.param_count; i++) {
        const gf_param *param = &filter->info.params[i];
        const char *name = param->type == GF_PARAM_IMAGE     ? n->image
                           : param->type == GF_PARAM_SAMPLES ? n->samples
                                                             : NULL;
        if (name && gf_settings_given(settings, param->name))
            assert_int_equal(gf_settings_set(settings, param->name, name, NULL), GF_OK);
    }
}

static void set_engines(shared_job *job, bool devices, test_random *random) {
    static const uint64_t bands[] = {0, 0, 1, 2, 3, 17};
    for (int r = 0; r < MOST_RANKS; r++)
        job->engines[r] =
            (gf_engine_options){.backend = devices && test_below(random, 3) ? "cuda" : "cpu",
                                .turn = (uint32_t)r,
                                .threads = (uint32_t)(1 + test_below(random, 3)),
                                .band_rows = bands[test_below(random, 6)]};
}

/* False if the case does not suit the image. */
static bool compare_once(const gf_filter *filter, const char *text, uint64_t seed, bool devices) {
    static const char *const sample_endings[] = {"csv", "npy", "json"};
    test_random random = {seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    gf_format format = test_format(&random), drawn;
    if (format.type == GF_F32) /* as PFM has it */
        format.channels = format.channels < 3 ? 1 : 3;
    const char *ending = format.type == GF_F32 ? "pfm" : "pam";
    const char *samples = sample_endings[test_below(&random, 3)];
    const names inputs[2] = {make_names("a", ending, ""), make_names("b", ending, "")};
    gf_settings *settings = test_settings(filter, text);
    if (gf_filter_output(filter, settings, &format, &drawn, NULL)) {
        gf_settings_free(settings);
        return false;
    }
    const char *kind = drawn.type == GF_F32 ? "pfm" : "pam";
    const names one = make_names("one", kind, samples), many = make_names("many", kind, samples);
    set_files(settings, filter, &one);
    test_image image = test_image_new(format, 0);
    test_fill(&image, (test_content)test_below(&random, TEST_CONTENT_COUNT), &random);
    test_put(inputs[0].image, &image);
    test_disturb(&image, &random);
    test_put(inputs[1].image, &image);
    test_image_free(&image);

    shared_job first = {.filter = filter,
                        .settings = settings,
                        .in = {inputs[0].image, inputs[1].image},
                        .out = filter->info.makes_image ? one.image : NULL};
    set_engines(&first, false, &random);
    shared_job second = first;
    set_engines(&second, devices, &random);
    if (run_job(&first, 0))
        fail_msg("%s", first.errors[0].message);
    const uint32_t count = (uint32_t)(1 + test_below(&random, MOST_RANKS));
    set_files(settings, filter, &many);
    second.out = filter->info.makes_image ? many.image : NULL;
    char what[512];
    snprintf(what, sizeof what,
             "%s '%s': seed %" PRIu64 ", %" PRIu64 "x%" PRIu64 "x%u %s, %u ranks",
             filter->info.name, text, seed, format.width, format.height, format.channels,
             gf_type_name(format.type), count);
    if (run_job(&second, count))
        fail_msg("%s: %s", what, second.errors[0].message);
    assert_int_equal(second.report.ranks, count > 1 ? count : 0);
    assert_non_null(strstr("cpu+cuda+cpu", second.report.backend));
    assert_true(gf_format_equal(&second.report.in, &first.report.in));
    if (!test_same_result(first.result, second.result, what))
        fail_msg("%s: other results", what);
    if (drawn.width)
        assert_same_file(one.image, many.image, what);
    const bool extracted = exists(one.samples);
    assert_int_equal(exists(many.samples), extracted);
    if (extracted)
        assert_same_file(one.samples, many.samples, what);
    assert_int_equal(count_files(true), 2 + (drawn.width ? 2 : 0) + (extracted ? 2 : 0));
    gf_result_free(first.result);
    gf_result_free(second.result);
    gf_settings_free(settings);
    return true;
}

static void compare_all(bool devices) {
    const uint64_t rounds = test_environment("GF_TEST_ROUNDS", 12);
    const uint64_t seed = test_environment("GF_TEST_SEED", 1);
    uint64_t runs = 0;

    for (size_t f = 0; f < gf_filter_count(); f++) {
        const gf_filter *filter = gf_filter_at(f);
        for (size_t c = 0; filter->info.cases[c]; c++) {
            uint64_t suited = 0;
            for (uint64_t round = 0; round < rounds || (suited == 0 && round < 100); round++)
                suited +=
                    compare_once(filter, filter->info.cases[c], seed + round * 1000 + c, devices);
            if (suited == 0)
                fail_msg("%s '%s' suits no image", filter->info.name, filter->info.cases[c]);
            runs += suited;
        }
    }
    print_message("%" PRIu64 " images by ranks, 0 differences\n", runs);
}

static void ranks_equal_one_process(void **state) {
    (void)state;
    compare_all(false);
}

/* Some ranks on devices, some on the CPU. */
static void ranks_on_devices_equal_one_process(void **state) {
    (void)state;
    test_needs_gpu();
    compare_all(true);
}

/* ---- what is not shared -----------------------------------------------------------------------
 */

static void rank_0_does_what_cannot_be_shared(void **state) {
    static const char *const ways[][3] = {{"in.png", "x.pgm", "cpu"},
                                          {"in.pgm", "x.png", "cpu"},
                                          {"in.pgm", "x.pgm", "golden"},
                                          {"in.pgm", "x.pgm", "cpu"}};
    (void)state;
    put_grey("in.pgm", 40);
    put_grey("in.png", 40);
    for (size_t i = 0; i < 4; i++) {
        shared_job job = smooth_job(ways[i][0], ways[i][1]);
        for (int r = 0; r < MOST_RANKS; r++)
            job.engines[r].backend = ways[i][2];
        assert_int_equal(run_job(&job, 3), GF_OK);
        assert_int_equal(job.report.ranks, i == 3 ? 3 : 0);
        assert_true(exists(in_folder(ways[i][1])));
        unlink(in_folder(ways[i][1]));
        free_job(&job);
    }
}

/* Strips of columns whose bytes must be turned round. */
static void strips_of_foreign_byte_order(void **state) {
    const gf_raw raw = {.format = {.width = 7, .height = 33, .channels = 3, .type = GF_F32},
                        .offset = 5,
                        .big = true};
    unsigned char bytes[5 + 7 * 33 * 3 * 4];
    test_random random = {77};

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) /* exponents that are those of sane numbers */
        bytes[i] =
            (unsigned char)(i % 4 == 1 ? 0x3e + test_below(&random, 3) : test_below(&random, 256));
    put_bytes(in_folder("in.raw"), (const char *)bytes, sizeof bytes);
    shared_job one = {.filter = gf_filter_find("axis-sum"),
                      .settings = test_settings(gf_filter_find("axis-sum"), "axis=y"),
                      .in = {in_folder("in.raw")},
                      .options = {.raw = &raw}};
    for (int r = 0; r < MOST_RANKS; r++)
        one.engines[r] = (gf_engine_options){.backend = "cpu", .threads = 2};
    shared_job many = one;
    assert_int_equal(run_job(&one, 0), GF_OK);
    for (uint32_t count = 2; count <= MOST_RANKS; count++) {
        assert_int_equal(run_job(&many, count), GF_OK);
        assert_true(test_same_result(one.result, many.result, "strips"));
        gf_result_free(many.result);
    }
    gf_result_free(one.result);
    free_job(&one);
}

static void report_tells_of_all(void **state) {
    (void)state;
    put_grey("in.pgm", 40);
    shared_job job = smooth_job("in.pgm", "out.pgm");
    for (int r = 0; r < 4; r++)
        job.engines[r].band_rows = r == 2 ? 3 : 1;
    assert_int_equal(run_job(&job, 4), GF_OK);
    assert_int_equal(job.report.ranks, 4);
    assert_int_equal(job.report.bands, 10 + 10 + 4 + 10);
    assert_int_equal(job.report.band_rows, 3);
    assert_int_equal(job.report.busy[GF_COMPUTING].workers, 4);
    assert_int_equal(job.report.out.height, 40);
    free_job(&job);
}

/* Each process has a standard input of its own: only rank 0 reads from it. */
static void standard_input_is_not_shared(void **state) {
    static const char *const filters[] = {"smooth", "normalize"};
    const int before = dup(STDIN_FILENO);

    (void)state;
    put_grey("in.pgm", 40);
    for (int i = 0; i < 2; i++) {
        shared_job one = smooth_job("in.pgm", "one.pgm"), many = smooth_job("in.pgm", "many.pgm");
        free_job(&one);
        free_job(&many);
        one.filter = many.filter = gf_filter_find(filters[i]);
        one.settings = test_settings(one.filter, "");
        many.settings = test_settings(many.filter, "");
        one.options.force = many.options.force = true;
        many.in[0] = "-";
        assert_int_equal(run_job(&one, 0), GF_OK);
        const int fd = open(in_folder("in.pgm"), O_RDONLY);
        assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
        close(fd);
        assert_int_equal(run_job(&many, 3), GF_OK);
        assert_int_equal(many.report.ranks, 0);
        assert_same_file(in_folder("one.pgm"), in_folder("many.pgm"), filters[i]);
        free_job(&one);
        free_job(&many);
    }
    assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
    close(before);
}

static void more_ranks_than_rows(void **state) {
    (void)state;
    for (uint64_t height = 1; height < 5; height++) {
        put_grey("in.pgm", height);
        shared_job one = smooth_job("in.pgm", "one.pgm"), many = smooth_job("in.pgm", "many.pgm");
        one.options.force = many.options.force = true;
        assert_int_equal(run_job(&one, 0), GF_OK);
        assert_int_equal(run_job(&many, 5), GF_OK);
        assert_same_file(in_folder("one.pgm"), in_folder("many.pgm"), "few rows");
        free_job(&one);
        free_job(&many);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ranks_equal_one_process, empty_folder),
        cmocka_unit_test_teardown(ranks_on_devices_equal_one_process, empty_folder),
        cmocka_unit_test_teardown(rank_0_does_what_cannot_be_shared, empty_folder),
        cmocka_unit_test_teardown(strips_of_foreign_byte_order, empty_folder),
        cmocka_unit_test_teardown(report_tells_of_all, empty_folder),
        cmocka_unit_test_teardown(standard_input_is_not_shared, empty_folder),
        cmocka_unit_test_teardown(more_ranks_than_rows, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
