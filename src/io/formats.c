/* File formats: detection, selection of the source or sink, and estimated costs. */
#include "io/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/image.h"
#include "core/settings.h"
#include "core/thread.h"
#include "io/file/output.h"
#include "io/png/png.h"
#include "io/stream/convert.h"

/* ---- sources --------------------------------------------------------------------------------- */

/* Match the signature of PNM: P, a digit or f, and a delimiter. */
static bool is_pnm(const gf_input *input) {
    return input->head_size >= 3 && input->head[0] == 'P' && input->head[1] != '\0' &&
           strchr("1234567fF", input->head[1]) && input->head[2] != '\0' &&
           strchr(" \t\n\v\f\r#", input->head[2]);
}

/* "BM" is a weak signature: also check the size of the second header, one of a few values. */
static bool is_bmp(const gf_input *input) {
    return input->head_size == GF_PEEK && memcmp(input->head, "BM", 2) == 0 &&
           input->head[14] != 0 && strchr("\x0c\x28\x34\x38\x40\x6c\x7c", input->head[14]) &&
           input->head[15] == 0;
}

/* Match TIFF and BigTIFF, in both byte orders. */
static bool is_tiff(const gf_input *input) {
    return input->head_size >= 8 &&
           (memcmp(input->head, "II*\0", 4) == 0 || memcmp(input->head, "MM\0*", 4) == 0 ||
            memcmp(input->head, "II+\0", 4) == 0 || memcmp(input->head, "MM\0+", 4) == 0);
}

/* TGA has no signature: match the extension. */
static bool is_tga(const gf_input *input) {
    return strcasecmp(gf_path_extension(input->name), "tga") == 0;
}

static const struct source_kind {
    const char *name;  /* NULL: set by the source */
    const char *magic; /* first bytes of the file; NULL: call match */
    bool (*match)(const gf_input *input);
    gf_open_source *open;
} source_kinds[] = {
    {"png", "\x89PNG\r\n\x1a\n", NULL, gf_png_source_open},
    {NULL, NULL, is_pnm, gf_plain_source_open},
    {"npy", "\x93NUMPY", NULL, gf_plain_source_open},
    {"jpg", "\xff\xd8\xff", NULL, gf_jpeg_source_open},
    {"bmp", NULL, is_bmp, gf_stb_source_open},
    {"psd", "8BPS", NULL, gf_stb_source_open},
    {"gif", "GIF87a", NULL, gf_stb_source_open},
    {"gif", "GIF89a", NULL, gf_stb_source_open},
    {"hdr", "#?RADIANCE\n", NULL, gf_stb_source_open},
    {"hdr", "#?RGBE\n", NULL, gf_stb_source_open},
    {"tif", NULL, is_tiff, gf_tiff_source_open},
    {"tga", NULL, is_tga, gf_stb_source_open}, /* last: its match is the weakest */
};

static bool source_matches(const struct source_kind *kind, const gf_input *input) {
    if (!kind->magic)
        return kind->match(input);
    const size_t size = strlen(kind->magic);
    return input->head_size >= size && memcmp(input->head, kind->magic, size) == 0;
}

/* Known formats that are neither read nor written, and those only read (magic NULL). */
static const struct foreign_kind {
    const char *extension, *name, *magic;
    size_t at; /* offset of magic */
} foreign_kinds[] = {
    {"webp", "WebP", "WEBP", 8},     {"avif", "AVIF", "ftypavif", 4},
    {"heic", "HEIC", "ftyphei", 4},  {"heic", "HEIC", "ftypmif1", 4},
    {"jxl", "JPEG XL", "JXL ", 4},   {"jxl", "JPEG XL", "\xff\x0a", 0},
    {"jp2", "JPEG 2000", "jP  ", 4}, {"exr", "OpenEXR", "v/1\x01", 0},
    {"pdf", "PDF", "%PDF-", 0},      {"svg", "SVG", "<svg", 0},
    {"gif", "GIF", NULL, 0},         {"psd", "PSD", NULL, 0},
    {"pbm", "PBM", NULL, 0},
};

