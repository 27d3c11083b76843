/* A batch of files gives what each of them gives alone: the same bytes, results and errors, on
 * threads and on devices (the cpu backend stands in for one). */
#include "io_util.h"
#include "png_util.h"
#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "engine/batch_run.h"
#include "engine/engine.h"
#include "plan.h"

#define ITEMS 80

static char in_names[ITEMS][64], in_paths[ITEMS][1200], out_paths[ITEMS][1200],
    want_paths[ITEMS][1200];

/* ---- pictures, and what is none -------------------------------------------------------------- */

static void put_png(const char *path, uint32_t size, int color, int depth, bool interlaced,
                    const png_extra *extras, size_t extra_count, size_t cut) {
    png_bytes file = {0};
    const png_spec spec = {.width = size,
                           .height = size + 3,
                           .color = color,
                           .depth = depth,
                           .interlaced = interlaced,
                           .seed = size * 31,
                           .extras = extras,
                           .extra_count = extra_count};

    png_make(&spec, &file, NULL, NULL);
    put_bytes(path, file.data, file.size - cut);
    free(file.data);
}

/* What the n-th input is. Formats come again and again, so that images meet others like them. */
static void put_input(int n, const char *path) {
    static const png_extra texts[] = {
        {.name = "tEXt", .place = 0, .data = "Title\0before", .size = 12},
        {.name = "tEXt", .place = 2, .data = "Title\0after", .size = 11}};
    static const png_extra damaged[] = {
        {.name = "tEXt", .place = 2, .data = "Title\0torn", .size = 10, .bad_checksum = true}};
    const uint32_t size = 20 + 7 * (uint32_t)(n % 3);

    if (n % 16 == 5)
        put_bytes(path, "this is text", 12);
    else if (n % 16 == 6)
        put_png(path, size, 2, 8, false, NULL, 0, 40);
    else if (n % 16 == 7)
        put_png(path, size, 2, 8, false, damaged, 1, 0);
    else if (n % 16 == 8)
        put_png(path, size, 0, 16, n % 32 == 8, texts, 2, 0);
    else if (n % 16 == 9 || n % 16 == 12)
        put_png(path, 150, 2, 8, false, texts, 2, 0);
    else if (n % 16 != 10)
        put_png(path, size, n % 2 ? 2 : 6, 8, false, texts, 2, 0);
}

static int make_inputs(void **state) {
    if (make_folder(state))
        return 1;
    for (int i = 0; i < ITEMS; i++) {
        snprintf(in_names[i], sizeof in_names[i], "in%02d.png", i);
        snprintf(in_paths[i], sizeof in_paths[i], "%s/%s", test_folder, in_names[i]);
        snprintf(out_paths[i], sizeof out_paths[i], "%s/out%02d.png", test_folder, i);
        snprintf(want_paths[i], sizeof want_paths[i], "%s/want%02d.png", test_folder, i);
        put_input(i, in_paths[i]);
    }
    return 0;
}

/* ---- one by one, and together ---------------------------------------------------------------- */

typedef struct ending {
    int times;
    gf_status status;
    gf_error error;
    gf_report report;
    char text[4000]; /* the first cells of the result */
} ending;

static ending want[ITEMS], got[ITEMS];

typedef struct listener {
    atomic_int inside;
    uint64_t calls, most; /* stops after so many; 0: never */
    bool in_order;
} listener;

/* All tables as text. */
static void write_result(const gf_result *result, char text[4000]) {
    size_t used = 0;

    text[0] = 0;
    for (size_t t = 0; t < gf_result_table_count(result); t++)
        for (uint64_t row = 0; row < gf_result_table(result, t)->row_count; row++)
            for (size_t c = 0; c < gf_result_table(result, t)->column_count && used < 3900; c++) {
                const gf_value value = gf_result_cell(result, t, row, c);
                char number[40];
                gf_value_format(&value, number, sizeof number);
                used += (size_t)snprintf(text + used, 4000 - used, "%.30s ",
                                         value.type == GF_VALUE_TEXT ? value.text : number);
            }
}

