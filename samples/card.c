/* card.png: a test card on which an eye sees what a filter does: a star and stripes of both
 * directions for what is blurred which way, noise on steps for what is removed and what suffers,
 * dots for the filter's own shape, text for what stays readable, a ramp for brightness. */
#include "canvas.h"
#include "draw.h"
#include "font.h"
#include "picture.h"
#include "random.h"

#include <math.h>
#include <string.h>

enum { SIDE = 240, EDGE = 8, FINE = 4 };

static const double PAPER = 160, INK = 28, WHITE = 216;

/* Where what lies. */
typedef struct box {
    int left, top, right, bottom;
} box;
static const box star = {8, 8, 116, 116}, noise = {124, 8, 232, 116}, dots = {160, 124, 232, 168};
static const box upright = {8, 176, 116, 204}, level = {124, 176, 232, 204};
static const box ramp = {8, 212, 232, 232};

static bool within(const box *b, int x, int y) {
    return x >= b->left && x < b->right && y >= b->top && y < b->bottom;
}

/* Rays of 15 degrees: the side changes with each of twelve lines through the middle. */
static bool ray(double x, double y) {
    static const double cosine[12] = {1, 0.9659258,  0.8660254, 0.7071068,  0.5,        0.2588190,
                                      0, -0.2588190, -0.5,      -0.7071068, -0.8660254, -0.9659258};
    bool dark = false;
    for (int i = 0; i < 12; i++) {
        double sine = cosine[i < 6 ? 6 - i : i - 6];
        dark ^= x * cosine[i] + y * sine > 0;
    }
    return dark;
}

/* The share of a pixel, of FINE x FINE points, that the rays cover; what lies outside of the circle
 * is paper. */
static double star_at(int px, int py) {
    const double middle = (star.left + star.right) / 2.0, radius = (star.right - star.left) / 2.0;
    double sum = 0;
    for (int v = 0; v < FINE; v++)
        for (int u = 0; u < FINE; u++) {
            double x = px + (u + 0.5) / FINE - middle, y = py + (v + 0.5) / FINE - middle;
            sum += x * x + y * y > radius * radius ? PAPER : ray(x, y) ? INK : WHITE;
        }
    return sum / (FINE * FINE);
}

/* Four fields, so that one edge runs across and one down. */
static double noise_at(int x, int y, rng *r) {
    static const double fields[2][2] = {{72, 176}, {176, 120}};
    int right = x >= (noise.left + noise.right) / 2, lower = y >= (noise.top + noise.bottom) / 2;
    return fields[lower][right] + 34 * rng_normal(r);
}

/* Pairs of a dark and a bright stripe, each a pixel wider than the pair before it. */
static double stripe(int at) {
    for (int wide = 1;; at -= 2 * wide, wide++)
        if (at < 2 * wide)
            return at < wide ? INK : WHITE;
}

static double dot_at(int x, int y) {
    x = (x - dots.left) % 12 - 6;
    y = (y - dots.top) % 11 - 5;
    return x * x + y * y <= 1 ? WHITE : INK;
}

static double ink_at(const canvas *text, int x, int y, rng *r) {
    if (within(&star, x, y))
        return star_at(x, y);
    if (within(&noise, x, y))
        return noise_at(x, y, r);
    if (within(&dots, x, y))
        return dot_at(x, y);
    if (within(&upright, x, y))
        return stripe(x - upright.left);
    if (within(&level, x, y))
        return stripe(y - level.top);
    if (within(&ramp, x, y))
        return 255.0 * (x - ramp.left) / (ramp.right - ramp.left - 1);
    return PAPER + (INK - PAPER) * (double)canvas_row(text, y)[x];
}

static void write_text(canvas *c) {
    static const font large = {17, 1.5, 0}, small = {9, 0.72, 0};
    static const char title[] = "gpufilter", line[] = "still readable?";
    font_draw(c, &large, title, strlen(title), EDGE + 3, 144);
    font_draw(c, &small, line, strlen(line), EDGE + 3, 163);
}

bool draw_card(const char *path) {
    canvas *text = canvas_new(1);
    if (!text)
        return picture_complain(path, "out of memory");
    write_text(text);
    picture *p = picture_open(path, SIDE, SIDE, 1, 8, PICTURE_SMALL);
    rng r = rng_seed(240);
    for (int y = 0; p && y < SIDE; y++) {
        uint8_t row[SIDE];
        for (int x = 0; x < SIDE; x++) {
            double value = ink_at(text, x, y, &r) + 0.5;
            row[x] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
        if (!picture_row(p, row))
            break;
    }
    canvas_free(text);
    return p && picture_close(p);
}
