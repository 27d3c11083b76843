/* Golden implementation of order statistics. Both functions work on the keys of one channel:
 * integers in the order of the samples. */
#include <stdlib.h>

#include "core/error.h"
#include "percentile/percentile.h"
#include "samples.h"

/* A channel of the input rows of a strip; after its pixels, one for all that are outside. */
typedef struct golden_channel {
    const gf_percentile_plan *plan;
    const gf_strip *strip;
    uint32_t channel;
    uint64_t pixels; /* of the input rows, without the one outside */
} golden_channel;

static int32_t golden_key(gf_type type, uint32_t bits) {
    if (type != GF_F32)
        return (int32_t)bits;
    const float number = gf_sample_number(type, bits);
    return gf_percentile_order((int32_t)(number == number ? bits : 0x7fc00000));
}

static void golden_put(const golden_channel *all, uint64_t x, uint64_t y, int32_t key) {
    const gf_format *format = &all->plan->head.in;
    const uint32_t bits = (uint32_t)(format->type == GF_F32 ? gf_percentile_order(key) : key);
    gf_put_sample(format->type, gf_row(&all->strip->out, y), x * format->channels + all->channel,
                  gf_sample_number(format->type, bits));
}

static void golden_load(const golden_channel *all, int32_t *keys) {
    const gf_format *format = &all->plan->head.in;
    const gf_rows *in = &all->strip->in[0];
    float outside;
    for (uint64_t y = 0; y < in->rows; y++)
        for (uint64_t x = 0; x < format->width; x++)
            *keys++ =
                golden_key(format->type, gf_sample_bits(format->type, in->data + y * in->stride,
                                                        x * format->channels + all->channel));
    gf_put_sample(format->type, &outside, 0, all->plan->edge.value);
    *keys = golden_key(format->type, gf_sample_bits(format->type, &outside, 0));
}

/* Return the pixel whose sample position (x, y) has, which may be outside the image. */
static uint64_t golden_pixel(const golden_channel *all, int64_t x, int64_t y) {
    const gf_format *format = &all->plan->head.in;
    const gf_edge_mode mode = all->plan->edge.mode;
    const int64_t column = gf_edge_index(mode, x, (int64_t)format->width);
    const int64_t row = gf_edge_index(mode, y, (int64_t)format->height);
    return column < 0 || row < 0
               ? all->pixels
               : ((uint64_t)row - all->strip->in[0].y0) * format->width + (uint64_t)column;
}

/* ---- minimum and maximum --------------------------------------------------------------------- */

static int32_t golden_best(const golden_channel *all, const int32_t *keys, uint64_t n) {
    const bool minimum = all->plan->form == GF_PERCENTILE_MINIMUM;
    int32_t best = keys[0];
    for (uint64_t i = 1; i < n; i++)
        if (minimum ? keys[i] < best : keys[i] > best)
            best = keys[i];
    return best;
}

/* The minimum of a window is that of the minima of its rows. keys: for all pixels. line: for a row
 * or a column and the pixels around it. */
static void golden_extreme(const golden_channel *all, int32_t *keys, int32_t *line) {
    const gf_rows *in = &all->strip->in[0], *out = &all->strip->out;
    const int64_t width = (int64_t)all->plan->head.in.width, first = (int64_t)out->y0;
    const int64_t rx = all->plan->radius[0], ry = all->plan->radius[1];
    golden_load(all, keys);
    for (int64_t y = (int64_t)in->y0; y < (int64_t)(in->y0 + in->rows); y++) {
        for (int64_t x = -rx; x < width + rx; x++)
            line[x + rx] = keys[golden_pixel(all, x, y)];
        for (int64_t x = 0; x < width; x++)
            keys[golden_pixel(all, x, y)] = golden_best(all, line + x, (uint64_t)(2 * rx + 1));
    }
    for (int64_t x = 0; x < width; x++) {
        for (int64_t y = -ry; y < (int64_t)out->rows + ry; y++)
            line[y + ry] = keys[golden_pixel(all, x, first + y)];
        for (int64_t y = 0; y < (int64_t)out->rows; y++)
            golden_put(all, (uint64_t)x, (uint64_t)(first + y),
                       golden_best(all, line + y, (uint64_t)(2 * ry + 1)));
    }
}

/* ---- any index ------------------------------------------------------------------------------- */