static gf_status source_fail_unknown(const gf_input *input, gf_error *error) {
    for (size_t i = 0; i < sizeof foreign_kinds / sizeof *foreign_kinds; i++) {
        const struct foreign_kind *kind = &foreign_kinds[i];
        if (kind->magic && memcmp(input->head + kind->at, kind->magic, strlen(kind->magic)) == 0)
            return gf_fail(
                error, GF_FAILED,
                "%s: cannot read %s; convert it first, e.g. with vips copy in.%s out.tif",
                input->name, kind->name, kind->extension);
    }
    return gf_fail(
        error, GF_FAILED,
        "%s: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, "
        "JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw",
        input->name);
}

static gf_status source_open_kind(const gf_input *input, const gf_limits *limits,
                                  gf_source **source, gf_error *error) {
    if (limits->page == GF_ALL_PAGES)
        return gf_fail(error, GF_USAGE, "%s: --page all: only filters read all pages", input->name);
    if (limits->page > GF_MAX_PAGE)
        return gf_fail(error, GF_USAGE, "%s: page %" PRIu32 ": must be from 1 to %" PRIu32,
                       input->name, limits->page, GF_MAX_PAGE);
    if (input->head_size == 0)
        return gf_fail(error, GF_FAILED, "%s: the file is empty", input->name);
    if (limits->raw)
        return gf_plain_source_open(input, limits, source, error);
    for (size_t i = 0; i < sizeof source_kinds / sizeof *source_kinds; i++) {
        const struct source_kind *kind = &source_kinds[i];
        if (!source_matches(kind, input))
            continue;
        gf_status status = kind->open(input, limits, source, error);
        if (!status && kind->name)
            snprintf((*source)->kind, sizeof(*source)->kind, "%s", kind->name);
        return status;
    }
    return source_fail_unknown(input, error);
}

/* Apply the caller's declaration of alpha. */
static gf_status source_set_alpha(gf_source *source, gf_alpha alpha, const char *name,
                                  gf_error *error) {
    if (alpha == GF_ALPHA_LAST && source->format.channels % 2 != 0)
        return gf_fail(error, GF_FAILED,
                       "%s: --alpha last: the image has %" PRIu32
                       " channel%s, and alpha is the last of 2 or 4; remove --alpha",
                       name, source->format.channels, source->format.channels == 1 ? "" : "s");
    if (alpha != GF_ALPHA_FILE)
        source->format.alpha = alpha == GF_ALPHA_LAST;
    return GF_OK;
}

gf_status gf_source_open(const char *path, const gf_limits *limits, gf_source **source,
                         gf_error *error) {
    gf_limits resolved = gf_limits_resolve(limits);
    gf_page_place place = {0};
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    gf_input input;
    gf_status status = gf_input_open(&input, path, error);
    *source = NULL;
    if (status)
        return status;
    if (resolved.stacked)
        resolved.place = &place;
    status = source_open_kind(&input, &resolved, source, error);
    if (status) {
        gf_input_close(&input);
        return status;
    }
    /* Sources of formats with pages have failed if the page does not exist. */
    if (resolved.page > 1 && (*source)->pages == 0)
        status = gf_fail(error, GF_FAILED, "%s: has no pages; omit --page", name);
    if (!status)
        status = gf_samples_source(source, &resolved, name, error);
    if (!status)
        status = source_set_alpha(*source, resolved.alpha, name, error);
    (*source)->nodata.declared = (*source)->nodata.declared && !resolved.keep_nodata;
    (*source)->metadata.image = (*source)->format;
    if (!status && resolved.autorotate)
        status = gf_rotate_source(source, resolved.max_memory, name, error);
    if (!status && resolved.crop)
        status = gf_crop_source(source, resolved.crop, resolved.max_memory, name, error);
    if (!status && resolved.stacked && (*source)->pages > 1)
        status = gf_pages_source(source, gf_source_open, path, &resolved, error);
    /* The caller allocates at least one row. */
    if (!status)
        status = gf_check_memory(gf_row_bytes(&(*source)->format), resolved.max_memory, name,
                                 "a row", error);
    if (status) {
        (*source)->ops->close(*source);
        *source = NULL;
    }
    return status;
}

