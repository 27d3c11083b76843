/* Deflate decoder: block headers, the search for them, tables, and the end of the input. */
#include "io/flate/inflate.h"

#include <string.h>

#include "io/bytes.h"

/* ---- block headers --------------------------------------------------------------------------- */

enum {
    MAX_BITS = 15, /* maximum length of a literal, length or distance code */
    LENGTH_BITS = GF_DEFLATE_LENGTH_BITS,
    MAX_BYTES = 288,     /* maximum size of a header */
    LOOKAHEAD_BYTES = 16 /* read beyond the bits used */
};

/* Bit buffer. MAX_BYTES + LOOKAHEAD_BYTES are readable: no bounds are checked. */
typedef struct bit_reader {
    const unsigned char *next;
    uint64_t bits;
    uint32_t count; /* valid bits in `bits` */
} bit_reader;

/* Refill to at least 56 bits. */
static inline void header_load(bit_reader *reader) {
    reader->bits |= gf_little64(reader->next) << reader->count;
    reader->next += (63 - reader->count) / 8;
    reader->count |= 56;
}

/* Read up to 16 bits. */
static inline uint32_t header_read_bits(bit_reader *reader, uint32_t n) {
    header_load(reader);
    const uint32_t value = (uint32_t)reader->bits & ((1u << n) - 1);
    reader->count -= n;
    reader->bits >>= n;
    return value;
}

/* Return true if zlib accepts counts[n] codewords of n bits: complete, one of 1 bit, or none. */
static bool header_code_is_valid(const uint32_t counts[MAX_BITS + 1]) {
    uint32_t total = 0, kraft = 0;
    for (uint32_t bits = 1; bits <= MAX_BITS; bits++) {
        total += counts[bits];
        kraft += counts[bits] << (MAX_BITS - bits);
    }
    return kraft == 1 << MAX_BITS || total == 0 || (total == 1 && counts[1] == 1);
}

/* Decoding table, indexed by the next LENGTH_BITS bits. */
typedef struct length_code {
    struct {
        uint8_t symbol, bits;
    } entries[1 << LENGTH_BITS];
} length_code;

/* Read the code of the code length alphabet. Return false if it is incomplete. */
static bool header_length_code(bit_reader *reader, uint32_t count, length_code *code) {
    static const uint8_t reversed4[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    uint8_t lengths[GF_DEFLATE_LENGTHS] = {0};
    /* The next codeword of each length, with its first bit at LENGTH_BITS - 1. */
    uint32_t next_code[LENGTH_BITS + 2] = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bits = header_read_bits(reader, 3);
        lengths[gf_header_sent(i)] = (uint8_t)bits;
        next_code[bits + 1] += (1u << LENGTH_BITS) >> bits;
    }
    next_code[1] = 0; /* unused symbols */
    for (uint32_t bits = 1; bits <= LENGTH_BITS; bits++)
        next_code[bits + 1] += next_code[bits];
    if (next_code[LENGTH_BITS + 1] != 1 << LENGTH_BITS)
        return false;
    for (uint32_t symbol = 0; symbol < GF_DEFLATE_LENGTHS; symbol++) {
        const uint32_t bits = lengths[symbol];
        if (bits == 0)
            continue;
        const uint32_t first =
            (uint32_t)reversed4[next_code[bits] & 15] << 3 | reversed4[next_code[bits] >> 4] >> 1;
        for (uint32_t i = first; i < 1 << LENGTH_BITS; i += 1u << bits) {
            code->entries[i].symbol = (uint8_t)symbol;
            code->entries[i].bits = (uint8_t)bits;
        }
        next_code[bits] += (1u << LENGTH_BITS) >> bits;
    }
    return true;
}

/* Read n code lengths into zeroed `lengths` and count each length. Return false if there is no
 * length to repeat or a repetition exceeds n. */
