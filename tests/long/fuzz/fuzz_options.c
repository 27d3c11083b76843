/* Command lines: the name of a command and its arguments, each ended by a NUL byte. Accepted
 * settings must be within the ranges of their table, and keep their values when set again from
 * their text. */

#include "fuzz.h"

#include "cli/commands.h"

enum { MAX_ARGUMENTS = 64 };

static void check_param(const gf_settings *settings, const gf_param *param) {
    const char *name = param->name, *text = gf_settings_text(settings, name);
    double lo, hi;
    switch (param->type) {
    case GF_PARAM_INT: {
        const int64_t v = gf_settings_int(settings, name);
        FUZZ_CHECK((double)v >= param->min && (double)v <= param->max, "--%s %s", name, text);
        break;
    }
    case GF_PARAM_SIZE: {
        const uint64_t v = gf_settings_size(settings, name);
        FUZZ_CHECK((double)v >= param->min && (double)v <= param->max, "--%s %s", name, text);
        break;
    }
    case GF_PARAM_FLOAT: {
        const float v = gf_settings_float(settings, name);
        FUZZ_CHECK(v >= (float)param->min && v <= (float)param->max, "--%s %s", name, text);
        break;
    }
    case GF_PARAM_CHOICE: { /* of NAME:V, any text stands for V */
        const char *choice = param->choices[gf_settings_choice(settings, name)];
        const char *colon = strchr(choice, ':');
        FUZZ_CHECK(colon ? strncmp(choice, text, (size_t)(colon - choice) + 1) == 0
                         : strcmp(choice, text) == 0,
                   "--%s %s", name, text);
        break;
    }
    case GF_PARAM_PAIR:
    case GF_PARAM_INT_PAIR: {
        double v[2];
        gf_settings_pair(settings, name, v);
        for (int i = 0; i < 2; i++)
            FUZZ_CHECK((v[i] >= param->min && v[i] <= param->max) || (v[i] == 0 && v[1 - i] != 0),
                       "--%s %s", name, text);
        break;
    }
    case GF_PARAM_LIST:
        FUZZ_CHECK(gf_settings_list(settings, name) != 0, "--%s %s", name, text);
        break;
    case GF_PARAM_RANGE:
        if (!param->choices || strcmp(text, param->choices[0]) != 0)
            FUZZ_CHECK(gf_settings_range(settings, name, &lo, &hi) && lo < hi && hi - lo <= 1e303,
                       "--%s %s", name, text);
        break;
    default:
        FUZZ_CHECK(param->type == GF_PARAM_FLAG || text != NULL, "--%s has no text", name);
    }
}

/* Set a parameter again from its text and compare the values. */
static void check_round_trip(const gf_settings *settings, const gf_param *param,
                             gf_settings *other) {
    const char *name = param->name, *text = gf_settings_text(settings, name);
    gf_error error = {0};
    if (param->type == GF_PARAM_FLAG)
        return;
    FUZZ_CHECK(gf_settings_set(other, name, text, &error) == GF_OK, "%s", error.message);
    const float a = gf_settings_float(settings, name), b = gf_settings_float(other, name);
    double x[2], y[2];
    gf_settings_pair(settings, name, x);
    gf_settings_pair(other, name, y);
    FUZZ_CHECK(gf_settings_int(settings, name) == gf_settings_int(other, name) &&
                   gf_settings_size(settings, name) == gf_settings_size(other, name) &&
                   memcmp(&a, &b, sizeof a) == 0 && memcmp(x, y, sizeof x) == 0 &&
                   gf_settings_number(settings, name) == gf_settings_number(other, name) &&
                   gf_settings_list(settings, name) == gf_settings_list(other, name) &&
                   strcmp(text, gf_settings_text(other, name)) == 0,
               "--%s %s: changes when set again", name, text);
}

static void check_settings(const gf_settings *settings, const gf_param *params, size_t count) {
    AUTO(settings) gf_settings *other = gf_settings_new(params, count);
    if (other == NULL)
        abort();
    for (size_t i = 0; i < count; i++) {
        if (!gf_settings_given(settings, params[i].name))
            continue;
        check_param(settings, &params[i]);
        check_round_trip(settings, &params[i], other);
    }
}

/* Check a template for names of outputs. */
static void check_name(const char *template, const char *base) {
    gf_error error = {0};
    char *name;
    const gf_status status = gf_cli_template_fill(template, base, NULL, 7, &name, &error);
    if (status != GF_OK) {
        fuzz_check_error(status, &error);
        return;
    }
    FUZZ_CHECK(strchr(name, '/') == NULL, "'%s' names '%s'", template, name);
    free(name);
}

static void parse(int argc, char **argv, const gf_command *command) {
    const gf_filter_info *info = &command->info;
    gf_param params[GF_CLI_MAX_PARAMS];
    gf_cli_line line;
    gf_error error = {0};
    const size_t count = gf_command_params(command, params);
    gf_status status = gf_cli_parse(argv, info, params, count, &line, &error);
    if (status == GF_OK && command->filter != NULL)
        status = gf_cli_check_common(info, &line, &error);
    if (status != GF_OK) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(status == GF_USAGE, "not a usage error: %s", error.message);
    } else {
        FUZZ_CHECK(line.operand_count <= (size_t)argc, "%zu operands", line.operand_count);
        check_settings(line.filter, info->params, info->param_count);
        check_settings(line.common, params + info->param_count, count - info->param_count);
        const char *name = gf_settings_text(line.common, "name");
        if (name != NULL && gf_settings_given(line.common, "name"))
            check_name(name, line.operand_count != 0 && strchr(line.operands[0], '/') == NULL
                                 ? line.operands[0]
                                 : "a.b.png");
    }
    gf_cli_line_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *argv[MAX_ARGUMENTS + 1] = {NULL};
    AUTO(free) char *text = fuzz_text(&(fuzz_bytes){data, size});
    int argc = 0;
    for (size_t at = 0; at < size && argc < MAX_ARGUMENTS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    if (argc != 0) {
        gf_command command = gf_command_find(argv[0]);
        if (command.info.name == NULL) /* only filters and commands have parameters to check */
            command = gf_command_at((unsigned char)argv[0][0] % test_filter_count());
        parse(argc - 1, argv + 1, &command);
    }
    return 0;
}
