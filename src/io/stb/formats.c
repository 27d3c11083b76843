/* Formats that are decoded in the sandbox. */
#include "io/stb/raster.h"

#include <strings.h>

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
    .open_sink = gf_bmp_sink_open,
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
    .open_sink = gf_tga_sink_open,
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
    .open_sink = gf_hdr_sink_open,
    .types = GF_STORES_F32,
    .channels = GF_STORES_GREY | GF_STORES_RGB,
    .alpha_advice = "write .tif",
    .max_columns = INT32_MAX / 16,
    .max_bytes = RASTER_MAX_BYTES,
    .grey_bytes = 4, /* a pixel of any image has a shared exponent */
    .pixel_bytes = 4,
    .encode_cost = {RASTER_ENCODE_COST},
};
