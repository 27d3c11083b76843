/* Rows into a plain file: many of them in one call to the system, and by several threads where that
 * is faster. */
#ifndef GF_ROW_WRITER_H
#define GF_ROW_WRITER_H

#include "io/files.h"
#include "io/kinds.h"
#include "io/row_order.h"

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
