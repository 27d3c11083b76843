/* JPEG, BMP, TGA and HDR out, through stb_image_write: the image is held whole.
 *
 * JPEG and HDR lose precision by their nature. Grey becomes RGB of three equal channels in JPEG,
 * BMP and HDR files: the pixels that a reader gets are the same. */

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/costs.h"
#include "io/kinds.h"
#include "io/limits.h"
#include "io/png_filter.h"
#include "io/stb.h"

typedef struct stb_sink {
    gf_sink base;
    gf_output *output;
    gf_format format;
    gf_stb_kind kind;
    unsigned char *pixels;
    void *scratch;  /* HDR: what stb needs for a row */
    uint64_t y;     /* of the next row */
    gf_error cause; /* the first failed write */
} stb_sink;

/* ---- what the formats hold ------------------------------------------------------------------- */

static gf_status check_u8(const gf_format *format, const char *name, const char *kind,
                          gf_error *error) {
    if (format->type == GF_U8)
        return GF_OK;
    return gf_fail(error, GF_FAILED, "%s: %s holds only u8 samples and this image is %s; write %s",
                   name, kind, gf_type_name(format->type),
                   format->type == GF_U16 ? ".png or .pam" : ".pfm");
}

/* max: columns and rows that the header has room for. stb computes the bytes of a file in an int;
 * 4096 leave room for headers, and row padding is at most 3 bytes. */
static gf_status check_size(const gf_format *format, const char *name, const char *kind,
                            uint64_t max, gf_error *error) {
    uint64_t row_bytes = format->width * (format->channels == 1 ? 3 : format->channels) + 3;

    if (format->width <= max && format->height <= max &&
        row_bytes <= (INT_MAX - 4096) / format->height) {
        return GF_OK;
    }
    return gf_fail(error, GF_FAILED,
                   "%s: %s written here has at most %" PRIu64
                   " columns and rows and 2 GiB, and this image is %" PRIu64 "x%" PRIu64
                   "; write .png or .pam",
                   name, kind, max, format->width, format->height);
}

static gf_status fail_alpha(const char *name, const char *kind, const char *instead,
                            gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: %s holds no alpha channel and the image to write has one; %s", name, kind,
                   instead);
}

gf_status gf_jpg_sink_check(const gf_format *format, const char *name, gf_error *error) {
    gf_status status = check_u8(format, name, "JPEG", error);

    if (status == GF_OK && gf_has_alpha(format->channels))
        status = fail_alpha(name, "JPEG", "write .png or .pam", error);
    return status == GF_OK ? check_size(format, name, "JPEG", 65535, error) : status;
}

gf_status gf_bmp_sink_check(const gf_format *format, const char *name, gf_error *error) {
    gf_status status = check_u8(format, name, "BMP", error);

    if (status == GF_OK && format->channels == 2)
        status = fail_alpha(name, "grey BMP", "write .png, .pam or .tga", error);
    return status == GF_OK ? check_size(format, name, "BMP", INT_MAX, error) : status;
}

gf_status gf_tga_sink_check(const gf_format *format, const char *name, gf_error *error) {
    gf_status status = check_u8(format, name, "TGA", error);

    return status == GF_OK ? check_size(format, name, "TGA", 65535, error) : status;
}

gf_status gf_hdr_sink_check(const gf_format *format, const char *name, gf_error *error) {
    if (format->type != GF_F32) {
        return gf_fail(error, GF_FAILED,
                       "%s: HDR holds only f32 samples and this image is %s; write .png or .pam",
                       name, gf_type_name(format->type));
    }
    if (gf_has_alpha(format->channels))
        return fail_alpha(name, "HDR", "drop it first", error);
    /* The file has 4 bytes a pixel, memory 12. */
    gf_format as_rgb = *format;
    as_rgb.channels = 4;
    return check_size(&as_rgb, name, "HDR", INT_MAX / 16, error);
}

/* ---- the sink -------------------------------------------------------------------------------- */

/* HDR's samples share an exponent that ends below 2^127, and have no sign. */
static gf_status check_samples(const stb_sink *sink, const unsigned char *row, gf_error *error) {
    for (uint64_t i = 0; i < gf_row_samples(&sink->format); i++) {
        float v;
        memcpy(&v, row + i * sizeof v, sizeof v);
        if (!(v >= 0 && v < 0x1p127f)) {
            return gf_fail(error, GF_FAILED,
                           "%s: HDR holds no negative, infinite or NaN samples and row %" PRIu64
                           " has one; write .pfm",
                           gf_output_name(sink->output), sink->y);
        }
    }
    return GF_OK;
}

