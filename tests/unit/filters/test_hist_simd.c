#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

/* The loops of hist alone, at every SIMD level: any number of samples, directly before an
 * inaccessible page; all integer values; the maximum count of a counter. */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hist/hist_simd.h"
#include "testing.h"

#define MAX 220 /* samples: more than three batches of any level */

static const gf_hist_simd *const levels[GF_ISA_COUNT] = GF_LEVELS(gf_hist_simd);

static const gf_hist_simd *level(int isa) {
    return gf_isa_available((gf_isa)isa) ? levels[isa] : NULL;
}

/* ---- memory before a guard page -------------------------------------------------------------- */

typedef struct guarded {
    unsigned char *pages, *end;
    size_t size;
} guarded;

static guarded guarded_new(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t capacity = (bytes + page - 1) / page * page;
    guarded w = {.size = capacity + page};
    w.pages = mmap(NULL, w.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(w.pages != MAP_FAILED);
    assert_int_equal(mprotect(w.pages + capacity, page, PROT_NONE), 0);
    w.end = w.pages + capacity;
    memset(w.pages, TEST_PAINT, capacity);
    return w;
}

static void guarded_free(guarded *w) {
    munmap(w->pages, w->size);
}

/* ---- samples --------------------------------------------------------------------------------- */

static double sample_at(gf_type type, const void *values, size_t i) {
    return type == GF_U8    ? ((const uint8_t *)values)[i]
           : type == GF_U16 ? ((const uint16_t *)values)[i]
                            : (double)((const float *)values)[i];
}

static void put_sample(gf_type type, void *values, size_t i, double x) {
    if (type == GF_U8)
        ((uint8_t *)values)[i] = (uint8_t)x;
    else if (type == GF_U16)
        ((uint16_t *)values)[i] = (uint16_t)x;
    else
        ((float *)values)[i] = (float)x;
}

/* Write random samples of few values, to hit bin edges. f32 includes NaN and infinities. */
static void put_random(gf_type type, void *values, size_t n, test_random *random) {
    static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0, 1e-40, -3e38, 3e38};
    const double top = type == GF_U8 ? 255 : 65535;
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = test_below(random, 40);
        double x = r == 0 ? top : r == 1 ? top - 1 : (double)test_below(random, 12);
        if (type == GF_F32)
            x = r < 8 ? special[r] : x / 8 - 0.25;
        put_sample(type, values, i, x);
    }
}

/* ---- bins ------------------------------------------------------------------------------------ */

TEST(every_integer_has_its_bin) {
    static const uint32_t counts[] = {1,    2,    3,     7,     254,   255,   256,   257,  1000,
                                      4095, 4096, 20000, 32767, 32768, 65534, 65535, 65536};
    static uint16_t u16[65536];
    static uint8_t u8[256];
    static uint32_t got[65536];
    for (uint32_t v = 0; v < 65536; v++)
        u8[v % 256] = (uint8_t)(u16[v] = (uint16_t)v);
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        for (size_t c = 0; level(isa) && c < sizeof counts / sizeof counts[0]; c++)
            for (int type = GF_U8; type <= GF_U16; type++) {
                const uint64_t top = type == GF_U8 ? 255 : 65535;
                gf_hist_plan plan = {.head.in.type = (gf_type)type, .bins = counts[c]};
                level(isa)->bins(&plan, type == GF_U8 ? (const void *)u8 : u16, top + 1, got);
                for (uint64_t v = 0; v <= top; v++)
                    if (got[v] != (v < top ? v * counts[c] / top : counts[c] - 1))
                        fail_msg("%s: value %d of %d bins is in bin %u",
                                 gf_names(GF_NAMES_SIMD)[1 + isa], (int)v, (int)counts[c], got[v]);
            }
}

static uint32_t bin_of(const gf_hist_plan *plan, double x) {
    if (plan->head.in.type != GF_F32 && !plan->ranged)
        x /= plan->head.in.type == GF_U8 ? 255 : 65535;
    if (isnan(x))
        return plan->bins;
    if (plan->outside && x < plan->lo)
        return plan->bins + 1;
    if (plan->outside && x > plan->hi)
        return plan->bins + 2;
    x = plan->ranged ? (x - plan->lo) * plan->bins / (plan->hi - plan->lo) : x * plan->bins;
    return x >= plan->bins ? plan->bins - 1 : x > 0 ? (uint32_t)x : 0;
}