/* ---- sinks ----------------------------------------------------------------------------------- */

enum {
    INTEGERS = 1 << GF_U8 | 1 << GF_U16,
    DATA = 1 << 0, /* the last of 2 or 4 channels need not be alpha */
    GREY = 1 << 1,
    RGB = 1 << 3,
    RGBA = 1 << 4,
    ANY_CHANNELS = GREY | 1 << 2 | RGB | RGBA
};

static const struct sink_kind {
    const char *name;  /* also its extension */
    const char *label; /* for messages */
    gf_sink_kind kind;
    gf_open_sink *open;
    unsigned types, channels; /* supported: bits of gf_type; of the number of channels, and DATA */
    const char *alpha_advice; /* advice for an image with an alpha channel */
    uint64_t max_columns;     /* maximum number of columns and rows; 0: unlimited */
} sink_kinds[] = {
    {"png", "PNG", GF_SINK_PNG, gf_png_sink_open, INTEGERS, ANY_CHANNELS, NULL, INT32_MAX},
    {"pgm", "PGM", GF_SINK_PNM, gf_plain_sink_open, INTEGERS, GREY, "write .png or .pam", 0},
    {"ppm", "PPM", GF_SINK_PNM, gf_plain_sink_open, INTEGERS, RGB, "write .png or .pam", 0},
    {"pnm", "PNM", GF_SINK_PNM, gf_plain_sink_open, INTEGERS, GREY | RGB, "write .png or .pam", 0},
    {"pam", "PAM", GF_SINK_PAM, gf_plain_sink_open, INTEGERS, ANY_CHANNELS, NULL, 0},
    {"pfm", "PFM", GF_SINK_PFM, gf_plain_sink_open, 1 << GF_F32, GREY | RGB, "write .tif", 0},
    {"jpg", "JPEG", GF_SINK_JPEG, gf_jpeg_sink_open, 1 << GF_U8, GREY | RGB, "write .png or .pam",
     65500},
    {"jpeg", "JPEG", GF_SINK_JPEG, gf_jpeg_sink_open, 1 << GF_U8, GREY | RGB, "write .png or .pam",
     65500},
    {"tif", "TIFF", GF_SINK_TIFF, gf_tiff_sink_open, INTEGERS | 1 << GF_F32, ANY_CHANNELS | DATA,
     NULL, UINT32_MAX},
    {"tiff", "TIFF", GF_SINK_TIFF, gf_tiff_sink_open, INTEGERS | 1 << GF_F32, ANY_CHANNELS | DATA,
     NULL, UINT32_MAX},
    {"bmp", "BMP", GF_SINK_BMP, gf_stb_sink_open, 1 << GF_U8, GREY | RGB | RGBA,
     "write .png, .pam or .tga", INT32_MAX},
    {"tga", "TGA", GF_SINK_TGA, gf_stb_sink_open, 1 << GF_U8, ANY_CHANNELS, NULL, 65535},
    {"hdr", "HDR", GF_SINK_HDR, gf_stb_sink_open, 1 << GF_F32, GREY | RGB, "write .tif",
     INT32_MAX / 16},
    {"npy", "NPY", GF_SINK_NPY, gf_plain_sink_open, INTEGERS | 1 << GF_F32, ANY_CHANNELS | DATA,
     NULL, 0},
    {"raw", "raw", GF_SINK_RAW, gf_plain_sink_open, INTEGERS | 1 << GF_F32, ANY_CHANNELS | DATA,
     NULL, 0},
};

