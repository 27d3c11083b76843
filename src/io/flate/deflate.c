/* Deflate encoder. */
#include "io/flate/deflate.h"

/* ---- codes --------------------------------------------------------------------------------- */

void gf_deflate_make_code(const uint32_t *frequency, unsigned count, unsigned max_bits,
                          gf_deflate_codeword *codewords) {
    gf_code_memory memory;
    gf_deflate_leaf from[GF_DEFLATE_LITERALS] = {{0, 0}};
    unsigned used = 0;
    for (unsigned s = 0; s < count; s++)
        if (frequency[s])
            from[used++] = (gf_deflate_leaf){frequency[s], s};
    /* Sort the used symbols by frequency, then by symbol: this makes the code unique. Stable radix
     * sort. After four passes the data is in the first array again. */
    gf_deflate_leaf *a = from, *b = memory.leaves;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        unsigned offset[257] = {0};
        for (unsigned i = 0; i < used; i++)
            /* cppcheck-suppress uninitvar ; the first `used` are set */
            offset[(a[i].frequency >> shift & 255) + 1]++;
        for (unsigned i = 0; i < 256; i++)
            offset[i + 1] += offset[i];
        for (unsigned i = 0; i < used; i++)
            b[offset[a[i].frequency >> shift & 255]++] = a[i];
        gf_deflate_leaf *swap = a;
        a = b;
        b = swap;
    }
    memcpy(memory.leaves, from, used * sizeof *from);
    gf_code_assign(&memory, used, count, max_bits, codewords);
}

