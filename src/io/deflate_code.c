#include "io/deflate_code.h"

#include <stdbool.h>

/* ---- code lengths ---------------------------------------------------------------------------- */

typedef struct leaf {
    uint32_t frequency;
    uint32_t symbol;
} leaf;

/* Ascending by frequency, then by symbol: there is one order, and so one code. */
static unsigned sort_used(const uint32_t *frequency, unsigned count, leaf *leaves) {
    leaf from[GF_DEFLATE_LITERALS] = {{0, 0}};
    unsigned used = 0;
    for (unsigned s = 0; s < count; s++)
        if (frequency[s])
            from[used++] = (leaf){frequency[s], s};
    /* A stable radix sort; after four passes the last is where the first was. */
    leaf *a = from, *b = leaves;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        unsigned place[257] = {0};
        for (unsigned i = 0; i < used; i++)
            /* cppcheck-suppress uninitvar ; the first `used` are set */
            place[(a[i].frequency >> shift & 255) + 1]++;
        for (unsigned i = 0; i < 256; i++)
            place[i + 1] += place[i];
        for (unsigned i = 0; i < used; i++)
            b[place[a[i].frequency >> shift & 255]++] = a[i];
        leaf *swap = a;
        a = b;
        b = swap;
    }
    memcpy(leaves, from, used * sizeof *leaves);
    return used;
}

/* Huffman's algorithm on sorted leaves with two queues: new nodes come in ascending order. How many
 * leaves lie at each depth is all that is asked for. */
static void count_depths(const leaf *leaves, unsigned used, unsigned *at_depth, unsigned max_bits) {
    uint32_t weight[GF_DEFLATE_LITERALS];
    uint16_t parent[2 * GF_DEFLATE_LITERALS] = {0};
    unsigned depth[GF_DEFLATE_LITERALS];
    unsigned next_leaf = 0, next_node = 0;
    for (unsigned made = 0; made + 1 < used; made++) {
        uint32_t sum = 0;
        for (int i = 0; i < 2; i++) {
            const bool is_leaf =
                next_node == made ||
                (next_leaf < used && leaves[next_leaf].frequency <= weight[next_node]);
            const unsigned child = is_leaf ? next_leaf : used + next_node;
            sum += is_leaf ? leaves[next_leaf++].frequency : weight[next_node++];
            parent[child] = (uint16_t)made;
        }
        weight[made] = sum;
    }
    memset(at_depth, 0, 16 * sizeof *at_depth);
    depth[used - 2] = 0;
    for (unsigned node = used - 2; node-- > 0;)
        depth[node] = depth[parent[used + node]] + 1;
    for (unsigned i = 0; i < used; i++) {
        /* cppcheck-suppress uninitvar ; every leaf has got one */
        const unsigned d = depth[parent[i]] + 1;
        at_depth[d < max_bits ? d : max_bits]++;
    }
}

/* Leaves that were too deep came up to the limit and take more than there is of it: others go down
 * until the code is complete. */
static void limit_depths(unsigned *at_depth, unsigned max_bits) {
    uint32_t taken = 0; /* in leaves of the lowest level */
    for (unsigned d = 1; d <= max_bits; d++)
        taken += at_depth[d] << (max_bits - d);
    for (; taken > 1u << max_bits; taken--) {
        unsigned d = max_bits - 1;
        while (!at_depth[d])
            d--;
        /* One leaf of depth d becomes a node; it and one from the lowest level hang below. */
        at_depth[d]--;
        at_depth[d + 1] += 2;
        at_depth[max_bits]--;
    }
}

/* ---- codes ----------------------------------------------------------------------------------- */

static unsigned reverse(unsigned code, unsigned bits) {
    unsigned reversed = 0;
    for (unsigned i = 0; i < bits; i++)
        reversed |= (code >> i & 1) << (bits - 1 - i);
    return reversed;
}

void gf_deflate_make_code(const uint32_t *frequency, unsigned count, unsigned max_bits,
                          gf_deflate_word *words) {
    leaf leaves[GF_DEFLATE_LITERALS] = {{0, 0}};
    uint8_t bits[GF_DEFLATE_LITERALS] = {0};
    unsigned at_depth[16], next_code[16];
    unsigned used = sort_used(frequency, count, leaves);
    for (unsigned s = 0; used < 2; s++)
        if (!frequency[s])
            leaves[used++] = (leaf){0, s};
    count_depths(leaves, used, at_depth, max_bits);
    limit_depths(at_depth, max_bits);
    unsigned i = used;
    for (unsigned d = 1; d <= max_bits; d++)
        for (unsigned k = 0; k < at_depth[d]; k++)
            bits[leaves[--i].symbol] = (uint8_t)d;
    for (unsigned d = 1, code = 0; d <= max_bits; d++) {
        next_code[d] = code;
        code = (code + at_depth[d]) << 1;
    }
    for (unsigned s = 0; s < count; s++)
        words[s] = bits[s] ? reverse(next_code[bits[s]]++, bits[s]) | (uint32_t)bits[s] << 16 : 0;
}

/* ---- a block's description ------------------------------------------------------------------- */

enum { REPEAT = 16, FEW_ZEROS = 17, MANY_ZEROS = 18 };

