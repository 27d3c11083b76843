#include "template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn static void give_up(const char *path, const char *why) {
    fprintf(stderr, "pages: %s: %s\n", path, why);
    exit(1);
}

char *template_read(const char *path) {
    char *text = NULL;
    size_t size = 0, got;
    FILE *file = fopen(path, "r");

    if (!file)
        give_up(path, strerror(errno));
    do {
        char *more = realloc(text, size + BUFSIZ + 1);
        if (!more)
            give_up(path, "out of memory");
        text = more;
        got = fread(text + size, 1, BUFSIZ, file);
        size += got;
    } while (got);
    if (ferror(file))
        give_up(path, "cannot read");
    fclose(file);
    text[size] = 0;
    return text;
}

/* A line that is a gap: the length of its name; 0 if it is none. */
static size_t gap_name(const char *line, size_t size) {
    return size > 2 && line[0] == '@' && line[size - 1] == '@' ? size - 2 : 0;
}

void template_fill(const char *path, const template_gap *gaps, const void *context) {
    char *text = template_read(path);

    for (const char *line = text; *line;) {
        const size_t size = strcspn(line, "\n"), name = gap_name(line, size);
        const template_gap *gap = gaps;
        while (name && gap->name &&
               (strlen(gap->name) != name || memcmp(gap->name, line + 1, name) != 0))
            gap++;
        if (name && !gap->name)
            give_up(path, "has a gap that nothing fills");
        if (name)
            gap->put(context);
        else
            printf("%.*s\n", (int)size, line);
        line += size + (line[size] == '\n');
    }
    free(text);
}
