/* Text in a font of strokes. */
#ifndef SAMPLES_FONT_H
#define SAMPLES_FONT_H

#include "canvas.h"

#include <stddef.h>

typedef struct font {
    double cap;    /* height of a capital, in pixels */
    double weight; /* half of a stem's width, in pixels */
    double slant;  /* 0 is upright */
} font;

/* Width of the first n characters of a text. */
double font_width(const font *f, const char *text, size_t n);

/* Draws n characters from x on, on a base line; returns where the next one would begin. */
double font_draw(canvas *c, const font *f, const char *text, size_t n, double x, double base);

#endif
