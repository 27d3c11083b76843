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

static gf_status golden(const test_strip *strip, gf_rows in, gf_rows out, unsigned char *state,
                        unsigned char *payload) {
    const gf_strip piece = {
        .in = in, .out = out, .state = state ? state + TEST_MARGIN : NULL, .payload = payload};
    return strip->filter->golden(strip->plan, &piece, NULL);
}

/* Measure the whole image with the filter that must run before this one. Golden computes it. Return
 * false if the image cannot be measured. */
static bool learn(test_strip *strip) {
    const gf_filter *before = strip->plan->before;
    if (!before)
        return true;
    gf_plan *plan;
    assert_int_equal(gf_plan_before(strip->plan, &plan, NULL), GF_OK);
    void *state = calloc(1, (size_t)plan->state_bytes + 1), *data = NULL;
    const gf_measure_options keep = {.name = "test"};
    assert_int_equal(before->measure->open(plan, &keep, &data, NULL), GF_OK);
    const size_t stride = gf_out_bytes(plan);
    unsigned char *records = paint(stride * (size_t)plan->in.height);
    const gf_strip whole = {
        .in = strip->all, .out = {records, stride, 0, plan->in.height}, .state = state};
    assert_int_equal(before->golden(plan, &whole, NULL), GF_OK);
    if (plan->record)
        assert_int_equal(before->measure->rows(plan, data, &whole.out, NULL), GF_OK);
    assert_int_equal(before->measure->finish(plan, data, state, NULL), GF_OK);
    const gf_status status = strip->filter->refine(strip->plan, plan, data, NULL);
    before->measure->close(data);
    free(records);
    free(state);
    free(plan);
    return !status;
}

static void fill_inputs(test_strip *strip, test_random *random) {
    for (uint32_t i = 0; i < strip->plan->inputs; i++) {
        const gf_strip all = {.in = strip->all};
        test_image image = {.format = strip->plan->in,
                            .rows = gf_strip_input(&all, strip->plan->inputs, i)};
        if (i == 0 || test_below(random, 2) == 0) {
            test_fill(&image, (test_content)test_below(random, TEST_CONTENT_COUNT), random);
            continue;
        }
        for (uint64_t y = 0; y < image.format.height; y++)
            memcpy(gf_row(&image.rows, y), gf_row(&strip->all, y), gf_row_bytes(&image.format));
        test_disturb(&image, random);
    }
}

/* Compute the expected rows: images from all rows, measurements from the strip alone. */
static void make_want(test_strip *strip, gf_rows want_all) {
    const gf_plan *plan = strip->plan;
    const gf_measure *measure = strip->filter->measure;
    if (!measure) {
        assert_int_equal(golden(strip, strip->all, want_all, NULL, NULL), GF_OK);
        return;
    }
    const uint64_t y0 = strip->out.y0;
    if (plan->state_bytes) {
        strip->state_size = (size_t)plan->state_bytes + 2 * TEST_MARGIN;
        strip->state = paint(strip->state_size);
        memset(strip->state + TEST_MARGIN, 0, (size_t)plan->state_bytes);
        gf_rows before = {strip->all.data, strip->all.stride, 0, y0};
        gf_rows out = {want_all.data, want_all.stride, 0, y0};
        /* Golden needs memory for the samples that it extracts here. They are discarded. */
        unsigned char *payload =
            plan->has_payload ? paint(strip->filter->payload->bytes(plan, y0)) : NULL;
        if (y0 > 0)
            assert_int_equal(golden(strip, before, out, strip->state, payload), GF_OK);
        free(payload);
        strip->want_state = paint(strip->state_size);
        memcpy(strip->want_state, strip->state, strip->state_size);
        memset(strip->want, TEST_PAINT, strip->out_size);
    }
    if (plan->has_payload) {
        strip->payload_bytes = strip->filter->payload->bytes(plan, strip->out.rows);
        strip->want_payload = paint(strip->payload_bytes);
    }
    gf_rows out = {gf_row(&want_all, y0), want_all.stride, y0, strip->out.rows};
    assert_int_equal(golden(strip, strip->from, out, strip->want_state, strip->want_payload),
                     GF_OK);
}

