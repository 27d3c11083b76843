/* Our deflate coder: its codes by hand, everything it writes by zlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <zlib.h>

#include "io/deflate.h"
#include "testing.h"

/* ---- codes ----------------------------------------------------------------------------------- */

static void check_code(const uint32_t *frequency, unsigned count, unsigned max_bits,
                       const char *const *wanted) {
    gf_deflate_word words[GF_DEFLATE_LITERALS];
    gf_deflate_make_code(frequency, count, max_bits, words);
    for (unsigned s = 0; s < count; s++) {
        char text[17] = "";
        for (unsigned i = 0; i < gf_deflate_bits(words[s]); i++)
            text[i] = words[s] >> i & 1 ? '1' : '0';
        assert_string_equal(text, wanted[s]);
    }
}

static void makes_the_code_of_the_frequencies(void **state) {
    (void)state;
    check_code((const uint32_t[]){4, 1, 0, 2, 1}, 5, 15,
               (const char *const[]){"0", "110", "", "10", "111"});
    /* RFC 1951, 3.2.2: ABCDEFGH with lengths 3 3 3 3 3 2 4 4. */
    check_code((const uint32_t[]){10, 10, 10, 10, 10, 19, 4, 4}, 8, 15,
               (const char *const[]){"010", "011", "100", "101", "110", "00", "1110", "1111"});
    /* Of two codes of one size, the one that is less deep. */
    check_code((const uint32_t[]){1, 1, 2, 2}, 4, 15,
               (const char *const[]){"00", "01", "10", "11"});
    /* One symbol, or none: still a complete code. */
    check_code((const uint32_t[]){0, 0, 7}, 3, 15, (const char *const[]){"0", "", "1"});
    check_code((const uint32_t[]){0, 0, 0}, 3, 15, (const char *const[]){"0", "1", ""});
    /* 1 1 2 3 5 8 would go 5 deep; with 3 there is room for 8 leaves, and the rarest go up. */
    check_code((const uint32_t[]){1, 1, 2, 3, 5, 8}, 6, 3,
               (const char *const[]){"100", "101", "110", "111", "00", "01"});
}

static void keeps_to_the_limit(void **state) {
    (void)state;
    test_random random = {test_environment("GF_TEST_SEED", 71)};
    for (int round = 0; round < 3000; round++) {
        uint32_t frequency[GF_DEFLATE_LITERALS] = {0};
        gf_deflate_word words[GF_DEFLATE_LITERALS];
        const unsigned count = 2 + (unsigned)test_below(&random, GF_DEFLATE_LITERALS - 1);
        const unsigned max_bits = count <= 19 && round % 2 ? 7 : 14;
        uint32_t a = 1, b = 1;
        for (unsigned s = 0; s < count; s++) {
            const uint32_t next = a + b;
            frequency[s] = round % 3 == 0   ? (uint32_t)test_below(&random, 3000)
                           : round % 3 == 1 ? (uint32_t)test_below(&random, 2)
                                            : a;
            if (next < 1u << 24) {
                a = b;
                b = next;
            }
        }
        gf_deflate_make_code(frequency, count, max_bits, words);
        uint64_t kraft = 0;
        for (unsigned s = 0; s < count; s++) {
            const unsigned bits = gf_deflate_bits(words[s]);
            assert_in_range(bits, frequency[s] ? 1 : 0, max_bits);
            kraft += bits ? UINT64_C(1) << (max_bits - bits) : 0;
            for (unsigned t = 0; t < s; t++)
                if (frequency[t] > frequency[s] && bits)
                    assert_true(gf_deflate_bits(words[t]) <= bits);
        }
        assert_int_equal(kraft, UINT64_C(1) << max_bits);
    }
}

/* Steps that a run of one length takes, the first of it sent already if it is not 0. */
static unsigned steps_of(unsigned run, bool zeros) {
    const unsigned most = zeros ? 138 : 6, rest = zeros && run % most > 10 ? 0 : run % most;
    return run / most + (zeros && run % most > 10) + (rest >= 3 ? 1 : rest);
}

/* What describes a code: its lengths again, in as few steps as there may be; nothing is sent of
 * what is not used at the end. */
