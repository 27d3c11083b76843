/* The deflate decoder: streams by hand, and equality with zlib at every SIMD level, for random
 * pieces of input and of output, in bytes and in 16-bit elements. */
#include "io/flate/inflate.h"

#include <zlib.h>

#include "io/bytes.h"
#include "io_util.h"
#include "testing.h"

enum {
    MAX_OUTPUT = 1 << 18,
    PADDING = 8, /* readable bytes after the input */
    STREAM_BYTES = 2 * MAX_OUTPUT
};

typedef struct decoded {
    unsigned char bytes[MAX_OUTPUT];
    size_t size;
    gf_inflate_result result;
} decoded;

/* Give up to `max` bytes of input at a time; 0: all of it. Output is limited to random amounts. */
static void run(const unsigned char *stream, size_t size, gf_isa isa, bool wide, size_t max,
                test_random *random, decoded *to) {
    static gf_inflate inflate;
    static unsigned char wide_out[2 * (MAX_OUTPUT + GF_INFLATE_RESERVE)],
        narrow_out[MAX_OUTPUT + GF_INFLATE_RESERVE];
    unsigned char *memory = wide ? wide_out : narrow_out;
    gf_inflate_out out = {.history = memory, .wide = wide};
    size_t given = 0, at = 0;
    unsigned bit = 0;

    out.next = memory;
    gf_inflate_start(&inflate, isa);
    do {
        /* A copy without bytes before or after it, so that sanitizers detect wrong reads. */
        const size_t piece = max == 0 ? size : given + 1 + (size_t)test_below(random, max);
        given = piece < size ? piece : size;
        AUTO(free) unsigned char *copy = test_alloc(given - at + PADDING);
        memcpy(copy, stream + at, given - at);
        memset(copy + given - at, 0xff, PADDING);
        gf_inflate_set_input(&inflate, copy, bit, copy + given - at, given == size);
        do {
            const size_t free_elements =
                MAX_OUTPUT + GF_INFLATE_RESERVE - ((size_t)(out.next - memory) >> wide);
            const size_t limit =
                GF_INFLATE_RESERVE + (size_t)test_below(random, max == 0 ? 100000 : 3000);
            out.end = out.next + ((limit < free_elements ? limit : free_elements) << wide);
            to->result = gf_inflate_run(&inflate, &out);
            assert_true(out.next <= out.end);
        } while (to->result == GF_INFLATE_NEEDS_OUTPUT ||
                 (to->result == GF_INFLATE_VALID && !inflate.last));
        at += (size_t)(gf_inflate_position(&inflate, &bit) - copy);
    } while (to->result == GF_INFLATE_NEEDS_INPUT);
    to->size = (size_t)(out.next - memory) >> wide;
    for (size_t i = 0; i < to->size; i++)
        to->bytes[i] = (unsigned char)(wide ? gf_little16(memory + 2 * i) : memory[i]);
}

TEST(streams_by_hand) {
    static const struct {
        const char *stream;
        size_t size;
        gf_inflate_result result;
        const char *output;
    } cases[] = {
        {"\1\3\0\xfc\xff"
         "abc",
         8, GF_INFLATE_VALID, "abc"},
        {"\1\3\0\xfc\xff"
         "ab",
         7, GF_INFLATE_TRUNCATED, "ab"},
        {"\1\3\0\xfc\xfe"
         "abc",
         8, GF_INFLATE_INVALID, ""},
        {"\7", 1, GF_INFLATE_INVALID, ""},
        /* Fixed codes: 'a' is 10010001, length 9 is 0000111, distance 1 is 00000, end 0000000. */
        {"\x4b\x84\x03\x00", 4, GF_INFLATE_VALID, "aaaaaaaaaa"},
        {"\x4b\x84", 2, GF_INFLATE_TRUNCATED, "a"},
        /* Length 3 and distance 1 without any output before. */
        {"\x03\x02\x00", 3, GF_INFLATE_INVALID_DISTANCE, ""},
        /* Length symbol 286, 11000110, has no meaning. */
        {"\x1b\x03", 2, GF_INFLATE_INVALID_CODE, ""},
    };
    static decoded got;
    test_random random = {1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int wide = 0; wide < 2; wide++) {
            run((const unsigned char *)cases[i].stream, cases[i].size, GF_ISA_PORTABLE, wide, 0,
                &random, &got);
            if (got.result != cases[i].result || got.size != strlen(cases[i].output) ||
                memcmp(got.bytes, cases[i].output, got.size) != 0)
                fail_msg("case %zu: result %d, %zu bytes", i, (int)got.result, got.size);
        }
}

