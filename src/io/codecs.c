/* Image files: detection of their format, sources and sinks by content or name, and costs. All
 * facts about a format are in its descriptor. */
#include "io/codecs.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/image.h"
#include "io/codec.h"
#include "io/stream/convert.h"

/* ---- the list -------------------------------------------------------------------------------- */

bool gf_codec_describe(size_t index, gf_codec_info *info) {
    const gf_codec *codec;
    for (size_t i = 0; (codec = gf_codec_at(i)); i++)
        if (codec->notes && index-- == 0)
            break;
    if (codec)
        *info = (gf_codec_info){.label = codec->label,
                                .extensions = codec->extensions,
                                .notes = codec->notes,
                                .read = codec->open_source && !codec->headerless,
                                .written = codec->open_sink,
                                .headerless = codec->headerless};
    return codec != NULL;
}

/* Return the format that has this extension; NULL if there is none. If it is the name of a format,
 * others with it do not count. */
static const gf_codec *codec_of_extension(const char *extension) {
    const gf_codec *codec;
    for (size_t n = 0; n < GF_CODEC_EXTENSIONS; n++)
        for (size_t i = 0; (codec = gf_codec_at(i)); i++)
            if (codec->extensions[n] && strcasecmp(extension, codec->extensions[n]) == 0)
                return codec;
    return NULL;
}

enum { MAX_OUTPUT_FORMATS = 64 };
static const char *output_formats[MAX_OUTPUT_FORMATS + 1];

static void codecs_list_outputs(void) {
    const gf_codec *codec;
    size_t count = 0;
    for (size_t i = 0; (codec = gf_codec_at(i)); i++)
        for (const char *const *name = codec->extensions; codec->open_sink && *name; name++)
            if (count < MAX_OUTPUT_FORMATS && codec_of_extension(*name) == codec)
                output_formats[count++] = *name;
}

const char *const *gf_output_formats(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, codecs_list_outputs);
    return output_formats;
}

/* Known formats that are neither read nor written. */
static const struct foreign_format {
    const char *extension, *name, *magic;
    size_t at; /* offset of magic */
} foreign_formats[] = {
    {"webp", "WebP", "WEBP", 8},     {"avif", "AVIF", "ftypavif", 4},
    {"heic", "HEIC", "ftyphei", 4},  {"heic", "HEIC", "ftypmif1", 4},
    {"jxl", "JPEG XL", "JXL ", 4},   {"jxl", "JPEG XL", "\xff\x0a", 0},
    {"jp2", "JPEG 2000", "jP  ", 4}, {"exr", "OpenEXR", "v/1\x01", 0},
    {"pdf", "PDF", "%PDF-", 0},      {"svg", "SVG", "<svg", 0},
};

enum { FOREIGN_FORMATS = sizeof foreign_formats / sizeof *foreign_formats };

/* ---- sources --------------------------------------------------------------------------------- */

static bool codec_matches(const gf_codec *codec, const gf_input *input) {
    bool magic = !codec->magics[0];
    for (size_t i = 0; i < GF_CODEC_MAGICS && codec->magics[i] && !magic; i++) {
        const size_t size = strlen(codec->magics[i]);
        magic = input->head_size >= size && memcmp(input->head, codec->magics[i], size) == 0;
    }
    return magic && (codec->match ? codec->match(input) : codec->magics[0] != NULL);
}

/* Return the format of an input; NULL if none matches. Formats without a magic come last: their
 * match is the weakest. */
static const gf_codec *codec_detect(const gf_input *input, bool raw) {
    const gf_codec *codec;
    for (int weak = 0; weak < 2; weak++)
        for (size_t i = 0; (codec = gf_codec_at(i)); i++)
            if (raw ? codec->headerless
                    : (codec->magics[0] == NULL) == weak && codec_matches(codec, input))
                return codec;
    return NULL;
}

static gf_status source_fail_unknown(const gf_input *input, gf_error *error) {
    for (const struct foreign_format *f = foreign_formats; f < foreign_formats + FOREIGN_FORMATS;
         f++)
        if (memcmp(input->head + f->at, f->magic, strlen(f->magic)) == 0)
            return gf_fail(
                error, GF_FAILED,
                "%s: cannot read %s; convert it first, e.g. with vips copy in.%s out.tif",
                input->name, f->name, f->extension);
    char names[256] = "";
    const gf_codec *codec;
    for (size_t i = 0, used = 0; (codec = gf_codec_at(i)) && used < sizeof names; i++)
        if (codec->magics[0] || codec->match)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s%s", used ? ", " : "",
                                     codec->label, codec->magics[0] ? "" : " (by its extension)");
    return gf_fail(error, GF_FAILED,
                   "%s: unsupported image format; supported: %s; rows without a header with --raw",
                   input->name, names);
}

