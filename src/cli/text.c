/* Text output: colours, the bar, errors, and file names, which may contain any bytes. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "ranks.h"

/* ---- ranks of a program without MPI ---------------------------------------------------------- */

const gf_cli_peers *gf_cli_ranks(void) {
    static const gf_cli_peers alone = {.count = 1};
    const gf_cli_peers *peers = gf_mpi_peers ? gf_mpi_peers() : NULL;
    return peers ? peers : &alone;
}

/* ---- colours --------------------------------------------------------------------------------- */

/* Process-wide, as the terminal is. */
static size_t colour_choice = GF_COLOUR_AUTO;

void gf_cli_colour_use(size_t choice) {
    colour_choice = choice;
}

bool gf_cli_is_terminal(FILE *file) {
    const char *term = getenv("TERM");
    return isatty(fileno(file)) && term && *term && strcmp(term, "dumb") != 0;
}

bool gf_cli_colour_on(FILE *file) {
    if (colour_choice != GF_COLOUR_AUTO)
        return colour_choice == GF_COLOUR_ALWAYS;
    const char *no = getenv("NO_COLOR"); /* https://no-color.org: set, and not empty */
    return gf_cli_is_terminal(file) && !gf_cli_ranks()->launched && !(no && *no);
}

/* True while the bar is on the screen. Read by the signal handler. */
static volatile sig_atomic_t bar_shown;

void gf_cli_bar_draw(const char *line) {
    bar_shown = 1;
    (void)!write(STDERR_FILENO, line, strlen(line));
}

void gf_cli_bar_hide(void) {
    if (bar_shown)
        gf_cli_bar_draw(GF_CLI_ERASE);
    bar_shown = 0;
}

void gf_cli_print_error(const gf_error *error) {
    gf_cli_bar_hide();
    fflush(stdout);
    fputs(gf_cli_colour_on(stderr) ? GF_PAINT_ERROR "gpufilter:" GF_PAINT_OFF " " : "gpufilter: ",
          stderr);
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

void gf_cli_print_name(FILE *file, const char *name, const char *standard) {
    gf_cli_print_text(file, strcmp(name, "-") == 0 ? standard : name);
}

void gf_cli_list_output(const char *name) {
    if (strcmp(name, "-") == 0) { /* standard output is reserved for names */
        fputs("standard output\n", stderr);
        return;
    }
    if (isatty(STDOUT_FILENO))
        gf_cli_print_text(stdout, name);
    else
        fputs(name, stdout);
    putchar('\n');
}
