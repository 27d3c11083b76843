/* A sheet of paper and the pen that draws on it. */
#ifndef SAMPLES_CANVAS_H
#define SAMPLES_CANVAS_H

#include <stddef.h>

enum { CANVAS_WIDTH = 850, CANVAS_HEIGHT = 1100 };

/* Strokes are placed and measured in units; a unit is `scale` pixels. */
typedef struct canvas {
    int scale, width, height; /* CANVAS_WIDTH x CANVAS_HEIGHT units, in pixels */
    float *ink;               /* row by row; 0 is paper, 1 is black */
} canvas;

/* An empty sheet; NULL if there is no memory. */
canvas *canvas_new(int scale);
void canvas_free(canvas *c); /* NULL is fine */

static inline const float *canvas_row(const canvas *c, int y) {
    return c->ink + (size_t)y * (size_t)c->width;
}

/* An oval nib: half the widths of the strokes that it leaves going down and going across. */
typedef struct pen {
    double down, across;
    double ink;
} pen;

/* A straight stroke with round ends and a smooth edge. */
void canvas_line(canvas *c, pen p, double x0, double y0, double x1, double y1);

/* A quadratic Bezier curve from (x0, y0) to (x1, y1) with the control point (cx, cy). */
void canvas_curve(canvas *c, pen p, double x0, double y0, double cx, double cy, double x1,
                  double y1);

#endif
