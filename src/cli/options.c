/* From argv to settings, by the tables of parameters alone. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Choices without a list here are the library's to name: gf_cli_common fills them in. */
static gf_param common[] = {
    /* The first two are only for what can be drawn. */
    {.name = "plot",
     .type = GF_PARAM_TEXT,
     .metavar = "FILE",
     .help = "draw what was measured into a .png or .svg file"},
    {.name = "log",
     .type = GF_PARAM_FLAG,
     .help = "--plot: logarithmic y axis; what is not above zero lies at its bottom"},
    {.name = "backend",
     .letter = 'b',
     .type = GF_PARAM_CHOICE,
     .metavar = "NAME",
     .help = "who computes: the one expected to finish first, or a named one",
     .fallback = "auto"},
    {.name = "device",
     .letter = 'd',
     .type = GF_PARAM_TEXT,
     .metavar = "LIST",
     .help = "CUDA devices that share the work, and so the cuda backend: 0, 0,2 or all"},
    {.name = "threads",
     .letter = 'j',
     .type = GF_PARAM_INT,
     .metavar = "N",
     .help = "CPU threads that compute; 0: one a core",
     .fallback = "0",
     .min = 0,
     .max = 1024},
    {.name = "simd",
     .type = GF_PARAM_CHOICE,
     .metavar = "LEVEL",
     .help = "vector instructions of the cpu backend",
     .fallback = "auto"},
    {.name = "band-rows",
     .type = GF_PARAM_INT,
     .metavar = "N",
     .help = "rows that travel together; 0: chosen from their size (golden takes all)",
     .fallback = "0",
     .min = 0,
     .max = 2147483647},
    {.name = "format",
     .type = GF_PARAM_CHOICE,
     .metavar = "FORMAT",
     .help = "format of the output, instead of what its name says"},
    {.name = "compression",
     .letter = 'c',
     .type = GF_PARAM_INT,
     .metavar = "LEVEL",
     .help = "PNG: zlib level, from stored to slowest",
     .fallback = "1",
     .min = 0,
     .max = 9},
    {.name = "strip",
     .type = GF_PARAM_FLAG,
     .help = "leave the input's metadata out of the output"},
    {.name = "force",
     .letter = 'f',
     .type = GF_PARAM_FLAG,
     .help = "replace an existing output; allow an image to a terminal"},
    {.name = "max-memory",
     .type = GF_PARAM_SIZE,
     .metavar = "SIZE",
     .help = "most memory for the bands of an image, and for one that must be held whole",
     .fallback = "4G",
     .min = 1,
     .max = 1e18},
    {.name = "max-pixels",
     .type = GF_PARAM_SIZE,
     .metavar = "N",
     .help = "most pixels an input may have",
     .fallback = "64G",
     .min = 1,
     .max = 1e18},
    {.name = "max-chunk",
     .type = GF_PARAM_SIZE,
     .metavar = "SIZE",
     .help = "most bytes of one metadata chunk of an input",
     .fallback = "16M",
     .min = 1024,
     .max = 2147483647},
    {.name = "json",
     .type = GF_PARAM_FLAG,
     .help = "print one line of JSON: what was done, and what was measured"},
    {.name = "csv", .type = GF_PARAM_FLAG, .help = "print what was measured as a CSV table"},
    {.name = "quiet", .letter = 'q', .type = GF_PARAM_FLAG, .help = "say nothing but errors"},
    {.name = "verbose",
     .letter = 'v',
     .type = GF_PARAM_FLAG,
     .help = "say what was done, by which backend, and where the time went"},
    {.name = "help", .letter = 'h', .type = GF_PARAM_FLAG, .help = "print this help"},
    {.name = "version", .letter = 'V', .type = GF_PARAM_FLAG, .help = "print the version"},
};

const gf_param *gf_cli_common(const gf_filter_info *info, size_t *count) {
    const size_t all = sizeof common / sizeof common[0], first = info->has_chart ? 0 : 2;
    for (size_t i = 0; i < all; i++) {
        if (strcmp(common[i].name, "backend") == 0)
            common[i].choices = gf_backend_names();
        else if (strcmp(common[i].name, "simd") == 0)
            common[i].choices = gf_simd_names();
        else if (strcmp(common[i].name, "format") == 0)
            common[i].choices = gf_output_formats();
    }
    *count = all - first;
    return common + first;
}

