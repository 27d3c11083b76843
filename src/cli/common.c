/* The options that filters share: a table, and which of them mean something to which filter. */
#include <string.h>

#include "cli.h"
#include "colour.h"
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

/* Choices without a list here are the library's to name: gf_cli_common fills them in. A group goes
 * on until the next one. */
static const struct gf_common {
    gf_about about;
    gf_param param;
} table[] = {
    {ABOUT_IMAGE,
     {.name = "format",
      .group = "Outputs",
      .type = GF_PARAM_CHOICE,
      .metavar = "FORMAT",
      .help = "format of the image written, instead of what its name says"}},
    {ABOUT_IMAGE,
     {.name = "compression",
      .letter = 'c',
      .type = GF_PARAM_CHOICE,
      .metavar = "EFFORT",
      .help = "PNG: how much time to spend on a small file; numbers are zlib's levels",
      .fallback = "fast"}},
    {ABOUT_IMAGE,
     {.name = "strip",
      .type = GF_PARAM_FLAG,
      .help = "leave the input's metadata out of the output"}},
    {ABOUT_OUTPUT,
     {.name = "force",
      .letter = 'f',
      .type = GF_PARAM_FLAG,
      .help = "replace an existing output; allow an image to a terminal"}},
    {ABOUT_OUTPUT,
     {.name = "dry-run",
      .type = GF_PARAM_FLAG,
      .help = "write nothing: list the outputs, or say what is in their way"}},
    {ABOUT_OUTPUT,
     {.name = "sync",
      .type = GF_PARAM_CHOICE,
      .metavar = "WHEN",
      .help = "outputs that are on the disk, safe from a power failure, before they appear: those "
              "that replace a file (auto), all, or none",
      .fallback = "auto",
      .choices = syncs}},
    {ABOUT_CHART,
     {.name = "plot",
      .group = "Plots and samples",
      .type = GF_PARAM_TEXT,
      .metavar = "FILE",
      .help = "draw what was measured into a .png or .svg file"}},
    {ABOUT_PLOT,
     {.name = "plot-format",
      .type = GF_PARAM_CHOICE,
      .metavar = "FORMAT",
      .help = "format of the plot, instead of what its name says",
      .choices = plot_formats}},
    {ABOUT_PLOT,
     {.name = "log",
      .type = GF_PARAM_FLAG,
      .help = "--plot: logarithmic y axis; what is not above zero is left out"}},
    {ABOUT_SAMPLES,
     {.name = "sample-format",
      .type = GF_PARAM_CHOICE,
      .metavar = "FORMAT",
      .help = "format of extracted samples, instead of what their file's name says",
      .choices = sample_formats}},
    {ABOUT_FOLDER,
     {.name = "out-dir",
      .group = "Many files",
      .letter = 'O',
      .type = GF_PARAM_TEXT,
      .metavar = "DIR",
      .help = "all operands are inputs, and their outputs go into this folder; it is made if it is "
              "not there"}},
    {ABOUT_NAMES,
     {.name = "name",
      .type = GF_PARAM_TEXT,
      .metavar = "TEMPLATE",
      .help = "what outputs are called there, with {stem}, {ext}, {name}, {index} or "
              "{index:DIGITS}",
      .fallback = "{stem}{ext}"}},
    {ABOUT_MANY,
     {.name = "files-from",
      .type = GF_PARAM_TEXT,
      .metavar = "FILE",
      .help = "read more inputs' names from a file, or - for standard input, one a line"}},
    {ABOUT_LIST,
     {.name = "null",
      .letter = '0',
      .type = GF_PARAM_FLAG,
      .help = "--files-from: names end with a NUL byte, not with a line"}},
    {ABOUT_MANY,
     {.name = "recursive",
      .letter = 'R',
      .type = GF_PARAM_FLAG,
      .help = "take the images in folders that are named, and in those below them; with --raw the "
              ".raw files there"}},
    {ABOUT_MANY,
     {.name = "shard",
      .type = GF_PARAM_TEXT,
      .metavar = "K/N",
      .help = "take the K-th of N parts of the inputs: numbers K, K+N, K+2N, ..."}},
    {ABOUT_NAMES,
     {.name = "resume",
      .type = GF_PARAM_FLAG,
      .help = "skip finished outputs: newer than their input, and made with the same settings"}},
    {ABOUT_MANY,
     {.name = "keep-going",
      .type = GF_PARAM_FLAG,
      .help = "go on with the others when an input fails, as is done anyway"}},
    {ABOUT_MANY,
     {.name = "fail-fast",
      .type = GF_PARAM_FLAG,
      .help = "begin no others once an input has failed"}},
    {ABOUT_ANY,
     {.name = "backend",
      .group = "Who computes",
      .letter = 'b',
      .type = GF_PARAM_CHOICE,
      .metavar = "NAME",
      .help = "who computes: the one expected to finish first, or a named one",
      .fallback = "auto"}},
    {ABOUT_ANY,
     {.name = "device",
      .letter = 'd',
      .type = GF_PARAM_TEXT,
      .metavar = "LIST",
      .help = "CUDA devices that share the work, and so the cuda backend: 0, 0,2 or all"}},
    {ABOUT_ANY,
     {.name = "threads",
      .letter = 'j',
      .type = GF_PARAM_INT,
      .metavar = "N",
      .help = "CPU threads that compute; of many inputs as many are under way; 0: one a core",
      .fallback = "0",
      .min = 0,
      .max = 1024}},
    {ABOUT_ANY,
     {.name = "simd",
      .type = GF_PARAM_CHOICE,
      .metavar = "LEVEL",
      .help = "vector instructions of the cpu backend",
      .fallback = "auto"}},
    {ABOUT_ANY,
     {.name = "band-rows",
      .type = GF_PARAM_INT,
      .metavar = "N",
      .help = "rows that travel together; 0: chosen from their size (golden takes all)",
      .fallback = "0",
      .min = 0,
      .max = 2147483647}},
    {ABOUT_ANY,
     {.name = "verify",
      .type = GF_PARAM_FLAG,
      .help = "let golden compute all of it, too, and fail if a bit differs; an image is also read "
              "back before it has its name"}},
    {ABOUT_ANY,
     {.name = "raw",
      .group = "Inputs",
      .type = GF_PARAM_TEXT,
      .metavar = "SHAPE",
      .help = "inputs are rows without a header, of the shape WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET]"
              "; TYPE is u8, u16le, u16be, f32le or f32be, OFFSET the bytes before the rows"}},
    {ABOUT_ANY,
     {.name = "max-memory",
      .type = GF_PARAM_SIZE,
      .metavar = "SIZE",
      .help = "most memory that one image may take: its bands, its result, samples and images "
              "that are held",
      .fallback = "4G",
      .min = 1,
      .max = 1e18}},
    {ABOUT_ANY,
     {.name = "max-pixels",
      .type = GF_PARAM_SIZE,
      .metavar = "N",
      .help = "most pixels an input may have",
      .fallback = "8G",
      .min = 1,
      .max = 1e18}},
    {ABOUT_ANY,
     {.name = "max-chunk",
      .type = GF_PARAM_SIZE,
      .metavar = "SIZE",
      .help = "most bytes of one metadata chunk of an input",
      .fallback = "16M",
      .min = 1024,
      .max = 2147483647}},
    {ABOUT_ANY,
     {.name = "max-seconds",
      .type = GF_PARAM_INT,
      .metavar = "N",
      .help = "most CPU time that decoding a JPEG, BMP, TGA, PSD, GIF or HDR may take",
      .fallback = "60",
      .min = 1,
      .max = 1000000}},
    {ABOUT_ANY,
     {.name = "no-sandbox",
      .type = GF_PARAM_FLAG,
      .help = "decode those in this process, not in one that can do no harm: for files that you "
              "trust"}},
    {ABOUT_ANY,
     {.name = "json",
      .group = "Messages",
      .type = GF_PARAM_FLAG,
      .help = "print one line of JSON: what was done, and what was measured"}},
    {ABOUT_MEASURES,
     {.name = "csv", .type = GF_PARAM_FLAG, .help = "print what was measured as a CSV table"}},
    {ABOUT_ANY,
     {.name = "quiet",
      .letter = 'q',
      .type = GF_PARAM_FLAG,
      .help = "print nothing for people but errors"}},
    {ABOUT_ANY,
     {.name = "verbose",
      .letter = 'v',
      .type = GF_PARAM_FLAG,
      .help = "say what was done, by which backend, and where the time went"}},
    {ABOUT_ANY,
     {.name = "progress",
      .type = GF_PARAM_CHOICE,
      .metavar = "HOW",
      .help = "how far it has come, on standard error: a bar on a terminal (auto), a line now and "
              "then, a JSON object each second (docs/results.md), or nothing",
      .fallback = "auto",
      .choices = gf_cli_progress_ways}},
    {ABOUT_ANY, {.name = "no-progress", .type = GF_PARAM_FLAG, .help = "as --progress none"}},
    {ABOUT_ANY,
     {.name = "color",
      .type = GF_PARAM_CHOICE,
      .metavar = "WHEN",
      .help = "colours: on a terminal, unless NO_COLOR is set (auto), or always, or never",
      .fallback = "auto",
      .choices = gf_cli_colours}},
    {ABOUT_ANY, {.name = "help", .letter = 'h', .type = GF_PARAM_FLAG, .help = "print this help"}},
    {ABOUT_ANY,
     {.name = "version", .letter = 'V', .type = GF_PARAM_FLAG, .help = "print the version"}},
};

