/* The header of a deflate block: what kind of block it begins, and whether zlib would accept it. */
#ifndef GF_INFLATE_HEADER_H
#define GF_INFLATE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gf_inflate_kind {
    GF_INFLATE_STORED,
    GF_INFLATE_FIXED,
    GF_INFLATE_DYNAMIC
} gf_inflate_kind;

typedef struct gf_inflate_header {
    bool last;
    gf_inflate_kind kind;
    uint32_t stored; /* stored: bytes of data */
    uint32_t bytes;  /* begun by the header. Those of a stored block end where its data begins */
    uint32_t long_codes; /* dynamic: literals and single lengths whose code and extra bits are
                            longer than ISA-L's first table, 12 bits */
} gf_inflate_header;

typedef enum gf_inflate_verdict {
    GF_INFLATE_GOOD,
    GF_INFLATE_SHORT, /* the bytes end within the header */
    GF_INFLATE_BAD    /* zlib refuses it */
} gf_inflate_verdict;

/* Reads the header that begins with bit `bit` (0 to 7) of the first byte. It has at most 287 bytes.
 */
gf_inflate_verdict gf_inflate_header_read(const unsigned char *data, size_t size, unsigned bit,
                                          gf_inflate_header *header);

#endif
