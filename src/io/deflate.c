/* Deflate encoder. */
#include <math.h>
#include <stdbool.h>

#include "io/bytes.h"
#include "io/deflate.h"

/* ---- code lengths ---------------------------------------------------------------------------- */

typedef struct leaf {
    uint32_t frequency;
    uint32_t symbol;
} leaf;

/* Sort the used symbols by frequency, then by symbol. This makes the code unique. */
static unsigned code_sort_used(const uint32_t *frequency, unsigned count, leaf *leaves) {
    leaf from[GF_DEFLATE_LITERALS] = {{0, 0}};
    unsigned used = 0;
    for (unsigned s = 0; s < count; s++)
        if (frequency[s])
            from[used++] = (leaf){frequency[s], s};
    /* Stable radix sort. After four passes the data is in the first array again. */
    leaf *a = from, *b = leaves;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        unsigned offset[257] = {0};
        for (unsigned i = 0; i < used; i++)
            /* cppcheck-suppress uninitvar ; the first `used` are set */
            offset[(a[i].frequency >> shift & 255) + 1]++;
        for (unsigned i = 0; i < 256; i++)
            offset[i + 1] += offset[i];
        for (unsigned i = 0; i < used; i++)
            b[offset[a[i].frequency >> shift & 255]++] = a[i];
        leaf *swap = a;
        a = b;
        b = swap;
    }
    memcpy(leaves, from, used * sizeof *leaves);
    return used;
}

/* Count the leaves at each depth with Huffman's algorithm: sorted leaves and two queues, because
 * new nodes are created in ascending order. The tree itself is not needed. */