static const uint8_t extra_of[19] = {[REPEAT] = 2, [FEW_ZEROS] = 3, [MANY_ZEROS] = 7};
static const uint8_t sent_order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                       11, 4,  12, 3, 13, 2, 14, 1, 15};

static void add_step(gf_deflate_codes *codes, unsigned symbol, unsigned extra) {
    codes->step[codes->steps].symbol = (uint8_t)symbol;
    codes->step[codes->steps++].extra = (uint8_t)extra;
}

static void run_length_code(gf_deflate_codes *codes, const uint8_t *lengths, unsigned count) {
    codes->steps = 0;
    for (unsigned i = 0; i < count;) {
        unsigned run = 1;
        while (i + run < count && lengths[i + run] == lengths[i])
            run++;
        i += run;
        const unsigned length = lengths[i - 1];
        if (length == 0) {
            for (; run > 10; run -= run < 138 ? run : 138)
                add_step(codes, MANY_ZEROS, (run < 138 ? run : 138) - 11);
            if (run >= 3) {
                add_step(codes, FEW_ZEROS, run - 3);
                run = 0;
            }
        } else {
            add_step(codes, length, 0);
            for (run--; run >= 3; run -= run < 6 ? run : 6)
                add_step(codes, REPEAT, (run < 6 ? run : 6) - 3);
        }
        for (; run > 0; run--)
            add_step(codes, length, 0);
    }
}

static unsigned cut_unused(const gf_deflate_word *words, unsigned count, unsigned least) {
    while (count > least && !words[count - 1])
        count--;
    return count;
}

void gf_deflate_make_codes(const gf_deflate_counts *counts, gf_deflate_codes *codes) {
    uint8_t lengths[GF_DEFLATE_LITERALS + GF_DEFLATE_DISTANCES];
    uint32_t frequency[19] = {0};
    gf_deflate_make_code(counts->literal, GF_DEFLATE_LITERALS, GF_DEFLATE_MAX_BITS, codes->literal);
    gf_deflate_make_code(counts->distance, GF_DEFLATE_DISTANCES, GF_DEFLATE_MAX_BITS,
                         codes->distance);
    for (unsigned b = 0; b < 256; b++) {
        codes->byte_code[b] = (uint16_t)codes->literal[b];
        codes->byte_bits[b] = (uint16_t)gf_deflate_bits(codes->literal[b]);
    }
    codes->literals = cut_unused(codes->literal, GF_DEFLATE_LITERALS, 257);
    codes->distances = cut_unused(codes->distance, GF_DEFLATE_DISTANCES, 1);
    for (unsigned i = 0; i < codes->literals; i++)
        lengths[i] = (uint8_t)gf_deflate_bits(codes->literal[i]);
    for (unsigned i = 0; i < codes->distances; i++)
        lengths[codes->literals + i] = (uint8_t)gf_deflate_bits(codes->distance[i]);
    run_length_code(codes, lengths, codes->literals + codes->distances);
    for (unsigned i = 0; i < codes->steps; i++)
        frequency[codes->step[i].symbol]++;
    gf_deflate_make_code(frequency, 19, 7, codes->length_word);
    codes->lengths = 19;
    while (codes->lengths > 4 && !codes->length_word[sent_order[codes->lengths - 1]])
        codes->lengths--;
    codes->head_bits = 3 + 5 + 5 + 4 + 3 * codes->lengths;
    for (unsigned i = 0; i < codes->steps; i++)
        codes->head_bits += gf_deflate_bits(codes->length_word[codes->step[i].symbol]) +
                            extra_of[codes->step[i].symbol];
}

uint64_t gf_deflate_size(const gf_deflate_counts *counts, const gf_deflate_codes *codes) {
    uint64_t bits = codes->head_bits;
    for (unsigned s = 0; s < GF_DEFLATE_LITERALS; s++) {
        /* Lengths 265 to 284 carry 1 to 5 bits, four symbols each. */
        const unsigned extra = s >= 265 && s < 285 ? (s - 261) / 4 : 0;
        bits += (uint64_t)counts->literal[s] * (gf_deflate_bits(codes->literal[s]) + extra);
    }
    for (unsigned s = 0; s < GF_DEFLATE_DISTANCES; s++) {
        const unsigned extra = s >= 4 ? s / 2 - 1 : 0;
        bits += (uint64_t)counts->distance[s] * (gf_deflate_bits(codes->distance[s]) + extra);
    }
    return bits;
}

void gf_deflate_put_head(gf_bit_writer *out, const gf_deflate_codes *codes, int last) {
    gf_put_bits(out, (last ? 1u : 0u) | 2u << 1, 3);
    gf_put_bits(out, codes->literals - 257, 5);
    gf_put_bits(out, codes->distances - 1, 5);
    gf_put_bits(out, codes->lengths - 4, 4);
    for (unsigned i = 0; i < codes->lengths; i++)
        gf_put_bits(out, gf_deflate_bits(codes->length_word[sent_order[i]]), 3);
    for (unsigned i = 0; i < codes->steps; i++) {
        const unsigned symbol = codes->step[i].symbol;
        gf_put_word(out, codes->length_word[symbol]);
        gf_put_bits(out, codes->step[i].extra, extra_of[symbol]);
    }
}