static gf_status source_open_codec(const gf_input *input, const gf_limits *limits,
                                   gf_source **source, gf_error *error) {
    if (limits->page == GF_ALL_PAGES)
        return gf_fail(error, GF_USAGE, "%s: --page all: only filters read all pages", input->name);
    if (limits->page > GF_MAX_PAGE)
        return gf_fail(error, GF_USAGE, "%s: page %" PRIu32 ": must be from 1 to %" PRIu32,
                       input->name, limits->page, GF_MAX_PAGE);
    if (input->head_size == 0)
        return gf_fail(error, GF_FAILED, "%s: the file is empty", input->name);
    const gf_codec *codec = codec_detect(input, limits->raw);
    if (!codec)
        return source_fail_unknown(input, error);
    const gf_status status = codec->open_source(input, limits, source, error);
    if (!status && !(*source)->codec)
        (*source)->codec = codec;
    if (!status && (*source)->cost == 0)
        (*source)->cost = codec->decode_cost;
    return status;
}

/* Convert the samples of an open source, and turn, crop and stack its image, as the caller wants.
 */
static gf_status source_adapt(gf_source **source, const char *path, const char *name,
                              const gf_limits *limits, gf_error *error) {
    gf_status status;
    /* Sources of formats with pages have failed if the page does not exist. */
    if (limits->page > 1 && (*source)->pages == 0)
        return gf_fail(error, GF_FAILED, "%s: has no pages; omit --page", name);
    if ((status = gf_samples_source(source, limits, name, error)))
        return status;
    gf_format *format = &(*source)->format;
    if (limits->alpha == GF_ALPHA_LAST && format->channels % 2 != 0)
        return gf_fail(error, GF_FAILED,
                       "%s: --alpha last: the image has %" PRIu32
                       " channel%s, and alpha is the last of 2 or 4; remove --alpha",
                       name, format->channels, format->channels == 1 ? "" : "s");
    if (limits->alpha != GF_ALPHA_FILE)
        format->alpha = limits->alpha == GF_ALPHA_LAST;
    (*source)->nodata.declared = (*source)->nodata.declared && !limits->keep_nodata;
    (*source)->metadata.image = *format;
    if ((limits->autorotate &&
         (status = gf_rotate_source(source, limits->max_memory, name, error))) ||
        (limits->crop &&
         (status = gf_crop_source(source, limits->crop, limits->max_memory, name, error))) ||
        (limits->stacked && (*source)->pages > 1 &&
         (status = gf_pages_source(source, gf_source_open, path, limits, error))))
        return status;
    /* The caller allocates at least one row. */
    return gf_check_memory(gf_row_bytes(&(*source)->format), limits->max_memory, name, "a row",
                           error);
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
    status = source_open_codec(&input, &resolved, source, error);
    if (status) {
        gf_input_close(&input);
        return status;
    }
    assert(*source);
    status = source_adapt(source, path, name, &resolved, error);
    if (status) {
        (*source)->ops->close(*source);
        *source = NULL;
    }
    return status;
}

/* ---- sinks ----------------------------------------------------------------------------------- */

