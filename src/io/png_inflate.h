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
#include "io/png_idat.h"

/* Properties of an image that the decoder needs. */
typedef struct gf_png_image {
    size_t row_bytes;    /* a row without its filter type byte */
    uint64_t height;     /* rows */
    uint64_t file_bytes; /* compressed bytes, or slightly more; 0: unknown */
    uint32_t unit;       /* bytes per pixel: 1, 2, 3, 4, 6 or 8; 1 for pixels below one byte */
    uint32_t threads;    /* maximum number of threads */
    uint64_t max_memory; /* maximum bytes of the buffers of several threads */
    size_t segment;      /* as gf_limits.segment */
} gf_png_image;

/* State of the zlib stream, for one and for several threads. */
typedef struct gf_png_stream {
    gf_png_idat idat;
    bool ended;               /* the checksum after the last block is correct */
    gf_inflate_result damage; /* error after the output; 0: none */
    gf_error unread;          /* error after the input; status GF_OK: none */
} gf_png_stream;

/* Decoded rows. Filtered ones begin with their filter type byte. */
typedef struct gf_png_rows {
    const unsigned char *first;
    size_t stride;
    uint64_t count;
    bool filtered;
} gf_png_rows;

typedef struct gf_png_inflate gf_png_inflate;

/* Return true if this decoder supports the stream. head: the first two bytes, the zlib header. */
bool gf_png_inflate_supports(const unsigned char head[2]);

/* Start after the zlib header, read from *idat. */
gf_status gf_png_inflate_open(const gf_png_idat *idat, const gf_png_image *image,
                              gf_png_inflate **opened, gf_error *error);

/* As gf_source_ops.announce and cancel, for images whose samples are not expanded. */
gf_status gf_png_inflate_announce(gf_png_inflate *rows, void *to, size_t stride, uint64_t count,
                                  gf_error *error);
void gf_png_inflate_cancel(gf_png_inflate *rows);

/* Before the first row: decode with one thread. */
void gf_png_inflate_shrink(gf_png_inflate *rows);

/* Decode the next rows, at least 1 and at most max. They are valid until the next call. */
gf_status gf_png_inflate_rows(gf_png_inflate *rows, uint64_t max, gf_png_rows *decoded,
                              gf_error *error);

/* Fail because a filter type byte is invalid. */
gf_status gf_png_inflate_fail_filter(gf_png_inflate *rows, gf_error *error);

/* After the last row: check the end of the stream and read the rest of the IDAT chunks. header
 * receives the header of the chunk that follows. */
gf_status gf_png_inflate_finish(gf_png_inflate *rows, unsigned char header[GF_PNG_CHUNK_HEADER],
                                gf_error *error);

/* Return the seconds that other threads have been busy, less those that the caller has waited for
 * them. */
double gf_png_inflate_busy(const gf_png_inflate *rows);

/* rows may be NULL. */
void gf_png_inflate_close(gf_png_inflate *rows);

#endif