static gf_status stb_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    stb_sink *sink = (stb_sink *)base;
    const gf_png_filter_simd *simd = gf_png_filter_simd_of(gf_isa_best());
    size_t row_bytes = gf_row_bytes(&sink->format);
    const unsigned char *in = src;
    gf_status status = GF_OK;

    for (uint64_t i = 0; i < rows && status == GF_OK; i++, sink->y++) {
        if (sink->kind == GF_STB_HDR)
            status = check_samples(sink, in + i * stride, error);
        else
            base->clipped += simd->count_largest(&sink->format, in + i * stride);
        memcpy(sink->pixels + sink->y * row_bytes, in + i * stride, row_bytes);
    }
    return status;
}

static void on_write(void *context, void *data, int size) {
    stb_sink *sink = context;

    if (sink->cause.status == GF_OK && size > 0)
        (void)gf_output_write(sink->output, data, (size_t)size, &sink->cause);
}

static gf_status stb_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    stb_sink *sink = (stb_sink *)base;

    (void)metadata;
    bool encoded =
        gf_stb_write(sink->kind, on_write, sink, (int)sink->format.width, (int)sink->format.height,
                     (int)sink->format.channels, sink->pixels, sink->scratch);
    if (sink->cause.status != GF_OK) {
        if (error != NULL)
            *error = sink->cause;
        return sink->cause.status;
    }
    if (!encoded) {
        return gf_fail(error, GF_FAILED, "%s: cannot encode the image; write .png",
                       gf_output_name(sink->output));
    }
    return gf_output_prepare(sink->output, error);
}

static gf_status stb_place(gf_sink *base, gf_error *error) {
    return gf_output_place(((stb_sink *)base)->output, error);
}

static void stb_close(gf_sink *base) {
    stb_sink *sink = (stb_sink *)base;

    gf_output_close(sink->output);
    free(sink->pixels);
    free(sink->scratch);
    free(sink);
}

static gf_status hold(stb_sink *sink, uint64_t max_memory, gf_error *error) {
    const char *name = gf_output_name(sink->output);
    uint64_t bytes = gf_row_bytes(&sink->format) * sink->format.height;
    uint64_t scratch = sink->kind == GF_STB_HDR ? 4 * sink->format.width : 0;
    gf_status status = gf_check_memory(bytes + scratch, max_memory, name, "the image", error);

    if (status != GF_OK)
        return status;
    sink->pixels = malloc((size_t)bytes);
    if (sink->pixels == NULL)
        return gf_fail_memory(error, name, bytes, "the image");
    if (scratch != 0 && (sink->scratch = malloc((size_t)scratch)) == NULL)
        return gf_fail_memory(error, name, scratch, "a row");
    sink->base.memory = bytes + scratch;
    return GF_OK;
}

static gf_status open_sink(const gf_sink_setup *setup, gf_stb_kind kind, gf_sink **opened,
                           gf_error *error) {
    static const gf_sink_ops ops = {stb_write, stb_finish, stb_place, stb_close};
    stb_sink *sink = calloc(1, sizeof *sink);

    if (sink == NULL)
        return gf_fail_memory(error, gf_output_name(setup->output), sizeof *sink, "a sink");
    sink->base.ops = &ops;
    sink->base.cost = GF_STB_ENCODE_COST;
    sink->base.counts_clipped = kind != GF_STB_HDR;
    sink->output = setup->output;
    sink->format = *setup->format;
    sink->kind = kind;
    gf_status status = hold(sink, setup->max_memory, error);
    if (status != GF_OK) {
        free(sink->pixels);
        free(sink->scratch);
        free(sink);
        return status;
    }
    *opened = &sink->base;
    return GF_OK;
}

gf_status gf_jpg_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return open_sink(setup, GF_STB_JPG, opened, error);
}

gf_status gf_bmp_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return open_sink(setup, GF_STB_BMP, opened, error);
}

gf_status gf_tga_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return open_sink(setup, GF_STB_TGA, opened, error);
}

gf_status gf_hdr_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return open_sink(setup, GF_STB_HDR, opened, error);
}
