#include <stdio.h>

#include "about.h"
#include "complete.h"
#include "template.h"

static const char *const kinds[] = {
    [COMPLETE_NOTHING] = "nothing", [COMPLETE_UNKNOWN] = "unknown", [COMPLETE_WORDS] = "words",
    [COMPLETE_LIST] = "list",       [COMPLETE_FILES] = "files",     [COMPLETE_IMAGES] = "images",
    [COMPLETE_FOLDERS] = "folders"};

static void put_names(const void *context) {
    subject s;

    (void)context;
    printf("_gpufilter_names='");
    for (size_t i = 0; subject_at(i, &s); i++)
        printf("%s%s", i ? " " : "", s.info->name);
    printf("'\n_gpufilter_words='");
    for (const gf_about_name *word = gf_about_words; word->name; word++)
        printf("%s%s", word == gf_about_words ? "" : " ", word->name);
    puts("'");
}

static void put_line(const complete_values *values, const char *rest) {
    printf("'%s%s", kinds[values->kind], rest);
    for (size_t i = 0; values->words[i]; i++)
        printf(" %s", values->words[i]);
    puts("'");
}

static void put_options(const void *context) {
    const gf_param *param;
    subject s;

    (void)context;
    for (size_t i = 0; subject_at(i, &s); i++) {
        const complete_values operands = complete_operands(&s);
        printf("    %s)\n        operands=", s.info->name);
        put_line(&operands, "");
        puts("        options=(");
        for (size_t j = 0; (param = subject_option(&s, j)); j++) {
            const complete_values values = complete_option(param);
            char names[96];
            snprintf(names, sizeof names, " --%s -%c", param->name,
                     param->letter ? param->letter : '-');
            printf("            ");
            put_line(&values, names);
        }
        puts("        )\n        ;;");
    }
}

static void put_endings(const void *context) {
    (void)context;
    printf("        *.");
    complete_put_endings(" | *.");
    puts(") return 0 ;;");
}

void complete_bash(void) {
    static const template_gap gaps[] = {
        {"names", put_names}, {"options", put_options}, {"endings", put_endings}, {0}};

    template_fill("src/pages/gpufilter.bash.in", gaps, NULL);
}