static bool on_done(void *context, const gf_batch_done *done) {
    listener *all = context;
    ending *one = &got[done->item];

    assert_int_equal(atomic_fetch_add(&all->inside, 1), 0);
    if (all->in_order)
        assert_int_equal(done->item, all->calls);
    one->times++;
    one->status = done->status;
    one->report = *done->report;
    if (done->status) {
        assert_non_null(done->error);
        assert_null(done->result);
        one->error = *done->error;
    } else if (done->result) {
        write_result(done->result, one->text);
    }
    all->calls++;
    atomic_fetch_sub(&all->inside, 1);
    return !all->most || all->calls < all->most;
}

/* The library's own answer, a file after the other, by golden. */
static void run_each(const gf_filter *filter, const gf_settings *settings,
                     const gf_file_options *options) {
    gf_engine *engine;

    memset(want, 0, sizeof want);
    assert_int_equal(gf_engine_open(&(gf_engine_options){.backend = "golden"}, &engine, NULL), 0);
    for (int i = 0; i < ITEMS; i++) {
        const char *in = in_paths[i];
        gf_result *result = NULL;
        unlink(want_paths[i]);
        want[i].status = gf_run_file(engine, filter, settings, &in,
                                     gf_filter_describe(filter)->makes_image ? want_paths[i] : NULL,
                                     options, &result, &want[i].report, &want[i].error);
        if (result)
            write_result(result, want[i].text);
        gf_result_free(result);
    }
    gf_engine_close(engine);
}

static void make_items(gf_batch_item items[ITEMS], bool image) {
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (gf_batch_item){.in = in_paths[i], .out = image ? out_paths[i] : NULL};
        unlink(out_paths[i]);
    }
    memset(got, 0, sizeof got);
}

static void check_files(int i, const char *what) {
    size_t size, other;
    unsigned char *a = get_bytes(want_paths[i], &size), *b = get_bytes(out_paths[i], &other);

    if (size != other || memcmp(a, b, size) != 0)
        fail_msg("%s: item %d: other bytes", what, i);
    free(a);
    free(b);
}

static void check_endings(const char *what, bool image) {
    int good = 0;
    for (int i = 0; i < ITEMS; i++) {
        if (got[i].times != 1)
            fail_msg("%s: item %d: told %d times", what, i, got[i].times);
        if (got[i].status != want[i].status || strcmp(got[i].error.message, want[i].error.message))
            fail_msg("%s: item %d: %d %s; alone %d %s", what, i, (int)got[i].status,
                     got[i].error.message, (int)want[i].status, want[i].error.message);
        if (want[i].status) {
            assert_int_equal(access(out_paths[i], F_OK), -1);
            continue;
        }
        good++;
        assert_string_equal(got[i].text, want[i].text);
        assert_true(gf_format_equal(&got[i].report.in, &want[i].report.in));
        assert_true(got[i].report.total_seconds > 0);
        if (image)
            check_files(i, what);
    }
    assert_true(good > ITEMS / 2);
    /* No temporary files: an input and two outputs each at most. */
    assert_true(count_files(false) <= 3 * ITEMS);
}

static const struct way {
    const char *backend;
    uint32_t devices; /* 0: threads */
    uint32_t threads;
    uint64_t max_memory;
    bool in_order;
} ways[] = {
    {"cpu", 0, 1, 0, true},       {"cpu", 0, 2, 0, false},    {"cpu", 0, 7, 0, true},
    {"golden", 0, 3, 0, false},   {"auto", 0, 2, 0, false},   {"cpu", 0, 200, 0, true},
    {"cpu", 1, 1, 0, false},      {"cpu", 1, 4, 0, true},     {"cpu", 3, 2, 0, false},
    {"cpu", 2, 5, 100000, false}, {"cpu", 2, 3, 20000, true}, {"golden", 2, 4, 0, false},
    {"cpu", 1, 4, 20000, false},  {"cpu", 2, 9, 20000, true}, {"cpu", 1, 3, 20000, true},
};

