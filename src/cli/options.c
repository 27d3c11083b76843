/* The options that filters share: their table, which filter takes which, and their values. */
#include <string.h>

#include "cli.h"
#include "progress.h"
#include "ranks.h"

/* What an option is about. It is offered to filters that have that, and refused where that was not
 * asked for. */
typedef enum gf_about {
    ABOUT_ANY,
    ABOUT_IMAGE,    /* an image that goes out: the result, or one drawn beside it */
    ABOUT_SAMPLES,  /* a file of samples */
    ABOUT_OUTPUT,   /* any file that goes out */
    ABOUT_MEASURES, /* a result that is no image */
    ABOUT_CHART,    /* a result that can be drawn */
    ABOUT_PLOT,     /* the drawing of it */
    ABOUT_MANY,     /* many inputs */
    ABOUT_LIST,     /* a list of their names */
    ABOUT_FOLDER,   /* the folder for their outputs */
    ABOUT_NAMES     /* what goes there */
} gf_about;

static const char *const sample_formats[] = {"csv", "npy", "json", NULL};
/* In the order of gf_sync. */
static const char *const syncs[] = {"auto", "always", "never", NULL};
static const char *const plot_formats[] = {"png", "svg", NULL};

/* An option of each type: its name, its letter or 0, how help calls its value, the help, the
 * default (NULL: none), and what it may be. Choices that are NULL are the library's to name:
 * gf_cli_common fills them in. */
#define FLAG(name, letter, help)                                                                   \
    { name, letter, GF_PARAM_FLAG, NULL, help, NULL, 0, 0, NULL, NULL }
#define TEXT(name, letter, metavar, help, fallback)                                                \
    { name, letter, GF_PARAM_TEXT, metavar, help, fallback, 0, 0, NULL, NULL }
#define CHOICE(name, letter, metavar, help, fallback, choices)                                     \
    { name, letter, GF_PARAM_CHOICE, metavar, help, fallback, 0, 0, choices, NULL }
#define INT(name, letter, metavar, help, fallback, min, max)                                       \
    { name, letter, GF_PARAM_INT, metavar, help, fallback, min, max, NULL, NULL }
#define SIZE(name, letter, metavar, help, fallback, min, max)                                      \
    { name, letter, GF_PARAM_SIZE, metavar, help, fallback, min, max, NULL, NULL }

