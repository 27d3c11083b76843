/* What the pages are made from: descriptors and templates. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"

_Noreturn void source_fail(const char *path) {
    fprintf(stderr, "pages: %s: %s\n", path, strerror(errno));
    exit(1);
}

bool subject_at(size_t index, subject *s) {
    const size_t filters = gf_filter_count();
    const gf_command *command = index < filters ? NULL : gf_command_at(index - filters);
    if (index >= filters && !command)
        return false;
    s->is_filter = !command;
    s->info = command ? &command->info : gf_filter_describe(gf_filter_at(index));
    s->shared_count =
        command ? gf_command_shared(command, s->shared) : gf_cli_common(s->info, s->shared);
    return true;
}

bool subject_shares(const subject *s, const char *name) {
    for (size_t i = 0; i < s->shared_count; i++)
        if (strcmp(s->shared[i].name, name) == 0)
            return true;
    return false;
}

void template_fill(const char *path, template_gap *put, FILE *out) {
    char *text = NULL, name[16];
    size_t capacity = 0;
    FILE *file = fopen(path, "r");
    if (!file || getdelim(&text, &capacity, 0, file) < 0)
        source_fail(path);
    for (const char *at = text; *at;) {
        const char *end = *at == '@' ? strchr(at + 1, '@') : NULL;
        snprintf(name, sizeof name, "%.*s", end ? (int)(end - at - 1) : 0, at + 1);
        if (end && put(name, out))
            at = end[1] == '\n' ? end + 2 : end + 1;
        else
            fputc(*at++, out);
    }
    fclose(file);
    free(text);
}