static void run_ways(const char *name, const char *text, const gf_file_options *options) {
    const gf_filter *filter = gf_filter_find(name);
    const bool image = gf_filter_describe(filter)->makes_image;
    gf_settings *settings = test_settings(filter, text);
    gf_batch_item items[ITEMS];

    run_each(filter, settings, options);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        const struct way *way = &ways[w];
        listener all = {.in_order = way->in_order};
        const gf_batch_options batch = {.engine = {.backend = way->backend,
                                                   .threads = way->threads,
                                                   .max_memory = way->max_memory},
                                        .files = *options,
                                        .in_order = way->in_order,
                                        .done = on_done,
                                        .context = &all};
        const gf_files_devices devices = {.count = way->devices};
        char what[200];
        gf_error error = {0};
        snprintf(what, sizeof what, "%s '%s', %s, %u devices, %u threads, %s", name, text,
                 way->backend, way->devices, way->threads,
                 way->in_order ? "in order" : "as it comes");
        make_items(items, image);
        if (gf_run_batch_on(way->devices ? &devices : NULL, filter, settings, items, ITEMS, &batch,
                            &error))
            fail_msg("%s: %s", what, error.message);
        check_endings(what, image);
    }
    gf_settings_free(settings);
}

static void equals_one_by_one(void **state) {
    (void)state;
    run_ways("smooth", "", &(gf_file_options){0});
    run_ways("smooth", "axis=xy radius=5 keep-brightness", &(gf_file_options){.strip = true});
    run_ways("normalize", "", &(gf_file_options){0});
    run_ways("hist", "bins=7", &(gf_file_options){0});
    run_ways("hist", "bins=9 extract=2 channel=all", &(gf_file_options){0});
    run_ways("axis-sum", "axis=y", &(gf_file_options){0});
}

/* ---- what stops, and what does not ----------------------------------------------------------- */

static gf_status run_smooth(const gf_batch_item *items, uint64_t count, uint32_t devices,
                            const gf_batch_options *options, gf_error *error) {
    const gf_filter *filter = gf_filter_find("smooth");
    const gf_files_devices on = {.count = devices};
    gf_settings *settings = test_settings(filter, "");
    gf_status status =
        gf_run_batch_on(devices ? &on : NULL, filter, settings, items, count, options, error);

    gf_settings_free(settings);
    return status;
}

static void stops_when_told(void **state) {
    gf_batch_item items[ITEMS];

    (void)state;
    for (uint32_t devices = 0; devices < 3; devices++) {
        listener all = {.most = 3};
        const gf_batch_options options = {
            .engine = {.backend = "cpu", .threads = 2}, .done = on_done, .context = &all};
        make_items(items, true);
        assert_int_equal(run_smooth(items, ITEMS, devices, &options, NULL), GF_OK);
        /* Those under way end: in threads one each; what devices hold is little, too. */
        assert_true(all.calls >= 3 && all.calls < ITEMS);
        for (int i = 0; i < ITEMS; i++)
            assert_true(got[i].times <= 1);
        if (devices == 0)
            assert_true(all.calls <= 4);
    }
}

static void keeps_what_is_there(void **state) {
    (void)state;
    for (uint32_t devices = 0; devices < 3; devices += 2) {
        listener all = {0};
        gf_batch_item items[ITEMS];
        gf_batch_options options = {
            .engine = {.backend = "cpu", .threads = 2}, .done = on_done, .context = &all};
        make_items(items, true);
        put_bytes(out_paths[0], "precious", 8);
        put_bytes(out_paths[1], "old", 3);
        put_bytes(out_paths[6], "stays", 5); /* its input is broken */
        items[1].replace = true;
        items[6].replace = true;
        assert_int_equal(run_smooth(items, 8, devices, &options, NULL), GF_OK);
        assert_int_equal(got[0].status, GF_FAILED);
        assert_message(&got[0].error, "exists already");
        assert_bytes(out_paths[0], "precious", 8);
        assert_int_equal(got[1].status, GF_OK);
        assert_int_equal(got[6].status, GF_FAILED);
        assert_bytes(out_paths[6], "stays", 5);
        options.files.force = true;
        memset(got, 0, sizeof got);
        assert_int_equal(run_smooth(items, 1, devices, &options, NULL), GF_OK);
        assert_int_equal(got[0].status, GF_OK);
    }
}