/* Fill with random bytes of a random distribution, runs and repetitions. */
static void make_content(test_random *random, unsigned char *to, size_t n) {
    const uint64_t range = 1 + test_below(random, 256), kind = test_below(random, 4);
    for (size_t i = 0; i < n;) {
        const size_t left = n - i, run = 1 + (size_t)test_below(random, 600);
        const size_t length = run < left ? run : left;
        const uint64_t choice = kind == 0 ? 9 : test_below(random, 10);
        if (choice < 3 && i > 0) {
            const size_t back = 1 + (size_t)test_below(random, choice == 0 ? (i < 20 ? i : 20) : i);
            for (size_t k = 0; k < length; k++)
                to[i + k] = to[i + k - back];
        } else if (choice == 3) {
            memset(to + i, (int)test_below(random, 256), length);
        } else {
            for (size_t k = 0; k < length; k++)
                to[i + k] = (unsigned char)(test_below(random, range) * test_below(random, range) >>
                                            test_below(random, 8));
        }
        i += length;
    }
}

/* Compress with random settings. Return the size. */
static size_t compress_any(test_random *random, const unsigned char *data, size_t n,
                           unsigned char *to) {
    z_stream zlib = {0};
    const int level = (int)test_below(random, 10), memory = 1 + (int)test_below(random, 9);
    const int strategy = (int)test_below(random, 5); /* arguments have no order */
    assert_int_equal(deflateInit2(&zlib, level, Z_DEFLATED, -15, memory, strategy), Z_OK);
    zlib.next_out = to;
    zlib.avail_out = STREAM_BYTES;
    for (size_t at = 0; at < n;) {
        const size_t left = n - at, some = 1 + (size_t)test_below(random, 60000);
        const bool last = some >= left;
        zlib.next_in = (Bytef *)(uintptr_t)(data + at);
        zlib.avail_in = (uInt)(last ? left : some);
        at += zlib.avail_in;
        const int flush = last ? Z_FINISH : test_below(random, 4) == 0 ? Z_SYNC_FLUSH : Z_NO_FLUSH;
        assert_true(deflate(&zlib, flush) >= Z_OK);
    }
    const size_t size = STREAM_BYTES - zlib.avail_out;
    (void)deflateEnd(&zlib);
    return size;
}

/* Return what zlib decodes before an error; *valid: without an error. */
static size_t by_zlib(const unsigned char *stream, size_t size, unsigned char *to, bool *valid) {
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)stream,
                     .avail_in = (uInt)size,
                     .next_out = to,
                     .avail_out = MAX_OUTPUT};
    assert_int_equal(inflateInit2(&zlib, -15), Z_OK);
    *valid = inflate(&zlib, Z_SYNC_FLUSH) == Z_STREAM_END;
    (void)inflateEnd(&zlib);
    return MAX_OUTPUT - zlib.avail_out;
}

