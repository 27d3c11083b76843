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
    FIRST_TABLE_BITS = 12
};

static uint64_t header_load64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return gf_host_is_little() ? v : __builtin_bswap64(v);
}

typedef struct bit_reader {
    const unsigned char *next, *end;
    uint64_t bits;
    uint32_t count; /* of valid bits in `bits` */
    bool ended;     /* more were taken than there are: the others are 0 */
} bit_reader;

/* Make at least 32 bits valid, or all that are left. */
static inline void header_load(bit_reader *reader) {
    if (reader->count >= 32)
        return;
    if (reader->end - reader->next >= 8) {
        reader->bits |= header_load64(reader->next) << reader->count;
        reader->next += (63 - reader->count) / 8;
        reader->count |= 56;
        return;
    }
    for (; reader->count <= 56 && reader->next < reader->end; reader->count += 8)
        reader->bits |= (uint64_t)*reader->next++ << reader->count;
}

static inline void header_drop(bit_reader *reader, uint32_t n) {
    reader->ended |= n > reader->count;
    reader->count = n > reader->count ? 0 : reader->count - n;
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

typedef struct length_code {
    uint8_t symbol[1 << LENGTH_BITS], bits[1 << LENGTH_BITS]; /* by the next LENGTH_BITS bits */
} length_code;

/* Read the code in which the lengths of the others are written. False if it is not complete. */
static bool header_length_code(bit_reader *reader, uint32_t count, length_code *code) {
    static const uint8_t order[LENGTH_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LENGTH_CODES] = {0};
    uint32_t word = 0; /* of LENGTH_BITS bits, its first bit is the highest */
    for (uint32_t i = 0; i < count; i++)
        lengths[order[i]] = (uint8_t)header_take(reader, 3);
    for (uint32_t bits = 1; bits <= LENGTH_BITS; bits++)
        for (uint32_t symbol = 0; symbol < LENGTH_CODES; symbol++) {
            if (lengths[symbol] != bits)
                continue;
            if (word >> LENGTH_BITS != 0)
                return false;
            uint32_t reversed = 0;
            for (uint32_t i = 0; i < LENGTH_BITS; i++)
                reversed |= (word >> i & 1) << (LENGTH_BITS - 1 - i);
            for (uint32_t i = reversed; i < 1 << LENGTH_BITS; i += 1u << bits) {
                code->symbol[i] = (uint8_t)symbol;
                code->bits[i] = (uint8_t)bits;
            }
            word += 1u << (LENGTH_BITS - bits);
        }
    return word == 1 << LENGTH_BITS;
}

/* Read n lengths, and count how often each occurs. False for a repetition of nothing or past the
 * end, and if the data ends. */
static bool header_lengths(bit_reader *from, const length_code *code, uint8_t *lengths, uint32_t n,
                           uint32_t words[MAX_BITS + 1]) {
    bit_reader reader = *from; /* a copy, which stays in registers */
    bool good = true;

    for (uint32_t i = 0; i < n && good;) {
        header_load(&reader);
        const uint32_t index = (uint32_t)reader.bits & ((1 << LENGTH_BITS) - 1);
        const uint8_t symbol = code->symbol[index];
        header_drop(&reader, code->bits[index]);
        good = !reader.ended;
        if (symbol < 16) {
            lengths[i++] = symbol;
            words[symbol]++;
            continue;
        }
        const uint8_t repeated = symbol == 16 && i != 0 ? lengths[i - 1] : 0;
        const uint32_t times = symbol == 16   ? 3 + header_take(&reader, 2)
                               : symbol == 17 ? 3 + header_take(&reader, 3)
                                              : 11 + header_take(&reader, 7);
        if (times > n - i || (symbol == 16 && i == 0))
            good = false;
        else
            memset(lengths + i, repeated, times);
        words[repeated] += times;
        i += times;
    }
    *from = reader;
    return good && !reader.ended;
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
    bit_reader reader = {.next = data, .end = data + size};
    bool good = true;

    (void)header_take(&reader, bit);
    *header = (gf_inflate_header){.last = header_take(&reader, 1) != 0};
    const uint32_t kind = header_take(&reader, 2);
    if (kind == GF_INFLATE_STORED) {
        (void)header_take(&reader, reader.count % 8);
        header->stored = header_take(&reader, 16);
        good = header->stored == (header_take(&reader, 16) ^ 0xffff);
        header->bytes = (uint32_t)(reader.next - data) - reader.count / 8;
    } else if (kind == GF_INFLATE_DYNAMIC) {
        good = header_dynamic(&reader, header);
    } else {
        good = kind == GF_INFLATE_FIXED;
    }
    header->kind = (gf_inflate_kind)kind;
    return reader.ended ? GF_INFLATE_SHORT : good ? GF_INFLATE_GOOD : GF_INFLATE_BAD;
}