static void *feed(void *argument) {
    size_t size;
    unsigned char *data = get_bytes(in_paths[0], &size);
    FILE *file = fopen(argument, "wb");

    fwrite(data, 1, size, file);
    fclose(file);
    free(data);
    return NULL;
}

/* What comes from a pipe is read once only. */
static void reads_pipes(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 3; round++) {
        const uint32_t devices = round > 0;
        listener all = {0};
        gf_batch_item items[ITEMS];
        /* The last time it is too large to be held for a device. */
        const gf_batch_options options = {
            .engine = {.backend = "cpu", .threads = 2, .max_memory = round == 2 ? 3600 : 0},
            .done = on_done,
            .context = &all};
        pthread_t feeder;
        char path[2048];
        snprintf(path, sizeof path, "%s", in_folder("pipe.png"));
        make_items(items, true);
        unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(pthread_create(&feeder, NULL, feed, path), 0);
        items[1].in = path;
        assert_int_equal(run_smooth(items, 3, devices, &options, NULL), GF_OK);
        pthread_join(feeder, NULL);
        assert_int_equal(got[1].status, GF_OK);
        size_t size;
        unsigned char *data = get_bytes(out_paths[0], &size);
        assert_bytes(out_paths[1], data, size);
        free(data);
    }
}

static gf_status never(void *context, const gf_result *result, gf_error *error) {
    (void)context;
    (void)result;
    snprintf(error->message, sizeof error->message, "not ready");
    return error->status = GF_FAILED;
}

static void asks_whether_it_is_ready(void **state) {
    (void)state;
    for (uint32_t devices = 0; devices < 2; devices++) {
        listener all = {0};
        gf_batch_item items[ITEMS];
        const gf_batch_options options = {.engine = {.backend = "cpu"},
                                          .files = {.ready = never},
                                          .done = on_done,
                                          .context = &all};
        make_items(items, true);
        assert_int_equal(run_smooth(items, 5, devices, &options, NULL), GF_OK);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(got[i].status, GF_FAILED);
            assert_string_equal(got[i].error.message, "not ready");
            assert_int_equal(access(out_paths[i], F_OK), -1);
        }
    }
}

/* ---- large images on devices ----------------------------------------------------------------- */

/* Where nothing smaller than this may be held, all images but the least are large. */
#define LITTLE 3600

typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t came;
    uint32_t inside, most, wanted;
} meeting;

/* Goes on when as many as are wanted have been here at once, or after ten seconds. */
static gf_status meet(void *context, const gf_result *result, gf_error *error) {
    meeting *all = context;
    struct timespec end;

    (void)result;
    (void)error;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 10;
    pthread_mutex_lock(&all->lock);
    all->inside++;
    all->most = all->inside > all->most ? all->inside : all->most;
    pthread_cond_broadcast(&all->came);
    while (all->most < all->wanted &&
           pthread_cond_timedwait(&all->came, &all->lock, &end) != ETIMEDOUT)
        continue;
    all->inside--;
    pthread_mutex_unlock(&all->lock);
    return GF_OK;
}

