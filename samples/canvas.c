#include "canvas.h"

#include <math.h>
#include <stdlib.h>

/* The sheet lay slightly askew on the scanner. */
static const double SKEW = 0.0042, SHIFT_X = -2.5, SHIFT_Y = 2.0;

/* From the page to the pixels of the scan, stretched so that the nib is round. */
static void place(double x, double y, double squeeze, int scale, double *u, double *v) {
    *u = (x + SKEW * y + SHIFT_X) * squeeze * scale;
    *v = (y - SKEW * x + SHIFT_Y) * scale;
}

canvas *canvas_new(int scale) {
    canvas *c = malloc(sizeof *c);
    if (!c)
        return NULL;
    *c = (canvas){.scale = scale, .width = CANVAS_WIDTH * scale, .height = CANVAS_HEIGHT * scale};
    c->ink = calloc((size_t)c->width * (size_t)c->height, sizeof *c->ink);
    if (!c->ink) {
        free(c);
        return NULL;
    }
    return c;
}

void canvas_free(canvas *c) {
    if (c)
        free(c->ink);
    free(c);
}

static int clamp(double value, int high) {
    return value < 0 ? 0 : value > high ? high : (int)value;
}

void canvas_line(canvas *c, pen p, double x0, double y0, double x1, double y1) {
    double squeeze = p.across / p.down, au, av, bu, bv;
    double down = p.down * c->scale, across = p.across * c->scale;
    place(x0, y0, squeeze, c->scale, &au, &av);
    place(x1, y1, squeeze, c->scale, &bu, &bv);
    double du = bu - au, dv = bv - av, square = du * du + dv * dv, edge = down + 1.5;
    int left = clamp((au < bu ? au : bu) / squeeze - edge, c->width - 1);
    int right = clamp((au < bu ? bu : au) / squeeze + edge, c->width - 1);
    int top = clamp((av < bv ? av : bv) - edge, c->height - 1);
    int bottom = clamp((av < bv ? bv : av) + edge, c->height - 1);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            double u = (x + 0.5) * squeeze - au, v = y + 0.5 - av;
            double t = square > 0 ? (u * du + v * dv) / square : 0;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            u -= t * du;
            v -= t * dv;
            double cover = across + 0.5 - sqrt(u * u + v * v);
            float ink = (float)(p.ink * (cover > 1 ? 1 : cover));
            float *at = c->ink + (size_t)y * (size_t)c->width + (size_t)x;
            if (ink > *at) /* strokes that cross do not get darker */
                *at = ink;
        }
}

void canvas_curve(canvas *c, pen p, double x0, double y0, double cx, double cy, double x1,
                  double y1) {
    enum { PIECES = 8 };
    double x = x0, y = y0;
    for (int i = 1; i <= PIECES; i++) {
        double t = (double)i / PIECES, s = 1 - t;
        double nx = s * s * x0 + 2 * s * t * cx + t * t * x1;
        double ny = s * s * y0 + 2 * s * t * cy + t * t * y1;
        canvas_line(c, p, x, y, nx, ny);
        x = nx;
        y = ny;
    }
}
