/* Shared by the tests of batches of files: inputs, runs and their outcomes. */
#ifndef BATCH_UTIL_H
#define BATCH_UTIL_H

#include <stdatomic.h>

#include "engine/batch/batch.h"
#include "io_util.h"
#include "png_util.h"
#include "testing.h"
#include "tiff_file.h"

#define ITEMS 80

static char in_paths[ITEMS][1200], out_paths[ITEMS][1200];
static char want_paths[ITEMS][1200]; /* outputs of single runs */

/* ---- inputs ---------------------------------------------------------------------------------- */

static inline void put_png(const char *path, uint32_t size, int color, int depth, bool interlaced,
                           const png_extra *extras, size_t extra_count, size_t cut) {
    AUTO(free) png_bytes file = {0};
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
}

/* Write a TIFF of three pages. */
static inline void put_pages(const char *path) {
    const tiff_spec page = tiff_small_grey(30, 0), pages[] = {page, page, page};
    test_random random = test_seeded(5);
    assert_true(tiff_write(path, pages, 3, &random));
}

/* Write input n: an image, a broken file, or none. Many images have the same format. */
static inline void put_input(int n, const char *path) {
    static const png_extra texts[] = {
        {.name = "tEXt", .position = 0, .data = "Title\0before", .size = 12},
        {.name = "tEXt", .position = 2, .data = "Title\0after", .size = 11}};
    static const png_extra damaged[] = {
        {.name = "tEXt", .position = 2, .data = "Title\0torn", .size = 10, .wrong_checksum = true}};
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
    else if (n % 16 == 11)
        put_pages(path);
    else if (n % 16 != 10)
        put_png(path, size, n % 2 ? 2 : 6, 8, false, texts, 2, 0);
}

static inline int make_inputs(void **state) {
    if (make_directory(state))
        return 1;
    for (int i = 0; i < ITEMS; i++) {
        snprintf(in_paths[i], sizeof in_paths[i], "%s/in%02d.png", test_directory, i);
        snprintf(out_paths[i], sizeof out_paths[i], "%s/out%02d.png", test_directory, i);
        snprintf(want_paths[i], sizeof want_paths[i], "%s/want%02d.png", test_directory, i);
        put_input(i, in_paths[i]);
    }
    return 0;
}

/* ---- runs and their outcomes ----------------------------------------------------------------- */

typedef struct item_outcome {
    int times;
    gf_status status;
    gf_error error;
    gf_report report;
    gf_step_report output; /* of the last step, with the brightness of the first one */
    char text[4000];       /* the first cells of the result */
} item_outcome;

static item_outcome got[ITEMS];

typedef struct listener {
    atomic_int inside;
    uint64_t calls, max; /* max: stop after this number of calls; 0: never */
    bool in_order;
} listener;

/* Write the cells of all tables as text. */
static inline void write_result(const gf_result *result, char text[4000]) {
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

static inline bool on_done(void *context, const gf_batch_done *done) {
    listener *all = context;
    item_outcome *one = &got[done->item];
    assert_int_equal(atomic_fetch_add(&all->inside, 1), 0);
    if (all->in_order)
        assert_int_equal(done->item, all->calls);
    one->times++;
    one->status = done->status;
    one->report = done->outcome->report;
    one->output = done->outcome->steps[done->outcome->steps[1].in.width ? 1 : 0];
    one->output.brightness = done->outcome->steps[0].brightness;
    if (done->status) {
        assert_non_null(done->error);
        assert_null(done->outcome->results[0]);
        one->error = *done->error;
    } else if (done->outcome->results[0]) {
        write_result(done->outcome->results[0], one->text);
    }
    all->calls++;
    atomic_fetch_sub(&all->inside, 1);
    return !all->max || all->calls < all->max;
}

static inline void make_items(test_item items[ITEMS], bool image) {
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (test_item){.in = in_paths[i], .out = image ? out_paths[i] : NULL};
        unlink(out_paths[i]);
    }
    memset(got, 0, sizeof got);
}