const char *const *gf_output_formats(void) {
    static const char *const names[] = {"png", "pgm",  "ppm", "pnm", "pam", "pfm", "jpg", "jpeg",
                                        "tif", "tiff", "bmp", "tga", "hdr", "npy", "raw", NULL};
    _Static_assert(sizeof names / sizeof *names == sizeof sink_kinds / sizeof *sink_kinds + 1,
                   "one name per format");
    return names;
}

static const struct sink_kind *sink_find_kind(const char *text) {
    for (size_t i = 0; i < sizeof sink_kinds / sizeof *sink_kinds; i++)
        if (strcasecmp(text, sink_kinds[i].name) == 0)
            return &sink_kinds[i];
    return NULL;
}

static gf_status sink_choose_kind(const char *path, const char *format,
                                  const struct sink_kind **kind, gf_error *error) {
    if (format) {
        char names[128];
        gf_join_choices(gf_output_formats(), names, sizeof names);
        *kind = sink_find_kind(format);
        return *kind
                   ? GF_OK
                   : gf_fail(error, GF_USAGE, "--format: cannot write '%s'; use %s", format, names);
    }
    struct stat info;
    const size_t length = strlen(path);
    *kind = sink_find_kind(strcmp(path, "-") == 0 ? "png" : gf_path_extension(path));
    if (!*kind &&
        ((length && path[length - 1] == '/') || (stat(path, &info) == 0 && S_ISDIR(info.st_mode))))
        return gf_fail(error, GF_FAILED,
                       "%s: is a directory; name a file in it, or use --out-dir for all operands",
                       path);
    for (size_t i = 0; !*kind && i < sizeof foreign_kinds / sizeof *foreign_kinds; i++)
        if (strcasecmp(gf_path_extension(path), foreign_kinds[i].extension) == 0)
            return gf_fail(
                error, GF_USAGE,
                "%s: cannot write %s; use an extension such as .png, .pam or .pfm, or --format",
                path, foreign_kinds[i].name);
    if (!*kind)
        return gf_fail(error, GF_USAGE,
                       "%s: cannot infer the format from this name; use a known extension "
                       "such as .png, or --format",
                       path);
    return GF_OK;
}

/* Return true if every row has a fixed offset in the file. */
static bool sink_is_plain(const struct sink_kind *kind) {
    return kind->open == gf_plain_sink_open;
}

static gf_status sink_fail_type(const struct sink_kind *kind, const char *name, gf_type type,
                                gf_error *error) {
    const bool only_f32 = kind->types == 1 << GF_F32;
    if (kind->types == INTEGERS)
        return gf_fail(error, GF_FAILED,
                       "%s: %s does not support f32 samples; write .tif or give --depth 16", name,
                       kind->label);
    return gf_fail(error, GF_FAILED,
                   "%s: %s supports only %s samples, and this image is %s; write %s or give "
                   "--depth %s",
                   name, kind->label, only_f32 ? "f32" : "u8", gf_type_name(type),
                   type == GF_F32 ? ".tif" : ".png", only_f32 ? "f32" : "8");
}

static gf_status sink_fail_channels(const struct sink_kind *kind, const char *name,
                                    const gf_format *format, gf_error *error) {
    static const struct {
        const char *what, *advice;
    } images[] = {[1] = {"grey images", "write .pgm, .pnm or .png"},
                  [2] = {"2 channels", "write .tif"},
                  [3] = {"colour images", "write .ppm, .pnm or .png"},
                  [4] = {"4 channels", "write .tif"}};
    if (gf_has_alpha(format))
        return gf_fail(error, GF_FAILED, "%s: %s%s does not support an alpha channel; %s", name,
                       kind->kind == GF_SINK_BMP ? "grey " : "", kind->label, kind->alpha_advice);
    return gf_fail(error, GF_FAILED, "%s: %s does not support %s; %s", name, kind->label,
                   images[format->channels].what, images[format->channels].advice);
}

