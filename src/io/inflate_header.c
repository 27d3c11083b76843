#include "io/inflate_header.h"

#include <string.h>

#include "io/bytes.h"

enum {
    MAX_BITS = 15, /* of a literal, length or distance code */
    END_OF_BLOCK = 256,
    MAX_LITERALS = 286,
    MAX_DISTANCES = 30,
    LENGTH_CODES = 19, /* the codes in which code lengths are written */
    LENGTH_BITS = 7,
    FIRST_TABLE_BITS = 12,
    MAX_BYTES = 288, /* of a header */
    AHEAD_BYTES = 16 /* read behind the bits that are taken */
};

/* A header, and so much behind it that nothing needs to be tested while bits are taken. */
typedef struct bit_reader {
    const unsigned char *next;
    uint64_t bits;
    uint32_t count; /* of valid bits in `bits` */
} bit_reader;

/* Make at least 56 bits valid. */
static inline void header_load(bit_reader *reader) {
    uint64_t more;
    memcpy(&more, reader->next, sizeof more);
    reader->bits |= (gf_host_is_little() ? more : __builtin_bswap64(more)) << reader->count;
    reader->next += (63 - reader->count) / 8;
    reader->count |= 56;
}

static inline void header_drop(bit_reader *reader, uint32_t n) {
    reader->count -= n;
    reader->bits >>= n;
}

/* Take up to 16 bits. */
static inline uint32_t header_take(bit_reader *reader, uint32_t n) {
    header_load(reader);
    const uint32_t value = (uint32_t)reader->bits & ((1u << n) - 1);
    header_drop(reader, n);
    return value;
}

/* Does zlib accept a code with words[n] words of n bits? It does if every sequence of bits
 * begins with a word, if the only word has one bit, or if there are no words. */
static bool header_is_code(const uint32_t words[MAX_BITS + 1]) {
    uint32_t all = 0, covered = 0;
    for (uint32_t bits = 1; bits <= MAX_BITS; bits++) {
        all += words[bits];
        covered += words[bits] << (MAX_BITS - bits);
    }
    return covered == 1 << MAX_BITS || all == 0 || (all == 1 && words[1] == 1);
}

/* By the next LENGTH_BITS bits. */
typedef struct length_code {
    struct {
        uint8_t symbol, bits;
    } entries[1 << LENGTH_BITS];
} length_code;

