/* Huffman codes, block headers and runs of the deflate encoder (RFC 1951). CPU and GPU use the same
 * functions, in integers, and therefore write the same bits. */
#ifndef GF_DEFLATE_CODE_H
#define GF_DEFLATE_CODE_H

#include "core/machine.h"

enum {
    GF_DEFLATE_LITERALS = 286, /* literals, end of block, lengths */
    GF_DEFLATE_DISTANCES = 30,
    GF_DEFLATE_LENGTHS = 19, /* symbols of the code lengths in a header */
    GF_DEFLATE_END = 256,
    GF_DEFLATE_FIRST_LENGTH = 257,
    GF_DEFLATE_MIN_MATCH = 3,
    GF_DEFLATE_MAX_MATCH = 258,
    GF_DEFLATE_WINDOW = 32768,
    /* The format allows 15. With 14, four codewords and up to 7 pending bits fit into 64 bits. */
    GF_DEFLATE_MAX_BITS = 14,
    GF_DEFLATE_LENGTH_BITS = 7,   /* maximum for the code of the code lengths */
    GF_DEFLATE_BLOCK = 1 << 18,   /* maximum bytes per block: bounds the scratch memory and lets
                                     the codes follow the image */
    GF_DEFLATE_STORED = 65535,    /* maximum bytes per stored block */
    GF_DEFLATE_STORED_HEADER = 5, /* bytes of its header, if the block before ends with a byte */
    /* Minimum length of a run. In a smooth image, where a byte takes about 1 bit, runs of 12 to 23
     * save 1 byte each, and take as long to encode as 60 bytes. */
    GF_DEFLATE_RUN = 24,
    /* Bytes compared to detect repeats: noise does not repeat so long a pattern by chance. */
    GF_DEFLATE_PATTERN = 32
};

/* ---- codewords ------------------------------------------------------------------------------- */

/* Codeword in the low 16 bits, first bit lowest, with its length above. Length 0: unused symbol. */
typedef uint32_t gf_deflate_codeword;

GF_BOTH unsigned gf_deflate_bits(gf_deflate_codeword codeword) {
    return codeword >> 16;
}

/* A used symbol. */
typedef struct gf_deflate_leaf {
    uint32_t frequency, symbol;
} gf_deflate_leaf;

/* Memory to make a code. */
typedef struct gf_code_memory {
    gf_deflate_leaf leaves[GF_DEFLATE_LITERALS];
    uint32_t weight[GF_DEFLATE_LITERALS];
    uint16_t parent[2 * GF_DEFLATE_LITERALS], depth[GF_DEFLATE_LITERALS];
    uint8_t bits[GF_DEFLATE_LITERALS];
    unsigned at_depth[16], next_code[16];
} gf_code_memory;

/* Find the parents of all leaves, and of node i at parent[used + i], with Huffman's algorithm:
 * sorted leaves and two queues, as new nodes are in ascending order. Node used - 2 is the root. */
GF_BOTH void gf_code_join_leaves(gf_code_memory *memory, unsigned used) {
    unsigned next_leaf = 0, next_node = 0; /* fronts of the queues */
    for (unsigned made = 0; made + 1 < used; made++) {
        uint32_t sum = 0;
        for (int i = 0; i < 2; i++) {
            /* Read both fronts each time: ptxas 13.0 reads the element after a front where one
             * branch advances it and reads it. */
            const uint32_t none = UINT32_MAX; /* the queue is empty */
            const uint32_t leaf = next_leaf < used ? memory->leaves[next_leaf].frequency : none;
            const uint32_t node = next_node < made ? memory->weight[next_node] : none;
            const bool is_leaf = leaf <= node;
            memory->parent[is_leaf ? next_leaf : used + next_node] = (uint16_t)made;
            sum += is_leaf ? leaf : node;
            next_leaf += is_leaf;
            next_node += !is_leaf;
        }
        memory->weight[made] = sum;
    }
}

/* Leaves moved up to max_bits exceed the Kraft sum: move other leaves down until it is 1. */
GF_BOTH void gf_code_limit_depths(unsigned *at_depth, unsigned max_bits) {
    uint32_t kraft = 0; /* in units of a leaf at max_bits */
    for (unsigned d = 1; d <= max_bits; d++)
        kraft += at_depth[d] << (max_bits - d);
    for (; kraft > 1u << max_bits; kraft--) {
        unsigned d = max_bits - 1;
        while (!at_depth[d])
            d--;
        /* Replace a leaf of depth d by a node of two leaves: itself and one of depth max_bits. */
        at_depth[d]--;
        at_depth[d + 1] += 2;
        at_depth[max_bits]--;
    }
}

