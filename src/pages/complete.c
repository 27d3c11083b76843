#include "complete.h"

#include <stdio.h>
#include <string.h>

#include "about.h"

/* What texts stand for is told by what help calls them, but for these. */
static const struct {
    const char *option;
    const char *words[3];
} texts[] = {{"device", {"all", "0"}}};

static void add_word(complete_values *values, const char *word) {
    size_t count = 0;

    while (values->words[count])
        count++;
    if (count < COMPLETE_MAX_WORDS)
        values->words[count] = word;
}

static complete_values of_text(const gf_param *param) {
    complete_values values = {.kind = COMPLETE_UNKNOWN};

    if (strcmp(param->metavar, "FILE") == 0)
        values.kind = COMPLETE_FILES;
    else if (strcmp(param->metavar, "DIR") == 0)
        values.kind = COMPLETE_FOLDERS;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(param->name, texts[i].option) != 0)
            continue;
        values.kind = COMPLETE_WORDS;
        for (size_t j = 0; texts[i].words[j]; j++)
            add_word(&values, texts[i].words[j]);
    }
    return values;
}

complete_values complete_option(const gf_param *param) {
    complete_values values = {.kind = COMPLETE_UNKNOWN};

    switch (param->type) {
    case GF_PARAM_FLAG:
        values.kind = COMPLETE_NOTHING;
        break;
    case GF_PARAM_CHOICE:
    case GF_PARAM_LIST:
        values.kind = param->type == GF_PARAM_LIST ? COMPLETE_LIST : COMPLETE_WORDS;
        for (const char *const *choice = param->choices; *choice; choice++)
            add_word(&values, *choice);
        break;
    case GF_PARAM_IMAGE:
        values.kind = COMPLETE_IMAGES;
        break;
    case GF_PARAM_SAMPLES:
        values.kind = COMPLETE_FILES;
        break;
    case GF_PARAM_TEXT:
        return of_text(param);
    case GF_PARAM_INT:
    case GF_PARAM_FLOAT:
    case GF_PARAM_SIZE:
    case GF_PARAM_RANGE:
        break;
    }
    return values;
}

complete_values complete_operands(const subject *s) {
    complete_values values = {.kind = COMPLETE_NOTHING};

    if (s->is_filter || strstr(s->info->operands, "FILE")) {
        values.kind = COMPLETE_IMAGES;
    } else if (strstr(s->info->operands, "FILTER")) {
        values.kind = COMPLETE_WORDS;
        for (size_t i = 0; i < gf_filter_count(); i++)
            add_word(&values, gf_filter_describe(gf_filter_at(i))->name);
    }
    return values;
}

void complete_put_endings(const char *between) {
    char endings[COMPLETE_MAX_WORDS][8];
    size_t count = 0;

    for (const gf_about_format *format = gf_about_formats; format->name; format++)
        for (const char *at = format->endings; *at; at += strspn(at, " ")) {
            char ending[sizeof endings[0]];
            const size_t size = strcspn(at, " ");
            size_t i = 0;
            snprintf(ending, sizeof ending, "%.*s", (int)size, at);
            while (i < count && strcmp(endings[i], ending) != 0)
                i++;
            at += size;
            if (i < count || count == COMPLETE_MAX_WORDS || (!format->read && !format->written))
                continue;
            printf("%s%s", count ? between : "", ending);
            memcpy(endings[count++], ending, sizeof ending);
        }
}

void complete_put_quoted(const char *text, const char *quote) {
    for (; *text; text++)
        if (*text == '\'')
            fputs(quote, stdout);
        else
            putchar(*text);
}

void complete_put_words(const complete_values *values, const char *between) {
    for (size_t i = 0; values->words[i]; i++)
        printf("%s%s", i ? between : "", values->words[i]);
}