/* Read the code in which the lengths of the others are written. False if it is not complete. */
static bool header_length_code(bit_reader *reader, uint32_t count, length_code *code) {
    static const uint8_t order[LENGTH_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    static const uint8_t reversed4[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    uint8_t lengths[LENGTH_CODES] = {0};
    /* The next word of each length. Its first bit is bit LENGTH_BITS - 1. */
    uint32_t word[LENGTH_BITS + 2] = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bits = header_take(reader, 3);
        lengths[order[i]] = (uint8_t)bits;
        word[bits + 1] += (1u << LENGTH_BITS) >> bits;
    }
    word[1] = 0; /* of unused symbols */
    for (uint32_t bits = 1; bits <= LENGTH_BITS; bits++)
        word[bits + 1] += word[bits];
    if (word[LENGTH_BITS + 1] != 1 << LENGTH_BITS)
        return false;
    for (uint32_t symbol = 0; symbol < LENGTH_CODES; symbol++) {
        const uint32_t bits = lengths[symbol];
        if (bits == 0)
            continue;
        const uint32_t first =
            (uint32_t)reversed4[word[bits] & 15] << 3 | reversed4[word[bits] >> 4] >> 1;
        for (uint32_t i = first; i < 1 << LENGTH_BITS; i += 1u << bits) {
            code->entries[i].symbol = (uint8_t)symbol;
            code->entries[i].bits = (uint8_t)bits;
        }
        word[bits] += (1u << LENGTH_BITS) >> bits;
    }
    return true;
}

/* Read n lengths, which are 0 so far, and count how often each occurs. False for a repetition of
 * nothing or past the end. */
static bool header_lengths(bit_reader *from, const length_code *code, uint8_t *lengths, uint32_t n,
                           uint32_t words[MAX_BITS + 1]) {
    static const struct {
        uint8_t least, extra;
    } repetitions[3] = {{3, 2}, {3, 3}, {11, 7}}; /* symbols from 16 */
    bit_reader reader = *from;                    /* a copy, which stays in registers */
    bool good = true;

    for (uint32_t i = 0; i < n && good;) {
        header_load(&reader);
        const uint32_t index = (uint32_t)reader.bits & ((1 << LENGTH_BITS) - 1);
        const uint8_t symbol = code->entries[index].symbol;
        header_drop(&reader, code->entries[index].bits);
        if (symbol < 16) {
            lengths[i++] = symbol;
            words[symbol]++;
            continue;
        }
        const uint32_t times =
            repetitions[symbol - 16].least + header_take(&reader, repetitions[symbol - 16].extra);
        const uint8_t repeated = symbol == 16 && i != 0 ? lengths[i - 1] : 0;
        good = times <= n - i && (symbol != 16 || i != 0);
        if (good && symbol == 16) /* the others are 0 already */
            memset(lengths + i, repeated, times);
        words[repeated] += times;
        i += times;
    }
    *from = reader;
    return good;
}

static uint32_t header_long_codes(const uint8_t *lengths, uint32_t literals,
                                  const uint32_t words[MAX_BITS + 1]) {
    uint32_t count = words[13] + words[14] + words[15];

    /* 265 to 284 stand for 2, 4, 8, 16 or 32 match lengths each. */
    for (uint32_t i = 265; i < literals && i < 285; i++) {
        const uint32_t extra = (i - 261) / 4;
        if (lengths[i] + extra > FIRST_TABLE_BITS)
            count += (1u << extra) - (lengths[i] > FIRST_TABLE_BITS);
    }
    return count;
}

static bool header_dynamic(bit_reader *reader, gf_inflate_header *header) {
    uint8_t lengths[MAX_LITERALS + MAX_DISTANCES] = {0};
    uint32_t words[MAX_BITS + 1] = {0}, distance_words[MAX_BITS + 1] = {0};
    length_code code;
    const uint32_t literals = END_OF_BLOCK + 1 + header_take(reader, 5),
                   distances = 1 + header_take(reader, 5);
    const uint32_t count = 4 + header_take(reader, 4);
    if (literals > MAX_LITERALS || distances > MAX_DISTANCES ||
        !header_length_code(reader, count, &code) ||
        !header_lengths(reader, &code, lengths, literals + distances, words))
        return false;
    for (uint32_t i = 0; i < distances; i++) {
        words[lengths[literals + i]]--;
        distance_words[lengths[literals + i]]++;
    }
    header->long_codes = header_long_codes(lengths, literals, words);
    return lengths[END_OF_BLOCK] != 0 && header_is_code(words) && header_is_code(distance_words);
}

gf_inflate_verdict gf_inflate_header_read(const unsigned char *data, size_t size, unsigned bit,
                                          gf_inflate_header *header) {
    unsigned char padded[MAX_BYTES + AHEAD_BYTES] = {0};
    bool good = true;

    if (size < sizeof padded)
        data = memcpy(padded, data, size);
    bit_reader reader = {.next = data};
    (void)header_take(&reader, bit);
    *header = (gf_inflate_header){.last = header_take(&reader, 1) != 0};
    const uint32_t kind = header_take(&reader, 2);
    if (kind == GF_INFLATE_STORED) {
        (void)header_take(&reader, reader.count % 8);
        header->stored = header_take(&reader, 16);
        good = header->stored == (header_take(&reader, 16) ^ 0xffff);
    } else if (kind == GF_INFLATE_DYNAMIC) {
        good = header_dynamic(&reader, header);
    } else {
        good = kind == GF_INFLATE_FIXED;
    }
    header->kind = (gf_inflate_kind)kind;
    header->bytes = (uint32_t)(reader.next - data) - reader.count / 8;
    return header->bytes > size ? GF_INFLATE_SHORT : good ? GF_INFLATE_GOOD : GF_INFLATE_BAD;
}
