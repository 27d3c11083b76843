/* The options shared by filters: their table, which filters accept them, and decoding. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ranks.h"

/* The feature that an option configures. A filter accepts an option if it has the feature. An
 * option of a feature that another option enables is rejected without that other option. */
typedef enum gf_feature {
    FEATURE_ANY = 1,
    FEATURE_IMAGE = 2,       /* an output image: the result, or an image drawn in addition */
    FEATURE_SAMPLES = 4,     /* a file of extracted samples */
    FEATURE_MEASURES = 8,    /* a result that is not an image */
    FEATURE_CHART = 16,      /* a result that can be plotted */
    FEATURE_PLOT = 32,       /* the plot itself */
    FEATURE_MANY = 64,       /* several inputs */
    FEATURE_LIST = 128,      /* a list of input names */
    FEATURE_DIRECTORY = 256, /* the output directory */
    FEATURE_NAMES = 512,     /* the names of the files in the output directory */
    FEATURE_MAKES = 2048,    /* an output image that is the result */
    FEATURE_OUTPUT = FEATURE_IMAGE | FEATURE_SAMPLES | FEATURE_CHART, /* any output file */
    FEATURE_BRIEF = 1024, /* not a feature: one of the most used options, which -h lists */
    FEATURE_WRITE = 4096  /* not a feature: a parameter of gf_write_params */
} gf_feature;

static const char *const sample_formats[] = {"csv", "npy", "json", NULL};
static const char *const sample_types[] = {"input", "u16", "f32", NULL};
static const char *const nodata_names[] = {"file", "none", NULL};
static const char *const premultiplies[] = {"auto", "on", "off", NULL}; /* by gf_premultiply */
/* In the order of gf_alpha. */
static const char *const alphas[] = {"file", "last", "none", NULL};
/* In the order of gf_sync. */
static const char *const syncs[] = {"auto", "always", "never", NULL};
static const char *const plot_formats[] = {"png", "svg", NULL};
static const char *const progress_modes[] = {"auto", "lines", "json", "none", NULL};
/* In the order of GF_COLOUR_AUTO. */
static const char *const colours[] = {"auto", "always", "never", NULL};