/* stb computes file sizes in an int. 4096 bytes are reserved for headers; row padding is at most 3
 * bytes. Grey is written as RGB. HDR has 4 bytes per pixel. */
static gf_status sink_check_size(const struct sink_kind *kind, const char *name,
                                 const gf_format *format, gf_error *error) {
    const uint64_t width = format->width, height = format->height, max = kind->max_columns;
    const bool stb = kind->open == gf_stb_sink_open;
    const uint64_t pixel = kind->kind == GF_SINK_HDR ? 4
                           : format->channels == 1   ? 3
                                                     : format->channels;
    if ((!max || (width <= max && height <= max)) &&
        (!stb || width * pixel + 3 <= (INT32_MAX - 4096) / height))
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: %s%s is limited to %" PRIu64
                   " columns and rows%s, and this image is %" PRIu64 "x%" PRIu64 "; write %s.pam",
                   name, kind->label, stb ? " output" : "", max, stb ? " and to 2 GiB" : "", width,
                   height, stb ? ".png or " : "");
}

/* Check that the format supports the type, channels and size. The message names one that does. */
static gf_status sink_check(const struct sink_kind *kind, const char *name, const gf_format *format,
                            gf_error *error) {
    if (!(kind->types >> format->type & 1))
        return sink_fail_type(kind, name, format->type, error);
    if (!(kind->channels >> format->channels & 1))
        return sink_fail_channels(kind, name, format, error);
    if (format->channels % 2 == 0 && !gf_has_alpha(format) && !(kind->channels & DATA))
        return gf_fail(error, GF_FAILED,
                       "%s: %s stores channel %" PRIu32
                       " only as alpha, and here it is data; write .tif, or declare it with "
                       "--alpha last",
                       name, kind->label, format->channels);
    return sink_check_size(kind, name, format, error);
}

/* Check the kind of the alpha channel: only TIFF, and raw rows, which the user defines, can store
 * associated alpha. */
static gf_status sink_check_alpha(const struct sink_kind *kind, const char *name,
                                  const gf_format *format, const gf_metadata *metadata,
                                  gf_error *error) {
    if (!metadata || !metadata->associated_alpha || !gf_has_alpha(format) ||
        kind->kind == GF_SINK_RAW || kind->kind == GF_SINK_TIFF)
        return GF_OK;
    return gf_fail(
        error, GF_FAILED,
        "%s: %s does not support the associated (premultiplied) alpha of the input; "
        "write .tif, or convert the input first, e.g. with vips unpremultiply in.tif out.tif",
        name, kind->label);
}

bool gf_sink_takes_encoded(const char *path, gf_type type, const gf_file_options *options) {
    const struct sink_kind *kind;
    const char *compression = options->write.compression;
    return type != GF_F32 && !sink_choose_kind(path, options->write.format, &kind, NULL) &&
           kind->kind == GF_SINK_PNG &&
           (!compression || strcmp(compression, gf_compressions()[GF_PNG_FAST]) == 0);
}

bool gf_sink_has_parts(const char *path, const gf_file_options *options) {
    const struct sink_kind *kind;
    struct stat info;
    return strcmp(path, "-") != 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode)) &&
           !sink_choose_kind(path, options->write.format, &kind, NULL) && sink_is_plain(kind);
}

/* The part of a file that a sink writes. */
typedef struct sink_part {
    bool shared;           /* several processes write the file */
    const char *temporary; /* existing file to add rows to; NULL: create it with its header */
    uint64_t first;        /* first row of the part */
    gf_sink *before;       /* sink of the previous page; NULL: none */
} sink_part;

