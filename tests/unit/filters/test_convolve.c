/* convolve: kernels from files and lists, against values computed by hand, and the exact rounding
 * of integer kernels at every SIMD level. */
#include <math.h>

#include "convolve/convolve.h"
#include "io_util.h"
#include "measuring.h"

/* Write a kernel file, and return the case that names it. */
static const char *kernel_case(const char *content) {
    static char text[2048];
    const char *path = in_directory("kernel.mat");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0 && fclose(file) == 0);
    snprintf(text, sizeof text, "kernel=%s", path);
    return text;
}

static gf_format grey(uint64_t width, uint64_t height, gf_type type) {
    return (gf_format){width, height, 1, type, false};
}

/* Run a case on a row of u8 on every backend. */
static void check_row(const char *text, const uint8_t *in, const uint8_t *want, size_t n) {
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[16];
        test_measure(*backend, "convolve", text, grey(n, 1, GF_U8), in, NULL, out);
        assert_memory_equal(out, want, n);
    }
}

/* The first element is left above the pixel: the kernel is not turned. */
TEST(correlates) {
    const uint8_t in[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[9];
        test_measure(*backend, "convolve", "kernel=100,0,0,0,0,0,0,0,1 edge=constant:0",
                     grey(3, 3, GF_U8), in, NULL, out);
        assert_memory_equal(out, ((uint8_t[]){5, 6, 0, 8, 109, 200, 0, 255, 255}), 9);
    }
}

/* Halves go to the even neighbour, also below 0 and with a negative scale; then clamp. */
TEST(rounds_half_to_even) {
    const uint8_t in[] = {1, 2, 3, 4, 5, 250};
    check_row(kernel_case("1 1 2\n1\n"), in, (uint8_t[]){0, 1, 2, 2, 2, 125}, 6);
    check_row(kernel_case("1 1 -2\n-1\n"), in, (uint8_t[]){0, 1, 2, 2, 2, 125}, 6);
    check_row(kernel_case("1 1 4 0\n2"), in, (uint8_t[]){0, 1, 2, 2, 2, 125}, 6);
    /* 10 - v / 2: 9.5, 9, 8.5, 8, 7.5, -115 */
    check_row(kernel_case("1 1 2 10\n-1\n"), in, (uint8_t[]){10, 9, 8, 8, 8, 0}, 6);
    check_row(kernel_case("1 1 1 250\n1\n"), in, (uint8_t[]){251, 252, 253, 254, 255, 255}, 6);
    check_row(kernel_case("1 1 6\n1\n"), in, (uint8_t[]){0, 0, 0, 1, 1, 42}, 6); /* 3/6: 0 */
}

/* The anchor of an even size is right of the middle: (w / 2, h / 2). */
TEST(even_sizes_have_their_anchor_right) {
    const uint8_t in[] = {1, 2, 3, 4, 5, 6};
    check_row(kernel_case("2 1\n1 0\n"), in, (uint8_t[]){2, 1, 2, 3, 4, 5}, 6);
    check_row(kernel_case("4 1\n1 0 0 0\n"), in, (uint8_t[]){3, 2, 1, 2, 3, 4}, 6);
    const uint8_t down[] = {5, 3, 5, 3}; /* 1 x 2 pixels of two rows: mirror[-1] is row 1 */
    for (const char *const *backend = test_backends(); *backend; backend++) {
        uint8_t out[4];
        test_measure(*backend, "convolve", kernel_case("1 4\n1\n0\n0\n0\n"), grey(1, 4, GF_U8),
                     down, NULL, out);
        assert_memory_equal(out, ((uint8_t[]){5, 3, 5, 3}), 4);
    }
}

/* All separators, empty header fields, signs, exponents, and lines that end with CR or nothing. */
TEST(reads_the_format_of_vips) {
    const uint8_t in[] = {10, 20, 30};
    check_row(kernel_case("3 1\n0 1 0\n"), in, in, 3);
    check_row(kernel_case("3, 1;1\t0\r\n\"0\" ,+1e0; -0.0\r\n\r\n"), in, in, 3);
    check_row(kernel_case("3 1 2.5 0.25\n 0,2.5 0"), in, in, 3); /* 10.25 rounds to 10 */
    check_row("kernel=0,0,0,0,1,0,0,0,0", in, in, 3);
    check_row("kernel=1,", in, in, 3);
    check_row("kernel=0;0\t0\n0,,\"1\",0\r0,0,0,", in, in, 3);
}

static void check_error(const char *text, gf_status status, const char *part) {
    const uint8_t in[3] = {0};
    assert_int_equal(test_measure_error("convolve", text, grey(3, 1, GF_U8), in, UINT64_MAX),
                     status);
    assert_message(&why, part);
}