/* Return the lowest `bits` bits, at least one, in reverse order. */
GF_BOTH unsigned gf_code_reverse(unsigned code, unsigned bits) {
#ifdef __CUDA_ARCH__
    return __brev(code) >> (32 - bits);
#else
    unsigned reversed = 0;
    for (unsigned i = 0; i < bits; i++)
        reversed |= (code >> i & 1) << (bits - 1 - i);
    return reversed;
#endif
}

/* Complete the list of used symbols: a code has at least two codewords. Return their number. */
GF_BOTH unsigned gf_code_complete(gf_code_memory *memory, unsigned used) {
    for (unsigned s = 0; used < 2; s++)
        if (used == 0 || memory->leaves[0].symbol != s) {
            memory->leaves[used].frequency = 0;
            memory->leaves[used++].symbol = s;
        }
    return used;
}

/* Make a Huffman code from memory->leaves: the `used` symbols of a frequency above 0 among all
 * `count`, sorted by frequency, then by symbol. The code is optimal unless the limit max_bits
 * applies. It is complete: at least two symbols get a codeword, others of frequency 0 none. The sum
 * of the frequencies is below 2^32. */
GF_BOTH void gf_code_assign(gf_code_memory *memory, unsigned used, unsigned count,
                            unsigned max_bits, gf_deflate_codeword *codewords) {
    used = gf_code_complete(memory, used);
    gf_code_join_leaves(memory, used);
    for (unsigned d = 0; d < 16; d++)
        memory->at_depth[d] = 0;
    memory->depth[used - 2] = 0;
    for (unsigned node = used - 2; node-- > 0;)
        memory->depth[node] = (uint16_t)(memory->depth[memory->parent[used + node]] + 1);
    for (unsigned k = 0; k < used; k++) {
        const unsigned d = memory->depth[memory->parent[k]] + 1u;
        memory->at_depth[d < max_bits ? d : max_bits]++;
    }
    gf_code_limit_depths(memory->at_depth, max_bits);
    for (unsigned s = 0; s < count; s++)
        memory->bits[s] = 0;
    unsigned i = used;
    for (unsigned d = 1; d <= max_bits; d++)
        for (unsigned k = 0; k < memory->at_depth[d]; k++)
            memory->bits[memory->leaves[--i].symbol] = (uint8_t)d;
    for (unsigned d = 1, code = 0; d <= max_bits; d++) {
        memory->next_code[d] = code;
        code = (code + memory->at_depth[d]) << 1;
    }
    for (unsigned s = 0; s < count; s++) {
        const unsigned bits = memory->bits[s];
        codewords[s] =
            bits ? gf_code_reverse(memory->next_code[bits]++, bits) | (uint32_t)bits << 16 : 0;
    }
}

/* ---- block header ---------------------------------------------------------------------------- */

enum { GF_REPEAT_PREVIOUS = 16, GF_FEW_ZEROS = 17, GF_MANY_ZEROS = 18 };

/* Codes of a dynamic block, and their encoding in the block header. */
typedef struct gf_deflate_codes {
    gf_deflate_codeword literal[GF_DEFLATE_LITERALS];
    gf_deflate_codeword distance[GF_DEFLATE_DISTANCES];
    uint16_t byte_code[256]; /* codewords of the byte literals: for SIMD, not set on a GPU */
    uint16_t byte_bits[256]; /* and their lengths */
    /* Code lengths of both codes, run-length encoded with the code length alphabet. */
    unsigned literals, distances; /* number of code lengths sent */
    unsigned length_symbols;
    struct {
        uint8_t symbol, extra;
    } length_symbol[GF_DEFLATE_LITERALS + GF_DEFLATE_DISTANCES];
    gf_deflate_codeword length_codeword[GF_DEFLATE_LENGTHS];
    unsigned lengths;     /* number of length_codeword lengths sent */
    uint64_t header_bits; /* size of the block header, with its first 3 bits */
} gf_deflate_codes;