static gf_status sink_open_output(const char *path, const gf_file_options *options,
                                  const sink_part *part, gf_output **output, gf_error *error) {
    if (part->temporary)
        return gf_output_join(path, part->temporary, output, error);
    if (!part->before)
        return gf_output_open(path, options, part->shared, output, error);
    *output = part->before->output;
    part->before->output = NULL;
    return GF_OK;
}

/* Note the options that differ from their defaults and have no effect on the format. */
static void sink_note_unused(gf_sink *sink, const struct sink_kind *kind,
                             const gf_sink_setup *setup) {
    const char *effort = setup->compression, *tiff = setup->tiff_compression;
    const struct {
        const char *option;
        bool changed;
        gf_sink_kind used;
    } options[] = {
        {"quality", setup->quality != GF_DEFAULT_QUALITY, GF_SINK_JPEG},
        {"compression", effort && strcmp(effort, gf_compressions()[0]) != 0, GF_SINK_PNG},
        {"tiff-compression", tiff && strcmp(tiff, gf_tiff_compressions()[0]) != 0, GF_SINK_TIFF}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].changed && kind->kind != options[i].used)
            gf_note(&sink->remarks, "--%s has no effect on %s", options[i].option, kind->label);
}

static gf_status sink_open(const char *path, const gf_format *format, const gf_metadata *metadata,
                           const gf_file_options *options, uint32_t threads, const sink_part *part,
                           gf_sink **sink, gf_error *error) {
    static const gf_file_options no_options;
    static const gf_metadata none = {0};
    const char *name = strcmp(path, "-") == 0 ? "standard output" : path;
    const struct sink_kind *kind;
    gf_output *output;
    gf_status status;
    *sink = NULL;
    if (!options)
        options = &no_options;
    const gf_limits limits = gf_limits_of(options, threads);
    if ((status = sink_choose_kind(path, options->write.format, &kind, error)) ||
        (status = gf_format_check(format, name, error)) ||
        (status = sink_check(kind, name, format, error)) ||
        (status = sink_check_alpha(kind, name, format, metadata, error)) ||
        (status = sink_open_output(path, options, part, &output, error)))
        return status;
    const gf_sink_setup setup = {
        .kind = kind->kind,
        .output = output,
        .format = format,
        .metadata = metadata ? metadata : &none,
        .compression = options->write.compression,
        .quality = options->write.quality ? options->write.quality : GF_DEFAULT_QUALITY,
        .tiff_compression = options->write.tiff_compression,
        .max_memory = limits.max_memory,
        .threads = limits.threads,
        .first = part->first,
        .header = !part->temporary,
        .before = part->before,
    };
    status = kind->open(&setup, sink, error);
    if (!status)
        sink_note_unused(*sink, kind, &setup);
    return status;
}

gf_status gf_sink_open(const char *path, const gf_format *format, const gf_metadata *metadata,
                       const gf_file_options *options, uint32_t threads, gf_sink **sink,
                       gf_error *error) {
    return sink_open(path, format, metadata, options, threads, &(sink_part){0}, sink, error);
}

gf_status gf_sink_next_page(gf_sink **sink, const char *path, const gf_format *format,
                            const gf_metadata *metadata, const gf_file_options *options,
                            uint32_t threads, gf_error *error) {
    gf_sink *inner = *sink, *next;
    if (inner->inner) { /* the wrapper converts samples as this page needs it */
        inner = inner->inner;
        (*sink)->inner = NULL;
        (*sink)->ops->close(*sink);
        *sink = inner;
    }
    const gf_status status = sink_open(path, format, metadata, options, threads,
                                       &(sink_part){.before = inner}, &next, error);
    if (status)
        return status;
    inner->ops->close(inner);
    *sink = next;
    return GF_OK;
}

gf_status gf_sink_open_part(const char *path, const char *temporary, const gf_format *format,
                            uint64_t first, const gf_file_options *options, uint32_t threads,
                            gf_sink **sink, gf_error *error) {
    const sink_part part = {.shared = true, .temporary = temporary, .first = first};
    return sink_open(path, format, NULL, options, threads, &part, sink, error);
}