static bool header_lengths(bit_reader *from, const length_code *code, uint8_t *lengths, uint32_t n,
                           uint32_t counts[MAX_BITS + 1]) {
    static const struct {
        uint8_t min, extra;
    } repetitions[3] = {{3, 2}, {3, 3}, {11, 7}}; /* symbols 16, 17 and 18 */
    bit_reader reader = *from;                    /* a copy is kept in registers */
    bool valid = true;
    for (uint32_t i = 0; i < n && valid;) {
        header_load(&reader);
        const uint32_t index = (uint32_t)reader.bits & ((1 << LENGTH_BITS) - 1);
        const uint8_t symbol = code->entries[index].symbol;
        reader.bits >>= code->entries[index].bits;
        reader.count -= code->entries[index].bits;
        if (symbol < 16) {
            lengths[i++] = symbol;
            counts[symbol]++;
            continue;
        }
        const uint32_t times = repetitions[symbol - 16].min +
                               header_read_bits(&reader, repetitions[symbol - 16].extra);
        const uint8_t repeated = symbol == 16 && i != 0 ? lengths[i - 1] : 0;
        valid = times <= n - i && (symbol != 16 || i != 0);
        if (valid && symbol == 16) /* symbols 17 and 18 repeat 0 */
            memset(lengths + i, repeated, times);
        counts[repeated] += times;
        i += times;
    }
    *from = reader;
    return valid;
}

static bool header_dynamic(bit_reader *reader, gf_inflate_header *header) {
    uint32_t counts[MAX_BITS + 1] = {0}, distance_counts[MAX_BITS + 1] = {0};
    length_code code;
    const uint32_t literals = GF_DEFLATE_END + 1 + header_read_bits(reader, 5),
                   distances = 1 + header_read_bits(reader, 5);
    const uint32_t count = 4 + header_read_bits(reader, 4);
    header->literals = literals;
    header->distances = distances;
    memset(header->lengths, 0, sizeof header->lengths);
    if (literals > GF_DEFLATE_LITERALS || distances > GF_DEFLATE_DISTANCES ||
        !header_length_code(reader, count, &code) ||
        !header_lengths(reader, &code, header->lengths, literals + distances, counts))
        return false;
    for (uint32_t i = 0; i < distances; i++) {
        counts[header->lengths[literals + i]]--;
        distance_counts[header->lengths[literals + i]]++;
    }
    return header->lengths[GF_DEFLATE_END] != 0 && header_code_is_valid(counts) &&
           header_code_is_valid(distance_counts);
}

gf_inflate_result gf_inflate_header_read(const unsigned char *data, size_t size, unsigned bit,
                                         gf_inflate_header *header) {
    static const uint8_t fixed_runs[][2] = {{144, 8}, {112, 9}, {24, 7}, {8, 8}, {32, 5}};
    unsigned char padded[MAX_BYTES + LOOKAHEAD_BYTES] = {0};
    bool valid = true;
    if (size < sizeof padded)
        data = memcpy(padded, data, size);
    bit_reader reader = {.next = data};
    header->stored = 0;
    (void)header_read_bits(&reader, bit);
    header->last = header_read_bits(&reader, 1) != 0;
    const uint32_t kind = header_read_bits(&reader, 2);
    if (kind == GF_INFLATE_STORED) {
        (void)header_read_bits(&reader, reader.count % 8);
        header->stored = header_read_bits(&reader, 16);
        valid = header->stored == (header_read_bits(&reader, 16) ^ 0xffff);
    } else if (kind == GF_INFLATE_DYNAMIC) {
        valid = header_dynamic(&reader, header);
    } else if (kind == GF_INFLATE_FIXED) {
        uint8_t *to = header->lengths;
        header->literals = GF_DEFLATE_LITERALS + 2;
        header->distances = GF_DEFLATE_DISTANCES + 2;
        for (size_t i = 0; i < sizeof fixed_runs / sizeof *fixed_runs; to += fixed_runs[i++][0])
            memset(to, fixed_runs[i][1], fixed_runs[i][0]);
    } else {
        valid = false;
    }
    header->kind = (gf_inflate_kind)kind;
    header->bits = 8 * (uint32_t)(reader.next - data) - reader.count;
    return (header->bits + 7) / 8 > size ? GF_INFLATE_TRUNCATED
           : valid                       ? GF_INFLATE_VALID
                                         : GF_INFLATE_INVALID;
}

/* ---- search ---------------------------------------------------------------------------------- */

enum {
    LOAD_BYTES = 5,  /* bytes whose bits are tested per step */
    GROUP_BITS = 12, /* four code lengths of 3 bits */
    STORED_MIN = 64, /* shorter stored blocks are not searched: equal bytes occur by chance */
    STORED_CHAIN = 3 /* consecutive stored blocks to check */
};

