/* Row maps: filters that read other rows than the one they compute, through the stream. Three
 * small filters, box, median and resize, have golden functions only; resize is two nodes, one along
 * rows and one with a table of rows. Chains of them, with branches, run in one stream. Any division
 * into strips, slots, threads and ranges of rows produces the rows of the whole images. */
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/filter.h"
#include "engine/pipeline/pipeline.h"
#include "io/stream/stream.h"
#include "testing.h"

/* ---- the filters ----------------------------------------------------------------------------- */

static const gf_param params[] = {
    {.name = "before", .type = GF_PARAM_INT, .metavar = "N", .fallback = "1", .max = 99},
    {.name = "after", .type = GF_PARAM_INT, .metavar = "N", .fallback = "1", .max = 99},
    {.name = "size", .type = GF_PARAM_INT, .metavar = "N", .fallback = "1", .min = 1, .max = 99},
    {.name = "support", .type = GF_PARAM_INT, .metavar = "N", .fallback = "1", .min = 1, .max = 9},
};

/* Return the samples [first, end) that sample y of `out` samples covers among n, in 64-bit
 * integers: support / 2 sample distances of the larger side on each side of its centre. */
static gf_range window(uint64_t n, uint64_t out, uint64_t support, uint64_t y) {
    const int64_t size = (int64_t)n, side = (int64_t)(support * (n > out ? n : out));
    const int64_t centre = (int64_t)(2 * y + 1) * size + (int64_t)out, by = 2 * (int64_t)out;
    int64_t first = centre < side ? 0 : (centre - side) / by, end = (centre + side) / by;
    first = first < size ? first : size - 1;
    end = end < size ? end : size;
    return (gf_range){(uint64_t)first, (uint64_t)(end > first ? end : first + 1)};
}

static gf_status plan_window(const gf_settings *settings, gf_plan *plan, gf_error *error) {
    (void)error;
    plan->before = (uint64_t)gf_settings_int(settings, "before");
    plan->after = (uint64_t)gf_settings_int(settings, "after");
    plan->cost = 1;
    return GF_OK;
}

typedef struct size_plan {
    gf_plan head;
    uint64_t support;
} size_plan;

static gf_status plan_along(const gf_settings *settings, gf_plan *plan, gf_error *error) {
    (void)error;
    ((size_plan *)plan)->support = (uint64_t)gf_settings_int(settings, "support");
    plan->out.width = (uint64_t)gf_settings_int(settings, "size");
    plan->cost = 1;
    return GF_OK;
}

static gf_status plan_down(const gf_settings *settings, gf_plan *plan, gf_error *error) {
    const uint64_t support = (uint64_t)gf_settings_int(settings, "support");
    (void)error;
    plan->out.height = (uint64_t)gf_settings_int(settings, "size");
    gf_range *rows = test_zeros(plan->out.height * sizeof *rows);
    /* Without the rows at both ends, or of each window only the last one, so that rows between
     * them are left out, or all rows. */
    const uint64_t cut = support % 3 == 1 ? plan->in.height / 5 : 0;
    for (uint64_t y = 0; y < plan->out.height; y++) {
        rows[y] = window(plan->in.height - 2 * cut, plan->out.height, support, y);
        rows[y].end += cut;
        rows[y].first = support % 3 == 2 ? rows[y].end - 1 : rows[y].first + cut;
    }
    plan->rows = plan->owned = rows;
    plan->cost = 1;
    return GF_OK;
}

static uint8_t mean(const uint8_t *values, uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += values[i];
    return (uint8_t)((sum + n / 2) / n);
}

static uint8_t middle(const uint8_t *values, uint64_t n) {
    uint64_t counts[256] = {0}, below = 0;
    for (uint64_t i = 0; i < n; i++)
        counts[values[i]]++;
    for (unsigned v = 0;; v++)
        if ((below += counts[v]) > n / 2)
            return (uint8_t)v;
}

/* Reduce the column of samples that each output sample reads. */
static gf_status reduce_rows(const gf_plan *plan, const gf_strip *strip,
                             uint8_t (*reduce)(const uint8_t *values, uint64_t n)) {
    uint8_t values[256];
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        const gf_range rows = gf_map_needs(plan, (gf_range){y, y + 1});
        for (uint64_t i = 0; i < gf_row_samples(&plan->out); i++) {
            for (uint64_t k = rows.first; k < rows.end; k++)
                values[k - rows.first] = gf_row(&strip->in[0], k)[i];
            gf_row(&strip->out, y)[i] = reduce(values, rows.end - rows.first);
        }
    }
    return GF_OK;
}

