#include "scene.h"

#include "noise.h"
#include "random.h"

#include <stddef.h>
#include <stdint.h>

typedef enum look { PLAIN, STRIPED, PARQUET, WALL } look;

typedef struct material {
    finish finish;
    look look;
    vec3 colour;
    double rough;
} material;

typedef struct sphere {
    vec3 centre;
    double radius;
    material material;
} sphere;

/* A box turned about the vertical axis; (turn_x, turn_z) is the unit vector of its own x. */
typedef struct box {
    vec3 centre, half;
    double turn_x, turn_z;
    material material;
} box;

static const sphere spheres[] = {
    {{0.28, 0.74, 0.70}, 0.74, {GLASS, PLAIN, {0.985, 0.995, 0.99}, 0}},
    {{1.62, 0.82, -0.75}, 0.82, {METAL, PLAIN, {0.98, 0.74, 0.36}, 0.05}},
    {{-1.50, 0.68, 0.05}, 0.68, {COATED, STRIPED, {0.80, 0.07, 0.05}, 0.01}},
    {{-0.55, 1.64, -1.15}, 0.36, {COATED, PLAIN, {0.93, 0.60, 0.06}, 0.03}},
    {{1.22, 0.26, 0.95}, 0.26, {COATED, PLAIN, {0.05, 0.42, 0.20}, 0.02}},
    {{1.72, 0.19, 1.28}, 0.19, {METAL, PLAIN, {0.93, 0.93, 0.95}, 0.0}},
    {{-0.66, 0.20, 1.30}, 0.20, {COATED, PLAIN, {0.88, 0.86, 0.80}, 0.01}},
    {{-1.52, 0.15, 1.30}, 0.15, {GLASS, PLAIN, {0.55, 0.85, 0.98}, 0}},
    {{0.86, 0.13, 1.72}, 0.13, {COATED, PLAIN, {0.48, 0.10, 0.45}, 0.02}},
    {{2.06, 0.17, 0.42}, 0.17, {MATTE, PLAIN, {0.85, 0.30, 0.10}, 0}},
};

static const box boxes[] = {
    {{-0.55, 0.64, -1.15}, {0.58, 0.64, 0.58}, 0.8, 0.6, {COATED, PLAIN, {0.05, 0.20, 0.50}, 0.10}},
    {{0.86, 0.17, -1.62},
     {0.30, 0.17, 0.30},
     24.0 / 25,
     7.0 / 25,
     {MATTE, PLAIN, {0.80, 0.62, 0.12}, 0}},
};

enum { SPHERES = sizeof spheres / sizeof *spheres, BOXES = sizeof boxes / sizeof *boxes };

static const double BACK = -2.3, LEFT = -2.75, LAMP_Y = 4.6;
static const vec3 lamp_low = {-1.9, 0, -0.4}, lamp_high = {0.7, 0, 1.8};

static const material floor_material = {COATED, PARQUET, {0, 0, 0}, 0.05};
static const material wall_material = {MATTE, WALL, {0, 0, 0}, 0};

/* Beyond this there is only the sky: the floor's pattern is counted in int32_t. */
static const double FAR = 60;

/* Rays that start on a surface must not meet it again. */
static const double NEAREST = 1e-4;

static bool meet_sphere(const sphere *s, vec3 from, vec3 along, double *at) {
    vec3 to = vec_sub(s->centre, from);
    double middle = vec_dot(to, along);
    double room = s->radius * s->radius - (vec_dot(to, to) - middle * middle);
    if (room < 0)
        return false;
    double reach = sqrt(room);
    double t = middle - reach > NEAREST ? middle - reach : middle + reach;
    if (t <= NEAREST || t >= *at)
        return false;
    *at = t;
    return true;
}

static vec3 turn(const box *b, vec3 v) {
    return vec(v.x * b->turn_x + v.z * b->turn_z, v.y, v.z * b->turn_x - v.x * b->turn_z);
}

static vec3 turn_back(const box *b, vec3 v) {
    return vec(v.x * b->turn_x - v.z * b->turn_z, v.y, v.z * b->turn_x + v.x * b->turn_z);
}

