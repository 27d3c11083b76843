/* Command line parser, driven by tables. It suggests similar names for unknown words. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

const gf_help_word gf_help_words[] = {
    {"help", "print help about the program, a filter or a command"},
    {"version", "print the version"},
    {0}};

gf_command gf_command_at(size_t index) {
    static const gf_command *const others[] = {&gf_run_command, &gf_verify_command,
                                               &gf_bench_command, &gf_info_command,
                                               &gf_devices_command};
    const gf_filter *filter = gf_filter_at(index);
    size_t filters = 0;
    if (filter)
        return (gf_command){.info = *gf_filter_describe(filter), .filter = filter};
    while (gf_filter_at(filters))
        filters++;
    return index - filters < sizeof others / sizeof others[0] ? *others[index - filters]
                                                              : (gf_command){0};
}

gf_command gf_command_find(const char *name) {
    gf_command command;
    for (size_t i = 0; (command = gf_command_at(i)).info.name; i++)
        if (strcmp(command.info.name, name) == 0)
            break;
    return command;
}

size_t gf_command_params(const gf_command *command, gf_param params[GF_CLI_MAX_PARAMS]) {
    const gf_filter_info *info = &command->info;
    gf_param common[GF_CLI_MAX_COMMON];
    const size_t common_count = gf_cli_common(info, common);
    size_t count = 0;
    for (; count < info->param_count && count < GF_CLI_MAX_PARAMS - GF_CLI_MAX_COMMON; count++)
        params[count] = info->params[count];
    if (!command->shared)
        return count + gf_cli_common(info, params + count);
    for (const char *name = command->shared; *name; name += strspn(name, " ")) {
        const size_t length = strcspn(name, " ");
        const gf_param *param = gf_param_find(common, common_count, name, length, 0);
        if (param)
            params[count++] = *param;
        name += length;
    }
    return count;
}

bool gf_command_has(const gf_command *command, const char *name, size_t length) {
    gf_param params[GF_CLI_MAX_PARAMS] = {{0}};
    return gf_param_find(params, gf_command_params(command, params), name, length, 0);
}

/* ---- unknown words --------------------------------------------------------------------------- */

/* Return advice for a common word of other programs, or NULL. line: the word is an option, and
 * advice that names an option of ours requires that the command has it. NULL: it is a command. */