void gf_deflate_make_codes(const gf_deflate_counts *counts, gf_deflate_codes *codes) {
    uint32_t frequency[GF_DEFLATE_LENGTHS] = {0};
    gf_deflate_make_code(counts->literal, GF_DEFLATE_LITERALS, GF_DEFLATE_MAX_BITS, codes->literal);
    gf_deflate_make_code(counts->distance, GF_DEFLATE_DISTANCES, GF_DEFLATE_MAX_BITS,
                         codes->distance);
    for (unsigned b = 0; b < 256; b++) {
        codes->byte_code[b] = (uint16_t)codes->literal[b];
        codes->byte_bits[b] = (uint16_t)gf_deflate_bits(codes->literal[b]);
    }
    /* Run-length encode the lengths of both codes. */
    gf_header_cut_codes(codes);
    const unsigned count = codes->literals + codes->distances;
    codes->length_symbols = 0;
    for (unsigned i = 0, run; i < count; i += run) {
        const unsigned length = gf_header_length(codes, i);
        for (run = 1; i + run < count && gf_header_length(codes, i + run) == length;)
            run++;
        codes->length_symbols = gf_header_put_run(codes, codes->length_symbols, length, run);
    }
    for (unsigned i = 0; i < codes->length_symbols; i++)
        frequency[codes->length_symbol[i].symbol]++;
    gf_deflate_make_code(frequency, GF_DEFLATE_LENGTHS, GF_DEFLATE_LENGTH_BITS,
                         codes->length_codeword);
    gf_header_cut_lengths(codes);
    codes->header_bits = 0;
    for (unsigned i = 0, bits; i < gf_header_items(codes); i++, codes->header_bits += bits)
        (void)gf_header_item(codes, i, false, &bits);
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

/* Add the literals after the last match, and make the codes. */
static void deflate_finish_plan(gf_deflate_plan *plan, size_t literals) {
    const gf_deflate_codes *codes = &plan->codes;
    plan->token[plan->tokens++] = (gf_token){.literals = (uint32_t)literals};
    plan->counts.literal[GF_DEFLATE_END] = 1;
    plan->literals = 0;
    for (uint32_t t = 0; t < plan->tokens; t++)
        plan->literals += plan->token[t].literals;
    gf_deflate_make_codes(&plan->counts, &plan->codes);
    plan->bits = codes->header_bits;
    for (unsigned s = 0; s < GF_DEFLATE_LITERALS; s++)
        plan->bits += (uint64_t)plan->counts.literal[s] *
                      (gf_deflate_bits(codes->literal[s]) + gf_literal_extra_bits(s));
    for (unsigned s = 0; s < GF_DEFLATE_DISTANCES; s++)
        plan->bits += (uint64_t)plan->counts.distance[s] *
                      (gf_deflate_bits(codes->distance[s]) + gf_distance_extra_bits(s));
}

static void deflate_add_token(gf_deflate_plan *plan, size_t literals, size_t length,
                              size_t distance) {
    plan->token[plan->tokens++] =
        (gf_token){(uint32_t)literals, (uint16_t)length, (uint16_t)(distance - 1)};
    plan->counts.literal[gf_split_length((unsigned)length).symbol]++;
    plan->counts.distance[gf_split_distance((unsigned)distance).symbol]++;
}

void gf_sum_byte_counts(const gf_byte_counts *counts, uint32_t sums[256]) {
    for (int b = 0; b < 256; b++) {
        sums[b] = 0;
        for (int k = 0; k < 8; k++)
            sums[b] += counts->table[k][b];
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

void gf_deflate_plan_runs(const gf_deflate_simd *simd, const unsigned char *src, size_t n,
                          gf_deflate_plan *plan) {
    enum { LONG_RUN = 256 }; /* shorter ones are counted as literals, then subtracted */
    gf_byte_counts counts = {{{0}}};
    size_t done = 0, counted = 0, i = 1;
    memset(&plan->counts, 0, sizeof plan->counts);
    plan->tokens = 0;
    while ((i = simd->find_run(src, i, n)) < n) {
        const size_t start = i, end = i + deflate_same_bytes(src + i - 1, src + i, n - i);
        size_t literals = i - done;
        /* A match takes about 9 bits per length and 1 per distance: less than literals of 1 bit. */
        for (; end - i >= GF_DEFLATE_MIN_MATCH; literals = 0) {
            const size_t rest = end - i;
            const size_t part = rest < GF_DEFLATE_MAX_MATCH ? rest : GF_DEFLATE_MAX_MATCH;
            deflate_add_token(plan, literals, part, 1);
            i += part;
        }
        if (i - start < LONG_RUN) {
            counts.table[0][src[start]] -= (uint32_t)(i - start); /* modulo 2^32, as the sums */
        } else {
            simd->count(src + counted, start - counted, &counts);
            counted = i;
        }
        done = i;
        i = end;
    }
    simd->count(src + counted, n - counted, &counts);
    gf_sum_byte_counts(&counts, plan->counts.literal);
    deflate_finish_plan(plan, n - done);
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
    deflate_finish_plan(plan, n - done);
}

/* ---- repeats --------------------------------------------------------------------------------- */

bool gf_deflate_has_repeats(const gf_deflate_simd *simd, const unsigned char *src, size_t n) {
    if (n < GF_REPEAT_MIN_BYTES)
        return false;
    for (size_t k = 0, probed = 0; k < GF_REPEAT_POSITIONS && probed < GF_REPEAT_PATTERNS; k++) {
        const size_t at = gf_repeat_position(k, n);
        const size_t before = at < GF_DEFLATE_WINDOW ? at : GF_DEFLATE_WINDOW;
        if (!gf_repeat_is_varied(src + at))
            continue;
        if (simd->find_pattern(src + at, src + at - before, before))
            return true;
        probed++;
    }
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

void gf_deflate_write_stored(const unsigned char *src, size_t n, int last, gf_bit_writer *out) {
    do {
        const size_t part = n < GF_DEFLATE_STORED ? n : GF_DEFLATE_STORED;
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
    if (plan->bits >= gf_stored_bits(n)) {
        gf_deflate_write_stored(src, n, last, out);
        return;
    }
    for (unsigned i = 0, bits; i < gf_header_items(codes); i++) {
        const uint32_t item = gf_header_item(codes, i, last, &bits);
        gf_put_bits(out, item, bits);
    }
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