/* Compare golden and one level with exact arithmetic, for all values of an integer type. */
static void range_is_exact(gf_type type, const void *values, int64_t lo, int64_t hi,
                           uint32_t count) {
    static uint32_t got[65536];
    static uint64_t counts[65536 + 3], want[65536 + 3];
    const int64_t max = type == GF_U8 ? 255 : 65535;
    gf_hist_plan plan = {.head.in = {(uint64_t)max + 1, 1, 1, type, false},
                         .bins = count,
                         .counters = count + 3,
                         .measured = 1,
                         .ranged = true,
                         .outside = true,
                         .lo = (double)lo,
                         .hi = (double)hi};
    const gf_strip strip = {
        .in = {{(unsigned char *)values, 0, 0, 1}}, .out = {.rows = 1}, .state = counts};
    memset(counts, 0, plan.counters * sizeof *counts);
    memset(want, 0, plan.counters * sizeof *want);
    assert_ok(gf_hist_golden(&plan.head, &strip, NULL));
    for (int64_t v = 0; v <= max; v++) {
        const int64_t bin = (v - lo) * count / (hi - lo);
        want[v < lo ? count + 1 : v > hi ? count + 2 : v == hi ? count - 1 : bin]++;
    }
    assert_memory_equal(counts, want, plan.counters * sizeof *want);
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!level(isa))
            continue;
        level(isa)->bins(&plan, values, (size_t)max + 1, got);
        for (int64_t v = max; v >= 0; v--) {
            const int64_t bin = (v - lo) * count / (hi - lo);
            if (v >= lo && v < hi && got[v] != bin)
                fail_msg("%s: value %d of %d..%d is in bin %u of %u, not %d",
                         gf_names(GF_NAMES_SIMD)[1 + isa], (int)v, (int)lo, (int)hi, got[v], count,
                         (int)bin);
        }
    }
}

/* With integer edges every operation but the division is exact, and its floor, too. All ranges of
 * u8 and many of u16: with one bin per value, and with as many bins as make edges between values.
 */
TEST(integer_ranges_are_exact) {
    static uint16_t u16[65536];
    static uint8_t u8[256];
    for (uint32_t v = 0; v < 65536; v++)
        u8[v % 256] = (uint8_t)(u16[v] = (uint16_t)v);
    for (int lo = -1; lo < 256; lo++)
        for (int hi = lo + 1; hi <= 256; hi++) {
            range_is_exact(GF_U8, u8, lo, hi, (uint32_t)(hi - lo));
            range_is_exact(GF_U8, u8, lo, hi, (uint32_t)(lo * 7 + hi) % 400 + 1);
        }
    test_random random = {76};
    for (int i = 0; i < 60; i++) {
        const int lo = (int)test_below(&random, 70000) - 1000;
        const int hi = lo + 1 + (int)test_below(&random, i % 2 ? 400 : 66000);
        range_is_exact(GF_U16, u16, lo, hi, hi - lo <= 65536 ? (uint32_t)(hi - lo) : 65536);
        range_is_exact(GF_U16, u16, lo, hi, 1 + (uint32_t)test_below(&random, 65536));
    }
}

/* Compute the bins of any number of samples. The loops access nothing before or after them. */
TEST(bins_end_with_the_samples) {
    test_random random = {77};
    guarded in = guarded_new(MAX * sizeof(float)), out = guarded_new(MAX * sizeof(uint32_t));
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        for (int type = GF_U8; level(isa) && type <= GF_F32; type++)
            for (size_t n = 0; n <= MAX; n++) {
                gf_hist_plan plan = {.head.in.type = (gf_type)type,
                                     .bins = n % 5 ? 4 : 65536,
                                     .ranged = n % 2,
                                     .outside = n % 2 || type == GF_F32,
                                     .lo = n % 2 ? -0.25 : 0,
                                     .hi = n % 2 ? 7.75 : 1};
                unsigned char *values = in.end - n * gf_type_bytes((gf_type)type);
                uint32_t *bins = (uint32_t *)(void *)out.end - n;
                put_random((gf_type)type, values, n, &random);
                memset(out.pages, TEST_PAINT, (size_t)(out.end - out.pages));
                level(isa)->bins(&plan, values, n, bins);
                assert_true(test_painted(out.pages, (unsigned char *)bins));
                for (size_t i = 0; i < n; i++)
                    assert_int_equal(bins[i], bin_of(&plan, sample_at((gf_type)type, values, i)));
            }
    guarded_free(&in);
    guarded_free(&out);
}

/* ---- measured samples ------------------------------------------------------------------------ */

/* Gather the measured values of n pixels at the end of the page. */
static void gather(int isa, uint32_t channels, size_t n, const guarded *in, const guarded *out,
                   test_random *random) {
    gf_hist_plan plan = {.head.in = {.channels = channels, .type = GF_U8},
                         .luma = channels >= 3 && n % 3 > 0,
                         .measured = 1};
    plan.first = plan.luma ? 0 : (uint32_t)(n % channels);
    uint8_t *pixels = in->end - n * channels, *values = out->end - n;
    for (size_t i = 0; i < n * channels; i++)
        pixels[i] = (uint8_t)(test_below(random, 3) ? test_next(random) >> 40 : 255);
    memset(out->pages, TEST_PAINT, (size_t)(out->end - out->pages));
    level(isa)->gather(&plan, pixels, n, values);
    assert_true(test_painted(out->pages, values));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = pixels + i * channels;
        assert_int_equal(values[i],
                         plan.luma ? (13933u * p[0] + 46871u * p[1] + 4732u * p[2] + 32768u) >> 16
                                   : p[plan.first]);
    }
}

