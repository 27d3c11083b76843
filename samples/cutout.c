/* A glazed ring with sprinkles, alone on a transparent background: the shape is a distance field,
 * found by stepping along each ray. Its edge and its hole test how a filter treats alpha. */
#include "draw.h"
#include "noise.h"
#include "picture.h"
#include "random.h"
#include "vec.h"

enum { SIDE = 480, GRID = 5, SPRINKLES = 130, CELLS = 16 };

static const double RING = 1.0, TUBE = 0.46, GLAZE = 0.485;

typedef struct sprinkle {
    vec3 centre, a, b;
    int colour;
} sprinkle;

static const double HALF_LENGTH = 0.065, THICK = 0.026;
static const double CLEAR = 0.08; /* above the glaze by so much, no sprinkle is near */

/* The sprinkles, and which of them matter above each cell of the (x, z) plane: without it most of
 * the time would go into those that are far away. */
typedef struct topping {
    sprinkle all[SPRINKLES];
    int count[CELLS][CELLS];
    unsigned char near[CELLS][CELLS][SPRINKLES];
} topping;

typedef enum surface { DOUGH, ICING, SPRINKLE } surface;

typedef struct nearest {
    double distance;
    surface surface;
    int colour;
} nearest;

static double torus(vec3 p, double tube) {
    double out = sqrt(p.x * p.x + p.z * p.z) - RING;
    return sqrt(out * out + p.y * p.y) - tube;
}

/* The glaze ends in drops: the height at which it stops depends on the direction only. */
static double icing(vec3 p) {
    double flat = sqrt(p.x * p.x + p.z * p.z) + 1e-9;
    double drops = noise3(5.2 * p.x / flat + 9.0, 5.2 * p.z / flat + 9.0, 0.0, 5);
    double outside = flat > RING ? 1.0 : 0.55;
    double limit = 0.13 - 0.42 * outside * (drops - 0.25);
    double cover = smooth_step(-0.055, 0.055, p.y - limit);
    return torus(p, TUBE - 0.03 + (GLAZE - TUBE + 0.03) * cover);
}

static double capsule(vec3 p, vec3 a, vec3 b, double radius) {
    vec3 pa = vec_sub(p, a), ba = vec_sub(b, a);
    double t = vec_dot(pa, ba) / vec_dot(ba, ba);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return vec_length(vec_sub(pa, vec_scale(ba, t))) - radius;
}

static int cell(double x) {
    int i = (int)((x + 1.6) * (CELLS / 3.2));
    return i < 0 ? 0 : i >= CELLS ? CELLS - 1 : i;
}

static nearest field_at(const topping *t, vec3 p) {
    nearest n = {torus(p, TUBE), DOUGH, 0};
    if (n.distance > 0.15) { /* far off, only a bound is needed */
        n.distance -= 0.1;
        return n;
    }
    double glaze = icing(p);
    if (glaze < n.distance)
        n = (nearest){glaze, ICING, 0};
    if (p.y > 0 && glaze > CLEAR) /* a bound again */
        n.distance -= 0.045;
    else if (p.y > 0) {
        int cx = cell(p.x), cz = cell(p.z);
        for (int i = 0; i < t->count[cz][cx]; i++) {
            const sprinkle *s = &t->all[t->near[cz][cx][i]];
            double d = capsule(p, s->a, s->b, THICK);
            if (d < n.distance)
                n = (nearest){d, SPRINKLE, s->colour};
        }
    }
    return n;
}

static vec3 normal_at(const topping *s, vec3 p) {
    const double e = 0.0015;
    double here = field_at(s, p).distance;
    return vec_unit(vec(field_at(s, vec(p.x + e, p.y, p.z)).distance - here,
                        field_at(s, vec(p.x, p.y + e, p.z)).distance - here,
                        field_at(s, vec(p.x, p.y, p.z + e)).distance - here));
}

static void index_sprinkle(topping *t, int i) {
    const double reach = HALF_LENGTH + THICK + CLEAR;
    vec3 c = t->all[i].centre;
    for (int z = cell(c.z - reach); z <= cell(c.z + reach); z++)
        for (int x = cell(c.x - reach); x <= cell(c.x + reach); x++)
            t->near[z][x][t->count[z][x]++] = (unsigned char)i;
}

/* A random place on the upper half of the ring, in a random tangent direction, not too near to the
 * others. */
static void strew(topping *t) {
    sprinkle *sprinkles = t->all;
    rng r = rng_seed(2024);
    for (int i = 0; i < SPRINKLES;) {
        double x = 3.2 * rng_unit(&r) - 1.6, z = 3.2 * rng_unit(&r) - 1.6;
        double tx = rng_unit(&r) - 0.5, ty = 0.4 * (rng_unit(&r) - 0.5), tz = rng_unit(&r) - 0.5;
        vec3 turn = vec(tx, ty, tz); /* not drawn in the call: arguments have no order */
        double out = sqrt(x * x + z * z) - RING, room = 0.42 * 0.42 - out * out;
        if (room < 0)
            continue;
        vec3 p = vec(x, sqrt(GLAZE * GLAZE - out * out), z);
        double flat = sqrt(x * x + z * z);
        vec3 up = vec_scale(vec(out * x / flat, p.y, out * z / flat), 1.0 / GLAZE);
        vec3 along = vec_unit(vec_sub(turn, vec_scale(up, vec_dot(turn, up))));
        bool free_place = true;
        for (int k = 0; k < i; k++) {
            free_place &= vec_length(vec_sub(sprinkles[k].centre, p)) > 0.15;
        }
        if (!free_place)
            continue;
        vec3 centre = vec_add(p, vec_scale(up, 0.012));
        sprinkles[i] =
            (sprinkle){centre, vec_sub(centre, vec_scale(along, HALF_LENGTH)),
                       vec_add(centre, vec_scale(along, HALF_LENGTH)), (int)(rng_next(&r) % 5)};
        index_sprinkle(t, i++);
    }
}

