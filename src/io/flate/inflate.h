/* Deflate decoder. It reads from memory, stops at the end of each block and can be resumed after
 * any symbol. It accepts exactly the blocks that zlib accepts.
 *
 * Output elements are bytes, or 16-bit values if the 32 KiB before the output are not known yet:
 * the caller then presets these with placeholders of 256 and above, which matches copy. */
#ifndef GF_INFLATE_H
#define GF_INFLATE_H

#include "io/flate/code.h"

enum {
    /* Unless the input is final, the decoder stops this many bytes before in_end: a block header
     * with its padding fits. 8 bytes after in_end are readable. */
    GF_INFLATE_LOOKAHEAD = 320,
    /* Free elements that decoding needs: a match, and the excess of its last vector. */
    GF_INFLATE_RESERVE = 258 + 64,
    /* Index bits of the tables. With 12 for literals, entries hold more of them, but building the
     * table of each block takes longer than this saves: photographs take 1.07 times as long. */
    GF_INFLATE_LITERAL_BITS = 10,
    GF_INFLATE_DISTANCE_BITS = 9
};

typedef enum gf_inflate_kind {
    GF_INFLATE_STORED,
    GF_INFLATE_FIXED,
    GF_INFLATE_DYNAMIC
} gf_inflate_kind;

typedef struct gf_inflate_header {
    bool last;
    gf_inflate_kind kind;
    uint32_t stored; /* stored: bytes of data */
    uint32_t bits;   /* from the first byte to the end of the header; stored: to its data */
    /* Others: the number of codes and their lengths, distances after literals. */
    uint32_t literals, distances;
    uint8_t lengths[GF_DEFLATE_LITERALS + 2 + GF_DEFLATE_DISTANCES + 2];
} gf_inflate_header;

typedef enum gf_inflate_result {
    GF_INFLATE_VALID,            /* header: valid; decoder: the block is complete */
    GF_INFLATE_TRUNCATED,        /* the final input ends within the header or symbol */
    GF_INFLATE_INVALID,          /* zlib rejects the header */
    GF_INFLATE_INVALID_CODE,     /* unused codeword, or one without a meaning */
    GF_INFLATE_INVALID_DISTANCE, /* a match that begins before the history */
    GF_INFLATE_INVALID_CHECKSUM, /* of the stream; not returned by these functions */
    GF_INFLATE_NEEDS_INPUT,
    GF_INFLATE_NEEDS_OUTPUT
} gf_inflate_result;

/* Return true for an error: the stream cannot be continued. */
static inline bool gf_inflate_is_failed(gf_inflate_result result) {
    return result != GF_INFLATE_VALID && result < GF_INFLATE_NEEDS_INPUT;
}

/* Read the header at bit `bit` (0..7) of the first byte. A header spans at most 288 bytes. */
gf_inflate_result gf_inflate_header_read(const unsigned char *data, size_t size, unsigned bit,
                                         gf_inflate_header *header);

typedef struct gf_inflate_finder {
    uint16_t kraft[1 << 12]; /* Kraft sums of four code lengths of 3 bits */
} gf_inflate_finder;

/* A position where a block may start. */
typedef struct gf_inflate_start_point {
    uint64_t bit;    /* offset in bits */
    uint64_t stored; /* of a stored block: offset of its length in bytes. The block starts at `bit`
                        or at an earlier zero bit: padding is not distinguishable. Otherwise 0 */
} gf_inflate_start_point;

void gf_inflate_finder_init(gf_inflate_finder *finder);
/* Find the first position in the bits [from, to) of data where a dynamic or stored block that is
 * not the last one can start. Fixed blocks have no header to recognise. */
bool gf_inflate_find(const gf_inflate_finder *finder, const unsigned char *data, size_t size,
                     uint64_t from, uint64_t to, gf_inflate_start_point *found);

/* Table entries. The low 5 bits are the number of bits to consume. An entry for up to three
 * literals and a match length, in this order, has the number of literals in bits 5 and 6, and
 * GF_ENTRY_MATCH if a length follows. The literals are in bytes 1 to 3 and the length less 3 is in
 * byte 3. If bits 5 to 7 are 0, bits 8..11 are the bits of the codeword, the remaining ones are
 * extra bits, and the base value is in bits 16..31: a distance, or a length whose code and extra
 * bits exceed the table. Subtable: bits 8..11 are its index bits, bits 16..31 its position. */