/* An option: its features, its member of gf_cli_options, and the arguments of an initialiser. */
#define OPTION(features, field, ...)                                                               \
    { FEATURE_##features, (gf_name_list)0, offsetof(gf_cli_options, field), __VA_ARGS__ }
#define FLAG(features, field, ...) OPTION(features, field, GF_FLAG_PARAM(__VA_ARGS__))
#define TEXT(features, field, ...) OPTION(features, field, GF_TEXT_PARAM(TEXT, __VA_ARGS__, NULL))
#define CHOICE(features, field, ...) OPTION(features, field, GF_CHOICE_PARAM(CHOICE, __VA_ARGS__))
#define NAMED(features, field, list, ...)                                                          \
    {                                                                                              \
        FEATURE_##features, list, offsetof(gf_cli_options, field),                                 \
            GF_CHOICE_PARAM(CHOICE, __VA_ARGS__, NULL)                                             \
    }
#define WRITE(text)                                                                                \
    {                                                                                              \
        FEATURE_IMAGE | FEATURE_WRITE, (gf_name_list)0, 0, {                                       \
            .name = (text)                                                                         \
        }                                                                                          \
    }
#define INT(features, field, ...) OPTION(features, field, GF_NUMBER_PARAM(INT, __VA_ARGS__))
#define SIZE(features, field, ...) OPTION(features, field, GF_NUMBER_PARAM(SIZE, __VA_ARGS__))

/* A row without an option is the help heading of the rows below it. -h prints the help of an option
 * up to its first "; ". */
static const struct gf_common {
    gf_feature features;
    gf_name_list names; /* of a choice without choices: those of the library */
    size_t field; /* in gf_cli_options: a bool, uint32_t for INT, uint64_t for SIZE, or text */
    gf_param param;
} table[] = {
    {.param = {.group = "Input and output"}},
    TEXT(ANY, raw_text, "raw", 0, "SHAPE",
         "read headerless inputs; SHAPE: WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET]; TYPE: u8, u16le, "
         "u16be, f32le or f32be; OFFSET: bytes before the first row"),
    FLAG(ANY, files.autorotate, "autorotate", 0,
         "turn each input as its EXIF orientation says; the orientation of the output is 1"),
    TEXT(ANY, crop_text, "crop", 0, "X,Y,W,H",
         "read only a rectangle of each input, as if it were the image; X, Y: its first column and "
         "row, from 0; W, H: its size"),
    TEXT(
        ANY, page, "page", 0, "N",
        "page of TIFF, NPY, PNM, MPO and GIF inputs, from 1; all: filter each page, to a TIFF, or measure each "
        "page and all together; without it, the first page is read"),
    CHOICE(ANY, alpha, "alpha", 0, "CHANNEL",
           "alpha channel of the inputs; file: as they declare, none in NPY and raw files; last: "
           "the last of 2 or 4 channels; none: all channels are data",
           "file", alphas),
    CHOICE(ANY, nodata, "nodata", 0, "HOW",
           "samples with the nodata value of a GDAL TIFF; file: hist, axis-sum and dot leave them "
           "out; none: they are measured as others",
           "file", nodata_names),
    CHOICE(ANY, as, "as", 0, "TYPE",
           "read samples as u16 or f32 and keep their values; for int16, float64 and other types",
           "input", sample_types),
    TEXT(ANY, files.channels, "channels", 0, "LIST",
         "read 1 to 4 channels of each input, such as 1,2,3; they are data, not alpha"),
    FLAG(ANY, files.strict, "strict", 0,
         "fail for damaged pixels that can be read, such as repaired rows of a fax"),
    WRITE("format"),
    WRITE("compression"),
    WRITE("quality"),
    WRITE("tiff-compression"),
    WRITE("strip"),
    WRITE("depth"),
    FLAG(MAKES, files.linear, "linear", 0,
         "filter sRGB images in linear light; f32 images are linear already"),
    CHOICE(
        MAKES, premultiply, "premultiply", 0, "HOW",
        "weigh colours by alpha, which is filtered, too; off: filters copy alpha, and colours of "
        "transparent pixels spread; auto: on for resize, off for other filters",
        "auto", premultiplies),
    FLAG(OUTPUT | FEATURE_BRIEF, files.force, "force", 'f',
         "overwrite existing outputs; write images to a terminal"),
    FLAG(OUTPUT, files.dry_run, "dry-run", 0,
         "list the outputs without writing them; report errors that would prevent writing them"),
    CHOICE(OUTPUT, sync, "sync", 0, "WHEN",
           "fsync outputs before renaming them; auto: only those that replace a file", "auto",
           syncs),
    {.param = {.group = "Plots and samples"}},
    TEXT(CHART, plot, "plot", 0, "FILE", "plot the result to a .png or .svg file"),
    CHOICE(PLOT, plot_format, "plot-format", 0, "FORMAT",
           "format of the plot; without it, the extension selects the format", NULL, plot_formats),
    FLAG(PLOT, log, "log-scale", 0,
         "logarithmic y axis of the plot; values of zero and below are omitted"),
    CHOICE(SAMPLES, files.sample_format, "sample-format", 0, "FORMAT",
           "format of extracted samples; without it, the extension selects the format", NULL,
           sample_formats),
    {.param = {.group = "Multiple files"}},
    TEXT(
        DIRECTORY | FEATURE_BRIEF, out_dir, "out-dir", 'O', "DIR",
        "write the outputs to this directory; all operands are inputs; the directory is created if "
        "needed"),
    OPTION(NAMES, name,
           GF_TEXT_PARAM(TEXT, "name", 0, "TEMPLATE",
                         "template of output names; replaces {stem}, {ext}, {name}, {index} and "
                         "{index:DIGITS}",
                         "{stem}{ext}")),
    TEXT(MANY, files_from, "files-from", 0, "FILE",
         "read input names from a file, one per line; -: standard input"),
    FLAG(LIST, null, "null", '0', "--files-from: names are NUL-terminated"),
    FLAG(MANY, recursive, "recursive", 'R',
         "process directories and subdirectories; inputs are files with an image extension; with "
         "--raw, .raw files"),
    TEXT(MANY, shard, "shard", 0, "K/N",
         "process only part K of N; the part consists of inputs K, K+N, K+2N, ..."),
    FLAG(NAMES, resume, "resume", 0, "skip outputs that are newer than their input"),
    FLAG(MANY, keep_going, "keep-going", 0,
         "continue with the other inputs after a failure; this is the default"),
    FLAG(MANY, fail_fast, "fail-fast", 0, "start no more inputs after a failure"),
    {.param = {.group = "Backend and threads"}},
    NAMED(ANY | FEATURE_BRIEF, engine.backend, GF_NAMES_BACKEND, "backend", 'b', "NAME",
          "backend; auto: the backend with the lowest estimated run time", "auto"),
    TEXT(ANY, engine.devices, "device", 'd', "LIST",
         "CUDA devices: 0 or 0,2 or all; a filter then runs on the cuda backend"),
    INT(ANY | FEATURE_BRIEF, threads, "threads", 'j', "N",
        "CPU threads, 0: one per core; in a batch, images processed at once", "0", 0, 1024),
    NAMED(ANY, engine.simd, GF_NAMES_SIMD, "simd", 0, "LEVEL", "SIMD level of the cpu backend",
          "auto"),
    INT(ANY, rows_per_strip, "rows-per-strip", 0, "N",
        "rows per strip; 0: automatic, for golden the whole image", "0", 0, 2147483647),
    FLAG(ANY, engine.verify, "verify", 0,
         "recompute with golden and fail if any bit differs; also read output images back before "
         "renaming them"),
    {.param = {.group = "Limits"}},
    SIZE(ANY, files.max_memory, "max-memory", 0, "SIZE",
         "memory limit per image: strips, results, samples, buffered images; unless set, at "
         "most half of a container's limit",
         "4G", 1, 1e18),
    SIZE(ANY, files.max_pixels, "max-pixels", 0, "N", "pixel limit per image", "32G", 1, 1e18),
    SIZE(ANY, files.max_chunk, "max-chunk", 0, "SIZE", "size limit per metadata chunk of an input",
         "16M", 1024, 2147483647),
    INT(ANY, files.max_seconds, "max-seconds", 0, "N",
        "CPU time limit in seconds; for decoding TIFF, progressive JPEG, BMP, TGA, PSD, GIF or HDR",
        "60", 1, 1000000),
    FLAG(ANY, files.no_sandbox, "no-sandbox", 0,
         "decode without a sandbox; for trusted files only: BMP, TGA, PSD, GIF, HDR, rare TIFFs"),
    {.param = {.group = "Progress and reports"}},
    FLAG(ANY | FEATURE_BRIEF, json, "json", 0, "print reports as JSON; one line per image"),
    FLAG(MEASURES | FEATURE_BRIEF, csv, "csv", 0, "print results as CSV"),
    FLAG(ANY, quiet, "quiet", 'q', "print errors only"),
    FLAG(ANY | FEATURE_BRIEF, verbose, "verbose", 'v',
         "print parameters, backend and time per stage"),
    CHOICE(ANY, progress, "progress", 0, "HOW",
           "show progress on standard error; auto: a bar on a terminal; lines: a line every 10 "
           "seconds; json: a JSON object every second",
           "auto", progress_modes),
    FLAG(ANY, no_progress, "no-progress", 0, "same as --progress none"),
    CHOICE(ANY, color, "color", 0, "WHEN",
           "colour the text output; auto: on a terminal, unless NO_COLOR is set", "auto", colours),
    FLAG(ANY, help, "help", 'h', "print help; -h: the most used options; --help: all options"),
    FLAG(ANY, version, "version", 'V', "print the version"),
};

_Static_assert(sizeof table / sizeof table[0] <= GF_CLI_MAX_COMMON, "arrays of callers");

/* Return the first of the filter's own parameters of a type, or NULL. */
static const gf_param *own_param(const gf_filter_info *info, gf_param_type type) {
    for (size_t i = 0; i < info->param_count; i++)
        if (info->params[i].type == type)
            return &info->params[i];
    return NULL;
}

/* Return the features of a filter: bits of gf_feature. */
static unsigned options_features(const gf_filter_info *info) {
    unsigned features = FEATURE_ANY;
    if (info->makes_image || own_param(info, GF_PARAM_IMAGE))
        features |= FEATURE_IMAGE;
    if (own_param(info, GF_PARAM_SAMPLES))
        features |= FEATURE_SAMPLES;
    features |= info->makes_image ? FEATURE_MAKES : FEATURE_MEASURES;
    if (info->has_chart)
        features |= FEATURE_CHART | FEATURE_PLOT;
    if (info->inputs == 1 && !info->is_test)
        features |= FEATURE_MANY | FEATURE_LIST;
    if (info->inputs == 1 && info->makes_image)
        features |= FEATURE_DIRECTORY | FEATURE_NAMES;
    if (gf_cli_has_steps(info)) /* any of their outputs */
        features |= FEATURE_IMAGE | FEATURE_SAMPLES | FEATURE_DIRECTORY | FEATURE_NAMES;
    return features;
}

bool gf_cli_has_steps(const gf_filter_info *info) {
    return strcmp(info->name, "run") == 0;
}

size_t gf_cli_common(const gf_filter_info *info, gf_param params[GF_CLI_MAX_COMMON]) {
    gf_param write[GF_WRITE_PARAMS];
    size_t count = 0;
    const char *group = NULL;
    gf_write_params(write);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (!table[i].param.name)
            group = table[i].param.group;
        if (!table[i].param.name || (info && !(options_features(info) & table[i].features)))
            continue;
        gf_param *param = &params[count++];
        *param = table[i].param;
        for (size_t j = 0; table[i].features & FEATURE_WRITE && j < GF_WRITE_PARAMS; j++)
            if (strcmp(write[j].name, param->name) == 0)
                *param = write[j];
        param->group = group;
        if (param->type == GF_PARAM_CHOICE && !param->choices)
            param->choices = gf_names(table[i].names);
    }
    return count;
}

