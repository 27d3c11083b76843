/* Decompression of PNG image data: from the IDAT chunks to filtered rows, each a filter type byte
 * followed by the filtered bytes.
 *
 * Only for streams that declare a window of 32 KiB, as all but small images do: zlib's check of
 * distances then does not depend on its buffer sizes. The decoder accepts the streams that zlib
 * decodes to their end, with the same output, for any split into chunks. "Differences from libpng"
 * in docs/design-files.md lists the differences. */
#ifndef GF_PNG_INFLATE_H
#define GF_PNG_INFLATE_H

#include "io/inflate.h"
#include "io/input.h"

/* Compressed data of a PNG: the contents of consecutive IDAT chunks. */

#define GF_PNG_CHUNK_HEADER 8 /* bytes: length and chunk type */

typedef struct gf_png_idat {
    gf_input *input;                           /* borrowed */
    uint32_t remaining;                        /* unread bytes of the current chunk */
    uint32_t crc;                              /* CRC-32 of the chunk type and the data read */
    bool ended;                                /* a chunk of another type follows */
    unsigned char header[GF_PNG_CHUNK_HEADER]; /* its header */
} gf_png_idat;

/* Return true for the header of an IDAT chunk with a valid length. */
bool gf_png_idat_is(const unsigned char header[GF_PNG_CHUNK_HEADER]);

/* Start at the data of the first IDAT chunk, whose header has been read. */
void gf_png_idat_start(gf_png_idat *idat, gf_input *input,
                       const unsigned char header[GF_PNG_CHUNK_HEADER]);

/* Read up to size bytes, across chunks, and check the CRC at the end of each chunk. *got is less
 * than size only if another type of chunk follows, whose header has then been read, or after an
 * error: it then counts the bytes before the error. */
gf_status gf_png_idat_read(gf_png_idat *idat, void *data, size_t size, size_t *got,
                           gf_error *error);

typedef struct gf_png_inflate gf_png_inflate;

/* Return true if this decoder supports the stream. head: the first two bytes, the zlib header. */
bool gf_png_inflate_supports(const unsigned char head[2]);

/* Start after the zlib header, read from *idat. row_bytes: a row without its filter type byte. */
gf_status gf_png_inflate_open(const gf_png_idat *idat, size_t row_bytes, gf_png_inflate **opened,
                              gf_error *error);

/* Decode the next rows, at least 1 and at most max, of 1 + row_bytes bytes each. They are
 * contiguous and valid until the next call. */
gf_status gf_png_inflate_rows(gf_png_inflate *rows, uint64_t max, const unsigned char **first,
                              uint64_t *count, gf_error *error);

/* Fail because a filter type byte is invalid. */
gf_status gf_png_inflate_fail_filter(gf_png_inflate *rows, gf_error *error);

/* After the last row: check the end of the stream and read the rest of the IDAT chunks. header
 * receives the header of the chunk that follows. */
gf_status gf_png_inflate_finish(gf_png_inflate *rows, unsigned char header[GF_PNG_CHUNK_HEADER],
                                gf_error *error);

/* rows may be NULL. */
void gf_png_inflate_close(gf_png_inflate *rows);

/* Fail for a PNG that libpng or this decoder cannot read. */
gf_status gf_png_fail_damaged(gf_error *error, const char *name, const char *what);
gf_status gf_png_fail_short(gf_error *error, const char *name);

#endif