/* Symbol frequencies of a block. */
typedef struct gf_deflate_counts {
    uint32_t literal[GF_DEFLATE_LITERALS];
    uint32_t distance[GF_DEFLATE_DISTANCES];
} gf_deflate_counts;

/* Return the code length symbol whose codeword length is sent at position i. */
GF_BOTH unsigned gf_header_sent(unsigned i) {
    const uint8_t order[GF_DEFLATE_LENGTHS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                               11, 4,  12, 3, 13, 2, 14, 1, 15};
    return order[i];
}

/* Return the length of codeword i of both codes as sent. */
GF_BOTH unsigned gf_header_length(const gf_deflate_codes *codes, unsigned i) {
    return gf_deflate_bits(i < codes->literals ? codes->literal[i]
                                               : codes->distance[i - codes->literals]);
}

/* Encode `run` equal code lengths as code length symbols, from symbol `at` on; codes NULL: only
 * count them. Return the end of the symbols. */
GF_BOTH unsigned gf_header_put_run(gf_deflate_codes *codes, unsigned at, unsigned length,
                                   unsigned run) {
    for (bool first = true; run; first = false) {
        unsigned symbol = length, extra = 0, part = 1;
        if (length == 0 && run > 10) {
            part = run < 138 ? run : 138;
            symbol = GF_MANY_ZEROS;
            extra = part - 11;
        } else if (length == 0 && run >= 3) {
            part = run;
            symbol = GF_FEW_ZEROS;
            extra = part - 3;
        } else if (!first && run >= 3) { /* the first length precedes its repetitions */
            part = run < 6 ? run : 6;
            symbol = GF_REPEAT_PREVIOUS;
            extra = part - 3;
        }
        if (codes) {
            codes->length_symbol[at].symbol = (uint8_t)symbol;
            codes->length_symbol[at].extra = (uint8_t)extra;
        }
        at++;
        run -= part;
    }
    return at;
}

/* Find how many codewords of both codes are sent: up to the last used one. */
GF_BOTH void gf_header_cut_codes(gf_deflate_codes *codes) {
    codes->literals = GF_DEFLATE_LITERALS;
    codes->distances = GF_DEFLATE_DISTANCES;
    while (codes->literals > GF_DEFLATE_FIRST_LENGTH && !codes->literal[codes->literals - 1])
        codes->literals--;
    while (codes->distances > 1 && !codes->distance[codes->distances - 1])
        codes->distances--;
}

/* A header is a sequence of items of at most 17 bits. Return their number. */
GF_BOTH unsigned gf_header_items(const gf_deflate_codes *codes) {
    return 1 + codes->lengths + codes->length_symbols;
}

/* Return item i of the header, the first bit lowest, and the number of its bits. */
GF_BOTH uint32_t gf_header_item(const gf_deflate_codes *codes, unsigned i, bool last,
                                unsigned *bits) {
    if (i == 0) { /* block type, and three sizes */
        *bits = 3 + 5 + 5 + 4;
        return (last ? 1u : 0u) | 2u << 1 | (codes->literals - 257) << 3 |
               (codes->distances - 1) << 8 | (codes->lengths - 4) << 13;
    }
    if (i <= codes->lengths) {
        *bits = 3;
        return gf_deflate_bits(codes->length_codeword[gf_header_sent(i - 1)]);
    }
    const unsigned k = i - 1 - codes->lengths, symbol = codes->length_symbol[k].symbol;
    const gf_deflate_codeword codeword = codes->length_codeword[symbol];
    *bits = gf_deflate_bits(codeword) + (symbol == GF_REPEAT_PREVIOUS ? 2
                                         : symbol == GF_FEW_ZEROS     ? 3
                                         : symbol == GF_MANY_ZEROS    ? 7
                                                                      : 0);
    return (codeword & 0xffff) | (uint32_t)codes->length_symbol[k].extra
                                     << gf_deflate_bits(codeword);
}

/* Find how many codewords of code lengths are sent. */
GF_BOTH void gf_header_cut_lengths(gf_deflate_codes *codes) {
    codes->lengths = GF_DEFLATE_LENGTHS;
    while (codes->lengths > 4 && !codes->length_codeword[gf_header_sent(codes->lengths - 1)])
        codes->lengths--;
}

/* ---- lengths, distances and runs ------------------------------------------------------------- */