/* Return the option that enables a feature, or NULL if the filter has the feature in any case. */
static const char *needed_option(const gf_filter_info *info, gf_feature features) {
    const gf_param *own = features == FEATURE_SAMPLES ? own_param(info, GF_PARAM_SAMPLES)
                          : features == FEATURE_IMAGE && !info->makes_image
                              ? own_param(info, GF_PARAM_IMAGE)
                              : NULL;
    if (own)
        return own->name;
    if (features == FEATURE_NAMES || (features == FEATURE_MANY && info->makes_image))
        return "out-dir";
    return features == FEATURE_LIST ? "files-from" : features == FEATURE_PLOT ? "plot" : NULL;
}

bool gf_cli_in_brief_help(const gf_param *param) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].param.name && strcmp(table[i].param.name, param->name) == 0)
            return table[i].features & FEATURE_BRIEF;
    return false;
}

gf_status gf_cli_check_common(const gf_filter_info *info, const gf_cli_line *line,
                              gf_error *error) {
    static const char *const pairs[][2] = {
        {"csv", "json"}, {"quiet", "verbose"}, {"dry-run", "json"}, {"fail-fast", "keep-going"}};
    const gf_settings *common = line->common;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *name = table[i].param.name;
        if (!name || !gf_settings_given(common, name))
            continue;
        const char *other =
            needed_option(info, table[i].features & ~(unsigned)(FEATURE_BRIEF | FEATURE_WRITE));
        if (other && !gf_settings_given(common, other) && !gf_settings_given(line->filter, other))
            return gf_set_error(error, GF_USAGE, "--%s: requires --%s", name, other);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (gf_settings_given(common, pairs[i][0]) && gf_settings_given(common, pairs[i][1]))
            return gf_set_error(error, GF_USAGE, "--%s: cannot be combined with --%s", pairs[i][0],
                                pairs[i][1]);
    return GF_OK;
}

