/* convert against values computed by hand, on every backend of this machine; and every SIMD level
 * against golden, for all integers, f32 near all limits, and f32 of all exponents. */
#include <math.h>

#include "backend/backend.h"
#include "convert/convert.h"
#include "measuring.h"

/* Convert one row of any pixels. Return the number of clipped samples. */
static uint64_t run(const char *backend, const char *text, gf_format format, const void *in,
                    void *out) {
    AUTO(settings) gf_settings *settings = test_settings(&gf_convert_filter, text);
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = backend});
    const gf_pixels pixels = {in, gf_row_bytes(&format)};
    gf_format made;
    assert_ok(test_filter_output(&gf_convert_filter, settings, &format, &made));
    /* A writer would store linear light as sRGB. */
    const gf_write_options as_made = {.depth = made.type == GF_F32 ? GF_DEPTH_F32 : GF_DEPTH_INPUT};
    const gf_out_pixels image = {out, gf_row_bytes(&made)};
    const gf_step steps[] = {{.filter = &gf_convert_filter, .settings = settings},
                             {.out = &image, .write = &as_made}};
    gf_outcome outcome = {.results = NULL};
    assert_ok(gf_run(
        engine,
        &(gf_job){
            .steps = steps, .step_count = 2, .memory = GF_HOST, .in = &pixels, .format = format},
        &outcome, NULL));
    return outcome.report.remarks.outside;
}

TEST(converts_types) {
    const uint8_t bytes[] = {0, 1, 255};
    const uint16_t words[] = {128, 129, 65406, 65407}; /* 0.498, 0.502, 254.498 and 254.502 * 257 */
    /* 127.5 is rounded to even; the number below it is 127.49999 / 255. */
    const float reals[] = {0.5f, 0x1.fffffep-2f, -0.0f,           1.0f,
                           2.0f, -0x1p-149f,     (float)INFINITY, (float)NAN};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t u8[8];
        uint16_t u16[8];
        uint32_t f32[3];
        run(*backend, "depth=16", (gf_format){3, 1, 1, GF_U8, false}, bytes, u16);
        assert_memory_equal(u16, ((uint16_t[]){0, 257, 65535}), 6);
        run(*backend, "depth=f32", (gf_format){1, 1, 3, GF_U8, false}, bytes, f32);
        assert_memory_equal(f32, ((uint32_t[]){0, 0x3b808081, 0x3f800000}), 12);
        run(*backend, "depth=8", (gf_format){1, 1, 4, GF_U16, true}, words, u8);
        assert_memory_equal(u8, ((uint8_t[]){0, 1, 254, 255}), 4);
        /* 2, the negative number, the infinity and NaN are clipped; -0 is not. */
        assert_int_equal(run(*backend, "depth=8", (gf_format){4, 1, 2, GF_F32, true}, reals, u8),
                         4);
        assert_memory_equal(u8, ((uint8_t[]){128, 127, 0, 255, 255, 0, 255, 0}), 8);
        run(*backend, "depth=16", (gf_format){8, 1, 1, GF_F32, false}, reals, u16);
        assert_memory_equal(u16, ((uint16_t[]){32768, 32767, 0, 65535, 65535, 0, 65535, 0}), 16);
    }
}

/* Values with 40 digits are in test_srgb.c. Alpha 51 of 255 is not light: fl(0.2). */
TEST(converts_light) {
    const uint8_t codes[] = {11, 51, 128, 255};
    const uint32_t light[] = {0x3b5b518e, 0x3e4ccccd, 0x3e5d0a89, 0x3f800000};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint32_t f32[4];
        uint8_t u8[4];
        run(*backend, "depth=f32 light=decode", (gf_format){2, 1, 2, GF_U8, true}, codes, f32);
        assert_memory_equal(f32, light, sizeof light);
        run(*backend, "depth=8 light=encode", (gf_format){2, 1, 2, GF_F32, true}, light, u8);
        assert_memory_equal(u8, codes, sizeof codes);
    }
}

TEST(multiplies_and_divides) {
    const float colours[] = {0.75f, -3, 0, 0.5f, (float)INFINITY, 1, 2, 0}, /* inf * 0: NaN */
        premultiplied[] = {1, -1, 0.25f, 0.5f, 5, 6, 7, -1}, /* alpha -1 is clamped to 0 */
        divided[] = {2, -2, 0.5f, 0.5f, 0, 0, 0, 0};
    const gf_format data = {2, 1, 4, GF_F32, false}, rgba = {2, 1, 4, GF_F32, true};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint32_t f32[8];
        float real[8];
        uint8_t u8[8];
        run(*backend, "alpha=multiply", rgba, colours, f32);
        assert_memory_equal(
            f32, ((uint32_t[]){0x3ec00000, 0xbfc00000, 0, 0x3f000000, 0x7fc00000, 0, 0, 0}),
            sizeof f32);
        run(*backend, "alpha=divide", data, premultiplied, real);
        assert_memory_equal(real, divided, sizeof real);
        assert_int_equal(run(*backend, "depth=8 alpha=divide", data, premultiplied, u8), 2);
        assert_memory_equal(u8, ((uint8_t[]){255, 0, 128, 128, 0, 0, 0, 0}), 8);
    }
}