/* ---- costs ----------------------------------------------------------------------------------- */

gf_codec_costs gf_encoding_costs(const char *format, const gf_file_options *options,
                                 uint32_t threads) {
    const struct sink_kind *kind = sink_find_kind(format);
    gf_codec_costs costs = {.encode = GF_STB_ENCODE_COST, .encode_threads = 1};
    if (!kind)
        return (gf_codec_costs){0};
    if (sink_is_plain(kind))
        costs.encode = GF_PLAIN_COST;
    else if (kind->kind == GF_SINK_JPEG)
        costs.encode = GF_JPEG_ENCODE_COST;
    else if (kind->kind == GF_SINK_PNG)
        costs = (gf_codec_costs){.encode = gf_png_encode_cost(options->write.compression),
                                 .encode_threads = threads};
    else if (kind->kind == GF_SINK_TIFF)
        costs = (gf_codec_costs){.encode = gf_tiff_encode_cost(options->write.tiff_compression),
                                 .encode_threads = threads};
    return costs;
}

/* ---- whole files ----------------------------------------------------------------------------- */

/* Append a name unless it is present or does not fit. */
static void inspect_add_name(char *names, size_t size, const char *name) {
    const size_t used = strlen(names), length = strlen(name);
    if (used + length + 2 > size)
        return;
    for (const char *at = names; (at = strstr(at, name)); at++)
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
            return;
    snprintf(names + used, size - used, "%s%s", used ? " " : "", name);
}

gf_status gf_inspect_file(const char *path, const gf_file_options *options, gf_file_info *info,
                          gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_limits limits = gf_limits_of(options, 0);
    gf_source *source;
    limits.autorotate = false;
    limits.crop = NULL;
    gf_status status = gf_check_options(NULL, options, error);
    if (!status)
        status = gf_source_open(path, &limits, &source, error);
    if (status)
        return status;
    const gf_metadata *metadata = &source->metadata;
    *info = (gf_file_info){.format = source->format};
    snprintf(info->kind, sizeof info->kind, "%s", source->kind);
    const bool damaged = metadata->damaged[0] != '\0';
    snprintf(info->stored, sizeof info->stored, "%.*s%s%s%s", damaged ? 64 : 95, source->stored,
             damaged ? ", damaged " : "", metadata->damaged, damaged ? " chunk" : "");
    for (size_t i = 0; i < metadata->count; i++)
        inspect_add_name(info->metadata, sizeof info->metadata,
                         gf_metadata_label(&metadata->chunks[i]));
    info->orientation = gf_metadata_orientation(metadata);
    gf_resolution r;
    if (gf_metadata_resolution(metadata, &r) && r.unit != GF_PER_NONE) {
        const double per_inch = r.unit == GF_PER_CM ? 2.54 : 1;
        info->resolution_x = r.x * per_inch;
        info->resolution_y = r.y * per_inch;
    }
    source->ops->close(source);
    return GF_OK;
}

gf_status gf_load_file(const char *path, const gf_file_options *options, gf_format *format,
                       void **pixels, gf_report *report, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_limits limits = gf_limits_of(options, 0);
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    gf_source *source;
    *pixels = NULL;
    gf_status status = gf_check_options(NULL, options, error);
    if (!status)
        status = gf_source_open(path, &limits, &source, error);
    if (status)
        return status;
    const gf_type stored = source->format.type;
    const gf_type type = gf_depth_type(options ? options->write.depth : GF_DEPTH_INPUT, stored);
    if (type > stored)
        status = gf_convert_source(&source, type, false, false, name, error);
    *format = source->format;
    if (!status)
        status = gf_source_read_all(source, name, "the image", limits.max_memory, pixels, error);
    if (!status && type < stored)
        source->metadata.remarks.outside = gf_convert_pixels(format, *pixels, type);
    if (report)
        *report = (gf_report){.in = *format,
                              .in_bytes = source->bytes,
                              .pages = source->pages,
                              .remarks = source->metadata.remarks};
    source->ops->close(source);
    return status;
}

