/* IDAT chunks around bytes that lie in memory already. */
#ifndef GF_PNG_IDAT_WRITE_H
#define GF_PNG_IDAT_WRITE_H

#include "io/files.h"

enum {
    GF_PNG_IDAT_MOST = 1 << 30, /* bytes of one chunk; the format's limit is 2^31 - 1 */
    GF_PNG_IDAT_FRONT = 8,      /* bytes in front of a chunk's and behind, which are overwritten */
    GF_PNG_IDAT_BEHIND = 4
};

extern const unsigned char gf_png_idat_name[4]; /* a chunk's name */

/* Writes `size` bytes at `data` as one chunk. crc: of its name and the bytes. */
gf_status gf_png_idat_write(gf_output *output, unsigned char *data, size_t size, uint32_t crc,
                            gf_error *error);
/* Writes them as chunks of at most `most` bytes. */
gf_status gf_png_idat_write_parts(gf_output *output, unsigned char *data, size_t size, size_t most,
                                  gf_error *error);

/* Big-endian. */
void gf_png_put32(unsigned char *p, uint32_t v);

#endif
