/* Makes the manual pages and the completions: a text each, on standard output. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "complete.h"
#include "man.h"

static int usage(void) {
    fputs(
        "Usage: pages list         names of all manual pages\n"
        "       pages man [NAME]   one of them, or gpufilter.1\n"
        "in the project's own folder.\n",
        stderr);
    return 2;
}

static void list(void) {
    subject s;

    puts("gpufilter.1");
    for (size_t i = 0; subject_at(i, &s); i++)
        printf("gpufilter-%s.1\n", s.info->name);
    puts("gpufilter.3");
}

/* "gpufilter-smooth.1", or only "smooth". */
static bool find_page(const char *name, subject *s) {
    char file[64];

    for (size_t i = 0; subject_at(i, s); i++) {
        snprintf(file, sizeof file, "gpufilter-%s.1", s->info->name);
        if (strcmp(name, file) == 0 || strcmp(name, s->info->name) == 0)
            return true;
    }
    return false;
}

static bool put_page(const char *name) {
    subject s;

    if (strcmp(name, "gpufilter.1") == 0)
        man_overview();
    else if (strcmp(name, "gpufilter.3") == 0)
        man_library();
    else if (find_page(name, &s))
        man_page(&s);
    else
        return false;
    return true;
}

static bool put_completion(const char *shell) {
    if (strcmp(shell, "bash") == 0)
        complete_bash();
    else if (strcmp(shell, "fish") == 0)
        complete_fish();
    else if (strcmp(shell, "zsh") == 0)
        complete_zsh();
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "list") == 0 && argc == 2)
        list();
    else if (strcmp(what, "man") == 0 && argc <= 3) {
        if (!put_page(argc > 2 ? argv[2] : "gpufilter.1"))
            return usage();
    } else if (argc != 2 || !put_completion(what))
        return usage();
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fprintf(stderr, "pages: standard output: %s\n", strerror(errno));
    return 1;
}
