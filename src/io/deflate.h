/* A deflate coder (RFC 1951) for the bytes of filtered image rows.
 *
 * Filtered photographs are noise around zero: searching them for matches costs much and saves
 * little, often less than nothing. So there are two ways. Runs: Huffman codes, and matches of
 * distance 1 where one byte is repeated long enough. Matches: those too that lie a row back, or
 * wherever the same four bytes were seen last; for text, drawings and patterns. */
#ifndef GF_DEFLATE_H
#define GF_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/machine.h"

/* ---- codes and bits -------------------------------------------------------------------------- */

enum {
    GF_DEFLATE_LITERALS = 286, /* literals, end of block, lengths */
    GF_DEFLATE_DISTANCES = 30,
    GF_DEFLATE_END = 256,
    GF_DEFLATE_FIRST_LENGTH = 257,
    GF_DEFLATE_MIN_MATCH = 3,
    GF_DEFLATE_MAX_MATCH = 258,
    GF_DEFLATE_WINDOW = 32768,
    /* Deflate allows 15. With 14, four codes and what is left of a byte fit into 64 bits. */
    GF_DEFLATE_MAX_BITS = 14
};

/* A code in its low 16 bits, the first bit sent lowest; its length above them. Length 0: unused. */
typedef uint32_t gf_deflate_word;

static inline unsigned gf_deflate_bits(gf_deflate_word word) {
    return word >> 16;
}

/* Bits on their way into bytes, the first bit lowest. Up to 8 bytes behind `at` are overwritten. */
typedef struct gf_bit_writer {
    uint64_t bits;
    unsigned used; /* below 8 between calls */
    unsigned char *at;
} gf_bit_writer;

/* Appends count <= 56 bits; those above them are zero. */
static inline void gf_put_bits(gf_bit_writer *out, uint64_t bits, unsigned count) {
    out->bits |= bits << out->used;
    out->used += count;
    const uint64_t bytes =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? out->bits : __builtin_bswap64(out->bits);
    memcpy(out->at, &bytes, sizeof bytes);
    out->at += out->used >> 3;
    out->bits >>= out->used & ~7u;
    out->used &= 7;
}

static inline void gf_put_word(gf_bit_writer *out, gf_deflate_word word) {
    gf_put_bits(out, word & 0xffff, word >> 16);
}

/* Fills up the last byte with zeros. */
static inline void gf_align_bits(gf_bit_writer *out) {
    if (out->used)
        gf_put_bits(out, 0, 8 - out->used);
}

/* A code for `count` <= GF_DEFLATE_LITERALS symbols of these frequencies, none longer than max_bits
 * (<= 15): the shortest there is, but for what the limit costs. Symbols that do not occur get none;
 * at least two get one, so that the code is complete. Frequencies add up to less than 2^32. */
void gf_deflate_make_code(const uint32_t *frequency, unsigned count, unsigned max_bits,
                          gf_deflate_word *words);

/* A dynamic block's codes, and the description of them that goes in front of it. */
typedef struct gf_deflate_codes {
    gf_deflate_word literal[GF_DEFLATE_LITERALS];
    gf_deflate_word distance[GF_DEFLATE_DISTANCES];
    uint16_t byte_code[256], byte_bits[256]; /* of literal, apart */
    /* The lengths of both, run-length coded: symbol, extra bits and how many. */
    unsigned literals, distances; /* how many lengths are sent */
    unsigned steps;
    struct {
        uint8_t symbol, extra;
    } step[GF_DEFLATE_LITERALS + GF_DEFLATE_DISTANCES];
    gf_deflate_word length_word[19];
    unsigned lengths;   /* how many of length_word are sent */
    uint64_t head_bits; /* of the description, with the block's 3 */
} gf_deflate_codes;

/* What occurs in a block. */
typedef struct gf_deflate_counts {
    uint32_t literal[GF_DEFLATE_LITERALS];
    uint32_t distance[GF_DEFLATE_DISTANCES];
} gf_deflate_counts;

void gf_deflate_make_codes(const gf_deflate_counts *counts, gf_deflate_codes *codes);

/* ---- lengths and distances ------------------------------------------------------------------- */

/* A length's or distance's symbol, and what is sent behind it. */
typedef struct gf_deflate_split {
    unsigned symbol, extra_bits, extra;
} gf_deflate_split;

/* length: 3 to 258. */
static inline gf_deflate_split gf_split_length(unsigned length) {
    const unsigned l = length - GF_DEFLATE_MIN_MATCH;
    if (length == GF_DEFLATE_MAX_MATCH)
        return (gf_deflate_split){GF_DEFLATE_LITERALS - 1, 0, 0};
    if (l < 8)
        return (gf_deflate_split){GF_DEFLATE_FIRST_LENGTH + l, 0, 0};
    const unsigned bits = 29u - (unsigned)__builtin_clz(l);
    return (gf_deflate_split){GF_DEFLATE_FIRST_LENGTH + 4 * bits + (l >> bits), bits,
                              l & ((1u << bits) - 1)};
}

