/* Which kind of file is it, and who reads or writes it. */

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "agree.h"
#include "error.h"
#include "io/kinds.h"
#include "io/limits.h"
#include "io/metadata.h"
#include "io/path.h"

/* ---- sources --------------------------------------------------------------------------------- */

static bool starts(const gf_input *input, const char *magic, size_t size) {
    return input->head_size >= size && memcmp(input->head, magic, size) == 0;
}

static bool is_png(const gf_input *input) {
    return starts(input, "\x89PNG\r\n\x1a\n", 8);
}

/* P and a digit or f, and then something that ends the word. */
static bool is_pnm(const gf_input *input) {
    return input->head_size >= 3 && input->head[0] == 'P' && input->head[1] != '\0' &&
           strchr("1234567fF", input->head[1]) != NULL && input->head[2] != '\0' &&
           strchr(" \t\n\v\f\r#", input->head[2]) != NULL;
}

static bool is_jpeg(const gf_input *input) {
    return starts(input, "\xff\xd8\xff", 3);
}

/* Two letters are little: the size of the second header has few possible values, too. */
static bool is_bmp(const gf_input *input) {
    return starts(input, "BM", 2) && input->head_size == GF_PEEK && input->head[14] != 0 &&
           strchr("\x0c\x28\x34\x38\x40\x6c\x7c", input->head[14]) != NULL && input->head[15] == 0;
}

static bool is_psd(const gf_input *input) {
    return starts(input, "8BPS", 4);
}

static bool is_gif(const gf_input *input) {
    return starts(input, "GIF87a", 6) || starts(input, "GIF89a", 6);
}

static bool is_hdr(const gf_input *input) {
    return starts(input, "#?RADIANCE\n", 11) || starts(input, "#?RGBE\n", 7);
}

/* TGA has no magic: only its name tells. */
static bool is_tga(const gf_input *input) {
    return strcasecmp(gf_path_ending(input->name), "tga") == 0;
}

static const struct source_kind {
    const char *name; /* NULL where the source knows better */
    bool (*match)(const gf_input *input);
    gf_open_source *open;
} source_kinds[] = {
    {"png", is_png, gf_png_source_open},
    {NULL, is_pnm, gf_pnm_source_open},
    {"jpg", is_jpeg, gf_stb_source_open},
    {"bmp", is_bmp, gf_stb_source_open},
    {"psd", is_psd, gf_stb_source_open},
    {"gif", is_gif, gf_stb_source_open},
    {"hdr", is_hdr, gf_stb_source_open},
    {"tga", is_tga, gf_stb_source_open}, /* last: its match is weakest */
};

static gf_status open_kind(const gf_input *input, const gf_limits *limits, gf_source **source,
                           gf_error *error) {
    if (input->head_size == 0)
        return gf_fail(error, GF_FAILED, "%s: the file is empty", input->name);
    if (limits->raw != NULL)
        return gf_raw_source_open(input, limits, source, error);
    for (size_t i = 0; i < sizeof source_kinds / sizeof *source_kinds; i++) {
        const struct source_kind *kind = &source_kinds[i];
        if (!kind->match(input))
            continue;
        gf_status status = kind->open(input, limits, source, error);
        if (status == GF_OK && kind->name != NULL)
            (void)snprintf((*source)->kind, sizeof(*source)->kind, "%s", kind->name);
        return status;
    }
    return gf_fail(error, GF_FAILED,
                   "%s: not an image that gpufilter reads (PNG, PGM, PPM, PAM, PFM, JPEG, BMP, "
                   "TGA by its name, PSD, GIF, HDR; rows without a header with --raw)",
                   input->name);
}

/* Every kind also hands out rows, which the caller must hold. */
static gf_status check_row(const gf_source *source, const char *name, const gf_limits *limits,
                           gf_error *error) {
    return gf_check_memory(gf_row_bytes(&source->format), limits->max_memory, name, "a row", error);
}

gf_status gf_source_open(const char *path, const gf_limits *limits, gf_source **source,
                         gf_error *error) {
    gf_limits resolved = gf_limits_resolve(limits);
    gf_input input;
    gf_status status = gf_input_open(&input, path, error);

    *source = NULL;
    if (status != GF_OK)
        return status;
    status = open_kind(&input, &resolved, source, error);
    if (status != GF_OK) {
        gf_input_close(&input);
        return status;
    }
    status = check_row(*source, strcmp(path, "-") == 0 ? "standard input" : path, &resolved, error);
    if (status != GF_OK) {
        (*source)->ops->close(*source);
        *source = NULL;
    }
    return status;
}

/* ---- sinks ----------------------------------------------------------------------------------- */

