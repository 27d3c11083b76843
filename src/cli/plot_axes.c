/* Ranges, ticks and numbers along the axes. */
#include "plot_axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK 5
#define NUMBER_SIZE 11.0
#define LABEL_SIZE 12.5
#define RAISED_SIZE 8.0
#define MARGIN 14.0
#define MAX_DECIMALS 15
#define MINUS "\u2212"

static const gf_colour ink = {0.15, 0.15, 0.15}, faint = {0.9, 0.9, 0.9};

/* ---- ranges and ticks ------------------------------------------------------------------------ */

/* The next of 1, 2 and 5 times a power of ten: not below the value, or not above it. */
static double next_round(double value, bool up) {
    static const double factors[] = {1, 2, 5, 10};
    const double power = pow(10, floor(log10(value)));
    size_t i = 0;
    while (i < 3 && factors[i] * power < value)
        i++;
    if (!up && i > 0 && factors[i] * power > value)
        i--;
    return factors[i] * power;
}

void gf_axis_linear(gf_axis *axis, double lo, double hi, int wanted, bool whole, bool grow) {
    double step = next_round((hi - lo) / wanted, true);
    if (!(step > 1e-300)) /* too fine for numbers */
        step = hi - lo;
    if (whole && step < 1)
        step = 1;
    if (grow) {
        lo = floor(lo / step) * step;
        hi = ceil(hi / step) * step;
    }
    axis->lo = lo;
    axis->hi = hi;
    const double first = ceil(lo / step - 1e-6);
    for (int i = 0; i < GF_MAX_TICKS && (first + i) * step <= hi + 1e-6 * step; i++)
        axis->ticks[axis->tick_count++] = (first + i) * step;
    const double most = fabs(lo) > fabs(hi) ? fabs(lo) : fabs(hi);
    if ((most >= 1e5 || most < 1e-2) && most > 1e-300) {
        const int power = (int)floor(log10(most));
        const bool named = power >= -9 && power < 15; /* nano to trillions: read in thousands */
        axis->power = named ? 3 * (int)floor(power / 3.0) : power;
    }
    const double decimals = axis->power - floor(log10(step) + 1e-6);
    axis->decimals = decimals > MAX_DECIMALS ? -1 : decimals > 0 ? (int)decimals : 0;
}

/* Whole powers of ten, or where they would be too few, 1, 2 and 5 times these. */
static void add_log_ticks(gf_axis *axis, bool all) {
    const int first = (int)floor(log10(axis->lo)), last = (int)ceil(log10(axis->hi));
    const int stride = 1 + (last - first - 1) / 8;
    axis->tick_count = 0;
    for (int i = first; i <= last; i += stride) {
        for (int factor = 1; factor <= (all ? 5 : 1); factor += factor == 1 ? 1 : 3) {
            const double tick = factor * pow(10, i);
            if (tick >= axis->lo * (1 - 1e-9) && tick <= axis->hi * (1 + 1e-9) &&
                axis->tick_count < GF_MAX_TICKS)
                axis->ticks[axis->tick_count++] = tick;
        }
    }
}

void gf_axis_log(gf_axis *axis, double lo, double hi, bool below) {
    axis->log = true;
    axis->lo = next_round(lo, false);
    if (below || axis->lo == lo) /* not on the other axis */
        axis->lo *= 0.5;
    axis->hi = next_round(hi, true);
    if (!(axis->hi > 2 * axis->lo))
        axis->hi = 4 * axis->lo;
    add_log_ticks(axis, false);
    if (axis->tick_count < 3)
        add_log_ticks(axis, true);
}

