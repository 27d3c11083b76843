/* What hist extracts from rows that several ranks share is what it extracts from the image. */
#define _GNU_SOURCE

#include "sample_util.h"

#include "agree.h"
#include "plan.h"
#include "rank_threads.h"
#include "result.h"
#include "testing.h"

enum { MOST_RANKS = 5 };

static const char *const cases[] = {
    "bins=8 extract=3 out=-",
    "bins=2 extract=0 out=-",
    "bins=8 extract=0,7 out=-",
    "bins=5 channel=all extract=all out=-",
    "bins=64 extract=all out=-",
    "bins=65 extract=all out=-",
    "bins=4096 extract=0,1,2,3,100,2047,2048,4094,4095 out=-",
    "bins=3000 channel=all extract=all out=-",
};

typedef struct trial {
    const gf_filter *filter;
    const gf_plan *plan;
    const test_image *image;
    const char *path; /* NULL: into no file */
    uint64_t cuts[MOST_RANKS + 1];
    uint64_t max_memory;
    bool failed[MOST_RANKS];
    gf_error error[MOST_RANKS];
    void *data; /* rank 0's */
} trial;

/* ---- one rank -------------------------------------------------------------------------------- */

/* Rows [from, to) in bands of three. */
static gf_status take(const trial *shared, uint64_t from, uint64_t to, void *data, void *state,
                      gf_error *error) {
    const gf_measure *measure = shared->filter->measure;
    void *payload = malloc(measure->payload_bytes(shared->plan, 3));
    gf_status status = payload ? GF_OK : GF_FAILED;
    for (uint64_t y = from; y < to && !status; y += 3) {
        const gf_rows rows = {gf_row(&shared->image->rows, y), shared->image->stride, y,
                              to - y < 3 ? to - y : 3};
        const gf_band band = {rows, {.y0 = y, .rows = rows.rows}, state, payload};
        status = shared->filter->golden(shared->plan, &band, error);
        if (!status)
            status = measure->payload(shared->plan, data, payload, error);
    }
    free(payload);
    return status;
}

static void merge(const void *context, void *data, const void *other) {
    const trial *shared = context;
    shared->filter->measure->merge(shared->plan, data, other);
}

static gf_status measure_rows(const gf_ranks *ranks, trial *shared, gf_sample_sink *sink,
                              void **data, gf_error *error) {
    const gf_measure *measure = shared->filter->measure;
    const size_t bytes = (size_t)shared->plan->state_bytes;
    const gf_keep keep = {.samples = sink, .max_memory = shared->max_memory, .name = "the image"};
    void *state = calloc(1, bytes);
    gf_status status = state ? measure->open(shared->plan, &keep, data, error) : GF_FAILED;
    if (!status)
        status = take(shared, shared->cuts[ranks->rank], shared->cuts[ranks->rank + 1], *data,
                      state, error);
    status = gf_ranks_agree(ranks, status, error);
    if (!status)
        status = measure->join(shared->plan, *data, ranks, error);
    if (!status && !gf_alone(ranks)) {
        ranks->reduce(ranks->context, state, bytes, merge, shared);
        if (!gf_is_first(ranks))
            memset(state, 0, bytes);
    }
    if (!status)
        status = measure->finish(shared->plan, *data, state, error);
    free(state);
    return gf_ranks_agree(ranks, status, error);
}

