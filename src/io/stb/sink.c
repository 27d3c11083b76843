/* BMP, TGA and HDR output through stb_image_write, which needs the whole image in memory.
 *
 * HDR is lossy. BMP and HDR store grey as three equal RGB channels; readers get the
 * same pixels. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/stb/raster.h"
#include "io/strip/row_filter.h"

typedef struct stb_sink {
    gf_sink base;
    gf_format format;
    gf_raster_kind kind;
    unsigned char *pixels;
    uint64_t y;     /* next row */
    gf_error cause; /* error of the first failed write */
} stb_sink;

/* HDR stores a shared exponent, which limits samples to values below 2^127, and no sign. */
static gf_status stb_check_samples(const stb_sink *sink, const unsigned char *row,
                                   gf_error *error) {
    for (uint64_t i = 0; i < gf_row_samples(&sink->format); i++) {
        float v;
        memcpy(&v, row + i * sizeof v, sizeof v);
        if (!(v >= 0 && v < 0x1p127f))
            return gf_fail(error, GF_FAILED,
                           "%s: HDR cannot store negative, infinite or NaN samples; row %" PRIu64
                           " has one; write .pfm",
                           gf_output_name(sink->base.output), sink->y);
    }
    return GF_OK;
}

static gf_status stb_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    stb_sink *sink = (stb_sink *)base;
    const gf_png_simd *simd = gf_png_simd_of(gf_isa_best());
    size_t row_bytes = gf_row_bytes(&sink->format);
    const unsigned char *in = src;
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < rows && !status; i++, sink->y++) {
        if (sink->kind == GF_RASTER_HDR)
            status = stb_check_samples(sink, in + i * stride, error);
        else
            base->clipped += simd->count_largest(&sink->format, in + i * stride);
        memcpy(sink->pixels + sink->y * row_bytes, in + i * stride, row_bytes);
    }
    return status;
}

static void stb_on_write(void *context, void *data, int size) {
    stb_sink *sink = context;
    if (!sink->cause.status && size > 0)
        (void)gf_output_write(sink->base.output, data, (size_t)size, &sink->cause);
}

static gf_status stb_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    stb_sink *sink = (stb_sink *)base;
    (void)metadata;
    const bool encoded = gf_stb_write(sink->kind, stb_on_write, sink, &sink->format, sink->pixels);
    if (sink->cause.status) {
        if (error)
            *error = sink->cause;
        return sink->cause.status;
    }
    if (!encoded)
        return gf_fail(error, GF_FAILED, "%s: cannot encode the image; write .png",
                       gf_output_name(sink->base.output));
    return gf_output_prepare(sink->base.output, error);
}

static void stb_close(gf_sink *base) {
    stb_sink *sink = (stb_sink *)base;
    gf_output_close(sink->base.output);
    free(sink->pixels);
    free(sink);
}

static gf_status stb_sink_open(gf_raster_kind kind, const gf_sink_setup *setup, gf_sink **opened,
                               gf_error *error) {
    static const gf_sink_ops ops = {stb_write, stb_finish, stb_close};
    stb_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    if (!sink)
        return GF_FAILED;
    sink->base.counts_clipped = kind != GF_RASTER_HDR;
    sink->base.memory = gf_row_bytes(setup->format) * setup->format->height;
    sink->format = *setup->format;
    sink->kind = kind;
    sink->pixels = gf_alloc_limited(sink->base.memory, setup->max_memory,
                                    gf_output_name(setup->output), "the image", error);
    if (!sink->pixels) {
        stb_close(&sink->base);
        return GF_FAILED;
    }
    *opened = &sink->base;
    return GF_OK;
}

gf_status gf_bmp_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return stb_sink_open(GF_RASTER_BMP, setup, opened, error);
}

gf_status gf_tga_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return stb_sink_open(GF_RASTER_TGA, setup, opened, error);
}

gf_status gf_hdr_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return stb_sink_open(GF_RASTER_HDR, setup, opened, error);
}
