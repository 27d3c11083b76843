/* Plain files out: a header and the rows as they are. PGM, PPM and PAM have 16-bit samples in
 * big-endian order; PFM has little-endian f32, the last row first; raw rows have no header and are
 * little-endian. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/c_locale.h"
#include "core/error.h"
#include "io/rows.h"

typedef struct plain_sink {
    gf_sink base;
    gf_row_order order;
    gf_row_writer *writer; /* NULL: the last row comes first, and the output cannot seek */
    unsigned char *bytes;  /* then: the whole image, in the file's order */
    uint64_t y;            /* then: of the next row */
} plain_sink;

/* ---- the sink -------------------------------------------------------------------------------- */

static gf_status plain_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                             gf_error *error) {
    plain_sink *sink = (plain_sink *)base;
    const gf_format *format = &sink->order.format;
    if (sink->writer)
        return gf_row_writer_write(sink->writer, src, stride, rows, error);
    for (uint64_t i = 0; i < rows; i++, sink->y++)
        gf_row_order_copy(&sink->order,
                          sink->bytes +
                              gf_row_order_turn(&sink->order, sink->y) * gf_row_bytes(format),
                          (const unsigned char *)src + i * stride, gf_row_samples(format));
    return GF_OK;
}

static gf_status plain_sink_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    (void)metadata;
    plain_sink *sink = (plain_sink *)base;
    const gf_format *format = &sink->order.format;
    gf_status status = GF_OK;
    if (sink->writer) {
        const gf_busy busy = gf_row_writer_busy(sink->writer);
        base->threads = busy.workers;
        base->busy_seconds = busy.seconds;
    } else {
        status = gf_output_write(base->output, sink->bytes, gf_row_bytes(format) * format->height,
                                 error);
    }
    return status ? status : gf_output_prepare(base->output, error);
}

static void plain_sink_close(gf_sink *base) {
    plain_sink *sink = (plain_sink *)base;
    gf_row_writer_close(sink->writer);
    gf_output_close(base->output);
    free(sink->bytes);
    free(sink);
}

/* Hold the image until its last row is known, for a PFM into a pipe. */
static gf_status plain_start_held(plain_sink *sink, const char *header, uint64_t max_memory,
                                  gf_error *error) {
    const char *name = gf_output_name(sink->base.output), *what = "a PFM to a pipe";
    const gf_format *format = &sink->order.format;
    const uint64_t bytes = gf_row_bytes(format) * format->height;
    gf_status status = gf_check_memory(bytes, max_memory, name, what, error);
    if (status)
        return status;
    sink->bytes = malloc((size_t)bytes); /* NOLINT: an image has at least one sample */
    if (!sink->bytes)
        return gf_fail_memory(error, name, bytes, what);
    sink->base.memory = bytes;
    return gf_output_write(sink->base.output, header, strlen(header), error);
}

/* ---- opening ---- */

/* "-SCALE" in the fewest digits that read back as the same number, with a point as other writers
 * have it. */
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

static void plain_header(const gf_sink_setup *setup, char header[256]) {
    static const char *const tuples[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    const gf_format *format = setup->format;
    const uint64_t width = format->width, height = format->height;
    const int maxval = format->type == GF_U8 ? 255 : 65535;
    const double known = setup->metadata->pfm_scale;
    char scale[32];
    *header = '\0';
    if (setup->kind == GF_SINK_PNM) {
        snprintf(header, 256, "P%d\n%" PRIu64 " %" PRIu64 "\n%d\n", format->channels == 1 ? 5 : 6,
                 width, height, maxval);
    } else if (setup->kind == GF_SINK_PAM) {
        snprintf(header, 256,
                 "P7\nWIDTH %" PRIu64 "\nHEIGHT %" PRIu64 "\nDEPTH %" PRIu32
                 "\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n",
                 width, height, format->channels, maxval, tuples[format->channels]);
    } else if (setup->kind == GF_SINK_PFM) {
        pfm_print_scale(scale, known > 0 && isfinite(known) ? known : 1.0);
        snprintf(header, 256, "%s\n%" PRIu64 " %" PRIu64 "\n%s\n",
                 format->channels == 3 ? "PF" : "Pf", width, height, scale);
    }
}

gf_status gf_plain_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {plain_write, plain_sink_finish, gf_sink_place,
                                    plain_sink_close};
    const bool pfm = setup->kind == GF_SINK_PFM;
    char header[256];
    plain_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    if (!sink)
        return GF_FAILED;
    plain_header(setup, header);
    sink->base.cost = GF_PLAIN_COST;
    sink->base.exact = true;
    sink->base.headless = setup->kind == GF_SINK_RAW;
    sink->order = (gf_row_order){.format = *setup->format,
                                 .start = strlen(header),
                                 .upwards = pfm,
                                 .little = pfm || setup->kind == GF_SINK_RAW};
    gf_status status = pfm && !gf_output_seekable(setup->output)
                           ? plain_start_held(sink, header, setup->max_memory, error)
                           : gf_row_writer_open(setup, &sink->order, header, &sink->writer, error);
    if (status) {
        free(sink->bytes);
        free(sink);
        return status;
    }
    if (sink->writer && gf_row_writer_threads(sink->writer) > 1)
        sink->base.threads = gf_row_writer_threads(sink->writer);
    *opened = &sink->base;
    return GF_OK;
}