/* distance: 1 to GF_DEFLATE_WINDOW. */
static inline gf_deflate_split gf_split_distance(unsigned distance) {
    const unsigned d = distance - 1;
    if (d < 4)
        return (gf_deflate_split){d, 0, 0};
    const unsigned bits = 30u - (unsigned)__builtin_clz(d);
    return (gf_deflate_split){2 * bits + (d >> bits), bits, d & ((1u << bits) - 1)};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* So many literals, and then a match (length 0: none). */
typedef struct gf_token {
    uint32_t literals;
    uint16_t length;
    uint16_t distance_less_1;
} gf_token;

/* A block is at most this long, so that scratch is bounded, and codes follow the picture. */
enum { GF_DEFLATE_BLOCK = 1 << 18, GF_DEFLATE_HASH_BITS = 14 };

/* Shorter runs may be shorter as literals; longer ones are not. */
enum { GF_DEFLATE_RUN = 12 };

/* Noise does not repeat so many bytes by chance. */
enum { GF_DEFLATE_WORD = 32 };

/* A block's bytes as tokens; what one thread needs to make and to write them. */
typedef struct gf_deflate_plan {
    gf_deflate_counts counts;
    gf_deflate_codes codes;
    uint64_t bits;     /* the block takes so many, coded */
    uint64_t literals; /* bytes outside of matches */
    uint32_t tokens;
    gf_token token[GF_DEFLATE_BLOCK / 4 + 2];
} gf_deflate_plan;

/* Where four bytes with this hash were last seen, plus one. */
typedef struct gf_deflate_seen {
    uint32_t at[1 << GF_DEFLATE_HASH_BITS];
} gf_deflate_seen;

/* How often bytes occur, in several tables, so that equal neighbours need not wait for each other.
 */
typedef struct gf_byte_counts {
    uint32_t table[8][256];
} gf_byte_counts;

/* Adds the tables up. */
void gf_sum_byte_counts(const gf_byte_counts *counts, uint32_t sums[256]);

/* Loops compiled once a SIMD level; all give the same. */
typedef struct gf_deflate_simd {
    /* Adds n bytes. */
    void (*count)(const unsigned char *src, size_t n, gf_byte_counts *counts);
    /* The first i >= from >= 1 where src[i-1] is repeated GF_DEFLATE_RUN times; n if there is none.
     */
    size_t (*find_run)(const unsigned char *src, size_t from, size_t n);
    /* Do these bytes occur again, beginning at one of src[0..n)? Reads GF_DEFLATE_WORD - 1 more. */
    bool (*find_word)(const unsigned char word[GF_DEFLATE_WORD], const unsigned char *src,
                      size_t n);
    /* Writes literals. Up to 16 bytes behind the end are overwritten. */
    void (*put)(gf_bit_writer *out, const gf_deflate_codes *codes, const unsigned char *src,
                size_t n);
} gf_deflate_simd;

extern const gf_deflate_simd gf_deflate_simd_portable, gf_deflate_simd_avx2, gf_deflate_simd_avx512;

static inline const gf_deflate_simd *gf_deflate_simd_of(gf_isa isa) {
    static const gf_deflate_simd *const levels[GF_ISA_COUNT] = GF_LEVELS(gf_deflate_simd);
    return levels[isa];
}

/* Do bytes that look like noise repeat what is up to a window before them, as tiles do? By samples.
 */
bool gf_deflate_recurs(const gf_deflate_simd *simd, const unsigned char *src, size_t n);
/* Plans a block of n <= GF_DEFLATE_BLOCK bytes by runs. */
void gf_deflate_plan_runs(const gf_deflate_simd *simd, const unsigned char *src, size_t n,
                          gf_deflate_plan *plan);
/* Plans a block by matches, which do not reach back before src. pixel and row are distances worth
 * trying. */
void gf_deflate_plan_matches(const unsigned char *src, size_t n, size_t pixel, size_t row,
                             gf_deflate_seen *seen, gf_deflate_plan *plan);
/* Bytes that gf_deflate_write overwrites at most for a block of n bytes. */
size_t gf_deflate_bound(size_t n);
/* Writes the planned block: coded, or stored where that is shorter. */
void gf_deflate_write(const gf_deflate_simd *simd, const gf_deflate_plan *plan,
                      const unsigned char *src, size_t n, int last, gf_bit_writer *out);
/* Writes any number of bytes as stored blocks. */
void gf_deflate_write_stored(const unsigned char *src, size_t n, int last, gf_bit_writer *out);
/* Ends on a whole byte, with an empty stored block: what follows can be joined to it. */
void gf_deflate_sync(gf_bit_writer *out);

#endif
