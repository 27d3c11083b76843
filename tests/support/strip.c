#include "strip.h"

#include "core/error.h"
#include "core/result.h"
#include "samples.h"

static unsigned char *paint(size_t size) {
    unsigned char *memory = aligned_alloc(64, (size + 63) & ~(size_t)63);
    assert_non_null(memory);
    memset(memory, TEST_PAINT, size);
    return memory;
}

/* Return a stride with paint after each row: at least one alignment, or the padding. */
static size_t stride_of(size_t row, size_t align, size_t padding) {
    return align ? (row + 2 * align - 1) / align * align : row + padding;
}

/* Run golden on rows of the memory `to`, `got` or `want`. */
static gf_status golden(const test_strip *strip, const gf_rows in[2], unsigned char *to,
                        gf_range rows, unsigned char *state, unsigned char *payload) {
    const gf_plan *plan = strip->plan;
    const uint64_t y0 = strip->out.y0;
    const gf_rows got = {to + (strip->out.data - strip->got), strip->out.stride, y0, 0};
    const gf_strip piece = {.in = {in[0], in[1]},
                            .out = {got.data + (rows.first - y0) * got.stride, got.stride,
                                    rows.first, rows.end - rows.first},
                            .records = to + (strip->records - strip->got) +
                                       (rows.first - y0) * plan->record,
                            .state = state ? state + TEST_MARGIN : NULL,
                            .payload = payload,
                            .constants = plan->constants};
    return strip->filter->golden(plan, &piece, NULL);
}

/* Measure the whole image with the filter that must run before this one. Golden computes it. Return
 * false if the image cannot be measured. */
static bool learn(test_strip *strip) {
    const gf_plan *plan = strip->plan->measure_first;
    if (!plan)
        return true;
    const gf_filter *before = plan->filter;
    void *state = calloc(1, (size_t)plan->state_bytes + 1), *data = NULL;
    const gf_measure_options keep = {.name = "test"};
    assert_ok(before->measure->open(plan, &keep, &data, NULL));
    const uint64_t height = plan->in.height;
    AUTO(free) unsigned char *records = paint(plan->record * (size_t)height);
    const gf_strip whole = {
        .in = {strip->all[0]}, .out = {.rows = height}, .records = records, .state = state};
    const gf_rows rows = gf_strip_records(plan, &whole);
    assert_ok(before->golden(plan, &whole, NULL));
    if (plan->record)
        assert_ok(before->measure->rows(plan, data, &rows, NULL));
    assert_ok(before->measure->finish(plan, data, state, NULL));
    const gf_status status = strip->filter->refine(strip->plan, data, NULL);
    before->measure->close(data);
    free(state);
    return !status;
}

static void fill_inputs(test_strip *strip, test_random *random) {
    for (uint32_t i = 0; i < strip->plan->inputs; i++) {
        test_image image = {.format = strip->plan->in, .rows = strip->all[i]};
        if (i == 0 || test_below(random, 2) == 0) {
            test_fill(&image, (test_content)test_below(random, TEST_CONTENT_COUNT), random);
            continue;
        }
        for (uint64_t y = 0; y < image.format.height; y++)
            memcpy(gf_row(&image.rows, y), gf_row(&strip->all[0], y), gf_row_bytes(&image.format));
        test_disturb(&image, random);
    }
}