static gf_status golden_mean(const gf_plan *plan, const gf_strip *strip, gf_error *error) {
    (void)error;
    return reduce_rows(plan, strip, mean);
}

static gf_status golden_median(const gf_plan *plan, const gf_strip *strip, gf_error *error) {
    (void)error;
    return reduce_rows(plan, strip, middle);
}

static gf_status golden_along(const gf_plan *plan, const gf_strip *strip, gf_error *error) {
    const uint64_t support = ((const size_plan *)plan)->support;
    (void)error;
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++)
        for (uint64_t x = 0; x < plan->out.width; x++) {
            const gf_range from = window(plan->in.width, plan->out.width, support, x);
            gf_row(&strip->out, y)[x] =
                mean(gf_row(&strip->in[0], y) + from.first, from.end - from.first);
        }
    return GF_OK;
}

#define INFO(text)                                                                                 \
    .info = {.name = text,                                                                         \
             .params = params,                                                                     \
             .param_count = sizeof params / sizeof params[0],                                      \
             .inputs = 1,                                                                          \
             .makes_image = true}

enum { BOX, MEDIAN, ALONG, DOWN, FILTERS };
static const gf_filter filters[FILTERS] = {
    [BOX] = {INFO("box"), sizeof(gf_plan), .plan = plan_window, .golden = golden_mean},
    [MEDIAN] = {INFO("median"), sizeof(gf_plan), .plan = plan_window, .golden = golden_median},
    [ALONG] = {INFO("along"), sizeof(size_plan), .plan = plan_along, .golden = golden_along},
    [DOWN] = {INFO("down"), sizeof(gf_plan), .plan = plan_down, .golden = golden_mean},
};

/* Plan a filter with random settings. */
static gf_plan *plan_random(int filter, gf_format format, test_random *random) {
    char text[96];
    gf_plan *plan = NULL;
    (void)snprintf(text, sizeof text, "before=%u after=%u size=%u support=%u",
                   (unsigned)test_below(random, 10), (unsigned)test_below(random, 10),
                   1 + (unsigned)test_below(random, 70), 1 + (unsigned)test_below(random, 6));
    AUTO(settings) gf_settings *settings = test_settings(&filters[filter], text);
    assert_ok(gf_plan_new(&filters[filter], settings, &format, &plan, NULL));
    return plan;
}

static gf_format format_random(test_random *random) {
    return (gf_format){1 + test_below(random, 9), 1 + test_below(random, 60), 1, GF_U8, false};
}

static unsigned char *pixels_random(const gf_format *format, test_random *random) {
    const size_t bytes = gf_row_bytes(format) * (size_t)format->height;
    unsigned char *pixels = test_alloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        pixels[i] = (unsigned char)test_next(random);
    return pixels;
}

