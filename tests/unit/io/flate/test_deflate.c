/* Deflate encoder: zlib decodes every block, and the encoder finds the repetitions. */

#include <zlib.h>

#include "io/flate/deflate.h"
#include "testing.h"

/* ---- blocks ---------------------------------------------------------------------------------- */

enum { CONTENTS = 8 };

static void fill(unsigned char *p, size_t n, int content, test_random *random) {
    for (size_t i = 0; i < n; i++)
        switch (content) {
        case 0: /* noise */
            p[i] = (unsigned char)test_next(random);
            break;
        case 1: /* residuals: few values, mostly small */
            p[i] = (unsigned char)(__builtin_popcountll(test_next(random)) - 32);
            break;
        case 2: /* runs of every length around the limits */
            p[i] = i && test_below(random, 12) ? p[i - 1] : (unsigned char)test_next(random);
            break;
        case 3: /* long runs */
            p[i] = i && test_below(random, 900) ? p[i - 1] : (unsigned char)test_below(random, 3);
            break;
        case 4: /* copies of earlier bytes */
            p[i] = i > 40 && test_below(random, 30) ? p[i - 37] : (unsigned char)test_next(random);
            break;
        case 5: /* copies at the maximum distance */
            p[i] = i > 32768 ? p[i - 32768] : (unsigned char)test_below(random, 200);
            break;
        case 6: /* noise with occasional short runs */
            p[i] = i % 97 > 72 + i / 97 % 9 ? p[i - 1] : (unsigned char)test_next(random);
            break;
        default:
            p[i] = 0;
        }
}

static bool has(gf_isa isa) {
    return isa == GF_ISA_PORTABLE || gf_isa_available(isa);
}

static gf_deflate_plan *plan;
static gf_deflate_hash *seen;

static int open_plan(void **state) {
    plan = malloc(sizeof *plan);
    seen = malloc(sizeof *seen);
    return !plan || !seen;
}

static int close_plan(void **state) {
    free(plan);
    free(seen);
    return 0;
}

/* Count the literals of a plan one by one. */
static void check_counts(const unsigned char *src) {
    uint32_t literals[256] = {0};
    for (uint32_t t = 0; t < plan->tokens; t++) {
        for (uint32_t i = 0; i < plan->token[t].literals; i++)
            literals[*src++]++;
        src += plan->token[t].length;
    }
    assert_memory_equal(literals, plan->counts.literal, sizeof literals);
}

/* Write one block between margins and check its size in bits. Return its size in bytes. */
static size_t write_block(gf_isa isa, bool matches, const unsigned char *src, size_t n, int last,
                          unsigned char *out) {
    const gf_deflate_simd *simd = gf_deflate_simd_of(isa);
    const size_t bound = gf_deflate_bound(n);
    memset(out, TEST_PAINT, bound + TEST_MARGIN);
    if (matches)
        gf_deflate_plan_matches(src, n, 3, 37, seen, plan);
    else
        gf_deflate_plan_runs(simd, src, n, plan);
    check_counts(src);
    gf_bit_writer to = {.at = out};
    gf_deflate_write(simd, plan, src, n, last, &to);
    const uint64_t bits = 8 * (uint64_t)(to.at - out) + to.used;
    const uint64_t stored = 8 * (n + 5 * (n / 65535 + 1));
    if ((out[0] >> 1 & 3) == 0) {
        assert_true(plan->bits >= stored);
        assert_true(bits <= stored);
    } else {
        assert_true(plan->bits < stored);
        assert_int_equal(bits, plan->bits);
    }
    if (last)
        gf_align_bits(&to);
    else
        gf_deflate_sync(&to);
    assert_true((size_t)(to.at - out) <= bound);
    assert_true(test_painted(out + bound, out + bound + TEST_MARGIN));
    return (size_t)(to.at - out);
}