TEST(rejects_damaged_kernels) {
    static const char *const files[][2] = {
        {"", "the first line must be WIDTH HEIGHT [SCALE [OFFSET]]"},
        {"3\n1 2 3\n", "the first line"},
        {"16 1\n1\n", "from 1 to 15"},
        {"0 1\n1\n", "from 1 to 15"},
        {"1.5 1\n1\n", "from 1 to 15"},
        {"1 1 0\n1\n", "a scale other than 0"},
        {"1 1 1e-50\n1\n", "a scale other than 0"},
        {"1 1 1 0 5\n1\n", "more than 4 numbers"},
        {"2 2\n1 2\n3\n", "row 2 of the kernel has 1 numbers instead of 2"},
        {"2 2\n1 2\n", "row 2 of the kernel has 0 numbers instead of 2"},
        {"2 1\n1 2 3\n", "more than 2 numbers"},
        {"2 1\n1 2\n3 4\n", "text after row 1"},
        {"2 1\n1 nan\n", "'nan' is not a finite decimal number"},
        {"2 1\n1 0x2\n", "'0x2' is not"},
        {"2 1\n1 1e39\n", "'1e39' is not"},
        {"2 1\n1 2e\n", "'2e' is not"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        check_error(kernel_case(files[i][0]), GF_FAILED, files[i][1]);
        assert_message(&why, "kernel.mat: ");
    }
    char large[20000] = "1 1\n";
    memset(large + 4, ' ', sizeof large - 5);
    check_error(kernel_case(large), GF_FAILED, "at most 16384 bytes");
    check_error("kernel=/none/kernel.mat", GF_FAILED, "/none/kernel.mat: cannot read the kernel");
    check_error("kernel=/", GF_FAILED, "/: cannot read the kernel: Is a directory");
    check_error("", GF_USAGE, "--kernel: name a file, or list the numbers");
    check_error("kernel=1,2", GF_USAGE, "a list of 2 numbers");
    check_error("kernel=1,2,3,4", GF_USAGE, "a list of 4 numbers");
    check_error("kernel=,", GF_USAGE, "a list of 0 numbers");
    check_error("kernel=1,x", GF_USAGE, "'x' is not a finite decimal number; a kernel with");
}

/* b * b rounds to 1 + 2^-11, 2^-24 below the product: only a sum by fma keeps the difference, and
 * only if b * b is not the first product. The NaN is below an element that is 0. */
TEST(reals_are_summed_by_fma_in_order) {
    const float b = 1 + 0x1p-12f, square = 1 + 0x1p-11f, in[] = {square, b, NAN},
                turned[] = {b, square, NAN};
    static char text[2][2048];
    strcpy(text[0], "kernel=0,0,0,-1,1.000244140625,0,0,0,0");
    strcpy(text[1], "kernel=0,0,0,1.000244140625,-1,0,0,0,0");
    for (const char *const *backend = test_backends(); *backend; backend++) {
        float out[3];
        test_measure(*backend, "convolve", text[0], grey(3, 1, GF_F32), in, NULL, out);
        assert_true(out[1] == 0x1p-24f);
        test_measure(*backend, "convolve", text[1], grey(3, 1, GF_F32), turned, NULL, out);
        assert_true(out[1] == 0);
    }
}

TEST(reals_are_divided_then_shifted) {
    const float in[] = {1, 0.7f, -5};
    const float scale = 3, offset = 0.1f;
    for (const char *const *backend = test_backends(); *backend; backend++) {
        float out[3];
        test_measure(*backend, "convolve", kernel_case("1 1 3 0.1\n1\n"), grey(3, 1, GF_F32), in,
                     NULL, out);
        for (int i = 0; i < 3; i++) {
            const float quotient = in[i] / scale, want = quotient + offset;
            assert_true(out[i] == want);
        }
        /* 0 / -1 is -0, and without elements infinities have no effect. */
        test_measure(*backend, "convolve", kernel_case("1 1 -1\n0\n"), grey(3, 1, GF_F32),
                     (float[]){1, INFINITY, NAN}, NULL, out);
        for (int i = 0; i < 3; i++)
            assert_true(out[i] == 0 && signbit(out[i]));
    }
}

/* ---- exact integers -------------------------------------------------------------------------- */

static int64_t exact(int64_t n, int64_t scale) {
    int64_t q = n / scale; /* towards 0 */
    const int64_t rest = llabs(n % scale), half = llabs(scale) - rest;
    if (rest > half || (rest == half && q % 2 != 0))
        q += (n < 0) == (scale < 0) ? 1 : -1;
    return q;
}

/* Compare all values of a type, for a kernel of one element, with exact integers: on CUDA
 * (level -2), golden (-1) and at all SIMD levels. */
static void check_exact(gf_type type, int64_t k, int64_t scale, int64_t offset,
                        gf_convolve_form form) {
    static uint16_t in[65536], out[65536];
    char content[128];
    snprintf(content, sizeof content, "1 1 %" PRId64 " %" PRId64 "\n%" PRId64, scale, offset, k);
    const uint32_t max = type == GF_U8 ? 255 : 65535;
    const gf_filter *filter = gf_filter_find("convolve");
    const gf_format format = grey(max + 1, 1, type);
    const char *text = kernel_case(content);
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    gf_plan *plan;
    assert_ok(gf_plan_new(filter, settings, &format, &plan, &why));
    assert_int_equal(((gf_convolve_plan *)plan)->form, form);
    AUTO(free) void *scratch = aligned_alloc(64, (gf_cpu_scratch_bytes(plan) + 63) & ~(size_t)63);
    for (uint32_t v = 0; v <= max; v++)
        if (type == GF_U8)
            ((uint8_t *)in)[v] = (uint8_t)v;
        else
            in[v] = (uint16_t)v;
    const gf_rows from = {(unsigned char *)in, sizeof in, 0, 1},
                  to = {(unsigned char *)out, sizeof out, 0, 1};
    const gf_strip strip = {.in = {from}, .out = to};
    for (int level = -2; level < GF_ISA_COUNT; level++) {
        if (level == -2 ? !test_has_cuda() : level >= 0 && !gf_isa_available((gf_isa)level))
            continue;
        if (level == -2)
            test_measure("cuda", "convolve", text, format, in, NULL, out);
        else if (level == -1)
            assert_ok(filter->golden(plan, &strip, &why));
        else
            filter->cpu.run[level](plan, &strip, 0, 1, scratch);
        for (uint32_t v = 0; v <= max; v++) {
            const int64_t q = exact(k * v + offset * scale, scale),
                          got = type == GF_U8 ? ((uint8_t *)out)[v] : out[v];
            if (got != (q < 0 ? 0 : q < max ? q : max))
                fail_msg("level %d: %s, value %u: got %" PRId64 ", quotient %" PRId64, level,
                         content, v, got, q);
        }
    }
    gf_plan_free(plan);
}

/* Find kernels whose largest value, N = k * max, is as near to a midpoint of two integers as the
 * scale allows: 2 N = (2 m + 1) scale + 1 or - 1. */
static void check_near_ties(gf_type type, int64_t k_limit, gf_convolve_form form) {
    const int64_t max = type == GF_U8 ? 255 : 65535;
    test_random random = test_seeded(1);
    for (uint64_t round = test_rounds(60); round > 0; round--) {
        const int64_t k = 1 + (int64_t)test_below(&random, (uint64_t)k_limit);
        for (int64_t odd = 1 + 2 * (int64_t)test_below(&random, (uint64_t)max), tries = 0;
             tries < 500; tries++, odd = (odd + 2) % (2 * max)) {
            const int64_t twice = 2 * k * max + (tries % 2 ? 1 : -1), scale = twice / odd;
            if (twice % odd != 0 || scale < 1 ||
                scale > (form == GF_CONVOLVE_SINGLE ? (1 << 23) - 1 : INT32_MAX))
                continue;
            check_exact(type, k, scale, 0, form);
            check_exact(type, -k, -scale, 0, form);
            break;
        }
    }
}

TEST(near_ties_are_exact) {
    check_near_ties(GF_U8, 127, GF_CONVOLVE_SINGLE);   /* one byte: convolve_bytes of CUDA */
    check_near_ties(GF_U8, 32895, GF_CONVOLVE_SINGLE); /* 2^23 / 255 */
    check_near_ties(GF_U16, 127, GF_CONVOLVE_SINGLE);
    check_near_ties(GF_U16, INT32_MAX - 129, GF_CONVOLVE_DOUBLE);
}

/* Ties, scales with factors of 2, offsets, and the largest numbers of all. */
TEST(integers_are_exact) {
    const int64_t most = INT32_MAX;
    for (int64_t scale = -40; scale <= 40; scale++)
        if (scale) {
            check_exact(GF_U8, 7, scale, 3, GF_CONVOLVE_SINGLE);
            check_exact(GF_U8, -93, scale * 8, 100, GF_CONVOLVE_SINGLE);
        }
    check_exact(GF_U8, 32767, (1 << 23) - 1, 0, GF_CONVOLVE_SINGLE);
    check_exact(GF_U8, 32767, 1 << 23, 0, GF_CONVOLVE_DOUBLE);
    check_exact(GF_U8, 32896, 12345, 0, GF_CONVOLVE_SINGLE); /* 2^23 - 128 */
    check_exact(GF_U8, 32897, 12345, 0, GF_CONVOLVE_DOUBLE);
    check_exact(GF_U8, most, most, 0, GF_CONVOLVE_DOUBLE);
    check_exact(GF_U16, most, 2, -1, GF_CONVOLVE_DOUBLE);
    check_exact(GF_U16, most, -most, most, GF_CONVOLVE_WIDE);
    check_exact(GF_U16, -most, most, -most, GF_CONVOLVE_WIDE);
    check_exact(GF_U16, most, most, 1 << 21, GF_CONVOLVE_WIDE);
}

int main(void) {
    return test_main_in_directory();
}