static const struct gf_common {
    gf_about about;
    const char *group; /* the heading in help that begins here; NULL: that of the row before */
    gf_param param;
} table[] = {
    {ABOUT_IMAGE, "Outputs",
     CHOICE("format", 0, "FORMAT", "format of the image written, instead of what its name says",
            NULL, NULL)},
    {ABOUT_IMAGE, NULL,
     CHOICE("compression", 'c', "EFFORT",
            "PNG: how much time to spend on a small file; numbers are zlib's levels", "fast",
            NULL)},
    {ABOUT_IMAGE, NULL, FLAG("strip", 0, "leave the input's metadata out of the output")},
    {ABOUT_OUTPUT, NULL,
     FLAG("force", 'f', "replace an existing output; allow an image to a terminal")},
    {ABOUT_OUTPUT, NULL,
     FLAG("dry-run", 0, "write nothing: list the outputs, or say what is in their way")},
    {ABOUT_OUTPUT, NULL,
     CHOICE("sync", 0, "WHEN",
            "outputs that are on the disk, safe from a power failure, before they appear: those "
            "that replace a file (auto), all, or none",
            "auto", syncs)},
    {ABOUT_CHART, "Plots and samples",
     TEXT("plot", 0, "FILE", "draw what was measured into a .png or .svg file", NULL)},
    {ABOUT_PLOT, NULL,
     CHOICE("plot-format", 0, "FORMAT", "format of the plot, instead of what its name says", NULL,
            plot_formats)},
    {ABOUT_PLOT, NULL,
     FLAG("log", 0, "--plot: logarithmic y axis; what is not above zero is left out")},
    {ABOUT_SAMPLES, NULL,
     CHOICE("sample-format", 0, "FORMAT",
            "format of extracted samples, instead of what their file's name says", NULL,
            sample_formats)},
    {ABOUT_FOLDER, "Many files",
     TEXT("out-dir", 'O', "DIR",
          "all operands are inputs, and their outputs go into this folder; it is made if it is "
          "not there",
          NULL)},
    {ABOUT_NAMES, NULL,
     TEXT("name", 0, "TEMPLATE",
          "what outputs are called there, with {stem}, {ext}, {name}, {index} or "
          "{index:DIGITS}",
          "{stem}{ext}")},
    {ABOUT_MANY, NULL,
     TEXT("files-from", 0, "FILE",
          "read more inputs' names from a file, or - for standard input, one a line", NULL)},
    {ABOUT_LIST, NULL,
     FLAG("null", '0', "--files-from: names end with a NUL byte, not with a line")},
    {ABOUT_MANY, NULL,
     FLAG("recursive", 'R',
          "take the images in folders that are named, and in those below them; with --raw the "
          ".raw files there")},
    {ABOUT_MANY, NULL,
     TEXT("shard", 0, "K/N", "take the K-th of N parts of the inputs: numbers K, K+N, K+2N, ...",
          NULL)},
    {ABOUT_NAMES, NULL,
     FLAG("resume", 0, "skip outputs that exist and are newer than their input")},
    {ABOUT_MANY, NULL,
     FLAG("keep-going", 0, "go on with the others when an input fails, as is done anyway")},
    {ABOUT_MANY, NULL, FLAG("fail-fast", 0, "begin no others once an input has failed")},
    {ABOUT_ANY, "Who computes",
     CHOICE("backend", 'b', "NAME",
            "who computes: the one expected to finish first, or a named one", "auto", NULL)},
    {ABOUT_ANY, NULL,
     TEXT("device", 'd', "LIST",
          "CUDA devices that share the work, and so the cuda backend: 0, 0,2 or all", NULL)},
    {ABOUT_ANY, NULL,
     INT("threads", 'j', "N",
         "CPU threads that compute; of many inputs as many are under way; 0: one a core", "0", 0,
         1024)},
    {ABOUT_ANY, NULL,
     CHOICE("simd", 0, "LEVEL", "vector instructions of the cpu backend", "auto", NULL)},
    {ABOUT_ANY, NULL,
     INT("band-rows", 0, "N",
         "rows that travel together; 0: chosen from their size (golden takes all)", "0", 0,
         2147483647)},
    {ABOUT_ANY, NULL,
     FLAG("verify", 0,
          "let golden compute all of it, too, and fail if a bit differs; an image is also read "
          "back before it has its name")},
    {ABOUT_ANY, "Inputs",
     TEXT("raw", 0, "SHAPE",
          "inputs are rows without a header, of the shape WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET]"
          "; TYPE is u8, u16le, u16be, f32le or f32be, OFFSET the bytes before the rows",
          NULL)},
    {ABOUT_ANY, NULL,
     SIZE("max-memory", 0, "SIZE",
          "most memory that one image may take: its bands, its result, samples and images "
          "that are held",
          "4G", 1, 1e18)},
    {ABOUT_ANY, NULL, SIZE("max-pixels", 0, "N", "most pixels an input may have", "8G", 1, 1e18)},
    {ABOUT_ANY, NULL,
     SIZE("max-chunk", 0, "SIZE", "most bytes of one metadata chunk of an input", "16M", 1024,
          2147483647)},
    {ABOUT_ANY, NULL,
     INT("max-seconds", 0, "N",
         "most CPU time that decoding a JPEG, BMP, TGA, PSD, GIF or HDR may take", "60", 1,
         1000000)},
    {ABOUT_ANY, NULL,
     FLAG("no-sandbox", 0,
          "decode those in this process, not in one that can do no harm: for files that you "
          "trust")},
    {ABOUT_ANY, "Messages",
     FLAG("json", 0, "print one line of JSON: what was done, and what was measured")},
    {ABOUT_MEASURES, NULL, FLAG("csv", 0, "print what was measured as a CSV table")},
    {ABOUT_ANY, NULL, FLAG("quiet", 'q', "print nothing for people but errors")},
    {ABOUT_ANY, NULL,
     FLAG("verbose", 'v', "say what was done, by which backend, and where the time went")},
    {ABOUT_ANY, NULL,
     CHOICE("progress", 0, "HOW",
            "how far it has come, on standard error: a bar on a terminal (auto), a line now and "
            "then, a JSON object each second (docs/results.md), or nothing",
            "auto", gf_cli_progress_ways)},
    {ABOUT_ANY, NULL, FLAG("no-progress", 0, "as --progress none")},
    {ABOUT_ANY, NULL,
     CHOICE("color", 0, "WHEN",
            "colours: on a terminal, unless NO_COLOR is set (auto), or always, or never", "auto",
            gf_cli_colours)},
    {ABOUT_ANY, NULL, FLAG("help", 'h', "print this help")},
    {ABOUT_ANY, NULL, FLAG("version", 'V', "print the version")},
};