/* Symbol and extra bits of a length or distance. */
typedef struct gf_deflate_split {
    unsigned symbol, extra_bits, extra;
} gf_deflate_split;

/* Return floor(log2(x)), x > 0. */
GF_BOTH unsigned gf_log2_floor(uint32_t x) {
#ifdef __CUDA_ARCH__
    return 31u - (unsigned)__clz((int)x);
#else
    return 31u - (unsigned)__builtin_clz(x);
#endif
}

/* length: 3..258 */
GF_BOTH gf_deflate_split gf_split_length(unsigned length) {
    const unsigned l = length - GF_DEFLATE_MIN_MATCH;
    gf_deflate_split split = {GF_DEFLATE_FIRST_LENGTH + l, 0, 0};
    if (length == GF_DEFLATE_MAX_MATCH) {
        split.symbol = GF_DEFLATE_LITERALS - 1;
    } else if (l >= 8) {
        split.extra_bits = gf_log2_floor(l) - 2;
        split.symbol = GF_DEFLATE_FIRST_LENGTH + 4 * split.extra_bits + (l >> split.extra_bits);
        split.extra = l & ((1u << split.extra_bits) - 1);
    }
    return split;
}

/* distance: 1..GF_DEFLATE_WINDOW */
GF_BOTH gf_deflate_split gf_split_distance(unsigned distance) {
    const unsigned d = distance - 1;
    gf_deflate_split split = {d, 0, 0};
    if (d >= 4) {
        split.extra_bits = gf_log2_floor(d) - 1;
        split.symbol = 2 * split.extra_bits + (d >> split.extra_bits);
        split.extra = d & ((1u << split.extra_bits) - 1);
    }
    return split;
}

/* Return the extra bits of a literal symbol. Lengths 265 to 284: 1 to 5, for four symbols each. */
GF_BOTH unsigned gf_literal_extra_bits(unsigned symbol) {
    return symbol >= 265 && symbol < 285 ? (symbol - 261) / 4 : 0;
}

GF_BOTH unsigned gf_distance_extra_bits(unsigned symbol) {
    return symbol >= 4 ? symbol / 2 - 1 : 0;
}

/* A run is a number of bytes that equal their predecessor. It is encoded as matches of distance 1,
 * of maximum length; fewer than GF_DEFLATE_MIN_MATCH bytes at its end are literals. Return the
 * length of the match at byte `at` of a run; 1: it is a literal; 0: a match before covers it. */
GF_BOTH unsigned gf_run_match(size_t at, size_t run) {
    const size_t max = GF_DEFLATE_MAX_MATCH, past = at % max, rest = run - (at - past);
    if (rest < GF_DEFLATE_MIN_MATCH)
        return 1;
    return past ? 0 : (unsigned)(rest < max ? rest : max);
}

/* Return the estimated size of n bytes in stored blocks, in bits. */
GF_BOTH uint64_t gf_stored_bits(size_t n) {
    return 8 * (uint64_t)(n + (n / GF_DEFLATE_STORED + 1) * GF_DEFLATE_STORED_HEADER);
}

/* ---- repeats --------------------------------------------------------------------------------- */

/* Repeats are detected by up to GF_REPEAT_PATTERNS varied patterns, at GF_REPEAT_POSITIONS
 * positions of at least GF_REPEAT_MIN_BYTES bytes. */
enum { GF_REPEAT_POSITIONS = 12, GF_REPEAT_PATTERNS = 4, GF_REPEAT_MIN_BYTES = 4096 };

/* Return position k of n bytes: after the first quarter, and not aligned with rows or tiles. */
GF_BOTH size_t gf_repeat_position(size_t k, size_t n) {
    enum { SKEW = 97 };
    return n / 4 + n / (2 * GF_REPEAT_POSITIONS) * (5 * k % GF_REPEAT_POSITIONS) +
           SKEW * k * k % (n / 8);
}

/* Return whether at least half of the bytes differ from their predecessor. Other patterns, as in
 * flat areas, repeat anywhere. */
GF_BOTH bool gf_repeat_is_varied(const unsigned char *pattern) {
    unsigned changes = 0;
    for (unsigned k = 1; k < GF_DEFLATE_PATTERN; k++)
        changes += pattern[k] != pattern[k - 1];
    return changes >= GF_DEFLATE_PATTERN / 2;
}

#endif
