/* Headers of deflate blocks: the result for each header equals that of zlib. */
#include "io/flate/inflate.h"

#include <zlib.h>

#include "io_util.h"
#include "testing.h"

enum { BYTES = 1000 };

typedef struct header_bits {
    unsigned char bytes[BYTES];
    size_t count;
} header_bits;

static void put(header_bits *to, uint32_t value, uint32_t n) {
    for (uint32_t i = 0; i < n; i++, to->count++)
        to->bytes[to->count / 8] |= (unsigned char)((value >> i & 1) << to->count % 8);
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Make the lengths of a code of at most n words. One code in eight has a random length and may be
 * incomplete or oversubscribed. */
static void make_code(test_random *random, uint8_t *lengths, uint32_t n, uint32_t max) {
    uint32_t words = 1;
    lengths[0] = 0;
    while (words < n) { /* replace one word by two words that are one bit longer */
        const size_t split = (size_t)test_below(random, words);
        if (lengths[split] == max)
            break;
        lengths[words++] = ++lengths[split];
    }
    memset(lengths + words, 0, n - words);
    for (uint32_t i = n; i-- > 1;) { /* shuffle */
        const size_t other = (size_t)test_below(random, i + 1);
        const uint8_t length = lengths[i];
        lengths[i] = lengths[other];
        lengths[other] = length;
    }
    if (test_below(random, 8) == 0)
        lengths[test_below(random, n)] = (uint8_t)test_below(random, max + 1);
}

/* Make a code with one word or none. */
static void make_small_code(test_random *random, uint8_t *lengths, uint32_t n, size_t at) {
    memset(lengths, 0, n);
    lengths[at] = (uint8_t)test_below(random, 3);
}

/* Write lengths, and write runs of equal lengths at random as repetitions. */
static void put_lengths(header_bits *to, test_random *random, const uint8_t *lengths, uint32_t n) {
    for (uint32_t i = 0; i < n;) {
        uint32_t run = 1;
        while (i + run < n && lengths[i + run] == lengths[i])
            run++;
        const uint64_t choice = test_below(random, 20);
        if (choice < 12 && lengths[i] == 0 && run >= 11) {
            run = run < 138 ? run : 138;
            put(to, 18, 5);
            put(to, run - 11, 7);
        } else if (choice < 14 && lengths[i] == 0 && run >= 3) {
            run = run < 10 ? run : 10;
            put(to, 17, 5);
            put(to, run - 3, 3);
        } else if (choice < 17 && i != 0 && lengths[i] == lengths[i - 1] && run >= 3) {
            run = run < 6 ? run : 6;
            put(to, 16, 5);
            put(to, run - 3, 2);
        } else {
            run = 1;
            put(to, lengths[i], 5);
        }
        i += run;
    }
}

/* Replace symbols of five bits by words of the code for lengths. */
static header_bits with_codes(const header_bits *symbols, size_t first, const uint8_t *lengths) {
    static const uint32_t extra[] = {2, 3, 7};
    header_bits made = {.count = first};
    uint32_t words[19] = {0}, next = 0;
    memcpy(made.bytes, symbols->bytes, first / 8 + 1);
    made.bytes[first / 8] &= (unsigned char)((1u << first % 8) - 1);
    for (uint32_t bits = 1; bits <= 7; bits++, next <<= 1)
        for (uint32_t i = 0; i < 19; i++)
            if (lengths[i] == bits)
                words[i] = next++;
    for (size_t at = first; at < symbols->count;) {
        uint32_t symbol = 0;
        for (uint32_t i = 0; i < 5; i++, at++)
            symbol |= (uint32_t)(symbols->bytes[at / 8] >> at % 8 & 1) << i;
        for (uint32_t i = lengths[symbol]; i-- > 0;)
            put(&made, words[symbol] >> i & 1, 1);
        for (uint32_t i = 0; symbol >= 16 && i < extra[symbol - 16]; i++, at++)
            put(&made, (unsigned)symbols->bytes[at / 8] >> at % 8 & 1, 1);
    }
    return made;
}

static header_bits make_dynamic(test_random *random, uint32_t bit) {
    static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                    11, 4,  12, 3, 13, 2, 14, 1, 15};
    /* The maximum number of 7-bit words: the longest headers. */
    static const uint8_t longest[19] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 3, 2, 1};
    const uint32_t literals = 257 + (uint32_t)test_below(random, 30);
    const uint32_t distances = 1 + (uint32_t)test_below(random, 30);
    uint8_t lengths[286 + 30], code[19];
    header_bits made = {.count = bit};
    if (test_below(random, 8) == 0)
        memcpy(code, longest, sizeof code);
    else
        make_code(random, code, 19, 7);
    if (test_below(random, 4) == 0)
        make_small_code(random, lengths, literals, test_below(random, 9) == 0 ? 0 : 256);
    else
        make_code(random, lengths, literals, 15);
    if (test_below(random, 4) == 0)
        make_small_code(random, lengths + literals, distances, 0);
    else
        make_code(random, lengths + literals, distances, 15);
    put(&made, (uint32_t)test_below(random, 2), 1);
    put(&made, 2, 2);
    put(&made, literals - 257, 5);
    put(&made, distances - 1, 5);
    put(&made, 15, 4);
    for (size_t i = 0; i < 19; i++)
        put(&made, code[order[i]], 3);
    const size_t first = made.count;
    put_lengths(&made, random, lengths, literals + distances);
    made = with_codes(&made, first, code);
    return made;
}

