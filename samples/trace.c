/* scene.png: a path tracer with few samples a pixel, so that its noise is there to be removed. */
#include "draw.h"
#include "picture.h"
#include "random.h"
#include "scene.h"

#include <stdlib.h>

enum { BOUNCES = 9 };

static vec3 in_ball(rng *r) {
    for (;;) {
        double x = 2 * rng_unit(r) - 1, y = 2 * rng_unit(r) - 1, z = 2 * rng_unit(r) - 1;
        vec3 p = vec(x, y, z);
        double d = vec_dot(p, p);
        if (d < 1 && d > 1e-6)
            return p;
    }
}

/* Cosine-weighted about n: a point of the unit sphere that sits on n. */
static vec3 scatter(vec3 n, rng *r) {
    vec3 p = vec_add(n, vec_unit(in_ball(r)));
    return vec_dot(p, p) > 1e-9 ? vec_unit(p) : n;
}

static vec3 reflect(vec3 along, const hit *h, rng *r) {
    vec3 mirror = vec_sub(along, vec_scale(h->normal, 2 * vec_dot(along, h->normal)));
    vec3 d = vec_unit(vec_add(mirror, vec_scale(in_ball(r), h->rough)));
    return vec_dot(d, h->normal) > 0 ? d : mirror;
}

/* Schlick's share of reflected light, for glass or varnish of index 1.5. */
static double fresnel(double cosine) {
    double m = 1 - cosine, m2 = m * m;
    return 0.04 + 0.96 * m2 * m2 * m;
}

static vec3 through_glass(vec3 along, const hit *h, rng *r) {
    double eta = h->inside ? 1.5 : 1 / 1.5, cosine = -vec_dot(along, h->normal);
    double rest = 1 - eta * eta * (1 - cosine * cosine);
    if (rest < 0) /* total reflection */
        return reflect(along, h, r);
    double bent = sqrt(rest);
    if (rng_unit(r) < fresnel(h->inside ? bent : cosine))
        return reflect(along, h, r);
    vec3 d = vec_add(vec_scale(along, eta), vec_scale(h->normal, eta * cosine - bent));
    return vec_unit(d);
}

/* Light that arrives from one random point of the lamp, on a matte surface of albedo 1. */
static vec3 lamp_at(const hit *h, rng *r) {
    double u = rng_unit(r), v = rng_unit(r);
    vec3 lamp = scene_lamp_point(u, v), way = vec_sub(lamp, h->point);
    double square = vec_dot(way, way), length = sqrt(square);
    double facing = vec_dot(way, h->normal) / length, down = way.y / length;
    if (facing <= 0 || down <= 0 || scene_blocked(h->point, lamp))
        return vec(0, 0, 0);
    const double pi = 3.14159265358979;
    return vec_scale(scene_lamp_light(), facing * down * scene_lamp_area() / (pi * square));
}

/* Follows one path. The lamp is sampled at matte points, so a ray that scattered there must not
 * count it a second time; one that was reflected or refracted must. */
static vec3 follow(vec3 from, vec3 along, rng *r) {
    vec3 light = vec(0, 0, 0), weight = vec(1, 1, 1);
    bool lamp_counts = true;
    for (int bounce = 0; bounce < BOUNCES; bounce++) {
        hit h;
        if (!scene_hit(from, along, &h))
            return vec_add(light, vec_mul(weight, scene_sky(along)));
        if (h.finish == LAMP)
            return lamp_counts ? vec_add(light, vec_mul(weight, h.colour)) : light;
        from = h.point;
        lamp_counts = true;
        if (h.finish == GLASS) {
            along = through_glass(along, &h, r);
            weight = h.inside ? vec_mul(weight, h.colour) : weight;
        } else if (h.finish == METAL) {
            along = reflect(along, &h, r);
            weight = vec_mul(weight, h.colour);
        } else if (h.finish == COATED && rng_unit(r) < fresnel(-vec_dot(along, h.normal))) {
            along = reflect(along, &h, r);
        } else {
            weight = vec_mul(weight, h.colour);
            light = vec_add(light, vec_mul(weight, lamp_at(&h, r)));
            along = scatter(h.normal, r);
            lamp_counts = false;
        }
    }
    return light;
}

/* A ray of a lens focused on the glass ball: what is far behind it is slightly soft. */
static vec3 camera(const scene_size *size, uint32_t px, uint32_t py, rng *r) {
    const vec3 eye = vec(0.25, 1.75, 6.3), target = vec(0.0, 0.98, 0);
    const double focus = 5.5, aperture = 0.030, field = 0.80;
    vec3 forward = vec_unit(vec_sub(target, eye));
    vec3 right = vec_unit(vec_cross(forward, vec(0, 1, 0))), up = vec_cross(right, forward);
    double jx = rng_unit(r), jy = rng_unit(r);
    double u = ((px + jx) / size->width - 0.5) * field;
    double v = (0.5 - (py + jy) / size->height) * field * size->height / size->width;
    vec3 ball = vec_scale(in_ball(r), aperture);
    vec3 shift = vec_add(vec_scale(right, ball.x), vec_scale(up, ball.y));
    vec3 way = vec_add(forward, vec_add(vec_scale(right, u), vec_scale(up, v)));
    vec3 along = vec_unit(vec_sub(vec_scale(way, focus), shift));
    return follow(vec_add(eye, shift), along, r);
}

/* A film curve: highlights bend towards white instead of being cut off. */
static double develop(double light) {
    double x = 0.92 * light;
    return x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14);
}

static void pixel(const scene_size *size, uint32_t x, uint32_t y, uint8_t out[3]) {
    rng r = rng_seed((uint64_t)y * size->width + x);
    vec3 sum = vec(0, 0, 0);
    for (uint32_t i = 0; i < size->samples; i++)
        sum = vec_add(sum, camera(size, x, y, &r));
    out[0] = picture_encode(develop(sum.x / size->samples));
    out[1] = picture_encode(develop(sum.y / size->samples));
    out[2] = picture_encode(develop(sum.z / size->samples));
}

/* What is drawn of a scene. */
typedef struct window {
    uint32_t left, top, width, height;
} window;

static bool draw(const char *path, scene_size size, window part, picture_effort effort) {
    uint8_t *row = malloc((size_t)part.width * 3);
    if (!row)
        return picture_complain(path, "out of memory");
    picture *p = picture_open(path, part.width, part.height, 3, 8, effort);
    for (uint32_t y = 0; p && y < part.height; y++) {
        for (uint32_t x = 0; x < part.width; x++)
            pixel(&size, part.left + x, part.top + y, row + (size_t)x * 3);
        if (!picture_row(p, row))
            break;
    }
    free(row);
    return p && picture_close(p);
}

static const scene_size scene = {.width = 768, .height = 512, .samples = 12};

bool draw_scene(const char *path) {
    return draw(path, scene, (window){0, 0, scene.width, scene.height}, PICTURE_SMALL);
}

bool draw_detail(const char *path) {
    const scene_size noisier = {.width = scene.width, .height = scene.height, .samples = 3};
    return draw(path, noisier, (window){168, 96, 288, 192}, PICTURE_SMALL);
}

bool draw_large_scene(const char *path, scene_size size) {
    return draw(path, size, (window){0, 0, size.width, size.height}, PICTURE_FAST);
}
