/* Colour on terminals: --color, NO_COLOR. */
#ifndef GF_CLI_COLOUR_H
#define GF_CLI_COLOUR_H

#include <stdbool.h>
#include <stdio.h>

typedef enum gf_cli_paint {
    GF_PAINT_OFF,
    GF_PAINT_STRONG,
    GF_PAINT_BAD,
    GF_PAINT_GOOD,
    GF_PAINT_RED,
    GF_PAINT_GREEN,
    GF_PAINT_BLUE
} gf_cli_paint;

/* The choices of --color, NULL-terminated. */
extern const char *const gf_cli_colours[];

/* From now on as that option says: the index of its choice. */
void gf_cli_colour_use(size_t choice);
/* Does what goes to this file have colours? */
bool gf_cli_colour_on(FILE *file);
/* What begins a colour, or GF_PAINT_OFF ends it; "" if there is none. */
const char *gf_cli_paint_text(bool on, gf_cli_paint paint);

#endif
