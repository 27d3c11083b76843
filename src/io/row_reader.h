/* Rows of a regular file straight to where they are wanted, by several threads at a time. */
#ifndef GF_ROW_READER_H
#define GF_ROW_READER_H

#include "io/files.h"
#include "io/row_order.h"

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

#endif