/* As many at once as there are engines, no more. */
static void runs_large_ones_at_once(void **state) {
    static const struct {
        uint32_t devices, threads, count, at_once;
    } cases[] = {{1, 1, 6, 1},  {1, 2, 6, 2},   {1, 3, 12, 3}, {1, 4, 12, 4},
                 {1, 16, 3, 3}, {1, 9, 20, 4},  {2, 9, 20, 8}, {2, 5, 9, 4},
                 {3, 2, 12, 3}, {2, 16, 24, 8}, {1, 4, 1, 1}};

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        meeting all = {.wanted = cases[c].at_once};
        listener told = {.in_order = c % 2};
        gf_batch_item items[ITEMS];
        const gf_batch_options options = {
            .engine = {.backend = "cpu", .threads = cases[c].threads, .max_memory = LITTLE},
            .files = {.ready = meet, .ready_context = &all},
            .in_order = told.in_order,
            .done = on_done,
            .context = &told};
        pthread_mutex_init(&all.lock, NULL);
        pthread_cond_init(&all.came, NULL);
        make_items(items, true);
        for (uint32_t i = 0; i < cases[c].count; i++)
            items[i].in = in_paths[2]; /* 34 x 37 RGBA */
        assert_int_equal(run_smooth(items, cases[c].count, cases[c].devices, &options, NULL),
                         GF_OK);
        for (uint32_t i = 0; i < cases[c].count; i++) {
            assert_int_equal(got[i].times, 1);
            assert_int_equal(got[i].status, GF_OK);
        }
        assert_int_equal(all.most, cases[c].at_once);
        pthread_cond_destroy(&all.came);
        pthread_mutex_destroy(&all.lock);
    }
}

/* An image for which an engine has no room: each beyond the first leaves it to another, the first
 * tells of it, and the rest is done as ever. */
static void tells_of_no_room(void **state) {
    const char *wide = in_folder("wide.png");
    char path[2048];

    snprintf(path, sizeof path, "%s", wide);
    put_png(path, 1200, 2, 8, false, NULL, 0, 0);
    (void)state;
    for (uint32_t devices = 1; devices < 3; devices++)
        for (int in_order = 0; in_order < 2; in_order++) {
            listener told = {.in_order = in_order};
            gf_batch_item items[ITEMS];
            const gf_batch_options options = {
                .engine = {.backend = "cpu", .threads = 8, .max_memory = LITTLE},
                .in_order = told.in_order,
                .done = on_done,
                .context = &told};
            make_items(items, true);
            for (int i = 0; i < ITEMS; i++)
                items[i].in = i % 8 == 3 ? path : in_paths[2];
            assert_int_equal(run_smooth(items, ITEMS, devices, &options, NULL), GF_OK);
            for (int i = 0; i < ITEMS; i++) {
                assert_int_equal(got[i].times, 1);
                assert_int_equal(got[i].status, i % 8 == 3 ? GF_FAILED : GF_OK);
                assert_int_equal(access(out_paths[i], F_OK), i % 8 == 3 ? -1 : 0);
                if (i % 8 == 3)
                    assert_message(&got[i].error, "raise --max-memory");
            }
        }
}