static void run_rank(const gf_ranks *ranks, void *context) {
    trial *shared = context;
    const uint32_t rank = ranks->rank;
    gf_error *error = &shared->error[rank];
    gf_sample_layout layout = {0};
    gf_sample_sink *sink = NULL;
    void *data = NULL;
    gf_status status = GF_OK;
    shared->filter->measure->layout(shared->plan, &layout);
    if (shared->path)
        status = gf_sample_sink_open(shared->path, NULL, false, &layout, ranks, &sink, error);
    if (!status)
        status = measure_rows(ranks, shared, sink, &data, error);
    if (!status && sink)
        status = gf_sample_sink_finish(sink, error);
    if (!status && sink)
        status = gf_output_place(gf_sample_sink_output(sink), error);
    gf_sample_sink_close(sink);
    shared->failed[rank] = status != GF_OK;
    if (rank == 0 && !status)
        shared->data = data;
    else if (data)
        shared->filter->measure->close(data);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* An image of rank 0's result. */
static gf_result *result_of(trial *shared, uint32_t count, const gf_settings *settings) {
    gf_result *result = NULL;
    gf_plan *plan = NULL;
    gf_error error = {0};
    shared->data = NULL;
    run_as_ranks(count, run_rank, shared);
    for (uint32_t i = 0; i < count; i++)
        if (shared->failed[i])
            fail_msg("rank %u of %u: %s", i, count, shared->error[i].message);
    if (gf_plan_new(shared->filter, settings, &shared->image->format, &plan, &error) ||
        gf_result_new(shared->filter, plan, shared->data, &result, &error))
        fail_msg("%s", error.message);
    return result;
}

static trial begin(const test_image *image, const gf_settings *settings, gf_plan **plan) {
    const gf_filter *filter = gf_filter_find("hist");
    gf_error error = {0};
    if (gf_plan_new(filter, settings, &image->format, plan, &error))
        fail_msg("%s", error.message);
    return (trial){.filter = filter,
                   .plan = *plan,
                   .image = image,
                   .cuts = {0, image->format.height},
                   .max_memory = UINT64_MAX};
}

static void compare(const char *text, const char *ending, test_random *random) {
    gf_format format = test_format(random);
    format.width = format.width % 70 + 1;
    test_image image = test_image_new(format, 8);
    test_fill(&image, (test_content)test_below(random, TEST_CONTENT_COUNT), random);
    gf_settings *settings = test_settings(gf_filter_find("hist"), text);
    gf_plan *plan;
    trial shared = begin(&image, settings, &plan);
    char names[2][16];
    for (int i = 0; i < 2; i++)
        (void)snprintf(names[i], sizeof names[i], "%d%s", i, ending ? ending : "");
    shared.path = ending ? in_folder(names[0]) : NULL;
    gf_result *want = result_of(&shared, 1, settings);
    const uint32_t count = 2 + (uint32_t)test_below(random, MOST_RANKS - 1);
    for (uint32_t i = 1; i < count; i++)
        shared.cuts[i] =
            shared.cuts[i - 1] + test_below(random, format.height - shared.cuts[i - 1] + 1);
    shared.cuts[count] = format.height;
    shared.path = ending ? in_folder(names[1]) : NULL;
    gf_result *got = result_of(&shared, count, settings);
    assert_true(test_same_result(want, got, text));
    if (ending) {
        size_t size;
        unsigned char *bytes = get_bytes(in_folder(names[0]), &size);
        assert_bytes(in_folder(names[1]), bytes, size);
        free(bytes);
    }
    empty_folder(NULL);
    gf_result_free(want);
    gf_result_free(got);
    gf_settings_free(settings);
    free(plan);
    test_image_free(&image);
}

static void equals_one_process(void **state) {
    static const char *const endings[] = {".csv", ".npy", ".json", NULL};
    const uint64_t rounds = test_environment("GF_TEST_ROUNDS", 160);
    test_random random = {test_environment("GF_TEST_SEED", 21)};
    (void)state;
    for (uint64_t round = 0; round < rounds; round++)
        compare(cases[round % 8], endings[test_below(&random, 4)], &random);
}

/* Samples of several bins are held, by one of the ranks too many. */
static void one_fails_for_all(void **state) {
    const gf_format format = {.width = 50, .height = 100, .channels = 1, .type = GF_U8};
    gf_settings *settings = test_settings(gf_filter_find("hist"), "bins=4 extract=0,1 out=-");
    test_image image = test_image_new(format, 0);
    gf_plan *plan;
    (void)state;
    memset(image.memory, 0, image.size);
    trial shared = begin(&image, settings, &plan);
    memcpy(shared.cuts, (uint64_t[]){0, 10, 90, 100}, 4 * sizeof(uint64_t));
    shared.path = in_folder("a.csv");
    shared.max_memory = 20000;
    run_as_ranks(3, run_rank, &shared);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(shared.failed[i]);
        assert_message(&shared.error[i], "the image: extracted samples of several bins");
    }
    assert_int_equal(count_files(false), 0);
    gf_settings_free(settings);
    free(plan);
    test_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(equals_one_process, empty_folder),
        cmocka_unit_test_teardown(one_fails_for_all, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