/* Counts of the samples of a window, after Huang (1979). A sample is counted at its rank, the
 * position of its key among all different ones of the channel, and in a group of ranks, so that the
 * search skips groups. */
typedef struct golden_window {
    const golden_channel *all;
    struct golden_sample {
        int32_t key;
        uint64_t at;
    } * samples;      /* of all pixels, in ascending order */
    uint64_t *rank;   /* of each pixel */
    int32_t *keys;    /* of each rank */
    uint32_t *counts; /* of each rank */
    uint32_t *groups; /* of ranks [i * side, (i + 1) * side) */
    uint64_t side;
} golden_window;

static int golden_compare(const void *a, const void *b) {
    const struct golden_sample *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* Add (1) or remove (-1) a column of the window of row y. */
static void golden_count(const golden_window *window, int64_t x, int64_t y, int step) {
    const int64_t r = window->all->plan->radius[1];
    for (int64_t i = y - r; i <= y + r; i++) {
        const uint64_t rank = window->rank[golden_pixel(window->all, x, i)];
        window->counts[rank] += (uint32_t)step;
        window->groups[rank / window->side] += (uint32_t)step;
    }
}

static int32_t golden_search(const golden_window *window) {
    uint32_t index = window->all->plan->index;
    uint64_t group = 0, rank;
    while (index >= window->groups[group])
        index -= window->groups[group++];
    for (rank = group * window->side; index >= window->counts[rank]; rank++)
        index -= window->counts[rank];
    return window->keys[rank];
}

static void golden_rank(golden_window *window) {
    const uint64_t n = window->all->pixels + 1;
    uint64_t rank = 0;
    golden_load(window->all, window->keys);
    for (uint64_t i = 0; i < n; i++)
        window->samples[i] = (struct golden_sample){window->keys[i], i};
    qsort(window->samples, n, sizeof *window->samples, golden_compare);
    for (uint64_t i = 0; i < n; i++) {
        rank += i > 0 && window->samples[i].key != window->samples[i - 1].key;
        window->rank[window->samples[i].at] = rank;
        window->keys[rank] = window->samples[i].key;
    }
    window->side =
        1 + (uint64_t)sqrt((double)rank); /* groups of as many ranks as there are groups */
}

static void golden_select(golden_window *window) {
    const golden_channel *all = window->all;
    const gf_rows *out = &all->strip->out;
    const int64_t width = (int64_t)all->plan->head.in.width, r = all->plan->radius[0];
    golden_rank(window);
    for (int64_t y = (int64_t)out->y0; y < (int64_t)(out->y0 + out->rows); y++) {
        for (int64_t x = -r; x < r; x++)
            golden_count(window, x, y, 1);
        for (int64_t x = 0; x < width; x++) {
            golden_count(window, x + r, y, 1);
            golden_put(all, (uint64_t)x, (uint64_t)y, golden_search(window));
            golden_count(window, x - r, y, -1);
        }
        for (int64_t x = width - r; x < width + r; x++)
            golden_count(window, x, y, -1);
    }
}

gf_status gf_percentile_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_format *format = &head->in;
    const gf_rows *in = &strip->in[0], *out = &strip->out;
    golden_channel all = {.plan = (const gf_percentile_plan *)head,
                          .strip = strip,
                          .pixels = format->width * in->rows};
    const uint64_t line = format->width + format->height + 2 * GF_PERCENTILE_MAX_EXTREME;
    const size_t n = (size_t)(all.pixels + 1 + line);
    golden_window window = {.all = &all};
    const size_t bytes = n * GF_PERCENTILE_GOLDEN_BYTES;
    window.samples = calloc(n, GF_PERCENTILE_GOLDEN_BYTES);
    if (!window.samples)
        return gf_fail_memory(error, "golden", bytes, "one channel");
    window.rank = (uint64_t *)(window.samples + n);
    window.keys = (int32_t *)(window.rank + n);
    window.counts = (uint32_t *)(window.keys + n);
    window.groups = window.counts + n;
    for (; all.channel < gf_measured_channels(format); all.channel++)
        if (all.plan->form <= GF_PERCENTILE_MAXIMUM)
            golden_extreme(&all, window.keys, (int32_t *)window.counts);
        else
            golden_select(&window);
    for (uint64_t y = out->y0; y < out->y0 + out->rows; y++)
        gf_restore_alpha(format, gf_row(in, y), gf_row(out, y), format->width);
    free(window.samples);
    return GF_OK;
}