static void check_inflates(const unsigned char *coded, size_t size, const unsigned char *src,
                           size_t n, int last, unsigned char *back) {
    z_stream zlib = {0};
    assert_int_equal(inflateInit2(&zlib, -15), Z_OK);
    zlib.next_in = (unsigned char *)(uintptr_t)coded;
    zlib.avail_in = (uInt)size;
    zlib.next_out = back;
    zlib.avail_out = (uInt)n + 1;
    assert_int_equal(inflate(&zlib, Z_SYNC_FLUSH), last ? Z_STREAM_END : Z_OK);
    assert_int_equal(zlib.total_out, n);
    assert_int_equal(zlib.avail_in, 0);
    assert_memory_equal(back, src, n);
    inflateEnd(&zlib);
}

TEST(zlib_decodes_every_block) {
    test_random random = {test_environment("GF_TEST_SEED", 72)};
    const size_t max = GF_DEFLATE_BLOCK;
    AUTO(free) unsigned char *back = malloc(max + 1);
    AUTO(free) unsigned char *out = malloc(gf_deflate_bound(max) + TEST_MARGIN);
    AUTO(free) unsigned char *other = malloc(gf_deflate_bound(max) + TEST_MARGIN);
    assert_true(back && out && other);
    for (int round = 0; round < 700; round++) {
        const size_t n = round < 90         ? (size_t)round + 1
                         : round % 100 == 0 ? max
                         : round % 100 == 1 ? max - 1
                         : round % 100 < 5  ? 65530 + test_below(&random, 12)
                                            : 1 + test_below(&random, 5000);
        const int last = round % 2;
        AUTO(free) unsigned char *src = test_alloc(n); /* exact size for sanitizers */
        fill(src, n, round % CONTENTS, &random);
        for (int matches = 0; matches < 2; matches++) {
            const size_t size = write_block(GF_ISA_PORTABLE, matches, src, n, last, out);
            check_inflates(out, size, src, n, last, back);
            for (int isa = 1; isa < GF_ISA_COUNT; isa++)
                if (has((gf_isa)isa)) {
                    assert_int_equal(write_block((gf_isa)isa, matches, src, n, last, other), size);
                    assert_memory_equal(other, out, size);
                }
        }
    }
}

/* Eight bytes occur once each. Every other byte occurs twice as often as the previous one. An
 * unlimited code would exceed the maximum length. Symbols with the longest codes are adjacent. */
TEST(the_longest_codes_fit) {
    enum { RARE = 8, LEVELS = 14, N = RARE << LEVELS };
    AUTO(free) unsigned char *src = malloc(N), *out = malloc(gf_deflate_bound(N) + TEST_MARGIN);
    AUTO(free) unsigned char *back = malloc(N + 1);
    assert_true(src && out && back);
    for (size_t shift = 0; shift < 40; shift++) {
        size_t n = 0;
        memset(src, 200, shift); /* shifts the codes to other bit offsets */
        n += shift;
        for (unsigned b = 0; b < RARE; b++)
            src[n++] = (unsigned char)b;
        /* Mix the values: no runs. */
        for (size_t k = 1; n < N; k++)
            src[n++] = (unsigned char)(RARE + LEVELS - __builtin_ctzll(k | 1 << (LEVELS - 1)));
        for (int isa = 0; isa < GF_ISA_COUNT; isa++)
            if (has((gf_isa)isa)) {
                const size_t size = write_block((gf_isa)isa, false, src, N, 1, out);
                check_inflates(out, size, src, N, 1, back);
            }
    }
}

/* Check that repeated rows are found, although the matcher skips through noise in long steps: only
 * the first row is literal. */
TEST(repeated_rows_are_found) {
    enum { ROW = 12000, ROWS = 8 };
    unsigned char src[ROW * ROWS];
    test_random random = {74};
    fill(src, ROW, 0, &random);
    for (size_t i = ROW; i < sizeof src; i++)
        src[i] = src[i - ROW];
    gf_deflate_plan_matches(src, sizeof src, 3, ROW, seen, plan);
    assert_in_range(plan->literals, ROW, ROW + 64);
}

/* Squares, in rows that start with the number of their filter. A cut match continues at the same
 * distance, which costs few bits. */
