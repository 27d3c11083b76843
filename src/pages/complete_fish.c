#include <stdio.h>

#include "about.h"
#include "complete.h"
#include "template.h"

#define QUOTE "\\'"

static void put_description(const char *text) {
    fputs(" -d '", stdout);
    complete_put_quoted(text, QUOTE);
    puts("'");
}

static void put_names(const void *context) {
    subject s;

    (void)context;
    for (size_t i = 0; subject_at(i, &s); i++) {
        printf("complete -c gpufilter -n '__gpufilter_at name help' -a %s", s.info->name);
        put_description(s.info->summary);
    }
    for (const gf_about_name *word = gf_about_words; word->name; word++) {
        printf("complete -c gpufilter -n '__gpufilter_at name' -a %s", word->name);
        put_description(word->what);
    }
}

/* Where a value is taken from; -x: from nowhere else, -r: it needs one. */
static void put_values(const complete_values *values) {
    switch (values->kind) {
    case COMPLETE_NOTHING:
        return;
    case COMPLETE_UNKNOWN:
        fputs(" -x", stdout);
        return;
    case COMPLETE_FILES:
        fputs(" -r -F", stdout);
        return;
    case COMPLETE_WORDS:
        fputs(" -x -a '", stdout);
        complete_put_words(values, " ");
        break;
    case COMPLETE_LIST:
        fputs(" -x -a '(__gpufilter_list ", stdout);
        complete_put_words(values, " ");
        putchar(')');
        break;
    case COMPLETE_IMAGES:
        fputs(" -x -a '(__gpufilter_images)", stdout);
        break;
    case COMPLETE_FOLDERS:
        fputs(" -x -a '(__fish_complete_directories)", stdout);
        break;
    }
    putchar('\'');
}

static void put_options(const void *context) {
    const gf_param *param;
    subject s;

    (void)context;
    for (size_t i = 0; subject_at(i, &s); i++) {
        const complete_values operands = complete_operands(&s);
        const char *name = s.info->name;
        printf("\n# %s\n", name);
        if (operands.kind != COMPLETE_NOTHING) {
            printf("complete -c gpufilter -n '__gpufilter_at %s'", name);
            put_values(&operands);
            putchar('\n');
        }
        for (size_t j = 0; (param = subject_option(&s, j)); j++) {
            const complete_values values = complete_option(param);
            printf("complete -c gpufilter -n '__gpufilter_at %s'", name);
            if (param->letter)
                printf(" -s %c", param->letter);
            printf(" -l %s", param->name);
            put_values(&values);
            put_description(param->help);
        }
    }
}

static void put_endings(const void *context) {
    (void)context;
    printf("    string match --regex --ignore-case --entire -- '(?:/|\\.(?:");
    complete_put_endings("|");
    puts("))(?:\\t.*)?$' $files");
}

void complete_fish(void) {
    static const template_gap gaps[] = {
        {"names", put_names}, {"options", put_options}, {"endings", put_endings}, {0}};

    template_fill("src/pages/gpufilter.fish.in", gaps, NULL);
}
