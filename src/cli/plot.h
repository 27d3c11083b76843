/* Charts of results, as pictures. */
#ifndef GF_CLI_PLOT_H
#define GF_CLI_PLOT_H

#include "cli.h"

/* A plot that is going to be drawn. */
typedef struct gf_cli_plot gf_cli_plot;

/* Was it built in? */
extern const bool gf_cli_has_plots;

/* By the options plot, plot-format, log, force and sync; refuses at once what could not be drawn or
 * written. */
gf_status gf_cli_plot_open(const gf_cli_line *line, gf_cli_plot **plot, gf_error *error);
/* Where it is drawn. */
gf_output_file *gf_cli_plot_file(const gf_cli_plot *plot);
/* Draws the first chart of the result; its file then lacks only its name. */
gf_status gf_cli_plot_draw(gf_cli_plot *plot, const gf_result *result, gf_error *error);
void gf_cli_plot_close(gf_cli_plot *plot);

#endif