/* Compute the expected rows: images from all rows, measurements from the strip alone. */
static void make_want(test_strip *strip) {
    const gf_plan *plan = strip->plan;
    const gf_measure *measure = strip->filter->measure;
    if (!measure) {
        assert_ok(
            golden(strip, strip->all, strip->want, (gf_range){0, gf_plan_rows(plan)}, NULL, NULL));
        return;
    }
    const uint64_t y0 = strip->out.y0;
    if (plan->state_bytes) {
        strip->state_size = (size_t)plan->state_bytes + 2 * TEST_MARGIN;
        strip->state = paint(strip->state_size);
        memset(strip->state + TEST_MARGIN, 0, (size_t)plan->state_bytes);
        /* Golden needs memory for the samples that it extracts here. They are discarded. */
        unsigned char *payload =
            plan->has_payload ? paint(strip->filter->payload->bytes(plan, y0)) : NULL;
        if (y0 > 0)
            assert_ok(
                golden(strip, strip->all, strip->want, (gf_range){0, y0}, strip->state, payload));
        free(payload);
        strip->want_state = paint(strip->state_size);
        memcpy(strip->want_state, strip->state, strip->state_size);
        memset(strip->want, TEST_PAINT, strip->out_size);
    }
    if (plan->has_payload) {
        strip->payload_bytes = strip->filter->payload->bytes(plan, strip->out.rows);
        strip->want_payload = paint(strip->payload_bytes);
    }
    assert_ok(golden(strip, strip->from, strip->want, (gf_range){y0, y0 + strip->out.rows},
                     strip->want_state, strip->want_payload));
}

bool test_strip_new(test_strip *strip, const gf_filter *filter, const char *text, uint64_t seed,
                    gf_format format, bool whole, size_t row_align) {
    test_random random = {seed};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    *strip = (test_strip){.filter = filter, .text = text, .seed = seed};
    strip->settings = test_settings(filter, text);
    if (gf_plan_new(filter, strip->settings, &format, &strip->plan, NULL)) {
        test_strip_free(strip);
        return false;
    }
    const uint32_t stages = gf_filter_stages(filter);
    for (uint64_t stage = stages > 1 ? test_below(&random, stages) : 0; stage > 0; stage--) {
        gf_plan *first = strip->plan;
        assert_ok(gf_plan_next(first, strip->settings, &strip->plan, &why));
        gf_plan_free(first);
    }
    gf_plan *plan = strip->plan;
    format = plan->in;
    const size_t sample = gf_type_bytes(
        plan->out.width && plan->out.type > format.type ? plan->out.type : format.type);
    const size_t padding = (4 + (size_t)test_below(&random, 60)) / sample * sample;
    const size_t in_stride = stride_of(gf_row_bytes(&format), row_align, padding);
    const size_t out_stride =
        plan->out.width ? stride_of(gf_row_bytes(&plan->out), row_align, padding) : 0;
    const size_t in_bytes = (size_t)format.height * in_stride + TEST_MARGIN;
    const size_t rows_bytes = ((size_t)gf_plan_rows(plan) * out_stride + 63) / 64 * 64;
    strip->in_size = TEST_MARGIN + plan->inputs * in_bytes;
    strip->out_size = 3 * TEST_MARGIN + rows_bytes + (size_t)gf_plan_rows(plan) * plan->record;
    strip->in = paint(strip->in_size);
    strip->want = paint(strip->out_size);
    strip->got = paint(strip->out_size);
    for (uint32_t i = 0; i < plan->inputs; i++)
        strip->all[i] =
            (gf_rows){strip->in + TEST_MARGIN + i * in_bytes, in_stride, 0, format.height};
    fill_inputs(strip, &random);
    if (filter->nodata == GF_NODATA_APART && format.type != GF_F32 && test_below(&random, 3) == 0)
        gf_plan_set_nodata(
            plan, (gf_nodata){true, gf_get_sample(format.type, strip->all[0].data,
                                                  test_below(&random, gf_row_samples(&format)))});
    if (!learn(strip)) {
        test_strip_free(strip);
        return false;
    }

    const uint64_t height = gf_plan_rows(plan);
    const uint64_t y0 = whole ? 0 : test_below(&random, height);
    const uint64_t rows = whole ? height : 1 + test_below(&random, height - y0);
    const gf_range needs = gf_map_needs(plan, (gf_range){y0, y0 + rows});
    unsigned char *first = strip->got + TEST_MARGIN;
    strip->out = (gf_rows){first + y0 * out_stride, out_stride, y0, rows};
    strip->records = first + rows_bytes + TEST_MARGIN + y0 * plan->record;
    for (uint32_t i = 0; i < plan->inputs; i++)
        strip->from[i] = gf_rows_part(&strip->all[i], needs.first, needs.end - needs.first);
    make_want(strip);
    return true;
}