double gf_axis_at(const gf_axis *axis, double value) {
    double share = 0;
    if (!axis->log)
        share = (value - axis->lo) / (axis->hi - axis->lo);
    else if (value > axis->lo)
        share = log10(value / axis->lo) / log10(axis->hi / axis->lo);
    return axis->begin + share * (axis->end - axis->begin);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* "2·10" and, raised, "4": draws them, or only tells how wide they are. */
static double put_power(gf_canvas *canvas, bool draw, double x, double y, double share,
                        const char *before, int power) {
    char ten[64], exponent[16];
    snprintf(ten, sizeof ten, "%s10", before);
    snprintf(exponent, sizeof exponent, "%s%d", power < 0 ? MINUS : "", abs(power));
    const double base = gf_canvas_text_width(canvas, NUMBER_SIZE, ten);
    const double width = base + gf_canvas_text_width(canvas, RAISED_SIZE, exponent);
    if (draw) {
        x -= share * width;
        gf_canvas_text(canvas, x, y, NUMBER_SIZE, 0, false, ten);
        gf_canvas_text(canvas, x + base, y - NUMBER_SIZE * 0.4, RAISED_SIZE, 0, false, exponent);
    }
    return width;
}

static double put_number(gf_canvas *canvas, bool draw, const gf_axis *axis, double value, double x,
                         double y, double share) {
    char text[48] = "";
    if (axis->log && axis->lo >= 0.01 && axis->hi <= 1000) {
        snprintf(text, sizeof text, "%g", value);
    } else if (axis->log) {
        const double power = floor(log10(value) + 1e-6);
        const double factor = value / pow(10, power);
        if (factor > 1.5)
            snprintf(text, sizeof text, "%.0f\u00b7", factor);
        return put_power(canvas, draw, x, y, share, text, (int)power);
    } else {
        const double shown = value / pow(10, axis->power);
        snprintf(text, sizeof text, axis->decimals < 0 ? "%s%.*g" : "%s%.*f",
                 shown < 0 ? MINUS : "", axis->decimals < 0 ? 17 : axis->decimals, fabs(shown));
    }
    if (draw)
        gf_canvas_text(canvas, x, y, NUMBER_SIZE, share, false, text);
    return gf_canvas_text_width(canvas, NUMBER_SIZE, text);
}

static double widest_number(gf_canvas *canvas, const gf_axis *axis) {
    double widest = 0;
    for (size_t i = 0; i < axis->tick_count; i++) {
        const double width = put_number(canvas, false, axis, axis->ticks[i], 0, 0, 0);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* ---- the page -------------------------------------------------------------------------------- */

void gf_axes_place(gf_canvas *canvas, gf_axis *x, gf_axis *y, double width, double height,
                   bool legend) {
    x->begin = MARGIN + LABEL_SIZE + 8 + widest_number(canvas, y) + TICK + 3;
    x->end = width - MARGIN - widest_number(canvas, x) / 2;
    y->begin = height - MARGIN - LABEL_SIZE - 8 - NUMBER_SIZE - TICK - 3;
    y->end = MARGIN + (legend || y->power ? 20 : 0);
    for (size_t i = 0; i < y->tick_count; i++) {
        const double at = gf_axis_at(y, y->ticks[i]);
        gf_canvas_move(canvas, x->begin, at);
        gf_canvas_line(canvas, x->end, at);
    }
    gf_canvas_stroke(canvas, faint, 0.75);
}

/* Ticks without a number, at 2 to 9 times each power of ten. */
static void draw_minor(gf_canvas *canvas, const gf_axis *y, double x) {
    if (y->hi / y->lo > 1e9) /* too close */
        return;
    const int last = (int)floor(log10(y->hi));
    for (int power = (int)floor(log10(y->lo)); power <= last; power++) {
        for (int i = 2; i < 10; i++) {
            const double value = i * pow(10, power);
            if (value < y->lo * (1 + 1e-9) || value > y->hi * (1 + 1e-9))
                continue;
            gf_canvas_move(canvas, x, gf_axis_at(y, value));
            gf_canvas_line(canvas, x - TICK * 0.5, gf_axis_at(y, value));
        }
    }
    gf_canvas_stroke(canvas, ink, 0.75);
}

void gf_axes_draw(gf_canvas *canvas, const gf_axis *x, const gf_axis *y) {
    gf_canvas_move(canvas, x->begin, y->end);
    gf_canvas_line(canvas, x->begin, y->begin);
    gf_canvas_line(canvas, x->end, y->begin);
    for (size_t i = 0; i < x->tick_count; i++) {
        const double at = gf_axis_at(x, x->ticks[i]);
        gf_canvas_move(canvas, at, y->begin);
        gf_canvas_line(canvas, at, y->begin + TICK);
    }
    for (size_t i = 0; i < y->tick_count; i++) {
        const double at = gf_axis_at(y, y->ticks[i]);
        gf_canvas_move(canvas, x->begin, at);
        gf_canvas_line(canvas, x->begin - TICK, at);
    }
    gf_canvas_stroke(canvas, ink, 1);
    if (y->log)
        draw_minor(canvas, y, x->begin);

    const double numbers = y->begin + TICK + 3 + NUMBER_SIZE * 0.8;
    for (size_t i = 0; i < x->tick_count; i++)
        put_number(canvas, true, x, x->ticks[i], gf_axis_at(x, x->ticks[i]), numbers, 0.5);
    for (size_t i = 0; i < y->tick_count; i++)
        put_number(canvas, true, y, y->ticks[i], x->begin - TICK - 3,
                   gf_axis_at(y, y->ticks[i]) + NUMBER_SIZE * 0.36, 1);
    const double labels = numbers + 8 + LABEL_SIZE;
    gf_canvas_text(canvas, (x->begin + x->end) / 2, labels, LABEL_SIZE, 0.5, false, x->label);
    gf_canvas_text(canvas, MARGIN + LABEL_SIZE * 0.6, (y->begin + y->end) / 2, LABEL_SIZE, 0.5,
                   true, y->label);
    if (x->power)
        put_power(canvas, true, x->end, labels, 1, "\u00d7 ", x->power);
    if (y->power)
        put_power(canvas, true, x->begin, y->end - 9, 0, "\u00d7 ", y->power);
}