static void check_description(const gf_deflate_codes *codes) {
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15}; /* RFC 1951, 3.2.7 */
    uint8_t wanted[GF_DEFLATE_LITERALS + GF_DEFLATE_DISTANCES];
    unsigned count = 0, at = 0, steps = 0;
    for (unsigned i = 0; i < codes->literals; i++)
        wanted[count++] = (uint8_t)gf_deflate_bits(codes->literal[i]);
    for (unsigned i = 0; i < codes->distances; i++)
        wanted[count++] = (uint8_t)gf_deflate_bits(codes->distance[i]);
    assert_true(codes->literals == 257 || codes->literal[codes->literals - 1]);
    assert_true(codes->distances == 1 || codes->distance[codes->distances - 1]);
    for (unsigned i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && wanted[i + run] == wanted[i];)
            run++;
        steps += wanted[i] ? 1 + steps_of(run - 1, false) : steps_of(run, true);
    }
    assert_int_equal(codes->steps, steps);
    for (unsigned i = 0; i < codes->steps; i++) {
        const unsigned symbol = codes->step[i].symbol, extra = codes->step[i].extra;
        assert_true(codes->length_word[symbol] && extra < (symbol == 18 ? 128 : 8));
        const unsigned run = symbol < 16 ? 1 : symbol == 18 ? 11 + extra : 3 + extra;
        for (unsigned k = 0; k < run; k++, at++)
            assert_int_equal(wanted[at], symbol < 16 ? symbol : symbol == 16 ? wanted[at - 1] : 0);
    }
    assert_int_equal(at, count);
    assert_true(codes->lengths == 4 || codes->length_word[order[codes->lengths - 1]]);
    for (unsigned i = codes->lengths; i < 19; i++)
        assert_int_equal(codes->length_word[order[i]], 0);
}

/* Gaps of every length between literals that occur, and as many of one length side by side. */
static void descriptions_are_short(void **state) {
    static gf_deflate_codes codes;
    test_random random = {72};
    (void)state;
    for (unsigned run = 1; run < 256; run++) {
        gf_deflate_counts gap = {.literal = {[0] = 1, [GF_DEFLATE_END] = 1}};
        gap.literal[run] = 2;
        gf_deflate_make_codes(&gap, &codes);
        check_description(&codes);
        gf_deflate_counts alike = {.literal = {[GF_DEFLATE_END] = 1}, .distance = {[7] = 1}};
        for (unsigned i = 0; i < run; i++)
            alike.literal[i] = 1000;
        gf_deflate_make_codes(&alike, &codes);
        check_description(&codes);
    }
    for (int round = 0; round < 2000; round++) {
        gf_deflate_counts counts = {.literal = {[GF_DEFLATE_END] = 1}};
        const uint64_t often = 1 + test_below(&random, 30), most = 1 + test_below(&random, 12);
        for (unsigned i = 0; i < GF_DEFLATE_LITERALS; i++)
            counts.literal[i] +=
                test_below(&random, often) == 0 ? UINT32_C(1) << test_below(&random, most) : 0;
        for (unsigned i = 0; i < GF_DEFLATE_DISTANCES; i++)
            counts.distance[i] = test_below(&random, often) == 0;
        gf_deflate_make_codes(&counts, &codes);
        check_description(&codes);
    }
}