static header_bits make_header(test_random *random, uint32_t bit) {
    header_bits made = {.count = bit};
    if (test_below(random, 10) != 0)
        return make_dynamic(random, bit);
    put(&made, (uint32_t)test_below(random, 8), 3);
    const uint32_t length = (uint32_t)test_below(random, 65536);
    made.count = (made.count + 7) / 8 * 8;
    put(&made, length, 16);
    put(&made, test_below(random, 9) == 0 ? length : length ^ 0xffff, 16);
    return made;
}

/* ---- comparison with zlib -------------------------------------------------------------------- */

/* Return the result of zlib. Store the bytes read and the last-block flag in *header. */
static gf_inflate_result by_zlib(const unsigned char *data, size_t size, uint32_t bit,
                                 gf_inflate_header *header) {
    unsigned char out[1];
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size};
    assert_int_equal(inflateInit2(&zlib, -15), Z_OK);
    if (bit != 0 && size != 0) {
        assert_int_equal(inflatePrime(&zlib, 8 - (int)bit, data[0] >> bit), Z_OK);
        zlib.next_in++;
        zlib.avail_in--;
    }
    zlib.next_out = out;
    zlib.avail_out = sizeof out;
    const int status = inflate(&zlib, Z_TREES);
    *header = (gf_inflate_header){.bits = 8 * (uint32_t)(zlib.next_in - data),
                                  .last = (zlib.data_type & 64) != 0};
    const bool complete = (zlib.data_type & 256) != 0;
    (void)inflateEnd(&zlib);
    if (status == Z_DATA_ERROR)
        return GF_INFLATE_INVALID;
    assert_true(status == Z_OK || status == Z_BUF_ERROR);
    return complete ? GF_INFLATE_VALID : GF_INFLATE_TRUNCATED;
}

TEST(results_equal_those_of_zlib) {
    test_random random = {test_environment("GF_TEST_SEED", 20261122)};
    const uint64_t rounds = test_rounds(100) * 1000;
    uint64_t count[3] = {0};
    for (uint64_t round = 0; round < rounds; round++) {
        const uint32_t bit = (uint32_t)test_below(&random, 8);
        header_bits made = make_header(&random, bit);
        const size_t whole = (made.count + 7) / 8;
        gf_inflate_header ours, theirs;
        const bool flipped = test_below(&random, 4) == 0;
        for (uint32_t flips = flipped ? 2 : 0; flips > 0; flips--)
            made.bytes[test_below(&random, whole)] ^= (unsigned char)(1u << flips);
        const size_t size = test_below(&random, 4) == 0 ? (size_t)test_below(&random, whole + 1)
                                                        : whole + (size_t)test_below(&random, 20);
        /* A copy of the exact size, so that sanitizers detect reads past its end. */
        AUTO(free) unsigned char *data = test_alloc(size + (size == 0));
        memcpy(data, made.bytes, size);
        const gf_inflate_result got = gf_inflate_header_read(data, size, bit, &ours);
        const gf_inflate_result wanted = by_zlib(data, size, bit, &theirs);
        count[got]++;
        if (got != wanted)
            fail_msg("round %lu: result %d, zlib: %d", (unsigned long)round, (int)got, (int)wanted);
        if (got == GF_INFLATE_VALID) {
            assert_int_equal(ours.last, theirs.last);
            assert_int_equal(ours.kind, (made.bytes[0] | made.bytes[1] << 8) >> bit >> 1 & 3);
        }
        if (got == GF_INFLATE_VALID && ours.kind == GF_INFLATE_STORED) {
            const uint32_t end = ours.bits / 8;
            assert_int_equal(ours.bits, theirs.bits);
            assert_int_equal(ours.stored, data[end - 4] | data[end - 3] << 8);
        }
    }
    print_message("%lu valid, %lu truncated, %lu invalid\n", (unsigned long)count[GF_INFLATE_VALID],
                  (unsigned long)count[GF_INFLATE_TRUNCATED],
                  (unsigned long)count[GF_INFLATE_INVALID]);
    for (int i = 0; i < 3; i++)
        assert_true(count[i] > rounds / 20);
}

int main(void) {
    return test_main(NULL);
}
