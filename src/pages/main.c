/* Makes the manual pages and the completions, in the project's own folder. */
#include <stdlib.h>

#include "pages.h"

static FILE *file_create(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        source_fail(path);
    return file;
}

static void file_close(FILE *file, const char *path) {
    const bool failed = ferror(file);
    if (fclose(file) || failed)
        source_fail(path);
}

/* Make the page of a subject, or the overview for NULL. */
static void make_page(const char *folder, const char *date, const subject *s) {
    char path[4096], *text = NULL;
    size_t size = 0;
    FILE *page = open_memstream(&text, &size);
    snprintf(path, sizeof path, "%s/man/gpufilter%s%s.1", folder, s ? "-" : "",
             s ? s->info->name : "");
    if (!page)
        source_fail(path);
    if (s)
        man_subject(s, date, page);
    else
        man_overview(date, page);
    file_close(page, path);
    FILE *file = file_create(path);
    roff_put(text, file);
    file_close(file, path);
    free(text);
}

static void make_completion(const char *folder, const char *name, const char *template_path) {
    char path[4096];
    snprintf(path, sizeof path, "%s/completions/%s", folder, name);
    FILE *file = file_create(path);
    template_fill(template_path, complete_gap, file);
    file_close(file, path);
}

int main(int argc, char **argv) {
    subject s;
    if (argc != 3) {
        fputs("Usage: pages BUILD DATE\nmakes BUILD/man/*.1 and BUILD/completions/*\n", stderr);
        return 2;
    }
    make_page(argv[1], argv[2], NULL);
    for (size_t i = 0; subject_at(i, &s); i++)
        make_page(argv[1], argv[2], &s);
    make_completion(argv[1], "gpufilter.bash", "src/pages/gpufilter.bash.in");
    make_completion(argv[1], "_gpufilter", "src/pages/gpufilter.zsh.in");
    make_completion(argv[1], "gpufilter.fish", "src/pages/gpufilter.fish.in");
    return 0;
}
