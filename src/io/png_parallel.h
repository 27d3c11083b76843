/* Decoder of PNG rows on several threads; the same rows as png_inflate.c gives on one. */
#ifndef GF_PNG_PARALLEL_H
#define GF_PNG_PARALLEL_H

#include "io/png_inflate.h"

typedef struct gf_png_parallel gf_png_parallel;

/* Return the number of threads that decode the image, the caller included; 1 if png_inflate.c is
 * faster or the memory does not suffice. *memory receives the bytes of their buffers. */
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

/* End the threads. The input can then be read by the caller; rows that have not been returned are
 * lost. */
void gf_png_parallel_stop(gf_png_parallel *parallel);

/* Return the seconds that the other threads have been busy, less those that the caller has waited
 * for them. */
double gf_png_parallel_busy(const gf_png_parallel *parallel);

/* Return the bytes of output that were decoded without history and accepted, plus some per block.
 * For tests. */
uint64_t gf_png_parallel_accepted(const gf_png_parallel *parallel);

/* parallel may be NULL. */
void gf_png_parallel_close(gf_png_parallel *parallel);

#endif