void gf_inflate_finder_init(gf_inflate_finder *finder) {
    for (uint32_t group = 0; group < 1 << GROUP_BITS; group++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < GROUP_BITS; i += 3) {
            const uint32_t length = group >> i & 7; /* 0: unused symbol */
            sum += length != 0 ? (1u << LENGTH_BITS) >> length : 0;
        }
        finder->kraft[group] = (uint16_t)sum;
    }
}

/* Return the bits, of the low 40, at which a dynamic block that is not the last one may start: its
 * first three bits are 0, 0, 1, and its numbers of codes are valid. */
static uint64_t find_dynamic(uint64_t bits) {
    const uint64_t types = ~bits & ~(bits >> 1) & bits >> 2;
    const uint64_t ones2 = bits & bits >> 1, ones4 = ones2 & ones2 >> 2;
    return types & ~(ones4 >> 4) & ~(ones4 >> 9) & ((UINT64_C(1) << 8 * LOAD_BYTES) - 1);
}

/* Return true if the code length code of a dynamic header is complete. */
static bool find_is_complete(const gf_inflate_finder *finder, const unsigned char *data,
                             uint32_t bit) {
    const uint64_t low = gf_little64(data) >> bit, mask = (1 << GROUP_BITS) - 1;
    const uint32_t count = 3 * (4 + (uint32_t)(low >> 13 & 15));
    uint64_t lengths = low >> 17 | gf_little64(data + 7) << (39 - bit);
    lengths &= (UINT64_C(1) << count) - 1;
    const uint16_t *kraft = finder->kraft;
    return kraft[lengths & mask] + kraft[lengths >> 12 & mask] + kraft[lengths >> 24 & mask] +
               kraft[lengths >> 36 & mask] + kraft[lengths >> 48] ==
           1 << LENGTH_BITS;
}

/* Return true if a stored block's data begins 4 bytes after data[0]. Rows of small differences
 * contain such bytes by chance (0, 255, 255, 0). Therefore a dynamic block must follow, or stored
 * ones; any bits are valid after the header of a fixed block. */
static bool find_is_stored(const unsigned char *data, const unsigned char *end) {
    if (data[-1] >= 0x20)
        return false;
    for (int i = 0; i < STORED_CHAIN; i++) {
        const uint32_t size = gf_little16(data);
        const unsigned char *next = data + 4 + size;
        gf_inflate_header header;
        if (size < STORED_MIN)
            return false;
        if (next >= end)
            return true;
        const gf_inflate_result result =
            gf_inflate_header_read(next, (size_t)(end - next), 0, &header);
        if (result)
            return result == GF_INFLATE_TRUNCATED;
        if (header.kind != GF_INFLATE_STORED)
            return header.kind == GF_INFLATE_DYNAMIC;
        if (header.last) /* too little evidence */
            return false;
        data = next + 1;
    }
    return true;
}

bool gf_inflate_find(const gf_inflate_finder *finder, const unsigned char *data, size_t size,
                     uint64_t from, uint64_t to, gf_inflate_start_point *found) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const unsigned char *const end = data + size;
    gf_inflate_header header;
    for (uint64_t at = from / 8; 8 * at < to && at + GF_INFLATE_LOOKAHEAD <= size;
         at += LOAD_BYTES) {
        const uint64_t bits = gf_little64(data + at);
        /* 16 ones at a byte: the two bytes there and the following two are complements. */
        const uint64_t complements = bits ^ bits >> 16;
        const uint64_t pairs = complements & complements >> 8;
        if ((~pairs - ones) & pairs & (ones << 7)) /* a byte may be 255 */
            for (uint64_t k = 0; k < LOAD_BYTES; k++)
                if ((pairs >> 8 * k & 255) == 255 && 8 * (at + k) >= from + 3 &&
                    8 * (at + k) < to + 3 && find_is_stored(data + at + k, end)) {
                    *found = (gf_inflate_start_point){8 * (at + k) - 3, at + k};
                    return true;
                }
        for (uint64_t set = find_dynamic(bits); set != 0; set &= set - 1) {
            const uint64_t position = 8 * at + (uint32_t)__builtin_ctzll(set);
            const unsigned char *block = data + position / 8;
            const uint32_t bit = position % 8;
            if (position >= from && position < to && find_is_complete(finder, block, bit) &&
                !gf_inflate_header_read(block, (size_t)(end - block), bit, &header)) {
                *found = (gf_inflate_start_point){position, 0};
                return true;
            }
        }
    }
    return false;
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum { INVALID_ENTRY = GF_ENTRY_STOP | 1 << 16 };

