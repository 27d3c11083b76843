/* The compressed data of a PNG: what is in its IDAT chunks, which follow one another. */
#ifndef GF_PNG_IDAT_H
#define GF_PNG_IDAT_H

#include "io/files.h"

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

#endif