_Static_assert(sizeof table / sizeof table[0] <= GF_CLI_MAX_COMMON, "the callers' arrays");

/* The filter's own parameter of a type; NULL if it has none. */
static const gf_param *own_param(const gf_filter_info *info, gf_param_type type) {
    for (size_t i = 0; i < info->param_count; i++)
        if (info->params[i].type == type)
            return &info->params[i];
    return NULL;
}

static bool is_offered(const gf_filter_info *info, gf_about about) {
    const bool image = info->makes_image || own_param(info, GF_PARAM_IMAGE);
    const bool samples = own_param(info, GF_PARAM_SAMPLES);
    switch (about) {
    case ABOUT_IMAGE:
        return image;
    case ABOUT_SAMPLES:
        return samples;
    case ABOUT_OUTPUT:
        return image || samples || info->has_chart;
    case ABOUT_MEASURES:
        return !info->makes_image;
    case ABOUT_CHART:
    case ABOUT_PLOT:
        return info->has_chart;
    case ABOUT_MANY:
    case ABOUT_LIST:
        return info->inputs == 1 && !info->is_test;
    case ABOUT_FOLDER:
    case ABOUT_NAMES:
        return info->inputs == 1 && info->makes_image;
    case ABOUT_ANY:
        break;
    }
    return true;
}

size_t gf_cli_common(const gf_filter_info *info, gf_param params[GF_CLI_MAX_COMMON]) {
    size_t count = 0;
    const char *group = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        group = table[i].group ? table[i].group : group;
        if (info && !is_offered(info, table[i].about))
            continue;
        gf_param *param = &params[count++];
        *param = table[i].param;
        param->group = group;
        if (strcmp(param->name, "backend") == 0)
            param->choices = gf_backend_names();
        else if (strcmp(param->name, "simd") == 0)
            param->choices = gf_simd_names();
        else if (strcmp(param->name, "format") == 0)
            param->choices = gf_output_formats();
        else if (strcmp(param->name, "compression") == 0)
            param->choices = gf_compressions();
    }
    return count;
}

/* The option that asks for what an option is about; NULL where it is there in any case. */
static const char *needed_option(const gf_filter_info *info, gf_about about) {
    if (about == ABOUT_IMAGE && !info->makes_image)
        return own_param(info, GF_PARAM_IMAGE)->name;
    if (about == ABOUT_SAMPLES)
        return own_param(info, GF_PARAM_SAMPLES)->name;
    if (about == ABOUT_NAMES || (about == ABOUT_MANY && info->makes_image))
        return "out-dir";
    return about == ABOUT_LIST ? "files-from" : about == ABOUT_PLOT ? "plot" : NULL;
}

