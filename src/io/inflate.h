/* From the IDAT chunks of a PNG to its filtered rows: each row is a byte that names its filter and
 * the row's bytes as that filter left them. ISA-L decodes one block at a time; a stream that would
 * cost ISA-L much more than zlib is handed to zlib.
 *
 * Only for streams that declare a window of 32 KiB, as all but small images do: then zlib's verdict
 * on distances does not depend on the sizes of its buffers. It accepts the streams that
 * zlib accepts to their end, with its bytes, whatever the chunks. "Differences from libpng" in
 * docs/design-files.md lists where libpng differs. */
#ifndef GF_INFLATE_H
#define GF_INFLATE_H

#include "io/input.h"

/* The compressed data of a PNG: what is in its IDAT chunks, which follow one another. */

#define GF_PNG_CHUNK_HEADER 8 /* bytes: a length and a name */

typedef struct gf_png_idat {
    gf_input *input;                           /* borrowed */
    uint32_t left;                             /* bytes of the present chunk that were not read */
    uint32_t crc;                              /* of its name and what was read of it */
    bool ended;                                /* the header of another chunk was read, which is */
    unsigned char header[GF_PNG_CHUNK_HEADER]; /* this one */
} gf_png_idat;

/* Is it the header of an IDAT chunk of a length that PNG allows? */
bool gf_png_idat_is(const unsigned char header[GF_PNG_CHUNK_HEADER]);

/* `header` is that of the first IDAT chunk, whose data the input gives next. */
void gf_png_idat_start(gf_png_idat *idat, gf_input *input,
                       const unsigned char header[GF_PNG_CHUNK_HEADER]);

/* Reads up to size bytes, across chunks, and checks the CRC of each chunk that it comes to the end
 * of. *got is fewer than size only when another chunk follows: the input then gives what is behind
 * that one's header. */
gf_status gf_png_idat_read(gf_png_idat *idat, void *data, size_t size, size_t *got,
                           gf_error *error);

/* The header of a deflate block: what kind of block it begins, and whether zlib would accept it. */

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

typedef struct gf_png_inflate gf_png_inflate;

/* Can the stream be read here? head is its first two bytes: zlib's header. */
bool gf_png_inflate_can(const unsigned char head[2]);

/* Starts behind what *idat has read: the header of the zlib stream. row_bytes: of a row without its
 * filter byte. */
gf_status gf_png_inflate_open(const gf_png_idat *idat, size_t row_bytes, gf_png_inflate **opened,
                              gf_error *error);

/* The next row: 1 + row_bytes bytes, there until the next call. */
gf_status gf_png_inflate_row(gf_png_inflate *rows, const unsigned char **row, gf_error *error);

/* After the last row: checks that the stream ends as it should, and reads what is left of the IDAT
 * chunks. header receives that of the chunk behind them. */
gf_status gf_png_inflate_finish(gf_png_inflate *rows, unsigned char header[GF_PNG_CHUNK_HEADER],
                                gf_error *error);

/* NULL is allowed. */
void gf_png_inflate_close(gf_png_inflate *rows);

/* Fail for a PNG that cannot be read, whoever finds out: libpng or we. */
gf_status gf_png_fail_damaged(gf_error *error, const char *name, const char *what);
gf_status gf_png_fail_short(gf_error *error, const char *name);

#endif
