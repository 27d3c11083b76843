#include "unknown.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "about.h"
#include "commands.h"
#include "suggest.h"

static bool has(const gf_param *params, size_t count, const char *name, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (strlen(params[i].name) == length && memcmp(params[i].name, name, length) == 0)
            return true;
    return false;
}

/* The first filter that has such an option; NULL if none has. */
static const char *whose(const char *name, size_t length) {
    for (size_t i = 0; i < gf_filter_count(); i++) {
        const gf_filter_info *info = gf_filter_describe(gf_filter_at(i));
        gf_param common[GF_CLI_MAX_COMMON] = {{0}};
        if (has(info->params, info->param_count, name, length) ||
            has(common, gf_cli_common(info, common), name, length))
            return info->name;
    }
    for (size_t i = 0; gf_command_at(i); i++) {
        const gf_filter_info *info = &gf_command_at(i)->info;
        if (has(info->params, info->param_count, name, length))
            return info->name;
    }
    return NULL;
}

/* Answer an option of other programs: how the same is done here, by filters that have `option`. */
static const char *habit(const gf_filter_info *info, const gf_cli_line *line, const char *name,
                         size_t length) {
    static const struct {
        const char *names, *option, *answer;
    } habits[] = {
        {"|o|output|", "out-dir", "name the output behind the input, or a folder with --out-dir"},
        {"|o|output|", "out", "--out is for extracted samples; what is measured is printed"},
        {"|o|output|", "json", "what it finds is printed: write > FILE behind it"},
        {"|y|yes|overwrite|", "force", "--force replaces an existing output"},
        {"|sigma|", "radius", "--radius says how far it reaches, in pixels"},
    };
    char word[16];
    if (length > sizeof word - 3)
        return NULL;
    snprintf(word, sizeof word, "|%.*s|", (int)length, name);
    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++) {
        const char *option = habits[i].option;
        if (strstr(habits[i].names, word) &&
            (has(info->params, info->param_count, option, strlen(option)) ||
             has(line->params, line->param_count, option, strlen(option))))
            return habits[i].answer;
    }
    return NULL;
}

gf_status gf_cli_unknown_option(const gf_filter_info *info, const gf_cli_line *line,
                                const char *argument, char letter, gf_error *error) {
    char text[256];
    const char *name = letter ? &letter : argument + 2;
    const size_t length = letter ? 1 : strcspn(name, "=");
    const char *answer = habit(info, line, name, length);
    if (answer)
        return gf_set_error(error, GF_USAGE, "%s%.*s: %s has no such option; %s",
                            letter ? "-" : "--", (int)length, name, info->name, answer);
    if (letter)
        return gf_set_error(error, GF_USAGE,
                            "-%c: %s has no such option; see 'gpufilter %s --help'", letter,
                            info->name, info->name);
    const char *other = whose(name, length);
    if (other)
        return gf_set_error(error, GF_USAGE,
                            "--%.*s: %s has no such option, but %s has; see 'gpufilter %s --help'",
                            (int)length, name, info->name, other, info->name);
    gf_cli_guess guess = gf_cli_guess_begin(name, length);
    for (size_t i = 0; i < info->param_count; i++)
        gf_cli_guess_try(&guess, info->params[i].name);
    for (size_t i = 0; i < line->param_count; i++)
        gf_cli_guess_try(&guess, line->params[i].name);
    gf_cli_guess_text(&guess, "--", text, sizeof text);
    if (text[0])
        return gf_set_error(error, GF_USAGE, "--%.*s: %s has no such option%s", (int)length, name,
                            info->name, text);
    return gf_set_error(error, GF_USAGE, "--%.*s: %s has no such option; see 'gpufilter %s --help'",
                        (int)length, name, info->name, info->name);
}

gf_status gf_cli_unknown_command(const char *name, bool or_word, gf_error *error) {
    char text[256];
    gf_cli_guess guess = gf_cli_guess_begin(name, strlen(name));
    for (size_t i = 0; i < gf_filter_count(); i++)
        gf_cli_guess_try(&guess, gf_filter_describe(gf_filter_at(i))->name);
    for (size_t i = 0; gf_command_at(i); i++)
        gf_cli_guess_try(&guess, gf_command_at(i)->info.name);
    for (const gf_about_name *word = gf_about_words; or_word && word->name; word++)
        gf_cli_guess_try(&guess, word->name);
    gf_cli_guess_text(&guess, "", text, sizeof text);
    if (text[0])
        return gf_set_error(error, GF_USAGE, "%s: no such filter or command%s", name, text);
    if (access(name, F_OK) == 0)
        return gf_set_error(error, GF_USAGE,
                            "%s: is a file; say before it what to do with it, as in "
                            "'gpufilter info %s'",
                            name, name);
    return gf_set_error(error, GF_USAGE, "%s: no such filter or command; see 'gpufilter --help'",
                        name);
}
