#include "io/deflate.h"

#include <math.h>
#include <stdbool.h>

const gf_deflate_simd *gf_deflate_simd_of(gf_isa isa) {
    static const gf_deflate_simd *const by_isa[GF_ISA_COUNT] = {
        [GF_ISA_PORTABLE] = &gf_deflate_simd_portable,
#ifdef GF_X86_64
        [GF_ISA_AVX2] = &gf_deflate_simd_avx2,
        [GF_ISA_AVX512] = &gf_deflate_simd_avx512,
#endif
    };
    return by_isa[isa];
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static inline uint32_t load32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap32(v);
}

static inline uint64_t load64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap64(v);
}

/* How many bytes at a and b are the same, most of them at most; a lies before b. */
static inline size_t same_bytes(const unsigned char *a, const unsigned char *b, size_t most) {
    size_t n = 0;
    for (; n + 8 <= most; n += 8) {
        const uint64_t differ = load64(a + n) ^ load64(b + n);
        if (differ)
            return n + (size_t)__builtin_ctzll(differ) / 8;
    }
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

/* ---- planning -------------------------------------------------------------------------------- */

static void finish_plan(gf_deflate_plan *plan) {
    plan->counts.literal[GF_DEFLATE_END] = 1;
    plan->literals = 0;
    for (uint32_t t = 0; t < plan->tokens; t++)
        plan->literals += plan->token[t].literals;
    gf_deflate_make_codes(&plan->counts, &plan->codes);
    plan->bits = gf_deflate_size(&plan->counts, &plan->codes);
}

static void add_token(gf_deflate_plan *plan, size_t literals, size_t length, size_t distance) {
    plan->token[plan->tokens++] =
        (gf_token){(uint32_t)literals, (uint16_t)length, (uint16_t)(distance - 1)};
    plan->counts.literal[gf_split_length((unsigned)length).symbol]++;
    plan->counts.distance[gf_split_distance((unsigned)distance).symbol]++;
}

static void add_last_literals(gf_deflate_plan *plan, size_t literals) {
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

/* A length takes 9 bits or so and the distance 1: less than as many literals of a bit each. */
static size_t add_run(gf_deflate_plan *plan, size_t literals, size_t length) {
    size_t done = 0;
    while (length - done >= GF_DEFLATE_MIN_MATCH) {
        const size_t rest = length - done;
        const size_t part = rest < GF_DEFLATE_MAX_MATCH ? rest : GF_DEFLATE_MAX_MATCH;
        add_token(plan, done ? 0 : literals, part, 1);
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
        const size_t end = i + same_bytes(src + i - 1, src + i, n - i);
        simd->count(src + done, i - done, &counts);
        done = i + add_run(plan, i - done, end - i);
        i = end;
    }
    simd->count(src + done, n - done, &counts);
    gf_sum_byte_counts(&counts, plan->counts.literal);
    add_last_literals(plan, n - done);
    finish_plan(plan);
}

/* ---- matches --------------------------------------------------------------------------------- */

enum {
    LONG_ENOUGH = 64, /* a match for which no longer one is looked for */
    PATIENCE = 6      /* log2 of the misses after which a byte more is left out each time */
};

static inline uint32_t hash4(uint32_t v) {
    return v * 2654435761u >> (32 - GF_DEFLATE_HASH_BITS);
}

/* The length of the match that lies `distance` back, 0 if that is nowhere. */
static inline size_t match_at(const unsigned char *src, size_t i, size_t n, size_t distance) {
    if (distance - 1 >= GF_DEFLATE_WINDOW || distance > i ||
        load32(src + i - distance) != load32(src + i))
        return 0;
    const size_t most = n - i < GF_DEFLATE_MAX_MATCH ? n - i : GF_DEFLATE_MAX_MATCH;
    return same_bytes(src + i - distance, src + i, most);
}

void gf_deflate_plan_matches(const unsigned char *src, size_t n, size_t pixel, size_t row,
                             gf_deflate_seen *seen, gf_deflate_plan *plan) {
    size_t done = 0, i = 0, missed = 0, cut = 0;
    memset(&plan->counts, 0, sizeof plan->counts);
    memset(seen, 0, sizeof *seen);
    plan->tokens = 0;
    while (i + 8 <= n) {
        const uint32_t hash = hash4(load32(src + i));
        size_t distance = i + 1 - seen->at[hash]; /* i + 1, which is too far, if it was not seen */
        seen->at[hash] = (uint32_t)(i + 1);
        size_t length = match_at(src, i, n, distance);
        const size_t others[] = {cut, pixel, row};
        for (int k = cut ? 0 : 1; k < 3 && length < (k ? LONG_ENOUGH : GF_DEFLATE_MAX_MATCH); k++) {
            const size_t other = match_at(src, i, n, others[k]);
            if (other > length) {
                length = other;
                distance = others[k];
            }
        }
        /* A match as long as can be may go on. */
        cut = length == GF_DEFLATE_MAX_MATCH ? distance : 0;
        if (length < 4) {
            /* What holds no matches is gone through in longer and longer steps. */
            i += 1 + (missed++ >> PATIENCE);
            continue;
        }
        missed = 0;
        /* It may have begun among what was left out. */
        while (i > done && i > distance && length < GF_DEFLATE_MAX_MATCH &&
               src[i - 1] == src[i - 1 - distance]) {
            i--;
            length++;
        }
        for (size_t k = done; k < i; k++)
            plan->counts.literal[src[k]]++;
        add_token(plan, i - done, length, distance);
        for (size_t k = i + 1; k < i + length && k + 4 <= n; k += 1 + (length >> 4))
            seen->at[hash4(load32(src + k))] = (uint32_t)(k + 1);
        i += length;
        done = i;
    }
    for (size_t k = done; k < n; k++)
        plan->counts.literal[src[k]]++;
    add_last_literals(plan, n - done);
    finish_plan(plan);
}

/* ---- recurring ------------------------------------------------------------------------------- */

/* Flat areas repeat anywhere: a word tells something if half of its bytes differ from those before.
 */
static bool tells_something(const unsigned char *word) {
    unsigned changes = 0;
    for (unsigned k = 1; k < GF_DEFLATE_WORD; k++)
        changes += word[k] != word[k - 1];
    return changes >= GF_DEFLATE_WORD / 2;
}

bool gf_deflate_recurs(const gf_deflate_simd *simd, const unsigned char *src, size_t n) {
    enum { PLACES = 12, WORDS = 4, LEAST_BYTES = 4096, UNEVEN = 97 };
    if (n < LEAST_BYTES)
        return false;
    for (size_t k = 0, words = 0; k < PLACES && words < WORDS; k++) {
        /* Behind the first quarter, and not in step with rows or tiles. */
        const size_t at = n / 4 + n / (2 * PLACES) * (5 * k % PLACES) + UNEVEN * k * k % (n / 8);
        const size_t before = at < GF_DEFLATE_WINDOW ? at : GF_DEFLATE_WINDOW;
        if (!tells_something(src + at))
            continue;
        if (simd->find_word(src + at, src + at - before, before))
            return true;
        words++;
    }
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

enum { STORED = 65535 }; /* bytes of a stored block at most */

size_t gf_deflate_bound(size_t n) {
    return n + (n / STORED + 1) * 5 + 32;
}

static uint64_t stored_bits(size_t n) {
    return 8 * (uint64_t)(n + (n / STORED + 1) * 5);
}

static void write_stored(const unsigned char *src, size_t n, int last, gf_bit_writer *out) {
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
    if (plan->bits >= stored_bits(n)) {
        write_stored(src, n, last, out);
        return;
    }
    gf_deflate_put_head(out, codes, last);
    for (uint32_t t = 0; t < plan->tokens; t++) {
        const gf_token *token = &plan->token[t];
        simd->put(out, codes, src, token->literals);
        src += token->literals + token->length;
        if (!token->length)
            continue;
        const gf_deflate_split length = gf_split_length(token->length);
        const gf_deflate_split distance = gf_split_distance(token->distance_less_1 + 1u);
        gf_put_word(out, codes->literal[length.symbol]);
        gf_put_bits(out, length.extra, length.extra_bits);
        gf_put_word(out, codes->distance[distance.symbol]);
        gf_put_bits(out, distance.extra, distance.extra_bits);
    }
    gf_put_word(out, codes->literal[GF_DEFLATE_END]);
}

void gf_deflate_sync(gf_bit_writer *out) {
    gf_put_bits(out, 0, 3);
    gf_align_bits(out);
    gf_put_bits(out, 0xffff0000u, 32);
}