static const char *foreign_advice(const gf_cli_line *line, const char *name, size_t length) {
    static const struct {
        /* option NULL: for options and commands; "": for commands only */
        const char *names, *option, *advice;
    } foreign[] = {
        {"|o|output|", "out-dir", "the output is the second operand, or use --out-dir"},
        {"|o|output|", "out",
         "results go to standard output; --out is the file of extracted samples"},
        {"|o|output|", "json", "results go to standard output; redirect it with > FILE"},
        {"|y|yes|overwrite|", "force", "use --force to overwrite outputs"},
        {"|sigma|", "radius", "use --radius, in pixels; 'gpufilter gaussian' has --sigma"},
        {"|radius|", "sigma", "use --sigma, the standard deviation in pixels"},
        {"|border|boundary|pad|padding|mode|", "edge", "use --edge"},
        {"|jobs|T|", "threads", "use --threads"},
        {"|psnr|mse|rmse|ssim|", NULL, "'gpufilter dot A B' reports MSE and PSNR, but not SSIM"},
        {"|diff|cmp|equal|", NULL, "'gpufilter compare A B' compares images"},
        {"|histogram|", NULL, "'gpufilter hist FILE' counts samples in bins"},
        {"|identify|", NULL, "'gpufilter info FILE' describes a file"},
        {"|stats|statistics|mean|average|", NULL,
         "'gpufilter hist --statistics FILE' reports statistics"},
        {"|crop|", NULL, "filters read a rectangle of their input with --crop X,Y,W,H"},
        {"|rotate|flip|", NULL, "not supported; --autorotate turns inputs by EXIF orientation"},
        {"|blur|gblur|gaussian|gaussblur|gaussianblur|", NULL,
         "'gpufilter gaussian' and 'gpufilter box' blur images"},
        {"|box|boxblur|uniform|", NULL, "'gpufilter box' is the mean of a rectangle"},
        {"|sharpen|unsharp|usm|", NULL, "'gpufilter sharpen' is an unsharp mask"},
        {"|sobel|edge|edges|gradient|", "",
         "'gpufilter convolve --kernel \"-1 0 1 -2 0 2 -1 0 1\" IN OUT' is the Sobel filter along x"},
        {"|laplace|laplacian|", NULL,
         "'gpufilter convolve --kernel \"0 1 0 1 -4 1 0 1 0\" IN OUT' is a Laplace filter"},
        {"|emboss|", NULL,
         "'gpufilter convolve --kernel \"-2 -1 0 -1 1 1 0 1 2\" IN OUT' embosses"},
        {"|conv|convolve|convolution|filter2d|", NULL, "'gpufilter convolve' applies a kernel"},
        {"|medianblur|medfilt|despeckle|denoise|", "", "'gpufilter median' removes noise"},
        {"|rank|", "", "'gpufilter percentile' returns a sample of the sorted window"},
        {"|min|minimum|erosion|", "", "'gpufilter erode' is the minimum of a window"},
        {"|max|maximum|dilation|", "", "'gpufilter dilate' is the maximum of a window"},
        {"|open|opening|", "", "an opening is 'gpufilter erode', then 'gpufilter dilate'"},
        {"|close|closing|", "", "a closing is 'gpufilter dilate', then 'gpufilter erode'"},
        {"|brightness|multiply|", NULL,
         "'gpufilter smooth --stages enhance --gain G IN OUT' multiplies samples by G"},
        {"|convert|copy|", NULL,
         "'gpufilter smooth --stages enhance --gain 1 IN OUT' changes only the format"},
        {"|resize|scale|thumbnail|", NULL, "'gpufilter resize' changes the size of an image"},
        {"|bilateral|canny|gray|grey|grayscale|greyscale|threshold|invert|negate|contrast|gamma|",
         "", "gpufilter has no such operation"},
    };
    char word[24];
    if (length > sizeof word - 3)
        return NULL;
    snprintf(word, sizeof word, "|%.*s|", (int)length, name);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        const char *option = foreign[i].option;
        if (strstr(foreign[i].names, word) &&
            (!option || (!line && !*option) ||
             (line && gf_param_find(line->params, line->param_count, option, strlen(option), 0))))
            return foreign[i].advice;
    }
    return NULL;
}

/* Fail for an unknown option. dashes: "--" before a name, "-" before a letter. */
static gf_status unknown_option(const gf_filter_info *info, const gf_cli_line *line,
                                const char *dashes, const char *name, size_t length,
                                gf_error *error) {
    const bool is_long = dashes[1];
    const int size = (int)length;
    char text[256] = "";
    const char *advice = foreign_advice(line, name, length);
    if (advice)
        return gf_set_error(error, GF_USAGE, "%s%.*s: unknown option of %s; %s", dashes, size, name,
                            info->name, advice);
    /* The first filter or command with such an option. */
    gf_command command = {0};
    for (size_t i = 0; is_long && (command = gf_command_at(i)).info.name; i++)
        if (gf_command_has(&command, name, length))
            break;
    const char *owner = command.info.name;
    const char *names[GF_CLI_MAX_PARAMS];
    for (size_t i = 0; i < line->param_count; i++)
        names[i] = line->params[i].name;
    if (is_long && !owner)
        gf_guess_names(name, length, names, line->param_count, "--", text);
    if (text[0])
        return gf_set_error(error, GF_USAGE, "--%.*s: unknown option of %s%s", size, name,
                            info->name, text);
    return gf_set_error(error, GF_USAGE,
                        "%s%.*s: unknown option of %s%s%s%s; see 'gpufilter %s --help'", dashes,
                        size, name, info->name, owner ? " (it is an option of " : "",
                        owner ? owner : "", owner ? ")" : "", info->name);
}