TEST(results_equal_those_of_zlib) {
    static unsigned char content[MAX_OUTPUT], stream[STREAM_BYTES], wanted[MAX_OUTPUT];
    static decoded got;
    const uint64_t seed = test_environment("GF_TEST_SEED", 20261124), rounds = test_rounds(150);
    uint64_t accepted = 0, rejected = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        /* The streams do not depend on the SIMD levels of the machine. */
        test_random random = test_seeded(seed + round);
        const size_t n =
            1 + (size_t)test_below(&random, test_below(&random, 3) == 0 ? MAX_OUTPUT / 2 : 3000);
        bool valid;
        make_content(&random, content, n);
        size_t size = compress_any(&random, content, n, stream);
        if (test_below(&random, 8) == 0)
            size = 1 + (size_t)test_below(&random, size);
        for (uint64_t flips = test_below(&random, 2) * test_below(&random, 20); flips > 0; flips--)
            stream[test_below(&random, size)] ^= (unsigned char)(1u << test_below(&random, 8));
        const size_t wanted_size = by_zlib(stream, size, wanted, &valid);
        if (wanted_size > MAX_OUTPUT - GF_INFLATE_RESERVE)
            continue;
        valid ? accepted++ : rejected++;
        for (gf_isa isa = GF_ISA_PORTABLE; isa < GF_ISA_COUNT; isa++)
            for (int variant = 0; variant < 4 && gf_isa_available(isa); variant++) {
                run(stream, size, isa, variant & 1,
                    variant & 2 ? 1 + (size_t)test_below(&random, 2000) : 0, &random, &got);
                if ((got.result == GF_INFLATE_VALID) != valid || got.size != wanted_size ||
                    memcmp(got.bytes, wanted, wanted_size) != 0)
                    fail_msg("round %lu, level %d, variant %d: result %d, %zu bytes of %zu",
                             (unsigned long)round, (int)isa, variant, (int)got.result, got.size,
                             wanted_size);
            }
    }
    print_message("%lu accepted, %lu rejected\n", (unsigned long)accepted, (unsigned long)rejected);
    assert_true(accepted > rounds / 8 && rejected > rounds / 16);
}

/* Two streams at once, with limited output, give what each gives alone. */
TEST(pairs_equal_single_streams) {
    static unsigned char content[MAX_OUTPUT], streams[2][STREAM_BYTES];
    static unsigned char memory[3][MAX_OUTPUT + GF_INFLATE_RESERVE];
    static gf_inflate inflates[3];
    const uint64_t rounds = test_rounds(600);
    uint64_t seen[GF_INFLATE_NEEDS_OUTPUT + 1] = {0};
    for (uint64_t round = 0; round < rounds; round++) {
        test_random random = test_seeded(test_environment("GF_TEST_SEED", 20261126) + round);
        unsigned char *copies[2];
        size_t sizes[2], limits[2];
        const size_t half = (size_t)8 << test_below(&random, 14);
        for (int i = 0; i < 2; i++) {
            const size_t n = half + (size_t)test_below(&random, half);
            make_content(&random, content, n);
            sizes[i] = compress_any(&random, content, n, streams[i]);
            if (test_below(&random, 8) == 0)
                sizes[i] = 1 + (size_t)test_below(&random, sizes[i]);
            if (test_below(&random, 4) == 0)
                streams[i][test_below(&random, sizes[i])] ^=
                    (unsigned char)(1u << test_below(&random, 8));
            limits[i] = GF_INFLATE_RESERVE + (test_below(&random, 3) ? n : test_below(&random, n));
            /* Without bytes after it, so that sanitizers detect wrong reads. */
            copies[i] = test_alloc(sizes[i] + PADDING);
            memcpy(copies[i], streams[i], sizes[i]);
            memset(copies[i] + sizes[i], 0xff, PADDING);
        }
        for (gf_isa isa = GF_ISA_PORTABLE; isa < GF_ISA_COUNT; isa++) {
            if (!gf_isa_available(isa))
                continue;
            gf_inflate *const pair[2] = {&inflates[0], &inflates[1]};
            gf_inflate_out outs[3];
            gf_inflate_out *const pair_outs[2] = {&outs[0], &outs[1]};
            gf_inflate_result results[2];
            for (int i = 0; i < 2; i++) {
                outs[i] = (gf_inflate_out){memory[i], memory[i] + limits[i], memory[i], false};
                gf_inflate_start(pair[i], isa);
                gf_inflate_set_input(pair[i], copies[i], 0, copies[i] + sizes[i], true);
            }
            gf_inflate_run_streams(2, pair, pair_outs, results);
            for (int i = 0; i < 2; i++) {
                gf_inflate_result alone;
                outs[2] = (gf_inflate_out){memory[2], memory[2] + limits[i], memory[2], false};
                gf_inflate_start(&inflates[2], isa);
                gf_inflate_set_input(&inflates[2], copies[i], 0, copies[i] + sizes[i], true);
                do
                    alone = gf_inflate_run(&inflates[2], &outs[2]);
                while (alone == GF_INFLATE_VALID && !inflates[2].last);
                const size_t size = (size_t)(outs[2].next - memory[2]);
                const size_t paired = (size_t)(outs[i].next - memory[i]);
                /* At the end of the output, both stop before the entry that may not fit. */
                const bool full = alone == GF_INFLATE_NEEDS_OUTPUT;
                seen[alone]++;
                if (results[i] != alone || paired > limits[i] || (paired != size && !full) ||
                    memcmp(memory[i], memory[2], paired < size ? paired : size) != 0)
                    fail_msg("round %lu, level %d, stream %d: result %d, not %d",
                             (unsigned long)round, (int)isa, i, (int)results[i], (int)alone);
            }
        }
        free(copies[0]);
        free(copies[1]);
    }
    assert_true(seen[GF_INFLATE_VALID] > rounds / 8 && seen[GF_INFLATE_NEEDS_OUTPUT] > 0);
    assert_true(seen[GF_INFLATE_TRUNCATED] > 0);
}

