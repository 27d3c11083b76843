#include "colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"

enum { AUTO, ALWAYS, NEVER };

const char *const gf_cli_colours[] = {
    [AUTO] = "auto", [ALWAYS] = "always", [NEVER] = "never", NULL};

/* Process-wide, as the terminal is. */
static size_t chosen = AUTO;

void gf_cli_colour_use(size_t choice) {
    chosen = choice;
}

/* https://no-color.org: set to anything but nothing. */
static bool is_wanted(void) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

bool gf_cli_colour_on(FILE *file) {
    return chosen == ALWAYS ||
           (chosen == AUTO && isatty(fileno(file)) && !gf_cli_this_rank()->launched && is_wanted());
}

/* The eight colours that any terminal has, as its user likes them. */
const char *gf_cli_paint_text(bool on, gf_cli_paint paint) {
    static const char *const texts[] = {
        [GF_PAINT_OFF] = "\033[0m",   [GF_PAINT_STRONG] = "\033[1m", [GF_PAINT_BAD] = "\033[1;31m",
        [GF_PAINT_GOOD] = "\033[32m", [GF_PAINT_RED] = "\033[31m",   [GF_PAINT_GREEN] = "\033[32m",
        [GF_PAINT_BLUE] = "\033[34m",
    };
    return on ? texts[paint] : "";
}
