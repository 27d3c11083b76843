/* Formats that are decoded in the sandbox, and BMP, TGA and HDR output through stb_image_write,
 * which needs the whole image in memory.
 *
 * HDR is lossy. BMP and HDR store grey as three equal RGB channels; readers get the same pixels. */
#include "io/stb/raster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "core/error.h"
#include "io/strip/row_filter.h"

extern const gf_codec gf_tga_codec, gf_hdr_codec;

typedef struct stb_sink {
    gf_sink base;
    gf_format format;
    unsigned char *pixels;
    uint64_t y;     /* next row */
    gf_error cause; /* error of the first failed write */
} stb_sink;

static gf_status stb_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    stb_sink *sink = (stb_sink *)base;
    const gf_png_simd *simd = gf_png_simd_of(gf_isa_best());
    const size_t row_bytes = gf_row_bytes(&sink->format);
    const unsigned char *row = src;
    for (uint64_t i = 0; i < rows; i++, row += stride, sink->y++) {
        /* HDR stores a shared exponent, which limits samples to values below 2^127, and no sign. */
        for (size_t k = 0; sink->format.type == GF_F32 && k < row_bytes; k += sizeof(float)) {
            float v;
            memcpy(&v, row + k, sizeof v);
            if (!(v >= 0 && v < 0x1p127f))
                return gf_fail(error, GF_FAILED,
                               "%s: HDR cannot store negative, infinite or NaN samples; row "
                               "%" PRIu64 " has one; write .pfm",
                               gf_output_name(base->output), sink->y);
        }
        if (base->counts_clipped)
            base->clipped += simd->count_largest(&sink->format, row);
        memcpy(sink->pixels + sink->y * row_bytes, row, row_bytes);
    }
    return GF_OK;
}

static void stb_on_write(void *context, void *data, int size) {
    stb_sink *sink = context;
    if (!sink->cause.status && size > 0)
        (void)gf_output_write(sink->base.output, data, (size_t)size, &sink->cause);
}

static gf_status stb_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    stb_sink *sink = (stb_sink *)base;
    (void)metadata;
    const gf_raster_kind kind = base->codec == &gf_hdr_codec   ? GF_RASTER_HDR
                                : base->codec == &gf_tga_codec ? GF_RASTER_TGA
                                                               : GF_RASTER_BMP;
    const bool encoded = gf_stb_write(kind, stb_on_write, sink, &sink->format, sink->pixels);
    if (sink->cause.status)
        return gf_return_error(&sink->cause, error);
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

static gf_status stb_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {stb_write, stb_finish, stb_close};
    stb_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    if (!sink)
        return GF_FAILED;
    *opened = &sink->base;
    sink->base.counts_clipped = setup->format->type != GF_F32;
    sink->base.memory = gf_row_bytes(setup->format) * setup->format->height;
    sink->format = *setup->format;
    sink->pixels = gf_alloc_limited(sink->base.memory, setup->max_memory,
                                    gf_output_name(setup->output), "the image", error);
    return sink->pixels ? GF_OK : GF_FAILED;
}

/* Costs, approximate. */
#define RASTER_DECODE_COST 10.0
#define RASTER_ENCODE_COST 15.0

/* stb computes file sizes in an int; this is reserved for headers. */
#define RASTER_MAX_BYTES (INT32_MAX - 4096)

/* "BM" is a weak signature: also check the size of the second header, one of a few values. */
static bool bmp_match(const gf_input *input) {
    return input->head_size == GF_PEEK && input->head[14] != 0 &&
           strchr("\x0c\x28\x34\x38\x40\x6c\x7c", input->head[14]) && input->head[15] == 0;
}

const gf_codec gf_bmp_codec = {
    .label = "BMP",
    .extensions = {"bmp"},
    .notes = "8 bits.",
    .magics = {"BM"},
    .match = bmp_match,
    .open_source = gf_stb_source_open,
    .decode_cost = RASTER_DECODE_COST,
    .open_sink = stb_sink_open,
    .types = GF_STORES_U8,
    .channels = GF_STORES_GREY | GF_STORES_RGB | GF_STORES_RGBA,
    .alpha_advice = "write .png, .pam or .tga",
    .max_columns = INT32_MAX,
    .max_bytes = RASTER_MAX_BYTES,
    .grey_bytes = 3, /* written as RGB */
    .encode_cost = {RASTER_ENCODE_COST},
};

/* TGA has no signature: match the extension. */
static bool tga_match(const gf_input *input) {
    return strcasecmp(gf_path_extension(input->name), "tga") == 0;
}

const gf_codec gf_tga_codec = {
    .label = "TGA",
    .extensions = {"tga"},
    .notes = "8 bits; recognised by its extension, because it has no signature.",
    .match = tga_match,
    .open_source = gf_stb_source_open,
    .decode_cost = RASTER_DECODE_COST,
    .open_sink = stb_sink_open,
    .types = GF_STORES_U8,
    .channels = GF_STORES_ANY,
    .max_columns = UINT16_MAX,
    .max_bytes = RASTER_MAX_BYTES,
    .grey_bytes = 3,
    .encode_cost = {RASTER_ENCODE_COST},
};

const gf_codec gf_psd_codec = {
    .label = "PSD",
    .extensions = {"psd"},
    .notes = "Grey or RGB, 8 or 16 bits; the merged image of all layers.",
    .magics = {"8BPS"},
    .open_source = gf_stb_source_open,
    .decode_cost = RASTER_DECODE_COST,
};

const gf_codec gf_gif_codec = {
    .label = "GIF",
    .extensions = {"gif"},
    .notes = "A frame, by default the first.",
    .magics = {"GIF87a", "GIF89a"},
    .open_source = gf_stb_source_open,
    .decode_cost = RASTER_DECODE_COST,
};

const gf_codec gf_hdr_codec = {
    .label = "HDR",
    .extensions = {"hdr"},
    .notes = "RGB, read as binary32; lossy.",
    .magics = {"#?RADIANCE\n", "#?RGBE\n"},
    .open_source = gf_stb_source_open,
    .decode_cost = RASTER_DECODE_COST,
    .open_sink = stb_sink_open,
    .types = GF_STORES_F32,
    .channels = GF_STORES_GREY | GF_STORES_RGB,
    .alpha_advice = "write .tif",
    .max_columns = INT32_MAX / 16,
    .max_bytes = RASTER_MAX_BYTES,
    .grey_bytes = 4, /* a pixel of any image has a shared exponent */
    .pixel_bytes = 4,
    .encode_cost = {RASTER_ENCODE_COST},
};