TEST(gathering_ends_with_the_pixels) {
    test_random random = {78};
    guarded in = guarded_new(MAX * 4), out = guarded_new(MAX * 4);
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        for (uint32_t channels = 1; level(isa) && channels <= 4; channels++)
            for (size_t n = 0; n <= MAX; n++)
                gather(isa, channels, n, &in, &out, &random);
    guarded_free(&in);
    guarded_free(&out);
}

/* ---- above ----------------------------------------------------------------------------------- */

static void above(int isa, gf_type type, size_t n, uint32_t count, const void *values,
                  test_random *random) {
    const size_t period = gf_hist_period(type), lanes = count * period;
    float edges[64];
    for (uint32_t e = 0; e < count; e++)
        put_sample(type, edges, e, (double)test_below(random, 12) / (type == GF_F32 ? 8 : 1));
    guarded out = guarded_new(lanes * sizeof(uint32_t));
    uint32_t *got = (uint32_t *)(void *)out.end - lanes;
    AUTO(free) uint32_t *want = test_alloc(lanes * sizeof *want + 1);
    for (size_t j = 0; j < lanes; j++)
        want[j] = got[j] = (uint32_t)j; /* the counters are incremented, not cleared */
    level(isa)->above[type](values, n, edges, count, got);
    for (uint32_t e = 0; e < count; e++)
        for (size_t i = 0; i < n; i++)
            want[e * period + i % period] +=
                sample_at(type, values, i) >= sample_at(type, edges, e);
    assert_memory_equal(got, want, lanes * sizeof *want);
    guarded_free(&out);
}

TEST(counts_above_edges) {
    test_random random = {79};
    guarded in = guarded_new(1000 * sizeof(float));
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        for (int type = GF_U8; level(isa) && type <= GF_F32; type++) {
            for (uint32_t count = 0; count <= 33; count++) {
                const size_t n = (size_t)test_below(&random, 1000);
                unsigned char *values = in.end - n * gf_type_bytes((gf_type)type);
                put_random((gf_type)type, values, n, &random);
                above(isa, (gf_type)type, n, count, values, &random);
            }
            /* A single sample outside of 0..1, at any position. */
            for (size_t n = 0; n < 100 && type == GF_F32; n++) {
                float *v = (float *)(void *)in.end - n;
                for (size_t i = 0; i < n; i++)
                    v[i] = i % 2 ? 1 : 1e-45f;
                assert_true(level(isa)->inside(v, n));
                for (size_t i = 0; i < n; i++) {
                    v[i] = i % 4 == 0   ? NAN
                           : i % 4 == 1 ? -1e-45f
                           : i % 4 == 2 ? -0.0f
                                        : 1.0000001f;
                    assert_false(level(isa)->inside(v, n));
                    v[i] = 0.5f;
                }
            }
            /* The maximum number of samples, with every sample counted in every lane. */
            guarded all = guarded_new(GF_HIST_ABOVE_MAX * gf_type_bytes((gf_type)type));
            unsigned char *values = all.end - GF_HIST_ABOVE_MAX * gf_type_bytes((gf_type)type);
            for (size_t i = 0; i < GF_HIST_ABOVE_MAX; i++)
                put_sample((gf_type)type, values, i, 200);
            above(isa, (gf_type)type, GF_HIST_ABOVE_MAX, 3, values, &random);
            guarded_free(&all);
        }
    guarded_free(&in);
}

/* ---- select ---------------------------------------------------------------------------------- */

TEST(selects_samples_in_range) {
    test_random random = {80};
    guarded in = guarded_new(MAX * sizeof(float)), out = guarded_new(MAX * sizeof(float)),
            position_pages = guarded_new(MAX * sizeof(uint64_t));
    for (int isa = 0; isa < GF_ISA_COUNT; isa++)
        for (int type = GF_U8; level(isa) && type <= GF_F32; type++)
            for (size_t n = 0; n <= MAX; n++) {
                const size_t bytes = gf_type_bytes((gf_type)type);
                const uint64_t position = UINT64_C(0xfffffffe) + n; /* exceeds 32 bits */
                unsigned char *values = in.end - n * bytes, *selected = out.end - n * bytes;
                uint64_t *positions = (uint64_t *)(void *)position_pages.end - n;
                float range[2];
                const double lo = n % 7 ? (double)test_below(&random, 6) : 0;
                const double hi = n % 5 ? lo + (double)test_below(&random, 6) : 255;
                put_sample((gf_type)type, range, 0, lo);
                put_sample((gf_type)type, range, 1, hi);
                put_random((gf_type)type, values, n, &random);
                const gf_hist_selection selection = {range, position, positions, selected};
                const size_t many = level(isa)->select((gf_type)type, values, n, &selection);
                size_t k = 0;
                for (size_t i = 0; i < n; i++) {
                    const double x = sample_at((gf_type)type, values, i);
                    if (!(x >= lo && x <= hi))
                        continue;
                    assert_true(k < many);
                    assert_memory_equal(selected + k * bytes, values + i * bytes, bytes);
                    assert_true(positions[k++] == position + i);
                }
                assert_int_equal(k, many);
            }
    guarded_free(&in);
    guarded_free(&out);
    guarded_free(&position_pages);
}

int main(void) {
    return test_main(NULL);
}
