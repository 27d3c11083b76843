/* Completions: one table of all filters, commands and options, read by a script for each shell. */
#include <string.h>

#include "about.h"
#include "pages.h"

/* How the scripts call what an option takes. */
static const char *kind_of(const gf_param *param, const char *metavar) {
    static const char *const kinds[GF_PARAM_SAMPLES + 1] = {
        [GF_PARAM_FLAG] = "nothing", [GF_PARAM_CHOICE] = "words",  [GF_PARAM_LIST] = "list",
        [GF_PARAM_IMAGE] = "images", [GF_PARAM_SAMPLES] = "files",
    };
    const char *kind = kinds[param->type];
    if (param->type == GF_PARAM_TEXT)
        kind = strcmp(param->name, "device") == 0 ? "words"
               : strcmp(metavar, "FILE") == 0     ? "files"
               : strcmp(metavar, "DIR") == 0      ? "folders"
                                                  : NULL;
    return kind ? kind : "unknown";
}

/* Write text that is in single quotes: each one in it ends the string and is quoted by itself, as
 * all three shells understand. */
static void put_quoted(const char *text, FILE *out) {
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\"'\"'", out);
        else
            fputc(*text, out);
    fputc('\n', out);
}

static void put_option(const char *name, const gf_param *param, FILE *out) {
    const char *metavar = param->metavar ? param->metavar : "";
    fprintf(out, "%s|--%s|%s%.1s|%s|%s|", name, param->name, param->letter ? "-" : "",
            &param->letter, kind_of(param, metavar), metavar);
    if (strcmp(param->name, "device") == 0)
        fputs("all 0", out);
    for (size_t i = 0; param->choices && param->choices[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", param->choices[i]);
    fputc('|', out);
    put_quoted(param->help, out);
}

/* Write lines NAME|OPTION|LETTER|KIND|METAVAR|WORDS|HELP. For the operands and a summary, OPTION is
 * filter, command or word. */
static void put_table(FILE *out) {
    subject s;
    for (size_t i = 0; subject_at(i, &s); i++) {
        const bool images = s.is_filter || strstr(s.info->operands, "FILE");
        const bool names = !images && strstr(s.info->operands, "FILTER");
        fprintf(out, "%s|%s||%s||", s.info->name, s.is_filter ? "filter" : "command",
                images  ? "images"
                : names ? "words"
                        : "nothing");
        for (size_t j = 0; names && j < gf_filter_count(); j++)
            fprintf(out, "%s%s", j ? " " : "", gf_filter_describe(gf_filter_at(j))->name);
        fputc('|', out);
        put_quoted(s.info->summary, out);
        for (size_t j = 0; j < s.info->param_count; j++)
            put_option(s.info->name, &s.info->params[j], out);
        for (size_t j = 0; j < s.shared_count; j++)
            put_option(s.info->name, &s.shared[j], out);
    }
    for (const gf_about_name *word = gf_about_words; word->name; word++)
        fprintf(out, "%s|word||nothing|||%s\n", word->name, word->what);
}

/* Write the endings of images' names: "png|pgm|pnm". */
static void put_endings(FILE *out) {
    const char *between = "";
    for (const gf_about_format *format = gf_about_formats; format->name; format++) {
        if (!format->read && !format->written)
            continue;
        fputs(between, out);
        for (const char *c = format->endings; *c; c++)
            fputc(*c == ' ' ? '|' : *c, out);
        between = "|";
    }
}

bool complete_gap(const char *name, FILE *out) {
    if (strcmp(name, "table") == 0)
        put_table(out);
    else if (strcmp(name, "endings") == 0)
        put_endings(out);
    else
        return false;
    return true;
}