TEST(cut_matches_continue) {
    enum { ROW = 2001, ROWS = 130 };
    AUTO(free) unsigned char *src = test_alloc(ROW * ROWS);
    for (size_t i = 0; i < ROW * ROWS; i++)
        src[i] = (unsigned char)(i % ROW ? 192 + ((i % ROW - 1) / 8 + i / ROW / 8) % 2 * 63 : 0);
    gf_deflate_plan_matches(src, ROW * ROWS, 1, ROW, seen, plan);
    assert_in_range(plan->bits, 0, 8 * 2500);
}

/* Search for patterns within the range, at both ends and just outside; some differ by one bit. */
TEST(patterns_are_found) {
    enum { ALL = 700, N = ALL - GF_DEFLATE_PATTERN };
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        const gf_deflate_simd *simd = gf_deflate_simd_of((gf_isa)isa);
        test_random random = {75};
        for (int i = 0; i < 4000; i++) {
            unsigned char src[ALL], pattern[GF_DEFLATE_PATTERN];
            const uint64_t values = 2 + test_below(&random, 3);
            for (int k = 0; k < ALL; k++)
                src[k] = (unsigned char)test_below(&random, values);
            const size_t from = test_below(&random, 90), n = test_below(&random, N - from);
            const size_t at = i % 8 == 0   ? from
                              : i % 8 == 1 ? from + n - (n > 0)
                              : i % 8 == 2 ? from + n
                                           : test_below(&random, N);
            memcpy(pattern, src + at, sizeof pattern);
            if (test_below(&random, 2))
                pattern[test_below(&random, sizeof pattern)] ^= 1;
            bool expected = false;
            for (size_t k = 0; k < n; k++)
                expected |= memcmp(src + from + k, pattern, sizeof pattern) == 0;
            assert_int_equal(simd->find_pattern(pattern, src + from, n), expected);
        }
    }
}

/* Check that tiles of noise recur at any offset within a row; noise and flat areas do not. */
TEST(tiles_recur) {
    enum { N = 1 << 17, TILE = 5000 };
    AUTO(free) unsigned char *src = test_alloc(N);
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        const gf_deflate_simd *simd = gf_deflate_simd_of((gf_isa)isa);
        test_random random = {76};
        fill(src, N, 0, &random);
        assert_false(gf_deflate_has_repeats(simd, src, N));
        memset(src + N / 3, 0, N / 3);
        assert_false(gf_deflate_has_repeats(simd, src, N));
        fill(src, N, 0, &random);
        for (size_t i = TILE; i < N; i++)
            src[i] = src[i - TILE];
        assert_true(gf_deflate_has_repeats(simd, src, N));
        assert_true(gf_deflate_has_repeats(simd, src, 2 * TILE));
        assert_false(gf_deflate_has_repeats(simd, src, TILE));
        assert_false(gf_deflate_has_repeats(simd, src, 1));
        /* Repetitions beyond the maximum match distance do not count. */
        fill(src, N, 0, &random);
        memcpy(src + N / 2, src, N / 2);
        assert_false(gf_deflate_has_repeats(simd, src, N));
    }
}

/* Check the runs planner on runs and the matches planner on matches. */
TEST(repetitions_are_found) {
    test_random random = {73};
    unsigned char src[20000];
    memset(src, 7, sizeof src);
    gf_deflate_plan_runs(gf_deflate_simd_of(GF_ISA_PORTABLE), src, sizeof src, plan);
    assert_true(plan->bits < 8 * 60);
    fill(src, sizeof src, 4, &random);
    gf_deflate_plan_runs(gf_deflate_simd_of(GF_ISA_PORTABLE), src, sizeof src, plan);
    const uint64_t runs = plan->bits;
    gf_deflate_plan_matches(src, sizeof src, 3, 37, seen, plan);
    assert_true(plan->bits < runs / 2);
    /* Coded noise is about as large as the noise itself. */
    fill(src, sizeof src, 0, &random);
    gf_deflate_plan_runs(gf_deflate_simd_of(GF_ISA_PORTABLE), src, sizeof src, plan);
    assert_in_range(plan->bits, 8 * sizeof src, 8 * sizeof src + 8 * 400);
}

int main(void) {
    return test_main(&(test_fixture){open_plan, close_plan});
}
