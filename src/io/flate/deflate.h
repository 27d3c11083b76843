/* Deflate encoder (RFC 1951) for filtered image rows.
 *
 * The residuals of photographs are noise around zero: a match search is slow and saves little,
 * often less than it costs. The encoder therefore has two planners. Runs: Huffman codes, with
 * matches of distance 1 for repeated bytes. Matches: also matches one row back or at the last
 * position with the same four bytes, for text, drawings and patterns. */
#ifndef GF_DEFLATE_H
#define GF_DEFLATE_H

#include "io/bytes.h"
#include "io/flate/code.h"

/* Bit buffer, first bit lowest. Writes overwrite up to 8 bytes after `at`. */
typedef struct gf_bit_writer {
    uint64_t bits;
    unsigned used; /* below 8 between calls */
    unsigned char *at;
} gf_bit_writer;

/* Append count <= 56 bits. Higher bits must be zero. */
static inline void gf_put_bits(gf_bit_writer *out, uint64_t bits, unsigned count) {
    out->bits |= bits << out->used;
    out->used += count;
    gf_put_little64(out->at, out->bits);
    out->at += out->used >> 3;
    out->bits >>= out->used & ~7u;
    out->used &= 7;
}

static inline void gf_put_codeword(gf_bit_writer *out, gf_deflate_codeword codeword) {
    gf_put_bits(out, codeword & 0xffff, codeword >> 16);
}

/* Pad the last byte with zeros. */
static inline void gf_align_bits(gf_bit_writer *out) {
    if (out->used)
        gf_put_bits(out, 0, 8 - out->used);
}

/* Make a Huffman code for `count` <= GF_DEFLATE_LITERALS symbols: see gf_code_assign. */
void gf_deflate_make_code(const uint32_t *frequency, unsigned count, unsigned max_bits,
                          gf_deflate_codeword *codewords);

void gf_deflate_make_codes(const gf_deflate_counts *counts, gf_deflate_codes *codes);

/* A number of literals followed by a match (length 0: none). */
typedef struct gf_token {
    uint32_t literals;
    uint16_t length;
    uint16_t distance_less_1;
} gf_token;

enum { GF_DEFLATE_HASH_BITS = 14 };

/* Tokens and codes of one block. Each thread has its own. */
typedef struct gf_deflate_plan {
    gf_deflate_counts counts;
    gf_deflate_codes codes;
    uint64_t bits;     /* size of the encoded block */
    uint64_t literals; /* bytes outside of matches */
    uint32_t tokens;
    gf_token token[GF_DEFLATE_BLOCK / 4 + 2];
} gf_deflate_plan;

/* Last position of four bytes with this hash, plus one; 0: none. */
typedef struct gf_deflate_hash {
    uint32_t position[1 << GF_DEFLATE_HASH_BITS];
} gf_deflate_hash;

/* Byte histogram in several tables: increments of equal neighbours do not depend on each other. */
typedef struct gf_byte_counts {
    uint32_t table[8][256];
} gf_byte_counts;

/* Add up the tables. */
void gf_sum_byte_counts(const gf_byte_counts *counts, uint32_t sums[256]);

/* Loops compiled once per SIMD level, with identical results. */
typedef struct gf_deflate_simd {
    /* Count n bytes. */
    void (*count)(const unsigned char *src, size_t n, gf_byte_counts *counts);
    /* Return the first i >= from >= 1 with GF_DEFLATE_RUN repeats of src[i-1]; n if none. */
    size_t (*find_run)(const unsigned char *src, size_t from, size_t n);
    /* Return true if pattern starts in src[0..n). Reads GF_DEFLATE_PATTERN - 1 more bytes. */
    bool (*find_pattern)(const unsigned char pattern[GF_DEFLATE_PATTERN], const unsigned char *src,
                         size_t n);
    /* Write literals. Up to 16 bytes after the end are overwritten. */
    void (*put)(gf_bit_writer *out, const gf_deflate_codes *codes, const unsigned char *src,
                size_t n);
} gf_deflate_simd;

extern const gf_deflate_simd GF_LEVEL_NAMES(gf_deflate_simd);

static inline const gf_deflate_simd *gf_deflate_simd_of(gf_isa isa) {
    static const gf_deflate_simd *const levels[GF_ISA_COUNT] = GF_LEVELS(gf_deflate_simd);
    return levels[isa];
}

/* Return true if one of a few noise-like patterns repeats within a window, as in tiles. */
bool gf_deflate_has_repeats(const gf_deflate_simd *simd, const unsigned char *src, size_t n);
/* Plan a block of n <= GF_DEFLATE_BLOCK bytes with runs. */
void gf_deflate_plan_runs(const gf_deflate_simd *simd, const unsigned char *src, size_t n,
                          gf_deflate_plan *plan);
/* Plan a block with matches within it. The distances pixel and row are tried at each position. */
void gf_deflate_plan_matches(const unsigned char *src, size_t n, size_t pixel, size_t row,
                             gf_deflate_hash *hash, gf_deflate_plan *plan);
/* Return the maximum number of bytes that gf_deflate_write overwrites for a block of n bytes. */
static inline size_t gf_deflate_bound(size_t n) {
    return (size_t)(gf_stored_bits(n) / 8) + 32;
}
/* Write the planned block, or a stored block where that is shorter. */
void gf_deflate_write(const gf_deflate_simd *simd, const gf_deflate_plan *plan,
                      const unsigned char *src, size_t n, int last, gf_bit_writer *out);
/* Write any number of bytes as stored blocks. */
void gf_deflate_write_stored(const unsigned char *src, size_t n, int last, gf_bit_writer *out);
/* Append an empty stored block, which ends on a byte boundary: further data can be concatenated. */
static inline void gf_deflate_sync(gf_bit_writer *out) {
    gf_deflate_write_stored((const unsigned char *)"", 0, false, out);
}

#endif