static void counts_engines(void **state) {
    static const struct {
        uint32_t threads, devices, engines;
    } cases[] = {{1, 1, 1}, {2, 1, 2}, {3, 1, 3}, {4, 1, 4},  {64, 1, 4},
                 {2, 4, 1}, {7, 2, 3}, {8, 2, 4}, {15, 8, 1}, {16, 8, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const gf_files files = {.threads = cases[i].threads};
        assert_int_equal(gf_files_engines(&files, cases[i].devices), cases[i].engines);
    }
}

/* What no item could make good is told once, and nothing is begun. */
static void refuses_all(void **state) {
    const gf_filter *smooth = gf_filter_find("smooth"), *hist = gf_filter_find("hist");
    listener all = {0};
    gf_batch_options options = {.done = on_done, .context = &all};
    gf_batch_item items[ITEMS];
    gf_error error = {0};

    (void)state;
    make_items(items, true);
    gf_settings *settings = test_settings(smooth, "keep-brightness weight=0");
    assert_int_equal(gf_run_batch(smooth, settings, items, ITEMS, &options, &error), GF_USAGE);
    assert_message(&error, "keep-brightness");
    gf_settings_free(settings);
    settings = test_settings(smooth, "");
    options.engine = (gf_engine_options){.backend = "cpu", .devices = "0"};
    assert_int_equal(gf_run_batch(smooth, settings, items, ITEMS, &options, &error), GF_USAGE);
    options.engine = (gf_engine_options){.backend = "none"};
    assert_int_equal(gf_run_batch(smooth, settings, items, ITEMS, &options, &error), GF_USAGE);
    static const char *const lists[] = {"", "0,", ",", "x", "0,0", "1-2", "-1", "0 ", "123456"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        options.engine = (gf_engine_options){.devices = lists[i]};
        assert_int_equal(gf_run_batch(smooth, settings, items, ITEMS, &options, &error), GF_USAGE);
        assert_message(&error, "--device");
    }
    if (!gf_has_cuda()) {
        options.engine = (gf_engine_options){.backend = "cuda"};
        assert_int_equal(gf_run_batch(smooth, settings, items, ITEMS, &options, &error),
                         GF_NO_BACKEND);
    }
    options.engine = (gf_engine_options){0};
    items[3].out = NULL;
    assert_int_equal(gf_run_batch(smooth, settings, items, ITEMS, &options, &error), GF_USAGE);
    assert_int_equal(gf_run_batch(smooth, settings, NULL, 2, &options, &error), GF_USAGE);
    assert_int_equal(gf_run_batch(smooth, settings, NULL, 0, NULL, &error), GF_OK);
    gf_settings_free(settings);
    settings = test_settings(hist, "bins=4");
    items[0].out = NULL;
    assert_int_equal(gf_run_batch(hist, settings, items, 2, &options, &error), GF_USAGE);
    assert_int_equal(gf_settings_set(settings, "mask", in_folder("mask.png"), NULL), GF_OK);
    assert_int_equal(gf_run_batch(hist, settings, items, 1, &options, &error), GF_USAGE);
    assert_message(&error, "--mask");
    gf_settings_free(settings);
    settings = test_settings(gf_filter_find("dot"), "");
    assert_int_equal(gf_run_batch(gf_filter_find("dot"), settings, items, 1, &options, &error),
                     GF_USAGE);
    gf_settings_free(settings);
    assert_int_equal(all.calls, 0);
}

/* auto, where its device does not start: the cpu does it, and says why. */
static void falls_back(void **state) {
    listener all = {0};
    gf_batch_item items[ITEMS];
    const gf_batch_options options = {.engine = {.threads = 2}, .done = on_done, .context = &all};
    gf_files_devices devices = {.count = 1, .names = {"63"}};

    (void)state;
    if (gf_has_cuda() && test_has_cuda())
        snprintf(devices.names[0], sizeof devices.names[0], "9999");
    make_items(items, true);
    gf_settings *settings = test_settings(gf_filter_find("smooth"), "");
    assert_int_equal(
        gf_run_batch_on(&devices, gf_filter_find("smooth"), settings, items, 3, &options, NULL),
        GF_OK);
    gf_settings_free(settings);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(got[i].status, GF_OK);
        assert_string_equal(got[i].report.backend, "cpu");
        assert_int_equal(strncmp(got[i].report.reason, "cuda: ", 6), 0);
    }
}

/* ---- auto ------------------------------------------------------------------------------------ */

static gf_forecast expect(uint64_t side, uint64_t count, uint32_t threads, double cost) {
    const gf_plan plan = {.in = {side, side, 3, GF_U8},
                          .out = {side, side, 3, GF_U8},
                          .inputs = 1,
                          .cost = cost,
                          .download = 1};
    gf_files files = {.count = count};
    const gf_codec_costs codec = {.decode = 7, .encode = 10, .encode_threads = threads};

    gf_files_share(&files, threads);
    return gf_files_expect(&files, &plan, &codec);
}

static void judges_batches(void **state) {
    (void)state;
    /* One start-up for many pays where one image would not be worth it. */
    assert_false(expect(1000, 1, 16, 100).cuda);
    assert_true(expect(1000, 1000, 16, 100).cuda);
    /* Where the codec is nearly all, the cores are. */
    assert_false(expect(1000, 1000, 16, 0.3).cuda);
    /* Large images are decoded four at a time on a device, where all threads do on the cpu. */
    assert_false(expect(20000, 100, 64, 20).cuda);
    assert_true(expect(20000, 100, 16, 20).cuda);
    /* Of few and large images the decoder is what all wait for, on both. */
    assert_false(expect(20000, 1, 16, 20).cuda);
    assert_true(expect(20000, 1, 16, 200).cuda);
    const gf_forecast few = expect(1000, 4, 16, 1), many = expect(1000, 400, 16, 1);
    assert_true(many.cpu_seconds > 20 * few.cpu_seconds &&
                many.cpu_seconds < 101 * few.cpu_seconds);
    /* Many keep all threads at work; of four, four decode. */
    assert_true(many.cpu_seconds < 1.01 * 400 * 3e6 * (7 + 10 + 1) * 1e-9 / 16);
    assert_true(few.cpu_seconds < 1.01 * 4 * 3e6 * 7e-9 / 4);
    assert_non_null(strstr(many.reason, "for all files"));
}

