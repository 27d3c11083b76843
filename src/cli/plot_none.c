/* What stands for plots where cairo's header was not there when gpufilter was built. */
#include "plot.h"

const bool gf_cli_has_plots = false;

gf_status gf_cli_plot_open(const gf_cli_line *line, gf_cli_plot **plot, gf_error *error) {
    (void)line;
    *plot = NULL;
    return gf_set_error(
        error, GF_FAILED,
        "--plot: this gpufilter was built without cairo and draws no plots; install "
        "the package libcairo2-dev and build it again");
}

gf_status gf_cli_plot_draw(gf_cli_plot *plot, const gf_result *result, gf_error *error) {
    (void)plot;
    (void)result;
    return gf_set_error(error, GF_FAILED, "built without cairo");
}

gf_output_file *gf_cli_plot_file(const gf_cli_plot *plot) {
    (void)plot;
    return NULL;
}

void gf_cli_plot_close(gf_cli_plot *plot) {
    (void)plot;
}