/* Compute rows with golden, from a copy of exactly the rows that they need. */
static unsigned char *compute(const gf_plan *plan, const unsigned char *pixels, gf_range rows) {
    const gf_range needs = gf_map_needs(plan, rows);
    const size_t in = gf_row_bytes(&plan->in), out = gf_row_bytes(&plan->out);
    AUTO(free) unsigned char *from = malloc((size_t)(needs.end - needs.first) * in);
    unsigned char *to = malloc((size_t)(rows.end - rows.first) * out);
    assert_true(from && to);
    memcpy(from, pixels + needs.first * in, (size_t)(needs.end - needs.first) * in);
    const gf_strip strip = {.in = {{from, in, needs.first, needs.end - needs.first}},
                            .out = {to, out, rows.first, rows.end - rows.first}};
    assert_ok(plan->filter->golden(plan, &strip, NULL));
    return to;
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* Needed rows of a range are those of its rows; ready rows are those whose rows are there. */
TEST(maps_agree) {
    test_random random = test_seeded(1);
    for (int round = 0; round < 600; round++) {
        gf_plan *plan = plan_random(round % FILTERS, format_random(&random), &random);
        const uint64_t height = gf_plan_rows(plan), in = plan->in.height;
        const gf_range out = {test_below(&random, height), height};
        uint64_t end = gf_map_needs(plan, (gf_range){out.first, out.first + 1}).first;
        const gf_range none = gf_map_needs(plan, (gf_range){out.first, out.first});
        assert_int_equal(none.first, none.end);
        for (uint64_t y = out.first, next; y < out.end; y = next) {
            next = y + 1 + test_below(&random, out.end - y);
            const gf_range all = gf_map_needs(plan, (gf_range){y, next});
            const gf_range a = gf_map_needs(plan, (gf_range){y, y + 1});
            const gf_range b = gf_map_needs(plan, (gf_range){next - 1, next});
            assert_true(a.first == all.first && b.end == all.end);
            /* Without a table, no row is left out. */
            assert_true((plan->rows || all.first <= end) && all.end >= end);
            end = all.end;
        }
        assert_true(end == in || (plan->rows && end < in));
        /* Rows are ready if those that they need are there, and at last all of them are. */
        for (uint64_t n = 0; n < in; n++) {
            const uint64_t ready = gf_map_ready(plan, n);
            assert_true(ready == 0 || gf_map_needs(plan, (gf_range){0, ready}).end <= n);
            assert_true(ready == height ||
                        gf_map_needs(plan, (gf_range){ready, ready + 1}).end > n);
        }
        for (uint64_t y = 0; y <= height; y++) {
            const uint64_t due = gf_map_due(plan, y);
            assert_true(gf_map_ready(plan, due) >= y);
            assert_true(due == 0 || gf_map_ready(plan, due - 1) < y);
        }
        gf_plan_free(plan);
    }
}

/* A row outside the needed ones has no effect (`compute` does not even have it), and the first and
 * the last needed row have one, for some image. */
TEST(maps_are_tight) {
    test_random random = test_seeded(2);
    for (int round = 0; round < 300; round++) {
        gf_plan *plan = plan_random(round % FILTERS, format_random(&random), &random);
        const uint64_t y = test_below(&random, gf_plan_rows(plan));
        const gf_range rows = {y, y + 1}, needs = gf_map_needs(plan, rows);
        const size_t in = gf_row_bytes(&plan->in), out = gf_row_bytes(&plan->out);
        bool found[2] = {false, false};
        for (int attempt = 0; attempt < 400 && !(found[0] && found[1]); attempt++) {
            AUTO(free) unsigned char *pixels = pixels_random(&plan->in, &random);
            for (size_t i = 0; i < in * plan->in.height; i++)
                pixels[i] = pixels[i] & 1 ? 255 : 0;
            AUTO(free) unsigned char *before = compute(plan, pixels, rows);
            for (int last = 0; last < 2; last++) {
                unsigned char *row = pixels + (last ? needs.end - 1 : needs.first) * in;
                for (size_t i = 0; i < in; i++)
                    row[i] ^= 255;
                AUTO(free) unsigned char *after = compute(plan, pixels, rows);
                found[last] = found[last] || memcmp(before, after, out) != 0;
                for (size_t i = 0; i < in; i++)
                    row[i] ^= 255;
            }
        }
        assert_true(found[0] && found[1]);
        gf_plan_free(plan);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static gf_strip_request requested;

static gf_strip_request request(const void *state, const gf_nodes *nodes) {
    (void)state;
    (void)nodes;
    return requested;
}

/* The cpu backend with other requests. */
static gf_backend any_backend(void) {
    gf_backend backend = gf_backend_cpu;
    backend.request = request;
    return backend;
}

enum { MAX_NODES = 6 };

/* Consumer that stores the rows of all written edges. */
typedef struct collector {
    gf_consumer base;
    gf_cut cut;
    unsigned char *out[MAX_NODES + 1]; /* image of each written edge */
    uint64_t next[MAX_NODES + 1];      /* row to receive */
} collector;

static gf_status collector_begin(gf_consumer *consumer, const gf_cut *cut, gf_error *error) {
    (void)error;
    ((collector *)consumer)->cut = *cut;
    return GF_OK;
}

static gf_status collector_strip(gf_consumer *consumer, const gf_slot *slot, gf_error *error) {
    collector *all = (collector *)consumer;
    for (uint32_t e = 1; e <= all->cut.nodes->count; e++) {
        const gf_rows *rows = &slot->out[e - 1].rows;
        const size_t bytes = gf_row_bytes(&all->cut.nodes->node[e - 1].plan->out);
        const uint64_t end = rows->y0 + rows->rows;
        if (!all->out[e])
            continue;
        for (uint64_t y = gf_max(rows->y0, all->cut.edge[e].deliver); y < end; y++) {
            if (y != all->next[e])
                return gf_fail(error, GF_FAILED, "edge %u: row %" PRIu64 ", expected %" PRIu64, e,
                               y, all->next[e]);
            memcpy(all->out[e] + y * bytes, gf_row(rows, y), bytes);
            all->next[e]++;
        }
    }
    return GF_OK;
}

/* Stream a range of positions into the images of a collector, with strips and slots of any number.
 */
static void stream_range(collector *to, const gf_nodes *nodes, void *state,
                         const unsigned char *pixels, gf_range source, test_random *random) {
    const gf_backend backend = any_backend();
    const gf_format *format = &nodes->node[0].plan->in;
    const gf_pixels in = {pixels, gf_row_bytes(format)};
    const gf_rows rows = {(unsigned char *)(uintptr_t)pixels, in.stride, 0, format->height};
    gf_cut cut = {.nodes = nodes, .source = source};
    gf_inputs inputs;
    gf_report report = {0};
    requested = (gf_strip_request){.bytes = 1 + test_below(random, 400),
                                   .halos = (uint32_t)test_below(random, 9),
                                   .max = test_below(random, 1u << 14),
                                   .slots = 1 + (uint32_t)test_below(random, 7),
                                   .in_memory = test_below(random, 2),
                                   .fits_source = test_below(random, 2),
                                   .pieces = 1,
                                   .golden_parts = (uint32_t)test_below(random, 4)};
    gf_cut_set(&cut, 1, 1);
    assert_ok(gf_inputs_open_memory(&inputs, 1, &format, 1, (const gf_pixels *const[]){&in}, NULL));
    gf_inputs_seek(&inputs, cut.edge[0].start);
    const gf_stream_job job = {.name = "test",
                               .nodes = nodes,
                               .on = {&backend, state},
                               .consumer = &to->base,
                               .source = source,
                               .rows_per_strip =
                                   test_below(random, 2) ? 1 + test_below(random, 20) : 0,
                               .rows_together = test_below(random, 2) ? test_below(random, 20) : 0,
                               .groups = 2,
                               .max_memory = 1u << 20,
                               .in = test_below(random, 2) ? &rows : NULL,
                               .unthreaded = test_below(random, 4) == 0};
    assert_ok(gf_stream_run(&job, &inputs, &report, NULL, &why));
    gf_inputs_close(&inputs);
}

/* Run random nodes on the whole image, each with golden, then all together in one stream. */
static void check_chain(void *state, uint32_t threads, int chain, test_random *random) {
    gf_node node[MAX_NODES];
    gf_nodes nodes = {.node = node, .count = 1 + (uint32_t)test_below(random, MAX_NODES)};
    unsigned char *want[MAX_NODES + 1];
    collector to = {.base = {.begin = collector_begin, .strip = collector_strip}};
    uint64_t last = 0, read = 0; /* bit e: a node reads edge e */
    const gf_format format = format_random(random);
    want[0] = pixels_random(&format, random);
    for (uint32_t i = 0; i < nodes.count; i++) {
        const uint32_t from = test_below(random, 4) ? i : (uint32_t)test_below(random, i + 1);
        gf_plan *plan = plan_random((int)test_below(random, FILTERS),
                                    from ? node[from - 1].plan->out : format, random);
        want[i + 1] = compute(plan, want[from], (gf_range){0, plan->out.height});
        node[i] = (gf_node){plan, from};
        read |= UINT64_C(1) << from;
    }
    for (uint32_t e = 1; e <= nodes.count; e++) {
        const gf_format *out = &node[e - 1].plan->out;
        last = gf_max(last, gf_cut_position(&nodes, e, out->height));
        if ((read >> e & 1) && test_below(random, 3))
            continue;
        nodes.written |= UINT64_C(1) << e;
        to.out[e] = test_alloc(gf_row_bytes(out) * (size_t)out->height);
    }
    for (gf_range source = {0, 0}; source.first < last; source.first = source.end) {
        const uint64_t rest = last - source.first;
        source.end = test_below(random, 2) ? last : source.first + 1 + test_below(random, rest);
        stream_range(&to, &nodes, state, want[0], source, random);
    }
    for (uint32_t e = 1; e <= nodes.count; e++) {
        const gf_plan *plan = node[e - 1].plan;
        const size_t bytes = gf_row_bytes(&plan->out) * (size_t)plan->out.height;
        if (to.out[e] && (to.next[e] != plan->out.height || memcmp(want[e], to.out[e], bytes) != 0))
            fail_msg("chain %d with %u threads, node %u, %s: differs, %" PRIu64 " of %" PRIu64
                     " rows",
                     chain, threads, e, plan->filter->info.name, to.next[e], plan->out.height);
    }
    for (uint32_t e = 0; e <= nodes.count; e++) {
        free(want[e]);
        free(to.out[e]);
        if (e)
            gf_plan_free((gf_plan *)(uintptr_t)node[e - 1].plan);
    }
}

TEST(strips_of_chains_equal_whole_images) {
    test_random random = test_seeded(3);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        const gf_engine_options options = {.threads = threads, .unthreaded = threads == 1};
        void *cpu;
        assert_ok(gf_backend_cpu.open(&options, &cpu, NULL));
        for (int chain = 0; chain < 300; chain++)
            check_chain(cpu, threads, chain, &random);
        gf_backend_cpu.close(cpu);
    }
}

int main(void) {
    return test_main(NULL);
}