/* Choose by --format, or by the extension of the name. */
static gf_status sink_choose_codec(const char *path, const char *format, const gf_codec **codec,
                                   gf_error *error) {
    const char *extension = strcmp(path, "-") == 0 ? "png" : gf_path_extension(path);
    const size_t length = strlen(path);
    char names[128];
    struct stat info;
    *codec = codec_of_extension(format ? format : extension);
    if (*codec && (*codec)->open_sink)
        return GF_OK;
    if (format) {
        gf_join_choices(gf_output_formats(), names, sizeof names);
        return gf_fail(error, GF_USAGE, "--format: cannot write '%s'; use %s", format, names);
    }
    if ((length && path[length - 1] == '/') || (stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return gf_fail(error, GF_FAILED,
                       "%s: is a directory; name a file in it, or use --out-dir for all operands",
                       path);
    const char *name = *codec ? (*codec)->label : NULL;
    for (size_t i = 0; !name && i < FOREIGN_FORMATS; i++)
        if (strcasecmp(extension, foreign_formats[i].extension) == 0)
            name = foreign_formats[i].name;
    if (name)
        return gf_fail(
            error, GF_USAGE,
            "%s: cannot write %s; use an extension such as .png, .pam or .pfm, or --format", path,
            name);
    return gf_fail(error, GF_USAGE,
                   "%s: cannot infer the format from this name; use a known extension "
                   "such as .png, or --format",
                   path);
}

static gf_status sink_fail_type(const gf_codec *codec, const char *name, gf_type type,
                                gf_error *error) {
    const gf_type only = (gf_type)__builtin_ctz(codec->types);
    if (codec->types == GF_STORES_INTEGERS)
        return gf_fail(error, GF_FAILED,
                       "%s: %s does not support f32 samples; write .tif or give --depth 16", name,
                       codec->label);
    return gf_fail(error, GF_FAILED,
                   "%s: %s supports only %s samples, and this image is %s; write %s or give "
                   "--depth %s",
                   name, codec->label, gf_type_name(only), gf_type_name(type),
                   type == GF_F32 ? ".tif" : ".png",
                   gf_type_name(only) + (only != GF_F32)); /* u8: 8 */
}

static gf_status sink_fail_channels(const gf_codec *codec, const char *name,
                                    const gf_format *format, gf_error *error) {
    static const struct {
        const char *what, *advice;
    } images[] = {[1] = {"grey images", "write .pgm, .pnm or .png"},
                  [2] = {"2 channels", "write .tif"},
                  [3] = {"colour images", "write .ppm, .pnm or .png"},
                  [4] = {"4 channels", "write .tif"}};
    if (gf_has_alpha(format))
        return gf_fail(error, GF_FAILED, "%s: %s%s does not support an alpha channel; %s", name,
                       codec->channels & GF_STORES_RGBA ? "grey " : "", codec->label,
                       codec->alpha_advice ? codec->alpha_advice : "write .png or .pam");
    return gf_fail(error, GF_FAILED, "%s: %s does not support %s; %s", name, codec->label,
                   images[format->channels].what, images[format->channels].advice);
}

/* Check that the format supports the type, channels and size. The message names one that does. */
static gf_status sink_check(const gf_codec *codec, const char *name, const gf_format *format,
                            const gf_metadata *metadata, gf_error *error) {
    if (!(codec->types >> format->type & 1))
        return sink_fail_type(codec, name, format->type, error);
    if (!(codec->channels >> format->channels & 1))
        return sink_fail_channels(codec, name, format, error);
    if (format->channels % 2 == 0 && !gf_has_alpha(format) && !(codec->channels & GF_STORES_DATA))
        return gf_fail(error, GF_FAILED,
                       "%s: %s stores channel %" PRIu32
                       " only as alpha, and here it is data; write .tif, or declare it with "
                       "--alpha last",
                       name, codec->label, format->channels);
    const uint64_t width = format->width, height = format->height, max = codec->max_columns;
    const uint64_t own = format->channels == 1 ? codec->grey_bytes : codec->pixel_bytes;
    const uint64_t pixel = own ? own : format->channels;
    const bool limited = codec->max_bytes != 0;
    enum { PADDING = 3 }; /* max bytes after a row */
    if ((max && (width > max || height > max)) ||
        (limited && width * pixel + PADDING > codec->max_bytes / height))
        return gf_fail(error, GF_FAILED,
                       "%s: %s%s is limited to %" PRIu64
                       " columns and rows%s, and this image is %" PRIu64 "x%" PRIu64
                       "; write %s.pam",
                       name, codec->label, limited ? " output" : "", max,
                       limited ? " and to 2 GiB" : "", width, height, limited ? ".png or " : "");
    /* Only TIFF, and raw rows, which the user defines, can store associated alpha. */
    if (metadata->associated_alpha && gf_has_alpha(format) && !codec->associated_alpha)
        return gf_fail(
            error, GF_FAILED,
            "%s: %s does not support the associated (premultiplied) alpha of the input; "
            "write .tif, or convert the input first, e.g. with vips unpremultiply in.tif out.tif",
            name, codec->label);
    return GF_OK;
}

bool gf_sink_takes_encoded(const char *path, gf_type type, const gf_file_options *options) {
    const gf_codec *codec;
    return type != GF_F32 && !sink_choose_codec(path, options->write.format, &codec, NULL) &&
           codec->on_devices && gf_codec_effort(codec, options->write.compression) == 0;
}

bool gf_sink_has_parts(const char *path, const gf_file_options *options) {
    const gf_codec *codec;
    struct stat info;
    return strcmp(path, "-") != 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode)) &&
           !sink_choose_codec(path, options->write.format, &codec, NULL) && codec->plain;
}

/* The part of a file that a sink writes. */
typedef struct sink_part {
    bool shared;           /* several processes write the file */
    const char *temporary; /* existing file to add rows to; NULL: create it with its header */
    uint64_t first;        /* first row of the part */
    gf_sink *before;       /* sink of the previous page; NULL: none */
} sink_part;

/* Return the compression that the options select for a format; NULL: its default, or none. */
static const char *sink_compression(const gf_codec *codec, const gf_file_options *options) {
    return codec->option == GF_OPTION_COMPRESSION        ? options->write.compression
           : codec->option == GF_OPTION_TIFF_COMPRESSION ? options->write.tiff_compression
                                                         : NULL;
}

