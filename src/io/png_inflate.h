/* From the IDAT chunks of a PNG to its filtered rows: each row is a byte that names its filter and
 * the row's bytes as that filter left them. ISA-L decodes one block at a time; a stream that would
 * cost ISA-L much more than zlib is handed to zlib.
 *
 * Only for streams that declare a window of 32 KiB, as all but small images do: then zlib's verdict
 * on distances does not depend on the sizes of its buffers. It accepts the streams that
 * zlib accepts to their end, with its bytes, whatever the chunks. "Differences from libpng" in
 * docs/design-files.md lists where libpng differs. */
#ifndef GF_PNG_INFLATE_H
#define GF_PNG_INFLATE_H

#include "io/png_idat.h"

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

#endif