/* One option as the tables know it. */
typedef struct gf_match {
    const gf_param *param;
    gf_settings *settings;
} gf_match;

static bool named(const gf_param *param, const char *name, size_t length, char letter) {
    if (letter)
        return param->letter == letter;
    return strlen(param->name) == length && strncmp(param->name, name, length) == 0;
}

static gf_match match(const gf_filter_info *info, const gf_cli_line *line, const char *name,
                      size_t length, char letter) {
    for (size_t i = 0; i < info->param_count; i++)
        if (named(&info->params[i], name, length, letter))
            return (gf_match){&info->params[i], line->filter};
    for (size_t i = 0; i < line->param_count; i++)
        if (named(&line->params[i], name, length, letter))
            return (gf_match){&line->params[i], line->common};
    return (gf_match){0};
}

static gf_status set(const gf_match *option, const char *value, const char *next, int *used,
                     gf_error *error) {
    if (option->param->type == GF_PARAM_FLAG)
        return gf_settings_set(option->settings, option->param->name, value, error);
    if (!value) {
        if (!next)
            return gf_cli_fail(error, GF_USAGE, "--%s: needs a value (%s)", option->param->name,
                               option->param->metavar);
        value = next;
        ++*used;
    }
    return gf_settings_set(option->settings, option->param->name, value, error);
}

static gf_status unknown(const gf_filter_info *info, const char *argument, gf_error *error) {
    return gf_cli_fail(error, GF_USAGE, "%s: no such option; see 'gpufilter %s --help'", argument,
                       info->name);
}

/* --name, --name=value or --name value. */
static gf_status parse_long(const gf_filter_info *info, gf_cli_line *line, const char *argument,
                            const char *next, int *used, gf_error *error) {
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    gf_match option = match(info, line, name, length, 0);
    if (!option.param)
        return unknown(info, argument, error);
    return set(&option, name[length] ? name + length + 1 : NULL, next, used, error);
}

/* -f, -fv, -r3 or -r 3. */
static gf_status parse_short(const gf_filter_info *info, gf_cli_line *line, const char *argument,
                             const char *next, int *used, gf_error *error) {
    for (const char *letter = argument + 1; *letter; letter++) {
        gf_match option = match(info, line, NULL, 0, *letter);
        if (!option.param)
            return unknown(info, argument, error);
        bool flag = option.param->type == GF_PARAM_FLAG;
        const char *value = flag || !letter[1] ? NULL : letter + 1;
        gf_status status = set(&option, value, next, used, error);
        if (status || !flag)
            return status;
    }
    return GF_OK;
}

gf_status gf_cli_parse(int argc, char **argv, const gf_filter_info *info, const gf_param *shared,
                       size_t shared_count, gf_cli_line *line, gf_error *error) {
    *line = (gf_cli_line){
        .filter = gf_settings_new(info->params, info->param_count),
        .common = gf_settings_new(shared, shared_count),
        .params = shared,
        .param_count = shared_count,
        .operands = calloc((size_t)argc + 1, sizeof *line->operands),
    };
    if (!line->filter || !line->common || !line->operands)
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", info->name);
    bool options = true;
    for (int i = 0; i < argc; i++) {
        char *argument = argv[i];
        char *next = i + 1 < argc ? argv[i + 1] : NULL;
        int used = 0;
        gf_status status = GF_OK;
        if (options && strcmp(argument, "--") == 0)
            options = false;
        else if (options && argument[0] == '-' && argument[1] == '-')
            status = parse_long(info, line, argument, next, &used, error);
        else if (options && argument[0] == '-' && argument[1])
            status = parse_short(info, line, argument, next, &used, error);
        else
            line->operands[line->operand_count++] = argument;
        if (status)
            return status;
        i += used;
    }
    return GF_OK;
}

void gf_cli_line_free(gf_cli_line *line) {
    gf_settings_free(line->filter);
    gf_settings_free(line->common);
    free(line->operands);
}