/* A code: the symbols by the length of their codewords, and the codewords, first bit lowest. */
typedef struct sorted_code {
    uint32_t count, max;          /* number of codewords; their maximum length */
    uint32_t first[MAX_BITS + 2]; /* index of the first codeword of each length */
    uint16_t symbols[GF_DEFLATE_LITERALS + 2], codewords[GF_DEFLATE_LITERALS + 2];
} sorted_code;

static inline uint32_t table_entry(uint32_t symbol_entry, uint32_t bits) {
    return symbol_entry + (symbol_entry & GF_ENTRY_LITERAL ? bits : bits << 8 | bits);
}

/* Store the codewords of more than table_bits bits. Return the entries of the table. */
static uint32_t table_add_subtables(uint32_t *table, uint32_t table_bits, const sorted_code *code,
                                    const uint32_t *entries) {
    const uint32_t sub_bits = code->max - table_bits, mask = (1u << table_bits) - 1;
    uint32_t used = 1u << table_bits, prefix = UINT32_MAX, bits = table_bits + 1;
    for (uint32_t i = code->first[bits]; i < code->count; i++) {
        while (i == code->first[bits + 1])
            bits++;
        const uint32_t codeword = code->codewords[i];
        if (prefix != (codeword & mask)) {
            prefix = codeword & mask;
            table[prefix] = GF_ENTRY_SUBTABLE | used << 16 | sub_bits << 8 | table_bits;
            used += 1u << sub_bits;
        }
        uint32_t *sub = table + used - (1u << sub_bits);
        const uint32_t entry = table_entry(entries[code->symbols[i]], bits - table_bits);
        for (uint32_t k = codeword >> table_bits; k < 1u << sub_bits;
             k += 1u << (bits - table_bits))
            sub[k] = entry;
    }
    return used;
}

/* Build the table of a valid code. The table doubles: at size 2^n, the codewords of n bits are
 * added, and then all entries are repeated. Return the entries of the table. */