/* Run smooth as a batch on this number of devices (simulated by cpu backends); 0: on threads. */
static inline gf_status run_smooth_from(const test_item *items, uint64_t count, uint32_t devices,
                                        const test_batch_options *options,
                                        const gf_work_source *source) {
    const gf_filter *filter = gf_filter_find("smooth");
    const gf_batch_devices on = {.count = devices};
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    return test_run_batch_on(
        &(test_batch){devices ? &on : NULL, filter, settings, items, count, options, source});
}

static inline gf_status run_smooth(const test_item *items, uint64_t count, uint32_t devices,
                                   const test_batch_options *options) {
    return run_smooth_from(items, count, devices, options, NULL);
}

/* ---- single runs ----------------------------------------------------------------------------- */

static item_outcome want[ITEMS];

/* Run the first `count` inputs one after the other, with golden. */
static inline void run_each(const gf_filter *filter, const gf_settings *settings,
                            const gf_file_options *options, int count) {
    const bool image = gf_filter_describe(filter)->makes_image;
    AUTO(engine) gf_engine *engine;
    memset(want, 0, sizeof want);
    assert_int_equal(gf_engine_open(&(gf_engine_options){.backend = "golden"}, &engine, NULL), 0);
    for (int i = 0; i < count; i++) {
        const char *in = in_paths[i];
        AUTO(result) gf_result *result = NULL;
        unlink(want_paths[i]);
        want[i].status = test_run_files(
            &(test_files){engine, filter, settings, &in, image ? want_paths[i] : NULL, options,
                          .result = &result, .report = &want[i].report, .output = &want[i].output});
        want[i].error = want[i].status ? why : (gf_error){0};
        if (result)
            write_result(result, want[i].text);
    }
}

/* Check what a report says about the files: it does not depend on what computed them. */
static inline void check_report(const char *what, int i) {
    const gf_report *a = &got[i].report, *b = &want[i].report;
    const gf_step_report *c = &got[i].output, *d = &want[i].output;
    const struct {
        const char *name;
        uint64_t got, want;
    } numbers[] = {{"pixels", a->pixels, b->pixels},
                   {"bytes read", a->in_bytes, b->in_bytes},
                   {"pages", a->pages, b->pages},
                   {"bytes written", c->out_bytes, d->out_bytes},
                   {"clipped samples", c->clipped, d->clipped},
                   {"counted samples", c->counted, d->counted},
                   {"dropped metadata", c->dropped, d->dropped}};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (numbers[k].got != numbers[k].want)
            fail_msg("%s: item %d: %lu instead of %lu %s", what, i, (unsigned long)numbers[k].got,
                     (unsigned long)numbers[k].want, numbers[k].name);
    if (!gf_format_equal(&a->in, &b->in) || !gf_format_equal(&c->out, &d->out))
        fail_msg("%s: item %d: another format", what, i);
    if (c->brightness != d->brightness)
        fail_msg("%s: item %d: brightness %g instead of %g", what, i, c->brightness, d->brightness);
    if (strcmp(a->remarks.damage, b->remarks.damage) || strcmp(a->remarks.notes, b->remarks.notes))
        fail_msg("%s: item %d: notes '%s', '%s' instead of '%s', '%s'", what, i, a->remarks.damage,
                 a->remarks.notes, b->remarks.damage, b->remarks.notes);
}

/* Check that each item was reported once, with the wanted status, message and result. */
static inline void check_outcomes(const char *what) {
    for (int i = 0; i < ITEMS; i++) {
        if (got[i].times != 1)
            fail_msg("%s: item %d: reported %d times", what, i, got[i].times);
        if (got[i].status != want[i].status || strcmp(got[i].error.message, want[i].error.message))
            fail_msg("%s: item %d: %d %s; alone %d %s", what, i, (int)got[i].status,
                     got[i].error.message, (int)want[i].status, want[i].error.message);
        assert_string_equal(got[i].text, want[i].text);
        if (!got[i].status)
            check_report(what, i);
    }
}

static inline void check_files(const char *want_path, const char *path, const char *what) {
    size_t size, other;
    AUTO(free) unsigned char *a = test_bytes(want_path, &size), *b = test_bytes(path, &other);
    if (size != other || memcmp(a, b, size) != 0)
        fail_msg("%s: %s: the bytes differ", what, path);
}

static inline void check_file(int i, const char *what) {
    check_files(want_paths[i], out_paths[i], what);
}

#endif