gf_status gf_save_file(const char *path, const gf_format *format, const gf_pixels *pixels,
                       const gf_file_options *options, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_file_options defaults = {0};
    gf_sink *sink;
    options = options ? options : &defaults;
    if (!path || !format || !pixels || !pixels->data)
        return gf_fail(error, GF_USAGE, "gf_save_file: an argument is NULL");
    gf_status status = gf_check_options(NULL, options, error);
    if (!status)
        status = gf_format_check(format, "memory", error);
    if (!status)
        status = gf_pixels_check("memory", "image", format, *pixels, error);
    if (status)
        return status;
    gf_format stored = *format;
    stored.type = gf_depth_type(options->write.depth, format->type);
    status = gf_sink_open(path, &stored, NULL, options, gf_cores(), &sink, error);
    if (status)
        return status;
    status = gf_convert_sink(&sink, format, &stored, false, false, error);
    if (!status)
        status = sink->ops->write(sink, pixels->data, pixels->stride, format->height, error);
    if (!status)
        status = sink->ops->finish(sink, NULL, error);
    if (!status)
        status = gf_output_commit(sink->output, error);
    sink->ops->close(sink);
    return status;
}

/* ---- verification of written files ----------------------------------------------------------- */

#define READ_BACK_BYTES ((size_t)1 << 20)

static gf_status read_back_digest(gf_source *source, const char *name, uint64_t *digest,
                                  gf_error *error) {
    const size_t row = gf_row_bytes(&source->format);
    const uint64_t height = source->format.height, max = READ_BACK_BYTES / row + 1;
    gf_rows rows = {.stride = row, .rows = max < height ? max : height};
    rows.data = malloc((size_t)rows.rows * row); /* NOLINT: an image has at least one sample */
    if (!rows.data)
        return gf_fail_memory(error, name, rows.rows * row, "rows to read back");
    gf_status status = GF_OK;
    *digest = 0;
    for (uint64_t y = 0; y < height && !status; y += rows.rows) {
        rows.rows = height - y < rows.rows ? height - y : rows.rows;
        status = source->ops->read(source, rows.data, row, rows.rows, error);
        if (!status)
            *digest = gf_digest_rows(*digest, &rows, row);
    }
    if (!status)
        status = source->ops->finish(source, error);
    free(rows.data);
    return status;
}

gf_status gf_read_back(const gf_sink *sink, const gf_format *format, const gf_limits *limits,
                       uint64_t digest, gf_error *error) {
    const char *path = gf_output_pending_path(sink->output);
    if (!path || !sink->exact)
        return GF_OK;
    const char *name = gf_output_name(sink->output);
    const gf_raw raw = {.format = *format};
    gf_limits own = *limits;
    own.raw = sink->headerless ? &raw : NULL;
    own.autorotate = false;
    own.crop = NULL;
    own.alpha = gf_has_alpha(format) ? GF_ALPHA_LAST : GF_ALPHA_NONE;
    gf_source *source = NULL;
    gf_error cause = {0};
    uint64_t found = ~digest;
    gf_status status = gf_source_open(path, &own, &source, &cause);
    if (!status && gf_format_equal(&source->format, format))
        status = read_back_digest(source, name, &found, &cause);
    if (source)
        source->ops->close(source);
    if (status)
        return gf_fail(error, GF_FAILED, "%s: cannot read back the written file: %s", name,
                       cause.message);
    if (found != digest)
        return gf_fail(error, GF_FAILED,
                       "%s: the rows read back differ from the computed rows; check the disk and "
                       "the memory of this machine",
                       name);
    return GF_OK;
}
