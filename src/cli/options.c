/* The options that filters share: their table, which filter takes which, and their values. */
#include <stddef.h>
#include <string.h>

#include "cli.h"
#include "progress.h"
#include "ranks.h"

/* What an option is about. It is offered to filters that have that, and refused where that was not
 * asked for. */
typedef enum gf_about {
    ABOUT_ANY = 1,
    ABOUT_IMAGE = 2,    /* an image that goes out: the result, or one drawn beside it */
    ABOUT_SAMPLES = 4,  /* a file of samples */
    ABOUT_MEASURES = 8, /* a result that is no image */
    ABOUT_CHART = 16,   /* a result that can be drawn */
    ABOUT_PLOT = 32,    /* the drawing of it */
    ABOUT_MANY = 64,    /* many inputs */
    ABOUT_LIST = 128,   /* a list of their names */
    ABOUT_FOLDER = 256, /* the folder for their outputs */
    ABOUT_NAMES = 512,  /* what goes there */
    ABOUT_OUTPUT = ABOUT_IMAGE | ABOUT_SAMPLES | ABOUT_CHART /* any file that goes out */
} gf_about;

static const char *const sample_formats[] = {"csv", "npy", "json", NULL};
/* In the order of gf_sync. */
static const char *const syncs[] = {"auto", "always", "never", NULL};
static const char *const plot_formats[] = {"png", "svg", NULL};

