/* PFM out: little-endian f32, the last row first. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_locale.h"
#include "error.h"
#include "io/costs.h"
#include "io/kinds.h"
#include "io/limits.h"
#include "io/row_writer.h"

typedef struct pfm_sink {
    gf_sink base;
    gf_output *output;
    gf_format format;
    gf_row_order order;
    gf_row_writer *writer; /* NULL: the output cannot seek */
    unsigned char *bytes;  /* then: the whole image, in the file's order */
    uint64_t y;            /* of the next row */
} pfm_sink;

gf_status gf_pfm_sink_check(const gf_format *format, const char *name, gf_error *error) {
    if (format->type != GF_F32) {
        return gf_fail(error, GF_FAILED,
                       "%s: PFM holds only f32 samples and this image is %s; write .png or .pam",
                       name, gf_type_name(format->type));
    }
    if (gf_has_alpha(format->channels)) {
        return gf_fail(
            error, GF_FAILED,
            "%s: PFM holds no alpha channel and the image to write has one; drop it first", name);
    }
    return GF_OK;
}

/* Into memory: the last row goes first. */
static void hold_rows(pfm_sink *sink, const unsigned char *src, size_t stride, uint64_t rows) {
    const size_t row_bytes = gf_row_bytes(&sink->order.format);

    for (uint64_t i = 0; i < rows; i++, sink->y++)
        gf_row_order_copy(&sink->order,
                          sink->bytes + gf_row_order_turn(&sink->order, sink->y) * row_bytes,
                          src + i * stride, gf_row_samples(&sink->order.format));
}

static gf_status pfm_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    pfm_sink *sink = (pfm_sink *)base;

    if (sink->writer != NULL)
        return gf_row_writer_write(sink->writer, src, stride, rows, error);
    hold_rows(sink, src, stride, rows);
    return GF_OK;
}

static gf_status pfm_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    pfm_sink *sink = (pfm_sink *)base;
    gf_status status = GF_OK;

    (void)metadata;
    if (sink->writer != NULL) {
        const gf_busy busy = gf_row_writer_busy(sink->writer);
        base->threads = busy.workers;
        base->busy_seconds = busy.seconds;
    } else {
        size_t bytes = gf_row_bytes(&sink->order.format) * sink->order.format.height;
        status = gf_output_write(sink->output, sink->bytes, bytes, error);
    }
    return status == GF_OK ? gf_output_prepare(sink->output, error) : status;
}

static gf_status pfm_place(gf_sink *base, gf_error *error) {
    return gf_output_place(((pfm_sink *)base)->output, error);
}

static void pfm_close(gf_sink *base) {
    pfm_sink *sink = (pfm_sink *)base;

    gf_row_writer_close(sink->writer);
    gf_output_close(sink->output);
    free(sink->bytes);
    free(sink);
}

/* "-SCALE" in the fewest digits that read back as the same number, with a point as other writers
 * have it. */
static void print_scale(char text[32], double scale) {
    gf_c_locale scope = gf_c_locale_enter();
    int length = 0;
    for (int digits = 1; digits <= 17; digits++) {
        length = snprintf(text, 32, "-%.*g", digits, scale);
        if (strtod(text, NULL) == -scale)
            break;
    }
    gf_c_locale_leave(&scope);
    if (strpbrk(text, ".e") == NULL)
        (void)snprintf(text + length, 32 - (size_t)length, ".0");
}

static void print_header(const gf_sink_setup *setup, char header[128]) {
    const double known = setup->metadata->pfm_scale;
    char scale[32];

    print_scale(scale, known > 0 && isfinite(known) ? known : 1.0);
    (void)snprintf(header, 128, "%s\n%" PRIu64 " %" PRIu64 "\n%s\n",
                   setup->format->channels == 3 ? "PF" : "Pf", setup->format->width,
                   setup->format->height, scale);
}

static gf_status start(pfm_sink *sink, const gf_sink_setup *setup, gf_error *error) {
    const char *name = gf_output_name(sink->output);
    const uint64_t bytes = gf_row_bytes(setup->format) * setup->format->height;
    char header[128];

    print_header(setup, header);
    sink->order = (gf_row_order){
        .format = *setup->format, .start = strlen(header), .upwards = true, .little = true};
    if (gf_output_seekable(sink->output))
        return gf_row_writer_open(setup, &sink->order, header, &sink->writer, error);
    gf_status status = gf_check_memory(bytes, setup->max_memory, name, "a PFM to a pipe", error);
    if (status != GF_OK)
        return status;
    sink->bytes = malloc((size_t)bytes); /* NOLINT: an image has at least one sample */
    if (sink->bytes == NULL)
        return gf_fail_memory(error, name, bytes, "a PFM to a pipe");
    sink->base.memory = bytes;
    return gf_output_write(sink->output, header, strlen(header), error);
}

gf_status gf_pfm_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {pfm_write, pfm_finish, pfm_place, pfm_close};
    pfm_sink *sink = calloc(1, sizeof *sink);

    if (sink == NULL)
        return gf_fail_memory(error, gf_output_name(setup->output), sizeof *sink, "a sink");
    sink->base.ops = &ops;
    sink->base.cost = GF_PLAIN_COST;
    sink->base.exact = true;
    sink->output = setup->output;
    gf_status status = start(sink, setup, error);
    if (status != GF_OK) {
        free(sink->bytes);
        free(sink);
        return status;
    }
    if (sink->writer != NULL && gf_row_writer_threads(sink->writer) > 1)
        sink->base.threads = gf_row_writer_threads(sink->writer);
    *opened = &sink->base;
    return GF_OK;
}
