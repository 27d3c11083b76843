/* Huffman codes of the deflate encoder: comparison with codes made by hand, and the description of
 * codes in a block header. */

#include "io/flate/deflate.h"
#include "testing.h"

/* ---- codes ----------------------------------------------------------------------------------- */

static void check_code(const uint32_t *frequency, unsigned count, unsigned max_bits,
                       const char *const *wanted) {
    gf_deflate_codeword words[GF_DEFLATE_LITERALS];
    gf_deflate_make_code(frequency, count, max_bits, words);
    for (unsigned s = 0; s < count; s++) {
        char text[17] = "";
        for (unsigned i = 0; i < gf_deflate_bits(words[s]); i++)
            text[i] = words[s] >> i & 1 ? '1' : '0';
        assert_string_equal(text, wanted[s]);
    }
}

TEST(makes_codes_from_frequencies) {
    check_code((const uint32_t[]){4, 1, 0, 2, 1}, 5, 15,
               (const char *const[]){"0", "110", "", "10", "111"});
    /* RFC 1951, 3.2.2: ABCDEFGH with lengths 3 3 3 3 3 2 4 4. */
    check_code((const uint32_t[]){10, 10, 10, 10, 10, 19, 4, 4}, 8, 15,
               (const char *const[]){"010", "011", "100", "101", "110", "00", "1110", "1111"});
    /* If two codes have equal size, the code with the smaller depth is used. */
    check_code((const uint32_t[]){1, 1, 2, 2}, 4, 15,
               (const char *const[]){"00", "01", "10", "11"});
    /* One symbol or no symbol: the code is still complete. */
    check_code((const uint32_t[]){0, 0, 7}, 3, 15, (const char *const[]){"0", "", "1"});
    check_code((const uint32_t[]){0, 0, 0}, 3, 15, (const char *const[]){"0", "1", ""});
    /* 1 1 2 3 5 8 would have depth 5. Depth 3 allows 8 leaves, and the rarest symbols move up. */
    check_code((const uint32_t[]){1, 1, 2, 3, 5, 8}, 6, 3,
               (const char *const[]){"100", "101", "110", "111", "00", "01"});
}

TEST(limits_the_code_length) {
    test_random random = {test_environment("GF_TEST_SEED", 71)};
    for (int round = 0; round < 3000; round++) {
        uint32_t frequency[GF_DEFLATE_LITERALS] = {0};
        gf_deflate_codeword words[GF_DEFLATE_LITERALS];
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

/* Return the minimum number of symbols for a run of equal lengths. If the length is not 0, its
 * first occurrence is already sent. */
static unsigned symbols_of_run(unsigned run, bool zeros) {
    const unsigned max = zeros ? 138 : 6, rest = zeros && run % max > 10 ? 0 : run % max;
    return run / max + (zeros && run % max > 10) + (rest >= 3 ? 1 : rest);
}

/* Check the description of codes: its symbols produce the lengths, their number is minimal, and
 * trailing unused lengths are omitted. */
static void check_description(const gf_deflate_codes *codes) {
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15}; /* RFC 1951, 3.2.7 */
    uint8_t wanted[GF_DEFLATE_LITERALS + GF_DEFLATE_DISTANCES];
    unsigned count = 0, at = 0, symbols = 0;
    for (unsigned i = 0; i < codes->literals; i++)
        wanted[count++] = (uint8_t)gf_deflate_bits(codes->literal[i]);
    for (unsigned i = 0; i < codes->distances; i++)
        wanted[count++] = (uint8_t)gf_deflate_bits(codes->distance[i]);
    assert_true(codes->literals == 257 || codes->literal[codes->literals - 1]);
    assert_true(codes->distances == 1 || codes->distance[codes->distances - 1]);
    for (unsigned i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && wanted[i + run] == wanted[i];)
            run++;
        symbols += wanted[i] ? 1 + symbols_of_run(run - 1, false) : symbols_of_run(run, true);
    }
    assert_int_equal(codes->length_symbols, symbols);
    for (unsigned i = 0; i < codes->length_symbols; i++) {
        const unsigned symbol = codes->length_symbol[i].symbol,
                       extra = codes->length_symbol[i].extra;
        assert_true(codes->length_codeword[symbol] && extra < (symbol == 18 ? 128 : 8));
        const unsigned run = symbol < 16 ? 1 : symbol == 18 ? 11 + extra : 3 + extra;
        for (unsigned k = 0; k < run; k++, at++)
            assert_int_equal(wanted[at], symbol < 16 ? symbol : symbol == 16 ? wanted[at - 1] : 0);
    }
    assert_int_equal(at, count);
    assert_true(codes->lengths == 4 || codes->length_codeword[order[codes->lengths - 1]]);
    for (unsigned i = codes->lengths; i < 19; i++)
        assert_int_equal(codes->length_codeword[order[i]], 0);
}

/* Check gaps of every length between used literals, and runs of equal code lengths. */
TEST(descriptions_are_short) {
    static gf_deflate_codes codes;
    test_random random = {72};
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
        const uint64_t period = 1 + test_below(&random, 30), max = 1 + test_below(&random, 12);
        for (unsigned i = 0; i < GF_DEFLATE_LITERALS; i++)
            counts.literal[i] +=
                test_below(&random, period) == 0 ? UINT32_C(1) << test_below(&random, max) : 0;
        for (unsigned i = 0; i < GF_DEFLATE_DISTANCES; i++)
            counts.distance[i] = test_below(&random, period) == 0;
        gf_deflate_make_codes(&counts, &codes);
        check_description(&codes);
    }
}

/* Compare with the tables of RFC 1951, 3.2.5. */
TEST(splits_lengths_and_distances) {
    static const uint16_t length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                           15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                           67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                           2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_base[] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
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

int main(void) {
    return test_main(NULL);
}
