/* A page to draw on, in points from its top left. */
#ifndef GF_CLI_PLOT_CANVAS_H
#define GF_CLI_PLOT_CANVAS_H

#include "cli.h"

typedef struct gf_canvas gf_canvas;

typedef struct gf_colour {
    double r, g, b;
} gf_colour;

/* A white page. GF_FAILED where the machine lacks what draws it. */
gf_status gf_canvas_open(bool svg, double width, double height, gf_canvas **canvas,
                         gf_error *error);
/* Makes a path, and uses it up. */
void gf_canvas_move(gf_canvas *canvas, double x, double y);
void gf_canvas_line(gf_canvas *canvas, double x, double y);
void gf_canvas_box(gf_canvas *canvas, double x0, double y0, double x1, double y1);
void gf_canvas_stroke(gf_canvas *canvas, gf_colour colour, double width);
void gf_canvas_fill(gf_canvas *canvas, gf_colour colour, double opacity, bool keep_path);
/* Text that has x at this share of its width and y as its baseline; upwards: turned left. */
void gf_canvas_text(gf_canvas *canvas, double x, double y, double size, double share, bool upwards,
                    const char *text);
double gf_canvas_text_width(gf_canvas *canvas, double size, const char *text);
/* The whole file; lives as long as the canvas. */
gf_status gf_canvas_finish(gf_canvas *canvas, const void **data, size_t *size, gf_error *error);
void gf_canvas_close(gf_canvas *canvas);

#endif
