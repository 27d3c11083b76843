/* The two axes of a plot. */
#ifndef GF_CLI_PLOT_AXES_H
#define GF_CLI_PLOT_AXES_H

#include "plot_canvas.h"

#define GF_MAX_TICKS 24

typedef struct gf_axis {
    const char *label;
    double lo, hi;     /* values at its ends */
    double begin, end; /* where those lie on the page */
    bool log;
    double ticks[GF_MAX_TICKS]; /* with a number */
    size_t tick_count;
    int power;    /* numbers are in units of 10^power, unless log */
    int decimals; /* of the numbers; -1: as they come */
} gf_axis;

/* From lo to hi, about `wanted` ticks in steps of 1, 2 or 5; whole: only at whole numbers; grow: to
 * the next ticks on both ends. */
void gf_axis_linear(gf_axis *axis, double lo, double hi, int wanted, bool whole, bool grow);
/* Holds [lo, hi], which is above zero. below: with room under the lowest. */
void gf_axis_log(gf_axis *axis, double lo, double hi, bool below);
/* Where a value lies on the page. */
double gf_axis_at(const gf_axis *axis, double value);

/* Puts both axes on the page, leaving room for what is written beside them, and draws lines across
 * at the ticks of y; draw the data next, and then the axes over it. */
void gf_axes_place(gf_canvas *canvas, gf_axis *x, gf_axis *y, double width, double height,
                   bool legend);
void gf_axes_draw(gf_canvas *canvas, const gf_axis *x, const gf_axis *y);

#endif
