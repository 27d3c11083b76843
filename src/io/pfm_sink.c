/* PFM out: little-endian f32, the last row first. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_locale.h"
#include "error.h"
#include "io/bytes.h"
#include "io/costs.h"
#include "io/kinds.h"
#include "io/limits.h"

typedef struct pfm_sink {
    gf_sink base;
    gf_output *output;
    gf_format format;
    uint64_t start;       /* offset of the first sample in the file */
    uint64_t y;           /* of the next row */
    unsigned char *bytes; /* one row if the output can seek, else the whole image; file's order */
    bool seekable;
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

static gf_status pfm_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    pfm_sink *sink = (pfm_sink *)base;
    size_t row_bytes = gf_row_bytes(&sink->format);
    const unsigned char *in = src;
    gf_status status = GF_OK;

    for (uint64_t i = 0; i < rows && status == GF_OK; i++, sink->y++) {
        uint64_t offset = (sink->format.height - 1 - sink->y) * row_bytes;
        unsigned char *row = sink->seekable ? sink->bytes : sink->bytes + offset;
        gf_copy_order32(row, in + i * stride, gf_row_samples(&sink->format), true);
        if (sink->seekable)
            status = gf_output_write_at(sink->output, row, row_bytes, sink->start + offset, error);
    }
    return status;
}

static gf_status pfm_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    pfm_sink *sink = (pfm_sink *)base;
    gf_status status = GF_OK;

    (void)metadata;
    if (!sink->seekable) {
        size_t bytes = gf_row_bytes(&sink->format) * sink->format.height;
        status = gf_output_write(sink->output, sink->bytes, bytes, error);
    }
    return status == GF_OK ? gf_output_prepare(sink->output, error) : status;
}

static gf_status pfm_place(gf_sink *base, gf_error *error) {
    return gf_output_place(((pfm_sink *)base)->output, error);
}

static void pfm_close(gf_sink *base) {
    pfm_sink *sink = (pfm_sink *)base;

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

static gf_status start(pfm_sink *sink, const gf_sink_setup *setup, gf_error *error) {
    const char *name = gf_output_name(sink->output);
    uint64_t bytes = gf_row_bytes(&sink->format) * (sink->seekable ? 1 : sink->format.height);
    const char *what = sink->seekable ? "a row" : "a PFM to a pipe";
    char header[128];
    char scale[32];
    gf_status status = gf_check_memory(bytes, setup->max_memory, name, what, error);

    if (status != GF_OK)
        return status;
    sink->bytes = malloc((size_t)bytes);
    if (sink->bytes == NULL)
        return gf_fail_memory(error, name, bytes, what);
    bool usable = setup->metadata->pfm_scale > 0 && isfinite(setup->metadata->pfm_scale);
    print_scale(scale, usable ? setup->metadata->pfm_scale : 1.0);
    sink->start = (uint64_t)snprintf(header, sizeof header, "%s\n%" PRIu64 " %" PRIu64 "\n%s\n",
                                     sink->format.channels == 3 ? "PF" : "Pf", sink->format.width,
                                     sink->format.height, scale);
    return gf_output_write(sink->output, header, (size_t)sink->start, error);
}

gf_status gf_pfm_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {pfm_write, pfm_finish, pfm_place, pfm_close};
    pfm_sink *sink = calloc(1, sizeof *sink);

    if (sink == NULL)
        return gf_fail_memory(error, gf_output_name(setup->output), sizeof *sink, "a sink");
    sink->base.ops = &ops;
    sink->base.cost = GF_PLAIN_COST;
    sink->output = setup->output;
    sink->format = *setup->format;
    sink->seekable = gf_output_seekable(setup->output);
    gf_status status = start(sink, setup, error);
    if (status != GF_OK) {
        free(sink->bytes);
        free(sink);
        return status;
    }
    *opened = &sink->base;
    return GF_OK;
}
