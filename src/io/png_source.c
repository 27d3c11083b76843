/* PNG in. libpng reads the header, the metadata, and the rows of interlaced images and of those
 * that png_inflate.h does not take; the others are inflated there and unfiltered by our own loops.
 * Samples are expanded by our own code, too (png_expand.c), and metadata is carried as bytes,
 * unparsed. "Differences from libpng" in docs/design-files.md lists the files that libpng reads
 * otherwise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/costs.h"
#include "io/kinds.h"
#include "io/limits.h"
#include "io/png_expand.h"
#include "io/png_fail.h"
#include "io/png_inflate.h"
#include "io/png_reader.h"
#include "io/png_unfilter.h"

typedef struct png_source {
    gf_source base;
    gf_png_reader reader;
    gf_png_layout layout;
    uint64_t y; /* of the next row */
    bool interlaced;
    unsigned char *raw; /* interlaced: the stored rows of the whole image, once read */
    /* Rows that are not read by libpng; else NULL. */
    gf_png_inflate *inflate;
    const gf_png_unfilter_simd *simd;
    unsigned char *above; /* the last row that was read, as it is stored */
} png_source;

/* ---- rows ------------------------------------------------------------------------------------ */

/* Later passes fill in between the pixels of earlier ones, so all rows are held. */
static gf_status read_interlaced(png_source *source, gf_error *error) {
    size_t row_bytes = gf_png_layout_bytes(&source->layout);
    uint64_t height = source->base.format.height;
    uint64_t bytes = row_bytes * height;
    gf_status status = gf_check_memory(bytes, source->reader.limits.max_memory,
                                       source->reader.input.name, "an interlaced image", error);

    if (status != GF_OK)
        return status;
    /* Zeroed, because libpng keeps the unused bits at the end of a row as they are. */
    source->raw = calloc(1, (size_t)bytes);
    if (source->raw == NULL)
        return gf_fail_memory(error, source->reader.input.name, bytes, "an interlaced image");
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES && status == GF_OK; pass++)
        status = gf_png_reader_rows(&source->reader, source->raw, row_bytes, height, error);
    return status;
}

/* Are stored rows what is asked for? */
static bool is_plain(const gf_png_layout *layout) {
    return layout->depth == 8 && !layout->indexed && !layout->has_key;
}

static void expand_row(const png_source *source, unsigned char *row) {
    const gf_png_layout *layout = &source->layout;

    if (layout->depth == 16 && !layout->has_key)
        source->simd->native16(row, (size_t)(layout->width * layout->channels));
    else
        gf_png_expand_row(layout, row, row);
}

static gf_status read_inflated(png_source *source, unsigned char *out, size_t stride, uint64_t rows,
                               gf_error *error) {
    const gf_png_layout *layout = &source->layout;
    const size_t row_bytes = gf_png_layout_bytes(layout);
    const uint32_t bits = layout->channels * layout->depth;
    const uint32_t unit = bits < 8 ? 1 : bits / 8;
    const bool plain = is_plain(layout);
    const unsigned char *above = source->above, *filtered;

    for (uint64_t i = 0; i < rows; i++, out += stride) {
        gf_status status = gf_png_inflate_row(source->inflate, &filtered, error);
        if (status != GF_OK)
            return status;
        if (*filtered >= GF_PNG_FILTERS)
            return gf_png_fail_damaged(error, source->reader.input.name,
                                       "bad adaptive filter value");
        source->simd->row(out, filtered + 1, above, row_bytes, unit, *filtered);
        if (plain)
            above = out;
        /* The caller's rows are its own again when this returns. */
        if (!plain || i == rows - 1)
            memcpy(source->above, out, row_bytes);
        if (!plain)
            expand_row(source, out);
    }
    return GF_OK;
}

static gf_status read_by_libpng(png_source *source, unsigned char *out, size_t stride,
                                uint64_t rows, gf_error *error) {
    size_t row_bytes = gf_png_layout_bytes(&source->layout);
    gf_status status = GF_OK;

    if (!source->interlaced)
        status = gf_png_reader_rows(&source->reader, out, stride, rows, error);
    else if (source->raw == NULL)
        status = read_interlaced(source, error);
    for (uint64_t i = 0; i < rows && status == GF_OK; i++, source->y++) {
        unsigned char *row = out + i * stride;
        gf_png_expand_row(&source->layout,
                          source->interlaced ? source->raw + source->y * row_bytes : row, row);
    }
    return status;
}

/* ---- the source ------------------------------------------------------------------------------ */

static gf_status png_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                          gf_error *error) {
    png_source *source = (png_source *)base;

    return source->inflate != NULL ? read_inflated(source, dst, stride, rows, error)
                                   : read_by_libpng(source, dst, stride, rows, error);
}

static gf_status png_finish(gf_source *base, gf_error *error) {
    png_source *source = (png_source *)base;
    unsigned char header[GF_PNG_CHUNK_HEADER];

    if (source->inflate != NULL) {
        gf_status status = gf_png_inflate_finish(source->inflate, header, error);
        if (status != GF_OK)
            return status;
        gf_png_reader_give_back(&source->reader, header, sizeof header);
    }
    gf_status status = gf_png_reader_end(&source->reader, source->inflate != NULL, error);
    base->bytes = source->reader.input.offset;
    return status;
}

static void free_source(png_source *source) {
    gf_png_reader_close(&source->reader);
    gf_png_inflate_close(source->inflate);
    gf_metadata_clear(&source->base.metadata);
    free(source->raw);
    free(source->above);
    free(source);
}

static void png_close(gf_source *base) {
    png_source *source = (png_source *)base;

    gf_input_close(&source->reader.input);
    free_source(source);
}

