/* Rows of plain files, read and written by several threads. */
#ifndef GF_ROWS_H
#define GF_ROWS_H

#include "io/bytes.h"
#include "io/formats.h"

/* How rows lie in a plain file: one behind the other, in a byte order that may not be the host's.
 */

typedef struct gf_row_order {
    gf_format format;
    uint64_t start; /* offset of the first sample in the file */
    bool upwards;   /* the last row comes first */
    bool little;    /* byte order of samples of more than a byte */
} gf_row_order;

/* Is a row in the file the same bytes as in memory? */
static inline bool gf_row_order_plain(const gf_row_order *order) {
    return order->format.type == GF_U8 || order->little == gf_host_is_little();
}

/* Copies samples of rows from the file's order to the host's, or back; dst == src is allowed. */
static inline void gf_row_order_copy(const gf_row_order *order, void *dst, const void *src,
                                     uint64_t samples) {
    if (gf_row_order_plain(order)) {
        if (dst != src)
            memcpy(dst, src, (size_t)(samples * gf_type_bytes(order->format.type)));
    } else if (order->format.type == GF_U16) {
        gf_copy_order16(dst, src, samples, order->little);
    } else {
        gf_copy_order32(dst, src, samples, order->little);
    }
}

/* Row of the image that is row `row` of the file, or the other way round. */
static inline uint64_t gf_row_order_turn(const gf_row_order *order, uint64_t row) {
    return order->upwards ? order->format.height - 1 - row : row;
}

/* Where `rows` rows of the image from row y on begin in the file. */
static inline uint64_t gf_row_order_offset(const gf_row_order *order, uint64_t y, uint64_t rows) {
    const uint64_t first = order->upwards ? order->format.height - y - rows : y;
    return order->start + first * gf_row_bytes(&order->format);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct gf_row_reader gf_row_reader;

/* A reader of input (borrowed until close), a regular file, by up to so many threads. */
gf_status gf_row_reader_open(const gf_input *input, const gf_row_order *order, uint32_t threads,
                             gf_row_reader **reader, gf_error *error);
/* From now on reads only these pixels of a row: columns x to before x + width. */
void gf_row_reader_narrow(gf_row_reader *reader, uint64_t x, uint64_t width);
/* Threads that will read at a time, at most; 1 for an image too small to be worth more. */
uint32_t gf_row_reader_threads(const gf_row_reader *reader);
/* Reads rows y to y + rows - 1 of the image to dst, a stride apart; nothing between them changes.
 * GF_FAILED also for a file that ends before. */
gf_status gf_row_reader_read(gf_row_reader *reader, void *dst, size_t stride, uint64_t y,
                             uint64_t rows, gf_error *error);
/* How long it has read, and by how many threads at most. */
gf_busy gf_row_reader_busy(const gf_row_reader *reader);
/* NULL is allowed. */
void gf_row_reader_close(gf_row_reader *reader);

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct gf_row_writer gf_row_writer;

/* A writer to the setup's output (borrowed until close), which must be able to seek if the last row
 * comes first, from the setup's first row on. Writes the header (order->start bytes) at once, if
 * that is wanted. */
gf_status gf_row_writer_open(const gf_sink_setup *setup, const gf_row_order *order,
                             const char *header, gf_row_writer **writer, gf_error *error);
/* Threads that will write at a time, at most. */
uint32_t gf_row_writer_threads(const gf_row_writer *writer);
/* Writes the next rows, which lie a stride apart. */
gf_status gf_row_writer_write(gf_row_writer *writer, const void *src, size_t stride, uint64_t rows,
                              gf_error *error);
/* How long several threads have written, and how many at most; none if one did. */
gf_busy gf_row_writer_busy(const gf_row_writer *writer);
/* NULL is allowed. */
void gf_row_writer_close(gf_row_writer *writer);

#endif