/* The first match of two streams, after up to a window of literals, begins before the output: in a
 * dictionary that the decoder does not have. */
TEST(pairs_check_distances) {
    enum { COMMON = 100, SIZE = 2 * GF_DEFLATE_WINDOW };
    static const size_t positions[] = {0, 2000, 20000, GF_DEFLATE_WINDOW - 2 * COMMON - 300};
    static unsigned char content[2][SIZE], streams[2][2 * SIZE];
    static unsigned char memory[2][2 * SIZE];
    static gf_inflate inflates[2];
    test_random random = {3};
    for (size_t k = 0; k < sizeof positions / sizeof *positions; k++) {
        gf_inflate *const pair[2] = {&inflates[0], &inflates[1]};
        gf_inflate_out outs[2];
        gf_inflate_out *const pair_outs[2] = {&outs[0], &outs[1]};
        gf_inflate_result results[2];
        for (int i = 0; i < 2; i++) {
            unsigned char *common = content[i] + positions[k];
            z_stream zlib = {.next_in = content[i], .avail_in = SIZE};
            zlib.next_out = streams[i];
            zlib.avail_out = sizeof streams[i];
            for (size_t j = 0; j < SIZE; j++)
                content[i][j] = (unsigned char)(test_below(&random, 8) * test_below(&random, 8));
            unsigned char dictionary[1 + COMMON] = {255}; /* zlib does not find its first byte */
            for (size_t j = 0; j < COMMON; j++)
                common[j] = dictionary[1 + j] = (unsigned char)(100 + j);
            assert_int_equal(deflateInit2(&zlib, 6, Z_DEFLATED, -15, 9, Z_FILTERED), Z_OK);
            assert_int_equal(deflateSetDictionary(&zlib, dictionary, sizeof dictionary), Z_OK);
            assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
            (void)deflateEnd(&zlib);
            outs[i] = (gf_inflate_out){memory[i], memory[i] + sizeof memory[i], memory[i], false};
            gf_inflate_start(pair[i], gf_isa_best());
            gf_inflate_set_input(pair[i], streams[i], 0, zlib.next_out + GF_INFLATE_LOOKAHEAD,
                                 true);
        }
        gf_inflate_run_streams(2, pair, pair_outs, results);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(results[i], GF_INFLATE_INVALID_DISTANCE);
            assert_int_equal(outs[i].next - memory[i], positions[k]);
            assert_memory_equal(memory[i], content[i], positions[k]);
        }
    }
}

