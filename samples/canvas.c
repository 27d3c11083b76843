#include "canvas.h"

#include <math.h>

/* The sheet lay slightly askew on the scanner. */
static const double SKEW = 0.0042, SHIFT_X = -2.5, SHIFT_Y = 2.0;

/* From the page to the scan, in units in which the nib is round. */
static void place(double x, double y, double squeeze, double *u, double *v) {
    *u = (x + SKEW * y + SHIFT_X) * squeeze;
    *v = y - SKEW * x + SHIFT_Y;
}

static int clamp(double value, int high) {
    return value < 0 ? 0 : value > high ? high : (int)value;
}

void canvas_line(canvas *c, pen p, double x0, double y0, double x1, double y1) {
    double squeeze = p.across / p.down, au, av, bu, bv;
    place(x0, y0, squeeze, &au, &av);
    place(x1, y1, squeeze, &bu, &bv);
    double du = bu - au, dv = bv - av, square = du * du + dv * dv, edge = p.down + 1.5;
    int left = clamp((au < bu ? au : bu) / squeeze - edge, CANVAS_WIDTH - 1);
    int right = clamp((au < bu ? bu : au) / squeeze + edge, CANVAS_WIDTH - 1);
    int top = clamp((av < bv ? av : bv) - edge, CANVAS_HEIGHT - 1);
    int bottom = clamp((av < bv ? bv : av) + edge, CANVAS_HEIGHT - 1);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            double u = (x + 0.5) * squeeze - au, v = y + 0.5 - av;
            double t = square > 0 ? (u * du + v * dv) / square : 0;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            u -= t * du;
            v -= t * dv;
            double cover = p.across + 0.5 - sqrt(u * u + v * v);
            float ink = (float)(p.ink * (cover > 1 ? 1 : cover));
            if (ink > c->ink[y][x]) /* strokes that cross do not get darker */
                c->ink[y][x] = ink;
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
