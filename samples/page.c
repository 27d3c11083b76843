/* page.png: a page of a printed text with a figure and a table, as a flat-bed scanner sees it. */
#include "canvas.h"
#include "draw.h"
#include "font.h"
#include "noise.h"
#include "picture.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

static const double LEFT = 92, RIGHT = 762, LINE = 20.5;
static const font body = {9.6, 0.72, 0}, italic = {9.6, 0.70, 0.22}, heading = {11.5, 1.25, 0};
static const font title = {20, 1.9, 0}, tiny = {7.8, 0.62, 0};
static const pen rule = {0.7, 0.7, 0.9}, faint = {0.5, 0.5, 0.25}, noisy = {0.6, 0.6, 0.5};
static const pen strong = {1.2, 1.2, 1.0};

static const char on_noise[] =
    "Every measured picture is the sum of two things: what stood before the lens, and an error "
    "that changes from pixel to pixel. The mean of many neighbours has a smaller error than each "
    "of them, and so the oldest remedy is to average. Its price is well known. Where a bright "
    "region meets a dark one the mean belongs to neither, and the edge, which carried most of the "
    "meaning, turns into a ramp. A median keeps the step but rounds the corners; it also removes "
    "a lone outlier completely, however far off it is.";
static const char on_edges[] =
    "A filter that keeps edges weighs each neighbour twice: by how near it lies, and by how much "
    "its value differs. Across a step the second weight is almost zero, so that the two sides do "
    "not mix (Figure 1). With a guide the difference is taken from another picture, free of noise.";
static const char on_samples[] =
    "The width of a sample bounds what a filter can promise. Integers are exact but have to be "
    "rounded once, at the end; binary fractions reach further, yet the order of a sum shows in its "
    "last digits. Table 1 lists the formats that files of pictures commonly hold.";
static const char on_end[] =
    "A window that hangs over the border needs values that nobody measured. To repeat the last row "
    "is the common choice; to mirror the picture keeps its slope, and to shrink the window invents "
    "nothing at all. Whoever compares two filters should therefore state the format, the treatment of the border "
    "and the rounding. Without them even equal formulas give unequal pictures.";

static double text(canvas *c, const font *f, const char *s, double x, double y) {
    return font_draw(c, f, s, strlen(s), x, y);
}

static void centred(canvas *c, const font *f, const char *s, double middle, double y) {
    text(c, f, s, middle - font_width(f, s, strlen(s)) / 2, y);
}

/* Widens the spaces of a line until it fills the column; a paragraph's last line stays loose. */
static void justify(canvas *c, const char *s, size_t length, double y, bool last) {
    size_t spaces = 0;
    for (size_t i = 0; i < length; i++)
        spaces += s[i] == ' ';
    double rest = RIGHT - LEFT - font_width(&body, s, length), x = LEFT;
    double wider = last || spaces == 0 ? 0 : rest / (double)spaces;
    for (size_t i = 0; i < length; i++)
        x = font_draw(c, &body, s + i, 1, x, y) + (s[i] == ' ' ? wider : 0);
}

static double paragraph(canvas *c, const char *s, double y) {
    while (*s) {
        size_t fits = 0;
        for (size_t n = 1; n <= strlen(s); n++)
            if ((s[n] == ' ' || !s[n]) && font_width(&body, s, n) <= RIGHT - LEFT)
                fits = n;
        if (fits == 0) /* a word wider than the column overhangs it */
            fits = strcspn(s, " ");
        justify(c, s, fits, y, !s[fits]);
        s += fits + (s[fits] == ' ');
        y += LINE;
    }
    return y;
}

enum { POINTS = 120 };

/* A noisy step, and the same after a filter that weighs by distance and by difference. */
static void signals(double *raw, double *smooth) {
    rng r = rng_seed(7);
    for (int i = 0; i < POINTS; i++) {
        double t = (double)i / POINTS;
        double level = t < 0.36 ? 0.24 : t < 0.72 ? 0.78 - 0.25 * (t - 0.36) : 0.42;
        raw[i] = level + 0.055 * rng_normal(&r);
    }
    for (int i = 0; i < POINTS; i++) {
        double sum = 0, total = 0;
        for (int k = i < 9 ? 0 : i - 9; k < POINTS && k <= i + 9; k++) {
            double far = (k - i) / 6.0, off = (raw[k] - raw[i]) / 0.17, off2 = off * off;
            double weight = 1 / ((1 + far * far) * (1 + off2 * off2 * off2));
            sum += weight * raw[k];
            total += weight;
        }
        smooth[i] = sum / total;
    }
}

static void curve(canvas *c, pen p, const double *v, double x, double y, double w, double h) {
    for (int i = 1; i < POINTS; i++)
        canvas_line(c, p, x + w * (i - 1) / (POINTS - 1), y - h * v[i - 1],
                    x + w * i / (POINTS - 1), y - h * v[i]);
}