gf_status gf_cli_check_common(const gf_filter_info *info, const gf_cli_line *line,
                              gf_error *error) {
    static const char *const pairs[][2] = {
        {"csv", "json"}, {"quiet", "verbose"}, {"dry-run", "json"}, {"fail-fast", "keep-going"}};
    const gf_settings *common = line->common;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *name = table[i].param.name;
        if (!gf_settings_given(common, name))
            continue;
        const char *other = needed_option(info, table[i].about);
        if (other && !gf_settings_given(common, other) && !gf_settings_given(line->filter, other))
            return gf_set_error(error, GF_USAGE, "--%s: is for --%s", name, other);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (gf_settings_given(common, pairs[i][0]) && gf_settings_given(common, pairs[i][1]))
            return gf_set_error(error, GF_USAGE, "--%s: not together with --%s", pairs[i][0],
                                pairs[i][1]);
    return GF_OK;
}

gf_status gf_cli_decode(gf_cli_line *line, gf_error *error) {
    const gf_settings *common = line->common;
    const gf_cli_peers *peers = gf_cli_ranks();
    const uint32_t threads = (uint32_t)gf_settings_int(common, "threads");
    const uint64_t max_memory = gf_settings_size(common, "max-memory");
    const bool quiet_progress = gf_settings_flag(common, "no-progress");
    gf_cli_options *options = &line->options;
    *options = (gf_cli_options){
        .engine = {.backend = gf_settings_text(common, "backend"),
                   .devices = gf_settings_text(common, "device"),
                   .simd = gf_settings_text(common, "simd"),
                   .threads = threads || !peers ? threads : peers->threads,
                   .band_rows = (uint64_t)gf_settings_int(common, "band-rows"),
                   .verify = gf_settings_flag(common, "verify"),
                   .max_memory = max_memory},
        .files = {.format = gf_settings_text(common, "format"),
                  .sample_format = gf_settings_text(common, "sample-format"),
                  .force = gf_settings_flag(common, "force"),
                  .sync = (gf_sync)gf_settings_choice(common, "sync"),
                  .dry_run = gf_settings_flag(common, "dry-run"),
                  .strip = gf_settings_flag(common, "strip"),
                  .compression = gf_settings_text(common, "compression"),
                  .max_pixels = gf_settings_size(common, "max-pixels"),
                  .max_memory = max_memory,
                  .max_chunk = gf_settings_size(common, "max-chunk"),
                  .max_seconds = (uint32_t)gf_settings_int(common, "max-seconds"),
                  .no_sandbox = gf_settings_flag(common, "no-sandbox")},
        .raw_text = gf_settings_text(common, "raw"),
        .threads = threads,
        .out_dir = gf_settings_text(common, "out-dir"),
        .name = gf_settings_text(common, "name"),
        .files_from = gf_settings_text(common, "files-from"),
        .shard = gf_settings_text(common, "shard"),
        .plot = gf_settings_text(common, "plot"),
        .plot_format = gf_settings_text(common, "plot-format"),
        .progress = quiet_progress ? "none" : gf_settings_text(common, "progress"),
        .null = gf_settings_flag(common, "null"),
        .recursive = gf_settings_flag(common, "recursive"),
        .resume = gf_settings_flag(common, "resume"),
        .fail_fast = gf_settings_flag(common, "fail-fast"),
        .log = gf_settings_flag(common, "log"),
        /* The commands have one of their own. */
        .json = gf_settings_flag(common, "json") || gf_settings_flag(line->filter, "json"),
        .csv = gf_settings_flag(common, "csv"),
        .quiet = gf_settings_flag(common, "quiet"),
        .verbose = gf_settings_flag(common, "verbose"),
        .help = gf_settings_flag(common, "help"),
        .version = gf_settings_flag(common, "version")};
    gf_cli_colour_use(gf_settings_choice(common, "color"));
    if (!options->raw_text)
        return GF_OK;
    options->files.raw = &options->raw;
    return gf_raw_parse(options->raw_text, &options->raw, error);
}
