/* Counters of limited capacity in the CPU loops. Images of the largest sample value are so wide or
 * high that every counter is flushed midway. Every SIMD level is compared with golden. */

#include "testing.h"

typedef struct limit {
    const char *filter, *text;
    gf_format format;
} limit;

static const limit limits[] = {
    /* Rows: counters hold 257 periods of 192 bytes, or 65536 of u16; widths include a remainder. */
    {"axis-sum", "", {257 * 192 * 2 + 191, 2, 1, GF_U8, false}},
    {"axis-sum", "", {257 * 64 + 1, 2, 3, GF_U8, false}},
    {"axis-sum", "", {65537 * 96 + 95, 1, 1, GF_U16, false}},
    {"axis-sum", "", {65537 * 24 + 1, 1, 4, GF_U16, true}},
    /* Columns: counters hold 257 rows of u8, or 65537 of u16. */
    {"axis-sum", "axis=y", {70, 2 * 257 + 5, 3, GF_U8, false}},
    {"axis-sum", "axis=y", {131, 258, 1, GF_U8, false}},
    {"axis-sum", "axis=y", {33, 65537 + 2, 1, GF_U16, false}},
    /* Products: 16384 vectors, close to the limit of 32 bits. */
    {"dot", "", {17000 * 64 + 63, 1, 1, GF_U8, false}},
    {"dot", "", {17000 * 16 + 17, 1, 3, GF_U8, false}},
    {"dot", "", {17000 * 16 + 17, 1, 4, GF_U8, false}},
    {"dot", "", {17000 * 32 + 17, 1, 2, GF_U8, false}},
    /* Rows processed in pieces; the last piece is partial. */
    {"hist", "bins=8 channel=all", {50003, 3, 3, GF_U8, false}},
    {"hist", "bins=8", {50003, 3, 4, GF_U8, true}},
    {"hist", "bins=8 channel=all", {50003, 3, 2, GF_U16, true}},
    {"hist", "bins=8", {50003, 3, 1, GF_F32, false}},
    {"hist", "channel=all", {50003, 3, 4, GF_U8, true}},
    {"hist", "bins=1000 channel=all", {50003, 3, 3, GF_U16, false}},
    {"hist", "bins=65535", {50003, 3, 1, GF_U16, false}},
    {"hist", "bins=8 extract=7", {50003, 3, 1, GF_U8, false}},
    {"hist", "bins=8 extract=6,7", {50003, 3, 1, GF_U16, false}},
    {"hist", "bins=8 extract=all channel=all", {50003, 1, 3, GF_U8, false}},
};

static gf_result *run(const limit *l, const test_image *in, const gf_engine_options *options) {
    const gf_filter *filter = gf_filter_find(l->filter);
    AUTO(settings) gf_settings *settings = test_settings(filter, l->text);
    const gf_pixels pixels[2] = {{in->rows.data, in->stride}, {in->rows.data, in->stride}};
    AUTO(engine) gf_engine *engine = NULL;
    gf_result *result = NULL;
    assert_ok(gf_engine_open(options, &engine, &why));
    assert_ok(test_run_memory(
        &(test_memory){engine, filter, settings, &l->format, pixels, .result = &result}));
    return result;
}

static void check(const limit *l, const test_image *in) {
    AUTO(result) gf_result *want = run(l, in, &(gf_engine_options){.backend = "golden"});
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        const gf_engine_options options = {.backend = "cpu",
                                           .threads = 1,
                                           .simd = gf_names(GF_NAMES_SIMD)[1 + isa],
                                           .rows_per_strip = l->format.height};
        AUTO(result) gf_result *got = run(l, in, &options);
        char what[256];
        snprintf(what, sizeof what, "%s '%s' on %s, %" PRIu64 "x%" PRIu64 "x%u %s", l->filter,
                 l->text, options.simd, l->format.width, l->format.height, l->format.channels,
                 gf_type_name(l->format.type));
        if (!test_same_result(want, got, what))
            fail_msg("%s", "cpu differs from golden");
    }
}

/* Use images of the largest value, then random images. */
TEST(counters_do_not_overflow) {
    test_random random = {test_environment("GF_TEST_SEED", 1)};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        AUTO(image) test_image in = test_image_new(limits[i].format, 0);
        for (uint64_t y = 0; y < in.format.height; y++) {
            unsigned char *row = gf_row(&in.rows, y);
            memset(row, 0xff, gf_row_bytes(&in.format));
            for (uint64_t x = 0; in.format.type == GF_F32 && x < gf_row_samples(&in.format); x++)
                ((float *)(void *)row)[x] = 1;
        }
        check(&limits[i], &in);
        test_fill(&in, TEST_UNIFORM, &random);
        check(&limits[i], &in);
    }
}

int main(void) {
    return test_main(NULL);
}