gf_status gf_cli_unknown_command(const char *name, bool or_word, gf_error *error) {
    char text[256];
    const char *names[64];
    size_t count = 0;
    gf_command command;
    const char *advice = foreign_advice(NULL, name, strlen(name));
    if (advice)
        return gf_set_error(error, GF_USAGE, "%s: no such filter or command; %s", name, advice);
    for (size_t i = 0; count < 60 && (command = gf_command_at(i)).info.name; i++)
        names[count++] = command.info.name;
    for (const gf_help_word *word = gf_help_words; or_word && word->name; word++)
        names[count++] = word->name;
    gf_guess_names(name, strlen(name), names, count, "", text);
    if (text[0])
        return gf_set_error(error, GF_USAGE, "%s: no such filter or command%s", name, text);
    if (access(name, F_OK) == 0)
        return gf_set_error(
            error, GF_USAGE,
            "%s: is a file, not a filter or command; name one before the file, as in "
            "'gpufilter info %s'",
            name, name);
    return gf_set_error(error, GF_USAGE, "%s: no such filter or command; see 'gpufilter --help'",
                        name);
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* Parse --name, --name=value, -f, -fv or -r3. Also consume the value of --name or -r behind it. */
static gf_status parse_argument(const gf_filter_info *info, gf_cli_line *line, const char *argument,
                                char ***next, gf_error *error) {
    const bool is_long = argument[1] == '-';
    for (const char *name = argument + (is_long ? 2 : 1);; name++) {
        const size_t length = is_long ? strcspn(name, "=") : 1;
        const char letter = is_long ? 0 : *name, *value = name + length;
        const gf_param *param =
            gf_param_find(line->params, line->param_count, name, length, letter);
        if (!param)
            return unknown_option(info, line, is_long ? "--" : "-", name, length, error);
        const bool own = param < line->params + info->param_count;
        const bool flag = param->type == GF_PARAM_FLAG;
        const bool more = !is_long && flag && *value; /* more letters follow */
        if (is_long && *value)
            value++;
        else if (more || !*value)
            value = NULL;
        if (!flag && !value && !**next)
            return gf_set_error(error, GF_USAGE, "--%s: requires a value (%s)", param->name,
                                param->metavar);
        if (!flag && !value)
            value = *(*next)++;
        line->help_all = line->help_all || (is_long && strcmp(param->name, "help") == 0);
        const gf_status status =
            gf_settings_set(own ? line->filter : line->common, param->name, value, error);
        if (status || !more)
            return status;
    }
}

gf_status gf_cli_parse(char **argv, const gf_filter_info *info, const gf_param *params,
                       size_t count, gf_cli_line *line, gf_error *error) {
    const size_t own = info->param_count;
    size_t words = 0;
    while (argv[words])
        words++;
    *line = (gf_cli_line){
        .filter = gf_settings_new(info->params, own),
        .common = gf_settings_new(params + own, count - own),
        .params = params,
        .param_count = count,
        .operands = calloc(words + 1, sizeof *line->operands),
    };
    if (!line->filter || !line->common || !line->operands)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", info->name);
    bool options = true;
    gf_status status = GF_OK;
    while (*argv && !status) {
        const char *argument = *argv++;
        if (strcmp(argument, "!") == 0 && gf_cli_has_steps(info)) {
            line->steps = argv;
            break;
        }
        if (options && strcmp(argument, "--") == 0)
            options = false;
        else if (options && argument[0] == '-' && argument[1])
            status = parse_argument(info, line, argument, &argv, error);
        else if (!argument[0])
            status = gf_set_error(error, GF_USAGE, "%s: operand %zu is empty; name a file",
                                  info->name, line->operand_count + 1);
        else
            line->operands[line->operand_count++] = argument;
    }
    return status ? status : gf_cli_decode(line, error);
}

void gf_cli_line_free(gf_cli_line *line) {
    gf_settings_free(line->filter);
    gf_settings_free(line->common);
    free(line->operands);
}
