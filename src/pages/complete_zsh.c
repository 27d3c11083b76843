#include <stdio.h>
#include <string.h>

#include "about.h"
#include "complete.h"
#include "template.h"

#define QUOTE "'\\''"

/* "name:summary", for _describe. */
static void put_named(const char *name, const char *what) {
    printf("        '%s:", name);
    complete_put_quoted(what, QUOTE);
    puts("'");
}

static void put_all(bool filters) {
    subject s;

    for (size_t i = 0; subject_at(i, &s); i++)
        if (s.is_filter == filters)
            put_named(s.info->name, s.info->summary);
}

static void put_filters(const void *context) {
    (void)context;
    put_all(true);
}

static void put_commands(const void *context) {
    (void)context;
    put_all(false);
}

static void put_words(const void *context) {
    (void)context;
    for (const gf_about_name *word = gf_about_words; word->name; word++)
        put_named(word->name, word->what);
}

/* What offers values: the last part of a specification. */
static void put_action(const complete_values *values) {
    switch (values->kind) {
    case COMPLETE_WORDS:
        putchar('(');
        complete_put_words(values, " ");
        putchar(')');
        break;
    case COMPLETE_LIST:
        fputs(" _gpufilter_list ", stdout); /* the blank: with these words alone */
        complete_put_words(values, " ");
        break;
    case COMPLETE_FILES:
        fputs("_files", stdout);
        break;
    case COMPLETE_IMAGES:
        fputs("_gpufilter_images", stdout);
        break;
    case COMPLETE_FOLDERS:
        fputs("_files -/", stdout);
        break;
    case COMPLETE_NOTHING:
    case COMPLETE_UNKNOWN:
        putchar(' ');
    }
}

/* '(-a --axis)'{-a+,--axis=}'[help]:AXIS:(x y xy)' */
static void put_option(const gf_param *param) {
    const complete_values values = complete_option(param);
    const bool flag = values.kind == COMPLETE_NOTHING;

    if (param->letter)
        printf("            '(-%c --%s)'{-%c%s,--%s%s}'[", param->letter, param->name,
               param->letter, flag ? "" : "+", param->name, flag ? "" : "=");
    else
        printf("            '--%s%s[", param->name, flag ? "" : "=");
    for (const char *c = param->help; *c; c++) {
        const char one[2] = {*c, 0};
        if (strchr("[]\\", *c))
            putchar('\\');
        complete_put_quoted(one, QUOTE);
    }
    putchar(']');
    if (!flag) {
        printf(":%s:", param->metavar);
        put_action(&values);
    }
    puts("'");
}

static void put_options(const void *context) {
    const gf_param *param;
    subject s;

    (void)context;
    for (size_t i = 0; subject_at(i, &s); i++) {
        const complete_values operands = complete_operands(&s);
        printf("    %s)\n        arguments=(\n", s.info->name);
        for (size_t j = 0; (param = subject_option(&s, j)); j++)
            put_option(param);
        if (operands.kind != COMPLETE_NOTHING) {
            printf("            '*:%s:", operands.kind == COMPLETE_IMAGES ? "image" : "filter");
            put_action(&operands);
            puts("'");
        }
        puts("        )\n        ;;");
    }
}

static void put_endings(const void *context) {
    (void)context;
    printf("    _files \"$@\" -g '(#i)*.(");
    complete_put_endings("|");
    puts(")'");
}

void complete_zsh(void) {
    static const template_gap gaps[] = {{"filters", put_filters}, {"commands", put_commands},
                                        {"words", put_words},     {"options", put_options},
                                        {"endings", put_endings}, {0}};

    template_fill("src/pages/gpufilter.zsh.in", gaps, NULL);
}