static void fail_strip(const test_strip *strip, const char *backend, const char *what) {
    const gf_format *format = &strip->plan->in;
    fail_msg("%s '%s' on %s: %s, seed %" PRIu64 ", rows %" PRIu64 " to %" PRIu64 " of %" PRIu64
             "x%" PRIu64 "x%u %s",
             strip->filter->info.name, strip->text, backend, what, strip->seed, strip->out.y0,
             strip->out.y0 + strip->out.rows, format->width, format->height, format->channels,
             gf_type_name(format->type));
}

/* Return the result of payloads. Payloads are compared by their results. */
static gf_result *absorb(const test_strip *strip, const unsigned char *payloads, uint32_t pieces,
                         size_t stride) {
    const gf_measure *measure = strip->filter->measure;
    const gf_measure_options keep = {.all = true, .max_memory = UINT64_MAX, .name = "test"};
    void *data = NULL;
    gf_plan *plan = malloc(strip->filter->plan_bytes);
    assert_non_null(plan);
    memcpy(plan, strip->plan, strip->filter->plan_bytes);
    plan->owned = plan->measure_first = NULL; /* of strip->plan */
    assert_ok(measure->open(plan, &keep, &data, &why));
    for (uint32_t i = 0; i < pieces; i++)
        assert_ok(measure->payload(plan, data, payloads + i * stride, &why));
    /* No rows were counted: an empty state is sufficient. */
    AUTO(free) void *state = calloc(1, (size_t)plan->state_bytes + 1);
    assert_non_null(state);
    assert_ok(measure->finish(plan, data, state, &why));
    gf_result *result = NULL;
    assert_ok(gf_result_new(strip->filter, plan, data, &result, &why));
    return result;
}

void test_strip_check(const test_strip *strip, const char *backend, const unsigned char *state,
                      const unsigned char *payloads, uint32_t pieces, size_t stride) {
    /* Other rows of `got` must still be paint. In `want`, golden may have computed all rows. */
    const gf_plan *plan = strip->plan;
    const size_t row = plan->out.width ? gf_row_bytes(&plan->out) : 0,
                 at = (size_t)(strip->out.data - strip->got);
    const size_t record = plan->record, records_at = (size_t)(strip->records - strip->got);
    const unsigned char *got = strip->got;
    size_t end = 0; /* of the bytes that were checked */
    for (uint64_t y = 0; y < strip->out.rows; y++, end = at + (y - 1) * strip->out.stride + row) {
        const size_t next = at + y * strip->out.stride;
        if (memcmp(strip->want + next, got + next, row) != 0)
            fail_strip(strip, backend, "a row is wrong");
        if (!test_painted(got + end, got + next))
            fail_strip(strip, backend, "wrote outside the strip's rows");
    }
    if (!test_painted(got + end, got + records_at) ||
        !test_painted(got + records_at + strip->out.rows * record, got + strip->out_size))
        fail_strip(strip, backend, "wrote outside all rows");
    if (memcmp(strip->want + records_at, got + records_at, strip->out.rows * record) != 0)
        fail_strip(strip, backend, "a record is wrong");
    if (strip->state && memcmp(state, strip->want_state, strip->state_size) != 0)
        fail_strip(strip, backend, "the state is wrong");
    if (!strip->want_payload)
        return;
    AUTO(result) gf_result *golden_result = absorb(strip, strip->want_payload, 1, 0);
    AUTO(result) gf_result *result = absorb(strip, payloads, pieces, stride);
    if (!test_same_result(golden_result, result, backend))
        fail_strip(strip, backend, "the payload is wrong");
}

void test_strip_repaint(test_strip *strip) {
    memset(strip->got, TEST_PAINT, strip->out_size);
}

void test_strip_free(test_strip *strip) {
    free(strip->in);
    free(strip->want);
    free(strip->got);
    free(strip->state);
    free(strip->want_state);
    free(strip->want_payload);
    gf_settings_free(strip->settings);
    gf_plan_free(strip->plan);
}
