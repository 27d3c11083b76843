/* PGM, PPM, PAM and PFM in: a header, and what it says of the rows behind it. */

#include <stdio.h>

#include "error.h"
#include "io/row_source.h"

/* Headers that were written as text on Windows end in two characters, of which the format knows
 * one. Where the file is longer than it should be by just that one, it is no sample. */
static gf_status skip_line_feed(gf_row_source *source, gf_error *error) {
    const gf_format *format = &source->base.format;
    unsigned char end[2];

    if (source->header.plain || !source->input.regular ||
        source->input.size != source->order.start + format->height * gf_row_bytes(format) + 1) {
        return GF_OK;
    }
    gf_status status =
        gf_input_read_at(&source->input, end, sizeof end, source->order.start - 1, error);
    if (status == GF_OK && end[0] == '\r' && end[1] == '\n') {
        (void)gf_input_byte(&source->input);
        source->order.start++;
    }
    return status;
}

/* A truncated file is told at once where its size is known, not after most of the work. */
static gf_status check_size(const gf_row_source *source, gf_error *error) {
    const gf_format *format = &source->base.format;
    uint64_t row_bytes = gf_row_bytes(format);

    if (source->header.plain || !gf_row_source_knows_size(source))
        return GF_OK;
    uint64_t rows = (source->input.size - source->order.start) / row_bytes;
    return rows < format->height ? gf_row_source_fail_short(source, rows, error) : GF_OK;
}

static void describe(gf_row_source *source) {
    const gf_pnm_header *header = &source->header;
    gf_source *base = &source->base;
    const gf_value scale = {.type = GF_VALUE_DOUBLE, .real = header->pfm_scale};
    char text[40];

    (void)snprintf(base->kind, sizeof base->kind, "%s", header->kind);
    gf_value_format(&scale, text, sizeof text);
    if (base->format.type == GF_F32)
        (void)snprintf(base->stored, sizeof base->stored, "32-bit float, %s-endian, scale %s",
                       header->little ? "little" : "big", text);
    else
        (void)snprintf(base->stored, sizeof base->stored, "%d-bit %s",
                       base->format.type == GF_U8 ? 8 : 16, header->plain ? "text" : "binary");
}

static gf_status open_image(gf_row_source *source, const gf_limits *limits, gf_error *error) {
    const gf_pnm_header *header = &source->header;
    gf_status status = gf_pnm_read_header(&source->input, limits, &source->header, error);

    if (status != GF_OK)
        return status;
    source->base.format = header->format;
    source->base.metadata.pfm_scale = header->pfm_scale;
    source->order = (gf_row_order){.format = header->format,
                                   .start = source->input.offset,
                                   .upwards = header->format.type == GF_F32,
                                   .little = header->little};
    source->returned = !source->input.regular && !header->plain && source->input.last == '\r';
    describe(source);
    status = check_size(source, error);
    if (status == GF_OK)
        status = skip_line_feed(source, error);
    return status == GF_OK ? gf_row_source_open_reader(source, limits->threads, error) : status;
}

gf_status gf_pnm_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    return gf_row_source_open(open_image, input, limits, opened, error);
}