/* Matches that reach before the output copy placeholders. */
TEST(placeholders_are_copied) {
    static unsigned char content[GF_DEFLATE_WINDOW + 20000], stream[STREAM_BYTES];
    static unsigned char memory[2 * (GF_DEFLATE_WINDOW + 20000 + GF_INFLATE_RESERVE)];
    static gf_inflate inflate;
    const size_t n = sizeof content - GF_DEFLATE_WINDOW;
    test_random random = {test_environment("GF_TEST_SEED", 20261124)};
    z_stream zlib = {0};
    size_t placeholders = 0;
    make_content(&random, content, sizeof content);
    assert_int_equal(deflateInit2(&zlib, 6, Z_DEFLATED, -15, 8, 0), Z_OK);
    assert_int_equal(deflateSetDictionary(&zlib, content, GF_DEFLATE_WINDOW), Z_OK);
    zlib.next_in = content + GF_DEFLATE_WINDOW;
    zlib.avail_in = (uInt)n;
    zlib.next_out = stream;
    zlib.avail_out = STREAM_BYTES;
    assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    for (size_t i = 0; i < GF_DEFLATE_WINDOW; i++)
        gf_put_little16(memory + 2 * i, (uint32_t)(256 + i));
    unsigned char *start = memory + 2 * (size_t)GF_DEFLATE_WINDOW;
    gf_inflate_out out = {start, memory + sizeof memory, memory, true};
    gf_inflate_start(&inflate, gf_isa_best());
    gf_inflate_set_input(&inflate, stream, 0, zlib.next_out, true);
    while (gf_inflate_run(&inflate, &out) == GF_INFLATE_VALID && !inflate.last)
        continue;
    (void)deflateEnd(&zlib);
    assert_int_equal(out.next - start, 2 * n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t value = gf_little16(start + 2 * i);
        placeholders += value >= 256;
        assert_int_equal(value < 256 ? value : content[value - 256],
                         content[GF_DEFLATE_WINDOW + i]);
    }
    assert_true(placeholders > 0);
}

/* The last bytes of the input, which are decoded by symbol, hold long matches. */
TEST(output_is_bounded_at_the_end_of_the_input) {
    static unsigned char content[150000], stream[STREAM_BYTES], memory[150000 + 2000];
    static gf_inflate inflate;
    test_random random = {1};
    make_content(&random, content, 5000);
    for (size_t i = 5000; i < sizeof content; i++)
        content[i] = i % 1000 == 0 ? (unsigned char)test_below(&random, 256) : content[i - 1000];
    z_stream zlib = {.next_in = content, .avail_in = sizeof content, .next_out = stream};
    zlib.avail_out = STREAM_BYTES;
    assert_int_equal(deflateInit2(&zlib, 9, Z_DEFLATED, -15, 8, 0), Z_OK);
    assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    const size_t size = STREAM_BYTES - zlib.avail_out;
    (void)deflateEnd(&zlib);
    for (size_t limit = GF_INFLATE_RESERVE; limit < GF_INFLATE_RESERVE + 600; limit++) {
        gf_inflate_out out = {.next = memory, .history = memory};
        gf_inflate_result result;
        gf_inflate_start(&inflate, gf_isa_best());
        gf_inflate_set_input(&inflate, stream, 0, stream + size, true);
        do {
            out.end = out.next + limit;
            assert_true(out.end <= memory + sizeof memory);
            result = gf_inflate_run(&inflate, &out);
            assert_true(out.next <= out.end);
        } while (result == GF_INFLATE_NEEDS_OUTPUT || (!result && !inflate.last));
        assert_int_equal(result, GF_INFLATE_VALID);
        assert_int_equal(out.next - memory, sizeof content);
        assert_memory_equal(memory, content, sizeof content);
    }
}

/* ---- placeholders, resolved ------------------------------------------------------------------ */

TEST(placeholders_are_resolved) {
    enum { MAX_COUNT = 1000 };
    static unsigned char table[256 + GF_DEFLATE_WINDOW], elements[2 * MAX_COUNT],
        memory[2 * MAX_COUNT + 1], wanted[MAX_COUNT];
    test_random random = {test_environment("GF_TEST_SEED", 20261125)};
    static gf_inflate inflate;
    for (size_t i = 0; i < sizeof table; i++)
        table[i] = (unsigned char)(i < 256 ? i : test_below(&random, 256));
    for (uint64_t round = 0; round < test_rounds(300); round++) {
        const size_t count = (size_t)test_below(&random, MAX_COUNT + 1);
        const uint64_t share = 1 + test_below(&random, 200); /* one element of that many */
        for (size_t i = 0; i < count; i++) {
            const uint32_t element =
                (uint32_t)(test_below(&random, share) == 0 ? test_below(&random, sizeof table)
                                                           : test_below(&random, 256));
            gf_put_little16(elements + 2 * i, element);
            wanted[i] = table[element];
        }
        for (gf_isa isa = GF_ISA_PORTABLE; isa < GF_ISA_COUNT; isa++) {
            if (!gf_isa_available(isa))
                continue;
            gf_inflate_start(&inflate, isa);
            memset(memory, PAINT, sizeof memory);
            inflate.simd->resolve(memory, elements, count, table);
            assert_memory_equal(memory, wanted, count);
            assert_int_equal(memory[count], PAINT);
            memcpy(memory, elements, 2 * count);
            inflate.simd->resolve(memory, memory, count, table);
            assert_memory_equal(memory, wanted, count);
            assert_memory_equal(memory + count, elements + count, count);
        }
    }
}