/* An option: what it is about, where its value goes, and as in cli.h. */
#define OPTION(about, field, ...)                                                                  \
    { ABOUT_##about, offsetof(gf_cli_options, field), __VA_ARGS__ }
#define FLAG(about, field, ...) OPTION(about, field, GF_CLI_FLAG(__VA_ARGS__))
#define TEXT(about, field, ...) OPTION(about, field, GF_CLI_TEXT(__VA_ARGS__))
#define CHOICE(about, field, ...) OPTION(about, field, GF_CLI_CHOICE(__VA_ARGS__))
#define INT(about, field, ...) OPTION(about, field, GF_CLI_INT(__VA_ARGS__))
#define SIZE(about, field, ...) OPTION(about, field, GF_CLI_SIZE(__VA_ARGS__))

/* A row without an option is a heading in help, for those behind it. Choices that are NULL are the
 * library's to name: gf_cli_common fills them in. */
static const struct gf_common {
    gf_about about;
    size_t field; /* of gf_cli_options: a bool, uint32_t for INT, uint64_t for SIZE, or text */
    gf_param param;
} table[] = {
    {.param = {.group = "Outputs"}},
    CHOICE(IMAGE, files.format, "format", 0, "FORMAT",
           "format of the image written, instead of what its name says", NULL, NULL),
    CHOICE(IMAGE, files.compression, "compression", 'c', "EFFORT",
           "PNG: how much time to spend on a small file", "fast", NULL),
    FLAG(IMAGE, files.strip, "strip", 0, "leave the input's metadata out of the output"),
    FLAG(OUTPUT, files.force, "force", 'f',
         "replace an existing output; allow an image to a terminal"),
    FLAG(OUTPUT, files.dry_run, "dry-run", 0,
         "write nothing: list the outputs, or say what is in their way"),
    CHOICE(OUTPUT, sync, "sync", 0, "WHEN",
           "outputs that are on the disk, safe from a power failure, before they appear: those "
           "that replace a file (auto), all, or none",
           "auto", syncs),
    {.param = {.group = "Plots and samples"}},
    TEXT(CHART, plot, "plot", 0, "FILE", "draw what was measured into a .png or .svg file", NULL),
    CHOICE(PLOT, plot_format, "plot-format", 0, "FORMAT",
           "format of the plot, instead of what its name says", NULL, plot_formats),
    FLAG(PLOT, log, "log", 0, "--plot: logarithmic y axis; what is not above zero is left out"),
    CHOICE(SAMPLES, files.sample_format, "sample-format", 0, "FORMAT",
           "format of extracted samples, instead of what their file's name says", NULL,
           sample_formats),
    {.param = {.group = "Many files"}},
    TEXT(FOLDER, out_dir, "out-dir", 'O', "DIR",
         "all operands are inputs, and their outputs go into this folder; it is made if it is "
         "not there",
         NULL),
    TEXT(NAMES, name, "name", 0, "TEMPLATE",
         "what outputs are called there, with {stem}, {ext}, {name}, {index} or {index:DIGITS}",
         "{stem}{ext}"),
    TEXT(MANY, files_from, "files-from", 0, "FILE",
         "read more inputs' names from a file, or - for standard input, one a line", NULL),
    FLAG(LIST, null, "null", '0', "--files-from: names end with a NUL byte, not with a line"),
    FLAG(MANY, recursive, "recursive", 'R',
         "take the images in folders that are named, and in those below them; with --raw the "
         ".raw files there"),
    TEXT(MANY, shard, "shard", 0, "K/N",
         "take the K-th of N parts of the inputs: numbers K, K+N, K+2N, ...", NULL),
    FLAG(NAMES, resume, "resume", 0, "skip outputs that exist and are newer than their input"),
    FLAG(MANY, keep_going, "keep-going", 0,
         "go on with the others when an input fails, as is done anyway"),
    FLAG(MANY, fail_fast, "fail-fast", 0, "begin no others once an input has failed"),
    {.param = {.group = "Who computes"}},
    CHOICE(ANY, engine.backend, "backend", 'b', "NAME",
           "who computes: the one expected to finish first, or a named one", "auto", NULL),
    TEXT(ANY, engine.devices, "device", 'd', "LIST",
         "CUDA devices that share the work, and so the cuda backend: 0, 0,2 or all", NULL),
    INT(ANY, threads, "threads", 'j', "N",
        "CPU threads that compute; of many inputs as many are under way; 0: one a core", "0", 0,
        1024),
    CHOICE(ANY, engine.simd, "simd", 0, "LEVEL", "vector instructions of the cpu backend", "auto",
           NULL),
    INT(ANY, rows_per_strip, "rows-per-strip", 0, "N",
        "rows that travel together; 0: chosen from their size (golden takes all)", "0", 0,
        2147483647),
    FLAG(ANY, engine.verify, "verify", 0,
         "let golden compute all of it, too, and fail if a bit differs; an image is also read "
         "back before it has its name"),
    {.param = {.group = "Inputs"}},
    TEXT(ANY, raw_text, "raw", 0, "SHAPE",
         "inputs are rows without a header, of the shape WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET]; "
         "TYPE is u8, u16le, u16be, f32le or f32be, OFFSET the bytes before the rows",
         NULL),
    SIZE(ANY, files.max_memory, "max-memory", 0, "SIZE",
         "most memory that one image may take: its strips, its result, samples and images that "
         "are held",
         "4G", 1, 1e18),
    SIZE(ANY, files.max_pixels, "max-pixels", 0, "N", "most pixels an input may have", "8G", 1,
         1e18),
    SIZE(ANY, files.max_chunk, "max-chunk", 0, "SIZE",
         "most bytes of one metadata chunk of an input", "16M", 1024, 2147483647),
    INT(ANY, files.max_seconds, "max-seconds", 0, "N",
        "most CPU time that decoding a JPEG, BMP, TGA, PSD, GIF or HDR may take", "60", 1, 1000000),
    FLAG(ANY, files.no_sandbox, "no-sandbox", 0,
         "decode those in this process, not in one that can do no harm: for files that you trust"),
    {.param = {.group = "Messages"}},
    FLAG(ANY, json, "json", 0, "print one line of JSON: what was done, and what was measured"),
    FLAG(MEASURES, csv, "csv", 0, "print what was measured as a CSV table"),
    FLAG(ANY, quiet, "quiet", 'q', "print nothing for people but errors"),
    FLAG(ANY, verbose, "verbose", 'v',
         "say what was done, by which backend, and where the time went"),
    CHOICE(ANY, progress, "progress", 0, "HOW",
           "how far it has come, on standard error: a bar on a terminal (auto), a line now and "
           "then, a JSON object each second (docs/results.md), or nothing",
           "auto", gf_cli_progress_modes),
    FLAG(ANY, no_progress, "no-progress", 0, "as --progress none"),
    CHOICE(ANY, color, "color", 0, "WHEN",
           "colours: on a terminal, unless NO_COLOR is set (auto), or always, or never", "auto",
           gf_cli_colours),
    FLAG(ANY, help, "help", 'h', "print this help"),
    FLAG(ANY, version, "version", 'V', "print the version"),
};

_Static_assert(sizeof table / sizeof table[0] <= GF_CLI_MAX_COMMON, "the callers' arrays");

/* The filter's own parameter of a type; NULL if it has none. */
static const gf_param *own_param(const gf_filter_info *info, gf_param_type type) {
    for (size_t i = 0; i < info->param_count; i++)
        if (info->params[i].type == type)
            return &info->params[i];
    return NULL;
}

/* What a filter has, of gf_about. */
static unsigned options_suit(const gf_filter_info *info) {
    unsigned about = ABOUT_ANY;
    if (info->makes_image || own_param(info, GF_PARAM_IMAGE))
        about |= ABOUT_IMAGE;
    if (own_param(info, GF_PARAM_SAMPLES))
        about |= ABOUT_SAMPLES;
    if (!info->makes_image)
        about |= ABOUT_MEASURES;
    if (info->has_chart)
        about |= ABOUT_CHART | ABOUT_PLOT;
    if (info->inputs == 1 && !info->is_test)
        about |= ABOUT_MANY | ABOUT_LIST;
    if (info->inputs == 1 && info->makes_image)
        about |= ABOUT_FOLDER | ABOUT_NAMES;
    return about;
}

size_t gf_cli_common(const gf_filter_info *info, gf_param params[GF_CLI_MAX_COMMON]) {
    size_t count = 0;
    const char *group = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (!table[i].param.name)
            group = table[i].param.group;
        if (!table[i].param.name || (info && !(options_suit(info) & table[i].about)))
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
        if (!name || !gf_settings_given(common, name))
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
    gf_cli_options *options = &line->options;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const gf_param *param = &table[i].param;
        void *field = (char *)options + table[i].field;
        if (!param->name)
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
    options->engine.max_memory = options->files.max_memory;
    options->files.sync = (gf_sync)gf_settings_choice(common, "sync");
    if (options->no_progress)
        options->progress = "none";
    /* The commands have one of their own. */
    options->json = options->json || gf_settings_flag(line->filter, "json");
    gf_cli_colour_use(gf_settings_choice(common, "color"));
    if (!options->raw_text)
        return GF_OK;
    options->files.raw = &options->raw;
    return gf_raw_parse(options->raw_text, &options->raw, error);
}