bool test_strip_new(test_strip *strip, const gf_filter *filter, const char *text, uint64_t seed,
                    gf_format format, bool whole, size_t row_align) {
    test_random random = {seed};
    for (int i = 0; i < 8; i++)
        test_next(&random);
    *strip = (test_strip){.filter = filter, .text = text, .seed = seed};
    strip->settings = test_settings(filter, text);
    strip->plan = calloc(1, filter->plan_bytes);
    assert_non_null(strip->plan);
    gf_plan *plan = strip->plan;
    plan->in = format;
    plan->inputs = filter->info.inputs;
    if (filter->info.makes_image)
        plan->out = format;
    if (filter->plan(strip->settings, plan, NULL)) {
        test_strip_free(strip);
        return false;
    }
    const size_t sample = gf_type_bytes(format.type);
    const size_t padding = (4 + (size_t)test_below(&random, 60)) / sample * sample;
    const size_t in_stride = plan->inputs * stride_of(gf_row_bytes(&format), row_align, padding);
    const size_t out_align = plan->out.width && row_align ? row_align : plan->record ? 8 : 0;
    const size_t out_stride = stride_of(gf_out_bytes(plan), out_align, padding);
    strip->in_size = 2 * TEST_MARGIN + (size_t)format.height * in_stride;
    strip->out_size = 2 * TEST_MARGIN + (size_t)format.height * out_stride;
    strip->in = paint(strip->in_size);
    strip->want = paint(strip->out_size);
    strip->got = paint(strip->out_size);
    strip->all = (gf_rows){strip->in + TEST_MARGIN, in_stride, 0, format.height};
    fill_inputs(strip, &random);
    if (filter->nodata == GF_NODATA_APART && format.type != GF_F32 && test_below(&random, 3) == 0)
        plan->nodata =
            (gf_nodata){true, gf_get_sample(format.type, strip->all.data,
                                            test_below(&random, gf_row_samples(&format)))};
    if (!learn(strip)) {
        test_strip_free(strip);
        return false;
    }

    uint64_t y0 = whole ? 0 : test_below(&random, format.height);
    uint64_t rows = whole ? format.height : 1 + test_below(&random, format.height - y0);
    uint64_t first = y0 < plan->halo ? 0 : y0 - plan->halo;
    uint64_t last = y0 + rows + plan->halo;
    last = last < format.height ? last : format.height;
    gf_rows got_all = {strip->got + TEST_MARGIN, out_stride, 0, format.height};
    strip->out = (gf_rows){gf_row(&got_all, y0), out_stride, y0, rows};
    strip->from = (gf_rows){gf_row(&strip->all, first), in_stride, first, last - first};
    gf_rows want_all = got_all;
    want_all.data = strip->want + TEST_MARGIN;
    make_want(strip, want_all);
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
    gf_error error = {0};
    gf_plan *plan = malloc(strip->filter->plan_bytes);
    assert_non_null(plan);
    memcpy(plan, strip->plan, strip->filter->plan_bytes);
    if (measure->open(plan, &keep, &data, &error))
        fail_msg("%s", error.message);
    for (uint32_t i = 0; i < pieces; i++)
        if (measure->payload(plan, data, payloads + i * stride, &error))
            fail_msg("%s", error.message);
    /* No rows were counted: an empty state is sufficient. */
    void *state = calloc(1, (size_t)plan->state_bytes + 1);
    assert_non_null(state);
    if (measure->finish(plan, data, state, &error))
        fail_msg("%s", error.message);
    free(state);
    gf_result *result = NULL;
    assert_ok(gf_result_new(strip->filter, plan, data, &result, &error), &error);
    return result;
}

void test_strip_check(const test_strip *strip, const char *backend, const unsigned char *state,
                      const unsigned char *payloads, uint32_t pieces, size_t stride) {
    /* Other rows of `got` must still be paint. In `want`, golden may have computed all rows. */
    const size_t row = gf_out_bytes(strip->plan);
    const unsigned char *got = strip->got + TEST_MARGIN, *want = strip->want + TEST_MARGIN;
    for (uint64_t y = 0; y < strip->plan->in.height; y++) {
        const size_t at = (size_t)y * strip->out.stride;
        const bool inside = y >= strip->out.y0 && y < strip->out.y0 + strip->out.rows;
        if (inside && memcmp(want + at, got + at, row) != 0)
            fail_strip(strip, backend, "a row is wrong");
        if (!test_painted(got + at + (inside ? row : 0), got + at + strip->out.stride))
            fail_strip(strip, backend, "wrote outside the strip's rows");
    }
    if (!test_painted(strip->got, got) ||
        !test_painted(strip->got + strip->out_size - TEST_MARGIN, strip->got + strip->out_size))
        fail_strip(strip, backend, "wrote outside all rows");
    if (strip->state && memcmp(state, strip->want_state, strip->state_size) != 0)
        fail_strip(strip, backend, "the state is wrong");
    if (!strip->want_payload)
        return;
    gf_result *golden_result = absorb(strip, strip->want_payload, 1, 0);
    gf_result *result = absorb(strip, payloads, pieces, stride);
    if (!test_same_result(golden_result, result, backend))
        fail_strip(strip, backend, "the payload is wrong");
    gf_result_free(golden_result);
    gf_result_free(result);
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
    free(strip->plan);
}