_Static_assert(sizeof table / sizeof table[0] <= GF_CLI_MAX_COMMON, "the callers' arrays");

/* The filter's own parameter of a type; NULL if it has none. */
static const gf_param *own(const gf_filter_info *info, gf_param_type type) {
    for (size_t i = 0; i < info->param_count; i++)
        if (info->params[i].type == type)
            return &info->params[i];
    return NULL;
}

static bool is_offered(const gf_filter_info *info, gf_about about) {
    const bool image = info->makes_image || own(info, GF_PARAM_IMAGE);
    const bool samples = own(info, GF_PARAM_SAMPLES);
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
        group = table[i].param.group ? table[i].param.group : group;
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
static const char *needed(const gf_filter_info *info, gf_about about) {
    if (about == ABOUT_IMAGE && !info->makes_image)
        return own(info, GF_PARAM_IMAGE)->name;
    if (about == ABOUT_SAMPLES)
        return own(info, GF_PARAM_SAMPLES)->name;
    if (about == ABOUT_NAMES || (about == ABOUT_MANY && info->makes_image))
        return "out-dir";
    return about == ABOUT_LIST ? "files-from" : about == ABOUT_PLOT ? "plot" : NULL;
}

gf_engine_options gf_cli_engine_options(const gf_settings *common) {
    const gf_cli_rank *rank = gf_cli_this_rank();
    const uint32_t threads = (uint32_t)gf_settings_int(common, "threads");
    return (gf_engine_options){.backend = gf_settings_text(common, "backend"),
                               .devices = gf_settings_text(common, "device"),
                               .simd = gf_settings_text(common, "simd"),
                               .threads = threads ? threads : rank->threads,
                               .turn = rank->local,
                               .turns = rank->locals,
                               .band_rows = (uint64_t)gf_settings_int(common, "band-rows"),
                               .verify = gf_settings_flag(common, "verify"),
                               .max_memory = gf_settings_size(common, "max-memory")};
}

gf_cli_show gf_cli_show_of(const gf_settings *common, bool lines) {
    const char *way =
        gf_settings_flag(common, "no-progress") ? "none" : gf_settings_text(common, "progress");
    return gf_cli_progress_choose(way, gf_settings_flag(common, "quiet"), lines);
}

const gf_raw *gf_cli_raw(const gf_cli_line *line) {
    return gf_settings_given(line->common, "raw") ? &line->raw : NULL;
}

gf_file_options gf_cli_file_options(const gf_cli_line *line) {
    const gf_settings *common = line->common;
    return (gf_file_options){.format = gf_settings_text(common, "format"),
                             .sample_format = gf_settings_text(common, "sample-format"),
                             .force = gf_settings_flag(common, "force"),
                             .sync = (gf_sync)gf_settings_choice(common, "sync"),
                             .dry_run = gf_settings_flag(common, "dry-run"),
                             .strip = gf_settings_flag(common, "strip"),
                             .compression = gf_settings_text(common, "compression"),
                             .max_pixels = gf_settings_size(common, "max-pixels"),
                             .max_memory = gf_settings_size(common, "max-memory"),
                             .max_chunk = gf_settings_size(common, "max-chunk"),
                             .max_seconds = (uint32_t)gf_settings_int(common, "max-seconds"),
                             .no_sandbox = gf_settings_flag(common, "no-sandbox"),
                             .raw = gf_cli_raw(line)};
}

gf_status gf_cli_check_common(const gf_filter_info *info, const gf_cli_line *line,
                              gf_error *error) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *name = table[i].param.name;
        if (!gf_settings_given(line->common, name))
            continue;
        const char *other = needed(info, table[i].about);
        if (other && !gf_settings_given(line->common, other) &&
            !gf_settings_given(line->filter, other))
            return gf_set_error(error, GF_USAGE, "--%s: is for --%s", name, other);
    }
    if (gf_settings_flag(line->common, "json") && gf_settings_flag(line->common, "csv"))
        return gf_set_error(error, GF_USAGE, "--csv: not together with --json");
    if (gf_settings_flag(line->common, "quiet") && gf_settings_flag(line->common, "verbose"))
        return gf_set_error(error, GF_USAGE, "--quiet: not together with --verbose");
    if (gf_settings_flag(line->common, "json") && gf_settings_flag(line->common, "dry-run"))
        return gf_set_error(error, GF_USAGE, "--dry-run: not together with --json");
    if (gf_settings_flag(line->common, "keep-going") && gf_settings_flag(line->common, "fail-fast"))
        return gf_set_error(error, GF_USAGE, "--fail-fast: not together with --keep-going");
    return GF_OK;
}