/* Return the estimated time to encode, in ns per sample on one core; with an unknown compression,
 * any. */
static double sink_cost(const gf_codec *codec, const gf_file_options *options) {
    const size_t effort = gf_codec_effort(codec, sink_compression(codec, options));
    return codec->plain ? GF_PLAIN_COST : codec->encode_cost[effort % GF_CODEC_COMPRESSIONS];
}

/* Note the options that differ from their defaults and concern only other formats. */
static void sink_note_unused(gf_sink *sink, const gf_file_options *options) {
    static const char *const names[] = {[GF_OPTION_QUALITY] = "quality",
                                        [GF_OPTION_COMPRESSION] = "compression",
                                        [GF_OPTION_TIFF_COMPRESSION] = "tiff-compression"};
    const gf_codec *other;
    for (size_t i = 0; (other = gf_codec_at(i)); i++) {
        const bool changed =
            other->option == GF_OPTION_QUALITY
                ? options->write.quality && options->write.quality != GF_DEFAULT_QUALITY
                : gf_codec_effort(other, sink_compression(other, options)) != 0;
        if (changed && other->option != sink->codec->option)
            gf_note(&sink->remarks, "--%s has no effect on %s", names[other->option],
                    sink->codec->label);
    }
}

static gf_status sink_open(const char *path, const gf_format *format, const gf_metadata *metadata,
                           const gf_file_options *options, uint32_t threads, const sink_part *part,
                           gf_sink **sink, gf_error *error) {
    static const gf_file_options no_options;
    static const gf_metadata none = {0};
    const char *name = strcmp(path, "-") == 0 ? "standard output" : path;
    const gf_codec *codec;
    gf_output *output = NULL;
    gf_status status;
    *sink = NULL;
    options = options ? options : &no_options;
    metadata = metadata ? metadata : &none;
    const gf_limits limits = gf_limits_of(options, threads);
    if ((status = sink_choose_codec(path, options->write.format, &codec, error)) ||
        (status = gf_format_check(format, name, error)) ||
        (status = sink_check(codec, name, format, metadata, error)))
        return status;
    if (part->before) {
        output = part->before->output;
        part->before->output = NULL;
    } else {
        status = part->temporary ? gf_output_join(path, part->temporary, &output, error)
                                 : gf_output_open(path, options, part->shared, &output, error);
    }
    if (status)
        return status;
    const gf_sink_setup setup = {
        .codec = codec,
        .output = output,
        .format = format,
        .metadata = metadata,
        .compression = sink_compression(codec, options),
        .quality = options->write.quality ? options->write.quality : GF_DEFAULT_QUALITY,
        .max_memory = limits.max_memory,
        .threads = limits.threads,
        .first = part->first,
        .header = !part->temporary,
        .before = part->before,
    };
    status = codec->open_sink(&setup, sink, error);
    if (status) {
        if (*sink)
            (*sink)->ops->close(*sink);
        *sink = NULL;
        return status;
    }
    (*sink)->codec = codec;
    (*sink)->cost = sink_cost(codec, options);
    (*sink)->form = codec->form;
    sink_note_unused(*sink, options);
    return GF_OK;
}

gf_status gf_sink_open(const char *path, const gf_format *format, const gf_metadata *metadata,
                       const gf_file_options *options, uint32_t threads, gf_sink **sink,
                       gf_error *error) {
    return sink_open(path, format, metadata, options, threads, &(sink_part){0}, sink, error);
}

gf_status gf_sink_next_page(gf_sink **sink, const char *path, const gf_format *format,
                            const gf_metadata *metadata, const gf_file_options *options,
                            uint32_t threads, gf_error *error) {
    gf_sink *before = *sink, *next;
    const gf_status status = sink_open(path, format, metadata, options, threads,
                                       &(sink_part){.before = before}, &next, error);
    if (status)
        return status;
    before->ops->close(before);
    *sink = next;
    return GF_OK;
}

gf_status gf_sink_open_part(const char *path, const char *temporary, const gf_format *format,
                            uint64_t first, const gf_file_options *options, uint32_t threads,
                            gf_sink **sink, gf_error *error) {
    const sink_part part = {.shared = true, .temporary = temporary, .first = first};
    return sink_open(path, format, NULL, options, threads, &part, sink, error);
}

gf_codec_costs gf_encoding_costs(const char *path, const gf_file_options *options,
                                 uint32_t threads) {
    const gf_codec *codec;
    if (sink_choose_codec(path, options->write.format, &codec, NULL))
        return (gf_codec_costs){0};
    return (gf_codec_costs){.encode = sink_cost(codec, options),
                            .encode_threads = codec->threads ? threads : 1};
}