/* ---- search ---------------------------------------------------------------------------------- */

/* Write `bits` bits of a number, the lowest first, at *bit. */
static void put(unsigned char *to, size_t *bit, uint32_t value, unsigned bits) {
    for (unsigned i = 0; i < bits; i++, ++*bit)
        to[*bit / 8] |= (unsigned char)((value >> i & 1) << *bit % 8);
}

/* Put an empty dynamic block: 257 literals and lengths, 1 distance, a code for the end only. */
static void put_dynamic(unsigned char *to, size_t *bit, bool complete) {
    put(to, bit, 0, 1);  /* not the last block */
    put(to, bit, 2, 2);  /* dynamic */
    put(to, bit, 0, 5);  /* 257 literals and lengths */
    put(to, bit, 0, 5);  /* 1 distance */
    put(to, bit, 14, 4); /* 18 code lengths: 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1 */
    for (int i = 0; i < 18; i++)
        /* 18: length 1; 0 and 1: length 2 */
        put(to, bit, i == 2 ? 1 : i == 3 ? 2 : i == 17 && complete ? 2 : 0, 3);
    /* Codes: 18: 0; 0: 10; 1: 11. 138 and 118 zeros, a one, a zero. */
    put(to, bit, 0, 1);
    put(to, bit, 138 - 11, 7);
    put(to, bit, 0, 1);
    put(to, bit, 118 - 11, 7);
    put(to, bit, 3, 2);
    put(to, bit, 1, 2);
    put(to, bit, 0, 1); /* end of block */
}

TEST(starts_by_hand) {
    static gf_inflate_finder finder;
    gf_inflate_start_point found;
    gf_inflate_finder_init(&finder);
    for (size_t start = 0; start < 100; start++) {
        unsigned char data[1000] = {0};
        size_t bit = start;
        put_dynamic(data, &bit, true);
        for (size_t from = 0; from <= start; from += 7) {
            assert_true(gf_inflate_find(&finder, data, sizeof data, from, 2000, &found));
            assert_int_equal(found.bit, start);
            assert_int_equal(found.stored, 0);
        }
        assert_true(gf_inflate_find(&finder, data, sizeof data, start, start + 1, &found));
        assert_false(gf_inflate_find(&finder, data, sizeof data, 0, start, &found));
        assert_false(gf_inflate_find(&finder, data, sizeof data, start + 1, 2000, &found));
        data[start / 8] |= (unsigned char)(1u << start % 8); /* the last block */
        assert_false(gf_inflate_find(&finder, data, sizeof data, 0, 2000, &found));

        memset(data, 0, sizeof data);
        bit = start;
        put_dynamic(data, &bit, false);
        assert_false(gf_inflate_find(&finder, data, sizeof data, 0, 2000, &found));

        /* A stored block of 64 bytes, before zeros: a stored block with a wrong length. */
        memset(data, 0, sizeof data);
        const size_t at = (start + 3 + 7) / 8;
        memcpy(data + at, "\x40\0\xbf\xff", 4);
        bit = 8 * (at + 4 + 64);
        put_dynamic(data, &bit, true);
        assert_true(gf_inflate_find(&finder, data, sizeof data, start, 2000, &found));
        assert_int_equal(found.bit, 8 * at - 3);
        assert_int_equal(found.stored, at);
        data[at] = 63; /* too short */
        data[at + 2] = 0xc0;
        assert_true(gf_inflate_find(&finder, data, sizeof data, start, 2000, &found));
        assert_int_equal(found.bit, 8 * (at + 4 + 64));
        data[at] = 64;
        data[at + 2] = 0xbf;
        data[at + 4 + 64] |= 6; /* an invalid block type after the stored block */
        assert_false(gf_inflate_find(&finder, data, sizeof data, start, 2000, &found));
    }
}