TEST(describes_the_output) {
    static const struct {
        const char *text;
        gf_format in;
        int type; /* of the output; -1: rejected */
        bool alpha;
    } cases[] = {{"depth=f32 alpha=multiply", {5, 5, 4, GF_U8, true}, GF_F32, false},
                 {"depth=16 alpha=divide", {5, 5, 2, GF_F32, false}, GF_U16, true},
                 {"depth=16", {5, 5, 2, GF_U8, true}, GF_U16, true},
                 {"alpha=multiply", {5, 5, 4, GF_U8, true}, -1, false},
                 {"depth=f32 alpha=multiply", {5, 5, 4, GF_U8, false}, -1, false},
                 {"alpha=divide", {5, 5, 4, GF_F32, true}, -1, false},
                 {"alpha=divide", {5, 5, 3, GF_F32, false}, -1, false},
                 {"alpha=divide", {5, 5, 2, GF_U8, false}, -1, false},
                 {"light=decode", {5, 5, 1, GF_U8, false}, -1, false},
                 {"light=encode", {5, 5, 1, GF_F32, false}, -1, false},
                 {"depth=8 light=encode", {5, 5, 1, GF_U16, false}, -1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(settings) gf_settings *settings = test_settings(&gf_convert_filter, cases[i].text);
        gf_format out;
        if (cases[i].type < 0) {
            assert_error(test_filter_output(&gf_convert_filter, settings, &cases[i].in, &out),
                         GF_USAGE, "convert: depth=");
            continue;
        }
        assert_ok(test_filter_output(&gf_convert_filter, settings, &cases[i].in, &out));
        assert_true((int)out.type == cases[i].type && out.alpha == cases[i].alpha);
    }
    assert_ptr_equal(gf_filter_find("convert"), gf_filter_convert()); /* for chains: not listed */
    for (size_t i = 0; gf_filter_at(i); i++)
        assert_ptr_not_equal(gf_filter_at(i), gf_filter_convert());
}

/* Compare all levels with golden on n samples, in all cases and with all numbers of channels. */
static void compare(gf_type type, const void *in, uint64_t n) {
    AUTO(free) unsigned char *want = test_alloc(4 * n), *got = test_alloc(4 * n);
    for (uint32_t kind = 0; kind < 6; kind++) {
        const uint32_t channels = kind < 4 ? kind + 1 : 2 * (kind - 3); /* 1 2 3 4 2 4 */
        const gf_format format = {n / channels, 1, channels, type, kind >= 4};
        const char *text;
        for (size_t c = 0; (text = test_case(&gf_convert_filter, c)); c++) {
            AUTO(settings) gf_settings *settings = test_settings(&gf_convert_filter, text);
            uint64_t counts[2] = {0};
            gf_plan *plan;
            if (gf_plan_new(&gf_convert_filter, settings, &format, &plan, NULL))
                continue;
            gf_strip strip = {.in = {{(unsigned char *)(uintptr_t)in, gf_row_bytes(&format), 0, 1}},
                              .out = {want, gf_row_bytes(&plan->out), 0, 1},
                              .state = &counts[0],
                              .constants = plan->constants};
            assert_ok(gf_convert_golden(plan, &strip, NULL));
            strip.out.data = got;
            strip.state = &counts[1];
            for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
                if (!gf_isa_available((gf_isa)isa))
                    continue;
                counts[1] = 0;
                assert_ok(gf_compute_part(plan, &strip, 0, 1, NULL, (gf_isa)isa, NULL));
                if (memcmp(want, got, gf_row_bytes(&plan->out)) != 0 || counts[0] != counts[1])
                    fail_msg("'%s' at level %d differs, %u channels, kind %u", text, isa, channels,
                             kind);
            }
            gf_plan_free(plan);
        }
    }
}

TEST(levels_equal_golden_for_all_integers) {
    uint8_t bytes[256];
    AUTO(free) uint16_t *words = test_alloc(65536 * sizeof *words);
    for (unsigned i = 0; i < 65536; i++)
        words[i] = (uint16_t)(i * 40503u); /* all of them, in another order */
    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (uint8_t)(i * 157u);
    compare(GF_U8, bytes, 256);
    compare(GF_U16, words, 65536);
}

/* Store a number and those next to it. */
static float *put_near(float *to, float v) {
    *to++ = nextafterf(v, -(float)INFINITY);
    *to++ = v;
    *to++ = nextafterf(v, (float)INFINITY);
    return to;
}

/* Each threshold of light, each quotient of an integer, or of a half, and special numbers. */
TEST(levels_equal_golden_near_limits) {
    static const float limits[] = {0.0f, -0.0f, 1.0f, -1.0f, 0x1p-126f, 0x1p-149f, 0x1p127f, 2.0f};
    const uint32_t odd[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f812345, 0xff800001};
    AUTO(free) float *values = test_alloc(2000000 * sizeof *values);
    float *to = values;
    memcpy(to, odd, sizeof odd);
    to += sizeof odd / sizeof *odd;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        to = put_near(to, limits[i]);
    for (gf_type type = GF_U8; type <= GF_U16; type++) {
        const uint32_t max = type == GF_U8 ? 255 : 65535,
                       step = type == GF_U8 ? 1 : (uint32_t)test_stride(7, 3);
        for (uint32_t k = 1; k <= max; k += step) {
            to = put_near(to, gf_srgb_of(type)->thresholds[k]);
            to = put_near(to, (float)(k - 0.5) / (float)max);
            to = put_near(to, (float)k / (float)max);
        }
    }
    compare(GF_F32, values, (uint64_t)(to - values));
}

TEST(levels_equal_golden_for_all_exponents) {
    enum { SAMPLES = 1 << 16 };
    const uint32_t stride = (uint32_t)(61 * test_stride(163, 31));
    AUTO(free) uint32_t *bits = test_alloc(SAMPLES * sizeof *bits);
    for (uint64_t first = 0; first < UINT32_MAX; first += (uint64_t)SAMPLES * stride) {
        for (uint32_t i = 0; i < SAMPLES; i++) /* neighbours are far from each other */
            bits[i] = (uint32_t)(first + (uint64_t)i * stride) * 2654435761u;
        compare(GF_F32, bits, SAMPLES);
    }
}

int main(void) {
    return test_main(NULL);
}
