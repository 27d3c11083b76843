/* From argv to settings, by the tables of parameters alone. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "colour.h"
#include "unknown.h"

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
            return gf_set_error(error, GF_USAGE, "--%s: needs a value (%s)", option->param->name,
                                option->param->metavar);
        value = next;
        ++*used;
    }
    return gf_settings_set(option->settings, option->param->name, value, error);
}

/* --name, --name=value or --name value. */
static gf_status parse_long(const gf_filter_info *info, gf_cli_line *line, const char *argument,
                            const char *next, int *used, gf_error *error) {
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    gf_match option = match(info, line, name, length, 0);
    if (!option.param)
        return gf_cli_unknown_option(info, line, argument, 0, error);
    return set(&option, name[length] ? name + length + 1 : NULL, next, used, error);
}

/* -f, -fv, -r3 or -r 3. */
static gf_status parse_short(const gf_filter_info *info, gf_cli_line *line, const char *argument,
                             const char *next, int *used, gf_error *error) {
    for (const char *letter = argument + 1; *letter; letter++) {
        gf_match option = match(info, line, NULL, 0, *letter);
        if (!option.param)
            return gf_cli_unknown_option(info, line, argument, *letter, error);
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
        return gf_set_error(error, GF_FAILED, "%s: out of memory", info->name);
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
    gf_cli_colour_use(gf_settings_choice(line->common, "color"));
    return gf_cli_raw(line) ? gf_raw_parse(gf_settings_text(line->common, "raw"), &line->raw, error)
                            : GF_OK;
}

void gf_cli_line_free(gf_cli_line *line) {
    gf_settings_free(line->filter);
    gf_settings_free(line->common);
    free(line->operands);
}
