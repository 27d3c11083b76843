/* Output of plain files: a header, then uncompressed rows. PGM, PPM and PAM store 16-bit samples in
 * big-endian order. PFM stores little-endian f32, the last row first. NPY files are in native
 * order. Raw files have no header and are little-endian. One system call writes many rows. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "io/bytes.h"
#include "io/formats.h"
#include "io/plain/npy.h"

enum { WRITE_BUFFER_BYTES = 1 << 18 }; /* buffer for reordered rows; it stays in the cache */

typedef struct plain_sink {
    gf_sink base;
    gf_row_order order;
    uint64_t y;            /* next row */
    unsigned char *buffer; /* reordered rows; NULL: write the caller's rows as they are */
    uint64_t buffer_rows;
    /* The last row comes first and the output is not seekable: buffer the whole image. */
    bool buffer_all;
} plain_sink;

/* Convert rows to the order of the file, without gaps. */
static void plain_reorder(const gf_row_order *order, unsigned char *dst, const unsigned char *src,
                          size_t stride, uint64_t rows) {
    const size_t row_bytes = gf_row_bytes(&order->format);
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t row = order->bottom_up ? rows - 1 - i : i;
        gf_copy_order(dst + i * row_bytes, src + row * stride, gf_row_samples(&order->format),
                      gf_type_bytes(order->format.type), order->little);
    }
}

static gf_status plain_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                             gf_error *error) {
    plain_sink *sink = (plain_sink *)base;
    const gf_row_order *order = &sink->order;
    const size_t row_bytes = gf_row_bytes(&order->format);
    const unsigned char *from = src;
    gf_status status = GF_OK;
    if (!sink->buffer)
        return gf_output_write_rows(base->output, src, stride, row_bytes, rows, error);
    for (uint64_t n; rows != 0 && !status; rows -= n, from += n * stride, sink->y += n) {
        n = rows < sink->buffer_rows ? rows : sink->buffer_rows;
        const uint64_t at = gf_row_order_offset(order, sink->y, n);
        plain_reorder(order, sink->buffer + (sink->buffer_all ? at - order->start : 0), from,
                      stride, n);
        if (sink->buffer_all)
            continue;
        if (order->bottom_up)
            status = gf_output_seek(base->output, at, error);
        if (!status)
            status = gf_output_write(base->output, sink->buffer, n * row_bytes, error);
    }
    return status;
}

static gf_status plain_sink_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    (void)metadata;
    plain_sink *sink = (plain_sink *)base;
    const gf_format *format = &sink->order.format;
    gf_status status = GF_OK;
    if (sink->buffer_all)
        status = gf_output_write(base->output, sink->buffer, gf_row_bytes(format) * format->height,
                                 error);
    return status ? status : gf_output_prepare(base->output, error);
}

static void plain_sink_close(gf_sink *base) {
    plain_sink *sink = (plain_sink *)base;
    gf_output_close(base->output);
    free(sink->buffer);
    free(sink);
}

/* ---- opening --------------------------------------------------------------------------------- */

static gf_status plain_open_buffer(plain_sink *sink, uint64_t max_memory, gf_error *error) {
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

/* Format "-SCALE" with the fewest digits that preserve the value, and with a decimal point as other
 * writers do. */
static void pfm_print_scale(char text[32], double scale) {
    gf_c_locale scope = gf_c_locale_enter();
    int length = 0;
    for (int digits = 1; digits <= 17; digits++) {
        length = snprintf(text, 32, "-%.*g", digits, scale);
        if (strtod(text, NULL) == -scale)
            break;
    }
    gf_c_locale_leave(&scope);
    if (!strpbrk(text, ".e"))
        snprintf(text + length, 32 - (size_t)length, ".0");
}

/* Return the size of the header. */
static size_t plain_header(const gf_sink_setup *setup, char header[256]) {
    static const char *const tuples[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    const gf_format *format = setup->format;
    const uint64_t width = format->width, height = format->height;
    const uint64_t shape[] = {height, width, format->channels};
    const int maxval = format->type == GF_U8 ? 255 : 65535;
    const double pfm_scale = setup->metadata->pfm_scale;
    char scale[32];
    if (setup->kind == GF_SINK_NPY)
        return gf_npy_put_header(header, gf_npy_dtype(format->type), shape,
                                 format->channels == 1 ? 2 : 3);
    if (setup->kind == GF_SINK_PNM)
        return (size_t)snprintf(header, 256, "P%d\n%" PRIu64 " %" PRIu64 "\n%d\n",
                                format->channels == 1 ? 5 : 6, width, height, maxval);
    if (setup->kind == GF_SINK_PAM)
        return (size_t)snprintf(header, 256,
                                "P7\nWIDTH %" PRIu64 "\nHEIGHT %" PRIu64 "\nDEPTH %" PRIu32
                                "\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n",
                                width, height, format->channels, maxval, tuples[format->channels]);
    if (setup->kind != GF_SINK_PFM)
        return 0; /* raw */
    pfm_print_scale(scale, pfm_scale > 0 && isfinite(pfm_scale) ? pfm_scale : 1.0);
    return (size_t)snprintf(header, 256, "%s\n%" PRIu64 " %" PRIu64 "\n%s\n",
                            format->channels == 3 ? "PF" : "Pf", width, height, scale);
}

gf_status gf_plain_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {plain_write, plain_sink_finish, plain_sink_close};
    const bool pfm = setup->kind == GF_SINK_PFM, npy = setup->kind == GF_SINK_NPY;
    char header[256];
    plain_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    if (!sink)
        return GF_FAILED;
    sink->base.cost = GF_PLAIN_COST;
    sink->base.exact = true;
    sink->base.headerless = setup->kind == GF_SINK_RAW;
    sink->order =
        (gf_row_order){.format = *setup->format,
                       .start = plain_header(setup, header),
                       .bottom_up = pfm,
                       .little = npy ? gf_host_is_little() : pfm || setup->kind == GF_SINK_RAW};
    sink->y = setup->first;
    sink->buffer_all = pfm && !gf_output_seekable(setup->output);
    gf_status status = plain_open_buffer(sink, setup->max_memory, error);
    if (!status && setup->header)
        status = gf_output_write(setup->output, header, (size_t)sink->order.start, error);
    else if (!status && !pfm)
        status =
            gf_output_seek(setup->output, gf_row_order_offset(&sink->order, sink->y, 0), error);
    if (status)
        plain_sink_close(&sink->base);
    else
        *opened = &sink->base;
    return status;
}