/* Fills the layout from the chunks that say what the samples mean. */
static void read_layout(png_source *source) {
    gf_png_layout *layout = &source->layout;
    png_structp png = source->reader.png;
    png_infop info = source->reader.info;
    png_bytep alpha = NULL;
    int alpha_count = 0;
    png_color_16p key = NULL;

    layout->width = png_get_image_width(png, info);
    layout->channels = png_get_channels(png, info);
    layout->depth = png_get_bit_depth(png, info);
    layout->indexed = png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE;
    /* libpng drops a tRNS that precedes PLTE: its count is then 0. */
    bool transparent = png_get_tRNS(png, info, &alpha, &alpha_count, &key) != 0 && alpha_count != 0;

    if (layout->indexed) {
        png_colorp colors = NULL;
        int count = 0;
        (void)png_get_PLTE(png, info, &colors, &count);
        layout->has_alpha = transparent;
        for (int i = 0; i < 256; i++) {
            /* Past the end: opaque black, as browsers show it. */
            png_color color = i < count ? colors[i] : (png_color){0, 0, 0};
            layout->palette[i][0] = color.red;
            layout->palette[i][1] = color.green;
            layout->palette[i][2] = color.blue;
            layout->palette[i][3] = transparent && i < alpha_count ? alpha[i] : 255;
        }
    } else if (transparent && key != NULL) {
        unsigned mask = (1u << layout->depth) - 1;
        bool grey = layout->channels == 1;
        layout->has_key = true;
        layout->key[0] = (uint16_t)((grey ? key->gray : key->red) & mask);
        layout->key[1] = (uint16_t)(key->green & mask);
        layout->key[2] = (uint16_t)(key->blue & mask);
    }
}

static void describe(png_source *source) {
    static const char *const colors[] = {"", "grey", "grey and alpha", "RGB", "RGB and alpha"};
    const gf_png_layout *layout = &source->layout;
    const char *color = layout->indexed ? "palette" : colors[layout->channels];
    const char *transparent = layout->has_alpha ? " with alpha"
                              : layout->has_key ? " with a transparent colour"
                                                : "";

    (void)snprintf(source->base.stored, sizeof source->base.stored, "%u-bit %s%s%s", layout->depth,
                   color, transparent, source->interlaced ? ", interlaced" : "");
}

/* Deflate makes at most 1032 bytes of one. A file that cannot hold the rows it tells of is refused
 * before any is read: a small one would keep us busy for long. */
static gf_status check_size(const png_source *source, gf_error *error) {
    const gf_input *input = &source->reader.input;
    const uint64_t rows = source->base.format.height * gf_png_layout_bytes(&source->layout);

    /* Rows of interlaced images are cut into pieces, which are no shorter together. */
    if (input->regular && input->size >= input->offset && rows / 1032 > input->size - input->offset)
        return gf_png_fail_short(error, input->name);
    return GF_OK;
}

/* Reads the first bytes of the image's data to see whether it is to be inflated here. If not, all
 * is made ready for libpng. Pixels over the limit were refused before rows are allocated. */
static gf_status start_pixels(png_source *source, gf_error *error) {
    gf_png_reader *reader = &source->reader;
    const size_t row_bytes = gf_png_layout_bytes(&source->layout);
    unsigned char head[2];
    gf_png_idat idat;
    size_t got;
    gf_status status;

    gf_png_idat_start(&idat, &reader->input, reader->header);
    /* Not if these bytes are in several chunks, which nobody writes. */
    if (source->interlaced || idat.left <= sizeof head)
        return gf_png_reader_start_rows(reader, source->interlaced, error);
    if ((status = gf_png_idat_read(&idat, head, sizeof head, &got, error)) != GF_OK)
        return status;
    if (!gf_png_inflate_can(head)) {
        gf_png_reader_give_back(reader, head, got);
        return gf_png_reader_start_rows(reader, false, error);
    }
    source->simd = gf_png_unfilter_level(gf_isa_best());
    source->above = calloc(1, row_bytes);
    if (source->above == NULL)
        return gf_fail_memory(error, reader->input.name, row_bytes, "a row");
    return gf_png_inflate_open(&idat, row_bytes, &source->inflate, error);
}

static gf_status open_image(png_source *source, const gf_input *input, const gf_limits *limits,
                            gf_error *error) {
    gf_png_reader *reader = &source->reader;
    gf_format *format = &source->base.format;
    gf_status status;

    status = gf_png_reader_open(reader, input, limits, &source->base.metadata, error);
    if (status != GF_OK)
        return status;
    read_layout(source);
    gf_png_layout_format(&source->layout, format);
    format->height = png_get_image_height(reader->png, reader->info);
    source->interlaced = png_get_interlace_type(reader->png, reader->info) != PNG_INTERLACE_NONE;
    describe(source);
    if ((status = gf_check_pixels(format->width, format->height, limits, input->name, error)) !=
            GF_OK ||
        (status = gf_format_check(format, input->name, error)) != GF_OK ||
        /* This row and the one above. */
        (status = gf_check_memory(2 * (uint64_t)gf_row_bytes(format), limits->max_memory,
                                  input->name, "two rows", error)) != GF_OK ||
        (status = check_size(source, error)) != GF_OK) {
        return status;
    }
    return start_pixels(source, error);
}

gf_status gf_png_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    static const gf_source_ops ops = {png_read, png_finish, png_close, NULL};
    png_source *source = calloc(1, sizeof *source);

    if (source == NULL)
        return gf_fail_memory(error, input->name, sizeof *source, "a source");
    source->base.ops = &ops;
    source->base.cost = GF_PNG_DECODE_COST;
    gf_metadata_init(&source->base.metadata);
    gf_status status = open_image(source, input, limits, error);
    if (status != GF_OK) {
        free_source(source);
        return status;
    }
    *opened = &source->base;
    return GF_OK;
}
