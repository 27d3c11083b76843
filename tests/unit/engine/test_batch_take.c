/* Batches that take items from a work source: several batches share one list in any order, and each
 * item runs exactly once. */
#include "batch_util.h"

#include <pthread.h>
#include <time.h>

/* Memory limit in bytes at which all images but the smallest count as large. */
#define SMALL_MEMORY 3600

/* Work source shared by all workers. */
typedef struct queue {
    pthread_mutex_t lock;
    uint64_t order[ITEMS], count, next;
    uint64_t later;      /* every later-th call returns GF_TAKE_LATER; 0: off */
    uint64_t stop_at;    /* after this number of items, every call returns GF_TAKE_LATER; 0: off */
    bool until_reported; /* after every fifth item, wait until all items taken are reported */
    uint64_t max_out;    /* max number of items taken and not yet reported */
    atomic_uint_fast64_t calls, reported;
} queue;

/* One batch that takes items from the source. */
typedef struct worker {
    queue *all;
    listener reported;
    atomic_int inside;
    bool over;
    uint64_t took;
} worker;

static gf_take give(void *context, uint64_t *item) {
    worker *one = context;
    queue *all = one->all;
    gf_take took = GF_TAKE_LATER;
    assert_int_equal(atomic_fetch_add(&one->inside, 1), 0);
    assert_false(one->over);
    pthread_mutex_lock(&all->lock);
    const uint64_t call = ++all->calls, out = all->next - all->reported;
    if (all->later && call % all->later == 0)
        took = GF_TAKE_LATER;
    else if (all->next == (all->stop_at ? all->stop_at : all->count))
        took = all->stop_at ? GF_TAKE_LATER : GF_TAKE_NONE;
    else if (!all->until_reported || out == 0 || all->next % 5 != 0)
        took = GF_TAKEN;
    if (took == GF_TAKEN) {
        *item = all->order[all->next++];
        all->max_out = out + 1 > all->max_out ? out + 1 : all->max_out;
        one->took++;
    }
    pthread_mutex_unlock(&all->lock);
    if (took == GF_TAKE_LATER)
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    one->over = took == GF_TAKE_NONE;
    atomic_fetch_sub(&one->inside, 1);
    return took;
}

static bool reported(void *context, const gf_batch_done *done) {
    worker *one = context;
    one->all->reported++;
    return on_done(&one->reported, done);
}

/* Order the first half of the items backwards and the second half forwards. */
static void init_queue(queue *all, uint64_t count) {
    *all = (queue){.count = count};
    pthread_mutex_init(&all->lock, NULL);
    for (uint64_t i = 0; i < count; i++)
        all->order[i] = i < count / 2 ? count / 2 - 1 - i : i;
}

static test_batch_options options_of(worker *one, uint32_t threads, uint64_t max_memory) {
    return (test_batch_options){
        .engine = {.backend = "cpu", .threads = threads, .max_memory = max_memory},
        .done = reported,
        .context = one};
}

/* ---- each item once -------------------------------------------------------------------------- */

typedef struct share {
    const gf_filter *filter;
    const gf_settings *settings;
    const test_item *items;
    gf_batch_devices on;
    worker one;
    uint32_t threads;
    uint64_t max_memory, expected;
    pthread_t thread;
} share;

static void *run_share(void *argument) {
    share *own = argument;
    test_batch_options options = options_of(&own->one, own->threads, own->max_memory);
    const gf_work_source source = {give, &own->one, own->expected};
    if (test_run_batch_on(&(test_batch){own->on.count ? &own->on : NULL, own->filter, own->settings,
                                        own->items, ITEMS, &options, &source}))
        fail_msg("%s", why.message);
    return NULL;
}

static const struct scenario {
    uint32_t shares, devices; /* 0: CPU threads */
    uint32_t threads;
    uint64_t max_memory, later, expected;
    bool until_reported;
} scenarios[] = {
    {1, 0, 1, 0, 0, 0, false},
    {1, 0, 4, 0, 7, 0, false},
    {3, 0, 2, 0, 0, 27, false},
    {4, 0, 1, 0, 2, 20, false},
    {1, 0, 1, 0, 0, 0, true},
    {1, 1, 1, 0, 0, 0, false},
    {1, 1, 1, 0, 0, 0, true},
    {3, 1, 4, 0, 5, 27, false},
    {2, 2, 3, SMALL_MEMORY, 0, 40, false},
    {1, 1, 4, SMALL_MEMORY, 3, 0, false},
    {1, 2, 9, 20000, 4, 1, true},
    {2, 1, 1, SMALL_MEMORY, 0, 2, false},
};

