/* The compressed data of a PNG: the contents of consecutive IDAT chunks. */
#ifndef GF_PNG_IDAT_H
#define GF_PNG_IDAT_H

#include "io/input.h"

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

/* Fail for a PNG that libpng or this decoder cannot read. */
gf_status gf_png_fail_damaged(gf_error *error, const char *name, const char *what);
gf_status gf_png_fail_short(gf_error *error, const char *name);

#endif