/* Each name is also an ending. */
static const struct sink_kind {
    const char *name;
    gf_check_sink *check;
    gf_open_sink *open;
    bool by_rows; /* each row has its place in the file */
} sink_kinds[] = {
    {"png", gf_png_sink_check, gf_png_sink_open, false},
    {"pgm", gf_pgm_sink_check, gf_pnm_sink_open, true},
    {"ppm", gf_ppm_sink_check, gf_pnm_sink_open, true},
    {"pnm", gf_pnm_sink_check, gf_pnm_sink_open, true},
    {"pam", gf_pam_sink_check, gf_pam_sink_open, true},
    {"pfm", gf_pfm_sink_check, gf_pfm_sink_open, true},
    {"jpg", gf_jpg_sink_check, gf_jpg_sink_open, false},
    {"jpeg", gf_jpg_sink_check, gf_jpg_sink_open, false},
    {"bmp", gf_bmp_sink_check, gf_bmp_sink_open, false},
    {"tga", gf_tga_sink_check, gf_tga_sink_open, false},
    {"hdr", gf_hdr_sink_check, gf_hdr_sink_open, false},
    {"raw", gf_raw_sink_check, gf_raw_sink_open, true},
};

const char *const *gf_output_formats(void) {
    static const char *const names[] = {"png",  "pgm", "ppm", "pnm", "pam", "pfm", "jpg",
                                        "jpeg", "bmp", "tga", "hdr", "raw", NULL};

    _Static_assert(sizeof names / sizeof *names == sizeof sink_kinds / sizeof *sink_kinds + 1,
                   "one name a kind");
    return names;
}

static const struct sink_kind *find_kind(const char *text) {
    for (size_t i = 0; i < sizeof sink_kinds / sizeof *sink_kinds; i++)
        if (strcasecmp(text, sink_kinds[i].name) == 0)
            return &sink_kinds[i];
    return NULL;
}

/* The format that an ending stands for, where nothing writes it; NULL for none that is known. */
static const char *unwritten(const char *ending) {
    static const char *const known[][2] = {
        {"tif", "TIFF"},      {"tiff", "TIFF"},   {"gif", "GIF"},   {"psd", "PSD"},
        {"webp", "WebP"},     {"avif", "AVIF"},   {"heic", "HEIC"}, {"jxl", "JPEG XL"},
        {"jp2", "JPEG 2000"}, {"exr", "OpenEXR"}, {"pbm", "PBM"},   {"svg", "SVG"},
        {"pdf", "PDF"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(ending, known[i][0]) == 0)
            return known[i][1];
    return NULL;
}

static gf_status choose_kind(const char *path, const char *format, const struct sink_kind **kind,
                             gf_error *error) {
    if (format != NULL) {
        *kind = find_kind(format);
        if (*kind == NULL) {
            return gf_fail(error, GF_USAGE,
                           "--format: '%s' is not written; use png, pgm, ppm, pnm, pam, pfm, jpg, "
                           "jpeg, bmp, tga, hdr or raw",
                           format);
        }
        return GF_OK;
    }
    struct stat info;
    *kind = find_kind(strcmp(path, "-") == 0 ? "png" : gf_path_ending(path));
    if (*kind == NULL && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return gf_fail(error, GF_FAILED, "%s: is a folder; name a file in it", path);
    const char *known = unwritten(gf_path_ending(path));
    if (*kind == NULL && known != NULL) {
        return gf_fail(error, GF_USAGE,
                       "%s: cannot write %s; use an ending such as .png, .pam or .pfm, or --format",
                       path, known);
    }
    if (*kind == NULL) {
        return gf_fail(error, GF_USAGE,
                       "%s: cannot tell the format from this name; use a known ending such as "
                       ".png, or --format",
                       path);
    }
    return GF_OK;
}

bool gf_sink_sharable(const char *path, const gf_file_options *options) {
    const struct sink_kind *kind;

    return gf_output_sharable(path) && choose_kind(path, options->format, &kind, NULL) == GF_OK &&
           kind->by_rows;
}

gf_status gf_sink_open(const char *path, const gf_format *format, const gf_metadata *metadata,
                       const gf_file_options *options, uint32_t threads, gf_sink **sink,
                       gf_error *error) {
    static const gf_file_options no_options;
    const char *name = strcmp(path, "-") == 0 ? "standard output" : path;
    const struct sink_kind *kind;
    gf_metadata none;
    gf_output *output;
    gf_status status;

    *sink = NULL;
    if (options == NULL)
        options = &no_options;
    if ((status = choose_kind(path, options->format, &kind, error)) != GF_OK ||
        (status = gf_format_check(format, name, error)) != GF_OK ||
        (status = kind->check(format, name, error)) != GF_OK ||
        (status = gf_output_open_shared(path, options->force, options->ranks, &output, error)) !=
            GF_OK) {
        return status;
    }
    if ((status = gf_output_set_sync(output, options->sync, error)) != GF_OK) {
        gf_output_close(output);
        return status;
    }
    gf_metadata_init(&none);
    const gf_limits limits = gf_limits_resolve(&(gf_limits){.max_memory = options->max_memory});
    const gf_sink_setup setup = {
        .output = output,
        .format = format,
        .metadata = metadata != NULL ? metadata : &none,
        .compression = options->compression,
        .max_memory = limits.max_memory,
        .threads = threads != 0 ? threads : 1,
        .first = gf_alone(options->ranks)
                     ? 0
                     : gf_share(format->height, options->ranks->rank, options->ranks->count),
        .header = gf_is_first(options->ranks),
    };
    status = kind->open(&setup, sink, error);
    if (status != GF_OK) {
        gf_output_close(output);
        return status;
    }
    (*sink)->output = output;
    return GF_OK;
}