static vec3 paint(nearest n, vec3 p) {
    static const vec3 sugar[5] = {{0.95, 0.75, 0.10},
                                  {0.10, 0.50, 0.75},
                                  {0.92, 0.92, 0.88},
                                  {0.35, 0.65, 0.15},
                                  {0.85, 0.15, 0.12}};
    if (n.surface == SPRINKLE)
        return sugar[n.colour];
    if (n.surface == ICING)
        return vec(0.86, 0.24, 0.36);
    double crumb = noise3_octaves(p.x * 14, p.y * 14, p.z * 14, 3, 8);
    double pale = 1.0 - smooth_step(0.02, 0.20, (p.y + 0.10 > 0 ? p.y + 0.10 : -p.y - 0.10));
    vec3 baked = vec(0.56, 0.27, 0.09), white = vec(0.82, 0.58, 0.28);
    return vec_scale(vec_mix(baked, white, 0.7 * pale), 0.75 + 0.5 * crumb);
}

/* How much of the sky reaches p: a few steps along the normal show what stands near. */
static double openness(vec3 p, vec3 n) {
    double shut = 0, weight = 1;
    for (int i = 1; i <= 4; i++) {
        double reach = 0.07 * i;
        shut += weight * (reach - torus(vec_add(p, vec_scale(n, reach)), GLAZE));
        weight *= 0.6;
    }
    double open = 1.0 - 1.6 * shut;
    return open < 0.15 ? 0.15 : open > 1 ? 1 : open;
}

static bool march(const topping *s, vec3 from, vec3 along, double reach, double *at) {
    for (double t = *at; t < reach;) {
        double d = field_at(s, vec_add(from, vec_scale(along, t))).distance;
        if (d < 0.0008) {
            *at = t;
            return true;
        }
        t += 0.8 * d; /* the glaze's rim bends the field: a full step could jump over it */
    }
    return false;
}

static vec3 shade(const topping *s, vec3 p, vec3 eye) {
    const vec3 sun = vec_unit(vec(-0.55, 0.80, 0.45));
    nearest what = field_at(s, p);
    vec3 n = normal_at(s, p), colour = paint(what, p);
    double facing = vec_dot(n, sun), start = 0.02;
    if (facing < 0 || march(s, vec_add(p, vec_scale(n, 0.01)), sun, 2.5, &start))
        facing = 0;
    double sky = (0.6 + 0.4 * n.y) * openness(p, n);
    vec3 light =
        vec_add(vec_scale(vec(1.05, 0.98, 0.88), facing), vec_scale(vec(0.42, 0.45, 0.52), sky));
    vec3 half = vec_unit(vec_sub(sun, eye));
    double gloss = vec_dot(n, half);
    gloss = gloss < 0 ? 0 : gloss * gloss;
    gloss *= gloss;                               /* to the 4th */
    double tight = gloss * gloss * gloss * gloss; /* 16th */
    tight = tight * tight * tight * tight;        /* 64th */
    double shine = what.surface == DOUGH ? 0.04 * gloss : 0.75 * tight + 0.07 * gloss;
    double away = 1.0 + vec_dot(n, eye), rim = away * away * away;
    vec3 lit = vec_mul(colour, light);
    double white = (facing > 0 ? shine : 0) + (what.surface == DOUGH ? 0.02 : 0.12) * rim * sky;
    return vec_add(lit, vec(white, white, white));
}

/* The colour of a pixel is the mean of the samples that hit, its alpha the share of them: alpha is
 * straight, not premultiplied, as PNG wants it. */
static void pixel(const topping *s, int px, int py, uint8_t out[4]) {
    const vec3 eye = vec(0, 3.9, 3.6), forward = vec_unit(vec_sub(vec(0, -0.03, 0), eye));
    const vec3 right = vec(1, 0, 0), up = vec_cross(right, forward);
    vec3 sum = vec(0, 0, 0);
    int hits = 0;
    for (int i = 0; i < GRID * GRID; i++) {
        const int column = i % GRID, row = i / GRID;
        double u = (px + (column + 0.5) / GRID) / SIDE - 0.5;
        double v = 0.5 - (py + (row + 0.5) / GRID) / SIDE;
        vec3 along = vec_unit(
            vec_add(forward, vec_add(vec_scale(right, 0.63 * u), vec_scale(up, 0.63 * v))));
        double t = 3.0;
        if (march(s, eye, along, 8.0, &t)) {
            sum = vec_add(sum, shade(s, vec_add(eye, vec_scale(along, t)), along));
            hits++;
        }
    }
    double inverse = hits > 0 ? 1.0 / hits : 0;
    out[0] = picture_encode(sum.x * inverse);
    out[1] = picture_encode(sum.y * inverse);
    out[2] = picture_encode(sum.z * inverse);
    out[3] = (uint8_t)((hits * 255 + GRID * GRID / 2) / (GRID * GRID));
}

bool draw_cutout(const char *path) {
    topping top = {0};
    strew(&top);
    picture *p = picture_open(path, SIDE, SIDE, 4, 8, PICTURE_SMALL);
    if (!p)
        return false;
    for (int y = 0; y < SIDE; y++) {
        uint8_t row[SIDE * 4];
        for (int x = 0; x < SIDE; x++)
            pixel(&top, x, y, row + 4 * x);
        if (!picture_row(p, row))
            break;
    }
    return picture_close(p);
}
