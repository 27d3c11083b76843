/* A deflate coder (RFC 1951) for the bytes of filtered image rows.
 *
 * Filtered photographs are noise around zero: searching them for matches costs much and saves
 * little, often less than nothing. So there are two ways. Runs: Huffman codes, and matches of
 * distance 1 where one byte is repeated long enough. Matches: those too that lie a row back, or
 * wherever the same four bytes were seen last; for text, drawings and patterns. */
#ifndef GF_DEFLATE_H
#define GF_DEFLATE_H

#include <stdbool.h>

#include "io/deflate_code.h"
#include "isa.h"

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

extern const gf_deflate_simd gf_deflate_simd_portable;
#ifdef GF_X86_64
extern const gf_deflate_simd gf_deflate_simd_avx2, gf_deflate_simd_avx512;
#endif
const gf_deflate_simd *gf_deflate_simd_of(gf_isa isa);

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
/* Ends on a whole byte, with an empty stored block: what follows can be joined to it. */
void gf_deflate_sync(gf_bit_writer *out);

#endif