static void code_count_depths(const leaf *leaves, unsigned used, unsigned *at_depth,
                              unsigned max_bits) {
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

/* Leaves moved up to max_bits exceed the Kraft sum: move other leaves down until it is 1. */
static void code_limit_depths(unsigned *at_depth, unsigned max_bits) {
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

/* ---- codes ----------------------------------------------------------------------------------- */

static unsigned reverse(unsigned code, unsigned bits) {
    unsigned reversed = 0;
    for (unsigned i = 0; i < bits; i++)
        reversed |= (code >> i & 1) << (bits - 1 - i);
    return reversed;
}

void gf_deflate_make_code(const uint32_t *frequency, unsigned count, unsigned max_bits,
                          gf_deflate_codeword *codewords) {
    leaf leaves[GF_DEFLATE_LITERALS] = {{0, 0}};
    uint8_t bits[GF_DEFLATE_LITERALS] = {0};
    unsigned at_depth[16], next_code[16];
    unsigned used = code_sort_used(frequency, count, leaves);
    for (unsigned s = 0; used < 2; s++)
        if (!frequency[s])
            leaves[used++] = (leaf){0, s};
    code_count_depths(leaves, used, at_depth, max_bits);
    code_limit_depths(at_depth, max_bits);
    unsigned i = used;
    for (unsigned d = 1; d <= max_bits; d++)
        for (unsigned k = 0; k < at_depth[d]; k++)
            bits[leaves[--i].symbol] = (uint8_t)d;
    for (unsigned d = 1, code = 0; d <= max_bits; d++) {
        next_code[d] = code;
        code = (code + at_depth[d]) << 1;
    }
    for (unsigned s = 0; s < count; s++)
        codewords[s] =
            bits[s] ? reverse(next_code[bits[s]]++, bits[s]) | (uint32_t)bits[s] << 16 : 0;
}

/* ---- block header ---------------------------------------------------------------------------- */

enum { REPEAT_PREVIOUS = 16, FEW_ZEROS = 17, MANY_ZEROS = 18 };

static const uint8_t extra_bits_of[19] = {[REPEAT_PREVIOUS] = 2, [FEW_ZEROS] = 3, [MANY_ZEROS] = 7};
static const uint8_t sent_order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                       11, 4,  12, 3, 13, 2, 14, 1, 15};

static void code_add_length_symbol(gf_deflate_codes *codes, unsigned symbol, unsigned extra) {
    codes->length_symbol[codes->length_symbols].symbol = (uint8_t)symbol;
    codes->length_symbol[codes->length_symbols++].extra = (uint8_t)extra;
}

static void code_run_length_code(gf_deflate_codes *codes, const uint8_t *lengths, unsigned count) {
    codes->length_symbols = 0;
    for (unsigned i = 0; i < count;) {
        unsigned run = 1;
        while (i + run < count && lengths[i + run] == lengths[i])
            run++;
        i += run;
        const unsigned length = lengths[i - 1];
        if (length == 0) {
            for (; run > 10; run -= run < 138 ? run : 138)
                code_add_length_symbol(codes, MANY_ZEROS, (run < 138 ? run : 138) - 11);
            if (run >= 3) {
                code_add_length_symbol(codes, FEW_ZEROS, run - 3);
                run = 0;
            }
        } else {
            code_add_length_symbol(codes, length, 0);
            for (run--; run >= 3; run -= run < 6 ? run : 6)
                code_add_length_symbol(codes, REPEAT_PREVIOUS, (run < 6 ? run : 6) - 3);
        }
        for (; run > 0; run--)
            code_add_length_symbol(codes, length, 0);
    }
}

static unsigned code_cut_unused(const gf_deflate_codeword *codewords, unsigned count,
                                unsigned min) {
    while (count > min && !codewords[count - 1])
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
    codes->literals = code_cut_unused(codes->literal, GF_DEFLATE_LITERALS, 257);
    codes->distances = code_cut_unused(codes->distance, GF_DEFLATE_DISTANCES, 1);
    for (unsigned i = 0; i < codes->literals; i++)
        lengths[i] = (uint8_t)gf_deflate_bits(codes->literal[i]);
    for (unsigned i = 0; i < codes->distances; i++)
        lengths[codes->literals + i] = (uint8_t)gf_deflate_bits(codes->distance[i]);
    code_run_length_code(codes, lengths, codes->literals + codes->distances);
    for (unsigned i = 0; i < codes->length_symbols; i++)
        frequency[codes->length_symbol[i].symbol]++;
    gf_deflate_make_code(frequency, 19, 7, codes->length_codeword);
    codes->lengths = 19;
    while (codes->lengths > 4 && !codes->length_codeword[sent_order[codes->lengths - 1]])
        codes->lengths--;
    codes->header_bits = 3 + 5 + 5 + 4 + 3 * codes->lengths;
    for (unsigned i = 0; i < codes->length_symbols; i++)
        codes->header_bits +=
            gf_deflate_bits(codes->length_codeword[codes->length_symbol[i].symbol]) +
            extra_bits_of[codes->length_symbol[i].symbol];
}

/* Return the size of a block in bits: header, symbols and extra bits. */
static uint64_t deflate_size(const gf_deflate_counts *counts, const gf_deflate_codes *codes) {
    uint64_t bits = codes->header_bits;
    for (unsigned s = 0; s < GF_DEFLATE_LITERALS; s++) {
        /* Lengths 265 to 284 have 1 to 5 extra bits, four symbols per number. */
        const unsigned extra = s >= 265 && s < 285 ? (s - 261) / 4 : 0;
        bits += (uint64_t)counts->literal[s] * (gf_deflate_bits(codes->literal[s]) + extra);
    }
    for (unsigned s = 0; s < GF_DEFLATE_DISTANCES; s++) {
        const unsigned extra = s >= 4 ? s / 2 - 1 : 0;
        bits += (uint64_t)counts->distance[s] * (gf_deflate_bits(codes->distance[s]) + extra);
    }
    return bits;
}

/* Write the block header. */
static void deflate_put_header(gf_bit_writer *out, const gf_deflate_codes *codes, int last) {
    gf_put_bits(out, (last ? 1u : 0u) | 2u << 1, 3);
    gf_put_bits(out, codes->literals - 257, 5);
    gf_put_bits(out, codes->distances - 1, 5);
    gf_put_bits(out, codes->lengths - 4, 4);
    for (unsigned i = 0; i < codes->lengths; i++)
        gf_put_bits(out, gf_deflate_bits(codes->length_codeword[sent_order[i]]), 3);
    for (unsigned i = 0; i < codes->length_symbols; i++) {
        const unsigned symbol = codes->length_symbol[i].symbol;
        gf_put_codeword(out, codes->length_codeword[symbol]);
        gf_put_bits(out, codes->length_symbol[i].extra, extra_bits_of[symbol]);
    }
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Return the number of equal bytes at a and b, at most max. a < b. */
static inline size_t deflate_same_bytes(const unsigned char *a, const unsigned char *b,
                                        size_t max) {
    size_t n = 0;
    for (; n + 8 <= max; n += 8) {
        const uint64_t differ = gf_little64(a + n) ^ gf_little64(b + n);
        if (differ)
            return n + (size_t)__builtin_ctzll(differ) / 8;
    }
    while (n < max && a[n] == b[n])
        n++;
    return n;
}

/* ---- planning -------------------------------------------------------------------------------- */

static void deflate_finish_plan(gf_deflate_plan *plan) {
    plan->counts.literal[GF_DEFLATE_END] = 1;
    plan->literals = 0;
    for (uint32_t t = 0; t < plan->tokens; t++)
        plan->literals += plan->token[t].literals;
    gf_deflate_make_codes(&plan->counts, &plan->codes);
    plan->bits = deflate_size(&plan->counts, &plan->codes);
}

static void deflate_add_token(gf_deflate_plan *plan, size_t literals, size_t length,
                              size_t distance) {
    plan->token[plan->tokens++] =
        (gf_token){(uint32_t)literals, (uint16_t)length, (uint16_t)(distance - 1)};
    plan->counts.literal[gf_split_length((unsigned)length).symbol]++;
    plan->counts.distance[gf_split_distance((unsigned)distance).symbol]++;
}

static void deflate_add_last_literals(gf_deflate_plan *plan, size_t literals) {
    plan->token[plan->tokens++] = (gf_token){.literals = (uint32_t)literals};
}

void gf_sum_byte_counts(const gf_byte_counts *counts, uint32_t sums[256]) {
    for (int b = 0; b < 256; b++) {
        sums[b] = 0;
        for (int k = 0; k < 8; k++)
            sums[b] += counts->table[k][b];
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Encode a run as matches: about 9 bits per length and 1 per distance, less than 1-bit literals. */
static size_t deflate_add_run(gf_deflate_plan *plan, size_t literals, size_t length) {
    size_t done = 0;
    while (length - done >= GF_DEFLATE_MIN_MATCH) {
        const size_t rest = length - done;
        const size_t part = rest < GF_DEFLATE_MAX_MATCH ? rest : GF_DEFLATE_MAX_MATCH;
        deflate_add_token(plan, done ? 0 : literals, part, 1);
        done += part;
    }
    return done;
}

void gf_deflate_plan_runs(const gf_deflate_simd *simd, const unsigned char *src, size_t n,
                          gf_deflate_plan *plan) {
    gf_byte_counts counts = {{{0}}};
    size_t done = 0, i = 1;
    memset(&plan->counts, 0, sizeof plan->counts);
    plan->tokens = 0;
    while ((i = simd->find_run(src, i, n)) < n) {
        const size_t end = i + deflate_same_bytes(src + i - 1, src + i, n - i);
        simd->count(src + done, i - done, &counts);
        done = i + deflate_add_run(plan, i - done, end - i);
        i = end;
    }
    simd->count(src + done, n - done, &counts);
    gf_sum_byte_counts(&counts, plan->counts.literal);
    deflate_add_last_literals(plan, n - done);
    deflate_finish_plan(plan);
}

/* ---- matches --------------------------------------------------------------------------------- */

enum {
    NICE_LENGTH = 64, /* a match of this length ends the search */
    SKIP_TRIGGER = 6  /* log2 of the misses after which the step grows by one byte */
};

static inline uint32_t deflate_hash4(uint32_t v) {
    return v * 2654435761u >> (32 - GF_DEFLATE_HASH_BITS);
}

/* Return the length of the match at `distance`; 0 if there is none. */
static inline size_t deflate_match_at(const unsigned char *src, size_t i, size_t n,
                                      size_t distance) {
    if (distance - 1 >= GF_DEFLATE_WINDOW || distance > i ||
        gf_little32(src + i - distance) != gf_little32(src + i))
        return 0;
    const size_t max = n - i < GF_DEFLATE_MAX_MATCH ? n - i : GF_DEFLATE_MAX_MATCH;
    return deflate_same_bytes(src + i - distance, src + i, max);
}

void gf_deflate_plan_matches(const unsigned char *src, size_t n, size_t pixel, size_t row,
                             gf_deflate_hash *hash, gf_deflate_plan *plan) {
    size_t done = 0, i = 0, misses = 0, continued = 0;
    memset(&plan->counts, 0, sizeof plan->counts);
    memset(hash, 0, sizeof *hash);
    plan->tokens = 0;
    while (i + 8 <= n) {
        const uint32_t h = deflate_hash4(gf_little32(src + i));
        size_t distance = i + 1 - hash->position[h]; /* i + 1 is out of range: new hash */
        hash->position[h] = (uint32_t)(i + 1);
        size_t length = deflate_match_at(src, i, n, distance);
        const size_t candidates[] = {continued, pixel, row};
        for (int k = continued ? 0 : 1; k < 3 && length < (k ? NICE_LENGTH : GF_DEFLATE_MAX_MATCH);
             k++) {
            const size_t candidate = deflate_match_at(src, i, n, candidates[k]);
            if (candidate > length) {
                length = candidate;
                distance = candidates[k];
            }
        }
        /* A match of the maximum length may continue. */
        continued = length == GF_DEFLATE_MAX_MATCH ? distance : 0;
        if (length < 4) {
            /* Without matches, the step between searched positions grows. */
            i += 1 + (misses++ >> SKIP_TRIGGER);
            continue;
        }
        misses = 0;
        /* The match may start in the skipped bytes. */
        while (i > done && i > distance && length < GF_DEFLATE_MAX_MATCH &&
               src[i - 1] == src[i - 1 - distance]) {
            i--;
            length++;
        }
        for (size_t k = done; k < i; k++)
            plan->counts.literal[src[k]]++;
        deflate_add_token(plan, i - done, length, distance);
        for (size_t k = i + 1; k < i + length && k + 4 <= n; k += 1 + (length >> 4))
            hash->position[deflate_hash4(gf_little32(src + k))] = (uint32_t)(k + 1);
        i += length;
        done = i;
    }
    for (size_t k = done; k < n; k++)
        plan->counts.literal[src[k]]++;
    deflate_add_last_literals(plan, n - done);
    deflate_finish_plan(plan);
}

/* ---- repeats --------------------------------------------------------------------------------- */

/* Return true if at least half of the bytes differ from their predecessor. Other patterns, as in
 * flat areas, repeat anywhere. */
static bool deflate_is_varied(const unsigned char *pattern) {
    unsigned changes = 0;
    for (unsigned k = 1; k < GF_DEFLATE_PATTERN; k++)
        changes += pattern[k] != pattern[k - 1];
    return changes >= GF_DEFLATE_PATTERN / 2;
}

bool gf_deflate_has_repeats(const gf_deflate_simd *simd, const unsigned char *src, size_t n) {
    enum { POSITIONS = 12, PATTERNS = 4, MIN_BYTES = 4096, SKEW = 97 };
    if (n < MIN_BYTES)
        return false;
    for (size_t k = 0, probed = 0; k < POSITIONS && probed < PATTERNS; k++) {
        /* After the first quarter, and not aligned with rows or tiles. */
        const size_t at =
            n / 4 + n / (2 * POSITIONS) * (5 * k % POSITIONS) + SKEW * k * k % (n / 8);
        const size_t before = at < GF_DEFLATE_WINDOW ? at : GF_DEFLATE_WINDOW;
        if (!deflate_is_varied(src + at))
            continue;
        if (simd->find_pattern(src + at, src + at - before, before))
            return true;
        probed++;
    }
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

enum { STORED = 65535 }; /* maximum bytes per stored block */

size_t gf_deflate_bound(size_t n) {
    return n + (n / STORED + 1) * 5 + 32;
}

static uint64_t deflate_stored_bits(size_t n) {
    return 8 * (uint64_t)(n + (n / STORED + 1) * 5);
}

void gf_deflate_write_stored(const unsigned char *src, size_t n, int last, gf_bit_writer *out) {
    do {
        const size_t part = n < STORED ? n : STORED;
        gf_put_bits(out, last && part == n, 3);
        gf_align_bits(out);
        gf_put_bits(out, part | (~part & 0xffff) << 16, 32);
        memcpy(out->at, src, part);
        out->at += part;
        src += part;
        n -= part;
    } while (n);
}

void gf_deflate_write(const gf_deflate_simd *simd, const gf_deflate_plan *plan,
                      const unsigned char *src, size_t n, int last, gf_bit_writer *out) {
    const gf_deflate_codes *codes = &plan->codes;
    if (plan->bits >= deflate_stored_bits(n)) {
        gf_deflate_write_stored(src, n, last, out);
        return;
    }
    deflate_put_header(out, codes, last);
    for (uint32_t t = 0; t < plan->tokens; t++) {
        const gf_token *token = &plan->token[t];
        simd->put(out, codes, src, token->literals);
        src += token->literals + token->length;
        if (!token->length)
            continue;
        const gf_deflate_split length = gf_split_length(token->length);
        const gf_deflate_split distance = gf_split_distance(token->distance_less_1 + 1u);
        gf_put_codeword(out, codes->literal[length.symbol]);
        gf_put_bits(out, length.extra, length.extra_bits);
        gf_put_codeword(out, codes->distance[distance.symbol]);
        gf_put_bits(out, distance.extra, distance.extra_bits);
    }
    gf_put_codeword(out, codes->literal[GF_DEFLATE_END]);
}

void gf_deflate_sync(gf_bit_writer *out) {
    gf_put_bits(out, 0, 3);
    gf_align_bits(out);
    gf_put_bits(out, 0xffff0000u, 32);
}