typedef struct block {
    uint64_t start;  /* bit */
    uint64_t length; /* byte of the length of a stored block */
    unsigned type;   /* with the bit of the last block */
    uint32_t size;   /* of a stored block */
} block;

enum { MAX_BLOCKS = 20000 };

/* Decode a stream, and list its blocks. Return their number. */
static size_t list_blocks(const unsigned char *stream, size_t size, block *blocks) {
    static unsigned char memory[MAX_OUTPUT + GF_INFLATE_RESERVE];
    static gf_inflate inflate;
    gf_inflate_out out = {.next = memory, .end = memory + sizeof memory, .history = memory};
    size_t count = 0;
    gf_inflate_start(&inflate, gf_isa_best());
    gf_inflate_set_input(&inflate, stream, 0, stream + size, true);
    while (!inflate.last) {
        unsigned bit;
        const unsigned char *at = gf_inflate_position(&inflate, &bit);
        block *b = &blocks[count++];
        assert_true(count < MAX_BLOCKS);
        b->start = 8 * (uint64_t)(at - stream) + bit;
        b->length = (b->start + 3 + 7) / 8;
        b->type = gf_little16(at) >> bit & 7;
        b->size = gf_little16(stream + b->length);
        assert_int_equal(gf_inflate_run(&inflate, &out), GF_INFLATE_VALID);
    }
    return count;
}

/* Return true if a stored block can be recognised: by a dynamic block after at most three stored
 * ones, or by three stored ones before another one that is not the last. */
static bool is_recognised(const block *blocks, size_t i, size_t count) {
    for (size_t n = 0; n < 3; n++, i++) {
        if (blocks[i].size < 64 || i + 1 == count || blocks[i + 1].type >> 1 == 1 ||
            blocks[i + 1].type == 1)
            return false;
        if (blocks[i + 1].type >> 1 == 2)
            return true;
    }
    return true;
}

/* Every dynamic block of zlib's streams, and every stored block that can be recognised, is found,
 * and hardly anything else. */
TEST(starts_of_streams_are_found) {
    static unsigned char content[MAX_OUTPUT], stream[STREAM_BYTES + GF_INFLATE_LOOKAHEAD];
    static block blocks[MAX_BLOCKS];
    static gf_inflate_finder finder;
    test_random random = {test_environment("GF_TEST_SEED", 20261125)};
    uint64_t dynamic = 0, stored = 0, wrong = 0;
    gf_inflate_finder_init(&finder);
    for (uint64_t round = 0; round < test_rounds(60); round++) {
        const size_t n = 1 + (size_t)test_below(&random, MAX_OUTPUT);
        make_content(&random, content, n);
        const size_t size = compress_any(&random, content, n, stream),
                     padded = size + GF_INFLATE_LOOKAHEAD;
        memset(stream + size, 0, GF_INFLATE_LOOKAHEAD);
        const size_t count = list_blocks(stream, size, blocks);
        for (size_t i = 0; i + 1 < count; i++) {
            const block *b = &blocks[i];
            gf_inflate_start_point found = {0};
            if (b->type == 4) {
                assert_true(
                    gf_inflate_find(&finder, stream, padded, b->start, b->start + 1, &found));
                assert_int_equal(found.bit, b->start);
                dynamic++;
            } else if (b->type == 0 && is_recognised(blocks, i, count)) {
                assert_true(
                    gf_inflate_find(&finder, stream, padded, b->start, 8 * b->length, &found));
                stored += found.stored == b->length;
                wrong += found.stored != b->length;
            }
            wrong += b->type != 0 && gf_inflate_find(&finder, stream, padded, b->start + 1,
                                                     blocks[i + 1].start, &found);
        }
    }
    print_message("%lu dynamic, %lu stored, %lu wrong\n", (unsigned long)dynamic,
                  (unsigned long)stored, (unsigned long)wrong);
    assert_true(dynamic > 100 && stored > 10 && wrong < dynamic / 100);
}

int main(void) {
    return test_main(NULL);
}