/* The tables of RFC 1951, 3.2.5. */
static void splits_lengths_and_distances(void **state) {
    static const uint16_t length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                           15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                           67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                           2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_base[] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    (void)state;
    for (unsigned length = 3; length <= 258; length++) {
        const gf_deflate_split split = gf_split_length(length);
        const unsigned s = split.symbol - 257;
        assert_in_range(s, 0, 28);
        assert_int_equal(length_base[s] + split.extra, length);
        assert_int_equal(split.extra_bits, length_extra[s]);
        assert_true(split.extra < 1u << split.extra_bits);
        assert_true(length != 258 || s == 28);
    }
    for (unsigned distance = 1; distance <= 32768; distance++) {
        const gf_deflate_split split = gf_split_distance(distance);
        assert_in_range(split.symbol, 0, 29);
        assert_int_equal(distance_base[split.symbol] + split.extra, distance);
        assert_int_equal(split.extra_bits, split.symbol < 4 ? 0 : split.symbol / 2 - 1);
        assert_true(split.extra < 1u << split.extra_bits);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

enum { CONTENTS = 8 };

static void fill(unsigned char *p, size_t n, int content, test_random *random) {
    for (size_t i = 0; i < n; i++)
        switch (content) {
        case 0: /* noise */
            p[i] = (unsigned char)test_next(random);
            break;
        case 1: /* residuals: few values, the small ones often */
            p[i] = (unsigned char)(__builtin_popcountll(test_next(random)) - 32);
            break;
        case 2: /* runs of every length around the limits */
            p[i] = i && test_below(random, 12) ? p[i - 1] : (unsigned char)test_next(random);
            break;
        case 3: /* long runs */
            p[i] = i && test_below(random, 900) ? p[i - 1] : (unsigned char)test_below(random, 3);
            break;
        case 4: /* what was there before */
            p[i] = i > 40 && test_below(random, 30) ? p[i - 37] : (unsigned char)test_next(random);
            break;
        case 5: /* far back */
            p[i] = i > 32768 ? p[i - 32768] : (unsigned char)test_below(random, 200);
            break;
        case 6: /* noise with a short run now and then */
            p[i] = i % 97 > 84 + i / 97 % 9 ? p[i - 1] : (unsigned char)test_next(random);
            break;
        default:
            p[i] = 0;
        }
}

static bool has(gf_isa isa) {
    return isa == GF_ISA_PORTABLE || gf_isa_available(isa);
}

static gf_deflate_plan *plan;
static gf_deflate_seen *seen;

static int open_plan(void **state) {
    (void)state;
    plan = malloc(sizeof *plan);
    seen = malloc(sizeof *seen);
    return !plan || !seen;
}

static int close_plan(void **state) {
    (void)state;
    free(plan);
    free(seen);
    return 0;
}

/* Writes the block between margins, behind some bits that are there already. */
static size_t write_block(gf_isa isa, bool matches, const unsigned char *src, size_t n, int last,
                          unsigned char *out) {
    const gf_deflate_simd *simd = gf_deflate_simd_of(isa);
    const size_t bound = gf_deflate_bound(n);
    memset(out, TEST_PAINT, bound + TEST_MARGIN);
    if (matches)
        gf_deflate_plan_matches(src, n, 3, 37, seen, plan);
    else
        gf_deflate_plan_runs(simd, src, n, plan);
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

static void zlib_reads_every_block(void **state) {
    (void)state;
    test_random random = {test_environment("GF_TEST_SEED", 72)};
    const size_t most = GF_DEFLATE_BLOCK;
    unsigned char *back = malloc(most + 1);
    unsigned char *out = malloc(gf_deflate_bound(most) + TEST_MARGIN);
    unsigned char *other = malloc(gf_deflate_bound(most) + TEST_MARGIN);
    assert_true(back && out && other);
    for (int round = 0; round < 700; round++) {
        const size_t n = round < 90         ? (size_t)round + 1
                         : round % 100 == 0 ? most
                         : round % 100 == 1 ? most - 1
                         : round % 100 < 5  ? 65530 + test_below(&random, 12)
                                            : 1 + test_below(&random, 5000);
        const int last = round % 2;
        unsigned char *src = malloc(n); /* for sanitizers to see its end */
        assert_non_null(src);
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
        free(src);
    }
    free(back);
    free(out);
    free(other);
}

/* Eight bytes that occur once, each of the others twice as often as the one before: codes would be
 * longer than may be, and the longest come one after the other. */
static void the_longest_codes_fit(void **state) {
    enum { RARE = 8, LEVELS = 14, N = RARE << LEVELS };
    unsigned char *src = malloc(N), *out = malloc(gf_deflate_bound(N) + TEST_MARGIN);
    unsigned char *back = malloc(N + 1);
    (void)state;
    assert_true(src && out && back);
    for (size_t shift = 0; shift < 40; shift++) {
        size_t n = 0;
        memset(src, 200, shift); /* bits that are there before */
        n += shift;
        for (unsigned b = 0; b < RARE; b++)
            src[n++] = (unsigned char)b;
        /* Not all of one kind together: no runs. */
        for (size_t k = 1; n < N; k++)
            src[n++] = (unsigned char)(RARE + LEVELS - __builtin_ctzll(k | 1 << (LEVELS - 1)));
        for (int isa = 0; isa < GF_ISA_COUNT; isa++)
            if (has((gf_isa)isa)) {
                const size_t size = write_block((gf_isa)isa, false, src, N, 1, out);
                check_inflates(out, size, src, N, 1, back);
            }
    }
    free(src);
    free(out);
    free(back);
}

/* What was passed by in long steps is found again a row further, and nothing but it is literal. */
static void rows_that_repeat_are_found_at_once(void **state) {
    enum { ROW = 12000, ROWS = 8 };
    unsigned char src[ROW * ROWS];
    test_random random = {74};
    (void)state;
    fill(src, ROW, 0, &random);
    for (size_t i = ROW; i < sizeof src; i++)
        src[i] = src[i - ROW];
    gf_deflate_plan_matches(src, sizeof src, 3, ROW, seen, plan);
    assert_in_range(plan->literals, ROW, ROW + 64);
}

/* Squares, in rows that begin with their filter's number: a match that was cut goes on at the same
 * distance, which takes few bits. */
static void cut_matches_go_on(void **state) {
    enum { ROW = 2001, ROWS = 130 };
    unsigned char *src = malloc(ROW * ROWS);
    (void)state;
    assert_non_null(src);
    for (size_t i = 0; i < ROW * ROWS; i++)
        src[i] = (unsigned char)(i % ROW ? 192 + ((i % ROW - 1) / 8 + i / ROW / 8) % 2 * 63 : 0);
    gf_deflate_plan_matches(src, ROW * ROWS, 1, ROW, seen, plan);
    assert_in_range(plan->bits, 0, 8 * 2500);
    free(src);
}

/* A word anywhere, at either end of where it is looked for and just outside; nothing that is nearly
 * it. */
static void words_are_found(void **state) {
    enum { ALL = 700, N = ALL - GF_DEFLATE_WORD };
    (void)state;
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        const gf_deflate_simd *simd = gf_deflate_simd_of((gf_isa)isa);
        test_random random = {75};
        for (int i = 0; i < 4000; i++) {
            unsigned char src[ALL], word[GF_DEFLATE_WORD];
            const uint64_t letters = 2 + test_below(&random, 3);
            for (int k = 0; k < ALL; k++)
                src[k] = (unsigned char)test_below(&random, letters);
            const size_t from = test_below(&random, 90), n = test_below(&random, N - from);
            const size_t at = i % 8 == 0   ? from
                              : i % 8 == 1 ? from + n - (n > 0)
                              : i % 8 == 2 ? from + n
                                           : test_below(&random, N);
            memcpy(word, src + at, sizeof word);
            if (test_below(&random, 2))
                word[test_below(&random, sizeof word)] ^= 1;
            bool there = false;
            for (size_t k = 0; k < n; k++)
                there |= memcmp(src + from + k, word, sizeof word) == 0;
            assert_int_equal(simd->find_word(word, src + from, n), there);
        }
    }
}

/* Tiles of noise recur, at any place in a row; noise does not, nor does what is flat. */
static void tiles_recur(void **state) {
    enum { N = 1 << 17, TILE = 5000 };
    unsigned char *src = malloc(N);
    (void)state;
    assert_non_null(src);
    for (int isa = 0; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        const gf_deflate_simd *simd = gf_deflate_simd_of((gf_isa)isa);
        test_random random = {76};
        fill(src, N, 0, &random);
        assert_false(gf_deflate_recurs(simd, src, N));
        memset(src + N / 3, 0, N / 3);
        assert_false(gf_deflate_recurs(simd, src, N));
        fill(src, N, 0, &random);
        for (size_t i = TILE; i < N; i++)
            src[i] = src[i - TILE];
        assert_true(gf_deflate_recurs(simd, src, N));
        assert_true(gf_deflate_recurs(simd, src, 2 * TILE));
        assert_false(gf_deflate_recurs(simd, src, TILE));
        assert_false(gf_deflate_recurs(simd, src, 1));
        /* What is further back than matches reach does not count. */
        fill(src, N, 0, &random);
        memcpy(src + N / 2, src, N / 2);
        assert_false(gf_deflate_recurs(simd, src, N));
    }
    free(src);
}

/* What each way is for. */
static void repetitions_are_found(void **state) {
    (void)state;
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
    /* Noise costs what it is. */
    fill(src, sizeof src, 0, &random);
    gf_deflate_plan_runs(gf_deflate_simd_of(GF_ISA_PORTABLE), src, sizeof src, plan);
    assert_in_range(plan->bits, 8 * sizeof src, 8 * sizeof src + 8 * 400);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_the_code_of_the_frequencies),
        cmocka_unit_test(keeps_to_the_limit),
        cmocka_unit_test(descriptions_are_short),
        cmocka_unit_test(splits_lengths_and_distances),
        cmocka_unit_test(zlib_reads_every_block),
        cmocka_unit_test(the_longest_codes_fit),
        cmocka_unit_test(rows_that_repeat_are_found_at_once),
        cmocka_unit_test(cut_matches_go_on),
        cmocka_unit_test(words_are_found),
        cmocka_unit_test(tiles_recur),
        cmocka_unit_test(repetitions_are_found),
    };
    return cmocka_run_group_tests(tests, open_plan, close_plan);
}