/* Where a ray is between two planes of one axis; false if that ends before it begins. */
static bool clip(double from, double along, double half, double *enter, double *leave, bool *cut) {
    double inverse = 1.0 / (along > -1e-12 && along < 1e-12 ? 1e-12 : along);
    double t0 = (-half - from) * inverse, t1 = (half - from) * inverse;
    double low = t0 < t1 ? t0 : t1, high = t0 < t1 ? t1 : t0;
    *cut = low > *enter;
    *enter = *cut ? low : *enter;
    *leave = high < *leave ? high : *leave;
    return *enter < *leave;
}

/* No ray starts inside a box: none of them is of glass. */
static bool meet_box(const box *b, vec3 from, vec3 along, double *at, vec3 *normal) {
    vec3 o = turn(b, vec_sub(from, b->centre)), d = turn(b, along);
    double enter = -1e30, leave = 1e30;
    bool x, y, z;
    if (!clip(o.x, d.x, b->half.x, &enter, &leave, &x) ||
        !clip(o.y, d.y, b->half.y, &enter, &leave, &y) ||
        !clip(o.z, d.z, b->half.z, &enter, &leave, &z) || enter <= NEAREST || enter >= *at)
        return false;
    *at = enter;
    vec3 n = z   ? vec(0, 0, d.z > 0 ? -1 : 1)
             : y ? vec(0, d.y > 0 ? -1 : 1, 0)
                 : vec(d.x > 0 ? -1 : 1, 0, 0);
    *normal = turn_back(b, n);
    return true;
}

static bool meet_plane(double from, double along, double place, double *at) {
    if (along == 0) /* within the plane or beside it */
        return false;
    double t = (place - from) / along;
    if (t <= NEAREST || t >= *at)
        return false;
    *at = t;
    return true;
}

/* A painted wall with a framed picture on the back one: a sun over hills. */
static vec3 wall(vec3 p) {
    double u = (p.x - 1.35) / 0.95, v = (p.y - 2.18) / 0.66;
    if (p.z > BACK + 0.01) /* the left wall */
        return vec(0.20, 0.42, 0.42);
    if (u * u > 1 || v * v > 1) {
        double shade = 0.97 + 0.06 * noise3(p.x * 3, p.y * 3, 0, 41);
        return vec_scale(vec(0.72, 0.68, 0.60), shade);
    }
    if (u * u > 0.87 || v * v > 0.82)
        return vec(0.07, 0.04, 0.025);
    if (u * u > 0.62 || v * v > 0.50)
        return vec(0.86, 0.84, 0.80);
    double sun = (u - 0.25) * (u - 0.25) * 2.07 + (v - 0.12) * (v - 0.12);
    double hill = 0.55 * (noise3(u * 2.2 + 7, 0.5, 0.5, 3) - 0.55);
    double hill_near = 0.6 * (noise3(u * 1.8 + 3, 0.5, 0.5, 9) - 1.0);
    if (v < hill_near)
        return vec(0.05, 0.13, 0.22);
    if (v < hill - 0.05)
        return vec(0.16, 0.34, 0.46);
    if (sun < 0.075)
        return vec(0.95, 0.90, 0.55);
    return vec_mix(vec(0.92, 0.45, 0.22), vec(0.75, 0.18, 0.20), smooth_step(-0.2, 0.7, v));
}

/* Planks along x: each has its own tint, offset and grain, and a dark joint around it. */
static vec3 parquet(vec3 p) {
    const double width = 0.36, length = 2.4;
    double across = p.z / width + 100;
    int32_t row = (int32_t)across;
    double along = p.x / length + 100 + hash_unit(row, 0, 0, 61);
    int32_t plank = (int32_t)along;
    double tint = hash_unit(row, plank, 0, 62);
    double bend = noise3(p.x * 0.9, p.z * 1.5, row, 63);
    double grain = noise3_octaves(p.x * 1.3 + plank * 9, p.z * 26 + 7 * bend, row, 3, 64);
    double ring = noise3(p.x * 0.6 + plank * 5, p.z * 9 + 5 * bend, row, 67);
    vec3 c = vec_mix(vec(0.42, 0.20, 0.085), vec(0.68, 0.39, 0.18), 0.2 + 0.8 * tint);
    c = vec_scale(c, 0.45 + 0.55 * grain + 0.45 * smooth_step(0.2, 0.75, ring));
    double edge = (across - row) < 0.5 ? across - row : 1 - (across - row);
    double end = (along - plank) < 0.5 ? along - plank : 1 - (along - plank);
    bool joint = edge * width < 0.006 || end * length < 0.005;
    return joint ? vec_scale(c, 0.25) : c;
}

