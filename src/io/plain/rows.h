/* Plain files: a header, then rows without compression. Each format reads and writes its header;
 * the rows are read and written here. */
#ifndef GF_ROWS_H
#define GF_ROWS_H

#include "core/thread.h"
#include "io/codec.h"

/* Layout of the rows in an uncompressed file: consecutive, in either byte order and row order. */
typedef struct gf_row_order {
    gf_format format;
    uint64_t start; /* file offset of the first sample, in bytes */
    bool bottom_up; /* the last row is stored first */
    bool little;    /* byte order of samples of more than one byte */
} gf_row_order;

/* Return the file offset at which rows y to y + rows - 1 of the image start. */
static inline uint64_t gf_row_order_offset(const gf_row_order *order, uint64_t y, uint64_t rows) {
    const uint64_t first = order->bottom_up ? order->format.height - y - rows : y;
    return order->start + first * gf_row_bytes(&order->format);
}

typedef struct gf_plain_source gf_plain_source;

/* Functions of a format. */
typedef struct gf_plain_format {
    /* Read the header at the position of the input, and set the rows of one of its images, from 1.
     * The format of the source is checked against the limits. */
    gf_status (*read)(gf_plain_source *source, const gf_limits *limits, uint64_t page,
                      gf_error *error);
    /* Return true if these bytes start another header. NULL: a file has one image, and no pages. */
    bool (*follows)(const unsigned char head[8]);
    /* Fail for a sample in row y of the file that convert rejects. NULL: it rejects none. */
    gf_status (*fail)(const gf_plain_source *source, uint64_t y, gf_error *error);
    /* Check what follows the rows in a pipe. NULL: ignore it. */
    gf_status (*check_end)(gf_plain_source *source, gf_error *error);
} gf_plain_format;

struct gf_plain_source {
    gf_source base;
    gf_input input;
    const gf_plain_format *format;
    /* Set by gf_plain_format.read, zeroed at first. */
    gf_row_order order;   /* rows of the file; those of a binary PBM are packed bits in u8 */
    uint64_t images, end; /* of the header: its images, 0 for one, and where they end, 0 for the
                           * end of the rows */
    /* Convert a row of the file to the image. row may equal src. Return false if a sample is
     * invalid. NULL: only the byte order differs. */
    bool (*convert)(const gf_plain_source *source, unsigned char *row, const unsigned char *src);
    /* Read the next row of a file whose samples are text. NULL: they are binary. */
    gf_status (*read_text)(gf_plain_source *source, unsigned char *row, gf_error *error);
    uint32_t maxval;     /* PNM and PAM: max value of a sample in the file; others: 0 */
    bool bitmap;         /* PBM: a sample is one bit, 1 is black */
    bool header_ends_cr; /* PNM: the input is a pipe and its header ends in CR */
    /* State of reading. */
    gf_pool *pool;     /* reads rows in any order; NULL: read them in the order of the file */
    uint32_t threads;  /* threads in the pool */
    uint32_t max_used; /* max threads that read at the same time */
    uint64_t y;        /* next row */
    size_t cut_bytes;  /* of a row of the file, before the columns to read */
    unsigned char first_byte; /* after the header; only if rows are read in order */
};

/* Open a file of a format; with NULL, a regular file whose header has been read elsewhere: its rows
 * are stored from top to bottom. As gf_open_source. */
gf_status gf_plain_open(const gf_input *input, const gf_plain_format *format,
                        const gf_row_order *order, const gf_limits *limits, gf_source **opened,
                        gf_error *error);

/* Return the offset after the last row. */
uint64_t gf_plain_end(const gf_plain_source *source);
/* Return whether the size of the file is known. Files in /proc report size 0. */
bool gf_plain_has_size(const gf_plain_source *source);
/* Describe the samples: "16-bit, big-endian". word: inserted after the type. */
void gf_plain_describe(gf_plain_source *source, const char *word, const char *tail);

/* Open a sink for the rows after a header of order->start bytes. */
gf_status gf_rows_sink_open(const gf_sink_setup *setup, const gf_row_order *order,
                            const void *header, gf_sink **sink, gf_error *error);

/* Capacity for the headers of NumPy files that gf_npy_put_header writes. */
enum { GF_NPY_HEADER_BYTES = 192 };

/* Return the Python literal of the dtype of little-endian samples, such as "'<u2'". */
const char *gf_npy_dtype(gf_type type);
/* Write the header of numpy.save, version 1.0, for an array in C order. descr: Python literal of
 * the dtype, at most 100 bytes. Return the size, a multiple of 64 bytes. It does not depend on
 * shape[0]. */
size_t gf_npy_put_header(char to[GF_NPY_HEADER_BYTES], const char *descr, const uint64_t *shape,
                         size_t dimensions);

#endif