static uint32_t table_build(uint32_t *table, uint32_t table_bits, const uint8_t *lengths,
                            uint32_t n, const uint32_t *entries) {
    uint32_t at[MAX_BITS + 2] = {0}, codeword = 0;
    sorted_code code;
    for (uint32_t i = 0; i < n; i++)
        at[lengths[i] + 1]++;
    at[1] = 0;
    for (uint32_t bits = 1; bits <= MAX_BITS; bits++)
        at[bits + 1] += at[bits];
    memcpy(code.first, at, sizeof at);
    code.count = at[MAX_BITS + 1];
    for (uint32_t i = 0; i < n; i++)
        if (lengths[i] != 0)
            code.symbols[at[lengths[i]]++] = (uint16_t)i;
    code.max = MAX_BITS;
    while (code.max > 0 && code.first[code.max] == code.count)
        code.max--;
    for (uint32_t bits = 1; bits <= code.max; bits++)
        for (uint32_t i = code.first[bits]; i < code.first[bits + 1]; i++) {
            /* Add 1 to the codeword read from its last bit. */
            uint32_t bit = 1u << (bits - 1);
            code.codewords[i] = (uint16_t)codeword;
            while (codeword & bit)
                bit >>= 1;
            codeword = bit != 0 ? (codeword & (bit - 1)) | bit : 0;
        }
    /* Incomplete codes have at most one codeword, of one bit. */
    table[0] = table[1] = INVALID_ENTRY | 1;
    for (uint32_t bits = 1; bits <= table_bits; bits++) {
        const uint32_t half = 1u << (bits - 1);
        if (bits > 1)
            memcpy(table + half, table, half * sizeof *table);
        for (uint32_t i = code.first[bits]; i < code.first[bits + 1]; i++)
            table[code.codewords[i]] = table_entry(entries[code.symbols[i]], bits);
    }
    return code.max > table_bits ? table_add_subtables(table, table_bits, &code, entries)
                                 : 1u << table_bits;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Short blocks are decoded without packed entries: packing one takes as long as up to a byte. */
enum { PACK_AFTER = 4 /* entries per byte */ };

void gf_inflate_start(gf_inflate *inflate, gf_isa isa) {
    static const gf_inflate_simd *const levels[GF_ISA_COUNT] = GF_LEVELS(gf_inflate_simd);
    uint32_t *const literals = inflate->literal_symbols, *const distances =
                                                             inflate->distance_symbols;
    memset(inflate, 0, offsetof(gf_inflate, literal_symbols));
    inflate->simd = levels[isa];
    for (uint32_t i = 0; i < GF_DEFLATE_END; i++)
        literals[i] = GF_ENTRY_LITERAL | i << 8;
    literals[GF_DEFLATE_END] = GF_ENTRY_STOP;
    uint32_t base = GF_DEFLATE_MIN_MATCH;
    for (uint32_t i = GF_DEFLATE_FIRST_LENGTH; i < GF_DEFLATE_LITERALS - 1; i++) {
        literals[i] = base << 16 | gf_literal_extra_bits(i);
        base += 1u << gf_literal_extra_bits(i);
    }
    literals[GF_DEFLATE_LITERALS - 1] = GF_DEFLATE_MAX_MATCH << 16;
    base = 1;
    for (uint32_t i = 0; i < GF_DEFLATE_DISTANCES; i++) {
        distances[i] = base << 16 | gf_distance_extra_bits(i);
        base += 1u << gf_distance_extra_bits(i);
    }
    for (uint32_t i = 0; i < 2; i++)
        literals[GF_DEFLATE_LITERALS + i] = distances[GF_DEFLATE_DISTANCES + i] = INVALID_ENTRY;
}

void gf_inflate_set_input(gf_inflate *inflate, const unsigned char *in, unsigned bit,
                          const unsigned char *in_end, bool final_input) {
    inflate->in = in + (bit != 0);
    inflate->bits = bit != 0 ? (uint64_t)*in >> bit : 0;
    inflate->count = bit != 0 ? 8 - bit : 0;
    inflate->in_end = in_end;
    inflate->final_input = final_input;
}

const unsigned char *gf_inflate_position(const gf_inflate *inflate, unsigned *bit) {
    const uint32_t bytes = (inflate->count + 7) / 8;
    *bit = 8 * bytes - inflate->count;
    return inflate->in - bytes;
}

static size_t inflate_capacity(const gf_inflate_out *out) {
    return (size_t)(out->end - out->next) >> out->wide;
}

/* Read the header of a fixed or stored block without the checks of gf_inflate_header_read, where
 * the input is certain to contain it: some streams have many small blocks. */
static bool inflate_read_quickly(const gf_inflate *inflate, const unsigned char *in, unsigned bit,
                                 gf_inflate_header *header) {
    const uint32_t bits = gf_little16(in) >> bit;
    const unsigned char *data = in + (bit + 3 + 7) / 8;
    header->last = bits & 1;
    header->kind = bits >> 1 & 3;
    header->stored = gf_little16(data);
    header->bits = bit + 3;
    if (header->kind == GF_INFLATE_FIXED)
        return inflate->fixed;
    header->bits = 8 * (uint32_t)(data + 4 - in);
    return header->kind == GF_INFLATE_STORED && header->stored == (gf_little16(data + 2) ^ 0xffff);
}

static gf_inflate_result inflate_begin_block(gf_inflate *inflate) {
    gf_inflate_header header;
    unsigned bit;
    const unsigned char *in = gf_inflate_position(inflate, &bit);
    const size_t size = (size_t)(inflate->in_end - in);
    if (!inflate->final_input && size <= GF_INFLATE_LOOKAHEAD)
        return GF_INFLATE_NEEDS_INPUT;
    if (size <= GF_INFLATE_LOOKAHEAD || !inflate_read_quickly(inflate, in, bit, &header)) {
        const gf_inflate_result result = gf_inflate_header_read(in, size, bit, &header);
        if (result)
            return result;
    }
    inflate->in_block = true;
    inflate->last = header.last;
    inflate->is_stored = header.kind == GF_INFLATE_STORED;
    inflate->stored = header.stored;
    const bool fixed = header.kind == GF_INFLATE_FIXED;
    if (!inflate->is_stored && !(fixed && inflate->fixed)) {
        inflate->literal_entries =
            table_build(inflate->literals, GF_INFLATE_LITERAL_BITS, header.lengths, header.literals,
                        inflate->literal_symbols);
        table_build(inflate->distances, GF_INFLATE_DISTANCE_BITS, header.lengths + header.literals,
                    header.distances, inflate->distance_symbols);
        inflate->fixed = fixed;
        inflate->packed = false;
    }
    gf_inflate_set_input(inflate, in + header.bits / 8, header.bits % 8, inflate->in_end,
                         inflate->final_input);
    return GF_INFLATE_VALID;
}

static gf_inflate_result inflate_copy_stored(gf_inflate *inflate, gf_inflate_out *out) {
    const size_t capacity = inflate_capacity(out), given = (size_t)(inflate->in_end - inflate->in);
    size_t n = inflate->stored < capacity ? inflate->stored : capacity;
    if (n > given)
        n = given;
    if (out->wide)
        for (size_t i = 0; i < n; i++)
            gf_put_little16(out->next + 2 * i, inflate->in[i]);
    else
        memcpy(out->next, inflate->in, n);
    inflate->in += n;
    inflate->stored -= (uint32_t)n;
    out->next += n << out->wide;
    if (inflate->stored == 0)
        return GF_INFLATE_VALID;
    return n == capacity           ? GF_INFLATE_NEEDS_OUTPUT
           : !inflate->final_input ? GF_INFLATE_NEEDS_INPUT
                                   : GF_INFLATE_TRUNCATED;
}

/* Take an entry of the next code. Return false if the input ends before its last bit. */
static bool inflate_take(gf_inflate *inflate, const uint32_t *table, uint32_t table_bits,
                         uint32_t *entry, uint32_t *value) {
    const uint64_t bits = inflate->bits;
    uint32_t skipped = 0;
    *entry = table[bits & ((1u << table_bits) - 1)];
    if (!(*entry & GF_ENTRY_LITERAL) && *entry & GF_ENTRY_SUBTABLE) {
        skipped = table_bits;
        *entry = table[(*entry >> 16) + (bits >> skipped & ((1u << (*entry >> 8 & 15)) - 1))];
    }
    const uint32_t used = *entry & GF_ENTRY_BITS, codeword = *entry >> 8 & 15;
    if (skipped + used > inflate->count)
        return false;
    *value =
        (*entry >> 16) + (uint32_t)((bits >> skipped & (((uint64_t)1 << used) - 1)) >> codeword);
    inflate->bits >>= skipped + used;
    inflate->count -= skipped + used;
    return true;
}

/* Decode one symbol from the final bytes of the input. */
static gf_inflate_result inflate_symbol(gf_inflate *inflate, gf_inflate_out *out) {
    uint32_t entry, length, distance, symbol;
    inflate->bits &= ((uint64_t)1 << inflate->count) - 1;
    while (inflate->count < 56 && inflate->in < inflate->in_end) {
        inflate->bits |= (uint64_t)*inflate->in++ << inflate->count;
        inflate->count += 8;
    }
    if (!inflate_take(inflate, inflate->literals, GF_INFLATE_LITERAL_BITS, &symbol, &length))
        return GF_INFLATE_TRUNCATED;
    if (symbol & GF_ENTRY_LITERAL) {
        out->next[0] = (unsigned char)(symbol >> 8);
        if (out->wide)
            out->next[1] = 0;
        out->next += (size_t)1 << out->wide;
        return GF_INFLATE_NEEDS_OUTPUT;
    }
    if (symbol & GF_ENTRY_STOP)
        return symbol >> 16 ? GF_INFLATE_INVALID_CODE : GF_INFLATE_VALID;
    if (!inflate_take(inflate, inflate->distances, GF_INFLATE_DISTANCE_BITS, &entry, &distance))
        return GF_INFLATE_TRUNCATED;
    if (entry & GF_ENTRY_STOP)
        return GF_INFLATE_INVALID_CODE;
    const size_t back = (size_t)distance << out->wide, size = (size_t)length << out->wide;
    if (back > (size_t)(out->next - out->history))
        return GF_INFLATE_INVALID_DISTANCE;
    for (size_t i = 0; i < size; i++)
        out->next[i] = (out->next - back)[i];
    out->next += size;
    return GF_INFLATE_NEEDS_OUTPUT;
}

static gf_inflate_result inflate_decode(gf_inflate *inflate, const uint32_t *literals,
                                        gf_inflate_out *out) {
    if (inflate->in_end - inflate->in <= GF_INFLATE_LOOKAHEAD)
        return GF_INFLATE_NEEDS_INPUT;
    return (out->wide ? inflate->simd->decode_wide : inflate->simd->decode)(inflate, literals, out);
}

/* Decode the start of a block, and pack the entries if it is not short. Return NEEDS_OUTPUT if the
 * block continues with packed entries. */
static gf_inflate_result inflate_start_packed(gf_inflate *inflate, gf_inflate_out *out) {
    const size_t start = GF_INFLATE_RESERVE + (1 << GF_INFLATE_LITERAL_BITS) / PACK_AFTER;
    gf_inflate_out first = *out;
    if (inflate_capacity(out) > start)
        first.end = out->next + (start << out->wide);
    const gf_inflate_result result = inflate_decode(inflate, inflate->literals, &first);
    out->next = first.next;
    if (result == GF_INFLATE_NEEDS_OUTPUT) {
        inflate->simd->pack(inflate);
        inflate->packed = true;
    }
    return result;
}

gf_inflate_result gf_inflate_run(gf_inflate *inflate, gf_inflate_out *out) {
    gf_inflate_result result = inflate->in_block ? GF_INFLATE_VALID : inflate_begin_block(inflate);
    if (result)
        return result;
    result = GF_INFLATE_NEEDS_OUTPUT;
    if (inflate->is_stored) {
        result = inflate_copy_stored(inflate, out);
    } else if (inflate_capacity(out) >= GF_INFLATE_RESERVE) {
        if (!inflate->packed)
            result = inflate_start_packed(inflate, out);
        if (inflate->packed)
            result = inflate_decode(inflate, inflate->packed_literals, out);
        if (result == GF_INFLATE_NEEDS_INPUT && inflate->final_input)
            for (result = GF_INFLATE_NEEDS_OUTPUT;
                 result == GF_INFLATE_NEEDS_OUTPUT && inflate_capacity(out) >= GF_INFLATE_RESERVE;)
                result = inflate_symbol(inflate, out);
    }
    inflate->in_block = result != GF_INFLATE_VALID;
    return result;
}

/* ---- whole streams --------------------------------------------------------------------------- */

static bool inflate_ended(const gf_inflate *inflate) {
    return inflate->last && !inflate->in_block;
}

/* Decode up to where decode_pair can continue. Return false and the result if the stream ends. */
static bool inflate_prepare_pair(gf_inflate *inflate, gf_inflate_out *out,
                                 gf_inflate_result *result) {
    for (*result = GF_INFLATE_VALID; !inflate_ended(inflate);) {
        if (!inflate->in_block && (*result = inflate_begin_block(inflate)))
            return false;
        const bool fast = !inflate->is_stored &&
                          inflate->in_end - inflate->in > GF_INFLATE_LOOKAHEAD &&
                          inflate_capacity(out) >= GF_INFLATE_RESERVE;
        if (fast && inflate->packed)
            return true;
        *result = fast ? inflate_start_packed(inflate, out) : gf_inflate_run(inflate, out);
        inflate->in_block = *result != GF_INFLATE_VALID;
        if (*result && (!fast || gf_inflate_is_failed(*result)))
            return false;
    }
    return false;
}

void gf_inflate_run_streams(uint32_t count, gf_inflate *const inflate[2],
                            gf_inflate_out *const out[2], gf_inflate_result results[2]) {
    bool running[2] = {true, count == 2};
    while (running[0] && running[1]) {
        for (uint32_t i = 0; i < 2; i++)
            running[i] = inflate_prepare_pair(inflate[i], out[i], &results[i]);
        if (!running[0] || !running[1])
            break;
        inflate[0]->simd->decode_pair(inflate, out, results);
        for (uint32_t i = 0; i < 2; i++) {
            inflate[i]->in_block = results[i] != GF_INFLATE_VALID;
            running[i] = !gf_inflate_is_failed(results[i]);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!running[i])
            continue;
        results[i] = GF_INFLATE_VALID;
        while (!results[i] && !inflate_ended(inflate[i]))
            results[i] = gf_inflate_run(inflate[i], out[i]);
    }
}