static void each_once(const char *name, const char *text) {
    const gf_filter *filter = gf_filter_find(name);
    const bool image = gf_filter_describe(filter)->makes_image;
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    test_item items[ITEMS];
    listener plain = {0};
    const test_batch_options in_turn = {
        .engine = {.backend = "golden"}, .done = on_done, .context = &plain};
    make_items(items, image);
    assert_ok(test_run_batch(filter, settings, items, ITEMS, &in_turn));
    memcpy(want, got, sizeof want);
    for (size_t w = 0; w < sizeof scenarios / sizeof scenarios[0]; w++) {
        const struct scenario *scenario = &scenarios[w];
        share shares[4] = {0};
        queue all;
        char what[100];
        snprintf(what, sizeof what, "%s, scenario %zu", name, w);
        make_items(items, image);
        init_queue(&all, ITEMS);
        all.later = scenario->later;
        all.until_reported = scenario->until_reported;
        for (uint32_t i = 0; i < scenario->shares; i++) {
            shares[i] = (share){.filter = filter,
                                .settings = settings,
                                .items = items,
                                .on = {.count = scenario->devices},
                                .one = {.all = &all},
                                .threads = scenario->threads,
                                .max_memory = scenario->max_memory,
                                .expected = scenario->expected};
            assert_int_equal(pthread_create(&shares[i].thread, NULL, run_share, &shares[i]), 0);
        }
        uint64_t took = 0;
        for (uint32_t i = 0; i < scenario->shares; i++) {
            pthread_join(shares[i].thread, NULL);
            took += shares[i].one.took;
        }
        assert_int_equal(took, ITEMS);
        check_outcomes(what);
        pthread_mutex_destroy(&all.lock);
    }
}

TEST(runs_each_once) {
    each_once("smooth", "radius=3");
    each_once("hist", "bins=7");
}

/* An engine takes no further items while it processes a large image: another batch may be idle. */
TEST(holds_no_more_than_it_can_run) {
    static const struct {
        uint32_t devices, threads, max;
    } cases[] = {{0, 1, 1}, {0, 3, 3}, {1, 1, 1}, {1, 3, 3}, {1, 9, 4}, {2, 16, 8}, {3, 1, 3}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        test_item items[ITEMS];
        queue all;
        worker one = {.all = &all};
        const test_batch_options options = options_of(&one, cases[c].threads, SMALL_MEMORY);
        make_items(items, true);
        init_queue(&all, ITEMS);
        for (int i = 0; i < ITEMS; i++)
            items[i].in = in_paths[2]; /* 34 x 37 RGBA */
        assert_ok(run_smooth_from(items, ITEMS, cases[c].devices, &options,
                                  &(gf_work_source){give, &one, 0}));
        assert_int_equal(all.reported, ITEMS);
        if (all.max_out > cases[c].max)
            fail_msg("case %zu: %llu at a time", c, (unsigned long long)all.max_out);
        pthread_mutex_destroy(&all.lock);
    }
}

/* ---- stopping -------------------------------------------------------------------------------- */

/* The source never returns another item. The batch stops without one. */
TEST(stops_while_it_waits) {
    for (uint32_t devices = 0; devices < 3; devices++)
        for (int fast = 0; fast < 2; fast++) {
            test_item items[ITEMS];
            queue all;
            worker one = {.all = &all, .reported = {.max = fast ? 0 : 3}};
            test_batch_options options = options_of(&one, 2, 0);
            make_items(items, true);
            init_queue(&all, ITEMS);
            all.stop_at = 3;
            all.order[0] = 0;
            all.order[1] = 1;
            all.order[2] = fast ? 5 : 2; /* item 5 is not an image */
            options.fail_fast = fast;
            assert_ok(
                run_smooth_from(items, ITEMS, devices, &options, &(gf_work_source){give, &one, 0}));
            assert_int_equal(all.reported, 3);
            pthread_mutex_destroy(&all.lock);
        }
}

static bool has_failed(void *context, const gf_batch_done *done) {
    fail_msg("%s", "nothing may be reported");
    return true;
}

/* A device that does not start ends the batch, even while the source may still return items. */
TEST(ends_without_a_device) {
    const gf_batch_devices devices = {.count = 1, .names = {"9999"}};
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    test_item items[ITEMS];
    queue all;
    worker one = {.all = &all};
    test_batch_options options = options_of(&one, 2, 0);
    make_items(items, true);
    init_queue(&all, ITEMS);
    all.stop_at = 2;
    options.engine.backend = "cuda";
    options.done = has_failed;
    assert_int_not_equal(
        test_run_batch_on(&(test_batch){&devices, gf_filter_find("smooth"), settings, items, ITEMS,
                                        &options, &(gf_work_source){give, &one, 0}}),
        GF_OK);
    assert_message(&why, "cuda");
    pthread_mutex_destroy(&all.lock);
}

/* ---- rejected arguments ---------------------------------------------------------------------- */

TEST(refuses) {
    for (uint32_t devices = 0; devices < 2; devices++) {
        test_item items[ITEMS];
        queue all;
        worker one = {.all = &all};
        test_batch_options options = options_of(&one, 3, 0);
        make_items(items, true);
        init_queue(&all, ITEMS);
        options.in_order = true;
        assert_error(
            run_smooth_from(items, ITEMS, devices, &options, &(gf_work_source){give, &one, 0}),
            GF_USAGE, "order");
        assert_int_equal(all.calls, 0);
        options.in_order = false;
        for (uint64_t i = 0; i < 3; i++)
            all.order[i] = i < 2 ? i : 7;
        assert_error(run_smooth_from(items, 7, devices, &options, &(gf_work_source){give, &one, 0}),
                     GF_USAGE, "item 7 is out of range; the batch has 7");
        assert_true(one.over || one.took == 3);
        pthread_mutex_destroy(&all.lock);
    }
}

int main(void) {
    return test_main(&(test_fixture){make_inputs, remove_directory});
}
