/* libpng's side of reading PNG: the header, what the samples mean, metadata before and after the
 * pixels; and the rows of files that png_inflate.h does not read. No function here jumps. */
#ifndef GF_PNG_READER_H
#define GF_PNG_READER_H

#include <png.h>

#include "io/io.h"
#include "io/png_idat.h"

typedef struct gf_png_reader {
    gf_input input;
    gf_limits limits;
    gf_metadata *metadata; /* borrowed */
    png_structp png;
    png_infop info;
    unsigned char header[GF_PNG_CHUNK_HEADER]; /* of the chunk that libpng came to last */
    unsigned char ahead[GF_PNG_CHUNK_HEADER];  /* was read by others: libpng gets it first */
    size_t ahead_bytes;
    bool pixels_done;        /* what comes is behind the pixels */
    bool rows_by_others;     /* not by libpng */
    uint64_t metadata_bytes; /* carried so far */
    char bad_chunk[4];       /* name of the ancillary chunk that libpng last warned of */
    gf_error cause;          /* the first failure; set before every longjmp */
} gf_png_reader;

/* Reads up to the first IDAT chunk's data; reader->header is that chunk's. Works on a copy of
 * *input, and closes neither. Metadata is appended to *metadata, now and at the end. Whatever comes
 * of it, close with gf_png_reader_close. */
gf_status gf_png_reader_open(gf_png_reader *reader, const gf_input *input, const gf_limits *limits,
                             gf_metadata *metadata, gf_error *error);

/* Hands bytes that were read from the input back to libpng; at most GF_PNG_CHUNK_HEADER. */
void gf_png_reader_give_back(gf_png_reader *reader, const unsigned char *bytes, size_t count);

/* libpng reads the rows. Allocates two of them. */
gf_status gf_png_reader_start_rows(gf_png_reader *reader, bool interlaced, gf_error *error);
/* Reads the next stored rows, or of an interlaced image the next ones of this pass. */
gf_status gf_png_reader_rows(gf_png_reader *reader, unsigned char *rows, size_t stride,
                             uint64_t count, gf_error *error);

/* Reads what follows the pixels. If others read the rows, the input must be behind the last IDAT
 * chunk, but for what was given back. */
gf_status gf_png_reader_end(gf_png_reader *reader, bool by_others, gf_error *error);

void gf_png_reader_close(gf_png_reader *reader);

#endif