gf_status gf_cli_decode(gf_cli_line *line, gf_error *error) {
    const gf_settings *common = line->common;
    gf_cli_options *options = &line->options;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const gf_param *param = &table[i].param;
        void *field = (char *)options + table[i].field;
        if (!param->name || table[i].features & FEATURE_WRITE)
            continue;
        if (param->type == GF_PARAM_FLAG)
            *(bool *)field = gf_settings_flag(common, param->name);
        else if (param->type == GF_PARAM_INT)
            *(uint32_t *)field = (uint32_t)gf_settings_int(common, param->name);
        else if (param->type == GF_PARAM_SIZE)
            *(uint64_t *)field = gf_settings_size(common, param->name);
        else
            *(const char **)field = gf_settings_text(common, param->name);
    }
    options->engine.threads = options->threads ? options->threads : gf_cli_ranks()->threads;
    options->engine.rows_per_strip = options->rows_per_strip;
    if (!gf_settings_given(common, "max-memory"))
        options->files.max_memory = gf_default_memory();
    options->engine.max_memory = options->files.max_memory;
    gf_write_set(common, &options->files.write);
    options->files.alpha = (gf_alpha)gf_settings_choice(common, "alpha");
    options->files.keep_nodata = gf_settings_choice(common, "nodata") == 1;
    options->files.premultiply = (gf_premultiply)gf_settings_choice(common, "premultiply");
    static const gf_depth as[] = {GF_DEPTH_INPUT, GF_DEPTH_16, GF_DEPTH_F32};
    options->files.as = as[gf_settings_choice(common, "as")];
    options->files.sync = (gf_sync)gf_settings_choice(common, "sync");
    if (options->no_progress)
        options->progress = "none";
    /* Commands define --json as an option of their own. */
    options->json = options->json || gf_settings_flag(line->filter, "json");
    gf_cli_colour_use(gf_settings_choice(common, "color"));
    options->files.raw = options->raw_text ? &options->raw : NULL;
    options->files.crop = options->crop_text ? &options->crop : NULL;
    gf_status status = GF_OK;
    if (options->raw_text)
        status = gf_raw_parse(options->raw_text, &options->raw, error);
    if (!status && options->crop_text)
        status = gf_crop_parse(options->crop_text, &options->crop, error);
    const char *page = options->page;
    const bool all = page && strcmp(page, "all") == 0;
    const bool digits = page && !page[strspn(page, "0123456789")]; /* strtoul also accepts signs */
    const unsigned long number = digits ? strtoul(page, NULL, 10) : 0;
    options->files.page = all ? GF_ALL_PAGES : (uint32_t)number;
    if (!status && page && !all && (number < 1 || number > GF_MAX_PAGE))
        status =
            gf_set_error(error, GF_USAGE, "--page '%s': must be an integer from 1 to %u, or all",
                         page, (unsigned)GF_MAX_PAGE);
    return status;
}