enum {
    GF_ENTRY_BITS = 31,
    GF_ENTRY_LITERAL = 1 << 5,
    GF_ENTRY_LITERALS = 3 << 5,
    GF_ENTRY_MATCH = 1 << 7,
    GF_ENTRY_SUBTABLE = 1 << 12,
    GF_ENTRY_STOP = 1 << 13, /* base 0: end of block; 1: invalid code */
    /* Each subtable has entries for the longest code, and at least two codes. */
    GF_LITERAL_ENTRIES = (1 << GF_INFLATE_LITERAL_BITS) + 144 * 32,
    GF_DISTANCE_ENTRIES = (1 << GF_INFLATE_DISTANCE_BITS) + 16 * 64
};

struct gf_inflate_simd;

typedef struct gf_inflate {
    const struct gf_inflate_simd *simd;
    const unsigned char *in; /* next byte to load */
    const unsigned char *in_end;
    bool final_input; /* nothing follows in_end */
    uint64_t bits;    /* loaded bits; above the valid ones, zeros or input that is loaded again */
    uint32_t count;   /* valid bits */
    bool in_block;
    bool last;                /* the current or the previous block is the last one */
    bool fixed;               /* the tables are those of the fixed codes */
    bool packed;              /* `packed_literals` is valid */
    bool is_stored;           /* the current block is stored */
    uint32_t stored;          /* its unread bytes */
    uint32_t literal_entries; /* of `literals` and `packed_literals`, with subtables */
    /* Entries of the symbols, without their codeword bits: base value and extra bits. Symbols 286,
     * 287 and distances 30, 31 are invalid. */
    uint32_t literal_symbols[GF_DEFLATE_LITERALS + 2], distance_symbols[GF_DEFLATE_DISTANCES + 2];
    uint32_t literals[GF_LITERAL_ENTRIES];        /* one symbol per entry, and subtables */
    uint32_t packed_literals[GF_LITERAL_ENTRIES]; /* entries with several symbols */
    uint32_t distances[GF_DISTANCE_ENTRIES];
} gf_inflate;

/* Output: `next` moves from the start of the history to `end`. `wide`: 16-bit elements. */
typedef struct gf_inflate_out {
    unsigned char *next;
    unsigned char *end;           /* capacity; at most end - next bytes are written */
    const unsigned char *history; /* matches may not reach before it */
    bool wide;
} gf_inflate_out;

/* Start a stream of blocks. Its input is set next. */
void gf_inflate_start(gf_inflate *inflate, gf_isa isa);
/* Continue at bit `bit` (0..7) of `in`; before a block or within it. */
void gf_inflate_set_input(gf_inflate *inflate, const unsigned char *in, unsigned bit,
                          const unsigned char *in_end, bool final_input);
/* Return the byte with the next unused bit, and store the bit in it. */
const unsigned char *gf_inflate_position(const gf_inflate *inflate, unsigned *bit);
/* Decode up to the end of the current block, or of the next block if none has been started. After
 * NEEDS_INPUT and NEEDS_OUTPUT the call can be repeated. All symbols before an error are output. */
gf_inflate_result gf_inflate_run(gf_inflate *inflate, gf_inflate_out *out);
/* Decode `count` streams, 1 or 2, each up to the end of its last block. The input must be final and
 * the output bytes. Two streams take 0.6 to 0.75 times as long as one after the other. results[i]
 * is VALID, or the reason why stream i stopped. */
void gf_inflate_run_streams(uint32_t count, gf_inflate *const inflate[2],
                            gf_inflate_out *const out[2], gf_inflate_result results[2]);

/* Loops compiled once per SIMD level, with identical results. */
typedef struct gf_inflate_simd {
    /* Pack as many literals into each entry as its bits hold, and a match length after them. */
    void (*pack)(gf_inflate *inflate);
    /* Decode coded data with one table of literals while input and output last. */
    gf_inflate_result (*decode)(gf_inflate *inflate, const uint32_t *literals, gf_inflate_out *out);
    gf_inflate_result (*decode_wide)(gf_inflate *inflate, const uint32_t *literals,
                                     gf_inflate_out *out);
    /* Decode two streams with packed literals, to bytes, until one of them stops. */
    void (*decode_pair)(gf_inflate *const inflate[2], gf_inflate_out *const out[2],
                        gf_inflate_result results[2]);
    /* Convert 16-bit elements by a table, whose first 256 are 0 to 255. `to` may be `elements`. */
    void (*resolve)(unsigned char *to, const unsigned char *elements, size_t count,
                    const unsigned char *table);
} gf_inflate_simd;

extern const gf_inflate_simd GF_LEVEL_NAMES(gf_inflate_simd);

#endif