/* A billiard ball's white band, on a slant. */
static vec3 striped(vec3 normal, vec3 colour) {
    double height = vec_dot(normal, vec(0.36, 0.80, -0.48));
    return height > -0.42 && height < 0.42 ? colour : vec(0.90, 0.88, 0.82);
}

static void dress(hit *h, const material *m, vec3 out) {
    h->finish = m->finish;
    h->rough = m->rough;
    h->colour = m->look == PARQUET   ? parquet(h->point)
                : m->look == WALL    ? wall(h->point)
                : m->look == STRIPED ? striped(out, m->colour)
                                     : m->colour;
}

bool scene_hit(vec3 from, vec3 along, hit *h) {
    double at = FAR;
    const sphere *ball = NULL;
    const material *m = NULL;
    vec3 out = vec(0, 0, 0);
    if (meet_plane(from.y, along.y, 0, &at)) {
        m = &floor_material;
        out = vec(0, 1, 0);
    }
    if (meet_plane(from.z, along.z, BACK, &at)) {
        m = &wall_material;
        out = vec(0, 0, 1);
    }
    if (meet_plane(from.x, along.x, LEFT, &at)) {
        m = &wall_material;
        out = vec(1, 0, 0);
    }
    for (int i = 0; i < BOXES; i++)
        if (meet_box(&boxes[i], from, along, &at, &out))
            m = &boxes[i].material;
    for (int i = 0; i < SPHERES; i++)
        if (meet_sphere(&spheres[i], from, along, &at))
            ball = &spheres[i];
    double lamp = at;
    if (meet_plane(from.y, along.y, LAMP_Y, &lamp)) {
        double x = from.x + along.x * lamp, z = from.z + along.z * lamp;
        if (x > lamp_low.x && x < lamp_high.x && z > lamp_low.z && z < lamp_high.z) {
            *h = (hit){.distance = lamp, .finish = LAMP, .colour = scene_lamp_light()};
            return true;
        }
    }
    if (!m && !ball)
        return false;
    h->distance = at;
    h->point = vec_add(from, vec_scale(along, at));
    if (ball) {
        m = &ball->material;
        out = vec_scale(vec_sub(h->point, ball->centre), 1.0 / ball->radius);
    }
    h->inside = vec_dot(out, along) > 0;
    h->normal = h->inside ? vec_scale(out, -1) : out;
    dress(h, m, out);
    return true;
}

bool scene_blocked(vec3 from, vec3 to) {
    vec3 way = vec_sub(to, from), normal;
    double length = vec_length(way), at = length - NEAREST;
    vec3 along = vec_scale(way, 1.0 / length);
    for (int i = 0; i < SPHERES; i++)
        if (meet_sphere(&spheres[i], from, along, &at))
            return true;
    for (int i = 0; i < BOXES; i++)
        if (meet_box(&boxes[i], from, along, &at, &normal))
            return true;
    return false; /* the walls and the floor stand around the lamp, not before it */
}

vec3 scene_lamp_point(double u, double v) {
    return vec(lamp_low.x + (lamp_high.x - lamp_low.x) * u, LAMP_Y,
               lamp_low.z + (lamp_high.z - lamp_low.z) * v);
}

double scene_lamp_area(void) {
    return (lamp_high.x - lamp_low.x) * (lamp_high.z - lamp_low.z);
}

vec3 scene_lamp_light(void) {
    return vec(9.0, 7.9, 6.4);
}

vec3 scene_sky(vec3 along) {
    return vec_mix(vec(0.34, 0.33, 0.34), vec(0.46, 0.58, 0.80), smooth_step(-0.1, 0.7, along.y));
}
