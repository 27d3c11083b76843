/* Farbfeld: a magic, two sizes, and rows of 16-bit RGBA; all big-endian. */
#include "io/bytes.h"
#include "io/plain/rows.h"

#define FARBFELD_MAGIC "farbfeld"
enum { FARBFELD_WIDTH = 8, FARBFELD_HEIGHT = 12, FARBFELD_HEADER = 16 };

static gf_status farbfeld_read(gf_plain_source *source, const gf_limits *limits, uint64_t page,
                               gf_error *error) {
    unsigned char header[FARBFELD_HEADER];
    gf_format *format = &source->base.format;
    (void)page;
    if (gf_input_read_exactly(&source->input, header, sizeof header, error))
        return GF_FAILED;
    *format = (gf_format){.width = gf_big32(header + FARBFELD_WIDTH),
                          .height = gf_big32(header + FARBFELD_HEIGHT),
                          .channels = 4,
                          .type = GF_U16,
                          .alpha = true};
    source->order = (gf_row_order){.format = *format, .start = sizeof header};
    gf_plain_describe(source, "", "");
    return gf_check_pixels(format, limits, source->input.name, error);
}

static gf_status farbfeld_source_open(const gf_input *input, const gf_limits *limits,
                                      gf_source **opened, gf_error *error) {
    static const gf_plain_format format = {.read = farbfeld_read};
    return gf_plain_open(input, &format, NULL, limits, opened, error);
}

static gf_status farbfeld_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    const gf_row_order order = {.format = *setup->format, .start = FARBFELD_HEADER};
    unsigned char header[FARBFELD_HEADER] = FARBFELD_MAGIC;
    gf_put_big32(header + FARBFELD_WIDTH, (uint32_t)setup->format->width);
    gf_put_big32(header + FARBFELD_HEIGHT, (uint32_t)setup->format->height);
    return gf_rows_sink_open(setup, &order, header, opened, error);
}

const gf_codec gf_farbfeld_codec = {
    .label = "farbfeld",
    .extensions = {"ff"},
    .notes = "RGB with alpha, 16 bits.",
    .magics = {FARBFELD_MAGIC},
    .open_source = farbfeld_source_open,
    .open_sink = farbfeld_sink_open,
    .types = 1 << GF_U16,
    .channels = GF_STORES_RGBA,
    .max_columns = UINT32_MAX,
    .plain = true,
};