static double figure(canvas *c, double y) {
    static const char *const marks[] = {"0", "0.25", "0.5", "0.75", "1"};
    static const char *const places[] = {"0", "30", "60", "90", "120"};
    const double x = 160, w = 560, h = 208, base = y + h;
    for (int i = 0; i <= 4; i++) {
        double up = base - h * i / 4, along = x + w * i / 4;
        canvas_line(c, faint, x, up, x + w, up);
        canvas_line(c, faint, along, base, along, y);
        canvas_line(c, rule, x - 5, up, x, up);
        canvas_line(c, rule, along, base, along, base + 5);
        text(c, &tiny, marks[i], x - 10 - font_width(&tiny, marks[i], strlen(marks[i])), up + 4);
        centred(c, &tiny, places[i], along + 1, base + 18);
    }
    canvas_line(c, rule, x, base, x + w, base);
    canvas_line(c, rule, x, y, x, base);
    double raw[POINTS], smooth[POINTS];
    signals(raw, smooth);
    curve(c, noisy, raw, x, base, w, h);
    curve(c, strong, smooth, x, base, w, h);
    canvas_line(c, noisy, x + 420, y + 20, x + 455, y + 20);
    text(c, &tiny, "measured", x + 465, y + 24);
    canvas_line(c, strong, x + 420, y + 38, x + 455, y + 38);
    text(c, &tiny, "filtered", x + 465, y + 42);
    centred(c, &italic, "Figure 1. One row across two edges, before and after a bilateral filter.",
            (LEFT + RIGHT) / 2, base + 44);
    return base + 44 + 1.7 * LINE;
}

static double table(canvas *c, double y) {
    static const char *const cells[4][4] = {{"Format", "Bits", "Values", "Found in"},
                                            {"byte", "8", "256", "screens, photographs"},
                                            {"word", "16", "65536", "microscopes, raw sensors"},
                                            {"binary32", "32", "-", "rendering, results"}};
    static const double columns[4] = {190, 320, 410, 510};
    centred(c, &italic, "Table 1. Samples of pictures.", (LEFT + RIGHT) / 2, y);
    y += 12;
    canvas_line(c, strong, 178, y, 700, y);
    for (int row = 0; row < 4; row++) {
        y += LINE + 2;
        for (int i = 0; i < 4; i++)
            text(c, row == 0 ? &heading : &body, cells[row][i], columns[i], y - 5);
        if (row > 0)
            continue;
        y += 3;
        canvas_line(c, rule, 178, y, 700, y);
    }
    y += 4;
    canvas_line(c, strong, 178, y, 700, y);
    return y + 1.7 * LINE;
}

static void compose(canvas *c) {
    const double middle = (LEFT + RIGHT) / 2;
    text(c, &tiny, "ON THE FILTERING OF PICTURES", LEFT, 62);
    text(c, &tiny, "17", RIGHT - 14, 62);
    canvas_line(c, rule, LEFT, 70, RIGHT, 70);
    centred(c, &title, "Smooth, but Keep the Edges", middle, 118);
    centred(c, &italic, "In which a mean is taken, and something is lost", middle, 144);
    text(c, &heading, "1   Noise and its remedy", LEFT, 184);
    double y = paragraph(c, on_noise, 208);
    y = paragraph(c, on_edges, y + 6);
    y = figure(c, y + 4);
    text(c, &heading, "2   Samples", LEFT, y);
    y = paragraph(c, on_samples, y + 24);
    y = table(c, y + 12);
    text(c, &heading, "3   Borders", LEFT, y + 4);
    paragraph(c, on_end, y + 28);
}

/* Darker at the left, where the page bends into the binding and leaves the glass. */
static double paper(int x, int y) {
    double gutter = 1.0 - smooth_step(-40, 70, x);
    double cloud = noise3_octaves(x * 0.006, y * 0.006, 0, 2, 91);
    double fibre = noise3_octaves(x * 0.16, y * 0.16, 0.5, 2, 95);
    return 240.0 + 7.0 * cloud + 4.0 * (fibre - 0.5) - 70.0 * gutter;
}

static uint8_t scan(float ink, int x, int y, rng *r) {
    double soak = 0.90 + 0.16 * (noise3(x * 0.35, y * 0.35, 0.5, 99) - 0.5);
    double value = paper(x, y) * (1.0 - soak * (double)ink) + 12.0 * (double)ink;
    value += 2.2 * rng_normal(r) + 0.5;
    if (hash_unit(x, y, 0, 77) > 0.99996) /* dust on the glass */
        value -= 90;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

bool draw_page(const char *path) {
    canvas *c = canvas_new(1);
    if (!c)
        return picture_complain(path, "out of memory");
    compose(c);
    picture *p = picture_open(path, CANVAS_WIDTH, CANVAS_HEIGHT, 1, 8, PICTURE_SMALL);
    rng r = rng_seed(850);
    for (int y = 0; p && y < CANVAS_HEIGHT; y++) {
        uint8_t row[CANVAS_WIDTH];
        for (int x = 0; x < CANVAS_WIDTH; x++)
            row[x] = scan(canvas_row(c, y)[x], x, y, &r);
        if (!picture_row(p, row))
            break;
    }
    canvas_free(c);
    return p && picture_close(p);
}

bool draw_text(const char *path, int scale) {
    canvas *c = canvas_new(scale);
    uint8_t *row = c ? malloc((size_t)c->width) : NULL;
    if (!row) {
        canvas_free(c);
        return picture_complain(path, "out of memory");
    }
    compose(c);
    picture *p = picture_open(path, (uint32_t)c->width, (uint32_t)c->height, 1, 8, PICTURE_FAST);
    for (int y = 0; p && y < c->height; y++) {
        for (int x = 0; x < c->width; x++)
            row[x] = (uint8_t)(255.5f - 255.0f * canvas_row(c, y)[x]);
        if (!picture_row(p, row))
            break;
    }
    free(row);
    canvas_free(c);
    return p && picture_close(p);
}
