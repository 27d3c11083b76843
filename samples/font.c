#include "font.h"

#include <stdbool.h>
#include <string.h>

/* Outlines of ASCII's printable characters: strokes, separated by spaces. A point is two digits of
 * base 36, x and y; y is 8 on the base line, 18 on a small letter's top and 22 on a capital's. A
 * star makes a point the control of a quadratic curve; between two such points the curve passes
 * through their middle. "?" stands for what the font lacks. */
static const struct {
    char character;
    char width;
    const char *strokes;
} glyphs[] = {
    {'a', '8', "1g*1i4i*8i8e88 8e4e*0e0b*0838*888c"},
    {'b', '9', "0m08 0d*0i*9i*98*080d"},
    {'c', '8', "8g*7i5i*0i0d*0858*788a"},
    {'d', '9', "9m98 9d*9i*0i*08*989d"},
    {'e', '9', "0d9d*9i5i*0i0d*0858*789a"},
    {'f', '6', "6m*3m3i38 0i6i"},
    {'g', '9', "9i98*9343*1315 9d*9i*0i*08*989d"},
    {'h', '8', "0m08 0d*0i5i*8i8e88"},
    {'i', '0', "0i08 0m0m"},
    {'j', '2', "2i26*2303 2m2m"},
    {'k', '8', "0m08 7i0c 3e88"},
    {'l', '0', "0m08"},
    {'m', 'e', "0i08 0d*0i4i*7i7e78 7d*7ibi*eieee8"},
    {'n', '8', "0i08 0d*0i5i*8i8e88"},
    {'o', '9', "0d*0i*9i*98*080d"},
    {'p', '9', "0i03 0d*0i*9i*98*080d"},
    {'q', '9', "9i93 9d*9i*0i*08*989d"},
    {'r', '5', "0i08 0d*0i5i"},
    {'s', '8', "7g*7i4i*0i0g*0d4d*8d8b*8848*080a"},
    {'t', '6', "3m3b*3868 0i6i"},
    {'u', '8', "0i0c*0838*888d 8i88"},
    {'v', '8', "0i488i"},
    {'w', 'e', "0i387ib8ei"},
    {'x', '8', "0i88 8i08"},
    {'y', '8', "0i48 8i35*2303"},
    {'z', '8', "0i8i0888"},
    {'A', 'c', "086mc8 2dad"},
    {'B', 'a', "080m5m*9m9i*9f5f0f 5f*afab*a85808"},
    {'C', 'b', "bj*am6m*0m0f*0868*a8bb"},
    {'D', 'b', "080m5m*bmbf*b85808"},
    {'E', '9', "9m0m0898 0f8f"},
    {'F', '9', "9m0m08 0f8f"},
    {'G', 'b', "bj*am6m*0m0f*0868*b8bcbe7e"},
    {'H', 'a', "0m08 ama8 0faf"},
    {'I', '0', "0m08"},
    {'J', '6', "6m6c*6838*080b"},
    {'K', 'a', "0m08 9m0d 3ga8"},
    {'L', '9', "0m0898"},
    {'M', 'c', "080m6acmc8"},
    {'N', 'a', "080ma8am"},
    {'O', 'c', "0f*0m*cm*c8*080f"},
    {'P', 'a', "080m6m*amai*ae6e0e"},
    {'Q', 'c', "0f*0m*cm*c8*080f 7bc7"},
    {'R', 'a', "080m6m*amai*ae6e0e 6ea8"},
    {'S', 'a', "9j*9m5m*0m0i*0f5f*afab*a858*080b"},
    {'T', 'a', "0mam 5m58"},
    {'U', 'a', "0m0d*0858*a8adam"},
    {'V', 'c', "0m68cm"},
    {'W', 'g', "0m488mc8gm"},
    {'X', 'a', "0ma8 am08"},
    {'Y', 'a', "0m5e58 5eam"},
    {'Z', 'a', "0mam08a8"},
    {'0', '9', "0f*0m*9m*98*080f"},
    {'1', '9', "1i5m58"},
    {'2', '9', "0i*0m4m*9m9i*9g6e0898"},
    {'3', '9', "0j*0m4m*9m9i*9f4f*9f9b*9848*080b"},
    {'4', '9', "787m0c9c"},
    {'5', '9', "8m1m0f*1h4h*9h9c*9848*080a"},
    {'6', '9', "8k*7m5m*0m0d*0h4h*9h9d*9848*080d"},
    {'7', '9', "0m9m38"},
    {'8', '9', "4f*0f0j*0m4m*9m9j*9f4f*0f0b*0848*989b*9f4f"},
    {'9', '9', "1a*2848*989h*9d4d*0d0h*0m4m*9m9h"},
    {'.', '0', "0808"},
    {',', '1', "1905"},
    {':', '0', "0808 0h0h"},
    {';', '1', "1905 1h1h"},
    {'-', '5', "0d5d"},
    {'+', '8', "0d8d 4h49"},
    {'=', '8', "0b8b 0g8g"},
    {'/', '6', "066n"},
    {'(', '3', "3n*0j0e*0935"},
    {')', '3', "0n*3j3e*3905"},
    {'\'', '0', "0m0j"},
    {'?', '8', "0j*0m4m*8m8j*8g4f4c 4848"},
};

static const double SPACE = 8.0, GAP = 4.2, CAP = 14.0, BASE = 8.0;

static double digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static size_t find(char c) {
    size_t last = sizeof glyphs / sizeof *glyphs - 1, i = 0;
    while (i < last && glyphs[i].character != c)
        i++;
    return i;
}

typedef struct point {
    double x, y;
} point;

/* Where a glyph's points come to lie. */
typedef struct frame {
    const font *font;
    double x, base, scale;
} frame;

static const char *next_point(const frame *f, const char *s, point *p, bool *control) {
    *control = *s == '*';
    s += *control;
    double up = (digit(s[1]) - BASE) * f->scale;
    *p = (point){f->x + digit(s[0]) * f->scale + f->font->slant * up, f->base - up};
    return s + 2;
}

static const char *stroke(canvas *c, pen nib, const frame *f, const char *s) {
    point at, p, bend = {0, 0};
    bool control, bent = false;
    for (s = next_point(f, s, &at, &control); *s && *s != ' ';) {
        s = next_point(f, s, &p, &control);
        point end = control ? (point){(bend.x + p.x) / 2, (bend.y + p.y) / 2} : p;
        if (bent)
            canvas_curve(c, nib, at.x, at.y, bend.x, bend.y, end.x, end.y);
        else if (!control)
            canvas_line(c, nib, at.x, at.y, end.x, end.y);
        if (bent || !control)
            at = end;
        bend = p;
        bent = control;
    }
    return *s ? s + 1 : s;
}

double font_width(const font *f, const char *text, size_t n) {
    double units = 0;
    for (size_t i = 0; i < n; i++)
        units += text[i] == ' ' ? SPACE : digit(glyphs[find(text[i])].width) + GAP;
    return units * f->cap / CAP;
}

double font_draw(canvas *c, const font *f, const char *text, size_t n, double x, double base) {
    frame at = {f, x, base, f->cap / CAP};
    pen nib = {f->weight, 0.72 * f->weight, 1.0}; /* as from a broad pen: stems are the stronger */
    for (size_t i = 0; i < n; i++) {
        const char *s = text[i] == ' ' ? "" : glyphs[find(text[i])].strokes;
        while (*s)
            s = stroke(c, nib, &at, s);
        at.x += font_width(f, text + i, 1);
    }
    return at.x;
}