static void shares_the_threads(void **state) {
    static const struct {
        uint64_t count;
        uint32_t threads, at_once, each;
    } cases[] = {{1, 16, 1, 16}, {3, 16, 3, 6}, {16, 16, 16, 1},      {17, 16, 16, 1},
                 {9, 1, 1, 1},   {5, 8, 5, 2},  {2000, 5000, 1024, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gf_files files = {.count = cases[i].count};
        gf_files_share(&files, cases[i].threads);
        assert_int_equal(files.at_once, cases[i].at_once);
        assert_int_equal(files.each, cases[i].each);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static int count_threads(void) {
    DIR *folder = opendir("/proc/self/task");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

typedef struct seen_threads {
    int before, most;
} seen_threads;

/* When all is computed and written, the threads of the pool and of the encoder are still there. */
static gf_status look(void *context, const gf_result *result, gf_error *error) {
    seen_threads *seen = context;
    const int now = count_threads() - seen->before;

    (void)result;
    (void)error;
    seen->most = now > seen->most ? now : seen->most;
    return GF_OK;
}

/* An image of many bands, and a PNG of many pieces. */
static void unthreaded_engines_start_none(void **state) {
    const gf_filter *filter = gf_filter_find("smooth");
    const char *in = in_folder("large.png");
    char out[2048], other[2048];

    (void)state;
    put_png(in, 1500, 2, 8, false, NULL, 0, 0);
    snprintf(out, sizeof out, "%s", in_folder("large-out.png"));
    snprintf(other, sizeof other, "%s", in_folder("large-other.png"));
    gf_settings *settings = test_settings(filter, "");
    for (int unthreaded = 0; unthreaded < 2; unthreaded++) {
        const gf_engine_options options = {
            .backend = "cpu", .threads = 4, .unthreaded = unthreaded != 0};
        seen_threads seen = {.before = count_threads()};
        const gf_file_options files = {.force = true, .ready = look, .ready_context = &seen};
        gf_engine *engine = NULL;
        gf_report report;
        assert_int_equal(gf_engine_open(&options, &engine, NULL), GF_OK);
        assert_int_equal(gf_run_file(engine, filter, settings, &in, unthreaded ? other : out,
                                     &files, NULL, &report, NULL),
                         GF_OK);
        gf_engine_close(engine);
        assert_true(report.bands > 1);
        assert_true(unthreaded ? seen.most == 0 : seen.most > 1);
        for (int i = 0; i < GF_STAGE_COUNT && unthreaded; i++)
            assert_true(report.busy[i].workers <= 1);
    }
    gf_settings_free(settings);
    size_t size;
    unsigned char *data = get_bytes(out, &size);
    assert_bytes(other, data, size);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_one_by_one),
        cmocka_unit_test(stops_when_told),
        cmocka_unit_test(keeps_what_is_there),
        cmocka_unit_test(reads_pipes),
        cmocka_unit_test(asks_whether_it_is_ready),
        cmocka_unit_test(runs_large_ones_at_once),
        cmocka_unit_test(tells_of_no_room),
        cmocka_unit_test(counts_engines),
        cmocka_unit_test(refuses_all),
        cmocka_unit_test(falls_back),
        cmocka_unit_test(judges_batches),
        cmocka_unit_test(shares_the_threads),
        cmocka_unit_test(unthreaded_engines_start_none),
    };

    return cmocka_run_group_tests(tests, make_inputs, remove_folder);
}
