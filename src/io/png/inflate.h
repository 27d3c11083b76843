/* Decompression of PNG image data: from the IDAT chunks to filtered rows, each a filter type byte
 * followed by the filtered bytes.
 *
 * Only for streams that declare a window of 32 KiB, as all but small images do: zlib's check of
 * distances then does not depend on its buffer sizes. The decoder accepts the streams that zlib
 * decodes to their end, with the same output, for any split into chunks. "Differences from libpng"
 * in docs/design-files.md lists the differences. */
#ifndef GF_PNG_INFLATE_H
#define GF_PNG_INFLATE_H

#include "io/file/input.h"
#include "io/flate/inflate.h"

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

/* Properties of an image that the decoder needs. */
typedef struct gf_png_image {
    size_t row_bytes;    /* a row without its filter type byte */
    uint64_t height;     /* rows */
    uint64_t file_bytes; /* compressed bytes, or slightly more; 0: unknown */
    uint32_t unit;       /* bytes per pixel: 1, 2, 3, 4, 6 or 8; 1 for pixels below one byte */
    uint32_t threads;    /* maximum number of threads */
    bool shared;         /* as gf_limits.shared */
    uint64_t max_memory; /* maximum bytes of the buffers of several threads */
    size_t segment;      /* as gf_limits.segment */
} gf_png_image;

/* State of the zlib stream, for one and for several threads. */
typedef struct gf_png_stream {
    gf_png_idat idat;
    bool ended;               /* the checksum after the last block is correct */
    gf_inflate_result damage; /* error after the output; 0: none */
    gf_error unread;          /* error after the input; status GF_OK: none */
    double busy;              /* seconds of other threads, less those of waiting for them */
    uint64_t accepted;        /* bytes decoded without history and accepted, plus some per block */
} gf_png_stream;

/* Decoded rows. Filtered ones begin with their filter type byte. */
typedef struct gf_png_rows {
    const unsigned char *first;
    size_t stride;
    uint64_t count;
    bool filtered;
} gf_png_rows;

enum { GF_PNG_IN_BYTES = 1 << 16 };

/* The decoder. threads of `image` may be changed until it starts. */
typedef struct gf_png_inflate {
    gf_png_stream stream;
    gf_png_image image;
    struct gf_png_parallel *parallel; /* decodes with several threads; NULL: the following does */
    size_t row;                       /* bytes of a filtered row, with its filter type byte */
    unsigned char *out;               /* `capacity` bytes; [begin, end) is not yet returned */
    size_t capacity, begin, end;
    size_t summed;                         /* output that adler covers */
    uint32_t adler;                        /* of all output */
    gf_inflate inflate;                    /* large; this and the following are not cleared */
    unsigned char in[GF_PNG_IN_BYTES + 8]; /* 8 bytes after the input are readable */
} gf_png_inflate;

/* Return true if this decoder supports the stream. head: the first two bytes, the zlib header. */
bool gf_png_inflate_supports(const unsigned char head[2]);
/* Open a stream after its zlib header, which has been read from *idat. */
gf_png_inflate *gf_png_inflate_open(const gf_png_idat *idat, const gf_png_image *image,
                                    gf_error *error);
/* As gf_source_ops.announce, for images whose samples are not expanded. */
gf_status gf_png_inflate_announce(gf_png_inflate *rows, void *to, size_t stride, uint64_t count,
                                  gf_error *error);
/* Decode the next rows, at least 1 and at most max. They are valid until the next call. */
gf_status gf_png_inflate_rows(gf_png_inflate *rows, uint64_t max, gf_png_rows *decoded,
                              gf_error *error);
/* Fail for damaged data. what: the damage; NULL: that of the stream. An error in a later chunk is
 * reported instead: damage that a CRC detects makes the data undecodable at a place that depends on
 * chance. The rest of a pipe is not read; an error found in it by chance is not reported. */
gf_status gf_png_inflate_fail(gf_png_inflate *rows, const char *what, gf_error *error);
/* After the last row: check the end of the stream, and read up to the header of the next chunk. */
gf_status gf_png_inflate_finish(gf_png_inflate *rows, gf_error *error);
/* rows may be NULL. */
void gf_png_inflate_close(gf_png_inflate *rows);

/* Decoder on several threads (io/png/parallel.c), which the functions above call. */
typedef struct gf_png_parallel gf_png_parallel;
/* Return the number of threads that decode the image; 1 if io/png/inflate.c is faster or the memory
 * does not suffice. *memory receives the bytes of their buffers. */
uint32_t gf_png_parallel_threads(const gf_png_image *image, uint64_t *memory);
/* Start after the zlib header with image->threads threads, as returned above. stream and image:
 * borrowed until close. Return NULL if out of memory. */
gf_png_parallel *gf_png_parallel_open(gf_png_stream *stream, const gf_png_image *image);
/* Announce the memory of the next rows, as gf_source_ops.announce, for images whose samples are not
 * expanded. Rows that have been decoded before are in other memory. */
void gf_png_parallel_announce(gf_png_parallel *parallel, unsigned char *to, size_t stride,
                              uint64_t rows);
/* Decode the next rows, at most max. rows->count is 0 if the stream ends before: stream->damage is
 * then set unless its checksum is correct. */
void gf_png_parallel_rows(gf_png_parallel *parallel, uint64_t max, gf_png_rows *rows);
/* Decode the rest of the stream. Return its bytes, or any number above max if there are more. */
size_t gf_png_parallel_skip(gf_png_parallel *parallel, size_t max);
/* End the threads, which release the input and lose unreturned rows. parallel may be NULL. */
void gf_png_parallel_stop(gf_png_parallel *parallel);
void gf_png_parallel_close(gf_png_parallel *parallel);

#endif
