/* Devices in a batch of files: several large images at once, images that exceed the memory, and a
 * device that does not start. The cpu backend replaces the device in the first two tests. */
#include "batch_util.h"

#include <errno.h>
#include <pthread.h>

/* Memory limit in bytes at which all images but the smallest count as large. */
#define SMALL_MEMORY 3600

typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t came;
    uint32_t inside, max, wanted;
} meeting;

/* Wait until `wanted` calls are active at once, at most ten seconds. */
static gf_status meet(void *context, const gf_ready *ready, gf_error *error) {
    meeting *all = context;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 10;
    pthread_mutex_lock(&all->lock);
    all->inside++;
    all->max = all->inside > all->max ? all->inside : all->max;
    pthread_cond_broadcast(&all->came);
    while (all->max < all->wanted &&
           pthread_cond_timedwait(&all->came, &all->lock, &end) != ETIMEDOUT)
        continue;
    all->inside--;
    pthread_mutex_unlock(&all->lock);
    return GF_OK;
}

/* As many large images run at once as there are engines. */
TEST(runs_large_ones_at_once) {
    static const struct {
        uint32_t devices, threads, count, at_once;
    } cases[] = {{1, 1, 6, 1},  {1, 2, 6, 2},   {1, 3, 12, 3}, {1, 4, 12, 4},
                 {1, 16, 3, 3}, {1, 9, 20, 4},  {2, 9, 20, 8}, {2, 5, 9, 4},
                 {3, 2, 12, 3}, {2, 16, 24, 8}, {1, 4, 1, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        meeting all = {.wanted = cases[c].at_once};
        listener reported = {.in_order = c % 2};
        test_item items[ITEMS];
        const test_batch_options options = {
            .engine = {.backend = "cpu", .threads = cases[c].threads, .max_memory = SMALL_MEMORY},
            .files = {.ready = meet, .ready_context = &all},
            .in_order = reported.in_order,
            .done = on_done,
            .context = &reported};
        pthread_mutex_init(&all.lock, NULL);
        pthread_cond_init(&all.came, NULL);
        make_items(items, true);
        for (uint32_t i = 0; i < cases[c].count; i++)
            items[i].in = in_paths[2]; /* 34 x 37 RGBA */
        assert_ok(run_smooth(items, cases[c].count, cases[c].devices, &options));
        for (uint32_t i = 0; i < cases[c].count; i++) {
            assert_int_equal(got[i].times, 1);
            assert_int_equal(got[i].status, GF_OK);
        }
        assert_int_equal(all.max, cases[c].at_once);
        pthread_cond_destroy(&all.came);
        pthread_mutex_destroy(&all.lock);
    }
}

/* Images that exceed the memory of an engine. Engines other than the first return the image to the
 * queue, the first one reports the error, and all other images complete. */
TEST(reports_of_no_capacity) {
    const char *wide = in_directory("wide.png");
    char path[2048];
    snprintf(path, sizeof path, "%s", wide);
    put_png(path, 1200, 2, 8, false, NULL, 0, 0);
    for (uint32_t devices = 1; devices < 3; devices++)
        for (int in_order = 0; in_order < 2; in_order++) {
            listener reported = {.in_order = in_order};
            test_item items[ITEMS];
            const test_batch_options options = {
                .engine = {.backend = "cpu", .threads = 8, .max_memory = SMALL_MEMORY},
                .in_order = reported.in_order,
                .done = on_done,
                .context = &reported};
            make_items(items, true);
            for (int i = 0; i < ITEMS; i++)
                items[i].in = i % 8 == 3 ? path : in_paths[2];
            assert_ok(run_smooth(items, ITEMS, devices, &options));
            for (int i = 0; i < ITEMS; i++) {
                assert_int_equal(got[i].times, 1);
                assert_int_equal(got[i].status, i % 8 == 3 ? GF_FAILED : GF_OK);
                assert_int_equal(access(out_paths[i], F_OK), i % 8 == 3 ? -1 : 0);
                if (i % 8 == 3)
                    assert_message(&got[i].error, "raise --max-memory");
            }
        }
}

/* Under auto, the cpu backend replaces a device that does not start, and reports the reason. */
TEST(falls_back) {
    listener all = {0};
    test_item items[ITEMS];
    const test_batch_options options = {.engine = {.threads = 2}, .done = on_done, .context = &all};
    gf_batch_devices devices = {.count = 1, .names = {"63"}};
    if (gf_has_cuda() && test_has_cuda())
        snprintf(devices.names[0], sizeof devices.names[0], "9999");
    make_items(items, true);
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    assert_ok(test_run_batch_on(
        &(test_batch){&devices, gf_filter_find("smooth"), settings, items, 3, &options}));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(got[i].status, GF_OK);
        assert_string_equal(got[i].report.backend, "cpu");
        assert_int_equal(strncmp(got[i].report.reason, "cuda: ", 6), 0);
    }
}

int main(void) {
    return test_main(&(test_fixture){make_inputs, remove_directory});
}
