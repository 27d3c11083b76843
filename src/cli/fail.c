/* Text for people: errors and names, which may hold any bytes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "colour.h"

void gf_cli_complain(const gf_error *error) {
    const bool colour = gf_cli_colour_on(stderr);
    fflush(stdout);
    fprintf(stderr, "%sgpufilter:%s ", gf_cli_paint_text(colour, GF_PAINT_BAD),
            gf_cli_paint_text(colour, GF_PAINT_OFF));
    gf_cli_print_text(stderr, error->message);
    putc('\n', stderr);
}

void gf_cli_print_text(FILE *file, const char *text) {
    while (*text) {
        const size_t size = gf_printable(text);
        if (size)
            fwrite(text, 1, size, file);
        else
            putc('?', file);
        text += size ? size : 1;
    }
}

void gf_cli_list_output(const char *name) {
    if (strcmp(name, "-") == 0) { /* nothing but data goes there */
        fputs("standard output\n", stderr);
        return;
    }
    if (isatty(STDOUT_FILENO))
        gf_cli_print_text(stdout, name);
    else
        fputs(name, stdout);
    putchar('\n');
}

void gf_cli_print_name(FILE *file, const char *name, const char *standard) {
    gf_cli_print_text(file, strcmp(name, "-") == 0 ? standard : name);
}
