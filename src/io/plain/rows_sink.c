/* Output of plain files. One system call writes many rows. */
#include "io/plain/rows.h"

#include <stdlib.h>

#include "io/bytes.h"

enum { WRITE_BUFFER_BYTES = 1 << 18 }; /* buffer for reordered rows; it stays in the cache */

typedef struct rows_sink {
    gf_sink base;
    gf_row_order order;
    uint64_t y;            /* next row */
    unsigned char *buffer; /* reordered rows; NULL: write the caller's rows as they are */
    uint64_t buffer_rows;
    /* The last row comes first and the output is not seekable: buffer the whole image. */
    bool buffer_all;
} rows_sink;

/* Convert rows to the order of the file, without gaps. */
static void rows_reorder(const gf_row_order *order, unsigned char *dst, const unsigned char *src,
                         size_t stride, uint64_t rows) {
    const size_t row_bytes = gf_row_bytes(&order->format);
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = order->bottom_up ? rows - 1 - i : i;
        gf_copy_order(dst + i * row_bytes, src + row * stride, gf_row_samples(&order->format),
                      gf_type_bytes(order->format.type), order->little);
    }
}

static gf_status rows_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                            gf_error *error) {
    rows_sink *sink = (rows_sink *)base;
    const gf_row_order *order = &sink->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    const unsigned char *from = src;
    gf_status status = GF_OK;
    if (!sink->buffer)
        return gf_output_write_rows(base->output, src, stride, row_bytes, rows, error);
    for (uint64_t n; rows != 0 && !status; rows -= n, from += n * stride, sink->y += n) {
        n = rows < sink->buffer_rows ? rows : sink->buffer_rows;
        const uint64_t at = gf_row_order_offset(order, sink->y, n);
        rows_reorder(order, sink->buffer + (sink->buffer_all ? at - order->start : 0), from, stride,
                     n);
        if (sink->buffer_all)
            continue;
        if (order->bottom_up)
            status = gf_output_seek(base->output, at, error);
        if (!status)
            status = gf_output_write(base->output, sink->buffer, n * row_bytes, error);
    }
    return status;
}

static gf_status rows_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    (void)metadata;
    rows_sink *sink = (rows_sink *)base;
    const gf_format *format = &sink->order.format;
    gf_status status = GF_OK;
    if (sink->buffer_all)
        status = gf_output_write(base->output, sink->buffer, gf_row_bytes(format) * format->height,
                                 error);
    return status ? status : gf_output_prepare(base->output, error);
}

static void rows_close(gf_sink *base) {
    rows_sink *sink = (rows_sink *)base;
    gf_output_close(base->output);
    free(sink->buffer);
    free(sink);
}

/* ---- opening --------------------------------------------------------------------------------- */

static gf_status rows_open_buffer(rows_sink *sink, uint64_t max_memory, gf_error *error) {
    const gf_format *format = &sink->order.format;
    const char *name = gf_output_name(sink->base.output);
    const char *what = sink->buffer_all ? "a PFM to a pipe" : "a row";
    const size_t row_bytes = gf_row_bytes(format);
    const uint64_t max = max_memory < WRITE_BUFFER_BYTES ? max_memory : WRITE_BUFFER_BYTES;
    uint64_t rows = max / row_bytes;
    if (!sink->order.bottom_up &&
        (format->type == GF_U8 || sink->order.little == gf_host_is_little()))
        return GF_OK;
    if (sink->buffer_all || rows > format->height)
        rows = format->height;
    if (rows == 0)
        rows = 1;
    sink->buffer_rows = rows;
    sink->buffer = gf_alloc_limited(rows * row_bytes, max_memory, name, what, error);
    if (sink->buffer_all)
        sink->base.memory = rows * row_bytes;
    return sink->buffer ? GF_OK : GF_FAILED;
}

gf_status gf_rows_sink_open(const gf_sink_setup *setup, const gf_row_order *order,
                            const void *header, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {rows_write, rows_finish, rows_close};
    rows_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    if (!sink)
        return GF_FAILED;
    sink->order = *order;
    sink->y = setup->first;
    sink->buffer_all = order->bottom_up && !gf_output_seekable(setup->output);
    gf_status status = rows_open_buffer(sink, setup->max_memory, error);
    if (!status && setup->header)
        status = gf_output_write(setup->output, header, (size_t)order->start, error);
    else if (!status && !order->bottom_up)
        status = gf_output_seek(setup->output, gf_row_order_offset(order, sink->y, 0), error);
    if (status)
        rows_close(&sink->base);
    else
        *opened = &sink->base;
    return status;
}
