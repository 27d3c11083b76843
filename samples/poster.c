/* A poster: flat hills and a sun before an even sky, and a skyline of lit windows. What matters is
 * how it compresses: long runs, repeated shapes and steps of a gradient, none of the noise of a
 * photograph. */
#include "draw.h"
#include "noise.h"
#include "picture.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>

enum { HILLS = 5, HOUSES = 48, FLOORS = 40, PANES = 6 };

static const uint8_t hills[HILLS][3] = {
    {148, 176, 190}, {112, 150, 164}, {84, 122, 132}, {58, 94, 96}, {36, 66, 62}};
static const uint8_t house[3] = {24, 30, 44}, lit[3] = {250, 210, 120}, sun[3] = {252, 240, 206};

typedef struct poster {
    double width, height;
    float *edge[HILLS]; /* the row at which each hill begins, by column */
} poster;

/* Over what lies below, as much as `cover` says: a shape's edge is smoothed over a pixel. */
static void paint(double out[3], const uint8_t ink[3], double cover) {
    double part = cover < 0 ? 0 : cover > 1 ? 1 : cover;
    for (int i = 0; i < 3; i++)
        out[i] += (ink[i] - out[i]) * part;
}

static void sky(const poster *p, double y, double out[3]) {
    static const double top[3] = {58, 96, 160}, low[3] = {244, 190, 150};
    for (int i = 0; i < 3; i++)
        out[i] = top[i] + (low[i] - top[i]) * y / p->height;
}

/* Houses stand side by side at the foot; their windows lie on one grid each. */
static void town(const poster *p, double x, double y, double out[3]) {
    double u = x / p->width * HOUSES;
    int32_t which = (int32_t)u;
    double roof = p->height * (0.78 + 0.14 * hash_unit(which, 0, 0, 5));
    paint(out, house, y - roof + 0.5);
    double across = (u - which) * PANES, floor = (y - roof) / p->height * FLOORS * 5;
    if (floor < 1)
        return;
    int32_t pane = (int32_t)across, storey = (int32_t)floor;
    bool glass = across - pane > 0.25 && across - pane < 0.75 && floor - storey > 0.3 && pane > 0 &&
                 pane < PANES - 1;
    if (glass && hash_unit(which, pane, storey, 6) > 0.6)
        paint(out, lit, 1);
}

static void point(const poster *p, uint32_t px, uint32_t py, uint8_t sample[3]) {
    double x = px + 0.5, y = py + 0.5, out[3];
    sky(p, y, out);
    double dx = x - 0.68 * p->width, dy = y - 0.30 * p->height;
    paint(out, sun, 0.09 * p->width - sqrt(dx * dx + dy * dy) + 0.5);
    for (int i = 0; i < HILLS; i++)
        paint(out, hills[i], y - (double)p->edge[i][px] + 0.5);
    town(p, x, y, out);
    for (int i = 0; i < 3; i++)
        sample[i] = (uint8_t)(out[i] + 0.5);
}

static bool poster_start(poster *p, uint32_t width) {
    for (int i = 0; i < HILLS; i++) {
        p->edge[i] = malloc((size_t)width * sizeof(float));
        if (!p->edge[i])
            return false;
        for (uint32_t x = 0; x < width; x++) {
            double at = noise3_octaves(x / p->width * 4, i * 3.7, 0, 3, 11) - 0.5;
            p->edge[i][x] = (float)(p->height * (0.46 + 0.09 * i + 0.22 * at));
        }
    }
    return true;
}

static bool write_rows(const poster *p, const char *path, uint32_t width, uint32_t height,
                       uint8_t *row) {
    picture *out = picture_open(path, width, height, 3, 8, PICTURE_FAST);
    if (!out)
        return false;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++)
            point(p, x, y, row + (size_t)x * 3);
        if (!picture_row(out, row))
            break;
    }
    return picture_close(out);
}

bool draw_poster(const char *path, uint32_t width, uint32_t height) {
    poster p = {.width = width, .height = height};
    uint8_t *row = malloc((size_t)width * 3);
    bool ok = poster_start(&p, width) && row;
    if (!ok)
        picture_complain(path, "out of memory");
    ok = ok && write_rows(&p, path, width, height, row);
    for (int i = 0; i < HILLS; i++)
        free(p.edge[i]);
    free(row);
    return ok;
}
